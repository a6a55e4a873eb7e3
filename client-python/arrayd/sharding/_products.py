"""Products of matrices over several devices.

    a: rows split by R, columns by K       b: rows by K, columns by C        R, K, C: axes of the mesh
    ┌────┬────┐                            ┌────┬────┐
    │ a00│ a01│                            │ b00│ b01│                      each device multiplies what it has; the
    ├────┼────┤            @               ├────┼────┤                      products are added up over K, and the
    │ a10│ a11│                            │ b10│ b11│                      result is split by R and C
    └────┴────┘                            └────┴────┘

An axis of the mesh can serve one of the three. Where both operands ask for one, the larger operand stays as it is, and of
the other one each device gets what it lacks. A large operand comes in panels, which are multiplied by all that the device
has of the other one. While one is multiplied, the next one is copied, and no device has more than two.

                  ┌─┬─┬─┬─┐                   ┌─┬─┬─┬─┐
    a of a device │ │ │ │ │  b, from all      │ │ │ │ │  of the result    panels are columns here; where a is brought,
    ───────────── │ │ │ │ │                   └─┴─┴─┴─┘                   they are rows
                  └─┴─┴─┴─┘

Where both operands have to be brought they come block by block along the inner axis, and products are added up.

    step     0        1        2        3          each device begins elsewhere, so that no two read the same block
    place 0  b0       b1       b2       b3
    place 1  b1       b2       b3       b0         (a is split by rows here, and b by rows, which are the inner axis)
"""
import numpy as np

from .. import _core
from .._base import along, empty, product, result_type
from ._along import find_function
from ._array import ShardedArray, reshard, run_parts
from ._elementwise import check_operand, give, replicate
from ._layout import Layout, cut_evenly
from ._move import all_reduce, collect, copying, list_pieces
from ._shapes import drop_axes, expand_dims


def matmul(a, b, out=None, **kwargs):
    """numpy.matmul, of arrays over several devices and of one."""
    a, b = (check_operand(each, find_function("matmul")) for each in (a, b))
    if not all(getattr(each, "ndim", 0) for each in (a, b)):
        raise ValueError("matmul: an operand has no dimensions; a number times an array is a * x")
    mesh = max((each for each in (a, b) if isinstance(each, ShardedArray)), key=lambda each: each.size)._layout.mesh
    a, b = (each if isinstance(each, ShardedArray) else replicate(each, mesh) for each in (a, b))
    left = expand_dims(a, 0) if a.ndim == 1 else a
    right = expand_dims(b, 1) if b.ndim == 1 else b
    if left.shape[-1] != right.shape[-2]:
        raise ValueError(f"matmul: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature "
                         f"(n?,k),(k,m?)->(n?,m?) (size {right.shape[-2]} is different from {left.shape[-1]})")
    made = _multiply(left, right, mesh, kwargs)
    made = drop_axes(made, (made.ndim - 1,)) if b.ndim == 1 else made
    made = drop_axes(made, (made.ndim - (1 if b.ndim == 1 else 2),)) if a.ndim == 1 else made
    return give(made, out)


class _Splits:
    """The axes of the mesh that have no task yet."""

    def __init__(self, mesh):
        self.mesh, self.used = mesh, set()

    def take(self, *wishes):
        """The first of several (layout, axis) that names free axes of this mesh: its names and cuts. Of none: no split."""
        for layout, axis in wishes:
            names = layout.splits[axis] if layout.mesh == self.mesh else ()
            if names and not self.used.intersection(names):
                self.used.update(names)
                return names, layout.cuts[axis]
        layout, axis = wishes[0]
        return (), (0, layout.shape[axis])


