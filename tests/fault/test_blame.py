"""An operation with which worker after worker dies is left out: its results say so, and its session goes on."""
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import raw
from raw import Closed, Failed, wait_until
from returning import Session, tcp_of
from upgrading import times, upgrade

FATAL = 6661
LATE = {"ARRAYD_CPU_LATE": "1"}
I64, U8 = raw.DTYPES.index("int64"), raw.DTYPES.index("uint8")
TIMES = "crashed 3 times while executing it .SIGSEGV., so it was left out; please report this"


class Deaths:
    """Says what the backend is told, and how often it has died."""

    def __init__(self, folder):
        self.folder = folder

    def tell(self, name, value=""):
        (self.folder / name).write_text(str(value))

    @property
    def count(self):
        deaths = self.folder / "deaths"
        return deaths.stat().st_size if deaths.exists() else 0


@pytest.fixture
def deaths(tmp_path):
    return Deaths(tmp_path)


@pytest.fixture(params=["at once", "late"])
def late(request):
    return LATE if request.param == "late" else {}


@pytest.fixture
def begin(start, crashing, deaths):
    def make(*options, env=None, **more):
        return start(f"--backend-path={crashing}", *options,
                     env={"AD_TEST_CRASHES": str(deaths.folder), "ASAN_OPTIONS": "handle_segv=0", **(env or {})}, **more)
    return make


@pytest.fixture
def server(begin, late):
    return begin("--tcp=127.0.0.1:0", "--tcp-open=yes", env=late)


def answer(session, request):
    """The answer, from whichever worker it comes."""
    until, lost = time.monotonic() + raw.WINDOW, False
    while True:
        try:
            if lost:
                session.come_back()
            return session.reply(request)
        except (Closed, BrokenPipeError, ConnectionResetError) as closed:
            assert getattr(closed, "code", None) is None and time.monotonic() < until, closed
            lost = True


def get(session, d):
    _, data = answer(session, session.ask("read", d))
    return np.frombuffer(data, raw.DTYPES[d[1]]).reshape(d[3])


def fails(session, d, text=TIMES, error="internal"):
    with pytest.raises(Failed, match=text) as failed:
        get(session, d)
    assert failed.value.error == error
    return failed.value


def goes_on(session, x, value):
    """Arrays are what they were, and there can be more."""
    assert np.array_equal(get(session, x), value)
    more = session.ufunc("add", "int64", value.shape, x, 1)
    assert np.array_equal(get(session, more), value + 1)


def test_an_operation(server, deaths):
    session = Session(server.path)
    value = np.arange(1000)
    x = session.put(value)
    answer(session, session.ask("sync"))
    bad = session.ufunc("add", "int64", [1000], x, FATAL)
    number = session.operations
    worse = session.ufunc("multiply", "int64", [1000], bad, 2)
    y = session.ufunc("multiply", "int64", [1000], x, 2)
    assert np.array_equal(get(session, y), 2 * value)
    for d in (bad, worse):
        failed = fails(session, d)
        assert (failed.number, failed.name) == (number, "add")
    answer(session, session.ask("sync"))
    goes_on(session, x, value)
    assert deaths.count == 3
    wait_until(lambda: times(server, "event=recovered") == 3, "the log says so")
    again = session.ufunc("add", "int64", [1000], x, FATAL)  # another operation, however alike
    fails(session, again)
    assert deaths.count == 6
    goes_on(session, x, value)


def test_a_fault_of_the_device(begin, deaths):
    """A device that fails when it is waited for, as a GPU does after a kernel's fault, leaves its worker no signal. Of
    operations that are sent together the one at fault is found."""
    deaths.tell("faults", 1)
    session = Session(begin(env=LATE).path)
    value = np.arange(1000)
    x = session.put(value)
    before = [session.ufunc("add", "int64", [1000], x, k) for k in range(3)]
    bad = session.ufunc("add", "int64", [1000], x, FATAL)
    number = session.operations
    behind = [session.ufunc("multiply", "int64", [1000], x, k) for k in range(3)]
    for k in range(3):
        assert np.array_equal(get(session, before[k]), value + k)
        assert np.array_equal(get(session, behind[k]), value * k)
    failed = fails(session, bad, "crashed 3 times while executing it .a kernel has faulted .*, so it was left out")
    assert (failed.number, failed.name) == (number, "add")
    assert deaths.count == 3
    goes_on(session, x, value)


