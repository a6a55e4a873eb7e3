"""Hypothesis's own strategies for array API libraries, made of arrayd: what they draw behaves as NumPy's arrays do."""
import operator
import warnings

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.array_api import make_strategies_namespace
from standard import VERSION, equal

import arrayd as ad

with warnings.catch_warnings():
    warnings.simplefilter("error")  # it warns of what it misses in the namespace
    xps = make_strategies_namespace(ad, api_version=VERSION)
    assert make_strategies_namespace(ad).api_version == VERSION

SHAPES = xps.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
run = settings(max_examples=60, deadline=None, derandomize=True, database=None)


def drawn(dtypes=xps.numeric_dtypes(), shapes=SHAPES):
    return xps.arrays(dtype=dtypes, shape=shapes)


@run
@given(st.data(), xps.scalar_dtypes())
def test_arrays(data, dtype):
    shape = data.draw(SHAPES)
    x = data.draw(xps.arrays(dtype=dtype, shape=shape))
    assert isinstance(x, ad.ndarray) and x.shape == shape and x.dtype == dtype
    equal(ad.from_dlpack(np.from_dlpack(x, device="cpu")).get(), x.get(), "through DLPack", 0)


@run
@given(st.data())
def test_indices(data):
    x = data.draw(drawn())
    key = data.draw(xps.indices(x.shape, allow_newaxis=True, allow_ellipsis=True))
    host = x.get()
    equal(x[key].get(), host[key], repr(key), 0)
    if host[key].size or host[key].ndim == 0:
        x[key], host[key] = 1, 1
        equal(x.get(), host, repr(key), 0)


@run
@given(st.data())
def test_masks(data):
    x = data.draw(drawn(shapes=xps.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4)))
    mask = data.draw(xps.arrays(dtype=ad.bool, shape=x.shape))
    equal(x[mask].get(), x.get()[mask.get()], "mask", 0)
    for mine, its in zip(ad.nonzero(mask), np.nonzero(mask.get()), strict=True):
        equal(mine.get(), its, "nonzero", 0)


@run
@given(st.data(), st.sampled_from(["add", "sub", "mul", "lt", "ge", "eq", "ne"]))
def test_broadcasting(data, name):
    dtype = data.draw(xps.real_dtypes())
    shapes = data.draw(xps.mutually_broadcastable_shapes(2, max_dims=3, max_side=3)).input_shapes
    x, y = (data.draw(xps.arrays(dtype=dtype, shape=shape)) for shape in shapes)
    act = getattr(operator, name)
    with np.errstate(all="ignore"):
        want = act(np.asarray(x.get()), np.asarray(y.get()))
    equal(act(x, y).get(), np.asarray(want), name, 0)


@run
@given(st.data(), st.booleans(), st.booleans())
def test_sorts(data, descending, stable):
    x = data.draw(drawn(xps.real_dtypes(), xps.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=6)))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    order = ad.argsort(x, axis=axis, descending=descending, stable=stable)
    result = ad.sort(x, axis=axis, descending=descending, stable=stable)
    np.testing.assert_array_equal(ad.take_along_axis(x, order, axis=axis).get(), result.get())
    want = np.sort(x.get(), axis=axis)
    np.testing.assert_array_equal(result.get(), np.flip(want, axis) if descending else want)
    assert ad.sort(order, axis=axis).tolist() == np.sort(np.argsort(x.get(), axis=axis), axis=axis).tolist()


@run
@given(st.data())
def test_shapes(data):
    x = data.draw(drawn())
    host = x.get()
    axes = tuple(data.draw(st.permutations(range(x.ndim))))
    turned = ad.permute_dims(x, axes)
    equal(turned.get(), np.transpose(host, axes), repr(axes), 0)
    equal(ad.reshape(turned, (-1,)).get() if x.size else ad.reshape(turned, (0,)).get(),
          np.transpose(host, axes).reshape(-1), "reshape", 0)
    if x.ndim:
        axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
        shift = data.draw(st.integers(-5, 5))
        equal(ad.roll(x, shift, axis=axis).get(), np.roll(host, shift, axis), "roll", 0)
        equal(ad.flip(x, axis=axis).get(), np.flip(host, axis), "flip", 0)
        equal(ad.concat(ad.unstack(ad.expand_dims(x, axis=axis), axis=axis), axis=axis).get(), host, "unstack", 0)
        equal(ad.stack(ad.unstack(x, axis=axis), axis=axis).get() if x.shape[axis] else host, host, "stack", 0)


@run
@given(st.data())
def test_axes(data):
    x = data.draw(drawn(xps.integer_dtypes()))
    axis = data.draw(xps.valid_tuple_axes(x.ndim)) if x.ndim else None
    for name in ("sum", "prod", "any", "all", "count_nonzero"):
        for keepdims in (False, True):
            want = np.asarray(getattr(np, name)(x.get(), axis=axis, keepdims=keepdims))
            equal(getattr(ad, name)(x, axis=axis, keepdims=keepdims).get(), want, name, 0)
