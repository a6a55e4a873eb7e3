/* A library that stands in for NCCL, and for the driver of CUDA, where there is no GPU: memory of the host is exchanged
 * by a memory file that the members map, chunk by chunk. As with NCCL nothing blocks: a thread for each communicator
 * works off what was enqueued.
 *
 *     member    write a chunk into its own slot ─ barrier ─ read the slots of others ─ barrier ─ next chunk
 *
 * NCCL_STAND_IN in the environment: "init": rank 1 gets an error when it joins; "die": rank 1 ends in its first
 * reduction of all; "fail": rank 1 gets an error there; "twins": all GPUs have one name. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { SUCCESS, SYSTEM_ERROR = 2, INVALID = 4, IN_PROGRESS = 7, NOT_READY = 600 };
enum { RANKS = 8, CHUNK = 1 << 16, CALLS = 64 };
enum kind { ALL_REDUCE, REDUCE, REDUCE_SCATTER, BROADCAST, ALL_GATHER, SEND, RECV };

int arrayd_stands_in_for_nccl;

typedef struct id {
    char name[128];
} id;

typedef struct config {
    size_t size;
    unsigned magic, version;
    int blocking;
} config;

typedef struct slot {
    size_t bytes[RANKS]; /* that its member sends to each rank */
    char chunk[CHUNK];
} slot;

typedef struct shared {
    atomic_uint joined, arrived, turn;
    slot slots[RANKS];
} shared;

typedef struct call {
    enum kind kind;
    const char *source;
    char *target;
    size_t count;
    int type, op, peer;
} call;

typedef struct comm {
    shared *s;
    id unique;
    int size, rank;
    pthread_t thread;
    pthread_mutex_t lock;
    call calls[CALLS]; /* enqueued as one */
    int ncalls;
    atomic_bool busy, stop, aborted;
    atomic_int state;
} comm;

static comm *the_one; /* the communicator whose stream is asked for */
static _Thread_local call group[CALLS];
static _Thread_local int ngroup, depth;

static bool is_told(const char *what) {
    const char *told = getenv("NCCL_STAND_IN");
    return told && !strcmp(told, what);
}

static void pause_shortly(void) { nanosleep(&(struct timespec){0, 20000}, NULL); }

/* Wait until all members are here. False: the communicator is over. */
static bool meet_others(comm *c) {
    const unsigned turn = atomic_load(&c->s->turn);
    if (atomic_fetch_add(&c->s->arrived, 1) + 1 == (unsigned)c->size) {
        atomic_store(&c->s->arrived, 0);
        atomic_fetch_add(&c->s->turn, 1);
        return !c->aborted;
    }
    while (atomic_load(&c->s->turn) == turn) {
        if (c->aborted) return false;
        pause_shortly();
    }
    return true;
}

/* ---- arithmetic ---- */

#define COMBINE(type)                                                 \
    {                                                                 \
        type *a = into;                                               \
        const type *b = from;                                         \
        for (size_t i = 0; i < n; i++)                                \
            a[i] = op == 0                      ? (type)(a[i] + b[i]) \
                   : op == 1                    ? (type)(a[i] * b[i]) \
                   : (op == 2) == (b[i] > a[i]) ? b[i]                \
                                                : a[i];               \
        break;                                                        \
    }

static void combine_elements(int type, int op, void *into, const void *from, size_t n) {
    switch (type) {
    case 0: COMBINE(int8_t)
    case 1: COMBINE(uint8_t)
    case 2: COMBINE(int32_t)
    case 3: COMBINE(uint32_t)
    case 4: COMBINE(int64_t)
    case 5: COMBINE(uint64_t)
    case 6: COMBINE(_Float16)
    case 7: COMBINE(float)
    default: COMBINE(double)
    }
}

static size_t size_of(int type) {
    static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8};
    return sizes[type];
}

/* ---- patterns ---- */

/* Combine `count` elements at `at` of all members' sources. Members that do not want it have no target. */
static bool reduce_chunks(comm *c, const call *k, size_t at, size_t count, char *target) {
    const size_t size = size_of(k->type), step = CHUNK / size;
    for (size_t done = 0; done < count; done += step) {
        const size_t n = count - done < step ? count - done : step;
        memcpy(c->s->slots[c->rank].chunk, k->source + (at + done) * size, n * size);
        if (!meet_others(c)) return false;
        for (int r = 0; r < c->size && target; r++) {
            if (r == 0) memcpy(target + done * size, c->s->slots[0].chunk, n * size);
            else combine_elements(k->type, k->op, target + done * size, c->s->slots[r].chunk, n);
        }
        if (!meet_others(c)) return false;
    }
    return true;
}

