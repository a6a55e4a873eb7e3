/* Matrix products by loops: integers, bool, and matrices too small for a library call. */
#include "kernels/cpu/call/matmul.h"

#include <algorithm>
#include <string.h>

#include "kernels/math.h"
#include "kernels/math_complex.h"

namespace {

using namespace ad;

/* The size of a panel of b. It stays in the second-level cache while all rows of a go over it. The piece of c's row
 * that it adds to stays in the first. */
constexpr int64_t PANEL_ROWS = 64, PANEL_COLUMNS = 256;
constexpr int64_t FEW_ROWS = 4; /* below, copying a panel costs more than it saves */

/* Elements as what is computed in: integers unsigned, where wrapping is defined; bool as 0 or 1. */
template <class S> struct element {
    using type = S;
    static S of(S v) { return v; }
    static S add(S a, S b) { return adm::add(a, b); }
    static S mul(S a, S b) { return adm::mul(a, b); }
};
template <> struct element<bool8> {
    using type = uint8_t;
    static uint8_t of(bool8 v) { return uint8_t(bool(v)); }
    static uint8_t add(uint8_t a, uint8_t b) { return a | b; }
    static uint8_t mul(uint8_t a, uint8_t b) { return a & b; }
};
template <> struct element<complex<float>> {
    using type = complex<float>;
    static type of(type v) { return v; }
    static type add(type a, type b) { return a + b; }
    static type mul(type a, type b) { return a * b; }
};
template <> struct element<complex<double>> {
    using type = complex<double>;
    static type of(type v) { return v; }
    static type add(type a, type b) { return a + b; }
    static type mul(type a, type b) { return a * b; }
};

template <class S> typename element<S>::type value_at(const ad_matrix *m, int64_t row, int64_t column) {
    return element<S>::of(*reinterpret_cast<const S *>(m->data + row * m->row_step + column * m->column_step));
}

template <class S> typename element<S>::type *row_at(const ad_matrix *m, int64_t row, int64_t column) {
    return reinterpret_cast<typename element<S>::type *>(m->data + row * m->row_step + column * int64_t(sizeof(S)));
}

template <class S> void multiply_few(const ad_matrix *a, const ad_matrix *b, const ad_matrix *c, bool add) {
    using E = element<S>;
    for (int64_t i = 0; i < c->rows; i++) {
        auto *to = row_at<S>(c, i, 0);
        for (int64_t j = 0; j < c->columns; j++) {
            const char *x = a->data + i * a->row_step, *y = b->data + j * b->column_step;
            auto sum = add ? to[j] : typename E::type(0);
            for (int64_t k = 0; k < a->columns; k++, x += a->column_step, y += b->row_step)
                sum =
                    E::add(sum, E::mul(E::of(*reinterpret_cast<const S *>(x)), E::of(*reinterpret_cast<const S *>(y))));
            to[j] = sum;
        }
    }
}

/* Add: sum[j] += a[0]*b[0][j] + ... + a[3]*b[3][j]. A panel's rows lie PANEL_COLUMNS apart. */
template <class S, class T> AD_HD void add_four(T *sum, const T *a, const T *b, int64_t n) {
    using E = element<S>;
    for (int64_t j = 0; j < n; j++)
        sum[j] = E::add(sum[j],
                        E::add(E::add(E::mul(a[0], b[j]), E::mul(a[1], b[j + PANEL_COLUMNS])),
                               E::add(E::mul(a[2], b[j + 2 * PANEL_COLUMNS]), E::mul(a[3], b[j + 3 * PANEL_COLUMNS]))));
}

template <class S, class T> AD_HD void add_panel(T *sum, const T *a, const T *panel, int64_t rows, int64_t n) {
    for (int64_t k = 0; k < rows; k += 4) add_four<S>(sum, a + k, panel + k * PANEL_COLUMNS, n);
}

#ifdef __x86_64__
template <class S, class T>
__attribute__((target("avx2"))) void add_panel_avx2(T *sum, const T *a, const T *panel, int64_t rows, int64_t n) {
    add_panel<S>(sum, a, panel, rows, n);
}
template <class S, class T> __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))) void
add_panel_avx512(T *sum, const T *a, const T *panel, int64_t rows, int64_t n) {
    add_panel<S>(sum, a, panel, rows, n);
}
#endif
template <class S, class T> void add_panel_plain(T *sum, const T *a, const T *panel, int64_t rows, int64_t n) {
    add_panel<S>(sum, a, panel, rows, n);
}

template <class S, class T> auto *best_add_panel() {
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        return add_panel_avx512<S, T>;
    if (__builtin_cpu_supports("avx2")) return add_panel_avx2<S, T>;
#endif
    return add_panel_plain<S, T>;
}

/* Rows row..row+rows of b, columns column..column+columns, zeros below up to a multiple of four rows. */
template <class S, class T>
void copy_panel(const ad_matrix *b, int64_t row, int64_t rows, int64_t column, int64_t columns, T *panel) {
    for (int64_t k = 0; k < (rows + 3) / 4 * 4; k++)
        for (int64_t j = 0; j < columns; j++)
            panel[k * PANEL_COLUMNS + j] = k < rows ? value_at<S>(b, row + k, column + j) : T(0);
}

template <class S> void multiply_panels(const ad_matrix *a, const ad_matrix *b, const ad_matrix *c, bool add) {
    using T = typename element<S>::type;
    alignas(64) T panel[PANEL_ROWS * PANEL_COLUMNS], line[PANEL_ROWS];
    auto *add_to = best_add_panel<S, T>();
    for (int64_t column = 0; column < c->columns; column += PANEL_COLUMNS) {
        const int64_t columns = std::min(PANEL_COLUMNS, c->columns - column);
        for (int64_t i = 0; i < c->rows && !add; i++) memset(row_at<S>(c, i, column), 0, size_t(columns) * sizeof(T));
        for (int64_t row = 0; row < b->rows; row += PANEL_ROWS) {
            const int64_t rows = std::min(PANEL_ROWS, b->rows - row);
            copy_panel<S>(b, row, rows, column, columns, panel);
            for (int64_t i = 0; i < c->rows; i++) {
                for (int64_t k = 0; k < PANEL_ROWS; k++) line[k] = k < rows ? value_at<S>(a, i, row + k) : T(0);
                add_to(row_at<S>(c, i, column), line, panel, rows, columns);
            }
        }
    }
}

template <class S> void multiply(const ad_matrix *a, const ad_matrix *b, const ad_matrix *c, bool add) {
    if (c->rows < FEW_ROWS || a->columns * c->columns < 64) multiply_few<S>(a, b, c, add);
    else multiply_panels<S>(a, b, c, add);
}

template <class S> ad_matmul_function *function_of() {
    if constexpr (same<S, half> || same<S, bfloat16>) return nullptr; /* computed as float32 */
    else if constexpr (is_float<S> || is_complex<S>) return multiply_few<S>;
    else return multiply<unsigned_t<S>>;
}

} // namespace

ad_matmul_function *ad_matmul_loops(int dtype) {
    return visit(dtype, [](auto t) { return function_of<typename decltype(t)::type>(); });
}
