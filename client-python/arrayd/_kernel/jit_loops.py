"""For loops of Python as those of C++."""
import ast

import numpy as np

from . import jit_operations as operations
from .jit_expressions import Builtin
from .jit_values import Constant, Scalar, Value, as_value, convert, is_number
from .types import c_name

_INDEX = "long long"


class Loops:
    """The statement for, of functions that are translated."""

    def _do_for(self, node):
        """A for loop over a range. The bounds are computed once, and assigning to the variable does not change how
        often it runs: as in Python."""
        if node.orelse:
            raise NotImplementedError("else of a loop cannot be translated")
        call = node.iter
        function = self.expression(call.func) if isinstance(call, ast.Call) else Constant(None)
        special = isinstance(function, Constant) and isinstance(function.value, Builtin) \
            and function.value.__name__ == "range"
        if not isinstance(function, Constant) or not special and function.value is not range:
            raise NotImplementedError("a for loop must be over range() or jit.range()")
        named = {each.arg: self.expression(each.value) for each in call.keywords}
        unroll = named.pop("unroll", None) if special else None
        if named:
            raise TypeError(f"range has no parameter {', '.join(named)}")
        if not isinstance(node.target, ast.Name):
            raise NotImplementedError("the variable of a for loop must be a name")
        bounds = [self.expression(each) for each in call.args]
        if not 1 <= len(bounds) <= 3:
            raise TypeError(f"range takes one to three arguments, not {len(bounds)}")
        self._loop(node, bounds, unroll)

    def _loop(self, node, bounds, unroll):
        start, stop = ([Constant(0)] + bounds)[:2] if len(bounds) == 1 else bounds[:2]
        step = bounds[2] if len(bounds) == 3 else Constant(1)
        for each in (start, stop, step):
            if not is_number(each) and as_value(each).type.dtype.kind not in "iub" \
                    or is_number(each) and not isinstance(each.value, int):
                raise TypeError("range takes integers")
        if isinstance(step, Constant) and step.value == 0:
            raise ValueError("range takes no step of 0")
        kind = operations.common_type([start, stop, step] if not is_number(step) or step.value > 0 else [start, stop])
        if kind.kind not in "iu" or not self.integers:  # elsewhere Python's range counts, whatever its bounds are
            kind = np.dtype(np.int64)
        if is_number(step) and step.value < 0 and kind.kind == "u":
            kind = np.dtype(np.int64)
        self._count += 1
        i, end, by = (f"{letter}_{self._count}" for letter in ("i", "e", "s"))
        values = [convert(as_value(each), np.int64, "unsafe") for each in (start, stop, step)]
        if node.target.id not in self.variables:
            self.variables[node.target.id] = Value(self.declare(node.target.id, Scalar(kind)), Scalar(kind))
        test = f"{i} < {end}" if is_number(step) and step.value > 0 else f"{i} > {end}" if is_number(step) \
            else f"({by} > 0 ? {i} < {end} : {by} < 0 && {i} > {end})"
        if unroll is not None:
            self.emit(_pragma(unroll))
        self.emit(f"for ({_INDEX} {i} = {values[0]}, {end} = {values[1]}, {by} = {values[2]}; {test}; {i} += {by}) {{")
        self.set_variable(node.target.id, Value(f"(({c_name(kind)}){i})", Scalar(kind)))
        self.inner(node.body)
        self.emit("}")


def _pragma(unroll):
    if not isinstance(unroll, Constant) or not (unroll.value is None or isinstance(unroll.value, int)):
        raise TypeError("unroll must be a constant: a bool or how many rounds")
    if unroll.value is None:
        return ""
    return "#pragma unroll" if unroll.value is True else f"#pragma unroll({max(int(unroll.value), 1)})"
