/* The backend's table: device, slabs, copies, and failures on demand. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels_call.h"
#include "protocol/rows_call.h"

Test(kernels_backend, table_and_device) {
    host h(2);
    ad_device_info info;
    int count = 0;
    cr_assert_eq(h.backend->version, AD_BACKEND_VERSION);
    cr_assert_str_eq(h.backend->name, "cpu");
    cr_assert_eq(h.backend->devices(&count, &h.fault), 0);
    cr_assert_eq(count, 1);
    h.backend->device_info(h.device, &info);
    cr_assert_gt(info.memory, 1u << 20);
    cr_assert_leq(info.memory, uint64_t(sysconf(_SC_PHYS_PAGES)) * uint64_t(sysconf(_SC_PAGESIZE)));
    cr_assert_gt(strlen(info.name), 0u);
    ad_device *none = nullptr;
    cr_assert_eq(h.backend->device_open(-1, 1, nullptr, &none, &h.fault), AD_E_VALUE);
    cr_assert_null(none);
}

Test(kernels_backend, slab_is_shared_and_sealed) {
    host h(1);
    ad_slab_map a = {}, b = {};
    cr_assert_eq(h.backend->slab_create(h.device, 100000, &a, &h.fault), 0, "%s", h.fault.text);
    cr_assert_geq(a.size, 100000u);
    for (uint64_t i = 0; i < a.size; i++) cr_assert_eq(static_cast<char *>(a.base)[i], 0);
    cr_assert_eq(h.backend->slab_attach(h.device, a.fd, a.size, &b, &h.fault), 0, "%s", h.fault.text);
    cr_assert_neq(a.fd, b.fd);
    cr_assert_neq(a.base, b.base);
    static_cast<char *>(a.base)[99999] = 42;
    cr_assert_eq(static_cast<char *>(b.base)[99999], 42);
    cr_assert_neq(ftruncate(a.fd, 10), 0);
    cr_assert_neq(ftruncate(a.fd, 1000000), 0);
    cr_assert_eq(fcntl(b.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    int fd = a.fd;
    h.backend->slab_close(h.device, &a);
    cr_assert_eq(fcntl(fd, F_GETFD), -1);
    cr_assert_eq(static_cast<char *>(b.base)[99999], 42);
    h.backend->slab_close(h.device, &b);
}

constexpr size_t FREE = size_t(64) << 30, LEAST = 8u << 20;

/* Take all holes of the address space that a slab may lie in, so that the next mappings lie one below the other. The
 * kernel takes the highest addresses that fit. So no hole is left when a mapping lies below a very large one. */
static std::vector<void *> plug_holes() {
    std::vector<void *> plugs;
    auto take = [](size_t size) {
        void *p = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        cr_assert_neq(p, MAP_FAILED);
        return p;
    };
    void *below = take(FREE);
    do plugs.push_back(take(LEAST));
    while (plugs.back() > below);
    munmap(below, FREE);
    return plugs;
}

/* Eight arrays of one size that is a power of two: large pages can be used, and no two share AMD's prediction of ways.
 */
Test(kernels_backend, slabs_lie_apart) {
    host h(1);
    const std::vector<void *> plugs = plug_holes();
    for (uint64_t size = 2u << 20; size <= 512u << 20; size *= 2) {
        ad_slab_map slab[8] = {};
        for (ad_slab_map &s : slab) {
            cr_assert_eq(h.backend->slab_create(h.device, size, &s, &h.fault), 0, "%s", h.fault.text);
            cr_assert_eq(uintptr_t(s.base) % (2u << 20), 0u);
            for (const ad_slab_map *t = slab; t != &s; t++)
                cr_assert_neq((uintptr_t(s.base) - uintptr_t(t->base)) % (1u << 28), 0u, "%llu bytes",
                              (unsigned long long)size);
        }
        for (ad_slab_map &s : slab) h.backend->slab_close(h.device, &s);
    }
    for (void *p : plugs) munmap(p, LEAST);
}

Test(kernels_backend, attach_refuses_what_is_no_slab) {
    host h(1);
    ad_slab_map a = {}, b = {};
    int plain = memfd_create("plain", MFD_CLOEXEC);
    cr_assert_eq(ftruncate(plain, 8192), 0);
    cr_assert_eq(h.backend->slab_attach(h.device, plain, 8192, &b, &h.fault), AD_E_VALUE);
    close(plain);
    cr_assert_lt(h.backend->slab_attach(h.device, -1, 4096, &b, &h.fault), 0);
    cr_assert_eq(h.backend->slab_create(h.device, 4096, &a, &h.fault), 0);
    cr_assert_eq(h.backend->slab_attach(h.device, a.fd, 1 << 20, &b, &h.fault), AD_E_EXTENT);
    h.backend->slab_close(h.device, &a);
    cr_assert_eq(h.backend->slab_create(h.device, UINT64_MAX, &a, &h.fault), AD_E_MEMORY);
    cr_assert_eq(h.backend->slab_create(h.device, uint64_t(1) << 62, &a, &h.fault), AD_E_MEMORY);
}

