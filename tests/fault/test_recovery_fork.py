"""Sessions of forked processes survive their worker, and broken connections, as all others do; the fork itself is executed
once, wherever the worker dies.
"""
import os
import random
import signal
import threading

import numpy as np
import pytest

import raw
from raw import Client, Closed, Failed, wait_until
from returning import LEAVE, TAKEN, Session, add_one, note, refused, tcp_of
from test_recovery import LATE, OPEN, comes_back, kill, window
from observing import see
from upgrading import upgrade

TIMEOUT = 14


@pytest.fixture(params=["", "late"])
def server(request, start):
    return start(*OPEN, env=LATE if request.param else {})


def add(session, x, n):
    for _ in range(n):
        session.out += add_one(session, x)
        session.operations += 1


def come_back(*sessions):
    """Come back. A session may have to wait for another."""
    left = list(sessions)

    def all_are_back():
        left[:] = [session for session in left if not comes_back(session)]
        return not left

    wait_until(all_are_back, "they can be taken up again")


def test_a_child_goes_on(server):
    parent = Session(server.path)
    x = parent.put(np.arange(1000))
    child = parent.child()
    add(child, x, 3)
    assert np.array_equal(child.get(x), np.arange(1000) + 3)
    assert child.welcome[2] & 2 and child.welcome[4] == child.secret
    assert child.welcome[5]["resume"] == parent.limits["resume"]
    for i in range(4):
        kill(server)
        come_back(*random.sample([parent, child], 2))
        add(parent, x, 1)
        add(child, x, 2)
        assert np.array_equal(parent.get(x), np.arange(1000) + i + 1)
        assert np.array_equal(child.get(x), np.arange(1000) + 2 * i + 5)


def test_a_family(server):
    """Sessions of one line know nothing of each other's writes, whoever writes first, and whatever became of the others."""
    parent = Session(server.path)
    x, y = parent.put(np.arange(1000)), parent.put(np.arange(100_000))
    bad = parent.ufunc("add", "int64", [3], [999, 4, 0, [3]], [999, 4, 0, [3]])
    first, second = parent.child(), parent.child()
    third = first.child()
    third.sync()
    second.sync()
    add(parent, x, 1)
    parent.free(y)
    kill(server)
    come_back(third, parent, first, second)
    add(third, x, 3)
    add(third, y, 3)
    assert np.array_equal(third.get(y), np.arange(100_000) + 3)
    for session in (first, second):
        assert np.array_equal(session.get(y), np.arange(100_000))
    for session, more in ((parent, 1), (first, 0), (second, 0), (third, 3)):
        assert np.array_equal(session.get(x), np.arange(1000) + more)
        with pytest.raises(Failed, match="no buffer 999"):
            session.get(bad)
    for session in (parent, first):
        session.send(note(LEAVE))
        session.close()
    wait_until(lambda: second.stat("sessions") == 2, "they have gone")
    kill(server)
    come_back(second, third)
    fourth = third.child()
    fourth.sync()
    add(third, x, 1)
    third.send(note(LEAVE))
    third.close()
    wait_until(lambda: second.stat("sessions") == 2, "it has gone")
    kill(server)
    come_back(fourth, second)
    assert np.array_equal(fourth.get(x), np.arange(1000) + 3) and np.array_equal(second.get(x), np.arange(1000))
    second.free(x, y)
    fourth.free(x, y)
    second.sync()
    fourth.sync()
    assert fourth.stat("used_bytes") == fourth.stat("shared_buffers") == 0


def ask(session, name, *fields):
    """Ask on a connection that may break."""
    request = session.ask(name, *fields)
    while True:
        try:
            return session.reply(request)[1]
        except Closed as closed:
            assert closed.code is None, closed.text
            come_back(session)


def get(session, x):
    return np.frombuffer(ask(session, "read", x), raw.DTYPES[x[1]])


