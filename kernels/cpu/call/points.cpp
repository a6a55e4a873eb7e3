/* pair_distances, nearest_points and squareform: distances and neighbours of points. Points are put into blocks that
 * have one in each lane of a vector (kernels/cpu/isa/pairs.cpp). */
#include <algorithm>

#include "kernels/call_points.h"
#include "kernels/cpu/backend/parallel.h"
#include "kernels/cpu/isa/pairs.h"
#include "kernels/cpu/kernels.h"
#include "kernels/words.h"

#include <string.h>

namespace {

using namespace ad;

constexpr int64_t LANES = AD_PAIR_LANES;
constexpr int64_t ROWS = 64;       /* of a tile */
constexpr int64_t GRAIN = 1 << 16; /* coordinates that are worth a thread */
constexpr int64_t PIECE = 1 << 22; /* coordinates after which an operation can be given up */

int64_t count_blocks(int64_t n) { return (n + LANES - 1) / LANES; }

const double *numbers_of(const array &x) { return reinterpret_cast<const double *>(x.data); }

/* Put points into blocks, in the order of `place` (NULL: as they are). Points that only fill the last block are
 * infinitely far. */
void fill_blocks(const double *x, int64_t n, int64_t columns, const int64_t *place, double *to) {
    ad_cpu_parallel(count_blocks(n), std::max<int64_t>(1, GRAIN / (columns * LANES + 1)),
                    [&](int64_t begin, int64_t end) {
                        for (int64_t l = begin * LANES; l < end * LANES; l++) {
                            double *own = to + l / LANES * columns * LANES + l % LANES;
                            const double *from = l < n ? x + (place ? place[l] : l) * columns : nullptr;
                            for (int64_t k = 0; k < columns; k++)
                                own[k * LANES] = from ? from[k] : __builtin_huge_val();
                        }
                    });
}

double *open_blocks(ad_call *c, int64_t n, int64_t columns) {
    return static_cast<double *>(ad_call_workspace(c, uint64_t(count_blocks(n) * LANES * columns + LANES) * 8));
}

/* ---- pair_distances ---- */

/* Distances of rows of x from those of y, or from later ones of x where they are joined. */
struct pair_plan {
    const double *x, *blocks;
    int64_t m, n, columns;
    double p;
    void (*measure)(const ad_pair_tile *t);
    array out;
    bool joined;
};

/* Write n distances of row i from column j on. */
void write_row(const pair_plan &p, int64_t i, int64_t j, const double *from, int64_t n) {
    const int64_t before = i * p.m - i * (i + 1) / 2 - i - 1; /* of the pairs of a row the place, but for the column */
    const int64_t step = p.out.stride[p.joined ? 0 : 1];
    char *to = p.joined ? p.out.data + (before + j) * step : p.out.data + i * p.out.stride[0] + j * step;
    if (step == int64_t(sizeof(double))) memcpy(to, from, size_t(n) * sizeof(double));
    else
        for (int64_t l = 0; l < n; l++) *reinterpret_cast<double *>(to + l * step) = from[l];
}

/* Measure a tile: rows from i on and a block of columns. Of joined ones those right of the diagonal are written. */
void measure_tile(const pair_plan &p, int64_t i, int64_t block) {
    const int64_t j = block * LANES, last = std::min(p.n, j + LANES);
    const int64_t end = std::min({p.m, i + ROWS, p.joined ? last - 1 : p.m});
    alignas(64) double out[ROWS * LANES];
    if (i >= end) return;
    const ad_pair_tile tile = {p.x + i * p.columns, end - i, p.columns, p.blocks + j * p.columns, p.p, out};
    p.measure(&tile);
    for (int64_t row = i; row < end; row++) {
        const int64_t first = p.joined ? std::max(j, row + 1) : j;
        if (first < last) write_row(p, row, first, out + (row - i) * LANES + first - j, last - first);
    }
}

void measure_all(const pair_plan &p) {
    const int64_t blocks = count_blocks(p.n), tiles = (p.m + ROWS - 1) / ROWS;
    const int64_t each = ROWS * LANES * std::max<int64_t>(1, p.columns);
    ad_cpu_parallel(blocks * tiles, std::max<int64_t>(1, GRAIN / each), [&](int64_t begin, int64_t end) {
        int64_t done = 0;
        for (int64_t u = begin; u < end; u++) {
            measure_tile(p, u / blocks * ROWS, u % blocks);
            if ((done += each) < PIECE) continue;
            done = 0;
            ad_cpu_check_cancelled();
        }
    });
}

/* Change the sides of distances that are the same both ways. Few points fill no block, and many do. */
void turn_pairs(array *x, array *y, array *out) {
    std::swap(*x, *y);
    std::swap(out->shape[0], out->shape[1]);
    std::swap(out->stride[0], out->stride[1]);
}

/* ---- nearest_points ---- */

/* Points are put in order where that takes less than to measure all distances: below so many columns, and where queries
 * times columns are more than this for each time that the points are halved. */
constexpr int64_t FEW_COLUMNS = 20, WORTH_A_TREE = 128;

bool pays_tree(int64_t n, int64_t queries, int64_t columns) {
    int64_t halvings = 0;
    for (int64_t rest = n; rest > LANES; rest /= 2) halvings++;
    return halvings > 0 && columns < FEW_COLUMNS && queries * (columns + 2) > WORTH_A_TREE * halvings;
}

/* A list of places of points that is put in order, so that what is near is close. */
struct point_order {
    const double *x;
    int64_t columns, *place;

