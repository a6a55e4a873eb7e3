"""Upgrades, for tests: where arrayd is installed, and arrayctl upgrade."""
import json
import subprocess

import raw
from observing import BAD, ctl, see

VERSION = subprocess.run([raw.PROGRAM, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]


class Installed:
    """A path at which arrayd is installed, for another program to take its place."""

    def __init__(self, folder):
        self.path = folder / "installed" / "arrayd"
        self.path.parent.mkdir()
        self.path.symlink_to(raw.PROGRAM)

    def put(self, target):
        self.path.unlink(missing_ok=True)
        self.path.symlink_to(target)

    def script(self, text, mode=0o755):
        """$REAL is the real program."""
        self.path.unlink()
        self.path.write_text(f"#!/bin/sh\nREAL={raw.PROGRAM}\n{text}\n")
        self.path.chmod(mode)


def upgrade(server, *options):
    """Return what came of an upgrade. The process stays."""
    pid = server.pid
    done = json.loads(ctl(server, "upgrade", "--json", *options))
    assert server.process.poll() is None and see(server)["arrayd"]["pid"] == pid
    return done


def refusal(server, *options):
    return ctl(server, "upgrade", *options, expect=BAD)


def times(server, text):
    return sum(text in line for line in list(server.lines))
