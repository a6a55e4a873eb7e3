"""Joining, splitting, repeating, adding and removing."""
import builtins
import itertools
import operator
import warnings

import numpy as np
from numpy.exceptions import ComplexWarning

from .. import _base, _core
from .._base import along, as_array, call, ndarray, normalize_axes, normalize_axis, shape_tuple
from .manipulation import atleast_1d, atleast_2d, atleast_3d, broadcast_to, expand_dims, moveaxis


def concatenate(arrays, /, axis=0, out=None, *, dtype=None, casting="same_kind"):
    """Arrays one after another along an axis.

    Parameters: arrays: sequence of arrays whose shapes agree but along axis. axis: the axis; None flattens first.
    out: array to fill. dtype: type of the result. casting: which casts are allowed.
    Returns: ndarray.
    Raises: ValueError when the shapes do not agree or there is nothing to join; TypeError for a cast.
    Source: numpy.concatenate
    """
    made = _join_alike(arrays, axis) if out is dtype is None else None
    if made is not None:
        return made
    arrays = [_base.as_operand(a) for a in arrays]
    if not arrays:
        raise ValueError("need at least one array to concatenate")
    if axis is None:  # only then may there be numbers, of which Python's do not decide the type
        kind = _base.result_type(*arrays) if dtype is None and out is None else None
        parts = [as_array(a, kind if type(a) in (int, float, complex) else None).reshape(-1) for a in arrays]
        axis = 0
    else:
        parts = [as_array(a) for a in arrays]
    if any(part.ndim == 0 for part in parts):
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    axis = _base.strict_axis(axis, parts[0].ndim)
    shape = _joined_shape([part.shape for part in parts], axis)
    return _fill_along(_join_output(out, dtype, shape, [part.dtype for part in parts], casting), axis, parts)


def _join_alike(arrays, axis):
    """concatenate's result where that is easily said: of a list of arrays of one type whose shapes agree; else None."""
    first = arrays[0] if isinstance(arrays, (list, tuple)) and arrays else None
    if type(first) is not ndarray or type(axis) is not int or not 0 <= axis < first.ndim:
        return None
    dtype, shape, length = first.dtype, first.shape, 0
    before, after = shape[:axis], shape[axis + 1:]
    for part in arrays:
        if type(part) is not ndarray or part.dtype != dtype:
            return None
        shape = part.shape
        if shape[:axis] != before or shape[axis + 1:] != after or len(shape) == axis:
            return None
        length += shape[axis]
    return _fill_along(_base.empty((*before, length, *after), dtype), axis, arrays)


def _fill_along(out, axis, parts):
    """Put arrays one behind another along an axis of out, which has their lengths in all. Returns out."""
    start, whole = 0, (slice(None),) * axis
    for part in parts:
        stop = start + part.shape[axis]
        if part.size:
            out[(*whole, slice(start, stop))] = part
        start = stop
    return out


def _joined_shape(shapes, axis):
    first = shapes[0]
    for i, shape in enumerate(shapes):
        if len(shape) != len(first):
            raise ValueError("all the input arrays must have same number of dimensions, but the array at index 0 has "
                             f"{len(first)} dimension(s) and the array at index {i} has {len(shape)} dimension(s)")
        for d, (n, m) in enumerate(zip(first, shape)):
            if n != m and d != axis:
                raise ValueError("all the input array dimensions except for the concatenation axis must match exactly,"
                                 f" but along dimension {d}, the array at index 0 has size {n} and the array at index "
                                 f"{i} has size {m}")
    return first[:axis] + (builtins.sum(shape[axis] for shape in shapes),) + first[axis + 1:]


def _join_output(out, dtype, shape, dtypes, casting):
    if out is not None and dtype is not None:
        raise TypeError("concatenate() only takes `out` or `dtype` as an argument, but both were provided.")
    if out is not None and out.shape != shape:
        raise ValueError("Output array is the wrong shape")
    kind = out.dtype if out is not None else np.dtype(dtype) if dtype is not None else _base.result_type(*dtypes)
    for one in dtypes:
        if not np.can_cast(one, kind, casting):
            raise TypeError(f"Cannot cast array data from {one!r} to {kind!r} according to the rule {casting!r}")
    if kind.kind not in "c" and any(one.kind == "c" for one in dtypes):
        warnings.warn("Casting complex values to real discards the imaginary part", ComplexWarning, stacklevel=3)
    return _base.empty(shape, kind) if out is None else out


