"""Helpers that every module of the package uses: arguments to arrays, axes, types, and operations by the name of their
row."""
import math
import operator

import numpy as np
from numpy.exceptions import AxisError

from . import _core
from ._core import ndarray

newaxis = None
# dtype.kind of what has a fraction, of what may be NaN: V is bfloat16's, the only one of that kind that arrays have.
FLOATING, INEXACT = "fV", "fcV"
_WEAK = (bool, int, float, complex)
_SCALARS = (*_WEAK, np.generic)
_MOST = 64  # arguments of result_dtype


class _NoValue:
    """The default of a parameter for which None means something."""

    def __repr__(self):
        return "<no value>"


no_value = _NoValue()


def is_scalar(value):
    """Whether value is a Python or NumPy number, which goes inline with an operation instead of as an array."""
    return isinstance(value, _SCALARS)


def as_array(value, dtype=None):
    """value as an array on the server: itself when it is one (and dtype fits), else uploaded."""
    if isinstance(value, ndarray):
        return value if dtype is None or value.dtype == dtype else value.astype(dtype)
    from ._array.creation import array
    return array(value, dtype=dtype, copy=None)


def units_of(a):
    """The array itself; of structures the array of unsigned integers that the server has of them."""
    return getattr(a, "_units", a)


def as_operand(value):
    """value as something a ufunc takes: a number or an array as it is, anything else uploaded."""
    return value if is_scalar(value) else as_array(value)


def as_host(value, what):
    """value as a NumPy array on this side, for arguments that decide a shape: an array of the server is fetched."""
    try:
        return value.get() if isinstance(value, ndarray) else np.asarray(value)
    except TypeError as error:
        raise TypeError(f"{what}: {error}") from None


def check_copy(copy):
    """Refuse text, which would be true, "False" as well."""
    if isinstance(copy, str):
        raise ValueError("strings are not allowed for 'copy' keyword. Use True/False/None instead.")


def shape_tuple(shape):
    """A shape argument (an int or a sequence of ints) as a tuple."""
    if isinstance(shape, ndarray):
        shape = shape.get()
    if shape is None:
        raise TypeError("a shape must be an int or a tuple of ints, not None. Use () for an array without dimensions")
    try:
        return (_dimension(shape),)
    except TypeError:
        if isinstance(shape, bool):
            raise
        return tuple(_dimension(n) for n in shape)


def _dimension(n):
    if isinstance(n, bool):
        raise TypeError("an integer is required for a dimension, not a bool")
    return operator.index(n)


def packed_strides(shape, itemsize, order="C"):
    """Strides in bytes of elements that lie one behind the other."""
    strides = []
    for length in reversed(shape) if order != "F" else shape:
        strides.append(itemsize)
        itemsize *= max(length, 1)
    return tuple(strides if order == "F" else reversed(strides))


def normalize_axis(axis, ndim, name=None):
    """axis counted from the front; numpy.exceptions.AxisError when there is no such axis."""
    index = operator.index(axis)
    if not -ndim <= index < ndim:
        raise AxisError(index, ndim, name)
    return index + ndim if index < 0 else index


def strict_axis(axis, ndim, name=None):
    """normalize_axis of functions that NumPy has in C, which refuse bools."""
    if isinstance(axis, (bool, np.bool_)):
        raise TypeError(f"an integer is required for the axis, not {axis!r}")
    return normalize_axis(axis, ndim, name)


def one_axis(a, axis):
    """The array and the axis that a function works along: None flattens, and a 0-d array is taken as of 1 element."""
    if axis is None:
        return a.reshape(-1), 0
    a = a if a.ndim else a.reshape(1)
    return a, strict_axis(axis, a.ndim)


def normalize_axes(axis, ndim, name=None):
    """None, an axis or several as a tuple of axes counted from the front; ValueError for one named twice."""
    if axis is None:
        return tuple(range(ndim))
    if not isinstance(axis, (tuple, list)):
        return (normalize_axis(axis, ndim, name),)
    axes = tuple(normalize_axis(one, ndim, name) for one in axis)
    if len(set(axes)) != len(axes):
        raise ValueError(f"repeated axis in `{name}` argument" if name else "repeated axis")
    return axes


