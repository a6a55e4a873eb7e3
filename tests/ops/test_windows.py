"""Large arrays between this process and the server: through memory that both share, or else by the socket."""
import gc
import os
import subprocess
import sys

import numpy as np
import pytest

import arrayd as ad
from arrayd import _core
from conftest import port_of
from oracle import in_threads

LEAST = 64 << 10  # bytes from which shared memory is used
SHARED = ad.session_info()["url"].startswith(("unix:", "embedded:"))
shared_only = pytest.mark.skipif(not SHARED, reason="a remote server")
DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
          "float64", "complex64", "complex128"]


def sample(dtype, shape, seed=0):
    raw = np.random.default_rng(seed).integers(0, 100, shape)
    return (raw % 2 == 1) if dtype == "bool" else raw.astype(dtype)


def is_shared(host):
    base = host
    while isinstance(base, (np.ndarray, ad.cuda.PinnedMemoryPointer)):
        base = base.base if isinstance(base, np.ndarray) else base.mem._bytes
    return isinstance(base, _core.HostMemory)


def run(code, **environment):
    """Python code in a process of its own; what it prints."""
    result = subprocess.run([sys.executable, "-c", "import numpy as np, arrayd as ad, os, sys\n" + code],
                            capture_output=True, text=True, timeout=120,
                            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment})
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


@pytest.mark.parametrize("dtype", DTYPES)
def test_round_trip(dtype):
    host = sample(dtype, (97, 1031))
    for h in (host, host.T, host[::-2, 5:], np.asfortranarray(host), host[:, :1], host[:0]):
        a = ad.asarray(h)
        got = a.get()
        assert got.dtype == h.dtype and got.shape == h.shape and got.flags.writeable and got.flags.aligned
        np.testing.assert_array_equal(got, h)
        np.testing.assert_array_equal(ad.asnumpy(a.T, order="F"), h.T)
        np.testing.assert_array_equal(a[::2].get(), h[::2])
        out = np.empty_like(h)
        assert a.get(out=out) is out
        np.testing.assert_array_equal(out, h)
        assert ad.asnumpy(a, out=out[...]) is not None


def test_bfloat16():
    host = sample("float32", (300, 300)).astype(ad.bfloat16)
    a = ad.asarray(host)
    got = a.get()
    assert got.dtype == host.dtype and (got == host).all()


