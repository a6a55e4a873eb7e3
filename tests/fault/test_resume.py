"""Sessions whose connection breaks are taken up again: everything that was asked for is done, and once."""
import fcntl
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys

import numpy as np
import pytest

import raw
from cutting import Proxy
from raw import Client, Closed, frame, message, wait_until
from returning import LEAVE, RESUME, TAKEN, Session, add_one, note, refused, tcp_of
from test_exports import outcome
from test_recovery import kill

PROTOCOL, TIMEOUT = 9, 14
OPEN = ["--tcp=127.0.0.1:0", "--tcp-open=yes"]
HERE = pathlib.Path(__file__).parent
ENOUGH = 1 << 40
SANITIZED = any(word in str(raw.BUILD) for word in ("asan", "tsan", "ubsan"))


# ---- every byte ----

@pytest.fixture(params=["unix", "tcp"])
def address(request, start):
    server = start(*OPEN)
    return server.path if request.param == "unix" else tcp_of(server)


def test_a_frame_cut_at_any_byte_is_executed_once(address):
    session = Session(address)
    x = session.put(np.zeros(3, np.int64))
    session.sync()
    data = frame(add_one(session, x) + message("write", x[0], 16), (7).to_bytes(8, "little"))
    for n in range(len(data) + 1):
        before = len(session.sent)
        session.some(data, n)
        session.operations += 2
        assert session.come_back() <= before + n
        values = session.get(x)
        assert values.tolist() == [n + 1, n + 1, 7]
    assert session.stat("resumes") == len(data) + 1


def test_an_answer_cut_at_any_byte_comes_once(address):
    session = Session(address)
    values = np.arange(10)
    x = session.put(values)
    session.sync()
    for n in range(16 + 8 + 80):
        request = session.ask("read", x)
        first = session.exactly(n)
        session.come_back()
        session.begun += first
        assert np.frombuffer(session.reply(request)[1], np.int64).tolist() == values.tolist()
        if n % 32 == 31:
            session.send(note(TAKEN, session.received))
            session.sync()


def test_a_window_whose_frame_is_cut(start):
    server = start()
    session = Session(server.path)
    x = session.put(np.zeros(100))
    session.sync()
    size = 1 << 16
    for window in range(1, 40):
        fd = os.memfd_create("window", os.MFD_ALLOW_SEALING)
        os.ftruncate(fd, size)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        os.pwrite(fd, np.full(100, float(window)).tobytes(), 0)
        data = frame(message("window", window, size))
        session.sent += data
        n = window % (len(data) + 1)
        if n:
            socket.send_fds(session.socket, [data[:1]], [fd])
            session.socket.sendall(data[1:n])
        before = len(session.sent) - len(data)
        session.socket.close()
        s, answer = session.ask_back()
        session.socket, session.secret, had = s, answer[1], answer[2]
        assert before <= had <= before + n  # what was not read yet is lost
        if had == before:  # with its first byte the descriptor is lost, too
            socket.send_fds(s, [data[:1]], [fd])
            had += 1
        s.sendall(session.sent[had:])
        session.op("load", x[0], 0, window, 0, 800)
        session.op("window_drop", window)
        assert session.get(x).tolist() == [float(window)] * 100
        os.close(fd)


# ---- secrets ----

def test_a_secret_is_good_once(address):
    session = Session(address)
    x = session.put(np.arange(5.0))
    first = session.secret
    session.come_back()
    assert session.secret != first
    session.sync()  # from now on the server knows that the new one has come
    assert "used before" in refused(session, secret=first)
    assert session.get(x).tolist() == [0, 1, 2, 3, 4]
    second = session.secret
    session.come_back()
    session.sync()
    for secret in (first, second, bytes(16), os.urandom(16)):
        refused(session, secret=secret)
    assert session.get(x).tolist() == [0, 1, 2, 3, 4]


