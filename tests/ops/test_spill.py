"""Arrays take several times the memory of a device, and the rest lies in host memory. Results are NumPy's.

Each test here runs on a server with 16 MiB, at once and with operations that complete later than they are asked to.
ARRAYD_SPILL_EVERY=1 makes the server move the coldest array, however small, at each request for memory.
"""
import contextlib
import gc
import os
import pickle
import tempfile
import warnings

import numpy as np
import pytest

import arrayd as ad
from conftest import start_server
from chains import same_bits
from patience import PATIENCE
from programs import Program

MIB = 1 << 20
MEMORY, HOST = 16 * MIB, 160 * MIB


class Place:
    """A server of its own, and the connection that tests get to it."""

    def __init__(self, *options, late=False, every=0):
        self.before, self.folder = os.environ["ARRAYD_URL"], tempfile.TemporaryDirectory()
        more = {"ARRAYD_CPU_LATE": "1"} if late else {}
        more.update({"ARRAYD_SPILL_EVERY": str(every)} if every else {})
        self.usual = {name: os.environ.get(name) for name in more}
        os.environ.update(more)
        try:
            self.process, self.url = start_server(self.folder.name, *options)
        finally:
            for name, value in self.usual.items():
                os.environ.pop(name)
                os.environ.update({name: value} if value else {})
        ad.connect(self.url)

    def close(self):
        try:
            ad.connect(self.before)
            self.process.terminate()
            assert self.process.wait(timeout=PATIENCE) == 0
        finally:
            self.process.kill()
            self.process.wait()
            self.folder.cleanup()


@pytest.fixture(scope="module", params=["at once", "late"])
def server(request):
    place = Place("--memory=16M", "--slab=4M", f"--host-memory={HOST}", late=request.param == "late")
    yield place
    place.close()


@pytest.fixture
def small(server):
    """Nothing of a test is left behind it: not in host memory, and not on the device."""
    ad.connect(server.url)
    yield server
    gc.collect()
    ad.connect(server.url)
    for _ in range(20_000):  # what the test's session had goes when that is over
        if ad.stat()["sessions"] == 1:
            break
    counters = ad.stat()
    assert counters["host_bytes"] == 0 and counters["used_bytes"] <= MIB, counters


@pytest.fixture
def place():
    """A function that starts one more server."""
    with contextlib.ExitStack() as places:
        def start(*options, **more):
            return places.enter_context(contextlib.closing(Place(*options, **more)))
        yield start
        gc.collect()


def moved():
    counters = ad.stat()
    return counters["moved_out"], counters["moved_in"]


def arrays(n, *shape, dtype="float64", seed=1):
    """Make n random arrays: NumPy's, and the same on the server."""
    random = np.random.default_rng(seed)
    host = [(random.random(shape) * 100).astype(dtype) for _ in range(n)]
    return host, [ad.array(a) for a in host]


def check(host, device):
    for i, (a, x) in enumerate(zip(host, device, strict=True)):
        np.testing.assert_array_equal(x.get(), a, err_msg=str(i))


# ---- work on four times the memory ----

