/* A backend for tests where there is no GPU: the cpu backend, which says that it is cuda. It gives and takes handles
 * that name a descriptor of a process instead of CUDA's. So a test can see under /proc what a handle stands for. Its
 * device is that of tests/build/fake_libcuda.c. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fault/copied_backend.h"

#define MOST 64

static const ad_backend *cpu;
static ad_backend table;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    void *base;
    int fd;
} plain[MOST];

static int create_slab(ad_device *device, uint64_t size, ad_slab_map *out, ad_fault *fault) {
    int i = 0, status = cpu->slab_create(device, size, out, fault);
    if (status) return status;
    pthread_mutex_lock(&lock);
    while (i < MOST - 1 && plain[i].base) i++;
    plain[i].base = out->base;
    plain[i].fd = out->fd;
    pthread_mutex_unlock(&lock);
    out->fd = -1;
    return 0;
}

static int find_slab(const ad_slab_map *slab) {
    int i = MOST - 1;
    while (i >= 0 && plain[i].base != slab->base) i--;
    return i;
}

static int make_handle(ad_device *device, const ad_slab_map *slab, uint8_t out[AD_SLAB_HANDLE], ad_fault *fault) {
    (void)device;
    if (getenv("AD_TEST_NO_HANDLES")) return ad__fault(fault, AD_E_DEVICE, "not today");
    pthread_mutex_lock(&lock);
    int i = find_slab(slab);
    uint64_t made[8] = {(uint64_t)getpid(), i < 0 ? 0 : (uint64_t)plain[i].fd, slab->size};
    pthread_mutex_unlock(&lock);
    memcpy(out, made, sizeof made);
    return i < 0 ? ad__fault(fault, AD_E_VALUE, "that slab has no handle") : 0;
}

static int open_handle(ad_device *device, const uint8_t handle[AD_SLAB_HANDLE], ad_slab_map *out, ad_fault *fault) {
    uint64_t made[8];
    char path[64];
    memcpy(made, handle, sizeof made);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)made[0], (int)made[1]);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return ad__fault(fault, AD_E_VALUE, "that is no handle");
    int status = cpu->slab_attach(device, fd, made[2], out, fault);
    close(fd);
    return status;
}

static int open_device(int index, int threads, ad_compiler *compiler, ad_device **out, ad_fault *fault) {
    if (getenv("AD_TEST_NO_DEVICE")) return ad__fault(fault, AD_E_DEVICE, "somebody else has it");
    return cpu->device_open(index, threads, compiler, out, fault);
}

static void describe_device(ad_device *device, ad_device_info *out) {
    cpu->device_info(device, out);
    strcpy(out->id, "GPU-01112131-4151-6171-8191-a1b1c1d1e1f1");
}

static void close_slab(ad_device *device, ad_slab_map *slab) {
    pthread_mutex_lock(&lock);
    int i = slab->base ? find_slab(slab) : -1;
    if (i >= 0) {
        close(plain[i].fd);
        plain[i].base = NULL;
    }
    pthread_mutex_unlock(&lock);
    cpu->slab_close(device, slab);
}

const ad_backend *ad_backend_get(void) {
    if (!(cpu = open_backend(CPU_BACKEND, &table))) return NULL;
    table.name = "cuda";
    table.slab_create_plain = create_slab;
    table.slab_handle = make_handle;
    table.slab_close = close_slab;
    table.slab_import = open_handle;
    table.device_open = open_device;
    table.device_info = describe_device;
    return &table;
}
