"""The class of polynomials in one variable."""
import builtins
import functools
import operator

import numpy as np

from .. import _base
from .._base import as_array, ndarray


def _unless_array(operate):
    """Of a reflected operator: an array on the left takes the polynomial for the array of its coefficients."""
    def decorate(method):
        @functools.wraps(method)
        def reflected(self, other):
            is_array = isinstance(other, (ndarray, np.ndarray))
            return operate(as_array(other), self.coeffs) if is_array else method(self, other)
        return reflected
    return decorate


class poly1d:
    """A polynomial in one variable. Its coefficients lie on the server. Leading zeros are left out; for coefficients
    that were computed there this costs a round trip when coeffs, order or len is first asked for, and arithmetic never
    waits.

    Parameters: c_or_r: coefficients, the highest power first, or a polynomial (NumPy's too). r: c_or_r are roots.
    variable: the name of the variable in text, x unless given.
    Raises: ValueError for more than one dimension.
    Source: numpy.poly1d
    """

    __hash__ = None
    __array_ufunc__ = None  # NumPy's numbers leave arithmetic to this class

    def __init__(self, c_or_r, r=False, variable=None):
        if r:
            c_or_r = _poly.poly(c_or_r)
        own = c_or_r.variable if isinstance(c_or_r, (poly1d, np.poly1d)) else "x"
        self._coeffs, self._trimmed = coefficients_of(c_or_r, trim=True)
        if not self._coeffs.size:
            self._coeffs = _base.zeros((1,), self._coeffs.dtype)
        self._variable = own if variable is None else variable

    @property
    def coeffs(self):
        """The coefficients, the highest power first; the first one is not 0 unless it is the only one."""
        if not self._trimmed:
            self._coeffs, self._trimmed = trimmed(self._coeffs)[0], True
        return self._coeffs

    @coeffs.setter
    def coeffs(self, value):
        if value is not self._coeffs:  # p.coeffs += 1 assigns what it has changed
            raise AttributeError("Cannot set attribute")

    c = coef = coefficients = coeffs

    @property
    def variable(self):
        """The variable's name in text."""
        return self._variable

    @property
    def order(self):
        """The highest power."""
        return self.coeffs.size - 1

    o = order

    @property
    def roots(self):
        """The roots: arrayd.roots(self), which says what they cost."""
        return _poly.roots(self)

    r = roots

    def get(self, stream=None):
        """The polynomial as NumPy's.

        Parameters: stream: accepted, as of ndarray.get.
        Returns: numpy.poly1d.
        Source: cupy.poly1d.get
        """
        return np.poly1d(self._coeffs.get(stream=stream), variable=self._variable)

    def set(self, polyin, stream=None):
        """Take over the coefficients and the variable of a NumPy polynomial.

        Parameters: polyin: numpy.poly1d. stream: accepted.
        Raises: TypeError for anything else.
        Source: cupy.poly1d.set
        """
        if not isinstance(polyin, np.poly1d):
            raise TypeError(f"only a numpy.poly1d can be set, not {type(polyin).__name__}")
        self.__init__(polyin)

    def _as_array(self):  # what asarray makes of it
        return self.coeffs

    def __array__(self, dtype=None, copy=None):
        raise TypeError("a polynomial of the server does not turn into a NumPy array by itself: p.get() fetches it")

    def __repr__(self):
        return repr(self.get())

    def __str__(self):
        return str(self.get())

    def __len__(self):
        return self.order

    def __call__(self, val):
        return _poly.polyval(self, val)

    def __neg__(self):
        return made(-self._coeffs, self._trimmed)

    def __pos__(self):
        return self

    def __mul__(self, other):
        return made(self._coeffs * other) if np.isscalar(other) else _poly.polymul(self, poly1d(other))

    @_unless_array(operator.mul)
    def __rmul__(self, other):
        return self * other

    def __add__(self, other):
        return _poly.polyadd(self, poly1d(other))

    @_unless_array(operator.add)
    def __radd__(self, other):
        return self + other

    def __sub__(self, other):
        return _poly.polysub(self, poly1d(other))

    @_unless_array(operator.sub)
    def __rsub__(self, other):
        return _poly.polysub(poly1d(other), self)

    def __pow__(self, val):
        if not np.isscalar(val) or int(val) != val or val < 0:
            raise ValueError("Power to non-negative integers only.")
        result = poly1d([1])
        for _ in builtins.range(val):
            result = self * result
        return result

    def __truediv__(self, other):
        return made(self._coeffs / other) if np.isscalar(other) else _poly.polydiv(self, poly1d(other))

    @_unless_array(operator.truediv)
    def __rtruediv__(self, other):
        return made(other / self.coeffs) if np.isscalar(other) else _poly.polydiv(poly1d(other), self)

    def __eq__(self, other):
        if isinstance(other, ndarray):
            return other == self.coeffs
        if not isinstance(other, poly1d):
            return NotImplemented
        one, two = _poly._padded(self._coeffs, other._coeffs)
        return bool(_base.reduce("all", one == two))

    def __ne__(self, other):
        if isinstance(other, ndarray):
            return other != self.coeffs
        return not self == other

    def __getitem__(self, val):
        c = self._coeffs
        return c[c.size - 1 - val] if 0 <= val < c.size else _base.zeros((), c.dtype)

    def __setitem__(self, key, val):
        if key < 0:
            raise ValueError("Does not support negative powers.")
        if key < self._coeffs.size and not (_base.is_scalar(val) and val != 0):
            self.coeffs  # leading zeros are left out before, not after, a coefficient becomes 0
        if key >= self._coeffs.size:
            whole = _base.zeros((key + 1,), self._coeffs.dtype)
            whole[key + 1 - self._coeffs.size:] = self._coeffs
            self._coeffs, self._trimmed = whole, True
        self._coeffs[self._coeffs.size - 1 - key] = val

    def __iter__(self):
        return iter(self.coeffs)

    def integ(self, m=1, k=0):
        """An antiderivative: polyint(self, m, k).

        Parameters: m: of which order. k: constants of integration.
        Returns: poly1d.
        Raises: ValueError for a negative m, or too few constants.
        Source: numpy.poly1d.integ
        """
        return _poly.polyint(self, m, k)

    def deriv(self, m=1):
        """The derivative: polyder(self, m).

        Parameters: m: of which order.
        Returns: poly1d.
        Raises: ValueError for a negative m.
        Source: numpy.poly1d.deriv
        """
        return _poly.polyder(self, m)


