"""ndarray.flat: reading, writing and going through an array as if it had one dimension."""
import numpy as np
import pytest

import arrayd as ad
from oracle import DTYPES, check, random, seed

BASES = {
    "plain": lambda a: a,
    "turned": lambda a: a.T,
    "reversed": lambda a: a[::-1, ::-1],
    "strided": lambda a: a[:, ::2],
    "one axis": lambda a: a[1],
    "strided line": lambda a: a[:, 1],
    "0-d": lambda a: a[0, 0, ...],
    "empty": lambda a: a[:0],
    "empty and turned": lambda a: a[:, :0].T,
    "deep": lambda a: a.reshape(2, 2, 1, 5).transpose(3, 1, 0, 2),
}
KEYS = [
    0, 3, -1, np.uint8(2), (2,), 99, -99, (1, 2), None, "a", 1.5, True,
    ..., slice(None), slice(1, 4), slice(None, None, 3), slice(None, None, -1), slice(7, 2, -2), slice(5, None, -1),
    slice(-3, None), slice(4, 4), slice(0, 99), slice(99, 200),
    [], [1, 2], [3, -1, 3], [[0, 1], [-2, -1]], [1, 99], [-99],
]
VALUES = [7, 2.5, [8], [8, 9], [1, 2, 3], [[1, 2], [3, 4]], list(range(40)), [], np.float32(3)]


def keyed(key):
    """arrayd refuses what NumPy deprecates."""
    return pytest.raises(IndexError) if isinstance(key, (float, bool)) else None


@pytest.mark.parametrize("base", BASES)
def test_reading(base):
    x = random(seed("flat"), np.int32, (4, 5))
    for key in KEYS:
        refused = keyed(key)
        if refused:
            with refused:
                BASES[base](ad.asarray(x)).flat[key]
        else:
            check(lambda xp, a: BASES[base](a).flat[key], x)
            if isinstance(key, list):
                check(lambda xp, a: BASES[base](a).flat[xp.asarray(key, dtype=np.int64)], x)
                check(lambda xp, a: BASES[base](a).flat[np.asarray(key, np.uint64 if key == [1, 2] else np.int16)], x)


@pytest.mark.parametrize("base", BASES)
def test_writing(base):
    def body(xp, a, key, value):
        a = a.copy()
        BASES[base](a).flat[key] = value
        return a
    x = random(seed("flat"), np.float64, (4, 5))
    for key in KEYS:
        if keyed(key):
            continue
        for value in VALUES:
            if isinstance(key, list) and np.unique(np.asarray(key) % 20).size < np.size(key) and np.size(value) > 1:
                continue  # several values for one place: none of them is promised to stay
            if not np.size(value) and isinstance(key, list):
                continue  # NumPy does not look at the indices then
            check(lambda xp, a: body(xp, a, key, value), x)
            check(lambda xp, a: body(xp, a, key, xp.asarray(value)), x)
            if isinstance(key, list):
                check(lambda xp, a: body(xp, a, xp.asarray(key, dtype=np.int64), value), x)


@pytest.mark.parametrize("base", BASES)
def test_masks(base):
    def body(xp, a, mask, value):
        a = a.copy()
        BASES[base](a).flat[mask] = value
        return a
    x = random(seed("flat"), np.float64, (4, 5))
    size = BASES[base](x).size
    for mask in (np.arange(size) % 3 == 0, np.zeros(size, bool), np.ones(size, bool), np.ones(size + 1, bool),
                 np.ones((1, size), bool)):
        check(lambda xp, a: BASES[base](a).flat[mask], x)
        check(lambda xp, a: BASES[base](a).flat[xp.asarray(mask)], x)
        for value in VALUES:
            check(lambda xp, a: body(xp, a, mask, value), x)
            check(lambda xp, a: body(xp, a, xp.asarray(mask), xp.asarray(value)), x)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_types(dtype):
    def body(xp, a):
        a = a.copy()
        a.T.flat[1:4] = xp.asarray([1, 0])
        a.flat[-1] = 1
        a.flat = a.flat[::-1]
        return a, a.flat[2:7], a.T.flat[[5, 1]]
    check(body, random(seed("flat", dtype), dtype, (3, 4)))


def test_assigning_all():
    def body(xp, a, value):
        a = a.copy()
        a.T.flat = value
        return a
    for value in VALUES:
        check(lambda xp, a: body(xp, a, value), np.arange(6.0).reshape(2, 3))


@pytest.mark.parametrize("base", BASES)
def test_going_through(base):
    x = random(seed("flat"), np.int32, (4, 5))
    check(lambda xp, a: list(BASES[base](a).flat), x)
    check(lambda xp, a: len(BASES[base](a).flat), x)
    check(lambda xp, a: BASES[base](a).flat.copy(), x)
    check(lambda xp, a: xp.asarray(BASES[base](a).flat), x)
    check(lambda xp, a: xp.sum(BASES[base](a).flat if xp is ad else BASES[base](a)), x)
    check(lambda xp, a: BASES[base](a).flat == 3, x)
    check(lambda xp, a: BASES[base](a).flat >= BASES[base](a).flat[::-1], x)

    def places(xp, a):
        flat, seen = BASES[base](a).flat, []
        while True:
            seen.append((flat.index, flat.coords))
            if flat.index == len(flat):
                return seen
            next(flat)
    check(lambda xp, a: [str(one) for one in places(xp, a)[:20]], x)


def test_what_it_is():
    a = ad.arange(6).reshape(2, 3)
    flat = a.flat
    assert isinstance(flat, ad.flatiter) and iter(flat) is flat and flat.base is a
    with pytest.raises(TypeError, match="unhashable"):
        hash(flat)
    with pytest.raises(TypeError, match=r"a\.get\(\)"):
        np.asarray(flat)
    with pytest.raises(TypeError, match="flatiter goes through an arrayd.ndarray"):
        ad.flatiter([1, 2])


def test_a_slice_is_a_copy():
    a = ad.zeros((2, 3))
    for base in (a, a.T):
        parts = [base.flat[1:3], base.flat[:], base.flat[[1, 2]]]
        a[...] = a + 1
        assert all((part.get() == float(a[0, 0]) - 1).all() for part in parts)


def test_nothing_waits():
    a = ad.arange(20.0).reshape(4, 5)
    mask, index, values = ad.arange(20) % 3 == 0, ad.asarray([1, 2]), ad.asarray([4.0, 5.0])
    ad.sync()
    before = ad.session_info()["round_trips"]
    for base in (a, a.T):
        for key in (3, slice(1, 9, 2), [1, 2], index, np.arange(20) % 3 == 0):
            base.flat[key]
            base.flat[key] = 1
            if key != 3 if isinstance(key, int) else True:
                base.flat[key] = values
        base.flat[mask] = 1
        base.flat[mask] = values
        list(base.flat)
    assert ad.session_info()["round_trips"] == before
    a.flat[mask]
    assert ad.session_info()["round_trips"] == before + 1


def test_out_of_bounds_on_the_server():
    for base in (ad.zeros((2, 3)), ad.zeros((2, 3)).T):
        for wrong in (6, -7):
            with pytest.raises(IndexError):
                base.flat[ad.asarray([0, wrong])].get()
            base.flat[ad.asarray([0, wrong])] = 1
            with pytest.raises(IndexError):
                base.get()
