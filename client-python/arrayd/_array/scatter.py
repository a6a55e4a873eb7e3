"""Changing elements in place by an operation, where a key may name one several times."""
import operator

import numpy as np

from .. import _base, _core
from .._base import as_operand, ndarray
from .indexing import _index_array
from .manipulation import broadcast_arrays, moveaxis, transpose

ADD, MAXIMUM, MINIMUM = 1, 2, 3  # modes of call scatter
_UFUNCS = {ADD: "add", MAXIMUM: "maximum", MINIMUM: "minimum"}


def scatter(a, key, value, mode):
    """Apply a mode of call scatter to the elements that key names, which is what a[key] takes. value, cast to a's type,
    broadcasts to a[key]. A mask on the server costs a round trip."""
    if not isinstance(a, ndarray):
        raise TypeError(f"an arrayd.ndarray is changed in place, not {type(a).__name__}")
    value = as_operand(value)
    if isinstance(value, ndarray) and value.dtype != a.dtype:
        value = value.astype(a.dtype)
    parts = _parts(key if isinstance(key, tuple) else (key,), a)
    if not any(isinstance(part, ndarray) for part in parts):
        view = a[tuple(parts)]
        _core.ufuncs[_UFUNCS[mode]](view, value, out=view, casting="unsafe")
        return
    view, axes, first = _viewed(a, parts)
    try:
        indices = broadcast_arrays(*(part for part in parts if isinstance(part, ndarray)))
    except ValueError as error:
        raise IndexError(f"indexing arrays do not fit: {error}") from None
    if isinstance(value, ndarray) and first:
        ndim = indices[0].ndim
        value = value.reshape((1,) * (view.ndim - len(axes) + ndim - value.ndim) + value.shape)
        value = moveaxis(value, tuple(range(first, first + ndim)), tuple(range(ndim)))
    rest = [i for i in range(view.ndim) if i not in axes]
    _base.call("scatter", (value, *indices), (mode,), out=transpose(view, axes + rest), dtype=a.dtype)


def _parts(key, a):
    """A key with a part for each axis of a, new ones besides: None, slices, ints and arrays of the server; no ints
    beside arrays, which broadcast with them. A place of Ellipsis is one slice at least, as it separates
    arrays."""
    key = [_part(part) for part in key]
    taken = [0 if part is None or part is Ellipsis else part.ndim if _is_mask(part) else 1 for part in key]
    missing = a.ndim - sum(taken)
    if missing < 0:
        raise IndexError(f"too many indices for array: array is {a.ndim}-dimensional, but {sum(taken)} were indexed")
    if sum(part is Ellipsis for part in key) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    parts, axis, arrays = [], 0, any(hasattr(part, "ndim") for part in key)
    for part, count in zip(key, taken):
        if _is_mask(part):
            if part.size and part.shape != a.shape[axis:axis + count]:  # NumPy takes an empty one anywhere
                raise IndexError(f"a mask of shape {part.shape} does not fit an array of shape {a.shape} there")
            parts += [_index_array(one) for one in part.nonzero()]
        elif part is Ellipsis:
            parts += [Ellipsis, *[slice(None)] * missing]
            count = missing
        else:
            parts.append(_index_array(part) if arrays and (isinstance(part, int) or hasattr(part, "ndim")) else part)
        axis += count
    return parts


def _is_mask(part):
    return hasattr(part, "ndim") and part.dtype == np.bool_


def _part(part):
    """A part of a key: None, Ellipsis, a slice, an int, or an array, of the server or of this process."""
    if part is None or part is Ellipsis or isinstance(part, (slice, ndarray)):
        return part
    if not isinstance(part, (bool, np.bool_)):
        try:
            return operator.index(part)
        except TypeError:
            pass
    host = np.asarray(part)
    if host.size == 0 and not isinstance(part, np.ndarray):
        host = host.astype(np.int64)
    if host.dtype.kind not in "biu":
        raise IndexError("only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean "
                         "arrays are valid indices")
    if host.dtype == np.bool_ and not host.ndim:
        raise IndexError("a single bool is no index here: use a mask of the array's shape")
    return host


def _viewed(a, parts):
    """Apply the slices and new axes of a key. Returns the view, the axes of its index arrays, and where the arrays'
    dimensions come in a[key]: in the place of the first array, or at the front when something stands between them."""
    basic, axes, gaps, ndim = [], [], [], 0
    for part in parts:
        if isinstance(part, ndarray):
            axes.append(ndim)
        else:
            gaps.append(len(axes))
        if part is not Ellipsis:
            basic.append(slice(None) if isinstance(part, ndarray) else part)
            ndim += 1
    return a[tuple(basic)], axes, 0 if any(0 < gap < len(axes) for gap in gaps) else axes[0]
