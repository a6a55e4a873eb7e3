"""Arrays that must be as asked: finite, real, of a layout."""
import numpy as np

from . import _base, _core
from ._base import as_array
from ._array import creation
from ._array.creation import array

_FLAGS = {"C": "C_CONTIGUOUS", "F": "F_CONTIGUOUS", "A": "ALIGNED", "W": "WRITEABLE", "O": "OWNDATA",
          "E": "ENSUREARRAY", "CONTIGUOUS": "C_CONTIGUOUS", "FORTRAN": "F_CONTIGUOUS"}
_FLAGS |= {name: name for name in _FLAGS.values()}


def asarray_chkfinite(a, dtype=None, order=None):
    """asarray, checked for NaN and infinities; costs a round trip for arrays of the server that could hold them.

    Parameters: a: array, number or nested sequence. dtype: type of the elements. order: 'C', 'F', 'A' or 'K'.
    Returns: ndarray.
    Raises: ValueError for an element that is not finite.
    Source: numpy.asarray_chkfinite
    """
    result = array(a, dtype, copy=None, order=order or "K")
    if result.dtype.kind not in "biu" and not _base.reduce("all", _core.ufuncs["isfinite"](result)):
        raise ValueError("array must not contain infs or NaNs")
    return result


def min_scalar_type(a):
    """The smallest type that holds a number; of an array of the server, or of what holds or hands out one, its type.

    Parameters: a: number, array or nested sequence.
    Returns: dtype.
    Raises: as asarray for a sequence with arrays that cannot be one.
    Source: numpy.min_scalar_type
    """
    return as_array(a).dtype if creation.is_of_server(a) else np.min_scalar_type(a)


def real_if_close(a, tol=100):
    """The real part, if all imaginary parts are nearly 0; costs a round trip for complex arrays.

    Parameters: a: array. tol: how far from 0 they may be: in units of the type's precision if more than 1, else as it
    is.
    Returns: ndarray: a view of the real parts, or a.
    Raises: nothing of its own.
    Source: numpy.real_if_close
    """
    a = as_array(a)
    if a.dtype.kind != "c":
        return a
    tol = float(np.finfo(a.dtype).eps) * tol if tol > 1 else tol
    return a.real if _base.reduce("all", _core.ufuncs["absolute"](a.imag) < tol) else a


def require(a, dtype=None, requirements=None, *, like=None):
    """An array that has the flags asked for: itself if it has them, else a copy.

    Parameters: a: array, number or nested sequence. dtype: type of the elements. requirements: one or a sequence of
    'C' (C_CONTIGUOUS), 'F' (F_CONTIGUOUS), 'A' (ALIGNED), 'W' (WRITEABLE), 'O' (OWNDATA; a column-major array is a view
    in arrayd, so that with 'F' it is a copy of its own whose flag is false), 'E' (ENSUREARRAY). like: ignored.
    Returns: ndarray.
    Raises: ValueError for 'C' together with 'F'; KeyError for another requirement.
    Source: numpy.require
    """
    flags = {_FLAGS[one.upper()] for one in requirements or ()} - {"ENSUREARRAY"}
    if flags >= {"C_CONTIGUOUS", "F_CONTIGUOUS"}:
        raise ValueError('Cannot specify both "C" and "F" order')
    order = "F" if "F_CONTIGUOUS" in flags else "C" if "C_CONTIGUOUS" in flags else "A"
    result = array(a, dtype, copy=None, order=order)
    return result if all(result.flags[one] for one in flags) else result.copy(order)
