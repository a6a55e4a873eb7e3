"""Arrays as if they had one dimension: ndarray.flat."""
import operator

import numpy as np

from .. import _base
from . import protocols
from .._base import ndarray
from .indexing import _coordinates, place, put
from .joining import resize


class flatiter:
    """The elements of an array in row-major order: to go through, to index, to assign to. Nothing of it waits but
    masks on the server, and what is done with the elements.

    Parameters: a: array.
    Source: numpy.flatiter
    """

    __slots__ = ("base", "index")
    __hash__ = None
    __array__ = protocols.array

    def __init__(self, a):
        if not isinstance(a, ndarray):
            raise TypeError(f"flatiter goes through an arrayd.ndarray, not a {type(a).__name__}")
        self.base, self.index = a, 0

    @property
    def coords(self):
        """Coordinates of the element that comes next.

        Source: numpy.flatiter.coords
        """
        return _place(self.index, self.base.shape)

    def copy(self):
        """The elements as a new 1-d array.

        Returns: ndarray.
        Source: numpy.flatiter.copy
        """
        return self.base.flatten()

    _as_array = copy

    def __len__(self):
        return self.base.size

    def __iter__(self):
        return self

    def __next__(self):
        if self.index == self.base.size:
            raise StopIteration
        self.index += 1
        return self.base[_place(self.index - 1, self.base.shape)]

    def __getitem__(self, key):
        base, key = self.base, _plain(key, self.base.size)
        if isinstance(key, int):
            return base[_place(key, base.shape)]
        if isinstance(key, slice):
            return _slice(base, *key.indices(base.size))
        if base.flags.c_contiguous or key.dtype == bool:
            return base.reshape(-1)[key]
        return base[_place(key, base.shape)]

    def __setitem__(self, key, value):
        base, key = self.base, _plain(key, self.base.size)
        value = _base.as_operand(value)
        value = value.astype(base.dtype, copy=False) if isinstance(value, ndarray) else value
        if isinstance(key, int):
            if getattr(value, "ndim", 0):
                raise ValueError("Error setting single item of array.")
            base[_place(key, base.shape)] = value
        elif isinstance(value, ndarray) and not value.size:
            return
        elif isinstance(key, slice):
            _set_slice(base, *key.indices(base.size), value)
        elif key.dtype == bool:
            _set_mask(base, key, value)
        else:
            put(base, key, value)

    def __repr__(self):
        return f"<arrayd.flatiter of shape {self.base.shape}, dtype {self.base.dtype}>"


def _compare(name):
    compare = getattr(operator, name)
    return lambda self, other: compare(self.copy(), other.copy() if isinstance(other, flatiter) else other)


for _name in ("__lt__", "__le__", "__eq__", "__ne__", "__gt__", "__ge__"):
    setattr(flatiter, _name, _compare(_name))
del _name


# ---- keys ----

def _place(index, shape):
    """Coordinates of an element, or of the elements that an array names; the place behind the last one has some too."""
    if not shape:
        return ()
    if isinstance(index, ndarray):
        return _coordinates(index, shape)
    index = index + (index < 0) * _base.product(shape)
    coordinates = np.unravel_index(index, (shape[0] + 1, *shape[1:]))
    return coordinates if isinstance(index, np.ndarray) else tuple(map(int, coordinates))


def _plain(key, size):
    """A key as an int, a slice, an array of ints, here (and within bounds) or on the server, or a mask there."""
    if isinstance(key, tuple):
        if len(key) > 1:
            raise IndexError("too many indices for flat iterator: flat iterator is 1-dimensional, but "
                             f"{len(key)} were indexed")
        key = key[0] if key else ...
    if key is Ellipsis:
        return slice(None)
    if isinstance(key, slice):
        return key
    if not isinstance(key, ndarray):
        return _host_key(np.asarray(key, np.intp if isinstance(key, list) and not key else None), size)
    _check_kind(key)
    if key.dtype == bool:
        _check_mask(key, size)
    return key


def _host_key(key, size):
    _check_kind(key)
    if key.dtype == bool:
        _check_mask(key, size)
        key = np.flatnonzero(key)
    wrong = key[(key < -size) | (key >= size)]
    if wrong.size:
        raise IndexError(f"index {wrong[0]} is out of bounds for size {size}")
    return key.astype(np.intp) if key.ndim else int(key)


def _check_kind(key):
    if key.dtype.kind not in "iub" or key.dtype.kind == "b" and not key.ndim:
        raise IndexError("only integers, slices (`:`), ellipsis (`...`) and integer or boolean arrays are valid "
                         "indices")


def _check_mask(mask, size):
    if mask.shape != (size,):
        raise IndexError(f"boolean index did not match indexed flat iterator: its shape is {mask.shape}, not {(size,)}")


# ---- slices and masks ----

def _slice(base, start, stop, step):
    length = len(range(start, stop, step))
    if not base.flags.c_contiguous:
        return base[_coordinates_of(base, length, start, step)]
    return base.reshape(-1)[_nonnegative(start, stop, step)].copy()


def _set_slice(base, start, stop, step, value):
    length = len(range(start, stop, step))
    if not length:
        return
    value = _repeated(value, length)
    if length == base.size and step == 1:
        base[...] = value.reshape(base.shape) if getattr(value, "ndim", 0) else value
    elif base.flags.c_contiguous:
        base.reshape(-1)[_nonnegative(start, stop, step)] = value
    else:
        base[_coordinates_of(base, length, start, step)] = value


def _set_mask(base, mask, value):
    value = _one(value)
    if isinstance(value, ndarray) and value.size > 1:
        place(base, mask, value)
    else:
        base[mask.reshape(base.shape)] = value


def _nonnegative(start, stop, step):
    """The slice that slice.indices() tells; an end before the first element must not mean the last."""
    return slice(start, None if stop < 0 else stop, step)


def _coordinates_of(base, length, start, step):
    return _coordinates(_base.iota(length, start, step, np.int64), base.shape)


def _one(value):
    """An array of one element as a 0-d array."""
    return value.reshape(()) if isinstance(value, ndarray) and value.size == 1 else value


def _repeated(value, length):
    """Values for so many elements: as often as needed, and no more than needed."""
    value = _one(value)
    return value if not getattr(value, "ndim", 0) else resize(value, length)
