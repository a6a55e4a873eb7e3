/* arrayd itself, the front. It never touches a device.
 *
 *     client --connect--> listen -> handshake -> session entry -> domain --note SESSION + socket--> worker
 *                           |           |                           |
 *                         (TLS: relay)  auth: who it is             slabs, worker files: what survives a worker
 *
 * All code of the front runs in one thread, that of the loop. */
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
typedef struct ad_peers ad_peers;
typedef struct ad_pull ad_pull;

#define AD_SESSION_ENTRY_CHAINS 256
#define AD_FRONT_SIGNALS 4 /* signals that it handles: to stop, to read its configuration again, to be upgraded */
#define AD_HAND_LAYOUT 112 /* bytes of the text that describes the layouts of a record and a journal */

/* Ways in which a client has connected. */
typedef enum ad_way { AD_WAY_UNIX, AD_WAY_TCP, AD_WAY_TLS } ad_way;

/* The state of spinning: the loop may spin before it sleeps (net/spin.c). */
typedef struct ad_spin {
    uv_check_t after_poll;
    uv_idle_t busy;
    int64_t heard, idle; /* heard: when bytes last came; idle: when nothing more was to do after them; ns */
    int quick;           /* how often of late the next bytes came soon */
} ad_spin;

/* The number of events in the present second. */
typedef struct ad_rate {
    int64_t since; /* ns */
    unsigned long count;
} ad_rate;

struct ad_front {
    uv_loop_t loop;
    ad_config config;
    struct {
        int argc;
        char **argv;
        char program[4096]; /* path of this program's file */
        char path[4096];    /* path as which it was started; an upgrade looks there for the new program */
    } started;
    ad_domain *domains; /* domains of all workers, running and failed */
    ad_listener *listeners;
    ad_handshake *handshakes; /* newest first */
    uint64_t sessions, last_session;
    uint64_t instance;         /* a random number, drawn at the start */
    uint64_t device_memory;    /* bytes of a device's memory; 0: no worker has told them yet */
    ad_principals *principals; /* who may come in */
    struct {
        ad_peers *known; /* servers from which arrays are fetched */
        ad_pull *pulls;  /* arrays that are fetched, and answers about some */
    } peers;
    ad_tls_context *tls; /* NULL: there is no TLS */
    ad_relay *relays;
    ad_rate refusals;
    ad_observability observability;
    ad_spin spin;
    ad_upgrade upgrade;
    ad_inherited *inherited; /* sockets of the previous front */
    struct {
        ad_session_entry *chains[AD_SESSION_ENTRY_CHAINS];
        ad_session_entry *first, *last; /* those whose token expires, the next to expire first */
    } entries;
    bool ready, stopping;
    bool embedded; /* it serves one client, and ends with it */
    int lock;      /* descriptor of the socket's lock file */
    char *socket;  /* path of the Unix socket; NULL: none */
    int status;    /* exit status of the process */
    uv_signal_t signals[AD_FRONT_SIGNALS];
    struct {
        uv_timer_t patience; /* workers that do not stop are killed */
        uv_timer_t retry;    /* a worker may be started again */
        uv_timer_t silence;  /* workers that do not answer are killed */
        uv_timer_t expiry;   /* sessions whose token has expired are ended */
        int64_t looked;      /* when `silence` last ran, ns */
    } timers;
    uv_poll_t parent; /* process of an embedded server's client */
    struct {
        uv_poll_t poll;
        int fd; /* -1: there is none, and sessions end with their worker */
    } door;     /* socket by which an embedded server's client opens further connections */
};

/* main.c. Stop: end listening, tell the workers to stop, and end the loop when they have. why is what waiting
 * clients are told. */
void ad__front_stop(ad_front *f, int status, const char *why);
/* Tell whether sessions outlive their connections and their workers. */
static inline bool ad__front_resumes(const ad_front *f) {
    return f->config.resume_time > 0 && (!f->embedded || f->door.fd >= 0);
}
/* A worker is ready: log that clients are served, and go on with those that wait. */
void ad__front_ready(ad_front *f);

