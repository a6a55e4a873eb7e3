"""Programs that fork while their server's worker is killed: real processes, with the library, fork, and multiprocessing.

ARRAYD_KILLS=1000 makes the storm as long as that.
"""
import os
import re
import signal
import subprocess
import sys

import pytest

import raw
from raw import Client, wait_until
from test_exports import program
from test_recovery import HERE, LATE, OPEN, kill
from test_recovery_fork import stopped


@pytest.fixture(params=["", "late"])
def server(request, start):
    return start(*OPEN, env=LATE if request.param else {})


HEAD = """
import multiprocessing, os, signal, socket, sys

def killed(then):
    print("now", flush=True)
    assert sys.stdin.readline()
    return then

def in_child(call):
    # Whether that is so in a child, which ends without a word.
    ours, theirs = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(ours)
        try:
            os.write(theirs, b"y" if call() else b"n")
        finally:
            os._exit(0)
    os.close(theirs)
    return pid, ours

def answer(child):
    pid, ours = child
    said = os.read(ours, 1)
    os.close(ours)
    assert os.waitpid(pid, 0)[1] == 0
    return said == b"y"

def same(array, values):
    return np.array_equal(array.get(), values)

x = np.random.default_rng(1).random(SIZE)
a = ad.asarray(x)
"""
PROGRAMS = {
    # Programs by what has been sent when the worker is killed, and what has not.
    "before": "assert answer(in_child(lambda: killed(True) and same(a + 1, x + 1)))",
    "between": """
b = a * 2
assert answer(in_child(lambda: same(b, x * 2) and killed(True) and same(a + b, x + x * 2) and killed(True) and same(b, x * 2)))
assert same(b, x * 2)
""",
    "both write": """
ours, theirs = os.pipe()
def child():
    global a
    a += 1
    ad.sync()
    os.read(ours, 1)
    killed(0)
    a *= 2
    return same(a, (x - 5 + 1) * 2)
a -= 5
child = in_child(child)
a += 5
ad.sync()
os.write(theirs, b"x")
assert answer(child) and same(a, x - 5 + 5)
""",
    "the parent is away": """
ad.sync()
killed(0)
assert answer(in_child(lambda: same(a, x)))
""",
    "grandchildren": """
def child():
    b = a + 1
    return answer(in_child(lambda: killed(True) and same(a + b, x + (x + 1)))) and same(b, x + 1) and killed(True) and same(b, x + 1)
assert answer(in_child(child)) and answer(in_child(child)) and same(a, x)
""",
    "multiprocessing": """
def work(i):
    return float((a[i:] + i).sum()), os.getpid()

def compare(results):
    for i, (total, pid) in enumerate(results):
        assert pid != os.getpid() and np.isclose(total, (x[i:] + i).sum()), i

with multiprocessing.get_context("fork").Pool(3) as pool:
    compare(pool.map(work, range(20), 1))
    killed(0)
    compare(pool.map(work, range(20), 1))
    going = pool.map_async(work, range(50), 1)
    killed(0)
    compare(going.get(60))
    killed(0)
assert same(a, x)
""",
    "the connection": """
def child():
    ad.sync()
    for fd in map(int, os.listdir("/proc/self/fd")):
        try:
            one = socket.socket(fileno=fd)
        except OSError:
            continue
        one.shutdown(socket.SHUT_RDWR)
        one.detach()
    return same(a + 1, x + 1) and ad.stat()["resumes"] == 1 and killed(True) and same(a, x)
assert answer(in_child(child)) and same(a, x) and ad.stat()["resumes"] < 2
""",
    "the parent has gone": """
if os.fork():
    os._exit(0)
assert same(a, x)
killed(0)
assert same(a + 1, x + 1)
""",
}


def go_through_program(server, text, size):
    text = HEAD.replace("SIZE", str(size)) + text + '\nprint("done", flush=True)\n'
    client = program(text, f"unix:{server.path}")
    try:
        while (line := client.stdout.readline()) == "now\n":
            kill(server)
            client.stdin.write("\n")
            client.stdin.flush()
        assert line == "done\n" and client.wait(raw.WINDOW) == 0, client.stderr.read()
    finally:
        client.kill()
        client.communicate()


@pytest.mark.parametrize("size", [100, 300_000])
@pytest.mark.parametrize("what", PROGRAMS)
def test_programs(server, what, size):
    go_through_program(server, PROGRAMS[what], size)
    last = Client(server.path)
    wait_until(lambda: last.stat("sessions") == 1 and last.stat("used_bytes") == 0, "nothing is left")


HEAVY = """
import os, sys, threading
x = ad.asarray(np.random.default_rng(1).random((1000, 1000)))
for i in range(10):
    x = x @ x / 500
if os.fork():
    END
os.setsid()
print(float(x.sum()) > 0, flush=True)
"""


