"""Memory that programs have on a GPU, as arrays (ad.asarray, ad.from_dlpack), beside a backend and a driver made for
tests. The tests tell what is copied, who keeps the memory for how long, and what becomes of it when somebody is killed."""
import os
import random
import signal
import socket

import numpy as np
import pytest

from places import port_of
import raw
from raw import TOP, Client, Closed, Failed, frame, message, wait_until
from observing import ctl
from test_exports import outcome, program
from test_recovery import LATE
from upgrading import upgrade

HELD = ("imports", "imported_bytes", "exports", "shared_buffers", "capabilities", "orphans", "used_bytes",
        "principal_bytes")
PRELUDE = """
import gc, os, pickle, sys, time, weakref
sys.path.insert(0, {folder!r})
from tensors import *
def until(check, what):
    end = time.monotonic() + {patience}
    while not check():
        assert time.monotonic() < end, what
def raises(kind, text, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError("nothing was raised")
def counts():
    info = ad.session_info()
    return info["lent"], info["copied"]
"""


@pytest.fixture(params=[{}, LATE], ids=["at once", "later"])
def server(request, start, backend):
    """Start a server in which each user has a worker to himself."""
    return start("--backend=cuda", f"--backend-path={backend}", "--domains=principal", env=request.param)


@pytest.fixture
def lender(driver, monkeypatch):
    monkeypatch.setenv("LD_LIBRARY_PATH", str(driver))

    def start(server, code, url=None):
        prelude = PRELUDE.format(folder=str(TOP / "tests" / "fault"), patience=raw.WINDOW)
        return program(prelude + code, url or f"unix:{server.path}")
    return start


@pytest.fixture
def run(lender):
    def run(server, code, url=None):
        said = outcome(lender(server, code, url))
        nothing_left(server)
        return said
    return run


def heard(holder):
    """Return what the program says next."""
    line = holder.stdout.readline()
    assert line, holder.communicate()[1][-3000:]
    return line


def nothing_left(server):
    client = Client(server.path)
    wait_until(lambda: client.stat()["sessions"] == 1 and not any(client.stat()[name] for name in HELD),
               "all memory is back")
    client.close()


# ---- what is copied and what is not ----

def test_the_memory_is_the_same(server, run):
    """Memory of both kinds is the same by both protocols, whatever part of it is taken."""
    run(server, """
for kind in (PLAIN, SHAREABLE):
    for cls in (Tensor, Modern, Old, Unsigned):
        whole = cls(np.arange(24_000.0).reshape(20, 30, 40), kind)
        for part in (whole, whole[3], whole[:, ::2], whole[::-1, 4:, ::-3], whole[7, 7, 7], whole[5:6, :, 3:4]):
            made = ad.asarray(part) if cls is Tensor else ad.from_dlpack(part, copy=False)
            assert made.shape == part.host.shape and (made.strides == part.host.strides or 1 in made.shape)
            assert np.array_equal(made.get(), part.host)
            made += 1
            ad.sync()
            assert np.array_equal(made.get(), part.host)
            part.host[...] *= -1
            assert np.array_equal(made.get(), part.host) and np.array_equal((made * 2).get(), part.host * 2)
            assert ad.stat()["imports"] >= 1
        assert counts()[1] == 0
assert counts()[0] == 48 and set(STREAMS) == {1}
""")


def test_all_types_that_both_have(server, run):
    run(server, """
for dtype in "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split():
    for cls in (Tensor, Modern):
        t = cls(np.array([0, 1, 1, 0, 1]).astype(dtype))
        made = ad.asarray(t)
        assert made.dtype == dtype and np.array_equal(made.get(), t.host)
t = Modern(np.array([0x3f80, 0x4000], "u2"))
t.code = 4
assert ad.asarray(t).dtype.name == "bfloat16" and ad.asarray(t).astype("float32").tolist() == [1, 2]
t.code = 99
raises(BufferError, "code 99", ad.from_dlpack, t)
assert counts() == (30, 0)
""")


