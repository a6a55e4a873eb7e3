"""Operations that would take days: views of few elements in memory have any number of them. Others are answered
meanwhile, and whoever should end such an operation can."""
import contextlib
import os
import signal
import socket

import numpy as np
import pytest

import raw
from places import works
from raw import CALL, DTYPES, REDUCTION, Client, Closed, Failed, wait_until
from returning import Session
from observing import BAD, ctl, see, session_of
from upgrading import upgrade

pytestmark = raw.cpu_only  # a GPU's operations are only enqueued

ENDLESS = 1 << 45
F4, I8 = DTYPES.index("float32"), DTYPES.index("int64")
HYPERGEOMETRIC = 43  # of protocol/distribution.def


def endless(x, *shape):
    """A view of one element."""
    return [x[0], x[1], 0, list(shape), [0] * len(shape)]


def total(client):
    x, b = client.put(np.ones(1, np.float32)), client.fresh()
    client.op("reduce", REDUCTION["sum"], F4, [[b, F4, []]], [endless(x, ENDLESS)], [1, None, None])
    return [b, F4, 0, []]


def columns(client):
    x, b = client.put(np.ones(3, np.float32)), client.fresh()
    view = [x[0], F4, 0, [ENDLESS, 3], [0, 4]]
    client.op("reduce", REDUCTION["sum"], F4, [[b, F4, [3]]], [view], [1, None, None])
    return [b, F4, 0, [3]]


def largest(client):
    x, b = client.put(np.ones(1, np.float32)), client.fresh()
    client.op("reduce", REDUCTION["argmax"], F4, [[b, I8, []]], [endless(x, ENDLESS)], [1, None, None])
    return [b, I8, 0, []]


def product(client, dtype="float32"):
    d = DTYPES.index(dtype)
    x, b = client.put(np.ones(1, dtype)), client.fresh()
    client.op("call", CALL["matmul"], d, [[b, d, [1, 1]]], [endless(x, 1, ENDLESS), endless(x, ENDLESS, 1)], [False])
    return [b, d, 0, [1, 1]]


def integer_product(client):
    return product(client, "int64")


def scattering(client):
    x, index = client.put(np.zeros(4, np.float32)), client.put(np.zeros(1, np.int64))
    client.op("call", CALL["scatter"], F4, [x], [1.0, endless(index, ENDLESS)], [0])
    return x


def counting(client):
    x, b = client.put(np.zeros(1, np.int64)), client.fresh()
    client.op("call", CALL["bincount"], I8, [[b, I8, [1]]], [endless(x, ENDLESS)], [])
    return [b, I8, 0, [1]]


def drawing(client):
    """Each element takes ten thousand numbers of cuRAND's generator, one after another."""
    n, u4 = 1 << 22, DTYPES.index("uint32")
    states, b, after = client.put(np.arange(12 * 64, dtype="uint32").reshape(12, 64)), client.fresh(), client.fresh()
    client.op("call", CALL["curand"], I8, [[b, I8, [n]], [after, u4, [12, 64]]], [states, 10000.0, 5.0, 10000.0],
              [HYPERGEOMETRIC, 0, 0, 64, 0])
    return [b, I8, 0, [n]]


# The arrays of these operations are small. Another operand, or a parameter, makes them long.

def sliding(client):
    """A window that is longer by far than the array."""
    x, b = client.put(np.ones((60, 70), np.float32)), client.fresh()
    client.op("call", CALL["window1d"], F4, [[b, F4, [60, 70]]], [x], [0, 1, (1 << 31) - 1, 0, 0.0, 0])
    return [b, F4, 0, [60, 70]]


def labelling(client):
    """Places that have a million neighbours each."""
    n, i4 = 1 << 18, DTYPES.index("int32")
    mask, offset = client.put(np.ones(1, bool)), client.put(np.full(1, -1, np.int64))
    b, count = client.fresh(), client.fresh()
    client.op("call", CALL["label"], i4, [[b, i4, [n]], [count, I8, []]], [endless(mask, n), endless(offset, 1 << 20, 1)], [])
    return [b, i4, 0, [n]]


def filtering(client):
    """Filters of many sections, one behind the other."""
    n, sections = 1 << 20, 1 << 16
    x, b, state = client.put(np.zeros(1, np.float32)), client.fresh(), client.fresh()
    client.op("call", CALL["iir"], F4, [[b, F4, [n]], [state, F4, [sections, 2, 1]]],
              [endless(x, n), endless(x, sections, 2, 3), endless(x, sections, 2, 1)], [0])
    return [b, F4, 0, [n]]


