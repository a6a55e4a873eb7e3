"""Servers, workers, clients and sockets come and go."""
import os
import pathlib
import random
import select
import signal
import socket
import stat
import subprocess
import sys

import numpy as np
import pytest

import raw
from raw import Client, Server, wait_until

SANITIZED = any(word in str(raw.BUILD) for word in ("asan", "tsan", "ubsan"))


def processor_time(pid):
    """Seconds: others on this machine do not count."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_answers_soon_after_its_start(start):
    server = start(wait=False)
    wait_until(lambda: raw.answered(server.path), "it listens")
    client = Client(server.path)
    client.sync()
    took = processor_time(server.pid) + processor_time(server.worker)
    assert SANITIZED or took < 1, f"{took:.3f} s"  # 0.05 on a quiet machine
    assert client.welcome[5]["backend"] == "cpu"
    assert client.welcome[5]["pid"] == server.pid
    assert len(client.welcome[4]) == 16


def test_a_worker_that_takes_long_to_start_is_waited_for(start, tmp_path):
    """arrayd waits for a worker longer than the time for hello. Here it takes until somebody writes into what it loads."""
    library = tmp_path / "libarrayd-cpu.so"
    os.mkfifo(library)
    server = start(f"--backend-path={tmp_path}", "--hello-timeout=0.5", wait=False)
    wait_until(lambda: raw.answered(server.path), "it listens")
    client = Client(server.path, greet=False)
    client.send(raw.hello())
    assert not select.select([client.socket], [], [], 11)[0], client.receive_message()
    assert server.said('event="worker starting"') and not server.said('event="worker ready"')
    with open(library, "wb"):
        pass
    assert client.receive_message()[0] == raw.REQUEST["bye"]
    assert server.wait() == 1
    server.expected_status = 1


def test_socket_is_for_its_user_only(server):
    assert stat.S_IMODE(os.stat(server.path).st_mode) == 0o600


def test_second_start_refuses_and_names_the_first(server):
    second = Server(folder=server.folder, wait=False)
    assert second.wait() == 1
    assert second.said("already running") and second.said(f"process {server.pid}")
    Client(server.path).sync()


def test_two_starts_at_once_leave_one(tmp_path):
    for _ in range(5):
        both = [Server(folder=str(tmp_path), wait=False) for _ in range(2)]
        wait_until(lambda: any(s.process.poll() is not None for s in both), "one has given up")
        wait_until(lambda: any(s.said("event=ready") for s in both), "one is ready")
        loser, winner = sorted(both, key=lambda s: s.process.poll() is None)
        assert loser.wait() == 1
        Client(winner.path).sync()
        assert winner.stop() == 0


def test_a_killed_servers_socket_is_taken_over(start):
    first = start()
    client, worker = Client(first.path), first.worker
    client.sync()
    first.expected_status = -signal.SIGKILL
    first.kill()
    assert os.path.exists(first.path)
    wait_until(lambda: not raw.alive(worker), "the worker has gone")
    with pytest.raises(raw.Closed):
        client.sync()
    second = start(folder=first.folder)
    Client(second.path).sync()


def test_sigterm_is_clean(start):
    server = start()
    client, worker = Client(server.path), server.worker
    x = client.put(np.arange(1000.0))
    assert client.get(x)[999] == 999
    server.process.send_signal(signal.SIGTERM)
    with pytest.raises(raw.Closed) as closed:
        while True:
            client.sync()
    assert closed.value.code in (None, 13)
    assert server.wait() == 0
    assert not os.path.exists(server.path)
    assert not raw.alive(worker)


def test_sigterm_in_the_middle_of_a_flood(start):
    server = start()
    client = Client(server.path)
    x = client.put(np.ones(1 << 20))
    client.socket.settimeout(0.05)
    try:
        for _ in range(100000):
            y = client.ufunc("exp", "float64", [1 << 20], x)
            client.free(y)
    except socket.timeout:
        pass
    server.process.send_signal(signal.SIGTERM)
    assert server.wait() == 0


def test_sighup_reads_the_log_level_again(start, tmp_path):
    path = tmp_path / "arrayd.conf"
    path.write_text("log-level = info\n")
    server = start(f"--config={path}")
    path.write_text("log-level = debug\n")
    server.process.send_signal(signal.SIGHUP)
    wait_until(lambda: server.said("log-level=debug"), "it was read again")
    path.write_text("log-level = loud\n")
    server.process.send_signal(signal.SIGHUP)
    wait_until(lambda: server.said("not reloaded"), "it was refused")
    Client(server.path).sync()


def test_clients_killed_in_a_loop_leave_nothing(start):
    server = start()
    bystander = Client(server.path)
    x = bystander.put(np.arange(64, dtype=np.float32))
    before = bystander.stat()
    fds = raw.descriptors(server.pid), raw.descriptors(server.worker)
    code = ("import sys, numpy as np; sys.path.insert(0, sys.argv[1]); import raw\n"
            "c = raw.Client(sys.argv[2]); x = c.put(np.ones(int(sys.argv[3]), np.float32)); c.sync()\n"
            "print('holding', flush=True)\n"
            "while True:\n  y = c.ufunc('add', 'float32', x[3], x, x); c.free(x); x = y; c.flush()\n")
    rng = random.Random(1)
    for _ in range(8 if SANITIZED else 20):
        size = rng.choice([16, 5000, 8 << 20])
        child = subprocess.Popen([sys.executable, "-c", code, os.path.dirname(raw.__file__), server.path, str(size)],
                                 stdout=subprocess.PIPE)
        assert child.stdout.readline() == b"holding\n"
        for _ in range(rng.randrange(3)):
            np.testing.assert_array_equal(bystander.get(x), np.arange(64, dtype=np.float32))
        child.kill()
        child.wait()
        child.stdout.close()
    # A socket that closes in the middle of something does most of the loop without the price of a process.
    for i in range(180):
        client = Client(server.path)
        client.put(np.ones(rng.choice([1, 1000, 200000])))
        half = raw.frame(raw.message("write", 1, 0), b"12345678")
        client.send(half[:rng.randrange(len(half))])
        client.close()
    wait_until(lambda: bystander.stat("sessions") == 1, "their sessions have ended")
    after = bystander.stat()
    assert after["used_bytes"] == before["used_bytes"]
    assert after["slabs"] <= before["slabs"] + 1
    wait_until(lambda: raw.descriptors(server.pid) <= fds[0] + 1, "the front's descriptors are closed")
    wait_until(lambda: raw.descriptors(server.worker) <= fds[1] + 1, "the worker's descriptors are closed")
    np.testing.assert_array_equal(bystander.get(x), np.arange(64, dtype=np.float32))


def test_a_dead_worker_is_replaced(start):
    server = start()
    for _ in range(4):
        client, worker = Client(server.path), server.worker
        client.put(np.ones(100))
        client.sync()
        os.kill(worker, signal.SIGKILL)
        with pytest.raises(raw.Closed):
            while True:
                client.sync()
        fresh = Client(server.path)
        fresh.sync()
        assert server.worker != worker
        fresh.close()
    wait_until(lambda: raw.descriptors(server.pid) < 40, "no slab of theirs is kept")


def test_a_lost_device_ends_the_worker_only(start):
    server = start(env={"ARRAYD_FAULT": "run:3:lost"})
    client = Client(server.path)
    x = client.put(np.ones(10))
    with pytest.raises(raw.Closed):
        for _ in range(5):
            client.get(client.ufunc("add", "float64", [10], x, x))
    wait_until(lambda: server.said("status=3"), "the worker has left with 3")
    Client(server.path).sync()


def test_principals_have_workers_of_their_own(start):
    server = start("--domains=principal", "--tcp=127.0.0.1:0", "--tcp-open=yes")
    wait_until(lambda: server.said("event=ready"), "ready")
    port = int(next(line for line in server.lines if "event=ready" in line).split("tcp:127.0.0.1:")[1].split()[0].strip('"'))
    local, remote = Client(server.path), Client(("127.0.0.1", port))
    assert local.stat("worker_pid") != remote.stat("worker_pid")
    other = Client(server.path)
    assert local.stat("worker_pid") == other.stat("worker_pid")
    assert remote.stat("sessions") == 1


@pytest.mark.parametrize("address", ["0.0.0.0:7311", "[::]:7311", "192.168.1.1:80", "example.org:80", "127.0.0.1",
                                     "127.0.0.1:99999", ":1"])
def test_tcp_beyond_loopback_is_refused(start, address):
    server = start(f"--tcp={address}", wait=False)
    server.expected_status = 1
    assert server.wait() == 1
    assert server.said("option tcp")


def test_missing_backends_are_errors(start):
    server = start("--backend=cuda", wait=False)
    if server.process.poll() is None:
        wait_until(lambda: server.process.poll() is not None or server.said("event=ready"), "it starts or refuses")
    if server.said("event=ready"):
        pytest.skip("there is a GPU here")
    server.expected_status = 1
    assert server.wait() == 1
    assert server.said("backend cuda: ")


def test_trace_prints_messages(start):
    server = start(env={"AD_TRACE": "1"})
    client = Client(server.path)
    x = client.put(np.ones(16, np.float32))
    client.get(client.ufunc("add", "float32", [16], x, x))
    wait_until(lambda: server.said("-> reply"), "the reply is printed")
    assert any("<- ufunc add" in line for line in server.lines), server.lines


def test_help_and_version():
    text = subprocess.run([raw.PROGRAM, "--help"], capture_output=True, text=True, check=True).stdout
    for name in ("socket", "backend", "output-timeout", "config"):
        assert f"--{name}=" in text
    assert "arrayd" in subprocess.run([raw.PROGRAM, "--version"], capture_output=True, text=True, check=True).stdout
    wrong = subprocess.run([raw.PROGRAM, "--slab=x"], capture_output=True, text=True)
    assert wrong.returncode == 2 and "option slab" in wrong.stderr


# ---- embedded ----

def embedded(*options):
    ours, theirs = socket.socketpair()
    process = subprocess.Popen([raw.PROGRAM, f"--embedded-fd={theirs.fileno()}", "--backend=cpu", *options],
                               pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    theirs.close()
    ours.settimeout(raw.WINDOW)
    return ours, process


def test_embedded_serves_one_connection_and_leaves_with_it():
    ours, process = embedded()
    client = Client(ours)
    assert client.get(client.put(np.arange(5))).sum() == 10
    client.close()
    assert process.wait(raw.WINDOW) == 0
    assert process.stderr.read() == b""


FAILURES = {"--backend-path=/no/such/folder": "libarrayd-cpu.so is not there",
            "--worker=/no/such/program": "cannot start /no/such/program"}


@pytest.mark.parametrize("option, when", [(option, when) for option in FAILURES for when in ("before", "while", "after")
                                          if (option, when) != ("--worker=/no/such/program", "after")])  # it waits
def test_embedded_says_why_it_cannot(option, when):
    """An embedded server says why, also where its client says hello after it gave up, as a client does that gets no
    processor for long."""
    ours, theirs = socket.socketpair()
    ours.settimeout(raw.WINDOW)
    if when == "before":
        ours.sendall(raw.hello())
    with theirs:
        process = subprocess.Popen([raw.PROGRAM, f"--embedded-fd={theirs.fileno()}", "--backend=cpu", option],
                                   pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if when == "after":
        assert process.wait(raw.WINDOW) == 1
    client = Client(ours, greet=False)
    if when != "before":
        client.send(raw.hello())
    code, text = client.receive_message()[1:]
    assert raw.ERROR[code] == "connection" and FAILURES[option] in text
    assert process.wait(raw.WINDOW) == 1
    client.close()


def test_who_has_not_said_hello_is_told_that_the_server_stops(start):
    server = start()
    client = Client(server.path, greet=False)
    Client(server.path).close()  # connections are accepted in order, so the other one has been
    assert server.stop() == 0
    client.send(raw.hello())
    assert "shutting down" in client.receive_message()[2]


def test_embedded_leaves_with_its_parent(tmp_path):
    code = ("import socket, subprocess, sys, os, time; sys.path.insert(0, sys.argv[1]); import raw, test_life\n"
            "s, p = test_life.embedded(); c = raw.Client(s); c.sync()\n"
            "if os.fork() == 0:\n  os.close(1); time.sleep(60)\n"  # a child that keeps the connection open
            "print(p.pid, flush=True); time.sleep(60)\n")
    parent = subprocess.Popen([sys.executable, "-c", code, os.path.dirname(raw.__file__)], stdout=subprocess.PIPE,
                              start_new_session=True)
    pid = int(parent.stdout.readline())
    worker = raw.children(pid)[0]
    parent.kill()
    parent.wait()
    parent.stdout.close()
    wait_until(lambda: not raw.alive(pid) and not raw.alive(worker), "the server has gone")
    os.killpg(parent.pid, signal.SIGKILL)


def test_programs_find_each_other_when_installed(tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "lib/arrayd").mkdir(parents=True)
    for name, folder in (("arrayd", "bin"), ("arrayd-worker", "lib/arrayd"), ("libarrayd-cpu.so", "lib/arrayd")):
        target = tmp_path / folder / name
        target.write_bytes((pathlib.Path(raw.BUILD) / "bin" / name).read_bytes())
        target.chmod(0o755)
    program, raw.PROGRAM = raw.PROGRAM, tmp_path / "bin/arrayd"
    try:
        with Server() as server:
            Client(server.path).sync()
    finally:
        raw.PROGRAM = program
