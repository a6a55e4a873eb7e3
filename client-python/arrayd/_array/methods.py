"""Methods of ndarray that are the package's functions, and Python's protocols: text, copies, pickles."""
import importlib
import pickle
import types

import numpy as np

from .. import _base, _core
from .._interop import array_api
from .._math import products, elementary, reductions, sorting
from . import formatting, indexing, joining
from .._base import call, ndarray


def _clip(self, min=None, max=None, out=None, **kwargs):
    """Elements limited to min..max: clip(self, min, max).

    Source: numpy.ndarray.clip
    """
    return elementary.clip(self, min, max, out, **kwargs)


def _sort(self, axis=-1, kind=None, order=None, *, stable=None):
    """Sort in place along an axis.

    Source: numpy.ndarray.sort
    """
    sorting.check_sort(kind, order, stable)
    axis = _base.normalize_axis(axis, self.ndim)
    call("sort", (self,), (axis,), out=self)


def _partition(self, kth, axis=-1, kind="introselect", order=None):
    """Put the k-th element along an axis in its sorted place, none before it greater, none behind it less.

    Source: numpy.ndarray.partition
    """
    sorting.check_partition(kind, order)
    sorting._partition("partition", "sort", self, kth, _base.normalize_axis(axis, self.ndim), out=self)


def _compress(self, condition, axis=None, out=None):
    """Slices along an axis where a condition is true: compress(condition, self).

    Source: numpy.ndarray.compress
    """
    return indexing.compress(condition, self, axis, out)


def _conj(self, /):
    """Complex conjugates: conjugate(self); self when it is not complex.

    Source: numpy.ndarray.conj
    """
    return _core.ufuncs["conjugate"](self) if self.dtype.kind == "c" else self


def _scatters(name):
    def method(self, slices, value):
        from .. import cupyx
        getattr(cupyx, name)(self, slices, value)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"The same as cupyx.{name}(self, slices, value).\n\n    Source: cupy.ndarray.{name}"
    return method


def _byteswap(self, inplace=False):
    """The elements with the order of their bytes reversed, of complex numbers that of each part.

    Parameters: inplace: whether to change this array instead of making another.
    Returns: ndarray; self when in place.
    Source: numpy.ndarray.byteswap
    """
    part = self.itemsize // 2 if self.dtype.kind == "c" else self.itemsize
    swapped = self.copy().reshape(self.shape or 1)
    if part > 1 and self.size:
        groups = swapped.reshape(-1).view(np.uint8).reshape(-1, part)
        swapped = groups[:, ::-1].copy().reshape(-1).view(self.dtype)
    swapped = swapped.reshape(self.shape)
    if not inplace:
        return swapped
    self[...] = swapped
    return self


def _reduced_view(self, dtype=None):
    """A view with as few dimensions as the strides allow, elements in the same order.

    Parameters: dtype: type to view the elements as, unless it is to stay.
    Returns: ndarray; self when it has one dimension or none.
    Source: cupy.ndarray.reduced_view
    """
    shape, strides = [], []
    for n, stride in zip(self.shape, self.strides):
        if shape and strides[-1] == n * stride:
            shape[-1] *= n
            strides[-1] = stride
        elif n != 1:
            shape.append(n)
            strides.append(stride)
    if self.ndim <= 1:
        reduced = self
    else:
        reduced = self.reshape(-1) if self.flags.c_contiguous else _base.view(self, shape, strides)
    return reduced if dtype is None else reduced.view(dtype)


def _dump(self, file):
    """Pickle the array to a file: load(file, allow_pickle=True) and pickle.load give it back.

    Parameters: file: path, or file open for writing bytes.
    Returns: None.
    Source: numpy.ndarray.dump
    """
    from .._io.files import opened
    with opened(file, "wb") as stream:
        pickle.dump(self, stream, pickle.HIGHEST_PROTOCOL)


def _dumps(self):
    """The array pickled: pickle.loads gives it back.

    Returns: bytes.
    Source: numpy.ndarray.dumps
    """
    return pickle.dumps(self, pickle.HIGHEST_PROTOCOL)


