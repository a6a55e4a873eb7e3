#include "server/worker/confine.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/syscall.h>

#include "kernels/backend.h"
#include "server/common/filter.h"

static const int needed_calls[] = {
#define AD_SYSTEM_CALL(name) SYS_##name,
#ifdef __x86_64__
#define AD_OLD_CALL(name) SYS_##name,
#else
#define AD_OLD_CALL(name)
#endif
#include "server/worker/system_calls.def"
#undef AD_OLD_CALL
#undef AD_SYSTEM_CALL
#ifdef __SANITIZE_ADDRESS__ /* the sanitizer lists its threads and stops them to look for leaks */
    SYS_ptrace,
#ifdef __x86_64__
    SYS_getdents,
#endif
#endif
};

/* What becomes of other calls; 0: all calls are allowed. Nobody has tried yet what CUDA's driver calls. */
static uint32_t choose_answer(const char *option, const char *backend) {
    if (!strcmp(option, "auto")) option = strcmp(backend, "cpu") ? "all" : "needed";
    if (!strcmp(option, "needed")) return SECCOMP_RET_ERRNO | EPERM;
    return !strcmp(option, "logged") ? SECCOMP_RET_LOG : 0;
}

int ad__confine_worker(const ad_worker *w, ad_fault *fault) {
    static ad_filter f;
    const uint32_t with = choose_answer(w->config.system_calls, w->backend->name);
    if (!with) return 0;
    ad__filter_begin(&f);
    ad__filter_answer(&f, needed_calls, AD_CALL_COUNT(needed_calls), SECCOMP_RET_ALLOW);
    ad__filter_clone(&f, false);
    ad__filter_own_limits(&f);
    if (with != SECCOMP_RET_LOG) ad__filter_hide_newer(&f, SYS_landlock_restrict_self);
    return ad__filter_close(&f, with, fault);
}
