/* Promotion and casting of types: see infer.h. */
#include "protocol/infer.h"

#define F16_UP (AD_M_FLOAT | AD_M_COMPLEX)
#define F32_UP (AD_BIT(AD_FLOAT32) | F64_UP | AD_BIT(AD_COMPLEX64))
#define F64_UP (AD_BIT(AD_FLOAT64) | AD_BIT(AD_COMPLEX128))
#define I16_UP (AD_BIT(AD_INT16) | I32_UP)
#define I32_UP (AD_BIT(AD_INT32) | AD_BIT(AD_INT64))
#define U16_UP (AD_BIT(AD_UINT16) | U32_UP)
#define U32_UP (AD_BIT(AD_UINT32) | AD_BIT(AD_UINT64))

/* The types that hold every value of a type, as NumPy defines it (int64 casts safely to float64). bfloat16 has 8 bits
 * of precision. int8 and uint8 cast to it safely, as in ml_dtypes. Wider integers do not. With them it promotes to
 * float32 or float64 as float16 does; ml_dtypes refuses those. */
static const uint32_t safe[AD_NDTYPE] = {
    [AD_BOOL] = AD_M_ALL,
    [AD_INT8] = AD_M_SIGNED | F16_UP,
    [AD_INT16] = I16_UP | F32_UP,
    [AD_INT32] = I32_UP | F64_UP,
    [AD_INT64] = AD_BIT(AD_INT64) | F64_UP,
    [AD_UINT8] = AD_M_UNSIGNED | I16_UP | F16_UP,
    [AD_UINT16] = U16_UP | I32_UP | F32_UP,
    [AD_UINT32] = U32_UP | AD_BIT(AD_INT64) | F64_UP,
    [AD_UINT64] = AD_BIT(AD_UINT64) | F64_UP,
    [AD_FLOAT16] = AD_BIT(AD_FLOAT16) | F32_UP,
    [AD_BFLOAT16] = AD_BIT(AD_BFLOAT16) | F32_UP,
    [AD_FLOAT32] = F32_UP,
    [AD_FLOAT64] = F64_UP,
    [AD_COMPLEX64] = AD_M_COMPLEX,
    [AD_COMPLEX128] = AD_BIT(AD_COMPLEX128),
};

uint32_t ad__safe_types(int from) { return from < AD_NDTYPE ? safe[from] : 0; }

int ad__promote(int a, int b) {
    const uint32_t both = safe[a] & safe[b];

    if (both & AD_BIT(a)) return a;
    if (both & AD_BIT(b)) return b;
    return __builtin_ctz(both); /* complex128 holds all values, so that a type is found */
}

/* The rank of a type's kind: bool, unsigned, signed, real, complex. */
static int get_kind_order(int type) {
    switch (ad__dtypes[type].kind) {
    case 'b': return 0;
    case 'u': return 1;
    case 'i': return 2;
    case 'f': return 3;
    default: return 4;
    }
}

/* Promote a strong type with a Python scalar: the type stays if it is of that kind or a higher one. */
static int promote_weak(int type, int weak) {
    switch (weak) {
    case AD_WEAK_INT: return type == AD_BOOL ? AD_INT64 : type;
    case AD_WEAK_FLOAT: return get_kind_order(type) < 3 ? AD_FLOAT64 : type;
    default:
        if (get_kind_order(type) == 4) return type;
        return get_kind_order(type) < 3 || type == AD_FLOAT64 ? AD_COMPLEX128 : AD_COMPLEX64;
    }
}

int ad__promote_all(int n, const uint8_t *types) {
    int strong = AD_BOOL, weak = 0; /* bool is the identity of promotion */

    for (int i = 0; i < n; i++) {
        if (types[i] < AD_NDTYPE) strong = ad__promote(strong, types[i]);
        else if (types[i] > weak) weak = types[i];
    }
    return weak != 0 ? promote_weak(strong, weak) : strong;
}

bool ad__can_cast(int from, int to, ad_casting casting) {
    switch (casting) {
    case AD_CAST_NO:
    case AD_CAST_EQUIV: return from == to;
    case AD_CAST_SAFE: return (safe[from] & AD_BIT(to)) != 0;
    case AD_CAST_SAME_KIND: return (safe[from] & AD_BIT(to)) != 0 || get_kind_order(from) <= get_kind_order(to);
    default: return true;
    }
}

int ad__code_dtype(int code, int loop) {
    switch (code) {
    case AD_CODE_T: return loop;
    case AD_CODE_R: return loop == AD_COMPLEX64 ? AD_FLOAT32 : loop == AD_COMPLEX128 ? AD_FLOAT64 : loop;
    case AD_CODE_B: return AD_BOOL;
    case AD_CODE_W: return AD_INT32;
    case AD_CODE_L: return AD_INT64;
    case AD_CODE_U: return AD_UINT8;
    default: return AD_NO_DTYPE;
    }
}
