/* Chains made ready for a kernel: what lies how, and which form of kernel that asks for. */
#include "kernels/cuda/fuse/fuse.h"

#include <stdlib.h>

#include "protocol/infer.h"
#include "protocol/rows_ufunc.h"
#include "protocol/tables.h"

namespace {

constexpr int64_t LARGEST = 0x7fffffff; /* chunks, and sizes that they are divided by */
constexpr int64_t TILED = 4096;         /* elements worth ordering memory accesses for */
constexpr int UNROLLED = 240;           /* about as many instructions are written out in a row */
constexpr int RANDOM_WEIGHT = 80;       /* instructions of a random source */

/* ---- rows ---- */

bool is_complex(int dtype) { return ad__dtypes[dtype].kind == 'c'; }

/* ---- operands ---- */

/* Dimensions of size 1 are left out; strides are 0 where an operand is repeated. The last is the innermost. */
struct walk {
    int ndim, nop;
    int64_t shape[AD_MAX_NDIM], stride[AD_FUSE_OPERANDS][AD_MAX_NDIM];
    char *base[AD_FUSE_OPERANDS];
};

void set_shape(walk *w, const ad_chain *c) {
    w->ndim = w->nop = 0;
    for (int d = 0; d < c->ndim; d++)
        if (c->shape[d] != 1) w->shape[w->ndim++] = c->shape[d];
}

void add_operand(walk *w, const ad_chain *c, const ad_operand *o) {
    const int skip = c->ndim - o->desc.ndim;
    int64_t *stride = w->stride[w->nop];
    for (int d = 0; d < c->ndim; d++) {
        if (c->shape[d] == 1) continue;
        *stride++ = d < skip || o->desc.shape[d - skip] == 1 ? 0 : o->desc.strides[d - skip];
    }
    w->base[w->nop++] = static_cast<char *>(o->data);
}

/* Elements of a random source are numbered row by row. */
void add_random(walk *w, uint64_t first) {
    int64_t step = 1;
    for (int d = w->ndim - 1; d >= 0; d--) {
        w->stride[w->nop][d] = step;
        step *= w->shape[d];
    }
    w->base[w->nop++] = reinterpret_cast<char *>(uintptr_t(first));
}

/* Add the value that the chain's end takes, in row-major order; its address is not known yet. */
void add_end(walk *w, int64_t size) {
    for (int d = w->ndim - 1; d >= 0; d--) {
        w->stride[w->nop][d] = size;
        size *= w->shape[d];
    }
    w->base[w->nop++] = nullptr;
}

/* Dimension d is the better inner one: the first operand that tells them apart has the smaller stride there. */
bool more_inner(const walk *w, int d, int e) {
    for (int k = 0; k < w->nop; k++) {
        const int64_t a = llabs(w->stride[k][d]), b = llabs(w->stride[k][e]);
        if (a != 0 && b != 0 && a != b) return a < b;
    }
    return false;
}

void swap_dimensions(walk *w, int d, int e) {
    std::swap(w->shape[d], w->shape[e]);
    for (int k = 0; k < w->nop; k++) std::swap(w->stride[k][d], w->stride[k][e]);
}

bool joins(const walk *w, int outer, int inner) {
    for (int k = 0; k < w->nop; k++)
        if (w->stride[k][outer] != w->stride[k][inner] * w->shape[inner]) return false;
    return true;
}

void move_dimension(walk *w, int to, int from) {
    w->shape[to] = w->shape[from];
    for (int k = 0; k < w->nop; k++) w->stride[k][to] = w->stride[k][from];
}

void order(walk *w) {
    if (w->ndim == 0) {
        w->ndim = 1;
        w->shape[0] = 1;
        for (int k = 0; k < w->nop; k++) w->stride[k][0] = 0;
        return;
    }
    for (int d = 1; d < w->ndim; d++)
        for (int e = d; e > 0 && more_inner(w, e - 1, e); e--) swap_dimensions(w, e - 1, e);
    int n = 0;
    for (int d = 1; d < w->ndim; d++) {
        if (joins(w, n, d)) {
            const int64_t outer = w->shape[n];
            move_dimension(w, n, d);
            w->shape[n] *= outer;
        } else if (++n != d) {
            move_dimension(w, n, d);
        }
    }
    w->ndim = n + 1;
}

/* ---- forms ---- */

int size_of(const ad_fuse_form *f, int k) { return ad__dtypes[f->dtype[k]].size; }

bool is_aligned(const walk *w, int k, int64_t to) {
    uint64_t bits = uint64_t(reinterpret_cast<uintptr_t>(w->base[k]));
    for (int d = 0; d < w->ndim - 1; d++) bits |= uint64_t(w->stride[k][d]);
    return bits % uint64_t(to) == 0;
}

/* False: an operand that our loads do not reach. */
bool place_operands(const walk *w, ad_fuse_form *f) {
    const int last = w->ndim - 1;
    for (int k = f->nout + f->nin; k < w->nop; k++) f->place[k] = AD_FUSE_RANDOM;
    for (int k = 0; k < f->nout + f->nin; k++) {
        const int64_t inner = w->stride[k][last], size = size_of(f, k);
        const bool single = w->shape[last] == 1;
        f->place[k] = k < f->nout && single        ? AD_FUSE_PACKED
                      : inner == size              ? AD_FUSE_PACKED
                      : inner == 0 && k >= f->nout ? AD_FUSE_ONE
                                                   : AD_FUSE_APART;
        if (!is_aligned(w, k, size) || inner % size != 0) return false;
    }
    return true;
}

/* Elements that are not next to each other are better left to neighbouring threads when they are small or far. */
bool is_scattered(const walk *w, const ad_fuse_form *f) {
    for (int k = 0; k < w->nop; k++) {
        const int64_t inner = llabs(w->stride[k][w->ndim - 1]), size = size_of(f, k);
        if (f->place[k] == AD_FUSE_APART && (k < f->nout || (inner != size && (size < 4 || inner > 32)))) return true;
    }
    return false;
}

bool outputs_fit(const walk *w, const ad_fuse_form *f, int width) {
    if (w->ndim > 1 && w->shape[w->ndim - 1] % width != 0) return false;
    for (int k = 0; k < f->nout; k++)
        if (!is_aligned(w, k, int64_t(width) * size_of(f, k))) return false;
    return true;
}

/* Inputs that do not begin with whole vectors are read one by one. */
void part_unaligned(const walk *w, ad_fuse_form *f) {
    for (int k = f->nout; k < f->nout + f->nin; k++) {
        const int64_t bytes = int64_t(f->width) * size_of(f, k);
        if (f->place[k] == AD_FUSE_PACKED && !is_aligned(w, k, bytes < 16 ? bytes : 16)) f->place[k] = AD_FUSE_APART;
    }
}

void choose_width(const walk *w, ad_fuse_form *f) {
    int widest = 1;
    for (int k = 0; k < w->nop; k++)
        if (f->place[k] != AD_FUSE_ONE && size_of(f, k) > widest) widest = size_of(f, k);
    int width = is_scattered(w, f) ? 1 : 16 / widest;
    while (width > 1 && !outputs_fit(w, f, width)) width /= 2;
    f->width = uint8_t(width);
    part_unaligned(w, f);
    f->ragged = w->ndim == 1 && width > 1;
}

/* Choose the chunks of a thread: more where that is few instructions and few registers. */
void choose_unrolling(int weight, ad_fuse_form *f) {
    int loaded = 0, step = f->width;
    while (step > 1 && step * weight > UNROLLED) step /= 2;
    for (int k = f->nout; k < ad_fuse_operands(f); k++)
        loaded += f->place[k] == AD_FUSE_ONE ? (size_of(f, k) + 3) / 4 : (f->width * size_of(f, k) + 3) / 4;
    int unroll = 4;
    while (unroll > 1 && (unroll * loaded > 16 || unroll * f->width * weight > UNROLLED / 2 ||
                          unroll * f->nrandoms * RANDOM_WEIGHT > UNROLLED))
        unroll /= 2;
    f->step = uint8_t(step);
    f->unroll = uint8_t(unroll);
}

/* The dimension along which some operand that jumps along the rows is contiguous or nearly so; -1: none. */
int smoother_dimension(const walk *w, int nop) {
    const int last = w->ndim - 1;
    for (int k = 0; k < nop; k++) {
        if (llabs(w->stride[k][last]) < 256) continue;
        for (int d = last - 1; d >= 0; d--) {
            const int64_t s = llabs(w->stride[k][d]);
            if (s != 0 && s <= 32 && w->shape[d] >= 8) return d;
        }
    }
    return -1;
}

/* Large arrays of which one lies across the others go in tiles. */
void choose_tiles(walk *w, ad_fuse_form *f) {
    int64_t count = 1;
    for (int d = 0; d < w->ndim; d++) count *= w->shape[d];
    const int smooth = f->width == 1 && count >= TILED ? smoother_dimension(w, f->nout + f->nin) : -1;
    f->tiled = smooth >= 0;
    for (int d = smooth; f->tiled && d < w->ndim - 2; d++) swap_dimensions(w, d, d + 1);
}

int64_t divided(int64_t n, int64_t by) { return (n + by - 1) / by; }

/* Blocks, or 0: too many. */
uint32_t fill_tiles(const walk *w, int unroll, int64_t count, ad_fuse_head *h) {
    const int c = w->ndim - 1, r = w->ndim - 2;
    const int64_t across = divided(w->shape[c], AD_FUSE_TILE), down = divided(w->shape[r], 8 * unroll);
    const int64_t outer = count / w->shape[c] / w->shape[r];
    if (across * down > LARGEST / outer) return 0;
    h->across.set(across);
    h->down.set(down);
    return uint32_t(across * down * outer);
}

/* False: too large for indices of 32 bits. */
bool fill_argument(const walk *w, int multiprocessors, ad_fuse_plan *p) {
    const int last = w->ndim - 1, width = p->form.width;
    ad_fuse_head *h = &p->head;
    const int64_t row = divided(w->shape[last], width);
    int64_t chunks = row;
    if (row > LARGEST) return false;
    for (int d = 0; d < last; d++) {
        if (w->shape[d] > LARGEST / chunks) return false;
        chunks *= w->shape[d];
        h->dim[d].set(w->shape[d]);
    }
    h->columns = w->shape[last];
    h->chunks = uint32_t(chunks);
    h->row.set(row);
    int64_t blocks = divided(chunks, AD_FUSE_THREADS);
    const int unroll = p->form.unroll;
    if (blocks <= 4 * multiprocessors || unroll == 1) {
        h->block = AD_FUSE_THREADS;
        h->step = uint32_t(blocks * AD_FUSE_THREADS);
    } else {
        h->block = uint32_t(AD_FUSE_THREADS * unroll);
        h->step = AD_FUSE_THREADS;
        blocks = divided(chunks, h->block);
    }
    p->blocks = p->form.tiled ? fill_tiles(w, unroll, chunks, h) : uint32_t(blocks);
    for (int k = 0; k < w->nop; k++) {
        p->operand[k].base = w->base[k];
        p->operand[k].inner = w->stride[k][last];
        for (int d = 0; d < last; d++) p->operand[k].stride[d] = w->stride[k][d];
    }
    return p->blocks != 0;
}

/* ---- nodes ---- */

/* A negative power is an error that only a kernel of its own reports. */
bool has_negative_power(const ad_chain *c, const ad_chain_node *n) {
    if (n->row != AD_UFUNC_power || ad__dtypes[n->loop].kind != 'i') return false;
    const ad_scalar *y = &c->scalar[n->source[1].index];
    if (n->source[1].kind != AD_SOURCE_SCALAR) return true;
    return !(y->kind == AD_SCALAR_BOOL || y->kind == AD_SCALAR_UINT || (y->kind == AD_SCALAR_INT && y->as.i >= 0));
}

bool add_nodes(const ad_chain *c, ad_fuse_plan *p) {
    ad_fuse_form *f = &p->form;
    f->nscalars = 0;
    for (int i = 0; i < c->nnodes; i++) {
        const ad_chain_node *n = &c->node[i];
        if (!ad_fuse_has_row(n->row, n->loop) || has_negative_power(c, n)) return false;
        for (int k = 0; k < n->nin; k++) {
            if (n->source[k].kind != AD_SOURCE_SCALAR) continue;
            if (f->nscalars == AD_FUSE_SCALARS) return false;
            p->scalar[f->nscalars] = n->source[k].index;
            p->scalar_dtype[f->nscalars++] = uint8_t(ad_fuse_wants(n, k));
        }
    }
    return true;
}

void add_output(walk *w, const ad_chain *c, const ad_chain_output *o, ad_fuse_form *f) {
    f->dtype[w->nop] = o->view.desc.dtype;
    f->from[w->nop] = o->from;
    add_operand(w, c, &o->view);
}

/* Outputs, what the end takes, inputs; dimensions in order. False: not for us. */
bool lay_out(const ad_chain *chain, walk *w, ad_fuse_form *f) {
    set_shape(w, chain);
    for (int k = 0; k < chain->noutputs; k++) add_output(w, chain, &chain->output[k], f);
    if (chain->end.op) {
        const int stored = chain->end.op->operand[chain->end.op->nout].desc.dtype;
        const int dtype = ad_fuse_scans(f) ? f->end.input : stored;
        f->dtype[w->nop] = uint8_t(dtype);
        f->from[w->nop] = chain->end.from;
        add_end(w, ad__dtypes[dtype].size);
    }
    f->nout = w->nop;
    f->nin = chain->ninputs;
    f->nrandoms = chain->nrandoms;
    if (f->nout == 0) return false;
    for (int k = 0; k < chain->ninputs; k++) {
        f->dtype[w->nop] = chain->input[k].desc.dtype;
        add_operand(w, chain, &chain->input[k]);
    }
    for (int k = 0; k < chain->nrandoms; k++) {
        f->dtype[w->nop] = chain->random[k].loop;
        f->random[k] = chain->random[k].id;
        add_random(w, chain->random[k].first);
    }
    order(w);
    if (w->ndim - 1 > AD_FUSE_OUTER || !place_operands(w, f)) return false;
    f->outer = uint8_t(w->ndim - 1);
    return true;
}

/* Elements of a chunk, as the kernels that are not made of chains read them (reduce/states.cuh, call/scan/parts.cuh).
 */
int width_of_end(const ad_fuse_form *f) {
    const int size = size_of(f, 0), way = f->end.way;
    if (ad_fuse_scans(f)) return size >= ad__dtypes[f->end.loop].size ? 16 / size : 4;
    return (way == AD_FOLD_WIDE ? 16 : way == AD_FOLD_SIDE ? 8 : size) / size;
}
/* Chunks that are read at once. */
int chunks_of_end(const ad_fuse_form *f) {
    if (ad_fuse_scans(f)) return f->end.way == AD_SCAN_TILED ? AD_SCAN_LOADS : AD_SCAN_ROW_LOADS;
    return f->end.way != AD_FOLD_WIDE ? 8 : width_of_end(f) < 4 ? 4 : 16 / width_of_end(f);
}

} // namespace

