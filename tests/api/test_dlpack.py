"""DLPack: to and from NumPy, array-api-strict and, where it is installed, PyTorch."""
import concurrent.futures
import ctypes
import gc
import importlib.util
import os
import sys
import threading

import numpy as np
import pytest
from leases import exports
from standard import DTYPES, xs

import arrayd as ad
from arrayd._interop import addresses, dlpack


@pytest.fixture(autouse=True)
def on_the_host():
    if ad.session_info()["backend"] == "cuda":
        pytest.skip("the elements are a GPU's: tests/gpu/test_export.py")


class Tensor:
    """A tensor of another library, on some device. Old libraries have it without the newer keywords."""

    def __init__(self, host, device=(1, 0)):
        self._host, self._device = host, device

    def __dlpack_device__(self):
        return self._device

    def __dlpack__(self, stream=None):
        assert stream is None
        return self._host.__dlpack__()


CASES = [np.arange(12.0).reshape(3, 4), np.arange(12.0).reshape(3, 4).T, np.arange(10)[::-2], np.zeros((0, 3)),
         np.array(5.0), np.broadcast_to(np.arange(3), (2, 3)), np.arange(300_000, dtype=np.float32)]


@pytest.mark.parametrize("host", CASES, ids=lambda host: str(host.shape))
def test_round_trips(host):
    x = ad.from_dlpack(host)
    assert isinstance(x, ad.ndarray) and x.dtype == host.dtype
    np.testing.assert_array_equal(x.get(), host)
    np.testing.assert_array_equal(np.from_dlpack(x), host)
    np.testing.assert_array_equal(np.asarray(xs.from_dlpack(x)), host)
    np.testing.assert_array_equal(ad.from_dlpack(xs.asarray(host.copy())).get(), host)
    np.testing.assert_array_equal(ad.from_dlpack(Tensor(host.copy())).get(), host)
    view = x[..., ::-1] if host.ndim else x
    np.testing.assert_array_equal(np.from_dlpack(view), view.get())


def test_types():
    for dtype in (*DTYPES, "float16"):
        host = np.array([0, 1, 1]).astype(dtype)
        assert np.from_dlpack(ad.asarray(host)).dtype == ad.from_dlpack(host).dtype == dtype
    with pytest.raises((BufferError, RuntimeError)): # it is NumPy that has none
        np.from_dlpack(ad.ones(2, dtype="bfloat16"))


def test_the_same_memory():
    """Each end writes, and sees what the other wrote. An array that needs a copy gets one."""
    x = ad.arange(6.0).reshape(2, 3)
    host, view = np.from_dlpack(x), np.from_dlpack(x[:, ::-2], copy=False)
    host[0, 0] = 7
    assert x[0, 0] == 7 and view[0, 1] == 7 and host.flags.writeable and host.shape == (2, 3)
    x += 1
    ad.sync()
    assert host[0, 0] == 8 and view[0, 1] == 8
    exports(2)
    for copy in (np.from_dlpack(x, copy=True), x.get()):
        copy[0, 0] = 9
    assert x[0, 0] == 8
    for width in ("int8", "complex128", "bool"):
        small = ad.zeros(3, dtype=width)
        np.from_dlpack(small)[1] = 1
        assert small.tolist() == [0, 1, 0]


def test_memory_outlives_the_array():
    x = ad.arange(1000.0)
    host = np.from_dlpack(x)
    del x
    assert host.sum() == 499_500
    exports(1)
    more = [ad.full(1000, -1.0) for _ in range(10)]
    ad.sync()
    assert host.sum() == 499_500
    host[:] = 0
    assert sum(float(each.sum()) for each in more) == -10_000
    del host
    exports(0)


class Kept:
    """Gives memory that was mapped before, as is done with a GPU's."""

    def __init__(self, a):
        self.a, self.address = a, addresses.address_of(a)

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **_):
        return dlpack._core.export_dlpack(self.a, 0, True, addresses.memory_of(self.a))


def test_memory_is_mapped_once():
    x = ad.zeros(100_000)
    kept = Kept(x)
    other = ad.cuda.Stream()
    for i in range(20):
        with other if i % 2 else ad.cuda.Stream.null:
            x += 1
        host = np.from_dlpack(kept)
        assert host.ctypes.data == kept.address and (host == i + 1).all()
    host[0] = -1
    del kept, host
    exports(1)
    assert x[0] == -1
    with pytest.raises(TypeError, match="export_memory"):
        dlpack._core.export_dlpack(x, 0, True, 5)
    del x
    exports(0)


