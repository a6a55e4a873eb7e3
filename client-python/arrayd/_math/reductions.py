"""Reductions and running sums: one function for each row of reduction.def, with NumPy's signature."""
import builtins

import numpy as np

from .. import _base
from .._base import along, as_array, call, give, ndarray, no_value, normalize_axes, normalize_axis, reduce, strict_axis


def _plain(value):
    """None where a parameter was not given."""
    return None if value is no_value else value


def _mask(where):
    """The where= of a reduction: None for everywhere, else a bool array."""
    if where is True or where is no_value or where is None:
        return None
    mask = as_array(where)
    if mask.dtype != np.bool_:
        raise TypeError(f"Cannot cast array data from {mask.dtype!r} to dtype('bool') according to the rule 'safe'")
    return mask


def _keep(keepdims):
    return False if keepdims is no_value else bool(keepdims)


def _total(name, a, axis, dtype, out, keepdims, initial, where):
    """A sum or product. Small integers are computed in 64 bits and wrap when they are cast; bools are any and all."""
    a, kind = as_array(a), None if dtype is None else np.dtype(dtype)
    a = _counted(name, a, kind)
    if kind is None or kind.kind not in "biu" or kind.itemsize == 8 or out is not None:
        return reduce(name, a, axis, dtype, out, _keep(keepdims), _plain(initial), _mask(where))
    if kind.kind == "b":
        return reduce("any" if "sum" in name else "all", a, axis, None, None, _keep(keepdims), None, _mask(where))
    wide = np.uint64 if kind.kind == "u" else np.int64
    return reduce(name, a, axis, wide, None, _keep(keepdims), _plain(initial), _mask(where)).astype(kind)


def _counted(name, a, kind):
    """a with NaN replaced by what does not count, for the functions that pass over it and sum in integers."""
    if not name.startswith("nan") or kind is None or kind.kind not in "biu" or a.dtype.kind not in _base.INEXACT:
        return a
    u = _base._core.ufuncs
    return u["where"](u["isnan"](a), 0 if "sum" in name else 1, a)


def sum(a, axis=None, dtype=None, out=None, keepdims=no_value, initial=no_value, where=no_value):
    """Sum of the elements along axes.

    Parameters: a: array. axis: axis or tuple of axes, all unless given. dtype: type of the sum; int64 or uint64 for
    smaller integers unless given. out: array to fill. keepdims: keep the axes, with size 1. initial: value to begin
    with. where: bool array that broadcasts to a; only elements where it is True are summed.
    Returns: ndarray (0-d for all axes).
    Raises: AxisError; ValueError for an axis named twice.
    Source: numpy.sum
    """
    return _total("sum", a, axis, dtype, out, keepdims, initial, where)


def prod(a, axis=None, dtype=None, out=None, keepdims=no_value, initial=no_value, where=no_value):
    """Product of the elements along axes.

    Parameters: as sum.
    Returns: ndarray (0-d for all axes).
    Raises: AxisError; ValueError for an axis named twice.
    Source: numpy.prod
    """
    return _total("prod", a, axis, dtype, out, keepdims, initial, where)


def _extreme(name, a, axis, out, keepdims, initial, where):
    """min and max: where= needs an initial value, as in NumPy."""
    a = as_array(a)
    if _mask(where) is not None and initial is no_value:
        raise ValueError(f"reduction operation '{name}imum' does not have an identity, so to use a where mask one has "
                         "to specify 'initial'")
    return reduce(name, a, axis, None, out, _keep(keepdims), _plain(initial), _mask(where))


def min(a, axis=None, out=None, keepdims=no_value, initial=no_value, where=no_value):
    """Smallest element along axes; NaN if there is one.

    Parameters: a: array. axis: axis or tuple of axes, all unless given. out: array to fill. keepdims: keep the axes,
    with size 1. initial: greatest value of the result. where: bool array: the elements to look at (needs initial).
    Returns: ndarray (0-d for all axes).
    Raises: ValueError where there is no element and no initial; AxisError.
    Source: numpy.min
    """
    return _extreme("min", a, axis, out, keepdims, initial, where)


def max(a, axis=None, out=None, keepdims=no_value, initial=no_value, where=no_value):
    """Largest element along axes; NaN if there is one.

    Parameters: as min; initial is the least value of the result.
    Returns: ndarray (0-d for all axes).
    Raises: ValueError where there is no element and no initial; AxisError.
    Source: numpy.max
    """
    return _extreme("max", a, axis, out, keepdims, initial, where)


amin, amax = min, max


