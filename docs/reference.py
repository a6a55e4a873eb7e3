"""The reference of the Python package: a page for each module, of the docstrings of what is in it."""
import inspect
import re

import arrayd as ad
import public

# One or several parameters and what they are, as "a, b: arrays."
_PARAMETER = re.compile(r"(?:^|(?<=\. )|(?<=; ))(\*{0,2}\w+(?:, \*{0,2}\w+)*): ")
_SEPARATE = {"ndarray": ad.ndarray, "ufunc": ad.ufunc}  # classes with pages of their own


def _list(text):
    """A field's text; parameters as a list."""
    parts = _PARAMETER.split(text)
    if len(parts) < 3:
        return " " + text
    pairs = "".join(f"\n- `{names}`: {what.strip()}" for names, what in zip(parts[1::2], parts[2::2]))
    return (" " + parts[0].strip() if parts[0].strip() else "") + "\n" + pairs


def _text(value):
    fields = public.fields(value)
    text = fields.pop("")
    source = fields.pop("Source", "")
    for name, body in fields.items():
        text += f"\n\n**{name}:**" + (_list(body) if name == "Parameters" else " " + body)
    return text.rstrip() + (f"\n\n*Source: {source}*" if source else "") + "\n"


def _function(name, value, level="##", method=False):
    signature = public.call_signature(value, method)
    return f"\n{level} `{name}{'(...)' if signature is None else signature}`\n\n{_text(value)}"


def _class(name, value, level="##"):
    text = f"\n{level} class `{name}`\n\n{_text(value)}"
    for each in dir(value):
        owner = next((base for base in value.__mro__ if each in vars(base)), value)
        if each.startswith("_") or owner.__module__ == "builtins":  # of exceptions and tuples, Python's manual tells
            continue
        member = inspect.getattr_static(value, each)
        static = isinstance(member, staticmethod)
        member = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
        if callable(member):
            text += _function(each, member, level + "#", not static)
        elif inspect.getdoc(member) and (isinstance(member, property) or inspect.isdatadescriptor(member)):
            text += f"\n{level}# `{each}`\n\n{inspect.getdoc(member)}\n"
    return text


def _entry(module, name):
    value = getattr(module, name)
    if inspect.ismodule(value):
        return ""
    if name in _SEPARATE:
        return f"\n## class `{name}`\n\nHas [a page of its own](arrayd.{name}.md).\n"
    kind = getattr(value, "__module__", None) or ""
    if kind.partition(".")[0] in ("numpy", "ml_dtypes") or not callable(value) and kind == "builtins":
        return f"\n## `{name}`\n\nNumPy's.\n"
    if inspect.isclass(value):
        return _class(name, value)
    if callable(value):
        return _function(name, value)
    return f"\n## `{name}`\n\n{type(value).__name__}: `{value!r}`\n"


def pages():
    """The pages: file name, title, text."""
    for name, module in public.modules().items():
        text = (inspect.getdoc(module) or "") + "\n" + "".join(_entry(module, n) for n in public.names(module))
        yield f"{name}.md", name, text
    for name, value in _SEPARATE.items():
        yield f"arrayd.{name}.md", f"class arrayd.{name}", _class(name, value, "#").partition("\n\n")[2]
