"""Products of matrices over several devices.

    a: rows split by R, columns by K       b: rows by K, columns by C        R, K, C: axes of the mesh
    ┌────┬────┐                            ┌────┬────┐
    │ a00│ a01│                            │ b00│ b01│                      each device multiplies what it has; the
    ├────┼────┤            @               ├────┼────┤                      products are added up over K, and the
    │ a10│ a11│                            │ b10│ b11│                      result is split by R and C
    └────┴────┘                            └────┴────┘

An axis of the mesh can serve one of the three. Where both operands ask for one, the larger operand stays as it is, and of
the other one each device gets what it lacks. Large operands come block by block along the inner axis: while one block is
multiplied, the next one is copied, and no device has more than two.

    step     0        1        2        3          each device begins elsewhere, so that no two read the same block
    place 0  b0       b1       b2       b3
    place 1  b1       b2       b3       b0         (a is split by rows here, and b by rows, which are the inner axis)
"""
import numpy as np

from .. import _core
from .._base import product
from ._along import find_function
from ._array import ShardedArray, reshard, run_parts
from ._elementwise import check_operand, give, replicate
from ._layout import Layout
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
        steps = _Steps((a, b), layouts)
        if steps.pay():
            return ShardedArray(whole, steps.run(kwargs))
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
