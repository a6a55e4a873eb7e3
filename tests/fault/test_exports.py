"""Memory of arrays in programs that use the library: connections that break, programs that are killed, who is refused."""
import mmap
import os
import random
import signal
import socket
import subprocess
import sys

import numpy as np
import pytest

import raw
from cutting import Proxy
from places import port_of
from raw import CALL, DTYPES, UFUNC, Client, Failed, frame, message, wait_until
from returning import Session
from test_recovery import OPEN, kill
from observing import ctl

HELD = ("exports", "exported_bytes", "shared_buffers", "shared_bytes", "capabilities", "orphans", "used_bytes")


def program(code, url, **more):
    environment = {**os.environ, "ARRAYD_URL": url, "PYTHONPATH": str(raw.PACKAGE)}
    return subprocess.Popen([sys.executable, "-c", "import arrayd as ad, numpy as np\n" + code], env=environment,
                            text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)


def outcome(process):
    try:
        out, err = process.communicate(timeout=raw.WINDOW)
    finally:
        process.kill()
    assert process.returncode == 0, err[-3000:]
    return out


def nothing_left(server):
    client = Client(server.path)
    wait_until(lambda: client.stat()["sessions"] == 1 and not any(client.stat()[name] for name in HELD),
               "all memory is back")
    client.close()


CUT = """
for attempt in range(50):
    try:
        ad.connect()
        break
    except ConnectionError: # before there was a session to be taken up
        continue
kept = []
for i in range(150):
    a = ad.full(1 + 731 * i % 20_000, float(i))
    a += 1
    host = np.from_dlpack(a, copy=False)
    assert (host == i + 1).all(), i
    host[-1] = -7
    assert float(a[-1]) == -7, i
    a[0] = 5
    ad.sync()
    assert host[0] == 5, i
    kept.append(host)
    if len(kept) > 10:
        kept.pop(0)
print(ad.stat()["resumes"], ad.stat()["exports"])
"""


def test_connections_that_break_in_between(start):
    server = start()
    rng = random.Random(3)
    with Proxy(server.path, server.folder + "/p", lambda _: (rng.randrange(4000), rng.randrange(4000))):
        resumes, exports = map(int, outcome(program(CUT, f"unix:{server.folder}/p")).split())
    assert resumes > 3 and exports >= 10
    nothing_left(server)


MAKER = """
import pickle, sys
for line in sys.stdin:
    a = ad.arange(float(line))
    host = np.from_dlpack(a, copy=False)
    handle = ad.share(a, linger=0)
    print(pickle.dumps(handle).hex(), flush=True)
"""
TAKER = """
import pickle, sys
for line in sys.stdin:
    if line.strip():
        a = pickle.loads(bytes.fromhex(line)).attach()
        host = np.from_dlpack(a, copy=False)
    host[0] += 1
    print(a.size, float(host[0]), float(host[-1]), flush=True)
"""


def tell(process, line):
    process.stdin.write(f"{line}\n")
    process.stdin.flush()
    answer = process.stdout.readline()
    assert answer, process.communicate()[1][-3000:]
    return answer.strip()


def test_two_programs_have_the_same_memory_and_are_killed(start):
    """The programs are killed in either order, and the one that is left goes on with the memory."""
    server = start()
    watcher = Client(server.path)
    for size, maker_first in ((700, True), (700, False), (90_000, True), (90_000, False)):
        maker, taker = program(MAKER, f"unix:{server.path}"), program(TAKER, f"unix:{server.path}")
        try:
            handle = tell(maker, size)
            assert tell(taker, handle) == f"{size} 1.0 {size - 1}.0"
            assert watcher.stat()["exports"] == 2 and watcher.stat()["shared_bytes"] == 8 * size
            first, second = (maker, taker) if maker_first else (taker, maker)
            first.send_signal(signal.SIGKILL)
            first.wait()
            wait_until(lambda: watcher.stat()["exports"] == 1, "the lease is over")
            if maker_first:
                assert tell(taker, "") == f"{size} 2.0 {size - 1}.0"
            second.send_signal(signal.SIGKILL)
            second.wait()
            wait_until(lambda: not any(watcher.stat()[name] for name in HELD), "all memory is back")
        finally:
            maker.kill(), taker.kill()
            for each in (maker, taker):
                each.communicate()
    watcher.close()
    nothing_left(server)


