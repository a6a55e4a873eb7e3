/* Running sums and products. */
#include "kernels/cpu/call/scan.h"

#include <algorithm>

#include "kernels/cpu/fuse/chain.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/backend/parallel.h"
#include "kernels/math.h"
#include "kernels/math_complex.h"
#include "protocol/rows_call.h"
#include "protocol/rows_request.h"
#include "protocol/tables.h"

namespace {

using namespace ad;

constexpr uint32_t LOOPS = AD_M_WIDEINT | AD_M_FLOAT | AD_M_COMPLEX; /* as AD_RULE(SUM) has them */
constexpr int64_t BLOCK = 1024;                                      /* elements converted and scanned at a time */
constexpr int64_t TILE = 256;                                        /* neighbouring lanes scanned side by side */
constexpr int64_t LONG_LANE = 1 << 17;  /* elements from which a lane is divided among threads */
constexpr int64_t LANE_GRAIN = 1 << 15; /* elements */
constexpr int64_t WAVE = 128;           /* times four blocks of a long lane for each thread, that stay in the cache, */
constexpr int64_t LARGEST_WAVE = 2048;  /* of all threads */
constexpr int64_t LEAST_MADE = 512;     /* elements of a lane that are worth being made on their own */

template <class S, bool Product, bool SkipNan> struct scan_op {
    using type = S;
    using C = compute_t<S>;
    /* Changes no real number, not even -0.0. */
    static C neutral() {
        if constexpr (Product || is_int<C> || is_bool<C>) return C(Product);
        else return -C(0);
    }
    static C first(S v) {
        C x = C(v);
        return SkipNan && adm::isnan(x) ? C(Product) : x;
    }
    /* Rounded to the element's type each time, as one element after another is. */
    static C take(C a, S v) { return C(cast<S>(merge(a, first(v)))); }
    static C merge(C a, C b) { return Product ? C(adm::mul(a, b)) : C(adm::add(a, b)); }
    /* True if a lane may be scanned in pieces: the result must be that of one element after another but for rounding. A
     * product of floats may over- or underflow on the way, which pieces would not see. A sum of 16-bit floats rounds
     * too coarsely. */
    static constexpr bool in_pieces = (is_int<C> || !Product) && same<C, S>;
    static constexpr bool may_overflow = !is_int<C>;
};

/* A lane, or the lanes at one place of a walk. */
struct lane {
    char *to;
    const char *from;
    int64_t to_step, from_step, n;
    ad_cast_kernel cast;            /* from the input's type; NULL: it is the loop's */
    const ad_chain_program *values; /* makes the elements, one after another from `first` on; NULL: they are there */
    int64_t first;

