"""Textures and surfaces for kernels, with CuPy's names (cupy.cuda.texture).

    elements = CUDAarray(ChannelFormatDescriptor(32, 0, 0, 0, runtime.cudaChannelFormatKindFloat), width, height)
    elements.copy_from(image)
    texture = TextureObject(ResourceDescriptor(runtime.cudaResourceTypeArray, cuArr=elements),
                            TextureDescriptor((runtime.cudaAddressModeClamp,) * 2, runtime.cudaFilterModeLinear))
    kernel(grid, block, (out, texture))     # which calls tex2D<float>(texture, x, y)

An array of elements is memory of the server like any other. Its first bytes are for the pictures of it: each says for
one way to sample it where the elements are and how they are read. An object is the address of one when it is given to a
kernel, which samples by instructions of its own (kernels/run/texture.h), on a GPU, too.
"""
import contextlib
import operator
import re
import struct
import threading
import weakref

import numpy as np

from .. import _base, _core
from .._interop import addresses
from . import runtime

__all__ = ["CUDAarray", "ChannelFormatDescriptor", "ResourceDescriptor", "SurfaceObject", "TextureDescriptor",
           "TextureObject"]

_PICTURE = struct.Struct("<qqqiii12B4f")  # what kernels/run/texture.h calls a picture
_MOST_PICTURES = 64  # of one array
_MOST_BYTES = 1 << 31  # of a row, which surfaces count by int
_TYPES = {runtime.cudaChannelFormatKindSigned: {8: "i1", 16: "i2", 32: "i4"},
          runtime.cudaChannelFormatKindUnsigned: {8: "u1", 16: "u2", 32: "u4"},
          runtime.cudaChannelFormatKindFloat: {16: "f2", 32: "f4"}}
_NAMES = re.compile(r"\b(tex([123]D|Cubemap)\w*|surf([123]D|Cubemap)\w*|cuda(Texture|Surface)Object_t)\b")
_HEADER = "#include <arrayd/texture.cuh>\n#line 1\n"


class InvalidValueError(_core.DeviceError, ValueError):
    """A descriptor that CUDA takes for none: what CuPy raises as a CUDARuntimeError."""


def _invalid(message):
    return InvalidValueError(f"cudaErrorInvalidValue: {message}")


def with_header(source):
    """Return a source of CUDA C++ with what it needs where it names textures or surfaces."""
    return _HEADER + source if _NAMES.search(source) else source


class ChannelFormatDescriptor:
    """The channels of an element: one, two or four, all of one type.

    Parameters: x, y, z, w: bits of each, 0 where there is none. f: one of runtime.cudaChannelFormatKind...
    Source: cupy.cuda.texture.ChannelFormatDescriptor
    """

    def __init__(self, x, y, z, w, f):
        self._bits, self._kind = tuple(map(operator.index, (x, y, z, w))), operator.index(f)

    def get_channel_format(self):
        """dict of what it was made of."""
        return dict(zip("xyzwf", (*self._bits, self._kind)))

    def _settle(self):
        """How many channels there are, and their dtype."""
        count = sum(bits > 0 for bits in self._bits)
        name = _TYPES.get(self._kind, {}).get(self._bits[0])
        if count not in (1, 2, 4) or self._bits != (self._bits[0],) * count + (0,) * (4 - count) or name is None:
            raise _invalid(f"channels of {self._bits} bits, kind {self._kind}: there are elements of 1, 2 or 4 channels, all "
                           "of 8, 16 or 32 bits (of 16 or 32 where they are floating point)")
        return count, np.dtype(name)


