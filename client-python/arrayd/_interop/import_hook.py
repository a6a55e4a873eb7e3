"""Other libraries hear of this package's arrays whichever of the two is imported first, and neither imports the other.

Dask and Matplotlib ask tables by type for what they do with objects, and fill them for NumPy and its like in their own
modules. Nothing of theirs runs between the import and the first use, so the tables are filled when their modules have
been imported.
"""
import importlib
import sys

# The modules that have tables, and our function that fills each.
_MODULES = {"dask.sizeof": ("dask", "sizes"), "dask.array.backends": ("dask", "functions"),
            "dask.array.utils": ("dask", "scipy_functions"), "distributed.protocol.serialize": ("dask", "transfer"),
            "matplotlib.units": ("matplotlib", "converter")}


def _register(name):
    home, function = _MODULES[name]
    getattr(importlib.import_module("." + home, __package__), function)()


class _Loader:
    """The module's own loader, and then its table is filled."""

    def __init__(self, loader):
        self._loader = loader

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        self._loader.exec_module(module)
        _register(module.__name__)


class _Finder:
    """Leaves finding to the others; of these modules it sees the loading."""

    def __init__(self, names):
        self._waiting = set(names)

    def find_spec(self, name, path=None, target=None):
        if name not in self._waiting:
            return None
        self._waiting.remove(name)
        from importlib.util import find_spec
        spec = find_spec(name)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _Loader(spec.loader)
        return spec


def install():
    """Fill the tables that are there, and the others when they come."""
    later = []
    for name in _MODULES:
        module = sys.modules.get(name)
        if module is None:
            later.append(name)
        elif not getattr(getattr(module, "__spec__", None), "_initializing", False):
            _register(name)
        else:
            later.append(name)
    if later:
        sys.meta_path.insert(0, _Finder(later))
