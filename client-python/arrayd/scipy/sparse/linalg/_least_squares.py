"""Least squares by products with A and its adjoint: LSQR and LSMR, on the bidiagonalisation of Golub and Kahan."""
import math

import numpy as np

import arrayd as ad

from ...._base import matrix_product
from ._operators import aslinearoperator
from ._systems import _multiply_inner
from ._systems import _norm as _remote_norm

_MOST_STEPS = 12  # that are taken before their numbers are fetched


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
    n, x, damped = g.A.shape[1], g.x, damp ** 2
    limit = 2 * n if iter_lim is None else iter_lim
    w, variance = g.v.reshape(1, n), ad.zeros(n, g.dtype.char.lower())
    alpha, rhobar, phibar = g.alpha, g.alpha, g.beta
    r1norm = r2norm = g.beta
    arnorm, anorm, acond, ddnorm, res2, xxnorm, xnorm = g.alpha * g.beta, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    c2, s2, z, istop, itn = -1.0, 0.0, 0.0, 0, 0
    if arnorm == 0:
        return _widen(x), 0, 0, r1norm, r2norm, anorm, acond, arnorm, xnorm, variance
    eps = float(np.finfo(np.float64).eps)
    while itn < limit and istop == 0:
        steps, rows, products = g.take_steps(limit - itn, w)
        units = np.eye(len(products))
        x_of, w_of = 0 * units[0], units[0]  # factors of rows whose sums are added to x, and are w
        for step, (beta, next_alpha) in enumerate(steps):
            itn += 1
            anorm = math.sqrt(anorm ** 2 + alpha ** 2 + beta ** 2 + damped)
            alpha = next_alpha
            rhobar1, psi = rhobar, 0.0
            if damp:
                rhobar1 = math.hypot(rhobar, damp)
                psi, phibar = damp / rhobar1 * phibar, rhobar / rhobar1 * phibar
            cosine, sine, rho = _rotation(rhobar1, beta)
            theta, rhobar = sine * alpha, -cosine * alpha
            phi, phibar = cosine * phibar, sine * phibar
            if calc_var:
                variance = variance + abs(_add_rows(rows, w_of)[0] * (1 / rho)) ** 2
            x_of = x_of + (phi / rho) * w_of
            ddnorm += max(float(w_of @ products @ w_of), 0.0) / rho ** 2
            w_of = units[step + 1] - (theta / rho) * w_of
            gamma_bar, rhs = -c2 * rho, phi - s2 * rho * z
            zbar = rhs / gamma_bar if gamma_bar else 0.0
            xnorm = math.sqrt(xxnorm + zbar ** 2)
            gamma = math.hypot(gamma_bar, theta)
            c2, s2, z = gamma_bar / gamma, theta / gamma, rhs / gamma
            xxnorm += z * z
            acond, res2 = anorm * math.sqrt(ddnorm), res2 + psi ** 2
            rnorm = math.sqrt(phibar ** 2 + res2)
            arnorm = alpha * abs(sine * phi)
            squared = rnorm ** 2 - damped * xxnorm
            r1norm, r2norm = _sign(squared) * math.sqrt(abs(squared)), rnorm
            test1, test2, test3 = rnorm / g.b_norm, arnorm / (anorm * rnorm + eps), 1 / (acond + eps)
            bound = btol + atol * anorm * xnorm / g.b_norm
            istop = _why_end([(itn >= limit, 7), (1 + test3 <= 1, 6), (1 + test2 <= 1, 5),
                              (1 + test1 / (1 + anorm * xnorm / g.b_norm) <= 1, 4),
                              (bool(conlim) and test3 <= 1 / conlim, 3), (test2 <= atol, 2), (test1 <= bound, 1)])
            if istop:
                break
        sums = _add_rows(rows, x_of, w_of)
        x, w = x + sums[0], sums[1:]
    return _widen(x), istop, itn, r1norm, r2norm, anorm, acond, arnorm, xnorm, variance


