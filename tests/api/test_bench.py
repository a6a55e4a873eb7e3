"""The benchmarks' parts that need no time."""
import pathlib
import sys

import arrayd
import numpy

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "bench"))
import bench  # noqa: E402


def test_rows_of_transfers(monkeypatch):
    monkeypatch.setattr(bench, "random", lambda shape, dtype="float32": numpy.ones(1000, dtype))
    libs = [bench.Library("arrayd", arrayd, arrayd.sync), bench.Library("NumPy", numpy, lambda: None)]
    rows = list(bench.transfer_rows(libs))
    assert len(rows) >= 2 and all(figure > 0 for _, _, figures in rows for figure in figures)
