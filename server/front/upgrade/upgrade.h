/* An upgrade: the front executes the program that it was started as again, which goes on with all sessions and with
 * workers of its own. Sessions go on as after a worker was killed (workers/worker_files.c). The process and its number
 * stay.
 *
 *     NONE -> CHECKING -> ASKING -> QUIET -> LEAVING -> exec -> (new front) sessions are taken over
 *       ^        |           |                            |
 *       +--------+-----------+---- refused                +-- fails: this front starts its own workers again
 *
 * CHECKING  the new program says whether it understands the record and the configuration
 * ASKING    workers say how many sessions would be lost
 * QUIET     new connections wait, and handshakes have a moment to finish
 * LEAVING   workers complete their journals and leave
 * Then the front writes its record (handover.c) and executes the program. Until LEAVING clients notice nothing of a
 * refused upgrade. */
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
    bool took_over;         /* sessions of the previous front are being taken over */
    bool checked, too_late; /* checked: the handle of the check's process is open; too_late: it was killed */
    char by[AD_PRINCIPAL_SIZE], from[AD_UPGRADE_VERSION], to[AD_UPGRADE_VERSION];
    int said;                          /* the pipe that the check's process writes to */
    uint64_t declared;                 /* sessions that workers have said would be lost */
    uint64_t lost;                     /* sessions that were lost, besides those that ended as announced */
    uint64_t sessions;                 /* sessions before the upgrade */
    int64_t quiet_until, began, ended; /* began: when connections began to wait; ended: when all workers had left */
    uv_process_t check;
    uv_timer_t timer;
} ad_upgrade;

void ad__upgrade_init(struct ad_front *f);
/* Begin an upgrade. force: even if sessions or arrays are lost. AD_E_LIMIT: one is under way; AD_E_SYSTEM. The
 * result is told to the visitor of the control socket that asked, and to the log. */
int ad__upgrade_begin(struct ad_front *f, bool force, const char *by, ad_fault *fault);
/* After an upgrade, log a failure to listen and return 0, as clients that came by other ways must not be dropped.
 * Otherwise return the status. */
int ad__upgrade_tolerate(struct ad_front *f, int status, ad_fault *fault);
/* Cancel an upgrade, as the server stops. */
void ad__upgrade_cancel(struct ad_front *f);
/* Tell whether workers are leaving, so that none is started. */
bool ad__upgrade_leaves(const struct ad_front *f);
/* A worker has said how many sessions would be lost. */
void ad__upgrade_answer(struct ad_front *f, uint64_t lost);
/* Go to the next step if it is time: a worker has gone or has recovered. */
void ad__upgrade_advance(struct ad_front *f);
/* Count sessions that the upgrade has lost. */
void ad__upgrade_lost(struct ad_front *f, uint64_t sessions);

#endif
