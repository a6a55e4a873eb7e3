"""Least squares by products with A and its adjoint: LSQR and LSMR, on the bidiagonalisation of Golub and Kahan."""
import math

import numpy as np

import arrayd as ad

from ...._base import matrix_product
from ._operators import aslinearoperator
from ._iterative import _multiply_inner
from ._iterative import _norm as _remote_norm

_MOST_STEPS = 12  # that are taken before their numbers are fetched
_EPSILON = float(np.finfo(np.float64).eps)


def _widen(x):
    """An array as float64 or complex128, as which SciPy adds up solutions."""
    return x.astype(np.result_type(x.dtype, np.float64), copy=False)


def _norm(x):
    return float(_remote_norm(x))


def _add_rows(rows, *factors):
    """Sums of rows with so many factors each, which are on this side."""
    return matrix_product(ad.asarray(np.stack(factors).astype(rows.dtype)), rows)


def _sign(a):
    return math.copysign(1.0, a) if a else 0.0


def _divide(a, b):
    """a / b of norms, where b may be 0: of a solution that is 0 nothing is small."""
    return a / b if b else math.inf if a else math.nan


def _rotation(a, b):
    """(c, s, r) of the rotation that takes (a, b) to (r, 0), as Paige and Saunders sign it."""
    if b == 0:
        return _sign(a), 0.0, abs(a)
    if a == 0:
        return 0.0, _sign(b), abs(b)
    if abs(b) > abs(a):
        tau = a / b
        s = _sign(b) / math.sqrt(1 + tau * tau)
        return s * tau, s, b / s
    tau = b / a
    c = _sign(a) / math.sqrt(1 + tau * tau)
    return c, c * tau, a / c


class _Ending:
    """When an iteration ends: after so many steps, or by tolerances. `done` steps are; `reason` is SciPy's number or 0."""

    def __init__(self, b_norm, atol, btol, conlim, limit):
        self.b_norm, self.atol, self.btol, self.conlim, self.limit = b_norm, atol, btol, conlim, limit
        self.done, self.reason = 0, 0

    def is_over(self):
        return self.reason != 0 or self.done >= self.limit

    def end_step(self, residual, adjoint, condition, size):
        """Count a step and find the reason. Norms: of the residual, of A^H r relative to A and r, the inverse of A's
        condition, and of A x."""
        self.done += 1
        residual, size = _divide(residual, self.b_norm), _divide(size, self.b_norm)
        tests = ((residual <= self.btol + self.atol * size, 1), (adjoint <= self.atol, 2),
                 (bool(self.conlim) and condition <= 1 / self.conlim, 3), (1 + residual / (1 + size) <= 1, 4),
                 (1 + adjoint <= 1, 5), (1 + condition <= 1, 6), (self.done >= self.limit, 7))
        self.reason = next((number for true, number in tests if true), 0)


