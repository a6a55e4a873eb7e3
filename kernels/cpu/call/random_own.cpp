/* Random numbers one by one: distributions by rejection, and those whose parameters differ from element to element. */
#include "kernels/cpu/call/random.h"

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/backend/parallel.h"
#include "kernels/cpu/isa/random_tables.h"
#include "kernels/random_own.h"

namespace {

using namespace ad;

constexpr int64_t GRAIN = 1 << 12;
constexpr int64_t BLOCKS = 128; /* of elements of their own, at a time */

/* Call make(place in the chunk, element, parameters) for all elements, as ones of T, after prepare(first element, n) of
 * each chunk. */
template <class T, class P, class Prepare, class Make>
void one_by_one(const random_call *r, int64_t begin, int64_t end, int64_t chunk, Prepare prepare, Make make) {
    const int64_t step = r->places.inner(0);
    for (int64_t from = begin, n; from < end; from += n) {
        ad_cpu_check_cancelled();
        n = end - from < chunk ? end - from : chunk;
        prepare(r->first + uint64_t(from), n);
        r->places.runs(from, from + n, [&](const int64_t(&at)[4], int64_t length, int64_t p) {
            random_cursor<P> cursor(r, at);
            for (int64_t i = 0; i < length; i++)
                *reinterpret_cast<T *>(r->out.data + at[0] + i * step) =
                    make(p + i - from, r->first + uint64_t(p + i), cursor.next());
            return true;
        });
    }
}

/* The first block of each element is made in bulk. */
template <int Id, class T> void own(const random_call *r) {
    using P = typename random_own<Id, T>::P;
    const ad_random_kernels *k = ad_cpu_kernels_get()->random;
    ad_cpu_parallel(r->places.count, GRAIN, [&](int64_t begin, int64_t end) {
        alignas(64) random_block block[BLOCKS];
        one_by_one<T, P>(
            r, begin, end, BLOCKS,
            [&](uint64_t element, int64_t n) { k->words(block, r->key, element, STREAM_OWN, n); },
            [&](int64_t i, uint64_t element, const random_parameters<P> &p) {
                random_sequence s(r->key, element, block[i]);
                if constexpr (!same<T, int64_t>)
                    if (p.a != p.a || p.b != p.b || p.c != p.c) return p.a + p.b + p.c;
                return random_own<Id, T>::of(&s, p);
            });
    });
}

/* The words, or the normal numbers, of all elements of a chunk are made in bulk. */
template <int Id, class T> void mixed(const random_call *r) {
    using R = typename random_number<T>::word;
    const ad_random_kernels *k = ad_cpu_kernels_get()->random;
    constexpr int64_t each = random_words<R>::count;
    ad_cpu_parallel(r->places.count, GRAIN, [&](int64_t begin, int64_t end) {
        alignas(64) R word[RANDOM_CHUNK];
        alignas(64) T number[RANDOM_CHUNK];
        int64_t skip = 0;
        one_by_one<T, T>(
            r, begin, end, RANDOM_CHUNK - each,
            [&](uint64_t element, int64_t) {
                const double p[3] = {0, 1, 0};
                skip = int64_t(element % each);
                k->words(word, r->key, element / each, random_words<R>::stream, RANDOM_CHUNK / each);
                if constexpr (!random_paired<Id>) return;
                else if constexpr (sizeof(T) == 4) k->real32[AD_RANDOM_normal](number, word, RANDOM_CHUNK, p);
                else k->real64[AD_RANDOM_normal](number, word, RANDOM_CHUNK, p);
            },
            [&](int64_t i, uint64_t, const random_parameters<T> &p) {
                if constexpr (random_paired<Id>) return random_scaled<Id>(number[i + skip], p);
                else return random_one<Id, T>::of(word[i + skip], p);
            });
    });
}

#define AD_DISTRIBUTION(id, name, source, loops, ...) AD_ENTRY_##source##_##loops(id)
#define AD_ENTRY_BLOCK_REAL(id) t.mixed[0][id] = mixed<id, float>, t.mixed[1][id] = mixed<id, double>;
#define AD_ENTRY_BLOCK_BITS(id)
#define AD_ENTRY_BLOCK_WHOLE(id)
#define AD_ENTRY_OWN_REAL(id) t.own[0][id] = own<id, float>, t.own[1][id] = own<id, double>;
#define AD_ENTRY_OWN_COUNT(id) t.own[1][id] = own<id, int64_t>;
constexpr ad_random_table make() {
    ad_random_table t{};
#include "protocol/distribution.def"
    return t;
}
#undef AD_DISTRIBUTION

} // namespace

constexpr ad_random_table ad_random_one_by_one = make();
