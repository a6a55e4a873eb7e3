"""Splines through an array's elements, and their values elsewhere."""
import math
import operator
import warnings

import numpy as np

from ... import _base, _core
from ..._base import as_array, as_host, call, ndarray, normalize_axis
from . import _support
from ._support import make_output, repeat_argument

_u = _core.ufuncs
_MODES = {"reflect": 0, "grid-mirror": 0, "constant": 1, "nearest": 2, "mirror": 3, "wrap": 4, "grid-wrap": 5,
          "grid-constant": 6}
_PAD = 12  # elements before the edges of modes for which splines have no exact ends


def _mode_of(mode):
    if mode not in _MODES:
        raise RuntimeError(f"boundary mode not supported (actual: {mode})")
    return _MODES[mode]


def _check_order(order, least=0):
    order = operator.index(order)
    if not least <= order <= 5:
        raise RuntimeError("spline order not supported")
    return order


def _loop_of(input):
    return np.dtype(np.float32 if input.dtype.name in _support.SINGLE else np.float64)


def _by_parts(run, output, input, cval=0):
    """output, filled by run(output's part, input's part, cval's part) for the real and for the imaginary parts."""
    for part in ("real", "imag"):
        getattr(output, part)[...] = run(getattr(input, part), getattr(np.complex128(cval), part))
    return output


def spline_filter1d(input, order=3, axis=-1, output=np.float64, mode="mirror"):
    """Coefficients of a spline along an axis.

    Parameters: input: array. order: of the spline, 0 to 5. axis: the axis. output: array to fill, or the result's
    dtype. mode: what stands beyond the edges: "mirror", "reflect", "constant", "nearest", "wrap", "grid-mirror",
    "grid-constant" or "grid-wrap".
    Returns: ndarray.
    Raises: RuntimeError for an order or a mode that there is not.
    Differs: for "reflect", "grid-mirror" and "nearest" the spline goes through the first sample of short lines, too: SciPy's
    misses it, of two elements by some thousandths.
    Source: scipy.ndimage.spline_filter1d
    """
    order, input = _check_order(order), as_array(input)
    output = make_output(output, input, complex_output=input.dtype.kind == "c")
    if order < 2:
        return _support.copy_into(output, input)
    params = normalize_axis(axis, input.ndim), order, _mode_of(mode)
    loop = np.dtype(np.float32 if output.dtype.name in _support.SINGLE else np.float64)
    if input.dtype.kind == "c":
        return _by_parts(lambda part, _: call("spline1d", (part,), params, dtype=loop), output, input)
    return call("spline1d", (input,), params, out=output, dtype=loop)


def spline_filter(input, order=3, output=np.float64, mode="mirror"):
    """Coefficients of a spline along all axes.

    Parameters: as spline_filter1d; order 2 to 5.
    Returns: ndarray.
    Raises: as spline_filter1d.
    Source: scipy.ndimage.spline_filter
    """
    order, input = _check_order(order, 2), as_array(input)
    output = make_output(output, input, complex_output=input.dtype.kind == "c")

    def run(x, output, axis):
        spline_filter1d(x, order, axis, output, mode)
    return _support.along_axes(output, input, [(axis,) for axis in range(input.ndim)], run)


def _coefficients(input, order, mode, cval, prefilter):
    """Return what points are made of, and by how much it begins before input."""
    if not prefilter or order < 2:
        return input, 0
    pad = 0
    if mode in ("nearest", "grid-constant"):
        from ..._array.pad import pad as pad_array
        pad = _PAD
        more = {"mode": "edge"} if mode == "nearest" else {"mode": "constant", "constant_values": cval}
        input = pad_array(input, pad, **more)
    return spline_filter(input, order, _loop_of(input), mode), pad


def _round_into(output, values):
    """output, of integers, filled with the nearest ones."""
    info = np.iinfo(output.dtype)
    half = _u["copysign"](0.5, values)
    low, high = float(info.min), float(np.nextafter(float(info.max), 0) if info.bits == 64 else info.max)
    return _support.copy_into(output, _u["minimum"](_u["maximum"](values + half, low), high))


def _sample(input, where, affine, output, order, mode, cval, prefilter):
    """output, filled with the spline's values where a matrix or coordinates say."""
    if input.dtype.kind == "c":
        kind = np.float32 if input.dtype == np.complex64 else np.float64

        def run(part, value):
            return _sample(part, where, affine, _base.empty(output.shape, kind), order, mode, value, prefilter)
        return _by_parts(run, output, input, cval)
    if not output.size:
        return output
    if not input.size:
        return _support.copy_into(output, cval)
    x, pad = _coefficients(input, order, mode, cval, prefilter)
    params, loop = (affine, order, _mode_of(mode), float(cval), pad), _loop_of(input)
    if output.dtype.kind not in "iu":
        return call("sample", (x, where), params, out=output, dtype=loop)
    values = _base.empty(output.shape, np.float64)
    return _round_into(output, call("sample", (x, where), params, out=values, dtype=np.float64))


