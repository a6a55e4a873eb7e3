#include "kernels/cpu/call/fft_mirror.h"

#include <algorithm>
#include <cstdlib>

#include "kernels/cpu/backend/parallel.h"

namespace {

using namespace ad;

constexpr int64_t GRAIN = 32768; /* elements that are worth a thread */

struct mirror {
    const array *out;
    int axis;
    int64_t others;     /* bit mask */
    int64_t second;     /* elements of the second half along the axis */
    int row;            /* the axis along which elements are closest: rows of it are copied at once */
    int64_t row_length; /* of the row what is filled in */
};

bool is_opposite(const mirror *m, int axis) { return m->others >> axis & 1; }

/* Compute to[i] = conj(from[i]); steps in bytes. */
template <class R> void conjugate(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        const R *x = reinterpret_cast<const R *>(from + i * from_step);
        R *y = reinterpret_cast<R *>(to + i * to_step);
        const R re = x[0], im = x[1];
        y[0] = re, y[1] = -im;
    }
}

/* Fill in the part of one row that lies in the second half, from the row that begins at `from`. */
template <class R> void fill_row(const mirror *m, char *to, const char *from) {
    const int64_t step = m->out->stride[m->row], n = m->out->shape[m->row];
    if (m->row == m->axis) {
        conjugate<R>(to + (n - 1) * step, -step, from + step, step, m->second);
    } else if (is_opposite(m, m->row)) {
        conjugate<R>(to, 0, from, 0, 1);
        conjugate<R>(to + step, step, from + (n - 1) * step, -step, n - 1);
    } else {
        conjugate<R>(to, step, from, step, n);
    }
}

template <class R> void fill_rows(const mirror *m, int64_t begin, int64_t end) {
    const array &out = *m->out;
    for (int64_t r = begin; r < end; r++) {
        char *to = out.data;
        const char *from = out.data;
        int64_t rest = r;
        for (int i = out.ndim - 1; i >= 0; i--) {
            if (i == m->row) continue;
            const int64_t n = out.shape[i], size = i == m->axis ? m->second : n;
            const int64_t at = i == m->axis ? n - 1 - rest % size : rest % size;
            const bool opposite = at != 0 && (i == m->axis || is_opposite(m, i));
            to += at * out.stride[i];
            from += (opposite ? n - at : at) * out.stride[i];
            rest /= size;
        }
        fill_row<R>(m, to, from);
    }
}

/* The axis of the smallest step that has more than one element. */
int closest_axis(const array &out, int axis) {
    int best = axis;
    for (int i = out.ndim - 1; i >= 0; i--)
        if (out.shape[i] > 1 && std::abs(out.stride[i]) < std::abs(out.stride[best])) best = i;
    return best;
}

} // namespace

void ad_fft_mirror(const array &out, int axis, int64_t others) {
    mirror m = {&out, axis, others, (out.shape[axis] - 1) / 2, closest_axis(out, axis), 0};
    m.row_length = m.row == axis ? m.second : out.shape[m.row];
    if (m.second == 0) return;
    const int64_t rows = count(out) / out.shape[axis] * m.second / m.row_length;
    ad_cpu_parallel(rows, std::max<int64_t>(1, GRAIN / m.row_length), [&](int64_t begin, int64_t end) {
        if (out.dtype == AD_COMPLEX128) fill_rows<double>(&m, begin, end);
        else fill_rows<float>(&m, begin, end);
    });
}