def spreading(client, name="spmm", params=(1, False), rows=1):
    """A sparse matrix times one of many columns. All entries are in the last row and the first column."""
    n, b = 1 << 20, client.fresh()
    x, index, pointers = client.put(np.ones(1, np.float32)), client.put(np.zeros(1, np.int64)), client.put(np.array([0] * rows + [n]))
    client.op("call", CALL[name], F4, [[b, F4, [rows, n]]], [endless(x, n), endless(index, n), pointers, endless(x, rows, n)],
              list(params))
    return [b, F4, 0, [rows, n]]


def solving(client):
    """Of two rows the second depends on the first, by a million entries; those of a diagonal would be added up at once."""
    return spreading(client, "sptrsm", (True, True), rows=2)


EVERY = [total, columns, largest, product, integer_product, scattering, counting, drawing, sliding, labelling, filtering,
         spreading, solving]


@contextlib.contextmanager
def two(start, place, *options):
    """A server of two principals, and a client of each."""
    for name in "first", "second":
        place.add(name)
    server = start(*place.options("tcp"), "--threads=2", *options)
    clients = [place.client(server, "tcp", name) for name in ("first", "second")]
    yield server, *clients
    for client in clients:
        client.close()


def begin(server, client, what):
    """A result that never comes; the client has sent the operation, and the server has begun it."""
    result = what(client)
    request = client.ask("sync")
    number = str(client.welcome[3])
    wait_until(lambda: any(s["session"] == number and s["counters"]["queued_bytes"] == 0 for s in
                           see(server, "sessions")), "the operation has begun")
    return result, request


def is_answered(client):
    client.socket.setblocking(False)
    try:
        return bool(client.socket.recv(1 << 16, socket.MSG_PEEK))
    except BlockingIOError:
        return False
    finally:
        client.socket.settimeout(raw.WINDOW)


@pytest.mark.parametrize("what", EVERY, ids=lambda f: f.__name__)
def test_others_are_answered_meanwhile(start, place, what):
    with two(start, place) as (server, long, other):
        x = other.put(np.arange(16, dtype=np.float32))
        workers = set(raw.children(server.pid))
        begin(server, long, what)
        for _ in range(100):
            assert other.get(other.sum("float32", x)) == 120
        m = other.put(np.full((256, 256), 2, np.float32))  # what takes the threads of the backend
        b = other.fresh()
        other.op("call", CALL["matmul"], F4, [[b, F4, [256, 256]]], [m, m], [False])
        assert (other.get([b, F4, 0, [256, 256]]) == 1024).all()
        assert session_of(server, long)["state"] == "active"
        assert set(raw.children(server.pid)) == workers


@pytest.mark.parametrize("what", EVERY, ids=lambda f: f.__name__)
def test_operation_time_ends_it(start, what):
    server = start("--operation-time=0.2", "--threads=2")
    client = Client(server.path)
    kept = client.put(np.arange(5.0))
    result = what(client)
    for _ in range(2):  # whoever reads it is told, every time
        with pytest.raises(Failed) as failed:
            client.get(result)
        assert failed.value.error == "timeout" and failed.value.number and "operation-time" in failed.value.text
    assert (client.get(kept) == np.arange(5.0)).all()
    assert works(client)


def test_operation_time_ends_a_product_of_sparse_matrices(start):
    """A million entries of a row each meet a million others; that all of them are of one column nobody has seen before."""
    server = start("--operation-time=0.2", "--threads=2")
    client, n = Client(server.path), 1 << 20
    x, index, pointers = client.put(np.ones(1, np.float32)), client.put(np.zeros(1, np.int64)), client.put(np.array([0, n]))
    matrix, outputs = [endless(x, n), endless(index, n), pointers], [client.fresh() for _ in range(3)]
    request = client.ask("query", CALL["spgemm"], F4, [[outputs[0], F4, None], [outputs[1], I8, None], [outputs[2], I8, None]],
                         [*matrix, *matrix], [1])
    with pytest.raises(Failed) as failed:
        client.reply(request)
    assert failed.value.error == "timeout" and "operation-time" in failed.value.text
    assert works(client)


def test_a_library_call_that_would_take_longer_is_refused(start):
    """Nobody could end such a call."""
    server = start("--operation-time=0.2")
    client = Client(server.path)
    n, d, b = 1500, DTYPES.index("float64"), client.fresh()
    x = client.put(np.eye(n))
    client.op("call", CALL["svdvals"], d, [[b, d, [n]]], [x], [])
    with pytest.raises(Failed) as failed:
        client.get([b, d, 0, [n]])
    assert failed.value.error == "limit" and "operation-time" in failed.value.text
    small = client.put(np.eye(50))
    client.op("call", CALL["inv"], d, [[b + 10, d, [50, 50]]], [small], [])
    assert (client.get([b + 10, d, 0, [50, 50]]) == np.eye(50)).all()


