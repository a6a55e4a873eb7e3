"""SciPy itself on this side, for what designs rather than computes: arrays are fetched for it, and results go up."""
import functools
import importlib
import inspect
import sys

import numpy as np

from .._base import as_array, ndarray
from .._math.poly1d import poly1d


def scipy_module(name):
    """A module of SciPy, or an error that says what to install."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f"{name} is needed for this function, which SciPy computes on this side: pip install scipy "
                          f"({error})") from None


def to_host(value):
    """value with arrays of this side, and SciPy's objects, in the place of those of the server."""
    if isinstance(value, (ndarray, poly1d)):
        return value.get()
    if isinstance(value, HostMade):
        return value._host
    if isinstance(value, (tuple, list)) and type(value) in (tuple, list):
        return type(value)(to_host(one) for one in value)
    if type(value) is dict:
        return {key: to_host(one) for key, one in value.items()}
    return value


def to_server(value):
    """value with arrays of the server in the place of those of this side."""
    if isinstance(value, np.ndarray):
        return as_array(value) if value.dtype.kind in "biufc" else value
    if isinstance(value, (tuple, list)):
        parts = [to_server(one) for one in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if type(value) is dict:
        return {key: to_server(one) for key, one in value.items()}
    if type(value).__module__.startswith("scipy.sparse"):
        from . import sparse
        return getattr(sparse, type(value).__name__)(value)
    if type(value).__name__ == "Bunch":  # what place_poles returns
        return type(value)(**to_server(vars(value)))
    ours = HostMade.classes.get((type(value).__module__.rpartition("._")[0], type(value).__name__))
    return value if ours is None else ours._of_host(value)


@functools.cache
def _count_positional(function):
    """How many positional arguments a function takes, and the names of its keyword-only ones."""
    kinds = inspect.signature(function).parameters.values()
    return (sys.maxsize if any(one.kind == one.VAR_POSITIONAL for one in kinds) else
            sum(one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) for one in kinds),
            [one.name for one in kinds if one.kind == one.KEYWORD_ONLY])


def _name_keywords(function, args, kwargs):
    """The arguments of a call, with names for those positional ones that are keyword-only in SciPy, but not in cupyx."""
    most, names = _count_positional(function)
    rest = dict(zip(names, args[most:]))
    if len(rest) < len(args) - most or rest.keys() & kwargs.keys():
        return args, kwargs  # too many arguments, or one twice: SciPy's error says which
    return args[:most], rest | kwargs


def make_function(name, module="scipy.signal", subject=""):
    """The function of SciPy of that name, on arrays of the server."""
    def run(*args, **kwargs):
        function = getattr(scipy_module(module), name, None)
        if function is None:
            raise NotImplementedError(f"this SciPy has no {module}.{name}")
        if module == "scipy.signal":
            args, kwargs = _name_keywords(function, args, kwargs)
        return to_server(function(*to_host(args), **to_host(kwargs)))
    run.__name__ = run.__qualname__ = name
    run.__module__ = __name__
    run.__doc__ = f"""SciPy's {name}{f' ({subject})' if subject else ''}, computed on this side.

    Parameters: as {module}.{name}; arrays of the server are fetched.
    Returns: what SciPy returns, with arrays of the server. It waits for the server.
    Raises: ImportError without SciPy; what SciPy raises.
    Source: {module}.{name}
    """
    return run


class HostMade:
    """An object that SciPy makes on this side, and the server evaluates.

    A class that is derived from this names SciPy's module and class; its object is self._host. Attributes that are arrays
    go up when they are first asked for. SciPy's object does not see what is changed in such an array on the server.
    """

    _module = "scipy.interpolate"
    _fetched = ""  # names of methods that SciPy computes on this side
    _makers = ""  # names of the functions that make an object
    classes = {}

    def __init_subclass__(cls):
        super().__init_subclass__()
        HostMade.classes[cls._module, cls.__name__] = cls
        for name in cls._fetched.split():
            setattr(cls, name, _make_method(name, cls))
        for name in cls._makers.split():
            setattr(cls, name, classmethod(_make_maker(name, cls)))

    def _make(self, *args, **kwargs):
        """Let SciPy make the object of this one."""
        self._take(self._scipy_class()(*to_host(args), **to_host(kwargs)))

    def _take(self, host):
        self.__dict__.update(_host=host, _copies={})

    @classmethod
    def _scipy_class(cls):
        return getattr(scipy_module(cls._module), cls.__name__)

    @classmethod
    def _of_host(cls, host):
        """The object for one of SciPy's."""
        made = object.__new__(cls)
        made._take(host)
        return made

    def __getattr__(self, name):
        if name.startswith("__") or "_host" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name)
        value = getattr(self._host, name)
        if not isinstance(value, np.ndarray):
            return value if callable(value) else to_server(value)
        known = self._copies.get(name)
        if known is None or known[0] is not value:
            known = self._copies[name] = value, to_server(value)
        return known[1]

    def __setattr__(self, name, value):
        setattr(self._host, name, to_host(value))
        self._copies.pop(name, None)

    def __reduce__(self):
        return type(self)._of_host, (self._host,)


def _describe(function, name, cls):
    function.__name__, function.__qualname__ = name, f"{cls.__name__}.{name}"
    function.__module__ = cls.__module__
    function.__doc__ = (f"As {cls._module}.{cls.__name__}.{name}, by SciPy on this side; arrays of the result are on the "
                        "server. Waits.")
    return function


def _make_method(name, cls):
    def run(self, *args, **kwargs):
        result = to_server(getattr(self._host, name)(*to_host(args), **to_host(kwargs)))
        self._copies.clear()
        return result
    return _describe(run, name, cls)


def _make_maker(name, cls):
    def make(cls, *args, **kwargs):
        made = getattr(cls._scipy_class(), name)(*to_host(args), **to_host(kwargs))
        return cls._of_host(made) if isinstance(made, cls._scipy_class()) else to_server(made)
    return _describe(make, name, cls)
