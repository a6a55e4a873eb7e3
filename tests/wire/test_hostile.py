"""A live server and clients that break the protocol, or just break off. The bystander notices nothing."""
import random
import socket
import struct

import msgpack
import numpy as np
import pytest

from test_codec import BOMBS
from wire_client import (ACK, BYE, CALL, EMPTY, ERROR, FREE, HELLO, MORE, NEW, QUERY, READ, REDUCE, SYNC, UFUNC, UFUNCS,
                         WELCOME, WRITE, frame, fresh, view)


def refused(client):
    """The server closes, and says why in its own words."""
    bye = client.is_closed()
    assert bye is True or (bye[0] in ERROR.values() and bye[1]), bye
    return bye


# ---- before the welcome ----

HELLO_BYTES = frame(msgpack.packb([HELLO, 1, 1, 0, "test", {}]))
BEFORE_HELLO = {
    "text": b"EHLO localhost\r\nMAIL FROM:<somebody@localhost>\r\n", "zeros": bytes(64), "ones": b"\xff" * 64,
    "an operation": frame(msgpack.packb([NEW, [1, 11, [4]]])), "a request": frame(msgpack.packb([SYNC, 1])),
    "a message of the server": frame(msgpack.packb([ACK, 1])), "an empty frame": frame(),
    "hello with a payload": frame(msgpack.packb([HELLO, 1, 1, 0, "test", {}]), b"x"),
    "two hellos": frame(2 * msgpack.packb([HELLO, 1, 1, 0, "test", {}])),
    "hello and more": frame(msgpack.packb([HELLO, 1, 1, 0, "test", {}]) + msgpack.packb([SYNC, 1])),
    "a long name": frame(msgpack.packb([HELLO, 1, 1, 0, "x" * 65000, {"a": "y" * 1000}])),
    "a hello of the wrong fields": frame(msgpack.packb([HELLO, 1, 1, "x", 0, {}])),
    "a hello of too few": frame(msgpack.packb([HELLO, 1, 1])),
    "a name that is not UTF-8": frame(b"\x96\x01\x01\x01\x00\xa2\xc3\x28\x80"),
    "a flag": frame(msgpack.packb([HELLO, 1, 1, 0, "test", {}]), flags=1),
}


@pytest.mark.parametrize("name", BEFORE_HELLO)
def test_garbage_before_hello(server, bystander, name):
    with server.client(hello=False) as c:
        c.raw(BEFORE_HELLO[name])
        refused(c)


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_before_hello(server, bystander, name):
    if len(BOMBS[name]) <= 65536:
        with server.client(hello=False) as c:
            c.raw(frame(BOMBS[name]))
            refused(c)


@pytest.mark.parametrize("size", range(0, len(HELLO_BYTES), 3))
def test_half_a_hello(server, bystander, size):
    with server.client(hello=False) as c:
        c.raw(HELLO_BYTES[:size])


def test_hello_twice(client):
    client.send([HELLO, 1, 1, 0, "test", {}])
    refused(client)


# ---- sections 2 and 3: what breaks the protocol ----

