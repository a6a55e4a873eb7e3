/* Random numbers: dispatch, and everything of one set of parameters that is made in bulk. */
#include "kernels/cpu/call/random.h"

#include <atomic>

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/backend/parallel.h"
#include "kernels/cpu/isa/random_tables.h"

namespace {

using namespace ad;

constexpr int64_t GRAIN = 1 << 14;
constexpr int64_t PIECE = 64; /* elements */

/* Elements as they were made, to places begin.. of the output. */
template <class S> void store(const random_call *r, int64_t begin, const S *from, int64_t n) {
    const int64_t step = r->places.inner(0);
    r->places.runs(begin, begin + n, [&](const int64_t(&at)[4], int64_t length, int64_t p) {
        char *to = r->out.data + at[0];
        const S *x = from + (p - begin);
        if (step == int64_t(sizeof(S))) memcpy(to, x, size_t(length) * sizeof(S));
        else
            for (int64_t i = 0; i < length; i++) *reinterpret_cast<S *>(to + i * step) = x[i];
        return true;
    });
}

/* Call make(out, words, n, element of the first) for elements begin..end in chunks, whose first one begins a block, and
 * put(place, elements, n). n is rounded up to whole vectors, as functions round otherwise where they are not
 * vectorised. */
template <class S, class R, class F, class P>
void make_chunks(const random_source *r, int64_t begin, int64_t end, F make, P put) {
    const ad_random_kernels *k = ad_cpu_kernels_get()->random;
    constexpr uint64_t each = random_words<R>::count;
    alignas(64) R words[RANDOM_CHUNK];
    alignas(64) S made[RANDOM_CHUNK];
    while (begin < end) {
        const uint64_t element = r->first + uint64_t(begin), skip = element % each;
        int64_t n = end - begin + int64_t(skip);
        if (n > RANDOM_CHUNK) n = RANDOM_CHUNK;
        const int64_t all = (n + PIECE - 1) / PIECE * PIECE;
        k->words(words, r->key, element / each, random_words<R>::stream, all / int64_t(each));
        make(made, words, all, element - skip);
        put(begin, made + skip, n - int64_t(skip));
        begin += n - int64_t(skip);
    }
}

/* A destination of chunks: all of them go into the output of a call, or some into a row without gaps. */
struct to_output {
    const random_call *r;
    template <class S, class R, class F> void run(F make) const {
        ad_cpu_parallel(r->places.count, GRAIN, [&](int64_t begin, int64_t end) {
            make_chunks<S, R>(r, begin, end, make,
                              [&](int64_t at, const S *from, int64_t n) { store(r, at, from, n); });
        });
    }
};
struct to_row {
    const random_source *r;
    int64_t begin, end;
    void *to;
    template <class S, class R, class F> void run(F make) const {
        make_chunks<S, R>(r, begin, end, make, [&](int64_t at, const S *from, int64_t n) {
            memcpy(static_cast<S *>(to) + (at - begin), from, size_t(n) * sizeof(S));
        });
    }
};

template <class To> void fill_real(const random_source *r, const To &to) {
    const ad_random_kernels *k = ad_cpu_kernels_get()->random;
    const double p[3] = {r->number(0), r->number(1), r->number(2)};
    if (r->loop == AD_FLOAT32)
        to.template run<float, uint32_t>(
            [&](float *out, const uint32_t *w, int64_t n, uint64_t) { k->real32[r->id](out, w, n, p); });
    else
        to.template run<double, uint64_t>(
            [&](double *out, const uint64_t *w, int64_t n, uint64_t) { k->real64[r->id](out, w, n, p); });
}

/* Integers whose span fits into 32 bits, in elements of S. */
template <class S, class To> void fill_narrow(const random_source *r, uint64_t low, uint32_t span, const To &to) {
    const ad_random_kernels *k = ad_cpu_kernels_get()->random;
    constexpr int size = sizeof(S) == 1 ? 0 : sizeof(S) == 2 ? 1 : sizeof(S) == 4 ? 2 : 3;
    const random_range<uint32_t> range(span);
    to.template run<S, uint32_t>([&](S *out, const uint32_t *w, int64_t n, uint64_t element) {
        alignas(64) uint32_t offset[RANDOM_CHUNK];
        if (!k->below32(offset, w, n, span))
            for (int64_t i = 0; i < n; i++) offset[i] = random_below(w[i], range, r->key, element + uint64_t(i));
        k->shift32[size](out, offset, n, low);
    });
}

template <class To> void fill_wide(const random_source *r, uint64_t low, uint64_t span, const To &to) {
    const random_range<uint64_t> range(span);
    to.template run<uint64_t, uint64_t>([&](uint64_t *out, const uint64_t *w, int64_t n, uint64_t element) {
        for (int64_t i = 0; i < n; i++) out[i] = low + random_below(w[i], range, r->key, element + uint64_t(i));
    });
}

template <class To> void fill_integers(const random_source *r, const To &to) {
    uint64_t low, span;
    random_span(r, &low, &span);
    if (span >> 32 != 0) return fill_wide(r, low, span, to);
    switch (itemsize(r->loop)) {
    case 1: return fill_narrow<uint8_t>(r, low, uint32_t(span), to);
    case 2: return fill_narrow<uint16_t>(r, low, uint32_t(span), to);
    case 4: return fill_narrow<uint32_t>(r, low, uint32_t(span), to);
    default: return fill_narrow<uint64_t>(r, low, uint32_t(span), to);
    }
}

/* ---- integers with arrays among their parameters ---- */

struct bounds {
    const char *at[2];
    int64_t step[2];
    uint64_t value[2];

