"""New arrays: constants, sequences, copies of host data."""
import builtins
import math
import operator

import numpy as np

from .. import _base, _core
from .._base import as_array, ndarray, on_device, shape_tuple


def _letter(order):
    """An order by its capital letter: 'C', 'F', 'A' or 'K', which None is; a list of axes as it is."""
    if order is None or isinstance(order, list):
        return "K" if order is None else order
    if order not in ("C", "F", "A", "K", "c", "f", "a", "k"):
        raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")
    return order.upper()


def _made(make, shape, dtype, order):
    shape = shape_tuple(shape)
    if order in ("C", "K", "A", None):
        return make(shape, dtype)
    order = _letter(order)
    if order == "F":
        return make(shape[::-1], dtype).transpose()
    if isinstance(order, list):
        return _as_ordered(make(tuple(shape[axis] for axis in order), dtype), order)
    return make(shape, dtype)


def _memory_order(a):
    """The axes from the outermost to the innermost, as their strides are: what order 'K' keeps in a copy."""
    return sorted(builtins.range(a.ndim), key=lambda axis: -builtins.abs(a.strides[axis]))


def _as_ordered(a, axes):
    """A view of an array that has the dimensions of another in an order: in the other's."""
    return a.transpose(sorted(axes, key=axes.__getitem__))


def empty(shape, dtype=float, order="C", *, device=None, like=None):
    """A new array whose elements are unspecified: zeros, or what arrays of the same user had there before.

    Parameters: shape: int or tuple of ints. dtype: type of the elements. order: 'C' row-major or 'F' column-major.
    device: a cuda.Device or its number, the current one unless given; "all" or a sharding.NamedSharding: several. like:
    ignored.
    Returns: ndarray of that shape; sharding.ShardedArray where there are several devices.
    Raises: ValueError for a negative dimension, another order or a device that does not exist; TypeError for a dtype
    that arrayd does not have.
    Source: numpy.empty
    """
    if device is not None:
        return on_device(device, empty, shape, dtype, order)
    return _made(_base.empty, shape, dtype, order)


def zeros(shape, dtype=float, order="C", *, device=None, like=None):
    """A new array of zeros.

    Parameters: shape: int or tuple of ints. dtype: type of the elements. order: 'C' or 'F'. device, like: as empty.
    Returns: ndarray of that shape.
    Raises: ValueError for a negative dimension or another order.
    Source: numpy.zeros
    """
    if device is not None:
        return on_device(device, zeros, shape, dtype, order)
    return _made(_base.zeros, shape, dtype, order)


def ones(shape, dtype=None, order="C", *, device=None, like=None):
    """A new array of ones.

    Parameters: shape: int or tuple of ints. dtype: type of the elements, float64 unless given. order: 'C' or 'F'.
    device, like: as empty.
    Returns: ndarray of that shape.
    Raises: ValueError for a negative dimension or another order.
    Source: numpy.ones
    """
    return full(shape, 1, float if dtype is None else dtype, order, device=device)


def full(shape, fill_value, dtype=None, order="C", *, device=None, like=None):
    """A new array with every element set to one value.

    Parameters: shape: int or tuple of ints. fill_value: number, or array that broadcasts to shape. dtype: type of the
    elements, that of fill_value unless given. order: 'C' or 'F'. device, like: as empty.
    Returns: ndarray of that shape.
    Raises: ValueError when fill_value does not broadcast to shape.
    Source: numpy.full
    """
    if device is not None:
        return on_device(device, full, shape, fill_value, dtype, order)
    if not _base.is_scalar(fill_value):
        fill_value = as_array(fill_value)
    if dtype is None:
        dtype = fill_value.dtype if isinstance(fill_value, (ndarray, np.generic)) else np.asarray(fill_value).dtype
    result = empty(shape, dtype, order)
    if result.size:
        result[...] = _wrapped(fill_value, result.dtype)
    elif _base.is_scalar(fill_value):
        _wrapped(fill_value, result.dtype)
    else:
        np.broadcast_to(np.empty(fill_value.shape, bool), result.shape)
    return result


def _wrapped(value, dtype):
    """A Python int as NumPy checks it against an integer type: OverflowError when it does not fit."""
    return np.asarray(value, dtype)[()] if type(value) is int and dtype.kind in "iu" else value


