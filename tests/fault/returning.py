"""Clients that come back to their sessions, byte by byte."""
import random
import socket
import struct

import pytest

import raw
from raw import Client, Closed, connect, frame, message

RESUME = 26
FEATURE = 2
TAKEN, LEAVE, CANCEL = 2, 4, 8
NOBODY = socket.socket(socket.AF_UNIX)  # is not connected


def note(flag, number=0):
    return struct.pack("<IIQ", 0, flag, number)


def tcp_of(server):
    from places import port_of  # its packages are needed by few tests
    return "127.0.0.1", port_of(server, "tcp")


class Session(Client):
    """A client that can come back. It counts bytes, and keeps all that it sends."""

    def __init__(self, address, **options):
        self.address, self.options = address, options
        self.received, self.sent, self.begun = 0, None, bytearray()
        self.passed = []  # where descriptors were passed: begin and end of the frame, descriptor
        super().__init__(address, greet=False)
        self.socket.sendall(frame(message("hello", 1, 1, FEATURE, "raw", options)))
        self.welcome = self.receive_message()
        if self.welcome[0] == raw.REQUEST["bye"]:
            raise Closed(*self.welcome[1:])
        assert self.welcome[0] == raw.REQUEST["welcome"]
        self.features, self.id, self.secret, self.limits = self.welcome[2:6]
        self.received, self.sent = 0, bytearray()

    def child(self):
        """The session of a fork, which its client knows by a key until it is welcomed."""
        key, secret = random.getrandbits(63) | 1 << 63, random.randbytes(16)
        child = Child(self, self.fork(key, secret), key, secret)
        at, end, _ = self.passed[-1]
        self.passed[-1] = at, end, NOBODY.fileno()  # the other one is gone
        return child

    def exactly(self, n):
        first = bytes(self.begun[:n])  # what was read before
        del self.begun[:n]
        data = super().exactly(n - len(first))
        self.received += len(data)
        return first + data

    def send(self, data):
        self.sent += data
        super().send(data)

    def some(self, data, n):
        """Let only the first n bytes through."""
        self.sent += data
        super().send(data[:n])

    def ask_back(self, **other):
        """A socket on which the server has been asked to go on, and its answer."""
        s = connect(other.get("address", self.address))
        fields = [other.get(key, value) for key, value in
                  (("version", 1), ("instance", self.limits["instance"]), ("session", self.id),
                   ("secret", self.secret), ("received", self.received))]
        s.sendall(frame(message("resume", *fields, other.get("options", self.options))))
        return s, Client(s, greet=False).receive_message()

    def come_back(self, close=True, **other):
        if close:
            self.socket.close()
        s, answer = self.ask_back(**other)
        if answer[0] == raw.REQUEST["bye"]:
            raise Closed(*answer[1:])
        assert answer[0] == raw.REQUEST["resumed"]
        self.socket, self.secret = s, answer[1]
        had = at = answer[2]
        assert had <= len(self.sent)
        for begin, end, fd in self.passed:
            if begin >= had:
                s.sendall(self.sent[at:begin])
                socket.send_fds(s, [self.sent[begin:end]], [fd])
                at = end
        s.sendall(self.sent[at:])
        return had

    def pass_on(self, data, fd):
        """A frame and a descriptor, which is passed again where the frame must be sent again."""
        self.flush()
        self.passed.append((len(self.sent), len(self.sent) + len(data), fd))
        self.sent += data
        try:
            socket.send_fds(self.socket, [data], [fd])
        except (BrokenPipeError, ConnectionResetError):
            pass


class Child(Session):
    """Begun by a fork. The welcome is the first message of its stream."""

    def __init__(self, parent, end, key, secret):
        Client.__init__(self, end, greet=False)
        self.address, self.options, self.limits = parent.address, parent.options, parent.limits
        self.received, self.sent, self.begun, self.passed = 0, bytearray(), bytearray(), []
        self.key = self.id = key
        self.secret, self.welcome, self.buffers = secret, None, parent.buffers + 1000

    def receive(self):
        frame = super().receive()
        if self.welcome:
            return frame
        self.welcome, = frame[0]
        if self.welcome[0] == raw.REQUEST["bye"]:
            raise Closed(*self.welcome[1:])
        assert self.welcome[0] == raw.REQUEST["welcome"], self.welcome
        self.id = self.welcome[3]
        return super().receive()


def refused(who, code=RESUME, **other):
    with pytest.raises(Closed) as closed:
        who.come_back(close=False, **other)
    assert closed.value.code == code
    return closed.value.text


def count_to_a_thousand(session, x, rng):
    """Count one at a time, each an operation in place, in frames of a random length."""
    n = rng.randrange(1, 1000)
    for i in range(1000):
        session.out += add_one(session, x)
        session.operations += 1
        if i % n == n - 1:
            session.flush()


def add_one(session, x):
    return message("ufunc", raw.UFUNC["add"], raw.DTYPES.index("int64"), [x], [x, 1], [])
