"""Operators and functions of numbers in translated functions: what NumPy says of types, in C++."""
import math
import operator

import numpy as np

from .. import _core
from .jit_values import (Constant, Scalar, Value, arithmetic_c, as_scalar, as_value, cast, convert, default, is_number,
                         literal, truth)
from .types import c_name

# By NumPy's name: C++ of the arguments {0}, {1}, in the types of NumPy's loop; {T} is their type.
_OPERATORS = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "bitwise_and": "&", "bitwise_or": "|",
    "bitwise_xor": "^", "equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">",
    "greater_equal": ">=", "logical_and": "&&", "logical_or": "||", "logical_xor": "!=",
}
_CODE = {
    **{name: f"{name}({{0}})" for name in "sqrt cbrt exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh "
       "floor ceil trunc rint fabs erf erfc tgamma lgamma rsqrt isinf isfinite signbit".split()},
    **{name: f"{name}({{0}}, {{1}})" for name in "hypot copysign fmod nextafter fmax fmin".split()},
    **{name: f"a{name[3:]}({{0}})" for name in "arcsin arccos arctan arcsinh arccosh arctanh".split()},
    **{name: f"ad_kernel::{name}({{0}})" for name in "absolute sign square reciprocal".split()},
    **{name: f"ad_kernel::{name}({{0}}, {{1}})" for name in "floor_divide remainder left_shift right_shift maximum "
       "minimum heaviside logaddexp gcd lcm".split()},
    **{name: f"{{0}} {sign} {{1}}" for name, sign in _OPERATORS.items()},
    "arctan2": "atan2({0}, {1})", "negative": "-{0}", "positive": "{0}", "invert": "~{0}", "power": "pow({0}, {1})",
    "float_power": "pow({0}, {1})", "deg2rad": "{0} * ({T})0.017453292519943295",
    "rad2deg": "{0} * ({T})57.29577951308232", "isnan": "{0} != {0}", "logical_not": "!{0}", "conjugate": "{0}",
}
_INTEGERS = {"power": "ad_kernel::power({0}, {1})", "fmax": "ad_kernel::most({0}, {1})",
             "fmin": "ad_kernel::least({0}, {1})", "isnan": "false", "isinf": "false", "isfinite": "true",
             "floor": "{0}", "ceil": "{0}", "trunc": "{0}", "rint": "{0}"}
_BOOL = {"add": "{0} || {1}", "multiply": "{0} && {1}", "bitwise_and": "{0} && {1}", "bitwise_or": "{0} || {1}",
         "bitwise_xor": "{0} != {1}", "invert": "!{0}", "maximum": "{0} || {1}", "minimum": "{0} && {1}",
         "absolute": "{0}"}
_COMPLEX = {"absolute": "abs({0})", "conjugate": "conj({0})",
            "isnan": "{0}.real() != {0}.real() || {0}.imag() != {0}.imag()", "reciprocal": "{T}(1) / {0}"}
_NOT_COMPLEX = {"floor", "ceil", "trunc", "rint", "sign", "maximum", "minimum", "fmax", "fmin"}
_OTHER_NAMES = {"true_divide": "divide", "mod": "remainder", "pow": "power", "abs": "absolute", "acos": "arccos",
                "asin": "arcsin", "atan": "arctan", "atan2": "arctan2", "acosh": "arccosh", "asinh": "arcsinh",
                "atanh": "arctanh", "degrees": "rad2deg", "radians": "deg2rad", "gamma": "tgamma", "conj": "conjugate",
                "bitwise_not": "invert", "bitwise_invert": "invert", "bitwise_left_shift": "left_shift",
                "bitwise_right_shift": "right_shift", "fix": "trunc"}
_AS_SQRT = {"erf", "erfc", "tgamma", "lgamma", "rsqrt"}  # not NumPy's; their types are sqrt's
_PYTHON = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv,
    "floor_divide": operator.floordiv, "remainder": operator.mod, "power": operator.pow, "left_shift": operator.lshift,
    "right_shift": operator.rshift, "bitwise_and": operator.and_, "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor, "equal": operator.eq, "not_equal": operator.ne, "less": operator.lt,
    "less_equal": operator.le, "greater": operator.gt, "greater_equal": operator.ge, "negative": operator.neg,
    "positive": operator.pos, "invert": operator.invert, "absolute": abs,
}
_BFLOAT = "bfloat16"


def name_of(function):
    """The name here of a function that computes a number from numbers (a ufunc, of math); None for another."""
    maths = getattr(math, getattr(function, "__name__", ""), None)
    known = isinstance(function, (_core.ufunc, np.ufunc)) or maths is function is not None
    name = _OTHER_NAMES.get(function.__name__, function.__name__) if known else None
    return name if name in _CODE else None


def is_complex(value):
    """Whether a value, or a constant, is a complex number."""
    if isinstance(value, Value):
        return isinstance(value.type, Scalar) and value.type.dtype.kind == "c"
    return is_number(value) and isinstance(value.value, (complex, np.complexfloating))


