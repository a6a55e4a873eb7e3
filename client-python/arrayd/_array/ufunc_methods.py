"""Methods of ufuncs: reduce, accumulate, reduceat, outer, at. The tables name the operations behind the first three;
at is there for all."""
import numpy as np

from .. import _base, _core
from .._base import along, as_array, no_value, normalize_axis, reduce
from .._math.reductions import _mask, _plain, _scan


def _named(ufunc, what, method):
    if ufunc.nin != 2:
        raise ValueError(f"{method} only supported for binary functions")
    row = getattr(ufunc, what)
    if row is None:
        raise TypeError(f"arrayd has no {ufunc.__name__}.{method}")
    return row


def _reduce(self, array, axis=0, dtype=None, out=None, keepdims=False, initial=no_value, where=True):
    """The ufunc applied to all elements along axes.

    Parameters: array: array. axis: axis or tuple of axes, None for all. dtype, out, keepdims, initial, where: as sum.
    Returns: ndarray.
    Raises: TypeError for a ufunc that has no reduction.
    Source: numpy.ufunc.reduce
    """
    out = out[0] if isinstance(out, tuple) else out
    return reduce(_named(self, "reduction", "reduce"), as_array(array), axis, dtype, out, keepdims, _plain(initial),
                  _mask(where))


def _accumulate(self, array, axis=0, dtype=None, out=None):
    """The ufunc applied to all elements up to each one along an axis.

    Parameters: array: array. axis: the axis. dtype, out: as cumsum.
    Returns: ndarray of array's shape.
    Raises: TypeError for a ufunc that has no running form, or a 0-d array.
    Source: numpy.ufunc.accumulate
    """
    name = _named(self, "scan", "accumulate")
    a = as_array(array)
    if a.ndim == 0:
        raise TypeError("cannot accumulate on a scalar")
    return _scan(name, a, axis, dtype, out[0] if isinstance(out, tuple) else out)


def _outer(self, A, B, /, **options):
    """The ufunc of every element of A with every element of B.

    Parameters: A, B: arrays; the types of numbers count as those of arrays do. options: those of the ufunc.
    Returns: ndarray of shape A.shape + B.shape.
    Raises: ValueError for a ufunc that has not two inputs.
    Source: numpy.ufunc.outer
    """
    if self.nin != 2:
        raise ValueError("outer product only supported for binary functions")
    a, b = as_array(A), as_array(B)
    return self(a.reshape(a.shape + (1,) * b.ndim), b, **options)


def _at(self, a, indices, b=no_value, /):
    """The ufunc applied in place to the elements that indices name; one named twice is changed twice.

    Parameters: a: array that is written. indices: what a[indices] takes. b: second operand.
    Returns: None. A mask on the server costs a round trip; so do ufuncs for which the order in which an element is
    changed matters, and they take as many steps as the most that one element is changed.
    Raises: TypeError for a ufunc of other than one or two inputs and one output, or types that it does not take;
    ValueError for a missing or a needless b; IndexError (at the next sync) out of bounds.
    Source: numpy.ufunc.at
    """
    from .scatter import scatter
    if self.nout != 1 or self.nin > 2:
        raise TypeError(f"at is for ufuncs of one or two inputs and one output, which {self.__name__} is not")
    if (b is no_value) != (self.nin == 1):
        raise ValueError("second operand needed for ufunc" if b is no_value else
                         "second operand provided when ufunc is unary")
    if self is _core.ufuncs["subtract"] and a.dtype != bool:
        self, b = _core.ufuncs["add"], _core.ufuncs["negative"](as_array(b).astype(a.dtype))
    if self.scatter is not None:
        scatter(a, indices, b, self.scatter)
    else:
        _change_each(self, a, indices, b)


# Of these, what elements are changed by may be put together first, in any grouping.
_ASSOCIATIVE = {"multiply", "bitwise_and", "bitwise_or", "bitwise_xor", "logical_and", "logical_or", "logical_xor", "gcd",
                "lcm", "fmax", "fmin"}


def _change_each(ufunc, a, key, b):
    """ufunc.at without an operation of the server's: the places are sorted, so that equal ones are neighbours."""
    from .creation import arange
    from .indexing import _set_flat
    from .manipulation import broadcast_to
    places = arange(a.size).reshape(a.shape)[key]
    values = None if b is no_value else broadcast_to(as_array(b), places.shape).reshape(-1)
    kind = ufunc(a.reshape(-1)[:0], *(() if values is None else (b if _base.is_scalar(b) else values[:0],))).dtype
    places = places.reshape(-1)
    order = _base.call("argsort", (places,), (0,))
    places = places[order]
    values = None if values is None else values[order]
    first = _base.call("searchsorted", (places, places), (False,))
    if ufunc.__name__ in _ASSOCIATIVE and kind == a.dtype:
        values = _gathered(ufunc, places, first, values)[first]
        _set_flat(a, places, ufunc(a.reshape(-1)[places], values))
        return
    number = arange(places.size) - first
    for step in range(int(number.max()) + 1 if places.size else 0):
        now = number == step
        chosen = places[now]
        parts = () if values is None else (values[now],)
        _set_flat(a, chosen, ufunc(a.reshape(-1)[chosen], *parts).astype(a.dtype))


