/* arrayd-pull: fetches one array of another server. arrayd starts it with two sockets:
 *
 *     descriptor 3   the job comes as one line: url, principal, two halves of a capability, with tabs between.
 *                    The answer goes as one line: "0", two halves of a capability; or an error code and text
 *     descriptor 4   ends of connections to arrayd, each of which is a session of the principal that wants the array
 *
 * It is a client of both servers, so a connection that breaks is taken up again, and what comes from the other server
 * meets a process of its own. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "client-c/client.h"

#define JOB_FD 3
#define DOOR_FD 4
#define NAME "arrayd-pull"
#define PART ((size_t)2 << 20) /* bytes that are copied at a time */
#define PARTS 6                /* parts that are asked for before the first one must have been written */
#define AHEAD 5                /* parts that are asked for over a socket at a time, so that it is never idle */
#define LINGER 60.0            /* seconds within which the session that asked must have attached the array */
#define MOST_MEMORY ((rlim_t)4 << 30)
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true /* sanitizers map terabytes */
#else
#define SANITIZED false
#endif

typedef struct job {
    char line[1024];
    const char *url, *principal;
    ad_capability capability;
} job;

/* Parts of an array on their way: a thread reads them from one server, and main writes them to the other one. They lie
 * in memory that is shared with the server here, which takes them from there itself. */
typedef struct transfer {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    const ad_array *from;
    bool remote; /* it is read over a socket, and not through memory that is shared with its server */
    uint8_t *parts;
    ad_slot slot[PARTS];
    size_t size, read, written; /* bytes */
    int status;
    char why[AD_FAULT_TEXT];
} transfer;

/* ---- the job and its answer ---- */

static int take_job(job *j) {
    size_t used = 0;
    char *rest = j->line;
    while (used < sizeof j->line - 1 && !memchr(j->line, '\n', used)) {
        ssize_t n = read(JOB_FD, j->line + used, sizeof j->line - 1 - used);
        if (n <= 0) return ad__fail(AD_E_SYSTEM, "there is no job");
        used += (size_t)n;
    }
    j->line[strcspn(j->line, "\n")] = 0;
    j->url = strsep(&rest, "\t");
    j->principal = strsep(&rest, "\t");
    if (rest && sscanf(rest, "%" SCNx64 "\t%" SCNx64, &j->capability.half[0], &j->capability.half[1]) == 2) return 0;
    return ad__fail(AD_E_PROTOCOL, "this is no job");
}

/* Returns false if there is nobody any more who takes the answer. */
static bool answer_job(int status, const ad_capability *c) {
    char line[AD_FAULT_TEXT + 32];
    int n = status ? snprintf(line, sizeof line, "%d\t%s\n", -status, ad_error_message())
                   : snprintf(line, sizeof line, "0\t%" PRIx64 "\t%" PRIx64 "\n", c->half[0], c->half[1]);
    for (char *at = line; at < line + n - 1; at++)
        if (*at == '\n') *at = ' ';
    return write(JOB_FD, line, (size_t)n) == n;
}

/* ---- copying ---- */

static size_t next_part(const transfer *l, size_t at) { return l->size - at < PART ? l->size - at : PART; }

static uint8_t *find_part(const transfer *l, size_t at) { return l->parts + at % (PARTS * PART); }

static int view_bytes(const ad_array *a, size_t at, size_t n, ad_array **out) {
    static const int64_t one = 1;
    const int64_t count = (int64_t)n;
    ad_array_info info;
    ad_array_get_info(a, &info);
    if (info.count == count) { /* also what stands for an array that has failed, of which there is no view */
        *out = ad_array_retain((ad_array *)(uintptr_t)a);
        return 0;
    }
    return ad_view(a, AD_UINT8, (int64_t)at, 1, &count, &one, out);
}

static int read_bytes(const ad_array *a, size_t at, uint8_t *to, size_t n) {
    ad_array *view;
    int status = view_bytes(a, at, n, &view);
    if (status) return status;
    status = ad_download(view, to, n);
    ad_array_release(view);
    return status;
}

/* Tell whether there is memory for the part at this place, and wait for it unless other parts are on their way. */
static bool has_room(transfer *l, size_t at, bool wait) {
    pthread_mutex_lock(&l->lock);
    while (wait && at - l->written >= PARTS * PART && !l->status) pthread_cond_wait(&l->changed, &l->lock);
    const bool room = at - l->written < PARTS * PART && !l->status;
    pthread_mutex_unlock(&l->lock);
    return room;
}

static int ask_part(transfer *l, size_t at) {
    return l->remote ? ad__ask_bytes(l->from, at, find_part(l, at), next_part(l, at), &l->slot[at / PART % PARTS]) : 0;
}

static int receive_part(transfer *l, size_t at) {
    if (!l->remote) return read_bytes(l->from, at, find_part(l, at), next_part(l, at));
    return ad__await_ask(l->from->session, &l->slot[at / PART % PARTS]);
}

static void end_reading(transfer *l, size_t end, int status) {
    pthread_mutex_lock(&l->lock);
    if (status) {
        l->status = status;
        snprintf(l->why, sizeof l->why, "%s", ad_error_message());
    } else {
        l->read = end;
    }
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
}

/* Ask for the parts that may be on their way while the one at `read` is. */
static int ask_ahead(transfer *l, size_t read, size_t *asked) {
    int status = 0;
    while (*asked < l->size && *asked - read < AHEAD * PART && has_room(l, *asked, *asked == read)) {
        if ((status = ask_part(l, *asked))) break;
        *asked += next_part(l, *asked);
    }
    return status;
}

