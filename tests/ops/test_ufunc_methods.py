"""ufunc.at of every ufunc, and ufunc.reduceat, against NumPy."""
import numpy as np
import pytest

import arrayd as ad
from arrayd import _core
from oracle import check, seed

UFUNCS = sorted(name for name, ufunc in _core.ufuncs.items()
                if isinstance(getattr(np, name, None), np.ufunc) and ufunc.nout == 1 and ufunc.nin < 3)


@pytest.mark.parametrize("name", UFUNCS)
def test_at(name):
    """Places that are named several times are changed several times, in the order in which they are named."""
    ufunc, ulps = getattr(np, name), 1e10 if name == "tan" else 10_000  # of which each makes errors larger
    # A GPU's pow() is right to two units in the last place: what is stored in an integer may be one less.
    inexact = name == "float_power" and ad.session_info()["backend"] == "cuda"
    for kind in ("f8", "c16") if inexact else ("i4", "f8", "?", "u1", "c16"):
        rng = seed(name, kind)
        a, b = (rng.integers(0, 4, shape).astype(kind) for shape in ((4, 5), 30))
        i, j = rng.integers(-4, 4, 30), rng.integers(0, 5, 30)
        second = (b,) if ufunc.nin == 2 else ()
        for view in (lambda a: a, lambda a: a.T[:, ::-1].T):
            check(lambda xp, a, i, j, *b: (getattr(xp, name).at(view(a), (i, j), *b), a)[1], a, i, j, *second, ulps=ulps)
        check(lambda xp, a, i, *b: (getattr(xp, name).at(a, i, *(one[:5] for one in b)), a)[1], a, i[:6], *second, ulps=ulps)
        if second:
            check(lambda xp, a, i: (getattr(xp, name).at(a, i, xp.asarray(2).astype(kind)), a)[1], a, i, ulps=1e9)


def test_at_of_many():
    rng = seed("many")
    a, i, b = np.ones(50, np.uint32), rng.integers(0, 7, 20_000), rng.integers(0, 1 << 32, 20_000).astype(np.uint32)
    for name in ("multiply", "bitwise_and", "bitwise_or", "bitwise_xor", "fmax"):
        check(lambda xp, a, i, b: (getattr(xp, name).at(a, i, b), a)[1], a, i, b, exact=True)
    check(lambda xp, a, i: (xp.negative.at(a, i > 3), a)[1], a.astype(int), np.arange(50))
    check(lambda xp, a, i: (xp.power.at(a, i[:0], 2), a)[1], a, i)


def test_at_of_int_by_float():
    """The value that is stored after each change is an int."""
    check(lambda xp, a, i, b: (xp.multiply.at(a, i, b), a)[1], np.array([3, 5]), np.array([0, 0, 1]), np.array([1.5, 1.5, 2.7]))


def test_at_refuses():
    a = np.arange(4.0)
    check(lambda xp, a: xp.sin.at(a, [0], 1.0), a)
    check(lambda xp, a: xp.power.at(a, [0]), a)
    with pytest.raises(TypeError, match="at is for ufuncs of one or two inputs and one output"):
        ad.modf.at(ad.arange(4.0), [0])
    with pytest.raises(IndexError):
        x = ad.arange(4.0)
        ad.power.at(x, ad.asarray([9]), 2)
        x.get()


@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "minimum", "logical_and", "logical_or"])
@pytest.mark.parametrize("kind", ["?", "i4", "u1", "f4", "f8"])
def test_reduceat(name, kind):
    rng = seed(name, kind)
    a = rng.integers(0, 3, (3, 9, 2)).astype(kind)
    for indices in ([0, 4, 1, 5, 2, 6, 3, 7], [0], [8, 0], [2, 2, 2], [], rng.integers(0, 9, 40), [3, 9], [-1], [0.5], [[1]]):
        check(lambda xp, a: getattr(xp, name).reduceat(a, xp.asarray(indices), 1), a, ulps=64)
    check(lambda xp, a: getattr(xp, name).reduceat(a[..., ::-1].T, np.array([0, 2, 1])), a, ulps=64)
    if "logical" not in name:
        check(lambda xp, a: getattr(xp, name).reduceat(a, np.array([0, 1]), -1, "f8"), a, ulps=64)
    check(lambda xp, a: getattr(xp, name).reduceat(a, np.array([0, 1]), 3), a)


def test_reduceat_more():
    a = np.arange(1000.0)
    starts = np.sort(seed("starts").integers(0, 1000, 300))
    check(lambda xp, a: xp.add.reduceat(a, starts), a, ulps=64)
    check(lambda xp, a: xp.add.reduceat(a, [0, 10], out=xp.zeros(2, "f4")), a)
    check(lambda xp, a: xp.add.reduceat(a, [0, 10], dtype="i4"), a)
    check(lambda xp, a: np.add.reduceat(a, np.array([0, 10])), a)
    check(lambda xp, a: xp.sin.reduceat(a, [0, 1]), a)
    with pytest.raises(TypeError, match="arrayd has no power.reduceat"):
        ad.power.reduceat(ad.asarray(a), [0, 1])
