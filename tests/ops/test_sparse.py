"""arrayd.scipy.sparse against SciPy: formats, conversions, keys, arithmetic, reductions, construction, bad input."""
import itertools
import operator
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as ss

import arrayd as ad
from arrayd.scipy import sparse as sp
from oracle import seed

FORMATS = ("csr", "csc", "coo", "dia")
TYPES = (np.bool_, np.int8, np.int64, np.float32, np.float64, np.complex64, np.complex128)
SHAPES = ((7, 5), (5, 7), (1, 6), (6, 1), (4, 4), (3, 0), (0, 3))


def make(shape, dtype=np.float64, format="csr", density=0.4, number=0):
    """A matrix of SciPy's with small integers, some of them zeros that are stored."""
    rng = seed("sparse", shape, str(np.dtype(dtype)), number)
    dense = rng.integers(-3, 4, shape).astype(dtype)
    if np.dtype(dtype).kind == "c":
        dense = dense + 1j * rng.integers(-3, 4, shape).astype(dtype)
    row, col = np.nonzero(rng.random(shape) < density)
    return ss.coo_matrix((dense[row, col], (row, col)), shape=shape).asformat(format)


def send(a):
    return getattr(sp, type(a).__name__)(a)


def same(ours, theirs, dtype=True, exact=True):
    if hasattr(theirs, "toarray"):
        assert sp.issparse(ours) or ss.issparse(ours), type(ours)
        assert ours.shape == theirs.shape
        ours, theirs = ours.toarray(), theirs.toarray()
    ours = ad.asnumpy(ours) if isinstance(ours, ad.ndarray) else np.asarray(ours)
    theirs = np.asarray(theirs)
    assert ours.shape == theirs.shape, (ours.shape, theirs.shape)
    assert not dtype or ours.dtype == theirs.dtype, (ours.dtype, theirs.dtype)
    if exact:
        np.testing.assert_array_equal(ours, theirs)
    else:
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ss.SparseEfficiencyWarning)
        warnings.simplefilter("ignore", sp.SparseEfficiencyWarning)
        yield


@pytest.mark.parametrize("format", FORMATS)
def test_conversions(format):
    for shape in SHAPES:
        if format == "dia" and 0 in shape:
            continue
        for dtype in TYPES:
            a = make(shape, dtype, format)
            b = send(a)
            same(b, a)
            assert b.nnz == a.nnz and b.dtype == a.dtype and b.format == format
            for other in FORMATS[:3]:
                c = b.asformat(other)
                assert c.format == other
                same(c, a)
            same(b.T, a.T)
            same(b.get(), a)
            same(pickle.loads(pickle.dumps(b)), a)
            for order in "CF":
                assert getattr(b.toarray(order=order).flags, order.lower() + "_contiguous")
    same(sp.csr_matrix(ad.asarray(np.eye(3))), ss.csr_matrix(np.eye(3)))


def test_parts_are_scipys():
    for format in ("csr", "csc"):
        a = make((30, 20), np.float32, "coo")
        a = ss.coo_matrix((np.r_[a.data, a.data], (np.r_[a.row, a.row], np.r_[a.col, a.col])), shape=a.shape)
        b, a = send(a).asformat(format), a.asformat(format)
        for part in ("data", "indices", "indptr"):
            same(getattr(b, part), getattr(a, part))
        assert b.has_canonical_format and b.has_sorted_indices
        assert str(b) == str(a) and repr(b) == repr(a)


def test_text_of_diagonals_is_row_by_row():
    d, offsets = np.array([[0, 1, 2], [3, 4, 5.0]]), np.array([0, -1])
    one = sp.dia_matrix((ad.asarray(d), offsets), shape=(3, 4))
    assert [line.split() for line in str(one).splitlines()[3:]] == [["(1,", "0)", "3.0"], ["(1,", "1)", "1.0"],
                                                                   ["(2,", "1)", "4.0"], ["(2,", "2)", "2.0"]]


