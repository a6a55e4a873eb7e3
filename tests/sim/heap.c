/* The memory of a simulated process: a range of addresses of its own, so that all of it ends with the process. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/sim/sim.h"

#define RANGE ((size_t)8 << 30)
#define HEADER 16
#define CLASSES 48

struct sim_heap {
    char *base;
    size_t end, used;
    void *spare[CLASSES]; /* free pieces, by the power of two of their size */
};

typedef struct head {
    size_t size;
    unsigned class;
} head;

_Static_assert(sizeof(head) <= HEADER, "memory behind it is aligned");

struct sim_heap *sim_heap_open(void) {
    struct sim_heap *h = calloc(1, sizeof *h);
    h->base = mmap(NULL, RANGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return h;
}

void sim_heap_close(struct sim_heap *h) {
    munmap(h->base, RANGE);
    free(h);
}

size_t sim_heap_used(const struct sim_heap *h) { return h->used; }

static bool is_inside(const struct sim_heap *h, const void *p) {
    return (const char *)p >= h->base && (const char *)p < h->base + RANGE;
}

static void *take_piece(struct sim_heap *h, size_t size) {
    const unsigned class = size <= 16 ? 5 : 64 - (unsigned)__builtin_clzll(size + HEADER - 1);
    const size_t bytes = (size_t)1 << class;
    if (class >= CLASSES) return NULL;
    char *p = h->spare[class];
    if (p) {
        memcpy(&h->spare[class], p + HEADER, sizeof(void *));
    } else {
        if (bytes > RANGE - h->end) return NULL;
        p = h->base + h->end;
        h->end += bytes;
    }
    *(head *)(void *)p = (head){size, class};
    h->used += size;
    return p + HEADER;
}

static bool must_fail(void) {
    const sim_process *p = sim_self();
    if (sim_must_fail(SIM_MEMORY)) return true;
    return p && sim_serving && !strcmp(p->program, "arrayd-worker") && sim_draw_case(sim_planned.no_memory);
}

void *__wrap_malloc(size_t size);
int64_t *sim_make_numbers(int64_t count) {
    const size_t size = (size_t)count * sizeof(int64_t);
    return memset(take_piece(sim_self()->heap, size), 0, size);
}

void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);
void __wrap_free(void *p);
char *__wrap_strdup(const char *text);

void *__wrap_malloc(size_t size) {
    sim_process *p = sim_self();
    void *memory = !p ? malloc(size) : must_fail() ? NULL : take_piece(p->heap, size);
    if (!memory) errno = ENOMEM;
    else if (p) memset(memory, 0xa5, size < 4096 ? size : 4096);
    return memory;
}

void *__wrap_calloc(size_t n, size_t size) {
    size_t all;
    if (__builtin_mul_overflow(n, size, &all)) return NULL;
    void *p = __wrap_malloc(all);
    return p ? memset(p, 0, all) : NULL;
}

void __wrap_free(void *p) {
    sim_process *self = sim_self();
    if (!self || !is_inside(self->heap, p)) {
        free(p);
        return;
    }
    head *at = (head *)(void *)((char *)p - HEADER);
    self->heap->used -= at->size;
    memset(p, 0x5a, at->size < 4096 ? at->size : 4096);
    memcpy(p, &self->heap->spare[at->class], sizeof(void *));
    self->heap->spare[at->class] = at;
}

void *__wrap_realloc(void *old, size_t size) {
    sim_process *self = sim_self();
    if (!self || (old && !is_inside(self->heap, old))) return realloc(old, size);
    void *p = __wrap_malloc(size);
    if (!p || !old) return p;
    const size_t before = ((head *)(void *)((char *)old - HEADER))->size;
    memcpy(p, old, before < size ? before : size);
    __wrap_free(old);
    return p;
}

char *__wrap_strdup(const char *text) {
    const size_t size = strlen(text) + 1;
    char *p = __wrap_malloc(size);
    return p ? memcpy(p, text, size) : NULL;
}
