"""Operands that a client writes over while operations run: every row of the tables, beside another user's arrays."""
import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import pytest

import raw
from raw import CALL, REDUCTION, UFUNC

ATTACKER, OTHER = 2001, 2002
PROGRAM = pathlib.Path(__file__).with_name("meanwhile.py")
# What goes by indices or masks is run more often: these were the ones that could be broken.
BY_INDICES = ("gather", "scatter", "compress", "place", "nonzero", "bincount")

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="needs root, to be two other users")


def program(server, *arguments):
    environment = {**os.environ, "ARRAYD_URL": f"unix:{server.path}", "PYTHONPATH": str(raw.PACKAGE)}
    return subprocess.Popen([sys.executable, PROGRAM, *map(str, arguments)], env=environment, text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def outcome(process):
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err[-3000:]
    return json.loads(out.splitlines()[-1])


def attack(start, rows, rounds):
    """Both users are in one worker, as none of them may run kernels; it must be the same one in the end."""
    if raw.BACKEND == "cuda" and not any(map(importlib.util.find_spec, ("cupy", "torch"))):
        pytest.skip("there is no library that writes to a GPU's memory")
    server = start("--kernels=none", "--socket-mode=0666")
    os.chmod(server.folder, 0o755)
    workers = raw.children(server.pid)
    other = program(server, "watch", OTHER)
    try:
        assert other.stdout.readline() == "ready\n", other.communicate()[1]
        found = outcome(program(server, "attack", ATTACKER, ",".join(rows), rounds))
        seen = outcome(other)
    finally:
        other.kill()
        other.wait()
    assert raw.children(server.pid) == workers, "the worker died"
    assert not found["wrong"], found
    assert not seen["wrong"] and seen["looks"], seen
    assert found["written"] and found["cases"] >= len(rows) and found["done"], found
    return found


@pytest.mark.parametrize("row", BY_INDICES)
def test_indices_and_masks(start, row):
    attack(start, [f"call:{row}"], 300)


def test_other_calls(start):
    rows = [f"call:{name}" for name in CALL if name not in BY_INDICES]
    assert set(attack(start, rows, 12)["rows"]) == set(rows)


def test_reductions(start):
    rows = [f"reduction:{name}" for name in REDUCTION]
    assert set(attack(start, rows, 3)["rows"]) == set(rows)


@pytest.mark.parametrize("part", range(2))
def test_ufuncs(start, part):
    rows = [f"ufunc:{name}" for name in list(UFUNC)[part::2]]
    assert set(attack(start, rows, 3)["rows"]) == set(rows)
