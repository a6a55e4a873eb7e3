"""Rows of distribution.def: checking their parameters, and drawing from them."""
import operator

import numpy as np

from .. import _base, _core
from .._base import ndarray

REAL, COUNT = ("float32", "float64"), ("int64",)


class Row:
    """A row: its wire id and what its parameters must be."""

    def __init__(self, id, *parameters):
        self.id, self.parameters = id, parameters


# As protocol/distribution.def has them; a test compares.
ROWS = {
    "bits": Row(0), "integers": Row(1, ("low", "ANY"), ("high", "ANY")),
    "uniform": Row(2, ("low", "ANY"), ("high", "ANY")), "normal": Row(3, ("loc", "ANY"), ("scale", "NONNEG")),
    "lognormal": Row(4, ("mean", "ANY"), ("sigma", "NONNEG")), "exponential": Row(5, ("scale", "NONNEG")),
    "laplace": Row(6, ("loc", "ANY"), ("scale", "NONNEG")), "logistic": Row(7, ("loc", "ANY"), ("scale", "NONNEG")),
    "gumbel": Row(8, ("loc", "ANY"), ("scale", "NONNEG")), "pareto": Row(9, ("a", "POSITIVE")),
    "power": Row(10, ("a", "POSITIVE")), "rayleigh": Row(11, ("scale", "NONNEG")), "weibull": Row(12, ("a", "NONNEG")),
    "standard_cauchy": Row(13), "triangular": Row(14, ("left", "ANY"), ("mode", "ANY"), ("right", "ANY")),
    "upto1": Row(15),
    "gamma": Row(20, ("shape", "NONNEG"), ("scale", "NONNEG")), "beta": Row(21, ("a", "POSITIVE"), ("b", "POSITIVE")),
    "chisquare": Row(22, ("df", "POSITIVE")), "f": Row(23, ("dfnum", "POSITIVE"), ("dfden", "POSITIVE")),
    "noncentral_chisquare": Row(24, ("df", "POSITIVE"), ("nonc", "NONNEG")),
    "noncentral_f": Row(25, ("dfnum", "POSITIVE"), ("dfden", "POSITIVE"), ("nonc", "NONNEG")),
    "standard_t": Row(26, ("df", "POSITIVE")), "vonmises": Row(27, ("mu", "ANY"), ("kappa", "NONNEG")),
    "wald": Row(28, ("mean", "POSITIVE"), ("scale", "POSITIVE")), "poisson": Row(40, ("lam", "MEAN")),
    "binomial": Row(41, ("n", "NONNEG"), ("p", "UNIT")), "geometric": Row(42, ("p", "ABOVE0")),
    "hypergeometric": Row(43, ("ngood", "NONNEG"), ("nbad", "NONNEG"), ("nsample", "NONNEG")),
    "negative_binomial": Row(44, ("n", "POSITIVE"), ("p", "ABOVE0")), "logseries": Row(45, ("p", "BELOW1")),
    "zipf": Row(46, ("a", "ABOVE1")),
}
# Conditions for RandomState's parameters, which takes less: of logseries as CuPy, of hypergeometric as NumPy and CuPy.
LEGACY_ROWS = {**ROWS, "logseries": Row(45, ("p", "INSIDE")),
               "hypergeometric": Row(43, ("ngood", "NONNEG"), ("nbad", "NONNEG"), ("nsample", "ATLEAST1"))}
# The distributions for which RandomState waits for parameters on the server, and so raises at the call. CuPy does so for
# the first ten. The others are made of numbers that are drawn without these parameters.
LEGACY_LOOKED = {"exponential", "logseries", "negative_binomial", "noncentral_chisquare", "noncentral_f", "power",
                 "rayleigh", "triangular", "weibull", "zipf", "gumbel", "laplace", "lognormal", "normal", "pareto", "wald"}

