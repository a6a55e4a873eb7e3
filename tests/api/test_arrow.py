"""Arrow's capsules, as nanoarrow takes them."""
import gc
import subprocess
import sys
import threading

import nanoarrow
import numpy as np
import pytest
from leases import exports
from nanoarrow import device

import arrayd as ad

TYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64"]


@pytest.fixture(autouse=True)
def nothing_stays():
    yield
    gc.collect()
    exports(0)


def elements(a):
    """Return the elements of an Arrow array that has been imported."""
    return np.array(nanoarrow.Array(a).to_pylist())


@pytest.mark.parametrize("dtype", TYPES)
def test_types(dtype):
    host = np.arange(1, 100).astype(dtype)
    taken = nanoarrow.c_array(ad.asarray(host))
    names = {"float16": "half_float", "float32": "float", "float64": "double"}
    assert taken.length == 99 and taken.null_count == 0
    assert nanoarrow.Schema(taken.schema).type.name.lower() == names.get(dtype, dtype)
    np.testing.assert_array_equal(np.frombuffer(taken.view().buffer(1), dtype, 99), host)


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 1000])
def test_booleans_are_bits(n):
    host = np.random.default_rng(n).random(n) < 0.5
    taken = nanoarrow.c_array(ad.asarray(host))
    assert taken.length == n and nanoarrow.Array(taken).to_pylist() == host.tolist()


def test_views():
    a = ad.arange(100.0)
    for one in (a[10:20], a[::-3], a[:0], ad.broadcast_to(a[:1], 5)):
        np.testing.assert_array_equal(elements(nanoarrow.c_array(one)), one.get())


def test_the_memory_is_the_array_s():
    """A consumer keeps the memory as long as it holds it, and not longer: without the array, and after its session."""
    if ad.session_info()["backend"] == "cuda":
        pytest.skip("the elements are a GPU's")
    a = ad.arange(1000.0)
    taken = nanoarrow.c_array(a)
    exports(1)
    a += 1
    ad.sync()
    del a
    view = np.frombuffer(taken.view().buffer(1), "float64", 1000)
    np.testing.assert_array_equal(view, np.arange(1, 1001))


def test_capsules_that_nobody_takes():
    a = ad.arange(10.0)
    for _ in range(10):
        a.__arrow_c_schema__(), a.__arrow_c_array__(), a.__arrow_c_device_array__()


def test_released_by_another_thread():
    taken = [nanoarrow.c_array(ad.arange(10.0) + i) for i in range(10)]
    thread = threading.Thread(target=taken.clear)
    thread.start()
    thread.join()
    assert not taken


FORKS = """
import ctypes, os, threading
import arrayd as ad

libc, pointer = ctypes.CDLL(None), ctypes.pythonapi.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
RELEASE = 64  # bytes before the function in ArrowArray
a, over, released = ad.arange(10.0), threading.Event(), 0

def consume():
    global released
    while not over.is_set():
        _, capsule = a.__arrow_c_array__()
        array, thread = pointer(capsule, b"arrow_array"), ctypes.c_ulong()
        release = ctypes.c_void_p.from_address(array + RELEASE).value
        assert not libc.pthread_create(ctypes.byref(thread), None, ctypes.c_void_p(release), ctypes.c_void_p(array))
        assert not libc.pthread_join(thread, None)
        assert not ctypes.c_void_p.from_address(array + RELEASE).value
        released += 1

threads = [threading.Thread(target=consume) for _ in range(3)]
for thread in threads:
    thread.start()
try:
    for _ in range(500):
        pid = os.fork()
        if not pid:
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
finally:
    over.set()
    for thread in threads:
        thread.join()
print(released > 10)
"""


def test_forks_while_threads_that_python_does_not_know_release():
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout == "True\n", done.stderr


def test_device_arrays():
    a = ad.arange(10, dtype="int32")
    taken = device.c_device_array(a)
    if ad.session_info()["backend"] == "cuda":
        assert taken.device_type_id == 2
        return
    assert taken.device_type_id == 1 and taken.device_id == -1
    np.testing.assert_array_equal(elements(taken.array), a.get())
    schema, _ = a.__arrow_c_device_array__(None, stream=None)
    assert nanoarrow.Schema(nanoarrow.c_schema(schema)).type == nanoarrow.Type.INT32


def test_refusals():
    for a, message in ((ad.zeros((2, 2)), "one dimension, not 2"), (ad.zeros(()), "not 0"),
                       (ad.zeros(3, "complex64"), "complex64"), (ad.zeros(3, "bfloat16"), "bfloat16")):
        for method in ("__arrow_c_schema__", "__arrow_c_array__", "__arrow_c_device_array__"):
            with pytest.raises(TypeError, match=message):
                getattr(a, method)()
    with pytest.raises(NotImplementedError, match="stream"):
        ad.zeros(3).__arrow_c_device_array__(stream=7)
    with pytest.raises(IndexError):
        ad.arange(3)[ad.asarray([7])].__arrow_c_array__()
