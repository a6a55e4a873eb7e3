"""Functions that work along axes: each device applies them to its part, which must have those axes whole."""
import numpy as np

from .. import _base, _core
from .._base import normalize_axis
from ._array import ShardedArray, join_axes, layout_of_one, make_like, put_together, run_parts, split_over, spread
from ._elementwise import give
from ._layout import cut_evenly
from ._move import collect, copying, list_pieces, reach

_LARGE = 1 << 26  # bytes of a part from which what crosses comes in blocks
_BLOCKS = 4
_NARROW = 32      # elements of a block along the axis that is cut into blocks


def map_along(x, axes, function):
    """x with function(part) for each part: it keeps the number of axes, and along other axes than these their lengths. Axes
    that are split are brought together; where there is no other axis to split, one device computes."""
    local = join_axes(x, axes)
    if local is None:
        return _map_on_one(x, function)
    parts = run_parts(local._layout, lambda place: function(local._parts[place]))
    layout = local._layout.join(axes, [parts[0].shape[axis] for axis in axes])
    return make_like(layout, parts)


class _Across:
    """A function along an axis that is split, of large parts. Each device gets the whole axis of its range of another one,
    in blocks. While one is computed, the next one comes from the other devices.

        device 0 has ──────────        device 0 gets │ │ ┊     blocks of columns, whose upper half it has
        device 1 has ──────────                      │ │ ┊
    """

    def __init__(self, x, axis):
        self.x, self.axis, self.pieces = x, axis, list_pieces(x)
        others = [each for each in range(x.ndim) if each != axis]
        self.other = max(others, key=lambda each: x.shape[each]) if others else None

    def pays(self):
        """Whether there is another axis that is long enough, and much to bring."""
        return (self.other is not None and self.x._layout.is_split((self.axis,)) and min(self.x.shape) > 0
                and self.x._parts[0].nbytes >= _LARGE
                and self.x.shape[self.other] >= _NARROW * _BLOCKS * self.x._layout.mesh.size)

    def run(self, function):
        """x with function(block), or function(block, out=array), of blocks."""
        names = self.x._layout.list_names((self.axis,))
        layout = split_over(self.x._layout.join((self.axis,)), self.other, names)
        places = [_Blocks(self, layout, place) for place in range(len(layout.boxes))]
        for _ in range(_BLOCKS):
            for place in places:
                place.step(function)
        parts = [place.made for place in places]
        return make_like(layout.join((self.axis,), [parts[0].shape[self.axis]]), parts)


class _Blocks:
    """The blocks of one place, one after the other."""

    def __init__(self, across, layout, place):
        self.across, self.device, self.box = across, layout.mesh._places[place], layout.boxes[place]
        start, stop = self.box[across.other]
        cuts = [start + cut for cut in cut_evenly(stop - start, _BLOCKS)]
        self.left, self.made = list(zip(cuts, cuts[1:])), None
        self.brought = self._bring_next()

    def _bring_next(self):
        if not self.left:
            return None
        across, other = self.across, self.across.other
        with self.device, copying(self.device):
            return collect(across.pieces, across.x.dtype, [self.device],
                           [(*self.box[:other], self.left[0], *self.box[other + 1:])])[0]

    def step(self, function):
        (start, stop), other = self.left.pop(0), self.across.other
        block, self.brought = self.brought, self._bring_next()
        first = self.box[other][0]
        index = _base.along(block.ndim, other, slice(start - first, stop - first))
        with self.device:
            if self.made is not None:
                function(block, out=self.made[index])
                return
            result = function(block)
            shape = list(result.shape)
            shape[other] = self.box[other][1] - first
            self.made = _base.empty(tuple(shape), result.dtype)
            self.made[index] = result


def _map_on_one(x, function):
    device = x._layout.mesh._places[0]
    whole = put_together(x, device)
    with device:
        made = function(whole)
    longest = made.shape.index(max(made.shape))
    layout = layout_of_one(x._layout.mesh, made.shape)
    return spread(made, split_over(layout, longest, x._layout.list_names(range(x.ndim))))


def along_axis(name, module=None):
    """arrayd's function f(a, ..., axis) that keeps the number of axes, by its name."""
    def function(a, *args, axis=-1, **kwargs):
        return map_along(a, (normalize_axis(axis, a.ndim),), lambda part: find_function(name, module)(
            part, *args, axis=normalize_axis(axis, a.ndim), **kwargs))

    return function


def find_function(name, module=None):
    import arrayd
    return getattr(getattr(arrayd, module) if module else arrayd, name)


