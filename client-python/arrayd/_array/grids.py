"""Matrices and grids: diagonals, triangles, coordinates."""
import builtins
import math
import operator

import numpy as np

from .. import _base, _core
from .._base import as_array, shape_tuple
from .creation import arange, empty, zeros


def eye(N, M=None, k=0, dtype=float, order="C", *, device=None, like=None):
    """Ones on a diagonal and zeros elsewhere.

    Parameters: N: rows. M: columns, N unless given. k: which diagonal, above the main one when positive. dtype: type
    of the elements. order: 'C' or 'F'. device, like: as empty.
    Returns: ndarray of shape (N, M).
    Raises: ValueError for negative dimensions.
    Source: numpy.eye
    """
    if device is not None:
        return _base.on_device(device, eye, N, M, k, dtype, order)
    result = zeros((N, N if M is None else M), dtype, order)
    if result.size:
        line = result.diagonal(operator.index(k))
        if line.size:
            line[...] = 1
    return result


def identity(n, dtype=None, *, like=None):
    """The square identity matrix.

    Parameters: n: rows and columns. dtype: type of the elements, float64 unless given. like: ignored.
    Returns: ndarray of shape (n, n).
    Raises: ValueError for a negative n.
    Source: numpy.identity
    """
    return eye(n, dtype=float if dtype is None else dtype)


def tri(N, M=None, k=0, dtype=float, *, like=None):
    """Ones at and below a diagonal and zeros above.

    Parameters: N: rows. M: columns, N unless given. k: which diagonal. dtype: type of the elements. like: ignored.
    Returns: ndarray of shape (N, M).
    Raises: ValueError for negative dimensions.
    Source: numpy.tri
    """
    columns = N if M is None else M
    k = k if isinstance(k, (int, float, np.floating)) else operator.index(k)
    return (arange(N).reshape(-1, 1) >= arange(-k, columns - k)).astype(dtype, copy=False)


def tril(m, k=0):
    """The lower triangle: elements above a diagonal are set to zero.

    Parameters: m: array of shape (..., N, M). k: which diagonal.
    Returns: ndarray of m's shape.
    Raises: TypeError for a 0-d array.
    Source: numpy.tril
    """
    from .indexing import where
    m = as_array(m)
    return where(_below(m, k), m, m.dtype.type(0))


def triu(m, k=0):
    """The upper triangle: elements below a diagonal are set to zero.

    Parameters: m: array of shape (..., N, M). k: which diagonal.
    Returns: ndarray of m's shape.
    Raises: TypeError for a 0-d array.
    Source: numpy.triu
    """
    from .indexing import where
    m = as_array(m)
    return where(_below(m, k - 1), m.dtype.type(0), m)


def _below(m, k):
    """A mask of the elements of matrices at and below a diagonal; a vector is taken for each of the rows."""
    if m.ndim == 0:
        raise TypeError("a triangle is of an array of at least 1 dimension")
    return tri(*m.shape[-2:] if m.ndim > 1 else m.shape * 2, k=k, dtype=bool)


def diag(v, k=0):
    """A diagonal of a matrix, or a matrix with a given diagonal.

    Parameters: v: array of shape (N, M), or (N,). k: which diagonal.
    Returns: ndarray: the diagonal of a 2-d v (a copy); a square matrix of N + |k| rows for a 1-d v.
    Raises: ValueError for other numbers of dimensions.
    Source: numpy.diag
    """
    v = as_array(v)
    if v.ndim == 2:
        return v.diagonal(k).copy()
    if v.ndim != 1:
        raise ValueError("Input must be 1- or 2-d.")
    size = v.shape[0] + builtins.abs(k)
    result = zeros((size, size), v.dtype)
    if v.size:
        result.diagonal(k)[...] = v
    return result


def diagflat(v, k=0):
    """A matrix with the flattened input on a diagonal.

    Parameters: v: array of any shape. k: which diagonal.
    Returns: ndarray of shape (v.size + |k|, v.size + |k|).
    Raises: nothing of its own.
    Source: numpy.diagflat
    """
    return diag(as_array(v).reshape(-1), k)


def vander(x, N=None, increasing=False):
    """Powers of a vector as the columns of a matrix.

    Parameters: x: array of shape (n,). N: columns, n unless given. increasing: powers 0, 1, ... from the left instead
    of the right.
    Returns: ndarray of shape (n, N).
    Raises: ValueError when x is not 1-d, or for a negative N.
    Source: numpy.vander
    """
    x = as_array(x)
    if x.ndim != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    columns = x.shape[0] if N is None else operator.index(N)
    if columns < 0:
        raise ValueError("negative dimensions are not allowed")
    kind = _base.result_type(x.dtype, int)
    powers = arange(columns) if increasing else arange(columns - 1, -1, -1)
    result = _core.ufuncs["power"](x.reshape(-1, 1).astype(kind), powers.astype(kind))
    return result


