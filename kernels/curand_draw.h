/* Distributions from cuRAND's generators, by the algorithms that CuPy 14 has for them (those of NumPy's RandomState).
 * An element takes the same numbers from its state, in the same order, so it becomes CuPy's.
 *
 * Loops that wait for acceptance end after RANDOM_TRIES. No generator lets that happen, but words that are no state of
 * one might. */
#ifndef AD_KERNELS_CURAND_DRAW_H
#define AD_KERNELS_CURAND_DRAW_H

#include "kernels/curand.h"
#include "kernels/random_own.h"

namespace ad {
inline namespace AD_ISA {

constexpr int CURAND_TRIES = 64;    /* that an integer is looked for in: every other one fits */
constexpr int CURAND_STEPS = 10000; /* one after another in an element, at most */

template <class S> AD_HD double curand_exponential(S *s) { return -adm::log(1.0 - s->template below1<double>()); }

/* ---- gamma and beta ---- */

/* Marsaglia and Tsang (2000). */
template <class S> AD_HD double curand_gamma_above1(S *s, double shape) {
    const double d = shape - 1.0 / 3, c = 1 / adm::sqrt(9 * d);
    for (int i = 0; i < RANDOM_TRIES; i++) {
        const double x = s->template normal<double>(), root = 1 + c * x;
        if (root <= 0) continue;
        const double v = root * root * root, u = s->template below1<double>();
        if (u < 1 - 0.0331 * (x * x) * (x * x) || adm::log(u) < 0.5 * x * x + d * (1 - v + adm::log(v))) return d * v;
    }
    return shape;
}

/* Ahrens and Dieter (1974). */
template <class S> AD_HD double curand_gamma_below1(S *s, double shape) {
    for (int i = 0; i < RANDOM_TRIES; i++) {
        const double u = s->template below1<double>(), e = curand_exponential(s);
        if (u <= 1 - shape) {
            const double x = ::pow(u, 1 / shape);
            if (x <= e) return x;
        } else {
            const double y = -adm::log((1 - u) / shape), x = ::pow(1 - shape + shape * y, 1 / shape);
            if (x <= e + y) return x;
        }
    }
    return shape;
}

template <class S> AD_HD double curand_gamma(S *s, double shape) {
    if (shape == 1) return curand_exponential(s);
    if (!(shape > 0)) return shape == 0 ? 0 : shape;
    return shape < 1 ? curand_gamma_below1(s, shape) : curand_gamma_above1(s, shape);
}

/* Jöhnk (1964). */
template <class S> AD_HD double curand_beta_below1(S *s, double a, double b) {
    for (int i = 0; i < RANDOM_TRIES; i++) {
        const double u = s->template below1<double>(), v = s->template below1<double>();
        const double x = ::pow(u, 1 / a), y = ::pow(v, 1 / b);
        if (x + y > 1) continue;
        if (x + y > 0) return x / (x + y);
        const double p = adm::log(u) / a, q = adm::log(v) / b, top = p > q ? p : q;
        return adm::exp(p - top - adm::log(adm::exp(p - top) + adm::exp(q - top)));
    }
    return a / (a + b);
}

template <class S> AD_HD double curand_beta(S *s, double a, double b) {
    if (a <= 1 && b <= 1) return curand_beta_below1(s, a, b);
    const double x = curand_gamma(s, a), y = curand_gamma(s, b);
    return x / (x + y);
}

/* ---- counts ---- */

/* Below 1/3 by inversion, else by going through the probabilities. */
template <class S> AD_HD double curand_geometric(S *s, double p) {
    const double u = s->template below1<double>();
    if (p < 0.333333333333333333333333) return adm::ceil(adm::log(1 - u) / adm::log(1 - p));
    double chance = p, sum = p, k = 1;
    for (; u > sum && k < CURAND_STEPS; k++) {
        chance *= 1 - p;
        sum += chance;
    }
    return k;
}

/* log of the gamma function, of whole numbers. */
AD_HD double curand_log_gamma(double x) {
    constexpr double term[10] = {8.333333333333333e-02,  -2.777777777777778e-03, 7.936507936507937e-04,
                                 -5.952380952380952e-04, 8.417508417508418e-04,  -1.917526917526918e-03,
                                 6.410256410256410e-03,  -2.955065359477124e-02, 1.796443723688307e-01,
                                 -1.39243221690590e+00};
    if (x == 1 || x == 2) return 0;
    const int up = x <= 7 ? int(7 - x) : 0;
    double far = x + up;
    const double square = 1 / (far * far);
    double sum = term[9];
    for (int k = 8; k >= 0; k--) sum = sum * square + term[k];
    sum = sum / far + 0.5 * adm::log(6.283185307179586) + (far - 0.5) * adm::log(far) - far;
    for (int k = 0; k < up; k++) sum -= adm::log(far -= 1);
    return sum;
}

template <class S> AD_HD double curand_poisson_small(S *s, double lam) {
    const double end = adm::exp(-lam);
    double product = 1;
    for (int k = 0; k < CURAND_STEPS; k++) {
        product *= s->template below1<double>();
        if (product <= end) return k;
    }
    return lam;
}

/* Transformed rejection with squeeze (Hörmann, 1993). */
template <class S> AD_HD double curand_poisson_large(S *s, double lam) {
    const double b = 0.931 + 2.53 * adm::sqrt(lam), a = -0.059 + 0.02483 * b, log_lam = adm::log(lam);
    const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), squeeze = 0.9277 - 3.6224 / (b - 2);
    for (int i = 0; i < RANDOM_TRIES; i++) {
        const double u = s->template below1<double>() - 0.5, v = s->template below1<double>(), us = 0.5 - adm::fabs(u);
        const double k = adm::floor((2 * a / us + b) * u + lam + 0.43);
        if (us >= 0.07 && v <= squeeze) return k;
        if (k < 0 || (us < 0.013 && v > us)) continue;
        if (adm::log(v) + adm::log(inverse_alpha) - adm::log(a / (us * us) + b) <=
            -lam + k * log_lam - curand_log_gamma(k + 1))
            return k;
    }
    return adm::floor(lam);
}

template <class S> AD_HD double curand_poisson(S *s, double lam) {
    if (!(lam < RANDOM_MOST)) return RANDOM_MOST;
    return lam >= 10 ? curand_poisson_large(s, lam) : lam == 0 ? 0 : curand_poisson_small(s, lam);
}

/* Kemp (1981). */
template <class S> AD_HD double curand_logseries(S *s, double p) {
    const double r = adm::log(1 - p);
    for (int i = 0; i < RANDOM_TRIES; i++) {
        const double v = s->template below1<double>();
        if (v >= p) return 1;
        const double q = 1 - adm::exp(r * s->template below1<double>());
        if (v > q * q) return v >= q ? 1 : 2;
        const double k = adm::floor(1 + adm::log(v) / adm::log(q));
        if (k >= 1) return k;
    }
    return 1;
}

/* ---- binomial, for p <= 1/2 ---- */

template <class S> AD_HD double curand_binomial_small(S *s, double n, double p) {
    const double q = 1 - p, none = adm::exp(n * adm::log(q)), mean = n * p;
    const double most = adm::floor(mean + 10 * adm::sqrt(mean * q + 1)), bound = most < n ? most : n;
    for (int i = 0; i < RANDOM_TRIES; i++) {
        double u = s->template below1<double>(), chance = none, k = 0;
        while (u > chance && k <= bound) {
            k++;
            u -= chance;
            chance = (n - k + 1) * p * chance / (k * q);
        }
        if (k <= bound) return k;
    }
    return adm::floor(mean);
}

AD_HD double curand_stirling(double x) {
    const double square = x * x;
    return (13680. - (462. - (132. - (99. - 140. / square) / square) / square) / square) / x / 166320.;
}

/* Kachitvichyanukul and Schmeiser (1988: BTPE): a hat of a triangle, a parallelogram and two exponential tails. */
struct curand_btpe {
    double n, r, q, spread, centre, mode, left, right, middle, skew, rate_left, rate_right, area[4];

