"""Bits of bytes."""
import numpy as np

from .. import _base, _core
from .._base import as_array, reduce
from .._array.joining import concatenate
from .._array.manipulation import moveaxis

_u = _core.ufuncs


class _OrderError(TypeError, ValueError):
    """An order that is no text: NumPy raises TypeError, CuPy ValueError."""


def _weights(bitorder):
    if not isinstance(bitorder, str):
        raise _OrderError(f"'order' must be a text, 'little' or 'big', not {type(bitorder).__name__}")
    if bitorder not in ("big", "little"):
        raise ValueError("'order' must be either 'little' or 'big'")
    bits = np.arange(8, dtype=np.uint8)
    return as_array(bits[::-1] if bitorder == "big" else bits)


def packbits(a, /, axis=None, bitorder="big"):
    """Truth values as the bits of bytes, zeros at the end.

    Parameters: a: array of ints or bools. axis: the axis; flattened unless given. bitorder: 'big': the first is the
    highest bit, or 'little'.
    Returns: uint8 ndarray, the axis eight times shorter, rounded up.
    Raises: TypeError for other types; ValueError for another bitorder; AxisError.
    Source: numpy.packbits
    """
    a = as_array(a)
    if a.dtype.kind not in "biu":
        raise TypeError("Expected an input array of integer or boolean data type")
    weights = _weights(bitorder)
    a, axis = _base.one_axis(a, axis)
    bits = moveaxis((a != 0).astype(np.uint8), axis, -1)
    rest = -bits.shape[-1] % 8
    if rest:
        bits = concatenate([bits, _base.zeros(bits.shape[:-1] + (rest,), np.uint8)], -1)
    bytes_ = bits.reshape(bits.shape[:-1] + (bits.shape[-1] // 8, 8)) << weights
    return moveaxis(reduce("sum", bytes_, -1, np.uint8), -1, axis)


def unpackbits(a, /, axis=None, count=None, bitorder="big"):
    """The bits of bytes as zeros and ones.

    Parameters: a: uint8 array. axis: the axis; flattened unless given. count: how many bits to give: fewer (negative:
    that many less), or zeros after them. bitorder: as packbits.
    Returns: uint8 ndarray, the axis eight times longer, or count long.
    Raises: TypeError for other types; ValueError for another bitorder; AxisError.
    Source: numpy.unpackbits
    """
    a = as_array(a)
    if a.dtype != np.uint8:
        raise TypeError("Expected an input array of unsigned byte data type")
    weights = _weights(bitorder)
    a, axis = _base.one_axis(a, axis)
    bits = moveaxis(a, axis, -1)[..., None] >> weights & 1
    bits = bits.reshape(bits.shape[:-2] + (bits.shape[-2] * 8,))
    size = bits.shape[-1]
    if count is not None and count < 0:
        if -count > size:
            raise ValueError(f"-ve count (={count}) must not exceed the axis length (={size})")
        bits = bits[..., :size + count]
    elif count is not None and count <= size:
        bits = bits[..., :count]
    elif count is not None:
        bits = concatenate([bits, _base.zeros(bits.shape[:-1] + (count - size,), np.uint8)], -1)
    return moveaxis(bits, -1, axis)
