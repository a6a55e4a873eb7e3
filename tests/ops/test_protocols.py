"""Python and NumPy ask an array for these: NumPy's functions and ufuncs, numbers, buffers, copies, pickles."""
import array
import copy
import math
import operator
import pickle
import warnings

import numpy as np
import pytest

import arrayd as ad
from arrayd import _core
from oracle import BOOL, COMPLEX, DTYPES, FLOATS, INTEGERS, check, compare, fetch, outcome, random, seed

UFUNCS = sorted(name for name in dir(np) if isinstance(getattr(np, name), np.ufunc))
LACKING = {"isnat"}
LIBRARIES = {"": np, "linalg.": np.linalg, "fft.": np.fft}
PUBLIC = sorted(prefix + name for prefix, module in LIBRARIES.items() for name in dir(module)
                if hasattr(getattr(module, name), "_implementation") and not name.startswith("_"))

M = np.array([[4.0, 1.0, 2.0, 0.5], [1.0, 5.0, 3.0, 1.5], [0.25, 3.0, 6.0, 2.5]])
V = np.array([3.0, -1.0, 2.0, 2.5, 0.5])
S = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 5.0]])
I = np.array([2, 0, 1, 2, 1])  # noqa: E741
B = np.array([True, False, True, True, False])
N = np.array([1.0, np.nan, 3.0, 2.0, 5.0])
Z = np.array([1 + 2j, -1j, 3.0, 2 - 1j])
T = np.arange(24.0).reshape(2, 3, 4)


def of(*args, **options):
    return args, options


