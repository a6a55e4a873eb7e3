"""The wheels: what a package index asks of them, what they contain, and that they compute where nothing else is."""
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import venv
import zipfile

import numpy
import pytest

from commands import BUILD, TOP, build_wheels, run

pytestmark = pytest.mark.skipif(BUILD.name != "release", reason="wheels are made of the release")
PROGRAMS = {"arrayd", "arrayctl", "arrayd-worker", "arrayd-compile", "arrayd-pull", "arrayd-paths.so",
            "libarrayd-cpu.so"}
TAGS = {"arrayd": r"cp311-abi3-manylinux_2_\d+_x86_64", "arrayd_server": r"py3-none-manylinux_2_\d+_x86_64"}
# A program does to the package what people and tools do before they use it, with NumPy alone beside it.
LOOKING = """
import inspect, io, pydoc, unittest.mock
import arrayd
assert len(dir(arrayd)) > 500 and not hasattr(arrayd, "bfloat16")
members = dict(inspect.getmembers(arrayd))
assert members["sum"] is arrayd.sum
assert "array server" in pydoc.render_doc(arrayd, renderer=pydoc.plaintext)
mock = unittest.mock.create_autospec(arrayd)
mock.sum.return_value = 3
assert mock.sum([1, 2]) == 3
"""


@pytest.fixture(scope="session")
def python(wheels, tmp_path_factory):
    """Makes environments with some of the wheels and NumPy, and gives their Python."""
    def make(*projects):
        folder = tmp_path_factory.mktemp("environment")
        venv.create(folder, symlinks=True)
        site = next(folder.glob("lib/python*/site-packages"))
        for path in pathlib.Path(numpy.__file__).parents[1].glob("numpy*"):
            (site / path.name).symlink_to(path)
        for project in projects:
            run(sys.executable, "-m", "pip", "--python", folder / "bin/python", "install", "--quiet", "--no-deps",
                "--no-index", wheels[project])
        return folder / "bin/python"
    return make


def clean_environment(**more):
    """The environment without what leads to a build."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("ARRAYD_", "PYTHONPATH"))}
    return {**kept, **more}


def read_text(wheel, suffix):
    """A text in a wheel by the end of its name."""
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(next(n for n in archive.namelist() if n.endswith(suffix))).decode()


def list_names(wheel):
    with zipfile.ZipFile(wheel) as archive:
        assert archive.testzip() is None
        return {name for name in archive.namelist() if not name.endswith("/")}


def test_an_index_would_take_them(wheels):
    run(sys.executable, "-m", "twine", "check", "--strict", *wheels.values())
    for project, wheel in wheels.items():
        assert re.fullmatch(rf"{project}-[\d.]+-{TAGS[project]}\.whl", wheel.name)
        text = read_text(wheel, "METADATA")
        assert "\nLicense-Expression: " in text and "\nRequires-Python: >=3.11" in text
        links = re.findall(r"\]\(([^)]+)\)", text)
        assert all(re.match("https?://", link) for link in links), links


def test_client(wheels):
    """The client is thin: no program, no backend, and at most 2 MB."""
    names = list_names(wheels["arrayd"])
    assert wheels["arrayd"].stat().st_size < 2e6
    assert {"arrayd/py.typed", "arrayd/__init__.pyi", "arrayd/_core.abi3.so"} <= names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert {name.split("/")[0].split("-")[0] for name in names} == {"arrayd"}
    assert not [name for name in names if "/bin/" in name or "__pycache__" in name]


def test_server(wheels):
    """The programs and the CPU backend, and no backend that another build has left."""
    names = list_names(wheels["arrayd_server"])
    assert {name.rpartition("/")[2] for name in names if name.startswith("arrayd/bin/")} == PROGRAMS
    scripts = {name.rpartition("/")[2] for name in names if "/scripts/" in name}
    assert scripts == {"arrayd", "arrayctl"}
    version = re.search(r"^VERSION := (\S+)", (TOP / "Makefile").read_text(), re.M)[1]
    assert f"\nRequires-Dist: arrayd=={version}\n" in read_text(wheels["arrayd_server"], "METADATA")


def test_equal_bytes(wheels, tmp_path):
    """Two builds of one checkout are the same file."""
    again = build_wheels(tmp_path, "client")
    assert again["arrayd"].read_bytes() == wheels["arrayd"].read_bytes()


def test_both_compute(python, tmp_path):
    program = python("arrayd", "arrayd_server")
    code = "import arrayd; assert float((arrayd.arange(10) * 2).sum()) == 90; print(arrayd.__file__)"
    where = run(program, "-c", code, cwd=tmp_path, env=clean_environment(ARRAYD_URL="embedded:cpu"))
    assert where.startswith(str(program.parents[1]))
    there = program.parent / "arrayd"
    assert re.fullmatch(r"arrayd [\d.]+\n", run(there, "--version", cwd=tmp_path, env=clean_environment()))
    assert "warm --arch=ARCH" in run(program.parent / "arrayctl", "--help", cwd=tmp_path, env=clean_environment())


def test_a_client_alone_says_what_brings_a_server(python, tmp_path):
    environment = clean_environment(ARRAYD_URL="embedded:cpu", PATH="/nowhere")
    done = subprocess.run([python("arrayd"), "-c", "import arrayd; arrayd.zeros(1)"], capture_output=True, text=True,
                          cwd=tmp_path, env=environment)
    assert done.returncode == 1 and "pip install arrayd-server" in done.stderr


def test_looking_at_the_package_needs_numpy_alone(python, tmp_path):
    run(python("arrayd"), "-c", LOOKING, cwd=tmp_path, env=clean_environment())


@pytest.fixture
def hook():
    """The module that names files to the build front end."""
    spec = importlib.util.spec_from_file_location("wheel_hook", TOP / "deploy/wheels/hook.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("backend, build, reason", [
    ("cuda", "CUDA_QUICK=--Ofast-compile=max", "is compiled without optimisation"),
    ("cpu", "KERNEL_ISAS=v3", "has kernels for the processor of this machine alone")])
def test_a_backend_for_this_machine_alone_is_not_packed(hook, tmp_path, backend, build, reason):
    """A library has the name by which make links what is not built for others."""
    (tmp_path / "nothing.c").write_text("")
    said = run("make", "-n", "programs", "B=build/nothing", "NVCC=nvcc", build)
    name = re.search(rf"-soname,(libarrayd-{backend}-[^, ]*)", said)[1]
    library = tmp_path / f"libarrayd-{backend}.so"
    run("cc", "-shared", f"-Wl,-soname,{name}", "-o", library, tmp_path / "nothing.c")
    with pytest.raises(SystemExit, match=f"not packed: .*libarrayd-{backend}.so {reason}"):
        hook.copy_stripped(library, tmp_path / "packed")
    assert not (tmp_path / "packed").exists()
    run("cc", "-shared", f"-Wl,-soname,libarrayd-{backend}.so", "-o", library, tmp_path / "nothing.c")
    hook.copy_stripped(library, tmp_path / "packed")
    assert shutil.which("strip") is None or (tmp_path / "packed").stat().st_size > 0


def test_wheel_of_cuda(tmp_path):
    """The wheel of the CUDA backend, with a library that stands for what takes nvcc an hour: an index takes it, and it asks
    for the server and for NVIDIA's packages."""
    checkout = tmp_path / "checkout"
    shutil.copytree(TOP / "deploy", checkout / "deploy", ignore=shutil.ignore_patterns("__pycache__"))
    version = re.search(r"^VERSION := (\S+)", (TOP / "Makefile").read_text(), re.M)[1]
    (checkout / "Makefile").write_text(f"VERSION := {version}\ncuda:\n")
    (tmp_path / "stand_in.c").write_text("int ad_backend_get(void) { return 0; }\n")
    library = checkout / "build/release/bin/libarrayd-cuda.so"
    library.parent.mkdir(parents=True)
    run("cc", "-shared", "-fPIC", "-Wl,-soname,libarrayd-cuda.so", "-o", library, tmp_path / "stand_in.c")
    wheel = pathlib.Path(run(sys.executable, checkout / "deploy/wheels/build.py", tmp_path / "dist", "cuda13").strip())
    assert re.fullmatch(rf"arrayd_cuda13-{version}-py3-none-\S*manylinux_2_\d+_x86_64\S*\.whl", wheel.name)
    run(sys.executable, "-m", "twine", "check", "--strict", wheel)
    needs = set(re.findall(r"^Requires-Dist: ([\w-]+)", read_text(wheel, "METADATA"), re.M))
    assert {"arrayd-server", "nvidia-cublas", "nvidia-cuda-nvrtc", "nvidia-cufft", "nvidia-cusolver"} <= needs
    names = list_names(wheel)
    assert "arrayd/bin/libarrayd-cuda.so" in names and any("licenses/" in name for name in names)


