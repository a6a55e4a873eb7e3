"""Arrays of structures, which have fields, and of bytes without any (numpy.void).

The server has numbers and bool only. What an array of structures has there is an array of unsigned integers, its units: of one
dimension more, whose last axis is the bytes of an element. A field is a view of them, and moving elements moves units. Functions that
compute take fields.
"""
import math
import operator
import pickle

import numpy as np

from .. import _base, _core
from .._base import ndarray, normalize_axes, normalize_axis, packed_strides, shape_tuple
from . import formatting, protocols

_MOST = 8  # bytes of a unit


def find_dtype(kind):
    """The dtype that something names, if its elements are structures or bytes; else None.

    Parameters: kind: what numpy.dtype takes.
    Returns: numpy.dtype or None.
    Source: arrayd
    """
    try:
        dtype = np.dtype(kind)
    except TypeError:  # bfloat16, say, or no type at all, which others refuse
        return None
    return dtype if issubclass(dtype.type, np.void) else None


def check_dtype(kind):
    """The dtype of structures, or bytes, that something names.

    Parameters: kind: what numpy.dtype takes.
    Returns: numpy.dtype.
    Raises: DTypeError for any other; ValueError for one that holds Python's objects.
    Source: arrayd
    """
    dtype = find_dtype(kind)
    if dtype is None:
        raise _core.DTypeError(f"arrayd has no dtype {np.dtype(kind)!r}: numbers, bool and structures of them only")
    if dtype.subdtype:
        raise _core.DTypeError(f"Unsupported dtype {dtype!r}: only a field may be a subarray; make its shape a part of the "
                               "array's")
    if dtype.itemsize == 0:
        raise _core.DTypeError(f"Unsupported dtype {dtype!r}: an element must have bytes; say how many, as in 'V8'")
    if dtype.hasobject:
        raise ValueError(f"Unsupported dtype {dtype!r}: it holds objects of Python, which the server cannot have")
    return dtype


class Flags:
    """Facts about the layout of an array of structures, under the names of ndarray.flags: flags.c_contiguous, flags["C"] ..."""

    _KEYS = {"C": "carray", "F": "farray"}

    def __init__(self, c_contiguous, f_contiguous, owndata):
        self.c_contiguous = self.contiguous = self.carray = c_contiguous
        self.f_contiguous = self.fortran = f_contiguous
        self.farray = self.fnc = f_contiguous and not c_contiguous
        self.forc = c_contiguous or f_contiguous
        self.owndata, self.writeable, self.aligned = owndata, True, True

    def __getitem__(self, key):
        name = self._KEYS.get(key, key.lower()) if isinstance(key, str) else ""
        if name not in vars(self):
            raise KeyError("Unknown flag")
        return getattr(self, name)

    def __repr__(self):
        return "\n".join(f"{name.upper()} : {getattr(self, name)}" for name in
                         ("c_contiguous", "f_contiguous", "owndata", "writeable", "aligned"))


