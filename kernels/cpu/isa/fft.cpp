/* Fourier transforms by pocketfft: as many lines at a time as a vector has lanes, the rest one by one. */
#include "kernels/cpu/isa/fft.h"
#include "kernels/cpu/isa/isa.h"

#include <string.h>

#define POCKETFFT_CACHE_SIZE 0
#define POCKETFFT_NO_MULTITHREADING
#define pocketfft AD_PASTE(pocketfft_, AD_ISA) /* the templates of one instruction set are not those of another */
#include <pocketfft_hdronly.h>

namespace ad {
inline namespace AD_ISA {

using pocketfft::detail::arr;
using pocketfft::detail::cmplx;
using pocketfft::detail::pocketfft_c;
using pocketfft::detail::pocketfft_r;

constexpr int64_t LONG_LINE = 1 << 18; /* points; longer lines are transformed one by one, which needs less memory */

/* Lane v of a vector, or the number itself. */
template <class V, class T> inline T &lane(V &value, int64_t v) {
    if constexpr (std::is_same<V, T>::value) return value;
    else return reinterpret_cast<T *>(&value)[v];
}

/* Point i of N lines, one in each lane of a vector. Those that lie behind each other are moved at once. */
template <class T> struct line_ends {
    const char *from;
    char *to;
    int64_t from_step, to_step, from_next, to_next;
    const T *in(int64_t i, int64_t v) const {
        return reinterpret_cast<const T *>(from + i * from_step + v * from_next);
    }
    T *out(int64_t i, int64_t v) const { return reinterpret_cast<T *>(to + i * to_step + v * to_next); }

    template <class V, int N> void load(int64_t i, V &x) const {
        if (from_next == int64_t(sizeof(T))) memcpy(&x, in(i, 0), sizeof(V));
        else
            for (int64_t v = 0; v < N; v++) lane<V, T>(x, v) = *in(i, v);
    }
    template <class V, int N> void store(int64_t i, V x) const {
        if (to_next == int64_t(sizeof(T))) memcpy(out(i, 0), &x, sizeof(V));
        else
            for (int64_t v = 0; v < N; v++) *out(i, v) = lane<V, T>(x, v);
    }
    template <class V, int N> void load(int64_t i, V &re, V &im) const {
        if (from_next == int64_t(2 * sizeof(T))) {
            T pairs[2 * N];
            memcpy(pairs, in(i, 0), sizeof pairs);
            for (int64_t v = 0; v < N; v++) lane<V, T>(re, v) = pairs[2 * v], lane<V, T>(im, v) = pairs[2 * v + 1];
        } else {
            for (int64_t v = 0; v < N; v++) lane<V, T>(re, v) = in(i, v)[0], lane<V, T>(im, v) = in(i, v)[1];
        }
    }
    template <class V, int N> void store(int64_t i, V re, V im) const {
        if (to_next == int64_t(2 * sizeof(T))) {
            T pairs[2 * N];
            for (int64_t v = 0; v < N; v++) pairs[2 * v] = lane<V, T>(re, v), pairs[2 * v + 1] = lane<V, T>(im, v);
            memcpy(out(i, 0), pairs, sizeof pairs);
        } else {
            for (int64_t v = 0; v < N; v++) out(i, v)[0] = lane<V, T>(re, v), out(i, v)[1] = lane<V, T>(im, v);
        }
    }
};

/* N lines of complex numbers at once; V: a vector of N numbers, or T where N is 1. */
template <class T, class V, int N> void transform_complex(const pocketfft_c<T> *plan, const line_ends<T> &e, int64_t n,
                                                          T factor, bool forward, cmplx<V> *buffer) {
    for (int64_t i = 0; i < n; i++) e.template load<V, N>(i, buffer[i].r, buffer[i].i);
    plan->exec(buffer, factor, forward);
    for (int64_t i = 0; i < n; i++) e.template store<V, N>(i, buffer[i].r, buffer[i].i);
}

/* A frequency k of n real points lies at 2k - 1 and 2k of the buffer, without what is always zero. The inverse
 * transform of real numbers is the conjugate. */
template <class T, class V, int N> void transform_from_real(const pocketfft_r<T> *plan, const line_ends<T> &e,
                                                            int64_t n, T factor, bool forward, V *buffer) {
    for (int64_t i = 0; i < n; i++) e.template load<V, N>(i, buffer[i]);
    plan->exec(buffer, factor, true);
    e.template store<V, N>(0, buffer[0], V{});
    for (int64_t k = 1; 2 * k < n; k++)
        e.template store<V, N>(k, buffer[2 * k - 1], forward ? buffer[2 * k] : -buffer[2 * k]);
    if (n % 2 == 0) e.template store<V, N>(n / 2, buffer[n - 1], V{});
}

template <class T, class V, int N>
void transform_to_real(const pocketfft_r<T> *plan, const line_ends<T> &e, int64_t n, T factor, V *buffer) {
    V ignored;
    e.template load<V, N>(0, buffer[0], ignored);
    for (int64_t k = 1; 2 * k < n; k++) e.template load<V, N>(k, buffer[2 * k - 1], buffer[2 * k]);
    if (n % 2 == 0) e.template load<V, N>(n / 2, buffer[n - 1], ignored);
    plan->exec(buffer, factor, false);
    for (int64_t i = 0; i < n; i++) e.template store<V, N>(i, buffer[i]);
}

/* N lines at a time as long as there are so many; how many have been done. */
template <class T, class V, int N> int64_t run_lines(const void *plan, const ad_fft_lines *l, int64_t n, int64_t done) {
    const bool real = ad_fft_is_real(l->kind);
    if (l->lines - done < N) return done;
    arr<V> buffer(size_t(real ? n : 2 * n));
    for (; l->lines - done >= N; done += N) {
        const line_ends<T> e = {l->from + done * l->from_next,
                                l->to + done * l->to_next,
                                l->from_step,
                                l->to_step,
                                l->from_next,
                                l->to_next};
        switch (l->kind) {
        case AD_FFT_FROM_REAL:
        case AD_FFT_FROM_REAL_INVERSE:
            transform_from_real<T, V, N>(static_cast<const pocketfft_r<T> *>(plan), e, n, T(l->factor),
                                         l->kind == AD_FFT_FROM_REAL, buffer.data());
            break;
        case AD_FFT_TO_REAL:
            transform_to_real<T, V, N>(static_cast<const pocketfft_r<T> *>(plan), e, n, T(l->factor), buffer.data());
            break;
        default:
            transform_complex<T, V, N>(static_cast<const pocketfft_c<T> *>(plan), e, n, T(l->factor),
                                       l->kind == AD_FFT_FORWARD, reinterpret_cast<cmplx<V> *>(buffer.data()));
        }
    }
    return done;
}

/* A line of complex numbers whose result is contiguous, without a buffer. */
template <class T> void run_in_place(const void *plan, const ad_fft_lines *l, int64_t n, int64_t line) {
    cmplx<T> *out = reinterpret_cast<cmplx<T> *>(l->to + line * l->to_next);
    const char *in = l->from + line * l->from_next;
    if (in != reinterpret_cast<const char *>(out))
        for (int64_t i = 0; i < n; i++) {
            const T *x = reinterpret_cast<const T *>(in + i * l->from_step);
            out[i].Set(x[0], x[1]);
        }
    static_cast<const pocketfft_c<T> *>(plan)->exec(out, T(l->factor), l->kind == AD_FFT_FORWARD);
}

/* A line of real numbers whose frequencies are contiguous, without a buffer: frequency 0 moves one place when the others
 * are where they belong. */
template <class T> void run_from_real(const void *plan, const ad_fft_lines *l, int64_t n, int64_t line) {
    T *out = reinterpret_cast<T *>(l->to + line * l->to_next);
    const char *in = l->from + line * l->from_next;
    if (l->from_step == int64_t(sizeof(T))) memcpy(out + 1, in, size_t(n) * sizeof(T));
    else
        for (int64_t i = 0; i < n; i++) out[1 + i] = *reinterpret_cast<const T *>(in + i * l->from_step);
    static_cast<const pocketfft_r<T> *>(plan)->exec(out + 1, T(l->factor), true);
    out[0] = out[1];
    out[1] = T(0);
    if (n % 2 == 0) out[n + 1] = T(0);
    for (int64_t k = 1; l->kind == AD_FFT_FROM_REAL_INVERSE && 2 * k < n; k++) out[2 * k + 1] = -out[2 * k + 1];
}

/* A line of contiguous real numbers made of their frequencies, without a buffer. */
template <class T> void run_to_real(const void *plan, const ad_fft_lines *l, int64_t n, int64_t line) {
    T *out = reinterpret_cast<T *>(l->to + line * l->to_next);
    const char *in = l->from + line * l->from_next;
    const auto at = [&](int64_t k) { return reinterpret_cast<const T *>(in + k * l->from_step); };
    out[0] = at(0)[0];
    for (int64_t k = 1; 2 * k < n; k++) {
        out[2 * k - 1] = at(k)[0];
        out[2 * k] = at(k)[1];
    }
    if (n % 2 == 0) out[n - 1] = at(n / 2)[0];
    static_cast<const pocketfft_r<T> *>(plan)->exec(out, T(l->factor), false);
}

/* Transform the line where its result belongs. False: that is not contiguous. */
template <class T> bool run_at_place(const void *plan, const ad_fft_lines *l, int64_t n, int64_t line) {
    const bool to_real = l->kind == AD_FFT_TO_REAL;
    if (l->to_step != int64_t(to_real ? sizeof(T) : 2 * sizeof(T))) return false;
    if (to_real) run_to_real<T>(plan, l, n, line);
    else if (ad_fft_is_real(l->kind)) run_from_real<T>(plan, l, n, line);
    else run_in_place<T>(plan, l, n, line);
    return true;
}

template <class T> void run_as(int64_t n, const void *plan, const ad_fft_lines *l) {
    constexpr int N = int(pocketfft::detail::VLEN<T>::val);
    int64_t done = 0;
    if constexpr (N > 1)
        if (n <= LONG_LINE) done = run_lines<T, pocketfft::detail::vtype_t<T>, N>(plan, l, n, 0);
    while (done < l->lines && run_at_place<T>(plan, l, n, done)) done++;
    run_lines<T, T, 1>(plan, l, n, done);
}

template <class T> void *make_plan(bool real, int64_t n) {
    if (real) return new pocketfft_r<T>(size_t(n));
    return new pocketfft_c<T>(size_t(n));
}

template <class T> void destroy_plan(bool real, void *plan) {
    if (real) delete static_cast<pocketfft_r<T> *>(plan);
    else delete static_cast<pocketfft_c<T> *>(plan);
}

extern const ad_fft_kernels fft_kernels;
const ad_fft_kernels fft_kernels = {
    [](bool real, bool wide, int64_t n) { return wide ? make_plan<double>(real, n) : make_plan<float>(real, n); },
    [](bool real, bool wide, void *plan) {
        if (wide) destroy_plan<double>(real, plan);
        else destroy_plan<float>(real, plan);
    },
    [](bool wide, int64_t n, const void *plan, const ad_fft_lines *lines) {
        if (wide) run_as<double>(n, plan, lines);
        else run_as<float>(n, plan, lines);
    }};

} // namespace AD_ISA
} // namespace ad
