"""Survival where operations are complete later than they are executed, as on a GPU. Another worker begins with a state
that the device had passed, and executes again what may have been executed already.

A worker is killed while its device is at something slow, so the tests know what was complete.
"""
import os
import random
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

import raw
from raw import Failed, message, wait_until
from returning import Session, add_one
from test_recovery import HERE, LATE, OPEN, kill, window
from wild import CULPRIT, client

I64 = raw.DTYPES.index("int64")


@pytest.fixture
def server(start):
    return start(*OPEN, env=LATE)


def call(session, name, shape, inputs, parameters=()):
    out = session.fresh()
    session.op("call", raw.CALL[name], I64, [[out, I64, list(shape)]], inputs, list(parameters))
    return [out, I64, 0, list(shape)]


SIDE = 500
FACTOR = np.random.default_rng(1).integers(-9, 9, (SIDE, SIDE))
PRODUCT = FACTOR @ FACTOR


def slow(session, times=4):
    """The current stream has something to do for a while; a product of it."""
    x = session.put(FACTOR)
    products = [call(session, "matmul", [SIDE, SIDE], [x, x], [False]) for _ in range(times)]
    session.free(x, *products[:-1])
    return products[-1]


def write(session, x, values):
    session.flush()
    session.operations += 1
    session.send(raw.frame(message("write", x[0], 0), values.tobytes()))


def kill_at_work(server, session):
    """The worker is killed when all that was sent has been enqueued, before the device has done with it."""
    worker = server.worker
    complete = session.stat("ops_done")  # an answer that waits for nothing
    kill(server, worker)
    assert complete < session.operations, "the device was too quick for this test"
    session.come_back()


def test_what_is_under_way_is_executed_again(server):
    """Nothing that was complete is lost, nor what only depends on it; what was being changed where it is says so."""
    session = Session(server.path)
    x, y, z = (session.put(np.arange(1000) * i) for i in (1, 2, 3))
    session.sync()
    for _ in range(4):
        wanted = session.get(x) + session.get(y)
        big = slow(session)
        total = session.ufunc("add", "int64", [1000], x, y)
        session.out += add_one(session, z)
        session.operations += 1
        late = session.ufunc("add", "int64", [1000], z, x)
        kill_at_work(server, session)
        assert np.array_equal(session.get(total), wanted)
        assert np.array_equal(session.get(big), PRODUCT)
        for lost in (z, late):
            with pytest.raises(Failed, match="in place"):
                session.get(lost)
        assert np.array_equal(session.get(x), np.arange(1000))
        session.free(z, late, big, total)
        z = session.put(np.arange(1000))


def test_freed_memory_stays_until_it_is_not_needed(server):
    """Operations that are executed again read arrays that were freed behind them. Others would have got the memory."""
    session = Session(server.path)
    arrays = [session.put(np.full(5000, i)) for i in range(20)]
    session.sync()
    for _ in range(3):
        slow(session)
        sums = [session.ufunc("add", "int64", [5000], a, b) for a, b in zip(arrays, arrays[1:])]
        values = [i + i + 1 for i in range(len(sums))]
        session.free(*arrays)
        over = [[session.new("int64", [5000]), I64, 0, [5000]] for _ in range(40)]  # zeros
        kill_at_work(server, session)
        for array, value in zip(sums, values):
            assert session.get(array).tolist() == [value] * 5000
        session.free(*sums)
        arrays = over[:20]
        for i, array in enumerate(arrays):
            write(session, array, np.full(5000, i))
        session.free(*over[20:])
        session.sync()
    session.free(*arrays)
    session.sync()


def test_an_upload_into_what_was_read_before(server):
    """The write may have been complete when the sum before it is executed again."""
    session = Session(server.path)
    x = session.put(np.arange(1000))
    session.sync()
    slow(session)
    total = session.ufunc("add", "int64", [1000], x, x)
    write(session, x, np.zeros(1000, np.int64))
    y = session.put(np.arange(1000))  # nothing has read this one
    kill_at_work(server, session)
    for lost in (x, total):
        with pytest.raises(Failed, match="in place"):
            session.get(lost)
    assert session.get(y).tolist() == list(range(1000))


def test_checks_that_are_deferred(server):
    """Errors that the device finds are found again, and belong to the same operation."""
    session = Session(server.path)
    x = session.put(np.arange(100))
    good, bad = session.put(np.array([3, 4])), session.put(np.array([3, 100]))
    session.sync()
    for _ in range(3):
        big = slow(session)
        one = call(session, "gather", [2], [x, good])
        wrong = call(session, "gather", [2], [x, bad])
        number = session.operations
        worse = session.ufunc("add", "int64", [2], wrong, one)
        session.op("free", [12345])
        session.free(big)
        kill_at_work(server, session)
        with pytest.raises(Failed, match="free: there is no buffer 12345"):
            session.sync()
        assert session.get(one).tolist() == [3, 4]
        for array in (wrong, worse):
            with pytest.raises(Failed, match="100") as failed:
                session.get(array)
            assert failed.value.number == number and failed.value.name == "gather"
        kill(server)
        session.come_back()
        session.sync()
        with pytest.raises(Failed, match="100"):
            session.get(worse)