def test_copy_as_numpy_has_it(server, run):
    run(server, """
for cls in (Tensor, Modern):
    t = cls(np.arange(1000.0))
    for made in (ad.array(t), ad.asarray(t, copy=True), ad.asarray(t, "int32"), ad.array(t, order="F", ndmin=2)):
        assert made.astype("float64").get().ravel().tolist() == list(range(1000))
        made[...] = -1
        ad.sync()
        assert t.host[5] == 5
    assert ad.asarray(t, copy=False).dtype == ad.asarray(t, "float64", copy=False).dtype == "float64"
    raises(ValueError, "copy", ad.asarray, t, "int32", copy=False)
    raises(ValueError, "copy", ad.asarray, t[::-1], order="F", copy=False) if cls is Tensor else None
    del made
t = Modern(np.arange(10))
made = ad.from_dlpack(t, copy=True)
t.host[...] = 0
assert made.tolist() == list(range(10))
assert counts()[1] == 0
""")


def test_what_cannot_be_had_is_copied(server, run):
    """Memory that has no name, of several allocations, or is no piece; and elements that are not aligned."""
    run(server, """
cases = [Tensor(np.arange(1000.0), POOL), Modern(np.arange(1000.0), POOL), Modern(np.arange(1000.0), MANAGED),
         Tensor(np.arange(1000.0), offset=4, block=Block(10_000)), Tensor(np.zeros((3, 0)))]
for i, t in enumerate(cases):
    made = ad.asarray(t)
    assert np.array_equal(made.get(), t.host) and made.shape == t.host.shape
    made += 1
    ad.sync()
    assert not t.host.size or t.host[5] == 5
    raises(ValueError, "Unable to avoid copy", ad.asarray, t, copy=False)
raises(BufferError, "no other process", ad.from_dlpack, cases[1], copy=False)
raises(BufferError, "moves between", ad.from_dlpack, cases[2], copy=False)
raises(BufferError, "contiguous", ad.asarray, cases[0][::2])
assert counts() == (0, 4), counts()
assert ad.stat()["imports"] == 0
del made
""")


def test_it_is_read_only(server, run):
    run(server, """
for cls in (Tensor, Modern):
    t = cls(np.arange(5.0), readonly=True)
    a = ad.asarray(t)
    assert not a.flags.writeable and a.sum() == 10
    def write():
        a[0] = 1
    raises(ValueError, "read-only", write)
    t.host[0] = 7
    assert a[0] == 7 and a.copy().flags.writeable
""")


def test_the_servers_own_memory_is_found(server, run):
    """A pointer into an array's memory gives a view of that array, as a second one would not know of the first."""
    run(server, """
class View:
    def __init__(self, a):
        self.__cuda_array_interface__ = a.__cuda_array_interface__
x = ad.arange(1000.0)
view = View(x)
a = ad.asarray(view)
a += 1
assert x[3] == a[3] == 4 and counts() == (0, 0) and ad.shares_memory(x, a)
assert ad.shares_memory(x, ad.asarray(view, copy=False)) and not ad.shares_memory(x, ad.asarray(view, copy=True))
""")


def test_back_to_its_program(server, run):
    """By DLPack and the CUDA array interface an array gives the memory that it is."""
    run(server, """
class View:
    def __init__(self, a):
        self.__cuda_array_interface__ = a.__cuda_array_interface__
t = Modern(np.arange(100_000.0))
a = ad.from_dlpack(t)
for _ in range(50):
    a += 1
interface = a[5::3].__cuda_array_interface__
assert interface["data"] == (t.at + 40, False) and (t.host == np.arange(50.0, 100_050)).all()
assert a.__dlpack_device__() == (2, 1) and ad.stat()["exports"] == 0
capsule = a.__dlpack__(stream=1)
again = ad.asarray(View(a))
again *= 2
ad.sync()
assert counts() == (1, 0) and t.host[1] == 102 and ad.shares_memory(a, again) and ad.shares_memory(a[::2], again[2:])
assert not ad.shares_memory(a[:10], again[10:])
raises(ValueError, "memory of its program", a.ipc_handle)
seen = weakref.ref(t)
del t, a, again, interface
ad.sync()
assert seen()
del capsule
until(lambda: not seen(), "the tensor goes")
""")


def test_elsewhere(run, start, backend):
    """Over TCP nothing is lent, nor copied from GPU to GPU."""
    server = start("--backend=cuda", f"--backend-path={backend}", "--tcp=127.0.0.1:0", "--tcp-open=yes")
    run(server, """
for cls in (Tensor, Modern):
    raises(BufferError, "Unix socket", ad.asarray, cls(np.arange(5.0)))
    raises(ValueError, "Unix socket", ad.asarray, cls(np.arange(5.0)), copy=False)
""", f"tcp:127.0.0.1:{port_of(server, 'tcp')}")


