"""Clients that mean harm, or are broken, beside one that must not notice."""
import contextlib
import os
import random
import socket
import struct
import threading
import time

import msgpack
import numpy as np
import pytest

import raw
from places import memory_of
from raw import Client, Closed, Failed, REQUEST, connect, frame, hello, message, wait_until


@pytest.fixture
def bystander(server):
    """A client that computes all the time; at the end it must have got nothing but right answers."""
    wrong, rounds, stop = [], [0], threading.Event()
    client = Client(server.path)
    data = np.arange(1000, dtype=np.float32)

    def compute():
        try:
            x = client.put(data)
            while not stop.is_set():
                y = client.ufunc("add", "float32", [1000], x, x)
                if not np.array_equal(client.get(y), data + data):
                    wrong.append("a wrong answer")
                client.free(y)
                rounds[0] += 1
        except Exception as error:  # whatever it is, the test must see it
            wrong.append(repr(error))

    thread = threading.Thread(target=compute)
    thread.start()
    wait_until(lambda: rounds[0] or wrong, "the bystander computes")
    yield client
    stop.set()
    thread.join(raw.WINDOW)
    assert not wrong and rounds[0] > 0


def refused(address, data, greet=True, finish=False):
    """Send bytes; the bye that must come, and nothing after it."""
    client = Client(address, greet=greet)
    client.send(data)
    if finish:
        client.socket.shutdown(socket.SHUT_WR)
    with pytest.raises(Closed) as closed:
        client.reply(1)
    client.close()
    return closed.value


BOMBS = {
    "array of 2^26": b"\xdd\x04\x00\x00\x00",
    "map of 2^26": b"\xdf\x04\x00\x00\x00",
    "deep": b"\x91" * 3000 + b"\xc0",
    "nested arrays": b"\xdd\x00\x80\x00\x00" * 31,
    "bin of 2^31": b"\xc6\x7f\xff\xff\xff",
    "not an array": b"\xc0",
    "an int": b"\x05",
    "cut": message("sync", 1)[:-1],
    "never used": b"\xc1",
    "many nil": b"\xdd\x00\x08\x00\x01" + b"\xc0" * 524289,
    "no such id": msgpack.packb([255, 1]),
    "an id that is none": msgpack.packb(["new"]),
    "empty message": b"\x90",
    "of the server": msgpack.packb([REQUEST["ack"], 1]),
    "hello again": message("hello", 1, 1, 0, "x", {}),
    "no such ufunc": message("ufunc", 255, 11, [[1, 11, [1]]], [1.0], []),
    "fields missing": msgpack.packb([REQUEST["sync"]]),
    "request 0": message("sync", 0),
    "write without payload": message("write", 1, 0),
    "wrong dtype": message("new", [1, 99, [1]]),
    "many dimensions": message("new", [1, 11, [1] * 33]),
    "negative dimension": message("new", [1, 11, [-1]]),
}


@pytest.mark.parametrize("name", BOMBS)
def test_malformed_control(server, bystander, name):
    why = refused(server.path, frame(BOMBS[name]))
    assert why.code == 9, why
    assert why.text


FRAMES = {
    "control too long": struct.pack("<IIQ", (1 << 20) + 1, 0, 0),
    "control far too long": struct.pack("<IIQ", 0xffffffff, 0, 0),
    "payload too long": struct.pack("<IIQ", 1, 0, (4 << 20) + 1),
    "payload far too long": struct.pack("<IIQ", 1, 0, (1 << 64) - 1),
    "unknown flag": struct.pack("<IIQ", 1, 2, 0),
    "more": struct.pack("<IIQ", 1, 1, 0),
    "empty": struct.pack("<IIQ", 0, 0, 0),
    "payload for nobody": frame(message("sync", 1), b"x"),
    "payload only": frame(b"", b"x"),
    "write in the middle": frame(message("write", 1, 0) + message("sync", 1), b"x"),
    "text": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
}


@pytest.mark.parametrize("name", FRAMES)
def test_malformed_frame(server, bystander, name):
    client = Client(server.path)
    client.send(FRAMES[name])
    with pytest.raises(Closed) as closed:
        while True:
            client.reply(1)
    assert closed.value.code == 9, closed.value


