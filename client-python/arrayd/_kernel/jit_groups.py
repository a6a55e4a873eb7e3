"""Cooperative groups in kernels written in Python: the grid and the block."""
import re

import numpy as np

from .jit_builtins import Dim3
from .jit_expressions import Builtin, unwrapped
from .jit_values import Array, Constant, Scalar, Shared, Value, as_scalar, as_value, convert

_GRID = "cooperative_groups::this_grid()"
_BLOCK = "cooperative_groups::this_thread_block()"


_WAITS = re.compile(rf"{re.escape(_GRID)}\.sync\(\)|cooperative_groups::wait(_prior<\d+>)?\({re.escape(_GRID)}\)")


def waits_for_grid(source):
    """Whether a kernel's source is of launches whose blocks run all at once."""
    return _WAITS.search(source) is not None


def headers(used):
    """Return what text that is used needs included, and defined after that."""
    if "cooperative_groups::" not in used:
        return ""
    copies = any(name in used for name in ("ad_copy_bytes(", "cooperative_groups::memcpy_async(", "cooperative_groups::wait"))
    return "".join(["#include <cooperative_groups.h>\n",
                    "#include <cooperative_groups/memcpy_async.h>\n" if copies else "",
                    _ALIGNED if "ad_aligned_size<" in used else "", _BYTES if "ad_copy_bytes(" in used else ""])


# CUDA's takes any template of a number for its aligned_size_t, whose header takes a second to compile.
_ALIGNED = """template <size_t N> struct ad_aligned_size {
    size_t bytes;
    __device__ explicit operator size_t() const { return bytes; }
};
"""


# CUDA's copy (13.0) takes bytes two by two where one place is two away from what the other is aligned to. It does so at
# odd addresses, too, and leaves out the last of an odd number. An empty copy counts for wait_prior(), as any.
_BYTES = """template <class Block, class T>
__device__ void ad_copy_bytes(const Block &block, T *to, const T *from, size_t bytes) {
    const bool twos = (((size_t)to ^ (size_t)from) & 3) == 2;
    for (size_t i = block.thread_rank(); twos && i < bytes; i += block.size()) to[i] = from[i];
    cooperative_groups::memcpy_async(block, to, from, twos ? 0 : bytes);
}
"""


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
_grid.is_valid = _grid._method("is_valid", "Whether sync() can wait: true, as a kernel that calls it is launched so.",
                               lambda call: Value(call, Scalar(bool)))
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
    return _known(group).sync.translate(translator)


def _known(group):
    found = group.value if isinstance(group, Constant) else None
    if not isinstance(found, _Group):
        raise TypeError("group must be this_grid() or this_thread_block()")
    return found


def _place(array, index, what):
    """The type of an array, and the address of an element of it in C order."""
    array = as_value(array)
    if not isinstance(array.type, (Array, Shared)):
        raise TypeError(f"{what} must be an array or shared memory, not {array.type}")
    if isinstance(array.type, Array) and not array.type.flat:
        raise TypeError(f"{what} must be C-contiguous")
    index = as_scalar(index, f"an integer for {what}_idx")
    if index.type.dtype.kind not in "iu":
        raise TypeError(f"{what}_idx must be an integer, not {index.type}")
    return array, f"&{array.code}[(ptrdiff_t)({index.code})]"


@_builtin
def memcpy_async(translator, group, dst, dst_idx, src, src_idx, size, *, aligned_size=Constant(None)):
    """Begin to copy elements, by all threads of a group; they are there, and src may change, after wait() or wait_prior().

    Parameters: group: this_thread_block(), all of whose threads call it. dst, src: arrays or shared
    memory of one type, C-contiguous, which do not overlap. dst_idx, src_idx: number of the first element in C order.
    size: bytes. aligned_size: both places, and size, are multiples of so many bytes; a constant power of two.
    Returns: None.
    Raises: RuntimeError outside of a kernel.
    Source: cupyx.jit.cg.memcpy_async
    """
    if _known(group) is not _block:
        raise TypeError("group must be this_thread_block(): other threads share no memory to copy to")
    target, to = _place(dst, dst_idx, "dst")
    source, start = _place(src, src_idx, "src")
    if target.type.dtype != source.type.dtype:
        raise TypeError(f"dst and src must be of one type, not {target.type.dtype.name} and {source.type.dtype.name}")
    if as_scalar(size, "size").type.dtype.kind not in "iu":
        raise TypeError("size must be an integer number of bytes")
    count, align = convert(size, np.uint64, "unsafe"), unwrapped(aligned_size)
    if align is not None and (type(align) is not int or align < 1 or align & align - 1):
        raise ValueError(f"aligned_size must be a power of two, not {align!r}")
    translator.written |= target.roots
    if align in (None, 1) and target.type.dtype.itemsize == 1:
        return Value(f"ad_copy_bytes({_BLOCK}, {to}, {start}, {count})", None)
    if align is not None:
        count = f"ad_aligned_size<{align}>{{(size_t)({count})}}"
    return Value(f"cooperative_groups::memcpy_async({_BLOCK}, {to}, {start}, {count})", None)


@_builtin
def wait(translator, group):
    """Wait until all that memcpy_async() has begun is there, and for all threads of the group.

    Parameters: group: this_thread_block(); or this_grid(), for which the blocks of the launch run all at once, as its
    sync() does.
    Returns: None.
    Raises: RuntimeError outside of a kernel.
    Source: cupyx.jit.cg.wait
    """
    return Value(f"cooperative_groups::wait({_known(group)._code})", None)


@_builtin
def wait_prior(translator, group, step):
    """Wait until all that memcpy_async() has begun is there but for the last `step` calls, and for all threads of the group.

    Parameters: group: this_grid() or this_thread_block(). step: a constant int from 0 on.
    Returns: None.
    Raises: RuntimeError outside of a kernel.
    Source: cupyx.jit.cg.wait_prior
    """
    number = unwrapped(step)
    if type(number) is not int or number < 0:
        raise ValueError(f"step must be an int from 0 on, not {number!r}")
    return Value(f"cooperative_groups::wait_prior<{number}>({_known(group)._code})", None)
