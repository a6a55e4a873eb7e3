"""NumPy's functions and ufuncs on arrays of the server. arrayd's names are NumPy's, and so a name is all it takes."""
import contextvars
import functools
import os
import sys

import numpy as np

from .. import _core
from .._base import ndarray

# The short way for operators with a NumPy scalar on the left: ufuncs of NumPy that were seen, and arrayd's for them.
_seen = {}
_OPERANDS = {ndarray, bool, int, float, complex, *(np.dtype(letter).type for letter in "?bhilqBHILQefdFD")}
_COMPARISONS = frozenset("less less_equal equal not_equal greater greater_equal".split())


# ---- ufuncs: NEP 13 ----

def array_ufunc(self, ufunc, method, /, *inputs, **kwargs):
    """numpy.add(a, b) and its like, the methods of NumPy's ufuncs, and operators with a NumPy scalar on the left.

    Parameters: ufunc, method, inputs, kwargs: as NumPy hands them over.
    Returns: what arrayd's ufunc of that name gives; NotImplemented beside an array of a third library.
    Raises: TypeError for a ufunc that arrayd lacks, and for a numpy.ndarray: arrayd does not upload it by itself.
    Source: numpy.ndarray.__array_ufunc__
    """
    if not kwargs and method == "__call__" and ufunc in _seen and _OPERANDS.issuperset(map(type, inputs)):
        return _seen[ufunc](*inputs)
    for each in (*inputs, *kwargs.get("out", ()), kwargs.get("where")):
        if not _takes(type(each), "__array_ufunc__"):
            return NotImplemented
    for each in kwargs.get("out", ()):
        if isinstance(each, np.ndarray):
            raise TypeError(f"{ufunc.__name__}: the result would be an array of the server, which cannot be written into a "
                            "numpy.ndarray, as `n += a` and out=n ask for: make n an arrayd array (arrayd.asarray(n)), or "
                            "fetch the other one (n += a.get())")
    own = _ufunc(ufunc)
    run = own if method == "__call__" else getattr(own, method, None)
    if run is None:
        name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
        raise TypeError(f"arrayd has no counterpart of NumPy's ufunc {name}; a.get() gives a NumPy array for it")
    if ufunc.__name__ in _COMPARISONS and method == "__call__":
        inputs = map(_number, inputs)
    elif method == "outer" or not isinstance(own, _core.ufunc):
        kwargs = _of_function(ufunc.__name__, inputs, kwargs)
    elif method == "__call__":
        _seen[ufunc] = own
    return run(*inputs, **kwargs)


@functools.lru_cache(256)
def _takes(kind, protocol):
    """Whether arrayd may see to objects of a type: those without the protocol, NumPy's arrays and its own."""
    if issubclass(kind, ndarray) or hasattr(kind, "_units"):  # an array of structures has units
        return True
    return getattr(kind, protocol, None) in (None, getattr(np.ndarray, protocol))


def _special(ufunc):
    """arrayd's function for a ufunc of scipy.special, which has been imported by whoever has it; else None."""
    theirs = sys.modules.get("scipy.special")
    if getattr(theirs, ufunc.__name__, None) is not ufunc:
        return None
    from ..scipy import special
    return getattr(special, ufunc.__name__, None)


@functools.lru_cache(256)
def _ufunc(ufunc):
    """arrayd's ufunc or function for a ufunc of NumPy, else None: another library's may mean anything by its name."""
    name = ufunc.__name__
    if getattr(np, name, None) is not ufunc:
        return _special(ufunc)
    import arrayd
    return _core.ufuncs.get(name) or getattr(arrayd, name, None)


def _number(value):
    """NumPy's scalars come to comparisons as 0-d arrays."""
    return value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value


def _of_function(name, inputs, kwargs):
    """The options of a ufunc for a function (matmul or add.outer, say), which would upload what it is given."""
    if any(isinstance(each, np.ndarray) for each in inputs):
        raise TypeError(f"{name}: unsupported operand: numpy.ndarray; arrayd does not upload arrays by itself, "
                        "arrayd.asarray(x) does")
    return {**kwargs, "out": kwargs["out"][0]} if "out" in kwargs else kwargs


# ---- functions: NEP 18 ----

def array_function(self, func, types, args, kwargs):
    """numpy.sum(a) and its like, also of numpy.linalg and numpy.fft: arrayd's function of that module and name.

    Parameters: func, types, args, kwargs: as NumPy hands them over.
    Returns: what arrayd's function gives; NotImplemented beside an array of a third library.
    Raises: TypeError for a function that arrayd lacks; what arrayd's function raises.
    Source: numpy.ndarray.__array_function__
    """
    if not all(_takes(kind, "__array_function__") for kind in types):
        return NotImplemented
    own = _function(func.__module__, func.__name__)
    # Functions that arrayd has from NumPy as they are would come back here.
    if own is None or own is func:
        raise TypeError(f"arrayd has no {func.__module__}.{func.__name__}; a.get() gives a NumPy array for it")
    # Dask asks in this way whether it may put these arrays into fields of NumPy's arrays of structures, and goes another way.
    if func is np.empty_like and isinstance(kwargs.get("dtype"), list):
        raise TypeError("numpy.empty_like makes no arrays of structures here: arrayd.empty_like does")
    return own(*args, **kwargs)


@functools.cache
def _function(module, name):
    """The object of arrayd that has the place and the name of one of NumPy's; None: there is none."""
    import arrayd
    try:
        return functools.reduce(getattr, [*module.split(".")[1:], name], arrayd)
    except AttributeError:
        return None


# ---- arrays of NumPy ----

_implicit = contextvars.ContextVar("arrayd_implicit")


def _is_implicit():
    return _implicit.get(os.environ.get("ARRAYD_IMPLICIT", "").lower() in ("1", "yes", "on", "true"))


class implicit:
    """Let arrays become NumPy arrays by themselves where other libraries ask for that: with ad.implicit(): ...

    Each conversion waits and moves all elements. ARRAYD_IMPLICIT=1 allows it everywhere; implicit(False) forbids it in a
    part of the program.
    Parameters: allowed: bool.
    Source: of arrayd
    """

    def __init__(self, allowed=True):
        self._allowed = bool(allowed)
        self._tokens = []

    def __enter__(self):
        self._tokens.append(_implicit.set(self._allowed))
        return self

    def __exit__(self, *_):
        _implicit.reset(self._tokens.pop())


def array(self, dtype=None, copy=None):
    """Refuses to become a numpy.ndarray by itself, as that moves all elements, unless arrayd.implicit allows it.

    Parameters: dtype: type to convert the elements to. copy: False refuses, as the elements are always copied.
    Returns: numpy.ndarray.
    Raises: TypeError that says what does; ValueError for copy=False.
    Source: numpy.ndarray.__array__
    """
    if not _is_implicit():
        raise TypeError("Implicit conversion to a NumPy array is not allowed: the elements are on a server; a.get() or "
                        "arrayd.asnumpy(a) fetches them, and `with arrayd.implicit():` lets other libraries do so")
    if copy is False:
        raise ValueError("Unable to avoid copy: the elements are on a server")
    host = self.get()
    return host if dtype is None else host.astype(dtype, copy=False)