def test_what_came_before_a_malformed_message_is_answered(server):
    client = Client(server.path)
    x = client.put(np.arange(4.0))
    read = client.ask("read", x)
    client.send(frame(b"\xc1"))
    assert np.frombuffer(client.reply(read)[1]).tolist() == [0, 1, 2, 3]
    with pytest.raises(Closed) as closed:
        client.reply(99)
    assert closed.value.code == 9


def test_what_comes_behind_a_malformed_message_is_not_kept(server):
    """The session ends on the engine's thread while the other thread still reads from its client."""
    watcher, n = Client(server.path), 400

    def flood():
        client = Client(server.path)
        for _ in range(3000):  # giving these back takes a while
            client.new("int64", [1])
        x = client.put(np.ones((n, n)))
        client.op("call", raw.CALL["matmul"], 12, [[client.fresh(), 12, [n, n]]], [x, x], [False])
        client.flush()
        client.send(frame(b"\xc1"))
        more = frame(message("free", [1]) * 1000) * 10
        with contextlib.suppress(OSError):
            for _ in range(300):
                client.socket.sendall(more)
        client.close()

    def floods(count):
        for _ in range(count):
            flood()
        wait_until(lambda: watcher.stat("sessions") == 1, "all have gone")
        return memory_of(server.worker)

    before = floods(20)
    grown = floods(50) - before
    assert grown < 15 << 20 or "asan" in str(raw.BUILD) or "tsan" in str(raw.BUILD), f"{grown >> 10} KiB"


HELLOS = {
    "too long": struct.pack("<IIQ", 65537, 0, 0),
    "with payload": frame(message("hello", 1, 1, 0, "x", {}), b"x"),
    "not hello": frame(message("sync", 1)),
    "hello and more": frame(message("hello", 1, 1, 0, "x", {}) + message("sync", 1)),
    "rubbish": frame(b"\xc1"),
    "bomb": frame(b"\xdf\x04\x00\x00\x00"),
    "name is no text": frame(msgpack.packb([REQUEST["hello"], 1, 1, 0, b"\xff", {}])),
}


@pytest.mark.parametrize("name", HELLOS)
def test_malformed_hello(server, bystander, name):
    assert refused(server.path, HELLOS[name], greet=False).code == 9


@pytest.mark.parametrize("versions", [(2, 3), (0, 0), (5, 1)])
def test_no_common_version(server, versions):
    assert refused(server.path, hello(*versions), greet=False).code == 10


def test_a_wider_range_of_versions_is_fine(server):
    client = Client(server.path, greet=False)
    client.send(hello(0, 1000))
    assert client.receive_message()[1] == 1


def test_half_open_connections_are_closed_in_time(start):
    server = start("--hello-timeout=0.3")
    silent = [connect(server.path) for _ in range(50)]
    good = Client(server.path)
    good.sync()
    for s in silent:
        assert Client(s, greet=False).receive_message()[0] == REQUEST["bye"]
        assert s.recv(1) == b""
        s.close()
    good.sync()


def test_one_byte_at_a_time_is_not_fast_enough(start):
    server = start("--hello-timeout=0.5")
    slow, begin = connect(server.path), time.monotonic()
    data = hello(client="x" * 200)
    with pytest.raises((BrokenPipeError, ConnectionResetError)):
        for i in range(len(data)):
            slow.sendall(data[i:i + 1])
            time.sleep(0.02)
    assert time.monotonic() - begin > 0.4


def test_hello_in_pieces_is_one_hello(server):
    client = Client(server.path, greet=False)
    for byte in hello():
        client.send(bytes([byte]))
    assert client.receive_message()[0] == REQUEST["welcome"]
    for byte in frame(message("sync", 1)):
        client.send(bytes([byte]))
    client.reply(1)


def test_a_flood_of_silent_connections_keeps_nobody_out(start):
    server = start("--hello-timeout=30")
    silent = [connect(server.path) for _ in range(600)]
    Client(server.path).sync()
    assert raw.descriptors(server.pid) < 400
    for s in silent:
        s.close()
    wait_until(lambda: raw.descriptors(server.pid) < 40, "their descriptors are closed")


