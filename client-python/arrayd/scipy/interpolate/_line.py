"""Interpolation along a line."""
import math

import numpy as np

from ... import _core
from ..._base import as_array
from .._host import HostMade, to_server
from . import _points

_u = _core.ufuncs


class interp1d(HostMade):
    """A function through values.

    Parameters: x: 1-d array of places. y: array of values. kind: "linear", "nearest", "nearest-up", "zero", "slinear",
        "quadratic", "cubic", "previous", "next", or the degree of a spline. axis: of y that goes with x. copy: makes no
        difference.
        bounds_error: whether points beyond the ends are refused. fill_value: the value there, a pair of them, or
        "extrapolate". assume_sorted: whether x ascends.
    Raises: ValueError where arrays do not fit; NotImplementedError for another kind.
    Source: scipy.interpolate.interp1d
    """

    def __init__(self, x, y, kind="linear", axis=-1, copy=True, bounds_error=None, fill_value=np.nan,
                 assume_sorted=False):
        self.__dict__.update(_kind=kind, copy=copy)
        self._make(x, y, kind, axis, True, bounds_error, fill_value, assume_sorted)

    def __call__(self, x):
        """Values. x: array. ValueError for points beyond the ends, where these are refused; finding that out waits."""
        x = as_array(x)
        shape, x = tuple(x.shape), x.reshape(-1)
        x = x if x.dtype.kind in "fc" else x.astype(np.float64)
        host = self._host
        axis = host.axis % host.y.ndim
        rest = host.y.shape[:axis] + host.y.shape[axis + 1:]
        values = self._values(x)
        if not self._extrapolates() and x.size:
            values = self._fill(values, x, rest)
        return _points.put_axis(values.reshape(shape + rest), len(shape), axis if shape else 0)

    def _values(self, x):
        from ..._array.manipulation import moveaxis
        from ..._math.sorting import searchsorted
        knots, n = self.x, self._host.x.size
        y = moveaxis(self.y, self._host.axis, 0).reshape(n, -1)
        if self._kind == "linear":
            if self._is_plain():
                from ..._math.elementary import interp
                return interp(x, knots, self.y).reshape(-1, 1)
            high = _clip(searchsorted(knots, x), 1, n - 1)
            low = high - 1
            slope = (y[high] - y[low]) / (knots[high] - knots[low]).reshape(-1, 1)
            return slope * (x - knots[low]).reshape(-1, 1) + y[low]
        if self._kind in ("nearest", "nearest-up"):
            half = knots / 2.0
            place = searchsorted(half[1:] + half[:-1], x, side="left" if self._kind == "nearest" else "right")
            return y[_clip(place, 0, n - 1)]
        if self._kind == "previous":
            return y[_clip(searchsorted(as_array(np.nextafter(self._host.x, -np.inf)), x), 1, n) - 1]
        if self._kind == "next":
            return y[_clip(searchsorted(as_array(np.nextafter(self._host.x, np.inf)), x, side="right"), 0, n - 1)]
        values = to_server(self._host._spline)(x)
        known = np.isnan(self._host.x).any() or np.isnan(self._host.y).any()
        return values * np.nan if known and self._host._spline.k > 1 else values

    def _is_plain(self):
        """Whether SciPy leaves a linear function to numpy.interp, which passes over NaN where a point is met."""
        host = self._host
        return (host.y.ndim == 1 and host.x.dtype in (np.float64, np.int64) and host.y.dtype in (np.float64, np.int64)
                and not self._extrapolates())

    def _extrapolates(self):
        return isinstance(self._host.fill_value, str) and self._host.fill_value == "extrapolate"

    def _fill(self, values, x, rest):
        """values with those given in the place of what lies beyond the ends."""
        ends = float(self._host.x[0]), float(self._host.x[-1])
        outside = x < ends[0], x > ends[1]
        if self._host.bounds_error:
            for each, end, words in zip(outside, ends, ("below the interpolation range's minimum",
                                                        "above the interpolation range's maximum")):
                if bool(each.any()):
                    raise ValueError(f"A value ({float(x[each.argmax()])}) in x_new is {words} value ({end}).")
            return values
        fill = self._host.fill_value
        pair = fill if isinstance(fill, tuple) and len(fill) == 2 else (fill, fill)
        from ..._array.indexing import where
        for each, value in zip(outside, pair):
            value = np.broadcast_to(np.asarray(value, values.dtype), rest).reshape(1, math.prod(rest))
            values = where(each.reshape(-1, 1), as_array(value), values)
        return values


def _clip(place, low, high):
    return _u["minimum"](_u["maximum"](place, low), high)