def test_pip_installs_a_checkout(tmp_path):
    """`pip install .` makes the client of a checkout and nothing else, by the standard build backend."""
    run(sys.executable, "-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps", "--no-index",
        f"--target={tmp_path}", TOP)
    code = "import arrayd; print(arrayd.__file__, arrayd.__version__)"
    path, version = run(sys.executable, "-c", code, cwd=tmp_path, env=clean_environment(PYTHONPATH=str(tmp_path))).split()
    assert path.startswith(str(tmp_path)) and version in (TOP / "Makefile").read_text().split("\n", 3)[2]
    assert not (tmp_path / "arrayd/bin").exists() and (tmp_path / "arrayd/py.typed").exists()


def test_a_backend_for_this_machine_alone_is_not_installed(tmp_path):
    done = subprocess.run(["make", "-n", "install", f"DESTDIR={tmp_path}", "B=build/nothing", "NVCC=", "KERNEL_ISAS=v2 v3"], cwd=TOP,
                          text=True, capture_output=True)
    assert "libarrayd-cpu.so lacks kernels for v4" in done.stdout + done.stderr
    whole = run("make", "-n", "install", f"DESTDIR={tmp_path}", "B=build/nothing", "NVCC=")
    assert "lacks" not in whole and re.search(r"-soname,libarrayd-cpu\.so[, ]", whole)


def test_source_distribution(tmp_path):
    """The source distribution has what make needs, and nothing that was built. An older one does not stay beside it."""
    for old in ("arrayd-0.0.1.tar.gz", "arrayd_cuda13-0.0.1-py3-none-any.whl"):
        (tmp_path / old).touch()
    run(sys.executable, TOP / "deploy/wheels/build.py", tmp_path, "sdist")
    (archive,) = tmp_path.glob("arrayd-*.tar.gz")
    assert [path.name for path in tmp_path.glob("*.whl")] == ["arrayd_cuda13-0.0.1-py3-none-any.whl"]  # wheels are removed by make wheel alone
    names = {name.partition("/")[2] for name in run("tar", "-tzf", archive).split()}
    assert {"Makefile", "pyproject.toml", "protocol/ufunc.def", "server/front/main.c", "deploy/wheels/hook.py"} <= names
    assert not [name for name in names if name.startswith("build/") or name.endswith((".o", ".so"))]
