"""Generalized ufuncs of Python functions."""
import itertools
import re

import numpy as np

from .. import _base
from .._base import as_array, give, ndarray, normalize_axis
from .._array.manipulation import broadcast_to, moveaxis

_OPERAND = r"\((?:\w+(?:,\w+)*)?\)"
_SIGNATURE = re.compile(rf"(?:{_OPERAND}(?:,{_OPERAND})*)->{_OPERAND}(?:,{_OPERAND})*")


def _parsed(signature):
    """The core dimensions of the inputs and of the outputs: a list of tuples of names each."""
    if not isinstance(signature, str):
        raise TypeError("Signature is not a string")
    text = "".join(signature.split())
    if not _SIGNATURE.fullmatch(text):
        raise ValueError(f"Not a valid gufunc signature: {signature}")
    return [[tuple(filter(None, one[1:-1].split(","))) for one in re.findall(_OPERAND, side)]
            for side in text.split("->")]


class _Loop:
    """Types that a function is called with, and the function: from "ff->f" or ("ff->f", function)."""

    def __init__(self, given, default, nin, nout):
        text, self.function = (given, default) if isinstance(given, str) else given
        sides = text.replace(" ", "").split("->")
        if len(sides) != 2 or [len(side) for side in sides] != [nin, nout]:
            raise ValueError(f"signature {text} for dtypes is invalid: {nin} inputs and {nout} outputs are needed")
        self.inputs, self.outputs = (tuple(map(np.dtype, side)) for side in sides)

    def is_of(self, types):
        return self.inputs + self.outputs == types