def test_an_answer_that_is_lost_can_be_asked_for_again(address):
    session = Session(address)
    x = session.put(np.arange(5.0))
    session.flush()
    for _ in range(3):  # nobody reads what the server says
        s, answer = session.ask_back()
        assert answer[0] == raw.REQUEST["resumed"]
        s.close()
    session.come_back()
    assert session.get(x).tolist() == [0, 1, 2, 3, 4]
    one, answer = session.ask_back()  # the next secret has come, but nothing after it: both are good
    one.close()
    session.come_back(secret=answer[1])
    assert session.get(x).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("killed", [False, True])
def test_an_attempt_that_was_given_up_comes_after_the_next(start, killed):
    """The attempt's bytes were on their way. A client that has read an answer goes on with that, though others have
    been given since."""
    server = start()
    session = Session(server.path)
    x = session.put(np.arange(5.0))
    session.sync()
    for _ in range(3):
        first = session.secret
        _, good = session.ask_back()
        answers = [session.ask_back()[1] for _ in range(3)]
        if killed:
            kill(server)
        session.come_back(secret=good[1])
        assert session.get(x).tolist() == [0, 1, 2, 3, 4]
        for secret in (first, good[1], *(a[1] for a in answers)):
            refused(session, secret=secret)


def test_the_old_connection_is_closed(address):
    """A laptop slept, an address changed: to the server the old one looks alive."""
    session = Session(address)
    x = session.put(np.arange(5.0))
    session.sync()
    old = session.socket
    session.come_back(close=False)
    old.settimeout(raw.WINDOW)
    with pytest.raises((ConnectionError, AssertionError)):
        assert old.recv(1)
    assert session.get(x).tolist() == [0, 1, 2, 3, 4]


# ---- refusals ----

def test_what_is_not_there_is_refused(start):
    server = start(*OPEN)
    bystander, session = Client(server.path), Session(server.path)
    x = session.put(np.arange(5.0))
    session.sync()
    assert "over" in refused(session, session=session.id + 1000)
    assert "over" in refused(session, session=2**62 | 1)
    assert "not been executed" in refused(session, session=2**63, code=TIMEOUT)  # a key: that may be yet to come
    assert "anew" in refused(session, instance=session.limits["instance"] ^ 1)
    assert "another principal" in refused(session, address=tcp_of(server))
    assert "more bytes" in refused(session, received=session.received + 1)
    assert refused(session, code=10, version=2)
    ordinary = bystander.welcome
    with pytest.raises(Closed) as closed:
        session.come_back(close=False, session=ordinary[3], secret=ordinary[4], received=0)
    assert closed.value.code == RESUME
    bystander.sync()
    assert session.get(x).tolist() == [0, 1, 2, 3, 4]
    session.send(note(TAKEN, session.received))
    session.sync()
    assert "fewer bytes" in refused(session, received=1)
    session.sync()


def test_another_principals_session(start, place):
    place.add("bob")
    server = start(*place.options("tcp"))
    address = tcp_of(server)
    alice = Session(address, token=place.token["alice"])
    x = alice.put(np.arange(5.0))
    alice.sync()
    assert "another principal" in refused(alice, options={"token": place.token["bob"]})
    assert refused(alice, code=12, options={})
    alice.come_back()
    assert alice.get(x).tolist() == [0, 1, 2, 3, 4]


def test_what_is_too_much_to_keep_is_refused(start):
    server = start("--output-limit=1M")
    session = Session(server.path)
    x = session.put(np.zeros(1 << 17, np.uint8))
    for _ in range(4):
        session.get(x)
    assert "too much" in refused(session, received=0)
    session.get(x)  # the connection that there is goes on
    session.come_back()
    session.get(x)


def test_notes_that_cannot_be(start):
    server = start()
    for data in (note(TAKEN, 1 << 40), note(TAKEN | LEAVE), frame(message("sync", 1), flags=TAKEN), note(16)):
        session = Session(server.path)
        session.send(data)
        with pytest.raises(Closed) as closed:
            session.sync()
        assert closed.value.code == PROTOCOL
        refused(session)


