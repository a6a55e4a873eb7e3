"""DLPack's C exchange API: with TVM's library, which uses it and has it, and by its table of functions."""
import ctypes
import threading
import weakref

import exchange
import numpy as np
import pytest
import tvm_ffi
from leases import exports

import arrayd as ad
from arrayd import _core

ECHO = tvm_ffi.get_global_func("testing.echo")


@pytest.fixture(autouse=True)
def on_the_host():
    if ad.session_info()["backend"] == "cuda":
        pytest.skip("the elements are a GPU's: tests/gpu/test_exchange.py")


def wrapped(host):
    """Of a type of TVM's that has the functions."""
    return tvm_ffi.core.DLTensorTestWrapper(tvm_ffi.from_dlpack(host))


def test_an_array_ends_although_a_library_had_its_tensor():
    x = ad.arange(6.0)
    ended, managed = weakref.ref(x), exchange.exported(x)
    exchange.delete(managed)
    del x
    assert ended() is None


def test_an_array_ends_although_a_library_takes_the_capsules_destructor_away():
    """XLA does so with every capsule that it takes."""
    x = ad.arange(6.0)
    ended, capsule = weakref.ref(x), x.__dlpack__(max_version=(1, 0))
    python = ctypes.pythonapi
    python.PyCapsule_GetPointer.restype, python.PyCapsule_GetPointer.argtypes = exchange.MANAGED, (ctypes.py_object, ctypes.c_char_p)
    managed = python.PyCapsule_GetPointer(capsule, b"dltensor_versioned")
    python.PyCapsule_SetName(ctypes.py_object(capsule), b"used_dltensor_versioned")
    python.PyCapsule_SetDestructor(ctypes.py_object(capsule), None)
    exchange.delete(managed)
    del x
    assert ended() is None


@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "i8", "u2", "c8", "?", "f2"])
def test_functions_of_another_library_take_and_give_arrays(dtype):
    host = np.arange(24).reshape(2, 3, 4).astype(dtype)
    x = ad.asarray(host)
    for array, expected in ((x, host), (x[::-1], host[::-1]), (x.T, host.T), (x[:, 1, ::2], host[:, 1, ::2])):
        back = ECHO(array)
        assert type(back) is ad.ndarray and back.dtype == host.dtype
        np.testing.assert_array_equal(back.get(), expected)


def test_brain_floats():
    x = ad.arange(4).astype("bfloat16")
    back = ECHO(x)
    assert back.dtype == x.dtype and back.astype("f4").tolist() == [0, 1, 2, 3]
    made = ad.from_dlpack(tvm_ffi.core.DLTensorTestWrapper(tvm_ffi.from_dlpack(x)))
    assert made.dtype == x.dtype and made.astype("f4").tolist() == [0, 1, 2, 3]


def test_a_tensor_is_the_arrays_memory():
    x = ad.arange(6.0)
    managed = exchange.exported(x)
    exports(1)
    host = exchange.memory(managed, "f8")
    host[0] = 7
    assert x[0] == 7
    x += 1
    ad.sync()
    assert host.tolist() == [8, 2, 3, 4, 5, 6]
    del x
    assert host[5] == 6
    exchange.delete(managed)
    exports(0)


def test_tables_say_the_version_and_the_stream():
    table, stream = exchange.table_of(ad.ndarray), ctypes.c_void_p(5)
    assert (table.major, table.minor) == tvm_ffi.core.__dlpack_version__ and not table.older and not table.look
    assert table.stream(exchange.CPU, 0, ctypes.byref(stream)) == 0 and stream.value is None


def test_subclasses_and_what_has_to_be_copied():
    class Own(ad.ndarray):
        pass

    assert ECHO(ad.arange(3).view(type=Own)).tolist() == [0, 1, 2]
    ad.publish("test_exchange", ad.arange(5))
    x = ad.attach("test_exchange")  # read-only
    managed = exchange.exported(x)
    exchange.memory(managed, "i8")[0] = 9
    exchange.delete(managed)
    assert x[0] == 0
    ad.unpublish("test_exchange")


def test_what_has_no_tensor_raises():
    with pytest.raises(TypeError):
        exchange.exported(type("Own", (), {"__dlpack_c_exchange_api__": ad.ndarray.__dlpack_c_exchange_api__,
                                           "__dlpack__": lambda self: None})())
    with pytest.raises(AttributeError):
        exchange.table_of(ad.ndarray).export(3, ctypes.byref(exchange.MANAGED()))


