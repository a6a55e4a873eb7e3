/* iir: recursive filters, section after section, along an axis. */
#include "kernels/call.h"

#include <algorithm>
#include <iterator>

#include "kernels/cpu/backend/parallel.h"

namespace {

using namespace ad;

constexpr int64_t LANES = 16;      /* filtered side by side */
constexpr int64_t FEW = 3;         /* lanes that are filtered one after another, though they lie side by side */
constexpr int64_t PIECE = 512;     /* elements of a lane that stay in the first cache, section after section */
constexpr int64_t GRAIN = 1 << 14; /* elements times coefficients */

/* Lanes in arrays without gaps: (outer, n, inner) elements, and of the state (sections, order, outer * inner). */
template <class T> struct filter {
    const T *section; /* of each: order+1 factors of the input, then of the output, the first of which is 1 */
    T *x, *state;
    int64_t sections, order, n, inner, lanes;
};

/* Filter elements begin to end of neighbouring lanes by one section: transposed direct form II. */
template <class T>
void filter_piece(const filter<T> *f, const T *section, T *state, T *x, int64_t lanes, int64_t apart, int64_t count) {
    const T *b = section, *a = section + f->order + 1;
    T in[LANES], out[LANES];
    for (int64_t i = 0; i < count; i++, x += f->inner) {
        for (int64_t k = 0; k < lanes; k++) {
            in[k] = x[k * apart];
            out[k] = f->order > 0 ? b[0] * in[k] + state[k] : b[0] * in[k];
            x[k * apart] = out[k];
        }
        for (int64_t j = 1; j <= f->order; j++) {
            T *z = state + (j - 1) * f->lanes;
            for (int64_t k = 0; k < lanes; k++)
                z[k] = j < f->order ? b[j] * in[k] + z[k + f->lanes] - a[j] * out[k] : b[j] * in[k] - a[j] * out[k];
        }
    }
}

/* Filter one lane with SECTIONS sections of an order that the compiler knows. Their states stay in registers, and one
 * section filters an element while the next one is still at those before. */
template <class T, int ORDER, int SECTIONS>
void filter_line(const filter<T> *f, const T *section, T *state, T *x, int64_t count) {
    T b[SECTIONS][ORDER + 1], a[SECTIONS][ORDER + 1], z[SECTIONS][ORDER + 1] = {};
    for (int s = 0; s < SECTIONS; s++) {
        for (int j = 0; j <= ORDER; j++) b[s][j] = *section++;
        for (int j = 0; j <= ORDER; j++) a[s][j] = *section++;
        for (int j = 0; j < ORDER; j++) z[s][j] = state[(s * ORDER + j) * f->lanes];
    }
    for (int64_t i = 0; i < count; i++, x += f->inner) {
        T value = *x;
        for (int s = 0; s < SECTIONS; s++) {
            const T out = b[s][0] * value + z[s][0];
            for (int j = 0; j < ORDER; j++) z[s][j] = b[s][j + 1] * value + z[s][j + 1] - a[s][j + 1] * out;
            value = out;
        }
        *x = value;
    }
    for (int s = 0; s < SECTIONS; s++)
        for (int j = 0; j < ORDER; j++) state[(s * ORDER + j) * f->lanes] = z[s][j];
}

/* Tell whether the filter has no factors of its output but the first, which is 1. */
template <class T> bool is_finite(const filter<T> *f) {
    if (f->sections > 1) return false;
    const T *a = f->section + f->order + 1;
    return std::all_of(a + 1, a + f->order + 1, [](T factor) { return factor == T(0); });
}

/* Filter one lane by factors of its input alone. Each sum has the order of transposed direct form II, from the oldest
 * input to the newest, so that a sum is the same however long the piece is. */
template <class T> void filter_finite(const filter<T> *f, const T *b, T *state, T *x, int64_t count) {
    const auto z = [&](int64_t j) -> T & { return state[j * f->lanes]; };
    T in[PIECE], sum[PIECE];
    for (int64_t i = 0; i < count; i++) {
        in[i] = x[i * f->inner];
        sum[i] = i < f->order ? z(i) : T(0);
    }
    for (int64_t k = f->order; k >= 0; k--) {
        const T factor = b[k];
        for (int64_t i = k; i < count; i++) sum[i] = factor * in[i - k] + sum[i];
    }
    for (int64_t i = 0; i < count; i++) x[i * f->inner] = sum[i];
    for (int64_t j = 0; j < f->order; j++) z(j) = j + count < f->order ? z(j + count) : T(0);
    for (int64_t k = f->order; k > 0; k--)
        for (int64_t j = std::max(int64_t(0), k - count); j < k; j++) z(j) = b[k] * in[count + j - k] + z(j);
}

template <class T> using line_function = void (*)(const filter<T> *, const T *, T *, T *, int64_t);

/* Find filter_line for an order, and for as many of the sections left as it takes at a time. NULL: it has none for the
 * order. */
template <class T> line_function<T> find_line(int64_t order, int64_t left, int64_t *taken) {
    static constexpr line_function<T> lines[] = {filter_line<T, 1, 1>, filter_line<T, 2, 1>, filter_line<T, 3, 1>,
                                                 filter_line<T, 4, 1>, filter_line<T, 5, 1>, filter_line<T, 6, 1>,
                                                 filter_line<T, 7, 1>, filter_line<T, 8, 1>};
    *taken = order == 2 && left >= 2 ? 2 : 1;
    if (*taken == 2) return filter_line<T, 2, 2>;
    return order >= 1 && order <= int64_t(std::size(lines)) ? lines[order - 1] : nullptr;
}

/* All sections on a piece of neighbouring lanes: one by one where they are few, or where each lies by itself. */
template <class T>
void filter_sections(const filter<T> *f, T *x, T *state, int64_t lanes, int64_t apart, int64_t count) {
    const int64_t factors = 2 * (f->order + 1), states = f->order * f->lanes;
    int64_t taken = 1;
    for (int64_t s = 0; s < f->sections; s += taken) {
        const auto line = find_line<T>(f->order, f->sections - s, &taken);
        ad_cpu_check_cancelled();
        if (is_finite(f)) {
            for (int64_t k = 0; k < lanes; k++) filter_finite(f, f->section, state + k, x + k * apart, count);
        } else if ((lanes <= FEW || apart > 1) && line) {
            for (int64_t k = 0; k < lanes; k++)
                line(f, f->section + s * factors, state + s * states + k, x + k * apart, count);
        } else {
            taken = 1;
            filter_piece(f, f->section + s * factors, state + s * states, x, lanes, apart, count);
        }
    }
}

template <class T> void filter_lanes(const filter<T> *f, T *x, T *state, int64_t lanes, int64_t apart) {
    for (int64_t first = 0; first < f->n; first += PIECE)
        filter_sections(f, x + first * f->inner, state, lanes, apart, std::min(PIECE, f->n - first));
}

/* Neighbouring lanes of the state are neighbours of x where there is something behind the axis; else they are n apart.
 */
template <class T> void filter_all(const filter<T> *f) {
    const bool across = f->inner > 1;
    const int64_t row = across ? f->inner : f->lanes, apart = across ? 1 : f->n;
    const int64_t groups = (row + LANES - 1) / LANES, cost = f->n * LANES * f->sections * (f->order + 1);
    ad_cpu_parallel(groups * (f->lanes / row), std::max(int64_t(1), GRAIN / std::max(cost, int64_t(1))),
                    [&](int64_t begin, int64_t end) {
                        for (int64_t g = begin; g < end; g++) {
                            const int64_t outer = g / groups, first = g % groups * LANES;
                            filter_lanes(f, f->x + outer * f->n * f->inner + first * apart,
                                         f->state + outer * row + first, std::min(LANES, row - first), apart);
                        }
                    });
}

/* A copy of an operand in scratch memory, which is changed in place. */
int copy_operand(ad_call *c, int index, array *out) {
    array x;
    const int status = ad_call_input(c, index, c->op->loop, &x);
    return status ? status : ad_call_packed(c, &x, c->op->loop, 0, out);
}

} // namespace

