"""Arrays that one server fetches from another: who may, what breaks meanwhile, and what must not remain."""
import contextlib
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import threading

import numpy as np
import pytest

import raw
from cutting import Proxy
from observing import BAD, METRICS, ctl, metrics, see
from raw import Client, Closed, Failed, children, frame, message, wait_until
from returning import CANCEL, Session, note
from test_invite import parts
from wrong_servers import WrongServer, reply, welcome

N = 3_000_000  # float64: twelve parts of the fetching program
ALL = 1 << 62  # bytes
WHO = f"uid:{os.getuid()}"
FETCHING = b"arrayd-pull"


class Giver:
    """A server that has arrays, a client of it, and the url of its invitation to another server."""

    def __init__(self, start, tmp_path, *options, invite=("--peer",), session=Client, env={}, **more):
        state = {"XDG_STATE_HOME": str(tmp_path / "giver")}
        self.server = start("--tls=127.0.0.1:0", "--self-signed=yes", "--server-name=giver", *options, env={**state, **env}, **more)
        self.url = ctl(self.server, "invite", "taker", *invite).strip()
        self.token, self.port, self.pin = parts(self.url)
        self.client = session(self.server.path)

    def share(self, array, uses=0):
        return self.share_made(self.client.put(array), uses)

    def share_made(self, x, uses=0):
        (a, b, _), _ = self.client.reply(self.client.ask("share", x[0], uses, 0, 60_000))
        return a % 2**64, b % 2**64


def taker(start, tmp_path, giver, *options, url=None, **more):
    file = tmp_path / "peers"
    file.write_text(f"# servers\ngiver {url or giver.url}  # the first one\n\n")
    file.chmod(0o600)
    return start("--server-name=taker", f"--peers={file}", *options, **more)


def pull(client, half, dtype="float64", shape=(N,), name="giver", who=WHO):
    """Have the server fetch an array: its description."""
    return receive(client, *ask(client, half, name, who), dtype, shape)


def ask(client, half, name="giver", who=WHO):
    buffer = client.fresh()
    return client.ask("pull", buffer, *half, name, who), buffer


def receive(client, request, buffer, dtype="float64", shape=(N,)):
    client.reply(request)
    return [buffer, raw.DTYPES.index(dtype), 0, list(shape)]


def fetching(server):
    """Process ids of the programs that fetch for a server."""
    return [pid for pid in children(server.pid) if comm(pid) == FETCHING]


