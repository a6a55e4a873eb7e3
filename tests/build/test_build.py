"""The results of `make` work: the installation and the demo, and the dependency arrows hold."""
import ctypes
import importlib
import os
import re
import shutil
import signal
import subprocess
import sys

import pytest

from commands import BUILD, TOP, run


@pytest.fixture(scope="session")
def environment(installed):
    """Return the environment for building and running against the installation, with an embedded server of its own."""
    usr = installed / "usr"
    return {**os.environ, "PKG_CONFIG_PATH": str(usr / "lib/pkgconfig"), "PKG_CONFIG_SYSROOT_DIR": str(installed),
            "LD_LIBRARY_PATH": str(usr / "lib"), "PATH": f"{usr / 'bin'}:{os.environ['PATH']}",
            "ARRAYD_URL": "embedded:cpu", "PYTHONPATH": ""}


def test_installed_files(installed):
    there = {str(p.relative_to(installed)) for p in installed.rglob("*") if p.is_file()}
    for wanted in ("usr/bin/arrayd", "usr/bin/arrayctl", "usr/lib/arrayd/arrayd-compile",
                   "usr/lib/libarrayd.a", "usr/lib/libarrayd.so.0", "usr/lib/pkgconfig/arrayd.pc",
                   "usr/include/arrayd/arrayd.h", "usr/include/arrayd/protocol/ufunc.def", "etc/arrayd/arrayd.conf",
                   "usr/share/man/man8/arrayd.8", "usr/share/man/man1/arrayctl.1", "usr/share/man/man5/arrayd.conf.5",
                   "usr/lib/systemd/system/arrayd.service", "usr/lib/systemd/system/arrayd.socket"):
        assert wanted in there
    assert not [p for p in there if "@" in p or "build/" in p]
    assert not re.search(r"@[A-Z]+@", (installed / "usr/lib/systemd/system/arrayd.service").read_text())


def wanted_handlers(folder, tmp_path):
    """The handlers of requests that the worker's table names, when protocol/ is a folder's."""
    command = [os.environ.get("CC", "gcc"), "-std=c11", "-c", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", f"-I{folder}",
               f"-I{TOP}", TOP / "server/worker/handlers.c", "-o", tmp_path / "handlers.o"]
    subprocess.run(command, check=True)
    return set(re.findall(r" U ad__handle_(\w+)", run("nm", "-u", tmp_path / "handlers.o")))


def test_a_request_that_nobody_handles_does_not_link(tmp_path):
    """Each row of class OP and ASK has one function in the worker, and no function is without a row."""
    symbols = run("nm", "--defined-only", BUILD / "lib/libarrayd-server.a")
    defined = re.findall(r" T ad__handle_(\w+)", symbols)  # not parts that the compiler has split off
    assert sorted(defined) == sorted(wanted_handlers(TOP, tmp_path))
    shutil.copytree(TOP / "protocol", tmp_path / "protocol", ignore=shutil.ignore_patterns("*.c", "tls"))
    with open(tmp_path / "protocol/request.def", "a") as table:
        table.write('AD_REQUEST(120, ODD, odd, ASK, PLAIN, SMALL, 0, "u", "?", "request id")\n')
        table.write('AD_REQUEST(121, EVEN, even, TELL, PLAIN, NONE, 0, "u", ".", "a number")\n')
    assert wanted_handlers(tmp_path, tmp_path) - set(defined) == {"odd"}


def test_library_exports_only_its_own(installed):
    names = run("nm", "-D", "--defined-only", installed / "usr/lib/libarrayd.so.0").splitlines()
    symbols = {line.split()[-1].split("@")[0] for line in names if " T " in line}
    assert symbols and all(re.match(r"ad_[a-z]", s) for s in symbols)


STRUCTURES = {"backend_table": {"Fault": "ad_fault", "Info": "ad_device_info", "Check": "ad_check", "Slab": "ad_slab_map",
                                "Op": "ad_op", "Run": "ad_run"},
              "chain_table": {"Scalar": "ad_scalar", "Desc": "ad_desc", "Operand": "ad_operand", "Source": "ad_source",
                              "Node": "ad_chain_node", "Random": "ad_chain_random", "Output": "ad_chain_output",
                              "End": "ad_chain_end", "Chain": "ad_chain", "Job": "ad_compile_job",
                              "Binary": "ad_binary"}}


