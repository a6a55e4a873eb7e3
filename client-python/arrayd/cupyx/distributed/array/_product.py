"""Products of distributed matrices.

    a, rows by columns      b                    a's columns and b's rows are cut at all bounds of both.
    ┌────┬──────┐          ┌───┬───┐             Each pair of blocks with one range of k is multiplied on a device that
    │ A0 │  A1  │    @     │B0 │B1 │ k = 0..2    has both, if any does. The results are parts of a sum.
    └────┴──────┘          ├───┼───┤
     k=0..2 2..5           │B2 │B3 │ k = 2..5
                           └───┴───┘
"""
import collections
import itertools

import numpy as np

from ....cuda import Device
from . import _array, _boxes
from ._modes import REPLICA, SUM


def matmul(a, b, out=None, **kwargs):
    """The matrix product of distributed arrays.

    Parameters: a, b: DistributedArray, of one or more dimensions, whose slices have the step 1. Dimensions before the last
    two are the same in both. out, kwargs: none; they are refused.
    Returns: DistributedArray of the mode SUM.
    Raises: RuntimeError for other arrays, out and other options; ValueError for shapes that do not fit.
    Source: cupyx.distributed.array.matmul
    """
    if out is not None or kwargs:
        raise RuntimeError(f"matmul of distributed arrays does not support {', '.join(kwargs) or 'out'}")
    if not all(isinstance(each, _array.DistributedArray) for each in (a, b)):
        raise RuntimeError("Mixing a distributed array with a non-distributed array is not supported: "
                           "distributed_array() makes one of the other")
    a, b = a.change_mode(REPLICA), b.change_mode(REPLICA)
    left, right = _widen(a, 0) if a.ndim == 1 else a, _widen(b, 1) if b.ndim == 1 else b
    if left.ndim < 2 or left.shape[-1] != right.shape[-2] or left.shape[:-2] != right.shape[:-2]:
        raise ValueError(f"matmul: the shapes {a.shape} and {b.shape} do not fit")
    product = _multiply(left, right)
    if b.ndim == 1:
        product = _narrow(product, -1)
    return _narrow(product, -1 if b.ndim == 1 else -2) if a.ndim == 1 else product


def _widen(x, axis):
    """A vector as a matrix of one row (axis 0) or one column."""
    one = slice(0, 1, 1)
    chunks = {device: [_array.Chunk((one, *c.index) if axis == 0 else (*c.index, one), c.array.reshape(_at(c.array, axis)))
                       for c in rows] for device, rows in x._chunks_map.items()}
    return _array.DistributedArray(_at(x, axis), x.dtype, chunks, x.mode)


def _at(x, axis):
    return (1, *x.shape) if axis == 0 else (*x.shape, 1)


def _narrow(x, axis):
    """Without an axis of one element."""
    at = x.ndim + axis

    def drop(parts):
        return parts[:at] + parts[at + 1:]

    chunks = {device: [_array.Chunk(drop(c.index), c.array.reshape(drop(c.array.shape))) for c in rows]
              for device, rows in x._chunks_map.items()}
    return _array.DistributedArray(drop(x.shape), x.dtype, chunks, x.mode)


def _find_blocks(x, cuts):
    """Blocks between cuts: {their bounds: {a device that has it: its elements}}."""
    found = collections.defaultdict(dict)
    for device, chunks in x._chunks_map.items():
        for chunk in chunks:
            ranges = [[cut for cut in each if part.start <= cut[0] and cut[1] <= part.stop]
                      for each, part in zip(cuts, chunk.index)]
            for bounds in itertools.product(*ranges):
                where = _boxes.locate(tuple(slice(*each, 1) for each in bounds), chunk.index)
                found[bounds].setdefault(device, chunk.array[where])
    return found


def _multiply(a, b):
    """The product of arrays that have two dimensions or more."""
    indices = [[chunk.index for chunk in x._chunks() if chunk.array.size] for x in (a, b)]
    batch = [_boxes.cut_axis(indices[0] + indices[1], axis) for axis in range(a.ndim - 2)]
    both = [(*index[:-2], index[-1]) for index in indices[0]] + [index[:-1] for index in indices[1]]
    inner = _boxes.cut_axis(both, a.ndim - 2)
    left = _find_blocks(a, [*batch, _boxes.cut_axis(indices[0], a.ndim - 2), inner])
    right = collections.defaultdict(list)
    for bounds, owners in _find_blocks(b, [*batch, inner, _boxes.cut_axis(indices[1], a.ndim - 1)]).items():
        right[bounds[:-1]].append((bounds[-1], owners))
    sums, load = {}, collections.Counter()
    for bounds, owners in left.items():
        for columns, others in right[(*bounds[:-2], bounds[-1])]:
            device = _choose(owners, others, load)
            with Device(device):
                part = owners[device] @ others.get(device, next(iter(others.values())))
                key = device, (*bounds[:-1], columns)
                sums[key] = sums[key] + part if key in sums else part
    chunks = {device: [] for device in a.devices}
    for (device, bounds), array in sums.items():
        chunks[device].append(_array.Chunk(tuple(slice(*each, 1) for each in bounds), array))
    return _array.DistributedArray((*a.shape[:-1], b.shape[-1]), np.result_type(a.dtype, b.dtype), chunks, SUM)


def _choose(owners, others, load):
    """The device of a block's product: one that has both blocks where there is one, and of those the least busy."""
    device = min(owners.keys() & others.keys() or owners.keys(), key=lambda each: (load[each], each))
    load[device] += 1
    return device
