"""Iterators in translated functions: begin() and end() of arrays, and what is computed with places."""
import ast

import numpy as np

from .jit_values import Array, Constant, Iterator, Scalar, Shared, Value, as_scalar
from .types import c_name

_COMPARED = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}


def is_iterator(value):
    """Whether a value is a place among elements."""
    return isinstance(value, Value) and isinstance(value.type, (Iterator, Shared))


def type_of_iterator(kind):
    """The type of an iterator over an array: a pointer where its elements lie without gaps."""
    return Iterator(kind.dtype, f"{c_name(kind.dtype)} *" if kind.flat else f"ad_algorithm::position<{kind.c}>")


def place_in(array, end):
    """The iterator at the begin or the end of an array, whose elements it counts in C order."""
    kind, at = type_of_iterator(array.type), f"{array.code}.size()" if end else "0"
    code = f"({array.code}.data_ + {at})" if array.type.flat else f"{kind.c}::of({array.code}, {at})"
    return Value(code, kind, array.roots)



def operation(op, left, right):
    """The value of an operator where an operand is an iterator. TypeError for operators that iterators do not have."""
    if is_iterator(left) and is_iterator(right):
        return _between(op, left, right)
    if isinstance(op, ast.Add) and is_iterator(right):
        left, right = right, left
    if not isinstance(op, (ast.Add, ast.Sub)) or not is_iterator(left):
        raise TypeError(f"an iterator and {type(op).__name__}: there are +, - and comparisons")
    steps = as_scalar(right, "an integer")
    if steps.type.dtype.kind not in "iu":
        raise TypeError(f"an iterator moves by integers, not by {steps.type}")
    sign = "+" if isinstance(op, ast.Add) else "-"
    return Value(f"({left.code} {sign} (ptrdiff_t)({steps.code}))", left.type, left.roots)


def _between(op, left, right):
    if left.type.c != right.type.c:
        raise TypeError(f"{left.type} and {right.type} are of different arrays")
    distance = f"({left.code} - {right.code})"
    if isinstance(op, ast.Sub):
        return Value(f"((long long){distance})", Scalar(np.int64))
    if type(op) not in _COMPARED:
        raise TypeError(f"two iterators and {type(op).__name__}: there are - and comparisons")
    return Value(f"({distance} {_COMPARED[type(op)]} 0)", Scalar(bool))


def element_type(value):
    """The type of what an iterator points to."""
    if not is_iterator(value):
        what = "a number" if isinstance(value, Constant) else getattr(value, "type", "a tuple")
        raise TypeError(f"an iterator is needed here, such as array.begin(), not {what}")
    return value.type.dtype
