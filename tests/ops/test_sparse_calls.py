"""The calls spunion, sptranspose, spband, sprows, spdiagonal, sptake and spcomponents against SciPy and NumPy, and what is computed by them."""
import itertools
import operator

import numpy as np
import pytest
import scipy.sparse as ss
from scipy.sparse.csgraph import connected_components

import arrayd as ad
from arrayd.scipy import sparse as sp
from oracle import seed

call = ad._core.call
UNIONS = (np.add, np.subtract, np.multiply, np.maximum, np.minimum, np.not_equal, np.less, np.greater)
INDICES = (np.int32, np.int64)
SHAPES = ((7, 5), (1, 9), (9, 1), (4, 0), (0, 4), (0, 0), (300, 200))


def make(rng, shape, dtype, index=np.int32, density=0.4):
    """Canonical parts in CSR format, with small integers, some of them zeros that are stored."""
    dense = rng.integers(-3, 4, shape)
    dense = (dense + 1j * rng.integers(-3, 4, shape) if np.dtype(dtype).kind == "c" else np.abs(dense) if
             np.dtype(dtype).kind == "u" else dense).astype(dtype)
    there = rng.random(shape) < density
    indptr = np.concatenate([[0], np.cumsum(there.sum(1))]).astype(index)
    return dense[there], np.nonzero(there)[1].astype(index), indptr


def shuffle(rng, parts, columns):
    """Entries of each row in any order, and some places stored twice."""
    data, indices, indptr = parts
    order = np.concatenate([rng.permutation(np.arange(i, j)) for i, j in zip(indptr[:-1], indptr[1:])] or [[]]).astype(int)
    twice = np.where(rng.random(order.size) < 0.3, np.roll(indices[order], 1), indices[order])
    return data, (twice if columns else indices).astype(indices.dtype), indptr


def send(parts):
    return [ad.asarray(part) for part in parts]


def dense(parts, shape):
    """The sum of the entries of each place, and which places have one."""
    data, indices, indptr = parts
    rows = np.repeat(np.arange(shape[0]), np.diff(indptr))
    x, there = np.zeros(shape, data.dtype), np.zeros(shape, bool)
    np.add.at(x, (rows, indices), data)
    there[rows, indices] = True
    return x, there


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128, np.int64, np.uint64])
@pytest.mark.parametrize("index", INDICES)
def test_union(dtype, index):
    rng = seed("union", str(np.dtype(dtype)), str(np.dtype(index)))
    for shape, number in itertools.product(SHAPES, range(9)):
        a, b = make(rng, shape, dtype, index), make(rng, shape, dtype, index, 0.2)
        data, indices, indptr = (part.get() for part in call("spunion", (*send(a), *send(b)), (number,)))
        (x, in_a), (y, in_b) = dense(a, shape), dense(b, shape)
        wanted = UNIONS[number](x, y) if number < 8 else np.where(in_a, x, y)
        kept = (in_a | in_b) & ((wanted != 0) | (number == 8))
        assert data.dtype == wanted.dtype and indices.dtype == indptr.dtype == index
        np.testing.assert_array_equal(indptr, np.concatenate([[0], np.cumsum(kept.sum(1))]))
        np.testing.assert_array_equal(indices, np.nonzero(kept)[1])
        np.testing.assert_array_equal(data, wanted[kept])


def test_union_of_special_numbers():
    """NaN is kept, also the one of infinity times the zero that is not there; -0.0 is a zero."""
    x = ad.asarray([np.nan, np.inf, -0.0, 1.0])
    indices, indptr = ad.arange(4), ad.asarray([0, 4])
    nothing = ad.asarray([]), ad.asarray([], np.int64), ad.asarray([0, 0])
    for number, wanted in ((0, [np.nan, np.inf, 1]), (2, [np.nan, np.nan]), (3, [np.nan, np.inf, 1]), (8, [np.nan, np.inf, -0.0, 1])):
        got = call("spunion", (x, indices, indptr, *nothing), (number,))[0].get()
        np.testing.assert_array_equal(got, wanted)
        np.testing.assert_array_equal(np.signbit(got) & (got == 0), np.signbit(wanted) & (np.asarray(wanted) == 0))


