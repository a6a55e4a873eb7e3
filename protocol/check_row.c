/* Checks of a message's fields together, after check.c has read each of them. */
#include "protocol/check.h"
#include "protocol/rows_request.h"

#include <inttypes.h>
#include <string.h>

/* Find the most outputs, inputs and parameters that the message's row takes. False: there is no such row. */
static bool get_row_limits(const ad_message *m, uint64_t row, int limits[3]) {
    const ad_ufunc_row *ufunc = m->opcode == AD_REQ_UFUNC ? ad__ufunc(row) : NULL;
    const bool calls = m->opcode == AD_REQ_CALL || m->opcode == AD_REQ_QUERY;
    const ad_call_row *call = calls ? ad__call(row) : NULL;

    limits[0] = 1;
    limits[1] = 2;
    limits[2] = 3;
    if (m->opcode == AD_REQ_REDUCE) return ad__reduction(row) != NULL;
    if (ufunc) {
        limits[0] = ufunc->nout;
        limits[1] = ufunc->nin + 1;
        limits[2] = 0;
        return true;
    }
    if (!call || (call->kind == AD_CALL_ASK) != (m->opcode == AD_REQ_QUERY)) return false;
    limits[0] = call->nout;
    limits[1] = call->nin_max;
    limits[2] = (int)strlen(call->params);
    return true;
}

static int check_operation(ad_message *m, ad_fault *fault) {
    const uint64_t *u = m->opcode == AD_REQ_QUERY ? m->u + 1 : m->u;
    ad_op *op = &m->op;
    int limits[3];

    if (!get_row_limits(m, u[0], limits))
        return ad__fault(fault, AD_E_PROTOCOL, "%s: there is no row %" PRIu64, m->row->name, u[0]);
    if (u[1] >= AD_NDTYPE) return ad__fault(fault, AD_E_PROTOCOL, "%s: no such dtype: %" PRIu64, m->row->name, u[1]);
    if (op->nout > limits[0] || op->nin > limits[1] || op->nparam > limits[2])
        return ad__fault(fault, AD_E_PROTOCOL, "%s: more operands or parameters than row %" PRIu64 " has", m->row->name,
                         u[0]);
    op->opcode = m->opcode;
    op->row = (uint16_t)u[0];
    op->loop = (uint8_t)u[1];
    for (int i = 0; i < op->nout; i++)
        if ((op->operand[i].desc.form == AD_SIZED) != (m->opcode == AD_REQ_QUERY))
            return ad__fault(fault, AD_E_PROTOCOL, "%s: an output is of the wrong form", m->row->name);
    return 0;
}

/* Check a launch: its arrays and values are exactly those that the kinds of its parameters name. */
static int check_launch(ad_message *m, ad_fault *fault) {
    ad_op *op = &m->op;
    size_t written = 0, read = 0, values = 0;

    op->opcode = m->opcode;
    if (m->nids < AD_LAUNCH_FIXED || m->nids > AD_LAUNCH_FIXED + AD_MAX_ARGUMENTS)
        return ad__fault(fault, AD_E_PROTOCOL, "launch: from %d to %d numbers, not %zu", AD_LAUNCH_FIXED,
                         AD_LAUNCH_FIXED + AD_MAX_ARGUMENTS, m->nids);
    for (size_t i = 0; i < AD_LAUNCH_FIXED; i++)
        if (m->ids[i] > UINT32_MAX) return ad__fault(fault, AD_E_PROTOCOL, "launch: a size is above 2^32-1");
    for (size_t i = AD_LAUNCH_FIXED; i < m->nids; i++) {
        const uint64_t kind = m->ids[i];
        if (kind >= AD_KINDS) return ad__fault(fault, AD_E_PROTOCOL, "launch: a parameter is of no kind");
        written += kind == AD_KIND_WRITTEN || kind == AD_KIND_INSIDE_WRITTEN;
        read += kind == AD_KIND_READ || kind == AD_KIND_INSIDE_READ;
        if (kind < AD_KIND_VALUE) continue;
        if (kind > AD_KIND_VALUE && values < m->list[0].n && m->list[0].item[values].size < AD_INSIDE)
            return ad__fault(fault, AD_E_PROTOCOL, "launch: a structure has no room for an address");
        values++;
    }
    if (written != op->nout || read != op->nin || values != m->list[0].n)
        return ad__fault(fault, AD_E_PROTOCOL, "launch: arrays and values are not those of the parameters");
    for (int i = 0; i < op->nout + op->nin; i++)
        if (op->operand[i].is_scalar || op->operand[i].desc.form == AD_SIZED) /* the reader lets no input be fresh */
            return ad__fault(fault, AD_E_PROTOCOL, "launch: an array is of the wrong form");
    return 0;
}

/* ---- one function for each word of the column ---- */

static int check_fresh(ad_message *m, ad_fault *fault) {
    if (m->operand.desc.form == AD_FRESH) return 0;
    return ad__fault(fault, AD_E_PROTOCOL, "%s: the description is not of the fresh form", m->row->name);
}

static int check_array(ad_message *m, ad_fault *fault) {
    if (!m->operand.is_scalar) return 0;
    return ad__fault(fault, AD_E_PROTOCOL, "%s: a scalar has nothing to read", m->row->name);
}

static int check_kernel_set(ad_message *m, ad_fault *fault) {
    if (m->u[1] > UINT32_MAX || m->u[2] > UINT32_MAX)
        return ad__fault(fault, AD_E_PROTOCOL, "kernel_set: a number is above 2^32-1");
    if (m->u[3] > 2) return ad__fault(fault, AD_E_PROTOCOL, "kernel_set: the last number is not 0, 1 or 2");
    return 0;
}

int ad__check_row(ad_message *m, ad_fault *fault) {
    static int (*const checks[AD_NCHECK])(ad_message *, ad_fault *) = {
        [AD_CHECK_FRESH] = check_fresh,           [AD_CHECK_ARRAY] = check_array,
        [AD_CHECK_OPERATION] = check_operation,   [AD_CHECK_LAUNCH] = check_launch,
        [AD_CHECK_KERNEL_SET] = check_kernel_set,
    };

    if (m->row->cls == AD_CLASS_ASK && m->u[0] == 0)
        return ad__fault(fault, AD_E_PROTOCOL, "%s: a request id must not be 0", m->row->name);
    return m->row->check == AD_CHECK_PLAIN ? 0 : checks[m->row->check](m, fault);
}
