"""Declared parameters of kernels ("float32 x, raw T y"), and the types that arguments give their placeholders."""
import collections

import numpy as np

from .. import _core
from . import build
from .types import c_name, default_dtype, is_array

# dtype: None for a placeholder, whose letter is `kind`.
Parameter = collections.namedtuple("Parameter", "name kind dtype raw")


def parse(declared, what):
    """The parameters that a text declares. ValueError for what is none."""
    if not isinstance(declared, str):
        raise TypeError(f"{what} must be a str such as 'T x, raw T y', not {declared!r}")
    found = [_one(part.split(), what) for part in declared.split(",") if part.strip()]
    for parameter in found:
        if sum(parameter.name == other.name for other in found) > 1:
            raise ValueError(f"{what}: {parameter.name} is declared twice")
    return tuple(found)


def _one(words, what):
    if len(words) < 2:
        raise ValueError(f"{what}: {' '.join(words)!r} must be a type and a name")
    *marks, kind, name = words
    for mark in marks:
        if mark not in ("raw", "const"):
            raise ValueError(f"{what}: unknown keyword {mark!r} before {kind} {name}; there is raw")
    build.identifier(name, what)
    if name.startswith("_"):
        raise ValueError(f"{what}: the name {name!r} is reserved, as are all that begin with _")
    dtype = None
    if len(kind) != 1:
        try:
            dtype = _core.as_dtype(kind)
        except TypeError:
            dtype = None
        if dtype is None or dtype.name != kind:
            raise ValueError(f"{what}: {kind!r} is neither the name of a type of arrays nor one letter")
    elif not kind.isalpha():
        raise ValueError(f"{what}: {kind!r} is no placeholder: that is one letter")
    return Parameter(name, kind, dtype, "raw" in marks)


def settle(kernel, inputs, outputs, in_args, out_args, given=None):
    """Find the types of a kernel's inputs, outputs and placeholders from its arguments. Outputs count before inputs,
    arrays before NumPy's numbers and these before Python's. given: a type for outputs that nothing else types. TypeError
    where two arguments do not agree, or where nothing decides."""
    types = {}
    for parameter, argument in zip(outputs, out_args):
        _agree(kernel, types, parameter, argument.dtype)
    for parameter, argument in zip(inputs, in_args):
        if is_array(argument):
            _agree(kernel, types, parameter, argument.dtype)
    for strong in (True, False):
        for parameter, argument in zip(inputs, in_args):
            if not is_array(argument) and parameter.dtype is None and isinstance(argument, np.generic) == strong:
                types.setdefault(parameter.kind, default_dtype(argument))
    for parameter in outputs:
        if parameter.dtype is None and parameter.kind not in types:
            if given is None:
                raise TypeError(f"{kernel}: nothing says which type {parameter.kind} of {parameter.name} is: give the "
                                "output as an argument")
            types[parameter.kind] = given
    return [[types[p.kind] if p.dtype is None else p.dtype for p in side] for side in (inputs, outputs)] + [types]


def _agree(kernel, types, parameter, dtype):
    wanted = types.setdefault(parameter.kind, dtype) if parameter.dtype is None else parameter.dtype
    if wanted != dtype:
        place = f"placeholder {parameter.kind}" if parameter.dtype is None else "its type"
        raise TypeError(f"{kernel}: type is mismatched: {parameter.name} is {dtype.name}, and {place} is {wanted.name}")


def typedefs(types):
    """The placeholders as types of C++."""
    return "".join(f"typedef {c_name(dtype)} {kind};\n" for kind, dtype in sorted(types.items()))


def is_operand(argument):
    """Whether an argument is an array of the server or a number."""
    return is_array(argument) or isinstance(argument, (bool, int, float, complex, np.number, np.bool_, np.void))


def check_argument(kernel, argument, name):
    """TypeError for an argument that is neither an array of the server nor a number."""
    if not is_operand(argument):
        hint = "; arrayd.asarray makes one" if isinstance(argument, (np.ndarray, list)) else ""
        raise TypeError(f"{kernel}: {name} must be an arrayd.ndarray or a number, not {type(argument).__name__}{hint}")
