"""The simulator (tests/sim): seeds without a fault, the same run for the same seed, and faults that it finds."""
import re
import subprocess

import pytest

from commands import BUILD, TOP, run
from planted import MUTANTS, USED_TOGETHER, plant, settings

FIRST = 500_000  # of the seeds that these tests run: none that a developer begins with
SHARED_AND_LOST = ("fatal=0 spill=0 upgrades=0 store_kills=0 no_memory=0 no_descriptor=0 splits=0 delays=0 most_kills=5 "
                   "worker_kills=1500 late=1 quota=16384 commons=1 moves=1")
BURSTS = "bursts=1 moves=1 late=1"
PARTED = ("fatal=0 spill=1 upgrades=2 store_kills=0 no_memory=0 no_descriptor=0 most_kills=3 worker_kills=1500 late=0 "
          "quota=16384 moves=0 forks=1 shares=1 drops=0 client_kills=200")


@pytest.fixture(scope="module")
def simulator():
    run("make", "-s", "simulator", f"VARIANT={BUILD.name}")
    return BUILD / "sim" / "sim"


def run_seeds(simulator, *arguments, build=BUILD):
    """Return what a run prints, of whatever status."""
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


@pytest.mark.parametrize("kind", ["fatal=1", "upgrades=3", "spill=1", "shares=1", "moves=1", "quota=40000", "forks=1 spill=0",
                                  "commons=1", "events=1 late=1", "bursts=1 late=1", "indices=1"])
def test_seeds_of_a_kind_have_no_fault(simulator, kind):
    settings_of_kind = [part for setting in kind.split() for part in ("--set", setting)]
    status, said = run_seeds(simulator, "--from", FIRST, "--seeds", 12, *settings_of_kind, "--set", "store_kills=0")
    assert status == 0, said


@pytest.mark.parametrize("seed, settings", [(980019, "spill=1 late=1"), (980043, "spill=1 forks=1 late=0"),
                                            (982290, "spill=1 forks=1 late=1 store_kills=0 worker_kills=0"),
                                            (1, "script=1 late=1 kill_at_store=2791"),
                                            (9000062, "bursts=1"), (9000943, "bursts=1"), (12000135, BURSTS),
                                            (12000200, BURSTS), (12000315, BURSTS), (13500239, BURSTS + " upgrades=2"),
                                            (13500715, BURSTS + " upgrades=2"),
                                            (106, SHARED_AND_LOST), (303, SHARED_AND_LOST), (1514, PARTED),
                                            (1311762, "no_memory=2000 forks=1"), (1311798, "no_memory=2000 forks=1"),
                                            (1321131, "client_kills=300 forks=1 spill=0 moves=1 store_kills=0 worker_kills=0 drops=0 upgrades=0")])
def test_seeds_that_had_a_fault(simulator, seed, settings):
    """docs/internals/found.md says which."""
    settings = "commons=0 events=0 bursts=0 indices=0 " + settings if seed < 2_000_000 else settings
    status, said = run_seeds(simulator, "--seed", seed, *(part for each in settings.split() for part in ("--set", each)))
    assert status == 0, said


def test_an_upgrade_loses_no_session(simulator):
    status, said = run_seeds(simulator, "--seed", FIRST, "--trace", "--set", "script=1", "--set", "upgrades=3")
    assert status == 0, said
    assert re.search(r"event=upgraded .*sessions=[12] lost=0", said)


@pytest.mark.parametrize("late, every", [(0, 29), (1, 97)])
def test_a_kill_at_a_store_loses_nothing(simulator, late, every):
    """Some stores, among them those between the end of a window and its checkpoint; `make sim-sweep` takes all."""
    status, said = run_seeds(simulator, "--sweep", "--every", every, "--seed", 1, "--set", f"late={late}")
    assert status == 0, said
    assert int(re.search(r"(\d+) of \d+ stores, 0 failed", said)[1]) > 50


def test_a_kill_while_a_capability_is_used_twice_counts_each_use_once(simulator):
    status, said = run_seeds(simulator, *USED_TOGETHER)
    assert status == 0, said


def test_a_second_kill_while_a_worker_recovers_loses_nothing(simulator):
    status, said = run_seeds(simulator, "--sweep", "--twice", "--every", 499, "--seed", 1)
    assert status == 0, said


def test_a_failure_of_any_resource_harms_nobody_else(simulator):
    """Each allocation, descriptor and mapping of a worker, the front and a client fails once, in a run of its own."""
    status, said = run_seeds(simulator, "--fail", "--seed", 1)
    assert status == 0, said
    assert int(re.search(r"(\d+) failures of resources, 0 failed", said)[1]) > 100


def test_watching_stores_does_not_change_a_run(simulator):
    hashes = {re.search("hash ([0-9a-f]{16})", run_seeds(simulator, "--seed", 1, "--set", "script=1", *more)[1])[1]
              for more in ([], ["--set", "kill_at_store=4000000000"])}
    assert len(hashes) == 1


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_planted_fault_is_found(simulator, tmp_path, mutant):
    plant(tmp_path, mutant)
    status, said = run_seeds(simulator, "--until-failure", "--seeds", 200, *settings(mutant), build=tmp_path)
    assert status == 1 and "1 failed" in said, said