    /* Get the lane without its elements before i. */
    lane from_element(int64_t i) const {
        lane l = *this;
        l.to += i * to_step;
        if (!values) l.from += i * from_step;
        l.first += i;
        l.n -= i;
        return l;
    }
};

/* The lane at a place of a walk: bytes from the arrays' first elements. */
lane lane_at(const lane *first, int64_t to, int64_t from, int64_t size) {
    lane l = *first;
    l.to += to;
    if (!l.values) l.from += from;
    l.first = from / size;
    return l;
}

/* Load n elements of the lane from i on, as contiguous elements of S. buffer: room for BLOCK. */
template <class S> const S *load_block(const lane *l, int64_t i, int64_t n, S *buffer) {
    if (l->values) {
        ad_cpu_chain_make(l->values, l->first + i, l->first + i + n, buffer);
        return buffer;
    }
    const char *from = l->from + i * l->from_step;
    if (!l->cast && l->from_step == int64_t(sizeof(S))) return reinterpret_cast<const S *>(from);
    if (l->cast) l->cast(buffer, sizeof(S), from, l->from_step, n);
    else
        for (int64_t j = 0; j < n; j++, from += l->from_step) buffer[j] = *reinterpret_cast<const S *>(from);
    return buffer;
}

/* Add up a block: eight sums side by side, which the processor can add at once. */
template <class Op> typename Op::C total_of(const typename Op::type *x) {
    typename Op::C part[8];
    for (auto &p : part) p = Op::neutral();
    for (int64_t i = 0; i < BLOCK; i += 8)
        for (int k = 0; k < 8; k++) part[k] = Op::take(part[k], x[i + k]);
    for (int k = 1; k < 8; k++) part[0] = Op::merge(part[0], part[k]);
    return part[0];
}

/* Elements begin..end of a lane; sum: what comes before. The first element of a lane is taken as it is. */
template <class Op> void scan_run(const lane *l, int64_t begin, int64_t end, typename Op::C sum) {
    using S = typename Op::type;
    S buffer[BLOCK];
    for (int64_t i = begin; i < end; i += BLOCK) {
        int64_t n = end - i < BLOCK ? end - i : BLOCK, j = 0;
        const S *x = load_block(l, i, n, buffer);
        char *to = l->to + i * l->to_step;
        if (i == 0) {
            sum = Op::first(x[j++]);
            *reinterpret_cast<S *>(to) = cast<S>(sum);
        }
        for (; j < n; j++) {
            sum = Op::take(sum, x[j]);
            *reinterpret_cast<S *>(to + j * l->to_step) = cast<S>(sum);
        }
    }
}

/* Four neighbouring blocks from their own beginnings at once: four chains of additions instead of one. */
template <class Op> void scan_four(const lane *l, int64_t begin, const typename Op::C *before, typename Op::C *after) {
    using S = typename Op::type;
    S buffer[4][BLOCK];
    const S *x[4];
    typename Op::C sum[4];
    char *to[4];
    const int64_t step = l->to_step;
    for (int k = 0; k < 4; k++) {
        x[k] = load_block(l, begin + k * BLOCK, BLOCK, buffer[k]);
        sum[k] = before[k];
        to[k] = l->to + (begin + k * BLOCK) * step;
    }
    for (int64_t j = 0; j < BLOCK; j++)
        for (int k = 0; k < 4; k++) {
            sum[k] = Op::take(sum[k], x[k][j]);
            *reinterpret_cast<S *>(to[k] + j * step) = cast<S>(sum[k]);
        }
    for (int k = 0; k < 4; k++) after[k] = sum[k];
}

template <class C> bool finite(C v) { return adm::isfinite(v); }

/* Memory for long lanes, one after another. It has what comes before each block of a wave and after it, and the block's
 * elements if they are made. */
template <class Op> struct wave {
    int64_t fours;
    typename Op::C *before, *after;
    typename Op::type *made;
};

template <class Op> int make_wave(ad_call *c, const lane *l, wave<Op> *w) {
    using C = typename Op::C;
    w->fours = l->n / BLOCK / 4;
    if (l->values) w->fours = std::min({w->fours, WAVE * ad_cpu_parallel_threads(), LARGEST_WAVE});
    w->before = static_cast<C *>(ad_call_workspace(c, uint64_t(8 * w->fours + 1) * sizeof(C)));
    w->after = w->before + 4 * w->fours + 1;
    w->made = nullptr;
    if (!w->before) return AD_E_MEMORY;
    if (!l->values) return 0;
    const uint64_t size = uint64_t(w->fours) * 4 * BLOCK * sizeof *w->made;
    w->made = static_cast<typename Op::type *>(ad_call_workspace(c, size));
    return !w->made ? AD_E_MEMORY : 0;
}

/* Block b of the wave that begins where the lane does. */
template <class Op>
const typename Op::type *load_of_wave(const lane *l, const wave<Op> *w, int64_t b, typename Op::type *buffer) {
    return load_block(l, b * BLOCK, BLOCK, w->made ? w->made + b * BLOCK : buffer);
}

/* Compute the blocks' totals, then what comes before each, then the blocks. The first and the last step are parallel.
 * sum: what comes before them all, and then what comes after. */
template <class Op> void scan_wave(const lane *l, const wave<Op> *w, int64_t fours, typename Op::C *sum) {
    using S = typename Op::type;
    ad_cpu_parallel(fours * 4, 16, [&](int64_t begin, int64_t end) {
        S buffer[BLOCK];
        for (int64_t b = begin; b < end; b++) w->before[b] = total_of<Op>(load_of_wave<Op>(l, w, b, buffer));
    });
    for (int64_t b = 0; b < fours * 4; b++) {
        const typename Op::C total = w->before[b];
        w->before[b] = *sum;
        *sum = Op::merge(*sum, total);
    }
    w->before[fours * 4] = *sum;
    lane there = *l;
    if (w->made) {
        there.from = reinterpret_cast<const char *>(w->made);
        there.from_step = sizeof(S);
        there.values = nullptr;
    }
    ad_cpu_parallel(fours, 4, [&](int64_t begin, int64_t end) {
        for (int64_t f = begin; f < end; f++) scan_four<Op>(&there, f * 4 * BLOCK, w->before + f * 4, w->after + f * 4);
    });
}

/* A long lane; where its elements are made, wave after wave, so that they are in the cache when they are read again.
 * Where a float overflowed on the way the rest is done again, one after another. */
template <class Op> void scan_long(const lane *l, const wave<Op> *w) {
    const int64_t fours = l->n / BLOCK / 4;
    typename Op::C sum = Op::neutral();
    for (int64_t f = 0; f < fours; f += w->fours) {
        const int64_t some = std::min(w->fours, fours - f), begin = f * 4 * BLOCK;
        const lane here = l->from_element(begin);
        scan_wave<Op>(&here, w, some, &sum);
        for (int64_t b = 0; b < some * 4 && Op::may_overflow; b++)
            if (!finite(w->after[b]) || !finite(w->before[b + 1]))
                return scan_run<Op>(l, begin + b * BLOCK, l->n, w->before[b]);
    }
    scan_run<Op>(l, fours * 4 * BLOCK, l->n, sum);
}

/* `lanes` lanes side by side, place_step apart: all their first elements, then all their second ones. */
template <class Op> void scan_tile(const lane *l, int64_t lanes, int64_t to_place_step, int64_t from_place_step) {
    using S = typename Op::type;
    typename Op::C sum[TILE];
    S buffer[TILE];
    for (int64_t i = 0; i < l->n; i++) {
        lane row = {nullptr, l->from + i * l->from_step, 0, from_place_step, lanes, l->cast, nullptr, 0};
        const S *x = load_block(&row, 0, lanes, buffer);
        char *to = l->to + i * l->to_step;
        for (int64_t j = 0; j < lanes; j++) {
            sum[j] = i == 0 ? Op::first(x[j]) : Op::take(sum[j], x[j]);
            *reinterpret_cast<S *>(to + j * to_place_step) = cast<S>(sum[j]);
        }
    }
}

/* Many lanes: lanes that lie closer together than their elements side by side, others one by one. */
template <class Op> void scan_lanes(const lane *first, const walk<2> *lanes) {
    const int64_t to_step = lanes->inner(0), from_step = lanes->inner(1);
    const bool across = llabs(to_step) < llabs(first->to_step) && lanes->length() >= 8;
    const int64_t n = first->n > 0 ? first->n : 1, grain = (LANE_GRAIN + n - 1) / n;
    ad_cpu_parallel(lanes->count, across && grain < 64 ? 64 : grain, [&](int64_t begin, int64_t end) {
        lanes->runs(begin, end, [&](const int64_t(&at)[2], int64_t length, int64_t) {
            for (int64_t j = 0, many; j < length; j += many) {
                many = !across ? 1 : length - j < TILE ? length - j : TILE;
                const lane l = lane_at(first, at[0] + j * to_step, at[1] + j * from_step, sizeof(typename Op::type));
                if (many == 1) scan_run<Op>(&l, 0, l.n, Op::neutral());
                else scan_tile<Op>(&l, many, to_step, from_step);
            }
            return true;
        });
    });
}

/* Tell whether lanes are divided among threads. Pieces are read twice, which more threads than two make up for, and
 * floats gain. */
template <class Op> bool is_divided(int64_t n, int64_t lanes) {
    const int threads = ad_cpu_parallel_threads();
    return Op::in_pieces && (Op::may_overflow || threads > 2) && n >= LONG_LANE && lanes < 2 * threads;
}

template <class Op> int scan(ad_call *c, const lane *first, const walk<2> *lanes) {
    wave<Op> w;
    if (!is_divided<Op>(first->n, lanes->count)) {
        scan_lanes<Op>(first, lanes);
        return 0;
    }
    if (make_wave<Op>(c, first, &w) < 0) return AD_E_MEMORY;
    lanes->runs(0, lanes->count, [&](const int64_t(&at)[2], int64_t n, int64_t) {
        for (int64_t j = 0; j < n; j++) {
            const lane l =
                lane_at(first, at[0] + j * lanes->inner(0), at[1] + j * lanes->inner(1), sizeof(typename Op::type));
            scan_long<Op>(&l, &w);
        }
        return true;
    });
    return 0;
}

/* Types that sums are made in. */
template <class S> constexpr bool is_loop = (LOOPS >> dtype_of<S>::value & 1) != 0;

/* Call f(op) for the operation's scan_op. False: it is no scan. */
template <bool Product, bool SkipNan, class F> bool with_loop(int loop, F f) {
    return visit(loop, [&](auto t) {
        using S = typename decltype(t)::type;
        if constexpr (is_loop<S>) f(scan_op<S, Product, SkipNan>{});
        return is_loop<S>;
    });
}
template <class F> bool with_scan(const ad_op *op, F f) {
    if (op->opcode != AD_REQ_CALL) return false;
    switch (op->row) {
    case AD_CALL_cumsum: return with_loop<false, false>(op->loop, f);
    case AD_CALL_cumprod: return with_loop<true, false>(op->loop, f);
    case AD_CALL_nancumsum: return with_loop<false, true>(op->loop, f);
    case AD_CALL_nancumprod: return with_loop<true, true>(op->loop, f);
    default: return false;
    }
}

/* The lanes of a scan as far as its shape tells. */
struct shape_of_scan {
    int64_t n, lanes, apart; /* elements from one of a lane to the next, where they lie in row-major order */
    bool divided;
};

/* False: it is no scan. */
bool look_at(const ad_op *op, shape_of_scan *s) {
    if (op->opcode != AD_REQ_CALL) return false;
    const ad_desc *d = &op->operand[0].desc;
    const int axis = int(op->param[0].as.i);
    s->n = d->shape[axis];
    s->lanes = s->apart = 1;
    for (int i = 0; i < d->ndim; i++) {
        if (i != axis) s->lanes *= d->shape[i];
        if (i > axis) s->apart *= d->shape[i];
    }
    return with_scan(op, [&](auto t) { s->divided = is_divided<decltype(t)>(s->n, s->lanes); });
}

} // namespace

