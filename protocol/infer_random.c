/* The table of distributions, and the type and shape rules of random numbers. */
#include "protocol/desc.h"
#include "protocol/curand.h"
#include "protocol/infer_call.h"
#include "protocol/rows_call.h"
#include "protocol/rows_request.h"

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

/* A tenth of the ns that an element takes longest, whatever its parameters and the states are that it is drawn from
 * (RANDOM_TRIES and CURAND_STEPS of kernels/). cuRAND's integers may be drawn again and again as well. */
enum { REJECTION_NS = 800, ONE_BY_ONE_NS = 30000, INTEGER_NS = 160 };

int ad__random_cost(const ad_op *op) {
    const bool curand = op->row == AD_CALL_curand;
    const ad_distribution_row *row;

    if (op->opcode != AD_REQ_CALL || (op->row != AD_CALL_random && !curand) || !op->nparam) return 0;
    if (!(row = ad__distribution(op->param[0].as.i))) return 0;
    if (curand && row == &rows[AD_RANDOM_hypergeometric]) return ONE_BY_ONE_NS;
    return row->source == AD_RANDOM_OWN ? REJECTION_NS : curand ? INTEGER_NS : 0;
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

    if (!row) return ad__fault(fault, AD_E_VALUE, "random: a parameter is invalid");
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
    if (!row) return ad__fault(fault, AD_E_UNSUPPORTED, "random: there is no distribution %" PRId64, op->param[0].as.i);
    if (!(row->loops & AD_BIT(op->loop)))
        return ad__fault(fault, AD_E_TYPE, "random: %s has no loop for %s", row->name, ad__dtypes[op->loop].name);
    if (op->nin != row->nparam)
        return ad__fault(fault, AD_E_VALUE, "random: %s takes %d parameters, not %d", row->name, row->nparam, op->nin);
    return 0;
}

/* Check that parameter i, input `before` + i, is real and broadcasts to the output. AD_E_TYPE, AD_E_VALUE. */
static int check_input(const ad_op *op, const ad_distribution_row *row, int i, int before, const ad_desc *out,
                       ad_fault *fault) {
    const ad_operand *x = &op->operand[op->nout + before + i];
    int64_t strides[AD_MAX_NDIM];
    ad_desc view;

    if (x->is_scalar ? x->scalar.kind == AD_SCALAR_COMPLEX || x->scalar.kind == AD_SCALAR_NIL
                     : ad__dtypes[x->desc.dtype].kind == 'c')
        return ad__fault(fault, AD_E_TYPE, "random: %s of %s must be real", row->parameter[i], row->name);
    return x->is_scalar ? 0 : ad__broadcast_to(&x->desc, out->ndim, out->shape, strides, &view, fault);
}

int ad__infer_random(const ad_op *op, ad_result *result, ad_fault *fault) {
    const ad_distribution_row *row = ad__distribution(op->param[0].as.i);
    const ad_desc *out;
    int status = check_row(op, row, fault);

    if (!status) status = ad__given_output(op, &out, fault);
    for (int i = 0; !status && i < op->nin; i++) status = check_input(op, row, i, 0, out, fault);
    if (!status) ad__set_result(result, op->loop, out->ndim, out->shape);
    return status;
}

/* ---- cuRAND ---- */

static const struct {
    uint32_t loops;
    bool host;
    unsigned generators; /* a bit each */
} curand_rows[AD_RANDOM_LIMIT] = {
#define HOST true
#define DEVICE false
#define AD_CURAND(name, loops, order, generators) [AD_RANDOM_##name] = {loops, order, AD_CURAND_##generators},
#include "protocol/curand.def"
#undef AD_CURAND
#undef DEVICE
#undef HOST
};

uint32_t ad__curand_loops(int64_t id, int64_t generator, int64_t order) {
    if (id < 0 || id >= AD_RANDOM_LIMIT || !(curand_rows[id].generators >> generator & 1)) return 0;
    if (order == AD_CURAND_HOST && (!curand_rows[id].host || generator == AD_CURAND_XOR128)) return 0;
    return curand_rows[id].loops;
}

