"""A server under test, and a client that shares no code with it: the msgpack package and the tables' wire ids."""
import atexit
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

import msgpack
import numpy as np
import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(TOP / "tests"))
from patience import PATIENCE  # noqa: E402

BUILD = pathlib.Path(os.environ.get("ARRAYD_BUILD", TOP / "build" / "release"))
# The Python package is that of the release build: Python cannot load a sanitizer's extension.
PACKAGE = (BUILD.parent / "release" if BUILD.name in ("asan", "tsan") else BUILD) / "python"
PROGRAM = BUILD / "bin" / "arrayd"
BACKEND = os.environ.get("ARRAYD_TEST_BACKEND", "cpu")
cpu_only = pytest.mark.skipif(BACKEND != "cpu", reason="of the cpu backend only")
DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16",
          "float32", "float64", "complex64", "complex128"]
FEATURE_RESUME = 2
WINDOW = PATIENCE  # seconds that anything may take before a test calls it hung


def table(name, macro):
    text = (TOP / "protocol" / f"{name}.def").read_text()
    return {m[1].lower(): int(m[0]) for m in re.findall(rf"^{macro}\((\d+), (\w+)", text, re.M)}


UFUNC = table("ufunc", "AD_UFUNC")
REDUCTION = table("reduction", "AD_REDUCTION")
CALL = table("call", "AD_CALL")
REQUEST = table("request", "AD_REQUEST")
COUNTER = table("counter", "AD_COUNTER")
ERROR = {v: k for k, v in table("error", "AD_ERROR").items()}


def children(pid):
    """Process ids of a process's children."""
    try:
        return [int(c) for c in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def script_worker(path, before):
    """Write a program of workers that does something in the shell first. Returns its path, for the option worker."""
    path.write_text(f'#!/bin/sh\n{before}\nexec "{PROGRAM.parent}/arrayd-worker" "$@"\n')
    path.chmod(0o755)
    return path


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def wait_until(condition, what, limit=WINDOW):
    """Look again and again, without a fixed sleep, until the condition is true."""
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"still not: {what}")
        time.sleep(0.002)


RUNNING = []  # every server's process, so that none outlives a test that failed
FOLDERS = []  # of servers that were given none
OWNER = os.getpid()


@atexit.register
def leave_nothing():
    """Ends what still runs and removes the servers' folders. A fork gives a process the numbers of its parent."""
    if os.getpid() != OWNER:
        return
    while RUNNING:
        process = RUNNING.pop()
        if process.poll() is None:
            process.kill()
            process.wait()
    while FOLDERS:
        shutil.rmtree(FOLDERS.pop(), ignore_errors=True)


class Server:
    """arrayd in a folder of its own. The attribute `lines` keeps its log."""

    def __init__(self, *options, env=None, folder=None, wait=True, program=PROGRAM):
        self.folder = folder
        if not folder:
            self.folder = tempfile.mkdtemp(prefix="arrayd-")
            FOLDERS.append(self.folder)
        self.path = os.path.join(self.folder, "s")
        self.lines = []
        self.started = time.monotonic()
        full = {k: v for k, v in os.environ.items() if k == "ARRAYD_RING" or not k.startswith(("ARRAYD_", "AD_"))}
        full.update(env or {})
        self.process = subprocess.Popen([program, f"--socket={self.path}", f"--backend={BACKEND}",
                                         "--kernels-cache=none", *options], env=full,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                        text=True, errors="replace")
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        RUNNING.append(self.process)
        if wait:
            wait_until(lambda: self.said("event=ready") or self.process.poll() is not None, "the server is ready")

    def _read(self):
        for line in self.process.stderr:
            self.lines.append(line.rstrip("\n"))

    def said(self, text):
        return any(text in line for line in list(self.lines))

    @property
    def pid(self):
        return self.process.pid

    @property
    def worker(self):
        found = children(self.pid)
        return found[0] if found else None

    def wait(self, limit=WINDOW):
        status = self.process.wait(limit)
        self.reader.join(limit)
        return status

    def stop(self):
        """SIGTERM; the exit status. Nothing that a sanitizer would say may have been said."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        status = self.wait()
        for word in ("ERROR: ", "runtime error", "WARNING: ThreadSanitizer", "Sanitizer:"):
            assert not self.said(word), "\n".join(self.lines)
        return status

    def kill(self):
        self.process.kill()
        return self.wait()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        status = self.stop()
        if kind is None:
            assert status == 0, "\n".join(self.lines)


class Closed(Exception):
    """The server closed the connection; why, if it said bye."""

    def __init__(self, code=None, text=""):
        super().__init__(code, text)
        self.code, self.text = code, text


class Failed(Exception):
    """A fail reply: error name, operation number, operation name, message."""

    def __init__(self, code, number, name, text):
        super().__init__(ERROR.get(code, code), number, name, text)
        self.error, self.number, self.name, self.text = ERROR.get(code, code), number, name, text


def message(name, *fields):
    return msgpack.packb([REQUEST[name], *fields])


def frame(control=b"", payload=b"", flags=0):
    return struct.pack("<IIQ", len(control), flags, len(payload)) + control + payload


def hello(least=1, greatest=1, client="raw", token=None):
    return frame(message("hello", least, greatest, 0, client, {} if token is None else {"token": token}))


def connect(address):
    s = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET, socket.SOCK_STREAM)
    s.settimeout(WINDOW)
    s.connect(address)
    return s


def answered(path):
    """Tell whether somebody takes connections there. A socket's file is there a moment before."""
    with socket.socket(socket.AF_UNIX) as s:
        return s.connect_ex(path) == 0


