/* Distances of points from blocks of points, for each instruction set. */
#ifndef AD_KERNELS_CPU_ISA_PAIRS_H
#define AD_KERNELS_CPU_ISA_PAIRS_H

#include <stdint.h>

#include "kernels/pairs.h"

/* A block has so many points: coordinate k of point l is at k*AD_PAIR_LANES + l. */
constexpr int AD_PAIR_LANES = 32;

/* Rows of x, and the block of y from which they are away: distances are at row*AD_PAIR_LANES + l. */
struct ad_pair_tile {
    const double *x;
    int64_t rows, columns;
    const double *y;
    double p;
    double *out;
};

/* Blocks of points, and above them boxes: a block of level i + 1 has the boxes of so many blocks of level i, coordinate
 * by coordinate the lower ends and then the upper ones. Points that only fill a block are infinitely far away. */
constexpr int AD_NEAR_LEVELS = 8;
struct ad_near_tree {
    int levels;                          /* 1: there are no boxes, and all blocks are looked at */
    const double *level[AD_NEAR_LEVELS]; /* its blocks */
    int64_t count[AD_NEAR_LEVELS];       /* how many there are */
    int64_t points, columns;
    const int64_t *place; /* of each point of the blocks, its number */
    double p;
};

/* A point whose k nearest ones are wanted, and where they go. Those that are not there are infinitely far away, and
 * their place is -1. */
struct ad_near_query {
    const double *x;
    int k;
    double bound;
    double *distance;
    int64_t *place;
};

struct ad_pair_kernels {
    void (*measure[AD_NPAIR_METRICS])(const ad_pair_tile *t);
    void (*find)(const ad_near_tree *t, const ad_near_query *q);
};

#endif