bool ad_fuse_has_row(int row, int loop) {
    const ad_ufunc_row *u = ad__ufunc(uint64_t(row));
    if (!u || !(ad__rules[u->rule].loops >> loop & 1)) return false;
    if (u->traits & AD_U_BODY) return false;
    return !is_complex(loop) || !(u->traits & (AD_U_COMPLEX_LIBRARY | AD_U_SPECIAL));
}

int ad_fuse_includes(const ad_fuse_form *form) {
    const int end = ad_fuse_scans(form)                     ? AD_FUSE_WITH_END | AD_FUSE_WITH_SCAN
                    : form->end.family != AD_FOLD_NO_FAMILY ? AD_FUSE_WITH_END
                                                            : 0;
    return (form->nrandoms ? AD_FUSE_WITH_RANDOM : 0) | end;
}

int ad_fuse_weight(const ad_chain *chain) {
    int weight = 0;
    for (int i = 0; i < chain->nnodes; i++) {
        const int loop = chain->node[i].loop, w = ad__ufunc(uint64_t(chain->node[i].row))->cost;
        weight += w * (is_complex(loop) ? 3 : 1) * (ad__dtypes[loop].size == 8 && w > 1 ? 3 : 1);
    }
    return weight;
}

bool ad_fuse_plan_make(const ad_chain *chain, int multiprocessors, ad_fuse_plan *plan) {
    walk w;
    ad_fuse_form *f = &plan->form;
    f->end = {};
    if (!add_nodes(chain, plan) || !lay_out(chain, &w, f)) return false;
    choose_width(&w, f);
    choose_tiles(&w, f);
    choose_unrolling(ad_fuse_weight(chain), f);
    return fill_argument(&w, multiprocessors, plan);
}

bool ad_fuse_plan_end(const ad_chain *chain, const ad_fuse_end *end, bool whole, ad_fuse_plan *plan) {
    walk w;
    ad_fuse_form *f = &plan->form;
    f->end = *end;
    if (chain->noutputs != 0 || !add_nodes(chain, plan) || !lay_out(chain, &w, f)) return false;
    const int width = width_of_end(f), at_once = chunks_of_end(f) * width;
    if (w.ndim > 1 && (!whole || w.shape[w.ndim - 1] % width != 0)) return false;
    f->width = uint8_t(width);
    f->ragged = f->tiled = false;
    part_unaligned(&w, f);
    choose_unrolling(ad_fuse_weight(chain), f);
    f->unroll = at_once * (ad_fuse_weight(chain) + RANDOM_WEIGHT * f->nrandoms) <= UNROLLED ? 4 : 1;
    return fill_argument(&w, 1, plan);
}