class _Bidiagonalisation:
    """u, v, alpha and beta of each step; A v and A^H u are all that is asked of A."""

    def __init__(self, A, b, x0):
        if getattr(A, "ndim", 2) != 2:
            raise ValueError("expected a matrix")
        self.most = 1 if hasattr(A, "matvec") else _MOST_STEPS  # a caller's functions are called for what is used alone
        self.A = A = aslinearoperator(A)
        self.multiply, self.multiply_adjoint = A._find_function(), A.H._find_function()
        b = ad.asarray(b)
        if b.shape not in ((A.shape[0],), (A.shape[0], 1)):
            raise ValueError(f"shapes of A {A.shape} and b {b.shape} are incompatible")
        m, n = A.shape
        kind = b.dtype if b.dtype.char in "fdFD" else np.dtype(np.float64)
        self.dtype = np.result_type(A.dtype if A.dtype.char in "fdFD" else np.float64, kind)
        self.u = b.reshape(m).astype(self.dtype)
        self.b_norm = _norm(self.u)
        self.count, self.least = 1, float(np.finfo(self.dtype).tiny)
        self.x = ad.zeros(n, self.dtype)
        if x0 is not None:
            x0 = ad.asarray(x0)
            if x0.shape not in ((n,), (n, 1)):
                raise ValueError(f"shapes of A {A.shape} and x0 {x0.shape} are incompatible")
            self.x = x0.reshape(n).astype(np.result_type(self.dtype, x0.dtype))
            self.u = self.u - A.matvec(self.x)
        self.beta = _norm(self.u)
        self.alpha = 0.0
        self.v = ad.zeros_like(self.x)
        if self.beta > 0:
            self.u = self.u * (1 / self.beta)
            self.v = A.rmatvec(self.u)
            self.alpha = _norm(self.v)
        if self.alpha > 0:
            self.v = self.v * (1 / self.alpha)

    def take_steps(self, limit, vectors):
        """Take some steps, at most so many: more with each call, as none of them depends on what the caller finds out. Fetch
        with one wait beta and alpha of each. Returned are these, the vectors, which are rows, and the steps' v as rows,
        and their real inner products."""
        count, alpha, first = int(min(self.count, limit)), self.alpha, vectors.shape[0]
        self.count = min(2 * self.count, self.most)
        rows = ad.empty((first + count, vectors.shape[1]), vectors.dtype)
        numbers = ad.empty(2 * count + (first + count) ** 2, vectors.dtype.char.lower())
        rows[:first] = vectors
        for i in range(count):
            u = self.multiply(self.v) - alpha * self.u
            beta = ad.sqrt(_multiply_inner(u, u).real, out=numbers[2 * i])
            self.u = u / ad.maximum(beta, self.least)
            v = self.multiply_adjoint(self.u) - beta * self.v
            alpha = ad.sqrt(_multiply_inner(v, v).real, out=numbers[2 * i + 1])
            self.v = ad.divide(v, ad.maximum(alpha, self.least), out=rows[first + i])
        adjoint = (rows.conj() if rows.dtype.kind == "c" else rows).T
        numbers[2 * count:] = matrix_product(rows, adjoint).real.ravel()
        fetched = numbers.get().astype(np.float64)
        self.alpha = float(fetched[2 * count - 1])
        return fetched[:2 * count].reshape(-1, 2).tolist(), rows, fetched[2 * count:].reshape(rows.shape[0], -1)


class _Lsqr(_Ending):
    """The numbers of LSQR between two steps, by the names that Paige and Saunders (1982) gave them."""

    def __init__(self, g, damp, *limits):
        super().__init__(g.b_norm, *limits)
        self.damp, self.damped = damp, damp ** 2
        self.alpha, self.rhobar, self.phibar = g.alpha, g.alpha, g.beta
        self.r1norm = self.r2norm = g.beta
        self.arnorm, self.anorm, self.acond, self.ddnorm = g.alpha * g.beta, 0.0, 0.0, 0.0
        self.res2, self.xxnorm, self.xnorm = 0.0, 0.0, 0.0
        self.c2, self.s2, self.z = -1.0, 0.0, 0.0

    def begin_rows(self, products):
        """Begin with rows whose inner products these are, of which w is the first. x_of and w_of: the factors of rows whose
        sums are added to x, and are w."""
        self.products, self.units = products, np.eye(len(products))
        self.x_of, self.w_of = 0 * self.units[0], self.units[0]

    def take_step(self, beta, alpha, v_of):
        """Take a step, which has found beta, alpha and the row whose factors are v_of. Returns rho, by which w was divided."""
        self.anorm = math.sqrt(self.anorm ** 2 + self.alpha ** 2 + beta ** 2 + self.damped)
        self.alpha, rhobar, psi = alpha, self.rhobar, 0.0
        if self.damp:
            rhobar = math.hypot(self.rhobar, self.damp)
            psi, self.phibar = self.damp / rhobar * self.phibar, self.rhobar / rhobar * self.phibar
        cosine, sine, rho = _rotation(rhobar, beta)
        theta, self.rhobar = sine * alpha, -cosine * alpha
        phi, self.phibar = cosine * self.phibar, sine * self.phibar
        self.x_of = self.x_of + (phi / rho) * self.w_of
        self.ddnorm += max(float(self.w_of @ self.products @ self.w_of), 0.0) / rho ** 2
        self.w_of = v_of - (theta / rho) * self.w_of
        self._measure_solution(rho, theta, phi)
        self.acond, self.res2 = self.anorm * math.sqrt(self.ddnorm), self.res2 + psi ** 2
        self.r2norm, self.arnorm = math.sqrt(self.phibar ** 2 + self.res2), alpha * abs(sine * phi)
        squared = self.r2norm ** 2 - self.damped * self.xxnorm
        self.r1norm = _sign(squared) * math.sqrt(abs(squared))
        self.end_step(self.r2norm, self.arnorm / (self.anorm * self.r2norm + _EPSILON), 1 / (self.acond + _EPSILON),
                      self.anorm * self.xnorm)
        return rho

    def _measure_solution(self, rho, theta, phi):
        gamma_bar, right = -self.c2 * rho, phi - self.s2 * rho * self.z
        self.xnorm = math.sqrt(self.xxnorm + (right / gamma_bar if gamma_bar else 0.0) ** 2)
        gamma = math.hypot(gamma_bar, theta)
        self.c2, self.s2, self.z = gamma_bar / gamma, theta / gamma, right / gamma
        self.xxnorm += self.z * self.z

    def result(self):
        """The numbers that lsqr returns behind x, but for the variance."""
        return (self.reason, self.done, self.r1norm, self.r2norm, self.anorm, self.acond, self.arnorm, self.xnorm)