Test(kernels_backend, copies) {
    host h;
    std::vector<char> from(3000001), to(3000001, 1), back(3000001);
    for (size_t i = 0; i < from.size(); i++) from[i] = char(i * 7 + i / 256);
    cr_assert_eq(h.backend->upload(h.stream, to.data(), from.data(), from.size(), &h.fault), 0);
    cr_assert_eq(h.backend->download(h.stream, back.data(), to.data(), to.size(), &h.fault), 0);
    cr_assert_eq(memcmp(from.data(), back.data(), from.size()), 0);
    cr_assert_eq(h.backend->zero(h.stream, to.data() + 1, to.size() - 2, &h.fault), 0);
    for (size_t i = 1; i + 1 < to.size(); i++) cr_assert_eq(to[i], 0);
    cr_assert_eq(to[0], from[0]);
    cr_assert_eq(to.back(), from.back());
    cr_assert_eq(h.backend->stream_wait(h.stream, &h.fault), 0);
    cr_assert_eq(h.backend->zero(h.stream, nullptr, 0, &h.fault), 0);
}

Test(kernels_backend, moves_and_pinned_memory) {
    host h;
    void *memory = nullptr;
    ASSERT_OK(h.backend->host_alloc(h.device, 0, &memory, &h.fault));
    h.backend->host_free(h.device, memory);
    ASSERT_OK(h.backend->host_alloc(h.device, 100000, &memory, &h.fault));
    cr_assert_eq(reinterpret_cast<uintptr_t>(memory) % 4096, 0u);
    std::vector<char> from(100000), to(100000);
    for (size_t i = 0; i < from.size(); i++) from[i] = char(i * 11 + i / 256);
    ASSERT_OK(h.backend->host_register(h.device, from.data(), from.size(), &h.fault));
    ASSERT_OK(h.backend->upload_pinned(h.stream, memory, from.data(), from.size(), &h.fault));
    ASSERT_OK(h.backend->move(h.stream, to.data(), memory, to.size(), &h.fault));
    ASSERT_OK(h.backend->move(h.stream, nullptr, nullptr, 0, &h.fault));
    cr_assert_eq(memcmp(from.data(), to.data(), from.size()), 0);
    h.backend->host_unregister(h.device, from.data());
    h.backend->host_free(h.device, memory);
}

Test(kernels_backend, events_are_reached_when_they_are_recorded) {
    host h(1);
    ad_event *a = nullptr, *b = nullptr, *never = nullptr;
    float ms = -1;
    for (ad_event **e : {&a, &b, &never}) ASSERT_OK(h.backend->event_open(h.device, true, e, &h.fault));
    cr_assert_eq(h.backend->event_done(never, &h.fault), 1);
    ASSERT_OK(h.backend->event_record(a, h.stream, &h.fault));
    ASSERT_OK(h.backend->event_record(b, h.stream, &h.fault));
    cr_assert_eq(h.backend->event_done(b, &h.fault), 1);
    ASSERT_OK(h.backend->stream_follow(h.stream, b, &h.fault));
    ASSERT_OK(h.backend->event_elapsed(a, b, &ms, &h.fault));
    cr_assert_geq(ms, 0);
    cr_assert_lt(ms, 60000);
    cr_assert_eq(h.backend->event_elapsed(a, never, &ms, &h.fault), AD_E_VALUE);
    for (ad_event *e : {a, b, never}) h.backend->event_close(e);
}

Test(kernels_backend, checks_are_zero) {
    host h(1);
    ad_check *checks = nullptr;
    cr_assert(!h.backend->asynchronous);
    ASSERT_OK(h.backend->check_open(h.device, 100, &checks, &h.fault));
    for (int i = 0; i < 100; i++) {
        cr_assert_eq(checks[i].code, 0);
        ASSERT_OK(h.backend->check_fault(&checks[i], &h.fault));
    }
    h.backend->check_close(h.device, checks);
}

Test(kernels_backend, failures_on_demand) {
    setenv("ARRAYD_FAULT", "slab_create:2,run:3,zero:1:memory", 1);
    host h(1);
    ad_slab_map a = {}, b = {};
    nd<int32_t> out({3});
    char byte = 1;
    cr_assert_eq(h.backend->slab_create(h.device, 4096, &a, &h.fault), 0);
    cr_assert_eq(h.backend->slab_create(h.device, 4096, &b, &h.fault), AD_E_MEMORY);
    cr_assert_eq(h.backend->slab_create(h.device, 4096, &b, &h.fault), 0);
    h.backend->slab_close(h.device, &a);
    h.backend->slab_close(h.device, &b);
    for (int i = 1; i <= 4; i++) {
        int rc = h.call(AD_CALL_iota, AD_INT32, {out}, {}, {integer(i), integer(1)});
        cr_assert_eq(rc, i == 3 ? AD_E_DEVICE : 0);
        cr_assert_eq(out[0], i == 3 ? 2 : i);
        cr_assert_eq(h.run.wrote, i != 3);
    }
    cr_assert_eq(h.backend->zero(h.stream, &byte, 1, &h.fault), AD_E_MEMORY);
    cr_assert_eq(byte, 1);
    cr_assert_eq(h.backend->zero(h.stream, &byte, 1, &h.fault), 0);
}

