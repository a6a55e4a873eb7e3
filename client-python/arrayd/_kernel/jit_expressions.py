"""Expressions of Python as expressions of C++."""
import ast
import inspect
import warnings

import numpy as np
from numpy.exceptions import ComplexWarning

from . import jit_iterators as iterators
from . import jit_operations as operations
from . import jit_syntax as syntax
from .jit_values import (Array, Constant, Iterator, Scalar, Several, Shared, Storage, Structure, Tuple, Value, as_scalar,
                         as_value, convert, truth)
from .types import c_name

_BINARY = {ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide", ast.FloorDiv: "floor_divide",
           ast.Mod: "remainder", ast.Pow: "power", ast.LShift: "left_shift", ast.RShift: "right_shift",
           ast.BitAnd: "bitwise_and", ast.BitOr: "bitwise_or", ast.BitXor: "bitwise_xor"}
_UNARY = {ast.USub: "negative", ast.UAdd: "positive", ast.Invert: "invert"}
_COMPARE = {ast.Eq: "equal", ast.NotEq: "not_equal", ast.Lt: "less", ast.LtE: "less_equal", ast.Gt: "greater",
            ast.GtE: "greater_equal"}
_CASTS = {int: np.int64, float: np.float64, complex: np.complex128, bool: np.bool_}


