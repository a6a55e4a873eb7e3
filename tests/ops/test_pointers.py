"""Memory by its address: ndarray.data, pointers to memory, and arrays that are made at them."""
import ctypes
import gc
import threading

import numpy as np
import pytest

import arrayd as ad
from arrayd import cuda
from oracle import seed

ON_CPU = ad.session_info()["backend"] == "cpu"
on_the_host = pytest.mark.skipif(not ON_CPU, reason="addresses are a GPU's")


def here(address, dtype, n):
    """Return what lies at an address, as NumPy sees it."""
    dtype = np.dtype(dtype)
    return np.frombuffer((ctypes.c_ubyte * (n * dtype.itemsize)).from_address(address), dtype)


@on_the_host
def test_data_is_where_the_elements_are():
    host = np.arange(24, dtype="int32").reshape(2, 3, 4)
    a = ad.asarray(host)
    seen = here(a.data.ptr, "int32", 24)
    assert (seen == host.ravel()).all()
    a *= 3
    ad.sync()
    assert (seen == 3 * host.ravel()).all()
    seen[:2] = -1, -2
    assert a.ravel()[:3].get().tolist() == [-1, -2, 6]


def test_views_have_addresses_of_one_memory():
    a = ad.zeros((4, 6), "float32")
    for view in (a[1:], a[::-1], a[:, ::2], a.T[3:, 1], a.reshape(-1)[7:], a.view("uint8")[2, 5:], a[2:3, 4:5]):
        host = np.zeros((4, 6), "float32")
        begin = view.data.ptr - a.data.ptr
        low = sum(min(0, (n - 1) * s) for n, s in zip(view.shape, view.strides))
        assert 0 <= begin + low < a.nbytes and view.data.mem is a.data.mem
        same = np.ndarray(view.shape, view.dtype, host, begin, view.strides)
        same[...] = 5
        view[...] = 5
        np.testing.assert_array_equal(a.get(), host)
        a[...] = 0
    assert a[1:].data.ptr == a.data.ptr + a.strides[0]
    assert ad.zeros((0, 3)).data.ptr == 0


def test_address_stays():
    a = ad.arange(1000)
    before = a.data.ptr
    for _ in range(5):
        b = a + 1
        a += b
    assert a.data.ptr == before == a.reshape(10, 100).data.ptr
    assert int(a.data) == before


def test_array_at_a_pointer():
    a = ad.arange(6, dtype="float32").reshape(2, 3)
    b = ad.ndarray((2, 3), np.float32, a.data)
    b += 1
    assert a.get().tolist() == [[1, 2, 3], [4, 5, 6]]
    c = ad.ndarray((2, 2), np.float32, a.data + 4, strides=(12, 4))
    assert c.get().tolist() == [[2, 3], [5, 6]] and c.strides == (12, 4)
    f = ad.ndarray((2, 3), "float32", a.data, order="F")
    assert f.flags.f_contiguous and f.get().tolist() == [[1, 3, 5], [2, 4, 6]]
    assert ad.ndarray(3, strides=(0,), memptr=ad.zeros(1).data).strides == (0,)
    raw = ad.ndarray(20, np.uint8)
    overlapping = ad.ndarray((2, 3), np.float32, raw.data, strides=(8, 4))
    overlapping[0] = 1
    overlapping[0, 2] = 4
    assert float(overlapping[1, 0]) == 4
    for shape, options in (((7,), {}), ((2, 3), {"strides": (16, 4)}), ((6,), {"memptr": a.data + 4})):
        with pytest.raises((ValueError, IndexError)):
            ad.ndarray(shape, "float32", **{"memptr": a.data, **options})
    with pytest.raises(TypeError, match="memptr must be a cuda.MemoryPointer"):
        ad.ndarray(3, memptr=3)


