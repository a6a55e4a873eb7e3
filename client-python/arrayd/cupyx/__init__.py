"""Functions of cupyx beyond NumPy's surface: scatters, pinned memory, checks and the profiler.

    from arrayd import cupyx
    cupyx.scatter_add(counts, index, 1)
    with cupyx.allow_synchronize(False):      # an error if anything in here waits for the server
        y = model(x)
    print(cupyx.profiler.benchmark(model, (x,), n_repeat=100))

arrayd.cupyx.jit makes kernels of Python functions, and arrayd.cupyx.scipy is arrayd.scipy.
"""
import importlib as _importlib

from .. import _core
from .._alias import install_alias as _install_alias
from .._interop.pinned import empty_like_pinned, empty_pinned, zeros_like_pinned, zeros_pinned
from . import profiler
from ._errstate import errstate, geterr, seterr
from ._gufunc import GeneralizedUFunc
from ._runtime import get_runtime_info
from ._scatter import scatter_add, scatter_max, scatter_min
from ._synchronize import DeviceSynchronized, allow_synchronize

__all__ = ["DeviceSynchronized", "GeneralizedUFunc", "allow_synchronize", "empty_like_pinned", "empty_pinned",
           "errstate", "get_runtime_info", "geterr", "profiler", "rsqrt", "scatter_add", "scatter_max", "scatter_min",
           "seterr", "zeros_like_pinned", "zeros_pinned"]
_MODULES = ("cusolver", "cusparse", "distributed", "jit", "lapack", "linalg", "scipy", "signal", "time")
__all__ = sorted([*__all__, *_MODULES])

rsqrt = _core.ufuncs["rsqrt"]
_install_alias(__name__ + ".scipy", "arrayd.scipy")


def __getattr__(name):
    if name in _MODULES:
        return _importlib.import_module("." + name, __name__)
    from .._removed import missing
    raise missing(name, "cupyx")
