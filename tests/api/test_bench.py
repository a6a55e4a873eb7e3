"""The benchmarks' parts that need no time."""
import asyncio
import pathlib
import sys

import arrayd
import numpy

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "bench"))
import bench  # noqa: E402
import event_loop  # noqa: E402


def test_rows_of_transfers(monkeypatch):
    monkeypatch.setattr(bench, "random", lambda shape, dtype="float32": numpy.ones(1000, dtype))
    libs = [bench.Library("arrayd", arrayd, arrayd.sync), bench.Library("NumPy", numpy, lambda: None)]
    rows = list(bench.transfer_rows(libs))
    assert len(rows) >= 2 and all(figure > 0 for _, _, figures in rows for figure in figures)


def test_the_service_of_the_event_loop():
    """Both forms answer alike, and the heartbeat sees a loop that is kept."""
    host = numpy.eye(4, dtype="float32")
    index = arrayd.asarray(host)
    for query in host:
        ours = asyncio.run(event_loop.answer_with_arrayd(arrayd, index, query))
        assert ours == asyncio.run(event_loop.answer_with_numpy(numpy, host, query)) == int(query.argmax())
    served, late = asyncio.run(event_loop.serve(event_loop.answer_with_arrayd, arrayd, index, 0.05, requests=2))
    assert served >= 2 and late and min(late) > -event_loop.BEAT

    async def keep(module, index, query):
        begin = event_loop.time.perf_counter()
        while event_loop.time.perf_counter() < begin + 0.03:
            pass

    _, late = asyncio.run(event_loop.serve(keep, None, host, 0.05, requests=1))
    assert max(late) > 0.02


def test_rows_of_the_event_loop(monkeypatch):
    monkeypatch.setattr(event_loop, "measure", lambda module, name: (100, 1, 2) if name == "arrayd" else (50, 3, 4))
    libs = [bench.Library("arrayd", arrayd, arrayd.sync), bench.Library("NumPy", numpy, lambda: None)]
    assert [figures for _, _, figures in event_loop.rows(libs)] == [[100, 50], [1, 3], [2, 4]]


def test_first_array(monkeypatch):
    monkeypatch.setattr(bench, "python", lambda code, environment: "10\n")
    assert all(figure >= 0 for figure in bench.first_array_times())
    monkeypatch.setattr(bench, "python", lambda code, environment: "9\n")
    try:
        bench.first_array_times()
    except RuntimeError:
        return
    raise AssertionError("a wrong result is not told")
