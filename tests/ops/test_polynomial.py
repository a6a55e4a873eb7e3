"""arrayd.polynomial against numpy.polynomial."""
import numpy as np
import pytest
from numpy.polynomial import polynomial as power_series

import arrayd as ad
from oracle import SOME, check, random, seed

KINDS = [kind for kind in SOME if kind.kind != "b"] + [np.dtype("complex128")]


@pytest.mark.parametrize("dtype", SOME, ids=str)
def test_polyvander(dtype):
    for shape in ((5,), (), (2, 3), (0,)):
        x = random(seed("vander", dtype, shape), dtype, shape, "SMALL")
        for deg in (0, 1, 4, -1, 2.0, np.int8(2)):
            check(lambda xp, x: xp.polynomial.polynomial.polyvander(x, deg), x, ulps=64)
    check(lambda xp: xp.polynomial.polynomial.polyvander(2.5, 3))
    check(lambda xp: xp.polynomial.polynomial.polyvander([1.0, np.inf, np.nan], 2))


@pytest.mark.parametrize("dtype", SOME, ids=str)
def test_polycompanion(dtype):
    for c in ([1, 2, 3], [1, 2, 0, 0], [3, 0], [1], [], [0, 0], [4, 5, 0, 6, 1, 0]):
        check(lambda xp, c: xp.polynomial.polynomial.polycompanion(c), np.array(c, dtype), ulps=64)
    check(lambda xp, c: xp.polynomial.polynomial.polycompanion(c), np.ones((2, 3), dtype))
    roots = np.linalg.eigvals(ad.polynomial.polynomial.polycompanion([6, -5, 1]).get())
    np.testing.assert_allclose(sorted(roots), sorted(power_series.polyroots([6, -5, 1])))


@pytest.mark.parametrize("name", ["polyval", "polyvalfromroots"])
@pytest.mark.parametrize("tensor", [True, False])
def test_values(name, tensor):
    def values(xp, x, c):
        return getattr(xp.polynomial.polynomial, name)(x, c, tensor)

    for kind in ("i4", "f4", "f8", "c16"):
        for c in (np.array([1, 2, 3], kind), np.arange(6).reshape(3, 2).astype(kind), np.array(2, kind), np.zeros(0, kind)):
            for x in (np.array(2, kind), np.array([1, 2], kind), np.array([[1, 2], [0, -1]], kind), np.array([1, 2, 3], kind)):
                check(values, x, c, ulps=64)
    check(lambda xp: values(xp, 3, [1, 2]))
    check(lambda xp: values(xp, (1, 2.5), [1, 2, -1]))


@pytest.mark.parametrize("dtype", SOME, ids=str)
@pytest.mark.parametrize("trim", [True, False])
def test_as_series(dtype, trim):
    for a in ([[1, 2, 0], [0, 0, 0]], [3, 0, 5], [[1], [0]], np.zeros((2, 2, 2)), np.zeros((2, 0)), np.zeros((0, 2))):
        check(lambda xp, a: xp.polynomial.polyutils.as_series(a, trim), np.array(a).astype(dtype))
    check(lambda xp, a: xp.polynomial.polyutils.as_series([a, 2.5, [1, 0]], trim), np.array([1, 0, 2, 0]).astype(dtype))


def test_as_series_copies():
    a = ad.arange(3.0)
    series, = ad.polynomial.polyutils.as_series([a])
    assert not ad.shares_memory(series, a)


def test_trimseq():
    for kind in KINDS:
        for a in ([1, 0, 2, 0, 0], [0, 0], [], [3]):
            check(lambda xp, a: xp.polynomial.polyutils.trimseq(a), np.array(a, kind))
    check(lambda xp, a: xp.polynomial.polyutils.trimseq(a), np.array(1.0))
    check(lambda xp, a: xp.polynomial.polyutils.trimseq(a), np.ones((2, 3)))
    a = ad.asarray([1.0, 0, 0])
    assert ad.shares_memory(ad.polynomial.polyutils.trimseq(a), a)


@pytest.mark.parametrize("dtype", KINDS, ids=str)
def test_trimcoef(dtype):
    for c in ([1, 2, 0, 3, 0], [0, 0, 0], [2], [], [1, 0, 2]):
        for tol in (0, 1, 2.5, -1):
            check(lambda xp, c: xp.polynomial.polyutils.trimcoef(c, tol), np.array(c).astype(dtype))
    check(lambda xp, c: xp.polynomial.polyutils.trimcoef(c), np.ones((2, 2), dtype))
    check(lambda xp, c: xp.polynomial.polyutils.trimcoef(c), np.ones(2, bool))
    check(lambda xp, c: xp.polynomial.polyutils.trimcoef(c, 1e-3), np.array([1, 2, 0, 3, 0, 3e-4, 1e-3]))


# ---- poly1d where NumPy takes arrays ----

@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "power", "equal"])
def test_ufuncs_of_polynomials(name):
    for p, q in (([1, 2, 3], [3, 1, 2]), ([2.5, 1], [1, 2]), ([4], [1, 2, 3])):
        for left in (lambda xp, c: xp.poly1d(c), lambda xp, c: xp.asarray(c), lambda xp, c: 3):
            check(lambda xp: getattr(xp, name)(left(xp, p), xp.poly1d(q)), ulps=64)
            check(lambda xp: getattr(xp, name)(xp.poly1d(q), left(xp, p)), ulps=64)
    check(lambda xp: xp.add(xp.poly1d([1, 2]), xp.arange(2.0), out=xp.zeros(2)))
    check(lambda xp: xp.negative(xp.poly1d([1, 2])))


def test_ufuncs_of_other_objects():
    class Given:
        def __init__(self, value):
            self.value = value

        def _as_array(self):
            return self.value

    assert ad.add(Given(ad.arange(2)), 1).tolist() == [1, 2]
    assert ad.add(ad.arange(4).flat, ad.arange(4).flat).tolist() == [0, 2, 4, 6]
    for wrong in (Given(3), Given(np.arange(2)), object(), "text"):
        with pytest.raises(TypeError, match="add: unsupported operand of type"):
            ad.add(ad.arange(2), wrong)
    with pytest.raises(ValueError, match="no array"):
        ad.add(type("Bad", (), {"_as_array": lambda self: (_ for _ in ()).throw(ValueError("no array"))})(), 1)


def test_polynomials_of_nothing():
    for n in (0, 1, 4):
        check(lambda xp, c: (xp.poly1d(c) ** n).coeffs, np.zeros(0))
    assert ad.poly1d(ad.zeros(0)).coeffs.tolist() == [0]


def test_coefficients_are_set_without_waiting():
    for c in ([1, 2, 3], [0, 0, 2, 3, 0]):
        expected, p = np.poly1d(c), ad.poly1d(ad.asarray(c))
        with ad.cupyx.allow_synchronize(False):
            p[1], p[7] = 5, 6
        expected[1], expected[7] = 5, 6
        assert p.get() == expected


def test_values_of_polynomials():
    for c in ([True, False, True], [1, 2]):
        check(lambda xp, c: xp.polyval(c, xp.poly1d([1, 2])).coeffs, np.array(c))
        check(lambda xp, c: xp.polyval(c, xp.poly1d(c)).coeffs, np.array(c))
    for x in (2, [1, 2], np.float32(2)):
        check(lambda xp, p: xp.polyval(p, x), np.array(3))
        check(lambda xp: xp.polyval(3, x))
    x, w = np.arange(5.0), np.arange(1, 6) * (1 + 1j)
    check(lambda xp, x, w: xp.polyfit(x, x**2, 1, w=w), x, w)
