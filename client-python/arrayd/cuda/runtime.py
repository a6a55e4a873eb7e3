"""Functions of CUDA's runtime library that make sense with a server, by CuPy's names (cupy.cuda.runtime)."""
import operator

from .. import _core
from .._interop.addresses import find_bytes
from .device import Device
from .memory import host_bytes
from .stream import NumberedStream
from ._thread import current

is_hip = False
CUDARuntimeError = _core.DeviceError  # what a device reports; no memory is MemoryError
streamLegacy, streamPerThread = 1, 2  # CUDA's names of streams
memoryTypeUnregistered, memoryTypeHost, memoryTypeDevice, memoryTypeManaged = range(4)
memcpyHostToHost, memcpyHostToDevice, memcpyDeviceToHost, memcpyDeviceToDevice, memcpyDefault = range(5)
# CUDA's numbers of what describes textures, by the names that they have here.
_TEXTURES = {"cudaChannelFormatKind": ("Signed", "Unsigned", "Float", "None"),
             "cudaResourceType": ("Array", "MipmappedArray", "Linear", "Pitch2D"),
             "cudaAddressMode": ("Wrap", "Clamp", "Mirror", "Border"), "cudaFilterMode": ("Point", "Linear"),
             "cudaReadMode": ("ElementType", "NormalizedFloat")}
_TEXTURES = {kind + name: number for kind, names in _TEXTURES.items() for number, name in enumerate(names)}
_TEXTURES |= {"cudaArrayDefault": 0, "cudaArrayLayered": 1, "cudaArraySurfaceLoadStore": 2, "cudaArrayCubemap": 4,
              "cudaArrayTextureGather": 8}
globals().update(_TEXTURES)
# CUDA's numbers of what a drawing of a graph shows: bits.
_DRAWING = {"Verbose": 0, "KernelNodeParams": 2, "MemcpyNodeParams": 3, "MemsetNodeParams": 4, "HostNodeParams": 5,
            "EventNodeParams": 6, "ExtSemasSignalNodeParams": 7, "ExtSemasWaitNodeParams": 8, "KernelNodeAttributes": 9,
            "Handles": 10, "ConditionalNodeParams": 15}
_DRAWING = {"cudaGraphDebugDotFlags" + name: 1 << bit for name, bit in _DRAWING.items()}
globals().update(_DRAWING)
# CUDA's numbers, of those attributes that are told; their names are those here without cudaDevAttr.
_ATTRIBUTES = {1: "MaxThreadsPerBlock", 2: "MaxBlockDimX", 3: "MaxBlockDimY", 4: "MaxBlockDimZ", 5: "MaxGridDimX",
               6: "MaxGridDimY", 7: "MaxGridDimZ", 8: "MaxSharedMemoryPerBlock", 10: "WarpSize",
               12: "MaxRegistersPerBlock", 16: "MultiProcessorCount", 39: "MaxThreadsPerMultiProcessor",
               75: "ComputeCapabilityMajor", 76: "ComputeCapabilityMinor", 81: "MaxSharedMemoryPerMultiprocessor",
               82: "MaxRegistersPerMultiprocessor", 95: "CooperativeLaunch", 97: "MaxSharedMemoryPerBlockOptin",
               115: "MemoryPoolsSupported"}
globals().update({"cudaDevAttr" + name: number for number, name in _ATTRIBUTES.items()})

__all__ = ["CUDARuntimeError", *("cudaDevAttr" + name for name in _ATTRIBUTES.values()), "deviceCanAccessPeer",
           "deviceGetAttribute", "deviceSynchronize", "driverGetVersion", "getDevice", "getDeviceCount",
           "getDeviceProperties", "is_hip", "memGetInfo", "memcpy", "memcpyAsync", "memcpyDefault", "memcpyDeviceToDevice",
           "memcpyDeviceToHost", "memcpyHostToDevice", "memcpyHostToHost", "memset", "memsetAsync", "memoryTypeDevice",
           "memoryTypeHost", "memoryTypeManaged", "memoryTypeUnregistered", "pointerGetMemoryType", "runtimeGetVersion",
           "setDevice", "streamCreate", "streamDestroy", "streamLegacy", "streamPerThread", "streamQuery",
           "streamSynchronize", *_TEXTURES, *_DRAWING]


