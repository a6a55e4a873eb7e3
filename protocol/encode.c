/* Encoding of messages: see message.h. */
#include "protocol/desc.h"
#include "protocol/message.h"
#include "protocol/welcome.h"
#include "protocol/rows_request.h"

#include <msgpack.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "element data is little-endian on the wire and in memory");

enum { EXT_COMPLEX = 1 };

/* Append bytes for msgpack-c. A failed allocation is remembered in the buffer, so that callers need not check each
 * call. */
static inline int append_packed(void *to, const char *data, size_t size) {
    ad_bytes *b = to;

    if (b->capacity - b->size < size && ad__bytes_reserve(b, size)) return -1;
    to = b->data + b->size;
    b->size += size;
    switch (size) { /* sizes of msgpack's heads and numbers, copied without a call */
    case 1: memcpy(to, data, 1); break;
    case 2: memcpy(to, data, 2); break;
    case 3: memcpy(to, data, 3); break;
    case 5: memcpy(to, data, 5); break;
    case 9: memcpy(to, data, 9); break;
    default: memcpy(to, data, size); break;
    }
    return 0;
}

/* ---- the most frequent parts of messages, written in place: msgpack-c makes a call for each number ---- */

enum { NUMBER = 9 }; /* bytes of the longest number, and of the longest head */

/* Reserve `most` bytes at the end of b, and return where they begin; NULL: no memory, and b->failed is set. */
static uint8_t *reserve_bytes(ad_bytes *b, size_t most) {
    if (b->capacity - b->size < most && ad__bytes_reserve(b, most)) return NULL;
    return b->data + b->size;
}

static void set_end(ad_bytes *b, const uint8_t *until) { b->size = (size_t)(until - b->data); }

/* Write a head and the `size` bytes of a number, big-endian. */
static uint8_t *put_head(uint8_t *p, uint8_t head, uint64_t value, int size) {
    *p++ = head;
    for (int i = 1; i <= size; i++) *p++ = (uint8_t)(value >> 8 * (size - i));
    return p;
}

static uint8_t *put_unsigned(uint8_t *p, uint64_t value) {
    if (value < 0x80) return put_head(p, (uint8_t)value, 0, 0);
    if (value <= UINT8_MAX) return put_head(p, 0xcc, value, 1);
    if (value <= UINT16_MAX) return put_head(p, 0xcd, value, 2);
    if (value <= UINT32_MAX) return put_head(p, 0xce, value, 4);
    return put_head(p, 0xcf, value, 8);
}

static uint8_t *put_int(uint8_t *p, int64_t value) {
    if (value >= 0) return put_unsigned(p, (uint64_t)value);
    if (value >= -32) return put_head(p, (uint8_t)value, 0, 0);
    if (value >= INT8_MIN) return put_head(p, 0xd0, (uint64_t)value, 1);
    if (value >= INT16_MIN) return put_head(p, 0xd1, (uint64_t)value, 2);
    if (value >= INT32_MIN) return put_head(p, 0xd2, (uint64_t)value, 4);
    return put_head(p, 0xd3, (uint64_t)value, 8);
}

static uint8_t *put_array(uint8_t *p, size_t size) {
    if (size < 16) return put_head(p, (uint8_t)(0x90 | size), 0, 0);
    return size <= UINT16_MAX ? put_head(p, 0xdc, size, 2) : put_head(p, 0xdd, size, 4);
}

static void pack_array(ad_bytes *b, size_t size) {
    uint8_t *p = reserve_bytes(b, NUMBER);

    if (p) set_end(b, put_array(p, size));
}

/* Begin a message with its number of fields and its id. */
static msgpack_packer begin_message(ad_bytes *b, int request, size_t fields) {
    uint8_t *p = reserve_bytes(b, 2 * NUMBER);
    msgpack_packer pk;

    if (p) set_end(b, put_unsigned(put_array(p, fields + 1), (uint64_t)request));
    msgpack_packer_init(&pk, b, append_packed);
    return pk;
}