# ---- ends ----

def sessions(bystander, count, limit=raw.WINDOW):
    wait_until(lambda: bystander.stat("sessions") == count, f"{count} sessions", limit)


def test_a_session_waits_with_its_arrays(start):
    server = start()
    bystander, session = Client(server.path), Session(server.path)
    x = session.put(np.ones(1 << 20))
    session.sync()
    used = bystander.stat("used_bytes")
    assert used >= 8 << 20
    session.socket.close()
    wait_until(lambda: server.said("session waits"), "it has been noticed")
    assert bystander.stat("sessions") == 2 and bystander.stat("used_bytes") == used
    session.come_back()
    assert session.get(session.sum("float64", x)) == 1 << 20
    session.send(note(LEAVE))
    session.socket.close()
    sessions(bystander, 1)
    refused(session)


def test_a_session_waits_for_so_long(start):
    server = start("--resume-time=0.3")
    bystander, session = Client(server.path), Session(server.path)
    session.sync()
    assert session.limits["resume"] == 300
    session.socket.close()
    wait_until(lambda: server.said("session waits"), "it has been noticed")
    sessions(bystander, 1)
    wait_until(lambda: server.said("has not come back"), "the log says why")
    assert "over" in refused(session)


def test_sessions_that_wait_give_way(start):
    server = start("--sessions=3")
    bystander = Client(server.path)
    first, second = Session(server.path), Session(server.path)
    for each in (first, second):
        each.sync()
    with pytest.raises(Closed) as closed:
        Client(server.path)
    assert closed.value.code == 11
    for n, each in enumerate((first, second)):
        each.socket.close()
        wait_until(lambda n=n: sum("session waits" in line for line in server.lines) == n + 1, "it has been noticed")
    third = Client(server.path)
    third.sync()
    wait_until(lambda: server.said("its place is wanted"), "the first one has gone")
    assert "over" in refused(first)
    second.come_back()
    second.sync()
    with pytest.raises(Closed) as closed:
        Client(server.path)
    assert closed.value.code == 11
    bystander.sync()


def test_resuming_can_be_turned_off(start):
    server = start("--resume-time=0")
    bystander, session = Client(server.path), Session(server.path)
    assert session.features == 0 and session.limits["resume"] == 0
    session.sync()
    session.socket.close()
    sessions(bystander, 1)
    refused(session)


def test_who_does_not_ask_for_it_does_not_come_back(start):
    server = start()
    bystander, client = Client(server.path), Client(server.path)
    assert client.welcome[2] == 0
    client.sync()
    client.close()
    sessions(bystander, 1)
    assert not server.said("session waits")


def test_a_session_that_the_server_ended_is_over(start):
    server = start()
    session = Session(server.path)
    session.send(frame(b"\xc1"))
    with pytest.raises(Closed) as closed:
        session.sync()
    assert closed.value.code == PROTOCOL
    refused(session)


def test_a_server_that_is_started_anew_knows_nobody(start):
    first = start()
    session = Session(first.path)
    session.sync()
    first.expected_status = -signal.SIGKILL
    first.kill()
    start(folder=first.folder)
    assert "anew" in refused(session)


def test_who_leaves_need_not_have_read_everything(start):
    """Sending notices first that the client has gone; what it had sent before that is read all the same. (TCP may throw
    away what was to be sent when a socket is closed that has not been read empty.)"""
    server = start()
    watcher = Client(server.path)
    for _ in range(5):
        session = Session(server.path)
        x = session.put(np.zeros(1 << 20))
        for _ in range(3):
            session.ask("read", x)
        session.exactly(1000)
        session.send(note(LEAVE))
        session.close()
        wait_until(lambda: watcher.stat("sessions") == 1, "it has left")


# ---- the library ----