def test_threads_are_told_one_address():
    for _ in range(20):
        x = ad.zeros(1000)
        start = threading.Barrier(4)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            told = list(pool.map(lambda _: (start.wait(), addresses.address_of(x))[1], range(4)))
        assert set(told) == {addresses.address_of(x)}
    x = None
    exports(0)


def test_capsules_that_nobody_takes():
    x = ad.arange(10)
    kept = [x.__dlpack__(), x.__dlpack__(max_version=(1, 0))]
    exports(2)
    kept.clear()
    exports(0)
    assert x.tolist() == list(range(10))


class Old:
    """An array as a library asks for it that knows no version of DLPack."""

    def __init__(self, array, **how):
        self.array, self.how = array, how

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **_):
        return self.array.__dlpack__(**self.how)


def test_what_is_published_is_read():
    """The memory of a read-only array is not copied, and cannot be written. A library that does not know the flag gets a copy."""
    name = "test_dlpack"
    source = ad.arange(70_000.0)
    ad.publish(name, source)
    x = ad.attach(name)
    host, again = np.from_dlpack(x), np.from_dlpack(x, copy=False)
    assert not host.flags.writeable and host.ctypes.data == again.ctypes.data
    exports(2)
    source += 1
    ad.sync()
    assert np.array_equal(host, np.arange(70_000.0)) and source[3] == 4 and x[3] == 3
    copy = np.from_dlpack(Old(x))
    assert np.array_equal(copy, host) and copy.ctypes.data != host.ctypes.data
    with pytest.raises(BufferError, match="read-only"):
        np.from_dlpack(Old(x, copy=False))
    ad.unpublish(name)


@pytest.mark.parametrize("n", [5, 70_000, 3_000_000])
def test_memory_that_is_read_stays_as_it_is(n):
    """A write to the elements by another array makes a copy, until the last reader has gone."""
    x = ad.arange(float(n))
    view = x[1:]
    view.flags.writeable = False
    for write in (lambda: x.__iadd__(1), lambda: x.__setitem__(-1, -7), lambda: x.sort()):
        before = x.get()
        host = np.from_dlpack(view, copy=False)
        write()
        ad.sync()
        assert np.array_equal(host, before[1:]) and not host.flags.writeable
    other = np.from_dlpack(x, copy=False)
    other[1] = 50
    assert x[1] == 50 and view[0] == 50 and np.array_equal(host, before[1:])
    seen = np.from_dlpack(view, copy=False)  # memory that is written already is seen to change
    other[1] = 60
    assert seen[0] == 60 and not seen.flags.writeable
    del host, seen, other
    exports(0)


def test_two_readers_and_a_writer():
    """Readers of the same memory have it at one address. Its last reader gone, it is written in place again."""
    x = ad.arange(70_000.0)
    view = x[:]
    view.flags.writeable = False
    first, second = (np.from_dlpack(view, copy=False) for _ in range(2))
    assert first.ctypes.data == second.ctypes.data
    del first
    exports(1)
    assert second[-1] == 69_999
    copies = ad.stat()["used_bytes"]
    x += 1
    ad.sync()
    assert ad.stat()["used_bytes"] >= copies + x.nbytes and second[0] == 0
    del second
    exports(0)
    before = ad.stat()["used_bytes"]
    for _ in range(3):
        x += 1
    ad.sync()
    assert ad.stat()["used_bytes"] == before and x[0] == 4


def test_a_child_of_a_reader_reads_on():
    """The memory that a fork's child has inherited of a reader stays as it is, also when the reader has gone."""
    x = ad.arange(70_000.0)
    view = x[:]
    view.flags.writeable = False
    host = np.from_dlpack(view, copy=False)
    (asked, ask), (answer, answered) = os.pipe(), os.pipe()
    pid = os.fork()
    if not pid:
        os.read(asked, 1)
        os.write(answered, bytes([np.array_equal(host, np.arange(70_000.0))]))
        os._exit(0)
    del host
    x *= 5
    ad.sync()
    os.write(ask, b"x")
    assert os.read(answer, 1) == b"\1" and os.waitpid(pid, 0)[1] == 0
    for end in (asked, ask, answer, answered):
        os.close(end)
    exports(0)


