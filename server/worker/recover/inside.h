/* Types and functions that the files of recovery share. */
#ifndef AD_SERVER_WORKER_RECOVER_INSIDE_H
#define AD_SERVER_WORKER_RECOVER_INSIDE_H

#include "server/worker/recover/recover.h"
#include "server/worker/session.h"

struct ad_shared;

/* A slab of the worker before. */
typedef struct ad_old_slab {
    uint64_t id, size;
    int fd;
    char who[AD_PRINCIPAL_SIZE];
    ad_slab *slab; /* NULL: the slab is not adopted yet */
    ad_memory *memory;
} ad_old_slab;

/* A descriptor that a client had passed to the worker before. */
typedef struct ad_old_descriptor {
    uint64_t session, number, before; /* before: bytes that were received before those it came with */
    int fd;
} ad_old_descriptor;

typedef struct ad_recovery {
    ad_old_slab *slab;
    size_t nslabs, slab_room;
    ad_old_descriptor *passed;
    size_t npassed, passed_room;
    char (*without)[AD_PRINCIPAL_SIZE]; /* principals whose sessions another worker recovers */
    size_t nwithout, without_room;
    char *base;            /* journal of the worker before */
    uint64_t size, memory; /* bytes of the journal's addresses, and of its written pages, the limit for all in it */
    struct ad_common {     /* hash table of shared memory; its room is a power of two, and at most half is used */
        uint64_t slab, offset;
        struct ad_shared *shared; /* held until recovery is over; NULL: the memory is not restored yet */
        bool common;              /* its holders write into the memory, and do not get copies */
        bool read;                /* programs have it that must find it as it is */
        bool changing;            /* an operation of some holder was changing it in place, where it is common */
    } * common;
    uint64_t commons, common_room;
    ad_death death;      /* how the worker before ended */
    uint64_t killed;     /* workers that were killed from outside while they recovered from this journal */
    uint64_t candidates; /* sessions that were executing a message then */
    uint64_t guilty;     /* sessions whose thread got the ending signal; if any, they alone are suspected */
} ad_recovery;

/* ---- left.c ---- */
/* Get what the worker before has left. NULL: no host memory. */
ad_recovery *ad__recovery_left(ad_worker *w);
/* Tell whether another worker recovers the principal's sessions. */
bool ad__recovery_skips(const ad_recovery *r, const char *who);
/* Get the address of `size` bytes at an offset of the journal. NULL: the offset is 0, or not all are in it. */
void *ad__recovery_get(const ad_recovery *r, ad_at at, uint64_t size);

/* ---- memory.c ---- */
/* Before any session is restored, list memory with several holders, and what an operation was changing. AD_E_MEMORY. */
int ad__recovery_collect_common(ad_recovery *r, const ad_journal_table *t, const ad_journal_checkpoint *state);
int ad__recovery_collect_holders(ad_recovery *r, const ad_journal_head *head);
int ad__recovery_restore_buffer(ad_worker_session *s, const ad_journal_row *written, const ad_journal_session *at,
                                const ad_journal_checkpoint *state, ad_fault *fault);
/* After all sessions, restore names and capabilities, and give back slabs that nothing is in. */
void ad__recovery_restore_holders(ad_worker *w, const ad_journal_head *head);
void ad__recovery_give_back(ad_worker *w);
/* Read a poison. NULL: at is 0. */
ad_poison *ad__recovery_poison(const ad_recovery *r, ad_at at);

/* ---- bytes.c ---- */
/* Restore the client's bytes that are to be executed, and the beginning of those that are not complete. */
int ad__recovery_restore_input(ad_worker_session *s, const ad_journal_session *at, const ad_journal_checkpoint *state,
                               ad_fault *fault);
/* Restore the bytes that are to be sent to the client. */
int ad__recovery_restore_output(ad_worker_session *s, const ad_journal_session *at, const ad_journal_checkpoint *state,
                                ad_fault *fault);

#endif
