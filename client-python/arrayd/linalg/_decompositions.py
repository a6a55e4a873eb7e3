"""Decompositions of matrices and what is solved by them: numpy.linalg's functions, on stacks of matrices.

Whether a matrix is singular, not positive definite, or has no decomposition that is found, only its elements tell: the
LinAlgError comes when a result is fetched, or at the call within cupyx.errstate(linalg="raise"). float16 and bfloat16 are refused, other types become float64.
"""
import builtins
import threading
from typing import NamedTuple

import numpy as np

from .. import _base, _core
from .._base import as_array, call, reduce
from .._math.products import dot, matmul, norm
from .._array.manipulation import matrix_transpose

LinAlgError = _core.LinAlgError


class EigResult(NamedTuple):
    """The result of eig."""

    eigenvalues: object
    eigenvectors: object


class EighResult(NamedTuple):
    """The result of eigh."""

    eigenvalues: object
    eigenvectors: object


class QRResult(NamedTuple):
    """The result of qr."""

    Q: object
    R: object


class SlogdetResult(NamedTuple):
    """The result of slogdet."""

    sign: object
    logabsdet: object


class SVDResult(NamedTuple):
    """The result of svd."""

    U: object
    S: object
    Vh: object


def _field(*arrays):
    """The type to compute in: float32, float64, complex64 or complex128."""
    double = imaginary = False
    for a in arrays:
        if a.dtype.name in ("float16", "bfloat16"):
            raise TypeError(f"array type {a.dtype.name} is unsupported in linalg")
        imaginary |= a.dtype.kind == "c"
        double |= a.dtype not in (np.float32, np.complex64)
    if imaginary:
        return np.dtype(np.complex128 if double else np.complex64)
    return np.dtype(np.float64 if double else np.float32)


def _matrices(a):
    a = as_array(a)
    if a.ndim < 2:
        raise LinAlgError(f"{a.ndim}-dimensional array given. Array must be at least two-dimensional")
    return a


def _squares(a):
    a = _matrices(a)
    if a.shape[-1] != a.shape[-2]:
        raise LinAlgError("Last 2 dimensions of the array must be square")
    return a


_here = threading.local()


def wait_for_errors(wait):
    """Whether this thread's calls wait for what they compute, to raise its errors themselves; returns what was so."""
    before = getattr(_here, "wait", False)
    _here.wait = wait
    return before


def _run(name, arrays, params=(), dtype=None):
    results = call(name, arrays, params, dtype=_field(*arrays) if dtype is None else dtype)
    if getattr(_here, "wait", False):
        for one in results if isinstance(results, tuple) else (results,):
            one.reshape(-1)[:1].get()
    return results


def _conjugate(a):
    return _core.ufuncs["conjugate"](a) if a.dtype.kind == "c" else a


def _select(condition, x, y):
    from .._array.indexing import where
    return where(condition, x, y)


def cholesky(a, /, *, upper=False):
    """Triangular factor of Hermitian positive definite matrices; only one of their triangles is looked at.

    Parameters: a: array of shape (..., M, M). upper: the factor u with u^H u = a, instead of l with l l^H = a.
    Returns: ndarray of a's shape.
    Raises: LinAlgError when a is not square; when the result is fetched, where a matrix is not positive definite.
    Source: numpy.linalg.cholesky
    """
    return _run("cholesky", (_squares(a),), (builtins.bool(upper),))


def qr(a, mode="reduced"):
    """Factors q, with orthonormal columns, and r, upper triangular.

    Parameters: a: array of shape (..., M, N). mode: 'reduced' (q has min(M, N) columns), 'complete' (M), 'r' (only
    r) or 'raw' (what geqrf of LAPACK leaves).
    Returns: QRResult (Q, R); the ndarray r; or for 'raw' the tuple (h, tau), h of shape (..., N, M) with the reflectors.
    Raises: ValueError for another mode; LinAlgError for fewer than 2 dimensions.
    Source: numpy.linalg.qr
    """
    if mode == "raw":
        return _run("qr_raw", (_matrices(a),))
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f"Unrecognized mode '{mode}'")
    q, r = _run("qr", (_matrices(a),), (mode == "complete",))
    return r if mode == "r" else QRResult(q, r)


