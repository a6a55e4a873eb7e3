"""A client cancels what it has sent: what has not begun never does, and what is under way ends where the backend looks.

The first operation of each test would take days, so that all behind it have certainly not begun, and a test that ends has
seen it cancelled.
"""
import contextlib
import os
import signal

import numpy as np
import pytest

import raw
from raw import CALL, DTYPES, Client, Failed, wait_until
from returning import CANCEL, Session, note, tcp_of
from test_long_operations import F4, begin, product, total

FEATURE_CANCEL = 4


def cancel(client, request=None):
    """Cancel. request: one that was sent before, which is answered."""
    client.flush()
    client.send(note(CANCEL))
    if request:
        client.reply(request)


def matmul(client, x):
    n, b = x[3][0], client.fresh()
    client.op("call", CALL["matmul"], F4, [[b, F4, [n, n]]], [x, x], [False])
    return [b, F4, 0, [n, n]]


def is_cancelled(client, x):
    with pytest.raises(Failed) as failed:
        client.get(x)
    assert failed.value.error == "cancelled", failed.value
    return failed.value


def cancelled(client):
    return client.stat("cancelled")


@pytest.fixture(params=["unix", "tcp"])
def client(request, start):
    server = start("--tcp=127.0.0.1:0", "--tcp-open=yes", "--threads=2")
    session = Session(server.path if request.param == "unix" else tcp_of(server))
    session.server = server
    yield session
    session.close()


@raw.cpu_only
@pytest.mark.parametrize("what", [total, product], ids=lambda f: f.__name__)
def test_what_has_not_begun_never_does(client, what):
    x = client.put(np.full((64, 64), 2, np.float32))
    kept = client.ufunc("add", "float32", [64, 64], x, 1)
    changed = client.ufunc("add", "float32", [64, 64], x, 2)
    client.sync()
    endless, request = begin(client.server, client, what)
    products = [matmul(client, x) for _ in range(12)]
    client.ufunc("multiply", "float32", [64, 64], changed, 2, out=changed)
    of_a_product = client.ufunc("add", "float32", [64, 64], products[3], 1)
    came = client.put(np.arange(5))  # data costs nothing, and is there
    cancel(client, request)
    after = client.ufunc("add", "float32", [64, 64], kept, 1)
    assert (client.get(after) == 4).all() and (client.get(kept) == 3).all() and (client.get(x) == 2).all()
    assert np.array_equal(client.get(came), np.arange(5))
    for each in endless, *products, changed, of_a_product:
        assert is_cancelled(client, each).number
    assert cancelled(client) == 15
    client.sync()                    # nothing is left to be told


def test_operations_that_would_become_one(client):
    """All come in one piece, so that none has begun: the server reads the note before it executes any."""
    x = client.put(np.arange(1000, dtype=np.float32))
    client.sync()
    y = x
    results = [y := client.ufunc("add", "float32", [1000], y, 1) for _ in range(30)]
    results.append(client.sum("float32", y))
    data = raw.frame(bytes(client.out)) + note(CANCEL)
    client.out.clear()
    client.send(data)
    assert client.get(client.ufunc("add", "float32", [1000], x, 1))[-1] == 1000
    for each in results:
        is_cancelled(client, each)
    assert cancelled(client) == len(results)


@raw.cpu_only
def test_operations_that_wait_to_become_one(client):
    """The operations have been taken from the stream, and wait in the server's fusion queue when the note comes."""
    one, other = client, Session(client.address)
    x = one.put(np.arange(1 << 16, dtype=np.float32))
    one.sync()
    ends, y = [], x
    for i in range(2000):
        y = one.ufunc("add", "float32", [1 << 16], y, 1)
        if i % 10 == 9:
            ends.append(y)
    cancel(one)
    got = [get_or_cancelled(one, each) for each in ends]
    whole = [i for i, value in enumerate(got) if value is not None]
    assert whole == list(range(len(whole)))  # what was executed comes before what was cancelled
    for i in whole:
        assert np.array_equal(got[i], np.arange(1 << 16, dtype=np.float32) + 10 * (i + 1))
    assert (cancelled(one) == 0) == (len(whole) == len(ends))
    other.close()


def get_or_cancelled(client, x):
    try:
        return client.get(x)
    except Failed as failed:
        assert failed.error == "cancelled"
        return None


@raw.cpu_only
def test_a_question_behind_it(client):
    """A question whose answer's size depends on data computes, too."""
    x = client.put(np.ones((8, 8), np.float32))
    _, before = begin(client.server, client, total)
    b = client.fresh()
    request = client.ask("query", CALL["nonzero"], F4, [[b, DTYPES.index("int64"), None]], [x], [])
    cancel(client, before)
    with pytest.raises(Failed) as failed:
        client.reply(request)
    assert failed.value.error == "cancelled"
    assert (client.get(x) == 1).all()


@raw.cpu_only
def test_streams(client):
    x = client.put(np.ones((8, 8), np.float32))
    client.op("stream", 64, 0, 0)
    _, request = begin(client.server, client, total)
    results = []
    for i in range(12):
        client.op("on", 64 * (i % 2))
        results.append(matmul(client, x))
    cancel(client, request)
    client.op("on", 64)
    assert (client.get(matmul(client, x)) == 8).all()
    client.op("on", 0)
    for each in results:
        is_cancelled(client, each)
    assert cancelled(client) == 13


