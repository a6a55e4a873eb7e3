"""Element types as they are written in CUDA C++, numbers as bytes, and the text that generated kernels begin with."""
import operator

import numpy as np

from .. import _core
from .structs import define_structs, struct_name

_C = {"bool": "bool", "int8": "signed char", "int16": "short", "int32": "int", "int64": "long long",
      "uint8": "unsigned char", "uint16": "unsigned short", "uint32": "unsigned int", "uint64": "unsigned long long",
      "float16": "float16", "bfloat16": "bfloat16", "float32": "float", "float64": "double",
      "complex64": "complex<float>", "complex128": "complex<double>"}


def c_name(dtype):
    """The type of a dtype's elements in C++."""
    return _C[dtype.name] if dtype.names is None else struct_name(dtype)


def head(dtypes=(), *sources):
    """The text before a generated kernel that uses dtypes, or whose parts (sources) name complex numbers or CUDA's half."""
    structs = define_structs(dtypes)
    complexes = any(dtype.kind == "c" for dtype in dtypes) or any("complex" in source for source in (*sources, structs))
    halves = any("half" in source for source in sources)
    return "".join(["#include <cupy/complex.cuh>\n" if complexes else "", "#include <cuda_fp16.h>\n" if halves else "",
                    "#include <cupy/carray.cuh>\n", structs])


def default_dtype(value):
    """The dtype of a number that no array gives one: a NumPy scalar's own, of Python's int64, float64, complex128."""
    return value.dtype if isinstance(value, np.generic) else np.dtype(type(value))


def as_bytes(value, dtype, what):
    """A number as bytes of a type. TypeError for a complex one where the type is real, OverflowError for an integer
    that does not fit."""
    if isinstance(value, (complex, np.complexfloating)) and dtype.kind != "c":
        raise TypeError(f"{what} is {dtype.name}, and given the complex number {value!r}")
    if dtype.kind in "iub" and isinstance(value, (int, np.integer)) and dtype.kind != "b":
        limits = np.iinfo(dtype)
        if not limits.min <= value <= limits.max:
            raise OverflowError(f"{what} is {dtype.name}, and {value} is out of its bounds")
    return np.asarray(value).astype(dtype).tobytes()


def three(value, what):
    """A grid or a block, an int or up to three, as three ints."""
    try:
        sizes = tuple(map(operator.index, value)) if isinstance(value, (tuple, list)) else (operator.index(value),)
    except TypeError:
        raise TypeError(f"{what} must be an int or a tuple of up to three, not {value!r}") from None
    if not 1 <= len(sizes) <= 3:
        raise ValueError(f"{what} must have one to three sizes, not {len(sizes)}")
    if min(sizes) < 0:
        raise ValueError(f"{what} must not be negative: {value!r}")
    return sizes + (1,) * (3 - len(sizes))


def is_array(value):
    """Whether value is an array of the server."""
    return isinstance(value, _core.ndarray)
