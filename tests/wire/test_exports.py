"""Exports, section 14 of wire.md, on a live server: memory that another process has mapped, and the leases of it."""
import os
import random
import resource
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest

from test_sharing import STRANGER, refused, whole
from wire_client import ERROR, EXPORT, LOAD, NEW, TIMEOUT, UNPUBLISH, Failed, Server, fresh, view

X = np.arange(1000.0)
LARGE = np.arange(3_000_000.0)
HELD = ("exports", "exported_bytes", "shared_buffers", "shared_bytes", "capabilities", "orphans", "used_bytes")


def until(client, check):
    """The counters, once check holds of them: the server has to notice that somebody has gone."""
    end = time.monotonic() + TIMEOUT
    while not check(counters := client.stat()):
        assert time.monotonic() < end, counters
    return counters


def nothing_left(server):
    with server.client() as client:
        until(client, lambda c: c["sessions"] == 1 and not any(c[name] for name in HELD))


def add_one(client, buffer, values=X):
    client.ufunc("add", "float64", [whole(buffer, values)], [whole(buffer, values), 1.0])


@pytest.fixture(autouse=True)
def clean(server):
    yield
    nothing_left(server)


@pytest.fixture
def one(server):
    with server.client() as client:
        yield client


# ---- what is seen ----

@pytest.mark.parametrize("values", [X, LARGE, np.array([7], np.uint8), np.arange(70_000, dtype=np.int16)],
                         ids=lambda values: str(values.nbytes))
def test_the_array_and_zeros(one, values):
    """Memory is full of other bytes when the array is made, and its mapping has none of them."""
    for _ in range(3):
        one.free(*[one.upload(np.full(values.nbytes, 0xaa, np.uint8)) for _ in range(4)])
    buffer, beside = one.upload(values), one.upload(np.full(5000, 0xbb, np.uint8))
    export = one.export(buffer)
    assert export.memory[:values.nbytes] == values.tobytes()
    assert not np.frombuffer(export.memory, np.uint8)[values.nbytes:].any()
    assert export.size - values.nbytes < 4 << 20
    assert one.read(whole(beside, np.zeros(5000, np.uint8))).sum() == 5000 * 0xbb
    counters = one.stat()
    assert counters["exports"] == 1 and counters["exported_bytes"] == values.nbytes, counters
    export.close()
    until(one, lambda c: not c["exports"])
    assert np.array_equal(one.read(whole(buffer, values)), values)


def test_both_see_what_the_other_writes(one):
    buffer = one.upload(X)
    export = one.export(buffer)
    here = export.array(X)
    add_one(one, buffer)
    one.sync()
    assert np.array_equal(here, X + 1)
    here[10] = -5
    assert one.read(whole(buffer))[10] == -5
    again = one.export(buffer)
    again.array(X)[11] = -6
    assert here[11] == -6 and one.stat()["exports"] == 2
    export.close(), again.close()
    until(one, lambda c: not c["exports"])
    here[12] = -7 # the buffer stays where it is
    assert one.read(whole(buffer))[12] == -7


def test_what_was_queued_before_is_seen(one):
    for _ in range(20):
        values = np.zeros(100_000)
        buffer = one.upload(values)
        for _ in range(50):
            add_one(one, buffer, values)
        export = one.export(buffer)
        assert (export.array(values) == 50).all()
        one.free(buffer)
        assert (export.array(values) == 50).all()
        export.close()


def test_snapshots_stay_what_they_are(server, one):
    """A session that was handed the array before keeps what it was. One that is handed it later shares the memory."""
    buffer = one.upload(X)
    before = one.share(buffer)
    export = one.export(buffer)
    export.array(X)[0] = 99
    with server.client() as other:
        early, _, kind = other.attach(before)
        assert kind == 0 and np.array_equal(other.read(whole(early)), X)
        late, _, kind = other.attach(one.share(buffer))
        assert kind == 1 and other.read(whole(late))[0] == 99
        add_one(other, late)
        assert other.read(whole(late))[1] == 2 == export.array(X)[1]
        theirs = other.export(late) # the same memory, without a copy
        theirs.array(X)[2] = 55
        assert export.array(X)[2] == 55 == one.read(whole(buffer))[2]
        snapshot = other.export(early)
        snapshot.array(X)[3] = 44
        assert export.array(X)[3] == 4 and other.read(whole(early))[3] == 44
    for each in (export, theirs, snapshot):
        each.close()


