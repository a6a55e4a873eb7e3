"""Functions of a program's that are called when its arrays get memory and give it back (cupy.cuda.memory_hook)."""
import collections
import threading
import weakref

from .. import _core
from .memory import get_default_memory_pool

__all__ = ["MemoryHook", "get_memory_hooks"]

_UNIT = 512  # bytes: CuPy's pools give memory in such pieces


class _Thread(threading.local):
    """The hooks of a thread, how much memory its connection had when it was asked last, and whether hooks are called."""

    def __init__(self):
        self.hooks, self.taken, self.calling = collections.OrderedDict(), 0, False


_thread = _Thread()
_lock = threading.Lock()
_registered = 0  # hooks of all threads


def get_memory_hooks():
    """Return the hooks of the calling thread.

    Returns: OrderedDict of MemoryHook, by their names.
    Source: cupy.cuda.memory_hook.get_memory_hooks
    """
    return _thread.hooks


class MemoryHook:
    """Base of hooks: a with statement calls its functions for all arrays that the thread makes and drops meanwhile.

    Its six functions get keyword arguments: device_id; size, the bytes of an array; mem_size, those in pieces of 512 bytes;
    mem_ptr and pmem_id, a number that the array has as long as it is there. malloc_preprocess and malloc_postprocess
    (device_id, size, mem_size; the second also mem_ptr, pmem_id) are called when an array has got memory, and free_preprocess
    and free_postprocess (device_id, mem_size, mem_ptr, pmem_id) when it gives it back. alloc_preprocess and alloc_postprocess
    (device_id, mem_size; the second also mem_ptr) are called when the server has taken memory of the device for it:
    mem_size is what it took.

    Raises: KeyError in a second with statement at a time of a hook of that name.
    Differs: the server allocates by itself, so functions for before are called behind it; addresses are not told; and each
    array waits for the server, which is asked how much memory it took.
    Source: cupy.cuda.MemoryHook
    """

    name = "MemoryHook"

    def __enter__(self):
        if self.name in _thread.hooks:
            raise KeyError(f"memory hook {self.name} already exists")
        _thread.taken = get_default_memory_pool().total_bytes()
        _thread.hooks[self.name] = self
        _count(1)
        return self

    def __exit__(self, *_):
        del _thread.hooks[self.name]
        _count(-1)

    def alloc_preprocess(self, **kwargs):
        """Before the device gave memory: device_id, mem_size."""

    def alloc_postprocess(self, **kwargs):
        """After the device gave memory: device_id, mem_size, mem_ptr."""

    def malloc_preprocess(self, **kwargs):
        """Before an array has memory: device_id, size, mem_size."""

    def malloc_postprocess(self, **kwargs):
        """When an array has memory: device_id, size, mem_size, mem_ptr, pmem_id."""

    def free_preprocess(self, **kwargs):
        """Before an array gives its memory back: device_id, mem_size, mem_ptr, pmem_id."""

    def free_postprocess(self, **kwargs):
        """After an array has given its memory back: device_id, mem_size, mem_ptr, pmem_id."""


def _count(change):
    """Let the arrays of all threads be told here as long as any thread has hooks."""
    global _registered
    with _lock:
        _registered += change
        _core.set_on_memory(_made if _registered else None)


def _call(point, **facts):
    """Call a function of all hooks of this thread, which are not told of arrays that it makes."""
    _thread.calling = True
    try:
        for hook in list(_thread.hooks.values()):
            getattr(hook, point)(**facts)
    finally:
        _thread.calling = False


def _made(array):
    """The client has made an array that owns its memory."""
    if _thread.calling or not _thread.hooks or not array.nbytes:
        return
    device, number = array.device.id, id(array)
    pieces = -(-array.nbytes // _UNIT) * _UNIT
    _call("malloc_preprocess", device_id=device, size=array.nbytes, mem_size=pieces)
    before, _thread.taken = _thread.taken, get_default_memory_pool().total_bytes()
    if _thread.taken > before:
        _call("alloc_preprocess", device_id=device, mem_size=_thread.taken - before)
        _call("alloc_postprocess", device_id=device, mem_size=_thread.taken - before, mem_ptr=number)
    _call("malloc_postprocess", device_id=device, size=array.nbytes, mem_size=pieces, mem_ptr=number, pmem_id=number)
    weakref.finalize(array, _freed, device, pieces, number).atexit = False


def _freed(device, pieces, number):
    if not _thread.calling:
        for point in ("free_preprocess", "free_postprocess"):
            _call(point, device_id=device, mem_size=pieces, mem_ptr=number, pmem_id=number)
