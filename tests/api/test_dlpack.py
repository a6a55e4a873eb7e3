"""DLPack: to and from NumPy, array-api-strict and, where it is installed, PyTorch."""
import importlib.util

import numpy as np
import pytest
from standard import DTYPES, xs

import arrayd as ad


class Tensor:
    """Of another library, on some device; as old libraries have it, without the newer keywords."""

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
    with pytest.raises(BufferError):
        np.from_dlpack(ad.ones(2, dtype="bfloat16"))


def test_it_is_a_copy():
    x = ad.zeros(3)
    for host in (np.from_dlpack(x), np.from_dlpack(x, copy=True), np.from_dlpack(x, device="cpu")):
        host[0] = 7
    assert x.tolist() == [0, 0, 0]
    source = np.zeros(3)
    made = ad.from_dlpack(source)
    source[0] = 7
    assert made.tolist() == [0, 0, 0]
    kept = np.arange(5.0)
    kept.flags.writeable = False
    assert ad.from_dlpack(kept).tolist() == [0, 1, 2, 3, 4]


def test_keywords():
    x = ad.arange(3)
    assert x.__dlpack_device__() == (1, 0)
    for kwargs in ({}, {"stream": None}, {"max_version": (1, 0)}, {"dl_device": (1, 0)}, {"copy": True}, {"copy": None},
                   {"max_version": (0, 8), "dl_device": (1, 0), "copy": None, "stream": None}):
        assert "dltensor" in repr(x.__dlpack__(**kwargs))
    assert "versioned" in repr(x.__dlpack__(max_version=(1, 1)))
    for device in ((2, 0), (1, 1)):
        with pytest.raises(BufferError, match="host memory"):
            x.__dlpack__(dl_device=device)
    with pytest.raises(BufferError, match="copy"):
        x.__dlpack__(copy=False)
    with pytest.raises(BufferError, match="copy"):
        np.from_dlpack(x, copy=False)
    with pytest.raises(ValueError, match="stream"):
        x.__dlpack__(stream=1)


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
    np.testing.assert_array_equal(torch.from_dlpack(x).numpy(), x.get())
    tensor = torch.arange(6).reshape(2, 3).T
    np.testing.assert_array_equal(ad.from_dlpack(tensor).get(), tensor.numpy())
