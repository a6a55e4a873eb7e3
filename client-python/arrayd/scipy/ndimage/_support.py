"""Arguments of filters: outputs, modes, axes, origins, windows."""
import operator
import warnings
from collections.abc import Iterable

import numpy as np

from ... import _base
from ..._base import as_array, as_host, call, ndarray, normalize_axis

# As call.def numbers them.
_EDGES = {"reflect": 0, "grid-mirror": 0, "grid-reflect": 0, "constant": 1, "grid-constant": 1, "nearest": 2, "mirror": 3,
          "wrap": 4, "grid-wrap": 4}
SINGLE = ("float16", "bfloat16", "float32", "complex64")
SUM, MINIMUM, MAXIMUM = 0, 1, 2


def edge_of(mode):
    """The number of a mode."""
    if not isinstance(mode, str) and isinstance(mode, Iterable):
        raise RuntimeError("A sequence of modes is not supported for non-separable footprints")
    if not isinstance(mode, str) or mode not in _EDGES:
        raise RuntimeError(f"boundary mode not supported (actual: {mode})")
    return _EDGES[mode]


def real_array(input):
    """input as an array that is not complex."""
    input = as_array(input)
    if input.dtype.kind == "c":
        raise TypeError("Complex type not supported")
    return input


def make_output(output, input, shape=None, complex_output=False):
    """The array that a function fills: output itself, or a new one of the type that it names or that input has."""
    shape = input.shape if shape is None else tuple(shape)
    if output is None:
        return _base.empty(shape, np.promote_types(input.dtype, np.complex64) if complex_output else input.dtype)
    if isinstance(output, str):
        output = np.dtype(output)
        if complex_output and output.kind != "c":
            raise RuntimeError("output must have complex dtype")
        if output.kind not in "biufc":
            raise RuntimeError("output must have numeric dtype")
    if isinstance(output, (type, np.dtype)):
        output = np.dtype(output)
        if complex_output and output.kind != "c":
            warnings.warn("promoting specified output dtype to complex", stacklevel=4)
            output = np.promote_types(output, np.complex64)
        return _base.empty(shape, output)
    if not isinstance(output, ndarray):
        raise TypeError(f"output must be an array of the server or a dtype, not {type(output).__name__}")
    if output.shape != shape:
        raise RuntimeError("output shape not correct")
    if complex_output and output.dtype.kind != "c":
        raise RuntimeError("output must have complex dtype")
    return output


def copy_into(output, input):
    """output, filled with input's elements, whatever a cast loses."""
    output[...] = input
    return output


def repeat_argument(value, rank):
    """A list of one value for each axis."""
    if isinstance(value, str) or not np.iterable(value):
        return [value] * rank
    value = value.get().tolist() if isinstance(value, ndarray) else list(value)
    if len(value) != rank:
        raise RuntimeError("sequence argument must have length equal to input rank")
    return value


def check_axes(axes, ndim):
    """Axes counted from the front, all unless given."""
    if axes is None:
        return tuple(range(ndim))
    if np.isscalar(axes):
        axes = (operator.index(axes),)
    elif isinstance(axes, Iterable):
        axes = tuple(operator.index(axis) for axis in axes)
    else:
        raise ValueError("axes must be an integer, iterable of integers, or None")
    axes = tuple(normalize_axis(axis, ndim) for axis in axes)
    if len(set(axes)) != len(axes):
        raise ValueError("axes must be unique")
    return axes


def check_origin(origin, size):
    """How many elements of a window of that size lie before its element."""
    before = size // 2 + operator.index(origin)
    if not 0 <= before < size:
        raise ValueError("invalid origin")
    return before


def expand_window(window, ndim, axes, name="footprint"):
    """A window of some axes as one of all of them."""
    if len(axes) == ndim:
        return window
    if window.ndim != len(axes):
        raise RuntimeError(f"{name}.ndim ({window.ndim}) must match len(axes) ({len(axes)})")
    shape = [1] * ndim
    for size, axis in zip(window.shape, sorted(axes)):  # SciPy takes a window's axes in order, whatever axes says
        shape[axis] = size
    return window.reshape(shape)


def expand_origins(origin, ndim, axes):
    origins = [0] * ndim
    for one, axis in zip(repeat_argument(origin, len(axes)), axes):
        origins[axis] = operator.index(one)
    return origins


def check_window(window, ndim, axes, origins, name="footprint"):
    """Refuse a window that does not have the input's dimensions or whose origin is outside of it."""
    if window.ndim != ndim or 0 in window.shape:
        raise RuntimeError(f"{name}.ndim ({sum(n > 0 for n in window.shape)}) must match len(axes) ({len(axes)})")
    for origin, size in zip(origins, window.shape):
        check_origin(origin, size)


def window_of(size, footprint, ndim, axes):
    """A footprint (bool, on this side) of all axes, from a size or a footprint of some."""
    if size is not None and footprint is not None:
        warnings.warn("ignoring size because footprint is set", UserWarning, stacklevel=4)
    if footprint is None:
        if size is None:
            raise RuntimeError("no footprint or filter size provided")
        footprint = np.ones([operator.index(n) for n in repeat_argument(size, len(axes))], bool)
    else:
        footprint = as_host(footprint, "footprint").astype(bool)
    return expand_window(footprint, ndim, axes)


def offsets_of(footprint, origins):
    """For each true element of a window its place, seen from the window's element: (elements, axes), on this side."""
    middle = [size // 2 + origin for size, origin in zip(footprint.shape, origins)]
    return np.argwhere(footprint) - np.array(middle, np.int64).reshape(1, -1)


def along_axes(output, input, axes, run):
    """run(input, output, *one) for each of axes; a copy when there is none. Results on the way have memory of their own:
    an operation that writes where it reads would have to copy what it reads."""
    if not axes:
        return copy_into(output, input)
    for one in axes[:-1]:
        between = _base.empty(output.shape, output.dtype)
        run(input, between, *one)
        input = between
    run(input, output, *axes[-1])
    return output


def sum_into(row, inputs, params, output, loop):
    """A row of call.def whose sums output is filled with. Of bool they are cut off before 0 is false, as in SciPy."""
    if output.dtype != np.bool_:
        return call(row, inputs, params, out=output, dtype=loop)
    return copy_into(output, call(row, inputs, params, dtype=loop).astype(np.int64))


def filter_window(row, x, offsets, more, params, output, loop):
    """A row of call.def whose window is a list of offsets. Arrays without dimensions have one element."""
    offsets = as_array(np.ascontiguousarray(offsets, np.int64))
    if x.ndim:
        sum_into(row, (x, offsets, *more), params, output, loop)
    else:
        offsets = _base.zeros((offsets.shape[0], 1), np.int64)
        copy_into(output, call(row, (x.reshape(1), offsets, *more), params, dtype=loop).reshape(()))
    return output
