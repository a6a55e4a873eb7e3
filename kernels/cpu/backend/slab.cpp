/* Slabs of the cpu backend: memory with a descriptor (memfd), so that it outlives this process wherever somebody else
 * holds the descriptor. Sealed against shrinking: nobody who holds it can take pages from under a mapping. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/cpu/backend/device.h"
#include "kernels/redzone.h"
#include "protocol/memfd.h"

namespace {

constexpr uint64_t HUGE_PAGE = 2u << 20;
/* The distance between slabs. They are mapped one below the other, and those of one size would lie a power of two
 * apart. AMD's first-level cache predicts its way from a hash of the address (bits 12 to 27; Lipp et al., "Take A Way",
 * 2020). It keeps only one of two lines whose hashes agree: a + b of arrays of 2^27 bytes took 1.4 times as long. */
constexpr uint64_t APART = HUGE_PAGE;

/* The addresses that a slab takes. Behind every slab there are as many zeros to be read, which are addresses only, no
 * memory. OpenBLAS's kernels for complex matrices (0.3.21, issue 4013) read one element too many of their vectors.
 * Where the vector is a row that is almost a column beyond the end. */
constexpr uint64_t mapped(uint64_t size) { return 2 * size + APART; }

/* Nothing but OpenBLAS, which AddressSanitizer does not see, is to read those next to a slab. */
constexpr uint64_t red(uint64_t size) { return size < APART ? size : APART; }

/* Reserve so many bytes of zeros from a multiple of HUGE_PAGE on, as the kernel takes large pages there only.
 * MAP_FAILED. */
void *reserve(uint64_t bytes) {
    void *p = mmap(nullptr, bytes + HUGE_PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return p;
    uint64_t before = -uint64_t(uintptr_t(p)) % HUGE_PAGE;
    char *base = static_cast<char *>(p) + before;
    if (before) munmap(p, before);
    munmap(base + bytes, HUGE_PAGE - before);
    return base;
}

int system_fault(ad_fault *fault, const char *what, uint64_t size) {
    int code = errno == ENOMEM || errno == ENOSPC || errno == EFBIG ? AD_E_MEMORY : AD_E_SYSTEM;
    return ad__fault(fault, code, "a slab of %llu bytes: %s: %s", (unsigned long long)size, what, strerror(errno));
}

int round_up(uint64_t size, uint64_t *rounded, ad_fault *fault) {
    uint64_t page = uint64_t(sysconf(_SC_PAGESIZE));
    if (size == 0) size = 1;
    if (size > uint64_t(INT64_MAX) / 2 - page)
        return ad__fault(fault, AD_E_MEMORY, "a slab of %llu bytes is larger than any memory",
                         (unsigned long long)size);
    *rounded = (size + page - 1) / page * page;
    return 0;
}

int map(int fd, uint64_t size, ad_slab_map *out, ad_fault *fault) {
    void *base = reserve(mapped(size));
    if (base == MAP_FAILED) return system_fault(fault, "mmap", size);
    if (mmap(base, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
        int status = system_fault(fault, "mmap", size);
        munmap(base, mapped(size));
        return status;
    }
    if (size >= HUGE_PAGE) madvise(base, size, MADV_HUGEPAGE); /* not every kernel does as asked */
    AD_REDZONE_CLOSE(static_cast<char *>(base) + size, red(size));
    out->base = base;
    out->size = size;
    out->fd = fd;
    return 0;
}

} // namespace

int ad_cpu_slab_create(ad_device *device, uint64_t size, ad_slab_map *out, ad_fault *fault) {
    uint64_t rounded = 0;
    int fd, status = ad_faults_check(&device->faults, AD_SITE_slab_create, fault);
    if (status || (status = round_up(size, &rounded, fault))) return status;
    if ((fd = memfd_create("arrayd-slab", MFD_CLOEXEC | MFD_ALLOW_SEALING)) < 0)
        return system_fault(fault, "memfd_create", rounded);
    if (ftruncate(fd, off_t(rounded)) != 0) {
        status = system_fault(fault, "ftruncate", rounded);
        goto close_fd;
    }
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        status = system_fault(fault, "sealing", rounded);
        goto close_fd;
    }
    if ((status = map(fd, rounded, out, fault))) goto close_fd;
    return 0;

close_fd:
    close(fd);
    return status;
}

int ad_cpu_slab_attach(ad_device *device, int fd, uint64_t size, ad_slab_map *out, ad_fault *fault) {
    uint64_t rounded = 0;
    int own, status = ad_faults_check(&device->faults, AD_SITE_slab_attach, fault);
    if (status || (status = round_up(size, &rounded, fault))) return status;
    if ((status = ad__memfd_check("memory", fd, rounded, fault))) return status;
    if ((own = fcntl(fd, F_DUPFD_CLOEXEC, 0)) < 0) return system_fault(fault, "dup", rounded);
    if ((status = map(own, rounded, out, fault))) close(own);
    return status;
}

void ad_cpu_slab_close(ad_device *, ad_slab_map *slab) {
    if (slab->base) {
        AD_REDZONE_OPEN(static_cast<char *>(slab->base) + slab->size, red(slab->size));
        munmap(slab->base, mapped(slab->size));
    }
    if (slab->fd >= 0) close(slab->fd);
    slab->base = nullptr;
    slab->size = 0;
    slab->fd = -1;
}

int ad_cpu_slab_create_plain(ad_device *, uint64_t, ad_slab_map *, ad_fault *fault) {
    return ad__fault(fault, AD_E_UNSUPPORTED, "memory of the host has no handle of CUDA's");
}

int ad_cpu_slab_handle(ad_device *, const ad_slab_map *, uint8_t *, ad_fault *fault) {
    return ad__fault(fault, AD_E_UNSUPPORTED, "memory of the host has no handle of CUDA's");
}

int ad_cpu_slab_import(ad_device *, const uint8_t *, ad_slab_map *, ad_fault *fault) {
    return ad__fault(fault, AD_E_UNSUPPORTED, "memory of the host has no handle of CUDA's");
}
