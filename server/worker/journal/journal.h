/* The journal: shared memory in which a worker keeps all that another process needs to go on where it ended.
 *
 * arrayd holds its descriptor, as it holds those of slabs. What is in it holds together at any instant, because the
 * worker may be killed at any: everything hangs from the head, by offsets; a pointer is stored after what it points at;
 * and what changes together is written aside first, and takes effect with one store. The bytes that come from clients
 * and that go to them lie here from the beginning, so writing them down costs nothing.
 *
 * Only the memory is here; checkpoint.h has what a session writes, journal/recover/recover.c what is made of it.
 */
#ifndef AD_SERVER_WORKER_JOURNAL_JOURNAL_H
#define AD_SERVER_WORKER_JOURNAL_JOURNAL_H

#include <stdio.h>

#include "protocol/desc.h"
#include "protocol/message.h"
#include "server/common/channel.h"
#include "protocol/tls/digest.h"

#define AD_JOURNAL_ADDRESSES (64ull << 30) /* reserved; memory is what has been written to */
#define AD_JOURNAL_MAGIC 0x6c616e72756f6a61u
#define AD_JOURNAL_VERSION 7
#define AD_JOURNAL_REUSED (UINT64_C(1) << 63) /* in ad_journal_row.writing: something else is there, or may be */
#define AD_JOURNAL_CHECKPOINTS 3
#define AD_OFFERS 4 /* secrets that a client may go on with, of those that it has not shown yet */

/* An offset into the journal; 0: nothing. */
typedef uint64_t ad_at;

typedef enum ad_journal_kind {
    AD_JOURNAL_NONE,
    AD_JOURNAL_BUFFER,
    AD_JOURNAL_STREAM,
    AD_JOURNAL_EVENT,
    AD_JOURNAL_WINDOW,
    AD_JOURNAL_MODULE
} ad_journal_kind;

/* What memory is that another worker cannot have. */
typedef enum ad_fleeting { AD_FLEETING_VARIABLE = 1, AD_FLEETING_IMPORT } ad_fleeting;

/* What a session has under an id. */
typedef struct ad_journal_row {
    uint32_t kind;
    uint16_t device;
    uint8_t high, timed;      /* a stream; an event */
    uint8_t readonly, common; /* a buffer: published by somebody; to be written by all who hold it */
    uint8_t shared, fleeting; /* others may have the same memory; it goes with the worker, an ad_fleeting or 0 */
    uint8_t lost;             /* a module: why another worker cannot have it, an ad_module_loss */
    uint8_t open;             /* a buffer: other processes may have its memory, and write there */
    uint64_t id, size;
    union {
        struct {
            uint64_t slab, offset,
                block; /* a buffer's memory: block bytes of a slab, of host memory or not; slab 0: none */
        };
        uint64_t descriptor; /* a window's, as its client has passed it */
        struct {
            ad_at recipe, settings; /* a module: an ad_journal_recipe, an ad_journal_settings or 0 */
        };
    };
    uint64_t moves;   /* how often a buffer had been moved when this was written ... */
    ad_at elsewhere;  /* ... and where it is if it has been since: an ad_journal_place */
    ad_at poison;     /* an ad_journal_poison */
    uint64_t writing; /* the operation that last began to change it where it is; the last member */
} ad_journal_row;

/* Where the bytes of a buffer are once it has been moved so many times. */
typedef struct ad_journal_place {
    uint64_t id, moves;
    uint64_t slab, offset, block;
} ad_journal_place;

typedef struct ad_journal_poison {
    int32_t code;
    uint32_t unused;
    uint64_t number;
    char name[32], text[AD_FAULT_TEXT];
} ad_journal_poison;

/* What a module is made from. It never changes. */
typedef struct ad_journal_recipe {
    uint64_t users;               /* rows, and the module: counted by the process that wrote it */
    uint8_t hash[AD_SHA256_SIZE]; /* of all behind it */
    uint32_t source, bytes;       /* bytes of the source; of the text */
    uint32_t noptions, nnames;
    char text[]; /* source, options and name expressions, each ended by a NUL */
} ad_journal_recipe;

