"""A principal shares its worker with others until its first kernel; then it has one of its own, with all that was its.

ARRAYD_KILLS=1000 makes the storm as long as that.
"""
import os
import random
import signal
import time

import numpy as np
import pytest

import raw
from migrating import MAY, SOURCE, Bystander, Client, kill, start_for, worker_of
from raw import Failed, wait_until
from returning import Session
from observing import see
from test_quota import attach_name, fill, share
from test_recovery import LATE
from upgrading import upgrade

STORM = int(os.environ.get("ARRAYD_KILLS", 20))
LIMITS = ("--memory=2M", "--slab=1M", "--host-memory=64M")


@pytest.fixture(params=[{}, LATE], ids=["at once", "late"])
def env(request):
    return request.param


@pytest.fixture
def server(start, place, env):
    return start_for(start, place, env=env)


def moved(server, name="mover"):
    return sum(f'event="principal moved" principal=token:{name} ' in line for line in list(server.lines))


def leave_behind(server, place, values):
    """A name whose session has gone."""
    client = Client(server, place)
    x = client.put(values)
    client.reply(client.ask("publish", x, 0, "left", ""))
    client.leave()
    return x


# ---- it moves, and nobody notices ----

def test_everything_goes_along(server, place):
    bystander = Bystander(server, place)
    one, two = Client(server, place), Client(server, place)
    assert one.worker() == two.worker() == bystander.pid
    x, y = one.put(np.zeros(100, np.int64)), two.put(np.arange(300_000))
    large = one.put(np.arange(1_000_000))
    capability = share(one, large, 1, 0, 60_000)
    one.reply(one.ask("publish", one.put(np.full(100, 7)), 0, "seven", ""))
    z = leave_behind(server, place, np.full(500, 9))
    one.op("stream", 64, 0, 1)
    one.op("on", 64)
    one.count(x, 500)
    request = one.ask_build()
    one.count(x, 500)
    two.ufunc("add", "int64", [300_000], y, 1, out=y)
    values, log = one.reply(request)
    assert values[0] is True, log
    one.launch(x, 100)
    one.count(x, 10)
    assert one.get(x).tolist() == [1015] * 100
    assert np.array_equal(two.get(y), np.arange(1, 300_001))
    pid = one.worker()
    assert pid == two.worker() == worker_of(server, "token:mover") != bystander.pid
    assert one.resumes == two.resumes == 1 and moved(server) == 1
    bystander.unharmed()
    bystander.alone()
    # The memory that was to be attached is there, and a session that comes now comes there.
    three = Client(server, place)
    assert three.worker() == pid
    again = three.fresh()
    three.reply(three.ask("attach", again, *capability))
    assert np.array_equal(three.get([again, *large[1:]]), np.arange(1_000_000))
    assert three.get(attach_name(three, "", "seven", x)).tolist() == [7] * 100
    assert three.get(attach_name(three, "", "left", z)).tolist() == [9] * 500
    three.build()
    assert one.stat("sessions") == 3 and moved(server) == 1
    bystander.unharmed()


def test_both_ask_at_a_time(server, place):
    bystander = Bystander(server, place)
    clients = [Client(server, place) for _ in range(5)]
    requests = [c.ask_build() for c in clients]
    for c, request in zip(clients, requests):
        assert c.reply(request)[0][0] is True
    assert len({c.worker() for c in clients} | {bystander.pid}) == 2 and moved(server) == 1
    bystander.unharmed()
    bystander.alone()


def test_several_move_at_a_time(start, place, env):
    names = [f"m{i}" for i in range(5)]
    server = start_for(start, place, env=env, movers=names)
    bystander = Bystander(server, place)
    clients = [Client(server, place, name) for name in names]
    arrays = [c.put(np.full(1000, i)) for i, c in enumerate(clients)]
    requests = [c.ask_build() for c in clients]
    for i, (c, x, request) in enumerate(zip(clients, arrays, requests)):
        assert c.reply(request)[0][0] is True
        assert (c.get(x) == i).all()
    assert len({c.worker() for c in clients}) == 5
    bystander.unharmed()
    bystander.alone()


