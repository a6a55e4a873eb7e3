"""Every row of reduction.def, and running sums, against NumPy."""
import warnings

import numpy as np
import pytest

import arrayd as ad
from oracle import COMPLEX, DTYPES, FLOATS, REALS, SOME, check, random, seed

ROWS = list(ad._core.reductions)
DOMAINS = {
    "prod": "UNIT",
    "any": "BOOL",
    "all": "BOOL",
    "count_nonzero": "BOOL",
    "min": "ANY",
    "max": "ANY",
    "argmin": "ANY",
    "argmax": "ANY",
}
INDEX = {"argmin", "argmax", "nanargmin", "nanargmax"}
MASKED = sorted(set(ROWS) - INDEX - {"count_nonzero"})
AXES = [None, 0, 1, 2, -1, (0, 1), (0, 2), (2, 1), (0, 1, 2), ()]
LOOSE = {"sum": 60, "nansum": 60, "prod": 200, "nanprod": 200, "mean": 60, "nanmean": 60, "var": 300, "std": 300,
         "nanvar": 300, "nanstd": 300}


def elements(name, dtype, shape, *tags):
    """Seeded elements of the row's domain; positive for sums of floats, so that nothing cancels."""
    values = random(seed(name, dtype, *tags), dtype, shape, DOMAINS.get(name.removeprefix("nan"), "SMALL"))
    if name.removeprefix("nan") in ("sum", "mean") and values.dtype.kind == "f":
        return np.abs(values)
    if name.removeprefix("nan") == "prod" and values.dtype.kind in "fc":
        return (1 + values / 8).astype(values.dtype)
    return values


def axes_of(name):
    return [axis for axis in AXES if not (name in INDEX and isinstance(axis, tuple))]


def test_every_row_is_a_function():
    assert len(ROWS) >= 21 and all(hasattr(np, name) and hasattr(ad, name) for name in ROWS)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", ROWS)
def test_axes(name, dtype):
    if dtype == np.float16 and name in LOOSE:
        pytest.skip("NumPy sums float16 in float16 pairwise; test_half compares with float64")
    x = elements(name, dtype, (3, 4, 5))
    for axis in axes_of(name):
        for keepdims in (False, True):
            check(lambda xp, a: getattr(xp, name)(a, axis=axis, keepdims=keepdims), x, ulps=LOOSE.get(name, 8))
    for view in (lambda a: a.T, lambda a: a[::-1, ::2], lambda a: a[:, 1:-1, ::-2], lambda a: a[1, 2, 3]):
        for axis in (None, 0, -1):
            if (
                view(x).ndim or axis is None or not name.endswith(("var", "std", "mean"))
            ):  # NumPy's refuse axis 0 of a number
                check(lambda xp, a: getattr(xp, name)(view(a), axis=axis), x, ulps=LOOSE.get(name, 8))


@pytest.mark.parametrize("name", [name for name in ROWS if name in LOOSE])
def test_half(name):
    """float16 is summed in float32: nearer to the truth than NumPy's float16."""
    x = elements(name, np.float16, (6, 7))
    for axis in (None, 0, 1):
        got = getattr(ad, name)(ad.asarray(x), axis=axis)
        assert got.dtype == np.float16
        np.testing.assert_allclose(got.get().astype(float), getattr(np, name)(x.astype(float), axis=axis), rtol=2e-3)


@pytest.mark.parametrize("name", ROWS)
def test_large(name):
    for dtype in (np.float32, np.float64, np.int32, np.bool_):
        x = elements(name, dtype, (300, 401), "large")
        if name.endswith("prod"):
            x = (x > 0) if x.dtype.kind == "b" else np.sign(x) if x.dtype.kind != "f" else 1 + (x - 1) / 1000
            x = x.astype(dtype)
        for axis in (None, 0, 1):
            ulps = LOOSE.get(name, 8) * (1000 if name.endswith("prod") else 10)
            check(lambda xp, a: getattr(xp, name)(a, axis=axis), x, ulps=ulps)
            check(lambda xp, a: getattr(xp, name)(a.T[::2], axis=axis), x, ulps=ulps)


@pytest.mark.parametrize("name", ROWS)
def test_empty(name):
    for dtype in (np.float64, np.int32, np.bool_, np.complex64):
        for shape in ((0,), (0, 3), (3, 0), (2, 0, 4)):
            for axis in (None, 0, -1):
                check(lambda xp, a: getattr(xp, name)(a, axis=axis), np.zeros(shape, dtype))