def test_who_shares_a_worker_lends_descriptors_only(run, start, backend):
    server = start("--backend=cuda", f"--backend-path={backend}", "--kernels=none")
    run(server, """
a, b = ad.asarray(Tensor(np.arange(5.0), SHAREABLE)), ad.asarray(Tensor(np.arange(5.0)))
assert counts() == (1, 1) and (a + b).tolist() == [0, 2, 4, 6, 8]
raises(BufferError, "worker to himself", ad.from_dlpack, Modern(np.arange(5.0)), copy=False)
""")


def test_more_than_it_may_have_at_a_time(server, run):
    """The others are copied."""
    run(server, """
block = Block(2000 * 64)
tensors = [Tensor(np.array([float(i)]), block=block, offset=64 * i) for i in range(1100)]
arrays = [ad.asarray(t) for t in tensors]
assert counts() == (1024, 76) and [float(a[0]) for a in arrays[1000:1050]] == list(range(1000, 1050))
raises(ValueError, "1024 imports", ad.asarray, tensors[0], copy=False)
""")


def test_it_is_counted(server, lender):
    holder = lender(server, "a = ad.asarray(Tensor(np.zeros(1000)))\nprint(1, flush=True)\ninput()")
    assert heard(holder) == "1\n"
    assert "7.8 KiB in 1 imports" in ctl(server, "memory")
    holder.communicate("\n")
    nothing_left(server)


# ---- who keeps it ----

def test_the_tensor_stays_until_the_server_lets_go(server, run):
    run(server, """
for cls in (Tensor, Modern):
    for kind in (PLAIN, SHAREABLE):
        t = cls(np.zeros(1_000_000), kind)
        block, seen = t.block, weakref.ref(t)
        a = ad.asarray(t)
        del t
        view = a[10:]
        for _ in range(20):
            a += 1
        del a
        view += 1
        gc.collect()
        assert seen()
        del view
        until(lambda: not seen(), "the tensor goes")
        assert block.bytes().view("f8")[[0, 10, 999_999]].tolist() == [20, 21, 21]
assert not ALIVE
until(lambda: not ad.stat()["imports"], "the server has none")
""")


def test_a_loop_holds_no_more_than_is_under_way(server, run):
    run(server, """
alive = set()
class Counted(Modern):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        alive.add(id(self))
        weakref.finalize(self, alive.discard, id(self))
total = ad.zeros(())
for i in range(1500):
    total += ad.asarray(Counted(np.full(2000, float(i)))).sum()
assert total == 2000 * 1500 * 1499 / 2 and counts() == (1500, 0) # 1024 would be all that it may have
until(lambda: not alive, "all go")
""")


def test_a_program_that_ends_has_some(server, run):
    """Arrays at the end of the interpreter, and tensors that are let go meanwhile."""
    for _ in range(5):
        run(server, """
arrays = [ad.asarray(Modern(np.arange(50_000.0), kind)) for kind in (PLAIN, SHAREABLE) * 20]
for a in arrays[::2]:
    a += 1
del arrays[::3]
""")


def test_sessions_end_before_it(server, run):
    run(server, """
t = Modern(np.arange(10.0))
a = ad.asarray(t)
url = ad.session_info()["url"]
seen = weakref.ref(t)
ad.connect(url)
b = ad.asarray(t)
b += 1
ad.sync()
assert a.tolist() == list(range(1, 11))
del a, t
ad.sync()
assert seen()
ad.connect(url)
del b
until(lambda: not seen(), "it goes")
""")


def test_threads(server, run):
    """Tensors of one allocation, taken and given up by several threads."""
    run(server, """
import threading
block = Block(1 << 20)
whole = Modern(np.zeros(131_072), block=block)
errors = []
def work(n):
    try:
        rng = np.random.default_rng(n)
        for i in range(60):
            first = 16_384 * n + int(rng.integers(8000))
            a = ad.asarray(whole[first:16_384 * (n + 1)])
            a += 1
            b = ad.asarray(whole[16_384 * n:first + 100])
            b[-100:] -= 1
            ad.sync()
            assert float(a.sum()) == float(whole.host[first:16_384 * (n + 1)].sum())
    except BaseException as error:
        errors.append(error)
        raise
threads = [threading.Thread(target=work, args=[n]) for n in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
assert not errors
""")


