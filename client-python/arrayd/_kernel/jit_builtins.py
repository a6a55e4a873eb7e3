"""Functions that only kernels have: indices of threads, shared memory, atomic operations, shuffles, barriers."""
import numpy as np

from .jit_expressions import Builtin, element, unwrapped
from .jit_values import Constant, Scalar, Shared, Storage, Structure, Tuple, Value, as_scalar, as_value, convert
from .types import c_name

_U32 = Scalar(np.uint32)


class Dim3:
    """Three numbers that each thread or block has: x, y and z."""

    def __init__(self, name, doc):
        self._name, self.__doc__ = name, doc
        self.x, self.y, self.z = (Value(f"{name}.{axis}", _U32) for axis in "xyz")

    def __repr__(self):
        return f"<arrayd.cupyx.jit {self._name}>"


def _builtin(function):
    name = function.__name__.strip("_")
    return Builtin(name, function.__doc__, function)


def _each(ndim, pattern):
    number = unwrapped(ndim)
    if not isinstance(number, int):
        raise TypeError(f"ndim must be an int, 1, 2 or 3, not {number!r}")
    if number not in (1, 2, 3):
        raise ValueError(f"ndim must be 1, 2 or 3, not {number!r}")
    found = [Value(pattern.format(axis), _U32) for axis in "xyz"[:number]]
    return found[0] if number == 1 else Tuple(found)


@_builtin
def grid(translator, ndim):
    """The thread's place in the grid.

    Parameters: ndim: 1, 2 or 3.
    Returns: uint32; for ndim 2 or 3 a tuple of the places along x, y, z.
    Raises: RuntimeError outside of a kernel.
    Source: cupyx.jit.grid
    """
    return _each(ndim, "(threadIdx.{0} + blockIdx.{0} * blockDim.{0})")


@_builtin
def gridsize(translator, ndim):
    """How many threads the grid has.

    Parameters: ndim: 1, 2 or 3.
    Returns: uint32; for ndim 2 or 3 a tuple of how many there are along x, y, z.
    Raises: RuntimeError outside of a kernel.
    Source: cupyx.jit.gridsize
    """
    return _each(ndim, "(blockDim.{0} * gridDim.{0})")


@_builtin
def laneid(translator):
    """The thread's place in its warp.

    Returns: uint32.
    Raises: RuntimeError outside of a kernel.
    Source: cupyx.jit.laneid
    """
    return Value("((threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32)", _U32)


@_builtin
def syncthreads(translator):
    """Wait for all threads of the block.

    Returns: None.
    Raises: RuntimeError outside of a kernel.
    Source: cupyx.jit.syncthreads
    """
    return Value("__syncthreads()", None)


@_builtin
def syncwarp(translator, *, mask=Constant(0xffffffff)):
    """Wait for threads of the warp.

    Parameters: mask: of 32 bits, which threads.
    Returns: None.
    Raises: RuntimeError outside of a kernel.
    Source: cupyx.jit.syncwarp
    """
    return Value(f"__syncwarp({convert(mask, np.uint32, 'unsafe')})", None)


@_builtin
def range_(translator, *args, unroll=Constant(None)):
    """range, for loops that are to be unrolled.

    Parameters: args: stop, or start, stop and step, as Python's range. unroll: True: all rounds; how many rounds; None:
    as the compiler likes.
    Returns: what a for loop runs over.
    Raises: RuntimeError outside of a kernel.
    Source: cupyx.jit.range
    """
    raise TypeError("range is for loops only")


@_builtin
def shared_memory(translator, dtype, size, alignment=Constant(None)):
    """An array in memory that the block's threads share.

    Parameters: dtype: its type, or the TempStorage of a reduction of cub. size: how many elements, a constant; None: as many as the dynamic shared memory that
    the launch gives has room for. alignment: of the first element, in bytes.
    Returns: the array, of 1 dimension.
    Raises: RuntimeError outside of a kernel.
    Source: cupyx.jit.shared_memory
    """
    count, align = unwrapped(size), unwrapped(alignment)
    name = f"shared_{len(translator.before)}"
    if isinstance(unwrapped(dtype), Structure):
        return _shared_structures(translator, unwrapped(dtype), count, name)
    kind = np.dtype(unwrapped(dtype))
    if align is not None and (align < kind.itemsize or align & align - 1):
        raise ValueError(f"alignment must be a power of two from {kind.itemsize} on, not {align}")
    if count is None:
        translator.before.append("extern __shared__ long long ad_dynamic[];")
        translator.before = list(dict.fromkeys(translator.before))
        return Value(f"(({c_name(kind)} *)ad_dynamic)", Shared(kind))
    if not isinstance(count, (int, np.integer)) or count < 1:
        raise ValueError(f"size must be a positive int or None, not {count!r}")
    # As bytes: elements with constructors cannot be shared.
    translator.before.append(f"__shared__ ad_kernel::shared_bytes<{int(count) * kind.itemsize}, {align or 16}> {name};")
    return Value(f"(({c_name(kind)} *){name}.at)", Shared(kind))


