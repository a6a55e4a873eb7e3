"""== and != with what is no number and no array of the server: None, text, lists, other objects."""
import numpy as np

from .. import _core
from .._base import as_array, ndarray


def compare(a, other, unequal):
    """a == other, or a != other, for each element as in NumPy; NotImplemented where NumPy leaves it to the other.

    Nothing waits for the server unless the elements must be asked one by one, as for a Decimal."""
    if not isinstance(other, (np.generic, type)):
        priority = getattr(other, "__array_priority__", 0)
        if hasattr(type(other), "__array_ufunc__") or priority > ndarray.__array_priority__:
            return NotImplemented
    try:
        host = np.asarray(other)
    except TypeError:  # a list of arrays of the server
        host = as_array(other)
    if isinstance(host, ndarray) or _is_known(host.dtype):
        return _core.ufuncs["not_equal" if unequal else "equal"](a, as_array(host))
    if host.dtype.kind in "US" or host.ndim == 0 and _equals_nothing(host.item()):
        return _core.full(np.broadcast_shapes(a.shape, host.shape), unequal, bool)
    return as_array(np.asarray(a.get() != host if unequal else a.get() == host, bool))


def _is_known(dtype):
    try:
        _core.as_dtype(dtype)
    except TypeError:
        return False
    return True


def _equals_nothing(value):
    """Whether it equals no number, because its class does not say what it equals."""
    kind = type(value)
    return value is None or (kind.__eq__ is object.__eq__ and kind.__ne__ is object.__ne__)
