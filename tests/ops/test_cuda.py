"""Devices, streams, events and memory pools, under CuPy's names."""
import gc
import importlib
import sys
import threading
import types

import numpy as np
import pytest

import arrayd as ad
from arrayd import cuda
from oracle import in_threads
from patience import PATIENCE

DEVICES = cuda.runtime.getDeviceCount()
two_devices = pytest.mark.skipif(DEVICES < 2, reason="one device")


def test_device():
    device = cuda.Device()
    assert device.id == int(device) == cuda.get_device_id() == cuda.runtime.getDevice() == 0
    assert device == cuda.Device(0) and hash(device) == hash(cuda.Device(0)) and repr(device) == "<Device 0>"
    assert not device < cuda.Device(0) and device != 0
    free, total = device.mem_info
    assert 0 <= free <= total and total == ad.session_info()["memory"] and total > 1 << 26
    assert cuda.runtime.memGetInfo()[1] == total
    versions = cuda.runtime.runtimeGetVersion(), cuda.runtime.driverGetVersion()
    assert all(v >= 12000 for v in versions) if cuda.is_available() else versions == (0, 0)
    assert device.compute_capability.isdigit() and isinstance(device.name, str)
    properties = cuda.runtime.getDeviceProperties(0)
    assert properties["totalGlobalMem"] == total
    assert properties["multiProcessorCount"] == device.attributes["MultiProcessorCount"]
    assert cuda.is_available() == (ad.session_info()["backend"] == "cuda")
    if cuda.is_available():
        assert int(device.compute_capability) >= 80 and properties["multiProcessorCount"] > 1 and 0 < free
    device.synchronize()
    cuda.runtime.deviceSynchronize()


@pytest.mark.parametrize("number", [DEVICES, 63, 64, 10**6, -1])
def test_a_device_that_is_not_there(number):
    for make in (cuda.Device, cuda.runtime.setDevice, cuda.runtime.getDeviceProperties):
        with pytest.raises(ValueError, match=rf"device {number} does not exist: the server has {DEVICES}, numbered from 0"):
            make(number)
    assert cuda.get_device_id() == 0
    with pytest.raises(TypeError):
        cuda.Device(1.5)


def test_context_of_a_device():
    with cuda.Device(0) as outer, outer:
        assert cuda.Device() == outer
        x = ad.arange(5)
    assert x.device == cuda.Device(0) and x[1:3].device == x.device and (x + 1).device.id == 0
    cuda.runtime.setDevice(0)
    assert cuda.runtime.deviceCanAccessPeer(0, 0) in (0, 1)


def test_streams_compute():
    first, second = cuda.Stream(), cuda.Stream(non_blocking=True, priority=-1)
    assert first != second and first == first and first.ptr != second.ptr and second.priority == -1
    assert first.device_id == 0 and not first.is_capturing()
    with first:
        x = ad.arange(1000.0)
        y = x * 2
        assert cuda.get_current_stream() == first
        with second:
            z = y + x
            assert cuda.get_current_stream() == second and cuda.get_current_stream(0) == second
        assert cuda.get_current_stream() == first
        w = z - x
    assert cuda.get_current_stream() == cuda.Stream.null
    np.testing.assert_array_equal(w.get(), np.arange(1000.0) * 2)
    first.synchronize()
    second.synchronize()
    assert first.done and second.done and cuda.Stream.null.done
    assert z.device.id == 0


def test_use_of_a_stream():
    stream = cuda.Stream()
    try:
        assert stream.use() is stream
        x = ad.ones(10) + 1
        del stream  # it stays as long as it is the thread's
        gc.collect()
        assert cuda.get_current_stream() != cuda.Stream.null
        x += 1
        assert x.get().tolist() == [3] * 10
    finally:
        cuda.Stream.null.use()
    assert cuda.get_current_stream() == cuda.Stream.null and cuda.Stream.null.device_id == -1
    assert (x * 2).get().tolist() == [6] * 10
    assert cuda.Stream(null=True) == cuda.Stream.null
    ad.sync()  # nothing went wrong on the way


def test_the_same_stream_twice():
    stream = cuda.Stream()
    with stream:
        with stream:
            x = ad.ones(3)
        assert cuda.get_current_stream() == stream
        x += 1
    assert cuda.get_current_stream() == cuda.Stream.null and x.get().tolist() == [2, 2, 2]