def test_sessions_are_limited(start):
    server = start("--sessions=3")
    three = [Client(server.path) for _ in range(3)]
    with pytest.raises(Closed) as closed:
        Client(server.path)
    assert closed.value.code == 11
    three.pop().close()

    def another():
        try:
            three.append(Client(server.path))
            return True
        except Closed:
            return False
    wait_until(another, "there is room again")


def test_random_bytes(server, bystander):
    rng = random.Random(3)
    for _ in range(60):
        client = Client(server.path)
        body = rng.randbytes(rng.randrange(1, 400))
        client.send(rng.choice([body, frame(body), frame(message("new", [1, 11, [4]]) + body)]))
        client.socket.shutdown(socket.SHUT_WR)
        try:
            while True:
                client.receive()
        except Closed:
            client.close()


def mutate(rng, data):
    data = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data)


def test_mutated_requests(server, bystander):
    rng = random.Random(4)
    good = [message("ufunc", raw.UFUNC["add"], 11, [[5, 11, [16]]], [[1, 11, 0, [16]], 2.0], []),
            message("reduce", raw.REDUCTION["sum"], 11, [[6, 11, []]], [[1, 11, 0, [16]]], [1, None, None]),
            message("call", raw.CALL["matmul"], 11, [[7, 11, [4, 4]]], [[1, 11, 0, [4, 4]], [1, 11, 0, [4, 4]]],
                    [False]),
            message("call", raw.CALL["gather"], 11, [[8, 11, [3]]], [[1, 11, 0, [16]], [2, 4, 0, [3]]], []),
            message("query", 1, raw.CALL["nonzero"], 11, [[9, 4, None]], [[1, 11, 0, [16]]], []),
            message("read", 1, [1, 11, 0, [4, 4], [16, 4]]), message("free", [1])]
    for _ in range(400):
        client = Client(server.path)
        client.put(np.ones(16, np.float32))
        client.put(np.arange(3))
        client.send(frame(mutate(rng, rng.choice(good))))
        client.socket.shutdown(socket.SHUT_WR)
        try:
            while True:
                client.receive()
        except Closed:
            client.close()


# ---- slow readers ----

def test_a_client_that_does_not_read_is_closed_and_others_go_on(start):
    server = start("--output-timeout=0.5")
    slow, other = Client(server.path), Client(server.path)
    x = slow.put(np.zeros(8 << 20, np.uint8))
    y = other.put(np.arange(1000.0))
    for _ in range(20):
        slow.ask("read", x)
    begin = time.monotonic()
    while not server.said("output-timeout"):
        assert other.get(y)[999] == 999
        assert time.monotonic() - begin < raw.WINDOW
    wait_until(lambda: other.stat("sessions") == 1, "its session has ended")
    assert other.stat("used_bytes") < 64 << 10


def test_a_reader_that_is_merely_slow_gets_everything(start):
    server = start("--output-timeout=5")
    client = Client(server.path)
    data = np.random.default_rng(1).integers(0, 256, 20 << 20, np.uint8)
    x = client.put(data)
    requests = [client.ask("read", x) for _ in range(2)]
    for r in requests:
        assert client.reply(r)[1] == data.tobytes()


def test_output_is_limited(start):
    server = start("--output-limit=64K", "--output-timeout=60")
    client = Client(server.path)
    request = 0
    while not server.said("output-limit"):
        client.send(frame(b"".join(message("sync", request + k) for k in range(1, 1001))))
        request += 1000
        assert request < 10_000_000
    Client(server.path).sync()


def test_input_is_bounded_while_the_engine_is_busy(start):
    """The server stops reading a client that sends faster than it is served."""
    server = start("--threads=1")
    client, other = Client(server.path), Client(server.path)
    x = client.put(np.ones((600, 600)))
    client.sync()
    client.op("call", raw.CALL["matmul"], 12, [[50, 12, [600, 600]]], [x, x], [False])
    for _ in range(12):
        client.op("call", raw.CALL["matmul"], 12, [[50, 12, 0, [600, 600]]], [x, x], [False])
    b = client.new("uint8", [4 << 20])
    client.flush()
    for _ in range(20):
        client.send(frame(message("write", b, 0), bytes(4 << 20)))
    client.sync()
    rss = int(next(line for line in open(f"/proc/{server.worker}/status") if line.startswith("VmHWM")).split()[1])
    assert rss < 300 << 10 or "asan" in str(raw.BUILD) or "tsan" in str(raw.BUILD), f"{rss} KiB"
    other.sync()