/* ---- net/listen.c ---- */
/* Open all sockets that the configuration names. AD_E_SYSTEM, AD_E_VALUE, AD_E_LIMIT: another arrayd serves them. */
int ad__listen_open(ad_front *f, ad_fault *fault);
void ad__listen_close(ad_front *f);
/* Accept connections on a listening socket, which the front owns in any case. where: its name in the log.
 * AD_E_SYSTEM. */
int ad__listen_add(ad_front *f, int fd, ad_way way, const char *where, ad_fault *fault);
/* Let new connections wait (pause), or accept them again. */
void ad__listen_pause(ad_front *f, bool pause);
/* Offer the listening sockets to the next front. AD_E_MEMORY. */
int ad__listen_offer(ad_front *f);
/* Format the listening addresses for the log: "unix:/run/arrayd.sock tcp:127.0.0.1:7311". */
void ad__listen_text(const ad_front *f, char *out, size_t size);

/* Format the address that is served with TLS: "0.0.0.0:7312". False: there is none. */
bool ad__listen_tls(const ad_front *f, char *out, size_t size);

/* Find the default path of the Unix socket. */
#define AD_SOCKET_PATH 4096 /* bytes of the longest path of a socket, whose file may have a suffix */
void ad__listen_default(char out[AD_SOCKET_PATH]);
/* Create a listening Unix socket with that mode, unless somebody answers on that path. AD_E_SYSTEM, AD_E_VALUE,
 * AD_E_LIMIT. */
int ad__listen_at_path(const char *option, const char *path, mode_t mode, int *out, ad_fault *fault);
/* Create the listening socket for metrics; *where is its name in the log. AD_E_SYSTEM, AD_E_VALUE. */
int ad__listen_metrics(ad_front *f, int *out, char *where, size_t size, ad_fault *fault);

/* ---- auth/identity.c: who somebody is ---- */
typedef struct ad_entrant {
    char who[AD_PRINCIPAL_SIZE]; /* the principal: "uid:1000", "token:alice" ... */
    ad_grants grants;
    char token[AD_PRINCIPAL_SIZE]; /* owner of the token that it has shown, "token:alice": a server may come for another
                                      principal by its own. "": it has shown none */
    int64_t expires;               /* when the token does, in seconds since 1970; 0: never */
} ad_entrant;
/* Read the files of principals and tokens, and those of TLS. On failure the previous ones stay in use. AD_E_VALUE,
 * AD_E_SYSTEM, AD_E_MEMORY, AD_E_DENIED. */
int ad__entrance_load(ad_front *f, ad_fault *fault);
void ad__entrance_free(ad_front *f);
/* Format where a connection comes from: "uid:1000", "tcp:192.0.2.1", "tls:2001:db8::/64". */
void ad__entrance_from(int fd, ad_way way, char *out, size_t size);
/* Identify a client by what it has shown, and check that it may connect. token.size 0, certificate NULL: it has
 * shown none. AD_E_DENIED. */
int ad__entrance_check(const ad_front *f, ad_way way, int fd, ad_string token, const char *certificate, ad_entrant *out,
                       ad_fault *fault);

/* Check the process that a client says it is against the kernel's word. 0: another process is at the other end, such
 * as one that passes data on, or its number is another one here. */
uint64_t ad__entrance_process(ad_way way, int fd, uint64_t said);

/* End all sessions of a principal, and those for which its token was shown. Clients are told why. Returns how many
 * there were. */
uint64_t ad__entrance_dismiss(ad_front *f, const char *who, const char *why);
/* Read again what may change while the server runs: the log's level, the files of principals and tokens, the
 * certificate. On failure, which is logged, all is as it was. (main.c) */
int ad__front_reload(ad_front *f, ad_fault *fault);

