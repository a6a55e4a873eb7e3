#include "protocol/check.h"
#include "protocol/desc.h"
#include "protocol/welcome.h"

#include <inttypes.h>
#include <msgpack.h>
#include <string.h>

enum { MAX_STRING = 65535, EXT_COMPLEX = 1 };

typedef struct check {
    ad_arena *arena;
    ad_message *m;
    ad_fault *fault;
    int field, nu, ns, nlists; /* where it is: the field's number; unsigned, string, list fields so far */
} check;

static int bad(check *c, const char *what) {
    return ad__fault(c->fault, AD_E_PROTOCOL, "%s: field %d: %s", c->m->row->name, c->field, what);
}

static int no_memory(check *c) { return ad__fault(c->fault, AD_E_MEMORY, "out of memory"); }

/* ---- single values ---- */

static bool is_unsigned(const msgpack_object *o) { return o->type == MSGPACK_OBJECT_POSITIVE_INTEGER; }

/* A number from 0 to INT64_MAX. */
static bool get_size(const msgpack_object *o, int64_t *out) {
    if (!is_unsigned(o) || o->via.u64 > INT64_MAX) return false;
    *out = (int64_t)o->via.u64;
    return true;
}

static bool get_int(const msgpack_object *o, int64_t *out) {
    if (o->type != MSGPACK_OBJECT_NEGATIVE_INTEGER) return get_size(o, out);
    *out = o->via.i64;
    return true;
}

/* The length of the character at p, of at most left bytes; 0: not UTF-8. */
static size_t utf8_length(const unsigned char *p, size_t left) {
    const size_t n = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 0;

    if (n == 0 || n > left) return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    /* Longer than needed, a surrogate, or beyond the last code point. */
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf0 && p[1] < 0x90) ||
        (p[0] == 0xf4 && p[1] > 0x8f))
        return 0;
    return n;
}

static bool is_utf8(const char *text, size_t size) {
    for (size_t i = 0, n; i < size; i += n)
        if ((n = utf8_length((const unsigned char *)text + i, size - i)) == 0) return false;
    return true;
}

static bool is_text_of(const msgpack_object *o, size_t most) {
    return o->type == MSGPACK_OBJECT_STR && o->via.str.size <= most && is_utf8(o->via.str.ptr, o->via.str.size);
}

static bool is_text(const msgpack_object *o) { return is_text_of(o, MAX_STRING); }

static bool get_scalar(const msgpack_object *o, ad_scalar *v) {
    switch ((int)o->type) {
    case MSGPACK_OBJECT_NIL: v->kind = AD_SCALAR_NIL; return true;
    case MSGPACK_OBJECT_BOOLEAN:
        v->kind = AD_SCALAR_BOOL;
        v->as.b = o->via.boolean;
        return true;
    case MSGPACK_OBJECT_POSITIVE_INTEGER:
    case MSGPACK_OBJECT_NEGATIVE_INTEGER:
        v->kind = AD_SCALAR_INT;
        if (!get_int(o, &v->as.i)) {
            v->kind = AD_SCALAR_UINT;
            v->as.u = o->via.u64;
        }
        return true;
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64:
        v->kind = AD_SCALAR_FLOAT;
        v->as.f = o->via.f64;
        return true;
    case MSGPACK_OBJECT_EXT:
        if (o->via.ext.type != EXT_COMPLEX || o->via.ext.size != sizeof v->as.c) return false;
        v->kind = AD_SCALAR_COMPLEX;
        memcpy(v->as.c, o->via.ext.ptr, sizeof v->as.c);
        return true;
    default: return false;
    }
}

/* ---- array descriptions ---- */

