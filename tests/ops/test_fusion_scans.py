"""Running sums and products at the end of chains: what they give by themselves, bit for bit.

On a GPU the order in which a long lane is added up depends on its blocks' pace: its numbers are such there that no
order rounds.
"""
import numpy as np
import pytest

import arrayd as ad
from chains import is_gpu, random, same_bits, settled, together, uploaded, without_value
from programs import DRAWS, SCANS

TYPES = ["float32", "float64", "float16", "int8", "int32", "int64", "uint16", "uint64", "bool", "complex64",
         "complex128"]
LONG = 4096
# Lanes that are divided among threads, that are made where they are read, and that go by way of memory.
SHAPES = [((300001,), 0), ((2, 140000), 1), ((600, 513), 1), ((600, 513), 0), ((5000, 3), 0), ((5000, 3), 1), ((7,), 0),
          ((4, 5, 600), 1), ((3, 1, 700, 1), 2), ((1, 1), 0), ((260, 520), None)]


def numbers(shape, dtype, seed=1):
    generator = np.random.default_rng(seed)
    value = generator.normal(0, 3, shape)
    if dtype[0] in "fc" and is_gpu():  # 1, -1, and 2 and 0.5 in turn
        value = np.sign(value) * np.resize([1, 1, 1, 2, 1, 1, 1, 0.5, 1, 1], shape)
    return (value + 0j if dtype[0] == "c" and is_gpu() else value + 1j * value[..., ::-1] if dtype[0] == "c" else
            abs(value) if dtype[0] in "ub" else value).astype(dtype)


def both(servers, body, *arrays, fused=2):
    """Return what body makes of the arrays, by chains and one by one. fused: operations that end up in chains, at
    least."""
    found = []
    for url in servers:
        ad.connect(url)
        given = uploaded(*arrays)
        results, counters = together(lambda: body(*given), **({"fused_ops": fused} if url == servers[0] else {}))
        found.append([r.get() for r in results])
        assert counters["fused_ops"] >= fused if url == servers[0] else counters["fused_ops"] == 0, counters
    for k, (one, other) in enumerate(zip(*found, strict=True)):
        assert same_bits(one, other), k
    return found[0]


def test_a_scan_ends_a_formula(servers):
    ad.connect(servers[0])
    a, b = random(1000), random(1000, seed=2)
    x, y = uploaded(a, b)
    result = settled(lambda: ad.cumsum(ad.sqrt(x * x + y * y)), fused_chains=1, fused_ops=5, temporaries=4,
                     unfused_chains=0)
    np.testing.assert_allclose(result.get(), np.cumsum(np.sqrt(a * a + b * b)), rtol=1e-4)
    result = settled(lambda: (x * 2).cumprod(), fused_chains=1, fused_ops=2, temporaries=1, unfused_chains=0)
    np.testing.assert_allclose(result.get(), np.cumprod(a * 2), rtol=1e-4, atol=1e-37)  # not of subnormal numbers


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape, axis", SHAPES)
def test_every_type(servers, dtype, shape, axis):
    ad.connect(servers[0])
    a, row = numbers(shape, dtype), np.sign(numbers(shape[-1:], dtype, 2)) if dtype != "bool" else np.array(True)
    if dtype[0] in "fc":
        a.flat[5::1000] = np.nan

    def body(x, y):
        # Compilers make other products of complex numbers in vectors than of the ones behind them.
        both_ = ad.add if dtype[0] == "c" else ad.multiply
        return [getattr(ad, scan)(both_(x, y) * (x == x), axis=axis) for scan in scans]
    # A GPU multiplies long lanes in no fixed order, on which the signs of complex zeros depend.
    scans = [scan for scan in SCANS if "sum" in scan] if dtype[0] == "c" and is_gpu() else SCANS
    results = both(servers, body, a, row, fused=4 * len(scans) - 2)
    if dtype[0] in "iub":
        np.testing.assert_array_equal(results[0], np.cumsum(a * row, axis=axis), strict=True)


@pytest.mark.parametrize("dtype", ["int16", "float32", "int64", "float64", "complex64", "bool"])
@pytest.mark.parametrize("n", [1000, 200000])
def test_another_type_than_the_value(servers, dtype, n):
    a = np.arange(n, dtype="int32") % 50

    def body(x):
        return [ad.cumsum(x * 2 + 1, dtype=dtype), ad.cumprod((x > 49) | (x < 60), dtype=dtype)]
    sums, products = both(servers, body, a, fused=5)
    np.testing.assert_allclose(sums, np.cumsum(a * 2 + 1, dtype=dtype), rtol=1e-5)
    np.testing.assert_array_equal(products, np.ones(n, dtype))


def test_layouts(servers):
    """Operands that are broadcast, turned round, apart and across; a result is laid out as ever."""
    ad.connect(servers[0])
    a, b = random((500, 600)), random((600, 500), seed=2)
    if is_gpu():
        a, b = np.floor(a * 10), np.floor(b * 10)

    def body(x, y):
        values = [x - x[0], x[::-1] * x[:, ::-1], x[:, ::2] + 1, x + y.T, x[:, :1] * x + y[0, 0], x.T * 2, x.T * y,
                  (x[:, None, :20] + x[:, :20, None])]
        return [r for v in values
                for r in (v.cumsum(0), (v * 2).cumsum(-1), ad.cumsum((v + 1)[:4] if is_gpu() else v + 1))]
    both(servers, body, a, b, fused=14 if is_gpu() else 30)  # where only a part is scanned, the value is another array


