/* Describing a message in one line for traces: ad__message_text. */
#include "protocol/desc.h"
#include "protocol/infer.h"
#include "protocol/message.h"
#include "protocol/text.h"

#include <inttypes.h>

enum { MOST_ITEMS = 16 }; /* items of a list that are shown before "..." */

static void add_dtype(ad_text *t, int dtype) {
    if (dtype >= AD_NDTYPE) ad__text_add(t, "?");
    else if (dtype == AD_BFLOAT16) ad__text_add(t, "bf2"); /* f2 is float16 */
    else ad__text_add(t, "%c%d", ad__dtypes[dtype].kind, ad__dtypes[dtype].size);
}

/* Append an array as "#5 f4[16]"; a view that is not a whole contiguous buffer also has @offset and {strides}. */
static void add_desc(ad_text *t, const ad_desc *d) {
    ad__text_add(t, "#%" PRIu64 " ", d->buffer);
    add_dtype(t, d->dtype);
    if (d->form == AD_SIZED) {
        ad__text_add(t, "[?]");
        return;
    }
    ad__text_add(t, "[");
    ad__text_numbers(t, d->ndim, d->shape, 1);
    ad__text_add(t, "]");
    if (d->offset != 0) ad__text_add(t, "@%" PRId64, d->offset);
    if (d->form == AD_VIEW && d->dtype < AD_NDTYPE && !ad__is_contiguous(d)) {
        ad__text_add(t, "{");
        ad__text_numbers(t, d->ndim, d->strides, 1);
        ad__text_add(t, "}");
    }
}

static void add_scalar(ad_text *t, const ad_scalar *v) {
    switch (v->kind) {
    case AD_SCALAR_BOOL: ad__text_add(t, v->as.b ? "true" : "false"); break;
    case AD_SCALAR_INT: ad__text_add(t, "%" PRId64, v->as.i); break;
    case AD_SCALAR_UINT: ad__text_add(t, "%" PRIu64, v->as.u); break;
    case AD_SCALAR_FLOAT: ad__text_add(t, "%.17g", v->as.f); break;
    case AD_SCALAR_COMPLEX: ad__text_add(t, "(%.17g%+.17gj)", v->as.c[0], v->as.c[1]); break;
    default: ad__text_add(t, "nil"); break;
    }
}

static void add_scalars(ad_text *t, const char *before, size_t n, const ad_scalar *values) {
    for (size_t i = 0; i < n && i < MOST_ITEMS; i++) {
        ad__text_add(t, "%s", i == 0 ? before : ", ");
        add_scalar(t, &values[i]);
    }
    if (n > MOST_ITEMS) ad__text_add(t, ", ... %zu in all", n);
}

static void add_operands(ad_text *t, const char *before, int n, const ad_operand *operand) {
    for (int i = 0; i < n; i++) {
        ad__text_add(t, "%s", i == 0 ? before : ", ");
        if (operand[i].is_scalar) add_scalar(t, &operand[i].scalar);
        else add_desc(t, &operand[i].desc);
    }
}

/* Append a string of the other end as printable ASCII, as it may go to a terminal or a log. */
static void add_string(ad_text *t, const ad_string *s) {
    ad__text_add(t, " \"");
    for (size_t i = 0; i < s->size && t->used + 1 < t->size; i++) {
        unsigned char byte = (unsigned char)s->data[i];
        ad__text_add(t, byte < ' ' || byte > '~' || byte == '"' || byte == '\\' ? "\\x%02x" : "%c", byte);
    }
    ad__text_add(t, "\"");
}

static void add_op(ad_text *t, const ad_op *op) {
    ad__text_add(t, " %s %s", ad__op_name(op), op->loop < AD_NDTYPE ? ad__dtypes[op->loop].name : "?");
    add_operands(t, " -> ", op->nout, op->operand);
    add_operands(t, " <- ", op->nin, op->operand + op->nout);
    add_scalars(t, "; ", op->nparam, op->param);
}

static void add_ids(ad_text *t, const ad_message *m) {
    for (size_t i = 0; i < m->nids && i < MOST_ITEMS; i++) ad__text_add(t, " #%" PRIu64, m->ids[i]);
    if (m->nids > MOST_ITEMS) ad__text_add(t, " ... %zu in all", m->nids);
}

/* Count the fields of a row that have this letter, except lists. */
static int count_fields(const ad_request_row *row, char letter) {
    int n = 0;

    for (const char *l = row->fields; *l != '\0'; l += *l == '[' ? 3 : 1) n += *l == letter;
    return n;
}

/* Append a message's fields as its row declares them: array, numbers except the request id, strings. Bytes may be
 * secret and are left out. */
static void add_fields(ad_text *t, const ad_message *m) {
    const int numbers = count_fields(m->row, 'u'), strings = count_fields(m->row, 's');

    add_operands(t, " ", count_fields(m->row, 'D'), &m->operand);
    for (int i = m->row->cls == AD_CLASS_ASK; i < numbers; i++) ad__text_add(t, " %" PRIu64, m->u[i]);
    for (int i = 0; i < strings; i++) add_string(t, &m->s[i]);
}

static void add_strings(ad_text *t, const char *before, int list, const ad_message *m) {
    const size_t n = m->list[list].n;

    for (size_t i = 0; i < n && i < MOST_ITEMS; i++) {
        if (i == 0) ad__text_add(t, "%s", before);
        add_string(t, &m->list[list].item[i]);
    }
    if (n > MOST_ITEMS) ad__text_add(t, " ... %zu in all", n);
}

