#include "client-c/interop/ranges.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "client-c/interop/export.h"

struct ad_range {
    ad_range *next, **link;
    unsigned leases;
    int generation;     /* a fork's child cannot use its parent's mappings of GPU memory */
    uint64_t memory[2]; /* as of its leases */
    bool readonly;
    void *base;
    uint64_t size;
    int device;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards ranges, and each one's leases */
static ad_range *ranges;

/* Memory whose worker gives it no number is never common to leases, nor is memory that an event has to be waited for.
 */
static bool is_known(const ad_lease *l) {
    static const unsigned char none[sizeof l->event];
    return l->memory[0] && memcmp(l->event, none, sizeof none) == 0;
}

static bool is_range_of(const ad_range *r, const ad_lease *l) {
    return r->generation == l->generation && r->memory[0] == l->memory[0] && r->memory[1] == l->memory[1] &&
           r->size == l->size && r->readonly == l->readonly;
}

bool ad__range_find(ad_lease *l) {
    if (!is_known(l)) return false;
    pthread_mutex_lock(&lock);
    ad_range *r = ranges;
    while (r && !is_range_of(r, l)) r = r->next;
    if (r) r->leases++;
    pthread_mutex_unlock(&lock);
    if (!r) return false;
    l->range = r;
    l->base = r->base;
    l->device = r->device;
    return true;
}

void ad__range_add(ad_lease *l) {
    ad_range *r = is_known(l) ? malloc(sizeof *r) : NULL;
    if (!r) return;
    *r = (ad_range){.link = &ranges,
                    .leases = 1,
                    .generation = l->generation,
                    .memory = {l->memory[0], l->memory[1]},
                    .readonly = l->readonly,
                    .base = l->base,
                    .size = l->size,
                    .device = l->device};
    l->range = r;
    pthread_mutex_lock(&lock);
    r->next = ranges;
    if (r->next) r->next->link = &r->next;
    ranges = r;
    pthread_mutex_unlock(&lock);
}

bool ad__range_leave(ad_lease *l) {
    ad_range *r = l->range;
    if (!r) return true;
    pthread_mutex_lock(&lock);
    const bool last = --r->leases == 0;
    if (last) {
        *r->link = r->next;
        if (r->next) r->next->link = r->link;
    }
    pthread_mutex_unlock(&lock);
    if (last) free(r);
    l->range = NULL;
    return last;
}

void ad__ranges_before_fork(void) { pthread_mutex_lock(&lock); }

void ad__ranges_forked(void) { pthread_mutex_unlock(&lock); }
