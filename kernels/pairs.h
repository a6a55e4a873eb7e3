/* Distances of two points, coordinate by coordinate, on both backends. */
#ifndef AD_KERNELS_PAIRS_H
#define AD_KERNELS_PAIRS_H

#include "kernels/math_libm.h"
#include "kernels/types.h"
#include "protocol/points.h"

namespace ad {
inline namespace AD_ISA {

/* The terms of a distance so far. V: double, or a vector of them. */
template <class V> struct pair_sums { V a, b; };

template <class V> AD_HD V size_of(V v) { return v < 0 ? -v : v; }
template <class V> AD_HD V one_of(V) { return V{} + 1; }

/* A metric: `add` takes a coordinate of both points, `end` makes the distance of all terms. VECTORS: `add` takes
 * numbers and vectors of them. */
struct metric {
    static constexpr bool VECTORS = true;
    AD_HD static double end(pair_sums<double> s, double, double) { return s.a; }
};

struct metric_sqeuclidean : metric {
    template <class V> AD_HD static void add(pair_sums<V> *s, V x, V y, double) { s->a += (x - y) * (x - y); }
};

struct metric_euclidean : metric_sqeuclidean {
    AD_HD static double end(pair_sums<double> s, double, double) { return adm::sqrt(s.a); }
};

struct metric_cityblock : metric {
    template <class V> AD_HD static void add(pair_sums<V> *s, V x, V y, double) { s->a += size_of(x - y); }
};

struct metric_chebyshev : metric {
    template <class V> AD_HD static void add(pair_sums<V> *s, V x, V y, double) {
        const V far = size_of(x - y);
        s->a = (far > s->a) | (far != far) ? far : s->a;
    }
};

struct metric_minkowski : metric {
    static constexpr bool VECTORS = false;
    AD_HD static void add(pair_sums<double> *s, double x, double y, double p) {
        s->a += adm::libm_pow(size_of(x - y), p);
    }
    AD_HD static double end(pair_sums<double> s, double p, double) { return adm::libm_pow(s.a, 1 / p); }
};

struct metric_canberra : metric {
    template <class V> AD_HD static void add(pair_sums<V> *s, V x, V y, double) {
        const V both = size_of(x) + size_of(y);
        s->a += size_of(x - y) / (both == 0 ? one_of(both) : both);
    }
};

struct metric_braycurtis : metric {
    template <class V> AD_HD static void add(pair_sums<V> *s, V x, V y, double) {
        s->a += size_of(x - y);
        s->b += size_of(x + y);
    }
    AD_HD static double end(pair_sums<double> s, double, double) { return s.a / s.b; }
};

struct metric_hamming : metric {
    template <class V> AD_HD static void add(pair_sums<V> *s, V x, V y, double) { s->a += x != y ? one_of(x) : V{}; }
    AD_HD static double end(pair_sums<double> s, double, double columns) { return s.a / columns; }
};

struct metric_russellrao : metric {
    template <class V> AD_HD static void add(pair_sums<V> *s, V x, V y, double) {
        s->a += (x != 0) & (y != 0) ? one_of(x) : V{};
    }
    AD_HD static double end(pair_sums<double> s, double, double columns) { return 1 - s.a / columns; }
};

struct metric_cosine : metric {
    template <class V> AD_HD static void add(pair_sums<V> *s, V x, V y, double) { s->a += x * y; }
    AD_HD static double end(pair_sums<double> s, double, double) { return 1 - (s.a > 1 ? 1.0 : s.a < -1 ? -1.0 : s.a); }
};

/* x * log(x / y); 0 where x is 0, infinite where y alone is. */
AD_HD double relative_entropy(double x, double y) {
    const double value = x * adm::log((x > 0 ? x : 1.0) / (y > 0 ? y : 1.0));
    return x == 0 ? 0.0 : y > 0 ? value : __builtin_huge_val();
}

struct metric_jensenshannon : metric {
    static constexpr bool VECTORS = false;
    AD_HD static void add(pair_sums<double> *s, double x, double y, double) {
        const double middle = (x + y) / 2;
        s->a += relative_entropy(x, middle) + relative_entropy(y, middle);
    }
    AD_HD static double end(pair_sums<double> s, double, double) { return adm::sqrt((s.a < 0 ? 0.0 : s.a) / 2); }
};

struct metric_kl_divergence : metric {
    static constexpr bool VECTORS = false;
    AD_HD static void add(pair_sums<double> *s, double x, double y, double) { s->a += relative_entropy(x, y); }
};

struct metric_hellinger : metric {
    static constexpr bool VECTORS = false;
    AD_HD static void add(pair_sums<double> *s, double x, double y, double) {
        const double apart = adm::sqrt(x) - adm::sqrt(y);
        s->a += apart * apart;
    }
    AD_HD static double end(pair_sums<double> s, double, double) { return adm::sqrt(s.a) / adm::sqrt(2.0); }
};

} // namespace AD_ISA
} // namespace ad
#endif
