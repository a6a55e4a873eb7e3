"""LOBPCG: some extreme eigenvalues of a Hermitian pencil, by blocks of vectors and a preconditioner.

Vectors are rows on the server. An iteration waits once: for the inner products of all vectors, of which the host finds the
best combinations, and for the norms of the residuals.
"""
import numpy as np

import arrayd as ad

from ...._base import call, matrix_product
from ._operators import aslinearoperator


def _apply(A, X):
    return X if A is None else A.matmat(X)


def _operator(A):
    if A is None:
        return None
    return aslinearoperator(ad.asarray(A) if isinstance(A, np.ndarray) else A)


def _adjoint(X):
    return X.T.conj() if X.dtype.kind == "c" else X.T


def _orthonormalise(X, BX):
    """Rows X, and B X, times what makes X B X^H the identity; reading them raises LinAlgError where rows are dependent."""
    factor = call("cholesky", (matrix_product(X, _adjoint(BX)),), (False,))
    made = call("solve_triangular", (factor, X), (True, False))
    return made, made if BX is X else call("solve_triangular", (factor, BX), (True, False))


class _Constraints:
    """Vectors that those that are sought are to be orthogonal to."""

    def __init__(self, B, Y):
        BY = _apply(B, Y)
        factor = np.linalg.inv((_adjoint(Y) @ BY).get())
        self.turned, self.adjoint = (Y @ ad.asarray(factor.astype(Y.dtype))).T, BY.conj()

    def apply(self, X):
        """Rows without their parts in the space of Y."""
        return X - matrix_product(matrix_product(X, self.adjoint), self.turned)


def _hermitian(a):
    """The Hermitian part of a small matrix, as rounding leaves it less than Hermitian."""
    return (a + a.conj().T) / 2


def _solve_pencil(gram_a, gram_b, count, largest):
    """The wanted eigenvalues and vectors of a small pencil. LinAlgError."""
    factor = np.linalg.inv(np.linalg.cholesky(_hermitian(gram_b)))
    values, vectors = np.linalg.eigh(factor @ _hermitian(gram_a) @ factor.conj().T)
    vectors = factor.conj().T @ vectors
    order = slice(None, None, -1) if largest else slice(None)
    return values[order][:count], vectors[:, order][:, :count]


def _solve_dense(A, B, X, Y, largest):
    """Values and vectors of a problem that is too small for blocks of vectors: by dense matrices on the host."""
    n, k = X.shape
    identity = ad.eye(n, dtype=X.dtype)
    a, b = (_apply(M, identity).get() if M is not None else np.eye(n) for M in (A, B))
    if Y is None:
        return _solve_pencil(a, b, k, largest)
    y = Y.get()
    space = np.linalg.svd((b @ y).conj().T)[2][y.shape[1]:].conj().T
    values, vectors = _solve_pencil(space.conj().T @ a @ space, space.conj().T @ b @ space, k, largest)
    return values, space @ vectors


def lobpcg(A, X, B=None, M=None, Y=None, tol=None, maxiter=None, largest=True, verbosityLevel=0, retLambdaHistory=False,
           retResidualNormsHistory=False, restartControl=20):
    """Some of the largest, or smallest, eigenvalues of A x = lambda B x by LOBPCG.

    Parameters: A: Hermitian matrix, dense or sparse, or LinearOperator. X: array of shape (n, k), a first guess. B:
        positive definite, the identity unless given. M: preconditioner. Y: vectors that the result is orthogonal to.
        tol: of the residuals' norms, n*sqrt(eps) unless given. maxiter: int, 20 unless given. largest: bool.
        verbosityLevel, restartControl: ignored. retLambdaHistory, retResidualNormsHistory: whether what each iteration
        had is given, too.
    Returns: tuple: values, vectors (n, k), and the histories that are asked for.
    Raises: ValueError for an X of other than two dimensions.
    Source: scipy.sparse.linalg.lobpcg
    """
    X = ad.asarray(X)
    if X.ndim != 2:
        raise ValueError("expected rank-2 array for argument X")
    X = X.astype(np.result_type(X.dtype, np.float32), copy=False)
    A, B, M = _operator(A), _operator(B), _operator(M)
    n, k = X.shape
    if n - (0 if Y is None else Y.shape[1]) < 5 * k:
        values, vectors = _solve_dense(A, B, X, None if Y is None else ad.asarray(Y), largest)
        return ad.asarray(values), ad.asarray(vectors).astype(X.dtype)
    tol = np.sqrt(1e-15) * n if tol is None else tol
    return _iterate(A, B, M, X, Y, tol, 20 if maxiter is None else maxiter, largest, retLambdaHistory,
                    retResidualNormsHistory)


