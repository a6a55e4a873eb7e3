/* Merging of two sorted arrays, cut into pieces that do not depend on each other:
 *
 *     a  1 4 4 9        result  1 2 4 │ 4 5 9 9       the cut at 3 comes after two elements of a and one of b
 *     b  2 5 9
 */
#ifndef AD_KERNELS_CALL_MERGE_H
#define AD_KERNELS_CALL_MERGE_H

#include "kernels/call_order.h"

namespace ad {
inline namespace AD_ISA {

/* Count how many of the first `cut` elements of the result come from a. It lies in [cut - nb, cut] and [0, na] even
 * where an array is not sorted. */
template <class S, class N> AD_HD N count_of_first(const S *a, N na, const S *b, N nb, N cut) {
    N low = cut > nb ? cut - nb : N(0), high = cut < na ? cut : na;
    while (low < high) {
        const N middle = low + (high - low) / 2;
        if (sorts_before(b[cut - 1 - middle], a[middle])) high = middle;
        else low = middle + 1;
    }
    return low;
}

} // namespace AD_ISA
} // namespace ad
#endif
