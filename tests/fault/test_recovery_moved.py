"""Survival and more than fits together: arrays that lie in host memory when their worker is killed, and those on their way.

ARRAYD_KILLS=1000 makes the storms as long as that. ARRAYD_SPILL_EVERY=1 makes the server move the coldest array at each
request for memory, whether there is room or not.
"""
import os
import pathlib
import random

import numpy as np
import pytest

import raw
from raw import Failed, wait_until
from returning import Session, add_one
from test_recovery import LATE, OPEN, kill, scribble
from test_recovery_late import I64, call, kill_at_work, slow, storm, write

N = 1 << 14  # 128 KiB of int64
SMALL = ("--memory=4M", "--slab=1M", "--host-memory=32M")
STIRRED = {"ARRAYD_SPILL_EVERY": "1"}
SIDE = 1000
FACTOR = np.random.default_rng(1).integers(-9, 9, (SIDE, SIDE))


@pytest.fixture(params=["at once", "late"])
def place(request, start):
    """A function that starts a server; whether operations are complete later there."""
    def place(*options, **env):
        return start(*OPEN, *options, env={**(LATE if request.param == "late" else {}), **env})
    return place


def host_slabs(server):
    """Descriptors of host memory that arrayd holds."""
    count = 0
    for fd in pathlib.Path(f"/proc/{server.pid}/fd").iterdir():
        try:
            count += "arrayd-host" in os.readlink(fd)
        except FileNotFoundError:
            pass
    return count


def many(session, n, size=N):
    """Arrays, and what is in them."""
    data = [np.arange(size) + i for i in range(n)]
    return data, [session.put(a) for a in data]


def settled(server, n, size=N):
    """A session, what is in its arrays, and those, which are complete."""
    session = Session(server.path)
    data, arrays = many(session, n, size)
    session.sync()
    return session, data, arrays


def check(session, data, arrays):
    for i, (a, x) in enumerate(zip(data, arrays, strict=True)):
        assert np.array_equal(session.get(x), a), i


def add(session, x, y):
    """x += y on the server."""
    session.ufunc("add", "int64", x[3], x, y, out=x)


def heavy(session):
    """Keep the device busy with one operation, and return the first row of its result."""
    x = session.put(FACTOR)
    product = call(session, "matmul", [SIDE, SIDE], [x, x], [False])
    session.free(x)
    return [*product[:3], [SIDE]]


def nothing_left(server, session, *arrays):
    """Once these are given up."""
    session.free(*arrays)
    session.sync()
    counters = session.stat()
    assert counters["host_bytes"] == counters["used_bytes"] == 0
    wait_until(lambda: host_slabs(server) == 0, "host memory is the system's again")


def test_they_are_there_again(place):
    """Arrays are where they were: nothing comes back but what is used."""
    server = place(*SMALL)
    session, data, arrays = settled(server, 80)
    for _ in range(4):
        before = session.stat()
        kill(server)
        session.come_back()
        after = session.stat()
        assert before["host_bytes"] == after["host_bytes"] >= 6 << 20
        assert after["buffer_bytes"] == before["buffer_bytes"] == 80 * N * 8
        assert after["moved_in"] == 0 and after["slab_bytes"] <= 4 << 20
        check(session, data, arrays)
        for i in range(80):
            data[i] = data[i] + data[i - 7]
            add(session, arrays[i], arrays[i - 7])
        session.sync()
    check(session, data, arrays)
    nothing_left(server, session, *arrays)


def test_right_after_a_move(place):
    """Out, in, in to be changed there, in to be written as a whole, and given up while it is there."""
    server = place(*SMALL)
    session, data, arrays = settled(server, 60)
    for i in range(6):
        worker, k = server.worker, 7 * i
        big = session.put(np.full(8 * N, i))  # much goes out for it
        session.sync()
        kill(server, worker)
        session.come_back()
        assert np.array_equal(session.get(big), np.full(8 * N, i))
        worker = server.worker
        total = session.sum("int64", arrays[k])
        data[k + 1] = data[k + 1] + data[k + 2]
        add(session, arrays[k + 1], arrays[k + 2])
        data[k + 3] = np.full(N, -i)
        write(session, arrays[k + 3], data[k + 3])
        session.sync()
        kill(server, worker)
        session.come_back()
        assert session.get(total) == data[k].sum()
        session.free(big, total)
        check(session, data, arrays)
        session.sync()
    nothing_left(server, session, *arrays)


def test_moved_for_somebody_else(place):
    """The owner of the arrays that moved has done nothing since, and others have written to their memory."""
    server = place(*SMALL)
    one, other = Session(server.path), Session(server.path)
    data, arrays = many(one, 20)
    one.sync()
    for i in range(3):
        before = one.stat("moved_out")
        filler = [other.put(np.full(N, -1)) for _ in range(60)]
        other.sync()
        assert one.stat("moved_out") > before + 20 * N * 8
        kill(server)
        one.come_back()
        other.come_back()
        other.free(*filler)
        other.sync()
        check(one, data, arrays)
        total = [one.ufunc("add", "int64", [N], x, x) for x in arrays]  # on the device again
        check(one, [2 * a for a in data], total)
        one.free(*total)
        one.sync()


