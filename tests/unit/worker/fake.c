#include "server/worker/handlers.h"
#include "tests/unit/worker/fake.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "protocol/desc.h"
#include "protocol/rows.h"

fake_device fake;

struct ad_device {
    int index;
};

struct ad_stream {
    uint64_t enqueued, passed;
    int confined;
    struct ad_stream *next;
};

struct ad_event {
    struct ad_stream *stream;
    uint64_t at;
};

static ad_channel arrayd;
static struct ad_device the_device;
static struct ad_stream *streams;
static bool later;

ad_channel *fake_arrayd(void) { return &arrayd; }

void fake_pass(void) {
    for (struct ad_stream *s = streams; s; s = s->next) s->passed = s->enqueued;
}

static int count_devices(int *count, ad_fault *fault) {
    (void)fault;
    *count = 1;
    return 0;
}

static int device_open(int index, int threads, ad_compiler *compiler, ad_device **out, ad_fault *fault) {
    (void)index, (void)threads, (void)compiler, (void)fault;
    *out = &the_device;
    return 0;
}

static void device_close(ad_device *device) { (void)device; }

static void device_info(ad_device *device, ad_device_info *info) {
    (void)device;
    *info = (ad_device_info){.name = "fake", .memory = 1u << 30, .multiprocessors = 132, .peers = 1};
}

static int map_slab(int fd, uint64_t size, ad_slab_map *out) {
    void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    cr_assert_neq(base, MAP_FAILED);
    *out = (ad_slab_map){base, size, fd};
    fake.open_slabs++;
    return 0;
}

