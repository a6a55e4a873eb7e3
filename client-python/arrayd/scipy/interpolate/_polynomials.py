"""Polynomials through points, in Krogh's and in the barycentric form."""
import numpy as np

from ... import _base
from ..._base import as_array
from .._host import HostMade, make_function
from . import _points

barycentric_interpolate = make_function("barycentric_interpolate", "scipy.interpolate")
krogh_interpolate = make_function("krogh_interpolate", "scipy.interpolate")


class _Polynomial(HostMade):
    def __call__(self, x):
        """Values. x: array."""
        x = as_array(x)
        shape = tuple(x.shape)
        values = self._evaluate(x.reshape(-1).astype(np.float64, copy=False))
        axis, rest = self._host._y_axis, tuple(self._host._y_extra_shape)
        values = values.reshape(shape + rest).astype(self._host.dtype, copy=False)
        return _points.put_axis(values, len(shape), axis if shape else 0)


class KroghInterpolator(_Polynomial):
    """The polynomial through values and derivatives.

    Parameters: xi: 1-d array of places; repeated ones have derivatives. yi: array of values. axis: of yi that goes with xi.
    Raises: ValueError where arrays do not fit.
    Source: scipy.interpolate.KroghInterpolator
    """

    _fetched = "derivative derivatives"

    def __init__(self, xi, yi, axis=0):
        self._make(xi, yi, axis)

    def _evaluate(self, x):
        c, places = self.c, self._host.xi.tolist()
        n = self._host.n
        x = x.reshape(-1, 1)
        values = c[n - 1] + _base.zeros((x.shape[0], self._host.r), c.dtype)
        for k in range(n - 2, -1, -1):
            values = values * (x - float(places[k])) + c[k]
        return values


class BarycentricInterpolator(_Polynomial):
    """The polynomial through values.

    Parameters: xi: 1-d array of places. yi: array of values, which set_yi gives later unless given. axis: of yi that goes with xi. wi:
        weights. rng: generator of SciPy's for the order in which weights are found.
    Raises: ValueError where arrays do not fit or places are not distinct.
    Source: scipy.interpolate.BarycentricInterpolator
    """

    _fetched = "add_xi derivative derivatives set_yi"

    def __init__(self, xi, yi=None, axis=0, *, wi=None, rng=None):
        self._make(xi, yi, axis, wi=wi, rng=rng)

    def _evaluate(self, x):
        from ..._array.indexing import where
        places, y = self.xi, self.yi
        apart = x.reshape(-1, 1) - places
        met = apart == 0
        weights = self.wi / where(met, 1.0, apart)
        values = (weights.astype(y.dtype) if y.dtype.kind == "c" else weights) @ y / weights.sum(axis=-1).reshape(-1, 1)
        return where(met.any(axis=-1).reshape(-1, 1), y[met.argmax(axis=-1)], values)
