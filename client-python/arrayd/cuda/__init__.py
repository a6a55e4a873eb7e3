"""Devices, streams, events and memory of the server, with CuPy's names (cupy.cuda).

    with ad.cuda.Device(1):            # what follows lies and runs on the second GPU
        x = ad.arange(10)
    stream = ad.cuda.Stream()
    with stream:                       # what follows may overlap with other streams
        y = x * 2
    stream.synchronize()

Streams order nothing that must be ordered otherwise: operations of one program take effect in the order in which they
were called, on whatever streams, because the server lets a stream wait for another where both use the same array.
A server without a GPU has one device, whose streams and events are always done.
"""
import importlib as _importlib
import sys as _sys
import warnings as _warnings

from . import _libraries, device, graph, memory, memory_hook, memory_hooks, pinned_memory, runtime, stream, texture
from .device import Device, get_device_id
from .graph import Graph
from .memory import (BaseMemory, ManagedMemory, Memory, MemoryAsync, MemoryAsyncPool, MemoryPointer, MemoryPool,
                     UnownedMemory, alloc, get_allocator, malloc_async, malloc_managed, set_allocator, using_allocator)
from .memory_hook import MemoryHook
from .pinned_memory import (PinnedMemory, PinnedMemoryPointer, PinnedMemoryPool, alloc_pinned_memory,
                            set_pinned_memory_allocator)
from .stream import Event, ExternalStream, Stream, get_current_stream, get_elapsed_time

_libraries.install(_sys.modules[__name__])
# Whether this process has the libraries, by their older names.
cub_enabled = cutensor_enabled = nccl_enabled = thrust_enabled = False
nvtx_enabled = True

__all__ = ["BaseMemory", "Device", "Event", "ExternalStream", "Function", "Graph", "ManagedMemory", "Memory", "MemoryAsync",
           "MemoryAsyncPool", "MemoryHook", "MemoryPointer", "MemoryPool", "PinnedMemory", "PinnedMemoryPointer", "PinnedMemoryPool",
           "Stream", "UnownedMemory", "alloc", "alloc_pinned_memory", "compiler", "device", "get_allocator", "graph",
           "get_current_stream", "get_device_id", "get_elapsed_time", "get_local_runtime_version", "is_available",
           "malloc_async", "malloc_managed", "memory", "memory_hook", "memory_hooks", "pinned_memory", "profile", "runtime",
           "set_allocator", "set_pinned_memory_allocator", "stream", "texture", "using_allocator", *_libraries.NAMES]


def get_local_runtime_version():
    """The version of CUDA's runtime that the server runs on.

    Returns: int, as runtime.runtimeGetVersion.
    Source: cupy.cuda.get_local_runtime_version
    """
    return runtime.runtimeGetVersion()


def is_available():
    """Whether the server computes on a GPU.

    Returns: bool.
    Raises: ConnectionError when there is no server.
    Source: cupy.cuda.is_available
    """
    from .. import _core
    return _core.session_info()["backend"] == "cuda"


def profile():
    """cupyx.profiler.profile by the name that CuPy has deprecated.

    Returns: context manager, as that function.
    Raises: ConnectionError when there is no server. It warns (DeprecationWarning).
    Source: cupy.cuda.profile
    """
    from ..cupyx import profiler
    _warnings.warn("cuda.profile is deprecated; use cupyx.profiler.profile", DeprecationWarning, stacklevel=2)
    return profiler.profile()


def __getattr__(name):
    if name == "compiler":
        return _importlib.import_module(".compiler", __name__)
    if name == "Function":
        from .._kernel.launch import Function
        return Function
    from .._removed import missing
    raise missing(name, "cuda")