def test_a_common_array_moves_under_its_holders(server, one):
    """An array that was published to be written lies among others. When it is exported it moves, and all who hold it go
    on."""
    buffer = one.upload(X)
    one.publish("common", whole(buffer), 1)
    with server.client() as other:
        description, writable = other.attach_name("common")
        assert writable
        add_one(other, description[0])
        export = other.export(description[0])
        assert np.array_equal(export.array(X), X + 1)
        add_one(one, buffer)
        one.sync()
        assert np.array_equal(export.array(X), X + 2)
        export.array(X)[0] = -1
        assert other.read(description)[0] == -1 == one.read(whole(buffer))[0]
    one.answer(one.ask(UNPUBLISH, "common"))
    one.free(buffer)
    assert export.array(X)[1] == 3
    export.close()


def test_fork(one):
    """The child's arrays that were exported are the same memory still."""
    buffer, plain = one.upload(X), one.upload(X)
    export = one.export(buffer)
    with one.fork() as child:
        child.receive()
        add_one(child, buffer), add_one(child, plain)
        child.sync()
        assert np.array_equal(export.array(X), X + 1) and np.array_equal(one.read(whole(plain)), X)
        one.free(buffer)
        add_one(child, buffer)
        child.sync()
        assert np.array_equal(export.array(X), X + 2)
    export.close()


# ---- who goes first ----

def test_the_exporter_goes_first(server, one):
    with server.client() as other:
        buffer = other.upload(LARGE)
        export = other.export(buffer)
        bytes_then = one.stat()["used_bytes"]
    until(one, lambda c: c["sessions"] == 1)
    assert one.stat()["exports"] == 1 and one.stat()["orphans"] == 1 and one.stat()["used_bytes"] == bytes_then
    assert np.array_equal(export.array(LARGE), LARGE)
    for _ in range(4): # what the server makes now goes elsewhere
        one.upload(np.full(LARGE.nbytes, 0xcc, np.uint8))
    one.sync()
    assert np.array_equal(export.array(LARGE), LARGE)
    export.close()
    until(one, lambda c: not c["exports"] and not c["orphans"])


def test_memory_is_never_used_again(one):
    """A mapping that stays when the lease is over shows nothing of what comes later."""
    kept = []
    for i in range(30):
        values = np.full(4_000_000 if i % 2 else 500, i, np.uint8)
        buffer = one.upload(values)
        export = one.export(buffer)
        one.free(buffer)
        export.close()
        kept.append((values, export))
        one.free(*[one.upload(np.full(n, 0xdd, np.uint8)) for n in (500, 500, 4_000_000, 4_000_000)])
    one.sync()
    for values, export in kept:
        assert export.memory[:values.nbytes] == values.tobytes() and not any(export.memory[values.nbytes:])


def killed(server, which, work):
    """A child has a session and exports; it is killed with -9 in the middle of `which`, and the lease's socket may
    live on here."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if not pid:
        try:
            with ours, server.client() as client:
                exports = [client.export(client.upload(values)) for values in work]
                if which == "importer":
                    socket.send_fds(theirs, [b"x"], [client.socket.fileno()])
                else:
                    socket.send_fds(theirs, [b"x"], [e.lease.fileno() for e in exports])
                signal.pause()
        finally:
            os._exit(1)
    theirs.close()
    ours.settimeout(TIMEOUT)
    _, descriptors, _, _ = socket.recv_fds(ours, 1, 8)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    ours.close()
    return descriptors


def test_killed_in_either_order_a_hundred_times(server, one):
    """The exporter's session ends while its importer has the lease, or the other way round."""
    pick = random.Random(5)
    pid = one.stat()["worker_pid"]
    for i in range(100):
        work = [np.full(pick.choice((1, 3000, 300_000)), i, np.uint8) for _ in range(2)]
        which = pick.choice(("importer", "exporter"))
        left = killed(server, which, work)
        if which == "importer":
            until(one, lambda c: not c["exports"])
            assert one.stat()["sessions"] == 2 # its connection is here, still
        else:
            until(one, lambda c: c["sessions"] == 1)
            assert one.stat()["exports"] == 2 and one.stat()["exported_bytes"] == sum(x.nbytes for x in work)
        for fd in left:
            os.close(fd)
        until(one, lambda c: c["sessions"] == 1 and not c["exports"])
    counters = until(one, lambda c: not any(c[name] for name in HELD))
    assert counters["worker_pid"] == pid


