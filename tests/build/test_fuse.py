"""Compilers take the source of chains: NVRTC where it is, and the host's, whose kernels find every element."""
import os
import pathlib
import subprocess

import pytest

from commands import COMMAND

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("ARRAYD_BUILD", TOP / "build" / "release"))


@pytest.mark.parametrize("name", ["fuse_host/kernels_find_their_elements", "fuse_nvrtc/rows_compile",
                                  "fuse_nvrtc/random_chains_compile", "fuse_nvrtc/ends_compile",
                                  "fuse_nvrtc/scans_compile"])
def test_chains(name):
    done = subprocess.run([BUILD / "checks" / "fuse", f"--filter={name}", f"--timeout={int(COMMAND)}"], text=True, timeout=COMMAND,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 0 and "Failing: 0 | Crashing: 0" in done.stdout, done.stdout
    if "Skipped" in done.stdout or "no libnvrtc" in done.stdout:
        pytest.skip("no libnvrtc")
    assert "Tested: 1 | Passing: 1" in done.stdout, done.stdout