def types_of(name, kinds, integers, dtype=None):
    """Find the types of the operands and of the result of an operation as NumPy does, from its operands' kinds. A kind is
    a dtype, or bool, int, float or complex for a constant, which follows the others. integers: integers stay integers.
    dtype: that of the result, as of a ufunc."""
    loop = np.sqrt if name in _AS_SQRT else getattr(np, name)
    strong = [kind for kind in kinds if isinstance(kind, np.dtype)]
    if any(kind.name == _BFLOAT for kind in strong):
        # ml_dtypes does not take Python's numbers for followers.
        kinds = [kind if isinstance(kind, np.dtype) or kind is complex else strong[0] if kind is not bool else kind
                 for kind in kinds]
    if integers and len(strong) == 2 and {kind.kind for kind in strong} == {"i", "u"} and name in _PYTHON \
            and name != "divide" and np.result_type(*strong).kind == "f":
        kinds = [np.dtype(np.uint64)] * 2
    try:
        options = {} if dtype is None else {"signature": (None,) * len(kinds) + (np.dtype(dtype),)}
        *operands, result = loop.resolve_dtypes((*kinds, None), **options)
    except TypeError:
        names = ", ".join(getattr(kind, "name", getattr(kind, "__name__", "")) for kind in kinds)
        wanted = "" if dtype is None else f" with the result {np.dtype(dtype)}"
        raise TypeError(f"{name} is not defined for {names}{wanted}") from None
    return operands, result


def operation(name, operands, integers=False, dtype=None):
    """The value of an operation by NumPy's name, of values and constants."""
    if all(isinstance(each, Constant) for each in operands) and name in _PYTHON and dtype is None:
        return Constant(_PYTHON[name](*(each.value for each in operands)))
    if name.startswith("logical_"):
        operands = [truth(each) for each in operands]
    operands = [each if is_number(each) else as_scalar(each) for each in operands]
    kinds = [type(each.value) if is_number(each) else each.type.dtype for each in operands]
    if len(kinds) != (np.sqrt if name in _AS_SQRT else getattr(np, name)).nin:
        raise TypeError(f"{name} takes {(np.sqrt if name in _AS_SQRT else getattr(np, name)).nin} arguments, "
                        f"not {len(kinds)}")
    wanted, result = types_of(name, kinds, integers, dtype)
    codes = [_operand(each, dtype) for each, dtype in zip(operands, wanted)]
    first = wanted[0]
    if first.kind == "c" and name in _NOT_COMPLEX:
        raise TypeError(f"{name} is not defined for {first.name}")
    table = {"b": _BOOL, "i": _INTEGERS, "u": _INTEGERS, "c": _COMPLEX}.get(first.kind, {})
    text = table.get(name, _CODE[name]).format(*codes, T=arithmetic_c(first))
    return Value(f"(({c_name(result)})({text}))", Scalar(result))


def _operand(value, dtype):
    """A value's C++ in the type that C++ computes numbers of dtype with."""
    if is_number(value):
        if arithmetic_c(dtype) != c_name(dtype):  # computed in float, from what the small type holds
            return literal(float(np.asarray(value.value).astype(dtype)), np.dtype(np.float32))
        return literal(value.value, dtype)
    code = cast(value.code, value.type.dtype, dtype)
    return f"((float)({code}))" if arithmetic_c(dtype) != c_name(dtype) else f"({code})"


def common_type(values):
    """The type that all of several values can become."""
    kinds = [each if is_number(each) else as_scalar(each) for each in values]
    strong = [each.type.dtype for each in kinds if isinstance(each, Value)]
    if not strong:
        return np.result_type(*(default(each.value) for each in kinds))
    weak = [each.value for each in kinds if not isinstance(each, Value)]
    found = _core.result_dtype(*strong, *weak)
    return np.dtype(found)


def choose(test, yes, no):
    """The value of a conditional expression whose condition is not known before."""
    if isinstance(yes, Value) and isinstance(no, Value) and yes.type and no.type and yes.type.key == no.type.key:
        return Value(f"({test.code} ? {yes.code} : {no.code})", yes.type, yes.roots | no.roots)
    dtype = common_type([yes, no])
    return Value(f"({test.code} ? {convert(yes, dtype)} : {convert(no, dtype)})", Scalar(dtype))


def extreme(name, values):
    """Python's min or max of several values."""
    if all(isinstance(each, Constant) for each in values):
        return Constant({"least": min, "most": max}[name](each.value for each in values))
    dtype = common_type(values)
    code = convert(values[0], dtype)
    for each in values[1:]:
        code = f"ad_kernel::{name}<{c_name(dtype)}>({code}, {convert(each, dtype)})"
    return Value(code, Scalar(dtype))


def part(value, name):
    """The attribute real or imag of a number."""
    value = as_value(value)
    dtype = value.type.dtype
    if dtype.kind != "c":
        return value if name == "real" else Value(literal(0, dtype), value.type)
    return Value(f"({value.code}).{name}()", Scalar(np.float32 if dtype == np.complex64 else np.float64))
