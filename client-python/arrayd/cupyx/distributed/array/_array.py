"""An array in chunks, each on one device."""
import numpy as np

from .... import _core
from ...._base import as_array, ndarray
from ....cuda import Device
from ....sharding import ShardedArray, device_put
from . import _boxes, _product
from ._modes import MAX, MIN, PROD, REPLICA, SUM

_REDUCTIONS = {"max": MAX, "min": MIN, "sum": SUM, "prod": PROD}


class Chunk:
    """A part: its index in the whole, and its elements."""

    def __init__(self, index, array):
        self.index, self.array = index, array


class DistributedArray(np.lib.mixins.NDArrayOperatorsMixin):
    """An array whose chunks lie on several devices; distributed_array() makes one. It has elementwise functions and
    operators, ElementwiseKernel, the reductions max, min, sum and prod, and @. Functions take distributed arrays and
    numbers, not other arrays. Operands whose chunks differ get those of the first one.

    Attributes: shape, dtype, ndim, size, nbytes: as of an array. mode: what it means that chunks overlap. devices: numbers
    of those with chunks. index_map: the indices of chunks by device.
    Source: cupyx.distributed.array.DistributedArray
    """

    __array_priority__ = 100
    _is_distributed = True  # for asnumpy()

    def __init__(self, shape, dtype, chunks_map, mode=REPLICA, comms=None):
        self.shape, self.dtype, self.mode, self._chunks_map = tuple(shape), np.dtype(dtype), mode, chunks_map

    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: int(np.prod(self.shape, dtype=np.int64)))
    nbytes = property(lambda self: self.size * self.dtype.itemsize)
    devices = property(lambda self: self._chunks_map.keys())

    @property
    def index_map(self):
        return {device: [chunk.index for chunk in chunks] for device, chunks in self._chunks_map.items()}

    def __repr__(self):
        return f"<DistributedArray {self.dtype}{list(self.shape)} on devices {sorted(self.devices)}, mode {self.mode}>"

    def all_chunks(self):
        """The chunks' elements.

        Returns: dict: lists of ndarrays by device.
        Source: cupyx.distributed.array.DistributedArray.all_chunks
        """
        return {device: [chunk.array for chunk in chunks] for device, chunks in self._chunks_map.items()}

    def get(self, stream=None, order="C", out=None, blocking=True):
        """Fetch the elements. Where chunks overlap they are combined as the mode says.

        Returns: numpy.ndarray.
        Raises: ValueError for a stream, another order than C, and out.
        Source: cupyx.distributed.array.DistributedArray.get
        """
        if stream is not None or order != "C" or out is not None:
            raise ValueError("get() of a distributed array takes no stream, order nor out")
        host = np.full(self.shape, 0 if self.mode is REPLICA else self.mode.identity_of(self.dtype), self.dtype)
        for chunk in self._chunks():
            part = chunk.array.get()
            if self.mode is not REPLICA:
                part = getattr(np, self.mode.ufunc.__name__)(host[chunk.index], part)
            host[chunk.index] = part
        return host

    def change_mode(self, mode):
        """Return the values in another mode. No element moves where no chunks overlap.

        Parameters: mode: REPLICA, MIN, MAX, SUM or PROD.
        Returns: DistributedArray, which may have chunks of this one.
        Source: cupyx.distributed.array.DistributedArray.change_mode
        """
        if mode is self.mode:
            return self
        if self.mode is not REPLICA:
            whole = self._combine_overlaps()
            return whole if mode is REPLICA else whole.change_mode(mode)
        return self._make(self._chunks_map if mode.idempotent else self._count_once(mode), mode)

    def reshard(self, index_map):
        """Return the values in other chunks.

        Parameters: index_map: dict: an index, or a list of indices, by device. Elements that no chunk has yet are 0.
        Returns: DistributedArray of the same mode.
        Source: cupyx.distributed.array.DistributedArray.reshard
        """
        index_map = _boxes.normalize_map(index_map, self.shape)
        if index_map == self.index_map:
            return self
        source, moved = self.change_mode(REPLICA), {}
        for device, indices in index_map.items():
            with Device(device):
                moved[device] = [Chunk(index, source._collect(index)) for index in indices]
        return self._make(moved, REPLICA).change_mode(self.mode)

    # ---- chunks ----

    def _make(self, chunks_map, mode):
        return DistributedArray(self.shape, self.dtype, chunks_map, mode)

    def _chunks(self):
        return [chunk for chunks in self._chunks_map.values() for chunk in chunks]

    def _overlaps(self, index, skip=None):
        """Return what chunks have of an index: (where it lies there, the elements)."""
        for chunk in self._chunks():
            both = None if chunk is skip else _boxes.intersect(index, chunk.index)
            if both is not None:
                yield _boxes.locate(both, index), chunk.array[_boxes.locate(both, chunk.index)]

    def _collect(self, index):
        """The elements of an index, on the current device. Chunks are replicas."""
        made = _make_zeros(_boxes.shape_of(index), self.dtype)
        for where, part in self._overlaps(index):
            made[where] = part
        return made

    def _combine_overlaps(self):
        """The chunks with all that other chunks add to them: replicas."""
        made = {}
        for device, chunks in self._chunks_map.items():
            made[device] = []
            for chunk in chunks:
                with Device(device):
                    total = chunk.array.copy()
                    for where, part in self._overlaps(chunk.index, skip=chunk):
                        total[where] = self.mode.ufunc(total[where], part)
                made[device].append(Chunk(chunk.index, total))
        return self._make(made, REPLICA)

    def _count_once(self, mode):
        """The chunks with the mode's identity in the place of what an earlier chunk has."""
        made, before = {}, []
        for device, chunks in self._chunks_map.items():
            made[device] = []
            for chunk in chunks:
                parts = [both for both in (_boxes.intersect(chunk.index, index) for index in before) if both is not None]
                with Device(device):
                    array = chunk.array.copy() if parts else chunk.array
                    for part in parts:
                        array[_boxes.locate(part, chunk.index)] = mode.identity_of(self.dtype)
                made[device].append(Chunk(chunk.index, array))
                before.append(chunk.index)
        return made

    # ---- functions ----

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        name = ufunc.__name__
        if method != "__call__":
            raise RuntimeError(f"a distributed array does not support {name}.{method}")
        if name == "matmul":
            return _product.matmul(*inputs, **kwargs)
        if name not in _core.ufuncs:
            raise RuntimeError(f"a distributed array does not support {name}")
        return self._map(_core.ufuncs[name], inputs, kwargs)

    def __array_function__(self, function, types, args, kwargs):
        if function.__name__ in _REDUCTIONS and args[:1] == (self,):
            return getattr(self, function.__name__)(*args[1:], **kwargs)
        raise RuntimeError(f"a distributed array does not support {function.__name__}")

    def __array__(self, *args, **kwargs):
        raise RuntimeError("a distributed array does not support this function, nor to be converted by itself; get() fetches it")

    def __getattr__(self, name):
        """Return what arrays have besides: a method that says so when it is called, or the error at once."""
        if name.startswith("_") or not hasattr(ndarray, name):
            raise AttributeError(f"a distributed array has no attribute {name!r}")

        def refuse(*args, **kwargs):
            raise RuntimeError(f"a distributed array does not support {name}")

        return refuse if callable(getattr(ndarray, name)) else refuse()

    def __cupy_override_elementwise_kernel__(self, kernel, *args, **kwargs):
        return self._map(kernel, args, kwargs)

    def _map(self, function, inputs, kwargs):
        """An elementwise function of arrays and numbers, chunk by chunk."""
        if "out" in kwargs or "where" in kwargs:
            raise RuntimeError("a distributed array does not support the arguments out and where")
        operands = _align(inputs)
        made, dtype, several = {}, None, 0
        for device, chunks in self._first(operands)._chunks_map.items():
            made[device] = []
            for i, chunk in enumerate(chunks):
                with Device(device):
                    result = function(*(each._chunks_map[device][i].array if isinstance(each, DistributedArray) else each
                                        for each in operands), **kwargs)
                several = len(result) if isinstance(result, tuple) else 0
                made[device].append((chunk.index, result))
        shape = self._first(operands).shape
        return tuple(_build(shape, made, lambda r, k=k: r[k]) for k in range(several)) if several else \
            _build(shape, made, lambda r: r)

    @staticmethod
    def _first(operands):
        return next(each for each in operands if isinstance(each, DistributedArray))

    def _reduce(self, name, axis, out, keepdims, **kwargs):
        if out is not None:
            raise RuntimeError("a distributed array does not support the argument out")
        mode = _REDUCTIONS[name]
        axes = range(self.ndim) if axis is None else {np.lib.array_utils.normalize_axis_index(each, self.ndim) for each in
                                                      (axis if isinstance(axis, tuple) else (axis,))}
        made = {}
        for device, chunks in self.change_mode(mode)._chunks_map.items():
            with Device(device):
                made[device] = [
                    (_drop(chunk.index, axes, keepdims),
                     getattr(chunk.array, name)(axis=tuple(axes), keepdims=keepdims, **kwargs))
                    for chunk in chunks if chunk.array.size]
        return _build(_drop(self.shape, axes, keepdims, 1), made, lambda r: r, mode)

    def max(self, axis=None, out=None, keepdims=False):
        """The greatest elements, as the mode MAX combines them. Parameters and errors: as of ndarray.max.

        Returns: DistributedArray.
        Source: cupyx.distributed.array.DistributedArray.max
        """
        return self._reduce("max", axis, out, keepdims)

    def min(self, axis=None, out=None, keepdims=False):
        """The least elements, as the mode MIN combines them. Parameters and errors: as of ndarray.min.

        Returns: DistributedArray.
        Source: cupyx.distributed.array.DistributedArray.min
        """
        return self._reduce("min", axis, out, keepdims)

    def sum(self, axis=None, dtype=None, out=None, keepdims=False):
        """Sums, as the mode SUM combines them. Parameters and errors: as of ndarray.sum.

        Returns: DistributedArray.
        Source: cupyx.distributed.array.DistributedArray.sum
        """
        return self._reduce("sum", axis, out, keepdims, dtype=dtype)

    def prod(self, axis=None, dtype=None, out=None, keepdims=False):
        """Products, as the mode PROD combines them. Parameters and errors: as of ndarray.prod.

        Returns: DistributedArray.
        Source: cupyx.distributed.array.DistributedArray.prod
        """
        return self._reduce("prod", axis, out, keepdims, dtype=dtype)


