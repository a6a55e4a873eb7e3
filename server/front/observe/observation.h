/* Observing arrayd: reports of its workers, their health, and the observers that wait for these.
 *
 *     arrayctl, HTTP            rounds                      workers
 *     observer --join--> next | now --begin--> REPORT or a probe ----> worker
 *     observer <---------------- done --- over <--- REPORTED or sum --- */
#ifndef AD_SERVER_FRONT_OBSERVE_OBSERVATION_H
#define AD_SERVER_FRONT_OBSERVE_OBSERVATION_H

#include <uv.h>

#include "protocol/message.h"
#include "server/common/channel.h"
#include "server/common/report.h"

struct ad_front;
struct ad_domain;

/* An observer waits until a round is over; it is a member of what the observing code owns. */
typedef struct ad_observer ad_observer;
struct ad_observer {
    ad_observer *next;
    void (*done)(ad_observer *w); /* may be called before the function that asked returns */
    uint64_t what;                /* AD_REPORT_WITH_NAMES; 0: without */
    bool waiting;
};

/* The observations of one worker; a member of its domain. */
typedef struct ad_observation {
    ad_report report;
    int64_t at;           /* when the report came, ns; 0: none has */
    uint64_t question;    /* number of the last question */
    bool asked;           /* the last question has no answer yet */
    uint64_t answered;    /* number of the last question with an answer */
    uint64_t starts;      /* worker processes of this domain so far */
    bool probed, works;   /* result of the last probe: probed: there is one; works: it succeeded */
    unsigned probes_open; /* probes whose session has not ended in the worker */
    double took;          /* seconds that the last probe took */
    char trouble[AD_FAULT_TEXT];
} ad_observation;

/* Rounds of questions to all workers. An observer that comes during a round joins the next one, so that no answer is
 * older than its question. A pause between rounds keeps endless questions cheap for the workers. */
typedef struct ad_rounds {
    ad_observer *now, *next;
    bool under_way;
    struct ad_front *front;
    void (*begin)(struct ad_front *f); /* ask the workers; ad__round_over ends the round, perhaps before this returns */
    uv_timer_t timer;
    int64_t pause, last; /* ns; last: when the last round began */
} ad_rounds;

/* A text that is made once for all observers of a round. */
typedef struct ad_shared_text {
    ad_bytes text;
    uint64_t question; /* the question whose answers the text shows */
} ad_shared_text;

typedef struct ad_control ad_control;
typedef struct ad_http ad_http;
typedef struct ad_probe ad_probe;

/* All that is observed; a member of the front. */
typedef struct ad_observability {
    ad_rounds reports, health;
    uint64_t question, probes;
    ad_shared_text status, metrics;
    uv_timer_t report_patience;
    ad_probe *probing;
    ad_control *control; /* the control socket; NULL: there is none */
    ad_http *http;
    int64_t began; /* when the process began, ns */
    uint64_t refused;
} ad_observability;

/* The public facts of a domain. */
typedef struct ad_domain_facts {
    const char *name, *state, *why; /* why: the reason of state "failed"; else "" */
    int pid;                        /* the worker's process; 0: there is none */
    bool ready;
    const ad_note *offer;
    uint64_t sessions, slabs, slab_bytes; /* slabs, slab_bytes: of the slabs whose descriptors the front holds */
    int64_t started;
    ad_observation *observation;
} ad_domain_facts;

/* ---- workers/domain.c ---- */
/* The domain after d; NULL: the first one. */
struct ad_domain *ad__domain_next(const struct ad_front *f, const struct ad_domain *d);
void ad__domain_facts(struct ad_domain *d, ad_domain_facts *out);
/* Send a note to a worker that is ready; fd as in ad__channel_send. AD_E_CONNECTION: it is not ready; AD_E_MEMORY. */
int ad__domain_tell_if_ready(struct ad_domain *d, const ad_note *note, int fd);

/* ---- process_usage.c ---- */
typedef struct ad_process_cost {
    uint64_t resident, descriptors; /* bytes of memory; number of open descriptors */
    double cpu;                     /* seconds of processor time */
} ad_process_cost;
/* Read what a process uses. All 0: the process has gone, or pid is 0. */
void ad__process_cost(int pid, ad_process_cost *out);
typedef struct ad_pulse {
    char state;          /* state of its first thread, as in /proc: R, S, D, T, t ... */
    unsigned long ticks; /* clock ticks of processor time of all its threads */
} ad_pulse;
/* Read a process's state and processor time. False: it has gone, or is hidden. */
bool ad__process_pulse(int pid, ad_pulse *out);

/* ---- collect.c: reports ---- */
void ad__observability_init(struct ad_front *f);
void ad__observability_close(struct ad_front *f); /* Answer no observer any more, as the loop ends. */
/* Collect reports. For a worker that does not answer within a second the previous report stays. */
void ad__collect(struct ad_front *f, ad_observer *w);
/* Take a worker's report; owns fd. ad__collect_gone: the worker has gone. */
void ad__collect_answer(struct ad_front *f, ad_observation *s, const ad_note *note, int fd);
void ad__collect_gone(struct ad_front *f, ad_observation *s);
/* Remove an observer that is no longer there. */
void ad__observer_remove(ad_rounds *r, ad_observer *w);
void ad__rounds_init(struct ad_front *f, ad_rounds *r, void (*begin)(struct ad_front *f), int64_t pause);
void ad__round_join(ad_rounds *r, ad_observer *w);
void ad__round_over(ad_rounds *r);
/* Stop all rounds. */
void ad__rounds_close(ad_rounds *r);

/* ---- health.c ---- */
void ad__health_init(struct ad_front *f);
/* Probe every worker. */
void ad__health(struct ad_front *f, ad_observer *w);
bool ad__health_good(struct ad_front *f); /* whether all workers of the last round work */
void ad__health_close(struct ad_front *f);

/* ---- status.c ---- */
/* Append a text that `put` makes once for all observers with the same answers. */
void ad__append_shared_text(struct ad_front *f, ad_shared_text *said, void (*put)(struct ad_front *f, ad_bytes *out),
                            ad_bytes *out);
/* Append all that is known as JSON, or health alone. */
void ad__status_json(struct ad_front *f, ad_bytes *out);
void ad__health_json(struct ad_front *f, ad_bytes *out);
/* Find a session by its name in JSON: its id and its worker; NULL: there is no such session now. */
struct ad_domain *ad__status_session(struct ad_front *f, const char *name, uint64_t *id, bool *ending);

/* ---- metrics.c ---- */
void ad__metrics_text(struct ad_front *f, ad_bytes *out);

/* ---- control.c, http.c: who asks ---- */
/* Listen where the configuration says. AD_E_SYSTEM, AD_E_VALUE, AD_E_MEMORY. */
int ad__control_open(struct ad_front *f, ad_fault *fault);
void ad__control_close(struct ad_front *f);
/* Answer the visitor that asked for an upgrade, if it is still there: with the reason of a refusal, or (NULL) a
 * text. */
void ad__control_upgraded(struct ad_front *f, const char *why, const ad_bytes *text);
/* Adopt the visitor that asked the previous front for the upgrade; owns fd. */
void ad__control_adopt(struct ad_front *f, int fd);
/* Offer sockets to the next front. AD_E_MEMORY. */
int ad__control_offer(struct ad_front *f);
int ad__http_offer(struct ad_front *f);
int ad__http_open(struct ad_front *f, ad_fault *fault);
void ad__http_close(struct ad_front *f);
/* Append the address for the log: " metrics:127.0.0.1:9464", or nothing. */
void ad__http_text(const struct ad_front *f, char *out, size_t size);

#endif
