"""LOBPCG: some extreme eigenvalues of a Hermitian pencil, by blocks of vectors and a preconditioner."""
import numpy as np

import arrayd as ad

from ._operators import aslinearoperator


def _apply(A, X):
    return X if A is None else A.matmat(X)


def _operator(A):
    if A is None:
        return None
    return aslinearoperator(ad.asarray(A) if isinstance(A, np.ndarray) else A)


def _orthonormalise(X, BX):
    """X and B X times what makes X^H B X the identity; None where X has dependent columns. Waits."""
    gram = (X.conj().T @ BX).get()
    try:
        inverse = np.linalg.inv(np.linalg.cholesky((gram + gram.conj().T) / 2)).conj().T
    except np.linalg.LinAlgError:
        return None
    inverse = ad.asarray(inverse.astype(X.dtype))
    return X @ inverse, BX @ inverse


class _Constraints:
    """Vectors that those that are sought are to be orthogonal to."""

    def __init__(self, B, Y):
        self.Y, self.BY = Y, _apply(B, Y)
        self.factor = np.linalg.inv((Y.conj().T @ self.BY).get())

    def apply(self, X):
        return X - self.Y @ (ad.asarray(self.factor.astype(X.dtype)) @ (self.BY.conj().T @ X))


def _generalised(gram_a, gram_b, count, largest):
    """The wanted eigenvalues and vectors of a small pencil. LinAlgError."""
    factor = np.linalg.inv(np.linalg.cholesky((gram_b + gram_b.conj().T) / 2))
    values, vectors = np.linalg.eigh(factor @ ((gram_a + gram_a.conj().T) / 2) @ factor.conj().T)
    vectors = factor.conj().T @ vectors
    order = slice(None, None, -1) if largest else slice(None)
    return values[order][:count], vectors[:, order][:, :count]


def _dense(A, B, X, Y, largest):
    """All of a small problem at once."""
    n, k = X.shape
    count = k
    identity = ad.eye(n, dtype=X.dtype)
    a, b = (_apply(M, identity).get() if M is not None else np.eye(n) for M in (A, B))
    if Y is None:
        values, vectors = _generalised(a, b, count, largest)
        return values, vectors
    y = Y.get()
    space = np.linalg.svd((b @ y).conj().T)[2][y.shape[1]:].conj().T
    values, vectors = _generalised(space.conj().T @ a @ space, space.conj().T @ b @ space, count, largest)
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
    hold = 0 if Y is None else Y.shape[1]
    if n - hold < 5 * k:
        values, vectors = _dense(A, B, X, None if Y is None else ad.asarray(Y), min(k, n - hold) and largest)
        return ad.asarray(values), ad.asarray(vectors).astype(X.dtype)
    tol = np.sqrt(1e-15) * n if tol is None else tol
    return _iterate(A, B, M, X, Y, tol, 20 if maxiter is None else maxiter, largest, retLambdaHistory,
                    retResidualNormsHistory)


def _iterate(A, B, M, X, Y, tol, maxiter, largest, keep_values, keep_norms):
    hold = None if Y is None else _Constraints(B, ad.asarray(Y).astype(X.dtype, copy=False))
    X = X if hold is None else hold.apply(X)
    made = _orthonormalise(X, _apply(B, X))
    if made is None:
        raise ValueError("Linearly dependent initial approximations")
    X, BX = made
    AX = _apply(A, X)
    values, C = np.linalg.eigh(_hermitian((X.conj().T @ AX).get()))
    order = slice(None, None, -1) if largest else slice(None)
    values, C = values[order], ad.asarray(np.ascontiguousarray(C[:, order]).astype(X.dtype))
    X, AX, BX = X @ C, AX @ C, BX @ C
    P = AP = BP = None
    history, norms = [ad.asarray(values)], []
    for _ in range(maxiter):
        R = AX - BX * ad.asarray(values).astype(X.dtype)
        size = ad.sqrt((abs(R) ** 2).sum(axis=0)).get()
        norms.append(ad.asarray(size))
        active = np.flatnonzero(size > tol)
        if active.size == 0:
            break
        found = _improve(A, B, M, hold, X, AX, BX, R[:, active], P, active, AP, BP, largest)
        if found is None:
            break
        values, (X, AX, BX), (P, AP, BP) = found
        history.append(ad.asarray(values))
    R = AX - BX * ad.asarray(values).astype(X.dtype)
    norms.append(ad.sqrt((abs(R) ** 2).sum(axis=0)))
    history.append(ad.asarray(values))
    result = [ad.asarray(values), X]
    return tuple(result + ([history] if keep_values else []) + ([norms] if keep_norms else []))


def _hermitian(a):
    return (a + a.conj().T) / 2


def _improve(A, B, M, hold, X, AX, BX, W, P, active, AP, BP, largest):
    """The best vectors in the span of X, the preconditioned residuals W and the last directions P."""
    k = X.shape[1]
    W = _apply(M, W).astype(X.dtype, copy=False)
    W = W if hold is None else hold.apply(W)
    W = W - X @ (BX.conj().T @ W)
    made = _orthonormalise(W, _apply(B, W))
    if made is None:
        return None
    parts = [(X, AX, BX), (made[0], _apply(A, made[0]), made[1])]
    if P is not None:
        scaled = _orthonormalise(P[:, active], BP[:, active])
        if scaled is not None:
            change = ad.asarray(np.linalg.lstsq(P[:, active].get(), scaled[0].get(), rcond=None)[0])
            parts.append((scaled[0], AP[:, active] @ change.astype(X.dtype), scaled[1]))
    while True:
        S, AS, BS = (ad.hstack(list(one)) for one in zip(*parts))
        try:
            gram_b = _hermitian((S.conj().T @ BS).get().astype(np.promote_types(X.dtype, np.float64)))
            values, C = _generalised((S.conj().T @ AS).get().astype(gram_b.dtype), gram_b, k, largest)
            break
        except np.linalg.LinAlgError:
            if len(parts) == 2:
                return None
            parts.pop()
    C = C.astype(X.dtype)
    whole, rest = ad.asarray(np.ascontiguousarray(C)), ad.asarray(np.ascontiguousarray(C[k:]))
    return (values.astype(X.dtype.char.lower()), tuple(one @ whole for one in (S, AS, BS)),
            tuple(one[:, k:] @ rest for one in (S, AS, BS)))


