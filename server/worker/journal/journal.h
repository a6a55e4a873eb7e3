/* The journal: shared memory that a worker's successor recovers from.
 *
 *     ad_journal_head ──▶ session ──▶ session ──▶ ...
 *         │                  ├── checkpoint[3]   committed: checkpoint[current]
 *         │                  ├── table           rows: buffers, streams, events, windows, modules
 *         │                  ├── log             rows of the last checkpoint, to be copied into the table
 *         │                  └── input, output   blocks of bytes from the client and to it
 *         └──▶ index ──▶ holders: names and capabilities
 *
 * arrayd holds the journal's descriptor, as it holds those of slabs. The worker may be killed at any time, so the
 * journal is consistent at any time. All is reached from the head, by offsets. An offset is stored after what it
 * points to. Changes that belong together are written to a log, and one store commits them. Bytes from clients and
 * to clients are in the journal from the beginning, so journaling them costs nothing.
 *
 * This file has the memory and its layout. checkpoint.h says what a session writes, and recover/recover.c
 * what a successor makes of it. */
#ifndef AD_SERVER_WORKER_JOURNAL_JOURNAL_H
#define AD_SERVER_WORKER_JOURNAL_JOURNAL_H

#include <stdio.h>

#include "protocol/desc.h"
#include "protocol/message.h"
#include "server/common/channel.h"
#include "protocol/tls/digest.h"

#define AD_JOURNAL_ADDRESSES (64ull << 30) /* bytes of addresses that are reserved; only written pages take memory */
#define AD_JOURNAL_MAGIC 0x6c616e72756f6a61u
#define AD_JOURNAL_VERSION 10
#define AD_JOURNAL_REUSED (UINT64_C(1) << 63) /* flag in ad_journal_row.writing: the memory may be used again */
#define AD_JOURNAL_CHECKPOINTS 3
#define AD_OFFERS 4 /* number of secrets a client may resume with that it has not shown yet */

/* An offset into the journal; 0: none. */
typedef uint64_t ad_at;

typedef enum ad_journal_kind {
    AD_JOURNAL_NONE,
    AD_JOURNAL_BUFFER,
    AD_JOURNAL_STREAM,
    AD_JOURNAL_EVENT,
    AD_JOURNAL_WINDOW,
    AD_JOURNAL_MODULE
} ad_journal_kind;

/* Why another worker cannot have a buffer's memory. */
typedef enum ad_fleeting { AD_FLEETING_VARIABLE = 1, AD_FLEETING_IMPORT } ad_fleeting;

/* The row of a buffer, a stream, an event, a window or a module. */
typedef struct ad_journal_row {
    uint32_t kind;
    uint16_t device;
    uint8_t high, timed;      /* stream: its priority; event: it can be timed */
    uint8_t readonly, common; /* buffer: published as read-only; written by all its holders */
    uint8_t shared, fleeting; /* buffer: others may have its memory; why it goes with the worker: ad_fleeting or 0 */
    uint8_t lost;             /* module: why another worker cannot have it: ad_module_loss */
    uint8_t open;             /* buffer: other processes may have its memory, and write there */
    uint8_t read;             /* buffer: other processes may have its memory, and must find it as it is */
    uint8_t filling;          /* buffer: only stores have used it, and none has reached its end */
    uint64_t id, size;
    union {
        struct {
            uint64_t slab, offset, block; /* buffer: place and bytes of its memory; slab 0: none */
        };
        uint64_t descriptor; /* window: number of the client's descriptor */
        struct {
            ad_at recipe, settings; /* module: ad_journal_recipe; ad_journal_settings or 0 */
        };
    };
    uint64_t moves;   /* buffer: its moves to host memory and back when the row was written */
    ad_at elsewhere;  /* buffer: ad_journal_place after a later move; 0: none */
    ad_at poison;     /* buffer: ad_journal_poison; 0: the contents are valid */
    uint64_t writing; /* buffer: last operation that began to change it in place; must be the last member */
} ad_journal_row;

/* The place of a buffer's bytes after so many moves. */
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

/* A recipe: the source, options and names that a module is made from. It never changes. */
typedef struct ad_journal_recipe {
    uint64_t users;               /* rows and modules that use it, counted by the process that wrote it */
    uint8_t hash[AD_SHA256_SIZE]; /* hash of all members behind it */
    uint32_t source, bytes;       /* bytes of the source, and of all the text */
    uint32_t noptions, nnames;
    char text[]; /* source, options and name expressions, each NUL-terminated */
} ad_journal_recipe;

