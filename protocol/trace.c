/* Describing a message in one line for traces: ad__message_text. */
#include "protocol/desc.h"
#include "protocol/infer.h"
#include "protocol/message.h"
#include "protocol/text.h"
#include "protocol/welcome.h"

#include <inttypes.h>
#include <string.h>

enum { MOST_ITEMS = 16 }; /* items of a list that are shown before "..." */

static void add_dtype(ad_text_buffer *t, int dtype) {
    if (dtype >= AD_NDTYPE) ad__text_add(t, "?");
    else if (dtype == AD_BFLOAT16) ad__text_add(t, "bf2"); /* f2 is float16 */
    else ad__text_add(t, "%c%d", ad__dtypes[dtype].kind, ad__dtypes[dtype].size);
}

/* Append an array as "#5 f4[16]"; a view that is not a whole contiguous buffer also has @offset and {strides}. */
static void add_desc(ad_text_buffer *t, const ad_desc *d) {
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

static void add_scalar(ad_text_buffer *t, const ad_scalar *v) {
    switch (v->kind) {
    case AD_SCALAR_BOOL: ad__text_add(t, v->as.b ? "true" : "false"); break;
    case AD_SCALAR_INT: ad__text_add(t, "%" PRId64, v->as.i); break;
    case AD_SCALAR_UINT: ad__text_add(t, "%" PRIu64, v->as.u); break;
    case AD_SCALAR_FLOAT: ad__text_add(t, "%.17g", v->as.f); break;
    case AD_SCALAR_COMPLEX: ad__text_add(t, "(%.17g%+.17gj)", v->as.c[0], v->as.c[1]); break;
    default: ad__text_add(t, "nil"); break;
    }
}

static void add_operand(ad_text_buffer *t, const ad_operand *x) {
    if (x->is_scalar) add_scalar(t, &x->scalar);
    else add_desc(t, &x->desc);
}

/* Append a string of the other end as printable ASCII, as it may go to a terminal or a log. */
static void add_string(ad_text_buffer *t, const ad_string *s) {
    ad__text_add(t, "\"");
    for (size_t i = 0; i < s->size && t->used + 1 < t->size; i++) {
        unsigned char byte = (unsigned char)s->data[i];
        ad__text_add(t, byte < ' ' || byte > '~' || byte == '"' || byte == '\\' ? "\\x%02x" : "%c", byte);
    }
    ad__text_add(t, "\"");
}

/* Append the first bytes of a value, whose type is unknown here. */
static void add_bytes(ad_text_buffer *t, const ad_string *value) {
    for (size_t i = 0; i < value->size && i < MOST_ITEMS; i++) ad__text_add(t, "%02x", (unsigned char)value->data[i]);
    if (value->size > MOST_ITEMS) ad__text_add(t, "...");
}

static void add_welcome(ad_text_buffer *t, const ad_welcome *w) {
    for (int k = 0; k < AD__WELCOME_KEYS; k++) {
        const ad_welcome_key *key = &ad__welcome_keys[k];
        const char *member = (const char *)w + key->offset;
        uint64_t number;

        ad__text_add(t, "%s%s ", k == 0 ? "" : " ", key->name);
        if (key->size > 0) {
            add_string(t, &(ad_string){member, strlen(member)});
            continue;
        }
        memcpy(&number, member, sizeof number);
        ad__text_add(t, "%" PRIu64, number);
    }
}

/* ---- fields, as their row declares them ---- */

typedef struct walk {
    const ad_message *m;
    ad_text_buffer *text;
    const char *word; /* of the field at hand */
    int length;       /* of the word */
    int nu, ns, nlists;
} walk;

static bool is_word(const walk *w, const char *word) {
    return (int)strlen(word) == w->length && strncmp(w->word, word, (size_t)w->length) == 0;
}

/* Append what stands before a value: the field's word for the first one of a list, and a separator for the others.
 * Signs stand next to their values. */
static void add_word(walk *w, size_t i, const char *separator) {
    const char *before = is_word(w, "@") || is_word(w, ":") || is_word(w, ";") ? "" : " ";
    const char *behind = is_word(w, "@") || is_word(w, "#") || is_word(w, "?") ? "" : " ";

    if (i > 0) ad__text_add(w->text, "%s", separator);
    else if (is_word(w, ".")) ad__text_add(w->text, " ");
    else ad__text_add(w->text, "%s%.*s%s", before, w->length, w->word, behind);
}

/* Append the number of a row or type by its name. */
static void add_number(walk *w, uint64_t number) {
    const ad_op *op = &w->m->op;

    if (is_word(w, "row")) ad__text_add(w->text, " %s", ad__op_name(op));
    else if (is_word(w, "loop")) ad__text_add(w->text, " %s", op->loop < AD_NDTYPE ? ad__dtypes[op->loop].name : "?");
    else {
        add_word(w, 0, "");
        ad__text_add(w->text, "%" PRIu64, number);
    }
}

static void add_field(walk *w, char letter) {
    const ad_message *m = w->m;
    const bool shown = !is_word(w, "-");
    const ad_string *s = letter == 's' || letter == 't' || letter == 'k' ? &m->s[w->ns++] : NULL;
    const uint64_t number = letter == 'u' ? m->u[w->nu++] : 0;

    if (letter == 'k' || !shown) return;
    if (letter == 'u') {
        add_number(w, number);
        return;
    }
    add_word(w, 0, "");
    if (letter == 't') ad__text_add(w->text, "%zu bytes", s->size);
    else if (s) add_string(w->text, s);
    else if (letter == 'm' && m->welcome) add_welcome(w->text, m->welcome);
    else if (letter != 'm') add_operand(w->text, &m->operand);
}

static size_t count_items(const walk *w, char letter) {
    const ad_message *m = w->m;

    switch (letter) {
    case 'u': return m->nids;
    case 'F': return m->op.nout;
    case 'D': return m->op.nin;
    case 'v': return m->values ? m->nvalues : m->op.nparam;
    default: return m->list[w->nlists].n;
    }
}

static void add_item(walk *w, char letter, size_t i) {
    const ad_message *m = w->m;

    switch (letter) {
    case 'u': ad__text_add(w->text, "%" PRIu64, m->ids[i]); break;
    case 'F': add_operand(w->text, &m->op.operand[i]); break;
    case 'D': add_operand(w->text, &m->op.operand[m->op.nout + i]); break;
    case 'v': add_scalar(w->text, m->values ? &m->values[i] : &m->op.param[i]); break;
    case 's': add_string(w->text, &m->list[w->nlists].item[i]); break;
    default: /* y */ add_bytes(w->text, &m->list[w->nlists].item[i]); break;
    }
}

static void add_list(walk *w, char letter) {
    const size_t n = count_items(w, letter);
    const char *separator = is_word(w, "#") ? " #" : letter == 'u' || letter == 's' ? " " : ", ";

    for (size_t i = 0; i < n && i < MOST_ITEMS && !is_word(w, "-"); i++) {
        add_word(w, i, separator);
        add_item(w, letter, i);
    }
    if (n > MOST_ITEMS) ad__text_add(w->text, "%s... %zu in all", *separator == ',' ? ", " : " ", n);
    if (letter == 's' || letter == 'y') w->nlists++;
}

void ad__message_text(const ad_message *m, char *out, size_t size) {
    ad_text_buffer t = {out, size, 0};
    walk w = {.m = m, .text = &t};

    ad__text_add(&t, "%s", m->row ? m->row->name : "?");
    if (!m->row) return;
    w.word = m->row->words;
    for (const char *l = m->row->fields; *l != '\0'; l += *l == '[' ? 3 : 1) {
        w.length = (int)strcspn(w.word, " ");
        if (*l == '[') add_list(&w, l[1]);
        else add_field(&w, *l);
        w.word += w.length + (w.word[w.length] == ' ');
    }
}

void ad__message_hide(ad_message *m, ad_secret_requests *secret) {
    if (m->row->flags & AD_R_SECRET_REPLY) {
        if (secret->first == 0 || m->u[0] < secret->first) secret->first = m->u[0];
        if (m->u[0] > secret->last) secret->last = m->u[0];
    } else if (m->nvalues > 0 && m->u[0] >= secret->first && m->u[0] <= secret->last) {
        m->nvalues = 0;
        if (m->u[0] == secret->last) *secret = (ad_secret_requests){0};
    }
}
