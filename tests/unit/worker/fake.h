/* A worker for the tests of its rooms: without arrayd, and with a device in this process's memory. A test links the
 * rooms up to its own, so it says which components its sessions have, and fills in the hooks that it needs. */
#ifndef AD_TESTS_UNIT_WORKER_FAKE_H
#define AD_TESTS_UNIT_WORKER_FAKE_H

#include "server/worker/session.h"

/* The device. Operations compute at once; where the worker is asynchronous, their streams pass when the test says so.
 */
typedef struct fake_device {
    int runs;         /* operations so far */
    int fail;         /* status of the next operation, once; 0: it succeeds */
    bool fail_late;   /* the failure comes by the operation's check */
    bool lost;        /* all that concerns events fails, as the device is lost */
    int losses;       /* times that the worker found the device lost, where it would have ended */
    int parts;        /* multiprocessors that can be reserved; 0: none */
    int splits;       /* times that it was divided */
    int confines;     /* times that a stream was confined, or was no longer */
    int confine_fail; /* status of that */
    int open_slabs, open_streams, open_events;
} fake_device;

extern fake_device fake;

/* Create a worker, with a journal if `journaled`. The hooks are empty. */
ad_worker *fake_worker(bool asynchronous, bool journaled, const ad_component *const *components);
void fake_worker_close(ad_worker *w);
/* Take all memory of the worker's journal, but for pieces of these sizes (at most 8). */
void fake_exhaust_journal(ad_worker *w, const size_t *size, int pieces);
/* Create a session of a principal, with its components. */
ad_worker_session *fake_session(ad_worker *w, uint64_t id, const char *principal);
/* Close the components of a session that was dropped, and free it with the frames that it has queued. */
void fake_session_close(ad_worker_session *s);
/* Get the other end of the latest worker's channel: what arrayd would read. */
ad_channel *fake_arrayd(void);
/* Get how many multiprocessors a stream leaves alone. */
int fake_confined(const ad_stream *stream);
/* Let all streams pass what was enqueued so far. */
void fake_pass(void);

#endif