    /* Whether a coordinate of a point is less than another one's. To order all points takes seconds where they are
     * many. */
    struct order_along {
        const double *x;
        int64_t columns;
        int64_t *left; /* comparisons until somebody may have given it up */

        bool operator()(int64_t a, int64_t b) const {
            if (--*left == 0) {
                *left = PIECE;
                ad_cpu_check_cancelled();
            }
            return x[a * columns] < x[b * columns];
        }
    };

    /* Find the coordinate along which points differ most. */
    int64_t find_widest(int64_t begin, int64_t end) const {
        int64_t best = 0;
        double most = -1;
        for (int64_t k = 0; k < columns; k++) {
            double low = __builtin_huge_val(), high = -__builtin_huge_val();
            for (int64_t i = begin; i < end; i++) {
                const double v = x[place[i] * columns + k];
                low = v < low ? v : low;
                high = v > high ? v : high;
            }
            if (high - low > most) most = high - low, best = k;
        }
        return best;
    }

    /* Choose where to halve: blocks of points stay whole, and so do blocks of those. */
    static int64_t find_middle(int64_t n) {
        int64_t unit = LANES;
        while (unit * LANES < n) unit *= LANES;
        return std::max((n / 2 + unit / 2) / unit, int64_t(1)) * unit;
    }