def test_who_may_run_no_kernels_stays(server, place):
    bystander = Bystander(server, place)
    with pytest.raises(Failed) as failed:
        bystander.build()
    assert failed.value.error == "denied"
    bystander.unharmed()


def test_memory_of_the_shared_worker_is_as_before(start, place, env):
    names = [f"m{i}" for i in range(6)]
    server = start_for(start, place, env=env, movers=names)
    bystander = Bystander(server, place)
    before = bystander.stat()
    for name in names:
        client = Client(server, place, name)
        arrays = [client.put(np.arange(n)) for n in (10, 1000, 100_000, 1_000_000)]
        client.reply(client.ask("publish", arrays[2], 0, "n", ""))
        share(client, arrays[3], 0, 0, 60_000)
        client.build()
        for x in arrays:
            assert np.array_equal(client.get(x), np.arange(x[3][0]))
        bystander.alone()
        after = bystander.stat()
        assert {k: after[k] for k in ("used_bytes", "slab_bytes", "slabs")} == {
            k: before[k] for k in ("used_bytes", "slab_bytes", "slabs")}
    bystander.unharmed()


def test_the_servers_own_user_has_one_from_the_beginning(start):
    """Nothing is slower than it was for who has a server to himself."""
    server = start()
    client = Session(server.path)
    pid = client.stat("worker_pid")
    assert client.reply(client.ask("build", 1, SOURCE, [], []))[0][0] is True
    assert client.stat("worker_pid") == pid == server.worker and not server.said("principal moved")


@pytest.mark.parametrize("option", ["--domains=principal", "--resume-time=0", "--survive=no"])
def test_otherwise_from_the_beginning(start, place, option):
    """Each begins anew where it has a worker of its own, and where nothing can go on elsewhere."""
    server = start_for(start, place, option)
    bystander, mover = place.client(server, "tcp", "bystander"), place.client(server, "tcp", "mover")
    pid = mover.stat("worker_pid")
    assert pid != bystander.stat("worker_pid")
    assert mover.reply(mover.ask("build", 1, SOURCE, [], []))[0][0] is True
    assert mover.stat("worker_pid") == pid and not server.said("principal moved")


# ---- what they have in common with those who stay ----

def publish(client, x, writable=0):
    client.reply(client.ask("publish", x, writable, "n", "*"))


def test_snapshots_become_each_ones_own(server, place):
    """Bystanders have snapshots of the mover's arrays, and the mover has snapshots of theirs."""
    bystander, mover = Bystander(server, place), Client(server, place)
    x, y = mover.put(np.arange(70_000)), bystander.put(np.arange(50))
    publish(mover, x)
    publish(bystander, y)
    theirs, ours = attach_name(bystander, "token:mover", "n", x), attach_name(mover, "token:bystander", "n", y)
    mover.ufunc("add", "int64", [70_000], x, 1, out=x)
    mover.build()
    mover.ufunc("add", "int64", [70_000], x, 1, out=x)
    for _ in range(2):
        assert np.array_equal(mover.get(x), np.arange(70_000) + 2) and np.array_equal(mover.get(ours), np.arange(50))
        assert np.array_equal(bystander.get(theirs), np.arange(70_000))
        kill(bystander.pid)
        kill(mover.worker())
    with pytest.raises(Failed) as failed:  # a name is for who shares its worker
        attach_name(bystander, "token:mover", "n", x)
    assert failed.value.error == "name"
    assert np.array_equal(mover.get(attach_name(mover, "", "n", x)), np.arange(70_000))


def refused(mover, text):
    """The mover has no kernels, and nothing else has happened."""
    pid = mover.worker()
    with pytest.raises(Failed) as failed:
        mover.build()
    assert failed.value.error == "unsupported" and text in failed.value.text, failed.value
    assert mover.worker() == pid and mover.resumes == 0