concat = concatenate


def stack(arrays, axis=0, out=None, *, dtype=None, casting="same_kind"):
    """Arrays of one shape along a new axis.

    Parameters: arrays: sequence of arrays of shape S. axis: where the new axis is in the result. out: array to fill.
    dtype: type of the result. casting: which casts are allowed.
    Returns: ndarray.
    Raises: ValueError when shapes differ or there is nothing to join; AxisError.
    Source: numpy.stack
    """
    parts = [as_array(a) for a in arrays]
    if not parts:
        raise ValueError("need at least one array to stack")
    if any(part.shape != parts[0].shape for part in parts):
        raise ValueError("all input arrays must have the same shape")
    axis = normalize_axis(axis, parts[0].ndim + 1)
    return concatenate([expand_dims(part, axis) for part in parts], axis, out, dtype=dtype, casting=casting)


def vstack(tup, *, dtype=None, casting="same_kind"):
    """Arrays one above another: along the first axis, 1-d arrays as rows.

    Parameters: tup: sequence of arrays. dtype, casting: as concatenate.
    Returns: ndarray, at least 2-d.
    Raises: ValueError when shapes do not agree.
    Source: numpy.vstack
    """
    return concatenate([atleast_2d(a) for a in tup], 0, dtype=dtype, casting=casting)


def hstack(tup, *, dtype=None, casting="same_kind"):
    """Arrays side by side: along the second axis, or the first for 1-d arrays.

    Parameters: tup: sequence of arrays. dtype, casting: as concatenate.
    Returns: ndarray, at least 1-d.
    Raises: ValueError when shapes do not agree.
    Source: numpy.hstack
    """
    parts = [atleast_1d(a) for a in tup]
    return concatenate(parts, 0 if parts and parts[0].ndim == 1 else 1, dtype=dtype, casting=casting)


def dstack(tup):
    """Arrays along the third axis.

    Parameters: tup: sequence of arrays.
    Returns: ndarray, at least 3-d.
    Raises: ValueError when shapes do not agree.
    Source: numpy.dstack
    """
    return concatenate([atleast_3d(a) for a in tup], 2)


def column_stack(tup):
    """1-d arrays as columns, 2-d arrays side by side.

    Parameters: tup: sequence of 1-d or 2-d arrays.
    Returns: ndarray, 2-d.
    Raises: ValueError when shapes do not agree.
    Source: numpy.column_stack
    """
    parts = [as_array(a) for a in tup]
    return concatenate([a.reshape(-1, 1) if a.ndim < 2 else a for a in parts], 1)


def block(arrays):
    """An array put together from nested lists of blocks.

    Parameters: arrays: nested lists of arrays; the innermost are joined along the last axis.
    Returns: ndarray, a copy.
    Raises: ValueError when depths or shapes do not agree.
    Source: numpy.block
    """
    depth = _depth(arrays)
    leaves = _leaves(arrays)
    ndim = builtins.max(depth, *(a.ndim for a in leaves))
    shape, places = _block(arrays, depth, ndim)
    result = _base.empty(shape, _base.result_type(*(leaf.dtype for leaf in leaves)))
    for place, leaf in zip(places, leaves):
        if leaf.size:
            result[place] = leaf
    return result


def _depth(nest):
    if not isinstance(nest, list):
        return 0
    if not nest:
        raise ValueError("List at arrays cannot be empty")
    depths = {_depth(part) for part in nest}
    if len(depths) != 1:
        raise ValueError("List depths are mismatched.")
    return 1 + depths.pop()


def _leaves(nest):
    return [leaf for part in nest for leaf in _leaves(part)] if isinstance(nest, list) else [as_array(nest)]