    void put_in_order(int64_t begin, int64_t end) const {
        int64_t left = PIECE;
        while (end - begin > LANES) {
            const int64_t k = find_widest(begin, end), middle = begin + find_middle(end - begin);
            ad_cpu_check_cancelled();
            std::nth_element(place + begin, place + middle, place + end, order_along{x + k, columns, &left});
            put_in_order(begin, middle);
            begin = middle;
        }
    }
};

/* The ends of the boxes around the blocks of a level: of points, or of boxes themselves. */
void fill_boxes(const ad_near_tree &t, int level, double *to) {
    const int sides = level == 0 ? 1 : 2;
    const int64_t n = t.count[level], columns = t.columns;
    for (int64_t b = 0; b < count_blocks(n) * LANES; b++)
        for (int64_t k = 0; k < columns; k++) {
            const double *from = t.level[level] + (b * columns + k) * sides * LANES;
            double low = __builtin_huge_val(), high = -__builtin_huge_val();
            for (int64_t l = 0; b < n && l < LANES; l++) {
                const double above = from[(sides - 1) * LANES + l];
                low = from[l] < low ? from[l] : low;
                high = above > high && above < __builtin_huge_val() ? above : high;
            }
            double *own = to + (b / LANES * columns + k) * 2 * LANES + b % LANES;
            own[0] = low;
            own[LANES] = high;
        }
}

/* Put boxes above the blocks until one block has all. AD_E_MEMORY. */
int open_boxes(ad_call *c, ad_near_tree *t) {
    while (t->count[t->levels - 1] > 1 && t->levels < AD_NEAR_LEVELS) {
        double *boxes = open_blocks(c, t->count[t->levels - 1], 2 * t->columns);
        if (!boxes) return AD_E_MEMORY;
        fill_boxes(*t, t->levels - 1, boxes);
        t->level[t->levels] = boxes;
        t->count[t->levels] = count_blocks(t->count[t->levels - 1]);
        t->levels++;
    }
    return 0;
}

/* Copy the points. One that has NaN is as far away as one without end, and is no hindrance to order. AD_E_MEMORY. */
int copy_points(ad_call *c, const array &points, double **out) {
    const int64_t n = count(points);
    const double *from = numbers_of(points);
    if (!(*out = static_cast<double *>(ad_call_workspace(c, uint64_t(n + 1) * 8)))) return AD_E_MEMORY;
    for (int64_t i = 0; i < n; i++) {
        const double v = from[i];
        (*out)[i] = v == v ? v : __builtin_huge_val();
    }
    return 0;
}

/* Put points into blocks, and boxes above them where it pays. AD_E_MEMORY. */
int open_tree(ad_call *c, const array &points, int64_t queries, ad_near_tree *t) {
    const int64_t n = points.shape[0], columns = points.shape[1];
    const bool ordered = pays_tree(n, queries, columns);
    double *x, *blocks = open_blocks(c, n, columns);
    int64_t *place = static_cast<int64_t *>(ad_call_workspace(c, uint64_t(count_blocks(n) * LANES + 1) * 8));
    if (!blocks || !place || copy_points(c, points, &x)) return AD_E_MEMORY;
    for (int64_t i = 0; i < count_blocks(n) * LANES; i++) place[i] = i;
    if (ordered) point_order{x, columns, place}.put_in_order(0, n);
    fill_blocks(x, n, columns, place, blocks);
    t->levels = 1;
    t->level[0] = blocks;
    t->count[0] = count_blocks(n);
    t->columns = columns;
    t->place = place;
    return ordered ? open_boxes(c, t) : 0;
}

/* Find the nearest points of some queries. */
void find_all(const ad_near_tree &t, const double *x, int k, double bound, const array &far, const array &place,
              int64_t begin, int64_t end) {
    const auto find = ad_cpu_kernels_get()->pairs->find;
    for (int64_t i = begin; i < end; i++) {
        double distance[AD_MOST_NEAREST];
        int64_t found[AD_MOST_NEAREST];
        const ad_near_query query = {x + i * t.columns, k, bound, distance, found};
        ad_cpu_check_cancelled();
        find(&t, &query);
        for (int l = 0; l < k; l++) {
            const int64_t none = found[l] < 0 ? t.points : found[l];
            memcpy(far.data + i * far.stride[0] + l * far.stride[1], &distance[l], sizeof distance[l]);
            memcpy(place.data + i * place.stride[0] + l * place.stride[1], &none, sizeof none);
        }
    }
}

/* ---- squareform ---- */

/* Fill a square tile of the matrix, and the one that is turned. Rows of a tile lie close to each other in both. Sizes
 * and steps are in registers, as the elements may be any memory for all that the compiler knows. */
template <class T> void fill_square(const array &x, const array &out, int64_t i0, int64_t j0, int64_t side) {
    const int64_t n = out.shape[0], from = x.stride[0], down = out.stride[0], across = out.stride[1];
    const int64_t i1 = std::min(n, i0 + side), j1 = std::min(n, j0 + side);
    char *const to = out.data;
    for (int64_t i = i0; i < i1; i++) {
        const char *row = x.data + (i * n - i * (i + 1) / 2 - i - 1) * from;
        if (j0 <= i) memset(to + i * down + i * across, 0, sizeof(T));
        for (int64_t j = std::max(j0, i + 1); j < j1; j++) {
            T v;
            memcpy(&v, row + j * from, sizeof v);
            memcpy(to + i * down + j * across, &v, sizeof v);
            memcpy(to + j * down + i * across, &v, sizeof v);
        }
    }
}

template <class T> void fill_squares(const array &x, const array &out) {
    constexpr int64_t SIDE = 64;
    const int64_t tiles = (out.shape[0] + SIDE - 1) / SIDE;
    ad_cpu_parallel(tiles * tiles, GRAIN / (SIDE * SIDE), [&](int64_t begin, int64_t end) {
        for (int64_t u = begin; u < end; u++)
            if (u % tiles >= u / tiles) fill_square<T>(x, out, u / tiles * SIDE, u % tiles * SIDE, SIDE);
    });
}

} // namespace