/* ---- auth/self_signed.c ---- */
/* With the option self-signed: make the certificate and the file of tokens where they are missing, and name them in the
 * configuration. AD_E_VALUE, AD_E_SYSTEM, AD_E_TLS, AD_E_MEMORY. */
int ad__self_signed_prepare(ad_config *c, ad_fault *fault);

/* Tell whether the user of a Unix socket may administer this server. */
bool ad__entrance_admin(const ad_front *f, int fd, ad_entrant *out);
/* Log that a client is refused, and count it. Beyond a limit per second only the number is logged, so that strangers
 * cannot fill the log. */
void ad__entrance_refused(ad_front *f, const char *who, const char *from, const char *why);

/* ---- auth/users.c ---- */
/* Tell whether this user id stands for one user only. False: several users may have it in this user namespace. */
bool ad__users_are_distinct(uid_t uid);

/* ---- net/sessions.c: sessions by principal ---- */
/* Hand the entries over to the next front; after the domains. */
void ad__session_entry_hand_over(ad_front *f, ad_hand *h);
/* Add the entry of a session that a worker is given. AD_E_MEMORY. */
int ad__session_entry_add(ad_front *f, const ad_note *note, ad_domain *d);
/* Find the domain that has a session; NULL: there is no such session. *own: the session belongs to `who`. */
ad_domain *ad__session_entry_find(const ad_front *f, uint64_t session, const char *who, bool *own);
/* Find the session of a principal that a fork has opened with this key; 0: there is none. */
uint64_t ad__session_entry_by_key(const ad_front *f, uint64_t key, const char *who);
/* Get the principal of a domain's session. NULL: the domain has no such session. */
const char *ad__session_entry_who(ad_front *f, uint64_t session, const ad_domain *d);
bool ad__session_entry_is_of(ad_front *f, uint64_t session,
                             const ad_domain *d); /* whether the domain has the session */
/* Move a principal's entries to its own domain, and return how many there are. They are removed later unless that
 * domain's worker says AWAY of them. */
uint64_t ad__session_entry_migrate(ad_front *f, const ad_domain *from, ad_domain *to);
/* Remove the entry of a session that has ended. */
bool ad__session_entry_remove(ad_front *f, uint64_t session, const ad_domain *d); /* false: there is none */
/* After a worker was killed, remove its sessions that cannot be resumed, and mark the others as lost until the
 * successor says AWAY of them. Returns how many were removed. */
uint64_t ad__session_entry_lose_all(ad_front *f, const ad_domain *d);
uint64_t ad__session_entry_remove_lost(ad_front *f, const ad_domain *d);
void ad__session_entry_remove_all(ad_front *f, const ad_domain *d); /* remove the domain's entries; NULL: all entries */
/* Whose sessions of a principal are meant: its own clients', or those of servers that come for it (grant peer). What
 * those open takes no room of its own sessions, and ends none of them: who may ask another server for an array names
 * any principal. */
typedef enum ad_clients { AD_CLIENTS_ALL, AD_CLIENTS_OWN, AD_CLIENTS_PEERS } ad_clients;
/* Number of sessions; who NULL: of all principals. */
uint64_t ad__session_entry_count(const ad_front *f, const char *who, ad_clients clients);
/* Set the token that a session has come by, and ends with. */
void ad__session_entry_set_token(ad_front *f, uint64_t session, const ad_domain *d, const ad_entrant *who);
/* Take the times at which tokens expire from principals that were read anew. A token that is no longer among them
 * expires when it would have. */
void ad__session_entry_renew(ad_front *f);
/* Have workers end the sessions whose token has expired, in the order in which they do. A worker that cannot be told
 * now is told the next time. */
