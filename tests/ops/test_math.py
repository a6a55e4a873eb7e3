"""Functions that are more than one ufunc, against NumPy."""
import numpy as np
import pytest

from oracle import DTYPES, FLOATS, SOME, check, random, seed

X = np.array([1.0, 2.5, -3.5, 0.125, 7, 1e-3])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_round(dtype):
    a = random(seed(dtype), dtype, (4, 5))
    for decimals in (0, 1, 3, -1, -2, 10):
        if dtype == np.float16 and decimals not in (0, 1, -1):
            continue
        check(lambda xp, a: xp.round(a, decimals), a)
        check(lambda xp, a: a.round(decimals), a)
    check(lambda xp, a: xp.around(a, out=xp.zeros((4, 5), complex)), a)
    check(lambda xp, a: xp.fix(a), a)
    check(lambda xp, a: xp.round(a, 1.5), a)
    check(lambda xp, a: xp.round(a * 0 + a.dtype.type(1) / 2), a)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_clip(dtype):
    a = random(seed(dtype, "clip"), dtype, (4, 5))
    for bounds in ((1, 3), (None, 3), (1, None), (None, None), (3, 1), (1.5, 2.5), (-5, 300), (0, 2**40)):
        check(lambda xp, a: xp.clip(a, *bounds), a)
        check(lambda xp, a: a.clip(*bounds), a)
        check(lambda xp, a: xp.clip(a, min=bounds[0], max=bounds[1]), a)
    check(lambda xp, a: xp.clip(a, a[0], a[1]), a)
    check(lambda xp, a: xp.clip(a, a[:, :1], 5), a)
    check(lambda xp, a: xp.clip(a, 0, 5, out=a), a)
    check(lambda xp, a: xp.clip(a, 0, 5, where=a > 0, out=xp.zeros((4, 5), a.dtype)), a)
    check(lambda xp, a: xp.clip(a, 1), a)
    check(lambda xp, a: xp.clip(a, 1, 2, min=3), a)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_nan_to_num(dtype):
    a = random(seed(dtype, "nan"), dtype, (3, 4))
    if a.dtype.kind in "fc":
        a[0] = [np.nan, np.inf, -np.inf, 1]
    if a.dtype.kind == "c":
        a[1] = [complex(np.nan, np.inf), complex(1, np.nan), complex(-np.inf, 2), complex(np.inf, -np.inf)]
    for options in ({}, {"nan": 5}, {"posinf": 7, "neginf": -7}, {"nan": 1, "posinf": 2, "neginf": 3}, {"copy": False}):
        check(lambda xp, a: (xp.nan_to_num(a, **options), a), a)


def test_complex_parts():
    for dtype in SOME:
        a = random(seed(dtype, "parts"), dtype, (3, 4))
        for name in ("real", "imag", "angle"):
            check(lambda xp, a: getattr(xp, name)(a[::-1]), a, ulps=40)
        check(lambda xp, a: xp.angle(a, deg=True), a, ulps=40)
        check(lambda xp, a: (a.real, a.imag, a.conj(), a.conjugate()), a)

    def assign(xp, a):
        a.real = 3
        a.imag[0] = xp.arange(4)
        return a
    check(assign, np.zeros((3, 4), complex))


def test_diff():
    for dtype in DTYPES:
        a = random(seed(dtype, "diff"), dtype, (4, 6), "SMALL")
        for n in (0, 1, 2, 5, 9, -1):
            for axis in (-1, 0, 2):
                check(lambda xp, a: xp.diff(a, n, axis), a)
        check(lambda xp, a: xp.ediff1d(a), a)
    a = np.arange(12.0).reshape(3, 4) ** 2
    check(lambda xp, a: xp.diff(a, prepend=0), a)
    check(lambda xp, a: xp.diff(a, axis=0, prepend=a[:1], append=5), a)
    check(lambda xp, a: xp.diff(3.0), a)
    check(lambda xp, a: xp.ediff1d(a, to_end=[1, 2], to_begin=-9), a)
    check(lambda xp, a: xp.ediff1d(a.astype(int), to_end=1.5), a)


def test_gradient():
    a = random(seed("gradient"), float, (5, 6), "SMALL")
    x, y = np.cumsum(np.arange(1, 6)).astype(float), np.cumsum(np.arange(1, 7)) / 2
    for order in (1, 2, 3):
        for arguments in ((), (2.0,), (1, 0.5), (x, y), (x, 2), (1, 2, 3), (y, x)):
            check(lambda xp, a: tuple(xp.gradient(a, *arguments, edge_order=order)), a, ulps=2000)
        check(lambda xp, a: xp.gradient(a, axis=0, edge_order=order), a, ulps=2000)
        check(lambda xp, a: xp.gradient(a[0], edge_order=order), a, ulps=2000)
        check(lambda xp, a: xp.gradient((a * 10).astype(int)[0], edge_order=order), a, ulps=2000)
        check(lambda xp, a: xp.gradient(a[0, :2], edge_order=order), a, ulps=2000)
        check(lambda xp, a: xp.gradient(a.astype(np.float32), axis=1, edge_order=order), a, ulps=2000)


