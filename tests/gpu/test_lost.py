"""A real fault of the device, by a kernel that writes where nothing is: the worker ends, and another one goes on."""
import os
import pathlib
import subprocess
import sys

CLIENT = """
import arrayd as ad
x = ad.arange(1000, dtype="float64")
for _ in range(100):
    assert float(x.sum()) == 499500
print(float(x.sum()))
"""


def test_a_wild_kernel_ends_the_worker_only(own_server, monkeypatch, tmp_path):
    monkeypatch.setenv("ARRAYD_FAULT", "wild:40")  # counts from 1 again in each worker
    process, url = own_server()
    monkeypatch.delenv("ARRAYD_FAULT")
    done = subprocess.run([sys.executable, "-c", CLIENT], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "ARRAYD_URL": url})
    assert done.stdout == "499500.0\n", done.stderr
    assert process.poll() is None
    said = pathlib.Path(tmp_path / "log").read_text()
    assert said.count("status=3") >= 2 and "illegal" in said and "event=recovered" in said
