"""Memory of the device: what this connection's arrays take, and pointers to it.

An array has its memory with the server. a.data.ptr maps that into this process, as __dlpack__ does: an address of the
GPU that server and process share, or of the host where the server computes on the CPU.
"""
import contextlib
import ctypes
import operator
import threading
import warnings
import weakref

import numpy as np

from .. import _base, _core
from .._array.structured import find_dtype
from .._interop import addresses
from ._thread import current
from .device import Device

__all__ = ["BaseMemory", "ManagedMemory", "Memory", "MemoryAsync", "MemoryAsyncPool", "MemoryPointer", "MemoryPool",
           "OutOfMemoryError", "UnownedMemory", "alloc", "get_allocator", "get_default_memory_pool", "malloc_async",
           "malloc_managed", "set_allocator", "using_allocator"]

OutOfMemoryError = MemoryError  # by CuPy's name
_LOOK, _TRIM, _LIMIT = range(3)


# ---- memory ----

class BaseMemory:
    """Memory of a device: ptr is its address in this process, size its bytes.

    Source: cupy.cuda.BaseMemory
    """

    _bytes = None  # it, as an array of type uint8
    _told = None   # its address and size, where these were given: also by a class of a user's that sets them
    _device = None  # the number of its device, where a class of a user's sets it

    @property
    def ptr(self):
        """The address in this process; 0 for no bytes. Waits for what was called so far. A program must wait (sync) for
        later work of the server on an array there before the memory is read by other means.

        Raises: NotImplementedError where this process cannot have the server's memory."""
        if self._told:
            return self._told[0]
        try:
            return addresses.address_of(self._bytes)
        except (NotImplementedError, ValueError) as error:
            raise NotImplementedError(f"the memory has no address in this process: {error}; a.get() brings an array's "
                                      "elements here") from None

    @ptr.setter
    def ptr(self, address):
        self._told = operator.index(address), self._told[1] if self._told else 0

    @property
    def size(self):
        """int: bytes."""
        return self._told[1] if self._told else self._bytes.size

    @size.setter
    def size(self, size):
        self._told = self._told[0] if self._told else 0, operator.index(size)

    @property
    def device_id(self):
        """int: the number of its device."""
        return self._bytes.device.id if self._device is None else self._device

    @device_id.setter
    def device_id(self, number):
        self._device = operator.index(number)

    @property
    def device(self):
        """cuda.Device: where it is."""
        return Device(self.device_id)

    def __int__(self):
        return self.ptr

    def _take(self, offset, size):
        """A range of its bytes, as an array."""
        if not 0 <= offset <= offset + size <= self._bytes.size:
            raise ValueError(f"the memory has {self._bytes.size} bytes, and none from {offset} to {offset + size}")
        return self._bytes[offset:offset + size]


class Memory(BaseMemory):
    """New memory on the current device.

    Parameters: size: bytes.
    Raises: ValueError for a negative size; MemoryError, when it is used, where the server has no more.
    Source: cupy.cuda.Memory
    """

    def __init__(self, size):
        size = operator.index(size)
        if size < 0:
            raise ValueError(f"size must not be negative, as {size} is")
        array = _base.empty((size,), "u1")
        self._bytes = array
        _of_arrays[id(array)] = self


class MemoryAsync(Memory):
    """Memory as cuda.Memory has it: the server frees all memory in the order of the streams.

    Parameters: size: bytes. stream: accepted.
    Source: cupy.cuda.MemoryAsync
    """

    def __init__(self, size, stream=None):
        super().__init__(size)


class ManagedMemory(Memory):
    """Memory that host and device use at one address: all memory of a server that computes on the CPU.

    Parameters: size: bytes.
    Raises: NotImplementedError where the server uses a GPU.
    Source: cupy.cuda.ManagedMemory
    """

    def __init__(self, size):
        if _core.session_info()["backend"] != "cpu":
            raise NotImplementedError("managed memory cannot be shared by processes, as the server's is; alloc() gives "
                                      "memory of the device, and the server can move arrays to the host's by itself")
        super().__init__(size)

    def prefetch(self, stream, *, device_id=None):
        """Nothing is to be done: the memory is where the server computes. RuntimeError for a device that is not there."""
        if device_id is not None:
            _check_device(device_id)

    def advise(self, advise, device):
        """Nothing is to be done: the memory is where the server computes. RuntimeError for an advice that CUDA does not
        number, and for a device that is not there."""
        if operator.index(advise) not in _ADVICE:
            raise RuntimeError(f"advise must be one of CUDA's cudaMemoryAdvise, {_ADVICE[0]} to {_ADVICE[-1]}, not {advise}")
        _check_device(getattr(device, "id", device))


