"""The jail around the compilers: what a hostile source gets of this machine (nothing), and how long it lasts."""
import concurrent.futures
import fcntl
import os
import pathlib
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import pytest

import jail
from jail import CUDA, HOST, OPEN, OWN, Running, compile, job
from raw import WINDOW, wait_until

NVRTC = jail.has_nvrtc()
TARGETS = [HOST, pytest.param(CUDA, marks=pytest.mark.skipif(not NVRTC, reason="there is no libnvrtc here"))]
on_both = pytest.mark.parametrize("target", TARGETS, ids=["host", "cuda"])
cuda = pytest.mark.skipif(not NVRTC, reason="there is no libnvrtc here")
SECRET = "the-combination-is-4711"


def kernel(body="", before=""):
    """A source that both compilers take; on the host __global__ is nothing."""
    return (f'{before}\n#ifndef __CUDACC__\n#define __global__\n#define __device__\n#endif\n'
            f'extern "C" __global__ void f(float *x) {{ {body} }}\n')


def same(word, n):
    return " ".join([word] * n)


# ---- it compiles ----

@on_both
def test_it_compiles(target):
    r = compile(kernel("x[0] = 1;"), target)
    assert r.kind == "made" and r.binary[:4] == b"\x7fELF" and r.log == ""


@on_both
def test_prelude_headers_and_options(target):
    source = '#include <ours/inner.h>\n' + kernel("x[0] = FROM_PRELUDE + FROM_HEADER + FROM_OPTION;")
    r = compile(source, target, prelude="#define FROM_PRELUDE 1\n\n\n",
                headers=[("ours/inner.h", '#include "deep/er.h"\n'), ("ours/deep/er.h", "#define FROM_HEADER 2\n"),
                         ("deep/er.h", "#define FROM_HEADER 2\n")], options=["-D", "FROM_OPTION=3", "--std=c++17"])
    assert r.kind == "made", r.log


@cuda
def test_lowered_names():
    names = ["f<float, 3>", "f<int*, 4>", "space::g"]
    r = compile("template<class T, int n> __global__ void f(T x) {}\nnamespace space { __global__ void g() {} }\n",
                CUDA, names=names)
    assert r.kind == "made", r.log
    assert [n[:2] for n in r.lowered] == ["_Z"] * 3 and len(set(r.lowered)) == 3
    assert all(n.encode() in r.binary for n in r.lowered)
    r = compile("__global__ void f() {}", CUDA, names=["nothing<int>"])
    assert r.kind == "wrong" and "nothing" in r.log


@cuda
def test_cuda_headers_are_there_by_name():
    r = compile("#include <cuda_fp16.h>\n#include <cuda/std/complex>\n"
                "__global__ void f(__half *x) { x[0] = __float2half(2); }", CUDA)
    assert r.kind == "made", r.log[:500]


@cuda
def test_cuda_headers_come_before_ours():
    """CUDA's other headers include these, and need more than ours have."""
    half = (pathlib.Path(__file__).parents[2] / "kernels/run/half.h").read_text()
    r = compile("#include <cooperative_groups.h>\n#include <cuda_fp16.h>\n"
                "__global__ void f(__half2 *x) { cooperative_groups::this_grid().sync(); x[0] = __hadd2(x[0], x[1]); }",
                CUDA, headers=[("cuda_fp16.h", half), ("cuda_bf16.h", half)])
    assert r.kind == "made", r.log[:500]


@on_both
def test_messages_have_the_users_lines(target):
    r = compile("\n\nint g() { return unheard_of; }\n", target, prelude="#define A\n" * 50, headers=[("x.h", "")])
    assert r.kind == "wrong" and re.search(r"^kernel\.cu[:(]3\b", r.log, re.M), r.log
    assert "unheard_of" in r.log and "prelude" not in r.log
    for folder in ("/tmp", "/usr/local", "/root", "/home"):
        assert folder not in r.log


@on_both
def test_warnings_come_with_the_binary(target):
    r = compile(kernel("int unused = 1; return; x[0] = 1;") + "\n#warning look here\n", target)
    assert r.kind == "made" and "look here" in r.log


# ---- failures of this machine, which are not the source's: none of them is "wrong", which would be kept ----

SLOW = """constexpr unsigned long slow() { unsigned long x = 1; for (int i = 0; i < 4000000; i++) x = x * 3 + i; return x; }
static_assert(slow() != 0, "");
"""


