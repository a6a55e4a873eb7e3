"""A program for mypy, not for running. It names the types that arrayd's stubs give, and what they refuse."""
import io
import pathlib
from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

import arrayd as ad
from arrayd import cupyx
from arrayd.cupyx.profiler import benchmark


def operators(a: ad.ndarray) -> None:
    assert_type(a + 1, ad.ndarray)
    assert_type(2.5 * a - a / 3 ** a, ad.ndarray)
    assert_type(a @ a.T, ad.ndarray)
    assert_type(-a, ad.ndarray)
    assert_type(a < 3, ad.ndarray)
    assert_type(a == a, ad.ndarray)
    assert_type(~a & (a > np.float32(1)), ad.ndarray)
    assert_type(divmod(a, 2), tuple[ad.ndarray, ad.ndarray])
    a += 1
    a[a > 2] = 0
    a[1:, ..., None] = [1, 2]
    assert_type(a[0], ad.ndarray)
    assert_type([len(row) for row in a], list[int])
    assert_type((float(a), int(a), bool(a), complex(a)), tuple[float, int, bool, complex])
    a + "text"  # type: ignore[operator]
    a + np.zeros(3)  # type: ignore[operator]


def attributes(a: ad.ndarray) -> None:
    assert_type(a.shape, tuple[int, ...])
    assert_type(a.size + a.ndim + a.nbytes + a.itemsize, int)
    assert_type(a.real.T.mT, ad.ndarray)
    assert_type(a.dtype.name, str)
    assert_type(a.base, ad.ndarray | None)
    assert_type(a.device, ad.cuda.Device)
    a.shape = 2, 3
    a.size = 3  # type: ignore[misc]
    a.nothing  # type: ignore[attr-defined]


def methods(a: ad.ndarray) -> None:
    assert_type(a.get(), npt.NDArray[Any])
    assert_type(a.sum(axis=(0, 1), keepdims=True), ad.ndarray)
    assert_type(a.reshape(2, -1).astype(np.float32).copy(), ad.ndarray)
    assert_type(a.argmax(axis=-1), ad.ndarray)
    assert_type(a.clip(0, 1).conj(), ad.ndarray)
    assert_type(a.nonzero(), tuple[ad.ndarray, ...])
    assert_type(a.tobytes(), bytes)
    a.sort(axis=0)
    a.sum(axis="x")  # type: ignore[arg-type]
    a.sum(nothing=1)  # type: ignore[call-arg]


def functions(a: ad.ndarray) -> None:
    assert_type(ad.zeros((2, 3), dtype="float32"), ad.ndarray)
    assert_type(ad.asarray([1, 2, 3]), ad.ndarray)
    assert_type(ad.arange(10), ad.ndarray)
    assert_type(ad.sin(a), ad.ndarray)
    assert_type(ad.add(a, 1, out=a, where=a > 0), ad.ndarray)
    assert_type(ad.modf(a), tuple[ad.ndarray, ad.ndarray])
    assert_type(ad.divmod(a, 2), tuple[ad.ndarray, ad.ndarray])
    assert_type(ad.add.reduce(a, axis=0), ad.ndarray)
    assert_type(ad.where(a > 0), tuple[ad.ndarray, ...])
    assert_type(ad.where(a > 0, a, 0), ad.ndarray)
    assert_type(ad.linspace(0, 1), ad.ndarray)
    assert_type(ad.linspace(0, 1, retstep=True), tuple[ad.ndarray, ad.ndarray])
    assert_type(ad.unique(a), ad.ndarray)
    assert_type(ad.unique(a, return_counts=True), tuple[ad.ndarray, ...])
    assert_type(ad.unique_counts(a).counts, ad.ndarray)
    assert_type(ad.split(a, 3), list[ad.ndarray])
    assert_type(ad.concatenate([a, a], axis=None), ad.ndarray)
    assert_type(ad.atleast_2d(a), ad.ndarray)
    assert_type(ad.asnumpy(a), npt.NDArray[Any])
    assert_type(ad.pi + ad.nan, float)
    assert_type(ad.shape(a), tuple[int, ...])
    assert_type(ad.can_cast("i4", ad.float64), bool)
    assert_type(ad.add.nin, int)
    ad.zeros("x", dtyp=1)  # type: ignore[call-arg, arg-type]
    ad.sin(a, a, a, a)  # type: ignore[call-arg]
    ad.nothing  # type: ignore[attr-defined]


def modules(a: ad.ndarray, path: pathlib.Path) -> None:
    assert_type(ad.linalg.norm(a), ad.ndarray)
    assert_type(ad.linalg.svd(a).S, ad.ndarray)
    assert_type(ad.linalg.svd(a, compute_uv=False), ad.ndarray)
    assert_type(ad.linalg.qr(a, "r"), ad.ndarray)
    assert_type(ad.linalg.qr(a).Q, ad.ndarray)
    values, vectors = ad.linalg.eigh(a)
    assert_type(values, ad.ndarray)
    sign, _ = ad.linalg.slogdet(a)
    assert_type(sign, ad.ndarray)
    assert_type(ad.fft.rfft(a, n=8), ad.ndarray)
    assert_type(ad.random.default_rng(3), ad.random.Generator)
    assert_type(ad.random.default_rng(3).normal(0, 1, (3, 3)), ad.ndarray)
    assert_type(ad.random.normal(size=(2, 3)), ad.ndarray)
    with ad.cuda.Device(0), ad.cuda.Stream(non_blocking=True) as stream:
        stream.synchronize()
    cupyx.scatter_add(a, 0, 1)
    benchmark(ad.sin, (a,), n_repeat=3)
    ad.save(path, a)
    ad.save(io.BytesIO(), a)
    ad.savez(str(path), a, b=a)
    assert_type(ad.loadtxt(["1 2"]), ad.ndarray)
    try:
        ad.sync()
    except (ad.DeviceError, ad.ArraydError, ad.linalg.LinAlgError) as error:
        print(error.args)
