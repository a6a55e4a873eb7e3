"""Operations on complex numbers that lie where only their parts are aligned: at a multiple of half their size. A GPU's load
of such a number as a whole ends the worker, so each row that takes complex numbers is tried with each operand there."""
import numpy as np
import pytest

import arrayd as ad
from arrayd import _core
from arrayd._base import call
from oracle import seed

TYPES = ["complex64", "complex128"]
N = 6
SPARSE = np.arange(N), np.arange(N + 1)  # one entry in each row, on the diagonal
PAIR = np.array([[0, 0], [0, 1]])  # places of two neighbours, of which one is the element itself


def lay_half(x):
    """The elements of x at half places, on the server. Those of other types lie as they do."""
    x = np.asarray(x)
    if x.dtype.kind != "c":
        return ad.asarray(x)
    parts = ad.zeros(2 * x.size + 1, x.real.dtype)
    out = parts[1:].view(x.dtype).reshape(x.shape)
    out[...] = ad.asarray(x)
    return out


def same(a, b):
    return np.allclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True)


def run_both(run, operands):
    """Compare the results of run(*operands, out=None) with those at half places, of half places."""
    with np.errstate(all="ignore"):
        expected = run(*map(ad.asarray, operands))
        several = isinstance(expected, tuple)
        places = tuple(lay_half(x.get()) for x in (expected if several else (expected,)))
        actual = run(*map(lay_half, operands), out=places if several else places[0])
        for one, other in zip(expected if several else (expected,), actual if several else (actual,)):
            assert same(one.get(), other.get())
        run(*map(lay_half, operands))


@pytest.fixture(params=TYPES)
def dtype(request):
    return np.dtype(request.param)


def numbers(rng, dtype, *shape):
    x = rng.uniform(0.5, 2, shape)
    return (x + 1j * rng.uniform(0.5, 2, shape) if dtype.kind == "c" else x).astype(dtype)


# ---- rows of the tables ----

FUNCTIONS = [(name, loop) for name, function in _core.ufuncs.items() for loop in function.types if set(loop) & set("FD")]


@pytest.mark.parametrize("name, loop", FUNCTIONS, ids=lambda x: x)
def test_functions(name, loop):
    rng, function = seed("functions", name, loop), _core.ufuncs[name]
    letters = loop.split("->")[0]
    for shape in (5,), (40, 33), (3000,):
        run_both(lambda *x, out=None: function(*x, out=out), [numbers(rng, np.dtype(c), *shape) for c in letters])
    x = [numbers(rng, np.dtype(c), 40, 33) for c in letters]
    run_both(lambda *a, out=None: function(*(b.T for b in a), out=out), x)


@pytest.mark.parametrize("name", sorted(_core.reductions))
def test_reductions(name, dtype):
    x = numbers(seed("reductions", name, dtype), dtype, 40, 33)
    try:
        _core.reduce(name, ad.asarray(x))
    except TypeError:
        pytest.skip("it takes no complex numbers")
    for axis in None, 0, 1:
        run_both(lambda x, out=None, axis=axis: _core.reduce(name, x, axis=axis, out=out), [x])
        long = numbers(seed("long", name, dtype), dtype, 5, 5000)
        run_both(lambda x, out=None, axis=axis: _core.reduce(name, x, axis=axis, out=out), [long])


def square(rng, dtype, *shape):
    """Hermitian, positive definite matrices."""
    x = numbers(rng, dtype, *shape)
    return (x @ x.conj().swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1])).astype(dtype)


