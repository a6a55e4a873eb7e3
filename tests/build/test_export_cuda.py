"""Mapping a GPU's memory, beside a driver that is made for it: what is declared of CUDA is what cuda.h has, every
failure is noticed, and nothing is left behind."""
import pathlib
import subprocess

import pytest

from commands import TOP

HEADERS = [pathlib.Path("/usr/local/cuda/include"), pathlib.Path("/usr/include")]
HERE = pathlib.Path(__file__).parent
CUDA = next((folder for folder in HEADERS if (folder / "cuda.h").exists()), None)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    if not CUDA:
        pytest.skip("no cuda.h")
    folder = tmp_path_factory.mktemp("cuda")
    common = ["gcc", "-std=gnu11", "-O1", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-pthread", f"-I{TOP}",
              f"-I{TOP}/client-c/include"]
    subprocess.run([*common, f"-isystem{CUDA}", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o",
                    folder / "libfake.so", HERE / "fake_libcuda.c"], check=True)
    own = [TOP / "client-c/interop" / name for name in ("driver.c", "export_cuda.c", "lend_cuda.c")]
    subprocess.run([*common, "-o", folder / "program", HERE / "export_cuda.c", *own, "-ldl"], check=True)
    return [folder / "program", folder / "libfake.so"]


@pytest.mark.parametrize("way, calls", [("plain", 11), ("event", 13)])
def test_each_call_fails_once(program, way, calls):
    done = subprocess.run([*program, way], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout) == calls


def test_names_of_memory(program):
    """Memory of cudaMalloc, of the virtual-memory API, of a pool, and managed memory each have a name."""
    done = subprocess.run([*program, "lend"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split() == ["11", "12", "11", "3"]


def test_slabs_leave_nothing_behind(tmp_path):
    """The server's end of it: slabs with a descriptor, plain ones, and those of others, with each call failing once."""
    if not CUDA:
        pytest.skip("no cuda.h")
    common = ["-O1", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", f"-I{TOP}", f"-isystem{CUDA}"]
    subprocess.run(["gcc", "-std=gnu11", *common, "-c", "-o", tmp_path / "fault.o", TOP / "protocol" / "fault.c"],
                   check=True)
    subprocess.run(["g++", "-std=c++17", *common, "-o", tmp_path / "program", HERE / "slab_cuda.cpp",
                    TOP / "kernels/cuda/backend/slab.cpp", TOP / "kernels" / "fault.cpp", tmp_path / "fault.o"],
                   check=True)
    done = subprocess.run([tmp_path / "program"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split() == ["7", "4", "8", "6", "10"]
