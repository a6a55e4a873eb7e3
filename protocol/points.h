/* The metrics of the call pair_distances by their numbers on the wire, and what bounds nearest_points. */
#ifndef AD_PROTOCOL_POINTS_H
#define AD_PROTOCOL_POINTS_H

#define AD_PAIR_METRICS(X) \
    X(sqeuclidean)         \
    X(euclidean)           \
    X(cityblock)           \
    X(chebyshev)           \
    X(minkowski)           \
    X(canberra)            \
    X(braycurtis)          \
    X(hamming)             \
    X(russellrao)          \
    X(cosine)              \
    X(jensenshannon)       \
    X(kl_divergence)       \
    X(hellinger)

enum ad_pair_metric {
#define X(name) AD_PAIRS_##name,
    AD_PAIR_METRICS(X)
#undef X
        AD_NPAIR_METRICS
};

#define AD_MOST_NEAREST 16 /* points that a query finds, at most */

#endif
