"""A worker that is killed loses nobody's arrays: another one goes on with its sessions, from the byte where they were.

ARRAYD_KILLS=1000 makes the storm as long as that.
"""
import fcntl
import os
import pathlib
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import raw
from raw import Closed, Failed, message, wait_until
from returning import RESUME, Session, add_one, count_to_a_thousand, refused, tcp_of

HERE = pathlib.Path(__file__).parent
OPEN = ["--tcp=127.0.0.1:0", "--tcp-open=yes"]
SOURCE = """
extern "C" __global__ void wild(long long *x) { x[0] = 5; *(volatile long long *)(x[0] - 5) = 1; }
"""
DROPPED = ("shared_buffers", "capabilities", "published", "orphans", "used_bytes", "slab_bytes")


def kill(server, worker=None):
    """The worker is killed and another one has taken over."""
    worker = worker or server.worker
    times = sum("event=recovered" in line for line in server.lines)
    os.kill(worker, signal.SIGKILL)
    wait_until(lambda: sum("event=recovered" in line for line in server.lines) > times, "another worker goes on")


LATE = {"ARRAYD_CPU_LATE": "1"}


@pytest.fixture(params=["", "late"])
def server(request, start):
    return start(*OPEN, env=LATE if request.param else {})


@pytest.fixture(params=["unix", "tcp"])
def address(request, server):
    return server.path if request.param == "unix" else tcp_of(server)


def test_a_session_that_leaves_in_the_middle(server):
    """Operations that are held, and what they were the last to use, go with it."""
    watcher = Session(server.path)
    for i in range(30):
        session = Session(server.path)
        arrays = [session.put(np.arange(1 << 17))]
        arrays += [session.ufunc("add", "int64", [1 << 17], arrays[0], k) for k in range(30)]
        session.sync()
        for x in arrays:
            session.ufunc("add", "int64", [1 << 17], x, x)
            session.free(x)
        session.flush()
        until = time.monotonic() + i * 0.0003
        while time.monotonic() < until:  # it is somewhere between the first and the last
            pass
        session.send(raw.frame(flags=4))
        session.close()
    wait_until(lambda: watcher.stat("sessions") == 1, "they have gone")
    assert watcher.stat("used_bytes") == 0


def test_arrays_are_there_again(server, address):
    session = Session(address)
    values = [np.arange(n, dtype=d) for n in (0, 1, 5, 70_000, 1_300_000) for d in ("int64", "float32", "complex128")]
    arrays = [session.put(v) for v in values]
    session.free(arrays.pop(3), arrays.pop(3))
    del values[3:5]
    session.sync()
    before = session.stat()
    for _ in range(3):
        kill(server)
        session.come_back()
        for array, value in zip(arrays, values):
            assert np.array_equal(session.get(array), value)
        after = session.stat()
        for name in ("buffers", "buffer_bytes", "ops_done"):
            assert after[name] == before[name], name
        assert after["used_bytes"] >= before["buffer_bytes"]
    session.free(*arrays)
    session.sync()
    assert session.stat("used_bytes") == 0
    kill(server)
    session.come_back()
    assert session.stat("slab_bytes") == 0


def test_errors_stay_with_their_arrays(server):
    session = Session(server.path)
    bad = session.ufunc("add", "float64", [3], [99, 13, 0, [3]], [99, 13, 0, [3]])
    worse = session.ufunc("add", "float64", [3], bad, bad)
    with pytest.raises(Failed, match="no buffer 99") as first:
        session.get(bad)
    session.op("free", [1234])  # no array carries that
    session.flush()
    kill(server)
    session.come_back()
    with pytest.raises(Failed, match="free: there is no buffer 1234"):
        session.sync()
    kill(server)
    session.come_back()
    for array in (bad, worse):
        with pytest.raises(Failed) as again:
            session.get(array)
        assert again.value.args == first.value.args
    session.sync()


