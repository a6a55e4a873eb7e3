/* Recovery: going on with the sessions of a worker that was killed.
 *
 *     arrayd ── descriptors of slabs, of the journal, of windows ──▶ next worker
 *                                                                      │
 *     journal ──▶ committed checkpoint ──▶ rows ──▶ buffers in adopted slabs
 *             └─▶ client's bytes after it ────────▶ executed again
 *
 * A session that cannot be recovered is dropped and logged, and its client is told when it comes back. No offset or
 * size in the journal is trusted, because the worker may have written anywhere before it died.
 *
 * I/O thread: all functions, before there is any other session. */
#ifndef AD_SERVER_WORKER_RECOVER_RECOVER_H
#define AD_SERVER_WORKER_RECOVER_RECOVER_H

#include "server/common/channel.h"

struct ad_worker;

/* Take a slab or a descriptor of the worker before (notes OLD_SLAB, OLD_DESCRIPTOR). The callee owns fd. */
void ad__recovery_take(struct ad_worker *w, const ad_note *note, int fd);
/* Recover from the journal fd (note RECOVER). The callee owns fd. */
void ad__recovery_run(struct ad_worker *w, const ad_note *note, int fd);
/* Before ad__recovery_run: leave out a principal that another worker recovers. */
void ad__recovery_without(struct ad_worker *w, const char *who);
void ad__recovery_close(struct ad_worker *w);

#endif
