"""Arrays as kernels take them that are written with cuda::std::mdspan."""
import numpy as np

_INDEX_TYPES = {np.int32: np.dtype("int32"), np.int64: np.dtype("int64")}
_ROOM = 8  # bytes in which the address will be


class mdspan:
    """An array, its sizes and strides as one argument of a RawKernel, whose parameter is a cuda::std::mdspan.

    ndarray.mdspan makes it. It keeps its array.

    Attributes: array: the array.
    Source: cupy.ndarray.mdspan
    """

    __slots__ = ("array", "_structure")

    def __init__(self, array, structure):
        self.array, self._structure = array, structure

    def __repr__(self):
        return f"<mdspan of {self.array.dtype.name}, shape {self.array.shape}>"


def of_array(self, *, index_type, allow_unsafe=False):
    """The array as an argument of a RawKernel whose parameter is a cuda::std::mdspan of so many dynamic extents, with
    layout_stride, or with layout_right or layout_left where the array is C- or F-contiguous.

        cuda::std::mdspan<float, cuda::std::dextents<long long, 2>, cuda::std::layout_stride>

    Parameters: index_type: int64 or int32, the type of extents. allow_unsafe: also for arrays that C++ has no mdspan for:
    with a size of 0 or a stride that is not positive.
    Returns: mdspan.
    Raises: ValueError for another index_type, and for sizes or strides that it cannot count. RuntimeError for arrays that
    need allow_unsafe, and for strides that are no multiple of the element's size.
    Source: cupy.ndarray.mdspan
    """
    dtype = _INDEX_TYPES.get(index_type) if isinstance(index_type, type) else None
    if dtype is None:
        raise ValueError(f"Unsupported index_type: {index_type}. Must be int32 or int64.")
    most = np.iinfo(dtype).max
    if self.size > most:
        raise ValueError(f"Array size {self.size} exceeds {dtype.name} maximum ({most}). Use index_type=int64 instead.")
    if 0 in self.shape and not allow_unsafe:
        raise RuntimeError(f"{self.shape.index(0)}-th dimension has size zero")
    steps = []
    for axis, stride in enumerate(self.strides):
        if not allow_unsafe and stride <= 0:
            raise RuntimeError(f"{axis}-th dimension has non-positive stride")
        step, rest = divmod(stride, self.itemsize)
        if rest:
            raise RuntimeError(f"{axis}-th dimension has a stride that is no multiple of the item size")
        if abs(step) > most:
            raise ValueError(f"{axis}-th dimension has a stride beyond {dtype.name}. Use index_type=int64 instead.")
        steps.append(step)
    return mdspan(self, bytes(_ROOM) + np.array([*self.shape, *steps], dtype).tobytes())


def as_parameter(span):
    """An mdspan as Module.launch takes it."""
    return span.array, span._structure
