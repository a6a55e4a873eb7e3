"""DLPack and the CUDA array interface: arrays for, and of, other libraries of this process."""
import atexit
import warnings

import numpy as np

from .. import _base, _core
from .._array.creation import asarray, empty
from .._array.structured import check_dtype, find_dtype
from .addresses import NOT_EXPORTED, address_of, find_bytes, memory_of

_CPU, _CUDA, _MANAGED = 1, 2, 13
_HOST = (_CPU, 3, 11, _MANAGED)  # kDLCPU, kDLCUDAHost, kDLROCMHost, kDLCUDAManaged: memory that this process can read
_NAMES = {2: "CUDA", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 10: "ROCm", 14: "oneAPI"}

# Why a tensor's memory is not to be had by the server; then there is a copy.
_NOT_LENT = (NotImplementedError, ValueError, IndexError, PermissionError, OSError, _core.LimitError, _core.DeviceError)
_numbers = {}  # of GPUs in this process, by the session and their numbers there
atexit.register(_core.gil_stop)


def dlpack(self, /, *, stream=None, max_version=None, dl_device=None, copy=None):
    """The elements for another library, as a DLPack capsule; waits for the server.

    Where server and program share a machine the capsule has the memory of the array itself, on the host or the GPU that
    the server computes on. Both see what the other writes. Later calls of the program are ordered behind what it has
    written; before it looks at what the server writes it must wait (sync). Of a read-only array (flags.writeable) the
    capsule says so, and who writes to another array of the same elements gets a copy of them. A caller that knows no
    version 1 of DLPack, which can say so, gets a copy. Elsewhere the capsule has a copy in the host's memory.

    Parameters: stream: for a GPU's memory the consumer's stream, as DLPack counts them, which waits for the server; where
    the server computes on the CPU it changes nothing. 0 is taken for 1, the legacy default stream, with a warning.
    max_version: the newest version of DLPack that the caller knows, as (major, minor). dl_device: None, what
    __dlpack_device__ gives, or (1, 0), the host. copy: True for a copy, False for none.
    Returns: capsule.
    Raises: BufferError for another device, a type that DLPack lacks, and with copy=False where only a copy can be had;
    ValueError for a stream where a copy of a GPU's memory goes to the host's.
    Source: Array API standard, array.__dlpack__
    """
    device = None if dl_device is None else tuple(dl_device)
    own = dlpack_device(self) if device != (_CPU, 0) else device  # nothing moves for who wants a copy in the host
    if device not in (None, own):
        raise BufferError(f"dl_device {device}: arrayd exports to host memory, which is (1, 0)"
                          + (f", and to {own}" if own[0] != _CPU else " only"))
    on_cpu = _core.session_info()["backend"] == "cpu"
    if stream is not None and not on_cpu and own[0] == _CPU:
        raise ValueError("stream must be None for a tensor in host memory")
    if stream == 0:
        warnings.warn("Stream 0 is ambiguous in DLPack; 1 is the legacy default stream", UserWarning, stacklevel=2)
    if own[0] != _CPU:
        return _device_capsule(self, max(stream or 0, 0), _is_versioned(max_version), copy)
    why = "the server's memory is a GPU's"
    if not copy and on_cpu:
        try:
            return _core.export_dlpack(self, 0, _is_versioned(max_version))
        except NOT_EXPORTED as error:
            why = str(error)
    if copy is False and self.size:
        raise BufferError(f"copy=False: the elements can only be had as a copy: {why}")
    return self.get().__dlpack__(max_version=max_version)


def _device_capsule(a, stream, versioned, copy):
    """A capsule of a GPU's memory, which the stream may use from now on."""
    readonly = _core.is_readonly(a)
    if readonly and versioned and not copy:
        return _core.export_dlpack(a, stream, True)
    if readonly and copy is False:
        raise BufferError("copy=False: the array is read-only, which only version 1 of DLPack can tell")
    source = a.copy() if copy or readonly else a
    return _core.export_dlpack(source, 0, versioned, memory_of(source, stream))


