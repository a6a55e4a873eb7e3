/* Going on where the worker before was killed: its sessions, as its journal has them, in the slabs that arrayd kept.
 *
 * The I/O thread's, before it has any other session. What cannot be taken over is dropped, and logged; the clients of
 * such sessions are told when they come. Nothing in a journal is trusted to be within its bounds: what made the worker
 * die may have written there as well. */
#ifndef AD_SERVER_WORKER_JOURNAL_RECOVER_RECOVER_H
#define AD_SERVER_WORKER_JOURNAL_RECOVER_RECOVER_H

#include "server/common/channel.h"

struct ad_worker;

/* Notes OLD_SLAB and OLD_DESCRIPTOR; fd is the callee's. */
void ad__recovery_take(struct ad_worker *w, const ad_note *note, int fd);
/* Note RECOVER; the same. */
void ad__recovery_run(struct ad_worker *w, const ad_note *note, int fd);
/* Before that: what this principal has in that journal is another worker's. */
void ad__recovery_without(struct ad_worker *w, const char *who);
void ad__recovery_close(struct ad_worker *w);

#endif
