/* The jail: Landlock for files, seccomp for system calls, and limits. See jail.h. */
#include "server/compile/jail.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "server/common/filter.h"
#include "server/compile/frame.h"

#define STACK (64u << 20) /* what a deeply nested source takes */
#define FILES 256

/* ---- files ---- */

/* All rights of Landlock's first version, and those that later versions added. Each kernel is asked only for the
 * rights that it knows. */
#define RIGHT(n) (1ULL << (n))
#define FIRST_RIGHTS (RIGHT(13) - 1)
#define READING (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define REFER RIGHT(13)
#define TRUNCATE RIGHT(14)
#define IOCTL RIGHT(15)
#define FILE_RIGHTS \
    (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_FILE | TRUNCATE)
#define WRITING                                                                                                 \
    (READING | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | \
     LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_DIR | TRUNCATE)

static long get_landlock_version(void) {
    return syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
}

bool ad__jail_possible(void) { return get_landlock_version() >= 1; }

static uint64_t list_handled_rights(long version) {
    return FIRST_RIGHTS | (version >= 2 ? REFER : 0) | (version >= 3 ? TRUNCATE : 0) | (version >= 5 ? IOCTL : 0);
}

/* Allow rights beneath a path. A path that does not exist needs none. */
static int allow_path(int ruleset, const char *path, uint64_t rights) {
    struct landlock_path_beneath_attr rule = {.parent_fd = open(path, O_PATH | O_CLOEXEC)};
    struct stat st;
    if (rule.parent_fd < 0) return errno == ENOENT ? 0 : -1;
    if (!fstat(rule.parent_fd, &st) && !S_ISDIR(st.st_mode)) rights &= FILE_RIGHTS;
    rule.allowed_access = rights;
    long status = syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    close(rule.parent_fd);
    return (int)status;
}

/* Let Landlock refuse all files but those of the jail. AD_E_UNSUPPORTED, AD_E_SYSTEM. */
static int restrict_files(const ad_jail *jail, ad_fault *fault) {
    long version = get_landlock_version();
    struct {
        uint64_t files, network; /* network, from version 4 on: bind and connect */
    } attributes = {list_handled_rights(version), 3};
    if (version < 1)
        return jail->optional ? 0
                              : ad__fault(fault, AD_E_UNSUPPORTED,
                                          "this kernel has no Landlock (Linux 5.13 or newer, "
                                          "enabled): without it users' sources are not compiled, "
                                          "unless option compile-jail is no");
    int ruleset = (int)syscall(SYS_landlock_create_ruleset, &attributes, version >= 4 ? 16 : 8, 0), status = 0;
    if (ruleset < 0) return ad__fault(fault, AD_E_SYSTEM, "landlock: %s", strerror(errno));
    uint64_t reading = READING | (jail->programs ? LANDLOCK_ACCESS_FS_EXECUTE : 0);
    for (const char *const *p = jail->read; !status && *p; p++)
        status = allow_path(ruleset, *p, reading & attributes.files);
    if (!status && jail->write) status = allow_path(ruleset, jail->write, WRITING & attributes.files);
    if (!status) status = (int)syscall(SYS_landlock_restrict_self, ruleset, 0);
    if (status) ad__fault(fault, AD_E_SYSTEM, "landlock: %s", strerror(errno));
    close(ruleset);
    return status ? AD_E_SYSTEM : 0;
}

/* ---- system calls ---- */

/* Calls that a compiler needs when it runs alone. Numbers that exist only on some architectures stand below #ifdef. */
static const int plain_calls[] = {
    SYS_brk,
    SYS_mmap,
    SYS_munmap,
    SYS_mremap,
    SYS_mprotect,
    SYS_madvise,
    SYS_read,
    SYS_readv,
    SYS_pread64,
    SYS_write,
    SYS_writev,
    SYS_close,
    SYS_lseek,
    SYS_openat,
    SYS_newfstatat,
    SYS_fstat,
    SYS_statx,
    SYS_faccessat,
    SYS_readlinkat,
    SYS_getdents64,
    SYS_getcwd,
    SYS_fcntl,
    SYS_futex,
    SYS_exit,
    SYS_exit_group,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sigaltstack,
    SYS_getpid,
    SYS_gettid,
    SYS_getuid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getegid,
    SYS_clock_gettime,
    SYS_gettimeofday,
    SYS_clock_nanosleep,
    SYS_nanosleep,
    SYS_getrusage,
    SYS_times,
    SYS_sysinfo,
    SYS_uname,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_getrandom,
    SYS_set_robust_list,
    SYS_set_tid_address,
    SYS_rseq,
    SYS_restart_syscall,
#ifdef __x86_64__
    SYS_open,
    SYS_stat,
    SYS_lstat,
    SYS_access,
    SYS_readlink,
    SYS_time,
    SYS_arch_prctl,
#endif
};

