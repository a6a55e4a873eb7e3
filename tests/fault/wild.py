"""Programs of clients that have kernels of their own run, for the tests here and in tests/gpu."""
import os
import pathlib
import subprocess
import sys

import raw

BUILD = pathlib.Path(os.environ.get("ARRAYD_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build/release"))

# A program. argv: the source of `wild`. It prints what went wrong.
CULPRIT = r"""
import sys, arrayd as ad
from arrayd import _core
module = _core.build(sys.argv[1], (), ())
x = ad.zeros(64, dtype="int32")
print("built", flush=True)
module.launch("wild", (4, 1, 1), (16, 1, 1), 0, (x,), 1)
try:
    x.get()
    print("nothing happened")
except (ad.DeviceLostError, ConnectionError) as error:
    print(type(error).__name__, error, flush=True)
# The next connection finds a worker that has nothing wrong with it.
ad.connect()
print(float(ad.arange(10.0).sum()), ad.stat()["worker_pid"])
"""

# Works until it is told to stop, and notices any error; prints its worker's process twice.
BYSTANDER = r"""
import sys, select, arrayd as ad
x = ad.arange(1000.0)
print(ad.stat()["worker_pid"], flush=True)
n = 0
while not select.select([sys.stdin], [], [], 0)[0]:
    assert float((x * 2).sum()) == 999000
    n += 1
print(ad.stat()["worker_pid"], n)
"""


def client(url, code, *arguments):
    """A process that runs code with that server."""
    environment = {"PYTHONPATH": str(BUILD / "python"), **os.environ, "ARRAYD_URL": url}
    return subprocess.Popen([sys.executable, "-c", code, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, env=environment)


def unharmed(bystander, pid):
    """Stop a bystander, which has worked all the time and with one worker."""
    out, err = bystander.communicate("stop\n", timeout=raw.WINDOW)
    assert bystander.returncode == 0, err
    after, n = out.split()
    assert int(after) == pid and int(n) > 0
