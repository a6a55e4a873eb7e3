/* The field checker: reads a message and checks each field against its row in request.def. See check.h. */
#include "protocol/arena.h"
#include "protocol/check.h"
#include "protocol/cursor.h"
#include "protocol/desc.h"
#include "protocol/text.h"
#include "protocol/welcome.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MAX_STRING = 65535, EXT_COMPLEX = 1 };

typedef struct check {
    const uint8_t *at; /* the next object */
    ad_arena *arena;
    ad_message *m;
    ad_fault *fault;
    uint32_t field;     /* number of the present field */
    int nu, ns, nlists; /* fields of each kind so far: unsigned, string, list */
} check;

static int reject_field(check *c, const char *what) {
    return ad__fault(c->fault, AD_E_PROTOCOL, "%s: field %" PRIu32 ": %s", c->m->row->name, c->field, what);
}

static int report_no_memory(check *c) { return ad__fault(c->fault, AD_E_MEMORY, "out of memory"); }

/* ---- single values ---- */

static bool is_text_within(const ad_object *o, size_t most) {
    return o->kind == AD_KIND_TEXT && o->size <= most && ad__is_utf8((const char *)o->as.data, o->size);
}

static bool is_text(const ad_object *o) { return is_text_within(o, MAX_STRING); }

static bool is_bytes(const ad_object *o) { return o->kind == AD_KIND_BYTES && o->size <= MAX_STRING; }

static bool has_name(const ad_object *o, const char *name) {
    return o->size == strlen(name) && memcmp(o->as.data, name, o->size) == 0;
}

static bool read_scalar(check *c, ad_scalar *v) {
    ad_object o;

    ad__object_read(&c->at, &o);
    switch (o.kind) {
    case AD_KIND_NIL: v->kind = AD_SCALAR_NIL; return true;
    case AD_KIND_BOOL:
        v->kind = AD_SCALAR_BOOL;
        v->as.b = o.as.b;
        return true;
    case AD_KIND_UNSIGNED:
    case AD_KIND_NEGATIVE:
        v->kind = o.kind == AD_KIND_UNSIGNED && o.as.u > INT64_MAX ? AD_SCALAR_UINT : AD_SCALAR_INT;
        v->as.u = o.as.u;
        return true;
    case AD_KIND_FLOAT:
        v->kind = AD_SCALAR_FLOAT;
        v->as.f = o.as.f;
        return true;
    case AD_KIND_EXT:
        if (o.type != EXT_COMPLEX || o.size != sizeof v->as.c) return false;
        v->kind = AD_SCALAR_COMPLEX;
        memcpy(v->as.c, o.as.data, sizeof v->as.c);
        return true;
    default: return false;
    }
}

/* ---- array descriptions ---- */

static int read_strides(check *c, const ad_desc *d, int64_t *strides) {
    uint32_t n;

    if (!ad__object_array(&c->at, &n) || n != d->ndim) return reject_field(c, "strides must be as many as dimensions");
    for (uint32_t i = 0; i < n; i++)
        if (!ad__object_int(&c->at, &strides[i])) return reject_field(c, "a stride must be a signed 64-bit number");
    return 0;
}

static int read_shape(check *c, bool strided, ad_desc *d) {
    int64_t *own;
    uint32_t n;

    if (!ad__object_array(&c->at, &n) || n > AD_MAX_NDIM)
        return reject_field(c, "a shape must be a list of at most 32 numbers");
    own = ad__arena_take(c->arena, 2 * n * sizeof *own);
    if (!own) return report_no_memory(c);
    d->ndim = (uint8_t)n;
    d->shape = own;
    d->strides = own + n;
    for (uint32_t i = 0; i < n; i++)
        if (!ad__object_size(&c->at, &own[i])) return reject_field(c, "a dimension must be a number from 0 to 2^63-1");
    if (strided) return read_strides(c, d, own + n);
    ad__strides_contiguous(d->ndim, own, ad__dtypes[d->dtype].size, own + n);
    return 0;
}