/* Append the bytes of values, whose types are unknown here. */
static void add_values(ad_text *t, const ad_message *m) {
    const size_t n = m->list[0].n;

    for (size_t i = 0; i < n && i < MOST_ITEMS; i++) {
        const ad_string *value = &m->list[0].item[i];
        ad__text_add(t, i == 0 ? "; " : ", ");
        for (size_t k = 0; k < value->size && k < 16; k++) ad__text_add(t, "%02x", (unsigned char)value->data[k]);
        if (value->size > 16) ad__text_add(t, "...");
    }
    if (n > MOST_ITEMS) ad__text_add(t, ", ... %zu in all", n);
}

static void add_launch(ad_text *t, const ad_message *m) {
    const uint64_t *v = m->ids;

    ad__text_add(t, " module %" PRIu64, m->u[0]);
    add_string(t, &m->s[0]);
    ad__text_add(t,
                 " grid %" PRIu64 ",%" PRIu64 ",%" PRIu64 " block %" PRIu64 ",%" PRIu64 ",%" PRIu64 " shared %" PRIu64,
                 v[0], v[1], v[2], v[3], v[4], v[5], v[6]);
    add_operands(t, " -> ", m->op.nout, m->op.operand);
    add_operands(t, " <- ", m->op.nin, m->op.operand + m->op.nout);
    add_values(t, m);
}

static void add_welcome(ad_text *t, const ad_welcome *w) {
    ad__text_add(t, " version %" PRIu64 " session %" PRIu64 " %s \"%s\" window %" PRIu64 " ops %" PRIu64 " bytes",
                 w->version, w->session, w->backend, w->device_name, w->window_ops, w->window_bytes);
}

void ad__message_text(const ad_message *m, char *out, size_t size) {
    ad_text t = {out, size, 0};
    const uint64_t *u = m->u;

    ad__text_add(&t, "%s", m->row != NULL ? m->row->name : "?");
    if (m->row != NULL && m->row->cls == AD_CLASS_ASK) ad__text_add(&t, " ?%" PRIu64, u[0]);
    switch (m->opcode) {
    case AD_REQ_HELLO:
        ad__text_add(&t, " %" PRIu64 "..%" PRIu64 " features %#" PRIx64, u[0], u[1], u[2]);
        add_string(&t, &m->s[0]);
        break;
    case AD_REQ_RESUME:
        ad__text_add(&t, " session %" PRIu64 " of %" PRIx64 ", received %" PRIu64, u[2], u[1], u[3]);
        break;
    case AD_REQ_RESUMED: ad__text_add(&t, " received %" PRIu64, u[0]); break;
    case AD_REQ_WELCOME: add_welcome(&t, m->welcome); break;
    case AD_REQ_NEW:
    case AD_REQ_EMPTY:
    case AD_REQ_READ: add_operands(&t, " ", 1, &m->operand); break;
    case AD_REQ_FETCH:
        add_operands(&t, " ", 1, &m->operand);
        ad__text_add(&t, " -> window %" PRIu64 "@%" PRIu64, u[1], u[2]);
        break;
    case AD_REQ_LOAD:
        ad__text_add(&t, " #%" PRIu64 "@%" PRIu64 " <- window %" PRIu64 "@%" PRIu64 " %" PRIu64, u[0], u[1], u[2], u[3],
                     u[4]);
        break;
    case AD_REQ_FREE: add_ids(&t, m); break;
    case AD_REQ_WRITE: ad__text_add(&t, " #%" PRIu64 "@%" PRIu64, u[0], u[1]); break;
    case AD_REQ_UFUNC:
    case AD_REQ_REDUCE:
    case AD_REQ_CALL:
    case AD_REQ_QUERY: add_op(&t, &m->op); break;
    case AD_REQ_LAUNCH: add_launch(&t, m); break;
    case AD_REQ_BUILD:
        ad__text_add(&t, " module %" PRIu64 ", %zu bytes", u[1], m->s[0].size);
        add_strings(&t, " options", 0, m);
        add_strings(&t, " names", 1, m);
        break;
    case AD_REQ_REPLY:
        ad__text_add(&t, " ?%" PRIu64 " done %" PRIu64, u[0], u[1]);
        add_scalars(&t, ": ", m->nvalues, m->values);
        break;
    case AD_REQ_FAIL:
        ad__text_add(&t, " ?%" PRIu64 " done %" PRIu64 " code %" PRIu64 " operation %" PRIu64, u[0], u[1], u[2], u[3]);
        add_string(&t, &m->s[0]);
        add_string(&t, &m->s[1]);
        break;
    case AD_REQ_ACK: ad__text_add(&t, " done %" PRIu64, u[0]); break;
    case AD_REQ_REVOKE: break; /* its capability is left out, as any reader of it could attach */
    case AD_REQ_ATTACH: ad__text_add(&t, " #%" PRIu64, u[1]); break;
    case AD_REQ_ATTACH_NAME:
        ad__text_add(&t, " #%" PRIu64, u[1]);
        add_string(&t, &m->s[0]);
        add_string(&t, &m->s[1]);
        break;
    case AD_REQ_NAMES: ad__text_add(&t, " #%" PRIu64, u[1]); break;
    case AD_REQ_BYE:
        ad__text_add(&t, " code %" PRIu64, u[0]);
        add_string(&t, &m->s[0]);
        break;
    default:
        if (m->row != NULL) add_fields(&t, m);
        break;
    }
}