/* Calls that only the host's compiler needs, as it starts programs and writes files. */
static const int program_calls[] = {
    SYS_execve,    SYS_wait4,      SYS_waitid,    SYS_pipe2,     SYS_dup,       SYS_dup3,     SYS_unlinkat,
    SYS_renameat2, SYS_umask,      SYS_ftruncate, SYS_mkdirat,   SYS_ioctl,     SYS_pwrite64, SYS_pselect6,
    SYS_ppoll,     SYS_faccessat2, SYS_getppid,   SYS_fadvise64, SYS_fallocate,
#ifdef __x86_64__
    SYS_pipe,      SYS_dup2,       SYS_unlink,    SYS_rename,    SYS_vfork,     SYS_fork,     SYS_poll,
    SYS_mkdir,     SYS_rmdir,
#endif
};

/* Calls that do nothing and report success: they change modes, which Landlock does not cover and nothing depends on. */
static const int pretended_calls[] = {
    SYS_fchmod,
    SYS_fchmodat,
#ifdef __x86_64__
    SYS_chmod,
#endif
};

/* Allow a process to signal itself, which is how abort ends it. */
static void allow_own_signal(ad_filter *f) {
    ad__filter_add(f, BPF_JMP | BPF_JEQ | BPF_K, SYS_tgkill, 0, 4);
    ad__filter_load(f, 0);
    ad__filter_add(f, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)getpid(), 0, 1);
    ad__filter_add(f, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
    ad__filter_add(f, BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM, 0, 0);
}

/* Let seccomp refuse all system calls that a compiler does not need. AD_E_SYSTEM, AD_E_INTERNAL. */
static int restrict_calls(const ad_jail *jail, ad_fault *fault) {
    static ad_filter f;
    ad__filter_begin(&f);
    ad__filter_answer(&f, plain_calls, AD_CALL_COUNT(plain_calls), SECCOMP_RET_ALLOW);
    if (jail->programs) {
        ad__filter_answer(&f, program_calls, AD_CALL_COUNT(program_calls), SECCOMP_RET_ALLOW);
        ad__filter_answer(&f, pretended_calls, AD_CALL_COUNT(pretended_calls), SECCOMP_RET_ERRNO | 0);
    }
    ad__filter_clone(&f, !jail->programs);
    ad__filter_own_limits(&f);
    if (!jail->programs) allow_own_signal(&f);
    return ad__filter_close(&f, SECCOMP_RET_ERRNO | EPERM, fault);
}

/* ---- limits ---- */

/* Set a limit, but none above the hard limit that is there already. */
static int set_limit(int which, uint64_t soft, uint64_t hard) {
    struct rlimit now, limit = {soft, hard};
    if (getrlimit((__rlimit_resource_t)which, &now)) return -1;
    if (now.rlim_max != RLIM_INFINITY && limit.rlim_max > now.rlim_max) limit.rlim_max = now.rlim_max;
    if (limit.rlim_cur > limit.rlim_max) limit.rlim_cur = limit.rlim_max;
    return setrlimit((__rlimit_resource_t)which, &limit);
}

/* A sanitizer's shadow memory is larger than any limit; the programs that the jailed process starts have none. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SHADOWED true
#else
#define SHADOWED false
#endif

static int set_limits(const ad_jail *jail, ad_fault *fault) {
    int status = set_limit(RLIMIT_CORE, 0, 0) || set_limit(RLIMIT_CPU, jail->seconds, jail->seconds + 1) ||
                 set_limit(RLIMIT_FSIZE, AD_COMPILE_BINARY, AD_COMPILE_BINARY) ||
                 set_limit(RLIMIT_NOFILE, FILES, FILES) || set_limit(RLIMIT_STACK, STACK, STACK) ||
                 set_limit(RLIMIT_MEMLOCK, 0, 0) || set_limit(RLIMIT_MSGQUEUE, 0, 0);
    if (!jail->programs) status = status || set_limit(RLIMIT_NPROC, 0, 0);
    if (!SHADOWED || jail->programs) status = status || set_limit(RLIMIT_AS, jail->memory, jail->memory);
    return status ? ad__fault(fault, AD_E_SYSTEM, "setrlimit: %s", strerror(errno)) : 0;
}

int ad__jail_close(const ad_jail *jail, ad_fault *fault) {
    int status;
    if (prctl(PR_SET_DUMPABLE, 0) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return ad__fault(fault, AD_E_SYSTEM, "prctl: %s", strerror(errno));
    if ((status = restrict_files(jail, fault))) return status;
    if ((status = set_limits(jail, fault))) return status;
    return restrict_calls(jail, fault);
}
