"""A worker that is killed while its GPU is at work: another one goes on with what the GPU had passed."""
import os
import pathlib
import re
import subprocess
import sys

from patience import PATIENCE

FAULT = pathlib.Path(__file__).parents[1] / "fault"
SECONDS = int(PATIENCE)  # until there is an answer again: a worker's start takes one on an idle machine


def test_storm(own_server):
    """Fifty kills; each array is what NumPy has, or was being changed in place at that moment and says so."""
    process, url = own_server()
    kills = int(os.environ.get("ARRAYD_KILLS", 50))
    done = subprocess.run([sys.executable, str(FAULT / "storm.py"), url, str(process.pid), str(kills), "1", "300000", str(SECONDS)],
                          capture_output=True, text=True, timeout=6 * SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
    killed, compared, lost, *_ = map(int, re.findall(r"\d+", done.stdout))
    assert killed == kills and compared > kills and lost < compared


def test_storm_where_memory_is_short(own_server):
    """Arrays that have been moved to host memory are lost as well."""
    process, url = own_server("--memory=64M", "--slab=4M", "--host-memory=256M")
    done = subprocess.run([sys.executable, str(FAULT / "storm.py"), url, str(process.pid), "20", "2", "300000", str(SECONDS)],
                          capture_output=True, text=True, timeout=6 * SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr


def test_storm_of_kernels(own_server):
    """Kernels of every kind, some of them with CUDA's headers, in a program whose worker is killed."""
    process, url = own_server()
    kills = 15
    done = subprocess.run([sys.executable, str(FAULT / "storm_kernels.py"), url, str(process.pid), str(kills), "3", "300000",
                           str(SECONDS)], capture_output=True, text=True, timeout=6 * SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
    killed, compared, *_ = map(int, re.findall(r"\d+", done.stdout))
    assert killed == kills and compared > kills
