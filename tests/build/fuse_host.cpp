/* Kernels of chains on the host. The host's compiler compiles their source, with a few words of CUDA written out. They
 * must find every element of every operand where it is, whatever the layout, and touch nothing else. */
#include <dlfcn.h>
#include <fstream>
#include <stdlib.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/fuse_chain.h"
#include "protocol/rows_ufunc.h"

static const char cuda_text[] = R"(
#include <math.h>
#include <stdint.h>
#include <string.h>
#define __CUDACC__
#define __CUDACC_RTC__
#define __device__
#define __host__
#define __global__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __grid_constant__
struct uint2 { unsigned x, y; };
struct uint4 { unsigned x, y, z, w; };
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
static struct { unsigned x; } blockIdx, threadIdx;
inline unsigned __umulhi(unsigned a, unsigned b) { return unsigned(uint64_t(a) * b >> 32); }
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) {
    return unsigned((uint64_t(high) << 32 | low) >> (by & 31));
}
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned which) {
    const uint64_t all = uint64_t(b) << 32 | a;
    unsigned r = 0;
    for (int i = 0; i < 4; i++) r |= unsigned(all >> (which >> 4 * i & 7) * 8 & 255) << 8 * i;
    return r;
}
)";

static void write_file(const std::string &path, const std::string &text) {
    for (size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1))
        mkdir(path.substr(0, at).c_str(), 0700);
    std::ofstream(path) << text;
}

/* ---- layouts ---- */

/* Memory that views are laid into, and the views, in one way or another. */
struct room {
    std::vector<std::vector<char>> blocks;

    char *take(fuse_random &r, int64_t size) {
        blocks.emplace_back(size_t(size) + 128);
        for (char &c : blocks.back()) c = char(r.below(100));
        return blocks.back().data() + (64 - (reinterpret_cast<uintptr_t>(blocks.back().data()) & 63));
    }
    /* Any order of dimensions, gaps, directions; not always where a vector begins. */
    void lay(fuse_random &r, ad_operand *o, fuse_chain::dimensions *d, bool turned) {
        const int n = o->desc.ndim, size = ad__dtypes[o->desc.dtype].size;
        int order[AD_MAX_NDIM];
        int64_t step = r.below(4) ? size : size * (1 + r.below(3)), offset = 0;
        for (int k = 0; k < n; k++) order[k] = k;
        if (turned)
            for (int k = n - 1; k > 0; k--) std::swap(order[k], order[r.below(k + 1)]);
        for (int k = n - 1; k >= 0; k--) {
            const int at = order[k];
            d->strides[at] = step;
            step *= d->shape[at];
            if (r.below(6) != 0) continue;
            offset += d->strides[at] * (d->shape[at] - 1);
            d->strides[at] = -d->strides[at];
        }
        o->data = take(r, step + 64) + (r.below(3) ? 0 : size * r.below(4)) + offset;
    }
};

static const int TYPES[] = {AD_INT8, AD_INT16, AD_INT32, AD_UINT8, AD_FLOAT32, AD_FLOAT64};

static std::vector<int64_t> any_shape(fuse_random &r) {
    switch (r.below(4)) {
    case 0: return {int64_t(1 + r.below(5000))};
    case 1: return {int64_t(60 + r.below(60)), int64_t(70 + r.below(60))};
    case 2: return {int64_t(1 + r.below(12)), int64_t(1 + r.below(12)), int64_t(4 * (1 + r.below(12)))};
    default: return std::vector<int64_t>(size_t(r.below(5)), 1 + r.below(7));
    }
}

static void fill_memory(fuse_random &r, fuse_chain &f, room &memory) {
    static const int rows[] = {AD_UFUNC_add, AD_UFUNC_multiply, AD_UFUNC_maximum, AD_UFUNC_subtract, AD_UFUNC_divmod};
    for (int k = r.below(3); k >= 0; k--) {
        std::vector<int64_t> own = f.shape;
        for (int64_t &n : own) n = r.below(5) ? n : 1;
        if (!own.empty() && r.below(6) == 0) own.erase(own.begin());
        fuse_chain::dimensions *d = f.input(TYPES[r.below(6)], own);
        memory.lay(r, &f.chain.input[f.chain.ninputs - 1], d, r.below(3) == 0);
    }
    f.scalar(3);
    if (r.below(3) == 0) any_random(r, f);
    for (int k = r.below(4); k >= 0; k--) {
        const ad_source x = any_source(r, f), y = any_source(r, f);
        f.node(rows[r.below(5)], TYPES[r.below(6)], {x, y});
    }
    for (int k = r.below(3); k >= 0; k--) {
        const int node = r.below(f.chain.nnodes);
        fuse_chain::dimensions *d = f.output(node, r.below(f.chain.node[node].nout));
        memory.lay(r, &f.chain.output[f.chain.noutputs - 1].view, d, r.below(5) == 0);
    }
}