@pytest.mark.parametrize("name", [name for name in ROWS if name not in INDEX])
def test_nan_and_infinity(name):
    for dtype in FLOATS:
        for values in ([1, np.nan, 3], [np.inf, 1, 2], [np.inf, -np.inf], [np.nan], [-0.0, 0.0]):
            check(lambda xp, a: getattr(xp, name)(a), np.array(values, dtype))
        block = np.array([[1, np.nan, 3], [np.nan, np.nan, np.nan], [4, 5, 6]], dtype)
        for axis in (0, 1):
            check(lambda xp, a: getattr(xp, name)(a, axis=axis), block, ulps=16)


@pytest.mark.parametrize("n", [1, 7, 64, 100, 2047, 2049, 4100, 70_000])
def test_where_extremes_are(n):
    """The first of equal ones, the first NaN, infinities of both signs, zeros of both signs; in runs and in rows."""
    rng = seed("extremes", n)
    for dtype in ("int8", "uint16", "int32", "int64", "float32", "float64", "float16"):
        x = rng.integers(0, 100, n).astype(dtype)
        with np.errstate(over="ignore"):
            up = np.arange(n).astype(dtype)
        variants = [x, np.full(n, 3, dtype), up, up[::-1]]
        if np.dtype(dtype).kind == "f":
            for specials in ((np.inf, -np.inf), (np.nan,), (np.nan, np.inf, -np.inf), (0.0, -0.0)):
                with_specials = -np.abs(x) if 0.0 in specials else x.copy()
                with_specials[rng.integers(0, n, 5)] = rng.choice(specials, 5)
                variants.append(with_specials)
        for v in variants:
            check(lambda xp, a: (a.argmin(), a.argmax(), a.min(), a.max(), a[::-1].argmax()), v)
            for first in range(1, min(n, 4)):
                check(lambda xp, a, f=first: (a[f:].argmin(), a[f:].argmax(), a[f:].max()), v)
        rows = np.stack(variants)
        check(lambda xp, a: (a.argmin(1), a.argmax(1), a.min(1), a.max(1), a.argmax(0), a[:, ::2].argmin(1)), rows)


@pytest.mark.parametrize("name", ["argmin", "argmax", "min", "max", "nanmin", "nanmax"])
def test_order_of_equals_and_nan(name):
    check(lambda xp, a: getattr(xp, name)(a), np.array([3, 1, 1, 3, 2]))
    check(lambda xp, a: getattr(xp, name)(a), np.array([1.0, np.nan, 5.0, np.nan]))
    check(lambda xp, a: getattr(xp, name)(a, axis=0), np.array([[1.0, np.nan, 5.0], [0.5, 2.0, 5.0]]))
    check(lambda xp, a: getattr(xp, name)(a), np.array([1 + 2j, 1 - 2j, 1 + 3j, 0.5 + 9j]))
    check(lambda xp, a: getattr(xp, name)(a), np.array([False, True, True, False]))


def test_nan_indices():
    x = np.array([[np.nan, 3.0, 1.0], [7.0, np.nan, 7.0]])
    for name in ("nanargmin", "nanargmax"):
        for axis in (None, 0, 1):
            check(lambda xp, a: getattr(xp, name)(a, axis=axis), x)
    assert ad.nanargmin(ad.full(3, np.nan)).get() == -1


@pytest.mark.parametrize("name", MASKED)
def test_where_initial_out(name):
    for dtype in SOME:
        x = elements(name, dtype, (4, 6), "options")
        mask = random(seed(name, "mask"), bool, (4, 6))
        mask[0] = True
        mask[:, 0] = True
        ulps = LOOSE.get(name, 8)
        extreme = name.removeprefix("nan") in ("min", "max")
        starts = ({}, {"initial": 2}) if name.removeprefix("nan") in ("sum", "prod", "min", "max") else ({},)
        for axis in (None, 0, (0, 1)):
            for start in starts:
                check(lambda xp, a: getattr(xp, name)(a, axis=axis, **start), x, ulps=ulps)
                if not extreme or start:
                    check(lambda xp, a, m: getattr(xp, name)(a, axis=axis, where=m, **start), x, mask, ulps=ulps)
                    check(lambda xp, a, m: getattr(xp, name)(a, axis=axis, where=m[0], **start), x, mask, ulps=ulps)
            kind = np.asarray(getattr(np, name)(x, axis=axis))

            def into(xp, a):
                out = xp.empty(kind.shape, kind.dtype)
                result = getattr(xp, name)(a, axis=axis, out=out)
                return out, result is out
            if dtype.kind != "c" or name.removeprefix("nan") not in ("var", "std"):
                check(into, x, ulps=ulps)
    if extreme:
        check(lambda xp, a, m: getattr(xp, name)(a, where=m), x.real, mask)


