"""Some eigenvalues and singular values by products: Lanczos' method, restarted with what it has found."""
import numpy as np

import arrayd as ad

from ...._base import matrix_product
from ...._core import ndarray
from .._types import issparse
from ._operators import LinearOperator, aslinearoperator
from ._iterative import _multiply_inner, _norm


def _check_operator(a, what, square):
    if getattr(a, "ndim", 2) != 2 or square and a.shape[0] != a.shape[1]:
        raise ValueError(f"expected a {'square ' if square else ''}matrix (shape: {a.shape})")
    if not isinstance(a, (LinearOperator, ndarray)) and not issparse(a):
        a = ad.asarray(a)
    if a.dtype is None or a.dtype.char not in "fdFD":
        raise TypeError(f"unsupported dtype (actual: {a.dtype})")
    return aslinearoperator(a)


class _Basis:
    """An orthonormal basis on the server, the rows of V, and the products of A with it on the host, T."""

    def __init__(self, A, ncv, v0):
        self.multiply, self.n, self.ncv = A._find_function(), A.shape[0], ncv
        self.dtype = A.dtype
        self.V = ad.zeros((ncv, self.n), self.dtype)
        self.products = ad.zeros((ncv, ncv + 2), self.dtype)
        self.T = np.zeros((ncv, ncv), self.dtype)
        self.eps, self.least = float(np.finfo(self.dtype).eps), float(np.finfo(self.dtype).tiny)
        self.short = self.eps ** 0.25  # part of T's largest element; a shorter residual is not orthogonal enough
        self.generator = ad.random.default_rng(0)
        start = self._draw() if v0 is None else ad.asarray(v0).reshape(self.n).astype(self.dtype)
        self.V[0] = start / _norm(start)

    def _draw(self):
        x = self.generator.standard_normal(self.n)
        return (x + 1j * self.generator.standard_normal(self.n) if self.dtype.kind == "c" else x).astype(self.dtype)

    def _subtract(self, w, size):
        """A row without its parts in the space of the first vectors, and these parts."""
        basis = self.V[:size]
        h = matrix_product(w, (basis.conj() if self.dtype.kind == "c" else basis).T)
        return w - matrix_product(h, basis), h

    def _orthogonalise(self, w, size):
        """As _subtract, twice; and the length of what is left."""
        w, h = self._subtract(w.reshape(1, self.n), size)
        w, more = self._subtract(w, size)
        return w, h + more, _norm(w[0])

    def extend(self, first):
        """Extend from `first` vectors to all; the norm of the residual and the residual itself.

        All steps are sent before any is waited for. Where one meets an invariant subspace, or all but does, the steps
        behind it are taken again; in the first case one by one.
        """
        size, w, ahead = 0.0, None, self.ncv
        while first < self.ncv:
            columns = range(first, min(first + ahead, self.ncv))
            for j, w, products in zip(columns, self._take_steps(columns), self.products[first:columns.stop].get()):
                size = self._record(j, products, j > columns.start)
                first = j + 1
                if size > self.short * np.abs(self.T[:first, :first]).max():
                    continue
                if size:
                    w, _, length = self._orthogonalise(w, first)
                    w = w / length
                else:
                    w, ahead = self._another(first), 1
                if first < self.ncv:
                    self.V[first] = w
                break
        return size, w

    def _take_steps(self, columns):
        """Add the vectors behind these, the residuals of length 1, which are returned. Their products with the basis, lengths
        and, but for the first one, products with the vector before are rows of the products.

        All but the first residual have large products with the last two vectors alone. Where these are subtracted
        before, one subtraction of the others is enough.
        """
        made, length = [], None
        for j in columns:
            w = self.multiply(self.V[j]).reshape(1, self.n)
            if length is None:
                w, h, length = self._orthogonalise(w, j + 1)
            else:
                w = w - length * self.V[j - 1]
                alpha = _multiply_inner(self.V[j], w[0])
                w, h = self._subtract(w - alpha * self.V[j], j + 1)
                length = _norm(w[0])
                self.products[j, -1] = alpha
            w = w / ad.maximum(length, self.least)
            if j + 1 < self.ncv:
                self.V[j + 1] = w
            self.products[j, :j + 1], self.products[j, j + 1] = h, length
            made.append(w)
        return made

    def _record(self, j, products, follows):
        """Enter the products into T. Returns the length of the residual, 0 if that is nothing but rounding errors.

        follows: whether the products with the last two vectors are what is missing in those that have been found before.
        """
        h, size = products[:j + 1], float(products[j + 1].real)
        if follows:
            h[j - 1] += self.size
            h[j] += products[-1]
        self.size = size
        self.T[:j + 1, j] = h
        self.T[j, :j + 1] = h.conj()
        return 0.0 if size <= self.eps * max(1.0, float(np.abs(self.T[:j + 1, :j + 1]).max())) * 10 else size

    def _another(self, size):
        """A direction that is not in the first vectors: these are an invariant subspace."""
        if size >= self.n:
            return ad.zeros(self.n, self.dtype)
        w, _, length = self._orthogonalise(self._draw(), size)
        return w / length

    def restart(self, values, vectors, w):
        """Keep these Ritz vectors alone, and go on with w."""
        kept = len(values)
        self.V[:kept] = matrix_product(ad.asarray(np.ascontiguousarray(vectors.T.astype(self.dtype))), self.V)
        self.V[kept] = w
        self.T[...] = 0
        self.T[np.arange(kept), np.arange(kept)] = values

    def combine(self, vectors):
        """Sums of the basis by columns of factors, as columns."""
        return matrix_product(self.V.T, ad.asarray(vectors.astype(self.dtype)))