class Expressions:
    """Translates the expressions of a function. A subclass has `variables`, values by name; `own`, the names that
    the function assigns; `look`, which finds all others; `integers`, whether operations of integers stay integers; and
    `call_function`."""

    def expression(self, node):
        """The value of an expression: a Value, Constant or Tuple."""
        method = getattr(self, "_" + type(node).__name__.lower(), None)
        if method is None:
            raise NotImplementedError(f"{type(node).__name__} cannot be translated")
        return method(node)

    def _constant(self, node):
        return Constant(node.value)

    def _name(self, node):
        if node.id in self.variables:
            return self.variables[node.id]
        if node.id in self.own:
            raise NameError(f"{node.id} is used before it is assigned")
        return wrapped(self.look(node.id))

    def _tuple(self, node):
        return Tuple([self.expression(each) for each in node.elts])

    _list = _tuple

    def _binop(self, node):
        return self.binary(node.op, self.expression(node.left), self.expression(node.right))

    def binary(self, op, left, right):
        """The value of a binary operator."""
        name = _BINARY.get(type(op))
        if name is None:
            raise NotImplementedError(f"operator {type(op).__name__} cannot be translated")
        if isinstance(left, Tuple) and isinstance(right, Tuple) and name == "add":
            return Tuple(left.items + right.items)
        if iterators.is_iterator(left) or iterators.is_iterator(right):
            return iterators.operation(op, left, right)
        return operations.operation(name, [left, right], self.integers)

    def _unaryop(self, node):
        value = self.expression(node.operand)
        if isinstance(node.op, ast.Not):
            value = truth(value)
            return Constant(not value.value) if isinstance(value, Constant) else Value(f"(!{value.code})", value.type)
        return operations.operation(_UNARY[type(node.op)], [value])

    def _boolop(self, node):
        """and, or: of what is known only what decides is translated. Others give a bool, so they must be bools unless
        only their truth counts."""
        both = isinstance(node.op, ast.And)
        codes = []
        for each in node.values:
            value = self.expression(each)
            if isinstance(value, Value) and not self.testing and as_scalar(value).type.dtype.kind != "b":
                raise TypeError(f"and and or of {value.type} give a bool here; compare it, or use a conditional "
                                "expression")
            test = truth(value)
            if not isinstance(test, Constant):
                codes.append(test.code)
            elif test.value != both:
                codes.append("false" if both else "true")
                break
        if not codes:
            return Constant(both)
        if codes in (["false"], ["true"]):
            return Constant(codes == ["true"])
        return Value(f"({' && '.join(codes)})" if both else f"({' || '.join(codes)})", Scalar(bool))

    def test(self, node):
        """The truth of an expression."""
        before, self.testing = self.testing, True
        try:
            return truth(self.expression(node))
        finally:
            self.testing = before

    def _compare(self, node):
        operands = [self.expression(each) for each in (node.left, *node.comparators)]
        tests = [self._one_comparison(op, *operands[place:place + 2]) for place, op in enumerate(node.ops)]
        for value in operands[1:-1]:
            if isinstance(value, Value) and "atomic" in value.code:
                raise NotImplementedError("the middle of a chained comparison is computed twice; assign it before")
        if any(isinstance(test, Constant) and not test.value for test in tests):
            return Constant(False)
        codes = [test.code for test in tests if not isinstance(test, Constant)]
        if not codes:
            return Constant(True)
        return Value(codes[0] if len(codes) == 1 else f"({' && '.join(codes)})", Scalar(bool))

    def _one_comparison(self, op, left, right):
        if isinstance(op, (ast.Is, ast.IsNot)):
            same = isinstance(left, Constant) and isinstance(right, Constant) and left.value is right.value
            return Constant(same == isinstance(op, ast.Is))
        if isinstance(op, (ast.In, ast.NotIn)):
            items = right.items if isinstance(right, Tuple) else [wrapped(each) for each in right.value]
            codes = [operations.operation("equal", [left, each]) for each in items]
            if all(isinstance(each, Constant) for each in codes):
                return Constant(any(each.value for each in codes) == isinstance(op, ast.In))
            either = " || ".join(as_value(each).code for each in codes)
            return Value(f"({either})" if isinstance(op, ast.In) else f"(!({either}))", Scalar(bool))
        if isinstance(left, Constant) and isinstance(right, Constant) and isinstance(op, (ast.Eq, ast.NotEq)):
            return Constant((left.value == right.value) == isinstance(op, ast.Eq))
        if iterators.is_iterator(left) or iterators.is_iterator(right):
            return iterators.operation(op, left, right)
        if not isinstance(op, (ast.Eq, ast.NotEq)) and any(map(operations.is_complex, (left, right))):
            raise TypeError(f"complex numbers have no order, so none is {_COMPARE[type(op)].partition('_')[0]}")
        return operations.operation(_COMPARE[type(op)], [left, right])

    def _ifexp(self, node):
        test = self.test(node.test)
        if isinstance(test, Constant):
            return self.expression(node.body if test.value else node.orelse)
        return operations.choose(test, self.expression(node.body), self.expression(node.orelse))

    # ---- attributes and items ----

    def _attribute(self, node):
        value, name = self.expression(node.value), node.attr
        if isinstance(value, Constant):
            return wrapped(getattr(value.value, name))
        if isinstance(value, Value) and isinstance(value.type, Array):
            return _array_attribute(value, name)
        if isinstance(value, Value) and isinstance(value.type, Structure) and name in value.type.methods:
            method = value.type.methods[name]
            return Constant(Builtin(name, "", lambda translator, *args: method(translator, value.code, *args)))
        if isinstance(value, Value) and isinstance(value.type, Scalar):
            if name in ("real", "imag"):
                return operations.part(value, name)
            if name == "dtype":
                return Constant(value.type.dtype)
        kind = getattr(value, "type", "a tuple")
        raise AttributeError(f"{kind} has no attribute {name} in a kernel")

    def _subscript(self, node):
        value = self.expression(node.value)
        if isinstance(value, Constant):
            key = self.expression(node.slice)
            return wrapped(value.value[_known(key)])
        if isinstance(value, Tuple):
            return self._item(value, self.expression(node.slice))
        if isinstance(value, Value) and isinstance(value.type, Several):
            place = range(len(value.type.types))[_known(self.expression(node.slice))]
            return Value(f"({value.code})._{place}", value.type.types[place], value.roots)
        key = self.expression(node.slice)
        if isinstance(value.type, Storage):
            return Value(f"{value.code}[{_indices([key])[0]}]", value.type.element)
        if isinstance(value.type, Array) and 0 < len(keys := _keys(key)) < value.type.ndim:
            return _row(value, keys)
        return Value(element(value, key), Scalar(value.type.dtype), value.roots)

    def _item(self, value, key):
        if isinstance(key, Constant):
            return value.items[key.value]
        if value.runtime is None:
            raise TypeError("an item of a tuple must be named by a constant")
        return Value(value.runtime.format(convert(key, np.int64)), as_value(value.items[0]).type)

    def element(self, value, node):
        """The C++ of an element of an array, as something that can be assigned."""
        return element(value, self.expression(node))

    # ---- calls ----

    def _call(self, node):
        function = self.expression(node.func)
        arguments = []
        for each in node.args:
            if isinstance(each, ast.Starred):
                found = self.expression(each.value)
                arguments += found.items if isinstance(found, Tuple) else [wrapped(one) for one in _known(found)]
            else:
                arguments.append(self.expression(each))
        if any(each.arg is None for each in node.keywords):
            raise NotImplementedError("** cannot be translated")
        named = {each.arg: self.expression(each.value) for each in node.keywords}
        if not isinstance(function, Constant):
            raise TypeError("only functions that are known when a kernel is made can be called in it")
        return self.call(function.value, arguments, named)

    def call(self, function, arguments, named):
        """The value of a call."""
        if isinstance(function, Builtin):
            return function.translate(self, *arguments, **named)
        if (name := operations.name_of(function)) and named.keys() <= {"dtype"}:
            return operations.operation(name, arguments, dtype=unwrapped(named.get("dtype", Constant(None))))
        if isinstance(function, np.dtype) or isinstance(function, type) and (function in _CASTS
                                                                             or issubclass(function, np.generic)):
            return self._cast(np.dtype(_CASTS.get(function, function)) if isinstance(function, type) else function,
                              arguments, named)
        special = _FUNCTIONS.get(getattr(function, "__name__", None)) if _is_known(function) else None
        if special is not None:
            return special(*arguments, **named)
        known = all(isinstance(each, Constant) for each in [*arguments, *named.values()])
        if (inspect.isfunction(function) and not (known and syntax.makes_functions(function))
                or hasattr(function, "_target")):
            return self.call_function(getattr(function, "_target", function), arguments, named)
        if known:
            return wrapped(function(*(each.value for each in arguments), **{k: v.value for k, v in named.items()}))
        raise TypeError(f"{getattr(function, '__name__', function)!r} cannot be called in a kernel")

    def _cast(self, dtype, arguments, named):
        if named or not 1 <= len(arguments) <= 2 or len(arguments) == 2 and dtype.kind != "c":
            raise TypeError(f"{dtype.name} takes one number")
        c_name(dtype)
        if len(arguments) == 2:
            half = np.dtype(np.float32 if dtype == np.complex64 else np.float64)
            parts = [convert(each, half, "unsafe") for each in arguments]
            return Value(f"{c_name(dtype)}({parts[0]}, {parts[1]})", Scalar(dtype))
        if isinstance(arguments[0], Constant):
            return Constant(dtype.type(arguments[0].value))
        given = as_scalar(arguments[0])
        if given.type.dtype.kind == "c" and dtype.kind not in "cb":
            warnings.warn("Casting complex values to real discards the imaginary part", ComplexWarning, stacklevel=2)
        return Value(convert(arguments[0], dtype, "unsafe"), Scalar(dtype))


