"""Sockets that a service manager opens before the server, and the permissions of the server's own."""
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading

import pytest

import raw
from raw import Client, wait_until

# Puts the descriptors from 3 on and says whose they are, as systemd does, and becomes the server.
LAUNCHER = """
import fcntl, os, sys
fds = [fcntl.fcntl(int(fd), fcntl.F_DUPFD, 50) for fd in sys.argv[1].split(",")]
for i, fd in enumerate(fds):
    os.dup2(fd, 3 + i)
os.environ.update(LISTEN_PID=str(os.getpid() + int(sys.argv[2])), LISTEN_FDS=str(len(fds)), LISTEN_FDNAMES="x")
os.execv(sys.argv[3], sys.argv[3:])
"""


def listening(path, backlog=5):
    s = socket.socket(socket.AF_UNIX)
    s.bind(path)
    s.listen(backlog)
    return s


@pytest.fixture
def activated(monkeypatch):
    """Start servers on the given sockets."""
    popen, servers = subprocess.Popen, []

    def make(sockets, *options, stranger=0):
        def start(command, **more):
            fds = ",".join(str(s.fileno()) for s in sockets)
            return popen([sys.executable, "-c", LAUNCHER, fds, str(stranger), *map(str, command)],
                         pass_fds=[s.fileno() for s in sockets], **more)

        with monkeypatch.context() as patch:
            patch.setattr(raw.subprocess, "Popen", start)
            servers.append(raw.Server(*options, wait=False))
        return servers[-1]

    yield make
    for server in servers:
        if server.process.poll() is None:
            assert server.stop() == 0, "\n".join(server.lines)


def test_client_that_came_before_the_server(activated, tmp_path):
    path = str(tmp_path / "s")
    with listening(path) as s:
        answers = []
        early = threading.Thread(target=lambda: answers.append(Client(path).welcome))
        early.start()  # connects, and waits for a server
        server = activated([s])
        early.join(raw.WINDOW)
        wait_until(lambda: server.said("event=ready"), "the server is ready")
    assert answers and answers[0][5]["pid"] == server.pid
    Client(path).sync()
    wait_until(lambda: server.said(f"at=unix:{path} "), "the log says where")
    assert not os.path.exists(server.path)  # its own socket is not needed
    worker = open(f"/proc/{server.worker}/environ").read()
    assert "LISTEN_" not in worker
    assert server.stop() == 0
    assert os.path.exists(path)  # the manager's, and listened to again


def test_several_sockets(activated, tmp_path):
    paths = [str(tmp_path / name) for name in "ab"]
    with listening(paths[0]) as a, listening(paths[1]) as b, listening("\0" + paths[0]) as c:
        server = activated([a, b, c])
        wait_until(lambda: server.said("event=ready"), "the server is ready")
    for path in (*paths, "\0" + paths[0]):
        Client(path).sync()
    wait_until(lambda: server.said(f"unix:@{paths[0]}"), "the log says where")


def test_what_is_somebody_elses_is_left_alone(activated, tmp_path):
    """The variables name another process: an own socket is opened."""
    with listening(str(tmp_path / "s")) as s:
        server = activated([s], stranger=1)
        wait_until(lambda: server.said("event=ready"), "the server is ready")
    Client(server.path).sync()


@pytest.mark.skipif(not shutil.which("systemd-socket-activate"), reason="there is no systemd-socket-activate here")
def test_systemds_own_launcher(tmp_path):
    """The launcher listens, and becomes the server when the first client comes."""
    path = str(tmp_path / "s")
    process = subprocess.Popen(["systemd-socket-activate", f"--listen={path}", str(raw.PROGRAM), "--backend=cpu",
                                "--kernels-cache=none"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    raw.RUNNING.append(process)
    wait_until(lambda: raw.answered(path), "the launcher listens")
    client = Client(path)
    client.sync()
    assert client.welcome[5]["pid"] == process.pid
    process.send_signal(signal.SIGTERM)
    assert f"at=unix:{path}" in process.communicate(timeout=raw.WINDOW)[1] and process.returncode == 0


@pytest.mark.parametrize("kind", ["tcp", "datagram", "connected", "file"])
def test_other_descriptors_are_refused(activated, tmp_path, kind):
    pair = socket.socketpair()
    made = {"tcp": lambda: socket.create_server(("127.0.0.1", 0)),
            "datagram": lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM), "connected": lambda: pair[0],
            "file": lambda: open(os.devnull)}[kind]()
    server = activated([made, made])
    assert server.wait() == 1
    assert server.said("expected a listening Unix stream socket")
    for each in (made, *pair):
        each.close()


@pytest.mark.parametrize("mode", ["0600", "0660", "0666"])
def test_mode(start, mode):
    server = start(f"--socket-mode={mode}")
    assert stat.S_IMODE(os.stat(server.path).st_mode) == int(mode, 8)


@pytest.mark.parametrize("mode", ["", "9", "0x1ff", "1777", "rw"])
def test_other_modes_are_refused(mode):
    server = raw.Server(f"--socket-mode={mode}", wait=False)
    assert server.wait() == 1
    assert server.said("option socket-mode") and server.said("expected octal digits")