static int check_generator(int64_t generator, ad_fault *fault) {
    if (generator >= 0 && generator < AD_CURAND_GENERATORS) return 0;
    return ad__fault(fault, AD_E_UNSUPPORTED, "curand: there is no generator %" PRId64, generator);
}

/* Check that d is an array of states. AD_E_VALUE. */
static int check_states(const ad_desc *d, ad_fault *fault) {
    if (d->ndim == 2 && d->shape[0] == AD_CURAND_WORDS && d->shape[1] >= 1 && d->shape[1] <= AD_CURAND_STATES) return 0;
    return ad__fault(fault, AD_E_VALUE, "curand: an array of states has the shape (%d, n), n from 1 to %d",
                     AD_CURAND_WORDS, AD_CURAND_STATES);
}

int ad__infer_curand_seed(const ad_op *op, ad_result *result, ad_fault *fault) {
    const int64_t first = op->param[2].as.i;
    const ad_desc *out;
    int status = check_generator(op->param[0].as.i, fault);

    if (!status) status = ad__given_output(op, &out, fault);
    if (!status) status = check_states(out, fault);
    if (!status && op->loop != AD_UINT32)
        status = ad__fault(fault, AD_E_TYPE, "curand: states are of uint32, not %s", ad__dtypes[op->loop].name);
    if (!status && (first < 0 || first > AD_CURAND_STATES - out->shape[1]))
        status = ad__fault(fault, AD_E_VALUE, "curand: there are %d states", AD_CURAND_STATES);
    if (!status) ad__set_result(result, AD_UINT32, 2, out->shape);
    return status;
}

/* Check who takes turns against the states that there are and the elements to draw. AD_E_VALUE. */
static int check_turns(const ad_op *op, const ad_desc *states, const ad_desc *out, ad_fault *fault) {
    const int64_t order = op->param[2].as.i, turns = op->param[3].as.i, first = op->param[4].as.i;
    const double count = (double)ad__desc_count(out);

    if (order < 0 || order >= AD_CURAND_ORDERS)
        return ad__fault(fault, AD_E_VALUE, "curand: there is no order %" PRId64, order);
    if (turns < 1 || turns > AD_CURAND_STATES || first < 0 || first >= turns || (order == AD_CURAND_DEVICE && first))
        return ad__fault(fault, AD_E_VALUE, "curand: the number of states or the first one is wrong");
    if (states->shape[1] < turns && (order == AD_CURAND_HOST || states->shape[1] < count))
        return ad__fault(fault, AD_E_VALUE, "curand: so many elements need more states");
    if (count > (double)turns * AD_CURAND_MOST)
        return ad__fault(fault, AD_E_VALUE, "curand: more than %d elements from each of %" PRId64 " states",
                         AD_CURAND_MOST, turns);
    return 0;
}

int ad__infer_curand(const ad_op *op, ad_result *result, ad_fault *fault) {
    const ad_distribution_row *row = ad__distribution(op->param[0].as.i);
    const int64_t generator = op->param[1].as.i;
    const ad_desc *out, *states;
    int status = check_generator(generator, fault);
    const uint32_t loops = status ? 0 : ad__curand_loops(op->param[0].as.i, generator, op->param[2].as.i);

    if (!status && (!row || !(loops & AD_BIT(op->loop))))
        status = ad__fault(fault, AD_E_UNSUPPORTED, "curand: distribution %" PRId64 " has no loop for %s",
                           op->param[0].as.i, ad__dtypes[op->loop].name);
    if (!status && op->nin != row->nparam + 1)
        status =
            ad__fault(fault, AD_E_VALUE, "curand: %s takes %d parameters, not %d", row->name, row->nparam, op->nin - 1);
    if (!status) status = ad__typed_input(op, 0, AD_UINT32, &states, fault);
    if (!status) status = check_states(states, fault);
    if (!status) status = ad__given_output(op, &out, fault);
    for (int i = 0; !status && i < row->nparam; i++) status = check_input(op, row, i, 1, out, fault);
    if (!status) status = check_turns(op, states, out, fault);
    if (!status) {
        ad__set_result(&result[0], op->loop, out->ndim, out->shape);
        ad__set_result(&result[1], AD_UINT32, 2, states->shape);
    }
    return status;
}
