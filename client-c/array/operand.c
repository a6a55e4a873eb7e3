/* Inputs of operations: arrays and scalars, strong and weak. */
#include <inttypes.h>
#include <stdio.h>

#include "client-c/client.h"

int ad__in_type(const ad_in *in) {
    if (in->array) return in->array->dtype;
    if (in->value.dtype >= 0) return in->value.dtype;
    switch (in->value.kind) {
    case AD_VALUE_BOOL: return AD_BOOL;
    case AD_VALUE_FLOAT: return AD_WEAK_FLOAT;
    case AD_VALUE_COMPLEX: return AD_WEAK_COMPLEX;
    default: return AD_WEAK_INT;
    }
}

int ad__value_dtype(const ad_value *v) {
    if (v->dtype >= 0) return v->dtype;
    switch (v->kind) {
    case AD_VALUE_BOOL: return AD_BOOL;
    case AD_VALUE_FLOAT: return AD_FLOAT64;
    case AD_VALUE_COMPLEX: return AD_COMPLEX128;
    case AD_VALUE_UINT: return v->as.u > INT64_MAX ? AD_UINT64 : AD_INT64;
    default: return AD_INT64;
    }
}

int ad__value_scalar(const ad_value *v, ad_scalar *out) {
    switch (v->kind) {
    case AD_VALUE_BOOL: *out = (ad_scalar){AD_SCALAR_BOOL, {.b = v->as.i != 0}}; return 0;
    case AD_VALUE_INT: *out = (ad_scalar){AD_SCALAR_INT, {.i = v->as.i}}; return 0;
    case AD_VALUE_UINT:
        *out = (ad_scalar){v->as.u > INT64_MAX ? AD_SCALAR_UINT : AD_SCALAR_INT, {.u = v->as.u}};
        return 0;
    case AD_VALUE_FLOAT: *out = (ad_scalar){AD_SCALAR_FLOAT, {.f = v->as.f}}; return 0;
    case AD_VALUE_COMPLEX: *out = (ad_scalar){AD_SCALAR_COMPLEX, {.c = {v->as.c[0], v->as.c[1]}}}; return 0;
    }
    return ad__fail(AD_E_TYPE, "a value of an unknown kind");
}

int ad__in_operand(const ad_in *in, ad_operand *out, uint8_t *type, ad_session **s) {
    const ad_array *a = in->array;
    out->data = NULL;
    if (AD_LIKELY(a != NULL)) {
        if (*s && *s != a->session) return ad__fail_strangers(*s, a->session);
        *s = a->session;
        *type = a->dtype;
        out->is_scalar = 0;
        out->desc = ad__array_desc(a);
        return 0;
    }
    if (in->value.dtype >= AD_NDTYPE) return ad__dtype_check(in->value.dtype);
    out->is_scalar = 1;
    out->desc.ndim = 0;
    *type = (uint8_t)ad__in_type(in);
    return ad__value_scalar(&in->value, &out->scalar);
}

/* ---- weak integers ---- */

int ad__value_side(const ad_value *v, int dtype) {
    if (v->dtype >= 0 || (v->kind != AD_VALUE_INT && v->kind != AD_VALUE_UINT)) return 0;
    const int bits = 8 * ad__dtypes[dtype].size;
    const bool large = v->kind == AD_VALUE_UINT && v->as.u > INT64_MAX;
    switch (ad__dtypes[dtype].kind) {
    case 'u':
        if (!large && v->as.i < 0) return -1;
        return bits < 64 && v->as.u >> bits ? 1 : 0;
    case 'i':
        if (large || (bits < 64 && v->as.i >> (bits - 1) > 0)) return 1;
        return bits < 64 && v->as.i >> (bits - 1) < -1 ? -1 : 0;
    default: return 0;
    }
}

int ad__fail_bounds(const ad_value *v, int dtype) {
    char number[32];
    snprintf(number, sizeof number, v->kind == AD_VALUE_UINT ? "%" PRIu64 : "%" PRId64, v->as.u);
    return ad__fail(AD_E_OVERFLOW, "Python integer %s out of bounds for %s", number, ad__dtypes[dtype].name);
}

const char *ad__casting_name(int casting) {
    static const char *const names[] = {"no", "equiv", "safe", "same_kind", "unsafe"};
    return casting >= 0 && casting < 5 ? names[casting] : "unsafe";
}
