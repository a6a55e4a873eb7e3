/* Ufuncs with a mask. Where the mask is true for long they run as without one. Elsewhere the places where it is true
 * are listed, and their elements gathered, computed and spread: nobody can predict what a random mask picks. */
#include <string.h>

#include "kernels/cpu/ufunc/plan.h"

namespace {

using plan = ad_ufunc_plan;

constexpr int64_t GROUP = 64; /* elements: true throughout, they belong to a run; else each true one is listed */
constexpr int OPERANDS = AD_LOOP_OPERANDS - 1; /* all but the mask */

template <class W> void pick(void *to, const char *from, int64_t stride, const uint16_t *list, int64_t n) {
    for (int64_t i = 0; i < n; i++) memcpy(static_cast<W *>(to) + i, from + list[i] * stride, sizeof(W));
}
template <class W> void put(char *to, int64_t stride, const void *from, const uint16_t *list, int64_t n) {
    for (int64_t i = 0; i < n; i++) memcpy(to + list[i] * stride, static_cast<const W *>(from) + i, sizeof(W));
}

struct sixteen {
    uint64_t part[2];
};

/* Elements of `size` bytes from listed places of an array, and to them. */
void pick_sized(int size, void *to, const char *from, int64_t stride, const uint16_t *list, int64_t n) {
    switch (size) {
    case 1: return pick<uint8_t>(to, from, stride, list, n);
    case 2: return pick<uint16_t>(to, from, stride, list, n);
    case 4: return pick<uint32_t>(to, from, stride, list, n);
    case 8: return pick<uint64_t>(to, from, stride, list, n);
    default: return pick<sixteen>(to, from, stride, list, n);
    }
}
void put_sized(int size, char *to, int64_t stride, const void *from, const uint16_t *list, int64_t n) {
    switch (size) {
    case 1: return put<uint8_t>(to, stride, from, list, n);
    case 2: return put<uint16_t>(to, stride, from, list, n);
    case 4: return put<uint32_t>(to, stride, from, list, n);
    case 8: return put<uint64_t>(to, stride, from, list, n);
    default: return put<sixteen>(to, stride, from, list, n);
    }
}

/* The listed places, counted from ptr on. */
void run_listed(const plan *p, char *const *ptr, const uint16_t *list, int64_t n) {
    alignas(64) char block[OPERANDS][AD_BLOCK_BYTES], raw[AD_BLOCK_BYTES];
    const int last = p->loop.ndim - 1;
    void *q[OPERANDS];
    for (int k = 0; k < p->nop; k++) {
        const bool one = p->kernel && k >= p->nout && (p->scalars >> (k - p->nout) & 1), cast = k && p->converts[k];
        q[k] = one ? ptr[k] : block[k];
        if (k < p->nout || one) continue;
        pick_sized(p->raw[k], cast ? raw : block[k], ptr[k], p->loop.stride[k][last], list, n);
        if (cast) ad_cpu_cast_run(&p->cast[k], block[k], p->size[k], raw, p->raw[k], n);
    }
    if (p->kernel) p->kernel(q, p->scalars, n);
    else q[0] = q[1];
    for (int k = 0; k < p->nout; k++) {
        const bool cast = p->converts[k];
        if (cast) ad_cpu_cast_run(&p->cast[k], raw, p->raw[k], q[k], p->size[k], n);
        put_sized(p->raw[k], ptr[k], p->loop.stride[k][last], cast ? raw : q[k], list, n);
    }
}

void run_stretch(const plan *p, char *const *ptr, int64_t begin, int64_t end) {
    char *q[OPERANDS];
    if (begin == end) return;
    for (int k = 0; k < p->nop; k++) q[k] = ptr[k] + begin * p->loop.stride[k][p->loop.ndim - 1];
    ad_ufunc_run_span(p, q, end - begin);
}

int64_t count_true(const uint8_t *m, int64_t n) {
    uint8_t trues = 0;
    if (n == GROUP)
        for (int64_t i = 0; i < GROUP; i++) trues = uint8_t(trues + (m[i] != 0));
    else
        for (int64_t i = 0; i < n; i++) trues = uint8_t(trues + (m[i] != 0));
    return trues;
}

/* Places of the true ones of at most GROUP elements, counted from `start`; the new length of the list. */
int64_t list_true(const uint8_t *m, int64_t n, int64_t start, uint16_t *list, int64_t length) {
    for (int64_t i = 0; i < n; i += 8) {
        uint64_t eight = 1;
        if (n - i >= 8) memcpy(&eight, m + i, 8);
        if (eight == 0) continue;
        for (int64_t j = i; j < n && j < i + 8; j++) {
            list[length] = uint16_t(start + j);
            length += m[j] != 0;
        }
    }
    return length;
}

/* Elements of a block: groups that are true throughout become stretches, the others are listed. */
void run_block(const plan *p, char *const *ptr, const uint8_t *mask, int64_t n) {
    uint16_t list[AD_BLOCK_BYTES];
    int64_t length = 0, begin = 0, end = 0;
    for (int64_t i = 0; i < n; i += GROUP) {
        const int64_t m = n - i < GROUP ? n - i : GROUP, trues = count_true(mask + i, m);
        if (trues == m) {
            if (end != i) run_stretch(p, ptr, begin, end), begin = i;
            end = i + m;
        } else if (trues > 0) length = list_true(mask + i, m, i, list, length);
    }
    run_stretch(p, ptr, begin, end);
    if (length > 0) run_listed(p, ptr, list, length);
}

} // namespace

void ad_ufunc_run_masked(const plan *p, char *const *ptr, int64_t n) {
    alignas(64) char bits[AD_BLOCK_BYTES];
    const int last = p->loop.ndim - 1;
    const int64_t step = p->loop.stride[p->nop][last];
    char *q[AD_LOOP_OPERANDS];
    if (step == 0) return *ptr[p->nop] ? ad_ufunc_run_span(p, ptr, n) : void();
    for (int64_t i = 0; i < n; i += p->block) {
        const int64_t m = n - i < p->block ? n - i : p->block;
        for (int k = 0; k <= p->nop; k++) q[k] = ptr[k] + i * p->loop.stride[k][last];
        const char *mask = q[p->nop];
        if (step != 1) p->kernels->cast[AD_BOOL][AD_BOOL](bits, 1, mask, step, m), mask = bits;
        run_block(p, q, reinterpret_cast<const uint8_t *>(mask), m);
    }
}
