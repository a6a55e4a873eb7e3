"""The attacks that have once broken something, by one user, beside another one who looks at its arrays all the time.

Each line of `ATTACKS` is a function of attacks.py; operands that are written over while they are used have a test of
their own (test_written_meanwhile.py). The other user's answers must be right, and its worker must be the same at the end,
except where the attack is to end it."""
import pytest

import raw
from attacking import ATTACKER, attack, needs_users

ATTACKS = {"sizes": 5, "work": 9, "windows": 3, "room": 1, "requests": 5}
pytestmark = needs_users


def beside(server, name, rounds):
    found = attack(server, "attacks.py", ATTACKER, server.path, name, rounds)
    assert found["sent"], found
    return found


@pytest.mark.parametrize("name", ATTACKS)
def test_beside_an_attack(start, name):
    server = start("--kernels=none", "--socket-mode=0666", "--threads=2")
    workers = raw.children(server.pid)
    found = beside(server, name, ATTACKS[name])
    assert raw.children(server.pid) == workers, "the worker died"
    assert found["refused"] or found["lost"] or name == "work", found


@raw.cpu_only
def test_beside_workers_that_die(start, crashing, tmp_path):
    server = start(f"--backend-path={crashing}", "--kernels=none", "--socket-mode=0666",
                   env={"AD_TEST_CRASHES": str(tmp_path), "ASAN_OPTIONS": "handle_segv=0"})
    beside(server, "crash", 3)
    assert (tmp_path / "deaths").stat().st_size >= 3
