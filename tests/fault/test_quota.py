"""Limits of a principal: what counts, who pays, what is said, and that all goes on after it."""
import contextlib
import fcntl
import os
import random
import signal
import socket
import subprocess
import sys

import numpy as np
import pytest

import raw
from places import LIMIT, refusal, reload, works
from raw import Client, Failed, wait_until

MIB = 1 << 20


def failure(call):
    with pytest.raises(Failed) as failed:
        call()
    return failed.value


def fill(client, mib):
    """An array of so many MiB that is written."""
    return client.ufunc("add", "uint8", [int(mib * MIB)], client.put(np.ones(1, np.uint8)), 1)


def read(client, d):
    return client.get([d[0], d[1], 0, [1]])


def why_refused(client, window):
    """The failure of a fetch of an empty array into a window that the server has refused."""
    nothing = client.put(np.zeros(0, np.uint8))
    return failure(lambda: client.reply(client.ask("fetch", nothing, window, 0)))


def window(client, size):
    """A window of the client's; its id."""
    fd = os.memfd_create("window", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    try:
        os.ftruncate(fd, size)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        client.windows = getattr(client, "windows", 0) + 1
        client.flush()
        control = raw.frame(raw.message("window", client.windows, size))
        sent = socket.send_fds(client.socket, [control], [fd])
        client.send(control[sent:])
        client.operations += 1
        return client.windows
    finally:
        os.close(fd)


def share(client, d, *more):
    (a, b, _), _ = client.reply(client.ask("share", d[0], *(more or (0, 0, 0))))
    return a % 2**64, b % 2**64


def attach_name(client, principal, name, d):
    buffer = client.fresh()
    client.reply(client.ask("attach_name", buffer, principal, name))
    return [buffer, *d[1:]]


@pytest.fixture
def users(tmp_path):
    """The file of principals, and what this process's user is called."""
    path = tmp_path / "principals"

    def write(grants):
        path.write_text(f"uid:{os.getuid()} {grants}\n")
        return f"--principals={path}"

    return write


# ---- what counts ----

def test_buffers_of_all_sessions_together(start, place):
    place.add("bob", "memory=16M")
    server = start(*place.options("tcp"))
    one, two = place.client(server, "tcp", "bob"), place.client(server, "tcp", "bob")
    x = fill(one, 6)
    assert read(one, x) == 2
    y = fill(two, 6)
    assert read(two, y) == 2
    why = failure(lambda: read(two, fill(two, 6)))
    assert why.error == "memory" and why.name == "add"
    assert "6.0 MiB more are above the 16 MiB of a device that token:bob may have (grant memory)" in why.text
    assert "it has 12 MiB in buffers" in why.text and "this session: 6.0 MiB in" in why.text
    counters = two.stat()  # also when all is full
    assert 12 * MIB <= counters["principal_bytes"] < 13 * MIB and counters["principal_limit"] == 16 * MIB
    assert 6 * MIB <= counters["held_bytes"] < 7 * MIB and counters["memory_refused"] == 1
    assert works(place.client(server, "tcp"))  # alice
    one.free(x)
    one.sync()
    assert read(two, fill(two, 6)) == 2
    one.close()
    two.close()
    again = place.client(server, "tcp", "bob")
    wait_until(lambda: again.stat("principal_bytes") == 0, "all is given back")


def test_a_session_has_a_limit_of_its_own(start, place):
    place.add("bob", "memory=24M memory-each=8M")
    server = start(*place.options("tcp"))
    clients = [place.client(server, "tcp", "bob") for _ in range(3)]
    for client in clients:
        assert read(client, fill(client, 6)) == 2
        why = failure(lambda: read(client, fill(client, 6)))
        assert "limit of 8.0 MiB that this session was given (grant memory-each)" in why.text
        assert client.stat("session_limit") == 8 * MIB
        # The session cannot raise that limit by what it asks for itself.
        assert client.reply(client.ask("pool", 0, 2, 1 << 40))[0][3] == 8 * MIB
        assert client.reply(client.ask("pool", 0, 2, 0))[0][3] == 8 * MIB


@pytest.mark.parametrize("late", [False, True])
def test_temporaries_count(start, place, late):
    """A copy of what an output overlaps, and of an array that is read across."""
    place.add("bob", "memory=16M")
    server = start(*place.options("tcp"), env={"ARRAYD_CPU_LATE": "1"} if late else {})
    client = place.client(server, "tcp", "bob")
    n = 12 * MIB
    x = client.put(np.arange(n, dtype=np.uint8))
    client.ufunc("add", "uint8", [n - 1], [x[0], x[1], 0, [n - 1]], 1, out=[x[0], x[1], 1, [n - 1]])
    why = failure(client.sync)
    assert why.error == "memory" and why.name == "add" and "(grant memory); it has 12 MiB in buffers" in why.text
    why = failure(lambda: client.get([x[0], x[1], n - 1, [n], [-1]]))
    assert why.error == "memory" and "grant memory" in why.text
    np.testing.assert_array_equal(client.get(x), np.arange(n, dtype=np.uint8))  # the array has not changed
    # Little enough it does, and nothing of it is left over.
    n = MIB
    for _ in range(20):
        client.ufunc("add", "uint8", [n - 1], [x[0], x[1], 0, [n - 1]], 1, out=[x[0], x[1], 1, [n - 1]])
        client.get([x[0], x[1], n - 1, [n], [-1]])
    counters = client.stat()
    assert 12 * MIB <= counters["principal_bytes"] < 12.5 * MIB and counters["ops_failed"] == 1


def test_windows_count(start, users):
    server = start(users("memory=32M"))
    client, other = Client(server.path), Client(server.path)
    w = window(client, 8 * MIB)
    client.sync()
    assert client.stat("principal_bytes") == 8 * MIB == client.stat("window_bytes")
    why = why_refused(other, window(other, 4096))  # a quarter in windows, and no more
    assert why.error == "limit" and "fetch: there is no window 1: " in why.text and "above a quarter of what" in why.text
    x = fill(other, 20)
    assert read(other, x) == 2
    why = failure(lambda: read(other, fill(other, 6)))
    assert "20 MiB in buffers, 8.0 MiB in windows" in why.text
    client.op("window_drop", w)
    client.sync()
    assert read(other, fill(other, 6)) == 2
    assert client.stat("window_bytes") == 0
    why = why_refused(client, window(client, 6 * MIB))
    assert why.error == "limit" and "(grant memory); it has" in why.text
    for each in (client, other):
        each.close()
    last = Client(server.path)
    wait_until(lambda: last.stat("principal_bytes") == 0, "all is given back")


def test_windows_count_for_their_session(start, users):
    server = start(users("memory-each=8M"))
    client = Client(server.path)
    window(client, 6 * MIB)
    client.sync()
    why = failure(lambda: read(client, fill(client, 3)))
    assert "grant memory-each" in why.text and "6.0 MiB in windows" in why.text
    assert why_refused(client, window(client, 4 * MIB)).error == "limit"
    assert client.stat("window_bytes") == 6 * MIB


def test_the_library_does_with_small_windows(start, users):
    """The server refuses large windows and grants smaller ones. Arrays come and go all the same."""
    server = start(users("memory=24M"))
    code = """
import numpy as np, arrayd as ad
x = np.arange(1 << 20, dtype="float32")
for i in range(8):
    a = ad.asarray(x)
    assert (ad.asnumpy(a * 2) == x * 2).all()
print(ad.stat()["window_bytes"])
"""
    env = {**os.environ, "PYTHONPATH": str(raw.PACKAGE), "ARRAYD_URL": f"unix:{server.path}"}
    out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    assert int(out.stdout) <= 6 * MIB


# ---- who pays ----

def test_names_and_capabilities_are_paid_by_their_owner(start, place):
    place.add("bob", "memory=16M names=yes")
    server = start(*place.options("tcp"))
    client = place.client(server, "tcp", "bob")
    watcher = place.client(server, "tcp", "bob")
    x = fill(client, 6)
    client.reply(client.ask("publish", x, 0, "kept", ""))
    y = fill(client, 6)
    share(client, y, 0, 0, 60000)
    client.free(x, y)
    client.sync()
    client.close()  # nobody has a buffer any more
    wait_until(lambda: watcher.stat("sessions") == 1, "it has gone")
    assert 12 * MIB <= watcher.stat("principal_bytes") < 13 * MIB
    why = failure(lambda: read(watcher, fill(watcher, 6)))
    assert "it has 12 MiB in buffers" in why.text
    watcher.reply(watcher.ask("unpublish", "kept"))
    assert watcher.stat("principal_bytes") < 7 * MIB
    assert read(watcher, fill(watcher, 6)) == 2


def test_who_holds_it_last_pays(start, place):
    place.add("alice", "memory=16M names=yes")
    place.add("bob", "memory=16M names=yes")
    server = start(*place.options("tcp"))
    alice, bob = place.client(server, "tcp", "alice"), place.client(server, "tcp", "bob")

    def paid():
        return [round(c.stat("principal_bytes") / MIB) for c in (alice, bob)]

    first = place.client(server, "tcp", "alice")
    x = fill(first, 6)
    first.reply(first.ask("publish", x, 0, "x", "token:bob"))
    y = attach_name(bob, "token:alice", "x", x)
    assert read(bob, y) == 2 and paid() == [6, 0]
    first.free(x)
    first.sync()
    assert paid() == [6, 0]  # the name is alice's still
    alice.reply(alice.ask("unpublish", "x"))
    assert paid() == [0, 6]  # now only bob holds the array
    first.close()
    wait_until(lambda: alice.stat("sessions") == 2, "its session has gone")
    assert paid() == [0, 6] and read(bob, y) == 2
    assert read(alice, fill(alice, 12)) == 2
    read(bob, fill(bob, 6))
    assert "12 MiB in buffers" in failure(lambda: read(bob, fill(bob, 6))).text
    bob.reply(bob.ask("publish", y, 0, "mine", ""))
    bob.free(y)
    bob.sync()
    assert paid()[1] == 12  # by a name
    bob.reply(bob.ask("unpublish", "mine"))
    assert paid()[1] == 6
    assert read(bob, fill(bob, 8)) == 2


def fork(client):
    """The child's session."""
    child = Client(client.fork(), greet=False)
    assert child.receive_message()[0] == raw.REQUEST["welcome"]
    return child


def test_a_fork_costs_what_it_writes(start, users):
    server = start(users("memory=16M"))
    client = Client(server.path)
    x = fill(client, 6)
    client.sync()
    child = fork(client)
    assert round(child.stat("principal_bytes") / MIB) == 6
    child.ufunc("add", "uint8", [6 * MIB], x, 1, out=x)
    assert read(child, x) == 3 and read(client, x) == 2
    assert round(child.stat("principal_bytes") / MIB) == 12
    client.ufunc("add", "uint8", [6 * MIB], x, 1, out=x)  # it is its own by now: nothing more
    assert read(client, x) == 3 and round(child.stat("principal_bytes") / MIB) == 12
    child.close()
    wait_until(lambda: round(client.stat("principal_bytes") / MIB) == 6, "the child's is given back")


def test_accounts_of_random_sharing_end_at_nothing(start, place):
    for name in ("alice", "bob", "carol"):
        place.add(name, "names=yes")
    server, rng = start(*place.options("tcp")), random.Random(3)
    names = ["alice", "bob", "carol"]
    watchers = {name: place.client(server, "tcp", name) for name in names}
    for _ in range(10):
        clients = [(name, place.client(server, "tcp", name)) for name in rng.choices(names, k=4)]
        held = []
        for _ in range(40):
            name, client = rng.choice(clients)
            action = rng.randrange(5)
            with contextlib.suppress(Failed):
                if action == 0:
                    held.append((client, fill(client, rng.choice([0.01, 0.5]))))
                elif action == 1 and held:
                    owner, d = rng.choice(held)
                    owner.reply(owner.ask("publish", d, rng.randrange(2), "n", "*"))
                elif action == 2:
                    buffer = client.fresh()
                    (size, *_), _ = client.reply(client.ask("attach_name", buffer, "token:" + rng.choice(names), "n"))
                    held.append((client, [buffer, 5, 0, [size]]))
                elif action == 3 and held:
                    owner, d = held.pop(rng.randrange(len(held)))
                    owner.free(d)
                    owner.sync()
                elif held:
                    owner, d = rng.choice(held)
                    owner.ufunc("add", "uint8", d[3], d, 1, out=d)
                    owner.sync()
        rng.shuffle(clients)
        for name, client in clients:
            client.close()
        for watcher in watchers.values():
            with contextlib.suppress(Failed):
                watcher.reply(watcher.ask("unpublish", "n"))
        counters = {}

        def quiet():
            counters.update({name: watcher.stat() for name, watcher in watchers.items()})
            return counters["alice"]["sessions"] == 3

        wait_until(quiet, "all have gone")
        counters = {name: watcher.stat() for name, watcher in watchers.items()}
        assert all(c["principal_bytes"] == 0 and c["used_bytes"] == 0 for c in counters.values()), counters


# ---- the device ----

@pytest.mark.parametrize("grants, told", [("admin=no", "others 24 MiB"), ("admin=yes", "token:bob 24 MiB")])
def test_a_full_device_says_who_holds_what(start, place, grants, told):
    place.add("alice", grants)
    place.add("bob")
    server = start(*place.options("tcp"), "--memory=40M", "--slab=1M")
    alice, bob = place.client(server, "tcp", "alice"), place.client(server, "tcp", "bob")
    assert read(bob, fill(bob, 24)) == 2
    x = fill(alice, 8)
    assert read(alice, x) == 2
    why = failure(lambda: read(alice, fill(alice, 12)))
    assert "12 MiB more: they do not fit in 40 MiB (option memory); token:alice holds 8.0 MiB in buffers" in why.text
    assert told in why.text and ("token:bob" in why.text) == ("yes" in grants)
    assert alice.stat("used_bytes") > 32 * MIB and alice.stat("memory_refused") == 1
    alice.free(x)
    assert read(alice, fill(alice, 12)) == 2


def test_reserved_memory_is_nobody_elses(start, place):
    place.add("alice")
    place.add("bob", "reserve=16M")
    server = start(*place.options("tcp"), "--memory=32M", "--slab=1M")
    alice = place.client(server, "tcp", "alice")
    assert "reserved for others 16 MiB" in failure(lambda: read(alice, fill(alice, 18))).text
    x = fill(alice, 12)
    assert read(alice, x) == 2
    bob = place.client(server, "tcp", "bob")
    y = fill(bob, 14)
    assert read(bob, y) == 2 and bob.stat("principal_reserved") == 16 * MIB
    assert "do not fit" in failure(lambda: read(bob, fill(bob, 8))).text
    # A line that changes later holds from then on: nobody is put out for it.
    place.lines["bob"] = place.lines["bob"].replace("reserve=16M", "reserve=24M")
    place.write()
    assert reload(server)
    wait_until(lambda: bob.stat("principal_reserved") == 24 * MIB, "the worker has heard of it")
    alice.free(x)
    alice.sync()
    assert read(bob, fill(bob, 8)) == 2
    assert "do not fit" in failure(lambda: read(alice, fill(alice, 12))).text
    place.lines["bob"] = place.lines["bob"].replace("reserve=24M", "")
    place.write()
    assert reload(server)
    wait_until(lambda: bob.stat("principal_reserved") == 0, "the worker has heard of it")


def test_more_reserved_than_there_is_does_not_start(start, place):
    place.add("bob", "reserve=40M")
    place.add("carol", "reserve=40M")
    for more in (["--memory=64M"], []):
        if not more:  # what the machine has is known only when a worker has looked
            for name in ("bob", "carol"):
                place.lines[name] = place.lines[name].replace("40M", "900000G")
            place.write()
        server = start(*place.options("tcp"), *more, wait=False)
        server.expected_status = 1
        assert server.wait() == 1
        assert any("cannot start" in line and "all that is reserved of device 0 is more than" in line and
                   "option memory" in line for line in server.lines), server.lines
    for name in ("bob", "carol"):
        place.lines[name] = place.lines[name].replace("900000G", "20M")
    place.write()
    server = start(*place.options("tcp"), "--memory=64M")
    place.add("dora", "reserve=30M")
    assert not reload(server)
    assert works(place.client(server, "tcp", "bob"))


def test_memory_reserved_on_other_devices_is_not_counted(start, place):
    place.add("bob", "reserve=40M devices=0")
    place.add("carol", "reserve=40M devices=1")
    server = start(*place.options("tcp"), "--memory=64M")
    assert works(place.client(server, "tcp", "alice"))


# ---- other grants ----

def test_buffers_of_a_session(start, place):
    place.add("bob", "buffers=5")
    server = start(*place.options("tcp"))
    client = place.client(server, "tcp", "bob")
    assert client.welcome[5]["max_buffers"] == 5
    some = [client.new("int8", [1]) for _ in range(5)]
    client.sync()
    client.new("int8", [1])
    why = failure(client.sync)
    assert why.error == "limit" and "holds 5 buffers" in why.text
    client.free(*some)
    assert works(client)


def test_forks_count_as_sessions(start, users):
    server = start(users("sessions=3"))
    client = Client(server.path)
    child, grandchild = fork(client), None
    child.sync()
    grandchild = fork(child)
    grandchild.sync()
    why = refusal(lambda: Client(server.path))
    assert why.code == LIMIT and "has 3, as many as it may have" in why.text
    grandchild.close()
    wait_until(lambda: client.stat("sessions") == 2, "it has gone")
    again = []

    def comes_in():
        with contextlib.suppress(raw.Closed):
            again.append(Client(server.path))
        return bool(again)

    wait_until(comes_in, "its place is free")
    assert works(again[0]) and works(child)
    assert refusal(lambda: Client(server.path)).code == LIMIT
    os.kill(client.stat("worker_pid"), signal.SIGKILL)  # with the worker all of them go
    wait_until(lambda: server.said("worker exited"), "the worker is gone")
    assert works(Client(server.path))


def test_names_of_a_principal(start, place):
    place.add("bob", "names=2")
    place.add("carol", "names=yes")
    server = start(*place.options("tcp"))
    client, other = (place.client(server, "tcp", name) for name in ("bob", "carol"))
    x = client.put(np.ones(4))
    for name in ("a", "b", "a"):  # the same name again is no other one
        client.reply(client.ask("publish", x, 0, name, ""))
    why = failure(lambda: client.reply(client.ask("publish", x, 0, "c", "")))
    assert why.error == "limit" and "token:bob has 2 names, as many as it may have (grant names=N" in why.text
    y = other.put(np.ones(4))
    for name in "abcde":
        other.reply(other.ask("publish", y, 0, name, ""))
    client.reply(client.ask("unpublish", "a"))
    client.reply(client.ask("publish", x, 0, "c", ""))
    refused = place.client(server, "tcp", "alice")
    why = failure(lambda: refused.reply(refused.ask("publish", refused.put(np.ones(4)), 0, "c", "")))
    assert why.error == "denied" and "grant names" in why.text


def test_room_is_left_for_others(start, place):
    """A principal without a number of its own takes neither all sessions nor all names; the server's own user may."""
    place.add("alice", "names=yes")
    place.add("bob", "names=yes")
    place.add("carol", "sessions=300")
    server = start(*place.options("tcp"))
    alice = [place.client(server, "tcp", "alice") for _ in range(256)]
    why = refusal(lambda: place.client(server, "tcp", "alice"))
    assert why.code == LIMIT and "token:alice has 256, as many as it may have" in why.text
    assert "grant sessions=N in the file of option principals or tokens, or option sessions-each" in why.text
    bob = place.client(server, "tcp", "bob")
    carol = [place.client(server, "tcp", "carol") for _ in range(300)]
    own = [Client(server.path) for _ in range(300)]
    assert works(bob) and works(carol[-1]) and works(own[-1])
    x = alice[0].put(np.ones(4))
    for i in range(1024):
        alice[0].reply(alice[0].ask("publish", x, 0, f"n{i}", ""))
    why = failure(lambda: alice[1].reply(alice[1].ask("publish", alice[1].put(np.ones(4)), 0, "one-more", "")))
    assert why.error == "limit" and "token:alice has 1024 names, as many as it may have" in why.text
    assert "grant names=N in the file of option principals or tokens, or option published-each" in why.text
    for client in (bob, own[0]):
        client.reply(client.ask("publish", client.put(np.ones(4)), 0, "mine", ""))


def test_what_is_left_is_set_by_options(start, place):
    for name in ("alice", "bob"):
        place.add(name, "names=yes")
    server = start(*place.options("tcp"), "--sessions-each=2", "--published-each=3")
    alice = [place.client(server, "tcp", "alice") for _ in range(2)]
    assert "token:alice has 2," in refusal(lambda: place.client(server, "tcp", "alice")).text
    x = alice[0].put(np.ones(4))
    for name in "abc":
        alice[0].reply(alice[0].ask("publish", x, 0, name, ""))
    assert "has 3 names" in failure(lambda: alice[0].reply(alice[0].ask("publish", x, 0, "d", ""))).text
    bob = place.client(server, "tcp", "bob")
    bob.reply(bob.ask("publish", bob.put(np.ones(4)), 0, "d", ""))
    own = [Client(server.path) for _ in range(5)]
    for name in "abcde":
        own[0].reply(own[0].ask("publish", own[0].put(np.ones(4)), 0, name, ""))


def has_room(client):
    try:
        return client.get(client.put(np.ones(1))) == 1
    except Failed:
        return False


def test_arrays_of_all_sessions_of_a_principal(start, place):
    """Small arrays cost host memory that no quota of a device counts: all sessions of a principal have a limit of them."""
    for name in ("alice", "bob"):
        place.add(name)
    server = start(*place.options("tcp"), "--buffers-each=256", "--resume-time=0")
    first, second = (place.client(server, "tcp", "alice") for _ in range(2))
    kept = [first.put(np.ones(1)) for _ in range(192)]
    mine = [second.put(np.ones(1)) for _ in range(64)]
    first.sync()
    second.sync()
    lacking = failure(lambda: second.get(second.put(np.ones(1))))
    assert lacking.error == "limit" and "token:alice have room for 256 buffers" in lacking.text
    assert "option buffers-each" in lacking.text
    assert (first.get(kept[-1]) == 1).all() and (second.get(mine[-1]) == 1).all()
    other, own = place.client(server, "tcp", "bob"), Client(server.path)
    assert works(other)
    for client in (own, Client(server.path)):
        last = [client.put(np.ones(1)) for _ in range(300)][-1]
        assert (client.get(last) == 1).all()
    first.close()
    wait_until(lambda: has_room(second), "the first session's arrays are gone")


def test_exports_of_a_principal(start, place):
    place.add("bob", "exports=no")
    server = start(*place.options("tcp"))
    client, other = place.client(server, "tcp", "bob"), place.client(server, "tcp", "alice")
    why = failure(lambda: share(client, client.put(np.ones(4))))
    assert why.error == "denied" and "token:bob may not hand arrays to other sessions (grant exports)" in why.text
    assert works(client) and share(other, other.put(np.ones(4)))


def test_devices_of_a_principal(start, place):
    place.add("bob", "devices=0")
    server = start(*place.options("tcp"))
    client = place.client(server, "tcp", "bob")
    assert works(client)
    for request in (("device", 5), ("pool", 5, 0, 0)):
        why = failure(lambda: client.reply(client.ask(*request)))
        assert why.error == "denied" and "may not use device 5 (grant devices)" in why.text
    client.op("stream", 64, 5, 0)
    assert failure(client.sync).error == "denied"


# ---- memory that fails ----

@pytest.mark.parametrize("status", ["memory", "device"])
def test_the_device_fails_at_every_slab(start, place, status):
    """The operation at which the device fails gets an error, and nothing is charged for it; the next one succeeds.
    Where only memory was short, the server has given back what it kept, and got it."""
    place.add("bob", "memory=64M")
    for n in range(1, 20):
        server = start(*place.options("tcp"), "--slab=1M", env={"ARRAYD_FAULT": f"slab_create:{n}:{status}"})
        client, watcher = (place.client(server, "tcp", "bob") for _ in range(2))
        failed = []
        for size in (0.01, 1, 3, 5, 0.3, 7):
            try:
                assert read(client, fill(client, size)) == 2
            except Failed as why:
                failed.append(why.error)
                assert read(client, fill(client, size)) == 2
        assert bool(client.stat("ops_failed")) == bool(failed)
        client.close()
        wait_until(lambda: watcher.stat("sessions") == 1, "it has gone")
        assert watcher.stat("principal_bytes") == watcher.stat("used_bytes") == 0
        if not failed:
            break
        assert failed == ["device"]
    assert n == 1 if status == "memory" else 3 < n < 19


@pytest.mark.parametrize("call", ["malloc", "calloc"])
def test_the_host_fails_at_every_allocation(place, call, tmp_path):
    """The allocation fails while principals with reservations come, fill what they may have, and go."""
    place.add("bob", "memory=8M reserve=4M names=yes")
    for n in range(1, 300):
        once = tmp_path / f"{n}"
        server = raw.Server(*place.options("tcp"), "--slab=1M", "--memory=16M", folder=str(tmp_path),
                            env={"ARRAYD_FAULT_OS": f"arrayd-worker:{call}:{n}", "ARRAYD_FAULT_ONCE": str(once)})
        clients = []
        try:
            clients.append(place.client(server, "tcp", "bob"))
            client, = clients
            x = fill(client, 6)
            client.reply(client.ask("publish", x, 0, "x", ""))
            assert read(client, attach_name(client, "", "x", x)) == 2
            assert "grant memory" in failure(lambda: read(client, fill(client, 6))).text
        except (raw.Closed, Failed, ConnectionError, FileNotFoundError, StopIteration, AssertionError):
            wait_until(once.exists, "a reason")
        for client in clients:
            client.close()
        if not once.exists():
            assert server.stop() == 0, "\n".join(server.lines)
            break
        if server.process.poll() is None:
            client = place.client(server, "tcp", "bob")
            with contextlib.suppress(Failed):
                client.reply(client.ask("unpublish", "x"))
            wait_until(lambda: client.stat("sessions") == 1 and client.stat("principal_bytes") == 0, "nothing is left")
            assert read(client, fill(client, 6)) == 2 and client.stat("principal_reserved") == 4 * MIB
            assert server.stop() == 0, "\n".join(server.lines)
        else:
            assert server.wait() in (1, 2) and server.said("fault injected"), "\n".join(server.lines)
    else:
        raise AssertionError("the scenario never got through")