int ad_call_iir(ad_call *c) {
    const int axis = int(c->op->param[0].as.i);
    array x, section, state, out, last;
    int status;
    if ((status = copy_operand(c, 0, &x)) || (status = copy_operand(c, 1, &section)) ||
        (status = copy_operand(c, 2, &state)) || (status = ad_call_output(c, 0, c->op->loop, &out)) ||
        (status = ad_call_output(c, 1, c->op->loop, &last)))
        return status;
    c->run->wrote = true;
    if (count(x) > 0)
        visit(c->op->loop, [&](auto t) {
            using S = typename decltype(t)::type;
            if constexpr (is_float<S> || is_complex<S>) {
                const int64_t n = x.shape[axis];
                const filter<S> f = {reinterpret_cast<const S *>(section.data),
                                     reinterpret_cast<S *>(x.data),
                                     reinterpret_cast<S *>(state.data),
                                     section.shape[0],
                                     section.shape[2] - 1,
                                     n,
                                     count(x, axis + 1, x.ndim),
                                     count(x) / n};
                filter_all(&f);
            }
        });
    if ((status = ad_call_copy(c, &out, &x)) || (status = ad_call_copy(c, &last, &state)) ||
        (status = ad_call_finish(c, 0, &out)))
        return status;
    return ad_call_finish(c, 1, &last);
}