@pytest.mark.parametrize("fuse", ["0", "1"])
@pytest.mark.parametrize("reads", [False, True])
def test_in_place(begin, late, deaths, fuse, reads):
    """The array that the operation would have written over is lost, and the one that it read is not. Where operations are
    complete later, one that reads what it changes cannot be repeated: the array is lost at once."""
    session = Session(begin(env={**late, "ARRAYD_FUSE": fuse}).path)
    value = np.arange(1000)
    x, y = session.put(value), session.put(-value)
    answer(session, session.ask("sync"))
    session.ufunc("add", "int64", [1000], y if reads else x, FATAL, out=y)
    number = session.operations
    if reads and late:
        failed = fails(session, y, "being changed in place when its worker crashed .SIGSEGV.; please report this",
                       "device_lost")
    else:
        failed = fails(session, y)
    assert (failed.number, failed.name) == (number, "add")
    assert deaths.count == (1 if failed.error == "device_lost" else 3)
    goes_on(session, x, value)
    session.ufunc("add", "int64", [1000], x, 1, out=x)
    goes_on(session, x, value + 1)


@pytest.mark.parametrize("what", ["query", "read", "write"])
def test_requests(server, deaths, what):
    session = Session(server.path)
    value = np.arange(1000)
    x = session.put(value)
    rows = session.ufunc("add", "uint8", [FATAL], session.put(np.ones(1, np.uint8)), 1)
    answer(session, session.ask("sync"))
    if what == "query":
        out = session.fresh()
        with pytest.raises(Failed, match=TIMES) as failed:
            answer(session, session.ask("query", raw.CALL["nonzero"], U8, [[out, I64, None]], [rows], []))
        assert failed.value.name == "nonzero"
        fails(session, [out, I64, 0, [1, 3]])
    elif what == "read":
        fails(session, rows, "read: the worker " + TIMES)
        assert (get(session, [rows[0], U8, 5, [7]]) == 2).all()
    else:
        fails(session, session.put(np.arange(FATAL)))
    assert deaths.count == 3
    goes_on(session, x, value)


@pytest.mark.parametrize("at", [0, 5, 19])
def test_in_a_chain(server, deaths, at):
    """A chain executes several operations as one. The one that is to blame is found."""
    session = Session(server.path)
    value = np.arange(1000)
    x = session.put(value)
    answer(session, session.ask("sync"))
    arrays, number = [], 0
    for i in range(20):
        arrays.append(session.ufunc("add", "int64", [1000], x, FATAL if i == at else i))
        number = session.operations if i == at else number
        arrays.append(session.ufunc("multiply", "int64", [1000], arrays[-1], 3))
    for i in range(20):
        if i != at:
            assert np.array_equal(get(session, arrays[2 * i]), value + i)
            assert np.array_equal(get(session, arrays[2 * i + 1]), 3 * (value + i))
    for d in arrays[2 * at:2 * at + 2]:
        failed = fails(session, d)
        assert (failed.number, failed.name) == (number, "add")
    assert deaths.count == 3
    goes_on(session, x, value)


@pytest.mark.parametrize("most", [1, 2])
def test_who_recovers_in_time_is_not_blamed(server, deaths, most):
    """The worker has not died of that operation, or will not again."""
    deaths.tell("most", most)
    session = Session(server.path)
    value = np.arange(1000)
    x = session.put(value)
    arrays = [session.ufunc("add", "int64", [1000], x, n) for n in (1, FATAL, 2)]
    for d, n in zip(arrays, (1, FATAL, 2)):
        assert np.array_equal(get(session, d), value + n)
    assert deaths.count == most
    goes_on(session, x, value)


