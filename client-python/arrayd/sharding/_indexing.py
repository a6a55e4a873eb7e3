"""Elements by index. Slices leave each element where it is; so the parts may become uneven, and the result is a view of
them. An int leaves an axis out: where that was split, each of its devices gets the result. Arrays of indices come into
this process, which asks every device for the elements that it has; masks stay where they are, and only their counts come.
"""
import operator

import numpy as np

from .. import _base
from .._base import ndarray
from ._array import ShardedArray, reshard, run_parts, split_over
from ._elementwise import align, check_operand, fill, give, replicate
from ._layout import Layout, intersect, locate
from ._move import collect, list_pieces, reach
from ._shapes import flip, moveaxis, ravel, rearrange, reshape


def get_item(x, key):
    """x[key]"""
    entries = _parse(x, key)
    if any(_is_array(each) for each in entries):
        return _get_by_arrays(x, entries)
    sub, ints, turned = _cut(x, entries)
    for axis in turned:
        sub = flip(sub, axis)
    for axis in ints:
        if sub._layout.is_split((axis,)):
            sub = reshard(sub, sub._layout.join((axis,)), fresh=True)
    kept, axes = [axis for axis in range(x.ndim) if axis not in ints], []
    at = iter(kept)
    for each in entries:
        if each is None:
            axes.append(None)
        elif isinstance(each, slice):
            axes.append(next(at))
    return sub if axes == list(range(x.ndim)) else rearrange(sub, axes)


def _is_array(each):
    return isinstance(each, (np.ndarray, ShardedArray, ndarray))