def _gathered(ufunc, places, first, values):
    """Values that stand, where a place begins, for all of its values: pairs of them are put together, then pairs of
    pairs, and so on."""
    from .creation import arange
    number, step = arange(places.size) - first, 1
    while step < places.size:
        here, there = values[:-step], values[step:]
        both = (places[:-step] == places[step:]) & (number[:-step] % (2 * step) == 0)
        values = values.copy()
        _core.ufuncs["copy"](ufunc(here, there), out=values[:-step], where=both, casting="unsafe")
        step *= 2
    return values


def _reduceat(self, array, indices, axis=0, dtype=None, out=None):
    """The ufunc applied to the elements of slices along an axis: from each index to the next, of one element where the
    next is not greater, and from the last to the end.

    Parameters: array: array. indices: 1-d, ints (an array of the server costs a round trip). axis: the axis. dtype, out:
    as sum.
    Returns: ndarray of array's shape, with as many as there are indices along the axis.
    Raises: TypeError for a ufunc that has no reduction, or indices that are no ints; ValueError for indices of other
    dimensions; IndexError out of bounds; AxisError.
    Source: numpy.ufunc.reduceat
    """
    row, a = _named(self, "reduction", "reduceat"), as_array(array)
    axis, out = normalize_axis(axis, a.ndim), out[0] if isinstance(out, tuple) else out
    starts = _base.as_host(indices, "indices")
    if starts.dtype.kind not in "iu" and (starts.size or hasattr(indices, "dtype")):
        raise TypeError(f"indices must be integers, not {starts.dtype}")
    if starts.ndim != 1:
        raise ValueError(f"indices must be 1-d, not {starts.ndim}-d")
    starts, size = starts.astype(np.int64), a.shape[axis]
    wrong = starts[(starts < 0) | (starts >= size)]
    if wrong.size:
        raise IndexError(f"index {wrong[0]} out-of-bounds in {self.__name__}.reduceat [0, {size})")
    lengths = np.maximum(np.diff(starts, append=size), 1)
    shape = a.shape[:axis] + starts.shape + a.shape[axis + 1:]
    kind = reduce(row, a.reshape(-1)[:1], dtype=dtype if dtype is not None or out is None else out.dtype).dtype
    result = _base.empty(shape, kind)
    # Slices whose lengths have as many binary digits are reduced together, filled up with their last elements.
    for digits in np.unique(np.frexp(lengths)[1]):
        chosen = np.flatnonzero(np.frexp(lengths)[1] == digits)
        offsets = np.arange(lengths[chosen].max())
        inside = offsets < lengths[chosen, None]
        places = starts[chosen, None] + np.where(inside, offsets, 0)
        part = a[along(a.ndim, axis, as_array(places))]
        mask = None
        if not inside.all() and row in ("sum", "prod"):
            mask = as_array(inside.reshape(inside.shape + (1,) * (a.ndim - axis - 1)))
        result[along(a.ndim, axis, as_array(chosen))] = reduce(row, part, axis + 1, kind, None, False, None, mask)
    return _base.give(result, out)


class _Signature:
    """The signature of a ufunc, for inspect.signature."""

    def __get__(self, ufunc, cls):
        if ufunc is None:  # of the type, which is no function
            return None
        import inspect
        names = ("x",) if ufunc.nin == 1 else (f"x{i + 1}" for i in range(ufunc.nin))
        kind = inspect.Parameter
        out = None if ufunc.nout == 1 else (None,) * ufunc.nout
        options = {"where": True, "casting": "same_kind", "order": "K", "dtype": None, "subok": True}
        return inspect.Signature([*(kind(name, kind.POSITIONAL_ONLY) for name in names),
                                  kind("out", kind.POSITIONAL_OR_KEYWORD, default=out),
                                  *(kind(name, kind.KEYWORD_ONLY, default=options[name]) for name in options)])


def install():
    """Attach the methods to the type, which is made in C."""
    _core.ufunc.__signature__ = _Signature()
    for name, method in {"reduce": _reduce, "accumulate": _accumulate, "reduceat": _reduceat, "outer": _outer,
                         "at": _at}.items():
        setattr(_core.ufunc, name, method)