def test_union_takes_any_numbers_of_columns():
    far = ad.asarray([-2**63 + 1, -5, 2**63 - 1])
    data, indices, _ = call("spunion", (ad.ones(3), far, ad.asarray([0, 3]), ad.ones(3), far, ad.asarray([0, 3])), (0,))
    np.testing.assert_array_equal(data.get(), [2, 2, 2])
    np.testing.assert_array_equal(indices.get(), far.get())


@pytest.mark.parametrize("dtype", ["bool", "i1", "u2", "f2", "i4", "f4", "f8", "c8", "u8", "c16"])
@pytest.mark.parametrize("index", INDICES)
def test_transposition(dtype, index):
    rng = seed("transposition", dtype, str(np.dtype(index)))
    for shape in SHAPES:
        data, indices, indptr = shuffle(rng, make(rng, shape, dtype, index), shape[1])
        got = [part.get() for part in call("sptranspose", send((data, indices, indptr)), (shape[1],))]
        order = np.argsort(indices, kind="stable")
        np.testing.assert_array_equal(got[0], data[order])
        np.testing.assert_array_equal(got[1], np.repeat(np.arange(shape[0]), np.diff(indptr))[order])
        np.testing.assert_array_equal(got[2], np.concatenate([[0], np.cumsum(np.bincount(indices, minlength=shape[1])[:shape[1]])]))
        assert got[0].dtype == data.dtype and got[1].dtype == got[2].dtype == index


@pytest.mark.parametrize("dtype", ["bool", "u2", "f4", "f8", "c16"])
@pytest.mark.parametrize("index", INDICES)
def test_band(dtype, index):
    rng = seed("band", dtype, str(np.dtype(index)))
    for shape, (low, high), diagonal in itertools.product(
            SHAPES, ((0, 2), (1, 1), (-3, 4), (3, 1), (-2**63, 2**63 - 1), (150, 10**9)), (False, True)):
        data, indices, indptr = shuffle(rng, make(rng, shape, dtype, index), shape[1])
        got = [part.get() for part in call("spband", send((data, indices, indptr)), (low, high, diagonal))]
        rows = np.repeat(np.arange(shape[0]), np.diff(indptr))
        place = indices - rows if diagonal else indices
        kept = (place >= low) & (place <= high)
        np.testing.assert_array_equal(got[0], data[kept])
        np.testing.assert_array_equal(got[1], indices[kept])
        np.testing.assert_array_equal(got[2], np.concatenate([[0], np.cumsum(np.bincount(rows[kept], minlength=shape[0])[:shape[0]])]))


@pytest.mark.parametrize("index", INDICES)
def test_rows(index):
    rng = seed("rows", str(np.dtype(index)))
    for counts in (rng.integers(0, 4, 50), np.zeros(9, int), np.array([0, 0, 5, 0]), np.array([], int), np.array([100_000]),
                   rng.integers(0, 9, 100_000)):
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(index)
        got = call("sprows", (ad.asarray(indptr),), (int(counts.sum()),)).get()
        np.testing.assert_array_equal(got, np.repeat(np.arange(counts.size), counts))
        assert got.dtype == index


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128, np.int64])
@pytest.mark.parametrize("index", INDICES)
def test_diagonal(dtype, index):
    """Entries in any order, repeated ones added up; also where a part of the diagonal has none."""
    rng = seed("diagonal", str(np.dtype(dtype)), str(np.dtype(index)))
    for shape in SHAPES:
        parts = shuffle(rng, make(rng, shape, dtype, index), True)
        x = dense(parts, shape)[0]
        for k in range(-shape[0], shape[1] + 1):
            row, column = max(0, -k), max(0, k)
            length = max(0, min(shape[0] - row, shape[1] - column))
            got = call("spdiagonal", send(parts), (row, column, length)).get()
            assert got.dtype == dtype
            np.testing.assert_array_equal(got, np.diagonal(x, k)[:length] if min(shape) else np.zeros(0, dtype))
    parts = send(make(rng, (4, 4), dtype, index))
    np.testing.assert_array_equal(call("spdiagonal", parts, (1, 2**62, 3)).get(), 0)
    for bad in ((-1, 0, 1), (0, -1, 1), (0, 0, -1), (2, 0, 3), (5, 0, 0), (0, 2**63 - 1, 3)):
        with pytest.raises(ValueError, match="cannot begin in row"):
            call("spdiagonal", parts, bad)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.float16, np.int32, np.float64, np.complex128])
