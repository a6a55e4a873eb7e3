#include "server/worker/device/watchdog.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "server/common/log.h"
#include "server/common/os.h"

#define LOOK_MOST 250000000 /* ns between two checks while a kernel is under way */

void ad__watchdog_init(ad_watchdog *w, void (*on_lost)(void *user, const char *why), void *user) {
    pthread_condattr_t clock;
    *w = (ad_watchdog){.on_lost = on_lost, .user = user};
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&w->wake, &clock);
    pthread_condattr_destroy(&clock);
}

/* Find a flight that has exceeded its limit; NULL: none. *next: when to check again. */
static const ad_flight *find_overdue(const ad_watchdog *w, int64_t *next) {
    int64_t now = ad__os_now();
    *next = now + LOOK_MOST;
    for (const ad_flight *f = w->flights; f; f = f->next) {
        if (!f->limit) continue;
        if (now - f->since > f->limit) return f;
        if (f->since + f->limit < *next) *next = f->since + f->limit + 1000000;
    }
    return NULL;
}

static void *watch_kernels(void *argument) {
    ad_watchdog *w = argument;
    char why[AD_KERNEL_NAME + 64];
    int64_t next;
    pthread_mutex_lock(&w->lock);
    while (!w->stop) {
        const ad_flight *late = find_overdue(w, &next);
        if (late) {
            snprintf(why, sizeof why, "kernel %s ran longer than %.9g s", late->kernel, (double)late->limit / 1e9);
            pthread_mutex_unlock(&w->lock);
            w->on_lost(w->user, why);
            return NULL;
        }
        struct timespec t = {next / 1000000000, next % 1000000000};
        if (w->flights) pthread_cond_timedwait(&w->wake, &w->lock, &t);
        else pthread_cond_wait(&w->wake, &w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static void start_watching(ad_watchdog *w) {
    int error = ad__os_thread(&w->thread, watch_kernels, w);
    w->started = error == 0;
    if (error) ad__log(kernel_time_is_not_watched, strerror(error));
}

void ad__watchdog_close(ad_watchdog *w) {
    pthread_mutex_lock(&w->lock);
    bool started = w->started;
    w->stop = true;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
    if (started) pthread_join(w->thread, NULL);
}

/* Copy a kernel's name for the log, with unprintable characters replaced. */
static void copy_printable(char out[AD_KERNEL_NAME], const char *kernel) {
    size_t n = strnlen(kernel, AD_KERNEL_NAME - 1);
    for (size_t i = 0; i < n; i++) out[i] = kernel[i] < ' ' || kernel[i] > '~' ? '?' : kernel[i];
    out[n] = 0;
}

void ad__flight_begin(ad_watchdog *w, ad_flight *f, const char *kernel, uint64_t number, int64_t limit) {
    pthread_mutex_lock(&w->lock);
    copy_printable(f->kernel, kernel);
    f->last = number;
    f->limit = limit;
    if (!f->link) {
        f->since = ad__os_now();
        f->moved = 0;
        f->next = w->flights;
        f->link = &w->flights;
        if (f->next) f->next->link = &f->next;
        w->flights = f;
        if (limit && !w->started) start_watching(w);
        else if (limit) pthread_cond_signal(&w->wake);
    }
    pthread_mutex_unlock(&w->lock);
}

void ad__flight_moved(ad_watchdog *w, ad_flight *f, uint64_t complete) {
    if (!f->link || complete == f->moved) return;
    pthread_mutex_lock(&w->lock);
    f->moved = complete;
    f->since = ad__os_now();
    if (complete >= f->last) {
        *f->link = f->next;
        if (f->next) f->next->link = f->link;
        f->link = NULL;
    }
    pthread_mutex_unlock(&w->lock);
}

void ad__watchdog_names(ad_watchdog *w, char *out, size_t size) {
    size_t used = 0;
    out[0] = 0;
    pthread_mutex_lock(&w->lock);
    for (const ad_flight *f = w->flights; f && used + 1 < size; f = f->next) {
        int n = snprintf(out + used, size - used, "%s%s", used ? ", " : "", f->kernel);
        used += n > 0 ? (size_t)n : 0;
    }
    pthread_mutex_unlock(&w->lock);
}
