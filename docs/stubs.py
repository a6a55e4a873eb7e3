"""Writes the type stubs of the package: stubs.py FOLDER; `arrayd` must be importable. FOLDER/arrayd gets a .pyi for
each public module and for arrayd._core, and py.typed.

Names and parameters come from the running package, types from the docstrings' Parameters and Returns, whose words are
few: "array", "int or tuple of ints", "tuple of ndarrays". A type that these do not say is Any. Results that depend on
a flag are overloads (FLAGS), and what no rule gives is written out (CUSTOM).
"""
import inspect
import pathlib
import re
import sys

import numpy as np

import arrayd as ad
import public

HEADER = '''# Made by docs/stubs.py from the package; not to be edited.
import builtins as _b
from collections.abc import Callable as _Callable, Iterator as _Iterator, Sequence as _Sequence
from typing import Any as _Any, Literal as _Literal, NamedTuple as _NamedTuple, overload as _overload

import numpy as _np
import numpy.typing as _npt

from arrayd._core import _Array, _ArrayLike, _Axis, _DType, _Index, _Number, _Operand, _Path, _Shape
'''
CORE = '''# Made by docs/stubs.py from the package; not to be edited.
import builtins as _b
import os as _os
from collections.abc import Callable as _Callable, Iterator as _Iterator, Sequence as _Sequence
from typing import Any as _Any, ClassVar as _ClassVar, Literal as _Literal, Protocol as _Protocol, Self as _Self
from typing import SupportsIndex, TypeAlias as _TypeAlias

import numpy as _np
import numpy.typing as _npt

from arrayd import flatiter as _flatiter
from arrayd.cuda import Device as _Device

_Index: _TypeAlias = SupportsIndex
_Number: _TypeAlias = _b.complex | _np.generic
_Array: _TypeAlias = ndarray
_Operand: _TypeAlias = ndarray | _Number
_ArrayLike: _TypeAlias = ndarray | _npt.ArrayLike | _Sequence[_Any]
_Shape: _TypeAlias = _Index | _Sequence[_Index] | ndarray
_Axis: _TypeAlias = _Index | _Sequence[_Index] | None
_DType: _TypeAlias = _npt.DTypeLike
_Path: _TypeAlias = _b.str | _os.PathLike[_b.str] | _Readable | _Writable

class _Readable(_Protocol):
    def read(self, size: _b.int = ..., /) -> _Any: ...

class _Writable(_Protocol):
    def write(self, data: _Any, /) -> _Any: ...

def __getattr__(name: _b.str) -> _Any: ...
'''
# The type of a parameter, by the words that its description begins with.
PARAMETERS = [
    (r"int or tuple of ints|tuple of ints", "_Shape"),
    (r"(a |an |the |sequence of |list of |at least )*((bool|int|real|complex|square|sorted|host|\d-d) )*arrays?\b"
     r"|what asarray takes|numbers? or arrays?", "_ArrayLike"),
    (r"path\b(?!.*iterable)", "_Path"),
]
# Parameters of which the default does not show all that they take.
_WIDER = {"ord", "fmt", "bins", "comments", "stat_length", "mode"}
_COUNTS = {"k", "n", "m", "axis1", "axis2", "offset", "decimals", "ndmin", "num", "start", "skiprows", "skip_header",
           "count"}
