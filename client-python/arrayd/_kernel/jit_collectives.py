"""cub's reductions and scans in translated functions: by the threads of a warp or of a block together."""
import numpy as np

from .jit_expressions import Builtin
from .jit_values import Constant, Scalar, Structure, Value, arithmetic_c, convert
from .types import c_name


class Operator(Builtin):
    """An operator of reductions: in a kernel it is called without arguments."""

    def __init__(self, name, what):
        doc = f"""{what}

Returns: the operator, for Reduce() and InclusiveScan().
Raises: RuntimeError outside of a kernel.
Source: cupyx.jit.cub.{name}
"""
        super().__init__(name, doc, lambda translator: Constant(self))


operators = {"Sum": Operator("Sum", "The operator +."), "Max": Operator("Max", "The greater of two numbers."),
             "Min": Operator("Min", "The less of two numbers.")}


class Collective(Builtin):
    """A reduction or a scan of numbers of a type: in a kernel it is made with the memory that its threads share."""

    def __init__(self, family, c, dtype):
        self.TempStorage = Structure(f"{c}::TempStorage")
        self._dtype = np.dtype(dtype)
        methods = {"Sum": self._sum, "Reduce": self._reduce} if family.endswith("Reduce") else {
            "InclusiveSum": self._inclusive, "ExclusiveSum": self._exclusive, "InclusiveScan": self._scan}
        self._made = Structure(c, methods)
        super().__init__(family, f"{family} of {self._dtype.name}.", self._make)

    def _make(self, translator, temp_storage):
        if not isinstance(temp_storage, Value) or getattr(temp_storage.type, "key", None) != self.TempStorage.key:
            raise TypeError(f"{self.__name__} needs an element of shared memory of its TempStorage")
        return Value(f"{self._made.c}({temp_storage.code})", self._made)

    def _sum(self, translator, made, value, num_valid=None):
        return self._called(made, "Sum", [convert(value, self._dtype)], num_valid)

    def _reduce(self, translator, made, value, reduction_op, num_valid=None):
        return self._called(made, "Reduce", [convert(value, self._dtype), _operator(reduction_op, "reduction_op")], num_valid)

    def _inclusive(self, translator, made, value):
        return self._called(made, "InclusiveSum", [convert(value, self._dtype)])

    def _exclusive(self, translator, made, value):
        return self._called(made, "ExclusiveSum", [convert(value, self._dtype)])

    def _scan(self, translator, made, value, scan_op):
        return self._called(made, "InclusiveScan", [convert(value, self._dtype), _operator(scan_op, "scan_op")])

    def _called(self, made, method, codes, num_valid=None):
        if num_valid is not None:
            codes.append(convert(num_valid, np.int32, "unsafe"))
        return Value(f"({made}).{method}({', '.join(codes)})", Scalar(self._dtype))


def _operator(given, name):
    """The C++ of an operator that was given as an argument."""
    op = given.value if isinstance(given, Constant) else None
    if not isinstance(op, Operator):
        raise TypeError(f"{name} must be cub.Sum(), cub.Max() or cub.Min()")
    return f"ad_collective::{op.__name__}()"


def _threads_of(family, key):
    """The dtype and the number of threads of family[dtype, threads]."""
    dtype, threads = key if isinstance(key, tuple) and len(key) == 2 else (None, None)
    if not isinstance(threads, (int, np.integer)) or not 1 <= threads <= 1024:
        raise TypeError(f"{family}[dtype, threads] needs how many threads a block has, 1 to 1024")
    return dtype, threads


def _types(dtype):
    """The C++ of a type, and of that which its numbers are reduced in."""
    dtype = np.dtype(dtype)
    return f"{c_name(dtype)}, {arithmetic_c(dtype)}"


class WarpReduce:
    """A reduction by the threads of a warp: WarpReduce[dtype]. Each warp needs an element of shared memory of its
    TempStorage; Sum(value) and Reduce(value, op) give the first thread the result.

    Source: cupyx.jit.cub.WarpReduce
    """

    def __class_getitem__(cls, dtype):
        return Collective("WarpReduce", f"ad_collective::warp_reduce<{_types(dtype)}>", dtype)


class BlockReduce:
    """A reduction by the threads of a block: BlockReduce[dtype, threads of the block]. It needs an element of shared
    memory of its TempStorage; Sum(value) and Reduce(value, op) give the first thread the result.

    Source: cupyx.jit.cub.BlockReduce
    """

    def __class_getitem__(cls, key):
        dtype, threads = _threads_of("BlockReduce", key)
        return Collective("BlockReduce", f"ad_collective::block_reduce<{_types(dtype)}, {threads}>", dtype)


class WarpScan:
    """A scan by the threads of a warp: WarpScan[dtype]. Each warp needs an element of shared memory of its TempStorage;
    InclusiveSum(value), ExclusiveSum(value) and InclusiveScan(value, op) give each thread what it and those before it, or
    those before it alone, have together.

    Differs: CuPy's jit has no scans; CUB's functions write the result instead of giving it.
    Source: of arrayd
    """

    def __class_getitem__(cls, dtype):
        return Collective("WarpScan", f"ad_collective::warp_scan<{_types(dtype)}>", dtype)


class BlockScan:
    """A scan by the threads of a block: BlockScan[dtype, threads of the block], as WarpScan.

    Source: of arrayd
    """

    def __class_getitem__(cls, key):
        dtype, threads = _threads_of("BlockScan", key)
        return Collective("BlockScan", f"ad_collective::block_scan<{_types(dtype)}, {threads}>", dtype)