def test_the_flag():
    x = ad.arange(6.0)
    earlier = x[2:]
    x.flags.writeable = True
    x.flags.writeable = False
    assert not x.flags.writeable and not x[1:].flags.writeable and not x.flags["WRITEABLE"]
    for write in (lambda: x.__setitem__(0, 1), lambda: x.__iadd__(1), lambda: ad.add(1, 1, out=x[0]), lambda: x.sort()):
        with pytest.raises(ValueError, match="read-only"):
            write()
    with pytest.raises(ValueError, match="WRITEABLE"):
        x.flags.writeable = True
    with pytest.raises(AttributeError):
        x.flags.c_contiguous = False
    with pytest.raises(AttributeError):
        del x.flags.writeable
    earlier[0] = 20
    assert x.tolist() == [0, 1, 20, 3, 4, 5] and (x + 0).flags.writeable and x.copy().flags.writeable


def test_a_host_tensor_is_copied():
    source = np.zeros(3)
    made = ad.from_dlpack(source)
    source[0] = 7
    assert made.tolist() == [0, 0, 0]
    kept = np.arange(5.0)
    kept.flags.writeable = False
    assert ad.from_dlpack(kept).tolist() == [0, 1, 2, 3, 4]


def test_forked():
    """A child's memory is the same; that it ends, or drops it, is nothing to the parent."""
    x = ad.arange(5.0)
    host = np.from_dlpack(x)
    pid = os.fork()
    if not pid:
        host[1] = 10
        x[2] = 20
        ad.sync()
        del host
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    assert host.tolist() == x.tolist() == [0, 10, 20, 3, 4]
    exports(1)
    host[3] = 30
    assert x[3] == 30


def test_keywords():
    x = ad.arange(3)
    assert x.__dlpack_device__() == (1, 0)
    for kwargs in ({}, {"stream": None}, {"max_version": (1, 0)}, {"dl_device": (1, 0)}, {"copy": True}, {"copy": None},
                   {"copy": False},
                   {"max_version": (0, 8), "dl_device": (1, 0), "copy": None, "stream": None}):
        assert "dltensor" in repr(x.__dlpack__(**kwargs))
    assert "versioned" in repr(x.__dlpack__(max_version=(1, 1)))
    for device in ((2, 0), (1, 1)):
        with pytest.raises(BufferError, match="host memory"):
            x.__dlpack__(dl_device=device)
    for empty in (x[:0], ad.zeros((0, 3), "float32")):  # of nothing there is nothing to copy
        assert "dltensor" in repr(empty.__dlpack__(copy=False))
        host = np.from_dlpack(empty, copy=False)
        assert (host.shape, host.dtype) == (empty.shape, empty.dtype)
    with pytest.warns(UserWarning, match="Stream 0"):
        assert "dltensor" in repr(x.__dlpack__(stream=0))
    assert "dltensor" in repr(x.__dlpack__(stream=1))  # as programs ask for it that were written for a GPU
    with pytest.raises(AttributeError, match="CPU"):
        x.__cuda_array_interface__


class OnGpu:
    """Elements as if they lay on a GPU."""

    def __init__(self, host):
        self.host = host
        self.__cuda_array_interface__ = {"shape": host.shape, "typestr": host.dtype.str, "version": 3,
                                         "data": (host.ctypes.data, False), "stream": None,
                                         "strides": None if host.flags.c_contiguous else host.strides}

    def __dlpack_device__(self):
        return 2, 3

    def __array__(self, *_, **__):
        raise TypeError("not implicitly")


def test_tensors_of_a_gpu_are_laid_out(monkeypatch):
    """Tensors of a GPU are described and copied. The device's copy is made in the host."""
    def write_device(a, number, address):
        assert number in (3, -1) and a.flags.c_contiguous
        data = np.frombuffer((ctypes.c_char * a.nbytes).from_address(address), a.dtype)
        a.set(data.reshape(a.shape))

    info = ad.session_info()
    monkeypatch.setattr(dlpack._core, "session_info", lambda: info | {"backend": "cuda"})
    monkeypatch.setattr(dlpack._core, "write_device", write_device)
    base = np.arange(120.0).reshape(4, 5, 6)
    for host in (base, base.T, base.transpose(1, 2, 0), base[1], base[:1], base[:, :1].transpose(1, 0, 2)[:, :1],
                 np.zeros((3, 0)), np.array(5.0), base.astype("float32")):
        made = ad.from_dlpack(OnGpu(host))
        assert made.dtype == host.dtype
        np.testing.assert_array_equal(made.get(), host)
    np.testing.assert_array_equal(ad.asarray(OnGpu(base.T), dtype="int32").get(), base.T)
    for host in (base[:, ::2], base[..., ::-1], np.broadcast_to(np.arange(3), (2, 3))):
        with pytest.raises(BufferError, match="contiguous"):
            ad.from_dlpack(OnGpu(host))
    with pytest.raises(BufferError, match="copy=False|host memory"):
        ad.from_dlpack(OnGpu(base), copy=False)


