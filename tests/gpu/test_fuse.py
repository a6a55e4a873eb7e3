"""Chains on the GPU by way of a server and the ordinary client. Fused operations give the bits that they give one by one
(ARRAYD_FUSE=0), and nobody waits for the compiler."""
import os
import subprocess
import sys
import time

import arrayd as ad
import numpy as np
import pytest
from chain_table import DTYPES, KINDS, UFUNCS, fusable
from patience import PATIENCE


def counted():
    ad.sync()
    stat = ad.stat()
    return np.array([stat["fused_chains"], stat["unfused_chains"], stat["fused_ops"]])


def busy():
    """Something that keeps the server's engine occupied while operations queue behind it."""
    a = ad.ones((3000, 3000))
    ad.sync()
    return a @ a


def fused(body):
    """Return what body returns, as NumPy's arrays, in a run in which chains were fused and none was not; and how many
    operations were. None: it never was so."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        before, work = counted(), busy()
        results = body()
        chains, apart, ops = counted() - before
        got = [r.get() for r in results]
        del work
        if chains and not apart:
            return got, ops
        time.sleep(0.02)
    return None, 0


def same(a, b):
    """Bit for bit; any NaN is as good as another."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind == "c":
        return same(a.real, b.real) and same(a.imag, b.imag)
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    bits = f"u{a.itemsize}"
    equal = a.view(bits) == b.view(bits)
    return bool((equal | ((a != a) & (b != b)) if a.dtype.kind == "f" else equal).all())


def inputs(rng, dtype, shape):
    kind = KINDS[DTYPES.index(dtype)]
    if kind in "bf" or kind == "c":
        v = rng.normal(0, 3, shape)
        v = v + 1j * rng.normal(0, 3, shape) if kind == "c" else v > 0 if kind == "b" else v
        return v.astype(np.float32 if dtype == "bfloat16" else dtype)
    return rng.integers(0, 100, shape).astype(dtype)


# ---- every row ----

@pytest.mark.parametrize("loop", [d for d in DTYPES if d != "bfloat16"])
def test_every_row(servers, loop):
    """Each row stands between two others, so that it is in the middle of a chain. A few rows are tested at a time."""
    rng, shape, code = np.random.default_rng(5), (64, 300), DTYPES.index(loop)
    x, y, z = inputs(rng, loop, shape), inputs(rng, loop, (300,)), inputs(rng, loop, (64, 1))
    names = [name for name, row in UFUNCS.items() if fusable(row, code) and hasattr(ad, name)]

    def body(some):
        a, b, c = ad.asarray(x), ad.asarray(y), ad.asarray(z)

        def run():
            results = []
            for name in some:
                row = UFUNCS[name]
                shift = ad.asarray(2) if name == "ldexp" else b
                r = getattr(ad, name)(*[ad.maximum(a, b), shift, c][:row.nin])
                results += [ad.where(a == b, r, r) for r in (r if row.nout > 1 else (r,))]
            return results
        return run

    fused_ops = 0
    for first in range(0, len(names), 4):
        some = names[first:first + 4]
        ad.connect(servers[0])
        got, ops = fused(body(some))
        assert got is not None, f"{some} of {loop} never ran as chains only"
        fused_ops += ops
        ad.connect(servers[1])
        alone = [r.get() for r in body(some)()]
        for k, (a, b) in enumerate(zip(got, alone)):
            assert same(a, b), f"{some} of {loop}: result {k} differs"
    assert fused_ops > len(names)


# ---- programs ----

def expressions(x, y, row, column):
    """Chains of several layouts."""
    yield (x * x + y * y) ** 0.5 + ad.sin(x) * ad.exp(-y)
    yield (x - row) / (1 + abs(column)) * 2
    yield ad.where(x > y, x, -y).astype("float16") + 1
    yield x.T * 2 + y.T * 3
    yield x[::2, ::3] * y[::2, ::3] - 1
    yield x[1:, :-1] + y[:-1, 1:] * 0.5
    yield ((x - column) * (x - column)).sum(axis=1)
    yield (abs(x) + abs(y)).max()
    yield ((x > 0) & (y > 0)).sum()
    yield ((x * y + row) > 100).any(axis=0)
    yield ad.cumsum(x * 2 - row, axis=1)
    yield ad.cumprod((x + y) * 0.5, axis=1)
    yield ad.nancumsum(x[:, ::2] + 1, axis=1)
    yield ad.cumsum(x[:, None, :4] * y[:, :4, None], axis=1)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32"])