static bool read_nil(check *c) {
    if (!ad__object_is(c->at, AD_KIND_NIL)) return false;
    c->at++;
    return true;
}

static int read_desc(check *c, bool output, ad_desc *d) {
    uint64_t dtype;
    uint32_t size;

    if (!ad__object_array(&c->at, &size) || size < (output ? 3 : 4) || size > 5)
        return reject_field(c, "not an array description");
    d->form = size == 3 ? AD_FRESH : AD_VIEW;
    if (!ad__object_unsigned(&c->at, &d->buffer) || (size == 3 && d->buffer == 0))
        return reject_field(c, "not a buffer id");
    if (!ad__object_unsigned(&c->at, &dtype) || dtype >= AD_NDTYPE) return reject_field(c, "no such dtype");
    d->dtype = (uint8_t)dtype;
    if (size == 3 && read_nil(c)) {
        d->form = AD_SIZED;
        return 0;
    }
    if (size > 3 && !ad__object_size(&c->at, &d->offset))
        return reject_field(c, "an offset must be a number from 0 to 2^63-1");
    return read_shape(c, size == 5, d);
}

static int read_operand(check *c, bool output, ad_operand *x) {
    *x = (ad_operand){0};
    if (output || ad__object_is(c->at, AD_KIND_ARRAY)) return read_desc(c, output, &x->desc);
    x->is_scalar = 1;
    if (!read_scalar(c, &x->scalar) || x->scalar.kind == AD_SCALAR_NIL)
        return reject_field(c, "neither an array description nor a scalar");
    return 0;
}

/* ---- fields: one function for each letter of a signature ---- */

static int read_unsigned(check *c) {
    return ad__object_unsigned(&c->at, &c->m->u[c->nu++]) ? 0 : reject_field(c, "not an unsigned number");
}

/* Copy a string into the arena, as it must outlive the block. AD_E_MEMORY. */
static int copy_string(check *c, const ad_object *o, ad_string *out) {
    char *copy = ad__arena_take(c->arena, o->size);

    if (!copy) return report_no_memory(c);
    if (o->size > 0) memcpy(copy, o->as.data, o->size);
    *out = (ad_string){copy, o->size};
    return 0;
}

static int add_string_field(check *c, const ad_object *o) { return copy_string(c, o, &c->m->s[c->ns++]); }

static int read_text(check *c) {
    ad_object o;

    ad__object_read(&c->at, &o);
    return is_text(&o) ? add_string_field(c, &o) : reject_field(c, "not a string of UTF-8");
}

static int read_source(check *c) {
    ad_object o;

    ad__object_read(&c->at, &o);
    if (!is_text_within(&o, AD_MAX_SOURCE)) return reject_field(c, "not a string of UTF-8 of at most 900000 bytes");
    return add_string_field(c, &o);
}

static int read_secret(check *c) {
    ad_object o;

    ad__object_read(&c->at, &o);
    if (!is_bytes(&o)) return reject_field(c, "not a string of bytes");
    return o.size == AD_SECRET ? add_string_field(c, &o) : reject_field(c, "a secret has 16 bytes");
}

static int read_welcome_value(check *c, const ad_welcome_key *key) {
    char *member = (char *)c->m->welcome + key->offset;
    ad_object o;

    ad__object_read(&c->at, &o);
    if (key->size == 0) {
        if (o.kind != AD_KIND_UNSIGNED) return reject_field(c, key->name);
        memcpy(member, &o.as.u, sizeof o.as.u);
        return 0;
    }
    if (!is_text(&o)) return reject_field(c, key->name);
    snprintf(member, key->size, "%.*s", (int)o.size, (const char *)o.as.data);
    return 0;
}

static int read_welcome_pair(check *c, const ad_object *name) {
    for (int k = 0; k < AD__WELCOME_KEYS; k++)
        if (has_name(name, ad__welcome_keys[k].name)) return read_welcome_value(c, &ad__welcome_keys[k]);
    ad__object_skip(&c->at);
    return 0;
}