# Mistakes in values, and NumPy's words for them.
_WRONG = {
    "ANY": (lambda x: np.False_, ""),
    "NONNEG": (lambda x: x < 0, "{0} < 0"),
    "POSITIVE": (lambda x: x <= 0, "{0} <= 0"),
    "UNIT": (lambda x: ~((x >= 0) & (x <= 1)), "{0} < 0, {0} > 1 or {0} is NaN"),
    "ABOVE0": (lambda x: ~((x > 0) & (x <= 1)), "{0} <= 0, {0} > 1 or {0} contains NaNs"),
    "BELOW1": (lambda x: ~((x >= 0) & (x < 1)), "{0} < 0, {0} >= 1 or {0} is NaN"),
    "INSIDE": (lambda x: ~((x > 0) & (x < 1)), "{0} <= 0, {0} >= 1 or {0} is NaN"),
    "ATLEAST1": (lambda x: ~(x >= 1), "{0} < 1 or {0} is NaN"),
    "ABOVE1": (lambda x: ~(x > 1), "{0} <= 1 or {0} is NaN"),
    "MEAN": (lambda x: ~(x >= 0), "{0} < 0 or {0} is NaN"),
}


def is_host(value):
    return not isinstance(value, ndarray)


def real(value, name):
    """A parameter as a float, an array of the server, or a float64 array of this side (where it can be looked at)."""
    if isinstance(value, ndarray):
        if value.dtype.kind == "c":
            raise TypeError(f"{name} must be real, not {value.dtype}")
        return value
    host = np.asarray(value)
    if host.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be a number or an array of numbers, not {type(value).__name__}")
    host = host.astype(np.float64)
    return float(host) if host.ndim == 0 else host


def check(value, name, domain, look=False):
    """ValueError in NumPy's words when a value of this side is outside of its domain. The server looks at its own when
    it draws; with look they are waited for here."""
    if domain == "ANY" or not (look or is_host(value)):
        return
    value = np.asarray(value) if is_host(value) else value
    wrong, words = _WRONG[domain]
    if bool(wrong(value).any()):
        raise ValueError(words.format(name))
    if domain == "MEAN" and bool((value > 9.2e18).any()):
        raise ValueError(f"{name} value too large")


def checked(row, values, look=False):
    """The parameters of a row, checked as far as they are here, or, with look, wherever they are."""
    result = []
    for value, (parameter, domain) in zip(values, row.parameters):
        result.append(real(value, parameter))
        check(result[-1], parameter, domain, look)
    return result


def holds(comparison, a, b, look):
    """Whether a comparison of two parameters holds for an element of theirs. Where one is on the server: False, or,
    with look, it is waited for."""
    if not (is_host(a) and is_host(b)):
        if not look:
            return False
        a, b = (_base.as_array(v) if isinstance(v, np.ndarray) else v for v in (a, b))
    found = comparison(a, b)
    return found if isinstance(found, bool) else bool(found.any())


def shape_of(size, parameters):
    """The shape of the result: what the parameters broadcast to, or size, which that must fit."""
    shapes = [p.shape for p in parameters if not isinstance(p, (int, float))]
    try:
        own = np.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError("shape mismatch: objects cannot be broadcast to a single shape.  Mismatch is between "
                         + " and ".join(map(str, shapes))) from None
    if size is None:
        return own
    shape = _base.shape_tuple(size)
    if any(n < 0 for n in shape):
        raise ValueError("negative dimensions are not allowed")
    if own and (len(own) > len(shape) or np.broadcast_shapes(own, shape) != shape):
        raise ValueError(f"Output size {shape} is not compatible with broadcast dimensions of inputs {own}.")
    return shape


def loop_of(dtype, name, allowed=REAL):
    """dtype as the type that a row is computed in; TypeError in NumPy's words."""
    dtype = np.dtype(float if dtype is None else dtype)
    if dtype.name not in allowed:
        raise TypeError(f"Unsupported dtype {dtype!r} for {name}")
    return dtype


