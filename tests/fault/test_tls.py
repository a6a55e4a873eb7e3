"""TLS: what is refused, what goes through, how connections end, and the certificates of clients."""
import contextlib
import os
import signal
import socket
import ssl
import struct
import subprocess
import sys
import time

import numpy as np
import pytest

import raw
from certificates import Authority
from places import DENIED, LIMIT, memory_of, port_of, refusal, sockets, works
from raw import Closed, connect, hello, wait_until


# ---- TLS ----

def test_what_is_not_tls_is_refused(start, place):
    server = start(*place.options("tls"), "--hello-timeout=3600")  # a time-out does not end these connections
    address = ("127.0.0.1", port_of(server, "tls"))
    rng = np.random.default_rng(1)
    for data in (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", hello(token=place.token["alice"]), rng.bytes(500), b"\x16" * 600,
                 b"\x16\x03\x01\xff\xff" + rng.bytes(70000)):
        with connect(address) as s:
            with contextlib.suppress(ConnectionError):
                s.sendall(data)
            with contextlib.suppress(ConnectionError):
                while s.recv(4096):
                    pass
    wait_until(lambda: server.said("from=tls:127.0.0.1 why=\"TLS: "), "it is logged")
    assert works(place.client(server))


def test_tls_1_2_is_refused(start, place):
    server = start(*place.options("tls"))
    context = place.authority.context()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with connect(("127.0.0.1", port_of(server, "tls"))) as plain, pytest.raises(ssl.SSLError):
        context.wrap_socket(plain, server_hostname="127.0.0.1")
    assert place.socket(server).version() == "TLSv1.3"


def test_large_payloads(start, place):
    server = start(*place.options("tls"))
    client = place.client(server)
    data = np.random.default_rng(2).integers(0, 256, 100_000_000, np.uint8)
    x = client.put(data)
    assert np.array_equal(client.get(x), data)
    assert works(client)


def test_two_large_payloads_cross(start, place):
    """An upload goes on while nobody takes a download: neither direction waits for the other."""
    server = start(*place.options("tls"))
    client = place.client(server)
    data = np.random.default_rng(3).random(4_000_000)
    x = client.put(data[:100_000])
    asked = [client.ask("read", x) for _ in range(4)]  # less than what the server queues before it stops reading
    more = client.put(data)
    for request in asked:
        assert client.reply(request)[1] == data[:100_000].tobytes()
    assert np.array_equal(client.get(more), data)


def test_who_does_not_read_costs_little(start, place):
    server = start(*place.options("tls"), "--output-timeout=2")
    other = place.client(server)
    assert works(other)
    before = memory_of(server.pid)
    clients = [place.client(server) for _ in range(4)]
    for client in clients:
        x = client.put(np.ones(2_000_000))
        for _ in range(8):
            client.ask("read", x)
    end = time.monotonic() + 1
    while time.monotonic() < end:
        assert works(other)
    assert memory_of(server.pid) - before < 16 << 20
    wait_until(lambda: server.said("output-timeout"), "they are disconnected")
    wait_until(lambda: other.stat("sessions") == 1, "their sessions are over")
    for client in clients:
        client.close()
    assert works(other)


@pytest.mark.parametrize("what", ["worker", "kind client", "rude client"])
def test_either_end_may_go(start, place, what):
    server = start(*place.options("tcp", "tls"))
    stays = place.client(server, "tcp")  # of the same worker
    assert works(stays)
    before = sockets(server.pid)
    clients = [place.client(server) for _ in range(5)]
    for client in clients:
        client.put(np.ones(100_000))
        if what != "worker":
            client.ask("read", client.put(np.ones(500_000)))
    if what == "worker":
        os.kill(stays.stat("worker_pid"), signal.SIGKILL)
        for client in clients:
            with pytest.raises((Closed, ssl.SSLError)):
                while True:
                    client.sync()
        assert works(place.client(server))
        return
    for client in clients:
        if what == "rude client":  # no goodbye, and a reset
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            socket.close(client.socket.detach())
        else:
            client.close()
    wait_until(lambda: stays.stat("sessions") == 1, "their sessions are over")
    wait_until(lambda: sockets(server.pid) <= before, "their sockets are closed")
    assert works(stays)