@pytest.mark.parametrize("way", ["os._exit(0)", "sys.exit()", "os.kill(os.getpid(), 9)"])
def test_a_parent_that_ends_at_once(server, way):
    """The parent ends while the server has much to do before it comes to the fork."""
    with program(HEAVY.replace("END", way), f"unix:{server.path}") as parent:
        assert parent.stdout.read() == "True\n", parent.stderr.read()
    last = Client(server.path)
    wait_until(lambda: last.stat("sessions") == 1 and last.stat("used_bytes") == 0, "nothing is left")


def test_a_parent_that_waits(server):
    """The parent would not notice that its connection is gone, and with it the fork that its child waits for."""
    client = program("""
import os, sys
a = ad.arange(1000)
ad.sync()
print("begun", flush=True)
sys.stdin.readline()
child = os.fork()
if not child:
    print(int(a.sum()), flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert int(a.sum()) == 499500
""", f"unix:{server.path}")
    try:
        for line in client.stdout:
            if line == "begun\n":
                worker = stopped(server)
                client.stdin.write("\n")
                client.stdin.flush()
                child, = wait_for(lambda: raw.children(client.pid))
                kill(server, worker)
            else:
                assert line == "499500\n"
        assert client.wait(raw.WINDOW) == 0, client.stderr.read()
    finally:
        client.kill()
        client.communicate()


def wait_for(what):
    wait_until(what, "it is there")
    return what()


@pytest.mark.parametrize("late", ["", "late"])
def test_a_family_in_a_storm(start, late):
    server = start("--resume-time=15", env=LATE if late else {})
    kills = int(os.environ.get("ARRAYD_KILLS", 24))
    rate = 10 if raw.BACKEND == "cpu" else 0.4  # several processes have to come back, to a worker that may take 2 s
    done = subprocess.run([sys.executable, str(HERE / "family.py"), f"unix:{server.path}", str(server.pid), str(kills),
                           str(kills), str(rate)], capture_output=True, text=True, timeout=60 + kills * (1 + 2 / rate),
                          env={**os.environ, "PYTHONPATH": str(raw.PACKAGE)})
    assert done.returncode == 0, done.stdout + done.stderr
    killed, children, compared, lost = map(int, re.findall(r"\d+", done.stdout))
    assert killed == kills and children > 5 and compared > kills
    last = Client(server.path)
    wait_until(lambda: last.stat("sessions") == 1, "they have gone")  # one that was killed and had said nothing is waited for
    wait_until(lambda: raw.descriptors(server.pid) < 60, "nothing is kept")


def test_forks_while_there_is_no_connection(server):
    """Forks are sent with what else waits for a connection. None has to wait for another, nor for memory that another
    thread is about to share with the server."""
    client = program("""
import os, sys, threading
x = np.random.default_rng(1).random(500_000)
a = ad.arange(1000)
ad.sync()
print("begun", flush=True)
sys.stdin.readline()
threading.Thread(target=ad.sync, daemon=True).start()  # it notices
uploaded = []
upload = threading.Thread(target=lambda: uploaded.append(ad.asarray(x)))
upload.start()
while "arrayd-window" not in open("/proc/self/maps").read():
    pass
b = a + 1
children = []
for i in range(4):
    children.append(os.fork())
    if not children[-1]:
        os._exit(int((a + b).sum()) != 1000000 + 1000 * i)
    b += 1
print("forked", flush=True)
for child in children:
    assert os.waitpid(child, 0)[1] == 0
upload.join()
assert np.array_equal(uploaded[0].get(), x)
print(int(b.sum()), flush=True)
""", f"unix:{server.path}")
    try:
        assert client.stdout.readline() == "begun\n"
        os.kill(server.pid, signal.SIGSTOP)
        worker = server.worker
        os.kill(worker, signal.SIGKILL)
        wait_until(lambda: not raw.alive(worker), "it is gone")
        client.stdin.write("\n")
        client.stdin.flush()
        assert client.stdout.readline() == "forked\n", client.stderr.read()
        os.kill(server.pid, signal.SIGCONT)
        assert client.stdout.readline() == "504500\n" and client.wait(raw.WINDOW) == 0, client.stderr.read()
    finally:
        os.kill(server.pid, signal.SIGCONT)
        client.kill()
        client.communicate()


def test_a_child_takes_the_place_of_the_one_before(start, tmp_path):
    """Processes of a pool are replaced. When the parent sees the end of one it may fork the next."""
    grants = tmp_path / "principals"
    grants.write_text("uid:* sessions=3\n")
    server = start(f"--principals={grants}")
    with program("""
import os
a = ad.arange(100)
def child():
    pid = os.fork()
    if not pid:
        os._exit(int(a.sum()) != 4950)
    return pid
pids = [child(), child()]
for _ in range(30):
    assert os.waitpid(pids.pop(0), 0)[1] == 0
    pids.append(child())
""", f"unix:{server.path}") as parent:
        assert parent.wait(raw.WINDOW) == 0, parent.stderr.read()
