"""Memory of a GPU in a process that uses it itself: PyTorch, CuPy, Numba, JAX, each where it is installed."""
import gc
import json
import os
import subprocess
import sys
import time
import traceback

import numpy as np
import pytest

import arrayd as ad

N = 1_000_003


def exports(number):
    """Wait until so many exports stand: the server notices with a delay that one is over."""
    end = time.monotonic() + 60
    while ad.stat()["exports"] != number:
        assert time.monotonic() < end, ad.stat()["exports"]


@pytest.fixture(autouse=True)
def clean():
    yield
    if getattr(sys, "last_traceback", None):  # a test that has failed: its arrays go here, not in the next one
        traceback.clear_frames(sys.last_traceback)
    gc.collect()
    exports(0)


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.fixture
def cupy():
    return pytest.importorskip("cupy")


def test_where_it_is():
    x = ad.arange(10.0)
    kind, number = x.__dlpack_device__()
    assert kind == 2 and number >= 0
    assert np.from_dlpack(x, device="cpu").tolist() == x.tolist()
    with pytest.raises(BufferError):
        x.__dlpack__(dl_device=(1, 0), copy=False)


def test_stream_zero_is_taken_for_the_legacy_stream(torch):
    x = ad.arange(6, dtype="float32")
    with pytest.warns(UserWarning, match="Stream 0"):
        capsule = x.__dlpack__(stream=0)
    assert torch.utils.dlpack.from_dlpack(capsule).tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int64", "complex64", "bool"])
def test_torch_has_the_same_memory(torch, dtype):
    x = ad.arange(24).reshape(2, 3, 4).astype(dtype)
    t = torch.from_dlpack(x)
    assert t.is_cuda and t.shape == (2, 3, 4) and str(t.dtype) == f"torch.{dtype}"
    t[0, 0, 0] = 1
    t.mul_(torch.ones((), dtype=t.dtype, device=t.device))
    torch.cuda.synchronize()
    assert bool((x.astype("complex64")[0, 0, 0] == 1).get())
    x[1, 2, 3] = 0
    ad.sync()
    assert complex(t[1, 2, 3].item()) == 0
    assert np.array_equal(x[0].astype("complex64").get(), t[0].to(torch.complex64).cpu().numpy())


def test_torch_gets_views(torch):
    x = ad.arange(24.0).reshape(4, 6)
    for view in (x.T, x[1:3, ::2], x[2], x[:, 3]):
        t = torch.from_dlpack(view)
        assert np.array_equal(t.cpu().numpy(), view.get())
        t.add_(1)
        torch.cuda.synchronize()
        assert np.array_equal(t.cpu().numpy(), view.get())


def test_what_was_queued_before_is_seen(torch):
    for i in range(20):
        x = ad.zeros(N, dtype="float32")
        for _ in range(50):
            x += 1
        assert float(torch.from_dlpack(x).sum(dtype=torch.float64)) == 50 * N


def test_torch_keeps_the_memory(torch):
    x = ad.arange(N, dtype="float32")
    t = torch.from_dlpack(x)
    expected = x.get()
    del x
    for _ in range(8):
        ad.full(N, -1.0, dtype="float32")
    ad.sync()
    assert np.array_equal(t.cpu().numpy(), expected)


def test_cupy(cupy):
    x = ad.arange(N, dtype="float32")
    c = cupy.asarray(x)
    assert c.data.ptr == x.__cuda_array_interface__["data"][0] and np.array_equal(c.get(), x.get())
    c += 1
    cupy.cuda.Device().synchronize()
    assert np.array_equal(c.get(), x.get())
    d = cupy.from_dlpack(x[::-3])
    assert np.array_equal(d.get(), x[::-3].get())


def test_numba():
    cuda = pytest.importorskip("numba.cuda")
    if not cuda.is_available():
        pytest.skip("Numba does not see the GPU")
    x = ad.arange(N, dtype="float32")
    view = cuda.as_cuda_array(x)
    assert view.device_ctypes_pointer.value == x.__cuda_array_interface__["data"][0]
    assert np.array_equal(view.copy_to_host(), x.get())


def test_jax():
    jax = pytest.importorskip("jax")
    if not any(device.platform == "gpu" for device in jax.devices()):
        pytest.skip("JAX does not see the GPU")
    x = ad.arange(1000, dtype="float32")
    assert np.array_equal(np.asarray(jax.dlpack.from_dlpack(x)), x.get())