@pytest.mark.parametrize("whose", ["mover", "bystander"])
def test_what_both_may_write_keeps_it_there(server, place, whose):
    bystander, mover = Bystander(server, place), Client(server, place)
    owner, other = (mover, bystander) if whose == "mover" else (bystander, mover)
    x = owner.put(np.zeros(10, np.int64))
    publish(owner, x, 1)
    y = attach_name(other, f"token:{whose}", "n", x)
    refused(mover, "both may write it")
    owner.count(x, 1)
    owner.sync()
    other.count(y, 1)
    other.sync()
    assert owner.get(x).tolist() == other.get(y).tolist() == [2] * 10
    other.free(y)
    other.sync()
    mover.build()
    assert owner.get(x).tolist() == [2] * 10
    bystander.unharmed()


def test_what_is_handed_on_keeps_it_there(server, place):
    bystander, mover = Bystander(server, place), Client(server, place)
    x = mover.put(np.zeros(10, np.int64))
    publish(mover, x)
    theirs = attach_name(bystander, "token:mover", "n", x)
    publish(bystander, theirs)
    refused(mover, "another user has published or shared an array of it")
    bystander.reply(bystander.ask("unpublish", "n"))
    mover.build()
    bystander.free(theirs)
    bystander.unharmed()


def test_a_session_that_cannot_be_resumed_keeps_it_there(server, place):
    bystander, mover = Bystander(server, place), Client(server, place)
    other = place.client(server, "tcp", "mover")  # says nothing of resuming
    x = other.put(np.arange(10))
    refused(mover, "cannot be resumed")
    assert other.get(x).tolist() == list(range(10))
    other.close()
    wait_until(lambda: bystander.stat("sessions") == 2, "it has gone")
    mover.build()
    bystander.unharmed()


def test_there_is_no_room_for_a_copy(start, place):
    """There is no room for a copy of what the bystander has of it."""
    place.add("mover", MAY)
    place.add("bystander", "kernels=no names=10 memory=4M")
    server = start(*place.options("tcp"))
    bystander, mover = Client(server, place, "bystander"), Client(server, place)
    x = mover.put(np.arange(400_000))  # 3 MiB, of which the bystander pays nothing
    publish(mover, x)
    theirs = attach_name(bystander, "token:mover", "n", x)
    full = fill(bystander, 3)
    bystander.sync()
    refused(mover, "token:bystander")
    assert np.array_equal(bystander.get(theirs), np.arange(400_000))
    bystander.free(full)
    bystander.sync()
    mover.build()
    assert np.array_equal(bystander.get(theirs), np.arange(400_000))


# ---- host memory ----

def test_what_is_in_host_memory(start, place, env):
    """Arrays of both lie in host memory, side by side."""
    server = start_for(start, place, *LIMITS, env=env)
    bystander, mover = Bystander(server, place), Client(server, place)
    n, values = 1 << 14, {}
    for i in range(60):
        client = mover if i % 2 else bystander
        x = client.put(np.arange(n) + i)
        values[i] = client, x
    mover.sync()
    assert bystander.stat("host_bytes") > 30 * n * 8
    mover.build()
    for round in range(2):
        for i, (client, x) in values.items():
            assert np.array_equal(client.get(x), np.arange(n) + i), i
            client.ufunc("add", "int64", [n], x, 0, out=x)
        for client in (mover, bystander):
            client.sync()
        if round:
            mover.free(*(x for client, x in values.values() if client is mover))
            mover.sync()
            wait_until(lambda: mover.stat("host_bytes") == 0, "all of it is given back")
        kill(mover.worker())
    bystander.unharmed()
    bystander.free(*(x for client, x in values.values() if client is bystander))
    bystander.sync()
    assert bystander.stat("host_bytes") == 0


# ---- limits ----

