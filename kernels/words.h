/* Elements that are moved and no more, as unsigned words of their size. */
#ifndef AD_KERNELS_WORDS_H
#define AD_KERNELS_WORDS_H

#include "kernels/call_array.h"

namespace ad {
inline namespace AD_ISA {

/* A complex number lies where its parts can be read, so it is read as its parts. */
template <class W> struct two_words { W word[2]; };

/* f(tag<W>{}) for words as large as elements of a dtype, and as aligned. */
template <class F> inline auto visit_words(int dtype, F &&f) {
    switch (itemsize(dtype)) {
    case 1: return f(tag<uint8_t>{});
    case 2: return f(tag<uint16_t>{});
    case 4: return f(tag<uint32_t>{});
    case 8: return dtype == AD_COMPLEX64 ? f(tag<two_words<uint32_t>>{}) : f(tag<uint64_t>{});
    default: return f(tag<two_words<uint64_t>>{});
    }
}

#ifdef __CUDACC__
/* f(tag<W>{}) for words of 1, 2, 4, 8 or 16 bytes that are aligned to their size: a GPU moves each at once. */
template <class F> inline auto visit_aligned_words(int size, F &&f) {
    switch (size) {
    case 1: return f(tag<uint8_t>{});
    case 2: return f(tag<uint16_t>{});
    case 4: return f(tag<uint32_t>{});
    case 8: return f(tag<uint2>{});
    default: return f(tag<uint4>{});
    }
}
#endif

} // namespace AD_ISA
} // namespace ad
#endif