def test_sums_of_a_line_and_a_plane_are_refused():
    line, plane = ad.asarray([1.0, 2, 0]), ad.asarray([[1.0, 0, 1], [0, 2, 0]])
    for formats in itertools.product(("csr", "coo"), ("csr", "csc", "coo", "dia")):
        a, b = (getattr(sp, f"{format}_array")(x) for format, x in zip(formats, (line, plane)))
        for function in operator.add, operator.sub:
            for one, other in (a, b), (b, a):
                with pytest.raises(ValueError, match="inconsistent shapes"):
                    function(one, other)


def test_a_line_is_added_to_a_plane_of_one_row():
    """As CuPy's do; SciPy's are refused."""
    x, y = np.array([1.0, 2, 0]), np.array([[1.0, 0, 1]])
    for formats in itertools.product(("csr", "coo"), ("csr", "csc", "coo", "dia")):
        line, plane = (getattr(sp, f"{format}_array")(ad.asarray(v)) for format, v in zip(formats, (x, y)))
        for function in operator.add, operator.sub:
            result = function(plane, line)
            assert result.shape == (1, 3) and np.array_equal(result.toarray().get(), function(y, x))
            with pytest.raises(ValueError, match="inconsistent shapes"):
                function(line, plane)


@pytest.mark.parametrize("dtype", TYPES)
def test_products(dtype):
    for format in FORMATS:
        a = make((7, 5), dtype, format)
        b = send(a)
        for k in ((5,), (5, 1), (5, 3)):
            x = (np.random.default_rng(1).integers(-3, 4, k)).astype(dtype)
            same(b @ ad.asarray(x), a @ x)
            same(ad.asarray(x.T) @ b.T, x.T @ a.T)
        for other in FORMATS:
            c = make((5, 6), dtype, other, number=1)
            same(b @ send(c), a @ c)
        same(b.T @ b, a.T @ a)
    empty = sp.csr_matrix((4, 3), dtype=dtype)
    same(empty @ ad.ones(3, dtype=dtype), np.zeros(4, dtype))


def test_products_of_rows_of_any_length():
    rng = seed("long rows")
    for lengths in ([20000, 3, 0, 9000], [1] * 300, [0] * 50 + [40] * 10, [8192, 8193], [25] * 501, [0, 8000, 1] * 2 + [0] * 900,
                    [100, 0, 300, 7] * 40, [129] * 20, [3000] * 3 + [5] * 300, rng.integers(0, 30, 700)):
        indptr = np.r_[0, np.cumsum(lengths)]
        for indices in (np.int32, np.int64):
            column = rng.integers(0, 500, indptr[-1]).astype(indices)
            a = ss.csr_matrix((rng.standard_normal(indptr[-1]), column, indptr.astype(indices)),
                              shape=(len(lengths), 500))
            b = sp.csr_array((a.data, a.indices, a.indptr), shape=a.shape)
            for x in (rng.standard_normal(500), rng.standard_normal((500, 3))):
                same(b @ ad.asarray(x), a @ x, exact=False)
            y = rng.standard_normal((len(lengths), 40))
            same(b.T @ ad.asarray(y), a.T @ y, exact=False)


def test_products_of_matrices_with_rows_of_any_length():
    """Rows of the product are made of no, few and many products of elements, some of which belong to one place."""
    rng = seed("rows of products")
    for each, (rows, inner, columns), dtype, indices in itertools.product(
            (1, 2, 4, 5, 9), ((70, 50, 9), (300, 40, 4000)), (np.float64, np.complex64, np.int64), (np.int32, np.int64)):
        pair = []
        for shape in ((rows, inner), (inner, columns)):
            indptr = np.r_[0, np.cumsum(rng.integers(0, each + 1, shape[0]))].astype(indices)
            entries = rng.integers(-9, 9, indptr[-1]).astype(dtype), rng.integers(0, shape[1], indptr[-1]).astype(indices)
            pair.append((ss.csr_matrix((*entries, indptr), shape=shape), sp.csr_matrix((*entries, indptr), shape=shape)))
        (a, b), (c, d) = pair
        same(b @ d, a @ c)


KEYS = [(1, 2), (-1, -2), (1,), (-1,), slice(1, 5), slice(None, None, -2), (slice(1, 4), 3), (2, slice(0, 4)), Ellipsis,
        (Ellipsis, 1), (slice(4, 1, -1), slice(1, 3)), ([1, 2, 1],), (slice(None), [4, 0, 0]), ([1, 2], [3, 4]),
        ([[1], [2]], [0, 3]), (1, [0, 2]), ([0, 2], 1), ([], slice(None)), (np.array([1, 0, 1, 0, 0, 1, 0], bool),),
        (slice(9, 2), slice(None))]