@pytest.mark.parametrize("index", INDICES)
def test_taken_rows(dtype, index):
    rng = seed("taken", str(np.dtype(dtype)), str(np.dtype(index)))
    for shape in SHAPES:
        data, indices, indptr = shuffle(rng, make(rng, shape, dtype, index), True)
        for lines in ([], [0], [-1], rng.integers(-shape[0], max(shape[0], 1), 40), np.arange(shape[0])[::-1]):
            lines = np.array(lines if shape[0] else [], np.int64)
            got = [part.get() for part in call("sptake", (*send((data, indices, indptr)), ad.asarray(lines)))]
            taken = [np.arange(indptr[i], indptr[i + 1]) for i in lines % max(shape[0], 1)]
            places = np.concatenate([np.zeros(0, int), *taken])
            np.testing.assert_array_equal(got[0], data[places])
            np.testing.assert_array_equal(got[1], indices[places])
            np.testing.assert_array_equal(got[2], np.concatenate([[0], np.cumsum([one.size for one in taken])]))
            assert [part.dtype for part in got] == [dtype, index, index]
    parts = send(make(rng, (4, 4), dtype, index))
    for bad in (4, -5, 2**63 - 1, -2**63):
        with pytest.raises(IndexError, match=f"the index {bad} of a sparse matrix is out of bounds for size 4"):
            call("sptake", (*parts, ad.asarray(np.array([0, bad]))))
    with pytest.raises(TypeError, match="input 3 must be of type int64, not int32"):
        call("sptake", (*parts, ad.zeros(2, np.int32)))


def test_taken_rows_of_too_many_entries():
    """A result of more entries than 32 bits count is refused before there is memory for it."""
    wide = [ad.zeros(1 << 16, np.int8), ad.zeros(1 << 16, np.int32), ad.asarray(np.array([0, 1 << 16], np.int32))]
    with pytest.raises(ValueError, match="has 2147483648 entries, too many for indices of type int32"):
        call("sptake", (*wide, ad.zeros(1 << 15, np.int64)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128, np.int64])
@pytest.mark.parametrize("index", INDICES)
def test_components(dtype, index):
    rng = seed("components", str(np.dtype(dtype)), str(np.dtype(index)))
    for n, density in ((0, 1), (1, 1), (2, 0.5), (40, 0.02), (40, 0.06), (300, 0.002), (300, 0.004), (300, 0.5)):
        parts = shuffle(rng, make(rng, (n, n), dtype, index, density), True)
        rows = np.repeat(np.arange(n), np.diff(parts[2]))
        edges = parts[0] != 0
        graph = ss.coo_matrix((np.ones(edges.sum()), (rows[edges], parts[1][edges])), shape=(n, n))
        labels = connected_components(graph, False)[1] if n else np.zeros(0, int)
        least = np.array([np.flatnonzero(labels == one)[0] for one in labels], int)
        got = call("spcomponents", send(parts)).get()
        np.testing.assert_array_equal(got, least)
        assert got.dtype == index
    path = np.arange(5000)[::-1] # each row is connected with the one before it, the last one first
    indptr = np.arange(5001).astype(index)
    got = call("spcomponents", send((np.ones(5000, dtype), np.maximum(np.arange(5000) - 1, 0).astype(index), indptr)))
    assert not got.get().any()
    got = call("spcomponents", send((np.ones(5000, dtype), path.astype(index), indptr))).get()
    np.testing.assert_array_equal(got, np.minimum(np.arange(5000), path))
    for bad in (2, -1):
        with pytest.raises(IndexError, match=f"the index {bad} of a sparse matrix is out of bounds for size 2"):
            call("spcomponents", send((np.ones(2, dtype), np.array([0, bad], index), np.array([0, 1, 2], index)))).get()