GOOD = msgpack.packb([SYNC, 1])
BROKEN = {
    "a control block too long": struct.pack("<IIQ", (1 << 20) + 1, 0, 0),
    "the longest": struct.pack("<IIQ", 2**32 - 1, 0, 0),
    "a payload too long": struct.pack("<IIQ", len(GOOD), 0, (4 << 20) + 1),
    "a payload of 2^64-1": struct.pack("<IIQ", len(GOOD), 0, 2**64 - 1),
    "an unknown flag": frame(GOOD, flags=16), "a note with a message": frame(GOOD, flags=2),
    "a note of two kinds": frame(flags=10), "a note with more to come": frame(flags=9), "the server's flag": frame(GOOD, flags=MORE),
    "an empty frame": frame(), "a payload alone": frame(b"", b"x"),
    "a payload that nobody claims": frame(GOOD, b"x"),
    "a write without a payload": frame(msgpack.packb([NEW, [1, 11, [4]]]) + msgpack.packb([WRITE, 1, 0])),
    "a write that is not the last": frame(msgpack.packb([WRITE, 1, 0]) + GOOD, b"x"),
    "an unknown message": frame(msgpack.packb([99, 1])), "a huge id": frame(msgpack.packb([2**64 - 1])),
    "a message of the server": frame(msgpack.packb([ACK, 1])), "a reply": frame(msgpack.packb([64, 1, 1, []])),
    "a bye": frame(msgpack.packb([BYE, 1, "x"])), "a welcome": frame(msgpack.packb([WELCOME, 1, 0, 1, bytes(16), {}])),
    "request 0": frame(msgpack.packb([SYNC, 0])), "a negative request": frame(msgpack.packb([SYNC, -1])),
    "too many fields": frame(msgpack.packb([SYNC, 1, 2])), "too few": frame(msgpack.packb([READ, 1])),
    "an unknown ufunc": frame(msgpack.packb([UFUNC, 255, 11, [[1, 11, [4]]], [1.0], []])),
    "a ufunc beyond all": frame(msgpack.packb([UFUNC, 2**40, 11, [[1, 11, [4]]], [1.0], []])),
    "an unknown reduction": frame(msgpack.packb([REDUCE, 63, 11, [[1, 11, []]], [[2, 11, 0, [4]]], [1, None, None]])),
    "an unknown call": frame(msgpack.packb([CALL, 255, 11, [[1, 11, []]], [[2, 11, 0, [4]]], []])),
    "an unknown loop": frame(msgpack.packb([UFUNC, 1, 15, [[1, 11, [4]]], [1.0, 2.0], []])),
    "an unknown dtype": frame(msgpack.packb([NEW, [1, 15, [4]]])),
    "too many inputs": frame(msgpack.packb([UFUNC, 1, 11, [[1, 11, [4]]], [1.0] * 4, []])),
    "too many outputs": frame(msgpack.packb([UFUNC, 1, 11, [[1, 11, [4]], [2, 11, [4]]], [1.0] * 2, []])),
    "too many parameters": frame(msgpack.packb([UFUNC, 1, 11, [[1, 11, [4]]], [1.0] * 2, [1]])),
    "a query as an operation": frame(msgpack.packb([CALL, 13, 11, [[1, 4, [4, 1]]], [[2, 11, 0, [4]]], []])),
    "an operation as a query": frame(msgpack.packb([QUERY, 1, 8, 11, [[1, 11, None]], [[2, 11, 0, [4]]], [0]])),
    "a string as a parameter": frame(msgpack.packb([REDUCE, 1, 11, [[1, 11, []]], [[2, 11, 0, [4]]], ["x", None, None]])),
    "a nil input": frame(msgpack.packb([UFUNC, 1, 11, [[1, 11, [4]]], [1.0, None], []])),
    "33 dimensions": frame(msgpack.packb([NEW, [1, 11, [1] * 33]])),
    "a negative dimension": frame(msgpack.packb([NEW, [1, 11, [-1]]])),
    "a dimension of 2^63": frame(msgpack.packb([NEW, [1, 11, [2**63]]])),
    "a new view": frame(msgpack.packb([NEW, [1, 11, 0, [4]]])), "an empty view": frame(msgpack.packb([EMPTY, [1, 11, 0, [4]]])),
    "a fresh input": frame(msgpack.packb([READ, 1, [1, 11, [4]]])),
    "a scalar to read": frame(msgpack.packb([READ, 1, 2.5])), "buffer 0": frame(msgpack.packb([NEW, [0, 11, [4]]])),
    "more strides than dimensions": frame(msgpack.packb([READ, 1, [1, 11, 0, [4], [4, 4]]])),
    "free of a string": frame(msgpack.packb([FREE, ["1"]])), "free of a number": frame(msgpack.packb([FREE, 1])),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_frames(client, name):
    client.raw(BROKEN[name])
    bye = refused(client)
    assert bye[0] == ERROR["PROTOCOL"]


@pytest.mark.parametrize("name", BOMBS)
def test_bombs(client, name):
    client.raw(frame(BOMBS[name]))
    refused(client)


def test_work_before_the_break_is_not_lost_on_others(client, server):
    """A batch whose last message is broken closes this connection, whatever the first ones made."""
    client.raw(frame(msgpack.packb([NEW, [1, 11, [1 << 20]]]) + msgpack.packb([99])))
    refused(client)


def test_random_bytes(server, bystander):
    rng = random.Random(7)
    for _ in range(200):
        with server.client() as c:
            data = rng.randbytes(rng.choice([1, 15, 16, 17, 100, 5000]))
            if rng.random() < 0.5:
                data = frame(data)
            c.raw(data)
            if rng.random() < 0.5:
                c.socket.shutdown(socket.SHUT_WR)
                c.is_closed()


def test_changed_operations(server, bystander):
    """Good streams with a few bytes changed."""
    rng = random.Random(8)
    good = b"".join([
        frame(msgpack.packb([NEW, [1, 11, [16]]])), frame(msgpack.packb([WRITE, 1, 0]), bytes(64)),
        frame(msgpack.packb([UFUNC, 1, 11, [[2, 11, [16]]], [[1, 11, 0, [16]], 2.5], []])),
        frame(msgpack.packb([REDUCE, 1, 11, [[3, 11, []]], [[2, 11, 0, [16]]], [1, None, None]])),
        frame(msgpack.packb([CALL, 8, 11, [[4, 11, [16]]], [[2, 11, 0, [16], [4]]], [0]])),
        frame(msgpack.packb([READ, 1, [3, 11, 0, []]]) + msgpack.packb([FREE, [1, 2]]) + msgpack.packb([SYNC, 2]))])
    for _ in range(400):
        data = bytearray(good)
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        with server.client() as c:
            try:
                c.raw(data)
                c.socket.shutdown(socket.SHUT_WR)
            except OSError:
                pass # it has had enough already
            c.is_closed()


@pytest.mark.parametrize("size", [1, 8, 15, 16, 17, 20, 40])
def test_cut_off(server, bystander, size):
    """A frame that ends in the middle, by closing and by half-closing."""
    whole = frame(msgpack.packb([WRITE, 1, 0]), bytes(100))
    for shut in (False, True):
        with server.client() as c:
            c.send([NEW, fresh(1, "float32", [25])])
            c.raw(whole[:size])
            if shut:
                c.socket.shutdown(socket.SHUT_WR)
                assert c.is_closed()


def test_byte_by_byte(client):
    values = np.arange(16, dtype="float32")
    data = frame(msgpack.packb([NEW, [1, 11, [16]]])) + frame(msgpack.packb([WRITE, 1, 0]), values.tobytes())
    data += frame(msgpack.packb([UFUNC, UFUNCS["negative"], 11, [[2, 11, [16]]], [[1, 11, 0, [16]]], []]))
    for byte in data:
        client.raw(bytes([byte]))
    client.number = 3
    assert np.array_equal(client.read(view(2, "float32", [16])), -values)


# ---- section 7, and the end ----

def test_client_that_does_not_read(server, bystander):
    """Answers of 200 MB that nobody takes: others go on."""
    with server.client() as c:
        x = c.new("uint8", [50 << 20])
        for _ in range(4):
            c.ask(READ, view(x, "uint8", [50 << 20]))
        for _ in range(20):
            bystander.check()


def test_sessions_end_anyhow(server, bystander):
    """Memory comes back however a session ends."""
    rng = random.Random(11)
    for i in range(60):
        c = server.client()
        x = c.upload(np.ones(rng.randrange(1, 1 << 18)))
        for _ in range(rng.randrange(20)):
            c.ufunc("add", "float64", [fresh(c.id(), "float64", [64])], [view(x, "float64", [1]), 1])
        if i % 3 == 0:
            c.sync()
        if i % 3 == 1:
            c.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        c.socket.close()