def test_many_streams_come_and_go():
    total = ad.zeros(100)
    for i in range(300):
        with cuda.Stream(priority=-(i % 2)):
            total += i
    np.testing.assert_array_equal(total.get(), np.full(100, sum(range(300)), float))
    ad.sync()


def test_operations_take_effect_in_order_on_whatever_streams():
    rng = np.random.default_rng(1)
    streams = [cuda.Stream(priority=-(i % 2)) for i in range(4)] + [cuda.Stream.null]
    host = [rng.integers(0, 100, 5000).astype(float) for _ in range(6)]
    device = [ad.asarray(h) for h in host]
    for _ in range(400):
        i, j, k = rng.integers(0, 6, 3)
        with streams[rng.integers(0, 5)]:
            match rng.integers(0, 6):
                case 0:
                    host[i], device[i] = host[j] + host[k], device[j] + device[k]
                case 1:
                    host[i] -= host[j]
                    device[i] -= device[j]
                case 2:
                    host[i], device[i] = np.cumsum(host[j]) % 64, ad.cumsum(device[j]) % 64
                case 3:
                    host[i], device[i] = np.sort(host[j])[::-1], ad.sort(device[j])[::-1]
                case 4:
                    new = rng.integers(0, 9, 5000).astype(float)
                    host[i], device[i] = new, ad.asarray(new)
                case 5:
                    host[i][100:200] = host[j][:100]
                    device[i][100:200] = device[j][:100].copy()
            host[i] = host[i] % 1000
            device[i] = device[i] % 1000
        if rng.integers(0, 40) == 0:
            np.testing.assert_array_equal(device[i].get(), host[i])
    for d, h in zip(device, host):
        np.testing.assert_array_equal(d.get(), h)


def test_threads_have_their_own():
    barrier = threading.Barrier(4)

    def body(number):
        with cuda.Stream() as stream:
            barrier.wait(PATIENCE)
            for i in range(50):
                x = ad.full(2000, number) + i
                assert cuda.get_current_stream() == stream
                assert int(x.sum()) == 2000 * (number + i)
        assert cuda.get_current_stream() == cuda.Stream.null

    in_threads(4, body)


def test_threads_share_a_stream_and_a_device():
    stream, device, barrier = cuda.Stream(), ad.ones(1).device, threading.Barrier(4)

    def body(number):
        try:
            for i in range(100):
                if i % 10 == 0:
                    barrier.wait(PATIENCE)
                with device, stream if (i + number) % 2 else cuda.Stream.null:
                    x = ad.full(100, i) + number
                assert cuda.get_current_stream() == cuda.Stream.null
                assert int(x.sum()) == 100 * (i + number)
        except BaseException:
            barrier.abort()
            raise

    in_threads(4, body)


def test_a_choice_that_cannot_be_made_changes_nothing():
    stream = cuda.Stream()
    stream._serial += 1000  # as if of another connection
    with pytest.raises(ValueError):
        with stream:
            pass
    assert cuda.get_current_stream() == cuda.Stream.null
    with cuda.Device(0):
        pass
    assert cuda.get_device_id() == 0


def test_events():
    stream, start, end = cuda.Stream(), cuda.Event(), cuda.Event()
    assert start.done
    start.synchronize()
    start.record()
    x = ad.ones((300, 300))
    with stream:
        for _ in range(5):
            x = x @ x / 300
        end.record()
    end.synchronize()
    assert end.done and start.done
    first = cuda.get_elapsed_time(start, end)
    assert isinstance(first, float) and 0 <= first < 60000
    end.record(stream)
    assert cuda.get_elapsed_time(start, end) >= first
    event = stream.record()
    cuda.Stream.null.wait_event(event)
    cuda.Stream.null.wait_event(cuda.Event())
    np.testing.assert_allclose((x + 0).get(), np.ones((300, 300)), rtol=1e-6)
    ad.sync()


def test_events_are_refused_where_they_make_no_sense():
    untimed = cuda.Event(disable_timing=True)
    timed = cuda.Stream.null.record()
    with pytest.raises(ValueError, match="not been recorded"):
        cuda.get_elapsed_time(timed, cuda.Event())
    untimed.record()
    with pytest.raises(ValueError, match="disable_timing"):
        cuda.get_elapsed_time(untimed, timed)
    untimed.synchronize()
    with pytest.raises(NotImplementedError):
        cuda.Event(interprocess=True)


