"""Values of expressions of a translated function: values with a type in C++, constants of Python, tuples of both."""
import re

import numpy as np

from .types import c_name

_NUMBERS = (bool, int, float, complex)
_WIDTH = {"b": 0, "i": 1, "u": 1, "f": 2, "V": 2, "c": 3}  # of dtype.kind


class Scalar:
    """The type of a number."""

    def __init__(self, dtype):
        self.dtype = np.dtype(dtype)
        self.key = self.dtype.name
        self.c = c_name(self.dtype)

    def __str__(self):
        return self.key


class Array:
    """The type of an array; flat: its elements lie in C order without gaps."""

    def __init__(self, dtype, ndim, flat):
        self.dtype, self.ndim, self.flat = np.dtype(dtype), ndim, flat
        self.key = "array", self.dtype.name, ndim, flat
        self.c = f"ad_kernel::array<{c_name(self.dtype)}, {ndim}, {str(flat).lower()}>"

    def __str__(self):
        return f"array of {self.ndim} dimensions of {self.dtype.name}"


class Shared:
    """The type of an array in shared memory."""

    ndim = 1

    def __init__(self, dtype):
        self.dtype = np.dtype(dtype)
        self.key = "shared", self.dtype.name
        self.c = f"{c_name(self.dtype)} *"

    def __str__(self):
        return f"shared memory of {self.dtype.name}"


class Iterator:
    """The type of a place among elements, which has [], and + and - as pointers have."""

    ndim = 1

    def __init__(self, dtype, c):
        self.dtype, self.c = np.dtype(dtype), c
        self.key = "iterator", c

    def __str__(self):
        return f"iterator over {self.dtype.name}"


class Structure:
    """The type of a structure of C++. methods: functions of Python by the names that a kernel calls. They take the
    translator, the C++ of the structure and the arguments."""

    def __init__(self, c, methods=()):
        self.c, self.methods = c, dict(methods)
        self.key = "structure", c

    def __str__(self):
        return self.c


class Storage:
    """The type of an array of structures in shared memory."""

    ndim = 1

    def __init__(self, element):
        self.element, self.c = element, f"{element.c} *"
        self.key = "storage", element.c

    def __str__(self):
        return f"shared memory of {self.element}"


class Several:
    """The type of a tuple that a function returns."""

    def __init__(self, types):
        self.types = tuple(types)
        self.key = "tuple", *(each.key for each in self.types)
        self.c = "ad_" + "_".join(re.sub(r"\W+", "_", each.c) for each in self.types)

    def __str__(self):
        return f"tuple of {', '.join(map(str, self.types))}"

    def definition(self):
        """The structure in C++."""
        fields = " ".join(f"{each.c} _{place};" for place, each in enumerate(self.types))
        return f"struct {self.c} {{ {fields} }};\n"


class Pair(Several):
    """The type of two values that an algorithm returns."""

    def __init__(self, types):
        super().__init__(types)
        self.c = f"ad_algorithm::pair<{', '.join(each.c for each in self.types)}>"

    def definition(self):
        return ""


class Value:
    """A value that C++ computes. type None: of a call that returns nothing. roots: the parameters whose elements it may
    refer to, of arrays."""

    def __init__(self, code, type_, roots=frozenset()):
        self.code, self.type, self.roots = code, type_, roots


class Constant:
    """A Python object that is known when the function is translated."""

    def __init__(self, value):
        self.value = value


class Tuple:
    """Several values. runtime: the C++ of an item whose number is the C++ text {}, of items of one type."""

    def __init__(self, items, runtime=None):
        self.items, self.runtime = list(items), runtime


def is_number(value):
    """Whether value is a constant number of Python's, whose type follows what it is used with."""
    return isinstance(value, Constant) and type(value.value) in _NUMBERS