def _multiply(a, b, mesh, kwargs):
    """The product of arrays of two dimensions or more."""
    free = _Splits(mesh)
    batch_shape = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    batch = []
    for i, n in enumerate(batch_shape):
        wishes = [(x._layout, x.ndim - 2 - len(batch_shape) + i) for x in (a, b)]
        whole = [(layout, axis) for layout, axis in wishes if axis >= 0 and layout.shape[axis] == n]
        batch.append(free.take(*whole) if whole else ((), (0, n)))
    rows_first = product(a.shape) >= product(b.shape)
    if rows_first:
        rows = free.take((a._layout, a.ndim - 2))
        columns = free.take((b._layout, b.ndim - 1))
    else:
        columns = free.take((b._layout, b.ndim - 1))
        rows = free.take((a._layout, a.ndim - 2))
    inner = free.take((a._layout, a.ndim - 1), (b._layout, b.ndim - 2))
    whole = Layout(mesh, *zip(*batch, rows, columns))
    layouts = _operand_layout(whole, batch_shape, a, rows, inner), _operand_layout(whole, batch_shape, b, inner, columns)
    if not inner[0]:
        for way in (_Panels((a, b), layouts, whole, kwargs), _Steps((a, b), layouts)):
            if way.pay():
                return ShardedArray(whole, way.run(kwargs))
    left, right = (reshard(x, layout) for x, layout in zip((a, b), layouts))
    multiply = find_function("matmul")
    parts = run_parts(whole, lambda place: multiply(left._parts[place], right._parts[place], **kwargs))
    if inner[0]:
        counts = [shape[-1] > 0 for shape in left._layout.shapes]
        parts = all_reduce(whole, inner[0], parts, _core.ufuncs["add"], counts)
    return ShardedArray(whole, parts)


def _operand_layout(whole, batch_shape, x, first, second):
    """Where an operand must lie: its batch axes as those of the result, but for those of one element."""
    own = Layout(whole.mesh, whole.splits[:-2], whole.cuts[:-2]).fit(x.shape[:-2])
    return Layout(whole.mesh, (*own.splits, first[0], second[0]), (*own.cuts, first[1], second[1]))


# ---- panel by panel ----

_PANELS = 8


class _Panels:
    """A product one of whose operands is brought in panels: ranges of its outer axis, with the whole inner axis."""

    def __init__(self, operands, layouts, whole, kwargs):
        self.operands, self.layouts, self.whole, self.plain = operands, layouts, whole, not kwargs
        inner = operands[0].ndim - 1, operands[1].ndim - 2
        lacking = [i for i in (0, 1) if operands[i]._layout.is_split((inner[i],))]
        self.lacking = lacking[0] if len(lacking) == 1 else None
        self.outer = operands[0].ndim - 2, operands[1].ndim - 1

    def pay(self):
        """Whether one operand alone is to be brought, and its panels are large enough."""
        i = self.lacking
        if i is None or not self.plain or not self.operands[1 - i]._layout.same(self.layouts[1 - i]):
            return False
        shape = self.layouts[i].shapes[0]
        return product(shape) * self.operands[i].itemsize >= _LARGE and min(
            each[self.outer[i]] for each in self.layouts[i].shapes) >= _NARROW * _PANELS

    def run(self, _):
        """The parts of the result. Panels are issued to all devices in turn, each is asked for one step ahead."""
        pieces = list_pieces(self.operands[self.lacking])
        kind = result_type(*(x.dtype for x in self.operands))
        made = run_parts(self.whole, lambda place: empty(self.whole.shapes[place], kind))
        here = [self._fetch(pieces, place, 0) for place in range(len(made))]
        for step in range(_PANELS):
            for place, device in enumerate(self.whole.mesh._places):
                following = self._fetch(pieces, place, step + 1) if step + 1 < _PANELS else None
                with device:
                    self._multiply(made[place], place, step, here[place])
                here[place] = following
        return made

    def _find_range(self, place, step):
        """Where the panel of a step begins and ends, within the whole outer axis. Each device begins with another one."""
        start, stop = self.layouts[self.lacking].boxes[place][self.outer[self.lacking]]
        cuts = cut_evenly(stop - start, _PANELS)
        number = (place + step) % _PANELS
        return start + cuts[number], start + cuts[number + 1]

    def _fetch(self, pieces, place, step):
        i, device = self.lacking, self.whole.mesh._places[place]
        box, axis = self.layouts[i].boxes[place], self.outer[i]
        with device, copying(device):
            return collect(pieces, self.operands[i].dtype, [device],
                           [(*box[:axis], self._find_range(place, step), *box[axis + 1:])])[0]

    def _multiply(self, made, place, step, panel):
        i, own = self.lacking, self.operands[1 - self.lacking]._parts[place]
        start, stop = self._find_range(place, step)
        first = self.layouts[i].boxes[place][self.outer[i]][0]
        axis = made.ndim - 2 + i
        out = made[along(made.ndim, axis, slice(start - first, stop - first))]
        find_function("matmul")(*((panel, own) if i == 0 else (own, panel)), out=out)