def test_overflow_on_the_way(servers):
    """A long lane is done again from there on."""
    ad.connect(servers[0])
    if is_gpu():
        pytest.skip("what is infinite there depends on the blocks' pace")
    for at in (5, 100000, 250000):
        a = random(300000, "float64")
        a[at], a[at + 1], a[at + 2] = 1.7e308, 1e308, -1e308

        result = both(servers, lambda x: [ad.cumsum(x * 1.0 + 0.0), ad.nancumsum(x - 0.5)], a, fused=5)[0]
        assert np.isinf(result[-1]) and np.isfinite(result[at])


def test_what_else_uses_the_value(servers):
    """The value is kept, reduced, scanned twice, changed where it is, or its buffer is used again."""
    def program(xp, x, y):
        kept = x * y
        one, total = xp.cumsum(kept, axis=1), kept.max()
        other = xp.cumsum(kept, axis=0)
        part = x + 1
        twice = xp.cumprod(part * 0.5, axis=1)
        x *= 2
        both_ = xp.cumsum(x - y, axis=1)
        x += 1
        scanned = xp.cumsum(x, axis=1)
        x -= scanned
        after = xp.cumsum(scanned * 1, axis=1) + scanned
        double = xp.cumsum(xp.cumsum(x * y, axis=1) * 1, axis=1)
        out = xp.zeros_like(x)
        xp.cumsum(x + y, axis=0, out=out)
        xp.cumsum(out + x, axis=1, out=x)
        flat = xp.cumsum(y * 2)
        return kept, one, xp.asarray(total), other, part, twice, both_, scanned, x, after, double, out, flat
    a, b = (np.arange(300 * 700).reshape(300, 700) % n for n in (11, 7))

    results = both(servers, lambda x, y: program(ad, x.copy(), y.copy()), a, b, fused=10)
    for one, other in zip(results, program(np, a.copy(), b.copy()), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12 if is_gpu() else 0)  # a GPU multiplies in another order


def test_what_is_kept_needs_no_other_memory(servers):
    """The value is written once, where the client wants it, and scanned from there."""
    ad.connect(servers[0])
    x, = uploaded(np.arange(5000))

    def body():
        value = (x + 1) * 2
        return value, ad.cumsum(value)
    value, sums = settled(body, fused_chains=1, fused_ops=2, temporaries=1)
    np.testing.assert_array_equal(sums.get(), np.cumsum(value.get()))


def test_masks_and_random_numbers(servers):
    even = np.arange(200000) % 2 == 0

    def body(m):
        results = []
        for n in (999, LONG if is_gpu() else 200000):
            for how in DRAWS:
                x = DRAWS[how](ad.random.default_rng(5), n)
                masked = ad.multiply(DRAWS[how](ad.random.default_rng(n), n), 2, where=m[:n])
                results += [ad.cumsum(x), ad.cumsum(masked)]
                del masked
        return results
    both(servers, body, even, fused=60)


def test_temporaries_need_no_memory(servers):
    """A limit that the result fits, but no second array."""
    n = 1 << 18
    a = np.arange(n, dtype="float64")
    ad.connect(servers[0])
    x, = uploaded(a)
    for _ in range(20):
        work = ad.ones((700, 700))
        ad.sync()
        ad.get_default_memory_pool().set_limit(size=ad.stat()["buffer_bytes"] + work.nbytes + a.nbytes * 7 // 4)
        try:
            for _ in range(3):
                ad.matmul(work, work * 0)
            result = ad.cumsum((x + 1) * 2 - x).get()
            break
        except MemoryError:
            continue
        finally:
            ad.get_default_memory_pool().set_limit(size=0)
    np.testing.assert_array_equal(result, np.cumsum(a + 2))


def test_failures(servers):
    """An array that has no value gives none, and no other operation of the chain fails for it."""
    ad.connect(servers[0])
    x, = uploaded(random(100))
    bad = without_value(x)

    def body():
        y = x + 1
        return y, ad.cumsum((y + bad) * 2), ad.cumsum((y - x) * 2)
    (y, failed, good), _ = together(body)
    np.testing.assert_array_equal(y.get(), x.get() + 1)
    np.testing.assert_array_equal(good.get(), np.cumsum((x.get() + 1 - x.get()) * 2))
    with pytest.raises(IndexError):
        failed.get()


def test_nothing_to_scan(servers):
    ad.connect(servers[0])
    for shape, axis in (((0,), 0), ((3, 0), 1), ((0, 3), 1), ((0, 3), None)):
        x, = uploaded(np.ones(shape, "float32"))
        result, _ = together(lambda x=x, axis=axis: ad.cumsum(x * x + 1, axis=axis))
        np.testing.assert_array_equal(result.get(), np.cumsum(np.ones(shape, "float32"), axis=axis), strict=True)
