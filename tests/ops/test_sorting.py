"""Sorting, searching and sets against NumPy."""
import numpy as np
import pytest

import arrayd as ad
from oracle import DTYPES, SOME, check, random, seed


def few(dtype, shape, *tags):
    """Elements with many equal ones, and NaNs among floats."""
    rng = seed(dtype, *tags)
    a = rng.integers(0, 9, shape).astype(dtype)
    if np.dtype(dtype).kind in "fc":
        a = np.where(rng.integers(0, 8, shape) == 0, np.array(np.nan, dtype), a / 2).astype(dtype)
    return a


def test_kinds_of_sorts():
    a = np.array([3, 1, 2])
    for kind in (None, "quicksort", "heapsort", "mergesort", "stable", "Quick", "x", "", 1):
        check(lambda xp, a: xp.sort(a, kind=kind), a)
        check(lambda xp, a: xp.argsort(a, kind=kind), a)
        check(lambda xp, a: (a.sort(kind=kind), a), a)
        check(lambda xp, a: a.argsort(kind=kind), a)
        check(lambda xp, a: xp.sort(a, kind=kind, stable=True), a)
    for kind in (None, "introselect", "x", 1):
        check(lambda xp, a: xp.partition(a, 1, kind=kind), a)
        check(lambda xp, a: xp.argpartition(a, 1, kind=kind), a)
        check(lambda xp, a: (a.partition(1, kind=kind), a), a)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_sort(dtype):
    for a in (random(seed(dtype), dtype, (5, 7, 6)), few(dtype, (5, 7, 6))):
        for axis in (-1, 0, 1, None, 3):
            check(lambda xp, a: xp.sort(a, axis), a, exact=True)
            check(lambda xp, a: xp.sort(a.T[::-1], axis), a, exact=True)
            check(lambda xp, a: xp.argsort(a, axis, kind="stable"), a)
            check(lambda xp, a: xp.argsort(a[:, ::2], axis, stable=True), a)
            if axis is not None:
                check(lambda xp, a: (a.sort(axis), a), a, exact=True)
                check(lambda xp, a: (a[:, ::-2].sort(axis), a), a, exact=True)
    for shape in ((0,), (3, 0), (1,), (0, 3)):
        check(lambda xp, a: (xp.sort(a), xp.argsort(a)), np.zeros(shape, dtype))
    check(lambda xp, a: xp.argsort(a), np.zeros((), dtype))
    check(lambda xp, a: xp.sort(a, order="x"), np.zeros(3, dtype))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("n", [2, 15, 16, 33, 100, 256, 600])
def test_sort_many_lanes(dtype, n):
    for a in (random(seed(dtype, n), dtype, (70, n)), few(dtype, (70, n), n)):
        check(lambda xp, a: xp.sort(a, 1), a, exact=True)
        check(lambda xp, a: xp.sort(a.T, 0), a, exact=True)
        check(lambda xp, a: xp.argsort(a, 1, kind="stable"), a)
        check(lambda xp, a: xp.argsort(a[:, ::-1].T, 0, kind="stable"), a)
        check(lambda xp, a: xp.sort(a.reshape(2, 35, n)[:, :, ::2], 2), a, exact=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.uint8, np.int64, np.complex128])
def test_sort_large(dtype):
    a = random(seed(dtype, "large"), dtype, (150_001,))
    b = few(dtype, (3, 40_000))
    check(lambda xp, a: xp.sort(a), a)
    check(lambda xp, a: xp.argsort(a, kind="stable"), a)
    check(lambda xp, a: xp.argsort(a, axis=1, kind="stable"), b)
    check(lambda xp, a: xp.sort(a, axis=0), b)


def test_zeros_and_infinities():
    a = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, -0.0, 0.0])
    check(lambda xp, a: xp.argsort(a, kind="stable"), a)
    check(lambda xp, a: xp.signbit(xp.sort(a, kind="stable")), a)
    parts = [0.0, np.nan, -1.0, np.inf]
    check(lambda xp, a: xp.argsort(a, kind="stable"), np.array([complex(x, y) for x in parts for y in parts]))


def test_other_sorts():
    a = few(np.float32, (4, 6)), few(np.int16, (4, 6)), few(np.float64, (4, 6))
    for axis in (-1, 0):
        check(lambda xp, *keys: xp.lexsort(keys, axis=axis), *a)
    check(lambda xp, a: xp.lexsort(a), a[1])
    check(lambda xp, a: xp.lexsort((a, a[:2])), a[1])
    for dtype in SOME:
        check(lambda xp, a: xp.sort_complex(a), few(dtype, (5,), "c"))
    for kth in (0, 3, -1, [1, 4], 9):
        for axis in (-1, 0, None):
            check(lambda xp, a: xp.sort(xp.partition(a, kth, axis), axis), np.arange(30)[::-1].reshape(5, 6))
    p = ad.partition(ad.asarray(np.random.default_rng(1).permutation(50)), 20).get()
    assert p[20] == 20 and (p[:20] < 20).all() and (p[21:] > 20).all()
    x = np.random.default_rng(2).permutation(50)
    assert x[ad.argpartition(ad.asarray(x), 7).get()[7]] == 7


