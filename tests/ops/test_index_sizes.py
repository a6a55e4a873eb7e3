"""Indexing, masks, sorting and counting at the sizes at which a device divides the work differently, against NumPy."""
import numpy as np
import pytest

import arrayd as ad
from oracle import DTYPES, SOME, check, random, seed

LAYOUTS = [lambda a: a, lambda a: a.T, lambda a: a[::-1, ::2]]


def special(dtype, shape, *tags):
    """Make a random array, with NaNs of both signs, zeros of both signs and infinities among floats."""
    rng, a = seed(dtype, *tags), random(seed(dtype, *tags), dtype, shape)
    if np.dtype(dtype).kind == "f":
        values = np.array([np.nan, -np.nan, 0.0, -0.0, np.inf, -np.inf], dtype)
        a = np.where(rng.integers(0, 3, shape) == 0, values[rng.integers(0, 6, shape)], a)
    return a


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(70_000,), (300_000,), (40, 2_000), (3, 4_352), (2, 9_000), (2_000, 33), (3_000, 2)],
                         ids=str)
def test_sort(dtype, shape):
    a = special(dtype, shape, shape)
    check(lambda xp, a: xp.sort(a, kind="stable"), a, exact=True)
    check(lambda xp, a: xp.argsort(a, kind="stable"), a)
    if np.dtype(dtype).kind == "f":
        check(lambda xp, a: xp.signbit(xp.sort(a, kind="stable"))[~xp.isnan(xp.sort(a, kind="stable"))], a)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", SOME, ids=str)
def test_sort_of_views(dtype, layout):
    a = special(dtype, (70, 150))
    for axis in (0, 1):
        check(lambda xp, a: xp.sort(layout(a), axis, kind="stable"), a, exact=True)
        check(lambda xp, a: xp.argsort(layout(a), axis, kind="stable"), a)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_rows(dtype):
    """Whole rows and parts of them, by one index and by several."""
    rng = seed(dtype, "rows")
    a = random(rng, dtype, (300, 7, 24))
    i, j = rng.integers(-300, 300, 500), rng.integers(-7, 7, 500)
    for view in (lambda a: a, lambda a: a[:, :, ::-1], lambda a: a[:, :, 1:], lambda a: a[:, :, 3:4],
                 lambda a: a.T[:7].T):
        check(lambda xp, a: view(a)[xp.asarray(i)], a, exact=True)
        check(lambda xp, a: view(a)[xp.asarray(i), xp.asarray(j) % view(a).shape[1]], a, exact=True)
    check(lambda xp, a: a[xp.asarray(i)[:, None], xp.asarray(j)[None, :20]], a, exact=True)
    check(lambda xp, a: a[:, xp.asarray(j), ::2], a, exact=True)


@pytest.mark.parametrize("dtype", SOME + [np.dtype("complex128")], ids=str)
def test_single_elements(dtype):
    """One index along one axis is tested: of any layout, from and to lines of any step."""
    rng = seed(dtype, "single")
    a, v = random(rng, dtype, 3000), random(rng, dtype, 700)
    i = rng.integers(-1000, 1000, 80_000)
    once = rng.permutation(1000)[:700] - 500

    def assigned(view, value):
        def body(xp, a, v):
            view(a)[xp.asarray(once)] = value(v)
            return a
        return body

    for view in (lambda a: a[:1000], lambda a: a[::3], lambda a: a[999::-1], lambda a: a.reshape(1000, 3)[:, 1]):
        for index in (i, i[::2], i[::-1], once):
            check(lambda xp, a: view(a)[xp.asarray(index)], a, exact=True)
        for value in (lambda v: v, lambda v: v[::-1], lambda v: v[7]):
            check(assigned(view, value), a, v, exact=True)
    check(lambda xp, a, v: (xp.add.at(a[::3], xp.asarray(once), v), a)[1], a, v, exact=True)
    bad = i.copy()
    bad[70_000] = 1000
    for wrong in (bad, bad[::2], -2 - bad):
        with pytest.raises(IndexError, match="out of bounds for axis 0 with size 1000"):
            ad.asarray(a)[:1000][ad.asarray(wrong)].get()