def program(code, url, *arguments, **more):
    env = {**os.environ, "ARRAYD_URL": url, "PYTHONPATH": str(raw.PACKAGE)}
    return subprocess.Popen([sys.executable, *([code] if isinstance(code, pathlib.Path) else ["-c", code]), *arguments],
                            env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)


def cutting(seed, longest):
    """Budgets: most connections carry a little; some break within a handshake, on the way there or back."""
    rng = random.Random(seed)

    def budgets(_):
        if rng.random() < 0.2:
            few = rng.randrange(150)
            return (few, ENOUGH) if rng.random() < 0.5 else (ENOUGH, few)
        return rng.randrange(longest), rng.randrange(longest)
    return budgets


OPERATIONS = 2000 if SANITIZED else 10000


def test_counting_while_connections_are_cut(start):
    """Two programs at once; what they count and fetch is what NumPy has."""
    server = start(*OPEN)
    with Proxy(tcp_of(server), None, cutting(1, 50000)) as tcp, \
            Proxy(server.path, server.folder + "/p", cutting(2, 30000)):
        counting = HERE / "counting.py"
        programs = [program(counting, f"tcp:127.0.0.1:{tcp.port}", "1", str(OPERATIONS), "60000"),
                    program(counting, f"unix:{server.folder}/p", "2", str(OPERATIONS), "300000")]
        resumes = [int(outcome(each)) for each in programs]
    print(resumes)
    assert min(resumes) > OPERATIONS // 400
    bystander = Client(server.path)
    sessions(bystander, 1)