def assert_partitioned(got, x, kth, axis=-1):
    """numpy.partition's definition: the elements of x, each of the places as sorting has it, less before, greater behind."""
    got, x = np.moveaxis(got, axis, -1), np.moveaxis(x, axis, -1)
    order = np.sort(x, axis=-1, kind="stable")  # NumPy's other sort leaves float16 unsorted now and then
    np.testing.assert_array_equal(np.sort(got, axis=-1, kind="stable"), order)
    for k in np.atleast_1d(kth) % x.shape[-1]:
        np.testing.assert_array_equal(got[..., k], order[..., k])
        np.testing.assert_array_equal(np.sort(got[..., :k], axis=-1, kind="stable"), order[..., :k])


def rows_to_partition(rng, dtype, n):
    """Rows of any numbers, of equal ones, of few, of many like one another, with what is no number, and in order."""
    any_of, equal = random(rng, dtype, (n,)), np.full(n, 3).astype(dtype)
    few_of = rng.integers(0, 7, n).astype(dtype)
    mostly = np.where(rng.integers(0, 5, n) > 0, dtype.type(0), any_of)
    close = (np.float64(1000) + rng.random(n)).astype(dtype)
    rows = [any_of, equal, few_of, mostly, close, np.sort(any_of), np.sort(any_of)[::-1].copy()]
    if dtype.kind in "fc":
        without = any_of.copy()
        without[rng.integers(0, n, n // 3)] = np.nan
        without[rng.integers(0, n, n // 9)] = -np.nan
        without[:4] = np.inf, -np.inf, -0.0, 0.0
        rows.append(without)
    return rows


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_partition(dtype):
    """Short rows and one that a GPU partitions without sorting it, at places at both ends and within."""
    rng, dtype = seed("partition", dtype), np.dtype(dtype)
    for n, step in ((50, 1), (1 << 20, 4)):
        for i, x in enumerate(rows_to_partition(rng, dtype, n)[::step]):
            a = ad.asarray(x)
            for kth in (0, n // 2 + i, -1, n // 5) if n == 50 else ((1000, n // 2, n - 1000)[i],):
                assert_partitioned(ad.partition(a, kth).get(), x, kth)
                order = ad.argpartition(a, kth).get()
                np.testing.assert_array_equal(np.bincount(order, minlength=n), 1)
                assert_partitioned(x[order], x, kth)


def sampled_places(n):
    """The places that select_elements of the CPU and choose_keys of the GPU look at first."""
    drawn, places = 1, []
    for i in range(4096):
        drawn = (drawn * 6364136223846793005 + 1442695040888963407) % 2**64
        places.append(i * (n // 4096) + (drawn >> 33) % (n // 4096))
    for i in range(16384):
        mixed = (i + 1) * 0x9e3779b97f4a7c15 % 2**64
        mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9 % 2**64
        mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb % 2**64
        places.append(i * (n // 16384) + (mixed ^ mixed >> 31) % (n // 16384))
    return places


def test_partition_of_misleading_numbers():
    """Numbers of the sample are all less, or greater, than the one that is wanted."""
    rng, n = seed("misleading"), 1 << 20
    x = rng.random(n).astype("f4")
    for value in (-1, 2):
        x[sampled_places(n)] = value
        for kth in (n // 2, n // 3):
            assert_partitioned(ad.partition(ad.asarray(x), kth).get(), x, kth)
            assert_partitioned(x[ad.argpartition(ad.asarray(x), kth).get()], x, kth)


def test_partition_along_any_axis():
    """Several places, other axes, views, in place; more rows than one of a length that a GPU partitions."""
    rng = seed("partition along")
    x = rng.normal(size=(3, 1 << 20)).astype("f4")
    a = ad.asarray(x)
    assert_partitioned(ad.partition(a, 70).get(), x, 70)
    assert_partitioned(ad.partition(a.T, 1 << 19, 0).get(), x.T, 1 << 19, 0)
    assert_partitioned(ad.partition(a[1, 1:], 5).get(), x[1, 1:], 5)
    assert_partitioned(ad.partition(a, [5, 1 << 19, -1]).get(), x, [5, 1 << 19, -1])
    assert_partitioned(x[1][ad.argpartition(a[1], [9, 700]).get()], x[1], [9, 700])
    assert_partitioned(ad.partition(a, 1, 0).get(), x, 1, 0)
    assert_partitioned(ad.partition(a, 1 << 20, None).get(), x.ravel(), 1 << 20)
    a.partition(1 << 18)
    assert_partitioned(a.get(), x, 1 << 18)
    with pytest.raises(ValueError, match="out of bounds"):
        a.partition(1 << 20)
    assert ad.partition(ad.zeros((0,)), 3).shape == (0,)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_searchsorted(dtype):
    a = np.sort(few(dtype, (20,)))
    v = few(dtype, (3, 8), "v")
    for side in ("left", "right", "middle"):
        check(lambda xp, a, v: xp.searchsorted(a, v, side), a, v)
        check(lambda xp, a, v: xp.searchsorted(a, v[0, 0], side), a, v)
        check(lambda xp, a, v: a.searchsorted(v[::2, ::-1], side), a, v)
    check(lambda xp, a, v: xp.searchsorted(a, 3), a, v)
    check(lambda xp, a, v: xp.searchsorted(a, [1, 2.5]), a, v)
    check(lambda xp, a, v: xp.searchsorted(a[:0], v), a, v)
    check(lambda xp, a, v: xp.searchsorted(a[::-1], v, sorter=xp.argsort(a[::-1], kind="stable")), a, v)
    check(lambda xp, a, v: xp.searchsorted(v, a), a, v)


@pytest.mark.parametrize("dtype", (np.int32, np.uint16, np.float16, np.float64), ids=str)
def test_searchsorted_of_values_in_order(dtype):
    """Values that ascend are looked for behind the place of the one before: steps of none, some and many elements, back and to
    the ends."""
    rng = seed("ascending", str(np.dtype(dtype)))
    a = np.sort(rng.integers(0, 500, 1000)).astype(dtype)
    for v in (np.arange(-5, 505), np.arange(0, 500, 37), np.repeat(np.arange(500), 3), np.arange(500)[::-1],
              np.tile(np.arange(40), 200)):
        for side in ("left", "right"):
            check(lambda xp, a, v: xp.searchsorted(a, v, side), a, v.astype(dtype))
            check(lambda xp, a, v: xp.searchsorted(a[:3], v, side), a, v.astype(dtype))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_unique(dtype):
    a = few(dtype, (6, 7), "unique")
    for options in ({}, {"return_index": True}, {"return_inverse": True}, {"return_counts": True}, {"equal_nan": False},
                    {"return_index": True, "return_inverse": True, "return_counts": True}):
        check(lambda xp, a: xp.unique(a, **options), a)
        check(lambda xp, a: xp.unique(a[:, :0], **options), a)
        check(lambda xp, a: xp.unique(a[0, 0], **options), a)
        if np.dtype(dtype).kind not in "fc":
            for axis in (0, 1, -1):
                check(lambda xp, a: xp.unique(a[:, :2] % 2 if a.dtype != bool else a[:, :2], axis=axis, **options), a)
                check(lambda xp, a: xp.unique(a, axis=axis, **options), a)
    check(lambda xp, a: xp.unique(a, axis=2), a)
    check(lambda xp, a: xp.sort(xp.unique_values(a[~xp.isnan(a)])), a)


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.float64, np.bool_])
def test_sets(dtype):
    a, b = few(dtype, (12,), "a"), few(dtype, (3, 4), "b")
    if np.dtype(dtype).kind == "f":
        a, b = np.nan_to_num(a), np.nan_to_num(b)
    u, w = np.unique(a), np.unique(b)
    for name in ("intersect1d", "union1d", "setdiff1d", "setxor1d"):
        check(lambda xp, a, b: getattr(xp, name)(a, b), a, b)
        check(lambda xp, a, b: getattr(xp, name)(a, b[:0]), a, b)
        if name != "union1d":
            check(lambda xp, a, b: getattr(xp, name)(a, b, assume_unique=True), u, w)
    check(lambda xp, a, b: xp.intersect1d(a, b, return_indices=True), a, b)
    for invert in (False, True):
        check(lambda xp, a, b: xp.isin(b, a[:5], invert=invert), a, b)
        check(lambda xp, a, b: xp.isin(b, [], invert=invert), a, b)
        check(lambda xp, a, b: xp.isin(b, [1, 2.5], invert=invert), a, b)
    check(lambda xp, a, b: xp.isin(a, b, kind="what"), a, b)


def test_sorters_that_do_not_fit():
    a, v = np.array([4, 1, 3]), np.array([2, 3])
    check(lambda xp, a, v: xp.searchsorted(a, v, sorter=xp.asarray([1, 2, 0])), a, v)
    check(lambda xp, a, v: xp.searchsorted(a, v, sorter=xp.asarray([1, 2])), a, v)
    check(lambda xp, a, v: xp.searchsorted(a, v, sorter=xp.asarray([1.0, 2, 0])), a, v)


def test_setxor1d_of_what_is_not_unique():
    for dtype in (int, float):
        a, b = np.array([3, 4, 9, 1, 5, 4], dtype), np.array([8, 7, 3, 9, 0], dtype)
        check(lambda xp, a, b: xp.setxor1d(a, b, assume_unique=True), a, b)
        check(lambda xp, a, b: xp.setxor1d(a[:0], b[:0], assume_unique=True), a, b)
    check(lambda xp, a: xp.setxor1d(a, a, assume_unique=True), np.array([np.nan, 1]))
