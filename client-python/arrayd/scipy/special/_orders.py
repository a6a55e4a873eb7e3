"""Functions that are made of several rows, or take orders apart from arguments."""
import math

import numpy as np

from ... import _core
from ..._array.indexing import where
from ..._base import as_array, as_operand

_u = _core.ufuncs


def ellipj(u, m):
    """Jacobi's elliptic functions of u with parameter m.

    Parameters: u: argument. m: parameter, 0..1; NaN elsewhere.
    Returns: tuple of ndarrays: sn, cn, dn and the amplitude.
    Raises: ValueError: the shapes do not fit.
    Source: scipy.special.ellipj
    """
    u, m = as_operand(u), as_operand(m)
    return *_u["ellipj_sn_cn"](u, m), *_u["ellipj_dn_am"](u, m)


def lambertw(z, k=0, tol=1e-8):
    """Branch k of the function w with w * exp(w) = z.

    Parameters: z: array. k: number of the branch, an integer or several. tol: where the iteration ends.
    Returns: array, complex128.
    Raises: ValueError: the shapes do not fit.
    Source: scipy.special.lambertw
    """
    return _u["lambertw"](as_array(z, np.complex128), as_array(k, np.int64), as_array(tol, np.float64))


def zeta(x, q=None, out=None):
    """The sum of (k + q)**-x over k = 0, 1, ...: the zeta function of Hurwitz, of Riemann where q is 1.

    Parameters: x: array; NaN below 1 with a q. q: array, None for 1. out: an array for the result, or None.
    Returns: array.
    Raises: ValueError: the shapes do not fit.
    Source: scipy.special.zeta
    """
    x = as_operand(x)
    if q is not None:
        return _u["zeta"](x, as_operand(q), out=out)
    return _u["add"](_u["zetac"](x), 1, out=out)


def polygamma(n, x):
    """The n-th derivative of the digamma function.

    Parameters: n: array of integers, not negative. x: array.
    Returns: array.
    Raises: ValueError: the shapes do not fit.
    Source: scipy.special.polygamma
    """
    n, x = as_array(n), as_array(x)
    derivative = (-1.0) ** (n + 1) * _u["gamma"](n + 1.0) * _u["zeta"](n + 1, x)
    return where(n == 0, _u["psi"](x), derivative)


def spherical_yn(n, z, derivative=False):
    """Spherical Bessel function of the second kind, or its derivative.

    Parameters: n: order, whole numbers from 0 to 10,000. z: array, real. derivative: whether the derivative is
        meant.
    Returns: array, float64.
    Raises: NotImplementedError: z is complex. ValueError: the shapes do not fit.
    Source: scipy.special.spherical_yn
    Differs: z is real.
    """
    n, z = as_array(n), as_array(z)
    if z.dtype.kind == "c":
        raise NotImplementedError("spherical_yn: z must be real, not complex")
    n, z = n.astype(np.float64), z.astype(np.float64)
    value = _u["spherical_y"](n, z)
    if not derivative:
        return value
    lower = where(n == 0, -_u["spherical_y"](n + 1, z), _u["spherical_y"](where(n == 0, n, n - 1), z))
    return where(n == 0, lower, lower - (n + 1) / z * value)


def sph_harm_y(n, m, theta, phi):
    """Spherical harmonic of degree n and order m.

    Parameters: n: degree, not negative. m: order. theta: polar angle. phi: azimuth.
    Returns: array, complex128.
    Raises: ValueError: the shapes do not fit.
    Source: scipy.special.sph_harm_y
    Differs: there are no derivatives.
    """
    n, m, theta, phi = (as_array(value, np.float64) for value in (n, m, theta, phi))
    order = _u["absolute"](m)
    norm = _u["exp"]((_u["gammaln"](n - order + 1) - _u["gammaln"](n + order + 1)) / 2)
    size = _u["sqrt"]((2 * n + 1) / (4 * math.pi)) * norm * _u["lpmv"](order, n, _u["cos"](theta))
    size = where((m < 0) & (m % 2 != 0), -size, size)
    return where(order > n, 0, size) * _u["exp"](1j * (m * phi))


def sph_harm(m, n, theta, phi):
    """Spherical harmonic of degree n and order m, with the angles as SciPy named them before 1.15.

    Parameters: m: order. n: degree, not negative. theta: azimuth. phi: polar angle.
    Returns: array, complex128.
    Raises: ValueError: the shapes do not fit.
    Source: cupyx.scipy.special.sph_harm
    """
    return sph_harm_y(n, m, phi, theta)
