"""BLAS's dense operations under the names of cupy.cublas, made of arrayd's own: products run in the server's BLAS.

Arrays are of float32, float64, complex64 or complex128, those of one call of one type. alpha and beta are numbers or 0-d
arrays, of the server or of NumPy. trans is 'N' for an array as it is, 'T' for its transpose, 'H' for its conjugate
transpose, or cuBLAS's number for one of these. Nothing waits, but out= of NumPy's.
"""
import operator

import numpy as np

from . import _base, _core, linalg
from ._array.creation import asarray, zeros
from ._array.indexing import where

__all__ = ["asum", "axpy", "batched_gesv", "dgmm", "dot", "dotc", "dotu", "geam", "gemm", "gemv", "ger", "gerc", "geru",
           "get_batched_gesv_limit", "iamax", "iamin", "nrm2", "sbmv", "scal", "set_batched_gesv_limit", "syrk"]

_limit = 2048


# ---- arguments ----

def _check(name, *arrays, ndim=None, kinds="fdFD"):
    """Arrays of the server of one type, which is one of kinds, and of ndim dimensions."""
    for a in arrays:
        if not isinstance(a, _core.ndarray):
            raise TypeError(f"{name}: arrays must be arrayd.ndarray, not {type(a).__name__}; asarray brings one there")
        if a.dtype.char not in kinds:
            raise TypeError(f"{name}: arrays must be of one of the types {', '.join(np.dtype(c).name for c in kinds)}, not "
                            f"{a.dtype}")
        if a.dtype != arrays[0].dtype:
            raise TypeError(f"{name}: arrays must be of one type, not {arrays[0].dtype} and {a.dtype}")
        if ndim is not None and a.ndim != ndim:
            raise ValueError(f"{name}: arrays must have {ndim} dimensions, not {a.ndim}")


def _check_shape(name, what, a, shape):
    if a.shape != shape:
        raise ValueError(f"{name}: {what} must have the shape {shape}, not {a.shape}")


def _scalar(value, dtype):
    """alpha or beta, as an operand of that type."""
    if isinstance(value, _core.ndarray):
        return value.reshape(()).astype(dtype)
    return dtype.type(value[()] if isinstance(value, np.ndarray) else value)


def _turned(a, trans):
    if trans in ("N", 0):
        return a
    if trans in ("T", 1):
        return a.T
    if trans in ("H", 2):
        return a.T.conj()
    raise TypeError(f"trans must be 'N', 'T' or 'H', not {trans!r}")


def _give(result, out):
    """A 0-d result, or out filled with it: an array of the server or of NumPy."""
    if out is None:
        return result
    out[...] = result.get() if isinstance(out, np.ndarray) else result
    return out


def _magnitude(x):
    """|real| + |imag|, by which BLAS compares and adds."""
    part = _core.ufuncs["absolute"]
    return part(x.real) + part(x.imag) if x.dtype.kind == "c" else part(x)


# ---- vectors ----

def iamax(x, out=None):
    """The first place of the largest |real| + |imag|, counted from 1.

    Parameters: x: array of shape (n,). out: 0-d array of int32 to fill.
    Returns: ndarray of shape (), int32, or out.
    Raises: TypeError for another type; ValueError for another number of dimensions.
    Source: cupy.cublas.iamax
    """
    _check("iamax", x, ndim=1)
    return _give((_magnitude(x).argmax() + 1).astype(np.int32), out)


def iamin(x, out=None):
    """The first place of the smallest |real| + |imag|, counted from 1.

    Parameters: x: array of shape (n,). out: 0-d array of int32 to fill.
    Returns: ndarray of shape (), int32, or out.
    Raises: as iamax.
    Source: cupy.cublas.iamin
    """
    _check("iamin", x, ndim=1)
    return _give((_magnitude(x).argmin() + 1).astype(np.int32), out)