def test_what_others_get_is_a_copy(server, run):
    """A fork's child, who attaches a handle, and who attaches a name; the tensor is no business of theirs."""
    run(server, """
t = Modern(np.arange(50_000.0))
a = ad.from_dlpack(t)[100:]
a += 1
sent = pickle.dumps(ad.share(a, linger=0))
ad.publish("tensor", a)
pid, status = os.fork(), 1
if not pid:
    try:
        assert a[0] == 101
        a[...] = -1
        assert a.sum() == -a.size
        del a
        ad.sync()
        status = 0
    finally:
        os._exit(status)
assert os.waitpid(pid, 0)[1] == 0
a += 1
other, named = pickle.loads(sent).attach(), ad.attach("tensor")
assert other[0] == named[0] == 101 and a[0] == 102
other += 50
ad.sync()
assert t.host[100] == 102
raises(ValueError, "publish a copy", ad.publish, "common", a, writable=True)
ad.unpublish("tensor")
seen = weakref.ref(t)
del t, a
until(lambda: not seen(), "it goes")
assert other.shape == (49_900,)
""")


# ---- who is killed ----

WORKING = """
whole = Modern(np.zeros(400_000), {kind})
a, b = ad.asarray(whole), ad.asarray(whole[100:])
print(1, flush=True)
for i in range(100_000):
    a += 1
    b *= 0.5
    if i % 50 == 0:
        c = ad.asarray(Tensor(np.full(1000, float(i)), {kind}))
        a[:1000] += c
"""


@pytest.mark.parametrize("kind", ["PLAIN", "SHAREABLE"])
def test_a_program_is_killed_at_work(server, lender, kind):
    """The program is killed at whatever moment. The worker goes on, and others notice nothing."""
    watcher, pick = Client(server.path), random.Random(kind)
    x = watcher.put(np.arange(1000.0))
    worker = watcher.stat()["worker_pid"]
    for _ in range(3):
        holders = [lender(server, WORKING.format(kind=kind)) for _ in range(2)]
        for holder in holders:
            assert heard(holder) == "1\n"
        for _ in range(pick.randrange(30)):
            watcher.stat()
        for holder in holders:
            holder.kill()
            holder.communicate()
        wait_until(lambda: watcher.stat()["sessions"] == 1 and not watcher.stat()["imports"], "all is let go")
    assert watcher.stat()["worker_pid"] == worker and np.array_equal(watcher.get(x), np.arange(1000.0))
    watcher.close()


SURVIVES = """
t, other = Modern(np.arange(1000.0), {kind}), ad.arange(1000.0)
a = ad.asarray(t)
a += 1
dependent = a * 2
ad.sync()
later = a * 3
seen = weakref.ref(t)
print(1, flush=True)
input()
def lost(x):
    try:
        x.get()
        return False
    except ad.DeviceLostError as error:
        assert "memory of the program: take it in again" in str(error), error
        return True
assert lost(a) and lost(a + 1) and lost(a)
assert dependent.tolist() == [2.0 * i + 2 for i in range(1000)] and other.sum() == 499_500
assert t.host[5] == 6
b = ad.asarray(t)
b += 1
ad.sync()
assert t.host[5] == 7 and lost(a)
assert lost(later) or later.tolist() == [3.0 * i + 3 for i in range(1000)]
del a, b, t
until(lambda: not seen(), "nobody keeps it")
"""


@pytest.mark.parametrize("way", ["killed", "upgraded"])
@pytest.mark.parametrize("kind", ["PLAIN", "SHAREABLE"])
def test_the_worker_goes(server, lender, kind, way):
    """Arrays that were the program's memory say so, those computed from them stay, and the tensor is free."""
    holder = lender(server, SURVIVES.format(kind=kind))
    assert heard(holder) == "1\n"
    if way == "killed":
        os.kill(server.worker, signal.SIGKILL)
    else:
        upgrade(server)
    wait_until(lambda: server.said("event=recovered"), "another worker goes on")
    out, err = holder.communicate("\n", timeout=raw.WINDOW)
    assert holder.returncode == 0, err[-3000:]
    nothing_left(server)