def _add_edge(input, cval):
    """input with one element of cval around it: what "opencv" means by its edges, for whatever is done with "constant"."""
    from ..._array.pad import pad as pad_array
    return pad_array(input, 1, mode="constant", constant_values=cval)


def _check_input(input):
    input = as_array(input)
    if input.ndim < 1:
        raise RuntimeError("input and output rank must be > 0")
    return input


def map_coordinates(input, coordinates, output=None, order=3, mode="constant", cval=0.0, prefilter=True):
    """Values at coordinates.

    Parameters: input: array. coordinates: of shape (input.ndim, ...). output: array to fill, or the result's dtype.
    order: of the spline, 0 to 5. mode: as spline_filter1d, or "opencv", as cupyx has it: an edge of cval is blended with the
    outermost elements, as OpenCV does. cval: the value of "constant". prefilter: False when input has coefficients already.
    Returns: ndarray of shape coordinates.shape[1:].
    Raises: RuntimeError for an order, a mode or a shape that does not fit; TypeError for complex coordinates.
    Source: scipy.ndimage.map_coordinates
    Differs: float32 and float16 are evaluated in single precision.
    """
    order, input, coordinates = _check_order(order), as_array(input), as_array(coordinates)
    if coordinates.dtype.kind == "c":
        raise TypeError("Complex type not supported")
    if input.ndim < 1 or coordinates.ndim < 2:
        raise RuntimeError("input and output rank must be > 0")
    if coordinates.shape[0] != input.ndim:
        raise RuntimeError("invalid shape for coordinate array")
    if coordinates.dtype not in (np.float32, np.float64):
        coordinates = coordinates.astype(np.float64)
    output = make_output(output, input, coordinates.shape[1:], input.dtype.kind == "c")
    if mode == "opencv":
        input, coordinates, mode = _add_edge(input, cval), coordinates + 1, "constant"
    return _sample(input, coordinates, False, output, order, mode, cval, prefilter)


def _affine(input, matrix, offset, output, order, mode, cval, prefilter):
    """matrix and offset are on this side."""
    if mode == "opencv":
        input, offset, mode = _add_edge(input, cval), np.asarray(offset) + 1, "constant"
    where = as_array(np.ascontiguousarray(np.column_stack([matrix, offset]), np.float64))
    return _sample(input, where, True, output, order, mode, cval, prefilter)


def _split_matrix(matrix, offset, ndim):
    """A matrix of ndim rows and an offset, of what affine_transform takes."""
    matrix = as_host(matrix, "matrix").astype(np.float64)
    if matrix.ndim not in (1, 2) or matrix.shape[0] < 1:
        raise RuntimeError("no proper affine matrix provided")
    if matrix.ndim == 2 and matrix.shape[1] == ndim + 1 and matrix.shape[0] in (ndim, ndim + 1):
        if matrix.shape[0] == ndim + 1 and not (matrix[ndim] == [0] * ndim + [1]).all():
            raise ValueError(f"Expected homogeneous transformation matrix with shape {matrix.shape} for image shape "
                             f"of {ndim} dimensions, but bottom row was not equal to {[0] * ndim + [1]}")
        matrix, offset = matrix[:ndim, :ndim], matrix[:ndim, ndim]
    if matrix.shape[0] != ndim:
        raise RuntimeError("affine matrix has wrong number of rows")
    offset = np.asarray(repeat_argument(offset, ndim), np.float64)
    if offset.ndim != 1 or offset.shape[0] < 1:
        raise RuntimeError("no proper offset provided")
    return (np.diag(matrix) if matrix.ndim == 1 else matrix), offset


def _turn_opencv(matrix, offset):
    """The matrix and the offset that sample an image as cv2.warpAffine, which takes what moves its columns and rows."""
    ndim = len(offset)
    if ndim < 2:
        raise RuntimeError("mode 'opencv' transforms images: input must have two dimensions or more")
    whole = np.eye(ndim + 1)
    whole[:ndim] = np.column_stack([matrix, offset])
    turned = np.linalg.inv(whole)
    order = [1, 0, *range(2, ndim + 1)]
    turned = turned[order][:, order]
    return turned[:ndim, :ndim], turned[:ndim, ndim]