def asum(x, out=None):
    """The sum of |real| + |imag|.

    Parameters: x: array of shape (n,). out: 0-d array to fill.
    Returns: ndarray of shape (), real, or out.
    Raises: as iamax.
    Source: cupy.cublas.asum
    """
    _check("asum", x, ndim=1)
    return _give(_magnitude(x).sum(), out)


def nrm2(x, out=None):
    """The Euclidean norm.

    Parameters: x: array of shape (n,). out: 0-d array to fill.
    Returns: ndarray of shape (), real, or out.
    Raises: as iamax.
    Source: cupy.cublas.nrm2
    """
    _check("nrm2", x, ndim=1)
    return _give(linalg.norm(x), out)


def axpy(a, x, y):
    """y += a * x, in place.

    Parameters: a: number. x, y: arrays of shape (n,).
    Returns: None.
    Raises: TypeError for other types; ValueError for other shapes.
    Source: cupy.cublas.axpy
    """
    _check("axpy", x, y, ndim=1)
    _check_shape("axpy", "y", y, x.shape)
    y += _scalar(a, x.dtype) * x


def scal(a, x):
    """x *= a, in place.

    Parameters: a: number. x: array of shape (n,).
    Returns: None.
    Raises: as iamax.
    Source: cupy.cublas.scal
    """
    _check("scal", x, ndim=1)
    x *= _scalar(a, x.dtype)


def _inner(name, x, y, out, kinds="fdFD"):
    _check(name, x, y, ndim=1, kinds=kinds)
    _check_shape(name, "y", y, x.shape)
    return _give(_base.matrix_product(x[None], y[:, None]).reshape(()), out)


def dot(x, y, out=None):
    """The inner product of real vectors.

    Parameters: x, y: arrays of shape (n,), real. out: 0-d array to fill.
    Returns: ndarray of shape (), or out.
    Raises: TypeError for other types, also complex ones (dotu, dotc); ValueError for other shapes.
    Source: cupy.cublas.dot
    """
    return _inner("dot", x, y, out, "fd")


def dotu(x, y, out=None):
    """The sum of x * y.

    Parameters: x, y: arrays of shape (n,). out: 0-d array to fill.
    Returns: ndarray of shape (), or out.
    Raises: as axpy.
    Source: cupy.cublas.dotu
    """
    return _inner("dotu", x, y, out)


def dotc(x, y, out=None):
    """The sum of x.conj() * y.

    Parameters: x, y: arrays of shape (n,). out: 0-d array to fill.
    Returns: ndarray of shape (), or out.
    Raises: as axpy.
    Source: cupy.cublas.dotc
    """
    _check("dotc", x, y, ndim=1)
    return _inner("dotc", x.conj(), y, out)


# ---- a matrix and vectors ----

def gemv(transa, alpha, a, x, beta, y):
    """y = alpha * op(a) @ x + beta * y, in place.

    Parameters: transa: what op is. alpha, beta: numbers. a: array of shape (m, n). x, y: arrays of one dimension.
    Returns: None.
    Raises: as axpy.
    Source: cupy.cublas.gemv
    """
    _check("gemv", a, ndim=2)
    _check("gemv", x, y, ndim=1)
    _check("gemv", a, x)
    op = _turned(a, transa)
    _check_shape("gemv", "x", x, op.shape[1:])
    _check_shape("gemv", "y", y, op.shape[:1])
    y[...] = _scalar(alpha, a.dtype) * _base.matrix_product(op, x[:, None])[:, 0] + _scalar(beta, a.dtype) * y


def sbmv(k, alpha, a, x, beta, y, lower=False):
    """y = alpha * A @ x + beta * y in place, where A is symmetric and has k diagonals on either side of the main one.

    Parameters: k: how many. alpha, beta: numbers. a: array of shape (k + 1, n), real: A's diagonals, as BLAS stores them:
    the row k - d (with lower d) has the one that is d from the main one, from column d (with lower 0) on. x, y: arrays of
    shape (n,). lower: whether these are those below the main one.
    Returns: y.
    Raises: as axpy.
    Source: cupy.cublas.sbmv
    """
    k = operator.index(k)
    _check("sbmv", a, ndim=2, kinds="fd")
    _check("sbmv", x, y, ndim=1)
    _check("sbmv", a, x)
    n = len(x)
    _check_shape("sbmv", "a", a, (k + 1, n))
    _check_shape("sbmv", "y", y, (n,))
    product = a[0 if lower else k] * x
    for d in range(1, min(k, n - 1) + 1):
        diagonal = a[d, :n - d] if lower else a[k - d, d:]
        product[:n - d] += diagonal * x[d:]
        product[d:] += diagonal * x[:n - d]
    y[...] = _scalar(alpha, a.dtype) * product + _scalar(beta, a.dtype) * y
    return y


