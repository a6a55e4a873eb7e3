"""The installed units under systemd itself: started by their socket, watched, confined, upgraded."""
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

import pytest

import managed
from commands import BUILD
from patience import PATIENCE

pytestmark = pytest.mark.skipif(managed.refusal() is not None, reason=str(managed.refusal()))

SOCKET = "/run/arrayd/arrayd.sock"


@pytest.fixture(scope="module")
def machine(installed, tmp_path_factory):
    (installed / "etc/arrayd").mkdir(parents=True, exist_ok=True)
    m = managed.Machine(tmp_path_factory.mktemp("machine"), installed)
    try:
        m.wait()
    except (TimeoutError, subprocess.TimeoutExpired) as error:
        m.stop()
        pytest.skip(f"systemd does not run here: {error}")
    yield m
    m.stop()


@pytest.fixture
def service(machine):
    """The socket listens, and nobody has connected."""
    machine.run("systemctl", "stop", "arrayd.service", "arrayd.socket")
    machine.run("systemctl", "reset-failed")
    machine.run("systemctl", "start", "arrayd.socket")
    yield machine
    log = machine.log("arrayd.service")
    assert "Sanitizer" not in log and "runtime error" not in log


def until(condition, what):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"still not: {what}"
        time.sleep(0.01)


def python(text, *before):
    """A program that uses the library, as a command."""
    return ["env", "-i", f"PYTHONPATH={BUILD / 'python'}", "PATH=/usr/bin:/bin", *before, sys.executable, "-c",
            "import sys, arrayd as ad\n" + text]


def program(machine, text, user=None):
    """Return what a client prints."""
    setpriv = []
    if user:
        group = machine.run("id", "--group", user).stdout.strip()
        setpriv = ["setpriv", f"--reuid={user}", f"--regid={group}", "--init-groups"]
    return machine.run(*python(text, *setpriv)).stdout.strip()


def main_process(machine):
    return int(machine.shows("arrayd.service", "MainPID"))


def test_the_first_client_starts_it(service):
    assert service.shows("arrayd.service", "ActiveState") == "inactive"
    assert program(service, "print(float((ad.arange(1000.0) ** 2).sum()))") == "332833500.0"
    assert service.shows("arrayd.service", "ActiveState") == "active"
    assert service.shows("arrayd.service", "Type") == "notify" and main_process(service) > 0
    for folder, owner, mode in (("/run/arrayd", "arrayd", "755"), (SOCKET + ".ctl", "arrayd", "600"),
                                (SOCKET, "arrayd", "660"), ("/var/cache/arrayd", "arrayd", "700")):
        assert service.run("stat", "--format=%U %a", folder).stdout.split() == [owner, mode]
    status = pathlib.Path(f"{service.path('/proc')}/{main_process(service)}/status").read_text()
    assert re.search(r"^CapEff:\s0+$", status, re.M) and re.search(r"^NoNewPrivs:\s1$", status, re.M)
    assert re.search(r"^Seccomp:\s2$", status, re.M)


def test_kernels_are_compiled(service):
    """The jail compiles kernels, below what the unit leaves arrayd."""
    kernel = "f = ad.ElementwiseKernel('float64 x', 'float64 y', 'y = 3 * x + %d', 'f')\n" % os.getpid()
    assert program(service, kernel + "print(f(ad.arange(3.0)).get().tolist())") == str([3.0 * i + os.getpid() for i in range(3)])


def test_who_may_connect(service):
    """Members of the group."""
    service.run("useradd", "--groups=arrayd", "--no-create-home", "member")
    try:
        assert program(service, "print(int(ad.ones(3).sum()))", "member") == "3"
        assert "refused" in program(service, f"""
try:
    ad.connect("unix:{SOCKET}")
except (ConnectionError, PermissionError) as error:
    print("refused", error)""", "nobody")
    finally:
        service.run("userdel", "member")


@contextlib.contextmanager
def client(machine):
    """A program with an array, asked by a line: what it has and whether its session is still the first."""
    text = """
a = ad.arange(100_000)
session = ad.session_info()["session"]
for line in sys.stdin:
    a = a + 1
    print(int(a.sum()) - 4999950000, ad.session_info()["session"] == session, flush=True)
"""
    process = subprocess.Popen(machine.command(*python(text)), text=True, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    done = 0

    def ask():
        nonlocal done
        done += 1
        process.stdin.write("\n")
        process.stdin.flush()
        said = process.stdout.readline()
        assert said == f"{done * 100_000} True\n", said + process.stderr.read()
    try:
        ask()
        yield ask
    finally:
        process.kill()
        process.communicate()


def test_a_worker_is_killed(service):
    with client(service) as ask:
        main = main_process(service)
        for _ in range(3):
            service.run("pkill", "--signal=KILL", "--exact", "arrayd-worker")
            ask()
        assert main_process(service) == main and service.shows("arrayd.service", "NRestarts") == "0"


def test_upgrade(service):
    """The service goes on as the same process, and systemd knows it."""
    with client(service) as ask:
        main = main_process(service)
        for _ in range(2):
            done = json.loads(service.run("arrayctl", "upgrade", "--json").stdout)
            assert done["lost"] == 0 and done["sessions"] == 1, done
            ask()
        assert main_process(service) == main and service.shows("arrayd.service", "ActiveState") == "active"
        service.run("systemctl", "reload", "arrayd.service")
        ask()
    service.run("systemctl", "stop", "arrayd.service")
    assert service.shows("arrayd.service", "Result") == "success"


def test_it_is_killed(service):
    """systemd starts it again, and whoever comes next is served."""
    program(service, "ad.ones(3).sum().get()")
    main = main_process(service)
    service.run("kill", "-KILL", main)
    until(lambda: main_process(service) not in (0, main), "it is started again")
    assert program(service, "print(int(ad.ones(3).sum()))") == "3"
    assert service.shows("arrayd.service", "NRestarts") == "1"


def test_stop(service):
    """The service stops without an error, and without SIGKILL after a time. The socket is the manager's, so the next client
    starts it again."""
    with client(service):
        service.run("systemctl", "stop", "arrayd.service")
    assert service.shows("arrayd.service", "Result") == "success"
    assert "level=error" not in service.log("arrayd.service").splitlines()[-1]
    assert program(service, "print(int(ad.ones(3).sum()))") == "3"
    service.run("systemctl", "stop", "arrayd.service", "arrayd.socket")
    assert service.run("test", "-e", SOCKET, check=False).returncode == 1