def _affine_of_texture(input, matrix, output_shape, output, order, mode, cval):
    """affine_transform with texture_memory=True: what cupyx samples by a texture, and refuses otherwise."""
    if input.ndim not in (2, 3):
        raise ValueError(f"texture_memory=True is for 2-d and 3-d arrays, not for {input.ndim}-d ones")
    if input.dtype != np.float32:
        raise ValueError(f"texture_memory=True is for float32, not for {input.dtype}")
    if np.shape(matrix) != (input.ndim + 1,) * 2:
        raise ValueError(f"with texture_memory=True matrix must be of shape {(input.ndim + 1,) * 2}, not {np.shape(matrix)}")
    if mode not in ("constant", "nearest"):
        raise ValueError(f"with texture_memory=True mode must be 'constant' or 'nearest', not {mode!r}")
    shape = input.shape if output_shape is None else _base.shape_tuple(output_shape)
    if isinstance(output, str) or not isinstance(output, ndarray) and np.dtype(output or np.float32) != np.float32:
        raise ValueError(f"with texture_memory=True output must be None, float32 or an array of it, not {output!r}")
    if isinstance(output, ndarray) and (output.shape != shape or output.dtype != np.float32):
        raise ValueError(f"with texture_memory=True output must be float32 of shape {shape}, not {output.dtype} of shape "
                         f"{output.shape}")
    output = make_output(output, input, shape)
    rows = as_host(matrix, "matrix").astype(np.float32)[:-1]
    edge = "grid-constant" if mode == "constant" else mode  # a texture's border is blended with what is within
    return _affine(input, rows[:, :-1], rows[:, -1], output, min(order, 1), edge, cval, False)


def affine_transform(input, matrix, offset=0.0, output_shape=None, output=None, order=3, mode="constant", cval=0.0,
                     prefilter=True, *, texture_memory=False, float64_coords=False):
    """Values at matrix @ place + offset for each place of the output.

    Parameters: input: array. matrix: one row for each axis of input and one column for each of the output; or its
    diagonal; or with the offset as last column, and maybe 0 ... 0 1 as last row. offset: a number, or one for each
    axis. output_shape: of the output, input's unless given. output, order, mode, cval, prefilter: as map_coordinates; with
    mode "opencv" matrix and offset are those of cv2.warpAffine. texture_memory: what cupyx samples by a texture: float32 in
    two or three dimensions, nearest elements (order 0) or linear (order 1 and more), mode "constant" or "nearest", and a
    matrix with its last row. float64_coords: taken; coordinates are float64 anyway.
    Returns: ndarray.
    Raises: RuntimeError for a matrix or an offset that does not fit; ValueError for a last row that is not 0 ... 0 1, and
    with texture_memory for what a texture is not for.
    Source: scipy.ndimage.affine_transform; cupyx.scipy.ndimage.affine_transform
    Differs: with texture_memory weights are of single precision, where a GPU's have eight bits.
    """
    order, input = _check_order(order), as_array(input)
    if texture_memory:
        return _affine_of_texture(input, matrix, output_shape, output, order, mode, cval)
    if output_shape is None:
        output_shape = output.shape if isinstance(output, ndarray) else input.shape
    output_shape = _base.shape_tuple(output_shape)
    if input.ndim < 1 or len(output_shape) < 1:
        raise RuntimeError("input and output rank must be > 0")
    output = make_output(output, input, output_shape, input.dtype.kind == "c")
    matrix, offset = _split_matrix(matrix, offset, input.ndim)
    if matrix.shape[1] != output.ndim:
        raise RuntimeError("affine matrix has wrong number of columns")
    if mode == "opencv":
        matrix, offset = _turn_opencv(matrix, offset)
    return _affine(input, matrix, offset, output, order, mode, cval, prefilter)


def shift(input, shift, output=None, order=3, mode="constant", cval=0.0, prefilter=True):
    """An array moved by any distance.

    Parameters: input: array. shift: distance, one for all axes, or one for each. output, order, mode, cval, prefilter:
    as map_coordinates.
    Returns: ndarray.
    Raises: as map_coordinates.
    Source: scipy.ndimage.shift
    """
    order, input = _check_order(order), _check_input(input)
    output = make_output(output, input, complex_output=input.dtype.kind == "c")
    offset = -np.asarray(repeat_argument(shift, input.ndim), np.float64)
    return _affine(input, np.eye(input.ndim), offset, output, order, mode, cval, prefilter)


