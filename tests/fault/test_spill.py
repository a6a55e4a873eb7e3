"""Arrays in host memory when things go wrong: allocations fail, and clients go in the middle of it."""
import os
import random
import shutil
import socket

import numpy as np
import pytest

import raw
from raw import Client, Closed, Failed, Server, wait_until

N = 1 << 14  # 128 KiB of float64
ARRAYS = 24
LIMITS = ("--memory=2M", "--slab=1M", "--host-memory=16M")


def scenario(server):
    """Twice as much as fits is swept twice; raises when anything is amiss."""
    client = Client(server.path)
    try:
        data = [np.arange(N) + float(i) for i in range(ARRAYS)]
        arrays = [client.put(a) for a in data]
        for i in range(ARRAYS + 6):
            x, y = arrays[i % ARRAYS], arrays[(i + 5) % ARRAYS]
            client.ufunc("add", "float64", [N], x, y, out=[x[0], x[1], 0, [N]])
            data[i % ARRAYS] = data[i % ARRAYS] + data[(i + 5) % ARRAYS]
        for a, x in zip(data, arrays):
            np.testing.assert_array_equal(client.get(x), a)
        client.free(*arrays[::2])
        if client.stat("ops_failed"):
            raise Closed(0, "an operation failed whose result nobody asked for")
        assert client.stat("moved_in") >= ARRAYS * N * 8
    finally:
        client.close()


@pytest.mark.parametrize("late", [False, True])
def test_writes_in_part(start, late):
    """Elements that are not written are as they were, also when the array has been away meanwhile."""
    server, rng = start(*LIMITS, env={"ARRAYD_CPU_LATE": "1"} if late else {}), random.Random(3)
    client = Client(server.path)
    data = [np.arange(N) + float(i) for i in range(ARRAYS)]
    arrays = [client.put(a) for a in data]
    for i in range(10 * ARRAYS):
        k = rng.randrange(ARRAYS)
        at, n = (rng.randrange(N - 1000), rng.randrange(1, 1000)) if i % 5 else (0, N)
        part = np.full(n, float(i))
        data[k][at:at + n] = part
        client.flush()
        client.operations += 1
        client.send(raw.frame(raw.message("write", arrays[k][0], 8 * at), part.tobytes()))
    for a, x in zip(data, arrays):
        np.testing.assert_array_equal(client.get(x), a)
    assert client.stat("ops_failed") == 0 and client.stat("moved_in") > ARRAYS * N * 8


def nothing_left(server):
    watcher = Client(server.path)
    wait_until(lambda: watcher.stat("sessions") == 1, "the session has gone")
    counters = watcher.stat()
    assert counters["host_bytes"] == counters["used_bytes"] == 0
    watcher.close()


@pytest.mark.parametrize("call, step", [("calloc", 1), ("malloc", 5)])
def test_an_allocation_fails(call, step, tmp_path):
    """The client concerned hears of it, and the next client finds everything as if nothing had been. The time before
    there is a client has a test elsewhere (test_sites.py)."""
    reached = 0
    for n in range(5, 400, step):
        server = Server(*LIMITS, folder=str(tmp_path), env={"ARRAYD_FAULT_OS": f"arrayd-worker:{call}:{n}",
                                                            "ARRAYD_FAULT_ONCE": str(tmp_path / f"{n}")})
        try:
            scenario(server)
        except (Closed, Failed, ConnectionError, FileNotFoundError) as error:
            wait_until(lambda: server.said("fault injected"), f"a reason for {error!r} at {call} {n}")
        if not (tmp_path / f"{n}").exists():
            assert server.stop() == 0, "\n".join(server.lines)
            break
        reached += 1
        if server.process.poll() is None:
            scenario(server)
            nothing_left(server)
            assert server.stop() == 0, "\n".join(server.lines)
        else:
            assert server.wait() in (1, 2), "\n".join(server.lines)
    else:
        raise AssertionError("the scenario never got through")
    assert reached > 5
    print(f"{call}: {reached} sites")
    shutil.rmtree(tmp_path)


