/* The source of chains: what it depends on, and that the compiler takes it. */
#include <dlfcn.h>
#include <string>

#include "fuse_chain.h"

/* ---- the compiler, where there is one ---- */

struct rtc {
    int (*create)(void **, const char *, const char *, int, const char *const *, const char *const *);
    int (*compile)(void *, int, const char *const *);
    int (*log_size)(void *, size_t *);
    int (*log)(void *, char *);
    int (*size)(void *, size_t *);
    int (*destroy)(void **);
    bool loaded = false;

    rtc() {
        void *h = nullptr;
        for (const char *name : {"libnvrtc.so.13", "libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so"})
            if (h == nullptr) h = dlopen(name, RTLD_NOW);
        if (h == nullptr) return;
        find(h, "nvrtcCreateProgram", &create);
        find(h, "nvrtcCompileProgram", &compile);
        find(h, "nvrtcGetProgramLogSize", &log_size);
        find(h, "nvrtcGetProgramLog", &log);
        find(h, "nvrtcGetCUBINSize", &size);
        find(h, "nvrtcDestroyProgram", &destroy);
        loaded = true;
    }
    template <class F> void find(void *h, const char *name, F *out) {
        *out = reinterpret_cast<F>(dlsym(h, name));
        cr_assert_not_null(reinterpret_cast<void *>(*out), "%s", name);
    }

    /* Bytes of the cubin; 0: *said says why there is none. */
    size_t run(const std::string &source, const char *arch, std::string *said, bool end = false) {
        ad_compile_job job;
        ad_fuse_job(source.data(), source.size(), arch, end, &job);
        std::vector<std::string> texts, options(job.own_options, job.own_options + job.nown_options);
        std::vector<const char *> names, data, flags;
        for (size_t k = 0; k < job.nheaders; k++)
            texts.emplace_back(job.headers[k].text.data, job.headers[k].text.size);
        for (size_t k = 0; k < job.nheaders; k++) {
            names.push_back(job.headers[k].name);
            data.push_back(texts[k].c_str());
        }
        options.push_back(std::string("-arch=") + arch);
        for (const std::string &o : options) flags.push_back(o.c_str());
        void *program = nullptr;
        size_t n = 0;
        cr_assert_eq(create(&program, source.c_str(), "chain.cu", int(names.size()), data.data(), names.data()), 0);
        const int rc = compile(program, int(flags.size()), flags.data());
        log_size(program, &n);
        said->resize(n);
        log(program, &(*said)[0]);
        n = 0;
        if (rc == 0) size(program, &n);
        destroy(&program);
        return n;
    }
};

static bool make(const fuse_chain &f, ad_fuse_plan *p) {
    memset(static_cast<void *>(p), 0, sizeof *p);
    return ad_fuse_plan_make(&f.chain, 100, p);
}

/* Rows of every loop, as many in a chain as it has outputs: every second chain, for one architecture or the other. */
Test(fuse_source, rows_compile) {
    rtc compiler;
    if (!compiler.loaded) cr_skip_test("no libnvrtc");
    const auto rows = fuse_rows();
    cr_assert_gt(rows.size(), 600u);
    int chains = 0;
    for (int loop = 0; loop < AD_NDTYPE; loop++) {
        size_t at = 0;
        while (at < rows.size()) {
            fuse_chain f({5, 4});
            f.input(loop);
            f.input(loop, {4});
            f.input(loop, {5, 1});
            f.scalar(3);
            for (; at < rows.size() && f.chain.noutputs < AD_CHAIN_OUTPUTS - 1; at++) {
                if (rows[at].second != loop) continue;
                if (rows[at].first == AD_UFUNC_power && ad__dtypes[loop].kind == 'i')
                    f.node(rows[at].first, loop, {from_input(0), from_scalar(0)});
                else f.node(rows[at].first, loop, {from_input(0), from_input(1), from_input(2)});
                for (int k = 0; k < f.chain.node[f.chain.nnodes - 1].nout; k++) f.output(f.chain.nnodes - 1, k);
            }
            if (f.chain.nnodes == 0) break;
            if (chains++ % 2 != loop % 2) continue; /* tests/gpu has all of them */
            ad_fuse_plan p;
            std::string said;
            cr_assert(make(f, &p));
            const std::string source = ad_fuse_source(&f.chain, &p.form);
            cr_assert_gt(compiler.run(source, chains % 4 < 2 ? "sm_80" : "sm_90", &said), 0u, "%s\n%s", said.c_str(),
                         source.c_str());
        }
    }
    cr_assert_gt(chains, 40);
}