def test_functions_of_the_host_are_called_behind_what_a_stream_was_given():
    stream, seen = cuda.Stream(), []
    x, host = ad.zeros(1000), cuda.alloc_pinned_memory(8000)
    for i in range(5):
        with stream:
            x += 1
            x.get(out=np.frombuffer(host))
        stream.launch_host_func(seen.append, np.frombuffer(host)[-1])
    assert seen == [1, 2, 3, 4, 5]
    stream.add_callback(lambda *told: seen.append(told), "arg")
    assert seen[-1] == (stream, 0, "arg")
    with pytest.raises(ZeroDivisionError):
        stream.launch_host_func(lambda x: x / 0, 1)


def test_streams_of_others_must_keep_to_the_protocol():
    class Foreign:
        def __init__(self, told):
            self.told = told

        def __cuda_stream__(self):
            return self.told

    for told, text in ((5, "2-tuple"), ((0,), "2-tuple"), (("a", 0), "int, int"), ((1, 5), "version")):
        with pytest.raises(TypeError, match=text):
            cuda.Stream.from_external(Foreign(told))
    with pytest.raises(NotImplementedError, match="none of the server's"):
        cuda.Stream.from_external(Foreign((0, 5)))


def test_an_event_waits_for_what_came_before():
    x = ad.asarray(np.random.default_rng(3).random((700, 700)))
    event, stream = cuda.Event(), cuda.Stream()
    for _ in range(4):
        x = x @ x / 200
    event.record()
    stream.wait_event(event)
    stream.synchronize()
    assert event.done


def test_objects_of_another_connection(own_server):
    import os
    before = os.environ["ARRAYD_URL"]
    stream, event = cuda.Stream(), cuda.Event()
    event.record()
    _, url = own_server()
    try:
        with stream:
            ad.connect(url)
            assert cuda.get_current_stream() == cuda.Stream.null  # choices end with their connection
            assert (ad.ones(3) + 1).get().tolist() == [2, 2, 2]
        for use in (stream.use, stream.synchronize, event.synchronize, lambda: stream.done):
            with pytest.raises(ValueError, match="another connection"):
                use()
        event.record()  # anew
        event.synchronize()
        stream = None
        ad.sync()
    finally:
        ad.connect(before)


# ---- memory ----

def test_memory_pool():
    pool = ad.get_default_memory_pool()
    assert isinstance(pool, cuda.MemoryPool)
    gc.collect()
    pool.free_all_blocks()
    before = pool.used_bytes()
    x = ad.ones(1 << 20)
    assert pool.used_bytes() == before + (8 << 20) <= pool.total_bytes()
    # Three questions are three moments: what earlier tests left may be given back between two of them.
    assert any(pool.free_bytes() == pool.total_bytes() - pool.used_bytes() for _ in range(20_000))
    del x
    assert pool.used_bytes() == before
    for _ in range(20_000):  # it is free when it is written down that nobody has it
        if pool.n_free_blocks() >= 1:
            break
    assert pool.n_free_blocks() >= 1
    kept = pool.total_bytes()
    pool.free_all_blocks()
    assert pool.total_bytes() <= kept


def test_limit_of_the_memory_pool(own_server):
    import os
    before = os.environ["ARRAYD_URL"]
    _, url = own_server()
    try:
        ad.connect(url)
        pool = ad.get_default_memory_pool()
        assert pool.get_limit() == 0
        pool.set_limit(size=4 << 20)
        assert pool.get_limit() == 4 << 20
        small = ad.ones(1 << 10)
        with pytest.raises(MemoryError, match="limit"):
            ad.ones(1 << 20).get()
        assert small.get()[0] == 1
        pool.set_limit(fraction=0.5)
        assert pool.get_limit() == ad.session_info()["memory"] // 2
        pool.set_limit(size=0)
        assert pool.get_limit() == 0 and ad.ones(1 << 20).get()[-1] == 1
        for arguments in ({}, {"size": 1, "fraction": 0.1}, {"size": -1}, {"fraction": 1.5}, {"fraction": -0.1}):
            with pytest.raises(ValueError):
                pool.set_limit(**arguments)
    finally:
        ad.connect(before)


