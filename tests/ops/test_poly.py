"""Polynomials, against NumPy's."""
import copy
import pickle
import warnings

import numpy as np
import pytest

import arrayd as ad
from oracle import check, compare, random, seed

P = [[1.0, -3, 2], [0, 0, 2, 5.5], [4], [0, 0], [1, 0, -7, 0], [1 + 2j, 0, -1j], [0], [3, 2, 1, 0, -1, -2, 5, 7]]


def poly1d_as_array(value):
    """Return what check compares: polynomials by their coefficients."""
    if isinstance(value, tuple):
        return tuple(map(poly1d_as_array, value))
    return value.coeffs if isinstance(value, (ad.poly1d, np.poly1d)) else value


@pytest.mark.parametrize("name", ["polyadd", "polysub", "polymul", "polydiv"])
def test_arithmetic(name):
    for p in P:
        for q in P:
            if name == "polydiv" and q[0] == 0:
                continue
            # The polynomials come from this process, from the server, and as polynomials.
            check(lambda xp, p, q: getattr(xp, name)(p, q), np.array(p), np.array(q), ulps=64)
            expected, given = getattr(np, name)(p, q), getattr(ad, name)(p, q)
            compare(expected, [x.get() for x in given] if name == "polydiv" else given.get(), 64)
            check(lambda xp, p, q: poly1d_as_array(getattr(xp, name)(xp.poly1d(p), q)), np.array(p), np.array(q),
                  ulps=64)
    check(lambda xp: getattr(xp, name)([1, 2, 3], 2))
    with pytest.raises(ValueError):
        getattr(ad, name)(ad.ones((2, 2)), [1])


def test_remainder_without_small_coefficients():
    for u, v in (([1, 3, 3, 1], [1, 1]), ([1e-9, 1e-9, 5], [1, 0, 0, 1]), ([1e-9], [1, 1]), ([np.nan, 1], [1, 1])):
        check(lambda xp, u, v: xp.polydiv(u, v), np.array(u), np.array(v))


def test_calculus():
    for p in P:
        for m in (0, 1, 2, 3):
            check(lambda xp, p: xp.polyder(p, m), np.array(p))
            check(lambda xp, p: xp.polyint(p, m), np.array(p))
            check(lambda xp, p: poly1d_as_array((xp.poly1d(p).deriv(m), xp.poly1d(p).integ(m, 2))), np.array(p))
    a = np.array([1, 2, 3], np.float32)
    for k in ([1.5, -2], 3, [3, 4, 5], [1]):
        check(lambda xp, a, k: xp.polyint(a, 2, k), a, np.array(k))
        check(lambda xp, a: xp.polyint(a, 2, k), a)
    check(lambda xp, a: xp.polyint(a, 3, [1, 2]), a)
    check(lambda xp, a: xp.polyint(a, -1), a)
    check(lambda xp, a: xp.polyder(a, -1), a)


def test_values():
    x = random(seed("polyval"), float, (3, 4), "SMALL")
    for p in P:
        for dtype in ("int64", "float32", "complex64"):
            check(lambda xp, p, x: xp.polyval(p, x.astype(dtype)), np.array(p), x, ulps=512)
        check(lambda xp, p, x: xp.poly1d(p)(x), np.array(p), x, ulps=512)
        check(lambda xp, p: xp.polyval(p, 3), np.array(p))
        if p[0]:
            check(lambda xp, p: poly1d_as_array(xp.polyval(p, xp.poly1d([2, 0, -1]))), np.array(p))
            check(lambda xp, p: poly1d_as_array(xp.poly1d([2, 1, 0])(xp.poly1d(p))), np.array(p))


def test_roots():
    for p in P + [[], [0, 0, 1, -6, 11, -6], [2, 0, 0], [1, 0, 1], [[1, 2]], 5]:
        check(lambda xp, p: xp.roots(p), np.array(p), ulps=1 << 20)
    check(lambda xp: xp.roots(xp.poly1d([1, -3, 2])))
    check(lambda xp, p: xp.poly1d(p).r, np.array([0, 1.0, 0, -4]), ulps=64)