# ---- block by block ----

_LARGE = 1 << 26  # bytes that a device lacks of its operands from which they come in blocks
_NARROW = 512     # of the inner axis: products of narrower blocks take longer


class _Steps:
    """A product whose operands come to the devices in blocks along the inner axis, which is cut where either operand is."""

    def __init__(self, operands, layouts):
        self.operands, self.layouts = operands, layouts
        self.inner = operands[0].ndim - 1, operands[1].ndim - 2
        cuts = sorted({cut for x, axis in zip(operands, self.inner) for cut in x._layout.cuts[axis]})
        self.blocks = list(zip(cuts, cuts[1:]))

    def pay(self):
        """Whether blocks are large enough. Sums of float16 and bfloat16 would be rounded after each step."""
        if len(self.blocks) < 2 or any(x.dtype.kind not in "biu" and x.itemsize == 2 for x in self.operands):
            return False
        lacking = sum(product(layout.shapes[0]) * x.itemsize for x, layout, axis in zip(self.operands, self.layouts, self.inner)
                      if x._layout.is_split((axis,)))
        return lacking >= _LARGE and max(stop - start for start, stop in self.blocks) >= _NARROW

    def run(self, kwargs):
        """The parts of the result. Steps are issued to all devices in turn; each block is asked for one step ahead."""
        devices, multiply, add = self.layouts[0].mesh._places, find_function("matmul"), _core.ufuncs["add"]
        pieces = [list_pieces(x) for x in self.operands]
        here, made = [self._fetch(pieces, place, 0) for place in range(len(devices))], [None] * len(devices)
        for step in range(len(self.blocks)):
            for place, device in enumerate(devices):
                following = self._fetch(pieces, place, step + 1) if step + 1 < len(self.blocks) else None
                with device:
                    term = multiply(*here[place], **kwargs)
                    made[place] = term if made[place] is None else add(made[place], term, out=made[place])
                here[place] = following
        return made

    def _fetch(self, pieces, place, step):
        """The blocks of a step on the device of a place, of both operands: views of what lies there, else copies."""
        device = self.layouts[0].mesh._places[place]
        block = self.blocks[(self._find_first(place) + step) % len(self.blocks)]
        found = []
        with device, copying(device):
            for x, layout, axis, given in zip(self.operands, self.layouts, self.inner, pieces):
                box = layout.boxes[place]
                found += collect(given, x.dtype, [device], [(*box[:axis], block, *box[axis + 1:])])
        return found

    def _find_first(self, place):
        """The number of the block with which a device begins: of one operand its own, of two by the sum of their numbers."""
        return sum(self._find_own(x, axis, place) for x, axis in zip(self.operands, self.inner) if x._layout.is_split((axis,)))

    def _find_own(self, x, axis, place):
        if x._layout.mesh != self.layouts[0].mesh:
            return place
        begin = x._layout.boxes[place][axis][0]
        return next((i for i, (start, _) in enumerate(self.blocks) if start == begin), 0)


def dot(a, b, out=None):
    """numpy.dot, of arrays of one or two dimensions, and of numbers"""
    if not all(getattr(each, "ndim", 0) for each in (a, b)):
        return np.multiply(a, b) if out is None else np.multiply(a, b, out=out)
    if b.ndim > 2:
        raise ValueError("dot: over several devices the second operand has one or two dimensions; matmul takes stacks")
    return matmul(a, b, out)


def vdot(a, b):
    """numpy.vdot"""
    a, b = (each.reshape(-1) for each in (a, b))
    if a.shape != b.shape:
        raise ValueError(f"vdot: the operands have {a.size} and {b.size} elements")
    return (np.conjugate(a) * b).sum()


def inner(a, b):
    """numpy.inner, where the second operand has one or two dimensions"""
    if not all(getattr(each, "ndim", 0) for each in (a, b)):
        return np.multiply(a, b)
    return dot(a, b.T if b.ndim > 1 else b)


def outer(a, b, out=None):
    """numpy.outer"""
    column = a.reshape(-1, 1)
    return np.multiply(column, b.reshape(-1)) if out is None else np.multiply(column, b.reshape(-1), out=out)