def test_many_threads_have_parts():
    """Matrices of many entries, of which each thread takes rows."""
    rng = seed("parts")
    a, b = (ss.random_array((3000, 700), density=0.1, format="csr", rng=rng) for _ in range(2))
    a[1000:2000] = 0
    a.eliminate_zeros()
    x, y = sp.csr_array(a), sp.csr_array(b)
    for ours, theirs in ((x + y, a + b), (x.tocsc(), a.tocsc()), (x.tocsc().tocsr(), a), (x[:, 30:300], a[:, 30:300]),
                         (sp.tril(x).tocsr(), ss.tril(a).tocsr()), (x.tocoo(), a.tocoo())):
        got = ours.get()
        for name in ("data", "indices", "indptr") if got.format != "coo" else ("data", "row", "col"):
            np.testing.assert_array_equal(getattr(got, name), getattr(theirs, name))


def test_hostile_parts():
    good = [np.ones(6), np.array([0, 1, 0, 2, 1, 2]), np.array([0, 2, 4, 6])]
    for index in INDICES:
        right = send((good[0], good[1].astype(index), good[2].astype(index)))
        wrong = ([0, 7, 4, 6], [0, 4, 2, 6], [-1, 2, 4, 6], [0, 2, 4, 7], [0, -2**31, 4, 6], [0, 2**31 - 1, 4, 6])
        for indptr in wrong:
            bad = *right[:2], ad.asarray(np.array(indptr).astype(index))
            for pair in ((bad, right), (right, bad)):
                with pytest.raises(ValueError, match="must ascend"):
                    call("spunion", (*pair[0], *pair[1]), (0,))
            with pytest.raises(ValueError, match="must ascend"):
                call("spband", bad, (0, 2, False))
            with pytest.raises(ValueError, match="indptr of a sparse matrix must ascend"):
                call("sptake", (*bad, ad.zeros(1, np.int64)))
            for make_result in (lambda p=bad: call("spdiagonal", p, (0, 0, 2)), lambda p=bad: call("spcomponents", p)):
                with pytest.raises(ValueError, match="indptr of a sparse matrix must ascend"):
                    make_result().get()
        for indptr in (*wrong, [1, 2, 4, 6], [0, 2, 4, 5]):
            pointers = ad.asarray(np.array(indptr).astype(index))
            for make_result in (lambda p=pointers: call("sptranspose", (*right[:2], p), (3,))[0], lambda p=pointers: call("sprows", (p,), (6,))):
                with pytest.raises(ValueError, match="indptr of a sparse matrix must"):
                    make_result().get()
        for j in (3, -1, 2**31 - 1, -2**31):
            indices = ad.asarray(np.r_[good[1][:5], j].astype(index))
            with pytest.raises(IndexError, match="out of bounds for size 3"):
                call("sptranspose", (right[0], indices, right[2]), (3,))[1].get()
        for indices in ([0, 0, 0, 2, 1, 2], [1, 0, 0, 2, 1, 2], [0, 1, 0, 2, 2, 2]):
            bad = right[0], ad.asarray(np.array(indices).astype(index)), right[2]
            for pair in ((bad, right), (right, bad), (bad, bad)):
                with pytest.raises(ValueError, match="row . of a sparse matrix do not ascend"):
                    call("spunion", (*pair[0], *pair[1]), (8,))
        with pytest.raises(ValueError):
            call("sptranspose", right, (-1,))
        with pytest.raises(ValueError):
            call("spunion", (*right, *right), (9,))


# ---- what is computed by them ----

def same_parts(ours, theirs):
    got = ours.get() if hasattr(ours, "get") else ours
    assert got.format == theirs.format and got.shape == theirs.shape and got.dtype == theirs.dtype, (got, theirs)
    np.testing.assert_array_equal(got.toarray(), theirs.toarray())


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint8, np.int32, np.uint64, np.float32, np.complex128])
def test_arithmetic_of_unsorted_matrices(dtype):
    """Operands whose entries are in any order and repeated, with zeros that are stored."""
    rng = seed("arithmetic", str(np.dtype(dtype)))
    for shape, format in itertools.product(((12, 9), (3, 0)), ("csr", "csc")):
        pair = []
        for _ in range(2):
            size = shape if format == "csr" else shape[::-1]
            parts = shuffle(rng, make(rng, size, dtype), size[1])
            pair.append(getattr(ss, format + "_array")(parts, shape=shape))
        ours = [getattr(sp, format + "_array")(a) for a in pair]
        functions = [operator.add, operator.ne, operator.lt, operator.gt, lambda a, b: a.multiply(b),
                     lambda a, b: a.maximum(b), lambda a, b: a.minimum(b)]
        for function in functions + [operator.sub] * (dtype != np.bool_):
            same_parts(function(*ours), function(*(a.copy() for a in pair)))
        if dtype == np.bool_:
            with pytest.raises(TypeError):
                ours[0] - ours[1] # pylint: disable=pointless-statement
        sorted_one = ours[0].sorted_indices().get()
        theirs = pair[0].sorted_indices()
        np.testing.assert_array_equal(sorted_one.indices, theirs.indices)
        np.testing.assert_array_equal(np.add.reduce(sorted_one.toarray().ravel()), np.add.reduce(theirs.toarray().ravel()))


