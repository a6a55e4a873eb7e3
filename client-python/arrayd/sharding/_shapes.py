"""Other shapes of the same elements: parts are viewed where they stay whole, and cut anew where not."""
import operator

import numpy as np

from .. import _base
from .._base import normalize_axes, normalize_axis
from ._array import ShardedArray, layout_of_one, map_whole, reshard, run_parts, split_over
from ._elementwise import check_operand, give, replicate
from ._layout import Layout, cut_evenly
from ._move import collect, list_pieces


def transpose(x, *axes):
    """numpy.transpose"""
    axes = axes[0] if len(axes) == 1 and (axes[0] is None or np.iterable(axes[0])) else axes or None
    order = tuple(range(x.ndim))[::-1] if axes is None else normalize_axes(tuple(axes), x.ndim)
    if len(order) != x.ndim:
        raise ValueError("axes don't match array")
    return map_whole(x, x._layout.select(order), lambda part: part.transpose(order))


def swapaxes(x, axis1, axis2):
    """numpy.swapaxes"""
    order = list(range(x.ndim))
    i, j = normalize_axis(axis1, x.ndim), normalize_axis(axis2, x.ndim)
    order[i], order[j] = j, i
    return transpose(x, order)


def moveaxis(x, source, destination):
    """numpy.moveaxis"""
    source, destination = normalize_axes(source, x.ndim, "source"), normalize_axes(destination, x.ndim, "destination")
    if len(source) != len(destination):
        raise ValueError("`source` and `destination` arguments must have the same number of elements")
    order = [axis for axis in range(x.ndim) if axis not in source]
    for to, axis in sorted(zip(destination, source)):
        order.insert(to, axis)
    return transpose(x, order)


def matrix_transpose(x):
    """numpy.matrix_transpose"""
    if x.ndim < 2:
        raise ValueError(f"Input array must be at least 2-dimensional, but it is {x.ndim}")
    return swapaxes(x, -1, -2)


def rearrange(x, axes):
    """x with these axes, of which None is a new one of one element; those left out have one element."""
    layout = x._layout.select(axes)
    return map_whole_to(x, layout)


def map_whole_to(x, layout):
    """Each part reshaped to what a layout says."""
    return ShardedArray(layout, run_parts(layout, lambda place: x._parts[place].reshape(layout.shapes[place])))


def expand_dims(x, axis):
    """numpy.expand_dims"""
    axis = axis if isinstance(axis, (tuple, list)) else (axis,)
    ndim = x.ndim + len(axis)
    new, kept = normalize_axes(tuple(axis), ndim), iter(range(x.ndim))
    return rearrange(x, [None if i in new else next(kept) for i in range(ndim)])


def squeeze(x, axis=None):
    """numpy.squeeze"""
    axes = [i for i, n in enumerate(x.shape) if n == 1] if axis is None else normalize_axes(axis, x.ndim)
    if any(x.shape[i] != 1 for i in axes):
        raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    return drop_axes(x, axes)


def drop_axes(x, axes):
    """x without axes of one element. Where one was split over several devices, each gets what is left."""
    joined = reshard(x, x._layout.join(axes)) if x._layout.is_split(axes) else x
    return rearrange(joined, [axis for axis in range(x.ndim) if axis not in axes])


def broadcast_to(x, shape):
    """numpy.broadcast_to"""
    shape = _base.shape_tuple(shape)
    if np.broadcast_shapes(x.shape, shape) != shape:
        raise ValueError(f"operands could not be broadcast together with remapped shapes [original->remapped]: {x.shape}  "
                         f"and requested shape {shape}")
    import arrayd
    layout = x._layout.widen(shape)
    local = reshard(x, layout.fit(x.shape))
    return ShardedArray(layout, run_parts(layout, lambda place: arrayd.broadcast_to(local._parts[place], layout.shapes[place])))


# ---- reshape ----

