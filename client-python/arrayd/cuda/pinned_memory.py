"""Host memory that this process shares with the server."""
import operator

from .. import _core

__all__ = ["PinnedMemoryPool", "alloc_pinned_memory", "get_default_pinned_memory_pool"]


class PinnedMemoryPool:
    """The memory that this process shares with the server, through which arrays travel;
    get_default_pinned_memory_pool() is the one.

    Source: cupy.cuda.PinnedMemoryPool
    """

    def n_free_blocks(self):
        """Pieces of it that are not in use."""
        return _core.host_count()[0]

    def malloc(self, size):
        """alloc_pinned_memory(size)."""
        return alloc_pinned_memory(size)

    def free_all_blocks(self):
        """Give back what is not in use."""
        _core.host_trim()


_pinned = PinnedMemoryPool()


def get_default_pinned_memory_pool():
    """The pool of the host memory that this process shares with the server.

    Returns: cuda.PinnedMemoryPool, with n_free_blocks and free_all_blocks.
    Source: cupy.get_default_pinned_memory_pool
    """
    return _pinned


def alloc_pinned_memory(size):
    """Memory of this process that the server shares, so that arrays in it are uploaded without a copy on this side;
    where that cannot be had, ordinary memory. numpy.frombuffer makes arrays in it.

    Parameters: size: bytes.
    Returns: memoryview of at least that many bytes (CuPy: PinnedMemoryPointer); it lives as long as arrays in it do.
    Raises: ValueError for a negative size.
    Source: cupy.cuda.alloc_pinned_memory
    """
    size = operator.index(size)
    if size < 0:
        raise ValueError(f"size must not be negative, as {size} is")
    shared = _core.empty_pinned((size,), "u1") if size else None
    return memoryview(bytearray(size) if shared is None else shared)
