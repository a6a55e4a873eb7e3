/* An upgrade: the front executes the program anew that it was started as, and that one goes on with all sessions, with
 * workers of its own, as they would go on when a worker is killed (workers/worker_files.c). The process stays, and its
 * number.
 *
 * CHECKING  the new program is asked whether it can: whether it understands what is handed over, and the configuration
 * ASKING    workers say what of them nobody can go on with
 * QUIET     connections are not accepted any more (they wait), and those that say hello have a moment to finish
 * LEAVING   workers make what they have written down complete, and leave
 * then the front writes its record (handover.c) and executes the program. Until LEAVING an upgrade can be refused, and
 * nobody has noticed; when the program cannot be executed at the end, this one starts its own workers again. */
#ifndef AD_SERVER_FRONT_UPGRADE_UPGRADE_H
#define AD_SERVER_FRONT_UPGRADE_UPGRADE_H

#include <uv.h>

#include "server/common/channel.h"

struct ad_front;

typedef enum ad_upgrade_step {
    AD_UPGRADE_NONE,
    AD_UPGRADE_CHECKING,
    AD_UPGRADE_ASKING,
    AD_UPGRADE_QUIET,
    AD_UPGRADE_LEAVING
} ad_upgrade_step;

#define AD_UPGRADE_VERSION 64 /* bytes of a version as text */

/* A member of the front. */
typedef struct ad_upgrade {
    ad_upgrade_step step;
    bool force;
    bool took_over;         /* sessions of the front before are being taken over */
    bool checked, too_late; /* the handle of the check's process is there; it has been killed */
    char by[AD_PRINCIPAL_SIZE], from[AD_UPGRADE_VERSION], to[AD_UPGRADE_VERSION];
    int said;          /* pipe that the check writes to */
    uint64_t declared; /* what workers have said: sessions */
    uint64_t lost;     /* sessions that have not gone over, besides those that ended as they were told */
    uint64_t sessions; /* that there were */
    int64_t quiet_until, began,
        ended; /* began: connections have not been accepted since; ended: the workers had left */
    uv_process_t check;
    uv_timer_t timer;
} ad_upgrade;

void ad__upgrade_init(struct ad_front *f);
/* Begin one. force: also if sessions or arrays are lost. AD_E_LIMIT: one is under way; AD_E_SYSTEM. What comes of it
 * is told to who has asked for it on the control socket, and to the log. */
int ad__upgrade_begin(struct ad_front *f, bool force, const char *by, ad_fault *fault);
/* After an upgrade, what cannot be listened on is no reason to drop those who have come by other ways: it is logged,
 * and 0; elsewhere the status. */
int ad__upgrade_without(struct ad_front *f, int status, ad_fault *fault);
/* The server stops. */
void ad__upgrade_cancel(struct ad_front *f);
/* Workers are leaving: none is started. */
bool ad__upgrade_leaves(const struct ad_front *f);
/* A worker says what would be lost, has gone, has taken over. */
void ad__upgrade_answer(struct ad_front *f, uint64_t lost);
void ad__upgrade_look(struct ad_front *f);
void ad__upgrade_lost(struct ad_front *f, uint64_t sessions);

#endif