# ---- two devices ----

@two_devices
def test_arrays_lie_where_they_were_made():
    x = ad.arange(1000.0)
    with cuda.Device(1) as device:
        y = ad.arange(1000.0)
        z = x + y  # the other device's memory is reached
        assert cuda.get_current_stream() == cuda.Stream.null
        with cuda.Stream() as stream:
            assert stream.device_id == 1
            w = z * 2
        moved = ad.asarray(x)
    assert x.device.id == 0 and y.device == z.device == w.device == moved.device == device
    assert cuda.get_device_id() == 0
    for got, expected in ((z, 2), (w, 4), (moved, 1)):
        np.testing.assert_array_equal(got.get(), np.arange(1000.0) * expected)
    back = ad.asarray(w)
    assert back.device.id == 0
    np.testing.assert_array_equal((back + x).get(), np.arange(1000.0) * 5)


@two_devices
def test_the_default_stream_of_each_device():
    stream = cuda.Stream()
    with stream:
        with cuda.Device(1):
            assert cuda.get_current_stream() == cuda.Stream.null and cuda.get_current_stream(0) == stream
            x = ad.ones(10)
        assert cuda.get_current_stream() == stream
    assert x.device.id == 1


@two_devices
def test_large_copies_between_devices():
    host = np.random.default_rng(5).random(1 << 22)
    for number in range(2):
        with cuda.Device(number):
            x = ad.asarray(host)
        with cuda.Device(1 - number):
            y = ad.empty(1 << 22)
            y[...] = x
            z = ad.sort(x)
        assert y.device.id == z.device.id == 1 - number
        np.testing.assert_array_equal(y.get(), host)
        np.testing.assert_array_equal(z.get(), np.sort(host))


def test_pinned_memory():
    memory = cuda.alloc_pinned_memory(8000)
    host = np.frombuffer(memory, np.float64, 1000)
    host[:] = np.arange(1000)
    assert memory.ptr == host.ctypes.data == memory.mem.ptr and (memory + 8).ptr == memory.ptr + 8
    assert np.frombuffer(8 + memory, np.float64)[0] == 1 and (memory + 24 - 16).size() == 7992 and int(memory) == memory.ptr
    with pytest.raises(BufferError):
        np.frombuffer(memory + 8001)
    del memory
    np.testing.assert_array_equal(ad.asarray(host).get(), np.arange(1000))
    shaped = ad.cupyx.empty_pinned((2, 3), "f4", order="f")
    assert shaped.base.ptr == shaped.ctypes.data and isinstance(shaped.base, cuda.PinnedMemoryPointer)
    asked = []
    cuda.set_pinned_memory_allocator(lambda size: asked.append(size) or cuda.PinnedMemoryPool().malloc(size))
    try:
        cuda.alloc_pinned_memory(16)
    finally:
        cuda.set_pinned_memory_allocator(ad.get_default_pinned_memory_pool().malloc)
    assert asked == [16]
    with pytest.raises(TypeError, match="allocator must be a function"):
        cuda.set_pinned_memory_allocator(5)
    assert len(cuda.PinnedMemoryPool().malloc(100)) >= 100 and len(cuda.alloc_pinned_memory(0)) == 0
    for wrong, error in ((-1, ValueError), (1.5, TypeError)):
        with pytest.raises(error):
            cuda.alloc_pinned_memory(wrong)


def test_runtime_functions():
    runtime, device = cuda.runtime, cuda.Device(0)
    assert runtime.deviceGetAttribute(runtime.cudaDevAttrMultiProcessorCount, 0) \
        == device.attributes["MultiProcessorCount"]
    for attribute, number in ((17, 0), (16, DEVICES)):
        with pytest.raises(ValueError):
            runtime.deviceGetAttribute(attribute, number)
    with cuda.Stream() as stream:
        ad.ones(1000) + 1
    runtime.streamSynchronize(stream.ptr)
    assert runtime.streamQuery(stream.ptr) and issubclass(runtime.CUDARuntimeError, ad.ArraydError)
    assert cuda.memory.OutOfMemoryError is MemoryError and cuda.stream.Stream is cuda.Stream


