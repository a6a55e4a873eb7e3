"""Solvers of square systems by products: conjugate gradients and their kin, GMRES, MINRES.

Vectors and the numbers made of them stay on the server. Once an iteration the norm of the residual is fetched.
"""
import numpy as np

import arrayd as ad

from ._operators import IdentityOperator, aslinearoperator


def _norm(x):
    return ad.sqrt((abs(x) ** 2).sum())


class _System:
    """The system that all solvers begin with: operators, the right side, the first guess, and when to end."""

    def __init__(self, A, b, x0, rtol, atol, maxiter, M, tol, least=np.float32):
        if getattr(A, "ndim", 2) != 2:
            raise ValueError("expected a square matrix")
        self.A = A = aslinearoperator(A)
        if A.shape[0] != A.shape[1]:
            raise ValueError(f"expected square matrix, but got shape={A.shape}")
        if A.dtype.char not in "fdFD":
            raise TypeError(f"unsupported dtype (actual: {A.dtype})")
        n = A.shape[0]
        b = ad.asarray(b)
        if b.shape not in ((n,), (n, 1)):
            raise ValueError(f"shapes of A {A.shape} and b {b.shape} are incompatible")
        self.n = n
        self.dtype = np.result_type(A.dtype, b.dtype if b.dtype.char in "fdFD" else np.float64, least)
        self.b = b.reshape(n).astype(self.dtype)
        self.M = IdentityOperator(A.shape, A.dtype) if M is None else aslinearoperator(M)
        if self.M.shape != A.shape:
            raise ValueError("matrix and preconditioner have different shapes")
        self.x = self._first_guess(x0)
        self.rtol, self.atol = (rtol if tol is None else tol), 0.0 if atol is None else float(atol)
        self.maxiter = n * 10 if maxiter is None else maxiter

    def _first_guess(self, x0):
        if x0 is None:
            self.guessed = False
            return ad.zeros(self.n, self.dtype)
        x0 = ad.asarray(x0)
        if x0.shape not in ((self.n,), (self.n, 1)):
            raise ValueError(f"shapes of A {self.A.shape} and x0 {x0.shape} are incompatible")
        self.guessed = True
        return x0.reshape(self.n).astype(self.dtype)

    def begin(self):
        """Set the norm at which the residual is small enough; whether b is not 0. Waits."""
        self.size = float(_norm(self.b)) if self.n else 0.0
        self.limit = max(self.atol, self.rtol * self.size)
        return self.size > 0

    def residual(self):
        return self.b - self.A.matvec(self.x) if self.guessed else self.b.copy()


def cg(A, b, x0=None, *, rtol=1e-5, atol=0.0, maxiter=None, M=None, callback=None, tol=None):
    """Solve A @ x = b for a Hermitian positive definite A by conjugate gradients.

    Parameters: A: dense or sparse matrix, or LinearOperator. b: array of shape (n,) or (n, 1). x0: first guess. rtol,
        atol: the residual's norm is to be at most max(rtol*norm(b), atol). maxiter: int, 10*n unless given. M:
        preconditioner, about the inverse of A. callback: function of x, after each iteration. tol: as rtol (CuPy's name).
    Returns: tuple of ndarray and int: the solution, and 0 where it converged, else how many iterations there were.
    Raises: ValueError where shapes do not fit, TypeError for other than floating types.
    Source: scipy.sparse.linalg.cg
    """
    s = _System(A, b, x0, rtol, atol, maxiter, M, tol)
    if not s.begin():
        return ad.zeros_like(s.b), 0
    x, r, before, p = s.x, s.residual(), None, None
    for _ in range(s.maxiter):
        if float(_norm(r)) <= s.limit:
            return x, 0
        z = s.M.matvec(r)
        rho = ad.vdot(r, z)
        p = z if p is None else z + (rho / before) * p
        q = s.A.matvec(p)
        alpha = rho / ad.vdot(p, q)
        x, r, before = x + alpha * p, r - alpha * q, rho
        if callback is not None:
            callback(x)
    return x, (0 if float(_norm(r)) <= s.limit else s.maxiter)


def cgs(A, b, x0=None, *, rtol=1e-5, atol=0.0, maxiter=None, M=None, callback=None, tol=None):
    """Solve A @ x = b by the squared conjugate gradient method.

    Parameters: A: dense or sparse matrix, or LinearOperator. b: array of shape (n,) or (n, 1). x0: first guess. rtol,
        atol: the residual's norm is to be at most max(rtol*norm(b), atol). maxiter: int, 10*n unless given. M:
        preconditioner, about the inverse of A. callback: function of x, after each iteration. tol: as rtol (CuPy's name).
    Returns: tuple of ndarray and int: the solution, and 0 where it converged, else how many iterations there were;
        negative where the method breaks down.
    Raises: ValueError where shapes do not fit, TypeError for other than floating types.
    Source: scipy.sparse.linalg.cgs
    """
    s = _System(A, b, x0, rtol, atol, maxiter, M, tol)
    if not s.begin():
        return ad.zeros_like(s.b), 0
    x, r = s.x, s.residual()
    shadow, before = r, None
    for _ in range(s.maxiter):
        if float(_norm(r)) <= s.limit:
            return x, 0
        rho = ad.vdot(shadow, r)
        if before is None:
            u = p = r
        else:
            beta = rho / before
            u = r + beta * q
            p = u + beta * (q + beta * p)
        y = s.M.matvec(p)
        v = s.A.matvec(y)
        alpha = rho / ad.vdot(shadow, v)
        q = u - alpha * v
        both = s.M.matvec(u + q)
        x, before = x + alpha * both, rho
        r = r - alpha * s.A.matvec(both)
        if callback is not None:
            callback(x)
    return x, (0 if float(_norm(r)) <= s.limit else s.maxiter)


