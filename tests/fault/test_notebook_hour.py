"""An hour in a notebook, without its pauses: mistakes, interrupts, a worker that dies, a server that is upgraded, a laptop that
sleeps. The kernel is Jupyter's, far from the server: it came by an invitation and goes through a proxy, which is the network.

The notebook's variables are compared with NumPy after each misfortune."""
import os
import pathlib
import re
import signal
import sys

import pytest

import raw
from cutting import Proxy
from places import port_of
from raw import wait_until
from observing import ctl, see
from upgrading import upgrade

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
pytest.importorskip("jupyter_client")
from kernel import Kernel  # noqa: E402

pytestmark = pytest.mark.skipif(raw.BUILD.name != "release", reason="a sanitizer's extension cannot be loaded by Python")
ENDLESS = 1 << 62  # bytes that a connection may pass
BEGIN = """
import os, numpy as np, arrayd as ad
host = np.random.default_rng(24).random((500, 400))
kept = ad.asarray(host)
model = kept.T @ kept
"""
CHECK = """
assert np.allclose((kept + 1).get(), host + 1) and np.allclose(model.get(), host.T @ host)
"""


@pytest.fixture
def server(start, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("STATE_DIRECTORY", raising=False)
    # A session waits for an hour, and a worker that is stopped is not missed meanwhile.
    return start("--tls=127.0.0.1:0", "--self-signed=yes", "--resume-time=3600", "--threads=1")


@pytest.fixture
def network(server):
    with Proxy(("127.0.0.1", port_of(server, "tls")), None, lambda n: (ENDLESS, ENDLESS)) as proxy:
        yield proxy


@pytest.fixture
def notebook(server, network, tmp_path):
    """A kernel that has nothing but the url of an invitation, with the port of the way there."""
    url = re.sub(r":\d+#", f":{network.port}#", ctl(server, "invite", "ann", "--days=1").strip())
    kernel = Kernel(ARRAYD_URL=url, HOME=str(tmp_path), XDG_STATE_HOME=str(tmp_path / "hers"), PYTHONPATH=os.pathsep.join(
        [str(raw.PACKAGE), *filter(None, sys.path)]))
    good(kernel, BEGIN + CHECK)
    yield kernel
    kernel.close()


def good(kernel, code):
    """Return what a cell prints that must end well."""
    _, printed, raised = kernel.cell(code)
    assert raised is None, raised
    return printed


def pid_of(kernel):
    return int(good(kernel, "print(os.getpid())"))


def make_mistakes(kernel):
    """Errors come in the cell that asks, name the cell that made them, and leave all else as it was."""
    for mistake, error in (("bad = ad.arange(3)[ad.asarray([7])]\n", r"IndexError: .*index 7 is out of bounds"),
                           ("bad = ad.linalg.cholesky(-ad.eye(3))\n", r"LinAlgError"),
                           ("bad = ad.RawKernel('int f', 'f')\nbad((1,), (1,), ())\n", r"PermissionError: .*no kernels of token:ann"),
                           ("bad = ad.empty(1 << 50, 'int8')\n", r"MemoryError: .*\(1125899906842624,\)")):
        _, _, raised = kernel.cell(mistake)
        raised = raised or kernel.cell("bad.get()")[2]
        assert raised and re.search(error, raised), (mistake, raised)
        good(kernel, "del bad")
    good(kernel, CHECK)


INTERRUPTED = """
import signal, threading
endless = ad.broadcast_to(kept[:1, :1], (1 << 22, 1 << 22)).sum()

def press(waits):
    while ad.session_info()["round_trips"] == waits:    # until the cell waits for the server
        pass
    os.kill(os.getpid(), signal.SIGINT)                 # as Jupyter does

threading.Thread(target=press, args=[ad.session_info()["round_trips"]]).start()
endless.item()
"""


def interrupt(kernel):
    """Ctrl-C in a cell that would take days. The next cell is answered at once."""
    _, _, raised = kernel.cell(INTERRUPTED)
    assert raised.startswith("KeyboardInterrupt")
    good(kernel, CHECK)
    assert re.search("CancelledError", kernel.cell("endless.item()")[2])


def sleep_and_wake(kernel, server, network):
    """A laptop's lid is closed in the middle of a computation: both its program and its connection stop, and it comes back from
    another address."""
    good(kernel, "later = kept\nfor _ in range(50):\n    later = later + 1")
    pid = pid_of(kernel)
    resumed = sum("session resumed" in line for line in server.lines)
    os.kill(pid, signal.SIGSTOP)
    network.cut()
    wait_until(lambda: see(server)["sessions"][0]["state"] == "waiting", "the server waits for the laptop")
    assert "its client is away" in ctl(server, "top", "--count=1", "--interval=0.05")
    os.kill(pid, signal.SIGCONT)
    good(kernel, "assert np.allclose(later.get(), host + 50)" + CHECK)
    assert sum("session resumed" in line for line in server.lines) > resumed


def sleep_unnoticed(kernel):
    """A nap during which no packet is lost."""
    pid = pid_of(kernel)
    good(kernel, "large = ad.arange(1 << 20)")
    os.kill(pid, signal.SIGSTOP)
    os.kill(pid, signal.SIGCONT)
    good(kernel, "assert large[-1].item() == (1 << 20) - 1" + CHECK)


def lose_the_worker(kernel, server):
    good(kernel, "sum_before = kept.sum()")
    worker = see(server)["workers"][0]["pid"]
    os.kill(worker, signal.SIGKILL)
    good(kernel, "assert np.isclose(sum_before.item(), host.sum())" + CHECK)
    assert see(server)["workers"][0]["pid"] != worker


def upgrade_meanwhile(kernel, server):
    """The program is replaced while a cell computes."""
    done = []

    def on_output(printed):
        if not done and printed.endswith("begun\n"):
            done.append(upgrade(server))
            pathlib.Path(flag).touch()

    flag = good(kernel, "import pathlib, tempfile\nflag = pathlib.Path(tempfile.mkdtemp()) / 'upgraded'\nprint(flag)").strip()
    _, _, raised = kernel.cell("count, x = 0, ad.zeros(100)\nprint('begun', flush=True)\n"
                               "while not flag.exists() or count % 50:\n    x += 1\n    count += 1\n    x[0].item()\n"
                               "assert (x.get() == count).all()", on_output)
    assert raised is None and len(done) == 1, raised
    good(kernel, CHECK)


def test_an_hour(notebook, server, network):
    kernel = notebook
    assert "cell" not in good(kernel, "%load_ext arrayd\n%arrayd line off")
    make_mistakes(kernel)
    interrupt(kernel)
    upgrade_meanwhile(kernel, server)
    sleep_unnoticed(kernel)
    sleep_and_wake(kernel, server, network)
    lose_the_worker(kernel, server)
    for _ in range(3):
        sleep_and_wake(kernel, server, network)
        interrupt(kernel)
    upgrade_meanwhile(kernel, server)
    make_mistakes(kernel)
    session, = see(server)["sessions"]
    assert session["principal"] == "token:ann" and session["client"].startswith("notebook")
    kernel.close()
    wait_until(lambda: not [s for s in see(server)["sessions"] if s["state"] == "active"], "the notebook has ended")
