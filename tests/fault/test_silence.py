"""A worker that is there and does not answer is killed, and another one goes on; one that is busy is not."""
import os
import signal
import time

import numpy as np
import pytest

import raw
from raw import Client, wait_until
from returning import Session
from test_blame import answer, get
from test_recovery import OPEN
from test_recovery_modules import build, launch

KILLED = "it does not answer"


@pytest.fixture(params=[{}, {"ARRAYD_CPU_LATE": "1"}], ids=["at once", "late"])
def server(request, start):
    return start(*OPEN, "--worker-silence=0.5", env=request.param)


def test_a_worker_that_is_stopped(server):
    session = Session(server.path)
    value = np.arange(1000)
    x = session.put(value)
    answer(session, session.ask("sync"))
    for i in range(1, 4):
        os.kill(server.worker, signal.SIGSTOP)
        assert np.array_equal(get(session, session.ufunc("add", "int64", [1000], x, i)), value + i)
        assert sum(KILLED in line for line in server.lines) == i
    other = Session(server.path)
    os.kill(server.worker, signal.SIGSTOP)
    assert np.array_equal(get(other, other.put(value)), value)  # what it asks for comes after that
    assert np.array_equal(get(session, x), value)


def test_one_that_nobody_uses(server):
    """The worker is stopped and nobody minds, until somebody comes."""
    os.kill(server.worker, signal.SIGSTOP)
    session = Session(server.path)
    assert get(session, session.put(np.arange(5))).tolist() == list(range(5))
    assert server.said(KILLED)


@raw.cpu_only
def test_a_kernel_that_stops_its_worker(start):
    """The kernel is left out in the end, as one that kills its worker is."""
    server = start(*OPEN, "--worker-silence=0.2")
    session = Session(server.path)
    value = np.arange(9)
    x, z = [session.fresh(), raw.DTYPES.index("int64"), [3]], session.put(value)
    build(session, 1, 'extern "C" int raise(int); extern "C" __global__ void stop(long long *x) { raise(19); x[0] = 1; }')
    launch(session, 1, "stop", [x])
    with pytest.raises(raw.Failed, match="crashed 3 times while executing it .it did not answer any more."):
        get(session, [x[0], x[1], 0, x[2]])
    assert np.array_equal(get(session, z), value)
    assert sum(KILLED in line for line in server.lines) == 3


@raw.cpu_only
def test_a_worker_that_is_busy(start):
    """However long it takes, also where the thread that would answer executes it."""
    server = start(*OPEN, "--worker-silence=0.2")
    session, worker = Session(server.path), server.worker
    x = [session.fresh(), raw.DTYPES.index("int64"), [3]]
    build(session, 1, """
struct timespec_ { long s, ns; };
extern "C" int clock_gettime(int, timespec_ *);
extern "C" __global__ void busy(long long *x) {
    timespec_ from, now;
    clock_gettime(1, &from);
    do clock_gettime(1, &now); while (now.s - from.s + 1e-9 * (now.ns - from.ns) < 1.5);
    x[0] = x[1] = x[2] = 7;
}""")
    launch(session, 1, "busy", [x], block=1)
    assert session.get([x[0], x[1], 0, x[2]]).tolist() == [7] * 3
    assert server.worker == worker and not server.said(KILLED)


def test_time_in_which_nobody_looked_does_not_count(start):
    """Client and server are stopped, as on a machine that is suspended, and go on."""
    server = start("--worker-silence=2")
    client, worker = Client(server.path), server.worker
    x = client.put(np.arange(5))
    client.sync()
    for process in (server.pid, worker):
        os.kill(process, signal.SIGSTOP)
    until = time.monotonic() + 3
    wait_until(lambda: time.monotonic() > until, "that took longer than worker-silence")
    for process in (server.pid, worker):
        os.kill(process, signal.SIGCONT)
    assert client.get(x).tolist() == list(range(5))
    assert server.worker == worker and not server.said(KILLED)


def test_it_can_be_left_alone(start):
    server = start("--worker-silence=0")
    client, worker = Client(server.path), server.worker
    client.sync()
    os.kill(worker, signal.SIGSTOP)
    until = time.monotonic() + 1
    wait_until(lambda: time.monotonic() > until, "nothing happens")
    os.kill(worker, signal.SIGCONT)
    client.sync()
    assert server.worker == worker