static int desc_shape(check *c, const msgpack_object *shape, const msgpack_object *strides, ad_desc *d) {
    const msgpack_object_array *dims = &shape->via.array, *steps = &strides->via.array;
    int64_t *own;

    if (shape->type != MSGPACK_OBJECT_ARRAY || dims->size > AD_MAX_NDIM)
        return bad(c, "a shape must be a list of at most 32 numbers");
    if (strides != shape && (strides->type != MSGPACK_OBJECT_ARRAY || steps->size != dims->size))
        return bad(c, "strides must be as many as dimensions");
    own = ad__arena_alloc(c->arena, 2 * dims->size * sizeof *own);
    if (own == NULL) return no_memory(c);
    d->ndim = (uint8_t)dims->size;
    d->shape = own;
    d->strides = own + dims->size;
    for (uint32_t i = 0; i < dims->size; i++)
        if (!get_size(&dims->ptr[i], &own[i])) return bad(c, "a dimension must be a number from 0 to 2^63-1");
    if (strides == shape) ad__strides_contiguous(d->ndim, own, ad__dtypes[d->dtype].size, own + dims->size);
    else
        for (uint32_t i = 0; i < dims->size; i++)
            if (!get_int(&steps->ptr[i], &own[dims->size + i]))
                return bad(c, "a stride must be a signed 64-bit number");
    return AD_OK;
}

static int get_desc(check *c, const msgpack_object *o, bool output, ad_desc *d) {
    const msgpack_object *part = o->via.array.ptr;
    const uint32_t size = o->type == MSGPACK_OBJECT_ARRAY ? o->via.array.size : 0;

    *d = (ad_desc){.form = size == 3 ? AD_FRESH : AD_VIEW};
    if (size < (output ? 3 : 4) || size > 5) return bad(c, "not an array description");
    if (!is_unsigned(&part[0]) || (size == 3 && part[0].via.u64 == 0)) return bad(c, "not a buffer id");
    if (!is_unsigned(&part[1]) || part[1].via.u64 >= AD_NDTYPE) return bad(c, "no such dtype");
    d->buffer = part[0].via.u64;
    d->dtype = (uint8_t)part[1].via.u64;
    if (size == 3 && part[2].type == MSGPACK_OBJECT_NIL) {
        d->form = AD_SIZED;
        return AD_OK;
    }
    if (size > 3 && !get_size(&part[2], &d->offset)) return bad(c, "an offset must be a number from 0 to 2^63-1");
    return desc_shape(c, &part[size == 3 ? 2 : 3], &part[size == 3 ? 2 : size - 1], d);
}

static int get_operand(check *c, const msgpack_object *o, bool output, ad_operand *x) {
    *x = (ad_operand){0};
    if (output || o->type == MSGPACK_OBJECT_ARRAY) return get_desc(c, o, output, &x->desc);
    x->is_scalar = 1;
    if (o->type == MSGPACK_OBJECT_NIL || !get_scalar(o, &x->scalar))
        return bad(c, "neither an array description nor a scalar");
    return AD_OK;
}

/* ---- fields: one function for each letter of a signature ---- */

typedef int field_reader(check *c, const msgpack_object *o);

static int read_unsigned(check *c, const msgpack_object *o) {
    if (!is_unsigned(o)) return bad(c, "not an unsigned number");
    c->m->u[c->nu++] = o->via.u64;
    return AD_OK;
}

/* Strings are copied: they must outlive the block. */
static int copy_string(check *c, const char *data, size_t size, ad_string *out) {
    char *copy = ad__arena_alloc(c->arena, size);

    if (copy == NULL) return no_memory(c);
    if (size > 0) memcpy(copy, data, size);
    *out = (ad_string){copy, size};
    return AD_OK;
}

static int keep_string(check *c, const char *data, size_t size) {
    return copy_string(c, data, size, &c->m->s[c->ns++]);
}

static int read_text(check *c, const msgpack_object *o) {
    if (!is_text(o)) return bad(c, "not a string of UTF-8");
    return keep_string(c, o->via.str.ptr, o->via.str.size);
}

static int read_source(check *c, const msgpack_object *o) {
    if (!is_text_of(o, AD_MAX_SOURCE)) return bad(c, "not a string of UTF-8 of at most 900000 bytes");
    return keep_string(c, o->via.str.ptr, o->via.str.size);
}

