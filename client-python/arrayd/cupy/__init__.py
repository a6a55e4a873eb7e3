"""arrayd under the name of CuPy, for programs that say `import cupy`, in a process without CuPy and without CUDA.

    python -m arrayd.cupy program.py arguments...
    python -m arrayd.cupy -m module arguments...
    python -m arrayd.cupy -c "import cupy; print(cupy.arange(3))"

or, in a program or a notebook, before the first `import cupy`:

    import arrayd.cupy
    arrayd.cupy.install()

`cupy` has the names of arrayd, and those names that NumPy 2 has removed and CuPy 14 still has, where they are other
names of something; `cupy.linalg` is arrayd.linalg and so on, and `cupyx` is arrayd.cupyx. `cupy_backends` has
CUDA's runtime and libraries, as far as arrayd.cuda has them. cupy.__version__ is that of
the CuPy whose names these are, so that programs that ask for a version go on. A module or name that arrayd does not
have is an ImportError or AttributeError that says so. type(a).__module__ is "cupy", and sparse matrices and random
generators say in the same way that they are of cupyx.scipy.sparse and cupy.random. Python processes that the program
starts find the same `cupy`.
"""
import importlib.abc
import importlib.machinery
import importlib.util
import os
import pathlib
import sys
import types
import warnings

__all__ = ["VERSION", "install"]

VERSION = "14.0.0"  # of CuPy, that cupy.__version__ says
_PATH = str(pathlib.Path(__file__).parent / "path")  # has a module of each of these names for processes to come
_HOME = {"cupy": "arrayd", "cupyx": "arrayd.cupyx", "cupy_backends": "arrayd.cupy._backends"}
_SAID = {"arrayd.random": "cupy.random", "arrayd.scipy.sparse": "cupyx.scipy.sparse"}  # what their classes say they are of


# Names of CuPy's inside that programs use, by the functions that give the same.
_PRIVATE = {"_default_memory_pool": "get_default_memory_pool", "_default_pinned_memory_pool": "get_default_pinned_memory_pool"}
_INSIDE = ("_core", "_util")  # modules of CuPy's inside that _private.py has


class _CuPy(types.ModuleType):
    """The module `cupy`. Names that it takes from arrayd it keeps, so that they are found at once the next time."""

    def __getattr__(self, name):
        import arrayd
        if name in _PRIVATE:
            return getattr(arrayd, _PRIVATE[name])()
        if name in _INSIDE:
            return importlib.import_module(f"cupy.{name}")
        try:
            value = getattr(arrayd, name)
        except AttributeError as error:
            value = _removed(name)
            if value is None:
                raise AttributeError(str(error).replace("'arrayd'", "'cupy'", 1)) from None
            return value
        if not name.startswith("__"):
            self.__dict__[name] = value
        return value

    def get_array_module(self, *args):
        """Return this module when one of args is an array of the server, else numpy; see arrayd.get_array_module."""
        import arrayd
        found = arrayd.get_array_module(*args)
        return self if found is arrayd else found

    def __dir__(self):
        import arrayd
        return sorted({*dir(arrayd), "__version__"})


def _removed(name):
    """Return what a name of NumPy 1 stands for; None for one that is no other name of something."""
    import arrayd
    from arrayd._removed import _BY_NUMPY
    constants = {"NINF": -arrayd.inf, "NZERO": -0.0, "PZERO": 0.0}
    instead = _BY_NUMPY.get(name)
    if name not in constants and not (instead and instead.isidentifier() and hasattr(arrayd, instead)):
        return None
    warnings.warn(f"cupy.{name}: NumPy 2 has removed it; use {instead}", DeprecationWarning, stacklevel=3)
    return constants[name] if name in constants else getattr(arrayd, instead)


def _reason(top, rest):
    """Why arrayd has no module top.rest, for an error; nothing where there is no reason to tell."""
    from .._removed import why
    parent, _, last = rest.rpartition(".")
    reason = why(last, ".".join(filter(None, ["cupyx" if top == "cupyx" else "", parent])))
    return f": {reason}" if reason else ""


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds cupy, cupyx, cupy_backends and what is in them among arrayd's modules, which stay the same objects under another name."""

    def find_spec(self, name, path=None, target=None):
        if name in _SAID:
            return _rename_once_loaded(importlib.machinery.PathFinder.find_spec(name, path, target))
        top, _, rest = name.partition(".")
        if top not in _HOME:
            return None
        inside = top == "cupy" and rest.partition(".")[0] in _INSIDE
        if inside:
            importlib.import_module("arrayd.cupy._private")  # makes the modules below it
            home = f"arrayd.cupy._private.{rest}"
        else:
            home = f"{_HOME[top]}.{rest}" if rest else _HOME[top]
        private = not inside and any(part.startswith("_") for part in rest.split("."))
        if private or home in ("arrayd.cupy", "arrayd.cupyx") and rest or importlib.util.find_spec(home) is None:
            raise ModuleNotFoundError(f"arrayd, which stands in for CuPy, has no module {name!r}{_reason(top, rest)}", name=name)
        return importlib.machinery.ModuleSpec(name, self, origin="arrayd", is_package=True, loader_state=home)

    def create_module(self, spec):
        return _CuPy(spec.name) if spec.name == "cupy" else None

    def exec_module(self, module):
        import arrayd
        if isinstance(module, _CuPy):
            module.__dict__.update({name: value for name, value in vars(arrayd).items() if not name.startswith("_")},
                                   __version__=VERSION, __doc__=__doc__, __all__=arrayd.__all__)
            for name in ("cupy", "cupyx", "get_array_module"):
                module.__dict__.pop(name, None)
            from ._calls import FUNCTIONS
            module.__dict__.update(FUNCTIONS)
        else:
            sys.modules[module.__name__] = importlib.import_module(module.__spec__.loader_state)


def _rename_once_loaded(spec):
    """The specification of a module of _SAID, whose classes get their names behind its execution."""
    execute = spec.loader.exec_module

    def execute_and_rename(module):
        execute(module)
        _rename_classes(module)
    spec.loader.exec_module = execute_and_rename
    return spec


def _rename_classes(module):
    """Let the public classes of a module of _SAID say that they are CuPy's: libraries choose by that what to do."""
    for name in module.__all__:
        value = getattr(module, name)
        if isinstance(value, type) and value.__module__.startswith(module.__name__):
            value.__module__ = _SAID[module.__name__]


def install():
    """Let `import cupy`, `cupyx` and `cupy_backends` give arrayd from now on, here and in Python processes started from here.

    Returns: None.
    Raises: RuntimeError when CuPy itself has been imported.
    Source: arrayd
    """
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    for name in _HOME:
        if name in sys.modules:
            raise RuntimeError(f"{name} has been imported already; arrayd.cupy.install() must come before")
    sys.meta_path.insert(0, _Finder())
    from .. import _core, ndarray
    from .._array.structured import StructuredArray
    _core.truncate_slices(True)
    StructuredArray.__module__ = ndarray.__module__ = "cupy"  # by which libraries choose what to do with an array
    for name in _SAID.keys() & sys.modules.keys():
        _rename_classes(sys.modules[name])
    if _PATH not in sys.path:
        sys.path.insert(1, _PATH)  # multiprocessing hands this list on
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if _PATH not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([_PATH, *filter(None, paths)])


def _stand_in(name):
    """Give the importer of a module in _PATH, which is being executed, arrayd under that name instead."""
    del sys.modules[name]
    install()
    __import__(name)  # the import system takes what is in sys.modules afterwards