# ---- errors in results ----

def test_poison_spreads_with_the_first_failures_words(server):
    client = Client(server.path)
    x = client.put(np.ones(4, np.float32))
    bad = client.ufunc("add", "float32", [5], x, x)  # the shape is wrong
    worse = client.ufunc("multiply", "float32", [5], bad, 2.0)
    number = client.operations - 1
    for victim in (bad, worse):
        with pytest.raises(Failed) as failed:
            client.get(victim)
        assert (failed.value.error, failed.value.number, failed.value.name) == ("value", number, "add")
    client.sync()  # no pending error: the results carried it
    client.free(bad, worse)
    client.sync()


def test_pending_errors_are_told_once_and_only_the_first(server):
    client = Client(server.path)
    client.free(77)
    client.free(78)
    with pytest.raises(Failed) as failed:
        client.sync()
    assert (failed.value.error, failed.value.number, failed.value.name) == ("stale", 1, "free")
    assert "77" in failed.value.text
    client.sync()
    b = client.new("float32", [4])
    client.flush()
    client.operations += 1
    client.send(frame(message("write", b, 8), b"123456789"))
    with pytest.raises(Failed) as failed:
        client.sync()
    assert failed.value.error == "extent"


def test_an_existing_output_keeps_its_contents_unless_an_input_was_poisoned(server):
    client = Client(server.path)
    x = client.put(np.arange(4.0))
    client.ufunc("add", "float64", [4], x, [999, 12, 0, [4]], out=x)
    with pytest.raises(Failed) as failed:
        client.sync()
    assert failed.value.error == "stale"
    np.testing.assert_array_equal(client.get(x), np.arange(4.0))
    bad = client.ufunc("add", "float64", [3], x, x)
    client.ufunc("add", "float64", [4], x, [bad[0], 12, 0, [4]], out=x)
    with pytest.raises(Failed) as failed:
        client.get(x)
    assert failed.value.name == "add"
    client.sync()


def test_an_id_in_use_is_left_alone(server):
    client = Client(server.path)
    x = client.put(np.arange(4.0))
    client.op("ufunc", raw.UFUNC["add"], 12, [[x[0], 12, [4]]], [x, x], [])
    with pytest.raises(Failed) as failed:
        client.sync()
    assert failed.value.error == "value" and "in use" in failed.value.text
    np.testing.assert_array_equal(client.get(x), np.arange(4.0))
    client.op("new", [x[0], 12, [9]])
    with pytest.raises(Failed):
        client.sync()


def test_memory_runs_out_with_who_holds_what_and_comes_back(start):
    server = start("--memory=64M", "--slab=8M")
    client, other = Client(server.path), Client(server.path)
    y = other.put(np.ones(1 << 20))
    x = client.put(np.ones(4 << 20))
    z = client.ufunc("add", "float64", [4 << 20], x, x)
    with pytest.raises(Failed) as failed:
        client.get(z)
    assert failed.value.error == "memory"
    for word in ("32 MiB", "64 MiB", "uid:", "this session"):
        assert word in failed.value.text, failed.value.text
    client.free(x, z)
    x = client.put(np.ones(4 << 20))
    assert client.get(x).sum() == 4 << 20
    assert other.get(y).sum() == 1 << 20
    huge = client.new("float64", [1 << 50])
    with pytest.raises(Failed) as failed:
        client.get([huge, 12, 0, [1]])
    assert failed.value.error == "memory"


def test_overlapping_operands_are_as_if_copied(server):
    client = Client(server.path)
    a = np.arange(100.0)
    x = client.put(a)
    client.ufunc("add", "float64", [99], [x[0], 12, 0, [99]], 1.0, out=[x[0], 12, 8, [99]])
    expected = a.copy()
    expected[1:] = a[:-1] + 1
    np.testing.assert_array_equal(client.get(x), expected)
    client.ufunc("add", "float64", [100], [x[0], 12, 99 * 8, [100], [-8]], 0.0, out=[x[0], 12, 0, [100], [8]])
    np.testing.assert_array_equal(client.get(x), expected[::-1])