bool ad_cpu_scan_takes(const ad_op *op) {
    shape_of_scan s;
    if (!look_at(op, &s) || s.apart != 1) return false;
    return s.divided || (s.n >= LEAST_MADE && s.lanes >= 2 * ad_cpu_parallel_threads());
}

/* Lanes that are divided may be read again after something has been written. */
bool ad_cpu_scan_stays(const ad_op *op) {
    shape_of_scan s;
    return look_at(op, &s) && !s.divided && op->operand[0].desc.dtype == op->loop &&
           op->operand[1].desc.dtype == op->loop;
}

int ad_cpu_scan(ad_call *c, const ad_chain_program *values) {
    array x, out;
    const ad_operand *source = &c->op->operand[1];
    const int loop = c->op->loop, type = source->is_scalar ? loop : source->desc.dtype;
    const int axis = int(c->op->param[0].as.i);
    int status;
    if ((status = ad_call_input(c, 0, type, &x)) || (status = ad_call_output(c, 0, loop, &out))) return status;
    if (count(out) == 0) return 0;
    const ad_cast_kernel cast = type == loop ? nullptr : ad_cpu_kernels_get()->cast[type][loop];
    const walk<2> lanes = walk_of(out, x, axis);
    const lane first = {out.data, x.data, out.stride[axis], x.stride[axis], out.shape[axis], cast, values, 0};
    c->run->wrote = true;
    if (!with_scan(c->op, [&](auto t) { status = scan<decltype(t)>(c, &first, &lanes); }))
        return ad__fault(c->fault, AD_E_INTERNAL, "a running sum has no loop for this type");
    return status ? status : ad_call_finish(c, 0, &out);
}

int ad_call_cumsum(ad_call *c) { return ad_cpu_scan(c, nullptr); }
int ad_call_cumprod(ad_call *c) { return ad_cpu_scan(c, nullptr); }
int ad_call_nancumsum(ad_call *c) { return ad_cpu_scan(c, nullptr); }
int ad_call_nancumprod(ad_call *c) { return ad_cpu_scan(c, nullptr); }
