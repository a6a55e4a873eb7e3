"""An administrator's view: arrayctl, its socket, metrics, health. Figures are compared with what clients count
themselves, and read by Prometheus' own parser."""
import fcntl
import json
import os
import pty
import re
import select
import signal
import socket
import stat
import struct
import subprocess
import termios

import numpy as np
import pytest

import raw
from places import memory_of, port_of
from raw import Client, Closed, wait_until
from observing import (BAD, CTL, METRICS, MOVING, NO_SERVER, USAGE, GOOD, clean, connect_control, ctl, get, metric_rows, metrics,
                    read_all, see, session_of, work)


# ---- figures ----

def test_figures_agree_with_what_clients_count(start):
    server = start(METRICS)
    clients = [Client(server.path), Client(server.path)]
    work(clients[0], 1000, 3)
    work(clients[1], 5000, 7)
    with pytest.raises(raw.Failed):
        clients[1].get([999, raw.DTYPES.index("float64"), 0, [1]])
    own = [c.stat() for c in clients]
    assert [o["buffer_bytes"] for o in own] == [4 * 8000, 8 * 40000]
    seen = see(server)
    assert len(seen["sessions"]) == 2
    for client, counted in zip(clients, own):
        session = next(s for s in seen["sessions"] if s["session"] == str(client.welcome[3]))
        assert session["principal"] == f"uid:{os.getuid()}" and session["state"] == "active"
        assert f" {os.getpid()})" in session["client"]
        assert session["counters"]["requests"] == counted["requests"] + 1
        for name in session["counters"].keys() - MOVING:
            assert session["counters"][name] == counted[name], name
    worker, = seen["workers"]
    assert worker["state"] == "ready" and worker["pid"] == server.worker
    for name in worker["counters"].keys() - {"sessions"}:
        assert worker["counters"][name] == own[1][name], name
    assert worker["devices"][0]["used_bytes"] == own[1]["used_bytes"]
    assert worker["devices"][0]["reserved_multiprocessors"] == 0
    assert worker["kept_slab_bytes"] == worker["devices"][0]["slab_bytes"] == own[1]["slab_bytes"]

    told, domain = metrics(server), worker["domain"]
    for counter, scope, _, name, scale in metric_rows():
        if not name or counter in MOVING:
            continue
        labels = [("domain", domain)] + ([("principal", f"uid:{os.getuid()}")] if scope == "SESSION" else [])
        want = sum(o[counter] for o in own) if scope == "SESSION" else own[1][counter]
        assert told[f"arrayd_{name}", tuple(labels)] == pytest.approx(want * float(scale)), name
    assert told["arrayd_sessions", (("domain", domain), ("principal", f"uid:{os.getuid()}"))] == 2


