"""Solutions of dense linear systems, as cupyx.lapack names them."""
import numpy as np

import arrayd as ad

from ..linalg import LinAlgError

__all__ = ["gels", "gesv", "posv", "potrs"]


def _check_system(a, b, dtype_error):
    if a.ndim != 2:
        raise ValueError(f"a.ndim must be 2 (actual: {a.ndim})")
    if b.ndim not in (1, 2):
        raise ValueError(f"b.ndim must be 1 or 2 (actual: {b.ndim})")
    if a.shape[0] != b.shape[0]:
        raise ValueError(f"shape mismatch (a: {a.shape}, b: {b.shape}).")
    if a.dtype != b.dtype:
        raise dtype_error(f"dtype mismatch (a: {a.dtype}, b: {b.dtype})")
    if a.dtype.char not in "fdFD":
        raise dtype_error(f"unsupported dtype (actual: {a.dtype})")


def gesv(a, b):
    """Solve a @ x = b; b becomes x.

    Parameters: a: array (n, n). b: array (n) or (n, k), F-contiguous, which is overwritten.
    Returns: None.
    Raises: ValueError for shapes or orders that do not fit, TypeError for types; LinAlgError for a singular matrix.
    Source: cupyx.lapack.gesv
    Differs: a stays as it is.
    """
    if a.ndim == 2 and a.shape[0] != a.shape[1]:
        raise ValueError("a must be a square matrix.")
    _check_system(a, b, TypeError)
    if not (a.flags.f_contiguous or a.flags.c_contiguous):
        raise ValueError("a must be F-contiguous or C-contiguous.")
    if not b.flags.f_contiguous:
        raise ValueError("b must be F-contiguous.")
    b[...] = ad.linalg.solve(a, b)


def gels(a, b):
    """The least-squares solution of a @ x = b, of least norm where there are several, by a QR factorisation.

    Parameters: a: array (m, n) of full rank. b: array (m) or (m, k).
    Returns: ndarray (n) or (n, k).
    Raises: ValueError for shapes and types that do not fit.
    Source: cupyx.lapack.gels
    """
    from ..scipy.linalg._triangular import solve_triangle
    _check_system(a, b, ValueError)
    right = b.reshape(b.shape[0], -1)
    if a.shape[0] >= a.shape[1]:
        q, r = ad.linalg.qr(a)
        x = solve_triangle(r, q.conj().T @ right, False, False)
    else:
        q, r = ad.linalg.qr(a.conj().T)
        x = q @ solve_triangle(r.conj().T, right, True, False)
    return x.reshape(a.shape[1], *b.shape[1:])


def _check_square(a):
    if a.ndim < 2:
        raise LinAlgError(f"{a.ndim}-dimensional array given. The array must be at least two-dimensional")
    if a.shape[-1] != a.shape[-2]:
        raise LinAlgError("Last 2 dimensions of the array must be square")


def _common_type(a, b):
    dtype = np.promote_types(np.promote_types(a.dtype, b.dtype), np.float32)
    if dtype.char not in "fdFD":
        raise ValueError(f"dtype must be float32, float64, complex64 or complex128 (actual: {a.dtype})")
    return dtype


def posv(a, b):
    """Solve a @ x = b for Hermitian positive definite matrices, by Cholesky's factor.

    Parameters: a: array (..., n, n), of which the lower triangle is read. b: array (..., n) or (..., n, k).
    Returns: ndarray of b's shape.
    Raises: LinAlgError for what is not square, or (when the data is asked for) not positive definite.
    Source: cupyx.lapack.posv
    """
    _check_square(a)
    dtype = _common_type(a, b)
    return potrs(ad.linalg.cholesky(a.astype(dtype)), b.astype(dtype), True)


def potrs(L, b, lower):
    """Solve a @ x = b with Cholesky's factor of a.

    Parameters: L: array (..., n, n), of which one triangle is read. b: array (..., n) or (..., n, k). lower: whether that is the
    lower one.
    Returns: ndarray of b's shape.
    Raises: LinAlgError for what is not square; ValueError for shapes that do not fit.
    Source: cupyx.lapack.potrs
    Differs: b stays as it is.
    """
    from .linalg import cho_solve
    _check_square(L)
    dtype = _common_type(L, b)
    vector = b.ndim == L.ndim - 1 or b.size == L[..., 0].size and b.shape != (*L.shape[:-1], 1)
    right = b.reshape(*L.shape[:-1], 1 if vector else b.shape[-1])
    return cho_solve((L.astype(dtype, copy=False), bool(lower)), right.astype(dtype)).reshape(b.shape)