def test_trapezoid():
    y = random(seed("trapezoid"), float, (4, 5), "POS")
    x = np.array([0, 1, 2.5, 3, 7])
    for axis in (-1, 0):
        check(lambda xp, y, x: xp.trapezoid(y, axis=axis), y, x, ulps=64)
        check(lambda xp, y, x: xp.trapezoid(y, dx=0.5, axis=axis), y, x, ulps=64)
        check(lambda xp, y, x: xp.trapezoid(y, x[:y.shape[axis]], axis=axis), y, x, ulps=64)
    check(lambda xp, y, x: xp.trapezoid(y, xp.cumsum(y, axis=1)), y, x, ulps=64)
    check(lambda xp, y, x: xp.trapezoid(xp.arange(5)), y, x)


def test_interp():
    xp_, fp = np.array([1.0, 2, 4, 8]), np.array([10.0, -5, 3, 3])
    x = np.array([0, 1, 1.5, 2, 3, 7.9, 8, 9, np.nan])
    for options in ({}, {"left": -1}, {"right": 99}, {"left": 0, "right": 1}, {"period": 7}, {"period": 0}):
        check(lambda xp, *a: xp.interp(*a, **options), x, xp_, fp, ulps=64)
        check(lambda xp, *a: xp.interp(a[0].reshape(3, 3), *a[1:], **options), x, xp_, fp, ulps=64)
    check(lambda xp, *a: xp.interp(3, *a[1:]), x, xp_, fp)
    check(lambda xp, *a: xp.interp(*a), x, xp_, fp + 1j * fp[::-1], ulps=64)
    check(lambda xp, *a: xp.interp(a[0], a[1][:1], a[2][:1]), x, xp_, fp)
    check(lambda xp, *a: xp.interp(a[0], a[1][:0], a[2][:0]), x, xp_, fp)
    check(lambda xp, *a: xp.interp(a[0], a[1], a[2][:2]), x, xp_, fp)


@pytest.mark.parametrize("mode", ["full", "same", "valid", "other"])
@pytest.mark.parametrize("name", ["convolve", "correlate"])
def test_convolution(name, mode):
    for n, m in ((5, 3), (3, 5), (4, 4), (7, 2), (1, 1), (6, 1), (0, 3), (3, 0)):
        for dtype in (np.int64, np.float64, np.complex128):
            a, v = (random(seed(name, size, i), dtype, (size,), "SMALL") for i, size in enumerate((n, m)))
            check(lambda xp, a, v: getattr(xp, name)(a, v, mode), a, v, ulps=2**12)
    check(lambda xp, a: getattr(xp, name)(a, a, mode), np.zeros((2, 2)))
    check(lambda xp, a: getattr(xp, name)(a[::2], [1, 2.5], mode), np.arange(9))


def test_unwrap():
    p = np.cumsum(random(seed("unwrap"), float, (4, 30), "SMALL"), axis=1) % (2 * np.pi)
    for options in ({}, {"discont": 4}, {"axis": 0}, {"period": 3}):
        check(lambda xp, a: xp.unwrap(a, **options), p, ulps=2**12)
    check(lambda xp, a: xp.unwrap(a, period=4), np.array([0, 1, 2, -1, 0, 7]))
    check(lambda xp, a: xp.unwrap(a, period=5), np.array([0, 1, 2, -1, 0, 7]))


@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hanning"])
def test_windows(name):
    for points in (0, 1, 2, 7, 12):
        check(lambda xp: getattr(xp, name)(points) + 1, ulps=16)
        check(lambda xp: xp.kaiser(points, 8.6), ulps=200)


def test_special():
    for dtype in FLOATS + [np.dtype(int), np.dtype(np.int8), np.dtype(bool)]:
        a = random(seed(dtype, "special"), dtype, (8,), "SMALL")
        check(lambda xp, a: xp.sinc(a) + 2, a, ulps=64)
        check(lambda xp, a: xp.i0(a), a, ulps=64)
    check(lambda xp, a: xp.i0(a * 1j), X)


def test_nan_to_num_by_arrays():
    a = np.array([[0, 1, np.nan, 4], [11, np.inf, -np.inf, np.nan]])
    for name in ("nan", "posinf", "neginf"):
        for shape in ((2, 4), (2, 1), (1, 4), (4,), (), (3, 2, 4)):
            check(lambda xp, a, y: xp.nan_to_num(a, **{name: y}), a, np.arange(np.prod(shape, dtype=int)).reshape(shape) - 1.0)
            check(lambda xp, a, y: xp.nan_to_num(a + 1j, **{name: y}), a, np.ones(shape))
