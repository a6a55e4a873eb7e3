"""Graphs: what a stream keeps while it captures, and what each launch does; what cannot be captured."""
import gc
import re

import numpy as np
import pytest

import arrayd as ad
from arrayd import cuda
from arrayd.cuda.runtime import CUDARuntimeError

ADD = ad.RawKernel('extern "C" __global__ void add(int *x, int by) { x[threadIdx.x] += by; }', "add")


def captured(function, *args):
    """The result of a function that a stream captures, and the graph."""
    with cuda.Stream(non_blocking=True) as stream:
        stream.begin_capture()
        result = function(*args)
        return result, stream.end_capture()


@pytest.mark.parametrize("function", [
    lambda a: (a + 3) * 7.6, lambda a: ad.sqrt(3 * ad.abs(ad.sin(a))), lambda a: ad.fft.ifft(a * ad.fft.fft(a)),
    lambda a: (a @ a, a.sum(), a.max()), lambda a: ad.linalg.norm(ad.zeros(5) + a), lambda a: a[::2].copy() - a.mean()])
def test_each_launch_computes_anew(function):
    a = ad.arange(5.0)
    out, graph = captured(function, a)
    for values in (np.arange(5.0), np.ones(5), np.full(5, -2.0)):
        a[:] = ad.asarray(values)
        graph.upload()
        graph.launch()
        want = function(ad.asarray(values))
        for got, expected in zip(out, want) if isinstance(out, tuple) else [(out, want)]:
            np.testing.assert_array_equal(got.get(), expected.get())


def test_nothing_is_executed_before():
    a, calls = ad.zeros(3, "int32"), []

    def work():
        a.__iadd__(1)
        ADD((1,), (3,), (a, np.int32(10)))
        calls.append(1)

    _, graph = captured(work)
    assert a.tolist() == [0, 0, 0]
    for launches in (1, 2, 3):
        graph.launch(cuda.Stream())
        assert a.tolist() == [11 * launches] * 3 and calls == [1]


def test_zeros_are_zeros_at_each_launch():
    def work():
        out = ad.zeros(3, "int32")
        out += 1
        return out

    out, graph = captured(work)
    for _ in range(3):
        graph.launch()
        assert out.tolist() == [1, 1, 1]


def test_constants():
    a = ad.zeros(3)
    _, graph = captured(lambda: a.__iadd__(ad.array([1.0, 2, 3])))
    graph.launch()
    graph.launch()
    assert a.tolist() == [2, 4, 6]


def test_a_graph_keeps_what_it_uses():
    a, b = ad.arange(3.0), ad.zeros(3)

    def work(x):
        b[...] = (x + 1) * 2  # of which the client drops the parts

    _, graph = captured(work, a)
    buffers = ad.stat()["buffers"]
    del a
    gc.collect()
    for _ in range(2):
        b.fill(0)
        graph.launch()
        assert b.tolist() == [2, 4, 6]
    assert ad.stat()["buffers"] == buffers
    _, second = captured(work, b)
    del graph
    gc.collect()
    second.launch()
    assert b.tolist() == [6, 10, 14]
    del second
    gc.collect()
    b.get()
    assert ad.stat()["buffers"] < buffers


def test_a_drawing():
    def call(argument):
        pass

    a = ad.arange(5.0)
    with cuda.Stream(non_blocking=True) as stream:
        stream.begin_capture()
        b = ad.sin(a)
        stream.launch_host_func(call, 1)
        ad.sort(b)
        b.sum()
        ad.ElementwiseKernel("float64 x", "float64 y", "y = x", "identity_of_x")(a)
        graph = stream.end_capture()
    short, verbose = graph.debug_dot_str(), graph.debug_dot_str(cuda.runtime.cudaGraphDebugDotFlagsVerbose)
    names = [re.search(r'label="(.*)"', line)[1] for line in short.splitlines() if "label" in line]
    assert names[0] == "cupy_sin" and names[1].endswith("call") and names[2:4] == ["sort", "cupy_sum"]
    assert names[4] == "elementwise_identity_of_x"
    assert re.findall(r'"node_(\d)" -> "node_(\d)";', short) == [("0", "1"), ("1", "2"), ("2", "3"), ("3", "4")]
    assert re.search(r'"node_0" \[label="cupy_sin\\nufunc float64 -> #\d+ f8\[5\] <- #\d+ f8\[5\]"\];', verbose)


