"""Kernels of users outlive their worker: another one builds their modules again before it launches what comes next.

ARRAYD_KILLS=200 makes the storms as long as that.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest

import raw
from raw import Failed, wait_until
from returning import Session
from test_recovery import DROPPED, HERE, LATE, OPEN, kill, journal

PLAIN = r"""
extern "C" __global__ void twice(long long *x) { x[threadIdx.x] *= 2; }
extern "C" __global__ void copy(long long *y, const long long *x) { y[threadIdx.x] = x[threadIdx.x] + ADDED; }
extern "C" __global__ void shared(long long *x, int n) {
    extern __shared__ long long part[];
    part[n - 1 - threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = part[n - 1];
    if (x[threadIdx.x] == -12345) printf("%s %lld\n", __func__, x[0]);
}
template <typename T, int N> __global__ void grow(T *x) { x[threadIdx.x] += N; }
"""
VARIABLES = r"""
__device__ long long count = 5;
__constant__ long long table[3] = {1, 2, 3};
extern "C" __global__ void next(long long *x) { x[threadIdx.x] = ++count + table[1]; }
extern "C" __global__ void look(long long *x) { x[threadIdx.x] = count; }
"""
DEEP = 'template <int N> struct f { static const int v = f<N - 1>::v + f<N - 2>::v * 0; int m[N]; };' \
    'template <> struct f<0> { static const int v = 0; }; template <> struct f<1> { static const int v = 1; };' \
    'extern "C" __global__ void deep(long long *x) { x[0] = f<%d>::v; }'


@pytest.fixture(params=["", "late"])
def late(request):
    return LATE if request.param else {}


@pytest.fixture
def server(start, late):
    return start(*OPEN, env=late)


def build(session, number, source, options=(), names=()):
    values, log = session.reply(session.ask("build", number, source, list(options), list(names)))
    assert values[0], log


def launch(session, module, kernel, written=(), read=(), values=(), grid=1, block=3, shared=0):
    kinds = [0] * len(written) + [1] * len(read) + [2] * len(values)
    session.op("launch", module, kernel, [grid, 1, 1, block, 1, 1, shared, *kinds], list(written), list(read),
               list(values))


def doubled(session, module, values=(0, 1, 2)):
    """A kernel of PLAIN does what it should."""
    x = session.put(np.array(values))
    launch(session, module, "twice", [x])
    assert session.get(x).tolist() == [2 * v for v in values]
    session.free(x)


def again(server, *sessions):
    kill(server)
    for session in sessions:
        session.come_back()


def test_launching_just_works(server):
    """Options, name expressions and what was set of a kernel included; all that a module holds is freed with it."""
    session = Session(server.path)
    n = 8000  # bytes of shared memory beyond what a kernel has unless more is set
    build(session, 1, PLAIN, ["-DADDED=7"], ["grow<long long, 4>", "&grow<int, 1>"])
    build(session, 2, PLAIN, ["-DADDED=1000"])
    session.op("kernel_set", 1, "shared", n * 8 + 1, 0, 0)
    session.op("kernel_set", 2, "copy", 0, 0, 2)
    begin = np.arange(3)
    x = session.put(begin)
    for i in range(4):
        launch(session, 1, "twice", [x])
        y = session.put(np.zeros(3, np.int64))
        z = session.put(np.zeros(3, np.int64))
        launch(session, 2, "copy", [z], [x])
        launch(session, 1, "copy", [y], [x])
        launch(session, 1, "grow<long long, 4>", [y])
        x = session.put(np.array([5, 6, 7]))
        launch(session, 1, "shared", [x], values=[(3).to_bytes(4, "little")], shared=n * 8)
        assert session.get(x).tolist() == [5, 5, 5]
        want = begin * 2
        assert session.get(y).tolist() == (want + 11).tolist() and session.get(z).tolist() == (want + 1000).tolist()
        begin = np.arange(3) + i
        x = session.put(begin)
        session.sync()
        again(server, session)
        facts, _ = session.reply(session.ask("kernel", 1, "shared"))
        assert facts[8] == n * 8
    session.op("module_drop", 1)
    session.sync()
    again(server, session)
    launch(session, 1, "twice", [x])
    with pytest.raises(Failed, match="no module 1"):
        session.sync()
    doubled(session, 2)
    session.op("module_drop", 2)
    build(session, 1, PLAIN, ["-DADDED=3"])
    again(server, session)
    doubled(session, 1)


def test_what_was_on_its_way_is_launched_once(server):
    """Arrays that a kernel under way was given may be lost, as nobody knows what it writes. Nothing else is."""
    session, rng = Session(server.path), np.random.default_rng(4)
    build(session, 1, PLAIN, ["-DADDED=1"])
    lost = 0
    for _ in range(12):
        x = session.put(np.zeros(3, np.int64))
        n = int(rng.integers(20, 300))
        for i in range(n):
            y = [session.fresh(), raw.DTYPES.index("int64"), [3]]
            launch(session, 1, "copy", [y], [x])
            session.free(x)
            x = [y[0], y[1], 0, y[2]]
            if i % 40 == 39:
                session.flush()
        session.flush()
        kill(server)
        session.come_back()
        try:
            assert session.get(x).tolist() == [n] * 3
        except Failed as error:
            assert "in place" in error.text
            lost += 1
    assert lost < 12


def test_variables_are_as_they_were_set_up_or_lost(server):
    """Until a kernel was launched or a client has seen one, the next worker sets the variables up, too."""
    session = Session(server.path)
    build(session, 1, VARIABLES)
    build(session, 2, VARIABLES, ["-DSEEN"])
    build(session, 3, VARIABLES, ["-DDROPPED"])
    x = session.put(np.zeros(3, np.int64))
    again(server, session)
    again(server, session)
    launch(session, 1, "next", [x], block=1)
    assert session.get(x).tolist() == [8, 0, 0]
    seen = session.fresh()
    assert session.reply(session.ask("global", 2, "table", seen))[0] == [24]
    assert session.get([seen, x[1], 0, [3]]).tolist() == [1, 2, 3]
    for _ in range(2):
        again(server, session)
        with pytest.raises(Failed, match="variables with it"):
            session.get([seen, x[1], 0, [3]])
        for module, kernel in ((1, "next"), (1, "look"), (2, "look")):
            y = session.put(np.zeros(3, np.int64))
            launch(session, module, kernel, [y])
            with pytest.raises(Failed, match=f"module {module} with it: its variables were lost") as failed:
                session.get(y)
            assert failed.value.name == "launch"
            for request, *more in (("kernel", "look"), ("global", "count", session.fresh())):
                with pytest.raises(Failed, match="variables were lost"):
                    session.reply(session.ask(request, module, *more))
        assert session.get(x).tolist() == [8, 0, 0]
    launch(session, 3, "look", [x])
    assert session.get(x).tolist() == [5, 5, 5]
    session.op("module_drop", 1)
    build(session, 1, VARIABLES)
    launch(session, 1, "next", [x], block=1)
    assert session.get(x).tolist() == [8, 5, 5]


def test_a_launch_that_was_under_way_finds_new_variables(server):
    """A launch that is executed again begins with what the worker before had begun with."""
    session = Session(server.path)
    build(session, 1, VARIABLES)
    session.sync()
    x = [session.fresh(), raw.DTYPES.index("int64"), [3]]
    worker = server.worker
    os.kill(worker, 19)  # SIGSTOP: it has all of this before it, or has done it when it is killed
    launch(session, 1, "next", [x], block=1)
    session.flush()
    kill(server, worker)
    session.come_back()
    assert session.get([x[0], x[1], 0, [1]]).tolist() == [8]


@pytest.mark.parametrize("how", ["kept", "removed", "damaged", "none"])
def test_the_cache(start, late, tmp_path, how):
    """Binaries on disk are loaded. Where there is none, the source is compiled again."""
    folder = tmp_path / "kernels"
    server = start(*OPEN, f"--kernels-cache={'none' if how == 'none' else folder}", env=late)
    session = Session(server.path)
    for i in range(4):
        build(session, i + 1, PLAIN, [f"-DADDED={i}"])
    for path in folder.glob("*.kernel"):
        if how == "removed":
            path.unlink()
        elif how == "damaged":
            data = bytearray(path.read_bytes())
            data[1000] ^= 1
            path.write_bytes(data)
    again(server, session)
    for i in range(4):
        doubled(session, i + 1)
    compiled = session.stat("compiled")
    assert compiled == (0 if how == "kept" else 4)


def test_the_compiler_is_gone(start, late, tmp_path):
    """A module that cannot be built says why, and is built as soon as it can be."""
    for name in ("arrayd", "arrayd-worker", "arrayd-compile", "arrayd-paths.so"):
        shutil.copy(raw.PROGRAM.parent / name, tmp_path)
    backend = f"libarrayd-{raw.BACKEND}.so"
    (tmp_path / backend).symlink_to(raw.PROGRAM.parent / backend)
    server = start(*OPEN, env=late, program=tmp_path / "arrayd")
    session = Session(server.path)
    build(session, 1, PLAIN, ["-DADDED=1"])
    session.sync()
    (tmp_path / "arrayd-compile").rename(tmp_path / "gone")
    again(server, session)
    for _ in range(3):
        x = session.put(np.arange(3))
        launch(session, 1, "twice", [x])
        with pytest.raises(Failed, match="module 1 with it: arrayd-compile is not beside this program") as failed:
            session.get(x)
        assert failed.value.error == "device_lost"
    wait_until(lambda: server.said("module lost"), "the log says so")
    assert sum("module lost" in line for line in server.lines) == 1
    (tmp_path / "gone").rename(tmp_path / "arrayd-compile")
    again(server, session)
    doubled(session, 1)


def test_fifty_modules(start, late, tmp_path):
    """Taking over does not wait for them: each is loaded when it is used."""
    server = start(*OPEN, f"--kernels-cache={tmp_path / 'kernels'}", env=late)
    session = Session(server.path)
    for i in range(50):
        build(session, i + 1, PLAIN, [f"-DADDED={i}"])
    x = session.put(np.arange(3))
    session.sync()
    for _ in range(3):
        kill(server)
        took = int(re.search(r" ms=(\d+)", [line for line in server.lines if "event=recovered" in line][-1])[1])
        begin = time.monotonic()
        session.come_back()
        for i in range(50):
            y = session.put(np.zeros(3, np.int64))
            launch(session, i + 1, "copy", [y], [x])
            assert session.get(y).tolist() == [i, i + 1, i + 2]
            session.free(y)
        print(f"taken over in {took} ms, all of them used in {(time.monotonic() - begin) * 1000:.0f} ms")
        assert took < 20_000  # ms, on the busiest machine; compiling them again takes longer


@raw.cpu_only  # NVRTC is too quick
def test_killed_while_it_compiles(start, late):
    """The first time or again: whoever waits for it has it from the next worker, and others do not wait."""
    server = start(*OPEN, "--kernels-cache=none", env=late)
    session, other = Session(server.path), Session(server.path)
    request = session.ask("build", 1, DEEP % 500, [], [])
    session.flush()
    compiles(server)
    again(server, session, other)
    assert session.reply(request)[0][0]
    x = session.put(np.zeros(3, np.int64))
    session.sync()
    again(server, session, other)
    launch(session, 1, "deep", [x])
    session.flush()
    for _ in range(2):
        compiles(server)
        begin = time.monotonic()
        y = other.put(np.arange(5))
        assert other.get(y).tolist() == list(range(5))
        print(f"another session has its answer after {(time.monotonic() - begin) * 1000:.1f} ms")
        assert compiling(server), "the compiler was too quick for this test"
        again(server, session, other)
    assert session.get(x)[0] == 1


def compiling(server):
    """Tell whether arrayd-compile runs for the server's worker."""
    worker = server.worker
    children = f"/proc/{worker}/task/*/children"
    return any(path.read_text().split() for path in pathlib.Path("/").glob(children[1:]))


def compiles(server):
    wait_until(lambda: server.worker and compiling(server), "the compiler is at work")


@raw.cpu_only  # the host's exit; tests/gpu/test_lost.py has others
@pytest.mark.parametrize("body", ["_exit(3);", "_exit(5);", "*(volatile long long *)(x[0] - x[0]) = 1;"],
                         ids=["unsaid", "as of another build", "said"])
@pytest.mark.parametrize("arrays", ["none", "fresh"])
def test_a_kernel_that_kills_its_worker(start, late, body, arrays):
    """The kernel is not launched for ever, though it could be: the session goes on without it."""
    server = start(*OPEN, env=late)
    session, other = Session(server.path), Session(server.path)
    source = f'extern "C" void _exit(int); extern "C" __global__ void wild(long long *x) {{ {body} }}' \
        'extern "C" __global__ void none() { long long *x = (long long *)&x; ' + body + ' }'
    build(session, 1, source)
    build(session, 2, PLAIN, ["-DADDED=1"])
    z = session.put(np.arange(9))
    session.sync()
    x = [session.fresh(), raw.DTYPES.index("int64"), [3]]
    if arrays == "none":
        launch(session, 1, "none")
    else:
        launch(session, 1, "wild", [x])
    outlive(server, session, z)
    if arrays == "none":
        assert session.failed
    else:
        with pytest.raises(Failed, match="worker died|worker crashed 3 times"):
            session.get([x[0], x[1], 0, x[2]])
    assert session.get(z).tolist() == list(range(9))
    doubled(session, 2)
    other.come_back()
    other.sync()


def outlive(server, session, good):
    """Check that what the session has sent kills workers, until one has done with it, and reads a good array."""
    request = session.ask("read", good)  # it comes behind what kills them
    wait_until(lambda: server.said("event=recovered"), "the worker is gone, and another one there")
    wait_until(lambda: has_answer(session, request), "workers do not die any more")


def has_answer(session, request):
    try:
        session.come_back()
        session.reply(request)
        return True
    except Failed as error:  # of the launch, which no array carries
        assert "worker died" in error.text or "worker crashed 3 times" in error.text
        session.failed = True
        return True
    except (raw.Closed, OSError) as error:
        assert not getattr(error, "text", ""), error
        return False


@raw.cpu_only  # code of the host
def test_setting_up_that_kills_workers(start, late):
    """Code of the user runs then, and may do it only the second time."""
    server = start(*OPEN, env=late)
    session = Session(server.path)
    file = server.folder / "second" if isinstance(server.folder, pathlib.Path) else f"{server.folder}/second"
    source = 'extern "C" int mkdir(const char *, unsigned); extern "C" int access(const char *, int);' \
        'extern "C" void _exit(int);' \
        f'static int f() {{ const char *p = "{file}"; if (!access(p, 0)) _exit(3); mkdir(p, 0700); return 1; }}' \
        '__device__ int v = f(); extern "C" __global__ void look(long long *x) { x[0] = v; }'
    build(session, 1, source)
    x, z = session.put(np.zeros(3, np.int64)), session.put(np.arange(3))
    session.sync()
    kill(server)
    session.come_back()
    launch(session, 1, "look", [x])
    outlive(server, session, z)
    with pytest.raises(Failed, match="setting it up killed a worker"):
        session.get(x)
    build(session, 2, PLAIN, ["-DADDED=1"])
    doubled(session, 2)
    again(server, session)
    launch(session, 1, "look", [session.put(np.zeros(3, np.int64))])
    doubled(session, 2)


def test_a_source_that_was_scribbled_on(server):
    """Other code must not be built of it."""
    session = Session(server.path)
    build(session, 1, PLAIN, ["-DADDED=424242"])
    build(session, 2, PLAIN, ["-DADDED=434343"])
    x = session.put(np.arange(3))
    session.sync()
    worker = server.worker
    os.kill(worker, 19)
    with open(journal(server), "r+b") as file:
        data, at, found = file.read(32 << 20), -1, 0
        while (at := data.find(b"424242\0", at + 1)) >= 0:
            file.seek(at)
            file.write(b"424243")
            found += 1
    assert found
    kill(server, worker)
    session.come_back()
    y = session.put(np.zeros(3, np.int64))
    launch(session, 1, "copy", [y], [x])
    with pytest.raises(Failed, match="what it was made from was lost"):
        session.get(y)
    y = session.put(np.zeros(3, np.int64))
    launch(session, 2, "copy", [y], [x])
    assert session.get(y).tolist() == [434343, 434344, 434345]


def test_sources_are_limited(start, late):
    server = start(*OPEN, env=late)
    session = Session(server.path)
    source = PLAIN + "//" + "x" * 890_000
    with pytest.raises(Failed, match="more than 256 MiB"):
        for i in range(1, 1000):
            build(session, i, source, ["-DADDED=1"])
    assert i > 290
    for k in range(1, i):
        session.op("module_drop", k)
    session.sync()  # until then it may be needed again
    build(session, 1, source, ["-DADDED=1"])
    doubled(session, 1)


def test_a_session_that_has_ended(server):
    """Nothing of its modules is taken over."""
    one, two = Session(server.path), Session(server.path)
    for session in (one, two):
        build(session, 1, PLAIN, ["-DADDED=1"])
        session.sync()
    one.send(raw.frame(flags=4))
    one.close()
    wait_until(lambda: two.stat("sessions") == 1, "it has gone")
    again(server, two)
    doubled(two, 1)
    assert {name: two.stat(name) for name in DROPPED[:4]} == dict.fromkeys(DROPPED[:4], 0)


def test_programs_go_on(start, late):
    """Objects of every kind, in one program after another kill of its worker; and one that has lost its variables."""
    server = start(*OPEN, env=late)
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(server.pid)], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "ARRAYD_URL": f"unix:{server.path}",
                               "PYTHONPATH": f"{raw.PACKAGE}:{HERE}"})
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split() == ["good"] * 3 + ["lost", "built", "again"]