def any(a, axis=None, out=None, keepdims=no_value, *, where=no_value):
    """Whether any element along axes is true.

    Parameters: a: array. axis: axis or tuple of axes, all unless given. out: array to fill. keepdims: keep the axes,
    with size 1. where: bool array: the elements to look at.
    Returns: bool ndarray (0-d for all axes).
    Raises: AxisError.
    Source: numpy.any
    """
    return reduce("any", as_array(a), axis, None, out, _keep(keepdims), None, _mask(where))


def all(a, axis=None, out=None, keepdims=no_value, *, where=no_value):
    """Whether every element along axes is true.

    Parameters: as any.
    Returns: bool ndarray (0-d for all axes).
    Raises: AxisError.
    Source: numpy.all
    """
    return reduce("all", as_array(a), axis, None, out, _keep(keepdims), None, _mask(where))


def _with_axes(a, axis):
    """a as an array that has these axes: sums take axis 0 of a number, means do not."""
    a = as_array(a)
    if axis is not None and not a.ndim:
        normalize_axes(axis, 0)
    return a


def mean(a, axis=None, dtype=None, out=None, keepdims=no_value, *, where=no_value):
    """Arithmetic mean along axes; NaN where there is no element.

    Parameters: a: array. axis: axis or tuple of axes, all unless given. dtype: type to compute in; float64 for
    integers unless given. out: array to fill. keepdims: keep the axes, with size 1. where: bool array: the elements
    to look at.
    Returns: ndarray (0-d for all axes).
    Raises: AxisError.
    Source: numpy.mean
    """
    return reduce("mean", _with_axes(a, axis), axis, dtype, out, _keep(keepdims), None, _mask(where))


def _correction(ddof, correction):
    if correction is no_value:
        return ddof
    if ddof != 0:
        raise ValueError("ddof and correction can't be provided simultaneously.")
    return correction


def var(a, axis=None, dtype=None, out=None, ddof=0, keepdims=no_value, *, where=no_value, mean=no_value,
        correction=no_value):
    """Variance along axes: the mean of the squared distance to the mean.

    Parameters: a: array. axis, dtype, out, keepdims, where: as mean. ddof: the sum of squares is divided by n - ddof.
    mean: accepted and not needed. correction: another name of ddof.
    Returns: ndarray, real (0-d for all axes).
    Raises: AxisError; ValueError when both ddof and correction are given.
    Source: numpy.var
    """
    return reduce("var", _with_axes(a, axis), axis, dtype, out, _keep(keepdims), None, _mask(where),
                  _correction(ddof, correction))


def std(a, axis=None, dtype=None, out=None, ddof=0, keepdims=no_value, *, where=no_value, mean=no_value,
        correction=no_value):
    """Standard deviation along axes: the square root of the variance.

    Parameters: as var.
    Returns: ndarray, real (0-d for all axes).
    Raises: AxisError; ValueError when both ddof and correction are given.
    Source: numpy.std
    """
    _check_root(out)
    return reduce("std", _with_axes(a, axis), axis, dtype, out, _keep(keepdims), None, _mask(where),
                  _correction(ddof, correction))


def _check_root(out):
    """TypeError for an out that takes no square roots."""
    if isinstance(out, ndarray) and out.dtype.kind not in _base.INEXACT:
        raise TypeError(f"Cannot cast ufunc 'sqrt' output from dtype('float64') to {out.dtype!r} with casting rule "
                        "'same_kind'")


def _index(name, a, axis, out, keepdims, dtype=None):
    """argmin and its like: one axis, or the flattened array."""
    a = as_array(a)
    if axis is not None:
        axis = strict_axis(axis, a.ndim or 1)
    if isinstance(out, ndarray) and not np.can_cast(out.dtype, np.int64, "safe"):
        raise TypeError(f"Cannot cast array data from {out.dtype!r} to dtype('int64') according to the rule 'safe'")
    result = reduce(name, a, axis, None, out, _keep(keepdims))
    return result if dtype is None or out is not None else as_array(result, np.dtype(dtype))


def argmin(a, axis=None, out=None, *, keepdims=no_value, dtype=None):
    """Index of the smallest element, the first of several; of the first NaN if there is one.

    Parameters: a: array. axis: the axis; the index is into the flattened array unless given. out: array to fill.
    keepdims: keep the axis, with size 1. dtype: type of the index, int64 unless given or out says another.
    Returns: ndarray of ints (0-d for the flattened array).
    Raises: ValueError where there is no element; AxisError.
    Source: numpy.argmin
    """
    return _index("argmin", a, axis, out, keepdims, dtype)