def _add_outer(name, alpha, x, y, a, conjugate=False, kinds="fdFD"):
    _check(name, a, ndim=2, kinds=kinds)
    _check(name, x, y, ndim=1)
    _check(name, a, x)
    _check_shape(name, "a", a, (len(x), len(y)))
    a += _scalar(alpha, a.dtype) * x[:, None] * (y.conj() if conjugate else y)


def ger(alpha, x, y, a):
    """a += alpha * outer(x, y), in place, of real arrays.

    Parameters: alpha: number. x: array of shape (m,). y: array of shape (n,). a: array of shape (m, n).
    Returns: None.
    Raises: TypeError for other types, also complex ones (geru, gerc); ValueError for other shapes.
    Source: cupy.cublas.ger
    """
    _add_outer("ger", alpha, x, y, a, kinds="fd")


def geru(alpha, x, y, a):
    """a += alpha * outer(x, y), in place.

    Parameters: alpha: number. x: array of shape (m,). y: array of shape (n,). a: array of shape (m, n).
    Returns: None.
    Raises: as axpy.
    Source: cupy.cublas.geru
    """
    _add_outer("geru", alpha, x, y, a)


def gerc(alpha, x, y, a):
    """a += alpha * outer(x, y.conj()), in place.

    Parameters: alpha: number. x: array of shape (m,). y: array of shape (n,). a: array of shape (m, n).
    Returns: None.
    Raises: as axpy.
    Source: cupy.cublas.gerc
    """
    _add_outer("gerc", alpha, x, y, a, conjugate=True)


# ---- matrices ----

def _combined(name, result, beta, out):
    """result + beta * out, in out where there is one; else result, column-major as BLAS gives it."""
    if out is None:
        return asarray(result, order="F")
    _check(name, out, result)
    _check_shape(name, "out", out, result.shape)
    out[...] = result if beta is None else result + _scalar(beta, out.dtype) * out
    return out


def gemm(transa, transb, a, b, out=None, alpha=1.0, beta=0.0):
    """alpha * op(a) @ op(b), and where there is an out, + beta * out.

    Parameters: transa, transb: what op is for each. a, b: matrices. out: matrix to fill. alpha, beta: numbers.
    Returns: ndarray of shape (m, n), column-major, or out.
    Raises: as axpy.
    Source: cupy.cublas.gemm
    """
    _check("gemm", a, b, ndim=2)
    left, right = _turned(a, transa), _turned(b, transb)
    _check_shape("gemm", "op(b)", right, (left.shape[1], right.shape[1]))
    return _combined("gemm", _scalar(alpha, a.dtype) * _base.matrix_product(left, right), beta, out)


def geam(transa, transb, alpha, a, beta, b, out=None):
    """alpha * op(a) + beta * op(b).

    Parameters: transa, transb: what op is for each. alpha, beta: numbers. a, b: matrices. out: matrix to fill.
    Returns: ndarray of shape (m, n), column-major, or out.
    Raises: as axpy.
    Source: cupy.cublas.geam
    """
    _check("geam", a, b, ndim=2)
    left, right = _turned(a, transa), _turned(b, transb)
    _check_shape("geam", "op(b)", right, left.shape)
    return _combined("geam", _scalar(alpha, a.dtype) * left + _scalar(beta, a.dtype) * right, None, out)


