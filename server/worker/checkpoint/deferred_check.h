/* Deferred checks: what operations find out about their data after they were enqueued, such as an index out of bounds
 * or a singular matrix.
 *
 *     operation 1   a = take(x, i)   has check 0   a depends on {0}
 *     operation 2   b = a + 1                      b depends on {0}
 *     operation 3   c = d * 2                      c depends on {}
 *     check 0 fails: a and b are poisoned, c is not
 *
 * A session has places (ad_check of kernels/backend.h) for so many operations under way that may still fail. Each
 * buffer has the set of checks that its contents depend on. When a check fails, every buffer that depends on it is
 * poisoned. Once the session is idle a new epoch begins: all places are free, and older sets count no more. Runner
 * only. */
#ifndef AD_SERVER_WORKER_CHECKPOINT_DEFERRED_CHECK_H
#define AD_SERVER_WORKER_CHECKPOINT_DEFERRED_CHECK_H

#include "kernels/backend.h"
#include "server/worker/memory/buffers.h"

#define AD_DEFERRED_CHECKS 64

struct ad_worker_session;

typedef struct ad_deferred_check {
    uint64_t number; /* number of the operation */
    char name[32];
    bool kept; /* a failure leaves the output's value as it was: the error belongs to no buffer */
    bool told;
} ad_deferred_check;

typedef struct ad_deferred_checks {
    ad_check *check; /* array of AD_DEFERRED_CHECKS places; NULL: not needed yet */
    ad_deferred_check of[AD_DEFERRED_CHECKS];
    unsigned count;
    uint32_t epoch;
} ad_deferred_checks;

/* Find the place for the next operation, in *out (NULL: a synchronous backend needs none). AD_E_MEMORY; AD_E_LIMIT: no
 * place is free, which ad__checkpoint_await_place and ad__deferred_checks_make_room prevent. */
int ad__deferred_checks_find_place(struct ad_worker_session *s, ad_check **out, ad_fault *fault);
/* Tell whether a group of operations may lack places: a chain takes one, and what it ends with another one. */
static inline bool ad__deferred_checks_full(const ad_deferred_checks *v) { return v->count + 2 > AD_DEFERRED_CHECKS; }
/* Free places where the session cannot wait in between: the engine waits for the device. */
void ad__deferred_checks_make_room(struct ad_worker_session *s);
/* Record that an operation uses its place. Returns its bit. kept: see ad_deferred_check. */
uint64_t ad__deferred_checks_add(struct ad_worker_session *s, uint64_t number, const char *name, bool kept);
/* Get the set of checks that a buffer depends on. */
uint64_t ad__deferred_checks_of(const struct ad_worker_session *s, const ad_buffer *b);
/* Set the checks that a buffer depends on. */
void ad__deferred_checks_set(const struct ad_worker_session *s, ad_buffer *b, uint64_t suspects);
/* Read all checks, and poison the buffers of those that failed. idle: nothing is under way, so a new epoch begins. */
void ad__deferred_checks_read(struct ad_worker_session *s, bool idle);

#endif
