"""Views by strides against NumPy's, and that none reaches beyond its array's memory."""
import numpy as np
import pytest

import arrayd as ad
from arrayd.lib import stride_tricks
from oracle import check, seed

A = np.arange(24.0).reshape(2, 3, 4)


def test_as_strided():
    for shape, strides in (((3,), (16,)), ((2, 2), (8, 8)), ((4, 24), (0, 8)), ((), ()), ((0, 5), (8, 8)),
                           (None, (0, 32, 8)), ((2, 3, 2), None), ([2, 3], [96, 8])):
        check(lambda xp, a: xp.lib.stride_tricks.as_strided(a, shape, strides), A)
    check(lambda xp, a: xp.lib.stride_tricks.as_strided(a[:, ::2], (2, 1, 3)), A)
    check(lambda xp, a: xp.lib.stride_tricks.as_strided(a[1, 2, ::-1], (3, 2), (-64, -8)), A)
    a = ad.zeros(5)
    stride_tricks.as_strided(a, (3,), (16,))[...] = 1
    assert a.tolist() == [1, 0, 1, 0, 1]


def test_no_view_reaches_beyond():
    """Random shapes and strides: either all elements lie in the array's memory, or it is a ValueError."""
    rng, host = seed("strides"), np.arange(24.0)
    a, outcomes = ad.asarray(host), set()
    for _ in range(500):
        first, ndim = int(rng.integers(24)), int(rng.integers(4))
        shape, steps = rng.integers(1, 5, ndim), rng.integers(-6, 7, ndim)
        places = first + sum((np.arange(n).reshape((-1,) + (1,) * (ndim - i - 1)) * step
                              for i, (n, step) in enumerate(zip(shape, steps))), np.zeros(shape, int))
        inside = places.min() >= 0 and places.max() < 24
        outcomes.add(bool(inside))
        args = tuple(shape.tolist()), tuple((8 * steps).tolist())
        if inside:
            np.testing.assert_array_equal(stride_tricks.as_strided(a[first:], *args).get(), host[places])
        else:
            with pytest.raises(ValueError, match="beyond its buffer"):
                stride_tricks.as_strided(a[first:], *args)
    assert outcomes == {True, False}


def test_an_array_shows_other_elements():
    """_set_shape_and_strides of CuPy, by which programs make frames of a signal: it changes the array, and no other one."""
    host = np.arange(24.0)
    whole = ad.asarray(host)
    frames = whole[2:].view()
    assert frames._set_shape_and_strides([4, 5], [32, 8], True, True) is None
    expected = np.lib.stride_tricks.as_strided(host[2:], (4, 5), (32, 8))
    np.testing.assert_array_equal(frames.get(), expected)
    assert frames.strides == (32, 8) and not frames.flags.c_contiguous and whole.shape == (24,)
    frames._set_shape_and_strides(strides=(8, -8), shape=(2, 2))
    assert frames.tolist() == [[2, 1], [3, 2]]
    frames[0, 0] = 50
    assert float(whole[2]) == 50
    with pytest.raises(ValueError, match="beyond its buffer"):
        frames._set_shape_and_strides((30,), (8,))
    with pytest.raises(ValueError, match="as many numbers as shape, 1, and has 2"):
        frames._set_shape_and_strides((3,), (8, 8))
    with pytest.raises(TypeError):
        frames._set_shape_and_strides((3,), (8.0,))
    assert frames.shape == (2, 2)


def test_views_that_cannot_be():
    a = ad.arange(6.0)
    for shape, strides in (((2,), (4,)), ((2,), (8, 8)), ((-1,), (8,)), ((1 << 62, 1 << 62), (0, 0)), ((2,), (1 << 62,)),
                           ((2,), (-8,)), ((1 << 61,), (8,)), ((3,), (-(1 << 62),))):
        with pytest.raises(ValueError):
            stride_tricks.as_strided(a, shape, strides)
    with pytest.raises(TypeError):
        stride_tricks.as_strided(a, (2,), (8.0,))


@pytest.mark.parametrize("window,axis", [
    ((2, 2, 2), None), (2, 1), (3, -1), ((2, 3), (0, 2)), ((2, 2), (1, 1)), ((1, 1, 1), None), (0, 0), ((), ()), (4, 1),
    (-1, 0), ((2, 2), None), ((2, 2), 0), (1, 3), (2, None)])
def test_sliding_windows(window, axis):
    for view in (lambda a: a, lambda a: a.T, lambda a: a[:, ::-1, ::2]):
        check(lambda xp, a: xp.lib.stride_tricks.sliding_window_view(view(a), window, axis), A)


def test_windows_are_views():
    a = ad.arange(5)
    windows = stride_tricks.sliding_window_view(a, 2)
    a[1] = 9
    assert windows.tolist() == [[0, 9], [9, 2], [2, 3], [3, 4]]
    check(lambda xp: xp.lib.stride_tricks.sliding_window_view([0.0, 1, 2], 2))
    with pytest.raises(NotImplementedError, match="windows overlap"):
        stride_tricks.sliding_window_view(a, 2, writeable=True)