def test_what_another_session_of_the_same_user_sent_goes_on(start):
    server = start("--threads=2")
    long, other = Client(server.path), Client(server.path)
    begin(server, long, total)
    x = other.put(np.full(1 << 22, 2, np.float32))  # its sum takes long enough to leave the engine
    for _ in range(5):
        assert other.get(other.sum("float32", x)) == 1 << 23


def test_as_many_as_there_can_be(start, place):
    """Eight sessions of one principal, each with an operation that does not end, and one of another with many."""
    with two(start, place) as (server, long, other):
        more = [place.client(server, "tcp", "first") for _ in range(7)]
        for client in [long, *more]:
            total(client)
            client.ask("sync")
        x = other.put(np.full(1 << 22, 2, np.float32))
        for _ in range(10):
            assert other.get(other.sum("float32", x)) == 1 << 23
        for client in more:
            client.close()


@pytest.mark.parametrize("what", [total, product, scattering], ids=lambda f: f.__name__)
def test_an_operator_ends_the_session(start, place, what):
    with two(start, place) as (server, long, other):
        begin(server, long, what)
        ctl(server, "kill", str(long.welcome[3]))
        with pytest.raises(Closed):
            while True:
                long.receive()
        number = str(long.welcome[3])
        wait_until(lambda: number not in [s["session"] for s in see(server, "sessions")], "it is over")
        ctl(server, "kill", number, expect=BAD)
        assert works(other)


def test_a_client_that_goes_ends_it(start):
    server = start("--resume-time=0")
    client, other = Client(server.path), Client(server.path)
    begin(server, client, total)
    client.close()
    wait_until(lambda: len(see(server, "sessions")) == 1, "its session is over")
    assert works(other)


@pytest.mark.parametrize("what", [total, "svd"], ids=["cancelled", "library call"])
def test_the_server_stops(start, what):
    """The server stops even when what is under way cannot be cancelled. `start` looks at the status."""
    server = start("--threads=2")
    client = Client(server.path)
    if what == "svd":
        def what(c):
            n = 1500
            x = c.put(np.random.default_rng(1).random((n, n)))
            d, ids = DTYPES.index("float64"), [c.fresh() for _ in range(3)]
            c.op("call", CALL["svd"], d, [[i, d, s] for i, s in zip(ids, ([n, n], [n], [n, n]))], [x], [False])
            return [ids[1], d, 0, [n]]
    begin(server, client, what)
    os.kill(server.pid, signal.SIGTERM)
    assert server.wait() == 0


@pytest.mark.parametrize("how", ["kill", "upgrade"])
def test_another_worker_goes_on_with_it(start, how):
    """The operation is begun again there, and others have what they had."""
    server = start("--threads=2")
    long, other = Session(server.path), Session(server.path)
    x = other.put(np.arange(16, dtype=np.float32))
    other.sync()
    kept = long.put(np.arange(5.0))
    begin(server, long, total)
    before = server.worker
    if how == "kill":
        os.kill(before, signal.SIGKILL)
    else:
        upgrade(server)
    wait_until(lambda: server.worker not in (None, before), "another worker")
    for client in long, other:
        client.come_back()
    for _ in range(20):
        assert other.get(other.sum("float32", x)) == 120
    assert not is_answered(long)
    ctl(server, "kill", str(long.id))
    assert kept and works(other)


def test_its_memory_is_not_taken_away(start):
    """Memory that is about to move, as it is exported, stays while an operation of another session reads it."""
    server = start("--threads=2")
    giver, taker = Client(server.path), Client(server.path)
    x = giver.put(np.arange(1 << 10, dtype=np.float32))
    giver.reply(giver.ask("publish", x, 1, "x", ""))
    taker.reply(taker.ask("attach_name", 1, "", "x"))
    b = 2
    taker.op("reduce", REDUCTION["sum"], F4, [[b, F4, []]], [[1, F4, 0, [ENDLESS], [0]]], [1, None, None])
    begin(server, taker, lambda _: None)
    ours, theirs = socket.socketpair()
    giver.requests += 1
    with theirs:
        giver.pass_on(raw.frame(raw.message("export", giver.requests, x[0], 0)), theirs.fileno())
    third = Client(server.path)
    for _ in range(20):
        assert works(third)
    assert not is_answered(giver)
    ctl(server, "kill", str(taker.welcome[3]))
    giver.reply(giver.requests)
    with ours:
        assert len(socket.recv_fds(ours, 64, 1)[1]) == 1
    assert (giver.get(x) == np.arange(1 << 10)).all()