/* Settings of a module's kernels. */
typedef struct ad_journal_settings {
    uint64_t count, bytes;
    uint64_t setting[]; /* ad_journal_setting one after another */
} ad_journal_settings;

typedef struct ad_journal_setting {
    int64_t shared, carveout; /* the kernel's settings; negative: not set */
    uint32_t cooperative, size;
    char name[]; /* `size` bytes, padded to a multiple of eight */
} ad_journal_setting;

/* Rows of a session, by place. */
typedef struct ad_journal_table {
    uint64_t capacity;
    ad_journal_row row[];
} ad_journal_table;

/* Rows that one checkpoint commits together. */
typedef struct ad_journal_log {
    uint64_t capacity;
    struct ad_journal_entry {
        uint64_t place;
        ad_journal_row row;
    } entry[];
} ad_journal_log;

/* Progress of a session: all before the checkpoint is executed, and nothing behind. */
typedef struct ad_journal_checkpoint {
    uint64_t frame,
        used; /* place of the frame at hand in the client's stream, and executed bytes of its control block */
    uint64_t operations, bytes;       /* executed operations, and bytes of their frames */
    uint64_t appended;                /* bytes appended to the server's stream */
    uint64_t answered, answered_used; /* like frame and used: up to here, answers are among the appended bytes */
    uint64_t read;                    /* bytes sent in answer to the read at that place */
    uint64_t told;                    /* failures of later synchronisations that were told already */
    uint64_t stream, buffer_limit;    /* current stream plus 1, 0: the default one; limit set by the client */
    uint64_t descriptors;             /* number of the client's descriptors that messages have asked for */
    ad_at pending;                    /* the failure that waits for the next synchronisation */
    ad_at log;                        /* rows to be copied into the table */
    uint64_t entries;                 /* number of rows in the log */
} ad_journal_checkpoint;

/* A block of bytes of a client's or a server's stream. */
typedef struct ad_journal_block {
    ad_at next;
    uint64_t base, size;
    ad_at data; /* offset of the first byte */
} ad_journal_block;

/* Secrets sent to a session's client, of which the last ones are stored: number n at n % AD_OFFERS. */
typedef struct ad_offers {
    uint8_t secret[AD_OFFERS][AD_SECRET];
    uint64_t made, over; /* number of secrets sent; number of those that are invalid by now */
} ad_offers;

/* Messages that are suspected, because workers have ended in a row while they were executed (checkpoint/blame.h). They
 * are known by their places in the client's stream. */
typedef struct ad_blame {
    uint64_t first, last;    /* first and last suspected message; 0: there are none */
    uint64_t crashes, kills; /* workers that crashed; workers that were killed from outside */
    uint64_t certain;        /* only one message is suspected, and the last worker executed nothing else */
} ad_blame;

typedef struct ad_journal_session {
    ad_at next;
    uint64_t id, process, alive;
    uint64_t key; /* key of the fork that began the session; 0: none did */
    char who[AD_PRINCIPAL_SIZE], client[AD_FAULT_TEXT];
    ad_grants grants;
    uint8_t secret[AD_SECRET];
    ad_offers offers;
    uint64_t lives;   /* workers that have begun with this checkpoint */
    uint64_t at_hand; /* twice the place of the message being executed, plus 1 if no other is; 0: none */
    uint64_t guilty;  /* the thread that executed the session got the signal that ended the worker */
    ad_blame blame;
    uint64_t loading;  /* id of the module that is being set up, which runs the user's code; 0: none */
    uint64_t launched; /* last operation that was a user's kernel */
    uint64_t writing;  /* last operation that some row has in `writing`; `name` is its name */
    char name[32];
    ad_journal_checkpoint checkpoint[AD_JOURNAL_CHECKPOINTS];
    uint64_t current; /* index of the committed checkpoint */
    ad_at table;
    uint64_t received;   /* bytes of the client's stream that were received */
    ad_at input, output; /* first blocks still needed of the client's and the server's stream */
} ad_journal_session;

