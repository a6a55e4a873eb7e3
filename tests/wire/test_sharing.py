"""Arrays that several sessions hold: capabilities, names, forks, from wire.md's section 12; and what must be refused."""
import os
import random
import socket
import subprocess
import sys
import time

import numpy as np
import pytest

from wire_client import (ATTACH, ERROR, FORK, FREE, NEW, PUBLISH, REVOKE, TIMEOUT, UNPUBLISH, WELCOME, Client, Closed,
                         Failed, Server, fork, fresh, view)

X = np.arange(1000.0)
ZERO = {"shared_buffers": 0, "shared_bytes": 0, "capabilities": 0, "published": 0, "orphans": 0, "used_bytes": 0}


def refused(name, call, *arguments, **named):
    with pytest.raises(Failed) as failed:
        call(*arguments, **named)
    assert failed.value.code == ERROR[name], failed.value
    return failed.value.text


def whole(buffer, values=X):
    return view(buffer, values.dtype.name, values.shape)


def nothing_left(server):
    """No session but this one, and nothing that others hold; the server may have to notice that they have gone."""
    client, end = server.client(), time.monotonic() + TIMEOUT
    while True:
        counters = client.stat()
        left = {name: counters[name] for name in ZERO} | {"sessions": counters["sessions"]}
        if left == ZERO | {"sessions": 1}:
            return client.socket.close()
        assert time.monotonic() < end, left


@pytest.fixture(autouse=True)
def clean(server):
    yield
    nothing_left(server)


@pytest.fixture
def two(server):
    with server.client() as a, server.client() as b:
        yield a, b


# ---- capabilities ----

def test_a_snapshot(two):
    """A session that attaches sees what was there. A session that writes gets a copy, and the others do not see it."""
    a, b = two
    buffer = a.upload(X)
    theirs, size, kind = b.attach(a.share(buffer))
    assert (size, kind) == (X.nbytes, 0)
    a.ufunc("add", "float64", [whole(buffer)], [whole(buffer), 1.0])
    assert np.array_equal(b.read(whole(theirs)), X) and np.array_equal(a.read(whole(buffer)), X + 1)
    b.write(theirs, np.float64(-5).tobytes(), 8)
    assert b.read(whole(theirs))[1] == -5 and a.read(whole(buffer))[1] == 2
    a.sync(), b.sync()


def test_overlapping_views_of_a_shared_buffer(two):
    """A write that reads what it overwrites, when the write is what takes the copy."""
    a, b = two
    buffer = a.upload(X)
    theirs = b.attach(a.share(buffer))[0]
    b.ufunc("add", "float64", [view(theirs, "float64", [999], offset=8)], [view(theirs, "float64", [999]), 0.5])
    expected = X.copy()
    expected[1:] = X[:-1] + 0.5
    assert np.array_equal(b.read(whole(theirs)), expected) and np.array_equal(a.read(whole(buffer)), X)


def test_what_was_queued_before_is_seen(two):
    """The capability comes after a chain of operations, which the other session does not wait for by itself."""
    a, b = two
    for _ in range(20):
        buffer = a.upload(np.zeros(100_000))
        whole_of = whole(buffer, np.zeros(100_000))
        for _ in range(50):
            a.ufunc("add", "float64", [whole_of], [whole_of, 1.0])
        capability = a.share(buffer, 1)
        a.free(buffer)
        theirs, _, _ = b.attach(capability)
        assert (b.read(whole(theirs, np.zeros(100_000))) == 50).all()
        b.free(theirs)


def test_what_is_still_under_way_is_seen(two):
    """Bytes written behind long work of the owner's: the capability is there at once, the reader must wait for them."""
    a, b = two
    busy = a.upload(np.zeros(400_000))
    long = view(busy, "float64", [400_000])
    for i in range(10):
        for _ in range(40):
            a.ufunc("sin", "float64", [long], [long])
        buffer = a.upload(X + i)
        theirs = b.attach(a.share(buffer, 1))[0]
        assert np.array_equal(b.read(whole(theirs)), X + i)
        a.free(buffer), b.free(theirs)