REFUSED = """
a = ad.arange(1000.0)
host = np.from_dlpack(a)
host[0] = 5
assert a[0] == 0
try:
    np.from_dlpack(a, copy=False)
except BufferError as error:
    print(error)
"""


def test_over_tcp(start):
    server = start("--tcp=127.0.0.1:0", "--tcp-open=yes")
    assert "Unix socket" in outcome(program(REFUSED, f"tcp:127.0.0.1:{port_of(server, 'tcp')}"))


def test_without_the_grant(start, place):
    principals = place.folder / "principals"
    principals.write_text(f"uid:{os.getuid()} exports=no\n")
    server = start(f"--principals={principals}")
    assert "grant exports" in outcome(program(REFUSED, f"unix:{server.path}"))
    nothing_left(server)


FULL = """
b, a = ad.ones(500_000), ad.arange(250_000.0)
ad.sync()
host = np.from_dlpack(a)
host[0] = 5
assert a.get()[0] == 0 and a.get()[-1] == 249_999
try:
    np.from_dlpack(a, copy=False)
except BufferError as error:
    print(error)
"""


def test_without_memory(start, place):
    """Too little to move an array that is to be exported: there is a copy, and the array is as it was."""
    principals = place.folder / "principals"
    principals.write_text(f"uid:{os.getuid()} memory=6M\n")
    server = start(f"--principals={principals}", "--slab=32M")
    assert "out of memory" in outcome(program(FULL, f"unix:{server.path}"))
    nothing_left(server)


def test_it_is_counted(start):
    """arrayctl and the log count the export."""
    server = start("--log-level=debug")
    taker = program("a = ad.ones(1000)\nhost = np.from_dlpack(a, copy=False)\nprint(1, flush=True)\ninput()",
                    f"unix:{server.path}")
    assert taker.stdout.readline() == "1\n"
    said = ctl(server, "memory")
    assert "7.8 KiB in 1 exports" in said, said
    wait_until(lambda: server.said('event="export begins"') and server.said(f"importer={taker.pid}"), "it is in the log")
    taker.communicate("\n")
    wait_until(lambda: server.said("export ends"), "it is over")


def test_the_worker_is_killed(start):
    """The memory that a program has of an array stays readable and writable, whatever becomes of the array."""
    server = start()
    holder = program("host = np.from_dlpack(ad.arange(50_000.0), copy=False)\nprint(1, flush=True)\ninput()\n"
                     "host += 1\nprint(float(host.sum()), flush=True)", f"unix:{server.path}")
    assert holder.stdout.readline() == "1\n"
    os.kill(server.worker, signal.SIGKILL)
    wait_until(lambda: server.said("worker exited"), "it has been noticed")
    assert holder.communicate("\n")[0] == "1250025000.0\n" and holder.returncode == 0


AGAIN = """
many = [ad.full(1000, float(i)) for i in range(20)]
large = ad.arange(700_000.0)
ad.sync()
print(1, flush=True)
input()
print(float(many[7].sum()), flush=True)
memory = [np.from_dlpack(a, copy=False) for a in (many[7], many[0], large)]
for host, expected in zip(memory, (np.full(1000, 7.0), np.zeros(1000), np.arange(700_000.0)), strict=True):
    assert np.array_equal(host, expected)
    host += 1
assert float(many[7].sum()) == 8000 and float(many[0].sum()) == 1000 and float(many[8].sum()) == 8000
assert float(large[-1]) == 700_000
"""


def over_a_kill(server, code):
    """Return what a program says that goes on when the worker was killed at its input()."""
    taker = program(code, f"unix:{server.path}")
    assert taker.stdout.readline() == "1\n"
    os.kill(server.worker, signal.SIGKILL)
    wait_until(lambda: server.said("event=recovered"), "another worker goes on")
    out, err = taker.communicate("\n", timeout=raw.WINDOW)
    assert taker.returncode == 0, err[-3000:]
    nothing_left(server)
    return out


