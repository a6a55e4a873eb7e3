"""Answers to Dask about the type of its chunks: sizes, functions, names by content, and how they travel."""
import functools
import sys

import numpy as np

from .._base import ndarray

_AT_ONCE = 1 << 22  # words of a digest that are computed at a time
_ODD = 0x9E3779B97F4A7C15


# ---- called when the module that holds the table has been imported ----

def sizes():
    sys.modules["dask.sizeof"].sizeof.register(ndarray, _size)


def functions():
    import arrayd
    backends = sys.modules["dask.array.backends"]
    # For concatenate, take, tensordot and einsum Dask calls NumPy's function, which is arrayd's for these arrays.
    backends.numel_lookup.register(ndarray, _numel)
    backends.percentile_lookup.register(ndarray, _percentile)
    backends.empty_lookup.register(ndarray, arrayd.empty)
    backends.to_numpy_dispatch.register(ndarray, lambda data, **_: arrayd.asnumpy(data))
    # dask.config.set({"array.backend": "arrayd"})
    backends.array_creation_dispatch.register_backend("arrayd", _backend(backends)())


def scipy_functions():
    """Take the place of Dask's function that chooses between SciPy's functions and, by name, CuPy's: it has no table
    for them."""
    utils = sys.modules["dask.array.utils"]
    others = getattr(utils, "scipy_linalg_safe", None)
    if others is None:
        return

    @functools.wraps(others)
    def scipy_linalg_safe(func_name, *args, **kwargs):
        ours = _SCIPY.get(func_name) if any(isinstance(a, ndarray) for a in args) else None
        return (ours or functools.partial(others, func_name))(*args, **kwargs)

    utils.scipy_linalg_safe = scipy_linalg_safe


def transfer():
    from . import dask_transfer
    table = sys.modules["distributed.protocol.serialize"]
    table.dask_serialize.register(ndarray, dask_transfer.serialize)
    table.dask_deserialize.register(ndarray, dask_transfer.deserialize)


# ---- arrays that Dask makes from nothing ----

def _made(name):
    def make(*args, meta=None, **kwargs):
        import arrayd
        import dask
        import dask.array
        if meta is None:
            meta = arrayd.empty((0,) if name == "arange" else ())
        with dask.config.set({"array.backend": "numpy"}):  # the type of the chunks is meta's, or like's
            more = {"like": meta} if name == "arange" else {"meta": meta}
            return getattr(dask.array, name)(*args, **more, **kwargs)

    return staticmethod(make)


def _backend(backends):
    """The class by which Dask makes chunks of this package's arrays."""
    import arrayd

    class Backend(backends.ArrayBackendEntrypoint):
        RandomState = property(lambda self: arrayd.random.RandomState)
        ones, zeros, empty, full, arange = (_made(name) for name in ("ones", "zeros", "empty", "full", "arange"))

        @classmethod
        def to_backend_dispatch(cls):
            return arrayd.asarray

        @classmethod
        def to_backend(cls, data, **kwargs):
            return data if isinstance(data._meta, ndarray) else data.map_blocks(arrayd.asarray, **kwargs)

    return Backend


# ---- what is registered ----

def _size(a):
    """Bytes that it holds on the server: those count against a worker's memory limit, and spilling frees them."""
    whole = a if a.base is None else a.base
    return min(a.nbytes, whole.nbytes) + sys.getsizeof(a)


def _numel(x, axis=None, keepdims=False, dtype=np.float64, **_):
    """How many elements each result of a reduction is made of, as an array like x."""
    import arrayd
    axes = range(x.ndim) if axis is None else {a % x.ndim for a in (axis if isinstance(axis, (tuple, list)) else (axis,))}
    count = 1
    for a in axes:
        count *= x.shape[a]
    shape = tuple(1 if a in axes else n for a, n in enumerate(x.shape) if keepdims or a not in axes)
    return arrayd.full(shape, count, dtype)


def _percentile(a, q, method="linear"):
    import arrayd
    if not len(a):
        return None, 0
    method = method if a.dtype.kind in "iufc" else "nearest"
    return arrayd.percentile(a, q, method=method), len(a)


def _solve_triangular(a, b, lower=False):
    """By LU decomposition, which every backend has; a solver of its own would save two thirds at best."""
    import arrayd
    return arrayd.linalg.solve(arrayd.tril(a) if lower else arrayd.triu(a), b)


_SCIPY = {"solve_triangular": _solve_triangular}


# ---- names by content ----

def _mixed(words, first):
    """Each word with its place, well mixed (the finalizer of splitmix64)."""
    import arrayd
    x = words ^ (arrayd.arange(first + 1, first + 1 + words.size, dtype=np.uint64) * np.uint64(_ODD))
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _digest(a):
    """128 bits of the elements in C order. The server computes them: one round trip, whatever the size."""
    import arrayd
    flat = a.ravel()
    words = flat.view(f"u{min(a.dtype.itemsize, 8)}")
    sums = arrayd.zeros(2, np.uint64)
    for first in range(0, words.size, _AT_ONCE):
        x = _mixed(words[first:first + _AT_ONCE].astype(np.uint64), first)
        sums[0] += x.sum(dtype=np.uint64)
        sums[1] += ((x ^ (x >> np.uint64(17))) * np.uint64(_ODD) ^ (x << np.uint64(9))).sum(dtype=np.uint64)
    return tuple(int(n) for n in sums.get())


def token(self):
    """Return a name of an array by type, shape and elements, for dask.base.tokenize.

    Returns: tuple. Waits for the elements, and fetches none of them.
    Raises: the error of the operation that failed to compute the array.
    Source: arrayd
    """
    return "arrayd.ndarray", str(self.dtype), self.shape, _digest(self)
