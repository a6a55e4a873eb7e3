/* Collecting reports: all workers are asked in one round, for all observers that wait. */
#include <string.h>
#include <unistd.h>

#include "server/common/log.h"
#include "server/common/os.h"
#include "server/front/front.h"

#define PAUSE 20000000 /* least ns between two rounds */
#define PATIENCE 1000  /* ms that a round waits for reports; a worker that executes something long answers later */

/* ---- rounds ---- */

static void on_round_due(uv_timer_t *timer) {
    ad_rounds *r = timer->data;
    r->now = r->next;
    r->next = NULL;
    r->last = ad__os_now();
    r->begin(r->front);
}

/* Begin the next round, at once or when the pause is over. */
static void schedule_round(ad_rounds *r) {
    int64_t wait = r->last ? r->last + r->pause - ad__os_now() : 0;
    r->under_way = true;
    if (wait > 0) uv_timer_start(&r->timer, on_round_due, (uint64_t)wait / 1000000 + 1, 0);
    else on_round_due(&r->timer);
}

void ad__rounds_init(ad_front *f, ad_rounds *r, void (*begin)(ad_front *f), int64_t pause) {
    *r = (ad_rounds){.front = f, .begin = begin, .pause = pause};
    uv_timer_init(&f->loop, &r->timer);
    r->timer.data = r;
    uv_unref((uv_handle_t *)&r->timer);
}

void ad__round_join(ad_rounds *r, ad_observer *w) {
    w->waiting = true;
    w->next = r->next;
    r->next = w;
    if (!r->under_way) schedule_round(r);
}

void ad__round_over(ad_rounds *r) {
    while (r->now) {
        ad_observer *w = r->now;
        r->now = w->next;
        w->waiting = false;
        w->done(w);
    }
    r->under_way = false;
    if (r->next) schedule_round(r);
}

void ad__rounds_close(ad_rounds *r) {
    uv_timer_stop(&r->timer);
    r->now = r->next = NULL;
    r->under_way = true; /* no round begins any more */
}

static void unlink_observer(ad_observer **at, const ad_observer *w) {
    while (*at && *at != w) at = &(*at)->next;
    if (*at) *at = w->next;
}

void ad__observer_remove(ad_rounds *r, ad_observer *w) {
    if (!w->waiting) return;
    unlink_observer(&r->now, w);
    unlink_observer(&r->next, w);
    w->waiting = false;
}

/* ---- reports ---- */

static bool is_any_asked(ad_front *f) {
    ad_domain_facts facts;
    for (ad_domain *d = NULL; (d = ad__domain_next(f, d));) {
        ad__domain_facts(d, &facts);
        if (facts.observation->asked) return true;
    }
    return false;
}

static void finish_reports(ad_front *f) {
    uv_timer_stop(&f->observability.report_patience);
    ad__round_over(&f->observability.reports);
}

static void finish_reports_if_all(ad_front *f) {
    if (f->observability.reports.under_way && !is_any_asked(f)) finish_reports(f);
}

static void on_report_timeout(uv_timer_t *timer) {
    ad_front *f = timer->data;
    ad_domain_facts facts;
    for (ad_domain *d = NULL; (d = ad__domain_next(f, d));) {
        ad__domain_facts(d, &facts);
        if (facts.observation->asked) ad__log(worker_does_not_report, facts.name, facts.pid);
        facts.observation->asked = false;
    }
    finish_reports(f);
}

static void ask_worker(ad_front *f, ad_domain *d, uint64_t what) {
    ad_note note = {.kind = AD_NOTE_REPORT, .id = f->observability.question, .size = what};
    ad_domain_facts facts;
    ad__domain_facts(d, &facts);
    if (!facts.ready || ad__domain_tell_if_ready(d, &note, -1)) return;
    facts.observation->question = note.id;
    facts.observation->asked = true;
}

static void begin_reports(ad_front *f) {
    uint64_t what = 0;
    for (const ad_observer *w = f->observability.reports.now; w; w = w->next) what |= w->what;
    f->observability.question++;
    for (ad_domain *d = NULL; (d = ad__domain_next(f, d));) ask_worker(f, d, what);
    if (is_any_asked(f)) uv_timer_start(&f->observability.report_patience, on_report_timeout, PATIENCE, 0);
    else finish_reports(f);
}

void ad__collect(ad_front *f, ad_observer *w) { ad__round_join(&f->observability.reports, w); }

void ad__collect_answer(ad_front *f, ad_observation *s, const ad_note *note, int fd) {
    ad_report fresh = {0};
    /* Each question has one answer, which may be late. More of them would only keep this process busy. */
    bool wanted = note->id > s->answered && note->id <= s->question;
    int status = wanted ? ad__report_read(fd, note->size, &fresh) : AD_E_PROTOCOL;
    close(fd);
    if (wanted) s->answered = note->id;
    if (status) {
        ad__log(report_not_understood, ad__error_text(status));
    } else {
        ad__report_free(&s->report);
        s->report = fresh;
        s->at = ad__os_now();
    }
    if (note->id == s->question) s->asked = false; /* a late answer to an earlier question does not count */
    finish_reports_if_all(f);
}

void ad__collect_gone(ad_front *f, ad_observation *s) {
    ad__report_free(&s->report);
    s->at = 0;
    s->asked = s->probed = false;
    s->probes_open = 0;
    s->answered = s->question;
    finish_reports_if_all(f);
}

void ad__observability_init(ad_front *f) {
    f->observability.began = ad__os_now();
    ad__rounds_init(f, &f->observability.reports, begin_reports, PAUSE);
    ad__health_init(f);
    uv_timer_init(&f->loop, &f->observability.report_patience);
    f->observability.report_patience.data = f;
    uv_unref((uv_handle_t *)&f->observability.report_patience);
}

void ad__observability_close(ad_front *f) {
    ad__control_close(f);
    ad__http_close(f);
    ad__health_close(f);
    ad__rounds_close(&f->observability.reports);
    uv_timer_stop(&f->observability.report_patience);
    ad__bytes_free(&f->observability.status.text);
    ad__bytes_free(&f->observability.metrics.text);
}