def test_it_is_executed_once(server):
    """The worker dies somewhere around a fork: before it came, before it was executed, before anybody heard of it."""
    rng = random.Random(2)
    parent = Session(server.path)
    x = parent.put(np.zeros(100, np.int64))
    values = 0
    for i in range(40):
        worker, killed = server.worker, threading.Event()

        def soon():
            killed.wait(rng.random() * 0.004)
            os.kill(worker, signal.SIGKILL)

        killer = threading.Thread(target=soon)
        killer.start()
        y = parent.ufunc("add", "int64", [100], x, 3)
        child = parent.child()
        z = parent.ufunc("add", "int64", [100], y, 1)
        parent.free(x)
        parent.flush()
        own = child.ufunc("multiply", "int64", [100], y, 2)
        child.flush()
        killer.join()
        wait_until(lambda: comes_back(parent), "it can be taken up again")
        values += 3
        assert get(child, own).tolist() == [2 * values] * 100 and get(child, y).tolist() == [values] * 100
        assert parent.get(z).tolist() == [values + 1] * 100 and parent.stat("sessions") == 2
        parent.free(z)
        x = y
        child.send(note(LEAVE))
        child.close()
        wait_until(lambda: parent.stat("sessions") == 1, "the child has gone")
        assert parent.stat("buffers") == 1
    parent.free(x)
    parent.sync()
    wait_until(lambda: parent.stat("used_bytes") == parent.stat("shared_buffers") == 0, "nothing is kept")


def stopped(server):
    worker = server.worker
    os.kill(worker, signal.SIGSTOP)
    return worker


def test_a_fork_that_did_not_arrive(server):
    """The fork is sent again, without the descriptor, which is gone. The child comes by itself, and not before."""
    parent = Session(server.path)
    x = parent.put(np.arange(100))
    parent.sync()
    worker = stopped(server)
    child = parent.child()
    kill(server, worker)
    assert "not been executed" in refused(child, code=TIMEOUT)
    parent.come_back()
    parent.sync()
    assert parent.stat("sessions") == 2
    come_back(child)
    assert np.array_equal(child.get(x), np.arange(100)) and child.id != child.key
    kill(server)
    come_back(child, parent)
    assert np.array_equal(child.get(x), np.arange(100)) and np.array_equal(parent.get(x), np.arange(100))


@pytest.mark.parametrize("what", ["lives", "leaves"])
def test_a_fork_that_is_executed_again(start, what):
    """The parent's state does not have the fork yet, as what came behind it is under way. The child is there, or has
    been."""
    server = start(*OPEN, env=LATE)
    parent = Session(server.path)
    x, large = parent.put(np.arange(100)), parent.put(np.ones(1 << 22))
    parent.sync()
    child = parent.child()
    for _ in range(60):
        parent.free(parent.ufunc("sin", "float64", [1 << 22], large))
    parent.flush()
    add(child, x, 1)
    assert np.array_equal(child.get(x), np.arange(100) + 1)
    if what == "leaves":
        child.send(note(LEAVE))
        child.close()
        wait_until(lambda: Client(server.path).stat("sessions") == 2, "it has gone")
    kill(server)
    come_back(parent)
    if what == "lives":
        come_back(child)
        add(child, x, 1)
        assert np.array_equal(child.get(x), np.arange(100) + 2)
    assert np.array_equal(parent.get(x), np.arange(100))
    wait_until(lambda: parent.stat("sessions") == 1 + (what == "lives"), "nobody else is there")


def seen(server, parent):
    """The names of the sessions of its line. (If the worker dies as it takes a session its client gets another.)"""
    return [s["session"] for s in see(server)["sessions"] if s["session"].split(".")[0] == str(parent.id)]


def go_through(server):
    """A fork, what comes before and behind it, and what the child does meanwhile."""
    parent = Session(server.path)
    x = parent.ufunc("add", "int64", [100], parent.put(np.arange(100)), 1)
    fds = [window(parent, 1, 4096)]
    child = parent.child()
    fds.append(window(parent, 2, 4096))
    y = parent.ufunc("add", "int64", [100], x, 1)
    parent.free(x)
    parent.flush()
    fds.append(window(child, 1, 4096))
    z = child.ufunc("add", "int64", [100], x, 5)
    child.free(x)
    child.flush()
    assert get(parent, y).tolist() == list(range(2, 102))
    assert get(child, z).tolist() == list(range(6, 106))
    for session, array, number, fd, first in (
            (parent, y, 1, fds[0], 2), (parent, y, 2, fds[1], 2), (child, z, 1, fds[2], 6)):
        ask(session, "fetch", array, number, 0)
        assert np.frombuffer(os.pread(fd, 800, 0), np.int64).tolist() == list(range(first, first + 100))
        os.close(fd)
    wait_until(lambda: len(seen(server, parent)) == 2, "there are two")