def reshape(x, *shape, order="C", copy=None):
    """numpy.reshape. Where an axis is split in the middle of what is put together or taken apart, the elements are cut anew
    along the first axis."""
    shape = _base.shape_tuple(shape[0] if len(shape) == 1 else shape)
    if order in ("F", "f"):
        return transpose(reshape(transpose(x), shape[::-1]))
    if order not in ("C", "c", "A", "a"):
        raise ValueError(f"order must be one of 'C', 'F' or 'A' (got {order!r})")
    shape = _fill_in(shape, x)
    if x.size == 1:
        x = reshard(x, x._layout.join(range(x.ndim)))
    layout = _find_local(x._layout, shape)
    if layout is not None:
        made = map_whole_to(x, layout)
        return made.copy() if copy else made
    if copy is False:
        raise ValueError("Unable to avoid creating a copy while reshaping.")
    return _cut_anew(x, shape)


def _fill_in(shape, x):
    """A shape with a number in the place of -1."""
    known = _base.product(n for n in shape if n != -1)
    if shape.count(-1) > 1:
        raise ValueError("can only specify one unknown dimension")
    if -1 in shape and known and x.size % known == 0:
        shape = tuple(x.size // known if n == -1 else n for n in shape)
    if -1 in shape or any(n < 0 for n in shape) or _base.product(shape) != x.size:
        raise ValueError(f"cannot reshape array of size {x.size} into shape {shape}")
    return shape


def _find_local(layout, shape):
    """The layout of another shape in which every part has the elements that it has; None: there is none."""
    if 0 in layout.shape:
        return layout_of_one(layout.mesh, shape)
    splits, cuts = [()] * len(shape), [(0, n) for n in shape]
    for old, new in _group_axes(layout.shape, shape):
        split = [axis for axis in old if layout.is_split((axis,))]
        if not split:
            continue
        axis, first = split[0], next((i for i in new if shape[i] > 1), None)
        inner_old = _base.product(layout.shape[i] for i in old if i > axis)
        if len(split) > 1 or first is None or any(layout.shape[i] > 1 for i in old if i < axis):
            return None
        inner_new = _base.product(shape[i] for i in new if i > first)
        if any(cut * inner_old % inner_new for cut in layout.cuts[axis]):
            return None
        splits[first], cuts[first] = layout.splits[axis], tuple(cut * inner_old // inner_new for cut in layout.cuts[axis])
    return Layout(layout.mesh, tuple(splits), tuple(cuts))


def _group_axes(old, new):
    """The axes of two shapes in the least groups that have as many elements each: pairs of lists."""
    groups, i, j = [], 0, 0
    while i < len(old) or j < len(new):
        a, b, m, n = [], [], 1, 1
        while m != n or not (a or b):
            if (m <= n and i < len(old)) or j == len(new):
                m, i = m * old[i], i + 1
                a.append(i - 1)
            else:
                n, j = n * new[j], j + 1
                b.append(j - 1)
        while i < len(old) and old[i] == 1:
            a.append(i)
            i += 1
        while j < len(new) and new[j] == 1:
            b.append(j)
            j += 1
        groups.append((a, b))
    return groups


def _cut_anew(x, shape):
    """x in another shape, cut along its first axis of several elements; by way of one dimension."""
    first = next(i for i, n in enumerate(shape) if n > 1)
    flat = _flatten(x)
    inner = _base.product(shape[first + 1:])
    names = flat._layout.splits[0]
    cuts = cut_evenly(shape[first], flat._layout.mesh._count(names))
    flat = reshard(flat, flat._layout.replace(0, names, [cut * inner for cut in cuts]))
    return map_whole_to(flat, _find_local(flat._layout, shape))


def _flatten(x):
    """x in one dimension, split over all axes of the mesh over which it was."""
    local = _find_local(x._layout, (x.size,))
    if local is None:
        first = next(i for i, n in enumerate(x.shape) if n > 1)
        axes = range(x.ndim)
        x = reshard(x, split_over(x._layout.join(axes), first, x._layout.list_names(axes)))
        local = _find_local(x._layout, (x.size,))
    return map_whole_to(x, local)


def ravel(x, order="C"):
    """numpy.ravel"""
    return reshape(x, (-1,), order="C" if order == "K" else order)


# ---- joining and moving along an axis ----

def flip(x, axis=None):
    """numpy.flip"""
    for each in normalize_axes(axis, x.ndim):
        x = _flip_axis(x, each)
    return x


def _flip_axis(x, axis):
    """Elements along an axis in the other order: what a device is to have is brought there, and turned round."""
    layout, n = x._layout, x.shape[axis]
    boxes = [(*box[:axis], (n - box[axis][1], n - box[axis][0]), *box[axis + 1:]) for box in layout.boxes]
    parts = collect(list_pieces(x), x.dtype, layout.mesh._places, boxes)
    turned = _base.along(x.ndim, axis, slice(None, None, -1))
    return ShardedArray(layout, run_parts(layout, lambda place: parts[place][turned]))


def concatenate(arrays, axis=0, out=None, *, dtype=None, casting="same_kind"):
    """numpy.concatenate, of arrays over several devices and of one. The result lies as the largest one over several does."""
    arrays = [check_operand(each) for each in arrays]
    lead = max((each for each in arrays if isinstance(each, ShardedArray)), key=lambda each: each.size)
    if any(not hasattr(each, "ndim") or each.ndim == 0 for each in arrays):
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    if axis is None:
        arrays, axis = [each.reshape(-1) for each in arrays], 0
        lead = max((each for each in arrays if isinstance(each, ShardedArray)), key=lambda each: each.size)
    axis = normalize_axis(axis, lead.ndim)
    for each in arrays:
        if each.ndim != lead.ndim or any(m != n for i, (m, n) in enumerate(zip(each.shape, lead.shape)) if i != axis):
            raise ValueError("all the input array dimensions except for the concatenation axis must match exactly: the "
                             f"shapes are {', '.join(str(one.shape) for one in arrays)}")
    kind = _base.result_type(*(each.dtype for each in arrays)) if dtype is None else np.dtype(dtype)
    if not all(np.can_cast(each.dtype, kind, casting) for each in arrays):
        raise TypeError(f"Cannot cast arrays to {kind!r} according to the rule {casting!r}")
    n, names = sum(each.shape[axis] for each in arrays), lead._layout.splits[axis]
    layout = lead._layout.replace(axis, names, cut_evenly(n, lead._layout.mesh._count(names)))
    pieces, at = [], 0
    for each in arrays:
        each = each.astype(kind, copy=False)
        whole = each if isinstance(each, ShardedArray) else replicate(each, layout.mesh)
        pieces += list_pieces(whole, (axis, at))
        at += each.shape[axis]
    return give(ShardedArray(layout, collect(pieces, kind, layout.mesh._places, layout.boxes, fresh=True)), out)


def stack(arrays, axis=0, out=None, *, dtype=None, casting="same_kind"):
    """numpy.stack"""
    arrays = [check_operand(each) for each in arrays]
    if len({each.shape for each in arrays}) > 1:
        raise ValueError("all input arrays must have the same shape")
    axis = normalize_axis(axis, arrays[0].ndim + 1)
    new = _base.along(arrays[0].ndim + 1, axis, None)
    return concatenate([each[new] for each in arrays], axis, out, dtype=dtype, casting=casting)


def roll(x, shift, axis=None):
    """numpy.roll, along one axis or of all elements"""
    if axis is None:
        return reshape(roll(ravel(x), shift, 0), x.shape)
    axes = normalize_axes(axis, x.ndim)
    shifts = shift if isinstance(shift, (tuple, list)) else (shift,) * len(axes)
    for by, each in zip(shifts, axes, strict=True):
        n = x.shape[each]
        by = operator.index(by) % n if n else 0
        if by:
            x = concatenate([x[_base.along(x.ndim, each, slice(n - by, None))], x[_base.along(x.ndim, each, slice(0, n - by))]],
                            each)
    return x


def diff(x, n=1, axis=-1):
    """numpy.diff: only the elements next to a cut are moved"""
    axis = normalize_axis(axis, x.ndim)
    for _ in range(operator.index(n)):
        later, before = (x[_base.along(x.ndim, axis, part)] for part in (slice(1, None), slice(None, -1)))
        x = later != before if x.dtype == bool else later - before
    return x
