"""Questions of every file of scipy.sparse: what is sparse, which types elements and indices have, what a shape is."""
import operator

import numpy as np

from ..._core import ndarray


class SparseWarning(Warning):
    """A warning about sparse matrices.

    Parameters: args: the text.
    Source: scipy.sparse.SparseWarning
    """


class SparseEfficiencyWarning(SparseWarning):
    """An operation is slow, or takes much memory, because of the format that a matrix has.

    Parameters: args: the text.
    Source: scipy.sparse.SparseEfficiencyWarning
    """


class sparray:
    """The base of sparse arrays: csr_array, csc_array, coo_array and dia_array. isinstance(x, sparray) asks for one.

    Source: scipy.sparse.sparray
    """


class spmatrix:
    """The base of sparse matrices, whose * is the matrix product: csr_matrix, csc_matrix, coo_matrix and dia_matrix.

    Source: scipy.sparse.spmatrix
    """


def issparse(x):
    """Whether x is a sparse array or matrix of the server.

    Parameters: x: any object.
    Returns: bool.
    Raises: nothing of its own.
    Source: scipy.sparse.issparse
    """
    return isinstance(x, (sparray, spmatrix)) and hasattr(x, "toarray")


def isspmatrix(x):
    """Whether x is a sparse matrix of the server, and no sparse array.

    Parameters: x: any object.
    Returns: bool.
    Raises: nothing of its own.
    Source: scipy.sparse.isspmatrix
    """
    return isinstance(x, spmatrix)


def is_host_sparse(x):
    """Whether x is one of SciPy's own sparse arrays; SciPy is not imported to find out."""
    return type(x).__module__.startswith("scipy.sparse") and hasattr(x, "tocoo")


def is_scalar_like(x):
    """Whether x is a number, or an array without dimensions."""
    return np.isscalar(x) or isinstance(x, (np.generic, np.ndarray, ndarray)) and x.ndim == 0


def is_shape(x, dimensions=(2,)):
    """Whether x is a tuple of so many integers."""
    if not isinstance(x, (tuple, list)) or len(x) not in dimensions:
        return False
    return all(is_integer(n) for n in x)


def is_integer(x):
    """Whether x is an integer, or an array without dimensions that holds one."""
    if isinstance(x, (bool, np.bool_)):
        return False
    if isinstance(x, (np.ndarray, ndarray)):
        return x.ndim == 0 and x.dtype.kind in "iu"
    return isinstance(x, (int, np.integer))


def check_shape(shape, dimensions=(2,)):
    """A shape as a tuple of ints. TypeError, ValueError."""
    if is_integer(shape):
        shape = (shape,)
    shape = tuple(int(operator.index(n)) for n in shape)
    if len(shape) not in dimensions:
        wanted = " or ".join(str(n) for n in dimensions)
        raise ValueError(f"shape must have length {wanted}. Got {len(shape)}-D shape {shape}")
    if any(n < 0 for n in shape):
        raise ValueError("'shape' elements cannot be negative")
    return shape


def check_dtype(dtype):
    """A type of elements that sparse matrices have. ValueError."""
    dtype = np.dtype(dtype)
    if dtype.kind not in "biufc" or dtype.itemsize > 16 or dtype == np.float16:
        raise ValueError(f"scipy.sparse does not support dtype {dtype}. The only supported types are: bool, int8 to "
                         "int64, uint8 to uint64, float32, float64, complex64, complex128.")
    return dtype


def upcast(*dtypes):
    """The type in which elements of these types are combined."""
    dtype = np.result_type(*dtypes)
    return np.dtype(np.float32) if dtype == np.float16 else dtype


def product_type(dtype):
    """The type that a product of elements of dtype is computed in."""
    return dtype if dtype.char in "fdFD" else np.dtype(np.int64)


def check_axis(axis, dimensions):
    """An axis argument as a sorted tuple of axes, or None for all. TypeError, ValueError."""
    if axis is None:
        return None
    if isinstance(axis, (tuple, list)):
        given = tuple(axis)
    else:
        given = (axis,)
    if any(isinstance(a, (str, float, type(None))) or not is_integer(a) for a in given):
        raise TypeError(f"axis must be an integer/tuple of ints, not {type(axis)}")
    for a in given:
        if not -dimensions <= a < dimensions:
            raise ValueError("axis out of range for ndim")
    found = tuple(sorted(int(a) % dimensions for a in given))
    if len(set(found)) != len(found):
        raise ValueError(f"duplicate value in axis: {axis}")
    return None if len(found) == dimensions else found