class _Subspace:
    """The span of X, of the last directions P and of the residuals W, which are preconditioned: rows of T, in this order.

    T has S, A S and, with a B, B S, each with room for 3 k rows. kept: those of X and P alone, which stay good where W is
    dependent and T cannot be read. values: the host's, of X. directions: whether P is there. active: the numbers of the
    vectors whose residuals have not been small so far.
    """

    def __init__(self, A, B, M, constraints, X):
        self.A, self.B, self.M, self.constraints = A, B, M, constraints
        self.k, n = X.shape
        self.T = ad.zeros((2 if B is None else 3, 3 * self.k, n), X.dtype)
        self.least = float(np.finfo(X.dtype).tiny)
        self.active, self.directions = np.arange(self.k), False
        self._place(slice(0, self.k), *_orthonormalise(X, self._multiply(B, X)))

    def _multiply(self, A, X):
        return X if A is None else A.matmat(X.T).T

    def _place(self, rows, X, BX):
        self.T[0, rows], self.T[1, rows] = X, self._multiply(self.A, X)
        if self.B is not None:
            self.T[2, rows] = BX

    def measure(self, rows):
        """S^H A S and S^H B S of the first rows. Sent, and not waited for."""
        S = self.T[0, :rows]
        return matrix_product(S.conj() if S.dtype.kind == "c" else S, self.T[:, :rows].swapaxes(1, 2))

    def combine(self, values, factors):
        """Let the first rows be sums of rows; factors: those of each row of the result."""
        count, rows = factors.shape
        sent = np.zeros((count + 1, max(rows, self.k)), self.T.dtype)
        sent[:count, :rows], sent[count, :self.k] = factors, values
        sent = ad.asarray(sent)
        self.T[:, :count] = self.kept = matrix_product(sent[:count, :rows], self.T[:, :rows])
        self.values, self.sent = values, sent[count, :self.k].reshape(-1, 1)

    def forget_residuals(self):
        """Begin a new T, as one that cannot be read stays so."""
        self.T = ad.zeros(self.T.shape, self.T.dtype)
        self.T[:, :self.kept.shape[1]] = self.kept

    def residuals(self):
        """The rows A X - B X values, and their norms."""
        R = self.kept[1, :self.k] - self.kept[0 if self.B is None else 2, :self.k] * self.sent
        return R, ad.sqrt(((R * R) if R.dtype.kind == "f" else abs(R) ** 2).sum(axis=1))

    def add_residuals(self, R, norms):
        """Set W: orthogonal to X, and of length 1."""
        k, active = self.k, self.active
        if len(active) < k:
            R, norms = R[active], norms[active]
        W = R / ad.maximum(norms, self.least).reshape(-1, 1)
        if self.M is not None:
            W = self._multiply(self.M, W).astype(self.T.dtype, copy=False)
        W = W if self.constraints is None else self.constraints.apply(W)
        X, BX = self.kept[0, :k], self.kept[0 if self.B is None else 2, :k]
        W = W - matrix_product(matrix_product(W, _adjoint(BX)), X)
        self._place(slice(2 * k, 2 * k + len(active)), *_orthonormalise(W, self._multiply(self.B, W)))

    def fetch(self, norms):
        """Norms of the residuals, and the inner products of S with A S and B S, as measure has them. Waits. LinAlgError
        where W's rows are dependent."""
        rows = 2 * self.k + len(self.active)
        products = self.measure(rows)
        both = ad.concatenate([products.reshape(-1), norms.astype(self.T.dtype, copy=False)]).get()
        return both[-self.k:].real, both[:-self.k].reshape(-1, rows, rows)

    def improve(self, products, left, largest):
        """Take the best vectors of the span for X, and for P what those that are left have of the others. LinAlgError where
        the span's vectors are dependent even without P."""
        k, rows = self.k, products.shape[1]
        wide = products.astype(np.promote_types(products.dtype, np.float64))
        gram_a, gram_b = (_hermitian(wide[i]) for i in (1, 0 if self.B is None else 2))
        for directions in (True, False) if self.directions else (False,):
            chosen = np.concatenate([np.arange(k), k + self.active if directions else self.active[:0], np.arange(2 * k, rows)])
            try:
                values, C = _solve_pencil(gram_a[np.ix_(chosen, chosen)], gram_b[np.ix_(chosen, chosen)], k, largest)
                break
            except np.linalg.LinAlgError:
                if not directions:
                    raise
        whole = np.zeros((rows, k), C.dtype)
        whole[chosen] = C
        self.combine(values, np.concatenate([whole, self._find_directions(whole, left, gram_b)], axis=1).T)

    def _find_directions(self, whole, left, gram_b):
        """Factors of what vectors that are left have of other rows than X, made orthonormal; zeros for other vectors, and
        where that is not possible."""
        found, rest = np.zeros_like(whole), whole[:, left]
        rest[:self.k] = 0
        try:
            inverse = np.linalg.inv(np.linalg.cholesky(_hermitian(rest.conj().T @ gram_b @ rest)))
            self.directions, found[:, left] = True, rest @ inverse.conj().T
        except np.linalg.LinAlgError:
            self.directions = False
        return found