CALLS = {
    "all": [of(B), of(M, axis=0)], "append": [of(V, I), of(M, M, axis=0)], "argpartition": [of(V, 2)],
    "allclose": [of(V, V), of(V, 2 * V)], "apply_along_axis": [of(lambda x: x.sum(), 0, M)],
    "apply_over_axes": [of(lambda a, axis: a.sum(axis, keepdims=True), T, [0, 2])],
    "array_equal": [of(V, V), of(V, I)], "array_equiv": [of(V, V)], "array_split": [of(V, 3)],
    "astype": [of(V, np.float32)], "average": [of(V, weights=V + 2)], "bincount": [of(I), of(I, V)],
    "array2string": [of(V, precision=2), of(M, separator=", ")], "array_repr": [of(V)],
    "array_str": [of(M, precision=1)],
    "block": [of([[S, S], [S, S]])], "broadcast_arrays": [of(V, M[:, :1])], "broadcast_to": [of(V, (2, 5))],
    "can_cast": [of(np.float32, np.float64)], "choose": [of(np.array([0, 1, 1]), [S[0], S[1]])],
    "clip": [of(V, 0, 2), of(V, np.zeros(5), None)], "column_stack": [of((V, I))], "common_type": [of(V, I)],
    "compress": [of(B, V)], "concat": [of([V, V])], "concatenate": [of([V, I]), of((M, M), axis=1)],
    "convolve": [of(V, V[:2])], "copyto": [of(np.zeros(5), V), of(np.zeros(5), 1.0, where=B)],
    "corrcoef": [of(M), of(V, V[::-1])], "correlate": [of(V, V[:3], "same")], "cov": [of(M)],
    "cross": [of(S, S[::-1])], "delete": [of(V, 2), of(M, [0, 1], axis=1)], "diag_indices_from": [of(S)],
    "digitize": [of(V, np.array([0.0, 1.0, 2.0]))], "dot": [of(S, S), of(V, V)], "dsplit": [of(T, 2)],
    "einsum": [of("ij,jk->ik", S, S), of("ii", S)], "einsum_path": [of("ij,jk->ik", S, S)],
    "expand_dims": [of(V, 0)], "extract": [of(B, V)], "fft.fftn": [of(T)], "fft.ifftn": [of(T)], "fft.irfftn": [of(T)],
    "fft.rfftn": [of(T)], "fill_diagonal": [of(S.copy(), 7)], "flip": [of(M, 1)], "full_like": [of(V, 3)],
    "geomspace": [of(np.array(1.0), np.array(8.0), 4)], "gradient": [of(V), of(M)],
    "histogram": [of(V, 4), of(V, V[:1])],
    "histogram2d": [of(V, V)], "histogramdd": [of((V, V))], "histogram_bin_edges": [of(V, 4)], "hsplit": [of(M, 2)],
    "hstack": [of([V, V])], "i0": [of(V)], "inner": [of(V, V)], "insert": [of(V, 1, 9.0), of(M, 1, V[:3], axis=1)],
    "interp": [of(V, np.array([0.0, 1.0, 2.0]), np.array([1.0, 3.0, 2.0]))], "intersect1d": [of(V, I)],
    "isclose": [of(V, V)], "isin": [of(V, I)], "iscomplex": [of(Z)], "isreal": [of(Z)], "ix_": [of(I, I)],
    "kron": [of(S, S)], "lexsort": [of((V, I)), of(M)], "linspace": [of(np.array(0.0), np.array(1.0), 5)],
    "linalg.lstsq": [of(M.T, V[:4])], "linalg.matmul": [of(S, M)], "linalg.matrix_power": [of(S, 3)],
    "linalg.multi_dot": [of([S, M, M.T])], "linalg.outer": [of(V, V)], "linalg.solve": [of(S, S[0]), of(S, M)],
    "linalg.tensordot": [of(S, M, axes=1)], "linalg.tensorinv": [of(np.eye(6).reshape(6, 2, 3), 1)],
    "linalg.tensorsolve": [of(np.eye(6).reshape(2, 3, 6), np.ones((2, 3)))], "linalg.vecdot": [of(S, S)],
    "linalg.cross": [of(S, S[::-1])], "logspace": [of(np.array(0.0), np.array(1.0), 5)], "may_share_memory": [of(V, M)],
    "meshgrid": [of(V, I), of(V, I, indexing="ij")], "moveaxis": [of(T, 0, 2)], "nanpercentile": [of(N, 30)],
    "nanquantile": [of(N, 0.3)], "outer": [of(V, V)], "packbits": [of(B)], "pad": [of(V, 2), of(M, 1, mode="edge")],
    "partition": [of(V, 2)], "percentile": [of(V, 30), of(M, [10, 50], axis=0)], "permute_dims": [of(T, (2, 0, 1))],
    "piecewise": [of(V, [V < 1, V >= 1], [lambda x: -x, 5.0])], "place": [of(V.copy(), B, V[:2])], "poly": [of(V)],
    "polyadd": [of(V, I)], "polyder": [of(V)], "polydiv": [of(V, V[:2])], "polyfit": [of(np.arange(5.0), V, 2)],
    "polyint": [of(V)], "polymul": [of(V, I)], "polysub": [of(V, I)], "polyval": [of(V, M)],
    "put": [of(V.copy(), I, 5.0)],
    "put_along_axis": [of(M.copy(), np.argmax(M, 1)[:, None], 9.0, 1)], "putmask": [of(V.copy(), B, 5.0)],
    "quantile": [of(V, 0.3)], "ravel_multi_index": [of((I, I), (3, 3))], "repeat": [of(V, 2), of(V, I)],
    "reshape": [of(M, (2, 6)), of(M, -1, order="F")], "resize": [of(V, (2, 4))], "result_type": [of(V, np.float32(3))],
    "roll": [of(V, 2)], "rollaxis": [of(T, 2)], "roots": [of(V)], "round": [of(V, 1)], "around": [of(V, 1)],
    "searchsorted": [of(np.sort(V), V)], "select": [of([V < 1, V > 2], [V, 2 * V])], "setdiff1d": [of(V, I)],
    "setxor1d": [of(V, I)], "shares_memory": [of(V, M)], "split": [of(V, 5)], "stack": [of([V, V], axis=1)],
    "sort_complex": [of(Z)], "swapaxes": [of(T, 0, 1)], "take": [of(V, I), of(M, [0, 2], axis=1)],
    "take_along_axis": [of(M, np.argsort(M, 1), 1)], "tensordot": [of(S, M, 1)], "tile": [of(V, (2, 2))],
    "trim_zeros": [of(np.array([0.0, 1.0, 0.0]))], "union1d": [of(V, I)],
    "unpackbits": [of(np.array([3, 7], np.uint8))],
    "unravel_index": [of(I, (3, 2))], "unstack": [of(M)], "vdot": [of(Z, Z)], "vsplit": [of(M, 3)],
    "vstack": [of([V, V])],
    "where": [of(B), of(B, V, I)], "vander": [of(V)], "trapezoid": [of(V), of(V, dx=0.5)], "unwrap": [of(V)],
    "ediff1d": [of(V)], "argwhere": [of(B)], "flatnonzero": [of(B)], "nonzero": [of(B)], "diagflat": [of(V)],
    "diag": [of(V), of(S)], "count_nonzero": [of(B), of(M, axis=0)], "angle": [of(Z)], "imag": [of(Z)], "real": [of(Z)],
    "isneginf": [of(V)], "isposinf": [of(V)], "squeeze": [of(V[None])], "cumulative_sum": [of(V)],
    "cumulative_prod": [of(V)], "atleast_1d": [of(V), of(V, M)], "atleast_2d": [of(V)], "atleast_3d": [of(V)],
    "tril_indices_from": [of(S)], "triu_indices_from": [of(S)], "sort": [of(V), of(M, axis=0)],
    "argsort": [of(V), of(M, axis=1)], "unique": [of(V), of(V, return_counts=True)], "size": [of(M), of(M, 1)],
    "min_scalar_type": [of(V)], "median": [of(V), of(M, axis=1)], "linalg.norm": [of(V), of(S), of(S, 1)],
    "linalg.vector_norm": [of(V)], "transpose": [of(M), of(T, (2, 0, 1))],
    **{name: [of(N), of(np.stack([N, N]), axis=1)] for name in
       "nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin nanprod nanstd nansum nanvar".split()},
    **{"linalg." + name: [of(S)] for name in
       "cholesky cond det diagonal eig eigh eigvals eigvalsh inv matrix_norm matrix_rank matrix_transpose pinv qr "
       "slogdet "
       "svd svdvals trace".split()},
    **{name: [of(S)] for name in "tril triu trace diagonal rot90 fliplr flipud matrix_transpose".split()},
    **{"fft." + name: [of(V)] for name in "fft fftshift hfft ifft ifftshift ihfft irfft rfft".split()},
}
# Functions of NumPy whose result is no array: descriptions, text and Python's numbers.
PLAIN = set("array2string array_repr array_str can_cast common_type iscomplexobj isrealobj may_share_memory "
            "min_scalar_type ndim result_type shape shares_memory size einsum_path".split())
