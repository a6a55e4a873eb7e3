"""The connection as Python sees it: opening, leaving, losing it; signals, threads, fork; nothing leaks."""
import gc
import os
import subprocess
import sys
import weakref

import numpy as np
import pytest

import arrayd as ad
from oracle import in_threads
from conftest import port_of
from patience import PATIENCE
from arrayd import _core


def run(code, *, url=None, **options):
    """Python code in a process of its own; what it prints."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **({"ARRAYD_URL": url} if url else {})}
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, env=environment,
                            **options)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def resident():
    """Bytes of this process's memory that are in use."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def test_import_opens_no_connection():
    assert run("import arrayd, os; print(any('socket' in os.readlink(f'/proc/self/fd/{f}') for f in "
               "os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{f}')))", url="unix:/nowhere") == "False"


def test_nobody_there():
    assert run("import arrayd as ad\ntry: ad.zeros(3)\nexcept ConnectionError as e: print('refused', 'nowhere' in str(e))",
               url="unix:/nowhere/at/all") == "refused True"
    assert run("import arrayd as ad\ntry: ad.zeros(3)\nexcept ValueError as e: print('wrong')", url="pigeon:") == "wrong"


def test_connecting_elsewhere(own_server):
    """Arrays stay with their session, which is closed with the last of them; sessions do not mix."""
    old = ad.arange(3)
    before = os.environ["ARRAYD_URL"]
    _, url = own_server()
    try:
        ad.connect(url)
        new = ad.arange(4)
        assert ad.session_info()["url"] == url
        assert old.get().tolist() == [0, 1, 2] and (old + 1).get().tolist() == [1, 2, 3]
        with pytest.raises(ValueError, match="different sessions"):
            old + new[:3]
        assert ad.stat()["sessions"] == 1
        ad.connect(url)
        assert new.get().tolist() == [0, 1, 2, 3]
        assert ad.stat()["sessions"] == 2
        del new
        seen = 2
        for _ in range(10000):  # the server learns of it through another connection
            seen = ad.stat()["sessions"] if seen == 2 else seen
        assert seen == 1
        _core.close()
    finally:
        ad.connect(before)
    assert old.sum().item() == 3


def test_the_server_dies(own_server):
    process, url = own_server()
    code = f"""
import arrayd as ad, os, signal
a = ad.arange(10)
worker = ad.stat()['worker_pid']
os.kill({process.pid}, signal.SIGKILL)
os.kill(worker, signal.SIGKILL)
wrong = []
for run in (a.get, ad.sync, lambda: float(a.sum()), lambda: [a + a for _ in range(100000)], lambda: ad.asarray([1.0])):
    try:
        run()
    except ConnectionError as error:
        wrong.append(type(error).__name__)
print(len(wrong))
"""
    assert run(code, url=url) == "5"


# A second of work or so.
KEEP_BUSY = """
n, times = (1500, 12) if ad.session_info()["backend"] == "cpu" else (10000, 40)
a = ad.ones((n, n))
ad.sync()
for _ in range(times):
    a = a @ a * 1e-4
"""


def test_ctrl_c_while_waiting(own_server):
    """KeyboardInterrupt arrives during a wait, and the session goes on."""
    _, url = own_server("--threads", "1")
    code = """
import arrayd as ad, os, signal, threading, time
""" + KEEP_BUSY + """
signal.setitimer(signal.ITIMER_REAL, 0.1)
signal.signal(signal.SIGALRM, signal.default_int_handler)
begin = time.monotonic()
try:
    a.get()
    print("no interrupt", time.monotonic() - begin)
except KeyboardInterrupt:
    b = ad.arange(3)
    print((b + 1).get().tolist(), a.shape == (n, n))
"""
    assert run(code, url=url) == "[1, 2, 3] True"


def test_ctrl_c_while_the_server_is_behind(own_server):
    """An operator that has to wait for room is interrupted too, and lets other threads run meanwhile."""
    _, url = own_server()
    code = """
import arrayd as ad, os, signal, threading
a = ad.ones(16)
worker = ad.stat()['worker_pid']
os.kill(worker, signal.SIGSTOP)
signal.signal(signal.SIGALRM, signal.default_int_handler)
signal.setitimer(signal.ITIMER_REAL, 1.0)
steps, stop = 0, False
def count():
    global steps
    while not stop:
        steps += 1
thread = threading.Thread(target=count)
thread.start()
issued = 0
try:
    while True:
        a + a
        issued += 1
except KeyboardInterrupt:
    pass
stop = True
thread.join()
os.kill(worker, signal.SIGCONT)
print(issued > 100, steps > 10000, (a + a).sum().item())
"""
    assert run(code, url=url) == "True True 32.0"


