"""Sources compiled by the server, each once for a connection and a device, and what the compiler says of one."""
import collections
import re
import threading

from .. import _core
from .._functional import remember
from ..cuda.compiler import CompileException

_MOST = 512  # modules kept; those in use by a kernel stay in any case
_modules = remember(collections.OrderedDict())
_lock = threading.Lock()
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


def place():
    """What a module belongs to: the connection and the calling thread's device."""
    from ..cuda import get_device_id
    device = get_device_id()
    return _core.session_serial(), device


def module(source, options=(), names=(), name="module"):
    """The module of a source on the current device; compiled unless it has been. CompileException when it cannot be."""
    key = place(), source, options, names
    with _lock:
        found = _modules.get(key)
        if found is not None:
            _modules.move_to_end(key)
            return found
    try:
        found = _core.build(source, options, names)
    except _core.CompileError as error:
        raise CompileException(str(error), source, name, options) from None
    with _lock:
        _modules[key] = found
        while len(_modules) > _MOST:
            _modules.popitem(last=False)
    return found


def identifier(name, what):
    """name, if it can be a function's; ValueError otherwise."""
    if not isinstance(name, str) or not _IDENTIFIER.fullmatch(name):
        raise ValueError(f"{what} must be a C identifier, not {name!r}")
    return name


def as_options(options):
    """Options of the compiler as a tuple of strings."""
    if isinstance(options, str) or not all(isinstance(option, str) for option in options):
        raise TypeError(f"options must be a tuple of strings, not {options!r}")
    return tuple(options)
