"""The attacks that have once broken something, by one user, beside another one who looks at its arrays all the time.

Each line of `ATTACKS` is a function of attacks.py; operands that are written over while they are used have a test of
their own (test_written_meanwhile.py). The other user's answers must be right, and its worker must be the same at the end,
except where the attack is to end it."""
import json
import os
import subprocess
import sys

import pytest

import raw

ATTACKER, OTHER = 2001, 2002
HERE = os.path.dirname(__file__)
ATTACKS = {"sizes": 5, "work": 6, "windows": 3, "room": 1, "requests": 5}

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="needs root, to be two other users")


def program(server, name, *arguments):
    environment = {**os.environ, "ARRAYD_URL": f"unix:{server.path}", "PYTHONPATH": str(raw.PACKAGE)}
    return subprocess.Popen([sys.executable, os.path.join(HERE, name), *map(str, arguments)], env=environment, text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def outcome(process):
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err[-3000:]
    return json.loads(out.splitlines()[-1])


def beside(server, attack, rounds):
    """What the attacker has found, and what the other user has seen meanwhile."""
    os.chmod(server.folder, 0o755)
    other = program(server, "meanwhile.py", "watch", OTHER)
    try:
        assert other.stdout.readline() == "ready\n", other.communicate()[1]
        found = outcome(program(server, "attacks.py", ATTACKER, server.path, attack, rounds))
        seen = outcome(other)
    finally:
        other.kill()
        other.wait()
    print(f"{attack}: {found}; beside it {seen}")
    assert not seen["wrong"] and seen["looks"], seen
    assert found["sent"], found
    return found


@pytest.mark.parametrize("attack", ATTACKS)
def test_beside_an_attack(start, attack):
    server = start("--kernels=none", "--socket-mode=0666", "--threads=2")
    workers = raw.children(server.pid)
    found = beside(server, attack, ATTACKS[attack])
    assert raw.children(server.pid) == workers, "the worker died"
    assert found["refused"] or found["lost"] or attack == "work", found


@raw.cpu_only
def test_beside_workers_that_die(start, crashing, tmp_path):
    server = start(f"--backend-path={crashing}", "--kernels=none", "--socket-mode=0666",
                   env={"AD_TEST_CRASHES": str(tmp_path), "ASAN_OPTIONS": "handle_segv=0"})
    beside(server, "crash", 3)
    assert (tmp_path / "deaths").stat().st_size >= 3
