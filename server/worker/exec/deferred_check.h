/* What operations find out about their data after they have been enqueued: an index out of bounds, a singular matrix.
 *
 * A session has places (ad_check of kernels/backend.h) for so many operations under way that may still fail. Each
 * buffer carries the set of those that its contents depend on; when one turns out to have failed, every buffer that
 * depends on it is poisoned. Once all is complete the places are used again: a new epoch, in which no old set counts.
 * Only whoever runs the engine calls these. */
#ifndef AD_SERVER_WORKER_EXEC_DEFERRED_CHECK_H
#define AD_SERVER_WORKER_EXEC_DEFERRED_CHECK_H

#include "kernels/backend.h"
#include "server/worker/memory/buffers.h"

#define AD_DEFERRED_CHECKS 64

struct ad_session;

typedef struct ad_deferred_check {
    uint64_t number; /* of the operation */
    char name[32];
    bool kept; /* its output keeps its value when it fails: the error belongs to no buffer */
    bool told;
} ad_deferred_check;

typedef struct ad_deferred_checks {
    ad_check *check; /* AD_DEFERRED_CHECKS places; NULL: none were needed yet */
    ad_deferred_check of[AD_DEFERRED_CHECKS];
    unsigned count;
    uint32_t epoch;
} ad_deferred_checks;

/* The place for the next operation, in *out (NULL where the backend needs none). AD_E_MEMORY. When all are taken the
 * session must first become idle: see ad__deferred_checks_full. */
int ad__deferred_checks_find_place(struct ad_session *s, ad_check **out, ad_fault *fault);
static inline bool ad__deferred_checks_full(const ad_deferred_checks *v) { return v->count == AD_DEFERRED_CHECKS; }
/* The operation uses its place. Its bit. kept: see above. */
uint64_t ad__deferred_checks_add(struct ad_session *s, uint64_t number, const char *name, bool kept);
/* What a buffer depends on. */
uint64_t ad__deferred_checks_of(const struct ad_session *s, const ad_buffer *b);
void ad__deferred_checks_set(const struct ad_session *s, ad_buffer *b, uint64_t suspects);
/* Read what has been found by now. idle: nothing is under way, so a new epoch begins. */
void ad__deferred_checks_read(struct ad_session *s, bool idle);
void ad__deferred_checks_close(struct ad_session *s);

#endif
