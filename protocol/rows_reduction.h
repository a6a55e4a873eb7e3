/* Ids of the rows of reduction.def: AD_REDUCTION_sum. */
#ifndef AD_PROTOCOL_ROWS_REDUCTION_H
#define AD_PROTOCOL_ROWS_REDUCTION_H

/* Traits of a row of reduction.def. */
enum {
    AD_F_SKIP = 1,   /* leaves NaN out */
    AD_F_ROOT = 2,   /* is the root of its plain row */
    AD_F_TRUTH = 4,  /* takes elements as true or false */
    AD_F_PLACE = 8,  /* gives the place of an element, so that elements are taken in order */
    AD_F_LEAST = 16, /* prefers the lesser of two elements, where others of the kernel prefer the greater one */
    AD_F_MEAN = 32,  /* divides by the number of elements */
};

enum {
#define AD_REDUCTION(id, name, ...) AD_REDUCTION_##name = (id),
#include "reduction.def"
#undef AD_REDUCTION
};

#endif