def svd(a, full_matrices=True, compute_uv=True, hermitian=False):
    """Singular value decomposition: a = (U * S) @ Vh.

    Parameters: a: array of shape (..., M, N). full_matrices: U is M by M and Vh is N by N, instead of M by K and K by N
    with K = min(M, N). compute_uv: False gives only S. hermitian: a is Hermitian, which allows for a faster method.
    Returns: SVDResult (U, S, Vh), or the ndarray S; S is real and descending.
    Raises: LinAlgError for fewer than 2 dimensions; when a result is fetched, where it did not converge.
    Source: numpy.linalg.svd
    """
    if hermitian:
        return _svd_hermitian(_squares(a), compute_uv)
    a = _matrices(a)
    if not compute_uv:
        return _run("svdvals", (a,))
    return SVDResult(*_run("svd", (a,), (builtins.bool(full_matrices),)))


def _svd_hermitian(a, compute_uv):
    """Eigenvalues without their signs, which go to the right vectors."""
    from .._array.indexing import take_along_axis
    if not compute_uv:
        return call("sort", (_core.ufuncs["absolute"](eigvalsh(a)),), (a.ndim - 2,))[..., ::-1]
    values, vectors = eigh(a)
    size = _core.ufuncs["absolute"](values)
    order = call("argsort", (size,), (values.ndim - 1,))[..., ::-1]
    sign = _core.ufuncs["copysign"](1.0, take_along_axis(values, order, -1))
    u = take_along_axis(vectors, order[..., None, :], -1)
    return SVDResult(u, take_along_axis(size, order, -1), _conjugate(matrix_transpose(u * sign[..., None, :])))


def svdvals(x, /):
    """Singular values, descending.

    Parameters: x: array of shape (..., M, N).
    Returns: real ndarray of shape (..., min(M, N)).
    Raises: LinAlgError for fewer than 2 dimensions; when the result is fetched, where it did not converge.
    Source: numpy.linalg.svdvals
    """
    return svd(x, compute_uv=False)


def _triangle(UPLO):
    name = UPLO.upper()
    if name not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    return name == "U"


def eigh(a, UPLO="L"):
    """Eigenvalues and eigenvectors of Hermitian matrices.

    Parameters: a: array of shape (..., M, M). UPLO: which triangle is looked at, 'L'ower or 'U'pper.
    Returns: EighResult (eigenvalues, eigenvectors): ascending, and as columns.
    Raises: ValueError for another UPLO; LinAlgError when a is not square; when a result is fetched, where it did not
    converge.
    Source: numpy.linalg.eigh
    """
    upper = _triangle(UPLO)
    return EighResult(*_run("eigh", (_squares(a),), (upper,)))


def eigvalsh(a, UPLO="L"):
    """Eigenvalues of Hermitian matrices, ascending.

    Parameters: a: array of shape (..., M, M). UPLO: which triangle is looked at, 'L'ower or 'U'pper.
    Returns: real ndarray of shape (..., M).
    Raises: as eigh.
    Source: numpy.linalg.eigvalsh
    """
    upper = _triangle(UPLO)
    return _run("eigvalsh", (_squares(a),), (upper,))


def _real_of_none(values, a):
    """values, real where there are none and a is real, too: NumPy before 2.5 and CuPy find no imaginary part there."""
    return values.real if not a.size and a.dtype.kind != "c" else values


def eig(a):
    """Eigenvalues and eigenvectors of any square matrices. For Hermitian ones eigh is faster and more precise.

    Parameters: a: array of shape (..., M, M).
    Returns: EigResult (eigenvalues, eigenvectors), both complex: in no particular order, and as columns of length 1. Where
    a is real and has no elements they are real.
    Differs: from NumPy before 2.5, which gives real arrays where no eigenvalue has an imaginary part (as CuPy).
    Raises: LinAlgError when a is not square; when a result is fetched, where it did not converge.
    Source: numpy.linalg.eig
    """
    a = _squares(a)
    return EigResult(*(_real_of_none(part, a) for part in _run("eig", (a,))))