@pytest.mark.parametrize("call", ["sendmsg", "recvmsg", "calloc", "dup"])
@pytest.mark.parametrize("late", ["", "late"])
def test_a_worker_that_dies_at_any_point(tmp_path, call, late):
    """The n-th use of a call is its end, for every n that this reaches."""
    for n in range(1, 1000):
        server = raw.Server(folder=str(tmp_path), env={
            **(LATE if late else {}), "ARRAYD_FAULT_ONCE": str(tmp_path / f"{n}"),
            "ARRAYD_FAULT_OS": f"arrayd-worker:{call}:{n}:killed"}, wait=False)
        wait_until(lambda: server.said("event=ready") or server.process.poll() is not None, "it is ready, or not")
        if server.process.poll() is None:
            go_through(server)
            assert server.stop() == 0
        if not (tmp_path / f"{n}").exists():
            break
    assert n > 5


# ---- connections that break ----

def waiting(server):
    return sorted(s["session"] for s in see(server)["sessions"] if s["state"] == "waiting")


def test_a_connection_that_breaks(server):
    """The child's process lives, so it may come back: and then it is a client like any other."""
    parent = Session(server.path)
    x = parent.put(np.arange(1000))
    child = parent.child()
    child.sync()
    name = f"{parent.id}.1"
    for i in range(3):
        add(child, x, 1)
        child.flush()
        child.socket.close()
        wait_until(lambda: waiting(server) == [name], "it is waited for")
        child.come_back()
        assert np.array_equal(child.get(x), np.arange(1000) + i + 1)
        assert "used before" in refused(child, secret=child.welcome[4])
    assert child.stat("resumes") == 3 and parent.stat("sessions") == 2
    data = raw.frame(add_one(child, x))
    for n in range(len(data) + 1):
        child.some(data, n)
        child.operations += 1
        child.come_back()
    assert np.array_equal(child.get(x), np.arange(1000) + 4 + len(data))
    assert np.array_equal(parent.get(x), np.arange(1000))


def test_a_child_that_says_nothing(server):
    """Nobody knows the child's process, so the end of its connection is its end."""
    parent = Session(server.path)
    parent.put(np.arange(1000))
    child = parent.child()
    wait_until(lambda: parent.stat("sessions") == 2, "it has begun")
    child.socket.close()
    wait_until(lambda: parent.stat("sessions") == 1, "it has gone")
    assert not server.said("session waits")


@pytest.mark.parametrize("killed", ["", "killed"])
def test_a_process_that_ends(start, killed):
    """A process ends without a word, as a forked one does. Nothing waits for it; nor where it has come back before."""
    server = start()
    parent = Session(server.path)
    x = parent.put(np.arange(1000))
    child = parent.child()
    ours, theirs = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            add(child, x, 1)
            os.write(theirs, bytes([int(get(child, x)[0])]))
            if killed:
                child.options = {"process": os.getpid()}
                with pytest.raises(Closed):
                    child.receive()
                come_back(child)
                os.write(theirs, bytes([int(get(child, x)[1])]))
        finally:
            os._exit(0)
    child.socket.close()
    os.close(theirs)
    assert os.read(ours, 1) == b"\1"
    if killed:
        kill(server)
        parent.come_back()
        assert os.read(ours, 1) == b"\2"
    os.waitpid(pid, 0)
    wait_until(lambda: parent.stat("sessions") == 1, "it has gone")
    os.close(ours)


def test_nobody_else_comes_back_to_it(start, place):
    place.add("bob")
    server = start(*place.options("tcp"))
    parent = Session(server.path)
    parent.put(np.arange(5))
    child = parent.child()
    child.sync()
    assert "another principal" in refused(child, address=tcp_of(server), options={"token": place.token["bob"]})
    assert "not been executed" in refused(child, address=tcp_of(server), options={"token": place.token["bob"]},
                                          session=child.key, code=TIMEOUT)
    assert "the secret" in refused(child, secret=bytes(16))
    assert "the secret" in refused(child, secret=parent.secret)
    assert "anew" in refused(child, instance=parent.limits["instance"] ^ 1)
    assert "over" in refused(child, session=child.id + 1)
    child.sync()


# ---- limits ----

def test_who_does_not_come_back_is_forgotten(start):
    server = start("--resume-time=2")
    parent = Session(server.path)
    x = parent.put(np.ones(100_000))
    child = parent.child()
    child.put(np.ones(1_000_000))
    child.sync()
    kill(server)
    parent.come_back()
    assert parent.stat("sessions") == 2
    wait_until(lambda: parent.stat("sessions") == 1, "it was waited for")
    assert "over" in refused(child)
    assert parent.stat("used_bytes") == 8 * 100_000 and parent.get(x).sum() == 100_000