def test_memory_is_not_used_again_too_early(two):
    """A session frees what another still reads, and allocates at once; the reader's result must not change."""
    a, b = two
    n = 200_000
    for round_ in range(20):
        buffer = a.upload(np.full(n, float(round_)))
        theirs = b.attach(a.share(buffer, 1))[0]
        out = b.id()
        b.ufunc("multiply", "float64", [fresh(out, "float64", [n])], [view(theirs, "float64", [n]), 2.0])
        b.free(theirs)
        a.free(buffer)
        again = a.id()
        a.ufunc("add", "float64", [fresh(again, "float64", [n])], [-1.0, -1.0])
        assert (b.read(view(out, "float64", [n])) == 2.0 * round_).all()
        assert (a.read(view(again, "float64", [n])) == -2).all()
        a.free(again), b.free(out)


def test_uses_are_counted(two):
    a, b = two
    capability = a.share(a.upload(X), 2)
    b.attach(capability), b.attach(capability)
    refused("STALE", b.attach, capability)
    assert a.stat()["capabilities"] == 0


def test_revoked(two):
    a, b = two
    buffer = a.upload(X)
    capability = a.share(buffer)
    kept = b.attach(capability)[0]
    a.send([REVOKE, *capability], [REVOKE, *capability], [REVOKE, 1, 2])
    a.sync()  # to revoke what is none is no error
    refused("STALE", b.attach, capability)
    assert np.array_equal(b.read(whole(kept)), X)


def test_the_lease(two):
    a, b = two
    buffer = a.upload(X)
    capability = a.share(buffer, 0, 30)
    b.attach(capability)
    end = time.monotonic() + TIMEOUT
    while a.stat()["capabilities"]:
        assert time.monotonic() < end
    refused("STALE", b.attach, capability)


def test_it_ends_with_its_session_unless_it_lingers(server):
    with server.client() as b:
        with server.client() as a:
            buffer = a.upload(X)
            short, long = a.share(buffer), a.share(buffer, 1, 0, 60_000)
        end = time.monotonic() + TIMEOUT
        while b.stat()["sessions"] > 1:
            assert time.monotonic() < end
        refused("STALE", b.attach, short)
        theirs, _, _ = b.attach(long)
        counters = b.stat()
        assert counters["capabilities"] == 0 and counters["orphans"] == 1 and counters["buffer_bytes"] == X.nbytes
        assert np.array_equal(b.read(whole(theirs)), X)
        b.ufunc("add", "float64", [whole(theirs)], [whole(theirs), 1.0])  # it is the only holder: in place
        assert np.array_equal(b.read(whole(theirs)), X + 1)


def test_a_lingering_capability_is_over_in_time(server):
    """Nobody does anything, and the memory goes back all the same."""
    with server.client() as a:
        a.share(a.upload(np.zeros(100_000)), 0, 0, 50)


def test_who_pays(two):
    a, b = two
    buffer = a.upload(X)
    theirs, _, _ = b.attach(a.share(buffer, 1))
    assert (a.stat()["buffer_bytes"], b.stat()["buffer_bytes"]) == (X.nbytes, 0)
    assert a.stat()["used_bytes"] < 2 * X.nbytes
    a.free(buffer)
    a.sync()
    assert (a.stat()["buffer_bytes"], b.stat()["buffer_bytes"]) == (0, X.nbytes)
    b.free(theirs)
    b.sync()
    assert b.stat()["buffer_bytes"] == b.stat()["used_bytes"] == 0


def test_one_session_attaches_its_own(two):
    a, _ = two
    buffer = a.upload(X)
    again, _, _ = a.attach(a.share(buffer, 1))
    assert a.stat()["buffer_bytes"] == X.nbytes
    a.free(buffer)
    assert np.array_equal(a.read(whole(again)), X) and a.stat()["shared_buffers"] == 0


def test_poison_travels(two):
    a, b = two
    bad = a.id()
    a.call("gather", "float64", [fresh(bad, "float64", [1])],
           [whole(a.upload(X)), view(a.upload(np.array([5000])), "int64", [1])])
    theirs, size, _ = b.attach(a.share(bad))
    assert size == -1
    with pytest.raises(Failed) as failed:
        b.read(view(theirs, "float64", [1]))
    assert failed.value.code == ERROR["INDEX"] and failed.value.name == "gather"
    with pytest.raises(Failed):
        a.publish("bad", view(bad, "float64", [1]))