# arrayd's documentation says that these are computed in this process: from few numbers, as counts that decide a shape,
# or as text.
ON_HOST = set("array2string array_repr array_str poly polydiv polyfit repeat roots".split())
# Files are the subject of test_io; dates are no type of arrayd's.
ELSEWHERE = set("save savetxt savez savez_compressed busday_count busday_offset datetime_as_string is_busday".split())


def on_server(value):
    if isinstance(value, np.ndarray):
        return ad.asarray(value)
    if isinstance(value, (list, tuple)):
        return type(value)(on_server(part) for part in value)
    return value


def find(module, name):
    return operator.attrgetter(name)(module)


def public(name):
    try:
        return find(ad, name)
    except AttributeError:
        return None


# ---- NEP 18: functions ----

@pytest.mark.parametrize("name", [name for name in PUBLIC if name not in ELSEWHERE])
def test_numpys_function(name, monkeypatch):
    """numpy.f(arrays of the server) is arrayd.f of them, or a TypeError that names it. Nothing is fetched for it."""
    function = find(np, name)
    for args, options in CALLS.get(name, [of(M)]):
        args = copy.deepcopy(args)
        given = on_server(args)
        expected, wrong = outcome(lambda: function(*args, **options))
        assert wrong is None, f"the table has no arguments for {name}: {wrong!r}"
        if public(name) in (None, function):
            with pytest.raises(TypeError, match=f"arrayd has no numpy.{name}; "):
                function(*given, **options)
            return
        with monkeypatch.context() as patch:
            if name not in ON_HOST:
                patch.setattr(ad.ndarray, "get", no_more_than_a_few(ad.ndarray.get))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                actual = function(*given, **options)
        if name in PLAIN:
            assert str(actual) == str(expected)
            continue
        assert not holds_host_arrays(actual), actual
        close(args[0] if expected is None else expected, given[0] if expected is None else actual, name)


def no_more_than_a_few(get):
    """Replace get: it may fetch the few numbers that decide a shape, and no more."""
    def get_few(self, **options):
        assert self.size <= 3, "elements were fetched"
        return get(self, **options)
    return get_few


def holds_host_arrays(value):
    if isinstance(value, (list, tuple)):
        return any(map(holds_host_arrays, value))
    return isinstance(value, (np.ndarray, np.generic)) and type(value) is not np.int32  # the rank that lstsq waits for


