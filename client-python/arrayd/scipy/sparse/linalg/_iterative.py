"""Solvers of square systems by products: conjugate gradients and their kin, GMRES, MINRES.

Vectors and the numbers made of them stay on the server. Iterations are sent some at a time before the norms of their
residuals are fetched. Those behind the first that is small enough are thrown away, so there are as many as if each had been
waited for.
"""
import itertools
import math

import numpy as np

import arrayd as ad

from ...._base import matrix_product
from ._operators import IdentityOperator, aslinearoperator

_MOST_AHEAD = 16         # iterations that are sent at once
_FIRST_AHEAD = 4         # before it is known how norms shrink
_ELEMENTS_AHEAD = 1 << 20  # of a vector that is this long none is sent ahead


def _multiply_inner(x, y):
    """The product of two vectors of one type, the first conjugated; 0-d."""
    return (x.conj() if x.dtype.kind == "c" else x) @ y


def _norm(x):
    return ad.sqrt(_multiply_inner(x, x).real)


class _Pace:
    """How many iterations are sent before their norms are fetched: most of those that there seem to be left, by how
    norms have shrunk so far."""

    def __init__(self, n):
        self.most = max(1, min(_MOST_AHEAD, _ELEMENTS_AHEAD // max(n, 1)))
        self.norms = []

    def choose(self, limit):
        done = len(self.norms)
        first, last = (self.norms[0], self.norms[-1]) if done else (0.0, 0.0)
        ahead = 1 + done // 8 if done else _FIRST_AHEAD
        if done > 1 and limit > 0 and 0 < last < first < math.inf:
            left = math.log(max(last / limit, 1.0)) / (math.log(first / last) / (done - 1))
            ahead = max(ahead, int(0.75 * min(left, 2 * _MOST_AHEAD)))
        return min(ahead, self.most)


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
        self.multiply, self.precondition = self.A._find_function(), self.M._find_function()

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
        """Set the norm at which the residual is small enough; whether b has anything but 0. Waits."""
        self._set_limit(float(_norm(self.b)) if self.n else 0.0)
        return self.size != 0

    def _set_limit(self, size):
        self.size, self.limit = size, max(self.atol, self.rtol * size)

    def residual(self):
        return self.b - self.multiply(self.x) if self.guessed else self.b.copy()

    def search(self, steps, callback):
        """Return the solution and 0 of the first step whose residual is small enough, or the last solution and maxiter.

        steps: yields solutions, the squared norms of their residuals (0-d) and whether the callback is to get them. The
        norm of b is fetched with the first of them.
        """
        if self.n == 0:
            return ad.zeros_like(self.b), 0
        pace, squares = _Pace(self.n), ad.empty(_MOST_AHEAD + 1, self.dtype.char.lower())
        squares[0] = _multiply_inner(self.b, self.b).real
        x, ahead = self.x, min(_FIRST_AHEAD, pace.most)
        while part := list(itertools.islice(steps, ahead)):
            for i, (_, square, _) in enumerate(part):
                squares[i + 1] = square.real
            norms = np.sqrt(squares[:len(part) + 1].get()).tolist()
            self._set_limit(norms[0])
            if self.size == 0:
                return ad.zeros_like(self.b), 0
            for (x, _, tell), norm in zip(part, norms[1:]):
                if tell and callback is not None:
                    callback(x)
                if norm <= self.limit:
                    return x, 0
            pace.norms += norms[1:]
            ahead = pace.choose(self.limit)
        return x, self.maxiter


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
    return s.search(_step_cg(s), callback)


def _step_cg(s):
    x, r, before, p = s.x, s.residual(), None, None
    same = type(s.M) is IdentityOperator
    square = _multiply_inner(r, r)
    yield x, square, False
    for _ in range(s.maxiter):
        z = s.precondition(r)
        rho = square if same else _multiply_inner(r, z)
        p = z if p is None else z + (rho / before) * p
        q = s.multiply(p)
        alpha = rho / _multiply_inner(p, q)
        x, r, before = x + alpha * p, r - alpha * q, rho
        square = _multiply_inner(r, r)
        yield x, square, True


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
    return s.search(_step_cgs(s), callback)


def _step_cgs(s):
    x, r = s.x, s.residual()
    shadow, before = r, None
    yield x, _multiply_inner(r, r), False
    for _ in range(s.maxiter):
        rho = _multiply_inner(shadow, r)
        if before is None:
            u = p = r
        else:
            beta = rho / before
            u = r + beta * q
            p = u + beta * (q + beta * p)
        v = s.multiply(s.precondition(p))
        alpha = rho / _multiply_inner(shadow, v)
        q = u - alpha * v
        both = s.precondition(u + q)
        x, before = x + alpha * both, rho
        r = r - alpha * s.multiply(both)
        yield x, _multiply_inner(r, r), True


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
    return s.search(_step_bicgstab(s), callback)


def _step_bicgstab(s):
    x, r = s.x, s.residual()
    shadow, before, p = r, None, None
    yield x, _multiply_inner(r, r), False
    for _ in range(s.maxiter):
        rho = _multiply_inner(shadow, r)
        p = r if p is None else r + (rho / before) * (alpha / omega) * (p - omega * v)
        phat = s.precondition(p)
        v = s.multiply(phat)
        alpha = rho / _multiply_inner(shadow, v)
        r, x, before = r - alpha * v, x + alpha * phat, rho
        yield x, _multiply_inner(r, r), False
        shat = s.precondition(r)
        t = s.multiply(shat)
        omega = _multiply_inner(t, r) / _multiply_inner(t, t)
        x, r = x + omega * shat, r - omega * t
        yield x, _multiply_inner(r, r), True


# ---- GMRES ----

class _Cycle:
    """The vectors of one cycle, rows of V, and what makes the matrix of them triangular: a rotation for each, as it comes.

    r: the residual at the beginning, of norm size. R: columns of the triangular matrix. rest: what the rotations make of
    (size, 0, 0, ...), whose last element is the norm of the residual.
    """

    def __init__(self, s, r, size, restart):
        self.s, self.restart = s, restart
        self.V = ad.empty((restart + 1, s.n), s.dtype)
        self.V[0] = r / size
        self.products = ad.empty((restart, restart + 1), s.dtype)
        self.R, self.rotations, self.rest = [], [], [size]
        self.sent, self.ended = 0, False

    def send(self):
        """Add the next vector: the last one's product, made orthogonal to all before it, twice."""
        s, j = self.s, self.sent
        w = s.multiply(s.precondition(self.V[j])).reshape(1, -1)
        basis = self.V[:j + 1]
        adjoint = (basis.conj() if s.dtype.kind == "c" else basis).T
        h = matrix_product(w, adjoint)
        w = w - matrix_product(h, basis)
        more = matrix_product(w, adjoint)
        w = (w - matrix_product(more, basis)).reshape(-1)
        length = _norm(w)
        self.products[j, :j + 1] = (h + more).reshape(-1)
        self.products[j, j + 1] = length
        self.V[j + 1] = w / length
        self.sent += 1

    def fetch(self):
        """Yield the norm of the residual by each of the vectors that have been sent. Waits."""
        first = len(self.R)
        eps = float(np.finfo(self.s.dtype).eps)
        for j, row in enumerate(self.products[first:self.sent, :self.sent + 1].get().tolist(), first):
            column = row[:j + 2]
            size = math.hypot(*map(abs, column))
            self.ended = not abs(column[-1]) > eps * size
            if self.ended:
                column[-1] = 0.0
            self._rotate(column)
            yield abs(self.rest[-1])

    def _rotate(self, column):
        for j, (cosine, sine) in enumerate(self.rotations):
            a, b = column[j], column[j + 1]
            column[j], column[j + 1] = cosine * a + sine * b, cosine * b - sine.conjugate() * a
        a, b = column[-2:]
        length, size = math.hypot(abs(a), abs(b)), abs(a)
        cosine = size / length if length else 1.0
        sine = (a / size if size else 1.0) * b.conjugate() / length if length else 0.0
        self.rotations.append((cosine, sine))
        self.R.append(column[:-2] + [cosine * a + sine * b])
        last = self.rest.pop()
        self.rest += [cosine * last, -sine.conjugate() * last]

    def correct(self):
        """Return what the preconditioner makes the correction of, by the vectors that have been fetched."""
        n = len(self.R)
        R = np.zeros((n, n), self.s.dtype)
        for j, column in enumerate(self.R):
            R[:j + 1, j] = column
        if not np.isfinite(R).all():
            return ad.full(self.s.n, np.nan, R.dtype)
        y = np.linalg.lstsq(R, np.array(self.rest[:n], R.dtype), rcond=None)[0].astype(R.dtype)
        return matrix_product(ad.asarray(y).reshape(1, n), self.V[:n]).reshape(-1)


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
        r = s.residual() if cycle == 0 else s.b - s.multiply(x)
        size = float(_norm(r))
        if cycle and callback is not None and by_norm is None:
            callback(x)
        if size <= s.limit or cycle == s.maxiter:
            break
        x = x + s.precondition(_run_cycle(s, r, size, restart, by_norm))
    return x, (0 if size <= s.limit else s.maxiter)


def _run_cycle(s, r, size, restart, callback):
    """Return what the preconditioner makes the correction of one cycle of."""
    cycle, pace = _Cycle(s, r, size, restart), _Pace(s.n)
    pace.norms.append(size)
    while len(cycle.R) < restart:
        for _ in range(min(pace.choose(s.limit), restart - cycle.sent)):
            cycle.send()
        for norm in cycle.fetch():
            pace.norms.append(norm)
            if callback is not None:
                callback(norm / s.size)
            if cycle.ended or norm <= s.limit:
                return cycle.correct()
    return cycle.correct()


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
    y = s.precondition(r1)
    beta1 = float(_multiply_inner(r1, y).real)
    if beta1 < 0:
        raise ValueError("indefinite preconditioner")
    if beta1 == 0:
        return x, 0
    return _run_minres(s, x, r1, y, float(np.sqrt(beta1)), shift, limit, callback)


def _shifted(s, x, shift):
    return s.multiply(x) - shift * x if shift else s.multiply(x)


def _step_lanczos(s, r1, y, beta, shift):
    """Yield Lanczos' vectors, and two numbers of each that make the tridiagonal matrix: the elements of the diagonal, and
    the squares of those beside it."""
    r2, before = r1, None
    while True:
        v = y / beta
        y = _shifted(s, v, shift)
        if before is not None:
            y = y - (beta / before) * r1
        alpha = _multiply_inner(v, y).real
        y = y - (alpha / beta) * r2
        r1, r2 = r2, y
        y = s.precondition(r2)
        square = _multiply_inner(r2, y).real
        yield v, alpha, square
        before, beta = beta, ad.sqrt(square)


class _Rotations:
    """The rotations that make Lanczos' tridiagonal matrix triangular, one at a time, and the solution by the vectors."""

    def __init__(self, x, beta, eps):
        self.x, self.beta1, self.beta, self.eps = x, beta, beta, eps
        self.w = self.w2 = ad.zeros_like(x)
        self.dbar, self.epsln, self.phibar, self.cosine, self.sine, self.size2 = 0.0, 0.0, beta, -1.0, 0.0, 0.0

    def advance(self, v, alpha, square):
        before, self.beta = self.beta, math.sqrt(square)
        self.size2 += alpha * alpha + before * before + square
        oldeps, delta = self.epsln, self.cosine * self.dbar + self.sine * alpha
        gbar = self.sine * self.dbar - self.cosine * alpha
        self.epsln, self.dbar = self.sine * self.beta, -self.cosine * self.beta
        self.root = math.hypot(gbar, self.dbar)
        gamma = max(math.hypot(gbar, self.beta), self.eps)
        self.cosine, self.sine = gbar / gamma, self.beta / gamma
        phi, self.phibar = self.cosine * self.phibar, self.sine * self.phibar
        w1, self.w2 = self.w2, self.w
        self.w = (v - oldeps * w1 - delta * self.w2) * (1.0 / gamma)
        self.x = self.x + phi * self.w

    def measure(self):
        """The numbers that the tests at the end of an iteration compare, but the norm of x."""
        return self.x, self.phibar, math.sqrt(self.size2), self.root, self.beta


def _run_minres(s, x, r1, y, beta1, shift, limit, callback):
    steps = itertools.islice(_step_lanczos(s, r1, y, beta1, shift), limit)
    rotations, pace = _Rotations(x, beta1, float(np.finfo(s.dtype).eps)), _Pace(s.n)
    numbers = ad.empty((2, _MOST_AHEAD), s.dtype.char.lower())
    while part := list(itertools.islice(steps, pace.choose(s.rtol))):
        for i, (_, alpha, square) in enumerate(part):
            numbers[0, i], numbers[1, i] = alpha, square
        ends = []
        for (v, _, _), alpha, square in zip(part, *numbers[:, :len(part)].get().tolist()):
            if square < 0:
                break
            rotations.advance(v, alpha, square)
            numbers[0, len(ends)] = _norm(rotations.x)
            ends.append(rotations.measure())
        for (x, *measures), norm_x in zip(ends, numbers[0, :len(part)].get().tolist()):
            if callback is not None:
                callback(x)
            tests = _measure_ends(*measures, norm_x)
            if min(tests) <= s.rtol or 1 + min(tests) <= 1 or measures[-1] / beta1 <= 10 * rotations.eps:
                return x, 0
            pace.norms.append(tests[0])
        if len(ends) < len(part):
            raise ValueError("non-symmetric matrix")
    return x, limit


def _measure_ends(phibar, norm_a, root, _, norm_x):
    return phibar / (norm_a * norm_x) if norm_a * norm_x else math.inf, root / norm_a if norm_a else math.inf
