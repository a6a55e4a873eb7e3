/* Checking memory that comes as a descriptor: see memfd.h. */
#include "protocol/memfd.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#define EXPECTED "expected is a memfd of ordinary pages, open for reading and writing, with F_SEAL_SHRINK"

static int refuse_memory(const char *what, const char *why, ad_fault *fault) {
    return ad__fault(fault, AD_E_VALUE, "%s: the descriptor %s; " EXPECTED, what, why);
}

int ad__memfd_check(const char *what, int fd, uint64_t size, ad_fault *fault) {
    const int seals = fcntl(fd, F_GET_SEALS), flags = fcntl(fd, F_GETFL);
    struct statfs of;
    struct stat st;

    if (seals < 0) return refuse_memory(what, "is not a memfd", fault);
    if (fstatfs(fd, &of) != 0 || fstat(fd, &st) != 0)
        return ad__fault(fault, AD_E_SYSTEM, "%s: cannot look at the descriptor: %s", what, strerror(errno));
    if (of.f_type == HUGETLBFS_MAGIC) return refuse_memory(what, "is of huge pages (MFD_HUGETLB)", fault);
    if (of.f_type != TMPFS_MAGIC) return refuse_memory(what, "is of another file system than tmpfs", fault);
    if (!(seals & F_SEAL_SHRINK)) return refuse_memory(what, "is not sealed against shrinking", fault);
    if (seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) return refuse_memory(what, "is sealed against writing", fault);
    if ((flags & O_ACCMODE) != O_RDWR)
        return refuse_memory(
            what, (flags & O_ACCMODE) == O_RDONLY ? "is open for reading only" : "is open for writing only", fault);
    if (st.st_size < 0 || (uint64_t)st.st_size < size)
        return ad__fault(fault, AD_E_EXTENT, "%s: the memfd has %" PRIi64 " bytes, fewer than %" PRIu64, what,
                         (int64_t)st.st_size, size);
    return 0;
}
