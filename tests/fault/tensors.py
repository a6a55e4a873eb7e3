"""Tensors of a library that has its memory on a GPU, where tests/build/fake_libcuda.c is the driver. For programs of the
tests, which load it with their own."""
import ctypes as c
import weakref

import numpy as np

cuda = c.CDLL("libcuda.so.1")
cuda.fake_alloc.restype = c.c_void_p
cuda.fake_alloc.argtypes = [c.c_size_t, c.c_int, c.c_void_p]
cuda.fake_free.argtypes = [c.c_void_p]
PLAIN, SHAREABLE, POOL, MANAGED = range(1, 5)
CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
STREAMS = []  # for which capsules were asked

c.pythonapi.PyCapsule_New.restype = c.py_object
c.pythonapi.PyCapsule_New.argtypes = [c.c_void_p, c.c_char_p, c.c_void_p]
c.pythonapi.PyCapsule_IsValid.argtypes = [c.c_void_p, c.c_char_p]
c.pythonapi.PyCapsule_GetPointer.restype = c.c_void_p
c.pythonapi.PyCapsule_GetPointer.argtypes = [c.c_void_p, c.c_char_p]


class Block:
    """An allocation, of bytes; it goes with the last tensor in it."""

    def __init__(self, size, kind=PLAIN):
        self.size = size + -size % 4096
        self.at = cuda.fake_alloc(self.size, kind, None)
        assert self.at
        weakref.finalize(self, cuda.fake_free, self.at)

    def bytes(self):
        return np.frombuffer((c.c_char * self.size).from_address(self.at), "u1")


class Tensor:
    """An array in a block; by the CUDA array interface."""

    def __init__(self, values, kind=PLAIN, block=None, offset=0, readonly=False):
        values = np.asarray(values)
        self.block = block or Block(max(values.nbytes, 1), kind)
        self.host = self.block.bytes()[offset:offset + values.nbytes].view(values.dtype).reshape(values.shape)
        self.readonly = readonly
        self.host[...] = values

    def __getitem__(self, key):
        made = object.__new__(type(self))
        key = (*key, ...) if isinstance(key, tuple) else (key, ...)  # a view also of one element
        made.block, made.host, made.readonly = self.block, self.host[key], self.readonly
        return made

    @property
    def at(self):
        return self.host.__array_interface__["data"][0]

    @property
    def __cuda_array_interface__(self):
        return {"shape": self.host.shape, "typestr": self.host.dtype.str, "data": (self.at, self.readonly),
                "version": 3, "strides": None if self.host.flags.c_contiguous else self.host.strides, "stream": None}

    def __array__(self, *_, **__):
        raise TypeError("not implicitly")


class DLTensor(c.Structure):
    _fields_ = [("data", c.c_void_p), ("device_type", c.c_int32), ("device_id", c.c_int32), ("ndim", c.c_int32),
                ("code", c.c_uint8), ("bits", c.c_uint8), ("lanes", c.c_uint16), ("shape", c.POINTER(c.c_int64)),
                ("strides", c.POINTER(c.c_int64)), ("byte_offset", c.c_uint64)]


class Plain(c.Structure):
    _fields_ = [("tensor", DLTensor), ("context", c.c_void_p), ("deleter", c.c_void_p)]


class Versioned(c.Structure):
    _fields_ = [("major", c.c_uint32), ("minor", c.c_uint32), ("context", c.c_void_p), ("deleter", c.c_void_p),
                ("flags", c.c_uint64), ("tensor", DLTensor)]


ALIVE = {}  # what capsules have


@c.PYFUNCTYPE(None, c.c_void_p)
def destroy(capsule):
    for name in (b"dltensor", b"dltensor_versioned"):
        if c.pythonapi.PyCapsule_IsValid(capsule, name):
            del ALIVE[c.pythonapi.PyCapsule_GetPointer(capsule, name)]


class Modern(Tensor):
    """A tensor that offers its memory by DLPack 1.0."""
    code = None  # of a type that NumPy lacks

    def __dlpack_device__(self):
        return 2, 1

    def stride(self, step):
        return step // self.host.itemsize

    def __dlpack__(self, *, stream=None, max_version=None):
        STREAMS.append(stream)
        made, name = (Versioned(major=1, flags=self.readonly), b"dltensor_versioned") if max_version else (
            Plain(), b"dltensor")
        shape = (c.c_int64 * self.host.ndim)(*self.host.shape)
        strides = (c.c_int64 * self.host.ndim)(*map(self.stride, self.host.strides))
        packed = max_version and self.host.flags.c_contiguous  # old libraries leave them out
        made.tensor = DLTensor(self.at - 8, 2, 1, self.host.ndim, self.code or CODES[self.host.dtype.kind],
                               8 * self.host.itemsize, 1, shape, None if packed else strides, 8)
        ALIVE[c.addressof(made)] = self, made, shape, strides
        return c.pythonapi.PyCapsule_New(c.addressof(made), name, destroy)


class Old(Modern):
    """A tensor that offers its memory as libraries did before DLPack 1.0."""

    def __dlpack__(self, stream=None):
        return super().__dlpack__(stream=stream)


class Unsigned(Modern):
    """A tensor that offers its memory as CuPy 14 does, which divides negative strides as if they were unsigned."""

    def stride(self, step):
        return step % 2**64 // self.host.itemsize