def _choose(values, count, which):
    """The indices of those that are wanted, by ascending value."""
    if which == "LA":
        return np.arange(len(values) - count, len(values))
    if which == "SA":
        return np.arange(count)
    return np.sort(np.argsort(np.abs(values), kind="stable")[len(values) - count:])


def eigsh(a, k=6, *, which="LM", v0=None, ncv=None, maxiter=None, tol=0, return_eigenvectors=True):
    """Some eigenvalues, and eigenvectors, of a Hermitian matrix.

    Parameters: a: dense or sparse matrix, or LinearOperator. k: int, how many. which: 'LM' (largest magnitude), 'LA'
        (largest) or 'SA' (smallest). v0: vector to begin with. ncv: int, vectors of the basis. maxiter: int, restarts,
        10*n unless given. tol: relative accuracy, 0 for all there is. return_eigenvectors: bool.
    Returns: tuple of ndarrays: values, ascending, and vectors as columns; or the values.
    Raises: ValueError for another k or which, TypeError for other than floating types.
    Source: scipy.sparse.linalg.eigsh
    """
    A = _check_operator(a, "eigsh", True)
    n = A.shape[0]
    if k <= 0:
        raise ValueError(f"k must be greater than 0 (actual: {k})")
    if k >= n:
        raise ValueError(f"k must be smaller than n (actual: {k})")
    if which not in ("LM", "LA", "SA"):
        raise ValueError(f"which must be 'LM','LA' or 'SA' (actual: {which})")
    ncv = min(n, max(2 * k, k + 32)) if ncv is None else min(max(ncv, k + 1), n)
    basis = _Basis(A, ncv, v0)
    limit = n * 10 if maxiter is None else maxiter
    tolerance = (tol or basis.eps)
    values, vectors = _run_lanczos(basis, k, which, limit, tolerance)
    result = ad.asarray(values.astype(basis.dtype.char.lower()))
    if not return_eigenvectors:
        return result
    return result, basis.combine(vectors)


def _run_lanczos(basis, k, which, limit, tolerance):
    first = 0
    for step in range(limit + 1):
        size, w = basis.extend(first)
        values, vectors = np.linalg.eigh(basis.T.astype(np.promote_types(basis.dtype, np.float64)))
        chosen = _choose(values, k, which)
        errors = size * np.abs(vectors[-1, chosen])
        # Rounding errors are a part of the largest value, so no residual becomes smaller than that.
        attainable = 8 * basis.eps * np.abs(values).max()
        wanted = np.maximum(attainable, tolerance * np.maximum(np.abs(values[chosen]), basis.eps ** (2 / 3)))
        if step == limit or basis.ncv == basis.n or (errors <= wanted).all():
            break
        kept = _choose(values, min(basis.ncv - 1, max(k + 1, (k + basis.ncv) // 2)), which)
        basis.restart(values[kept], vectors[:, kept], w)
        first = len(kept)
    return values[chosen], vectors[:, chosen]


def svds(a, k=6, *, ncv=None, tol=0, which="LM", maxiter=None, return_singular_vectors=True):
    """The largest singular values, and vectors, of a matrix.

    Parameters: a: dense or sparse matrix, or LinearOperator. k: int, how many. ncv: int, vectors of the basis. tol:
        relative accuracy, 0 for all there is. which: 'LM'. maxiter: int, restarts. return_singular_vectors: bool.
    Returns: tuple of ndarrays: u, s (ascending) and vh; or s.
    Raises: ValueError for another k or which, TypeError for other than floating types.
    Source: scipy.sparse.linalg.svds
    """
    A = _check_operator(a, "svds", False)
    m, n = A.shape
    if k <= 0:
        raise ValueError(f"k must be greater than 0 (actual: {k})")
    if k >= min(m, n):
        raise ValueError(f"k must be smaller than min(m, n) (actual: {k})")
    if which != "LM":
        raise ValueError(f"which must be 'LM' (actual: {which})")
    # A^H A, or A A^H where that is smaller: its eigenvectors are one side's vectors.
    tall = m >= n
    first, second = A._find_function(), A.H._find_function()
    first, second = (first, second) if tall else (second, first)
    inner = LinearOperator((min(m, n),) * 2, dtype=A.dtype, matvec=lambda x: second(first(x)))
    _, V = eigsh(inner, k=k, which="LM", ncv=ncv, maxiter=maxiter, tol=tol)
    V = ad.linalg.qr(V)[0]
    product = A.matmat(V) if tall else A.rmatmat(V)
    u, s, vh = ad.linalg.svd(product, full_matrices=False)
    u, s, vh = u[:, ::-1], s[::-1], vh[::-1]
    if not return_singular_vectors:
        return s
    other = V @ vh.conj().T
    return (u, s, other.conj().T) if tall else (other, s, u.conj().T)