STORM = """
import random
pick = random.Random({seed})
whole = Modern(np.zeros(10_000))
lost = good = 0
for i in range(400):
    t = whole[8 * pick.randrange(100):5000 + 8 * pick.randrange(100)]
    expected = t.host + 1
    try:
        a = ad.from_dlpack(t, copy=False)
        a += 1
        ad.sync()
        # What had been done when a worker was killed is done once, or the array says that it is lost.
        value = a.get()
        assert np.array_equal(value, expected) and np.array_equal(t.host, expected)
        good += 1
    except ad.DeviceLostError:
        assert ((t.host == expected) | (t.host == expected - 1)).all() # it may have been in the middle of it
        lost += 1
    except BufferError: # the descriptor went with a worker that had not answered
        lost += 1
    if i % 20 == 0:
        print(i, flush=True)
print("end", good, lost, flush=True)
"""


def test_workers_are_killed_again_and_again(server, lender):
    """Imports that were answered, executed, or neither: an operation is never applied twice."""
    holder = lender(server, STORM.format(seed=5))
    for _ in range(8):
        heard(holder)
        os.kill(server.worker, signal.SIGKILL)
    said = [line for line in holder.stdout.read().splitlines() if line.startswith("end")]
    _, err = holder.communicate(timeout=raw.WINDOW)
    assert holder.returncode == 0, err[-3000:]
    _, good, lost = said[0].split()
    assert int(good) > 100, said
    nothing_left(server)


# ---- clients that do not keep what they have promised ----

def lend(client, laid, fd=None, flags=0, size=4096):
    ours, theirs = socket.socketpair()
    client.flush()
    client.requests += 1
    buffer = client.fresh()
    with theirs:
        socket.send_fds(ours, [laid], [] if fd is None else [fd])
        control = message("import", client.requests, buffer, flags, 1, size, 0, size,
                          "GPU-01112131-4151-6171-8191-a1b1c1d1e1f1")
        socket.send_fds(client.socket, [frame(control)], [theirs.fileno()])
    client.reply(client.requests)
    return [buffer, 12, 0, [size // 8]], ours


def memory(size=4096):
    import fcntl
    fd = os.memfd_create("memory", os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
    return fd


def handle(fd, size=4096):
    return os.getpid().to_bytes(8, "little") + fd.to_bytes(8, "little") + size.to_bytes(8, "little") + bytes(40)


def test_a_lease_is_closed_too_early(server):
    """A descriptor keeps the memory; with a handle it is gone, and so is the session."""
    client, watcher = Client(server.path), Client(server.path)
    fd = memory()
    x, lease = lend(client, bytes(64), fd)
    os.pwrite(fd, np.float64(5).tobytes(), 8)
    lease.close()
    for _ in range(3):
        assert client.get(x)[1] == 5
    client.free(x)
    y, lease = lend(client, handle(fd), flags=1)
    assert client.get(y)[1] == 5
    client.free(y)
    client.flush()
    wait_until(lambda: not watcher.stat()["imports"], "it is let go")
    lease.close()
    z, lease = lend(client, handle(fd), flags=1)
    lease.close()
    with pytest.raises(Closed):
        while True:
            client.get(z)
    wait_until(lambda: server.said("its client, who has closed its lease"), "the log says why")
    watcher.close()
    os.close(fd)
    nothing_left(server)


def test_handles_of_nothing(server):
    client = Client(server.path)
    with pytest.raises(Failed, match="no handle"):
        lend(client, handle(999), flags=1)
    with pytest.raises(Failed, match="not so many bytes"):
        fd = memory(4096)
        lend(client, handle(fd), flags=1, size=8192)
    os.close(fd)
    client.close()
    nothing_left(server)


def test_one_thread_waits_for_servers(server, run):
    """However often it ends for want of leases while the next is begun."""
    run(server, """
def waiting():
    found = 0
    for task in os.listdir("/proc/self/task"):
        try:
            found += open(f"/proc/self/task/{task}/comm").read().strip() == "arrayd-lent"
        except OSError:
            pass
    return found
t = Modern(np.arange(5.0))
for i in range(1000):
    made = ad.asarray(t)
    until(lambda: waiting() == 1, "the one before has gone")
    del made
    ad.sync() # the server lets go of it now
until(lambda: not waiting(), "none is left")
""")
