"""Functions that take arrays over several devices, by the modules that they are of: for NumPy's protocols, for arrayd's
own functions of those names, and for methods."""
import functools
import importlib

import numpy as np

from .. import _core
from .._array import protocols
from .._base import as_array
from . import _along, _indexing, _products, _reductions, _shapes, _sorting
from ._array import ONE_DEVICE, ShardedArray, device_put, map_whole
from ._elementwise import fill, map_parts
from ._layout import cut_evenly

_along_axis = _along.along_axis


# ---- functions of other kinds than the modules have ----

def _elementwise(name):
    return lambda *args, **kwargs: map_parts(_along.find_function(name), args, kwargs)


def _like(name):
    def function(a, *args, **kwargs):
        if kwargs.pop("shape", None) is not None or kwargs.pop("device", None) is not None:
            raise ValueError(f'{name} of an array over several devices takes no shape and no device: {name.split("_")[0]}(shape, '
                             "device=sharding) does")
        return map_whole(a, a._layout, lambda part: _along.find_function(name)(part, *args, **kwargs))

    return function


def _array_equal(a1, a2, equal_nan=False):
    """numpy.array_equal"""
    if np.shape(a1) != np.shape(a2):
        return np.False_
    same = np.equal(a1, a2)
    return ((same | (np.isnan(a1) & np.isnan(a2))) if equal_nan else same).all()


def _allclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    """numpy.allclose"""
    return FUNCTIONS["numpy"]["isclose"](a, b, rtol=rtol, atol=atol, equal_nan=equal_nan).all()


def _norm(x, ord=None, axis=None, keepdims=False):
    """numpy.linalg.norm"""
    if ord is None or (ord == 2 and (x.ndim == 1 or isinstance(axis, int))) or (ord in ("fro", "f") and (
            x.ndim == 2 or np.ndim(axis) == 1)):
        squares = x.real * x.real + x.imag * x.imag if x.dtype.kind == "c" else np.square(x.astype(np.result_type(
            x.dtype, np.float32) if x.dtype.kind in "biu" else x.dtype))
        return np.sqrt(_reductions.reduce_by("sum", squares, axis, keepdims=keepdims))
    if axis is None and x.ndim > 2:
        raise ValueError("Improper number of dimensions to norm.")
    axes = tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    function = _along.find_function("norm", "linalg")
    one = axes[0] if len(axes) == 1 else axes
    made = _along.map_along(x, [each % x.ndim for each in axes], lambda part: function(part, ord, one, True))
    return _reductions.finish(made, [each % x.ndim for each in axes], keepdims)


def _nonzero_or_where(condition, *args):
    if not args:
        raise TypeError(f"where(condition) of an array over several devices: {ONE_DEVICE}")
    return map_parts(_core.ufuncs["where"], (condition, *args), {})


def _as_array(a, dtype=None, order=None, *, device=None, copy=None, like=None, blocking=False):
    """numpy.asarray"""
    made = a if dtype is None else a.astype(dtype, copy=False)
    made = made if device is None else device_put(made, device)
    return made.copy() if copy and made is a else made


def _split(ary, indices_or_sections, axis=0, even=True):
    axis = axis % ary.ndim
    n = ary.shape[axis]
    if np.ndim(indices_or_sections):
        cuts = [0, *map(int, indices_or_sections), None]
    else:
        if even and n % indices_or_sections:
            raise ValueError("array split does not result in an equal division")
        cuts = cut_evenly(n, indices_or_sections)
    return [ary[(slice(None),) * axis + (slice(*pair),)] for pair in zip(cuts, cuts[1:])]


def _stack_along(axis, least):
    def function(tup, *, dtype=None, casting="same_kind"):
        whole = [each if each.ndim >= least else each.reshape((1,) * (least - each.ndim) + each.shape) for each in tup]
        return _shapes.concatenate(whole, 0 if whole[0].ndim == 1 else axis, dtype=dtype, casting=casting)

    return function


def _astype(x, dtype, order="K", casting="unsafe", subok=True, copy=True, *, device=None):
    """ndarray.astype"""
    if not copy and x.dtype == np.dtype(dtype) and device is None:
        return x
    made = map_whole(x, x._layout, lambda part: part.astype(dtype, order, casting))
    return made if device is None else _as_array(made, device=device)