def dgmm(side, a, x, out=None, incx=1):
    """diag(x) @ a, or a @ diag(x).

    Parameters: side: 'L' or 'R': where the diagonal matrix stands. a: array of shape (m, n). x: array of any shape: what
    is taken of it are its elements, row by row, incx apart; from the last one backwards for a negative incx. out: matrix
    to fill.
    Returns: ndarray of shape (m, n), or out.
    Raises: ValueError for another side, or an x with too few elements; TypeError for other types.
    Source: cupy.cublas.dgmm
    """
    _check("dgmm", a, ndim=2)
    _check("dgmm", a, x)
    if side not in ("L", "R", 0, 1):
        raise ValueError(f"dgmm: side must be 'L' or 'R', not {side!r}")
    left, step = side in ("L", 0), abs(operator.index(incx))
    n = a.shape[0 if left else 1]
    last = max(n - 1, 0) * step
    if n and x.size < last + 1:
        raise ValueError(f"dgmm: x must have at least {last + 1} elements for {n} that are {incx} apart, not {x.size}")
    flat = x.reshape(-1)
    diagonal = flat[:last + 1:step] if step else flat[:1]
    diagonal = diagonal[::-1] if incx < 0 else diagonal
    result = (diagonal[:, None] if left else diagonal) * a
    if out is None:
        return asarray(result, order="C" if a.flags.c_contiguous else "F")
    return _combined("dgmm", result, None, out)


def syrk(trans, a, out=None, alpha=1.0, beta=0.0, lower=False):
    """One triangle of alpha * op(a) @ op(a).T + beta * out; the other one of out stays as it is.

    Parameters: trans: what op is: 'N' or 'T'. a: array of shape (n, k), or (k, n) for 'T'. out: array of shape (n, n) to
    change, zeros unless given. alpha, beta: numbers. lower: which triangle; the main diagonal is in both.
    Returns: ndarray of shape (n, n), column-major, or out.
    Raises: as axpy.
    Source: cupy.cublas.syrk
    """
    _check("syrk", a, ndim=2)
    op = _turned(a, trans)
    n = op.shape[0]
    result = _scalar(alpha, a.dtype) * _base.matrix_product(op, op.T)
    if out is None:
        out, beta = zeros((n, n), a.dtype, "F"), None
    _check("syrk", out, a)
    _check_shape("syrk", "out", out, (n, n))
    if beta is not None:
        result = result + _scalar(beta, a.dtype) * out
    places = _base.iota(n, 0, 1, np.int64)
    inside = places[:, None] >= places if lower else places[:, None] <= places
    out[...] = where(inside, result, out)
    return out


# ---- systems of equations ----

def batched_gesv(a, b):
    """The solutions x of a @ x = b.

    Parameters: a: array of shape (..., m, m). b: array of shape (..., m) or (..., m, k), with the same dimensions before.
    Returns: ndarray of b's shape.
    Raises: ValueError for other shapes; LinAlgError, when the result is read, for a singular matrix.
    Source: cupy.cublas.batched_gesv
    """
    fits = a.ndim >= 2 and a.shape[-1] == a.shape[-2] and b.ndim in (a.ndim, a.ndim - 1) \
        and a.shape[:-1] == b.shape[:a.ndim - 1]
    if not fits:
        raise ValueError(f"batched_gesv: a must have the shape (..., m, m) and b (..., m) or (..., m, k), not {a.shape} and "
                         f"{b.shape}")
    return linalg.solve(a, b) if b.ndim == a.ndim else linalg.solve(a, b[..., None])[..., 0]


def get_batched_gesv_limit():
    """Return what set_batched_gesv_limit has said.

    Returns: int.
    Source: cupy.cublas.get_batched_gesv_limit
    """
    return _limit


def set_batched_gesv_limit(limit):
    """Say up to which size of a matrix many are solved at once. The server chooses that itself.

    Parameters: limit: int.
    Returns: None.
    Raises: TypeError for what is no int.
    Source: cupy.cublas.set_batched_gesv_limit
    """
    global _limit
    _limit = operator.index(limit)
