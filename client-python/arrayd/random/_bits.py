"""Sources of random numbers: a key and a counter of Philox4x32-10, or states of cuRAND's generators."""
import threading

import numpy as np

from .. import _base, _core
from . import _curand
from ._draw import draw, draw_counted, shape_of


class BitGenerator:
    """A place in the stream of a key. The numbers that follow from it are the same on every backend and device.

    Parameters: seed: None (taken from the operating system), an int or a sequence or array of ints that are not
    negative, or a numpy.random.SeedSequence. size: ignored (CuPy: how many states cuRAND has).
    Raises: ValueError for a negative seed; TypeError for another seed.
    Source: cupy.random.BitGenerator
    """

    def __init__(self, seed=None, *, size=-1):
        self._lock = threading.Lock()
        seed = seed.tolist() if isinstance(seed, _base.ndarray) else seed
        self.seed_seq = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        self._seed_seq = self.seed_seq  # under this name Dask asks CuPy's generators for it
        self._key = int(self.seed_seq.generate_state(1, np.uint64)[0])
        self._counter = 0

    def take(self, count):
        """The key and the number of the first of count elements, which are nobody else's from now on."""
        with self._lock:
            first = self._counter
            self._counter = first + count & (1 << 64) - 1
            return self._key, first

    def draw(self, name, parameters, size, dtype, out=None):
        """Elements of a row of distribution.def; for the classes of this package."""
        return draw_counted(self, name, parameters, size, dtype, out)

    def keys(self, shape):
        """Numbers whose order is a random one; for the classes of this package."""
        return draw(self, "bits", [], shape, np.dtype(np.uint64))

    def random_raw(self, size=None, output=True):
        """Random 64-bit integers.

        Parameters: size: shape. output: False: give nothing back, but go on in the stream.
        Returns: ndarray of uint64, or None.
        Raises: ValueError for a negative dimension.
        Source: numpy.random.BitGenerator.random_raw
        """
        numbers = draw(self, "bits", [], () if size is None else size, np.dtype(np.uint64))
        return numbers if output else None

    @property
    def lock(self):
        """The lock that numbers are taken under."""
        return self._lock

    @property
    def state(self):
        """The place in the stream, as a dict that can be assigned to go back there."""
        with self._lock:
            return {"bit_generator": type(self).__name__, "state": {"key": self._key, "counter": self._counter}}

    @state.setter
    def state(self, value):
        if not isinstance(value, dict):
            raise TypeError("state must be a dict")
        if value.get("bit_generator", type(self).__name__) != type(self).__name__:
            raise ValueError(f"state must be for a {type(self).__name__} PRNG")
        key, counter = int(value["state"]["key"]), int(value["state"]["counter"])
        if not 0 <= key < 1 << 64 or not 0 <= counter < 1 << 64:
            raise ValueError("key and counter must be of 64 bits")
        with self._lock:
            self._key, self._counter = key, counter

    def spawn(self, n_children):
        """Independent generators.

        Parameters: n_children: how many.
        Returns: list of bit generators of this type.
        Source: numpy.random.BitGenerator.spawn
        """
        return [type(self)(seed) for seed in self.seed_seq.spawn(n_children)]

    def __getstate__(self):
        return {"seed_seq": self.seed_seq, "state": self.state}

    def __setstate__(self, value):
        self._lock = threading.Lock()
        self.seed_seq = value["seed_seq"]
        self.state = value["state"]


class Philox4x32(BitGenerator):
    """Philox4x32 with 10 rounds, of which element i of a draw is a function of the key and of how many were drawn before.

    Its numbers depend on nothing else: neither on the device nor on the shapes of the calls. Their results can be
    computed with them in one kernel. default_rng draws from it. CuPy has no generator of this kind.

    Parameters: as BitGenerator.
    Source: arrayd
    """


