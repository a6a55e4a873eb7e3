/* A client of the simulator: its arrays, and what each of them must be. */
#ifndef AD_SIM_CLIENT_H
#define AD_SIM_CLIENT_H

#include <pthread.h>

#include "client-c/include/arrayd.h"
#include "tests/sim/sim.h"

#define SIM_ARRAYS 24   /* most arrays at a time */
#define SIM_NUMBERS 512 /* numbers of arrays; then they begin again */
#define SIM_STREAMS 3

typedef struct model {
    ad_array *array;
    int64_t count, *value;
    int number;
    uint64_t reads[SIM_NUMBERS / 64]; /* the numbers of what it was made from since the last answer */
    bool at_risk;                     /* changed in place since the last answer, or made from what was */
    bool maybe_lost;
    bool frozen;        /* others have it: it is not changed any more */
    bool awaited;       /* another thread downloads it */
    int refused;        /* the status that its operation must fail with; 0: it succeeds */
    sim_shared *common; /* several sessions write into it; NULL: none does */
    int slot;           /* element that this session writes there; -1: none */
    ad_lease *lease;
    int64_t *memory; /* that of the lease; NULL: it has none */
} model;

/* What the second thread of a client does. */
typedef struct reader {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool over;
    ad_array *wanted; /* NULL: nothing */
    int64_t count, *got;
    int number; /* of the array that is wanted, or has been read */
    bool done;
    int status;
    unsigned deaths; /* of workers, when the answer came */
} reader;

typedef struct client {
    ad_session *session;
    model list[SIM_ARRAYS];
    int used, numbers;
    unsigned deaths; /* of workers, at the last answer */
    bool orphaned;   /* its parent has gone, and what begins its session with it */
    uint64_t stream[SIM_STREAMS], event;
    bool reached; /* the event was, when somebody last looked */
    int latest;   /* number of the array that sim_share_attach_latest has tried */
    reader reader;
} client;

/* ---- what must be (client_model.c) ---- */

model *sim_model_add(client *c, ad_array *array, int64_t count);
/* Find the one of a number. NULL: there is none. */
model *sim_model_find(client *c, int number);
void sim_model_remove(client *c, model *m);
/* Choose one of the arrays. NULL: there is none. */
model *sim_model_choose(client *c);
/* Choose one that may be changed in place. NULL: it cannot be found at once. */
model *sim_model_choose_mine(client *c);
/* Release an array if no other has room. */
void sim_model_make_room(client *c);
/* Note that an array was made from another, and that one was changed in place. */
void sim_model_note_read(model *m, const model *from);
void sim_model_note_change(client *c, model *m);
/* Note that an answer has come: what was executed before it is behind a checkpoint. */
void sim_model_note_answer(client *c);
/* Tell whether an array may be lost. */
bool sim_model_may_be_lost(const client *c, const model *m);
/* Tell whether there are faults that leave an operation undone, with an error that says so. */
bool sim_model_tolerates(void);
/* Judge a status of a call that must succeed. */
void sim_model_check_status(client *c, int status, const char *what);
/* Judge what was downloaded of an array, and note the answer. The array is removed if it has failed. */
void sim_model_check_download(client *c, model *m, int status, const int64_t *got);
/* Download an array, and judge it. */
void sim_model_download(client *c, model *m);
/* Wait for all operations. */
void sim_model_sync(client *c);

/* ---- what several sessions have (client_shared.c) ---- */

void sim_share_by_name(client *c);
void sim_share_by_capability(client *c);
void sim_share_for_uses(client *c, int limit); /* 0: any number */
void sim_share_attach(client *c);
/* Attach the latest array of which there is a capability for some uses, as others do at once. False: it was done. */
bool sim_share_attach_latest(client *c);
void sim_share_withdraw(client *c);
/* Map an array's memory, or write into it. */
void sim_share_memory(client *c);

/* ---- arrays that several sessions write into (client_common.c) ---- */

/* Publish an array for all to write, write into one, or look at it. */
void sim_common_do(client *c);
/* Become a writer of an array in common, which the client has just attached or made. */
void sim_common_join(model *m, sim_shared *s);
/* Note that what the session has changed in it is behind a checkpoint. */
void sim_common_settle(model *m);
/* Download it, and judge each number. It is removed if it has failed. */
void sim_common_download(client *c, model *m);

/* ---- other requests (client_asks.c) ---- */

void sim_ask_cumsum(client *c);
void sim_ask_nonzero(client *c);
void sim_ask_host(client *c);
/* Build a kernel, which lets the client's user move to a worker of its own. */
void sim_ask_build(client *c);
/* Ask for all that is no array. */
void sim_ask_session(client *c);

/* ---- operations (client.c, client_failures.c) ---- */

/* Make an array from others. */
void sim_combine_new(client *c);
/* Read or write by indices, some of which are out of bounds. */
void sim_try_index(client *c);

/* ---- a second thread that downloads (client_reader.c) ---- */

void sim_reader_start(client *c);
/* Let it download an array, while this thread goes on. */
void sim_reader_ask(client *c);
/* Judge what it has downloaded, if it has; wait: until it has. */
void sim_reader_look(client *c, bool wait);
void sim_reader_stop(client *c);

#endif