/* Read until all is here, or nothing more is asked for because writing has failed. */
static void *read_parts(void *argument) {
    transfer *l = argument;
    size_t asked = 0, read = 0;
    int status;
    while (!(status = ask_ahead(l, read, &asked)) && read < asked) {
        status = receive_part(l, read);
        read += next_part(l, read);
        if (status) break;
        end_reading(l, read, 0);
    }
    if (status) end_reading(l, read, status);
    for (; l->remote && read < asked; read += next_part(l, read)) receive_part(l, read); /* nothing may come later */
    return NULL;
}

static int write_bytes(const ad_array *a, size_t at, const uint8_t *from, size_t n) {
    ad_array *view;
    int status = view_bytes(a, at, n, &view);
    if (status) return status;
    status = ad_write(view, from, n);
    ad_array_release(view);
    return status;
}

/* Wait until a part has been read. */
static int await_part(transfer *l, size_t end) {
    pthread_mutex_lock(&l->lock);
    while (l->read < end && !l->status) pthread_cond_wait(&l->changed, &l->lock);
    const int status = l->status;
    pthread_mutex_unlock(&l->lock);
    return status ? ad__fail(status, "%s", l->why) : 0;
}

static void end_part(transfer *l, size_t end, int status) {
    pthread_mutex_lock(&l->lock);
    if (status) l->status = status;
    else l->written = end;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
}

static int copy_parts(transfer *l, const ad_array *to) {
    pthread_t reader;
    int status = 0;
    if (pthread_create(&reader, NULL, read_parts, l) != 0) return ad__fail(AD_E_SYSTEM, "no thread");
    for (size_t at = 0; at < l->size && !status; at += PART) {
        const size_t n = next_part(l, at);
        status = await_part(l, at + n);
        if (!status) status = write_bytes(to, at, find_part(l, at), n);
        end_part(l, at + n, status);
    }
    pthread_join(reader, NULL);
    return status;
}

static int copy_array(ad_session *here, const ad_array *from, const ad_array *to, size_t size) {
    transfer l = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .from = from, .size = size};
    l.remote = ad__is_remote(&from->session->connection.address);
    const size_t room = size < PARTS * PART ? size : PARTS * PART;
    ad_host *shared = NULL;
    int status = room < AD_SHARED_LEAST ? AD_E_UNSUPPORTED : ad_host_alloc(here, room, &shared);
    if (status && status != AD_E_UNSUPPORTED) return status;
    l.parts = shared ? ad_host_data(shared) : malloc(room ? room : 1);
    status = l.parts ? copy_parts(&l, to) : ad__fail_memory();
    if (!shared) free(l.parts);
    ad_host_release(shared);
    return status;
}

/* ---- both servers ---- */

/* Connect to the other server. A token's owner comes for the principal whose array it is: the server checks that it
 * may. */
static int open_peer(const job *j, ad_session **out) {
    ad_server_address address;
    char token[AD_TOKEN_SIZE] = "";
    int status = ad__url_parse(j->url, &address);
    if (status) return status;
    if (*address.token && snprintf(token, sizeof token, "%s/%s", address.token, j->principal) >= (int)sizeof token)
        status = ad__fail(AD_E_VALUE, "the token in option peers is longer than %d letters",
                          AD_TOKEN_SIZE - 2 - (int)strlen(j->principal));
    const ad_connection connection = {.token = *token ? token : NULL, .name = NAME};
    if (!status) status = ad_session_open_with(j->url, &connection, out);
    explicit_bzero(token, sizeof token);
    explicit_bzero(&address, sizeof address);
    return status;
}

/* Report why an array cannot be had, which the array carries: there was no room for it, for example. */
static int check_array(const ad_array *a, int64_t size) {
    uint8_t byte;
    return size ? read_bytes(a, (size_t)size - 1, &byte, 1) : 0;
}

static int copy_between(ad_session *here, const ad_array *theirs, ad_capability *out) {
    ad_array_info info;
    ad_array *ours;
    ad_array_get_info(theirs, &info);
    int status = ad_empty(here, AD_UINT8, 1, &info.count, &ours);
    if (status) return status;
    status = check_array(ours, info.count);
    if (!status) status = copy_array(here, theirs, ours, (size_t)info.count);
    if (!status) status = check_array(ours, info.count);
    if (!status) status = ad_capability_make(ours, 1, 0, LINGER, out);
    ad_array_release(ours);
    return status;
}

static int do_job(job *j, ad_session **here, ad_session **there, ad_capability *out) {
    ad_array *theirs;
    int status = take_job(j);
    if (!status) status = ad__session_open_by_door(DOOR_FD, NAME, here);
    if (!status) status = open_peer(j, there);
    explicit_bzero(j->line, sizeof j->line);
    if (!status) status = ad__capability_attach_bytes(*there, &j->capability, &theirs);
    if (status) return status;
    status = copy_between(*here, theirs, out);
    ad_array_release(theirs);
    return status;
}

/* This process reads what another server sends. So it becomes nobody else, leaves no core with a token, and takes
 * bounded memory. It ends with arrayd. */
static void confine_process(void) {
    const struct rlimit memory = {MOST_MEMORY, MOST_MEMORY}, none = {0, 0};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setrlimit(RLIMIT_CORE, &none);
    if (!SANITIZED) setrlimit(RLIMIT_AS, &memory);
}

int main(void) {
    static job j;
    ad_session *here = NULL, *there = NULL;
    ad_capability capability;
    confine_process();
    signal(SIGPIPE, SIG_IGN);
    const int status = do_job(&j, &here, &there, &capability);
    const bool answered = answer_job(status, &capability);
    ad_session_close(there);
    ad_session_close(here);
    return !answered;
}