# By name, where the description does not say.
NAMES = {
    "axis": "_Axis", "dtype": "_DType | None", "out": "_Array | tuple[_Array, ...] | None", "keepdims": "_b.bool",
    "a": "_ArrayLike", "x": "_ArrayLike", "y": "_ArrayLike", "x1": "_ArrayLike", "x2": "_ArrayLike", "b": "_ArrayLike",
    "v": "_ArrayLike", "m": "_ArrayLike", "arr": "_ArrayLike", "ary": "_ArrayLike", "where": "_ArrayLike",
    "order": "_b.str | None", "casting": "_b.str", "size": "_Shape | None",
}
RETURNED = [  # by the first words of Returns; \\1 is a type of Python's
    (r"(None|nothing)\b", "None"),
    (r"numpy\.ndarray", "_npt.NDArray[_Any]"),
    (r"numpy\.dtype", "_np.dtype[_Any]"),
    (r"(bool|int|float|str|bytes|memoryview|type)\b(?! ?\w* ?ndarray)", r"_b.\1"),
    (r"dict\b", "dict[_b.str, _Any]"),
    (r"tuple of ([\w-]+ )*ndarrays", "tuple[_Array, ...]"),
    (r"tuple of the counts, shape", "tuple[_Array, _Array]"),
    (r"tuple of ints", "tuple[_b.int, ...]"),
    (r"list of ndarrays", "list[_Array]"),
    (r"(Generator|RandomState|Stream|poly1d)\.?$", r"\1"),
    (r"([\w-]+ )*ndarray\b", "_Array"),
]
# Results that are sometimes something else, of which the first words do not tell.
_ELSE = re.compile(r"tuple of (them|it)|a tuple|, or None|NpzFile|poly1d if|a list of|1\.0 for no roots")
# Functions whose result a value of a parameter changes: the parameters, their type otherwise, the value, the result.
FLAGS = {
    "linspace": (["retstep"], "_Literal[False]", "_Literal[True]", "tuple[_Array, _Array]"),
    "average": (["returned"], "_Literal[False]", "_Literal[True]", "tuple[_Array, _Array]"),
    "intersect1d": (["return_indices"], "_Literal[False]", "_Literal[True]", "tuple[_Array, _Array, _Array]"),
    "unique": (["return_index", "return_inverse", "return_counts"], "_Literal[False]", "_Literal[True]",
               "tuple[_Array, ...]"),
    "svd": (["compute_uv"], "_Literal[True]", "_Literal[False]", "_Array"),
    "qr": (["mode"], '_Literal["reduced", "complete", "raw"]', '_Literal["r"]', "_Array"),
}
_ATLEAST = """@_overload
def {0}(ary: _ArrayLike, /) -> _Array: ...
@_overload
def {0}(*arys: _ArrayLike) -> tuple[_Array, ...]: ...
"""
CUSTOM = {
    "where": """@_overload
def where(condition: _ArrayLike, /) -> tuple[_Array, ...]: ...
@_overload
def where(condition: _ArrayLike, x: _ArrayLike, y: _ArrayLike, /) -> _Array: ...
""",
    **{name: _ATLEAST.format(name) for name in ("atleast_1d", "atleast_2d", "atleast_3d")},
}
_BINARY = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()
_ATTRIBUTES = {
    "T": "_Array", "mT": "_Array", "base": "_Array | None", "data": "_Any", "device": "_Device",
    "dtype": "_np.dtype[_Any]", "flags": "_Any", "flat": "_flatiter", "imag": "_Array", "itemsize": "_b.int",
    "nbytes": "_b.int", "ndim": "_b.int", "real": "_Array", "shape": "tuple[_b.int, ...]", "size": "_b.int", "strides": "tuple[_b.int, ...]",
}
_CONVERSIONS = {"bool": "_b.bool", "int": "_b.int", "float": "_b.float", "complex": "_b.complex", "index": "_b.int",
                "len": "_b.int", "bytes": "_b.bytes"}


# ---- parameters and results ----

_NAMES = r"(?:\*{0,2}\w+, )*\*{0,2}\w+"
_DESCRIBED = re.compile(rf"(?:^|(?<=[.;] ))({_NAMES}): ((?:(?![.;] {_NAMES}: ).)*)")


def described(value):
    """Return what a docstring says of each parameter, by name."""
    found = {}
    for each in _DESCRIBED.finditer(public.fields(value).get("Parameters", "")):
        found.update(dict.fromkeys(each[1].replace("*", "").split(", "), each[2]))
    for name, text in found.items():
        elsewhere = re.match(r"as (\w+)\.?$", text)
        other = elsewhere and getattr(value, "__globals__", {}).get(elsewhere[1])
        if other and other is not value:
            found[name] = described(other).get(name, text)
    return found


def parameter_type(parameter, text):
    """The type of a parameter, from its description, its default and its name, in this order."""
    default, name = parameter.default, parameter.name
    if name in ("dtype", "out", "axis", "keepdims"):
        found = NAMES[name]
    elif type(default) in (bool, str) and name not in {"where", *_WIDER}:
        found = NAMES.get(name, f"_b.{type(default).__name__}")
    else:
        found = next((kind for words, kind in PARAMETERS if re.match(words, text)), None)
    if found is None and type(default) is int:
        found = "_Index" if name in _COUNTS else "_Any"
    if found is None and type(default) is float:
        found = "_b.float | _ArrayLike"
    found = found or NAMES.get(name, "_Any")
    optional = default is None and not found.endswith(("None", "_Any", "_Axis"))
    return found + " | None" if optional else found