# For each call that takes complex numbers, its operands (c: numbers of a shape, m: matrices) and parameters.
CALLS = {
    "cumsum": lambda c, m: ([c(40, 33)], (1,)),
    "cumprod": lambda c, m: ([c(3, 5)], (0,)),
    "nancumsum": lambda c, m: ([c(5000)], (0,)),
    "nancumprod": lambda c, m: ([c(7)], (0,)),
    "sort": lambda c, m: ([c(40, 33)], (1,)),
    "argsort": lambda c, m: ([c(40, 33)], (0,)),
    "partition": lambda c, m: ([c(1000)], (0, 5)),
    "argpartition": lambda c, m: ([c(40, 33)], (1, 5)),
    "sort_places": lambda c, m: ([c(1000)], (0,)),
    "searchsorted": lambda c, m: ([np.sort(c(50)), c(9)], (False,)),
    "merge": lambda c, m: ([np.sort(c(50)), np.sort(c(9))], ()),
    "merge_pairs": lambda c, m: ([np.sort(c(50)), np.sort(c(9)), np.arange(50), np.arange(9)], ()),
    "gather": lambda c, m: ([c(50, 3), np.arange(20)], ()),
    "matmul": lambda c, m: ([c(40, 33), c(33, 20)], (False,)),
    "fft": lambda c, m: ([c(12, 30)], (2, -1, 1.0)),
    "irfft": lambda c, m: ([c(12, 16)], (1, 0, 30, 1.0)),
    "cholesky": lambda c, m: ([m(3, N, N)], (False,)),
    "qr": lambda c, m: ([c(3, 8, N)], (False,)),
    "svd": lambda c, m: ([c(3, 8, N)], (False,)),
    "svdvals": lambda c, m: ([c(3, 8, N)], ()),
    "eigh": lambda c, m: ([m(3, N, N)], (False,)),
    "eigvalsh": lambda c, m: ([m(3, N, N)], (False,)),
    "solve": lambda c, m: ([m(3, N, N), c(3, N, 2)], ()),
    "inv": lambda c, m: ([m(3, N, N)], ()),
    "lu": lambda c, m: ([m(3, N, N)], ()),
    "lstsq": lambda c, m: ([c(8, N), c(8, 2)], (1e-10,)),
    "eig": lambda c, m: ([m(1, N, N)], ()),
    "eigvals": lambda c, m: ([m(1, N, N)], ()),
    "qr_raw": lambda c, m: ([c(3, 8, N)], ()),
    "solve_triangular": lambda c, m: ([m(3, N, N), c(3, N, 2)], (True, False)),
    "slogdet": lambda c, m: ([m(3, N, N)], ()),
    "correlate1d": lambda c, m: ([c(40, 33), c(3)], (1, 4, 0.0, 1)),
    "correlate": lambda c, m: ([c(40, 33), PAIR, c(2)], (4, 0.0)),
    "spline1d": lambda c, m: ([c(40, 33)], (1, 3, 3)),
    "sample": lambda c, m: ([c(40, 33), np.full((2, 9), 2.5)], (False, 3, 3, 0.5, 0)),
    "iir": lambda c, m: ([c(40), np.full((1, 2, 3), 0.1, c(1).dtype), np.zeros((1, 2, 1), c(1).dtype)], (0,)),
    "squareform": lambda c, m: ([c(15)], ()),
    "spmm": lambda c, m: ([c(N), *SPARSE, c(N, 3)], (N, False)),
    "sptrsm": lambda c, m: ([c(N), *SPARSE, c(N, 3)], (True, False)),
    "ilu0": lambda c, m: ([c(N), *SPARSE], (False,)),
    "sptranspose": lambda c, m: ([c(N), *SPARSE], (N,)),
    "dct": lambda c, m: ([c(12, 30)], (1, 2, False, True, 1.0)),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls(name, dtype):
    rng = seed("calls", name, dtype)
    operands, parameters = CALLS[name](lambda *shape: numbers(rng, dtype, *shape), lambda *shape: square(rng, dtype, *shape))

    def run(*x, out=None):
        return call(name, x, parameters, **({} if out is None else {"out": out}))
    try:
        run(*map(ad.asarray, operands))
    except TypeError:
        pytest.skip("it takes no complex numbers")
    run_both(run, operands)


# ---- what has other outputs ----


def test_calls_that_change_and_ask(dtype):
    rng = seed("changes", dtype)
    x, v, mask, index = numbers(rng, dtype, 500), numbers(rng, dtype, 100), np.arange(500) % 5 == 0, rng.permutation(500)[:100]
    for mode in range(2):
        place = lay_half(x)
        call("scatter", (lay_half(v), ad.asarray(index)), (mode,), out=place)
        expected = x.copy()
        expected[index] = v if mode == 0 else expected[index] + v
        assert same(place.get(), expected)
    place = lay_half(x)
    place[ad.asarray(mask)] = lay_half(v)
    expected = x.copy()
    expected[mask] = v
    assert same(place.get(), expected)
    assert same(lay_half(x)[ad.asarray(mask)].get(), x[mask])
    assert len(ad.nonzero(lay_half(x))[0]) == 500
    assert same(ad.where(ad.asarray(mask), lay_half(x), lay_half(x[::-1].copy())).get(), np.where(mask, x, x[::-1]))


def test_sparse_matrices(dtype):
    from arrayd.scipy import sparse
    rng = seed("sparse", dtype)
    dense = np.where(rng.random((9, 9)) < 0.4, numbers(rng, dtype, 9, 9), 0).astype(dtype)
    one = sparse.csr_matrix(ad.asarray(dense))
    one = sparse.csr_matrix((lay_half(one.data.get()), one.indices, one.indptr), shape=one.shape)
    for made, expected in ((one @ one, dense @ dense), (one + one, 2 * dense), (one.T.tocsr(), dense.T), (one[2:5], dense[2:5]),
                           (one[:, 2:5], dense[:, 2:5]), (one.tocoo(), dense), (one.tocsc(), dense),
                           (one.multiply(one), dense * dense)):
        assert same(made.toarray().get(), expected)
    assert same((one @ lay_half(dense)).get(), dense @ dense)
    assert same(one.diagonal().get(), dense.diagonal())


@pytest.mark.parametrize("shape, axes", [((500, 30), (1, 0)), ((64, 64), (1, 0)), ((3, 40, 33), (2, 0, 1)), ((3, 8, 5, 2), (3, 1, 2, 0))])
def test_moves(shape, axes, dtype):
    x = numbers(seed("moves", shape, dtype), dtype, *shape)
    half = lay_half(x)
    assert same(ad.ascontiguousarray(half.transpose(axes)).get(), x.transpose(axes))
    assert same(half[..., ::-1].copy().get(), x[..., ::-1])
    assert same(ad.concatenate([half, half]).get(), np.concatenate([x, x]))
    assert same(half.astype("complex128").get(), x) and same(half.real.copy().get(), x.real)
    target = lay_half(np.zeros_like(x))
    target[...] = half.T.reshape(x.shape[::-1]).T
    assert same(target.get(), x)
    assert same((half * 2 + half.conj()).get(), x * 2 + x.conj())  # a chain
