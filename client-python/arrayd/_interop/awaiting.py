"""Arrays in coroutines: waiting for the server in threads of this package, so that the event loop goes on meanwhile.

    event loop   a = x @ y     await a ──────────────── other coroutines ──────────▶ a is complete
                                 │                                        ▲
    thread                       └─ reads one element, without the GIL ───┘
"""
import asyncio
import concurrent.futures
import os
import threading

import numpy as np

from .. import _core
from .._base import ndarray

_THREADS = 8       # waits at a time; others queue
_PIECE = 1 << 20   # bytes of rows that an iteration fetches at a time
_lock = threading.Lock()
_pool, _pool_of = None, 0


def _threads():
    """The threads that wait; a fork's child has its own."""
    global _pool, _pool_of
    with _lock:
        if _pool_of != os.getpid():
            _pool = concurrent.futures.ThreadPoolExecutor(_THREADS, "arrayd-await")
            _pool_of = os.getpid()
        return _pool


def _forget_lock():
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_forget_lock)


async def _in_thread(function, *args):
    return await asyncio.get_running_loop().run_in_executor(_threads(), function, *args)


def _complete(a):
    """Wait until the array is complete, by reading one of its elements; errors that no array carries are raised, too."""
    if a.size:
        a[(0,) * a.ndim].get()
    else:
        _core.sync()
    return a


def ready(self):
    """Wait in a coroutine until the array is complete: await a. The event loop goes on meanwhile.

    Returns: iterator; await gives the array itself.
    Raises: the error of the operation that failed to compute it.
    Source: arrayd
    """
    return _in_thread(_complete, self).__await__()


async def aget(self, order="C", out=None):
    """The elements as a NumPy array, fetched while the event loop goes on: await a.aget().

    Parameters: order: 'C' or 'F', how the elements lie. out: numpy.ndarray to fetch them into.
    Returns: numpy.ndarray.
    Raises: as get.
    Source: arrayd
    """
    return await _in_thread(lambda: self.get(order=order, out=out))


async def aitem(self, *index):
    """An element as a Python number, fetched while the event loop goes on: await a.aitem(3).

    Parameters: index: as for item.
    Returns: int, float, complex or bool.
    Raises: as item.
    Source: arrayd
    """
    return await _in_thread(self.item, *index)


async def rows(self):
    """Fetch the elements of the first axis as NumPy arrays: async for row in a. They come in pieces of about a MiB, the
    next of which is on its way while the loop's body runs.

    Returns: asynchronous iterator of numpy.ndarray; of a 1-d array, of NumPy's numbers.
    Raises: TypeError for an array without dimensions; as get.
    Source: arrayd
    """
    if self.ndim == 0:
        raise TypeError("iteration over a 0-d array")
    step = max(1, _PIECE // max(1, self[:1].nbytes))
    pieces = [self[at:at + step] for at in range(0, len(self), step)]
    coming = None
    try:
        for i, piece in enumerate(pieces):
            host = await (coming or asyncio.ensure_future(aget(piece)))
            coming = asyncio.ensure_future(aget(pieces[i + 1])) if i + 1 < len(pieces) else None
            for row in host:
                yield row
    finally:
        if coming:
            coming.cancel()


async def async_sync():
    """Wait until all operations so far are complete, while the event loop goes on.

    Returns: None.
    Raises: as sync.
    Source: arrayd
    """
    await _in_thread(_core.sync)


async def async_asarray(a, dtype=None, order=None):
    """Send elements to the server while the event loop goes on: await ad.async_asarray(host).

    Parameters: a: array or what numpy.asarray takes; it must not change meanwhile. dtype, order: as for asarray.
    Returns: ndarray.
    Raises: as asarray.
    Source: arrayd
    """
    from .._array.creation import asarray
    if isinstance(a, ndarray):
        return asarray(a, dtype, order)
    return await _in_thread(lambda: asarray(np.asarray(a), dtype, order))