def default_text(value):
    simple = value is None or isinstance(value, (bool, int, str)) or isinstance(value, float) and np.isfinite(value)
    return repr(value) if simple else "..."


def parameters_text(parameters, types):
    """A list of parameters as it stands in a stub."""
    kinds, parts, star = inspect.Parameter, [], False
    for i, p in enumerate(parameters):
        if p.kind is kinds.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        star = star or p.kind is kinds.VAR_POSITIONAL
        prefix = {kinds.VAR_POSITIONAL: "*", kinds.VAR_KEYWORD: "**"}.get(p.kind, "")
        default = "" if p.default is p.empty else f" = {default_text(p.default)}"
        parts.append(f"{prefix}{p.name}: {types[p.name]}{default}")
        if p.kind is kinds.POSITIONAL_ONLY and (i + 1 == len(parameters) or parameters[i + 1].kind is not p.kind):
            parts.append("/")
    return ", ".join(parts)


def result(value, name):
    """The type of a function's result, and the named tuple that must be defined before, as text, or ""."""
    text = public.fields(value).get("Returns", "")
    if name in _RESULTS and not text:
        return _RESULTS[name], ""
    named = re.match(r"(?:named tuple|(\w+Result)) \(([\w, ]+)\)", text)
    if named:
        kind = named[1] or f"_{name}_result"
        lines = "".join(f"    {field}: _Array\n" for field in named[2].split(", "))
        return kind, f"class {kind}(_NamedTuple):\n{lines}\n"
    if _ELSE.search(text) and name not in FLAGS:
        return "_Any", ""
    for words, kind in RETURNED:
        found = re.match(words, text)
        if found:
            return found.expand(kind), ""
    return "_Any", ""


def _line(name, parameters, types, returned, first):
    inner = ", ".join(filter(None, [first, parameters_text(parameters, types)]))
    return f"def {name}({inner}) -> {returned}: ...\n"


def function(name, value, method=False, first=""):
    """The stub of a function; first: the parameter before all others, of a method."""
    signature = public.call_signature(value, method)
    returned, before = result(value, name)
    if signature is None:
        return before + f"def {name}({first + ', ' if first else ''}*args: _Any, **kwargs: _Any) -> {returned}: ...\n"
    parameters, texts = list(signature.parameters.values()), described(value)
    types = {p.name: parameter_type(p, texts.get(p.name, "")) for p in parameters}
    if name not in FLAGS or method:
        begins = "async " if inspect.iscoroutinefunction(value) else ""
        return before + begins + _line(name, parameters, types, returned, first)
    flags, plain, special, other = FLAGS[name]
    overloads = [_line(name, parameters, {**types, **dict.fromkeys(flags, plain)}, returned, first)]
    for flag in flags:
        at = [p.name for p in parameters].index(flag)
        turned = [p.replace(kind=p.KEYWORD_ONLY) if i >= at > 1 else p for i, p in enumerate(parameters)]
        turned[at] = turned[at].replace(default=inspect.Parameter.empty)
        overloads.insert(0, _line(name, turned, {**types, flag: special}, other, first))
    return before + "".join("@_overload\n" + each for each in overloads)


# ---- classes ----

_UNSEEN = {"__hash__", "__weakref__", "__dict__", "__slots__", "__new__", "__getattr__", "__del__", "__setstate__",
           "__getstate__", "__init_subclass__"}

_SPECIAL = {"__exit__": "None", "__len__": "_b.int", "__repr__": "_b.str", "__str__": "_b.str", "__bool__": "_b.bool",
            "__iter__": "_Iterator[_Any]"}


def members(cls):
    """The attributes of a class that are its own or of a base that is not public."""
    shown = [base for base in cls.__mro__[1:]
             if base.__module__ in ("builtins", "numpy.linalg") or base is ad.ArraydError]
    given = {name for base in shown for name in dir(base)} - {"__init__"}
    return {name: inspect.getattr_static(cls, name) for name in dir(cls)
            if name not in given or name in vars(cls) and name not in vars(object)}