# ---- all of it at random ----

class Memory:
    """The elements that common memory should hold."""

    def __init__(self, values):
        self.values, self.exports = values, 0


class Model:
    """Sessions with arrays, and exports; each array and export knows its memory."""

    def __init__(self, server, seed):
        self.server, self.pick, self.next = server, random.Random(seed), 0
        self.sessions = [server.client() for _ in range(3)]
        self.arrays, self.exports = [], [] # (session, buffer, memory), (export, memory)

    def make(self):
        session = self.pick.choice(self.sessions)
        values = np.arange(self.pick.choice((1, 60, 5000, 200_000)), dtype=np.int64) + self.pick.randrange(1000)
        self.arrays.append((session, session.upload(values), Memory(values)))

    def add(self):
        session, buffer, memory = self.pick.choice(self.arrays)
        session.ufunc("add", "int64", [whole(buffer, memory.values)], [whole(buffer, memory.values), 1])
        memory.values += 1
        session.sync() # before another one writes there, and before this process looks

    def hand_on(self):
        session, buffer, memory = self.pick.choice(self.arrays)
        other = self.pick.choice(self.sessions)
        theirs, _, kind = other.attach(session.share(buffer, 1))
        assert kind == 1 or not memory.exports
        self.arrays.append((other, theirs, memory if kind else Memory(memory.values.copy())))

    def export(self):
        session, buffer, memory = self.pick.choice(self.arrays)
        self.exports.append((session.export(buffer), memory))
        memory.exports += 1

    def poke(self):
        if not self.exports:
            return
        export, memory = self.pick.choice(self.exports)
        at = self.pick.randrange(memory.values.size)
        export.array(memory.values)[at] = memory.values[at] = self.pick.randrange(1 << 40)

    def free(self):
        session, buffer, _ = self.arrays.pop(self.pick.randrange(len(self.arrays)))
        session.free(buffer)

    def close(self):
        if self.exports:
            export, memory = self.exports.pop(self.pick.randrange(len(self.exports)))
            self.look_at(export, memory)
            export.close()
            memory.exports -= 1

    def leave(self):
        if self.pick.random() < 0.3:
            session = self.sessions.pop(0)
            session.socket.close()
            self.arrays = [each for each in self.arrays if each[0] is not session]
            self.sessions.append(self.server.client())

    def look_at(self, export, memory):
        assert np.array_equal(export.array(memory.values), memory.values)
        assert not np.frombuffer(export.memory, np.uint8)[memory.values.nbytes:].any()

    def look(self):
        session, buffer, memory = self.pick.choice(self.arrays)
        assert np.array_equal(session.read(whole(buffer, memory.values)), memory.values)
        for each in self.exports[-3:]:
            self.look_at(*each)

    def step(self):
        while len(self.arrays) < 4:
            self.make()
        self.pick.choice((self.make, self.add, self.add, self.add, self.hand_on, self.export, self.poke, self.poke,
                          self.free, self.close, self.leave, self.look, self.look))()


@pytest.mark.parametrize("seed", range(2))
def test_chaos(build, tmp_path, seed):
    """Beside a model of what each memory holds. Slabs are small, so that arrays lie in slabs of every kind."""
    with Server(build / "bin" / "arrayd", tmp_path, slab="1M") as server:
        model = Model(server, seed)
        for _ in range(1000):
            model.step()
        for each in model.exports:
            model.look_at(*each)
            each[0].close()
        for session in model.sessions:
            session.socket.close()
        nothing_left(server)


