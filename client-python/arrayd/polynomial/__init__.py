"""Polynomials as arrays of coefficients, the lowest power first: what CuPy has of numpy.polynomial."""
from . import polynomial, polyutils

__all__ = ["polynomial", "polyutils"]