def _make_zeros(shape, dtype):
    import arrayd
    return arrayd.zeros(shape, dtype)


def _drop(parts, axes, keepdims, kept=slice(0, 1, 1)):
    """A shape or an index without the axes, or with `kept` for them."""
    return tuple(kept if i in axes else part for i, part in enumerate(parts) if keepdims or i not in axes)


def _build(shape, made, part, mode=REPLICA):
    """The array of chunks that are (index, result) by device, of which part(result) is the array."""
    chunks = {device: [Chunk(index, part(result)) for index, result in rows] for device, rows in made.items()}
    dtype = next(chunk.array.dtype for rows in chunks.values() for chunk in rows)
    return DistributedArray(shape, dtype, chunks, mode)


def _align(inputs):
    """Operands whose distributed arrays are replicas in the same chunks. RuntimeError for other arrays."""
    if any(isinstance(each, (ndarray, np.ndarray)) and each.ndim for each in inputs):
        raise RuntimeError("Mixing a distributed array with a non-distributed array is not supported: "
                           "distributed_array() makes one of the other")
    first = DistributedArray._first(inputs)
    for each in inputs:
        if isinstance(each, DistributedArray) and each.shape != first.shape:
            raise ValueError(f"operands of a distributed array must have its shape {first.shape}, not {each.shape}")
    return [each.change_mode(REPLICA).reshard(first.index_map) if isinstance(each, DistributedArray) else each
            for each in inputs]


