/* arrayd itself, the front: it listens, shakes hands, and hands clients on to workers. It never touches a device. */
#ifndef AD_SERVER_FRONT_H
#define AD_SERVER_FRONT_H

#include <uv.h>

#include "protocol/message.h"
#include "server/common/channel.h"
#include "server/common/config.h"
#include "server/front/upgrade/record.h"
#include "server/front/auth/principals.h"
#include "server/front/observe/observation.h"
#include "server/front/upgrade/upgrade.h"
#include "protocol/tls/tls.h"

typedef struct ad_front ad_front;
typedef struct ad_domain ad_domain;
typedef struct ad_handshake ad_handshake;
typedef struct ad_slabs ad_slabs;
typedef struct ad_listener ad_listener;
typedef struct ad_relay ad_relay;
typedef struct ad_session_entry ad_session_entry;
typedef struct ad_inherited ad_inherited;

#define AD_SESSION_ENTRY_CHAINS 256
#define AD_FRONT_SIGNALS 4 /* that it takes: to stop, read its configuration again, be upgraded */
#define AD_HAND_LAYOUT 112 /* bytes of what describes a record and a journal */

/* How a client has come. */
typedef enum ad_way { AD_WAY_UNIX, AD_WAY_TCP, AD_WAY_TLS } ad_way;

/* Whether the loop waits awake: see net/spin.c. */
typedef struct ad_spin {
    uv_check_t after_poll;
    uv_idle_t busy;
    int64_t heard, idle; /* when bytes last came, and when there was nothing more to do after them, ns */
    int quick;           /* how often of late the next ones came soon after */
} ad_spin;

/* How much of something there has been in the second at hand. */
typedef struct ad_rate {
    int64_t since; /* ns */
    unsigned long count;
} ad_rate;

struct ad_front {
    uv_loop_t loop;
    ad_config config;
    int argc;
    char **argv;
    char program[4096]; /* own path */
    char path[4096];    /* as which it was started: where a new one is looked for */
    ad_domain *domains; /* workers, running and failed */
    ad_listener *listeners;
    ad_handshake *handshakes; /* newest first */
    uint64_t sessions, last_session;
    uint64_t instance;         /* a number drawn when it starts */
    uint64_t device_memory;    /* bytes of a device; 0: no worker has told yet */
    ad_principals *principals; /* who may come in */
    ad_tls_context *tls;       /* NULL: no TLS here */
    ad_relay *relays;
    ad_rate refusals;
    ad_observability observability;
    ad_spin spin;
    ad_upgrade upgrade;
    ad_inherited *inherited; /* sockets of the front before */
    ad_session_entry *session_entries[AD_SESSION_ENTRY_CHAINS];
    bool ready, stopping;
    bool embedded; /* serves one connection, and leaves with it */
    int lock;      /* descriptor of the socket's lock file */
    char *socket;  /* path of the Unix socket; NULL: none */
    int status;    /* of the process */
    uv_signal_t signals[AD_FRONT_SIGNALS];
    uv_timer_t patience; /* workers that do not stop are killed */
    uv_timer_t retry;    /* a worker may be started again */
    uv_poll_t parent;    /* of an embedded server */
    uv_poll_t door;      /* by which its client's further connections come ... */
    int door_fd;         /* ... a socket; -1: there is none, and its sessions end with their worker */
    uv_timer_t silence;  /* workers that do not answer are killed */
    int64_t looked;      /* when it last looked for those, ns */
};

/* main.c. Leave: stop listening, tell the workers to stop, end the loop when they have. why is for clients that wait.
 */
void ad__front_stop(ad_front *f, int status, const char *why);
/* Sessions outlive their connections, and their workers. */
static inline bool ad__front_resumes(const ad_front *f) {
    return f->config.resume_time > 0 && (!f->embedded || f->door_fd >= 0);
}
/* The first worker is there: say that clients are served. */
void ad__front_ready(ad_front *f);

/* ---- net/listen.c ---- */
/* Open what the configuration names. AD_E_SYSTEM, AD_E_VALUE, AD_E_LIMIT: it runs already. */
int ad__listen_open(ad_front *f, ad_fault *fault);
void ad__listen_close(ad_front *f);
/* Accept on a listening socket, which is the front's from now on, success or not. where: for the log. */
int ad__listen_add(ad_front *f, int fd, ad_way way, const char *where, ad_fault *fault);
/* Let connections wait, or accept them again. */
void ad__listen_rest(ad_front *f, bool rest);
/* Offer the sockets to the next front. AD_E_MEMORY. */
int ad__listen_offer(ad_front *f);
/* Where, for the log: "unix:/run/arrayd.sock tcp:127.0.0.1:7311". */
void ad__listen_text(const ad_front *f, char *out, size_t size);

