/* Random numbers: the generator against its published vectors, calls in pieces against whole ones. */
#include <math.h>
#include <string.h>

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/isa/random_tables.h"
#include "kernels/random_block.h"
#include "protocol/distribution.h"
#include "protocol/rows_call.h"
#include "kernels_call.h"

static std::vector<ad_scalar> at(int id, uint64_t key, uint64_t first) {
    return {integer(id), integer(int64_t(key)), integer(int64_t(first))};
}

static void check_philox(ad::random_block counter, uint32_t key0, uint32_t key1, ad::random_block expected) {
    const ad::random_block b = ad::philox(counter, key0, key1);
    for (int i = 0; i < 4; i++) cr_assert_eq(b.word[i], expected.word[i], "word %d is %08x", i, b.word[i]);
}

/* kat_vectors of Random123, philox 4x32 10. */
Test(kernels_random, published_vectors) {
    const uint32_t ones = 0xffffffffu;
    check_philox({{0, 0, 0, 0}}, 0, 0, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}});
    check_philox({{ones, ones, ones, ones}}, ones, ones, {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}});
    check_philox({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0xa4093822, 0x299f31d0,
                 {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}});
}

Test(kernels_random, every_instruction_set_makes_the_same_words) {
    alignas(64) static uint32_t words[4 * 128];
    const uint64_t key = 0x0123456789abcdef;
    for (const char *name : {"v2", "v3", "v4", "plain"}) {
        if (!ad_cpu_kernels_select(name)) continue;
        for (uint64_t block : {uint64_t(0), uint64_t(0xfffffff0), uint64_t(1) << 61})
            for (uint32_t stream : {0u, 1u})
                for (int64_t blocks : {1, 31, 100}) {
                    ad_cpu_kernels_get()->random->words(words, key, block, stream, blocks);
                    for (int64_t i = 0; i < blocks; i++) {
                        const ad::random_block b = ad::random_at(key, block + uint64_t(i), 0, stream);
                        cr_assert_eq(memcmp(words + 4 * i, b.word, sizeof b.word), 0, "%s block %d", name, int(i));
                    }
                }
    }
}

Test(kernels_random, bits_are_the_stream) {
    host h;
    nd<uint32_t> a({1000});
    nd<uint64_t> b({1000});
    ASSERT_OK(h.call(AD_CALL_random, AD_UINT32, {a}, {}, at(AD_RANDOM_bits, 77, 6)));
    ASSERT_OK(h.call(AD_CALL_random, AD_UINT64, {b}, {}, at(AD_RANDOM_bits, 77, 6)));
    for (uint64_t e = 6; e < 1006; e++) {
        const ad::random_block four = ad::random_at(77, e / 4, 0, 0), two = ad::random_at(77, e / 2, 0, 1);
        cr_assert_eq(a[int64_t(e) - 6], four.word[e % 4]);
        cr_assert_eq(b[int64_t(e) - 6], two.word[e % 2 * 2] | uint64_t(two.word[e % 2 * 2 + 1]) << 32);
    }
}

static std::vector<arg> parameters_of(int id) {
    switch (id) {
    case AD_RANDOM_triangular: return {number(-1), number(0.5), number(2)};
    case AD_RANDOM_hypergeometric: return {number(300), number(200), number(100)};
    case AD_RANDOM_zipf: return {number(2.5)};
    case AD_RANDOM_integers: return {integer(-3), integer(100)};
    case AD_RANDOM_binomial: return {number(100), number(0.25)};
    default: break;
    }
    std::vector<arg> all;
    for (int i = 0; i < ad__distribution(id)->nparam; i++) all.push_back(number(0.5));
    return all;
}

template <class S> static void check_pieces(int id, int loop) {
    host h;
    const int64_t n = 70001;
    nd<S> whole({n});
    ASSERT_OK(h.call(AD_CALL_random, loop, {whole}, parameters_of(id), at(id, 5, 9)));
    for (int64_t from : {0, 1, 2, 3, 1023, 5000})
        for (int64_t length : {1, 5, 1024, 3001}) {
            nd<S> piece = laid_out<S>({length}, int(from % 4));
            ASSERT_OK(h.call(AD_CALL_random, loop, {piece}, parameters_of(id), at(id, 5, 9 + uint64_t(from))));
            for (int64_t i = 0; i < length; i++)
                cr_assert_eq(memcmp(&piece[i], &whole[from + i], sizeof(S)), 0,
                             "%s: element %d of %d from %d is another", ad__distribution(id)->name, int(i), int(length),
                             int(from));
        }
}

