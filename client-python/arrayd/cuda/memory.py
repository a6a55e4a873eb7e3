"""Memory of the device: what this connection's arrays take."""
from .. import _core
from ._thread import current

__all__ = ["MemoryPool", "OutOfMemoryError", "get_default_memory_pool"]

OutOfMemoryError = MemoryError  # by CuPy's name
_LOOK, _TRIM, _LIMIT = range(3)


class MemoryPool:
    """The server's memory for this connection, on the current device; get_default_memory_pool() is the one.

    Source: cupy.cuda.MemoryPool
    """

    def _ask(self, action=_LOOK, value=0):
        choice = current()
        return _core.pool_ask(choice.serial, choice.device, action, value)

    def used_bytes(self):
        """Bytes of the connection's arrays."""
        return self._ask()[0]

    def total_bytes(self):
        """Bytes taken from the device, in use or kept for reuse."""
        return self._ask()[1]

    def free_bytes(self):
        """Bytes kept for reuse."""
        used, total, *_ = self._ask()
        return max(0, total - used)

    def n_free_blocks(self):
        """Pieces of memory kept for reuse."""
        return self._ask()[2]

    def free_all_blocks(self, stream=None):
        """Give back what no array needs."""
        self._ask(_TRIM)

    def free_all_free(self):
        """The same, by its old name."""
        self.free_all_blocks()

    def set_limit(self, size=None, fraction=None):
        """Let the connection's arrays take at most size bytes, or a fraction of the device's memory; 0: no limit."""
        if (size is None) == (fraction is None):
            raise ValueError("set_limit takes either size or fraction")
        if fraction is not None:
            if not 0 <= fraction <= 1:
                raise ValueError(f"fraction must be from 0 to 1, not {fraction}")
            choice = current()
            size = int(fraction * _core.device_facts(choice.serial, choice.device)[0])
        if size < 0:
            raise ValueError(f"size must not be negative, as {size} is")
        self._ask(_LIMIT, int(size))

    def get_limit(self):
        """Bytes that the connection's arrays may take; 0: no limit."""
        return self._ask()[3]


_pool = MemoryPool()


def get_default_memory_pool():
    """The pool of the device's memory.

    Returns: cuda.MemoryPool, with used_bytes, total_bytes, free_bytes, n_free_blocks, free_all_blocks, set_limit and
    get_limit, which speak of this connection on the current device.
    Source: cupy.get_default_memory_pool
    """
    return _pool
