"""Text for arrays: NumPy's, to the letter, and without fetching what is not shown."""
import numpy as np
import pytest

import arrayd as ad
from oracle import DTYPES, check, random, seed

ARRAYS = [
    np.arange(3),
    np.zeros((2, 3)),
    np.zeros(0),
    np.zeros((0, 3)),
    np.zeros((3, 0), np.int8),
    np.array(5),
    np.array(2.5),
    np.array(1j),
    np.array(True),
    np.arange(2000),
    np.arange(5000.0).reshape(50, 100),
    np.arange(3000).reshape(3, 1000),
    np.arange(3000).reshape(1000, 3),
    np.zeros((6, 6, 6, 6)),
    np.zeros((7, 7, 7, 7), np.float32),
    np.arange(1001),
    np.arange(1000),
    np.array([np.nan, np.inf, -0.0]),
    np.array([1e-20, 1e20]),
    np.array([[1.5, 1e10]]),
    np.array([1 + 2j, np.nan]),
    np.zeros((1, 1, 1001)),
    np.arange(10**6) / 7,
    np.zeros((2, 0, 3)),
]


@pytest.mark.parametrize("a", ARRAYS, ids=lambda a: f"{a.dtype}-{a.shape}")
def test_text(a):
    check(lambda xp, a: repr(a), a)
    check(lambda xp, a: str(a), a)
    check(lambda xp, a: f"{a}", a)
    check(lambda xp, a: repr(a.T), a)
    check(lambda xp, a: xp.array_repr(a, 40, 2), a)
    check(lambda xp, a: xp.array_str(a, 40, 2), a)
    check(lambda xp, a: xp.array2string(a, separator="; "), a)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_types(dtype):
    for shape in ((4,), (3, 400), ()):
        a = random(seed(dtype), dtype, shape)
        check(lambda xp, a: repr(a), a)
        check(lambda xp, a: str(a), a)


def test_format():
    for value, spec in (
        (np.array(2.5), ".3f"),
        (np.array(7), "05d"),
        (np.array(7), ""),
        (np.array(1 + 2j), ".1f"),
        (np.arange(3), ""),
    ):
        check(lambda xp, a: format(a, spec), value)
    check(lambda xp, a: format(a, ".2f"), np.arange(3))


def test_options():
    a = np.arange(3000).reshape(60, 50) / 3
    for options in (
        {"threshold": 10},
        {"edgeitems": 1},
        {"linewidth": 40},
        {"precision": 2},
        {"suppress": True},
        {"threshold": 10**6},
    ):
        with ad.printoptions(**options):
            check(lambda xp, a: repr(a), a)
            check(lambda xp, a: str(a), a)
    assert ad.get_printoptions() == np.get_printoptions()


def test_a_large_array_is_not_fetched():
    a = ad.zeros((4000, 5000))
    ad.sync()
    before = ad.stat()["bytes_out"], ad.session_info()["round_trips"]
    text = repr(a)
    assert ad.session_info()["round_trips"] - before[1] == 1
    assert ad.stat()["bytes_out"] - before[0] < 4096
    assert "shape=(4000, 5000)" in text