def _block(nest, depth, ndim):
    """The shape of a nest, and for each of its leaves in order the slices where it goes."""
    if depth == 0:
        shape = np.shape(nest)
        shape = (1,) * (ndim - len(shape)) + shape
        return shape, [tuple(slice(0, n) for n in shape)]
    blocks = [_block(part, depth - 1, ndim) for part in nest]
    axis = ndim - depth
    shape = _joined_shape([shape for shape, _ in blocks], axis)
    places, start = [], 0
    for one, inside in blocks:
        places += [_moved(place, axis, start) for place in inside]
        start += one[axis]
    return shape, places


def _moved(place, axis, by):
    """Slices with one of them moved."""
    return (*place[:axis], slice(place[axis].start + by, place[axis].stop + by), *place[axis + 1:])


def array_split(ary, indices_or_sections, axis=0):
    """Views of parts along an axis; the parts of an uneven split differ by one.

    Parameters: ary: array. indices_or_sections: how many parts, or where to cut. axis: the axis.
    Returns: list of ndarrays, views.
    Raises: ValueError for fewer than 1 part; AxisError.
    Source: numpy.array_split
    """
    a = as_array(ary)
    axis = normalize_axis(axis, a.ndim)
    size = a.shape[axis]
    if np.ndim(indices_or_sections):
        cuts = [0, *(operator.index(i) for i in indices_or_sections), size]
    else:
        parts = operator.index(indices_or_sections)
        if parts <= 0:
            raise ValueError("number sections must be larger than 0.") from None
        each, more = divmod(size, parts)
        cuts = [i * each + builtins.min(i, more) for i in builtins.range(parts + 1)]
    return [a[along(a.ndim, axis, slice(lo, hi))] for lo, hi in zip(cuts, cuts[1:])]


def split(ary, indices_or_sections, axis=0):
    """Views of equal parts along an axis.

    Parameters: ary: array. indices_or_sections: how many parts, or where to cut. axis: the axis.
    Returns: list of ndarrays, views.
    Raises: ValueError when the axis cannot be divided so; AxisError.
    Source: numpy.split
    """
    a = as_array(ary)
    if not np.ndim(indices_or_sections) and a.shape[normalize_axis(axis, a.ndim)] % indices_or_sections:
        raise ValueError("array split does not result in an equal division")
    return array_split(a, indices_or_sections, axis)


def hsplit(ary, indices_or_sections):
    """Views of equal parts along the second axis (the first of a 1-d array).

    Parameters: ary: array, at least 1-d. indices_or_sections: as split.
    Returns: list of ndarrays, views.
    Raises: ValueError for a 0-d array, or as split.
    Source: numpy.hsplit
    """
    a = as_array(ary)
    if a.ndim == 0:
        raise ValueError("hsplit only works on arrays of 1 or more dimensions")
    return split(a, indices_or_sections, 1 if a.ndim > 1 else 0)


def vsplit(ary, indices_or_sections):
    """Views of equal parts along the first axis.

    Parameters: ary: array, at least 2-d. indices_or_sections: as split.
    Returns: list of ndarrays, views.
    Raises: ValueError for fewer dimensions, or as split.
    Source: numpy.vsplit
    """
    a = as_array(ary)
    if a.ndim < 2:
        raise ValueError("vsplit only works on arrays of 2 or more dimensions")
    return split(a, indices_or_sections, 0)


def dsplit(ary, indices_or_sections):
    """Views of equal parts along the third axis.

    Parameters: ary: array, at least 3-d. indices_or_sections: as split.
    Returns: list of ndarrays, views.
    Raises: ValueError for fewer dimensions, or as split.
    Source: numpy.dsplit
    """
    a = as_array(ary)
    if a.ndim < 3:
        raise ValueError("dsplit only works on arrays of 3 or more dimensions")
    return split(a, indices_or_sections, 2)


