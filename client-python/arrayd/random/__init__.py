"""Random numbers, made where the arrays are.

    rng = ad.random.default_rng(7)
    x = rng.standard_normal((1000, 1000), dtype="float32")
    ad.random.seed(7); y = ad.random.rand(3)

Every number is a function of the seed and of what was drawn before it: integers and uniform numbers are the same on every
backend, others but for rounding. default_rng draws from Philox4x32, which can be computed where the numbers are used, and
whose numbers CuPy does not have. XORWOW, MRG32k3a and Philox4x3210 are cuRAND's generators: a Generator of one, and the
functions of this module and RandomState, give CuPy's numbers for its seed.
"""
import hashlib as _hashlib
import os as _os
import threading as _threading
import types as _types

import numpy as _np

from .. import _base
from .._base import as_array as _as_array
from . import _choice as _choose
from ._bits import BitGenerator, MRG32k3a, Philox4x32, Philox4x3210, XORWOW
from ._distributions import Distributions as _Distributions, trials_and_outcomes as _trials_and_outcomes
from ._legacy import LegacyGenerator as _LegacyGenerator
from ._draw import LEGACY_LOOKED as _LEGACY_LOOKED, LEGACY_ROWS as _LEGACY_ROWS, integers as _integers

__all__ = ["BitGenerator", "Generator", "MRG32k3a", "Philox4x32", "Philox4x3210", "RandomState", "XORWOW", "default_rng",
           "get_random_state", "reset_states", "seed", "set_random_state"]


class Generator(_Distributions):
    """Draws from distributions, with the interface of numpy.random.Generator.

    Parameters: bit_generator: where the random bits come from.
    Raises: TypeError for anything but a BitGenerator.
    Source: cupy.random.Generator
    """

    def __init__(self, bit_generator):
        if not isinstance(bit_generator, BitGenerator):
            raise TypeError(f"a BitGenerator is needed, not {type(bit_generator).__name__}")
        self.bit_generator = bit_generator

    def __repr__(self):
        return f"Generator({type(self.bit_generator).__name__})"

    def random(self, size=None, dtype=float, out=None, *, device=None):
        """Uniform on [0, 1): multiples of 2**-53, or of 2**-24 in float32.

        Parameters: size: shape. dtype: float32 or float64. out: array to fill. device: as ad.empty.
        Returns: ndarray.
        Raises: TypeError for another dtype.
        Source: cupy.random.Generator.random
        """
        if device is not None:
            return _base.on_device(device, self.random, size=size, dtype=dtype, out=out)
        return self._real("uniform", (0.0, 1.0), size, dtype, out, "random")

    def integers(self, low, high=None, size=None, dtype=None, endpoint=False, *, device=None):
        """Integers from low to high, high left out unless endpoint is set; from 0 to low when there is no high.

        Parameters: low, high: numbers or arrays. size: shape. dtype: integer type or bool, int64 unless given.
        endpoint: include high. device: as ad.empty.
        Returns: ndarray.
        Raises: ValueError for bounds outside of the type, or low >= high.
        Source: cupy.random.Generator.integers
        """
        if device is not None:
            return _base.on_device(device, self.integers, low, high, size=size, dtype=dtype, endpoint=endpoint)
        return _integers(self.bit_generator, low, high, size, dtype, endpoint)

    def bytes(self, length):
        """Random bytes, of this process.

        Parameters: length: how many.
        Returns: bytes.
        Raises: TypeError for a length that is no int.
        Source: numpy.random.Generator.bytes
        """
        return _choose.as_bytes(self.bit_generator, length)

    def choice(self, a, size=None, replace=True, p=None, axis=0, shuffle=True):
        """Elements of an array, or of range(a), taken at random.

        Parameters: a: array or int. size: shape. replace: whether one may come again. p: probabilities of the elements,
        equal unless given. axis: the axis of a. shuffle: ignored, the result is always in random order.
        Returns: ndarray.
        Raises: ValueError for an empty a, wrong probabilities, or a larger sample than there is.
        Source: numpy.random.Generator.choice
        """
        words = ("a must be a positive integer unless no samples are taken",
                 "a cannot be empty unless no samples are taken")
        return _choose.choice(self.bit_generator, a, size, replace, p, axis, words)

    def shuffle(self, x, axis=0):
        """Put an array in random order along an axis, in place.

        Parameters: x: ndarray. axis: the axis.
        Returns: None.
        Raises: TypeError for anything else; AxisError.
        Source: numpy.random.Generator.shuffle
        """
        _choose.shuffle(self.bit_generator, x, axis)

    def permutation(self, x, axis=0):
        """A copy in random order along an axis, or range(x) in random order.

        Parameters: x: array or int. axis: the axis.
        Returns: ndarray.
        Raises: AxisError.
        Source: numpy.random.Generator.permutation
        """
        return _choose.permutation(self.bit_generator, x, axis)

    def permuted(self, x, axis=None, out=None):
        """A copy of which each lane along an axis is in a random order of its own.

        Parameters: x: array. axis: the axis; None: all elements. out: array to fill.
        Returns: ndarray.
        Raises: AxisError.
        Source: numpy.random.Generator.permuted
        """
        return _choose.permuted(self.bit_generator, x, axis, out)

    def spawn(self, n_children):
        """Independent generators.

        Parameters: n_children: how many.
        Returns: list of Generator.
        Source: numpy.random.Generator.spawn
        """
        return [Generator(bits) for bits in self.bit_generator.spawn(n_children)]


