/* A backend for tests of workers that die: the cpu backend, which ends its process. It does so when an operation has
 * the number FATAL among its scalars, or an input of so many rows. Where operations are complete later it dies later,
 * too: when somebody looks how far that stream is.
 *
 * AD_TEST_CRASHES names a folder. With a file `way` in it the process ends by that signal instead of by SIGSEGV. Each
 * death writes one byte into `deaths`; when that has as many as `most` says there are no more. A file `attach` is
 * removed, and the worker that takes up slabs dies of it. A file `lost` has the number of a device that does not open.
 * With a file `faults` the process does not end: the device is lost, as a GPU is by a kernel's fault, and all that is
 * asked of it from then on fails.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/rows_request.h"
#include "tests/fault/copied_backend.h"

#define FATAL 6661

static const ad_backend *cpu;
static ad_backend table;
static ad_stream *doomed; /* has such an operation under way */
static bool faulted;

typedef char file_path[256];

static const char *find_path(const char *name, file_path out) {
    snprintf(out, sizeof(file_path), "%s/%s", getenv("AD_TEST_CRASHES"), name);
    return out;
}

static int number_in(const char *name, int otherwise) {
    file_path path;
    int number = otherwise;
    FILE *f = fopen(find_path(name, path), "r");
    if (f && fscanf(f, "%d", &number) != 1) number = otherwise;
    if (f) fclose(f);
    return number;
}

static void end_process(void) {
    file_path path;
    struct stat st;
    const int way = number_in("way", SIGSEGV), most = number_in("most", 1000);
    int fd = open(find_path("deaths", path), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0 || fstat(fd, &st) || st.st_size >= most) {
        if (fd >= 0) close(fd);
        return;
    }
    if (write(fd, "x", 1) != 1) _exit(9);
    if ((faulted = number_in("faults", 0))) return;
    if (!way) _exit(0);
    if (number_in("unseen", 0)) signal(way, SIG_DFL); /* the worker does not learn of it */
    raise(way);
}

static bool is_fatal_number(const ad_scalar *s) { return s->kind == AD_SCALAR_INT && s->as.i == FATAL; }

static bool is_fatal(const ad_op *op) {
    for (int i = op->nout; i < op->nout + op->nin; i++) {
        const ad_operand *o = &op->operand[i];
        if (o->is_scalar ? is_fatal_number(&o->scalar) : o->desc.ndim && o->desc.shape[0] == FATAL) return true;
    }
    return false;
}

static void die_if_awaited(const ad_stream *stream) {
    if (!doomed || (stream && stream != doomed)) return;
    doomed = NULL;
    end_process();
}

/* What a call returns of which `status` is the result. */
static int fail_if_lost(int status, ad_fault *fault) {
    return faulted ? ad__fault(fault, AD_E_DEVICE_LOST, "a kernel has faulted") : status;
}

static void arrange_death(ad_stream *stream) {
    if (table.asynchronous) doomed = stream;
    else end_process();
}

/* The host waits for a query, which is complete when this returns. */
static int run_operation(ad_stream *stream, const ad_op *op, ad_run *how, ad_fault *fault) {
    if (is_fatal(op) && op->opcode == AD_REQ_QUERY) end_process();
    else if (is_fatal(op)) arrange_death(stream);
    return fail_if_lost(cpu->run(stream, op, how, fault), fault);
}

static int run_chain(ad_stream *stream, const ad_chain *chain, ad_run *how, ad_fault *fault) {
    bool fatal = false;
    for (int i = 0; i < chain->nscalars; i++) fatal = fatal || is_fatal_number(&chain->scalar[i]);
    if (fatal) arrange_death(stream);
    return fail_if_lost(cpu->fuse(stream, chain, how, fault), fault);
}

static int wait_stream(ad_stream *stream, ad_fault *fault) {
    die_if_awaited(stream);
    return fail_if_lost(cpu->stream_wait(stream, fault), fault);
}

static int ask_event(ad_event *event, ad_fault *fault) {
    die_if_awaited(NULL);
    return fail_if_lost(cpu->event_done(event, fault), fault);
}

static int record_event(ad_event *event, ad_stream *stream, ad_fault *fault) {
    return fail_if_lost(cpu->event_record(event, stream, fault), fault);
}

static int open_device(int index, int threads, ad_compiler *compiler, ad_device **out, ad_fault *fault) {
    if (index == number_in("lost", -1)) return ad__fault(fault, AD_E_DEVICE_LOST, "it has fallen off the bus");
    return cpu->device_open(index, threads, compiler, out, fault);
}

static int attach_slab(ad_device *device, int fd, uint64_t size, ad_slab_map *out, ad_fault *fault) {
    file_path path;
    if (!unlink(find_path("attach", path))) end_process();
    return cpu->slab_attach(device, fd, size, out, fault);
}

static int write_memory(ad_stream *stream, void *to, const void *host, uint64_t size, ad_fault *fault) {
    const int64_t fatal = FATAL;
    if (size == FATAL * sizeof fatal) arrange_death(stream);
    return fail_if_lost(cpu->upload(stream, to, host, size, fault), fault);
}

static int read_memory(ad_stream *stream, void *host, const void *from, uint64_t size, ad_fault *fault) {
    if (size == FATAL) arrange_death(stream);
    return fail_if_lost(cpu->download(stream, host, from, size, fault), fault);
}

const ad_backend *ad_backend_get(void) {
    if (!(cpu = open_backend(CPU_BACKEND, &table))) return NULL;
    table.device_open = open_device;
    table.run = run_operation;
    table.fuse = run_chain;
    table.stream_wait = wait_stream;
    table.event_done = ask_event;
    table.event_record = record_event;
    table.slab_attach = attach_slab;
    table.upload = write_memory;
    table.download = read_memory;
    return &table;
}
