"""Cooperative groups in kernels written in Python: the grid and the block."""
import numpy as np

from .jit_builtins import Dim3
from .jit_expressions import Builtin
from .jit_values import Constant, Scalar, Value

_GRID = "cooperative_groups::this_grid()"
_BLOCK = "cooperative_groups::this_thread_block()"


def waits_for_grid(source):
    """Whether a kernel's source is of launches whose blocks run all at once."""
    return f"{_GRID}.sync()" in source


class _Group:
    """Threads that know and wait for each other, in kernels. numbers, places: what it tells, and as x, y and z."""

    def __init__(self, code, dtype, numbers, places):
        self._code = code
        self.sync = self._method("sync", "Wait for all threads of the group.", lambda call: Value(call, None))
        for name, doc in numbers.items():
            setattr(self, name, self._method(name, doc, lambda call: Value(call, Scalar(dtype))))
        for name, doc in places.items():
            setattr(self, name, self._method(name, doc, lambda call: Constant(Dim3(call, ""))))

    def _method(self, name, doc, made):
        return Builtin(name, doc, lambda translator: made(f"{self._code}.{name}()"))

    def __repr__(self):
        return f"<arrayd.cupyx.jit {self._code}>"


_grid = _Group(_GRID, np.uint64, {
    "size": "How many threads the grid has.", "num_threads": "How many threads the grid has.",
    "num_blocks": "How many blocks the grid has.", "thread_rank": "The thread's number in the grid.",
    "block_rank": "The block's number in the grid.",
}, {
    "group_dim": "How many blocks the grid has along x, y and z.",
    "dim_blocks": "How many blocks the grid has along x, y and z.",
    "block_index": "The block's place in the grid.",
})
_block = _Group(_BLOCK, np.uint32, {
    "size": "How many threads the block has.", "num_threads": "How many threads the block has.",
    "thread_rank": "The thread's number in the block.",
}, {
    "group_index": "The block's place in the grid.", "thread_index": "The thread's place in the block.",
    "group_dim": "How many threads the block has along x, y and z.",
    "dim_threads": "How many threads the block has along x, y and z.",
})


def _builtin(function):
    return Builtin(function.__name__, function.__doc__, function)


@_builtin
def this_grid(translator):
    """All threads of the launch: sync(), for which its blocks run all at once, size(), thread_rank() and others.

    Returns: the group.
    Raises: RuntimeError outside of a kernel.
    Source: cupyx.jit.cg.this_grid
    """
    return Constant(_grid)


@_builtin
def this_thread_block(translator):
    """The threads of the block: sync(), size(), thread_rank() and others.

    Returns: the group.
    Raises: RuntimeError outside of a kernel.
    Source: cupyx.jit.cg.this_thread_block
    """
    return Constant(_block)


@_builtin
def sync(translator, group):
    """Wait for all threads of a group.

    Parameters: group: this_grid() or this_thread_block().
    Returns: None.
    Raises: RuntimeError outside of a kernel.
    Source: cupyx.jit.cg.sync
    """
    found = group.value if isinstance(group, Constant) else None
    if not isinstance(found, _Group):
        raise TypeError("group must be this_grid() or this_thread_block()")
    return found.sync.translate(translator)