def as_value(value):
    """value as one that C++ has; a constant number gets its default type. TypeError for what is none."""
    if isinstance(value, Value):
        if value.type is None:
            raise TypeError("the call returns nothing")
        return value
    if isinstance(value, Constant) and (is_number(value) or isinstance(value.value, (np.number, np.bool_))):
        number = value.value
        dtype = number.dtype if isinstance(number, np.generic) else default(number)
        return Value(literal(number, dtype), Scalar(dtype))
    if isinstance(value, Tuple):
        raise TypeError("a tuple cannot be used here")
    raise TypeError(f"{value.value!r} cannot be used as a value in a kernel")


def as_scalar(value, what="a number"):
    """as_value, of numbers only."""
    value = as_value(value)
    if not isinstance(value.type, Scalar):
        raise TypeError(f"{what} is needed here, not {value.type}")
    return value


def default(number):
    """The type of a number of Python's that nothing else gives one: int64, uint64, float64, complex128 or bool."""
    if type(number) is int and number >= 1 << 63:
        return np.dtype(np.uint64)
    return np.dtype(type(number))


def literal(number, dtype):
    """A number as a constant of C++."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return "true" if number else "false"
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        if not limits.min <= number <= limits.max:
            raise OverflowError(f"{number} is out of bounds for {dtype.name}")
        number = int(number)
        text = f"{number}ull" if dtype == np.uint64 else "(-9223372036854775807ll - 1)" if number == -1 << 63 \
            else f"{number}ll"
        return f"({number})" if dtype == np.int32 and number != -1 << 31 else f"({c_name(dtype)})({text})"
    if dtype.kind == "c":
        number, part = complex(number), np.dtype(np.float32 if dtype == np.complex64 else np.float64)
        return f"{c_name(dtype)}({literal(number.real, part)}, {literal(number.imag, part)})"
    exact = float(np.asarray(float(number)).astype(dtype))
    if not np.isfinite(exact):
        bits = "0x7ff8000000000000" if exact != exact else "0x7ff0000000000000" if exact > 0 else "0xfff0000000000000"
        text = f"ad_kernel::same_bits<double>({bits}ull)"
    else:
        text = repr(exact)
    return f"({text})" if dtype == np.float64 else f"(({c_name(dtype)})({text}))"


def arithmetic_c(dtype):
    """The type of C++ that numbers of a type are computed with."""
    return "float" if dtype.name in ("float16", "bfloat16") else c_name(dtype)


def cast(code, source, target):
    """C++ that makes a number of one type one of another."""
    if source == target:
        return code
    if source.name in ("float16", "bfloat16"):
        code = f"(float)({code})"
    if target.kind == "c":
        part = "float" if target == np.complex64 else "double"
        return f"ad_kernel::to_complex<{part}>({code})" if source.kind == "c" \
            else f"complex<{part}>(({part})({code}), ({part})0)"
    if target.kind == "b":
        return f"(({code}) != {c_name(source)}(0))" if source.kind == "c" else f"(({code}) != 0)"
    if source.kind == "c":
        code = f"({code}).real()"
    return f"(({c_name(target)})({code}))"


def convert(value, dtype, casting="same_kind"):
    """The C++ of a value as a number of a type. TypeError where that loses more than casting allows."""
    dtype = np.dtype(dtype)
    if is_number(value):
        if casting != "unsafe" and _WIDTH[default(value.value).kind] > _WIDTH[dtype.kind]:
            raise TypeError(f"{value.value!r} cannot become {dtype.name} here; call arrayd.{dtype.name} to say so")
        number = value.value
        if casting == "unsafe" and dtype.kind in "iub":
            number = dtype.type(np.asarray(number).astype(dtype))
        return literal(number, dtype)
    value = as_scalar(value)
    if casting != "unsafe" and not np.can_cast(value.type.dtype, dtype, casting):
        raise TypeError(f"{value.type} cannot become {dtype.name} here; call arrayd.{dtype.name} to say so")
    return cast(value.code, value.type.dtype, dtype)


def truth(value):
    """The C++ of whether a value is true, or a Constant where that is known."""
    if isinstance(value, Constant):
        return Constant(bool(value.value))
    if isinstance(value, Tuple):
        return Constant(bool(value.items))
    value = as_scalar(value, "a number or bool")
    return Value(cast(value.code, value.type.dtype, np.dtype(bool)), Scalar(bool))