class StructuredArray:
    """An array of structures, or of bytes without fields. zeros(shape, dtype=[("x", "f4"), ("n", "i4")]) and array() make one,
    and isinstance(a, ndarray) is true of it.

    a["x"] is a view of a field, an ndarray, and a[["x", "n"]] one of several. It can be indexed, assigned to, copied, cast
    field by field, compared by == and !=, moved to and from NumPy, pickled and given to kernels. Nothing else computes with it.

    Attributes: shape, dtype, ndim, size, itemsize, nbytes, strides, T, mT, base, device, flags, data: as of ndarray.
    Source: cupy.ndarray
    """

    __slots__ = ("_units", "dtype", "__weakref__")
    __array_priority__ = 100.0
    __hash__ = None
    __class__ = property(lambda self: ndarray)

    shape = property(lambda self: self._units.shape[:-1])
    strides = property(lambda self: self._units.strides[:-1])
    ndim = property(lambda self: self._units.ndim - 1)
    size = property(lambda self: math.prod(self.shape))
    itemsize = property(lambda self: self.dtype.itemsize)
    nbytes = property(lambda self: self._units.nbytes)
    base = property(lambda self: self._units.base)
    device = property(lambda self: self._units.device)
    data = property(lambda self: self._units.data)
    T = property(lambda self: self.transpose())

    def __init__(self, units, dtype):
        self._units, self.dtype = units, dtype

    @property
    def mT(self):
        """A view with the last two axes swapped."""
        if self.ndim < 2:
            raise ValueError("matrix transpose with ndim < 2 is undefined")
        return self.swapaxes(-1, -2)

    @property
    def flags(self):
        """Facts about the layout: flags.c_contiguous ..."""
        return Flags(self._units.flags.c_contiguous, self.T._units.flags.c_contiguous, self.base is None)

    # ---- elements ----

    def __getitem__(self, key):
        if isinstance(key, str):
            return self._field(key)
        if isinstance(key, list) and key and all(isinstance(name, str) for name in key):
            return StructuredArray(self._units, self._several(key))
        try:
            return StructuredArray(self._units[extend_key(key)], self.dtype)
        except IndexError as error:
            if "too many indices" not in str(error):
                raise
            raise IndexError(f"too many indices for array: array is {self.ndim}-dimensional") from None

    def __setitem__(self, key, value):
        from .structure_casts import assign
        if isinstance(key, str) or isinstance(key, list) and key and all(isinstance(name, str) for name in key):
            self[key][...] = value
        else:
            assign(self, key, value)

    def _several(self, names):
        for name in names:
            self._check_field(name)
        return self.dtype[names]

    def _check_field(self, name):
        if self.dtype.names is None:
            raise IndexError(f"{name!r} is no index: elements of {self.dtype!r} are bytes without fields; view() gives them some")
        if name not in self.dtype.names:
            raise ValueError(f"no field of name {name}; there are {', '.join(self.dtype.names)}")

    def _field(self, name):
        self._check_field(name)
        kind, offset = self.dtype.fields[name][:2]
        if not self._is_aligned(name):
            raise ValueError(f"the field {name!r} cannot be had alone: the result array with offset {offset} and strides "
                             f"{self.strides} is not sufficiently aligned for GPUs and {kind}; make_aligned_dtype() lays fields out")
        return view_strided(self, self.shape, self.strides, offset, kind)

    def _is_aligned(self, name):
        """Whether a field's numbers lie where processors read them."""
        kind, offset = self.dtype.fields[name][0].base, self.dtype.fields[name][1]
        if kind.kind not in "iufc" or self.size == 0:
            return True
        needs = kind.itemsize // 2 if kind.kind == "c" else kind.itemsize
        places = [_core.layout(self._units)[1] + offset, *(step for n, step in zip(self.shape, self.strides) if n > 1)]
        return not any(place % needs for place in places)

    def __len__(self):
        if not self.ndim:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __bool__(self):
        return bool(self.get())

    def item(self, *args):
        """An element as a tuple of its fields; waits for the server.

        Parameters: args: its index, none where there is one element only.
        Returns: tuple, or bytes where there are no fields.
        Raises: ValueError for an array of several elements; IndexError.
        Source: numpy.ndarray.item
        """
        return self.get().item(*args)

    def tolist(self):
        """The elements in nested lists of tuples; waits for the server.

        Returns: list, or a tuple where there are no dimensions.
        Source: numpy.ndarray.tolist
        """
        return self.get().tolist()

    def tobytes(self, order="C"):
        """The elements' bytes; waits for the server.

        Parameters: order: 'C' or 'F', in which elements are read.
        Returns: bytes.
        Source: numpy.ndarray.tobytes
        """
        return self.get().tobytes(order)

    def get(self, stream=None, order="C", blocking=True, out=None):
        """The elements as a NumPy array; waits for the server.

        Parameters: as ndarray.get.
        Returns: numpy.ndarray.
        Raises: ValueError for an out of another shape; the error of the operation that failed.
        Source: cupy.ndarray.get
        """
        if out is not None:
            return self._get_into(out)
        if order == "F" or order in ("A", "K") and self.flags.fnc:
            return self.T.get().T
        return self._units.get(stream).view(self.dtype).reshape(self.shape)

    def _get_into(self, out):
        if not isinstance(out, np.ndarray):
            raise TypeError("only numpy.ndarray can be obtained from arrayd.ndarray")
        if out.shape != self.shape:
            raise ValueError(f"Shape mismatch. Expected shape: {self.shape}, actual shape: {out.shape}")
        out[...] = self.get()
        return out

    def set(self, arr, stream=None):
        """Set the elements from a NumPy array of the same shape.

        Parameters: arr: numpy.ndarray. stream: ignored.
        Returns: None.
        Raises: ValueError for another shape.
        Source: cupy.ndarray.set
        """
        if np.shape(arr) != self.shape:
            raise ValueError(f"Shape mismatch. Expected shape: {self.shape}, actual shape: {np.shape(arr)}")
        self[...] = arr

    def fill(self, value):
        """Set every element.

        Parameters: value: tuple, structure, number for all fields, or array without dimensions.
        Returns: None.
        Raises: ValueError for an array with dimensions.
        Source: numpy.ndarray.fill
        """
        if isinstance(value, (list, np.ndarray, ndarray)) and np.ndim(value):
            raise ValueError("setting an array element with a sequence.")
        self[...] = value

    def tofile(self, fid, sep="", format="%s"):
        """Write the elements to a file: tofile(self, fid, sep, format).

        Parameters: as ndarray.tofile.
        Returns: None.
        Source: numpy.ndarray.tofile
        """
        from .._io.files import tofile
        tofile(self, fid, sep, format)

    def dump(self, file):
        """Pickle the array to a file, as ndarray.dump.

        Parameters: file: path, or file open for writing bytes.
        Returns: None.
        Source: numpy.ndarray.dump
        """
        from .methods import _dump
        _dump(self, file)

    def dumps(self):
        """The array pickled.

        Returns: bytes.
        Source: numpy.ndarray.dumps
        """
        return pickle.dumps(self, pickle.HIGHEST_PROTOCOL)

    # ---- shapes ----

    def reshape(self, *shape, order="C", copy=None):
        """The elements in another shape; a view where that is possible.

        Parameters: shape: ints or a tuple of ints, of which one may be -1. order: 'C', 'F' or 'A'. copy: True always copies,
        False raises instead of copying.
        Returns: array of structures.
        Raises: ValueError when the number of elements differs, or where a copy is needed and copy is False.
        Source: numpy.ndarray.reshape
        """
        shape = shape_tuple(shape[0] if len(shape) == 1 else shape)
        if order in ("F", "f") or order in ("A", "a") and self.flags.fnc:
            return self.T.reshape(shape[::-1], copy=copy).T
        try:
            return StructuredArray(self._units.reshape((*shape, self._units.shape[-1]), copy=copy), self.dtype)
        except ValueError as error:
            if "cannot reshape" not in str(error):
                raise
            raise ValueError(f"cannot reshape array of size {self.size} into shape {shape}") from None

    def ravel(self, order="C"):
        """One dimension, contiguous; a view where the elements lie so.

        Parameters: order: 'C', 'F', 'A' or 'K'.
        Returns: array of structures.
        Source: numpy.ndarray.ravel
        """
        turned = self.T if order in ("F", "f") or order in ("A", "K", "a", "k") and self.flags.fnc else self
        return turned.reshape(-1) if turned.flags.c_contiguous else turned.copy().reshape(-1)

    def flatten(self, order="C"):
        """A copy with one dimension.

        Parameters: order: as ravel.
        Returns: array of structures.
        Source: numpy.ndarray.flatten
        """
        return self.ravel(order).copy()

    def transpose(self, *axes):
        """A view with the axes in another order, reversed unless given.

        Parameters: axes: ints or a tuple of ints.
        Returns: array of structures.
        Raises: ValueError when axes is no permutation.
        Source: numpy.ndarray.transpose
        """
        axes = axes[0] if len(axes) == 1 and not hasattr(axes[0], "__index__") else axes
        axes = range(self.ndim)[::-1] if not axes else [operator.index(axis) for axis in axes]
        if len(axes) != self.ndim:
            raise ValueError("axes don't match array")
        axes = normalize_axes(tuple(axes), self.ndim)
        return StructuredArray(self._units.transpose(*axes, self.ndim), self.dtype)

    def swapaxes(self, axis1, axis2):
        """A view with two axes swapped.

        Parameters: axis1, axis2: the axes.
        Returns: array of structures.
        Raises: AxisError.
        Source: numpy.ndarray.swapaxes
        """
        one, two = (normalize_axis(axis, self.ndim) for axis in (axis1, axis2))
        return StructuredArray(self._units.swapaxes(one, two), self.dtype)

    def squeeze(self, axis=None):
        """A view without axes of size 1.

        Parameters: axis: which of them, all unless given.
        Returns: array of structures.
        Raises: ValueError when such an axis is not of size 1; AxisError.
        Source: numpy.ndarray.squeeze
        """
        axes = [i for i, n in enumerate(self.shape) if n == 1] if axis is None else normalize_axes(axis, self.ndim)
        return StructuredArray(self._units.squeeze(tuple(axes)), self.dtype)

    def take(self, indices, axis=None, out=None, mode="raise"):
        """Elements by their indices along an axis: take(self, indices, axis).

        Parameters: as the function take.
        Returns: array of structures.
        Raises: IndexError when out of bounds; AxisError.
        Source: numpy.ndarray.take
        """
        from .indexing import take
        a, axis = (self.ravel(), 0) if axis is None else (self, normalize_axis(axis, self.ndim))
        return _base.give(StructuredArray(take(a._units, indices, axis, mode=mode), self.dtype), out)

    def repeat(self, repeats, axis=None):
        """Elements repeated: repeat(self, repeats, axis).

        Parameters: as the function repeat.
        Returns: array of structures.
        Source: numpy.ndarray.repeat
        """
        from .joining import repeat
        return repeat(self, repeats, axis)

    # ---- copies and other types ----

    def copy(self, order="C"):
        """A copy with memory of its own.

        Parameters: order: 'C', 'F', 'A' or 'K'.
        Returns: array of structures.
        Source: numpy.ndarray.copy
        """
        if order in ("F", "f") or order in ("A", "K", "a", "k") and self.flags.fnc:
            return StructuredArray(self.T._units.copy(), self.dtype).T
        return StructuredArray(self._units.copy(), self.dtype)

    def __copy__(self):
        return self.copy("K")

    def __deepcopy__(self, memo):
        return self.copy("K")

    def astype(self, dtype, order="K", casting="unsafe", subok=True, copy=True):
        """The elements as another type, field by field in their order.

        Parameters: dtype: of as many fields; a number's where there is one field. order: 'C', 'F', 'A' or 'K'. casting: which
        casts are allowed. subok: ignored. copy: False gives the array itself where it has that type and order.
        Returns: array of structures, or ndarray.
        Raises: TypeError for a cast that NumPy has not, or casting forbids.
        Source: numpy.ndarray.astype
        """
        from .structure_casts import cast
        dtype = np.dtype(dtype)
        fits = {"C": self.flags.c_contiguous, "F": self.flags.f_contiguous}.get(order, True)
        return self if not copy and dtype == self.dtype and fits else cast(self, dtype, order, casting)

    def view(self, dtype=None, type=None):
        """The bytes of the elements, as another type.

        Parameters: dtype: of the same size, or of one into which the last axis can be cut or joined. type: None or ndarray.
        Returns: array of structures, or ndarray.
        Raises: ValueError for a size that does not fit.
        Source: numpy.ndarray.view
        """
        if dtype is ndarray or dtype is None:
            dtype, type = self.dtype, type or dtype
        if type not in (None, ndarray):
            raise TypeError(f"view(): type must be ndarray or None for an array of structures, not {type!r}")
        return view_as(self, dtype)

    # ---- Python's and NumPy's protocols ----

    def __eq__(self, other):
        from .structure_casts import compare
        return compare("equal", self, other)

    def __ne__(self, other):
        from .structure_casts import compare
        return compare("not_equal", self, other)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        from .structure_casts import compare
        if ufunc.__name__ in ("equal", "not_equal") and method == "__call__" and not kwargs:
            return compare(ufunc.__name__, *inputs)
        raise TypeError(f"{ufunc.__name__} takes no structures: {FIELDS}")

    __array_function__, __array__ = protocols.array_function, protocols.array
    __repr__, __str__, __format__ = formatting.shown_repr, formatting.shown_str, formatting.shown_format

    def __reduce__(self):
        return _restore, (self._units, self.dtype)

    @property
    def __cuda_array_interface__(self):
        """The array's memory, as of ndarray, with its fields."""
        made = dict(self._units.__cuda_array_interface__)
        strides = None if made.get("strides") is None else self.strides
        return {**made, "shape": self.shape, "strides": strides, "typestr": self.dtype.str, "descr": self.dtype.descr}

    def __dlpack__(self, **kwargs):
        raise BufferError(f"DLPack has numbers and bool only, and no elements of {self.dtype!r}: {FIELDS}")

    def __dlpack_device__(self):
        return self._units.__dlpack_device__()

    def __getattr__(self, name):
        if name.startswith("_") or not hasattr(ndarray, name):
            raise AttributeError(f"an array of structures has no attribute {name!r}")
        raise AttributeError(f"an array of structures has no {name}: {FIELDS}")