Test(kernels_random, pieces_are_what_the_whole_is) {
    for (int id = 0; id < AD_RANDOM_LIMIT; id++) {
        const ad_distribution_row *row = ad__distribution(id);
        if (row == nullptr) continue;
        if (row->loops & AD_BIT(AD_FLOAT32)) check_pieces<float>(id, AD_FLOAT32);
        if (row->loops & AD_BIT(AD_FLOAT64)) check_pieces<double>(id, AD_FLOAT64);
        if (row->loops & AD_BIT(AD_UINT32)) check_pieces<uint32_t>(id, AD_UINT32);
        if (row->loops & AD_BIT(AD_INT64)) check_pieces<int64_t>(id, AD_INT64);
        if (row->loops & AD_BIT(AD_INT8)) check_pieces<int8_t>(id, AD_INT8);
    }
}

/* Arrays of equal parameters give what numbers give. */
template <class S> static void check_arrays(int id, int loop, double tolerance) {
    host h;
    const dims shape = {3, 41};
    std::vector<arg> numbers = parameters_of(id), arrays;
    std::vector<nd<double>> kept;
    for (arg &a : numbers) {
        nd<double> p(shape);
        for (int64_t i = 0; i < p.size(); i++)
            p[i] = a.o.scalar.kind == AD_SCALAR_INT ? double(a.o.scalar.as.i) : a.o.scalar.as.f;
        kept.push_back(arrays.empty() ? p : p.every(0, 3).repeated(0, 3));
        arrays.push_back(kept.back());
    }
    nd<S> expected(shape), is(shape);
    ASSERT_OK(h.call(AD_CALL_random, loop, {expected}, numbers, at(id, 8, 3)));
    ASSERT_OK(h.call(AD_CALL_random, loop, {is}, arrays, at(id, 8, 3)));
    for (int64_t i = 0; i < is.size(); i++)
        cr_assert_leq(fabs(double(is[i]) - double(expected[i])), tolerance * (1 + fabs(double(expected[i]))), "%s: %d",
                      ad__distribution(id)->name, int(i));
}

Test(kernels_random, arrays_of_parameters) {
    for (int id = 0; id < AD_RANDOM_LIMIT; id++) {
        const ad_distribution_row *row = ad__distribution(id);
        if (row == nullptr || row->nparam == 0) continue;
        if (row->loops & AD_BIT(AD_FLOAT32)) check_arrays<float>(id, AD_FLOAT32, 1e-4);
        if (row->loops & AD_BIT(AD_FLOAT64)) check_arrays<double>(id, AD_FLOAT64, 1e-12);
        if (row->loops & AD_BIT(AD_INT64)) check_arrays<int64_t>(id, AD_INT64, 0);
        if (row->loops & AD_BIT(AD_INT16)) check_arrays<int16_t>(id, AD_INT16, 0);
    }
}

Test(kernels_random, wrong_parameters_change_nothing) {
    host h;
    nd<double> out({50000}), scale({50000});
    for (int64_t i = 0; i < out.size(); i++) out[i] = 7, scale[i] = 1;
    scale[49999] = -1;
    cr_assert_eq(h.call(AD_CALL_random, AD_FLOAT64, {out}, {number(0), scale}, at(AD_RANDOM_normal, 1, 0)), AD_E_VALUE);
    cr_assert_str_eq(h.fault.text, "normal: scale < 0");
    cr_assert_eq(out[0], 7);
    cr_assert_eq(h.call(AD_CALL_random, AD_FLOAT64, {out}, {number(0), number(-1)}, at(AD_RANDOM_normal, 1, 0)),
                 AD_E_VALUE);
    cr_assert_eq(
        h.call(AD_CALL_random, AD_INT64, {nd<int64_t>({2})}, {integer(3), integer(2)}, at(AD_RANDOM_integers, 1, 0)),
        AD_E_VALUE);
    cr_assert_str_eq(h.fault.text, "integers: low >= high");
    cr_assert_not(h.run.wrote);
}

/* Numbers from 0 to 2: each as often as the others, also where words must be drawn again. */
Test(kernels_random, integers_are_even) {
    host h;
    nd<int64_t> out({300000});
    const int64_t third = INT64_MAX / 3 * 2; /* spans of 2/3 of all 64-bit numbers: a third is drawn again */
    int64_t below[4] = {};
    ASSERT_OK(h.call(AD_CALL_random, AD_INT64, {out}, {integer(-third), integer(third)}, at(AD_RANDOM_integers, 3, 0)));
    for (int64_t i = 0; i < out.size(); i++) {
        cr_assert(out[i] >= -third && out[i] <= third);
        below[(uint64_t(out[i]) + uint64_t(third)) / (uint64_t(third) / 2 + 1)]++;
    }
    for (int64_t b : below) cr_assert(llabs(b - 75000) < 1000, "%d", int(b));
    ASSERT_OK(h.call(AD_CALL_random, AD_INT64, {out}, {integer(0), integer(2863311530)}, at(AD_RANDOM_integers, 3, 0)));
    memset(below, 0, sizeof below);
    for (int64_t i = 0; i < out.size(); i++) below[out[i] / 715827883]++;
    for (int64_t b : below) cr_assert(llabs(b - 75000) < 1000, "%d", int(b));
}