def compile_while_files_go(gone):
    """Remove a file, and a header that is read last, once the compiler has begun; its result."""
    running = Running(job(SLOW + "#include <late.h>\n", prelude="#define PRELUDE\n", headers=[("late.h", "int a;\n")],
                          own_options=["-fconstexpr-ops-limit=2000000000", "-fconstexpr-loop-limit=2000000000"], seconds=60))
    result = []
    waiting = threading.Thread(target=lambda: result.append(running.end()))
    waiting.start()
    folders = []

    def is_there():
        folders[:] = [p for p in pathlib.Path("/tmp").glob(f"arrayd-compile-{running.process.pid}-*")
                      if (p / "include/late.h").exists() and (p / "include/late.h").stat().st_size]
        return folders or result
    wait_until(is_there, "the files are there")
    if folders:
        (folders[0] / "include/late.h").unlink(missing_ok=True)
        (folders[0] / gone).unlink(missing_ok=True)
    waiting.join()
    return result[0]


@pytest.mark.parametrize("gone", ["arrayd-prelude.h", "kernel.cu", "include/late.h"])
def test_files_that_somebody_removes(gone):
    """tmpreaper and its likes remove files. The compiler has begun, and has not read yet what comes last. On a machine that
    is busy it may have: then it is tried again."""
    results = iter(lambda: compile_while_files_go(gone), None)
    result = next(r for n, r in enumerate(results) if r.kind != "made" or n == 4)
    assert result.kind == "refused" and "removed" in result.log, (result.kind, result.log)


@pytest.mark.parametrize("said", ["No space left on device", "Too many open files", "cannot execute"])
def test_what_the_compiler_lacks(said):
    assert compile(f"#error {said}\n").kind == "stopped"
    assert compile("#error no\n").kind == "wrong"


# ---- files ----

@pytest.fixture
def secret(tmp_path):
    path = tmp_path / "secret"
    path.write_text(f"{SECRET}\n")
    path.chmod(0o644)
    return path


def inclusions(path):
    quoted = f'"{path}"'
    yield "include", f"#include {quoted}\n"
    yield "angle", f"#include <{path}>\n"
    yield "up", f'#include "../../../../../../..{path}"\n'
    yield "macro", f"#define P {quoted}\n#include P\n"
    yield "next", f"#include_next {quoted}\n"
    yield "import", f"#import {quoted}\n"
    yield "embed", f"const char a[] = {{\n#embed {quoted}\n}};\n"
    yield "incbin", f'asm(".incbin \\"{path}\\"");\n'
    yield "asm include", f'asm(".include \\"{path}\\"");\n'
    yield "device asm", kernel(f'asm(".file 1 \\"{path}\\"\\n.loc 1 1 1");')
    yield "line", f"#line 1 {quoted}\nint g() {{ return unheard_of; }}\n"
    yield "pch", f'#pragma GCC pch_preprocess {quoted}\nint a;\n'
    yield "dependency", f"#pragma GCC dependency {quoted}\nint a;\n"
    yield "module", f"import {quoted};\n"


@on_both
def test_no_byte_of_a_file(target, secret):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        sources = dict(inclusions(secret))
        results = dict(zip(sources, pool.map(lambda s: compile(s, target), sources.values())))
    for name, r in results.items():
        assert SECRET.encode() not in r.raw and b"4711" not in r.raw, name
        assert r.kind in ("wrong", "made"), (name, r.log)
    for name in ("include", "angle", "macro"):
        assert results[name].kind == "wrong" and str(secret) in results[name].log  # the name that was asked for


@on_both
@pytest.mark.parametrize("path", ["/etc/passwd", "/etc/shadow", "/proc/self/environ", "/proc/self/maps",
                                  "/proc/1/cmdline", "/proc/self/mem", "/dev/stdin"])
def test_the_systems_files(target, path):
    r = compile(f'#include "{path}"\n', target)
    assert r.kind == "wrong", r.log
    assert "root:" not in r.log and len(r.log) < 500


def unmarked(log):
    """Return what the compiler says, whether the name that was asked for ends in -not or not, without what it draws
    below."""
    return re.sub(r"[\\^~ ]+", " ", log.replace("-not", ""))