@pytest.mark.parametrize("shape", [(700, 900), (64, 64), (3, 5)])
def test_programs(servers, dtype, shape):
    rng = np.random.default_rng(9)
    hosts = [inputs(rng, dtype, s) for s in (shape, shape, shape[1:], (shape[0], 1))]
    found = []
    for url in servers:
        ad.connect(url)
        arrays = [ad.asarray(h) for h in hosts]

        def run(arrays=arrays):
            return list(expressions(*arrays))
        got = fused(run)[0] if url == servers[0] else [r.get() for r in run()]
        assert got is not None
        found.append(got)
    for k, (a, b) in enumerate(zip(*found)):
        assert same(a, b), f"expression {k}"
    with np.errstate(all="ignore"):
        exact = (hosts[0].astype("float64") - hosts[2]) / (1 + np.abs(hosts[3].astype("float64"))) * 2
    assert np.allclose(found[0][1].astype("float64"), exact, rtol=2e-2 if dtype == "float16" else 1e-5, atol=1e-2)


def test_in_place(servers):
    host, found = np.random.default_rng(3).normal(size=100000).astype("float32"), []
    for url in servers:
        ad.connect(url)

        def run():
            x = ad.asarray(host)
            view = x[1::2]
            x *= 2
            view += 1
            x -= ad.sin(x)
            return [x, view * 1]
        found.append([r.get() for r in run()] if url == servers[1] else fused(run)[0])
    assert found[0] is not None and all(same(a, b) for a, b in zip(*found))


# ---- scans ----

SCANNED = ["float32", "float64", "float16", "int8", "int32", "uint64", "complex64"]


def exact(rng, dtype, n):
    """Numbers whose sums and products round in no order: that of a long lane depends on its blocks' pace."""
    signs = np.where(rng.random(n) < 0.5, -1, 1)
    if dtype == "uint64" or dtype.startswith("int"):
        return rng.integers(0, 100, n).astype(dtype)
    return (signs * np.resize([1, 1, 2, 1, 0.5, 1], n)).astype(dtype)


@pytest.mark.parametrize("dtype", SCANNED)
@pytest.mark.parametrize("shape", [(1 << 20,), (1000003,), (3, 100000), (5, 40001), (4097, 8), (900, 700), (31, 33)])
def test_scans(servers, dtype, shape):
    """Scans run in tiles and by rows, of whole vectors and not. Their input is computed where it is read, or by way of
    memory."""
    rng, found = np.random.default_rng(4), []
    x, ones = exact(rng, dtype, int(np.prod(shape))).reshape(shape), np.ones(shape[-1:], dtype)
    if x.dtype.kind in "fc":
        x.flat[7::5000] = np.nan
    for url in servers:
        ad.connect(url)
        a, b = ad.asarray(x), ad.asarray(ones)

        def run(a=a, b=b):
            wide = "complex128" if a.dtype.kind == "c" else "float64"
            return [*[getattr(ad, scan)(a * b, axis=-1) for scan in ("cumprod", "nancumsum", "nancumprod")],
                    ad.cumsum(abs(a) * b, axis=-1), ad.cumsum(a * b), ad.cumsum(a + b, axis=0),
                    ad.cumsum(b * a[..., ::-1], axis=-1, dtype=wide)]
        got = fused(run)[0] if url == servers[0] else [r.get() for r in run()]
        assert got is not None
        found.append(got)
    for k, (one, other) in enumerate(zip(*found, strict=True)):
        assert same(one, other), k
    if x.dtype.kind not in "fc":
        assert (found[0][3] == np.cumsum(abs(x), axis=-1)).all()