@pytest.mark.parametrize("format", ("csr", "csc"))
def test_keys(format):
    for kind in ("matrix", "array"):
        a = getattr(ss, f"{format}_{kind}")(make((7, 5), np.float64, format))
        b = send(a)
        for key in KEYS:
            same(b[key], a[key])
        for key in KEYS:
            c, d = a.copy(), b.copy()
            c[key] = 7
            d[key] = 7
            same(d, c)
            assert d.nnz == c.nnz
        mask = a.toarray() > 1
        same(b[ad.asarray(mask)], a[mask])
        c, d = a.copy(), b.copy()
        c[[0, 0, 3], [1, 1, 2]] = [1, 2, 3]
        d[[0, 0, 3], [1, 1, 2]] = [1, 2, 3]
        assert d[0, 1] == 2
        c[1:3, :2] = ss.csr_matrix([[0, 5], [6, 0]])
        d[1:3, :2] = sp.csr_matrix(np.array([[0., 5], [6, 0]]))
        same(d, c)
        for wrong in ((7, 0), (0, 5), (-8,), (0, 0, 0), ([7],), "a"):
            with pytest.raises(IndexError):
                a[wrong]
            with pytest.raises(IndexError):
                b[wrong]


def test_arithmetic():
    pairs = [(make((6, 5), x, number=1), make((6, 5), y, number=2)) for x in TYPES[2:] for y in TYPES[2:]]
    for a, c in pairs:
        for format in FORMATS[:3]:
            b, d = send(a.asformat(format)), send(c)
            for f in (operator.add, operator.sub, lambda x, y: x.multiply(y), lambda x, y: x.maximum(y),
                      lambda x, y: x.minimum(y), operator.ne):
                if a.dtype.kind + c.dtype.kind != "cc" or f in (operator.add, operator.sub, operator.ne):
                    same(f(b, d), f(a, c))
        if "c" not in a.dtype.kind + c.dtype.kind:  # of a real and a complex matrix SciPy drops the imaginary part
            with np.errstate(all="ignore"):
                same(send(a) / send(c), a / c, exact=False)
    for a in map(make, ((6, 5),) * 2, (np.float32, np.complex64), ("coo", "coo")):
        same(send(a).dot(ad.asarray(2, a.dtype)), a.dot(np.array(2, a.dtype)))
    a = make((6, 5))
    b = send(a)
    for f in (lambda x: -x, abs, lambda x: x * 2, lambda x: 2.5 * x, lambda x: x / 4, lambda x: x.power(2),
              lambda x: x.sqrt().real, lambda x: x != 0, lambda x: x > 1, lambda x: x == 0, lambda x: x < 2,
              lambda x: x.sign(), lambda x: round(x), lambda x: x.conj(), lambda x: x.astype(np.complex64).imag):
        with np.errstate(invalid="ignore"):
            same(f(b), f(a))
    dense = np.arange(30.0).reshape(6, 5) + 1
    same(b + ad.asarray(dense), a + dense)
    same(ad.asarray(dense) - b, dense - a)
    for x in (dense, dense[:1], dense[:, :1], dense[0]):
        same(b.multiply(ad.asarray(x)), a.multiply(x))
        same(b / ad.asarray(x), a / x)
    for x in (a[:1], a[:, :1]):
        same(b.multiply(send(x)), a.multiply(x))
    same(send(make((4, 4))) ** 3, make((4, 4)) ** 3)
    same(send(ss.csr_array(a)) * send(ss.csr_array(a)), ss.csr_array(a) * ss.csr_array(a))
    for f in (lambda m, x: m + 1, lambda m, x: m @ x((3,)), lambda m, x: m.multiply(x((3, 3))),
              lambda m, x: m.power(0), lambda m, x: m.dot(x(())), lambda m, x: m.toarray(order="Z")):
        for m, x in ((a, np.ones), (b, ad.ones)):
            with pytest.raises((ValueError, NotImplementedError)):
                f(m, x)


