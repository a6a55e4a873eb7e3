"""DLPack: arrays for, and of, other libraries of this process, in host memory."""
import numpy as np

from . import _base
from ._creation import asarray

_CPU = 1
_HOST = (_CPU, 3, 11, 13)  # kDLCPU, kDLCUDAHost, kDLROCMHost, kDLCUDAManaged: memory that this process can read
_NAMES = {2: "CUDA", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 10: "ROCm", 14: "oneAPI"}


def dlpack(self, /, *, stream=None, max_version=None, dl_device=None, copy=None):
    """The elements for another library, as a DLPack capsule in this process's memory; waits for the server.

    Parameters: stream: must be None, as for all tensors in host memory. max_version: the newest version of DLPack that
    the caller knows, as (major, minor). dl_device: must be None or (1, 0), the host. copy: False raises BufferError:
    elements on a server can only be had as a copy.
    Returns: capsule.
    Raises: BufferError for another device, copy=False or a type that DLPack lacks; ValueError for a stream.
    Source: Array API standard, array.__dlpack__
    """
    if dl_device is not None and tuple(dl_device) != (_CPU, 0):
        raise BufferError(f"dl_device {tuple(dl_device)}: arrayd exports to host memory only, which is (1, 0)")
    if copy is False:
        raise BufferError("copy=False: the elements are on a server, and can only be had as a copy")
    if stream is not None:
        raise ValueError("stream must be None for a tensor in host memory")
    return self.get().__dlpack__(max_version=max_version)


def dlpack_device(self, /):
    """Where __dlpack__ puts the elements: the host's memory.

    Returns: (1, 0), of which 1 is kDLCPU.
    Source: Array API standard, array.__dlpack_device__
    """
    return _CPU, 0


def from_dlpack(x, /, *, device=None, copy=None):
    """An array of the server from another library's tensor, by DLPack.

    Parameters: x: tensor in host memory of a library that has DLPack; an array of the server is taken as by asarray.
    device: a cuda.Device or its number, the current one unless given. copy: False raises BufferError for tensors that
    are not on the server.
    Returns: ndarray.
    Raises: AttributeError when x has no __dlpack__; BufferError for a tensor in a GPU's memory.
    Source: numpy.from_dlpack
    """
    if isinstance(x, _base.ndarray):
        return _own(x, device, copy)
    kind, number = x.__dlpack_device__()
    if kind not in _HOST:
        where = _NAMES.get(int(kind), f"DLPack type {int(kind)}")
        raise BufferError(f"the tensor lies on a device ({where}, number {number}): arrayd takes tensors in host "
                          "memory, so move it there first")
    if copy is False:
        raise BufferError("copy=False: the tensor is in this process, and has to be copied to the server")
    return asarray(np.from_dlpack(x), device=device)


def _own(a, device, copy):
    try:
        return asarray(a, device=a.device if device is None else device, copy=copy)
    except ValueError as error:
        if copy is False:
            raise BufferError(str(error)) from None
        raise