    AD_HD curand_btpe(double trials, double p) : n(trials), r(p), q(1 - p), spread(n * r * q) {
        const double top = n * r + r;
        mode = adm::floor(top);
        area[0] = adm::floor(2.195 * adm::sqrt(n * r * q) - 4.6 * q) + 0.5;
        middle = mode + 0.5;
        left = middle - area[0];
        right = middle + area[0];
        skew = 0.134 + 20.5 / (15.3 + mode);
        const double a = (top - left) / (top - left * r), b = (right - top) / (right * q);
        rate_left = a * (1 + a / 2);
        rate_right = b * (1 + b / 2);
        area[1] = area[0] * (1 + 2 * skew);
        area[2] = area[1] + skew / rate_left;
        area[3] = area[2] + skew / rate_right;
    }
    /* A candidate from the point (u, v); -1: none. *v becomes its height; sure: it lies below the triangle. */
    AD_HD double candidate(double u, double *v, bool *sure) const {
        if ((*sure = u <= area[0])) return adm::floor(middle - area[0] * *v + u);
        if (u <= area[1]) {
            const double x = left + (u - area[0]) / skew;
            *v = *v * skew + 1 - adm::fabs(mode - x + 0.5) / area[0];
            return *v > 1 ? -1 : adm::floor(x);
        }
        const bool below = u <= area[2];
        const double y = adm::floor(below ? left + adm::log(*v) / rate_left : right - adm::log(*v) / rate_right);
        if (!(y >= 0 && y <= n)) return -1;
        *v *= below ? (u - area[1]) * rate_left : (u - area[2]) * rate_right;
        return y;
    }
    /* Near the mode, or so far away that few steps are left: the ratio of the probabilities of y and the mode. */
    AD_HD bool accept_by_ratio(double y, double v) const {
        const double s = r / q, a = s * (n + 1), first = y < mode ? y : mode, last = y < mode ? mode : y;
        double ratio = 1;
        int steps = 0;
        for (double i = first + 1; i <= last && steps < CURAND_STEPS; i++, steps++)
            ratio = mode < y ? ratio * (a / i - s) : ratio / (a / i - s);
        return v <= ratio;
    }
    AD_HD bool accept(double y, double v) const {
        const double k = adm::fabs(y - mode);
        if (!(k > 20 && k < spread / 2 - 1)) return accept_by_ratio(y, v);
        const double width = k / spread * ((k * (k / 3 + 0.625) + 0.16666666666666666) / spread + 0.5);
        const double t = -k * k / (2 * spread), height = adm::log(v);
        if (height < t - width) return true;
        if (height > t + width) return false;
        const double x1 = y + 1, f1 = mode + 1, z = n + 1 - mode, w = n - y + 1;
        return !(height > middle * adm::log(f1 / x1) + (n - mode + 0.5) * adm::log(z / w) +
                              (y - mode) * adm::log(w * r / (x1 * q)) + curand_stirling(f1) + curand_stirling(z) +
                              curand_stirling(x1) + curand_stirling(w));
    }
};

template <class S> AD_HD double curand_binomial_large(S *s, double n, double p) {
    const curand_btpe b(n, p);
    for (int i = 0; i < RANDOM_TRIES; i++) {
        const double u = s->template below1<double>() * b.area[3];
        double v = s->template below1<double>();
        bool sure;
        const double y = b.candidate(u, &v, &sure);
        if (y >= 0 && (sure || b.accept(y, v))) return y;
    }
    return b.mode;
}

template <class S> AD_HD double curand_binomial(S *s, double n, double p) {
    const double q = p <= 0.5 ? p : 1 - p;
    const double k = q * n <= 30 ? curand_binomial_small(s, n, q) : curand_binomial_large(s, n, q);
    return p <= 0.5 ? k : n - k;
}

/* ---- hypergeometric ---- */

/* One by one. */
template <class S> AD_HD double curand_hypergeometric_small(S *s, double good, double bad, double sample) {
    const double few = good < bad ? good : bad, rest = good + bad - sample;
    double left = few;
    for (double k = sample; left > 0 && k > 0; k--)
        left -= adm::floor(s->template below1<double>() + left / (rest + k));
    return good > bad ? sample - (few - left) : few - left;
}

/* Ratio of uniforms (Stadlober, 1989: HRUA). */
template <class S> AD_HD double curand_hypergeometric_large(S *s, double good, double bad, double sample) {
    const double few = good < bad ? good : bad, many = good < bad ? bad : good, total = good + bad;
    const double m = sample < total - sample ? sample : total - sample, share = few / total, centre = m * share + 0.5;
    const double spread = adm::sqrt((total - m) * sample * share * (1 - share) / (total - 1) + 0.5);
    const double width = 1.7155277699214135 * spread + 0.8989161620588988;
    const double mode = adm::floor((m + 1) * (few + 1) / (total + 2));
    const double top = curand_log_gamma(mode + 1) + curand_log_gamma(few - mode + 1) + curand_log_gamma(m - mode + 1) +
                       curand_log_gamma(many - m + mode + 1);
    const double most = (m < few ? m : few) + 1, far = adm::floor(centre + 16 * spread), end = most < far ? most : far;
    double k = mode;
    for (int i = 0; i < RANDOM_TRIES; i++) {
        const double x = s->template below1<double>(), y = s->template below1<double>();
        const double w = centre + width * (y - 0.5) / x;
        if (!(w >= 0 && w < end)) continue;
        k = adm::floor(w);
        const double t = top - (curand_log_gamma(k + 1) + curand_log_gamma(few - k + 1) + curand_log_gamma(m - k + 1) +
                                curand_log_gamma(many - m + k + 1));
        if (x * (4 - x) - 3 <= t) break;
        if (x * (x - t) < 1 && 2 * adm::log(x) <= t) break;
    }
    if (good > bad) k = m - k;
    return m < sample ? good - k : k;
}

/* The rest of a large sample is few: they are drawn instead of it, where CuPy draws the sample one by one. */
template <class S> AD_HD double curand_hypergeometric(S *s, double good, double bad, double sample) {
    const double rest = good + bad - sample;
    if (sample <= 0) return 0;
    if (sample > 10 && rest >= 10) return curand_hypergeometric_large(s, good, bad, sample);
    return sample > CURAND_STEPS ? good - curand_hypergeometric_small(s, good, bad, rest)
                                 : curand_hypergeometric_small(s, good, bad, sample);
}

/* ---- what RandomState has besides ---- */

template <class S> AD_HD double curand_chisquare(S *s, double df) { return 2 * curand_gamma(s, df / 2); }

template <class S> AD_HD double curand_noncentral_chisquare(S *s, double df, double nonc) {
    if (nonc == 0) return curand_chisquare(s, df);
    if (!(df > 1)) return curand_chisquare(s, df + 2 * curand_poisson(s, nonc / 2));
    const double rest = curand_chisquare(s, df - 1), x = s->template normal<double>() + adm::sqrt(nonc);
    return rest + x * x;
}

template <class S> AD_HD double curand_noncentral_f(S *s, double dfnum, double dfden, double nonc) {
    const double x = curand_noncentral_chisquare(s, dfnum, nonc) * dfden;
    return x / (curand_chisquare(s, dfden) * dfnum);
}

template <class S> AD_HD double curand_standard_t(S *s, double df) {
    const double x = adm::sqrt(df / 2) * s->template normal<double>();
    return x / adm::sqrt(curand_gamma(s, df / 2));
}

/* Best and Fisher (1979). Where kappa is next to nothing the numbers are uniform, whatever mu is, as CuPy's. */
template <class S> AD_HD double curand_vonmises(S *s, double mu, double kappa) {
    constexpr double PI = 3.14159265358979323846;
    if (kappa < 1e-8) return PI * (2 * s->template below1<double>() - 1);
    const double tau = 1 + adm::sqrt(1 + 4 * kappa * kappa), rho = (tau - adm::sqrt(2 * tau)) / (2 * kappa);
    const double r = kappa < 1e-5 ? 1 / kappa + kappa : (1 + rho * rho) / (2 * rho);
    for (int i = 0; i < RANDOM_TRIES; i++) {
        const double z = adm::cos(PI * s->template below1<double>()), w = (1 + r * z) / (r + z), y = kappa * (r - w);
        const double v = s->template below1<double>();
        if (!(y * (2 - y) - v >= 0 || adm::log(y / v) + 1 - y >= 0)) continue;
        const double side = s->template below1<double>() < 0.5 ? -1 : 1, x = side * adm::acos(w) + mu;
        const double turned = ::fmod(adm::fabs(x) + PI, 2 * PI) - PI;
        return x < 0 ? -turned : turned;
    }
    return mu;
}

/* Rejection from the floor of a Pareto number (Devroye, 1986). */
template <class S> AD_HD double curand_zipf(S *s, double a) {
    const double power = a - 1, b = ::pow(2.0, power);
    for (int i = 0; i < RANDOM_TRIES; i++) {
        const double u = 1 - s->template below1<double>(), v = s->template below1<double>();
        const double x = adm::floor(::pow(u, -1 / power));
        if (!(x >= 1)) continue;
        const double t = ::pow(1 + 1 / x, power);
        if (v * x * (t - 1) / (b - 1) <= t / b) return x;
    }
    return 1;
}

/* ---- integers ---- */

/* 0..most: words without the bits that most has not, until one fits. */
template <class R, class S> AD_HD R curand_below(S *s, R most) {
    R mask = most;
    for (int i = 1; i < int(sizeof(R)) * 8; i *= 2) mask |= mask >> i;
    for (int i = 0; i < CURAND_TRIES; i++) {
        R w = s->g.word();
        if constexpr (sizeof(R) == 8) w = w << 32 | s->g.word();
        if ((w & mask) <= most) return w & mask;
    }
    return most;
}

/* ---- the rows of curand.def: one element ---- */

template <int Id, class T> AD_HD T curand_from_normal(T z, const random_parameters<T> &p) {
    const T x = random_affine(p.a, p.b, z);
    if constexpr (Id == AD_RANDOM_lognormal) return adm::exp(x);
    else return x;
}

template <int Id, class T> struct curand_one; /* T: of the output; P: of the parameters */

#define AD_CURAND_ONE(name, Parameter)                                             \
    template <class T> struct curand_one<AD_RANDOM_##name, T> {                    \
        using P = Parameter;                                                       \
        template <class S> static AD_HD T of(S *s, const random_parameters<P> &p); \
    };                                                                             \
    template <class T> template <class S>                                          \
    AD_HD T curand_one<AD_RANDOM_##name, T>::of(S *s, [[maybe_unused]] const random_parameters<P> &p)

