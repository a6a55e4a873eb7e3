"""Elementwise functions: each device computes its part of the result."""
import numpy as np

from .. import _base
from .._base import ndarray
from ._array import ShardedArray, layout_of_one, make_like, reshard, run_parts, spread
from ._layout import as_slices
from ._move import reach


def map_parts(function, inputs, kwargs):
    """function(*inputs, **kwargs), part by part. Inputs and the arguments out and where are arrays over several devices,
    ndarrays of one, or numbers. The result lies as the largest operand over several devices does, or as out does."""
    kwargs = dict(kwargs)
    out = _list_outputs(kwargs.pop("out", None), function)
    named = {name: kwargs.pop(name) for name in list(kwargs) if isinstance(kwargs[name], (ShardedArray, ndarray))}
    operands = [check_operand(each, function) for each in (*inputs, *named.values())]
    shape = np.broadcast_shapes(*(each.shape for each in operands if hasattr(each, "shape")))
    layout = out[0]._layout if out else _choose(operands, shape)
    if layout.shape != shape:
        raise ValueError(f"non-broadcastable output operand with shape {layout.shape} doesn't match the broadcast shape {shape}")
    aligned = [align(each, layout) for each in operands]
    targets = [reshard(each, layout) for each in out]

    def compute(place):
        given = [each(place) for each in aligned]
        own = {"out": tuple(target._parts[place] for target in targets)} if out else {}
        return function(*given[:len(inputs)], **dict(zip(named, given[len(inputs):])), **kwargs, **own)

    parts = run_parts(layout, compute)
    if out:
        _give_targets(out, targets)
        return out[0] if len(out) == 1 else tuple(out)
    return make_like(layout, parts)


def _list_outputs(out, function):
    out = () if out is None else out if isinstance(out, tuple) else (out,)
    for each in out:
        if not isinstance(each, ShardedArray):
            raise TypeError(f"{function.__name__}: out must be an array over several devices, as an operand is, not "
                            f"{type(each).__name__}")
    return out


def _give_targets(out, targets):
    """Give the results in targets, which lie as the first output does, to the other outputs."""
    for each, target in zip(out, targets):
        if not all(a is b for a, b in zip(each._parts, target._parts)):
            fill(each, target)


def fill(x, value):
    """Write a value, which broadcasts to x, into x's parts."""
    values = align(check_operand(value), x._layout)

    def write(place):
        x._parts[place][...] = values(place)

    run_parts(x._layout, write)


def give(made, out):
    """A result, or out, an array over several devices, with the result's elements."""
    if out is None:
        return made
    if not isinstance(out, ShardedArray):
        raise TypeError(f"out must be an array over several devices, not {type(out).__name__}")
    if out.shape != made.shape:
        raise ValueError(f"output array has shape {out.shape}, the result has {made.shape}")
    fill(out, made)
    return out


def check_operand(value, function=None):
    """A number or an array as it is; TypeError for others."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if value is None or isinstance(value, (ShardedArray, ndarray)) or _base.is_scalar(value):
        return value
    where = f"{function.__name__}: " if function is not None else ""
    raise TypeError(f"{where}unsupported operand: {type(value).__name__}; arrayd does not upload arrays by itself, "
                    "arrayd.asarray(x) does, and arrayd.device_put(x, sharding) over several devices")


def _choose(operands, shape):
    """The layout of the result: that of the operand over several devices that has most elements."""
    lead = max((each for each in operands if isinstance(each, ShardedArray)), key=lambda each: each.size)
    return lead._layout.widen(shape)


def align(operand, layout):
    """A function of a place: the operand's elements for the part of the result that is there."""
    if isinstance(operand, ShardedArray):
        parts = reshard(operand, layout.fit(operand.shape))._parts
        return lambda place: parts[place]
    if isinstance(operand, ndarray):
        own = layout.fit(operand.shape)
        return lambda place: reach(operand[as_slices(own.boxes[place])], layout.mesh._places[place])
    return lambda place: operand


def replicate(a, mesh):
    """An ndarray as an array that each device of a mesh has whole."""
    return spread(a, layout_of_one(mesh, a.shape))
