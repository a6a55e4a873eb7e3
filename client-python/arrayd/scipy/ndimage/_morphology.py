"""Binary and grey morphology."""
import operator
import warnings

import numpy as np

from ... import _base, _core
from ..._base import as_array, as_host, call, ndarray
from . import _support
from ._ranks import limit_windows
from ._support import MAXIMUM, MINIMUM, check_axes, make_output, real_array, repeat_argument

_u = _core.ufuncs
_AT_ONCE = 8  # steps between two looks whether anything has changed


# ---- structures ----

def binary_structure(rank, connectivity):
    """generate_binary_structure, on this side."""
    if rank < 1:
        return np.array(True)
    return np.abs(np.indices([3] * rank) - 1).sum(0) <= max(connectivity, 1)


def generate_binary_structure(rank, connectivity):
    """The neighbours in an array: those at places that differ by at most 1 along at most `connectivity` axes.

    Parameters: rank: number of dimensions. connectivity: number of axes.
    Returns: bool ndarray of 3 elements along each axis.
    Raises: nothing.
    Source: scipy.ndimage.generate_binary_structure
    """
    return as_array(binary_structure(operator.index(rank), operator.index(connectivity)))


def iterate_structure(structure, iterations, origin=None):
    """A structure dilated by itself.

    Parameters: structure: array. iterations: how often, itself being the first time. origin: of the structure; that of
    the result is then returned, too.
    Returns: ndarray, with origin a tuple of it and a list.
    Raises: RuntimeError for an origin of another length.
    Source: scipy.ndimage.iterate_structure
    """
    structure = as_array(structure)
    if iterations < 2:
        return structure.copy()
    more = iterations - 1
    out = _base.zeros(tuple(n + more * (n - 1) for n in structure.shape), np.bool_)
    out[tuple(slice(more * (n // 2), more * (n // 2) + n) for n in structure.shape)] = structure != 0
    out = binary_dilation(out, structure, iterations=more)
    if origin is None:
        return out
    return out, [iterations * one for one in repeat_argument(origin, structure.ndim)]


def _turn_window(window, origins):
    """A window seen from the other side."""
    origins = [-o if n & 1 else -o - 1 for o, n in zip(origins, window.shape)]
    return window[(slice(None, None, -1),) * window.ndim], origins


def _structure_of(structure, ndim, axes, origin):
    """A structure of all axes, on this side, and its origins. An int or a tuple of ints is a shape, as in CuPy."""
    if structure is None:
        structure = binary_structure(len(axes), 1)
    elif isinstance(structure, int) or isinstance(structure, tuple) and all(isinstance(n, int) for n in structure):
        structure = np.ones(repeat_argument(structure, len(axes)), bool)
    structure = as_host(structure, "structure").astype(bool)
    structure = _support.expand_window(structure, ndim, axes, "structure")
    if structure.ndim != ndim:
        raise RuntimeError("structure and input must have same dimensionality")
    if structure.size < 1:
        raise RuntimeError("structure must not be empty")
    origins = _support.expand_origins(origin, ndim, axes)
    for one, size in zip(origins, structure.shape):
        _support.check_origin(one, size)
    return structure, origins


# ---- binary ----

def _dilate_once(x, structure, origins, mask, border):
    """x where one of the structure's elements is true; the structure has been turned round already."""
    if not structure.any():
        result = _base.zeros(x.shape, np.bool_)
    elif not x.ndim:
        result = x.copy()
    else:
        result = limit_windows(x, None, structure, None, None, "constant", bool(border), origins, None, MAXIMUM)
    if mask is None:
        return result
    from ..._array.indexing import where
    return where(mask, result, x)


def _is_symmetric(structure, origins):
    turned = structure[(slice(None, None, -1),) * structure.ndim]
    return (structure.shape == (3,) * structure.ndim and not any(origins) and (turned == structure).all()
            and structure[(1,) * structure.ndim])


def _dilate_all(x, structure, mask):
    """x and all of the mask that is connected with it."""
    from ._measurements import label_elements
    field = _core.full(x.shape, True, np.bool_) if mask is None else mask | x
    labels, _ = label_elements(field, structure)
    reached = _base.zeros((x.size + 1,), np.bool_)
    call("scatter", (x.reshape(-1), labels.reshape(-1).astype(np.int64)), (2,), out=reached)
    reached[0] = False
    return call("gather", (reached, labels.astype(np.int64)))


def _dilate(x, structure, origins, iterations, mask, border):
    if iterations >= 1:
        for _ in range(iterations):
            x = _dilate_once(x, structure, origins, mask, border)
        return x
    x = _dilate_once(x, structure, origins, mask, border)
    if x.ndim and _is_symmetric(structure, origins):
        return _dilate_all(x, structure, mask)
    while True:
        before = x
        for _ in range(_AT_ONCE):
            x = _dilate_once(x, structure, origins, mask, border)
        if not bool((x != before).any()):
            return x


def _fill_binary(input, structure, iterations, mask, output, border_value, origin, axes, eroded):
    """binary_erosion (eroded) and binary_dilation. An erosion is a dilation of what is not there, with the structure
    turned round."""
    try:
        iterations = operator.index(iterations)
    except TypeError as error:
        raise TypeError("iterations parameter should be an integer") from error
    input = real_array(input)
    axes = check_axes(axes, input.ndim)
    structure, origins = _structure_of(structure, input.ndim, axes, origin)
    if mask is not None:
        mask = as_array(mask)
        if mask.shape != input.shape:
            raise RuntimeError("mask and input must have equal sizes")
        mask = mask != 0
    if isinstance(output, ndarray) and output.dtype.kind == "c":
        raise TypeError("Complex output type not supported")
    output = make_output(output if isinstance(output, ndarray) else np.dtype(bool), input)
    x = input != 0
    if eroded:
        result = ~_dilate(~x, structure, origins, iterations, mask, not border_value)
    else:
        result = _dilate(x, *_turn_window(structure, origins), iterations, mask, border_value)
    return _support.copy_into(output, result) if output is not None else result


def binary_erosion(input, structure=None, iterations=1, mask=None, output=None, border_value=0, origin=0,
                   brute_force=False, *, axes=None):
    """Elements all of whose neighbours are true.

    Parameters: input: array, true where it is not 0. structure: which neighbours; those along the axes unless given.
    iterations: how often; below 1 until nothing changes. mask: only its true elements change. output: array to fill.
    border_value: what stands beyond the edges. origin: of the structure, one for all axes, or one for each.
    brute_force: taken and not used. axes: those that the structure is for, all unless given.
    Returns: bool ndarray, or output.
    Raises: RuntimeError for a structure or a mask of another shape; TypeError for complex numbers.
    Source: scipy.ndimage.binary_erosion
    """
    return _fill_binary(input, structure, iterations, mask, output, border_value, origin, axes, True)


def binary_dilation(input, structure=None, iterations=1, mask=None, output=None, border_value=0, origin=0,
                    brute_force=False, *, axes=None):
    """Elements one of whose neighbours is true.

    Parameters: as binary_erosion.
    Returns: bool ndarray, or output.
    Raises: as binary_erosion.
    Source: scipy.ndimage.binary_dilation
    """
    return _fill_binary(input, structure, iterations, mask, output, border_value, origin, axes, False)


def binary_opening(input, structure=None, iterations=1, output=None, origin=0, mask=None, border_value=0,
                   brute_force=False, *, axes=None):
    """An erosion, and then a dilation.

    Parameters: as binary_erosion.
    Returns: bool ndarray, or output.
    Raises: as binary_erosion.
    Source: scipy.ndimage.binary_opening
    """
    between = binary_erosion(input, structure, iterations, mask, None, border_value, origin, brute_force, axes=axes)
    return binary_dilation(between, structure, iterations, mask, output, border_value, origin, brute_force, axes=axes)


def binary_closing(input, structure=None, iterations=1, output=None, origin=0, mask=None, border_value=0,
                   brute_force=False, *, axes=None):
    """A dilation, and then an erosion.

    Parameters: as binary_erosion.
    Returns: bool ndarray, or output.
    Raises: as binary_erosion.
    Source: scipy.ndimage.binary_closing
    """
    between = binary_dilation(input, structure, iterations, mask, None, border_value, origin, brute_force, axes=axes)
    return binary_erosion(between, structure, iterations, mask, output, border_value, origin, brute_force, axes=axes)


def binary_hit_or_miss(input, structure1=None, structure2=None, output=None, origin1=0, origin2=None, *, axes=None):
    """Places at which a pattern is.

    Parameters: input: array. structure1: which elements must be true; those along the axes unless given. structure2:
    which must be false; all others unless given. output: array to fill. origin1, origin2: of the structures. axes:
    those that they are for.
    Returns: bool ndarray, or None when output is given.
    Raises: as binary_erosion.
    Source: scipy.ndimage.binary_hit_or_miss
    """
    input = real_array(input)
    if structure1 is None:
        structure1 = binary_structure(len(check_axes(axes, input.ndim)), 1)
    structure1 = as_host(structure1, "structure1")
    structure2 = ~structure1.astype(bool) if structure2 is None else structure2
    hit = binary_erosion(input, structure1, origin=origin1, axes=axes)
    missed = binary_erosion(input == 0, structure2, border_value=1, origin=origin1 if origin2 is None else origin2,
                            axes=axes)
    if not isinstance(output, ndarray):
        return hit & missed
    _support.copy_into(output, hit & missed)
    return None


def binary_propagation(input, structure=None, mask=None, output=None, border_value=0, origin=0, *, axes=None):
    """Dilations until nothing changes.

    Parameters: as binary_erosion.
    Returns: bool ndarray, or output.
    Raises: as binary_erosion.
    Source: scipy.ndimage.binary_propagation
    """
    return binary_dilation(input, structure, -1, mask, output, border_value, origin, axes=axes)


def binary_fill_holes(input, structure=None, output=None, origin=0, *, axes=None):
    """True elements, and those that they surround.

    Parameters: as binary_erosion.
    Returns: bool ndarray, or None when output is given.
    Raises: as binary_erosion.
    Source: scipy.ndimage.binary_fill_holes
    """
    input = as_array(input)
    outside = binary_dilation(_base.zeros(input.shape, np.bool_), structure, -1, input == 0, None, 1, origin, axes=axes)
    if not isinstance(output, ndarray):
        return ~outside
    _support.copy_into(output, ~outside)
    return None


# ---- grey ----

def grey_erosion(input, size=None, footprint=None, structure=None, output=None, mode="reflect", cval=0.0, origin=0, *,
                 axes=None):
    """Minimum of windows, less a structure's heights.

    Parameters: input: array. size: of a box, one for all axes, or one for each. footprint: which elements the window
    has, instead. structure: heights. output, mode, cval, origin, axes: as minimum_filter.
    Returns: ndarray.
    Raises: ValueError where there is no window; as minimum_filter.
    Source: scipy.ndimage.grey_erosion
    """
    if size is None and footprint is None and structure is None:
        raise ValueError("size, footprint, or structure must be specified")
    return limit_windows(input, size, footprint, structure, output, mode, cval, origin, axes, MINIMUM)


def grey_dilation(input, size=None, footprint=None, structure=None, output=None, mode="reflect", cval=0.0, origin=0, *,
                  axes=None):
    """Maximum of windows, seen from the other side, and a structure's heights.

    Parameters: as grey_erosion.
    Returns: ndarray.
    Raises: as grey_erosion.
    Source: scipy.ndimage.grey_dilation
    """
    if size is None and footprint is None and structure is None:
        raise ValueError("size, footprint, or structure must be specified")
    input = as_array(input)
    axes = check_axes(axes, input.ndim)
    if structure is not None:
        structure = as_host(structure, "structure")[(slice(None, None, -1),) * np.ndim(structure)]
    if footprint is not None:
        footprint = as_host(footprint, "footprint")[(slice(None, None, -1),) * np.ndim(footprint)]
    window = footprint if footprint is not None else structure
    sizes = window.shape if window is not None else repeat_argument(size, len(axes))
    origins = [-o if n & 1 else -o - 1 for o, n in zip(repeat_argument(origin, len(axes)), sizes)]
    return limit_windows(input, size, footprint, structure, output, mode, cval, origins, axes, MAXIMUM)


def _warn_of_size(size, footprint):
    if size is not None and footprint is not None:
        warnings.warn("ignoring size because footprint is set", UserWarning, stacklevel=3)
        return None
    return size


def grey_opening(input, size=None, footprint=None, structure=None, output=None, mode="reflect", cval=0.0, origin=0, *,
                 axes=None):
    """A grey erosion, and then a dilation.

    Parameters: as grey_erosion.
    Returns: ndarray.
    Raises: as grey_erosion.
    Source: scipy.ndimage.grey_opening
    """
    size = _warn_of_size(size, footprint)
    between = grey_erosion(input, size, footprint, structure, None, mode, cval, origin, axes=axes)
    return grey_dilation(between, size, footprint, structure, output, mode, cval, origin, axes=axes)


def grey_closing(input, size=None, footprint=None, structure=None, output=None, mode="reflect", cval=0.0, origin=0, *,
                 axes=None):
    """A grey dilation, and then an erosion.

    Parameters: as grey_erosion.
    Returns: ndarray.
    Raises: as grey_erosion.
    Source: scipy.ndimage.grey_closing
    """
    size = _warn_of_size(size, footprint)
    between = grey_dilation(input, size, footprint, structure, None, mode, cval, origin, axes=axes)
    return grey_erosion(between, size, footprint, structure, output, mode, cval, origin, axes=axes)


def _give(result, output):
    """result in output where that is an array. As in SciPy a type there does not convert what two filters have made."""
    return _support.copy_into(output, result) if isinstance(output, ndarray) else result


def morphological_gradient(input, size=None, footprint=None, structure=None, output=None, mode="reflect", cval=0.0,
                           origin=0, *, axes=None):
    """A grey dilation less an erosion.

    Parameters: as grey_erosion.
    Returns: ndarray.
    Raises: as grey_erosion.
    Source: scipy.ndimage.morphological_gradient
    """
    high = grey_dilation(input, size, footprint, structure, None, mode, cval, origin, axes=axes)
    return _give(high - grey_erosion(input, size, footprint, structure, None, mode, cval, origin, axes=axes), output)


def morphological_laplace(input, size=None, footprint=None, structure=None, output=None, mode="reflect", cval=0.0,
                          origin=0, *, axes=None):
    """A grey dilation and an erosion, less twice the array.

    Parameters: as grey_erosion.
    Returns: ndarray.
    Raises: as grey_erosion.
    Source: scipy.ndimage.morphological_laplace
    """
    input = as_array(input)
    high = grey_dilation(input, size, footprint, structure, None, mode, cval, origin, axes=axes)
    low = grey_erosion(input, size, footprint, structure, None, mode, cval, origin, axes=axes)
    return _give(high + low - input - input, output)


def _subtract(a, b, out):
    return _u["bitwise_xor" if a.dtype == b.dtype == np.bool_ else "subtract"](a, b, out=out)


def _kind_of(output):
    """The type that output asks for, as an array or as a type; None: the input's."""
    return output.dtype if isinstance(output, ndarray) else output


def white_tophat(input, size=None, footprint=None, structure=None, output=None, mode="reflect", cval=0.0, origin=0, *,
                 axes=None):
    """An array less its opening.

    Parameters: as grey_erosion.
    Returns: ndarray.
    Raises: as grey_erosion.
    Source: scipy.ndimage.white_tophat
    """
    input = as_array(input)
    eroded = grey_erosion(input, size, footprint, structure, None, mode, cval, origin, axes=axes)
    opened = grey_dilation(eroded, size, footprint, structure, _kind_of(output), mode, cval, origin, axes=axes)
    return _give(_subtract(input, opened, opened), output)


def black_tophat(input, size=None, footprint=None, structure=None, output=None, mode="reflect", cval=0.0, origin=0, *,
                 axes=None):
    """The closing of an array less the array.

    Parameters: as grey_erosion.
    Returns: ndarray.
    Raises: as grey_erosion.
    Source: scipy.ndimage.black_tophat
    """
    input = as_array(input)
    dilated = grey_dilation(input, size, footprint, structure, None, mode, cval, origin, axes=axes)
    closed = grey_erosion(dilated, size, footprint, structure, _kind_of(output), mode, cval, origin, axes=axes)
    return _give(_subtract(closed, input, closed), output)