def lsqr(A, b, damp=0.0, atol=1e-6, btol=1e-6, conlim=1e8, iter_lim=None, show=False, calc_var=False, x0=None):
    """The least-squares solution of A @ x = b, damped where damp is not 0, by LSQR.

    Parameters: A: dense or sparse matrix, or LinearOperator. b: array of shape (m,) or (m, 1). damp: number. atol,
        btol: tolerances relative to A and to b. conlim: condition at which it ends. iter_lim: int, 2*n unless given.
        show: ignored. calc_var: whether the diagonal of (A^H A)^-1 is estimated. x0: first guess.
    Returns: tuple: x, why it ended (int), iterations, norm of the residual, that of the damped problem, estimates of the
        norm and the condition of A, norm of A^H r, norm of x, the diagonal.
    Raises: ValueError where shapes do not fit.
    Source: scipy.sparse.linalg.lsqr
    """
    g = _Bidiagonalisation(A, b, x0)
    n, x = g.A.shape[1], g.x
    s = _Lsqr(g, damp, atol, btol, conlim, 2 * n if iter_lim is None else iter_lim)
    w, variance = g.v.reshape(1, n), ad.zeros(n, g.dtype.char.lower())
    if s.arnorm == 0:
        return _widen(x), *s.result(), variance
    while not s.is_over():
        steps, rows, products = g.take_steps(s.limit - s.done, w)
        s.begin_rows(products)
        for step, (beta, alpha) in enumerate(steps):
            w_of = s.w_of
            rho = s.take_step(beta, alpha, s.units[step + 1])
            if calc_var:
                variance = variance + abs(_add_rows(rows, w_of)[0] * (1 / rho)) ** 2
            if s.reason:
                break
        sums = _add_rows(rows, s.x_of, s.w_of)
        x, w = x + sums[0], sums[1:]
    return _widen(x), *s.result(), variance


