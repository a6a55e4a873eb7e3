#include "kernels/cuda/reduce/plan.h"

#include <stdlib.h>
#include <time.h>

#include <algorithm>
#include <atomic>

namespace {

constexpr int64_t ALONE = 4;   /* neighbouring elements, or chunks, that a thread takes by itself */
constexpr int64_t DEPTH = 8;   /* elements, or chunks, that make another thread worth while */
constexpr int64_t SIDE_X = 64; /* threads side by side in a block for neighbouring outputs */
constexpr int64_t SHORT = 64;  /* bytes of a row that is short */
constexpr int64_t BLOCKS = 32; /* blocks of a kernel for each multiprocessor */
constexpr int64_t MERGED = 64; /* states of other blocks for each thread of the last block */

/* A device does not interrupt a block: who else uses it waits for the end of one. Views of few elements in memory have
 * any number of them, and then there are more blocks than the device needs. */
constexpr int64_t LONGEST = 1 << 22;     /* elements of a block, some 2 ms */
constexpr int64_t MOST_BLOCKS = 1 << 20; /* for that, as each leaves a state */

struct dims {
    ad_fold_axis axis[AD_MAX_NDIM];
    int n = 0;
    int64_t in = 0, mask = 0, out = 0; /* where the walk begins */

    void add(int64_t size, int64_t in_step, int64_t mask_step, int64_t out_step) {
        if (size != 1) axis[n++] = {size, in_step, mask_step, out_step, {0, 0}};
    }
    void turn_round() {
        for (int i = 0; i < n; i++) {
            ad_fold_axis &a = axis[i];
            if (a.in >= 0) continue;
            in += (a.size - 1) * a.in, mask += (a.size - 1) * a.mask, out += (a.size - 1) * a.out;
            a.in = -a.in, a.mask = -a.mask, a.out = -a.out;
        }
    }
    /* Outermost first; what is repeated is outside. */
    void sort() {
        std::stable_sort(axis, axis + n, [](const ad_fold_axis &a, const ad_fold_axis &b) {
            if ((a.in == 0) != (b.in == 0)) return a.in == 0;
            return a.in > b.in;
        });
    }
    void join() {
        int last = 0;
        for (int i = 1; i < n; i++) {
            ad_fold_axis &a = axis[last];
            const ad_fold_axis &b = axis[i];
            if (a.in == b.in * b.size && a.mask == b.mask * b.size && a.out == b.out * b.size) {
                const int64_t size = a.size * b.size;
                a = b;
                a.size = size;
            } else {
                axis[++last] = b;
            }
        }
        if (n > 0) n = last + 1;
    }
    int64_t count() const {
        int64_t r = 1;
        for (int i = 0; i < n; i++) r *= axis[i].size;
        return r;
    }
};

int log2_up(int64_t n) {
    int r = 0;
    while (int64_t(1) << r < n) r++;
    return r;
}

ad_fold_divisor divisor_of(int64_t n) {
    if (n < 1) return {0, 0};
    const int log = log2_up(n);
    const unsigned __int128 power = static_cast<unsigned __int128>(1) << (63 + log);
    return {uint64_t((power + static_cast<unsigned __int128>(n - 1)) / static_cast<unsigned __int128>(n)),
            uint32_t(log)};
}

/* Innermost first. */
bool put(const dims *d, ad_fold_axis *to, uint8_t *n) {
    if (d->n > AD_FOLD_DIMS) return false;
    *n = uint8_t(d->n);
    for (int i = 0; i < d->n; i++) {
        to[i] = d->axis[d->n - 1 - i];
        to[i].by = divisor_of(to[i].size);
    }
    return true;
}

/* Tell whether all places where reading begins are multiples of `of`, but for what the first `keep` and `over` axes add
 * to them. */
bool all_multiples(const ad_fold *f, int keep, int over, int64_t of) {
    if (int64_t(reinterpret_cast<uintptr_t>(f->in)) % of != 0) return false;
    for (int i = keep; i < f->nkeep; i++)
        if (f->keep[i].in % of != 0) return false;
    for (int i = over; i < f->nover; i++)
        if (f->over[i].in % of != 0) return false;
    return true;
}

/* Tell whether the mask of each run of over[0] begins at a multiple of `of`. */
bool masks_are_multiples(const ad_fold *f, int64_t of) {
    if (int64_t(reinterpret_cast<uintptr_t>(f->mask)) % of != 0) return false;
    for (int i = 0; i < f->nkeep; i++)
        if (f->keep[i].mask % of != 0) return false;
    for (int i = 1; i < f->nover; i++)
        if (f->over[i].mask % of != 0) return false;
    return true;
}

/* 16 bytes along the innermost reduced axis. */
bool plan_wide(ad_fold *f, int64_t itemsize) {
    const int64_t width = 16 / itemsize, run = f->nover > 0 ? f->over[0].size : 0;
    if (run < width || f->over[0].in != itemsize || !all_multiples(f, 0, 1, itemsize)) return false;
    const bool aligned = run % width == 0 && all_multiples(f, 0, 1, 16);
    if (!aligned && run < 4 * width) return false;
    f->run_chunks = aligned ? run / width : (run - (width - 1)) / width;
    f->run_loose = run - f->run_chunks * width;
    f->chunks = f->reduced / run * f->run_chunks;
    f->loose = f->reduced / run * f->run_loose;
    f->by_chunks = divisor_of(f->run_chunks);
    f->by_loose = divisor_of(f->run_loose);
    return true;
}

/* 8 bytes along the innermost kept axis. */
bool plan_side(ad_fold *f, int64_t itemsize) {
    const int64_t width = 8 / itemsize;
    if (f->nkeep == 0 || f->keep[0].in != itemsize || f->keep[0].size % width != 0 || !all_multiples(f, 1, 0, 8))
        return false;
    f->side = f->keep[0].out;
    f->outputs /= width;
    ad_fold_shrink(&f->keep[0], width);
    return true;
}

/* Rows of a few elements, one behind the other. */
bool plan_short(ad_fold *f, int64_t itemsize) {
    if (f->reduced < 2 || f->reduced * itemsize > SHORT || f->nover != 1 || f->nkeep != 1 ||
        f->over[0].in != itemsize || f->keep[0].in != f->reduced * itemsize || !all_multiples(f, 1, 1, 16))
        return false;
    f->shared = uint32_t(AD_FOLD_THREADS * (f->reduced | 1) * itemsize);
    return true;
}

/* Threads lie along what is contiguous: the reduced elements (rows), or the outputs. */
bool is_by_rows(const ad_fold *f) {
    return f->nkeep == 0 || (f->nover > 0 && f->over[0].in != 0 && llabs(f->over[0].in) <= llabs(f->keep[0].in));
}

/* Plan how the states of a block come together: fold.cuh. */
void plan_joins(ad_fold *f) {
    const int x = 1 << f->log_x, y = 1 << f->log_y;
    f->shuffle_low = 1;
    f->joins = 1;
    if (f->flags & AD_FOLD_YFAST) {
        f->shuffle_high = uint8_t(std::min(y, 32) / 2);
        if (y > 32) f->joins = uint8_t(y / 32), f->join_step = 32;
    } else if (x < 32) {
        f->shuffle_high = 16, f->shuffle_low = uint8_t(x);
        f->joins = AD_FOLD_THREADS / 32, f->join_step = 32;
    } else if (y > 1) {
        f->joins = uint8_t(y), f->join_step = uint8_t(x);
    }
}

} // namespace