@pytest.mark.parametrize("format", ("csr", "csc"))
def test_unions_of_places(format):
    """Two matrices element by element, whose places are shared in part, not at all and all, with rows that have none, elements
    that cancel, and ones stored twice or out of order."""
    for n, number in itertools.product((0.02, 0.2, 0.7), range(3)):
        a, b = make((30, 40), format=format, density=n, number=number), make((30, 40), format=format, number=number + 9)
        cases = [(a, b), (b, a), (a, a), (a, -a), (a, ss.csr_matrix((30, 40)).asformat(format))]
        cases += [(a, ss.coo_matrix((np.ones(6), ([3, 3, 3, 0, 29, 3], [5, 5, 4, 39, 0, 5])), (30, 40)))]
        for x, y in cases:
            for function in (operator.add, operator.sub, lambda x, y: x.multiply(y), lambda x, y: x.maximum(y), operator.ne):
                result, wanted = function(send(x), send(y)), function(x, y)
                same(result, wanted)
                assert result.nnz == np.count_nonzero(wanted.toarray()) and result.has_canonical_format
    x, y = (ss.csr_matrix(np.array([[np.nan, 0, np.inf]])), ss.csr_matrix(np.array([[0, 1.0, 0]])))
    same(send(x).multiply(send(y)), x.multiply(y))


@pytest.mark.parametrize("one, other", [("uint8", "int8"), ("bool", "int8"), ("int16", "float32"), ("int32", "float32"), ("int8", "int8")])
def test_places_stored_twice_are_added_up_in_the_type_of_the_result(one, other):
    a = ss.csr_matrix((np.array([100, 100, 1]).astype(one), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 3))
    b = ss.csr_matrix((np.array([100, 100, 2]).astype(other), np.array([2, 2, 0]), np.array([0, 2, 3])), shape=(2, 3))
    for function in operator.add, operator.sub, lambda x, y: x.multiply(y), lambda x, y: x.maximum(y), operator.gt, operator.ne:
        same(function(send(a), send(b)), function(a, b))
        same(function(send(b), send(a)), function(b, a))


def test_order_of_rows_is_seen():
    """Entries may fall from one row to the next, not within one; rows without entries are anywhere."""
    for indptr, indices, is_sorted, canonical in (
            ((0, 0, 2, 2, 4, 4), (1, 3, 0, 2), True, True), ((0, 2, 4), (1, 1, 0, 2), True, False),
            ((0, 2, 4), (3, 1, 0, 2), False, False), ((0, 0, 4), (0, 1, 2, 1), False, False), ((0, 4, 4), (0, 1, 2, 3), True, True)):
        a = sp.csr_matrix((np.ones(4), indices, indptr), shape=(len(indptr) - 1, 5))
        assert (bool(a.has_sorted_indices), bool(a.has_canonical_format)) == (is_sorted, canonical)


def test_stacks_keep_compressed_parts():
    a, b, c = (make((rows, 5), dtype, "csr", number=rows) for rows, dtype in ((3, np.float32), (0, np.float64), (4, np.int64)))
    result = sp.vstack([send(a), send(b), send(c)])
    same(result, ss.vstack([a, b, c]))
    assert result.format == "csr" and (result.indptr.get() == ss.vstack([a, b, c]).indptr).all()
    result = sp.hstack([send(x.T.tocsc()) for x in (a, b, c)])
    same(result, ss.hstack([x.T.tocsc() for x in (a, b, c)]))
    assert result.format == "csc"
    same(sp.vstack([send(a), send(c)], format="csr", dtype=np.complex64), ss.vstack([a, c], format="csr", dtype=np.complex64))
    with pytest.raises(ValueError):
        sp.vstack([send(a), send(make((2, 4)))])


def test_reductions():
    for dtype in TYPES[1:]:
        for format in FORMATS[:3]:
            a = make((6, 5), dtype, format)
            b = send(a)
            for axis in (None, 0, 1, -1):
                same(b.sum(axis=axis), a.sum(axis=axis))
                same(b.mean(axis=axis), a.mean(axis=axis), exact=False)
                if a.dtype.kind == "c":
                    continue
                for name in ("max", "min"):
                    same(getattr(b, name)(axis=axis), getattr(a, name)(axis=axis))
                for name in ("argmax", "argmin"):
                    same(getattr(b, name)(axis=axis), getattr(a, name)(axis=axis), dtype=False)
            for k in (-7, -2, 0, 3, 9):
                same(b.diagonal(k), a.diagonal(k))
            assert b.count_nonzero() == a.count_nonzero()
            for ours, theirs in zip(b.nonzero(), a.nonzero()):
                same(ours, theirs, dtype=False)


