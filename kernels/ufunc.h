/* The rows of ufunc.def as functors: ufunc<id, S>::apply over the loop storage type S, for both backends. */
#ifndef AD_KERNELS_UFUNC_H
#define AD_KERNELS_UFUNC_H

#include "kernels/math.h"
#include "kernels/special.h"
#include "kernels/types.h"
#include "protocol/rows_ufunc.h"
#include "protocol/tables.h"

namespace ad {
inline namespace AD_ISA {

/* ---- rule.def as types ---- */

struct none {};
template <> struct traits<none> {
    using compute = none;
    using real = none;
    static constexpr bool is_complex = false;
};

template <int Code, class S> struct coded { using type = none; };
template <class S> struct coded<AD_CODE_T, S> { using type = S; };
template <class S> struct coded<AD_CODE_R, S> { using type = real_t<S>; };
template <class S> struct coded<AD_CODE_B, S> { using type = bool8; };
template <class S> struct coded<AD_CODE_W, S> { using type = int32_t; };
template <class S> struct coded<AD_CODE_L, S> { using type = int64_t; };
template <class S> struct coded<AD_CODE_U, S> { using type = uint8_t; };

template <int Rule> struct rule;
#define AD_RULE(NAME, mask, fallback, i0, i1, i2, o0, o1)                                \
    template <> struct rule<AD_RULE_##NAME> {                                            \
        static constexpr uint32_t loops = mask;                                          \
        static constexpr int in0 = AD_CODE_##i0, in1 = AD_CODE_##i1, in2 = AD_CODE_##i2; \
        static constexpr int out0 = AD_CODE_##o0, out1 = AD_CODE_##o1;                   \
    };
#include "protocol/rule.def"
#undef AD_RULE

/* Storage types of a row's operands. Codes of inputs beyond nin are ignored. */
template <int Rule, int Nin, int Nout, class S> struct signature {
    static constexpr int nin = Nin, nout = Nout;
    using X = typename coded<rule<Rule>::in0, S>::type;
    using Y = typename coded<(Nin > 1) ? rule<Rule>::in1 : AD_CODE_N, S>::type;
    using Z = typename coded<(Nin > 2) ? rule<Rule>::in2 : AD_CODE_N, S>::type;
    using O0 = typename coded<rule<Rule>::out0, S>::type;
    using O1 = typename coded<(Nout > 1) ? rule<Rule>::out1 : AD_CODE_N, S>::type;
};

/* ---- ufunc.def as functors ---- */

constexpr bool mentions_storage(const char *expression) {
    for (const char *p = expression; *p; p++)
        if (p[0] == '<' && p[1] == 'S' && p[2] == '>') return true;
    return false;
}

template <int Id> struct ufunc_row; /* loops, whether the expression depends on the storage type, traits */
template <int Id, class S> struct ufunc;

#define AD_APPLY_1(...) r0 = ad::cast<compute_t<typename base::O0>>(__VA_ARGS__)
#define AD_APPLY_2(...) __VA_ARGS__
#define AD_UFUNC(id, name, nin, nout, rulename, domain, cost, traits, test, doc, ...)                          \
    template <> struct ufunc_row<id> {                                                                         \
        static constexpr uint32_t loops = rule<AD_RULE_##rulename>::loops;                                     \
        static constexpr bool by_storage = mentions_storage(#__VA_ARGS__);                                     \
        static constexpr unsigned has = traits;                                                                \
    };                                                                                                         \
    template <class S> struct ufunc<id, S> : signature<AD_RULE_##rulename, nin, nout, S> {                     \
        using base = signature<AD_RULE_##rulename, nin, nout, S>;                                              \
        using A = compute_t<typename base::X>;                                                                 \
        using B = compute_t<typename base::Y>;                                                                 \
        using C = compute_t<typename base::Z>;                                                                 \
        using R0 = compute_t<typename base::O0>;                                                               \
        using R1 = compute_t<typename base::O1>;                                                               \
        template <class Y> static AD_HD void apply_to([[maybe_unused]] A x, [[maybe_unused]] const Y &y,       \
                                                      [[maybe_unused]] C z, R0 &r0, [[maybe_unused]] R1 &r1) { \
            AD_APPLY_##nout(__VA_ARGS__);                                                                      \
        }                                                                                                      \
        static AD_HD void apply(A x, B y, C z, R0 &r0, R1 &r1) { apply_to(x, y, z, r0, r1); }                  \
    };
#include "protocol/ufunc.def"
#undef AD_UFUNC

/* True if a row has a kernel for loop type S. It has one for float16 and bfloat16 only where the expression needs to
 * know them. Else they are loops of float32 between conversions, which gives the same. */
template <int Id, class S> constexpr bool has_kernel() {
    constexpr bool narrow = same<S, half> || same<S, bfloat16>;
    if (ufunc_row<Id>::has & AD_U_SPECIAL) return false;
    return (ufunc_row<Id>::loops >> dtype_of<S>::value & 1) && (!narrow || ufunc_row<Id>::by_storage);
}
/* Special functions have their kernels in files of their own. */
template <int Id, class S> constexpr bool is_special() {
    return (ufunc_row<Id>::has & AD_U_SPECIAL) && (ufunc_row<Id>::loops >> dtype_of<S>::value & 1);
}

} // namespace AD_ISA
} // namespace ad
#endif