def test_sorting_is_stable_and_takes_far_columns():
    for columns in (4, 2**40):
        a = sp.csr_array((ad.arange(6.0), ad.asarray([3, 0, 3, 1, 1, 0]), ad.asarray([0, 3, 3, 6])), shape=(3, columns))
        a.sort_indices()
        np.testing.assert_array_equal(a.indices.get(), [0, 3, 3, 0, 1, 1])
        np.testing.assert_array_equal(a.data.get(), [1, 0, 2, 5, 3, 4])


@pytest.mark.parametrize("format", ["csr", "csc"])
def test_blocks(format):
    """Blocks in one compressed format stay in it, and their zeros stay stored, as with SciPy."""
    rng = seed("blocks", format)

    def block(rows, columns, dtype=np.float64):
        return ss.csr_array(make(rng, (rows, columns), dtype), shape=(rows, columns)).asformat(format)

    a, b, c, d = block(5, 3), block(5, 4, np.float32), block(2, 3, np.int8), block(2, 4)
    cases = [lambda m, *x: m.hstack(x[:2]), lambda m, *x: m.vstack((x[0], x[2])), lambda m, *x: m.hstack([x[0]] * 5),
             lambda m, *x: m.vstack([x[1]] * 3), lambda m, *x: m.block_array([x[:2], x[2:]]), lambda m, *x: m.bmat([x[:2], x[2:]]),
             lambda m, *x: m.hstack(x[:1]), lambda m, *x: m.hstack(x[:2], dtype=np.complex64), lambda m, *x: m.vstack([x[0]], dtype="f4"),
             lambda m, *x: m.hstack(x[:2], format="coo"), lambda m, *x: m.block_array([[x[0], None], [None, x[3]]], format=format)]
    for case in cases:
        ours, theirs = case(sp, *(getattr(sp, x.format + "_array")(x) for x in (a, b, c, d))), case(ss, a, b, c, d)
        same_parts(ours, theirs)
        assert ours.nnz == theirs.nnz
    for wrong in (lambda m: m.hstack((a, c)), lambda m: m.vstack((a, b)), lambda m: m.block_array([[a, b], [c, a]])):
        with pytest.raises(ValueError):
            wrong(sp)


@pytest.mark.parametrize("format", ["csr", "csc", "coo"])
def test_parts_of_matrices(format):
    rng = seed("parts of matrices", format)
    for kind in ("matrix", "array"):
        a = getattr(ss, "csr_" + kind)(make(rng, (9, 7), np.float64), shape=(9, 7)).asformat(format)
        b = getattr(sp, f"{format}_{kind}")(a)
        for k in (-20, -9, -8, -2, 0, 3, 6, 7, 2**70):
            same_parts(sp.tril(b, k), ss.tril(a, max(min(k, 99), -99)).asformat("coo"))
            same_parts(sp.triu(b, k, "csr"), ss.triu(a, max(min(k, 99), -99)).asformat("csr"))
            if abs(k) < 99:
                np.testing.assert_array_equal(b.diagonal(k).get(), a.diagonal(k) if -9 < k < 7 else [])
        if format != "coo":
            for key in np.s_[:, 2:5], np.s_[:, 5:2], np.s_[3:6], np.s_[3:6, 1:4], np.s_[:, 1:6:2], np.s_[::-1], np.s_[[1, 1, 0], 2:4], \
                    np.s_[2:4, [3, 0, 3]], np.s_[:, :], np.s_[[4, 4, 0]]:
                same_parts(b[key], a[key])
            for key in (np.s_[:, 3], np.s_[4]):
                np.testing.assert_array_equal(b[key].toarray().get(), a[key].toarray())