TAKER = """
import sys, torch, arrayd as ad
t = torch.from_dlpack(ad.attach("exported"))
t += 1
torch.cuda.synchronize()
print(float(t.sum(dtype=torch.float64)), flush=True)
sys.stdin.readline()
"""


def test_two_processes_and_the_server_have_one_memory(torch):
    ad.publish("exported", ad.zeros(N, dtype="float32"), writable=True)
    mine = torch.from_dlpack(ad.attach("exported"))
    other = subprocess.Popen([sys.executable, "-c", TAKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                             env={**os.environ, "ARRAYD_URL": ad.session_info()["url"]})
    try:
        assert float(other.stdout.readline()) == N
        assert float(mine.sum(dtype=torch.float64)) == N == float(ad.attach("exported").sum())
        exports(2)
    finally:
        other.kill()
        other.communicate()
    exports(1)
    assert float(mine.sum(dtype=torch.float64)) == N
    ad.unpublish("exported")
    del mine


# ---- by handles of CUDA's first interprocess calls ----

# A program with no library but the driver: opens a handle, reads, writes a 7 into the first byte, says what it has read.
OPENER = """
import ctypes as c, sys
cuda = c.CDLL("libcuda.so.1")

class Handle(c.Structure):
    _fields_ = [("bytes", c.c_ubyte * 64)]

cuda.cuIpcOpenMemHandle_v2.argtypes = [c.POINTER(c.c_uint64), Handle, c.c_uint]
cuda.cuMemcpyDtoH_v2.argtypes = [c.c_void_p, c.c_uint64, c.c_size_t]
cuda.cuMemcpyHtoD_v2.argtypes = [c.c_uint64, c.c_void_p, c.c_size_t]
cuda.cuIpcCloseMemHandle.argtypes = [c.c_uint64]

def call(name, *arguments):
    status = getattr(cuda, name)(*arguments)
    assert status == 0, (name, status)

handle, offset, size = Handle.from_buffer_copy(bytes.fromhex(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3])
device, context, base, data = c.c_int(), c.c_void_p(), c.c_uint64(), c.create_string_buffer(size)
call("cuInit", 0)
call("cuDeviceGet", c.byref(device), 0)
call("cuDevicePrimaryCtxRetain", c.byref(context), device)
call("cuCtxSetCurrent", context)
call("cuIpcOpenMemHandle_v2", c.byref(base), handle, 1)
call("cuMemcpyDtoH_v2", data, base.value + offset, size)
call("cuMemcpyHtoD_v2", base.value + offset, b"\\x07", 1)
call("cuCtxSynchronize")
print(data.raw.hex(), flush=True)
line = sys.stdin.readline()
if line:
    call("cuMemcpyDtoH_v2", data, base.value + offset, size)
    print(data.raw.hex(), flush=True)
call("cuIpcCloseMemHandle", base.value)
"""


def opener(h, size):
    return subprocess.Popen([sys.executable, "-c", OPENER, h.handle.hex(), str(h.offset), str(size)], text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def test_a_program_with_the_driver_alone_opens_a_handle():
    """Each sees what the other writes, in small arrays and in views. Nothing else is behind the handle."""
    beside = [ad.full(1000, -1, dtype="int8") for _ in range(4)]
    for size, start in ((1, 0), (5000, 0), (5000, 17), (3_000_000, 5)):
        x = ad.arange(size, dtype="int64").astype("uint8")
        expected = x[start:].get()
        with x[start:].ipc_handle() as h:
            assert len(h.handle) == 64 and h.offset == start and h.shape == (size - start,) and h.uuid.startswith("GPU-")
            other = opener(h, size - start)
            assert bytes.fromhex(other.stdout.readline()) == expected.tobytes()
            assert int(x[start]) == 7
            x[...] = 3
            ad.sync()
            said, _ = other.communicate("\n")
            assert other.returncode == 0 and set(bytes.fromhex(said)) == {3}
    assert all((b.get() == -1).all() for b in beside)


def test_the_rest_of_the_memory_is_zero():
    x = ad.full(1000, -1, dtype="int8")
    with x.ipc_handle() as h:
        other = opener(h, 2 << 20)
        seen, _ = other.communicate()
        assert bytes.fromhex(seen) == b"\xff" * 1000 + bytes((2 << 20) - 1000)


def test_cupy_opens_a_handle(cupy):
    runtime = cupy.cuda.runtime
    for x in (ad.arange(N, dtype="float32"), ad.arange(24.0).reshape(4, 6).T, ad.arange(1000)[::-2]):
        with x.ipc_handle() as h:
            base = runtime.ipcOpenMemHandle(h.handle)
            memory = cupy.cuda.UnownedMemory(base, x.nbytes, h)
            c = cupy.ndarray(h.shape, h.dtype, cupy.cuda.MemoryPointer(memory, h.offset), h.strides)
            assert np.array_equal(c.get(), x.get())
            c += 1
            cupy.cuda.Device().synchronize()
            assert np.array_equal(c.get(), x.get())
            x *= 2
            ad.sync()
            assert np.array_equal(c.get(), x.get())
            exports(1)
            del c, memory
            runtime.ipcCloseMemHandle(base)
        exports(0)


def test_numba_opens_a_handle():
    cuda = pytest.importorskip("numba.cuda")
    if not cuda.is_available():
        pytest.skip("Numba does not see the GPU")
    x = ad.arange(N, dtype="float32")
    with x.ipc_handle() as h, cuda.open_ipc_array(h.handle, shape=h.shape, dtype=h.dtype, offset=h.offset) as view:
        assert np.array_equal(view.copy_to_host(), x.get())


def test_what_was_queued_before_a_handle_is_seen(cupy):
    for i in range(10):
        x = ad.zeros(N, dtype="float32")
        for _ in range(50):
            x += 1
        with x.ipc_handle() as h:
            base = cupy.cuda.runtime.ipcOpenMemHandle(h.handle)
            memory = cupy.cuda.UnownedMemory(base, x.nbytes, h)
            assert float(cupy.ndarray(h.shape, h.dtype, cupy.cuda.MemoryPointer(memory, h.offset)).min()) == 50
            del memory
            cupy.cuda.runtime.ipcCloseMemHandle(base)


def test_handles_and_descriptors_do_not_mix(torch):
    x = ad.arange(N, dtype="float32")
    t = torch.from_dlpack(x)
    with pytest.raises(ValueError, match="by a descriptor"):
        x.ipc_handle()
    y = ad.arange(N, dtype="float32")
    with y.ipc_handle():
        assert y.__dlpack_device__() == (1, 0) and not hasattr(y, "__cuda_array_interface__")
        assert np.array_equal(torch.from_dlpack(y).numpy(), y.get())
    assert torch.from_dlpack(y).is_cuda
    with x.copy().ipc_handle() as h:
        assert not h.closed
    assert np.array_equal(t.cpu().numpy(), x.get())


def test_peers_use_memory_that_has_a_handle():
    if ad.cuda.runtime.getDeviceCount() < 2 or not ad.cuda.runtime.deviceCanAccessPeer(1, 0):
        pytest.skip("it takes two GPUs that reach each other's memory")
    x = ad.arange(N, dtype="float32")
    with x.ipc_handle():
        with ad.cuda.Device(1):
            y = x + 1
        assert np.array_equal(y.get(), np.arange(N, dtype="float32") + 1)


KEEPER = """
import sys, time, cupy, numpy as np, arrayd as ad
x = ad.full(4 << 20, 5, dtype="uint8")
h = x.ipc_handle()
base = cupy.cuda.runtime.ipcOpenMemHandle(h.handle)
memory = cupy.cuda.UnownedMemory(base, x.nbytes, None)
c = cupy.ndarray(h.shape, h.dtype, cupy.cuda.MemoryPointer(memory, h.offset))
assert int(c.min()) == 5
before = ad.stat()["exports"]
h.close()
del x
while ad.stat()["exports"] == before:
    pass
more = [ad.full(4 << 20, 9, dtype="uint8") for _ in range(64)]
ad.sync()
try:
    print(np.unique(c.get()).tolist(), flush=True)
except cupy.cuda.runtime.CUDARuntimeError as error:
    print(error, flush=True)
"""


def test_a_mapping_that_is_kept_shows_nothing_of_others(cupy):
    """CUDA does not say what becomes of it; this is what the driver does. It may break the context that has it."""
    beside = ad.arange(N)
    done = subprocess.run([sys.executable, "-c", KEEPER], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "ARRAYD_URL": ad.session_info()["url"]})
    print(done.stdout)
    assert done.stdout.strip() and not (done.stdout.startswith("[") and 9 in json.loads(done.stdout)), done.stderr
    assert np.array_equal(beside.get(), np.arange(N))
