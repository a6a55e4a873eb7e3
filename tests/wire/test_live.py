"""A live server against wire.md, by a client that shares no code with it: what good clients get."""
import os
import random
import struct

import numpy as np
import pytest

from wire_client import ACK, EMPTY, ERROR, HELLO, MORE, READ, SYNC, UFUNC, UFUNCS, fresh, scalar, view


# ---- sections 1 and 8: the beginning ----

def test_welcome(client, server):
    assert client.version == 1 and client.features == 0 and client.session > 0 and len(client.secret) == 16
    numbers = ("window_ops", "window_bytes", "max_payload", "max_control", "max_buffers", "devices", "memory", "pid")
    assert all(client.limits[key] > 0 for key in numbers)
    assert client.limits["max_payload"] == 4 << 20 and client.limits["max_control"] == 1 << 20
    assert client.limits["backend"] in ("cpu", "cuda") and client.limits["device_name"] and client.limits["server"]
    assert client.limits["pid"] == server.process.pid
    with server.client() as other:
        assert other.session != client.session and other.secret != client.secret


@pytest.mark.parametrize("versions", [(1, 1), (0, 9), (1, 2**64 - 1)])
def test_versions_in_common(server, bystander, versions):
    with server.client(versions=versions) as c:
        assert c.version == 1


@pytest.mark.parametrize("versions", [(2, 3), (0, 0), (2**64 - 1, 2**64 - 1), (3, 1)])
def test_no_version_in_common(server, bystander, versions):
    with server.client(hello=False) as c:
        c.send([HELLO, *versions, 0, "test", {}])
        assert c.is_closed()[0] == ERROR["VERSION"]


# ---- section 4: operations ----

def test_new_is_zero(client):
    for kind in ("bool", "int16", "float16", "complex128"):
        dirty = client.upload(np.ones(1000, kind))
        client.free(dirty)
        assert not client.read(view(client.new(kind, [10, 100]), kind, [10, 100])).any()


def test_empty_is_a_buffer(client):
    """The elements of `empty` are unspecified: nothing is run for it, and it may be written and read."""
    x = client.id()
    client.send([EMPTY, fresh(x, "int16", [6])])
    assert client.read(view(x, "int16", [6])).shape == (6,)
    client.write(x, np.arange(6, dtype="int16").tobytes())
    assert client.read(view(x, "int16", [2, 3])).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_pipeline(client):
    """Thousands of operations in frames of any number; acknowledged in order, the last one in the end."""
    rng, x = random.Random(9), client.upload(np.zeros(4, "int64"))
    whole, sent = view(x, "int64", [4]), 0
    while sent < 5000:
        batch = rng.choice([1, 2, 7, 100])
        client.send(*[[UFUNC, UFUNCS["add"], 4, [whole], [whole, 1], []]] * batch)
        sent += batch
    assert client.read(whole).tolist() == [sent] * 4
    assert client.sync() == client.number
    assert client.acks == sorted(client.acks)


def test_idle_server_acknowledges(client):
    x = client.new("float32", [4])
    whole = view(x, "float32", [4])
    client.send(*[[UFUNC, UFUNCS["add"], 11, [whole], [whole, 1], []]] * 1000)
    while client.done < client.number:
        message, _ = client.receive()
        assert message[0] == ACK and client.done < message[1] <= client.number
        client.done = message[1]
        if client.number - client.done <= 64:
            break


def test_views(client):
    a = np.arange(60, dtype="int32").reshape(3, 4, 5)
    x = client.upload(a)
    for b in (a[1:], a[:, ::-1], a.T, a[:, 1:3, ::2], a[2, 3], a[..., 2], a[::-1, ::-1, ::-1], a[:0], a[1, 1, 1:1]):
        offset = b.__array_interface__["data"][0] - a.__array_interface__["data"][0] if b.size else 0
        assert np.array_equal(client.read(view(x, "int32", b.shape, b.strides, offset)), b)
    assert np.array_equal(client.read(view(x, "int32", [2, 3], [0, 4])), np.broadcast_to(a[0, 0, :3], (2, 3)))


def test_broadcast_fill_and_where(client):
    a, b = np.arange(3.0), np.arange(4.0).reshape(4, 1)
    x, y = client.upload(a), client.upload(b)
    mask = client.upload(np.array([True, False, True]))
    client.ufunc("add", "float64", [fresh(101, "float64", [4, 3])],
                 [view(x, "float64", [3]), view(y, "float64", [4, 1])])
    assert np.array_equal(client.read(view(101, "float64", [4, 3])), a + b)
    client.ufunc("copy", "float64", [fresh(102, "int16", [2, 3])], [7.9])
    assert client.read(view(102, "int16", [2, 3])).tolist() == [[7] * 3] * 2
    client.ufunc("add", "float64", [fresh(103, "float64", [3])], [view(x, "float64", [3]), 5, view(mask, "bool", [3])])
    assert client.read(view(103, "float64", [3])).tolist() == [5, 0, 7]
    client.ufunc("add", "float64", [view(102, "int16", [2, 3])], [view(x, "float64", [3]), 1, view(mask, "bool", [3])])
    assert client.read(view(102, "int16", [2, 3])).tolist() == [[1, 7, 3]] * 2