def unstack(x, /, *, axis=0):
    """Views of the slices along an axis.

    Parameters: x: array, at least 1-d. axis: the axis.
    Returns: tuple of ndarrays with one dimension less, views.
    Raises: ValueError for a 0-d array; AxisError.
    Source: numpy.unstack
    """
    x = as_array(x)
    if x.ndim == 0:
        raise ValueError("Input array must be at least 1-d.")
    x = moveaxis(x, axis, 0)
    return tuple(x[i] for i in builtins.range(x.shape[0]))


def tile(A, reps):
    """An array repeated as tiles.

    Parameters: A: array. reps: how often along each axis, an int or a tuple.
    Returns: ndarray, a copy.
    Raises: ValueError for a negative repetition.
    Source: numpy.tile
    """
    a = as_array(A)
    reps = shape_tuple(reps)
    ndim = builtins.max(a.ndim, len(reps))
    shape = (1,) * (ndim - a.ndim) + a.shape
    reps = (1,) * (ndim - len(reps)) + reps
    spread = broadcast_to(a.reshape(tuple(n for size in shape for n in (1, size))),
                          tuple(n for pair in zip(reps, shape) for n in pair))
    result = spread.reshape(tuple(size * rep for size, rep in zip(shape, reps)))
    return result.copy() if _core.shares_buffer(result, a) else result


def _whole(repeats):
    """How often to repeat, as a NumPy array of int64: arrays of numbers that might not be are refused, as in NumPy."""
    if not isinstance(repeats, (ndarray, np.ndarray)):
        return np.asarray(repeats, np.int64)
    if not np.can_cast(repeats.dtype, np.int64, "safe"):
        raise TypeError(f"Cannot cast array data from {repeats.dtype!r} to dtype('int64') according to the rule 'safe'")
    return _base.as_host(repeats, "repeats").astype(np.int64)


def repeat(a, repeats, axis=None):
    """Each element, or slice along an axis, repeated.

    Parameters: a: array. repeats: how often, an int or a 1-d array of the axis' length (an array of the server costs
    a round trip: its sum is the result's length). axis: the axis; flattened unless given.
    Returns: ndarray.
    Raises: ValueError when repeats is negative or does not fit.
    Source: numpy.repeat
    """
    a, axis = _base.one_axis(as_array(a), axis)
    repeats = _whole(repeats)
    size = a.shape[axis]
    if size and (repeats < 0).any():
        raise ValueError("repeats may not contain negative values.")
    if repeats.size == 1:
        spread = expand_dims(a, axis + 1)
        times = max(int(repeats.reshape(-1)[0]), 0)
        spread = broadcast_to(spread, a.shape[:axis + 1] + (times,) + a.shape[axis + 1:])
        result = spread.reshape(a.shape[:axis] + (size * times,) + a.shape[axis + 1:])
        return result.copy() if times == 1 or not result.size else result
    if repeats.ndim != 1 or repeats.size != size:
        raise ValueError(f"operands could not be broadcast together with shape ({size},) {repeats.shape}")
    from .creation import arange, array
    ends = array(np.cumsum(repeats, dtype=np.int64))
    index = call("searchsorted", (ends, arange(int(repeats.sum()))), (True,))
    return a[along(a.ndim, axis, index)]


def roll(a, shift, axis=None):
    """Elements moved along axes; those that leave at one end come in at the other.

    Parameters: a: array. shift: places, an int or a tuple. axis: axis or tuple of axes; flattened and restored unless
    given.
    Returns: ndarray, a copy.
    Raises: AxisError; ValueError when shift and axis do not fit.
    Source: numpy.roll
    """
    a = as_array(a)
    if axis is None:
        return roll(a.reshape(-1), shift, 0).reshape(a.shape)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    shifts = np.broadcast_arrays(shift, [normalize_axis(one, a.ndim) for one in axes])
    if shifts[0].ndim > 1:
        raise ValueError("'shift' and 'axis' should be scalars or 1D sequences")
    total = {}
    for by, one in zip(*(part.reshape(-1).tolist() for part in shifts)):
        total[one] = total.get(one, 0) + int(by)
    # For each axis what moves to the front and what to the back, as slices of the result and of a.
    halves = []
    for i, size in enumerate(a.shape):
        by = total.get(i, 0) % size if size else 0
        front, back = (slice(0, by), slice(size - by, None)), (slice(by, None), slice(0, size - by))
        halves.append([front, back] if by else [(slice(None), slice(None))])
    if all(len(half) == 1 for half in halves):
        return a.copy()
    result = _base.empty(a.shape, a.dtype)
    for parts in itertools.product(*halves):
        result[tuple(to for to, _ in parts)] = a[tuple(of for _, of in parts)]
    return result


