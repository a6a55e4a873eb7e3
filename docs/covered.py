"""docs/coverage.md: which of CuPy's names arrayd has, found from the running package: covered.py [PAGE].

A name differs when it does not take all that NumPy's function of that name takes, or ignores some of that. It differs,
too, when it lacks a loop that NumPy's ufunc has, or when its docstring has a line that begins with "Differs:". Why a name is
missing the package says itself (arrayd._removed.why), or else the table here.
"""
import collections
import importlib
import inspect
import json
import pathlib
import re
import sys
import textwrap
import warnings

import numpy as np

import arrayd as ad
import public
from arrayd import _removed

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE / "coverage.md"
Entry = collections.namedtuple("Entry", "name status note")

# Names that do not count: what `from __future__` leaves in a module, and CPython's and Cython's own business.
_NOTHING = re.compile(r"annotations|__pyx_vtable__|__slots__|_[a-z]\w*")
# Why names are missing that the package itself says nothing about: module, name, reason.
_MISSING = [
    (r"cupyx\.cutensor", ".*", "the server contracts tensors; einsum and tensordot ask for it"),
    (r"cupyx\.cusparse", ".*Descriptor", "this process uses no CUDA: the server does"),
    (r"cupyx\.optimizing", ".*", "the server chooses the blocks of its kernels"),
    (r"cupyx\.jit\.thrust", "host", "kernels run on the device alone"),
    (r"cupyx\.scipy\.spatial\.distance", "MetricInfo|.*available|check_soft_dependencies",
     "distances are computed by the server, without another library"),
    (r"cupy\.ndarray", "__(i?div|hex|oct)__", "of Python 2"),
    (r"cupy\.ndarray", "__(release_)?buffer__", "the elements are not in this process; a.get() fetches them"),
    (r"cupy\.ndarray", "ptp", "NumPy 2 has removed it; use ptp(a)"),
    (r"cupy\.ndarray", "cstruct|reduced_view", "for kernels that run in this process"),
    (r"cupy", "disable_experimental_feature_warning", "arrayd has no such warnings"),
]
# Parameters that make no difference: there are no subclasses of arrays to choose and no other library's to return, and
# what a transfer reads or writes is always done when the call returns.
_IDLE = {"like", "subok", "max_work", "blocking", "stream"}
_TYPES = "?bhilBHILefdFD"


def resolve(module):
    """arrayd's module or class for a module of CuPy's, and NumPy's; None where there is none."""
    if module == "cupy.ndarray":
        return ad.ndarray, np.ndarray
    top, _, rest = module.partition(".")
    rest = "." + rest if rest else ""
    ours = _imported({"cupy": "arrayd", "cupyx": "arrayd.cupyx"}[top] + rest)
    return ours, _imported("numpy" + rest) if top == "cupy" else None