def test_when_there_is_no_room_left(place):
    """With host memory full, too, one can still be exchanged for another, and what is given up can be used again."""
    server = place("--memory=4M", "--slab=1M", "--host-memory=4M")
    session = Session(server.path)
    data, arrays = [], []
    with pytest.raises(Failed, match="in host memory, of 4.0 MiB at most"):
        while len(data) < 80:
            arrays.append(session.put(np.full(N, len(data))))
            session.get(arrays[-1])
            data.append(np.full(N, len(data)))
    session.free(arrays.pop())
    session.sync()
    assert len(data) >= 40
    for i in range(4):
        before = session.stat("host_bytes")
        kill(server)
        session.come_back()
        assert session.stat("host_bytes") == before >= 3 << 20
        for k in range(len(data)):
            data[k] = data[k] + 1
            session.out += add_one(session, arrays[k])
            session.operations += 1
        check(session, data, arrays)
        session.sync()
        kill(server)
        session.come_back()
        odd = len(arrays[1::2])
        session.free(*arrays[1::2])
        del arrays[1::2], data[1::2]
        fresh, more = many(session, odd)
        data, arrays = data + fresh, arrays + more
        check(session, data, arrays)


def test_a_session_that_ends(place):
    """Nothing of it is kept, whichever worker it had at last."""
    server = place(*SMALL)
    watcher = Session(server.path)
    for kills in range(3):
        session = Session(server.path)
        many(session, 60)
        session.sync()
        wait_until(lambda: host_slabs(server), "arrayd has heard of the slab")
        for _ in range(kills):
            kill(server)
            watcher.come_back()
            session.come_back()
        session.send(raw.frame(flags=4))  # it leaves
        session.close()
        wait_until(lambda: watcher.stat("sessions") == 1, "it has gone")
        nothing_left(server, watcher)


def test_a_moved_array_is_shared(place):
    """The array that others get is complete, and is theirs when the worker is killed at once."""
    server = place("--host-memory=32M", **STIRRED)
    one, other = Session(server.path), Session(server.path)
    data, arrays = many(one, 50)
    for i in range(5):
        for x, name in ((arrays[2 * i], "a"), (arrays[2 * i + 1], "b")):
            one.reply(one.ask("publish", x, 0, f"{name}{i}", ""))
        buffer = other.fresh()
        other.reply(other.ask("attach_name", buffer, "", f"a{i}"))
        kill(server)
        one.come_back()
        other.come_back()
        assert np.array_equal(other.get([buffer, *arrays[0][1:]]), data[2 * i])
        buffer = other.fresh()
        other.reply(other.ask("attach_name", buffer, "", f"b{i}"))
        assert np.array_equal(other.get([buffer, *arrays[0][1:]]), data[2 * i + 1])
    check(one, data, arrays)


HOW = ("add", "multiply")  # what is not alike is executed one by one


def test_out_and_back_while_the_device_works(start):
    """Several times between two states: what was complete counts, the rest is done again from where it was."""
    server = start(*OPEN, "--host-memory=64M", env={**LATE, **STIRRED})
    session, data, arrays = settled(server, 5, 1000)
    early = 0
    for _ in range(30):
        moved = session.stat("moved_in")
        big = heavy(session)
        sums = [session.ufunc(HOW[i % 2], "int64", [1000], arrays[i % 5], arrays[(i * 3 + 1) % 5]) for i in range(10)]
        session.free(sums.pop(0), arrays[0])
        worker, counters = server.worker, session.stat()
        assert counters["moved_in"] > moved + 8 * 8000
        kill(server, worker)
        session.come_back()
        early += counters["ops_done"] < session.operations
        for i, x in enumerate(sums, 1):
            expected = getattr(np, HOW[i % 2])(data[i % 5], data[(i * 3 + 1) % 5])
            assert np.array_equal(session.get(x), expected), i
        assert np.array_equal(session.get(big), FACTOR[0] @ FACTOR)
        session.free(big, *sums)
        arrays[0] = session.put(data[0])
        check(session, data, arrays)
        session.sync()
        if early == 3:
            break
    assert early, "the device was too quick each time"
    nothing_left(server, session, *arrays)