def test_arrays_of_a_worker_that_was_killed(start):
    """The restored arrays lie among others in memory that was taken over. They move before anybody sees it."""
    assert over_a_kill(start(), AGAIN) == "7000.0\n"


STILL = """
arrays = [ad.arange(float(n)) for n in (1000, 700_000)]
memory = [np.from_dlpack(a, copy=False) for a in arrays]
ad.sync()
print(1, flush=True)
input()
for a, host in zip(arrays, memory, strict=True):
    a += 1
    ad.sync()
    assert np.array_equal(host, np.arange(1.0, a.size + 1))
    again = np.from_dlpack(a, copy=False)
    host[0] = again[1] = -7
    assert a[0] == a[1] == again[0] == host[1] == -7
"""


def test_what_was_exported_stays_one_memory(start):
    """The memory stays one also when another worker goes on with the array."""
    assert over_a_kill(start(), STILL) == ""


READER = """
import pickle, sys
held = []
for line in sys.stdin:
    if line.strip():
        x = pickle.loads(bytes.fromhex(line)).attach()
        x.flags.writeable = False
        held.append(np.from_dlpack(x, copy=False))
        del x
    print(*(f"{host[0]:g} {host[-1]:g} {host.sum():g}" for host in held), flush=True)
"""
WRITER = """
import pickle, sys
a = ad.arange(float(sys.argv[1]))
for line in sys.stdin:
    step = line.strip()
    if step == "share":
        handle = ad.share(a, uses=1, linger=0)
        print(pickle.dumps(handle).hex(), flush=True)
        continue
    if step == "write":
        a += 1
    print(f"{float(a[0]):g} {float(a[-1]):g} {float(a.sum()):g}", flush=True)
"""


def told(array):
    return f"{array[0]:g} {array[-1]:g} {array.sum():g}"


def reader_and_writer(server, n):
    url = f"unix:{server.path}"
    writer = program(WRITER.replace("sys.argv[1]", str(n)), url)
    return writer, program(READER, url)


def end(*programs):
    for each in programs:
        each.kill()
        each.communicate()


@pytest.mark.parametrize("env", [{}, {"ARRAYD_CPU_LATE": "1"}], ids=["at once", "late"])
@pytest.mark.parametrize("n", [700, 3_000_000])
def test_a_reader_keeps_what_it_was_handed(start, env, n):
    """Nothing is copied for a program that reads. Who writes gets a copy, whichever worker does it: the reader's memory
    stays as it is when the worker is killed before or behind the write. Behind the reader's death all is written in place."""
    server = start(*OPEN, env=env)
    watcher = Client(server.path)
    writer, reader = reader_and_writer(server, n)
    x = np.arange(float(n))
    try:
        assert tell(writer, "read") == told(x)
        used = watcher.stat()["used_bytes"]
        assert tell(reader, tell(writer, "share")) == told(x)
        assert watcher.stat()["exports"] == 1 and watcher.stat()["exported_bytes"] == 8 * n
        assert n < 10_000 or watcher.stat()["used_bytes"] < used + 8 * n  # the array has a slab of its own anyway
        for times in (1, 2, 3):
            assert tell(writer, "write") == told(x + times) and tell(reader, "") == told(x)
            if times != 2:
                kill(server)
        second = tell(reader, tell(writer, "share"))
        assert second == f"{told(x)} {told(x + 3)}"
        kill(server)
        assert tell(writer, "write") == told(x + 4) and tell(reader, "") == second
        reader.kill()
        reader.wait()
        assert tell(writer, "write") == told(x + 5)
        watcher.close()
    finally:
        end(writer, reader)
    nothing_left(server)


def test_the_copy_for_a_reader_is_charged(start, place):
    """The writer's copy is charged: without memory for it the write fails, and both have what they had."""
    principals = place.folder / "principals"
    principals.write_text(f"uid:{os.getuid()} memory=12M\n")
    server = start(f"--principals={principals}", "--slab=1M")
    writer, reader = reader_and_writer(server, 1_000_000)
    x = np.arange(1e6)
    try:
        assert tell(writer, "read") == told(x)
        assert tell(reader, tell(writer, "share")) == told(x)
        writer.stdin.write("write\n")
        writer.stdin.flush()
        assert "out of memory" in writer.communicate(timeout=raw.WINDOW)[1]
        assert tell(reader, "") == told(x)
    finally:
        end(writer, reader)
    nothing_left(server)


