/* iir: recursive filters, section after section, along an axis. Long lanes are cut into tiles. Else a thread goes along
 * a lane, and neighbouring threads go by neighbouring elements. */
#include "kernels/cuda/call/ndimage/ndimage.h"
#include "kernels/cuda/call/signal/iir_tiles.cuh"

#include <algorithm>
#include <utility>

namespace {

using namespace ad;
using namespace ad::iir;

constexpr int64_t LEAST = 256; /* elements of a lane that is cut into tiles */
constexpr int64_t MOST_BLOCKS = int64_t(1) << 30;
constexpr int64_t ENOUGH =
    1 << 14; /* blocks of kernels that may have nothing to do: to begin a block takes time, too */

/* The whole call. Arrays have no gaps. */
template <class T> struct filter {
    ad_call *c;
    section<T> one; /* the first */
    int64_t sections;
    T *power;
    int *way;
    int powers;
};

unsigned count_blocks(int64_t n) { return unsigned(std::min((n + THREADS - 1) / THREADS, ENOUGH)); }

bool has_tiles(int64_t n, int64_t order) { return n >= LEAST && order >= 1 && order <= MOST_ORDER; }

template <class T, int P> int choose_way(const filter<T> &f) {
    find_way<T, P><<<unsigned(f.sections), THREADS, 0, f.c->stream->cuda>>>(f.one.factor, f.one.order, f.power,
                                                                            f.powers, f.way, f.sections == 1);
    return ad_cuda_launched("iir", f.c->fault);
}

template <class T, int P> void enqueue_tiles(const filter<T> &f, const section<T> &s) {
    const unsigned blocks = unsigned(std::min(s.tiles * s.lanes, MOST_BLOCKS));
    end_tiles<T, P><<<blocks, THREADS, 0, f.c->stream->cuda>>>(s);
    carry_tiles<T, P><<<unsigned(std::min(s.lanes, MOST_BLOCKS)), CARRIERS, 0, f.c->stream->cuda>>>(s);
    filter_tiles<T, P><<<blocks, THREADS, 0, f.c->stream->cuda>>>(s);
}

/* Enqueue all sections. Of the kernels of a section those do nothing that are not for it. */
template <class T, int P> int enqueue_sections(const filter<T> &f) {
    int status = choose_way<T, P>(f);
    section<T> s = f.one;
    for (int64_t i = 0; !status && i < f.sections; i++) {
        s.way = f.way + i;
        if constexpr (P > 0) {
            s.power = f.power + i * f.powers * P * P;
            enqueue_tiles<T, P>(f, s);
        }
        filter_lanes<<<count_blocks(s.lanes), THREADS, 0, f.c->stream->cuda>>>(s);
        if (f.sections == 1) {
            filter_finite<<<count_blocks(s.n * s.lanes), THREADS, 0, f.c->stream->cuda>>>(s);
            if (s.order > 0) end_finite<<<count_blocks(s.order * s.lanes), THREADS, 0, f.c->stream->cuda>>>(s);
        }
        status = ad_cuda_launched("iir", f.c->fault);
        s.x = s.y;
        s.factor += 2 * (s.order + 1);
        s.before += s.order * s.lanes;
        s.state += s.order * s.lanes;
    }
    return status;
}

/* Scratch memory for the tiles, of lanes that lie one behind the other. */
template <class T> int open_tiles(filter<T> *f) {
    section<T> *s = &f->one;
    const int64_t order = s->order;
    s->tiles = (s->n + TILE - 1) / TILE;
    while (int64_t(CARRIERS) << s->doublings < s->tiles) s->doublings++;
    f->powers = LOG_TILE + s->doublings + LOG_CARRIERS;
    s->ends = static_cast<T *>(ad_call_workspace(f->c, uint64_t(s->tiles * s->lanes * order) * sizeof(T)));
    f->power = static_cast<T *>(ad_call_workspace(f->c, uint64_t(f->sections * f->powers * order * order) * sizeof(T)));
    return s->ends && f->power ? 0 : AD_E_MEMORY;
}

template <class T, int... P> int enqueue_order(filter<T> *f, std::integer_sequence<int, P...>) {
    int status = AD_E_UNSUPPORTED;
    (void)((f->one.order == P + 1 ? (status = enqueue_sections<T, P + 1>(*f), true) : false) || ...);
    return status;
}

template <class T> int run_filter(filter<T> *f) {
    f->way = static_cast<int *>(ad_call_workspace(f->c, uint64_t(f->sections) * sizeof(int)));
    if (!f->way) return AD_E_MEMORY;
    if (!has_tiles(f->one.n, f->one.order)) return enqueue_sections<T, 0>(*f);
    const int status = open_tiles(f);
    return status ? status : enqueue_order(f, std::make_integer_sequence<int, MOST_ORDER>());
}

/* Get a as a view with that axis as its first one, or its last. */
array move_axis(const array &a, int axis, bool last) {
    array b = a;
    int k = last ? 0 : 1;
    for (int i = 0; i < a.ndim; i++)
        if (i != axis) {
            b.shape[k] = a.shape[i];
            b.stride[k++] = a.stride[i];
        }
    b.shape[last ? k : 0] = a.shape[axis];
    b.stride[last ? k : 0] = a.stride[axis];
    return b;
}

/* The operands of a call. x and y have the axis first or last and no gaps; out is the output as it lies. */
struct operands {
    array x, y, out, sections, before, state;
    bool in_order; /* each lane's elements are neighbours */
};

int open_operands(ad_call *c, operands *o) {
    const int axis = int(c->op->param[0].as.i);
    int status;
    if ((status = ad_call_input(c, 0, c->op->loop, &o->x)) ||
        (status = ad_call_input_packed(c, 1, c->op->loop, &o->sections)) ||
        (status = ad_call_input_packed(c, 2, c->op->loop, &o->before)) ||
        (status = ad_call_output(c, 0, c->op->loop, &o->out)) ||
        (status = ad_cuda_packed_output(c, 1, c->op->loop, &o->state)))
        return status;
    o->in_order = has_tiles(o->x.shape[axis], o->sections.shape[2] - 1);
    o->x = move_axis(o->x, axis, o->in_order);
    o->y = move_axis(o->out, axis, o->in_order);
    if (!is_packed(o->x) && (status = ad_call_packed(c, &o->x, c->op->loop, 0, &o->x))) return status;
    if (is_packed(o->y)) return 0;
    o->y.data = static_cast<char *>(ad_call_workspace(c, uint64_t(pack(&o->y))));
    return o->y.data ? 0 : AD_E_MEMORY;
}

template <class T> int filter_operands(ad_call *c, const operands &o) {
    filter<T> f = {};
    f.c = c;
    f.sections = o.sections.shape[0];
    f.one.factor = reinterpret_cast<const T *>(o.sections.data);
    f.one.x = reinterpret_cast<const T *>(o.x.data);
    f.one.y = reinterpret_cast<T *>(o.y.data);
    f.one.before = reinterpret_cast<const T *>(o.before.data);
    f.one.state = reinterpret_cast<T *>(o.state.data);
    f.one.order = o.sections.shape[2] - 1;
    f.one.n = o.x.shape[o.in_order ? o.x.ndim - 1 : 0];
    f.one.lanes = count(o.x) / f.one.n;
    f.one.step = o.in_order ? 1 : f.one.lanes;
    f.one.apart = o.in_order ? f.one.n : 1;
    return run_filter(&f);
}

} // namespace

int ad_call_iir(ad_call *c) {
    operands o;
    int status = open_operands(c, &o);
    if (status) return status;
    c->run->wrote = true;
    if (count(o.x) > 0 && o.sections.shape[0] > 0)
        status = visit(c->op->loop, [&](auto t) {
            using S = typename decltype(t)::type;
            if constexpr (is_float<S> || is_complex<S>) return filter_operands<S>(c, o);
            else return int(AD_E_TYPE);
        });
    else if (!(status = ad_call_copy(c, &o.y, &o.x))) status = ad_call_copy(c, &o.state, &o.before);
    if (status) return status;
    const array turned = move_axis(o.out, int(c->op->param[0].as.i), o.in_order);
    if (turned.data != o.y.data && (status = ad_call_copy(c, &turned, &o.y))) return status;
    status = ad_call_finish(c, 0, &o.out);
    return status ? status : ad_call_finish(c, 1, &o.state);
}
