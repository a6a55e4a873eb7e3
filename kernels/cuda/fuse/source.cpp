/* Chains as CUDA source and as signatures. */
#include "kernels/cuda/fuse/fuse.h"

#include <string.h>

#include "protocol/infer.h"
#include "protocol/rows_ufunc.h"
#include "protocol/tables.h"

namespace {

struct writer {
    std::string text;
    writer &operator<<(const char *s) {
        text += s;
        return *this;
    }
    writer &operator<<(const std::string &s) {
        text += s;
        return *this;
    }
    writer &operator<<(int n) {
        text += std::to_string(n);
        return *this;
    }
};

std::string type(int dtype) { return std::string("t_") + ad__dtypes[dtype].name; }
std::string number(const char *prefix, int n) { return prefix + std::to_string(n); }

const ad_rule_row *rule_of(const ad_chain_node *n) { return &ad__rules[ad__ufunc(n->row)->rule]; }

/* ---- the element ---- */

/* Get the name of a source; scalars count up, one name for each use. */
std::string name_of(const ad_source &s, int *scalars) {
    if (s.kind == AD_SOURCE_INPUT) return number("i", s.index);
    if (s.kind == AD_SOURCE_SCALAR) return number("s", (*scalars)++);
    if (s.kind == AD_SOURCE_RANDOM) return number("g", s.index);
    return number("v", s.index) + (s.part ? "b" : "");
}

/* Get the name of input k; random inputs come after the others. */
std::string name_of_operand(const ad_fuse_form *f, int k) {
    return k < f->nin ? number("i", k) : number("g", k - f->nin);
}

int dtype_of(const ad_chain *c, const ad_fuse_form *f, const ad_chain_node *n) {
    const ad_source *s = &n->source[0];
    return s->kind == AD_SOURCE_INPUT    ? f->dtype[f->nout + s->index]
           : s->kind == AD_SOURCE_RANDOM ? f->dtype[f->nout + f->nin + s->index]
           : s->kind == AD_SOURCE_NODE   ? c->node[s->index].dtype[s->part]
                                         : ad_fuse_wants(n, 0);
}

/* Rows that move their input do that by themselves too, bit by bit. */
bool only_moves(const ad_chain *c, const ad_fuse_form *f, const ad_chain_node *n) {
    const bool real = ad__dtypes[n->loop].kind != 'c';
    const bool moves = n->row == AD_UFUNC_copy || n->row == AD_UFUNC_positive ||
                       (real && (n->row == AD_UFUNC_conjugate || n->row == AD_UFUNC_real));
    return moves && dtype_of(c, f, n) == n->dtype[0] && n->dtype[0] == n->loop;
}

/* Write the statement that computes a node, in the steps of apply() in kernels/ufunc.h. Inputs are as the rule wants
 * them. The node is computed in the loop's type, and rounded to what the row gives and then to what is stored. */
void write_node(writer &w, const ad_chain *c, const ad_fuse_form *f, int index, int *scalars) {
    const ad_chain_node *n = &c->node[index];
    static const char *const operand[] = {"x", "y", "z"};
    const ad_ufunc_row *row = ad__ufunc(n->row);
    const bool negates = n->row == AD_UFUNC_negative;
    const std::string name = number("v", index);
    std::string given[2];
    w << "    " << type(n->dtype[0]) << " " << name << ";\n";
    if (n->nout > 1) w << "    " << type(n->dtype[1]) << " " << name << "b;\n";
    if (only_moves(c, f, n)) {
        w << "    " << name << " = " << name_of(n->source[0], scalars) << "; /* " << row->name << " */\n";
        return;
    }
    w << "    { /* " << row->name << " */\n        using S = " << type(n->loop) << ";\n";
    for (int k = 0; k < n->nin; k++) {
        const std::string want = type(ad_fuse_wants(n, k));
        w << "        const compute_t<" << want << "> " << operand[k] << " = " << (negates ? "fuse_apart" : "")
          << "(load(cast<" << want << ">(" << name_of(n->source[k], scalars) << ")));\n";
    }
    for (int k = 0; k < n->nout; k++) {
        given[k] = type(ad__code_dtype(rule_of(n)->out[k], n->loop));
        w << "        compute_t<" << given[k] << "> r" << k << ";\n";
    }
    if (n->nout > 1) w << "        " << row->expression << ";\n";
    else w << "        r0 = cast<compute_t<" << given[0] << ">>(" << row->expression << ");\n";
    if (negates) w << "        r0 = fuse_apart(r0);\n";
    for (int k = 0; k < n->nout; k++)
        w << "        " << name << (k ? "b" : "") << " = cast<" << type(n->dtype[k]) << ">(" << given[k] << "(r" << k
          << "));\n";
    w << "    }\n";
}

void write_element(writer &w, const ad_chain *c, const ad_fuse_form *f, const std::string *scalar_types) {
    int scalars = 0, unused = 0;
    w << "__device__ __forceinline__ void element(";
    for (int k = 0; k < f->nin + f->nrandoms; k++)
        w << type(f->dtype[f->nout + k]) << " " << name_of_operand(f, k) << ", ";
    for (int k = 0; k < f->nscalars; k++) w << scalar_types[k] << " s" << k << ", ";
    for (int k = 0; k < f->nout; k++) w << type(f->dtype[k]) << " &o" << k << (k + 1 < f->nout ? ", " : ") {\n");
    for (int i = 0; i < c->nnodes; i++) write_node(w, c, f, i, &scalars);
    for (int k = 0; k < f->nout; k++)
        w << "    o" << k << " = cast<" << type(f->dtype[k]) << ">(" << name_of(f->from[k], &unused) << ");\n";
    w << "}\n";
}

/* ---- the kernel ---- */

void write_head(writer &w, const ad_fuse_form *f, const std::string *scalar_types) {
    w << "extern \"C\" __global__ void __launch_bounds__(" << AD_FUSE_THREADS << ")\n    " AD_FUSE_KERNEL
      << "(const __grid_constant__ ad::fuse_argument<" << ad_fuse_operands(f) << ", " << ad_fuse_scalars(f)
      << "> p) {\n"
      << "    using namespace ad;\n    constexpr int V = " << f->width << ", N = " << f->step << ", U = " << f->unroll
      << ", D = " << f->outer << ";\n    constexpr bool R = " << (f->ragged ? "true" : "false") << ";\n"
      << "    const uint32_t first = blockIdx.x * p.head.block + threadIdx.x;\n    fuse_place<D> at[U];\n";
    for (int k = 0; k < f->nscalars; k++)
        w << "    const " << scalar_types[k] << " s" << k << " = fuse_scalar<" << scalar_types[k] << ">(p.scalar[" << k
          << "]);\n";
    for (int k = 0; k < f->nin + f->nrandoms; k++) {
        const std::string t = type(f->dtype[f->nout + k]), name = name_of_operand(f, k);
        if (f->place[f->nout + k] == AD_FUSE_ONE) w << "    " << t << " " << name << "[U];\n";
        else w << "    vec<" << t << ", V> " << name << "[U];\n";
    }
}

void write_load(writer &w, const ad_fuse_form *f, int k, const char *ragged, const char *at) {
    const int place = f->place[f->nout + k];
    const std::string t = type(f->dtype[f->nout + k]);
    if (place == AD_FUSE_RANDOM) {
        w << "fuse_random<" << int(f->random[k - f->nin]) << ", " << t << ", V>(p.op[" << f->nout + k << "], " << at
          << ", p.scalar + " << f->nscalars + 2 * (k - f->nin) << ");\n";
        return;
    }
    w << (place == AD_FUSE_ONE     ? "fuse_load_one<" + t + ">"
          : place == AD_FUSE_APART ? "fuse_load_strided<" + t + ", V>"
                                   : "fuse_load<" + t + ", V, " + ragged + ">")
      << "(p.op[" << f->nout + k << "], " << at << ");\n";
}

void write_loads(writer &w, const ad_fuse_form *f) {
    w << "    begin();\n#pragma unroll\n    for (int u = 0; u < U; u++) {\n        at[u] = "
      << (f->tiled ? "fuse_locate_tile<D, U>(p.head, u)" : "fuse_locate<D, V, R>(p.head, first + u * p.head.step)")
      << ";\n        if (at[u].count == 0) continue;\n";
    for (int k = 0; k < f->nin + f->nrandoms; k++) {
        w << "        " << name_of_operand(f, k) << "[u] = ";
        write_load(w, f, k, "R", "at[u]");
    }
    w << "    }\n";
}

/* A call of element for each of the N that are next; chunk: what comes after the inputs' names. */
void write_call(writer &w, const ad_fuse_form *f, const char *indent, const char *chunk) {
    w << indent << "for (int i = 0; i < N; i++)\n" << indent << "    element(";
    for (int k = 0; k < f->nin + f->nrandoms; k++)
        w << name_of_operand(f, k) << chunk << (f->place[f->nout + k] == AD_FUSE_ONE ? ", " : ".get(i), ");
    for (int k = 0; k < f->nscalars; k++) w << "s" << k << ", ";
    for (int k = 0; k < f->nout; k++) w << "e" << k << (k + 1 < f->nout ? "[i], " : "[i]);\n");
}

void write_stores(writer &w, const ad_fuse_form *f, bool packed) {
    for (int k = 0; k < f->nout; k++)
        w << "        " << (f->place[k] == AD_FUSE_APART ? "fuse_store_strided" : "fuse_store<R>") << "(p.op[" << k
          << "], at[u], " << (packed ? number("pack(e", k) + ")" : number("o", k)) << ");\n";
}

/* Write the steps of a chunk whose elements are computed a few at a time. They pass through the first places, so no
 * register is indexed. */
void write_steps(writer &w, const ad_fuse_form *f) {
    for (int k = 0; k < f->nout; k++) w << "        vec<" << type(f->dtype[k]) << ", V> o" << k << " = {};\n";
    w << "#pragma unroll 1\n        for (int n = 0; n < V; n += N) {\n";
    for (int k = 0; k < f->nout; k++) w << "            " << type(f->dtype[k]) << " e" << k << "[N];\n";
    w << "#pragma unroll\n";
    write_call(w, f, "            ", "[u]");
    for (int k = 0; k < f->nin + f->nrandoms; k++)
        if (f->place[f->nout + k] != AD_FUSE_ONE)
            w << "            shift(" << name_of_operand(f, k) << "[u], vec<" << type(f->dtype[f->nout + k])
              << ", N>{});\n";
    for (int k = 0; k < f->nout; k++) w << "            shift(o" << k << ", pack(e" << k << "));\n";
    w << "        }\n";
    write_stores(w, f, false);
}

void write_body(writer &w, const ad_fuse_form *f) {
    w << "#pragma unroll\n    for (int u = 0; u < U; u++) {\n        if (at[u].count == 0) continue;\n";
    if (f->step < f->width) {
        write_steps(w, f);
    } else {
        for (int k = 0; k < f->nout; k++) w << "        " << type(f->dtype[k]) << " e" << k << "[N];\n";
        w << "#pragma unroll\n";
        write_call(w, f, "        ", "[u]");
        write_stores(w, f, true);
    }
    w << "    }\n}\n";
}

/* ---- the kernel of an end ---- */

/* The state of the kernels that reduce/reduce.cpp would take: reduce/sum.cu, reduce/count.cu, reduce/extreme.cu. */
std::string state_of(const ad_fuse_end *e) {
    const ad_dtype_row *d = &ad__dtypes[e->input];
    const bool whole = d->kind != 'f' && d->kind != 'c', half = d->kind == 'f' && d->size == 2;
    const std::string bits = std::to_string(d->size * 8) + "_t";
    if (e->family == AD_FOLD_COUNTS)
        return "count_state<" + (whole ? "uint" + bits : half ? "half" : type(e->input)) + ">";
    if (e->family == AD_FOLD_SUMS) {
        const std::string small = (d->kind == 'u' && d->size < 8 ? "uint" : "int") + bits;
        return whole ? "sum_state<" + small + ", int64_t>"
                     : "sum_state<" + type(e->input) + ", " + (half ? "float" : type(e->loop)) + ">";
    }
    const std::string name = e->family == AD_FOLD_TOPS ? "top_state<" : "place_state<";
    return name + (d->kind == 'b' ? "bool8" : "int" + bits) + (whole ? ", false>" : ", true>");
}

std::string argument_of_end(const ad_fuse_form *f) {
    return std::string(ad_fuse_scans(f) ? "fuse_scan<" : "fuse_fold<") + std::to_string(ad_fuse_operands(f)) + ", " +
           std::to_string(ad_fuse_scalars(f)) + ">";
}

void write_values(writer &w, const ad_fuse_form *f, const std::string *scalar_types) {
    const std::string value = type(f->dtype[0]);
    w << "struct values {\n    static constexpr bool ROLLED = " << (f->unroll > 1 ? "false" : "true") << ";\n"
      << "    template <int V, class End> static __device__ __forceinline__ vec<" << value
      << ", V> chunk(const End &end, int64_t first) {\n        constexpr int D = " << f->outer << ", N = V < "
      << f->step << " ? V : " << f->step << ";\n        const auto &p = reinterpret_cast<const " << argument_of_end(f)
      << " &>(end).chain;\n"
      << "        const fuse_place<D> at = fuse_locate_element<D, V>(p.head, first);\n";
    for (int k = 0; k < f->nscalars; k++)
        w << "        const " << scalar_types[k] << " s" << k << " = fuse_scalar<" << scalar_types[k] << ">(p.scalar["
          << k << "]);\n";
    for (int k = 0; k < f->nin + f->nrandoms; k++) {
        w << "        auto " << name_of_operand(f, k) << " = ";
        write_load(w, f, k, "false", "at");
    }
    w << "        vec<" << value << ", V> o = {};\n#pragma unroll 1\n        for (int n = 0; n < V; n += N) {\n"
      << "            " << value << " e0[N];\n#pragma unroll\n";
    write_call(w, f, "            ", "");
    for (int k = 0; k < f->nin + f->nrandoms; k++)
        if (f->place[f->nout + k] != AD_FUSE_ONE)
            w << "            shift(" << name_of_operand(f, k) << ", vec<" << type(f->dtype[f->nout + k])
              << ", N>{});\n";
    w << "            shift(o, pack(e0));\n        }\n        return o;\n    }\n};\n";
}

/* The kernels' scan_op: call/scan/sum.cu, call/scan/product.cu. */
std::string scan_of(const ad_fuse_end *e) {
    const ad_dtype_row *d = &ad__dtypes[e->input];
    const std::string input = d->kind == 'b' ? "bool8" : e->input == AD_UINT64 ? "int64_t" : type(e->input);
    const std::string loop = e->loop == AD_UINT64 ? "int64_t" : type(e->loop);
    return "scan_op<" + input + ", " + loop + (e->family == AD_FUSE_SCAN_PRODUCT ? ", true>" : ", false>");
}

void write_scan(writer &w, const ad_fuse_form *f) {
    w << "extern \"C\" __global__ void __launch_bounds__(" << AD_SCAN_THREADS << ", 2)\n    " AD_FUSE_KERNEL
      << "(const __grid_constant__ ad::" << argument_of_end(f) << " p) {\n"
      << "    using namespace ad;\n    begin();\n    " << (f->end.way == AD_SCAN_TILED ? "scan_tile<" : "scan_short<")
      << scan_of(&f->end) << ", fuse_scanned<values>>(p.scan);\n}\n";
}

void write_end(writer &w, const ad_fuse_form *f) {
    const bool wide = f->end.way == AD_FOLD_WIDE;
    /* The kernel gets as many registers as all loads of a step need. Otherwise the compiler saves them, and loads come
     * one by one. */
    w << "extern \"C\" __global__ void __launch_bounds__(" << AD_FOLD_THREADS << (f->unroll > 1 ? ", 2" : "")
      << ")\n    " AD_FUSE_KERNEL << "(const __grid_constant__ ad::" << argument_of_end(f) << " p) {\n"
      << "    using namespace ad;\n    begin();\n    fold_all<" << (wide ? "fuse_wide_work<" : "fuse_step_work<")
      << state_of(&f->end) << ", values";
    if (!wide) w << ", " << f->width;
    w << ">>(p.fold);\n}\n";
}

/* ---- signatures ---- */

struct bytes {
    uint8_t *to, *end;
    void add(int value) {
        if (to < end) *to = uint8_t(value);
        to++;
    }
};

void add_node(bytes &b, const ad_chain_node *n) {
    b.add(n->row);
    b.add(n->row >> 8);
    b.add(n->loop);
    b.add(n->nin << 4 | n->nout);
    for (int k = 0; k < n->nout; k++) b.add(n->dtype[k]);
    for (int k = 0; k < n->nin; k++) {
        b.add(n->source[k].kind << 4 | n->source[k].part);
        /* A scalar has its place in the argument by the order of uses. */
        if (n->source[k].kind != AD_SOURCE_SCALAR) b.add(n->source[k].index);
    }
}

} // namespace