_ADVICE = range(1, 7)  # cudaMemAdviseSetReadMostly to cudaMemAdviseUnsetAccessedBy


def _check_device(number):
    try:
        Device(number).mem_info  # asks for what only a device has that is there
    except (ValueError, OverflowError, RuntimeError) as error:
        raise RuntimeError(f"device_id: {error}") from None


class _MemoryOf(BaseMemory):
    """The buffer of an array."""

    def __init__(self, array):
        self._bytes = addresses.bytes_of(array)


class UnownedMemory(BaseMemory):
    """Memory of arrays that somebody else owns in this process. It is memory of another library on the GPU that the server
    uses, as asarray takes it, or of an array whose address a.data.ptr has told.

    Parameters: ptr: address. size: bytes. owner: object that keeps the memory; it is kept as long as arrays there are.
    device_id: number of its device in this process, if that is known.
    Raises: when it is used: NotImplementedError or ValueError where the server cannot have that memory, with the reason.
    Source: cupy.cuda.UnownedMemory
    """

    def __init__(self, ptr, size, owner, device_id=-1):
        self._told, self._owner = (operator.index(ptr), operator.index(size)), owner
        self._asked, self._found = operator.index(device_id), None

    @property
    def _bytes(self):
        if self._found is not None:
            return self._found
        if not self.size:
            found = _base.empty((0,), "u1")
        else:
            found = addresses.find_bytes(self.ptr, self.size)
        if found is None and _core.session_info()["backend"] == "cpu":
            raise NotImplementedError(f"UnownedMemory: the server computes on the CPU and cannot have this process's "
                                      f"memory at {self.ptr:#x}; asarray(numpy.ndarray) brings a copy there")
        if found is None:
            found = _core.lend((self._owner,), self._asked, self.ptr, False, "u1", (self.size,), (1,))
        self._found = found  # from now on all arrays there are views of this one
        return found


_of_arrays = weakref.WeakValueDictionary()  # memory by the id of the array that owns the buffer, which the memory keeps


def pointer_to(a):
    """ndarray.data"""
    owner = addresses.owner_of(a)
    memory = _of_arrays.get(id(owner))
    if memory is None:
        memory = _of_arrays[id(owner)] = _MemoryOf(owner)
    return MemoryPointer(memory, addresses.offset_of(a) - addresses.offset_of(memory._bytes) if a.size else 0)