@pytest.mark.parametrize("name", ["PythonFunctionAllocator", "get_cublas_handle"])
def test_names_that_cannot_be(name):
    with pytest.raises(AttributeError, match=f"'arrayd.cuda' has no attribute '{name}': "):
        getattr(cuda, name)
    with pytest.raises(AttributeError, match="'nothing'$"):
        cuda.nothing


def test_streams_of_threads():
    ptds, told = cuda.Stream.ptds, []
    assert ptds == cuda.Stream(ptds=True) != cuda.Stream.null and ptds.ptr == ptds.ptr and ptds.device_id == -1
    in_threads(3, lambda _: told.append(ptds.ptr))
    assert len({ptds.ptr, cuda.Stream.null.ptr, *told}) == 5
    a = ad.zeros(1000)
    with ptds:
        assert cuda.get_current_stream() is ptds
        a += 1
    a *= 2
    ptds.synchronize()
    assert ptds.done and a.sum() == 2000
    with pytest.raises(ValueError, match="two streams"):
        cuda.Stream(null=True, ptds=True)


def test_streams_by_number():
    number = cuda.runtime.streamCreate()
    with pytest.warns(DeprecationWarning):
        stream, same = cuda.ExternalStream(number), cuda.ExternalStream(number)
    assert stream == same and stream.ptr == number and not stream.is_non_blocking
    assert cuda.Stream(non_blocking=True).is_non_blocking
    with stream:
        a = ad.ones(10) + 1
    stream.synchronize()
    assert a.sum() == 20
    cuda.runtime.streamDestroy(number)
    for address in (0x7F0012345678, 1 << 70, -3):
        with pytest.raises(ValueError, match="ExternalStream: .* no stream of the server"), pytest.warns(DeprecationWarning):
            cuda.ExternalStream(address)
    again = cuda.Stream.from_external(stream)
    assert again == stream and again.ptr == stream.ptr and again.device_id == -1
    default = cuda.Stream(null=True).use()
    assert cuda.get_current_stream() is default
    assert cuda.Stream.null.use() is cuda.get_current_stream()
    with pytest.raises(TypeError, match="__cuda_stream__"):
        cuda.Stream.from_external(5)

    class Foreign:
        def __cuda_stream__(self):
            return 0, 0x7F0012345678

    with pytest.raises(NotImplementedError, match="none of the server's"):
        cuda.Stream.from_external(Foreign())