/* Find the address of element e of a chain. */
static char *get_address(const ad_chain *c, const ad_operand *o, int64_t e) {
    char *p = static_cast<char *>(o->data);
    for (int d = c->ndim - 1; d >= 0; d--) {
        const int own = d - (c->ndim - o->desc.ndim);
        if (own >= 0 && o->desc.shape[own] != 1) p += e % c->shape[d] * o->desc.strides[own];
        e /= c->shape[d];
    }
    return p;
}

/* ---- programs ---- */

static std::string replaced(std::string text, const std::string &what, const std::string &by) {
    for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
        text.replace(at, what.size(), by);
    return text;
}

/* The kernel for all blocks and threads, and its element by itself, under names that end with a number. */
static std::string functions(const ad_fuse_plan *p, std::string source, int number) {
    const ad_fuse_form *f = &p->form;
    const std::string n = std::to_string(number);
    const std::string argument =
        "ad::fuse_argument<" + std::to_string(ad_fuse_operands(f)) + ", " + std::to_string(ad_fuse_scalars(f)) + ">";
    source = replaced(replaced(source, "element(", "element" + n + "("), AD_FUSE_KERNEL, "kernel" + n);
    source += "extern \"C\" void run" + n + "(const " + argument + " *a, unsigned blocks) {\n" +
              "    for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++)\n" +
              "        for (threadIdx.x = 0; threadIdx.x < 256; threadIdx.x++) kernel" + n + "(*a);\n}\n" +
              "extern \"C\" void alone" + n + "(char **at, const " + argument + " *a, uint64_t e) {\n" +
              "    using namespace ad;\n    (void)a, (void)e;\n    element" + n + "(";
    for (int k = 0; k < f->nin; k++)
        source += std::string("*reinterpret_cast<t_") + ad__dtypes[f->dtype[f->nout + k]].name + " *>(at[" +
                  std::to_string(f->nout + k) + "]), ";
    for (int k = 0; k < f->nrandoms; k++)
        source += "random_by_itself<" + std::to_string(f->random[k]) + ", t_" +
                  ad__dtypes[f->dtype[f->nout + f->nin + k]].name + ">(a->scalar + " +
                  std::to_string(f->nscalars + 2 * k) + ", e + uint64_t(a->op[" + std::to_string(f->nout + f->nin + k) +
                  "].base)), ";
    for (int k = 0; k < f->nscalars; k++)
        source += std::string("fuse_scalar<t_") + ad__dtypes[p->scalar_dtype[k]].name + ">(a->scalar[" +
                  std::to_string(k) + "]), ";
    for (int k = 0; k < f->nout; k++)
        source += std::string(k ? ", " : "") + "*reinterpret_cast<t_" + ad__dtypes[f->dtype[k]].name + " *>(at[" +
                  std::to_string(k) + "])";
    return source + ");\n}\n";
}

/* A number of a random source, made from its own block. */
static const char reference_text[] = R"(
template <int Id, class S> S random_by_itself(const ad_fuse_scalar *scalar, uint64_t e) {
    using namespace ad;
    fuse_random_value v;
    memcpy(&v, scalar, sizeof v);
    if constexpr (same<S, float> || same<S, double>) {
        random_parameters<S> p;
        memcpy(&p.a, v.parameter, sizeof p.a);
        memcpy(&p.b, v.parameter + 1, sizeof p.b);
        memcpy(&p.c, v.parameter + 2, sizeof p.c);
        return random_element<Id>(v.key, e, p);
    } else return S(v.parameter[0] + random_integer(v.parameter[1], v.key, e));
}
)";

/* Parameters that are good for all: 1, 1.5, 2; integers from -5 on, few or many. */
static void store_random(const ad_chain_random *r, ad_fuse_scalar *to) {
    uint64_t value[4] = {r->key};
    for (int k = 0; k < 3; k++) {
        const double wide = 1 + k * 0.5;
        const float single = float(wide);
        if (r->loop == AD_FLOAT32) memcpy(value + 1 + k, &single, sizeof single);
        else memcpy(value + 1 + k, &wide, sizeof wide);
    }
    if (ad__distribution(r->id)->loops != AD_RANDOM_REAL) {
        value[1] = uint64_t(-5);
        value[2] = r->first % 2 && ad__dtypes[r->loop].size == 8 ? uint64_t(1) << 40 : 100;
    }
    memcpy(static_cast<void *>(to), value, sizeof value);
}

/* All scalars are 3. */
static void store_scalars(ad_fuse_plan *p, const ad_chain *chain) {
    ad_fuse_scalar *to = reinterpret_cast<ad_fuse_scalar *>(&p->operand[ad_fuse_operands(&p->form)]);
    for (int k = 0; k < p->form.nrandoms; k++) store_random(&chain->random[k], to + p->form.nscalars + 2 * k);
    for (int k = 0; k < p->form.nscalars; k++) {
        const float single = 3;
        const double wide = 3;
        const int64_t whole = 3;
        const int dtype = p->scalar_dtype[k];
        memcpy(to[k].bytes,
               dtype == AD_FLOAT32   ? static_cast<const void *>(&single)
               : dtype == AD_FLOAT64 ? static_cast<const void *>(&wide)
                                     : &whole,
               8 - 4 * (dtype == AD_FLOAT32));
    }
}

