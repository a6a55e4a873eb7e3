/* Fourier transforms by pocketfft: as many lines at a time as a vector has lanes, the rest one by one. */
#include "kernels/cpu/isa/fft.h"
#include "kernels/cpu/isa/isa.h"
#include "kernels/cpu/isa/transpose.h"

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
using pocketfft::detail::T_dcst23;
using pocketfft::detail::T_dcst4;
using pocketfft::detail::T_dct1;
using pocketfft::detail::T_dst1;

constexpr int64_t LONG_LINE = 1 << 18; /* points; longer lines are transformed one by one, which needs less memory */

/* Lane v of a vector, or the number itself. */
template <class V, class T> inline T &lane(V &value, int64_t v) {
    if constexpr (std::is_same<V, T>::value) return value;
    else return reinterpret_cast<T *>(&value)[v];
}

/* Call move(i, v) for the points i from `begin` on and the lanes v of N lines. Eight points of a line come one after
 * the other. Lines whose distance is a power of two share a few sets of a cache, which holds fewer lines than there are
 * lanes. */
template <int N, class Move> void walk_lanes(int64_t begin, int64_t n, Move move) {
    constexpr int64_t TOGETHER = 8;
    for (; begin < n; begin += TOGETHER) {
        const int64_t end = n - begin < TOGETHER ? n : begin + TOGETHER;
        for (int64_t v = 0; v < N; v++)
            for (int64_t i = begin; i < end; i++) move(i, v);
    }
}

/* A vector of pocketfft's is one of this instruction set's, so that as many of them can be transposed. */
template <class V> constexpr bool TRANSPOSED = sizeof(V) == AD_VECTOR_BYTES;
constexpr int64_t SHORT_LINE = 16; /* complex points; shorter ones take less time number by number */

/* Where the parts of a complex number of each lane are. */
template <class V> struct parts { V &re, &im; };

/* The points of N lines, one in each lane of a vector. Points that lie behind each other are moved at once. */
template <class T> struct line_ends {
    const char *from;
    char *to;
    int64_t from_step, to_step, from_next, to_next;
    const T *in(int64_t i, int64_t v) const {
        return reinterpret_cast<const T *>(from + i * from_step + v * from_next);
    }
    T *out(int64_t i, int64_t v) const { return reinterpret_cast<T *>(to + i * to_step + v * to_next); }

    /* N numbers of each of N lines, from point i on, and the vectors that have one of each line. */
    template <class V, int N> void load_block(int64_t i, V *m) const {
        for (int v = 0; v < N; v++) m[v] = load_vector<T>(reinterpret_cast<const char *>(in(i, v)));
        transposition<T>::transpose_rows(m);
    }
    template <class V, int N> void store_block(int64_t i, V *m) const {
        transposition<T>::transpose_rows(m);
        for (int v = 0; v < N; v++) memcpy(out(i, v), &m[v], sizeof m[v]);
    }

    template <class V, int N> void load(int64_t n, V *x) const {
        int64_t i = 0;
        if (from_next == int64_t(sizeof(T)))
            for (; i < n; i++) memcpy(&x[i], in(i, 0), sizeof(V));
        if constexpr (TRANSPOSED<V>)
            for (; from_step == int64_t(sizeof(T)) && i + N <= n; i += N) load_block<V, N>(i, x + i);
        walk_lanes<N>(i, n, [&](int64_t k, int64_t v) { lane<V, T>(x[k], v) = *in(k, v); });
    }
    template <class V, int N> void store(int64_t n, V *x) const {
        int64_t i = 0;
        if (to_next == int64_t(sizeof(T)))
            for (; i < n; i++) memcpy(out(i, 0), &x[i], sizeof(V));
        if constexpr (TRANSPOSED<V>)
            for (; to_step == int64_t(sizeof(T)) && i + N <= n; i += N) store_block<V, N>(i, x + i);
        walk_lanes<N>(i, n, [&](int64_t k, int64_t v) { *out(k, v) = lane<V, T>(x[k], v); });
    }
    /* at(i): the parts<V> of point i. */
    template <class V, int N, class At> void load_complex(int64_t n, At at) const {
        const auto take = [&](int64_t i, int64_t v, const T *x) {
            const parts<V> p = at(i);
            lane<V, T>(p.re, v) = x[0], lane<V, T>(p.im, v) = x[1];
        };
        int64_t i = 0;
        if (from_next == int64_t(2 * sizeof(T)))
            for (; i < n; i++) {
                T pairs[2 * N];
                memcpy(pairs, in(i, 0), sizeof pairs);
                for (int64_t v = 0; v < N; v++) take(i, v, pairs + 2 * v);
            }
        if constexpr (TRANSPOSED<V>)
            for (; n > SHORT_LINE && from_step == int64_t(2 * sizeof(T)) && i + N / 2 <= n; i += N / 2) {
                V m[N];
                load_block<V, N>(i, m);
                for (int k = 0; k < N / 2; k++) at(i + k).re = m[2 * k], at(i + k).im = m[2 * k + 1];
            }
        walk_lanes<N>(i, n, [&](int64_t k, int64_t v) { take(k, v, in(k, v)); });
    }
    template <class V, int N, class At> void store_complex(int64_t n, At at) const {
        const auto give = [&](int64_t i, int64_t v, T *x) {
            const parts<V> p = at(i);
            x[0] = lane<V, T>(p.re, v), x[1] = lane<V, T>(p.im, v);
        };
        int64_t i = 0;
        if (to_next == int64_t(2 * sizeof(T)))
            for (; i < n; i++) {
                T pairs[2 * N];
                for (int64_t v = 0; v < N; v++) give(i, v, pairs + 2 * v);
                memcpy(out(i, 0), pairs, sizeof pairs);
            }
        if constexpr (TRANSPOSED<V>)
            for (; n > SHORT_LINE && to_step == int64_t(2 * sizeof(T)) && i + N / 2 <= n; i += N / 2) {
                V m[N];
                for (int k = 0; k < N / 2; k++) m[2 * k] = at(i + k).re, m[2 * k + 1] = at(i + k).im;
                store_block<V, N>(i, m);
            }
        walk_lanes<N>(i, n, [&](int64_t k, int64_t v) { give(k, v, out(k, v)); });
    }
};

