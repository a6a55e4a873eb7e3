/* Messages: encoding to and decoding from control blocks. */
#ifndef AD_PROTOCOL_MESSAGE_H
#define AD_PROTOCOL_MESSAGE_H

#include "protocol/frame.h"
#include "protocol/op.h"
#include "protocol/tables.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A growing run of bytes. After a failed allocation `failed` stays set, and appending does nothing. */
typedef struct ad_bytes {
    uint8_t *data;
    size_t size, capacity;
    bool failed;
} ad_bytes;
#define AD_BYTES_INIT \
    { 0 }
int ad__bytes_reserve(ad_bytes *b, size_t more); /* AD_E_MEMORY */
void ad__bytes_append(ad_bytes *b, const void *data, size_t size);
void ad__bytes_free(ad_bytes *b);

/* Text or bytes of a message. */
typedef struct ad_string {
    const char *data; /* not NUL-terminated */
    size_t size;
} ad_string;

/* ---- encoding: each appends one request to b; AD_E_MEMORY when b failed ---- */
/* token NULL: there is none; process 0: it is not told. */
int ad__encode_hello(ad_bytes *b, uint64_t least, uint64_t greatest, uint64_t features, const char *client,
                     const char *token, uint64_t process);
#define AD_SECRET 16          /* bytes of a secret */
#define AD_EXPORT_HANDLE 1u   /* flag of EXPORT: by a handle of CUDA, not by a descriptor */
#define AD_EXPORT_READONLY 2u /* flag of EXPORT: to be read only; the memory stays as it is */
#define AD_EXPORT_MESSAGE 64u /* bytes of the message on an export's socket */
#define AD_IMPORT_HANDLE 1u   /* flag of IMPORT: by a handle of CUDA, not by a descriptor */
#define AD_IMPORT_READONLY 2u /* flag of IMPORT: the buffer is not to be written */
#define AD_IMPORT_MESSAGE 64u /* bytes of the message that is ready on an import's socket */
#define AD_IMPORT_ALIGN 64u   /* alignment of an import's offset, as for elements in the server's own buffers */
int ad__encode_resume(ad_bytes *b, const uint64_t numbers[4], const uint8_t secret[AD_SECRET], const char *token,
                      uint64_t process);
int ad__encode_resumed(ad_bytes *b, const uint8_t secret[AD_SECRET], uint64_t received);
#define AD_FORK_KEY (UINT64_C(1) << 63) /* bit that is set in every key of a fork, and in no session's id */
int ad__encode_fork(ad_bytes *b, uint64_t key, const uint8_t secret[AD_SECRET]);
int ad__encode_op(ad_bytes *b, const ad_op *op);                      /* UFUNC, REDUCE, CALL */
int ad__encode_query(ad_bytes *b, uint64_t request, const ad_op *op); /* QUERY */
int ad__encode_new(ad_bytes *b, const ad_desc *d, bool zero);
int ad__encode_free(ad_bytes *b, size_t n, const uint64_t *ids);
int ad__encode_write(ad_bytes *b, uint64_t buffer, uint64_t offset);
int ad__encode_read(ad_bytes *b, uint64_t request, const ad_desc *d);
int ad__encode_sync(ad_bytes *b, uint64_t request);
int ad__encode_stat(ad_bytes *b, uint64_t request);
/* Append a request whose fields are all unsigned numbers: STREAM ... LOAD, MODULE_DROP, WAIT ... DEVICE. */
int ad__encode_numbers(ad_bytes *b, int opcode, size_t n, const uint64_t *fields);
int ad__encode_fetch(ad_bytes *b, uint64_t request, const ad_desc *d, uint64_t window, uint64_t offset);
/* A launch of a kernel, with the fields of LAUNCH. */
#define AD_LAUNCH_FIXED 7 /* numbers of a launch before the kinds of its parameters */

/* The bytes of a launch that a kernel's parameter takes. The last two: a value that begins with the address of an
 * array. */
enum { AD_KIND_WRITTEN, AD_KIND_READ, AD_KIND_VALUE, AD_KIND_INSIDE_WRITTEN, AD_KIND_INSIDE_READ, AD_KINDS };
#define AD_INSIDE 8 /* bytes of the address */
/* The feature of servers that know the last two, beside those of base.h. */
#define AD_FEATURE_INSIDE 8u

typedef struct ad_launch_text {
    uint64_t module;
    const char *kernel;
    uint64_t numbers[AD_LAUNCH_FIXED]; /* grid, block, dynamic shared memory */
    size_t nparams;                    /* parameters of the kernel */
    const uint8_t *kind;               /* kind of each, an AD_KIND_... */
    const ad_op *op;                   /* nout written arrays, nin read arrays */
    const ad_string *value;            /* the values in order */
    size_t nvalues;
} ad_launch_text;
int ad__encode_launch(ad_bytes *b, const ad_launch_text *launch);
int ad__encode_build(ad_bytes *b, uint64_t request, uint64_t module, const char *source, size_t size, size_t noptions,
                     const char *const *options, size_t nnames, const char *const *names);
/* Append KERNEL_SET. Negative numbers leave a property as it is. */
int ad__encode_kernel_set(ad_bytes *b, uint64_t module, const char *kernel, int64_t shared, int64_t carveout,
                          int cooperative);
