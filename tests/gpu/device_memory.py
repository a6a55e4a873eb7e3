"""Memory of a GPU by the driver alone, of each kind that there is; with the CUDA array interface, and what it holds."""
import ctypes as c
import os

import numpy as np

cuda = c.CDLL("libcuda.so.1")
P, U64, SIZE = c.c_void_p, c.c_uint64, c.c_size_t


class Properties(c.Structure):
    """CUmemAllocationProp"""
    _fields_ = [("type", c.c_int), ("handle_types", c.c_int), ("location_type", c.c_int), ("location", c.c_int),
                ("win32", P), ("flags", c.c_ubyte * 8)]


class Access(c.Structure):
    """CUmemAccessDesc"""
    _fields_ = [("location_type", c.c_int), ("location", c.c_int), ("flags", c.c_int)]


TYPES = {"cuMemAlloc_v2": [P, SIZE], "cuMemFree_v2": [U64], "cuMemAllocAsync": [P, SIZE, P],
         "cuMemcpyDtoDAsync_v2": [U64, U64, SIZE, P], "cuMemAllocManaged": [P, SIZE, c.c_uint], "cuMemcpyHtoD_v2": [U64, P, SIZE], "cuMemcpyDtoH_v2": [P, U64, SIZE],
         "cuMemCreate": [P, SIZE, P, U64], "cuMemRelease": [U64], "cuMemAddressReserve": [P, SIZE, SIZE, U64, U64],
         "cuMemMap": [U64, SIZE, SIZE, U64, U64], "cuMemSetAccess": [U64, SIZE, P, SIZE], "cuMemUnmap": [U64, SIZE],
         "cuMemAddressFree": [U64, SIZE], "cuStreamSynchronize": [P], "cuCtxSetCurrent": [P],
         "cuDevicePrimaryCtxRetain": [P, c.c_int], "cuDeviceGet": [P, c.c_int], "cuInit": [c.c_uint]}
GRAIN = 2 << 20


def call(name, *arguments):
    function = getattr(cuda, name)
    function.argtypes = TYPES[name]
    status = function(*arguments)
    if status:
        raise RuntimeError(f"{name}: CUDA error {status}")


def begin():
    """The primary context of the first GPU, as frameworks use it."""
    device, context = c.c_int(), P()
    call("cuInit", 0)
    call("cuDeviceGet", c.byref(device), 0)
    call("cuDevicePrimaryCtxRetain", c.byref(context), device)
    call("cuCtxSetCurrent", context)


def shareable(size, exported=True):
    size += -size % GRAIN
    of, at, handle = Properties(type=1, handle_types=int(exported), location_type=1, location=0), U64(), U64()
    call("cuMemCreate", c.byref(handle), size, c.byref(of), 0)
    call("cuMemAddressReserve", c.byref(at), size, 0, 0, 0)
    call("cuMemMap", at, size, 0, handle, 0)
    call("cuMemSetAccess", at, size, c.byref(Access(1, 0, 3)), 1)
    call("cuMemRelease", handle)
    return at.value


def plain(size):
    at = U64()
    call("cuMemAlloc_v2", c.byref(at), size)
    return at.value


def pool(size):
    at = U64()
    call("cuMemAllocAsync", c.byref(at), size, None)
    call("cuStreamSynchronize", None)
    return at.value


def managed(size):
    at = U64()
    call("cuMemAllocManaged", c.byref(at), size, 1)
    return at.value


KINDS = {"plain": plain, "shareable": shareable, "unexported": lambda size: shareable(size, False), "pool": pool,
         "managed": managed}


class Memory:
    """Elements on the GPU; never freed unless free() is called."""

    def __init__(self, values, kind="plain"):
        values = np.ascontiguousarray(values)
        self.shape, self.dtype, self.nbytes, self.kind = values.shape, values.dtype, values.nbytes, kind
        self.at = KINDS[kind](values.nbytes)
        self.set(values)

    def set(self, values):
        values = np.ascontiguousarray(np.broadcast_to(np.asarray(values, self.dtype), self.shape))
        call("cuMemcpyHtoD_v2", self.at, values.ctypes.data, self.nbytes)
        call("cuStreamSynchronize", None)  # small ones return before they have arrived

    def get(self):
        host = np.empty(self.shape, self.dtype)
        call("cuMemcpyDtoH_v2", host.ctypes.data, self.at, self.nbytes)
        return host

    def free(self):
        if self.kind == "shareable":
            size = self.nbytes + -self.nbytes % GRAIN
            call("cuMemUnmap", self.at, size)
            call("cuMemAddressFree", self.at, size)
        else:
            call("cuMemFree_v2", self.at)

    @property
    def __cuda_array_interface__(self):
        return {"shape": self.shape, "typestr": self.dtype.str, "data": (self.at, False), "version": 3, "stream": None,
                "strides": None}


PATH = os.path.dirname(os.path.abspath(__file__))
