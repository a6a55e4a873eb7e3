"""Choosing elements: by index, by mask, along axes."""
import builtins
import operator

import numpy as np

from .. import _base, _core
from .._base import along, as_array, as_operand, call, give, give_elements, ndarray, normalize_axis, shape_tuple
from .manipulation import broadcast_arrays, read_order

_MOST = (1 << 62) - 1  # bytes that an array may stand for: AD_MAX_BYTES

def _index_array(indices):
    """indices as an int64 array on the server; lists may hold floats, arrays may not, as in NumPy."""
    if not isinstance(indices, (ndarray, np.ndarray)):
        return as_array(np.asarray(indices, np.int64))
    if not np.can_cast(indices.dtype, np.int64, "safe"):
        raise TypeError(f"Cannot cast array data from {indices.dtype!r} to dtype('int64') according to the rule 'safe'")
    return as_array(indices, np.int64)


def _within(index, size):
    """index, failing with IndexError when it is read where an element is not in -size <= index < size."""
    nothing = _base.zeros((1,), np.int8)
    if size > _MOST:
        return index + nothing[((index < -size) | (index >= size)).astype(np.int64)]
    return index + _base.view(nothing, (size,), (0,))[index]


def _sized(shape, message):
    """The product of a shape as NumPy computes it, which must fit 64 bits before a 0 is met: ValueError."""
    if builtins.any(not -1 << 63 <= n < 1 << 63 for n in shape):
        raise ValueError("Maximum allowed dimension exceeded")
    size = 1
    for n in shape:
        size *= n
        if builtins.abs(size) >= 1 << 63:
            raise ValueError(message)
        if not size:
            break
    return size


def _not_negative(index, size):
    """index, with those below 0 out of bounds like those above."""
    return _core.ufuncs["where"](index < 0, size, index)


def _bounded(indices, size, mode):
    """Indices brought within an axis by mode 'wrap' or 'clip'."""
    if mode == "raise":
        return indices
    if mode == "wrap":
        return _core.ufuncs["remainder"](indices, size)
    if mode == "clip":
        return _core.ufuncs["clip"](indices, 0, size - 1)
    raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r})")


def take(a, indices, axis=None, out=None, mode="raise"):
    """Elements, or slices along an axis, by index.

    Parameters: a: array. indices: ints, of any shape. axis: the axis; flattened unless given. out: array to fill.
    mode: 'raise', 'wrap' or 'clip' for indices out of bounds.
    Returns: ndarray: a's shape with the axis replaced by indices' shape.
    Raises: IndexError (when the result is read) for an index out of bounds; AxisError.
    Source: numpy.take
    """
    a, axis = _base.one_axis(as_array(a), axis)
    if mode == "raise" and isinstance(indices, (int, np.integer)) and type(indices) is not bool and a.shape[axis]:
        one = a[along(a.ndim, axis, indices)]
        return one.copy() if out is None else give_elements(one, out)
    index = _bounded(_index_array(indices), a.shape[axis], mode)
    if index.size and a.shape[axis] == 0:
        raise IndexError("cannot do a non-empty take from an empty axes.")
    return give_elements(a[along(a.ndim, axis, index)], out)


def _mesh(shape, axis, ndim):
    """For each axis but one an array of its coordinates, shaped to broadcast."""
    from .creation import arange
    return [None if i == axis else arange(n).reshape((1,) * i + (n,) + (1,) * (ndim - i - 1))
            for i, n in enumerate(shape)]


def _along_axis(arr, indices, axis):
    """The array and the index tuple of take_along_axis and put_along_axis."""
    if axis is None:
        arr, axis = arr.reshape(-1), 0
    axis = normalize_axis(axis, arr.ndim)
    indices = as_array(indices)
    if indices.dtype.kind not in "iu":
        raise IndexError("`indices` must be an integer array")
    if indices.ndim != arr.ndim:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    mesh = _mesh(arr.shape, axis, arr.ndim)
    mesh[axis] = indices
    return arr, tuple(mesh)


def take_along_axis(arr, indices, axis=-1):
    """Elements by index along one axis, the other axes matched: what argsort and argmax give.

    Parameters: arr: array. indices: ints with arr's number of dimensions. axis: the axis; None: both flattened.
    Returns: ndarray of indices' shape (broadcast with arr's other axes).
    Raises: IndexError (when the result is read) out of bounds; ValueError when the dimensions differ.
    Source: numpy.take_along_axis
    """
    arr, key = _along_axis(as_array(arr), indices, axis)
    return arr[key]