def argmax(a, axis=None, out=None, *, keepdims=no_value, dtype=None):
    """Index of the largest element, the first of several; of the first NaN if there is one.

    Parameters: as argmin.
    Returns: ndarray of ints (0-d for the flattened array).
    Raises: ValueError where there is no element; AxisError.
    Source: numpy.argmax
    """
    return _index("argmax", a, axis, out, keepdims, dtype)


def nanargmin(a, axis=None, out=None, *, keepdims=no_value):
    """Index of the smallest element that is not NaN; -1 where all are (NumPy raises, which would take waiting).

    Parameters: as argmin.
    Returns: int64 ndarray (0-d for the flattened array).
    Raises: ValueError where there is no element; AxisError.
    Source: numpy.nanargmin
    """
    return _index("nanargmin", a, axis, out, keepdims)


def nanargmax(a, axis=None, out=None, *, keepdims=no_value):
    """Index of the largest element that is not NaN; -1 where all are (NumPy raises, which would take waiting).

    Parameters: as argmin.
    Returns: int64 ndarray (0-d for the flattened array).
    Raises: ValueError where there is no element; AxisError.
    Source: numpy.nanargmax
    """
    return _index("nanargmax", a, axis, out, keepdims)


def count_nonzero(a, axis=None, *, keepdims=False):
    """Number of elements along axes that are not zero.

    Parameters: a: array. axis: axis or tuple of axes, all unless given. keepdims: keep the axes, with size 1.
    Returns: int64 ndarray (0-d for all axes).
    Raises: AxisError.
    Source: numpy.count_nonzero
    """
    return reduce("count_nonzero", as_array(a), axis, None, None, keepdims)


def ptp(a, axis=None, out=None, keepdims=no_value):
    """Largest minus smallest element along axes.

    Parameters: as min, without initial and where.
    Returns: ndarray (0-d for all axes).
    Raises: ValueError where there is no element; AxisError.
    Source: numpy.ptp
    """
    a = as_array(a)
    result = max(a, axis, None, keepdims) - min(a, axis, None, keepdims)
    return give(result, out)


def nansum(a, axis=None, dtype=None, out=None, keepdims=no_value, initial=no_value, where=no_value):
    """Sum of the elements that are not NaN.

    Parameters: as sum.
    Returns: ndarray (0-d for all axes).
    Raises: AxisError.
    Source: numpy.nansum
    """
    return _total("nansum", a, axis, dtype, out, keepdims, initial, where)


def nanprod(a, axis=None, dtype=None, out=None, keepdims=no_value, initial=no_value, where=no_value):
    """Product of the elements that are not NaN.

    Parameters: as sum.
    Returns: ndarray (0-d for all axes).
    Raises: AxisError.
    Source: numpy.nanprod
    """
    return _total("nanprod", a, axis, dtype, out, keepdims, initial, where)


def nanmin(a, axis=None, out=None, keepdims=no_value, initial=no_value, where=no_value):
    """Smallest element that is not NaN; NaN where all are.

    Parameters: as min.
    Returns: ndarray (0-d for all axes).
    Raises: ValueError where there is no element; AxisError.
    Source: numpy.nanmin
    """
    return reduce("nanmin", as_array(a), axis, None, out, _keep(keepdims), _plain(initial), _mask(where))


def nanmax(a, axis=None, out=None, keepdims=no_value, initial=no_value, where=no_value):
    """Largest element that is not NaN; NaN where all are.

    Parameters: as max.
    Returns: ndarray (0-d for all axes).
    Raises: ValueError where there is no element; AxisError.
    Source: numpy.nanmax
    """
    return reduce("nanmax", as_array(a), axis, None, out, _keep(keepdims), _plain(initial), _mask(where))


def _check_inexact(dtype, out):
    """TypeError for integers as the type of what divides floats."""
    if dtype is not None and np.dtype(dtype).kind not in _base.INEXACT:
        raise TypeError("If a is inexact, then dtype must be inexact")
    if out is not None and out.dtype.kind not in _base.INEXACT:
        raise TypeError("If a is inexact, then out must be inexact")


def nanmean(a, axis=None, dtype=None, out=None, keepdims=no_value, *, where=no_value):
    """Mean of the elements that are not NaN; NaN where there is none.

    Parameters: as mean.
    Returns: ndarray (0-d for all axes).
    Raises: AxisError.
    Source: numpy.nanmean
    """
    a = as_array(a)
    if a.dtype.kind not in _base.INEXACT:
        return mean(a, axis, dtype, out, keepdims, where=where)
    _check_inexact(dtype, out)
    return reduce("nanmean", a, axis, dtype, out, _keep(keepdims), None, _mask(where))


