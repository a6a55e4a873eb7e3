"""Operations that the server executes together give what they give one by one, bit for bit, and what NumPy gives.

A large product comes first, so that the operations behind it are queued when the server comes to them.
"""
import os

import numpy as np
import pytest

import arrayd as ad
from chains import WORK, busy, compiled, is_gpu, once, random, same_bits, settled, together, uploaded, without_value
from conftest import BUILD, start_server
from programs import Program


def test_a_formula_is_one(servers):
    ad.connect(servers[0])
    a, b = random(1000), random(1000, seed=2)
    x, y = uploaded(a, b)
    result = settled(lambda: ad.sqrt(x * x + y * y) * 0.5 + ad.sin(x) * ad.exp(-y),
                     fused_chains=1, fused_ops=10, temporaries=9, unfused_chains=0)
    np.testing.assert_allclose(result.get(), np.sqrt(a * a + b * b) * 0.5 + np.sin(a) * np.exp(-b), rtol=1e-5)
    total = settled(lambda: (x * y + 1).sum(), fused_chains=1, fused_ops=3, temporaries=2)
    np.testing.assert_allclose(float(total), (a * b + 1).sum(), rtol=1e-5)


def test_special_functions_join(servers):
    scipy_special = pytest.importorskip("scipy.special")
    ad.connect(servers[0])
    a = random(1000)
    x, = uploaded(a)
    result = settled(lambda: ad.special.erf(x) * ad.exp(-x * x), fused_chains=1, fused_ops=5, temporaries=4)
    np.testing.assert_allclose(result.get(), scipy_special.erf(a) * np.exp(-a * a), rtol=1e-5)
    result = settled(lambda: ad.special.gammaln(x + 2) * 2, fused_chains=1, fused_ops=3, temporaries=2)
    np.testing.assert_allclose(result.get(), scipy_special.gammaln(a + 2) * 2, rtol=1e-4, atol=1e-6)


def test_counters_of_a_block(servers):
    ad.connect(servers[0])
    x, = uploaded(random(1000))
    for _ in range(20):
        with ad.cupyx.profiler.counters() as gained:
            work = busy()
            kept = (x + 1) * 2
            ad.sync()
        if gained["fused_ops"] == 2:
            break
        compiled()
    del work, kept
    assert gained["fused_chains"] == 1 and gained["temporaries"] == 1
    assert gained["ops_failed"] == 0 and gained["ops_done"] >= 7 and gained["sessions"] == 0


def test_what_is_kept_is_written(servers):
    ad.connect(servers[0])
    a = random((50, 30))
    x, = uploaded(a)

    def body():
        y = x * 2
        z = y + 1
        return y, z, z.sum(axis=0), z.max()
    y, z, sums, most = settled(body, temporaries=0, ops_unneeded=0)
    np.testing.assert_array_equal(y.get(), a * 2)
    np.testing.assert_array_equal(z.get(), a * 2 + 1)
    np.testing.assert_allclose(sums.get(), (a * 2 + 1).sum(axis=0), rtol=1e-6)
    assert float(most) == (a * 2 + 1).max()


def test_what_nobody_wants_is_not_computed(servers):
    ad.connect(servers[0])
    x, = uploaded(random(100))

    def body():
        (x + 1) * 2
        y = x + 3
        return y
    y = settled(body, ops_unneeded=2, temporaries=2)
    np.testing.assert_array_equal(y.get(), x.get() + 3)


def test_a_loop_makes_the_same_chains(servers):
    """A loop makes the same chains also where the queue is full in the middle of one."""
    ad.connect(servers[0])
    x, y = uploaded(random(100), random(100, seed=2))

    def formulas():
        return [((((((x + y) * x) - y) * 0.5 + i) * y) - x) for i in range(40)]
    if is_gpu() or os.environ.get("ARRAYD_CPU_LATE"):  # several are one there
        results, _ = together(formulas, fused_ops=270)
    else:
        results = settled(formulas, fused_chains=40, fused_ops=280, temporaries=240)
    a, b = x.get(), y.get()
    for i, result in enumerate(results):
        np.testing.assert_array_equal(result.get(), ((((((a + b) * a) - b) * np.float32(0.5) + i) * b) - a))