def eigvals(a):
    """Eigenvalues of any square matrices.

    Parameters: a: array of shape (..., M, M).
    Returns: complex ndarray of shape (..., M), in no particular order.
    Differs: as eig.
    Raises: as eig.
    Source: numpy.linalg.eigvals
    """
    a = _squares(a)
    return _real_of_none(_run("eigvals", (a,)), a)


def solve(a, b):
    """x with a @ x = b.

    Parameters: a: array of shape (..., M, M). b: array of shape (M,), a vector for all of a's matrices, or (..., M, K).
    Returns: ndarray of shape (..., M) for 1-d b, else (..., M, K).
    Raises: ValueError when sizes do not fit; LinAlgError when a is not square; when the result is fetched, where a
    matrix is singular.
    Source: numpy.linalg.solve
    """
    a, b = _squares(a), as_array(b)
    kind = _field(a, b)
    rows = b.shape[-2] if b.ndim > 1 else b.shape[0] if b.ndim else None
    signature = "(m,m),(m,n)->(m,n)" if b.ndim > 1 else "(m,m),(m)->(m)"
    if rows is None:
        raise ValueError("solve: Input operand 1 does not have enough dimensions (has 0, gufunc core with signature "
                         "(m,m),(m,n)->(m,n) requires 2)")
    if rows != a.shape[-1]:
        raise ValueError("solve: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature "
                         f"{signature} (size {rows} is different from {a.shape[-1]})")
    if b.ndim == 1:
        return _run("solve", (a, b[:, None]), dtype=kind)[..., 0]
    return _run("solve", (a, b), dtype=kind)


def inv(a):
    """Inverses.

    Parameters: a: array of shape (..., M, M).
    Returns: ndarray of a's shape.
    Raises: LinAlgError when a is not square; when the result is fetched, where a matrix is singular.
    Source: numpy.linalg.inv
    """
    return _run("inv", (_squares(a),))


def slogdet(a):
    """Sign and logarithm of determinants.

    Parameters: a: array of shape (..., M, M).
    Returns: SlogdetResult (sign, logabsdet): 0 and -inf for a singular matrix; a complex sign has the size 1.
    Raises: LinAlgError when a is not square.
    Source: numpy.linalg.slogdet
    """
    return SlogdetResult(*_run("slogdet", (_squares(a),)))


def det(a):
    """Determinants.

    Parameters: a: array of shape (..., M, M).
    Returns: ndarray of shape (...).
    Raises: LinAlgError when a is not square.
    Source: numpy.linalg.det
    """
    sign, size = slogdet(a)
    return sign * _core.ufuncs["exp"](size)


def lstsq(a, b, rcond=None):
    """x for which the norm of b - a @ x is the least, and among these the shortest. Costs a round trip.

    Parameters: a: array of shape (M, N). b: array of shape (M,) or (M, K). rcond: the part of the largest singular
    value below which one is taken for 0; unless given, the type's precision times max(M, N).
    Returns: tuple (x, the sums of squared residuals, empty where a's rank is below N or M <= N, the rank (numpy.int32), the
    singular values of a).
    Raises: LinAlgError for other shapes, or where the singular values did not converge.
    Source: numpy.linalg.lstsq
    """
    a, b = as_array(a), as_array(b)
    sides = b[:, None] if b.ndim == 1 else b
    for one in (a, sides):
        if one.ndim != 2:
            raise LinAlgError(f"{one.ndim}-dimensional array given. Array must be two-dimensional")
    m, n = a.shape
    if m != sides.shape[0]:
        raise LinAlgError("Incompatible dimensions")
    kind = _field(a, b)
    if rcond is None:
        rcond = float(np.finfo(kind).eps) * builtins.max(n, m)
    x, rank, values = _run("lstsq", (a, sides), (float(rcond),), kind)
    rank = np.int32(int(rank))
    if rank == n and m > n:
        size = _core.ufuncs["absolute"](sides.astype(kind) - matmul(a.astype(kind), x))
        residuals = reduce("sum", size * size, 0)
    else:
        residuals = _base.zeros((0,), values.dtype)
    return x[:, 0] if b.ndim == 1 else x, residuals, rank, values


