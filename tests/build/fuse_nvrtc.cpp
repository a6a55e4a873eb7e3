/* The source of chains: the compiler at run time takes it. */
#include <dlfcn.h>
#include <string>

#include "tests/unit/fuse_chain.h"
#include "protocol/rows_ufunc.h"

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
    size_t run(const std::string &source, const char *arch, std::string *said, int includes) const {
        ad_compile_job job;
        ad_fuse_job(source.data(), source.size(), arch, includes, &job);
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

/* The plan's source, for a GPU of that architecture. */
static void must_compile(const rtc &compiler, const fuse_chain &f, const ad_fuse_plan &p, const char *arch) {
    std::string said;
    const std::string source = ad_fuse_source(&f.chain, &p.form);
    cr_assert_gt(compiler.run(source, arch, &said, ad_fuse_includes(&p.form)), 0u, "%s\n%s", said.c_str(),
                 source.c_str());
}

/* Rows of every loop, as many in a chain as it has outputs: every second chain, for one architecture or the other. */
Test(fuse_nvrtc, rows_compile) {
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
            cr_assert(make_plan(f, &p));
            must_compile(compiler, f, p, chains % 4 < 2 ? "sm_80" : "sm_90");
        }
    }
    cr_assert_gt(chains, 40);
}

Test(fuse_nvrtc, random_chains_compile) {
    rtc compiler;
    if (!compiler.loaded) cr_skip_test("no libnvrtc");
    fuse_random r(7);
    for (int i = 0; i < 12; i++) {
        fuse_chain f(i % 3 == 0 ? std::vector<int64_t>{1000} : std::vector<int64_t>{3, 5, 8});
        fill_random(r, f, 1 + r.below(10));
        if (i % 3 == 1) std::swap(f.dims[0].strides[0], f.dims[0].strides[2]);
        if (i % 3 == 2) f.dims[0].strides[1] = 0;
        ad_fuse_plan p;
        cr_assert(make_plan(f, &p));
        must_compile(compiler, f, p, i % 2 ? "sm_80" : "sm_90");
    }
}

/* Every distribution and type, a few in each chain; some where what a chain ends with reads its elements. */
Test(fuse_nvrtc, random_sources_compile) {
    rtc compiler;
    if (!compiler.loaded) cr_skip_test("no libnvrtc");
    const auto rows = fuse_randoms();
    cr_assert_gt(rows.size(), 30u);
    for (size_t at = 0; at < rows.size();) {
        fuse_chain f({5, 8});
        f.scalar(3);
        for (; at < rows.size() && f.chain.nrandoms < AD_CHAIN_RANDOMS; at++) {
            f.random(rows[at].first, rows[at].second, at);
            f.node(AD_UFUNC_multiply, rows[at].second, {from_node(f.chain.nnodes - 1), from_scalar(0)});
            f.output(f.chain.nnodes - 1);
        }
        ad_fuse_plan p;
        cr_assert(make_plan(f, &p));
        must_compile(compiler, f, p, at % 8 < 4 ? "sm_80" : "sm_90");
    }
}

/* ---- ends ---- */

static int end_dtype(int family, int dtype) {
    return family == AD_FOLD_SUMS && ad__dtypes[dtype].kind != 'f' && ad__dtypes[dtype].kind != 'c' ? AD_INT64 : dtype;
}

/* A chain of one row, and an end that reduces it; the reduction itself is not looked at. */
static bool make_end(fuse_chain &f, ad_op *op, ad_operand *operand, int dtype, int family, int way, ad_fuse_plan *p) {
    const bool random = dtype == AD_FLOAT32 || dtype == AD_FLOAT64 || dtype == AD_INT16;
    f.input(dtype);
    f.input(dtype, {f.shape.back()});
    f.scalar(2);
    f.node(AD_UFUNC_maximum, dtype, {from_input(0), from_scalar(0)});
    if (random) f.random(dtype == AD_INT16 ? AD_RANDOM_integers : AD_RANDOM_normal, dtype, 3);
    f.node(AD_UFUNC_add, dtype, {from_node(0), random ? from_node(1) : from_input(1)});
    op->nout = op->nin = 1;
    op->operand = operand;
    f.chain.end = {op, from_node(f.chain.nnodes - 1)};
    operand[1].desc.dtype = uint8_t(dtype);
    const ad_fuse_end end = {uint8_t(family), uint8_t(way), uint8_t(dtype), uint8_t(end_dtype(family, dtype))};
    return ad_fuse_plan_end(&f.chain, &end, true, p);
}