def _imported(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def why(module, name):
    """The reason for which a name is missing, or None where nobody has said one."""
    top, _, rest = module.partition(".")
    known = {"cupy": "", "cupy.cuda": "cuda", "cupyx": "cupyx"}.get(module)
    reason = None if known is None else _removed.why(name, known)
    for where, what, text in _MISSING:
        if reason is None and re.fullmatch(where, module) and re.fullmatch(what, name):
            reason = text
    return reason


def _simple(value):
    return value if isinstance(value, (bool, int, float, str)) else None


def _parameters(ours, theirs):
    """How the parameters of a function differ from NumPy's."""
    ours, theirs = ours.parameters, theirs.parameters
    kinds = inspect.Parameter
    anything = any(p.kind is kinds.VAR_KEYWORD for p in ours.values())
    sequence = any(p.kind is kinds.VAR_POSITIONAL for p in ours.values())
    order = [n for n, p in ours.items() if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
    place = 0
    for name, theirs_is in theirs.items():
        if theirs_is.kind in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD):
            continue
        if theirs_is.kind is not kinds.KEYWORD_ONLY:
            place += 1
            if place <= len(order) and order[place - 1] != name and name not in ours:
                if theirs_is.kind is not kinds.POSITIONAL_ONLY:
                    yield f"`{name}` is named `{order[place - 1]}`"
                continue
            if name in order and order.index(name) != place - 1 and not sequence:
                yield f"`{name}` is parameter {order.index(name) + 1}, not {place}"
        if name not in ours:
            positional = sequence and theirs_is.kind is kinds.POSITIONAL_ONLY
            if not anything and not positional and name not in _IDLE:
                yield f"no `{name}`"
            continue
        mine, default = _simple(ours[name].default), _simple(theirs_is.default)
        if mine is not None and default is not None and mine != default and name not in _IDLE:
            yield f"`{name}` is {mine!r} unless given, not {default!r}"
        if ours[name].kind is kinds.KEYWORD_ONLY and theirs_is.kind is not kinds.KEYWORD_ONLY:
            yield f"`{name}` only by name"


def _ignored(value):
    """The parameters that a docstring says are ignored."""
    text = public.fields(value).get("Parameters", "")
    for found in re.finditer(r"((?:\w+, )*\w+): ignored\b", text):
        yield from (f"`{name}` is ignored" for name in found[1].split(", ") if name not in _IDLE)


def _loops(ours, theirs):
    """The types for which NumPy's ufunc has a loop and ours gives something else."""
    mine = dict(loop.split("->") for loop in ours.types if "E" not in loop)
    for loop in theirs.types:
        inputs, outputs = loop.replace("q", "l").replace("Q", "L").split("->")
        if set(inputs + outputs) - set(_TYPES):
            continue
        wider = (o for i, o in mine.items() if all(map(np.can_cast, inputs, i)))
        if mine.get(inputs, next(wider, None)) != outputs:
            yield f"no loop {inputs}->{outputs}"


def _class(ours, theirs):
    """The public attributes that NumPy's class has and ours has not."""
    own = {*dir(ours), *public.set_by_init(ours)}
    without = [n for n in dir(theirs) if not n.startswith("_") and n not in own]
    if without:
        yield "without " + ", ".join(f"`{n}`" for n in without)


def differences(ours, theirs, method=False):
    """How what arrayd has differs from what NumPy (or, for None, nobody we can ask) has under a name, as texts."""
    if ours is theirs:
        return
    if callable(ours) and "Differs" in public.fields(ours):
        yield public.fields(ours)["Differs"].rstrip(".")
    if isinstance(ours, ad.ufunc):
        if isinstance(theirs, np.ufunc):
            yield from _loops(ours, theirs)
        return
    if inspect.isclass(ours):
        if inspect.isclass(theirs) and ours is not ad.ndarray:
            yield from _class(ours, theirs)
        return
    if callable(ours):
        yield from _ignored(ours)
        mine = public.call_signature(ours, method)
        numpys = public.call_signature(theirs, method) if callable(theirs) else None
        if mine and numpys:
            yield from _parameters(mine, numpys)


def entries(module, listed):
    """Return what there is to say of each name of a module."""
    ours, theirs = resolve(module)
    for name in listed:
        if _NOTHING.fullmatch(name):
            continue
        if ours is None or not hasattr(ours, name):
            yield Entry(name, "missing", why(module, name))
            continue
        other = getattr(theirs, name, None) if theirs is not None else None
        special = name.startswith("__")  # Python decides what these take
        note = "; ".join(() if special else dict.fromkeys(differences(getattr(ours, name), other, ours is ad.ndarray)))
        yield Entry(name, "differs" if note else "same", note)


def coverage():
    """The entries of each module."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {module: list(entries(module, listed))
                for module, listed in json.loads((HERE / "cupy-names.json").read_text()).items()}


def _table(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(str(c).replace("|", "\\|") for c in line) + " |\n" for line in lines)


def _names(found):
    return textwrap.fill(", ".join(f"`{e.name}`" for e in found), 120, break_on_hyphens=False)


def _section(module, found):
    by = {status: [e for e in found if e.status == status] for status in ("same", "differs", "missing")}
    reasons = {e.note for e in by["missing"]}
    text = f"\n## {module}\n"
    if not by["same"] and not by["differs"] and len(reasons) == 1:
        return text + f"\nMissing: {reasons.pop()}.\n\n{_names(found)}\n"
    if by["same"]:
        text += f"\nSame: {_names(by['same'])}\n"
    if by["differs"] or by["missing"]:
        rows = [[f"`{e.name}`", e.status, e.note or ""] for e in found if e.status != "same"]
        text += "\n" + _table(["name", "", "how, or why"], rows)
    return text


def page():
    """The page, as text."""
    found = coverage()
    counts = [[module, len(es), *(sum(e.status == s for e in es) for s in ("same", "differs", "missing"))]
              for module, es in found.items()]
    sections = "".join(_section(*item) for item in found.items())
    version = ".".join(np.__version__.split(".")[:2])
    return f"""# What arrayd has of CuPy

`make docs` (docs/covered.py) makes this page; do not edit it. It compares the package itself with the public names of
CuPy 14 (cupy-names.json) and with NumPy {version}, whose functions arrayd follows. *Same*: it is there and takes what
NumPy's takes (names that NumPy lacks are compared with nothing). *Differs*: as its docstring, its parameters or its
types say. [python.md](python.md) says what holds for all. A reduction gives a 0-d array, and NumPy's functions fetch
nothing by themselves. There are no object, string or date types, and a ufunc's `order` is ignored.

{_table(["module", "names", "same", "differs", "missing"], counts)}{sections}"""


if __name__ == "__main__":
    (pathlib.Path(sys.argv[1]) if sys.argv[1:] else PAGE).write_text(page())