def _reduce(self):
    from .._interop.sharing import reduce_array
    return reduce_array(self)


def _bytes(self):
    # As in NumPy: bytes(n) is n zeros for every n that is an index.
    return bytes(int(self)) if self.ndim == 0 and self.dtype.kind in "iu" else self.tobytes()


# ---- attributes ----

def _flat(self):
    """The elements in row-major order, as if the array had one dimension: a flatiter. It can be assigned to.

    Source: numpy.ndarray.flat
    """
    from .flat import flatiter
    return flatiter(self)


def _set_flat(self, value):
    _flat(self)[...] = value


def _data(self):
    """A cuda.MemoryPointer to the first element; data.ptr is its address in this process.

    Source: cupy.ndarray.data
    """
    from ..cuda.memory import pointer_to
    return pointer_to(self)


def _cuda_array_interface(self):
    """The array's memory for libraries that compute on the GPU in this process: version 3 of the CUDA array interface.
    Waits for the server; what that writes later must be waited for (sync).

    Raises: AttributeError where the server does not use a GPU, or its memory cannot be had in this process.
    Source: cupy.ndarray.__cuda_array_interface__
    """
    from .._interop.dlpack import cuda_array_interface
    return cuda_array_interface(self)


class _Later:
    """A method whose module is imported when the method is first asked for; it then takes the place of this."""

    def __init__(self, method, module, name):
        self.method, self.module, self.name = method, module, name

    def __get__(self, instance, owner):
        method = getattr(importlib.import_module("arrayd." + self.module), self.name)
        setattr(ndarray, self.method, method)
        return method if instance is None else types.MethodType(method, instance)


_FUNCTIONS = {
    reductions: "sum prod min max any all mean var std argmin argmax cumsum cumprod ptp",
    indexing: "take put choose nonzero diagonal",
    products: "dot trace",
    joining: "repeat",
    elementary: "round",
    sorting: "argsort argpartition searchsorted",
}
_METHODS = {
    "clip": _clip, "compress": _compress, "sort": _sort, "partition": _partition, "conj": _conj, "conjugate": _conj,
    "byteswap": _byteswap, "reduced_view": _reduced_view, "dump": _dump, "dumps": _dumps,
    "flat": property(_flat, _set_flat), "data": property(_data),
    "__bytes__": _bytes, "__reduce__": _reduce, "__repr__": formatting.shown_repr, "__str__": formatting.shown_str,
    "__format__": formatting.shown_format, "__class_getitem__": classmethod(types.GenericAlias),
    "__cuda_array_interface__": property(_cuda_array_interface), "to_device": array_api.to_device,
    "__array_namespace__": array_api.array_namespace,
    **{name: _scatters(name) for name in ("scatter_add", "scatter_max", "scatter_min")},
}
_LATER = {
    "_interop.awaiting": {"__await__": "ready", "__aiter__": "rows", "aget": "aget", "aitem": "aitem"},
    "_interop.arrow": {"__arrow_c_schema__": "arrow_schema", "__arrow_c_array__": "arrow_array",
               "__arrow_c_device_array__": "arrow_device_array"},
    "_interop.dask": {"__dask_tokenize__": "token"},
    "_interop.dlpack": {"__dlpack__": "dlpack", "__dlpack_device__": "dlpack_device", "toDlpack": "dlpack"},
    "_io.files": {"tofile": "tofile"},
    "_interop.ipc": {"ipc_handle": "ipc_handle"},
    "_kernel.mdspan": {"mdspan": "of_array"},
    "_notebook.display": {"_repr_html_": "repr_html"},
    "_array.protocols": {"__array__": "array", "__array_function__": "array_function", "__array_ufunc__": "array_ufunc"},
}


def install():
    """Attach the methods to the type, which is made in C."""
    for module, names in _FUNCTIONS.items():
        for name in names.split():
            setattr(ndarray, name, getattr(module, name))
    for name, method in _METHODS.items():
        setattr(ndarray, name, method)
    for module, names in _LATER.items():
        for name, function in names.items():
            setattr(ndarray, name, _Later(name, module, function))
    _core.set_device_type(array_api.device_of)
