"""Every function of the standard that is not elementwise, with each of its parameters, beside array-api-strict."""
import numpy as np
import pytest
from standard import COMPLEX, DTYPES, FLOATING, INTEGER, equal, find, host, name_of, names, of, same, xs

import arrayd as ad

RNG = np.random.default_rng(20241200)
NUMERIC = [*INTEGER, *FLOATING, *COMPLEX]
INEXACT = [*FLOATING, *COMPLEX]
REAL = [*INTEGER, *FLOATING]


def filled(shape, dtype):
    """Small numbers, some of them equal."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.asarray(RNG.random(shape) < 0.6)
    if dtype.kind in "iu":
        return np.asarray(RNG.integers(0 if dtype.kind == "u" else -5, 6, shape), dtype)
    real = RNG.integers(-8, 9, shape) / 4
    return np.asarray(real + 1j * RNG.integers(-8, 9, shape) / 4 if dtype.kind == "c" else real, dtype)


def matrices(shape, dtype):
    """Square matrices of which no eigenvalue is near zero."""
    a = RNG.random(shape) + (1j * RNG.random(shape) if np.dtype(dtype).kind == "c" else 0)
    return (a + shape[-1] * np.eye(shape[-1])).astype(dtype)


def hermitian(shape, dtype):
    """Return a random Hermitian matrix that is positive definite."""
    a = matrices(shape, dtype)
    return (a @ a.conj().swapaxes(-2, -1)).astype(dtype)


SHAPES = [(), (1,), (5,), (0,), (3, 4), (2, 3, 2), (2, 0, 3)]
AXES = [{}, {"axis": 0}, {"axis": -1}]


def reductions():
    """Axes, several axes, kept dimensions."""
    for shape in SHAPES:
        yield shape, {}
        yield shape, {"axis": None, "keepdims": True}
        for axis in range(len(shape)):
            yield shape, {"axis": axis, "keepdims": axis == 1}
        if len(shape) == 3:
            yield shape, {"axis": (0, -1)}
            yield shape, {"axis": (2, 0), "keepdims": True}


def statistics():
    for name, types in {"sum": NUMERIC, "prod": NUMERIC, "mean": FLOATING, "std": FLOATING, "var": FLOATING,
                        "max": REAL, "min": REAL, "all": DTYPES, "any": DTYPES, "count_nonzero": DTYPES, "argmax": REAL,
                        "argmin": REAL}.items():
        for shape, kwargs in reductions():
            if 0 in shape and name in ("max", "min", "argmax", "argmin", "mean", "std", "var"):
                continue
            if name.startswith("arg") and isinstance(kwargs.get("axis"), tuple):
                continue
            for dtype in types:
                yield name, (filled(shape, dtype),), kwargs
    for name in ("sum", "prod", "cumulative_sum", "cumulative_prod"):
        for dtype in ("float32", "int8", "uint8"):
            yield name, (filled((4,), dtype),), {"dtype": "float64"}
    for name in ("std", "var"):
        yield name, (filled((5, 3), "float64"),), {"correction": 1.0}
        yield name, (filled((5, 3), "float32"),), {"correction": 0.5, "axis": 0}
    for name in ("cumulative_sum", "cumulative_prod"):
        for dtype in NUMERIC:
            yield name, (filled((5,), dtype),), {}
            yield name, (filled((3, 4), dtype),), {"axis": 1, "include_initial": True}
            yield name, (filled((3, 4), dtype),), {"axis": -2, "include_initial": False}
        yield name, (filled((0,), "float64"),), {"include_initial": True}


def creation():
    for args in ((5,), (2, 7), (7, 2), (0, 10, 3), (10, 0, -3), (0.0, 1.0, 0.25), (0,), (1, None)):
        yield "arange", args, {}
        for dtype in ("int32", "float32", "float64", "uint8"):
            if args[-1] is None or min(args) >= 0:
                yield "arange", args, {"dtype": dtype}
    for args in ((0, 1, 5), (0, 1, 1), (1.5, -2, 7), (0, 1, 0), (0, 10, 11)):
        yield "linspace", args, {}
        yield "linspace", args, {"endpoint": False, "dtype": "float32"}
    yield "linspace", (0, 1 + 1j, 4), {"dtype": "complex128"}
    for rows, columns, k in ((3, None, 0), (3, 4, 1), (4, 2, -1), (0, 3, 0), (2, 2, 5)):
        yield "eye", (rows, columns), {"k": k}
        yield "eye", (rows, columns), {"k": k, "dtype": "int8"}
    for name in ("zeros", "ones"):
        for shape in (*SHAPES, 3):
            yield name, (shape,), {}
            yield name, (shape,), {"dtype": None, "device": None}
        for dtype in DTYPES:
            yield name, ((2, 3),), {"dtype": dtype}
            yield name + "_like", (filled((2, 3), dtype),), {}
            yield name + "_like", (filled((2, 3), dtype),), {"dtype": "float32"}
            yield "full_like", (filled((2, 3), dtype), 1), {}
    for value in (True, 3, 2.5, 1j):
        yield "full", ((2, 2), value), {}
    yield "full", (4, 3), {"dtype": "float32"}
    for value in (True, 3, 2.5, 1j, [1, 2], [[1.5], [2.5]], [True, False], (1, 2), [], [1, 2.5], [1, 1j]):
        yield "asarray", (value,), {}
        yield "asarray", (value,), {"dtype": "complex128", "copy": None}
    for indexing in ("xy", "ij"):
        yield "meshgrid", (filled((3,), "float64"), filled((2,), "float64")), {"indexing": indexing}
        yield "meshgrid", tuple(filled((n,), "int64") for n in (2, 3, 1)), {"indexing": indexing}
    yield "meshgrid", (filled((3,), "float32"),), {}
    for name in ("tril", "triu"):
        for shape in ((3, 4), (2, 3, 3), (0, 2)):
            for k in (0, 1, -2):
                for dtype in ("float64", "int8", "bool", "complex64"):
                    yield name, (filled(shape, dtype),), {"k": k}
    for dtype in DTYPES:
        for other in DTYPES:
            if not (dtype in COMPLEX and other not in COMPLEX) and not (dtype == "float32" and other.startswith("u")):
                yield "astype", (abs(filled((3,), dtype)), other), {"copy": other != dtype}


def manipulation():
    a, b = filled((2, 3), "float64"), filled((2, 3), "float64")
    for axis in (0, 1, -1, None):
        yield "concat", ([a, b],), {"axis": axis}
        yield "flip", (a,), {"axis": axis}
    for axis in (0, 1, 2, -1, -3):
        yield "stack", ([a, b],), {"axis": axis}
        yield "expand_dims", (a,), {"axis": axis}
    yield "concat", ((filled((2,), "int8"), filled((3,), "int16")),), {}
    yield "concat", ((filled((2,), "int8"), filled((0,), "int8")),), {}
    yield "flip", (filled((2, 3, 4), "int32"),), {"axis": (0, 2)}
    yield "permute_dims", (filled((2, 3, 4), "int32"), (2, 0, 1)), {}
    yield "permute_dims", (filled((), "int32"), ()), {}
    yield "moveaxis", (filled((2, 3, 4), "int32"), 0, -1), {}
    yield "moveaxis", (filled((2, 3, 4), "int32"), (0, 1), (1, 2)), {}
    for copy in (None, True):
        yield "reshape", (a, (3, 2)), {"copy": copy}
        yield "reshape", (a, (-1,)), {"copy": copy}
    yield "reshape", (a[:, :1], (1, 2, 1)), {}
    for shift, axis in ((1, None), (-2, 0), ((1, 2), (0, 1)), (7, 1), (0, None)):
        yield "roll", (a, shift), {"axis": axis}
    yield "squeeze", (filled((1, 3, 1), "float32"), 0), {}
    yield "squeeze", (filled((1, 3, 1), "float32"), (0, -1)), {}
    for axis in (0, 1, -1):
        yield "unstack", (a,), {"axis": axis}
    for repeats, axis in ((2, None), (3, 0), (np.array([1, 2]), 0), (np.array([0, 2, 1]), 1), (0, 1)):
        yield "repeat", (a, repeats), {"axis": axis}
    for times in ((2,), (2, 3), (1, 2, 2), ()):
        yield "tile", (a, times), {}
    yield "broadcast_to", (filled((3, 1), "int8"), (2, 3, 4)), {}
    yield "broadcast_arrays", (filled((3, 1), "int8"), filled((2,), "float32")), {}


def searching():
    for dtype in REAL:
        x = filled((4, 5), dtype)
        for axis in (-1, 0, 1):
            for descending in (False, True):
                for stable in (True, False):
                    yield "sort", (x,), {"axis": axis, "descending": descending, "stable": stable}
                yield "argsort", (x,), {"axis": axis, "descending": descending, "stable": True}
        line = np.sort(filled((7,), dtype))
        for side in ("left", "right"):
            yield "searchsorted", (line, filled((2, 3), dtype)), {"side": side}
        mixed = np.flip(line).copy()
        yield "searchsorted", (mixed, filled((3,), dtype)), {"sorter": np.argsort(mixed)}
    yield "sort", (filled((0,), "float64"),), {}
    for dtype in DTYPES:
        for shape in ((6,), (3, 4), (0, 2)):
            yield "nonzero", (filled(shape, dtype),), {}
            for name in ("unique_values", "unique_counts", "unique_inverse", "unique_all"):
                yield name, (filled(shape, dtype),), {}
    yield "unique_counts", (np.array([np.nan, 1, np.nan]),), {}
    yield "unique_values", (np.array([np.nan, 1, np.nan, -0.0]),), {}
    for axis in (0, 1, -1):
        a = filled((3, 4), "float32")
        yield "take", (a, np.array([2, 0, 1, 1])), {"axis": axis}
        yield "take_along_axis", (a, np.array([[2, 0], [1, 1], [0, 2]])[:, :1 if axis == 0 else 2].repeat(
            4 if axis == 0 else 1, 1)), {"axis": axis}
    yield "take", (filled((5,), "int8"), np.array([], "int64")), {}
    yield "take", (filled((5,), "int8"), np.array([4, 0])), {}
    yield "take_along_axis", (filled((3, 4), "float32"), np.array([[3], [0], [2]])), {}


def differences():
    for dtype in NUMERIC:
        x = filled((3, 5), dtype)
        yield "diff", (x,), {}
        yield "diff", (x,), {"axis": 0, "n": 2, "prepend": None, "append": None}
        yield "diff", (x,), {"prepend": filled((3, 1), dtype), "append": filled((3, 2), dtype)}
    yield "diff", (filled((4,), "float64"),), {"n": 0}


def products():
    for dtype in NUMERIC:
        a, b = filled((3, 4), dtype), filled((4, 2), dtype)
        for prefix in ("", "linalg."):
            yield prefix + "matmul", (a, b), {}
            yield prefix + "matmul", (a, b[:, 0]), {}
            yield prefix + "matmul", (filled((2, 1, 3, 4), dtype), filled((5, 4, 2), dtype)), {}
            yield prefix + "matrix_transpose", (filled((2, 3, 4), dtype),), {}
            yield prefix + "tensordot", (a, b), {"axes": 1}
            yield prefix + "tensordot", (a, a), {"axes": 2}
            yield prefix + "tensordot", (a, filled((3, 2), dtype)), {"axes": 0}
            yield prefix + "tensordot", (filled((2, 3, 4), dtype), filled((4, 5, 3), dtype)), {"axes": ((1, 2), (2, 0))}
            yield prefix + "vecdot", (a, filled((4,), dtype)), {}
            yield prefix + "vecdot", (a, filled((3, 1), dtype).repeat(4, 1)), {"axis": -2}
        yield "linalg.outer", (a[0], b[:, 0]), {}
        yield "linalg.trace", (filled((2, 3, 4), dtype),), {"offset": 1}
        yield "linalg.trace", (a,), {"dtype": "float64" if dtype not in COMPLEX else "complex128"}
        yield "linalg.diagonal", (filled((2, 3, 4), dtype),), {"offset": -1}
        if not dtype.startswith("u"):
            yield "linalg.cross", (filled((4, 3), dtype), filled((3,), dtype)), {}
            yield "linalg.cross", (filled((3, 4), dtype), filled((3, 4), dtype)), {"axis": -2}


def decompositions():
    for dtype in INEXACT:
        square, positive = matrices((2, 4, 4), dtype), hermitian((2, 4, 4), dtype)
        tall = np.concatenate([matrices((3, 3), dtype), matrices((3, 3), dtype)])
        yield "linalg.det", (square,), {}
        yield "linalg.slogdet", (square,), {}
        yield "linalg.inv", (square,), {}
        yield "linalg.solve", (square, filled((2, 4, 3), dtype)), {}
        yield "linalg.solve", (square[0], filled((4,), dtype)), {}
        for n in (-2, 0, 1, 3):
            yield "linalg.matrix_power", (square, n), {}
        for upper in (False, True):
            yield "linalg.cholesky", (positive,), {"upper": upper}
        yield "linalg.eigvalsh", (positive,), {}
        yield "linalg.svdvals", (tall,), {}
        for rtol in (None, 1e-3):
            yield "linalg.pinv", (tall,), {"rtol": rtol}
            yield "linalg.matrix_rank", (np.stack([tall, tall * 0]),), {"rtol": rtol}
        for order in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
            yield "linalg.matrix_norm", (square,), {"ord": order, "keepdims": order == 2}
        for order in (0, 1, 2, 3, -1, 0.5, np.inf, -np.inf):
            yield "linalg.vector_norm", (filled((3, 4), dtype) + 3,), {"ord": order}
            yield "linalg.vector_norm", (filled((3, 4), dtype) + 3,), {"ord": order, "axis": 1, "keepdims": True}
        yield "linalg.vector_norm", (filled((2, 3, 4), dtype),), {"axis": (0, 2)}


def transforms():
    for dtype in INEXACT:
        x = filled((4, 6), dtype)
        for norm in ("backward", "ortho", "forward"):
            for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
                if (dtype in FLOATING) != (name in ("rfft", "ihfft")):
                    continue
                yield "fft." + name, (x,), {"norm": norm}
                yield "fft." + name, (x,), {"n": 5, "axis": 0, "norm": norm}
            for name in ("fftn", "ifftn", "rfftn", "irfftn"):
                if (dtype in FLOATING) != (name == "rfftn"):
                    continue
                yield "fft." + name, (x,), {"norm": norm}
                yield "fft." + name, (x,), {"s": (3, 8), "axes": (0, 1), "norm": norm}
        for name in ("fftshift", "ifftshift"):
            yield "fft." + name, (x,), {}
            yield "fft." + name, (x,), {"axes": 1}
            yield "fft." + name, (x,), {"axes": (0,)}
    for name in ("fftfreq", "rfftfreq"):
        for n in (1, 4, 5):
            yield "fft." + name, (n,), {}
            yield "fft." + name, (n,), {"d": 0.5, "dtype": "float32", "device": None}


TABLES = [statistics, creation, manipulation, searching, differences, products, decompositions, transforms]
EXACT = {creation, manipulation, searching}
# Eigenvectors and factors are determined up to a sign. Their results together test them.
OTHERWISE = {"linalg.eigh", "linalg.qr", "linalg.svd", "empty", "empty_like", "from_dlpack", "can_cast", "finfo",
             "iinfo", "isdtype", "result_type", "__array_namespace_info__", "clip", "where"}


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.__name__)
def test_values(table):
    count = 0
    for name, args, kwargs in table():
        what = f"{name}({', '.join(map(repr, args))}, {kwargs})"
        with np.errstate(all="ignore"):
            want = find(xs, name)(*of(xs, args), **of(xs, kwargs))
        got = find(ad, name)(*of(ad, args), **of(ad, kwargs))
        same(got, want, what, 0 if table in EXACT else 200)
        count += 1
    assert count > 10


def test_the_tables_have_every_function():
    from test_elementwise import ONE, TWO
    done = {name for table in TABLES for name, _, _ in table()} | OTHERWISE | set(ONE) | set(TWO)
    every = {prefix + name for prefix, space in (("", xs), ("linalg.", xs.linalg), ("fft.", xs.fft))
             for name in names(space) if callable(getattr(space, name))}
    assert every - done == set()


@pytest.mark.parametrize("dtype", INEXACT)
def test_factors(dtype):
    near = {"rtol": 1e-4, "atol": 1e-4} if dtype in ("float32", "complex64") else {"rtol": 1e-10, "atol": 1e-10}
    for shape in ((4, 4), (2, 5, 3), (3, 5), (0, 3, 3)):
        a = filled(shape, dtype)
        x, its = ad.asarray(a), xs.asarray(a)
        for mode in ("reduced", "complete"):
            got, want = ad.linalg.qr(x, mode=mode), xs.linalg.qr(its, mode=mode)
            q, r = host(got)
            assert got._fields == want._fields == ("Q", "R") and q.shape == want.Q.shape and r.dtype == dtype
            np.testing.assert_allclose(q @ r, a, **near)
        for full in (False, True):
            got = ad.linalg.svd(x, full_matrices=full)
            want = xs.linalg.svd(its, full_matrices=full)
            u, s, vh = host(got)
            assert got._fields == want._fields and [p.shape for p in got] == [p.shape for p in want]
            assert [p.dtype for p in got] == [name_of(p.dtype) for p in want]
            n = s.shape[-1]
            np.testing.assert_allclose(u[..., :n] * s[..., None, :] @ vh[..., :n, :], a, **near)
            np.testing.assert_allclose(s, np.asarray(want.S), **near)
    a = hermitian((2, 4, 4), dtype)
    got, want = ad.linalg.eigh(ad.asarray(a)), xs.linalg.eigh(xs.asarray(a))
    w, v = host(got)
    assert got._fields == want._fields and got.eigenvalues.dtype == name_of(want.eigenvalues.dtype)
    np.testing.assert_allclose(w, np.asarray(want.eigenvalues), rtol=near["rtol"], atol=1e-3)
    np.testing.assert_allclose(v * w[:, None, :] @ v.conj().swapaxes(-2, -1), a, rtol=near["rtol"], atol=1e-3)


def test_empty():
    for shape in (*SHAPES, 4):
        for dtype in (None, *DTYPES):
            got, want = ad.empty(shape, dtype=of(ad, dtype)), xs.empty(shape, dtype=of(xs, dtype))
            assert got.shape == want.shape and got.dtype == name_of(want.dtype)
            again = ad.empty_like(got, dtype=None, device=None)
            assert again.shape == got.shape and again.dtype == got.dtype
            assert ad.empty_like(got, dtype="int8").dtype == "int8"


def test_copies():
    x = ad.arange(6.0)
    assert ad.asarray(x) is x and ad.asarray(x, copy=False) is x
    made = ad.asarray(x, copy=True)
    made[0] = 9
    assert float(x[0]) == 0
    with pytest.raises(ValueError):
        ad.asarray(x, dtype=ad.float32, copy=False)
    with pytest.raises(ValueError):
        ad.asarray([1, 2], copy=False)
    view = ad.reshape(x, (2, 3), copy=False)
    view[0, 0] = 5
    assert float(x[0]) == 5
    ad.reshape(x, (2, 3), copy=True)[0, 0] = 7
    assert float(x[0]) == 5
    with pytest.raises(ValueError):
        ad.reshape(ad.reshape(x, (2, 3)).T, (6,), copy=False)
    np_x = np.arange(3.0)
    held = ad.asarray(np_x)
    np_x[0] = 8
    assert float(held[0]) == 0


def test_results_are_arrays_of_their_own():
    """Where the standard has no view to offer, a result is not one: SciPy writes into tiles."""
    x, flat, whole = ad.arange(12.0).reshape(3, 4), ad.arange(5.0), ad.arange(5)
    made = [ad.tile(x, times) for times in (1, (), (2, 1, 1), (3, 1, 1, 1), (1, 1, 1))]
    made += [ad.concat([x]), ad.stack([x]), ad.repeat(x, 1), ad.repeat(x, 1, axis=0), ad.roll(x, 0), ad.sort(x),
             ad.tril(x, k=9), ad.where(x == x, x, x), ad.clip(x), ad.round(whole), ad.floor(whole), ad.positive(x),
             ad.astype(x, x.dtype), ad.take(x, ad.arange(3), axis=0), ad.sum(x, axis=()), ad.asarray(x, copy=True),
             ad.cumulative_sum(flat), ad.fft.fftshift(flat), ad.linalg.matrix_power(x[:, :3], 1)]
    before = x.get(), flat.get(), whole.get()
    for result in made:
        result[...] = 77
    for now, then in zip((x, flat, whole), before):
        np.testing.assert_array_equal(now.get(), then)


def test_many_arrays():
    """There are more arrays than one operation takes."""
    many = [np.full((2,), i % 100, "int8" if i else "int16") for i in range(200)]
    for name in ("concat", "stack"):
        same(getattr(ad, name)(of(ad, many)), getattr(xs, name)(of(xs, many)), name)
    assert ad.result_type(*[ad.ones(1, dtype="float32")] * 100, 1, True, 2.5, *[1] * 70) == "float32"
    assert ad.result_type(*[True] * 70, 1, 1j) == np.complex128
    same(ad.meshgrid(*of(ad, [np.arange(2)] * 8)), xs.meshgrid(*of(xs, [np.arange(2)] * 8)), "meshgrid")


def test_indices():
    """The standard's keys: ints, slices, None, Ellipsis, masks, and arrays of ints as wide as the array has axes."""
    a = filled((4, 5, 3), "float64")
    keys = [0, -1, (1, 2), (1, 2, 0), slice(None), slice(1, 3), slice(None, None, -1), (slice(3, 0, -2), 1), ...,
            (..., 0), (0, ...), (None, 1), (..., None), (slice(1, 1), 0), (1, slice(None), slice(0, 3, 2)), (), None]
    for key in keys:
        its = key if isinstance(key, tuple) else (key,)
        its = its if ... in its else (*its, ...)  # the standard wants to see an ellipsis, and NumPy does not
        mine, filled_in = ad.asarray(a), a.copy()
        equal(mine[key].get(), np.asarray(xs.asarray(a)[its]), repr(key), 0)
        mine[key] = filled_in[key] = 7
        equal(mine.get(), filled_in, repr(key), 0)
    masks = [a > 0, np.zeros(a.shape, bool), np.array(True), np.array(False)]
    for mask in masks:
        mine, its = ad.asarray(a), xs.asarray(a)
        equal(mine[ad.asarray(mask)].get(), np.asarray(its[xs.asarray(mask)]), repr(mask), 0)
        mine[ad.asarray(mask)], its[xs.asarray(mask)] = 7, 7.0
        equal(mine.get(), np.asarray(its), repr(mask), 0)
    rows, columns = np.array([[3], [0]]), np.array([1, -1, 2])
    got = ad.asarray(a)[ad.asarray(rows), ad.asarray(columns), 0]
    equal(got.get(), np.asarray(xs.asarray(a)[xs.asarray(rows), xs.asarray(columns), 0]), "index arrays", 0)
    for key in (4, (0, 5), (0, 0, -4), (0, 0, 0, 0)):
        with pytest.raises(IndexError):
            ad.asarray(a)[key]