/* What has been set of a module's kernels. */
typedef struct ad_journal_settings {
    uint64_t count, bytes;
    uint64_t setting[]; /* ad_journal_setting, each on from where the one before ends */
} ad_journal_settings;

typedef struct ad_journal_setting {
    int64_t shared, carveout; /* negative: not set */
    uint32_t cooperative, size;
    char name[]; /* size bytes, up to a multiple of eight */
} ad_journal_setting;

/* Rows of a session, by their places. */
typedef struct ad_journal_table {
    uint64_t capacity;
    ad_journal_row row[];
} ad_journal_table;

/* Rows that take effect together. */
typedef struct ad_journal_log {
    uint64_t capacity;
    struct ad_journal_entry {
        uint64_t place;
        ad_journal_row row;
    } entry[];
} ad_journal_log;

/* How far a session is: everything before, nothing behind. */
typedef struct ad_journal_checkpoint {
    uint64_t frame,
        used; /* of the client's stream: where the frame at hand begins, executed bytes of its control block */
    uint64_t operations, bytes;       /* executed; bytes of frames done with */
    uint64_t appended;                /* to the server's stream */
    uint64_t answered, answered_used; /* as frame and used: what comes before has its answers among these bytes ... */
    uint64_t read;                    /* ... as the read there has so many of its */
    uint64_t told; /* failures that waited for a synchronisation, and that answers to what is not executed have told */
    uint64_t stream, buffer_limit; /* of what comes next: the stream plus 1, 0: the default; as set by the client */
    uint64_t descriptors;          /* so many that the client has passed have been asked for */
    ad_at pending;                 /* the failure that waits for the next synchronisation */
    ad_at log;                     /* what is to be put into the table ... */
    uint64_t entries;              /* ... that many */
} ad_journal_checkpoint;

/* A block of bytes of a stream. */
typedef struct ad_journal_block {
    ad_at next;
    uint64_t base, size;
    ad_at data; /* of the first byte */
} ad_journal_block;

/* Secrets that have been sent to a session's client: the last of them, number n at n % AD_OFFERS. */
typedef struct ad_offers {
    uint8_t secret[AD_OFFERS][AD_SECRET];
    uint64_t made, over; /* so many have been sent; the first so many are worth nothing any more */
} ad_offers;

/* Messages of a session, by their places in its client's stream, with one of which at hand workers have ended in a row
 * (engine/blame.h). */
typedef struct ad_blame {
    uint64_t first, last;    /* 0: there are none */
    uint64_t crashes, kills; /* workers that ended by themselves; that were killed from outside */
    uint64_t certain;        /* it is one message, and the last worker had nothing else at hand */
} ad_blame;

typedef struct ad_journal_session {
    ad_at next;
    uint64_t id, process, alive;
    uint64_t key; /* of the fork that began it; 0: it is none's */
    char who[AD_PRINCIPAL_SIZE], client[AD_FAULT_TEXT];
    ad_grants grants;
    uint8_t secret[AD_SECRET];
    ad_offers offers;
    uint64_t lives;   /* workers that have begun with this state */
    uint64_t at_hand; /* twice the place of the last message that was begun and has not ended, plus 1 if it is that one
                         and none before it; 0: there is none */
    uint64_t guilty;  /* the thread that executed this got the signal that ended the worker */
    ad_blame blame;
    uint64_t loading;  /* the id of a module that is being set up, which runs code of the user; 0: none */
    uint64_t launched; /* the last operation that was a user's kernel */
    uint64_t writing;  /* the last operation that a row says it of, and its name */
    char name[32];
    uint64_t uncertain; /* what another worker would make of this is not known to be right */
    ad_journal_checkpoint checkpoint[AD_JOURNAL_CHECKPOINTS];
    uint64_t current; /* which of them */
    ad_at table;
    uint64_t received;   /* bytes of the client's stream */
    ad_at input, output; /* the first blocks of what is still needed of it, and of the server's */
} ad_journal_session;

