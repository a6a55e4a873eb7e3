/* Handing over to the next front in an upgrade (upgrade.h): writing the record, and reading it. */
#include "server/front/upgrade/record.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "server/common/log.h"
#include "server/common/os.h"
#include "server/front/net/address.h"
#include "server/front/front.h"
#include "server/worker/journal/journal.h"

#define MAGIC 0x72657661646e6168u
#define MOST (1u << 30) /* most bytes of a record */

void ad__handover_layout(char out[AD_HAND_LAYOUT]) {
    char journal[AD_JOURNAL_LAYOUT_SIZE];
    ad__journal_layout(journal);
    snprintf(out, AD_HAND_LAYOUT, "%d/%s", AD_HAND_VERSION, journal);
}

/* ---- sockets ---- */

struct ad_inherited {
    ad_inherited *next;
    char *name, *text;
    int fd;
};

static ad_inherited *add_inherited(ad_front *f) {
    ad_inherited *i = ad__os.calloc(1, sizeof *i);
    if (!i) return NULL;
    i->fd = -1;
    i->next = f->inherited;
    f->inherited = i;
    return i;
}

static void free_inherited(ad_inherited **at) {
    ad_inherited *i = *at;
    *at = i->next;
    free(i->name);
    free(i->text);
    free(i);
}

int ad__inherit_offer(ad_front *f, const char *name, const char *text, int fd) {
    ad_inherited *i = add_inherited(f);
    if (!i) return AD_E_MEMORY;
    i->fd = fd;
    i->name = strdup(name);
    i->text = strdup(text);
    return i->name && i->text ? 0 : AD_E_MEMORY;
}

/* Close an inherited socket that is not wanted, and remove its file. */
static void discard_inherited(ad_inherited **at) {
    if (!strcmp((*at)->name, "socket") || !strcmp((*at)->name, "control")) unlink((*at)->text);
    close((*at)->fd);
    free_inherited(at);
}

int ad__inherit(ad_front *f, const char *name, const char *text) {
    ad_inherited **at = &f->inherited;
    while (*at) {
        if (strcmp((*at)->name, name)) {
            at = &(*at)->next;
        } else if (!strcmp((*at)->text, text)) {
            int fd = (*at)->fd;
            free_inherited(at);
            return fd;
        } else {
            discard_inherited(at); /* its address may be wanted for another socket */
        }
    }
    return -1;
}

int ad__inherit_any(ad_front *f, const char *name, char *text, size_t size) {
    ad_inherited **at = &f->inherited;
    while (*at && strcmp((*at)->name, name)) at = &(*at)->next;
    if (!*at) return -1;
    int fd = (*at)->fd;
    snprintf(text, size, "%s", (*at)->text);
    free_inherited(at);
    return fd;
}

static void transfer_sockets(ad_front *f, ad_hand *h) {
    size_t count = 0;
    for (const ad_inherited *i = f->inherited; i; i = i->next) count++;
    count = ad__hand_count(h, count);
    ad_inherited *i = f->inherited;
    for (size_t k = 0; k < count && !h->failed; k++) {
        if (h->reading && !(i = add_inherited(f))) {
            h->failed = true;
            return;
        }
        ad__hand_string(h, &i->name);
        ad__hand_string(h, &i->text);
        ad__hand_fd(h, &i->fd);
        if (!i->name || !i->text || i->fd < 0) h->failed = true;
        i = i->next;
    }
}

/* ---- the record ---- */

static void transfer_front(ad_front *f, ad_hand *h) {
    ad_upgrade *u = &f->upgrade;
    uint64_t began = (uint64_t)f->observability.began, quiet = (uint64_t)u->began, ended = (uint64_t)u->ended;
    ad__hand_number(h, &f->instance);
    ad__hand_number(h, &f->last_session);
    ad__hand_number(h, &f->observability.refused);
    ad__hand_number(h, &f->observability.probes);
    ad__hand_number(h, &began);
    ad__hand_number(h, &quiet);
    ad__hand_number(h, &ended);
    ad__hand_number(h, &u->sessions);
    ad__hand_number(h, &u->lost);
    ad__hand_number(h, &u->declared);
    ad__hand_text(h, u->by, sizeof u->by);
    ad__hand_text(h, u->from, sizeof u->from);
    f->observability.began = (int64_t)began;
    u->began = (int64_t)quiet;
    u->ended = (int64_t)ended;
}

static void transfer_all(ad_front *f, ad_hand *h) {
    uint64_t magic = MAGIC, version = AD_HAND_VERSION;
    ad__hand_number(h, &magic);
    ad__hand_number(h, &version);
    if (magic != MAGIC || version != AD_HAND_VERSION) h->failed = true;
    transfer_front(f, h);
    transfer_sockets(f, h);
    ad__domain_hand_over(f, h);
    ad__session_entry_hand_over(f, h);
    if (h->reading && h->at != h->end) h->failed = true;
}

/* ---- writing ---- */

static int offer_sockets(ad_front *f) {
    int status = ad__listen_offer(f);
    if (!status) status = ad__handshake_offer(f);
    if (!status) status = ad__control_offer(f);
    return status ? status : ad__http_offer(f);
}