class GeneralizedUFunc:
    """A function of arrays of few dimensions, applied over the dimensions that come before those, which broadcast.

    Parameters: func: called with arrays; gives an array or a tuple of arrays. signature: the core dimensions, such as
    '(m,n),(n)->(m)'; names or sizes. name, doc: instead of func's. supports_batched: func takes leading dimensions
    itself and is called once; else once for each place in them, from this process. supports_out: func takes out=.
    signatures: types to call it with, strings such as 'ff->f' or tuples of one and the function for it; the first to
    which the inputs can be cast is taken.
    Raises: ValueError for a signature that is none; optional dimensions ('?') and '|1' are not had.
    Source: cupyx.GeneralizedUFunc
    """

    def __init__(self, func, signature, *, name=None, doc=None, supports_batched=False, supports_out=False,
                 signatures=None):
        self._func, self.signature = func, signature
        self._inputs, self._outputs = _parsed(signature)
        self.nin, self.nout = len(self._inputs), len(self._outputs)
        self.__name__ = getattr(func, "__name__", "gufunc") if name is None else name
        self.__doc__ = func.__doc__ if doc is None else doc
        self._batched, self._out = supports_batched, supports_out
        self._loops = [_Loop(one, func, self.nin, self.nout) for one in signatures or ()]

    def __call__(self, *args, axes=None, axis=None, keepdims=False, casting="same_kind", dtype=None, signature=None,
                 order="K", out=None):
        """Apply it.

        Parameters: args: the inputs. axes: list of tuples, the core axes of each input and output, the last ones unless
        given. axis: the one core axis of all. keepdims: keep core dimensions of the inputs with size 1. casting: which
        casts of inputs are allowed. dtype: of the outputs. signature: which of the signatures is taken, as a string or
        tuple of types. order: 'C', 'F', 'A' or 'K'. out: array or tuple to fill.
        Returns: ndarray, or a tuple for several outputs.
        Raises: ValueError for shapes, axes or a number of arguments that do not fit; TypeError for types.
        """
        if len(args) != self.nin:
            raise ValueError(f"{self.__name__} takes {self.nin} inputs, {len(args)} were given")
        args, function, types = self._typed([as_array(arg) for arg in args], casting, dtype, signature)
        axes = self._axes(axes, axis, keepdims)
        args, outer, sizes = self._aligned(args, axes)
        targets = self._targets(out)
        if self._batched or not outer:
            direct = self._out and all(t is not None for t in targets) and not axes and not keepdims
            results = self._called(function, args, {"out": targets[0] if self.nout == 1 else targets} if direct else {})
        else:
            results = self._looped(function, args, outer)
        finished = []
        for i, (result, target) in enumerate(zip(results, targets)):
            result = result if types is None else result.astype(types[i], copy=False)
            result = self._placed(result, i, outer, sizes, axes, keepdims)
            result = result if order in ("K", "A", None) else as_order(result, order)
            finished.append(result if result is target else give(result, target))
        return finished[0] if self.nout == 1 else tuple(finished)

    def _typed(self, args, casting, dtype, signature):
        """The inputs, cast; the function to call; and the outputs' types, None for whatever it gives."""
        loop, types = None, None if dtype is None else (np.dtype(dtype),) * self.nout
        if signature is not None:
            loop = next((one for one in self._loops if one.is_of(self._named_types(signature))), None)
            if loop is None:
                raise TypeError(f"No loop matching the specified signature was found for {self.__name__}")
        elif dtype is not None:
            loop = next((one for one in self._loops if one.outputs == types), None)
        else:
            loop = next((one for one in self._loops if all(
                np.can_cast(a.dtype, kind, casting) for a, kind in zip(args, one.inputs))), None)
        if loop is None:
            return args, self._func, types
        for i, (a, kind) in enumerate(zip(args, loop.inputs)):
            if not np.can_cast(a.dtype, kind, casting):
                raise TypeError(f"Cannot cast {self.__name__} input {i} from {a.dtype!r} to {kind!r} with casting rule "
                                f"{casting!r}")
        return [a.astype(kind, copy=False) for a, kind in zip(args, loop.inputs)], loop.function, loop.outputs

    def _named_types(self, signature):
        names = signature.replace(" ", "").replace("->", "") if isinstance(signature, str) else signature
        return tuple(map(np.dtype, names))

    def _axes(self, axes, axis, keepdims):
        """A tuple of core axes for each input and output; None: the last ones everywhere."""
        if axes is not None and axis is not None:
            raise ValueError("Only one of `axis` or `axes` keyword arguments should be given")
        counts = {len(names) for names in self._inputs}
        if keepdims and (len(counts) != 1 or any(self._outputs)):
            raise ValueError("`keepdims` needs inputs of one number of core dimensions, and outputs of none")
        if axis is not None:
            if counts | {len(names) for names in self._outputs} - {0} != {1}:
                raise ValueError("`axis` can be used only with a single, shared core dimension")
            return [(axis,) if names or (keepdims and i >= self.nin) else ()
                    for i, names in enumerate(self._inputs + self._outputs)]
        if axes is None:
            return None
        if not isinstance(axes, list):
            raise ValueError("`axes` has to be of type list")
        axes = [(one,) if isinstance(one, int) else tuple(one) for one in axes]
        if len(axes) == self.nin and not any(self._outputs):
            axes += [axes[0] if keepdims else ()] * self.nout
        if len(axes) != self.nin + self.nout:
            raise ValueError("The number of `axes` entries is not equal to the number of inputs and outputs. Outputs "
                             "may only be omitted if they are all scalar.")
        return axes

    def _aligned(self, args, axes):
        """The inputs with their core axes last and the others broadcast; the shape of those; sizes by name."""
        sizes, cores, moved = {}, [], []
        for i, (a, names) in enumerate(zip(args, self._inputs)):
            if a.ndim < len(names):
                raise ValueError(f"{self.__name__}: input {i} has {a.ndim} dimensions, its core needs {len(names)}")
            if axes is not None:
                if len(axes[i]) != len(names):
                    raise ValueError(f"{self.__name__}: axes of input {i} must be {len(names)}, not {len(axes[i])}")
                a = moveaxis(a, axes[i], tuple(range(-len(names), 0)))
            moved.append(a)
            cores.append(a.shape[a.ndim - len(names):])
            for name, size in zip(names, cores[-1]):
                if sizes.setdefault(name, int(name) if name.isdigit() else size) != size:
                    raise ValueError(f"{self.__name__}: input {i} has {size} where its core dimension {name} is "
                                     f"{sizes[name]} (signature {self.signature})")
        outer = np.broadcast_shapes(*(a.shape[:a.ndim - len(core)] for a, core in zip(moved, cores)))
        return [a if a.shape == outer + core else broadcast_to(a, outer + core) for a, core in zip(moved, cores)], \
            outer, sizes

    def _targets(self, out):
        targets = (None,) * self.nout if out is None else out if isinstance(out, tuple) else (out,)
        if len(targets) != self.nout:
            raise ValueError(f"{self.__name__} has {self.nout} outputs, out has {len(targets)}")
        for one in targets:
            if one is not None and not isinstance(one, ndarray):
                raise TypeError("return arrays must be of arrayd.ndarray")
        return targets

    def _called(self, function, args, options):
        results = function(*args, **options)
        results = results if isinstance(results, (tuple, list)) else (results,)
        if len(results) != self.nout:
            raise ValueError(f"{self.__name__} gave {len(results)} results, its signature has {self.nout}")
        return [as_array(result) for result in results]

    def _looped(self, function, args, outer):
        """The outputs of a call for each place in the outer dimensions."""
        wholes = None
        for place in itertools.product(*map(range, outer)):
            results = self._called(function, [a[place] for a in args], {})
            if wholes is None:
                wholes = [_base.zeros(outer + result.shape, result.dtype) for result in results]
            for whole, result in zip(wholes, results):
                whole[place] = result
        if wholes is None:
            raise ValueError(f"{self.__name__} cannot be called where the outer dimensions have size 0")
        return wholes

    def _placed(self, result, i, outer, sizes, axes, keepdims):
        """An output, checked against the signature, with its core axes where they are to be."""
        names = self._outputs[i]
        expected = outer + tuple(int(n) if n.isdigit() else sizes.get(n, size) for n, size in
                                 zip(names, result.shape[len(outer):]))
        if result.ndim != len(outer) + len(names) or result.shape != expected:
            raise ValueError(f"{self.__name__}: output {i} has shape {result.shape}, which does not fit its signature "
                             f"{self.signature}")
        if keepdims:
            result = result.reshape(result.shape + (1,) * len(self._inputs[0]))
        if axes is None:
            return result
        core = axes[self.nin + i]
        core = tuple(normalize_axis(one, result.ndim) for one in core)
        return moveaxis(result, tuple(range(result.ndim - len(core), result.ndim)), core) if core else result


def as_order(a, order):
    """a in a layout: a copy where it has another."""
    from .._array.creation import array
    return array(a, copy=None, order=order)