def test_more_indices_than_kernels_take():
    rng = seed("many")
    a = rng.standard_normal((3, 4, 2, 5, 3, 4, 2))
    for k in (4, 5, 6, 7):
        index = tuple(rng.integers(-n, n, (40, 3)) for n in a.shape[:k])
        check(lambda xp, a: a[tuple(xp.asarray(i) for i in index)], a, exact=True)
        unique = np.unravel_index(rng.permutation(int(np.prod(a.shape[:k])))[:30], a.shape[:k])

        def put(xp, a):
            a[tuple(xp.asarray(i) for i in unique)] = 7
            xp.add.at(a, tuple(xp.asarray(i) for i in index), 1)
            return a
        check(put, a, exact=True)
        with pytest.raises(IndexError):
            bad = [ad.asarray(i) for i in index]
            bad[-1] = bad[-1] + 9
            ad.asarray(a)[tuple(bad)].get()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_scatter(dtype):
    rng = seed(dtype, "scatter")
    a, i = random(rng, dtype, (20_000, 3)), rng.permutation(20_000)[:9_000]
    v = random(rng, dtype, (9_000, 3))

    def put(xp, a, v):
        a[xp.asarray(i)] = v
        a[xp.asarray(i[:50]), 1] = v[:50, 0]
        return a
    check(put, a, v, exact=True)


@pytest.mark.parametrize("name", ["add", "maximum", "minimum"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_many_at_one_place(dtype, name):
    """Sums of small integers: exact in every type, whatever the order."""
    rng = seed(dtype, name)
    small = rng.integers(0, 2, 3_000).astype(dtype)
    a, i = np.zeros(97, dtype), rng.integers(-97, 97, 3_000)

    def run(xp, a, small):
        getattr(xp, name).at(a, xp.asarray(i), small)
        return a
    check(run, a, small, exact=True)


def test_the_last_of_a_few_equal_indices_stays():
    a, i = np.zeros(9), np.array([3, 3, -6, 8, 8, 0])

    def put(xp, a):
        a[xp.asarray(i)] = xp.arange(6.0)
        return a
    check(put, a)


@pytest.mark.parametrize("n", [3, 20_000])
def test_nothing_is_written_when_one_index_is_bad(n):
    a, i = ad.arange(1000), np.arange(n) % 1000
    i[n // 2] = 1000
    a[ad.asarray(i)] = -1
    with pytest.raises(IndexError, match="index 1000 is out of bounds for axis 0 with size 1000"):
        ad.sync()
    assert (a.get() == np.arange(1000)).all()


def test_indices_are_checked_where_nothing_is_selected():
    for run in (lambda xp, a: a[xp.asarray([5])], lambda xp, a: a[xp.asarray([2, -3])],
                lambda xp, a: a[xp.asarray([], int)]):
        check(run, np.zeros((3, 0)))
    a = ad.zeros((3, 0))
    a[ad.asarray([5])] = 1
    with pytest.raises(IndexError, match="index 5 is out of bounds for axis 0 with size 3"):
        ad.sync()


@pytest.mark.parametrize("density", [0, 0.01, 0.5, 1])
@pytest.mark.parametrize("dtype", SOME, ids=str)
def test_masks(dtype, density):
    rng = seed(dtype, density)
    a = random(rng, dtype, (150, 40, 11))
    whole, lines, rows = (rng.random(a.shape[:k]) < density for k in (3, 2, 1))
    for view in (lambda a: a, lambda a: a[::-1, :, :], lambda a: a.transpose(0, 2, 1).transpose(0, 2, 1)):
        for mask in (whole, lines, rows):
            check(lambda xp, a, mask: view(a)[mask], a, mask, exact=True)

            def put(xp, a, mask):
                view(a)[mask] = view(a)[mask][::-1]
                return a
            check(put, a, mask, exact=True)
    check(lambda xp, mask: xp.nonzero(mask), whole)
    check(lambda xp, mask: xp.nonzero(mask.T[:, 1:]), whole)
    check(lambda xp, a: xp.flatnonzero(a), np.where(whole, a, np.zeros((), dtype)))
    flat = whole.reshape(-1)
    for start in (0, 1, 15, 17):
        check(lambda xp, a, m: a[start:][m[start:]], a.reshape(-1), flat, exact=True)


@pytest.mark.parametrize("bins", [1, 7, 4096, 5000])
def test_bincount(bins):
    rng = seed(bins)
    x, w = rng.integers(0, bins, 100_000), rng.integers(0, 16, 100_000).astype(float)
    check(lambda xp, x: xp.bincount(x), x)
    check(lambda xp, x, w: xp.bincount(x, w), x, w)
    check(lambda xp, x, w: xp.bincount(x[::3], w[::-3], minlength=bins + 5), x, w)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.float16, np.complex64], ids=str)
def test_searchsorted(dtype):
    a, v = np.sort(special(dtype, (10_007,), "a")), special(dtype, (100, 70), "v")
    for side in ("left", "right"):
        check(lambda xp, a, v: xp.searchsorted(a, v.T, side), a, v)
        check(lambda xp, a, v: xp.searchsorted(a[::5], v[:, ::-3], side), a, v)