AD_CURAND_ONE(bits, uint64_t) { return s->g.word(); }
AD_CURAND_ONE(integers, uint64_t) { return T(p.a) + curand_below<T>(s, T(p.b - p.a)); }
AD_CURAND_ONE(uniform, T) { return random_affine(p.a, p.b - p.a, s->template below1<T>()); }
AD_CURAND_ONE(upto1, T) { return s->g.template upto1<T>(); }
AD_CURAND_ONE(normal, T) { return curand_from_normal<AD_RANDOM_normal>(s->template normal<T>(), p); }
AD_CURAND_ONE(lognormal, T) { return curand_from_normal<AD_RANDOM_lognormal>(s->template normal<T>(), p); }
AD_CURAND_ONE(exponential, double) { return curand_exponential(s) * p.a; }
AD_CURAND_ONE(gamma, double) { return curand_gamma(s, p.a) * p.b; }
AD_CURAND_ONE(beta, double) { return curand_beta(s, p.a, p.b); }
AD_CURAND_ONE(poisson, double) { return random_count(curand_poisson(s, p.a)); }
AD_CURAND_ONE(binomial, double) { return random_count(curand_binomial(s, p.a, p.b)); }
AD_CURAND_ONE(geometric, double) { return random_count(curand_geometric(s, p.a)); }
AD_CURAND_ONE(hypergeometric, double) { return random_count(curand_hypergeometric(s, p.a, p.b, p.c)); }
AD_CURAND_ONE(logseries, double) { return random_count(curand_logseries(s, p.a)); }
AD_CURAND_ONE(chisquare, double) { return curand_chisquare(s, p.a); }
AD_CURAND_ONE(f, double) {
    const double x = curand_chisquare(s, p.a) * p.b;
    return x / (curand_chisquare(s, p.b) * p.a);
}
AD_CURAND_ONE(noncentral_chisquare, double) { return curand_noncentral_chisquare(s, p.a, p.b); }
AD_CURAND_ONE(noncentral_f, double) { return curand_noncentral_f(s, p.a, p.b, p.c); }
AD_CURAND_ONE(standard_t, double) { return curand_standard_t(s, p.a); }
AD_CURAND_ONE(vonmises, double) { return curand_vonmises(s, p.a, p.b); }
AD_CURAND_ONE(zipf, double) { return random_count(curand_zipf(s, p.a)); }
#undef AD_CURAND_ONE