def bicgstab(A, b, x0=None, *, rtol=1e-5, atol=0.0, maxiter=None, M=None, callback=None, tol=None):
    """Solve A @ x = b by the stabilised biconjugate gradient method.

    Parameters: A: dense or sparse matrix, or LinearOperator. b: array of shape (n,) or (n, 1). x0: first guess. rtol,
        atol: the residual's norm is to be at most max(rtol*norm(b), atol). maxiter: int, 10*n unless given. M:
        preconditioner, about the inverse of A. callback: function of x, after each iteration. tol: as rtol (CuPy's name).
    Returns: tuple of ndarray and int: the solution, and 0 where it converged, else how many iterations there were;
        negative where the method breaks down.
    Raises: ValueError where shapes do not fit, TypeError for other than floating types.
    Source: scipy.sparse.linalg.bicgstab
    """
    s = _System(A, b, x0, rtol, atol, maxiter, M, tol)
    if not s.begin():
        return ad.zeros_like(s.b), 0
    x, r = s.x, s.residual()
    shadow, before, p = r, None, None
    for _ in range(s.maxiter):
        if float(_norm(r)) <= s.limit:
            return x, 0
        rho = ad.vdot(shadow, r)
        p = r if p is None else r + (rho / before) * (alpha / omega) * (p - omega * v)
        phat = s.M.matvec(p)
        v = s.A.matvec(phat)
        alpha = rho / ad.vdot(shadow, v)
        r = r - alpha * v
        if float(_norm(r)) <= s.limit:
            return x + alpha * phat, 0
        shat = s.M.matvec(r)
        t = s.A.matvec(shat)
        omega = ad.vdot(t, r) / ad.vdot(t, t)
        x, before = x + alpha * phat + omega * shat, rho
        r = r - omega * t
        if callback is not None:
            callback(x)
    return x, (0 if float(_norm(r)) <= s.limit else s.maxiter)


# ---- GMRES ----

def _extend_basis(V, j, w):
    """Make w orthogonal to the first j + 1 columns of V, twice: what is left, and its coefficients with its norm."""
    basis = V[:, :j + 1]
    h = basis.conj().T @ w
    w = w - basis @ h
    more = basis.conj().T @ w
    w = w - basis @ more
    return w, ad.concatenate([h + more, _norm(w).astype(h.dtype).reshape(1)])


def gmres(A, b, x0=None, *, rtol=1e-5, atol=0.0, restart=None, maxiter=None, M=None, callback=None, callback_type=None,
          tol=None):
    """Solve A @ x = b by the generalised minimal residual method, restarted.

    Parameters: A: dense or sparse matrix, or LinearOperator. b: array of shape (n,) or (n, 1). x0: first guess. rtol,
        atol: the residual's norm is to be at most max(rtol*norm(b), atol). restart: int, vectors of a cycle, 20 unless
        given. maxiter: int, cycles, 10*n unless given. M: preconditioner, about the inverse of A. callback: function.
        callback_type: 'x', 'pr_norm' or 'legacy': what it gets. tol: as rtol (CuPy's name).
    Returns: tuple of ndarray and int: the solution, and 0 where it converged, else how many iterations there were.
    Raises: ValueError where shapes or callback_type do not fit, TypeError for other than floating types.
    Source: scipy.sparse.linalg.gmres
    """
    if callback_type not in (None, "x", "pr_norm", "legacy"):
        raise ValueError(f"Unknown callback_type: {callback_type!r}")
    s = _System(A, b, x0, rtol, atol, maxiter, M, tol)
    if not s.begin():
        return ad.zeros_like(s.b), 0
    restart = min(20 if restart is None else restart, s.n)
    x = s.x
    by_norm = callback if callback_type in (None, "pr_norm", "legacy") else None
    for cycle in range(s.maxiter + 1):
        r = s.residual() if cycle == 0 else s.b - s.A.matvec(x)
        size = float(_norm(r))
        if cycle and callback is not None and by_norm is None:
            callback(x)
        if size <= s.limit or cycle == s.maxiter:
            break
        x = x + s.M.matvec(_run_cycle(s, r, size, restart, by_norm))
    return x, (0 if size <= s.limit else s.maxiter)