int ad_fuse_wants(const ad_chain_node *node, int k) { return ad__code_dtype(rule_of(node)->in[k], node->loop); }

std::string ad_fuse_source(const ad_chain *chain, const ad_fuse_form *form) {
    writer w;
    std::string scalar_types[AD_FUSE_SCALARS];
    int scalars = 0;
    for (int i = 0; i < chain->nnodes; i++)
        for (int k = 0; k < chain->node[i].nin; k++)
            if (chain->node[i].source[k].kind == AD_SOURCE_SCALAR)
                scalar_types[scalars++] = type(ad_fuse_wants(&chain->node[i], k));
    w << "#include \"kernels/math.h\"\n#include \"kernels/special.h\"\n#include \"kernels/cuda/fuse/"
      << (ad_fuse_scans(form)                     ? "scan.cuh"
          : form->end.family != AD_FOLD_NO_FAMILY ? "fold.cuh"
                                                  : "device.cuh")
      << "\"\n"
      << (form->nrandoms ? "#include \"kernels/cuda/fuse/random.cuh\"\n" : "") << "\nnamespace ad {\n"
      << "inline namespace AD_ISA {\n\n";
    write_element(w, chain, form, scalar_types);
    const bool end = form->end.family != AD_FOLD_NO_FAMILY;
    if (end) write_values(w, form, scalar_types);
    w << "\n} // namespace AD_ISA\n} // namespace ad\n\n";
    if (end) {
        if (ad_fuse_scans(form)) write_scan(w, form);
        else write_end(w, form);
        return w.text;
    }
    write_head(w, form, scalar_types);
    write_loads(w, form);
    write_body(w, form);
    return w.text;
}

int ad_fuse_signature(const ad_chain *chain, const ad_fuse_form *form, uint8_t *key) {
    bytes b = {key, key + AD_FUSE_KEY};
    b.add(chain->nnodes);
    b.add(form->nout);
    b.add(form->nin);
    b.add(form->outer << 2 | form->tiled << 1 | form->ragged);
    b.add(form->width);
    b.add(form->step);
    b.add(form->unroll);
    b.add(form->end.family);
    b.add(form->end.way);
    b.add(form->end.input);
    b.add(form->end.loop);
    b.add(form->nrandoms);
    for (int k = 0; k < form->nrandoms; k++) b.add(form->random[k]);
    for (int k = 0; k < ad_fuse_operands(form); k++) b.add(form->dtype[k] << 2 | form->place[k]);
    for (int k = 0; k < form->nout; k++) {
        b.add(form->from[k].index);
        b.add(form->from[k].part);
    }
    for (int i = 0; i < chain->nnodes; i++) add_node(b, &chain->node[i]);
    return b.to <= b.end ? int(b.to - key) : 0;
}
