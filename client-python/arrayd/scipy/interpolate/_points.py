"""Where points lie among breakpoints, and the shapes of results."""
import math

import numpy as np

from ... import _core
from ..._base import as_array, call

_u = _core.ufuncs


def flatten_points(x):
    """x as float64 without shape, and its shape."""
    x = as_array(x)
    if x.dtype.kind == "c":
        raise TypeError("points must be real")
    return x.reshape(-1).astype(np.float64, copy=False), x.shape


def put_axis(values, dims, axis):
    """values, whose first dims axes are those of the points, with these where the axis of the coefficients was."""
    if not axis:
        return values
    order = list(range(values.ndim))
    return values.transpose(order[dims:dims + axis] + order[:dims] + order[dims + axis:])


def wrap_around(x, first, last):
    """x in [first, last), which repeats itself."""
    return first + (x - first) % (last - first)


def find_intervals(knots, x, first=0, last=None, right=True):
    """For each x the i in [first, last] with knots[i] <= x < knots[i+1] (not right: knots[i] < x <= knots[i+1]), or the
    nearest such i."""
    last = knots.size - 2 if last is None else last
    return _u["minimum"](_u["maximum"](call("searchsorted", (knots, x), (right,)) - 1, first), last)


def find_breaks(breaks, x):
    """The interval of each x between breakpoints, and their ends as numbers, of which the second may be the smaller."""
    first, last = (float(one) for one in breaks.get()[[0, -1]])
    if first <= last:
        return find_intervals(breaks, x), first, last
    return breaks.size - 2 - find_intervals(breaks[::-1].copy(), x, right=False), first, last


def find_outside(x, first, last, extrapolate):
    """Find the points that have no value: those beyond the ends unless extrapolate, and NaN."""
    return _u["isnan"](x) if extrapolate else ~((x >= min(first, last)) & (x <= max(first, last)))


def fit_rank(a, rank):
    """a with axes of length 1 at its end, rank in all."""
    return a.reshape(tuple(a.shape) + (1,) * (rank - a.ndim))


def mask_outside(values, outside, fill=np.nan):
    """values with `fill` for the points, on the first axis, that lie outside."""
    from ..._array.indexing import where
    return where(fit_rank(outside, values.ndim), as_array(fill).astype(values.dtype), values)


def split_points(xi, ndim=None):
    """Points (..., n), or a tuple of n arrays with their coordinates, as (points, n) of float64, and their shape."""
    from ..._array.joining import stack
    from ..._array.manipulation import broadcast_arrays
    if isinstance(xi, tuple) and len(xi) == 1:
        xi = xi[0]  # one array of points
    if isinstance(xi, tuple):
        parts = broadcast_arrays(*(as_array(one) for one in xi))
        xi = stack([part.astype(np.float64, copy=False) for part in parts], axis=-1)
    else:
        xi = as_array(xi)
        if xi.ndim == 1:
            xi = xi.reshape((-1, 1) if ndim is None or ndim == 1 else (-1, ndim))
    shape = tuple(xi.shape)
    return xi.reshape(math.prod(shape[:-1]), shape[-1]).astype(np.float64, copy=False), shape