/* Whether a generator has a row; Generators: as in curand.def. */
template <class G, unsigned Generators>
constexpr bool curand_has = (Generators & (same<G, xor128> ? AD_CURAND_ELEMENTS : AD_CURAND_SEQUENCES)) != 0;

/* ---- the elements of a state ----
 * A slot is an element, or, of normal numbers in host order, a pair of them. Slot k comes from state (first + k) %
 * states, so a state has every states-th one. */

struct curand_turns {
    int64_t states, first, count; /* count: elements */
    bool host;
};

template <int Id> constexpr bool curand_paired = Id == AD_RANDOM_normal || Id == AD_RANDOM_lognormal;

template <int Id> AD_HD int64_t curand_slots(const curand_turns &t) {
    return t.host && curand_paired<Id> ? t.count / 2 + t.count % 2 : t.count;
}
AD_HD int64_t curand_first_slot(const curand_turns &t, int64_t state) {
    const int64_t k = state - t.first;
    return k < 0 ? k + t.states : k;
}

/* In the host API's orders a product is added to with one rounding, as CuPy's kernel does. */
template <class T> AD_HD T curand_scaled(T u, const random_parameters<T> &p) {
#ifdef __CUDA_ARCH__
    return ::fma(u, p.b - p.a, p.a);
#else
    if constexpr (same<T, float>) return __builtin_fmaf(u, p.b - p.a, p.a);
    else return __builtin_fma(u, p.b - p.a, p.a);
#endif
}