def _order_of(a, keep):
    """In which order an array's elements lie: 'C', 'F', or where keep is true and it is neither its axes' order."""
    if a.flags.c_contiguous or a.flags.f_contiguous:
        return "C" if a.flags.c_contiguous else "F"
    return _memory_order(a) if keep else "C"


def _like(a, dtype, order, shape, subok):
    """Shape, dtype and order of an array like a: the order may be that of its axes in memory."""
    if subok:
        raise TypeError("subok is not supported: arrays like others are of no subclass")
    a = as_array(a)
    dtype = a.dtype if dtype is None else dtype
    shape = a.shape if shape is None else shape_tuple(shape)
    order = _letter(order)
    if order in ("K", "A"):
        order = _order_of(a, order == "K") if order == "A" or len(shape) == a.ndim else "C"
    return shape, dtype, order


def empty_like(prototype, dtype=None, order="K", subok=None, shape=None, *, device=None):
    """A new array of another's shape and type, elements unspecified.

    Parameters: prototype: array of any shape. dtype, shape: used instead of the prototype's. order: 'C', 'F', 'A'
    ('F' where the prototype is column-major) or 'K' (the dimensions lie in memory in the prototype's order). subok: None or
    False. device: as empty.
    Returns: ndarray.
    Raises: ValueError for another order.
    Source: numpy.empty_like
    """
    return empty(*_like(prototype, dtype, order, shape, subok), device=device)


def zeros_like(a, dtype=None, order="K", subok=None, shape=None, *, device=None):
    """A new array of zeros of another's shape and type.

    Parameters: a: array of any shape. dtype, shape: used instead of a's. order: as empty_like. subok: as empty_like.
    device: as empty.
    Returns: ndarray.
    Raises: ValueError for another order.
    Source: numpy.zeros_like
    """
    return zeros(*_like(a, dtype, order, shape, subok), device=device)


def ones_like(a, dtype=None, order="K", subok=None, shape=None, *, device=None):
    """A new array of ones of another's shape and type.

    Parameters: a: array of any shape. dtype, shape: used instead of a's. order: as empty_like. subok: as empty_like.
    device: as empty.
    Returns: ndarray.
    Raises: ValueError for another order.
    Source: numpy.ones_like
    """
    return ones(*_like(a, dtype, order, shape, subok), device=device)


def full_like(a, fill_value, dtype=None, order="K", subok=None, shape=None, *, device=None):
    """A new array of another's shape and type with every element set to one value.

    Parameters: a: array of any shape. fill_value: number or array that broadcasts. dtype, shape: used instead of a's.
    order: as empty_like. subok: as empty_like. device: as empty.
    Returns: ndarray.
    Raises: ValueError when fill_value does not broadcast.
    Source: numpy.full_like
    """
    shape, dtype, order = _like(a, dtype, order, shape, subok)
    return full(shape, fill_value, dtype, order, device=device)


def array(object, dtype=None, *, copy=True, order="K", subok=False, ndmin=0, like=None, blocking=False):
    """An array of the server from anything that NumPy makes an array of, or from nested lists of server arrays.

    Parameters: object: array, its flat, number, nested sequence, or anything with the buffer protocol but bytes, which
    are text to NumPy (frombuffer takes them). dtype: type of the elements, found from object unless given. copy: True
    always copies; None only if needed; False raises ValueError where a copy is needed (always for host data). order: 'C',
    'F', 'A' or 'K'. subok, like, blocking: ignored. ndmin: least number of dimensions; ones are put before the shape.
    Returns: ndarray. Host data are copied before the call returns.
    Raises: ValueError for ragged sequences, copy=False or a copy that is text; TypeError for a dtype that arrayd does not
    have.
    Source: numpy.array
    """
    _base.check_copy(copy)
    if hasattr(object, "_as_array"):  # an iterator over an array of the server, say
        object = object._as_array()
    elif hasattr(object, "__cupy_get_ndarray__"):
        object = object.__cupy_get_ndarray__()
    order = _letter(order)
    if isinstance(object, ndarray):
        result = _copied(object, dtype, copy, order)
    elif _is_on_gpu(object):
        result = _from_gpu(object, dtype, copy, order)
    else:
        if copy is False:
            raise ValueError("Unable to avoid copy: the data are in this process, not on the server")
        result = _from_host(object, dtype, order)
    if result.ndim < ndmin:
        result = result.reshape((1,) * (ndmin - result.ndim) + result.shape)
    return result


