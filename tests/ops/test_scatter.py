"""Adding to and comparing with elements that a key names, several times or once, against NumPy's ufunc.at."""
import numpy as np
import pytest

import arrayd as ad
from arrayd import cupyx
from oracle import SOME, check, random, seed

I, J = [0, 1, 1, 0], [[1, 2], [1, 1]]
KEYS = {
    "one": 1, "negative": -1, "slice": slice(0, 2), "step": slice(None, None, -2), "dots": ..., "new": None, "none": (),
    "list": I, "lists": (I, [2, 0, 2, 2]), "two dimensions": J, "empty": [], "array then slice": (I, slice(1, 3)),
    "slice then array": (slice(1, None), J), "between": (slice(None), J, slice(0, 2)),
    "apart": (I, slice(None), [3] * 4),
    "apart by dots": (I, ..., [0, 1, 0, 0]), "dots that are nothing": (slice(None), I, ..., [0, 1, 0, 0]),
    "int and array": (0, slice(None), I), "int beside array": (slice(None), 1, I),
    "array, new": (I, None, [1, 1, 2, 0]),
    "new, array": (None, I), "new at the end": (I, None), "dots, array": (..., [3, 3, 0]), "three": (I, I, I),
    "broadcast": ([[0], [1]], [1, 1, 2]), "ints": (1, 2, 3), "tuple in a tuple": ((0, 1, 0),),
    "mask": np.array([True, False, True]), "mask of two": np.arange(12).reshape(3, 4) % 5 == 0,
    "mask in the middle": (slice(0, 2), np.array([True, False, True, True])),
    "mask and array": (np.array([True, False, True]), [1, 1]), "mask of all": np.arange(60).reshape(3, 4, 5) % 7 == 0,
    "mask behind": (..., np.array([True, False, True, True, False])), "numpy ints": (np.int8(2), np.uint16(1)),
}
WRONG = {"bounds": 3, "bounds of a list": [3], "too many": (0, 0, 0, 0), "floats": [0.5],
         "mask's shape": np.array([True, False]), "two dots": (..., ...), "text": "a",
         "do not fit": ([0, 1], [0, 1, 2])}


def sent(xp, key):
    """A key whose arrays lie where the array does."""
    if isinstance(key, tuple):
        return tuple(sent(xp, part) for part in key)
    return xp.asarray(key) if isinstance(key, (np.ndarray, list)) and len(key) else key


def apply(xp, name, a, key, value):
    if xp is np:
        getattr(np, {"add": "add", "max": "maximum", "min": "minimum"}[name]).at(a, key, value)
    else:
        assert getattr(cupyx, "scatter_" + name)(a, key, value) is None
    return a


@pytest.mark.parametrize("name", KEYS)
def test_keys(name):
    key = KEYS[name]
    a = random(seed(name), np.int64, (3, 4, 5), "SMALL")
    shape = a[key].shape
    values = [2, random(seed("v", name), np.int64, shape), np.array(3)]
    if shape:
        values.append(random(seed("w", name), np.int64, shape[1:]))
        values.append(np.arange(shape[0]).reshape(-1, *[1] * (len(shape) - 1)))
    for value in values:
        for how in ("add", "max", "min"):
            check(lambda xp, a: apply(xp, how, a, key, xp.asarray(value)), a)
            check(lambda xp, a: apply(xp, how, a, sent(xp, key), value), a)
    turned = a.transpose(2, 0, 1)[::-1].copy()
    check(lambda xp, a: (apply(xp, "add", a[::-1].transpose(1, 2, 0), sent(xp, key), 1), a), turned)


@pytest.mark.parametrize("name", WRONG)
def test_wrong_keys(name):
    check(lambda xp, a: apply(xp, "add", a, WRONG[name], 1), np.zeros((3, 4, 5)))


@pytest.mark.parametrize("dtype", SOME)
def test_types(dtype):
    a, v = random(seed("a", dtype), dtype, (6,), "SMALL"), random(seed("v", dtype), dtype, (8,), "SMALL")
    for how in ("add",) if dtype.kind == "c" else ("add", "max", "min"):
        check(lambda xp, a, v: apply(xp, how, a, [0, 5, 5, 1, 1, 1, 0, -1], v), a, v, ulps=32)


def test_methods_and_what_they_refuse():
    a = ad.zeros(4)
    a.scatter_add([0, 0, 1], 2.5)
    a.scatter_max([1, 2], ad.asarray([9, -9]))
    a.scatter_min(slice(3, None), -1)
    assert a.tolist() == [5, 9, 0, -1]
    with pytest.raises(TypeError):
        cupyx.scatter_add(np.zeros(3), 0, 1)
    with pytest.raises(IndexError):
        cupyx.scatter_add(a, True, 1)


def test_waits_for_masks_of_the_server_only():
    a, i, mask = ad.zeros((5, 5)), ad.asarray([1, 1]), ad.arange(5) % 2 == 0
    before = ad.session_info()["round_trips"]
    cupyx.scatter_add(a, i, 1)
    cupyx.scatter_max(a, (slice(1, 3), [1, 1]), ad.ones(2))
    cupyx.scatter_min(a, ..., 1)
    cupyx.scatter_add(a, np.arange(5) % 2 == 0, 1)
    assert ad.session_info()["round_trips"] == before
    cupyx.scatter_add(a, mask, 1)
    assert ad.session_info()["round_trips"] == before + 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_extremes_of_nan_and_infinity(dtype):
    """Sorted places and places at random; a NaN stays, whichever side it is on."""
    rng = seed("extremes", str(np.dtype(dtype)))
    values = rng.choice(np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -1.5], dtype), 2000, p=[0.02] + [0.98 / 6] * 6)
    for places in (np.sort(rng.integers(0, 400, 2000)), rng.integers(0, 400, 2000)):
        for name in ("maximum", "minimum"):
            wanted = rng.choice(np.array([np.nan, 0.0, -1.0, 1.0], dtype), 400, p=[0.05, 0.35, 0.3, 0.3])
            got = ad.asarray(wanted)
            with np.errstate(invalid="ignore"):
                getattr(np, name).at(wanted, places, values)
            getattr(ad, name).at(got, ad.asarray(places), ad.asarray(values))
            np.testing.assert_array_equal(got.get(), wanted)