def strict_axes(axis, ndim):
    """normalize_axes of functions that NumPy has in C, which refuse bools."""
    for one in axis if isinstance(axis, (tuple, list)) else (axis,):
        if one is not None:
            strict_axis(one, ndim)
    return normalize_axes(axis, ndim)


def result_type(*values):
    """numpy.result_type, of arrays, dtypes and numbers (Python's are weak); it knows bfloat16."""
    if not values:
        raise ValueError("at least one array or dtype is required")
    kinds = [_type_of(value) for value in values]
    if len(kinds) > _MOST:  # each type once: there are few
        kinds = {type(kind) if type(kind) in _WEAK else getattr(kind, "dtype", kind): kind for kind in kinds}.values()
    try:
        return _core.result_dtype(*kinds)
    except TypeError:
        dtypes = [kind if type(kind) in _WEAK else getattr(kind, "dtype", kind) for kind in kinds]
        if not any(isinstance(kind, np.dtype) and issubclass(kind.type, np.void) for kind in dtypes):
            raise
        return np.result_type(*dtypes)


def _type_of(value):
    if isinstance(value, ndarray) or is_scalar(value):
        return value
    return np.dtype(value) if isinstance(value, (np.dtype, type, str)) else np.asarray(value).dtype


def along(ndim, axis, index):
    """The index tuple that applies index to one axis and takes the others whole."""
    return (slice(None),) * axis + (index,) + (slice(None),) * (ndim - axis - 1)


# Views, new arrays and rows of call.def and reduction.def by name: as client-python/src/README.md says.
view, empty, zeros, call, reduce = _core.view, _core.empty, _core.zeros, _core.call, _core.reduce


def matrix_product(a, b):
    """(..., m, k) by (..., k, n) of one type; in TF32 where the environment asks for that."""
    return call("matmul", (a, b), (_core.tf32,))


def iota(length, first, delta, dtype):
    """first, first + delta, ...: a new 1-d array."""
    return call("iota", (), (first, delta), dtype=dtype, shape=(length,))


def give(result, out, casting="same_kind"):
    """result, or out filled with it; out's shape must be the result's, and the cast to its type allowed by a rule."""
    if out is None:
        return result
    if not isinstance(out, ndarray):
        raise TypeError("return arrays must be of arrayd.ndarray")
    if out.shape != result.shape:
        raise ValueError(f"output array has shape {out.shape}, the result has {result.shape}")
    if not np.can_cast(result.dtype, out.dtype, casting):
        raise TypeError(f"Cannot cast result from {result.dtype!r} to {out.dtype!r} with casting rule {casting!r}")
    out[...] = result
    return out


def give_product(result, out):
    """As give, for products: out must be C-contiguous and have the result's type."""
    fits = isinstance(out, ndarray) and out.dtype == result.dtype and out.ndim == result.ndim and out.flags.c_contiguous
    if isinstance(out, ndarray) and not fits:
        raise ValueError("output array is not acceptable (must have the right datatype, number of dimensions, and be a "
                         "C-Array)")
    return give(result, out)


_CHOSEN_ARE_CHECKED = np.lib.NumpyVersion(np.__version__) < "2.5.0"


def give_elements(result, out):
    """As give, for elements that were chosen: they are cast to out's type whatever that loses. Before NumPy 2.5 out's type had
    to be one that casts safely to theirs."""
    if isinstance(out, ndarray) and _CHOSEN_ARE_CHECKED and not np.can_cast(out.dtype, result.dtype, "safe"):
        raise TypeError(f"Cannot cast array data from {out.dtype!r} to {result.dtype!r} according to the rule 'safe'")
    return give(result, out, "unsafe")


def on_device(device, function, *args, **kwargs):
    """function(*args, **kwargs), computed on a device (a cuda.Device or its number), or on several: "all" or a
    sharding.NamedSharding."""
    from .cuda import Device
    if not isinstance(device, (Device, int, np.integer)):
        from .sharding import _create
        return _create.create(device, function, args, kwargs)
    with Device(device):
        return function(*args, **kwargs)


def product(shape):
    """Number of elements of a shape."""
    return math.prod(shape)