Test(kernels_backend, a_lost_device_stays_lost) {
    setenv("ARRAYD_FAULT", "run:2:lost", 1);
    host h(1);
    nd<int32_t> out({3});
    ad_slab_map a = {};
    cr_assert_eq(h.call(AD_CALL_iota, AD_INT32, {out}, {}, {integer(1), integer(1)}), 0);
    for (int i = 0; i < 2; i++)
        cr_assert_eq(h.call(AD_CALL_iota, AD_INT32, {out}, {}, {integer(1), integer(1)}), AD_E_DEVICE_LOST);
    cr_assert_eq(h.backend->slab_create(h.device, 4096, &a, &h.fault), AD_E_DEVICE_LOST);
    cr_assert_eq(h.backend->stream_wait(h.stream, &h.fault), AD_E_DEVICE_LOST);
}

/* Where no kernel can go wild the device is lost all the same. */
Test(kernels_backend, wild) {
    setenv("ARRAYD_FAULT", "wild:2", 1);
    host h(1);
    nd<int32_t> out({3});
    cr_assert_eq(h.call(AD_CALL_iota, AD_INT32, {out}, {}, {integer(1), integer(1)}), 0);
    for (int i = 0; i < 2; i++)
        cr_assert_eq(h.call(AD_CALL_iota, AD_INT32, {out}, {}, {integer(1), integer(1)}), AD_E_DEVICE_LOST);
}

Test(kernels_backend, unreadable_faults_are_refused) {
    const ad_backend *backend = ad_backend_get();
    for (const char *text :
         {"run", "run:", "run:0", "run:x", "run:1:", "run:1:often", "walk:1", ":1", "run:1;zero:1"}) {
        ad_device *device = nullptr;
        ad_fault fault = {};
        setenv("ARRAYD_FAULT", text, 1);
        cr_assert_eq(backend->device_open(0, 1, nullptr, &device, &fault), AD_E_VALUE, "%s", text);
        cr_assert_null(device);
    }
}

/* Every allocation of every call fails once: it says so, and has changed nothing that it does not own up to. */
Test(kernels_backend, memory_runs_out) {
    host h(2);
    nd<int16_t> x({40, 30}), values({400}); /* cases hold views of these */
    nd<ad::bool8> mask({40, 30});
    nd<int64_t> index({40});
    for (int64_t i = 0; i < x.size(); i++) x[i] = int16_t(i * 37 % 101), mask[i].bits = i % 3 == 0;
    struct {
        int row, loop;
        std::vector<arg> in;
        dims shape;
        std::vector<ad_scalar> parameters;
    } cases[] = {
        {AD_CALL_iota, AD_INT16, {}, {40}, {integer(1), integer(2)}},
        {AD_CALL_gather, AD_INT64, {x, index}, {40, 30}, {}},
        {AD_CALL_sort, AD_INT16, {x}, {40, 30}, {integer(0)}},
        {AD_CALL_argsort, AD_INT32, {x}, {40, 30}, {integer(0)}},
        {AD_CALL_partition, AD_INT16, {x}, {40, 30}, {integer(0), integer(7)}},
        {AD_CALL_argpartition, AD_INT32, {x}, {40, 30}, {integer(1), integer(7)}},
        {AD_CALL_cumsum, AD_INT64, {x}, {40, 30}, {integer(0)}},
        {AD_CALL_searchsorted, AD_INT64, {index.reversed(0), x}, {40, 30}, {boolean(true)}},
        {AD_CALL_matmul, AD_FLOAT32, {x, x.swapped(0, 1)}, {40, 40}, {boolean(false)}},
        {AD_CALL_nonzero, AD_INT16, {x}, {}, {}},
        {AD_CALL_compress, AD_INT32, {x, mask.reversed(1)}, {}, {}},
        {AD_CALL_scatter, AD_FLOAT32, {x, index}, {40, 30}, {integer(0)}},
        {AD_CALL_place, AD_FLOAT32, {mask.reversed(0), values}, {40, 30}, {}},
    };
    for (const auto &c : cases) {
        int allowed = 0, rc;
        do {
            nd<float> out(c.shape);
            for (int64_t i = 0; i < out.size(); i++) out[i] = 7.5f;
            h.run.allowed = allowed;
            rc = h.call(c.row, c.loop, {c.shape.empty() ? arg::sized(AD_FLOAT32) : arg(out)}, c.in, c.parameters);
            cr_assert(rc == 0 || rc == AD_E_MEMORY, "row %d: %s", c.row, h.fault.text);
            for (int64_t i = 0; rc != 0 && !h.run.wrote && i < out.size(); i++) cr_assert_eq(out[i], 7.5f);
            cr_assert_lt(++allowed, 12);
        } while (rc != 0);
        cr_assert_gt(allowed, 1, "row %d needs no memory", c.row);
    }
}