# ---- what is refused ----

def test_refusals(one):
    buffer, empty = one.upload(X), one.new("float64", [0])
    for flags in (3, 4, 1 << 40):
        assert "flags" in refused("VALUE", one.export, buffer, flags)
    assert "no handle" in refused("UNSUPPORTED", one.export, buffer, 1)
    refused("STALE", one.export, 9999)
    assert "no elements" in refused("VALUE", one.export, empty)
    with pytest.raises(Failed) as failed:
        one.answer(one.ask(EXPORT, buffer, 0))
    assert failed.value.code == ERROR["VALUE"] and "Unix socket" in failed.value.text
    for make in (lambda: os.memfd_create("x"), lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).detach(),
                 lambda: socket.socket().detach(), lambda: os.open("/dev/null", os.O_RDWR),
                 lambda: socket.socket(socket.AF_UNIX).detach()):
        fd = make()
        one.request += 1
        one.pass_along(fd, [EXPORT, one.request, buffer, 0])
        os.close(fd)
        with pytest.raises(Failed):
            one.answer(one.request)
    window, memory = one.window(4096) # no descriptor is left over
    memory[:8] = bytes(8)
    one.send([LOAD, buffer, 0, window, 0, 8])
    assert one.read(whole(buffer))[0] == 0
    assert one.stat()["exports"] == 0


def test_a_poisoned_array_tells_why(one):
    buffer = one.id()
    one.send([NEW, fresh(buffer, "float64", [1 << 45])])
    refused("MEMORY", one.export, buffer)
    index = one.id()
    x, far = one.upload(X), one.upload(np.array([5000]))
    one.call("gather", "float64", [fresh(index, "float64", [1])], [whole(x), view(far, "int64", [1])])
    refused("INDEX", one.export, index)


def test_what_is_read_only_is_refused(server, one):
    buffer = one.upload(X)
    one.publish("mine", whole(buffer))
    with server.client() as other:
        description, _ = other.attach_name("mine")
        assert "read-only" in refused("VALUE", other.export, description[0])
    export = one.export(buffer) # the publisher's own goes elsewhere first
    export.array(X)[0] = 9
    with server.client() as other:
        description, _ = other.attach_name("mine")
        assert other.read(description)[0] == 0
    one.answer(one.ask(UNPUBLISH, "mine"))
    export.close()


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to be somebody else")
def test_another_users_memory(build, tmp_path):
    """A session that may write an array of somebody else does so by operations only: memory once given cannot be taken
    back."""
    with Server(build / "bin" / "arrayd", tmp_path, kernels="none") as server, server.client() as one:
        buffer = one.upload(X)
        one.publish("theirs", whole(buffer), 1, "*")
        os.chmod(server.path.parent, 0o755), os.chmod(server.path, 0o777)

        def somebody(code):
            command = [sys.executable, "-c", STRANGER, os.path.dirname(__file__), str(server.path), "54321", code]
            return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=True).stdout.strip()

        attached = "client.attach_name('theirs', 'uid:0')[0][0]"
        assert somebody(f"attempt(client.export, {attached})") == "'VALUE'"
        own = "client.export(client.upload(__import__('numpy').arange(5.0))).memory[8:16]"
        assert somebody(own) == repr(np.float64(1).tobytes())
        one.answer(one.ask(UNPUBLISH, "theirs"))
        until(one, lambda c: c["sessions"] == 1 and not c["exports"])