static int write_record(const ad_bytes *b) {
    int fd = memfd_create("arrayd-upgrade", MFD_CLOEXEC);
    if (fd < 0 || !ad__os_write(fd, b->data, b->size)) return fd;
    close(fd);
    return -1;
}

static void set_descriptor_flags(const ad_hand *h, int record, int flags) {
    for (size_t i = 0; i < h->count; i++) fcntl(h->fd[i], F_SETFD, flags);
    fcntl(record, F_SETFD, flags);
}

const int ad__front_signals[AD_FRONT_SIGNALS] = {SIGTERM, SIGINT, SIGHUP, SIGUSR2};

/* Block or unblock the front's signals. Blocked ones wait for the next front, which unblocks them when it has
 * handlers. */
static void change_signal_mask(int how) {
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < AD_FRONT_SIGNALS; i++) sigaddset(&set, ad__front_signals[i]);
    sigprocmask(how, &set, NULL);
}

void ad__handover_let_signals_in(void) { change_signal_mask(SIG_UNBLOCK); }

char **ad__handover_arguments(ad_front *f, char *first) {
    char **list = ad__os.calloc((size_t)f->started.argc + 2, sizeof *list);
    if (!list) return NULL;
    list[0] = f->started.path;
    list[1] = first;
    for (int i = 1; i < f->started.argc; i++) list[i + 1] = f->started.argv[i];
    return list;
}

/* Execute the program, which has the descriptors of the record. Returns only an errno. */
static int execute_program(ad_front *f, const ad_hand *h, int record) {
    extern char **environ;
    char option[48];
    snprintf(option, sizeof option, "--take-over=%d", record);
    char **list = ad__handover_arguments(f, option);
    if (!list) return ENOMEM;
    change_signal_mask(SIG_BLOCK);
#ifdef SYS_close_range
    syscall(SYS_close_range, 3u, ~0u,
            4u /* CLOSE_RANGE_CLOEXEC: also for descriptors that a library may have left open */);
#endif
    set_descriptor_flags(h, record, 0);
    execve(f->started.path, list, environ);
    int error = errno;
    set_descriptor_flags(h, record, FD_CLOEXEC);
    change_signal_mask(SIG_UNBLOCK);
    free(list);
    return error;
}

void ad__handover_exec(ad_front *f, ad_fault *fault) {
    ad_hand h = {.out = AD_BYTES_INIT};
    snprintf(f->upgrade.from, sizeof f->upgrade.from, "%s", AD_VERSION);
    int status = offer_sockets(f);
    if (!status) transfer_all(f, &h);
    int record = status || h.failed ? -1 : write_record(&h.out);
    if (record < 0) {
        ad__fault(fault, AD_E_SYSTEM, "the state to hand over cannot be written");
    } else {
        int error = execute_program(f, &h, record);
        ad__fault(fault, AD_E_SYSTEM, "cannot execute %.200s: %s", f->started.path, strerror(error));
        close(record);
    }
    while (f->inherited) free_inherited(&f->inherited);
    ad__hand_free(&h);
}

/* ---- reading ---- */

int ad__handover_read(ad_front *f, int record, ad_fault *fault) {
    struct stat st;
    void *base = MAP_FAILED;
    if (fcntl(record, F_SETFD, FD_CLOEXEC) == 0 && fstat(record, &st) == 0 && st.st_size > 0 && st.st_size < MOST)
        base = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, record, 0);
    if (base == MAP_FAILED) return ad__fault(fault, AD_E_PROTOCOL, "there is nothing to take over");
    ad_hand h = {.reading = true, .at = base, .end = (const uint8_t *)base + st.st_size};
    transfer_all(f, &h);
    munmap(base, (size_t)st.st_size);
    close(record);
    if (h.failed) return ad__fault(fault, AD_E_PROTOCOL, "the state that was handed over is inconsistent");
    f->upgrade.took_over = true;
    f->ready = true; /* clients were served before, and wait for this */
    return 0;
}

void ad__handover_done(ad_front *f) {
    char text[64];
    int fd;
    while ((fd = ad__inherit_any(f, "upgrade", text, sizeof text)) >= 0) ad__control_adopt(f, fd);
    ad__handshake_adopt(f);
    while (f->inherited) discard_inherited(&f->inherited);
    ad__domain_restart_all(f);
    ad__upgrade_advance(f);
}

/* ---- the check ---- */

int ad__handover_check(ad_front *f, const char *theirs, ad_fault *fault) {
    char ours[AD_HAND_LAYOUT], option[AD_HAND_LAYOUT + 32], worker[4200];
    ad__handover_layout(ours);
    printf("arrayd %s\n", AD_VERSION);
    fflush(stdout);
    if (strcmp(theirs, ours))
        return ad__fault(fault, AD_E_VERSION,
                         "version %s takes over from fronts of layout %s, not %.60s: it wants a restart", AD_VERSION,
                         ours, theirs);
    int status = ad__self_signed_prepare(&f->config, fault);
    if (!status) status = ad__check(&f->config, fault);
    if (status) return status;
    ad__domain_worker_path(f, worker, sizeof worker);
    snprintf(option, sizeof option, "--can-take-over=%s", strchr(ours, '/') + 1);
    char *list[] = {worker, option, NULL};
    execv(worker, list);
    return ad__fault(fault, AD_E_SYSTEM, "cannot start %.200s: %s", worker, strerror(errno));
}
