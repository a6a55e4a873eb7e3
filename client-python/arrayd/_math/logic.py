"""Comparing and asking about arrays."""
import builtins
import sys

import numpy as np

from .. import _base, _core
from .._base import as_array, as_operand, ndarray, reduce

_u = _core.ufuncs


def isclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether elements are nearly equal: |a - b| <= atol + rtol*|b|.

    Parameters: a, b: arrays or numbers that broadcast. rtol, atol: tolerances. equal_nan: NaN is close to NaN.
    Returns: bool ndarray of the common shape.
    Raises: ValueError when shapes do not fit.
    Source: numpy.isclose
    """
    a, b, rtol, atol = (as_operand(value) for value in (a, b, rtol, atol))
    if not isinstance(a, ndarray) and not isinstance(b, ndarray):
        a = as_array(a)
    if not isinstance(b, ndarray):
        return _close_to_number(a, b, rtol, atol, equal_nan)
    if b.dtype.kind not in _base.INEXACT:
        b = b.astype(_base.result_type(b.dtype, 1.0))
    near = _u["absolute"](a - b) <= atol + rtol * _u["absolute"](b)
    result = near & _u["isfinite"](b) | (a == b)
    if equal_nan:
        result = result | _u["isnan"](a) & _u["isnan"](b)
    return result


def _close_to_number(a, b, rtol, atol, equal_nan):
    """isclose where b is a number, of which this side knows what it is."""
    if equal_nan and b != b:
        return _u["isnan"](a)
    b = b if isinstance(b, (float, complex, np.inexact)) else float(b)
    if not np.isfinite(b):
        return a == b
    return (_u["absolute"](a - b) <= atol + rtol * abs(b)) | (a == b)


def allclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether all elements are nearly equal.

    Parameters: as isclose.
    Returns: 0-d bool ndarray: bool() of it costs a round trip.
    Raises: ValueError when shapes do not fit.
    Source: numpy.allclose
    """
    return reduce("all", isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1, a2, equal_nan=False):
    """Whether two arrays have one shape and equal elements.

    Parameters: a1, a2: arrays. equal_nan: NaN equals NaN.
    Returns: 0-d bool ndarray: bool() of it costs a round trip.
    Raises: nothing of its own.
    Source: numpy.array_equal
    """
    try:
        a1, a2 = as_array(a1), as_array(a2)
    except (TypeError, ValueError):
        return as_array(False)
    if a1.shape != a2.shape:
        return as_array(False)
    same = a1 == a2
    if equal_nan and a1.dtype.kind in _base.INEXACT and a2.dtype.kind in _base.INEXACT:
        same = same | _u["isnan"](a1) & _u["isnan"](a2)
    return reduce("all", same)


def array_equiv(a1, a2):
    """Whether two arrays broadcast together and have equal elements.

    Parameters: a1, a2: arrays.
    Returns: 0-d bool ndarray: bool() of it costs a round trip.
    Raises: nothing of its own.
    Source: numpy.array_equiv
    """
    try:
        a1, a2 = as_array(a1), as_array(a2)
        np.broadcast_shapes(a1.shape, a2.shape)
    except (TypeError, ValueError):
        return as_array(False)
    return reduce("all", a1 == a2)


def iscomplex(x):
    """Whether elements have an imaginary part other than 0.

    Parameters: x: array.
    Returns: bool ndarray of x's shape.
    Raises: nothing of its own.
    Source: numpy.iscomplex
    """
    x = as_array(x)
    return x.imag != 0 if x.dtype.kind == "c" else _base.zeros(x.shape, np.bool_)


def isreal(x):
    """Whether elements have no imaginary part, or 0.

    Parameters: x: array.
    Returns: bool ndarray of x's shape.
    Raises: nothing of its own.
    Source: numpy.isreal
    """
    x = as_array(x)
    return x.imag == 0 if x.dtype.kind == "c" else _u["logical_not"](_base.zeros(x.shape, np.bool_))


def iscomplexobj(x):
    """Whether an array's type is complex.

    Parameters: x: array, or anything that NumPy asks about.
    Returns: bool.
    Raises: nothing of its own.
    Source: numpy.iscomplexobj
    """
    return x.dtype.kind == "c" if isinstance(x, ndarray) else np.iscomplexobj(x)


def isrealobj(x):
    """Whether an array's type is not complex.

    Parameters: x: array, or anything that NumPy asks about.
    Returns: bool.
    Raises: nothing of its own.
    Source: numpy.isrealobj
    """
    return not iscomplexobj(x)


def isscalar(element):
    """Whether something is a number (not an array, even a 0-d one).

    Parameters: element: anything.
    Returns: bool.
    Raises: nothing of its own.
    Source: numpy.isscalar
    """
    return False if isinstance(element, ndarray) else np.isscalar(element)


