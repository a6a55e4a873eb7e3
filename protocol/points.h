/* The metrics of the call pair_distances by their numbers on the wire, and what bounds nearest_points. A metric has its
 * name and about how many ns a processor takes for a coordinate of a pair: roots, logarithms and powers take longest.
 */
#ifndef AD_PROTOCOL_POINTS_H
#define AD_PROTOCOL_POINTS_H

#define AD_PAIR_METRICS(X) \
    X(sqeuclidean, 1)      \
    X(euclidean, 1)        \
    X(cityblock, 1)        \
    X(chebyshev, 1)        \
    X(minkowski, 20)       \
    X(canberra, 2)         \
    X(braycurtis, 1)       \
    X(hamming, 1)          \
    X(russellrao, 1)       \
    X(cosine, 1)           \
    X(jensenshannon, 30)   \
    X(kl_divergence, 15)   \
    X(hellinger, 4)

enum ad_pair_metric {
#define X(name, ns) AD_PAIRS_##name,
    AD_PAIR_METRICS(X)
#undef X
        AD_NPAIR_METRICS
};

#define AD_MOST_NEAREST 16 /* points that a query finds, at most */

#endif