def test_own_arrays():
    x = ad.arange(3)
    assert ad.from_dlpack(x) is x and ad.from_dlpack(x, copy=False) is x and ad.from_dlpack(x, device=x.device) is x
    before = ad.session_info()["round_trips"]
    made = ad.from_dlpack(x, copy=True)
    assert ad.session_info()["round_trips"] == before
    made[0] = 9
    assert x.tolist() == [0, 1, 2]


def test_refusals():
    host = np.zeros(3)
    for kind, name in ((2, "CUDA"), (10, "ROCm"), (8, "Metal"), (99, "type 99")):
        with pytest.raises(BufferError, match=f"{name}.*host memory"):
            ad.from_dlpack(Tensor(host, (kind, 0)))
    with pytest.raises(BufferError, match="copy"):
        ad.from_dlpack(host, copy=False)
    with pytest.raises(AttributeError, match="__dlpack"):
        ad.from_dlpack([1, 2])
    with pytest.raises(ValueError, match="device"):
        ad.from_dlpack(host, device="cuda:0")


def test_errors_of_the_server_come_out():
    x = ad.arange(3)[ad.asarray([7])]
    with pytest.raises(IndexError):
        np.from_dlpack(x)


def test_with_pytorch():
    if importlib.util.find_spec("torch") is None:
        return  # it is large; the rest stands for it
    import torch
    x = ad.arange(6.0).reshape(2, 3)
    shared = torch.from_dlpack(x)
    np.testing.assert_array_equal(shared.numpy(), x.get())
    shared += 1
    np.testing.assert_array_equal(x.get(), np.arange(1.0, 7.0).reshape(2, 3))
    assert torch.from_dlpack(ad.ones(2, dtype="bfloat16")).dtype == torch.bfloat16
    tensor = torch.arange(6).reshape(2, 3).T
    np.testing.assert_array_equal(ad.from_dlpack(tensor).get(), tensor.numpy())


@pytest.mark.parametrize("versioned", [False, True])
def test_an_own_capsule_gives_the_array_again(versioned):
    """A capsule of an array of the server, taken by from_dlpack or fromDlpack, is a view of that array and no copy."""
    x = ad.arange(12, dtype="float32").reshape(3, 4)

    class Holder:
        def __dlpack_device__(self):
            return 1, 0

        def __dlpack__(self, **_):
            return capsule

    for take in (ad.fromDlpack, ad.from_dlpack, lambda _: ad.from_dlpack(Holder()),
                 lambda _: ad.from_dlpack(Holder(), copy=False)):
        part = x[1:, ::-2]
        capsule = part.__dlpack__(max_version=(1, 0) if versioned else None)
        y = take(capsule)
        assert "used_dltensor" in repr(capsule) and ("versioned" in repr(capsule)) is versioned
        del part, capsule
        y += 1
        np.testing.assert_array_equal(y.get(), x[1:, ::-2].get())
    assert x.sum() == 66 + 4 * 4
    capsule = x.__dlpack__()
    host = np.from_dlpack(Holder())  # another library takes it
    with pytest.raises(ValueError, match="multiple times"):
        ad.fromDlpack(capsule)
    np.testing.assert_array_equal(host, x.get())
    capsule = host.__dlpack__(max_version=(1, 0))
    copy = ad.from_dlpack(Holder())  # of another library, though the memory is the array's
    copy += 1
    np.testing.assert_array_equal(host, x.get())


def test_own_capsules_go_with_what_they_hold():
    x = ad.arange(5.0)
    before = sys.getrefcount(x)
    for take in (lambda c: None, ad.fromDlpack, lambda c: np.from_dlpack(dlpack._Wrapped(c))):
        capsule = x.__dlpack__()
        taken = take(capsule)
        del capsule, taken
        gc.collect()
        assert sys.getrefcount(x) == before
