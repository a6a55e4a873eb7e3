"""The object that says what arrays broadcast to."""
import numpy as np

from .. import _base
from .._base import as_array


class broadcast:
    """The shape and the elements that arrays broadcast to. Making one sends nothing (but arrays of this process);
    iterating over the elements fetches the arrays.

    Parameters: arrays: arrays and numbers.
    Raises: ValueError when shapes do not fit.
    Source: numpy.broadcast
    """

    def __init__(self, *arrays):
        self._arrays = tuple(as_array(a) for a in arrays)
        self._values = self._host = None
        try:
            self.shape = np.broadcast_shapes(*(a.shape for a in self._arrays))
        except ValueError as error:
            raise ValueError(str(error)) from None

    @property
    def values(self):
        """The arrays, as views of the common shape."""
        if self._values is None:
            from .manipulation import broadcast_to
            self._values = tuple(broadcast_to(a, self.shape) for a in self._arrays)
        return self._values

    @property
    def size(self):
        """Number of elements."""
        return _base.product(self.shape)

    @property
    def ndim(self):
        """Number of dimensions."""
        return len(self.shape)

    nd = ndim

    @property
    def numiter(self):
        """Number of arrays."""
        return len(self._arrays)

    @property
    def index(self):
        """How many elements have been iterated over."""
        return 0 if self._host is None else self._host.index

    @property
    def iters(self):
        """An iterator over the elements of each array, in this process."""
        return self._fetched().iters

    def reset(self):
        """Iterate from the beginning again."""
        if self._host is not None:
            self._host.reset()

    def _fetched(self):
        if self._host is None:
            self._host = np.broadcast(*(a.get() for a in self._arrays))
        return self._host

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._fetched())