class RandomState(_Distributions):
    """Draws from distributions, with the interface of numpy.random.RandomState.

    As in CuPy, exponential, logseries, negative_binomial, noncentral_chisquare, noncentral_f, power, rayleigh,
    triangular, weibull and zipf wait for parameters that are arrays on the server, so that the call raises their error;
    so do gumbel, laplace, lognormal, normal, pareto and wald.

    Parameters: seed: None (taken from the operating system) or an int or array of ints from 0 to 2**64 - 1 (NumPy:
    2**32 - 1). method: one of cuRAND's constants: 100 or 101 (XORWOW), 121 (MRG32k3a).
    Raises: ValueError for another int; TypeError for another seed.
    Differs: what CuPy draws by cuRAND with another method comes from Philox4x32, not from that method.
    Source: cupy.random.RandomState
    """

    _rows, _looked = _LEGACY_ROWS, _LEGACY_LOOKED

    def __init__(self, seed=None, method=None):
        self._method = method
        self.seed(seed)

    def seed(self, seed=None):
        """Begin again.

        Parameters: seed: as of the class.
        Returns: None.
        Raises: as of the class.
        Source: cupy.random.RandomState.seed
        """
        self.bit_generator = _LegacyGenerator(_seed_of(seed), self._method)

    def rand(self, *size, dtype=float):
        """Uniform on [0, 1).

        Parameters: size: the shape, one argument for each dimension. dtype: float32 or float64.
        Returns: ndarray.
        Raises: ValueError for a negative dimension; TypeError for another dtype.
        Source: cupy.random.rand
        """
        return self.random_sample(size, dtype)

    def randn(self, *size, dtype=float):
        """Normal with mean 0 and standard deviation 1.

        Parameters: size: the shape, one argument for each dimension. dtype: float32 or float64.
        Returns: ndarray.
        Raises: ValueError for a negative dimension; TypeError for another dtype.
        Source: cupy.random.randn
        """
        return self.standard_normal(size, dtype)

    def random_sample(self, size=None, dtype=float, *, device=None):
        """Uniform on [0, 1): multiples of 2**-53, or of 2**-24 in float32.

        Parameters: size: shape. dtype: float32 or float64. device: as ad.empty.
        Returns: ndarray.
        Raises: TypeError for another dtype.
        Source: cupy.random.random_sample
        """
        if device is not None:
            return _base.on_device(device, self.random_sample, size=size, dtype=dtype)
        return self._real("uniform", (0.0, 1.0), size, dtype, None, "random")

    random = random_sample

    def standard_gamma(self, shape, size=None, dtype=float):
        """Gamma with scale 1.

        Parameters: shape: not negative. size: shape. dtype: any real type or bool.
        Returns: ndarray.
        Raises: ValueError for shape < 0.
        Source: cupy.random.standard_gamma
        """
        return self._cast("gamma", (shape, 1.0), size, dtype, called="standard_gamma")

    def logseries(self, p, size=None, dtype=None):
        """Logarithmic series: probability of k is p**k/k up to a factor.

        Parameters: p: in (0, 1). size: shape. dtype: any real type or bool.
        Returns: ndarray of int64 unless dtype is given.
        Raises: ValueError for p outside of (0, 1).
        Differs: from NumPy, which takes p = 0 (as CuPy).
        Source: cupy.random.logseries
        """
        return super().logseries(p, size, dtype)

    def hypergeometric(self, ngood, nbad, nsample, size=None, dtype=None):
        """Good ones among nsample taken from ngood + nbad, without putting back.

        Parameters: ngood, nbad: not negative. nsample: from 1 to ngood + nbad. size: shape. dtype: any real type or
        bool.
        Returns: ndarray of int64 unless dtype is given.
        Raises: ValueError for other numbers, or ngood + nbad of 2e9 or more.
        Differs: from CuPy, which gives ngood for nsample > ngood + nbad (as NumPy).
        Source: cupy.random.hypergeometric
        """
        return super().hypergeometric(ngood, nbad, nsample, size, dtype)

    def randint(self, low, high=None, size=None, dtype=None):
        """Integers from low to high, high left out; from 0 to low when there is no high.

        Parameters: low, high: numbers or arrays. size: shape. dtype: integer type or bool, int64 unless given.
        Returns: ndarray.
        Raises: ValueError for bounds outside of the type, or low >= high.
        Differs: from CuPy, which takes the distance of bounds that are int32 arrays in int32, where it may overflow.
        Source: cupy.random.randint
        """
        return _integers(self.bit_generator, low, high, size, dtype, False, "randint")

    def multinomial(self, n, pvals, size=None, dtype=None):
        """How often each of several outcomes comes in n trials.

        Parameters: n: trials, a number or an array. pvals: the outcomes' probabilities; the last one is what is left.
        size: shape of the vectors' array. dtype: an integer type.
        Returns: ndarray of shape size + (len(pvals),), int64 unless dtype is given.
        Raises: ValueError for n < 0, probabilities outside of [0, 1], or too large a sum.
        Differs: where n is an array, or there are 2**26 trials or more, binomial numbers are drawn, not every trial.
        Source: cupy.random.multinomial
        """
        trials, p = _trials_and_outcomes(n, pvals)
        made = _choose.count_outcomes(self.bit_generator, trials, p, () if size is None else _base.shape_tuple(size))
        return super().multinomial(n, pvals, size, dtype) if made is None else made.astype(dtype or _np.int64, copy=False)

    def multivariate_normal(self, mean, cov, size=None, check_valid="ignore", tol=1e-8, method="cholesky", dtype=float):
        """Normal vectors with the given covariance.

        Parameters: mean: of N numbers. cov: N by N, symmetric. size: shape of the vectors' array. check_valid: 'warn',
        'raise' or 'ignore' for a cov that is not positive semidefinite. tol: how far it may be from that. method:
        'svd', 'eigh' or 'cholesky', which factor cov in this process; by 'cholesky' a cov that is not positive definite
        is an error unless check_valid is 'ignore'. dtype: float32 or float64.
        Returns: ndarray of shape size + (N,).
        Raises: ValueError for wrong dimensions; numpy.linalg.LinAlgError for a cov that cholesky cannot factor.
        Differs: from CuPy in signs where the method is 'svd' or 'eigh', and by giving numbers for a singular cov.
        Source: cupy.random.multivariate_normal
        """
        return super().multivariate_normal(mean, cov, size, check_valid, tol, method, dtype)

    def random_integers(self, low, high=None, size=None):
        """Integers from low to high, both included; from 1 to low when there is no high.

        Parameters: low, high: numbers or arrays. size: shape.
        Returns: ndarray of int64.
        Raises: ValueError for low > high.
        Source: cupy.random.random_integers
        """
        low, high = (1, low) if high is None else (low, high)
        return _integers(self.bit_generator, low, high, size, None, True, "random_integers")

    def tomaxint(self, size=None):
        """Integers from 0 to 2**63 - 1.

        Parameters: size: shape.
        Returns: ndarray of int64.
        Source: cupy.random.RandomState.tomaxint
        """
        return _integers(self.bit_generator, 0, _np.iinfo(_np.int64).max, () if size is None else size, None, True)

    def bytes(self, length):
        """Random bytes, of this process.

        Parameters: length: how many.
        Returns: bytes.
        Raises: TypeError for a length that is no int.
        Source: cupy.random.bytes
        """
        return _choose.as_bytes(self.bit_generator, length)

    def choice(self, a, size=None, replace=True, p=None):
        """Elements of a 1-d array, or of range(a), taken at random.

        Parameters: a: array or int. size: shape. replace: whether one may come again. p: probabilities of the elements,
        equal unless given.
        Returns: ndarray.
        Raises: ValueError for an empty a, wrong probabilities, or a larger sample than there is.
        Source: cupy.random.choice
        """
        a = _as_array(a) if isinstance(a, (list, tuple)) else a
        if getattr(a, "ndim", 1) > 1:
            raise ValueError("a must be 1-dimensional")
        words = ("a must be greater than 0 unless no samples are taken",
                 "'a' cannot be empty unless no samples are taken")
        return _choose.choice(self.bit_generator, a, size, replace, p, 0, words)

    def shuffle(self, a):
        """Put an array in random order along its first axis, in place.

        Parameters: a: ndarray.
        Returns: None.
        Raises: TypeError for anything else.
        Source: cupy.random.shuffle
        """
        _choose.shuffle(self.bit_generator, a, 0)

    def permutation(self, a):
        """A copy in random order along the first axis, or range(a) in random order.

        Parameters: a: array or int.
        Returns: ndarray.
        Raises: TypeError for a number that is no int.
        Source: cupy.random.permutation
        """
        return _choose.permutation(self.bit_generator, a, 0)