@pytest.mark.parametrize("n", [1024, 64, 16])
def test_elementwise_and_in_place(small, n):
    """Cut from slabs, and with slabs of their own."""
    host, device = arrays(n, 4 * MEMORY // n // 8)
    out, _ = moved()
    for sweep in range(2):
        for i in range(n):
            device[i] *= 2
            device[i] += device[i - 1]
            host[i] *= 2
            host[i] += host[i - 1]
    counters = ad.stat()
    assert counters["used_bytes"] <= counters["slab_bytes"] <= MEMORY
    assert counters["buffer_bytes"] >= 4 * MEMORY > counters["host_bytes"] >= 3 * MEMORY - MIB
    check(host, device)
    assert moved()[0] - out >= 6 * MEMORY and counters["ops_failed"] == 0


def test_chains(small):
    """Operations that are executed together, whose arrays do not all fit at once."""
    host, device = arrays(16, MIB // 4)
    for _ in range(3):
        host = [(a * 0.5 + b) * 2 - a for a, b in zip(host, host[1:] + host[:1])]
        device = [(x * 0.5 + y) * 2 - x for x, y in zip(device, device[1:] + device[:1])]
    check(host, device)
    total = device[0]
    for x in device[1:]:
        total = total + x
    np.testing.assert_array_equal(total.get(), sum(host[1:], host[0]))


def test_matmul(small):
    host, device = arrays(56, 400, 400)
    a, x = np.eye(400), ad.eye(400)
    for b, y in zip(host, device):
        a, x = a @ b / 1e4, x @ y / 1e4
    np.testing.assert_allclose(x.get(), a, rtol=1e-10)
    for i, product in enumerate([x @ y for x, y in zip(device[::5], device[1::5])]):
        np.testing.assert_allclose(product.get(), host[5 * i] @ host[5 * i + 1], rtol=1e-10)


def test_indexing_and_views(small):
    host, device = arrays(48, 400, 400)
    random = np.random.default_rng(5)
    for i in range(96):
        a, x = host[i % 48], device[i % 48]
        b, y = host[(i + 7) % 48], device[(i + 7) % 48]
        rows = random.integers(0, 400, 100)
        a[::2, 1:], x[::2, 1:] = b.T[::2, 1:], y.T[::2, 1:]
        a[rows, 0], x[rows, 0] = 5, 5
        np.testing.assert_array_equal(x[rows][:, ::-3].get(), a[rows][:, ::-3])
        np.testing.assert_array_equal(ad.sort(x[i % 400]).get(), np.sort(a[i % 400]))
        np.testing.assert_array_equal(x[a[0] > 50, 0].get() if i % 2 else y[3:9].get(), a[a[0] > 50, 0] if i % 2 else b[3:9])
        a[1:], x[1:] = a[:-1].copy(), x[:-1]  # onto itself
    check(host, device)
    for i in range(48):
        np.testing.assert_allclose(device[i].sum(axis=0).get(), host[i].sum(axis=0), rtol=1e-12)


def test_uploads_and_downloads(small):
    """Arrays are moved as a whole, in part, and as views that are none in one piece."""
    host, device = arrays(20, MIB // 2, dtype="int64")
    for i in range(40):
        a, x = host[i % 20], device[i % 20]
        part = np.arange(i, i + 1000)
        a[i:i + 1000] = part
        x[i:i + 1000] = ad.array(part)
        np.testing.assert_array_equal(x[::3].get(), a[::3])
        if i % 5 == 0:
            a[:] = i - np.arange(a.size)
            x.set(a)
    check(host, device)


def test_streams(small):
    """Each stream has memory of its own, which goes from one to the other by way of host memory."""
    streams = [ad.cuda.Stream(non_blocking=True) for _ in range(3)]
    host, device = arrays(40, MIB // 5)
    random = np.random.default_rng(3)
    for _ in range(200):
        i, j, k = random.integers(0, 40, 3)
        with streams[k % 3]:
            device[i] = device[i] * 0.5 + device[j]
            host[i] = host[i] * 0.5 + host[j]
            device[k] += 1
            host[k] += 1
    ad.sync()
    check(host, device)


def test_streams_wait_for_what_others_move(place):
    """The copies out and in are behind much work of their streams when others want the array."""
    place("--host-memory=64M", late=True, every=1)
    streams = [ad.cuda.Stream(non_blocking=True) for _ in range(3)]
    a = np.random.default_rng(1).random((300, 300)) / 150
    b, x = a, ad.array(a)
    for _ in range(15):
        b = b @ a

    def product():
        y = x
        for _ in range(15):
            y = y @ x
        return y
    ad.sync()
    for _ in range(3):
        with streams[0]:
            y = product()
            kept = [ad.zeros(4) for _ in range(6)]  # move it out
        with streams[1]:
            work = product()
            z = y + 1  # what was moved out comes in again, behind that
        with streams[2]:
            w = y + 2
        np.testing.assert_allclose(w.get(), b + 2, rtol=1e-9)
        np.testing.assert_allclose(z.get(), b + 1, rtol=1e-9)
    assert ad.stat()["ops_failed"] == 0 and len(kept) == 6 and work.shape == (300, 300)


def test_what_is_moved_is_read_where_it_is(small):
    host, device = arrays(20, MIB // 4)
    _, before = moved()
    for a, x in zip(host, device):
        np.testing.assert_array_equal(x.get(), a)
        np.testing.assert_array_equal(x[1000:5000].get(), a[1000:5000])
        assert float(x[77]) == a[77]
    assert moved()[1] == before
    assert ad.stat()["host_bytes"] > 20 * MIB


def test_two_sessions(small):
    """Each session uses twice the memory. Small arrays that the first leaves in its slabs do not keep the second
    out."""
    first, one = arrays(64, MIB // 16, seed=1)
    scalars = [x[:3].sum() for x in one]
    ad.connect(small.url)
    second, two = arrays(64, MIB // 16, seed=2)
    large = ad.full(MIB, 1.5)  # half of the memory in one piece
    for i in range(64):
        one[i] += i
        first[i] += i
        two[i - 1] *= two[i]
        second[i - 1] *= second[i]
    assert ad.stat()["sessions"] >= 2
    check(second, two)
    check(first, one)
    assert float(large.sum()) == 1.5 * MIB
    np.testing.assert_allclose([float(s) for s in scalars], [(a[:3] - i).sum() for i, a in enumerate(first)])


def test_small_arrays_go_last(small):
    """A device that is full of them is not full for ever."""
    host, device = arrays(2000, MIB // 128 // 8)
    ad.connect(small.url)
    large = [ad.full(MIB // 4, float(i)) for i in range(12)]
    for i in range(12):
        large[i] += 1
    assert ad.stat()["host_bytes"] >= 20 * MIB
    for i in range(0, 2000, 50):
        np.testing.assert_array_equal((device[i] * 2).get(), host[i] * 2)
    assert [float(x[-1]) for x in large] == [i + 1.0 for i in range(12)]
    check(host, device)


def test_the_end_of_a_session(small):
    """Arrays that the session had moved go with it."""
    _, device = arrays(20, MIB // 4)
    assert ad.stat()["host_bytes"] >= 20 * 2 * MIB - MEMORY
    del device[::2]
    ad.sync()
    assert ad.stat()["host_bytes"] <= 10 * 2 * MIB
    ad.connect(small.url)
    del device, _
    gc.collect()
    while ad.stat()["sessions"] > 1:  # the last array was what kept its session
        ad.sync()
    assert ad.stat()["host_bytes"] == 0


# ---- what else is known of an array ----

def test_errors_stay(small):
    """Errors stay, also those that show only when the operation has been executed."""
    bad = ad.linalg.inv(ad.zeros((300, 300)))
    host, device = arrays(20, MIB // 4)
    with pytest.raises(np.linalg.LinAlgError):
        bad.get()
    bad = bad + 1
    for x in device:
        x += 1
    with pytest.raises(np.linalg.LinAlgError):
        bad.get()
    x = device[0]
    with pytest.raises(IndexError):
        ad.take(x, ad.array([x.size]), mode="raise").get()
    check([a + 1 for a in host], device)


def test_shared_arrays_stay_and_others_go(small):
    """An array that was moved is brought back to be shared; then it has one place that others know."""
    host, device = arrays(20, MIB // 4)
    handle = ad.share(device[0], uses=1)
    ad.publish("spill/x", device[1])
    device[2] += 1
    ad.connect(small.url)
    got, named = handle.attach(), ad.attach("spill/x")
    for x in device:
        x += 1
    np.testing.assert_array_equal(got.get(), host[0])
    np.testing.assert_array_equal(named.get(), host[1])
    with pytest.raises(ValueError):
        named += 1
        named.get()
    check([a + 1 + (i == 2) for i, a in enumerate(host)], device)
    ad.unpublish("spill/x")


def test_what_others_may_attach_does_not_move(small):
    host, device = arrays(7, MIB // 4)
    handles = [ad.share(x, linger=0) for x in device]
    more = [ad.ones(MIB // 2) for _ in range(2)]
    with pytest.raises(MemoryError):
        more[1].get()
    assert ad.stat()["host_bytes"] == 0 and len(handles) == 7
    check(host, device)


def test_a_fork(small):
    """The child has all: what both have moves to host memory where there is no room."""
    host, device = arrays(20, MIB // 8)
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        good = 0
        for a, x in zip(host, device):
            try:
                good += bool(np.array_equal(x.get(), a))
            except MemoryError:
                pass
        os.write(write, str(good).encode())
        os._exit(0)
    os.close(write)
    told = os.read(read, 100)
    os.close(read)
    assert os.waitpid(pid, 0)[1] == 0 and int(told) == 20
    check(host, device)


def test_a_pickle(small):
    host, device = arrays(20, MIB // 4)
    check(host, [pickle.loads(pickle.dumps(x)) for x in device])


def test_the_pool_counts_what_is_on_the_device(small):
    _, device = arrays(20, MIB // 4)
    pool = ad.get_default_memory_pool()
    assert MEMORY - 2 * MIB <= pool.used_bytes() <= pool.total_bytes() <= MEMORY
    before = pool.used_bytes()
    pool.free_all_blocks()
    assert pool.used_bytes() == before
    pool.set_limit(size=41 * MIB)
    device[0] += 1
    device.append(ad.ones(MIB // 16))
    with pytest.raises(MemoryError, match="limit"):
        ad.ones(MIB // 4).get()
    pool.set_limit(size=0)
    check([_[0] + 1, *_[1:], np.ones(MIB // 16)], device)


# ---- limits ----

def test_what_one_operation_needs_must_fit(small):
    n = 7 * MIB // 8
    x, y = ad.ones(n), ad.full(n, 2.0)
    with pytest.raises(MemoryError, match="do not fit in 16 MiB"):
        (x + y).get()
    x += y
    assert float(x.sum()) == 3 * n and float(y.sum()) == 2 * n
    with pytest.raises(MemoryError):
        ad.ones(3 * MIB).get()


def test_the_host_limit(place):
    place("--memory=16M", "--slab=4M", "--host-memory=16M")
    device = []
    with pytest.raises(MemoryError, match="are in host memory, of 16 MiB at most"):
        for i in range(20):
            device.append(ad.full(MIB // 4, float(i)))
            ad.sync()
            device[-1][:1].get()
    assert 10 <= len(device) <= 17
    kept = device[:-1]
    del device
    check([np.full(MIB // 4, float(i)) for i in range(len(kept))], kept)
    for x in kept:  # each comes in for another one
        x += 1
    check([np.full(MIB // 4, i + 1.0) for i in range(len(kept))], kept)
    del kept[::2]
    kept.append(ad.zeros(MIB // 4))
    assert float(kept[-1].sum()) == 0 and float(kept[0][0]) == 2


def test_none_is_moved_unless_asked(place):
    """On the CPU arrays lie in host memory as it is."""
    place("--memory=16M", "--slab=4M", *(["--host-memory=0"] if ad.session_info()["backend"] == "cuda" else []))
    device = [ad.ones(MIB // 4) for _ in range(6)]
    with pytest.raises(MemoryError):
        for _ in range(4):
            device.append(ad.ones(MIB // 4))
            device[-1].get()
    assert moved() == (0, 0)


def test_a_quota_counts_what_is_moved(place, tmp_path):
    principals = tmp_path / "principals"
    principals.write_text("uid:* memory=36M\n")
    principals.chmod(0o600)
    place("--memory=16M", "--slab=4M", "--host-memory=64M", f"--principals={principals}")
    host, device = arrays(11, MIB // 4)
    assert ad.stat()["host_bytes"] >= 6 * MIB
    with pytest.raises(MemoryError, match="may have"):
        for _ in range(8):
            device.append(ad.ones(MIB // 4))
            device[-1].get()
    check(host, device[:11])  # what is moved has room to come back


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("every", [1, 3])
def test_random_programs(place, every, late):
    place("--host-memory=64M", late=late, every=every)
    out, _ = moved()
    for seed in range(100, 120):
        program = Program(seed, exact=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results, read = program.run()
        assert results.keys() == program.arrays.keys()
        for number, a in results.items():
            assert same_bits(a, np.asarray(program.arrays[number])), (seed, number)
    assert moved()[0] - out > 100_000


def test_for_long(place):
    """The worker's memory of arrays that were moved does not pile up."""
    place("--host-memory=64M", late=True, every=1)
    x, y, results = ad.ones(16), ad.ones(17), [None] * 100

    def load(n):
        for i in range(n):
            results[i % 100] = (x + x) * x if i % 5 else y + y
        ad.sync()
        with open(f"/proc/{ad.stat()['worker_pid']}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")
    # A GPU's worker also loads libraries meanwhile, once.
    sizes = [load(n) for n in (20_000, 60_000, 60_000)]
    assert min(b - a for a, b in zip(sizes, sizes[1:])) < 2.5 * MIB, sizes