class MemoryPointer:
    """A place in memory. ndarray(shape, dtype, memptr) makes an array there; p + n and p - n are places n bytes away.

    Parameters: mem: BaseMemory. offset: bytes from its begin.
    Source: cupy.cuda.MemoryPointer
    """

    def __init__(self, mem, offset):
        if not isinstance(mem, BaseMemory):
            raise TypeError(f"mem must be a cuda.BaseMemory, not {type(mem).__name__}")
        self.mem, self._offset = mem, operator.index(offset)

    @property
    def ptr(self):
        """int: the address in this process, as BaseMemory.ptr."""
        return self.mem.ptr + self._offset

    @property
    def device_id(self):
        """int: the number of its device."""
        return self.mem.device_id

    @property
    def device(self):
        """cuda.Device: where it is."""
        return self.mem.device

    def __int__(self):
        return self.ptr

    def __add__(self, offset):
        return MemoryPointer(self.mem, self._offset + operator.index(offset))

    __radd__ = __iadd__ = __add__

    def __sub__(self, offset):
        return self + -operator.index(offset)

    __isub__ = __sub__

    def __repr__(self):
        return f"<MemoryPointer at byte {self._offset} of {self.mem.size}>"

    def _array(self, shape, dtype, strides, order):
        """An array there: see ndarray."""
        shape = _base.shape_tuple(shape)
        dtype = find_dtype(dtype) or _core.as_dtype(float if dtype is None else dtype)
        if strides is None:
            strides = _base.packed_strides(shape, dtype.itemsize, order)
        return _base.view(self.mem._bytes, shape, tuple(strides), self._offset, dtype)

    def _take(self, size):
        return self.mem._take(self._offset, operator.index(size))

    def copy_from_device(self, src, size):
        """Copy from other memory of the server.

        Parameters: src: MemoryPointer. size: bytes.
        Returns: None.
        Raises: ValueError where either has not as many.
        Source: cupy.cuda.MemoryPointer.copy_from_device
        """
        self._take(size)[...] = src._take(size)

    def copy_from_host(self, mem, size):
        """Copy from memory of this process.

        Parameters: mem: address, an int or a ctypes.c_void_p. size: bytes.
        Returns: None.
        Raises: ValueError where there are not as many.
        Source: cupy.cuda.MemoryPointer.copy_from_host
        """
        self._take(size).set(host_bytes(mem, size))

    def copy_from(self, mem, size):
        """Copy from memory of the server (a MemoryPointer, or an address that one has told), or of this process (another
        address).

        Parameters: mem: MemoryPointer, int or ctypes.c_void_p. size: bytes.
        Returns: None.
        Raises: ValueError where there are not as many.
        Source: cupy.cuda.MemoryPointer.copy_from
        """
        if isinstance(mem, MemoryPointer):
            return self.copy_from_device(mem, size)
        there = addresses.find_bytes(_address(mem), size)
        if there is None:
            return self.copy_from_host(mem, size)
        self._take(size)[...] = there

    def copy_to_host(self, mem, size):
        """Copy to memory of this process; waits.

        Parameters: mem: address, an int or a ctypes.c_void_p. size: bytes.
        Returns: None.
        Raises: ValueError where there are not as many.
        Source: cupy.cuda.MemoryPointer.copy_to_host
        """
        source = self._take(size)
        if source.size:
            host_bytes(mem, size)[...] = source.get()

    def memset(self, value, size):
        """Set bytes.

        Parameters: value: from 0 to 255. size: how many.
        Returns: None.
        Raises: ValueError where there are not as many.
        Source: cupy.cuda.MemoryPointer.memset
        """
        self._take(size)[...] = np.uint8(value)

    def copy_from_device_async(self, src, size, stream=None):
        """copy_from_device on a stream, the current one unless given."""
        with _on(stream):
            self.copy_from_device(src, size)

    def copy_from_host_async(self, mem, size, stream=None):
        """copy_from_host on a stream, the current one unless given. The bytes are taken before the call returns."""
        with _on(stream):
            self.copy_from_host(mem, size)

    def copy_from_async(self, mem, size, stream=None):
        """copy_from on a stream, the current one unless given."""
        with _on(stream):
            self.copy_from(mem, size)

    def copy_to_host_async(self, mem, size, stream=None):
        """copy_to_host on a stream, the current one unless given. The bytes are there when the call returns."""
        with _on(stream):
            self.copy_to_host(mem, size)

    def memset_async(self, value, size, stream=None):
        """memset on a stream, the current one unless given."""
        with _on(stream):
            self.memset(value, size)


def _on(stream):
    return contextlib.nullcontext() if stream is None else stream


def _address(mem):
    return int(mem.value or 0) if isinstance(mem, ctypes.c_void_p) else operator.index(mem)


def host_bytes(mem, size):
    """Bytes of this process at an address, as a NumPy array."""
    return np.frombuffer((ctypes.c_ubyte * size).from_address(_address(mem)), np.uint8)


# ---- allocators ----

def alloc(size):
    """New memory on the current device.

    Parameters: size: bytes.
    Returns: cuda.MemoryPointer to it.
    Raises: ValueError for a negative size.
    Source: cupy.cuda.alloc
    """
    return MemoryPointer(Memory(size), 0)


def malloc_async(size):
    """Allocate memory as alloc does: the server frees all memory in the order of the streams.

    Parameters: size: bytes.
    Returns: cuda.MemoryPointer to it.
    Raises: ValueError for a negative size.
    Source: cupy.cuda.malloc_async
    """
    return MemoryPointer(MemoryAsync(size), 0)