def close(expected, actual, name):
    if isinstance(expected, (list, tuple)):
        assert len(expected) == len(actual)
        for one, other in zip(expected, actual):
            close(one, other, name)
        return
    expected, actual = np.asarray(expected), np.asarray(fetch(actual))
    if name in ("linalg.eig", "linalg.eigvals"):  # complex whatever they are, as CuPy's
        expected = expected.astype(actual.dtype)
    assert expected.shape == actual.shape and expected.dtype.kind == actual.dtype.kind, (expected, actual)
    assert expected.dtype == actual.dtype, (expected, actual)
    if name in ("linalg.eigh", "linalg.svd", "linalg.qr", "linalg.eig"):  # up to a sign
        expected, actual = abs(expected), abs(actual)
    if name != "empty_like":
        np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-13)


def test_arrays_like():
    a = ad.zeros(3)
    for made in (np.asarray([1, 2], like=a), np.array([1, 2], like=a), np.zeros((2, 3), like=a), np.arange(4, like=a),
                 np.full(3, 2.0, like=a), np.eye(3, like=a), np.empty(2, like=a), np.ones(2, np.int8, like=a),
                 np.frombuffer(b"abcd", np.uint8, like=a), np.fromiter(range(3), int, like=a),
                 np.identity(2, like=a), np.tri(3, like=a), np.asanyarray([1], like=a),
                 np.ascontiguousarray([1], like=a),
                 np.fromfunction(lambda i: i + 1, (3,), like=a), np.fromstring("1 2", sep=" ", like=a)):
        assert type(made) is ad.ndarray
    compare(np.arange(4), np.arange(4, like=a).get())


class Foreign:
    """An array of a third library that knows of arrayd's."""

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return "theirs"

    def __array_function__(self, func, types, args, kwargs):
        return "theirs"


class Shy(Foreign):
    """A class that leaves operations to the other operand."""

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return NotImplemented

    def __array_function__(self, func, types, args, kwargs):
        return NotImplemented


class Measured(np.ndarray):
    """A subclass of NumPy's array with a meaning of its own."""

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return "measured"

    def __array_function__(self, func, types, args, kwargs):
        return "measured"


class Mine(ad.ndarray):
    """A subclass of arrayd's."""

    def __array_function__(self, func, types, args, kwargs):
        return "mine", super().__array_function__(func, types, args, kwargs)


def test_third_libraries():
    a, measured = ad.arange(3), np.zeros(3).view(Measured)
    for call in (lambda other: np.add(a, other), lambda other: np.add(other, a), lambda other: np.add(a, 1, out=other),
                 lambda other: np.add(a, 1, where=other), lambda other: np.matmul(a, other),
                 lambda other: np.add.reduce(a, out=other), lambda other: np.add.outer(other, a),
                 lambda other: np.concatenate([a, other]), lambda other: np.where(a, other, a),
                 lambda other: np.sum(a, out=other), lambda other: np.busday_offset(a, other)):
        assert call(Foreign()) == "theirs" and call(measured) == "measured"
        with pytest.raises(TypeError, match="returned NotImplemented|no implementation found"):
            call(Shy())
    mine = Mine(3)
    word, result = np.concatenate([mine, a])
    assert word == "mine" and type(result) is ad.ndarray
    assert type(np.add(mine, a)) is Mine


def test_numpys_arrays_beside():
    """Functions take them as arrayd's functions do; ufuncs and operators do not upload by themselves."""
    a, x = ad.arange(3.0), np.arange(3.0)
    compare(np.concatenate([x, x]), np.concatenate([a, x]).get())
    compare(np.concatenate([x, x]), np.concatenate([x, a]).get())
    assert float(np.dot(x, a)) == 5
    for call in (lambda: np.add(x, a), lambda: np.add(a, x), lambda: x * a, lambda: a * x, lambda: x @ a, lambda: a @ x,
                 lambda: np.matmul(x, a), lambda: np.vecdot(a, x), lambda: x < a, lambda: x == a, lambda: divmod(x, a),
                 lambda: np.multiply.outer(x, a)):
        with pytest.raises(TypeError, match="asarray"):
            call()
    for call in (lambda: np.add(a, a, out=x), lambda: operator.iadd(x, a), lambda: np.add(a, a, out=(x,))):
        with pytest.raises(TypeError, match="arrayd.asarray"):
            call()
    compare(x, np.arange(3.0))


# ---- NEP 13: ufuncs ----

