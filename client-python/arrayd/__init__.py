"""arrayd: NumPy's functions on arrays that live on an array server.

    import arrayd as ad
    x = ad.arange(10)
    print(ad.sqrt(x).sum())

Operations are sent and not waited for; a.get() (or printing, float(a), bool(a)) fetches elements, and with them the
error if computing them failed. ARRAYD_URL or connect() says which server.
"""
import importlib as _importlib

import numpy as _numpy
from numpy import (base_repr, binary_repr, bool_, complex128, complex64, complexfloating, dtype, e, euler_gamma, finfo,
                   float16, float32, float64, floating, generic, iinfo, inexact, inf, int16, int32, int64, int8,
                   integer, intp, isdtype, issubdtype, iterable, long, mintypecode, nan, number, pi, promote_types,
                   signedinteger, typename, uint16, uint32, uint64, uint8, ulong, unsignedinteger)
from numpy.exceptions import (AxisError, ComplexWarning, ModuleDeprecationWarning, RankWarning, TooHardError,
                              VisibleDeprecationWarning)

from . import _core
from ._interop.array_api import VERSION as __array_api_version__
from ._core import (ArraydError, CancelledError, CompileError, DTypeError, DeviceError, DeviceLostError, LimitError, ProtocolError,
                    ServerError, StaleHandleError, TLSError, ndarray, ufunc)
from ._base import newaxis
from ._config import cancel, connect, session_info, show_config, stat, sync
from ._array.creation import (arange, array, asanyarray, asarray, ascontiguousarray, asfortranarray, asnumpy, astype,
                              copy, empty, empty_like, frombuffer, fromfunction, fromiter, full, full_like, geomspace,
                              linspace, logspace, ones, ones_like, zeros, zeros_like)
from ._array.formatting import (array2string, array_repr, array_str, format_float_positional, format_float_scientific,
                                get_printoptions, printoptions, set_printoptions)
from ._array.indexing import (argwhere, choose, compress, diagonal, extract, fill_diagonal, flatnonzero, index_exp, ix_,
                              ndindex, nonzero, piecewise, place, put, put_along_axis, putmask, ravel_multi_index, s_,
                              select, take, take_along_axis, unravel_index, where)
from ._array.joining import (append, array_split, block, column_stack, concat, concatenate, copyto, delete, dsplit,
                             dstack, hsplit, hstack, insert, repeat, resize, roll, split, stack, tile, trim_zeros,
                             unstack, vsplit, vstack)
from ._math.products import cross, dot, inner, kron, matmul, matvec, outer, tensordot, trace, vdot, vecdot, vecmat
from ._math.logic import (allclose, array_equal, array_equiv, can_cast, common_type, get_array_module, isclose,
                          iscomplex, iscomplexobj, isfortran, isreal, isrealobj, isscalar, may_share_memory, ndim,
                          result_type, shape, shares_memory, size)
from ._array.manipulation import (atleast_1d, atleast_2d, atleast_3d, broadcast_arrays, broadcast_shapes, broadcast_to,
                                  expand_dims, flip, fliplr, flipud, matrix_transpose, moveaxis, permute_dims, ravel,
                                  reshape, rollaxis, rot90, squeeze, swapaxes, transpose)
from ._math.elementary import (angle, around, bartlett, blackman, clip, convolve, correlate, diff, ediff1d, fix,
                               gradient, hamming, hanning, i0, imag, interp, kaiser, nan_to_num, real, round, sinc,
                               trapezoid, unwrap)
from ._math.reductions import (all, amax, amin, any, argmax, argmin, count_nonzero, cumprod, cumsum, cumulative_prod,
                               cumulative_sum, max, mean, median, min, nanargmax, nanargmin, nancumprod, nancumsum,
                               nanmax, nanmean, nanmedian, nanmin, nanprod, nanstd, nansum, nanvar, prod, ptp, std, sum,
                               var)
from ._math.sorting import (argpartition, argsort, intersect1d, isin, lexsort, partition, searchsorted, setdiff1d,
                            setxor1d, sort, sort_complex, union1d, unique, unique_all, unique_counts, unique_inverse,
                            unique_values)
from ._array import methods as _methods, ufunc_methods as _ufunc_methods
from ._interop import import_hook as _import_hook
from ._io import progress as _progress
from ._notebook import interrupts as _interrupts, sites as _sites

__version__ = _core.version()

bool = bool_
int_, uint, half, single, double = _numpy.int_, _numpy.uint, float16, float32, float64
byte, short, intc, longlong = int8, int16, _numpy.intc, _numpy.longlong
ubyte, ushort, uintc, ulonglong, uintp = uint8, uint16, _numpy.uintc, _numpy.ulonglong, _numpy.uintp
csingle, cdouble = complex64, complex128

