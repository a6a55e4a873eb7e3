"""bfloat16 against ml_dtypes: NumPy computes in float32, and the result is rounded."""
import numpy as np
import pytest

import arrayd as ad
from oracle import near, random, seed

ml_dtypes = pytest.importorskip("ml_dtypes")
BF = np.dtype(ml_dtypes.bfloat16)
UNARY = [
    "negative",
    "absolute",
    "square",
    "sqrt",
    "exp",
    "sin",
    "tanh",
    "floor",
    "ceil",
    "rint",
    "trunc",
    "sign",
    "reciprocal",
]
BINARY = ["add", "subtract", "multiply", "divide", "maximum", "minimum", "power", "arctan2", "hypot", "remainder"]


def values(name, n=40):
    return random(seed(name, "bfloat16"), np.float32, (n,), "POS").astype(BF)


def test_name():
    assert ad.bfloat16 is ml_dtypes.bfloat16
    assert ad.zeros(3, ad.bfloat16).dtype == BF and ad.zeros(3, "bfloat16").itemsize == 2


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    x = values(name)
    got = getattr(ad, name)(ad.asarray(x))
    assert got.dtype == BF
    near(getattr(np, name)(x.astype(np.float32)).astype(BF), got.get(), 1)


@pytest.mark.parametrize("name", BINARY)
def test_binary(name):
    x, y = values(name), values(name + "2")
    if name == "power":
        y = (y / 50).astype(BF)
    got = getattr(ad, name)(ad.asarray(x), ad.asarray(y))
    assert got.dtype == BF
    near(getattr(np, name)(x.astype(np.float32), y.astype(np.float32)).astype(BF), got.get(), 1)
    assert (ad.asarray(x) * 2.5).dtype == BF and (ad.asarray(x) < ad.asarray(y)).dtype == bool


def test_reductions():
    x = values("sum", 1000)
    for name in ("sum", "mean", "max", "min", "std"):
        got = getattr(ad, name)(ad.asarray(x))
        assert got.dtype == BF
        near(np.asarray(getattr(np, name)(x.astype(np.float64))).astype(BF), got.get(), 2)
    assert ad.argmax(ad.asarray(x)).item() == x.astype(float).argmax()


@pytest.mark.parametrize(
    "dtype", [np.bool_, np.int8, np.uint16, np.int64, np.float16, np.float32, np.float64, np.complex64]
)
def test_casts_and_promotion(dtype):
    x = np.arange(-4, 60).astype(dtype)
    assert (ad.asarray(x).astype(BF).get() == x.astype(BF)).all()
    back = ad.asarray(x.astype(BF)).astype(dtype).get()
    assert (back == x.astype(BF).astype(dtype)).all()
    both = ad.asarray(x) + ad.asarray(x.astype(BF))
    assert both.dtype == ad.result_type(ad.asarray(x), BF)
    if dtype not in (np.uint16, np.int64):  # NumPy has no answer
        assert both.dtype == (np.float32 if dtype == np.float16 else np.promote_types(dtype, BF))


def test_rounding_to_nearest_even():
    x = np.array([1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, 3.4e38, np.inf, -np.inf, 1e-45, -0.0], np.float32)
    np.testing.assert_array_equal(ad.asarray(x).astype(BF).get().view(np.uint16), x.astype(BF).view(np.uint16))
    assert np.isnan(ad.asarray(np.array([np.nan], np.float32)).astype(BF).get().astype(float)).all()


def test_moving():
    x = values("moving", 24).reshape(4, 6)
    d = ad.asarray(x)
    for body in (lambda a: a.T, lambda a: a[::-1, ::2], lambda a: a.reshape(3, 8)):
        np.testing.assert_array_equal(body(d).get(), body(x))
    np.testing.assert_array_equal(ad.sort(d, axis=None).get().astype(float), np.sort(x.astype(float), axis=None))
    assert d.tolist() == x.astype(float).tolist()
    assert repr(d).startswith("array([[") and "bfloat16" in repr(d)
