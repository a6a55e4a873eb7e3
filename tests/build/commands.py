"""Paths of the tree, and commands that must succeed."""
import os
import pathlib
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(TOP / "tests"))
from patience import PATIENCE  # noqa: E402

COMMAND = 5 * PATIENCE  # seconds for one that compiles
BUILD = pathlib.Path(os.environ.get("ARRAYD_BUILD", TOP / "build" / "release"))


def run(*command, **options):
    """Standard output of a command that must succeed."""
    done = subprocess.run(list(map(str, command)), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, timeout=COMMAND, **{"cwd": TOP, **options})
    assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}"
    return done.stdout


def build_wheels(folder, *kinds):
    """Wheels of those kinds in a folder, by their project's name."""
    lines = run(sys.executable, TOP / "deploy/wheels/build.py", folder, *kinds).split()
    return {pathlib.Path(line).name.split("-")[0]: pathlib.Path(line) for line in lines}
