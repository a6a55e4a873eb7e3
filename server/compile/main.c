/* arrayd-compile reads one job from descriptor 0 and writes its result to descriptor 1. It takes no arguments and no
 * environment. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/common/os.h"
#include "server/compile/jail.h"
#include "server/compile/options.h"
#include "server/compile/run.h"

#define LISTENING 30 /* seconds within which the job must arrive */
#define JOB (AD_COMPILE_SOURCE + AD_COMPILE_GIVEN + (4u << 20))
#define LEAST_MEMORY (256ull << 20)

/* Give up descriptors, terminal and folder of the parent process, and end when that ends. */
static void detach_process(void) {
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    prctl(PR_SET_DUMPABLE, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    setsid();
    if (null >= 0) dup2(null, STDERR_FILENO);
    close_range(3, ~0u, 0);
    umask(077);
    if (chdir("/")) _exit(2);
    signal(SIGPIPE, SIG_IGN);
}

static int read_frame_bytes(ad_bytes *b, ad_fault *fault) {
    alarm(LISTENING);
    for (;;) {
        if (ad__bytes_reserve(b, 65536)) return ad__fault(fault, AD_E_MEMORY, "out of memory");
        ssize_t n = read(STDIN_FILENO, b->data + b->size, 65536);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return ad__fault(fault, AD_E_SYSTEM, "cannot read the job: %s", strerror(errno));
        if (!n) break;
        b->size += (size_t)n;
        if (b->size > JOB) return ad__fault(fault, AD_E_LIMIT, "the job is too long");
    }
    alarm(0);
    return 0;
}

void ad__compile_leave(const ad_compile_result *r, int failed) {
    ad_bytes b = AD_BYTES_INIT;
    _exit(ad__compile_put_result(&b, r) || ad__os_write(STDOUT_FILENO, b.data, b.size) ? failed : 0);
}

/* Check the job and its limits. AD_E_LIMIT, AD_E_VALUE, AD_E_DENIED. */
static int check_request(ad_compile_request *r, ad_fault *fault) {
    int status = ad__compile_check(&r->job, fault);
    if (status) return status;
    if (r->seconds < 1 || r->seconds > AD_COMPILE_SECONDS)
        return ad__fault(fault, AD_E_VALUE, "%u seconds: expected 1 to %u", r->seconds, AD_COMPILE_SECONDS);
    if (r->memory < LEAST_MEMORY) return ad__fault(fault, AD_E_VALUE, "expected at least 256M for compile-memory");
    if (ad__jail_possible() || r->open || r->job.own) return 0;
    return ad__fault(fault, AD_E_DENIED,
                     "this kernel has no Landlock (Linux 5.13 or newer, enabled): without it users' "
                     "sources are not compiled, unless option compile-jail is no");
}

void ad__compile_refuse(const ad_fault *fault, ad_compile_result *out) {
    *out = (ad_compile_result){.kind = AD_COMPILE_REFUSED, .code = fault->code, .binary.log = fault->text};
}

int main(void) {
    static ad_bytes bytes;
    static ad_compile_request request;
    static ad_compile_result result;
    static ad_fault fault;
    void *lists = NULL;
    detach_process();
    if (read_frame_bytes(&bytes, &fault) || ad__compile_get_request(bytes.data, bytes.size, &request, &lists, &fault) ||
        check_request(&request, &fault)) {
        ad__compile_refuse(&fault, &result);
    } else {
        setpriority(PRIO_PROCESS, 0, request.job.own ? 10 : 5);
        if (request.job.target == AD_COMPILE_CUDA) ad__compile_cuda(&request, &result);
        else ad__compile_host(&request, &result);
    }
    ad__compile_leave(&result, 2);
}