    bounds(const random_call *r, const int64_t (&offset)[4]) {
        for (int k = 0; k < 2; k++) {
            value[k] = r->value[k].u;
            at[k] = r->parameter[k].data ? r->parameter[k].data + offset[k + 1] : nullptr;
            step[k] = r->parameter[k].data ? r->places.inner(k + 1) : 0;
        }
    }
    void next() {
        for (int k = 0; k < 2; k++)
            if (at[k]) {
                value[k] = *reinterpret_cast<const uint64_t *>(at[k]);
                at[k] += step[k];
            }
    }
};

template <class S> void fill_bounded(const random_call *r) {
    const int64_t step = r->places.inner(0);
    ad_cpu_parallel(r->places.count, GRAIN, [&](int64_t begin, int64_t end) {
        r->places.runs(begin, end, [&](const int64_t(&at)[4], int64_t n, int64_t p) {
            bounds b(r, at);
            for (int64_t i = 0; i < n; i++) {
                b.next();
                const uint64_t v = random_integer(b.value[1] - b.value[0], r->key, r->first + uint64_t(p + i));
                *reinterpret_cast<S *>(r->out.data + at[0] + i * step) = S(b.value[0] + v);
            }
            return true;
        });
    });
}

/* ---- checks ---- */

/* Call look(offsets, n), which says what is wrong with a run, 0 nothing. Returns the answer for all runs. */
template <class F> int wrong_anywhere(const random_call *r, F look) {
    std::atomic<int> wrong{0};
    ad_cpu_parallel(r->places.count, GRAIN, [&](int64_t begin, int64_t end) {
        r->places.runs(begin, end, [&](const int64_t(&at)[4], int64_t n, int64_t) {
            if (int w = look(at, n)) wrong.store(w, std::memory_order_relaxed);
            return wrong.load(std::memory_order_relaxed) == 0;
        });
    });
    return wrong.load();
}

template <class P> int wrong_reals(const random_call *r) {
    const int domain[3] = {r->row->domain[0], r->row->domain[1], r->row->domain[2]};
    return wrong_anywhere(r, [&](const int64_t(&at)[4], int64_t n) {
        random_cursor<P> cursor(r, at);
        int wrong = 0;
        for (int64_t i = 0; i < n && wrong == 0; i++) {
            const random_parameters<P> &p = cursor.next();
            wrong = random_wrong(r->id, domain, p.a, p.b, p.c);
        }
        return wrong;
    });
}

int wrong_bounds(const random_call *r) {
    const uint64_t turn = r->kind == AD_UINT64 ? 0 : uint64_t(1) << 63;
    return wrong_anywhere(r, [&](const int64_t(&at)[4], int64_t n) {
        bounds b(r, at);
        bool wrong = false;
        for (int64_t i = 0; i < n; i++) {
            b.next();
            wrong |= (b.value[0] ^ turn) > (b.value[1] ^ turn);
        }
        return wrong ? int(AD_RANDOM_ORDER) : 0;
    });
}

} // namespace

int ad_cpu_random_check(const random_call *r, ad_fault *fault) {
    int wrong = !r->arrays              ? random_wrong_values(r)
                : r->kind == AD_FLOAT32 ? wrong_reals<float>(r)
                : r->kind == AD_FLOAT64 ? wrong_reals<double>(r)
                                        : wrong_bounds(r);
    return wrong ? ad__random_fault(r->id, wrong, fault) : 0;
}

namespace {

/* ---- dispatch ---- */

void fill(const random_call *r) {
    const int wide = r->kind == AD_FLOAT64;
    if (r->row->source == AD_RANDOM_OWN) return ad_random_one_by_one.own[wide][r->id](r);
    if (r->row->loops == AD_RANDOM_REAL)
        return r->arrays ? ad_random_one_by_one.mixed[wide][r->id](r) : fill_real(r, to_output{r});
    if (!r->arrays) return fill_integers(r, to_output{r});
    switch (itemsize(r->loop)) {
    case 1: return fill_bounded<uint8_t>(r);
    case 2: return fill_bounded<uint16_t>(r);
    case 4: return fill_bounded<uint32_t>(r);
    default: return fill_bounded<uint64_t>(r);
    }
}

} // namespace

void ad_cpu_random_make(const random_source *r, int64_t begin, int64_t n, void *to) {
    const to_row row = {r, begin, begin + n, to};
    if (r->row->loops == AD_RANDOM_REAL) fill_real(r, row);
    else fill_integers(r, row);
}

int ad_call_random(ad_call *c) {
    random_call r;
    int status = random_open(c, &r);
    if (status || r.places.count == 0) return status;
    if ((status = ad_cpu_random_check(&r, c->fault))) return status;
    c->run->wrote = true;
    fill(&r);
    return ad_call_finish(c, 0, &r.out);
}
