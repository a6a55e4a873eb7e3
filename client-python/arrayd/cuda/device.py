"""Devices: the GPUs of the server's host, numbered from 0."""
import functools
import operator

from .. import _core
from ._thread import apply, current, enter, leave

__all__ = ["Device", "from_pointer", "get_compute_capability", "get_device_id"]

# Limits of kernels on every device that there can be: CUDA's limits from compute capability 7.0 on, which hold for
# the server's processors as well. Shared memory is what a launch may ask for without max_dynamic_shared_size_bytes.
_COMMON = {"WarpSize": 32, "MaxThreadsPerBlock": 1024, "MaxBlockDimX": 1024, "MaxBlockDimY": 1024, "MaxBlockDimZ": 64,
           "MaxGridDimX": 2**31 - 1, "MaxGridDimY": 65535, "MaxGridDimZ": 65535, "CooperativeLaunch": 1,
           "MemoryPoolsSupported": 1, "MaxSharedMemoryPerBlock": 48 << 10, "MaxRegistersPerBlock": 64 << 10,
           "MaxRegistersPerMultiprocessor": 64 << 10}
# Threads that a multiprocessor holds, by compute capability; 2048 of all others, and of processors.
_THREADS = {(7, 5): 1024, (8, 6): 1536, (8, 7): 1536, (8, 9): 1536, (12, 0): 1536, (12, 1): 1536}
# KiB of shared memory that a launch may ask for by max_dynamic_shared_size_bytes, by compute capability; 227 of all others,
# and of processors. From 8.0 on a multiprocessor has one KiB more, which each block takes for itself.
_SHARED = {(7, 0): 96, (7, 2): 96, (7, 5): 64, (8, 0): 163, (8, 6): 99, (8, 7): 163, (8, 9): 99, (12, 0): 99, (12, 1): 99}


@functools.total_ordering
class Device:
    """A GPU of the server (or its processors, where it has none). In a with statement, or after use(), what the thread
    calls lies and runs there.

    Parameters: device: its number; the current one unless given.
    Raises: ValueError, naming how many there are, for one that does not exist; TypeError for other than a number.
    Source: cupy.cuda.Device
    """

    __slots__ = ("id",)

    def __init__(self, device=None):
        if device is None:
            self.id = current().device
            return
        if not isinstance(device, Device) and not hasattr(device, "__index__"):
            raise TypeError(f"device must be a Device or its number, not {type(device).__name__}")
        self.id = device.id if isinstance(device, Device) else operator.index(device)
        count = _core.session_info()["devices"]
        if not 0 <= self.id < count:
            raise ValueError(f"device {self.id} does not exist: the server has {count}, numbered from 0")

    def use(self):
        """Make it the thread's current device; returns it."""
        choice = current()
        choice.device = self.id
        apply(choice)
        return self

    def __enter__(self):
        enter(self)
        return self

    def __exit__(self, *_):
        leave()

    def synchronize(self):
        """Wait until all operations so far are complete; raises the first error that no array carries."""
        _core.sync()

    def _facts(self):
        return _core.device_facts(_core.session_serial(), self.id)

    @property
    def mem_info(self):
        """(bytes free, bytes in all)"""
        total, free, *_ = self._facts()
        return free, total

    @property
    def compute_capability(self):
        """Digits such as "90"; "00" where it is no GPU."""
        return "{2}{3}".format(*self._facts())

    @property
    def name(self):
        """The product's name."""
        info = _core.session_info()
        return info["device_name"] if self.id == 0 else f"{info['backend']} device {self.id}"

    @property
    def attributes(self):
        """dict of those of CUDA's attributes that the server tells, or that follow from the compute capability, by
        CuPy's names. MultiProcessorCount of processors is how many threads compute."""
        _, _, major, minor, processors, *_ = self._facts()
        shared = _SHARED.get((major, minor), 227) << 10
        return {"ComputeCapabilityMajor": major, "ComputeCapabilityMinor": minor, "MultiProcessorCount": processors,
                "MaxThreadsPerMultiProcessor": _THREADS.get((major, minor), 2048), "MaxSharedMemoryPerBlockOptin": shared,
                "MaxSharedMemoryPerMultiprocessor": shared + (0 if major == 7 else 1 << 10), **_COMMON}

    @property
    def pci_bus_id(self):
        """The empty text of the server's processors, which are on no bus.

        Raises: NotImplementedError for a GPU: the server does not tell where on its host it is."""
        if _core.session_info()["backend"] == "cpu":
            return ""
        raise NotImplementedError("the server does not tell where on its host's bus a GPU is; its number (id) names it")

    @classmethod
    def from_pci_bus_id(cls, pci_bus_id):
        """Absent: the server does not tell where on its host a device is.

        Raises: NotImplementedError."""
        raise NotImplementedError("the server does not tell where on its host's bus a device is; Device(number) names one")

    def __int__(self):
        return self.id

    __index__ = __int__

    def __eq__(self, other):
        return self.id == other.id if isinstance(other, Device) else NotImplemented

    def __lt__(self, other):
        return self.id < other.id if isinstance(other, Device) else NotImplemented

    def __hash__(self):
        return hash((Device, self.id))

    def __reduce__(self):
        return Device, (self.id,)

    def __repr__(self):
        return f"<Device {self.id}>"


def get_device_id():
    """The number of the thread's current device.

    Returns: int.
    Raises: ConnectionError when there is no server.
    Source: cupy.cuda.get_device_id
    """
    return current().device


def get_compute_capability():
    """Of the current device.

    Returns: str, digits such as "90"; "00" where it is no GPU.
    Source: cupy.cuda.device.get_compute_capability
    """
    return Device().compute_capability


def from_pointer(ptr):
    """The device that an address is on.

    Parameters: ptr: an address that a.data.ptr has told, or of that array's memory.
    Returns: cuda.Device.
    Raises: ValueError for another address.
    Source: cupy.cuda.device.from_pointer
    """
    from .._interop.addresses import find_bytes
    found = find_bytes(ptr, 1)
    if found is None:
        raise ValueError(f"ptr: {ptr:#x} is in no array's memory")
    return found.device


def of_array(number):
    """The device of an array, which exists."""
    device = Device.__new__(Device)
    device.id = number
    return device


_core.set_device_type(of_array)
