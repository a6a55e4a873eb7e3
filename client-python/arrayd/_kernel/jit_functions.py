"""Functions of Python as functions of C++: statements, variables, and what is called."""
import ast
import inspect
import itertools

import numpy as np

from . import jit_syntax as syntax
from .jit_expressions import Expressions, unwrapped, wrapped
from .jit_loops import Loops
from .jit_values import Array, Constant, Iterator, Scalar, Several, Shared, Tuple, Value, as_value, convert
from .types import c_name

_MISMATCH = "Data type mismatch of variable: "  # CuPy's words, which programs may look for


class Program:
    """The functions of one kernel. parts: which texts the kernel begins with. functions: the C++ of those that are
    called, in order."""

    def __init__(self, integers):
        self.integers, self.functions, self.structures = integers, [], {}
        self._known, self._under_way, self._numbers = {}, [], itertools.count()

    def function(self, python, arguments):
        """A device function for arguments of these types: its name, what it returns, and which parameters it writes."""
        key = python, tuple(argument.type.key if isinstance(argument, Value) else _identity(argument)
                            for argument in arguments)
        if key in self._under_way:
            raise ValueError(f"{python.__name__} calls itself, which cannot be translated")
        if key not in self._known:
            self._under_way.append(key)
            try:
                translated = Function(self, python, arguments, f"{_ascii(python.__name__)}_{next(self._numbers)}")
                self.functions.append(translated.device_text())
            finally:
                self._under_way.pop()
            self._known[key] = translated
        return self._known[key]

    def structure(self, kind):
        """Define the structure of a tuple that a function returns."""
        self.structures.setdefault(kind.c, kind.definition())

    def text(self):
        """All that comes before the kernel."""
        return "".join([*self.structures.values(), *self.functions])


def _identity(argument):
    if isinstance(argument, Tuple):
        return tuple(map(_identity, argument.items))
    if isinstance(argument, Constant):
        return "constant", type(argument.value), id(argument.value)
    return argument.type.key


def _ascii(name):
    return name if name.isascii() and name.isidentifier() else "u" + "".join(
        c if c.isascii() and c.isalnum() else f"_{ord(c):x}_" for c in name)