def pinv(a, rcond=None, hermitian=False, *, rtol=_base.no_value):
    """Pseudo-inverses, by singular values. float32 and complex64 are computed in double precision.

    Parameters: a: array of shape (..., M, N). rcond, rtol: number or array of shape (...), the part of the largest
    singular value below which one is taken for 0: rcond is 1e-15 unless given, rtol=None the type's precision times
    max(M, N). hermitian: a is Hermitian.
    Returns: ndarray of shape (..., N, M).
    Raises: ValueError for both rcond and rtol; LinAlgError as svd.
    Source: numpy.linalg.pinv
    """
    a = _matrices(a)
    if rcond is not None and rtol is not _base.no_value:
        raise ValueError("`rtol` and `rcond` can't be both set.")
    kind = _field(a)
    if rcond is None:
        rcond = 1e-15 if rtol is _base.no_value else rtol
    if rcond is None:
        rcond = builtins.max(a.shape[-2:]) * float(np.finfo(kind).eps)
    if 0 in a.shape[-2:]:
        return _base.zeros(a.shape[:-2] + (a.shape[-1], a.shape[-2]), a.dtype)
    wide = np.complex128 if kind.kind == "c" else np.float64
    u, s, vh = svd(_conjugate(a.astype(wide)), False, hermitian=hermitian)
    cutoff = rcond * s[..., :1] if _base.is_scalar(rcond) else as_array(rcond)[..., None] * s[..., :1]
    large = s > cutoff
    inverse = _select(large, 1.0 / _select(large, s, 1.0), 0.0)
    return matmul(matrix_transpose(vh), inverse[..., None] * matrix_transpose(u)).astype(kind)


def matrix_rank(A, tol=None, hermitian=False, *, rtol=None):
    """Ranks: how many singular values are above a threshold.

    Parameters: A: array of shape (..., M, N), or (N,) or (): whether it is not zero. tol: the threshold. hermitian: A
    is Hermitian. rtol: the threshold as a part of the largest singular value, the type's precision times max(M, N)
    unless given.
    Returns: int64 ndarray of shape (...).
    Raises: ValueError for both tol and rtol; LinAlgError as svd.
    Source: numpy.linalg.matrix_rank
    """
    if rtol is not None and tol is not None:
        raise ValueError("`tol` and `rtol` can't be both set.")
    A = as_array(A)
    if A.ndim < 2:
        return reduce("any", A != 0).astype(np.int64)
    s = svd(A, compute_uv=False, hermitian=hermitian)
    if tol is not None:
        tol = tol if _base.is_scalar(tol) else as_array(tol)[..., None]
    elif s.shape[-1] == 0:
        tol = 0.0
    else:
        part = builtins.max(A.shape[-2:]) * float(np.finfo(s.dtype).eps) if rtol is None else rtol
        tol = s[..., :1] * (part if _base.is_scalar(part) else as_array(part)[..., None])
    return reduce("sum", (s > tol).astype(np.int64), -1)