def export(session, x):
    """The lease, and the elements in memory that stays mapped."""
    ours, theirs = socket.socketpair()
    session.requests += 1
    with theirs:
        session.pass_on(frame(message("export", session.requests, x[0], 0)), theirs.fileno())
        (size, *_), _ = session.reply(session.requests)
    _, (descriptor,), *_ = socket.recv_fds(ours, 200, 1)
    memory = np.frombuffer(mmap.mmap(descriptor, size), DTYPES[x[1]])
    os.close(descriptor)
    return ours, memory[:x[3][0]]


@pytest.mark.parametrize("env", [{}, {"ARRAYD_CPU_LATE": "1"}], ids=["at once", "late"])
@pytest.mark.parametrize("n", [1000, 700_000])
def test_memory_that_was_exported_is_never_another_arrays(start, env, n):
    """Exported memory stays apart also when another worker gives it back: the holder of the array may still read and
    write there."""
    server = start(env=env)
    session, other = Session(server.path), Session(server.path)
    leases, seen, arrays = [], [], []
    for kept in (True, False):
        x = session.put(np.arange(float(n)))
        lease, memory = export(session, x)
        leases.append(lease)
        seen.append(memory)
        arrays.append(x)
        if not kept:
            lease.close()
    session.sync()
    os.kill(server.worker, signal.SIGKILL)
    wait_until(lambda: server.said("event=recovered"), "another worker goes on")
    for each in (session, other):
        each.come_back()
    for x in arrays:
        assert np.array_equal(session.get(x), np.arange(float(n)))
    session.free(*arrays)
    session.sync()
    for memory in seen:
        memory[:] = -1
    for each in (session, other):
        more = [each.put(np.full(n, 5.0)) for _ in range(4)]
        for memory in seen:
            assert (memory == -1).all()
            memory[:] = -1
        for x in more:
            assert (each.get(x) == 5).all()


def count_zeros(session, x):
    """Count zeros by an operation that uses the elements as indices."""
    dtype, b = DTYPES.index("int64"), session.fresh()
    session.op("call", CALL["bincount"], dtype, [[b, dtype, [1]]], [x], [])
    return session.get([b, dtype, 0, [1]]).tolist()


@raw.cpu_only
@pytest.mark.parametrize("over", [False, True], ids=["lease", "over"])
@pytest.mark.parametrize("held", ["session", "capability"])
def test_others_are_known_to_write_there(start, held, over):
    """Other processes see what is written in place, whichever worker writes it, also where only a capability had the array
    when one was killed. Indices are copied before they are used; without memory for the copy they are refused."""
    server = start("--memory=28M", "--slab=1M", "--host-memory=0")
    session, zeros = Session(server.path), np.zeros(1 << 20, np.int64)
    own, exported = session.put(zeros), session.put(zeros)
    lease, memory = export(session, exported)
    if over:
        lease.close()
        wait_until(lambda: session.stat("exports") == 0, "the lease is over")
    if held == "capability":
        (*half, _), _ = session.reply(session.ask("share", exported[0], 0, 0, 0))
        session.free(exported)
    session.put(zeros)
    for killed in (False, True):
        if killed:
            session.sync()
            os.kill(server.worker, signal.SIGKILL)
            wait_until(lambda: server.said("event=recovered"), "another worker goes on")
            session.come_back()
        if held == "capability":
            exported[0] = session.fresh()
            session.reply(session.ask("attach", exported[0], *(each % 2**64 for each in half)))
        assert count_zeros(session, own) == [len(zeros)]
        with pytest.raises(Failed, match="out of device memory"):
            count_zeros(session, exported)
        if not over or held == "session":  # otherwise it is shared as what nobody else has
            session.op("ufunc", UFUNC["add"], exported[1], [exported], [exported, 1], [])
            session.sync()
            assert (memory == 1).all()
            memory[:] = 0
        if held == "capability":
            session.free(exported)