def test_what_was_sent_is_executed_once(server, address):
    """The worker dies somewhere among a thousand operations, each of which counts."""
    rng = random.Random(1)
    lost = 0
    for _ in range(15):
        session = Session(address)
        x, y = session.put(np.zeros(10, np.int64)), session.put(np.arange(1000))
        session.sync()
        count_to_a_thousand(session, x, rng)
        request = session.ask("read", y)
        worker = server.worker
        if rng.random() < 0.5:
            assert session.reply(request)
            request = None
        kill(server, worker)
        session.come_back()
        if request:
            assert np.array_equal(np.frombuffer(session.reply(request)[1], np.int64), np.arange(1000))
        try:
            assert session.get(x).tolist() == [1000] * 10
        except Failed as error:
            assert "in place" in error.text
            lost += 1
        session.close()
    assert lost < 15


def answers_come_once(server, session, sizes, lengths, replace):
    """Read the answers, each time up to another byte when the worker is replaced, and check that each comes once."""
    values = [np.full(n, n) for n in sizes]
    arrays = [session.put(v) for v in values]
    session.sync()
    for length in lengths:
        requests = [(session.ask("read", a), v) for a, v in zip(arrays, values)]
        first = session.exactly(length)
        replace(server)
        session.come_back()
        session.begun += first
        for request, value in requests:
            assert np.array_equal(np.frombuffer(session.reply(request)[1], np.int64), value)


def test_answers_on_their_way_come_once(server, address):
    answers_come_once(server, Session(address), (3, 3000, 300_000), [100] * 5, kill)


def test_a_long_answer_goes_on(server):
    session = Session(tcp_of(server))
    values = np.arange(6_000_000)
    array = session.put(values)
    session.sync()
    request = session.ask("read", array)
    first = session.exactly(10_000_000)
    kill(server)
    session.come_back()
    session.begun += first
    assert np.array_equal(np.frombuffer(session.reply(request)[1], np.int64), values)