/* States of all types, by one way of reading or the other: a third of them. */
Test(fuse_nvrtc, ends_compile) {
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
            memset(static_cast<void *>(&p), 0, sizeof p);
            cr_assert(make_end(f, &op, operand, dtype, family, way, &p));
            must_compile(compiler, f, p, "sm_90");
            made++;
        }
    cr_assert_gt(made, 12);
}

/* Types that scans read, and what they make of them: sums, then products. */
static std::vector<ad_fuse_end> scans() {
    std::vector<ad_fuse_end> all;
    for (int dtype = 0; dtype < AD_NDTYPE; dtype++) {
        const bool whole = ad__dtypes[dtype].kind != 'f' && ad__dtypes[dtype].kind != 'c';
        const int loop = !whole ? dtype : ad__dtypes[dtype].kind == 'u' ? AD_UINT64 : AD_INT64;
        all.push_back({AD_FUSE_SCAN_SUM, 0, uint8_t(dtype), uint8_t(loop)});
        if (loop == dtype) all.push_back({AD_FUSE_SCAN_PRODUCT, 0, uint8_t(dtype), uint8_t(loop)});
    }
    return all;
}

/* Every one in tiles or as rows, by whole vectors or not, of a few rows or of many. */
Test(fuse_nvrtc, scans_compile) {
    rtc compiler;
    if (!compiler.loaded) cr_skip_test("no libnvrtc");
    int i = 0;
    for (ad_fuse_end end : scans()) {
        fuse_chain f(i % 2 ? std::vector<int64_t>{5, 64} : std::vector<int64_t>{63});
        ad_op op = {};
        ad_operand operand[2] = {};
        ad_fuse_plan p;
        memset(static_cast<void *>(&p), 0, sizeof p);
        f.input(AD_FLOAT64);
        f.input(end.input, {f.shape.back()});
        f.scalar(2);
        f.random(AD_RANDOM_normal, AD_FLOAT32, 3);
        f.node(AD_UFUNC_add, AD_FLOAT64, {from_input(0), from_node(0)});
        if (i % 3 == 0) f.node(AD_UFUNC_sinh, AD_FLOAT64, {from_node(1)});
        f.node(AD_UFUNC_maximum, end.input, {from_node(f.chain.nnodes - 1), from_input(1)});
        op.nout = op.nin = 1;
        op.operand = operand;
        f.chain.end = {&op, from_node(f.chain.nnodes - 1)};
        end.way = uint8_t(i++ / 2 % 2 ? AD_SCAN_TILED : AD_SCAN_ROWS);
        cr_assert(ad_fuse_plan_end(&f.chain, &end, f.shape.size() > 1, &p));
        must_compile(compiler, f, p, i % 3 ? "sm_90" : "sm_80");
    }
}

/* As many operations and formulas as go together, each with operands of its own. */
Test(fuse_nvrtc, what_goes_together_compiles) {
    rtc compiler;
    if (!compiler.loaded) cr_skip_test("no libnvrtc");
    for (int nodes : {1, 4}) {
        const int parts = nodes == 1 ? 16 : 4;
        fuse_chain f({7, 5});
        ad_fuse_plan p;
        memset(static_cast<void *>(&p), 0, sizeof p);
        for (int k = 0; k < parts; k++) {
            f.input(AD_FLOAT32);
            f.input(AD_FLOAT32);
            f.node(AD_UFUNC_add, AD_FLOAT32, {from_input(2 * k), from_input(2 * k + 1)});
            for (int i = 1; i < nodes; i++)
                f.node(AD_UFUNC_multiply, AD_FLOAT32, {from_node(f.chain.nnodes - 1), from_input(2 * k)});
            f.output(f.chain.nnodes - 1);
        }
        cr_assert(ad_fuse_plan_make(&f.chain, 132, &p));
        must_compile(compiler, f, p, "sm_90");
    }
}
