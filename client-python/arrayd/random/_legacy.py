"""Generators that RandomState draws from: cuRAND's host API as CuPy uses it, and XOR128 where CuPy has algorithms of
its own."""
import numpy as np

from .. import _base, _core
from .._array.indexing import where
from .._array.manipulation import broadcast_to
from . import _curand
from ._bits import BitGenerator
from ._draw import draw_counted, shape_of

# The constants of cupy.cuda.curand: CURAND_RNG_PSEUDO_DEFAULT, XORWOW and MRG32K3A.
METHODS = {None: _curand.XORWOW, 100: _curand.XORWOW, 101: _curand.XORWOW, 121: _curand.MRG32K3A}
_exp, _log, _sqrt, _tan = (_core.ufuncs[name] for name in ("exp", "log", "sqrt", "tan"))
_OF_ELEMENTS = {*_curand.ELEMENTS, "logistic", "negative_binomial"} - {"uniform"}
_WHOLE = ("poisson", "binomial", "geometric", "hypergeometric", "logseries", "zipf")
_SUPPLEMENT = 1024  # integers drawn at least when some are to be drawn again


class LegacyGenerator(BitGenerator):
    """Numbers of a seed of 64 bits. method: one of METHODS; with any other what cuRAND draws comes from Philox4x32."""

    def __init__(self, seed, method):
        super().__init__(seed)
        if not isinstance(seed, int):
            seed = int(self.seed_seq.generate_state(1, np.uint64)[0])
        kind = METHODS.get(method)
        self._states = None if kind is None else _curand.States(kind, seed, _curand.HOST_STATES[kind], _curand.HOST)
        self._seed = seed  # of the next element of those that XOR128 draws

    def take_seed(self, count):
        """The seed of the first of so many elements, each of which has its own."""
        with self._lock:
            first = self._seed
            self._seed = (first + count) % ((1 << 64) - 1)
            return first

    def draw(self, name, parameters, size, dtype, out=None):
        """Elements of a row of distribution.def."""
        if name in _OF_ELEMENTS:
            made = self._draw_elements(name, parameters, shape_of(size if out is None else out.shape, parameters))
            return _base.give(made.astype(dtype, copy=False), out)
        make = getattr(self, "_make_" + name, None) if self._states is not None else None
        if make is None:
            return draw_counted(self, name, parameters, size, dtype, out)
        shape = shape_of(size if out is None else out.shape, parameters)
        return _base.give(make(shape, dtype, *(_loop_value(p, dtype) for p in parameters)), out)

    def keys(self, shape):
        """Numbers whose order is a random one."""
        if self._states is None or len(shape) != 1:
            return super().keys(shape)
        return self._words(shape, np.dtype(np.uint32)).view(np.int32)

    def _draw_elements(self, name, parameters, shape):
        count = _base.product(shape)
        if name == "negative_binomial":
            n, p = (_base.as_array(v, np.float64) for v in parameters)
            return self._draw_elements("poisson", [self._draw_elements("gamma", [n, (1 - p) / p], shape)], shape)
        if name == "logistic":
            x = _curand.draw_elements("uniform", [0.0, 1.0], shape, self.take_seed(count), np.float64)
            return _log((1.0 - x) / x) * parameters[1] + parameters[0]
        loop = np.int64 if name in _WHOLE else np.float64
        return _curand.draw_elements(name, parameters, shape, self.take_seed(count), loop)

    # ---- cuRAND's functions ----

    def _words(self, shape, dtype):
        """Random bits: 64 are two words, the low one first."""
        count = _base.product(shape) * (dtype.itemsize // 4)
        return self._states.draw("bits", [], (count,), np.dtype(np.uint32)).view(dtype).reshape(shape)

    def _positive(self, shape, dtype):
        """Uniform on (0, 1]."""
        return self._states.draw("upto1", [], shape, dtype)

    def _normal(self, name, shape, dtype, *parameters):
        """Draw normal numbers in pairs: of an odd number the last is left out. CuPy hands numbers to cuRAND as float32."""
        count = _base.product(shape)
        with np.errstate(over="ignore"):
            rounded = [float(np.float32(p)) for p in parameters]
        return self._states.draw(name, rounded, (count + count % 2,), dtype)[:count].reshape(shape)

    # ---- rows of distribution.def, as CuPy makes them from these ----

    def _make_bits(self, shape, dtype):
        return self._words(shape, dtype)

    def _make_integers(self, shape, dtype, low, high):
        """Words modulo the number of integers, without those that would make some of them likelier."""
        if not (isinstance(low, int) and isinstance(high, int)):
            return self._integers_between(shape, dtype, low, high)
        most = high - low
        if most == 0:
            return _base.zeros(shape, dtype) + low
        word = np.dtype(np.uint32 if most < 1 << 32 else np.uint64)
        range_of_word = 1 << 8 * word.itemsize
        made = self._words((_base.product(shape),), word)
        if most & most + 1 == 0:
            made &= most
        else:
            self._draw_again(made, range_of_word - 1 - range_of_word % (most + 1))
            made %= most + 1
        made = made.astype(dtype)
        return (made + low if low else made).reshape(shape)

    def _draw_again(self, made, limit):
        """Replace what is above limit, in order, by numbers drawn for that."""
        wrong = (made > limit).nonzero()[0]
        while wrong.size:
            more = self._words((max(2 * wrong.size, _SUPPLEMENT),), made.dtype)
            right = more[more <= limit][:wrong.size]
            made[wrong[:right.size]] = right
            wrong = wrong[right.size:]

    def _integers_between(self, shape, dtype, low, high):
        """Draw integers between bounds that are arrays. As in CuPy, numbers that are drawn again fill the places in
        order, each by the limit of the place that it was drawn for."""
        low, high = (_base.as_array(bound) if isinstance(bound, np.ndarray) else bound for bound in (low, high))
        high = _base.as_array(high)
        if bool((high < low).any()):
            raise ValueError("low >= high")
        most = high - low
        word = np.dtype(np.uint32 if most.dtype.itemsize <= 4 else np.uint64)
        most = broadcast_to(most.astype(word), shape).reshape(-1)
        made, top = self._words(most.shape, word), np.iinfo(word).max
        limit = top - (top - most) % (most + 1)
        wrong = (made > limit).nonzero()[0]
        limit = limit[wrong]
        while wrong.size:
            more = self._words(wrong.shape, word)
            right = more[more <= limit]
            made[wrong[:right.size]] = right
            wrong, limit = wrong[right.size:], limit[right.size:]
        made = where(most == top, made, made % (most + 1)).astype(dtype).reshape(shape)
        return made + (low if isinstance(low, int) else low.astype(dtype))

    def _make_uniform(self, shape, dtype, low, high):
        return self._states.draw("uniform", [low, high], shape, dtype)

    def _make_normal(self, shape, dtype, loc, scale):
        if isinstance(scale, _base.ndarray):
            return self._normal("normal", shape, dtype, 0.0, 1.0) * scale + loc
        if isinstance(loc, _base.ndarray):
            return self._normal("normal", shape, dtype, 0.0, scale) + loc
        return self._normal("normal", shape, dtype, loc, scale)

    def _make_lognormal(self, shape, dtype, mean, sigma):
        if isinstance(mean, _base.ndarray) or isinstance(sigma, _base.ndarray):
            return _exp(self._make_normal(shape, dtype, mean, sigma))
        return self._normal("lognormal", shape, dtype, mean, sigma)

    def _make_exponential(self, shape, dtype, scale):
        return -_log(self._positive(shape, dtype)) * scale

    def _make_laplace(self, shape, dtype, loc, scale):
        x = self._positive(shape, dtype)
        return loc + scale * where(x <= 0.5, _log(x + x), -_log(x + x - 1.0))

    def _make_gumbel(self, shape, dtype, loc, scale):
        return loc - _log(-_log(self._positive(shape, dtype))) * scale

    def _make_pareto(self, shape, dtype, a):
        return _exp(-_log(self._positive(shape, dtype)) / a) - 1

    def _make_power(self, shape, dtype, a):
        return (1 - _exp(_log(self._positive(shape, dtype)))) ** (1.0 / a)

    def _make_rayleigh(self, shape, dtype, scale):
        return _sqrt(_log(self._positive(shape, dtype)) * -2.0) * scale

    def _make_weibull(self, shape, dtype, a):
        inverse = np.inf if isinstance(a, float) and a == 0 else 1.0 / a
        return (-_log(self._positive(shape, dtype))) ** inverse

    def _make_standard_cauchy(self, shape, dtype):
        return _tan(np.pi * (self._make_uniform(shape, dtype, 0.0, 1.0) - 0.5))

    def _make_triangular(self, shape, dtype, left, mode, right):
        x, base = self._make_uniform(shape, dtype, 0.0, 1.0), right - left
        return where(x <= (mode - left) / base, left + _sqrt(x * ((mode - left) * base)),
                     right - _sqrt((1.0 - x) * ((right - mode) * base)))

    def _make_wald(self, shape, dtype, mean, scale):
        x, u = self._make_normal(shape, dtype, 0.0, 1.0), self._make_uniform(shape, dtype, 0.0, 1.0)
        y = mean * x * x
        x = mean + mean / (2 * scale) * (y - _sqrt(4 * scale * y + y * y))
        return where(u > mean / (mean + x), mean * mean / x, x)

    # ---- states ----

    @property
    def state(self):
        """The place in the stream, as a dict that can be assigned to go back there."""
        found = BitGenerator.state.fget(self)
        found["state"]["curand"] = None if self._states is None else self._states.state
        found["state"]["seed"] = self._seed
        return found

    @state.setter
    def state(self, value):
        BitGenerator.state.fset(self, value)
        self._seed = int(value["state"]["seed"])
        if self._states is not None:
            self._states.state = value["state"]["curand"]

    def __getstate__(self):
        return {"seed_seq": self.seed_seq, "generator": None if self._states is None else self._states.generator,
                "state": self.state}

    def __setstate__(self, value):
        kind = value["generator"]
        self._states = None if kind is None else _curand.States(kind, 0, _curand.HOST_STATES[kind], _curand.HOST)
        super().__setstate__(value)


def _loop_value(value, dtype):
    """A parameter of a row: arrays are of the type that it is computed in, as in CuPy."""
    if isinstance(value, (np.ndarray, _base.ndarray)) and dtype.kind == "f":
        return _base.as_array(value, dtype)
    return value

