/* Session components: what a session has. Each room that keeps something for a session has a row here. Opening,
 * dropping, closing and journaling a session walk the table (server/worker/rooms.c), in its order:
 *
 *     open ─▶ turns ─▶ drop: the runner ─▶ close: the I/O thread
 *               │
 *               └ save, place ─▶ row in the journal ─▶ restore, in another worker
 *
 * A function that a component does not need is NULL. */
#ifndef AD_SERVER_WORKER_BASE_COMPONENT_H
#define AD_SERVER_WORKER_BASE_COMPONENT_H

#include "server/common/channel.h"
#include "server/worker/journal/journal.h"

struct ad_worker_session;
struct ad_worker;

/* The remains of another worker, as far as restoring a row needs them. */
typedef struct ad_left_behind {
    void *user;
    /* Get `size` bytes at an offset of that worker's journal. NULL: the offset is 0, or not all are in it. */
    void *(*get)(void *user, ad_at at, uint64_t size);
    /* Take a descriptor that the session's client had passed. -1: it is gone. */
    int (*take_descriptor)(void *user, uint64_t session, uint64_t number);
} ad_left_behind;

typedef struct ad_component {
    const char *name;
    /* Any thread: nobody else knows the session yet. AD_E_MEMORY. */
    int (*open)(struct ad_worker_session *s, const ad_note *note);
    /* Runner: free a part of it, before `drop`, where all of it may take long. True: there is more. */
    bool (*drop_part)(struct ad_worker_session *s);
    /* Runner: free it. Nothing of the session is under way. */
    void (*drop)(struct ad_worker_session *s);
    /* I/O thread: free what other threads may have used until now. */
    void (*close)(struct ad_worker_session *s);
    /* Any thread: the device is lost, and the process is about to end. */
    void (*device_lost)(struct ad_worker_session *s, const char *why);

    ad_journal_kind kind; /* of its rows in the journal; AD_JOURNAL_NONE: it has none */
    /* Make the row of the object with that id. 1: it is made; 0: there is no such object; AD_E_MEMORY. */
    int (*save)(struct ad_worker_session *s, uint64_t id, ad_journal_row *row);
    /* Find where the object keeps the place of its row. NULL: there is no such object. */
    uint32_t *(*place)(struct ad_worker_session *s, uint64_t id);
    /* Restore the object from its row. AD_E_MEMORY and others. */
    int (*restore)(struct ad_worker_session *s, const ad_journal_row *row, const ad_left_behind *left, ad_fault *fault);
} ad_component;

/* Open all components. After a failure those that were opened are closed again. */
int ad__components_open(struct ad_worker_session *s, const ad_note *note);
/* Drop all components, or go on with that. False: there is more to drop, in another turn. */
bool ad__components_drop(struct ad_worker_session *s);
void ad__components_close(struct ad_worker_session *s);
void ad__components_device_lost(struct ad_worker_session *s, const char *why);
/* Find the component whose rows are of that kind. NULL: none. */
const ad_component *ad__component_of(const struct ad_worker *w, uint32_t kind);

#endif