def _copied(a, dtype, copy, order):
    dtype = a.dtype if dtype is None else np.dtype(dtype)
    fits = a.dtype == dtype and (order in ("K", "A") or (order == "C" and a.flags.c_contiguous)
                                 or (order == "F" and a.flags.f_contiguous))
    if fits and copy is not True and not _core.is_elsewhere(a):
        return a
    if copy is False:
        raise ValueError("Unable to avoid copy while creating an array as requested")
    return a.astype(dtype, order=order)


def _is_on_gpu(value):
    if isinstance(value, (np.ndarray, np.generic, list, tuple, bool, int, float, complex, range)):
        return False
    from .._interop.dlpack import is_on_gpu
    return is_on_gpu(value)


def _from_gpu(value, dtype, copy, order):
    from .._interop.dlpack import from_cuda
    try:
        made, copied = from_cuda(value, copy)
    except BufferError as error:
        if copy is False:
            raise ValueError(f"Unable to avoid copy: {error}") from None
        raise
    result = _copied(made, dtype, None if copied else copy, order)
    if not copied and result is not made:
        _core.settle()  # the tensor is its program's again
    return result


def _from_host(value, dtype, order):
    try:
        host = np.asarray(value, dtype=dtype)
    except (TypeError, ValueError):
        if not _holds_arrays(value):
            raise
        return _stacked(value, dtype, order)
    if host.dtype == object and _holds_arrays(value):
        return _stacked(value, dtype, order)
    upload = _core.from_host
    if host.dtype.names is not None or host.dtype.type is np.void:
        from .structured import from_host as upload
    elif host.dtype.kind in "OSUmMV" and host.dtype.name != "bfloat16":
        hint = "; frombuffer(x, dtype) takes bytes for numbers" if isinstance(value, bytes) else ""
        raise _core.DTypeError(f"arrayd has no dtype {host.dtype!r}: numbers and bool only{hint}")
    if not host.dtype.isnative and host.dtype.kind != "V":
        host = host.astype(host.dtype.newbyteorder("="))
    fortran = order == "F" or (order in ("K", "A") and host.flags.f_contiguous and not host.flags.c_contiguous)
    if fortran and host.ndim > 1:
        return upload(host.T).transpose()
    if order == "K" and host.ndim > 1 and not host.flags.forc:
        axes = _memory_order(host)
        return _as_ordered(upload(host.transpose(axes)), axes)
    return upload(host)


def _stacked(values, dtype, order="C"):
    from .joining import stack
    parts = [as_array(value) for value in values]
    kind = _base.result_type(*(part.dtype for part in parts)) if dtype is None else dtype
    made = stack(parts, dtype=kind, casting="unsafe")
    return made.astype(made.dtype, order="F" if order == "F" else "C", copy=False)


def _holds_arrays(value):
    """Whether nested sequences hold an array of the server, or an object that hands one out."""
    return isinstance(value, (list, tuple)) and builtins.any(
        isinstance(part, ndarray) or _holds_arrays(part) or _hands_out(part) for part in value)


def is_of_server(value):
    """Whether value is an array of the server, an object that hands one out, or nested sequences that hold one."""
    return isinstance(value, ndarray) or _hands_out(value) or _holds_arrays(value)


def _hands_out(value):
    return hasattr(value, "__cupy_get_ndarray__") or hasattr(value, "__cuda_array_interface__")


def asarray(a, dtype=None, order=None, *, device=None, copy=None, like=None, blocking=False):
    """An array of the server: itself when it is one already, memory of a GPU that another library has, else a copy.

    An array of another library of this process (PyTorch, CuPy, Numba, JAX) on the server's GPU is not copied where the
    server can have its memory. That is over a Unix socket, if the memory was allocated by cudaMalloc, or by CUDA's
    virtual-memory API so that it can be exported. Then both see what the other writes. Calls on the array come after
    all that was begun for the tensor before; before the program looks at what the server writes, or writes what
    the server may still use, it must wait (sync). The tensor is kept until the server has let go of it. Else, and with
    copy=True, there is a copy, from one place of the GPU's memory to another; session_info() counts both (lent, copied).

    Parameters: a: array, number, nested sequence or buffer; or a tensor on a GPU, by DLPack or the CUDA array interface.
    dtype: type of the elements. order: 'C', 'F', 'A' or 'K'. device: a cuda.Device or its number, the current one unless
    given. copy: as array. like, blocking: ignored.
    Returns: ndarray, on that device.
    Raises: as array; ValueError for a device that does not exist.
    Source: numpy.asarray
    """
    if device is not None:
        return on_device(device, asarray, a, dtype, order, copy=copy)
    if type(a) is ndarray and dtype is order is copy is None and not _core.is_elsewhere(a):
        return a
    return array(a, dtype, copy=copy, order=order)