def append(arr, values, axis=None):
    """Values put after an array.

    Parameters: arr: array. values: what comes after it. axis: along which; both are flattened unless given.
    Returns: ndarray, a copy.
    Raises: ValueError when shapes do not agree.
    Source: numpy.append
    """
    return concatenate((as_array(arr), as_array(values)), axis)


def delete(arr, obj, axis=None):
    """An array without some slices along an axis.

    Parameters: arr: array. obj: slice, int, or array of ints or bools that says which (one of the server costs a
    round trip). axis: the axis; flattened unless given.
    Returns: ndarray, a copy.
    Raises: IndexError when out of bounds; AxisError.
    Source: numpy.delete
    """
    a = as_array(arr)
    if axis is None:
        a, axis = a.reshape(-1), 0
    axis = normalize_axis(axis, a.ndim)
    if not isinstance(obj, slice):
        listed = not isinstance(obj, (ndarray, np.ndarray))
        obj = _base.as_host(obj, "obj")
        obj = obj.astype(np.intp) if listed and obj.size == 0 else obj
    kept = np.delete(np.arange(a.shape[axis]), obj)
    return a[along(a.ndim, axis, as_array(kept))]


def insert(arr, obj, values, axis=None):
    """An array with values put in before given positions along an axis.

    Parameters: arr: array. obj: slice, int or sequence of ints: the positions (an array of the server costs a round
    trip). values: what is put in; broadcasts to the places. axis: the axis; flattened unless given.
    Returns: ndarray, a copy.
    Raises: IndexError when a position is out of bounds; ValueError when values do not fit.
    Source: numpy.insert
    """
    a = as_array(arr)
    if axis is None:
        a, axis = a.reshape(-1), 0
    axis = normalize_axis(axis, a.ndim)
    size = a.shape[axis]
    places = _insert_places(obj, size)
    values = as_array(values, a.dtype)
    values = values.reshape((1,) * (a.ndim - values.ndim) + values.shape)
    if places.size == 1:
        values = moveaxis(values, 0, axis) if places.ndim == 0 else values
        places = np.repeat(places.reshape(-1), values.shape[axis])
    order = np.argsort(places, kind="stable")
    places[order] += np.arange(places.size)
    kept = np.delete(np.arange(size + places.size), places)
    result = _base.zeros(a.shape[:axis] + (size + places.size,) + a.shape[axis + 1:], a.dtype)
    for index, part in ((kept, a), (places, values)):
        result[along(a.ndim, axis, as_array(index))] = part
    return result


def _insert_places(obj, size):
    """Where insert puts values, counted from the front, as a NumPy array of its own."""
    if isinstance(obj, slice):
        return np.arange(*obj.indices(size))
    listed = not isinstance(obj, (ndarray, np.ndarray))
    places = _base.as_host(obj, "obj")
    if places.dtype == bool:
        places = np.flatnonzero(places)
    if (places.size or not listed) and places.dtype.kind not in "iu":
        raise IndexError("only integers, slices and arrays of integers or bools are positions")
    bad = (places < -size) | (places > size)
    if bad.any():
        raise IndexError(f"index {places.reshape(-1)[bad.reshape(-1)][0]} is out of bounds for axis with size {size}")
    return np.where(places < 0, places + size, places).astype(np.int64)