static int slab_create(ad_device *device, uint64_t size, ad_slab_map *out, ad_fault *fault) {
    (void)device, (void)fault;
    int fd = memfd_create("fake slab", MFD_CLOEXEC);
    cr_assert(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
    return map_slab(fd, size, out);
}

static int slab_attach(ad_device *device, int fd, uint64_t size, ad_slab_map *out, ad_fault *fault) {
    (void)device, (void)fault;
    return map_slab(dup(fd), size, out);
}

static void slab_close(ad_device *device, ad_slab_map *slab) {
    (void)device;
    munmap(slab->base, slab->size);
    close(slab->fd);
    fake.open_slabs--;
}

static int stream_open(ad_device *device, int priority, ad_stream **out, ad_fault *fault) {
    (void)device, (void)priority, (void)fault;
    *out = calloc(1, sizeof **out);
    (*out)->next = streams;
    streams = *out;
    fake.open_streams++;
    return 0;
}

static void stream_close(ad_stream *stream) {
    struct ad_stream **at = &streams;
    while (*at != stream) at = &(*at)->next;
    *at = stream->next;
    free(stream);
    fake.open_streams--;
}

static int device_split(ad_device *device, int wanted, ad_fault *fault) {
    (void)device, (void)wanted, (void)fault;
    fake.splits++;
    return fake.parts;
}

static int stream_confine(ad_stream *stream, int reserved, ad_fault *fault) {
    cr_assert(!reserved || reserved == fake.parts, "%d multiprocessors were never reserved", reserved);
    fake.confines++;
    if (fake.confine_fail) return ad__fault(fault, fake.confine_fail, "it stays");
    stream->confined = reserved;
    return 0;
}

int fake_confined(const ad_stream *stream) { return stream->confined; }

static int stream_wait(ad_stream *stream, ad_fault *fault) {
    (void)fault;
    stream->passed = stream->enqueued;
    return 0;
}

static int check_device(ad_fault *fault) {
    return fake.lost ? ad__fault(fault, AD_E_DEVICE_LOST, "the fake is lost") : 0;
}

static int event_open(ad_device *device, bool timed, ad_event **out, ad_fault *fault) {
    (void)device, (void)timed;
    if (fake.lost) return check_device(fault);
    *out = calloc(1, sizeof **out);
    fake.open_events++;
    return 0;
}

static void event_close(ad_event *event) {
    free(event);
    fake.open_events--;
}

static int event_record(ad_event *event, ad_stream *stream, ad_fault *fault) {
    *event = (ad_event){stream, stream->enqueued};
    return check_device(fault);
}

static int event_elapsed(ad_event *from, ad_event *to, float *ms, ad_fault *fault) {
    *ms = (float)(to->at - from->at);
    return check_device(fault);
}

static int event_done(ad_event *event, ad_fault *fault) {
    (void)fault;
    return !event->stream || !later || event->stream->passed >= event->at;
}

static int stream_follow(ad_stream *stream, ad_event *event, ad_fault *fault) {
    (void)event;
    stream->enqueued++;
    return check_device(fault);
}

static int host_register(ad_device *device, void *memory, uint64_t size, ad_fault *fault) {
    (void)device, (void)memory, (void)size, (void)fault;
    return 0;
}

static void host_unregister(ad_device *device, void *memory) { (void)device, (void)memory; }

static int check_open(ad_device *device, int n, ad_check **out, ad_fault *fault) {
    (void)device, (void)fault;
    *out = calloc((size_t)n, sizeof **out);
    return 0;
}

static void check_close(ad_device *device, ad_check *checks) {
    (void)device;
    free(checks);
}

static int check_fault(const ad_check *check, ad_fault *fault) { return ad__fault(fault, check->code, "found late"); }

static int zero_memory(ad_stream *stream, void *to, uint64_t size, ad_fault *fault) {
    (void)fault;
    stream->enqueued++;
    memset(to, 0, size);
    return 0;
}

static int copy_memory(ad_stream *stream, void *to, const void *from, uint64_t size, ad_fault *fault) {
    (void)fault;
    stream->enqueued++;
    memcpy(to, from, size);
    return 0;
}

static int64_t get_element(const ad_operand *o, int64_t i) {
    if (o->is_scalar) return o->scalar.as.i;
    return ((const int64_t *)o->data)[o->desc.ndim && o->desc.strides && !o->desc.strides[0] ? 0 : i];
}

/* Add the inputs of contiguous int64, whatever the operation is called. */
static int run_operation(ad_stream *stream, const ad_op *op, ad_run *run, ad_fault *fault) {
    const int status = fake.fail;
    fake.runs++;
    fake.fail = 0;
    if (status && !fake.fail_late) return ad__fault(fault, status, "the fake fails");
    stream->enqueued++;
    if (run->check && fake.fail_late) {
        run->checked = true;
        run->check->code = status;
    }
    for (int64_t i = 0; op->nout && i < ad__desc_count(&op->operand[0].desc); i++) {
        int64_t sum = 0;
        for (int k = op->nout; k < op->nout + op->nin; k++) sum += get_element(&op->operand[k], i);
        ((int64_t *)op->operand[0].data)[i] = sum;
    }
    return 0;
}

static int run_chain(ad_stream *stream, const ad_chain *chain, ad_run *run_, ad_fault *fault) {
    (void)stream, (void)chain, (void)run_, (void)fault;
    return 0; /* each operation runs by itself */
}

static ad_backend backend = {.version = AD_BACKEND_VERSION,
                             .name = "fake",
                             .devices = count_devices,
                             .device_open = device_open,
                             .device_close = device_close,
                             .device_info = device_info,
                             .slab_create = slab_create,
                             .slab_attach = slab_attach,
                             .slab_close = slab_close,
                             .stream_open = stream_open,
                             .stream_close = stream_close,
                             .stream_wait = stream_wait,
                             .event_open = event_open,
                             .event_close = event_close,
                             .event_record = event_record,
                             .event_done = event_done,
                             .event_elapsed = event_elapsed,
                             .stream_follow = stream_follow,
                             .host_register = host_register,
                             .host_unregister = host_unregister,
                             .check_open = check_open,
                             .check_close = check_close,
                             .check_fault = check_fault,
                             .zero = zero_memory,
                             .upload = copy_memory,
                             .upload_pinned = copy_memory,
                             .download = copy_memory,
                             .move = copy_memory,
                             .run = run_operation,
                             .fuse = run_chain};

static const ad_part_table parts = {device_split, stream_confine};

/* ---- the worker ---- */

static void on_wake(uv_async_t *wake) { (void)wake; }

static void lose_device(void *worker, const char *why) {
    (void)worker;
    cr_assert(fake.lost, "device lost: %s", why);
    fake.losses++;
}

static void load_config(ad_worker *w) {
    char *argv[] = {(char[]){"arrayd-worker"}, NULL};
    ad_config_action action;
    ad_fault fault = {0};
    cr_assert_eq(ad__config_load(&w->config, 1, argv, NULL, &action, &fault), 0, "%s", fault.text);
    w->config.slab = 1u << 20;
    w->config.memory = 64u << 20;
}

void fake_exhaust_journal(ad_worker *w, const size_t *size, int pieces) {
    void *kept[8] = {0};
    for (int i = 0; i < pieces; i++) cr_assert_not_null(kept[i] = ad__journal_alloc(w->journal, size[i]));
    for (size_t bytes = AD_JOURNAL_ADDRESSES / 4; bytes; bytes /= 2)
        while (ad__journal_alloc(w->journal, bytes)) continue;
    for (int i = 0; i < pieces; i++) ad__journal_free(w->journal, kept[i]);
}

ad_worker *fake_worker(bool asynchronous, bool journaled, const ad_component *const *components) {
    ad_worker *w = calloc(1, sizeof *w);
    ad_fault fault = {0};
    int end[2];
    load_config(w);
    later = backend.asynchronous = asynchronous;
    w->backend = &backend;
    w->parts = &parts;
    w->device.count = 1;
    w->fuses = AD_FUSE_WHERE_IT_PAYS;
    w->components = components;
    w->io.thread = pthread_self();
    cr_assert_eq(uv_loop_init(&w->io.loop), 0);
    cr_assert_eq(uv_async_init(&w->io.loop, &w->io.wake, on_wake), 0);
    cr_assert_eq(uv_timer_init(&w->io.loop, &w->io.clock), 0);
    w->io.clock.data = w;
    pthread_mutex_init(&w->io.wake_lock, NULL);
    pthread_mutex_init(&w->arrayd.lock, NULL);
    pthread_mutex_init(&w->sessions_lock, NULL);
    pthread_mutex_init(&w->engine.lock, NULL);
    ad__reserved_init(&w->reserved);
    ad__watchdog_init(&w->device.watchdog, lose_device, w);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, end), 0);
    ad__channel_init(&w->arrayd.channel, end[0], AD_TO_WORKER);
    ad__channel_init(&arrayd, end[1], AD_TO_FRONT);
    if (journaled) cr_assert_eq(ad__journal_open(&w->journal, &fault), 0, "%s", fault.text);
    cr_assert_not_null(ad__gpu_get(w, 0, &fault), "%s", fault.text);
    return w;
}

