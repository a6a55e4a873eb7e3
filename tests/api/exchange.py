"""DLPack's C exchange API as another library sees it: its table of functions, called by ctypes."""
import ctypes

import numpy as np

CPU, CUDA = 1, 2


class Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("number", ctypes.c_int32)]


class Type(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", Device), ("ndim", ctypes.c_int32), ("dtype", Type),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class Managed(ctypes.Structure):
    pass


Managed._fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                    ("deleter", ctypes.CFUNCTYPE(None, ctypes.POINTER(Managed))), ("flags", ctypes.c_uint64),
                    ("tensor", Tensor)]
Fail = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
MANAGED = ctypes.POINTER(Managed)


class Table(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("older", ctypes.c_void_p),
                ("allocate", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Tensor), ctypes.POINTER(MANAGED), ctypes.c_void_p,
                                              Fail)),
                ("export", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(MANAGED))),
                ("take", ctypes.PYFUNCTYPE(ctypes.c_int, MANAGED, ctypes.POINTER(ctypes.py_object))),
                ("look", ctypes.c_void_p),
                ("stream", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p)))]


def table_of(cls):
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    return Table.from_address(pointer(cls.__dlpack_c_exchange_api__, b"dlpack_exchange_api"))


def exported(a):
    """The tensor of an object whose type has the table; whoever has it calls delete()."""
    managed = MANAGED()
    table_of(type(a)).export(a, ctypes.byref(managed))
    return managed


def taken(cls, managed):
    """An object of the type that has a tensor."""
    made = ctypes.py_object()
    table_of(cls).take(managed, ctypes.byref(made))
    array = made.value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(array))  # the function's reference, which ctypes has not taken over
    return array


def allocated(cls, shape, code, bits, device=(CPU, 0)):
    """A tensor of the type's library, and what it says when it gives none: (kind, message)."""
    told, managed = [], MANAGED()
    like = Tensor(None, Device(*device), len(shape), Type(code, bits, 1), (ctypes.c_int64 * len(shape))(*shape), None, 0)
    rc = table_of(cls).allocate(like, ctypes.byref(managed), 7, Fail(lambda *args: told.append(args)))
    assert (rc == 0) == bool(managed) == (not told) and all(context == 7 for context, *_ in told)
    return managed if managed else None, [text.decode() for text in told[0][1:]] if told else None


def delete(managed):
    managed.contents.deleter(managed)


def memory(managed, dtype):
    """The elements of a row-major tensor in the host's memory, as NumPy's array."""
    t = managed.contents.tensor
    shape = tuple(t.shape[:t.ndim])
    count = int(np.prod(shape, dtype=int))
    assert t.device.type == CPU and t.byte_offset == 0
    raw = (ctypes.c_char * (count * np.dtype(dtype).itemsize)).from_address(t.data)
    return np.frombuffer(raw, dtype).reshape(shape)
