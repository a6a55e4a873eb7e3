"""Modules of cupy.cuda that stand for libraries: what of each there is, and why the rest is not.

The server calls NVIDIA's libraries; this process has none of them. `available` says whether it has, so programs that ask
take the way without. Errors have the name of the library's, and are what any operation raises that fails on a device.
"""
import importlib.machinery
import sys
import types

from .. import _core
from ..fft import _plans
from . import _nvtx


def _get_version():
    """The version of cuFFT whose names these are: CUDA 13's."""
    return 12000


def _get_build_version():
    """The version of CUDA's runtime that the server runs on, as runtime.runtimeGetVersion()."""
    from .runtime import runtimeGetVersion
    return runtimeGetVersion()


def _get_compiler_version():
    """(major, minor) of the NVRTC that the server compiles with, which is of its CUDA; (0, 0) where it computes on the CPU."""
    from .runtime import runtimeGetVersion
    version = runtimeGetVersion()
    return version // 1000, version % 1000 // 10


_NO_HANDLE = "the server calls the library; this process has none of its handles"
# The generators that RandomState's method names, as cuRAND numbers them.
_GENERATORS = {"CURAND_RNG_PSEUDO_DEFAULT": 100, "CURAND_RNG_PSEUDO_XORWOW": 101, "CURAND_RNG_PSEUDO_MRG32K3A": 121,
               "CURAND_RNG_PSEUDO_MTGP32": 141, "CURAND_RNG_PSEUDO_MT19937": 142, "CURAND_RNG_PSEUDO_PHILOX4_32_10": 161}
# The kinds of transforms, as cuFFT numbers them.
_TRANSFORMS = {"CUFFT_R2C": 0x2a, "CUFFT_C2R": 0x2c, "CUFFT_C2C": 0x29, "CUFFT_D2Z": 0x6a, "CUFFT_Z2D": 0x6c,
               "CUFFT_Z2Z": 0x69, "CUFFT_FORWARD": -1, "CUFFT_INVERSE": 1}
# By module: what is said of it, why it has no more, and what it has.
_LIBRARIES = {
    "cub": ("CUB's algorithms, which the server's kernels use", _NO_HANDLE, {"available": False}),
    "cublas": ("cuBLAS; arrayd.matmul and arrayd.linalg call it in the server", _NO_HANDLE,
               {"CUBLASError": _core.DeviceError}),
    "cufft": ("cuFFT; arrayd.fft calls it in the server", _NO_HANDLE,
              {"CuFFTError": _core.DeviceError, "getVersion": _get_version, "Plan1d": _plans.Plan1d, "PlanNd": _plans.PlanNd,
               "get_current_plan": _plans.current_plan, **_TRANSFORMS}),
    "curand": ("cuRAND; arrayd.random has generators", _NO_HANDLE, {"CURANDError": _core.DeviceError, **_GENERATORS}),
    "cusolver": ("cuSOLVER; arrayd.linalg calls it in the server", _NO_HANDLE, {"CUSOLVERError": _core.DeviceError}),
    "cusparse": ("cuSPARSE", _NO_HANDLE, {"CuSparseError": _core.DeviceError}),
    "cutensor": ("cuTENSOR, which arrayd does not use", _NO_HANDLE, {"available": False}),
    "driver": ("CUDA's driver, which the server calls", "this process has no context of CUDA: the server has",
               {"CUDADriverError": _core.DeviceError, "get_build_version": _get_build_version}),
    "nccl": ("NCCL: one server has all devices of a host, and moves arrays between them by itself",
             "one server has all devices of a host", {"available": False}),
    "nvrtc": ("NVRTC, which compiles in a process of the server's", _NO_HANDLE, {"NVRTCError": _core.CompileError, "getVersion": _get_compiler_version}),
    "nvtx": ("Marks and ranges of this process for profilers: the package nvtx, where it is installed, shows them",
             "there are marks and ranges only",
             {"available": True, **{name: getattr(_nvtx, name) for name in _nvtx.__all__}}),
    "thrust": ("Thrust's algorithms, which CuPy sorts by", _NO_HANDLE, {"available": False}),
}


def _make(name):
    """The module of a library, which import finds among those that there are."""
    about, reason, has = _LIBRARIES[name]
    full = f"{__package__}.{name}"
    module = types.ModuleType(full, about + ".")
    module.__spec__ = importlib.machinery.ModuleSpec(full, None, origin=__file__)
    module.__package__, module.__all__ = __package__, sorted(has)

    def missing(attribute):
        raise AttributeError(f"module {full!r} has no attribute {attribute!r}"
                             + ("" if attribute.startswith("__") else f": {reason}"), name=attribute, obj=module)

    module.__dict__.update(has, __getattr__=missing)
    return module


def install(package):
    """Put all of them into the package arrayd.cuda."""
    for name in _LIBRARIES:
        module = _make(name)
        sys.modules[module.__name__] = module
        setattr(package, name, module)


NAMES = tuple(_LIBRARIES)