def test_constructor():
    for order in ("C", "F", "c", "f", None):
        got, want = ad.ndarray((2, 3, 4), "int16", order=order), np.ndarray((2, 3, 4), "int16", order=order)
        assert got.strides == want.strides and got.flags.c_contiguous == want.flags.c_contiguous
        assert not got.any()
    assert ad.ndarray((2, 3), "float32", strides=(4, 8)).strides == (4, 8)
    for options in ({"strides": (20, 4)}, {"strides": (-12, 4)}, {"strides": (8, 4), "order": "!"}, {"order": "x"},
                    {"strides": (4,)}):
        with pytest.raises(ValueError):
            ad.ndarray((2, 3), "float32", **options)
    for shape in (None, 1.0, (1.0,)):
        with pytest.raises(TypeError):
            ad.ndarray(shape)


def test_allocated_memory():
    p = cuda.alloc(64)
    assert p.mem.size == 64 and p.device_id == 0 and p.device == cuda.Device(0)
    a = ad.ndarray((2, 4), "float32", p + 16)
    a[...] = 3
    assert a.data.mem is p.mem and a.data.ptr == p.ptr + 16 == (16 + p).ptr and (a.data - 16).ptr == p.ptr
    assert ad.ndarray((16,), "float32", p)[4:12].get().tolist() == [3] * 8
    q = p
    q += 4
    q -= 2
    assert q.ptr == p.ptr + 2
    for size in (-1, 2.5):
        with pytest.raises((ValueError, TypeError)):
            cuda.alloc(size)
    assert cuda.alloc(0).ptr == 0 and cuda.malloc_async(8).mem.size == 8
    with pytest.raises(TypeError, match="BaseMemory"):
        cuda.MemoryPointer(5, 0)


def test_copies():
    source, target = np.arange(10, dtype="int32"), np.zeros(10, dtype="int32")
    p, q = cuda.alloc(40), cuda.alloc(48)
    p.copy_from_host(source.ctypes.data, 40)
    (q + 8).copy_from_device(p, 40)
    (q + 8).copy_to_host(ctypes.c_void_p(target.ctypes.data), 40)
    assert (target == source).all()
    q.memset(1, 8)
    q.copy_to_host(target.ctypes.data, 8)
    assert target[:3].tolist() == [0x01010101, 0x01010101, 2]
    q.copy_from(ctypes.c_void_p(source.ctypes.data), 12)
    (q + 12).copy_from(p, 4)
    (q + 16).copy_from(p.ptr + 4, 4)
    assert ad.ndarray(5, "int32", q).get().tolist() == [0, 1, 2, 0, 1]
    stream = cuda.Stream()
    for on in (stream, None):
        q.memset_async(0, 48, on)
        q.copy_from_async(p, 40, on)
        q.copy_from_host_async(source.ctypes.data + 8, 4, on)
        q.copy_to_host_async(target.ctypes.data, 40, on)
        assert target.tolist() == [2, *range(1, 10)]
    for call in (lambda: p.memset(0, 41), lambda: (p + 1).copy_from(q, 40), lambda: (p - 1).memset(0, 1)):
        with pytest.raises(ValueError, match="the memory has 40 bytes"):
            call()


def test_a_pointer_to_no_memory_is_null_in_a_kernel():
    """Programs tell so that an argument is left out."""
    nothing, a, out = cuda.UnownedMemory(0, 0, None), ad.arange(4, dtype="u8"), ad.ones(5, "u8")
    kernel = ad.RawKernel("""extern "C" __global__ void f(const long *x, int place, unsigned long long *out) {
        out[place] = x ? x[0] : 100;
    }""", "f")
    for place, pointer in enumerate((cuda.MemoryPointer(nothing, 0), cuda.alloc(0), None, (a.data + 8),
                                     cuda.MemoryPointer(cuda.UnownedMemory(a.data.ptr + 16, 0, a), 0))):
        kernel((1,), (1,), (pointer, np.int32(place), out))
    assert out.tolist() == [100, 100, 100, 1, 2]


