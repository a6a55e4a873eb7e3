"""Functions that work along axes: each device applies them to its part, which must have those axes whole."""
import numpy as np

from .. import _base, _core
from .._base import normalize_axis
from ._array import ShardedArray, join_axes, layout_of_one, make_like, put_together, run_parts, split_over, spread
from ._elementwise import give
from ._move import reach


def map_along(x, axes, function):
    """x with function(part) for each part: it keeps the number of axes, and along other axes than these their lengths. Axes
    that are split are brought together; where there is no other axis to split, one device computes."""
    local = join_axes(x, axes)
    if local is None:
        return _map_on_one(x, function)
    parts = run_parts(local._layout, lambda place: function(local._parts[place]))
    layout = local._layout.join(axes, [parts[0].shape[axis] for axis in axes])
    return make_like(layout, parts)


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
    axis = normalize_axis(axis, a.ndim)
    return give(map_along(a, (axis,), lambda part: find_function(name, "fft")(part, n, axis, norm)), out)


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
