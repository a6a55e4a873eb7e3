"""The names that the package offers, found from the running module: for the pages and the stubs that are made of it."""
import dis
import importlib
import inspect
import pkgutil
import re

import arrayd as ad

FIELDS = ("Parameters", "Returns", "Yields", "Raises", "Differs", "Source")
_FIELD = re.compile(rf"^((?:{'|'.join(FIELDS)})(?:, (?:{'|'.join(FIELDS)}))*):(?:[ \n]|$)", re.M)


_HEAD = re.compile(r"\w+(\([^)]*\))(?:: *|\n+|$)")


def modules():
    """The public modules of the package by name, those of packages within it too; not those that run programs."""
    found = {"arrayd": ad}
    for entry in pkgutil.walk_packages(ad.__path__, "arrayd."):
        path = entry.name.split(".")
        if not any(part.startswith("_") for part in path) and "path" not in path:
            found[entry.name] = importlib.import_module(entry.name)
    return dict(sorted(found.items()))


def names(module):
    """The public names of a module; of one that does not list them, those of what it defines itself."""
    if module is ad:
        return [n for n in dir(module) if not n.startswith("_")]
    if hasattr(module, "__all__"):
        return sorted(module.__all__)
    return [n for n, value in sorted(vars(module).items())
            if not n.startswith("_") and getattr(value, "__module__", None) == module.__name__]


def head(value):
    """The signature that begins the docstring of what C defines, such as "get(stream=None): ...", as text, or None."""
    found = _HEAD.match(getattr(value, "__doc__", None) or "")
    return found[1] if found else None


def signature(value):
    """inspect.Signature of a function, also of one of C whose docstring begins with it; None where neither knows."""
    try:
        return inspect.signature(value)
    except (TypeError, ValueError):
        text = head(value)
    if text is None:
        return None
    try:
        return inspect.signature(eval(f"lambda {text[1:-1]}: None"))
    except SyntaxError:
        return None


def call_signature(function, method):
    """The signature of a function, and of a method without self, whatever that is named; None where it is not known."""
    found = signature(function)
    parameters = list(found.parameters.values()) if found else []
    if parameters and method and (inspect.isfunction(function) or parameters[0].name == "self"):
        return found.replace(parameters=parameters[1:])
    return found


def fields(value):
    """The fields of a docstring by name ("Returns"), and the text before them under ""."""
    text = _HEAD.sub("", inspect.getdoc(value) or "", count=1)
    parts = _FIELD.split(text)
    result = {"": parts[0].strip()}
    for name, body in zip(parts[1::2], parts[2::2]):
        for one in name.split(", "):
            result[one] = " ".join(body.split())
    return {name: _as(value, name, text) for name, text in result.items()}


def _as(value, field, text):
    """A field's text; where that is no more than "as NAME", that of the function which is named."""
    found = re.fullmatch(r"as (\w+)\.?", text) if field else None
    other = found and (getattr(value, "__globals__", {}).get(found[1]) or getattr(ad, found[1], None))
    return fields(other).get(field, text) if other and other is not value else text


def set_by_init(cls):
    """The public attributes that a class's __init__ gives to self."""
    code = getattr(cls.__init__, "__code__", None)
    stored = {each.argval for each in dis.get_instructions(code) if each.opname == "STORE_ATTR"} if code else ()
    return sorted(name for name in stored if not name.startswith("_"))