def _why_end(tests):
    """The number of the last test that is true, or 0."""
    return next((number for true, number in reversed(tests) if true), 0)


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
    g = _Bidiagonalisation(A, b, x0)
    x = g.x
    limit = min(g.A.shape) if maxiter is None else maxiter
    zetabar, alphabar, rho, rhobar, cbar, sbar = g.alpha * g.beta, g.alpha, 1.0, 1.0, 1.0, 0.0
    vectors = ad.stack([x, g.v, ad.zeros_like(x)])  # x, h and hbar
    betadd, betad, rhodold, tautildeold, thetatilde, zeta, d = g.beta, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0
    norm_a2, largest, smallest = g.alpha ** 2, 0.0, 1e100
    normr, normar, norma, conda, normx, istop, itn = g.beta, g.alpha * g.beta, g.alpha, 1.0, 0.0, 0, 0
    if normar == 0:
        return _widen(x), 0, 0, normr, normar, norma, conda, _norm(x)
    if g.b_norm == 0:
        return ad.zeros_like(_widen(x)), 0, 0, normr, normar, norma, conda, 0.0
    while itn < limit and istop == 0:
        steps, rows, products = g.take_steps(limit - itn, vectors)
        units = np.eye(len(products))
        x_of, h_of, hbar_of = units[:3]  # factors of rows whose sums these three are
        for step, (beta, alpha) in enumerate(steps):
            itn += 1
            chat, shat, alphahat = _rotation(alphabar, damp)
            rhoold = rho
            cosine, sine, rho = _rotation(alphahat, beta)
            thetanew, alphabar = sine * alpha, cosine * alpha
            rhobarold, zetaold, thetabar, rhotemp = rhobar, zeta, sbar * rho, cbar * rho
            cbar, sbar, rhobar = _rotation(cbar * rho, thetanew)
            zeta, zetabar = cbar * zetabar, -sbar * zetabar
            hbar_of = h_of - (thetabar * rho / (rhoold * rhobarold)) * hbar_of
            x_of = x_of + (zeta / (rho * rhobar)) * hbar_of
            h_of = units[step + 3] - (thetanew / rho) * h_of
            betaacute, betacheck = chat * betadd, -shat * betadd
            betahat, betadd = cosine * betaacute, -sine * betaacute
            thetatildeold = thetatilde
            ctilde, stilde, rhotilde = _rotation(rhodold, thetabar)
            thetatilde, rhodold = stilde * rhobar, ctilde * rhobar
            betad = -stilde * betad + ctilde * betahat
            tautildeold = (zetaold - thetatildeold * tautildeold) / rhotilde
            taud = (zeta - thetatilde * tautildeold) / rhodold
            d += betacheck ** 2
            normr = math.sqrt(d + (betad - taud) ** 2 + betadd ** 2)
            norm_a2 += beta ** 2
            norma = math.sqrt(norm_a2)
            norm_a2 += alpha ** 2
            largest = max(largest, rhobarold)
            smallest = min(smallest, rhobarold) if itn > 1 else smallest
            conda = max(largest, rhotemp) / min(smallest, rhotemp)
            normar, normx = abs(zetabar), math.sqrt(max(x_of @ products @ x_of, 0.0))
            test1 = normr / g.b_norm
            test2 = normar / (norma * normr) if norma * normr else np.inf
            test3, bound = 1 / conda, btol + atol * norma * normx / g.b_norm
            istop = _why_end([(itn >= limit, 7), (1 + test3 <= 1, 6), (1 + test2 <= 1, 5),
                              (1 + test1 / (1 + norma * normx / g.b_norm) <= 1, 4),
                              (bool(conlim) and test3 <= 1 / conlim, 3), (test2 <= atol, 2), (test1 <= bound, 1)])
            if istop:
                break
        vectors = _add_rows(rows, x_of, h_of, hbar_of)
    return _widen(vectors[0]), istop, itn, normr, normar, norma, conda, _norm(vectors[0])