static int read_bytes(check *c, const msgpack_object *o) {
    if (o->type != MSGPACK_OBJECT_BIN || o->via.bin.size > MAX_STRING) return bad(c, "not a string of bytes");
    if ((c->m->opcode == AD_REQ_RESUME || c->m->opcode == AD_REQ_RESUMED) && o->via.bin.size != AD_SECRET)
        return bad(c, "a secret has 16 bytes");
    return keep_string(c, o->via.bin.ptr, o->via.bin.size);
}

static int welcome_value(check *c, const ad_welcome_key *key, const msgpack_object *o) {
    char *member = (char *)c->m->welcome + key->offset;

    if (key->size == 0) {
        if (!is_unsigned(o)) return bad(c, key->name);
        memcpy(member, &o->via.u64, sizeof o->via.u64);
        return AD_OK;
    }
    if (!is_text(o)) return bad(c, key->name);
    snprintf(member, key->size, "%.*s", (int)o->via.str.size, o->via.str.ptr);
    return AD_OK;
}

static int welcome_pair(check *c, const msgpack_object_kv *pair) {
    for (int k = 0; k < AD__WELCOME_KEYS; k++) {
        const ad_welcome_key *key = &ad__welcome_keys[k];
        if (pair->key.via.str.size == strlen(key->name) &&
            memcmp(pair->key.via.str.ptr, key->name, pair->key.via.str.size) == 0)
            return welcome_value(c, key, &pair->val);
    }
    return AD_OK;
}

static int begin_welcome(check *c) {
    ad_message *m = c->m;

    m->welcome = ad__arena_alloc(c->arena, sizeof *m->welcome);
    if (m->welcome == NULL) return no_memory(c);
    *m->welcome = (ad_welcome){.version = m->u[0], .features = m->u[1], .session = m->u[2]};
    if (m->s[0].size != sizeof m->welcome->secret) return bad(c, "a secret has 16 bytes");
    memcpy(m->welcome->secret, m->s[0].data, sizeof m->welcome->secret);
    return AD_OK;
}

/* An option of hello or resume. */
static int hello_pair(check *c, const msgpack_object_kv *pair) {
    const msgpack_object_str *key = &pair->key.via.str;

    if (key->size == 7 && memcmp(key->ptr, "process", 7) == 0 && c->m->opcode == AD_REQ_HELLO) {
        if (!is_unsigned(&pair->val)) return bad(c, "process: not an unsigned number");
        c->m->u[3] = pair->val.via.u64;
        return AD_OK;
    }
    if (key->size != 5 || memcmp(key->ptr, "token", 5) != 0) return AD_OK;
    if (!is_text(&pair->val) || c->ns != 1) return bad(c, "token: not one string of UTF-8");
    return keep_string(c, pair->val.via.str.ptr, pair->val.via.str.size);
}

static int read_map(check *c, const msgpack_object *o) {
    const bool welcome = c->m->opcode == AD_REQ_WELCOME, hello = c->m->row->cls == AD_CLASS_HELLO;
    int status = welcome ? begin_welcome(c) : AD_OK;

    if (o->type != MSGPACK_OBJECT_MAP) return bad(c, "not a map");
    for (uint32_t i = 0; status == AD_OK && i < o->via.map.size; i++) {
        if (!is_text(&o->via.map.ptr[i].key)) status = bad(c, "a key is not a string");
        else if (welcome) status = welcome_pair(c, &o->via.map.ptr[i]);
        else if (hello) status = hello_pair(c, &o->via.map.ptr[i]);
    }
    return status;
}

static int read_output(check *c, const msgpack_object *o) { return get_operand(c, o, true, &c->m->operand); }
static int read_input(check *c, const msgpack_object *o) { return get_operand(c, o, false, &c->m->operand); }

