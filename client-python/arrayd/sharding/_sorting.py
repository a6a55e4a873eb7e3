"""Sorting over devices.

    device 0   5 1 9 3 ─ sort ▶ 1 3│5 9 ──▶ 1 3      ─ merge ▶ 1 2 3          An axis alone that is split is sorted by
    device 1   4 8 2 7 ─ sort ▶ 2│4 7 8 ──▶   2                               samples: each device sorts its part, gets one
                                   │          5 9    ─ merge ▶ 4 5 7 8 9      section of each of the others, and merges
                                   └────────▶ 4 7 8                           those
"""
import numpy as np

from .. import _base
from .._base import call, normalize_axis
from .._math.sorting import check_sort
from ._along import find_function, map_along
from ._array import ShardedArray, reshard, run_parts
from ._layout import cut_evenly
from ._move import bring, copying, reach, take_turns

_SAMPLES = 64        # of each part, for each section
_LARGE = 1 << 26     # bytes of a part from which sections come in pieces: one is merged while the next one is copied
_PIECES = 4
_UNEVEN = 1.25       # times the mean size up to which a part is sorted where it lies
_NARROW = 1 << 32    # elements up to which their places have four bytes


def sort(a, axis=-1, kind=None, order=None, *, stable=None):
    """numpy.sort. One axis alone that is split is sorted by samples: see sort_split."""
    check_sort(kind, order, stable)
    a, axis = _flatten(a, axis)
    if a.ndim == 1 and a._layout.is_split((0,)):
        return sort_split(a)
    return map_along(a, (axis,), lambda part: find_function("sort")(part, axis=axis))


def argsort(a, axis=-1, kind=None, order=None, *, stable=None):
    """numpy.argsort, which is always stable. One axis alone that is split is sorted by samples."""
    check_sort(kind, order, stable)
    a, axis = _flatten(a, axis)
    if a.ndim == 1 and a._layout.is_split((0,)):
        return sort_split(a, places=True)
    return map_along(a, (axis,), lambda part: find_function("argsort")(part, axis=axis))


def _flatten(a, axis):
    from ._shapes import ravel
    return (ravel(a), 0) if axis is None else (a, normalize_axis(axis, a.ndim))


def sort_split(x, places=False):
    """A 1-d array, sorted over its devices; places: where its elements were. Each device sorts its part. Between samples of
    them all the parts are cut into sections, so that device k merges section k of each. Equal elements may be divided, so
    sections stay even however many equal elements there are. Waits once, for the samples, and once for where they fall."""
    x = _even(x)
    layout = x._layout
    blocks = layout.list_owners(0)
    owners = [group[0] for group in blocks]
    ordered = run_parts(layout, lambda place: _sort_part(x._parts[place], layout.boxes[place][0][0], places)
                        if place in owners else None)
    pieces = _PIECES if x.nbytes >= _LARGE * len(blocks) and len(blocks) > 1 else 1
    columns = [ordered[place] for place in owners]
    cuts = _find_cuts([column[0] for column in columns], [layout.mesh._places[place] for place in owners],
                      len(blocks) * pieces)
    bounds = np.concatenate([[0], np.cumsum(np.diff(cuts[:, ::pieces], axis=1).sum(axis=0))])
    sections = _cut_sections(columns, cuts, [layout.mesh._places[place] for place in owners])
    if places and len(blocks) > 1 and x.size <= _NARROW:
        _narrow_places(sections, blocks, layout.mesh._places)
    kinds = [each.dtype for each in columns[0]]
    merging = [_Merging(sections[block * pieces:(block + 1) * pieces], kinds, layout.mesh._places[place])
               for place, block in sorted((place, block) for block, group in enumerate(blocks) for place in group)]
    for _ in range(pieces):
        for each in merging:
            each.step()
    made = [each.whole[-1] for each in merging]
    return ShardedArray(layout.replace(0, layout.splits[0], tuple(map(int, bounds))), made)


def _even(x):
    """x, whose parts are made even where the largest one would take much longer than the others."""
    cuts, layout = x._layout.cuts[0], x._layout
    even = cut_evenly(x.size, len(cuts) - 1)
    if max(np.diff(cuts)) <= _UNEVEN * (even[1] - even[0]):
        return x
    return reshard(x, layout.replace(0, layout.splits[0], even))


def _sort_part(part, first, places):
    """The columns that are merged: the elements in order and, if asked for, their places in the whole array."""
    return call("sort_places", (part,), (first,)) if places else (find_function("sort")(part),)


# ---- sections ----

