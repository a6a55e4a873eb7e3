"""DLPack's C exchange API on a GPU: arrayd's table of functions, and PyTorch's where it has one."""
import ctypes
import gc
import pathlib
import sys
import time

import numpy as np
import pytest

import arrayd as ad
from arrayd import _core

sys.path.append(str(pathlib.Path(__file__).parents[1] / "api"))
import exchange  # noqa: E402

N = 1_000_003


@pytest.fixture(autouse=True)
def clean():
    yield
    gc.collect()
    end = time.monotonic() + 60
    while ad.stat()["exports"] or ad.stat()["imports"]:
        assert time.monotonic() < end


@pytest.fixture
def torch():
    torch = pytest.importorskip("torch")
    if not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
        pytest.skip(f"PyTorch {torch.__version__} has no C exchange API")
    return torch


def test_a_tensor_is_the_arrays_memory():
    x = ad.arange(6.0)
    managed = exchange.exported(x)
    tensor = managed.contents.tensor
    assert (tensor.device.type, tensor.device.number) == x.__dlpack_device__() and tensor.shape[0] == 6
    back = exchange.taken(ad.ndarray, managed)  # the server's own memory: a copy
    assert back.tolist() == [0, 1, 2, 3, 4, 5]
    del back


def test_tensors_are_allocated():
    device = ad.zeros(1).__dlpack_device__()
    managed, wrong = exchange.allocated(ad.ndarray, (3, 4), 2, 32, device)
    assert wrong is None and managed.contents.tensor.shape[:2] == [3, 4] and managed.contents.tensor.data
    exchange.delete(managed)
    managed, (kind, message) = exchange.allocated(ad.ndarray, (3, 4), 2, 32)
    assert managed is None and kind == "BufferError" and "not (1, 0)" in message


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "bool"])
def test_pytorchs_tensors_come_by_its_functions(torch, dtype):
    t = torch.arange(24, device="cuda").reshape(2, 3, 4).to(getattr(torch, dtype))
    capsule, stream = _core.exchange(t)
    assert stream == 1
    del capsule
    lent = ad.session_info()["lent"]
    x = ad.from_dlpack(t)
    assert ad.session_info()["lent"] == lent + 1
    np.testing.assert_array_equal(x.astype("f8").get(), t.double().cpu().numpy())
    t.zero_()
    torch.cuda.synchronize()
    assert not x.any()
    x[...] = 1
    ad.sync()
    assert bool((t == 1).all())
    view = ad.from_dlpack(t[:, ::2].transpose(0, 2))
    assert view.shape == (4, 2, 2)
    host = ad.from_dlpack(t.cpu())
    assert host.dtype == x.dtype and bool((host == 1).all())


def test_what_a_stream_of_pytorchs_makes_is_seen(torch):
    own = torch.cuda.Stream()
    for k in range(10):
        with torch.cuda.stream(own):
            t = torch.zeros(N, device="cuda", dtype=torch.float64)
            for _ in range(50):
                t += k
            x = ad.from_dlpack(t)
        assert float(x.sum()) == 50 * k * N
        del x, t


def test_what_pytorch_refuses(torch):
    for t in (torch.ones(3, device="cuda", requires_grad=True), torch.ones(3, device="cuda", dtype=torch.complex64).conj()):
        try:
            expected = t.__dlpack__()
        except (BufferError, RuntimeError):
            with pytest.raises((BufferError, RuntimeError)):
                ad.from_dlpack(t)
        else:
            del expected


def test_pytorch_takes_arrays_by_the_functions(torch):
    """By its own table: what arrayd's functions give becomes a tensor, and the other way."""
    x = ad.arange(12.0).reshape(3, 4)
    t = exchange.taken(torch.Tensor, exchange.exported(x))
    assert t.is_cuda and t.shape == (3, 4)
    t += 1
    torch.cuda.synchronize()
    np.testing.assert_array_equal(x.get(), np.arange(12.0).reshape(3, 4) + 1)
    made = exchange.taken(ad.ndarray, exchange.exported(torch.ones(5, device="cuda")))
    assert made.tolist() == [1] * 5
    stream = ctypes.c_void_p()
    assert exchange.table_of(torch.Tensor).stream(exchange.CUDA, 0, ctypes.byref(stream)) == 0