def operands(name, kind):
    ufunc = _core.ufuncs.get(getattr(np, name).__name__)
    domain = ufunc.domain if ufunc else "ANY"
    return [random(seed(name, kind, i), kind, (3, 3), domain, i == 1) for i in range(getattr(np, name).nin)]


@pytest.mark.parametrize("name", [name for name in UFUNCS if name not in LACKING])
def test_numpys_ufunc(name):
    ufunc = getattr(np, name)
    for kind in (*BOOL, *INTEGERS[:2], *FLOATS[1:], *COMPLEX[:1]):
        inputs = operands(name, kind)
        given = [ad.asarray(x) for x in inputs]
        expected, wrong = outcome(lambda: ufunc(*inputs))
        actual, error = outcome(lambda: ufunc(*given))
        own = _core.ufuncs.get(ufunc.__name__) or getattr(ad, name)
        direct, other = outcome(lambda: own(*given))
        assert type(error) is type(other), (kind, error, other)
        if wrong is not None:
            assert isinstance(error, TypeError), (kind, wrong, error)
        elif error is None:
            for one in actual if ufunc.nout > 1 else [actual]:
                assert type(one) is ad.ndarray
            compare(fetch(direct), fetch(actual), exact=True)
            if not (name in ("power", "pow", "float_power") and kind == np.int8):
                compare(expected, fetch(actual), ulps=64)


def test_every_ufunc_is_there():
    for name in LACKING:
        with pytest.raises(TypeError, match=f"arrayd has no counterpart of NumPy's ufunc {name}"):
            getattr(np, name)(ad.arange(3))
    for call, what in ((lambda a: np.arctan2.reduceat(a, [0, 1]), "arctan2.reduceat"),
                       (lambda a: np.frompyfunc(abs, 1, 1)(a), "abs "),
                       (lambda a: np.arctan2.reduce(a), "arctan2.reduce"),
                       (lambda a: np.arctan2.accumulate(a), "arctan2.accumulate")):
        with pytest.raises(TypeError, match=f"arrayd has no .*{what}"):
            call(ad.arange(3.0))


def test_an_unknown_ufunc_of_a_known_name():
    add = np.frompyfunc(lambda x, y: x * y, 2, 1)
    try:
        add.__name__ = "add"  # where NumPy allows it; numba and others make such ones
    except AttributeError:
        pass
    with pytest.raises(TypeError, match="no counterpart"):
        add(ad.arange(3), ad.arange(3))


def filled(body):
    """A body whose last argument is a copy of the array, to write into; gives it as well."""
    def run(xp, a, b):
        a = a.copy()
        result = body(xp, a, b)
        assert result is None or result is a
        return a
    return run


OPTIONS = [
    lambda xp, a, b: np.add(a, b, dtype=np.float64), lambda xp, a, b: np.add(a, b, dtype="f4", casting="same_kind"),
    lambda xp, a, b: np.add(a, b, dtype=np.int8), lambda xp, a, b: np.add(a, b, casting="no"),
    lambda xp, a, b: np.add(a, 1.5, casting="unsafe", dtype=np.int32), lambda xp, a,
    b: np.sqrt(a, order="F", subok=False),
    filled(lambda xp, a, b: np.sqrt(b, out=a)), filled(lambda xp, a, b: np.sqrt(b, out=(a,))),
    filled(lambda xp, a, b: np.sqrt(b, a)), filled(lambda xp, a, b: np.add(a, b, out=a, where=b > 2)),
    filled(lambda xp, a, b: np.multiply(a, b, a, where=xp.asarray([True, False, True, False]))),
    filled(lambda xp, a, b: np.matmul(b[:, :3], b[:3], out=a)), filled(lambda xp, a, b: np.add(a, b[0], out=a)),
    lambda xp, a, b: np.divmod(a, b + 1), lambda xp, a, b: np.modf(a, out=(None, a.copy()))[0],
    lambda xp, a, b: np.add.reduce(a), lambda xp, a, b: np.add.reduce(a, axis=None),
    lambda xp, a, b: np.add.reduce(a, 1, np.float64, None, True), lambda xp, a, b: np.multiply.reduce(a, (0, 1)),
    lambda xp, a, b: np.maximum.reduce(a, axis=1, initial=3), lambda xp, a, b: np.add.reduce(a, where=a > 2),
    lambda xp, a, b: np.logical_or.reduce(a > 3, axis=1), lambda xp, a, b: np.minimum.reduce(a, axis=0, keepdims=True),
    filled(lambda xp, a, b: np.add.reduce(a[None], axis=0, out=a)), lambda xp, a, b: np.add.reduce(a, axis=5),
    lambda xp, a, b: np.add.accumulate(a), lambda xp, a, b: np.multiply.accumulate(a, axis=1),
    lambda xp, a, b: np.add.accumulate(a, 1, np.float64), lambda xp, a, b: np.add.accumulate(a[0, 0, ...]),
    lambda xp, a, b: np.subtract.outer(a[0], b[:, 0]), lambda xp, a, b: np.add.outer(a[0], 2),
    lambda xp, a, b: np.power.outer(2.0, a), lambda xp, a, b: np.sqrt.outer(a, a),
    filled(lambda xp, a, b: np.add.at(a, [0, 0, 2], 5)), filled(lambda xp, a, b: np.subtract.at(a, [0, 0, 2], b[0])),
    filled(lambda xp, a, b: np.subtract.at(a, ([0, 1, 1], [2, 3, 3]), 2)),
    filled(lambda xp, a, b: np.maximum.at(a, 1, b[0])),
    filled(lambda xp, a, b: np.add.at(a, (slice(None), [1, 1]), 3)), filled(lambda xp, a, b: np.add.at(a, a > 2, 1)),
    lambda xp, a, b: np.add.at(a.copy(), [0]), lambda xp, a, b: np.sqrt.reduce(a), lambda xp, a,
    b: np.sqrt.accumulate(a),
    lambda xp, a, b: np.add(a, b, bogus=1), lambda xp, a, b: np.add(a), lambda xp, a, b: np.add(a, "text"),
    lambda xp, a, b: np.add(a, None), lambda xp, a, b: np.add(a, b, a.copy(), out=a.copy()),
]


