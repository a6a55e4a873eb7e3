/* Functions that the files of call `random` share. */
#ifndef AD_KERNELS_CPU_CALL_RANDOM_H
#define AD_KERNELS_CPU_CALL_RANDOM_H

#include "kernels/random_block.h"
#include "kernels/random_call.h"

/* The elements of a row, into r->out; parameters are known to be good. */
typedef void ad_random_fill(const ad::random_call *r);

/* By row, for float32 and for float64 (COUNT: the latter). own: OWN rows. mixed: BLOCK rows of real numbers with
 * arrays among their parameters. */
struct ad_random_table {
    ad_random_fill *own[2][AD_RANDOM_LIMIT], *mixed[2][AD_RANDOM_LIMIT];
};
extern const ad_random_table ad_random_one_by_one;

/* Look at all parameters of an opened call. AD_E_VALUE. */
int ad_cpu_random_check(const ad::random_call *r, ad_fault *fault);

/* Elements begin .. begin + n of a BLOCK row, without gaps, the same as a call makes them. */
void ad_cpu_random_make(const ad::random_source *r, int64_t begin, int64_t n, void *to);

namespace ad {
inline namespace AD_ISA {

constexpr int64_t RANDOM_CHUNK = 1024; /* elements made at a time */

/* Parameters at a place of the walk; step on by one element. */
template <class P> struct random_cursor {
    const char *at[3];
    int64_t step[3];
    random_parameters<P> value;

    static P held(const random_value &v) {
        if constexpr (same<P, float>) return v.f;
        else return v.d;
    }
    random_cursor(const random_call *r, const int64_t (&offset)[4]) {
        value = {held(r->value[0]), held(r->value[1]), held(r->value[2])};
        for (int k = 0; k < 3; k++) {
            at[k] = r->parameter[k].data ? r->parameter[k].data + offset[k + 1] : nullptr;
            step[k] = r->parameter[k].data ? r->places.inner(k + 1) : 0;
        }
    }
    static void look(const char **from, int64_t by, P *to) {
        if (!*from) return;
        *to = *reinterpret_cast<const P *>(*from);
        *from += by;
    }
    const random_parameters<P> &next() {
        look(&at[0], step[0], &value.a);
        look(&at[1], step[1], &value.b);
        look(&at[2], step[2], &value.c);
        return value;
    }
};

} // namespace AD_ISA
} // namespace ad
#endif