int ad__encode_kernel(ad_bytes *b, uint64_t request, uint64_t module, const char *kernel);
int ad__encode_global(ad_bytes *b, uint64_t request, uint64_t module, const char *name, uint64_t buffer);
/* Append a request whose fields are unsigned numbers and then strings: ATTACH_NAME, UNPUBLISH. */
int ad__encode_named(ad_bytes *b, int opcode, size_t n, const uint64_t *fields, size_t ntexts,
                     const char *const *texts);
int ad__encode_publish(ad_bytes *b, uint64_t request, const ad_desc *d, bool writable, const char *name,
                       const char *grant);
int ad__encode_reply(ad_bytes *b, uint64_t request, uint64_t done, size_t n, const ad_scalar *values);
int ad__encode_fail(ad_bytes *b, uint64_t request, uint64_t done, int code, uint64_t number, const char *name,
                    const char *text); /* code: negative status */
int ad__encode_ack(ad_bytes *b, uint64_t done);
int ad__encode_bye(ad_bytes *b, int code, const char *text);

/* The server's part of the welcome. */
typedef struct ad_welcome {
    uint64_t version, features, session;
    uint8_t secret[16];
    uint64_t window_ops, window_bytes, max_payload, max_control, max_buffers; /* limits */
    char backend[16];                                                         /* "cpu", "cuda" */
    uint64_t devices;                                                         /* number of devices */
    uint64_t memory;                                                          /* bytes of memory of device 0 */
    char device_name[64];
    char server[64];    /* program and version */
    uint64_t pid;       /* process id of the front */
    uint64_t resume;    /* ms that the session waits for its client after the connection is gone; 0: it does not */
    uint64_t instance;  /* number of this run of the server; each start has another one */
    char name[64];      /* the server's name among its peers; "": it has none */
    char principal[64]; /* who the client is to the server: "uid:1000" */
    char peers[256];    /* names of the servers that it fetches arrays from, with commas between */
} ad_welcome;
int ad__encode_welcome(ad_bytes *b, const ad_welcome *w);

/* ---- decoding ---- */
#define AD_FACTS_OPERANDS 6 /* most operands of an operation that may come again */

/* Facts of an operation that comes again, which depend on none of its buffers, offsets and scalars. Each is written
 * down by the function that finds it out. */
typedef struct ad_facts {
    int64_t cost, device_cost; /* estimated ns; 0: not known */
    bool checked;              /* kind, types and shapes are right, and the operation is not too long */
    /* Of each operand. extent: where its bytes begin and end, from its offset on; of a new array they begin at 0. */
    struct {
        int64_t low, high;
        uint8_t unaligned; /* bits that its offset must not have */
        bool known;
    } extent[AD_FACTS_OPERANDS];
} ad_facts;

/* One checked request. Members that its row does not use are 0; pointers point into the reader's arena. */
typedef struct ad_message {
    uint8_t opcode;
    const ad_request_row *row;
    uint64_t u[8];  /* unsigned fields in order; the list of FREE is in ids. For HELLO and RESUME the next one is the
                       client's process, 0: not told */
    ad_string s[2]; /* string and bytes fields; for HELLO and RESUME the second is the token, size 0: none */
    uint64_t *ids;  /* the list of unsigned numbers */
    size_t nids;
    struct {
        ad_string *item; /* items, each 16-byte aligned */
        size_t n;
    } list[2];         /* lists of strings and bytes in order */
    ad_scalar *values; /* REPLY: its values */
    size_t nvalues;
    ad_operand operand;  /* NEW, READ, FETCH, PUBLISH: the description */
    ad_op op;            /* UFUNC, REDUCE, CALL, QUERY; LAUNCH: its arrays */
    ad_welcome *welcome; /* WELCOME */
    ad_facts *facts;     /* of an operation that may come again, until the next message is read; NULL: none */
    size_t size;         /* bytes of the message */
} ad_message;

/* A reader of the requests of control blocks, one after another. */
typedef struct ad_reader ad_reader;
int ad__reader_new(ad_reader **out); /* AD_E_MEMORY; one reader serves many blocks */
void ad__reader_free(ad_reader *r);
/* Let the reader recognise operations that come again (known.h). AD_E_MEMORY. */
int ad__reader_remember(ad_reader *r);
/* Begin a block and scan it; data must stay until its last request is read. AD_E_PROTOCOL. */
int ad__reader_begin(ad_reader *r, const uint8_t *data, size_t size, ad_fault *fault);
/* Read the next request. 1: *m is set, with its parts in the arena; 0: there is no more; AD_E_PROTOCOL, AD_E_MEMORY.
 * Fields are checked against the row, and descriptions for their form (ndim, dtype, lengths), not yet against a
 * buffer. allowed: mask of classes, AD_BIT(AD_CLASS_*); requests of other classes give AD_E_PROTOCOL. */
int ad__reader_next(ad_reader *r, ad_arena *arena, uint32_t allowed, ad_message *m, ad_fault *fault);

/* Describe a message in one line for AD_TRACE and the log: "ufunc add float32 -> #7 f4[16] <- #5 f4[16], 2.5". It is
 * cut at size. */
void ad__message_text(const ad_message *m, char *out, size_t size);
/* Requests of a session that a trace has seen, and whose replies it must not show (AD_R_SECRET_REPLY). */
typedef struct ad_secret_requests {
    uint64_t first, last; /* ids; 0: there is none */
} ad_secret_requests;
/* Remember such a request; take the values out of a reply to one. Messages are given in the order of the trace. */
void ad__message_hide(ad_message *m, ad_secret_requests *secret);

#ifdef __cplusplus
}
#endif
#endif