@pytest.mark.parametrize("number", range(len(OPTIONS)))
@pytest.mark.parametrize("kind", [np.dtype("int32"), np.dtype("uint8"), np.dtype("float32")], ids=str)
def test_options_and_methods(number, kind):
    check(OPTIONS[number], *(random(seed(which, kind), kind, (3, 4), "POS") for which in ("ufunc", "other")))


OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
             operator.and_, operator.or_, operator.xor, operator.lshift, operator.lt, operator.le, operator.eq,
             operator.ne,
             operator.gt, operator.ge, divmod]


@pytest.mark.parametrize("apply", OPERATORS, ids=lambda f: f.__name__)
def test_scalars_of_numpy_on_the_left(apply):
    for kind in DTYPES:
        x = np.array([1, 0, 3]).astype(kind)
        for other in DTYPES:
            check(lambda xp, a: apply(other.type(1), a), x)


# ---- NumPy's arrays ----

def test_no_implicit_copy():
    a = ad.arange(3.0)
    host = np.zeros(3)
    ad.sync()
    before = ad.session_info()["round_trips"]
    for convert in (np.asarray, np.array, lambda a: np.array([a, a]), lambda a: np.asarray([a[0], 1.0]), np.float64,
                    lambda a: host.__setitem__(slice(None), a), lambda a: a.__array__(), np.random.permutation,
                    lambda a: a.__array__(np.float32, copy=None), lambda a: host.dot(a)):
        with pytest.raises(TypeError, match=r"a\.get\(\).*arrayd\.asnumpy\(a\)|asarray"):
            convert(a)
    with pytest.raises(ValueError, match="setting an array element"):
        host[0] = a
    assert ad.session_info()["round_trips"] == before
    assert (host == 0).all()


def test_get_array_module():
    a = ad.zeros(2)
    assert ad.get_array_module(a) is ad and ad.get_array_module(np.zeros(2), a) is ad
    assert ad.get_array_module(np.zeros(2)) is np and ad.get_array_module() is np and ad.get_array_module(1, [a]) is np


def test_what_is_absent():
    a = ad.zeros(2)
    for name in ("ptr", "__array_interface__", "__array_struct__", "ctypes"):
        assert not hasattr(a, name)
    if ad.session_info()["backend"] == "cpu":
        assert not hasattr(a, "__cuda_array_interface__")
    with pytest.raises(TypeError):
        memoryview(a)


# ---- buffers and sequences ----

BUFFERS = [
    bytearray(b"abc"), memoryview(b"abcdef"), memoryview(b"abcdef")[::2], array.array("d", [1.5, 2]),
    array.array("h", [1, -2]),
    memoryview(array.array("i", range(6))).cast("B").cast("i", (2, 3)), array.array("f"),
    memoryview(np.arange(6.0)[::-2]),
    np.arange(6, dtype=">i4"), range(4), (1, 2.5), [[True], [False]], [], [[], []], 3, 2j, None, "text", [1, [2, 3]],
    [b"a"],
    np.datetime64("2020-01-01"), {1: 2}, np.float32(2),
]