def put_along_axis(arr, indices, values, axis):
    """Set elements by index along one axis, the other axes matched.

    Parameters: arr: array that is written. indices: ints with arr's number of dimensions. values: broadcast to
    indices. axis: the axis; None: flattened.
    Returns: None.
    Raises: IndexError (at the next sync) out of bounds; ValueError when the dimensions differ.
    Source: numpy.put_along_axis
    """
    if axis is None:
        _set_flat(arr, _index_array(indices).reshape(-1), as_operand(values))
        return
    arr, key = _along_axis(arr, indices, axis)
    arr[key] = as_operand(values)


def _set_flat(a, index, values):
    """a.reshape(-1)[index] = values for any strides of a."""
    if a.flags.c_contiguous:
        a.reshape(-1)[index] = values
    else:
        index = _core.ufuncs["remainder"](_within(index, a.size), builtins.max(a.size, 1))
        a[_coordinates(index, a.shape)] = values


def put(a, ind, v, mode="raise"):
    """Set elements of the flattened array.

    Parameters: a: array that is written. ind: ints. v: values, repeated when there are fewer than indices. mode:
    'raise', 'wrap' or 'clip' for indices out of bounds.
    Returns: None.
    Raises: IndexError (at the next sync) for an index out of bounds.
    Source: numpy.put
    """
    if not isinstance(a, ndarray):
        raise TypeError(f"argument 1 must be arrayd.ndarray, not {type(a).__name__}")
    index = _bounded(_index_array(ind).reshape(-1), a.size, mode)
    values = as_operand(v)
    if not index.size or (isinstance(values, ndarray) and not values.size):
        return
    if isinstance(values, ndarray):
        from .joining import resize
        values = values.reshape(-1) if values.size in (1, index.size) else resize(values, index.size)
    _set_flat(a, index, values)


def where(condition, x=_base.no_value, y=_base.no_value, /):
    """Elements of x where a condition is true, else of y; with one argument, nonzero(condition).

    Parameters: condition: bool array. x, y: arrays or numbers; the three broadcast together.
    Returns: ndarray, or a tuple of index arrays for one argument (costs a round trip).
    Raises: ValueError when only one of x and y is given or shapes do not fit.
    Source: numpy.where
    """
    given = (x is not _base.no_value) + (y is not _base.no_value)
    if given == 0:
        return nonzero(condition)
    if given == 1:
        raise ValueError("either both or neither of x and y should be given")
    condition = as_operand(condition)
    if isinstance(condition, ndarray) and condition.dtype != np.bool_:
        condition = condition != 0
    elif not isinstance(condition, ndarray):
        condition = bool(condition)
    return _core.ufuncs["where"](condition, as_operand(x), as_operand(y))


def nonzero(a):
    """The indices of the elements that are not zero, row-major; costs a round trip.

    Parameters: a: array, at least 1-d.
    Returns: tuple of int64 ndarrays, one for each axis.
    Raises: ValueError for a 0-d array.
    Source: numpy.nonzero
    """
    a = as_array(a)
    if a.ndim == 0:
        raise ValueError("Calling nonzero on 0d arrays is not allowed. Use np.atleast_1d(scalar).nonzero() instead.")
    found = call("nonzero", (a,))
    return tuple(found[axis] for axis in builtins.range(a.ndim))


def argwhere(a):
    """The indices of the elements that are not zero, one row for each; costs a round trip.

    Parameters: a: array.
    Returns: int64 ndarray of shape (n, a.ndim).
    Raises: nothing of its own.
    Source: numpy.argwhere
    """
    a = as_array(a)
    if a.ndim == 0:
        return call("nonzero", (a.reshape(1),)).transpose()[:, :0]
    return call("nonzero", (a,)).transpose()


def flatnonzero(a):
    """The indices, in the flattened array, of the elements that are not zero; costs a round trip.

    Parameters: a: array.
    Returns: int64 ndarray of shape (n,).
    Raises: nothing of its own.
    Source: numpy.flatnonzero
    """
    return nonzero(as_array(a).reshape(-1))[0]


def compress(condition, a, axis=None, out=None):
    """Slices along an axis where a condition is true; costs a round trip.

    Parameters: condition: 1-d bools, may be shorter than the axis. a: array. axis: the axis; flattened unless given.
    out: array to fill.
    Returns: ndarray.
    Raises: ValueError when condition is not 1-d; AxisError.
    Source: numpy.compress
    """
    a, condition = as_array(a), _known(condition)
    if condition.ndim != 1:
        raise ValueError("condition must be a 1-d array")
    a, axis = _base.one_axis(a, axis)
    if isinstance(condition, np.ndarray):
        return take(a, np.flatnonzero(condition), axis, out)
    if condition.shape[0] == a.shape[axis]:
        return give_elements(a[along(a.ndim, axis, condition.astype(bool, copy=False))], out)
    return take(a, flatnonzero(condition), axis, out)