def test_setdiag_and_reshape():
    for format in FORMATS[:3]:
        for k in (-2, 0, 3):
            a, b = make((6, 5), format=format), send(make((6, 5), format=format))
            for values in (9.0, np.arange(1.0, 3)):
                with warnings.catch_warnings():
                    warnings.simplefilter("error")  # entries that were not stored before are no reason to warn
                    a.setdiag(values, k)
                    b.setdiag(values, k)
                same(b, a)
        for shape in ((5, 6), (1, 30), (30, 1), (-1, 10)):
            for order in "CF":
                same(b.reshape(shape, order=order), a.reshape(shape, order=order))


def test_construction():
    a, c = make((3, 4)), make((3, 4), number=1)
    b, d = send(a), send(c)
    pairs = [(f(sp, b, d), f(ss, a, c)) for f in (
        lambda m, x, y: m.eye(4, 6, 1), lambda m, x, y: m.identity(3, format="csr"), lambda m, x, y: m.kron(x, y),
        lambda m, x, y: m.kronsum(x[:, :3], y[:, :3]), lambda m, x, y: m.hstack([x, y]),
        lambda m, x, y: m.vstack([x, y]), lambda m, x, y: m.bmat([[x, None], [None, y]]),
        lambda m, x, y: m.block_diag([x, y]), lambda m, x, y: m.tril(x, 1), lambda m, x, y: m.triu(x, -1),
        lambda m, x, y: m.diags([[1., 2, 3], [4., 5]], [0, 1]), lambda m, x, y: m.diags([1., -2], [0, 2], (4, 5)),
        lambda m, x, y: m.spdiags(np.arange(8.0).reshape(2, 4), [0, -1], 4, 4), lambda m, x, y: m.eye_array(3, k=-1))]
    for ours, theirs in pairs:
        same(ours, theirs)
        assert ours.format == theirs.format
    for ours, theirs in zip(sp.find(b), ss.find(a)):
        same(ours, theirs, dtype=False)
    for r in (sp.random(50, 40, 0.1, format="csr", random_state=1), sp.random_array((50, 40), density=0.1, rng=1)):
        assert r.nnz == 200 and r.shape == (50, 40) and float(r.max()) < 1
    for wrong in (lambda m, x: m.hstack([x, x.T]), lambda m, x: m.kronsum(x, x), lambda m, x: m.random(3, 3, 2.0)):
        for m, x in ((ss, a), (sp, b)):
            with pytest.raises(ValueError):
                wrong(m, x)


def test_one_dimension():
    a = ss.coo_array(np.array([0., 1, 0, 2, 3]))
    for format in ("coo", "csr"):
        b = send(a).asformat(format)
        for f in (lambda x: x, lambda x: x + x, lambda x: x.multiply(x), lambda x: x.reshape(5, 1), lambda x: x.sum(),
                  lambda x: x.max(), lambda x: x[1:4], lambda x: x[[0, 3]], lambda x: x @ x):
            same(f(b), f(a.asformat("csr")))


def test_files(tmp_path):
    for format in FORMATS:
        a = make((6, 5), format=format)
        sp.save_npz(tmp_path / "ours.npz", send(a))
        same(ss.load_npz(tmp_path / "ours.npz"), a)
        ss.save_npz(tmp_path / "theirs.npz", a)
        same(sp.load_npz(tmp_path / "theirs.npz"), a)