@raw.cpu_only
@pytest.mark.parametrize("client", ["unix"], indirect=True)
def test_an_array_of_two_sessions(client):
    """The array is as it was before the cancelled operation. Only the session that sent that operation has lost its
    hold on it."""
    other = Session(client.address)
    x = client.put(np.arange(8, dtype=np.float32))
    client.reply(client.ask("publish", x, 1, "common", ""))
    b = other.fresh()
    other.reply(other.ask("attach_name", b, "", "common"))
    theirs = [b, F4, 0, [8]]
    other.get(other.ufunc("multiply", "float32", [8], theirs, 2, out=theirs))
    _, request = begin(client.server, client, total)
    client.ufunc("add", "float32", [8], x, 1, out=x)
    cancel(client, request)
    is_cancelled(client, x)
    assert np.array_equal(other.get(theirs), 2 * np.arange(8))
    again = client.fresh()
    client.reply(client.ask("attach_name", again, "", "common"))
    mine = [again, F4, 0, [8]]
    client.get(client.ufunc("add", "float32", [8], mine, 1, out=mine))
    assert np.array_equal(other.get(theirs), 2 * np.arange(8) + 1)
    other.close()


@raw.cpu_only
def test_others_lose_nothing(client):
    other = Session(client.address)
    mine = other.put(np.ones((64, 64), np.float32))
    _, request = begin(client.server, client, total)
    results = [matmul(other, mine) for _ in range(5)]
    cancel(client, request)
    client.sync()
    assert all((other.get(each) == 64).all() for each in results) and cancelled(other) == 0
    other.close()


@raw.cpu_only
def test_a_connection_that_breaks(client):
    """The note is in its place of the stream on the next connection, whether the last one took it or not."""
    x = client.put(np.ones((8, 8), np.float32))
    for whole in True, False:
        endless, request = begin(client.server, client, total)
        results = [matmul(client, x) for _ in range(12)]
        client.flush()
        client.some(note(CANCEL), 16 if whole else 5)
        client.come_back()
        client.reply(request)
        for each in endless, *results:
            is_cancelled(client, each)
        assert (client.get(matmul(client, x)) == 8).all()


@raw.cpu_only
@pytest.mark.parametrize("late", ["", "1"])
@pytest.mark.parametrize("seen", [True, False])
def test_a_worker_that_is_killed(start, late, seen):
    """The next one executes nothing that was cancelled: neither what its predecessor had left out, nor what it had not
    come to. Otherwise this test would take days."""
    server = start("--threads=2", env={"ARRAYD_CPU_LATE": late} if late else {})
    with contextlib.closing(Session(server.path)) as client:
        x = client.put(np.ones((8, 8), np.float32))
        client.sync()
        if not late:
            endless, request = begin(server, client, total)
        else:
            endless, request = x, client.ask("sync")
        results = [matmul(client, x) for _ in range(12)]
        data = raw.frame(bytes(client.out)) + note(CANCEL)  # in one piece: none has begun
        client.out.clear()
        client.send(data)
        client.reply(request)
        if seen:
            is_cancelled(client, results[-1])
        os.kill(server.worker, signal.SIGKILL)
        wait_until(lambda: server.said("event=recovered"), "another worker goes on")
        client.come_back()
        for each in results:
            is_cancelled(client, each)
        if not late:
            is_cancelled(client, endless)
        assert (client.get(matmul(client, x)) == 8).all()


@raw.cpu_only
def test_a_worker_that_is_killed_before_it_reads_the_note(start):
    server = start("--threads=2")
    with contextlib.closing(Session(server.path)) as client:
        x = client.put(np.ones((8, 8), np.float32))
        endless, request = begin(server, client, total)
        results = [matmul(client, x) for _ in range(12)]
        client.flush()
        os.kill(server.worker, signal.SIGSTOP)
        cancel(client)
        os.kill(server.worker, signal.SIGKILL)
        wait_until(lambda: server.said("event=recovered"), "another worker goes on")
        client.come_back()
        client.reply(request)
        for each in endless, *results:
            is_cancelled(client, each)


@raw.cpu_only
@pytest.mark.parametrize("client", ["unix"], indirect=True)
def test_a_child_keeps_what_its_parent_had(client):
    x = client.put(np.ones((8, 8), np.float32))
    client.sync()
    _, request = begin(client.server, client, total)
    lost = matmul(client, x)
    cancel(client, request)
    child = client.child()
    assert (child.get(matmul(child, x)) == 8).all()
    assert child.welcome[2] & FEATURE_CANCEL
    is_cancelled(child, lost)
    begin_again = total(child)
    cancel(child)
    is_cancelled(child, begin_again)
    child.close()


def test_nothing_to_cancel(client):
    x = client.put(np.arange(5))
    client.sync()
    for _ in range(3):
        cancel(client)
    assert np.array_equal(client.get(x), np.arange(5)) and cancelled(client) == 0


def test_who_has_it_is_told(start):
    """Cancelling is a feature of the protocol: a client may know a server that is too old."""
    server = start()
    s = raw.connect(server.path)
    s.sendall(raw.frame(raw.message("hello", 1, 1, FEATURE_CANCEL, "raw", {})))
    with contextlib.closing(Client(s, greet=False)) as client:
        assert client.receive_message()[2] == FEATURE_CANCEL
    with contextlib.closing(Client(server.path)) as client:
        assert client.welcome[2] == 0