PROGRAM = r"""
import os, signal, sys, time
import numpy as np, arrayd as ad
from storm import worker_of
from storm_kernels import Kernels

def kill():
    before = worker_of(int(sys.argv[1]))
    os.kill(before, signal.SIGKILL)

program = Kernels(3, [1, 1000])
for _ in range(3):
    program.pairs = []
    for _ in range(4):
        program.upload()
    for kind in program.kinds:
        kind()
    for a, x in program.pairs:
        assert np.array_equal(a.get(), x)
    kill()
    print("good")
module = ad.RawModule(code='__device__ int n = 3; extern "C" __global__ void k(int *x) { x[0] = n++; }')
x = ad.zeros(1, dtype="int32")
module.get_function("k")((1,), (1,), (x,))
assert x.get()[0] == 3
kill()
module.get_function("k")((1,), (1,), (x,))
try:
    x.get()
except ad.DeviceLostError as error:
    assert "variables were lost" in str(error), error
    print("lost")
ad.clear_memo()
x = ad.zeros(1, dtype="int32")
module.get_function("k")((1,), (1,), (x,))
assert x.get()[0] == 3
print("built again")
"""


def test_storm_of_kernels(start, late, tmp_path):
    """A program of kernels while its worker is killed at random times: it notices nothing but what was changed in place."""
    storm(start(*OPEN, f"--kernels-cache={tmp_path / 'kernels'}", env=late))


def test_storm_of_kernels_and_a_bad_disk(start, late, tmp_path):
    server = start(*OPEN, f"--kernels-cache={tmp_path / 'kernels'}", env=late)
    storm(server, str(tmp_path / "kernels"))


def storm(server, *more):
    kills = int(os.environ.get("ARRAYD_KILLS", 12))
    done = subprocess.run([sys.executable, str(HERE / "storm_kernels.py"), f"unix:{server.path}", str(server.pid),
                           str(kills), str(kills), "20000", "30", *more], capture_output=True, text=True,
                          timeout=120 + 10 * kills)
    assert done.returncode == 0, done.stdout + done.stderr
    print(done.stdout)
    killed, compared, *_ = map(int, re.findall(r"\d+", done.stdout))
    assert killed == kills and compared >= kills
    wait_until(lambda: raw.descriptors(server.pid) < 60, "nothing is kept")
