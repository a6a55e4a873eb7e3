"""Functions of CUDA's runtime library that make sense with a server, by CuPy's names (cupy.cuda.runtime)."""
from .. import _core
from .device import Device
from ._thread import current

__all__ = ["CUDARuntimeError", "cudaDevAttrComputeCapabilityMajor", "cudaDevAttrComputeCapabilityMinor",
           "cudaDevAttrMultiProcessorCount", "deviceCanAccessPeer", "deviceGetAttribute", "deviceSynchronize",
           "driverGetVersion", "getDevice", "getDeviceCount", "getDeviceProperties", "is_hip", "memGetInfo",
           "runtimeGetVersion", "setDevice", "streamQuery", "streamSynchronize"]

is_hip = False
CUDARuntimeError = _core.DeviceError  # what a device reports; no memory is MemoryError
# CUDA's numbers, of those attributes that the server tells.
cudaDevAttrMultiProcessorCount, cudaDevAttrComputeCapabilityMajor, cudaDevAttrComputeCapabilityMinor = 16, 75, 76
_ATTRIBUTES = {16: "MultiProcessorCount", 75: "ComputeCapabilityMajor", 76: "ComputeCapabilityMinor"}


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
    """What is known of a device.

    Parameters: device: its number.
    Returns: dict: name (bytes), totalGlobalMem, major, minor, multiProcessorCount.
    Raises: ValueError for one that does not exist.
    Source: cupy.cuda.runtime.getDeviceProperties
    """
    device = Device(device)
    memory, _, major, minor, processors, *_ = device._facts()
    return {"name": device.name.encode(), "totalGlobalMem": memory, "major": major, "minor": minor,
            "multiProcessorCount": processors}


def deviceGetAttribute(attrib, device):
    """A fact about a device.

    Parameters: attrib: one of cudaDevAttrMultiProcessorCount, cudaDevAttrComputeCapabilityMajor and
    cudaDevAttrComputeCapabilityMinor. device: its number.
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