@pytest.fixture
def tables(monkeypatch):
    """The modules by which the tests on a GPU talk to a backend: what would stop all of those has to be seen here."""
    monkeypatch.syspath_prepend(TOP / "tests/gpu")
    monkeypatch.setenv("ARRAYD_BUILD", str(BUILD))
    return {name: importlib.import_module(name) for name in STRUCTURES}


def test_the_tests_on_a_gpu_know_the_table_of_backends(tables):
    assert tables["backend_table"].Backend("cpu").name == "cpu"


def test_the_tests_on_a_gpu_know_the_structures(tables, tmp_path):
    wanted = [(getattr(tables[module], ours), name) for module, all in STRUCTURES.items() for ours, name in all.items()]
    source = tmp_path / "sizes.c"
    source.write_text('#include <stdio.h>\n#include "kernels/backend.h"\n#include "kernels/compile.h"\nint main(void) {\n' +
                      "".join(f'printf("%zu\\n", sizeof({name}));\n' for _, name in wanted) + "}\n")
    run(shutil.which("cc"), "-std=c11", "-I.", source, "-o", tmp_path / "sizes")
    sizes = run(tmp_path / "sizes").split()
    assert {name: ctypes.sizeof(ours) for ours, name in wanted} == dict(zip([n for _, n in wanted], map(int, sizes)))


def test_library_needs_nothing_but_libc(installed):
    needed = re.findall(r"NEEDED.*\[(.*?)\]", run("readelf", "-d", installed / "usr/lib/libarrayd.so.0"))
    assert set(needed) <= {"libc.so.6", "libm.so.6", "libpthread.so.0", "ld-linux-x86-64.so.2"}


@pytest.mark.skipif(BUILD.name != "release", reason="sanitizers must be linked into the program")
@pytest.mark.parametrize("example", sorted((TOP / "client-c/examples").glob("*.c")), ids=lambda p: p.stem)
@pytest.mark.parametrize("static", [False, True], ids=["shared", "static"])
def test_example(example, static, installed, environment, tmp_path):
    flags = run("pkg-config", "--cflags", "--libs", *(["--static"] if static else []), "arrayd", env=environment).split()
    if static:
        flags = [str(installed / "usr/lib/libarrayd.a") if f == "-larrayd" else f for f in flags]
    program = tmp_path / example.stem
    run("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", example, "-o", program, *flags, env=environment)
    assert run(program, env=environment, cwd=tmp_path)


def test_installed_program_finds_its_worker(installed, environment, tmp_path):
    assert "--socket" in run(installed / "usr/bin/arrayd", "--help", env=environment)
    assert re.search(r"\d+\.\d+\.\d+", run(installed / "usr/bin/arrayd", "--version", env=environment))


@pytest.mark.skipif(BUILD.name != "release", reason="the demo is about speed too")
def test_demo(tmp_path):
    out = run(sys.executable, TOP / "docs/demo/demo.py", "--build", BUILD, "--out", tmp_path, "--quick")
    assert out.count("yes") == 3 and "one index, by arrayd" in out
    assert {p.name for p in tmp_path.glob("*.png")} == {"photograph.png", "quantise.png", "sharpen.png", "equalise.png"}


def test_the_demo_needs_little():
    """The demo's programs import only what is in its own requirements, which are not the tests'."""
    named = {re.match(r"[\w-]+", line)[0] for line in (TOP / "docs/demo/requirements.txt").read_text().splitlines()}
    programs = [*(TOP / "docs/demo").glob("*.py"), *(TOP / "docs/examples/service").glob("*.py")]
    imported = {name for path in programs for name in re.findall(r"^(?:import|from) (\w+)", path.read_text(), re.M)}
    own = {path.stem for path in programs} | {"arrayd"}
    others = {name for name in imported - own if name not in sys.stdlib_module_names}
    assert {{"PIL": "pillow"}.get(name, name) for name in others} | {"uvicorn"} == named  # uvicorn is run as a program