static int begin_welcome(check *c) {
    ad_message *m = c->m;

    m->welcome = ad__arena_take(c->arena, sizeof *m->welcome);
    if (!m->welcome) return report_no_memory(c);
    *m->welcome = (ad_welcome){.version = m->u[0], .features = m->u[1], .session = m->u[2]};
    memcpy(m->welcome->secret, m->s[0].data, AD_SECRET);
    return 0;
}

/* Read an option of hello or resume: process or token. Others are skipped. */
static int read_hello_pair(check *c, const ad_object *name) {
    uint64_t *process = &c->m->u[c->nu];
    ad_object o;

    if (has_name(name, "process"))
        return ad__object_unsigned(&c->at, process) ? 0 : reject_field(c, "process: not an unsigned number");
    if (!has_name(name, "token")) {
        ad__object_skip(&c->at);
        return 0;
    }
    ad__object_read(&c->at, &o);
    if (!is_text(&o) || c->ns != 1) return reject_field(c, "token: not one string of UTF-8");
    return add_string_field(c, &o);
}

static int read_map(check *c) {
    const bool welcome = c->m->row->cls == AD_CLASS_TELL; /* false: these are the options of a client */
    int status = welcome ? begin_welcome(c) : 0;
    ad_object map, name;

    if (status) return status;
    ad__object_read(&c->at, &map);
    if (map.kind != AD_KIND_MAP) return reject_field(c, "not a map");
    for (uint32_t i = 0; !status && i < map.size; i++) {
        ad__object_read(&c->at, &name);
        if (!is_text(&name)) return reject_field(c, "a key is not a string");
        status = welcome ? read_welcome_pair(c, &name) : read_hello_pair(c, &name);
    }
    return status;
}

static int read_output(check *c) { return read_operand(c, true, &c->m->operand); }
static int read_input(check *c) { return read_operand(c, false, &c->m->operand); }

/* ---- lists of n objects ---- */

static int read_ids(check *c, uint32_t n) {
    ad_message *m = c->m;

    m->nids = n;
    m->ids = ad__arena_take(c->arena, n * sizeof *m->ids);
    if (!m->ids) return report_no_memory(c);
    for (uint32_t i = 0; i < n; i++)
        if (!ad__object_unsigned(&c->at, &m->ids[i])) return reject_field(c, "not a list of unsigned numbers");
    return 0;
}

static int read_strings(check *c, uint32_t n, bool (*is_one)(const ad_object *), const char *complaint) {
    ad_string *item = ad__arena_take(c->arena, n * sizeof *item);
    int status = 0;
    ad_object o;

    if (!item) return report_no_memory(c);
    for (uint32_t i = 0; i < n && !status; i++) {
        ad__object_read(&c->at, &o);
        status = is_one(&o) ? copy_string(c, &o, &item[i]) : reject_field(c, complaint);
    }
    c->m->list[c->nlists].item = item;
    c->m->list[c->nlists++].n = n;
    return status;
}

static int read_texts(check *c, uint32_t n) { return read_strings(c, n, is_text, "not a list of strings of UTF-8"); }

static int read_values(check *c, uint32_t n) { return read_strings(c, n, is_bytes, "not a list of strings of bytes"); }

static int read_operands(check *c, int n, bool output, ad_operand *x) {
    int status = 0;

    for (int i = 0; i < n && !status; i++) status = read_operand(c, output, &x[i]);
    return status;
}

static uint32_t get_most_operands(const check *c, uint32_t most) {
    return c->m->row->check == AD_CHECK_LAUNCH ? AD_MAX_ARGUMENTS : most;
}

static int read_outputs(check *c, uint32_t n) {
    ad_op *op = &c->m->op;

    if (n > get_most_operands(c, AD_MAX_OUT)) return reject_field(c, "too many operands");
    op->operand = ad__arena_take(c->arena, n * sizeof *op->operand);
    if (!op->operand) return report_no_memory(c);
    op->nout = (uint8_t)n;
    return read_operands(c, op->nout, true, op->operand);
}