def test_many_deferred_checks_while_workers_die(server):
    """Failures spoil the state that was to be written down: it is taken again."""
    session, rng = Session(server.path), random.Random(3)
    x = session.put(np.arange(50))
    session.sync()
    made = []
    for _ in range(12):
        for _ in range(150):
            at = [rng.randrange(60) for _ in range(3)]
            index = session.put(np.array(at))
            made.append((call(session, "gather", [3], [x, index]), at))
            session.free(index)
            if len(made) > 60:
                session.free(made.pop(rng.randrange(60))[0])
        session.flush()
        kill(server)
        session.come_back()
        for array, at in rng.sample(made, 20):
            if max(at) < 50:
                assert session.get(array).tolist() == at
            else:
                with pytest.raises(Failed, match="out of bounds|beyond|index"):
                    session.get(array)


def test_answers_do_not_wait_for_other_streams(server):
    """Answers are not given twice either, whatever the worker had to execute again when it was killed."""
    session = Session(server.path)
    x = session.put(np.arange(1000))
    session.op("stream", 100, 0, 1)
    session.sync()
    early = 0
    for _ in range(20):
        session.op("on", 100)
        big = slow(session, 8)
        session.op("event", 7, 100, 0)
        session.op("on", 0)
        small = session.ufunc("add", "int64", [1000], x, x)
        assert np.array_equal(session.get(small), np.arange(1000) * 2)
        session.op("free", [999_999])
        session.flush()
        with pytest.raises(Failed, match="999999"):
            session.get(small)
        total = session.sum("int64", small)
        assert session.get(total) == 999_000
        early += session.reply(session.ask("done", 1, 7))[0] == [False]
        session.op("on", 100)
        session.free(slow(session))
        session.op("on", 0)
        kill_at_work(server, session)
        assert np.array_equal(session.get(small), np.arange(1000) * 2) and session.get(total) == 999_000
        session.sync()  # the failure was told
        assert np.array_equal(session.get(big), PRODUCT)
        session.free(big, small, total)
        if early == 3:
            break
    assert early, "the other stream was too quick each time"