def test_tensors_are_allocated_on_whatever_thread():
    made = []

    def allocate():
        managed, wrong = exchange.allocated(ad.ndarray, (3, 4), 2, 32)
        made.append((managed, wrong))
    threads = [threading.Thread(target=allocate) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    exports(4)
    for k, (managed, wrong) in enumerate(made):
        assert wrong is None
        t = managed.contents.tensor
        assert t.shape[:2] == [3, 4] and t.strides[:2] == [4, 1] and (t.dtype.code, t.dtype.bits) == (2, 32)
        exchange.memory(managed, "f4")[:] = k
        array = exchange.taken(ad.ndarray, managed)  # a copy: the tensor has been deleted
        assert array.dtype == np.float32 and (array == k).all() and array.shape == (3, 4)
    exports(0)


@pytest.mark.parametrize("shape, code, bits, device, words", [
    ((2,), 4, 64, (1, 0), "no type with DLPack's code 4, 64 bits"), ((-1,), 2, 64, (1, 0), ""),
    ((2,), 2, 64, (2, 0), "not (2, 0)"), ((1 << 61,), 2, 64, (1, 0), ""), ((1,) * 70, 2, 64, (1, 0), "")])
def test_tensors_that_cannot_be_allocated(shape, code, bits, device, words):
    managed, (kind, message) = exchange.allocated(ad.ndarray, shape, code, bits, device)
    assert managed is None and kind == "BufferError" and message and words in message
    exports(0)


def test_a_tensor_that_is_not_taken_stays_the_callers():
    deleted = []
    shape = (ctypes.c_int64 * 1)(2)
    values = (ctypes.c_double * 2)(3, 4)
    tensor = exchange.Tensor(ctypes.addressof(values), exchange.Device(1, 0), 1, exchange.Type(2, 64, 1), shape, None, 0)
    deleter = exchange.Managed._fields_[3][1](lambda m: deleted.append(1))
    managed = exchange.Managed(1, 0, None, deleter, 0, tensor)
    for field, value in (("major", 2), ("tensor.ndim", 99), ("tensor.ndim", -1), ("tensor.dtype.bits", 7), ("tensor.device.type", 4)):
        *path, name = field.split(".")
        holder = managed
        for each in path:
            holder = getattr(holder, each)
        before = getattr(holder, name)
        setattr(holder, name, value)
        with pytest.raises((BufferError, NotImplementedError)):
            exchange.taken(ad.ndarray, ctypes.pointer(managed))
        setattr(holder, name, before)
    assert deleted == []
    assert exchange.taken(ad.ndarray, ctypes.pointer(managed)).tolist() == [3, 4] and deleted == [1]


def test_arrays_come_by_the_other_librarys_functions(monkeypatch):
    host = np.arange(6.0).reshape(2, 3)
    x = wrapped(host)
    monkeypatch.setattr(np, "from_dlpack", None)
    np.testing.assert_array_equal(ad.from_dlpack(x).get(), host)
    with pytest.raises(BufferError, match="copy=False"):
        ad.from_dlpack(x, copy=False)


@pytest.mark.parametrize("attribute", [{"requires_grad": True}, {"is_conj": lambda self: True}, {"is_neg": lambda self: True}])
def test_what_dlpack_refuses_is_not_taken_by_the_functions(attribute):
    def refuse(self, **_):
        raise BufferError("detach it first")

    cls = type("Refused", (), {"__dlpack_c_exchange_api__": tvm_ffi.core.DLTensorTestWrapper.__dlpack_c_exchange_api__,
                               "__dlpack__": refuse, "__dlpack_device__": lambda self: (1, 0), **attribute})
    with pytest.raises(BufferError, match="detach"):
        ad.from_dlpack(cls())


@pytest.mark.parametrize("value", [None, 5, "capsule"])
def test_types_without_functions(value):
    x = type("Other", (), {"__dlpack_c_exchange_api__": value})()
    assert _core.exchange(x) is None and _core.exchange(np.ones(2)) is None


def test_older_functions_of_a_newer_library():
    ours = exchange.table_of(ad.ndarray)
    newer = exchange.Table(major=2, minor=0, older=ctypes.addressof(ours))
    alone = exchange.Table(major=2, minor=0, older=None)
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)

    def of(table):
        class Own(ad.ndarray):
            __dlpack_c_exchange_api__ = make(ctypes.addressof(table), b"dlpack_exchange_api", None)
        return ad.arange(4).view(type=Own)

    assert _core.exchange(of(alone)) is None
    capsule, stream = _core.exchange(of(newer))
    assert stream == 1 and _core.take_dlpack(capsule).tolist() == [0, 1, 2, 3]