def resize(a, new_shape):
    """The elements repeated to fill a shape.

    Parameters: a: array. new_shape: int or tuple of ints.
    Returns: ndarray, a copy.
    Raises: ValueError for a negative dimension.
    Source: numpy.resize
    """
    shape = shape_tuple(new_shape)
    if any(n < 0 for n in shape):
        raise ValueError("all elements of `new_shape` must be non-negative")
    a = as_array(a).reshape(-1)
    size = _base.product(shape)
    if a.size == 0:
        return _base.zeros(shape, a.dtype)
    return tile(a, -(-size // a.size))[:size].reshape(shape)


def trim_zeros(filt, trim="fb", axis=None):
    """An array without the zeros at its ends; costs a round trip.

    Parameters: filt: array. trim: which ends, of 'f' (front) and 'b' (back). axis: axis or axes, all unless given.
    Returns: ndarray, a view.
    Raises: ValueError for another trim.
    Source: numpy.trim_zeros
    """
    a = as_array(filt)
    trim = trim.lower()
    if trim not in {"fb", "bf", "f", "b"}:
        raise ValueError(f"unexpected character(s) in `trim`: {trim!r}")
    axes = normalize_axes(axis, a.ndim)
    key = [slice(None)] * a.ndim
    for one, (start, stop) in zip(axes, _extents(a, axes)):
        if stop == 0 and trim == "f":
            start = stop = a.shape[one]
        key[one] = slice(start if "f" in trim else None, stop if "b" in trim else None)
    return a[tuple(key)]


def _extents(a, axes):
    """For each axis where the elements that are not zero begin and end, 0 and 0 where there is none."""
    if not a.size:
        return [(0, 0)] * len(axes)
    found = _base.zeros((len(axes), 3), np.int64)
    for one, (start, after, hit) in zip(axes, found):
        lines = _base.reduce("any", a, axis=tuple(i for i in builtins.range(a.ndim) if i != one))
        _base.reduce("argmax", lines, out=start)
        _base.reduce("argmax", lines[::-1], out=after)
        hit[...] = lines.any()
    return [(start, a.shape[one] - after) if hit else (0, 0)
            for one, (start, after, hit) in zip(axes, found.get().tolist())]


def copyto(dst, src, casting="same_kind", where=True):
    """Copy elements into an existing array, with broadcasting.

    Parameters: dst: array that is written. src: what is copied. casting: which casts are allowed. where: bool array;
    elements where it is False stay; or a number, 0 for none.
    Returns: None.
    Raises: TypeError for a cast or when dst is no array of the server; ValueError when shapes do not fit;
    OverflowError for a Python int that dst's type does not hold.
    Source: numpy.copyto
    """
    if not isinstance(dst, ndarray):
        raise TypeError(f"copyto() argument 1 must be arrayd.ndarray, not {type(dst).__name__}")
    source = _base.as_operand(src)
    kind = source.dtype if isinstance(source, (ndarray, np.generic)) else _weak(source, dst.dtype)
    if not np.can_cast(kind, dst.dtype, casting):
        raise TypeError(f"Cannot cast array data from {kind!r} to {dst.dtype!r} according to the rule {casting!r}")
    if type(source) is int and dst.dtype.kind in "iu":
        source = dst.dtype.type(source)  # OverflowError, though nothing be copied
    if _base.is_scalar(where):
        if where:
            dst[...] = source
        return
    mask = broadcast_to(as_array(where), dst.shape)
    if mask.dtype != np.bool_:
        raise TypeError(f"Cannot cast array data from {mask.dtype!r} to dtype('bool') according to the rule 'safe'")
    if hasattr(dst, "_units"):
        from .structure_casts import copy_where
        return copy_where(dst, source, mask)
    if isinstance(source, ndarray):
        while source.ndim > dst.ndim and source.shape[0] == 1:
            source = source[0]
    _core.ufuncs["copy"](source, out=dst, where=mask, casting="unsafe")


def _weak(number, dtype):
    """The type of a Python number that is to be put into an array: the array's, where that is of a kind to hold it."""
    kind = next(np.dtype(kind) for kind in (bool, int, float, complex) if isinstance(number, kind))
    order = "biufVc"
    return dtype if order.index(kind.kind) <= order.index(dtype.kind) else kind
