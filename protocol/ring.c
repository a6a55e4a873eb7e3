/* Rings: see ring.h. Nothing that the other end writes is read twice, and nothing of it is trusted: what is read is
 * copied first and checked then. */
#include "protocol/ring.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "protocol/memfd.h"

#define RECORD 16 /* bytes of a record's head, and the unit of its size */
#define ASLEEP 1u /* bit of `tail` */

/* The head of a record. */
typedef struct record {
    uint64_t place, size;
} record;

static uint64_t round_up(uint64_t size) { return (size + RECORD - 1) & ~(uint64_t)(RECORD - 1); }

/* ---- memory ---- */

#ifdef __linux__
static int create_memory(void) {
    int fd = memfd_create("arrayd-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) return -1;
    if (!ftruncate(fd, AD_RING_SIZE) && !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) return fd;
    close(fd);
    return -1;
}
#else
static int create_memory(void) { return -1; }
#define MADV_DONTFORK MADV_NORMAL
#endif

static ad_ring_memory *map_memory(int fd) {
    ad_ring_memory *m = mmap(NULL, AD_RING_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (m == MAP_FAILED) return NULL;
    madvise(m, AD_RING_SIZE, MADV_DONTFORK);
    return m;
}

int ad__ring_create(ad_ring_memory **memory, int *fd) {
    int made = create_memory();
    if (made < 0) return AD_E_SYSTEM;
    ad_ring_memory *m = map_memory(made);
    if (!m) {
        close(made);
        return AD_E_MEMORY;
    }
    m->layout = AD_RING_LAYOUT;
    atomic_store(&m->up.tail, ASLEEP);
    atomic_store(&m->down.tail, ASLEEP);
    *memory = m;
    *fd = made;
    return 0;
}

int ad__ring_map(int fd, ad_ring_memory **memory) {
    if (ad__memfd_check("ring", fd, AD_RING_SIZE, NULL)) return AD_E_VALUE;
    ad_ring_memory *m = map_memory(fd);
    if (!m) return AD_E_MEMORY;
    if (m->layout != AD_RING_LAYOUT) {
        ad__ring_unmap(m);
        return AD_E_VALUE;
    }
    *memory = m;
    return 0;
}

void ad__ring_unmap(ad_ring_memory *memory) { munmap(memory, AD_RING_SIZE); }

/* ---- writing ---- */

void ad__ring_write_begin(ad_ring_writer *w, ad_ring_way *way, uint8_t *bytes, uint64_t place) {
    *w = (ad_ring_writer){.way = way, .bytes = bytes, .place = place, .announced = place};
    atomic_store_explicit(&way->announced, place, memory_order_release);
}

/* Copy bytes into the ring at an index, and return the index behind them. */
static uint64_t copy_in(ad_ring_writer *w, uint64_t at, const void *data, size_t size) {
    const size_t from = at % AD_RING_DATA, first = size < AD_RING_DATA - from ? size : AD_RING_DATA - from;
    memcpy(w->bytes + from, data, first);
    memcpy(w->bytes, (const uint8_t *)data + first, size - first);
    return at + size;
}

/* Tell whether a record of so many bytes fits into the ring, behind those that have not been read. */
static bool fits_ring(const ad_ring_writer *w, uint64_t need) {
    const uint64_t used = w->tail - atomic_load_explicit(&w->way->head, memory_order_acquire);
    return used <= AD_RING_DATA && need <= AD_RING_DATA - used;
}

bool ad__ring_put(ad_ring_writer *w, const struct iovec *part, size_t parts) {
    unsigned long long awake = w->tail << 1;
    const uint64_t size = ad__ring_measure(part, parts), end = w->tail + RECORD + round_up(size);
    if (atomic_load_explicit(&w->way->tail, memory_order_relaxed) != awake) return false;
    if (!size || size > AD_RING_DATA || w->place < w->announced || !fits_ring(w, end - w->tail)) return false;
    uint64_t at = copy_in(w, w->tail, &(record){w->place, size}, RECORD);
    for (size_t i = 0; i < parts; i++) at = copy_in(w, at, part[i].iov_base, part[i].iov_len);
    if (!atomic_compare_exchange_strong_explicit(&w->way->tail, &awake, end << 1, memory_order_release,
                                                 memory_order_relaxed))
        return false;
    w->tail = end;
    w->place += size;
    return true;
}

void ad__ring_announce(ad_ring_writer *w, uint64_t size) {
    if (w->place + size <= w->announced) return;
    w->announced = w->place + size;
    atomic_store_explicit(&w->way->announced, w->announced, memory_order_release);
}

/* ---- reading ---- */

void ad__ring_read_begin(ad_ring_reader *r, ad_ring_way *way, const uint8_t *bytes, uint64_t place) {
    *r = (ad_ring_reader){.way = way, .bytes = bytes, .place = place, .asleep = true};
}

static void copy_out(const ad_ring_reader *r, void *to, size_t size) {
    const size_t from = r->head % AD_RING_DATA, first = size < AD_RING_DATA - from ? size : AD_RING_DATA - from;
    memcpy(to, r->bytes + from, first);
    memcpy((uint8_t *)to + first, r->bytes, size - first);
}

/* Find where the next record lies, of which there are so many bytes. */
static int look_at_record(ad_ring_reader *r, uint64_t there, uint64_t *size) {
    record next;
    if (there > AD_RING_DATA || there < RECORD) return AD_E_PROTOCOL;
    copy_out(r, &next, RECORD);
    if (!next.size || next.size > AD_RING_DATA || RECORD + round_up(next.size) > there || next.place < r->place)
        return AD_E_PROTOCOL;
    if (next.place > r->place) { /* bytes over the socket come first */
        *size = next.place - r->place;
        return AD_RING_SOCKET;
    }
    r->head += RECORD;
    *size = r->left = next.size;
    return AD_RING_RECORD;
}

/* `announced` is read before `tail`: where no record is seen then, no record stands before the announced bytes. */
int ad__ring_look(ad_ring_reader *r, uint64_t *size) {
    *size = r->left;
    if (r->left) return AD_RING_RECORD;
    *size = UINT64_MAX;
    if (r->asleep) return AD_RING_SOCKET; /* the writer can put nothing into the ring */
    const uint64_t announced = atomic_load_explicit(&r->way->announced, memory_order_acquire);
    const uint64_t tail = atomic_load_explicit(&r->way->tail, memory_order_acquire) >> 1;
    if (tail != r->head) return look_at_record(r, tail - r->head, size);
    *size = announced > r->place ? announced - r->place : 0;
    return *size ? AD_RING_SOCKET : AD_RING_EMPTY;
}

void ad__ring_take(ad_ring_reader *r, void *to, size_t size) {
    copy_out(r, to, size);
    r->head += size;
    r->place += size;
    r->left -= size;
    if (!r->left) r->head = round_up(r->head);
    atomic_store_explicit(&r->way->head, r->head, memory_order_release);
}

bool ad__ring_sleep(ad_ring_reader *r) {
    unsigned long long awake = r->head << 1;
    if (r->asleep || r->left) return r->asleep;
    r->asleep = atomic_compare_exchange_strong_explicit(&r->way->tail, &awake, awake | ASLEEP, memory_order_acq_rel,
                                                        memory_order_acquire) ||
                awake == (r->head << 1 | ASLEEP);
    return r->asleep;
}

void ad__ring_wake(ad_ring_reader *r) {
    if (!r->asleep) return;
    r->asleep = false;
    atomic_fetch_and_explicit(&r->way->tail, ~(unsigned long long)ASLEEP, memory_order_acq_rel);
}
