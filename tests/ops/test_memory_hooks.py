"""Hooks of memory: what is told of arrays, to which threads, and what the two hooks of CuPy's write."""
import gc
import io
import json
import re
import threading

import pytest

import arrayd as ad
from arrayd import cuda
from arrayd.cuda import memory_hook, memory_hooks

POINTS = [f"{what}_{when}process" for what in ("alloc", "malloc", "free") for when in ("pre", "post")]


class Recorder(cuda.MemoryHook):
    name = "Recorder"

    def __init__(self):
        self.seen = []


for point in POINTS:
    setattr(Recorder, point, lambda self, point=point, **facts: self.seen.append((point, facts)))


def of_arrays(hook):
    return [(point, facts) for point, facts in hook.seen if not point.startswith("alloc")]


def test_what_is_told():
    hook = Recorder()
    with hook:
        assert memory_hook.get_memory_hooks() == {"Recorder": hook}
        a = ad.ones(200, "float32")
        number = id(a)
        view = a[10:]
        del a
        assert len(of_arrays(hook)) == 2  # its memory is still in use
        del view
    device = {"device_id": 0}
    told = {**device, "mem_size": 1024, "mem_ptr": number, "pmem_id": number}
    assert of_arrays(hook) == [("malloc_preprocess", {**device, "size": 800, "mem_size": 1024}),
                               ("malloc_postprocess", {**told, "size": 800}), ("free_preprocess", told),
                               ("free_postprocess", told)]
    seen = len(hook.seen)
    ad.ones(3)
    assert len(hook.seen) == seen and not memory_hook.get_memory_hooks()


def test_results_and_memory():
    with Recorder() as hook:
        (ad.ones(4) + 1).sum()
        cuda.alloc(1000)
        ad.empty(0)
    sizes = [facts["size"] for point, facts in hook.seen if point == "malloc_postprocess"]
    assert sizes == [32, 32, 8, 1000]
    gc.collect()


def test_what_the_server_takes():
    pool = ad.get_default_memory_pool()
    pool.free_all_blocks()
    size = 3 * pool.total_bytes() + (64 << 20)  # more than it has kept
    with Recorder() as hook:
        before = pool.total_bytes()
        a = ad.ones(size, "uint8")
        grown = pool.total_bytes() - before
    taken = [(point, facts["mem_size"]) for point, facts in hook.seen if point.startswith("alloc")]
    assert grown >= size - (2 << 20) and taken == [("alloc_preprocess", grown), ("alloc_postprocess", grown)]
    del a


def test_hooks_belong_to_a_thread():
    hook = Recorder()
    with hook:
        other = threading.Thread(target=lambda: ad.ones(3).get())
        other.start()
        other.join()
    assert not hook.seen


def test_a_hook_that_makes_arrays_or_fails():
    class Making(Recorder):
        def malloc_postprocess(self, **facts):
            self.seen.append(ad.full(2, facts["size"]).tolist())

    with Making() as hook:
        ad.ones(4)
    assert [32.0, 32.0] in hook.seen or [32, 32] in hook.seen

    class Failing(cuda.MemoryHook):
        def malloc_preprocess(self, **facts):
            raise ZeroDivisionError("of the hook")

    with pytest.raises(ZeroDivisionError, match="of the hook"), Failing():
        ad.ones(4)
    ad.ones(4)


def test_twice():
    with cuda.MemoryHook(), pytest.raises(KeyError, match="MemoryHook already exists"), cuda.MemoryHook():
        pass
    assert not memory_hook.get_memory_hooks()


def test_debug_print():
    out = io.StringIO()
    with memory_hooks.DebugPrintHook(file=out):
        a = ad.ones(3)
        number = id(a)
        del a
    lines = [line for line in map(json.loads, out.getvalue().splitlines()) if line["hook"] != "alloc"]
    told = {"device_id": 0, "mem_size": 512, "mem_ptr": number, "pmem_id": hex(number)}
    assert lines == [{"hook": "malloc", "size": 24, **told}, {"hook": "free", **told}]


def test_line_profile():
    hook = memory_hooks.LineProfileHook()
    ad.ones(100)
    with hook:
        a = ad.ones(125)
        b = ad.ones(250)
    del a, b
    out = io.StringIO()
    hook.print_report(file=out)
    report = out.getvalue()
    assert re.match(r"_root \(3\.00KB, \d+\.\d\d[KMG]?B\)\n", report)
    assert re.search(r"test_memory_hooks\.py:\d+:test_line_profile \(1\.00KB, ", report)
    assert re.search(r"test_memory_hooks\.py:\d+:test_line_profile \(2\.00KB, ", report)
    assert not re.search(r"arrayd/(_array|cuda)/", report)  # its lines are those of its users
    for depth in (1, 2):
        hook, out = memory_hooks.LineProfileHook(max_depth=depth), io.StringIO()
        with hook:
            ad.ones(125)
        hook.print_report(file=out)
        assert out.getvalue().count("\n") == depth
