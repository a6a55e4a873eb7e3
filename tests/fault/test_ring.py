"""Programs whose bytes go through shared memory: results are what they are over the socket, whoever ends in between."""
import os
import pathlib
import signal

import pytest

from raw import wait_until
from returning import tcp_of
from test_exports import outcome
from test_recovery import kill
from test_resume import FORKS, HERE, THREADS, program
from upgrading import upgrade

RING = "--ring=all"
LATE = {"ARRAYD_CPU_LATE": "1"}


@pytest.fixture(params=["", "late"])
def server(request, start):
    return start(RING, env=LATE if request.param else {})


def has_ring(process):
    """Whether the process has mapped a ring."""
    return "arrayd-ring" in pathlib.Path(f"/proc/{process}/maps").read_text()


def url(server):
    return f"unix:{server.path}"


ASKS = """
import os, arrayd as ad, numpy as np
x = ad.arange(1000)
for i in range(3000):
    x += 1
    assert int(x[i % 1000]) == i % 1000 + i + 1
large = np.random.default_rng(1).random(300_000)  # over the socket, in between
for i in range(20):
    y = ad.asarray(large)
    assert float(x.sum()) == 499500 + 3000 * 1000
    assert np.array_equal(ad.asnumpy(y), large)
assert np.array_equal(ad.asnumpy(ad.asarray(np.arange(9000)) + 1), np.arange(1, 9001))  # nearly fills the ring
print("arrayd-ring" in open("/proc/self/maps").read())
"""


def test_a_program_gets_what_it_asks_for(server):
    assert outcome(program(ASKS, url(server))) == "True\n"


def test_several_threads_share_a_ring(server):
    assert outcome(program(THREADS, url(server))) == "0\n"


def test_children_have_rings_of_their_own(server):
    assert outcome(program(FORKS, url(server))) == "0\n"


@pytest.mark.parametrize("option", ["no", "auto"])
def test_other_settings(start, option):
    """With auto it depends on the machine's load whether there is a ring; without, there is none."""
    server = start(f"--ring={option}")
    said = outcome(program(ASKS, url(server)))
    assert said == "False\n" or option == "auto"


KEEPS_ASKING = """
import arrayd as ad
x = ad.arange(9)
while "arrayd-ring" not in open("/proc/self/maps").read():
    assert [int(x.sum()) for _ in range(200)] == 200 * [36]
"""


@pytest.mark.skipif("ARRAYD_RING" in os.environ, reason="the environment says who has a ring")
def test_who_keeps_asking_gets_one_unasked(start):
    outcome(program(KEEPS_ASKING, url(start())))


def test_a_client_over_tcp_has_none(start):
    server = start(RING, "--tcp=127.0.0.1:0", "--tcp-open=yes")
    assert outcome(program(ASKS, "tcp:{}:{}".format(*tcp_of(server)))) == "False\n"


def test_killed_workers_cost_nothing(start):
    """Counting in place, with uploads, downloads and sums, while worker after worker is killed."""
    server = start(RING)
    counting = program(HERE / "counting.py", url(server), "7", "1500", "200000")
    for _ in range(5):
        wait_until(lambda: counting.poll() is not None or has_ring(counting.pid), "the program has a ring")
        if counting.poll() is None:
            kill(server)
    assert int(outcome(counting)) >= 0


def test_an_upgrade_moves_on(server):
    counting = program(HERE / "counting.py", url(server), "8", "1500", "200000")
    for _ in range(2):
        wait_until(lambda: counting.poll() is not None or has_ring(counting.pid), "the program has a ring")
        upgrade(server)
    assert int(outcome(counting)) >= 0


DIES = """
import os, signal, arrayd as ad
x = ad.zeros(8, "int64")
ad.publish("count", x, writable=True)
for i in range(2000):
    x += 1
    if i % 7 == 0:
        int(x[0])  # so that the ring is awake
for i in range(100):
    x += 1
from arrayd import _core
_core.flush()
os.kill(os.getpid(), signal.SIGKILL)
"""
LOOKS = "import arrayd as ad\nx = ad.attach('count')\nprint(*x.tolist())\n"


def test_a_client_that_dies_leaves_whole_operations(server):
    """All that was answered is executed. Bytes in the ring may be, but nothing twice or in part."""
    dying = program(DIES, url(server))
    assert dying.wait() == -signal.SIGKILL, dying.communicate()[1]
    first, *others = map(int, outcome(program(LOOKS, url(server))).split())
    assert 1996 <= first <= 2100 and others == 7 * [first]


def test_a_worker_without_clients_has_no_ring(server):
    outcome(program(ASKS, url(server)))
    wait_until(lambda: not has_ring(server.worker), "the ring is unmapped with its session")


def sleeps(process):
    """Whether a process's first thread waits in the kernel. One that looks at a ring again and again never does."""
    return pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] == "S"


def test_an_idle_client_costs_no_processor(server):
    """Client and worker sleep: nobody looks at a ring for ever."""
    idle = program("import arrayd as ad, sys\nx = ad.arange(9)\n[int(x.sum()) for _ in range(500)]\n"
                   "print('ready', flush=True)\nsys.stdin.read()\n", url(server), stdin=-1)
    assert idle.stdout.readline() == "ready\n"
    wait_until(lambda: sleeps(idle.pid), "the client sleeps")
    wait_until(lambda: sleeps(server.worker), "the worker sleeps")
    idle.communicate("")