static int get_status(const ad_bytes *b) { return b->failed ? AD_E_MEMORY : 0; }

static void pack_string(msgpack_packer *pk, const char *text) {
    size_t size = strlen(text);

    msgpack_pack_str(pk, size);
    if (size > 0) msgpack_pack_str_body(pk, text, size);
}

static void pack_scalar(msgpack_packer *pk, const ad_scalar *v) {
    switch (v->kind) {
    case AD_SCALAR_BOOL: v->as.b ? msgpack_pack_true(pk) : msgpack_pack_false(pk); break;
    case AD_SCALAR_INT: msgpack_pack_int64(pk, v->as.i); break;
    case AD_SCALAR_UINT: msgpack_pack_uint64(pk, v->as.u); break;
    case AD_SCALAR_FLOAT: msgpack_pack_double(pk, v->as.f); break;
    case AD_SCALAR_COMPLEX: msgpack_pack_ext_with_body(pk, v->as.c, sizeof v->as.c, EXT_COMPLEX); break;
    default: msgpack_pack_nil(pk); break;
    }
}

static void pack_scalars(msgpack_packer *pk, size_t n, const ad_scalar *values) {
    pack_array(pk->data, n);
    for (size_t i = 0; i < n; i++) pack_scalar(pk, &values[i]);
}

/* Write the strides. Those of dimensions of size 1 are never walked, and 0 stays within any buffer. */
static uint8_t *put_strides(uint8_t *p, const ad_desc *d) {
    p = put_array(p, d->ndim);
    for (int i = 0; i < d->ndim; i++) p = put_int(p, d->shape[i] == 1 ? 0 : d->strides[i]);
    return p;
}

static uint8_t *put_shape(uint8_t *p, const ad_desc *d) {
    p = put_array(p, d->ndim);
    for (int i = 0; i < d->ndim; i++) p = put_int(p, d->shape[i]);
    return p;
}

static void pack_desc(msgpack_packer *pk, const ad_desc *d) {
    const bool view = d->form == AD_VIEW, strided = view && !ad__is_contiguous(d);
    uint8_t *p = reserve_bytes(pk->data, (6 + 2 * (size_t)d->ndim) * NUMBER);

    if (!p) return;
    p = put_array(p, strided ? 5 : view ? 4 : 3);
    p = put_unsigned(p, d->buffer);
    p = put_unsigned(p, d->dtype);
    if (view) p = put_int(p, d->offset);
    p = d->form == AD_SIZED ? put_head(p, 0xc0, 0, 0) : put_shape(p, d);
    if (strided) p = put_strides(p, d);
    set_end(pk->data, p);
}

static void pack_operands(msgpack_packer *pk, int n, const ad_operand *operand) {
    pack_array(pk->data, (size_t)n);
    for (int i = 0; i < n; i++) {
        if (operand[i].is_scalar) pack_scalar(pk, &operand[i].scalar);
        else pack_desc(pk, &operand[i].desc);
    }
}

static void pack_op(msgpack_packer *pk, const ad_op *op) {
    uint8_t *p = reserve_bytes(pk->data, 2 * NUMBER);

    if (p) set_end(pk->data, put_unsigned(put_unsigned(p, op->row), op->loop));
    pack_operands(pk, op->nout, op->operand);
    pack_operands(pk, op->nin, op->operand + op->nout);
    pack_scalars(pk, op->nparam, op->param);
}

/* ---- client to server ---- */

/* Append a client's options: its token (NULL: none) and its process (0: not told). */
static void pack_client(msgpack_packer *pk, const char *token, uint64_t process) {
    msgpack_pack_map(pk, (token != NULL) + (process != 0));
    if (process != 0) {
        pack_string(pk, "process");
        msgpack_pack_uint64(pk, process);
    }
    if (!token) return;
    pack_string(pk, "token");
    pack_string(pk, token);
}

