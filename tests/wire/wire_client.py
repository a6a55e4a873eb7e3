"""A client written from wire.md and the tables alone: socket, struct, msgpack. It shares no code with the library."""
import fcntl
import mmap
import os
import pathlib
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile

import msgpack
import numpy as np

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(TOP / "tests"))
from patience import PATIENCE as TIMEOUT  # noqa: E402

MORE = 1
HELLO, WELCOME, NEW, FREE, WRITE, UFUNC, REDUCE, CALL = 1, 2, 16, 17, 18, 19, 20, 21
STREAM, STREAM_DROP, ON, EVENT, EVENT_DROP, AFTER, WINDOW, WINDOW_DROP, LOAD, EMPTY = range(22, 32)
FETCH, WAIT, DONE, ELAPSED, POOL, DEVICE = range(52, 58)
MODULE_DROP, LAUNCH, KERNEL_SET, BUILD, KERNEL, GLOBAL = 32, 33, 34, 58, 59, 60
FORK, REVOKE = 40, 41
SHARE, ATTACH, PUBLISH, ATTACH_NAME, UNPUBLISH, NAMES, EXPORT, IMPORT = range(70, 78)
READ, SYNC, STAT, QUERY, REPLY, FAIL, ACK, BYE = 48, 49, 50, 51, 64, 65, 66, 67


def table(name, row):
    """{name: wire id} of one of protocol/*.def."""
    text = (TOP / "protocol" / f"{name}.def").read_text()
    return {m[2]: int(m[1]) for m in re.finditer(rf"^{row}\((\d+),\s*(\w+)", text, re.M)}


DTYPE = {name.lower(): number for name, number in table("dtype", "AD_DTYPE").items()}
UFUNCS, REDUCTIONS, CALLS = (table("ufunc", "AD_UFUNC"), table("reduction", "AD_REDUCTION"), table("call", "AD_CALL"))
ERROR, COUNTER = table("error", "AD_ERROR"), table("counter", "AD_COUNTER")


class Failed(Exception):
    """A fail message: code, number, name, text."""

    def __init__(self, code, number, name, text):
        super().__init__(f"{code} #{number} {name}: {text}")
        self.code, self.number, self.name, self.text = code, number, name, text


class Closed(Exception):
    """The server closed the connection; bye: [code, message] where it said why."""

    def __init__(self, bye):
        super().__init__(str(bye))
        self.bye = bye


def frame(control=b"", payload=b"", flags=0):
    return struct.pack("<IIQ", len(control), flags, len(payload)) + control + payload


def view(buffer, dtype, shape, strides=None, offset=0):
    """The description of a view; row-major without strides."""
    parts = [buffer, DTYPE[dtype], offset, list(shape)]
    return parts if strides is None else parts + [list(strides)]


def fresh(buffer, dtype, shape):
    return [buffer, DTYPE[dtype], list(shape)]


def scalar(value):
    """A value as it travels."""
    value = value.item() if isinstance(value, np.generic) else value
    return msgpack.ExtType(1, struct.pack("<dd", value.real, value.imag)) if isinstance(value, complex) else value


class Export:
    """Memory of an array, mapped here: the lease's socket and the memory, which the lease outlives or the other way
    round."""

    def __init__(self, lease, size):
        self.lease, self.size = lease, size
        message, (fd,), _, _ = socket.recv_fds(lease, 100, 4)
        assert len(message) == 64
        assert os.fstat(fd).st_size == size
        self.memory = mmap.mmap(fd, size)
        os.close(fd)

    def array(self, like, offset=0):
        """Elements of this dtype and shape, where they lie."""
        return np.frombuffer(self.memory, like.dtype, like.size, offset).reshape(like.shape)

    def close(self):
        self.lease.close()


class Loan:
    """Memory of this process, for servers to have."""

    def __init__(self, size, seals=fcntl.F_SEAL_SHRINK):
        self.fd = os.memfd_create("loan", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
        os.ftruncate(self.fd, size)
        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, seals)
        self.size, self.memory = size, mmap.mmap(self.fd, size)

    def array(self, like, offset=0):
        """Elements of this dtype and shape, where they lie."""
        return np.frombuffer(self.memory, like.dtype, like.size, offset).reshape(like.shape)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.fd)


def fork(flags=0, key=None):
    """The message, for another child each time."""
    return [FORK, flags, random.getrandbits(63) | 1 << 63 if key is None else key, random.randbytes(16)]