def test_the_runtimes_memcpy_and_memset():
    runtime, stream = cuda.runtime, cuda.Stream()
    rng = seed("memcpy")
    host, back = rng.integers(0, 99, 8, "int32"), np.zeros(8, "int32")
    a, b = ad.zeros(8, "int32"), ad.ones(8, "int32")
    runtime.memcpy(a.data.ptr, host.ctypes.data, 32, runtime.memcpyHostToDevice)
    runtime.memcpyAsync(b.data.ptr + 4, a.data.ptr, 28, runtime.memcpyDeviceToDevice, stream.ptr)
    assert b.tolist() == [1, *host[:7].tolist()]
    runtime.memsetAsync(b.data.ptr + 8, 0, 8, cuda.Stream.null.ptr)
    runtime.memset(b[6:].data.ptr, -1, 8)
    runtime.memcpyAsync(back.ctypes.data, b.data.ptr, 32, runtime.memcpyDefault, stream.ptr)
    assert back.tolist() == [1, host[0], 0, 0, host[3], host[4], -1, -1]
    runtime.memcpy(back.ctypes.data, host.ctypes.data, 32, runtime.memcpyHostToHost)
    assert (back == host).all()
    runtime.memset(0, 0, 0)
    runtime.memcpy(0, 0, 0, runtime.memcpyDefault)


def test_what_the_runtimes_memcpy_and_memset_refuse():
    runtime, a, host = cuda.runtime, ad.zeros(8, "int32"), np.zeros(16, "int32")
    for call in (lambda: runtime.memset(a.data.ptr, 0, 1 << 40), lambda: runtime.memset(host.ctypes.data, 0, 4),
                 lambda: runtime.memcpy(host.ctypes.data, host.ctypes.data, 4, runtime.memcpyHostToDevice),
                 lambda: runtime.memcpy(host.ctypes.data, host.ctypes.data, 4, runtime.memcpyDeviceToHost),
                 lambda: runtime.memcpy(a.data.ptr, host.ctypes.data, 1 << 40, runtime.memcpyDefault)):
        with pytest.raises(ValueError, match="(ptr|dst|src): .* bytes .* not within an array's memory; a.data.ptr tells"):
            call()
    with pytest.raises(ValueError, match="kind must be memcpyHostToHost to memcpyDefault"):
        runtime.memcpy(a.data.ptr, a.data.ptr, 4, 5)
    with pytest.raises(ValueError, match="stream: 12345 is no stream of the server"):
        runtime.memsetAsync(a.data.ptr, 0, 4, 12345)


def test_unowned_memory_of_an_array():
    a = ad.arange(10.0)
    memory = cuda.UnownedMemory(a.data.ptr + 16, 40, a)
    b = ad.ndarray((2, 2), float, cuda.MemoryPointer(memory, 8))
    b *= -1
    assert a.get().tolist() == [0, 1, 2, -3, -4, -5, -6, 7, 8, 9]
    assert memory.size == 40 and memory.device_id == 0 and b.data.ptr == a.data.ptr + 24
    assert ad.ndarray((0,), float, cuda.MemoryPointer(cuda.UnownedMemory(0, 0, None), 0)).shape == (0,)


@on_the_host
def test_unowned_memory_of_the_process():
    host = np.zeros(4)
    memory = cuda.UnownedMemory(host.ctypes.data, 32, host)
    assert memory.ptr == host.ctypes.data
    with pytest.raises(NotImplementedError, match="asarray"):
        ad.ndarray(4, memptr=cuda.MemoryPointer(memory, 0))


class Described:
    """An array's memory as another library describes it."""

    def __init__(self, a, **more):
        self._keep = a
        self._interface = {"shape": a.shape, "typestr": a.dtype.str, "data": (a.data.ptr, False), "strides": a.strides,
                           "version": 3, **more}

    @property
    def __cuda_array_interface__(self):
        return self._interface


