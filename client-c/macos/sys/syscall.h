/* Only the end of an embedded server is waited for by a system call of Linux's own, and there are none on macOS. */
#include <errno.h>

#define SYS_pidfd_open 0
#define syscall ad_macos_syscall

static inline long ad_macos_syscall(long number, ...) {
    (void)number;
    errno = ENOSYS;
    return -1;
}