def _take(part, device):
    """A part as an array of its own on a device, which is the current one."""
    return device_put(part, device) if isinstance(part, ShardedArray) else as_array(part).copy()


def distributed_array(array, index_map, mode=REPLICA):
    """Distribute an array.

    Parameters: array: ndarray, sharding.ShardedArray, DistributedArray, or what numpy.array takes. index_map: dict: an index (a slice, a number, or
    a tuple of those), or a list of indices, by number of the device. mode: what it means that chunks overlap: REPLICA,
    MIN, MAX, SUM or PROD.
    Returns: DistributedArray. An element that no index has is 0, or the mode's identity, in what get() gives.
    Raises: IndexError and ValueError for indices that the array does not have, or with a step below 1, and for devices
    that the server does not have.
    Source: cupyx.distributed.array.distributed_array
    """
    if isinstance(array, DistributedArray):
        return array.change_mode(mode).reshard(index_map)
    array = array if isinstance(array, (ndarray, ShardedArray)) else np.asarray(array)
    chunks = {}
    for device, indices in _boxes.normalize_map(index_map, array.shape).items():
        with Device(device):
            chunks[device] = [Chunk(index, _take(array[index], device)) for index in indices]
    return DistributedArray(array.shape, array.dtype, chunks).change_mode(mode)
