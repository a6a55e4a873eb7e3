#include "server/worker/journal/journal.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "server/common/os.h"

/* Size classes between two powers of two. */
#define STEPS 8
#define CLASSES (40 * STEPS)
#define LEAST 64
#define LARGE ((uint64_t)1 << 20)      /* bytes from which the system gets the pages of a free piece back */
#define MOST_KEPT ((uint64_t)16 << 20) /* bytes of large free pieces that keep their pages */
#define HEADER 16
#define FIRST_HOLDERS 64

/* Header of each piece of memory. `next` links free pieces of a class. */
typedef struct piece {
    uint32_t class;
    uint32_t kept; /* it is large and free, and its pages have stayed */
    ad_at next;
} piece;

_Static_assert(sizeof(piece) == HEADER, "what comes behind is aligned");

struct ad_journal {
    pthread_mutex_t lock;
    int fd;
    char *base;
    uint64_t end;  /* offset from which on no memory has been used */
    uint64_t kept; /* bytes of the pieces that are kept */
    ad_at free[CLASSES];
    uint32_t places, *spare; /* places of holders that have been used, and those of them that are free */
    size_t nspare, spare_room;
};

/* Choose the smallest class with so many bytes, and set how many it has. */
static unsigned choose_class(uint64_t size, uint64_t *bytes) {
    if (size < LEAST) size = LEAST;
    unsigned power = 63 - (unsigned)__builtin_clzll(size);
    uint64_t step = ((uint64_t)1 << power) / STEPS, over = size - ((uint64_t)1 << power);
    uint64_t steps = (over + step - 1) / step;
    *bytes = ((uint64_t)1 << power) + steps * step;
    return power * STEPS + (unsigned)steps;
}

/* Count the bytes of a piece, which choose_class has set. */
static uint64_t count_bytes(const piece *p) {
    const uint64_t power = p->class / STEPS, step = ((uint64_t)1 << power) / STEPS;
    return ((uint64_t)1 << power) + p->class % STEPS * step;
}

int ad__journal_open(ad_journal **out, ad_fault *fault) {
    ad_journal *l = ad__os.calloc(1, sizeof *l);
    if (!l) return ad__fault(fault, AD_E_MEMORY, "out of host memory");
    pthread_mutex_init(&l->lock, NULL);
    l->fd = memfd_create("arrayd-journal", MFD_CLOEXEC);
    if (l->fd < 0 || ftruncate(l->fd, AD_JOURNAL_ADDRESSES)) goto failed;
    void *base = mmap(NULL, AD_JOURNAL_ADDRESSES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, l->fd, 0);
    if (base == MAP_FAILED) goto failed;
    madvise(base, AD_JOURNAL_ADDRESSES, MADV_DONTDUMP); /* a core dump of all these addresses would take for ever */
    l->base = base;
    l->end = 4096;
    *ad__journal_head(l) = (ad_journal_head){.magic = AD_JOURNAL_MAGIC, .version = AD_JOURNAL_VERSION};
    *out = l;
    return 0;

failed:
    ad__fault(fault, AD_E_SYSTEM, "the journal: %s", strerror(errno));
    if (l->fd >= 0) close(l->fd);
    pthread_mutex_destroy(&l->lock);
    free(l);
    return AD_E_SYSTEM;
}

void ad__journal_close(ad_journal *l) {
    if (!l) return;
    munmap(l->base, AD_JOURNAL_ADDRESSES);
    close(l->fd);
    pthread_mutex_destroy(&l->lock);
    free(l->spare);
    free(l);
}

int ad__journal_descriptor(const ad_journal *l) { return l->fd; }

ad_journal_head *ad__journal_head(const ad_journal *l) { return (ad_journal_head *)(void *)l->base; }

ad_at ad__journal_at(const ad_journal *l, const void *p) { return p ? (ad_at)((const char *)p - l->base) : 0; }

void *ad__journal_get(const ad_journal *l, ad_at at) { return at ? l->base + at : NULL; }