class Builtin:
    """A function that has a meaning in kernels only."""

    def __init__(self, name, doc, translate):
        self.__name__ = self.__qualname__ = name
        self.__doc__ = doc
        self.translate = translate
        parameters = [each.replace(default=getattr(each.default, "value", each.default))
                      for each in list(inspect.signature(translate).parameters.values())[1:]]
        self.__signature__ = inspect.Signature(parameters)

    def __repr__(self):
        return f"<arrayd.cupyx.jit function {self.__name__}>"

    def __call__(self, *args, **kwargs):
        raise RuntimeError(f"{self.__name__} can only be called in a function that jit.rawkernel decorates")


def wrapped(value):
    """An object of Python as a value of a kernel."""
    if isinstance(value, (Value, Constant, Tuple)):
        return value
    if isinstance(value, (tuple, list)):
        return Tuple([wrapped(each) for each in value])
    return Constant(value)


def unwrapped(value):
    """The object of Python that a value is. TypeError where only the kernel will know."""
    return _known(value)


def _known(value):
    if isinstance(value, Tuple):
        return tuple(map(_known, value.items))
    if not isinstance(value, Constant):
        raise TypeError("a constant is needed here, and this is known only when the kernel runs")
    return value.value


def element(value, key):
    """The C++ of an element of an array, as something that can be assigned."""
    value = as_value(value)
    if not isinstance(value.type, (Array, Shared, Iterator)):
        raise TypeError(f"{value.type} has no elements")
    keys = _keys(key)
    if len(keys) != value.type.ndim:
        raise IndexError(f"an array of {value.type.ndim} dimensions needs as many indices, not {len(keys)}")
    codes = _indices(keys)
    if value.type.ndim == 1:
        return f"{value.code}[{codes[0]}]"
    return f"ad_kernel::item({value.code}{''.join(', ' + each for each in codes)})"