@pytest.mark.parametrize("late", [False, True])
def test_cut_off_at_any_point(start, late):
    """Sessions end with arrays on their way out and in, writes queued, reads under way."""
    server, rng = start(*LIMITS, env={"ARRAYD_CPU_LATE": "1"} if late else {}), random.Random(int(late))
    watcher = Client(server.path)
    for i in range(25):
        clients = [Client(server.path) for _ in range(rng.randrange(1, 4))]
        arrays = {client: [client.put(np.full(N, float(k))) for k in range(rng.randrange(3, 9))] for client in clients}
        for _ in range(rng.randrange(60)):
            client = rng.choice(clients)
            x, y = rng.choice(arrays[client]), rng.choice(arrays[client])
            client.ufunc("add", "float64", [N], x, y, out=[x[0], x[1], 0, [N]] if rng.random() < 0.7 else None)
            if rng.random() < 0.1:
                client.ask("read", [y[0], y[1], 0, [N]])
            if rng.random() < 0.1 and len(arrays[client]) > 2:
                client.free(arrays[client].pop())
        for client in clients:
            client.flush()
        rng.shuffle(clients)
        for client in clients:
            if rng.random() < 0.5:
                client.socket.shutdown(socket.SHUT_RDWR)
            client.close()
    wait_until(lambda: watcher.stat("sessions") == 1, "all have gone")
    counters = watcher.stat()
    assert counters["host_bytes"] == counters["used_bytes"] == 0 and counters["moved_out"] > 1 << 20
    watcher.close()
    scenario(server)


def test_who_has_more_than_a_share_gives_way(start, place):
    """Bob, who has little and does not use it, keeps it while Alice sweeps over more than there is."""
    place.add("bob")
    server = start(*place.options("tcp"), "--memory=8M", "--slab=4M", "--host-memory=64M")
    alice, bob = place.client(server, "tcp", "alice"), place.client(server, "tcp", "bob")
    n = 1 << 16  # half a MiB
    small = [bob.put(np.full(n, float(i))) for i in range(4)]
    bob.sync()
    large = [alice.put(np.full(n, float(i))) for i in range(40)]
    for _ in range(3):
        for x in large:
            alice.ufunc("add", "float64", [n], x, 1.0, out=[x[0], x[1], 0, [n]])
    alice.sync()
    before = bob.stat("moved_in")
    assert before > 100 * n * 8
    for i, x in enumerate(small):
        bob.ufunc("add", "float64", [n], x, 1.0, out=[x[0], x[1], 0, [n]])
        np.testing.assert_array_equal(bob.get(x), np.full(n, i + 1.0))
    # Red zones take of what he has a right to.
    room = 4 * n * 8 if raw.BUILD.name == "asan" else 0
    assert bob.stat("moved_in") <= before + room
    more = [bob.put(np.full(n, 7.0)) for _ in range(3)]  # for what he has a right to hers goes
    bob.sync()
    for x in more + small:
        bob.ufunc("add", "float64", [n], x, 1.0, out=[x[0], x[1], 0, [n]])
    bob.sync()
    assert bob.stat("moved_in") <= before + room
    for i, x in enumerate(large):
        np.testing.assert_array_equal(alice.get(x), np.full(n, i + 3.0))


def share_all(giver, taker, arrays):
    """Let another session have arrays, too, and return its descriptions of them."""
    taken = []
    for x in arrays:
        half = [value % 2**64 for value in giver.reply(giver.ask("share", x[0], 0, 0, 60000))[0][:2]]
        buffer = taker.fresh()
        taker.reply(taker.ask("attach", buffer, *half))
        taken.append([buffer, *x[1:]])
        giver.op("revoke", *half)
    return taken