def _seed_of(seed):
    if seed is None:
        return None
    if isinstance(seed, _np.ndarray) and seed.dtype.kind in "biu":  # as CuPy
        return int(_hashlib.md5(_np.ascontiguousarray(seed), usedforsecurity=False).hexdigest()[:16], 16)
    seed = _np.asarray(seed.get() if hasattr(seed, "get") else seed)
    if seed.dtype.kind not in "biuO":
        raise TypeError(f"a seed must be made of integers, not {seed.dtype}")
    if seed.dtype == bool:
        seed = seed.astype(_np.int64)
    if _np.any(seed < 0) or _np.any(seed > 2**64 - 1):
        raise ValueError("Seed must be between 0 and 2**64 - 1")
    return seed.tolist()


def default_rng(seed=None):
    """A Generator.

    Parameters: seed: None, an int or sequence of ints that are not negative, a numpy.random.SeedSequence, a
    BitGenerator, or a Generator, which is given back.
    Returns: Generator.
    Raises: ValueError for a negative seed; TypeError for another seed.
    Differs: the numbers are those of Philox4x32, not of cuRAND's XORWOW; Generator(XORWOW(seed)) has CuPy's.
    Source: cupy.random.default_rng
    """
    if isinstance(seed, Generator):
        return seed
    return Generator(seed if isinstance(seed, BitGenerator) else Philox4x32(seed))