for _name, _ufunc in _core.ufuncs.items():
    if not _ufunc.special:
        globals().setdefault(_name, _ufunc)
# Other names that NumPy and CuPy have for ufuncs.
for _alias, _name in {
        "abs": "absolute", "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
        "atan2": "arctan2", "atanh": "arctanh", "bitwise_invert": "invert", "bitwise_left_shift": "left_shift",
        "bitwise_not": "invert", "bitwise_right_shift": "right_shift", "conj": "conjugate", "degrees": "rad2deg",
        "mod": "remainder", "pow": "power", "radians": "deg2rad", "true_divide": "divide"}.items():
    globals()[_alias] = _core.ufuncs[_name]
del _name, _alias, _ufunc

_methods.install()
_ufunc_methods.install()
_import_hook.install()
_sites.install()
_interrupts.install()


# Imported when one of their names is first asked for; together they would double the time of the import.
_LATER = {
    "_interop.array_api": "__array_namespace_info__",
    "_inspect": "byte_bounds disp who",
    "_interop.awaiting": "async_asarray async_sync",
    "_interop.dlpack": "fromDlpack from_dlpack",
    "_math.bits": "packbits unpackbits",
    "_array.broadcast": "broadcast",
    "_checks": "asarray_chkfinite min_scalar_type real_if_close require",
    "_math.einsum": "einsum einsum_path",
    "_array.flat": "flatiter",
    "_math.functional": "apply_along_axis apply_over_axes clear_memo memoize",
    "_notebook.magics": "load_ipython_extension unload_ipython_extension",
    "_kernel.elementwise": "ElementwiseKernel",
    "_kernel.fusion": "fuse",
    "_kernel.raw": "RawKernel RawModule",
    "_kernel.records": "make_aligned_dtype",
    "_kernel.reduction": "ReductionKernel",
    "_kernel.vectorized": "vectorize",
    "_array.grids": "c_ diag diagflat eye identity indices meshgrid mgrid ogrid r_ tri tril triu vander",
    "_io.files": "fromfile load save savez savez_compressed",
    "_interop.ipc": "IpcHandle",
    "_io.text": "fromstring genfromtxt loadtxt savetxt",
    "_numpy_names": "DataSource format_parser",
    "_array.pad": "pad",
    "_array.protocols": "implicit",
    "_interop.pinned": "empty_like_pinned empty_pinned zeros_like_pinned zeros_pinned",
    "_math.poly": "poly polyadd polyder polydiv polyfit polyint polymul polysub polyval roots",
    "_math.poly1d": "poly1d",
    "_math.quantile": "nanpercentile nanquantile percentile quantile",
    "_interop.sharing": "Handle attach handles names publish share unpublish",
    "_math.statistics": "average bincount corrcoef cov digitize histogram histogram2d histogram_bin_edges histogramdd",
    "_array.triangles": "diag_indices diag_indices_from mask_indices tril_indices tril_indices_from triu_indices "
                  "triu_indices_from",
    "sharding": "device_put",
    "cuda": "is_available",
    "cuda.memory": "get_default_memory_pool",
    "cuda.pinned_memory": "get_default_pinned_memory_pool",
}
_MODULES = ("cublas", "cuda", "cupyx", "exceptions", "fft", "lib", "linalg", "polynomial", "random", "scipy",
            "sharding", "special", "testing")
_HOME = {name: module for module, names in _LATER.items() for name in names.split()}

# `from arrayd import *` leaves those builtins alone that NumPy leaves alone.
__all__ = sorted({name for name in {*globals(), *_HOME, *_MODULES} if not name.startswith("_")}
                 - {"abs", "bool", "max", "min", "pow", "round"})


def __dir__():
    names = {*globals(), *_HOME, *_MODULES}
    try:
        __getattr__("bfloat16")
    except AttributeError:
        return sorted(names)
    return sorted({*names, "bfloat16"})


def __getattr__(name):
    if name in _MODULES:
        return _importlib.import_module("." + name, __name__)
    if name in _HOME:
        module = _importlib.import_module("." + _HOME[name], __name__)
        globals().update({each: getattr(module, each) for each in _LATER[_HOME[name]].split()})
        return globals()[name]
    # ml_dtypes, which defines it, is imported only when asked for.
    if name == "bfloat16":
        try:
            return _core.as_dtype("bfloat16").type
        except TypeError as error:
            raise AttributeError(f"module {__name__!r} has no attribute 'bfloat16': {error}", name=name) from None
    from ._removed import missing
    raise missing(name)