/* A capability or a name, with the memory that it holds. */
typedef enum ad_holder_kind { AD_HOLDER_CAPABILITY, AD_HOLDER_NAME, AD_HOLDER_LEASE } ad_holder_kind;

typedef struct ad_journal_holder {
    uint64_t kind; /* ad_holder_kind; a lease goes with its worker, and tells what its program may do with the memory */
    char who[AD_PRINCIPAL_SIZE];
    ad_journal_row memory;
    uint64_t half[2], uses, owner; /* capability: its number, uses left, session; owner 0: that is over */
    int64_t expires, linger;
    uint64_t by, at, left; /* session and message that have used or ended it last, uses left then; by 0: none */
    char name[256];        /* name: the name */
    ad_at grant;           /* name: its size in bytes, then who may attach it */
    uint8_t writable, column_major, dtype, ndim;
    int64_t shape[AD_MAX_NDIM];
} ad_journal_holder;

/* Holders, by place. */
typedef struct ad_journal_index {
    uint64_t capacity;
    ad_at holder[];
} ad_journal_index;

typedef struct ad_journal_head {
    uint64_t magic, version;
    uint64_t number; /* number of the server, which its capabilities carry */
    uint64_t forked; /* number of sessions that forks have begun so far */
    ad_at sessions, index;
    char why[AD_FAULT_TEXT]; /* what the worker died of, if it could say */
} ad_journal_head;

typedef struct ad_journal ad_journal;

#define AD_JOURNAL_LAYOUT_SIZE 96
/* Write a text without blanks that is equal for two programs if one can read the other's journal. */
static inline void ad__journal_layout(char out[AD_JOURNAL_LAYOUT_SIZE]) {
    snprintf(out, AD_JOURNAL_LAYOUT_SIZE, "%d.%zu.%zu.%zu.%zu.%zu", AD_JOURNAL_VERSION, sizeof(ad_journal_head),
             sizeof(ad_journal_session), sizeof(ad_journal_row), sizeof(ad_journal_poison), sizeof(ad_journal_holder));
}

int ad__journal_open(ad_journal **out, ad_fault *fault); /* Make an empty journal. AD_E_MEMORY, AD_E_SYSTEM. */
void ad__journal_close(ad_journal *l);                   /* Free a journal; NULL is allowed. */
int ad__journal_descriptor(const ad_journal *l);         /* Get the journal's descriptor. */
ad_journal_head *ad__journal_head(const ad_journal *l);

/* Allocate memory in the journal (l NULL: any memory), aligned to 16 bytes. NULL: no memory. Any thread. */
void *ad__journal_alloc(ad_journal *l, size_t size);
void ad__journal_free(ad_journal *l, void *p); /* Free it; l and p may be NULL. */
ad_at ad__journal_at(const ad_journal *l, const void *p);
void *ad__journal_get(const ad_journal *l, ad_at at); /* Get an address; 0: NULL. */

/* Put a holder at a free place. The journal owns it from here on. 0: there is no memory, and the holder is freed. */
uint32_t ad__journal_hold(ad_journal *l, ad_journal_holder *h);
/* Remove and free the holder at a place; 0: none. */
void ad__journal_release(ad_journal *l, uint32_t place);
ad_journal_holder *ad__journal_holder(const ad_journal *l, uint32_t place); /* Get a holder; 0: NULL. */

/* Release a recipe of a module, which several rows may have; r may be NULL. */
void ad__recipe_release(ad_journal *l, ad_journal_recipe *r);
/* True if the place is one of the row's buffer, after a later move than the row's own. */
static inline bool ad__journal_is_later(const ad_journal_place *p, const ad_journal_row *row) {
    return row->kind == AD_JOURNAL_BUFFER && p->id == row->id && p->moves > row->moves;
}

/* Put the later place of a buffer into its row. A buffer that was moved has memory of its own. */
static inline void ad__journal_settle(ad_journal_row *row, const ad_journal_place *p) {
    if (!p || !ad__journal_is_later(p, row)) return;
    row->slab = p->slab;
    row->offset = p->offset;
    row->block = p->block;
    row->moves = p->moves;
    row->shared = row->common = row->read = 0;
}

/* Store an offset or a number that makes what was written before part of the journal. */
static inline void ad__journal_store(uint64_t *to, uint64_t value) { __atomic_store_n(to, value, __ATOMIC_RELEASE); }

#endif