struct program {
    fuse_chain chain;
    room memory;
    ad_fuse_plan plan;
    explicit program(std::vector<int64_t> shape) : chain(std::move(shape)) {
        memset(static_cast<void *>(&plan), 0, sizeof plan);
    }
};

/* Get all memory of the program after all elements were computed one by one, or by the kernel. */
static std::vector<std::vector<char>> ran(program *p, void *library, int number, bool kernel) {
    const ad_chain *c = &p->chain.chain;
    const ad_fuse_form *f = &p->plan.form;
    const std::string name = (kernel ? "run" : "alone") + std::to_string(number);
    void *function = dlsym(library, name.c_str());
    cr_assert_not_null(function);
    const std::vector<std::vector<char>> before = p->memory.blocks;
    int64_t count = 1;
    for (int d = 0; d < c->ndim; d++) count *= c->shape[d];
    if (kernel) reinterpret_cast<void (*)(void *, unsigned)>(function)(&p->plan.head, p->plan.blocks);
    for (int64_t e = 0; e < count && !kernel; e++) {
        char *at[AD_FUSE_OPERANDS];
        for (int k = 0; k < f->nout; k++) at[k] = get_address(c, &c->output[k].view, e);
        for (int k = 0; k < f->nin; k++) at[f->nout + k] = get_address(c, &c->input[k], e);
        reinterpret_cast<void (*)(char **, void *, uint64_t)>(function)(at, &p->plan.head, uint64_t(e));
    }
    std::vector<std::vector<char>> after = p->memory.blocks;
    for (size_t k = 0; k < before.size(); k++) /* back into the same memory: addresses stay */
        memcpy(p->memory.blocks[k].data(), before[k].data(), before[k].size());
    return after;
}

Test(fuse_host, kernels_find_their_elements) {
    char folder[] = "/tmp/fuse-XXXXXX";
    cr_assert_not_null(mkdtemp(folder));
    const std::string at = folder;
    size_t headers;
    const ad_compile_header *header = ad_fuse_headers(AD_FUSE_WITH_RANDOM, &headers);
    for (size_t k = 0; k < headers; k++)
        if (strchr(header[k].name, '/') != nullptr)
            write_file(at + "/" + header[k].name, std::string(header[k].text.data, header[k].text.size));
    fuse_random r(11);
    std::vector<program *> all;
    std::string text = std::string(cuda_text) +
                       "#include \"kernels/math.h\"\n#include \"kernels/cuda/fuse/random.cuh\"\n" + reference_text;
    int widths[17] = {}, tiled = 0, stepped = 0;
    const auto has_all_forms = [&] {
        return widths[1] && widths[2] && widths[4] && widths[8] && widths[16] && tiled > 2 && stepped > 5;
    };
    for (int i = 0; i < 120 || (i < 480 && !has_all_forms()); i++) {
        program *p = new program(any_shape(r));
        fill_memory(r, p->chain, p->memory);
        cr_assert(ad_fuse_plan_make(&p->chain.chain, 2, &p->plan));
        if (i % 4 == 0 && p->plan.form.width > 1)
            p->plan.form.step = uint8_t(1 + (i % 8 == 0 && p->plan.form.width > 2));
        store_scalars(&p->plan, &p->chain.chain);
        text += functions(&p->plan, replaced(ad_fuse_source(&p->chain.chain, &p->plan.form), "#include", "//"), i);
        widths[p->plan.form.width]++;
        tiled += p->plan.form.tiled;
        stepped += p->plan.form.step < p->plan.form.width;
        all.push_back(p);
    }
    cr_assert(has_all_forms());
    write_file(at + "/all.cpp", text);
    const std::string compile =
        "c++ -std=c++17 -O1 -w -fwrapv -ffp-contract=off -fno-strict-aliasing -fPIC -shared -I" + at + " " + at +
        "/all.cpp -o " + at + "/all.so";
    cr_assert_eq(system(compile.c_str()), 0);
    void *library = dlopen((at + "/all.so").c_str(), RTLD_NOW);
    cr_assert_not_null(library, "%s", dlerror());
    for (size_t i = 0; i < all.size(); i++) {
        [[maybe_unused]] const ad_fuse_form *f = &all[i]->plan.form;
        cr_expect(ran(all[i], library, int(i), false) == ran(all[i], library, int(i), true),
                  "chain %zu: outer %d, width %d, step %d, unroll %d, tiled %d", i, f->outer, f->width, f->step,
                  f->unroll, f->tiled);
        delete all[i];
    }
    dlclose(library);
    cr_assert_eq(system(("rm -r " + at).c_str()), 0);
}