@pytest.mark.parametrize("late", [False, True])
def test_what_two_sessions_have_leaves_as_well(start, late):
    """The device is full of arrays that two sessions hold. Each gets its own copy of them when room is needed."""
    server = start(*LIMITS, env={"ARRAYD_CPU_LATE": "1"} if late else {})
    giver, taker = Client(server.path), Client(server.path)
    shared = [giver.put(np.arange(N) + float(i)) for i in range(10)]
    giver.sync()
    taken = share_all(giver, taker, shared)
    more = [taker.put(np.arange(N) - float(i)) for i in range(14)]
    for x in taken[::2]:
        taker.ufunc("add", "float64", [N], x, 100.0, out=[x[0], x[1], 0, [N]])
    taker.sync()
    assert taker.stat("ops_failed") == 0 and taker.stat("moved_out") > 10 * N * 8
    for i, x in enumerate(shared):
        np.testing.assert_array_equal(giver.get(x), np.arange(N) + float(i))
    for i, x in enumerate(taken):
        np.testing.assert_array_equal(taker.get(x), np.arange(N) + float(i) + (0 if i % 2 else 100))
    for i, x in enumerate(more):
        np.testing.assert_array_equal(taker.get(x), np.arange(N) - float(i))
    giver.close()
    taker.close()
    nothing_left(server)


@pytest.mark.parametrize("user, session, fits", [(35, 0, True), (35, 2, True), (33, 0, False), (35, 1, False)])
def test_what_two_sessions_have_stays_where_copies_are_above_a_limit(start, tmp_path, user, session, fits):
    """The device is full of arrays that two sessions hold. Room is made by a copy more, unless their user, or the session
    that pays for none of them, would then have more than it may. The limits are in halves of arrays."""
    principals = tmp_path / "principals"
    principals.write_text(f"uid:{os.getuid()} memory={user * N * 4 >> 10}K\n")
    server = start(*LIMITS, f"--principals={principals}")
    giver, taker = Client(server.path), Client(server.path)
    shared = [giver.put(np.arange(N) + float(i)) for i in range(14)]
    giver.sync()
    taken = share_all(giver, taker, shared)
    taker.reply(taker.ask("pool", 0, 2, session * N * 4))
    x = [giver.put(np.arange(N) - float(i)) for i in range(2)]
    half = [[d[0], d[1], 0, [N // 2]] for d in x]
    total = giver.ufunc("add", "float64", [N // 2], *half)
    if fits:
        np.testing.assert_array_equal(giver.get(total), np.arange(N // 2) * 2.0 - 1)
    else:
        with pytest.raises(Failed, match="out of device memory"):
            giver.get(total)
    assert giver.stat("principal_bytes") == (35 if fits else 32) * N * 4
    for i, d in enumerate(shared):
        np.testing.assert_array_equal(giver.get(d), np.arange(N) + float(i))
        np.testing.assert_array_equal(taker.get(taken[i]), np.arange(N) + float(i))
    giver.close()
    taker.close()
    nothing_left(server)


@pytest.mark.parametrize("late", [False, True])
def test_what_is_being_read_stays(start, late):
    """A client that takes its time with a large array gets it as it was, whatever others need meanwhile."""
    server = start("--memory=16M", "--slab=4M", "--host-memory=64M", env={"ARRAYD_CPU_LATE": "1"} if late else {})
    slow, other = Client(server.path), Client(server.path)
    data = np.random.default_rng(1).random(1 << 20)
    x = slow.put(data)
    slow.sync()
    request = slow.ask("read", x)  # more than is kept for it: the reply stands still
    wait_until(lambda: other.stat("sessions") == 2 and slow.socket.recv(1, socket.MSG_PEEK), "it has begun")
    arrays = [other.put(np.full(N * 8, float(i))) for i in range(14)]
    for i in range(28):
        y = arrays[i % 14]
        other.ufunc("add", "float64", [N * 8], y, 1.0, out=[y[0], y[1], 0, [N * 8]])
    other.sync()
    assert other.stat("host_bytes") >= 5 << 20 and other.stat("ops_failed") == 0
    _, got = slow.reply(request)
    np.testing.assert_array_equal(np.frombuffer(got), data)
    for i, y in enumerate(arrays):
        np.testing.assert_array_equal(other.get(y), np.full(N * 8, i + 2.0))