# ---- running sums ----

def scan(name, x, axis=None, dtype=None, out=None):
    """cumsum and cumprod. Where the axis is split each device scans its part, and then what the parts before it come to is
    added: only that is moved."""
    from ._shapes import ravel
    x = ravel(x) if axis is None else x
    axis = 0 if axis is None else normalize_axis(axis, x.ndim)
    function = find_function(name)
    combine = _core.ufuncs["add" if name == "cumsum" else "multiply"]
    parts = run_parts(x._layout, lambda place: function(x._parts[place], axis=axis, dtype=dtype))
    if x._layout.is_split((axis,)):
        parts = _carry(x._layout, axis, parts, combine)
    return give(ShardedArray(x._layout, parts), out)


def _carry(layout, axis, parts, combine):
    """The scans of parts, each continued from the last elements of those before it."""
    last, made = _base.along(len(layout.shape), axis, slice(-1, None)), list(parts)
    for group in layout.groups(layout.splits[axis]):
        ordered = sorted(group, key=lambda place: layout.boxes[place][axis])
        filled = [place for place in ordered if layout.shapes[place][axis]]
        for i, place in enumerate(filled[1:], 1):
            device = layout.mesh._places[place]
            with device:
                before = reach(parts[filled[0]][last], device)
                for other in filled[1:i]:
                    before = combine(before, reach(parts[other][last], device))
                made[place] = combine(before, parts[place])
    return made


# ---- Fourier transforms ----

def transform(name, a, n=None, axis=-1, norm=None, out=None):
    """A function of numpy.fft along one axis."""
    axis, function = normalize_axis(axis, a.ndim), find_function(name, "fft")
    across = _Across(a, axis)
    if across.pays():
        return give(across.run(lambda block, out=None: function(block, n, axis, norm, out=out)), out)
    return give(map_along(a, (axis,), lambda part: function(part, n, axis, norm)), out)


def transform_several(name, a, s=None, axes=None, norm=None, out=None):
    """A function of numpy.fft along several axes: one after the other, each where it is whole."""
    if name.endswith("2"):
        axes = (-2, -1) if axes is None else axes
    if axes is None:
        axes = range(a.ndim) if s is None else range(a.ndim - len(s), a.ndim)
    axes = [normalize_axis(axis, a.ndim) for axis in axes]
    sizes = [None] * len(axes) if s is None else list(s)
    if len(sizes) != len(axes):
        raise ValueError("Shape and axes have different lengths.")
    sizes = [None if n == -1 else n for n in sizes]
    inverse, real = name.lstrip("r").startswith("i"), name.startswith(("r", "ir"))
    plain, last = ("ifft", "irfft") if inverse else ("fft", "rfft")
    steps = [(plain, axis, n) for axis, n in zip(axes, sizes)]
    if real and steps:
        steps[-1] = (last, *steps[-1][1:])
    local = [step for step in steps if not a._layout.is_split((step[1],))]
    ordered = steps if inverse and real else steps[::-1]
    if not real:  # those axes first that are whole
        ordered = local + [step for step in steps if step not in local]
    for step, axis, n in ordered:
        a = transform(step, a, n, axis, norm)
    return give(a, out)


# ---- matrices in stacks ----

def on_matrices(name, results):
    """A function of numpy.linalg of stacks of matrices. results: for each result how many axes it has of its own."""
    def function(a, *args, **kwargs):
        if a.ndim < 2:
            raise np.linalg.LinAlgError(f"{a.ndim}-dimensional array given. Array must be at least two-dimensional")
        run = find_function(name, "linalg")
        if a.ndim == 2:
            device = a._layout.mesh._places[0]
            with device:
                return run(put_together(a, device), *args, **kwargs)
        local = join_axes(a, (a.ndim - 2, a.ndim - 1))
        parts = run_parts(local._layout, lambda place: run(local._parts[place], *args, **kwargs))
        if not isinstance(parts[0], tuple):
            return _stack_results(local, parts)
        made = [_stack_results(local, [part[k] for part in parts]) for k in range(len(parts[0]))]
        return type(parts[0])(*made) if hasattr(parts[0], "_fields") else tuple(made)

    return function


def _stack_results(local, parts):
    batch = local.ndim - 2
    layout = local._layout.select([*range(batch), *[None] * (parts[0].ndim - batch)])
    own = range(batch, parts[0].ndim)
    return ShardedArray(layout.join(own, [parts[0].shape[axis] for axis in own]), parts)
