"""Interpolation: scipy.interpolate's functions and classes.

SciPy, which has to be installed, finds the coefficients of splines and polynomials on this side; their values are
computed on the server. RBFInterpolator and NearestNDInterpolator are made on the server altogether.
"""
from ._bspline import BSpline, NdBSpline, make_interp_spline, make_lsq_spline, splantider, splder
from ._cubic import (Akima1DInterpolator, CubicHermiteSpline, CubicSpline, PchipInterpolator, pchip_interpolate)
from ._fitpack import InterpolatedUnivariateSpline, LSQUnivariateSpline, UnivariateSpline
from ._grid import RegularGridInterpolator, interpn
from ._line import interp1d
from ._piecewise import BPoly, NdPPoly, PPoly
from ._polynomials import (BarycentricInterpolator, KroghInterpolator, barycentric_interpolate, krogh_interpolate)
from ._radial import RBFInterpolator
from ._scattered import CloughTocher2DInterpolator, LinearNDInterpolator, NearestNDInterpolator

pchip = PchipInterpolator
__all__ = sorted(name for name in globals() if not name.startswith("_"))
