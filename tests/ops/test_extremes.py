"""Extremes of shape beside NumPy: what it refuses is refused by the same type of error, and nothing ends the worker.

No array of the sizes that are drawn could exist, so NumPy's MemoryError is met at once, and the server's when the
result is read. The bound of a shape is half of NumPy's (AD_MAX_BYTES): what lies between is refused here."""
import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import arrayd as ad

PROFILE = settings(max_examples=250, derandomize=True, deadline=None, database=None)
MOST_BYTES = 2**62 - 1
TOO_BIG = "array is too big; `arr.size * arr.dtype.itemsize` is larger than the maximum possible size."
LEAST = 48  # powers of two from which on nothing can be allocated
SMALL = st.sampled_from([0, 1, 1, 2, 3])
LARGE = st.builds(lambda power, more: 2**power + more, st.integers(LEAST, 62), st.sampled_from([0, 0, 1, -1]))
WILD = st.sampled_from([2**63 - 1, 2**63, 2**64 - 1, 2**64, 2**70, -1, -2, -2**63, -2**64])
SIZES = SMALL | LARGE | LARGE | WILD
KINDS = st.sampled_from(["bool", "int8", "int16", "float32", "float64", "complex128"])
REFUSED = (ValueError, OverflowError, IndexError, TypeError)


@pytest.fixture(scope="module", autouse=True)
def the_worker_lives():
    before = ad._core.stat()["worker_pid"]
    yield
    assert ad._core.stat()["worker_pid"] == before