@pytest.mark.parametrize("way, text", [(int(signal.SIGKILL), "the worker was killed 8 times while executing it"),
                                       (int(signal.SIGABRT), "crashed 3 times while executing it .SIGABRT."),
                                       (0, "crashed 3 times while executing it .exit status 0.")])
def test_how_it_dies(server, deaths, way, text):
    """A kill from outside may not mean the operation at hand, so it takes more of them."""
    deaths.tell("way", way)
    session = Session(server.path)
    value = np.arange(1000)
    x = session.put(value)
    bad = session.ufunc("add", "int64", [1000], x, FATAL)
    fails(session, bad, text)
    assert deaths.count == (8 if way == signal.SIGKILL else 3)
    goes_on(session, x, value)


def test_another_worker_dies_while_it_recovers(server, deaths):
    """A message that was at hand before is not blamed for that once more."""
    session, other = Session(server.path), Session(server.path)
    value = np.arange(1000)
    x, y = session.put(value), other.put(value)
    for each in (session, other):
        answer(each, each.ask("sync"))
    deaths.tell("attach")
    bad = session.ufunc("add", "int64", [1000], x, FATAL)
    fails(session, bad)
    assert deaths.count == 4 and not (deaths.folder / "attach").exists()
    goes_on(session, x, value)
    goes_on(other, y, value)


def test_an_upgrade_between_deaths(server, deaths):
    """The upgrade counts as nobody's death, and what was known stays known."""
    session = Session(server.path)
    value = np.arange(1000)
    x = session.put(value)
    answer(session, session.ask("sync"))
    deaths.tell("most", 2)
    first = session.ufunc("add", "int64", [1000], x, FATAL)
    assert np.array_equal(get(session, first), value + FATAL)
    assert upgrade(server)["lost"] == 0
    deaths.tell("most", 5)
    bad = session.ufunc("add", "int64", [1000], x, FATAL)
    fails(session, bad)
    assert deaths.count == 5
    goes_on(session, x, value)


class Bystander(threading.Thread):
    """A second principal, which computes and compares all the time."""

    def __init__(self, address):
        super().__init__()
        self.session = Session(address)
        self.over, self.slowest, self.count, self.wrong = threading.Event(), 0, 0, []

    def run(self):
        session, value = self.session, np.arange(5000)
        x = session.put(value)
        while not self.over.is_set():
            begun = time.monotonic()
            self.count += 1
            y = session.ufunc("add", "int64", [5000], x, self.count)
            z = session.ufunc("multiply", "int64", [5000], y, 3)
            s = session.sum("int64", z)
            try:
                if int(get(session, s)) != 3 * (int(value.sum()) + 5000 * self.count):
                    self.wrong.append(self.count)
            except Failed as failed:
                self.wrong.append(failed)
            session.free(y, z, s)
            self.slowest = max(self.slowest, time.monotonic() - begun)


def test_the_innocent(server, deaths):
    """Other principals are not blamed and get right answers, and none of it takes long."""
    bystander = Bystander(tcp_of(server))
    session = Session(server.path)
    value = np.arange(1000)
    x = session.put(value)
    answer(session, session.ask("sync"))
    bystander.start()
    for i in range(6):
        wanted = bystander.count + 20
        wait_until(lambda: bystander.count > wanted or not bystander.is_alive(), "the other one goes on")
        fails(session, session.ufunc("add", "int64", [1000], x, FATAL))
        goes_on(session, x, value)
    bystander.over.set()
    bystander.join()
    print(f"slowest of {bystander.count}: {1000 * bystander.slowest:.0f} ms")
    assert not bystander.wrong
    assert deaths.count == 18
    assert not server.said("event=session lost")


