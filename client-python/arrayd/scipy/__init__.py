"""SciPy's functions on arrays of the server: arrayd.scipy.special, arrayd.scipy.ndimage and so on.

    from arrayd.scipy import ndimage
    smooth = ndimage.gaussian_filter(image, 2)

Names, parameters and results are SciPy's. arrayd.cupyx.scipy has the same modules, and so has cupyx.scipy after
arrayd.cupy.install().
"""
import importlib as _importlib
import importlib.util as _util
import pkgutil as _pkgutil

# Whether SciPy itself is installed.
try:
    _scipy_available = _util.find_spec("scipy") is not None
except ModuleNotFoundError:  # a finder refuses the name
    _scipy_available = False

__all__ = sorted(module.name for module in _pkgutil.iter_modules(__path__) if not module.name.startswith("_"))


def __getattr__(name):
    if name in __all__:
        return _importlib.import_module("." + name, __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)


def __dir__():
    return __all__


def get_array_module(*args):
    """Return this module when one of args is an array of the server, also a sparse one, else SciPy.

    Parameters: args: arrays and other values.
    Returns: module.
    Raises: ImportError where it is SciPy, and that is not installed.
    Source: cupyx.scipy.get_array_module
    """
    import arrayd
    return _importlib.import_module(__name__ if arrayd.get_array_module(*args) is arrayd else "scipy")


__all__ += ["get_array_module"]
