/* A second thread that downloads arrays while the first goes on. So requests, and operations behind them, are under way
 * together, and answers come in the middle of what the server executes. */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/client.h"

static void *read_arrays(void *argument) {
    client *c = argument;
    reader *r = &c->reader;
    pthread_mutex_lock(&r->lock);
    for (;;) {
        while (!r->over && (!r->wanted || r->done)) pthread_cond_wait(&r->changed, &r->lock);
        if (r->over) break;
        pthread_mutex_unlock(&r->lock);
        const int status = ad_download(r->wanted, r->got, (size_t)r->count * sizeof *r->got);
        const unsigned deaths = sim_worker_deaths;
        sim_note("read", r->number, status);
        pthread_mutex_lock(&r->lock);
        r->status = status;
        r->deaths = deaths;
        r->done = true;
        pthread_cond_broadcast(&r->changed);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

void sim_reader_start(client *c) {
    memset(&c->reader, 0, sizeof c->reader);
    pthread_mutex_init(&c->reader.lock, NULL);
    pthread_cond_init(&c->reader.changed, NULL);
    if (pthread_create(&c->reader.thread, NULL, read_arrays, c)) sim_fail("a client has no second thread");
}

void sim_reader_ask(client *c) {
    reader *r = &c->reader;
    model *m = sim_model_choose(c);
    if (!m || r->wanted) return;
    m->awaited = true;
    pthread_mutex_lock(&r->lock);
    r->wanted = ad_array_retain(m->array);
    r->number = m->number;
    r->count = m->count;
    r->got = sim_make_numbers(m->count);
    r->done = false;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

/* An answer says that all is behind a checkpoint that came before its request, and so what changed this array. */
static void judge_answer(client *c, const reader *r) {
    model *m = sim_model_find(c, r->number);
    m->awaited = false;
    sim_model_check_download(c, m, r->status, r->got);
    if (!sim_planned.late && !r->status) {
        m->maybe_lost |= m->at_risk && c->deaths != r->deaths;
        m->at_risk = false;
    }
    if (r->status) sim_model_remove(c, m);
}

void sim_reader_look(client *c, bool wait) {
    reader *r = &c->reader;
    pthread_mutex_lock(&r->lock);
    while (wait && r->wanted && !r->done) pthread_cond_wait(&r->changed, &r->lock);
    const bool done = r->wanted && r->done;
    pthread_mutex_unlock(&r->lock);
    if (!done) return;
    judge_answer(c, r);
    ad_array_release(r->wanted);
    free(r->got);
    r->wanted = NULL;
}

void sim_reader_stop(client *c) {
    reader *r = &c->reader;
    sim_reader_look(c, true);
    pthread_mutex_lock(&r->lock);
    r->over = true;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
    pthread_join(r->thread, NULL);
}
