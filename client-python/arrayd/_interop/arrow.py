"""Apache Arrow's capsules (the Arrow PyCapsule interface): arrays for pyarrow, polars, DuckDB, nanoarrow, cuDF ..."""
import numpy as np

from .. import _core
from . import dlpack
from .addresses import address_of, memory_of
from .._math.bits import packbits
from .._array.creation import ascontiguousarray

_FORMATS = {"bool": "b", "int8": "c", "uint8": "C", "int16": "s", "uint16": "S", "int32": "i", "uint32": "I",
            "int64": "l", "uint64": "L", "float16": "e", "float32": "f", "float64": "g"}
_CPU, _CUDA = (1, -1), 2  # ARROW_DEVICE_CPU, which has no number, and ARROW_DEVICE_CUDA


def arrow_schema(self):
    """The type of the elements, as an Arrow capsule.

    Returns: capsule of an ArrowSchema.
    Raises: TypeError for arrays that are not in one dimension, and types that Arrow lacks.
    Source: Arrow PyCapsule interface, __arrow_c_schema__
    """
    if self.ndim != 1:
        raise TypeError(f"an Arrow array has one dimension, not {self.ndim}: ravel() it first")
    if self.dtype.name not in _FORMATS:
        raise TypeError(f"Arrow has no {self.dtype.name}")
    return _core.arrow_schema(_FORMATS[self.dtype.name])


def arrow_array(self, requested_schema=None):
    """The elements in this process's host memory, as Arrow capsules; waits for the server. The memory is that of the
    array itself where __dlpack__ gives that, too, and else a copy. Arrow's booleans are bits: these are always a copy.

    Parameters: requested_schema: a capsule of the type that the caller would like; it is not converted to.
    Returns: (capsule of an ArrowSchema, capsule of an ArrowArray).
    Raises: TypeError as __arrow_c_schema__.
    Source: Arrow PyCapsule interface, __arrow_c_array__
    """
    schema = arrow_schema(self)
    return schema, _core.arrow_array(*_on_the_host(self), self.size, None)


def arrow_device_array(self, requested_schema=None, **options):
    """The elements where they are, as Arrow capsules: in a GPU's memory where this program can reach that, else as
    __arrow_c_array__. Waits for the server: there is no event to wait for.

    Parameters: requested_schema: a capsule of the type that the caller would like; it is not converted to. options: of
    later versions of the interface; None each.
    Returns: (capsule of an ArrowSchema, capsule of an ArrowDeviceArray).
    Raises: TypeError as __arrow_c_schema__; NotImplementedError for options that are not None.
    Source: Arrow PyCapsule interface, __arrow_c_device_array__
    """
    unknown = [name for name, value in options.items() if value is not None]
    if unknown:
        raise NotImplementedError(f"__arrow_c_device_array__: {', '.join(unknown)} is not supported")
    schema, a = arrow_schema(self), ascontiguousarray(self)
    kind, number = dlpack.dlpack_device(a) if a.size and a.dtype != bool else _CPU
    if kind == _CUDA:
        return schema, _core.arrow_array(memory_of(a), address_of(a), a.size, (_CUDA, number))
    return schema, _core.arrow_array(*_on_the_host(a), a.size, _CPU)


def _on_the_host(a):
    """Return the keeper of the memory, and its address."""
    if a.dtype == bool:
        host = packbits(a, bitorder="little").get()
    elif _core.session_info()["backend"] == "cpu":
        host = np.from_dlpack(ascontiguousarray(a))
    else:
        host = a.get()
    return host, host.ctypes.data