def _shared_structures(translator, structure, count, name):
    if not isinstance(count, (int, np.integer)) or count < 1:
        raise ValueError(f"size must be a positive int, not {count!r}")
    translator.before.append(f"__shared__ {structure.c} {name}[{int(count)}];")
    return Value(name, Storage(structure))


_DOC = """{}

Parameters: {}
Returns: {}
Raises: RuntimeError outside of a kernel.
Source: cupyx.jit.{}
"""
_INT = "int32 uint32 int64 uint64"
_ATOMIC = {
    "add": f"{_INT} float16 bfloat16 float32 float64", "sub": f"{_INT} float32 float64", "exch": f"{_INT} float32 float64",
    "min": f"{_INT} float32 float64", "max": f"{_INT} float32 float64", "inc": "uint32", "dec": "uint32",
    "cas": _INT, "and": _INT, "or": _INT, "xor": _INT,
}
_WHAT = {"add": "+= value", "sub": "-= value", "exch": "= value", "min": "= min(it, value)", "max": "= max(it, value)",
         "inc": "= 0 if it >= value else it + 1", "dec": "= value if it == 0 or it > value else it - 1",
         "cas": "= alt_value if it == value", "and": "&= value", "or": "|= value", "xor": "^= value"}


def _atomic(name):
    kinds = _ATOMIC[name].split()

    def translate(translator, array, index, value, alt_value=Constant(None)):
        array = as_value(array)
        place = element(array, index)
        dtype = array.type.dtype
        if dtype.name not in kinds:
            raise TypeError(f"atomic_{name} is not defined for {dtype.name}, but for {', '.join(kinds)}")
        values = [convert(value, dtype)]
        if name == "cas":
            if isinstance(alt_value, Constant) and alt_value.value is None:
                raise TypeError("atomic_cas needs alt_value, what the element becomes where it is value")
            values.append(convert(alt_value, dtype))
        translator.written |= array.roots
        return Value(f"ad_kernel::atomic_{name}(&{place}, {', '.join(values)})", Scalar(dtype))

    doc = _DOC.format(f"array[index] {_WHAT[name]}, as one operation that no other thread comes between.",
                      f"array: array or shared memory of {', '.join(kinds)}. index: int or tuple of ints. value: a "
                      "number. alt_value: a number, for atomic_cas only.", "what the element was.", f"atomic_{name}")
    return Builtin(f"atomic_{name}", doc, translate)


atomics = {name: _atomic(name) for name in _ATOMIC}
_SHUFFLED = f"{_INT} float32 float64"


def _shuffle(kind, doc):
    def translate(translator, mask, var, number, *, width=Constant(32)):
        var = as_scalar(var)
        if var.type.dtype.name not in _SHUFFLED.split():
            raise TypeError(f"shuffles are not defined for {var.type}, but for {', '.join(_SHUFFLED.split())}")
        if isinstance(width, Constant) and width.value not in (2, 4, 8, 16, 32):
            raise ValueError(f"width must be 2, 4, 8, 16 or 32, not {width.value!r}")
        place = convert(number, np.int32, "unsafe")
        return Value(f"__{kind}({convert(mask, np.uint32, 'unsafe')}, {var.code}, {place}, {convert(width, np.int32)})", var.type)

    doc = _DOC.format(f"A number of another thread of the warp: of {doc}", "mask: of 32 bits, which threads take part. "
                      "var: this thread's number. number: that other thread, or how far it is. width: threads of a "
                      "group, a power of two.", "a number of var's type.", kind)
    return Builtin(kind, doc, translate)


shuffles = {
    "shfl_sync": _shuffle("shfl_sync", "the thread of that number."),
    "shfl_up_sync": _shuffle("shfl_up_sync", "the thread so many before this one."),
    "shfl_down_sync": _shuffle("shfl_down_sync", "the thread so many after this one."),
    "shfl_xor_sync": _shuffle("shfl_xor_sync", "the thread whose number is this one's ^ number."),
}