class Client:
    def __init__(self, path, hello=True, versions=(1, 1)):
        """path: of a socket, or one that is connected."""
        self.socket = path if isinstance(path, socket.socket) else socket.socket(socket.AF_UNIX)
        self.socket.settimeout(TIMEOUT)
        if self.socket is not path:
            self.socket.connect(str(path))
        self.number = self.done = self.request = self.buffer = self.windows = 0 # the last ones used
        self.answers, self.parts, self.acks, self.flags = {}, {}, [], []
        if hello:
            self.send([HELLO, *versions, 0, "test", {"future": [1]}])
            message, payload = self.receive()
            assert message[0] == WELCOME and payload == b""
            self.version, self.features, self.session, self.secret, self.limits = message[1:]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def raw(self, data):
        self.socket.sendall(data)

    def send(self, *messages, payload=b""):
        """Send one frame of messages. Operations are counted."""
        self.number += sum(NEW <= m[0] < READ for m in messages)
        self.raw(frame(b"".join(map(msgpack.packb, messages)), payload))

    def pass_along(self, fd, *messages):
        """Send one frame of messages, with a descriptor at its first byte."""
        self.number += sum(NEW <= m[0] < READ for m in messages)
        data = frame(b"".join(map(msgpack.packb, messages)))
        sent = socket.send_fds(self.socket, [data], [fd])
        self.raw(data[sent:])

    def window(self, size, seals=fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW, claim=None):
        """A window: its id and its memory, on this side."""
        fd = os.memfd_create("window", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
        try:
            os.ftruncate(fd, size)
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
            self.windows += 1
            self.pass_along(fd, [WINDOW, self.windows, size if claim is None else claim])
            return self.windows, mmap.mmap(fd, size)
        finally:
            os.close(fd)

    def exactly(self, size):
        data = bytearray()
        while len(data) < size:
            try:
                part = self.socket.recv(size - len(data))
            except (ConnectionResetError, BrokenPipeError):
                part = b""
            if not part:
                raise Closed(None)
            data += part
        return bytes(data)

    def receive(self):
        """(message, payload): the next frame, which must hold one message. Closed when the server says bye."""
        control, flags, payload = struct.unpack("<IIQ", self.exactly(16))
        assert control <= 1 << 20 and flags & ~MORE == 0 and payload <= 4 << 20
        message, data = msgpack.unpackb(self.exactly(control)), self.exactly(payload)
        self.flags.append(flags)
        if message[0] == BYE:
            raise Closed(message[1:])
        return message, data

    def answer(self, request):
        """(values, payload) of a request; acknowledgements and other requests' answers are kept."""
        while request not in self.answers:
            message, payload = self.receive()
            if message[0] == ACK:
                self.acks.append(message[1])
                assert self.done <= message[1] <= self.number
                self.done = message[1]
                continue
            assert self.done <= message[2] <= self.number
            self.done = message[2]
            if message[0] == FAIL:
                self.parts.pop(message[1], None)
                self.answers[message[1]] = Failed(*message[3:])
                continue
            assert message[0] == REPLY
            self.keep(message, payload)
        return self.take(request)

    def keep(self, message, payload):
        """A reply; the parts of a read until the last one. Each begins where the one before it ended."""
        _, request, _, values = message
        before = self.parts.setdefault(request, bytearray())
        if len(values) == 2 and payload and not isinstance(values[0], bool):
            assert values[1] == len(before)
        before += payload
        if not self.flags[-1] & MORE:
            self.answers[request] = values, bytes(self.parts.pop(request))

    def take(self, request):
        answer = self.answers.pop(request)
        if isinstance(answer, Failed):
            raise answer
        return answer

    def ask(self, opcode, *fields):
        self.request += 1
        self.send([opcode, self.request, *fields])
        return self.request

    # ---- arrays for others ----

    def share(self, buffer, uses=0, lease=0, linger=0):
        """A capability: its two halves."""
        (first, second, _), _ = self.answer(self.ask(SHARE, buffer, uses, lease, linger))
        return first % 2**64, second % 2**64

    def attach(self, capability):
        """(buffer, bytes, kind)"""
        buffer = self.id()
        (size, kind, _), _ = self.answer(self.ask(ATTACH, buffer, *capability))
        return buffer, size, kind

    def publish(self, name, description, writable=0, grant=""):
        assert self.answer(self.ask(PUBLISH, description, writable, name, grant)) == ([], b"")

    def attach_name(self, name, principal=""):
        """(description, writable)"""
        buffer = self.id()
        (_, writable, _, dtype, _, *shape), _ = self.answer(self.ask(ATTACH_NAME, buffer, principal, name))
        return [buffer, dtype, 0, shape], writable

    def names(self):
        buffer = self.id()
        (size,), _ = self.answer(self.ask(NAMES, buffer))
        text = self.read(view(buffer, "uint8", [size])).tobytes().decode()
        self.free(buffer)
        return [line.split("\t") for line in text.splitlines()]

    def export(self, buffer, flags=0):
        """An export of a buffer's memory."""
        ours, theirs = socket.socketpair()
        self.request += 1
        with theirs:
            self.pass_along(theirs.fileno(), [EXPORT, self.request, buffer, flags])
        try:
            (size, *_), _ = self.answer(self.request)
            return Export(ours, size)
        except BaseException:
            ours.close()
            raise

    def lend(self, loan, size=None, offset=0, number=1, flags=0, whole=None, device="", laid=None):
        """(buffer, lease): memory of a Loan as a buffer. The lease is a socket, which the server closes."""
        ours, theirs = socket.socketpair()
        buffer, self.request = self.id(), self.request + 1
        whole = loan.size if whole is None else whole
        size = whole - offset if size is None else size
        with theirs:
            if laid is None:
                socket.send_fds(ours, [bytes(64)], [loan.fd])
            else:
                ours.sendall(laid)
            self.pass_along(theirs.fileno(), [IMPORT, self.request, buffer, flags, number, whole, offset, size, device])
        try:
            assert self.answer(self.request) == ([0], b"")
        except BaseException:
            ours.settimeout(TIMEOUT)
            assert ours.recv(1) == b"" # it has let go at once
            ours.close()
            raise
        return buffer, ours

    def fork(self):
        """A session of a child, with this one's buffers, by the same ids."""
        ours, theirs = socket.socketpair()
        with theirs:
            self.pass_along(theirs.fileno(), fork())
        child = Client(ours, hello=False)
        child.buffer = self.buffer + 1000
        return child

    # ---- one call for each message ----

    def id(self):
        self.buffer += 1
        return self.buffer

    def new(self, dtype, shape):
        buffer = self.id()
        self.send([NEW, fresh(buffer, dtype, shape)])
        return buffer

    def write(self, buffer, data, offset=0):
        self.send([WRITE, buffer, offset], payload=bytes(data))

    def upload(self, array):
        """A buffer with an array's elements."""
        array = np.ascontiguousarray(array)
        buffer = self.new(array.dtype.name, array.shape)
        data = array.tobytes()
        for at in range(0, len(data), 4 << 20):
            self.write(buffer, data[at:at + (4 << 20)], at)
        return buffer

    def free(self, *buffers):
        self.send([FREE, list(buffers)])

    def ufunc(self, name, loop, outputs, inputs):
        self.send([UFUNC, UFUNCS[name], DTYPE[loop], outputs, inputs, []])

    def reduce(self, name, loop, output, inputs, axes, ddof=None, initial=None):
        self.send([REDUCE, REDUCTIONS[name], DTYPE[loop], [output], inputs, [axes, ddof, initial]])

    def call(self, name, loop, outputs, inputs, parameters=()):
        self.send([CALL, CALLS[name], DTYPE[loop], outputs, inputs, list(parameters)])

    def query(self, name, loop, outputs, inputs, parameters=()):
        return self.answer(self.ask(QUERY, CALLS[name], DTYPE[loop], outputs, inputs, list(parameters)))[0]

    def sync(self):
        assert self.answer(self.ask(SYNC)) == ([], b"")
        return self.done

    def stat(self):
        values, _ = self.answer(self.ask(STAT))
        assert len(values) >= len(COUNTER)
        return {name: values[i] for name, i in COUNTER.items()}

    def read(self, description):
        """The elements of a view, as an array."""
        (total, _), data = self.answer(self.ask(READ, description))
        assert total == len(data)
        name = next(name for name, number in DTYPE.items() if number == description[1])
        return np.frombuffer(data, name).reshape(description[3])

    def is_closed(self):
        """Nothing but the end comes any more; what the bye said."""
        try:
            while True:
                self.receive()
        except Closed as closed:
            return closed.bye or True


class Server:
    """A server process of its own, stopped at the end."""

    def __init__(self, program, folder, **options):
        self.program, self.folder, self.options = program, pathlib.Path(folder), options

    def __enter__(self):
        # Addresses of Unix sockets are short, and pytest's folders are not.
        self.short = tempfile.TemporaryDirectory(prefix="ad")
        self.path = pathlib.Path(self.short.name) / "s"
        self.log = open(self.folder / "log", "wb")
        ready = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        ready.bind(f"{self.short.name}/ready")
        ready.settimeout(TIMEOUT)
        command = [self.program, "--socket", self.path, *(f"--{k.replace('_', '-')}={v}" for k, v in self.options.items())]
        kept = "ARRAYD_CPU_LATE", "ARRAYD_RING"
        environment = {k: v for k, v in os.environ.items() if not k.startswith("ARRAYD_") or k in kept}
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                        env=environment | {"NOTIFY_SOCKET": f"{self.short.name}/ready"})
        with ready:
            assert ready.recv(100).startswith(b"READY=1"), (self.folder / "log").read_text()
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(TIMEOUT)
        self.log.close()
        self.short.cleanup()
        assert status == 0, (self.folder / "log").read_text()

    def client(self, **options):
        return Client(self.path, **options)

    def alive(self):
        return self.process.poll() is None
