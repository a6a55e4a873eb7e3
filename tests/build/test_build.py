"""What `make` leaves behind works: the installation, the wheel, the demo, and the dependency arrows hold."""
import ctypes
import importlib
import os
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

from commands import BUILD, TOP, run


@pytest.fixture(scope="session")
def environment(installed):
    """For building and running against the installation, with an embedded server of its own."""
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


def compiles(folder, source):
    """What the compiler says of a source when protocol/ is a folder's, where there is anything to be said."""
    command = [os.environ.get("CC", "gcc"), "-std=c11", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE",
               f"-I{folder}", f"-I{TOP}", f"-I{TOP / 'client-c/include'}", TOP / source]
    return subprocess.run(command, capture_output=True, text=True).stderr


def test_a_request_that_nobody_answers_does_not_compile(tmp_path):
    """A new row of class ASK, until server/worker/session/asks.c says who answers it."""
    shutil.copytree(TOP / "protocol", tmp_path / "protocol", ignore=shutil.ignore_patterns("*.c", "tls"))
    assert compiles(tmp_path, "server/worker/session/asks.c") == ""
    with open(tmp_path / "protocol/request.def", "a") as table:
        table.write('AD_REQUEST(120, ODD, odd, ASK, "u", "request id")\n')
    assert "ODD" in compiles(tmp_path, "server/worker/session/asks.c")


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


def test_header_is_cplusplus(installed, environment, tmp_path):
    source = tmp_path / "header.cpp"
    source.write_text("#include <arrayd.h>\nint main() { return ad_error_message() == nullptr; }\n")
    flags = run("pkg-config", "--cflags", "--libs", "arrayd", env=environment).split()
    run("c++", "-std=c++20", "-Wall", "-Werror", source, "-o", tmp_path / "header", *flags, env=environment)


def test_installed_program_finds_its_worker(installed, environment, tmp_path):
    assert "--socket" in run(installed / "usr/bin/arrayd", "--help", env=environment)
    assert re.search(r"\d+\.\d+\.\d+", run(installed / "usr/bin/arrayd", "--version", env=environment))


@pytest.fixture(scope="session")
def tree(tmp_path_factory):
    """The package as it is packed, without a backend that `make test` has compiled the quick way."""
    folder, built = tmp_path_factory.mktemp("tree"), BUILD / "python"
    for path in built.rglob("*"):
        place = folder / path.relative_to(built)
        if path.is_dir():
            place.mkdir(parents=True, exist_ok=True)
        elif path.name != "libarrayd-cuda.so" or b"-unoptimised.so" not in path.read_bytes():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(path.resolve())
    return folder


def test_wheel(tree, tmp_path):
    """The wheel, unpacked alone, computes with the server that it contains."""
    name = run(sys.executable, TOP / "client-python/packing.py", tree, tmp_path).strip()
    assert re.fullmatch(r"arrayd-[\d.]+-cp311-abi3-linux_x86_64\.whl", name)
    if BUILD.name != "release":
        return
    run(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", tmp_path / "site",
        tmp_path / name)
    site = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    assert re.fullmatch(r"arrayd [\d.]+\n", run(tmp_path / "site/bin/arrayd", "--version", env=site, cwd=tmp_path))
    assert "warm --arch=ARCH" in run(tmp_path / "site/bin/arrayctl", "--help", env=site, cwd=tmp_path)
    with pytest.raises(AssertionError, match="arrayd: the Python package arrayd is not installed"):
        run(tmp_path / "site/bin/arrayd", env={**os.environ, "PYTHONPATH": ""}, cwd=tmp_path)
    code = "import arrayd; assert float((arrayd.arange(10) * 2).sum()) == 90; print(arrayd.__file__)"
    where = run(sys.executable, "-c", code, cwd=tmp_path,
                env={**site, "ARRAYD_URL": "embedded:cpu"})
    assert where.startswith(str(tmp_path))


def test_wheel_record(tree, tmp_path):
    name = run(sys.executable, TOP / "client-python/packing.py", tree, tmp_path).strip()
    with zipfile.ZipFile(tmp_path / name) as wheel:
        assert wheel.testzip() is None
        record = next(n for n in wheel.namelist() if n.endswith("RECORD"))
        listed = {line.split(",")[0] for line in wheel.read(record).decode().splitlines()}
        assert listed == set(wheel.namelist())
        assert {f"arrayd/bin/{name}" for name in ("arrayd", "arrayd-worker", "arrayd-compile", "libarrayd-cpu.so")} <= listed


def make_quick_backend(path):
    """A library with the name that a backend has which is linked for `make demo` where there is no GPU."""
    path.unlink(missing_ok=True)
    (path.parent / "nothing.c").write_text("")
    said = run("make", "-n", "demo", "B=build/nothing", "NVCC=nvcc", "CUDA_HERE=", "CUDA_QUICK=--Ofast-compile=max")
    name = re.search(r"-soname,(libarrayd-cuda[^, ]*)", said)[1]
    run("cc", "-shared", f"-Wl,-soname,{name}", "-o", path, path.parent / "nothing.c")


def test_a_backend_that_is_not_optimised_is_not_packed(tree, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(tree, copy, symlinks=True)
    make_quick_backend(copy / "arrayd/bin/libarrayd-cuda.so")
    with pytest.raises(AssertionError, match="not packed: .*libarrayd-cuda.so is compiled without optimisation"):
        run(sys.executable, TOP / "client-python/packing.py", copy, tmp_path / "dist")
    assert not list((tmp_path / "dist").iterdir())


@pytest.mark.skipif(BUILD.name != "release", reason="the wheel is the release's")
def test_what_another_build_has_left_is_not_packed(tmp_path):
    """As `make demo` does, before `make wheel NVCC=`."""
    copy = tmp_path / "copy"
    leave = shutil.ignore_patterns("build", ".git", "__pycache__")
    shutil.copytree(TOP, copy, symlinks=True, ignore=leave)
    built = copy / "build" / "release"
    shutil.copytree(BUILD, built, symlinks=True, ignore=shutil.ignore_patterns("cuda-*", "libarrayd-cuda.so", "checks"))
    (copy / "build/venv").symlink_to((TOP / "build/venv").resolve())
    shutil.copy2(TOP / "build/.deps", copy / "build/.deps")
    make_quick_backend(built / "bin/libarrayd-cuda.so")
    (built / "python/arrayd/bin/libarrayd-cuda.so").symlink_to("../../../bin/libarrayd-cuda.so")
    (built / "obj/packaged").write_text("those of make demo\n")
    run("make", "wheel", "NVCC=", cwd=copy)
    with zipfile.ZipFile(next((built / "dist").glob("*.whl"))) as wheel:
        assert [n for n in wheel.namelist() if "libarrayd-" in n] == ["arrayd/bin/libarrayd-cpu.so"]
    assert "bin/libarrayd-cuda" not in run("make", "-n", "bundle", "NVCC=", cwd=copy)


@pytest.mark.skipif(BUILD.name != "release", reason="the demo is about speed too")
def test_demo(tmp_path):
    out = run(sys.executable, TOP / "docs/demo/demo.py", "--build", BUILD, "--out", tmp_path, "--quick")
    assert out.count("yes") == 3
    assert {p.name for p in tmp_path.glob("*.png")} == {"photograph.png", "quantise.png", "sharpen.png", "equalise.png"}


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
            assert not run("man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", page).startswith("troff")
