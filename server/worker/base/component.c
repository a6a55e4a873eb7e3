#include "server/worker/base/component.h"

#include "server/worker/session.h"

static void close_first(ad_worker_session *s, const ad_component *const *end) {
    for (const ad_component *const *c = s->worker->components; c != end; c++)
        if ((*c)->close) (*c)->close(s);
}

int ad__components_open(ad_worker_session *s, const ad_note *note) {
    for (const ad_component *const *c = s->worker->components; *c; c++) {
        int status = (*c)->open ? (*c)->open(s, note) : 0;
        if (!status) continue;
        close_first(s, c);
        return status;
    }
    return 0;
}

bool ad__components_drop(ad_worker_session *s) {
    for (const ad_component *c; (c = s->worker->components[s->turns.dropped]); s->turns.dropped++) {
        if (c->drop_part && c->drop_part(s)) return false;
        if (c->drop) c->drop(s);
    }
    return true;
}

void ad__components_close(ad_worker_session *s) {
    for (const ad_component *const *c = s->worker->components; *c; c++)
        if ((*c)->close) (*c)->close(s);
}

void ad__components_device_lost(ad_worker_session *s, const char *why) {
    for (const ad_component *const *c = s->worker->components; *c; c++)
        if ((*c)->device_lost) (*c)->device_lost(s, why);
}

const ad_component *ad__component_of(const ad_worker *w, uint32_t kind) {
    const ad_component *const *c = w->components;
    while (*c && (*c)->kind != kind) c++;
    return kind == AD_JOURNAL_NONE ? NULL : *c;
}