/* Where the Unix socket is unless the configuration says otherwise; to be freed. NULL: no memory. */
char *ad__listen_default(void);
/* A listening Unix socket of that mode, where no other one is that somebody answers on. AD_E_SYSTEM, AD_E_VALUE,
 * AD_E_LIMIT. */
int ad__listen_at_path(const char *option, const char *path, mode_t mode, int *out, ad_fault *fault);
/* The socket for metrics; *where as in the log. The same. */
int ad__listen_metrics(ad_front *f, int *out, char *where, size_t size, ad_fault *fault);

/* ---- auth/identity.c: who somebody is ---- */
typedef struct ad_entrant {
    char who[AD_PRINCIPAL_SIZE]; /* "uid:1000", "token:alice" ... */
    ad_grants grants;
} ad_entrant;
/* Read the files that say who may come in, and those of TLS; what was read before stays in use on failure. */
int ad__entrance_load(ad_front *f, ad_fault *fault);
void ad__entrance_free(ad_front *f);
/* Where a connection comes from: "uid:1000", "tcp:192.0.2.1", "tls:2001:db8::/64". */
void ad__entrance_from(int fd, ad_way way, char *out, size_t size);
/* Who it is, by what it has shown. token.size 0, certificate NULL: none. AD_E_DENIED. */
int ad__entrance_check(const ad_front *f, ad_way way, int fd, ad_string token, const char *certificate, ad_entrant *out,
                       ad_fault *fault);

/* The process at the other end, where that is the one that the client says it is (and not one that passes it on, or is
 * called otherwise there); else 0. */
uint64_t ad__entrance_process(ad_way way, int fd, uint64_t said);

/* May who is behind a Unix socket see and end what is others'? */
bool ad__entrance_admin(const ad_front *f, int fd, ad_entrant *out);
/* Log that somebody is refused. Strangers must not fill the log: of what is too much for a second only the number. */
void ad__entrance_refused(ad_front *f, const char *who, const char *from, const char *why);

/* ---- auth/users.c ---- */
/* False: in this user namespace several users may have that number. */
bool ad__users_apart(uid_t uid);

/* ---- net/sessions.c: sessions by principal ---- */
void ad__session_entry_hand_over(ad_front *f, ad_hand *h); /* after domains */
/* A session has been given to a worker. AD_E_MEMORY. */
int ad__session_entry_add(ad_front *f, const ad_note *note, ad_domain *d);
/* Whose worker has it; NULL: there is no such session. *own: it is who's. */
ad_domain *ad__session_entry_find(const ad_front *f, uint64_t session, const char *who, bool *own);
/* The session of this principal that a fork began with the key; 0: none has. */
uint64_t ad__session_entry_by_key(const ad_front *f, uint64_t key, const char *who);
bool ad__session_entry_is_of(ad_front *f, uint64_t session, const ad_domain *d); /* that worker has it */
/* Those of the principal whose domain it is go there from another one; how many. They are over unless its worker says
 * AWAY of them. */
uint64_t ad__session_entry_migrate(ad_front *f, const ad_domain *from, ad_domain *to);
/* It is over; also of one that is not there. */
bool ad__session_entry_remove(ad_front *f, uint64_t session, const ad_domain *d); /* false: there was none */
/* Its worker was killed: those that cannot be resumed are over, the others unless the next one says AWAY of them. How
 * many are over. */
uint64_t ad__session_entry_lose_all(ad_front *f, const ad_domain *d);
uint64_t ad__session_entry_remove_lost(ad_front *f, const ad_domain *d);
void ad__session_entry_remove_all(ad_front *f, const ad_domain *d);   /* its worker is gone. NULL: all workers */
uint64_t ad__session_entry_count(const ad_front *f, const char *who); /* NULL: of all */
/* It waits for its client, or does not any more. */
void ad__session_entry_set_away(ad_front *f, uint64_t session, const ad_domain *d, bool away);
/* The session that has waited for its client for the longest time, of who or (NULL) of all, gives way to another one.
 * False: none waits. */
bool ad__session_entry_make_room(ad_front *f, const char *who);

