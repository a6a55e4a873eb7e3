"""A server that answers the library as a test says: byte by byte, and wrongly."""
import contextlib
import fcntl
import os
import socket
import struct
import sys
import tempfile
import threading

import msgpack

import raw
from raw import REQUEST, frame, message

sys.path.insert(1, str(raw.PACKAGE))
NOTES = 2 | 4 | 8  # flags of frames without bytes behind the header
ANSWERED = {REQUEST[name] for name in ("hello", "resume")} | set(range(48, 64)) | set(range(70, 78))
SECRET = bytes(range(16))
LIMITS = {"window_ops": 65536, "window_bytes": 1 << 26, "max_payload": 1 << 22, "max_control": 1 << 20,
          "max_buffers": 1 << 20, "backend": "cpu", "devices": 1, "memory": 1 << 34, "device_name": "none",
          "server": "wrong 1.0", "pid": 1, "resume": 0, "instance": 7}
KERNELS, RESUME, CANCEL = 1, 2, 4


def welcome(features=KERNELS | CANCEL, version=1, session=5, secret=SECRET, **limits):
    return frame(message("welcome", version, features, session, secret, {**LIMITS, **limits}))


def reply(*values, done=0, payload=b"", flags=0):
    """An answer for whatever request comes."""
    return lambda request: frame(message("reply", request, done, list(values)), payload, flags)


class WrongServer:
    """Listens for the connections of one test. Each is a list: what is answered to hello, to resume and to each request,
    one after another, and then the end. An answer: bytes, or a function of the request's id; or a tuple of bytes and
    descriptors that go along.
    """

    def __init__(self, *connections, tcp=False):
        self.connections, self.folder = connections, tempfile.TemporaryDirectory(prefix="ad")
        self.path = f"{self.folder.name}/s"
        self.listener = socket.create_server(("127.0.0.1", 0)) if tcp else socket.socket(socket.AF_UNIX)
        if not tcp:
            self.listener.bind(self.path)
            self.listener.listen(16)
        self.url = f"tcp:127.0.0.1:{self.listener.getsockname()[1]}" if tcp else f"unix:{self.path}"
        self.heard = []  # messages of all connections
        self.open = None
        self.thread = threading.Thread(target=self.serve, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        for s in (self.listener, self.open):  # the program may keep its session
            with contextlib.suppress(OSError, AttributeError):
                s.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(raw.WINDOW)
        self.folder.cleanup()

    def serve(self):
        for answers in self.connections:
            try:
                s, _ = self.listener.accept()
            except OSError:
                return
            self.open = s
            with s, contextlib.suppress(OSError, EOFError):
                s.settimeout(raw.WINDOW)
                self.answer(s, iter(answers))
                s.shutdown(socket.SHUT_WR)
                while s.recv(1 << 16):
                    pass

    def answer(self, s, answers):
        """Answer what the client asks, until no answer is left."""
        left = next(answers, None)
        while left is not None:
            for heard in self.receive(s):
                self.heard.append(heard)
                if heard[0] in ANSWERED and left is not None:
                    send(s, left(heard[1]) if callable(left) else left)
                    left = next(answers, None)

    @staticmethod
    def receive(s):
        """The messages of a frame."""
        control, flags, payload = struct.unpack("<IIQ", exactly(s, 16))
        if flags & NOTES:
            return []
        unpacker = msgpack.Unpacker(strict_map_key=False)
        unpacker.feed(exactly(s, control))
        exactly(s, payload)
        return list(unpacker)


def exactly(s, size):
    data = bytearray()
    while len(data) < size:
        part = s.recv(min(size - len(data), 1 << 20))
        if not part:
            raise EOFError
        data += part
    return bytes(data)


def send(s, answer):
    if isinstance(answer, tuple):
        data, fds = answer
        sent = socket.send_fds(s, [data], fds)
        s.sendall(data[sent:])
        for fd in fds:
            os.close(fd)
    else:
        s.sendall(answer)


def memory_file(data=b"", seals=0):
    """A descriptor of memory with these bytes."""
    fd = os.memfd_create("test", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    os.write(fd, data)
    if seals:
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return fd
