/* The functions that the call spunion has for the elements of two sparse matrices, by their numbers on the wire. */
#ifndef AD_PROTOCOL_SPARSE_H
#define AD_PROTOCOL_SPARSE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    AD_UNION_ADD,
    AD_UNION_SUBTRACT,
    AD_UNION_MULTIPLY,
    AD_UNION_MAXIMUM,
    AD_UNION_MINIMUM,
    AD_UNION_NOT_EQUAL, /* from here on bools */
    AD_UNION_LESS,
    AD_UNION_GREATER,
    AD_UNION_EITHER, /* the first one's entry, or the second one's; of its type, and 0 is kept */
    AD_UNIONS
};

/* Whether the results of a function are bools. */
static inline bool ad__union_compares(int64_t function) {
    return function >= AD_UNION_NOT_EQUAL && function <= AD_UNION_GREATER;
}

#endif
