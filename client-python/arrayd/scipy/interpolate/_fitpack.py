"""Smoothing splines, which FITPACK fits on this side."""
import numpy as np

from ... import _base, _core
from ..._base import as_array
from .._host import HostMade
from . import _points
from ._bspline import BSpline

_EXTENSIONS = {0: 0, "extrapolate": 0, 1: 1, "zeros": 1, 2: 2, "raise": 2, 3: 3, "const": 3}
_u = _core.ufuncs


class UnivariateSpline(HostMade):
    """A spline near values, as smooth as asked for.

    Parameters: x: 1-d array of places, which ascend. y: 1-d array of values. w: weights. bbox: two ends; x's unless given. k: degree,
        1 to 5. s: the sum of squares up to which knots are added. ext: values beyond the ends: 0 or "extrapolate", 1 or
        "zeros", 2 or "raise", 3 or "const". check_finite: whether NaN and infinities are looked for.
    Raises: ValueError where arrays do not fit or x does not ascend.
    Source: scipy.interpolate.UnivariateSpline
    """

    _fetched = ("antiderivative derivative derivatives get_coeffs get_knots get_residual integral roots "
                "set_smoothing_factor")

    def __init__(self, x, y, w=None, bbox=(None, None), k=3, s=None, ext=0, check_finite=False):
        self._make(x, y, w, list(bbox), k, s, ext, check_finite)

    def _take(self, host):
        super()._take(host)
        if type(self) in HostMade.classes.values():  # SciPy's class is that of what FITPACK has found
            object.__setattr__(self, "__class__", HostMade.classes[self._module, type(host).__name__])

    def __call__(self, x, nu=0, ext=None):
        """Values, or those of the derivative of order nu. x: array. nu: int. ext: the object's own unless given."""
        if ext is not None and ext not in _EXTENSIONS:
            raise ValueError(f"Unknown extrapolation mode {ext}.")
        ext = self._host.ext if ext is None else _EXTENSIONS[ext]
        x = as_array(x)
        if not x.size:
            return _base.empty((0,), np.float64)
        spline = self._copies.get("spline")
        if spline is None:
            spline = self._copies["spline"] = self._as_spline()
        first, last = (float(spline._host.t[i]) for i in (spline.k, -spline.k - 1))
        if ext == 3:
            x = _u["minimum"](_u["maximum"](x, first), last)
        outside = _points.find_outside(x, first, last, False)
        if ext == 2 and bool(outside.any()):
            raise ValueError("A value in x is outside of the interval of the knots")
        values = spline(x, nu)
        return _points.mask_outside(values, outside, 0) if ext == 1 else values

    def _as_spline(self):
        inner, c = self._host.get_knots(), self._host.get_coeffs()
        k = c.size - inner.size + 1
        t = np.concatenate([np.repeat(inner[:1], k), inner, np.repeat(inner[-1:], k)])
        return BSpline(t, c, k)


class InterpolatedUnivariateSpline(UnivariateSpline):
    """A spline through values.

    Parameters: x, y, w, bbox, k, ext, check_finite: as UnivariateSpline.
    Raises: ValueError where arrays do not fit or x does not ascend.
    Source: scipy.interpolate.InterpolatedUnivariateSpline
    """

    def __init__(self, x, y, w=None, bbox=(None, None), k=3, ext=0, check_finite=False):
        self._make(x, y, w, list(bbox), k, ext, check_finite)


class LSQUnivariateSpline(UnivariateSpline):
    """A spline near values, with given knots.

    Parameters: t: 1-d array of inner knots. x, y, w, bbox, k, ext, check_finite: as UnivariateSpline.
    Raises: ValueError where arrays do not fit, x does not ascend or knots are not among it.
    Source: scipy.interpolate.LSQUnivariateSpline
    """

    def __init__(self, x, y, t, w=None, bbox=(None, None), k=3, ext=0, check_finite=False):
        self._make(x, y, t, w, list(bbox), k, ext, check_finite)