/* Give all members what one has. */
static bool spread_bytes(comm *c, int from, const char *source, char *target, size_t bytes) {
    for (size_t done = 0; done < bytes; done += CHUNK) {
        const size_t n = bytes - done < CHUNK ? bytes - done : CHUNK;
        if (c->rank == from) memcpy(c->s->slots[from].chunk, source + done, n);
        if (!meet_others(c)) return false;
        memcpy(target + done, c->s->slots[from].chunk, n);
        if (!meet_others(c)) return false;
    }
    return true;
}

static const call *find_call(const comm *c, enum kind kind, int peer) {
    for (int i = 0; i < c->ncalls; i++)
        if (c->calls[i].kind == kind && c->calls[i].peer == peer) return &c->calls[i];
    return NULL;
}

/* Sends and receptions of all members, a pair at a time. */
static bool pass_bytes(comm *c) {
    for (int to = 0; to < c->size; to++) {
        const call *k = find_call(c, SEND, to);
        c->s->slots[c->rank].bytes[to] = k ? k->count : 0;
    }
    if (!meet_others(c)) return false;
    for (int pair = 0; pair < c->size * c->size; pair++) {
        const int from = pair / c->size, to = pair % c->size;
        const size_t bytes = c->s->slots[from].bytes[to];
        const call *sent = c->rank == from ? find_call(c, SEND, to) : NULL;
        const call *got = c->rank == to ? find_call(c, RECV, from) : NULL;
        for (size_t done = 0; done < bytes; done += CHUNK) {
            const size_t n = bytes - done < CHUNK ? bytes - done : CHUNK;
            if (sent) memcpy(c->s->slots[from].chunk, sent->source + done, n);
            if (!meet_others(c)) return false;
            if (got) memcpy(got->target + done, c->s->slots[from].chunk, n);
            if (!meet_others(c)) return false;
        }
    }
    return meet_others(c);
}

static bool run_call(comm *c, const call *k) {
    const size_t bytes = k->count * size_of(k->type);
    switch (k->kind) {
    case ALL_REDUCE:
        if (c->rank == 1 && is_told("die")) _exit(3);
        if (c->rank == 1 && is_told("fail")) {
            atomic_store(&c->state, SYSTEM_ERROR);
            return false;
        }
        return reduce_chunks(c, k, 0, k->count, k->target);
    case REDUCE: return reduce_chunks(c, k, 0, k->count, c->rank == k->peer ? k->target : NULL);
    case REDUCE_SCATTER:
        for (int r = 0; r < c->size; r++)
            if (!reduce_chunks(c, k, (size_t)r * k->count, k->count, r == c->rank ? k->target : NULL)) return false;
        return true;
    case BROADCAST: return spread_bytes(c, k->peer, k->source, k->target, bytes);
    case ALL_GATHER:
        for (int r = 0; r < c->size; r++)
            if (!spread_bytes(c, r, k->source, k->target + (size_t)r * bytes, bytes)) return false;
        return true;
    default: return pass_bytes(c);
    }
}

static void *work_off_calls(void *user) {
    comm *c = user;
    atomic_fetch_add(&c->s->joined, 1);
    while (atomic_load(&c->s->joined) < (unsigned)c->size && !c->aborted) pause_shortly();
    if (c->rank == 0) shm_unlink(c->unique.name);
    atomic_store(&c->state, c->rank == 1 && is_told("init") ? SYSTEM_ERROR : SUCCESS);
    while (!c->stop && !c->aborted) {
        if (c->busy && run_call(c, &c->calls[0])) c->busy = false;
        pause_shortly();
    }
    return NULL;
}

/* ---- NCCL ---- */

const char *ncclGetErrorString(int result) {
    return result == SYSTEM_ERROR ? "stand-in system error" : "stand-in error";
}

int ncclGetVersion(int *version) {
    *version = 22000;
    return SUCCESS;
}

int ncclGetUniqueId(id *out) {
    snprintf(out->name, sizeof out->name, "/arrayd-nccl-%d-%ld", (int)getpid(), (long)clock());
    return SUCCESS;
}