def test_described_memory_of_an_array():
    a = ad.arange(12).reshape(3, 4)
    b = ad.asarray(Described(a[::-1, 1:]))
    assert b.strides == (-32, 8)
    b[0] = -1
    assert a.get().tolist() == [[0, 1, 2, 3], [4, 5, 6, 7], [8, -1, -1, -1]]
    np.testing.assert_array_equal(ad.asnumpy(Described(a)), a.get())
    np.testing.assert_array_equal(ad.add(Described(a), 1).get(), a.get() + 1)
    np.testing.assert_array_equal(ad.array([[Described(a)], [Described(b)]][0], order="F").get(), a.get()[None])
    copied = ad.array(Described(a.T))
    copied[...] = 0
    assert a.any() and copied.shape == (4, 3)
    empty = ad.asarray(Described(a[:0], data=(0, False)))
    assert empty.shape == (0, 4) and empty.dtype == "int64"
    with pytest.raises(ValueError, match="byte-order"):
        ad.asarray(Described(a, typestr=">i8"))
    if ON_CPU:
        with pytest.raises(BufferError, match="the server uses no GPU"):
            ad.asarray(Described(a, data=(4096, False)))
    with pytest.raises(ValueError, match="masked"):
        ad.asarray(Described(a, mask=a))


def test_memory_is_kept():
    p = cuda.alloc(8)
    a = ad.ndarray(1, memptr=p)
    a[0] = 7
    address = p.ptr
    del p
    gc.collect()
    assert a.data.ptr == address and float(a[0]) == 7


def test_one_memory_in_threads():
    a, told = ad.arange(1000), []
    start = threading.Barrier(4)

    def tell():
        start.wait()
        told.append(a[5:].data.ptr)

    threads = [threading.Thread(target=tell) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(told) == {a.data.ptr + 40} and len(told) == 4


def test_allocators():
    default = cuda.get_allocator()
    assert default(16).mem.size == 16
    pool = cuda.MemoryPool(cuda.malloc_async)
    try:
        for allocator in (None, cuda.alloc, pool.malloc, cuda.MemoryAsyncPool().malloc):
            cuda.set_allocator(allocator)
            assert cuda.get_allocator() == (allocator or cuda.alloc)
        with cuda.using_allocator(default):
            assert cuda.get_allocator() == default and ad.zeros(3).get().tolist() == [0, 0, 0]
            with pytest.raises(ValueError, match="using_allocator"):
                cuda.set_allocator()
        assert cuda.get_allocator() != default
        for refused in (lambda size: cuda.alloc(size), bytearray):
            for call in (cuda.set_allocator, cuda.MemoryPool, lambda f: cuda.using_allocator(f).__enter__()):
                with pytest.raises(NotImplementedError, match="calls no function of this process"):
                    call(refused)
    finally:
        cuda.set_allocator(default)
    gc.collect()  # arrays of tests before that end meanwhile
    used = pool.used_bytes()
    p = pool.malloc(1 << 20)
    ad.ndarray(1 << 20, "u1", p).fill(1)
    assert pool.used_bytes() - used >= 1 << 20 and pool.total_bytes() == ad.get_default_memory_pool().total_bytes()


@on_the_host
def test_managed_memory():
    p = cuda.malloc_managed(40)
    a = ad.ndarray(5, memptr=p)
    a[...] = 2
    ad.sync()
    assert here(p.ptr, float, 5).tolist() == [2] * 5
    with cuda.using_allocator(cuda.MemoryPool(cuda.malloc_managed).malloc):
        assert cuda.get_allocator()(8).mem.size == 8


def test_arrays_of_one_buffer_have_one_address():
    """An array made of another one's capsule lies where that does, whoever is asked first and whoever goes first."""
    for asked_before in (False, True):
        a = ad.arange(12.0).reshape(3, 4)
        begin = a.data.ptr if asked_before else None
        b = ad.from_dlpack(a.__dlpack__(max_version=(1, 0)))
        assert b.data.ptr == a.data.ptr and begin in (None, a.data.ptr)
        begin = a.data.ptr
        del a
        assert b[1:].data.ptr == begin + 32
        c = ad.from_dlpack(b.__dlpack__())
        assert c.data.ptr == begin
        del b
        assert c.data.ptr == begin
