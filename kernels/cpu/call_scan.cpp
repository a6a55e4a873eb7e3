/* Running sums and products. */
#include "kernels/call.h"

#include <atomic>

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/math.h"
#include "kernels/math_complex.h"
#include "protocol/tables.h"

namespace {

using namespace ad;

constexpr uint32_t LOOPS = AD_M_WIDEINT | AD_M_FLOAT | AD_M_COMPLEX; /* as AD_RULE(SUM) has them */
constexpr int64_t BLOCK = 1024;                                      /* elements converted and scanned at a time */
constexpr int64_t TILE = 256;                                        /* neighbouring lanes scanned side by side */
constexpr int64_t LONG_LANE = 1 << 17;  /* elements from which a lane is divided among threads */
constexpr int64_t LANE_GRAIN = 1 << 15; /* elements */

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
    /* Whether a lane may be scanned in pieces: the result must be that of one after another but for rounding. A
     * product of floats may over- or underflow on the way, which pieces would not see; a sum of 16-bit floats rounds
     * too coarsely. */
    static constexpr bool in_pieces = (is_int<C> || !Product) && same<C, S>;
    static constexpr bool may_overflow = !is_int<C>;
};

/* One lane, or the lanes at one place of a walk. */
struct lane {
    char *to;
    const char *from;
    int64_t to_step, from_step, n;
    ad_cast_kernel cast; /* from the input's type; NULL: it is the loop's */
};

/* n elements of the lane from i on, as contiguous elements of S; buffer: room for BLOCK. */
template <class S> const S *load_block(const lane *l, int64_t i, int64_t n, S *buffer) {
    const char *from = l->from + i * l->from_step;
    if (l->cast == nullptr && l->from_step == int64_t(sizeof(S))) return reinterpret_cast<const S *>(from);
    if (l->cast != nullptr) l->cast(buffer, sizeof(S), from, l->from_step, n);
    else
        for (int64_t j = 0; j < n; j++, from += l->from_step) buffer[j] = *reinterpret_cast<const S *>(from);
    return buffer;
}

/* Of a block: eight sums side by side, which the processor can add at once. */
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

/* A long lane: the blocks' totals, then what comes before each, then the blocks, the first two and last in parallel.
 * Where a float overflowed on the way the rest is done again, one after another. */
template <class Op> int scan_long(ad_call *c, const lane *l) {
    using C = typename Op::C;
    using S = typename Op::type;
    const int64_t blocks = l->n / BLOCK, fours = blocks / 4, whole = fours * 4 * BLOCK;
    C *before = static_cast<C *>(ad_call_workspace(c, uint64_t(2 * blocks + 1) * sizeof(C)));
    if (before == nullptr) return AD_E_MEMORY;
    C *after = before + blocks + 1, sum = Op::neutral();
    ad_cpu_parallel(fours * 4, 16, [&](int64_t begin, int64_t end) {
        S buffer[BLOCK];
        for (int64_t b = begin; b < end; b++) before[b] = total_of<Op>(load_block(l, b * BLOCK, BLOCK, buffer));
    });
    for (int64_t b = 0; b < fours * 4; b++) {
        C total = before[b];
        before[b] = sum;
        sum = Op::merge(sum, total);
    }
    before[fours * 4] = sum;
    ad_cpu_parallel(fours, 4, [&](int64_t begin, int64_t end) {
        for (int64_t f = begin; f < end; f++) scan_four<Op>(l, f * 4 * BLOCK, before + f * 4, after + f * 4);
    });
    if (Op::may_overflow)
        for (int64_t b = 0; b < fours * 4; b++)
            if (!finite(after[b]) || !finite(before[b + 1])) {
                scan_run<Op>(l, b * BLOCK, l->n, before[b]);
                return 0;
            }
    scan_run<Op>(l, whole, l->n, sum);
    return 0;
}

