/* Moving elements between lists of places: what gather, scatter, compress and place have in common. A place is a byte
 * offset of a block of elements; `inner` walks the elements of one block, in both arrays. */
#ifndef AD_KERNELS_CPU_CALL_MOVE_H
#define AD_KERNELS_CPU_CALL_MOVE_H

#include "kernels/call.h"

enum { AD_MOVE_SET, AD_MOVE_ADD, AD_MOVE_MAX, AD_MOVE_MIN, AD_NMOVE };

constexpr int64_t AD_MOVE_BLOCK = 512;     /* places at a time: their offsets stay in the first-level cache */
constexpr int64_t AD_MOVE_INNER = 1 << 16; /* elements of a block that one piece of work moves at most */

/* Single elements that one index picks from an axis, and a line of others. Steps in bytes. */
struct ad_picked {
    char *base;
    int64_t step, size; /* of the axis */
    const char *index;  /* int64, within bounds, negative from the end */
    int64_t index_step;
    char *plain;
    int64_t plain_step;
};

/* to[...] (mode)= from[...], in order. */
struct ad_mover {
    void (*list)(char *to, const int64_t *to_at, const char *from, const int64_t *from_at, int64_t n);
    void (*run)(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t n);
    void (*gather)(const ad_picked *p, int64_t begin, int64_t end);  /* to the line */
    void (*scatter)(const ad_picked *p, int64_t begin, int64_t end); /* from the line */
};
ad_mover ad_mover_get(int dtype, int mode);

struct ad_move {
    ad_mover mover;
    char *to;
    const char *from;
    ad::walk<2> inner; /* to, from */
    bool across;       /* places lie closer together than the elements of a block do: walk over places innermost */
};

/* place_step: how far apart neighbouring places are in the array where they lie in order; side 0: to, 1: from. */
void ad_move_init(ad_move *m, int dtype, int mode, char *to, const char *from, int64_t place_step, int side);
/* Elements begin..end of the blocks at n places. */
void ad_move_blocks(const ad_move *m, const int64_t *to_at, const int64_t *from_at, int64_t n, int64_t begin,
                    int64_t end);

#endif
