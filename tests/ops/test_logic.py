"""Comparing and asking, against NumPy."""
import itertools

import numpy as np
import pytest

import arrayd as ad
from oracle import DTYPES, SOME, check, random, seed

X = np.array([1.0, 1 + 1e-9, np.nan, np.inf, -np.inf, 0.0, 1e-9, 5])
Y = np.array([1.0, 1.0, np.nan, np.inf, np.inf, -0.0, 0.0, np.nan])


def test_closeness():
    for options in ({}, {"equal_nan": True}, {"rtol": 0}, {"atol": 0}, {"rtol": 0.5, "atol": 1}):
        check(lambda xp, x, y: xp.isclose(x, y, **options), X, Y)
        check(lambda xp, x, y: xp.allclose(x, y, **options), X, Y)
        check(lambda xp, x, y: xp.allclose(x[:2], y[:2], **options), X, Y)
        check(lambda xp, x, y: xp.isclose(x[:, None], y[:3], **options), X, Y)
        check(lambda xp, x, y: xp.isclose(x, 1, **options), X, Y)
    for dtype in SOME:
        a = random(seed(dtype), dtype, (6,), "SMALL")
        check(lambda xp, a: xp.isclose(a, a + a.dtype.type(0)), a)
        check(lambda xp, a: xp.isclose(a, 1), a)
    check(lambda xp, x, y: xp.isclose(x + 1j, y + 1j), X, Y)
    check(lambda xp, x, y: xp.allclose(x[:3], y[:2]), X, Y)


def test_equality_of_arrays():
    for options in ({}, {"equal_nan": True}):
        for body in (
            lambda xp, x, y: xp.array_equal(x, y, **options),
            lambda xp, x, y: xp.array_equal(x, x, **options),
            lambda xp, x, y: xp.array_equal(x, x[:3], **options),
            lambda xp, x, y: xp.array_equal([1, 2], [1, 2]),
        ):
            check(body, X, Y)
    check(lambda xp, x, y: xp.array_equiv(xp.ones((2, 3)), xp.ones(3)), X, Y)
    check(lambda xp, x, y: xp.array_equiv(x, y[:3]), X, Y)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_kinds(dtype):
    a = random(seed(dtype, "kinds"), dtype, (3, 4), "BOOL")
    for name in ("isreal", "iscomplex", "isrealobj", "iscomplexobj", "isfortran", "isscalar", "ndim", "shape", "size"):
        check(lambda xp, a: getattr(xp, name)(a), a)
        check(lambda xp, a: getattr(xp, name)(a.T), a)
    check(lambda xp, a: (xp.size(a, 0), xp.size(a, (0, 1)), xp.ndim(3), xp.shape([1, 2]), xp.isscalar(3)), a)
    for other in SOME:
        check(lambda xp, a: str(xp.result_type(a, other)), a)
        check(lambda xp, a: xp.can_cast(a.dtype, other), a)
    for number in (1, 2.5, 1j, True, np.int8(1)):
        check(lambda xp, a: str(xp.result_type(a, number)), a)
    check(lambda xp, a: xp.common_type(a, a).__name__, a)


def test_overlap():
    a = ad.zeros((4, 6))
    for one, other, shared in (
        (a, a, True),
        (a[0], a[1], False),
        (a[:, 0], a[0], True),
        (a, a.copy(), False),
        (a, 3, False),
    ):
        assert ad.may_share_memory(one, other) == shared


def test_module_of_arguments():
    assert ad.get_array_module(1, np.zeros(3)) is np and ad.get_array_module(np.zeros(3), ad.zeros(3)) is ad


def test_truth_and_numbers():
    for value in (np.array(3), np.array(2.5), np.array(0), np.array([7]), np.array(True)):
        check(lambda xp, a: bool(a), value)
        for kind in (int, float, complex):
            check(lambda xp, a: kind(a.reshape(())), value)
    check(lambda xp, a: bool(a), np.arange(3))
    check(lambda xp, a: float(a), np.arange(3))
    check(lambda xp, a: [10, 20, 30][a], np.array(1))
    check(lambda xp, a: [10, 20, 30][a], np.array(1.0))
    check(lambda xp, a: len(a), np.array(1))
    check(lambda xp, a: (len(a), 3 in a, 99 in a, [x.item() for x in a]), np.arange(5))
    check(lambda xp, a: list(range(5))[a[2]], np.arange(5))
    check(lambda xp, a: hash(a), np.arange(5))


def test_memory_is_compared_element_by_element():
    x, a = np.arange(100).reshape(10, 10), ad.arange(100).reshape(10, 10)
    keys = [np.s_[0::2], np.s_[1::3], np.s_[1::4], np.s_[:, 1::2], np.s_[:, ::2], np.s_[::-1], np.s_[5:5], np.s_[0]]
    for one in keys:
        for other in keys:
            assert ad.shares_memory(a[one], a[other]) == np.shares_memory(x[one], x[other]), (one, other)
            assert ad.may_share_memory(a[one], a[other]) == np.may_share_memory(x[one], x[other]), (one, other)
    assert not ad.shares_memory(a, a.copy())


def test_how_long_to_compare_memory_has_names():
    x, a = np.arange(100).reshape(10, 10), ad.arange(100).reshape(10, 10)
    for one, other in ((np.s_[::2], np.s_[1::2]), (np.s_[:, ::2], np.s_[:, 1::2]), (np.s_[:2], np.s_[1:]), (np.s_[:2], np.s_[3:])):
        assert ad.shares_memory(a[one], a[other], "MAY_SHARE_BOUNDS") == np.may_share_memory(x[one], x[other]), (one, other)
        assert ad.shares_memory(a[one], a[other], "MAY_SHARE_EXACT") == np.shares_memory(x[one], x[other]), (one, other)
    with pytest.raises(ValueError, match="max_work must be an integer, None, 'MAY_SHARE_BOUNDS' or 'MAY_SHARE_EXACT', not 'EXACT'"):
        ad.shares_memory(a, a, max_work="EXACT")


def test_strides_of_dimensions_of_one_share_no_memory():
    views = [lambda v: v[:10].reshape(1, 10), lambda v: v[10:], lambda v: v[:10][::-1].reshape(10, 1), lambda v: v,
             lambda v: v[19:].reshape(1, 1), lambda v: v[9:10].reshape(1), lambda v: v[::19].reshape(2, 1).T]
    x, a = np.arange(20), ad.arange(20)
    for name, one, other in itertools.product(("shares_memory", "may_share_memory"), views, views):
        assert getattr(ad, name)(one(a), other(a)) == getattr(np, name)(one(x), other(x)), (name, one(x), other(x))


def test_min_scalar_type_of_an_array_is_its_own():
    a = ad.asarray(np.array([1, -1], "i2"))
    assert ad.min_scalar_type(a) == ad.min_scalar_type([a, a]) == ad.min_scalar_type(a[0]) == np.int16
    for value in (3, -200, 1.5, [1, 2], np.arange(3)):
        assert ad.min_scalar_type(value) == np.min_scalar_type(value)
