"""A live server with small limits."""
import time

import numpy as np
import pytest

from test_errors import failure
from wire_client import ACK, ERROR, READ, TIMEOUT, UFUNC, UFUNCS, Closed, Server, view

SESSIONS, BUFFERS, WINDOW = 4, 16, 32


@pytest.fixture(scope="module")
def small(build, tmp_path_factory):
    with Server(build / "bin" / "arrayd", tmp_path_factory.mktemp("small"), sessions=SESSIONS, buffers=BUFFERS,
                window_ops=WINDOW, window_bytes="1M", memory="64M", slab="8M", hello_timeout=1, output_limit="16M",
                output_timeout=1) as running:
        yield running


def test_limits_are_told(small):
    with small.client() as c:
        assert c.limits["max_buffers"] == BUFFERS and c.limits["window_ops"] == WINDOW
        assert c.limits["window_bytes"] == 1 << 20


def test_silence_before_hello(small):
    """A connection that says nothing, or half of it, is closed in time."""
    with small.client(hello=False) as silent, small.client(hello=False) as half:
        half.raw(b"\x10\x00")
        assert silent.is_closed() and half.is_closed()


def test_sessions(small):
    some = [small.client()]
    while some[0].stat()["sessions"] > 1:  # those of the tests before may still be going
        some[0].sync()
    some += [small.client() for _ in range(SESSIONS - 1)]
    with small.client(hello=False) as c:
        c.send([1, 1, 1, 0, "one too many", {}])
        assert c.is_closed()[0] == ERROR["LIMIT"]
    for c in some:
        c.sync()
        c.socket.close()


def test_buffers(small):
    with small.client() as c:
        made = [c.new("int8", [1]) for _ in range(BUFFERS)]
        c.sync()
        c.new("int8", [1])
        assert failure(c.sync).code == ERROR["LIMIT"]
        c.free(made[0])
        c.new("int8", [1])
        c.sync()


def test_memory(small):
    """Running out fails that operation, and says how much who holds; freeing helps."""
    with small.client() as c, small.client() as other:
        x, last = [], None
        while last is None or last.code != ERROR["MEMORY"]:
            x.append(c.new("uint8", [6 << 20]))
            assert len(x) < 12
            try:
                c.read(view(x[-1], "uint8", [1]))
            except Exception as error:
                last = error
        assert last.name == "new" and last.number == c.number
        assert len(x) > 8 and other.stat()["used_bytes"] > 40 << 20
        c.free(*x[-2:])
        y = c.new("uint8", [6 << 20])
        assert not c.read(view(y, "uint8", [6 << 20])).any()


def test_acknowledged_within_the_window(small):
    """Acknowledgements come at least each quarter of the window."""
    with small.client() as c:
        whole = view(c.upload(np.zeros(4)), "float64", [4])
        for _ in range(200):
            while c.number - c.done >= WINDOW:
                message, _ = c.receive()
                assert message[0] == ACK and c.done < message[1] <= c.number
                c.done = message[1]
            c.send([UFUNC, UFUNCS["add"], 12, [whole], [whole, 1], []])
        assert c.read(whole).tolist() == [200] * 4


def test_reader_that_stops(small):
    """More waits for a client than may, so it is disconnected. Others read on."""
    with small.client() as slow, small.client() as c:
        x = slow.upload(np.zeros(3 << 20, "uint8"))
        for i in range(64):
            slow.send([READ, 1000 + i, view(x, "uint8", [3 << 20])])
        y = c.upload(np.arange(100_000))
        begin = time.monotonic()
        while c.stat()["sessions"] > 1: # waits on the server, not on the clock
            assert np.array_equal(c.read(view(y, "int64", [100_000])), np.arange(100_000))
            assert time.monotonic() - begin < TIMEOUT
        with pytest.raises(Closed):
            while True:
                slow.receive()