def zoom(input, zoom, output=None, order=3, mode="constant", cval=0.0, prefilter=True, *, grid_mode=False):
    """An array of another size.

    Parameters: input: array. zoom: factor, one for all axes, or one for each. output, order, mode, cval, prefilter: as
    map_coordinates. grid_mode: elements are cells whose outer edges stay, instead of points of which the outermost stay.
    Returns: ndarray.
    Raises: as map_coordinates.
    Source: scipy.ndimage.zoom
    """
    order, input = _check_order(order), _check_input(input)
    factors = repeat_argument(zoom, input.ndim)
    shape = tuple(int(round(n * float(factor))) for n, factor in zip(input.shape, factors))
    output = make_output(output, input, shape, input.dtype.kind == "c")
    if all(factor == 1 for factor in factors) and prefilter:
        return _support.copy_into(output, input)
    if grid_mode and mode in ("constant", "wrap"):
        warnings.warn(f"It is recommended to use mode = grid-{mode} instead of {mode} when grid_mode is True.",
                      stacklevel=2)
    if mode == "opencv":  # elements are cells, as OpenCV resizes, and the outermost go on
        grid_mode, mode = True, "nearest"
    less = 0 if grid_mode else 1
    scale = [(n - less) / (m - less) if m != less else 1.0 for n, m in zip(input.shape, shape)]
    offset = [0.5 * one - 0.5 if grid_mode else 0.0 for one in scale]
    return _affine(input, np.diag(scale), offset, output, order, mode, cval, prefilter)


def _rotation(angle):
    """Cosine and sine of an angle in degrees, exact for multiples of 90."""
    turns, rest = divmod(float(angle), 90)
    c, s = math.cos(math.radians(rest)), math.sin(math.radians(rest))
    for _ in range(int(turns % 4)):
        c, s = -s, c
    return np.array([[c, s], [-s, c]])


def _plane_of(axes, ndim):
    axes = list(axes)
    if len(axes) != 2:
        raise ValueError("axes should contain exactly two values")
    if not all(float(axis).is_integer() for axis in axes):
        raise ValueError("axes should contain only integer values")
    axes = [int(axis) + ndim if axis < 0 else int(axis) for axis in axes]
    if min(axes) < 0 or max(axes) >= ndim:
        raise ValueError("invalid rotation plane specified")
    return sorted(axes)


def rotate(input, angle, axes=(1, 0), reshape=True, output=None, order=3, mode="constant", cval=0.0, prefilter=True):
    """An array rotated in a plane.

    Parameters: input: array. angle: in degrees. axes: the two of the plane. reshape: the output has room for all of
    input. output, order, mode, cval, prefilter: as map_coordinates.
    Returns: ndarray.
    Raises: ValueError for fewer than two dimensions, or axes that are no plane.
    Source: scipy.ndimage.rotate
    """
    input = as_array(input)
    if input.ndim < 2:
        raise ValueError("input array should be at least 2D")
    order, plane = _check_order(order), _plane_of(axes, input.ndim)
    rotation = _rotation(angle)
    size = np.array([input.shape[axis] for axis in plane])
    shape = list(input.shape)
    if reshape:
        bounds = rotation @ np.array([[0, 0, size[0], size[0]], [0, size[1], 0, size[1]]])
        for axis, n in zip(plane, (np.ptp(bounds, axis=1) + 0.5).astype(int)):
            shape[axis] = int(n)
    output = make_output(output, input, shape, input.dtype.kind == "c")
    middle = rotation @ ((np.array([shape[axis] for axis in plane]) - 1) / 2)
    matrix, offset = np.eye(input.ndim), np.zeros(input.ndim)
    matrix[np.ix_(plane, plane)] = rotation
    offset[plane] = (size - 1) / 2 - middle
    if input.ndim == 2:
        return _affine(input, matrix, offset, output, order, mode, cval, prefilter)
    return _rotate_planes(input, matrix, offset, plane, output, order, mode, cval, prefilter)


def _rotate_planes(input, matrix, offset, plane, output, order, mode, cval, prefilter):
    """Of more dimensions: coefficients along the plane's axes only, and of the others the elements as they are."""
    others = [axis for axis in range(input.ndim) if axis not in plane]
    turned = input.transpose((*others, *plane)).reshape((-1, *(input.shape[axis] for axis in plane)))
    part = [np.ix_(plane, plane), plane]
    made = []
    for one in turned:
        out = _base.empty(tuple(output.shape[axis] for axis in plane), output.dtype)
        made.append(_affine(one, matrix[part[0]], offset[part[1]], out, order, mode, cval, prefilter))
    if made:
        from ..._array.joining import stack
        shape = tuple(output.shape[axis] for axis in (*others, *plane))
        output[...] = stack(made).reshape(shape).transpose(np.argsort((*others, *plane)).tolist())
    return output