int ad__encode_hello(ad_bytes *b, uint64_t least, uint64_t greatest, uint64_t features, const char *client,
                     const char *token, uint64_t process) {
    msgpack_packer pk = begin_message(b, AD_REQ_HELLO, 5);

    msgpack_pack_uint64(&pk, least);
    msgpack_pack_uint64(&pk, greatest);
    msgpack_pack_uint64(&pk, features);
    pack_string(&pk, client);
    pack_client(&pk, token, process);
    return get_status(b);
}

int ad__encode_resume(ad_bytes *b, const uint64_t numbers[4], const uint8_t secret[AD_SECRET], const char *token,
                      uint64_t process) {
    msgpack_packer pk = begin_message(b, AD_REQ_RESUME, 6);

    for (int i = 0; i < 3; i++) msgpack_pack_uint64(&pk, numbers[i]);
    msgpack_pack_bin_with_body(&pk, secret, AD_SECRET);
    msgpack_pack_uint64(&pk, numbers[3]);
    pack_client(&pk, token, process);
    return get_status(b);
}

int ad__encode_fork(ad_bytes *b, uint64_t key, const uint8_t secret[AD_SECRET]) {
    msgpack_packer pk = begin_message(b, AD_REQ_FORK, 3);

    msgpack_pack_uint64(&pk, 0);
    msgpack_pack_uint64(&pk, key);
    msgpack_pack_bin_with_body(&pk, secret, AD_SECRET);
    return get_status(b);
}

int ad__encode_op(ad_bytes *b, const ad_op *op) {
    msgpack_packer pk = begin_message(b, op->opcode, 5);

    pack_op(&pk, op);
    return get_status(b);
}

int ad__encode_query(ad_bytes *b, uint64_t request, const ad_op *op) {
    msgpack_packer pk = begin_message(b, AD_REQ_QUERY, 6);

    msgpack_pack_uint64(&pk, request);
    pack_op(&pk, op);
    return get_status(b);
}

int ad__encode_new(ad_bytes *b, const ad_desc *d, bool zero) {
    msgpack_packer pk = begin_message(b, zero ? AD_REQ_NEW : AD_REQ_EMPTY, 1);

    pack_desc(&pk, d);
    return get_status(b);
}

int ad__encode_free(ad_bytes *b, size_t n, const uint64_t *ids) {
    uint8_t *p;

    begin_message(b, AD_REQ_FREE, 1);
    if (n > SIZE_MAX / NUMBER - 1 || !(p = reserve_bytes(b, (n + 1) * NUMBER))) return AD_E_MEMORY;
    p = put_array(p, n);
    for (size_t i = 0; i < n; i++) p = put_unsigned(p, ids[i]);
    set_end(b, p);
    return get_status(b);
}

int ad__encode_write(ad_bytes *b, uint64_t buffer, uint64_t offset) {
    msgpack_packer pk = begin_message(b, AD_REQ_WRITE, 2);

    msgpack_pack_uint64(&pk, buffer);
    msgpack_pack_uint64(&pk, offset);
    return get_status(b);
}

int ad__encode_read(ad_bytes *b, uint64_t request, const ad_desc *d) {
    msgpack_packer pk = begin_message(b, AD_REQ_READ, 2);

    msgpack_pack_uint64(&pk, request);
    pack_desc(&pk, d);
    return get_status(b);
}

int ad__encode_fetch(ad_bytes *b, uint64_t request, const ad_desc *d, uint64_t window, uint64_t offset) {
    msgpack_packer pk = begin_message(b, AD_REQ_FETCH, 4);

    msgpack_pack_uint64(&pk, request);
    pack_desc(&pk, d);
    msgpack_pack_uint64(&pk, window);
    msgpack_pack_uint64(&pk, offset);
    return get_status(b);
}