class _Section:
    """A section of one part, which one place merges. device: where it lies. columns: its elements and their places. sent: the
    places as those devices get them that it does not lie on."""

    __slots__ = ("device", "columns", "sent")

    def __init__(self, device, columns):
        self.device, self.columns, self.sent = device, columns, columns[-1]

    def bring(self, device):
        """The columns on the current device, which is `device`: views of what lies there, else copies."""
        if self.sent is self.columns[-1] or self.device.id == device.id:
            return tuple(bring(each, device) for each in self.columns)
        return *(bring(each, device) for each in self.columns[:-1]), reach(self.sent, device).astype(np.int64)


def _cut_sections(columns, cuts, devices):
    """For each cut the sections that have elements, in the order of parts."""
    return [[_Section(device, tuple(each[start:stop] for each in column))
             for column, device, start, stop in zip(columns, devices, cuts[:, k], cuts[:, k + 1]) if start < stop]
            for k in range(cuts.shape[1] - 1)]


def _narrow_places(sections, blocks, places):
    """Let devices send places of four bytes. This is issued ahead of all copies, for which no device then waits."""
    pieces = len(sections) // len(blocks)
    for k, row in enumerate(sections):
        readers = {places[place].id for place in blocks[k // pieces]}
        for section in row:
            if readers != {section.device.id}:
                with section.device:
                    section.sent = section.columns[-1].astype(np.uint32)


# ---- merging ----

class _Merging:
    """Sections that a device gets of each part, and merges. Those of other devices are copied beside. All devices ask for all
    copies before the first merge."""

    def __init__(self, pieces, kinds, device):
        self.device, self.brought, self.first = device, [], 0
        with device:
            for sections in pieces:
                brought = [None] * len(sections)
                with copying(device, len(pieces) > 1):
                    for i in take_turns(device, [section.device for section in sections]):
                        brought[i] = sections[i].bring(device)
                self.brought.append(brought)
            self.whole = [_base.empty(sum(len(section.columns[0]) for sections in pieces for section in sections), kind)
                          for kind in kinds]

    def step(self):
        """Merge the sections of a piece."""
        sections = self.brought.pop(0)
        stop = self.first + sum(len(section[0]) for section in sections)
        with self.device:
            _merge_all(sections, [each[self.first:stop] for each in self.whole])
        self.first = stop


def _merge_all(sections, outs):
    """Neighbours are merged, until there are two: equal elements keep their order."""
    while len(sections) > 2:
        ends = range(0, len(sections) - 1, 2)
        sections = [_merge(sections[i], sections[i + 1]) for i in ends] + sections[2 * len(ends):]
    if len(sections) == 2:
        _merge(*sections, outs)
    for section in sections[:len(sections) == 1]:
        for out, each in zip(outs, section):
            out[...] = each


def _merge(a, b, outs=None):
    if len(a) == 1:
        return (call("merge", (a[0], b[0]), (), outs and outs[0]),)
    return call("merge_pairs", (a[0], b[0], a[1], b[1]), (), outs and tuple(outs), a[0].dtype)


# ---- cutting ----

def _find_cuts(ordered, devices, count):
    """Where each sorted part is cut, so that the sections of one number have about as many elements each: int array of
    shape (number of parts, count + 1)."""
    sizes = np.array([len(part) for part in ordered])
    samples = []
    for part, device in zip(ordered, devices):
        with device:
            samples.append(part[::max(1, -(-len(part) // (_SAMPLES * count)))].copy())
    host = np.sort(np.concatenate([sample.get() for sample in samples]))
    cuts = np.zeros((len(ordered), count + 1), np.int64)
    cuts[:, -1] = sizes
    if not len(host):
        return cuts
    less, most = _count_below(ordered, devices, host[[len(host) * k // count for k in range(1, count)]])
    for k in range(1, count):
        wanted = int(sizes.sum()) * k // count - int(less[:, k - 1].sum())
        equal = most[:, k - 1] - less[:, k - 1]
        taken = np.clip(wanted - (np.cumsum(equal) - equal), 0, equal)
        cuts[:, k] = np.maximum(less[:, k - 1] + taken, cuts[:, k - 1])
    return cuts


def _count_below(ordered, devices, pivots):
    """For each part how many elements come before each pivot, and how many before or with it."""
    found = []
    for part, device in zip(ordered, devices):
        with device:
            pivot = find_function("asarray")(pivots)
            found.append([find_function("searchsorted")(part, pivot, side=side) for side in ("left", "right")])
    counts = np.array([[each.get() for each in pair] for pair in found]).reshape(len(ordered), 2, len(pivots))
    return counts[:, 0], counts[:, 1]