class _Lsmr(_Ending):
    """The numbers of LSMR between two steps, by the names that Fong and Saunders (2011) gave them."""

    def __init__(self, g, damp, *limits):
        super().__init__(g.b_norm, *limits)
        self.damp = damp
        self.zetabar, self.alphabar, self.rho, self.rhobar, self.cbar, self.sbar = g.alpha * g.beta, g.alpha, 1.0, 1.0, 1.0, 0.0
        self.betadd, self.betad, self.rhodold, self.tautildeold = g.beta, 0.0, 1.0, 0.0
        self.thetatilde, self.zeta, self.d = 0.0, 0.0, 0.0
        self.norm_a2, self.largest, self.smallest = g.alpha ** 2, 0.0, 1e100
        self.normr, self.normar, self.norma, self.conda = g.beta, g.alpha * g.beta, g.alpha, 1.0

    def begin_rows(self, products):
        """Begin with rows whose inner products these are. x_of, h_of and hbar_of: the factors of rows whose sums x, h and
        hbar are, which are the first three."""
        self.products, self.units = products, np.eye(len(products))
        self.x_of, self.h_of, self.hbar_of = self.units[:3]

    def take_step(self, beta, alpha, v_of):
        """Take a step, which has found beta, alpha and the row whose factors are v_of."""
        chat, shat, alphahat = _rotation(self.alphabar, self.damp)
        rhoold, rhobarold, zetaold = self.rho, self.rhobar, self.zeta
        cosine, sine, self.rho = _rotation(alphahat, beta)
        thetanew, self.alphabar = sine * alpha, cosine * alpha
        thetabar, rhotemp = self.sbar * self.rho, self.cbar * self.rho
        self.cbar, self.sbar, self.rhobar = _rotation(rhotemp, thetanew)
        self.zeta, self.zetabar = self.cbar * self.zetabar, -self.sbar * self.zetabar
        self.hbar_of = self.h_of - (thetabar * self.rho / (rhoold * rhobarold)) * self.hbar_of
        self.x_of = self.x_of + (self.zeta / (self.rho * self.rhobar)) * self.hbar_of
        self.h_of = v_of - (thetanew / self.rho) * self.h_of
        self._measure_residual(beta, chat, shat, cosine, sine, thetabar, zetaold)
        self._measure_matrix(beta, alpha, rhobarold, rhotemp)
        self.normar = abs(self.zetabar)
        scale = self.norma * self.normr
        self.end_step(self.normr, self.normar / scale if scale else math.inf, 1 / self.conda,
                      self.norma * math.sqrt(max(self.x_of @ self.products @ self.x_of, 0.0)))

    def _measure_residual(self, beta, chat, shat, cosine, sine, thetabar, zetaold):
        betaacute, betacheck = chat * self.betadd, -shat * self.betadd
        betahat, self.betadd = cosine * betaacute, -sine * betaacute
        thetatildeold = self.thetatilde
        ctilde, stilde, rhotilde = _rotation(self.rhodold, thetabar)
        self.thetatilde, self.rhodold = stilde * self.rhobar, ctilde * self.rhobar
        self.betad = -stilde * self.betad + ctilde * betahat
        self.tautildeold = (zetaold - thetatildeold * self.tautildeold) / rhotilde
        taud = (self.zeta - self.thetatilde * self.tautildeold) / self.rhodold
        self.d += betacheck ** 2
        self.normr = math.sqrt(self.d + (self.betad - taud) ** 2 + self.betadd ** 2)

    def _measure_matrix(self, beta, alpha, rhobarold, rhotemp):
        self.norm_a2 += beta ** 2
        self.norma = math.sqrt(self.norm_a2)
        self.norm_a2 += alpha ** 2
        self.largest = max(self.largest, rhobarold)
        self.smallest = min(self.smallest, rhobarold) if self.done else self.smallest
        self.conda = max(self.largest, rhotemp) / min(self.smallest, rhotemp)

    def result(self):
        """The numbers that lsmr returns between x and the norm of x."""
        return self.reason, self.done, self.normr, self.normar, self.norma, self.conda


def lsmr(A, b, damp=0.0, atol=1e-6, btol=1e-6, conlim=1e8, maxiter=None, show=False, x0=None):
    """The least-squares solution of A @ x = b, damped where damp is not 0, by LSMR.

    Parameters: A: dense or sparse matrix, or LinearOperator. b: array of shape (m,) or (m, 1). damp: number. atol,
        btol: tolerances relative to A and to b. conlim: condition at which it ends. maxiter: int, min(m, n) unless
        given. show: ignored. x0: first guess.
    Returns: tuple: x, why it ended (int), iterations, norm of the residual, norm of A^H r, estimates of the norm and the
        condition of A, norm of x.
    Raises: ValueError where shapes do not fit. TypeError for a damp that is an array: CuPy has x0 in that place.
    Source: scipy.sparse.linalg.lsmr
    """
    if np.ndim(damp):
        raise TypeError(f"damp must be a number, not an array of shape {damp.shape}; a first guess is given as x0=...")
    if np.ndim(damp):
        raise TypeError(f"damp must be a number, not an array of shape {damp.shape}; a first guess is given as x0=...")
    g = _Bidiagonalisation(A, b, x0)
    x = g.x
    s = _Lsmr(g, damp, atol, btol, conlim, min(g.A.shape) if maxiter is None else maxiter)
    vectors = ad.stack([x, g.v, ad.zeros_like(x)])  # x, h and hbar
    if s.normar == 0:
        return _widen(x), *s.result(), _norm(x)
    if g.b_norm == 0:
        return ad.zeros_like(_widen(x)), *s.result(), 0.0
    while not s.is_over():
        steps, rows, products = g.take_steps(s.limit - s.done, vectors)
        s.begin_rows(products)
        for step, (beta, alpha) in enumerate(steps):
            s.take_step(beta, alpha, s.units[step + 3])
            if s.reason:
                break
        vectors = _add_rows(rows, s.x_of, s.h_of, s.hbar_of)
    return _widen(vectors[0]), *s.result(), _norm(vectors[0])