WRONG = {
    "lengths": lambda m: m.csr_matrix(([1., 2], [0], [0, 1]), shape=(1, 1)),
    "indptr's length": lambda m: m.csr_matrix(([1.], [0], [0, 1, 1]), shape=(1, 1)),
    "indptr's start": lambda m: m.csr_matrix(([1.], [0], [1, 1]), shape=(1, 1)),
    "indptr's end": lambda m: m.csr_matrix(([1.], [0], [0, 2]), shape=(1, 1)),
    "row": lambda m: m.coo_matrix(([1.], ([3], [0])), shape=(3, 3)),
    "negative": lambda m: m.coo_matrix(([1.], ([-1], [0])), shape=(3, 3)),
    "shape": lambda m: m.csr_matrix((2, -1)),
    "three dimensions": lambda m: m.csr_matrix(np.ones((1, 1, 1))),
    "offsets": lambda m: m.dia_matrix((np.ones((2, 3)), [0, 0]), shape=(3, 3)),
    "float16": lambda m: m.csr_matrix(np.ones((2, 2), np.float16)),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_parts(name):
    for m in (ss, sp):
        with pytest.raises((ValueError, TypeError)):
            WRONG[name](m)


def test_hostile_parts():
    """Parts that nobody has checked, as a client of its own making sends them: the call refuses them, and reads and
    writes nothing outside of its arrays."""
    x = ad.ones(4)
    good = [np.ones(6), np.arange(6) % 4, np.array([0, 2, 4, 6])]
    wrong_indices = [[4], [-1], [2**31 - 1], [-2**31]]
    wrong_pointers = [[0, 7, 4, 6], [0, 4, 2, 6], [-1, 2, 4, 6], [0, 2, 4, 7], [0, -2**31, 4, 6], [0, 2**31 - 1, 4, 6]]
    for dtype in (np.int32, np.int64):
        for transposed in (False, True):
            rows, y = (4, ad.ones(3)) if transposed else (3, x)
            cases = [(good[0], np.r_[good[1][:5], bad], good[2], IndexError) for bad in wrong_indices]
            cases += [(good[0], good[1], bad, ValueError) for bad in wrong_pointers]
            for data, indices, indptr, error in cases:
                parts = [ad.asarray(data), ad.asarray(np.asarray(indices).astype(dtype)),
                         ad.asarray(np.asarray(indptr).astype(dtype))]
                with pytest.raises(error):
                    ad._core.call("spmm", (*parts, y), (rows, transposed)).get()
                with pytest.raises(error):
                    square = [parts[0], parts[1] if error is ValueError else parts[1] * 9, parts[2]]
                    ad._core.call("sptrsm", (*square, ad.ones(3)), (True, False)).get()
    parts = [ad.asarray(p) for p in good]
    for inputs, params in (((*parts, ad.ones(4)), (2, False)), ((*parts, ad.ones(4)), (-1, True)),
                           ((*parts, ad.ones((4, 1, 1))), (3, False)), ((parts[0][:5], *parts[1:], x), (3, False)),
                           ((parts[0], parts[1], parts[2][:0], x), (0, False)), ((*parts, ad.ones(5)), (4, True))):
        with pytest.raises(ValueError):
            ad._core.call("spmm", inputs, params).get()
    with pytest.raises(TypeError):
        ad._core.call("spmm", (parts[0], parts[1].astype(np.int32), parts[2], x), (3, False)).get()
    np.testing.assert_array_equal(ad._core.call("spmm", (*parts, x), (3, False)).get(), [2, 2, 2])


def test_sums_of_diagonals():
    """Elements that data holds of a diagonal outside of the matrix are no part of it."""
    data, offsets = np.array([[0.0, 1, 2, 9], [3, 4, 5, 8], [7, 6, 5, 4]]), np.array([0, -1, 2])
    ours = sp.dia_matrix((ad.asarray(data), ad.asarray(offsets)), shape=(3, 4))
    theirs = ss.dia_matrix((data, offsets), shape=(3, 4))
    for axis in (None, 0, 1, (0, 1)):
        for name in ("sum", "mean"):
            np.testing.assert_allclose(ad.asnumpy(getattr(ours, name)(axis=axis)), getattr(theirs, name)(axis=axis))


# ---- products of two sparse matrices, and incomplete factors ----

def make_matrix(rng, shape, density, dtype, format="csr"):
    dense = np.where(rng.random(shape) < density, rng.integers(1, 9, shape), 0).astype(dtype)
    if np.dtype(dtype).kind == "c":
        dense = dense * dtype(1 + 2j)
    return ss.csr_matrix(dense).asformat(format)


@pytest.mark.parametrize("shapes", [((50, 40), (40, 60)), ((0, 3), (3, 2)), ((3, 0), (0, 2)), ((2, 20_000), (20_000, 3)),
                                    ((800, 1), (1, 300)), ((30, 50), (50, 20_000))], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128, np.int32, np.uint8, bool])