def _copy(a, order="K", subok=False):
    """numpy.copy"""
    return map_whole(a, a._layout, lambda part: part.copy())


def _mean_average(a, axis=None, weights=None, returned=False, *, keepdims=False):
    """numpy.average"""
    if weights is None:
        total = np.ones((), int) * (a.size if axis is None else a.shape[axis])
        made = _reductions.mean(a, axis, keepdims=keepdims)
    else:
        if np.shape(weights) != a.shape:
            raise ValueError("weights must have the shape of a over several devices")
        total = _reductions.reduce_by("sum", _shapes.broadcast_to(weights, a.shape) if isinstance(
            weights, ShardedArray) else np.add(a * 0, weights), axis, keepdims=keepdims)
        made = _reductions.reduce_by("sum", a * weights, axis, keepdims=keepdims) / total
    return (made, total) if returned else made


_reduce = {name: functools.partial(_reductions.reduce_by, name) for name in
           "sum prod max min any all nansum nanprod nanmax nanmin count_nonzero".split()}
_whole = {name: functools.partial(_reductions.reduce_whole, name) for name in
          "median nanmean nanvar nanstd nanmedian".split()}
FUNCTIONS = {
    "numpy": {
        **_reduce, **_whole, "amax": _reduce["max"], "amin": _reduce["min"], "mean": _reductions.mean,
        "var": _reductions.var, "std": _reductions.std, "ptp": _reductions.ptp, "average": _mean_average,
        "argmax": functools.partial(_reductions.arg_extreme, "argmax"),
        "argmin": functools.partial(_reductions.arg_extreme, "argmin"),
        **{name: functools.partial(_along.scan, name) for name in ("cumsum", "cumprod")},
        **{name: _along_axis(name) for name in ("partition", "argpartition")}, "sort": _sorting.sort,
        "argsort": _sorting.argsort,
        **{name: _elementwise(name) for name in
           "clip round around nan_to_num real imag angle isclose sinc fix i0 iscomplex isreal".split()},
        "where": _nonzero_or_where,
        **{name: _like(name) for name in "zeros_like ones_like full_like empty_like".split()},
        "copy": _copy, "astype": _astype, "asarray": _as_array, "asanyarray": _as_array, "array_equal": _array_equal,
        "allclose": _allclose,
        **{name: getattr(_shapes, name) for name in
           "transpose swapaxes moveaxis matrix_transpose expand_dims squeeze broadcast_to reshape ravel flip concatenate stack "
           "roll diff".split()},
        "permute_dims": _shapes.transpose, "concat": _shapes.concatenate, "vstack": _stack_along(0, 2),
        "hstack": _stack_along(1, 1), "split": _split, "array_split": functools.partial(_split, even=False),
        "matmul": _products.matmul, "dot": _products.dot, "vdot": _products.vdot, "inner": _products.inner,
        "outer": _products.outer, "take": _indexing.take, "compress": _indexing.compress,
        "shape": lambda a: a.shape, "ndim": lambda a: a.ndim, "size": lambda a, axis=None: a.size if axis is None else a.shape[axis],
    },
    "numpy.fft": {**{name: functools.partial(_along.transform, name) for name in "fft ifft rfft irfft hfft ihfft".split()},
                  **{name: functools.partial(_along.transform_several, name) for name in
                     "fft2 ifft2 fftn ifftn rfft2 irfft2 rfftn irfftn".split()}},
    "numpy.linalg": {**{name: _along.on_matrices(name, 2) for name in
                        "inv pinv cholesky qr svd eigh eigvalsh det slogdet matrix_rank".split()}, "norm": _norm},
}
_METHODS = ("sum prod max min any all mean var std argmax argmin cumsum cumprod argsort clip round dot take compress transpose "
            "swapaxes squeeze reshape ravel astype copy").split()


# ---- NumPy's protocols ----