/* N lines of complex numbers at once; V: a vector of N numbers, or T where N is 1. */
template <class T, class V, int N> void transform_complex(const pocketfft_c<T> *plan, const line_ends<T> &e, int64_t n,
                                                          T factor, bool forward, cmplx<V> *buffer) {
    const auto at = [&](int64_t i) { return parts<V>{buffer[i].r, buffer[i].i}; };
    e.template load_complex<V, N>(n, at);
    plan->exec(buffer, factor, forward);
    e.template store_complex<V, N>(n, at);
}

/* Frequency k of n real points lies at 2k - 1 and 2k of the buffer. The parts that are always zero have no place. */
template <class V> parts<V> find_frequency(V *buffer, int64_t n, int64_t k, V &zero) {
    if (k == 0) return {buffer[0], zero};
    return {buffer[2 * k - 1], 2 * k == n ? zero : buffer[2 * k]};
}

/* The inverse transform of real numbers is the conjugate. */
template <class T, class V, int N> void transform_from_real(const pocketfft_r<T> *plan, const line_ends<T> &e,
                                                            int64_t n, T factor, bool forward, V *buffer) {
    V zero{};
    e.template load<V, N>(n, buffer);
    plan->exec(buffer, factor, true);
    for (int64_t k = 1; !forward && 2 * k < n; k++) buffer[2 * k] = -buffer[2 * k];
    e.template store_complex<V, N>(n / 2 + 1, [&](int64_t k) { return find_frequency(buffer, n, k, zero); });
}

template <class T, class V, int N>
void transform_to_real(const pocketfft_r<T> *plan, const line_ends<T> &e, int64_t n, T factor, V *buffer) {
    V ignored;
    e.template load_complex<V, N>(n / 2 + 1, [&](int64_t k) { return find_frequency(buffer, n, k, ignored); });
    plan->exec(buffer, factor, false);
    e.template store<V, N>(n, buffer);
}

/* Transform points of cosines or sines where they are. */
template <class T, class V> void run_trigonometric(const void *plan, const ad_fft_lines *l, V *points) {
    const auto run = [&](const auto *p) { p->exec(points, T(l->factor), l->ortho, l->type, !l->sine); };
    switch (l->kind) {
    case AD_FFT_COSINE_1: return run(static_cast<const T_dct1<T> *>(plan));
    case AD_FFT_SINE_1: return run(static_cast<const T_dst1<T> *>(plan));
    case AD_FFT_TRIGONOMETRIC_23: return run(static_cast<const T_dcst23<T> *>(plan));
    default: run(static_cast<const T_dcst4<T> *>(plan));
    }
}