class ResourceDescriptor:
    """What a texture or a surface shows: a CUDAarray, or an array as elements in a row or in rows.

    Parameters: restype: runtime.cudaResourceTypeArray with cuArr, cudaResourceTypeLinear with arr, chDesc and sizeInBytes,
    or cudaResourceTypePitch2D with arr, chDesc, width, height and pitchInBytes. cuArr: CUDAarray. arr: ndarray. chDesc:
    ChannelFormatDescriptor. sizeInBytes: how many bytes of arr there are. width, height: elements of a row, and rows.
    pitchInBytes: bytes from one row to the next.
    Raises: NotImplementedError for cudaResourceTypeMipmappedArray, as in CuPy; TypeError for what is no array.
    Source: cupy.cuda.texture.ResourceDescriptor
    """

    def __init__(self, restype, cuArr=None, arr=None, chDesc=None, sizeInBytes=0, width=0, height=0, pitchInBytes=0):
        if restype == runtime.cudaResourceTypeMipmappedArray:
            raise NotImplementedError("cudaResourceTypeMipmappedArray is currently not supported")
        if restype == runtime.cudaResourceTypeArray:
            _check_type(cuArr, CUDAarray, "cuArr")
        else:
            _check_type(arr, _core.ndarray, "arr")
            _check_type(chDesc, ChannelFormatDescriptor, "chDesc")
        self.chDesc, self.cuArr, self.arr = chDesc, cuArr, arr
        self._kind, self._size = operator.index(restype), operator.index(sizeInBytes)
        self._width, self._height, self._pitch = map(operator.index, (width, height, pitchInBytes))

    def get_resource_desc(self):
        """dict of what it was made of; addresses are those of a.data.ptr."""
        if self._kind == runtime.cudaResourceTypeArray:
            return {"resType": self._kind, "array": {"array": self.cuArr.ptr}}
        told = {"devPtr": self.arr.data.ptr, "desc": self.chDesc.get_channel_format()}
        if self._kind == runtime.cudaResourceTypeLinear:
            return {"resType": self._kind, "linear": {**told, "sizeInBytes": self._size}}
        return {"resType": self._kind, "pitch2D": {**told, "width": self._width, "height": self._height,
                                                   "pitchInBytes": self._pitch}}

    def _elements(self):
        """The CUDAarray that it shows, or one for a copy of the array's elements."""
        if self._kind == runtime.cudaResourceTypeArray:
            return self.cuArr
        linear = self._kind == runtime.cudaResourceTypeLinear
        count, dtype = self.chDesc._settle()
        one = count * dtype.itemsize
        width, height = (self._size // one, 1) if linear else (self._width, self._height)
        pitch = width * one if linear else self._pitch
        if width < 1 or height < 1 or pitch < width * one:
            raise _invalid(f"{height} rows of {width} elements of {one} bytes, {pitch} bytes from each other: there must be "
                           "elements, and rows must not overlap")
        if (height - 1) * pitch + width * one > self.arr.nbytes or not self.arr.flags.c_contiguous:
            raise _invalid(f"arr has {self.arr.nbytes} bytes and the texture {(height - 1) * pitch + width * one}: it must lie "
                           "within the array, and the array must be C-contiguous")
        return CUDAarray(self.chDesc, width, height)

    def _refresh(self, elements):
        """Copy the array's elements as they are now."""
        if self.arr is None:
            return
        rows = elements._rows()
        pitch = self._pitch if self._kind == runtime.cudaResourceTypePitch2D else rows.shape[1]
        rows[...] = _base.view(self.arr, rows.shape, (pitch, 1), 0, "u1")


def _check_type(value, kind, name):
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be a {kind.__name__}, not {type(value).__name__}")


class TextureDescriptor:
    """How a texture is sampled.

    Parameters: addressModes: up to three of runtime.cudaAddressMode..., for x, y and z: what a coordinate beyond the
    elements means; Wrap and Mirror mean Clamp unless coordinates are normalized. filterMode: runtime.cudaFilterModePoint
    or cudaFilterModeLinear, whose weights have eight bits behind the point as on a GPU. readMode:
    runtime.cudaReadModeElementType, or cudaReadModeNormalizedFloat, by which integers of 8 and 16 bits are numbers from 0 or
    -1 to 1. sRGB: whether those of 8 bits are taken for sRGB, and are converted. borderColors: up to four numbers: what is
    beyond the elements for cudaAddressModeBorder. normalizedCoords: whether coordinates go from 0 to 1. maxAnisotropy: kept,
    and without effect as long as there are no levels.
    Raises: ValueError for more of a kind than there can be.
    Source: cupy.cuda.texture.TextureDescriptor
    """

    def __init__(self, addressModes=None, filterMode=0, readMode=0, sRGB=None, borderColors=None, normalizedCoords=None,
                 maxAnisotropy=None):
        self._modes = _filled(addressModes, 3, 0, "addressModes")
        self._border = _filled(borderColors, 4, 0.0, "borderColors")
        self._filter, self._read = operator.index(filterMode), operator.index(readMode)
        self._srgb, self._relative = int(bool(sRGB)), int(bool(normalizedCoords))
        self._anisotropy = int(maxAnisotropy or 0)

    def get_texture_desc(self):
        """dict of what it was made of."""
        return {"addressMode": self._modes, "filterMode": self._filter, "readMode": self._read, "sRGB": self._srgb,
                "borderColor": self._border, "normalizedCoords": self._relative, "maxAnisotropy": self._anisotropy}

    def _check(self, dtype):
        """Raise InvalidValueError for what no texture of a type can do."""
        if not all(mode in range(4) for mode in self._modes) or self._filter not in (0, 1) or self._read not in (0, 1):
            raise _invalid(f"addressModes={self._modes}, filterMode={self._filter}, readMode={self._read}: they must be the "
                           "numbers of runtime.cudaAddressMode..., cudaFilterMode... and cudaReadMode...")
        if self._filter and dtype.kind != "f" and not (self._read and dtype.itemsize < 4):
            raise _invalid(f"cudaFilterModeLinear of elements of {dtype}: it is for floating point, and for integers of 8 or "
                           "16 bits with cudaReadModeNormalizedFloat")


def _filled(values, n, default, name):
    values = tuple(map(type(default), () if values is None else values))
    if len(values) > n:
        raise ValueError(f"{name} must be at most {n} numbers, not {len(values)}")
    return values + (default,) * (n - len(values))


class CUDAarray:
    """Elements for textures and surfaces, in one to three dimensions, on the current device.

    Parameters: desc: ChannelFormatDescriptor. width, height, depth: how many elements there are along x, y and z; 0: no such
    dimension. flags: runtime.cudaArray...: with cudaArrayLayered depth is the number of layers, and cudaArraySurfaceLoadStore
    is for surfaces.
    Raises: ValueError for sizes; cuda.runtime.CUDARuntimeError, which is a ValueError too, for other elements than there are;
    NotImplementedError for cubes and gathering; MemoryError where an array of that size would be one.
    Source: cupy.cuda.texture.CUDAarray
    """

    def __init__(self, desc, width, height=0, depth=0, flags=0):
        _check_type(desc, ChannelFormatDescriptor, "desc")
        self.width, self.height, self.depth, self.flags = map(operator.index, (width, height, depth, flags))
        if min(self.width, self.height, self.depth) < 0 or self.width == 0:
            raise ValueError("To create a CUDA array, width must be nonzero, and no size negative")
        if self.depth and not self.height:
            raise ValueError("To create a 2D CUDA array, height must be nonzero where depth is")
        if self.flags & ~(runtime.cudaArrayLayered | runtime.cudaArraySurfaceLoadStore):
            raise NotImplementedError(f"flags={self.flags}: there are cudaArrayLayered and cudaArraySurfaceLoadStore")
        self.desc, self.ndim = desc, 3 if self.depth else 2 if self.height else 1
        self._channels, self._dtype = desc._settle()
        self._row = self.width * self._channels * self._dtype.itemsize
        if self._row >= _MOST_BYTES or max(self.height, self.depth) >= 1 << 31:
            raise _invalid(f"{self.width} x {self.height} x {self.depth} elements: a row must have less than {_MOST_BYTES} "
                           "bytes")
        lines = max(self.height, 1) * max(self.depth, 1)
        self._begin = _MOST_PICTURES * _PICTURE.size
        self._memory = _core.empty((self._begin + lines * self._row,), "u1")
        self._pictures, self._lock = {}, threading.Lock()

    @property
    def ptr(self):
        """int: the address of its memory, as a.data.ptr."""
        return addresses.address_of(self._memory)

    def _rows(self):
        """The bytes of its elements, by rows."""
        size = self._memory.size - self._begin
        return _base.view(self._memory, (size // self._row, self._row), (self._row, 1), self._begin, "u1")

    def _shown(self):
        """The channels of its elements, as an array."""
        shape = (*(n for n in (self.depth, self.height) if n), self.width * self._channels)
        return _base.view(self._memory, shape, _base.packed_strides(shape, self._dtype.itemsize), self._begin, self._dtype)

    def _check(self, arr, name):
        if not isinstance(arr, (np.ndarray, _core.ndarray)):
            raise TypeError(f"{name} must be an ndarray of the server or of NumPy, not {type(arr).__name__}")
        shown = self._shown()
        if arr.shape != shown.shape:
            raise ValueError(f"shape mismatch: {name} has {arr.shape}, and the CUDAarray {shown.shape}")
        if arr.dtype != shown.dtype:
            raise ValueError(f"dtype mismatch: {name} has {arr.dtype}, and the channels are {shown.dtype}")
        return shown

    def copy_from(self, in_arr, stream=None):
        """Set its elements.

        Parameters: in_arr: ndarray of the server or of NumPy, of shape (width * channels,), (height, width * channels) or
        (depth, height, width * channels). stream: where it is done, the current one unless given.
        Returns: None.
        Raises: ValueError for another shape or dtype; TypeError for no array.
        Source: cupy.cuda.texture.CUDAarray.copy_from
        """
        shown = self._check(in_arr, "in_arr")
        with stream or contextlib.nullcontext():
            shown[...] = _base.as_array(in_arr)

    def copy_to(self, out_arr, stream=None):
        """Copy its elements to an array; waits for them where it is NumPy's.

        Parameters: out_arr: C-contiguous, of the shape and dtype that copy_from takes. stream: where it is done, the current
        one unless given.
        Returns: None.
        Raises: ValueError for another shape, dtype or order; TypeError for no array.
        Source: cupy.cuda.texture.CUDAarray.copy_to
        """
        shown = self._check(out_arr, "out_arr")
        if not out_arr.flags.c_contiguous:
            raise ValueError("The output array must be C-contiguous")
        with stream or contextlib.nullcontext():
            out_arr[...] = shown.get() if isinstance(out_arr, np.ndarray) else shown

    def _picture(self, user, texture):
        """The array's memory from a picture on, which is there as long as user is. texture: a TextureDescriptor."""
        bytes_each, kinds = self._dtype.itemsize, "iuf".index(self._dtype.kind)
        with self._lock:
            for place in range(_MOST_PICTURES):
                begin = self._begin - place * _PICTURE.size
                fields = _PICTURE.pack(begin, self._row, self._row * max(self.height, 1), self.width, max(self.height, 1),
                                       max(self.depth, 1), self._channels, bytes_each, kinds, texture._filter,
                                       texture._relative, texture._read, texture._srgb, *texture._modes, 0, 0,
                                       *texture._border)
                there, users = self._pictures.get(place, (None, ()))
                if there == fields or not users:
                    return self._draw(place, fields, there == fields, user)
        raise _core.LimitError(f"a CUDAarray has at most {_MOST_PICTURES} kinds of textures and surfaces at a time")

    def _draw(self, place, fields, there, user):
        begin = place * _PICTURE.size
        if not there:
            self._memory[begin:begin + _PICTURE.size] = _base.as_array(np.frombuffer(fields, "u1"))
            self._pictures[place] = fields, weakref.WeakSet()
        self._pictures[place][1].add(user)
        return self._memory[begin:]


class _Shown:
    """A picture of a resource, which is there as long as its owner, an object, is."""

    def __init__(self, resource, texture, owner):
        _check_type(resource, ResourceDescriptor, "ResDesc")
        self._resource, self._elements = resource, resource._elements()
        texture._check(self._elements._dtype)
        self._memory = self._elements._picture(owner, texture)

    def memory(self):
        """The array whose address a kernel gets, with the elements that there are now."""
        self._resource._refresh(self._elements)
        return self._memory


class TextureObject:
    """A texture, which kernels get as a cudaTextureObject_t: an argument of a RawKernel or an ElementwiseKernel.

    Kernels call tex1D, tex2D, tex3D, tex1Dfetch, tex2DLayered, and tex1DLod to tex3DLod, whose level changes nothing.

    Parameters: ResDesc: ResourceDescriptor. TexDesc: TextureDescriptor.
    Raises: cuda.runtime.CUDARuntimeError, which is a ValueError too, for a way to sample that its elements do not have.
    Differs: a kernel's own instructions sample it, not the GPU's units for textures; of an ndarray it shows a copy, which
    each launch makes; and there are no gradients, gathering, cubes and levels.
    Source: cupy.cuda.texture.TextureObject
    """

    def __init__(self, ResDesc, TexDesc):
        _check_type(TexDesc, TextureDescriptor, "TexDesc")
        self.ResDesc, self.TexDesc = ResDesc, TexDesc
        self._shown = _Shown(ResDesc, TexDesc, self)

    @property
    def ptr(self):
        """int: the object as a kernel gets it, as an address of a.data.ptr."""
        return addresses.address_of(self._shown.memory())


class SurfaceObject:
    """A surface, which kernels get as a cudaSurfaceObject_t, and read and write: surf1D, surf2D, surf3D, surf2DLayered.

    An element beyond the others ends the kernel, is zero or is the nearest one, as the last argument of those says.

    Parameters: ResDesc: ResourceDescriptor of a CUDAarray with the flag cudaArraySurfaceLoadStore.
    Raises: cuda.runtime.CUDARuntimeError, which is a ValueError too, for another.
    Source: cupy.cuda.texture.SurfaceObject
    """

    def __init__(self, ResDesc):
        _check_type(ResDesc, ResourceDescriptor, "ResDesc")
        if ResDesc.cuArr is None or not ResDesc.cuArr.flags & runtime.cudaArraySurfaceLoadStore:
            raise _invalid("a surface is of a CUDAarray with the flag cudaArraySurfaceLoadStore")
        self.ResDesc, self._shown = ResDesc, _Shown(ResDesc, TextureDescriptor(), self)

    @property
    def ptr(self):
        """int: the object as a kernel gets it, as an address of a.data.ptr."""
        return addresses.address_of(self._shown.memory())
