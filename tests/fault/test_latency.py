"""A server far away: programs wait for light only as often as they need data."""
import json
import os
import subprocess
import sys

import pytest

import raw
from far import Way
from places import port_of

pytestmark = pytest.mark.skipif(raw.BUILD.name != "release", reason="a sanitizer's extension cannot be loaded by Python")
DELAY = 0.05  # seconds each way
OPERATIONS = 10_000
PROGRAM = """
import json, sys, time
import numpy as np
import arrayd as ad
operations, reads = map(int, sys.argv[1:])
a = ad.asarray(np.arange(16.0))
float(a[0])
trips, begin = ad.session_info()["round_trips"], time.perf_counter()
results, each = [], operations // reads
for _ in range(reads):
    for _ in range(each // 2):
        a = a + 1
        a = a - 1
    results.append(a.get().tolist())
took = time.perf_counter() - begin
print(json.dumps([took, ad.session_info()["round_trips"] - trips, ad.session_info()["operations"], results]))
"""


def run(port, operations, reads):
    """Seconds that the program took after it had connected, and how often it waited."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(operations), str(reads)], capture_output=True, text=True,
                          timeout=120, env={**os.environ, "ARRAYD_URL": f"tcp:127.0.0.1:{port}"})
    assert done.returncode == 0, done.stderr
    took, trips, issued, results = json.loads(done.stdout)
    assert issued >= operations and results == [[float(i) for i in range(16)]] * reads
    return took, trips


@pytest.fixture
def port(start):
    return port_of(start("--tcp=127.0.0.1:0", "--tcp-open=yes"), "tcp")


@pytest.mark.parametrize("reads", [1, 5])
def test_pipelined_program_waits_for_data_only(port, reads):
    """The time that the way adds is that of the reads, and at most three round trips more; so say the counters, too."""
    with Way(port, 0.0) as near, Way(port, DELAY) as far:
        here = min(run(near.port, OPERATIONS, reads)[0] for _ in range(2))
        added = []
        for _ in range(24):  # the machine may have been busy
            took, trips = run(far.port, OPERATIONS, reads)
            assert trips == reads and took >= reads * 2 * DELAY
            added.append((took - here) / (2 * DELAY))
            if added[-1] <= reads + 3:
                return
    raise AssertionError(f"{added} round trips, {reads} of them for data")


def test_lost_packets_delay_and_do_no_more(port):
    with Way(port, DELAY, loss=0.01) as far:
        took, trips = run(far.port, OPERATIONS, 2)
    assert trips == 2