def _run_cycle(s, r, size, restart, callback):
    """Return what the preconditioner makes the correction of one cycle of."""
    V = ad.empty((s.n, restart + 1), s.dtype)
    V[:, 0] = r / size
    H = np.zeros((restart + 1, restart), s.dtype)
    done = 0
    for j in range(restart):
        w, h = _extend_basis(V, j, s.A.matvec(s.M.matvec(V[:, j])))
        H[:j + 2, j] = h.get()
        done, length = j + 1, abs(H[j + 1, j])
        if callback is not None:
            callback(_least_residual(H, done, size) / s.size)
        if length <= np.finfo(s.dtype).eps * np.linalg.norm(H[:j + 2, j]) or (
                _least_residual(H, done, size) <= s.limit):
            break
        V[:, j + 1] = w / float(length)
    e = np.zeros(done + 1, s.dtype)
    e[0] = size
    y = np.linalg.lstsq(H[:done + 1, :done], e, rcond=None)[0]
    return V[:, :done] @ ad.asarray(y.astype(s.dtype))


def _least_residual(H, done, size):
    e = np.zeros(done + 1, H.dtype)
    e[0] = size
    y = np.linalg.lstsq(H[:done + 1, :done], e, rcond=None)[0]
    return float(np.linalg.norm(e - H[:done + 1, :done] @ y))


# ---- MINRES ----

def minres(A, b, x0=None, *, rtol=1e-5, shift=0.0, maxiter=None, M=None, callback=None, show=False, check=False,
           tol=None):
    """Solve (A - shift*I) @ x = b for a Hermitian A by the minimal residual method.

    Parameters: A: dense or sparse matrix, or LinearOperator. b: array of shape (n,) or (n, 1). x0: first guess. rtol:
        the residual's norm is to be at most rtol times what A and x are. shift: number. maxiter: int, 5*n unless given.
        M: preconditioner, positive definite. callback: function of x, after each iteration. show, check: ignored. tol:
        as rtol (CuPy's name).
    Returns: tuple of ndarray and int: the solution, and 0 where it converged, else how many iterations there were.
    Raises: ValueError where shapes do not fit or M is indefinite, TypeError for other than floating types.
    Source: scipy.sparse.linalg.minres
    """
    s = _System(A, b, x0, rtol, 0.0, maxiter, M, tol, np.float64)
    limit = s.n * 5 if maxiter is None else maxiter
    if not s.begin():
        return ad.zeros_like(s.b), 0
    x = s.x
    r1 = s.b - _shifted(s, x, shift) if s.guessed else s.b
    y = s.M.matvec(r1)
    beta1 = float(ad.vdot(r1, y).real)
    if beta1 < 0:
        raise ValueError("indefinite preconditioner")
    if beta1 == 0:
        return x, 0
    return _run_minres(s, x, r1, y, float(np.sqrt(beta1)), shift, limit, callback)


def _shifted(s, x, shift):
    return s.A.matvec(x) - shift * x if shift else s.A.matvec(x)


def _run_minres(s, x, r1, y, beta1, shift, limit, callback):
    """Lanczos' vectors, and the rotations that make their tridiagonal matrix triangular, one at a time."""
    eps = float(np.finfo(s.dtype).eps)
    oldb, beta, dbar, epsln, phibar, cosine, sine = 0.0, beta1, 0.0, 0.0, beta1, -1.0, 0.0
    size2 = 0.0
    w = w2 = ad.zeros_like(x)
    r2 = r1
    for k in range(1, limit + 1):
        v = y * (1.0 / beta)
        y = _shifted(s, v, shift)
        if k >= 2:
            y = y - (beta / oldb) * r1
        alpha = float(ad.vdot(v, y).real)
        y = y - (alpha / beta) * r2
        r1, r2 = r2, y
        y = s.M.matvec(r2)
        oldb, squared = beta, float(ad.vdot(r2, y).real)
        if squared < 0:
            raise ValueError("non-symmetric matrix")
        beta = float(np.sqrt(squared))
        size2 += alpha ** 2 + oldb ** 2 + beta ** 2
        oldeps, delta = epsln, cosine * dbar + sine * alpha
        gbar, epsln, dbar = sine * dbar - cosine * alpha, sine * beta, -cosine * beta
        root = float(np.hypot(gbar, dbar))
        gamma = max(float(np.hypot(gbar, beta)), eps)
        cosine, sine = gbar / gamma, beta / gamma
        phi, phibar = cosine * phibar, sine * phibar
        w1, w2 = w2, w
        w = (v - oldeps * w1 - delta * w2) * (1.0 / gamma)
        x = x + phi * w
        if callback is not None:
            callback(x)
        norm_a, norm_x = float(np.sqrt(size2)), float(_norm(x))
        test1 = phibar / (norm_a * norm_x) if norm_a * norm_x else np.inf
        test2 = root / norm_a if norm_a else np.inf
        if test1 <= s.rtol or test2 <= s.rtol or 1 + test1 <= 1 or 1 + test2 <= 1 or beta / beta1 <= 10 * eps:
            return x, 0
    return x, limit
