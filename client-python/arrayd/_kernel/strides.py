"""Shapes and strides as kernels get them: with as few dimensions as one can do with."""
import struct

import numpy as np


def broadcast(shapes):
    """numpy.broadcast_shapes, of however many."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError as error:
        raise ValueError(str(error)) from None


def stretched(array, shape):
    """The strides of an array broadcast to a shape, in bytes."""
    before = len(shape) - array.ndim
    return (0,) * before + tuple(0 if have == 1 and want != 1 else stride
                                 for have, want, stride in zip(array.shape, shape[before:], array.strides))


def merged(shape, several):
    """shape, and several arrays' strides in it, with neighbouring dimensions made one where all arrays allow it."""
    sizes, kept = [], [[] for _ in several]
    for axis, size in enumerate(shape):
        if size == 1:
            continue
        if sizes and all(mine[-1] == strides[axis] * size for mine, strides in zip(kept, several)):
            sizes[-1] *= size
            for mine, strides in zip(kept, several):
                mine[-1] = strides[axis]
            continue
        sizes.append(size)
        for mine, strides in zip(kept, several):
            mine.append(strides[axis])
    return tuple(sizes), [tuple(mine) for mine in kept]


def is_flat(shape, strides, itemsize):
    """Whether elements of these strides lie in C order without gaps."""
    for size, stride in zip(reversed(shape), reversed(strides)):
        if size != 1 and stride != itemsize:
            return False
        itemsize *= size
    return True


def dims(values):
    """Return what dims<len(values)> is, as bytes."""
    return struct.pack(f"<{len(values)}q", *values) if values else bytes(8)
