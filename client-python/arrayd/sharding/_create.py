"""New arrays over several devices: what device="all" and device=sharding give."""
from .. import _base
from .._array.creation import empty, plan_range
from ._array import ShardedArray, device_put, layout_of_one, reshard, run_parts, split_over
from ._elementwise import check_operand, fill
from ._mesh import NamedSharding, find_layout


def create(target, function, args, kwargs):
    """function(*args, **kwargs) over the devices of a target: "all" or a NamedSharding. Where a part can be made by itself
    its device makes it; else one device makes all, and the others get their parts."""
    if not (isinstance(target, NamedSharding) or (isinstance(target, str) and target == "all")):
        raise ValueError('device must be an arrayd.cuda.Device or its number, "all" or a sharding.NamedSharding, not '
                         f"{target!r}")
    if hasattr(function, "__self__"):
        return _draw(target, function, args, **kwargs)
    make = {"empty": _fill_shape, "zeros": _fill_shape, "full": _fill_value, "arange": _number}.get(function.__name__)
    return device_put(function(*args, **kwargs), target) if make is None else make(target, function, *args, **kwargs)


def _fill_shape(target, function, shape, dtype, order):
    layout = find_layout(target, _base.shape_tuple(shape))
    return ShardedArray(layout, run_parts(layout, lambda place: function(layout.shapes[place], dtype, order)))


def _fill_value(target, function, shape, value, dtype, order):
    if _base.is_scalar(value):
        layout = find_layout(target, _base.shape_tuple(shape))
        return ShardedArray(layout, run_parts(layout, lambda place: function(layout.shapes[place], value, dtype, order)))
    value = check_operand(value if hasattr(value, "dtype") else _base.as_array(value))
    made = _fill_shape(target, empty, shape, dtype or value.dtype, order)
    fill(made, value)
    return made


def _number(target, function, start, stop, step, dtype):
    length, first, delta, dtype = plan_range(start, stop, step, dtype)
    layout = find_layout(target, (length,))
    if dtype == bool:
        return device_put(function(start, stop, step, dtype), target)

    def count(place):
        begin, end = layout.boxes[place][0]
        return _base.iota(end - begin, first + begin * delta, delta, dtype)

    return ShardedArray(layout, run_parts(layout, count))


def _draw(target, method, args, *, size=None, out=None, **kwargs):
    """Random numbers, drawn by rows, device after device: of default_rng they are those that one device would draw."""
    if out is not None:
        raise ValueError("out must be None where device is given")
    shape = () if size is None else _base.shape_tuple(size)
    layout = find_layout(target, shape)
    if not shape:
        return device_put(method(*args, size=shape, **kwargs), target)
    mesh = layout.mesh
    rows = split_over(layout_of_one(mesh, shape), 0, mesh.axis_names)
    return reshard(ShardedArray(rows, run_parts(rows, lambda place: method(*args, size=rows.shapes[place], **kwargs))), layout)