template <class T, class V, int N>
void transform_trigonometric(const void *plan, const ad_fft_lines *l, const line_ends<T> &e, int64_t n, V *buffer) {
    e.template load<V, N>(n, buffer);
    run_trigonometric<T>(plan, l, buffer);
    e.template store<V, N>(n, buffer);
}

/* N lines at a time as long as there are so many; how many have been done. */
template <class T, class V, int N> int64_t run_lines(const void *plan, const ad_fft_lines *l, int64_t n, int64_t done) {
    if (l->lines - done < N) return done;
    arr<V> buffer(size_t(ad_fft_form_of(l->kind) == AD_FFT_OF_COMPLEX ? 2 * n : n));
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
        case AD_FFT_COSINE_1:
        case AD_FFT_SINE_1:
        case AD_FFT_TRIGONOMETRIC_23:
        case AD_FFT_TRIGONOMETRIC_4: transform_trigonometric<T, V, N>(plan, l, e, n, buffer.data()); break;
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

/* A line of real numbers whose frequencies are contiguous, without a buffer: frequency 0 moves one place when the
 * others are where they belong. */
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

/* A line of cosines or sines whose result is contiguous, without a buffer. */
template <class T> void run_real_in_place(const void *plan, const ad_fft_lines *l, int64_t n, int64_t line) {
    T *out = reinterpret_cast<T *>(l->to + line * l->to_next);
    const char *in = l->from + line * l->from_next;
    if (l->from_step == int64_t(sizeof(T))) memmove(out, in, size_t(n) * sizeof(T));
    else
        for (int64_t i = 0; i < n; i++) out[i] = *reinterpret_cast<const T *>(in + i * l->from_step);
    run_trigonometric<T>(plan, l, out);
}

/* Transform the line where its result belongs. False: that is not contiguous. */
template <class T> bool run_at_place(const void *plan, const ad_fft_lines *l, int64_t n, int64_t line) {
    const bool real = l->kind == AD_FFT_TO_REAL || ad_fft_is_trigonometric(l->kind);
    if (l->to_step != int64_t(real ? sizeof(T) : 2 * sizeof(T))) return false;
    if (ad_fft_is_trigonometric(l->kind)) run_real_in_place<T>(plan, l, n, line);
    else if (real) run_to_real<T>(plan, l, n, line);
    else if (ad_fft_form_of(l->kind) == AD_FFT_OF_REAL) run_from_real<T>(plan, l, n, line);
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

template <class T> void *make_plan(ad_fft_form form, int64_t n) {
    switch (form) {
    case AD_FFT_OF_COMPLEX: return new pocketfft_c<T>(size_t(n));
    case AD_FFT_OF_REAL: return new pocketfft_r<T>(size_t(n));
    case AD_FFT_OF_COSINE_1: return new T_dct1<T>(size_t(n));
    case AD_FFT_OF_SINE_1: return new T_dst1<T>(size_t(n));
    case AD_FFT_OF_TRIGONOMETRIC_23: return new T_dcst23<T>(size_t(n));
    default: return new T_dcst4<T>(size_t(n));
    }
}

template <class T> void destroy_plan(ad_fft_form form, void *plan) {
    switch (form) {
    case AD_FFT_OF_COMPLEX: delete static_cast<pocketfft_c<T> *>(plan); break;
    case AD_FFT_OF_REAL: delete static_cast<pocketfft_r<T> *>(plan); break;
    case AD_FFT_OF_COSINE_1: delete static_cast<T_dct1<T> *>(plan); break;
    case AD_FFT_OF_SINE_1: delete static_cast<T_dst1<T> *>(plan); break;
    case AD_FFT_OF_TRIGONOMETRIC_23: delete static_cast<T_dcst23<T> *>(plan); break;
    default: delete static_cast<T_dcst4<T> *>(plan);
    }
}

extern const ad_fft_kernels fft_kernels;
const ad_fft_kernels fft_kernels = {[](ad_fft_form form, bool wide, int64_t n) {
                                        return wide ? make_plan<double>(form, n) : make_plan<float>(form, n);
                                    },
                                    [](ad_fft_form form, bool wide, void *plan) {
                                        if (wide) destroy_plan<double>(form, plan);
                                        else destroy_plan<float>(form, plan);
                                    },
                                    [](bool wide, int64_t n, const void *plan, const ad_fft_lines *lines) {
                                        if (wide) run_as<double>(n, plan, lines);
                                        else run_as<float>(n, plan, lines);
                                    }};

} // namespace AD_ISA
} // namespace ad