def seen(target, paths, asked="__has_include"):
    """Return which of the paths the compiler says are there."""
    lines = [f'#if {asked}({quoted})\nint seen_{i}_{j};\n#error seen-{i}-\n#endif\n' for i, path in enumerate(paths)
             for j, quoted in enumerate((f'"{path}"', f"<{path}>"))]
    r = compile("".join(lines) + "\nint nothing;\n", target)
    return {str(paths[int(i)]) for i in re.findall(r"seen-(\d+)-", r.log)}


@on_both
def test_whether_a_file_is_there(target, secret):
    """Files outside of the compiler's own folders are not even there, whoever may read them."""
    link = os.readlink("/usr/lib/ssl/certs") if os.path.islink("/usr/lib/ssl/certs") else None
    beyond = [f"/usr/lib/ssl/certs/{name}" for name in sorted(os.listdir(link))[:2]] if link else []
    hidden = secret.parent / "hidden"
    hidden.mkdir(mode=0o700)
    (hidden / "inside").write_text(SECRET)
    there = [secret, hidden / "inside", "/etc/shadow", "/etc/passwd", "/etc/hostname", "/proc/self/environ", "/proc/1/cmdline",
             os.path.realpath(sys.executable) if not sys.executable.startswith("/usr/bin") else "/etc/group",
             __file__, f"../..{secret}", f"../../../../../../../../../..{secret}", f"include/../../..{secret}",
             f"/usr/include/../..{secret}", f"/usr/lib/../../..{secret}", *beyond]
    missing = [f"{path}-not" for path in there]
    assert seen(target, [*there, *missing]) == set()
    assert seen(target, [*there, *missing], "__has_include_next") == set()
    for path in there:
        hides, misses = (compile(f'#include "{p}"\n', target).log for p in (path, f"{path}-not"))
        assert unmarked(hides) == unmarked(misses)


def test_what_the_hosts_compiler_needs_is_there():
    assert seen(HOST, ["stdio.h", "/usr/include/stdio.h", "/usr/include/../include/math.h", "vector", "kernel.cu",
                       "./kernel.cu"]) == {"stdio.h", "/usr/include/stdio.h", "/usr/include/../include/math.h", "vector",
                                           "kernel.cu", "./kernel.cu"}


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, which could look everywhere")
@on_both
def test_whether_a_file_of_roots_is_there(target, tmp_path):
    """Below a folder of mode 0700, for the compiler of root's server and of anybody's."""
    folder = pathlib.Path.home() / f".arrayd-jail-{os.getpid()}"
    folder.mkdir(mode=0o700)
    try:
        (folder / "there").write_text(SECRET)
        assert seen(target, [folder / "there", folder / "not", folder]) == set()
        hides, misses = (unmarked(compile(f'#include "{folder}/there{p}"\n', target).log) for p in ("", "-not"))
        assert hides == misses
    finally:
        (folder / "there").unlink()
        folder.rmdir()


@cuda
def test_paths_that_go_up():
    """CUDA's own headers include one another so; it leads no further than to them."""
    source = "#include <cooperative_groups/reduce.h>\n#include <cooperative_groups/memcpy_async.h>\n" \
        '__global__ void f(int *x) { auto b = cooperative_groups::this_thread_block();' \
        'cooperative_groups::memcpy_async(b, x, x + 4, 16); cooperative_groups::wait(b); }'
    r = compile(source, CUDA)
    assert r.kind == "made", r.log
    for ups in range(2, 12):
        path = "cooperative_groups/" + "../" * ups
        for name in ("etc/passwd", "proc/self/environ"):
            r = compile(f"#if __has_include(<{path}{name}>)\n#error there\n#endif\n", CUDA)
            assert r.kind == "made", r.log


