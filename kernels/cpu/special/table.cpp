/* Loops over the special functions, once for all instruction sets: nearly all their time is in the functions. */
#include "kernels/cpu/special/special.h"
#include "kernels/ufunc.h"

namespace {

using namespace ad;

template <class S> S element(const void *p, unsigned scalar, int64_t i) {
    return static_cast<const S *>(p)[scalar ? 0 : i];
}

template <class U> void run(void *const *p, unsigned scalars, int64_t n) {
    using X = typename U::X;
    using Y = typename U::Y;
    using Z = typename U::Z;
    void *const *in = p + U::nout;
    for (int64_t i = 0; i < n; i++) {
        typename U::B y{};
        typename U::C z{};
        typename U::R0 r0;
        typename U::R1 r1;
        if constexpr (U::nin > 1) y = load(element<Y>(in[1], scalars & 2, i));
        if constexpr (U::nin > 2) z = load(element<Z>(in[2], scalars & 4, i));
        U::apply(load(element<X>(in[0], scalars & 1, i)), y, z, r0, r1);
        static_cast<typename U::O0 *>(p[0])[i] = typename U::O0(r0);
        if constexpr (U::nout > 1) static_cast<typename U::O1 *>(p[1])[i] = typename U::O1(r1);
    }
}

template <int Id, class S> void add(ad_ufunc_kernel *rows) {
    if constexpr (is_special<Id, S>()) rows[Id] = run<ufunc<Id, S>>;
}

} // namespace

void ad_cpu_special_add(int loop, ad_ufunc_kernel *rows) {
    visit(loop, [rows](auto type) {
        using S [[maybe_unused]] = typename decltype(type)::type;
#define AD_UFUNC(id, name, nin, nout, rulename, domain, cost, traits, test, doc, ...) add<id, S>(rows);
#include "protocol/ufunc.def"
#undef AD_UFUNC
    });
}