def test_an_array_that_fails_once_it_is_shared_is_handed_on_as_failed(two):
    """A session that attached it before has the elements of then. One that attaches it afterwards gets the error, and
    not those."""
    a, b = two
    buffer, bad = a.upload(X), a.id()
    before = a.share(buffer)
    theirs = b.attach(before)[0]
    a.call("gather", "float64", [fresh(bad, "float64", [1])],
           [whole(a.upload(X)), view(a.upload(np.array([5000])), "int64", [1])])
    a.ufunc("add", "float64", [whole(buffer)], [whole(buffer), view(bad, "float64", [1000], [0])])
    after, size, _ = b.attach(a.share(buffer))
    assert size == -1
    with pytest.raises(Failed) as failed:
        b.read(whole(after))
    assert failed.value.code == ERROR["INDEX"] and failed.value.name == "gather"
    assert np.array_equal(b.read(whole(theirs)), X) and np.array_equal(b.read(whole(b.attach(before)[0])), X)


def test_an_empty_array(two):
    a, b = two
    buffer = a.new("float32", [0, 3])
    theirs, size, _ = b.attach(a.share(buffer))
    assert size == 0 and b.read(view(theirs, "float32", [0, 3])).shape == (0, 3)


def test_forged_and_wrong(two):
    """Guesses, halves of others, ids in use or 0, stale buffers."""
    a, b = two
    rng = random.Random(3)
    buffer = a.upload(X)
    first, second = a.share(buffer)
    for guess in [(0, 0), (first, second ^ 1), (second, first), (first ^ 1, second), (2**64 - 1, 2**64 - 1),
                  *((rng.getrandbits(64), rng.getrandbits(64)) for _ in range(200))]:
        refused("STALE", b.attach, guess)
    refused("STALE", a.share, 999)
    refused("VALUE", lambda: b.answer(b.ask(ATTACH, 0, first, second)))
    used = b.upload(X)
    refused("VALUE", lambda: b.answer(b.ask(ATTACH, used, first, second)))
    theirs, _, _ = b.attach((first, second))
    refused("EXTENT", b.read, view(theirs, "float64", [1001]))
    b.free(theirs)
    refused("STALE", b.read, whole(theirs))
    assert np.array_equal(a.read(whole(buffer)), X)


def test_chaos(server):
    """Three sessions share, attach, write, free, revoke and leave at random, beside a model of what each array holds."""
    rng, values = random.Random(7), np.random.default_rng(7)
    clients, arrays, capabilities = [server.client() for _ in range(3)], [{}, {}, {}], []
    for _ in range(1500):
        i = rng.randrange(3)
        client, mine = clients[i], arrays[i]
        what = rng.choice(["make", "share", "attach", "attach", "write", "write", "free", "revoke", "read", "leave"])
        if what == "make" or not mine:
            x = values.normal(size=rng.choice([3, 1000, 40_000]))
            mine[client.upload(x)] = x
        elif what == "share":
            buffer = rng.choice(list(mine))
            uses = rng.choice([0, 1, 2])
            capabilities.append([client.share(buffer, uses, 0, 60_000), mine[buffer].copy(), uses or 10**9])
        elif what == "attach" and capabilities:
            one = rng.choice(capabilities)
            if one[2]:
                mine[client.attach(one[0])[0]] = one[1].copy()
                one[2] -= 1
            else:
                refused("STALE", client.attach, one[0])
        elif what == "write":
            buffer = rng.choice(list(mine))
            x = mine[buffer]
            client.ufunc("add", "float64", [whole(buffer, x)], [whole(buffer, x), 1.5])
            x += 1.5
        elif what == "free":
            buffer = rng.choice(list(mine))
            client.free(buffer)
            del mine[buffer]
        elif what == "revoke" and capabilities:
            one = rng.choice(capabilities)
            client.send([REVOKE, *one[0]])
            client.sync()
            one[2] = 0
        elif what == "leave" and rng.random() < 0.2:
            client.socket.close()
            clients[i], arrays[i] = server.client(), {}
        else:
            buffer = rng.choice(list(mine))
            assert np.array_equal(client.read(whole(buffer, mine[buffer])), mine[buffer])
    for client, mine in zip(clients, arrays):
        for buffer, x in mine.items():
            assert np.array_equal(client.read(whole(buffer, x)), x)
    for one in capabilities:
        clients[0].send([REVOKE, *one[0]])
    clients[0].sync()
    for client in clients:
        client.socket.close()