bool ad_fold_dimensions(ad_fold *f, const ad_fold_arrays *a, bool ordered) {
    dims keep, over;
    const bool masked = a->mask.data != nullptr;
    for (int i = 0, o = 0; i < a->x.ndim; i++) {
        const int64_t mask = masked ? a->mask.stride[i] : 0;
        if (a->axes >> i & 1) over.add(a->x.shape[i], a->x.stride[i], mask, 0);
        else keep.add(a->x.shape[i], a->x.stride[i], mask, a->out.stride[o]), o++;
    }
    f->outputs = keep.count();
    f->reduced = over.count();
    if (f->reduced == 0) over.n = 0;
    keep.turn_round();
    keep.sort();
    keep.join();
    if (!ordered) {
        over.turn_round();
        over.sort();
    }
    over.join();
    f->in = a->x.data + keep.in + over.in;
    f->mask = masked ? a->mask.data + keep.mask + over.mask : nullptr;
    f->out = a->out.data + keep.out;
    return put(&keep, f->keep, &f->nkeep) && put(&over, f->over, &f->nover);
}

int ad_fold_way(ad_fold *f, unsigned has, int64_t itemsize) {
    const bool rows = is_by_rows(f);
    if (rows) f->flags |= AD_FOLD_YFAST;
    if (rows && has >> AD_FOLD_SHORT & 1 && plan_short(f, itemsize)) return AD_FOLD_SHORT;
    const int whole = f->mask ? AD_FOLD_MASKED : AD_FOLD_WIDE;
    if (rows && has >> whole & 1 && plan_wide(f, itemsize)) return whole;
    if (!rows && has >> AD_FOLD_SIDE & 1 && plan_side(f, itemsize)) return AD_FOLD_SIDE;
    return AD_FOLD_UNIT;
}