def _restore(units, dtype):
    return StructuredArray(units, dtype)


FIELDS = "its fields are arrays, as in a['x'], and a.get() gives a NumPy array"


def extend_key(key, axes=1):
    """An index for an array with more axes behind those that it is for.

    Parameters: key: index. axes: how many axes there are behind.
    Returns: tuple.
    Source: arrayd
    """
    key = key if isinstance(key, tuple) else (key,)
    dots = () if any(part is Ellipsis for part in key) else (Ellipsis,)
    return (*key, *dots, *(slice(None),) * axes)


# ---- how C and the package make them ----

def make(name, shape, dtype):
    """A new array of structures.

    Parameters: name: "empty" or "zeros". shape: int or tuple of ints. dtype: what numpy.dtype takes.
    Returns: array of structures.
    Raises: as check_dtype; ValueError for a negative dimension.
    Source: arrayd
    """
    dtype = check_dtype(dtype)
    unit = math.gcd(_MOST, dtype.itemsize)
    return StructuredArray(getattr(_core, name)((*shape_tuple(shape), dtype.itemsize // unit), f"u{unit}"), dtype)


def construct(shape, dtype, strides, order):
    """ndarray(shape, dtype, strides=strides, order=order).

    Parameters: shape, dtype, strides, order: as ndarray's.
    Returns: array of structures, zeros.
    Raises: as check_dtype; ValueError for strides, which need memptr.
    Source: arrayd
    """
    if strides is not None:
        raise ValueError("ndarray() of structures takes strides with memptr only")
    shape = shape_tuple(shape)
    return make("zeros", shape[::-1], dtype).T if order == "F" else make("zeros", shape, dtype)


def from_host(host):
    """A NumPy array's structures on the server, row-major.

    Parameters: host: numpy.ndarray of structures or bytes.
    Returns: array of structures.
    Raises: as check_dtype.
    Source: arrayd
    """
    dtype = check_dtype(host.dtype)
    unit = math.gcd(_MOST, dtype.itemsize)
    packed = np.asarray(host, order="C").reshape(*host.shape, 1)
    return StructuredArray(_core.from_host(packed.view(f"u{unit}")), dtype)


def view_strided(a, shape, strides, offset=0, dtype=None):
    """Any view of an array's memory as structures, or of structures.

    Parameters: a: array. shape: int or tuple of ints. strides: tuple of ints, bytes. offset: bytes from the first element.
    dtype: what numpy.dtype takes, also a subarray, whose shape is added; a's unless given.
    Returns: array of structures or ndarray.
    Raises: ValueError for what leads out of the memory, or is not aligned.
    Source: arrayd
    """
    dtype = a.dtype if dtype is None else np.dtype(dtype)
    base, more = dtype.subdtype or (dtype, ())
    shape, strides = (*shape_tuple(shape), *more), (*strides, *packed_strides(more, base.itemsize))
    units = _base.units_of(a)
    if find_dtype(base) is None:
        return _core.empty(shape, base) if 0 in shape else _core.view(units, shape, strides, int(offset), base)
    base = check_dtype(base)
    unit = math.gcd(_MOST, base.itemsize, _core.layout(units)[1] + int(offset), *strides)
    return StructuredArray(_core.view(units, (*shape, base.itemsize // unit), (*strides, unit), int(offset), f"u{unit}"), base)


def view_as(a, dtype):
    """a.view(dtype), where a or the view is of structures.

    Parameters: a: array. dtype: what numpy.dtype takes.
    Returns: array of structures or ndarray.
    Raises: ValueError for a size that does not fit.
    Source: arrayd
    """
    dtype = find_dtype(dtype) or _core.as_dtype(dtype)
    shape, strides, now, then = list(a.shape), list(a.strides), a.dtype.itemsize, dtype.itemsize
    if then != now:
        if not shape:
            raise ValueError("Changing the dtype of a 0d array is only supported if the itemsize is unchanged")
        if a.size and strides[-1] != now and shape[-1] != 1:
            raise ValueError("To change to a dtype of a different size, the last axis must be contiguous")
        if then < now and now % then:
            raise ValueError("When changing to a smaller dtype, its size must be a divisor of the size of original dtype")
        if shape[-1] * now % then:
            raise ValueError(f"When changing the size of elements from {now} to {then} bytes, the last axis must have a multiple of "
                             f"{then} bytes; it has {shape[-1] * now}")
        shape[-1], strides[-1] = shape[-1] * now // then, then
    return view_strided(a, shape, strides, 0, dtype)


def cast(a, dtype, order, casting):
    """a.astype(dtype, order, casting) of numbers to structures: each field gets them.

    Parameters: a: ndarray. dtype: what numpy.dtype takes. order: None or 'C', 'F', 'A', 'K'. casting: None or a rule.
    Returns: array of structures.
    Raises: TypeError for a cast that the rule forbids.
    Source: arrayd
    """
    from .structure_casts import cast
    return cast(a, check_dtype(dtype), order or "K", casting or "unsafe")
