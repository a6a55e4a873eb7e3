"""Descriptors that clients pass and whose closing takes long: the server's threads must not wait for it."""
import contextlib
import os
import pathlib
import signal
import socket
import struct
import subprocess

import pytest

import fuse
from raw import Client, connect, frame, hello, message, wait_until
from test_hostile import bystander  # noqa: F401
from test_resume import program

HOUR = 3600  # seconds for which closing waits: longer than any test


def make_lingering():
    """A TCP socket whose close() waits for an hour, as its peer reads nothing; and that peer."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        s.connect(listener.getsockname())
        peer, _ = listener.accept()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, HOUR))
    s.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            s.send(bytes(1 << 20))
    return s, peer


def pass_with_operations(server, fds):
    """With a message that takes no descriptor; the session ends then."""
    client = Client(server.path)
    socket.send_fds(client.socket, [frame(message("sync", 1))], fds)


def pass_as_window(server, fds):
    client = Client(server.path)
    socket.send_fds(client.socket, [frame(message("window", 1, 4096))], fds)
    client.ask("sync")
    client.receive()


def pass_before_hello(server, fds):
    with connect(server.path) as s:
        socket.send_fds(s, [hello()], fds)
        s.recv(1)


def pass_unread(server, fds):
    """Behind bytes that the server refuses, so that it may have closed the connection before."""
    with connect(server.path) as s, contextlib.suppress(BrokenPipeError, ConnectionResetError):
        s.sendall(frame(b"\xc1"))
        socket.send_fds(s, [b"x" * 100], fds)


def pass_after_bye(server, fds):
    """To a session that has been refused, and reads only to throw away."""
    client = Client(server.path)
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        client.send(frame(b"\xc1"))
        client.receive()
        socket.send_fds(client.socket, [b"x"], fds)


def pass_nested(server, fds):
    """In the queue of a socket that is passed."""
    ours, theirs = socket.socketpair()
    socket.send_fds(ours, [b"x"], fds)
    pass_with_operations(server, [theirs.fileno()])


def pass_to_control(server, fds):
    """To the socket of arrayctl."""
    with connect(server.path + ".ctl") as s:
        socket.send_fds(s, [b"x"], fds)


WAYS = {"operations": (pass_with_operations, 1), "16": (pass_with_operations, 16), "17": (pass_with_operations, 17),
        "100": (pass_with_operations, 100), "window": (pass_as_window, 1), "hello": (pass_before_hello, 1),
        "unread": (pass_unread, 1), "bye": (pass_after_bye, 1), "nested": (pass_nested, 1),
        "control": (pass_to_control, 9)}


@contextlib.contextmanager
def in_child(work):
    """Let a child do the work and end, before and after the body. A process that ends does not linger, so the
    sockets wait for nobody but their receiver."""
    mine, its = socket.socketpair()
    pid = os.fork()
    if not pid:
        mine.close()
        its.recv(1)
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    its.close()
    try:
        yield
    finally:
        mine.close()
        assert os.waitpid(pid, 0)[1] == 0


def has_any(pid, inodes):
    """Tell whether a process has a descriptor of one of these sockets."""
    for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            if os.readlink(entry) in inodes:
                return True
    return False


@pytest.mark.parametrize("way", WAYS)
def test_sockets_that_linger(server, bystander, way):  # noqa: F811
    """The bystander is answered meanwhile, and the sockets are closed at last, although nobody reads from them."""
    work, count = WAYS[way]
    Client(server.path).close()
    pairs = [make_lingering() for _ in range(count)]
    inodes = {f"socket:[{os.fstat(s.fileno()).st_ino}]" for s, _ in pairs}
    with in_child(lambda: work(server, [s.fileno() for s, _ in pairs])):
        for s, _ in pairs:
            s.close()
    Client(server.path).close()
    wait_until(lambda: not any(has_any(pid, inodes) for pid in (server.pid, server.worker)), "all is closed")
    for _, peer in pairs:
        peer.close()


@pytest.fixture
def slow_file():
    """A daemon that does not let the server close a file, and that file."""
    try:
        with fuse.mounted() as (daemon, path):
            yield daemon, path
    except OSError as error:
        pytest.skip(f"FUSE cannot be used: {error}")


@pytest.mark.parametrize("way", ["operations", "window", "hello", "control"])
def test_a_file_that_is_never_closed(server, bystander, slow_file, way):  # noqa: F811
    """The bystander is answered while a thread of the server waits in close(), which nothing interrupts."""
    daemon, path = slow_file
    Client(server.path).close()
    with in_child(lambda: WAYS[way][0](server, [os.open(path, os.O_RDWR)])):
        pass
    assert daemon.stdout.readline() == "closing\n"
    for _ in range(3):
        Client(server.path).close()
    daemon.kill()


READS_LATER = """
import sys, arrayd as ad
x = ad.arange(3)
ad.sync()
print("ready", flush=True)
sys.stdin.readline()
print(x.tolist())
"""


def test_a_worker_that_cannot_be_reaped(start, slow_file):
    """The kernel does not report the exit of a worker while one of its threads closes the file. Another one serves new
    clients. Those of the first hear of its end when the file is closed, and lose nothing."""
    daemon, path = slow_file
    server = start("--worker-silence=1")
    reader = program(READS_LATER, f"unix:{server.path}", stdin=subprocess.PIPE)
    assert reader.stdout.readline() == "ready\n"
    with in_child(lambda: pass_as_window(server, [os.open(path, os.O_RDWR)])):
        pass
    assert daemon.stdout.readline() == "closing\n"
    os.kill(server.worker, signal.SIGKILL)
    wait_until(lambda: server.said("worker not reaped"), "the worker is given up")
    Client(server.path).sync()
    daemon.kill()
    assert reader.communicate("\n")[0] == "[0, 1, 2]\n"