def _device_number(a):
    """The number of the array's GPU in this process. A read-only array is mapped once to find it."""
    if not _core.is_readonly(a):
        return memory_of(a).device
    key = _core.session_serial_now(), a.device.id
    if key not in _numbers:
        _numbers[key] = _core.export_memory(a, 0).device
    return _numbers[key]


def _is_versioned(max_version):
    return max_version is not None and tuple(max_version) >= (1, 0)


def dlpack_device(self, /):
    """Where __dlpack__ puts the elements: the GPU on which they are, if this program can reach it; else the host's
    memory.

    Returns: (2, number of the GPU in this process), or (1, 0); 2 is kDLCUDA, 1 kDLCPU.
    Source: Array API standard, array.__dlpack_device__
    """
    if _core.session_info()["backend"] == "cpu":
        return _CPU, 0
    try:
        return _CUDA, _device_number(self)
    except NOT_EXPORTED:
        return _CPU, 0


def cuda_array_interface(self):
    """ndarray.__cuda_array_interface__"""
    if _core.session_info()["backend"] == "cpu":
        raise AttributeError("__cuda_array_interface__: the server computes on the CPU; __dlpack__ gives its memory")
    if self.dtype.kind not in "biufc":
        raise AttributeError(f"__cuda_array_interface__: it has no {self.dtype.name}")
    try:
        data = address_of(self)
    except NOT_EXPORTED as error:
        raise AttributeError(f"__cuda_array_interface__: {error}") from None
    return {"shape": self.shape, "typestr": self.dtype.str, "data": (data, False), "version": 3, "stream": None,
            "strides": None if self.flags.c_contiguous else self.strides}


def from_dlpack(x, /, *, device=None, copy=None):
    """An array of the server from another library's tensor, by DLPack.

    A tensor in memory of the GPU that the server uses is not copied where that can be (asarray says when): the array is
    that memory, and both see what the other writes.

    Parameters: x: tensor of a library that has DLPack, in memory of a GPU or of the host, or its capsule; an array of the
    server is taken as by asarray, and the capsule of one gives that array again, as a view. device: a cuda.Device or its number, the one on which the tensor is, or the current one, unless
    given. copy: True always copies; None only if needed; False raises BufferError where a copy is needed (always for
    host data).
    Returns: ndarray.
    Raises: AttributeError when x has no __dlpack__; BufferError for a tensor in memory of another GPU, and with
    copy=False.
    Source: numpy.from_dlpack
    """
    if isinstance(x, _base.ndarray):
        return _own(x, device, copy)
    if type(x).__name__ == "PyCapsule":
        return _own(fromDlpack(x), device, copy)
    kind, number = x.__dlpack_device__()
    if kind == _CUDA and _core.session_info()["backend"] == "cuda":
        return _placed(x, device, copy)
    if kind not in _HOST:
        where = _NAMES.get(int(kind), f"DLPack type {int(kind)}")
        raise BufferError(f"the tensor lies on a device ({where}, number {number}): arrayd takes tensors in host "
                          "memory, so move it there first")
    found = None if kind == _MANAGED else _exchange(x)
    capsule = found[0] if found else _host_capsule(x)
    ours = _core.take_own(capsule)
    if ours is not None:
        return _own(ours, device, copy)
    if copy is False:
        raise BufferError("copy=False: the tensor is in this process, and has to be copied to the server")
    return asarray(_core.take_dlpack(capsule) if found else np.from_dlpack(_Wrapped(capsule)), device=device)


def _host_capsule(x):
    """Of a tensor in the host's memory; of the oldest kind where its library knows no other."""
    try:
        return x.__dlpack__(max_version=(1, 0))
    except TypeError:
        return x.__dlpack__()