def test_an_exception_of_a_signal_handler_passes(own_server):
    _, url = own_server("--threads", "1")
    code = """
import arrayd as ad, signal
class Mine(Exception): pass
def handler(*_): raise Mine
""" + KEEP_BUSY + """
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.1)
try:
    a.get()
except Mine:
    print("mine")
"""
    assert run(code, url=url) == "mine"


def test_threads_share_a_session():
    """Operators, transfers and frees from several threads; each sees its own results."""
    def work(k):
        a = ad.full(257, k, np.int64)
        for i in range(200):
            b = a * 2 + i
            b[::3] += 1
            got = b.get()
            expected = np.full(257, k * 2 + i)
            expected[::3] += 1
            assert np.array_equal(got, expected)
            assert ad.asarray(got).sum().item() == expected.sum()
    in_threads(6, work)


def test_a_waiting_thread_lets_others_run(own_server):
    _, url = own_server("--threads", "1")
    code = """
import arrayd as ad, threading
a = ad.ones((1500, 1500))
for _ in range(8):
    a = a @ a * 1e-4
thread = threading.Thread(target=lambda: a.get())
thread.start()
steps = 0
while thread.is_alive():
    steps += 1
print(steps > 10000)
"""
    assert run(code, url=url) == "True"


def test_fork_over_tcp(own_server, tmp_path):
    """A child's arrays of the parent are refused, its own work; the parent's are as they were. (Over a Unix socket it
    goes on with them: test_sharing.)"""
    before = os.environ["ARRAYD_URL"]
    own_server("--tcp=127.0.0.1:0", "--tcp-open=yes")
    ad.connect(f"tcp:127.0.0.1:{port_of(tmp_path)}")
    try:
        forks()
    finally:
        ad.connect(before)


def forks():
    a = ad.arange(5)
    ad.sync()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            try:
                (a + 1).get()
                text = "no error"
            except ConnectionError as error:
                assert "fork" in str(error)
                text = str((ad.arange(3) + 1).get().tolist())
            del a
            gc.collect()
            os.write(write, text.encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 100).decode() == "[1, 2, 3]"
    os.close(read), os.close(write)
    assert (a * 2).get().tolist() == [0, 2, 4, 6, 8]


def test_weak_references_and_subclasses():
    a = ad.zeros(3)
    reference = weakref.ref(a)
    del a
    assert reference() is None

    class Mine(ad.ndarray):
        def double(self):
            return self + self
    mine = Mine((2, 2), np.int32)
    mine.note = "kept"
    mine += 1
    assert mine.double().get().tolist() == [[2, 2], [2, 2]] and mine.note == "kept" and isinstance(mine, ad.ndarray)
    assert (mine[0] @ mine).get().tolist() == [2, 2]


def errors_too(a):
    for wrong in (lambda: a + "x", lambda: a[10**6], lambda: a + ad.zeros(999), lambda: a.reshape(7, 7), lambda: a[[1, 99]],
                  lambda: a.astype("S3"), lambda: a["x"], lambda: ad.add(a, a, out=3), lambda: a.__setitem__(0, "x"),
                  lambda: a[np.zeros((3, 3), bool)], lambda: ad.asarray(TEXT), lambda: a.item(10**9),
                  lambda: int(a), lambda: a.get(out=SMALL), lambda: a.view("S1"), lambda: a + 2**100):
        try:
            wrong()
        except Exception:
            pass