void ad__session_entry_end_expired(ad_front *f, int64_t now, const char *why);
/* Have workers end all sessions of a principal, or for which its token was shown. Returns how many. */
uint64_t ad__session_entry_end(ad_front *f, const char *who, const char *why);
/* Set whether a session waits for its client. */
void ad__session_entry_set_away(ad_front *f, uint64_t session, const ad_domain *d, bool away);
/* Give up the session that has waited longest for its client, of a principal or (NULL) of all. False: none waits. */
bool ad__session_entry_make_room(ad_front *f, const char *who, ad_clients clients);

/* ---- net/handshake.c ---- */
/* Begin the handshake with a new connection, which owns fd. */
void ad__handshake_begin(ad_front *f, int fd, ad_way way);
/* Begin it with a program of ours, which comes for a principal. */
void ad__handshake_begin_as(ad_front *f, int fd, const ad_entrant *who);
/* Go on with clients that wait for a worker: one is ready, or cannot be had. */
void ad__handshake_wake(ad_front *f);
/* The worker has taken the session: welcome its client. */
void ad__handshake_begun(ad_front *f, uint64_t session);
/* The worker has died, or could not take one session (0: all that it has not taken): find another worker for their
 * clients. */
void ad__handshake_lost(ad_front *f, const ad_domain *d, uint64_t session);
uint64_t ad__handshake_count(const ad_front *f); /* number of connections in their handshake */
void ad__handshake_close_all(ad_front *f, const char *why);
/* Refuse a principal's clients that wait for a worker. */
void ad__handshake_refuse_all(ad_front *f, const char *who, const char *why);
/* Refuse clients that wait for a worker and whose token has expired. */
void ad__handshake_refuse_expired(ad_front *f, int64_t now, const char *why);
/* Stop or resume reading from clients that have sent nothing; returns the number of the others. */
unsigned ad__handshake_pause(ad_front *f, bool pause);
void ad__handshake_end_busy(ad_front *f); /* close the others, whose clients try again */
/* Offer clients that have sent nothing to the next front, which begins with them. AD_E_MEMORY. */
int ad__handshake_offer(ad_front *f);
void ad__handshake_adopt(ad_front *f);

/* ---- workers/domain.c ---- */
typedef enum ad_domain_state { AD_DOMAIN_STARTING, AD_DOMAIN_READY, AD_DOMAIN_FAILED } ad_domain_state;
/* Find the worker of a principal's trust domain, and start it if necessary. *state says how it is; when it failed
 * the fault says why, and a later call tries again. NULL: no memory. */
ad_domain *ad__domain_of(ad_front *f, const ad_entrant *who, ad_domain_state *state, ad_fault *fault);
bool ad__domain_is_ready(const ad_domain *d);
/* Forget a session that was given to a worker, which has died before it took it. */
void ad__domain_forget(ad_front *f, const ad_domain *d, uint64_t session);
/* The worker's note READY, with its backend and devices. */
const ad_note *ad__domain_offer(const ad_domain *d);
/* Give a client to the worker by a note SESSION; the domain owns fd in any case. AD_E_CONNECTION, AD_E_MEMORY. */
int ad__domain_give(ad_domain *d, const ad_note *note, int fd);
/* Send a note to the worker: RESUME with a returning client's socket, or another one with fd -1. The domain owns fd
 * in any case. AD_E_CONNECTION, AD_E_MEMORY. */
int ad__domain_tell(ad_domain *d, const ad_note *note, int fd);
ad_domain *ad__domain_named(const ad_front *f, const char *name); /* the domain of that name; NULL: there is none */
const char *ad__domain_name(const ad_domain *d);
ad_front *ad__domain_front(const ad_domain *d);
/* Find the path of arrayd-worker. */
void ad__domain_worker_path(const ad_front *f, char *out, size_t size);

/* ---- workers/domain_end.c ---- */
void ad__domain_stop_all(ad_front *f);
void ad__domain_kill_all(ad_front *f);
bool ad__domain_is_any_running(const ad_front *f); /* whether a worker's process is still there */
void ad__domain_free_all(ad_front *f);
/* Ask workers how many sessions no successor could go on with; each answers with a note LEAVING. Returns how many
 * are asked. */
