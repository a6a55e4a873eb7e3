"""The benchmarks' parts that need no time."""
import asyncio
import gc
import pathlib
import sys

import arrayd
import numpy

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "bench"))
import bench  # noqa: E402
import devices  # noqa: E402
import event_loop  # noqa: E402


def test_rows_of_transfers(monkeypatch):
    monkeypatch.setattr(bench, "random", lambda shape, dtype="float32": numpy.ones(1000, dtype))
    libs = [bench.Library("arrayd", arrayd, arrayd.sync), bench.Library("NumPy", numpy, lambda: None)]
    rows = list(bench.transfer_rows(libs))
    assert len(rows) >= 2 and all(figure > 0 for _, _, figures in rows for figure in figures)


def test_rows_of_devices():
    """On this server's one device."""
    found = devices.measure(arrayd, 1, 4000, 16, 1)
    assert len(found) >= 8 and all(rate > 0 and moved == 0 for _, rate, moved in found.values())
    assert devices.tabulate(found, found, 1, {"all-reduce": 300.0}).count("\n") == len(found) + 2


def test_the_service_of_the_event_loop():
    """The two forms answer alike, and the heartbeat sees a loop that is kept."""
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


def test_a_loop_under_load_is_never_kept_for_long():
    """No turn of a service's loop takes 5 ms of its thread's processor time, whatever its requests carry: products, large
    arrays in and out, rows of one, many small operations."""
    host = numpy.random.default_rng(1).random((256, 4096), "float32")
    index, small = arrayd.asarray(host), arrayd.ones(16)

    async def answer(module, index, query):
        await arrayd.async_asarray(host)
        assert (await (index * 2).aget()).shape == host.shape
        assert len([row async for row in index[:8]]) == 8
        chain = small
        for _ in range(100):
            chain = chain + 1
        assert await chain.aitem(0) == 101
        await event_loop.answer_with_arrayd(arrayd, index, query)

    selector = event_loop.TimedSelector()
    loop = asyncio.SelectorEventLoop(selector)
    try:
        gc.freeze()
        query = numpy.ones(4096, "float32")
        loop.run_until_complete(answer(arrayd, index, query))
        selector.turns.clear()
        loop.run_until_complete(asyncio.wait_for(gathered(lambda: answer(arrayd, index, query), 8, 5), 300))
    finally:
        gc.unfreeze()
        loop.close()
    assert len(selector.turns) > 200 and max(selector.turns) < 0.005


async def gathered(make, together, each):
    """Run a number of coroutines at a time, each of them several times."""
    async def client():
        for _ in range(each):
            await make()
    await asyncio.gather(*(client() for _ in range(together)))


def test_turns_of_the_loop_are_timed():
    async def keep():
        begin = event_loop.time.thread_time()
        while event_loop.time.thread_time() < begin + 0.02:
            pass
        await asyncio.sleep(0.001)

    selector = event_loop.TimedSelector()
    loop = asyncio.SelectorEventLoop(selector)
    loop.run_until_complete(keep())
    loop.close()
    assert max(selector.turns) > 0.019


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
