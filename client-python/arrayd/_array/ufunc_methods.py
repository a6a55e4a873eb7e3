"""Methods of ufuncs: reduce, accumulate, outer, at. Those rows have them for which the tables name an operation."""
from .. import _core
from .._base import as_array, no_value, reduce
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
    Returns: None. A mask on the server costs a round trip.
    Raises: TypeError for a ufunc that has no such form; IndexError (at the next sync) out of bounds.
    Source: numpy.ufunc.at
    """
    from .scatter import scatter
    if b is no_value and self.nin == 2:
        raise ValueError("second operand needed for ufunc")
    if self is _core.ufuncs["subtract"] and a.dtype != bool:
        self, b = _core.ufuncs["add"], _core.ufuncs["negative"](as_array(b).astype(a.dtype))
    mode = _named(self, "scatter", "at")
    scatter(a, indices, b, mode)


class _Signature:
    """What inspect.signature says of a ufunc."""

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
    for name, method in {"reduce": _reduce, "accumulate": _accumulate, "outer": _outer, "at": _at}.items():
        setattr(_core.ufunc, name, method)
