/* Random chains, for tests of what is generated from them. */
#ifndef TESTS_FUSE_CHAIN_H
#define TESTS_FUSE_CHAIN_H

#include <criterion/criterion.h>
#include <random>
#include <string.h>
#include <vector>

#include "kernels/cuda/fuse/fuse.h"
#include "protocol/distribution.h"
#include "protocol/infer.h"
#include "protocol/rows_ufunc.h"
#include "protocol/tables.h"

struct fuse_random {
    std::mt19937 engine;
    explicit fuse_random(unsigned seed) : engine(seed) {}
    int below(int n) { return int(engine() % unsigned(n)); }
};

/* A chain and what its operands point to. Addresses are numbers: nothing is read. */
struct fuse_chain {
    struct dimensions {
        int64_t shape[AD_MAX_NDIM], strides[AD_MAX_NDIM];
    };
    ad_chain chain;
    std::vector<int64_t> shape;
    dimensions dims[AD_CHAIN_INPUTS + AD_CHAIN_OUTPUTS];
    int used = 0;

    explicit fuse_chain(std::vector<int64_t> s) : shape(std::move(s)) {
        memset(&chain, 0, sizeof chain);
        chain.ndim = int(shape.size());
        chain.shape = shape.data();
    }
    fuse_chain(const fuse_chain &) = delete;

    /* Set an operand that is contiguous; strides may then be changed. */
    dimensions *set(ad_operand *o, int dtype, const std::vector<int64_t> &of) {
        dimensions *d = &dims[used++];
        int64_t size = ad__dtypes[dtype].size;
        memset(o, 0, sizeof *o);
        for (int k = int(of.size()) - 1; k >= 0; k--) {
            d->shape[k] = of[size_t(k)];
            d->strides[k] = size;
            size *= of[size_t(k)];
        }
        o->desc.dtype = uint8_t(dtype);
        o->desc.ndim = uint8_t(of.size());
        o->desc.shape = d->shape;
        o->desc.strides = d->strides;
        o->data = reinterpret_cast<void *>(uintptr_t(used) << 40);
        return d;
    }
    dimensions *input(int dtype) { return input(dtype, shape); }
    dimensions *input(int dtype, const std::vector<int64_t> &of) {
        return set(&chain.input[chain.ninputs++], dtype, of);
    }
    void scalar(int64_t value) {
        ad_scalar *s = &chain.scalar[chain.nscalars++];
        s->kind = AD_SCALAR_INT;
        s->as.i = value;
    }
    /* Numbers of a source, as a node. */
    ad_chain_node *random(int id, int loop, uint64_t first) {
        ad_chain_random *r = &chain.random[chain.nrandoms];
        r->id = uint8_t(id);
        r->loop = uint8_t(loop);
        r->key = 77;
        r->first = first;
        return node(AD_UFUNC_copy, loop, {{AD_SOURCE_RANDOM, uint8_t(chain.nrandoms++), 0}});
    }
    ad_chain_node *node(int row, int loop, std::vector<ad_source> sources) {
        const ad_ufunc_row *u = ad__ufunc(uint64_t(row));
        ad_chain_node *n = &chain.node[chain.nnodes++];
        n->row = uint16_t(row);
        n->loop = uint8_t(loop);
        n->nin = u->nin;
        n->nout = u->nout;
        for (int k = 0; k < u->nout; k++) n->dtype[k] = uint8_t(ad__code_dtype(ad__rules[u->rule].out[k], loop));
        for (int k = 0; k < u->nin; k++) n->source[k] = sources[size_t(k) % sources.size()];
        return n;
    }
    dimensions *output(int node, int part = 0) {
        ad_chain_output *o = &chain.output[chain.noutputs++];
        o->from = {AD_SOURCE_NODE, uint8_t(node), uint8_t(part)};
        return set(&o->view, chain.node[node].dtype[part], shape);
    }
};

inline ad_source from_input(int k) { return {AD_SOURCE_INPUT, uint8_t(k), 0}; }
inline ad_source from_scalar(int k) { return {AD_SOURCE_SCALAR, uint8_t(k), 0}; }
inline ad_source from_node(int k, int part = 0) { return {AD_SOURCE_NODE, uint8_t(k), uint8_t(part)}; }

/* Rows and loops that have a kernel here. */
inline std::vector<std::pair<int, int>> fuse_rows() {
    std::vector<std::pair<int, int>> all;
    for (int row = 0; row < AD_UFUNC_LIMIT; row++)
        for (int loop = 0; loop < AD_NDTYPE; loop++)
            if (ad_fuse_has_row(row, loop)) all.emplace_back(row, loop);
    return all;
}

/* Distributions and loops that a chain may have. */
inline std::vector<std::pair<int, int>> fuse_randoms() {
    std::vector<std::pair<int, int>> all;
    for (int id = 0; id < AD_RANDOM_LIMIT; id++)
        for (int loop = 0; loop < AD_NDTYPE; loop++) {
            const ad_distribution_row *row = ad__distribution(id);
            if (row != nullptr && row->source == AD_RANDOM_BLOCK && (row->loops >> loop & 1))
                all.emplace_back(id, loop);
        }
    return all;
}

inline void any_random(fuse_random &r, fuse_chain &f) {
    static const std::vector<std::pair<int, int>> rows = fuse_randoms();
    const auto &row = rows[size_t(r.below(int(rows.size())))];
    f.random(row.first, row.second, uint64_t(r.below(9)));
}

inline ad_source any_source(fuse_random &r, const fuse_chain &f) {
    const int kind = r.below(4);
    if (kind == 0) return from_scalar(r.below(f.chain.nscalars));
    if (kind == 1 || f.chain.nnodes == 0) return from_input(r.below(f.chain.ninputs));
    const int node = r.below(f.chain.nnodes);
    return from_node(node, r.below(f.chain.node[node].nout));
}

/* Any rows, in any order, of inputs and scalars of any type; some results are kept. */
inline void fill_random(fuse_random &r, fuse_chain &f, int nodes) {
    static const std::vector<std::pair<int, int>> rows = fuse_rows();
    const int inputs = 1 + r.below(4), scalars = 1 + r.below(3);
    for (int k = 0; k < inputs; k++) f.input(r.below(AD_NDTYPE));
    for (int k = 0; k < scalars; k++) f.scalar(r.below(100));
    for (int k = r.below(6) - 3; k > 0; k--) any_random(r, f);
    for (int i = 0; i < nodes; i++) {
        const auto &row = rows[size_t(r.below(int(rows.size())))];
        if (row.first == AD_UFUNC_power && ad__dtypes[row.second].kind == 'i') continue;
        ad_chain_node *n = f.node(row.first, row.second, {any_source(r, f), any_source(r, f), any_source(r, f)});
        for (int k = 0; k < n->nout; k++)
            if (r.below(4) == 0) n->dtype[k] = uint8_t(r.below(AD_NDTYPE));
    }
    if (f.chain.nnodes == f.chain.nrandoms) f.node(AD_UFUNC_add, AD_FLOAT32, {from_input(0)});
    f.output(f.chain.nnodes - 1);
    for (int k = r.below(3); k > 0; k--) f.output(r.below(f.chain.nnodes));
}

static inline bool make_plan(const fuse_chain &f, ad_fuse_plan *p) {
    memset(static_cast<void *>(p), 0, sizeof *p);
    return ad_fuse_plan_make(&f.chain, 100, p);
}

#endif
