"""The simulator (tests/sim): seeds without a fault, the same run for the same seed, and faults that it finds."""
import re
import subprocess

import pytest

from commands import BUILD, TOP, run
from planted import MUTANTS, plant, settings

FIRST = 500_000  # of the seeds that these tests run: none that a developer begins with


@pytest.fixture(scope="module")
def simulator():
    run("make", "-s", "simulator", f"VARIANT={BUILD.name}")
    return BUILD / "sim" / "sim"


def run_seeds(simulator, *arguments, build=BUILD):
    """What a run prints, of whatever status."""
    result = subprocess.run([simulator, build, *map(str, arguments)], cwd=TOP, capture_output=True, text=True)
    return result.returncode, result.stdout + result.stderr


def test_seeds_have_no_fault(simulator):
    status, said = run_seeds(simulator, "--from", FIRST, "--seeds", 60)
    assert status == 0, said
    killed = int(re.search(r"60 seeds, 0 failed, (\d+) workers killed", said)[1])
    assert killed > 10


@pytest.mark.parametrize("late", [0, 1])
def test_a_seed_is_the_same_run_again(simulator, late):
    status, said = run_seeds(simulator, "--from", FIRST, "--seeds", 6, "--twice", "--set", f"late={late}")
    assert status == 0, said


def test_seeds_differ(simulator):
    hashes = {re.search("hash ([0-9a-f]{16})", run_seeds(simulator, "--seed", FIRST + i)[1])[1] for i in range(4)}
    assert len(hashes) == 4


def test_a_trace_does_not_change_the_run(simulator):
    hashes = {re.search("hash ([0-9a-f]{16})", run_seeds(simulator, "--seed", FIRST, *more)[1])[1]
              for more in ([], ["--trace"])}
    assert len(hashes) == 1


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_planted_fault_is_found(simulator, tmp_path, mutant):
    plant(tmp_path, mutant)
    status, said = run_seeds(simulator, "--until-failure", "--seeds", 200, *settings(mutant), build=tmp_path)
    assert status == 1 and "1 failed" in said, said
