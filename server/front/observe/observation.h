/* What can be seen of arrayd: reports of its workers, their health, and those who ask. */
#ifndef AD_SERVER_FRONT_OBSERVE_OBSERVATION_H
#define AD_SERVER_FRONT_OBSERVE_OBSERVATION_H

#include <uv.h>

#include "protocol/message.h"
#include "server/common/channel.h"
#include "server/common/report.h"

struct ad_front;
struct ad_domain;

/* Somebody who waits until something is known; part of whoever that is. */
typedef struct ad_observer ad_observer;
struct ad_observer {
    ad_observer *next;
    void (*done)(ad_observer *w); /* may come before the function that asked returns */
    uint64_t what;                /* AD_REPORT_WITH_NAMES; 0: without */
    bool waiting;
};

/* What is known of one worker: a member of its domain. */
typedef struct ad_observation {
    ad_report report;
    int64_t at;           /* when it came, ns; 0: none has */
    uint64_t question;    /* the last that was asked */
    bool asked;           /* and has not been answered */
    uint64_t answered;    /* the last to which there was an answer */
    uint64_t starts;      /* processes of this domain so far */
    bool probed, works;   /* what the last look at its health has shown */
    unsigned probes_open; /* looks whose session has not ended there */
    double took;          /* seconds that it needed */
    char trouble[AD_FAULT_TEXT];
} ad_observation;

/* Asking all at a time; who comes meanwhile has the next turn, so that what is told is never older than the question.
 * Between two turns there is a pause, so that who asks without end costs the workers little. */
typedef struct ad_rounds {
    ad_observer *now, *next;
    bool under_way;
    struct ad_front *front;
    void (*begin)(struct ad_front *f); /* ask; ends with ad__round_over, perhaps before it returns */
    uv_timer_t timer;
    int64_t pause, last; /* ns; when the last one began */
} ad_rounds;

/* A text that is asked for by several in one round. */
typedef struct ad_shared_text {
    ad_bytes text;
    uint64_t question; /* of which it tells */
} ad_shared_text;

typedef struct ad_control ad_control;
typedef struct ad_http ad_http;
typedef struct ad_probe ad_probe;

/* A member of the front. */
typedef struct ad_observability {
    ad_rounds reports, health;
    uint64_t question, probes;
    ad_shared_text status, metrics;
    uv_timer_t report_patience;
    ad_probe *probing;
    ad_control *control; /* NULL: there is none */
    ad_http *http;
    int64_t began; /* of the process, ns */
    uint64_t refused;
} ad_observability;

/* What others may know of a domain. */
typedef struct ad_domain_facts {
    const char *name, *state, *why; /* why: it failed; else "" */
    int pid;                        /* 0: no process */
    bool ready;
    const ad_note *offer;
    uint64_t sessions, slabs, slab_bytes; /* slabs whose descriptors the front holds */
    int64_t started;
    ad_observation *observation;
} ad_domain_facts;

/* ---- workers/domain.c ---- */
struct ad_domain *ad__domain_next(const struct ad_front *f, const struct ad_domain *d); /* after d; NULL: the first */
void ad__domain_facts(struct ad_domain *d, ad_domain_facts *out);
/* Send a note to a worker that is ready; fd as in ad__channel_send. AD_E_CONNECTION: it is not. */
int ad__domain_note(struct ad_domain *d, const ad_note *note, int fd);

/* ---- process_usage.c ---- */
typedef struct ad_process_cost {
    uint64_t resident, descriptors; /* bytes; open ones */
    double cpu;                     /* seconds */
} ad_process_cost;
/* All 0: it has gone, or pid is 0. */
void ad__process_cost(int pid, ad_process_cost *out);
typedef struct ad_pulse {
    char state;          /* of its first thread, as in /proc: R, S, D, T, t ... */
    unsigned long ticks; /* of the clock that all its threads have run */
} ad_pulse;
/* False: it has gone, or hides. */
bool ad__process_pulse(int pid, ad_pulse *out);

/* ---- collect.c: reports ---- */
void ad__observability_init(struct ad_front *f);
void ad__observability_close(struct ad_front *f); /* the loop ends: nobody is answered any more */
/* Ask all workers; those that do not answer within a second are known by what they last said. */
void ad__collect(struct ad_front *f, ad_observer *w);
/* A worker has answered (takes fd), or has gone. */
void ad__collect_answer(struct ad_front *f, ad_observation *s, const ad_note *note, int fd);
void ad__collect_gone(struct ad_front *f, ad_observation *s);
/* Whoever asked is no longer there. */
void ad__observer_remove(ad_rounds *r, ad_observer *w);
void ad__rounds_init(struct ad_front *f, ad_rounds *r, void (*begin)(struct ad_front *f), int64_t pause);
void ad__round_join(ad_rounds *r, ad_observer *w);
void ad__round_over(ad_rounds *r);
/* Nobody waits any more. */
void ad__rounds_close(ad_rounds *r);

/* ---- health.c ---- */
void ad__health_init(struct ad_front *f);
/* Have every worker compute something. */
void ad__health(struct ad_front *f, ad_observer *w);
bool ad__health_good(struct ad_front *f); /* what the last round has shown of all */
void ad__health_close(struct ad_front *f);

/* ---- status.c ---- */
/* Append a text, which is made once for all who wait for the same answers. */
void ad__append_shared_text(struct ad_front *f, ad_shared_text *said, void (*put)(struct ad_front *f, ad_bytes *out),
                            ad_bytes *out);
/* All that is known, as JSON; or health alone. */
void ad__status_json(struct ad_front *f, ad_bytes *out);
void ad__health_json(struct ad_front *f, ad_bytes *out);
/* The id in a session's name as it stands in JSON, and its worker; NULL: there is none of that name now. */
struct ad_domain *ad__status_session(struct ad_front *f, const char *name, uint64_t *id, bool *ending);

/* ---- metrics.c ---- */
void ad__metrics_text(struct ad_front *f, ad_bytes *out);

/* ---- control.c, http.c: who asks ---- */
/* Listen where the configuration says. AD_E_SYSTEM, AD_E_VALUE, AD_E_MEMORY. */
int ad__control_open(struct ad_front *f, ad_fault *fault);
void ad__control_close(struct ad_front *f);
/* Answer who has asked for an upgrade, if anybody is still there: with why it is refused, or (NULL) a text. */
void ad__control_upgraded(struct ad_front *f, const char *why, const ad_bytes *text);
/* Who has asked the front before; takes fd. */
void ad__control_adopt(struct ad_front *f, int fd);
/* Offer sockets to the next front. AD_E_MEMORY. */
int ad__control_offer(struct ad_front *f);
int ad__http_offer(struct ad_front *f);
int ad__http_open(struct ad_front *f, ad_fault *fault);
void ad__http_close(struct ad_front *f);
/* Append where, for the log: " metrics:127.0.0.1:9464", or nothing. */
void ad__http_text(const struct ad_front *f, char *out, size_t size);

#endif