def comm(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/comm").read_bytes().strip()


class Held(Proxy):
    """The first connection to a server ends after so many bytes. The next ones must wait until they are let in."""

    def __init__(self, port, first):
        self.first, self.reached, self.go = first, threading.Event(), threading.Event()
        super().__init__(("127.0.0.1", port), None, self.decide)

    def decide(self, n):
        if n:
            self.reached.set()
            self.go.wait(raw.WINDOW)
        return ALL, ALL if n else self.first

    def url(self, giver):
        return f"tls://{giver.token}@127.0.0.1:{self.port}#sha256:{giver.pin}"


@pytest.fixture
def held(start, tmp_path):
    """A giver and a taker whose first connection to it ends within an array."""
    @contextlib.contextmanager
    def make(*options, session=Session, giver_options=(), first=10_000_000):
        giver = Giver(start, tmp_path, *giver_options, session=session)
        proxy = Held(giver.port, first)
        server = taker(start, tmp_path, giver, *options, url=proxy.url(giver))
        client = Session(server.path)
        client.server = server
        try:
            yield giver, proxy, client
        finally:
            proxy.go.set()
            proxy.listener.close()

    return make


# ---- what comes, and to whom ----

def test_arrays_come_from_a_peer(start, tmp_path):
    giver = Giver(start, tmp_path)
    client = Client(taker(start, tmp_path, giver).path)
    assert {key: client.welcome[5][key] for key in ("name", "principal", "peers")} == {
        "name": "taker", "principal": WHO, "peers": "giver"}
    whole = np.random.default_rng(3).random(N)
    assert np.array_equal(client.get(pull(client, giver.share(whole))), whole)
    for values in (np.arange(7, dtype=np.int16), np.zeros(0, np.float32), np.arange(1_048_576)):
        x = pull(client, giver.share(values), values.dtype.name, values.shape)
        assert np.array_equal(client.get(x), values)
    wait_until(lambda: not fetching(giver.server) and client.stat("sessions") == 1, "nothing remains of the fetching")
    assert client.stat("capabilities") == 0


def test_a_device_that_is_late(start, tmp_path):
    """Operations before the question are under way, and their checkpoint comes first."""
    giver = Giver(start, tmp_path, env={"ARRAYD_CPU_LATE": "1"})
    client = Session(taker(start, tmp_path, giver, env={"ARRAYD_CPU_LATE": "1"}).path)
    dtype = raw.DTYPES.index("float64")
    for n in (5, N):
        half, ones = giver.share(np.arange(float(n))), client.put(np.ones(n))
        for _ in range(8):
            client.op("ufunc", raw.UFUNC["add"], dtype, [ones], [ones, 1.0], [])
        asked = ask(client, half)
        assert client.get(receive(client, *asked, shape=[n]))[-1] == n - 1
        assert client.get(ones)[-1] == 9
    client.close()


def test_a_handle_for_one_use_is_good_once(start, tmp_path):
    giver = Giver(start, tmp_path)
    client = Client(taker(start, tmp_path, giver).path)
    half = giver.share(np.arange(5.0), uses=1)
    assert client.get(pull(client, half, shape=[5])).tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(Failed, match="pull from giver: attach: there is no such capability"):
        pull(client, half)


def test_an_array_that_has_failed_brings_its_error(start, tmp_path):
    giver = Giver(start, tmp_path)
    client = Client(taker(start, tmp_path, giver).path)
    b = giver.client.fresh()
    x = giver.client.put(np.arange(3))
    giver.client.op("ufunc", raw.UFUNC["add"], raw.DTYPES.index("float64"), [[b, raw.DTYPES.index("float64"), [4]]],
                    [[x[0], raw.DTYPES.index("float64"), 800, [4]], 1.0], [])
    with pytest.raises(Failed, match="pull from giver: input 1: the array reaches beyond its buffer"):
        pull(client, giver.share_made([b]))


@pytest.mark.parametrize("name, who, match", [("nobody", WHO, "pull from nobody: it is no peer of this server"),
                                              ("", WHO, "server must be the name of a server"),
                                              ("giver", "uid:4242", "there is no such capability"),
                                              ("giver", "a\tb", "letters that no principal has"),
                                              ("giver", "p" * 64, "principal must have at most 63 bytes"),
                                              ("giver", "", "come.* for a principal of 1 to 63 letters")])
def test_who_and_whose(start, tmp_path, name, who, match):
    giver = Giver(start, tmp_path)
    client = Client(taker(start, tmp_path, giver).path)
    with pytest.raises(Failed, match=match):
        pull(client, giver.share(np.ones(3)), name=name, who=who)


def test_a_token_needs_the_grant(start, tmp_path):
    giver = Giver(start, tmp_path, invite=())
    client = Client(taker(start, tmp_path, giver).path)
    with pytest.raises(Failed, match="token:taker may not come for other principals"):
        pull(client, giver.share(np.ones(3)))


def test_a_peer_may_attach_and_nothing_else(start, tmp_path):
    """By its token a server is no more than who has a capability: it looks no names up, and hands nothing on."""
    from returning import tcp_of
    giver = Giver(start, tmp_path, "--tcp=127.0.0.1:0")
    x = giver.client.put(np.arange(4.0))
    giver.client.reply(giver.client.ask("publish", x, 0, "secret", ""))
    peer = Client(tcp_of(giver.server), token=f"{giver.token}/{WHO}")
    for request in (("attach_name", peer.fresh(), "", "secret"), ("names", peer.fresh())):
        with pytest.raises(Failed, match="grant names"):
            peer.reply(peer.ask(*request))
    buffer = peer.fresh()
    peer.reply(peer.ask("attach", buffer, *giver.share_made(x)))
    assert peer.get([buffer, x[1], 0, x[3]]).tolist() == [0, 1, 2, 3]
    with pytest.raises(Failed, match="grant exports"):
        peer.reply(peer.ask("share", buffer, 0, 0, 0))
    with pytest.raises(Failed, match="memory"):
        peer.get([peer.new("float64", [16_000_000]), x[1], 0, [3]])


@pytest.mark.parametrize("end, why", [("expire", "the token has expired"), ("revoke", "has revoked the token")])
def test_a_peers_sessions_end_with_its_token(start, tmp_path, end, why):
    """Whomever a server has come for, it is out with its own token; the principal's own sessions stay."""
    from returning import tcp_of
    giver = Giver(start, tmp_path, "--tcp=127.0.0.1:0")
    peer = Client(tcp_of(giver.server), token=f"{giver.token}/{WHO}")
    assert peer.stat("sessions") == 2
    if end == "revoke":
        assert ctl(giver.server, "revoke", "taker") == "taker is out: 1 session ended\n"
    else:
        file = tmp_path / "giver" / "arrayd" / "tokens"
        file.write_text(re.sub("expires=.*", "expires=2020-01-01T00:00:00Z", file.read_text()))
        giver.server.process.send_signal(signal.SIGHUP)
    with pytest.raises(Closed, match=why):
        while True:
            peer.stat("sessions")
    wait_until(lambda: giver.client.stat("sessions") == 1, "the server's session has ended")


def test_a_peer_does_not_change_what_somebody_may_have(start, tmp_path):
    grants = tmp_path / "grants"
    grants.write_text(f"{WHO} memory=32M admin=yes\n")
    grants.chmod(0o600)
    giver = Giver(start, tmp_path, f"--principals={grants}")
    client = Client(taker(start, tmp_path, giver).path)
    assert client.get(pull(client, giver.share(np.ones(N))))[-1] == 1
    x = giver.client.new("float64", [N])
    with pytest.raises(Failed, match="grant memory"):
        giver.client.get([x, raw.DTYPES.index("float64"), 0, [3]])


def test_who_has_no_room_gets_nothing(start, tmp_path):
    """The array counts as the principal's that wants it, before it comes."""
    giver = Giver(start, tmp_path)
    grants = tmp_path / "principals"
    grants.write_text(f"{WHO} memory=8M\n")
    grants.chmod(0o600)
    client = Client(taker(start, tmp_path, giver, f"--principals={grants}").path)
    half = giver.share(np.ones(N))
    with pytest.raises(Failed, match="pull from giver: .*memory") as failed:
        pull(client, half)
    assert failed.value.error == "memory"
    assert client.get(pull(client, giver.share(np.ones(5)), shape=[5])).tolist() == [1] * 5


def test_a_peer_that_is_not_there(start, tmp_path):
    giver = Giver(start, tmp_path)
    client = Client(taker(start, tmp_path, giver).path)
    half = giver.share(np.ones(3))
    giver.client.close()
    giver.server.stop()
    with pytest.raises(Failed, match="pull from giver: no arrayd at tls:127.0.0.1"):
        pull(client, half)


# ---- what breaks ----

def test_connections_break_and_the_array_comes_once(start, tmp_path):
    """The connection between the servers is cut again and again: the handle is for one use, and no byte is missing."""
    giver = Giver(start, tmp_path)
    proxy = Proxy(("127.0.0.1", giver.port), None, lambda n: (ALL, 2_000_000 if n < 9 else ALL))
    url = f"tls://{giver.token}@127.0.0.1:{proxy.port}#sha256:{giver.pin}"
    client = Client(taker(start, tmp_path, giver, url=url).path)
    values = np.random.default_rng(4).random(N)
    assert np.array_equal(client.get(pull(client, giver.share(values, uses=1))), values)
    assert proxy.connections > 8
    proxy.listener.close()


@pytest.mark.parametrize("whose", ["giver", "taker"])
def test_a_worker_is_killed_meanwhile(held, whose):
    values = np.random.default_rng(5).random(N)
    with held() as (giver, proxy, client):
        request, buffer = ask(client, giver.share(values, uses=1))
        client.flush()
        assert proxy.reached.wait(raw.WINDOW)
        killed = giver.server if whose == "giver" else client.server
        worker = killed.worker
        os.kill(worker, signal.SIGKILL)
        wait_until(lambda: killed.worker not in (worker, None), "there is another worker")
        if whose == "taker":
            client.come_back()
        proxy.go.set()
        assert np.array_equal(client.get(receive(client, request, buffer)), values)
        client.close()


def test_parts_are_asked_for_ahead(held):
    """The connection ends within the first part, and the giver has answered requests for more, so none waits for a way
    there and back. The parts lie in memory that the program shares with the server that fetches."""
    with held(METRICS, first=1_000_000) as (giver, proxy, client):
        values = np.random.default_rng(6).random(N)
        request, buffer = ask(client, giver.share(values, uses=1))
        client.flush()
        assert proxy.reached.wait(raw.WINDOW)
        wait_until(lambda: any("arrayd-pull" in s["client"] and s["counters"]["requests"] > 2 for s in see(giver.server)["sessions"]),
                   "there are answers to more than attaching and one part")
        assert sum(v for (name, _), v in metrics(client.server).items() if name == "arrayd_window_bytes") >= 12 << 20
        proxy.go.set()
        assert np.array_equal(client.get(receive(client, request, buffer)), values)
        client.close()


def test_an_answer_is_given_again(held):
    """The worker is killed when the array has come, and before its client has heard of it."""
    with held() as (giver, proxy, client):
        proxy.go.set()
        half = giver.share(np.arange(9.0), uses=1)
        request, buffer = ask(client, half)
        client.flush()
        wait_until(lambda: client.server.said("event=pulled") or giver.client.stat("capabilities") == 0, "it has been taken")
        worker = client.server.worker
        os.kill(worker, signal.SIGKILL)
        wait_until(lambda: client.server.worker not in (worker, None), "there is another worker")
        client.come_back()
        assert client.get(receive(client, request, buffer, shape=[9])).tolist() == list(range(9))
        client.close()


def test_the_client_is_away_meanwhile(held):
    with held() as (giver, proxy, client):
        request, buffer = ask(client, giver.share(np.arange(float(N)), uses=1))
        client.flush()
        assert proxy.reached.wait(raw.WINDOW)
        client.socket.close()
        proxy.go.set()
        client.come_back(close=False)
        assert client.get(receive(client, request, buffer))[-1] == N - 1
        client.close()


def test_the_program_is_killed(held):
    with held() as (giver, proxy, client):
        request, _ = ask(client, giver.share(np.arange(float(N))))
        client.flush()
        assert proxy.reached.wait(raw.WINDOW)
        os.kill(*fetching(client.server), signal.SIGKILL)
        with pytest.raises(Failed, match="arrayd-pull ended without an answer"):
            client.reply(request)
        client.close()


def test_a_client_cancels(held):
    with held() as (giver, proxy, client):
        request, _ = ask(client, giver.share(np.arange(float(N))))
        client.flush()
        assert proxy.reached.wait(raw.WINDOW)
        client.send(note(CANCEL))
        with pytest.raises(Failed) as failed:
            client.reply(request)
        assert failed.value.error == "cancelled"
        wait_until(lambda: not fetching(client.server), "the program has ended")
        client.close()


def test_they_take_no_room_of_the_principals_own_sessions(held, tmp_path):
    """A program that has its server fetch arrays names any principal there, and must not push its sessions out."""
    with held(giver_options=[limit(tmp_path, 2)]) as (giver, proxy, client):
        half, x = giver.share(np.arange(float(N))), giver.client.put(np.arange(5))
        giver.client.sync()
        giver.client.socket.close()
        wait_until(lambda: giver.server.said("session waits"), "it waits")
        ask(client, half)
        client.flush()
        assert proxy.reached.wait(raw.WINDOW)
        with Client(giver.server.path).socket:
            giver.client.come_back()
            assert giver.client.get(x).tolist() == list(range(5))
        client.close()


def test_they_take_no_room_of_the_principals_forks(held, tmp_path):
    with held(giver_options=[limit(tmp_path, 2)]) as (giver, proxy, client):
        request, _ = ask(client, giver.share(np.arange(float(N))))
        client.flush()
        assert proxy.reached.wait(raw.WINDOW)
        x = giver.client.put(np.arange(5))
        child = giver.client.child()
        assert child.get(x).tolist() == list(range(5))
        proxy.go.set()
        client.reply(request)
        child.close()
        client.close()


def limit(tmp_path, sessions):
    """The option by which this process's user may have so many sessions."""
    principals = tmp_path / "principals"
    principals.write_text(f"{WHO} admin=yes sessions={sessions}\n")
    return f"--principals={principals}"


def test_a_client_is_gone(held):
    with held("--resume-time=0") as (giver, proxy, client):
        ask(client, giver.share(np.arange(float(N))))
        client.flush()
        assert proxy.reached.wait(raw.WINDOW)
        client.close()
        wait_until(lambda: not fetching(client.server), "the program has ended")


def test_it_takes_too_long(held):
    with held("--operation-time=0.5") as (giver, proxy, client):
        with pytest.raises(Failed, match="longer than operation-time") as failed:
            pull(client, giver.share(np.arange(float(N))))
        assert failed.value.error == "timeout"
        client.close()


def test_a_server_stops_meanwhile(held):
    with held() as (giver, proxy, client):
        ask(client, giver.share(np.arange(float(N))))
        client.flush()
        assert proxy.reached.wait(raw.WINDOW)
        programs = fetching(client.server)
        assert client.server.stop() == 0
        wait_until(lambda: not any(map(raw.alive, programs)), "the program has ended")
        client.close()


def test_not_too_many_at_a_time(held):
    with held() as (giver, proxy, client):
        half = giver.share(np.arange(float(N)))
        others = [Client(client.server.path) for _ in range(16)]
        for other in others:
            ask(other, half)
            other.flush()
        wait_until(lambda: len(fetching(client.server)) == 16, "as many programs as may be")
        with pytest.raises(Failed, match="at most 64 arrays are fetched at a time, and 16 for one principal"):
            pull(client, half)
        for other in others:
            other.close()
        wait_until(lambda: not fetching(client.server), "all have ended")
        client.close()


def sessions_of_programs(server):
    return [s["session"] for s in see(server, "sessions") if FETCHING.decode() in s["client"]]


@pytest.mark.parametrize("whose", ["giver", "taker"])
def test_a_session_is_ended_meanwhile(held, whose):
    """Whichever end fails while parts are on their way, the program says so, and both servers go on."""
    with held() as (giver, proxy, client):
        values = np.arange(5_000_000.0)  # five parts
        request, _ = ask(client, giver.share(values))
        client.flush()
        assert proxy.reached.wait(raw.WINDOW)
        ended = giver.server if whose == "giver" else client.server
        ctl(ended, "kill", str(*sessions_of_programs(ended)))
        proxy.go.set()
        with pytest.raises(Failed, match="pull from giver: .*(administrator|session)"):
            client.reply(request)
        assert client.get(pull(client, giver.share(values), shape=[len(values)]))[-1] == len(values) - 1
        client.close()


@pytest.mark.parametrize("ends", [False, True])
def test_the_taker_is_slower(held, ends):
    """The program reads six parts ahead, and not more, until the taker goes on, or its session there has ended."""
    with held() as (giver, proxy, client):
        values = np.arange(8_000_000.0)
        request, buffer = ask(client, giver.share(values))
        client.flush()
        assert proxy.reached.wait(raw.WINDOW)
        worker, (program,), sessions = client.server.worker, fetching(client.server), sessions_of_programs(client.server)
        os.kill(worker, signal.SIGSTOP)
        proxy.go.set()
        ahead = 6 * (2 << 20) - proxy.first
        wait_until(lambda: proxy.connections == 2 and ALL - proxy.down.left > ahead and sleeps(program), "it waits")
        if ends:
            ctl(client.server, "kill", str(*sessions))
        os.kill(worker, signal.SIGCONT)
        if ends:
            with pytest.raises(Failed, match="pull from giver: .*(administrator|session)"):
                client.reply(request)
        else:
            assert client.get(receive(client, request, buffer, shape=[len(values)]))[-1] == len(values) - 1
        client.close()


def sleeps(pid):
    """Whether each thread of a process has slept for a while."""
    def look():
        return [(t.name, (t / "stat").read_text().rsplit(")")[1].split()[0], (t / "sched").read_text().split("nr_switches")[1][:40])
                for t in sorted(pathlib.Path(f"/proc/{pid}/task").iterdir())]
    before = look()
    return all(state == "S" for _, state, _ in before) and look() == before


# ---- a peer, or a program, of an attacker's ----

def fail(text):
    return lambda request: frame(message("fail", request, 0, 4, 0, "attach", text))


@pytest.mark.parametrize("answers, match", [
    ([fail("it\nwent\twrong \x1b[31m" + "x" * 900)], r"pull from giver: it went\?wrong \?\[31mx"),
    ([reply(8)], "a reply of another form"),
    ([reply(-2, 0, 0)], "a reply of another form"),
    ([reply(2**62, 0, 0)], "memory|large|big|size"),
    ([reply(2**40, 0, 0)], "memory"),
    ([reply(8, 0, 0), reply(payload=b"1234567")], "giver"),
    ([reply(8, 0, 0), reply(payload=b"123456789")], "giver"),
    ([reply(8, 0, 0), fail("gone")], "pull from giver: gone"),
    ([reply(8, 0, 0), b"nonsense of a peer"], "giver"),
    ([b"\xff" * 64], "giver"),
], ids=range(10))
def test_a_peer_that_lies(start, tmp_path, answers, match):
    """A lie harms who asks for the array, and nobody else: the program ends, and nothing of its sessions stays."""
    with WrongServer([welcome(), *answers]) as giver:
        server = taker(start, tmp_path, giver)
        client = Client(server.path)
        with pytest.raises(Failed, match=match) as failed:
            pull(client, (1, 2), shape=[1])
        assert failed.value.text.isprintable() and len(failed.value.text) < 256
        x = client.put(np.arange(3))
        assert client.get(x).tolist() == [0, 1, 2]
        wait_until(lambda: not fetching(server) and client.stat("sessions") == 1, "nothing remains of the fetching")


ATTACK = """
import os, socket
door, job = socket.socket(fileno=4), socket.socket(fileno=3)
pair, ends = socket.socketpair(), os.pipe()
for fd in (os.open("/dev/null", 0), os.open("/", 0), *ends, pair[0].fileno(), os.memfd_create("x"), 3, 4):
    socket.send_fds(door, [b"x"], [fd])
    socket.send_fds(door, [b"xy"], [fd] * 20)
for n in (1, 5000):
    door.send(b"x" * n)
job.sendall(b"0\\tzz\\n")
job.recv(1 << 16)
socket.send_fds(door, [b""], [0])
"""


def count_descriptors(server):
    """How many descriptors the server has, without memory that its workers hand it when they come to that."""
    count = 0
    for name in os.listdir(f"/proc/{server.pid}/fd"):
        with contextlib.suppress(FileNotFoundError):  # it was closed meanwhile
            count += not os.readlink(f"/proc/{server.pid}/fd/{name}").startswith("/memfd:arrayd")
    return count


def test_a_program_of_an_attackers(start, tmp_path):
    """A fetching program that was taken over passes anything on as a connection. arrayd serves all others."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "arrayd-worker").symlink_to(raw.BUILD / "bin" / "arrayd-worker")
    (folder / "arrayd-pull").write_text(f"#!{sys.executable}\n{ATTACK}")
    (folder / "arrayd-pull").chmod(0o755)
    server = taker(start, tmp_path, None, f"--worker={folder}/arrayd-worker", "--hello-timeout=1", url="tcp:127.0.0.1:1")
    client = Client(server.path)
    x = client.put(np.arange(3))
    assert client.get(x).tolist() == [0, 1, 2]
    before = count_descriptors(server)
    for _ in range(3):
        with pytest.raises(Failed, match="nonsense|without an answer"):
            pull(client, (1, 2))
        with Client(server.path).socket:
            assert client.get(x).tolist() == [0, 1, 2]
    wait_until(lambda: not fetching(server), "the programs have ended")
    wait_until(lambda: count_descriptors(server) <= before, "no descriptor is left")


@pytest.mark.parametrize("url, match", [
    ("tls:nowhere", "is not a server address"), ("unix:/proc/none", "no arrayd at"),
    (f"tls://{'t' * 230}@127.0.0.1:1#sha256:{'0' * 64}", "token in option peers is longer than 201 letters")])
def test_a_url_that_leads_nowhere(start, tmp_path, url, match):
    client = Client(taker(start, tmp_path, None, url=url).path)
    with pytest.raises(Failed, match=f"pull from giver: .*{match}"):
        pull(client, (1, 2), who="uid:" + "7" * 50)


@pytest.mark.parametrize("job, answer", [
    (b"", "19\tthere is no job"), (b"x" * 2000, "this is no job"), (b"tcp:h:1\tuid:1\n", "this is no job"),
    (b"tcp:h:1\tuid:1\tzz\t1\n", "this is no job"), (b"tcp:h:1\tuid:1\t1\t2\n", "\t"), (None, "")])
def test_the_program_without_arrayd(job, answer):
    """A job that is none, and nobody at the other ends."""
    (ours, theirs), (here, door) = socket.socketpair(), socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs, door:
        here.close()
        run = f"exec {raw.BUILD}/bin/arrayd-pull 3<&{theirs.fileno()} 4<&{door.fileno()}"
        program = subprocess.Popen(["bash", "-c", run], pass_fds=(theirs.fileno(), door.fileno()))
        theirs.close()
        if job is None:
            ours.close()
        else:
            ours.sendall(job)
            ours.shutdown(socket.SHUT_WR)
            assert answer in ours.makefile(newline="\n").readline()
        assert program.wait(raw.WINDOW) == (job is None)


# ---- the file ----

@pytest.mark.parametrize("line, match", [
    ("giver", "expected a url after the name"), ("gi/ver tls:h:1", "expected a name of at most 56 letters"),
    ("giver http://h", "expected a url after the name"), ("giver tls:h:1 more", "expected a name and a url, and nothing"),
    ("giver tls:h:1\ngiver tls:h:2", "peers:2: this name has a line already"), ("giver tls:" + "h" * 700, "longer than 639"),
    ("x" * 2000, "the line is too long")])
def test_a_bad_line_is_named_and_not_shown(tmp_path, line, match):
    file, conf = tmp_path / "peers", tmp_path / "conf"
    file.write_text(line + "\n")
    file.chmod(0o600)
    conf.write_text(f"peers = {file}\n")
    said = ctl(None, "config", "check", conf, expect=BAD)
    assert match in said and "option peers:" in said and "tls:h" not in said


def test_a_file_that_others_may_read(tmp_path):
    file = tmp_path / "peers"
    file.write_text("giver tls:h:1\n")
    file.chmod(0o644)
    done = subprocess.run([raw.PROGRAM, f"--socket={tmp_path}/s", f"--peers={file}"], capture_output=True, text=True)
    assert done.returncode and "option peers:" in done.stderr
    conf = tmp_path / "conf"
    conf.write_text(f"peers = {tmp_path}/none\nserver-name = a b\n")
    assert "option server-name: expected" in ctl(None, "config", "check", conf, expect=BAD)
    conf.write_text(f"peers = {tmp_path}/none\n")
    assert "cannot open" in ctl(None, "config", "check", conf, expect=BAD)