# ---- names ----

def test_a_name_outlives_its_session(server):
    with server.client() as a:
        a.publish("weights/1", whole(a.upload(X)))
    with server.client() as b:
        assert b.names() == [["weights/1", f"uid:{os.getuid()}", "0", "float64", str(X.nbytes), "1000"]]
        theirs, writable = b.attach_name("weights/1")
        assert not writable and np.array_equal(b.read(theirs), X)
        b.answer(b.ask(UNPUBLISH, "weights/1"))
        assert np.array_equal(b.read(theirs), X) and b.names() == []
        refused("NAME", b.attach_name, "weights/1")
        refused("NAME", lambda: b.answer(b.ask(UNPUBLISH, "weights/1")))


def test_a_name_is_a_snapshot_that_cannot_be_written(two):
    a, b = two
    buffer = a.upload(X)
    a.publish("x", whole(buffer))
    a.ufunc("add", "float64", [whole(buffer)], [whole(buffer), 1.0])
    theirs, _ = b.attach_name("x")
    for write in (lambda: b.ufunc("add", "float64", [theirs], [theirs, 1.0]), lambda: b.write(theirs[0], bytes(8)),
                  lambda: b.call("sort", "float64", [theirs], [theirs], [0])):
        write()
        assert "read-only" in refused("VALUE", b.sync)
    assert np.array_equal(b.read(theirs), X) and np.array_equal(a.read(whole(buffer)), X + 1)
    # An array that is handed on is still read-only, and cannot be published to be written.
    again, _, kind = a.attach(b.share(theirs[0], 1))
    assert kind == 2
    a.write(again, bytes(8))
    refused("VALUE", a.sync)
    refused("VALUE", b.publish, "y", theirs, 1)
    a.publish("x", whole(buffer))  # anew: who has the old one keeps it
    assert np.array_equal(b.read(theirs), X) and np.array_equal(b.read(b.attach_name("x")[0]), X + 1)
    b.answer(b.ask(UNPUBLISH, "x"))


def test_one_to_be_written(server):
    """All holders write into the same elements, in the order in which the server gets it."""
    with server.client() as a, server.client() as b, server.client() as c:
        buffer = a.upload(np.zeros(50_000))
        a.publish("sum", whole(buffer, np.zeros(50_000)), 1)
        (x, writable), (y, _) = b.attach_name("sum"), c.attach_name("sum")
        assert writable
        for i in range(30):
            for client, array in ((b, x), (c, y), (a, whole(buffer, np.zeros(50_000)))):
                client.ufunc("add", "float64", [array], [array, 1.0])
            b.sync()
        a.sync(), c.sync()
        for client, array in ((b, x), (c, y), (a, whole(buffer, np.zeros(50_000)))):
            assert (client.read(array) == 90).all()
        a.free(buffer)
        a.answer(a.ask(UNPUBLISH, "sum"))
        assert (b.read(x) == 90).all()


@pytest.mark.parametrize("name", ["", "a b", "a\n", "\0", "\u00e9", "a" * 201, "a;b", "a\tb", '"'])
def test_names_are_checked(two, name):
    a, _ = two
    array = whole(a.upload(X))
    refused("VALUE", a.publish, name, array)
    refused("VALUE", a.attach_name, name)
    refused("VALUE", a.publish, "good", array, 0, name + " " * 5000 if name.isalnum() and name.isascii() else name or " ")
    assert a.names() == []


def test_only_whole_buffers_are_published(two):
    """Sessions must not reach bytes that were not meant for them."""
    a, b = two
    buffer = a.upload(X)
    for part in (view(buffer, "float64", [999]), view(buffer, "float64", [999], offset=8), view(buffer, "float64", [500], [16]),
                 view(buffer, "float64", [1000], [-8], 7992), view(buffer, "float64", [2, 1000], [0, 8]), view(buffer, "uint8", [10])):
        refused("VALUE", a.publish, "part", part)
    refused("EXTENT", a.publish, "part", view(buffer, "float64", [1001]))
    refused("STALE", a.publish, "part", view(999, "float64", [1]))
    refused("VALUE", lambda: a.answer(a.ask(PUBLISH, whole(buffer), 2, "part", "")))
    a.publish("columns", view(buffer, "float64", [10, 100], [8, 80]))
    (_, _, _, _, column_major, *shape), _ = b.answer(b.ask(73, b.id(), "", "columns"))
    assert column_major == 1 and shape == [10, 100]
    b.answer(b.ask(UNPUBLISH, "columns"))