unsigned ad__domain_ask_leaving(ad_front *f);
void ad__domain_leaving(ad_domain *d, const ad_note *note);
const char *ad__domain_find_silent(const ad_front *f); /* name of a domain that has not answered; NULL: all have */
/* Let all workers complete their journals and leave. */
void ad__domain_leave_all(ad_front *f);
/* Start the workers for which sessions wait. */
void ad__domain_restart_all(ad_front *f);
bool ad__domain_recovers(const ad_front *f); /* whether a worker is still to recover an old journal */
void ad__domain_hand_over(ad_front *f, ad_hand *h);
void ad__domain_count_session(ad_domain *d); /* one more session of the domain was handed over */

/* Tell all workers what memory is reserved now. */
void ad__domain_reserve_all(ad_front *f);

/* ---- workers/liveness.c ---- */
/* Watch for workers that do not answer, from now on. A status of libuv's. */
int ad__silence_watch(ad_front *f);

/* ---- workers/migration.c ---- */
/* Tell whether the principal is leaving the shared worker at this moment, so that no worker has its sessions. */
bool ad__migration_is_under_way(const ad_front *f, const char *who);

/* ---- workers/reserved.c ---- */
/* Check that no device has less memory than is reserved of it, as far as is known. AD_E_VALUE. */
int ad__reserved_check(const ad_front *f, const ad_principals *p, ad_fault *fault);
/* Tell a worker what memory is reserved. AD_E_CONNECTION, AD_E_MEMORY. */
int ad__reserved_tell(const ad_front *f, ad_channel *c);
bool ad__reserved_any(const ad_front *f);

/* ---- net/spin.c ---- */
void ad__spin_init(ad_front *f);
void ad__spin_heard(ad_front *f); /* bytes of a relay have come */

/* ---- workers/slabs.c: descriptors of a worker's slabs, which keep them alive when the worker is gone ---- */
ad_slabs *ad__slabs_new(void);                               /* NULL: no memory */
int ad__slabs_add(ad_slabs *s, const ad_note *note, int fd); /* owns fd. AD_E_MEMORY, AD_E_PROTOCOL, AD_E_SYSTEM */
void ad__slabs_remove(ad_slabs *s, uint64_t id);
size_t ad__slabs_count(const ad_slabs *s, uint64_t *bytes);
void ad__slabs_free(ad_slabs *s);
void ad__slabs_hand_over(ad_slabs *s, ad_hand *h);
/* Move a principal's slabs, and the host memory that migrates with it (AD_PARTED), to an empty list. AD_E_MEMORY,
 * AD_E_PROTOCOL. */
int ad__slabs_migrate(ad_slabs *from, ad_slabs *to, const char *who);

/* Tell another worker of all slabs, by notes OLD_SLAB. AD_E_SYSTEM, AD_E_CONNECTION, AD_E_MEMORY. */
int ad__slabs_tell(const ad_slabs *s, ad_channel *c);
uint64_t ad__slabs_last(const ad_slabs *s); /* the greatest id so far */

/* ---- workers/worker_files.c ---- */
typedef struct ad_worker_files {
    unsigned deaths;         /* successors that have died while they recovered from `old` */
    unsigned killed;         /* deaths of successors that were killed from outside, as far as this process knows */
    ad_death death;          /* how the previous worker ended */
    char how[AD_DEATH_TEXT]; /* what ended it, if it crashed */
    /* journal: of the present worker; old: of the previous one, until its successor has recovered. -1: none. */
    int journal, old;
    struct ad_passed_descriptor {
        uint64_t session, number; /* number: how many the session had passed before */
        uint64_t before;          /* bytes that the worker had received before the message with it */
        int fd;
    } * passed;
    size_t count, capacity;
} ad_worker_files;

