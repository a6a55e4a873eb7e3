/* The ledger: shared memory in which a worker keeps all that another process needs to go on where it ended.
 *
 * arrayd holds its descriptor, as it holds those of slabs. What is in it holds together at any instant, because the
 * worker may be killed at any: everything hangs from the head, by offsets; a pointer is stored after what it points at;
 * and what changes together is written aside first, and takes effect with one store. The bytes that come from clients
 * and that go to them lie here from the beginning, so writing them down costs nothing.
 *
 * Only the memory is here; survival.h has what a session writes, recovery.c what is made of it. */
#ifndef AD_SERVER_LEDGER_H
#define AD_SERVER_LEDGER_H

#include "protocol/desc.h"
#include "server/common/channel.h"

#define AD_LEDGER_ADDRESSES (64ull << 30) /* reserved; memory is what has been written to */
#define AD_LEDGER_MAGIC 0x7265676465647261u
#define AD_LEDGER_VERSION 1

/* An offset into the ledger; 0: nothing. */
typedef uint64_t ad_at;

typedef enum ad_ledger_kind {
    AD_LEDGER_NONE,
    AD_LEDGER_BUFFER,
    AD_LEDGER_STREAM,
    AD_LEDGER_EVENT,
    AD_LEDGER_WINDOW
} ad_ledger_kind;

/* What a session has under an id. */
typedef struct ad_ledger_row {
    uint32_t kind;
    uint16_t device;
    uint8_t high, timed;      /* a stream; an event */
    uint8_t readonly, common; /* a buffer: published by somebody; to be written by all who hold it */
    uint8_t shared, fleeting; /* others may have the same memory; it is a module's, and goes with the worker */
    uint64_t id, size;
    uint64_t slab, offset, block; /* a buffer's memory: block bytes of a slab; slab 0: none */
    ad_at poison;                 /* an ad_ledger_poison */
    uint64_t writing;             /* the operation that last began to change it where it is */
} ad_ledger_row;

typedef struct ad_ledger_poison {
    int32_t code;
    uint32_t unused;
    uint64_t number;
    char name[32], text[AD_FAULT_TEXT];
} ad_ledger_poison;

/* Rows of a session, by their places. */
typedef struct ad_ledger_table {
    uint64_t capacity;
    ad_ledger_row row[];
} ad_ledger_table;

/* Rows that take effect together. */
typedef struct ad_ledger_log {
    uint64_t capacity;
    struct ad_ledger_entry {
        uint64_t place;
        ad_ledger_row row;
    } entry[];
} ad_ledger_log;

/* How far a session is: everything before, nothing behind. */
typedef struct ad_ledger_state {
    uint64_t frame,
        used; /* of the client's stream: where the frame at hand begins, executed bytes of its control block */
    uint64_t operations, bytes;    /* executed; bytes of frames done with */
    uint64_t appended;             /* to the server's stream */
    uint64_t read;                 /* bytes of the read at hand that are among these */
    uint64_t module;               /* the greatest id of one */
    uint64_t stream, buffer_limit; /* of what comes next: the stream plus 1, 0: the default; as set by the client */
    ad_at pending;                 /* the failure that waits for the next synchronisation */
    ad_at log;                     /* what is to be put into the table ... */
    uint64_t entries;              /* ... that many */
} ad_ledger_state;

/* A block of bytes of a stream. */
typedef struct ad_ledger_block {
    ad_at next;
    uint64_t base, size;
    ad_at data; /* of the first byte */
} ad_ledger_block;

typedef struct ad_ledger_session {
    ad_at next;
    uint64_t id, process, alive;
    char who[AD_PRINCIPAL_SIZE], client[AD_FAULT_TEXT];
    ad_grants grants;
    uint8_t secret[16], offered_secret[16];
    uint64_t offered;
    uint64_t lives;   /* workers that have begun with this state */
    uint64_t loading; /* a module is being set up, which runs code of the user */
    uint64_t writing; /* the last operation that a row says it of, and its name */
    char name[32];
    uint64_t fragile; /* what another worker would make of this is not known to be right */
    ad_ledger_state state[2];
    uint64_t current; /* which of the two */
    ad_at table;
    uint64_t received;   /* bytes of the client's stream */
    ad_at input, output; /* the first blocks of what is still needed of it, and of the server's */
} ad_ledger_session;

/* A capability or a name, and the memory that it means. */
typedef struct ad_ledger_holder {
    uint64_t is_name;
    char who[AD_PRINCIPAL_SIZE];
    ad_ledger_row memory;
    uint64_t half[2], uses, owner; /* a capability; owner: its session, 0: it has gone */
    int64_t expires, linger;
    char name[256]; /* a name */
    ad_at grant;    /* text with its size before it */
    uint8_t writable, column_major, dtype, ndim;
    int64_t shape[AD_MAX_NDIM];
} ad_ledger_holder;

/* Holders by their places. */
typedef struct ad_ledger_index {
    uint64_t capacity;
    ad_at holder[];
} ad_ledger_index;

typedef struct ad_ledger_head {
    uint64_t magic, version;
    uint64_t number; /* of the server, as capabilities know it */
    ad_at sessions, index;
    char why[AD_FAULT_TEXT]; /* what the worker died of, if it could say */
} ad_ledger_head;

typedef struct ad_ledger ad_ledger;

int ad__ledger_open(ad_ledger **out, ad_fault *fault); /* AD_E_MEMORY, AD_E_SYSTEM */
void ad__ledger_close(ad_ledger *l);                   /* NULL is allowed */
int ad__ledger_descriptor(const ad_ledger *l);         /* the ledger's */
ad_ledger_head *ad__ledger_head(const ad_ledger *l);

/* Memory, aligned to 16 bytes; l NULL: any memory. NULL: there is none. Any thread. */
void *ad__ledger_alloc(ad_ledger *l, size_t size);
void ad__ledger_free(ad_ledger *l, void *p); /* NULL is allowed */
ad_at ad__ledger_at(const ad_ledger *l, const void *p);
void *ad__ledger_get(const ad_ledger *l, ad_at at); /* NULL for 0 */

/* Put a holder, which is the ledger's from here on, at a place of its own. 0: no memory. */
uint32_t ad__ledger_hold(ad_ledger *l, ad_ledger_holder *h);
/* Take it off, and free it. place 0: nothing. */
void ad__ledger_release(ad_ledger *l, uint32_t place);
ad_ledger_holder *ad__ledger_holder(const ad_ledger *l, uint32_t place); /* NULL for 0 */

/* Store a number that makes what was written before part of the ledger. */
static inline void ad__ledger_store(uint64_t *to, uint64_t value) { __atomic_store_n(to, value, __ATOMIC_RELEASE); }

#endif