def _iterate(A, B, M, X, Y, tol, maxiter, largest, keep_values, keep_norms):
    X = X.astype(np.result_type(X.dtype, *(one.dtype for one in (A, B, M) if one is not None and one.dtype is not None)),
                 copy=False)
    constraints = None if Y is None else _Constraints(B, ad.asarray(Y).astype(X.dtype, copy=False))
    X = ad.ascontiguousarray(X.T)
    s = _Subspace(A, B, M, constraints, X if constraints is None else constraints.apply(X))
    try:
        values, C = np.linalg.eigh(_hermitian(s.measure(s.k)[1].get()))
    except np.linalg.LinAlgError:
        raise ValueError("Linearly dependent initial approximations") from None
    order = slice(None, None, -1) if largest else slice(None)
    s.combine(values[order], C[:, order].T)
    history, sizes = [s.values], []
    for _ in range(maxiter):
        try:
            size = _take_step(s, tol, largest)
        except np.linalg.LinAlgError:
            break
        sizes.append(size)
        if s.active.size == 0:
            break
        history.append(s.values)
    history.append(s.values)
    kind = X.dtype.char.lower()
    result = [ad.asarray(s.values.astype(kind)), ad.ascontiguousarray(s.kept[0, :s.k].T)]
    if keep_values:
        result.append([ad.asarray(one.astype(kind)) for one in history])
    if keep_norms:
        result.append([ad.asarray(one) for one in sizes] + [s.residuals()[1]])
    return tuple(result)


def _take_step(s, tol, largest):
    """Improve X unless all residuals are small. Returns their norms. LinAlgError where X cannot be improved."""
    R, norms = s.residuals()
    s.add_residuals(R, norms)
    try:
        size, products = s.fetch(norms)
    except np.linalg.LinAlgError:  # where rows are dependent, those that are small enough are left out
        return _step_without_small(s, norms.get(), tol, largest)
    left = s.active[size[s.active] > tol]
    if left.size:
        s.improve(products, left, largest)
    s.active = left
    return size


def _step_without_small(s, size, tol, largest):
    """_take_step without the vectors whose residuals are small, of which there must be some."""
    s.forget_residuals()
    left, before = s.active[size[s.active] > tol], s.active.size
    s.active = left
    if left.size == before:
        raise np.linalg.LinAlgError("the residuals are linearly dependent")
    return _take_step(s, tol, largest) if left.size else size