def call_ufunc(ufunc, method, inputs, kwargs):
    """NEP 13, for NumPy's ufuncs, scipy.special's and arrayd's."""
    name = ufunc.__name__
    if name == "matmul" and method == "__call__":
        return _products.matmul(*inputs, **{**kwargs, "out": kwargs["out"][0]} if "out" in kwargs else kwargs)
    own = ufunc if isinstance(ufunc, _core.ufunc) else protocols._ufunc(ufunc)
    if not isinstance(own, _core.ufunc):
        raise TypeError(f"arrayd has no {name} for arrays over several devices: {ONE_DEVICE}")
    if method == "__call__":
        return map_parts(own, inputs, kwargs)
    if method == "reduce" and own.reduction in FUNCTIONS["numpy"]:
        return _reduce_by_ufunc(own, *inputs, **kwargs)
    if method == "accumulate" and name in ("add", "multiply"):
        return _along.scan("cumsum" if name == "add" else "cumprod", *inputs, **{"axis": 0, **kwargs})
    if method == "outer" and len(inputs) == 2:
        a, b = (each if hasattr(each, "ndim") else as_array(each) for each in inputs)
        return map_parts(own, (a.reshape(*a.shape, *[1] * b.ndim), b), kwargs)
    raise TypeError(f"arrayd has no {name}.{method} for arrays over several devices: {ONE_DEVICE}")


def _reduce_by_ufunc(own, x, axis=0, dtype=None, out=None, keepdims=False, **kwargs):
    out = out[0] if isinstance(out, tuple) else out
    more = {} if dtype is None else {"dtype": dtype}
    return _reduce[own.reduction](x, axis, out=out, keepdims=keepdims, **more, **kwargs)


def call_function(function, args, kwargs):
    """NEP 18."""
    own = FUNCTIONS.get(function.__module__, {}).get(function.__name__)
    if own is None:
        raise TypeError(f"arrayd has no {function.__module__}.{function.__name__} for arrays over several devices: {ONE_DEVICE}")
    return own(*args, **kwargs)


# ---- arrayd's functions and methods ----

def _has_sharded(values):
    return any(type(each) is ShardedArray or (type(each) in (list, tuple) and any(type(one) is ShardedArray for one in each))
               for each in values)


def _wrap(function, own):
    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        return own(*args, **kwargs) if _has_sharded(args) or (kwargs and _has_sharded(kwargs.values())) else \
            function(*args, **kwargs)

    return wrapped


@functools.cache
def install():
    """Let arrayd's functions of these names take arrays over several devices, and give those their methods. It is called
    when the package is imported, so programs that do without it have the functions as they are."""
    for module, names in FUNCTIONS.items():
        home = importlib.import_module(module.replace("numpy", "arrayd"))
        for name, own in names.items():
            setattr(home, name, _wrap(getattr(home, name), own))
    for name in _METHODS:
        setattr(ShardedArray, name, _make_method(name))


def _make_method(name):
    own = FUNCTIONS["numpy"][name]

    def method(self, *args, **kwargs):
        return own(self, *args, **kwargs)

    method.__name__, method.__qualname__ = name, f"ShardedArray.{name}"
    method.__doc__ = (f"The same as ndarray.{name}, over several devices.\n\n    Returns: ShardedArray.\n"
                      f"    Source: numpy.ndarray.{name}")
    return method


def _sort(self, axis=-1, kind=None, order=None, *, stable=None):
    """Sort in place along an axis.

    Source: numpy.ndarray.sort
    """
    fill(self, _sorting.sort(self, axis, kind, order, stable=stable))


def _fill(self, value):
    """Set all elements to a number.

    Source: numpy.ndarray.fill
    """
    fill(self, value)


def _flatten(self, order="C"):
    """A copy in one dimension.

    Source: numpy.ndarray.flatten
    """
    return _shapes.ravel(self, order).copy()


def _conj(self):
    """Complex conjugates.

    Source: numpy.ndarray.conj
    """
    return np.conjugate(self) if self.dtype.kind == "c" else self


ShardedArray.sort, ShardedArray.fill, ShardedArray.flatten = _sort, _fill, _flatten
ShardedArray.conj = ShardedArray.conjugate = _conj
ShardedArray.T = property(lambda self: _shapes.transpose(self))
ShardedArray.mT = property(_shapes.matrix_transpose)
ShardedArray.real = property(lambda self: map_whole(self, self._layout, lambda part: part.real))
ShardedArray.imag = property(lambda self: map_whole(self, self._layout, lambda part: part.imag))