void *ad__journal_alloc(ad_journal *l, size_t size) {
    uint64_t bytes;
    if (!l) return ad__os.malloc(size);
    if (size > AD_JOURNAL_ADDRESSES / 4) return NULL;
    unsigned class = choose_class(size + HEADER, &bytes);
    pthread_mutex_lock(&l->lock);
    piece *p = ad__journal_get(l, l->free[class]);
    if (p) {
        l->free[class] = p->next;
        if (p->kept) l->kept -= bytes;
    } else if (bytes <= AD_JOURNAL_ADDRESSES - l->end) {
        p = ad__journal_get(l, l->end);
        l->end += (bytes + HEADER - 1) / HEADER * HEADER;
    }
    pthread_mutex_unlock(&l->lock);
    if (!p) return NULL;
    *p = (piece){.class = class};
    return p + 1;
}

/* Give the whole pages of a free piece back to the system. */
static void free_pages(piece *p) {
    const uint64_t page = 4096;
    const uintptr_t begin = ((uintptr_t)(p + 1) + page - 1) / page * page;
    const uintptr_t end = ((uintptr_t)p + count_bytes(p)) / page * page;
    if (begin < end) madvise((void *)begin, end - begin, MADV_REMOVE);
}

/* Tell whether a large piece that becomes free keeps its pages. A page that comes from the system costs several times
 * as much as what is copied into it. */
static bool keep_pages(ad_journal *l, uint64_t bytes) {
    pthread_mutex_lock(&l->lock);
    const bool keep = bytes <= MOST_KEPT - l->kept;
    if (keep) l->kept += bytes;
    pthread_mutex_unlock(&l->lock);
    return keep;
}

void ad__journal_free(ad_journal *l, void *memory) {
    if (!l) free(memory);
    if (!l || !memory) return;
    piece *p = (piece *)memory - 1;
    const uint64_t bytes = count_bytes(p);
    p->kept = bytes >= LARGE && keep_pages(l, bytes);
    if (bytes >= LARGE && !p->kept) free_pages(p);
    pthread_mutex_lock(&l->lock);
    p->next = l->free[p->class];
    l->free[p->class] = ad__journal_at(l, p);
    pthread_mutex_unlock(&l->lock);
}

/* ---- holders ---- */

static ad_journal_index *get_index(const ad_journal *l) { return ad__journal_get(l, ad__journal_head(l)->index); }

static bool grow_index(ad_journal *l, uint64_t capacity) {
    ad_journal_index *old = get_index(l), *more = ad__journal_alloc(l, sizeof *more + capacity * sizeof *more->holder);
    if (!more) return false;
    memset(more, 0, sizeof *more + capacity * sizeof *more->holder);
    more->capacity = capacity;
    if (old) memcpy(more->holder, old->holder, old->capacity * sizeof *old->holder);
    ad__journal_store(&ad__journal_head(l)->index, ad__journal_at(l, more));
    ad__journal_free(l, old);
    return true;
}

static void free_holder(ad_journal *l, ad_journal_holder *h) {
    ad__journal_free(l, ad__journal_get(l, h->grant));
    ad__journal_free(l, ad__journal_get(l, h->memory.poison));
    ad__journal_free(l, h);
}

uint32_t ad__journal_hold(ad_journal *l, ad_journal_holder *h) {
    const ad_journal_index *index = get_index(l);
    uint32_t place = l->nspare ? l->spare[--l->nspare] : 0;
    if (!place) {
        if (!l->places) l->places = 1;
        if ((!index || l->places == index->capacity) && !grow_index(l, index ? 2 * index->capacity : FIRST_HOLDERS)) {
            free_holder(l, h);
            return 0;
        }
        place = l->places++;
    }
    ad__journal_store(&get_index(l)->holder[place], ad__journal_at(l, h));
    return place;
}

ad_journal_holder *ad__journal_holder(const ad_journal *l, uint32_t place) {
    return place ? ad__journal_get(l, get_index(l)->holder[place]) : NULL;
}

void ad__journal_release(ad_journal *l, uint32_t place) {
    ad_journal_holder *h = ad__journal_holder(l, place);
    if (!h) return;
    ad__journal_store(&get_index(l)->holder[place], 0);
    free_holder(l, h);
    uint32_t *list = ad__os_grow(l->spare, l->nspare, &l->spare_room, sizeof *list);
    if (!list) return;
    l->spare = list;
    l->spare[l->nspare++] = place;
}

void ad__recipe_release(ad_journal *l, ad_journal_recipe *r) {
    if (r && !--r->users) ad__journal_free(l, r);
}