def test_limits_go_along(start, place):
    server = start_for(start, place, grants=MAY + " memory=16M sessions=2")
    bystander, one = Bystander(server, place), Client(server, place)
    x = fill(one, 10)
    one.sync()
    two = Client(server, place)
    for built in range(2):
        with pytest.raises(raw.Closed) as closed:
            Client(server, place)
        assert "sessions: token:mover has 2" in closed.value.text
        assert 10 << 20 <= two.stat("principal_bytes") < 12 << 20
        with pytest.raises(Failed) as failed:
            two.get(fill(two, 10))
        assert failed.value.error == "memory" and "grant memory" in failed.value.text
        if not built:
            two.build()
            one.sync()
    assert one.get(x)[0] == 2
    one.leave()
    wait_until(lambda: two.stat("sessions") == 1, "it has gone")
    assert Client(server, place).worker() == two.worker()
    bystander.unharmed()


# ---- in between ----

def stop(pid):
    os.kill(pid, signal.SIGSTOP)


def go_on(*pids):
    for pid in pids:
        os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("killed", [("shared",), ("token:mover",), ("shared", "token:mover")], ids="-".join)
@pytest.mark.parametrize("point", ["asked", "going", "written down"])
def test_killed_in_between(start, place, env, point, killed):
    """Each of the two workers and arrayd is stopped where it is waited for."""
    server = start_for(start, place, "--log-level=debug", env=env)
    bystander, mover, other = Bystander(server, place), Client(server, place), Client(server, place)
    x, y = mover.put(np.zeros(1000, np.int64)), other.put(np.arange(70_000))
    other.sync()
    mover.sync()
    stop(server.pid)
    mover.count(x, 300)
    request = mover.ask_build()
    mover.count(x, 300)
    mover.flush()
    wait_until(lambda: server.said("own worker wanted"), "it has asked")
    stop(bystander.pid)
    if point != "asked":
        go_on(server.pid)
        wait_until(lambda: worker_of(server, "token:mover"), "there is a worker for it")
        wait_until(lambda: see_domain(server, "token:mover"), "and the other one has been told")
        stop(server.pid)
    if point == "written down":
        go_on(bystander.pid)
        wait_until(lambda: server.said("principal written down"), "arrayd could know of it")
    for domain in killed:
        if worker_of(server, domain):
            kill(worker_of(server, domain))
    go_on(server.pid)
    if "shared" not in killed:
        go_on(bystander.pid)
    assert mover.reply(request)[0][0] is True
    mover.launch(x, 1000)
    try:
        assert mover.get(x).tolist() == [605] * 1000
    except Failed as error:  # the device had not come to the end of what came before
        assert "in place" in error.text and env and point != "written down" and "shared" in killed
    assert np.array_equal(other.get(y), np.arange(70_000))
    assert mover.worker() == other.worker() == worker_of(server, "token:mover") != bystander.worker()
    bystander.works()
    assert bystander.resumes == ("shared" in killed) and moved(server) == 1
    bystander.alone()


def see_domain(server, name):
    """Arrayd answers, after all that it has been told before."""
    return any(w["domain"] == name for w in see(server)["workers"])


def test_upgraded_in_between(start, place, env):
    """Somewhere on the way; another time, before and after it."""
    names = [f"m{i}" for i in range(12)]
    server = start_for(start, place, env=env, movers=names)
    rng = random.Random(4)
    bystander = Bystander(server, place)
    movers = []
    for name in names:
        mover = Client(server, place, name)
        x = mover.put(np.zeros(1000, np.int64))
        mover.sync()
        mover.count(x, 300)
        request = mover.ask_build()
        mover.count(x, 300)
        mover.flush()
        until = time.monotonic() + rng.random() * 0.03
        while time.monotonic() < until:
            pass
        assert upgrade(server)["lost"] == 0
        assert mover.reply(request)[0][0] is True
        mover.launch(x, 1000)
        movers.append((mover, x))
        for each, d in movers:
            assert each.get(d).tolist() == [605] * 1000
        assert mover.worker() != bystander.worker()
        bystander.works()
    assert len({each.worker() for each, _ in movers}) == len(names)
    bystander.alone()