def attribute_type(member):
    text = (inspect.getdoc(member) or "").strip()
    found = next((re.match(words, text).expand(kind) for words, kind in RETURNED if re.match(words, text)), "_Any")
    return found if re.match(r"(bool|int|str|float)\b|([\w-]+ )?ndarray", text) else "_Any"


def member_text(name, member):
    kind = type(member)
    if kind in (staticmethod, classmethod):
        first = "" if kind is staticmethod else "cls"
        return f"    @{kind.__name__}\n" + _indented(function(name, member.__func__, kind is classmethod, first))
    if name.startswith("__") and callable(member):
        if name == "__init__":
            return _indented(function(name, member, True, "self")).replace("-> _Any", "-> None")
        if name in ("__eq__", "__ne__"):
            return f"    def {name}(self, other: object) -> _Any: ...\n"
        return _indented(function(name, member, True, "self").replace("-> _Any", f"-> {_SPECIAL.get(name, '_Any')}"))
    if name.startswith("_"):
        return ""
    if inspect.isfunction(member) or inspect.ismethoddescriptor(member):
        return _indented(function(name, member, True, "self"))
    if isinstance(member, property) or inspect.isdatadescriptor(member):
        kind = attribute_type(member)
        text = f"    @property\n    def {name}(self) -> {kind}: ...\n"
        if getattr(member, "fset", None) or inspect.ismemberdescriptor(member):
            return f"    {name}: {kind}\n"
        return text
    return f"    {name}: _Any\n"


def _indented(text):
    return "".join("    " + line + "\n" for line in text.splitlines())


def _shown(base):
    """Whether a class says that it has this base: a built-in one, or a public one of the package."""
    return base.__module__ == "builtins" and base is not object or \
        any(getattr(module, base.__name__, None) is base for module in public.modules().values())


def class_text(name, cls):
    bases = ["_b.tuple[_Any, ...]" if base is tuple else f"_b.{base.__name__}" if base.__module__ == "builtins"
             else base.__name__ for base in cls.__bases__ if _shown(base)]
    if cls.__name__ == "LinAlgError":
        bases.append("_np.linalg.LinAlgError")
    body = "".join(member_text(each, member) for each, member in sorted(members(cls).items())
                   if each not in _UNSEEN and not (each == "__init__" and member is object.__init__))
    unhashable = cls.__hash__ is None
    body += "    __hash__: None  # type: ignore[assignment]\n" if unhashable else ""
    body += "".join(f"    {each}: _Any\n" for each in public.set_by_init(cls) if not hasattr(cls, each))
    body += "    def __getattr__(self, name: _b.str) -> _Any: ...\n" if hasattr(cls, "__getattr__") else ""
    return f"class {name}{'(' + ', '.join(bases) + ')' if bases else ''}:\n{body or '    ...' + chr(10)}\n"


def array_text():
    """The class ndarray: operators, and the methods as they are."""
    text = "class ndarray:\n    def __new__(cls, shape: _Shape, dtype: _DType = ...) -> _Self: ...\n"
    for name, kind in _ATTRIBUTES.items():
        text += f"    @property\n    def {name}(self) -> {kind}: ...\n"
        if name in ("shape", "real", "imag"):
            text += f"    @{name}.setter\n    def {name}(self, value: _Any) -> None: ...\n"
    for name in _BINARY:
        text += f"    def __{name}__(self, other: _Operand, /) -> _Array: ...\n"
        text += f"    def __r{name}__(self, other: _Operand, /) -> _Array: ...\n"
        text += f"    def __i{name}__(self, other: _Operand, /) -> _Self: ...\n"
    for name in ("divmod", "rdivmod"):
        text += f"    def __{name}__(self, other: _Operand, /) -> tuple[_Array, _Array]: ...\n"
    for name in ("eq", "ne"):
        text += f"    def __{name}__(self, other: object, /) -> _Array: ...  # type: ignore[override]\n"
    for name in ("lt", "le", "gt", "ge"):
        text += f"    def __{name}__(self, other: _Operand, /) -> _Array: ...\n"
    for name in ("neg", "pos", "abs", "invert", "copy"):
        text += f"    def __{name}__(self) -> _Array: ...\n"
    for name, kind in _CONVERSIONS.items():
        text += f"    def __{name}__(self) -> {kind}: ...\n"
    text += """    __hash__: _ClassVar[None]  # type: ignore[assignment]
    def __iter__(self) -> _Iterator[_Array]: ...
    def __contains__(self, value: _Operand, /) -> _b.bool: ...
    def __getitem__(self, key: _Any, /) -> _Array: ...
    def __setitem__(self, key: _Any, value: _ArrayLike, /) -> None: ...
    def __deepcopy__(self, memo: _Any, /) -> _Array: ...
"""
    for name in sorted(dir(ad.ndarray)):
        member = inspect.getattr_static(ad.ndarray, name)
        wanted = name.startswith(("__array", "__dlpack")) or not name.startswith("_")
        if wanted and callable(member):
            text += _indented(function(name, member, True, "self")) if name not in _METHODS else _METHODS[name]
    return text + "\n"