/* A capability or a name, and the memory that it means. */
typedef struct ad_journal_holder {
    uint64_t is_name;
    char who[AD_PRINCIPAL_SIZE];
    ad_journal_row memory;
    uint64_t half[2], uses, owner; /* a capability; owner: its session, 0: it has gone */
    int64_t expires, linger;
    char name[256]; /* a name */
    ad_at grant;    /* text with its size before it */
    uint8_t writable, column_major, dtype, ndim;
    int64_t shape[AD_MAX_NDIM];
} ad_journal_holder;

/* Holders by their places. */
typedef struct ad_journal_index {
    uint64_t capacity;
    ad_at holder[];
} ad_journal_index;

typedef struct ad_journal_head {
    uint64_t magic, version;
    uint64_t number; /* of the server, as capabilities know it */
    uint64_t forked; /* sessions that forks have begun so far */
    ad_at sessions, index;
    char why[AD_FAULT_TEXT]; /* what the worker died of, if it could say */
} ad_journal_head;

typedef struct ad_journal ad_journal;

#define AD_JOURNAL_LAYOUT_SIZE 96
/* What two programs have in common of which one can read the other's journal, as text without blanks. */
static inline void ad__journal_layout(char out[AD_JOURNAL_LAYOUT_SIZE]) {
    snprintf(out, AD_JOURNAL_LAYOUT_SIZE, "%d.%zu.%zu.%zu.%zu.%zu", AD_JOURNAL_VERSION, sizeof(ad_journal_head),
             sizeof(ad_journal_session), sizeof(ad_journal_row), sizeof(ad_journal_poison), sizeof(ad_journal_holder));
}

int ad__journal_open(ad_journal **out, ad_fault *fault); /* AD_E_MEMORY, AD_E_SYSTEM */
void ad__journal_close(ad_journal *l);                   /* NULL is allowed */
int ad__journal_descriptor(const ad_journal *l);         /* the journal's */
ad_journal_head *ad__journal_head(const ad_journal *l);

/* Memory, aligned to 16 bytes; l NULL: any memory. NULL: there is none. Any thread. */
void *ad__journal_alloc(ad_journal *l, size_t size);
void ad__journal_free(ad_journal *l, void *p); /* NULL is allowed */
ad_at ad__journal_at(const ad_journal *l, const void *p);
void *ad__journal_get(const ad_journal *l, ad_at at); /* NULL for 0 */

/* Put a holder, which is the journal's from here on, at a place of its own. 0: no memory. */
uint32_t ad__journal_hold(ad_journal *l, ad_journal_holder *h);
/* Take it off, and free it. place 0: nothing. */
void ad__journal_release(ad_journal *l, uint32_t place);
ad_journal_holder *ad__journal_holder(const ad_journal *l, uint32_t place); /* NULL for 0 */

/* The place is that of the row's buffer, and later than what the row itself says. */
static inline bool ad__journal_is_later(const ad_journal_place *p, const ad_journal_row *row) {
    return row->kind == AD_JOURNAL_BUFFER && p->id == row->id && p->moves > row->moves;
}

/* Say in the row where the buffer was moved to last: then nobody else had its memory. */
static inline void ad__journal_settle(ad_journal_row *row, const ad_journal_place *p) {
    if (!p || !ad__journal_is_later(p, row)) return;
    row->slab = p->slab;
    row->offset = p->offset;
    row->block = p->block;
    row->moves = p->moves;
    row->shared = row->common = 0;
}

/* Store a number that makes what was written before part of the journal. */
static inline void ad__journal_store(uint64_t *to, uint64_t value) { __atomic_store_n(to, value, __ATOMIC_RELEASE); }

#endif