class _CurandGenerator(BitGenerator):
    """A generator of cuRAND: thousands of states that take turns."""

    _generator = None

    def __init__(self, seed=None, *, size=-1):
        super().__init__(seed)
        if size == 0 or size > _curand.MOST:
            raise ValueError(f"size, the number of states, must be from 1 to {_curand.MOST}, not {size}")
        self._size, self._states = size, None

    def _get_states(self):
        with self._lock:
            if self._states is None:
                number = int(self.seed_seq.generate_state(1, np.uint32)[0])
                turns = self._size if self._size > 0 else _count_states()
                self._states = _curand.States(self._generator, number, turns, _curand.DEVICE)
            return self._states

    def draw(self, name, parameters, size, dtype, out=None):
        """Elements of a row of distribution.def; those that CuPy's Generator has not are functions of the seed and of how
        many were drawn."""
        made = _made_of(self._get_states(), name, parameters, size if out is None else out.shape, dtype)
        if made is None:
            return super().draw(name, parameters, size, dtype, out)
        return _base.give(made if made.dtype == dtype else made.astype(dtype), out)

    def random_raw(self, size=None, output=True):
        """Random 32-bit integers, signed as CuPy's.

        Parameters: size: shape. output: False: give nothing back, but go on in the stream.
        Returns: ndarray of int32, or None.
        Raises: ValueError for a negative dimension.
        Source: cupy.random.BitGenerator.random_raw
        """
        numbers = draw(self, "bits", [], () if size is None else size, np.dtype(np.uint32))
        return numbers.view(np.int32) if output else None

    @property
    def state(self):
        """The place in the stream, as a dict that can be assigned to go back there."""
        return {"bit_generator": type(self).__name__, "state": {
            "key": self._key, "counter": self._counter, "curand": self._get_states().state}}

    @state.setter
    def state(self, value):
        BitGenerator.state.fset(self, value)
        self._get_states().state = value["state"]["curand"]

    def __getstate__(self):
        return {"seed_seq": self.seed_seq, "size": self._size, "state": self.state}

    def __setstate__(self, value):
        self._size, self._states = value["size"], None
        super().__setstate__(value)


def _made_of(states, name, parameters, size, dtype):
    """Elements of a row as CuPy's Generator makes them from its states, of a type that is cast to dtype; None: it does not
    have the row."""
    real = np.dtype(np.float64)
    if name == "integers":
        return _integers_of(states, parameters, size, dtype)
    if name == "bits" and dtype.itemsize == 8:
        return None
    if name == "uniform" and dtype == np.float32 and parameters != [0.0, 1.0]:
        low, high = (_base.as_array(p, real) for p in parameters)
        return low + (high - low) * states.draw(name, [0.0, 1.0], shape_of(size, parameters), dtype)
    if name in _curand.BOTH:
        return states.draw(name, parameters, size, dtype)
    if name in _curand.OWN:
        return states.draw(name, parameters, size, real if dtype == np.float32 else dtype)
    shape = shape_of(size, parameters)
    if name == "chisquare":
        return states.draw("gamma", [parameters[0] / 2, 2.0], shape, real)
    if name == "f":
        x, y = (states.draw("gamma", [df / 2, 2.0], shape, real) for df in parameters)
        return x * parameters[1] / (y * parameters[0])
    if name == "power":
        return (1 - _core.ufuncs["exp"](-states.draw("exponential", [1.0], shape, real))) ** (1 / parameters[0])
    return None


def _integers_of(states, parameters, size, dtype):
    """low + words without the bits that high - low has not, drawn again while they are greater."""
    low, high = parameters
    if not (isinstance(low, int) and isinstance(high, int)):
        return None
    made = states.draw("integers", [0, high - low], size, np.dtype(np.uint32 if high - low < 1 << 32 else np.uint64))
    return made.astype(dtype) + low if low else made


def _count_states():
    """The number of states: as many as CuPy has on this device; on the CPU backend those of 132 multiprocessors."""
    from ..cuda.device import Device
    device = Device()
    count = device.attributes["MultiProcessorCount"] if device.compute_capability != "00" else 132
    return 2048 * count


class XORWOW(_CurandGenerator):
    """XORWOW, with cuRAND's numbers: those that CuPy gives for the seed, on a device with as many multiprocessors.

    Parameters: as BitGenerator. size: how many states take turns (-1: 2048 for each multiprocessor of the device, on the
    CPU backend those of 132): an element is drawn from the state of its number modulo size.
    Raises: as BitGenerator; ValueError for another size.
    Differs: distributions that CuPy's Generator has not (laplace, vonmises, permutation ...) are drawn from Philox4x32.
    Source: cupy.random.XORWOW
    """

    _generator = _curand.XORWOW


class MRG32k3a(_CurandGenerator):
    """MRG32k3a, with cuRAND's numbers: those that CuPy gives for the seed, on a device with as many multiprocessors.

    Parameters: as XORWOW.
    Raises: as XORWOW.
    Differs: as XORWOW.
    Source: cupy.random.MRG32k3a
    """

    _generator = _curand.MRG32K3A


class Philox4x3210(_CurandGenerator):
    """Philox4x32 with 10 rounds, with cuRAND's numbers: those that CuPy gives for the seed, on a device with as many
    multiprocessors.

    Parameters: as XORWOW.
    Raises: as XORWOW.
    Differs: as XORWOW.
    Source: cupy.random.Philox4x3210
    """

    _generator = _curand.PHILOX


def permutation_of(bits, shape, axis=-1):
    """Indices 0..n-1 in random order along an axis: by sorting a random number for each."""
    return _base.call("argsort", [bits.keys(shape)], [axis % len(shape)])
