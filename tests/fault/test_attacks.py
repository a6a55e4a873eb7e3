"""The attacks that have once broken something, by one user, beside another one who looks at its arrays all the time.

Each line of `ATTACKS` is a function of attacks.py; operands that are written over while they are used have a test of
their own (test_written_meanwhile.py). The other user's answers must be right, and its worker must be the same at the end,
except where the attack is to end it."""
import signal
import subprocess
import sys

import pytest

import raw
from attacking import ATTACKER, attack, needs_users, read_findings

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


def test_the_table_of_a_gpu_is_made_on_a_processor_too():
    """Each attack has a line, and the last one says what was bad."""
    program = raw.TOP / "tests" / "gpu" / "attack_table.py"
    names = ["flip gather", "sizes", "kill"]
    made = subprocess.run([sys.executable, program, "--backend=cpu", f"--build={raw.BUILD}", "--row=1", f"--only={','.join(names)}"],
                          capture_output=True, text=True, timeout=2 * raw.WINDOW)
    *lines, last = made.stdout.splitlines()
    assert made.returncode == 0 and last.endswith("left out: nothing; bad: nothing"), made.stdout + made.stderr
    assert [line[:24].strip() for line in lines] == ["attack", *names]


def test_a_row_of_the_table_that_does_not_exist_is_refused():
    program = raw.TOP / "tests" / "gpu" / "attack_table.py"
    made = subprocess.run([sys.executable, program, "--backend=cpu", "--only=kill,flip orders"], capture_output=True,
                          text=True, timeout=raw.WINDOW)
    assert made.returncode == 1 and "no row is named 'flip orders'" in made.stderr
    listed = subprocess.run([sys.executable, program, "--list"], capture_output=True, text=True, timeout=raw.WINDOW)
    assert {"flip sort", "windows", "long_total", "kill", "crash"} <= set(listed.stdout.splitlines())


def test_an_attack_that_does_not_end_says_where_it_is():
    program = "import faulthandler, threading\nfaulthandler.enable()\nprint('ready', flush=True)\nthreading.Event().wait()"
    endless = subprocess.Popen([sys.executable, "-c", program], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert endless.stdout.readline() == "ready\n"
    with pytest.raises(AssertionError, match="(?s)not at its end after 0 s.*threading.py.*wait"):
        read_findings(endless, 0.01)
    assert endless.returncode == -signal.SIGABRT