class Function(Loops, Expressions):
    """A function of Python, translated for arguments that are values (numbers and arrays) or known."""

    def __init__(self, program, python, arguments, name, kernel=False):
        self.program, self.integers, self.kernel = program, program.integers, kernel
        self.python, self.name = python, "ad_" + name if not kernel else name
        self.node, self.file = syntax.tree(python)
        self.look, self.own = syntax.outer(python), syntax.assigned(self.node)
        self.testing, self.returned, self.returns, self.depth = False, None, False, 0
        self.declared, self.parameters, self.before = {}, [], []
        self.variables, self.written, self.line, self._count = {}, set(), self.node.lineno, 0
        self._bind(arguments)
        self.lines = []
        if isinstance(self.node, ast.Lambda):
            self._located(self.node, lambda: self._give(self.expression(self.node.body)))
        else:
            self.block(self.node.body)

    def _bind(self, arguments):
        """Make variables of the parameters."""
        signature = self.node.args
        if signature.vararg or signature.kwarg or signature.kwonlyargs:
            raise TypeError(f"{self.python.__name__}: parameters of a kernel are positional, without * and **")
        names = [each.arg for each in signature.posonlyargs + signature.args]
        defaults = self.python.__defaults__ or ()
        missing = names[len(arguments):]
        if len(arguments) > len(names) or len(missing) > len(defaults):
            raise TypeError(f"{self.python.__name__} takes {len(names)} arguments, not {len(arguments)}")
        given = [*arguments, *(wrapped(each) for each in defaults[len(defaults) - len(missing):] if missing)]
        for name, value in zip(names, given):
            self.own.add(name)
            if isinstance(value, Tuple):
                unwrapped(value)  # of known items only: those of the caller mean nothing here
            if isinstance(value, Tuple) or isinstance(value, Constant) and not _is_numeric(value.value):
                self.variables[name] = value
                continue
            value = as_value(value)
            if isinstance(value.type, Several):
                raise TypeError(f"{name}: a tuple cannot be passed to a function of a kernel")
            code = "v_" + _ascii(name)
            self.parameters.append((name, value.type, code))
            arrays = isinstance(value.type, (Array, Shared, Iterator))
            self.variables[name] = Value(code, value.type, frozenset([name]) if arrays else frozenset())

    # ---- statements ----

    def block(self, nodes):
        for node in nodes:
            self.line = node.lineno
            self._located(node, lambda: self.statement(node))

    def inner(self, nodes):
        """A block that does not always run."""
        self.depth += 1
        self.block(nodes)
        self.depth -= 1

    def _located(self, node, do):
        """do(), whose errors say where in the Python source they are."""
        try:
            do()
        except Exception as error:
            if getattr(error, "_ad_located", False) or isinstance(error, (RecursionError, Warning)):
                raise
            line = getattr(node, "lineno", self.line)
            first = ast.unparse(node).splitlines()[0]
            kind = type(error) if type(error) in (TypeError, ValueError, NameError, IndexError, NotImplementedError,
                                                  AttributeError, OverflowError, ZeroDivisionError) else TypeError
            # Of other kinds are those of functions of the program, called with what is constant.
            message = str(error) if kind is type(error) else f"{type(error).__name__}: {error}"
            located = kind(f"{message} ({self.file}, line {line}, in {self.python.__name__}: {first})")
            located._ad_located = True
            raise located from error

    def emit(self, text):
        self.lines.append(f'#line {self.line} "{self.file}"\n{text}')

    def statement(self, node):
        method = getattr(self, "_do_" + type(node).__name__.lower(), None)
        if method is None:
            raise NotImplementedError(f"{type(node).__name__} cannot be translated")
        method(node)

    def _do_pass(self, node):
        pass

    def _do_expr(self, node):
        if isinstance(node.value, ast.Constant):
            return
        value = self.expression(node.value)
        if isinstance(value, Value):
            self.emit(f"{value.code};" if value.type is None else f"(void)({value.code});")

    def _do_assign(self, node):
        value = self.settled(self.expression(node.value), len(node.targets) > 1)
        for target in node.targets:
            self.assign(target, value)

    def _do_annassign(self, node):
        if node.value is not None:
            self.assign(node.target, self.expression(node.value))

    def settled(self, value, often):
        """value, computed once and kept if it will be used several times."""
        several = isinstance(value, Value) and isinstance(value.type, Several)
        if several or often and isinstance(value, Value):
            value = Value(self.temporary(as_value(value).code), value.type, value.roots)
        if several:
            return Tuple([Value(f"{value.code}._{place}", kind, value.roots)
                          for place, kind in enumerate(value.type.types)])
        return value

    def temporary(self, code):
        self._count += 1
        name = f"t_{self._count}"
        self.emit(f"const auto {name} = {code};")
        return name

    def assign(self, target, value):
        """target = value"""
        if isinstance(target, (ast.Tuple, ast.List)):
            value = self.settled(value, False)
            if not isinstance(value, Tuple) or len(value.items) != len(target.elts):
                raise ValueError(f"{len(target.elts)} values are needed to unpack")
            items = [self._fresh(each) for each in value.items]  # before any is assigned: a, b = b, a
            for each, item in zip(target.elts, items):
                self.assign(each, item)
        elif isinstance(target, ast.Name):
            self.set_variable(target.id, value)
        elif isinstance(target, ast.Subscript):
            self.store(self.expression(target.value), target.slice, value)
        else:
            raise NotImplementedError(f"assigning to {type(target).__name__} cannot be translated")

    def store(self, array, key, value):
        array = as_value(array)
        place = self.element(array, key)
        self.written |= array.roots
        self.emit(f"{place} = {convert(value, array.type.dtype)};")

    def set_variable(self, name, value):
        before = self.variables.get(name)
        if isinstance(value, Tuple):
            self._set_tuple(name, before, value)
        elif isinstance(value, Constant) and not _is_numeric(value.value):
            known = isinstance(before, Constant) and (before.value is value.value or before.value == value.value)
            if before is not None and not known and (self.depth or not isinstance(before, Constant)):
                raise TypeError(f"{_MISMATCH}{name}: {value.value!r} is no number, and in a loop or a branch the name "
                                "can have no other value than before")
            self.variables[name] = value
        elif isinstance(before, (Tuple, Constant)):
            raise TypeError(f"{_MISMATCH}{name} was no number before, and cannot become one")
        else:
            self._set_value(name, before, value)

    def _set_value(self, name, before, value):
        if before is None:
            kind = as_value(value).type
            roots = value.roots if isinstance(value, Value) else frozenset()
            self.variables[name] = before = Value(self.declare(name, kind), kind, roots)
        if isinstance(before.type, Scalar):
            try:
                code = convert(value, before.type.dtype)
            except TypeError as error:
                raise TypeError(f"{_MISMATCH}{name} is {before.type} from its first assignment on: {error}") from None
        else:
            value = as_value(value)
            if value.type.key != before.type.key:
                raise TypeError(f"{_MISMATCH}{name} is {before.type} from its first assignment on, and cannot become "
                                f"{value.type}")
            before.roots = before.roots | value.roots
            code = value.code
        self.emit(f"{before.code} = {code};")

    def _set_tuple(self, name, before, value):
        """Assign a tuple to a variable: each item has a variable of its own."""
        if before is not None and not (isinstance(before, Tuple) and len(before.items) == len(value.items)):
            raise TypeError(f"{_MISMATCH}{name} was something else before, and cannot become a tuple of "
                            f"{len(value.items)}")
        keys = [f"{name}.{place}" for place in range(len(value.items))]
        for key, each in zip(keys, [self._fresh(each) for each in value.items]):
            self.set_variable(key, each)
        self.variables[name] = Tuple([self.variables[key] for key in keys])

    def _fresh(self, value):
        """value, computed before the variables that it is made of change."""
        if isinstance(value, Tuple) or isinstance(value, Constant):
            return value
        value = as_value(value)
        return Value(self.temporary(value.code), value.type, value.roots)

    def declare(self, name, kind):
        """Declare a variable at the head of the function; its name in C++."""
        if isinstance(kind, Several):
            self.program.structure(kind)
        code = "v_" + _ascii(name)
        self.declared[code] = f"{kind.c} {code};" if isinstance(kind, Array) else f"{kind.c} {code}{{}};"
        return code

    def _do_augassign(self, node):
        if isinstance(node.target, ast.Name):
            now = self.expression(ast.Name(node.target.id, ast.Load()))
            self.set_variable(node.target.id, self.binary(node.op, now, self.expression(node.value)))
            return
        if not isinstance(node.target, ast.Subscript):
            raise NotImplementedError(f"assigning to {type(node.target).__name__} cannot be translated")
        array = as_value(self.expression(node.target.value))
        place = self.element(array, node.target.slice)
        self._count += 1
        name, dtype = f"t_{self._count}", array.type.dtype
        result = self.binary(node.op, Value(name, Scalar(dtype)), self.expression(node.value))
        self.written |= array.roots
        self.emit(f"{{ {c_name(dtype)} &{name} = {place}; {name} = {convert(result, dtype)}; }}")

    def _do_if(self, node):
        test = self.test(node.test)
        if isinstance(test, Constant):
            self.block(node.body if test.value else node.orelse)
            return
        self.emit(f"if ({test.code}) {{")
        self.inner(node.body)
        if node.orelse:
            self.emit("} else {")
            self.inner(node.orelse)
        self.emit("}")

    def _do_while(self, node):
        if node.orelse:
            raise NotImplementedError("else of a loop cannot be translated")
        test = as_value(self.test(node.test))
        self.emit(f"while ({test.code}) {{")
        self.inner(node.body)
        self.emit("}")

    def _do_break(self, node):
        self.emit("break;")

    def _do_continue(self, node):
        self.emit("continue;")

    def _do_return(self, node):
        value = self.expression(node.value) if node.value is not None else Constant(None)
        self._give(value)

    def _give(self, value):
        """return value"""
        if isinstance(value, Constant) and value.value is None or isinstance(value, Value) and value.type is None:
            if self.returned is not None:
                raise TypeError("a function returns a value everywhere or nowhere")
            self.returns = True
            self.emit(f"{value.code}; return;" if isinstance(value, Value) else "return;")
            return
        if self.kernel:
            raise TypeError("a kernel returns nothing")
        if self.returns:
            raise TypeError("a function returns a value everywhere or nowhere")
        value = self.settled(value, False)
        items = value.items if isinstance(value, Tuple) else [value]
        if self.returned is None:
            kinds = [as_value(each).type for each in items]
            self.returned = Several(kinds) if isinstance(value, Tuple) else kinds[0]
            if isinstance(value, Tuple):
                self.program.structure(self.returned)
        kinds = self.returned.types if isinstance(self.returned, Several) else [self.returned]
        if len(kinds) != len(items) or isinstance(value, Tuple) != isinstance(self.returned, Several):
            raise TypeError(f"the function returns {self.returned} before, and something else here")
        codes = [convert(each, kind.dtype) if isinstance(kind, Scalar) else as_value(each).code
                 for kind, each in zip(kinds, items)]
        if isinstance(self.returned, Several):
            self.emit(f"return {self.returned.c}{{{', '.join(codes)}}};")
        else:
            self.emit(f"return {codes[0]};")

    # ---- calls and text ----

    def call_function(self, python, arguments, named):
        """The value of a call of another function of Python."""
        if named:
            names = list(inspect.signature(python).bind(*arguments, **named).arguments.items())
            order = [each for each in inspect.signature(python).parameters]
            if [name for name, _ in names] != order[:len(names)]:
                raise NotImplementedError(f"{python.__name__}: arguments by name must leave none before them out")
            arguments = [value for _, value in names]
        arguments = [as_value(each) if isinstance(each, Constant) and _is_numeric(each.value) else each
                     for each in arguments]
        called = self.program.function(python, arguments)
        values = dict(zip((each[0] for each in called.node_names()), arguments))
        for name in called.written:
            if isinstance(values.get(name), Value):
                self.written |= values[name].roots
        codes = [values[name].code for name, _, _ in called.parameters if name in values]
        codes += [as_value(called.defaults()[name]).code for name, _, _ in called.parameters if name not in values]
        roots = frozenset().union(*(each.roots for each in values.values() if isinstance(each, Value)))
        return Value(f"{called.name}({', '.join(codes)})", called.returned, roots)

    def node_names(self):
        """The names of the parameters, each in a tuple."""
        return [(each.arg,) for each in self.node.args.posonlyargs + self.node.args.args]

    def defaults(self):
        """The parameters' defaults, by name."""
        names, values = [each[0] for each in self.node_names()], self.python.__defaults__ or ()
        return {name: wrapped(value) for name, value in zip(names[len(names) - len(values):], values)}

    def body(self):
        """The function's statements."""
        return "\n".join([*self.declared.values(), *self.before, *self.lines, '#line 1 "generated"', ""])

    def device_text(self):
        """The function in C++."""
        parameters = ", ".join(f"{kind.c} {code}" for _, kind, code in self.parameters)
        returned = "void" if self.returned is None else self.returned.c
        return f"static inline __device__ {returned} {self.name}({parameters}) {{\n{self.body()}}}\n"


def _is_numeric(value):
    return type(value) in (bool, int, float, complex) or isinstance(value, (np.number, np.bool_))