def asanyarray(a, dtype=None, order=None, *, device=None, copy=None, like=None, blocking=False):
    """Make an array as asarray does: arrayd has no subclasses of ndarray.

    Parameters: as asarray.
    Returns: ndarray.
    Raises: as array.
    Source: numpy.asanyarray
    """
    return asarray(a, dtype, order, device=device, copy=copy)


def ascontiguousarray(a, dtype=None, *, like=None):
    """An array with row-major contiguous elements, at least 1-d; copied only if it is not so already.

    Parameters: a: array or what asarray takes. dtype: type of the elements. like: ignored.
    Returns: ndarray.
    Raises: as array.
    Source: numpy.ascontiguousarray
    """
    return array(a, dtype, copy=None, order="C", ndmin=1)


def asfortranarray(a, dtype=None, *, like=None):
    """An array with column-major contiguous elements, at least 1-d; copied only if it is not so already.

    Parameters: a: array or what asarray takes. dtype: type of the elements. like: ignored.
    Returns: ndarray.
    Raises: as array.
    Source: numpy.asfortranarray
    """
    return array(a, dtype, copy=None, order="F", ndmin=1)


def copy(a, order="K", subok=False):
    """A copy with a buffer of its own.

    Parameters: a: array or what asarray takes. order: 'C', 'F', 'A' or 'K' (as a's). subok: ignored.
    Returns: ndarray.
    Raises: as array.
    Source: numpy.copy
    """
    return array(a, copy=True, order=order)


def astype(x, dtype, /, *, copy=True, device=None):
    """An array with its elements cast to a type.

    Parameters: x: array of the server. dtype: the type. copy: False gives x itself when it is of that type and on that
    device. device: a cuda.Device or its number, x's unless given.
    Returns: ndarray of x's shape.
    Raises: TypeError when x is no array of the server.
    Source: numpy.astype
    """
    if not isinstance(x, ndarray):
        raise TypeError(f"Input should be an arrayd.ndarray. It is of type {type(x)}.")
    if device is not None:
        return asarray(x, dtype, device=device, copy=copy or None)
    return x if not copy and x.dtype == dtype else x.astype(dtype)


def asnumpy(a, stream=None, order="C", out=None, *, blocking=True):
    """The elements as a NumPy array in this process; waits for the server.

    Parameters: a: array, also a distributed one, or anything that numpy.asarray takes. stream, blocking: ignored. order:
    layout of the result. out: NumPy array of a's shape to fill.
    Returns: numpy.ndarray; a large one lies in memory that the server shares, so that nothing is copied on this side.
    Raises: the error of the operation that failed to compute a.
    Source: cupy.asnumpy
    """
    if out is not None and isinstance(a, ndarray):
        return a.get(out=out)
    if not isinstance(a, (ndarray, np.ndarray)) and _hands_out(a):
        a = asarray(a)
    host = a.get() if isinstance(a, ndarray) or getattr(a, "_is_distributed", False) else np.asarray(a)
    if out is not None:
        out[...] = host
        return out
    return np.asarray(host, order=order)


def frombuffer(buffer, dtype=float, count=-1, offset=0, *, like=None):
    """A 1-d array from the bytes of a buffer.

    Parameters: buffer: object with the buffer protocol. dtype: type of the elements. count: how many, -1 for all.
    offset: bytes to pass over. like: ignored.
    Returns: ndarray of shape (count,).
    Raises: ValueError when the buffer's size does not fit.
    Source: numpy.frombuffer
    """
    return array(np.frombuffer(buffer, dtype, count, offset))


