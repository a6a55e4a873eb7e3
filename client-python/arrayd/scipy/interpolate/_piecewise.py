"""Piecewise polynomials, in powers and in Bernstein's form."""
import math
import operator

import numpy as np

from ... import _base
from .._host import HostMade
from . import _points


def sum_powers(c, s, nu):
    """The derivative of order nu of the sums of c[i] * s**(k-1-i), for coefficients along the first of k axes."""
    total = None
    for power in range(len(c) - 1, nu - 1, -1):
        term = c[len(c) - 1 - power]
        term = term if nu == 0 else term * float(math.perm(power, nu))
        total = term if total is None else total * s + term
    return _base.zeros(c.shape[1:], c.dtype) if total is None else total


class _Piecewise(HostMade):
    """Polynomials between breakpoints. A class says by _evaluate what they are."""

    _negative = ValueError, "Order of derivative cannot be negative"

    def __init__(self, c, x, extrapolate=None, axis=0):
        self._make(c, x, extrapolate, axis)

    def __call__(self, x, nu=0, extrapolate=None):
        """Values, or those of the derivative of order nu.

        x: array. nu: int. extrapolate: whether the first and the last polynomial go on, or the values are NaN there;
        "periodic": all of them repeat themselves. The object's own unless given.
        """
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        nu = operator.index(nu)
        if nu < 0:
            error, text = self._negative
            raise error(text)
        x, shape = _points.flatten_points(x)
        if extrapolate == "periodic":
            ends = self._host.x
            x, extrapolate = _points.wrap_around(x, float(ends[0]), float(ends[-1])), False
        breaks, c = self.x, self.c
        place, first, last = _points.find_breaks(breaks, x)
        values = self._evaluate(c[:, place], x, breaks[place], breaks[place + 1], nu)
        values = _points.mask_outside(values, _points.find_outside(x, first, last, extrapolate))
        return _points.put_axis(values.reshape(shape + tuple(c.shape[2:])), len(shape), self.axis)


class PPoly(_Piecewise):
    """Piecewise polynomials in powers of the distance from the breakpoint on the left.

    Parameters: c: array (k, m, ...) of coefficients, the highest power first. x: array (m+1) of breakpoints. extrapolate:
        whether the first and the last polynomial go on beyond the ends; "periodic": all repeat themselves. axis: of c,
        without its first two, at which the points' axes will stand.
    Raises: ValueError where shapes do not fit or breakpoints are not in order.
    Source: scipy.interpolate.PPoly
    """

    _fetched = "antiderivative derivative extend integrate roots solve"
    _makers = "construct_fast from_bernstein_basis from_spline"

    def _evaluate(self, c, x, low, high, nu):
        return sum_powers(c, _points.fit_rank(x - low, c.ndim - 1), nu)


class BPoly(_Piecewise):
    """Piecewise polynomials in Bernstein's form.

    Parameters: c: array (k, m, ...) of coefficients. x, extrapolate, axis: as PPoly.
    Raises: ValueError where shapes do not fit or breakpoints are not in order.
    Source: scipy.interpolate.BPoly
    """

    _negative = NotImplementedError, "Cannot do antiderivatives in the B-basis yet."
    _fetched = "antiderivative derivative extend integrate"
    _makers = "construct_fast from_derivatives from_power_basis"

    def _evaluate(self, c, x, low, high, nu):
        width = _points.fit_rank(high - low, c.ndim - 1)
        s = _points.fit_rank(x - low, c.ndim - 1) / width
        for _ in range(nu):
            if len(c) == 1:
                return _base.zeros(c.shape[1:], c.dtype)
            c = (c[1:] - c[:-1]) * (float(len(c) - 1) / width)
        while len(c) > 1:  # de Casteljau's algorithm
            c = c[:-1] * (1 - s) + c[1:] * s
        return c[0]


class NdPPoly(HostMade):
    """Piecewise polynomials of several variables, products of powers.

    Parameters: c: array (k1, ..., kn, m1, ..., mn, ...) of coefficients. x: tuple of n arrays of breakpoints. extrapolate:
        whether polynomials go on beyond the ends, or values are NaN there.
    Raises: ValueError where shapes do not fit or breakpoints are not in order.
    Source: scipy.interpolate.NdPPoly
    """

    _fetched = "antiderivative derivative integrate integrate_1d"
    _makers = "construct_fast"

    def __init__(self, c, x, extrapolate=None):
        self._make(c, x, extrapolate)

    def __call__(self, x, nu=None, extrapolate=None):
        """Values, or those of a partial derivative.

        x: array (..., n), or tuple of n arrays. nu: n ints. extrapolate: bool, the object's own unless given.
        """
        extrapolate = self.extrapolate if extrapolate is None else bool(extrapolate)
        breaks, c = self.x, self.c
        n = len(breaks)
        x, shape = _points.split_points(x)
        if x.shape[-1] != n:
            raise ValueError(f"points must have {n} coordinates, not {x.shape[-1]}")
        nu = np.zeros(n, np.intc) if nu is None else np.asarray(nu, np.intc)
        if nu.shape != (n,):
            raise ValueError("invalid number of derivative orders nu")
        if (nu < 0).any():
            raise ValueError("Order of derivative cannot be negative")
        places, apart, outside = [], [], False
        for i, each in enumerate(breaks):
            place, first, last = _points.find_breaks(each, x[:, i])
            places.append(place)
            apart.append(x[:, i] - each[place])
            outside = _points.find_outside(x[:, i], first, last, extrapolate) | outside
        values = c[(slice(None),) * n + tuple(places)]
        for s, order in zip(apart, nu.tolist()):
            values = sum_powers(values, s.reshape((-1,) + (1,) * (c.ndim - 2 * n)), order)
        return _points.mask_outside(values, outside).reshape(shape[:-1] + tuple(c.shape[2 * n:]))