static int read_ids(check *c, const msgpack_object *o) {
    ad_message *m = c->m;

    m->nids = o->via.array.size;
    m->ids = ad__arena_alloc(c->arena, m->nids * sizeof *m->ids);
    if (m->ids == NULL) return no_memory(c);
    for (size_t i = 0; i < m->nids; i++) {
        if (!is_unsigned(&o->via.array.ptr[i])) return bad(c, "not a list of unsigned numbers");
        m->ids[i] = o->via.array.ptr[i].via.u64;
    }
    return AD_OK;
}

/* A list of strings, or of bytes. */
static int read_strings(check *c, const msgpack_object *o, int type, const char *complaint) {
    const uint32_t n = o->via.array.size;
    ad_string *item = ad__arena_alloc(c->arena, n * sizeof *item);
    int status = AD_OK;

    if (item == NULL) return no_memory(c);
    for (uint32_t i = 0; i < n && status == AD_OK; i++) {
        const msgpack_object *x = &o->via.array.ptr[i];
        if ((int)x->type != type || (type == MSGPACK_OBJECT_STR ? !is_text(x) : x->via.bin.size > MAX_STRING))
            return bad(c, complaint);
        status = copy_string(c, x->via.str.ptr, x->via.str.size, &item[i]);
    }
    c->m->list[c->nlists].item = item;
    c->m->list[c->nlists++].n = n;
    return status;
}

static int read_texts(check *c, const msgpack_object *o) {
    return read_strings(c, o, MSGPACK_OBJECT_STR, "not a list of strings of UTF-8");
}

static int read_values(check *c, const msgpack_object *o) {
    return read_strings(c, o, MSGPACK_OBJECT_BIN, "not a list of strings of bytes");
}

/* The outputs come with room for the inputs, which are the field that follows. */
static int read_outputs(check *c, const msgpack_object *o) {
    const uint32_t nout = o->via.array.size, nin = o[1].type == MSGPACK_OBJECT_ARRAY ? o[1].via.array.size : 0;
    const bool launch = c->m->opcode == AD_REQ_LAUNCH;
    ad_op *op = &c->m->op;

    if (nout > (launch ? AD_MAX_ARGUMENTS : AD_MAX_OUT) || nin > (launch ? AD_MAX_ARGUMENTS : AD_MAX_IN))
        return bad(c, "too many operands");
    op->operand = ad__arena_alloc(c->arena, (nout + nin + 1) * sizeof *op->operand);
    if (op->operand == NULL) return no_memory(c);
    op->nout = (uint8_t)nout;
    for (uint32_t i = 0; i < nout; i++) {
        int status = get_operand(c, &o->via.array.ptr[i], true, &op->operand[i]);
        if (status != AD_OK) return status;
    }
    return AD_OK;
}

static int read_inputs(check *c, const msgpack_object *o) {
    ad_op *op = &c->m->op;

    op->nin = (uint8_t)o->via.array.size;
    for (uint32_t i = 0; i < o->via.array.size; i++) {
        int status = get_operand(c, &o->via.array.ptr[i], false, &op->operand[op->nout + i]);
        if (status != AD_OK) return status;
    }
    return AD_OK;
}

/* A reply's values, or an operation's parameters. */
static int read_scalars(check *c, const msgpack_object *o) {
    const uint32_t n = o->via.array.size;
    const bool reply = c->m->opcode == AD_REQ_REPLY;
    ad_scalar *values;

    if (!reply && n > AD_MAX_PARAM) return bad(c, "too many parameters");
    values = ad__arena_alloc(c->arena, n * sizeof *values);
    if (values == NULL) return no_memory(c);
    memset(values, 0, n * sizeof *values);
    for (uint32_t i = 0; i < n; i++)
        if (!get_scalar(&o->via.array.ptr[i], &values[i])) return bad(c, "not a scalar");
    if (reply) {
        c->m->values = values;
        c->m->nvalues = n;
    } else {
        c->m->op.param = values;
        c->m->op.nparam = (uint8_t)n;
    }
    return AD_OK;
}