def test_a_queue_that_never_ends(servers):
    """The server gives back what it keeps of messages while it stays busy, also where shapes take turns."""
    ad.connect(servers[0])
    x, y = uploaded(random(16), random(17))
    worker, results = ad.stat()["worker_pid"], [None] * 100

    def resident():
        with open(f"/proc/{worker}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    def load(n):
        for i in range(n):
            results[i % 100] = (x + x) * x if i % 5 else y + y
        ad.sync()
    load(10000)
    before = resident()
    load(150000)
    assert resident() - before < 4 << 20 or BUILD.name == "asan"  # it keeps what is freed for a while


@pytest.mark.parametrize("length", [70, 200])
def test_longer_than_a_chain(servers, length):
    ad.connect(servers[0])
    a = random(500, "float64")
    arrays = uploaded(*[a + i for i in range(40)])
    expected = a
    for i in range(length):
        expected = expected * 0.5 + (a + i % 40)

    def body():
        result, kept = arrays[0], []
        for i in range(length):
            result = result * 0.5 + arrays[i % 40]
            kept.append(result)
        return kept
    result, counters = together(body, fused_ops=length + 1)
    np.testing.assert_array_equal(result[-1].get(), expected)
    assert counters["fused_ops"] > length


def test_views_and_assignments(servers):
    """A later reader sees what was written, by whatever view; an earlier one does not."""
    ad.connect(servers[0])
    a, b = random(64), random(64, seed=2)
    x, y = uploaded(a, b)

    def program(xp, x, y):
        before = x + 1
        x *= 2
        after = x + 1
        x[::2] = y[::2] - 1
        half = x[::2] * 3
        x[1:] += x[:-1]
        x[...] = x[::-1]
        both = x + y
        y[...] = before
        y += after
        return before, after, half, both, x, y
    for _ in range(5):
        (results, _), expected = together(lambda: program(ad, x.copy(), y.copy())), program(np, a.copy(), b.copy())
        for one, other in zip(results, expected, strict=True):
            np.testing.assert_array_equal(one.get(), other)


def test_views_of_one_shape(servers):
    """A view is read or written while another one of the same array is written or read."""
    ad.connect(servers[0])
    a, b = random((60, 60)), random((60, 60), seed=2)
    x, y = uploaded(a, b)

    def program(xp, x, y):
        plain = x + y
        turned = y + x.T
        x *= 2
        flipped = y - x[::-1]
        x -= 1
        both = x.T + x
        x *= y
        back = x[::-1] - turned
        x[::-1] += y
        y.T[...] = x - back
        xp.add(x, y, out=x.T)
        late = x.T * y[::-1] + x
        y[...] = y.T
        wide = xp.broadcast_to(y[0], (60, 60))
        y += wide
        y[0] = 0
        return plain, turned, flipped, both, back, late, x, y, y + wide
    for _ in range(5):
        (results, _), expected = together(lambda: program(ad, x.copy(), y.copy())), program(np, a.copy(), b.copy())
        for one, other in zip(results, expected, strict=True):
            np.testing.assert_array_equal(one.get(), other)


def test_temporaries_need_no_memory(servers):
    """A limit that one more array fits, but not two."""
    n = 1 << 18
    a = random(n, "float64")
    ad.connect(servers[0])
    x, = uploaded(a)
    work = busy()
    ad.sync()
    ad.get_default_memory_pool().set_limit(size=ad.stat()["buffer_bytes"] + a.nbytes * 3 // 2)
    try:
        del work
        for _ in range(20):
            blocker = ad.ones(1 << 14).reshape(128, 128)
            for _ in range(300):
                ad.matmul(blocker, blocker, out=blocker)
            result = (x + 1) * 2 - x
            try:
                value = result.get()
                break
            except MemoryError:
                continue
        np.testing.assert_array_equal(value, (a + 1) * 2 - a)
    finally:
        ad.get_default_memory_pool().set_limit(size=0)


def test_failures_are_those_of_operations_by_themselves(servers):
    """No memory for some results of a chain: they have the error, with the name of what failed; the others are right."""
    n = 1 << 20
    a = random(n, "float64")
    told = []
    for url in servers:
        ad.connect(url)
        x, = uploaded(a)
        small, = uploaded(a[:1000])
        ad.get_default_memory_pool().set_limit(size=ad.stat()["buffer_bytes"] + a.nbytes * 3 // 2 + WORK)
        try:
            def body():
                first = x + 1
                second = first * 2
                third = ad.sqrt(second)
                return first, second, third, small * 3, third.sum()
            (first, second, third, other, total), counters = once(body)
            np.testing.assert_array_equal(other.get(), a[:1000] * 3)
            errors = []
            for result in (first, second, third, total):
                try:
                    result.get()
                    errors.append("good")
                except MemoryError as error:
                    errors.append(str(error).split(" (")[0])
            told.append((errors, counters["ops_failed"]))
        finally:
            ad.get_default_memory_pool().set_limit(size=0)
    assert told[0][0].count("good") == 1
    assert told[0] == told[1]


def test_a_poisoned_operand(servers):
    ad.connect(servers[0])
    x, = uploaded(random(100))
    bad = without_value(x)

    def body():
        y = x + 1
        z = (y + bad) * 2
        w = (y - x) * 2
        return y, z, w
    (y, z, w), _ = together(body)
    np.testing.assert_array_equal(y.get(), x.get() + 1)
    np.testing.assert_array_equal(w.get(), (x.get() + 1 - x.get()) * 2)
    with pytest.raises(IndexError):
        z.get()


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("block", range(8))
def test_random_programs(servers, block, exact):
    fused = 0
    for seed in range(block * 10, block * 10 + 10):
        program = Program(seed, exact)
        ad.connect(servers[0])
        (together_, read), counters = together(program.run)
        ad.connect(servers[1])
        (apart, read_apart), none = together(program.run)
        fused += counters["fused_ops"]
        assert none["fused_ops"] == none["temporaries"] == 0
        assert together_.keys() == apart.keys() == program.arrays.keys()
        for number, a in together_.items():
            assert same_bits(a, apart[number]), (seed, number)
            if exact:
                np.testing.assert_array_equal(a, program.arrays[number], err_msg=f"{seed}: {number}")
        assert all(same_bits(a, b) for a, b in zip(read, read_apart, strict=True)), seed
    assert fused > (20 if is_gpu() else 50)  # where chains are compiled as they come


@pytest.fixture(params=["", "1"], ids=["there", "moved"])
def declining(tmp_path, monkeypatch, request):
    """A server whose backend declines most chains, which had memory for their outputs by then; and may lose it to
    whatever asks for memory next."""
    monkeypatch.setenv("ARRAYD_CPU_DECLINES", "1")
    if request.param:
        monkeypatch.setenv("ARRAYD_SPILL_EVERY", request.param)
    before = os.environ["ARRAYD_URL"]
    process, url = start_server(str(tmp_path), "--host-memory=64M")
    ad.connect(url)
    yield
    ad.connect(before)
    process.kill()
    process.wait()


def test_declined_chains(declining):
    apart = 0
    for seed in range(60, 90):
        program = Program(seed, True)
        (arrays, _), counters = once(program.run)
        apart += counters["unfused_chains"]
        for number, a in arrays.items():
            np.testing.assert_array_equal(a, program.arrays[number], err_msg=f"{seed}: {number}")
    assert apart > 50


def test_more_than_a_window_of_what_nobody_needs(servers):
    """Operations that are never executed are acknowledged, too: the client would wait for ever."""
    ad.connect(servers[0])
    x, = uploaded(random(16))
    for _ in range(200_000):
        x + x
    np.testing.assert_array_equal((x + x).get(), 2 * x.get())
