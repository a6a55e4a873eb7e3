"""What an administrator sees and does: arrayctl, its socket, metrics, health. Figures are compared with what clients count
themselves, and read by Prometheus' own parser."""
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import threading

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

import raw
from places import memory_of, port_of
from raw import Client, Closed, wait_until

CTL = raw.BUILD / "bin" / "arrayctl"
METRICS = "--metrics=127.0.0.1:0"
GOOD, BAD, USAGE, NO_SERVER = 0, 1, 2, 3
# What stat itself changes.
MOVING = {"requests", "bytes_out", "bytes_in", "device_us"}


def clean():
    return {k: v for k, v in os.environ.items() if not k.startswith(("ARRAYD_URL", "XDG_RUNTIME"))}


def ctl(server, *arguments, expect=GOOD):
    """arrayctl's standard output; its standard error when it is to fail."""
    where = [] if server is None else [f"--socket={server.path}"]
    done = subprocess.run([CTL, *arguments, *where], capture_output=True, text=True, timeout=raw.WINDOW, env=clean())
    assert done.returncode == expect, done
    return done.stdout if expect == GOOD else done.stderr


def see(server, command="status", expect=GOOD):
    done = subprocess.run([CTL, command, "--json", f"--socket={server.path}"], capture_output=True, text=True,
                          timeout=raw.WINDOW, env=clean())
    assert done.returncode == expect, done
    return json.loads(done.stdout)


