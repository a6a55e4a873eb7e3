"""Memory of a GPU in a process that uses it itself: PyTorch, CuPy, Numba, JAX, each where it is installed."""
import gc
import os
import subprocess
import sys
import time

import numpy as np
import pytest

import arrayd as ad

N = 1_000_003


def exports(number):
    """So many stand, as soon as the server has noticed what is over."""
    end = time.monotonic() + 60
    while ad.stat()["exports"] != number:
        assert time.monotonic() < end, ad.stat()["exports"]


@pytest.fixture(autouse=True)
def clean():
    yield
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


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int64", "complex64", "bool"])
def test_torch_has_the_same_memory(torch, dtype):
    x = ad.arange(24).reshape(2, 3, 4).astype(dtype)
    t = torch.from_dlpack(x)
    assert t.is_cuda and t.shape == (2, 3, 4) and str(t.dtype) == f"torch.{dtype}"
    t[0, 0, 0] = 1
    t.mul_(1)
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


def test_tensors_come_in(torch):
    """On the device; in whatever order they lie."""
    base = torch.arange(24_000, device="cuda", dtype=torch.float32).reshape(20, 30, 40)
    for t in (base, base.permute(2, 0, 1), base[3], base.to(torch.int64), torch.tensor(5.0, device="cuda"),
              torch.zeros(0, 3, device="cuda")):
        made = ad.from_dlpack(t)
        assert made.dtype.name == str(t.dtype).removeprefix("torch.")
        assert np.array_equal(made.get(), t.cpu().numpy())
    made = ad.from_dlpack(base)
    base.zero_()
    torch.cuda.synchronize()
    assert float(made[-1, -1, -1]) == 23_999
    with pytest.raises(BufferError, match="contiguous"):
        ad.from_dlpack(base[:, ::2])
    with pytest.raises(BufferError):
        ad.from_dlpack(base, copy=False)
    assert np.array_equal(ad.asarray(base + 1, dtype="int32").get(), np.ones((20, 30, 40)))


def test_what_is_under_way_comes_in(torch):
    for i in range(10):
        a = torch.rand(2048, 2048, device="cuda")
        for _ in range(10):
            a = a @ a
            a = a / a.max()
        assert np.array_equal(ad.from_dlpack(a).get(), a.cpu().numpy())


def test_cupy_comes_in(cupy):
    c = cupy.arange(N, dtype="float32")
    for made in (ad.asarray(c), ad.from_dlpack(c)):
        assert np.array_equal(made.get(), c.get())


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
