"""Filters whose function is the user's: a kernel that runs on the server, or a Python function that SciPy calls on this
side."""
import operator
import re

import numpy as np

from ... import _base
from ..._base import as_array, call, normalize_axis
from .._host import make_function
from . import _support

_BLOCK = 128
_MOST = 1 << 24  # elements of the windows of one launch
_generic_filter_on_host = make_function("generic_filter", "scipy.ndimage")
_generic_filter1d_on_host = make_function("generic_filter1d", "scipy.ndimage")


def _is_kernel(function):
    """Whether it is a RawKernel or a ReductionKernel. TypeError for an ElementwiseKernel."""
    from ..._kernel.elementwise import ElementwiseKernel
    from ..._kernel.raw import RawKernel
    from ..._kernel.reduction import ReductionKernel
    if isinstance(function, ElementwiseKernel):
        raise TypeError("only ReductionKernel allowed (not ElementwiseKernel)")
    if isinstance(function, ReductionKernel) and (function.nin, function.nout) != (1, 1):
        raise TypeError("ReductionKernel must have 1 input and output")
    return isinstance(function, (RawKernel, ReductionKernel))


def _make_lines_kernel(function, arguments):
    """A RawKernel that calls a user's kernel, as a function of the device, for each of n lines of x and y."""
    from ..._kernel.raw import RawKernel
    code = re.sub(r'extern\s+"C"', "", function.code).replace("__global__", "__device__")
    return RawKernel(f"""
namespace filter_function {{
{code}
}}
extern "C" __global__ void filter_lines(double *x, double *y, long long n, long long taken, long long given) {{
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) filter_function::{function.name}({arguments});
}}""", "filter_lines", function.options)