@pytest.mark.parametrize("n", [1, 16, 63, 67, 2047, 70_001])
@pytest.mark.parametrize("name", MASKED)
def test_masks_of_runs(name, n):
    """Elements that a mask leaves out count for nothing, NaN neither, wherever chunks, threads and blocks begin."""
    rng = seed("runs", name, n)
    start = {"initial": 3} if name.removeprefix("nan") in ("min", "max") else {}
    ulps = 8 * LOOSE.get(name, 1)
    for dtype in ("int8", "uint16", "int32", "uint64", "float32", "float64", "complex64", "complex128", "bool"):
        x = elements(name, np.dtype(dtype), (3, n), "runs")
        if dtype == "bool" and name.removeprefix("nan") in ("min", "max"):
            continue
        last = np.arange(n) == n - 1
        for mask in (rng.random((3, n)) < 0.5, np.broadcast_to(last, (3, n)), ~np.broadcast_to(last, (3, n))):
            wrong = x.copy()
            if x.dtype.kind in "fc":
                wrong[~mask] = np.nan

            def reduced(xp, a, m, x=x):
                of = getattr(xp, name)
                return [of(a[0], where=m[0], **start), of(a[0, 1:], where=m[0, 1:], **start),
                        of(a[0, 4:], where=m[0, 4:], **start), of(a[0], where=m[0, ::-1] & m[0], **start),
                        of(a, axis=1, where=m, **start), of(a, where=m, **start),
                        of(a[:, ::-1], axis=1, where=m[:, ::-1], **start)]
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                check(reduced, wrong, mask, ulps=ulps)


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std", "nansum", "nanmean", "nanvar"])
def test_dtype(name):
    for dtype in SOME:
        x = elements(name, dtype, (3, 5), "dtype")
        for kind in (np.float32, np.float64, np.complex64, np.int64, np.int16, np.uint8):
            if name != "sum" and name != "prod" and np.dtype(kind).kind in "iu":
                continue
            if np.dtype(dtype).kind in "fc" and np.dtype(kind).kind not in "fc":
                continue
            if np.dtype(dtype).kind == "c" and np.dtype(kind).kind == "f":
                continue
            if np.dtype(kind).kind == "c" and name.endswith("var") or name.endswith("std"):
                continue  # ours are real, as they should be
            rounded = name == "nanvar" and dtype.kind == "f"  # NumPy subtracts the mean in the input's type
            ulps = 2**33 if rounded else LOOSE.get(name, 8) * 4
            check(lambda xp, a: getattr(xp, name)(a, axis=0, dtype=kind), x, ulps=ulps)


@pytest.mark.parametrize("name", ["var", "std", "nanvar", "nanstd"])
def test_ddof(name):
    for dtype in (np.float32, np.float64, np.int16, np.complex128):
        x = elements(name, dtype, (4, 5), "ddof")
        for ddof in (0, 1, 2, 0.5, 4, 5):
            check(lambda xp, a: getattr(xp, name)(a, axis=0, ddof=ddof), x, ulps=300)
        check(lambda xp, a: getattr(xp, name)(a, axis=1, correction=1), x, ulps=300)
        check(lambda xp, a: getattr(xp, name)(a, ddof=1, correction=1), x)


@pytest.mark.parametrize("name", ["var", "std", "mean", "sum"])
def test_far_from_zero(name):
    """Sums of squares must not cancel."""
    x = 1e6 + random(seed(name), np.float64, (1000,), "UNIT")
    check(lambda xp, a: getattr(xp, name)(a), x, ulps=2**24)


def test_integers_wrap():
    check(lambda xp, a: xp.sum(a, dtype=xp.int8), np.full(300, 100, np.int8))
    check(lambda xp, a: xp.prod(a), np.full(70, 3, np.int64))
    check(lambda xp, a: xp.cumsum(a, dtype=xp.uint8), np.full(30, 100, np.uint8))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "nancumsum", "nancumprod"])
