"""States of cuRAND's generators, which lie on the server, and drawing from them; and CuPy's own XOR128."""
import threading

import numpy as np

from .. import _base, _core
from .._array.manipulation import broadcast_to
from ._draw import ROWS, shape_of, signed

XORWOW, MRG32K3A, PHILOX, XOR128 = range(4)
# How many states take turns in the order of cuRAND's host API; that of Philox is another one.
HOST_STATES = {XORWOW: 4096, MRG32K3A: 81920}
WORDS, MOST = 12, 1 << 24  # of a state; states
DEVICE, HOST = range(2)
# The rows of distribution.def that call `curand` has, as protocol/curand.def has them (a test compares): those of both
# orders, and those of the device API's alone.
BOTH = ("bits", "uniform", "upto1", "normal", "lognormal")
OWN = ("integers", "exponential", "gamma", "beta", "poisson", "binomial", "geometric", "hypergeometric", "logseries")
# The rows that XOR128 has.
ELEMENTS = ("uniform", "gamma", "beta", "poisson", "binomial", "geometric", "hypergeometric", "logseries", "chisquare", "f",
            "noncentral_chisquare", "noncentral_f", "standard_t", "vonmises", "zipf")
_PAIRED = ("normal", "lognormal")
_AT_ONCE = 1 << 20  # elements whose states are there at the same time


def _seeded(generator, seed, first, count):
    return _core.call("curand_seed", [], (generator, signed(seed), first), dtype=np.dtype(np.uint32), shape=(WORDS, count))


class States:
    """`turns` states that take turns, begun from a seed. Those that have not been drawn from yet are made when they are.

    generator: XORWOW, MRG32K3A or PHILOX. order: DEVICE, or HOST where the first number of a call comes from the state
    after that of the last one before.
    """

    def __init__(self, generator, seed, turns, order):
        self.generator, self.seed, self.turns, self.order = generator, seed, turns, order
        self.array, self.first, self.serial = None, 0, 0
        self.lock = threading.Lock()

    def _reach(self, count):
        """Have at least as many states as elements that need one; another session gets a copy of them."""
        if self.array is not None and self.serial != _core.session_serial():
            try:
                self.array = _base.as_array(self.array.get())
            except (ConnectionError, ValueError):  # the session that had them is over: from the seed again
                self.array, self.first = None, 0
        self.serial = _core.session_serial()
        wanted = self.turns if self.order == HOST else min(count, self.turns)
        have = 0 if self.array is None else self.array.shape[1]
        if have >= wanted:
            return
        wanted = min(self.turns, max(wanted, 2 * have, 1024))
        made = _seeded(self.generator, self.seed, have, wanted - have)
        if have:
            longer = _base.empty((WORDS, wanted), np.dtype(np.uint32))
            longer[:, :have], longer[:, have:] = self.array, made
            made = longer
        self.array = made

    def draw(self, name, parameters, size, dtype, out=None):
        """Elements of a row: parameters are numbers or arrays, checked."""
        shape = shape_of(size, parameters)
        count = _base.product(shape)
        if count == 0:
            return _base.zeros(shape, dtype) if out is None else out
        operands = [_base.as_array(p) if isinstance(p, np.ndarray) else p for p in parameters]
        given = {"shape": shape} if out is None else {"out": (out, None)}
        with self.lock:
            self._reach(count)
            params = (ROWS[name].id, self.generator, self.order, self.turns, self.first)
            made, self.array = _core.call("curand", [self.array, *operands], params, dtype=np.dtype(dtype), **given)
            if self.order == HOST:
                slots = (count + 1) // 2 if name in _PAIRED else count
                self.first = (self.first + slots) % self.turns
        return made

    @property
    def state(self):
        """Return what another object can begin from: numbers and NumPy's arrays."""
        with self.lock:
            array = None if self.array is None else self.array.get()
            return {"seed": self.seed, "turns": self.turns, "first": self.first, "states": array}

    @state.setter
    def state(self, value):
        array = value["states"]
        if array is not None:
            array = np.asarray(array, np.uint32)
            if array.ndim != 2 or array.shape[0] != WORDS or not 1 <= array.shape[1] <= value["turns"]:
                raise ValueError(f"states must be an array of shape ({WORDS}, n), n up to turns")
        with self.lock:
            self.seed, self.turns, self.first = int(value["seed"]), int(value["turns"]), int(value["first"])
            self.array = None if array is None else _base.as_array(array)
            self.serial = _core.session_serial() if array is not None else 0


def draw_elements(name, parameters, shape, seed, dtype):
    """Elements of a row by XOR128: element k from the sequence of seed + k, as CuPy's kernels draw them."""
    out = _base.empty(shape, np.dtype(dtype))
    flat, count = out.reshape(-1), out.size
    operands = [_base.as_array(p) if isinstance(p, np.ndarray) else p for p in parameters]
    if any(isinstance(p, _base.ndarray) and p.ndim for p in operands):
        operands = [broadcast_to(p, shape).reshape(-1) if isinstance(p, _base.ndarray) else p for p in operands]
    for begin in range(0, count, _AT_ONCE):
        part = flat[begin:begin + _AT_ONCE]
        own = [p[begin:begin + _AT_ONCE] if isinstance(p, _base.ndarray) and p.ndim else p for p in operands]
        states = _seeded(XOR128, seed + begin, 0, part.size)
        _core.call("curand", [states, *own], (ROWS[name].id, XOR128, DEVICE, part.size, 0), dtype=out.dtype, out=(part, None))
    return out
