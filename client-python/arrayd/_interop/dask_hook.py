"""Dask hears of this package's arrays whichever of the two is imported first, and neither imports the other.

Dask asks tables by type for what it does with chunks, and fills them for NumPy and its like in its own modules. Nothing
of Dask runs between its import and the first chunk, so the tables are filled when their modules have been imported.
"""
import importlib.util
import sys

_MODULES = {"dask.sizeof": "sizes", "dask.array.backends": "functions", "dask.array.utils": "scipy_functions",
            "distributed.protocol.serialize": "transfer"}


def _register(name):
    from . import dask
    getattr(dask, _MODULES[name])()


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
    """Leaves finding to the others; of Dask's modules it sees the loading."""

    def __init__(self, names):
        self._waiting = set(names)

    def find_spec(self, name, path=None, target=None):
        if name not in self._waiting:
            return None
        self._waiting.remove(name)
        spec = importlib.util.find_spec(name)
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