def malloc_managed(size):
    """Memory that host and device use at one address, where the server computes on the CPU.

    Parameters: size: bytes.
    Returns: cuda.MemoryPointer to it.
    Raises: NotImplementedError where the server uses a GPU; ValueError for a negative size.
    Source: cupy.cuda.malloc_managed
    """
    return MemoryPointer(ManagedMemory(size), 0)


class MemoryPool:
    """The server's memory for this connection, on the current device. All pools are this one, which
    get_default_memory_pool() gives: the statistics and the limit are the connection's.

    Parameters: allocator: None, or one of alloc, malloc_async and malloc_managed: what malloc calls.
    Raises: NotImplementedError for another allocator, as set_allocator.
    Source: cupy.cuda.MemoryPool
    """

    def __init__(self, allocator=None):
        _check_allocator(allocator)
        self._allocator = allocator or alloc

    def malloc(self, size):
        """New memory: a cuda.MemoryPointer to size bytes."""
        return self._allocator(size)

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
        """Free all blocks, by the old name of free_all_blocks."""
        warnings.warn("free_all_free is deprecated: use free_all_blocks", DeprecationWarning, stacklevel=2)
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


class MemoryAsyncPool(MemoryPool):
    """A pool as cuda.MemoryPool is: the server frees all memory in the order of the streams.

    Parameters: pool_handles: accepted as 'current' or 'default', which are the connection's.
    Raises: NotImplementedError for others.
    Source: cupy.cuda.MemoryAsyncPool
    """

    def __init__(self, pool_handles="current"):
        if pool_handles not in ("current", "default"):
            raise NotImplementedError("MemoryAsyncPool: the server has one pool for a connection, which is 'current'")
        super().__init__(malloc_async)


_pool = MemoryPool.__new__(MemoryPool)
_pool._allocator = alloc


class _Chosen(threading.local):
    """The allocator that using_allocator has set for a thread."""

    allocators = ()


_chosen = _Chosen()
_allocator = _pool.malloc


def get_default_memory_pool():
    """The pool of the device's memory.

    Returns: cuda.MemoryPool, with malloc, used_bytes, total_bytes, free_bytes, n_free_blocks, free_all_blocks, set_limit
    and get_limit, which speak of this connection on the current device.
    Source: cupy.get_default_memory_pool
    """
    return _pool


def _check_allocator(allocator):
    ours = (None, alloc, malloc_async, malloc_managed, Memory, MemoryAsync, ManagedMemory)
    if allocator in ours or isinstance(getattr(allocator, "__self__", None), MemoryPool):
        return
    raise NotImplementedError("arrays are allocated by the server, which calls no function of this process: an allocator "
                              "is None, alloc, malloc_async, malloc_managed or the malloc of a MemoryPool")


def set_allocator(allocator=None):
    """Say what allocates: whatever is accepted means the server, which allocates for all arrays.

    Parameters: allocator: None, alloc, malloc_async, malloc_managed or MemoryPool(...).malloc.
    Returns: None.
    Raises: NotImplementedError for another function; ValueError within using_allocator.
    Source: cupy.cuda.set_allocator
    """
    global _allocator
    if _chosen.allocators:
        raise ValueError("set_allocator cannot be called within using_allocator")
    _check_allocator(allocator)
    _allocator = allocator or alloc


def get_allocator():
    """Return what was said last to allocate.

    Returns: function of a number of bytes, which gives a cuda.MemoryPointer.
    Source: cupy.cuda.get_allocator
    """
    return _chosen.allocators[-1] if _chosen.allocators else _allocator


@contextlib.contextmanager
def using_allocator(allocator=None):
    """set_allocator for a with statement and this thread.

    Parameters: allocator: as set_allocator.
    Returns: context manager.
    Raises: as set_allocator.
    Source: cupy.cuda.using_allocator
    """
    _check_allocator(allocator)
    before = _chosen.allocators
    _chosen.allocators = (*before, allocator or alloc)
    try:
        yield
    finally:
        _chosen.allocators = before
