/* The table of a session's modules. */
#include <stdlib.h>
#include <string.h>

#include "server/common/os.h"
#include "server/worker/modules/inside.h"

ad_loaded *ad__module_find(ad_worker_session *s, uint64_t id) {
    for (ad_loaded **at = &s->modules.first; *at; at = &(*at)->next) {
        ad_loaded *m = *at;
        if (m->id != id) continue;
        *at = m->next;
        m->next = s->modules.first;
        s->modules.first = m;
        return m;
    }
    return NULL;
}

void ad__module_add(ad_worker_session *s, ad_loaded *m) {
    m->users = 1;
    m->next = s->modules.first;
    s->modules.first = m;
    s->modules.count++;
}

void ad__module_free(ad_worker_session *s, ad_loaded *m) {
    if (m->module) s->worker->backend->module_close(m->module);
    while (m->kernels) {
        ad_named_kernel *k = m->kernels;
        m->kernels = k->next;
        free(k);
    }
    if (m->recipe) s->modules.text -= m->recipe->bytes;
    ad__recipe_release(s->checkpoint.journal, m->recipe);
    free(m->names);
    free(m);
}

void ad__modules_reap(ad_worker_session *s) {
    bool idle = ad__stream_queues_idle(s);
    for (ad_loaded **at = &s->modules.dropped; *at;) {
        ad_loaded *m = *at;
        if (!idle && m->last_op > s->progress.complete) {
            at = &m->next;
            continue;
        }
        *at = m->next;
        ad__module_free(s, m);
    }
}

void ad__module_stop(ad_worker_session *s) {
    ad_building *b = s->modules.building;
    if (!b) return;
    if (b->binary) s->worker->compiler->release(s->worker->compiler, b->binary);
    ad__arena_free(&b->arena);
    free(b);
    s->modules.building = NULL;
}

void ad__modules_close(ad_worker_session *s) {
    ad__module_stop(s);
    while (s->modules.first) {
        ad_loaded *m = s->modules.first;
        s->modules.first = m->next;
        ad__module_free(s, m);
    }
    ad__modules_reap(s);
}

ad_named_kernel *ad__module_kernel(ad_loaded *m, const char *name, size_t size) {
    ad_named_kernel *k = ad__os.malloc(sizeof *k + size);
    if (!k) return NULL;
    *k = (ad_named_kernel){.next = m->kernels, .shared = -1, .carveout = -1, .size = size};
    if (size) memcpy(k->name, name, size);
    return m->kernels = k;
}

const char *ad__module_text(ad_worker_session *s, const ad_string *text, ad_fault *fault) {
    char *copy = ad__arena_alloc(&s->messages.arena, text->size + 1);
    if (!copy) {
        ad__fault(fault, AD_E_MEMORY, "out of host memory");
        return NULL;
    }
    if (text->size) memcpy(copy, text->data, text->size);
    copy[text->size] = 0;
    if (strlen(copy) == text->size) return copy;
    ad__fault(fault, AD_E_VALUE, "a name or option contains a NUL character");
    return NULL;
}
