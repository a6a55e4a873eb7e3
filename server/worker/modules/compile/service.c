/* The compile service: how it begins and ends. */
#include "server/worker/modules/compile/service.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "server/common/os.h"
#include "server/worker/modules/compile/inside.h"

static int start_thread(ad_service *s, ad_fault *fault) {
    int error = ad__os_thread(&s->thread, ad__compile_thread, s);
    return error ? ad__fault(fault, AD_E_SYSTEM, "cannot start the compile service: %s", strerror(error)) : 0;
}

int ad__compile_open(const ad_config *c, void (*done)(void *user), void *user, ad_compiler **out, ad_fault *fault) {
    ad_service *s = ad__os.calloc(1, sizeof *s);
    int status;
    if (!s) return ad__fault(fault, AD_E_MEMORY, "out of host memory");
    *s = (ad_service){.compiler = {ad__compile_get, ad__compile_release}, .config = c, .done = done, .user = user};
    pthread_mutex_init(&s->lock, NULL);
    s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->wake < 0 || getrandom(s->seed, sizeof s->seed, 0) != sizeof s->seed) {
        status = ad__fault(fault, AD_E_SYSTEM, "cannot start the compile service: %s", strerror(errno));
        goto fail;
    }
    if ((status = start_thread(s, fault))) goto fail;
    *out = &s->compiler;
    return 0;
fail:
    if (s->wake >= 0) close(s->wake);
    pthread_mutex_destroy(&s->lock);
    free(s);
    return status;
}

void ad__compile_close(ad_compiler *compiler) {
    ad_service *s = (ad_service *)compiler;
    if (!s) return;
    atomic_store(&s->stop, true);
    eventfd_write(s->wake, 1);
    pthread_join(s->thread, NULL);
    ad__compile_free_all(s);
    close(s->wake);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

void ad__compile_counts(ad_compiler *compiler, ad_compile_counts *out) {
    ad_service *s = (ad_service *)compiler;
    *out = (ad_compile_counts){0};
    if (!s) return;
    pthread_mutex_lock(&s->lock);
    *out = s->counts;
    pthread_mutex_unlock(&s->lock);
}
