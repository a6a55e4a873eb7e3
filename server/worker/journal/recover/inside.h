/* What the parts of recovery share. */
#ifndef AD_SERVER_WORKER_JOURNAL_RECOVER_INSIDE_H
#define AD_SERVER_WORKER_JOURNAL_RECOVER_INSIDE_H

#include "server/worker/journal/recover/recover.h"
#include "server/worker/net/session.h"

struct ad_shared;

/* A slab of the worker before. */
typedef struct ad_old_slab {
    uint64_t id, size;
    int fd;
    char who[AD_PRINCIPAL_SIZE];
    ad_slab *slab; /* NULL: not adopted yet */
    ad_memory *memory;
} ad_old_slab;

/* A descriptor that one of its clients had passed. */
typedef struct ad_old_descriptor {
    uint64_t session, number, before; /* before: bytes that had been received before those it came with */
    int fd;
} ad_old_descriptor;

typedef struct ad_recovery {
    ad_old_slab *slab;
    size_t nslabs, slab_room;
    ad_old_descriptor *passed;
    size_t npassed, passed_room;
    char (*without)[AD_PRINCIPAL_SIZE]; /* principals that are not this worker's */
    size_t nwithout, without_room;
    char *base;            /* the journal of the worker before */
    uint64_t size, memory; /* of its addresses; of what has been written to: nothing in it is larger */
    struct ad_common {     /* a hash table of memory that several hold: a power of two, at most half full */
        uint64_t slab, offset;
        struct ad_shared *shared; /* NULL: not restored yet */
        bool common;              /* they write into it, and do not get copies */
        bool changing;            /* it was being changed in place */
    } * common;
    uint64_t commons, common_room;
    ad_death death;      /* how the worker before has ended ... */
    uint64_t candidates; /* ... while so many sessions had something at hand, ... */
    uint64_t guilty;     /* ... and by a signal to a thread that executed so many of them: then those alone count */
} ad_recovery;

bool ad__recovery_skips(const ad_recovery *r, const char *who);

/* size bytes at an offset of the journal; NULL: they are not all there, or it is 0. */
void *ad__recovery_look(const ad_recovery *r, ad_at at, uint64_t size);

/* ---- memory.c ---- */
/* Before any session: note memory that several hold, and what one of them was changing. AD_E_MEMORY. */
int ad__recovery_note(ad_recovery *r, const ad_journal_table *t, const ad_journal_checkpoint *state);
int ad__recovery_note_holders(ad_recovery *r, const ad_journal_head *head);
int ad__recovery_buffer(ad_session *s, const ad_journal_row *written, const ad_journal_session *at,
                        const ad_journal_checkpoint *state, ad_fault *fault);
/* After all sessions: what names and capabilities hold, and the end of slabs that nobody has. */
void ad__recovery_holders(ad_worker *w, const ad_journal_head *head);
void ad__recovery_give_back(ad_worker *w);
/* Why a buffer has no value, as it is written; NULL: it has one. */
ad_poison *ad__recovery_poison(const ad_recovery *r, ad_at at);

/* ---- bytes.c ---- */
/* The client's bytes that are to be executed, and those that have not come whole. */
int ad__recovery_input(ad_session *s, const ad_journal_session *at, const ad_journal_checkpoint *state,
                       ad_fault *fault);
/* Those for the client. */
int ad__recovery_output(ad_session *s, const ad_journal_session *at, const ad_journal_checkpoint *state,
                        ad_fault *fault);

#endif