def output(out, size, dtype):
    """size where out is given; its type must be the result's."""
    if out is None:
        return size
    if not isinstance(out, ndarray):
        raise TypeError(f"Supplied output array must be an arrayd.ndarray, not {type(out).__name__}")
    if out.dtype != dtype:
        raise TypeError(f"Supplied output array has the wrong type. Expected {dtype.name}, got {out.dtype.name}")
    if size is not None and _base.shape_tuple(size) != out.shape:
        raise ValueError("size must match out.shape when used together")
    return out.shape


def signed(number):
    """64 bits as parameters have them."""
    number &= (1 << 64) - 1
    return number - (1 << 64) if number >> 63 else number


def draw(bits, name, parameters, size, dtype, out=None):
    """Elements of a row: parameters are numbers or arrays, checked; bits: the BitGenerator."""
    return bits.draw(name, parameters, size, np.dtype(dtype), out)


def draw_counted(bits, name, parameters, size, dtype, out=None):
    """Elements that are functions of a key and their number."""
    shape = shape_of(size, parameters)
    operands = [_base.as_array(p) if isinstance(p, np.ndarray) else p for p in parameters]
    count = _base.product(shape)
    if count == 0:
        return _base.zeros(shape, dtype) if out is None else out
    key, first = bits.take(count)
    params = (ROWS[name].id, signed(key), signed(first))
    if out is not None:
        return _core.call("random", operands, params, out=out, dtype=dtype)
    return _core.call("random", operands, params, dtype=dtype, shape=shape)


# ---- integers ----

def _whole(value, name):
    """A bound as an int, an array of the server, or an array of Python ints."""
    if isinstance(value, ndarray):
        return value if value.dtype.kind in "iub" else value.astype(np.int64)
    host = np.asarray(value)
    if host.ndim == 0:
        return int(host[()])
    if host.dtype.kind not in "biufO":
        raise TypeError(f"{name} must be integers")
    return np.array([int(v) for v in host.flat], object).reshape(host.shape)


def _bounds(low, high, dtype, endpoint):
    """Return the two bounds, which are included; ValueError in NumPy's words. Bounds on the server are compared there."""
    info = np.iinfo(np.uint8 if dtype == bool else dtype)
    most = 1 if dtype == bool else info.max
    from_zero = high is None
    low, high = (0, _whole(low, "high")) if from_zero else (_whole(low, "low"), _whole(high, "high"))
    if not endpoint:
        high = high - 1
    if is_host(low) and np.any(np.less(low, info.min)):
        raise ValueError(f"low is out of bounds for {dtype.name}")
    if is_host(high) and np.any(np.greater(high, most)):
        raise ValueError(f"high is out of bounds for {dtype.name}")
    if is_host(low) and is_host(high) and np.any(np.greater(low, high)):
        raise ValueError(("high < 0" if endpoint else "high <= 0") if from_zero else
                         "low > high" if endpoint else "low >= high")
    return low, high


def integers(bits, low, high, size, dtype, endpoint, name="integers"):
    """Integers from low to high."""
    dtype = np.dtype(np.int64 if dtype is None else dtype)
    if dtype.kind not in "iub":
        raise TypeError(f"Unsupported dtype {dtype!r} for {name}")
    loop = np.dtype(np.uint8) if dtype == bool else dtype
    wide = np.uint64 if loop == np.uint64 else np.int64
    size = None if size is None else _base.shape_tuple(size)
    if size is not None and 0 in size:
        return _base.zeros(size, dtype)
    low, high = (bound.astype(wide) if isinstance(bound, np.ndarray) else bound
                 for bound in _bounds(low, high, dtype, endpoint))
    result = draw(bits, "integers", [low, high], size, loop)
    return result if dtype == loop else result.astype(dtype)


def length(n):
    """A count of elements; ValueError when negative."""
    n = operator.index(n)
    if n < 0:
        raise ValueError("negative dimensions are not allowed")
    return n