def _known(value):
    """An array of the server as it is, anything else as a NumPy array: what it decides can be known without asking."""
    return value if isinstance(value, ndarray) else _base.as_host(value, "condition")


def extract(condition, arr):
    """The elements where a condition is true; costs a round trip.

    Parameters: condition: array of arr's size. arr: array.
    Returns: ndarray of shape (n,).
    Raises: nothing of its own.
    Source: numpy.extract
    """
    return compress(_known(condition).reshape(-1), arr)


def choose(a, choices, out=None, mode="raise"):
    """Elements of several arrays, chosen by an array of numbers.

    Parameters: a: ints: which of the choices. choices: sequence of arrays, which broadcast with a. out: array to
    fill. mode: 'raise', 'wrap' or 'clip' for numbers out of bounds.
    Returns: ndarray of the common shape.
    Raises: IndexError (when the result is read) for a number out of bounds.
    Source: numpy.choose
    """
    from .joining import stack
    if not isinstance(a, (ndarray, np.ndarray)):
        a = np.asarray(a)
    which = _index_array(a)
    choices = tuple(choices)
    kind = _base.result_type(*(as_operand(choice) for choice in choices))
    options = [as_array(choice, kind) for choice in choices]
    which = _bounded(which, len(options), mode)
    which, *options = broadcast_arrays(which, *options)
    if mode == "raise":
        which = _not_negative(which, len(options))
    table = stack(options)
    mesh = _mesh(table.shape, 0, table.ndim)
    return give(table[(which[None], *mesh[1:])][0], out, "unsafe")


def select(condlist, choicelist, default=0):
    """For each element the choice that belongs to the first condition that is true.

    Parameters: condlist: sequence of bool arrays. choicelist: as many arrays or numbers. default: where no condition
    is true.
    Returns: ndarray of the common shape.
    Raises: ValueError when the lists differ in length or are empty; TypeError for conditions that are not bool.
    Source: numpy.select
    """
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    if not condlist:
        raise ValueError("select with an empty condition list is not possible")
    kind = _base.result_type(*(as_operand(choice) for choice in choicelist), as_operand(default))
    conditions = [as_array(condition) for condition in condlist]
    for i, condition in enumerate(conditions):
        if condition.dtype != np.bool_:
            raise TypeError(f"invalid entry {i} in condlist: should be boolean ndarray")
    choices = [as_array(choice, kind) for choice in (*choicelist, default)]
    conditions, choices = broadcast_arrays(*conditions), broadcast_arrays(*choices)
    result = choices[-1]
    for condition, choice in zip(reversed(conditions), reversed(choices[:-1])):
        result = where(condition, choice, result)
    return result


def place(arr, mask, vals):
    """Set the elements where a mask is true from a list of values, repeated as often as needed.

    Parameters: arr: array that is written. mask: bools of arr's size. vals: 1-d values.
    Returns: None.
    Raises: ValueError for no values though the mask has true elements (which costs a round trip to know), or a mask of
    another size; TypeError when arr is no array of the server, or for values that cannot be cast safely.
    Source: numpy.place
    """
    if not isinstance(arr, ndarray):
        raise TypeError(f"argument 1 must be arrayd.ndarray, not {type(arr).__name__}")
    mask, vals = as_array(mask), _values(vals, arr.dtype).reshape(-1)
    if mask.size != arr.size:
        raise ValueError("place: mask and data must be the same size")
    mask = mask.astype(bool, copy=False).reshape(arr.shape)
    if vals.size > 1:
        number = call("cumsum", (mask.reshape(-1),), (0,), dtype=np.int64).reshape(arr.shape)
        _core.ufuncs["copy"](vals[(number - 1) % vals.size], out=arr, where=mask)
    elif vals.size:
        _core.ufuncs["copy"](vals.reshape(()), out=arr, where=mask)
    elif mask.any():
        raise ValueError("Cannot insert from an empty array!")


def _values(values, dtype):
    """values as an array of a type; lists become what they are asked to, arrays are cast only safely."""
    if isinstance(values, (ndarray, np.ndarray)):
        if not np.can_cast(values.dtype, dtype, "safe"):
            raise TypeError(f"Cannot cast array data from {values.dtype!r} to {dtype!r} according to the rule 'safe'")
        return as_array(values, dtype)
    return as_array(np.asarray(values, dtype))