/* `lanes` lanes side by side, place_step apart: all their first elements, then all their second ones. */
template <class Op> void scan_tile(const lane *l, int64_t lanes, int64_t to_place_step, int64_t from_place_step) {
    using S = typename Op::type;
    typename Op::C sum[TILE];
    S buffer[TILE];
    for (int64_t i = 0; i < l->n; i++) {
        lane row = {nullptr, l->from + i * l->from_step, 0, from_place_step, lanes, l->cast};
        const S *x = load_block(&row, 0, lanes, buffer);
        char *to = l->to + i * l->to_step;
        for (int64_t j = 0; j < lanes; j++) {
            sum[j] = i == 0 ? Op::first(x[j]) : Op::take(sum[j], x[j]);
            *reinterpret_cast<S *>(to + j * to_place_step) = cast<S>(sum[j]);
        }
    }
}

/* Many lanes: lanes that lie closer together than their elements side by side, others one by one. */
template <class Op> void scan_lanes(const array *out, const array *x, const lane *first, const walk<2> *lanes) {
    const int64_t to_step = lanes->inner(0), from_step = lanes->inner(1);
    const bool across = llabs(to_step) < llabs(first->to_step) && lanes->length() >= 8;
    const int64_t n = first->n > 0 ? first->n : 1, grain = (LANE_GRAIN + n - 1) / n;
    ad_cpu_parallel(lanes->count, across && grain < 64 ? 64 : grain, [&](int64_t begin, int64_t end) {
        lanes->runs(begin, end, [&](const int64_t(&at)[2], int64_t length, int64_t) {
            for (int64_t j = 0, many; j < length; j += many) {
                many = !across ? 1 : length - j < TILE ? length - j : TILE;
                lane l = *first;
                l.to = out->data + at[0] + j * to_step;
                l.from = x->data + at[1] + j * from_step;
                if (many == 1) scan_run<Op>(&l, 0, l.n, Op::neutral());
                else scan_tile<Op>(&l, many, to_step, from_step);
            }
            return true;
        });
    });
}

template <class Op> int scan(ad_call *c, int axis, const array *out, const array *x, ad_cast_kernel cast) {
    const walk<2> lanes = walk_of(*out, *x, axis);
    const lane first = {out->data, x->data, out->stride[axis], x->stride[axis], out->shape[axis], cast};
    /* Pieces are read twice: more threads than two make up for that, and so does what floats gain. */
    const int threads = ad_cpu_parallel_threads();
    if (Op::in_pieces && (Op::may_overflow || threads > 2) && first.n >= LONG_LANE && lanes.count < 2 * threads) {
        int rc = 0;
        lanes.runs(0, lanes.count, [&](const int64_t(&at)[2], int64_t n, int64_t) {
            for (int64_t j = 0; j < n && rc == 0; j++) {
                lane l = first;
                l.to += at[0] + j * lanes.inner(0);
                l.from += at[1] + j * lanes.inner(1);
                rc = scan_long<Op>(c, &l);
            }
            return rc == 0;
        });
        return rc;
    }
    scan_lanes<Op>(out, x, &first, &lanes);
    return 0;
}

/* Types that sums are made in. */
template <class S> constexpr bool is_loop = (LOOPS >> dtype_of<S>::value & 1) != 0;

template <bool Product, bool SkipNan> int scan_call(ad_call *c) {
    array x, out;
    const ad_operand *source = &c->op->operand[1];
    const int loop = c->op->loop, type = source->is_scalar ? loop : source->desc.dtype;
    const int axis = int(c->op->param[0].as.i);
    int rc;
    if ((rc = ad_call_input(c, 0, type, &x)) < 0 || (rc = ad_call_output(c, 0, loop, &out)) < 0) return rc;
    if (count(out) == 0) return 0;
    ad_cast_kernel cast = type == loop ? nullptr : ad_cpu_kernels_get()->cast[type][loop];
    c->run->wrote = true;
    rc = visit(loop, [&](auto t) {
        using S = typename decltype(t)::type;
        if constexpr (is_loop<S>) return scan<scan_op<S, Product, SkipNan>>(c, axis, &out, &x, cast);
        else return ad__fault(c->fault, AD_E_INTERNAL, "a running sum has no loop for this type");
    });
    return rc < 0 ? rc : ad_call_finish(c, 0, &out);
}

} // namespace

int ad_call_cumsum(ad_call *c) { return scan_call<false, false>(c); }
int ad_call_cumprod(ad_call *c) { return scan_call<true, false>(c); }
int ad_call_nancumsum(ad_call *c) { return scan_call<false, true>(c); }
int ad_call_nancumprod(ad_call *c) { return scan_call<true, true>(c); }
