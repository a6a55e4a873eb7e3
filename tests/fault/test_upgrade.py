"""An upgrade: the front executes the program anew that it was started as, and all sessions go on there, in the same
process, with new workers. Unlike a kill it costs nobody an array, whatever was being changed.

ARRAYD_UPGRADES=500 makes the long test as long as that.
"""
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading

import numpy as np
import pytest

import raw
from raw import Client, Closed, Failed, message, wait_until
from returning import Session, count_to_a_thousand, tcp_of
from observing import CTL, get, metrics, see
from test_recovery import (HERE, LATE, OPEN, answers_come_once, comes_back, export, kill,
                           leave_behind, through_windows, window)
from test_recovery_modules import PLAIN, VARIABLES, build, doubled, launch
from test_resume import program
from upgrading import VERSION, refusal, times, upgrade


@pytest.fixture(params=["", "late"])
def server(request, start):
    return start(*OPEN, env=LATE if request.param else {})


@pytest.mark.parametrize("way", ["unix", "tcp"])
def test_sessions_go_on(server, way):
    session = Session(server.path if way == "unix" else tcp_of(server))
    values = [np.arange(n, dtype=d) for n in (0, 1, 70_000, 1_300_000) for d in ("int64", "float32", "complex128")]
    arrays = [session.put(v) for v in values]
    bad = session.ufunc("add", "float64", [3], [999, 13, 0, [3]], [999, 13, 0, [3]])
    session.op("free", [1234])  # no array carries that
    session.flush()
    before = session.stat()
    for i in range(3):
        done = upgrade(server)
        assert done["sessions"] == 1 and done["lost"] == 0 and done["upgraded"] == done["from"] == VERSION
        session.come_back()
        if i == 0:
            with pytest.raises(Failed, match="free: there is no buffer 1234"):
                session.sync()
        for array, value in zip(arrays, values):
            assert np.array_equal(session.get(array), value)
        with pytest.raises(Failed, match="no buffer 999"):
            session.get(bad)
        after = session.stat()
        for name in ("buffers", "buffer_bytes"):
            assert after[name] == before[name], name
    session.free(*arrays, bad)
    session.sync()
    assert session.stat("used_bytes") == 0


def test_what_is_changed_in_place_is_not_lost(server):
    """Wherever among a thousand operations the worker has to leave."""
    rng = random.Random(1)
    for _ in range(15):
        session = Session(server.path)
        x = session.put(np.zeros(100_000, np.int64))
        session.sync()
        count_to_a_thousand(session, x, rng)
        session.flush()
        upgrade(server)
        session.come_back()
        assert (session.get(x) == 1000).all()
        session.close()


def test_answers_on_their_way_come_once(server):
    sizes = (3, 3000, 300_000, 6_000_000)
    answers_come_once(server, Session(tcp_of(server)), sizes, (100, 100_000, 10_000_000), upgrade)


def test_frames_that_come_in_parts(server):
    """There are more upgrades than checkpoints that may kill workers, and none counts as a death."""
    session = Session(server.path)
    x = session.put(np.zeros(1000, np.int64))
    session.sync()
    values = np.arange(1000)
    data = raw.frame(message("write", x[0], 0), values.tobytes())
    session.operations += 1
    session.some(data, 1000)
    for _ in range(12):
        upgrade(server)
        session.come_back()
    assert np.array_equal(session.get(x), values)