class _Wrapped:
    """A capsule of the host's memory, as what it was asked of would give it."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack_device__(self):
        return _CPU, 0

    def __dlpack__(self, **_):
        return self.capsule


def fromDlpack(dltensor):
    """An array of the server from a DLPack capsule, which nobody else can take then.

    Differs: in the host's memory the elements of another library are copied.
    Parameters: dltensor: capsule of a tensor in memory of the GPU that the server uses, as it gives it for stream 1; or
    where the server computes on the CPU, in memory of the host. That of an array of the server gives a view of the array.
    Returns: ndarray.
    Raises: TypeError for what is no capsule; ValueError for one that was taken; BufferError for a tensor elsewhere.
    Source: cupy.fromDlpack
    """
    if type(dltensor).__name__ != "PyCapsule":
        raise TypeError(f"dltensor must be a DLPack capsule, not {type(dltensor).__name__}; from_dlpack takes arrays")
    ours = _core.take_own(dltensor)
    if ours is not None:
        return ours
    if _core.session_info()["backend"] == "cuda":
        return _core.take_dlpack(dltensor)
    if '"used_dltensor' in repr(dltensor):
        raise ValueError("the capsule cannot be consumed multiple times: its tensor was taken before")
    return asarray(np.from_dlpack(_Wrapped(dltensor)).copy())


def is_on_gpu(x):
    """Whether another library has it on a GPU, and the server uses one; or describes so what is memory of an array, or
    what cannot be had in another way."""
    try:
        if hasattr(type(x), "__dlpack_device__"):
            on_gpu, only = x.__dlpack_device__()[0] in (_CUDA, _MANAGED), False
        else:
            on_gpu = hasattr(x, "__cuda_array_interface__")
            only = on_gpu and (not hasattr(type(x), "__array__") or _is_servers(x))
    except (TypeError, ValueError, RuntimeError, BufferError):  # it has none for this one
        return False
    return only or on_gpu and _core.session_info()["backend"] == "cuda"


def _placed(x, device, copy):
    """from_cuda on the device that was asked for, with DLPack's error where that takes a copy."""
    try:
        made, copied = from_cuda(x, copy)
        if device is None and (copied or not copy):
            return made
        result = asarray(made, device=made.device if device is None else device, copy=None if copied else copy)
        if not copied and result is not made:
            with result.device:
                _core.settle()  # the tensor is its program's again
        return result
    except ValueError as error:
        if copy is False:
            raise BufferError(str(error)) from None
        raise


def from_cuda(x, copy):
    """Return what another library of this process has on a GPU, as an array there: its memory, or where the server
    cannot have that a copy of it. Whether it is one.

    copy: False: a BufferError instead. True: the memory will do, as the caller copies that.
    """
    if not hasattr(type(x), "__dlpack__") and _interface(x).get("mask") is not None:
        raise ValueError("__cuda_array_interface__: arrayd does not support masked arrays; give the data and the mask apart")
    try:
        return _lend(x), False
    except _NOT_LENT as error:
        if copy is False:
            raise BufferError(f"copy=False: the memory can only be had as a copy: {error}") from None
    return _copy_in(x), True


def _lend(x):
    if hasattr(type(x), "__dlpack__"):
        if x.__dlpack_device__()[0] == _MANAGED:
            raise ValueError("the memory moves between host and GPU")
        # If the capsule is not taken, it does not go before the exception has been dealt with.
        capsule, stream = _exchange(x) or (_capsule(x), 1)
        return _core.take_dlpack(capsule, stream)
    shape, dtype, strides, data = described = _described(x)
    ours = _of_server(described)
    if ours is not None:
        return ours
    if 0 in shape:
        raise ValueError("the array has no elements")
    if find_dtype(dtype) is None:
        return _core.lend(x, -1, *data, dtype, shape, strides)
    lent = _core.lend(x, -1, *data, "u1", (*shape, dtype.itemsize), (*strides, 1))
    return _base.view(lent, shape, strides, 0, check_dtype(dtype))


