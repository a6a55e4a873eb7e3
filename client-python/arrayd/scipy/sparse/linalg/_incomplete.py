"""Incomplete factors without fill-in, by the server's call ilu0."""
from ...._base import call


def factor_in_place(a):
    """Replace the elements of a, a canonical square matrix in CSR format, by those of L, whose diagonal is 1, and of U.

    ValueError where an element of the diagonal is missing, or became 0 or NaN. Waits.
    """
    factors, bad = call("ilu0", (a.data, a.indices, a.indptr), (False,), dtype=a.dtype)
    row = int(bad)
    if row >= 0:
        begin, end = (int(n) for n in a.indptr[row:row + 2].get())
        missing = row not in a.indices[begin:end].get().tolist()
        raise ValueError(f"a({row},{row}) is missing" if missing else f"u({row},{row}) is zero")
    a.data = factors
