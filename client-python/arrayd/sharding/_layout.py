"""The elements of an array that each device of a mesh has: a box, that is a range along every axis.

    mesh {"rows": 2, "columns": 2}, splits (("rows",), ("columns",)), cuts ((0, 3, 5), (0, 2, 4)):

        place 0: [0:3, 0:2]   place 1: [0:3, 2:4]        a place is a device's number in the mesh, counted in row-major
        place 2: [3:5, 0:2]   place 3: [3:5, 2:4]        order; over axes of the mesh that split nothing, boxes repeat
"""
import collections
import functools

import numpy as np


def cut_evenly(n, parts):
    """Where an axis of n elements is cut into parts, the first of which may have one element more."""
    size, more = divmod(n, parts)
    return tuple(i * size + min(i, more) for i in range(parts + 1))


class Layout:
    """A mesh; for each axis of an array the names of the mesh's axes that split it, and where it is cut."""

    def __init__(self, mesh, splits, cuts):
        self.mesh, self.splits, self.cuts = mesh, splits, cuts
        self.shape = tuple(each[-1] for each in cuts)

    @functools.cached_property
    def boxes(self):
        """For each place a range (start, stop) for each axis."""
        sizes = self.mesh.shape
        return tuple(tuple(self._find_range(at, sizes, axis) for axis in range(len(self.shape)))
                     for at in self.mesh._coordinates())

    def _find_range(self, at, sizes, axis):
        block = self._find_block(at, sizes, axis)
        return self.cuts[axis][block:block + 2]

    def _find_block(self, at, sizes, axis):
        """The number, along an axis, of the block that a device with these coordinates in the mesh has."""
        block = 0
        for name in self.splits[axis]:
            block = block * sizes[name] + at[name]
        return block

    def list_owners(self, axis):
        """For each block along an axis, in order, the places that have it."""
        found, sizes = {}, self.mesh.shape
        for place, at in enumerate(self.mesh._coordinates()):
            found.setdefault(self._find_block(at, sizes, axis), []).append(place)
        return [found[block] for block in sorted(found)]

    def list_names(self, axes):
        """The names of the mesh's axes that split these axes."""
        return [name for axis in axes for name in self.splits[axis]]

    @functools.cached_property
    def indices(self):
        return tuple(as_slices(box) for box in self.boxes)

    @functools.cached_property
    def shapes(self):
        return tuple(shape_of(box) for box in self.boxes)

    @functools.cached_property
    def owners(self):
        """One place for each box, in row-major order of the boxes."""
        found = {}
        for place, box in enumerate(self.boxes):
            found.setdefault(box, place)
        return tuple(found[box] for box in sorted(found))

    def is_split(self, axes):
        """Whether one of the axes is in several parts."""
        return any(len(self.cuts[axis]) > 2 for axis in axes)

    def same(self, other):
        """Whether each device has the same elements by both."""
        return self is other or (self.cuts == other.cuts and self.mesh._places == other.mesh._places
                                 and (self.splits == other.splits and self.mesh == other.mesh or self.boxes == other.boxes))

    def groups(self, names):
        """Lists of places that differ only in their place along the named axes of the mesh."""
        found = collections.defaultdict(list)
        for place, at in enumerate(self.mesh._coordinates()):
            found[tuple(i for name, i in at.items() if name not in names)].append(place)
        return list(found.values())

    def replace(self, axis, names, cuts):
        """The layout with another split of one axis."""
        return Layout(self.mesh, (*self.splits[:axis], tuple(names), *self.splits[axis + 1:]),
                      (*self.cuts[:axis], tuple(cuts), *self.cuts[axis + 1:]))

    def join(self, axes, sizes=None):
        """The layout whose axes of these numbers are not split; sizes: their new numbers of elements."""
        made = self
        for i, axis in enumerate(axes):
            made = made.replace(axis, (), (0, self.shape[axis] if sizes is None else sizes[i]))
        return made

    def select(self, axes):
        """The layout whose axes are these of this one; None stands for a new axis of one element."""
        return Layout(self.mesh, tuple(() if axis is None else self.splits[axis] for axis in axes),
                      tuple((0, 1) if axis is None else self.cuts[axis] for axis in axes))

    def fit(self, shape):
        """The layout of an operand of a shape that broadcasts to this layout's: its parts stand beside those here."""
        first = len(self.shape) - len(shape)
        kept = [n == self.shape[first + axis] for axis, n in enumerate(shape)]
        return Layout(self.mesh, tuple(self.splits[first + axis] if keep else () for axis, keep in enumerate(kept)),
                      tuple(self.cuts[first + axis] if keep else (0, 1) for axis, keep in enumerate(kept)))

    def widen(self, shape):
        """The layout of the shape to which an array of this layout is broadcast; new elements are on every device."""
        first = len(shape) - len(self.shape)
        kept = [axis >= first and self.shape[axis - first] == n for axis, n in enumerate(shape)]
        return Layout(self.mesh, tuple(self.splits[axis - first] if keep else () for axis, keep in enumerate(kept)),
                      tuple(self.cuts[axis - first] if keep else (0, n) for axis, (n, keep) in enumerate(zip(shape, kept))))


def as_slices(box):
    return tuple(slice(*each) for each in box)


def shape_of(box):
    return tuple(stop - start for start, stop in box)


def intersect(a, b):
    """The box of what two boxes have in common; None: nothing."""
    both = tuple((max(m[0], n[0]), min(m[1], n[1])) for m, n in zip(a, b))
    return None if any(start >= stop for start, stop in both) else both


def locate(part, box):
    """The index of a box within another one."""
    return tuple(slice(m - start, n - start) for (m, n), (start, _) in zip(part, box))


def count_elements(box):
    return int(np.prod(shape_of(box), dtype=np.int64))