def window(session, number, size):
    """A window, whose descriptor goes with its request; the memory."""
    fd = os.memfd_create("window", os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
    session.pass_on(raw.frame(message("window", number, size)), fd)
    session.operations += 1
    return fd


def through_windows(session, x, load, fetch, value):
    """Values through one window to an array and through another one back; a window is a number and a descriptor."""
    n, size = x[3][0], 8 * x[3][0]
    os.pwrite(load[1], np.full(n, value).tobytes(), 0)
    session.op("load", x[0], 0, load[0], 0, size)
    session.reply(session.ask("fetch", x, fetch[0], 0))
    assert np.frombuffer(os.pread(fetch[1], size, 0), np.int64).tolist() == [value] * n


def test_windows_stay_open(server):
    session = Session(server.path)
    size = 1 << 16
    x = session.put(np.zeros(size // 8, np.int64))
    fds = [window(session, n, size) for n in (1, 2, 3)]
    session.op("window_drop", 2)
    session.sync()
    for i in range(4):
        kill(server)
        session.come_back()
        through_windows(session, x, (3, fds[2]), (1, fds[0]), i)
        fds.append(window(session, 10 + i, size))
        session.sync()
    with pytest.raises(Failed, match="no window 2"):
        session.reply(session.ask("fetch", x, 2, 0))
    assert session.stat("window_bytes") == 6 * size


def empty(session, n):
    """The description of an array whose memory has what was there."""
    x = [session.fresh(), raw.DTYPES.index("int64"), 0, [n]]
    session.op("empty", [x[0], x[1], x[3]])
    return x


def test_an_array_that_uploads_fill_as_the_worker_goes(server):
    """The next worker knows whether an array is whole: a part that it refuses spoils what is not, and nothing else."""
    session = Session(server.path)
    half, whole, output = (empty(session, 1024) for _ in range(3))
    os.pwrite(window(session, 1, 8192), np.full(1024, 7).tobytes(), 0)
    session.sync()  # the next worker begins behind this: what changes is in the rows
    session.op("load", half[0], 0, 1, 0, 4096)
    session.op("load", whole[0], 0, 1, 0, 4096)
    session.op("load", whole[0], 4096, 1, 4096, 4096)
    session.op("ufunc", raw.UFUNC["add"], output[1], [output], [session.put(np.full(1024, 3)), 4], [])
    session.sync()
    kill(server)
    session.come_back()
    session.op("load", half[0], 4096, 99, 0, 4096)
    session.sync()
    with pytest.raises(Failed, match="load: there is no window 99"):
        session.get(half)
    for x in (whole, output):
        session.op("load", x[0], 0, 99, 0, 4096)
        with pytest.raises(Failed, match="load: there is no window 99"):
            session.sync()
        assert session.get(x).tolist() == [7] * 1024


def test_a_window_that_comes_as_the_worker_goes(server):
    session = Session(server.path)
    x = session.put(np.arange(512))
    session.sync()
    for n in range(1, 20):
        worker = server.worker
        fd = window(session, n, 4096)
        kill(server, worker)
        session.come_back()
        session.reply(session.ask("fetch", x, n, 0))
        assert np.frombuffer(os.pread(fd, 4096, 0), np.int64).tolist() == list(range(512))


def test_streams_and_events(server):
    session = Session(server.path)
    session.op("stream", 100, 0, 1)
    session.op("on", 100)
    x = session.put(np.zeros(3, np.int64))
    session.op("event", 5, 100, 1)
    session.op("event", 6, 100, 1)
    session.sync()
    kill(server)
    session.come_back()
    session.out += add_one(session, x)
    session.operations += 1
    session.op("after", 0, 5)
    session.reply(session.ask("wait", 1, 6))
    with pytest.raises(Failed, match="lost with the worker"):
        session.reply(session.ask("elapsed", 5, 6))
    session.op("event", 5, 100, 1)
    session.op("event", 6, 100, 1)
    session.reply(session.ask("elapsed", 5, 6))
    session.op("stream_drop", 100)
    session.op("event_drop", 5)
    session.sync()
    kill(server)
    session.come_back()
    with pytest.raises(Failed, match="no event 5"):
        session.reply(session.ask("wait", 1, 5))
    assert session.get(x).tolist() == [1, 1, 1]


def leave_behind(server, values, name):
    """An array that only a name holds, as its session has gone."""
    gone = Session(server.path)
    array = gone.put(values)
    gone.reply(gone.ask("publish", array, 0, name, ""))
    gone.send(raw.frame(flags=4))
    gone.close()
    return array


def test_shared_arrays(server):
    """Names and capabilities as well, also those whose session has gone; and nobody sees another one's writes."""
    one, other = Session(server.path), Session(server.path)
    x = one.put(np.arange(10_000))
    (a, b, number), _ = one.reply(one.ask("share", x[0], 2, 0, 60_000))
    one.reply(one.ask("publish", x, 0, "good", "*"))
    y = one.put(np.ones(100))
    one.reply(one.ask("publish", y, 1, "common", ""))
    z = leave_behind(server, np.full(500, 7), "left")
    wait_until(lambda: one.stat("sessions") == 2, "it has gone")
    for i in range(3):
        kill(server)
        one.come_back()
        other.come_back()
        assert one.stat("published") == 3 and one.stat("capabilities") == 1
        buffer = other.fresh()
        other.reply(other.ask("attach_name", buffer, "", "good"))
        theirs = [buffer, x[1], 0, x[3]]
        assert np.array_equal(other.get(theirs), np.arange(10_000))
        one.out += add_one(one, x)  # a copy, as others hold it
        one.operations += 1
        one.sync()
        assert np.array_equal(one.get(x), np.arange(10_000) + i + 1)
        assert np.array_equal(other.get(theirs), np.arange(10_000))
        buffer = other.fresh()
        other.reply(other.ask("attach_name", buffer, "", "left"))
        assert other.get([buffer, z[1], 0, z[3]]).tolist() == [7] * 500
        buffer = other.fresh()
        other.reply(other.ask("attach_name", buffer, "", "common"))
        other.op("ufunc", raw.UFUNC["add"], raw.DTYPES.index("float64"), [[buffer, y[1], 0, y[3]]],
                 [[buffer, y[1], 0, y[3]], 1.0], [])
        other.sync()
        assert one.get(y).tolist() == [i + 2.0] * 100
    buffer = other.fresh()
    assert other.reply(other.ask("attach", buffer, a % 2**64, b % 2**64))[0][2] == 0
    assert np.array_equal(other.get([buffer, x[1], 0, x[3]]), np.arange(10_000))
    kill(server)
    one.come_back()
    other.come_back()
    other.reply(other.ask("attach", other.fresh(), a % 2**64, b % 2**64))
    with pytest.raises(Failed, match="no such capability"):
        other.reply(other.ask("attach", other.fresh(), a % 2**64, b % 2**64))
    for name in ("good", "common", "left"):
        one.reply(one.ask("unpublish", name))
    one.free(x, y)
    one.sync()
    other.free(*range(1, other.buffers))  # the last was not attached
    other.sync()
    counters = one.stat()
    assert {name: counters[name] for name in DROPPED[:5]} == dict.fromkeys(DROPPED[:5], 0)


def sums_of(session, size, count, x, chained):
    """Sums of x with 0, 1, ...; chained: among operations that a chain of theirs is made of."""
    sums, last = [], session.ufunc("add", "int64", [size], x, 0)
    for k in range(count):
        sums.append(session.ufunc("add", "int64", [size], x, k))
        if chained:
            following = session.ufunc("add", "int64", [size], last, 1)
            session.free(last)
            last = following
    return sums


@pytest.mark.parametrize("chained", [False, True])
def test_memory_that_is_used_again(start, chained):
    """An array is freed, and its memory used, behind operations that read it and that another worker executes again."""
    server = start(env={"ARRAYD_FUSE": "1"} if chained else {})
    rng, size = random.Random(3), 16
    for _ in range(40):
        session = Session(server.path)
        x, z = session.put(np.arange(size)), session.put(np.zeros(size, np.int64))
        session.sync()
        early = sums_of(session, size, 150, x, chained)
        middle = sums_of(session, size, 150, z, chained)
        session.free(x)
        late = sums_of(session, size, 2000, z, False)
        worker = server.worker
        session.flush()
        until = time.monotonic() + rng.random() * 0.003
        while time.monotonic() < until:  # it is somewhere in the middle
            pass
        kill(server, worker)
        session.come_back()
        for k, y in enumerate(early):
            assert np.array_equal(session.get(y), np.arange(size) + k)
        for k, y in [*enumerate(middle)][::17] + [*enumerate(late)][::17]:
            assert session.get(y).tolist() == [k] * size
        session.send(raw.frame(flags=4))
        session.close()


def test_what_every_worker_is_killed_by_is_left_out(start):
    server = start(env={"ARRAYD_FAULT": "run:1:killed"})
    other, session = Session(server.path), Session(server.path)
    other.sync()
    x = session.put(np.arange(5))
    bad = session.ufunc("add", "int64", [5], x, x)
    session.flush()
    wait_until(lambda: sum("event=recovered" in line for line in server.lines) == 8, "that is enough")
    session.come_back()
    with pytest.raises(Failed, match="the worker was killed 8 times while executing it"):
        session.get(bad)
    assert session.get(x).tolist() == [0, 1, 2, 3, 4]
    other.come_back()
    other.sync()


def test_who_does_not_come_back_is_forgotten(start):
    server = start("--resume-time=2")
    session, other = Session(server.path), Session(server.path)
    session.put(np.ones(100_000))
    session.sync()
    other.sync()
    kill(server)
    other.come_back()
    wait_until(lambda: server.said("session forsaken"), "it was waited for")
    wait_until(lambda: other.stat("sessions") == 1 and other.stat("slab_bytes") == 0, "all of it has gone")


def test_workers_that_die_while_they_take_over(server):
    """Each dies soon after it was started: none has taken over what the next one then must."""
    session = Session(server.path)
    values = np.arange(50_000)
    x = session.put(values)
    session.sync()
    rng = random.Random(5)
    over = threading.Event()
    for _ in range(40):
        worker = server.worker
        if worker:
            over.wait(rng.random() * 0.01)
            try:
                os.kill(worker, signal.SIGKILL)
            except ProcessLookupError:
                pass
    kill(server, server.worker) if server.worker else wait_until(lambda: server.worker, "another one")
    wait_until(lambda: comes_back(session), "it can be taken up again")
    assert np.array_equal(session.get(x), values)


def comes_back(session):
    try:
        session.come_back()
    except Closed as closed:
        assert closed.code != RESUME, closed.text
        return False
    return True


def journal(server):
    """The file that the worker writes its state to, as arrayd holds it."""
    for fd in pathlib.Path(f"/proc/{server.pid}/fd").iterdir():
        if "arrayd-journal" in os.readlink(fd):
            return fd
    raise AssertionError("there is no journal")


def scribble(server, rng, times, first, values):
    """The worker dies with something else in its journal; values: of where it is written, and of how much was in use."""
    worker = server.worker
    os.kill(worker, signal.SIGSTOP)
    with open(journal(server), "r+b") as file:
        used = file.seek(0, os.SEEK_HOLE)
        for _ in range(times):
            at = rng.randrange(first, used) // 8 * 8
            file.seek(at)
            file.write(rng.choice(values(at, used)).to_bytes(8, "little"))
    kill(server, worker)


@pytest.mark.parametrize("seed", range(6))
def test_a_journal_that_was_scribbled_on(server, seed):
    """The cause of a worker's death may have written into the journal, too. The next worker loses sessions at worst."""
    sessions = [Session(server.path) for _ in range(4)]
    for session in sessions:
        arrays = [session.put(np.arange(n)) for n in (3, 100, 5000)]
        session.reply(session.ask("publish", arrays[0], 0, f"name{session.id}", ""))
        session.reply(session.ask("share", arrays[1][0], 0, 0, 0))
        session.sync()
    rng = random.Random(seed)
    scribble(server, rng, 4000, 0 if seed % 2 else 24,
             lambda at, used: [0, 1, 8, 2**63, 2**64 - 1, at, at + 64, rng.randrange(used), rng.randrange(2**64)])
    fresh = Session(server.path)
    assert fresh.get(fresh.put(np.arange(9))).tolist() == list(range(9))
    assert sum("worker exited" in line for line in server.lines) == 1, server.lines


def test_a_session_whose_number_is_lost(start, tmp_path):
    """The next worker tells of the end of session 0 while clients wait: each of them is handed on once."""
    gate = tmp_path / "gate"
    worker = raw.script_worker(tmp_path / "worker", f'[ ! -e "{gate}" ] || read -r line <"{gate}"')
    server = start(f"--worker={worker}")
    session = Session(server.path)
    session.sync()
    os.kill(server.worker, signal.SIGSTOP)
    os.mkfifo(gate)
    with open(journal(server), "r+b") as file:
        at, = struct.unpack_from("<Q", file.read(40), 32)  # of the session: next, number, process, whether it goes on
        file.seek(at + 8)
        number, process = struct.unpack("<QQ", file.read(16))
        assert number == session.id
        file.seek(at + 8)
        file.write(struct.pack("<QQQ", 0, process, 0))
    os.kill(server.worker, signal.SIGKILL)
    wait_until(lambda: server.said("worker exited"), "it has been noticed")
    clients = [raw.Client(server.path, greet=False) for _ in range(8)]
    for client in clients:
        client.send(raw.hello())
    with open(gate, "w") as begin:  # as soon as the next worker is there
        begin.write("\n")
    welcomes = [client.receive_message() for client in clients]
    assert {welcome[0] for welcome in welcomes} == {raw.REQUEST["welcome"]}
    wait_until(lambda: server.said("session=0 why="), "the log says that session 0 is over")
    for i, client in enumerate(clients):
        assert client.get(client.put(np.arange(i))).tolist() == list(range(i))
    assert clients[0].stat("sessions") == len(clients)
    assert len({welcome[3] for welcome in welcomes}) == len(clients)


def build(session, number):
    values, log = session.reply(session.ask("build", number, SOURCE, [], []))
    assert values[0], log


def test_a_wild_kernel_spoils_what_it_was_given(start):
    server = start(*OPEN)
    session, other = Session(server.path), Session(server.path)
    x, y, z = session.put(np.arange(3)), session.put(np.arange(3)), other.put(np.arange(9))
    other.sync()
    build(session, 1)
    session.op("launch", 1, "wild", [1, 1, 1, 3, 1, 1, 0, 0], [x], [], [])
    session.flush()
    wait_until(lambda: server.said("event=recovered"), "the worker is gone, and another one there")
    session.come_back()
    other.come_back()
    with pytest.raises(Failed, match="in place"):
        session.get(x)
    assert session.get(y).tolist() == [0, 1, 2] and np.array_equal(other.get(z), np.arange(9))


def export(session, array):
    """The array's memory, as the server hands it out; and the socket that is the lease."""
    ours, theirs = socket.socketpair()
    session.flush()
    session.requests += 1
    session.pass_on(raw.frame(message("export", session.requests, array[0], 0)), theirs.fileno())
    session.reply(session.requests)
    _, fds, _, _ = socket.recv_fds(ours, 64, 1)
    return fds[0], ours


def test_exported_memory(server):
    """The next worker finds the memory where it was moved to. The process that has it keeps it, but not the lease."""
    one, other = Session(server.path), Session(server.path)
    x = one.put(np.arange(1000))
    one.reply(one.ask("publish", x, 1, "common", ""))
    buffer = other.fresh()
    other.reply(other.ask("attach_name", buffer, "", "common"))
    fd, lease = export(one, x)
    filler = [one.put(np.full(1000, -1)) for _ in range(20)]  # where it was
    for i in range(3):
        kill(server)
        one.come_back()
        other.come_back()
        os.pwrite(fd, (i + 5).to_bytes(8, "little"), 0)
        for session, array in ((one, x), (other, [buffer, *x[1:]])):
            assert session.get(array)[:3].tolist() == [i + 5, 1, 2]
    third = Session(server.path)
    buffer = third.fresh()
    third.reply(third.ask("attach_name", buffer, "", "common"))
    assert third.get([buffer, *x[1:]])[:3].tolist() == [7, 1, 2]
    assert lease.recv(1) == b"" and one.stat("exports") == 0
    assert one.get(filler[-1])[0] == -1


@pytest.mark.parametrize("url", ["unix", "tcp"])
def test_storm(server, url):
    """A program computes while its worker is killed at random times; it notices nothing but what was changed in place."""
    kills = int(os.environ.get("ARRAYD_KILLS", 24))
    address = f"unix:{server.path}" if url == "unix" else "tcp:{}:{}".format(*tcp_of(server))
    done = subprocess.run([sys.executable, str(HERE / "storm.py"), address, str(server.pid), str(kills), str(kills)],
                          capture_output=True, text=True, timeout=150 + kills)
    assert done.returncode == 0, done.stdout + done.stderr
    killed, compared, lost, *_ = map(int, re.findall(r"\d+", done.stdout))
    assert killed == kills and compared > kills and lost < compared
    wait_until(lambda: raw.descriptors(server.pid) < 60, "nothing is kept")