def test_what_it_holds_counts(start, tmp_path):
    """After a kill as before: memory that two sessions hold once; sessions."""
    grants = tmp_path / "principals"
    grants.write_text("uid:* memory=16M sessions=3 admin=yes\n")
    server = start(f"--principals={grants}")
    parent = Session(server.path)
    x = parent.put(np.ones(6 << 20, np.uint8))
    child = parent.child()
    child.sync()
    for _ in range(3):
        assert child.stat("principal_bytes") == 6 << 20
        kill(server)
        come_back(parent, child)
    child.ufunc("add", "uint8", [6 << 20], x, 1, out=x)
    child.sync()
    assert child.stat("principal_bytes") == 12 << 20
    child.new("uint8", [6 << 20])
    with pytest.raises(Failed, match="grant memory"):
        child.get([child.buffers, raw.DTYPES.index("uint8"), 0, [6 << 20]])
    kill(server)
    come_back(parent, child)
    assert child.stat("principal_bytes") == 12 << 20
    third = Session(server.path)
    late = parent.child()
    with pytest.raises(Closed, match="as many as it may have"):
        late.sync()
    with pytest.raises(Failed, match="as many as it may have"):
        parent.sync()
    kill(server)
    come_back(parent, child, third)
    late = parent.child()
    with pytest.raises(Closed, match="as many as it may have"):
        late.sync()


def test_what_two_have_given_up(start):
    """One session is still busy with what came before, for which it is kept. The session that gave it up last ends
    first."""
    server = start(*OPEN, env=LATE)
    parent = Session(server.path)
    x, large = parent.put(np.arange(1000)), parent.put(np.ones(1 << 22))
    child = parent.child()
    child.sync()
    for _ in range(40):
        parent.free(parent.ufunc("sin", "float64", [1 << 22], large))
    parent.free(x)
    parent.flush()
    wait_until(lambda: child.stat("principal_queued_bytes") == 0, "the device has been given all of it")
    child.free(x)
    child.flush()
    child.send(note(LEAVE))
    child.close()
    first = Client(server.path)
    wait_until(lambda: first.stat("sessions") == 2, "it has gone")
    others = [first, *(Client(server.path) for _ in range(8))]  # in its memory, perhaps
    parent.free(large)
    parent.sync()
    wait_until(lambda: first.stat("shared_buffers") == 0, "nothing is kept")
    assert {session.stat("held_bytes") for session in (parent, *others)} == {0}
    assert first.stat("used_bytes") == 0


# ---- upgrades ----

def test_an_upgrade(server):
    """Children go over as all others, and nobody has to force it."""
    parent = Session(server.path)
    x = parent.put(np.arange(1000))
    child, silent = parent.child(), parent.child()
    grandchild = child.child()
    grandchild.sync()
    for i in range(3):
        done = upgrade(server)
        assert done["sessions"] == 4 and done["lost"] == 0
        come_back(grandchild, silent, child, parent)
        for n, session in enumerate((parent, child, grandchild, silent)):
            add(session, x, n)
        for n, session in enumerate((parent, child, grandchild, silent)):
            assert np.array_equal(session.get(x), np.arange(1000) + n * (i + 1))
    another = grandchild.child()
    assert np.array_equal(another.get(x), np.arange(1000) + 6)
    assert another.id not in (child.id, grandchild.id, silent.id)


# ---- workers that die again and again ----

def test_a_session_that_has_nothing_to_do(server):
    """An idle fork says no more than that it is there, and no number of workers dies of that."""
    parent = Session(server.path)
    x = parent.put(np.arange(1000))
    child = parent.child()
    child.sync()
    for _ in range(12):
        kill(server)
        for session in parent, child:
            session.come_back()
            session.send(note(TAKEN, session.received))
        wait_until(lambda: not waiting(server), "they are there")
    assert np.array_equal(child.get(x), np.arange(1000)) and np.array_equal(parent.get(x), np.arange(1000))


def test_a_server_whose_sessions_do_not_survive(start):
    server = start("--survive=no")
    parent = Session(server.path)
    parent.put(np.arange(5))
    child = parent.child()
    child.sync()
    os.kill(server.worker, signal.SIGKILL)
    wait_until(lambda: server.said("worker exited"), "it is gone")
    assert "over" in refused(child)
