/* The table of the compile service: jobs, and their binaries in memory. */
#include "server/worker/modules/compile/inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "server/common/os.h"
#include "server/compile/options.h"

#define MOST_BYTES (128u << 20) /* bytes of binaries in memory */
#define MOST_ENTRIES 8192
#define MOST_WAITING 4096
#define AGAIN 10000000000LL /* ns after which a job that was refused or stopped is compiled again */
#define ENTRY_BYTES 512     /* bytes of an entry besides its binary, about */

/* ---- finding a job ---- */

/* Mix two words of a hash. Jobs are found by two keyed 64-bit hashes, which are fast: a backend asks again and
 * again, with long headers. The key is secret, so nobody can make two jobs with one hash. */
static uint64_t mix_words(uint64_t a, uint64_t b) {
    __extension__ unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static void hash_bytes(const ad_service *s, uint64_t h[2], const void *data, size_t size) {
    const uint8_t *p = data;
    uint64_t x[2];
    h[0] = mix_words(h[0] ^ s->seed[0], size ^ s->seed[1]);
    h[1] = mix_words(h[1] ^ s->seed[2], size ^ s->seed[3]);
    for (; size; p += sizeof x) {
        size_t n = size < sizeof x ? size : sizeof x;
        x[0] = x[1] = 0;
        memcpy(x, p, n);
        h[0] = mix_words(h[0] ^ x[0] ^ s->seed[0], x[1] ^ s->seed[1]);
        h[1] = mix_words(h[1] ^ x[1] ^ s->seed[2], x[0] ^ s->seed[3]);
        size -= n;
    }
}

static void hash_words(const ad_service *s, uint64_t h[2], const char *const *words, size_t n) {
    hash_bytes(s, h, &n, sizeof n);
    for (size_t i = 0; i < n; i++) hash_bytes(s, h, words[i], strlen(words[i]));
}

static void hash_job(const ad_service *s, const ad_compile_job *job, uint64_t h[2]) {
    uint32_t kind = (uint32_t)job->target << 1 | job->own;
    h[0] = h[1] = 0;
    hash_bytes(s, h, &kind, sizeof kind);
    hash_bytes(s, h, job->arch, strlen(job->arch));
    hash_bytes(s, h, job->prelude.data, job->prelude.size);
    hash_bytes(s, h, job->source.data, job->source.size);
    hash_words(s, h, job->options, job->noptions);
    hash_words(s, h, job->own_options, job->nown_options);
    hash_words(s, h, job->names, job->nnames);
    for (size_t i = 0; i < job->nheaders; i++) {
        hash_bytes(s, h, job->headers[i].name, strlen(job->headers[i].name));
        hash_bytes(s, h, job->headers[i].text.data, job->headers[i].text.size);
    }
}

static ad_entry *find_entry(ad_service *s, const uint64_t h[2]) {
    ad_entry *e = s->bucket[h[0] % AD_ENTRY_BUCKETS];
    while (e && (e->hash[0] != h[0] || e->hash[1] != h[1])) e = e->next;
    return e;
}

/* ---- the order of use ---- */

static void unlink_use(ad_service *s, ad_entry *e) {
    *(e->newer ? &e->newer->older : &s->newest) = e->older;
    *(e->older ? &e->older->newer : &s->oldest) = e->newer;
}

static void link_newest(ad_service *s, ad_entry *e) {
    e->newer = NULL;
    e->older = s->newest;
    *(s->newest ? &s->newest->newer : &s->oldest) = e;
    s->newest = e;
}

static size_t count_bytes(const ad_entry *e) { return ENTRY_BYTES + (e->made ? e->made->bytes.capacity : 0); }

/* ---- entries ---- */

static void release_made(ad_made *m) {
    if (!m || atomic_fetch_sub(&m->users, 1) != 1) return;
    ad__bytes_free(&m->bytes);
    free(m->lists);
    free(m);
}

static void free_entry(ad_entry *e) {
    release_made(e->made);
    ad__bytes_free(&e->job);
    free(e);
}

/* Remove a done entry. */
static void forget_entry(ad_service *s, ad_entry *e) {
    ad_entry **p = &s->bucket[e->hash[0] % AD_ENTRY_BUCKETS];
    while (*p != e) p = &(*p)->next;
    *p = e->next;
    unlink_use(s, e);
    s->entries--;
    s->bytes -= count_bytes(e);
    free_entry(e);
}

void ad__queue_put(ad_queue *q, ad_entry *e) {
    if (!q->first) q->last = &q->first;
    e->after = NULL;
    *q->last = e;
    q->last = &e->after;
}

ad_entry *ad__queue_take(ad_queue *q) {
    ad_entry *e = q->first;
    if (e) q->first = e->after;
    return e;
}

ad_entry *ad__queue_take_wanted(ad_queue *q) {
    ad_entry **best = &q->first;
    for (ad_entry **p = best; *p; p = &(*p)->after)
        if (atomic_load(&(*p)->asked) > atomic_load(&(*best)->asked)) best = p;
    ad_entry *e = *best;
    if (!e) return NULL;
    *best = e->after;
    if (!e->after) q->last = best;
    return e;
}

/* Estimate the bytes of a job's frame, so that it is copied once. */
static size_t estimate_frame(const ad_compile_job *job) {
    size_t size = 4096 + job->prelude.size + job->source.size;
    for (size_t i = 0; i < job->nheaders; i++) size += job->headers[i].text.size + 64;
    return size;
}

static int begin_job(ad_service *s, const ad_compile_job *job, const uint64_t h[2], ad_fault *fault) {
    int status = ad__compile_check(job, fault);
    if (status) return status;
    if (s->counts.waiting >= MOST_WAITING)
        return ad__fault(fault, AD_E_LIMIT, "%d compilations are waiting", MOST_WAITING);
    ad_entry *e = ad__os.calloc(1, sizeof *e);
    if (!e) return ad__fault(fault, AD_E_MEMORY, "out of host memory");
    *e = (ad_entry){.hash = {h[0], h[1]}, .own = job->own, .target = job->target};
    if (ad__bytes_reserve(&e->job, estimate_frame(job)) ||
        ad__compile_put_request(&e->job, &(ad_compile_request){.job = *job})) {
        free_entry(e);
        return ad__fault(fault, AD_E_MEMORY, "out of host memory");
    }
    e->next = s->bucket[h[0] % AD_ENTRY_BUCKETS];
    s->bucket[h[0] % AD_ENTRY_BUCKETS] = e;
    s->counts.waiting++;
    ad__queue_put(&s->fresh, e);
    if (eventfd_write(s->wake, 1)) return ad__fault(fault, AD_E_SYSTEM, "eventfd: %s", strerror(errno));
    return 0;
}

static int fetch_binary(ad_service *s, ad_entry *e, const ad_binary **out, ad_fault *fault) {
    if (!e->made) return ad__fault(fault, e->fault.code, "%s", e->fault.text);
    s->counts.hits_memory += e->fetched;
    e->fetched = true;
    unlink_use(s, e);
    link_newest(s, e);
    atomic_fetch_add(&e->made->users, 1);
    *out = &e->made->binary;
    return 1;
}

int ad__compile_get(ad_compiler *compiler, const ad_compile_job *job, const ad_binary **out, ad_fault *fault) {
    ad_service *s = (ad_service *)compiler;
    ad_compile_job whole = *job;
    uint64_t h[2];
    int status = 0;
    if (!whole.arch) whole.arch = "";
    hash_job(s, &whole, h);
    pthread_mutex_lock(&s->lock);
    ad_entry *e = find_entry(s, h);
    if (e && e->done && e->until && ad__os_now() > e->until) {
        forget_entry(s, e);
        e = NULL;
    }
    if (!e) status = begin_job(s, &whole, h, fault);
    else if (e->done) status = fetch_binary(s, e, out, fault);
    else atomic_fetch_add(&e->asked, 1);
    pthread_mutex_unlock(&s->lock);
    return status;
}

void ad__compile_release(ad_compiler *compiler, const ad_binary *binary) {
    (void)compiler;
    release_made((ad_made *)(uintptr_t)binary);
}

/* ---- results from the thread ---- */

static ad_made *create_made(ad_bytes *frame, ad_compile_kind *kind, ad_fault *fault) {
    ad_compile_result r;
    ad_made *m = ad__os.calloc(1, sizeof *m);
    if (!m) {
        ad__fault(fault, AD_E_MEMORY, "out of host memory");
        return NULL;
    }
    uint8_t *exact = ad__os.realloc(frame->data, frame->size ? frame->size : 1); /* frames are read piecewise */
    if (exact) {
        frame->data = exact;
        frame->capacity = frame->size;
    }
    m->bytes = *frame;
    *frame = (ad_bytes)AD_BYTES_INIT;
    atomic_init(&m->users, 1);
    int status = ad__compile_get_result(m->bytes.data, m->bytes.size, &r, &m->lists, fault);
    if (!status && r.kind == AD_COMPILE_REFUSED) status = ad__fault(fault, r.code, "%s", r.binary.log);
    *kind = r.kind;
    m->binary = r.binary;
    if (!status) return m;
    release_made(m);
    return NULL;
}

static void bound_cache(ad_service *s) {
    while (s->oldest && s->oldest != s->newest && (s->bytes > MOST_BYTES || s->entries > MOST_ENTRIES))
        forget_entry(s, s->oldest);
}

void ad__compile_finish(ad_service *s, ad_entry *e, ad_bytes *frame, const ad_fault *fault) {
    ad_fault why = fault ? *fault : (ad_fault){0};
    ad_compile_kind kind = AD_COMPILE_REFUSED;
    ad_made *made = frame ? create_made(frame, &kind, &why) : NULL;
    ad__bytes_free(&e->job);
    pthread_mutex_lock(&s->lock);
    e->made = made;
    e->fault = why;
    e->until = kind == AD_COMPILE_REFUSED || kind == AD_COMPILE_STOPPED ? ad__os_now() + AGAIN : 0;
    e->done = true;
    s->counts.waiting--;
    s->counts.failures += kind != AD_COMPILE_MADE;
    s->entries++;
    s->bytes += count_bytes(e);
    link_newest(s, e);
    bound_cache(s);
    pthread_mutex_unlock(&s->lock);
}

void ad__compile_free_all(ad_service *s) {
    for (size_t i = 0; i < AD_ENTRY_BUCKETS; i++)
        while (s->bucket[i]) {
            ad_entry *e = s->bucket[i];
            s->bucket[i] = e->next;
            free_entry(e);
        }
}