def test_functions_of_the_host():
    a, seen = ad.zeros(2), []

    def work(stream):
        a.__iadd__(1)
        stream.launch_host_func(lambda what: seen.append((what, a.tolist())), "first")
        a.__iadd__(1)

    with cuda.Stream(non_blocking=True) as stream:
        stream.begin_capture()
        work(stream)
        graph = stream.end_capture()
    assert seen == []
    graph.launch()
    graph.launch()
    assert seen == [("first", [1, 1]), ("first", [3, 3])] and a.tolist() == [4, 4]


def test_streams_that_take_part():
    one, two = cuda.Stream(non_blocking=True), cuda.Stream(non_blocking=True)
    a, there, back = ad.arange(3.0), cuda.Event(), cuda.Event()
    with one:
        one.begin_capture()
        first = a * 100
        there.record(one)
        two.wait_event(there)
        with two:
            second = first + 1
            back.record(two)
        assert one.is_capturing() and two.is_capturing() and not cuda.Stream.null.is_capturing()
        one.wait_event(back)
        graph = one.end_capture()
    assert not one.is_capturing() and not two.is_capturing()
    graph.launch()
    assert second.tolist() == [1, 101, 201]


def test_other_streams_go_on():
    a, stream = ad.arange(3.0), cuda.Stream(non_blocking=True)
    stream.begin_capture()
    with stream:
        b = a + 1
    assert (a * 2).tolist() == [0, 2, 4]
    graph = stream.end_capture()
    graph.launch()
    assert b.tolist() == [1, 2, 3]


@pytest.mark.parametrize("work", [lambda a: a.get(), lambda a: float(a[0]), ad.nonzero, lambda a: a.set(np.ones(3)),
                                  lambda a: bool(a.sum() > 0)])
def test_what_waits_for_the_server(work):
    a, stream = ad.ones(3), cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        with pytest.raises(RuntimeError, match="is capturing"):
            work(a)
        graph = stream.end_capture()
    assert a.tolist() == [1, 1, 1]
    graph.launch()
    with pytest.raises(NotImplementedError, match="cuRAND"):
        captured(ad.random.rand, 3)
    ad.sync()


def fails(name):
    return pytest.raises(CUDARuntimeError, match="cudaError" + name)


def test_a_capture_that_fails():
    one, two, event = cuda.Stream(non_blocking=True), cuda.Stream(non_blocking=True), cuda.Event()
    one.begin_capture()
    with fails("IllegalState"):
        one.begin_capture()
    with fails("StreamCaptureUnsupported"):
        one.synchronize()
    with fails("StreamCaptureInvalidated"):
        one.end_capture()
    one.begin_capture()
    assert not one.done
    with fails("StreamCaptureInvalidated"):
        one.end_capture()
    one.begin_capture()
    with fails("IllegalState"):
        two.end_capture()
    event.record(one)
    two.wait_event(event)
    with fails("StreamCaptureUnmatched"):
        two.end_capture()
    with fails("StreamCaptureInvalidated"):
        one.end_capture()
    one.begin_capture()
    event.record(one)
    two.wait_event(event)
    with fails("StreamCaptureUnjoined"):
        one.end_capture()
    assert not one.is_capturing() and not two.is_capturing()
    one.synchronize()
    two.synchronize()


def test_the_default_stream():
    with pytest.raises(RuntimeError, match="default"):
        cuda.Stream.null.begin_capture()
    stream = cuda.Stream()
    stream.begin_capture()
    with fails("StreamCaptureImplicit"):
        cuda.Stream.null.is_capturing()
    stream.end_capture()
    assert not cuda.Stream.null.is_capturing()
    with pytest.raises(NotImplementedError, match="stream capture"):
        cuda.Graph()