def made(coeffs, is_trimmed=False):
    """A poly1d of coefficients on the server."""
    result = poly1d.__new__(poly1d)
    result._coeffs = coeffs if coeffs.size else _base.zeros((1,), coeffs.dtype)
    result._trimmed, result._variable = is_trimmed, "x"
    return result


def is_polynomial(value):
    """Whether value is a poly1d, ours or NumPy's."""
    return isinstance(value, (poly1d, np.poly1d))


def coefficients_of(p, trim=False):
    """Get the coefficients of a polynomial, number or array, 1-d, and whether they are known not to begin with a 0. trim:
    leave leading zeros out where they can be seen on this side."""
    if isinstance(p, poly1d):
        return p._coeffs, p._trimmed
    a = p.coeffs if isinstance(p, np.poly1d) else p
    host = None if isinstance(a, ndarray) else _on_this_side(a)
    if trim and host is not None and host.ndim <= 1:
        host = np.trim_zeros(np.atleast_1d(host), "f")
        a = host if host.size else np.zeros(1, host.dtype)
    a = as_array(a)
    if a.ndim > 1:
        raise ValueError("Polynomial must be 1d only.")
    return a.reshape(-1), trim and host is not None


def _on_this_side(value):
    try:
        return np.asarray(value)
    except TypeError:  # a list of arrays of the server
        return None


def trimmed(*polynomials):
    """The coefficients of polynomials without leading zeros: one round trip for those that are not known to have
    none."""
    known = [coefficients_of(p, trim=True) for p in polynomials]
    rest = [i for i, (_, done) in enumerate(known) if not done]
    result = [a for a, _ in known]
    for count, i in zip(count_leading_zeros(*(result[i] for i in rest)), rest):
        result[i] = result[i][count:] if result[i].size else _base.zeros((1,), result[i].dtype)
    return result


def count_leading_zeros(*arrays):
    """For each 1-d array how many zeros come before the first other element, the last element not counted: a list, by
    one round trip."""
    if not arrays:
        return []
    counts = _base.zeros((len(arrays),), np.int64)
    for count, a in zip(counts, arrays):
        ends = _base.zeros((builtins.max(a.size, 1),), np.bool_)
        ends[:a.size] = a != 0
        ends[-1] = True
        _base.reduce("argmax", ends, out=count)
    return counts.tolist()


from . import poly as _poly