def test_what_processes_cost(start):
    server = start(METRICS)
    client = Client(server.path)
    work(client, 1 << 20, 3)
    told, seen = metrics(server), see(server)
    for pid, process, domain, object_ in ((server.pid, "front", "", seen["arrayd"]),
                                          (server.worker, "worker", seen["workers"][0]["domain"], seen["workers"][0])):
        labels = ("domain", domain), ("process", process)
        assert memory_of(pid) / 2 < told["arrayd_process_resident_bytes", labels] < memory_of(pid) * 2
        assert abs(told["arrayd_process_descriptors", labels] - raw.descriptors(pid)) <= 3
        with open(f"/proc/{pid}/stat") as f:
            user, system = f.read().rsplit(")")[1].split()[11:13]
        used = (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
        assert used - 2 <= told["arrayd_process_cpu_seconds_total", labels] <= object_["cpu_seconds"] <= used
        assert object_["resident_bytes"] > 1 << 20 and object_["descriptors"] > 5


def test_every_counter_has_its_row():
    """A counter that is added says in its row how it is shown."""
    rows = metric_rows()
    assert sorted(r[0] for r in rows) == sorted(raw.COUNTER)
    names = [r[3] for r in rows if r[3]]
    assert len(set(names)) == len(names)
    for counter, _, kind, name, _ in rows:
        assert name.endswith("_total") == (kind == "COUNTER") or not name, name
        assert not name or "bytes" not in counter or "bytes" in name, name
        assert not name or not counter.endswith("_us") or "seconds" in name, name


def test_the_dashboard_shows_what_there_is(start):
    """A server that has a session tells each metric that deploy/grafana.json names."""
    file = raw.TOP / "deploy" / "grafana.json"
    if not file.exists():
        pytest.skip("deploy is not here")
    server = start(METRICS)
    work(Client(server.path), 10, 1)
    there = {name for name, _ in metrics(server)}
    panels = json.loads(file.read_text())["panels"]
    expressions = [target["expr"] for panel in panels for target in panel["targets"]]
    assert len(panels) > 10 and len({panel["id"] for panel in panels}) == len(panels)
    named = {name for e in expressions for name in re.findall(r"\barrayd_\w+", e)}
    assert named <= there, named - there
    for e in expressions:
        assert e.count("(") == e.count(")") and all(re.search(r"(rate|increase)\(" + name, e) for name in re.findall(
            r"\barrayd_\w+_total", e)), e


def test_a_session_that_waits_for_its_client_is_seen(start):
    server = start("--tcp=127.0.0.1:0", "--tcp-open=yes", "--resume-time=1")
    client = Client(("127.0.0.1", port_of(server, "tcp")), greet=False)
    client.send(raw.frame(raw.message("hello", 1, 1, raw.FEATURE_RESUME, "raw", {})))
    name = str(client.receive_message()[3])

    def states():
        return {s["session"]: s["state"] for s in see(server, "sessions")}

    wait_until(lambda: states() == {name: "active"}, "it is there")
    client.close()
    wait_until(lambda: "waiting" in states().values(), "it waits for its client")
    wait_until(lambda: not states(), "it has waited for long enough")


def test_sessions_that_are_over_stay_counted(start):
    server = start(METRICS)
    client = Client(server.path)
    work(client, 100, 5)
    done = client.stat("ops_done")
    client.close()
    wait_until(lambda: not see(server)["sessions"], "the session is over")
    told = {name: value for (name, labels), value in metrics(server).items() if ("domain" in dict(labels))}
    assert told["arrayd_operations_total"] == done
    assert told["arrayd_sessions"] == told["arrayd_buffers"] == told["arrayd_used_bytes"] == 0
    assert told["arrayd_sessions_ended_total"] == 1
    again = Client(server.path)
    work(again, 100, 5)
    assert dict((k[0], v) for k, v in metrics(server).items())["arrayd_operations_total"] == 2 * done


def test_forked_sessions_and_names_are_seen(start):
    server = start(METRICS)
    client = Client(server.path)
    x = client.put(np.ones((3, 4)))
    client.reply(client.ask("publish", x, 0, "a/name", "*"))
    name, = see(server, "names")
    assert {k: name[k] for k in ("name", "dtype", "shape", "bytes", "writable")} == {
        "name": "a/name", "dtype": "float64", "shape": [3, 4], "bytes": 96, "writable": False}
    assert "a/name" in ctl(server, "names") and "[3,4]" in ctl(server, "names")
    assert see(server)["names"] == [name]
    child = Client(client.fork(), greet=False)
    client.sync()
    wait_until(lambda: len(see(server)["sessions"]) == 2, "the forked session has begun")
    forked, = (s for s in see(server)["sessions"] if s["forked"])
    assert forked["session"] == f"{client.welcome[3]}.1" and forked["counters"]["buffers"] == 1
    ctl(server, "kill", forked["session"])
    child.receive()  # its welcome
    messages, _, _ = child.receive()
    assert messages[0][0] == raw.REQUEST["bye"] and "ended by an administrator" in messages[0][2]
    client.sync()


# ---- tables ----

def test_tables(start):
    server = start()
    client = Client(server.path)
    work(client, 1 << 17, 3)
    name = str(client.welcome[3])
    text = ctl(server, "status")
    assert "1 session, 1 begun" in text and f"{server.worker}" in text and "ready" in text
    line = next(line for line in ctl(server, "sessions").splitlines() if line.startswith(name))
    assert "4.0 MiB" in line and f"uid:{os.getuid()}" in line
    assert "4.0 MiB" in ctl(server, "memory")
    assert ctl(server, "health").endswith("healthy\n")
    top = ctl(server, "top", "--count=2", "--interval=0.05")
    assert top.count("SESSION") == 2 and "4.0 MiB in arrays" in top


def occupy(client):
    """An operation that takes days: a sum over a view without memory behind it."""
    x = client.put(np.ones(1))
    client.sum("float64", [x[0], x[1], 0, [1 << 22, 1 << 22], [0, 0]])
    client.flush()


def test_what_takes_long_and_since_when(start):
    server = start(METRICS, "--threads=1")
    client = Client(server.path)
    occupy(client)
    wait_until(lambda: see(server)["sessions"][0]["executing"] == "sum", "it is executed")
    first = see(server)["sessions"][0]["executing_seconds"]
    wait_until(lambda: see(server)["sessions"][0]["executing_seconds"] > first, "its time passes")
    one = see(server)["sessions"][0]
    assert one["idle_seconds"] == 0 and one["counters"]["device_us"] / 1e6 >= first, "it counts before it is over"
    text = ctl(server, "top", "--count=1", "--interval=0.05")
    assert 0 < int(re.search(r"\ndevice (\d+) % busy, most with", text)[1]) <= 100
    assert re.search(rf"longest: sum of session {client.welcome[3]}, for [\d.]+ s", text) and " sum for " in text
    assert "\033" not in text, "colours are for terminals"
    client.close()
    wait_until(lambda: all(one["state"] != "active" for one in see(server)["sessions"]), "its client has gone")


class Terminal:
    """arrayctl top on a terminal of so many characters and lines."""

    def __init__(self, server, columns, lines=40):
        self.ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.before = termios.tcgetattr(theirs)
        self.process = subprocess.Popen([CTL, "top", "--interval=0.05", f"--socket={server.path}"], stdin=theirs,
                                        stdout=theirs, stderr=theirs, env=clean())
        self.theirs, self.text = theirs, ""

    def until(self, pattern):
        """Read until the last views have it."""
        while not (found := re.search(pattern, self.text[-20000:])):
            assert select.select([self.ours], [], [], raw.WINDOW)[0], self.text[-2000:]
            self.text += os.read(self.ours, 65536).decode()
        self.text = ""
        return found

    def type(self, keys):
        os.write(self.ours, keys.encode())

    def leave(self):
        self.type("q")
        while self.process.poll() is None:
            if select.select([self.ours], [], [], 0.05)[0]:
                os.read(self.ours, 65536)
        assert self.process.returncode == 0 and termios.tcgetattr(self.theirs) == self.before, "the terminal is as it was"
        os.close(self.ours)
        os.close(self.theirs)


def test_top_on_a_terminal(start):
    """Keys change the order and end a session; principals have colours."""
    server = start()
    victim, stays = Client(server.path), Client(server.path)
    work(stays, 100, 1)
    top = Terminal(server, 200)
    top.until(rf"\x1b\[\d+m{victim.welcome[3]} [^\n]*\x1b\[0m[^\0]*by device time; keys")
    for order in ("memory", "operations", "principal", "device time"):
        top.type("s")
        top.until(f"by {order}; keys")
    top.type("k")
    top.until("end session: ")
    top.type(f"{victim.welcome[3]}\n")
    top.until(r"1 session,")
    with pytest.raises(Closed, match="ended by an administrator: by arrayctl top"):
        victim.sync()
    stays.sync()
    top.leave()


def test_top_on_a_narrow_terminal(start):
    server = start()
    client = Client(server.path)
    work(client, 100, 1)
    top = Terminal(server, 40)
    view = top.until(r"\x1b\[J([^\x1b]*\n)(SESSION[^\0]*?q leave\r\n)")
    above, table = (re.sub(r"\x1b\[\d+m|\r", "", part).split("\n") for part in view.groups())
    assert table[0].startswith("SESSION") and all(len(line) <= 40 for line in above + table), (above, table)
    assert re.match(r"arrayd \S+ process \d+: 1 session, \d+ operations a second, \S+ \S+ in arrays device \d+ % busy",
                    " ".join(above)), "lines end between words"
    top.leave()
    client.close()


def test_top_on_a_terminal_with_few_lines(start):
    """Sessions that do not fit are counted, so that the first lines stay on the screen."""
    server = start()
    clients = [Client(server.path) for _ in range(9)]
    top = Terminal(server, 200, lines=10)
    view = top.until(r"\x1b\[J([^\0]*?q leave\r\n)")[1]
    assert view.count("\n") < 10 and f"... and {len(clients) - 2} more" in view, view
    top.leave()


def test_bench(start):
    """The benchmark measures, and leaves nothing behind."""
    server = start()
    first, empty, head, *rows = ctl(server, "bench", "--seconds=0.1").splitlines()
    assert "backend cpu" in first and not empty and head.startswith("MEASURED")
    values = [float(row.split()[-1]) for row in rows]
    assert len(values) == 8 and all(value > 0 for value in values) and values[0] <= values[1] and values[2] <= values[3]
    wait_until(lambda: not see(server)["sessions"], "its session is over")
    assert see(server)["ended"][0]["counters"]["ops_failed"] == 0
    assert "cannot reach a server" in ctl(None, "bench", "--socket=/nowhere", expect=NO_SERVER)


def test_usage():
    text = ctl(None, "--help")
    commands = re.findall(r"^  (\w+)", text, re.M)
    assert {"status", "top", "sessions", "memory", "names", "health", "kill", "trace", "config", "bench", "warm"} <= set(commands)
    for command in commands:
        assert ctl(None, command, "--help").count(f"\n  {command}") == 1
    assert "no such command: nonsense" in ctl(None, "nonsense", expect=USAGE)
    assert "expected a session" in ctl(None, "kill", expect=USAGE)
    assert "no such option: --nonsense" in ctl(None, "status", "--nonsense", expect=USAGE)
    assert 'expected nothing but options, but there is "more"' in ctl(None, "status", "more", expect=USAGE)
    assert "--interval: expected a number above 0" in ctl(None, "top", "--interval=never", expect=USAGE)
    assert "cannot reach a server at /nowhere" in ctl(None, "status", "--control=/nowhere", expect=NO_SERVER)


@pytest.mark.parametrize("text, expected", [
    ("memory = 3G\n", None),
    ("memroy = 3G\n", "memroy"),
    ("memory = much\n", "option memory"),
    ("tcp = 127.0.0.1:0\n", "option tcp: TCP connections do not tell users apart"),
    ("metrics = 0.0.0.0:9464\n", "option metrics: 0.0.0.0:9464 is not a loopback address"),
    ("metrics = 0.0.0.0:9464\nmetrics-open = yes\n", None),
    ("metrics = here\n", "option metrics"),
    ("socket = none\n", "nothing to listen on"),
    ("principals = /nowhere\n", "option principals: cannot open"),
    ("tls = 0.0.0.0:7312\ntls-ca = /nowhere\n", "a certificate is missing"),
])
def test_config_check(tmp_path, text, expected):
    file = tmp_path / "arrayd.conf"
    file.write_text(text)
    said = ctl(None, "config", "check", str(file), expect=BAD if expected else GOOD)
    assert (expected or "arrayd would take this") in said


# ---- ending and following sessions ----

def test_kill(start):
    server = start()
    clients = [Client(server.path), Client(server.path)]
    kept = work(clients[0], 100, 1)[0]
    name = str(clients[1].welcome[3])
    assert f"session {name} is ended" in ctl(server, "kill", name, "too", "much")
    with pytest.raises(Closed, match="ended by an administrator: too much"):
        clients[1].sync()
    assert clients[0].get(kept)[3] == 4.5
    assert [s["session"] for s in see(server, "sessions") if s["state"] == "active"] == [str(clients[0].welcome[3])]
    assert f"there is no session {name}9" in ctl(server, "kill", name + "9", expect=BAD)
    wait_until(lambda: server.said(f'event="session killed" session={name} by=uid:{os.getuid()}'), "the log says who")


def test_trace(start):
    server = start()
    client, other = Client(server.path), Client(server.path)
    name = str(client.welcome[3])
    with subprocess.Popen([CTL, "trace", name, f"--socket={server.path}"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, env=clean()) as tracing:
        wait_until(lambda: session_of(server, client)["traced"], "the session is traced")
        work(other, 77, 1)
        work(client, 55, 1)
        client.close()
        out, err = tracing.communicate(timeout=raw.WINDOW)
    lines = out.splitlines()
    assert tracing.returncode == 0 and "the session has ended" in err
    assert any(re.match(r"<- ufunc add float64 -> #2 f8\[55\]", line) for line in lines), out
    assert any(line.startswith("-> reply") for line in lines)
    assert "77" not in out
    few = Client(server.path)
    with subprocess.Popen([CTL, "trace", str(few.welcome[3]), "--count=3", f"--socket={server.path}"],
                          stdout=subprocess.PIPE, text=True, env=clean()) as tracing:
        wait_until(lambda: session_of(server, few)["traced"], "the session is traced")
        work(few, 10, 20)
        assert len(tracing.communicate(timeout=raw.WINDOW)[0].splitlines()) == 3
    work(few, 10, 20)  # nobody reads its trace any more
    wait_until(lambda: work(few, 10, 1) and not session_of(server, few)["traced"], "it is traced no more")


def test_memory_that_is_passed_on_is_in_the_trace(start):
    server = start(env={"AD_TRACE": "1"})
    client = Client(server.path)
    x = client.put(np.ones(4))
    for name, *fields in (("export", x[0], 0), ("import", client.fresh(), 0, 1, 4096, 0, 4096, "no device")):
        ours, theirs = socket.socketpair()
        client.requests += 1
        with ours, theirs:
            client.pass_on(raw.frame(raw.message(name, client.requests, *fields)), theirs.fileno())
            try:
                client.reply(client.requests)
            except raw.Failed as refusal:
                assert name == "import", refusal
        wait_until(lambda name=name: server.said(f"<- {name} "), f"the trace has {name}")


def test_a_trace_that_nobody_reads_stops_nobody(start):
    server = start()
    client = Client(server.path)
    read, write = os.pipe()
    with connect_control(server) as s:
        socket.send_fds(s, [f"trace {client.welcome[3]}\n".encode()], [write])
        os.close(write)
        assert json.loads(read_all(s)) == {"traced": str(client.welcome[3])}
    x = client.put(np.ones(10))
    for _ in range(5000):
        x = client.ufunc("add", "float64", [10], x, 1.0)
    assert client.get(x)[0] == 5001
    with os.fdopen(read, "rb") as pipe:
        client.close()
        assert len(pipe.read()) < 1 << 20


# ---- health ----

def test_health(start):
    server = start(METRICS, "--health-seconds=0.3")
    wait_until(lambda: get(server, "/health")[0] == 200, "the worker works")  # a loaded machine may take longer, once
    worker = server.worker
    before = metrics(server)
    os.kill(worker, signal.SIGSTOP)
    try:
        status, text = get(server, "/health")
        assert status == 503 and "health-seconds" in json.loads(text)["workers"][0]["why"]
        assert not see(server, "health", expect=BAD)["healthy"]
        assert metrics(server).keys() == before.keys()  # what it last said
        for _ in range(8):  # questions that wait for the worker are limited in number
            get(server, "/health")
        assert "earlier looks are still waiting" in get(server, "/health")[1]
    finally:
        os.kill(worker, signal.SIGCONT)
    wait_until(lambda: get(server, "/health")[0] == 200, "the worker works again")
    assert see(server)["sessions"] == [] and see(server)["ended"] == []
    os.kill(worker, signal.SIGKILL)
    wait_until(lambda: get(server, "/health")[0] == 200 and server.worker not in (None, worker), "there is another one")
    assert see(server)["workers"][0]["starts"] == 2


def test_health_is_told_alike(start):
    server = start(METRICS)
    status, text = get(server, "/health")
    told, seen = json.loads(text), see(server, "health")
    for each in (told, seen):
        assert each["healthy"] and 0 < each["workers"][0].pop("seconds") < 5
    assert status == 200 and told == seen
    assert told["workers"] == [{"domain": see(server)["workers"][0]["domain"], "pid": server.worker, "works": True, "why": ""}]


def test_a_full_device_is_healthy(start):
    server = start(METRICS, "--memory=8M", "--slab=1M")
    client = Client(server.path)
    with pytest.raises(raw.Failed, match="out of device memory"):
        for _ in range(9):
            client.get(client.put(np.zeros(1 << 20, np.uint8)))
    assert client.stat("slab_bytes") == 8 << 20
    assert get(server, "/health")[0] == 200
    assert see(server, "health")["workers"][0]["works"]


def test_a_session_sees_nothing_of_health(start):
    server = start(METRICS)
    client = Client(server.path)
    work(client, 10, 1)
    used = client.stat("used_bytes")
    for _ in range(5):
        assert get(server, "/health")[0] == 200
    wait_until(lambda: client.stat("sessions") == 1, "what health has used is gone")
    assert client.stat("used_bytes") == used
    seen = see(server)
    assert len(seen["sessions"]) == 1 and seen["ended"] == [] and seen["arrayd"]["sessions_begun"] == 1


# ---- who may ----

def test_only_who_may_administer_does(start, tmp_path):
    server = start()
    assert stat.S_IMODE(os.stat(server.path + ".ctl").st_mode) == 0o600
    principals = tmp_path / "principals"
    principals.write_text(f"uid:{os.getuid()} admin=no\n")
    refusing = start(f"--principals={principals}")
    assert "the grant admin is missing" in ctl(refusing, "status", expect=BAD)
    assert "the grant admin is missing" in ctl(refusing, "kill", "1", expect=BAD)
    none = start("--control=none")
    assert not os.path.exists(none.path + ".ctl")
    assert "cannot reach a server" in ctl(none, "status", expect=NO_SERVER)
    elsewhere = start(f"--control={tmp_path}/c")
    assert "arrayd " in ctl(None, "status", f"--control={tmp_path}/c")
    elsewhere.stop()
    assert not os.path.exists(tmp_path / "c")


@pytest.mark.parametrize("options, expected", [
    (["--metrics=0.0.0.0:0"], "option metrics: 0.0.0.0:0 is not a loopback address"),
    (["--metrics=[::]:0"], "is not a loopback address"),
    (["--metrics=somewhere"], "option metrics: \\\"somewhere\\\": expected an address and port"),
    (["--control=/nowhere/at/all"], "option control: cannot listen on"),
])
def test_does_not_start(start, options, expected):
    server = start(*options, wait=False)
    server.expected_status = 1
    assert server.wait() == 1
    assert any("cannot start" in line and expected in line for line in server.lines), server.lines
