/* Conditions on the parameters of distributions. */
#ifndef AD_KERNELS_RANDOM_CHECK_H
#define AD_KERNELS_RANDOM_CHECK_H

#include "kernels/random.h"

namespace ad {
inline namespace AD_ISA {

template <class T> AD_HD bool random_in_domain(int domain, T x) {
    switch (domain) {
    case AD_DOMAIN_NONNEG: return !(x < 0);
    case AD_DOMAIN_POSITIVE: return !(x <= 0);
    case AD_DOMAIN_UNIT: return x >= 0 && x <= 1;
    case AD_DOMAIN_ABOVE0: return x > 0 && x <= 1;
    case AD_DOMAIN_BELOW1: return x >= 0 && x < 1;
    case AD_DOMAIN_ABOVE1: return x > 1;
    case AD_DOMAIN_MEAN: return x >= 0 && x <= T(9.2e18);
    default: return true;
    }
}

template <int Id> struct random_row;
#define AD_DISTRIBUTION(id, name, source_, loops_, p0, d0, p1, d1, p2, d2, doc)                                     \
    template <> struct random_row<id> {                                                                             \
        static constexpr int source = AD_RANDOM_##source_, d[3] = {AD_DOMAIN_##d0, AD_DOMAIN_##d1, AD_DOMAIN_##d2}; \
        static constexpr uint32_t loops = AD_RANDOM_##loops_;                                                       \
        static constexpr int parameters =                                                                           \
            (d[0] != AD_DOMAIN_NONE) + (d[1] != AD_DOMAIN_NONE) + (d[2] != AD_DOMAIN_NONE);                         \
    };
#include "protocol/distribution.def"
#undef AD_DISTRIBUTION

/* Find what is wrong, as ad__random_fault has it; 0: nothing. domain: the row's. Numbers of trials are no NaN. */
template <class T> AD_HD int random_wrong(int id, const int *domain, T a, T b, T c) {
    if (!random_in_domain(domain[0], a)) return 1;
    if (!random_in_domain(domain[1], b)) return 2;
    if (!random_in_domain(domain[2], c)) return 3;
    switch (id) {
    case AD_RANDOM_triangular: return a > b || b > c ? AD_RANDOM_ORDER : a == c ? AD_RANDOM_FLAT : 0;
    case AD_RANDOM_hypergeometric: return !(a + b >= c) ? AD_RANDOM_SAMPLE : !(a + b < 2e9) ? AD_RANDOM_LARGE : 0;
    case AD_RANDOM_binomial:
    case AD_RANDOM_negative_binomial: return a != a ? 1 : a > T(9.2e18) ? AD_RANDOM_LARGE : 0;
    default: return 0;
    }
}

template <int Id, class T> AD_HD int random_wrong(T a, T b, T c) {
    constexpr int domain[3] = {random_row<Id>::d[0], random_row<Id>::d[1], random_row<Id>::d[2]};
    return random_wrong(Id, domain, a, b, c);
}

} // namespace AD_ISA
} // namespace ad
#endif
