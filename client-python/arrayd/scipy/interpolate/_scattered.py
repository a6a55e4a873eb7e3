"""Interpolation of values at scattered points."""
import numpy as np

from ..._base import as_array
from .._host import HostMade, to_host, to_server
from . import _points


class _Triangulated(HostMade):
    """An interpolant that SciPy computes on this side, by a triangulation."""

    def __call__(self, *args):
        """Values, computed on this side. args: an array (..., n), or n arrays. Waits."""
        return to_server(self._host(*to_host(args)))


class LinearNDInterpolator(_Triangulated):
    """Piecewise linear interpolation on the triangles (simplices) between points, by SciPy on this side.

    Parameters: points: array (m, n), or a spatial.Delaunay. values: array (m, ...). fill_value: beyond the points. rescale: whether
        each axis is scaled to the unit cube.
    Raises: ValueError where arrays do not fit; SciPy's QhullError for points without a triangulation.
    Source: scipy.interpolate.LinearNDInterpolator
    """

    def __init__(self, points, values, fill_value=np.nan, rescale=False):
        self._make(points, values, fill_value=fill_value, rescale=rescale)


class CloughTocher2DInterpolator(_Triangulated):
    """Piecewise cubic interpolation on the triangles between points of the plane, by SciPy on this side.

    Parameters: points: array (m, 2), or a spatial.Delaunay. values: array (m, ...). fill_value: beyond the points. tol, maxiter: up to
        which error and how often gradients are estimated. rescale: whether each axis is scaled to the unit square.
    Raises: ValueError where arrays do not fit; SciPy's QhullError for points without a triangulation.
    Source: scipy.interpolate.CloughTocher2DInterpolator
    """

    def __init__(self, points, values, fill_value=np.nan, tol=1e-6, maxiter=400, rescale=False):
        self._make(points, values, fill_value=fill_value, tol=tol, maxiter=maxiter, rescale=rescale)


class NearestNDInterpolator:
    """The value of the nearest point.

    Parameters: x: array (m, n) of points, or tuple of n arrays. y: array (m, ...) of values. rescale: whether each axis is scaled to
        the unit cube. tree_options: dict, of spatial.KDTree.
    Raises: ValueError where arrays do not fit.
    Source: scipy.interpolate.NearestNDInterpolator
    """

    def __init__(self, x, y, rescale=False, tree_options=None):
        from ..spatial import KDTree
        x, shape = _points.split_points(x)
        self.values = as_array(y)
        if len(shape) != 2:
            raise ValueError("invalid shape for input data points")
        if self.values.ndim < 1 or self.values.shape[0] != x.shape[0]:
            raise ValueError("different number of values and points")
        if x.shape[1] < 2:
            raise ValueError("input data must be at least 2-D")
        self.offset = self.scale = None
        if rescale:
            from ..._array.indexing import where
            self.offset, width = x.mean(axis=0), x.max(axis=0) - x.min(axis=0)
            self.scale = where(width > 0, width, 1.0)
            x = (x - self.offset) / self.scale
        self.points, self.tree = x, KDTree(x, **dict(tree_options or {}))

    def __call__(self, *args, **query_options):
        """Values. args: an array (..., n), or n arrays. query_options: of KDTree.query."""
        x, shape = _points.split_points(args, self.points.shape[1])
        if x.shape[-1] != self.points.shape[1]:
            raise ValueError("number of dimensions in xi does not match x")
        if self.scale is not None:
            x = (x - self.offset) / self.scale
        distance, place = self.tree.query(x, **query_options)
        far = place == self.points.shape[0]
        values = self.values[place * (~far)]
        if bool(far.any()):
            if values.dtype.kind not in "fc":
                values = values.astype(np.float64)
            values = _points.mask_outside(values, far)
        return values.reshape(shape[:-1] + tuple(self.values.shape[1:]))