def test_a_storm_of_kills(start, place, env):
    """Either worker, or both, is killed around the moment in which the principal moves."""
    names = [f"m{i}" for i in range(STORM)]
    server = start_for(start, place, "--sessions=1000", env=env, movers=names)
    bystander, rng, lost = Bystander(server, place), random.Random(8), 0
    for i, name in enumerate(names):
        domains = rng.choice([["shared"], [f"token:{name}"], ["shared", f"token:{name}"]])
        mover, other = Client(server, place, name), Client(server, place, name)
        x, y = mover.put(np.zeros(10, np.int64)), other.put(np.arange(70_000) + i)
        mover.sync(), other.sync()
        mover.count(x, rng.randrange(300))
        counted = mover.operations - 2
        request = mover.ask_build()
        more = rng.randrange(300)
        mover.count(x, more)
        mover.flush()
        if rng.random() < 0.7:
            wait_until(lambda: worker_of(server, f"token:{name}"), "there is a worker for it")
        until = time.monotonic() + rng.random() * 0.004
        while time.monotonic() < until:  # at any time
            pass
        for pid in filter(None, [worker_of(server, domain) for domain in domains]):
            kill(pid)
        assert mover.reply(request)[0][0] is True
        try:
            assert mover.get(x).tolist() == [counted + more] * 10
        except Failed as error:
            assert "in place" in error.text
            lost += 1
        assert np.array_equal(other.get(y), np.arange(70_000) + i)
        assert mover.worker() == other.worker() != bystander.worker()
        bystander.works()
        mover.leave(), other.leave()
    assert lost <= STORM // 4
    assert not server.said("session lost") and not server.said("not recovered")
    bystander.alone()


# ---- no worker of its own ----

def test_there_is_no_other_worker(start, place, tmp_path):
    """A migration that finds no other worker says why, and the session goes on where it is."""
    worker = tmp_path / "worker"
    worker.symlink_to(raw.PROGRAM.parent / "arrayd-worker")
    server = start_for(start, place, f"--worker={worker}")
    bystander, mover = Bystander(server, place), Client(server, place)
    x = mover.put(np.zeros(10, np.int64))
    mover.count(x, 100)
    worker.unlink()
    refused(mover, "cannot start")
    mover.count(x, 100)
    worker.write_text("#!/bin/sh\nexit 1\n")
    worker.chmod(0o755)
    refused(mover, "the worker died")
    worker.unlink()
    worker.symlink_to(raw.PROGRAM.parent / "arrayd-worker")
    mover.build()
    assert mover.get(x).tolist() == [200] * 10 and mover.resumes == 1
    bystander.unharmed()
    bystander.alone()


# ---- others go on ----

def read_slowly(start, place, env, shared):
    """A client takes its time for an answer; everybody, and when it asked."""
    server = start_for(start, place, env=env)
    bystander, mover, other = Bystander(server, place), Client(server, place), Client(server, place)
    x = other.put(np.arange(4_000_000))
    if shared:
        publish(other, x)
    other.sync()
    return server, bystander, mover, other, x, other.ask("read", x)


def check_slow(other, x, slow):
    _, data = other.reply(slow)
    assert np.array_equal(np.frombuffer(data, np.int64), np.arange(4_000_000))
    assert np.array_equal(other.get(x), np.arange(4_000_000))


def test_nobody_waits_for_an_answer_to_be_taken(start, place, env):
    server, bystander, mover, other, x, slow = read_slowly(start, place, env, False)
    mover.build()
    check_slow(other, x, slow)
    assert other.resumes == 1 and other.worker() == mover.worker()
    bystander.unharmed()


def test_others_do_not_wait(start, place, env):
    """Operations on memory that others have, too, end where it is, and before that there is no kernel."""
    server, bystander, mover, other, x, slow = read_slowly(start, place, env, True)
    request = mover.ask_build()
    wait_until(lambda: worker_of(server, "token:mover"), "there is a worker for it")
    for _ in range(300):
        bystander.works()
    assert not moved(server)
    check_slow(other, x, slow)
    assert mover.reply(request)[0][0] is True and other.worker() == mover.worker()
    bystander.unharmed()
