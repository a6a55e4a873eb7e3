"""Costs are estimated from shapes and types before an operation runs. One that takes much longer than its estimate would
run in the engine and keep everybody waiting: whatever takes more than LIMIT must run beside it."""
import pathlib

import pytest

import raw
from attacking import read_findings, start_program

# ns of processor time: ten times what is estimated of the longest operations in the engine. A sanitizer's kernels take several
# times as long.
LIMIT = 50_000_000 * (1 if raw.BUILD.name == "release" else 4)

pytestmark = [raw.cpu_only, pytest.mark.skipif(not pathlib.Path("/proc/self/schedstat").exists(),
                                               reason="the kernel does not measure threads")]


def test_what_takes_long_runs_beside_the_engine(start):
    server = start("--threads=1")
    found = read_findings(start_program(server, "costs.py", LIMIT))
    measured = [(name, *what) for name, what in found if isinstance(what, list)]
    assert len(measured) > 700, [f for f in found if not isinstance(f[1], list)]
    slow = [(name, f"{ns / 1e6:.0f} ms") for name, ns, beside in measured if ns > LIMIT and not beside]
    assert not slow, slow
    assert any(not beside for _, _, beside in measured), "everything ran beside the engine"
    longest = sorted(((ns, name) for name, ns, beside in measured if not beside), reverse=True)[:10]
    print(len(measured), "operations; longest in the engine:", *(f"{name}: {ns / 1e6:.1f} ms" for ns, name in longest), sep="\n")