int ad_call_pair_distances(ad_call *c) {
    const bool joined = c->op->nin == 1;
    array x, y;
    pair_plan p = {};
    const int status = get_pairs(c, &x, &y, &p.out);
    if (status || count(p.out) == 0) return status;
    const array out = p.out;
    const int64_t metric = c->op->param[0].as.i;
    if (!joined && y.shape[0] < std::min(LANES, x.shape[0]) && metric != AD_PAIRS_kl_divergence)
        turn_pairs(&x, &y, &p.out);
    p.m = x.shape[0];
    p.n = y.shape[0];
    p.columns = x.shape[1];
    double *blocks = open_blocks(c, p.n, p.columns);
    if (!blocks) return AD_E_MEMORY;
    fill_blocks(numbers_of(y), p.n, p.columns, nullptr, blocks);
    p.x = numbers_of(x);
    p.blocks = blocks;
    p.p = ad_scalar_number(&c->op->param[1]);
    p.measure = ad_cpu_kernels_get()->pairs->measure[metric];
    p.joined = joined;
    c->run->wrote = true;
    measure_all(p);
    return ad_call_finish(c, 0, &out);
}

int ad_call_nearest_points(ad_call *c) {
    array points, queries, far, place;
    ad_near_tree t = {};
    int status = get_nearest(c, &points, &queries, &far, &place);
    if (status || count(far) == 0) return status;
    if ((status = open_tree(c, points, queries.shape[0], &t))) return status;
    t.p = ad_scalar_number(&c->op->param[1]);
    t.points = points.shape[0];
    const int k = int(c->op->param[0].as.i);
    const double bound = ad_scalar_number(&c->op->param[2]);
    c->run->wrote = true;
    const int64_t each = (t.levels > 1 ? 1000 : t.points) * std::max<int64_t>(1, t.columns);
    ad_cpu_parallel(queries.shape[0], std::max<int64_t>(1, GRAIN / (each + 1)), [&](int64_t begin, int64_t end) {
        find_all(t, numbers_of(queries), k, bound, far, place, begin, end);
    });
    if ((status = ad_call_finish(c, 0, &far))) return status;
    return ad_call_finish(c, 1, &place);
}

int ad_call_squareform(ad_call *c) {
    array x, out;
    int status;
    if ((status = ad_call_input(c, 0, c->op->loop, &x)) || (status = ad_call_output(c, 0, c->op->loop, &out)))
        return status;
    c->run->wrote = true;
    visit_words(out.dtype, [&](auto word) { fill_squares<typename decltype(word)::type>(x, out); });
    return ad_call_finish(c, 0, &out);
}
