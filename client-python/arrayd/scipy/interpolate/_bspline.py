"""Splines as sums of B-splines, of one and of several variables."""
import operator

import numpy as np

from ... import _base
from .._host import HostMade, make_function
from . import _points

make_interp_spline = make_function("make_interp_spline", "scipy.interpolate")
make_lsq_spline = make_function("make_lsq_spline", "scipy.interpolate")
splder = make_function("splder", "scipy.interpolate")
splantider = make_function("splantider", "scipy.interpolate")


def sum_splines(t, x, d, nu):
    """Values of splines, or of derivatives of order nu, by de Boor's algorithm.

    t: the 2k knots around each point, (2k, n). x: points, (n). d: the k+1 coefficients of each, (k+1, n, ...).
    """
    rank, k = d.ndim, len(d) - 1
    from ..._array.indexing import where
    if nu > k:
        return _base.zeros(d.shape[1:], d.dtype)
    t, x = _points.fit_rank(t, rank), _points.fit_rank(x, rank - 1)
    for step in range(k):
        low, high = t[step:k], t[k:2 * k - step]
        width = where(high == low, np.inf, high - low)  # where nothing lies between knots, nothing is added
        if step < nu:  # the coefficients of the derivative, of a degree less
            d = (d[1:] - d[:-1]) * (float(k - step) / width)
        else:
            d = (d[:-1] * (high - x) + d[1:] * (x - low)) / width
    return d[0]


def find_knots(t, k, x):
    """The interval between knots in which each point lies, and the 2k knots around it."""
    place = _points.find_intervals(t, x, k, t.size - k - 2)
    return place, t[place + _base.iota(2 * k, 1 - k, 1, np.int64).reshape(-1, 1)]


class BSpline(HostMade):
    """A spline of one variable: a sum of B-splines.

    Parameters: t: array (n+k+1) of knots. c: array of at least n coefficients. k: degree. extrapolate: whether the first and the
        last polynomial go on beyond the ends; "periodic": the spline repeats itself. axis: of c that goes with the knots.
    Raises: ValueError where shapes do not fit or knots are not in order.
    Source: scipy.interpolate.BSpline
    """

    _fetched = "antiderivative derivative insert_knot integrate"
    _makers = "basis_element construct_fast design_matrix from_power_basis"

    def __init__(self, t, c, k, extrapolate=True, axis=0):
        self._make(t, c, k, extrapolate, axis)

    @property
    def tck(self):
        """Knots, coefficients and degree."""
        return self.t, self.c, self.k

    def __call__(self, x, nu=0, extrapolate=None):
        """Values, or those of the derivative of order nu.

        x: array. nu: int. extrapolate: bool or "periodic", the object's own unless given.
        """
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        nu = operator.index(nu)
        if nu < 0:
            raise NotImplementedError(f"Cannot do derivative order nu= {nu}")
        t, c, k = self.t, self.c, self.k
        x, shape = _points.flatten_points(x)
        first, last = (float(self._host.t[i]) for i in (k, self._host.t.size - k - 1))
        if extrapolate == "periodic":
            x, extrapolate = _points.wrap_around(x, first, last), False
        place, around = find_knots(t, k, x)
        near = c[place + _base.iota(k + 1, -k, 1, np.int64).reshape(-1, 1)]
        values = sum_splines(around, x, near, nu)
        values = _points.mask_outside(values, _points.find_outside(x, first, last, extrapolate))
        return _points.put_axis(values.reshape(shape + tuple(c.shape[1:])), len(shape), self.axis)


class NdBSpline(HostMade):
    """A spline of several variables: a sum of products of B-splines.

    Parameters: t: tuple of n arrays of knots. c: array of coefficients, whose first n axes go with them. k: degree, or n of them.
        extrapolate: whether polynomials go on beyond the ends, or values are NaN there.
    Raises: ValueError where shapes do not fit or knots are not in order.
    Source: scipy.interpolate.NdBSpline
    """

    _fetched = "derivative"
    _makers = "design_matrix"

    def __init__(self, t, c, k, *, extrapolate=None):
        self._make(t, c, k, extrapolate=extrapolate)

    def __call__(self, xi, *, nu=None, extrapolate=None):
        """Values, or those of a partial derivative.

        xi: array (..., n). nu: n ints. extrapolate: bool, the object's own unless given.
        """
        extrapolate = bool(self.extrapolate if extrapolate is None else extrapolate)
        knots, c, degrees = self.t, self.c, tuple(int(k) for k in self._host.k)
        n = len(knots)
        nu = np.zeros(n, np.int64) if nu is None else np.asarray(nu, np.int64)
        if nu.shape != (n,):
            raise ValueError(f"invalid number of derivative orders {nu = } for ndim = {n}.")
        if (nu < 0).any():
            raise ValueError(f"derivatives must be positive, got {nu = }")
        xi = _base.as_array(xi)
        shape = tuple(xi.shape)
        if shape[-1] != n:
            raise ValueError(f"Shapes: xi.shape={shape} and ndim={n}")
        x = xi.reshape(-1, n).astype(np.float64, copy=False)
        places, weights, outside = [], [], False
        for i, (t, k) in enumerate(zip(knots, degrees)):
            column, ends = x[:, i].copy(), self._host.t[i]
            place, around = find_knots(t, k, column)
            weights.append(sum_splines(around, column, _all_splines(k, column.size), int(nu[i])))
            steps = _base.iota(k + 1, -k, 1, np.int64)
            axes = [1] * n
            axes[i] = k + 1
            places.append((place.reshape(-1, 1) + steps).reshape(-1, *axes))
            outside = _points.find_outside(column, float(ends[k]), float(ends[-k - 1]), extrapolate) | outside
        values = c[tuple(places)]
        for i in reversed(range(n)):
            values = _contract(values, weights[i], i + 1)
        values = _points.mask_outside(values, outside)
        return values.reshape(shape[:-1] + tuple(c.shape[len(knots):]))


def _all_splines(k, n):
    """The coefficients of each of the k+1 B-splines around n points by itself: (k+1, n, k+1)."""
    from ..._array.manipulation import broadcast_to
    return broadcast_to(_base.as_array(np.eye(k + 1)).reshape(k + 1, 1, k + 1), (k + 1, n, k + 1))


def _contract(values, weight, n):
    """Sums over axis n of values (points, k1, ..., kn, ...) times weights (points, kn)."""
    shape = (weight.shape[0],) + (1,) * (n - 1) + (weight.shape[1],) + (1,) * (values.ndim - n - 1)
    return (values * weight.reshape(shape)).sum(axis=n)
