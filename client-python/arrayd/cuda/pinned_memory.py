"""Host memory that this process shares with the server."""
import operator

import numpy as np

from .. import _core

__all__ = ["PinnedMemory", "PinnedMemoryPointer", "PinnedMemoryPool", "alloc_pinned_memory",
           "get_default_pinned_memory_pool", "set_pinned_memory_allocator"]


class PinnedMemory:
    """Memory of this process that the server shares; where that cannot be had (the server is remote, or refuses), ordinary
    memory. Attributes: ptr: its address. size: its bytes.

    Parameters: size: bytes. flags: accepted.
    Raises: ValueError for a negative size.
    Source: cupy.cuda.PinnedMemory
    """

    def __init__(self, size, flags=0):
        size = operator.index(size)
        if size < 0:
            raise ValueError(f"size must not be negative, as {size} is")
        shared = _core.empty_pinned((size,), "u1") if size else None
        self._bytes = np.empty(size, np.uint8) if shared is None else shared
        self.ptr, self.size = self._bytes.ctypes.data if size else 0, size

    def __int__(self):
        return self.ptr


class PinnedMemoryPointer(_core.HostPointer):
    """A place in such memory: p + n and p - n are places n bytes away. It has the buffer protocol: numpy.frombuffer(p)
    makes arrays there. Attributes: mem: PinnedMemory. ptr: the address.

    Parameters: mem: PinnedMemory. offset: bytes from its begin.
    Source: cupy.cuda.PinnedMemoryPointer
    """

    def size(self):
        """int: bytes from there to the end of the memory."""
        return self.nbytes

    def __len__(self):
        return self.nbytes

    def __int__(self):
        return self.ptr

    def __add__(self, offset):
        return PinnedMemoryPointer(self.mem, self.ptr - self.mem.ptr + operator.index(offset))

    __radd__ = __iadd__ = __add__

    def __sub__(self, offset):
        return self + -operator.index(offset)

    __isub__ = __sub__


def _malloc(size):
    return PinnedMemoryPointer(PinnedMemory(size), 0)


class PinnedMemoryPool:
    """The memory that this process shares with the server, through which arrays travel; all pools are this one, which
    get_default_pinned_memory_pool() gives.

    Parameters: allocator: function of a number of bytes that malloc calls.
    Source: cupy.cuda.PinnedMemoryPool
    """

    def __init__(self, allocator=_malloc):
        self._allocator = allocator

    def n_free_blocks(self):
        """Pieces of it that are not in use."""
        return _core.host_count()[0]

    def malloc(self, size):
        """New memory: a cuda.PinnedMemoryPointer to size bytes."""
        return self._allocator(size)

    def free_all_blocks(self):
        """Give back what is not in use."""
        _core.host_trim()


_pinned = PinnedMemoryPool()
_allocator = _pinned.malloc


def get_default_pinned_memory_pool():
    """The pool of the host memory that this process shares with the server.

    Returns: cuda.PinnedMemoryPool, with n_free_blocks and free_all_blocks.
    Source: cupy.get_default_pinned_memory_pool
    """
    return _pinned


def set_pinned_memory_allocator(allocator=None):
    """Say what alloc_pinned_memory calls. Other memory of transfers stays as it is.

    Parameters: allocator: function of a number of bytes that gives a cuda.PinnedMemoryPointer; None for none but the
    server's.
    Returns: None.
    Raises: TypeError for what is no function.
    Source: cupy.cuda.set_pinned_memory_allocator
    """
    global _allocator
    if allocator is not None and not callable(allocator):
        raise TypeError(f"allocator must be a function of a number of bytes, not {type(allocator).__name__}")
    _allocator = _malloc if allocator is None else allocator


def alloc_pinned_memory(size):
    """Memory of this process that the server shares. Arrays in it are uploaded without a copy on this side. Where such
    memory cannot be had it is ordinary memory. numpy.frombuffer makes arrays in it.

    Parameters: size: bytes.
    Returns: cuda.PinnedMemoryPointer to that many bytes; they live as long as it or arrays in it do.
    Raises: ValueError for a negative size; what the function of set_pinned_memory_allocator raises.
    Source: cupy.cuda.alloc_pinned_memory
    """
    return _allocator(size)