def test_there_are_so_many_names(build, tmp_path):
    with Server(build / "bin" / "arrayd", tmp_path, published=3) as few, few.client() as a:
        array = whole(a.upload(X))
        for i in range(3):
            a.publish(f"n{i}", array)
        refused("LIMIT", a.publish, "n3", array)
        a.publish("n2", array)
        a.answer(a.ask(UNPUBLISH, "n0"))
        a.publish("n3", array)
        assert len(a.names()) == 3


def test_names_are_a_grant(build, tmp_path):
    """A user that may have no names can still hand on capabilities."""
    (tmp_path / "principals").write_text("uid:* names=no\n")
    with Server(build / "bin" / "arrayd", tmp_path, principals=tmp_path / "principals") as own, own.client() as a:
        array = whole(a.upload(X))
        for call, arguments in ((a.publish, ("x", array)), (a.attach_name, ("x",)), (a.names, ()),
                                (lambda: a.answer(a.ask(UNPUBLISH, "x")), ())):
            assert f"uid:{os.getuid()}" in refused("DENIED", call, *arguments)
        with own.client() as b:
            assert np.array_equal(b.read(whole(b.attach(a.share(array[0]))[0])), X)


STRANGER = """
import os, sys
sys.path.insert(0, sys.argv[1])
from wire_client import Client, ERROR, Failed
os.setuid(int(sys.argv[3]))
client, code = Client(sys.argv[2]), {number: name for name, number in ERROR.items()}
def attempt(call, *arguments):
    try: return call(*arguments)
    except Failed as failed: return code[failed.code]
print(repr(eval(sys.argv[4])))
"""


@pytest.fixture
def shared_by_all(build, tmp_path):
    """A server whose users share a worker: none of them may run kernels."""
    with Server(build / "bin" / "arrayd", tmp_path, kernels="none") as running:
        yield running


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to be somebody else")
def test_another_user(shared_by_all):
    """Capabilities and names are a user's own, unless they are granted."""
    server, a = shared_by_all, shared_by_all.client()
    buffer = a.upload(X)
    capability = a.share(buffer)
    for name, grant in (("own", ""), ("other", "uid:54322,uid:5432"), ("granted", "uid:1,uid:54321"), ("all", "*")):
        a.publish(name, whole(buffer), 0, grant)
    os.chmod(server.path.parent, 0o755), os.chmod(server.path, 0o777)

    def somebody(code):
        result = subprocess.run([sys.executable, "-c", STRANGER, os.path.dirname(__file__), str(server.path), "54321", code],
                                capture_output=True, text=True, timeout=TIMEOUT)
        assert result.returncode == 0, result.stderr
        return eval(result.stdout)

    assert somebody(f"attempt(client.attach, {capability})") == "STALE"
    assert somebody("[row[0] for row in client.names()]") == ["all", "granted"]
    for name, there in (("own", False), ("other", False), ("granted", True), ("all", True), ("none", False)):
        got = somebody(f"attempt(client.attach_name, '{name}', 'uid:0')")
        assert isinstance(got, tuple) if there else got == "NAME"
        assert somebody(f"attempt(client.attach_name, '{name}')") == "NAME"
        assert somebody(f"attempt(lambda: client.answer(client.ask(74, '{name}')))") == "NAME"
    assert somebody("[client.send([41, %d, %d]), client.sync()]" % capability)[0] is None
    b = a.attach(capability)[0]  # the stranger's word did not end it
    assert np.array_equal(a.read(whole(b)), X)
    for name in ("own", "other", "granted", "all"):
        a.answer(a.ask(UNPUBLISH, name))


# ---- forks ----

