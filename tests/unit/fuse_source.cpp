/* The source of chains: what it depends on. That compilers take it, tests/build finds out. */
#include <string>

#include "fuse_chain.h"
#include "protocol/rows_ufunc.h"

struct generated {
    std::string source;
    std::vector<uint8_t> key;
    explicit generated(const fuse_chain &f) {
        ad_fuse_plan p;
        if (!make_plan(f, &p)) return;
        key.resize(AD_FUSE_KEY);
        key.resize(size_t(ad_fuse_signature(&f.chain, &p.form, key.data())));
        source = ad_fuse_source(&f.chain, &p.form);
    }
    generated(const fuse_chain &f, const ad_fuse_end &end, bool whole) {
        ad_fuse_plan p;
        memset(static_cast<void *>(&p), 0, sizeof p);
        if (!ad_fuse_plan_end(&f.chain, &end, whole, &p)) return;
        key.resize(AD_FUSE_KEY);
        key.resize(size_t(ad_fuse_signature(&f.chain, &p.form, key.data())));
        source = ad_fuse_source(&f.chain, &p.form);
    }
};

/* Something else than it was, and still a chain. */
static void change_chain(fuse_random &r, fuse_chain &f) {
    ad_chain_node *n = &f.chain.node[r.below(f.chain.nnodes)];
    const int index = int(n - f.chain.node);
    switch (r.below(8)) {
    case 0: n->dtype[r.below(n->nout)] = uint8_t(r.below(AD_NDTYPE)); break;
    case 7:
        if (f.chain.nrandoms > 0 && ad__dtypes[f.chain.random[0].loop].kind == 'f')
            f.chain.random[0].id = uint8_t(r.below(2) ? AD_RANDOM_normal : AD_RANDOM_gumbel);
        break;
    case 1: n->source[r.below(n->nin)] = from_input(r.below(f.chain.ninputs)); break;
    case 2: n->source[r.below(n->nin)] = from_scalar(r.below(f.chain.nscalars)); break;
    case 3:
        if (index > 0) n->source[r.below(n->nin)] = from_node(r.below(index));
        break;
    case 4: f.chain.input[r.below(f.chain.ninputs)].desc.dtype = uint8_t(r.below(AD_NDTYPE)); break;
    case 5: f.dims[r.below(f.chain.ninputs)].strides[0] = 0; break;
    case 6: f.chain.output[r.below(f.chain.noutputs)].from = from_node(r.below(f.chain.nnodes)); break;
    }
}

/* Equal sources have equal signatures, and different ones different signatures: the second is what matters. */
Test(fuse_source, signatures_tell_sources_apart) {
    fuse_random r(1);
    int same = 0, different = 0;
    for (int i = 0; i < 3000; i++) {
        const unsigned seed = r.engine();
        fuse_random first(seed), second(seed);
        const std::vector<int64_t> shape = {int64_t(1 + r.below(3)), int64_t(4 * (1 + r.below(5)))};
        fuse_chain a(shape), b(shape);
        fill_random(first, a, 1 + i % 6);
        fill_random(second, b, 1 + i % 6);
        cr_assert_eq(generated(a).source, generated(b).source);
        cr_assert(generated(a).key == generated(b).key);
        change_chain(r, b);
        const generated x(a), y(b);
        if (x.key.empty() || y.key.empty()) continue;
        cr_assert_eq(x.key == y.key, x.source == y.source, "%s\n%s", x.source.c_str(), y.source.c_str());
        (x.source == y.source ? same : different)++;
    }
    cr_assert_gt(same, 300);
    cr_assert_gt(different, 1000);
}

/* Sizes, addresses and values of scalars are the argument's business. */
Test(fuse_source, signatures_leave_out_what_is_passed) {
    fuse_chain a({1000}), b({123456});
    for (fuse_chain *f : {&a, &b}) {
        f->input(AD_FLOAT32);
        f->scalar(f == &a ? 1 : -7);
        f->node(AD_UFUNC_add, AD_FLOAT32, {from_input(0), from_scalar(0)});
        f->node(AD_UFUNC_sin, AD_FLOAT32, {from_node(0)});
        f->output(1);
    }
    for (fuse_chain *f : {&a, &b}) {
        f->random(AD_RANDOM_uniform, AD_FLOAT32, f == &a ? 0 : 5);
        f->node(AD_UFUNC_multiply, AD_FLOAT32, {from_node(1), from_node(2)});
        f->output(3);
    }
    b.chain.random[0].key++;
    b.chain.random[0].parameter[0].as.f = 2;
    b.chain.input[0].data = reinterpret_cast<void *>(uintptr_t(4096));
    cr_assert(generated(a).key == generated(b).key);
    b.chain.input[0].data = reinterpret_cast<void *>(uintptr_t(4100)); /* no longer a vector */
    cr_assert(generated(a).key != generated(b).key);
}

/* A chain that ends with a scan, by its types and the way it goes; the operation itself is not looked at. */
static generated make_scan(const ad_fuse_end &end, const std::vector<int64_t> &shape, bool whole) {
    fuse_chain f(shape);
    ad_op op = {};
    ad_operand operand[2] = {};
    f.input(AD_FLOAT32);
    f.scalar(2);
    f.node(AD_UFUNC_multiply, AD_FLOAT32, {from_input(0), from_scalar(0)});
    op.nout = op.nin = 1;
    op.operand = operand;
    f.chain.end = {&op, from_node(0)};
    return generated(f, end, whole);
}

/* Everything about an end that its kernel depends on is in its signature. */
Test(fuse_source, scans_differ_by_type_and_way) {
    std::vector<generated> all;
    for (int family : {AD_FUSE_SCAN_SUM, AD_FUSE_SCAN_PRODUCT})
        for (int way : {AD_SCAN_TILED, AD_SCAN_ROWS})
            for (int dtype : {AD_INT8, AD_FLOAT16, AD_FLOAT32, AD_FLOAT64, AD_COMPLEX128}) {
                const int loop = dtype == AD_INT8 ? AD_INT64 : dtype;
                all.push_back(make_scan({uint8_t(family), uint8_t(way), uint8_t(dtype), uint8_t(loop)}, {64}, true));
            }
    for (size_t i = 0; i < all.size(); i++)
        for (size_t k = 0; k < i; k++) cr_assert(all[i].key != all[k].key && all[i].source != all[k].source);
}

/* Rows that do not join need whole vectors; one row does not. */
Test(fuse_source, scans_of_rows_read_whole_vectors) {
    const ad_fuse_end end = {AD_FUSE_SCAN_SUM, AD_SCAN_ROWS, AD_FLOAT32, AD_FLOAT32};
    cr_assert(!make_scan(end, {63}, false).key.empty());
    cr_assert(!make_scan(end, {5, 64}, true).key.empty());
}