def test_products_of_sparse_matrices(dtype, shapes):
    """The product is SciPy's, its entries sorted; of one place on to thousands have to be added up."""
    rng = np.random.default_rng(5)
    for format in ("csr", "csc"):
        a, b = (make_matrix(rng, shape, 0.4, dtype, format) for shape in shapes)
        c, ours = a @ b, getattr(sp, format + "_matrix")(a) @ getattr(sp, format + "_matrix")(b)
        ours.eliminate_zeros()
        c.sort_indices()
        got = ours.get()
        assert got.format == c.format and got.dtype == c.dtype and got.has_canonical_format
        np.testing.assert_array_equal(got.indptr, c.indptr)
        np.testing.assert_array_equal(got.indices, c.indices)
        np.testing.assert_allclose(got.data, c.data, rtol=1e-5 if c.dtype.char in "fF" else 1e-13)


def test_products_cut_into_pieces(monkeypatch):
    """Matrices with more products than are computed at once are multiplied some rows at a time."""
    from arrayd.scipy.sparse import _products
    rng = np.random.default_rng(6)
    a, b = make_matrix(rng, (90, 70), 0.3, np.float64), make_matrix(rng, (70, 80), 0.3, np.float64)
    whole = sp.csr_matrix(a) @ sp.csr_matrix(b)
    monkeypatch.setattr(_products, "_MOST_PRODUCTS", 500)
    cut = sp.csr_matrix(a) @ sp.csr_matrix(b)
    for x, y in ((whole.data, cut.data), (whole.indices, cut.indices), (whole.indptr, cut.indptr)):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x.get(), y.get())
    np.testing.assert_allclose(cut.toarray().get(), (a @ b).toarray())


def test_products_of_more_places_than_have_numbers():
    """2^40 rows would not fit, but 2^62 columns do, and so do repeated entries in any order."""
    far = np.array([2**62 - 1, 5, 2**61, 5])
    a = sp.csr_matrix((ad.asarray([1.0, 2, 3]), ad.asarray([1, 0, 1]), ad.asarray([0, 2, 2, 3])), shape=(3, 2))
    b = sp.csr_matrix((ad.asarray([1.0, 10, 100, 1000]), ad.asarray(far), ad.asarray([0, 2, 4])), shape=(2, 2**62))
    c = a @ b
    assert c.shape == (3, 2**62) and c.nnz == 5
    np.testing.assert_array_equal(c.indices.get(), [5, 2**61, 2**62 - 1, 5, 2**61])
    np.testing.assert_array_equal(c.data.get(), [1020, 100, 2, 3000, 300])


def test_hostile_parts_of_products_and_factors():
    good = [np.ones(6), np.arange(6) % 3, np.array([0, 2, 4, 6])]
    for dtype in (np.int32, np.int64):
        def parts(data, indices, indptr, dtype=dtype):
            return [ad.asarray(data), ad.asarray(np.asarray(indices).astype(dtype)), ad.asarray(np.asarray(indptr).astype(dtype))]
        wrong = [(good[0], np.r_[good[1][:5], bad], good[2], IndexError) for bad in ([3], [-1], [2**31 - 1], [-2**31])]
        wrong += [(good[0], good[1], bad, ValueError) for bad in ([0, 7, 4, 6], [0, 4, 2, 6], [-1, 2, 4, 6], [0, 2, 4, 7],
                                                                 [0, -2**31, 4, 6], [0, 2**31 - 1, 4, 6])]
        right = parts(*good)
        for *bad, error in wrong:
            for pair in ((parts(*bad), right), (right, parts(*bad))):
                with pytest.raises(error):
                    ad._core.call("spgemm", (*pair[0], *pair[1]), (3,))
            with pytest.raises(error):
                ad._core.call("ilu0", parts(*bad), (False,))[0].get()
        for indices in ([0, 0, 1, 2, 1, 2], [1, 0, 1, 2, 1, 2]):
            with pytest.raises(ValueError, match="do not ascend"):
                ad._core.call("ilu0", parts(good[0], indices, good[2]), (True,))[0].get()
        for columns in (-1, 2**62, 2) if dtype is np.int64 else (-1, 2**31, 2):
            with pytest.raises((ValueError, IndexError)):
                ad._core.call("spgemm", (*right, *right), (columns,))
        assert ad._core.call("spgemm", (*right, *right), (3,))[0].size == 9
    with pytest.raises(TypeError):
        ad._core.call("spgemm", (*parts(*good), *right[:1], *(p.astype(np.int32) for p in right[1:])), (3,))


