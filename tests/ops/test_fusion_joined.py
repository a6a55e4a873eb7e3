"""Small operations that have nothing to do with each other and are alike: where launching takes longer than executing, one
launch does for several, and each still fails for itself."""
import os
import tempfile

import numpy as np
import pytest

import arrayd as ad
from chains import busy, once, same_bits, settled, together, uploaded
from conftest import start_server

N = 50


@pytest.fixture(scope="module")
def joining():
    """A server whose backend only enqueues, as a GPU's."""
    before, late = os.environ["ARRAYD_URL"], os.environ.get("ARRAYD_CPU_LATE")
    os.environ["ARRAYD_CPU_LATE"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        process, url = start_server(folder)
        if late is None:
            del os.environ["ARRAYD_CPU_LATE"]
        ad.connect(url)
        yield
        ad.connect(before)
        process.kill()
        process.wait()


def numbers(n, shape=(16,), seed=1):
    generator = np.random.default_rng(seed)
    return [generator.normal(size=shape).astype("float32") for _ in range(n)]


def several(body, ops, chains):
    """Return what body gives when at least so many of its operations go together, in at most so many launches."""
    for _ in range(20):
        results, counters = together(body, fused_ops=ops)
        if counters["fused_chains"] <= chains:
            return results
    raise AssertionError((counters["fused_ops"], counters["fused_chains"]))


def test_operations(joining):
    a, b = numbers(N), numbers(N, seed=2)
    x, y = uploaded(*a), uploaded(*b)
    results = several(lambda: [p + q for p, q in zip(x, y)], 48, 6)
    assert all(same_bits(r.get(), p + q) for r, p, q in zip(results, a, b))


def test_chains(joining):
    a, b = numbers(2, (10, 7))
    x, y = uploaded(a, b)
    results = several(lambda: [(x * y + i) * 0.5 - y for i in range(40)], 150, 20)
    for i, r in enumerate(results):
        np.testing.assert_array_equal(r.get(), (a * b + i) * np.float32(0.5) - b)


def test_operations_that_take_turns(joining):
    a, b = numbers(2)
    x, y = uploaded(a, b)
    work = busy()
    results = [f(x, y + i) for i in range(40) for f in (ad.add, ad.multiply)]
    for i in range(40):
        np.testing.assert_array_equal(results[2 * i].get(), a + (b + i))
        np.testing.assert_array_equal(results[2 * i + 1].get(), a * (b + i))
    del work


def test_in_place(joining):
    """Each array of its own is changed, and then parts of one that overlap, one after the other."""
    a, whole = numbers(N), np.arange(100.0)

    def body():
        x, one = [ad.asarray(p) for p in a], ad.asarray(whole)
        work = busy()
        for i, p in enumerate(x):
            p *= 2
            one[i:i + 16] += i
        del work
        return x, one
    x, one = body()
    expected = whole.copy()
    for i in range(N):
        expected[i:i + 16] += i
    assert all(same_bits(p.get(), q * 2) for p, q in zip(x, a))
    np.testing.assert_array_equal(one.get(), expected)


@pytest.mark.parametrize("at", [0, 5, 15, 40])
def test_one_of_them_has_no_value(joining, at):
    a = numbers(N)
    x = uploaded(*a)
    bad = x[0][ad.asarray([1000] * 16)]
    results, _ = once(lambda: [p + (bad if i == at else 1) for i, p in enumerate(x)])
    for i, r in enumerate(results):
        if i == at:
            with pytest.raises(IndexError):
                r.get()
        else:
            np.testing.assert_array_equal(r.get(), a[i] + 1)


def test_one_of_them_fails(joining):
    base, exponents = np.arange(16), [np.full(16, -1 if i == 7 else i) for i in range(N)]
    x, y = uploaded(base), uploaded(*exponents)
    results, _ = once(lambda: [x[0] ** e for e in y])
    for i, r in enumerate(results):
        if i == 7:
            with pytest.raises(ValueError, match="[Nn]egative"):
                r.get()
        else:
            np.testing.assert_array_equal(r.get(), base ** exponents[i])


def test_memory_for_some_of_them(joining):
    """Arrays that there is memory for have a value. The others say what they lack."""
    x, = uploaded(np.ones(16384, "float32"))
    pool = ad.get_default_memory_pool()
    work = busy()
    ad.sync()
    pool.set_limit(size=ad.stat()["buffer_bytes"] + 10 * x.nbytes)
    try:
        results = [x + i for i in range(16)]
        lost = 0
        for i, r in enumerate(results):
            try:
                np.testing.assert_array_equal(r.get(), np.float32(1 + i))
            except MemoryError:
                lost += 1
        assert 0 < lost < 16
    finally:
        pool.set_limit(size=0)
        del work


def test_large_ones_are_launched_by_themselves(joining):
    x, = uploaded(np.ones(100_000, "float32"))
    results = settled(lambda: [x + i for i in range(10)], fused_chains=0, fused_ops=0)
    assert [float(r[0]) for r in results] == [1 + i for i in range(10)]
