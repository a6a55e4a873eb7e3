#include "server/worker/sharing/holders.h"

#include "server/worker/sharing/sharing.h"

void ad__holder_begin(ad_worker *w, ad_holder *h) {
    ad_shared *m = h->shared;
    h->link = &m->others;
    h->next = m->others;
    if (h->next) h->next->link = &h->next;
    m->others = h;
    if (w->journal && h->write) h->write(w, h);
}

void ad__holder_end(ad_worker *w, ad_holder *h) {
    *h->link = h->next;
    if (h->next) h->next->link = h->link;
    if (w->journal && h->write) ad__journal_release(w->journal, h->place);
    ad__shared_release(w, h->shared, h->principal);
}

void ad__holders_write(ad_worker *w, ad_shared *m) {
    for (ad_holder *h = w->journal ? m->others : NULL; h; h = h->next) {
        const uint32_t before = h->place;
        if (!h->write) continue;
        h->place = 0;
        h->write(w, h);
        ad__journal_release(w->journal, before);
    }
}
