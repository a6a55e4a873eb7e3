import pathlib
import shutil
import subprocess

import pytest

import raw

CUDA = [folder for folder in map(pathlib.Path, ("/usr/local/cuda/include", "/usr/include"))
        if (folder / "cuda.h").exists()]
C = ["cc", "-std=gnu11", "-O1", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-I{raw.TOP}"]


@pytest.fixture(autouse=True)
def leave_nothing():
    yield
    raw.leave_nothing()


@pytest.fixture
def start(request):
    """Start servers; those that still run at the end are stopped and must have nothing to complain about."""
    servers = []

    def make(*options, **more):
        servers.append(raw.Server(*options, **more))
        return servers[-1]

    yield make
    for server in servers:
        status = server.stop()
        expected = getattr(server, "expected_status", 0)
        assert status == expected, "\n".join(server.lines)


@pytest.fixture
def server(start):
    return start()


@pytest.fixture
def installed(tmp_path):
    """A path at which arrayd is installed."""
    from upgrading import Installed
    return Installed(tmp_path)


@pytest.fixture
def place(tmp_path):
    """Make what a server needs that is reached over a network."""
    from places import Place  # its packages are needed by few tests
    return Place(tmp_path)


def make_backend(folder, name, source):
    """A folder with a backend of that name, which uses the cpu backend."""
    if not shutil.which("cc") or not (raw.TOP / "kernels/backend.h").exists():
        pytest.skip("there is no compiler for the backend of this test, or no source")
    subprocess.run([*C, f'-DCPU_BACKEND="{raw.BUILD}/bin/libarrayd-cpu.so"', "-o", folder / f"libarrayd-{name}.so",
                    raw.TOP / "tests/fault" / source, raw.TOP / "protocol/fault.c", "-ldl"], check=True)
    return folder


@pytest.fixture(scope="session")
def backend(tmp_path_factory):
    """The folder of a backend that says it is cuda, of the host's memory, and has handles."""
    return make_backend(tmp_path_factory.mktemp("backend"), "cuda", "handles.c")


@pytest.fixture(scope="session")
def crashing(tmp_path_factory):
    """The folder of a cpu backend that dies of some operations."""
    return make_backend(tmp_path_factory.mktemp("crashing"), "cpu", "crashing.c")


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    """The folder of a CUDA driver for programs beside that backend."""
    if not shutil.which("cc") or not CUDA:
        pytest.skip("there is no compiler for the driver of this test, or no cuda.h")
    folder = tmp_path_factory.mktemp("driver")
    subprocess.run([*C, f"-isystem{CUDA[0]}", "-Wl,-soname,libcuda.so.1", "-o", folder / "libcuda.so.1",
                    raw.TOP / "tests/build/fake_libcuda.c"], check=True)
    return folder