def test_moved_while_a_state_is_coming(start):
    """The pending checkpoint has an array where that was before. The committed one has another array, which is given up
    meanwhile."""
    server = start(*OPEN, "--host-memory=64M", env={**LATE, **STIRRED})
    session, other = Session(server.path), Session(server.path)
    x, factor = session.put(np.arange(1000)), session.put(FACTOR)
    session.op("stream", 100, 0, 1)
    early = 0
    for i in range(40):
        given_up = session.put(np.full(1000, i))
        session.sync()
        made = session.ufunc("add", "int64", [1000], x, i)
        products = []
        for _ in range(2):
            session.op("on", 100)
            products.append(call(session, "matmul", [SIDE, SIDE], [factor, factor], [False]))
            session.op("on", 0)
            session.flush()
            if len(products) == 1:
                half = session.operations
                read = session.ufunc("add", "int64", [1000], given_up, x)
                more = [session.put(np.full(1000, -k)) for k in range(8)]  # those before go
                session.free(given_up)
        theirs = [other.put(np.full(1000, -9)) for _ in range(20)]
        other.sync()
        worker = server.worker
        wait_until(lambda: session.stat("ops_done") >= half, "the first product counts")
        early += session.stat("ops_done") < session.operations
        kill(server, worker)
        session.come_back()
        other.come_back()
        assert np.array_equal(session.get(made), np.arange(1000) + i)
        assert np.array_equal(session.get(read), np.arange(1000) + i)
        for product in products:
            assert np.array_equal(session.get([*product[:3], [SIDE]]), FACTOR[0] @ FACTOR)
        session.free(made, read, *more, *products)
        other.free(*theirs)
        if early == 8:
            break
    assert early, "the device was too quick each time"


def test_what_is_given_up_goes_to_host_memory(start):
    """Memory that was given up goes there where it is needed, and nothing can be written down as the device may yet
    find something wrong."""
    server = start(*OPEN, "--memory=16M", "--slab=1M", "--host-memory=32M", env=LATE)
    session = Session(server.path)
    size, index = 1 << 18, session.put(np.array([3, 4]))  # 2 MiB
    data, arrays = many(session, 2, size)
    session.sync()
    early = 0
    for _ in range(20):
        session.free(slow(session, 2))
        picked = call(session, "gather", [2], [arrays[0], index])
        total = session.sum("int64", arrays[1])
        session.free(arrays[1])
        large = [session.new("int64", [6 * size]), I64, 0, [6 * size]]
        session.flush()
        worker, counters = server.worker, session.stat()
        kill(server, worker)
        session.come_back()
        early += counters["ops_done"] < session.operations and counters["moved_out"] > 0
        assert session.get(total) == data[1].sum() and session.get(picked).tolist() == [3, 4]
        assert not session.get(large).any()
        session.free(picked, total, large)
        arrays[1] = session.put(data[1])
        session.sync()
        check(session, data, arrays)
        if early == 3:
            break
    assert early, "nothing was under way each time"


def test_an_overwritten_array_is_not_read_as_it_is_now(start):
    """The array had been read, and was away. It comes back empty, to be written as a whole."""
    server = start(*OPEN, "--host-memory=64M", env={**LATE, **STIRRED})
    session, data, arrays = settled(server, 4, 1000)
    for _ in range(5):
        big = heavy(session)
        total = session.ufunc("add", "int64", [1000], arrays[0], arrays[1])
        more = [session.put(data[3]) for _ in range(6)]  # it goes
        write(session, arrays[0], np.zeros(1000, np.int64))
        kill_at_work(server, session)
        for lost in (arrays[0], total):
            with pytest.raises(Failed, match="in place"):
                session.get(lost)
        check(session, data[1:], arrays[1:])
        session.free(big, total, arrays[0], *more)
        arrays[0] = session.put(data[0])
        session.sync()


@pytest.mark.parametrize("seed", range(4))
def test_a_journal_that_was_scribbled_on(place, seed):
    server = place(*SMALL, **STIRRED)
    sessions = [Session(server.path) for _ in range(3)]
    for session in sessions:
        _, arrays = many(session, 30)
        for x in arrays:
            session.out += add_one(session, x)
            session.operations += 1
        session.sync()
    rng = random.Random(seed)
    scribble(server, rng, 400, 24, lambda at, used: [0, 1, 8, 2**64 - 1, at, rng.randrange(used), rng.randrange(64)])
    fresh = Session(server.path)
    check(fresh, *many(fresh, 60))
    assert sum("worker exited" in line for line in server.lines) == 1, server.lines


@pytest.mark.parametrize("env", [{}, STIRRED], ids=["full", "stirred"])
def test_storm(place, env):
    """Nothing is wrong, and nothing is lost but what was changed in place at that moment, or is computed from that."""
    storm(place("--memory=6M", "--slab=1M", "--host-memory=64M", **env), 1, 60_000, 0, 150, kills=50)


@pytest.mark.parametrize("env", [{}, STIRRED], ids=["full", "stirred"])
def test_storm_in_turns(place, env):
    storm(place("--memory=16M", "--slab=1M", "--host-memory=256M", **env), 2, 300_000, 20, 60)