def isfortran(a):
    """Whether an array is column-major and not row-major contiguous.

    Parameters: a: array.
    Returns: bool.
    Raises: nothing of its own.
    Source: numpy.isfortran
    """
    return a.flags.f_contiguous and not a.flags.c_contiguous


def ndim(a):
    """Number of dimensions.

    Parameters: a: array or what asarray takes.
    Returns: int.
    Raises: nothing of its own.
    Source: numpy.ndim
    """
    return a.ndim if isinstance(a, ndarray) else np.ndim(a)


def shape(a):
    """Shape.

    Parameters: a: array or what asarray takes.
    Returns: tuple of ints.
    Raises: nothing of its own.
    Source: numpy.shape
    """
    return a.shape if isinstance(a, ndarray) else np.shape(a)


def size(a, axis=None):
    """Number of elements, or along axes.

    Parameters: a: array or what asarray takes. axis: axis or tuple of axes, all unless given.
    Returns: int.
    Raises: AxisError.
    Source: numpy.size
    """
    dimensions = shape(a)
    if axis is None:
        return _base.product(dimensions)
    return _base.product(dimensions[i] for i in _base.normalize_axes(axis, len(dimensions)))


def result_type(*arrays_and_dtypes):
    """The type that results from NumPy's promotion.

    Parameters: arrays_and_dtypes: arrays, numbers (Python's are weak) and dtypes.
    Returns: numpy.dtype.
    Raises: TypeError when there is none; ValueError for no arguments.
    Source: numpy.result_type
    """
    return _base.result_type(*arrays_and_dtypes)


def can_cast(from_, to, casting="safe"):
    """Whether a cast is allowed by a rule.

    Parameters: from_: dtype or array. to: dtype. casting: 'no', 'equiv', 'safe', 'same_kind' or 'unsafe'.
    Returns: bool.
    Raises: TypeError for Python numbers.
    Source: numpy.can_cast
    """
    return np.can_cast(from_.dtype if isinstance(from_, ndarray) else from_, to, casting)


def common_type(*arrays):
    """The inexact type that holds the elements of all arrays.

    Parameters: arrays: arrays.
    Returns: type.
    Raises: TypeError for bool.
    Source: numpy.common_type
    """
    return np.common_type(*(np.empty(0, a.dtype) if isinstance(a, ndarray) else a for a in arrays))


def may_share_memory(a, b, max_work=None):
    """Whether two arrays may have elements in common: whether their bytes overlap, from first to last.

    Parameters: a, b: arrays. max_work: ignored.
    Returns: bool.
    Raises: nothing of its own.
    Source: numpy.may_share_memory
    """
    return (isinstance(a, ndarray) and isinstance(b, ndarray) and a.size > 0 and b.size > 0
            and _core.may_share_memory(a, b))


def shares_memory(a, b, max_work=None):
    """Whether two arrays have a byte in common.

    Parameters: a, b: arrays. max_work: as numpy.shares_memory; None or "MAY_SHARE_EXACT": until it is known;
        "MAY_SHARE_BOUNDS": not at all, as may_share_memory.
    Returns: bool.
    Raises: numpy.exceptions.TooHardError when max_work does not suffice; ValueError for another name.
    Source: numpy.shares_memory; the names are cupy.shares_memory's
    """
    if max_work == "MAY_SHARE_BOUNDS":
        return may_share_memory(a, b)
    if max_work == "MAY_SHARE_EXACT":
        max_work = None
    elif isinstance(max_work, str):
        raise ValueError(f"max_work must be an integer, None, 'MAY_SHARE_BOUNDS' or 'MAY_SHARE_EXACT', not {max_work!r}")
    return may_share_memory(a, b) and np.shares_memory(_Outline(a), _Outline(b), max_work)


class _Outline:
    """Stands for an array's place within the memory that it shares with others: NumPy compares places and reads nothing."""

    def __init__(self, a):
        self.__array_interface__ = {"version": 3, "shape": a.shape, "strides": a.strides, "typestr": f"|V{a.itemsize}",
                                    "data": ((1 << 40) + _core.layout(a)[1], True)}


def get_array_module(*args):
    """The module for some arguments: arrayd if one is an array of the server, else numpy.

    Parameters: args: anything.
    Returns: module.
    Raises: nothing of its own.
    Source: cupy.get_array_module
    """
    import arrayd
    return arrayd if builtins.any(isinstance(arg, ndarray) or _is_sparse(arg) for arg in args) else np


def _is_sparse(arg):
    """Whether arg is a sparse array of the server; those of arrayd.scipy.sparse are not imported to find out."""
    sparse = sys.modules.get("arrayd.scipy.sparse")
    return sparse is not None and sparse.issparse(arg)
