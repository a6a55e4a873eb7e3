/* Distributions whose elements draw as many numbers as they need, from blocks of their own. */
#ifndef AD_KERNELS_RANDOM_OWN_H
#define AD_KERNELS_RANDOM_OWN_H

#include "kernels/random_block.h"

namespace ad {
inline namespace AD_ISA {

/* Attempts, each of which is accepted with a probability of a fifth at least. Only words that are no state of a generator
 * come to their end, and must not keep other clients waiting (ad__random_cost of protocol/curand.h). */
constexpr int RANDOM_TRIES = 128;
constexpr double RANDOM_MOST = 9223372036854774784.0; /* the greatest double below 2^63 */

AD_HD int64_t random_count(double x) { return x >= RANDOM_MOST ? INT64_MAX : int64_t(x); }

/* The angle needs no more than 32 bits; a gamma number's attempt is then a single block. */
template <class T> AD_HD T random_normal(random_sequence *s) {
    const T r = radius(s->upto1<T>());
    T sine, cosine;
    sine_cosine(T(int32_t(s->word())) * T(0x1p-31), &sine, &cosine);
    return r * cosine;
}

/* ---- gamma and what is made from it ---- */

/* Marsaglia and Tsang (2000), for shapes from 1 on. */
template <class T> AD_HD T random_gamma_above1(random_sequence *s, T shape) {
    const T d = shape - T(1) / 3, c = 1 / adm::sqrt(9 * d);
    for (int i = 0; i < RANDOM_TRIES; i++) {
        const T x = random_normal<T>(s), root = 1 + c * x, v = root * root * root, square = x * x;
        const T u = T(random_number<float>::upto1(s->word()));
        if (root <= 0) continue;
        if (u < 1 - T(0.0331) * square * square || adm::log(u) < square / 2 + d * (1 - v + adm::log(v))) return d * v;
    }
    return shape;
}

template <class T> AD_HD T random_gamma(random_sequence *s, T shape) {
    if (shape >= 1) return random_gamma_above1(s, shape);
    if (!(shape > 0)) return shape == 0 ? T(0) : shape;
    const T u = s->upto1<T>();
    return random_gamma_above1(s, shape + 1) * adm::exp(adm::log(u) / shape);
}

template <class T> AD_HD T random_chisquare(random_sequence *s, T df) { return 2 * random_gamma(s, df / 2); }

/* Jöhnk (1964), in logarithms where the powers underflow. */
template <class T> AD_HD T random_beta_below1(random_sequence *s, T a, T b) {
    for (int i = 0; i < RANDOM_TRIES; i++) {
        const T u = adm::log(s->upto1<T>()), v = adm::log(s->upto1<T>()), x = u / a, y = v / b;
        const T top = x > y ? x : y, sum = adm::exp(x - top) + adm::exp(y - top);
        if (sum != sum) return u / v < a / b ? T(1) : T(0); /* x and y are -inf, as a and b are almost 0 */
        if (top + adm::log(sum) <= 0) return adm::exp(x - top) / sum;
    }
    return a / (a + b);
}

template <class T> AD_HD T random_beta(random_sequence *s, T a, T b) {
    if (a <= 1 && b <= 1) return random_beta_below1(s, a, b);
    const T x = random_gamma(s, a), y = random_gamma(s, b);
    return x / (x + y);
}

/* ---- Poisson ---- */

AD_HD double random_log_factorial_tail(double k) {
    constexpr double small[10] = {0.08106146679532726,  0.04134069595540929, 0.02767792568499834, 0.02079067210376509,
                                  0.01664469118982119,  0.01387612882307075, 0.01189670994589177, 0.01041126526197209,
                                  0.009255462182712733, 0.008330563433362871};
    if (k < 10) return small[int(k)];
    const double n = k + 1, square = n * n;
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / n;
}

/* log(k!) */
AD_HD double random_log_factorial(double k) {
    const double n = k + 1;
    return random_log_factorial_tail(k) + (k + 0.5) * adm::log(n) - n + 0.91893853320467274178;
}

/* log(lam^k exp(-lam)/k!), without the differences of large numbers that this looks like. */
AD_HD double random_log_poisson(double lam, double k) {
    const double n = k + 1; /* k! = n!/n */
    return n * adm::log1p((lam - n) / n) - (lam - n) + adm::log(n / lam) - 0.5 * adm::log(6.283185307179586 * n) -
           (1.0 / 12 - (1.0 / 360 - 1.0 / (1260 * n * n)) / (n * n)) / n;
}

AD_HD double random_poisson_small(random_sequence *s, double lam) {
    double u = s->inside<double>(), p = adm::exp(-lam);
    int k = 0;
    for (; u > p && k < 200; k++) {
        u -= p;
        p *= lam / (k + 1);
    }
    return k;
}

/* Transformed rejection with squeeze (Hörmann, 1993). */
AD_HD double random_poisson_large(random_sequence *s, double lam) {
    const double b = 0.931 + 2.53 * adm::sqrt(lam), a = -0.059 + 0.02483 * b,
                 inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
    const double squeeze = 0.9277 - 3.6224 / (b - 2);
    for (int i = 0; i < RANDOM_TRIES; i++) {
        const double u = s->inside<double>() - 0.5, v = s->inside<double>(), us = 0.5 - adm::fabs(u);
        const double k = adm::floor((2 * a / us + b) * u + lam + 0.43);
        if (us >= 0.07 && v <= squeeze) return k;
        if (k < 0 || (us < 0.013 && v > us)) continue;
        if (adm::log(v * inverse_alpha / (a / (us * us) + b)) <= random_log_poisson(lam, k)) return k;
    }
    return adm::floor(lam);
}

AD_HD double random_poisson(random_sequence *s, double lam) {
    if (!(lam < RANDOM_MOST)) return RANDOM_MOST;
    return lam < 10 ? random_poisson_small(s, lam) : random_poisson_large(s, lam);
}

/* ---- binomial, for p <= 1/2 ---- */

AD_HD double random_binomial_small(random_sequence *s, double n, double p) {
    const double odds = p / (1 - p), none = adm::exp(n * adm::log1p(-p));
    for (int i = 0; i < RANDOM_TRIES; i++) {
        double u = s->inside<double>(), chance = none;
        for (int k = 0; k <= n && k < 200; k++) {
            if (u <= chance) return k;
            u -= chance;
            chance *= (n - k) / (k + 1) * odds;
        }
    }
    return 0;
}

/* Transformed rejection with squeeze (Hörmann, 1993: BTRS). */
AD_HD double random_binomial_large(random_sequence *s, double n, double p) {
    const double odds = p / (1 - p), spread = adm::sqrt(n * p * (1 - p)), b = 1.15 + 2.53 * spread;
    const double a = -0.0873 + 0.0248 * b + 0.01 * p, centre = n * p + 0.5, squeeze = 0.92 - 4.2 / b;
    const double alpha = (2.83 + 5.1 / b) * spread, mode = adm::floor((n + 1) * p);
    for (int i = 0; i < RANDOM_TRIES; i++) {
        const double u = s->inside<double>() - 0.5, us = 0.5 - adm::fabs(u),
                     k = adm::floor((2 * a / us + b) * u + centre);
        double v = s->inside<double>();
        if (us >= 0.07 && v <= squeeze) return k;
        if (k < 0 || k > n) continue;
        v = adm::log(v * alpha / (a / (us * us) + b));
        const double least = (mode + 0.5) * adm::log((mode + 1) / (odds * (n - mode + 1))) +
                             (n + 1) * adm::log((n - mode + 1) / (n - k + 1)) +
                             (k + 0.5) * adm::log(odds * (n - k + 1) / (k + 1)) + random_log_factorial_tail(mode) +
                             random_log_factorial_tail(n - mode) - random_log_factorial_tail(k) -
                             random_log_factorial_tail(n - k);
        if (v <= least) return k;
    }
    return mode;
}

AD_HD double random_binomial(random_sequence *s, double n, double p) {
    const bool turned = p > 0.5;
    if (turned) p = 1 - p;
    const double k = p == 0 || n == 0 ? 0
                     : n * p < 10     ? random_binomial_small(s, n, p)
                                      : random_binomial_large(s, n, p);
    return turned ? n - k : k;
}

/* ---- hypergeometric ---- */

AD_HD double random_hypergeometric_small(random_sequence *s, double good, double bad, int sample) {
    double left = good, total = good + bad;
    for (int i = 0; i < sample; i++, total -= 1)
        if (s->inside<double>() * total < left) left -= 1;
    return good - left;
}

/* Ratio of uniforms (Stadlober, 1989: HRUA), for the rarer kind and the smaller of sample and rest. */
AD_HD double random_hypergeometric_large(random_sequence *s, double few, double many, double sample, double total) {
    const double share = few / total, centre = sample * share + 0.5;
    const double spread = adm::sqrt((total - sample) * sample * share * (1 - share) / (total - 1) + 0.5);
    const double width = 1.7155277699214135 * spread + 0.8989161620588988;
    const double mode = adm::floor((sample + 1) * (few + 1) / (total + 2));
    const double top = random_log_factorial(mode) + random_log_factorial(few - mode) +
                       random_log_factorial(sample - mode) + random_log_factorial(many - sample + mode);
    const double most = (few < sample ? few : sample) + 1, end = adm::floor(centre + 16 * spread);
    for (int i = 0; i < RANDOM_TRIES; i++) {
        const double x = s->inside<double>(), w = centre + width * (s->inside<double>() - 0.5) / x;
        if (!(w >= 0) || w >= (most < end ? most : end)) continue;
        const double k = adm::floor(w);
        const double t = top - (random_log_factorial(k) + random_log_factorial(few - k) +
                                random_log_factorial(sample - k) + random_log_factorial(many - sample + k));
        if (x * (4 - x) - 3 <= t) return k;
        if (x * (x - t) < 1 && 2 * adm::log(x) <= t) return k;
    }
    return mode;
}

AD_HD double random_hypergeometric(random_sequence *s, double good, double bad, double sample) {
    const double total = good + bad, taken = sample < total - sample ? sample : total - sample;
    const bool more = good > bad;
    if (sample < 10) return random_hypergeometric_small(s, good, bad, int(sample));
    double k = taken < 10 ? random_hypergeometric_small(s, more ? bad : good, more ? good : bad, int(taken))
                          : random_hypergeometric_large(s, more ? bad : good, more ? good : bad, taken, total);
    if (more) k = taken - k;
    return taken < sample ? good - k : k;
}

/* ---- others ---- */

/* Kemp (1981). */
AD_HD double random_logseries(random_sequence *s, double p) {
    const double r = adm::log1p(-p);
    const double v = s->inside<double>(), q = -adm::expm1(r * s->inside<double>());
    if (v >= p) return 1;
    if (v <= q * q) {
        const double k = adm::floor(1 + adm::log(v) / adm::log(q));
        return k < 1 ? 1 : k;
    }
    return v >= q ? 1 : 2;
}

/* Rejection from the floor of a Pareto number (Devroye, 1986). */
AD_HD double random_zipf(random_sequence *s, double a) {
    if (a >= 1025) return 1;
    const double power = a - 1, b = adm::exp2(power), least = adm::exp(-power * 43.66827237527655); /* log(2^63) */
    for (int i = 0; i < RANDOM_TRIES; i++) {
        const double u = s->inside<double>(), v = s->inside<double>();
        const double x = adm::floor(adm::exp(-adm::log(u * least + (1 - u)) / power));
        if (!(x >= 1) || x > RANDOM_MOST) continue;
        const double t = adm::exp(power * adm::log1p(1 / x));
        if (v * x * (t - 1) / (b - 1) <= t / b) return x;
    }
    return 1;
}

AD_HD double random_wrap(double x) { return x - 6.283185307179586 * adm::rint(x / 6.283185307179586); }

/* Best and Fisher (1979); uniform and normal at the ends of kappa's range. */
AD_HD double random_vonmises(random_sequence *s, double mu, double kappa) {
    constexpr double PI = 3.14159265358979323846;
    if (kappa < 1e-8) return random_wrap(mu + PI * (2 * s->inside<double>() - 1));
    if (kappa > 1e6) return random_wrap(mu + adm::sqrt(1 / kappa) * random_normal<double>(s));
    const double tau = 1 + adm::sqrt(1 + 4 * kappa * kappa), rho = (tau - adm::sqrt(2 * tau)) / (2 * kappa);
    const double r = kappa < 1e-5 ? 1 / kappa + kappa : (1 + rho * rho) / (2 * rho);
    for (int i = 0; i < RANDOM_TRIES; i++) {
        const double z = adm::cos(PI * s->inside<double>()), f = (1 + r * z) / (r + z), c = kappa * (r - f);
        const double u = s->inside<double>(), side = s->word() >> 31 ? -1 : 1;
        if (c * (2 - c) - u >= 0 || adm::log(c / u) + 1 - c >= 0)
            return random_wrap(mu + side * adm::acos(f > 1 ? 1.0 : f < -1 ? -1.0 : f));
    }
    return random_wrap(mu);
}

/* Michael, Schucany and Haas (1976). */
AD_HD double random_wald(random_sequence *s, double mean, double scale) {
    const double z = random_normal<double>(s), y = mean * z * z;
    const double root = y + adm::sqrt(4 * scale * y + y * y), x = y > 0 ? mean * (4 * scale * y / root / root) : mean;
    return s->inside<double>() <= mean / (mean + x) ? x : mean * (mean / x);
}

/* ---- the rows of distribution.def: one element ---- */

template <int Id, class T> struct random_own; /* T: of the output; P: of the parameters */

#define AD_RANDOM_OWN(name, Parameter)                                        \
    template <class T> struct random_own<AD_RANDOM_##name, T> {               \
        using P = Parameter;                                                  \
        static AD_HD T of(random_sequence *s, const random_parameters<P> &p); \
    };                                                                        \
    template <class T> AD_HD T random_own<AD_RANDOM_##name, T>::of(random_sequence *s, const random_parameters<P> &p)

AD_RANDOM_OWN(gamma, T) { return random_gamma(s, p.a) * p.b; }
AD_RANDOM_OWN(beta, T) { return random_beta(s, p.a, p.b); }
AD_RANDOM_OWN(chisquare, T) { return random_chisquare(s, p.a); }
AD_RANDOM_OWN(f, T) {
    const T x = random_chisquare(s, p.a);
    return x / p.a / (random_chisquare(s, p.b) / p.b);
}
template <class T> AD_HD T random_noncentral_chisquare(random_sequence *s, T df, T nonc) {
    if (df > 1) {
        const T x = random_normal<T>(s) + adm::sqrt(nonc);
        return random_chisquare(s, df - 1) + x * x;
    }
    return random_chisquare(s, df + 2 * T(random_poisson(s, double(nonc) / 2)));
}
AD_RANDOM_OWN(noncentral_chisquare, T) { return random_noncentral_chisquare(s, p.a, p.b); }
AD_RANDOM_OWN(noncentral_f, T) {
    const T x = random_noncentral_chisquare(s, p.a, p.c);
    return x / p.a / (random_chisquare(s, p.b) / p.b);
}
AD_RANDOM_OWN(standard_t, T) {
    const T z = random_normal<T>(s);
    return p.a > T(1e30) ? z : z * adm::sqrt(p.a / 2) / adm::sqrt(random_gamma(s, p.a / 2));
}
AD_RANDOM_OWN(vonmises, T) { return T(random_vonmises(s, double(p.a), double(p.b))); }
AD_RANDOM_OWN(wald, T) { return T(random_wald(s, double(p.a), double(p.b))); }

AD_RANDOM_OWN(poisson, double) { return random_count(random_poisson(s, p.a)); }
AD_RANDOM_OWN(binomial, double) { return random_count(random_binomial(s, p.a, p.b)); }
AD_RANDOM_OWN(geometric, double) {
    return p.a == 1 ? 1 : random_count(adm::ceil(adm::log(s->inside<double>()) / adm::log1p(-p.a)));
}
AD_RANDOM_OWN(hypergeometric, double) { return random_count(random_hypergeometric(s, p.a, p.b, p.c)); }
AD_RANDOM_OWN(negative_binomial, double) {
    return p.b == 1 ? 0 : random_count(random_poisson(s, random_gamma(s, p.a) * ((1 - p.b) / p.b)));
}
AD_RANDOM_OWN(logseries, double) { return random_count(random_logseries(s, p.a)); }
AD_RANDOM_OWN(zipf, double) { return random_count(random_zipf(s, p.a)); }
#undef AD_RANDOM_OWN

} // namespace AD_ISA
} // namespace ad
#endif
