#include "server/common/filter.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
// cppcheck-suppress preprocessorErrorDirective
#error "which architecture is this for seccomp?"
#endif
#define X32_CALLS 0x40000000 /* where the numbers of the x32 ABI begin */

void ad__filter_add(ad_filter *f, uint16_t code, uint32_t k, uint8_t yes, uint8_t no) {
    if (f->size < AD_FILTER_SIZE) f->code[f->size++] = (struct sock_filter)BPF_JUMP(code, k, yes, no);
}

static void add_load(ad_filter *f, size_t offset) {
    ad__filter_add(f, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void add_return(ad_filter *f, uint32_t value) { ad__filter_add(f, BPF_RET | BPF_K, value, 0, 0); }

void ad__filter_begin(ad_filter *f) {
    f->size = 0;
    add_load(f, offsetof(struct seccomp_data, arch));
    ad__filter_add(f, BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
    add_return(f, SECCOMP_RET_KILL_PROCESS);
    add_load(f, offsetof(struct seccomp_data, nr));
#ifdef __x86_64__
    ad__filter_add(f, BPF_JMP | BPF_JGE | BPF_K, X32_CALLS, 0, 1);
    add_return(f, SECCOMP_RET_KILL_PROCESS);
#endif
}

/* Offsets of lower halves are those of little-endian machines. */
void ad__filter_load(ad_filter *f, int n) { add_load(f, offsetof(struct seccomp_data, args) + (size_t)n * 8); }

void ad__filter_answer(ad_filter *f, const int *calls, size_t n, uint32_t with) {
    for (size_t i = 0; i < n; i++) {
        ad__filter_add(f, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[i], 0, 1);
        add_return(f, with);
    }
}

void ad__filter_hide_newer(ad_filter *f, uint32_t newest) {
    ad__filter_add(f, BPF_JMP | BPF_JGT | BPF_K, newest, 0, 1);
    add_return(f, SECCOMP_RET_ERRNO | ENOSYS);
}

void ad__filter_own_limits(ad_filter *f) {
    ad__filter_add(f, BPF_JMP | BPF_JEQ | BPF_K, SYS_prlimit64, 0, 4);
    ad__filter_load(f, 0);
    ad__filter_add(f, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1);
    add_return(f, SECCOMP_RET_ALLOW);
    add_return(f, SECCOMP_RET_ERRNO | EPERM);
}

void ad__filter_clone(ad_filter *f, int threads_only) {
    const uint32_t spaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |
                            CLONE_NEWNET | CLONE_PTRACE;
    ad__filter_add(f, BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4);
    ad__filter_load(f, 0);
    if (threads_only) ad__filter_add(f, BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1);
    else ad__filter_add(f, BPF_JMP | BPF_JSET | BPF_K, spaces, 1, 0);
    add_return(f, SECCOMP_RET_ALLOW);
    add_return(f, SECCOMP_RET_ERRNO | EPERM);
}

int ad__filter_close(ad_filter *f, uint32_t with, ad_fault *fault) {
    /* clone3 has its flags in memory, which a filter cannot read: libraries then use clone. */
    static const int unreadable[] = {SYS_clone3};
    ad__filter_answer(f, unreadable, 1, SECCOMP_RET_ERRNO | ENOSYS);
    add_return(f, with);
    if (f->size >= AD_FILTER_SIZE) return ad__fault(fault, AD_E_INTERNAL, "the filter of system calls is too long");
    const struct sock_fprog program = {f->size, f->code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return ad__fault(fault, AD_E_SYSTEM, "prctl: %s", strerror(errno));
    const long thread = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
    if (!thread) return 0;
    return ad__fault(fault, AD_E_SYSTEM, "seccomp: %s", thread > 0 ? "a thread has a filter of its own" : strerror(errno));
}