def outcome(call, library):
    """The shape that comes out, or the type of error; with the bytes that NumPy's result stands for."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = call(library)
        if isinstance(result, ad.ndarray) and result.size:
            result[(0,) * result.ndim].get()  # where failures are met
    except (*REFUSED, MemoryError) as error:
        return "memory" if isinstance(error, MemoryError) else "refused", 0, error
    if not isinstance(result, (np.ndarray, ad.ndarray)):
        return result, 0, None
    return result.shape, math.prod(n or 1 for n in result.shape) * result.dtype.itemsize, None


def check(call):
    expected, size, _ = outcome(call, np)
    got, _, error = outcome(call, ad)
    if got == "refused" and (expected == "memory" or size > MOST_BYTES):
        assert isinstance(error, ValueError), error  # half of NumPy's bound
    else:
        assert got == expected, (expected, got, error)


# Functions that make an array of size n.
MAKERS = {
    "zeros": lambda x, n: x.zeros(n),
    "empty": lambda x, n: x.empty((n, 2), "i1"),
    "ones beside a 0": lambda x, n: x.ones((0, n)),
    "full": lambda x, n: x.full((2, n), 7),
    "empty_like": lambda x, n: x.empty_like(x.zeros(2), shape=(n,)),
    "full_like": lambda x, n: x.full_like(x.zeros(2, "i1"), 1, shape=(n, 3)),
    "eye": lambda x, n: x.eye(2, n),
    "identity": lambda x, n: x.identity(n),
    "indices": lambda x, n: x.indices((n, 2)),
    "repeat": lambda x, n: x.repeat(x.zeros(2), n),
    "repeat along": lambda x, n: x.repeat(x.zeros((2, 3), "i1"), n, axis=0),
    "tile": lambda x, n: x.tile(x.zeros(2), n),
    "tile twice": lambda x, n: x.tile(x.zeros(2, "i1"), (n, 2)),
    "fft": lambda x, n: x.fft.fft(x.zeros(2), n),
    "rfft": lambda x, n: x.fft.rfft(x.zeros((2, 2)), n),
    "irfft": lambda x, n: x.fft.irfft(x.zeros(2), n) if n < 2**63 else x.zeros(n),
    "random": lambda x, n: x.random.default_rng(1).random(n),
    "integers": lambda x, n: x.random.default_rng(1).integers(0, 5, (n, 2)),
    "normal": lambda x, n: x.random.default_rng(1).normal(size=n),
    "bincount": lambda x, n: x.bincount(x.asarray([0]), minlength=n),
    "diag": lambda x, n: x.diag(x.zeros(2), n),
    "vander": lambda x, n: x.vander(x.zeros(2), n) if n < 2**62 else x.zeros(n),
    # Beyond 2^62 NumPy's rounding gives 0 elements.
    "arange": lambda x, n: x.arange(n) if n < 2**62 or n > 2**63 + 1 else x.zeros(n),
    "arange of floats": lambda x, n: x.arange(float(n)) if n < 2**62 else x.zeros(n),
    "linspace": lambda x, n: x.linspace(0, 1, n) if n < 2**62 else x.zeros(n),
    "histogram": lambda x, n: x.histogram(x.zeros(2), n)[0] if n < 2**62 else x.zeros(n),
    "tri": lambda x, n: x.tri(2, n) if 0 <= n < 2**62 else x.zeros(n),
    "pad": lambda x, n: x.pad(x.zeros(2), (0, n)) if n < 2**62 else x.zeros(n),
}


@PROFILE
@given(st.sampled_from(sorted(MAKERS)), SIZES)
def test_new_arrays(name, n):
    check(lambda x: MAKERS[name](x, n))


# Functions that look at what is there in another way. a is of shape (n, m), one element of memory.
VIEWS = {
    "itself": lambda x, a, k: a,
    "transposed": lambda x, a, k: a.T,
    "an axis more": lambda x, a, k: a[None],
    "expanded": lambda x, a, k: x.expand_dims(a, (0, 2)),
    "the first": lambda x, a, k: a[0],
    "from k": lambda x, a, k: a[k % 2**62:],
    "each k-th": lambda x, a, k: a[:, ::k % 2**62 or 1],
    "backwards": lambda x, a, k: a[::-1, ::-(k % 2**62 or 1)],
    "element k": lambda x, a, k: a[k % 2**63],
    "diagonal": lambda x, a, k: a.diagonal(k % 3 - 1),
    "reshaped": lambda x, a, k: a.reshape(-1, 1, a.shape[-1]),
    "to k": lambda x, a, k: x.broadcast_to(a, (k, *a.shape)),
    "bytes": lambda x, a, k: a.view("u1" if a.itemsize == 1 else f"u{min(a.itemsize, 8)}"),
    "real": lambda x, a, k: a.real,
    "with another": lambda x, a, k: x.broadcast_arrays(a, x.broadcast_to(x.zeros(1, "i1"), (k, 1, 1)))[0],
    "broadcast shapes": lambda x, a, k: x.broadcast_shapes(a.shape, (k if k >= 0 else 1, 1, 1)),
}


@PROFILE
@given(st.sampled_from(sorted(VIEWS)), KINDS, SMALL | LARGE | LARGE, SMALL | LARGE, SMALL | LARGE)
def test_views(name, kind, n, m, k):
    def call(x):
        return VIEWS[name](x, x.broadcast_to(x.ones((1, 1), kind), (n, m)), k)
    if name not in ("bytes", "itself") or n * m:  # of what is empty strides are NumPy's own
        check(call)


@PROFILE
@given(KINDS, SIZES, SIZES, SIZES)
def test_broadcast_to(kind, n, m, k):
    check(lambda x: x.broadcast_to(x.zeros((1, 1), kind), (n, m, k)))


@PROFILE
@given(st.sampled_from([0, 1, 4, 12]), st.lists(SIZES | st.sampled_from([-1, 2, 3, 4]), max_size=4))
def test_reshape(size, shape):
    check(lambda x: x.zeros(size).reshape(shape))


# Functions that make the product of two sizes. a is of n elements, b of m.
PRODUCTS = {
    "add": lambda x, a, b: a[:, None] + b,
    "outer": lambda x, a, b: x.multiply.outer(a, b),
    "compared": lambda x, a, b: a[:, None] < b,
    "matmul": lambda x, a, b: a[:, None] @ b[None],
    "where": lambda x, a, b: x.where(a[:, None] == 0, b, a[:, None]),
    "tensordot": lambda x, a, b: x.tensordot(a, b, 0),
    "einsum": lambda x, a, b: x.einsum("i,j->ij", a, b),
    "meshgrid": lambda x, a, b: x.meshgrid(a, b, copy=False)[0],
    "indexed": lambda x, a, b: x.broadcast_to(x.zeros(1), (1, *a.shape))[b.astype(int) * 0],
}


@PROFILE
@given(st.sampled_from(sorted(PRODUCTS)), SMALL, LARGE, LARGE)
def test_products(name, small, n, m):
    """One size may be small where the other is one element that is repeated. Nothing of these sizes is computed."""
    def call(x):
        a, b = (x.broadcast_to(x.zeros(1, "f4"), (size,)) for size in (n, small if name == "indexed" else m))
        return PRODUCTS[name](x, a, b)
    check(call)


CAST = {"argsort": lambda x, a: x.argsort(a), "cumsum": lambda x, a: x.cumsum(a),
        "astype": lambda x, a: a.astype("c16"), "sqrt": lambda x, a: x.sqrt(a),
        "joined": lambda x, a: x.concatenate([a] * 5), "stacked": lambda x, a: x.stack([a] * 3), "fft": lambda x, a: x.fft.fft(a), "copied": lambda x, a: a.copy()}


@PROFILE
@given(st.sampled_from(sorted(CAST)), st.sampled_from(["int8", "float32"]), LARGE)
def test_larger_results(name, kind, n):
    check(lambda x: CAST[name](x, x.broadcast_to(x.zeros(1, kind), (n,))))


@PROFILE
@given(st.lists(SMALL | LARGE | st.sampled_from([2**61, 2**62, 2**63 - 1, 2**63, 2**64]), min_size=2, max_size=3),
       st.sampled_from(["raise", "wrap", "clip"]), st.sampled_from("CF"), st.lists(st.integers(0, 3), min_size=3, max_size=3))
def test_ravel_and_unravel(dims, mode, order, at):
    """Values, too: what fits NumPy's 63 bits is computed, whatever an array could have."""
    def values(call):
        try:
            result = call()
            return [part.get().tolist() if isinstance(part, ad.ndarray) else part.tolist() for part in result]
        except REFUSED as error:
            return IndexError if isinstance(error, IndexError) or "bounds" in str(error) or "invalid entry" in str(
                error) else type(error)
    at, dims = at[:len(dims)], tuple(dims)
    expected = values(lambda: [np.asarray(np.ravel_multi_index([np.array([i]) for i in at], dims, mode, order))])
    got = values(lambda: [ad.ravel_multi_index([ad.asarray([i]) for i in at], dims, mode, order)])
    assert got == expected
    expected = values(lambda: np.unravel_index(np.array(at), dims, order))
    assert values(lambda: ad.unravel_index(ad.asarray(at), dims, order)) == expected


