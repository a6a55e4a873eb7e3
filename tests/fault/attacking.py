"""Two users of one server: what the one does to it, while the other one looks at its arrays all the time."""
import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest

import raw

ATTACKER, OTHER = 2001, 2002
HERE = pathlib.Path(__file__).parent
needs_users = pytest.mark.skipif(os.getuid() != 0, reason="needs root, to be two other users")


def start_program(server, name, *arguments):
    environment = {**os.environ, "ARRAYD_URL": f"unix:{server.path}", "PYTHONPATH": str(raw.PACKAGE)}
    return subprocess.Popen([sys.executable, HERE / name, *map(str, arguments)], env=environment, text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def read_findings(process, limit=2 * raw.WINDOW):
    """Return what a program has found. After `limit` seconds it is ended, and the error has where its threads were."""
    try:
        out, err = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)
        err = process.communicate(timeout=raw.WINDOW)[1]
        raise AssertionError(f"not at its end after {limit:.0f} s: {err[-3000:]}") from None
    assert process.returncode == 0, err[-3000:]
    return json.loads(out.splitlines()[-1])


def attack(server, name, *arguments):
    """Return what the attacker's program has found. Nothing that the other user has seen meanwhile may be wrong."""
    os.chmod(server.folder, 0o755)
    other = start_program(server, "meanwhile.py", "watch", OTHER)
    try:
        assert other.stdout.readline() == "ready\n", other.communicate()[1]
        found = read_findings(start_program(server, name, *arguments))
        seen = read_findings(other)
    finally:
        other.kill()
        other.wait()
    print(f"{name} {arguments}: {found}; beside it {seen}")
    assert not seen["wrong"] and seen["looks"], seen
    return found
