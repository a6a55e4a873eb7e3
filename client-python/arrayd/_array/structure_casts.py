"""Assigning, casting and comparing structures: field by field, or all bytes at once where that is the same."""
import functools
import operator

import numpy as np

from .. import _base, _core
from .._base import as_array, ndarray
from .structured import FIELDS, StructuredArray, extend_key, from_host, view_strided

_BYTE = np.dtype("u1")


# ---- what is assigned ----

def assign(target, key, value):
    """target[key] = value, as NumPy does it.

    Parameters: target: array of structures. key: index, no name of a field. value: array, structure, tuple, number for all
    fields, or lists of them.
    Returns: None.
    Raises: TypeError for a cast that NumPy has not; ValueError for shapes, and for fields that do not lie aligned.
    Source: arrayd
    """
    source = _as_source(value, target.dtype)
    if not np.can_cast(source.dtype, target.dtype, "unsafe"):
        raise TypeError(f"Cannot cast array data from {source.dtype!r} to {target.dtype!r}")
    _put(target, extend_key(key, 0), source)


def _as_source(value, dtype):
    """An array of the server that has what is assigned to elements of a type."""
    if isinstance(value, ndarray):
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        host = np.asarray(value)
        return from_host(host.astype(dtype)) if host.size < 2 or host.dtype.kind == "V" else as_array(host)
    if _base.is_scalar(value):
        host = np.empty((), dtype)
        host[...] = value
        return from_host(host)
    return as_array(value, dtype)


def _put(target, key, source):
    """target[key] = source, where either may be of structures, and casts are allowed."""
    if not _is_structured(target):
        target[key] = _only_field(source)
    elif target.dtype.names is None or (_is_structured(source) and source.dtype.names is None):
        _put_bytes(target, key, source)
    elif source.dtype == target.dtype and _is_packed(target.dtype):
        to, of = _same_units(target, source)
        to[extend_key(key)] = of
    else:
        _put_fields(target, key, source)


def _put_fields(target, key, source):
    names = target.dtype.names
    of = source.dtype.names if _is_structured(source) else (None,) * len(names)
    if len(of) != len(names):
        raise ValueError(f"could not assign structures of {len(of)} fields to structures of {len(names)}")
    for name, other in zip(names, of):
        field, part = read_field(target, name), source if other is None else read_field(source, other)
        more = field.ndim - target.ndim
        if other is None and more:
            part = part.reshape(part.shape + (1,) * more)
        _put(field, extend_key(key, more) if more else key, part)
        if not target._is_aligned(name):  # then field is a copy
            _bytes_of_field(target, name)[...] = as_bytes(field).reshape((*target.shape, -1))


def read_field(a, name):
    """A field: a view, or a copy where its numbers do not lie aligned.

    Parameters: a: array of structures. name: of the field.
    Returns: array.
    Source: arrayd
    """
    if a._is_aligned(name):
        return a[name]
    packed = _bytes_of_field(a, name).copy()
    return view_strided(packed, a.shape, packed.strides[:-1], 0, a.dtype.fields[name][0])


def _bytes_of_field(a, name):
    kind, offset = a.dtype.fields[name][:2]
    return view_strided(a, (*a.shape, kind.itemsize), (*a.strides, 1), offset, _BYTE)


def _put_bytes(target, key, source):
    """Bytes as they lie, cut off or followed by zeros."""
    to, of = as_bytes(target), as_bytes(source)
    n = min(to.shape[-1], of.shape[-1])
    to[..., :n][extend_key(key)] = of[..., :n]
    if n < to.shape[-1]:
        to[..., n:][extend_key(key)] = 0


def _only_field(source):
    while _is_structured(source):
        if len(source.dtype.names or ()) != 1:
            raise TypeError(f"structures of {source.dtype!r} are no numbers: {FIELDS}")
        source = read_field(source, source.dtype.names[0])
    return source


def _is_structured(a):
    return type(a) is StructuredArray


