"""Functions of modules, and their arguments as they are sent."""
import numpy as np

from .. import _core
from .._base import units_of
from .._core import ndarray
from .._interop import addresses
from ..cuda.memory import MemoryPointer
from ..cuda.texture import SurfaceObject, TextureObject
from . import sites
from .mdspan import as_parameter, mdspan
from .types import three

_NULL = bytes(8)
_LEAST_ADDRESS = 1 << 16  # Linux maps nothing below it


def arguments(args):
    """A kernel's arguments as Module.launch takes them: arrays as they are, pointers and addresses of arrays, textures and
    surfaces as arrays, an mdspan as a structure, others as the bytes of their value."""
    if isinstance(args, ndarray):
        args = (args,)
    if not isinstance(args, (tuple, list)):
        raise TypeError(f"a kernel's arguments must be a tuple, not {type(args).__name__}")
    return tuple(units_of(a) if isinstance(a, ndarray) else _parameter(a, place) for place, a in enumerate(args))


def _parameter(value, place):
    if isinstance(value, MemoryPointer):
        return _behind(value) if value.mem.size else _value(value.ptr, place)
    if isinstance(value, (TextureObject, SurfaceObject)):
        return value._shown.memory()
    return as_parameter(value) if isinstance(value, mdspan) else _value(value, place)


def written(args):
    """A bit for each argument of a kernel that it may write: all but textures."""
    if isinstance(args, ndarray):
        return 1
    return sum(1 << place for place, a in enumerate(args) if not isinstance(a, TextureObject))


def _behind(pointer):
    """The memory from a pointer on, as an array of bytes."""
    return ndarray((pointer.mem.size - pointer._offset,), np.uint8, pointer)


def _value(value, place):
    if isinstance(value, (int, np.int64, np.uint64)) and not isinstance(value, bool):
        memory = addresses.find_bytes(int(value), 1) if value > _LEAST_ADDRESS else None  # from a.data.ptr
        return _integer(int(value), place) if memory is None else memory
    if isinstance(value, (bool, float, complex)):
        return np.array(value).tobytes()
    if value is None:
        return _NULL
    if isinstance(value, (np.generic, np.ndarray)) and not value.dtype.hasobject:
        if value.size != 1:
            raise TypeError(f"argument {place} of a kernel is a numpy.ndarray of {value.size} elements; one of 1 goes "
                            "by value, and arrayd.asarray makes an array of the server")
        return value.tobytes()
    raise TypeError(f"argument {place} of a kernel must be an arrayd.ndarray, a number or None, "
                    f"not {type(value).__name__}")


def _integer(value, place):
    if not -1 << 63 <= value < 1 << 64:
        raise OverflowError(f"argument {place} of a kernel does not fit into 64 bits: {value}")
    return (value & (1 << 64) - 1).to_bytes(8, "little")


class NotFoundError(_core.DeviceError, ValueError):
    """A module has no function of a name, or there is no file of a module: what CuPy raises as a CUDADriverError."""


class Function:
    """A function of a compiled module, as RawKernel.kernel gives it.

    Parameters: module: the module. name: of an extern "C" function, or one of the module's name expressions.
    Raises: cuda.driver.CUDADriverError, which is a ValueError too, for a name that the module does not have.
    Source: cupy.cuda.Function
    """

    __slots__ = ("_module", "name")

    def __init__(self, module, name):
        try:
            module.info(name)  # from now on the kernel is known to be there
        except ValueError as error:
            raise NotFoundError(f"CUDA_ERROR_NOT_FOUND: named symbol not found: {error}") from None
        self._module, self.name = module, name

    def __call__(self, grid, block, args, shared_mem=0):
        """Launch it on the current stream.

        Parameters: grid, block: int or tuple of up to 3; a grid with a 0 has no blocks, and nothing runs. args: tuple of
        arrays, NumPy scalars and Python numbers, or one array. shared_mem: bytes of dynamic shared memory.
        Returns: None.
        Raises: TypeError, ValueError for arguments that no kernel takes.
        """
        values, grid, block = arguments(args), three(grid, "grid"), three(block, "block")
        if 0 in grid:
            return
        sites.note(self.name)
        self._module.launch(self.name, grid, block, shared_mem, values, written(args))

    def linear_launch(self, size, args, shared_mem=0, block_max_size=128):
        """Launch it with as many threads as there are elements, at least.

        Parameters: size: number of elements. args, shared_mem: as for a call. block_max_size: threads of a block, at
        most.
        Returns: None.
        """
        block = max(min(block_max_size, size), 1)
        self(max(-(-size // block), 1), block, args, shared_mem)

    @property
    def attributes(self):
        """dict of what the kernel needs and may have; waits for the server"""
        return self._module.info(self.name)