/* ---- net/handshake.c ---- */
/* Greet a new connection; fd is the handshake's. */
void ad__handshake_begin(ad_front *f, int fd, ad_way way);
/* A worker has become ready, or is not to be had: go on with those who wait for it. */
void ad__handshake_wake(ad_front *f);
/* The worker has taken the session: its client is welcomed. */
void ad__handshake_begun(ad_front *f, uint64_t session);
/* The worker has died, or could not take one session (0: all that it has not taken): another one is looked for. */
void ad__handshake_lost(ad_front *f, const ad_domain *d, uint64_t session);
uint64_t ad__handshake_count(const ad_front *f); /* connections that have not been let in */
void ad__handshake_close_all(ad_front *f, const char *why);
/* Do not hear those that have not said anything, or hear them again; how many others there are. */
unsigned ad__handshake_pause(ad_front *f, bool pause);
void ad__handshake_end_busy(ad_front *f); /* close those others: their clients try again */
/* Offer those that have not said anything to the next front, which begins with them. AD_E_MEMORY. */
int ad__handshake_offer(ad_front *f);
void ad__handshake_adopt(ad_front *f);

/* ---- workers/domain.c ---- */
typedef enum ad_domain_state { AD_DOMAIN_STARTING, AD_DOMAIN_READY, AD_DOMAIN_FAILED } ad_domain_state;
/* The worker of a principal's trust domain, started if it must be. *state says how it is; when it failed the fault
 * says why, and a later call tries again. NULL: no memory. */
ad_domain *ad__domain_of(ad_front *f, const ad_entrant *who, ad_domain_state *state, ad_fault *fault);
bool ad__domain_is_ready(const ad_domain *d);
/* A session that was given to its worker, which has died, is given to another one. */
void ad__domain_forget(ad_front *f, const ad_domain *d, uint64_t session);
/* What the worker offers. */
const ad_note *ad__domain_offer(const ad_domain *d);
/* Hand a client on, by a note SESSION: fd is the domain's, success or not. */
int ad__domain_give(ad_domain *d, const ad_note *note, int fd);
/* The same of one that comes back, by a note RESUME, and other notes (fd -1). */
int ad__domain_tell(ad_domain *d, const ad_note *note, int fd);
ad_domain *ad__domain_named(const ad_front *f, const char *name); /* NULL: there is none */
const char *ad__domain_name(const ad_domain *d);
/* Where arrayd-worker is. */
void ad__domain_worker_path(const ad_front *f, char *out, size_t size);

/* ---- workers/domain_end.c ---- */
void ad__domain_stop_all(ad_front *f);
void ad__domain_kill_all(ad_front *f);
bool ad__domain_any(const ad_front *f); /* is some worker's process still there? */
void ad__domain_free_all(ad_front *f);
/* Ask workers what nobody could go on with: how many are asked. Each answers with a note LEAVING. */
unsigned ad__domain_ask_leaving(ad_front *f);
void ad__domain_leaving(ad_domain *d, const ad_note *note);
const char *ad__domain_silent(const ad_front *f); /* one that has not answered; NULL: all have */
/* Have them leave, with all that another one needs written down. */
void ad__domain_leave_all(ad_front *f);
/* Start those for which sessions wait. */
void ad__domain_restart_all(ad_front *f);
bool ad__domain_recovers(const ad_front *f); /* some have not been taken over yet */
void ad__domain_hand(ad_front *f, ad_hand *h);
void ad__domain_adopt(ad_domain *d); /* one more session that was handed over */

/* Tell all workers what is reserved now. */
void ad__domain_reserve_all(ad_front *f);

/* ---- workers/liveness.c ---- */
/* Look after workers that do not answer, from now on. A status of libuv's. */
int ad__silence_watch(ad_front *f);

/* ---- workers/migration.c ---- */
/* The principal is leaving the shared worker at this moment: its sessions are nowhere. */
bool ad__migration_is_under_way(const ad_front *f, const char *who);

/* ---- workers/reserved.c ---- */
/* Whether a device has as much as is reserved, as far as is known. AD_E_VALUE. */
int ad__reserved_check(const ad_front *f, const ad_principals *p, ad_fault *fault);
/* Tell a worker. AD_E_CONNECTION, AD_E_MEMORY. */
int ad__reserved_tell(const ad_front *f, ad_channel *c);
bool ad__reserved_any(const ad_front *f);

/* ---- net/spin.c ---- */
void ad__spin_init(ad_front *f);
void ad__spin_heard(ad_front *f); /* bytes of a relay have come */

/* ---- workers/slabs.c: descriptors of a worker's slabs, which keep them alive when the worker is gone ---- */
ad_slabs *ad__slabs_new(void);                               /* NULL: no memory */
int ad__slabs_add(ad_slabs *s, const ad_note *note, int fd); /* takes fd. AD_E_MEMORY, AD_E_PROTOCOL */
void ad__slabs_remove(ad_slabs *s, uint64_t id);
size_t ad__slabs_count(const ad_slabs *s, uint64_t *bytes);
void ad__slabs_free(ad_slabs *s);
void ad__slabs_hand(ad_slabs *s, ad_hand *h);
/* Those of a principal, and what of host memory was set apart for it (AD_PARTED), go to a list that has none.
 * AD_E_MEMORY, AD_E_PROTOCOL. */