def test_from_roots():
    for zeros in ([1, 2, 3], [0.5], [], [1 + 1j, 1 - 1j], [1j, 2], np.array([1.5, 2], "f"), [True, False],
                  [[2.0, 1], [1, 2]], [[1, 2, 3]], np.arange(6).astype("f2")):
        check(lambda xp, z: xp.poly(z), np.array(zeros), ulps=64)
        check(lambda xp: xp.poly(zeros), ulps=64)
    check(lambda xp, z: xp.poly1d(z, True).coeffs, np.array([1.0, -2]))


def test_fit():
    rng = seed("polyfit")
    x = np.linspace(-1, 2, 30)
    y, w = np.polyval([2, -1, 0.5, 3], x) + rng.normal(0, 0.1, 30), rng.uniform(0.5, 2, 30)
    two, close = np.stack([y, -2 * y], 1), 1 << 12
    for deg in (0, 1, 3):
        check(lambda xp, x, y: xp.polyfit(x, y, deg), x, y, ulps=close)
        check(lambda xp, x, y, w: xp.polyfit(x, y, deg, w=w), x, two, w, ulps=close)
        check(lambda xp, x, y: xp.polyfit(x, y, deg, full=True), x, two, ulps=close, dtype=False)
        check(lambda xp, x, y: xp.polyfit(x, y, deg, cov=True), x, y, ulps=close)
        check(lambda xp, x, y, w: xp.polyfit(x, y, deg, w=w, cov="unscaled"), x, two, w, ulps=close)
        check(lambda xp, x, y: xp.polyfit(x, y, deg, cov=True), x, two, ulps=close)
    check(lambda xp, x, y: xp.polyfit(x.astype("f"), y.astype("f"), 2), x, y, ulps=close)
    check(lambda xp, x: xp.polyfit(xp.arange(5), [1, 2, 3, 4, 6], 1), x, ulps=close)
    check(lambda xp, x, y: xp.polyfit(x, y + 1j * x, 2), x, y, ulps=close)
    check(lambda xp, x, y: xp.polyfit(x, y, 3, rcond=0.5, full=True)[2:], x, y, dtype=False, ulps=close)
    for wrong in ((x, y, -1), (x[:, None], y, 1), (x[:0], y[:0], 1), (x, y[:5], 1), (x, np.ones((30, 1, 1)), 1)):
        check(lambda xp, a, b: xp.polyfit(a, b, wrong[2]), *wrong[:2])
    for bad in (w[:3], np.ones((30, 1))):
        check(lambda xp, x, y, w: xp.polyfit(x, y, 1, w=w), x, y, bad)
    check(lambda xp, x, y: xp.polyfit(x, y, 2, cov=True), x[:3], y[:3])


def test_fit_warns():
    with pytest.warns(ad.RankWarning, match="poorly conditioned") as caught:
        ad.polyfit(ad.ones(4), ad.arange(4), 2)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ad.polyfit(ad.ones(4), ad.arange(4), 2, full=True)