@pytest.mark.parametrize("value", BUFFERS, ids=lambda value: type(value).__name__)
def test_asarray(value):
    if value is None or isinstance(value, (str, dict, np.datetime64)) or isinstance(value, list) and value == [b"a"]:
        with pytest.raises(TypeError, match="arrayd has no dtype"):
            ad.asarray(value)
        return
    check(lambda xp, a: xp.asarray(value).astype(xp.asarray(value).dtype.newbyteorder("=")), np.zeros(1))
    check(lambda xp, a: xp.asarray(value, dtype=np.float32), np.zeros(1))
    check(lambda xp, a: xp.array(value, ndmin=2, dtype=complex), np.zeros(1))


def test_bytes_are_text():
    with pytest.raises(TypeError, match="frombuffer"):
        ad.asarray(b"abc")
    compare(np.frombuffer(b"abcd", np.int16), ad.frombuffer(b"abcd", np.int16).get())


NESTED = [
    lambda a: [a, a], lambda a: (a, a), lambda a: [[a, a], [a, a]], lambda a: [a[0], 1, 2.5],
    lambda a: [[1, 2], [a[0], 3]],
    lambda a: [[1, 2, 3], a], lambda a: [a, np.arange(3.0)], lambda a: [a, [1.5, 2, 3]], lambda a: [a[:2], a],
    lambda a: [1, [a]], lambda a: [a[:0]], lambda a: [(a[0], a[1]), [a[2], True]],
]


@pytest.mark.parametrize("number", range(len(NESTED)))
def test_sequences_of_arrays(number):
    for kind in ("int8", "float32", "float64"):
        check(lambda xp, a: xp.asarray(NESTED[number](a)), np.arange(3).astype(kind))
        check(lambda xp, a: xp.array(NESTED[number](a), dtype=np.float16), np.arange(3).astype(kind))


# ---- Python's own protocols ----

CONVERSIONS = [bool, int, float, complex, operator.index, bytes, str, repr, len, math.sqrt, math.floor, round, abs,
               lambda a: [10, 20, 30][a], lambda a: list(range(a)), lambda a: 2 in a, lambda a: "x" in a,
               lambda a: [np.asarray(fetch(x)).tolist() for x in a], lambda a: [*zip(*a)] and None,
               lambda a: next(reversed(a)).tolist(), lambda a: hash(a), lambda a: a in [1, 2], lambda a: a.tolist(),
               lambda a: a.item(), lambda a: a.item(0), lambda a: "%d" % a, lambda a: f"{a:.3f}", lambda a: f"{a:>10}"]


@pytest.mark.parametrize("number", range(len(CONVERSIONS)))
@pytest.mark.parametrize("shape", [(), (1,), (2,), (0,), (2, 3)], ids=str)
def test_conversions(number, shape):
    for kind in ("bool", "uint8", "int64", "float32", "float64", "complex64"):
        x = np.ones(shape, kind)
        with warnings.catch_warnings():
            warnings.simplefilter("error", DeprecationWarning)
            expected, wrong = outcome(lambda: CONVERSIONS[number](x))
        actual, error = outcome(lambda: CONVERSIONS[number](ad.asarray(x)))
        if wrong is not None:
            assert error is not None and isinstance(error, (type(wrong), TypeError)), (kind, wrong, error)
        else:
            assert error is None, (kind, error, expected)
            assert np.array_equal(fetch(actual), expected), (kind, expected, actual)


@pytest.mark.parametrize("kind", [*DTYPES, "bfloat16"], ids=str)
def test_copies_and_pickles(kind):
    x = np.arange(12).reshape(3, 4).astype(ad.dtype("float32") if kind == "bfloat16" else kind)
    for turn in (lambda a: a, lambda a: a.T, lambda a: a[::2, 1:], lambda a: a[1, 1, ...], lambda a: a[:0]):
        a = turn(ad.asarray(x).astype(kind))
        ways = [copy.copy, copy.deepcopy, lambda a: pickle.loads(a.dumps()), lambda a: copy.deepcopy([a])[0]]
        ways += [lambda a, n=n: pickle.loads(pickle.dumps(a, n)) for n in range(pickle.HIGHEST_PROTOCOL + 1)]
        for way in ways:
            b = way(a)
            assert type(b) is ad.ndarray and b.dtype == a.dtype and b.shape == a.shape
            assert a.tobytes() == b.tobytes() and not ad.shares_memory(a, b)
        if a.ndim == 2 and a.flags.f_contiguous and a.size:
            assert pickle.loads(pickle.dumps(a)).flags.f_contiguous and copy.deepcopy(a).flags.f_contiguous


