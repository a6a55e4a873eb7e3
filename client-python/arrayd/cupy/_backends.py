"""The package `cupy_backends` of CuPy, from which programs take CUDA's runtime, its errors and the libraries.

    cupy_backends.cuda.api.{driver, runtime}       arrayd.cuda.{driver, runtime}
    cupy_backends.cuda.libs.{cublas, nvrtc, ...}   arrayd.cuda.{cublas, nvrtc, ...}
"""
import importlib
import sys
import types

_API = ("driver", "runtime")
_LIBS = ("cublas", "curand", "cusolver", "cusparse", "cutensor", "nccl", "nvrtc", "nvtx")


def _make_package(name, **has):
    """Return a package that import finds, with its modules."""
    package = types.ModuleType(f"{__name__}.{name}", f"cupy_backends.{name} of CuPy.")
    package.__spec__ = importlib.machinery.ModuleSpec(package.__name__, None, origin=__file__, is_package=True)
    package.__path__ = []
    package.__dict__.update(has)
    sys.modules.update({f"{package.__name__}.{key}": module for key, module in has.items()})
    sys.modules[package.__name__] = package
    return package


def _find(names):
    cuda = importlib.import_module("arrayd.cuda")
    return {name: getattr(cuda, name) for name in names}


__path__ = []
cuda = _make_package("cuda", api=_make_package("cuda.api", **_find(_API)), libs=_make_package("cuda.libs", **_find(_LIBS)))