@pytest.mark.parametrize("unseen", [0, 1])
def test_beside_a_long_operation(begin, deaths, unseen):
    """The operation is at hand at every death, and is not blamed: also where the worker does not learn whose thread it
    was."""
    deaths.tell("unseen", unseen)
    server = begin("--threads=1", "--tcp=127.0.0.1:0", "--tcp-open=yes")
    long, session = Session(tcp_of(server)), Session(server.path)
    value, d = np.arange(1000), raw.DTYPES.index("float32")
    x, y = session.put(value), long.put(np.ones((1000, 1000), np.float32))
    for each in (session, long):
        answer(each, each.ask("sync"))
    for _ in range(30):
        z = [long.fresh(), d, 0, [1000, 1000]]
        long.op("call", raw.CALL["matmul"], d, [[z[0], d, [1000, 1000]]], [y, y], [False])
    total = long.sum("float32", z)
    long.flush()
    for _ in range(2):
        fails(session, session.ufunc("add", "int64", [1000], x, FATAL))
        goes_on(session, x, value)
    assert get(long, total) == 1e9
    assert not server.said("event=session lost")


def test_many_at_hand(server, deaths):
    """Several sessions that die of what they do next: each of them is told, and nobody is given up for the others."""
    sessions = [Session(server.path) for _ in range(4)]
    value = np.arange(1000)
    arrays = [s.put(value) for s in sessions]
    for s in sessions:
        answer(s, s.ask("sync"))
    bad = [s.ufunc("add", "int64", [1000], x, FATAL if i else 1) for i, (s, x) in enumerate(zip(sessions, arrays))]
    for s in reversed(sessions):
        s.flush()
    assert np.array_equal(get(sessions[0], bad[0]), value + 1)
    for s, x, d in list(zip(sessions, arrays, bad))[1:]:
        fails(s, d)
        goes_on(s, x, value)
    goes_on(sessions[0], arrays[0], value)
    assert not server.said("event=session lost")


EMBEDDED = """
import os, signal
import numpy as np
import arrayd as ad
ad.connect("embedded:cpu")
value = np.arange(1000)
x = ad.asarray(value)
ad.sync()
def fails(d, *texts):
    try:
        d.get()
    except ad.ServerError as error:
        assert all(t in str(error) for t in texts), error
    else:
        raise AssertionError("it did not fail")
"""


def embedded(crashing, deaths, code, **env):
    """A program with a server of its own, which is gone when the program is."""
    plain = [sys.executable, "-W", "ignore::DeprecationWarning"]  # Python 3.12 warns of each fork beside threads
    run = subprocess.run([*plain, "-c", EMBEDDED + code], capture_output=True, text=True, timeout=raw.WINDOW,
                         env={**os.environ, "ARRAYD_BACKEND_PATH": str(crashing), "ARRAYD_BIN": raw.PROGRAM,
                              "AD_TEST_CRASHES": str(deaths.folder), "ASAN_OPTIONS": "handle_segv=0", **env})
    assert run.returncode == 0, run.stderr
    assert not [line for line in run.stderr.splitlines() if not line.startswith("time=")], run.stderr


def test_embedded(crashing, deaths, late):
    """A program's own server loses no more than the operation."""
    embedded(crashing, deaths, """
bad, y = x + 6661, x * 2
fails(bad, "add", "crashed 3 times", "please report this")
assert (y.get() == 2 * value).all()
ad.sync()
x += 1
assert (x.get() == value + 1).all()
""", **late)
    assert deaths.count == 3


def test_embedded_and_killed(crashing, deaths, late):
    embedded(crashing, deaths, """
for i in range(5):
    worker = ad.stat()["worker_pid"]
    os.kill(worker, signal.SIGKILL)
    assert (x.get() == value).all() and ad.stat()["worker_pid"] != worker
    child = os.fork()
    if not child:
        ok = (x.get() == value).all()
        os.kill(ad.stat()["worker_pid"], signal.SIGKILL)
        os._exit(0 if ok and ((x + 1).get() == value + 1).all() else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert (x.get() == value).all()
""", **late)
    assert deaths.count == 0


def test_embedded_that_is_killed_itself(crashing, deaths):
    """A program whose own server is killed has nothing to go on with, and is told at once."""
    embedded(crashing, deaths, """
os.kill(ad.stat()["worker_pid"], signal.SIGSTOP)
os.kill(int(open(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read().split()[0]), signal.SIGKILL)
try:
    x.get()
except ConnectionError as error:
    assert "gone" in str(error), error
else:
    raise AssertionError("there is an answer")
""")