def test_progress_counts_what_make_does(tmp_path):
    """Every step is counted, and make's status and other lines come through."""
    (tmp_path / "Makefile").write_text('all: a b c\na b:\n\t@echo "  CC " release/obj/$@.o\n'
                                       'c:\n\t@echo something else\n\t@test "$(GOOD)"\n')
    for good in (True, False):
        done = subprocess.run([sys.executable, TOP / "deploy/progress.py", "all", *(["GOOD=yes"] if good else [])],
                              cwd=tmp_path, capture_output=True, text=True)
        assert (done.returncode == 0) == good and "something else" in done.stdout
        assert re.search(r"^\[2/2\] CC b\.o", done.stdout, re.M), done.stdout


def test_progress_is_interrupted(tmp_path):
    """Ctrl-C ends make and says how to go on, without a traceback."""
    (tmp_path / "Makefile").write_text("all:\n\t@echo begun\n\t@tail -f /dev/null\n")
    process = subprocess.Popen([sys.executable, TOP / "deploy/progress.py", "all"], cwd=tmp_path, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    assert process.stdout.readline() == "begun\n"
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130 and "the same command goes on from here" in err and "Traceback" not in err, err


def test_python_that_is_too_old(tmp_path):
    """A system whose Python is older than needed is told so before anything is built."""
    for name in ("python3", "python3.11", "python3.12", "python3.13", "python3.14"):
        (tmp_path / name).write_text('#!/bin/sh\ntest "$1" = --version && echo Python 3.10.12\nexit 1\n')
        (tmp_path / name).chmod(0o755)
    installed = subprocess.run(["dpkg-query", "-W", "python3-venv", "python3-dev"], capture_output=True).returncode == 0
    done = subprocess.run([TOP / "deploy/packages.sh", "check"], capture_output=True, text=True,
                          env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "CI": ""})
    assert done.returncode == 1, done.stderr
    assert ("Python 3.11 or newer is needed, and what is here is Python 3.10.12" if installed else "python3-venv") in done.stderr


def test_a_path_with_blanks(tmp_path):
    """The package is made where the path of the checkout has a blank: what make would run keeps it in one word."""
    tree = tmp_path / "a checkout"
    tree.mkdir()
    for name in ("Makefile", "client-python", "kernels", "protocol", "server", "client-c", "deploy", "tests", "docs"):
        (tree / name).symlink_to(TOP / name)
    (tree / "build").mkdir()
    (tree / "build/.deps").touch()
    planned = run("make", "-n", "NVCC=", "python", cwd=tree)
    assert f"'{tree}/client-python/arrayd/.'" in planned and str(tree) not in planned.replace(f"'{tree}/", "")


def test_arrows():
    run(sys.executable, TOP / "tests/lint.py")


def test_the_thread_sanitizer_has_what_the_units_assert():
    """Criterion does not start under it; tests/unit/plain stands in for it, and once had less than was used."""
    unit = TOP / "tests/unit"
    there = set(re.findall(r"#define (cr_\w+)", (unit / "plain/criterion/criterion.h").read_text()))
    used = {name for path in unit.glob("*.[ch]*")
            for name in re.findall(r"\b(cr_(?:assert|expect|skip)\w*)\(", path.read_text())}
    assert used and used <= there, used - there


def test_help_lists_the_targets():
    out = run("make", "help")
    for target in "all demo test test-rest test-all test-gpu bench bundle asan ubsan tsan fuzz lint fmt docs install".split():
        assert re.search(rf"^  .*\b{target}\b", out, re.M), target


def test_manual_pages_name_every_option(installed):
    options = re.findall(r'^AD_OPTION\("([^"]+)"', (TOP / "protocol/option.def").read_text(), re.M)
    manual = (installed / "usr/share/man/man5/arrayd.conf.5").read_text().replace("\\-", "-")
    example = (installed / "etc/arrayd/arrayd.conf").read_text()
    assert options
    for option in options:
        assert f".B {option}\n" in manual and f"#{option} =" in example
    if shutil.which("man"):
        for page in installed.rglob("usr/share/man/man*/*"):
            if page.read_text().startswith(".so "):  # the name of a page that is looked at
                continue
            assert not run("man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", page).startswith("troff")
