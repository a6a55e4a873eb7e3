"""Modules of CuPy's inside, cupy._core and cupy._util, with the names that programs take from there.

Each of them also has the public names of arrayd: libraries ask cupy._core for ndarray, ElementwiseKernel or add.
"""
import importlib.machinery
import sys
import types

import arrayd

from .._base import normalize_axes, normalize_axis
from .._kernel.types import c_name
from .._math.functional import clear_memo, memoize


class PerformanceWarning(RuntimeWarning):
    """Warns of what CuPy does slowly; arrayd gives no such warning."""


def get_typename(dtype):
    """The name in C++ of a dtype's elements. TypeError for None or what arrays cannot be of."""
    if dtype is None:
        raise TypeError("the dtype of a type's name in C++ must be given, not None")
    return c_name(get_dtype(dtype))


def get_dtype(t):
    """The numpy.dtype of what names one. TypeError for what arrays cannot be of."""
    return arrayd._core.as_dtype(t)


def get_size(size):
    """A shape as a tuple: an int is one dimension. TypeError for None."""
    if size is None:
        raise TypeError("a shape must be an int or a tuple, not None")
    return tuple(size) if hasattr(size, "__iter__") else (size,)


def prod(sizes):
    """The product of integers; 1 of none."""
    product = 1
    for size in sizes:
        product *= size
    return product


def _normalize_axis_index(axis, ndim):
    return normalize_axis(axis, ndim)


def _normalize_axis_indices(axes, ndim, sort_axes=True):
    axes = normalize_axes(axes, ndim)
    return tuple(sorted(axes)) if sort_axes else axes


def elementwise_copy(arg, out):
    """Copy the elements of arg, which is broadcast and cast, into out."""
    arrayd.copyto(out, arg, casting="unsafe")
    return out


_CORE = {"elementwise_copy": elementwise_copy, "get_size": get_size, "prod": prod,
         "_internal_ascontiguousarray": arrayd.ascontiguousarray, "_internal_asfortranarray": arrayd.asfortranarray,
         "_normalize_axis_index": _normalize_axis_index, "_normalize_axis_indices": _normalize_axis_indices,
         "_ndarray_argwhere": arrayd.argwhere, "get_typename": get_typename, "get_dtype": get_dtype}
_PARTS = ("_dtype", "_kernel", "_reduction", "_routines_indexing", "_scalar", "core", "internal", "raw")  # of cupy._core


class _Inside(types.ModuleType):
    """A module of CuPy's inside that import finds. Names that it lacks are sought among arrayd's public ones."""

    def __init__(self, name, has):
        super().__init__(f"{__name__}.{name}", f"cupy.{name} of CuPy.")
        self.__spec__ = importlib.machinery.ModuleSpec(self.__name__, None, origin=__file__, is_package=True)
        self.__path__ = []
        self.__dict__.update(has)
        sys.modules[self.__name__] = self

    def __getattr__(self, name):
        if not name.startswith("_") and hasattr(arrayd, name):
            return getattr(arrayd, name)
        inside = self.__name__.removeprefix(f"{__name__}.")
        raise AttributeError(f"arrayd, which stands in for CuPy, has no name {name!r} in cupy.{inside}", name=name, obj=self)


__path__ = []
_util = _Inside("_util", {"memoize": memoize, "clear_memo": clear_memo, "PerformanceWarning": PerformanceWarning})
_core = _Inside("_core", {**_CORE, **{part: _Inside(f"_core.{part}", _CORE) for part in _PARTS}})