def fromiter(iter, dtype, count=-1, *, like=None):
    """A 1-d array from an iterable.

    Parameters: iter: iterable of numbers. dtype: type of the elements. count: how many to take, -1 for all. like:
    ignored.
    Returns: ndarray of shape (n,).
    Raises: ValueError when the iterable is shorter than count.
    Source: numpy.fromiter
    """
    return array(np.fromiter(iter, dtype, count))


def fromfunction(function, shape, *, dtype=float, like=None, **kwargs):
    """An array computed by a function from coordinate arrays.

    Parameters: function: called once with one array of coordinates for each axis, each of the full shape. shape:
    tuple of ints. dtype: type of the coordinates. like: ignored. kwargs: passed to function.
    Returns: whatever function returns.
    Raises: what function raises.
    Source: numpy.fromfunction
    """
    from .grids import indices
    return function(*indices(shape, dtype=dtype), **kwargs)


def arange(start, stop=None, step=None, dtype=None, *, device=None, like=None):
    """Evenly spaced values in the half-open interval [start, stop).

    Parameters: start: first value, or stop when only one argument is given (start is 0 then). stop: end, not
    included. step: distance, 1 unless given. dtype: type of the elements, that of the arguments unless given. device,
    like: as empty.
    Returns: ndarray of shape (ceil((stop - start)/step),).
    Raises: ZeroDivisionError for step 0; ValueError where the length cannot be computed or is too large.
    Source: numpy.arange
    """
    if device is not None:
        return on_device(device, arange, start, stop, step, dtype)
    start, stop, step, dtype = _complete_range(start, stop, step, dtype)
    if dtype == np.bool_:
        return array(np.arange(start, stop, step, dtype))
    return _base.iota(*count_range(start, stop, step, dtype), dtype)


def _complete_range(start, stop, step, dtype):
    """The arguments of arange as numbers and a type."""
    if stop is None:
        start, stop = 0, start
    step = 1 if step is None else step
    start, stop, step = (value.item() if isinstance(value, ndarray) else value for value in (start, stop, step))
    if dtype is None:
        kinds = [np.asarray(value).dtype for value in (start, stop, step)]
        if object in kinds:
            _length(start, stop, step)  # an int above 64 bits makes too many elements, mostly
        dtype = _base.result_type(*kinds)
    return start, stop, step, np.dtype(dtype)


def count_range(start, stop, step, dtype):
    """Length, first element and difference to the second of a range."""
    length = _length(start, stop, step)
    return (length, *_first_and_delta(start, step, dtype, length))


def plan_range(start, stop=None, step=None, dtype=None):
    """Length, first element, difference to the second and type of arange."""
    start, stop, step, dtype = _complete_range(start, stop, step, dtype)
    return (*count_range(start, stop, step, dtype), dtype)


def _length(start, stop, step):
    """Number of elements of arange."""
    difference = (stop - start) / step
    if isinstance(difference, (complex, np.complexfloating)):
        return builtins.max(0, builtins.min(math.ceil(difference.real), math.ceil(difference.imag)))
    if not math.isfinite(difference):
        raise ValueError("arange: cannot compute length")
    length = builtins.max(0, math.ceil(difference))
    if length >= 2**63:
        raise ValueError("Maximum allowed size exceeded")
    return length


def _first_and_delta(start, step, dtype, length):
    """The first element and the difference to the second, both as rounded to dtype."""
    if length == 0:
        return 0, 0
    with np.errstate(all="ignore"):
        first = dtype.type(start).item()
        second = dtype.type(start + step).item() if length > 1 else first
    return first, second - first


def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0, *, device=None):
    """num evenly spaced values from start to stop.

    Parameters: start, stop: numbers or arrays that broadcast to a shape S. num: how many. endpoint: whether stop is
    the last. retstep: also return the distance. dtype: type of the elements (integers are rounded down). axis: where
    the values go in the result. device: as empty.
    Returns: ndarray of shape S with num put in at axis; with retstep also the step.
    Raises: ValueError for a negative num.
    Source: numpy.linspace
    """
    if device is not None:
        return on_device(device, linspace, start, stop, num, endpoint, retstep, dtype, axis)
    num = operator.index(num)
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    div = num - 1 if endpoint else num
    start, stop = (value if _base.is_scalar(value) else as_array(value) for value in (start, stop))
    kind = _base.result_type(start, stop)
    kind = kind if kind.kind in _base.INEXACT else _base.result_type(kind, np.float64)
    if isinstance(start, ndarray) or isinstance(stop, ndarray):
        values, step = _spread(start, stop, num, div, kind)
    else:
        values, step = _line(start, stop, num, div, kind)
    if endpoint and num > 1:
        values[-1, ...] = stop
    return _finish(values, dtype, axis, (step,) if retstep else ())


