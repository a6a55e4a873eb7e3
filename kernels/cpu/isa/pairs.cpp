/* Distances of points from blocks of points: a point of the block in each lane, so that no lane waits for another. */
#include "kernels/cpu/isa/pairs.h"
#include "kernels/cpu/backend/parallel.h"
#include "kernels/cpu/isa/isa.h"
#include "kernels/accumulate.h"

#include <string.h>

namespace ad {
inline namespace AD_ISA {

constexpr int LANES = AD_PAIR_LANES;
/* Rows that are measured at once, as many as there are registers for. */
constexpr int ROWS = AD_VECTOR_BYTES == 64 ? 2 : 1;
/* Coordinates of a block's points after which an operation can be given up. A few points may have millions. */
constexpr int64_t PIECE = 1 << 10;

/* What a metric's terms are added up in: vectors, or number by number. */
template <class M, bool = M::VECTORS> struct unit_of { using type = vec<double>; };
template <class M> struct unit_of<M, false> { using type = double; };

/* The terms of a block, or of one row after the other. */
template <class V> struct block_sums {
    static constexpr int N = LANES / int(sizeof(V) / sizeof(double));
    pair_sums<V> sum[N];
};

template <class V> inline V load_unit(const double *p) {
    V v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* Add the terms of R rows of coordinates from those of a block. */
template <class M, class V, int R>
inline void add_terms(block_sums<V> *sums, const double *x, int64_t columns, const double *y, double p) {
    constexpr int N = block_sums<V>::N, STEP = LANES / N;
    block_sums<V> own[R] = {};
    for (int64_t k = 0; k < columns; k++, y += LANES)
        for (int i = 0; i < N; i++) {
            const V other = load_unit<V>(y + i * STEP);
            for (int r = 0; r < R; r++) M::add(&own[r].sum[i], V{} + x[r * columns + k], other, p);
        }
    memcpy(sums, own, sizeof own);
}

/* Add the terms of one row of many coordinates, piece by piece, in the same order. */
template <class M, class V> __attribute__((noinline)) void add_long_terms(block_sums<V> *sums, const double *x,
                                                                          int64_t columns, const double *y, double p) {
    constexpr int N = block_sums<V>::N, STEP = LANES / N;
    *sums = {};
    for (int64_t k = 0, end; k < columns;) {
        block_sums<V> own = *sums;
        for (end = columns - k < PIECE ? columns : k + PIECE; k < end; k++, y += LANES)
            for (int i = 0; i < N; i++) M::add(&own.sum[i], V{} + x[k], load_unit<V>(y + i * STEP), p);
        *sums = own;
        ad_cpu_check_cancelled();
    }
}

/* The distances that the terms make. */
template <class M, class V> inline void end_terms(const block_sums<V> *sums, double p, int64_t columns, double *out) {
    constexpr int N = block_sums<V>::N, STEP = LANES / N;
    double a[LANES], b[LANES];
    for (int i = 0; i < N; i++) {
        memcpy(a + i * STEP, &sums->sum[i].a, sizeof(V));
        memcpy(b + i * STEP, &sums->sum[i].b, sizeof(V));
    }
    for (int l = 0; l < LANES; l++) out[l] = M::end(pair_sums<double>{a[l], b[l]}, p, double(columns));
}

template <class M, int R> inline void measure_rows(const ad_pair_tile *t, int64_t row) {
    using V = typename unit_of<M>::type;
    block_sums<V> sums[R];
    add_terms<M, V, R>(sums, t->x + row * t->columns, t->columns, t->y, t->p);
    for (int r = 0; r < R; r++) end_terms<M>(&sums[r], t->p, t->columns, t->out + (row + r) * LANES);
}

/* Rows of many coordinates, one by one. */
template <class M> __attribute__((noinline)) void measure_long_rows(const ad_pair_tile *t) {
    using V = typename unit_of<M>::type;
    for (int64_t row = 0; row < t->rows; row++) {
        block_sums<V> sums;
        add_long_terms<M, V>(&sums, t->x + row * t->columns, t->columns, t->y, t->p);
        end_terms<M>(&sums, t->p, t->columns, t->out + row * LANES);
    }
}

template <class M> void measure_tile(const ad_pair_tile *t) {
    int64_t row = 0;
    if (t->columns > PIECE) return measure_long_rows<M>(t);
    for (; row + ROWS <= t->rows; row += ROWS) measure_rows<M, ROWS>(t, row);
    for (; row < t->rows; row++) measure_rows<M, 1>(t, row);
}

/* ---- nearest points ---- */

/* The search for the points that are nearest to one. Distances are the sums of terms, without roots. */
template <class M> class near_search {
    using V = typename unit_of<M>::type;
    const ad_near_tree *t;
    const ad_near_query *q;
    double worst; /* the furthest one that counts as near */
    int64_t left; /* blocks of points until somebody may have given it up */

    /* Put a point where it belongs among those found, if it is near enough. */
    void insert(double distance, int64_t place) {
        int at = q->k - 1;
        if (!(distance < q->distance[at] || (distance == q->distance[at] && place < q->place[at]))) return;
        for (; at > 0 &&
               (distance < q->distance[at - 1] || (distance == q->distance[at - 1] && place < q->place[at - 1]));
             at--) {
            q->distance[at] = q->distance[at - 1];
            q->place[at] = q->place[at - 1];
        }
        q->distance[at] = distance;
        q->place[at] = place;
        worst = q->distance[q->k - 1];
    }

    /* The distances of a block's points. False: none is near enough. */
    bool measure_points(int64_t block, double *out) const {
        block_sums<V> sums;
        add_terms<M, V, 1>(&sums, q->x, t->columns, t->level[0] + block * t->columns * LANES, t->p);
        return store_near(sums, out);
    }

    __attribute__((noinline)) bool measure_long_points(int64_t block, double *out) const {
        block_sums<V> sums;
        add_long_terms<M, V>(&sums, q->x, t->columns, t->level[0] + block * t->columns * LANES, t->p);
        return store_near(sums, out);
    }

    bool store_near(const block_sums<V> &sums, double *out) const {
        bool near = false;
        constexpr int N = block_sums<V>::N;
        for (int i = 0; i < N; i++) {
            if constexpr (M::VECTORS) near |= any(sums.sum[i].a <= worst);
            else near |= sums.sum[i].a <= worst;
            memcpy(out + i * (LANES / N), &sums.sum[i].a, sizeof(V));
        }
        return near;
    }

    /* The distances of a block's boxes, which have the terms of their nearest corner, edge or side. */
    void measure_boxes(const double *box, double *out) const {
        constexpr int N = block_sums<V>::N, STEP = LANES / N;
        block_sums<V> sums = {};
        for (int64_t k = 0; k < t->columns; k++, box += 2 * LANES)
            for (int i = 0; i < N; i++) {
                const V below = load_unit<V>(box + i * STEP) - q->x[k];
                const V above = q->x[k] - load_unit<V>(box + LANES + i * STEP);
                const V out_of = below > above ? below : above;
                M::add(&sums.sum[i], out_of > 0 ? out_of : V{}, V{}, t->p);
            }
        for (int i = 0; i < N; i++) memcpy(out + i * STEP, &sums.sum[i].a, sizeof(V));
    }

    int64_t blocks_of_piece() const { return t->columns < 1 ? PIECE : PIECE / t->columns; }

    void look_at_points(int64_t block) {
        double distance[LANES];
        if (--left <= 0) {
            left = blocks_of_piece();
            ad_cpu_check_cancelled();
        }
        if (!(t->columns > PIECE ? measure_long_points(block, distance) : measure_points(block, distance))) return;
        for (int l = 0; l < LANES && block * LANES + l < t->points; l++)
            if (distance[l] <= worst) insert(distance[l], t->place[block * LANES + l]);
    }

    /* Look into the boxes of a block that are near enough, the nearest ones first. */
    void look_at_boxes(int level, int64_t block) {
        double distance[LANES];
        int order[LANES], n = 0;
        measure_boxes(t->level[level] + block * t->columns * 2 * LANES, distance);
        for (int l = 0; l < LANES && block * LANES + l < t->count[level - 1]; l++) {
            if (!(distance[l] <= worst)) continue;
            int at = n++;
            for (; at > 0 && distance[order[at - 1]] > distance[l]; at--) order[at] = order[at - 1];
            order[at] = l;
        }
        for (int i = 0; i < n && distance[order[i]] <= worst; i++) look(level - 1, block * LANES + order[i]);
    }

    void look(int level, int64_t block) {
        if (level == 0) look_at_points(block);
        else look_at_boxes(level, block);
    }

  public:
    near_search(const ad_near_tree *tree, const ad_near_query *query)
        : t(tree), q(query), worst(0), left(blocks_of_piece()) {}

    /* bound: as a sum of terms. */
    void run(double bound) {
        for (int i = 0; i < q->k; i++) q->distance[i] = bound, q->place[i] = -1;
        worst = bound;
        const int top = t->levels - 1;
        for (int64_t block = 0; block < t->count[top]; block++) look(top, block);
        for (int i = 0; i < q->k; i++) {
            if (q->place[i] < 0) q->distance[i] = __builtin_huge_val();
            else q->distance[i] = M::end(pair_sums<double>{q->distance[i], 0}, t->p, double(t->columns));
        }
    }
};

static void find_nearest(const ad_near_tree *t, const ad_near_query *q) {
    const double bound = q->bound > 0 ? q->bound : 0;
    if (t->p == 2) near_search<metric_euclidean>(t, q).run(bound * bound);
    else if (t->p == 1) near_search<metric_cityblock>(t, q).run(bound);
    else if (t->p == __builtin_huge_val()) near_search<metric_chebyshev>(t, q).run(bound);
    else near_search<metric_minkowski>(t, q).run(adm::libm_pow(bound, t->p));
}

extern const ad_pair_kernels pair_kernels;
const ad_pair_kernels pair_kernels = {{
#define X(name, ns) measure_tile<metric_##name>,
                                          AD_PAIR_METRICS(X)
#undef X
                                      },
                                      find_nearest};

} // namespace AD_ISA
} // namespace ad