void ad__worker_files_init(ad_worker_files *k);
void ad__worker_files_clear(ad_worker_files *k);
void ad__worker_files_set_journal(ad_worker_files *k, int fd);
/* Handle notes DESCRIPTOR and DESCRIPTOR_GONE; owns fd. */
void ad__worker_files_take_descriptor(ad_worker_files *k, const ad_note *note, int fd);
void ad__worker_files_end_session(ad_worker_files *k, uint64_t session);
bool ad__worker_files_can_recover(const ad_worker_files *k);
/* The worker has ended: its journal becomes the old one. how: what ended it, if it crashed. False: too many
 * successors have died of the old journal, so that it is given up. */
bool ad__worker_files_lose_worker(ad_worker_files *k, ad_death death, const char *how);
/* Forget the old journal, and descriptors of the domain's sessions that have ended without the worker's saying so. */
void ad__worker_files_finish_recovery(ad_front *f, ad_worker_files *k, const ad_domain *d);
void ad__worker_files_hand_over(ad_worker_files *k, ad_hand *h);
/* Make room for all descriptors of another worker. AD_E_MEMORY. */
int ad__worker_files_reserve(ad_worker_files *k, const ad_worker_files *other);
/* Move the descriptors of the domain's sessions to `k`, which has room for them, with a journal from which its
 * worker recovers. */
void ad__worker_files_migrate(ad_front *f, ad_worker_files *from, const ad_domain *to, ad_worker_files *k, int journal);
/* Tell a successor of all slabs, descriptors and the old journal. AD_E_SYSTEM, AD_E_CONNECTION, AD_E_MEMORY. */
int ad__worker_files_tell(const ad_worker_files *k, ad_channel *c, ad_slabs *slabs);

/* ---- net/activation.c ---- */
/* Accept connections on the Unix sockets that a service manager has opened and passed ($LISTEN_FDS); *passed says
 * how many. AD_E_VALUE, AD_E_LIMIT, AD_E_SYSTEM. */
int ad__activation_take(ad_front *f, int *passed, ad_fault *fault);

/* ---- upgrade/handover.c: from one front to the next (upgrade/upgrade.h) ---- */
/* Describe the layouts of record and journal; fronts with the same text can take over from each other. */
void ad__handover_layout(char out[AD_HAND_LAYOUT]);
/* In the new program: check that it can take over from a front of that layout with this configuration. It prints its
 * version and becomes its worker, which checks the same. Returns only the reason why not. */
int ad__handover_check(ad_front *f, const char *theirs, ad_fault *fault);
/* Make the arguments of this program, with `first` before them; the caller frees the list. NULL: no memory. */
char **ad__handover_arguments(ad_front *f, char *first);
/* Execute the program at f->started.path, and hand all over to it. Returns only if this cannot be done. */
void ad__handover_exec(ad_front *f, ad_fault *fault);
/* In the new front: read the record. AD_E_PROTOCOL. */
int ad__handover_read(ad_front *f, int record, ad_fault *fault);
/* In the new front, once it listens: adopt waiting clients, and start the workers. */
void ad__handover_done(ad_front *f);
extern const int ad__front_signals[AD_FRONT_SIGNALS]; /* blocked from one front to the next */
void ad__handover_let_signals_in(void);
/* Offer a descriptor to the next front, with a name and a text that identify it. AD_E_MEMORY. */
int ad__inherit_offer(ad_front *f, const char *name, const char *text, int fd);
/* Take a descriptor that was offered; -1: there is none, and others of that name are closed. */
int ad__inherit(ad_front *f, const char *name, const char *text);
/* Take any descriptor of that name, and its text; -1: there is none. */
int ad__inherit_any(ad_front *f, const char *name, char *text, size_t size);

/* ---- notify.c ---- */
/* Tell the service manager, if there is one ($NOTIFY_SOCKET): "READY=1", "STOPPING=1". */
void ad__notify(const char *state);

#endif
