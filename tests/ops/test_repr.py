"""Text for arrays: NumPy's, to the letter, and without fetching what is not shown."""
import warnings

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


OPTIONS = [
    {"threshold": 10}, {"threshold": 10, "edgeitems": 1}, {"threshold": 0, "edgeitems": 2, "linewidth": 30},
    {"edgeitems": 1000, "threshold": 5}, {"precision": 2, "floatmode": "fixed"}, {"floatmode": "unique"},
    {"sign": "+", "threshold": 10}, {"sign": " "}, {"suppress": True}, {"nanstr": "?", "infstr": "big"},
    {"formatter": {"float_kind": lambda x: f"<{x:.1f}>", "int": hex}, "threshold": 50},
    *({"legacy": version, "threshold": 20} for version in ("1.13", "1.21", "1.25", "2.1", False)),
]
TEXTS = [repr, str, lambda a: f"{a}", lambda a: repr(a[0, 0, ...]), lambda a: repr(a[:, :0]), lambda a: repr(a[:7, 0])]


@pytest.mark.parametrize("number", range(len(OPTIONS)))
def test_all_options(number):
    x = np.arange(3000.0).reshape(60, 50) / 3 - 20
    x[0, :3] = np.nan, np.inf, 1e-12
    arguments = {{"suppress": "suppress_small", "linewidth": "max_line_width"}.get(name, name): value
                 for name, value in OPTIONS[number].items() if name not in ("nanstr", "infstr")}
    for kind in ("float64", "float32", "int32", "complex64"):
        with np.errstate(invalid="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            a = x.astype(kind)
        with ad.printoptions(**OPTIONS[number]):
            for text in TEXTS:
                check(lambda xp, a: text(a), a)
        check(lambda xp, a: xp.array2string(a, **arguments), a)
        check(lambda xp, a: xp.array2string(a, separator=",", prefix="12345", suffix="]]", **arguments), a)


def test_a_repr_of_ones_own():
    with ad.printoptions(override_repr=lambda a: f"mine {a.shape}"):
        assert repr(ad.zeros(3)) == "mine (3,)" == ad.array_repr(ad.zeros(3))


def test_options_stay_set():
    ad.set_printoptions(precision=3)
    try:
        assert np.get_printoptions()["precision"] == 3
        check(lambda xp, a: repr(a), np.arange(3) / 7)
    finally:
        ad.set_printoptions(precision=8)


def test_bfloat16():
    for shape in ((), (3,), (2, 3), (0,), (2000,)):
        a = ad.ones(shape, "bfloat16")
        assert repr(a) == repr(a.get()) and str(a) == str(a.get())
    assert f"{ad.ones((), 'bfloat16')}" == f"{ad.ones((), 'bfloat16').get()[()]}"


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_specifications(dtype):
    a = random(seed("format", dtype), dtype, (), "POS")
    for spec in ("", "d", ".3f", ">12", "08.2f", "e", "x", "s", "text"):
        check(lambda xp, a: format(a, spec), np.asarray(a))


@pytest.mark.parametrize("text", [repr, str, lambda a: ad.array2string(a, separator=", "), np.array_repr, np.array_str,
                                  np.array2string])
def test_a_large_array_is_not_fetched(text):
    a = ad.zeros((4000, 5000))
    ad.sync()
    before = ad.stat()["bytes_out"], ad.session_info()["round_trips"]
    assert text(a).count("0.") == 36
    assert ad.session_info()["round_trips"] - before[1] == 1
    assert ad.stat()["bytes_out"] - before[0] < 4096
    assert "shape=(4000, 5000)" in repr(a)
