/* Kernels by signature: asked for, loaded when the compiler has them, thrown away when they are many. */
#include "kernels/cuda/fuse/cache.h"

#include <new>
#include <stdio.h>
#include <string.h>
#include <time.h>

namespace {

constexpr unsigned MOST = 1024, BUCKETS = 1024;
constexpr int64_t MS = 1000000;
constexpr int64_t SOON = 2 * MS, SELDOM = 16 * MS; /* between two questions to the compiler */
constexpr int64_t REFUSED = 10000 * MS;            /* until it is asked again when it could not be */
constexpr int64_t IN_USE = 10000 * MS;             /* so long a kernel may be under way after its launch */

enum state { ASKED, READY, FAILED };

struct entry {
    entry *next;
    uint64_t hash;
    int64_t used, again, pause; /* times: of the last use; to ask next; until the time after that */
    int state, size;
    int includes;
    cudaLibrary_t library;
    cudaKernel_t kernel;
    std::string source;
    uint8_t key[AD_FUSE_KEY];
};

/* Coarse: it is read for every chain. */
int64_t now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return t.tv_sec * 1000 * MS + t.tv_nsec;
}

uint64_t hash_of(const uint8_t *key, int size) {
    uint64_t h = uint64_t(size) * 0x9e3779b97f4a7c15u, word;
    for (; size >= 8; key += 8, size -= 8) {
        memcpy(&word, key, 8);
        h = (h ^ word) * 0xff51afd7ed558ccdu;
        h ^= h >> 32;
    }
    word = 0;
    memcpy(&word, key, size_t(size));
    h = (h ^ word) * 0xff51afd7ed558ccdu;
    return h ^ h >> 29;
}

} // namespace

struct ad_cuda_fuser {
    char arch[16];
    unsigned count;
    entry *bucket[BUCKETS];
};

namespace {

ad_cuda_fuser *fuser_of(ad_device *device) {
    if (!device->fuser) {
        device->fuser = new (std::nothrow) ad_cuda_fuser{};
        if (device->fuser)
            snprintf(device->fuser->arch, sizeof device->fuser->arch, "sm_%d%d", device->major, device->minor);
    }
    return device->fuser;
}

void drop(ad_cuda_fuser *f, entry **at) {
    entry *e = *at;
    *at = e->next;
    f->count--;
    if (e->library) cudaLibraryUnload(e->library);
    delete e;
}

/* Make room by the entry that was not used for longest. False: all may still be running. */
bool make_room(ad_cuda_fuser *f, int64_t time) {
    entry **oldest = nullptr;
    for (entry *&first : f->bucket)
        for (entry **at = &first; *at; at = &(*at)->next)
            if (((*at)->state != READY || time - (*at)->used > IN_USE) && (!oldest || (*at)->used < (*oldest)->used))
                oldest = at;
    if (oldest) drop(f, oldest);
    return oldest != nullptr;
}

entry *add(ad_cuda_fuser *f, uint64_t hash, const uint8_t *key, int size, int64_t time) {
    if (f->count >= MOST && !make_room(f, time)) return nullptr;
    entry *e = new entry;
    e->hash = hash;
    e->used = e->again = time;
    e->pause = SOON;
    e->state = ASKED;
    e->size = size;
    e->library = nullptr;
    e->kernel = nullptr;
    memcpy(e->key, key, size_t(size));
    e->next = f->bucket[hash % BUCKETS];
    f->bucket[hash % BUCKETS] = e;
    f->count++;
    return e;
}

/* A cubin that does not load is as good as none, but a device that is lost is. */
int load(entry *e, const ad_binary *binary, ad_fault *fault) {
    ad_fault why;
    int status =
        ad_cuda_status(cudaLibraryLoadData(&e->library, binary->data, nullptr, nullptr, 0, nullptr, nullptr, 0),
                       "loading the kernel of a chain", &why);
    if (!status)
        status = ad_cuda_status(cudaLibraryGetKernel(&e->kernel, e->library, AD_FUSE_KERNEL),
                                "finding the kernel of a chain", &why);
    if (!status) e->state = READY;
    if (status != AD_E_DEVICE_LOST) return 0;
    *fault = why;
    return status;
}

int ask(ad_device *device, entry *e, int64_t time, ad_fault *fault) {
    ad_compile_job job;
    const ad_binary *binary = nullptr;
    ad_fault why; /* nobody's concern: the chain is executed in another way */
    ad_fuse_job(e->source.data(), e->source.size(), device->fuser->arch, e->includes, &job);
    int result = device->compiler->get(device->compiler, &job, &binary, &why);
    if (result < 0) e->again = time + REFUSED;
    if (result == 0) {
        e->again = time + e->pause;
        e->pause = e->pause < SELDOM ? e->pause * 2 : SELDOM;
    }
    if (result <= 0) return 0;
    e->state = FAILED;
    result = binary->data ? load(e, binary, fault) : 0;
    device->compiler->release(device->compiler, binary);
    e->source.clear();
    e->source.shrink_to_fit();
    return result;
}

} // namespace

int ad_fuse_kernel(ad_device *device, const ad_chain *chain, const ad_fuse_form *form, cudaKernel_t *kernel,
                   ad_fault *fault) {
    uint8_t key[AD_FUSE_KEY];
    const int size = ad_fuse_signature(chain, form, key);
    ad_cuda_fuser *f = fuser_of(device);
    if (size == 0 || !f) return 0;
    const uint64_t hash = hash_of(key, size);
    const int64_t time = now();
    entry *e = f->bucket[hash % BUCKETS];
    while (e && (e->hash != hash || e->size != size || memcmp(e->key, key, size_t(size)) != 0)) e = e->next;
    if (!e) {
        if (!(e = add(f, hash, key, size, time))) return 0;
        e->includes = ad_fuse_includes(form);
        e->source = ad_fuse_source(chain, form);
    }
    e->used = time;
    if (e->state == ASKED && time >= e->again) {
        int status = ask(device, e, time, fault);
        if (status) return status;
    }
    *kernel = e->kernel;
    return e->state == READY;
}

void ad_cuda_fuser_close(ad_device *device) {
    ad_cuda_fuser *f = device->fuser;
    if (!f) return;
    for (entry *&first : f->bucket)
        while (first) drop(f, &first);
    delete f;
    device->fuser = nullptr;
}