def test_scalars_of_every_kind(client):
    for value, kind in ((True, "bool"), (-5, "int8"), (2**64 - 1, "uint64"), (-2**63, "int64"), (2.5, "float32"),
                        (1.5 - 2j, "complex64")):
        client.buffer += 1
        client.ufunc("copy", kind, [fresh(client.buffer, kind, [2])], [scalar(value)])
        assert client.read(view(client.buffer, kind, [2])).tolist() == [value] * 2


def test_in_place_and_overlap(client):
    a = np.arange(10, dtype="float32")
    x = client.upload(a)
    client.ufunc("add", "float32", [view(x, "float32", [9], [4], 4)],
                 [view(x, "float32", [9], [4], 4), view(x, "float32", [9])])
    a[1:] = a[1:] + a[:-1].copy()
    assert np.array_equal(client.read(view(x, "float32", [10])), a)
    client.ufunc("copy", "float32", [view(x, "float32", [10])], [view(x, "float32", [10], [-4], 36)])
    assert np.array_equal(client.read(view(x, "float32", [10])), a[::-1])


def test_reduce(client):
    a = np.arange(24.0).reshape(2, 3, 4)
    x = view(client.upload(a), "float64", a.shape)
    client.reduce("sum", "float64", fresh(101, "float64", [3]), [x], 0b101)
    client.reduce("max", "float64", fresh(102, "float64", []), [x], 0b111, None, 100)
    client.reduce("var", "float64", fresh(103, "float64", [2, 4]), [x], 0b010, 1)
    client.reduce("argmax", "float64", fresh(104, "int64", [2]), [x], 0b110)
    client.reduce("sum", "float64", fresh(105, "float64", [2, 3, 4]), [x], 0)
    assert np.array_equal(client.read(view(101, "float64", [3])), a.sum((0, 2)))
    assert client.read(view(102, "float64", [])) == 100
    assert np.allclose(client.read(view(103, "float64", [2, 4])), a.var(1, ddof=1))
    assert client.read(view(104, "int64", [2])).tolist() == [11, 11]
    assert np.array_equal(client.read(view(105, "float64", [2, 3, 4])), a)


def test_query(client):
    a = np.array([[0, 3, 0], [4, 0, 5]], "int16")
    x, m = client.upload(a), client.upload(a > 3)
    assert client.query("nonzero", "int16", [[101, 4, None]], [view(x, "int16", [2, 3])]) == [3]
    assert client.read(view(101, "int64", [2, 3])).tolist() == [[0, 1, 1], [1, 0, 2]]
    assert client.query("compress", "int16", [[102, 2, None]],
                        [view(x, "int16", [2, 3]), view(m, "bool", [2, 3])]) == [2]
    assert client.read(view(102, "int16", [2])).tolist() == [4, 5]


# ---- section 5: replies ----

def test_large_read(client):
    """An answer of many frames: all but the last have MORE, the parts are in order."""
    a = np.random.default_rng(10).integers(0, 255, 20_000_003).astype("uint8")
    x = client.upload(a)
    client.flags.clear()
    assert np.array_equal(client.read(view(x, "uint8", [len(a)])), a)
    answers = client.flags[-sum(client.flags) - 1:]
    assert len(answers) > 4 and answers == [MORE] * (len(answers) - 1) + [0]
    assert np.array_equal(client.read(view(x, "uint8", [len(a) // 3], [3], 1)), a[1::3][:len(a) // 3])


def test_empty_read(client):
    x = client.new("float32", [3, 0])
    client.flags.clear()
    assert client.read(view(x, "float32", [3, 0])).shape == (3, 0)
    assert client.flags == [0]


def test_many_requests_at_once(client):
    x = client.upload(np.arange(8, dtype="int64"))
    requests = {}
    for i in range(300):
        requests[client.ask(READ, view(x, "int64", [1], offset=8 * (i % 8)))] = i % 8
        requests[client.ask(SYNC)] = None
    for request in reversed(requests):
        _, data = client.answer(request)
        assert data == b"" if requests[request] is None else struct.unpack("<q", data) == (requests[request],)


def test_stat(client):
    before = client.stat()
    x = client.new("float64", [1 << 16])
    client.new("bool", [0])
    client.sync()
    after = client.stat()
    assert after["ops_done"] == before["ops_done"] + 2 and after["buffers"] == before["buffers"] + 2
    assert after["buffer_bytes"] == before["buffer_bytes"] + (8 << 16)
    assert after["used_bytes"] >= before["used_bytes"] + (8 << 16)
    assert after["bytes_in"] > before["bytes_in"] and after["bytes_out"] > before["bytes_out"]
    assert after["requests"] >= before["requests"] + 1 and after["ops_failed"] == before["ops_failed"] == 0
    os.kill(after["worker_pid"], 0)
    client.free(x)
    client.sync()
    assert client.stat()["buffer_bytes"] == before["buffer_bytes"]