def putmask(a, /, mask, values):
    """Set the elements where a mask is true to those of values at the same place (values is repeated).

    Parameters: a: array that is written. mask: bools of a's shape. values: values, read as if repeated to a's size.
    Returns: None.
    Raises: ValueError when mask and a differ in size; TypeError for values that cannot be cast safely.
    Source: numpy.putmask
    """
    from .joining import resize
    mask = as_array(mask, bool)
    if mask.size != a.size:
        raise ValueError("putmask: mask and data must be the same size")
    values = _values(values, a.dtype)
    if not values.size:
        return
    if values.shape != a.shape:
        values = values.reshape(()) if values.size == 1 else resize(values, a.shape)
    _core.ufuncs["copy"](values, out=a, where=mask.reshape(a.shape))


def diagonal(a, offset=0, axis1=0, axis2=1):
    """A view of the diagonals of the planes of two axes.

    Parameters: a: array, at least 2-d. offset: which diagonal, above the main one when positive. axis1, axis2: the
    axes; the diagonal becomes the last axis.
    Returns: ndarray, a view (may be written, unlike NumPy's).
    Raises: ValueError for fewer than 2 dimensions or equal axes; AxisError.
    Source: numpy.diagonal
    """
    a = as_array(a)
    if a.ndim < 2:
        raise ValueError("diag requires an array of at least two dimensions")
    i, j = normalize_axis(axis1, a.ndim, "axis1"), normalize_axis(axis2, a.ndim, "axis2")
    if i == j:
        raise ValueError("axis1 and axis2 cannot be the same")
    offset = operator.index(offset)
    rows, columns = a.shape[i], a.shape[j]
    length = builtins.max(0, builtins.min(rows, columns - offset) if offset >= 0
                          else builtins.min(rows + offset, columns))
    start = (offset * a.strides[j] if offset >= 0 else -offset * a.strides[i]) if length else 0
    rest = [k for k in builtins.range(a.ndim) if k not in (i, j)]
    return _base.view(a, [*(a.shape[k] for k in rest), length],
                      [*(a.strides[k] for k in rest), a.strides[i] + a.strides[j]], start)


def fill_diagonal(a, val, wrap=False):
    """Set the main diagonal.

    Parameters: a: array that is written, at least 2-d; with more dimensions they are equal. val: number, or values
    that are repeated. wrap: start again below a tall matrix' square.
    Returns: None.
    Raises: ValueError for fewer than 2 dimensions or unequal ones.
    Source: numpy.fill_diagonal
    """
    if a.ndim < 2:
        raise ValueError("array must be at least 2-d")
    if a.ndim > 2 and len(set(a.shape)) > 1:
        raise ValueError("All dimensions of input must be of equal length")
    if a.ndim == 2 and wrap:
        from .creation import arange
        put(a, arange(0, a.size, a.shape[1] + 1), val)
        return
    length = builtins.min(a.shape)
    line = _base.view(a, (length,), (builtins.sum(a.strides),))
    value = as_operand(val)
    if isinstance(value, ndarray) and value.size != 1:
        from .joining import resize
        value = resize(value, length)
    if length:
        line[...] = value


def unravel_index(indices, shape, order="C"):
    """Flat indices as coordinates.

    Parameters: indices: ints, each below the product of shape. shape: shape of the array that they index. order: 'C'
    (or None) or 'F'.
    Returns: tuple of int64 ndarrays of indices' shape, one for each dimension.
    Raises: ValueError for another order, a shape of 2**63 elements or more, or an index out of bounds that is on this
    side; IndexError (when the result
    is read) for one on the server; TypeError for indices that are no ints.
    Source: numpy.unravel_index
    """
    shape = shape_tuple(shape)
    if not isinstance(indices, ndarray):
        return tuple(as_array(np.asarray(part)) for part in np.unravel_index(indices, shape, order))
    rows_first = read_order(order, "CF") == "C"
    if indices.dtype.kind not in "iu":
        raise TypeError("only int indices permitted")
    size = _sized(shape, "dimensions are too large; arrays and shapes with a total size greater than 'intp' are not "
                  "supported.")
    return _coordinates(_within(_not_negative(as_array(indices, np.int64), size), size), shape, rows_first)


def _coordinates(index, shape, rows_first=True):
    """Flat indices, known to be from 0 to the product of shape, as coordinates."""
    coordinates, rest = [], index
    dimensions = shape[::-1] if rows_first else shape
    for n in dimensions[:-1]:
        rest, coordinate = _core.ufuncs["divmod"](rest, n)
        coordinates.append(coordinate)
    coordinates.append(rest)
    coordinates = coordinates[:len(shape)]
    return tuple(coordinates[::-1] if rows_first else coordinates)


