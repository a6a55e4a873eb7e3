/* The end of workers: arrayd stops, or is upgraded, and then the next front goes on with their domains. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/common/log.h"
#include "server/common/os.h"
#include "server/front/workers/domain_inside.h"

/* ---- stopping ---- */

void ad__domain_stop_all(ad_front *f) {
    for (ad_domain *d = f->domains; d; d = d->next) {
        if (!d->alive || !d->channel_open) continue;
        if (ad__channel_send(&d->channel, &(ad_note){.kind = AD_NOTE_STOP}, -1)) uv_process_kill(&d->process, SIGKILL);
        ad__domain_watch(d);
    }
}

void ad__domain_kill_all(ad_front *f) {
    for (ad_domain *d = f->domains; d; d = d->next) {
        if (!d->alive) continue;
        ad__log_other(true, worker_killed, d->name, (int)d->process.pid, "it does not stop");
        uv_process_kill(&d->process, SIGKILL);
    }
}

bool ad__domain_is_any_running(const ad_front *f) {
    for (const ad_domain *d = f->domains; d; d = d->next)
        if (ad__domain_is_ending(d)) return true;
    return false;
}

void ad__domain_free_all(ad_front *f) {
    while (f->domains) {
        ad_domain *d = f->domains;
        f->domains = d->next;
        ad__slabs_free(d->slabs);
        ad__worker_files_clear(&d->files);
        ad__report_free(&d->observation.report);
        free(d);
    }
}

/* ---- leaving ---- */

/* Tell whether the domain has sessions that no other worker could recover. */
static bool is_unrecoverable(const ad_domain *d) { return d->sessions && !ad__worker_files_can_recover(&d->files); }

unsigned ad__domain_ask_leaving(ad_front *f) {
    unsigned asked = 0;
    for (ad_domain *d = f->domains; d; d = d->next) {
        d->leaving_asked = false;
        if (d->state != AD_DOMAIN_READY || ad__domain_tell(d, &(ad_note){.kind = AD_NOTE_LEAVE}, -1)) continue;
        d->leaving_asked = true;
        asked++;
    }
    return asked;
}

void ad__domain_leaving(ad_domain *d, const ad_note *note) {
    if (!d->leaving_asked) return;
    d->leaving_asked = false;
    ad__upgrade_answer(d->front, is_unrecoverable(d) && note->id < d->sessions ? d->sessions : note->id);
}

const char *ad__domain_find_silent(const ad_front *f) {
    const ad_domain *d = f->domains;
    while (d && !d->leaving_asked) d = d->next;
    return d ? d->name : NULL;
}

void ad__domain_leave_all(ad_front *f) {
    const ad_note note = {.kind = AD_NOTE_LEAVE, .id = 1};
    for (ad_domain *d = f->domains; d; d = d->next) {
        if (!d->alive) continue;
        if (d->state != AD_DOMAIN_READY || ad__domain_tell(d, &note, -1)) uv_process_kill(&d->process, SIGKILL);
    }
}

void ad__domain_restart_all(ad_front *f) {
    for (ad_domain *d = f->domains; d; d = d->next) ad__domain_restart(d);
}

bool ad__domain_recovers(const ad_front *f) {
    for (const ad_domain *d = f->domains; d; d = d->next)
        if (d->files.old >= 0) return true;
    return false;
}

/* ---- handing over ---- */

static void transfer_domain(ad_domain *d, ad_hand *h) {
    ad__hand_text(h, d->name, sizeof d->name);
    ad__hand_number(h, &d->observation.starts);
    ad__worker_files_hand_over(&d->files, h);
    bool slabs = d->slabs;
    ad__hand_flag(h, &slabs);
    if (slabs && h->reading && !(d->slabs = ad__slabs_new())) h->failed = true;
    if (d->slabs) ad__slabs_hand_over(d->slabs, h);
}

void ad__domain_hand_over(ad_front *f, ad_hand *h) {
    size_t count = 0; /* domains that wait for a principal have nothing to hand over */
    for (const ad_domain *d = f->domains; d; d = d->next) count += !d->migration;
    count = ad__hand_count(h, count);
    if (!h->reading) {
        for (ad_domain *d = f->domains; d; d = d->next)
            if (!d->migration) transfer_domain(d, h);
        return;
    }
    for (size_t i = 0; i < count && !h->failed; i++) {
        ad_domain *d = ad__domain_new(f, "");
        if (d) transfer_domain(d, h);
        else h->failed = true;
    }
}

ad_domain *ad__domain_named(const ad_front *f, const char *name) {
    ad_domain *d = f->domains;
    while (d && strcmp(d->name, name)) d = d->next;
    return d;
}

const char *ad__domain_name(const ad_domain *d) { return d->name; }

void ad__domain_count_session(ad_domain *d) {
    d->sessions++;
    d->front->sessions++;
}
