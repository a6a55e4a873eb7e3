"""Reductions: each device reduces its part, and what they have of a result is combined in one order, so that all devices
that get it have equal bits. Where an axis was split that is reduced, each of its devices gets the whole result."""
import numpy as np

from .. import _base, _core
from .._base import no_value, normalize_axes
from ._array import ShardedArray, make_like, run_parts
from ._elementwise import align, check_operand, give, replicate
from ._move import all_reduce, bring
from ._shapes import broadcast_to, drop_axes

# The function of a part, and the ufunc that combines parts.
_COMBINED = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum", "any": "logical_or", "all": "logical_and",
             "nansum": "add", "nanprod": "multiply", "nanmax": "fmax", "nanmin": "fmin", "count_nonzero": "add"}


def _function(name):
    """arrayd's function of one device."""
    from .._math import reductions
    return getattr(reductions, name)


def _own(x, axis, keepdims):
    axes = normalize_axes(axis, x.ndim, "axis")
    return axes, keepdims is not no_value and bool(keepdims)


def finish(x, axes, keepdims):
    """x, whose axes of these numbers have one element, with or without them."""
    return x if keepdims else drop_axes(x, axes)


def reduce_by(name, x, axis=None, dtype=None, out=None, keepdims=no_value, initial=no_value, where=no_value):
    """A reduction that is combined of reductions of parts."""
    axes, keepdims = _own(x, axis, keepdims)
    function, kwargs = _function(name), {} if dtype is None else {"dtype": dtype}
    masked = where is not no_value and where is not True and where is not None
    mask = align(check_operand(where), x._layout) if masked else None
    given = {} if initial is no_value else {"initial": initial}
    begin = given if name in ("max", "min") else {}
    if name in ("max", "min") and masked and not given:
        raise ValueError(f"reduction operation '{name}imum' does not have an identity, so to use a where mask one has to "
                         "specify 'initial'")
    split = x._layout.is_split(axes)
    counts = [all(shape[axis] for axis in axes) for shape in x._layout.shapes]

    alone = split and not (masked or given) and _is_single(x, axes, name, dtype)

    def reduce_part(place):
        if alone:
            return x._parts[place]
        if split and not counts[place] and any(counts):
            return None
        more = {**begin, **({"where": mask(place)} if masked else {})}
        return function(x._parts[place], axis=axes, keepdims=True, **kwargs, **more)

    layout = x._layout.join(axes, [1] * len(axes))
    parts = run_parts(layout, reduce_part)
    if split:
        combine = _add_to_zero if alone and name == "sum" and x.dtype.kind not in "iu" else _core.ufuncs[_COMBINED[name]]
        parts = all_reduce(layout, x._layout.list_names(axes), parts, combine, [part is not None for part in parts])
    made = finish(make_like(layout, parts), axes, keepdims)
    if given and not begin:
        made = getattr(np, _COMBINED[name])(made, initial)
    return give(made, out)


def _is_single(x, axes, name, dtype):
    """Whether each part has one element along the axes, which is what the part comes to. So nothing is copied to find that."""
    return (name in ("sum", "prod", "max", "min") and dtype is None and (x.dtype.kind not in "biu" or x.dtype.itemsize == 8)
            and all(shape[axis] == 1 for shape in x._layout.shapes for axis in axes))


def _add_to_zero(a, b, out=None):
    """a + b, where the first is a sum of one element: sums of -0.0 are 0.0."""
    add = _core.ufuncs["add"]
    return add(add(a, 0), b, out=out)


def reduce_whole(name, x, axis=None, **kwargs):
    """A function that reduces along axes and cannot be combined of parts: the axes are brought together."""
    from ._along import map_along
    axes, keepdims = _own(x, axis, kwargs.pop("keepdims", no_value))
    out = kwargs.pop("out", None)
    import arrayd
    function = getattr(arrayd, name)
    one = axes[0] if len(axes) == 1 else axes
    return give(finish(map_along(x, axes, lambda part: function(part, axis=one, keepdims=True, **kwargs)), axes, keepdims), out)


# ---- means ----

def _accumulator(x, dtype):
    """The type in which a sum of elements is formed, and that of the mean."""
    if dtype is not None:
        return np.dtype(dtype), np.dtype(dtype)
    if x.dtype.kind in "biu":
        return np.dtype(float), np.dtype(float)
    return (np.dtype(np.float32) if x.dtype.itemsize == 2 else x.dtype), x.dtype


def _count(x, axes, where):
    """How many elements are summed: a number, or an array where a mask says which."""
    if where is no_value or where is True or where is None:
        return _base.product(x.shape[axis] for axis in axes)
    full = np.broadcast_shapes(where.shape, x.shape)
    mask = where if where.shape == full and isinstance(where, ShardedArray) else broadcast_to(_shard(where, x), full)
    return reduce_by("count_nonzero", mask, axes, keepdims=True)


