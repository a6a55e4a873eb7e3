"""The results of unique_all and its like. Named tuples take longer to make than the other functions of sorting.py together."""
from typing import NamedTuple


class UniqueAllResult(NamedTuple):
    """The result of unique_all."""

    values: object
    indices: object
    inverse_indices: object
    counts: object


class UniqueCountsResult(NamedTuple):
    """The result of unique_counts."""

    values: object
    counts: object


class UniqueInverseResult(NamedTuple):
    """The result of unique_inverse."""

    values: object
    inverse_indices: object