static field_reader *const readers[128] = {
    ['u'] = read_unsigned, ['s'] = read_text,  ['y'] = read_bytes,  ['m'] = read_map,
    ['F'] = read_output,   ['D'] = read_input, ['t'] = read_source,
};
static field_reader *const list_readers[128] = {
    ['u'] = read_ids,     ['F'] = read_outputs, ['D'] = read_inputs,
    ['v'] = read_scalars, ['s'] = read_texts,   ['y'] = read_values,
};

/* One field; *letters is moved on to the next one's. */
static int read_field(check *c, const char **letters, const msgpack_object *o) {
    const char *at = *letters;

    if (*at != '[') {
        *letters = at + 1;
        return readers[(unsigned char)*at](c, o);
    }
    *letters = at + 3;
    if (o->type != MSGPACK_OBJECT_ARRAY) return bad(c, "not a list");
    return list_readers[(unsigned char)at[1]](c, o);
}

static int field_count(const char *letters) {
    int n = 0;

    for (; *letters != '\0'; letters += *letters == '[' ? 3 : 1) n++;
    return n;
}

/* ---- whole messages ---- */

/* What a row of the message's table allows at most: outputs, inputs, parameters. False: there is no such row. */
static bool row_limits(const ad_message *m, uint64_t row, int limits[3]) {
    const ad_ufunc_row *ufunc = m->opcode == AD_REQ_UFUNC ? ad__ufunc(row) : NULL;
    const bool calls = m->opcode == AD_REQ_CALL || m->opcode == AD_REQ_QUERY;
    const ad_call_row *call = calls ? ad__call(row) : NULL;

    limits[0] = 1;
    limits[1] = 2;
    limits[2] = 3;
    if (m->opcode == AD_REQ_REDUCE) return ad__reduction(row) != NULL;
    if (ufunc != NULL) {
        limits[0] = ufunc->nout;
        limits[1] = ufunc->nin + 1;
        limits[2] = 0;
        return true;
    }
    if (call == NULL || (call->kind == AD_CALL_ASK) != (m->opcode == AD_REQ_QUERY)) return false;
    limits[0] = call->nout;
    limits[1] = call->nin_max;
    limits[2] = (int)strlen(call->params);
    return true;
}

static int finish_op(check *c) {
    ad_message *m = c->m;
    const uint64_t *u = m->opcode == AD_REQ_QUERY ? m->u + 1 : m->u;
    ad_op *op = &m->op;
    int limits[3];

    if (!row_limits(m, u[0], limits))
        return ad__fault(c->fault, AD_E_PROTOCOL, "%s: there is no row %" PRIu64, m->row->name, u[0]);
    if (u[1] >= AD_NDTYPE) return ad__fault(c->fault, AD_E_PROTOCOL, "%s: no such dtype: %" PRIu64, m->row->name, u[1]);
    if (op->nout > limits[0] || op->nin > limits[1] || op->nparam > limits[2])
        return ad__fault(c->fault, AD_E_PROTOCOL, "%s: more operands or parameters than row %" PRIu64 " has",
                         m->row->name, u[0]);
    op->opcode = m->opcode;
    op->row = (uint16_t)u[0];
    op->loop = (uint8_t)u[1];
    for (int i = 0; i < op->nout; i++)
        if ((op->operand[i].desc.form == AD_SIZED) != (m->opcode == AD_REQ_QUERY))
            return ad__fault(c->fault, AD_E_PROTOCOL, "%s: an output is of the wrong form", m->row->name);
    return AD_OK;
}

