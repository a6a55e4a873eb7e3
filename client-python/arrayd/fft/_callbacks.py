"""A program's own functions that a transform reads its input or writes its output by, as cuFFT's callbacks.

Two kernels stand for them: one reads every element by the load function before the transform, the other writes every
element by the store function after it. A store function sees what the transform gives before `norm` scales it.
"""
import re
import warnings

import numpy as np

from .. import _base
from .._base import ndarray
from ._scopes import Scope

_LETTERS = {"f": "R", "d": "D", "F": "C", "D": "Z"}  # cuFFT's letter for an element's type
_TYPES = {"R": "cufftReal", "D": "cufftDoubleReal", "C": "cufftComplex", "Z": "cufftDoubleComplex"}
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"]cufft\w*\.h[>\"].*$", re.M)
_FUNCTION = re.compile(r"__device__\s+(?:__forceinline__\s+|inline\s+)*[\w:]+\s+(\w+)\s*\(")
_BLOCK = 256


def _header():
    """The types that cuFFT's headers declare for callbacks."""
    lines = ["typedef float cufftReal;", "typedef double cufftDoubleReal;", "typedef float2 cufftComplex;",
             "typedef double2 cufftDoubleComplex;"]
    for letter, element in _TYPES.items():
        for kind, offset in (("cufftCallback", "size_t"), ("cufftJITCallback", "unsigned long long")):
            lines += [f"typedef {element} (*{kind}Load{letter})(void *, {offset}, void *, void *);",
                      f"typedef void (*{kind}Store{letter})(void *, {offset}, {element}, void *, void *);"]
    return "\n".join(lines) + "\n"


_KERNELS = {
    "load": "out[i] = {function}((void *)in, i, info, 0);",
    "store": "{function}((void *)out, i, in[i], info, 0);"}


class _Function:
    """One of the two functions: its text, its name, and its kernels by the type of an element."""

    def __init__(self, kind, text, name, data):
        self.kind, self.text, self.data = kind, _INCLUDE.sub("", text), data
        self.name = name or f"d_{kind}CallbackPtr"
        self._kernels = {}

    def _kernel(self, dtype):
        if dtype.char not in self._kernels:
            from .._kernel.raw import RawKernel
            element = _TYPES[_LETTERS[dtype.char]]
            text = (f"{_header()}{self.text}\n"
                    f'extern "C" __global__ void arrayd_{self.kind}({element} *in, {element} *out, void *info, '
                    "unsigned long long n) {\n"
                    "    unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;\n"
                    f"    if (i < n) {{ {_KERNELS[self.kind].format(function=self.name)} }}\n}}\n")
            self._kernels[dtype.char] = RawKernel(text, f"arrayd_{self.kind}")
        return self._kernels[dtype.char]

    def apply(self, a, axis):
        """Return what the function makes of an array whose transform is along that axis alone, or along several (None).

        Parameters: a: array of one of cuFFT's types. axis: int or None.
        Returns: ndarray of a's shape and type.
        Raises: CompileException for the function's text.
        Source: arrayd
        """
        if axis is not None:
            a = a.swapaxes(axis, -1)  # offsets count the transformed axis fastest
        a = a.copy(order="C") if not a.flags.c_contiguous else a
        made = _base.zeros(a.shape, a.dtype)
        if a.size:
            self._kernel(a.dtype)((-(-a.size // _BLOCK),), (_BLOCK,), (a, made, self.data, np.uint64(a.size)))
        return made if axis is None else made.swapaxes(axis, -1)


class set_cufft_callbacks(Scope):
    """Have the transforms inside a with block read and write their elements by functions of CUDA C++.

    Parameters: cb_load, cb_store: the text of a function that gives element `offset` of the input, or puts one into the
    output, as cuFFT declares them. cb_load_name, cb_store_name: their names; otherwise cb_ver="legacy" calls
    d_loadCallbackPtr and d_storeCallbackPtr, and "jit" the first __device__ function of the text. cb_load_data,
    cb_store_data: a MemoryPointer that they get as callerInfo (cb_load_aux_arr, cb_store_aux_arr: an ndarray, which
    CuPy deprecates). nvrtc_options: changes nothing.
    Returns: a context manager.
    Raises: ValueError for neither function, data of a function that is not given, or a text without the pointer.
    Source: cupy.fft.config.set_cufft_callbacks
    """

    _place, _in_use = "callbacks", "callbacks are in use already; leave their with block first"

    def __init__(self, cb_load=None, cb_store=None, *, cb_load_aux_arr=None, cb_store_aux_arr=None, cb_load_name=None,
                 cb_store_name=None, cb_load_data=None, cb_store_data=None, cb_ver="legacy", nvrtc_options=()):
        if cb_ver not in ("legacy", "jit"):
            raise ValueError(f"cb_ver must be 'legacy' or 'jit', not {cb_ver!r}")
        if not cb_load and not cb_store:
            raise ValueError("give cb_load or cb_store, or both")
        if cb_load_aux_arr is not None or cb_store_aux_arr is not None:
            warnings.warn("cb_load_aux_arr or cb_store_aux_arr is deprecated; give array.data as cb_load_data or "
                          "cb_store_data", DeprecationWarning, stacklevel=2)
        if cb_ver == "legacy":
            warnings.warn("legacy callback is considered deprecated: use cb_ver='jit'", DeprecationWarning, stacklevel=2)
        self._functions = {"load": _function("load", cb_load, cb_load_name, cb_load_data, cb_load_aux_arr, cb_ver),
                           "store": _function("store", cb_store, cb_store_name, cb_store_data, cb_store_aux_arr, cb_ver)}

    def apply(self, kind, a, axis):
        """Return what the load or the store function makes of an array, which is the array itself where there is none."""
        function = self._functions[kind]
        return a if function is None else function.apply(a, axis)


def _function(kind, text, name, data, array, version):
    data = data if array is None else array
    if not text:
        if data is not None:
            raise ValueError(f"cb_{kind}_data belongs to cb_{kind}, which is not given")
        return None
    if not isinstance(text, str):
        raise ValueError(f"cb_{kind} must be source text, not {type(text).__name__}: the server compiles it")
    if data is not None and not isinstance(data, ndarray) and not hasattr(data, "mem"):
        raise TypeError(f"cb_{kind}_data must be a MemoryPointer, such as array.data, not {type(data).__name__}")
    if version == "legacy" and f"d_{kind}CallbackPtr" not in text:
        raise ValueError(f"cb_{kind} must define d_{kind}CallbackPtr, the pointer to the function")
    if version == "jit" and name is None:
        found = _FUNCTION.search(text)
        if found is None:
            raise ValueError(f"cb_{kind} has no __device__ function; give its name as cb_{kind}_name")
        name = found[1]
    return _Function(kind, text, name if version == "jit" else None, data)


def current_callbacks():
    """The set_cufft_callbacks whose with block this thread is in.

    Returns: set_cufft_callbacks or None.
    Source: arrayd
    """
    return set_cufft_callbacks._find_current()
