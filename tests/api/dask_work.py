"""Functions that Dask's workers run for test_dask.py."""
import arrayd as ad


def ramp(n, first=0.0):
    return ad.arange(first, first + n)


def total(a):
    """The sum, which server this is, and whether other sessions of it hold the same elements."""
    return float(a.sum()), type(a) is ad.ndarray, ad.session_info()["url"], ad.stat()["shared_bytes"] >= a.nbytes


def last(a):
    return float(a[-1])


_times = []


def made_once(n, first):
    """A ramp, which is counted in this process."""
    _times.append(first)
    return ramp(n, first)


def times():
    """How often made_once() has run here."""
    return len(_times)


def used():
    """Bytes that all arrays of this process's server take."""
    return ad.stat()["used_bytes"]


def lost():
    return ad.asarray([1, 2, 3]).take(ad.asarray([7])) + ad.zeros(100_000)
