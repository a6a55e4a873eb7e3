"""Functions of the module `cupy` that differ from arrayd's in how they are called: arrayd's are called as NumPy's."""
import functools

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


FUNCTIONS = {"array": array, **{name: _make_function(name) for name in {*_OF_NUMPY, *_RENAMED}}}
