/* Copies between any two types. */
#include "kernels/cpu/isa/isa.h"
#include "kernels/cpu/kernels.h"
#include "kernels/types.h"

namespace ad {
inline namespace AD_ISA {

template <class To, class From> AD_NOINLINE void convert(To *to, const From *from, int64_t n) {
    if constexpr (same<To, From>) {
        memmove(to, from, size_t(n) * sizeof(To));
    } else {
#pragma GCC ivdep
        for (int64_t i = 0; i < n; i++) to[i] = cast<To>(from[i]);
    }
}

template <class To> AD_NOINLINE void splat(To *to, To v, int64_t n) {
    for (int64_t i = 0; i < n; i++) to[i] = v;
}

template <class To, class From>
void strided(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        AD_SCALAR_LOOP;
        *reinterpret_cast<To *>(to + i * to_stride) = cast<To>(*reinterpret_cast<const From *>(from + i * from_stride));
    }
}

template <class To, class From>
void cast_run(void *to, int64_t to_stride, const void *from, int64_t from_stride, int64_t n) {
    bool packed = to_stride == int64_t(sizeof(To));
    if (packed && from_stride == int64_t(sizeof(From)))
        convert(static_cast<To *>(to), static_cast<const From *>(from), n);
    else if (packed && from_stride == 0) splat(static_cast<To *>(to), cast<To>(*static_cast<const From *>(from)), n);
    else strided<To, From>(static_cast<char *>(to), to_stride, static_cast<const char *>(from), from_stride, n);
}

template <class From> struct cast_table {
    ad_cast_kernel to[AD_NDTYPE];
    constexpr cast_table() : to{} {
#define AD_DTYPE(id, NAME, name, size, kind, letter) to[id] = &cast_run<t_##name, From>;
#include "protocol/dtype.def"
#undef AD_DTYPE
    }
};

#define AD_DTYPE(id, NAME, name, size, kind, letter)    \
    static constexpr cast_table<t_##name> casts_##name; \
    extern const ad_cast_kernel *const cast_kernels_##name = casts_##name.to;
#include "protocol/dtype.def"
#undef AD_DTYPE

} // namespace AD_ISA
} // namespace ad
