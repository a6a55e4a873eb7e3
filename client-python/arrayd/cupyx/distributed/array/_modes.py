"""Modes, which say what chunks that overlap are: they are replicas, or parts of a minimum, maximum, sum or product."""
import numpy as np

from .... import _core


class Mode:
    """How the chunks that have an element make its value.

    Attributes: name. ufunc: combines the values of two chunks. idempotent: a value may be combined with itself.
    Source: cupyx.distributed.array.Mode
    """

    def __init__(self, name, ufunc, idempotent, identity):
        self.name, self.ufunc, self.idempotent, self._identity = name, _core.ufuncs[ufunc], idempotent, identity

    def __repr__(self):
        return self.name

    def identity_of(self, dtype):
        """The value that changes nothing when it is combined with another.

        Parameters: dtype: of the values.
        Returns: a number.
        Source: arrayd
        """
        return self._identity(np.dtype(dtype))


def _find_least(dtype):
    return False if dtype.kind == "b" else np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf


def _find_greatest(dtype):
    return True if dtype.kind == "b" else np.iinfo(dtype).max if dtype.kind in "iu" else np.inf


REPLICA = None  # all chunks have the value
MIN = Mode("MIN", "minimum", True, _find_greatest)
MAX = Mode("MAX", "maximum", True, _find_least)
SUM = Mode("SUM", "add", False, lambda dtype: dtype.type(0))
PROD = Mode("PROD", "multiply", False, lambda dtype: dtype.type(1))
