"""The cuda backend where it was built, GPU or not: what it exports, what it needs, and that it says when there is no GPU."""
import os
import pathlib
import re
import subprocess

import pytest

from commands import COMMAND

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("ARRAYD_BUILD", TOP / "build" / "release"))
LIBRARY = BUILD / "bin" / "libarrayd-cuda.so"
pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="built without nvcc")


def run(*command, **options):
    done = subprocess.run(list(map(str, command)), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, timeout=COMMAND, check=False, **options)
    return done.returncode, done.stdout


def test_exports_its_two_tables():
    exported = sorted(line.split()[-1] for line in run("nm", "-D", "--defined-only", LIBRARY)[1].splitlines())
    assert exported == ["ad_backend_get", "ad_part_table_get"]


def test_needs_the_libraries_of_cuda_but_no_driver():
    section = run("readelf", "-d", LIBRARY)[1]
    needed = re.findall(r"NEEDED.*\[lib([^.\]]*)", section)
    assert {"cublas", "cufft", "cusolver"} <= set(needed)
    assert not set(needed) & {"cuda", "cudart", "msgpack-c", "msgpackc", "curand", "nvrtc"}
    assert "$ORIGIN/../../nvidia/cu13/lib:/usr/local/cuda/lib64" in re.search(r"RUNPATH.*\[(.*)\]", section)[1]


def test_says_that_there_is_no_gpu(tmp_path):
    """The program says so, and does not take the processors instead."""
    status, said = run(BUILD / "bin" / "arrayd", "--backend=cuda", f"--socket={tmp_path / 'socket'}",
                       env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1"})
    assert status != 0
    assert "backend cuda: " in said and ("there is no device" in said or "cannot open shared object" in said)
