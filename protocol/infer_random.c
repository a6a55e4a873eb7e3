/* The table of distributions, and the type and shape rules of random numbers. */
#include "protocol/desc.h"
#include "protocol/distribution.h"
#include "protocol/infer_call.h"

#include <inttypes.h>

#define COUNT(d) (AD_DOMAIN_##d != AD_DOMAIN_NONE)

static const ad_distribution_row rows[AD_RANDOM_LIMIT] = {
#define AD_DISTRIBUTION(id, name, source, loops, p0, d0, p1, d1, p2, d2, doc) \
    [id] = {#name,                                                            \
            doc,                                                              \
            {#p0, #p1, #p2},                                                  \
            AD_RANDOM_##loops,                                                \
            AD_RANDOM_##source,                                               \
            COUNT(d0) + COUNT(d1) + COUNT(d2),                                \
            {AD_DOMAIN_##d0, AD_DOMAIN_##d1, AD_DOMAIN_##d2}},
#include "protocol/distribution.def"
#undef AD_DISTRIBUTION
};

/* Never called; an id of two rows is a repeated case, which does not compile. */
static __attribute__((unused)) void require_unique_ids(int id) {
    switch (id) {
#define AD_DISTRIBUTION(id, ...) case id:
#include "protocol/distribution.def"
#undef AD_DISTRIBUTION
    default: break;
    }
}

const ad_distribution_row *ad__distribution(int64_t id) {
    return id >= 0 && id < AD_RANDOM_LIMIT && rows[id].name ? &rows[id] : NULL;
}

/* Report a parameter outside of its domain in NumPy's words, without the name before each relation. AD_E_VALUE. */
static int report_domain_fault(const ad_distribution_row *row, int i, ad_fault *fault) {
    const char *f = row->name, *p = row->parameter[i];

    switch (row->domain[i]) {
    case AD_DOMAIN_NONNEG: return ad__fault(fault, AD_E_VALUE, "%s: %s < 0", f, p);
    case AD_DOMAIN_POSITIVE: return ad__fault(fault, AD_E_VALUE, "%s: %s <= 0", f, p);
    case AD_DOMAIN_UNIT: return ad__fault(fault, AD_E_VALUE, "%s: %s < 0, %s > 1 or %s is NaN", f, p, p, p);
    case AD_DOMAIN_ABOVE0: return ad__fault(fault, AD_E_VALUE, "%s: %s <= 0, %s > 1 or %s contains NaNs", f, p, p, p);
    case AD_DOMAIN_BELOW1: return ad__fault(fault, AD_E_VALUE, "%s: %s < 0, %s >= 1 or %s is NaN", f, p, p, p);
    case AD_DOMAIN_ABOVE1: return ad__fault(fault, AD_E_VALUE, "%s: %s <= 1 or %s is NaN", f, p, p);
    case AD_DOMAIN_MEAN: return ad__fault(fault, AD_E_VALUE, "%s: %s < 0, %s is NaN or too large", f, p, p);
    default: return ad__fault(fault, AD_E_VALUE, "%s: %s is invalid", f, p);
    }
}

int ad__random_fault(int64_t id, int64_t wrong, ad_fault *fault) {
    const ad_distribution_row *row = ad__distribution(id);

    if (row == NULL) return ad__fault(fault, AD_E_VALUE, "random: a parameter is invalid");
    if (wrong >= 1 && wrong <= row->nparam) return report_domain_fault(row, (int)wrong - 1, fault);
    switch (wrong) {
    case AD_RANDOM_ORDER:
        if (id == AD_RANDOM_integers) return ad__fault(fault, AD_E_VALUE, "%s: low >= high", row->name);
        return ad__fault(fault, AD_E_VALUE, "%s: left > mode or mode > right", row->name);
    case AD_RANDOM_FLAT: return ad__fault(fault, AD_E_VALUE, "%s: left == right", row->name);
    case AD_RANDOM_SAMPLE: return ad__fault(fault, AD_E_VALUE, "%s: ngood + nbad < nsample", row->name);
    default: return ad__fault(fault, AD_E_VALUE, "%s: a parameter is too large", row->name);
    }
}

static int check_row(const ad_op *op, const ad_distribution_row *row, ad_fault *fault) {
    if (row == NULL)
        return ad__fault(fault, AD_E_UNSUPPORTED, "random: there is no distribution %" PRId64, op->param[0].as.i);
    if (op->loop >= AD_NDTYPE || !(row->loops & AD_BIT(op->loop)))
        return ad__fault(fault, AD_E_TYPE, "random: %s has no loop for %s", row->name, ad__dtypes[op->loop].name);
    if (op->nin != row->nparam)
        return ad__fault(fault, AD_E_VALUE, "random: %s takes %d parameters, not %d", row->name, row->nparam, op->nin);
    return AD_OK;
}

/* Check that parameter i is real and broadcasts to the output. AD_E_TYPE, AD_E_VALUE. */
static int check_input(const ad_op *op, const ad_distribution_row *row, int i, const ad_desc *out, ad_fault *fault) {
    const ad_operand *x = &op->operand[op->nout + i];
    int64_t strides[AD_MAX_NDIM];
    ad_desc view;

    if (x->is_scalar ? x->scalar.kind == AD_SCALAR_COMPLEX || x->scalar.kind == AD_SCALAR_NIL
                     : ad__dtypes[x->desc.dtype].kind == 'c')
        return ad__fault(fault, AD_E_TYPE, "random: %s of %s must be real", row->parameter[i], row->name);
    return x->is_scalar ? AD_OK : ad__broadcast_to(&x->desc, out->ndim, out->shape, strides, &view, fault);
}

int ad__infer_random(const ad_op *op, ad_result *result, ad_fault *fault) {
    const ad_distribution_row *row = ad__distribution(op->param[0].as.i);
    const ad_desc *out;
    int status = check_row(op, row, fault);

    if (status == AD_OK) status = ad__given_output(op, &out, fault);
    for (int i = 0; status == AD_OK && i < op->nin; i++) status = check_input(op, row, i, out, fault);
    if (status == AD_OK) ad__set_result(result, op->loop, out->ndim, out->shape);
    return status;
}