def _described(x):
    """Shape, dtype, strides, and address with whether that is for reading only, of what has the CUDA array interface."""
    interface = _interface(x)
    shape, dtype = tuple(interface["shape"]), _dtype_of(interface)
    return shape, dtype, interface.get("strides") or _packed(shape, dtype.itemsize), interface["data"]


def _dtype_of(interface):
    """The type of the elements; that of structures without what descr has between their fields."""
    dtype, fields = np.dtype(interface["typestr"]), interface.get("descr")
    if dtype.kind != "V" or not fields or fields[0][0] == "" and len(fields) == 1:
        return dtype
    return check_dtype(np.lib.format.descr_to_dtype(fields))


def _is_servers(x):
    described = _described(x)
    return 0 in described[0] or _of_server(described) is not None


def _of_server(described):
    """A view of the array in whose memory it lies; None where it lies in none."""
    shape, dtype, strides, (address, readonly) = described
    reaches = [(n - 1) * stride for n, stride in zip(shape, strides)]
    low, high = sum(min(0, reach) for reach in reaches), sum(max(0, reach) for reach in reaches) + dtype.itemsize
    found = None if 0 in shape or readonly else find_bytes(address + low, high - low)
    return None if found is None else _base.view(found, shape, strides, -low, dtype)


def _exchange(x):
    """A capsule of the tensor and the stream that its library uses, by DLPack's C exchange API; None where the type has
    no such functions, and for what x.__dlpack__ refuses and they do not: gradients and elements that are to be negated or
    conjugated still."""
    if getattr(x, "requires_grad", False) or any(getattr(x, name, bool)() for name in ("is_conj", "is_neg")):
        return None
    return _core.exchange(x)


def _capsule(x):
    """Of the tensor, once what its library has begun is ordered before the legacy default stream."""
    try:
        return x.__dlpack__(stream=1, max_version=(1, 0))
    except TypeError:
        return x.__dlpack__(stream=1)


def _packed(shape, itemsize):
    strides = []
    for length in reversed(shape):
        strides.insert(0, itemsize)
        itemsize *= length
    return strides


def _interface(x):
    try:
        return x.__cuda_array_interface__
    except (AttributeError, TypeError, KeyError, RuntimeError) as error:  # a type that it lacks, a gradient ...
        raise BufferError(f"arrayd copies a GPU's memory by __cuda_array_interface__: {error}") from None


def _copy_in(x):
    """A copy, on the server's GPU."""
    interface = _interface(x)
    shape, dtype = tuple(interface["shape"]), _dtype_of(interface)
    axes = _axes_in_memory(shape, interface.get("strides"), dtype.itemsize)
    number = int(x.__dlpack_device__()[1]) if hasattr(type(x), "__dlpack_device__") else -1
    made = empty([shape[axis] for axis in axes], dtype)
    if made.size:
        try:
            _core.write_device(_base.units_of(made), number, interface["data"][0])
        except (NotImplementedError, ValueError) as error:
            raise BufferError(str(error)) from None
    return made.transpose([axes.index(axis) for axis in range(len(axes))]) if axes else made


def _axes_in_memory(shape, strides, itemsize):
    """The axes in the order in which they lie in memory, outermost first."""
    axes = list(range(len(shape)))
    if strides is None or 0 in shape:
        return axes
    axes.sort(key=lambda axis: (-strides[axis], shape[axis] == 1))
    expected = itemsize
    for axis in reversed(axes):
        if shape[axis] == 1:
            continue
        if strides[axis] != expected:
            raise BufferError("the tensor's elements do not lie one behind the other: make it contiguous first")
        expected *= shape[axis]
    return axes


def _own(a, device, copy):
    try:
        return asarray(a, device=a.device if device is None else device, copy=copy)
    except ValueError as error:
        if copy is False:
            raise BufferError(str(error)) from None
        raise
