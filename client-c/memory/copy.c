/* Large copies. One thread moves some 10 GB/s, less than a device takes. Several threads copy where processors are
 * free. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "client-c/client.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define HELPERS 3
#define WORTH (32u << 20) /* total bytes from which on threads are started */
#define LEAST (1u << 20)  /* copies of fewer bytes are not divided */

typedef struct helper {
    ad_copier *copier;
    pthread_t thread;
    int index;
} helper;

struct ad_copier {
    pthread_mutex_t lock;
    pthread_cond_t begin, end;
    helper helper[HELPERS];
    int helpers, left; /* left: helpers that are still copying */
    unsigned turn;
    bool closing;
    char *to;
    const char *from; /* NULL: allocate the pages of `to` instead of copying */
    size_t size, piece;
    atomic_bool failed;
};

/* Allocate pages. Kernels before 5.14 do not know the advice, and allocate a page at its first use. */
static bool populate_pages(void *memory, size_t size) {
    return madvise(memory, size, MADV_POPULATE_WRITE) == 0 || errno == EINVAL;
}

static void copy_piece(ad_copier *c, int index) {
    size_t at = (size_t)index * c->piece;
    if (at >= c->size) return;
    size_t size = c->size - at < c->piece ? c->size - at : c->piece;
    if (c->from) memcpy(c->to + at, c->from + at, size);
    else if (!populate_pages(c->to + at, size)) c->failed = true;
}

static void *run_helper(void *argument) {
    helper *h = argument;
    ad_copier *c = h->copier;
    unsigned turn = 0;
    pthread_mutex_lock(&c->lock);
    for (;;) {
        while (c->turn == turn && !c->closing) pthread_cond_wait(&c->begin, &c->lock);
        if (c->closing) break;
        turn = c->turn;
        pthread_mutex_unlock(&c->lock);
        copy_piece(c, h->index + 1);
        pthread_mutex_lock(&c->lock);
        if (--c->left == 0) pthread_cond_signal(&c->end);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* Return half of the processors that this process may use, and HELPERS at the most. */
static int count_wanted_helpers(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 0;
    int n = CPU_COUNT(&set) / 2 - 1;
    return n < 0 ? 0 : n > HELPERS ? HELPERS : n;
}

ad_copier *ad__copier_open(size_t size) {
    const int wanted = size < WORTH ? 0 : count_wanted_helpers();
    sigset_t all, before;
    ad_copier *c = wanted ? calloc(1, sizeof *c) : NULL;
    if (!c) return NULL;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->begin, NULL);
    pthread_cond_init(&c->end, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the program's threads */
    for (int i = 0; i < wanted; i++) {
        c->helper[i] = (helper){.copier = c, .index = i};
        if (pthread_create(&c->helper[i].thread, NULL, run_helper, &c->helper[i]) != 0) break;
        c->helpers++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return c;
}

static void run_pieces(ad_copier *c, void *to, const void *from, size_t size) {
    pthread_mutex_lock(&c->lock);
    c->to = to;
    c->from = from;
    c->size = size;
    c->piece = (size / (size_t)(c->helpers + 1) + 4095) & ~(size_t)4095;
    c->left = c->helpers;
    c->turn++;
    pthread_cond_broadcast(&c->begin);
    pthread_mutex_unlock(&c->lock);
    copy_piece(c, 0);
    pthread_mutex_lock(&c->lock);
    while (c->left) pthread_cond_wait(&c->end, &c->lock);
    pthread_mutex_unlock(&c->lock);
}

void ad__copier_copy(ad_copier *c, void *to, const void *from, size_t size) {
    if (!c || !c->helpers || size < LEAST) memcpy(to, from, size);
    else run_pieces(c, to, from, size);
}

int ad__populate(void *memory, size_t size) {
    ad_copier *c = ad__copier_open(size);
    bool failed = false;
    if (!c || !c->helpers) {
        failed = !populate_pages(memory, size);
    } else {
        run_pieces(c, memory, NULL, size);
        failed = c->failed;
    }
    ad__copier_close(c);
    return failed ? AD_E_MEMORY : 0;
}

void ad__copier_close(ad_copier *c) {
    if (!c) return;
    pthread_mutex_lock(&c->lock);
    c->closing = true;
    pthread_cond_broadcast(&c->begin);
    pthread_mutex_unlock(&c->lock);
    for (int i = 0; i < c->helpers; i++) pthread_join(c->helper[i].thread, NULL);
    pthread_cond_destroy(&c->end);
    pthread_cond_destroy(&c->begin);
    pthread_mutex_destroy(&c->lock);
    free(c);
}