def test_windows_are_their_clients_again(server):
    """Bytes that were fetched have been handed over and are not written again. Bytes that were loaded are, from a
    window that has gone."""
    session = Session(server.path)
    size = 1 << 13
    x = session.put(np.arange(size // 8))
    session.op("stream", 100, 0, 1)
    session.sync()
    for n in (1, 3, 5):
        fds = [window(session, n + i, size) for i in range(2)]
        session.sync()
        session.op("on", 100)
        session.free(slow(session, 8))
        session.op("on", 0)
        session.reply(session.ask("fetch", x, n, 0))
        assert np.array_equal(np.frombuffer(os.pread(fds[0], size, 0), np.int64), np.arange(size // 8))
        os.pwrite(fds[0], b"\1" * size, 0)
        os.pwrite(fds[1], np.full(size // 8, n).tobytes(), 0)
        y = [session.new("int64", [size // 8]), I64, 0, [size // 8]]
        session.op("load", y[0], 0, n + 1, 0, size)
        session.op("window_drop", n + 1)
        session.flush()
        kill(server)
        session.come_back()
        assert session.get(y).tolist() == [n] * (size // 8)
        assert os.pread(fds[0], size, 0) == b"\1" * size
        with pytest.raises(Failed, match="no window"):
            session.reply(session.ask("fetch", x, n + 1, 0))


def test_a_window_that_may_be_written_again(server):
    """A client that waits for the stream of a load may write the window again, so the load must not be executed
    again."""
    session = Session(server.path)
    fd = window(session, 1, 8000)
    session.op("stream", 100, 0, 1)
    session.sync()
    for n in range(3):
        session.op("on", 100)
        session.free(slow(session))
        session.op("on", 0)
        x = [session.new("int64", [1000]), I64, 0, [1000]]
        os.pwrite(fd, np.full(1000, n).tobytes(), 0)
        session.op("load", x[0], 0, 1, 0, 8000)
        session.reply(session.ask("wait", 0, 0))
        os.pwrite(fd, np.full(1000, -1).tobytes(), 0)
        kill(server)
        session.come_back()
        assert session.get(x).tolist() == [n] * 1000


def test_short_of_memory(start):
    """Freed memory that may yet be needed is waited for: what fits is computed, and is there after each kill."""
    server, rng = start(*OPEN, "--memory=12M", "--slab=2M", env=LATE), random.Random(2)
    session = Session(server.path)
    n = 200_000
    x, value = session.put(np.zeros(n, np.int64)), 0
    one = session.put(np.ones(n, np.int64))
    session.sync()
    for _ in range(10):
        for _ in range(rng.randrange(5, 60)):
            y = session.ufunc("add", "int64", [n], x, one)
            session.free(x)
            x, value = y, value + 1
        session.flush()
        worker = server.worker
        if rng.random() < 0.5:
            assert session.reply(session.ask("read", [x[0], I64, 0, [3]]))[1]
        kill(server, worker)
        session.come_back()
        assert session.get([x[0], I64, 8 * (n - 3), [3]]).tolist() == [value] * 3
    assert session.stat("memory_refused") == 0


def test_shared_arrays_while_their_maker_computes(server):
    """A session that attaches an array has all of it, also if the worker that made it ends at once."""
    one, other = Session(server.path), Session(server.path)
    for i in range(4):
        big = slow(one)
        one.reply(one.ask("publish", big, 0, f"name{i}", ""))
        buffer = other.fresh()
        other.reply(other.ask("attach_name", buffer, "", f"name{i}"))
        theirs = [buffer, *big[1:]]
        copy = other.ufunc("add", "int64", big[3], theirs, theirs)
        one.out += add_one(one, big)  # a copy, as others hold it
        one.operations += 1
        one.flush()
        other.free(theirs)
        other.flush()
        kill(server)
        one.come_back()
        other.come_back()
        assert np.array_equal(other.get(copy), PRODUCT * 2)
        try:
            assert np.array_equal(one.get(big), PRODUCT + 1)
        except Failed as error:
            assert "in place" in error.text
        one.reply(one.ask("unpublish", f"name{i}"))
        one.free(big)
        other.free(copy)


def ask_before_slow(session, name, *fields, then=b""):
    """A request, and something slow in the same frame, so that no checkpoint has the request for a while. then: an
    operation in between."""
    x = session.put(FACTOR)
    session.sync()
    session.requests += 1
    session.out += message(name, session.requests, *fields) + then
    session.operations += bool(then)
    for _ in range(4):
        call(session, "matmul", [SIDE, SIDE], [x, x], [False])
    session.flush()
    return session.requests


@pytest.mark.parametrize("uses", [1, 2])
def test_a_use_of_a_capability_counts_once(server, uses):
    """The worker is killed when it has counted the use, before a checkpoint has it: the request is executed again."""
    one, other = Session(server.path), Session(server.path)
    x = one.put(np.arange(1000))
    half = [value % 2**64 for value in one.reply(one.ask("share", x[0], uses, 0, 60_000))[0][:2]]
    buffers = [other.fresh() for _ in range(uses)]
    for buffer in buffers:
        request = ask_before_slow(other, "attach", buffer, *half)
        if buffer == buffers[-1]:
            wait_until(lambda: one.stat("capabilities") == 0, "it is used up")
        kill(server)
        one.come_back()
        other.come_back()
        other.reply(request)
        assert np.array_equal(other.get([buffer, *x[1:]]), np.arange(1000))
    for session in (one, other):
        with pytest.raises(Failed, match="no such capability"):
            session.reply(session.ask("attach", session.fresh(), *half))
    other.free(*buffers)
    other.sync()
    assert one.stat("capabilities") == 0 and one.get(x).tolist() == list(range(1000))


def test_a_name_that_another_has_taken_meanwhile_stays(server):
    """The worker is killed when a name is gone, before a checkpoint has it, and when the name is another array's."""
    one, other = Session(server.path), Session(server.path)
    x, y = one.put(np.arange(1000)), other.put(np.ones(1000))
    one.reply(one.ask("publish", x, 0, "n", ""))
    request = ask_before_slow(one, "unpublish", "n")
    wait_until(lambda: other.stat("published") == 0, "the name is gone")
    other.reply(other.ask("publish", y, 0, "n", ""))
    kill(server)
    one.come_back()
    other.come_back()
    one.reply(request)
    buffer = one.fresh()
    one.reply(one.ask("attach_name", buffer, "", "n"))
    assert one.get([buffer, *y[1:]]).tolist() == [1] * 1000
    one.reply(one.ask("unpublish", "n"))
    with pytest.raises(Failed, match='has published nothing as "n" for '):
        one.reply(one.ask("unpublish", "n"))


def test_an_array_that_was_being_changed_is_lost_to_all_that_may_write_it(server):
    """The worker is killed when one session has attached what another has just published, and changes in the same
    breath: no checkpoint has either. The name says that the memory is common."""
    one, other = Session(server.path), Session(server.path)
    x = one.put(np.zeros(1000, np.int64))
    buffer = other.fresh()
    request = ask_before_slow(one, "publish", x, 1, "n", "", then=add_one(one, x))
    wait_until(lambda: other.stat("published") == 1, "the name is there")
    other.reply(other.ask("attach_name", buffer, "", "n"))
    kill(server)
    one.come_back()
    other.come_back()
    with pytest.raises(Failed, match="in place"):
        one.reply(request)
    for session, array in (one, x), (other, [buffer, *x[1:]]):
        with pytest.raises(Failed, match="in place"):
            session.get(array)


def test_it_can_be_turned_off(start):
    server = start(*OPEN, "--survive=no")
    session = Session(server.path)
    session.put(np.ones(100))
    session.sync()
    os.kill(server.worker, signal.SIGKILL)
    wait_until(lambda: server.said("worker exited"), "it is gone")
    with pytest.raises(raw.Closed):
        session.come_back()


def storm(server, *arguments, kills=12):
    """A program whose worker is killed again and again: arrays compared, and lost."""
    kills = int(os.environ.get("ARRAYD_KILLS", kills))
    done = subprocess.run([sys.executable, str(HERE / "storm.py"), f"unix:{server.path}", str(server.pid), str(kills),
                           *map(str, arguments)], capture_output=True, text=True, timeout=60 + 2 * kills)
    assert done.returncode == 0, "\n".join([done.stdout, done.stderr, *server.lines[-30:]])
    killed, compared, lost, *_ = map(int, re.findall(r"\d+", done.stdout))
    assert killed == kills and compared > kills
    return compared, lost


def chains_of(server, in_place):
    """Count the chains that sixty formulas of nine sums make, in one frame, behind an operation in place or not."""
    session = Session(server.path)
    x, y = session.put(np.arange(16)), session.put(np.arange(16))
    session.sync()
    if in_place:
        session.out += add_one(session, x)
        session.operations += 1
        session.sync()
    before = session.stat("fused_chains")
    for _ in range(60):
        value = x
        for _ in range(9):
            last, value = value, session.ufunc("add", "int64", [16], value, y)
            if last is not x:
                session.free(last)
    session.sync()
    made = session.stat("fused_chains") - before
    session.close()
    return made


def test_formulas_stay_whole_behind_an_operation_in_place(server):
    """The part of the last formula that has begun waits for its end, also when there is room for no more."""
    chains_of(server, False)  # with the first one of a server, kernels are still to be loaded
    assert chains_of(server, True) < 1.4 * chains_of(server, False)


def test_who_reaches_his_limit_waits_for_nobody(server):
    """Memory that another session has given up stays until the device is there; this one is not waited for."""
    other, session = Session(server.path), Session(server.path)
    given = other.put(np.ones(1000))
    other.sync()
    session.reply(session.ask("pool", 0, 2, 1 << 20))
    slow(other, 12)
    other.free(given)
    other.stat("ops_done")  # an answer that waits for nothing
    with pytest.raises(Failed, match="limit"):
        session.get([session.new("int64", [1 << 20]), I64, 0, [1 << 20]])
    assert other.stat("ops_done") < other.operations, "it has waited for the other's products"
    other.sync()


def test_a_kernel_that_killed_a_worker_is_not_launched_again(start):
    server = start("--kernel-time=1", "--kernels-cache=none", env=LATE)
    culprit = client("unix:" + server.path, CULPRIT,
                     'extern "C" __global__ void wild(int *x) { while (*(volatile int *)x == 0) {} }')
    out, err = culprit.communicate(timeout=raw.WINDOW)
    assert culprit.returncode == 0, err
    _, failed, after = out.splitlines()
    assert failed.startswith("DeviceLostError") and "kernel wild ran longer than 1 s" in failed
    assert after.split()[0] == "45.0"
    wait_until(lambda: server.said("event=recovered"), "the log says so")
    assert sum("event=recovered" in line for line in server.lines) == 1


@pytest.mark.parametrize("options", [["--memory=24M", "--slab=2M"], ["--memory=24M", "--slab=2M", "--host-memory=64M"]],
                         ids=["full", "moving"])
def test_storm_where_memory_is_short(start, options):
    compared, lost = storm(start(*options, env=LATE), 1, 60_000)
    assert lost < 2 * compared  # the more, the further the device is behind


def test_storm_in_turns(start):
    compared, lost = storm(start(env=LATE), 2, 300_000, 3)
    assert lost < 2 * compared