@on_both
def test_a_fifo_does_not_hang(target, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    r = compile(f'#include "{tmp_path}/fifo"\n', target)
    assert r.kind == "wrong"  # a program that is wrong was not stopped


@on_both
def test_no_file_is_written(target, tmp_path):
    tmp_path.chmod(0o777)
    goal = tmp_path / "written"
    for option in (f"--time={goal}", f"--create-pch={goal}", f"-o{goal}", f"-MF{goal}", f"-save-temps={tmp_path}",
                   f"--fdevice-time-trace={goal}"):
        r = compile(kernel(), target, options=[option])
        assert r.kind == "refused" and option[:60] in r.log
    # The jail would stop even what no user can ask for.
    for own in ([f"--time={goal}"], [f"--create-pch={goal}"], ["-MD", f"-MF{goal}"], [f"--fdevice-time-trace={goal}"]):
        compile(kernel(), target, own_options=own)
    compile(f'#pragma hdrstop("{goal}")\nasm(".print \\"x\\"");\n' + kernel(), target)
    assert not list(tmp_path.iterdir())


def test_the_private_folder_goes():
    for frame in (job(kernel()), job("#error no\n"), job(bombs()["macro"], seconds=1)):
        running = Running(frame)
        running.end()
        name = f"arrayd-compile-{running.process.pid}-*"
        assert not [p for place in ("/tmp", "/dev/shm", "/var/tmp") for p in pathlib.Path(place).glob(name)]


def test_a_private_folder_is_its_owners(start):
    """A server that starts removes the folders that nobody keeps, and no other: their makers may live where process ids
    are others."""
    pid = int(pathlib.Path("/proc/sys/kernel/pid_max").read_text()) + 1  # of nobody here
    locks, folders = [], []
    try:
        for _ in range(2):
            made = pathlib.Path(tempfile.mkdtemp(dir="/tmp"))
            (made / "kernel.cu").write_text("")
            locks.append(os.open(made, os.O_RDONLY))
            fcntl.flock(locks[-1], fcntl.LOCK_EX)  # before it has such a name: others may start now
            folders.append(made.rename(made.with_name(f"arrayd-compile-{pid}-{made.name}")))
        kept, left = folders
        os.close(locks.pop())
        start()
        wait_until(lambda: not left.exists(), "somebody has removed it")
        assert (kept / "kernel.cu").exists()
        os.close(locks.pop())
        start()
        wait_until(lambda: not kept.exists(), "somebody has removed it")
    finally:
        for lock in locks:
            os.close(lock)
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)