/* Each parameter takes the next of its kind, and none is left over. */
static int finish_launch(check *c) {
    enum { FIXED = 7 };
    ad_message *m = c->m;
    ad_op *op = &m->op;
    size_t count[3] = {0};

    op->opcode = m->opcode;
    if (m->nids < FIXED || m->nids > FIXED + AD_MAX_ARGUMENTS)
        return ad__fault(c->fault, AD_E_PROTOCOL, "launch: from 7 to %d numbers, not %zu", FIXED + AD_MAX_ARGUMENTS,
                         m->nids);
    for (size_t i = 0; i < FIXED; i++)
        if (m->ids[i] > UINT32_MAX) return ad__fault(c->fault, AD_E_PROTOCOL, "launch: a size is above 2^32-1");
    for (size_t i = FIXED; i < m->nids; i++) {
        if (m->ids[i] > 2) return ad__fault(c->fault, AD_E_PROTOCOL, "launch: a parameter is of no kind");
        count[m->ids[i]]++;
    }
    if (count[0] != op->nout || count[1] != op->nin || count[2] != m->list[0].n)
        return ad__fault(c->fault, AD_E_PROTOCOL, "launch: arrays and values are not those of the parameters");
    for (int i = 0; i < op->nout + op->nin; i++)
        if (op->operand[i].is_scalar || op->operand[i].desc.form == AD_SIZED ||
            (i >= op->nout && op->operand[i].desc.form != AD_VIEW))
            return ad__fault(c->fault, AD_E_PROTOCOL, "launch: an array is of the wrong form");
    return AD_OK;
}

static int finish(check *c) {
    const ad_message *m = c->m;

    if (m->row->cls == AD_CLASS_ASK && m->u[0] == 0)
        return ad__fault(c->fault, AD_E_PROTOCOL, "%s: a request id must not be 0", m->row->name);
    switch (m->opcode) {
    case AD_REQ_NEW:
    case AD_REQ_EMPTY:
        if (m->operand.desc.form != AD_FRESH)
            return ad__fault(c->fault, AD_E_PROTOCOL, "%s: the description is not of the fresh form", m->row->name);
        return AD_OK;
    case AD_REQ_READ:
    case AD_REQ_FETCH:
    case AD_REQ_PUBLISH:
        if (m->operand.is_scalar)
            return ad__fault(c->fault, AD_E_PROTOCOL, "%s: a scalar has nothing to read", m->row->name);
        return AD_OK;
    case AD_REQ_UFUNC:
    case AD_REQ_REDUCE:
    case AD_REQ_CALL:
    case AD_REQ_QUERY: return finish_op(c);
    case AD_REQ_LAUNCH: return finish_launch(c);
    case AD_REQ_KERNEL_SET:
        if (m->u[1] > UINT32_MAX || m->u[2] > UINT32_MAX)
            return ad__fault(c->fault, AD_E_PROTOCOL, "kernel_set: a number is above 2^32-1");
        return AD_OK;
    default: return AD_OK;
    }
}

int ad__check_message(const msgpack_object *object, ad_arena *arena, uint32_t allowed, ad_message *m, ad_fault *fault) {
    const msgpack_object *part = object->via.array.ptr;
    check c = {.arena = arena, .m = m, .fault = fault};
    const char *letters;
    int fields, status = AD_OK;

    memset(m, 0, sizeof *m);
    if (object->type != MSGPACK_OBJECT_ARRAY || object->via.array.size == 0 || !is_unsigned(&part[0]))
        return ad__fault(fault, AD_E_PROTOCOL, "a message must be a list that begins with its id");
    m->row = ad__request(part[0].via.u64);
    if (m->row == NULL) return ad__fault(fault, AD_E_PROTOCOL, "unknown message: %" PRIu64, part[0].via.u64);
    if (!(allowed & AD_BIT(m->row->cls))) return ad__fault(fault, AD_E_PROTOCOL, "%s: not allowed here", m->row->name);
    m->opcode = (uint8_t)part[0].via.u64;
    letters = m->row->fields;
    fields = field_count(letters);
    if (object->via.array.size != (uint32_t)fields + 1)
        return ad__fault(fault, AD_E_PROTOCOL, "%s: %d fields, not %" PRIu32, m->row->name, fields,
                         object->via.array.size - 1);
    for (c.field = 1; status == AD_OK && c.field <= fields; c.field++)
        status = read_field(&c, &letters, &part[c.field]);
    return status == AD_OK ? finish(&c) : status;
}