def meshgrid(*xi, copy=True, sparse=False, indexing="xy"):
    """Coordinate matrices from coordinate vectors.

    Parameters: xi: 1-d arrays. copy: False gives views (of stride 0). sparse: keep dimensions of size 1 instead of
    spreading them. indexing: 'xy' (the first two axes swapped) or 'ij'.
    Returns: tuple of ndarrays, one for each xi.
    Raises: ValueError for another indexing.
    Source: numpy.meshgrid
    """
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    n = len(xi)
    place = list(builtins.range(n))
    if indexing == "xy" and n > 1:
        place[0], place[1] = 1, 0
    grids = [as_array(x).reshape(tuple(-1 if axis == place[i] else 1 for axis in builtins.range(n)))
             for i, x in enumerate(xi)]
    if not sparse:
        from .manipulation import broadcast_arrays
        grids = broadcast_arrays(*grids)
    return tuple(grid.copy() for grid in grids) if copy else tuple(grids)


def indices(dimensions, dtype=int, sparse=False):
    """The coordinates of a grid.

    Parameters: dimensions: shape of the grid, N of them. dtype: type of the coordinates. sparse: a tuple of arrays
    that broadcast to the grid instead of one array.
    Returns: ndarray of shape (N,) + dimensions, or a tuple of N ndarrays.
    Raises: ValueError for a negative dimension.
    Source: numpy.indices
    """
    dimensions = shape_tuple(dimensions)
    n = len(dimensions)
    lines = [arange(size, dtype=dtype).reshape((1,) * axis + (size,) + (1,) * (n - axis - 1))
             for axis, size in enumerate(dimensions)]
    if sparse:
        return tuple(lines)
    result = empty((n,) + dimensions, dtype)
    for axis, line in enumerate(lines):
        result[axis] = line
    return result


class _Grid:
    """The class of mgrid and ogrid: indexed with slices, they give coordinates; an imaginary step is a count."""

    def __init__(self, sparse):
        self._sparse = sparse

    def __getitem__(self, key):
        if not isinstance(key, (tuple, list)):
            return _line(key)
        parts = [_steps(part) for part in key]
        n, kind = len(parts), _base.result_type(0, *(one for _, _, _, types in parts for one in types))
        sizes = tuple(size for _, _, size, _ in parts)
        if self._sparse:
            lines = (arange(size, dtype=kind) * step + start for start, step, size, _ in parts)
            return tuple(line[tuple(slice(None) if i == axis else None for i in builtins.range(n))]
                         for axis, line in enumerate(lines))
        result = indices(sizes, kind)
        for axis, (start, step, _, _) in enumerate(parts):
            result[axis] = result[axis] * step + start
        return result


def _steps(part):
    """The start and the step of a slice of a grid, numbers or arrays, how many values it has, and what decides their
    type."""
    start = 0 if part.start is None else part.start
    step = 1 if part.step is None else part.step
    start, stop = (one if _base.is_scalar(one) else as_array(one) for one in (start, part.stop))
    if not isinstance(step, (complex, np.complexfloating)):
        return start, step, math.ceil((stop - start) / step), (start, stop, step)
    size = int(builtins.abs(step))
    types = start, stop, builtins.abs(step)
    return start, (stop - start) / float(size - 1) if size != 1 else 1, size, types


def _line(part):
    """The values of one slice of a grid."""
    if not isinstance(part.step, (complex, np.complexfloating)):
        return arange(0 if part.start is None else part.start, part.stop, 1 if part.step is None else part.step)
    start, step, size, types = _steps(part)
    return arange(0, size, 1, dtype=_base.result_type(*types)) * step + start


mgrid = _Grid(False)
ogrid = _Grid(True)


class _Joiner:
    """The class of r_ and c_: indexed with slices, arrays and numbers, they join them along an axis. Arrays of fewer than
    ndmin dimensions get more of size 1; where says which of all is then the first of their own, -1 the last of them. A
    text "axis,ndmin,where" before the others says so for once."""

    def __init__(self, axis, ndmin, where):
        self._settings = axis, ndmin, where

    def __len__(self):
        return 0

    def __getitem__(self, key):
        from .joining import concatenate
        key = key if isinstance(key, tuple) else (key,)
        axis, ndmin, where = self._settings
        if key and isinstance(key[0], str):
            axis, ndmin, where = _directive(key[0], self._settings)
            key = key[1:]
        if any(isinstance(part, str) for part in key):
            raise ValueError("special directives must be the first entry.")
        parts = [_line(part) if isinstance(part, slice) else part for part in key]
        parts = [part if _base.is_scalar(part) else as_array(part) for part in parts]
        kind = _base.result_type(*parts) if parts else None
        return concatenate([_lifted(as_array(part), ndmin, where).astype(kind, copy=False) for part in parts], axis)


def _directive(text, settings):
    """The axis, least number of dimensions and place of an array's own among them that a text for r_ names."""
    if text in ("r", "c"):
        raise NotImplementedError(f"r_[{text!r}, ...] makes a matrix, which arrayd has none of: r_ and c_ join arrays")
    try:
        given = [int(part) for part in text.split(",")]
    except ValueError:
        given = []
    if not 1 <= len(given) <= 3:
        raise ValueError(f"unknown special directive {text!r}: it must be 'axis', 'axis,ndmin' or 'axis,ndmin,where'")
    return (*given, *settings[len(given):])


def _lifted(a, ndmin, where):
    """a with new axes of size 1 before or after its own, so that it has ndmin."""
    new = ndmin - a.ndim
    if new <= 0:
        return a
    first = where if where >= 0 else where + new + 1
    return a.reshape((1,) * first + a.shape + (1,) * (new - first))


r_ = _Joiner(0, 1, -1)
c_ = _Joiner(-1, 2, 0)
