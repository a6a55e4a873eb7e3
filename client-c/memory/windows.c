/* Windows: making them, sharing them with the server, giving them back. A window is costly for the server, as a GPU
 * must be able to reach each of its pages. So windows are few, grow with use, and are reused. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client-c/memory/windows.h"
#include "protocol/rows_request.h"

#define PAGES ((size_t)2 << 20) /* sizes of windows are multiples of it */
#define LEAST_GROWTH ((size_t)4 << 20)
#define MOST_GROWTH ((size_t)256 << 20)

/* ---- memory ---- */

static int create_memfd(size_t size) {
    int fd = memfd_create("arrayd-window", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) return -1;
    if (ftruncate(fd, (off_t)size) == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        return fd;
    close(fd);
    return -1;
}

static ad_host_window *create_window(size_t size, int *fd) {
    ad_host_window *w = calloc(1, sizeof *w);
    if (!w) return NULL;
    *fd = create_memfd(size);
    if (*fd < 0) goto free_window;
    w->base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
    if (w->base == MAP_FAILED) goto close_fd;
    w->size = size;
    madvise(w->base, size, MADV_HUGEPAGE);
    /* Pages that are allocated in advance cost a third of a page fault each, and a lack of memory shows now. */
    if (ad__populate(w->base, size) == 0) return w;
    munmap(w->base, size);
close_fd:
    close(*fd);
free_window:
    free(w);
    return NULL;
}

/* ---- sharing ---- */

/* Ask the server to fetch an empty array into the window: the answer tells whether the server has the window. */
static int fetch_nothing(ad_session *s, const ad_array *a, uint64_t window, ad_slot *slot) {
    int64_t none = 0, step = 1;
    const ad_desc d = {
        .buffer = a->buffer, .shape = &none, .strides = &step, .dtype = AD_UINT8, .ndim = 1, .form = AD_VIEW};
    int status = ad__begin_ask(s);
    if (status) return status;
    ad__slot_init(slot, NULL, 0);
    slot->internal = true;
    size_t mark = s->output.gathered.size;
    ad__slot_add(s, slot);
    return ad__commit_ask(s, mark, ad__encode_fetch(&s->output.gathered, slot->request, &d, window, 0), slot);
}

/* Clear the deferred failure of a window message, which the program need not hear of. */
static void drop_deferred_refusal(ad_session *s, uint64_t number) {
    pthread_mutex_lock(&s->lock);
    if (s->input.deferred.number == number) s->input.deferred.status = 0;
    pthread_mutex_unlock(&s->lock);
}

/* Make an array without elements, so that it needs no memory of a full device. */
static int make_nothing(ad_session *s, ad_array **a) { return ad_empty(s, AD_UINT8, 1, (int64_t[]){0}, a); }

static int share_window(ad_session *s, ad_host_window *w, int fd) {
    uint64_t number = 0;
    ad_array *a;
    ad_slot slot = {0};
    int status = make_nothing(s, &a);
    if (status) {
        close(fd);
        return status;
    }
    status = ad__pass_window(s, w->id, w->size, fd, &number);
    for (int i = 0; !status && i < 2; i++) { /* an earlier operation's failure may come first, once */
        status = fetch_nothing(s, a, w->id, &slot);
        if (status == AD_E_INTERRUPTED || slot.number == 0 || slot.number >= number) break;
        if (i == 0) status = 0;
    }
    ad_array_release(a);
    drop_deferred_refusal(s, number);
    /* A server without memory for the window refuses it as any other: arrays go over the socket. */
    return status == AD_E_MEMORY && slot.done && slot.status == status ? AD_E_SYSTEM : status;
}

/* ---- after a worker has ended ---- */

/* List the ids of the pool's windows. Returns their number; NULL ids: no memory. */
static size_t list_windows(const ad_pool *pool, uint64_t **ids) {
    size_t n = 0;
    pthread_mutex_lock(&ad__pools_lock);
    for (const ad_host_window *w = pool->windows; w; w = w->next) n++;
    *ids = malloc((n + 1) * sizeof **ids);
    n = 0;
    for (const ad_host_window *w = pool->windows; w && *ids; w = w->next) (*ids)[n++] = w->id;
    pthread_mutex_unlock(&ad__pools_lock);
    return n;
}

/* Ask whether the server has the windows, until one is lost. */
static int check_windows(ad_session *s, const uint64_t *ids, size_t n, bool *lost) {
    ad_array *a;
    int status = make_nothing(s, &a);
    if (status) return status;
    for (size_t i = 0; i < n && !*lost && status != AD_E_INTERRUPTED && status != AD_E_CONNECTION; i++) {
        ad_slot slot = {0};
        status = fetch_nothing(s, a, ids[i], &slot);
        *lost = slot.done && slot.status == AD_E_STALE;
    }
    ad_array_release(a);
    return status == AD_E_INTERRUPTED || status == AD_E_CONNECTION ? status : 0;
}

int ad__pool_check(ad_session *s, ad_pool *pool) {
    uint64_t *ids;
    bool lost = false;
    if (!atomic_exchange(&s->resume.windows_doubtful, false)) return 0;
    const size_t n = list_windows(pool, &ids);
    const int status = !ids ? ad__fail_memory() : n ? check_windows(s, ids, n, &lost) : 0;
    free(ids);
    if (status) atomic_store(&s->resume.windows_doubtful, true);
    if (lost) pool->refused = true;
    return status;
}

/* ---- growing and shrinking ---- */

static size_t choose_growth(const ad_pool *pool, size_t size) {
    size_t least = (size + PAGES - 1) & ~(PAGES - 1), wanted = pool->bytes;
    if (wanted < LEAST_GROWTH) wanted = LEAST_GROWTH;
    if (wanted > MOST_GROWTH) wanted = MOST_GROWTH;
    if (wanted < least || pool->bytes + wanted > pool->limit) wanted = least;
    return pool->bytes + wanted > pool->limit ? 0 : wanted;
}

/* Find the size of the next window. AD_E_UNSUPPORTED: there is no room even without the idle windows. */
static int find_growth(ad_session *s, ad_pool *pool, size_t size, size_t *more) {
    for (int i = 0; i < 2; i++) {
        pthread_mutex_lock(&ad__pools_lock);
        *more = choose_growth(pool, size);
        pthread_mutex_unlock(&ad__pools_lock);
        int status = *more || i ? 0 : ad__pool_shrink(s, pool, UINT64_MAX);
        if (*more || status) return status;
    }
    return ad__fail(AD_E_UNSUPPORTED, "no more memory may be shared with the server");
}

/* AD_E_MEMORY: this process has no memory. Where the server has none, share_window says AD_E_SYSTEM. */
static int handle_refusal(ad_pool *pool, int status, size_t size) {
    if (status == AD_E_CONNECTION || status == AD_E_INTERRUPTED || status == AD_E_MEMORY) return status;
    pthread_mutex_lock(&ad__pools_lock);
    if (status == AD_E_LIMIT && size > PAGES)
        pool->limit = pool->bytes + size / 2; /* so that few attempts find the limit */
    else if (status == AD_E_LIMIT && pool->bytes) pool->limit = pool->bytes;
    else pool->refused = true;
    pthread_mutex_unlock(&ad__pools_lock);
    return ad__fail(AD_E_UNSUPPORTED, "the server shares no more memory");
}

int ad__pool_grow(ad_session *s, ad_pool *pool, size_t size) {
    size_t more;
    int fd, status = find_growth(s, pool, size, &more);
    if (status) return status;
    ad_host *whole = calloc(1, sizeof *whole);
    ad_host_window *w = whole ? create_window(more, &fd) : NULL;
    if (!w) {
        free(whole);
        return ad__fail(AD_E_UNSUPPORTED, "no memory to share with the server");
    }
    pthread_mutex_lock(&s->lock);
    w->id = s->next_id.window++;
    pthread_mutex_unlock(&s->lock);
    status = share_window(s, w, fd);
    if (status) {
        free(whole);
        ad__window_free(w);
        return handle_refusal(pool, status, more);
    }
    pthread_mutex_lock(&ad__pools_lock);
    ad__pool_add(pool, w, whole);
    pthread_mutex_unlock(&ad__pools_lock);
    return 0;
}

int ad__pool_shrink(ad_session *s, ad_pool *pool, uint64_t since) {
    for (;;) {
        pthread_mutex_lock(&ad__pools_lock);
        ad_host_window *w = ad__pool_take_idle(pool, since);
        pthread_mutex_unlock(&ad__pools_lock);
        if (!w) return 0;
        int status = ad__send_numbers(s, AD_REQ_WINDOW_DROP, 1, &w->id);
        ad__window_free(w);
        if (status) return status;
    }
}