def test_facts_by_which_programs_choose_their_blocks():
    properties, attributes = cuda.runtime.getDeviceProperties(0), cuda.Device(0).attributes
    assert properties["multiProcessorCount"] > 0 and properties["regsPerBlock"] == attributes["MaxRegistersPerBlock"] == 65536
    assert properties["maxThreadsPerMultiProcessor"] == attributes["MaxThreadsPerMultiProcessor"] in (1024, 1536, 2048)
    assert cuda.runtime.deviceGetAttribute(cuda.runtime.cudaDevAttrMaxSharedMemoryPerBlock, 0) == properties["sharedMemPerBlock"]
    code = """extern "C" __global__ void f(int *out, int n) {
        extern __shared__ int held[];
        if (!threadIdx.x) held[n - 1] = 7;
        __syncthreads();
        if (threadIdx.x == 1) *out = held[n - 1];
    }"""
    out, kernel = ad.zeros(1, "int32"), ad.RawKernel(code, "f")
    kernel((1,), (2,), (out, np.int32(properties["sharedMemPerBlock"] // 4)), shared_mem=properties["sharedMemPerBlock"])
    assert int(out[0]) == 7


def test_facts_of_devices():
    device = cuda.Device()
    properties = cuda.runtime.getDeviceProperties(device.id)
    assert all(isinstance(value, int) for value in device.attributes.values())
    assert properties["maxThreadsPerBlock"] == device.attributes["MaxThreadsPerBlock"] \
        == cuda.runtime.deviceGetAttribute(cuda.runtime.cudaDevAttrMaxThreadsPerBlock, device.id)
    code = "extern \"C\" __global__ void f(int *out) { if (!threadIdx.x) *out = blockDim.x + warpSize; }"
    out, kernel = ad.zeros(1, "int32"), ad.RawKernel(code, "f")
    kernel((1,), (properties["maxThreadsPerBlock"],), (out,))
    assert int(out[0]) == properties["maxThreadsPerBlock"] + properties["warpSize"]
    assert kernel.max_threads_per_block <= properties["maxThreadsPerBlock"]
    shared = device.attributes["MaxSharedMemoryPerBlockOptin"]
    assert properties["sharedMemPerBlock"] <= properties["sharedMemPerBlockOptin"] == shared \
        <= properties["sharedMemPerMultiprocessor"] and properties["regsPerMultiprocessor"] >= properties["regsPerBlock"]
    code = "extern \"C\" __global__ void g(int *out, int n) { extern __shared__ int s[]; s[n] = 7; *out = s[n]; }"
    kernel = ad.RawKernel(code, "g")
    kernel.max_dynamic_shared_size_bytes = shared
    kernel((1,), (1,), (out, np.int32(shared // 4 - 1)), shared_mem=shared)
    assert int(out[0]) == 7
    assert cuda.device.get_compute_capability() == device.compute_capability and device.use() is device
    with pytest.raises(NotImplementedError, match="does not tell where"):
        cuda.Device.from_pci_bus_id("0000:00:00.0")
    if ad.session_info()["backend"] == "cpu":  # programs tell it in their logs
        assert device.pci_bus_id == ""
        return
    with pytest.raises(NotImplementedError, match="does not tell where"):
        print(device.pci_bus_id)


def test_addresses_of_devices():
    a = ad.zeros(4)
    assert cuda.device.from_pointer(a.data.ptr + 31) == a.device
    assert cuda.runtime.pointerGetMemoryType(a.data.ptr) == cuda.runtime.memoryTypeDevice
    assert cuda.runtime.pointerGetMemoryType(1) == cuda.runtime.memoryTypeUnregistered
    with pytest.raises(ValueError, match="no array's memory"):
        cuda.device.from_pointer(1)


@pytest.mark.parametrize("name", cuda._libraries.NAMES)
def test_libraries(name):
    module = importlib.import_module("arrayd.cuda." + name)
    assert module is getattr(cuda, name) and module.__doc__.endswith(".") and set(module.__all__) <= set(dir(module))
    assert getattr(module, "available", False) is (name == "nvtx")
    for each in module.__all__:
        if each.endswith("Error"):
            assert issubclass(getattr(module, each), ad.ArraydError)
    with pytest.raises(AttributeError, match=f"'arrayd.cuda.{name}' has no attribute 'createHandle': "):
        module.createHandle
    with pytest.raises(AttributeError, match="'__path__'$"):
        module.__path__


def test_what_libraries_tell():
    assert cuda.driver.get_build_version() == cuda.runtime.runtimeGetVersion() == cuda.get_local_runtime_version()
    assert cuda.cufft.get_current_plan() is None and not cuda.nccl_enabled
    assert cuda.nvtx_enabled


@pytest.mark.parametrize("installed", [True, False])
def test_marks_and_ranges_go_to_nvtx(installed, monkeypatch):
    seen = []
    package = types.SimpleNamespace(mark=lambda message, color: seen.append(("mark", message, color)),
                                    push_range=lambda message, color: seen.append(("push", message, color)),
                                    pop_range=lambda: seen.append(("pop",)))
    monkeypatch.setitem(sys.modules, "nvtx", package if installed else None)
    cuda._nvtx._profiler.cache_clear()
    try:
        cuda.nvtx.RangePush("part", 2)
        cuda.nvtx.RangePushC("inner", 0xff00ff00)
        cuda.nvtx.Mark("here")
        cuda.nvtx.MarkC("there", 0xffffffff)
        cuda.nvtx.RangePop()
    finally:
        cuda._nvtx._profiler.cache_clear()
    assert seen == ([("push", "part", 0xffff7f0e), ("push", "inner", 0xff00ff00), ("mark", "here", None),
                     ("mark", "there", 0xffffffff), ("pop",)] if installed else [])


def test_devices_and_priorities_are_numbers():
    with pytest.raises(TypeError, match="device must be a Device or its number, not str"):
        cuda.Device("gpu")
    with pytest.raises(TypeError, match="priority must be an int, not str"):
        cuda.Stream(priority="high")
