/* Mirrors: copies of small arrays that a program reads element by element, kept here until an operation may write them.
 *
 *   float(x[0])   asks the server          the first reads
 *   float(x[1])   asks for all of x        once so many bytes have been asked for in small pieces
 *   float(x[2])   reads the mirror
 *   x[0] = 5      drops it                 so does whatever does not say what it writes
 *
 * A session keeps a few mirrors. All that decides about one happens under the session's lock, in the order in which
 * operations are encoded: a mirror is kept only if nothing that may write the array was encoded since it was asked for.
 * Arrays that somebody else may write (`ad_array.own`) have none. */
#include <stdlib.h>
#include <string.h>

#include "client-c/client.h"

#define REQUEST_BYTES 1024 /* bytes that come with a reply at hardly any cost: so a request is worth so many */

static ad_mirror *find_place(ad_session *s, uint64_t buffer) { return &s->memory.mirror[buffer % AD_MIRRORS]; }

static void clear_mirror(ad_mirror *m) {
    free(m->bytes);
    *m = (ad_mirror){0};
}

void ad__mirror_drop(ad_session *s, uint64_t buffer) {
    ad_mirror *m = find_place(s, buffer);
    if (m->buffer == buffer) clear_mirror(m);
}

void ad__mirrors_drop(ad_session *s) {
    if (!s->memory.mirrored) return;
    for (int i = 0; i < AD_MIRRORS; i++) clear_mirror(&s->memory.mirror[i]);
    s->memory.mirrored = false;
}

/* Count a read of an array that has no mirror yet. True: the mirror is to be fetched now. */
static bool count_read(ad_session *s, ad_mirror *m, const ad_array *owner) {
    if (m->buffer != owner->buffer) {
        clear_mirror(m);
        m->buffer = owner->buffer;
        m->stamp = ++s->memory.stamps;
        s->memory.mirrored = true;
    }
    return m->reads++ > (owner->size - 1) / REQUEST_BYTES;
}

/* Tell whether the program must hear of something first, as it does when it asks the server. */
static bool has_news(const ad_session *s) { return s->dead || s->resume.lost || s->input.deferred.status; }

ad_mirror_state ad__mirror_read(const ad_array *a, void *data, size_t size, uint64_t *stamp) {
    const ad_array *owner = ad__array_owner(a);
    ad_session *s = a->session;
    ad_mirror_state state = AD_MIRROR_NONE;
    if (!a->contiguous || !size || owner->size > AD_MIRROR_MOST || !atomic_load(&owner->own) || ad__is_foreign(s))
        return state;
    pthread_mutex_lock(&s->lock);
    ad_mirror *m = find_place(s, owner->buffer);
    if (m->buffer == owner->buffer && m->bytes) {
        if (!has_news(s)) {
            memcpy(data, m->bytes + a->offset, size);
            state = AD_MIRROR_READ;
        }
    } else if (count_read(s, m, owner)) {
        *stamp = m->stamp;
        state = AD_MIRROR_FETCH;
    }
    pthread_mutex_unlock(&s->lock);
    return state;
}

void ad__mirror_keep(const ad_array *a, uint8_t *bytes, uint64_t stamp) {
    const ad_array *owner = ad__array_owner(a);
    ad_session *s = a->session;
    pthread_mutex_lock(&s->lock);
    ad_mirror *m = find_place(s, owner->buffer);
    if (m->buffer == owner->buffer && m->stamp == stamp && !m->bytes && atomic_load(&owner->own)) {
        m->bytes = bytes;
        bytes = NULL;
    }
    pthread_mutex_unlock(&s->lock);
    free(bytes);
}
