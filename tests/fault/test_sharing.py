"""Processes that share arrays and are killed, in either order: no leak, no crash, no foreign bytes."""
import os
import random
import signal

import numpy as np
import pytest

import raw
from raw import Client, Failed, wait_until

SHARED = ("shared_buffers", "shared_bytes", "capabilities", "published", "orphans", "used_bytes")
N = 100_000
ROUNDS = 100

def owner(path, number, tell):
    """A process that shares an array, and tells how it may be attached."""
    client = Client(path)
    x = client.put(np.full(N, float(number)))
    (a, b, _), _ = client.reply(client.ask("share", x[0], 1, 0, 60000))
    client.reply(client.ask("share", x[0], 0, 0, 0))
    tell(a % 2**64, b % 2**64)
    signal.pause()


def user(path, capability, tell):
    """Be one that attaches the array, and goes on writing it."""
    client = Client(path)
    d = [client.fresh(), raw.DTYPES.index("float64"), 0, [N]]
    client.reply(client.ask("attach", d[0], *capability))
    values = client.get(d)
    tell(int(values.min()), int(values.max()))
    while True:
        client.ufunc("add", "float64", [N], d, d, out=d)
        client.sync()


def begin(function, *arguments):
    """A process that runs it until it is killed, and what it tells."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            function(*arguments, lambda *numbers: os.write(write, f"{numbers}".encode()))
        finally:
            os._exit(1)
    os.close(write)
    told = os.read(read, 1000)
    os.close(read)
    return pid, eval(told)


def end(pid):
    os.kill(pid, signal.SIGKILL)
    assert os.waitpid(pid, 0)[1] == signal.SIGKILL


def nothing_shared(client):
    def look():
        counters = client.stat()
        return counters["sessions"] == 1 and not any(counters[name] for name in SHARED)
    return look


def test_killed_in_either_order(start):
    server, rng = start(), random.Random(5)
    watcher = Client(server.path)
    for i in range(ROUNDS):
        first, capability = begin(owner, server.path, i)
        if i % 4 == 0:
            end(first)  # what it handed on lingers
        second, values = begin(user, server.path, capability)
        assert values == (i, i)
        for pid in rng.sample([second] if i % 4 == 0 else [first, second], 1 + (i % 4 != 0)):
            end(pid)
        wait_until(nothing_shared(watcher), "all is given back")
    assert server.worker and not server.said("worker died")


@pytest.mark.parametrize("late", [False, True])
def test_cut_off_at_any_point(start, late):
    """Sessions end with shared arrays in every state: queued writes, reads under way, capabilities not yet used."""
    server, rng = start(env={"ARRAYD_CPU_LATE": "1"} if late else {}), random.Random(int(late))
    watcher = Client(server.path)
    for i in range(ROUNDS):
        owner, users = Client(server.path), [Client(server.path) for _ in range(rng.randrange(1, 4))]
        x = owner.put(np.full(N, float(i)))
        for user in users:
            (a, b, _), _ = owner.reply(owner.ask("share", x[0], rng.choice([0, 1]), 0, 0))
            buffer = user.fresh()
            user.reply(user.ask("attach", buffer, a % 2**64, b % 2**64))
            d = [buffer, x[1], 0, [N]]
            for _ in range(rng.randrange(30)):
                user.ufunc("add", "float64", [N], d, d, out=d if rng.random() < 0.5 else None)
            if rng.random() < 0.5:
                user.ask("read", d)
            user.flush()
        if rng.random() < 0.3:
            users.append(Client(owner.fork(), greet=False))
        if rng.random() < 0.3:
            owner.reply(owner.ask("publish", x, rng.choice([0, 1]), "name", ""))
        everybody = [owner, *users]
        rng.shuffle(everybody)
        for client in everybody:
            client.close()
        try:
            watcher.reply(watcher.ask("unpublish", "name"))
        except Failed as failed:
            assert failed.error == "name"
        if i % 10 == 9:
            wait_until(lambda: watcher.stat("sessions") == 1, "all have gone")
            try:
                watcher.reply(watcher.ask("unpublish", "name"))
            except Failed:
                pass
            wait_until(nothing_shared(watcher), "all is given back")
    assert server.worker and not server.said("worker died")


@pytest.mark.parametrize("late", [False, True])
def test_one_array_does_not_keep_the_others_memory(start, late):
    """A session is over, and of its arrays one has a name and one a user: the memory of all others goes back."""
    server = start("--slab=1M", env={"ARRAYD_CPU_LATE": "1"} if late else {})
    owner, user = Client(server.path), Client(server.path)
    owner.reply(owner.ask("publish", owner.put(np.ones(N)), 0, "name", ""))
    (a, b, _), _ = owner.reply(owner.ask("share", owner.put(np.ones(N))[0], 1, 0, 0))
    buffer = user.fresh()
    user.reply(user.ask("attach", buffer, a % 2**64, b % 2**64))
    for _ in range(20):
        owner.put(np.ones(40_000))
    owner.sync()
    assert user.stat("slabs") > 10
    owner.close()
    wait_until(lambda: user.stat("slabs") == 2, "the other arrays' memory has gone back")
    user.op("free", [buffer])
    user.reply(user.ask("unpublish", "name"))
    wait_until(lambda: user.stat("slabs") == 0, "all has gone back")


def test_no_foreign_bytes(start):
    """A session that attaches an array reaches that and not a byte more."""
    server = start()
    owner, user = Client(server.path), Client(server.path)
    x = owner.put(np.full(N, 7.25))
    (a, b, _), _ = owner.reply(owner.ask("share", x[0], 1, 0, 0))
    buffer = user.fresh()
    user.reply(user.ask("attach", buffer, a % 2**64, b % 2**64))
    assert (user.get([buffer, x[1], 0, [N]]) == 7.25).all()
    for offset, count in ((0, N + 1), (8, N), (N * 8, 1), (0, 2 * N)):
        with pytest.raises(Failed, match="reaches beyond"):
            user.get([buffer, x[1], offset, [count]])
    owner.close(), user.close()


def test_the_worker_stops_with_arrays_shared(start):
    """Nothing is left of them then either (the leak sanitizer looks)."""
    server = start()
    clients = [Client(server.path) for _ in range(3)]
    for i, client in enumerate(clients):
        x = client.put(np.ones(N))
        client.reply(client.ask("share", x[0], 0, 0, 60000))
        client.reply(client.ask("publish", x, i % 2, f"name{i}", "*"))
    clients[0].close()
    server.process.send_signal(signal.SIGTERM)
    assert server.wait() == 0