def test_pickles_of_what_belongs_to_arrays():
    assert pickle.loads(pickle.dumps(ad.add)) is ad.add and pickle.loads(pickle.dumps(ad.ndarray)) is ad.ndarray
    assert copy.deepcopy(ad.ndarray[int, "float64"]) == ad.ndarray[int, "float64"]
    assert ad.ndarray[int].__origin__ is ad.ndarray


def test_dump_and_tofile(tmp_path):
    a = ad.arange(6.0).reshape(2, 3)
    a.dump(tmp_path / "dumped")
    with open(tmp_path / "open", "wb") as file:
        a.dump(file)
    for path in (tmp_path / "dumped", tmp_path / "open"):
        with open(path, "rb") as file:
            back = pickle.load(file)
        assert type(back) is ad.ndarray and (back == a).all()
    a.tofile(tmp_path / "raw")
    compare(a.get().ravel(), np.fromfile(tmp_path / "raw"))


@pytest.mark.parametrize("kind", DTYPES, ids=str)
def test_byteswap(kind):
    for shape in ((), (3,), (2, 3), (0,), (2, 0)):
        x = np.asarray(random(seed("byteswap", kind), kind, shape))
        for turn in (lambda a: a, lambda a: a.T, lambda a: a[..., ::-1] if a.ndim else a):
            swapped = turn(ad.asarray(x)).byteswap()
            assert swapped.dtype == kind and swapped.tobytes() == turn(x).byteswap().tobytes()
            a = ad.asarray(x)
            view = turn(a)
            assert view.byteswap(inplace=True) is view and view.tobytes() == turn(x).byteswap().tobytes()
            assert a.tobytes() == x.byteswap().tobytes()


def test_reduced_view():
    a = ad.arange(120).reshape(2, 3, 4, 5)
    for turn, shape in ((lambda a: a, (120,)), (lambda a: a[:, :2], (2, 40)), (lambda a: a[..., ::2], (24, 3)),
                        (lambda a: a[:, None, :, ::3], (6, 2, 5)), (lambda a: a.T, (5, 4, 3, 2)),
                        (lambda a: a[0, 0, 0, 0, ...], ()), (lambda a: a[:1, :1, :1, :1], (1,)),
                        (lambda a: a[:0], (0,)),
                        (lambda a: a[0, 0, 0, ::2], (3,)), (lambda a: a[:, :, 1:2, 1:2], (6,))):
        view = turn(a).reduced_view()
        assert view.shape == shape and ad.shares_memory(view, a) == (view.size > 0)
        assert view.get().ravel().tolist() == turn(a).get().ravel().tolist()
    assert a.reduced_view("float64").dtype == "float64" and a.T.reduced_view().shape == (5, 4, 3, 2)


def test_what_cupy_has():
    a = ad.asarray([3, 1, 2])
    assert int(a.ptp()) == 2
    assert type(a.toDlpack()).__name__ == "PyCapsule"


def test_one_type():
    a = ad.zeros(2)
    for made in (a, a + 1, a[:1], a.T, a.sum(), ad.asarray([1]), np.add(a, a), Mine(3).sum()):
        assert type(made) is ad.ndarray and isinstance(made, ad.ndarray)
    assert isinstance(Mine(3), ad.ndarray) and not isinstance(np.zeros(2), ad.ndarray)


def test_nothing_waits():
    a = ad.arange(12.0).reshape(3, 4) + 1
    ad.sync()
    before = ad.session_info()["round_trips"]
    np.sum(np.sqrt(np.add(a, a, out=a)), axis=0)
    np.float64(2) * a < np.concatenate([a, a])[:3]
    np.linalg.norm(np.fft.fft(a), axis=1)
    np.add.at(a, [0, 0], 1)
    ad.asarray([a, a])
    ad.asarray([[a[0, 0], 2], [3, 4]])
    a.byteswap()
    copy.deepcopy(a)
    assert ad.session_info()["round_trips"] == before
