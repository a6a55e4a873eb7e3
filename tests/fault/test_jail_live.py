"""The jail and the cache as users of a server meet them."""
import os
import select
import shutil
import signal
import subprocess
import sys
import time

import pytest

import jail
import raw
from test_jail import SECRET, alive, below, bombs, processes

from arrayd import _core

pytestmark = pytest.mark.skipif(not hasattr(_core, "build"), reason="this build has no kernels of users")

HEAD = "import sys, time, arrayd as ad\nfrom arrayd import _core\n"
KERNEL = 'extern "C" __global__ void f(int *x) { x[0] = %d; }'


def client(server, code, *arguments):
    """A program with a session of its own; its output is to be read as lines."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("ARRAYD_")}
    environment["ARRAYD_URL"] = "unix:" + server.path
    return subprocess.Popen([sys.executable, "-c", HEAD + code, *arguments], env=environment, text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def run(server, code, *arguments):
    process = client(server, code, *arguments)
    out, error = process.communicate(timeout=raw.WINDOW)
    assert process.returncode == 0, error
    return out


FAILS = """
for argument in sys.argv[1:]:
    try:
        _core.build(argument, (), ())
        print("built")
    except Exception as error:
        print(type(error).__name__, error)
"""


def test_no_byte_of_a_file(server, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text(SECRET + "\n")
    os.mkfifo(tmp_path / "fifo")
    sources = [f'#include "{secret}"\n', f'#line 1 "{secret}"\nint f() {{ return unheard_of; }}\n',
               f'asm(".incbin \\"{secret}\\"");\n', f'#include "{tmp_path}/fifo"\n', '#include "/proc/self/environ"\n']
    out = run(server, FAILS, *sources)
    assert SECRET not in out and "PATH=" not in out
    assert out.count("CompileError") == len(sources), out
    assert not any(SECRET in line for line in server.lines)


def test_options_are_refused(server, tmp_path):
    out = run(server, """
for option in ("--time=" + sys.argv[1], "-I/", "-fplugin=x.so"):
    try:
        _core.build("", (option,), ())
        print("built")
    except Exception as error:
        print(type(error).__name__, error)
""", str(tmp_path / "time"))
    lines = out.splitlines()
    assert len(lines) == 3 and "built" not in lines and "-I/" in lines[1] and "-fplugin=x.so" in lines[2]
    assert not list(tmp_path.iterdir())


def compiles(server):
    """The compilers of the server's jobs, by process id."""
    running, family = processes(), below(server.pid)
    return [p for p in family if p in running and b"cc1plus" in running[p][0]]


def test_a_bomb_keeps_nobody_waiting(start):
    """Beside a compilation that does not end, others are done and operations go on."""
    server = start("--compile-seconds=600")
    bomb = client(server, FAILS, bombs()["macro"])
    raw.wait_until(lambda: compiles(server), "it compiles")
    endless, = compiles(server)
    os.kill(endless, signal.SIGSTOP)  # a stopped compiler takes all the time, and no memory
    run(server, f"""
x = ad.arange(1000.0)
for i in range(6):
    module = _core.build({KERNEL!r} % i, (), ())
    assert float(x.sum()) == 499500
""")
    assert bomb.poll() is None and compiles(server) == [endless]
    bomb.kill()
    bomb.communicate()


def test_a_bomb_is_stopped(start):
    bomb = client(start("--compile-seconds=2"), FAILS, bombs()["macro"])
    out, error = bomb.communicate(timeout=raw.WINDOW)
    assert out.startswith("CompileError") and ("stopped" in out or "memory" in out), (out, error)


@pytest.mark.skipif(jail.BIN.parent.name != "release", reason="a sanitizer takes its time")
def test_a_compiler_that_gets_no_processor_is_waited_for(start):
    """A compiler beside many busy programs gets no processor. The clock does not end it, to be begun again and
    again."""
    server = start("--compile-seconds=1")
    process = client(server, """
for number in sys.stdin:
    _core.build(%r %% int(number), (), ())
    print("built", flush=True)
""" % KERNEL)
    stopped, sent = set(), []

    def stop_compilers():
        running = processes()
        for pid in below(server.pid):
            if pid in running and (b"cc1plus" in running[pid][0] or b"kernel.cu" in running[pid][0]):
                try:
                    os.kill(pid, signal.SIGSTOP)
                    stopped.add(pid)
                except ProcessLookupError:
                    pass
        return stopped & alive(stopped)

    def catch_compiler():
        """A compilation may be over before anybody has seen it. Then another one is asked for."""
        if not sent or select.select([process.stdout], [], [], 0)[0] and process.stdout.readline() == "built\n":
            sent.append(len(sent))
            process.stdin.write(f"{sent[-1]}\n")
            process.stdin.flush()
        return stop_compilers()
    raw.wait_until(catch_compiler, "it compiles")
    begin = time.monotonic()
    raw.wait_until(lambda: time.monotonic() - begin > 10 or not stop_compilers(), "it has waited")
    assert stop_compilers(), "it was ended"
    for pid in stopped & alive(stopped):
        os.kill(pid, signal.SIGCONT)
    out, error = process.communicate(timeout=60)
    assert out == "built\n", (out, error)


def test_a_compilation_that_cannot_be_started_says_so_at_once(start, tmp_path):
    (tmp_path / "bin").mkdir()
    for name in ("arrayd", "arrayd-worker", "libarrayd-cpu.so"):
        shutil.copy2(raw.BUILD / "bin" / name, tmp_path / "bin" / name)
    server = start(program=tmp_path / "bin/arrayd")
    out = run(server, FAILS, KERNEL % 1)
    assert "arrayd-compile is not beside this program" in out, out


COUNTS = "print(*(ad.stat()[n] for n in ('compiled', 'compile_hits_memory', 'compile_hits_disk', 'compile_waiting')))\n"


def test_the_cache(start, tmp_path):
    """All clients of a domain, and the server's next life, share one compilation."""
    options = [f"--kernels-cache={tmp_path}/kernels"]
    code = f"""
x = ad.zeros(1, dtype="int32")
_core.build({KERNEL!r} % 7, (), ()).launch("f", (1, 1, 1), (1, 1, 1), 0, (x,), 1)
assert x.get()[0] == 7
""" + COUNTS
    first = start(*options)
    assert run(first, code).split() == ["1", "0", "0", "0"]
    assert run(first, code).split() == ["1", "1", "0", "0"]
    first.stop()
    second = start(*options)
    assert run(second, code).split() == ["0", "0", "1", "0"]
    path, = (tmp_path / "kernels").glob("*.kernel")
    second.stop()
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    data[200] ^= 1
    path.write_bytes(data)
    third = start(*options)
    assert run(third, code).split() == ["1", "0", "0", "0"]
    raw.wait_until(lambda: third.said("damaged kernel removed"), "it is logged")


def test_a_worker_that_is_killed_leaves_no_compiler(start):
    server = start()
    server.expected_status = None
    bomb = client(server, FAILS, bombs()["macro"])

    raw.wait_until(lambda: compiles(server), "it compiles")
    family = {p for w in raw.children(server.pid) for p in below(w)}
    workers = set(raw.children(server.pid))
    for pid in workers:
        os.kill(pid, 9)
    raw.wait_until(lambda: not alive(family | workers), "they are gone")
    bomb.communicate(timeout=raw.WINDOW)
    server.expected_status = 0