def test_running(name, dtype):
    x = random(seed(name, dtype), dtype, (4, 5, 6), "UNIT" if "prod" in name else "SMALL")
    if dtype == np.float16:
        x = np.round(x * 2) / 2  # exact in float16
    ulps = 2000 if dtype.kind in "fc" else 0
    for axis in (None, 0, 1, -1):
        if dtype == np.float16 and "prod" in name:
            continue
        check(lambda xp, a: getattr(xp, name)(a, axis=axis), np.abs(x).astype(x.dtype), ulps=ulps)
        check(lambda xp, a: getattr(xp, name)(a[::2, ::-1].T, axis=axis), np.abs(x).astype(x.dtype), ulps=ulps)
    check(lambda xp, a: getattr(xp, name)(a, axis=1), x[:, :0])
    check(lambda xp, a: getattr(xp, name)(a), x[0, 0, 0])
    if dtype.kind == "f":
        check(lambda xp, a: getattr(xp, name)(a), np.array([1, np.nan, 2, np.inf], dtype))


def test_running_large_and_into():
    x = random(seed("scan"), np.float64, (200_001,), "POS")
    check(lambda xp, a: xp.cumsum(a), x, ulps=20000)
    check(lambda xp, a: xp.cumsum(a.reshape(3, -1), axis=0), x, ulps=100)
    check(lambda xp, a: xp.cumsum((a > 25).reshape(3, -1), axis=1), x)
    for dtype in (np.float32, np.int16, np.uint64):
        check(lambda xp, a: xp.cumsum(a, dtype=dtype), np.arange(50, dtype=np.uint8))

    def into(xp, a):
        out = xp.zeros((3, 4), xp.float64)
        return xp.cumsum(a, axis=1, out=out), out
    check(into, np.arange(12).reshape(3, 4))


def test_cumulative():
    x = np.arange(1, 13).reshape(3, 4)
    for name in ("cumulative_sum", "cumulative_prod"):
        for first in (False, True):
            check(lambda xp, a: getattr(xp, name)(a, axis=1, include_initial=first), x)
            check(lambda xp, a: getattr(xp, name)(a[0], include_initial=first), x)
        check(lambda xp, a: getattr(xp, name)(a), x)


@pytest.mark.parametrize("name", ["sum", "max", "argmax", "mean", "any", "cumsum", "var"])
@pytest.mark.parametrize("axis", [3, -4, (0, 3), (0, 0), 1.5, "x"])
def test_wrong_axes(name, axis):
    check(lambda xp, a: getattr(xp, name)(a, axis=axis), np.zeros((2, 3, 4)))


def test_wrong_out():
    check(lambda xp, a: xp.sum(a, axis=0, out=xp.zeros(3)), np.zeros((2, 4)))
    check(lambda xp, a: xp.sum(a, out=xp.zeros((), int)), np.zeros((2, 4)) + 1.75)
    check(lambda xp, a: xp.max(a, axis=1, out=[1, 2]), np.zeros((2, 4)))


def test_methods():
    x = random(seed("methods"), np.float64, (4, 5), "POS")
    for name in ("sum", "prod", "min", "max", "mean", "var", "std", "argmin", "argmax", "any", "all", "cumsum"):
        check(lambda xp, a: getattr(a, name)(), x, ulps=60)
        check(lambda xp, a: getattr(a, name)(0), x, ulps=60)
        check(lambda xp, a: getattr(a, name)(axis=1), x, ulps=60)


def test_ptp_and_median():
    for dtype in REALS[1:]:
        x = random(seed("median", dtype), dtype, (4, 5, 3), "SMALL")
        for axis in (None, 0, 1, (0, 2), -1):
            check(lambda xp, a: xp.ptp(a, axis=axis), x)
            check(lambda xp, a: xp.median(a, axis=axis), x)
            check(lambda xp, a: xp.median(a, axis=axis, keepdims=True), x[:, :4])
    for axis in (None, 0, 1):
        y = np.array([[1.0, np.nan, 3.0, 9.0], [4.0, 5.0, 6.0, 0.0], [np.nan] * 4])
        check(lambda xp, a: xp.median(a, axis=axis), y)
        check(lambda xp, a: xp.nanmedian(a, axis=axis), y)
    check(lambda xp, a: xp.median(a), np.zeros(0))


def test_count_nonzero():
    for dtype in DTYPES + COMPLEX:
        x = random(seed("count", dtype), dtype, (5, 6), "BOOL")
        for axis in (None, 0, (0, 1)):
            check(lambda xp, a: xp.count_nonzero(a, axis=axis), x)
            check(lambda xp, a: xp.count_nonzero(a, axis=axis, keepdims=True), x)
