"""Promotion, casting and the choice of loops, against NumPy (and ml_dtypes for bfloat16)."""
import itertools

import ml_dtypes
import numpy as np
import pytest

from wire_native import CASTINGS, DTYPES

NUMPY = [name for name in DTYPES if name != "bfloat16"]
PYTHON = [int, float, complex]


def dtype(name):
    return name if name in PYTHON else np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def test_promote_types(native):
    for a, b in itertools.product(NUMPY, NUMPY):
        assert native.promote(a, b) == np.promote_types(a, b).name, (a, b)


def test_promote_bfloat16(native):
    """ml_dtypes gives the type. Where that refuses, it is the smallest type that holds both, as NumPy has it for
    float16 and integers."""
    refused = {"int16": "float32", "uint16": "float32", "int32": "float64", "uint32": "float64", "int64": "float64",
               "uint64": "float64", "float16": "float32"}
    for name in DTYPES:
        try:
            expected = np.promote_types(dtype("bfloat16"), dtype(name)).name
            assert name not in refused
        except TypeError:
            expected = refused[name]
        assert native.promote("bfloat16", name) == native.promote(name, "bfloat16") == expected, name


SAMPLES = {int: 1, float: 1.0, complex: 1j}


def test_result_type(native):
    """Python scalars are weak (NEP 50), in any company."""
    for types in itertools.chain(itertools.product(NUMPY, PYTHON), itertools.product(NUMPY, NUMPY, PYTHON),
                                 itertools.product(NUMPY, PYTHON, PYTHON)):
        expected = np.result_type(*[SAMPLES.get(t, t) if t in PYTHON else np.dtype(t) for t in types]).name
        assert native.promote_all(types) == expected, types


def test_result_type_of_python_scalars(native):
    assert native.promote_all([int]) == native.promote_all([int, int]) == "int64"
    assert native.promote_all([float]) == native.promote_all([int, float]) == "float64"
    assert native.promote_all([complex]) == native.promote_all([float, complex, int]) == "complex128"


def test_can_cast(native):
    for a, b, casting in itertools.product(NUMPY, NUMPY, CASTINGS):
        assert native.can_cast(a, b, casting) == np.can_cast(a, b, casting), (a, b, casting)


# Rows where our choice differs from NumPy's. For comparisons NumPy has loops that compare int64 with uint64 exactly. Logical
# functions look at truth only, where a loop of any type does.
COMPARISONS = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}
LOGICAL = {"logical_and", "logical_or", "logical_xor", "logical_not"}
ALIASES = {"abs", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_invert", "bitwise_left_shift",
           "bitwise_not", "bitwise_right_shift", "conj", "degrees", "mod", "pow", "radians", "true_divide"}
UFUNCS = ["clip"] + [name for name in dir(np) if isinstance(getattr(np, name), np.ufunc) and name not in ALIASES
                     and getattr(np, name).signature is None and name != "isnat"]


def ufunc(name):
    return np._core.umath.clip if name == "clip" else getattr(np, name)


def resolve(function, types):
    """NumPy's types of all operands, or None for a TypeError."""
    try:
        chosen = function.resolve_dtypes(tuple(dtype(t) for t in types) + (None,) * function.nout)
    except TypeError:
        return None
    return [t.name for t in chosen]


def ours(native, name, types):
    try:
        return native.ufunc_loop(name, types)
    except TypeError:
        return None


def cases(function):
    return itertools.chain(itertools.product(NUMPY, repeat=function.nin) if function.nin < 3 else
                           [(a, b, b) for a, b in itertools.product(NUMPY, NUMPY)],
                           [(a, *(b,) * (function.nin - 1)) for a in NUMPY for b in PYTHON] if function.nin > 1 else [],
                           [(a, b) for a in PYTHON for b in NUMPY] if function.nin == 2 else [])


def test_every_ufunc_of_numpy_is_there(native):
    assert [name for name in UFUNCS if name not in native.ufuncs] == []


@pytest.mark.parametrize("name", UFUNCS)
def test_loops(native, name):
    function, wrong = ufunc(name), []
    for types in cases(function):
        theirs, mine = resolve(function, types), ours(native, name, types)
        if name == "ldexp" and types[0] is int:
            continue # float16 for a Python int, of any value: ours is float64
        if name == "ldexp" and theirs:
            theirs[1] = "int64" # the exponent, which NumPy reads as a C int where that is safe
        if name in LOGICAL or (name in COMPARISONS and mine):
            same = mine[2] == theirs[-1:]
        else:
            same = (theirs is None) == (mine is None) and (mine is None or mine[1] + mine[2] == theirs)
        if not same:
            wrong.append((types, theirs, mine))
    assert not wrong, wrong[:20] + [len(wrong)]


def message(call):
    with pytest.raises(TypeError) as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize("name", ["subtract", "negative", "invert", "left_shift", "arctan2", "floor", "bitwise_count"])
def test_messages_are_numpys(native, name):
    """Ufuncs lack a loop for bool, or for complex numbers."""
    kind = "bool" if name in ("subtract", "negative") else "complex128"
    function = ufunc(name)
    expected = message(lambda: function(*[np.zeros(1, kind)] * function.nin))
    assert message(lambda: native.ufunc_loop(name, [kind] * function.nin)) == expected


def test_dtype_argument(native):
    assert native.ufunc_loop("add", ["int8", "int8"], "float32")[2] == ["float32"]
    assert native.ufunc_loop("less", ["float32", "int8"], "bool")[0] == "float32"
    expected = message(lambda: np.sin(np.zeros(1), dtype="int32"))
    assert message(lambda: native.ufunc_loop("sin", ["float64"], "int32")) == expected


REDUCTIONS = ["sum", "prod", "min", "max", "any", "all", "mean", "var", "std", "argmin", "argmax", "count_nonzero",
              "nansum", "nanprod", "nanmin", "nanmax", "nanmean", "nanvar", "nanstd", "nanargmin", "nanargmax"]


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(native, name):
    assert set(REDUCTIONS) == set(native.reductions)
    for kind in NUMPY:
        try:
            expected = np.asarray(getattr(np, name)(np.ones(3, kind))).dtype.name
        except TypeError:
            with pytest.raises(TypeError):
                native.reduction_result(name, kind)
            continue
        assert native.reduction_result(name, kind) == expected, kind


@pytest.mark.parametrize("name", ["sum", "prod", "mean"])
def test_reductions_dtype(native, name):
    for kind, asked in itertools.product(NUMPY, ["int64", "uint64", "float16", "float32", "float64", "complex64"]):
        if name == "mean" and "int" in asked:
            continue # NumPy's integer mean is the sum's type divided: the caller casts
        assert native.reduction_result(name, kind, asked) == asked