STRANGER_READS = """
import os, sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from wire_client import Client, view
os.setuid(54321)
client = Client(sys.argv[2])
for request in sys.stdin:
    if request == "attach\\n": array = client.attach_name("x", "uid:0")[0]
    print(np.unique(client.read(array)).tolist(), flush=True)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to be somebody else")
@pytest.mark.parametrize("first", ["attached", "exported"])
def test_a_reader_changes_nothing_for_another_user(build, tmp_path, first):
    """A program could write memory that it said it would read: another user's snapshot lies elsewhere, whoever was first."""
    with Server(build / "bin" / "arrayd", tmp_path, kernels="none") as server, server.client() as one:
        os.chmod(server.path.parent, 0o755), os.chmod(server.path, 0o777)
        buffer = one.upload(np.full(1000, 5.0))
        one.publish("x", whole(buffer), 0, "*")
        somebody = subprocess.Popen([sys.executable, "-c", STRANGER_READS, os.path.dirname(__file__), str(server.path)],
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        with somebody:
            def ask(request):
                print(request, file=somebody.stdin, flush=True)
                return somebody.stdout.readline().strip()

            if first == "attached":
                assert ask("attach") == "[5.0]"
            export = one.export(buffer, 2)
            export.array(X)[:] = 9
            if first == "exported":
                assert ask("attach") == "[9.0]"
                export.array(X)[:] = 7
            assert ask("read") == ("[5.0]" if first == "attached" else "[9.0]")
            somebody.stdin.close()
        one.answer(one.ask(UNPUBLISH, "x"))
        export.close()
        until(one, lambda c: c["sessions"] == 1 and not c["exports"])


def test_a_client_that_goes_in_the_middle(server, one):
    """The client asks, and nobody is there for the answer, at any point."""
    pick = random.Random(6)
    for _ in range(40):
        client = server.client()
        buffer = client.upload(pick.choice((X, LARGE)))
        for _ in range(pick.randrange(30)):
            add_one(client, buffer)
        ours, theirs = socket.socketpair()
        client.pass_along(theirs.fileno(), [EXPORT, 1, buffer, 0])
        theirs.close()
        first, second = (ours, client.socket) if pick.random() < 0.5 else (client.socket, ours)
        first.close()
        if pick.random() < 0.5:
            one.sync()
        second.close()
    until(one, lambda c: c["sessions"] == 1 and not c["exports"])


# ---- limits ----

def test_the_quota(build, tmp_path):
    """Exported memory counts for its principal until the lease is over, also when the session is."""
    with Server(build / "bin" / "arrayd", tmp_path, memory="64M") as server, server.client() as one:
        with server.client() as other:
            export = other.export(other.upload(np.zeros(40 << 20, np.uint8)))
        until(one, lambda c: c["sessions"] == 1)
        assert one.stat()["principal_bytes"] >= 40 << 20
        buffer = one.new("uint8", [30 << 20])
        refused("MEMORY", one.read, view(buffer, "uint8", [1]))
        assert export.memory[:1000] == bytes(1000)
        export.close()
        until(one, lambda c: not c["exports"])
        buffer = one.new("uint8", [30 << 20])
        assert one.read(view(buffer, "uint8", [1])) == 0


def test_so_many_at_a_time(server, one):
    """All of a user's sessions count together. One that is over makes room for another."""
    least, most = 1024 + 200, resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if most != resource.RLIM_INFINITY and most < least:
        pytest.skip("too few descriptors")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], least), most))
    exports = []
    try:
        with server.client() as other:
            buffer, theirs = one.upload(X), other.upload(X)
            exports = [one.export(buffer) for _ in range(600)] + [other.export(theirs) for _ in range(424)]
            assert "1024 exports" in refused("LIMIT", one.export, buffer) == refused("LIMIT", other.export, theirs)
            assert one.stat()["exports"] == 1024 and one.stat()["shared_buffers"] == 2
            exports.pop().close()
            until(one, lambda c: c["exports"] == 1023)
            exports.append(one.export(buffer))
    finally:
        for export in exports:
            export.close()
        exports.clear()
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_the_grant(build, tmp_path):
    rules = tmp_path / "principals"
    rules.write_text(f"uid:{os.getuid()} exports=no\n")
    with Server(build / "bin" / "arrayd", tmp_path, principals=rules) as server, server.client() as one:
        assert "grant exports" in refused("DENIED", one.export, one.upload(X))
        assert one.stat()["exports"] == 0
