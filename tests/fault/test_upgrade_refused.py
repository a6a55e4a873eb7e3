"""Upgrades that are refused: the new program is asked before anything is stopped, so nobody notices."""
import json
import os
import re
import signal
import subprocess

import numpy as np
import pytest

import raw
from raw import Client, Closed, wait_until
from returning import Session
from observing import CTL, see
from test_recovery import OPEN, comes_back
from upgrading import VERSION, refusal, times, upgrade

CHECK = 'case "$1" in --can-take-over=*)'
BAD_PROGRAMS = {
    "another layout": (CHECK + ' set -- --can-take-over=0/0;; esac; exec $REAL "$@"', "takes over from fronts of layout"),
    "another worker": (CHECK + " echo arrayd 7; exec $(dirname $REAL)/arrayd-worker --can-take-over=1;; esac",
                       "sessions are written down in another way"),
    "not arrayd": ("echo hello", "cannot take over: hello"),
    "killed": ("echo arrayd 7; kill -9 $$", "cannot take over: arrayd 7"),
    "silent": ("exit 0", "does not say that it can"),
    "older": (CHECK + ' shift; exec $REAL --can-take-over "$@";; esac', "there is no option"),
}


@pytest.mark.parametrize("program", BAD_PROGRAMS)
def test_a_program_that_cannot_take_over(start, installed, program):
    """The program is asked before anything is stopped, so nobody notices."""
    text, why = BAD_PROGRAMS[program]
    server = start(program=installed.path)
    client, worker = Client(server.path), server.worker
    x = client.put(np.arange(9))
    client.sync()
    installed.script(text)
    assert why in refusal(server)
    wait_until(lambda: server.said('event="not upgraded"'), "it is logged")
    assert server.worker == worker
    assert client.get(x).tolist() == list(range(9))
    installed.put(raw.PROGRAM)
    client.close()
    upgrade(server, "--force")


def test_a_program_that_does_not_answer(start, installed):
    server = start(program=installed.path)
    client = Client(server.path)
    installed.script("exec sleep 1000")
    assert "it does not answer" in refusal(server)
    client.sync()
    wait_until(lambda: len(raw.children(server.pid)) == 1, "it has gone")


@pytest.mark.parametrize("how", ["gone", "mode", "text"])
def test_a_program_that_cannot_be_started(start, installed, how):
    server = start(program=installed.path)
    client = Client(server.path)
    if how == "gone":
        installed.path.unlink()
    else:
        installed.script("", mode=0o644 if how == "mode" else 0o755)
        if how == "text":
            installed.path.write_text("neither a script nor a program")
    assert re.search("cannot (start|take over)", refusal(server))
    client.sync()


def test_a_program_that_goes_when_it_is_wanted(start, installed):
    """The program's check was good. By then the workers have left: this front goes on with them, as if they had been
    killed."""
    server = start(*OPEN, program=installed.path)
    session, idle = Session(server.path), Client(server.path, greet=False)
    x = session.put(np.arange(9))
    session.sync()
    for _ in range(3):
        installed.script(CHECK + ' rm "$0";; esac; exec $REAL "$@"')
        assert "cannot execute" in refusal(server)
        session.come_back()
        assert session.get(x).tolist() == list(range(9))
        installed.put(raw.PROGRAM)
    idle.send(raw.hello())
    assert idle.receive_message()[0] == raw.REQUEST["welcome"]
    idle.close()
    wait_until(lambda: see(server)["arrayd"]["sessions"] == 1, "only one is left")
    upgrade(server)
    session.come_back()
    assert session.get(x).tolist() == list(range(9))


def test_a_configuration_that_is_not_one(start, tmp_path):
    file = tmp_path / "conf"
    file.write_text("")
    server = start(f"--config={file}")
    client = Client(server.path)
    for text, why in (("memori = 1G\n", "memori"), ("tokens = /nowhere\n", "/nowhere"), ("tls = 1.2.3.4:5\n", "tls"),
                      (f"worker = {tmp_path}/none\n", "cannot start")):
        file.write_text(text)
        assert why in refusal(server)
    client.sync()


def test_who_may_not_administer(start, tmp_path):
    principals = tmp_path / "principals"
    principals.write_text(f"uid:{os.getuid()} admin=no\n")
    server = start(f"--principals={principals}")
    client = Client(server.path)
    assert "the grant admin is missing" in refusal(server)
    client.sync()
    assert not server.said("event=upgrading")


def test_one_at_a_time(start, installed, tmp_path):
    server = start(program=installed.path)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    installed.script(CHECK + f' read x <{fifo};; esac; exec $REAL "$@"')
    first = subprocess.Popen([CTL, "upgrade", "--json", f"--socket={server.path}"], stdout=subprocess.PIPE)
    wait_until(lambda: len(raw.children(server.pid)) == 2, "the first is being checked")
    assert "under way" in refusal(server)
    os.kill(server.pid, signal.SIGUSR2)
    with open(fifo, "w") as f:
        f.write("\n")
    assert json.loads(first.communicate(timeout=raw.WINDOW)[0])["upgraded"] == VERSION
    wait_until(lambda: times(server, "event=upgraded") == 1 and times(server, "under way") == 2, "all is logged")


def test_the_server_stops_meanwhile(start, installed):
    server = start(program=installed.path)
    installed.script(CHECK + " exec sleep 1000;; esac")
    asking = subprocess.Popen([CTL, "upgrade", f"--socket={server.path}"], stderr=subprocess.PIPE)
    wait_until(lambda: len(raw.children(server.pid)) == 2, "the program is being checked")
    assert server.stop() == 0
    assert asking.wait(raw.WINDOW)
    asking.stderr.close()


# What the program of workers makes of its arguments once another build was installed: arrayd of a later one has
# notes of another form and options that are not known, an earlier one says nothing of their form.
OTHER_BUILDS = {"later": "for o; do shift; case $o in --form=*) o=--form=7;; esac; set -- \"$@\" $o; done; set -- \"$@\" --new=1",
                "earlier": "for o; do shift; case $o in --form=*) ;; *) set -- \"$@\" $o;; esac; done"}


@pytest.mark.parametrize("build, tries", [("later", 8), ("earlier", 2)])  # seven crashes would give the journal up
def test_workers_of_another_build(start, tmp_path, build, tries):
    """Files of a server are replaced while it runs, and then its worker ends. Everybody is told what to do, and nothing is
    lost if the files come back."""
    installed = tmp_path / "installed"
    worker = raw.script_worker(tmp_path / "worker", f"if [ -e {installed} ]; then {OTHER_BUILDS[build]}; fi")
    server = start(f"--worker={worker}")
    session = Session(server.path)
    x = session.put(np.arange(9))
    session.sync()
    installed.touch()
    os.kill(server.worker, signal.SIGKILL)
    why = r"is of another build than this arrayd; .* must run `arrayctl upgrade` or restart it"
    wait_until(lambda: sum(bool(re.search(why, line)) for line in server.lines) >= tries, "it has tried some times")
    assert any("this arrayd-worker is of another build" in line for line in server.lines)
    assert re.search(why, see(server)["workers"][0]["why"])
    with pytest.raises(Closed, match=why):
        Client(server.path)
    installed.unlink()
    wait_until(lambda: comes_back(session), "a worker has begun")
    assert np.array_equal(session.get(x), np.arange(9))
