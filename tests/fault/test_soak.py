"""The soak (tests/soak), for a moment: make soak runs it for as long as one likes."""
import os
import pathlib
import subprocess
import sys

import pytest

import raw

SOAK = pathlib.Path(__file__).resolve().parents[1] / "soak/soak.py"


SANITIZED = any(word in str(raw.BUILD) for word in ("asan", "tsan", "ubsan"))


@pytest.mark.skipif(SANITIZED or not (raw.BUILD / "python").is_dir(),
                    reason="it watches memory, and needs the package beside the build")
@pytest.mark.parametrize("seconds, trouble", [(9, 0), (6, 1.5)])
def test_a_short_soak(seconds, trouble):
    arguments = ["--build", str(raw.BUILD), f"--seconds={seconds}", f"--trouble={trouble}", "--rounds=3", "--clients=5",
                 "--seed=7"]
    out = subprocess.run([sys.executable, str(SOAK), *arguments], capture_output=True, text=True, timeout=250,
                         env={**os.environ, "PYTHONUNBUFFERED": "1"})
    assert out.returncode == 0, out.stdout + out.stderr
    assert "nothing wrong" in out.stdout
