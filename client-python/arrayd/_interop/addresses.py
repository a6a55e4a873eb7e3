"""Where the memory of arrays lies in this process, and which array's memory an address is in."""
import os
import threading
import weakref

from .. import _base, _core

# Why a session's memory is not to be had here.
NOT_EXPORTED = (NotImplementedError, ValueError, PermissionError, MemoryError, OSError, BufferError, _core.LimitError,
                _core.DeviceError)
# The memory of buffers of which somebody was told an address: by the buffer's number lists of a reference to an array
# that owns the buffer, and the memory. An array that was made of another one's capsule owns its buffer, too.
_memories, _lock = {}, threading.RLock()


def _forget_all():
    """In the child of a fork arrays lie elsewhere, and the thread that has locked may not be there."""
    global _lock
    _memories.clear()
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_forget_all)


def owner_of(a):
    """The array whose buffer it shows."""
    return a if a.base is None else a.base


def memory_of(a, stream=0):
    """The memory of the array's buffer, with all in it that was called so far. It stays where it is for as long as an
    array that owns the buffer does: whoever is told an address keeps an array. A read-only array has no address, as who
    knows it could write there."""
    if _core.is_readonly(a):
        raise ValueError("the array is read-only, and who gets its address could write there; __dlpack__ gives its memory "
                         "to be read")
    owner = owner_of(a)
    memory = _find_memory(owner)
    if memory is None:
        found = _core.export_memory(owner, stream)
        memory = _find_memory(owner) or _remember(owner, found)  # another thread may have told its address meanwhile
    else:
        _core.export_wait(a)
    return memory


def _find_memory(owner):
    """The memory of the buffer as it is known, for its owner or for another array that owns it; None where it is not."""
    for reference, memory in list(_memories.get(_core.buffer_of(owner), ())):
        known = reference()
        if known is owner:
            return memory
        if known is not None and _core.shares_buffer(known, owner):  # buffers of two sessions may have the same number
            return _remember(owner, memory)
    return None


def _remember(owner, memory):
    """The memory, which is known as long as the owner is there."""
    key, entry = _core.buffer_of(owner), (weakref.ref(owner), memory)
    with _lock:
        entries = _memories.get(key, [])
        entries.append(entry)
        _memories[key] = entries  # the collector of garbage may have run, and taken an empty list away
    weakref.finalize(owner, _forget, key, entry).atexit = False
    return memory


def _forget(key, entry):
    """The owner of an entry is gone: take the entry away."""
    with _lock:
        entries = _memories.get(key, [])
        entries[:] = [other for other in entries if other is not entry]
        if not entries:
            _memories.pop(key, None)


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
    for reference, memory in [entry for entries in list(_memories.values()) for entry in entries]:
        owner = reference()
        begin = address - memory.base
        if owner is None or begin < 0:
            continue
        whole = bytes_of(owner)
        begin -= offset_of(whole)
        if 0 <= begin and begin + size <= whole.size:
            return whole[begin:begin + size]
    return None
