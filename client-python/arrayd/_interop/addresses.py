"""Where the memory of arrays lies in this process, and which array's memory an address is in."""
import os
import weakref

from .. import _base, _core

# Why a session's memory is not to be had here.
NOT_EXPORTED = (NotImplementedError, ValueError, PermissionError, MemoryError, OSError, BufferError, _core.LimitError,
                _core.DeviceError)
_memories = {}  # by the id of an array with a buffer of its own, whose address somebody was told: a reference, memory
os.register_at_fork(after_in_child=_memories.clear)  # the child's arrays lie elsewhere


def owner_of(a):
    """The array whose buffer it shows."""
    return a if a.base is None else a.base


def memory_of(a, stream=0):
    """The memory of the array's buffer, with all in it that was called so far. It stays where it is for as long as the
    array that owns the buffer does: whoever is told an address keeps an array."""
    owner = owner_of(a)
    key = id(owner)
    if key in _memories:
        _core.export_wait(a)
    else:
        found = weakref.ref(owner), _core.export_memory(owner, stream)
        if _memories.setdefault(key, found) is found:  # otherwise another thread has told its address
            weakref.finalize(owner, _memories.pop, key, None).atexit = False
    return _memories[key][1]


def offset_of(a):
    """Bytes from the first byte of the buffer to the first element."""
    return _core.layout(a)[1]


def address_of(a):
    """The address of the array's first element in this process; 0 where it has none."""
    return memory_of(a).base + offset_of(a) if a.size else 0


def extent(a):
    """The bytes that the elements take, as two distances from the first element: of the first and behind the last."""
    if not a.size:
        return 0, 0
    reaches = [(n - 1) * stride for n, stride in zip(a.shape, a.strides)]
    return sum(min(0, reach) for reach in reaches), sum(max(0, reach) for reach in reaches) + a.itemsize


def bytes_of(owner):
    """All bytes of an array that owns its buffer: a view, of type uint8 and one dimension."""
    low, high = extent(owner)
    return _base.view(owner, (high - low,), (1,), low, "u1")


def find_bytes(address, size):
    """The bytes from an address on, as a view of the array whose memory they are; None where they are no array's."""
    for reference, memory in list(_memories.values()):
        owner = reference()
        begin = address - memory.base
        if owner is None or begin < 0:
            continue
        whole = bytes_of(owner)
        begin -= offset_of(whole)
        if 0 <= begin and begin + size <= whole.size:
            return whole[begin:begin + size]
    return None
