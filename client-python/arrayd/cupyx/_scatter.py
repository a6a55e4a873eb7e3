"""Scatters by CuPy's names."""
from .._array.scatter import ADD, MAXIMUM, MINIMUM, scatter


def scatter_add(a, slices, value):
    """Add to the elements that a key names; to one that is named several times all of the values.

    Parameters: a: array that is written. slices: what a[slices] takes. value: number or array that broadcasts to
    a[slices]; cast to a's type.
    Returns: None. A mask on the server costs a round trip.
    Raises: TypeError when a is no array of the server; IndexError, at once or (indices on the server) at the next sync.
    Source: cupyx.scatter_add
    """
    scatter(a, slices, value, ADD)


def scatter_max(a, slices, value):
    """Let the elements that a key names be at least the values.

    Parameters, Returns, Raises: as scatter_add.
    Source: cupyx.scatter_max
    """
    scatter(a, slices, value, MAXIMUM)


def scatter_min(a, slices, value):
    """Let the elements that a key names be at most the values.

    Parameters, Returns, Raises: as scatter_add.
    Source: cupyx.scatter_min
    """
    scatter(a, slices, value, MINIMUM)