def get(server, path, method="GET", headers=None, body=None):
    """Status and text of a page."""
    connection = http.client.HTTPConnection("127.0.0.1", port_of(server, "metrics"), timeout=raw.WINDOW)
    with contextlib.closing(connection):
        connection.request(method, path, body=body, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def metrics(server):
    """Samples by name and labels, as Prometheus reads them."""
    status, text = get(server, "/metrics")
    assert status == 200
    found = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation and family.type in ("counter", "gauge")
        for s in family.samples:
            key = s.name, tuple(sorted(s.labels.items()))
            assert key not in found
            found[key] = s.value
    return found


def metric_rows():
    text = (raw.TOP / "server" / "common" / "metric.def").read_text() if (raw.TOP / "server").is_dir() else ""
    return re.findall(r'^AD_METRIC\((\w+), (\w+), (\w+), "(\w*)", (\S+)\)', text, re.M)


def work(client, n, times):
    """Known contents: `times` arrays of n float64, kept."""
    x = client.put(np.arange(float(n)))
    kept = [client.ufunc("add", "float64", [n], x, 1.5) for _ in range(times)]
    client.sync()
    return kept


def session_of(server, client):
    """What arrayctl says of a client's session."""
    name = str(client.welcome[3])
    return next(s for s in see(server, "sessions") if s["session"] == name)


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
    assert worker["kept_slab_bytes"] == worker["devices"][0]["slab_bytes"] == own[1]["slab_bytes"]

    told, domain = metrics(server), worker["domain"]
    for counter, scope, _, name, scale in metric_rows():
        if not name or counter in MOVING:
            continue
        labels = [("domain", domain)] + ([("principal", f"uid:{os.getuid()}")] if scope == "SESSION" else [])
        want = sum(o[counter] for o in own) if scope == "SESSION" else own[1][counter]
        assert told[f"arrayd_{name}", tuple(labels)] == pytest.approx(want * float(scale)), name
    assert told["arrayd_sessions", (("domain", domain), ("principal", f"uid:{os.getuid()}"))] == 2


def test_every_counter_has_its_row():
    """A counter that is added says in metric.def how it is shown."""
    rows = metric_rows()
    if not rows:
        pytest.skip("the tables are not here")
    assert sorted(r[0] for r in rows) == sorted(raw.COUNTER)
    names = [r[3] for r in rows if r[3]]
    assert len(set(names)) == len(names)
    for counter, _, kind, name, _ in rows:
        assert name.endswith("_total") == (kind == "COUNTER") or not name, name
        assert "bytes" not in counter or "bytes" in name, name
        assert not counter.endswith("_us") or "seconds" in name, name


def test_the_dashboard_shows_what_there_is(start):
    """Each metric that deploy/grafana.json names is told by a server that has a session."""
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
    here, there = socket.socketpair()
    client.op("fork", 0)
    control = bytes(client.out)
    client.out.clear()
    socket.send_fds(client.socket, [raw.frame(control)], [there.fileno()])
    there.close()
    client.sync()
    wait_until(lambda: len(see(server)["sessions"]) == 2, "the forked session has begun")
    forked, = (s for s in see(server)["sessions"] if s["forked"])
    assert forked["session"] == f"{server.worker}.1" and forked["counters"]["buffers"] == 1
    ctl(server, "kill", forked["session"])
    child = Client(here, greet=False)
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
    assert "1 sessions, 1 begun" in text and f"{server.worker}" in text and "ready" in text
    line = next(line for line in ctl(server, "sessions").splitlines() if line.startswith(name))
    assert "4.0 MiB" in line and f"uid:{os.getuid()}" in line
    assert "4.0 MiB" in ctl(server, "memory")
    assert ctl(server, "health").endswith("healthy\n")
    top = ctl(server, "top", "--count=2", "--interval=0.05")
    assert top.count("SESSION") == 2 and "4.0 MiB in arrays" in top


def test_bench(start):
    """It measures, and leaves nothing behind."""
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
    assert 'expected no "more"' in ctl(None, "status", "more", expect=USAGE)
    assert "--interval: expected a number above 0" in ctl(None, "top", "--interval=never", expect=USAGE)
    assert "cannot reach a server at /nowhere" in ctl(None, "status", "--control=/nowhere", expect=NO_SERVER)


@pytest.mark.parametrize("text, expected", [
    ("memory = 3G\n", None),
    ("memroy = 3G\n", "memroy"),
    ("memory = much\n", "option memory"),
    ("tcp = 127.0.0.1:0\n", "option tcp: nobody could be told from anybody"),
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
    assert server.said(f'event="session killed" session={name} by=uid:{os.getuid()}')


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
    status, text = get(server, "/health")
    assert status == 200 and json.loads(text)["healthy"]
    assert see(server, "health")["workers"][0]["works"]
    worker = server.worker
    before = metrics(server)
    os.kill(worker, signal.SIGSTOP)
    try:
        status, text = get(server, "/health")
        assert status == 503 and "health-seconds" in json.loads(text)["workers"][0]["why"]
        assert not see(server, "health", expect=BAD)["healthy"]
        assert metrics(server).keys() == before.keys()  # what it last said
        for _ in range(8):  # and no more is given to it than it can ever do
            get(server, "/health")
        assert "earlier looks are still waiting" in get(server, "/health")[1]
    finally:
        os.kill(worker, signal.SIGCONT)
    wait_until(lambda: get(server, "/health")[0] == 200, "the worker works again")
    assert see(server)["sessions"] == [] and see(server)["ended"] == []
    os.kill(worker, signal.SIGKILL)
    wait_until(lambda: get(server, "/health")[0] == 200 and server.worker not in (None, worker), "there is another one")
    assert see(server)["workers"][0]["starts"] == 2


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

def connect_control(server):
    return raw.connect(server.path + ".ctl")


def read_all(s):
    data = b""
    while part := s.recv(65536):
        data += part
    return data


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


# ---- hostile ----

def answers(server, text):
    s = socket.create_connection(("127.0.0.1", port_of(server, "metrics")), raw.WINDOW)
    with s:
        s.sendall(text)
        with contextlib.suppress(ConnectionResetError):
            return read_all(s)


def status_of(answer):
    return int(answer.split(b" ", 2)[1]) if answer else None


def test_requests_that_are_refused(start):
    server = start(METRICS)
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert get(server, "/metrics", method)[0] == 405
    assert get(server, "/metrics", "GET", body="something")[0] == 400
    assert get(server, "/nothing")[0] == 404
    assert get(server, "/../../etc/passwd")[0] == 404
    assert get(server, "/metrics", headers={"Host": "evil.example.org"})[0] == 403
    for host in ("localhost:9464", "127.0.0.1", "[::1]:9464"):
        assert get(server, "/page.css", headers={"Host": host})[0] == 200
    status, text = get(server, "/metrics", "HEAD")
    assert status == 200 and text == ""
    assert status_of(answers(server, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100000 + b"\r\n\r\n")) in (
        431, 413, 400, None)
    assert status_of(answers(server, b"GET /" + b"a" * 50000 + b" HTTP/1.1\r\n\r\n")) in (414, 431, 400, None)
    assert status_of(answers(server, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n")) in (400, None)
    assert get(server, "/metrics")[0] == 200


def test_many_that_say_nothing_keep_nobody_out(start):
    server = start(METRICS)
    get(server, "/metrics")
    at_first, memory = raw.descriptors(server.pid), memory_of(server.pid)
    port = port_of(server, "metrics")
    silent = []
    for i in range(300):
        s = socket.create_connection(("127.0.0.1", port), raw.WINDOW)
        s.sendall(b"GET /metrics HTTP/1.1\r\nX: "[:i % 27])
        silent.append(s)
        if i % 50 == 49:
            assert get(server, "/metrics")[0] == 200
            assert raw.descriptors(server.pid) < at_first + 150
            Client(server.path).sync()
    assert memory_of(server.pid) < memory + (16 << 20)
    for s in silent:
        s.close()
    wait_until(lambda: raw.descriptors(server.pid) <= at_first, "all connections are gone")
    assert get(server, "/metrics")[0] == 200


def test_many_at_a_time(start):
    server = start(METRICS)
    client = Client(server.path)
    work(client, 100, 2)
    wrong, lock = [], threading.Lock()

    def ask():
        for path in ("/metrics", "/status.json", "/health", "/"):
            status, text = get(server, path)
            if status != 200 or not text:
                with lock:
                    wrong.append((path, status))

    threads = [threading.Thread(target=ask) for _ in range(20)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    assert len(see(server)["sessions"]) == 1
    client.sync()


def test_it_stops_while_somebody_waits(start):
    server = start(METRICS)
    os.kill(server.worker, signal.SIGSTOP)
    waiting = [socket.create_connection(("127.0.0.1", port_of(server, "metrics")), raw.WINDOW) for _ in range(3)]
    for s in waiting:
        s.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
    asking = connect_control(server)
    asking.sendall(b"health\n")
    wait_until(lambda: raw.descriptors(server.pid) > 10, "they are all there")
    os.kill(server.worker, signal.SIGCONT)
    assert server.stop() == 0
    for s in [*waiting, asking]:
        s.close()


def test_nonsense_on_the_control_socket(start):
    server = start()
    at_first = raw.descriptors(server.pid)
    for text, expected in ((b"nonsense\n", "no such request"), (b"\n", "no such request"), (b"kill\n", "the name of a session"),
                           (b"trace 1\n", "expected a pipe"), (b"x" * 600, "too long"),
                           (b"kill \xff\x00\x1b[2J\n", "there is no session")):
        with connect_control(server) as s:
            s.sendall(text)
            error = json.loads(read_all(s))["error"]
            assert expected in error and error.isprintable()
    with open("/dev/null", "rb") as no_pipe, connect_control(server) as s:
        socket.send_fds(s, [b"trace 1\n"], [no_pipe.fileno()] * 3)
        assert "expected a pipe" in json.loads(read_all(s))["error"]
    silent = [connect_control(server) for _ in range(100)]
    assert see(server)["arrayd"]["pid"] == server.pid
    for s in silent:
        s.close()
    wait_until(lambda: raw.descriptors(server.pid) <= at_first, "all connections are gone")


def test_names_of_clients_do_no_harm(start):
    server = start(METRICS)
    odd = 'x"\\\n</script><b>\x1b[2J\x7f'
    client = Client(server.path, greet=False)
    client.send(raw.hello(client=odd))
    client.welcome = client.receive_message()
    assert session_of(server, client)["client"].startswith(odd)
    assert "\x1b" not in ctl(server, "sessions")
    assert get(server, "/metrics")[0] == 200 and metrics(server)
    assert json.loads(get(server, "/status.json")[1])["sessions"][0]["client"].startswith(odd)


def look_at_all(server):
    """Ask for everything; true: all of it was there."""
    good = True
    for path in ("/metrics", "/status.json", "/health"):
        try:
            good = get(server, path)[0] == 200 and good
        except (ConnectionError, http.client.HTTPException):
            good = False
    for line in (b"status\n", b"names\n", b"health\n", b"kill 77\n"):
        try:
            with connect_control(server) as s:
                s.sendall(line)
                answer = json.loads(read_all(s) or b"{}")
            good = bool(answer) and (line == b"kill 77\n" or "error" not in answer) and answer.get("healthy", True) and good
        except ConnectionError:
            good = False
    return good


# The others take a minute more, as answers that are lost are waited for.
@pytest.mark.parametrize("program, call", [
    ("arrayd", "malloc"), ("arrayd", "calloc"), ("arrayd", "send"), ("arrayd", "sendmsg"), ("arrayd", "accept"),
    ("arrayd", "socketpair"), ("arrayd-worker", "calloc")])
def test_the_nth_call_fails(program, call, tmp_path):
    """Whatever fails while somebody looks, the server goes on, and tells all the next time."""
    for n in range(1, 100):
        fired = tmp_path / f"{n}"
        server = raw.Server(METRICS, "--health-seconds=1",
                            env={"ARRAYD_FAULT_OS": f"{program}:{call}:{n}", "ARRAYD_FAULT_ONCE": str(fired)})
        if not server.said("event=ready"):
            assert server.wait() in (1, 2)
            continue
        before = fired.exists()
        good = look_at_all(server)
        if fired.exists():
            wait_until(lambda: look_at_all(server), "all is told again")
        else:
            assert good
        assert server.stop() == 0, "\n".join(server.lines)
        shutil.rmtree(server.folder)
        if not fired.exists():
            break
        assert before or server.said(f"fault injected: {call}")
    else:
        raise AssertionError("there is no end")