# Methods whose docstrings do not speak of their results, because they are functions' by the same name or in place.
_RESULTS = {"clip": "_Array", "compress": "_Array", "conj": "_Array", "conjugate": "_Array", "sort": "None",
            "partition": "None", "scatter_add": "None", "scatter_max": "None", "scatter_min": "None"}
# C's.
_METHODS = {
    "get": "    def get(self, stream: _Any = None, order: _b.str = 'C', blocking: _b.bool = True,\n"
           "            out: _npt.NDArray[_Any] | None = None) -> _npt.NDArray[_Any]: ...\n",
    "set": "    def set(self, arr: _npt.ArrayLike, stream: _Any = None) -> None: ...\n",
    "fill": "    def fill(self, value: _Operand, /) -> None: ...\n",
    "item": "    def item(self, *index: _Any) -> _Any: ...\n",
    "tolist": "    def tolist(self) -> _Any: ...\n",
    "tobytes": "    def tobytes(self, order: _b.str = 'C') -> _b.bytes: ...\n",
    **{name: f"    def {name}(self, {parameters}) -> _Array: ...\n" for name, parameters in {
        "astype": "dtype: _DType, order: _b.str = 'K', casting: _b.str = 'unsafe', subok: _b.bool = True, "
                  "copy: _b.bool = True", "copy": "order: _b.str = 'C'", "flatten": "order: _b.str = 'C'",
        "ravel": "order: _b.str = 'C'", "squeeze": "axis: _Axis = None", "swapaxes": "axis1: _Index, axis2: _Index",
        "reshape": "*shape: _Any, order: _b.str = 'C', copy: _b.bool | None = None", "transpose": "*axes: _Any",
        "view": "dtype: _DType | None = None, type: _b.type | None = None"}.items()},
}
_UFUNC = """class ufunc:
    __name__: _b.str
    __qualname__: _b.str
    nin: _b.int
    nout: _b.int
    nargs: _b.int
    ntypes: _b.int
    types: list[_b.str]
    identity: _Any
    def __call__(self, *args: _Any, **kwargs: _Any) -> _Any: ...
"""
_UFUNC_METHODS = ("reduce", "accumulate", "outer", "at")


def ufunc_name(value):
    return f"_ufunc_{value.nin}_{value.nout}"


def ufunc_text():
    """The class ufunc, and one for each number of inputs and outputs that there are."""
    text = _UFUNC + "".join(_indented(function(name, getattr(ad.ufunc, name), True, "self")) for name in _UFUNC_METHODS)
    for nin, nout in sorted({(u.nin, u.nout) for u in ad._core.ufuncs.values()}):
        inputs = ", ".join(f"x{i + 1}: _ArrayLike" for i in range(nin))
        returned = "_Array" if nout == 1 else f"tuple[{', '.join(['_Array'] * nout)}]"
        text += (f"\nclass _ufunc_{nin}_{nout}(ufunc):\n    def __call__(self, {inputs},\n"
                 f"                 {', '.join(f'out{i + 1}: _Array | None = None' for i in range(nout))}, /, *,\n"
                 "                 out: _Array | tuple[_Array | None, ...] | None = None, where: _ArrayLike = True,\n"
                 "                 casting: _b.str = 'same_kind', order: _b.str = 'K', dtype: _DType | None = None,\n"
                 f"                 subok: _b.bool = True) -> {returned}: ...\n")
    return text + "\n"