int ad__slabs_migrate(ad_slabs *from, ad_slabs *to, const char *who);

/* Tell another worker of all, by notes OLD_SLAB. AD_E_SYSTEM, AD_E_CONNECTION, AD_E_MEMORY. */
int ad__slabs_tell(const ad_slabs *s, ad_channel *c);
uint64_t ad__slabs_last(const ad_slabs *s); /* the greatest id that there has been */

/* ---- workers/worker_files.c ---- */
typedef struct ad_keep {
    unsigned deaths;         /* of workers that were taking over from the one before */
    ad_death death;          /* how that one has ended ... */
    char how[AD_DEATH_TEXT]; /* ... and what of, where it was by itself */
    int journal, old;        /* of the worker; of the one before, until it has been taken over. -1: none */
    struct ad_kept_descriptor {
        uint64_t session, number; /* so many had that passed before */
        uint64_t before;          /* bytes that the worker had received before those it came with */
        int fd;
    } * passed;
    size_t count, capacity;
} ad_keep;

void ad__keep_init(ad_keep *k);
void ad__keep_clear(ad_keep *k);
void ad__keep_journal(ad_keep *k, int fd);
void ad__keep_descriptor(ad_keep *k, const ad_note *note, int fd); /* notes DESCRIPTOR, DESCRIPTOR_GONE */
void ad__keep_session_over(ad_keep *k, uint64_t session);
bool ad__keep_can_recover(const ad_keep *k);
/* How it has ended, with what of if it did by itself. False: too many have died of what it left; nobody can go on with
 * that. */
bool ad__keep_worker_gone(ad_keep *k, ad_death death, const char *how);
void ad__keep_recovered(ad_keep *k);
void ad__keep_hand(ad_keep *k, ad_hand *h);
/* Room for all of another one's descriptors. AD_E_MEMORY. */
int ad__keep_reserve(ad_keep *k, const ad_keep *other);
/* Those of the sessions that are the domain's now go there, with a journal that its worker is to go on with; there is
 * room for them. */
void ad__worker_files_migrate(ad_front *f, ad_keep *from, const ad_domain *to, ad_keep *k, int journal);
/* Tell the next worker. AD_E_SYSTEM, AD_E_CONNECTION, AD_E_MEMORY. */
int ad__keep_tell(const ad_keep *k, ad_channel *c, ad_slabs *slabs);

/* ---- net/activation.c ---- */
/* Accept on the Unix sockets that a service manager has opened and passed on ($LISTEN_FDS); *passed says how many. */
int ad__activation_take(ad_front *f, int *passed, ad_fault *fault);

/* ---- upgrade/handover.c: from one front to the next (upgrade/upgrade.h) ---- */
/* What two fronts have in common of which one can take over from the other. */
void ad__handover_layout(char out[AD_HAND_LAYOUT]);
/* The new program: could it take over from a front of that layout, with this configuration? It ends as its worker,
 * which answers the same; returns only why not, and has printed its version either way. */
int ad__handover_check(ad_front *f, const char *theirs, ad_fault *fault);
/* The arguments of this program, with one before them; to be freed. NULL: no memory. */
char **ad__handover_arguments(ad_front *f, char *first);
/* Execute the program at f->path, and hand all over. Returns only if that cannot be. */
void ad__handover_exec(ad_front *f, ad_fault *fault);
/* The new one: read the record; and, when it listens, go on. AD_E_PROTOCOL. */
int ad__handover_read(ad_front *f, int record, ad_fault *fault);
void ad__handover_done(ad_front *f);
extern const int ad__front_signals[AD_FRONT_SIGNALS]; /* all of them wait from one front to the next */
void ad__handover_let_signals_in(void);
/* Offer a descriptor to the next front, by a name and what else makes it what it is. AD_E_MEMORY. */
int ad__inherit_offer(ad_front *f, const char *name, const char *text, int fd);
/* One that was offered; -1: there is none, and those of that name are closed. */
int ad__inherit(ad_front *f, const char *name, const char *text);
/* One of that name, and its text; -1: there is none. */
int ad__inherit_any(ad_front *f, const char *name, char *text, size_t size);

/* ---- notify.c ---- */
/* Tell the service manager, if there is one ($NOTIFY_SOCKET): "READY=1", "STOPPING=1". */
void ad__notify(const char *state);

#endif
