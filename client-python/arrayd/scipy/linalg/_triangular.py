"""Triangular systems, and LU and Cholesky factors that are used again.

Systems with a triangular matrix are solved in place by the server's BLAS; those of a large one by halves.
"""
import functools
import operator

import numpy as np

import arrayd as ad

from ..._base import call

_BLOCK = 1024  # rows of a matrix that is solved by one call


def field_type(*arrays):
    """The type to compute in: float32, float64, complex64 or complex128."""
    dtype = np.result_type(*(a.dtype for a in arrays))
    return dtype if dtype.char in "fdFD" else np.dtype(np.float32 if dtype == np.float16 else np.float64)


def check_values(check_finite, *arrays):
    """The arrays; ValueError where they have to be finite and are not (waits, once). A sum that is finite says so of all
    that it is made of."""
    arrays = [ad.asarray(a) for a in arrays]
    checked = [a for a in arrays if a.dtype.kind in "fc"] if check_finite else []
    if checked and not bool(ad.isfinite(functools.reduce(operator.add, (a.sum() for a in checked)))) and not all(
            bool(ad.isfinite(a).all()) for a in checked):
        raise ValueError("array must not contain infs or NaNs")
    return arrays


def solve_triangle(a, b, lower, unit):
    """x of a @ x = b for (..., n, n) and (..., n, k), where only one triangle of a counts; unit: its diagonal is taken
    for 1. Large matrices are halved, so that products do most of the work and others get their turn."""
    dtype = field_type(a, b)
    a, b = a.astype(dtype, copy=False), b.astype(dtype, copy=False)
    n = a.shape[-1]
    if n <= _BLOCK:
        return call("solve_triangular", (a, b), (lower, unit), dtype=dtype)
    first, second = slice(0, n // 2), slice(n // 2, n)
    if not lower:
        first, second = second, first
    x = solve_triangle(a[..., first, first], b[..., first, :], lower, unit)
    y = solve_triangle(a[..., second, second], b[..., second, :] - a[..., second, first] @ x, lower, unit)
    return ad.concatenate([x, y] if lower else [y, x], axis=-2)


def solve_triangular(a, b, trans=0, lower=False, unit_diagonal=False, overwrite_b=False, check_finite=True):
    """Solve a @ x = b for a triangular a.

    Parameters: a: array (..., n, n), of which one triangle is read. b: array (..., n) or (..., n, k). trans: 0 or 'N', 1 or
        'T' (the transposed), 2 or 'C' (the adjoint). lower: bool. unit_diagonal: whether the diagonal is taken for 1.
        overwrite_b: ignored. check_finite: whether infinities and NaN are refused (waits).
    Returns: ndarray of b's shape.
    Raises: ValueError where shapes do not fit, LinAlgError for a zero on the diagonal, when the data is asked for.
    Source: scipy.linalg.solve_triangular
    """
    a, b = check_values(check_finite, a, b)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError("expected square matrix")
    if a.ndim > 2 and b.shape[:-2] != a.shape[:-2] and b.shape[:-1] != a.shape[:-2] or b.ndim == 0:
        raise ValueError(f"shapes of a {a.shape} and b {b.shape} are incompatible")
    vector = b.ndim == a.ndim - 1
    rows = b.shape[-1] if vector else b.shape[-2]
    if rows != a.shape[-1]:
        raise ValueError(f"shapes of a {a.shape} and b {b.shape} are incompatible")
    names = {"N": 0, "T": 1, "C": 2}
    trans = names.get(trans, trans)
    if trans not in (0, 1, 2):
        raise ValueError(f"trans must be 0, 1, 2, 'N', 'T' or 'C', not {trans!r}")
    if trans:
        a = ad.swapaxes(a if trans == 1 else a.conj(), -1, -2)
        lower = not lower
    x = solve_triangle(a, b[..., None] if vector else b, lower, unit_diagonal)
    return x[..., 0] if vector else x


# ---- LU ----

def _check_matrix(a, check_finite):
    a, = check_values(check_finite, a)
    if a.ndim != 2:
        raise ValueError("expected a matrix (ndim==2)")
    return a.astype(field_type(a), copy=False)


def _rows_of_pivots(pivots, rows):
    """The order of rows that exchanging them one after another gives."""
    order = list(range(rows))
    for i, j in enumerate(pivots.tolist()):
        order[i], order[j] = order[j], order[i]
    return np.array(order, np.int64)


def lu_factor(a, overwrite_a=False, check_finite=True):
    """The LU factors of a matrix with partial pivoting, for lu_solve.

    Parameters: a: array (m, n). overwrite_a: ignored. check_finite: whether infinities and NaN are refused (waits).
    Returns: tuple of ndarrays: both factors in one matrix, and the row that each one was exchanged with (int32).
    Raises: ValueError for other than two dimensions.
    Source: scipy.linalg.lu_factor
    """
    factors, pivots = call("lu", (_check_matrix(a, check_finite),))
    return factors, pivots.astype(np.int32)


def lu_solve(lu_and_piv, b, trans=0, overwrite_b=False, check_finite=True):
    """Solve a @ x = b with the factors that lu_factor gave.

    Parameters: lu_and_piv: what lu_factor gave. b: array (n,) or (n, k). trans: 0, or 1 for the transposed, 2 for the adjoint
        matrix. overwrite_b: ignored. check_finite: whether infinities and NaN are refused (waits).
    Returns: ndarray of b's shape.
    Raises: ValueError where shapes do not fit.
    Source: scipy.linalg.lu_solve
    """
    factors, pivots = lu_and_piv
    b, = check_values(check_finite, b)
    if factors.ndim != 2 or factors.shape[0] != factors.shape[1]:
        raise ValueError("expected square matrix")
    if b.ndim not in (1, 2) or b.shape[0] != factors.shape[0]:
        raise ValueError(f"Shapes of lu {factors.shape} and b {b.shape} are incompatible")
    order = _rows_of_pivots(ad.asnumpy(pivots), factors.shape[0])
    x = b.reshape(len(order), -1)
    if trans == 0:
        x = solve_triangle(factors, solve_triangle(factors, x[ad.asarray(order)], True, True), False, False)
    elif trans in (1, 2):
        turned = factors.T if trans == 1 else factors.conj().T
        x = solve_triangle(turned, solve_triangle(turned, x, True, False), False, True)
        x = x[ad.asarray(np.argsort(order))]
    else:
        raise ValueError(f"trans must be 0, 1 or 2, not {trans!r}")
    return ad.asfortranarray(x.reshape(b.shape))  # as SciPy's


def lu(a, permute_l=False, overwrite_a=False, check_finite=True, p_indices=False):
    """The LU factorisation of a matrix with partial pivoting: a = p @ l @ u.

    Parameters: a: array (m, n). permute_l: whether p @ l is given as one. overwrite_a: ignored. check_finite: whether
        infinities and NaN are refused (waits). p_indices: whether p is given as the order of l's rows.
    Returns: tuple of ndarrays: p, l, u; or p @ l and u.
    Raises: ValueError for other than two dimensions.
    Source: scipy.linalg.lu
    """
    a = _check_matrix(a, check_finite)
    m, n = a.shape
    k = min(m, n)
    factors, pivots = call("lu", (a,))
    lower = ad.tril(factors[:, :k], -1)
    lower.reshape(-1)[:k * k:k + 1] = 1
    upper = ad.triu(factors[:k])
    places = np.argsort(_rows_of_pivots(pivots.get(), m))
    if permute_l:
        return lower[ad.asarray(places)], upper
    if p_indices:
        return ad.asarray(places), lower, upper
    real = a.dtype.char.lower() if (m, n) != (1, 1) else a.dtype.char  # as SciPy has it
    permutation = ad.zeros((m, m), real)
    permutation.reshape(-1)[ad.asarray(np.arange(m) * m + places)] = 1
    return permutation, lower, upper


# ---- Cholesky ----

def cho_factor(a, lower=False, overwrite_a=False, check_finite=True):
    """The Cholesky factor of a Hermitian positive definite matrix, for cho_solve.

    Parameters: a: array (n, n), of which one triangle is read. lower: bool. overwrite_a: ignored. check_finite: whether
        infinities and NaN are refused (waits).
    Returns: tuple of ndarray and bool: the factor, whose other triangle is zero, and lower.
    Raises: ValueError where a is not square, LinAlgError where it is not positive definite, when the data is asked for.
    Source: scipy.linalg.cho_factor
    """
    a = _check_matrix(a, check_finite)
    if a.shape[0] != a.shape[1]:
        raise ValueError("Input array is expected to be square but has the shape: " + str(a.shape))
    return call("cholesky", (a,), (not lower,)), lower


def cho_solve(c_and_lower, b, overwrite_b=False, check_finite=True):
    """Solve a @ x = b with the factor that cho_factor gave.

    Parameters: c_and_lower: what cho_factor gave. b: array (n,) or (n, k). overwrite_b: ignored. check_finite: whether
        infinities and NaN are refused (waits).
    Returns: ndarray of b's shape.
    Raises: ValueError where shapes do not fit.
    Source: scipy.linalg.cho_solve
    """
    factor, lower = c_and_lower
    b, = check_values(check_finite, b)
    if factor.ndim != 2 or factor.shape[0] != factor.shape[1]:
        raise ValueError("The factored matrix c is not square.")
    if b.ndim not in (1, 2) or b.shape[0] != factor.shape[0]:
        raise ValueError(f"incompatible dimensions ({factor.shape} and {b.shape})")
    x, turned = b.reshape(b.shape[0], -1), factor.conj().T
    first, second = (factor, turned) if lower else (turned, factor)
    return solve_triangle(second, solve_triangle(first, x, True, False), False, False).reshape(b.shape)
