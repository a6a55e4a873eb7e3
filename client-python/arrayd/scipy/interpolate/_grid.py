"""Interpolation of values on a grid."""
import itertools

import numpy as np

from ... import _base, _core
from ..._base import as_array
from .._host import HostMade, make_function, to_host, to_server
from . import _points
from ._cubic import PchipInterpolator
from ._piecewise import sum_powers

_u = _core.ufuncs


class RegularGridInterpolator(HostMade):
    """A function through values on a grid.

    Parameters: points: n 1-d arrays of places, each in order. values: array, whose first n axes go with them. method: "linear",
        "nearest", "slinear", "cubic", "quintic" or "pchip". bounds_error: whether points
        outside of the grid are refused. fill_value: the value there; None: the function goes on. solver, solver_args: of
        the linear system of a spline.
    Raises: ValueError where shapes do not fit or for another method.
    Source: scipy.interpolate.RegularGridInterpolator
    """

    def __init__(self, points, values, method="linear", bounds_error=True, fill_value=np.nan, *, solver=None,
                 solver_args=None):
        self._make(points, values, method, bounds_error, fill_value, solver=solver, solver_args=solver_args)

    def __call__(self, xi, method=None, *, nu=None):
        """Values, or those of a partial derivative of a spline.

        xi: array (..., n), or tuple of n arrays. method: the object's own unless given. nu: n ints. ValueError for points outside
        of the grid, where these are refused; finding that out waits.
        """
        method = self.method if method is None else method
        spline = getattr(self._host, "_spline", None) if method == self.method else None
        if spline is None and (method not in ("linear", "nearest", "pchip") or nu is not None):
            return to_server(self._host(to_host(xi), method, nu=nu))
        grid = self._host.grid
        x, shape = _points.split_points(xi, len(grid))
        if x.shape[-1] != len(grid):
            raise ValueError(f"The requested sample points xi have dimension {x.shape[-1]} but this "
                             f"RegularGridInterpolator has dimension {len(grid)}")
        outside = self._find_outside(x, grid)
        values = self.values
        if spline is not None:
            result = to_server(spline)(x, nu=nu)
        elif method == "pchip":
            if any(one.size < 4 for one in grid):
                return to_server(self._host(to_host(xi), method))  # it says what is wrong
            result = self._evaluate_monotonic(x, values)
        else:
            result = self._evaluate(x, values, method == "linear")
        if not self._host.bounds_error and self._host.fill_value is not None:
            result = _points.mask_outside(result, outside, self._host.fill_value)
        result = _points.mask_outside(result, _u["isnan"](x).any(axis=-1))
        return result.reshape(shape[:-1] + tuple(values.shape[len(grid):]))

    def _find_outside(self, x, grid):
        outside = False
        for i, places in enumerate(grid):
            column = x[:, i]
            beyond = (column < float(places[0])) | (column > float(places[-1]))
            if self._host.bounds_error and bool((beyond | _u["isnan"](column)).any()):
                raise ValueError(f"One of the requested xi is out of bounds in dimension {i}")
            outside = beyond | outside
        return outside

    def _evaluate(self, x, values, linear):
        places, parts = [], []
        for i, each in enumerate(self.grid):
            column = x[:, i].copy()
            if each.size == 1:
                places.append(column.astype(np.int64) * 0)
                parts.append(column * 0)
                continue
            place = _points.find_intervals(each, column)
            places.append(place)
            parts.append((column - each[place]) / (each[place + 1] - each[place]))
        if not linear:
            return values[tuple(place + (part > 0.5).astype(np.int64) for place, part in zip(places, parts))]
        total = None
        for corner in itertools.product((0, 1), repeat=len(places)):
            weight = None
            for part, side in zip(parts, corner):
                one = part if side else 1 - part
                weight = one if weight is None else weight * one
            found = values[tuple(_u["minimum"](place + side, size - 1)
                                 for place, side, size in zip(places, corner, values.shape))]
            term = found * _points.fit_rank(weight, found.ndim)
            total = term if total is None else total + term
        return total


    def _evaluate_monotonic(self, x, values):
        """By monotonic cubic polynomials: along the last axis of the grid for all points, then along the others."""
        n = len(self._host.grid)
        order = [*reversed(range(n)), *range(n, values.ndim)]
        folded = PchipInterpolator(self._host.grid[-1], values.transpose(order), axis=0)(x[:, -1])
        each = _base.iota(x.shape[0], 0, 1, np.int64)
        for i in reversed(range(n - 1)):  # folded: (points, ..., grid of this axis, what trails)
            column, places = x[:, i].copy(), as_array(self._host.grid[i])
            place = _points.find_intervals(places, column)
            cubic = PchipInterpolator(self._host.grid[i], folded, axis=1)
            c = cubic.c[:, place, each]
            folded = sum_powers(c, _points.fit_rank(column - places[place], c.ndim - 1), 0)
        return folded


def interpn(points, values, xi, method="linear", bounds_error=True, fill_value=np.nan):
    """Values between those on a grid.

    Parameters: points, values, method, bounds_error, fill_value: as RegularGridInterpolator; method may be "splinef2d", too. xi: array
        (..., n), or tuple of n arrays.
    Returns: ndarray.
    Raises: ValueError where shapes do not fit, for points outside of the grid or another method.
    Source: scipy.interpolate.interpn
    """
    if method not in ("linear", "nearest", "slinear", "cubic", "quintic", "pchip"):
        return _interpolate_on_host(points, values, xi, method, bounds_error, fill_value)
    values = as_array(values)
    points = tuple(points)
    if len(points) > values.ndim:
        raise ValueError(f"There are {len(points)} point arrays, but values has {values.ndim} dimensions")
    return RegularGridInterpolator(points, values, method, bounds_error, fill_value)(xi)


_interpolate_on_host = make_function("interpn", "scipy.interpolate")
