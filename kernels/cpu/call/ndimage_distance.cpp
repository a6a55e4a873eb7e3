/* nearest_zero: the nearest element that is zero, and the square of its distance. */
#include "kernels/call.h"
#include "kernels/cpu/backend/parallel.h"
#include "kernels/ndimage_distance.h"

#include <algorithm>

namespace {

using namespace ad;

constexpr int64_t GRAIN = 1 << 14;

/* Memory of as many elements as the array has. */
struct distance_field {
    double *square[2], *start;
    int64_t *nearest[2];
    int32_t *parabola;
};

int open_field(ad_call *c, int64_t count, distance_field *f) {
    for (int i = 0; i < 2; i++) {
        f->square[i] = static_cast<double *>(ad_call_workspace(c, uint64_t(count) * 8));
        f->nearest[i] = static_cast<int64_t *>(ad_call_workspace(c, uint64_t(count) * 8));
        if (!f->square[i] || !f->nearest[i]) return AD_E_MEMORY;
    }
    f->start = static_cast<double *>(ad_call_workspace(c, uint64_t(count) * 8));
    f->parabola = static_cast<int32_t *>(ad_call_workspace(c, uint64_t(count) * 4));
    return !f->start || !f->parabola ? AD_E_MEMORY : 0;
}

void begin_field(const array *x, const distance_field *f) {
    const bool8 *value = reinterpret_cast<const bool8 *>(x->data);
    ad_cpu_parallel(count(*x), GRAIN, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) {
            f->square[0][i] = 0;
            f->nearest[0][i] = value[i] ? -1 : i;
        }
    });
}

void go_along(const array *x, int axis, double sampling, distance_field *f) {
    const int64_t n = x->shape[axis], inner = count(*x, axis + 1, x->ndim);
    ad_cpu_parallel(count(*x) / n, std::max(int64_t(1), GRAIN / n), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) {
            const int64_t at = i / inner * n * inner + i % inner;
            find_nearest({f->square[0] + at, f->nearest[0] + at, f->square[1] + at, f->nearest[1] + at,
                          f->parabola + at, f->start + at, n, inner, sampling * sampling});
        }
    });
    std::swap(f->square[0], f->square[1]);
    std::swap(f->nearest[0], f->nearest[1]);
}

} // namespace

int ad_call_nearest_zero(ad_call *c) {
    array x, sampling, square, nearest;
    distance_field f;
    int status;
    if ((status = ad_call_input_packed(c, 0, AD_BOOL, &x)) || (status = ad_call_input(c, 1, AD_FLOAT64, &sampling)) ||
        (status = ad_call_output(c, 0, AD_FLOAT64, &square)) || (status = ad_call_output(c, 1, AD_INT64, &nearest)))
        return status;
    if (count(x) == 0) return 0;
    if ((status = open_field(c, count(x), &f))) return status;
    begin_field(&x, &f);
    for (int i = 0; i < x.ndim; i++)
        go_along(&x, i, *reinterpret_cast<const double *>(sampling.data + i * sampling.stride[0]), &f);
    array own = square;
    pack(&own);
    own.data = reinterpret_cast<char *>(f.square[0]);
    c->run->wrote = true;
    if ((status = ad_call_copy(c, &square, &own))) return status;
    own.dtype = AD_INT64;
    own.data = reinterpret_cast<char *>(f.nearest[0]);
    if ((status = ad_call_copy(c, &nearest, &own)) || (status = ad_call_finish(c, 0, &square))) return status;
    return ad_call_finish(c, 1, &nearest);
}