def _run_lines(function, arguments, x, given):
    """The results of a user's RawKernel for lines (n, taken) of float64: (n, given)."""
    from ..._array.creation import ascontiguousarray
    x = ascontiguousarray(x, np.float64)
    n, taken = x.shape
    y = _base.empty((n, given), np.float64)
    if n:
        kernel = _make_lines_kernel(function, arguments)
        kernel((-(-n // _BLOCK),), (_BLOCK,), (x, y, np.int64(n), np.int64(taken), np.int64(given)))
    return y


def _reduce_lines(function, x, dtype):
    """The results of a user's ReductionKernel for each of the lines (n, taken). _in_ind and _raw_ are of one line."""
    from ..._kernel.elementwise import code
    from ..._kernel.parameters import settle, typedefs
    from ..._kernel.raw import RawKernel
    from ..._kernel.types import c_name, head
    n, taken = x.shape
    ins, outs, types = settle(function.name, function.in_params, function.out_params, (x,), (), dtype)
    x, y = x.astype(ins[0], copy=False), _base.empty((n,), outs[0])
    (name, source), (result, target) = ((p.name, c_name(d)) for p, d in (
        (function.in_params[0], ins[0]), (function.out_params[0], outs[0])))
    reduced = function.reduce_type or target
    first = f"_type_reduce({function.identity})" if function.identity else "_type_reduce()"
    joined = "filter_join(a, _mapped)" if function.identity else "_j ? filter_join(a, _mapped) : _mapped"
    kernel = RawKernel(f"""{head(ins + outs, function.preamble, function.map_expr, function.post_map_expr, reduced)}
{typedefs(types)}{code(function.preamble, f"preamble of {function.name}")}
typedef {reduced} _type_reduce;
struct filter_extent {{ ptrdiff_t size_; __device__ ptrdiff_t size() const {{ return size_; }} }};
static inline __device__ _type_reduce filter_join(_type_reduce a, _type_reduce b) {{
return (_type_reduce)(
{code(function.reduce_expr, f"reduce_expr of {function.name}")});
}}
extern "C" __global__ void filter_lines(const {source} *_lines, {target} *_results, long long _n, long long _taken) {{
    const long long _line = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (_line >= _n) return;
    [[maybe_unused]] const filter_extent _in_ind = {{_taken}}, _out_ind = {{1}};
    const {source} *_raw_{name} = _lines + _line * _taken;
    _type_reduce a = {first};
    for (ptrdiff_t _j = 0; _j < _taken; _j++) {{
        [[maybe_unused]] const {source} {name} = _raw_{name}[_j];
        const _type_reduce _mapped = (_type_reduce)(
{code(function.map_expr, f"map_expr of {function.name}")});
        a = {joined};
    }}
    {target} &{result} = _results[_line];
{code(function.post_map_expr, f"post_map_expr of {function.name}", ";")}
}}""", "filter_lines", function._options)
    if n:
        kernel((-(-n // _BLOCK),), (_BLOCK,), (x, y, np.int64(n), np.int64(taken)))
    return y


def _extend(x, before, behind, mode, cval):
    """x with elements of a mode around it, before and behind along each axis."""
    from ..._array.pad import pad
    edge, widths = _support.edge_of(mode), list(zip(before, behind))
    if edge == 1:
        return pad(x, widths, constant_values=cval)
    for axis, width in enumerate(widths):
        if any(width):
            n = x.shape[axis]
            place = np.pad(np.arange(n), width, ("symmetric", None, "edge", "reflect", "wrap")[edge])
            x = x[_base.along(x.ndim, axis, as_array(place))]
    return x


def _list_windows(input, footprint, origins, mode, cval):
    """A function that gives the windows of elements first to last, (n, elements of the footprint), and how many there
    are."""
    before = [size // 2 + origin for size, origin in zip(footprint.shape, origins)]
    padded = _extend(input, before, [size - 1 - b for size, b in zip(footprint.shape, before)], mode, cval)
    strides = np.cumprod([1, *padded.shape[:0:-1]])[::-1]
    offsets = as_array(np.argwhere(footprint) @ strides)
    flat = padded.reshape(-1)

    def take(first, last):
        place = _base.iota(last - first, first, 1, np.int64)
        at = 0
        for n, stride in zip(reversed(input.shape), reversed(strides.tolist())):
            at = at + place % n * stride
            place = place // n
        return call("gather", (flat, at.reshape(-1, 1) + offsets))
    return take


def generic_filter(input, function, size=None, footprint=None, output=None, mode="reflect", cval=0.0, origin=0,
                   extra_arguments=(), extra_keywords=None, *, axes=None):
    """Return what a function makes of each window.

    Parameters: input: array. function: a RawKernel func(double *window, int size, double *result), a ReductionKernel of one
    input and output, which both run on the server; or a Python function of a 1-d array, which SciPy calls on this side for
    each element. size, footprint, output, mode, cval, origin, axes: as median_filter. extra_arguments, extra_keywords: of the
    Python function.
    Returns: ndarray.
    Raises: TypeError for another function or complex numbers; RuntimeError without size and footprint.
    Source: scipy.ndimage.generic_filter
    """
    input = _support.real_array(input)
    if not _is_kernel(function):
        if not callable(function):
            raise TypeError("function must be a kernel or callable")
        target = _support.make_output(output, input)
        return _support.copy_into(target, _generic_filter_on_host(
            input, function, size, footprint, target.dtype, mode, cval, origin, extra_arguments, extra_keywords, axes=axes))
    axes = _support.check_axes(axes, input.ndim)
    origins = _support.expand_origins(origin, input.ndim, axes)
    window = _support.window_of(size, footprint, input.ndim, axes)
    if not window.size:
        return _base.zeros(input.shape, input.dtype)
    _support.check_window(window, input.ndim, axes, origins)
    output = _support.make_output(output, input)
    take, count = _list_windows(input, window, origins, mode, cval), max(1, int(window.sum()))
    step, parts = max(1, _MOST // count), []
    for first in range(0, input.size, step):
        windows = take(first, min(first + step, input.size))
        parts.append(_reduce_windows(function, windows, output.dtype))
    if not parts:
        return output
    from ..._array.joining import concatenate
    return _support.copy_into(output, concatenate(parts).reshape(input.shape))


def _reduce_windows(function, windows, dtype):
    from ..._kernel.raw import RawKernel
    if isinstance(function, RawKernel):
        return _run_lines(function, "x + i * taken, (int)taken, y + i", windows, 1).reshape(-1)
    return _reduce_lines(function, windows, dtype)


def generic_filter1d(input, function, filter_size, axis=-1, output=None, mode="reflect", cval=0.0, origin=0,
                     extra_arguments=(), extra_keywords=None):
    """Return what a function makes of each line along an axis, which begins and ends with elements of a mode.

    Parameters: input: array. function: a RawKernel func(double *line, ptrdiff_t length, double *result, ptrdiff_t length),
    which runs on the server, or a Python function that fills its second array from its first, which SciPy calls on this side.
    filter_size: one more than the elements that a line gets. axis: the axis. output, mode, cval, origin: as correlate1d.
    extra_arguments, extra_keywords: of the Python function.
    Returns: ndarray.
    Raises: TypeError for another function or complex numbers; RuntimeError for a size below 1; ValueError for an origin
    outside of the window.
    Source: scipy.ndimage.generic_filter1d
    """
    from ..._kernel.raw import RawKernel
    input = _support.real_array(input)
    if not isinstance(function, RawKernel):
        if _is_kernel(function) or not callable(function):
            raise TypeError("bad function type")
        target = _support.make_output(output, input)
        return _support.copy_into(target, _generic_filter1d_on_host(
            input, function, filter_size, axis, target.dtype, mode, cval, origin, extra_arguments, extra_keywords))
    filter_size, axis = operator.index(filter_size), normalize_axis(axis, input.ndim)
    if filter_size < 1:
        raise RuntimeError("invalid filter size")
    before = _support.check_origin(origin, filter_size)
    output, n = _support.make_output(output, input), input.shape[axis]
    from ..._array.manipulation import moveaxis
    lines = moveaxis(input, axis, -1)
    shape = lines.shape
    widths = [0] * (input.ndim - 1)
    lines = _extend(lines, [*widths, before], [*widths, filter_size - 1 - before], mode, cval)
    filled = _run_lines(function, "x + i * taken, taken, y + i * given, given", lines.reshape(-1, lines.shape[-1]), n)
    return _support.copy_into(output, moveaxis(filled.reshape(shape), -1, axis))