def getDeviceCount():
    """How many devices the server has.

    Returns: int.
    Source: cupy.cuda.runtime.getDeviceCount
    """
    return _core.session_info()["devices"]


def getDevice():
    """The number of the thread's current device.

    Returns: int.
    Source: cupy.cuda.runtime.getDevice
    """
    return current().device


def setDevice(device):
    """Make a device the thread's current one.

    Parameters: device: its number.
    Returns: None.
    Raises: ValueError for one that does not exist.
    Source: cupy.cuda.runtime.setDevice
    """
    Device(device).use()


def deviceSynchronize():
    """Wait until all operations so far are complete.

    Returns: None.
    Raises: the first error that no array carries.
    Source: cupy.cuda.runtime.deviceSynchronize
    """
    _core.sync()


def memGetInfo():
    """Memory of the current device.

    Returns: (bytes free, bytes in all).
    Source: cupy.cuda.runtime.memGetInfo
    """
    return Device().mem_info


def runtimeGetVersion():
    """The version of CUDA's runtime that the server runs on.

    Returns: int, 1000 * major + 10 * minor; 0 where the server computes on the CPU.
    Source: cupy.cuda.runtime.runtimeGetVersion
    """
    return Device()._facts()[6]


def driverGetVersion():
    """The newest version of CUDA that the driver of the server's device knows.

    Returns: int, 1000 * major + 10 * minor; 0 where the server computes on the CPU.
    Source: cupy.cuda.runtime.driverGetVersion
    """
    return Device()._facts()[7]


def deviceCanAccessPeer(device, peer):
    """Whether a device reaches the memory of another.

    Parameters: device, peer: their numbers.
    Returns: 1 or 0.
    Raises: ValueError for one that does not exist.
    Source: cupy.cuda.runtime.deviceCanAccessPeer
    """
    return Device(device)._facts()[5] >> Device(peer).id & 1


def getDeviceProperties(device):
    """Return what is known of a device.

    Parameters: device: its number.
    Returns: dict: name (bytes), totalGlobalMem, major, minor, multiProcessorCount, maxThreadsPerMultiProcessor, warpSize,
    maxThreadsPerBlock, sharedMemPerBlock, sharedMemPerBlockOptin, sharedMemPerMultiprocessor, regsPerBlock,
    regsPerMultiprocessor, maxThreadsDim and maxGridSize (tuples of three).
    Raises: ValueError for one that does not exist.
    Source: cupy.cuda.runtime.getDeviceProperties
    """
    device = Device(device)
    memory, _, major, minor, processors, *_ = device._facts()
    facts = device.attributes
    return {"name": device.name.encode(), "totalGlobalMem": memory, "major": major, "minor": minor,
            "multiProcessorCount": processors, "maxThreadsPerMultiProcessor": facts["MaxThreadsPerMultiProcessor"],
            "warpSize": facts["WarpSize"], "maxThreadsPerBlock": facts["MaxThreadsPerBlock"],
            "sharedMemPerBlock": facts["MaxSharedMemoryPerBlock"],
            "sharedMemPerBlockOptin": facts["MaxSharedMemoryPerBlockOptin"],
            "sharedMemPerMultiprocessor": facts["MaxSharedMemoryPerMultiprocessor"],
            "regsPerBlock": facts["MaxRegistersPerBlock"], "regsPerMultiprocessor": facts["MaxRegistersPerMultiprocessor"],
            "maxThreadsDim": tuple(facts["MaxBlockDim" + axis] for axis in "XYZ"),
            "maxGridSize": tuple(facts["MaxGridDim" + axis] for axis in "XYZ")}


def deviceGetAttribute(attrib, device):
    """A fact about a device.

    Parameters: attrib: one of the names here that begin with cudaDevAttr. device: its number.
    Returns: int.
    Raises: ValueError for a device that does not exist, or another attribute.
    Source: cupy.cuda.runtime.deviceGetAttribute
    """
    if attrib not in _ATTRIBUTES:
        raise ValueError(f"attribute {attrib!r} is not told by the server, only {sorted(_ATTRIBUTES)}")
    return Device(device).attributes[_ATTRIBUTES[attrib]]


def streamSynchronize(stream):
    """Wait until all operations of a stream so far are complete.

    Parameters: stream: Stream.ptr.
    Returns: None.
    Raises: the first error that no array carries.
    Source: cupy.cuda.runtime.streamSynchronize
    """
    _core.stream_wait(current().serial, stream)