OPERATIONS = {
    "+": lambda p, q, x: (p + q, p + 3, 3 + p, p + x), "-": lambda p, q, x: (p - q, p - 3, 3 - p, p - x),
    "*": lambda p, q, x: (p * q, p * 3, 3.5 * p, p * x), "/": lambda p, q, x: (p / 4, *(p / q), 3 / q),
    "**": lambda p, q, x: (p**0, p**1, p**3), "-p": lambda p, q, x: (-p, +p),
    "compose": lambda p, q, x: (p(q), q(p)), "chain": lambda p, q, x: ((p * q - q * p), (p - q) ** 2, (p - p) * q),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operators(name):
    for p in P:
        for q in ([1.0, 2], [0, 2, 1]):
            def body(xp, p, q, x):
                return tuple(map(poly1d_as_array, OPERATIONS[name](xp.poly1d(p), xp.poly1d(q), x)))
            check(body, np.array(p), np.array(q), np.array([1, 5]), ulps=64)
            expected = OPERATIONS[name](np.poly1d(p), np.poly1d(q), [1, 5])
            given = OPERATIONS[name](ad.poly1d(p), ad.poly1d(q), [1, 5])
            for one, other in zip(expected, given):
                compare(poly1d_as_array(one), poly1d_as_array(other).get(), 64)


def test_poly1d_attributes():
    for p in P + [[], np.array([1, 2], "f"), 5]:
        ours = [ad.poly1d(p), ad.poly1d(ad.asarray(p)), ad.poly1d(np.poly1d(p)), ad.poly1d(ad.poly1d(p))]
        n = np.poly1d(p)
        for a in ours:
            compare(n.c, a.c.get())
            assert (a.order, a.o, len(a)) == (n.order, n.o, len(n)) and repr(a) == repr(n) and str(a) == str(n)
            assert a.coeffs is a.coef is a.coefficients is a.c
            assert [float(abs(a[i])) for i in range(-1, 10)] == [float(abs(n[i])) for i in range(-1, 10)]
            assert [x.item() for x in a] == list(n)
            assert isinstance(a.get(), np.poly1d) and a.get() == n
    p = ad.poly1d([1, 2], variable="t")
    assert p.variable == "t" and "t" in str(p)
    assert ad.poly1d(p).variable == "t" and ad.poly1d(p, variable="u").variable == "u"
    assert ad.poly1d(np.poly1d([1, 2], variable="s")).variable == "s" and p.get().variable == "t"
    with pytest.raises(AttributeError):
        p.coeffs = ad.ones(2)
    with pytest.raises(ValueError):
        ad.poly1d(ad.ones((2, 2)))
    with pytest.raises(TypeError, match="get"):
        np.asarray(p)
    with pytest.raises(TypeError):
        hash(p)
    for power in (-1, 1.5, [1]):
        with pytest.raises(ValueError):
            p**power


def test_numpy_numbers_leave_arithmetic_to_polynomials():
    p = ad.poly1d([1, 2])
    assert np.float32(2) * p == ad.poly1d([2, 4]) and np.int64(1) + p == ad.poly1d([1, 3])
    assert np.float64(1) - p == -p + 1


def test_poly1d_as_an_array():
    p = ad.poly1d(ad.asarray([0, 1, 2]))
    assert ad.asarray(p).tolist() == [1, 2] and ad.concatenate([p, p]).tolist() == [1, 2, 1, 2]


def test_poly1d_equality():
    p = ad.poly1d(ad.asarray([0, 1, 2]))
    assert p == ad.poly1d([1, 2]) and not p != ad.poly1d([1.0, 2.0])
    assert p != ad.poly1d([1, 3]) and p != ad.poly1d([1, 2, 0]) and p != [1, 2] and p != 5


def test_poly1d_items():
    for changes in ([(0, 7)], [(5, 2)], [(1, 0)], [(4, 0), (0, 1)]):
        a, n = ad.poly1d(ad.asarray([0, 1.0, 2, 3])), np.poly1d([0, 1.0, 2, 3])
        for key, value in changes:
            a[key] = value
            n[key] = value
        compare(n.c, a.c.get())
    with pytest.raises(ValueError):
        a[-1] = 1


def test_poly1d_travels():
    p = ad.poly1d([1.0, 2, 3], variable="z") * 2
    for q in (pickle.loads(pickle.dumps(p)), copy.copy(p), copy.deepcopy(p)):
        assert q == p and q.variable == p.variable
    q = ad.poly1d([1])
    q.set(np.poly1d([4, 5], variable="w"))
    assert q == ad.poly1d([4, 5]) and q.variable == "w"
    with pytest.raises(TypeError):
        q.set([1, 2])


def test_waits():
    """Arithmetic waits for nothing, what depends on data for one round trip."""
    a, b = ad.asarray([0, 1.0, 2]), ad.asarray([3.0, 4])
    p, q, x = ad.poly1d(a), ad.poly1d(b), ad.arange(5.0)

    def trips(run):
        before = ad.session_info()["round_trips"]
        run()
        return ad.session_info()["round_trips"] - before

    trips(lambda: ad.stat())
    free = (lambda: p * q + q - 3, lambda: (-p)(x), lambda: p**3, lambda: p / 2, lambda: p[1],
            lambda: p.deriv().integ(),
            lambda: ad.poly1d([0, 1, 2]).order, lambda: ad.polyadd(a, b), lambda: ad.polyint(a), lambda: ad.poly(b),
            lambda: ad.polyval(a, x), lambda: ad.polymul([0, 1], [1, 2]))
    one = (lambda: ad.polymul(a, b), lambda: ad.polydiv(a, b), lambda: ad.roots(a), lambda: ad.polyfit(x, x, 2),
           lambda: ad.polyfit(x, x, 2, cov=True), lambda: (p * q).order, lambda: p == q, lambda: (p * q).get(),
           lambda: repr(q))
    assert [trips(run) for run in free] == [0] * len(free)
    assert [trips(run) for run in one] == [1] * len(one)
