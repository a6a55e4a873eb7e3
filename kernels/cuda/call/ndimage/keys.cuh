/* Elements of any real type as unsigned integers in the same order. The type is a number of bytes and a few values, not
 * a template's argument. So there is one kernel for all types of a size. */
#ifndef AD_KERNELS_CUDA_CALL_NDIMAGE_KEYS_CUH
#define AD_KERNELS_CUDA_CALL_NDIMAGE_KEYS_CUH

#include "kernels/call_order.h"

namespace ad {
inline namespace AD_ISA {

/* A ranking. flip: all ones, and then the order is the other way round. */
template <class K> struct ranking {
    K sign, infinity, quiet_nan, flip; /* infinity: 0 of integers */
    bool truth;                        /* of bool: any byte but 0 is one value */

    __device__ K key(K bits) const {
        if (truth) bits = K(bits != 0);
        else if (infinity == 0) bits = K(bits ^ sign);
        else if (K(bits & K(~sign)) > infinity) bits = K(~K(0));
        else bits = bits & sign ? K(~bits) : K(bits | sign);
        return K(bits ^ flip);
    }
    __device__ K back(K key) const {
        key = K(key ^ flip);
        if (truth) return key;
        if (infinity == 0) return K(key ^ sign);
        if (key == K(~K(0))) return quiet_nan;
        return key & sign ? K(key ^ sign) : K(~key);
    }
};

template <class S> ranking<typename order<S>::key> rank_type(bool flip) {
    using O = order<S>;
    using K = typename O::key;
    constexpr bool integer = !O::real && !same<S, bool8>;
    K sign = O::real ? O::sign : K(0);
    if constexpr (integer) sign = is_signed<S> ? O::sign : K(0);
    return {sign, K(O::real ? O::infinity : 0), K(O::real ? O::quiet_nan : 0), K(flip ? ~K(0) : 0),
            same<S, bool8>};
}

} // namespace AD_ISA
} // namespace ad
#endif
