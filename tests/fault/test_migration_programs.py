"""Programs that begin with others in a worker and get one of their own: real processes, with the library, windows of
shared memory, streams, random generators and forks."""
import os
import pathlib
import shutil
import tempfile

import pytest

import raw
from migrating import worker_of
from places import port_of
from raw import wait_until
from observing import see
from test_exports import outcome, program
from test_recovery import LATE
from test_upgrade import Steady
from upgrading import upgrade

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may have a server of another user")
SERVER_USER = 65533


@pytest.fixture
def open_folder():
    """Make a folder that other users may enter; pytest's own are not for them."""
    with tempfile.TemporaryDirectory(prefix="arrayd-") as name:
        os.chmod(name, 0o755)
        yield pathlib.Path(name)


@pytest.fixture(params=[{}, LATE], ids=["at once", "late"])
def begin(request, start, open_folder):
    """Start a server of another user: this one's programs begin with others, and may run kernels."""
    def make(*options):
        program = open_folder / "arrayd"
        program.write_text(f"#!/bin/sh\nexec setpriv --reuid={SERVER_USER} --regid={SERVER_USER} --clear-groups "
                           f"{raw.PROGRAM} \"$@\"\n")
        program.chmod(0o755)
        folder = open_folder / "socket"
        folder.mkdir()
        os.chown(folder, SERVER_USER, SERVER_USER)
        return start("--socket-mode=0666", "--kernels=unix", "--tcp=127.0.0.1:0", "--tcp-open=yes",
                     "--compile-seconds=60", *options, program=program, folder=str(folder), env=request.param)
    return make


@pytest.fixture
def server(begin):
    return begin()


BYSTANDER = """
import select, sys
x = ad.arange(1000.0)
pid = ad.stat()["worker_pid"]
print("begun", flush=True)
n = 0
while not select.select([sys.stdin], [], [], 0)[0]:
    assert float((x * 2).sum()) == 999000
    n += 1
print(n, ad.stat()["resumes"], pid == ad.stat()["worker_pid"])
"""

PROGRAM = """
import os

def worker():
    return ad.stat()["worker_pid"]

five = ad.RawKernel('extern "C" __global__ void five(double *x) { x[blockIdx.x * blockDim.x + threadIdx.x] += 5; }', "five")
values = np.random.default_rng(1).random(1_000_000)
large, small = ad.asarray(values), ad.zeros(100)
ad.publish("left", large)
theirs, ours = ad.random.default_rng(7), ad.random.default_rng(7)
first = theirs.random(1000).get()
stream = ad.cuda.Stream()
with stream:
    there = ad.asarray(values) * 2
before = worker()

def in_child(call):
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.write(write, b"y" if call() else b"n")
        except BaseException as error:
            os.write(write, repr(error).encode())
        finally:
            os._exit(0)
    os.close(write)
    return pid, read

def answer(child):
    said = os.read(child[1], 1000)
    assert os.waitpid(child[0], 0)[1] == 0 and said == b"y", said

go_read, go_write = os.pipe()
def lives():
    assert os.read(go_read, 1)
    small[:] = 3
    five((1,), (100,), (small,))
    return (small.get() == 8).all() and np.array_equal(large.get(), values) and worker()
child = in_child(lives)
for i in range(1000):
    small += 1
five((1,), (100,), (small,))
for i in range(1000):
    small += 1
assert (small.get() == 2005).all()
assert np.array_equal(large.get(), values)
with stream:
    assert np.array_equal(there.get(), values * 2)
assert np.array_equal(first, ours.random(1000).get())
assert np.array_equal(theirs.random(1000).get(), ours.random(1000).get())
assert np.array_equal(ad.attach("left").get(), values)
after = worker()
os.write(go_write, b"x")
answer(child)
answer(in_child(lambda: (small.get() == 2005).all() and worker() == after))
print(before, after, ad.stat()["resumes"])
"""


def tcp(server):
    return f"tcp:127.0.0.1:{port_of(server, 'tcp')}"


@needs_root
def test_a_program_with_all_there_is(server):
    bystander = program(BYSTANDER, tcp(server))
    assert bystander.stdout.readline() == "begun\n", bystander.communicate()
    before, after, resumes = map(int, outcome(program(PROGRAM, f"unix:{server.path}")).split())
    assert before == worker_of(server, "shared") and after == worker_of(server, "uid:0") and resumes == 1
    out, err = bystander.communicate("stop\n", timeout=raw.WINDOW)
    n, resumed, same = out.split()
    assert int(n) > 0 and resumed == "0" and same == "True", err
    assert sum("principal moved" in line for line in server.lines) == 1


KERNEL = """
import sys
k = ad.RawKernel('extern "C" __global__ void f(int *x) { x[0] = 1; }', "f")
x = ad.zeros(1, dtype="int32")
k((1,), (1,), (x,))
print(int(x[0]), ad.stat()["worker_pid"])
"""


@needs_root
def test_storms_of_its_own_and_of_others(server):
    """Programs that compare all they do with NumPy; in between one of them runs a kernel, and then arrayd is upgraded."""
    mine = [Steady(f"unix:{server.path}", seed) for seed in (1, 2)]
    theirs = Steady(tcp(server), 3)
    shared = worker_of(server, "shared")
    one, pid = map(int, outcome(program(KERNEL, f"unix:{server.path}")).split())
    assert one == 1 and pid == worker_of(server, "uid:0") != shared
    wait_until(lambda: all(steady.check() for steady in (*mine, theirs)) and see(server)["arrayd"]["sessions"] == 3,
               "the others have come back")
    done = theirs.end()
    assert done["resumes"] == 0
    theirs = Steady(tcp(server), 4)
    assert upgrade(server)["lost"] == 0
    for steady in (*mine, theirs):
        assert steady.end()["resumes"] >= 1


LEND = """
import sys
sys.path.insert(0, {folder!r})
from tensors import *
pid = ad.stat()["worker_pid"]
t = Tensor(np.arange(5.0), SHAREABLE)
made = ad.asarray(t, copy=False)
made += 1
ad.sync()
assert ad.session_info()["lent"] == 1 and t.host[0] == 1
print(pid != ad.stat()["worker_pid"])
"""


@needs_root
def test_memory_of_a_program_is_lent_to_its_own_worker(begin, open_folder, backend, driver, monkeypatch):
    """The memory would be lost if there were a move later."""
    shutil.copytree(backend, open_folder / "backend")
    (open_folder / "backend").chmod(0o755)
    server = begin("--backend=cuda", f"--backend-path={open_folder}/backend")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(driver))
    assert outcome(program(LEND.format(folder=str(raw.TOP / "tests/fault")), f"unix:{server.path}")) == "True\n"
    assert server.said("principal moved")