def streamQuery(stream):
    """Whether all operations of a stream so far are complete.

    Parameters: stream: Stream.ptr.
    Returns: bool.
    Raises: StaleHandleError for a stream that is not there.
    Source: cupy.cuda.runtime.streamQuery
    """
    return _core.stream_done(current().serial, stream)


def streamCreate():
    """Open a stream on the current device.

    Returns: int: its number, for ExternalStream. It stays open until streamDestroy.
    Raises: LimitError when there are too many.
    Source: cupy.cuda.runtime.streamCreate
    """
    choice = current()
    return _core.stream_open(choice.serial, choice.device, False)


def streamDestroy(stream):
    """Close a stream, after its operations.

    Parameters: stream: its number, of streamCreate.
    Returns: None.
    Raises: StaleHandleError for one that is not there.
    Source: cupy.cuda.runtime.streamDestroy
    """
    _core.stream_drop(current().serial, stream)


def pointerGetMemoryType(ptr):
    """Return what kind of memory an address is in.

    Parameters: ptr: int.
    Returns: int: memoryTypeDevice in the memory of an array whose address was told, else memoryTypeUnregistered.
    Raises: TypeError for what is no int.
    Source: cupy.cuda.runtime.pointerGetMemoryType
    """
    return memoryTypeDevice if find_bytes(ptr, 1) is not None else memoryTypeUnregistered


def memset(ptr, value, size):
    """Set bytes of an array's memory.

    Parameters: ptr: an address that a.data.ptr has told, or of that array's memory. value: int, of which the last eight bits
    are taken. size: how many bytes.
    Returns: None.
    Raises: ValueError for bytes that are in no array's memory.
    Source: cupy.cuda.runtime.memset
    """
    if size:
        _find_bytes("ptr", ptr, size, True).fill(operator.index(value) & 255)


def memsetAsync(ptr, value, size, stream):
    """memset on a stream.

    Parameters: ptr, value, size: as of memset. stream: Stream.ptr.
    Returns: None.
    Raises: ValueError for bytes that are in no array's memory, or for what is no stream of the server.
    Source: cupy.cuda.runtime.memsetAsync
    """
    with NumberedStream("stream", stream):
        memset(ptr, value, size)


def memcpy(dst, src, size, kind):
    """Copy bytes from and to memory of arrays, or of this process.

    Parameters: dst, src: addresses, which are of arrays where a.data.ptr has told them, or they are of such an array's
    memory. size: how many bytes. kind: memcpyHostToDevice and so on; with memcpyDefault the addresses tell.
    Returns: None.
    Raises: ValueError for bytes that are in no array's memory where kind says that they are; for another kind.
    Source: cupy.cuda.runtime.memcpy
    """
    if kind not in range(memcpyDefault + 1):
        raise ValueError(f"kind must be memcpyHostToHost to memcpyDefault (0 to {memcpyDefault}), not {kind!r}")
    if not size:
        return
    target = _find_bytes("dst", dst, size, kind in (memcpyHostToDevice, memcpyDeviceToDevice))
    source = _find_bytes("src", src, size, kind in (memcpyDeviceToHost, memcpyDeviceToDevice))
    if target is None:
        host_bytes(dst, size)[...] = host_bytes(src, size) if source is None else source.get()
    elif source is None:
        target.set(host_bytes(src, size))
    else:
        target[...] = source


def memcpyAsync(dst, src, size, kind, stream):
    """memcpy on a stream. It waits where dst is in this process.

    Parameters: dst, src, size, kind: as of memcpy. stream: Stream.ptr.
    Returns: None.
    Raises: ValueError as memcpy, and for what is no stream of the server.
    Source: cupy.cuda.runtime.memcpyAsync
    """
    with NumberedStream("stream", stream):
        memcpy(dst, src, size, kind)


def _find_bytes(name, address, size, of_array):
    """The bytes of an array at an address; None for memory of this process, unless they are to be an array's. ValueError."""
    found = find_bytes(address, size)
    if found is None and (of_array or find_bytes(address, 1) is not None):
        raise ValueError(f"{name}: {size} bytes from {address:#x} on are not within an array's memory; a.data.ptr tells "
                         "where that is, and a.nbytes how much there is")
    return found