def test_counting_over_tls(start, place):
    from places import port_of
    server = start(*place.options("tls"))
    with Proxy(("127.0.0.1", port_of(server, "tls")), None, cutting(3, 100000)) as proxy:
        env = {"ARRAYD_TOKEN": place.token["alice"], "ARRAYD_CA": str(place.authority.ca)}
        os.environ.update(env)
        try:
            counting = program(HERE / "counting.py", f"tls:127.0.0.1:{proxy.port}", "3", str(OPERATIONS // 4), "200000")
        finally:
            for key in env:
                del os.environ[key]
        assert int(outcome(counting)) > 5


SUMS = """
import signal, sys, arrayd as ad, numpy as np
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job is begun without it
x = ad.arange(1000)
print("ready", int(x.sum()), flush=True)
for line in sys.stdin:
    try:
        x += 1
        print("added", flush=True)
        print(int(x.sum()), flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    except ConnectionError as e:
        print("lost", e, flush=True)
    except ad.CancelledError as e:
        print("cancelled", e, flush=True)
        x = ad.arange(1000)
"""


def summing(url):
    child = program(SUMS, url, stdin=subprocess.PIPE)
    assert child.stdout.readline() == "ready 499500\n"

    def again():
        child.stdin.write("go\n")
        child.stdin.flush()
        assert child.stdout.readline() == "added\n"
    return child, again


def failing(child):
    """Return what the client says when its session has gone: the addition fails if it knows by then, else the sum."""
    child.stdin.write("go\n")
    child.stdin.flush()
    said = child.stdout.readline()
    return child.stdout.readline() if said == "added\n" else said


def test_a_library_that_is_idle_notices_and_comes_back(start):
    server = start(*OPEN)
    with Proxy(tcp_of(server), None, lambda n: (ENOUGH, ENOUGH)) as proxy:
        child, again = summing(f"tcp:127.0.0.1:{proxy.port}")
        for n in range(3):
            proxy.cut()
            wait_until(lambda n=n: sum("session resumed" in line for line in server.lines) == n + 1, "it has come back")
        again()
        assert child.stdout.readline() == "500500\n"
        child.stdin.close()
        assert child.wait(raw.WINDOW) == 0
    bystander = Client(server.path)
    sessions(bystander, 1)  # it has said goodbye


def test_interrupting_a_library_that_waits(start):
    """Ctrl-C ends the waiting and cancels what is not begun; the session goes on as soon as there is a connection."""
    server = start(*OPEN)
    proxy = Proxy(tcp_of(server), None, lambda n: (ENOUGH, ENOUGH))
    child, again = summing(f"tcp:127.0.0.1:{proxy.port}")
    port = proxy.port
    proxy.close()
    wait_until(lambda: server.said("session waits"), "the server has noticed")
    again()
    child.send_signal(signal.SIGINT)
    assert child.stdout.readline() == "interrupted\n"
    with Proxy(tcp_of(server), port, lambda n: (ENOUGH, ENOUGH)):
        again()
        # The first addition is cancelled, unless the server has begun it before it reads that. No third thing may come.
        answer = child.stdout.readline()
        assert answer.startswith("cancelled") or answer == "501500\n"
        again()
        assert child.stdout.readline() == ("502500\n" if answer[0] == "5" else "500500\n")
        child.stdin.close()
        assert child.wait(raw.WINDOW) == 0


def test_a_library_whose_time_is_over_fails(start):
    server = start(*OPEN, "--resume-time=0.5")
    proxy = Proxy(tcp_of(server), None, lambda n: (ENOUGH, ENOUGH))
    child, _ = summing(f"tcp:127.0.0.1:{proxy.port}")
    proxy.close()
    assert "could not be taken up again" in failing(child)
    assert failing(child).startswith("lost")
    child.stdin.close()
    assert child.wait(raw.WINDOW) == 0
    sessions(Client(server.path), 1)


def test_a_library_whose_server_has_gone_fails_at_once(start):
    server = start()
    child, _ = summing(f"unix:{server.path}")
    server.expected_status = -signal.SIGKILL
    server.kill()
    assert failing(child).startswith("lost connection lost")
    child.stdin.close()
    assert child.wait(raw.WINDOW) == 0


def test_a_killed_client_of_this_machine_is_not_waited_for(start):
    server = start()
    bystander = Client(server.path)
    child, _ = summing(f"unix:{server.path}")
    assert bystander.stat("sessions") == 2
    child.kill()
    child.wait()
    sessions(bystander, 1)
    assert not server.said("has not come back")


THREADS = """
import threading, arrayd as ad, numpy as np
arrays = [ad.zeros(500, np.int64) for _ in range(4)]

def count(x, seed):
    for i in range(1500):
        x += 1
        if i % 50 == seed:
            assert int(x[seed]) == i + 1
            x += ad.asarray(np.ones(500, np.int64))
            x -= 1

threads = [threading.Thread(target=count, args=(x, i)) for i, x in enumerate(arrays)]
[t.start() for t in threads]
[t.join() for t in threads]
assert all((ad.asnumpy(x) == 1500).all() for x in arrays)
print(ad.stat()["resumes"])
"""


def test_several_threads_of_a_library(start):
    server = start(*OPEN)
    with Proxy(tcp_of(server), None, lambda n: (10000 + n * 61 % 9000, 5000 + n * 37 % 5000)) as proxy:
        assert int(outcome(program(THREADS, f"tcp:127.0.0.1:{proxy.port}"))) > 3


FORKS = """
import os, arrayd as ad
x = ad.arange(1000)
for i in range(40):
    x += 1
    child = os.fork()
    if child == 0:
        x += 1  # of the child's
        os._exit(int(x.sum()) != 499500 + 1000 * (i + 2))
    assert os.waitpid(child, 0)[1] == 0
    if i >= 20:  # before, the server has no reason to say how far it is
        assert int(x.sum()) == 499500 + 1000 * (i + 1)
print(ad.stat()["resumes"])
"""


def test_forks_of_a_library(start):
    server = start()
    with Proxy(server.path, server.folder + "/p", lambda n: (ENOUGH, 150 if n else 700)) as proxy:
        assert 0 < int(outcome(program(FORKS, f"unix:{server.folder}/p"))) < proxy.connections