def test_a_scan_writes_its_result_only(servers):
    ad.connect(servers[0])
    x, y = (ad.asarray(np.ones(1 << 20, "float32")) for _ in range(2))
    until = time.monotonic() + PATIENCE
    gained = {}
    while gained.get("fused_ops") != 5 and time.monotonic() < until:
        before, work = ad.stat(), busy()
        result = ad.cumsum(ad.sqrt(x * x + y * y))
        ad.sync()
        gained = {name: n - before[name] for name, n in ad.stat().items()}
        del work
    assert gained["fused_ops"] == 5 and gained["temporaries"] == 4
    assert np.allclose(result.get(), np.sqrt(2) * np.arange(1, (1 << 20) + 1), rtol=1e-4)


# ---- nobody waits ----

STORM = """
import sys, threading
import arrayd as ad
x, made, stop = ad.ones(1000, dtype="float32"), 0, threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), stop.set()), daemon=True).start()
while not stop.is_set():
    y, number = x, 7919 * made + 1
    for digit in range(8):  # a chain that no other number below 65536 gives
        y = (y + 1, y * 0.5, y - 2, abs(y))[number >> 2 * digit & 3]
    made += 1
    ad.sync()
    if made == 10:
        print("begun", flush=True)
print(made, ad.stat()["fused_chains"], flush=True)
"""


def test_storm(servers, capsys):
    """1000 operations, each waited for, while hundreds of chains that nobody has seen come from another session.

    One that waited for a compilation would take 300 ms. A busy machine delays a few by a time slice or two."""
    ad.connect(servers[0])
    x, y, times = ad.ones(1 << 16, dtype="float32"), None, []
    for _ in range(50):
        y = (x + 1) * 2
        ad.sync()
    storm = subprocess.Popen([sys.executable, "-c", STORM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                             env={**os.environ, "ARRAYD_URL": servers[0], "PYTHONPATH": os.pathsep.join(sys.path)})
    assert storm.stdout.readline() == "begun\n"
    for _ in range(1000):
        begin = time.perf_counter()
        y = (x + 1) * 2
        ad.sync()
        times.append(time.perf_counter() - begin)
    made, chains = map(int, storm.communicate(timeout=PATIENCE)[0].split())
    assert (y.get() == 4).all()
    times.sort()
    with capsys.disabled():
        print(f"\n  {made} new chains, {chains} of them fused; of 1000 operations half took less than {times[500] * 1e6:.0f} "
              f"us, 99 of 100 {times[990] * 1e6:.0f} us, the slowest {times[-1] * 1e3:.2f} ms")
    assert made > 100 and times[-1] < 0.2


def test_counters(servers):
    ad.connect(servers[0])
    x = ad.arange(100000, dtype="float32")
    got, ops = fused(lambda: [((x + 1) * 2 - x) * 0.25])
    assert got is not None and ops >= 4
    assert (got[0] == ((np.arange(100000, dtype="float32") + 1) * 2 - np.arange(100000, dtype="float32")) * 0.25).all()
    ad.connect(servers[1])
    before = counted()
    x = ad.arange(100000, dtype="float32")
    ((x + 1) * 2 - x).get()
    assert not (counted() - before).any()


def test_a_second_start_has_the_kernels_of_the_first(own_server, tmp_path):
    """A chain that one server has compiled is fused by the next one, which reads it from disk and compiles nothing."""
    def chain():
        x = ad.arange(100000, dtype="float32")
        return [((x + 3) * 2 - x) * 0.125 + ad.sqrt(x)]

    found = []
    for _ in range(2):
        process, url = own_server(f"--kernels-cache={tmp_path}/kernels")
        ad.connect(url)
        got, _ = fused(chain)
        assert got is not None
        found.append((got[0], ad.stat()))
        process.terminate()
        process.wait(PATIENCE)
    ad.connect(os.environ["ARRAYD_URL"])
    (one, first), (other, second) = found
    assert same(one, other)
    assert first["compiled"] >= 1 and second["compiled"] == 0 and second["compile_hits_disk"] >= 1