def cond(x, p=None):
    """Condition numbers: of the 2-norm by singular values, of others by the inverse; inf for a singular matrix.

    Parameters: x: array of shape (..., M, N), square unless p is None, 2 or -2. p: norm's ord.
    Returns: real ndarray of shape (...).
    Raises: LinAlgError for an empty x or another shape, or as svd.
    Source: numpy.linalg.cond
    """
    x = as_array(x)
    if x.size == 0 and 0 in x.shape[-2:]:
        raise LinAlgError("cond is not defined on empty arrays")
    if p is None or p in (2, -2):
        s = svd(x, compute_uv=False)
        result = s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
        return _select(_core.ufuncs["isnan"](result), np.inf, result).astype(result.dtype)
    from .._array.grids import eye
    from .._array.indexing import diagonal
    x = _squares(x)
    x = x.astype(_field(x))
    factors, _ = _run("lu", (x,))
    singular = reduce("any", diagonal(factors, 0, -2, -1) == 0, -1)
    safe = _select(singular[..., None, None], eye(x.shape[-1], dtype=x.dtype), x)
    result = norm(x, p, (-2, -1)) * norm(inv(safe), p, (-2, -1))
    return _select(singular, np.inf, result).astype(result.dtype)


def tensorsolve(a, b, axes=None):
    """x with tensordot(a, x, x.ndim) = b.

    Parameters: a: array of shape b.shape + Q, whose product is that of Q. b: array. axes: axes of a to move to its end.
    Returns: ndarray of shape Q.
    Raises: LinAlgError when sizes do not fit; as solve.
    Source: numpy.linalg.tensorsolve
    """
    a, b = as_array(a), as_array(b)
    if axes is not None:
        order = list(range(a.ndim))
        for axis in axes:
            order.remove(axis)
            order.insert(a.ndim, axis)
        a = a.transpose(order)
    shape = a.shape[-(a.ndim - b.ndim):]
    size = _base.product(shape)
    if a.size != size**2:
        raise LinAlgError("Input arrays must satisfy the requirement prod(a.shape[b.ndim:]) == prod(a.shape[:b.ndim])")
    return solve(a.reshape(size, size), b.reshape(-1)).reshape(shape)


def tensorinv(a, ind=2):
    """The inverse of a tensor, for tensordot over its last axes.

    Parameters: a: array. ind: how many of its first axes are the rows.
    Returns: ndarray of shape a.shape[ind:] + a.shape[:ind].
    Raises: ValueError for ind below 1; LinAlgError as inv.
    Source: numpy.linalg.tensorinv
    """
    a = as_array(a)
    if ind <= 0:
        raise ValueError("Invalid ind argument.")
    return inv(a.reshape(_base.product(a.shape[ind:]), -1)).reshape(a.shape[ind:] + a.shape[:ind])


def multi_dot(arrays, *, out=None):
    """The product of several matrices, in the order that costs the least.

    Parameters: arrays: sequence of 2-d arrays; the first and the last may be 1-d. out: array to fill.
    Returns: ndarray.
    Raises: ValueError for fewer than two arrays or sizes that do not fit; LinAlgError for other dimensions.
    Source: numpy.linalg.multi_dot
    """
    arrays = [as_array(a) for a in arrays]
    if len(arrays) < 2:
        raise ValueError("Expecting at least two arrays.")
    first, last = arrays[0].ndim == 1, arrays[-1].ndim == 1
    if first:
        arrays[0] = arrays[0][None]
    if last:
        arrays[-1] = arrays[-1][:, None]
    for a in arrays:
        if a.ndim != 2:
            raise LinAlgError(f"{a.ndim}-dimensional array given. Array must be two-dimensional")
    result = _product(arrays, _splits([a.shape[0] for a in arrays] + [arrays[-1].shape[1]]), 0, len(arrays) - 1)
    if first or last:
        result = result.reshape(() if first and last else (-1,))
    return _base.give_product(result, out)


def _splits(sizes):
    """Where to split each part of a product; part (i, j) costs the least when split after matrix splits[i, j]."""
    n = len(sizes) - 1
    cost, splits = {(i, i): 0 for i in range(n)}, {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i, j], splits[i, j] = builtins.min(
                (cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j))
    return splits


def _product(arrays, splits, i, j):
    if i == j:
        return arrays[i]
    k = splits[i, j]
    return dot(_product(arrays, splits, i, k), _product(arrays, splits, k + 1, j))