def test_a_compilation_keeps_its_private_folder():
    """The folder is locked while there is anything in it."""
    running = Running(job(bombs()["macro"], seconds=60))
    running.process.stdin.write(running.frame)
    running.process.stdin.close()
    try:
        def folders():
            name = f"arrayd-compile-{running.process.pid}-*"
            return [f for place in ("/tmp", "/dev/shm", "/var/tmp") for f in pathlib.Path(place).glob(name + "/kernel.cu")]
        until(folders)
        folder = os.open(folders()[0].parent, os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(folder)
    finally:
        running.process.terminate()
        running.process.stdout.read()
        running.process.wait(WINDOW)
        running.process.stdout.close()


# ---- bombs ----

# Compiling this takes a fraction of a second of a processor.
SLOW = ("template<int n, int m> struct S { enum { v = S<n - 1, 2 * m>::v + S<n - 1, 2 * m + 1>::v }; };\n"
        "template<int m> struct S<0, m> { enum { v = m }; };\n" + kernel("x[0] = S<14, 0>::v;"))


def bombs():
    levels = "".join(f"#define {b} {same(a, 10)}\n" for a, b in zip("abcdefgh", "bcdefghi"))
    return {
        "macro": f"#define a +1\n{levels}int x = 0 i;\n",
        "template": "template<int n, int m> struct S { enum { v = S<n - 1, 2 * m>::v + S<n - 1, 2 * m + 1>::v }; };\n"
                    "template<int m> struct S<0, m> { enum { v = m }; };\nint x[S<26, 0>::v > 0];\n",
        "constexpr": "typedef unsigned long L;\n"
                     "constexpr L f(L n) { L s = 0; for (L i = 0; i < n; i++) s += i * i; return s; }\n"
                     "template<L n> struct T { static constexpr L v = f(20000000 + n) + T<n - 1>::v; };\n"
                     "template<> struct T<0> { static constexpr L v = 0; };\nstatic_assert(T<200>::v != 1, \"\");\n",
        "nested": "int x = " + "(" * 200000 + "1" + ")" * 200000 + ";\n",
        "include itself": '#include "kernel.cu"\n#include "kernel.cu"\n',
        "output": "__attribute__((used)) int x[1u << 28] = {1};\n",
        "messages": "#define a y;\n" + levels + "i\n",
    }


@on_both
def test_bombs_end_and_keep_nobody_waiting(target):
    """Each ends within its limits. Small compilations, one after the other, are made beside the one that lasts
    longest."""
    sources = {name: s.replace("int x", "__device__ int x") if target == CUDA else s for name, s in bombs().items()}
    beside = []
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        # The first has the usual limits, the others have less, so that the test is not as long as all of them.
        bombing = [pool.submit(compile, source, target, seconds=1 if i else 5)
                   for i, source in enumerate(sources.values())]
        while not all(b.done() for b in bombing):
            beside.append(compile(kernel(f"x[0] = {len(beside)};"), target))
            concurrent.futures.wait(bombing, 0.3)
    ended = {name: b.result() for name, b in zip(sources, bombing)}
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024  # MiB, of the largest there ever was
    assert children < 2200
    for name, r in ended.items():
        assert r.kind in ("stopped", "wrong", "made"), (name, r.kind, r.log)
        assert len(r.log) <= 65536 + 1024
    assert {n for n, r in ended.items() if r.kind == "stopped"} >= {"macro"}
    assert len(beside) >= 5 and all(r.kind == "made" for r in beside)


@on_both
def test_moderate_nesting_is_no_crash(target):
    device = "__device__ " if target == CUDA else ""
    r = compile(f"{device}int x = " + "(" * 5000 + "1" + ")" * 5000 + ";\n", target)
    assert r.kind in ("made", "wrong"), r.log


def test_limits_are_the_jobs():
    r = Running(job(bombs()["macro"], seconds=1, memory=512 << 20)).end()
    assert r.kind == "stopped" and "by the clock" not in r.log
    r = compile(kernel(), memory=1 << 20)
    assert r.kind == "refused" and "compile-memory" in r.log


def test_who_gets_little_of_a_processor_may_take_long():
    """The time is the processor's. By the clock there is much more, as if many others were at work."""
    running = Running(job(SLOW, seconds=3))
    running.process.stdin.write(running.frame)
    running.process.stdin.close()
    until(lambda: len(below(running.process.pid)) >= 2)
    family = below(running.process.pid)
    for pid in family:
        os.kill(pid, signal.SIGSTOP)
    assert not select.select([running.process.stdout], [], [], 8)[0]
    for pid in family:
        os.kill(pid, signal.SIGCONT)
    assert jail.Result(running.process.stdout.read()).kind == "made"
    running.process.stdout.close()
    running.process.wait(WINDOW)


# ---- what is refused ----

def test_options_are_refused_by_name():
    for option in ("-include", "--pre-include=/etc/passwd", "@/etc/passwd", "-I/", "-fplugin=/tmp/x.so", "--nonsense"):
        for target in (HOST, CUDA):
            r = compile(kernel(), target, options=["-DA", option])
            assert r.kind == "refused" and option in r.log and r.code in (2, 12)


def test_sizes_are_refused():
    assert compile(" " * (1 << 20)).kind == "made"
    for big in (job(" " * ((1 << 20) + 1)), job("", names=["f"] * 257), job("", options=["-DA"] * 129),
                job("", prelude=" " * (9 << 20)), job("", headers=[("x.h", " " * (9 << 20))]), job("\0"),
                job("", headers=[("../x.h", "")]), job("", headers=[("/x.h", "")]),
                job("", arch="sm_90;x", target=CUDA), job(" " * (20 << 20))):
        r = Running(big).end()
        assert r.kind == "refused" and r.code > 0 and r.log


def test_frames_that_are_none():
    for frame in (b"", b"ADJ1", job("")[:-1], job("") + b"x", b"\xff" * 1000):
        r = Running(frame).end()
        assert r.kind == "refused" and "frame" in r.log


@on_both
def test_a_user_may_not_compile_without_landlock(target):
    """The kernel has no Landlock here, which a filter of system calls pretends."""
    program = ("import ctypes, os, struct, sys\n"
               "n = {'x86_64': 444, 'aarch64': 444}[os.uname().machine]\n"  # landlock_create_ruleset
               "code = [(0x20, 0, 0, 0), (0x15, 0, 1, n), (6, 0, 0, 0x50000 | 38), (6, 0, 0, 0x7fff0000)]\n"
               "text = b''.join(struct.pack('HBBI', *c) for c in code)\n"
               "buffer = ctypes.create_string_buffer(text)\n"
               "filter = struct.pack('HxxxxxxQ', len(code), ctypes.addressof(buffer))\n"
               "libc = ctypes.CDLL(None, use_errno=True)\n"
               "assert libc.prctl(38, 1, 0, 0, 0) == 0\n"
               "assert libc.prctl(22, 2, ctypes.c_char_p(filter)) == 0, ctypes.get_errno()\n"
               "os.execve(sys.argv[1], sys.argv[1:], {})\n")

    def run(flags):
        done = subprocess.run([sys.executable, "-c", program, jail.BIN / "arrayd-compile"],
                              input=job(kernel(), target, flags=flags), stdout=subprocess.PIPE, timeout=WINDOW)
        return jail.Result(done.stdout)
    refused = run(0)
    assert refused.kind == "refused" and "compile-jail" in refused.log and refused.code == 12
    assert run(OPEN).kind == "made"
    assert run(OWN).kind == "made"


# ---- processes ----

def processes():
    """Command lines of what runs here, by process id."""
    found = {}
    for p in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            found[int(p.name)] = ((p / "cmdline").read_bytes(), (p / "stat").read_text().rsplit(")", 1)[1].split())
        except OSError:
            pass
    return found


def below(pid):
    """Processes that descend from pid."""
    parents = {p: int(stat[1]) for p, (_, stat) in processes().items()}
    family = {pid}
    while True:
        more = {p for p, parent in parents.items() if parent in family} - family
        if not more:
            return family - {pid}
        family |= more


def alive(pids):
    return {p for p, (_, stat) in processes().items() if p in pids and stat[0] != "Z"}


def until(condition):
    end = time.monotonic() + WINDOW
    while not condition():
        assert time.monotonic() < end
        threading.Event().wait(0.01)


@on_both
@pytest.mark.parametrize("how", ["killed", "closed"])
def test_it_ends_with_whoever_started_it(target, how):
    source = bombs()["macro"].replace("int x", "__device__ int x" if target == CUDA else "int x")
    program = ("import os, subprocess, sys\n"
               "p = subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={})\n"
               "p.stdin.write(sys.stdin.buffer.read()); p.stdin.close()\n"
               "print(p.pid, flush=True)\n"
               "sys.stderr.close() if sys.argv[2] == 'killed' else p.stdout.close()\n"
               "p.wait()\n")
    starter = subprocess.Popen([sys.executable, "-c", program, jail.BIN / "arrayd-compile", how], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE)
    starter.stdin.write(job(source, target, seconds=60))
    starter.stdin.close()
    pid = int(starter.stdout.readline())
    if how == "killed":
        until(lambda: len(below(pid)) >= (1 if target == CUDA else 2))
        family = below(pid) | {pid}
        starter.kill()
        until(lambda: not alive(family))
    starter.wait(WINDOW)  # the child has noticed by itself that nobody reads
    starter.stdout.close()
    assert not alive({pid})


@on_both
def test_it_has_nothing_of_its_starter(target):
    """No environment, descriptors, terminal or group of whoever started it, in no process of it."""
    source = bombs()["macro"].replace("int x", "__device__ int x" if target == CUDA else "int x")
    extra = os.open("/etc/hostname", os.O_RDONLY)
    os.set_inheritable(extra, True)
    process = subprocess.Popen([jail.BIN / "arrayd-compile"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               close_fds=False, env={"SECRET": SECRET})
    try:
        process.stdin.write(job(source, target, seconds=60))
        process.stdin.close()
        until(lambda: len(below(process.pid)) >= (1 if target == CUDA else 2))
        for pid in below(process.pid):
            found = processes().get(pid)
            assert found is None or int(found[1][3]) == process.pid  # the session
            assert found is None or int(found[1][4]) == 0  # the terminal
            if os.geteuid() == 0 and found:
                links = []
                for link in pathlib.Path(f"/proc/{pid}/fd").glob("*"):
                    try:
                        links.append(os.readlink(link))
                    except OSError:
                        pass
                assert "/etc/hostname" not in links
                status = pathlib.Path(f"/proc/{pid}/status").read_text()
                if pid != process.pid and b"cc1plus" in found[0]:
                    assert "NoNewPrivs:\t1" in status and "Seccomp:\t2" in status
                    assert SECRET.encode() not in pathlib.Path(f"/proc/{pid}/environ").read_bytes()
    finally:
        os.close(extra)
        os.kill(process.pid, signal.SIGTERM)
        process.wait(WINDOW)
        process.stdout.close()
