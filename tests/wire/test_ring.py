"""Rings: enemies write what they like into the memory that the worker shares with them. docs/internals/ring.md."""
import array
import mmap
import os
import random
import socket
import struct

import msgpack
import pytest

from wire_client import ERROR, SYNC, Client, Closed, Server, frame

DATA, HEAD = 65536, 4096
LAYOUT, JOINED, UP_TAIL, UP_ANNOUNCED, UP_HEAD, DOWN_TAIL, DOWN_ANNOUNCED, DOWN_HEAD = 0, 4, 64, 72, 128, 192, 200, 256
RECORD = 16  # bytes of its head


@pytest.fixture(scope="module")
def server(build, tmp_path_factory):
    """A server that offers every client a ring."""
    with Server(build / "bin" / "arrayd", tmp_path_factory.mktemp("server"), ring="all") as running:
        yield running


class RingClient(Client):
    """A client that has mapped its ring. Its own reader sleeps for ever, so all answers come over the socket."""

    def __init__(self, path):
        self.memory, self.sent = None, 0
        super().__init__(path)
        self.sent = 0  # the stream begins behind hello
        while not self.memory:
            self.sync()
        self.store(UP_ANNOUNCED, self.sent)
        struct.pack_into("<I", self.memory, JOINED, 1)

    def look(self, place):
        return struct.unpack_from("<Q", self.memory, place)[0]

    def store(self, place, value):
        struct.pack_into("<Q", self.memory, place, value)

    def record(self, place, data, size=None):
        """A first record at a place of the stream, which the worker sees as soon as it wakes."""
        size = len(data) if size is None else size
        self.memory[HEAD:HEAD + RECORD + len(data)] = struct.pack("<QQ", place, size) + data
        self.store(UP_TAIL, (RECORD + (len(data) + 15) // 16 * 16) << 1 | 1)

    def raw(self, data):
        self.sent += len(data)
        if self.memory:
            self.store(UP_ANNOUNCED, self.sent)
        super().raw(data)

    def exactly(self, size):
        if self.memory:
            return super().exactly(size)
        data = b""
        while len(data) < size:
            part, ancillary, _, _ = self.socket.recvmsg(size - len(data), socket.CMSG_SPACE(4))
            if not part:
                raise Closed(None)
            data += part
            for _, _, fds in ancillary:
                (fd,) = array.array("i", fds)
                self.memory = mmap.mmap(fd, os.fstat(fd).st_size)
                os.close(fd)
        return data


def request(number):
    return frame(msgpack.packb([SYNC, number]))


@pytest.fixture
def client(server, bystander):
    with RingClient(server.path) as c:
        yield c


def test_memory_is_as_the_page_says(client):
    """Layout 1 in so many bytes, and indices of nothing yet."""
    assert len(client.memory) == HEAD + 2 * DATA
    assert struct.unpack_from("<I", client.memory, LAYOUT) == (1,)
    assert client.look(UP_TAIL) in (0, 1) and client.look(UP_HEAD) == 0
    assert client.look(DOWN_TAIL) == 1 and client.look(DOWN_HEAD) == 0
    assert client.look(DOWN_ANNOUNCED) > 0


def test_a_client_that_only_joins_goes_on(client):
    for _ in range(100):
        client.sync()


def test_a_record_is_executed_in_its_place(client):
    """One request over the socket, and the next one in the ring, whose answer comes over the socket."""
    first, second = client.request + 1, client.request + 2
    client.request = second
    client.record(client.sent + len(request(first)), request(second))
    client.raw(request(first))
    client.sent += len(request(second))
    assert client.answer(first) == ([], b"") and client.answer(second) == ([], b"")
    assert client.look(UP_HEAD) == client.look(UP_TAIL) >> 1


def test_a_record_that_is_early_waits_for_the_socket(client, bystander):
    """The worker does not take it before the bytes that stand before it, and serves others meanwhile."""
    first, second, third = (client.request + i for i in (1, 2, 3))
    client.request = third
    client.record(client.sent + 2 * len(request(first)), request(third))
    client.raw(request(first))
    assert client.answer(first) == ([], b"")
    bystander.check()
    assert client.look(UP_HEAD) == 0
    client.raw(request(second))
    client.sent += len(request(third))
    assert client.answer(second) == ([], b"") and client.answer(third) == ([], b"")


def ends(client):
    """The session ends by a violation of the protocol, at the next message at the latest."""
    try:
        client.raw(request(client.request + 1))
    except OSError:
        pass
    bye = client.is_closed()
    assert bye is True or bye[0] == ERROR["PROTOCOL"], bye


@pytest.mark.parametrize("tail", [1, 15, 16, 17, DATA + 16, 1 << 32, (1 << 62) - 16, (1 << 63) - 16, (1 << 63) - 1])
def test_a_tail_that_cannot_be(client, tail):
    client.store(UP_TAIL, tail << 1 | 1)
    ends(client)


@pytest.mark.parametrize("size", [0, 33, DATA, DATA + 1, 1 << 32, (1 << 64) - 16, (1 << 64) - 1])
def test_a_record_of_a_size_that_cannot_be(client, size):
    client.record(client.sent + len(request(1)), bytes(32), size)
    ends(client)


def test_a_record_before_what_was_received(client):
    client.record(client.sent + len(request(1)) - 1, request(9))
    ends(client)


def test_a_frame_in_the_ring_is_checked_as_any(client):
    client.record(client.sent + len(request(1)), b"\xff" * 32)
    ends(client)


def test_an_announcement_of_nothing(client, bystander):
    """The worker neither waits for the bytes nor looks for them again and again."""
    for _ in range(5):
        client.sync()
        client.store(UP_ANNOUNCED, (1 << 64) - 1)
        bystander.check()


def test_the_other_indices_are_only_its_own_loss(client):
    """The worker does not believe them, and uses the socket."""
    for place in (UP_HEAD, DOWN_TAIL, DOWN_ANNOUNCED, DOWN_HEAD):
        for value in (0, 1, 77, 1 << 31, (1 << 64) - 1):
            client.store(place, value)
            if place != DOWN_TAIL or value & 1:
                client.sync()


def test_whatever_is_written_others_notice_nothing(server, bystander):
    """Random words in all places of the memory, while the worker reads it."""
    for seed in range(60):
        chance = random.Random(seed)
        with RingClient(server.path) as c:
            try:
                for _ in range(chance.randrange(1, 20)):
                    for _ in range(chance.randrange(1, 6)):
                        place = chance.choice([UP_TAIL, UP_TAIL, UP_ANNOUNCED, UP_HEAD, DOWN_HEAD, HEAD, HEAD + 8,
                                               HEAD + 8 * chance.randrange(DATA // 8)])
                        c.store(place, chance.choice([0, 1, 2, 16, 32, 33, 64, c.sent, c.sent + 17,
                                                      chance.getrandbits(17), chance.getrandbits(64)]))
                    c.raw(request(1000))
            except OSError:
                pass
        bystander.check()
    assert server.alive()
