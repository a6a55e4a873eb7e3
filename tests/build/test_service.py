"""The example of a web service: both of its forms answer alike under load, and the table has what was measured."""
import json
import os
import sys

import pytest

from commands import BUILD, TOP, run

pytestmark = pytest.mark.skipif(BUILD.name != "release", reason="the package is imported")
SERVICE = TOP / "docs/examples/service"


def test_both_forms_answer_alike(tmp_path):
    pytest.importorskip("fastapi")
    pytest.importorskip("uvicorn")
    path = os.pathsep.join(filter(None, [str(BUILD / "python"), os.environ.get("PYTHONPATH")]))
    said = run(sys.executable, SERVICE / "compare.py", "--items", "2000", "--width", "32", "--workers", "2", "--requests",
               "60", "--connections", "6", "--arrayd", BUILD / "bin/arrayd", "--json", tmp_path / "results.json",
               env={**os.environ, "PYTHONPATH": path})
    assert "one index, by arrayd" in said and "NumPy in each worker" in said
    results = json.loads((tmp_path / "results.json").read_text())
    for result in results.values():
        assert result["requests"] == 60 and result["per_second"] > 0 and 0 < result["p50_ms"] <= result["p99_ms"]
        assert result["workers"] == 2 and 10 < result["worker_mib"] < result["all_mib"]


def test_wrong_answers_are_told(monkeypatch):
    """The comparison sees a service that finds other neighbours."""
    monkeypatch.syspath_prepend(SERVICE)
    import compare
    assert compare.count_differences({1: [1, 2], 2: [3, 4]}, {1: [2, 1], 2: [3, 5]}) == 1


def test_percentiles(monkeypatch):
    import numpy
    monkeypatch.syspath_prepend(SERVICE)
    import load
    times = list(numpy.random.default_rng(3).random(1001))
    for part in (0.5, 0.99):
        assert load.percentile(times, part) == numpy.quantile(times, part, method="higher") or abs(
            load.percentile(times, part) - numpy.quantile(times, part)) < 0.01
