"""A real fault of the device, by a kernel that writes where nothing is: who notices, when, and what is left."""
import os
import pathlib
import subprocess
import sys
import time

import pytest

CLIENT = """
import sys, time, arrayd as ad
x = ad.arange(1000, dtype="float64")
total, begin = float(x.sum()), time.monotonic()
print(total, flush=True)
try:
    while sys.argv[1] == "until it fails":
        begin = time.monotonic()
        float((x + 1).sum())
        time.sleep(0)
except ad.DeviceLostError as error:
    print(round(time.monotonic() - begin, 3), error, flush=True)
"""


def client(url, what):
    return subprocess.Popen([sys.executable, "-c", CLIENT, what], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={**os.environ, "ARRAYD_URL": url})


@pytest.fixture
def server(own_server, monkeypatch, tmp_path):
    monkeypatch.setenv("ARRAYD_FAULT", "wild:40")
    process, url = own_server()
    monkeypatch.delenv("ARRAYD_FAULT")
    return process, url, tmp_path / "log"


def test_a_wild_kernel_ends_the_worker_only(server):
    process, url, log = server
    for _ in range(2):  # the second time with the second worker, where `wild` counts from 1 again
        victim = client(url, "until it fails")
        out, err = victim.communicate(timeout=60)
        assert victim.returncode == 0, err
        total, last = out.splitlines()
        seconds, text = last.split(" ", 1)
        assert float(total) == 499500 and float(seconds) < 1
        assert "illegal" in text or "lost" in text
        begin = time.monotonic()
        after = client(url, "once")
        out, err = after.communicate(timeout=60)
        assert out == "499500.0\n" and time.monotonic() - begin < 20, err
    assert process.poll() is None
    said = pathlib.Path(log).read_text()
    assert said.count("status=3") == 2 and "illegal" in said