def as_bytes(a):
    """An array's memory as bytes, along one axis more.

    Parameters: a: array, also of structures.
    Returns: ndarray of uint8, a view.
    Source: arrayd
    """
    return view_strided(a, (*a.shape, a.dtype.itemsize), (*a.strides, 1), 0, _BYTE)


def _same_units(a, b):
    """The units of two arrays whose elements have one size, in units of one size."""
    return (a._units, b._units) if a._units.dtype == b._units.dtype else (as_bytes(a), as_bytes(b))


@functools.lru_cache(256)
def _is_packed(dtype):
    """Whether the fields of structures take all their bytes, so that copying all copies nothing else."""
    if dtype.names is None:
        return True
    kinds = [dtype.fields[name][0] for name in dtype.names]
    return sum(kind.itemsize for kind in kinds) == dtype.itemsize and all(_is_packed(kind.base) for kind in kinds)


def copy_where(target, source, mask):
    """copyto(target, source, where=mask) of structures.

    Parameters: target: array of structures. source: what can be assigned to it. mask: bool array of its shape.
    Returns: None.
    Source: arrayd
    """
    new = target.copy()
    new[...] = source
    to, of = _same_units(target, new)
    _core.ufuncs["copy"](of, out=to, where=mask.reshape((*mask.shape, 1)))


# ---- casts ----

def cast(a, dtype, order, casting):
    """a.astype(dtype, order, casting), where a or the result is of structures.

    Parameters: a: array. dtype: numpy.dtype. order: 'C', 'F', 'A' or 'K'. casting: a rule.
    Returns: array of structures or ndarray.
    Raises: TypeError for a cast that the rule forbids, or NumPy has not.
    Source: arrayd
    """
    from .creation import empty_like
    if not np.can_cast(a.dtype, dtype, casting):
        raise TypeError(f"Cannot cast array data from {a.dtype!r} to {dtype!r} according to the rule {casting!r}")
    made = empty_like(a, dtype, order)
    if _is_structured(made) and not _is_packed(dtype):
        as_bytes(made)[...] = 0
    _put(made, (Ellipsis,), a)
    return made


# ---- comparisons ----

def compare(name, a, b):
    """a == b or a != b, where one is of structures.

    Parameters: name: "equal" or "not_equal". a, b: arrays, of which one may be a structure of NumPy's.
    Returns: ndarray of bool.
    Raises: TypeError where NumPy compares no such types; ValueError for shapes.
    Source: arrayd
    """
    a, b = (from_host(np.asarray(each)) if isinstance(each, np.void) else each for each in (a, b))
    for each in (a, b):
        if isinstance(each, np.ndarray):
            raise TypeError(f"{name}: unsupported operand: numpy.ndarray; arrayd does not upload arrays by itself, "
                            "arrayd.asarray(x) does")
    # NumPy says which types can be compared.
    operator.eq(*(np.empty(0, each.dtype) if isinstance(each, ndarray) else each for each in (a, b)))
    same = _equal(a, b)
    return same if name == "equal" else _core.ufuncs["logical_not"](same)


def _equal(a, b):
    if not _is_structured(a):
        kind = np.promote_types(a.dtype, b.dtype)
        return _core.ufuncs["equal"](*(each.astype(kind, copy=False) for each in (a, b)))
    if a.dtype == b.dtype and _is_told_by_bytes(a.dtype):
        return _core.ufuncs["equal"](*_same_units(a, b)).all(-1)
    same = None
    for one, two in zip(a.dtype.names, b.dtype.names):
        left, right = read_field(a, one), read_field(b, two)
        found, more = _equal(left, right), left.ndim - a.ndim
        found = found.all(tuple(range(-more, 0))) if more else found
        same = found if same is None else _core.ufuncs["logical_and"](same, found)
    return same


@functools.lru_cache(256)
def _is_told_by_bytes(dtype):
    """Whether elements are equal exactly where their bytes are: integers without gaps, as -0.0 is 0.0 and NaN is not NaN."""
    if dtype.names is None:
        return dtype.kind in "iuV" and dtype.subdtype is None
    return _is_packed(dtype) and all(_is_told_by_bytes(dtype.fields[name][0].base) for name in dtype.names)