def nanvar(a, axis=None, dtype=None, out=None, ddof=0, keepdims=no_value, *, where=no_value, mean=no_value,
           correction=no_value):
    """Variance of the elements that are not NaN.

    Parameters: as var.
    Returns: ndarray, real (0-d for all axes).
    Raises: AxisError.
    Source: numpy.nanvar
    """
    a = as_array(a)
    if a.dtype.kind not in _base.INEXACT:
        return var(a, axis, dtype, out, ddof, keepdims, where=where, correction=correction)
    _check_inexact(dtype, out)
    return reduce("nanvar", a, axis, dtype, out, _keep(keepdims), None, _mask(where), _correction(ddof, correction))


def nanstd(a, axis=None, dtype=None, out=None, ddof=0, keepdims=no_value, *, where=no_value, mean=no_value,
           correction=no_value):
    """Standard deviation of the elements that are not NaN.

    Parameters: as var.
    Returns: ndarray, real (0-d for all axes).
    Raises: AxisError.
    Source: numpy.nanstd
    """
    a = as_array(a)
    if a.dtype.kind not in _base.INEXACT:
        return std(a, axis, dtype, out, ddof, keepdims, where=where, correction=correction)
    _check_root(out)
    _check_inexact(dtype, out)
    return reduce("nanstd", a, axis, dtype, out, _keep(keepdims), None, _mask(where), _correction(ddof, correction))


def _scan_type(dtype):
    """The type in which integers are summed: the platform's int unless they are as wide."""
    if dtype.kind in "bi":
        return np.dtype(np.int64)
    return np.dtype(np.uint64) if dtype.kind == "u" else dtype


def _scan(name, a, axis, dtype, out):
    a, axis = _base.one_axis(as_array(a), axis)
    kind = np.dtype(dtype) if dtype is not None else out.dtype if isinstance(out, ndarray) else _scan_type(a.dtype)
    a = _counted(name, a, kind)
    if kind == np.bool_:
        return give(call(name, (as_array(a, bool),), (axis,), dtype=np.int64) != 0, out)
    wide = _scan_type(kind)
    if wide == kind and _fits(out, a.shape, kind):
        return call(name, (a,), (axis,), dtype=wide, out=out)
    return give(call(name, (a,), (axis,), dtype=wide).astype(kind, copy=False), out)


def _fits(out, shape, dtype):
    """Whether an operation whose result has that shape and type may write it to out, if there is one."""
    return out is None or (isinstance(out, ndarray) and out.shape == shape and out.dtype == dtype)


def cumsum(a, axis=None, dtype=None, out=None):
    """Running sum along an axis.

    Parameters: a: array. axis: the axis; flattened unless given. dtype: type of the sums; int64 or uint64 for smaller
    integers unless given. out: array to fill.
    Returns: ndarray of a's shape, or 1-d.
    Raises: AxisError.
    Source: numpy.cumsum
    """
    return _scan("cumsum", a, axis, dtype, out)


def cumprod(a, axis=None, dtype=None, out=None):
    """Running product along an axis.

    Parameters: as cumsum.
    Returns: ndarray of a's shape, or 1-d.
    Raises: AxisError.
    Source: numpy.cumprod
    """
    return _scan("cumprod", a, axis, dtype, out)


def nancumsum(a, axis=None, dtype=None, out=None):
    """Running sum along an axis, with NaN as 0.

    Parameters: as cumsum.
    Returns: ndarray of a's shape, or 1-d.
    Raises: AxisError.
    Source: numpy.nancumsum
    """
    return _scan("nancumsum", a, axis, dtype, out)


def nancumprod(a, axis=None, dtype=None, out=None):
    """Running product along an axis, with NaN as 1.

    Parameters: as cumsum.
    Returns: ndarray of a's shape, or 1-d.
    Raises: AxisError.
    Source: numpy.nancumprod
    """
    return _scan("nancumprod", a, axis, dtype, out)


def _cumulative(name, x, axis, dtype, out, include_initial, first):
    x = as_array(x)
    if axis is None:
        if x.ndim > 1:
            raise ValueError("For arrays which have more than one dimension ``axis`` argument is required.")
        axis = 0
    x = x.reshape(1) if x.ndim == 0 else x
    axis = normalize_axis(axis, x.ndim)
    if not include_initial:
        return _scan(name, x, axis, dtype, out)
    kind = np.dtype(dtype) if dtype is not None else out.dtype if isinstance(out, ndarray) else _scan_type(x.dtype)
    shape = x.shape[:axis] + (x.shape[axis] + 1,) + x.shape[axis + 1:]
    result = out if _fits(out, shape, kind) and out is not None else _base.zeros(shape, kind)
    result[along(x.ndim, axis, slice(0, 1))] = first
    _scan(name, x, axis, kind, result[along(x.ndim, axis, slice(1, None))])
    return result if result is out else give(result, out)