def _shard(where, x):
    return where if isinstance(where, ShardedArray) else replicate(where, x._layout.mesh)


def mean(x, axis=None, dtype=None, out=None, keepdims=no_value, *, where=no_value):
    """numpy.mean"""
    axes, keepdims = _own(x, axis, keepdims)
    wide, kind = _accumulator(x, dtype)
    total = reduce_by("sum", x, axes, wide, keepdims=True, where=where)
    return give(finish((total / _count(x, axes, where)).astype(kind), axes, keepdims), out)


def var(x, axis=None, dtype=None, out=None, ddof=0, keepdims=no_value, *, where=no_value, mean=no_value,
        correction=no_value):
    """numpy.var"""
    axes, keepdims = _own(x, axis, keepdims)
    ddof = ddof if correction is no_value else correction
    wide, kind = _accumulator(x, dtype)
    average = _mean_of(x, axes, wide, where) if mean is no_value else mean
    apart = x.astype(wide) - average
    squares = apart.real * apart.real + apart.imag * apart.imag if apart.dtype.kind == "c" else apart * apart
    total = reduce_by("sum", squares, axes, keepdims=True, where=where)
    count = _count(x, axes, where)
    rest = max(count - ddof, 0) if isinstance(count, int) else np.maximum(count - ddof, 0)
    return give(finish((total / rest).astype(np.empty(0, kind).real.dtype), axes, keepdims), out)


def _mean_of(x, axes, wide, where):
    return mean(x, axes, wide, keepdims=True, where=where)


def std(x, *args, out=None, **kwargs):
    """numpy.std"""
    return give(np.sqrt(var(x, *args, **kwargs)), out)


def ptp(x, axis=None, out=None, keepdims=no_value):
    """numpy.ptp"""
    return give(reduce_by("max", x, axis, keepdims=keepdims) - reduce_by("min", x, axis, keepdims=keepdims), out)


# ---- positions ----

def arg_extreme(name, x, axis=None, out=None, *, keepdims=no_value):
    """argmax, argmin and those that pass over NaN: each device finds the position in its part, and of the parts' values
    the first extreme one counts. Positions of all elements are those in row-major order."""
    axes, keepdims = _own(x, axis, keepdims)
    if not _base.product(x.shape[axis] for axis in axes):
        raise ValueError(f"attempt to get {name} of an empty sequence")
    flat = axis is None and x.ndim > 1
    function, extreme = _function(name), _function(name.replace("arg", ""))
    layout = x._layout.join(axes, [1] * len(axes))
    counts = [all(shape[axis] for axis in axes) for shape in x._layout.shapes]

    def find(place):
        if not counts[place]:
            return None
        part = x._parts[place]
        shape = [1 if axis in axes else n for axis, n in enumerate(part.shape)]
        at = function(part, axis=None if axis is None else axes[0]).reshape(shape)
        value = extreme(part, axis=axes, keepdims=True)
        return value, _find_flat(at, x.shape, x._layout.boxes[place]) if flat else at + x._layout.boxes[place][axes[0]][0] \
            if axes else at

    found = run_parts(layout, find)
    made = [None] * len(found)
    for group in layout.groups(x._layout.list_names(axes)):
        given = [found[place] for place in group if counts[place]]
        for place in group:
            with layout.mesh._places[place]:
                made[place] = _first_extreme(function, given, layout.mesh._places[place], layout.shapes[place])
    return give(finish(make_like(layout, made), axes, keepdims), out)


def _find_flat(at, shape, box):
    """Row-major positions in the whole array of row-major positions in a box."""
    flat, inner = None, 1
    for axis in range(len(shape) - 1, -1, -1):
        start, stop = box[axis]
        at, place = at // (stop - start), at % (stop - start)
        term = (place + start) * inner
        flat = term if flat is None else flat + term
        inner *= shape[axis]
    return flat


def _first_extreme(function, given, device, shape):
    """Of (values, positions) the position of the extreme value; of equal ones the least."""
    if not given:
        return _base.zeros(shape, np.int64)
    if len(given) == 1:
        return bring(given[0][1], device)
    import arrayd
    values = arrayd.stack([bring(value, device) for value, _ in given])
    places = arrayd.stack([bring(place, device) for _, place in given])
    order = arrayd.argsort(places, axis=0)
    values, places = (arrayd.take_along_axis(each, order, axis=0) for each in (values, places))
    return arrayd.take_along_axis(places, arrayd.expand_dims(function(values, axis=0), 0), axis=0)[0]