/* Read the inputs, and move the outputs to a place with room for both. */
static int read_inputs(check *c, uint32_t n) {
    ad_op *op = &c->m->op;
    ad_operand *all;

    if (n > get_most_operands(c, AD_MAX_IN)) return reject_field(c, "too many operands");
    all = ad__arena_take(c->arena, (op->nout + n) * sizeof *all);
    if (!all) return report_no_memory(c);
    for (int i = 0; i < op->nout; i++) all[i] = op->operand[i];
    op->operand = all;
    op->nin = (uint8_t)n;
    return read_operands(c, op->nin, false, all + op->nout);
}

/* Read the values of a reply, or the parameters of an operation. */
static int read_scalars(check *c, uint32_t n) {
    const bool reply = c->m->row->cls == AD_CLASS_TELL;
    ad_scalar *values;

    if (!reply && n > AD_MAX_PARAM) return reject_field(c, "too many parameters");
    values = ad__arena_take(c->arena, n * sizeof *values);
    if (!values) return report_no_memory(c);
    memset(values, 0, n * sizeof *values);
    for (uint32_t i = 0; i < n; i++)
        if (!read_scalar(c, &values[i])) return reject_field(c, "not a scalar");
    if (reply) {
        c->m->values = values;
        c->m->nvalues = n;
    } else {
        c->m->op.param = values;
        c->m->op.nparam = (uint8_t)n;
    }
    return 0;
}

/* ---- whole messages ---- */

static int read_list(check *c, char letter) {
    uint32_t n;

    if (!ad__object_array(&c->at, &n)) return reject_field(c, "not a list");
    switch (letter) {
    case 'u': return read_ids(c, n);
    case 'F': return read_outputs(c, n);
    case 'D': return read_inputs(c, n);
    case 'v': return read_scalars(c, n);
    case 's': return read_texts(c, n);
    default: /* y */ return read_values(c, n);
    }
}

/* Read one field, and move *letters to the next one. */
static int read_field(check *c, const char **letters) {
    const char *at = *letters;

    *letters = at + (*at == '[' ? 3 : 1);
    switch (*at) {
    case '[': return read_list(c, at[1]);
    case 'u': return read_unsigned(c);
    case 's': return read_text(c);
    case 't': return read_source(c);
    case 'k': return read_secret(c);
    case 'F': return read_output(c);
    case 'D': return read_input(c);
    default: /* m */ return read_map(c);
    }
}

static int reject_field_count(const ad_message *m, uint32_t got, ad_fault *fault) {
    int fields = 0;

    for (const char *l = m->row->fields; *l != '\0'; l += *l == '[' ? 3 : 1) fields++;
    return ad__fault(fault, AD_E_PROTOCOL, "%s: %d fields, not %" PRIu32, m->row->name, fields, got);
}

int ad__check_message(const uint8_t **at, ad_arena *arena, uint32_t allowed, ad_message *m, ad_fault *fault) {
    check c = {.at = *at, .arena = arena, .m = m, .fault = fault};
    const char *letters;
    uint64_t id;
    uint32_t size;
    int status = 0;

    memset(m, 0, sizeof *m);
    if (!ad__object_array(&c.at, &size) || size == 0 || !ad__object_unsigned(&c.at, &id))
        return ad__fault(fault, AD_E_PROTOCOL, "a message must be a list that begins with its id");
    m->row = ad__request(id);
    if (!m->row) return ad__fault(fault, AD_E_PROTOCOL, "unknown message: %" PRIu64, id);
    if (!(allowed & AD_BIT(m->row->cls))) return ad__fault(fault, AD_E_PROTOCOL, "%s: not allowed here", m->row->name);
    m->opcode = (uint8_t)id;
    letters = m->row->fields;
    for (c.field = 1; c.field < size && *letters != '\0'; c.field++)
        if ((status = read_field(&c, &letters))) return status;
    if (c.field != size || *letters != '\0') return reject_field_count(m, size - 1, fault);
    *at = c.at;
    return ad__check_row(m, fault);
}