class Client:
    """A session. Operations are collected and sent with the next request, or by flush."""

    def __init__(self, address, greet=True, token=None):
        self.socket = connect(address) if not isinstance(address, socket.socket) else address
        self.out = bytearray()
        self.buffers = 0
        self.requests = 0
        self.operations = 0
        self.done = 0
        self.welcome = None
        if greet:
            self.send(hello(token=token))
            self.welcome = self.receive_message()
            if self.welcome[0] == REQUEST["bye"]:
                raise Closed(*self.welcome[1:])

    # ---- frames ----
    def exactly(self, n):
        data = bytearray()
        while len(data) < n:
            try:
                part = self.socket.recv(min(n - len(data), 1 << 20))
            except (ConnectionResetError, BrokenPipeError):
                part = b""
            if not part:
                raise Closed
            data += part
        return bytes(data)

    def receive(self):
        """Receive one frame: messages, flags, payload."""
        control, flags, payload = struct.unpack("<IIQ", self.exactly(16))
        unpacker = msgpack.Unpacker(strict_map_key=False)
        unpacker.feed(self.exactly(control))
        return list(unpacker), flags, self.exactly(payload)

    def receive_message(self):
        messages, _, _ = self.receive()
        return messages[0]

    def send(self, data):
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass  # what the server said before it closed is still to be read

    def flush(self):
        if self.out:
            self.send(frame(bytes(self.out)))
            self.out.clear()

    def close(self):
        self.socket.close()

    # ---- operations ----
    def op(self, name, *fields):
        self.out += message(name, *fields)
        self.operations += 1
        if len(self.out) > 60000:
            self.flush()

    def fresh(self):
        self.buffers += 1
        return self.buffers

    def new(self, dtype, shape):
        b = self.fresh()
        self.op("new", [b, DTYPES.index(dtype), list(shape)])
        return b

    def put(self, array):
        """Upload; a description of the whole."""
        array = np.ascontiguousarray(array)
        b = self.new(array.dtype.name, array.shape)
        self.flush()
        data = array.tobytes()
        for at in range(0, len(data), 4 << 20):
            self.operations += 1
            self.send(frame(message("write", b, at), data[at:at + (4 << 20)]))
        return [b, DTYPES.index(array.dtype.name), 0, list(array.shape)]

    def ufunc(self, name, dtype, shape, *inputs, out=None):
        d = DTYPES.index(dtype)
        b = self.fresh() if out is None else None
        self.op("ufunc", UFUNC[name], d, [out or [b, d, list(shape)]], list(inputs), [])
        return out or [b, d, 0, list(shape)]

    def sum(self, dtype, x):
        d, b = DTYPES.index(dtype), self.fresh()
        self.op("reduce", REDUCTION["sum"], d, [[b, d, []]], [x], [(1 << len(x[3])) - 1, None, None])
        return [b, d, 0, []]

    def free(self, *descriptions):
        self.op("free", [d[0] if isinstance(d, list) else d for d in descriptions])

    def fork(self, key=None, secret=None):
        """The other end of the socket on which a child's session begins, with all buffers of this one."""
        ours, theirs = socket.socketpair()
        ours.settimeout(WINDOW)
        self.flush()
        control = message("fork", 0, key or random.getrandbits(63) | 1 << 63, secret or random.randbytes(16))
        with theirs:
            self.pass_on(frame(control), theirs.fileno())
        self.operations += 1
        return ours

    def pass_on(self, data, fd):
        """A frame and a descriptor."""
        socket.send_fds(self.socket, [data], [fd])

    # ---- requests ----
    def ask(self, name, *fields):
        self.requests += 1
        self.out += message(name, self.requests, *fields)
        self.flush()
        return self.requests

    def reply(self, request):
        """Values and payload of the reply to a request; acknowledgements are taken on the way."""
        data = bytearray()
        while True:
            messages, flags, payload = self.receive()
            for m in messages:
                kind = m[0]
                if kind == REQUEST["ack"]:
                    self.done = m[1]
                elif kind == REQUEST["bye"]:
                    raise Closed(*m[1:])
                elif kind == REQUEST["fail"] and m[1] == request:
                    self.done = m[2]
                    raise Failed(*m[3:])
                elif kind == REQUEST["reply"] and m[1] == request:
                    self.done = m[2]
                    if m[3]:
                        assert len(payload) == 0 or m[3][1] == len(data)
                    data += payload
                    if not flags & 1:
                        return m[3], bytes(data)
                else:
                    raise AssertionError(f"unexpected {m}")

    def get(self, d):
        _, data = self.reply(self.ask("read", d))
        return np.frombuffer(data, DTYPES[d[1]]).reshape(d[3])

    def sync(self):
        self.reply(self.ask("sync"))

    def stat(self, name=None):
        values, _ = self.reply(self.ask("stat"))
        return values[COUNTER[name]] if name else {each: values[i] for each, i in COUNTER.items()}
