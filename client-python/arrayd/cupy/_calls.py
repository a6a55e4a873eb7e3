"""Functions of the module `cupy` that differ from arrayd's in how they are called: arrayd's are called as NumPy's."""
import functools
import sys

import numpy

import arrayd

# CuPy has these call the method of the same name: of a NumPy array it is NumPy's, and so is the result.
_OF_NUMPY = ("amax", "amin", "argpartition", "argsort", "clip", "copy", "diagonal", "max", "mean", "min", "nonzero", "partition",
             "prod", "ravel", "repeat", "reshape", "sort", "squeeze", "std", "sum", "swapaxes", "take", "trace", "transpose",
             "var")
# CuPy's names of parameters that NumPy calls otherwise.
_RENAMED = {"corrcoef": {"a": "x"}, "cov": {"a": "m"}, "delete": {"indices": "obj"},
            "ediff1d": {"arr": "ary"}, "extract": {"a": "arr"}, "flip": {"a": "m"}, "fliplr": {"a": "m"}, "flipud": {"a": "m"},
            "histogram": {"x": "a"}, "intersect1d": {"arr1": "ar1", "arr2": "ar2"}, "percentile": {"interpolation": "method"},
            "quantile": {"interpolation": "method"}, "reshape": {"newshape": "shape"},
            "rot90": {"a": "m"}, "stack": {"tup": "arrays"}, "take_along_axis": {"a": "arr"},
            "union1d": {"arr1": "ar1", "arr2": "ar2"}, "unravel_index": {"dims": "shape"}}


def _is_here(args, kwargs):
    """Whether the first argument is a NumPy array, and none of them an array of the server."""
    return (bool(args) and isinstance(args[0], numpy.ndarray)
            and not any(isinstance(value, arrayd.ndarray) for value in (*args, *kwargs.values())))


def _make_function(name):
    """Make the function of a name of _OF_NUMPY or _RENAMED."""
    ours, renamed = getattr(arrayd, name), _RENAMED.get(name)
    theirs = getattr(numpy, name) if name in _OF_NUMPY else None

    @functools.wraps(ours)
    def function(*args, **kwargs):
        if renamed and kwargs:
            kwargs = {renamed.get(key, key): value for key, value in kwargs.items()}
        return (theirs if theirs and _is_here(args, kwargs) else ours)(*args, **kwargs)
    return function


def array(obj, dtype=None, copy=True, order="K", subok=False, ndmin=0, *, blocking=False):
    """arrayd.array with CuPy's positional parameters. Data of this process are copied, whatever copy says."""
    if copy is False and not isinstance(obj, arrayd.ndarray):
        copy = None
    return arrayd.array(obj, dtype, copy=copy, order=order, subok=subok, ndmin=ndmin, blocking=blocking)


def histogramdd(sample, bins=10, range=None, weights=None, density=False):
    """arrayd.histogramdd, with weights before density as CuPy has them."""
    return arrayd.histogramdd(sample, bins, range, density, weights)


def show_config(*, _full=False):
    """Print what cupyx.get_runtime_info tells. _full: of the devices, too."""
    from ..cupyx import get_runtime_info
    sys.stdout.write(str(get_runtime_info(full=_full)))
    sys.stdout.flush()


def _make_place_finder(name):
    """Make argmax or one of its kind, which have a parameter dtype before out in CuPy."""
    ours = getattr(arrayd, name)

    @functools.wraps(ours)
    def function(a, axis=None, dtype=None, out=None, keepdims=False):
        if isinstance(dtype, arrayd.ndarray):
            raise TypeError(f"dtype has to be a type, as CuPy has it third in {name}, but is an array; say out=")
        places = ours(a, axis, out, keepdims=keepdims)
        return places if dtype is None or out is not None else places.astype(dtype, copy=False)
    return function


def obj2sctype(rep, default=None):
    """The type of number of a dtype, an array, or what numpy.dtype takes; default for anything else."""
    if isinstance(rep, type) and issubclass(rep, numpy.generic):
        return rep
    if isinstance(rep, (numpy.ndarray, arrayd.ndarray)):
        return rep.dtype.type
    try:
        return numpy.dtype(rep).type
    except Exception:  # whatever an object of the program raises when NumPy asks it for a type
        return default


def issubsctype(arg1, arg2):
    """Whether the type of number of the first, see obj2sctype, is one of the second's."""
    return issubclass(obj2sctype(arg1), obj2sctype(arg2))


def issctype(rep):
    """Whether an object is a type or a dtype, and one of numbers or text."""
    return isinstance(rep, (type, numpy.dtype)) and obj2sctype(rep) not in (None, numpy.object_)


def sctype2char(sctype):
    """The character of a type of number, see obj2sctype. ValueError for what has none."""
    found = obj2sctype(sctype)
    if found is None:
        raise ValueError(f"sctype has to be what a dtype can be made of, but is {sctype!r}")
    return numpy.dtype(found).char


def issubclass_(arg1, arg2):
    """issubclass, and False where the first is no class."""
    try:
        return issubclass(arg1, arg2)
    except TypeError:
        return False


_TYPES = (issctype, issubclass_, issubsctype, obj2sctype, sctype2char)  # NumPy 2 has removed them, and CuPy 14 has its own
FUNCTIONS = {"array": array, "histogramdd": histogramdd, "show_config": show_config,
             **{function.__name__: function for function in _TYPES},
             **{name: _make_place_finder(name) for name in ("argmax", "argmin", "nanargmax", "nanargmin")},
             **{name: _make_function(name) for name in {*_OF_NUMPY, *_RENAMED}}}
