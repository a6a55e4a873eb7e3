"""Strangers at the address of metrics and at the control socket, and calls that fail while somebody looks."""
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import threading

import pytest

import raw
from places import memory_of, port_of
from raw import Client, wait_until
from observing import METRICS, connect_control, ctl, get, metrics, read_all, see, session_of, work


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


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_headers_that_few_send(start, host):
    """No Host, as HTTP/1.0 may have; one that is too long; a body that is announced; and several requests at once."""
    server = start(f"--metrics={host}:0", "--metrics-open=" + ("yes" if host == "0.0.0.0" else "no"))
    port = int(re.search(r"metrics:[\d.]+:(\d+)", "\n".join(server.lines))[1])

    def statuses(text):
        with socket.create_connection(("127.0.0.1", port), raw.WINDOW) as s:
            s.sendall(text)
            s.shutdown(socket.SHUT_WR)
            return [int(n) for n in re.findall(rb"HTTP/1\.[01] (\d+) ", read_all(s))]

    names = b"Host: localhost\r\n"
    foreign = [200] if host == "0.0.0.0" else [403]
    assert statuses(b"GET /page.css HTTP/1.0\r\n\r\n") == [200]
    assert statuses(b"GET /page.css HTTP/1.1\r\nConnection: close\r\nHost: " + b"x" * 300 + b"\r\n\r\n") == foreign
    assert statuses(b"GET /page.css HTTP/1.1\r\nConnection: close\r\nHost: [::x]\r\n\r\n") == foreign
    assert statuses(b"GET /page.css HTTP/1.1\r\nConnection: close\r\nContent-Length: 0\r\n" + names + b"\r\n") == [200]
    assert statuses(b"GET /page.css HTTP/1.1\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n" + names + b"\r\n0\r\n\r\n") == [400]
    assert statuses((b"GET /page.css HTTP/1.1\r\n" + names + b"\r\n") * 2 + b"GET /no HTTP/1.0\r\n\r\n") == [200, 200, 404]
    assert statuses(b"G") in ([], [400]) and statuses(b"") == []


@pytest.mark.parametrize("lines, expected", [
    ([b"upgrade now\n"], "expected force or nothing"), ([b"invite\n"], "not reached over a network"),
    ([b"dismiss a/b\n"], "expected the name"), ([b"dismiss \n"], "expected the name"), ([b"x" * 511], "too long"),
    ([b"trace 1"], None), ([b""], None), ([b"kill", b" 9", b"9 because\n"], "there is no session 99"),
    ([b"kill 1.99999999999999999999\n"], "there is no session"), ([b"trace x\n"], "expected a pipe")])
def test_lines_of_the_control_socket(start, lines, expected):
    """Descriptors come along with each part; the first one is kept, and none stays."""
    server = start()
    before = count_descriptors(server)
    reading, writing = os.pipe()
    with open(reading, "rb"), open(writing, "wb") as pipe, connect_control(server) as s:
        for line in lines:
            if len(lines) > 1:
                socket.send_fds(s, [line], [pipe.fileno()])
            else:
                s.sendall(line)
        if expected is None:
            s.shutdown(socket.SHUT_WR)
            assert read_all(s) == b""
        else:
            assert expected in json.loads(read_all(s))["error"]
    wait_until(lambda: raw.descriptors(server.pid) <= before, "nothing is left")


def count_descriptors(server):
    """Count the front's descriptors when its worker has answered: those that it keeps of that one are there, too."""
    see(server)
    return raw.descriptors(server.pid)


def test_many_that_say_nothing_keep_nobody_out(start):
    server = start(METRICS)
    get(server, "/metrics")
    at_first, memory = count_descriptors(server), memory_of(server.pid)
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
    at_first = count_descriptors(server)
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
    """The server goes on after any failure while somebody looks, and tells all the next time."""
    for n in range(1, 100):
        fired = tmp_path / f"{n}"
        server = raw.Server(METRICS, env={"ARRAYD_FAULT_OS": f"{program}:{call}:{n}", "ARRAYD_FAULT_ONCE": str(fired)})
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
        raw.leave_nothing()
        if not fired.exists():
            break
        assert before or server.said(f"fault injected: {call}")
    else:
        raise AssertionError("there is no end")