void fake_worker_close(ad_worker *w) {
    ad__watchdog_close(&w->device.watchdog);
    ad__gpus_close(w);
    ad__reserved_close(&w->reserved);
    ad__journal_close(w->journal);
    ad__channel_close(&w->arrayd.channel);
    ad__channel_close(&arrayd);
    ad__config_free(&w->config);
    ad__bytes_free(&w->engine.scratch);
    uv_close((uv_handle_t *)&w->io.wake, NULL);
    uv_close((uv_handle_t *)&w->io.clock, NULL);
    uv_run(&w->io.loop, UV_RUN_DEFAULT);
    cr_assert_eq(uv_loop_close(&w->io.loop), 0);
    free(w);
}

ad_worker_session *fake_session(ad_worker *w, uint64_t id, const char *principal) {
    ad_worker_session *s = calloc(1, sizeof *s);
    ad_note note = {.id = id, .resumable = 1, .grants = {.devices = UINT64_MAX}};
    int end[2];
    snprintf(note.who, sizeof note.who, "%s", principal);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, end), 0);
    s->worker = w;
    s->id = id;
    s->socket.fd = end[0];
    s->comeback.able = true;
    s->grants = note.grants;
    memcpy(s->principal, note.who, sizeof s->principal);
    cr_assert_eq(ad__components_open(s, &note), 0);
    return s;
}

void fake_session_close(ad_worker_session *s) {
    ad__input_clear(&s->turns.queue);
    ad__components_close(s);
    close(s->socket.fd);
    free(s);
}

/* Rooms execute no whole messages here: tests call handlers. */
ad_handler *const ad__handlers[AD_REQUEST_LIMIT] = {NULL};