# ---- one RandomState for the functions of the module ----

_lock = _threading.Lock()
_state = None


def get_random_state():
    """The RandomState that the functions of this module draw from. The environment variable CUPY_SEED seeds it.

    Returns: RandomState.
    Source: cupy.random.get_random_state
    """
    global _state
    with _lock:
        if _state is None:
            number = _os.environ.get("CUPY_SEED")
            _state = RandomState(None if number is None else int(number))
        return _state


def set_random_state(rs):
    """Let the functions of this module draw from another RandomState.

    Parameters: rs: RandomState.
    Returns: None.
    Raises: TypeError for anything else.
    Source: cupy.random.set_random_state
    """
    global _state
    if not isinstance(rs, RandomState):
        raise TypeError(f"Random state must be an instance of RandomState. Actual: {type(rs)}")
    with _lock:
        _state = rs


def reset_states():
    """Forget the RandomState of this module; the next one is seeded as the first was.

    Returns: None.
    Source: cupy.random.reset_states
    """
    global _state
    with _lock:
        _state = None


def seed(seed=None):
    """Begin again with the RandomState of this module.

    Parameters: seed: as of RandomState.
    Returns: None.
    Raises: as RandomState.
    Differs: as RandomState.
    Source: cupy.random.seed
    """
    get_random_state().seed(seed)


def _forward(name):
    """A function that draws from the module's RandomState."""
    method = getattr(RandomState, name)

    def function(*args, **kwargs):
        return method(get_random_state(), *args, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = method.__doc__
    function.__wrapped__ = _types.MethodType(method, RandomState)  # the signature of a method has no self
    return function


for _name in ("beta", "binomial", "bytes", "chisquare", "choice", "dirichlet", "exponential", "f", "gamma", "geometric",
              "gumbel", "hypergeometric", "laplace", "logistic", "lognormal", "logseries", "multinomial",
              "multivariate_normal", "negative_binomial", "noncentral_chisquare", "noncentral_f", "normal", "pareto",
              "permutation", "poisson", "power", "rand", "randint", "randn", "random_integers", "random_sample",
              "rayleigh", "shuffle", "standard_cauchy", "standard_exponential", "standard_gamma", "standard_normal",
              "standard_t", "triangular", "uniform", "vonmises", "wald", "weibull", "zipf"):
    globals()[_name] = _forward(_name)
    __all__.append(_name)
del _name
random = ranf = sample = random_sample  # noqa: F821
__all__ += ["random", "ranf", "sample"]
