/* Holders of shared memory other than buffers of sessions: capabilities, names and leases. Each has an ad_holder, with
 * which capabilities and names begin, and the memory lists them.
 *
 *     ad_shared ── buffers ──▶ buffer ──▶ buffer
 *        │
 *        └──────── others ───▶ capability ──▶ name ──▶ lease
 *
 * Runner: all functions here. */
#ifndef AD_SERVER_WORKER_SHARING_HOLDERS_H
#define AD_SERVER_WORKER_SHARING_HOLDERS_H

#include "server/worker/memory/shared.h"
#include "server/worker/session.h"

typedef struct ad_holder ad_holder;
/* Write a holder into the journal, and set its place. */
typedef void ad_holder_write(ad_worker *w, ad_holder *h);
typedef void ad_holder_free(ad_holder *h); /* Free the object that a holder begins. */
struct ad_holder {
    ad_shared *shared;
    ad_holder *next, **link; /* neighbours in the memory's list */
    ad_holder_write *write;  /* NULL: no journal has it */
    ad_holder_free *free;    /* what frees it once it has ended for good */
    uint64_t by, at;         /* session and message that have used or ended it last; by 0: none */
    ad_holder *ended;        /* next of those that a message has ended */
    bool deferred;           /* it has ended, and a checkpoint of that session will release it */
    uint32_t place;          /* place in the journal; 0: it has none */
    char principal[AD_PRINCIPAL_SIZE];
};

/* List a holder in its memory, which it has been counted in (ad__shared_hold), and write it into the journal. */
void ad__holder_begin(ad_worker *w, ad_holder *h);
/* End a holder: it leaves the journal, and its hold on the memory ends. */
void ad__holder_end(ad_worker *w, ad_holder *h);
/* Write down that the session's message at hand uses a holder, and that so many uses are left then. A worker that
 * executes the message again finds that it has counted. */
void ad__holder_use(ad_worker_session *s, ad_holder *h, uint64_t left);
/* True if the message at hand has used the holder already, in another worker. */
bool ad__holder_is_used(const ad_worker_session *s, const ad_holder *h);
/* Wait until the next worker would not have to execute another session's use of the holder again: one use at a time is
 * written down. False: the session waits; call again. */
bool ad__holder_await_use(ad_worker_session *s, const ad_holder *h);
/* End a holder by the message at hand. Nobody finds it any more, but it stays until a checkpoint has the message: the
 * next worker may have to execute that again. */
void ad__holder_end_late(ad_worker_session *s, ad_holder *h);
/* Find the holder of a kind that the message at hand has ended in another worker. NULL: there is none. */
ad_holder *ad__holder_find_ended(const ad_worker_session *s, ad_holder_write *kind);
/* Take up a holder that a message of another worker had ended, and that nothing lists yet. If a checkpoint has that
 * message, the holder is over and freed. */
void ad__holder_take_up_ended(ad_worker *w, ad_holder *h);
/* End the holders that a session's messages would have ended again (NULL: those of all). */
void ad__holders_forget(ad_worker *w, const ad_worker_session *s);
/* Make the journal's row of a holder, with its memory and its principal. NULL: there is no memory for it, or none for
 * the error of an array that has failed. */
ad_journal_holder *ad__holder_make_row(const ad_worker *w, const ad_holder *holder, ad_holder_kind kind);
/* Write the memory's holders into the journal again: it has moved. */
void ad__holders_write(ad_worker *w, ad_shared *shared);

#endif
