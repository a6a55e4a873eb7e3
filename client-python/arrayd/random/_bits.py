"""Sources of random numbers: a key and a counter of Philox4x32-10."""
import threading

import numpy as np

from .. import _base
from ._draw import draw


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
        self._key = int(self.seed_seq.generate_state(1, np.uint64)[0])
        self._counter = 0

    def take(self, count):
        """The key and the number of the first of count elements, which are nobody else's from now on."""
        with self._lock:
            first = self._counter
            self._counter = first + count & (1 << 64) - 1
            return self._key, first

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


class Philox4x3210(BitGenerator):
    """Philox4x32 with 10 rounds.

    Parameters: as BitGenerator.
    Differs: the recurrence is cuRAND's; the key that a seed gives and the order of the numbers are not.
    Source: cupy.random.Philox4x3210
    """


class XORWOW(BitGenerator):
    """A name that CuPy's programs use; the numbers are Philox's.

    Parameters: as BitGenerator.
    Differs: the numbers are those of Philox4x32-10, not of cuRAND's XORWOW.
    Source: cupy.random.XORWOW
    """


class MRG32k3a(BitGenerator):
    """A name that CuPy's programs use; the numbers are Philox's.

    Parameters: as BitGenerator.
    Differs: the numbers are those of Philox4x32-10, not of cuRAND's MRG32k3a.
    Source: cupy.random.MRG32k3a
    """


def permutation_of(bits, shape, axis=-1):
    """Indices 0..n-1 in random order along an axis: by sorting 64 random bits for each."""
    keys = draw(bits, "bits", [], shape, np.dtype(np.uint64))
    return _base.call("argsort", [keys], [axis % len(shape)])