int ad__encode_numbers(ad_bytes *b, int opcode, size_t n, const uint64_t *fields) {
    msgpack_packer pk = begin_message(b, opcode, n);

    for (size_t i = 0; i < n; i++) msgpack_pack_uint64(&pk, fields[i]);
    return get_status(b);
}

int ad__encode_named(ad_bytes *b, int opcode, size_t n, const uint64_t *fields, size_t ntexts,
                     const char *const *texts) {
    msgpack_packer pk = begin_message(b, opcode, n + ntexts);

    for (size_t i = 0; i < n; i++) msgpack_pack_uint64(&pk, fields[i]);
    for (size_t i = 0; i < ntexts; i++) pack_string(&pk, texts[i]);
    return get_status(b);
}

int ad__encode_publish(ad_bytes *b, uint64_t request, const ad_desc *d, bool writable, const char *name,
                       const char *grant) {
    msgpack_packer pk = begin_message(b, AD_REQ_PUBLISH, 5);

    msgpack_pack_uint64(&pk, request);
    pack_desc(&pk, d);
    msgpack_pack_uint64(&pk, writable);
    pack_string(&pk, name);
    pack_string(&pk, grant);
    return get_status(b);
}

static int encode_number(ad_bytes *b, int opcode, uint64_t number) { return ad__encode_numbers(b, opcode, 1, &number); }

int ad__encode_sync(ad_bytes *b, uint64_t request) { return encode_number(b, AD_REQ_SYNC, request); }
int ad__encode_stat(ad_bytes *b, uint64_t request) { return encode_number(b, AD_REQ_STAT, request); }

/* ---- users' kernels ---- */

static void pack_texts(msgpack_packer *pk, size_t n, const char *const *texts) {
    msgpack_pack_array(pk, n);
    for (size_t i = 0; i < n; i++) pack_string(pk, texts[i]);
}

int ad__encode_build(ad_bytes *b, uint64_t request, uint64_t module, const char *source, size_t size, size_t noptions,
                     const char *const *options, size_t nnames, const char *const *names) {
    msgpack_packer pk = begin_message(b, AD_REQ_BUILD, 5);

    msgpack_pack_uint64(&pk, request);
    msgpack_pack_uint64(&pk, module);
    msgpack_pack_str(&pk, size);
    if (size > 0) msgpack_pack_str_body(&pk, source, size);
    pack_texts(&pk, noptions, options);
    pack_texts(&pk, nnames, names);
    return get_status(b);
}

int ad__encode_launch(ad_bytes *b, const ad_launch_text *l) {
    msgpack_packer pk = begin_message(b, AD_REQ_LAUNCH, 6);

    msgpack_pack_uint64(&pk, l->module);
    pack_string(&pk, l->kernel);
    msgpack_pack_array(&pk, AD_LAUNCH_FIXED + l->nparams);
    for (int i = 0; i < AD_LAUNCH_FIXED; i++) msgpack_pack_uint64(&pk, l->numbers[i]);
    for (size_t i = 0; i < l->nparams; i++) msgpack_pack_uint8(&pk, l->kind[i]);
    pack_operands(&pk, l->op->nout, l->op->operand);
    pack_operands(&pk, l->op->nin, l->op->operand + l->op->nout);
    msgpack_pack_array(&pk, l->nvalues);
    for (size_t i = 0; i < l->nvalues; i++) {
        msgpack_pack_bin(&pk, l->value[i].size);
        if (l->value[i].size > 0) msgpack_pack_bin_body(&pk, l->value[i].data, l->value[i].size);
    }
    return get_status(b);
}