@pytest.mark.parametrize("size", [LEAST - 1, LEAST, LEAST + 1, (256 << 10) + 1, (1 << 20) - 3, (9 << 20) + 17, 70 << 20])
def test_sizes(size):
    """Around the limits between one way and another, and of the parts that large arrays travel in."""
    host = np.random.default_rng(size).integers(0, 255, size, dtype=np.uint8)
    a = ad.asarray(host)
    got = a.get()
    assert is_shared(got) == (SHARED and size >= LEAST)
    assert np.array_equal(got, host)
    out = np.zeros(size, np.uint8)
    a.get(out=out)
    assert np.array_equal(out, host)
    a.set(got[::-1].copy())
    assert np.array_equal(a[:size // 2].get(), host[::-1][:size // 2])


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float16", "float32", "complex64"])
def test_casts_on_the_way_up(dtype):
    """Arrays of another type, byte order or layout are packed in shared memory, with NumPy's casts."""
    for source in ("int32", ">f8", ">i2", "float32", "bool"):
        host = (np.random.default_rng(2).integers(0, 100, (150, 1501)) % (2 if source == "bool" else 100)).astype(source)
        for h in (host, host.T, host[:, ::-3]):
            np.testing.assert_array_equal(ad.asarray(h, dtype=dtype).get(), h.astype(dtype))
            a = ad.zeros(h.shape, dtype)
            a[...] = ad.asarray(h)
            np.testing.assert_array_equal(a.get(), h.astype(dtype))
            if np.can_cast(h.dtype, dtype, "same_kind"):
                a.set(h + h.dtype.type(1))
                np.testing.assert_array_equal(a.get(), (h + h.dtype.type(1)).astype(dtype))
    with pytest.raises(TypeError):
        ad.asarray(np.full((300, 300), "x"))


@pytest.mark.parametrize("order", ["C", "F"])
def test_pinned(order):
    for make in (ad.empty_pinned, ad.zeros_pinned):
        host = make((300, 200), np.float32, order)
        assert host.shape == (300, 200) and host.dtype == np.float32 and is_shared(host) == SHARED
        assert host.flags.c_contiguous == (order == "C") and host.flags.f_contiguous == (order == "F")
        assert make is ad.empty_pinned or not host.any()
        host[...] = sample("float32", host.shape)
        np.testing.assert_array_equal(ad.asarray(host).get(), sample("float32", host.shape))
    for like in (host, ad.asarray(host)):
        for make in (ad.empty_like_pinned, ad.zeros_like_pinned):
            again = make(like)
            assert again.shape == host.shape and again.dtype == host.dtype and is_shared(again) == SHARED
            assert make(like, np.int8, "C", None, (5,)).shape == (5,)
    assert ad.empty_like_pinned(host).flags.f_contiguous == host.flags.f_contiguous
    for shape in ((), 0, (0, 5), 7):
        assert np.shape(ad.zeros_pinned(shape)) == np.shape(np.zeros(shape))
    with pytest.raises(ValueError):
        ad.empty_pinned(-1)
    with pytest.raises(ValueError):
        ad.empty_pinned(3, order="Q")
    assert ad.empty_pinned(3, "U5").dtype == "U5"  # memory like any other


def test_what_was_uploaded_may_change():
    """The elements are those of the call, whatever happens to the array afterwards."""
    for host in (np.empty(1 << 18), ad.empty_pinned(1 << 18), ad.ones(1 << 18).get()):
        arrays = []
        for i in range(20):
            host[:] = i
            arrays.append(ad.asarray(host) + 0)
            arrays.append(ad.asarray(host[1000:-1000]))
        host[:] = -1
        for i, a in enumerate(arrays):
            assert (a.get() == i // 2).all()


@shared_only
def test_memory_comes_back():
    a = ad.ones(1 << 20)
    first = a.get()
    address = first.ctypes.data
    second = a.get()
    view = first[100:200].reshape(10, 10)
    del first
    third = a.get()
    assert len({address, second.ctypes.data, third.ctypes.data}) == 3  # the view keeps its memory
    view += 1
    assert view.sum() == 200 and (third == 1).all()
    del view
    gc.collect()
    _, before = _core.host_count()
    for _ in range(50):
        assert (a.get() == 1).all()
    assert _core.host_count()[1] == before
    pool = ad.get_default_pinned_memory_pool()
    assert pool.n_free_blocks() > 0
    ad.sync()
    pool.free_all_blocks()
    assert _core.host_count()[1] < before and (second == 1).all() and (third == 1).all()
    assert (a.get() == 1).all()


def test_downloads_are_the_program_s():
    a = ad.zeros(100_000)
    hosts = [a.get() for _ in range(5)]
    for i, host in enumerate(hosts):
        host += i
    a += 7
    assert (a.get() == 7).all()
    for i, host in enumerate(hosts):
        assert (host == i).all()


@pytest.mark.parametrize("how", ["close", "kill"])
def test_arrays_outlive_the_connection(own_server, how):
    process, url = own_server()
    print(run(f"""
import contextlib, signal
ad.connect("{url}")
a = ad.arange(1000000)
got, pinned = a.get(), ad.zeros_pinned(100000)
worker = ad.stat()["worker_pid"]
if "{how}" == "kill":
    os.kill({process.pid}, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):  # it ends by itself where it has noticed that arrayd has gone
        os.kill(worker, signal.SIGKILL)
    try:
        while True: a.get()
    except ConnectionError: pass
    try: ad.asarray(pinned)
    except ConnectionError: pass
else:
    del a
    ad._core.close()
assert (got == np.arange(1000000)).all()
got += 1
pinned[:] = got[:100000]
assert got[0] == 1 and pinned[99999] == 100000
"""))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_fork():
    """After a fork no process sees what the other one does to an array."""
    assert run("""
a = ad.arange(500000)
got, pinned = a.get(), ad.zeros_pinned(200000, np.int64)
pinned[:] = 5
r, w = os.pipe()
child = os.fork()
if child == 0:
    os.read(r, 1)
    wrong = (got != np.arange(500000)).any() or (pinned != 5).any()
    got[:], pinned[:] = -1, -1
    again = ad.asarray(got).get()
    os._exit(bool(wrong or (again != -1).any()))
got[:], pinned[:] = 7, 8
for _ in range(5):
    a.get()[:] = 9
os.write(w, b"x")
_, status = os.waitpid(child, 0)
assert (got == 7).all() and (pinned == 8).all() and (a.get() == np.arange(500000)).all()
print(status)
""") == "0"


def test_threads():
    def body(number):
        rng = np.random.default_rng(number)
        for i in range(15):
            host = rng.random(int(rng.integers(5000, 400_000)))
            if i % 3 == 0:
                pinned = ad.empty_pinned(host.shape)
                pinned[:] = host
                a = ad.asarray(pinned)
            else:
                a = ad.asarray(host)
            np.testing.assert_array_equal(a.get(), host)
            np.testing.assert_array_equal((a * 2).get(out=np.empty_like(host)), host * 2)

    in_threads(6, body)


def test_interrupts():
    """Ctrl-C at any time leaves the session whole, and nobody's memory is written late."""
    assert run("""
import signal, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job is begun without it
a = ad.asarray(np.arange(3 << 20))
main, stop, hits = threading.get_ident(), threading.Event(), 0
def shoot():
    while not stop.wait(0.03):
        signal.pthread_kill(main, signal.SIGINT)
thread = threading.Thread(target=shoot)
kept = []
thread.start()
end = time.monotonic() + 3
while time.monotonic() < end:
    try:
        got = a.get()
        assert (got[::4096] == np.arange(0, 3 << 20, 4096)).all()
        kept = kept[-2:] + [got]
        b = ad.asarray(got)
        b.get(out=np.empty_like(got))
    except KeyboardInterrupt:
        hits += 1
while thread.is_alive():
    try:
        stop.set()
        thread.join()
    except KeyboardInterrupt:
        pass
while True:
    try:
        for got in kept: assert (got == np.arange(3 << 20)).all()
        assert (a.get() == np.arange(3 << 20)).all()
        ad.sync()
        break
    except KeyboardInterrupt:
        pass
print("whole", hits > 0)
""") == "whole True"


@pytest.mark.parametrize("limit", ["0", "1M", "8M"])
def test_a_server_that_shares_little(own_server, limit):
    _, url = own_server("--windows", limit)
    assert run(f"""
ad.connect("{url}")
hosts = []
for i in range(8):
    host = np.random.default_rng(i).random(500_000)
    a = ad.asarray(host)
    hosts.append(a.get())
    assert (hosts[-1] == host).all() and (a.get(out=np.empty_like(host)) == host).all()
    pinned = ad.zeros_pinned(100)
    assert pinned.sum() == 0 and (ad.asarray(pinned).get() == 0).all()
ad.sync()
for i, got in enumerate(hosts):
    assert (got == np.random.default_rng(i).random(500_000)).all()
print("right")
""") == "right"


def test_a_remote_server(own_server, tmp_path):
    own_server("--tcp=127.0.0.1:0", "--tcp-open=yes")
    assert run("""
host = np.random.default_rng(1).random(1_000_000)
a = ad.asarray(host)
assert (a.get() == host).all() and ad._core.host_count() == (0, 0)
assert ad.empty_pinned(5).base.mem._bytes.base is None
print("right")
""", ARRAYD_URL=f"tcp:127.0.0.1:{port_of(tmp_path)}") == "right"


def test_the_client_may_do_without():
    assert run("""
host = np.random.default_rng(1).random(1_000_000)
assert (ad.asarray(host).get() == host).all() and ad._core.host_count() == (0, 0)
print("right")
""", ARRAYD_PINNED="0") == "right"


def test_errors_come_with_the_data():
    a = ad.arange(100_000)
    index = ad.full(100_000, 10**7)
    poisoned = a.take(index)
    with pytest.raises(IndexError):
        poisoned.get()
    with pytest.raises(IndexError):
        poisoned.get(out=np.empty(100_000, a.dtype))
    assert a.get()[-1] == 99_999
    ad.sync()


# ---- progress ----

BARS = """
import types
class tqdm:
    def __init__(self, **options): self.n = 0; self.total = options["total"]; print("open", options["desc"], self.total > 1 << 30)
    def update(self, n): self.n += n
    def close(self): print("close", self.n == self.total)
sys.modules["tqdm"] = types.ModuleType("tqdm")
sys.modules["tqdm.auto"] = types.ModuleType("tqdm.auto")
sys.modules["tqdm.auto"].tqdm = tqdm
"""


def test_progress_of_a_transfer():
    code = BARS + """
from arrayd._io import progress
total = (1 << 30) + 5
for up in True, False:
    for done in (1 << 28, 1 << 29, total): progress._show(done, total, up)
progress._show(1 << 28, total, True)      # interrupted
progress._show(1 << 27, total, True)
"""
    bars = "open to the server True\nclose True\nopen from the server True\nclose True\n"
    assert run(code, ARRAYD_PROGRESS="1") == bars + "open to the server True\nclose False\nopen to the server True"
    assert run(code, ARRAYD_PROGRESS="0") == run(code) == ""  # no terminal, no notebook


@pytest.mark.skipif(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGESIZE") < 8 << 30, reason="little memory")
def test_progress_of_a_gigabyte():
    assert run(BARS + """
host = np.zeros((1 << 30) + 4096, np.uint8)
host[::1 << 20] = 3
a = ad.asarray(host)
got = a.get()
assert np.array_equal(got, host)
del got
small = ad.ones(1000).get()
""", ARRAYD_PROGRESS="1") == "open to the server True\nclose True\nopen from the server True\nclose True"


@pytest.mark.skipif(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGESIZE") < 8 << 30, reason="little memory")
def test_progress_by_the_socket():
    assert run(BARS + """
a = ad.zeros((1 << 30) + 4096, np.uint8)
a[7::1 << 20] = 3
got = a.get()
assert got[7::1 << 20].min() == 3 and got.sum() == 3 * 1025
""", ARRAYD_PROGRESS="1", ARRAYD_PINNED="0") == "open from the server True\nclose True"