def test_masked_fresh_outputs_are_zero_elsewhere(server):
    client = Client(server.path)
    x, m = client.put(np.full(1000, 7.0)), client.put(np.arange(1000) % 3 == 0)
    client.free(client.ufunc("add", "float64", [1000], x, x))  # what the next output is likely to lie on
    y = client.ufunc("add", "float64", [1000], x, x, m)
    np.testing.assert_array_equal(client.get(y), np.where(np.arange(1000) % 3 == 0, 14.0, 0.0))


def test_new_memory_is_zero_although_it_was_used(server):
    client = Client(server.path)
    for size in (16, 5000, 3 << 20):
        x = client.put(np.full(size, 255, np.uint8))
        client.free(x)
        b = client.new("uint8", [size])
        assert not client.get([b, 5, 0, [size]]).any()
        client.free(b)


def test_views_are_read_in_row_major_order(server):
    client = Client(server.path)
    a = np.arange(24, dtype=np.int32).reshape(4, 6)
    x = client.put(a)[0]
    np.testing.assert_array_equal(client.get([x, 3, 0, [6, 4], [4, 24]]), a.T)
    np.testing.assert_array_equal(client.get([x, 3, 92, [24], [-4]]), a.ravel()[::-1])
    np.testing.assert_array_equal(client.get([x, 3, 4, [3, 5], [0, 4]]), np.broadcast_to(a[0, 1:], (3, 5)))
    assert client.get([x, 3, 0, [0]]).size == 0
    for wild in ([x, 3, 0, [25]], [x, 3, 1, [1]], [x, 3, 0, [2], [96]], [x, 3, 0, [1], [1 << 62]], [x, 3, 96, [1]],
                 [x, 3, 0, [1 << 40, 1 << 40], [0, 0]], [x, 3, 0, [2], [-4]]):
        with pytest.raises(Failed):
            client.get(wild)


def test_queries(server):
    client = Client(server.path)
    x = client.put(np.array([0, 3, 0, 5], np.int64))
    out = client.fresh()
    values, _ = client.reply(client.ask("query", raw.CALL["nonzero"], 4, [[out, 4, None]], [x], []))
    assert values == [2]
    np.testing.assert_array_equal(client.get([out, 4, 0, [1, 2]]), [[1, 3]])
    client.free(99)
    out = client.fresh()
    with pytest.raises(Failed):
        client.reply(client.ask("query", raw.CALL["nonzero"], 4, [[out, 4, None]], [x], []))
    with pytest.raises(Failed) as failed:
        client.get([out, 4, 0, [1, 2]])
    assert failed.value.name == "free"
    client.sync()


def test_acknowledgements_come_within_a_quarter_of_the_window(start):
    server = start("--window-ops=400")
    client = Client(server.path)
    window = client.welcome[5]["window_ops"]
    assert window == 400
    sent = 0
    while sent < 5000:
        while sent - client.done < window:
            client.op("free", [])
            sent += 1
        client.flush()
        m = client.receive_message()
        assert m[0] == REQUEST["ack"] and client.done < m[1] <= sent
        client.done = m[1]
    client.sync()
    assert client.done == sent


def test_idle_servers_acknowledge(server):
    client = Client(server.path)
    for _ in range(100):
        client.op("free", [])
    client.flush()
    assert client.receive_message() == [REQUEST["ack"], 100]


def test_principals_memory_is_counted_in_stat(server):
    client = Client(server.path)
    before = client.stat()
    b = client.new("uint8", [1000])
    after = client.stat()
    assert after["buffers"] == before["buffers"] + 1
    assert after["buffer_bytes"] == 1000
    assert after["used_bytes"] >= before["used_bytes"] + 1000
    assert after["worker_pid"] == server.worker
    client.free(b)
    assert client.stat("used_bytes") == before["used_bytes"]
    assert os.getpid() != server.worker
