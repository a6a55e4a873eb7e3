"""Distances from the nearest element that is 0."""
import numpy as np

from ... import _base, _core
from ..._base import as_array, call, ndarray
from . import _support

_u = _core.ufuncs


def _check_results(distances, indices, return_distances, return_indices):
    wrong = []
    if not return_distances and not return_indices:
        wrong.append("at least one of return_distances/return_indices must be True")
    if distances is not None and not return_distances:
        wrong.append("return_distances must be True if distances is supplied")
    if indices is not None and not return_indices:
        wrong.append("return_indices must be True if indices is supplied")
    if wrong:
        raise RuntimeError(", ".join(wrong))


def _check_given(given, what, shape, kinds):
    if given is None:
        return
    if not isinstance(given, ndarray) or given.shape != shape:
        raise RuntimeError(f"{what} array has wrong shape")
    if given.dtype not in kinds:
        raise RuntimeError(f"{what} array must be {' or '.join(np.dtype(kind).name for kind in kinds)}")


def _types_of_places(shape):
    """The types of integers that hold each place of an array of this shape, without those of 8 bits, as in CuPy."""
    return tuple(kind for kind in (np.int32, np.int64, np.uint32, np.uint64, np.int16, np.uint16)
                 if np.iinfo(kind).max >= max(shape) - 1)


def _places(nearest, shape, indices):
    """Places along each axis, of places in row-major order."""
    if indices is None:
        indices = _base.empty((len(shape), *shape), np.int32)
    rest = nearest
    for axis in range(len(shape) - 1, -1, -1):
        indices[axis] = rest % max(shape[axis], 1)
        rest = rest // max(shape[axis], 1)
    return indices


def distance_transform_edt(image, sampling=None, return_distances=True, return_indices=False, distances=None,
                           indices=None, *, block_params=None, float64_distances=True):
    """Euclidean distance from the nearest element that is 0.

    Parameters: image: array. sampling: distance of neighbours, one for all axes, or one for each. return_distances,
    return_indices: what is returned. distances, indices: arrays to fill. block_params: taken and not used.
    float64_distances: else float32.
    Returns: distances, places of the nearest elements (int32, of shape (ndim, ...)), or a tuple of both; what is given is
    left out, and None when nothing remains. Places are given in any type of integers of 16 bits or more that holds them.
    Raises: RuntimeError for arrays of another shape or type, or when nothing is asked for.
    Source: scipy.ndimage.distance_transform_edt
    Differs: of several elements at one distance another one may be named; without any that is 0 the distance is 0.
    """
    _check_results(distances, indices, return_distances, return_indices)
    image = as_array(image)
    image = image if image.ndim else image.reshape(1)
    kind = np.float64 if float64_distances else np.float32
    _check_given(distances, "distances", image.shape, (np.float64,) if float64_distances else (np.float32,))
    _check_given(indices, "indices", (image.ndim, *image.shape), _types_of_places(image.shape))
    steps = np.asarray(_support.repeat_argument(1.0 if sampling is None else sampling, image.ndim), np.float64)
    square, nearest = call("nearest_zero", (image != 0, as_array(steps)), dtype=np.bool_)
    result = []
    if return_distances:
        far = _u["sqrt"](square)
        far = far if float64_distances else far.astype(kind)
        result += [far] if distances is None else []
        if distances is not None:
            distances[...] = far
    if return_indices:
        places = _places(_u["maximum"](nearest, 0), image.shape, indices)
        result += [places] if indices is None else []
    return tuple(result) if len(result) == 2 else result[0] if result else None