int ncclCommInitRankConfig(comm **out, int size, id unique, int rank, const config *asked) {
    if (asked->magic != 0xcafebeef || asked->blocking || size > RANKS) return INVALID;
    const char *multicast = getenv("NCCL_NVLS_ENABLE");
    if (!multicast || strcmp(multicast, "0")) return INVALID;
    const int fd = shm_open(unique.name, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(shared))) return SYSTEM_ERROR;
    comm *c = calloc(1, sizeof *c);
    c->s = mmap(NULL, sizeof(shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    c->unique = unique;
    c->size = size;
    c->rank = rank;
    c->state = IN_PROGRESS;
    pthread_create(&c->thread, NULL, work_off_calls, c);
    *out = the_one = c;
    return IN_PROGRESS;
}

int ncclCommGetAsyncError(comm *c, int *state) {
    *state = c->state;
    return SUCCESS;
}

static int end_comm(comm *c) {
    pthread_join(c->thread, NULL);
    munmap(c->s, sizeof *c->s);
    if (the_one == c) the_one = NULL;
    free(c);
    return SUCCESS;
}

int ncclCommAbort(comm *c) {
    c->aborted = true;
    return end_comm(c);
}

int ncclCommFinalize(comm *c) { return c->busy ? INVALID : SUCCESS; }

int ncclCommDestroy(comm *c) {
    c->stop = true;
    return end_comm(c);
}

int ncclGroupStart(void) {
    ngroup = 0;
    depth++;
    return SUCCESS;
}

static int add_call(comm *c, call k) {
    if (!depth || ngroup == CALLS || c != the_one) return INVALID;
    group[ngroup++] = k;
    return SUCCESS;
}

int ncclGroupEnd(void) {
    depth--;
    memcpy(the_one->calls, group, sizeof group);
    the_one->ncalls = ngroup;
    if (!ngroup) the_one->calls[0].kind = SEND; /* a member that neither sends nor receives takes part in the turns */
    the_one->busy = true;
    return IN_PROGRESS;
}

int ncclAllReduce(const char *s, char *t, size_t n, int type, int op, comm *c, void *stream) {
    (void)stream;
    return add_call(c, (call){ALL_REDUCE, s, t, n, type, op, 0});
}

int ncclReduce(const char *s, char *t, size_t n, int type, int op, int root, comm *c, void *stream) {
    (void)stream;
    return add_call(c, (call){REDUCE, s, t, n, type, op, root});
}

int ncclReduceScatter(const char *s, char *t, size_t n, int type, int op, comm *c, void *stream) {
    (void)stream;
    return add_call(c, (call){REDUCE_SCATTER, s, t, n, type, op, 0});
}

int ncclBroadcast(const char *s, char *t, size_t n, int type, int root, comm *c, void *stream) {
    (void)stream;
    return add_call(c, (call){BROADCAST, s, t, n, type, 0, root});
}

int ncclAllGather(const char *s, char *t, size_t n, int type, comm *c, void *stream) {
    (void)stream;
    return add_call(c, (call){ALL_GATHER, s, t, n, type, 0, 0});
}

int ncclSend(const char *s, size_t n, int type, int peer, comm *c, void *stream) {
    (void)stream;
    return add_call(c, (call){SEND, s, NULL, n, type, 0, peer});
}

int ncclRecv(char *t, size_t n, int type, int peer, comm *c, void *stream) {
    (void)stream;
    return add_call(c, (call){RECV, NULL, t, n, type, 0, peer});
}

/* ---- the driver ---- */

int cuInit(unsigned flags) { return (int)flags; }

int cuDeviceGet(int *device, int number) {
    *device = number;
    return 0;
}

int cuDeviceGetUuid_v2(char name[16], int device) {
    (void)device;
    memset(name, 0, 16);
    const int pid = is_told("twins") ? 1 : getpid();
    memcpy(name, &pid, sizeof pid);
    return 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device) {
    *context = the_one;
    return device;
}

int cuCtxPushCurrent_v2(void *context) {
    (void)context;
    return 0;
}

int cuCtxPopCurrent_v2(void **context) {
    *context = NULL;
    return 0;
}

int cuStreamCreate(void **stream, unsigned flags) {
    *stream = NULL;
    return flags != 1;
}

int cuStreamQuery(void *stream) {
    (void)stream;
    return the_one && the_one->busy ? NOT_READY : 0;
}
