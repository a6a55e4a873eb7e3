/* Hooks: functions of upper rooms that lower ones call. A room calls those below it by name. Where it must tell one
 * above it something, or ask it, that is a function here. server/worker/rooms.c fills the table. */
#ifndef AD_SERVER_WORKER_BASE_HOOKS_H
#define AD_SERVER_WORKER_BASE_HOOKS_H

#include "kernels/backend.h"
#include "protocol/message.h"

struct ad_worker;
struct ad_worker_session;
struct ad_buffer;
struct ad_shared;
struct ad_block;
struct ad_stream_arena;
struct ad_stream_queue;
struct ad_journal_place;

/* Functions of checkpoint/ that memory (device/, spill/) calls (checkpoint/checkpoint.h). Runner. */
typedef struct ad_checkpoint_hooks {
    bool (*is_recoverable)(const struct ad_worker_session *s);
    void (*mark_buffer)(struct ad_worker_session *s, struct ad_buffer *b);
    void (*record_place)(struct ad_worker_session *s, uint32_t place, const struct ad_journal_place *now);
    bool (*must_defer)(const struct ad_worker_session *s, const struct ad_buffer *b);
    bool (*defer_free)(struct ad_worker_session *s, struct ad_stream_arena *home, const struct ad_block *block,
                       const struct ad_buffer *b);
    /* Make room, because memory is short. False: there is nothing to free. */
    bool (*free_all_deferred)(struct ad_worker_session *s);
    bool (*give_released_memory)(struct ad_worker_session *s);
    bool (*move_deferred_to_host)(struct ad_worker_session *s, struct ad_stream_queue *queue);
    bool (*drop_deferred)(struct ad_worker_session *s);
} ad_checkpoint_hooks;

/* Buffers that are variables of modules, and modules that are built (modules/modules.h). Runner. */
typedef struct ad_modules_hooks {
    void (*variable_gone)(struct ad_worker_session *s, struct ad_buffer *b);
    void (*reap)(struct ad_worker_session *s);
    bool (*built)(struct ad_worker_session *s);
} ad_modules_hooks;

/* Buffers whose memory others hold, too (sharing/sharing.h, sharing/imports.h). Runner. */
typedef struct ad_sharing_hooks {
    int (*uses)(struct ad_worker_session *s, struct ad_stream_queue *queue, struct ad_buffer *b, bool writes,
                ad_fault *fault);
    void (*leave)(struct ad_worker_session *s, struct ad_buffer *b);
    bool (*may_part)(const struct ad_shared *m);
    void (*leave_moved)(struct ad_worker_session *s, struct ad_buffer *b);
    void (*orphan)(struct ad_worker *w, struct ad_stream_queue *queue);
    struct ad_buffer *(*import_order)(const struct ad_buffer *b);
    int (*import_check_write)(const struct ad_buffer *b, ad_fault *fault);
    bool (*imports_meet)(const struct ad_buffer *a, const struct ad_buffer *b, int64_t *distance);
    void (*import_gone)(struct ad_worker_session *s, struct ad_buffer *b);
} ad_sharing_hooks;

/* Reasons why a turn ended. */
typedef enum ad_turn {
    AD_TURN_EMPTY,
    AD_TURN_MORE,
    AD_TURN_HEAVY,
    AD_TURN_STALLED, /* the client must read its output first */
    AD_TURN_WAITING, /* the session waits for s->wait */
    AD_TURN_OVER
} ad_turn;

/* Functions that engine/ calls. Runner. */
typedef struct ad_engine_hooks {
    /* Execute operations for about `budget` ns. An operation estimated above `limit` ns ends the turn and is not
     * executed. */
    ad_turn (*turn)(struct ad_worker_session *s, int64_t budget, int64_t limit);
    /* Free all that the session holds. AD_TURN_OVER: it is done; AD_TURN_WAITING: something is still under way;
     * AD_TURN_MORE: it is so much that the rest is for other turns. */
    ad_turn (*drop)(struct ad_worker_session *s);
    /* Send arrayd the report that it has asked for. */
    void (*report)(struct ad_worker *w, uint64_t question, uint64_t what);
    /* Get the time (ns) of the next `sweep`; INT64_MAX: never. The engine's lock is held. */
    int64_t (*due)(const struct ad_worker *w);
    /* Free what has expired, and what streams have passed by now. */
    void (*sweep)(struct ad_worker *w);
} ad_engine_hooks;

/* Sessions whose principal migrates (migrate/migration.h). Runner. */
typedef struct ad_migration_hooks {
    bool (*must_wait)(struct ad_worker_session *s, const ad_message *m, ad_fault *refused);
    bool (*ends_session)(const struct ad_worker_session *s);
} ad_migration_hooks;

typedef struct ad_hooks {
    const ad_checkpoint_hooks *checkpoint;
    const ad_modules_hooks *modules;
    const ad_sharing_hooks *sharing;
    const ad_engine_hooks *engine;
    const ad_migration_hooks *migration;
} ad_hooks;

#endif