def _parse(x, key):
    """The key as a list of ints, slices, None and arrays that takes all axes."""
    entries = list(key) if isinstance(key, tuple) else [key]
    entries = [np.asarray(each) if isinstance(each, (list, bool, np.bool_)) else each for each in entries]
    entries = [each.astype(np.intp) if isinstance(each, np.ndarray) and not each.size else each for each in entries]
    for each in entries:
        if _is_array(each) and each.dtype.kind not in "biu":
            raise IndexError("arrays used as indices must be of integer (or boolean) type")
        if not (each is None or each is Ellipsis or isinstance(each, slice) or _is_array(each) or hasattr(each, "__index__")):
            raise IndexError("only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean "
                             "arrays are valid indices")
    taken = sum(each.ndim if _is_array(each) and each.dtype.kind == "b" else each is not None and each is not Ellipsis
                for each in entries)
    if taken > x.ndim:
        raise IndexError(f"too many indices for array: array is {x.ndim}-dimensional, but {taken} were indexed")
    dots = [i for i, each in enumerate(entries) if each is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    where = dots[0] if dots else len(entries)
    entries[where:where + 1] = [slice(None)] * (x.ndim - taken)
    return [each if each is None or isinstance(each, slice) or _is_array(each) else operator.index(each) for each in entries]


def _cut(x, entries):
    """The elements of slices and ints, with all axes: the array of views, the axes of ints, and those whose elements are in
    the other order, as their step is below 0."""
    layout, ints, turned, steps = x._layout, [], [], []
    for axis, each in enumerate(each for each in entries if each is not None):
        n = x.shape[axis]
        if isinstance(each, slice):
            chosen = range(*each.indices(n))
            if chosen.step < 0:
                turned.append(axis)
                chosen = chosen[::-1]
        else:
            if not -n <= each < n:
                raise IndexError(f"index {each} is out of bounds for axis {axis} with size {n}")
            chosen = range(each % n, each % n + 1)
            ints.append(axis)
        steps.append(chosen)
        layout = layout.replace(axis, layout.splits[axis], [_count_before(chosen, cut) for cut in layout.cuts[axis]])

    def view(place):
        index = []
        for chosen, own, (first, last) in zip(steps, x._layout.boxes[place], layout.boxes[place]):
            if first == last:
                index.append(slice(0, 0))
            else:
                index.append(slice(chosen[first] - own[0], chosen[last - 1] - own[0] + 1, chosen.step))
        return x._parts[place][tuple(index)]

    return ShardedArray(layout, run_parts(layout, view)), ints, turned


def _count_before(chosen, cut):
    """How many of an ascending range are below a number."""
    return min(len(chosen), max(0, -(-(cut - chosen.start) // chosen.step)))


# ---- by arrays ----

def _get_by_arrays(x, entries):
    """Ints and slices first, then the arrays, each along its axis or several together along the first of theirs."""
    if len(entries) == 1 and entries[0].dtype.kind == "b" and entries[0].ndim == x.ndim:
        return compress_all(x, entries[0])
    arrays = [each for each in entries if _is_array(each)]
    apart = _are_apart(entries)
    if any(each.dtype.kind == "b" and each.ndim == 0 for each in arrays):
        raise IndexError("a boolean of no dimensions is no index of an array over several devices")
    sub = get_item(x, tuple(part for each in entries
                            for part in ([slice(None)] * _width(each) if _is_array(each) else [each])))
    firsts = _find_firsts(entries)
    axes = [first + i for each, first in zip(arrays, firsts) for i in range(_width(each))]
    indices = [index for each, first in zip(arrays, firsts) for index in _as_indices(each, sub, first)]
    made = _take_along(sub, indices, axes)
    if apart and axes[0]:
        ndim = np.broadcast_shapes(*(index.shape for index in indices))
        made = moveaxis(made, tuple(range(axes[0], axes[0] + len(ndim))), tuple(range(len(ndim))))
    return made


def _width(each):
    return each.ndim if each.dtype.kind == "b" else 1


def _are_apart(entries):
    """Whether slices or new axes stand between ints and arrays: then the result's axes of the arrays come first."""
    places = [i for i, each in enumerate(entries) if each is not None and not isinstance(each, slice)]
    return places[-1] - places[0] >= len(places)


def _find_firsts(entries):
    """The first axis of each array, once ints have gone."""
    at, firsts = 0, []
    for each in entries:
        if _is_array(each):
            firsts.append(at)
            at += _width(each)
        else:
            at += each is None or isinstance(each, slice)
    return firsts


def _as_indices(each, x, first):
    """An index array as arrays of ints: a mask as the places of what is true, which is waited for."""
    if each.dtype.kind != "b":
        return [each]
    for i, n in enumerate(each.shape):
        if n != x.shape[first + i]:
            raise IndexError(f"boolean index did not match indexed array along axis {first + i}; size of axis is "
                             f"{x.shape[first + i]} but size of corresponding boolean axis is {n}")
    host = each if isinstance(each, np.ndarray) else each.get()
    return list(np.nonzero(host))


def _take_along(x, indices, axes):
    """The elements at several indices together along as many axes."""
    if len(indices) == 1:
        return take(x, indices[0], axes[0])
    hosts = [_check(each, x.shape[axis], axis) for each, axis in zip(indices, axes)]
    sizes = [x.shape[axis] for axis in axes]
    if axes != list(range(axes[0], axes[0] + len(axes))):
        raise IndexError("arrays of indices over several devices must stand side by side; take(x, indices, axis) takes one axis")
    flat = np.ravel_multi_index(np.broadcast_arrays(*hosts), sizes) if all(sizes) else np.zeros(
        np.broadcast_shapes(*(host.shape for host in hosts)), np.intp)
    merged = reshape(x, (*x.shape[:axes[0]], _base.product(sizes), *x.shape[axes[0] + len(axes):]))
    return take(merged, flat, axes[0])


def _check(index, n, axis):
    """Indices of this process, from 0 on."""
    host = np.asarray(index if isinstance(index, np.ndarray) else index.get() if hasattr(index, "get") else index)
    if host.dtype.kind not in "iu":
        host = host.astype(np.intp, casting="unsafe" if not host.size else "same_kind")
    wrong = host[(host < -n) | (host >= n)]
    if wrong.size:
        raise IndexError(f"index {wrong.flat[0]} is out of bounds for axis {axis} with size {n}")
    return np.where(host < 0, host + n, host).astype(np.intp)


def take(a, indices, axis=None, out=None, mode="raise"):
    """numpy.take. Indices over several devices say where the result lies; other ones are split along their longest axis
    over those that the axis was split over."""
    if mode != "raise":
        raise ValueError(f"mode must be 'raise' for an array over several devices, not {mode!r}")
    x = ravel(a) if axis is None else a
    axis = 0 if axis is None else _base.normalize_axis(axis, x.ndim)
    host = _check(indices, x.shape[axis], axis)
    if not host.ndim:
        return give(get_item(x, (slice(None),) * axis + (int(host),)), out)
    layout = _lay_taken(x, indices, host, axis)
    dims = range(axis, axis + host.ndim)

    def gather(place):
        """Put together on the place's device the elements that each part has."""
        device, box = layout.mesh._places[place], layout.boxes[place]
        wanted = host[tuple(slice(*box[i]) for i in dims)]
        made = _base.empty((*layout.shapes[place][:axis], wanted.size, *layout.shapes[place][axis + host.ndim:]), x.dtype)
        for start, stop, part in _find_parts(x, axis, box, host.ndim, place, device):
            there = np.flatnonzero((wanted.reshape(-1) >= start) & (wanted.reshape(-1) < stop))
            if len(there) and part.size:
                with part.device:
                    found = part.take(wanted.reshape(-1)[there] - start, axis=axis)
                made[_base.along(made.ndim, axis, there)] = reach(found, device)
        return made.reshape(layout.shapes[place])

    return give(ShardedArray(layout, run_parts(layout, gather)), out)


def _lay_taken(x, indices, host, axis):
    """Where the elements at indices come to lie."""
    if isinstance(indices, ShardedArray):
        own = indices._layout
        if own.mesh == x._layout.mesh:
            free = {name for names in own.splits for name in names}
            others = [(names, cuts) if not free.intersection(names) else ((), (0, cuts[-1]))
                      for names, cuts in zip(x._layout.splits, x._layout.cuts)]
            each = [*others[:axis], *zip(own.splits, own.cuts), *others[axis + 1:]]
            return Layout(own.mesh, *zip(*each))
    layout = x._layout
    names = layout.splits[axis]
    made = Layout(layout.mesh, (*layout.splits[:axis], *[()] * host.ndim, *layout.splits[axis + 1:]),
                  (*layout.cuts[:axis], *((0, n) for n in host.shape), *layout.cuts[axis + 1:]))
    return split_over(made, axis + host.shape.index(max(host.shape)), names) if names else made


def _find_parts(x, axis, box, ndim, place, device):
    """Of each block along an axis, with the other axes as in a box of the result: (start, stop, part)."""
    other = [*box[:axis], None, *box[axis + ndim:]]
    found = {}
    for piece in list_pieces(x):
        wanted = tuple(piece.box[i] if each is None else each for i, each in enumerate(other))
        both = intersect(wanted, piece.box)
        if both is not None:
            found.setdefault(piece.box[axis], []).append((both, piece))
    for (start, stop), parts in sorted(found.items(), key=lambda item: item[0]):
        wanted = tuple((start, stop) if each is None else each for each in other)
        if len(parts) == 1 and parts[0][0] == wanted:
            both, piece = parts[0]
            yield start, stop, piece.on(device, place)[locate(wanted, piece.box)]
        else:
            yield start, stop, collect([piece for _, piece in parts], x.dtype, [device], [wanted])[0]


def compress_all(x, mask):
    """The elements at which a mask of x's shape is true, in one dimension, in row-major order. Waits for their counts."""
    if mask.shape != x.shape:
        axis = next((i for i, (m, n) in enumerate(zip(mask.shape, x.shape)) if m != n), 0)
        raise IndexError("boolean index did not match indexed array along axis "
                         f"{axis}; size of axis is {x.shape[axis]} but size of corresponding boolean axis is {mask.shape[axis]}")
    import arrayd
    flat = reshape(x, (-1,))
    if isinstance(mask, np.ndarray):
        mask = arrayd.asarray(mask)
    mask = mask if isinstance(mask, ShardedArray) else replicate(mask, x._layout.mesh)
    chosen = reshard(reshape(mask, (-1,)), flat._layout)
    parts = run_parts(flat._layout, lambda place: flat._parts[place][chosen._parts[place]])
    sizes = {box[0]: len(part) for box, part in zip(flat._layout.boxes, parts) if box[0][0] < box[0][1]}
    cuts = flat._layout.cuts[0]
    found = np.concatenate([[0], np.cumsum([sizes.get(pair, 0) for pair in zip(cuts, cuts[1:])])])
    return ShardedArray(flat._layout.replace(0, flat._layout.splits[0], tuple(map(int, found))), parts)


def compress(condition, a, axis=None, out=None):
    """numpy.compress"""
    x = ravel(a) if axis is None else a
    axis = 0 if axis is None else _base.normalize_axis(axis, x.ndim)
    host = condition.get() if hasattr(condition, "get") else np.asarray(condition)
    if host.ndim != 1:
        raise ValueError("condition must be a 1-d array")
    return give(take(x, np.flatnonzero(host), axis), out)


# ---- writing ----

def set_item(x, key, value):
    """x[key] = value, where the key has ints and slices, or is a mask of x's shape and the value a number."""
    entries = _parse(x, key)
    value = check_operand(value)
    if any(_is_array(each) for each in entries):
        return _set_by_mask(x, entries, value)
    sub, ints, turned = _cut(x, entries)
    if hasattr(value, "ndim") and value.ndim:
        value = _fit_value(value, entries, ints, sub)
        for axis in turned:
            at = value.ndim - sub.ndim + axis
            if at >= 0 and value.shape[at] > 1:
                value = value[_base.along(value.ndim, at, slice(None, None, -1))]
    fill(sub, value)


def _fit_value(value, entries, ints, sub):
    """A value that broadcasts to x[key], with the axes that sub has: new ones go, and those of ints come."""
    shape, at = [], 0
    for each in entries:
        if each is None:
            shape.append(1)
            continue
        if isinstance(each, slice):
            shape.append(sub.shape[at])
        at += 1
    if any(m not in (1, n) for m, n in zip(value.shape[::-1], shape[::-1])) or any(
            n != 1 for n in value.shape[:max(0, value.ndim - len(shape))]):
        raise ValueError(f"could not broadcast input array from shape {value.shape} into shape {tuple(shape)}")
    while value.ndim > len(shape):
        value = value[0]
    import arrayd
    if value.ndim < len(shape):
        value = arrayd.expand_dims(value, tuple(range(len(shape) - value.ndim)))
    news = [i for i, each in enumerate(each for each in entries if each is None or isinstance(each, slice)) if each is None]
    if news:
        value = value.squeeze(tuple(news))
    return arrayd.expand_dims(value, tuple(ints)) if ints else value


def _set_by_mask(x, entries, value):
    if len(entries) != 1 or entries[0].dtype.kind != "b" or entries[0].shape != x.shape:
        raise TypeError("x[key] = value: over several devices the key has ints and slices, or is a boolean array of x's shape; "
                        "where(condition, a, b) makes a new array")
    if hasattr(value, "ndim") and value.ndim:
        raise TypeError("x[mask] = value: over several devices the value must be a number; where(mask, values, x) takes an array")
    import arrayd
    mask = entries[0] if not isinstance(entries[0], np.ndarray) else arrayd.asarray(entries[0])
    chosen = align(mask, x._layout)

    def write(place):
        if x._parts[place].size:
            own = chosen(place)
            x._parts[place][own if own.device.id == x._layout.mesh._places[place].id else own.copy()] = value

    run_parts(x._layout, write)