@raw.cpu_only  # the export is a memory file
def test_windows_names_capabilities_and_exports(server):
    one, other = Session(server.path), Session(server.path)
    size = 1 << 16
    x = one.put(np.arange(size // 8))
    fds = [window(one, n, size) for n in (1, 2)]
    (a, b, number), _ = one.reply(one.ask("share", x[0], 2, 0, 60_000))
    one.reply(one.ask("publish", x, 0, "good", "*"))
    z = leave_behind(server, np.full(500, 7), "left")
    wait_until(lambda: one.stat("sessions") == 2, "it has gone")
    y = one.put(np.arange(1000))
    memory, lease = export(one, y)
    for i in range(3):
        upgrade(server)
        one.come_back()
        other.come_back()
        through_windows(one, one.put(np.zeros(size // 8, np.int64)), (2, fds[1]), (1, fds[0]), i)
        for name, values, like in (("good", np.arange(size // 8), x), ("left", np.full(500, 7), z)):
            buffer = other.fresh()
            other.reply(other.ask("attach_name", buffer, "", name))
            assert np.array_equal(other.get([buffer, *like[1:]]), values)
        os.pwrite(memory, (i + 5).to_bytes(8, "little"), 0)
        assert one.get(y)[:2].tolist() == [i + 5, 1]
    buffer = other.fresh()
    assert other.reply(other.ask("attach", buffer, a % 2**64, b % 2**64))[0][2] == 0
    assert np.array_equal(other.get([buffer, *x[1:]]), np.arange(size // 8))
    # A process with an exported array keeps its memory, but not the lease, as with a worker's death.
    assert lease.recv(1) == b"" and one.stat("exports") == 0
    assert see(server)["arrayd"]["sessions"] == 2


class Steady:
    """A program that computes all the while (steady.py)."""

    def __init__(self, url, seed, most=300_000, **environment):
        self.process = subprocess.Popen([sys.executable, str(HERE / "steady.py"), url, str(seed), str(most)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env={**os.environ, **environment})
        raw.RUNNING.append(self.process)
        line = self.process.stdout.readline()
        assert line == "begun\n", self.process.stderr.read()

    def check(self):
        """Fail with what the program says, if it has ended."""
        assert self.process.poll() is None, self.process.communicate()[1]
        return True

    def end(self):
        out, errors = self.process.communicate(timeout=raw.WINDOW)
        assert self.process.returncode == 0, errors
        return json.loads(out)


READS_FIRST = """
import sys, arrayd as ad
x = ad.zeros(1 << 18, "int64")
for round in range(6):
    ad.sync()
    print("ready", flush=True)
    sys.stdin.readline()
    assert int(x[0]) == 50 * round
    for i in range(50):
        x[i:] += 1
    with ad.cuda.Stream():
        total = x.sum()
    assert int(total) == (round + 1) * 50 * x.size - 49 * 25, round
    for i in range(1, 50):
        x[:i] += 1
"""


def test_a_second_stream_sees_what_came_after_a_read(start):
    """A read is the first that the new worker does, so that nothing comes before it on the session's stream."""
    server = start(env=LATE)
    reader = program(READS_FIRST, f"unix:{server.path}", stdin=subprocess.PIPE)
    for _ in range(6):
        assert reader.stdout.readline() == "ready\n", reader.communicate()[1]
        upgrade(server)
        reader.stdin.write("\n")
        reader.stdin.flush()
    _, err = reader.communicate()
    assert reader.returncode == 0, err


@pytest.mark.parametrize("late", [False, True])
def test_many_under_load(start, place, late):
    """Programs over each kind of connection compute beside NumPy all the while: nothing is lost, and no session ends."""
    from places import port_of
    count = int(os.environ.get("ARRAYD_UPGRADES", 50))
    server = start(*OPEN, *place.options("tls"), env=LATE if late else {})
    urls = [f"unix:{server.path}", "tcp:127.0.0.1:%d" % port_of(server, "tcp"), "tls:127.0.0.1:%d" % port_of(server, "tls")]
    secrets = {"ARRAYD_TOKEN": place.token["alice"], "ARRAYD_CA": str(place.authority.ca)}
    before = raw.descriptors(server.pid)
    programs = [Steady(url, seed, **secrets if url.startswith("tls") else {}) for seed, url in enumerate(urls)]
    quiet = Session(server.path)
    values = np.random.default_rng(1).integers(0, 1000, 100_000)
    array = quiet.put(values)
    quiet.sync()
    pauses = []
    for i in range(count):
        done = upgrade(server)
        assert done["sessions"] == 4 and done["lost"] == 0, done
        pauses.append(done["seconds"])
        if i % 10 == 0:
            quiet.come_back()
            assert np.array_equal(quiet.get(array), values)
        wait_until(lambda: {s["state"] for s in see(server)["sessions"]} <= {"active", "waiting"}, "they are there")
    results = [program.end() for program in programs]
    print(f"pause: median {sorted(pauses)[count // 2]:.3f} s, most {max(pauses):.3f} s; clients:", results)
    for result in results:
        assert result["resumes"] == 1 and result["compared"] > 50, results  # as this worker knows
    assert times(server, "session resumed") > count
    wait_until(lambda: times(server, "event=upgraded") == count, "all are logged")
    assert not server.said("session lost")
    for line in server.lines:
        assert "level=error" not in line, line
    wait_until(lambda: see(server)["arrayd"]["sessions"] == 1, "the programs' sessions are over")
    quiet.come_back()
    assert np.array_equal(quiet.get(array), values)
    upgrade(server)  # slabs that were kept for others go
    wait_until(lambda: raw.descriptors(server.pid) <= before + 6, "nothing else is kept")  # a session, its worker


def test_who_connects_meanwhile_waits(start):
    """Nobody who comes at the wrong moment is told to go away, nor a client that has come and says hello later."""
    server = start(*OPEN)
    over, problems, came = threading.Event(), [], [0]

    def connect_again_and_again(address):
        while not over.is_set():
            try:
                client = Client(address)
            except Exception as error:
                problems.append(error)
                return
            try:
                assert client.get(client.put(np.arange(5))).tolist() == list(range(5))
            except Closed:  # it has been let in, and is ended: raw clients cannot come back
                pass
            came[0] += 1
            client.close()

    early = [Client(address, greet=False) for address in (server.path, tcp_of(server))]
    threads = [threading.Thread(target=connect_again_and_again, args=[a]) for a in (server.path, tcp_of(server))]
    for thread in threads:
        thread.start()
    for _ in range(20):
        upgrade(server, "--force")
    over.set()
    for thread in threads:
        thread.join(raw.WINDOW)
    assert not problems and came[0] > 20
    for client in early:
        client.send(raw.hello())
        assert client.receive_message()[0] == raw.REQUEST["welcome"]
        client.sync()


# ---- what is new ----

def changed_version(folder, version):
    """Make this program say that it is of another version, with what it needs beside it."""
    folder.mkdir()
    for file in raw.PROGRAM.parent.iterdir():
        (folder / file.name).symlink_to(file)
    new = folder / "arrayd"
    new.unlink()
    data = raw.PROGRAM.read_bytes()
    assert len(version) == len(VERSION) and data.count(VERSION.encode() + b"\0")
    new.write_bytes(data.replace(VERSION.encode() + b"\0", version.encode() + b"\0"))
    new.chmod(0o755)
    return new


def test_another_version(start, installed, tmp_path):
    server = start(program=installed.path)
    session = Session(server.path)
    x = session.put(np.arange(9))
    session.sync()
    new = "9" + VERSION[1:]
    installed.put(changed_version(tmp_path / "new", new))
    assert see(server)["arrayd"]["version"] == VERSION
    began = see(server)["arrayd"]
    done = upgrade(server)
    assert (done["from"], done["upgraded"]) == (VERSION, new)
    after = see(server)["arrayd"]
    assert after["version"] == new and after["uptime_seconds"] > began["uptime_seconds"]
    assert after["sessions_begun"] == began["sessions_begun"]
    assert Client(server.path).welcome[5]["server"] == f"arrayd {new}"
    assert os.readlink(f"/proc/{server.worker}/exe") == os.path.realpath(raw.PROGRAM.parent / "arrayd-worker")
    session.come_back()
    assert session.get(x).tolist() == list(range(9))
    installed.put(raw.PROGRAM)
    assert (upgrade(server)["upgraded"]) == VERSION  # the second upgrade goes back to the first version
    session.come_back()
    assert session.get(x).tolist() == list(range(9))


@pytest.mark.parametrize("name", ["found", "relative", "another"])
def test_by_whatever_name_it_was_started(start, installed, monkeypatch, name):
    """Found in $PATH, from a folder, or called as what it is not: then it is looked for where it really was."""
    monkeypatch.chdir(installed.path.parent.parent)
    path = {"PATH": f"/nowhere:{installed.path.parent}:{os.environ['PATH']}"}
    program = {"found": "arrayd", "relative": "./installed/arrayd", "another": installed.path}[name]
    if name == "another":
        installed.script('exec -a sh "$REAL" "$@"')
        installed.path.write_text(installed.path.read_text().replace("/bin/sh", "/bin/bash"))
    server = start(program=program, env=path)
    installed.script("echo not this one")
    if name == "another":
        assert upgrade(server)["upgraded"] == VERSION
    else:
        assert "not this one" in refusal(server)


def test_by_signal(start):
    server = start()
    session = Session(server.path)
    x = session.put(np.arange(9))
    session.sync()
    for n in (1, 2):
        os.kill(server.pid, signal.SIGUSR2)
        wait_until(lambda: times(server, "event=upgraded") == n, "it is upgraded")
        session.come_back()
        assert session.get(x).tolist() == list(range(9))


def test_the_configuration_is_read_anew(start, tmp_path, place):
    """Addresses that stay are the same sockets; others are closed, and new ones opened."""
    file = tmp_path / "conf"
    file.write_text("tcp = 127.0.0.1:0\ntcp-open = yes\nmetrics = 127.0.0.1:0\nsocket-mode = 0600\n")
    server = start(f"--config={file}")
    session = Session(server.path)
    tcp, http = tcp_of(server), get(server, "/metrics")
    session.sync()
    file.write_text(f"tcp = 127.0.0.1:0\ntcp-open = yes\nmetrics = 127.0.0.1:0\nsocket-mode = 0660\n"
                    f"control = {tmp_path}/other.ctl\n")
    upgrade_by(server, server.path + ".ctl")
    assert os.stat(server.path).st_mode & 0o777 == 0o660 and not os.path.exists(server.path + ".ctl")
    Client(tcp).sync()
    assert get(server, "/metrics")[0] == http[0] == 200
    assert metrics(server)[("arrayd_sessions_begun_total", ())] == 2
    file.write_text("tcp = [::1]:0\ntcp-open = yes\n")
    upgrade_by(server, f"{tmp_path}/other.ctl")
    with pytest.raises(ConnectionRefusedError):
        raw.connect(tcp)
    with pytest.raises(ConnectionRefusedError):
        get(server, "/metrics")
    session.come_back()
    session.sync()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        file.write_text("tcp = {0}\ntcp-open = yes\nmetrics = {0}\n".format("127.0.0.1:%d" % taken.getsockname()[1]))
        upgrade(server)
    wait_until(lambda: times(server, 'event="cannot listen"') == 2, "both are logged")
    session.come_back()
    session.sync()


def upgrade_by(server, control):
    assert subprocess.run([CTL, "upgrade", f"--control={control}"], timeout=raw.WINDOW).returncode == 0


# ---- what cannot go over ----

@pytest.mark.parametrize("why", ["survive", "resume-time", "client"])
def test_sessions_that_cannot_go_over(start, why):
    options = {"survive": ["--survive=no"], "resume-time": ["--resume-time=0"], "client": []}[why]
    server = start(*OPEN, *options)
    stays = [Session(server.path) for _ in range(2)] if why != "client" else [Client(tcp_of(server)), Client(server.path)]
    arrays = [s.put(np.arange(9)) for s in stays]
    for s in stays:
        s.sync()
    assert "2 sessions cannot go over" in refusal(server)
    for s, x in zip(stays, arrays):
        assert s.get(x).tolist() == list(range(9))
    done = upgrade(server, "--force")
    assert done["sessions"] == 0 and done["lost"] == 2
    for s in stays:
        with pytest.raises(Closed, match="being upgraded, and this session cannot go over"):
            s.sync()
    fresh = Client(server.path)
    assert fresh.get(fresh.put(np.arange(9))).tolist() == list(range(9))
    assert see(server)["arrayd"]["sessions"] == 1


def test_some_go_over_and_some_do_not(server):
    session, other = Session(server.path), Client(server.path)
    x = session.put(np.arange(9))
    session.sync()
    other.sync()
    assert "1 sessions cannot go over" in refusal(server)
    done = upgrade(server, "--force")
    assert (done["sessions"], done["lost"]) == (1, 1)
    session.come_back()
    assert session.get(x).tolist() == list(range(9))


def test_kernels_are_built_again(server):
    """Kernels are built again when they are launched. The variables of modules are gone."""
    session = Session(server.path)
    build(session, 1, PLAIN, ["-DADDED=7"])
    build(session, 2, VARIABLES)
    x = session.put(np.arange(3))
    doubled(session, 1)
    launch(session, 2, "next", [x], block=1)
    session.sync()
    upgrade(server)
    session.come_back()
    doubled(session, 1)
    launch(session, 2, "look", [x])
    with pytest.raises(Failed, match="variables"):
        session.get(x)


# ---- workers that do not do as they should ----

def test_a_worker_that_does_not_leave(server):
    """The worker is killed, and the next one goes on with what is left."""
    session = Session(server.path)
    x = session.put(np.arange(9))
    session.sync()
    worker = server.worker
    os.kill(worker, signal.SIGSTOP)
    assert "does not say what would be lost" in refusal(server)
    assert raw.alive(worker)
    done = upgrade(server, "--force")
    assert done["sessions"] == 1 and done["leaving_seconds"] >= 5 and not raw.alive(worker)
    session.come_back()
    assert session.get(x).tolist() == list(range(9))


def test_workers_that_are_killed_meanwhile(server):
    """The old worker is killed while it leaves, or the new one while it takes over, at any moment."""
    session = Session(server.path)
    values = np.arange(50_000)
    x = session.put(values)
    session.sync()
    rng, pause = random.Random(5), threading.Event()

    def kill_some():
        for _ in range(rng.randrange(1, 4)):
            pause.wait(rng.random() * 0.08)
            for pid in raw.children(server.pid):
                try:
                    with open(f"/proc/{pid}/cmdline") as f:
                        if "--channel-fd" in f.read():  # not the one that says whether it could take over
                            os.kill(pid, signal.SIGKILL)
                except OSError:
                    pass

    for _ in range(20):
        killer = threading.Thread(target=kill_some)
        killer.start()
        done = upgrade(server, "--force")
        assert done["sessions"] == 1 and done["lost"] == 0
        killer.join()
    wait_until(lambda: comes_back(session), "it can be taken up again")
    assert np.array_equal(session.get(x), values)
    kill(server)
    session.come_back()
    upgrade(server)
    session.come_back()
    assert np.array_equal(session.get(x), values)


@pytest.mark.parametrize("again", [False, True])
def test_new_workers_that_cannot_start(start, installed, tmp_path, again):
    """Sessions wait until one does; or until there is another upgrade, which need not wait for this one."""
    server = start(program=installed.path)
    session = Session(server.path)
    x = session.put(np.arange(9))
    session.sync()
    worker = tmp_path / "worker"
    asked = tmp_path / "asked"
    worker.write_text(f'#!/bin/sh\ncase "$1" in --can-take-over=*) echo >>{asked}; exit 0;; esac\n'
                      f'test $(wc -l <{asked}) = 2 && exec {raw.PROGRAM.parent}/arrayd-worker "$@"\n')
    worker.chmod(0o755)
    installed.script(f'case "$1" in --*take-over=*) o="$1"; shift;; esac; exec -a {installed.path} $REAL $o '
                     f'--worker={worker} "$@"')
    installed.path.write_text(installed.path.read_text().replace("/bin/sh", "/bin/bash"))
    first = subprocess.Popen([CTL, "upgrade", f"--socket={server.path}"], stderr=subprocess.PIPE, text=True)
    wait_until(lambda: times(server, "event=\"worker exited\"") > 2, "a new worker does not start")
    assert server.process.poll() is None and first.poll() is None
    if again:
        assert upgrade(server)["sessions"] == 1
    else:
        asked.write_text("\n\n")
    wait_until(lambda: server.said("event=upgraded"), "a worker is there")
    _, errors = first.communicate(timeout=raw.WINDOW)
    assert first.returncode == again and ("another upgrade has begun" in errors) == again
    session.come_back()
    assert session.get(x).tolist() == list(range(9))


def test_a_service_managers_sockets(tmp_path):
    from test_activation import LAUNCHER, listening
    path = str(tmp_path / "s")
    with listening(path) as s:
        process = subprocess.Popen([sys.executable, "-c", LAUNCHER, str(s.fileno()), "0", str(raw.PROGRAM),
                                    "--backend=cpu", "--kernels-cache=none", f"--control={path}.ctl"],
                                   pass_fds=[s.fileno()], stderr=subprocess.DEVNULL)
        raw.RUNNING.append(process)
        session = Session(path)
    x = session.put(np.arange(9))
    session.sync()
    for _ in range(3):
        assert subprocess.run([CTL, "upgrade", f"--socket={path}"], timeout=raw.WINDOW).returncode == 0
        session.come_back()
        assert session.get(x).tolist() == list(range(9))
    session.close()
    process.send_signal(signal.SIGTERM)
    assert process.wait(raw.WINDOW) == 0 and os.path.exists(path)


def test_what_is_handed_over_does_not_hold_together(tmp_path):
    """A record of somebody else's making starts nothing."""
    rng = random.Random(3)
    for size in (0, 1, 16, 4000):
        fd = os.memfd_create("record")
        os.write(fd, rng.randbytes(size))
        done = subprocess.run([raw.PROGRAM, f"--take-over={fd}", f"--socket={tmp_path}/s", "--backend=cpu"], pass_fds=[fd],
                              capture_output=True, text=True, timeout=raw.WINDOW)
        os.close(fd)
        assert done.returncode == 1 and "cannot start" in done.stderr, done
    done = subprocess.run([raw.PROGRAM, "--take-over=x", f"--socket={tmp_path}/s"], capture_output=True, text=True,
                          timeout=raw.WINDOW)
    assert done.returncode == 1 and "nothing to take over" in done.stderr