def _line(start, stop, num, div, kind):
    """num values from start in steps of (stop - start)/div, and the step, for ends that are numbers."""
    start, stop = kind.type(start), kind.type(stop)
    delta = stop - start
    step = delta / div if div > 0 else np.nan
    if div > 0 and step != 0:
        return _base.iota(num, start.item(), step.item(), kind), step
    # A step that underflows is multiplied last.
    values = _base.iota(num, 0, 1, kind)
    return (values / div if div > 0 else values) * delta + start, step


def _spread(start, stop, num, div, kind):
    """As _line, for ends of which one is an array."""
    delta = _core.ufuncs["subtract"](stop, start, dtype=kind)
    ramp = _base.iota(num, 0, 1, np.dtype(kind.char.lower()) if kind.kind == "c" else kind)
    ramp = ramp.reshape((num,) + (1,) * delta.ndim)
    if div <= 0:
        return _core.ufuncs["add"](ramp * delta, start, dtype=kind), np.nan
    from .indexing import where
    step = delta / div
    return _core.ufuncs["add"](where(step == 0, ramp / div * delta, ramp * step), start, dtype=kind), step


def _finish(values, dtype, axis, extra=()):
    """The end of the functions that space values: rounding down to integers, the type, the axis."""
    if dtype is not None:
        dtype = np.dtype(dtype)
        if dtype.kind in "iu" and values.dtype.kind in _base.FLOATING:
            values = _core.ufuncs["floor"](values)
        values = values.astype(dtype, copy=False)
    if axis != 0:
        from .manipulation import moveaxis
        values = moveaxis(values, 0, axis)
    return (values, *extra) if extra else values


def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None, axis=0):
    """num values whose logarithms are evenly spaced, from base**start to base**stop.

    Parameters: start, stop: exponents, numbers or arrays. num, endpoint, axis: as linspace. base: number or array.
    dtype: type of the elements.
    Returns: ndarray of shape S with num put in at axis.
    Raises: ValueError for a negative num.
    Source: numpy.logspace
    """
    if not _base.is_scalar(base):
        base = as_array(base)
        start, stop = (as_array(value) + zeros(base.shape) for value in (start, stop))
    exponents = linspace(start, stop, num, endpoint)
    return _finish(_core.ufuncs["power"](base, exponents), dtype, axis)


def geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0):
    """num values in geometric progression from start to stop.

    Parameters: start, stop: first and last value, real or complex, numbers or arrays that broadcast to a shape S. num,
    endpoint, axis: as linspace. dtype: type of the elements.
    Returns: ndarray of shape S with num put in at axis.
    Raises: ValueError for an end on this side that is zero (one on the server gives NaN: looking would take waiting).
    Source: numpy.geomspace
    """
    ends = [value if isinstance(value, ndarray) else np.asarray(value) for value in (start, stop)]
    if builtins.any(not isinstance(end, ndarray) and (end == 0).any() for end in ends):
        raise ValueError("Geometric sequence cannot include zero")
    kind = _base.result_type(*(end.dtype for end in ends), float, *(() if dtype is None else (np.dtype(dtype),)))
    f = vars(np)
    if builtins.any(isinstance(end, ndarray) for end in ends):
        f, ends = _core.ufuncs, [as_array(end) for end in ends]
    first, last = (end.astype(kind) for end in ends)
    # Turned so that the first is real and positive, and turned back in the end.
    sign = f["sign"](first)
    first, last = first / sign, last / sign
    values = logspace(f["log10"](first), f["log10"](last), num, endpoint, dtype=kind)
    if values.shape[0]:
        values[0] = _base.as_operand(first)
    if values.shape[0] > 1 and endpoint:
        values[-1] = _base.as_operand(last)
    return _finish(values * _base.as_operand(sign), kind if dtype is None else dtype, axis)