def ravel_multi_index(multi_index, dims, mode="raise", order="C"):
    """Coordinates as flat indices.

    Parameters: multi_index: tuple of int arrays, one for each dimension. dims: shape of the array that they index.
    mode: 'wrap' or 'clip' bring coordinates within bounds; or a tuple of a mode for each. order: 'C' (or None) or 'F'.
    Returns: int64 ndarray.
    Raises: ValueError when the numbers of dimensions differ, for another mode or order, dimensions whose product is
    2**63 or more, or a coordinate out of bounds
    that is on this side; IndexError (when the result is read) for one on the server.
    Source: numpy.ravel_multi_index
    """
    dims, rows_first = shape_tuple(dims), read_order(order, "CF") == "C"
    if len(multi_index) != len(dims):
        raise ValueError(f"parameter multi_index must be a sequence of length {len(dims)}")
    if not builtins.any(isinstance(index, ndarray) for index in multi_index):
        return as_array(np.asarray(np.ravel_multi_index(tuple(multi_index), dims, mode, order)))
    _sized(dims[::-1] if rows_first else dims,
           "invalid dims: array size defined by dims is larger than the maximum possible size.")
    modes = (mode,) * len(dims) if isinstance(mode, str) else tuple(mode)
    parts = [index if isinstance(index, ndarray) else np.asarray(index) for index in multi_index]
    if builtins.any(part.dtype.kind not in "biu" for part in parts):
        raise TypeError("only int indices permitted")
    if 0 in dims and builtins.any(part.size for part in parts):
        raise ValueError("cannot ravel indices into an array without elements")
    parts = [_bounded(as_array(part, np.int64), n, how) for part, n, how in zip(parts, dims, modes)]
    parts = [_within(_not_negative(part, n), n) if how == "raise" else part
             for part, n, how in zip(parts, dims, modes)]
    if not rows_first:
        parts, dims = parts[::-1], dims[::-1]
    flat = parts[0]
    for part, n in zip(parts[1:], dims[1:]):
        flat = flat * n + part
    return flat


def ix_(*args):
    """Index arrays that choose the cross product of 1-d choices.

    Parameters: args: 1-d sequences of ints or bools (bools on the server cost a round trip).
    Returns: tuple of ndarrays that broadcast together.
    Raises: ValueError when one is not 1-d.
    Source: numpy.ix_
    """
    result = []
    for i, arg in enumerate(args):
        index = arg if isinstance(arg, ndarray) else np.asarray(arg)
        if index.ndim != 1:
            raise ValueError("Cross index must be 1 dimensional")
        if not isinstance(index, ndarray):
            index = np.flatnonzero(index) if index.dtype == np.bool_ else index
            index = as_array(index.astype(np.int64) if index.size == 0 else index)
        elif index.dtype == np.bool_:
            index = flatnonzero(index)
        result.append(index.reshape((1,) * i + (-1,) + (1,) * (len(args) - i - 1)))
    return tuple(result)


def piecewise(x, condlist, funclist, *args, **kw):
    """A function that is defined by parts; every part is computed for all of x.

    Parameters: x: array. condlist: bool arrays of x's shape, or one. funclist: for each a function of an array, or a
    number; one more is for where no condition is true (0 unless given). args, kw: passed to the functions.
    Returns: ndarray of x's shape and type.
    Raises: ValueError when the lists do not fit.
    Source: numpy.piecewise
    """
    from .joining import copyto
    x = as_array(x)
    conditions = [as_array(condition, bool) for condition in _conditions(condlist, x.ndim)]
    if len(funclist) not in (len(conditions), len(conditions) + 1):
        raise ValueError(f"with {len(conditions)} condition(s), either {len(conditions)} or {len(conditions) + 1} "
                         "functions are expected")
    result = _base.zeros(x.shape, x.dtype)
    if len(funclist) > len(conditions):
        others = _core.ufuncs["logical_not"](conditions[0])
        for condition in conditions[1:]:
            others = others & ~condition
        conditions.append(others)
    for condition, function in zip(conditions, funclist):
        value = function(x, *args, **kw) if callable(function) else function
        copyto(result, value, "unsafe", condition)
    return result


def _conditions(condlist, ndim):
    """The conditions of piecewise: one alone, of an array with dimensions, need not be in a list."""
    if isinstance(condlist, (ndarray, np.ndarray)):
        several = condlist.ndim > builtins.min(ndim, 1)
    else:
        several = not _base.is_scalar(condlist) and (
            ndim == 0 or isinstance(condlist[0], (list, ndarray, np.ndarray)))
    return condlist if several else [condlist]


s_ = np.s_
index_exp = np.index_exp
ndindex = np.ndindex