def test_clients_killed_in_the_middle(start, place):
    server = start(*place.options("tcp", "tls"))
    stays = place.client(server, "tcp")  # of the same worker
    before = stays.stat("used_bytes"), sockets(server.pid)
    code = ("import pathlib, socket, ssl, sys; sys.path.insert(0, sys.argv[1]); import numpy as np, raw\n"
            "context = ssl.create_default_context(cafile=sys.argv[2])\n"
            "s = context.wrap_socket(socket.create_connection(('127.0.0.1', int(sys.argv[3]))), server_hostname='127.0.0.1')\n"
            "c = raw.Client(s, token=sys.argv[4]); print('in', flush=True)\n"
            "while True:\n  x = c.put(np.ones(3_000_000)); c.get(x); c.free(x)\n")
    rng = np.random.default_rng(4)
    for _ in range(4):
        child = subprocess.Popen([sys.executable, "-c", code, os.path.dirname(raw.__file__), place.authority.ca,
                                  str(port_of(server, "tls")), place.token["alice"]], stdout=subprocess.PIPE)
        assert child.stdout.readline() == b"in\n"
        for _ in range(rng.integers(1, 40)):
            assert works(stays)
        child.kill()
        child.wait()
        child.stdout.close()
    wait_until(lambda: stays.stat("sessions") == 1, "their sessions are over")
    wait_until(lambda: sockets(server.pid) <= before[1], "their sockets are closed")
    stays.close()
    fresh = place.client(server, "tcp")
    wait_until(lambda: fresh.stat("used_bytes") <= before[0], "their arrays are gone")


def test_sigterm_with_tls_clients(start, place):
    server = start(*place.options("tls"))
    reads, silent = place.client(server), place.client(server)
    x = silent.put(np.ones(1_000_000))
    for _ in range(8):
        silent.ask("read", x)
    assert works(reads)
    server.process.send_signal(signal.SIGTERM)
    with pytest.raises((Closed, ssl.SSLError)):
        while True:
            reads.sync()
    assert server.wait() == 0


# ---- certificates of clients ----

def test_client_certificates(start, place):
    server = start("--tls=127.0.0.1:0", f"--tls-cert={place.certificate}", f"--tls-ca={place.authority.ca}")
    for names, common, principal in ((["notebook.example.org"], "carol", "cert:carol"),
                                     (["build.example.org"], None, "cert:build.example.org"),
                                     (["dave@example.org"], None, "cert:dave@example.org")):
        certificate = place.authority.issue(*names, common_name=common)
        assert works(place.client(server, token=None, certificate=certificate))
        wait_until(lambda: server.said(f"principal={principal} "), "it is logged")
    why = refusal(lambda: place.client(server, token=None))
    assert why.code == DENIED and "a token or a certificate" in why.text
    for name in ("with blanks in it", "x" * 60):
        certificate = place.authority.issue("192.0.2.1", common_name=name)
        assert refusal(lambda: place.client(server, token=None, certificate=certificate)).code == DENIED
    for names in ((None,), (None, ""), (None, "x" * 300), (None, "a\x7fb"), ("a\x7fb", " ")):
        certificate = place.authority.issue_unusual(*names)
        assert "no common name" in refusal(lambda: place.client(server, token=None, certificate=certificate)).text
    assert works(place.client(server, token=None, certificate=place.authority.issue_unusual(None, "", "zoe")))
    wait_until(lambda: server.said("principal=cert:zoe "), "a name behind one that is none counts")


@pytest.mark.parametrize("whose", ["another authority", "expired"])
def test_wrong_client_certificates(start, place, tmp_path, whose):
    server = start(*place.options("tls", clients=True))
    authority = place.authority if whose == "expired" else Authority(tmp_path, "other")
    certificate = authority.issue("mallory", expired=whose == "expired")
    for token in (None, "alice"):
        with pytest.raises((Closed, ssl.SSLError, OSError)) as refused:
            place.client(server, token=token, certificate=certificate)
        assert getattr(refused.value, "code", None) is None  # it got no further than TLS
    wait_until(lambda: server.said("the certificate is refused"), "it is logged")
    assert works(place.client(server))


def test_a_token_counts_more_than_a_certificate(start, place):
    principals = place.folder / "principals"
    principals.write_text("cert:carol connect=no\ncert:* sessions=1\n")
    server = start(*place.options("tls", clients=True), f"--principals={principals}")
    carol, erin = (place.authority.issue("x.example.org", common_name=name) for name in ("carol", "erin"))
    assert refusal(lambda: place.client(server, token=None, certificate=carol)).code == DENIED
    assert works(place.client(server, token="alice", certificate=carol))
    assert refusal(lambda: place.client(server, token="wrong" * 5, certificate=erin)).code == DENIED
    first = place.client(server, token=None, certificate=erin)
    assert refusal(lambda: place.client(server, token=None, certificate=erin)).code == LIMIT
    assert works(first)