@pytest.mark.parametrize("format", ["csr", "csc", "coo"])
def test_eye(format):
    for shape, k in itertools.product(((4, 4), (3, 6), (6, 3), (0, 3), (3, 0)), (-9, -2, 0, 1, 5, 9)):
        ours = sp.eye(*shape, k=k, format=format)
        assert ours.format == format
        np.testing.assert_array_equal(ours.toarray().get(), np.eye(*shape, k=k))


@pytest.mark.parametrize("format", ["csr", "csc"])
def test_lines_by_arrays(format):
    """Indices of lines are checked by the server, where their pointers are read."""
    rng = seed("lines", format)
    a = ss.csr_array(make(rng, (9, 9), np.float64), shape=(9, 9)).asformat(format)
    b = getattr(sp, format + "_array")(a)

    def key(index):
        return np.s_[index, :] if format == "csr" else np.s_[:, index]

    for index in ([0, 8, -1, -9, 3], [], np.array([4, 4], np.uint8), np.array([1], np.uint64), np.arange(9)[::-1]):
        same_parts(b[key(index)], a[key(index)])
        same_parts(b[key(ad.asarray(index, dtype=None if len(index) else np.int64))], a[key(index)])
    for wrong in ([9], [0, -10], np.array([2**63], np.uint64), np.array([2**64 - 1], np.uint64), [2**62]):
        with pytest.raises(IndexError):
            b[key(wrong)] # pylint: disable=pointless-statement
        with pytest.raises(IndexError):
            b[key(wrong)] = 1
    same_parts(b, a)


def test_scatter_joins_what_goes_to_one_place():
    """Runs of one index, runs that come again, negative indices of the same place, and steps."""
    rng = seed("joins")
    for name in ("bool", "int8", "uint64", "float16", "float32", "complex64"):
        x = rng.integers(0, 2 if name == "bool" else 5, 4000).astype(name)
        index = np.repeat(rng.integers(0, 50, 400), 10)
        index = np.where(rng.random(4000) < 0.5, index, index - 50)
        for mode, function in ((1, np.add), (2, np.maximum), (3, np.minimum)):
            for step in (1, 2):
                out = ad.asarray(x[:100].copy())[::2]
                call("scatter", (ad.asarray(x)[::step], ad.asarray(index[::step].copy())), (mode,), out=out, dtype=out.dtype)
                wanted = x[:100:2].copy()
                function.at(wanted, index[::step], x[::step])
                np.testing.assert_array_equal(out.get(), wanted)


@pytest.mark.parametrize("dtype", [np.float32, np.complex128, np.int64])
def test_products_of_few_and_many_columns(dtype):
    """Rows with few and with many products, of columns that have a sum each or are searched: entries ascend, and sums of 0
    stay entries."""
    rng = seed("products", str(np.dtype(dtype)))
    for columns, densities in ((1, (0.5,)), (64, (0.02, 1)), (5000, (0.0005, 0.02)), (65_535, (1e-5, 2e-4)), (100_000, (2e-4,))):
        for density in densities:
            a = ss.csr_array((rng.random((30, 200)) < rng.random((30, 1)) ** 2) * rng.integers(1, 4, (30, 200)))
            b = ss.random_array((200, columns), density=density, format="csr", rng=rng)
            b.data = rng.integers(-2, 3, b.nnz) + (1j if dtype is np.complex128 else 0)
            a, b = a.astype(dtype), b.astype(dtype)
            theirs, places = a @ b, abs(a).astype(bool).astype(np.int64) @ ss.csr_array(
                (np.ones(b.nnz, np.int64), b.indices, b.indptr), shape=b.shape)
            places.sort_indices()
            got = (sp.csr_array(a) @ sp.csr_array(b)).get()
            np.testing.assert_array_equal(got.indptr, places.indptr)
            np.testing.assert_array_equal(got.indices, places.indices)
            assert got.dtype == dtype and abs(got - theirs).max() == 0
