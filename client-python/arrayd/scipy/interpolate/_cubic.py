"""Cubic splines, which are piecewise polynomials whose coefficients SciPy finds."""
from .._host import make_function
from ._piecewise import PPoly

pchip_interpolate = make_function("pchip_interpolate", "scipy.interpolate")


class CubicHermiteSpline(PPoly):
    """Piecewise cubic polynomials through values with derivatives.

    Parameters: x: array (n) of places, which ascend. y: array of values. dydx: array of derivatives. axis: of y and dydx that
        goes with x. extrapolate: as PPoly.
    Raises: ValueError where shapes do not fit or x does not ascend.
    Source: scipy.interpolate.CubicHermiteSpline
    """

    def __init__(self, x, y, dydx, axis=0, extrapolate=None):
        self._make(x, y, dydx, axis, extrapolate)


class CubicSpline(CubicHermiteSpline):
    """Piecewise cubic polynomials through values, twice continuously differentiable.

    Parameters: x: array (n) of places, which ascend. y: array of values. axis: of y that goes with x. bc_type: what holds at the
        ends: "not-a-knot", "periodic", "clamped", "natural", or a pair of (order, derivative). extrapolate: as PPoly.
    Raises: ValueError where shapes do not fit, x does not ascend or values are not finite.
    Source: scipy.interpolate.CubicSpline
    """

    def __init__(self, x, y, axis=0, bc_type="not-a-knot", extrapolate=None):
        self._make(x, y, axis, bc_type, extrapolate)


class PchipInterpolator(CubicHermiteSpline):
    """Piecewise cubic polynomials through values, monotonic where the values are.

    Parameters: x: array (n) of places, which ascend. y: real array of values. axis: of y that goes with x. extrapolate: as
        PPoly.
    Raises: ValueError where shapes do not fit, x does not ascend or values are not finite.
    Source: scipy.interpolate.PchipInterpolator
    """

    def __init__(self, x, y, axis=0, extrapolate=None):
        self._make(x, y, axis, extrapolate)


class Akima1DInterpolator(CubicHermiteSpline):
    """Piecewise cubic polynomials through values, by Akima's slopes.

    Parameters: x: array (n) of places, which ascend. y: array of values. axis: of y that goes with x. method: "akima" or
        "makima". extrapolate: as PPoly.
    Raises: ValueError where shapes do not fit, x does not ascend or values are not finite; NotImplementedError for another
        method.
    Source: scipy.interpolate.Akima1DInterpolator
    """

    def __init__(self, x, y, axis=0, *, method="akima", extrapolate=None):
        self._make(x, y, axis, method=method, extrapolate=extrapolate)
