"""DLPack and the CUDA array interface: arrays for, and of, other libraries of this process."""
import atexit
import weakref

import numpy as np

from .. import _base, _core
from .._array.creation import asarray, empty

_CPU, _CUDA, _MANAGED = 1, 2, 13
_HOST = (_CPU, 3, 11, _MANAGED)  # kDLCPU, kDLCUDAHost, kDLROCMHost, kDLCUDAManaged: memory that this process can read
_NAMES = {2: "CUDA", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 10: "ROCm", 14: "oneAPI"}

# Why a session's memory is not to be had; then there is a copy.
_NOT_EXPORTED = (NotImplementedError, ValueError, PermissionError, MemoryError, OSError, BufferError, _core.LimitError,
                 _core.DeviceError)
_memories = {}  # of arrays whose address somebody was told, by their id

# Why a tensor's memory is not to be had by the server; then there is a copy.
_NOT_LENT = (NotImplementedError, ValueError, IndexError, PermissionError, OSError, _core.LimitError, _core.DeviceError)
atexit.register(_core.gil_stop)


def dlpack(self, /, *, stream=None, max_version=None, dl_device=None, copy=None):
    """The elements for another library, as a DLPack capsule; waits for the server.

    Where server and program share a machine the capsule has the memory of the array itself, and both see what the other
    writes: memory of the host where the server computes on the CPU, memory of the GPU where it uses that. What the
    program calls afterwards is ordered behind what it has written; before it looks at what the server writes it must
    wait (sync). Elsewhere, and for a read-only array, the capsule has a copy in the host's memory.

    Parameters: stream: for a GPU's memory the consumer's stream, as DLPack counts them, which waits for the server; else
    None. max_version: the newest version of DLPack that the caller knows, as (major, minor). dl_device: None, what
    __dlpack_device__ gives, or (1, 0), the host. copy: True for a copy, False for none.
    Returns: capsule.
    Raises: BufferError for another device, a type that DLPack lacks, and with copy=False where only a copy can be had;
    ValueError for a stream of the host's memory.
    Source: Array API standard, array.__dlpack__
    """
    device = None if dl_device is None else tuple(dl_device)
    own = dlpack_device(self) if device != (_CPU, 0) else device  # nothing moves for who wants a copy in the host
    if device not in (None, own):
        raise BufferError(f"dl_device {device}: arrayd exports to host memory, which is (1, 0)"
                          + (f", and to {own}" if own[0] != _CPU else " only"))
    if own[0] != _CPU:
        source = self.copy() if copy else self
        return _core.export_dlpack(source, 0, _is_versioned(max_version), _memory(source, max(stream or 0, 0)))
    if stream is not None:
        raise ValueError("stream must be None for a tensor in host memory")
    why = "the server's memory is a GPU's"
    if not copy and _core.session_info()["backend"] == "cpu":
        try:
            return _core.export_dlpack(self, 0, _is_versioned(max_version))
        except _NOT_EXPORTED as error:
            why = str(error)
    if copy is False and self.size:
        raise BufferError(f"copy=False: the elements can only be had as a copy: {why}")
    return self.get().__dlpack__(max_version=max_version)


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
        return _CUDA, _memory(self).device
    except _NOT_EXPORTED:
        return _CPU, 0


def cuda_array_interface(self):
    """ndarray.__cuda_array_interface__"""
    if _core.session_info()["backend"] == "cpu":
        raise AttributeError("__cuda_array_interface__: the server computes on the CPU; __dlpack__ gives its memory")
    if self.dtype.kind not in "biufc":
        raise AttributeError(f"__cuda_array_interface__: it has no {self.dtype.name}")
    try:
        data = _memory(self).data if self.size else 0
    except _NOT_EXPORTED as error:
        raise AttributeError(f"__cuda_array_interface__: {error}") from None
    return {"shape": self.shape, "typestr": self.dtype.str, "data": (data, False), "version": 3, "stream": None,
            "strides": None if self.flags.c_contiguous else self.strides}


def _memory(a, stream=0):
    """The array's memory, with all in it that was called so far. It stays where it is for as long as the array object
    does: whoever is told an address keeps that."""
    key = id(a)
    if key in _memories:
        _core.export_wait(a)
    else:
        found = _core.export_memory(a, stream)
        if _memories.setdefault(key, found) is found:  # else another thread has told its address
            weakref.finalize(a, _memories.pop, key, None).atexit = False
    return _memories[key]


def from_dlpack(x, /, *, device=None, copy=None):
    """An array of the server from another library's tensor, by DLPack.

    A tensor in memory of the GPU that the server uses is not copied where that can be (asarray says when): the array is
    that memory, and both see what the other writes.

    Parameters: x: tensor of a library that has DLPack, in memory of a GPU or of the host; an array of the server is
    taken as by asarray. device: a cuda.Device or its number, the one on which the tensor is, or the current one, unless
    given. copy: True always copies; None only if needed; False raises BufferError where a copy is needed (always for
    host data).
    Returns: ndarray.
    Raises: AttributeError when x has no __dlpack__; BufferError for a tensor in memory of another GPU, and with
    copy=False.
    Source: numpy.from_dlpack
    """
    if isinstance(x, _base.ndarray):
        return _own(x, device, copy)
    kind, number = x.__dlpack_device__()
    if kind == _CUDA and _core.session_info()["backend"] == "cuda":
        return _placed(x, device, copy)
    if kind not in _HOST:
        where = _NAMES.get(int(kind), f"DLPack type {int(kind)}")
        raise BufferError(f"the tensor lies on a device ({where}, number {number}): arrayd takes tensors in host "
                          "memory, so move it there first")
    if copy is False:
        raise BufferError("copy=False: the tensor is in this process, and has to be copied to the server")
    return asarray(np.from_dlpack(x), device=device)


def is_on_gpu(x):
    """Whether another library has it on a GPU, and the server uses one."""
    try:
        on_gpu = (x.__dlpack_device__()[0] in (_CUDA, _MANAGED) if hasattr(type(x), "__dlpack_device__")
                  else hasattr(x, "__cuda_array_interface__"))
    except (TypeError, ValueError, RuntimeError, BufferError):  # it has none for this one
        return False
    return on_gpu and _core.session_info()["backend"] == "cuda"


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
    """What another library of this process has on a GPU, as an array there: its memory, or where the server cannot have
    that a copy of it. Whether it is one.

    copy: False: a BufferError instead. True: the memory will do, as the caller copies that.
    """
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
        capsule = _capsule(x)  # if it is not taken, it does not go before the exception has been dealt with
        return _core.lend_dlpack(capsule)
    interface = _interface(x)
    shape, dtype = tuple(interface["shape"]), np.dtype(interface["typestr"])
    if 0 in shape:
        raise ValueError("the array has no elements")
    strides = interface.get("strides") or _packed(shape, dtype.itemsize)
    return _core.lend(x, -1, *interface["data"], dtype, shape, strides)


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
    shape, dtype = tuple(interface["shape"]), np.dtype(interface["typestr"])
    axes = _axes_in_memory(shape, interface.get("strides"), dtype.itemsize)
    number = int(x.__dlpack_device__()[1]) if hasattr(type(x), "__dlpack_device__") else -1
    made = empty([shape[axis] for axis in axes], dtype)
    if made.size:
        try:
            _core.write_device(made, number, interface["data"][0])
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