def factor_incomplete(a, cholesky):
    """Factors of a dense matrix whose zeros stay zeros, from their definition."""
    x, there, n = a.astype(np.result_type(a, np.float64)), a != 0, len(a)
    if not cholesky:
        for i in range(n):
            for k in range(i):
                if there[i, k]:
                    x[i, k] /= x[k, k]
                    x[i, k + 1:] -= np.where(there[i, k + 1:], x[i, k] * x[k, k + 1:], 0)
        return x
    l = np.zeros_like(x)
    for i in range(n):
        for k in range(i + 1):
            rest = x[i, k] - l[i, :k] @ l[k, :k].conj()
            if there[i, k]:
                l[i, k] = np.sqrt(rest) if i == k else rest / l[k, k]
    return l


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("cholesky", [False, True])
def test_incomplete_factors(dtype, cholesky):
    rng = np.random.default_rng(7)
    a = make_matrix(rng, (60, 60), 0.1, dtype).toarray()
    a = a + a.conj().T if cholesky else a
    a[0] = np.where(np.arange(60) % 2 == 0, 1, 0)  # a long row that many depend on
    a[:, 0] = a[0]
    a += np.diag(np.arange(200, 260)).astype(dtype)
    m = sp.csr_matrix(ss.csr_matrix(a))
    factors, bad = ad._core.call("ilu0", (m.data, m.indices, m.indptr), (cholesky,))
    got = sp.csr_matrix((factors, m.indices, m.indptr), shape=m.shape).toarray().get()
    np.testing.assert_allclose(got, factor_incomplete(a, cholesky), rtol=2e-5 if got.dtype.char in "fF" else 1e-12, atol=1e-5)
    assert int(bad) == -1 and got.dtype == dtype


def test_incomplete_factors_of_a_band_are_whole():
    """A tridiagonal matrix has no fill-in, so that its incomplete factors solve it."""
    n = 5000
    a = ss.diags([np.full(n - 1, -1.0), np.full(n, 2.5), np.full(n - 1, -1.25)], [-1, 0, 1], format="csr")
    b = np.random.default_rng(8).random((n, 2))
    lu = sp.linalg.spilu(sp.csc_matrix(a), fill_factor=1)
    for trans, m in (("N", a), ("T", a.T), ("H", a.T)):
        np.testing.assert_allclose(m @ lu.solve(ad.asarray(b), trans).get(), b, rtol=1e-10)
    np.testing.assert_allclose((lu.L @ lu.U).toarray().get()[:50, :50], a.toarray()[:50, :50])


def test_incomplete_factors_need_a_diagonal():
    from arrayd.cupyx import cusparse
    for dense, text in (([[1.0, 2], [2, 4]], r"u\(1,1\) is zero"), ([[1.0, 2], [3, 0]], r"a\(1,1\) is missing"),
                        ([[0.0, 2], [3, 1]], r"a\(0,0\) is missing")):
        with pytest.raises(ValueError, match=text):
            cusparse.csrilu02(sp.csr_matrix(ss.csr_matrix(np.array(dense))))
    a = sp.csr_matrix(ss.csr_matrix(np.array([[2.0, 1, 0], [4, 5, 1], [0, 6, 9]])))
    cusparse.csrilu02(a)
    np.testing.assert_allclose(a.toarray().get(), [[2, 1, 0], [2, 3, 1], [0, 2, 7]])
    for wrong, error in ((a.tocsc(), TypeError), (a[:2], ValueError), (a.astype(np.int64), TypeError)):
        with pytest.raises(error):
            cusparse.csrilu02(wrong)