int ad__encode_kernel_set(ad_bytes *b, uint64_t module, const char *kernel, int64_t shared, int64_t carveout,
                          int cooperative) {
    msgpack_packer pk = begin_message(b, AD_REQ_KERNEL_SET, 5);

    msgpack_pack_uint64(&pk, module);
    pack_string(&pk, kernel);
    msgpack_pack_uint64(&pk, shared < 0 ? 0 : (uint64_t)shared + 1);
    msgpack_pack_uint64(&pk, carveout < 0 ? 0 : (uint64_t)carveout + 1);
    msgpack_pack_uint64(&pk, cooperative < 0 ? 0 : cooperative ? 2 : 1);
    return get_status(b);
}

int ad__encode_kernel(ad_bytes *b, uint64_t request, uint64_t module, const char *kernel) {
    msgpack_packer pk = begin_message(b, AD_REQ_KERNEL, 3);

    msgpack_pack_uint64(&pk, request);
    msgpack_pack_uint64(&pk, module);
    pack_string(&pk, kernel);
    return get_status(b);
}

int ad__encode_global(ad_bytes *b, uint64_t request, uint64_t module, const char *name, uint64_t buffer) {
    msgpack_packer pk = begin_message(b, AD_REQ_GLOBAL, 4);

    msgpack_pack_uint64(&pk, request);
    msgpack_pack_uint64(&pk, module);
    pack_string(&pk, name);
    msgpack_pack_uint64(&pk, buffer);
    return get_status(b);
}

/* ---- server to client ---- */

int ad__encode_ack(ad_bytes *b, uint64_t done) { return encode_number(b, AD_REQ_ACK, done); }

int ad__encode_reply(ad_bytes *b, uint64_t request, uint64_t done, size_t n, const ad_scalar *values) {
    msgpack_packer pk = begin_message(b, AD_REQ_REPLY, 3);

    msgpack_pack_uint64(&pk, request);
    msgpack_pack_uint64(&pk, done);
    pack_scalars(&pk, n, values);
    return get_status(b);
}

int ad__encode_fail(ad_bytes *b, uint64_t request, uint64_t done, int code, uint64_t number, const char *name,
                    const char *text) {
    msgpack_packer pk = begin_message(b, AD_REQ_FAIL, 6);

    msgpack_pack_uint64(&pk, request);
    msgpack_pack_uint64(&pk, done);
    msgpack_pack_uint64(&pk, (uint64_t)-code);
    msgpack_pack_uint64(&pk, number);
    pack_string(&pk, name);
    pack_string(&pk, text);
    return get_status(b);
}

int ad__encode_bye(ad_bytes *b, int code, const char *text) {
    msgpack_packer pk = begin_message(b, AD_REQ_BYE, 2);

    msgpack_pack_uint64(&pk, (uint64_t)-code);
    pack_string(&pk, text);
    return get_status(b);
}

int ad__encode_resumed(ad_bytes *b, const uint8_t secret[AD_SECRET], uint64_t received) {
    msgpack_packer pk = begin_message(b, AD_REQ_RESUMED, 2);

    msgpack_pack_bin_with_body(&pk, secret, AD_SECRET);
    msgpack_pack_uint64(&pk, received);
    return get_status(b);
}

int ad__encode_welcome(ad_bytes *b, const ad_welcome *w) {
    msgpack_packer pk = begin_message(b, AD_REQ_WELCOME, 5);

    msgpack_pack_uint64(&pk, w->version);
    msgpack_pack_uint64(&pk, w->features);
    msgpack_pack_uint64(&pk, w->session);
    msgpack_pack_bin_with_body(&pk, w->secret, sizeof w->secret);
    msgpack_pack_map(&pk, AD__WELCOME_KEYS);
    for (int i = 0; i < AD__WELCOME_KEYS; i++) {
        const ad_welcome_key *key = &ad__welcome_keys[i];
        const char *member = (const char *)w + key->offset;
        uint64_t number;
        pack_string(&pk, key->name);
        if (key->size > 0) {
            pack_string(&pk, member);
        } else {
            memcpy(&number, member, sizeof number);
            msgpack_pack_uint64(&pk, number);
        }
    }
    return get_status(b);
}