SMALL, SQUARE, TEXT = np.zeros(1), np.ones((4, 4)).T, np.array(["a"])  # numpy.ones leaks a reference to its dtype
LOOPS = {
    "operators": lambda a: (a + a, a - 1, 2 * a, -a, a < 3, divmod(a, 2), a @ a, a ** 2, abs(a), a == a),
    "in place": lambda a: (a.__iadd__(1), a.__isub__(a), a.__imul__(2.0)),
    "views": lambda a: (a[2:8], a[3], a[None], a[::-1], a.reshape(4, 4), a.T, a.ravel(), a.real, a.flags, a.view("u8"), a.base),
    "attributes": lambda a: (a.shape, a.strides, a.dtype, a.size, a.nbytes, a.device, len(a), repr(a.flags)),
    "keys": lambda a: (a[[1, 2]], a[np.array([True] * 16)], a[ad.asarray([1, 2])], a[a > 3], a.reshape(4, 4)[[0, 1], 1:]),
    "assignment": lambda a: (a.__setitem__(0, 1), a.__setitem__(slice(3), [1, 2, 3]), a.__setitem__([1, 2], 5),
                             a.__setitem__(a > 3, 1), a.__setitem__(a > 3, ad.ones(int((a > 3).sum()))), a.fill(3)),
    "numbers": lambda a: (float(a[0]), a.item(1), a.tolist(), a.get(), complex(a[1]), bool(a[0]), 3.0 in a, a.tobytes()),
    "ufuncs": lambda a: (ad.sin(a), ad.add(a, 1, out=a), ad.modf(a), ad.add(a, a, where=a > 0, out=a), ad.sin(1.0),
                         ad.add.__doc__, ad.add.types, ad.add.identity, ad.logaddexp.identity),
    "reductions": lambda a: (a.sum(), a.reshape(4, 4).max(axis=0), a.mean(keepdims=True), a.sum(out=a[0]), a.cumsum()),
    "making": lambda a: (ad.zeros(3), ad.full(3, 2), ad.arange(5), ad.asarray([1, 2]), ad.asarray(SQUARE),
                         a.copy(), a.astype("f4"), a.flatten("F"), a.reshape(4, 4).copy("F"), ad.ndarray(3)),
    "errors": errors_too,
    "session": lambda a: (ad.session_info(), ad.stat(), ad.sync()),
}


@pytest.mark.parametrize("name", LOOPS)
def test_nothing_leaks(name):
    """No objects leak, no memory of this process, and no buffers of the server."""
    body, a = LOOPS[name], ad.arange(16.0)
    rounds = 400
    for _ in range(rounds):
        body(a)
    ad.sync()
    gc.collect()
    objects, counts = len(gc.get_objects()), [sys.getrefcount(o) for o in watched(a)]
    memory, buffers = resident(), ad.stat()["buffers"]
    for _ in range(4 * rounds):
        body(a)
    ad.sync()
    gc.collect()
    assert len(gc.get_objects()) - objects < rounds / 4
    assert all(now - then < rounds / 4 for now, then in zip([sys.getrefcount(o) for o in watched(a)], counts))
    assert ad.stat()["buffers"] <= buffers
    if "libasan" not in open("/proc/self/maps").read():  # it keeps what is freed
        assert resident() - memory < 3 << 20


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="CPython 3.12 itself crashes when memory for a frame is refused; "
                    "printing an array of NumPy's is enough")
def test_without_memory():
    """Every allocation of Python's that an operation makes fails in turn: MemoryError or success, and a usable session."""
    code = """
import _testcapi, sys
sys.path.insert(0, 'HERE')
import numpy as np, arrayd as ad
from test_core_sessions import LOOPS
a, failed = ad.arange(16.0), 0
for name, body in LOOPS.items():
    if name in ("errors", "session"):
        continue
    body(a)
    for n in range(0, 200):
        try:
            _testcapi.set_nomemory(n, n + 1)
            try:
                body(a)
            finally:
                _testcapi.remove_mem_hooks()
        except MemoryError:
            failed += 1
assert failed > 100
assert (a * 0 + 1).sum().item() == 16
print("usable")
""".replace("HERE", os.path.dirname(__file__))
    pytest.importorskip("_testcapi")
    assert run(code, url=os.environ["ARRAYD_URL"]) == "usable"


def watched(a):
    """Objects on which a missing DECREF would show."""
    return [a, type(a), None, True, False, Ellipsis, NotImplemented, ad.add, type(ad.add), type(a.flags), np.ndarray, np.dtype,
            a.dtype, np.dtype("f4"), np.dtype("u8"), np.dtype(bool), np.asarray, np.empty, (), int, float, TypeError]