/* A parameter that is NaN makes the element NaN, of which nothing is drawn. */
template <int Id, class T, class S, class P> AD_HD T curand_element(S *s, const random_parameters<P> &p) {
    if constexpr (same<P, T>)
        if (p.a != p.a || p.b != p.b || p.c != p.c) return p.a + p.b + p.c;
    return curand_one<Id, T>::of(s, p);
}

/* Draw slot k of a state: parameters(element) gives those of an element, put(element, value) takes it. */
template <int Id, class T, class G, class Parameters, class Put>
AD_HD void curand_draw(curand_state<G> *s, const curand_turns &t, int64_t k, Parameters parameters, Put put) {
    if constexpr (curand_paired<Id>)
        if (t.host) {
            const normal_pair_of<T> pair = curand_normal_pair<T>(&s->g);
            put(2 * k, curand_from_normal<Id>(pair.first, parameters(2 * k)));
            if (2 * k + 1 < t.count) put(2 * k + 1, curand_from_normal<Id>(pair.second, parameters(2 * k + 1)));
            return;
        }
    if constexpr (Id == AD_RANDOM_uniform)
        if (t.host) return put(k, curand_scaled(s->template below1<T>(), parameters(k)));
    put(k, curand_element<Id, T>(s, parameters(k)));
}

} // namespace AD_ISA
} // namespace ad
#endif
