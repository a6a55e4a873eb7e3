"""Complex functions at zeros of both signs, infinities, NaN, and numbers of which a part of the formula overflows."""
import numpy as np
import pytest

import arrayd as ad

VALUES = [0.0, -0.0, 1, -1, .5, 2, -3, 1e-5, np.inf, -np.inf, np.nan, 710, 1e300, -800, 22, 5e-324, 1e308, 30, -30,
          1e100, 1e-200, 1e30, 1e-30, 88.5, -0.9999, 3e-39]
# The result depends on the processor in NumPy: whether it multiplies and adds at once.
ELSEWHERE = {"square"}
# NumPy adds 1 first, or multiplies by the complex number pi: small parts, and signs of zeros, are lost there.
LOSES = {"log1p", "sinc"}
NAMES = [name for name, f in ad._core.ufuncs.items() if f.nin == 1 and hasattr(np, name) and name not in ELSEWHERE]


def grid(dtype):
    with np.errstate(over="ignore"):
        values = np.array(VALUES).astype(np.dtype(dtype).type(0).real.dtype)
    z = np.empty((len(values), len(values)), dtype)
    z.real, z.imag = values[:, None], values
    return z


def parts(x):
    return (x.real, x.imag) if x.dtype.kind == "c" else (x,)


def agree(expected, actual, loses):
    """Check both parts of each element: the same infinity, NaN or zero, or numbers near for the size of the whole."""
    right, limits = np.ones(expected.shape, bool), np.finfo(expected.real.dtype)
    least = 4 * limits.smallest_subnormal
    near = 256 * limits.eps * abs(expected) + least + (8 * limits.eps if loses else 0)
    for e, a in zip(parts(expected), parts(actual)):
        same = (e == a) & ((np.signbit(e) == np.signbit(a)) | loses)
        close = np.isfinite(e) & np.isfinite(a) & (abs(e - a) <= near)
        close &= ((e == 0) == (a == 0)) | (abs(e - a) <= least) | loses
        right &= (np.isnan(e) & np.isnan(a)) | same | close
    return right


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", NAMES)
def test_special_values(name, dtype):
    z = grid(dtype)
    with np.errstate(all="ignore"):
        try:
            expected = getattr(np, name)(z)
        except TypeError:
            pytest.skip("not of complex numbers in NumPy")
    actual = getattr(ad, name)(ad.array(z)).get()
    assert actual.dtype == expected.dtype
    if expected.dtype.kind == "b":
        np.testing.assert_array_equal(actual, expected)
        return
    with np.errstate(all="ignore"):
        wrong = ~agree(expected, actual, name in LOSES)
    assert not wrong.any(), [(z[i], expected[i], actual[i]) for i in zip(*np.nonzero(wrong))][:9]