def _keys(key):
    return key.items if isinstance(key, Tuple) else [key]


def _indices(keys):
    """The C++ of indices."""
    codes = []
    for each in keys:
        each = as_scalar(each, "an integer")
        if each.type.dtype.kind not in "iub":
            raise IndexError(f"an index must be an integer, not {each.type}")
        codes.append(f"(ptrdiff_t)({each.code})")
    return codes


def _row(value, keys):
    """The array that is left of one when its first indices are given."""
    kind = Array(value.type.dtype, value.type.ndim - len(keys), value.type.flat)
    return Value(f"ad_kernel::row({', '.join([value.code, *_indices(keys)])})", kind, value.roots)


def _array_attribute(value, name):
    kind, index = value.type, Scalar(np.int64)
    if name in ("begin", "end"):
        return Constant(Builtin(name, "", lambda translator: iterators.place_in(value, name == "end")))
    if name in ("shape", "strides"):
        pattern = f"((long long){value.code}.{name}()[{{}}])"
        return Tuple([Value(pattern.format(axis), index) for axis in range(kind.ndim)], pattern)
    if name == "size":
        return Value(f"((long long){value.code}.size())", index)
    if name == "ndim":
        return Constant(kind.ndim)
    if name == "dtype":
        return Constant(kind.dtype)
    if name in ("itemsize", "nbytes"):
        size = Constant(kind.dtype.itemsize)
        return size if name == "itemsize" else operations.operation("multiply", [_array_attribute(value, "size"), size])
    raise AttributeError(f"{kind} has no attribute {name} in a kernel")


def _is_known(function):
    return (getattr(function, "__module__", None) or "").partition(".")[0] in ("builtins", "arrayd", "numpy", "math")


def _len(value):
    if isinstance(value, Tuple):
        return Constant(len(value.items))
    if isinstance(value, Constant):
        return Constant(len(value.value))
    if not isinstance(value.type, Array) or not value.type.ndim:
        raise TypeError(f"{value.type} has no length")
    return _array_attribute(value, "shape").items[0]


def _extreme(name):
    def function(*values):
        values = values[0].items if len(values) == 1 and isinstance(values[0], Tuple) else values
        if not values:
            raise TypeError("min and max take at least one number")
        return operations.extreme(name, list(values))
    return function


def _round(value, digits=None):
    if digits is not None:
        raise NotImplementedError("round to digits cannot be translated")
    rounded = operations.operation("rint", [value])
    return Value(convert(rounded, np.int64, "unsafe"), Scalar(np.int64))


def _where(condition, yes, no):
    test = truth(condition)
    return operations.choose(test, yes, no) if isinstance(test, Value) else yes if test.value else no


def _clip(value, low, high):
    for name, bound in (("maximum", low), ("minimum", high)):
        if not (isinstance(bound, Constant) and bound.value is None):
            value = operations.operation(name, [value, bound])
    return value


# By the name of the function, which is Python's, NumPy's or arrayd's.
_FUNCTIONS = {
    "len": _len, "min": _extreme("least"), "max": _extreme("most"), "round": _round, "where": _where, "clip": _clip,
    "abs": lambda value: operations.operation("absolute", [value]),
    "pow": lambda a, b: operations.operation("power", [a, b]),
    "divmod": lambda a, b: Tuple([operations.operation(name, [a, b]) for name in ("floor_divide", "remainder")]),
    "real": lambda value: operations.part(value, "real"), "imag": lambda value: operations.part(value, "imag"),
}