def cumulative_sum(x, /, *, axis=None, dtype=None, out=None, include_initial=False):
    """Running sum along an axis, on request with 0 before it.

    Parameters: x: array, 1-d unless axis is given. axis, dtype, out: as cumsum. include_initial: put a 0 first.
    Returns: ndarray.
    Raises: ValueError for more dimensions without axis; AxisError.
    Source: numpy.cumulative_sum
    """
    return _cumulative("cumsum", x, axis, dtype, out, include_initial, 0)


def cumulative_prod(x, /, *, axis=None, dtype=None, out=None, include_initial=False):
    """Running product along an axis, on request with 1 before it.

    Parameters: as cumulative_sum; include_initial puts a 1 first.
    Returns: ndarray.
    Raises: ValueError for more dimensions without axis; AxisError.
    Source: numpy.cumulative_prod
    """
    return _cumulative("cumprod", x, axis, dtype, out, include_initial, 1)


def median(a, axis=None, out=None, overwrite_input=False, keepdims=False):
    """Median along axes: the middle one of the sorted elements or the mean of the two middle ones; NaN if there is one.

    Parameters: a: real array. axis: axis or tuple of axes, all unless given. out: array to fill. overwrite_input: a may
    be sorted in place, which saves a copy. keepdims: keep the axes, with size 1.
    Returns: ndarray (0-d for all axes); integers give float64.
    Raises: AxisError.
    Source: numpy.median
    """
    a = as_array(a)
    axes = normalize_axes(axis, a.ndim)
    rows = _rows(a, axes)
    kind = rows.dtype if rows.dtype.kind in _base.INEXACT else np.dtype(float)
    n = rows.shape[-1]
    if n == 0:
        result = _base.zeros(rows.shape[:-1], kind)
        result[...] = np.nan
    else:
        rows = call("sort", (rows,), (rows.ndim - 1,), out=rows if overwrite_input else None)
        result = reduce("mean", rows[..., (n - 1) // 2:n // 2 + 1], rows.ndim - 1)
        result = _nan_where_last(result, rows)
    return give(_kept(result, a, axes, keepdims), out, "unsafe")


def nanmedian(a, axis=None, out=None, overwrite_input=False, keepdims=no_value):
    """Median along axes of the elements that are not NaN; NaN where there is none.

    Parameters: as median.
    Returns: ndarray (0-d for all axes).
    Raises: AxisError.
    Source: numpy.nanmedian
    """
    a = as_array(a)
    if a.dtype.kind not in _base.INEXACT or not a.size:
        return median(a, axis, out, overwrite_input, _keep(keepdims))
    from .._array.indexing import take_along_axis
    axes = normalize_axes(axis, a.ndim)
    rows = _rows(a, axes)
    rows = call("sort", (rows,), (rows.ndim - 1,), out=rows if overwrite_input else None)
    count = reduce("count_nonzero", rows == rows, rows.ndim - 1, keepdims=True)
    # Of n numbers those at (n-1)//2 and n//2; of none those at -1 and 0, which are NaN.
    middle = (count - _base.iota(2, 1, -1, np.int64)) // 2
    return give(_kept(reduce("mean", take_along_axis(rows, middle, -1), rows.ndim - 1), a, axes, _keep(keepdims)), out,
                "unsafe")


def _rows(a, axes):
    """a with some axes flattened into one, the last."""
    rest = [i for i in builtins.range(a.ndim) if i not in axes]
    count = _base.product(a.shape[i] for i in axes)
    return a.transpose(rest + list(axes)).reshape(tuple(a.shape[i] for i in rest) + (count,))


def _kept(result, a, axes, keepdims):
    """result with the reduced axes put back when they are to be kept."""
    if not keepdims:
        return result
    return result.reshape(tuple(1 if i in axes else n for i, n in enumerate(a.shape)))


def _nan_where_last(result, rows):
    """result, with NaN where the last element of sorted rows is one."""
    if rows.dtype.kind not in _base.INEXACT:
        return result
    from .._array.indexing import where
    last = rows[..., -1]
    return where(last != last, last, result)