def test_what_ended_the_worker():
    """There are more elements than fit 64 bits twice, in memory of one element."""
    with pytest.raises(ValueError) as refused:
        ad.broadcast_to(ad.zeros(1), (2**63 - 1,))[ad.array([1, 2])]
    assert str(refused.value) == TOO_BIG
    a, b = ad.array([1]), ad.array([2])
    with pytest.raises(ValueError, match="^invalid dims: array size defined by dims is larger than the maximum possible"):
        ad.ravel_multi_index((a, b), (2**63 - 1, 4))
    with pytest.raises(ValueError, match="^dimensions are too large; arrays and shapes with a total size greater than"):
        ad.unravel_index(a, (2**63 - 1, 4))
    assert float(ad.ones(3).sum()) == 3


@pytest.mark.parametrize("kind", ["int8", "float64", "complex128"])
def test_the_bound(kind):
    """The largest size is met exactly, and the error has NumPy's words."""
    one = ad.zeros(1, kind)
    most = MOST_BYTES // one.itemsize
    assert ad.broadcast_to(one, (most,))[ad.array([0, most - 1, -most])].get().tolist() == [0, 0, 0]
    assert ad.broadcast_to(one, (1, most, 1)).shape == (1, most, 1)
    for shape in ((most + 1,), (most, 2), (0, most + 1)):
        for make in (lambda: ad.broadcast_to(ad.zeros((0, 1), kind) if 0 in shape else one, shape),
                     lambda: ad.zeros(shape, kind)):
            with pytest.raises(ValueError) as refused:
                make()
            assert str(refused.value) == TOO_BIG
    for shape, words in (((2**64,), "Maximum allowed dimension exceeded"), ((-1,), "negative dimensions are not allowed"),
                         ((1,) * 33, "maximum supported dimension for an ndarray is currently 32, found 33")):
        with pytest.raises(ValueError) as refused:
            ad.zeros(shape, kind)
        assert str(refused.value) == words