bool ad_fold_masks(const ad_fold *f, int64_t itemsize) {
    ad_fold wide = *f;
    return ad_fold_way(&wide, 1u << AD_FOLD_MASKED, itemsize) == AD_FOLD_MASKED && f->over[0].mask == 1 &&
           all_multiples(f, 0, 1, 16) && masks_are_multiples(f, 16 / itemsize);
}

void ad_fold_divide(ad_fold *f, int way, int multiprocessors) {
    const int threads = log2_up(AD_FOLD_THREADS), warp = 5;
    if (way == AD_FOLD_SHORT) {
        f->log_x = uint8_t(threads);
        f->blocks = 1;
        return;
    }
    const int64_t work = way == AD_FOLD_WIDE || way == AD_FOLD_MASKED ? f->chunks : f->reduced;
    const int many = log2_up(work / DEPTH);
    if (f->flags & AD_FOLD_YFAST) {
        const int few = log2_up((work + ALONE - 1) / ALONE);
        f->log_y = uint8_t(std::min(threads, std::max(std::min(few, warp), many)));
    } else {
        f->log_y = uint8_t(std::min(threads - log2_up(std::min(f->keep[0].size, SIDE_X)), many));
    }
    f->log_x = uint8_t(threads - f->log_y);
    plan_joins(f);
    const int64_t groups = (f->outputs + (int64_t(1) << f->log_x) - 1) >> f->log_x;
    const int64_t wanted = std::min(multiprocessors * BLOCKS / groups, MERGED << f->log_y);
    const int64_t useful = work / DEPTH >> f->log_y;
    const int64_t short_enough = std::min(work / std::max<int64_t>(1, LONGEST >> f->log_x), MOST_BLOCKS / groups);
    f->blocks = uint32_t(std::max<int64_t>({1, std::min(wanted, useful), short_enough}));
}

bool ad_fold_axes(const ad::walk<2> *from, ad_fold_axis *to, uint8_t *n) {
    dims d;
    for (int i = 0; i < from->ndim; i++) d.add(from->shape[i], from->stride[i][0], 0, from->stride[i][1]);
    return put(&d, to, n);
}

void ad_fold_shrink(ad_fold_axis *a, int64_t by) {
    *a = {a->size / by, a->in * by, a->mask * by, a->out * by, divisor_of(a->size / by)};
}

uint64_t ad_fold_tag(void) {
    static std::atomic<uint64_t> last{0};
    uint64_t old = last.load(std::memory_order_relaxed);
    if (old == 0) {
        timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        uint64_t first = uint64_t(now.tv_sec) * 1000000000u + uint64_t(now.tv_nsec);
        last.compare_exchange_strong(old, first, std::memory_order_relaxed);
    }
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
}
