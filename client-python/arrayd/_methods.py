"""Methods of ndarray that are the package's functions, and Python's protocols: text, copies, pickles."""
from . import _array_api, _base, _core, _dlpack, _formatting, _indexing, _joining, _linalg, _math, _reductions, _sorting
from ._base import as_array, call, ndarray


def _clip(self, min=None, max=None, out=None, **kwargs):
    """Elements limited to min..max: clip(self, min, max).

    Source: numpy.ndarray.clip
    """
    return _math.clip(self, min, max, out, **kwargs)


def _sort(self, axis=-1, kind=None, order=None, *, stable=None):
    """Sort in place along an axis.

    Source: numpy.ndarray.sort
    """
    _sorting._no_fields(order)
    axis = _base.normalize_axis(axis, self.ndim)
    call("sort", (self,), (axis,), out=self)


def _partition(self, kth, axis=-1, kind="introselect", order=None):
    """Put the k-th element along an axis in its sorted place (arrayd sorts).

    Source: numpy.ndarray.partition
    """
    _sorting._check_kth(kth, self, _base.normalize_axis(axis, self.ndim))
    _sort(self, axis, order=order)


def _compress(self, condition, axis=None, out=None):
    """Slices along an axis where a condition is true: compress(condition, self).

    Source: numpy.ndarray.compress
    """
    return _indexing.compress(condition, self, axis, out)


def _conj(self, /):
    """Complex conjugates: conjugate(self); self when it is not complex.

    Source: numpy.ndarray.conj
    """
    return _core.ufuncs["conjugate"](self) if self.dtype.kind == "c" else self


def _scatters(name):
    def method(self, slices, value):
        from . import cupyx
        getattr(cupyx, name)(self, slices, value)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"The same as cupyx.{name}(self, slices, value).\n\n    Source: cupy.ndarray.{name}"
    return method


def _array(self, dtype=None, copy=None):
    raise TypeError("an array of the server does not turn into a NumPy array by itself: a.get() fetches it")


def _reduce(self):
    return as_array, (self.get(),)


_FUNCTIONS = {
    _reductions: "sum prod min max any all mean var std argmin argmax cumsum cumprod",
    _indexing: "take put choose nonzero diagonal",
    _linalg: "dot trace",
    _joining: "repeat",
    _math: "round",
    _sorting: "argsort argpartition searchsorted",
}
_METHODS = {
    "clip": _clip, "compress": _compress, "sort": _sort, "partition": _partition, "conj": _conj, "conjugate": _conj,
    "__array_namespace__": _array_api.array_namespace, "to_device": _array_api.to_device,
    "__dlpack__": _dlpack.dlpack, "__dlpack_device__": _dlpack.dlpack_device,
    "__array__": _array, "__reduce__": _reduce, "__repr__": _formatting.array_repr, "__str__": _formatting.array_str,
    "__format__": _formatting.array_format,
    **{name: _scatters(name) for name in ("scatter_add", "scatter_max", "scatter_min")},
}


def install():
    """Attach the methods to the type, which is made in C."""
    for module, names in _FUNCTIONS.items():
        for name in names.split():
            setattr(ndarray, name, getattr(module, name))
    for name, method in _METHODS.items():
        setattr(ndarray, name, method)
    _core.set_device_type(_array_api.device_of)