Test(fuse_source, random_chains_compile) {
    rtc compiler;
    if (!compiler.loaded) cr_skip_test("no libnvrtc");
    fuse_random r(7);
    for (int i = 0; i < 12; i++) {
        fuse_chain f(i % 3 == 0 ? std::vector<int64_t>{1000} : std::vector<int64_t>{3, 5, 8});
        fill_random(r, f, 1 + r.below(10));
        if (i % 3 == 1) std::swap(f.dims[0].strides[0], f.dims[0].strides[2]);
        if (i % 3 == 2) f.dims[0].strides[1] = 0;
        ad_fuse_plan p;
        std::string said;
        cr_assert(make(f, &p));
        const std::string source = ad_fuse_source(&f.chain, &p.form);
        cr_assert_gt(compiler.run(source, i % 2 ? "sm_80" : "sm_90", &said), 0u, "%s\n%s", said.c_str(),
                     source.c_str());
    }
}

/* ---- ends ---- */

static int end_dtype(int family, int dtype) {
    return family == AD_FOLD_SUMS && ad__dtypes[dtype].kind != 'f' && ad__dtypes[dtype].kind != 'c' ? AD_INT64 : dtype;
}

/* A chain of one row, and an end that reduces it; the reduction itself is not looked at. */
static bool make_end(fuse_chain &f, ad_op *op, ad_operand *operand, int dtype, int family, int way, ad_fuse_plan *p) {
    f.input(dtype);
    f.input(dtype, {f.shape.back()});
    f.scalar(2);
    f.node(AD_UFUNC_maximum, dtype, {from_input(0), from_scalar(0)});
    f.node(AD_UFUNC_add, dtype, {from_node(0), from_input(1)});
    op->nout = op->nin = 1;
    op->operand = operand;
    f.chain.end = {op, from_node(1)};
    operand[1].desc.dtype = uint8_t(dtype);
    const ad_fuse_end end = {uint8_t(family), uint8_t(way), uint8_t(dtype), uint8_t(end_dtype(family, dtype))};
    return ad_fuse_plan_end(&f.chain, &end, true, p);
}

/* States of all types, by one way of reading or the other: a third of them. */
Test(fuse_source, ends_compile) {
    rtc compiler;
    if (!compiler.loaded) cr_skip_test("no libnvrtc");
    int made = 0;
    fuse_random r(3);
    for (int family = AD_FOLD_SUMS; family <= AD_FOLD_PLACES; family++)
        for (int dtype = 0; dtype < AD_NDTYPE; dtype++) {
            if (dtype == AD_BOOL && (family == AD_FOLD_SUMS || family == AD_FOLD_TOPS)) continue;
            if (ad__dtypes[dtype].kind == 'c' && family >= AD_FOLD_TOPS) continue;
            if (r.below(3) != 0) continue; /* they take a while */
            const int way = ad__dtypes[dtype].size > 4 ? r.below(2) : r.below(3);
            fuse_chain f(r.below(3) ? std::vector<int64_t>{5, 64} : std::vector<int64_t>{64});
            ad_op op = {};
            ad_operand operand[2] = {};
            ad_fuse_plan p;
            std::string said;
            memset(static_cast<void *>(&p), 0, sizeof p);
            cr_assert(make_end(f, &op, operand, dtype, family, way, &p));
            const std::string source = ad_fuse_source(&f.chain, &p.form);
            cr_assert_gt(compiler.run(source, "sm_90", &said, true), 0u, "%s\n%s", said.c_str(), source.c_str());
            made++;
        }
    cr_assert_gt(made, 12);
}

/* ---- signatures ---- */

struct generated {
    std::string source;
    std::vector<uint8_t> key;
    explicit generated(const fuse_chain &f) {
        ad_fuse_plan p;
        if (!make(f, &p)) return;
        key.resize(AD_FUSE_KEY);
        key.resize(size_t(ad_fuse_signature(&f.chain, &p.form, key.data())));
        source = ad_fuse_source(&f.chain, &p.form);
    }
};

/* Something else than it was, and still a chain. */
static void change(fuse_random &r, fuse_chain &f) {
    ad_chain_node *n = &f.chain.node[r.below(f.chain.nnodes)];
    const int index = int(n - f.chain.node);
    switch (r.below(7)) {
    case 0: n->dtype[r.below(n->nout)] = uint8_t(r.below(AD_NDTYPE)); break;
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
        change(r, b);
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
    b.chain.input[0].data = reinterpret_cast<void *>(uintptr_t(4096));
    cr_assert(generated(a).key == generated(b).key);
    b.chain.input[0].data = reinterpret_cast<void *>(uintptr_t(4100)); /* no longer a vector */
    cr_assert(generated(a).key != generated(b).key);
}