# ---- modules ----

def names(module):
    """The public names of a module but bfloat16, which is not there without ml_dtypes."""
    return [name for name in public.names(module) if name != "bfloat16"]


def homes(modules):
    """The public module that each class and function is defined in, of those that it is in; by identity."""
    found = {}
    for name in modules:
        for each in names(modules[name]):
            value = getattr(modules[name], each)
            if callable(value) and not isinstance(value, ad.ufunc) and not _numpys(each, value):
                own = getattr(value, "__module__", None) == name, getattr(value, "__name__", None) == each
                if own > found.get(id(value), [(False, False)])[0] or id(value) not in found:
                    found[id(value)] = own, name, each
    return {key: where[1:] for key, where in found.items()}


def _numpys(name, value):
    """Where NumPy has that very object: "numpy", another module of its, or None."""
    if vars(np).get(name) is value and not isinstance(value, (float, type(None))):
        return "numpy"
    home = getattr(value, "__module__", None) or ""
    known = home.startswith("numpy") and getattr(sys.modules.get(home), getattr(value, "__name__", ""), None) is value
    return home if known else None


def _imported(module, own, name):
    """Return the lines that import a name; one that is public under a name of its own must be assigned."""
    return f"from {module} import {own} as {name if own == name else '_' + own}\n" + (
        "" if own == name else f"{name} = _{own}\n")


def entry(module, name, value, home):
    """Return what stands in a module's stub for a name."""
    if inspect.ismodule(value):
        found = value.__name__ == f"{module}.{name}" and value.__spec__.loader  # a module without a loader has no file
        return f"from {module} import {name} as {name}\n" if found else f"{name}: _Any\n"
    if _numpys(name, value):
        own = name if _numpys(name, value) == "numpy" else value.__name__
        return _imported(_numpys(name, value), own, name)
    if value is ad.ndarray or value is ad.ufunc or isinstance(value, type) and issubclass(value, ad.ArraydError):
        return _imported("arrayd._core", value.__name__, name)
    if isinstance(value, ad.ufunc):
        return f"{name}: {ufunc_name(value)}\n"
    where = home.get(id(value), (module, name))
    if callable(value) and where != (module, name):
        return f"{name} = {where[1]}\n" if where[0] == module else _imported(*where, name)
    if inspect.isclass(value):
        return f"{name} = _b.{value.__name__}\n" if value.__module__ == "builtins" else class_text(name, value)
    if callable(value) and not inspect.isclass(type(value)) or inspect.isroutine(value):
        return CUSTOM.get(name) or function(name, value)
    if value is None:
        return f"{name}: None\n"
    kind = type(value).__name__ if type(value).__module__ == "builtins" else None
    return f"{name}: _b.{kind}\n" if kind in ("bool", "int", "float", "str") else f"{name}: _Any\n"


def module_text(name, module, home):
    text = HEADER
    listed = names(module)
    kinds = {ufunc_name(v) for v in (getattr(module, n) for n in listed) if isinstance(v, ad.ufunc)}
    if kinds:
        text += f"from arrayd._core import {', '.join(sorted(kinds))}\n"
    if module is ad:
        text += "\n__version__: _b.str\n__array_api_version__: _b.str\nbfloat16: type[_np.generic]\n"
    return text + "\n" + "".join(entry(name, each, getattr(module, each), home) for each in listed)


def core_text():
    errors = sorted((v for v in vars(ad._core).values() if isinstance(v, type) and issubclass(v, ad.ArraydError)),
                    key=lambda v: (len(v.__mro__), v.__name__))
    return CORE + "\n" + array_text() + ufunc_text() + "".join(class_text(v.__name__, v) for v in errors)


def main():
    folder = pathlib.Path(sys.argv[1]) / "arrayd"
    modules = public.modules()
    home = homes(modules)
    texts = {"arrayd._core": core_text(), **{name: module_text(name, m, home) for name, m in modules.items()}}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "py.typed").write_text("")
    for name, text in texts.items():
        path = folder.joinpath(*name.split(".")[1:])
        package = name in modules and hasattr(modules[name], "__path__")
        path = path / "__init__.pyi" if package else path.with_suffix(".pyi") if name.count(".") == 1 else \
            path.parent / f"{path.name}.pyi"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    main()
