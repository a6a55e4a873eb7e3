#include "server/worker/base/tell.h"

#include <unistd.h>

#include "server/common/log.h"
#include "server/worker/worker.h"

void ad__worker_tell(ad_worker *w, const ad_note *note, int fd) {
    pthread_mutex_lock(&w->arrayd.lock);
    int status = ad__channel_send(&w->arrayd.channel, note, fd);
    bool full = ad__channel_waiting(&w->arrayd.channel);
    pthread_mutex_unlock(&w->arrayd.lock);
    if (status) {
        ad__log(cannot_tell_arrayd, ad__note_name(note->kind), ad__error_text(status));
        /* An unknown slab is only not recovered, and a lost report only missing. After any other lost note arrayd and
         * the worker would disagree. */
        if (note->kind != AD_NOTE_SLAB && note->kind != AD_NOTE_SLAB_GONE && note->kind != AD_NOTE_REPORTED)
            _exit(AD_EXIT_ASTRAY);
    }
    if (full && !atomic_exchange(&w->arrayd.full, true)) uv_async_send(&w->io.wake);
}