def test_fork(two):
    """The child has the parent's arrays as they were when the message was sent, by the same ids."""
    a, _ = two
    first, second = a.upload(X), a.upload(X * 2)
    poisoned = a.id()
    a.call("gather", "float64", [fresh(poisoned, "float64", [1])],
           [whole(first), view(a.upload(np.array([5000])), "int64", [1])])
    child = a.fork()
    a.ufunc("add", "float64", [whole(first)], [whole(first), 1.0])
    a.free(second)
    a.sync()
    message, _ = child.receive()
    assert message[0] == WELCOME and message[3] != a.session and message[5]["pid"] == server_pid(a)
    assert np.array_equal(child.read(whole(first)), X) and np.array_equal(child.read(whole(second)), X * 2)
    with pytest.raises(Failed) as failed:
        child.read(view(poisoned, "float64", [1]))
    assert failed.value.code == ERROR["INDEX"]
    child.ufunc("multiply", "float64", [whole(first)], [whole(first), 3.0])
    child.sync()
    grandchild = child.fork()
    grandchild.receive()
    a.socket.close(), child.socket.close()
    assert np.array_equal(grandchild.read(whole(first)), X * 3) and np.array_equal(grandchild.read(whole(second)), X * 2)
    grandchild.socket.close()


def server_pid(client):
    return client.limits["pid"]


def test_a_fork_that_nobody_takes_up(two):
    a, _ = two
    buffer = a.upload(X)
    for _ in range(50):
        a.fork().socket.close()
    a.sync()
    assert np.array_equal(a.read(whole(buffer)), X)


def sent_away(name, child):
    """Return what a child is told whose session has not begun."""
    with pytest.raises(Closed) as closed:
        child.receive()
    assert closed.value.bye[0] == ERROR[name]
    return closed.value.bye[1]


def test_forks_that_are_refused(two):
    a, b = two
    a.send(fork())
    assert "descriptor" in refused("VALUE", a.sync)
    for wrong, why in ((fork(flags=1), "flags"), (fork(key=2**63 - 1), "key"), (fork(key=0), "key")):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            a.pass_along(theirs.fileno(), wrong)
            assert why in refused("VALUE", a.sync)
            assert why in sent_away("VALUE", Client(ours, hello=False))
    for kind in (os.pipe, lambda: [s.detach() for s in socket.socketpair(type=socket.SOCK_DGRAM)],
                 lambda: [os.open("/dev/null", os.O_RDWR), os.memfd_create("x")], lambda: [socket.socket().detach()]):
        for fd in kind():
            a.pass_along(fd, fork())
            os.close(fd)
            refused("VALUE", a.sync)
    a.sync()
    b.send([FORK, 0, 2**63, bytes(15)])
    assert b.is_closed()
    a.sync()


def test_a_session_limit_holds_for_forks(build, tmp_path):
    with Server(build / "bin" / "arrayd", tmp_path, sessions=2) as few, few.client() as a:
        child = a.fork()
        child.receive()
        assert "sessions" in sent_away("LIMIT", a.fork())
        assert "sessions" in refused("LIMIT", a.sync)
        child.socket.close()


def test_a_fork_of_more_buffers_than_are_passed_on(two):
    """All sessions wait while a child gets its buffers, so there is a limit; the parent goes on."""
    a, b = two
    for first in range(0, 65_536, 4096):
        a.send(*([NEW, fresh(first + i + 10**6, "uint8", [0])] for i in range(4096)))
        a.sync()
    child = a.fork()
    child.receive()
    child.sync()
    child.socket.close()
    a.send([NEW, fresh(10**7, "uint8", [0])])
    assert "65537 arrays" in sent_away("LIMIT", a.fork())
    assert "65537 arrays" in refused("LIMIT", a.sync)
    a.send([FREE, [10**7]])
    child = a.fork()
    child.receive()
    child.socket.close()
    b.sync()


def test_a_grant_of_sessions_holds_for_forks(build, tmp_path):
    (tmp_path / "principals").write_text("uid:* sessions=3\n")
    with Server(build / "bin" / "arrayd", tmp_path, principals=tmp_path / "principals") as own, own.client() as a:
        children = [a.fork(), a.fork()]
        assert "as many as it may have" in sent_away("LIMIT", a.fork())
        assert "as many as it may have" in refused("LIMIT", a.sync)
        for child in children:
            child.receive()
            child.sync()
            child.socket.close()


def test_a_child_that_breaks_the_protocol_harms_nobody(two):
    a, _ = two
    buffer = a.upload(X)
    child = a.fork()
    child.receive()
    child.raw(b"\xff" * 64)
    assert child.is_closed()
    assert np.array_equal(a.read(whole(buffer)), X)
