"""Functions that make sparse matrices: diagonals, blocks, Kronecker products, random ones."""
import numbers

import numpy as np

import arrayd as ad

from . import _entries
from ._base import find_class
from ._binary import EITHER, unite
from ._types import check_dtype, check_shape, is_host_sparse, is_integer, is_scalar_like, issparse, sparray, upcast


def _as_sparse(a, format="coo", array=None):
    """Anything as a sparse matrix, of the kind that it has or (array) of the one that is wanted."""
    kind = isinstance(a, sparray) if array is None else array
    return a if issparse(a) and a.format == format and kind == isinstance(a, sparray) else find_class(format, kind)(a)


def _are_arrays(*parts):
    return any(isinstance(part, sparray) for part in parts)


# ---- diagonals ----

def spdiags(data, diags, m=None, n=None, format=None):
    """A sparse matrix whose diagonals are rows of data.

    Parameters: data: array, a row for each diagonal, its element j in column j. diags: which ones, 0 the main one, more
        above. m, n: ints, or m a tuple of them: the shape, unless given len(diags) by len(diags). format: str.
    Returns: dia_matrix, or a matrix in the format.
    Raises: ValueError for a diagonal that is given twice.
    Source: scipy.sparse.spdiags
    """
    if m is None and n is None:
        m = n = len(ad.atleast_2d(ad.asarray(data))[0])
    elif n is None:
        m, n = m
    return find_class("dia", False)((data, diags), shape=(int(m), int(n))).asformat(format)


def _lists_of_diagonals(diagonals, offsets):
    if is_scalar_like(offsets):
        if len(diagonals) == 0 or is_scalar_like(diagonals[0]):
            return [ad.atleast_1d(ad.asarray(diagonals))], [int(offsets)]
        raise ValueError("Different number of diagonals and offsets.")
    offsets = [int(k) for k in (offsets.get() if hasattr(offsets, "get") else offsets)]
    return [ad.atleast_1d(ad.asarray(d)) for d in diagonals], offsets


def _make_diagonals(diagonals, offsets, shape, format, dtype, array):
    diagonals, offsets = _lists_of_diagonals(diagonals, offsets)
    if len(diagonals) != len(offsets):
        raise ValueError("Different number of diagonals and offsets.")
    if shape is None:
        size = diagonals[0].size + abs(offsets[0])
        shape = (size, size)
    rows, cols = shape = check_shape(shape)
    dtype = check_dtype(dtype if dtype is not None else upcast(*[d.dtype for d in diagonals]))
    width = max([0, *(min(rows + k, cols - k) + max(0, k) for k in offsets)])
    data = ad.zeros((len(offsets), width), dtype)
    for j, (diagonal, k) in enumerate(zip(diagonals, offsets)):
        first, length = max(0, k), min(rows + k, cols - k, min(rows, cols))
        if length < 0:
            raise ValueError(f"Offset {k} (index {j}) out of bounds")
        if diagonal.size not in (1, length):
            raise ValueError(f"Diagonal length (index {j}: {diagonal.size} at offset {k}) does not agree with array "
                             f"size ({rows}, {cols}).")
        data[j, first:first + length] = diagonal[:length] if diagonal.size != 1 else diagonal[0]
    return find_class("dia", array)((data, np.array(offsets)), shape=shape).asformat(format)


def diags(diagonals, offsets=0, shape=None, format=None, dtype=None):
    """A sparse matrix of its diagonals.

    Parameters: diagonals: sequence of arrays, one for each diagonal, of its length or of one element. offsets: int or
        ints, which ones. shape: tuple; unless given a square that they fit. format: str. dtype: of the elements.
    Returns: dia_matrix, or a matrix in the format.
    Raises: ValueError where lengths do not fit.
    Source: scipy.sparse.diags
    """
    return _make_diagonals(diagonals, offsets, shape, format, dtype, False)


def diags_array(diagonals, /, *, offsets=0, shape=None, format=None, dtype=None):
    """A sparse array of its diagonals; see diags.

    Parameters: diagonals: sequence of arrays. offsets: int or ints. shape: tuple. format: str. dtype: of the elements.
    Returns: dia_array, or an array in the format.
    Raises: ValueError where lengths do not fit.
    Source: scipy.sparse.diags_array
    """
    return _make_diagonals(diagonals, offsets, shape, format, dtype, True)


def _make_compressed_eye(shape, k, length, dtype, cls):
    """Ones on the k-th diagonal of the rows (columns) that cls stores."""
    lines, index = shape[cls._major], _entries.index_type(*shape)
    before = max(0, -k)  # lines without an entry
    pointers = ad.arange(-before, lines + 1 - before, dtype=index)
    if before or length < lines:
        pointers = ad.clip(pointers, 0, length)
    return cls._from_parts(ad.ones(length, dtype), ad.arange(max(0, k), length + max(0, k), dtype=index), pointers, shape,
                           has_canonical_format=True)


def _make_eye(m, n, k, dtype, format, array):
    m = int(m)
    n = m if n is None else int(n)
    check_shape((m, n))
    dtype = check_dtype(dtype)
    length = max(0, min(m + k, n - k, m, n))
    if format in ("csr", "csc"):
        return _make_compressed_eye((m, n), k if format == "csr" else -k, length, dtype, find_class(format, array))
    if format == "coo":
        indices = _entries.index_type(m, n)
        row = ad.arange(length, dtype=indices) + max(0, -k)
        col = ad.arange(length, dtype=indices) + max(0, k)
        coo = find_class("coo", array)._from_parts(ad.ones(length, dtype), row, col, (m, n),
                                                   has_canonical_format=True)
        return coo.asformat(format)
    return find_class("dia", array)((ad.ones((1, max(0, min(m + k, n))), dtype), np.array([k])),
                                    shape=(m, n)).asformat(format)


def eye(m, n=None, k=0, dtype=float, format=None):
    """A sparse matrix with ones on a diagonal.

    Parameters: m, n: ints, rows and columns (as many unless given). k: which diagonal. dtype: of the elements.
        format: str.
    Returns: dia_matrix, or a matrix in the format.
    Raises: ValueError for a negative shape.
    Source: scipy.sparse.eye
    """
    return _make_eye(m, n, k, dtype, format, False)


def eye_array(m, n=None, *, k=0, dtype=float, format=None):
    """A sparse array with ones on a diagonal.

    Parameters: m, n: ints, rows and columns (as many unless given). k: which diagonal. dtype: of the elements.
        format: str.
    Returns: dia_array, or an array in the format.
    Raises: ValueError for a negative shape.
    Source: scipy.sparse.eye_array
    """
    return _make_eye(m, n, k, dtype, format, True)


def identity(n, dtype="d", format=None):
    """A square sparse matrix with ones on the diagonal.

    Parameters: n: int, rows and columns. dtype: of the elements. format: str.
    Returns: dia_matrix, or a matrix in the format.
    Raises: ValueError for a negative n.
    Source: scipy.sparse.identity
    """
    return eye(n, n, dtype=dtype, format=format)


# ---- blocks ----

def kron(A, B, format=None):
    """The Kronecker product of two matrices.

    Parameters: A, B: sparse or dense matrices. format: str, csr unless given.
    Returns: sparse matrix, or array where one of the two is one.
    Raises: ValueError for what has no two dimensions.
    Source: scipy.sparse.kron
    """
    array = _are_arrays(A, B)
    A, B = (_as_sparse(x, "coo", array) for x in (A, B))
    shape = (A.shape[0] * B.shape[0], A.shape[1] * B.shape[1])
    if A.nnz == 0 or B.nnz == 0:
        return find_class("coo", array)(shape).asformat(format or "coo")
    indices = _entries.index_type(*shape, like=(A.row, B.row))
    (r, c, x), (s, d, y) = ([part.astype(indices) for part in m._triple()[:2]] + [m.data] for m in (A, B))
    row = (r[:, None] * B.shape[0] + s).ravel()
    col = (c[:, None] * B.shape[1] + d).ravel()
    data = (x[:, None] * y).ravel()
    coo = find_class("coo", array)._from_parts(data, row, col, shape)
    return coo.asformat(format or "coo")


def kronsum(A, B, format=None):
    """The Kronecker sum of two square matrices: kron(I, A) + kron(B, I).

    Parameters: A, B: square sparse or dense matrices. format: str, csr unless given.
    Returns: sparse matrix, or array where one of the two is one.
    Raises: ValueError where one is not square.
    Source: scipy.sparse.kronsum
    """
    array = _are_arrays(A, B)
    A, B = (_as_sparse(x, "coo", array) for x in (A, B))
    for name, x in (("A", A), ("B", B)):
        if x.shape[0] != x.shape[1]:
            raise ValueError(f"{name} is not square")
    dtype = upcast(A.dtype, B.dtype)
    left = kron(_make_eye(B.shape[0], None, 0, dtype, "coo", array), A)
    right = kron(B, _make_eye(A.shape[0], None, 0, dtype, "coo", array))
    return (left + right).asformat(format or "csr")


def _block_grid(blocks):
    """Blocks as rows of equal length. ValueError."""
    if issparse(blocks) or getattr(blocks, "ndim", 2) != 2 and not isinstance(blocks, (list, tuple)):
        raise ValueError("blocks must be 2-D")
    rows = [list(row) for row in blocks]
    if not rows or any(len(row) != len(rows[0]) for row in rows) or not rows[0]:
        raise ValueError("blocks must be 2-D")
    return rows


def _block_sizes(grid):
    heights, widths = [None] * len(grid), [None] * len(grid[0])
    for i, row in enumerate(grid):
        for j, block in enumerate(row):
            if block is None:
                continue
            for sizes, at, n, what in ((heights, i, block.shape[0], "row"), (widths, j, block.shape[1], "column")):
                if sizes[at] is None:
                    sizes[at] = n
                elif sizes[at] != n:
                    line = f"{i},:" if what == "row" else f":,{j}"
                    raise ValueError(f"blocks[{line}] has incompatible {what} dimensions. Got blocks[{i},{j}].shape["
                                     f"{int(what == 'column')}] == {n}, expected {sizes[at]}.")
    return [n or 0 for n in heights], [n or 0 for n in widths]


def _stack_lines(blocks, format, dtype, array):
    """Matrices in CSR format one below the other, or in CSC format side by side: their parts one behind the other."""
    major = int(format == "csc")
    lines, width = [block.shape[major] for block in blocks], blocks[0].shape[1 - major]
    if any(block.shape[1 - major] != width for block in blocks):
        return None
    entries = np.cumsum([0, *(block.data.size for block in blocks)]).tolist()
    shape = (sum(lines), width) if major == 0 else (width, sum(lines))
    index = _entries.index_type(*shape, entries[-1], like=[block.indices for block in blocks])
    kind = check_dtype(dtype) if dtype is not None else upcast(*[block.dtype for block in blocks])
    pointers = [_entries.as_index(block.indptr, index) + before for block, before in zip(blocks, entries)]
    return find_class(format, array)._from_parts(
        ad.concatenate([block.data.astype(kind, copy=False) for block in blocks]),
        ad.concatenate([_entries.as_index(block.indices, index) for block in blocks]),
        ad.concatenate([pointers[0], *(part[1:] for part in pointers[1:])]), shape,
        has_canonical_format=all(block._has_canonical_format for block in blocks) or None)


def _join_lines(blocks, format, array):
    """Matrices in CSR format side by side, or in CSC format one below the other: their lines are joined. None where they have
    not as many. Waits."""
    if len(blocks) == 1:
        return blocks[0]
    major = int(format == "csc")
    lines = blocks[0].shape[major]
    if any(block.shape[major] != lines for block in blocks):
        return None
    places = np.cumsum([0, *(block.shape[1 - major] for block in blocks)]).tolist()
    shape = (lines, places[-1]) if major == 0 else (places[-1], lines)
    index = _entries.index_type(*shape, like=[block.indices for block in blocks])
    parts = [find_class(format, array)._from_parts(
        block.data, _entries.as_index(block.indices, index) + before if before else _entries.as_index(block.indices, index),
        _entries.as_index(block.indptr, index), shape,
        has_canonical_format=block._has_canonical_format, has_sorted_indices=block._has_sorted_indices)
        for block, before in zip(blocks, places)]
    while len(parts) > 1:
        parts = [unite(*pair, EITHER) for pair in zip(parts[::2], parts[1::2])] + parts[len(parts) // 2 * 2:]
    return parts[0]


def _assemble_compressed(grid, format, dtype, array):
    """Blocks that all are in a compressed format; None where shapes do not fit."""
    joined = [_join_lines(list(line), format, array) for line in (grid if format == "csr" else zip(*grid))]
    if any(line is None for line in joined):
        return None
    if len(joined) == 1 and joined[0] is not grid[0][0]:
        return joined[0] if dtype is None else joined[0].astype(check_dtype(dtype), copy=False)
    return _stack_lines(joined, format, dtype, array)


def _assemble(grid, format, dtype, array):
    blocks = [block for row in grid for block in row]
    format = format or _common_format(blocks)
    if format in ("csr", "csc") and all(issparse(x) and x.format == format and x.ndim == 2 for x in blocks):
        assembled = _assemble_compressed(grid, format, dtype, array)
        if assembled is not None:
            return assembled
    grid = [[None if block is None else _as_sparse(block, "coo", array) for block in row] for row in grid]
    grid = [[block.reshape(1, -1) if block is not None and block.ndim == 1 else block for block in row]
            for row in grid]
    heights, widths = _block_sizes(grid)
    tops, lefts = np.cumsum([0, *heights]), np.cumsum([0, *widths])
    shape = (int(tops[-1]), int(lefts[-1]))
    blocks = [(int(tops[i]), int(lefts[j]), block) for i, row in enumerate(grid) for j, block in enumerate(row)
              if block is not None]
    indices = _entries.index_type(*shape, like=[block.row for _, _, block in blocks])
    if not blocks:
        return find_class("coo", array)(shape, dtype=dtype).asformat(format)
    found = upcast(*[block.dtype for _, _, block in blocks])
    data = ad.concatenate([block.data.astype(found) for _, _, block in blocks])
    row = ad.concatenate([block.row.astype(indices) + top for top, _, block in blocks])
    col = ad.concatenate([block.col.astype(indices) + left for _, left, block in blocks])
    coo = find_class("coo", array)._from_parts(data if dtype is None else data.astype(check_dtype(dtype)), row, col,
                                               shape)
    return coo.asformat(format)


def bmat(blocks, format=None, dtype=None):
    """A matrix of blocks.

    Parameters: blocks: rows of sparse or dense matrices, None for zeros. format: str, unless given that of blocks that all
        are in CSR or CSC format, else coo. dtype: of the elements.
    Returns: sparse matrix, or array where one of the blocks is one.
    Raises: ValueError where shapes do not fit.
    Source: scipy.sparse.bmat
    """
    grid = _block_grid(blocks)
    return _assemble(grid, format, dtype, _are_arrays(*(block for row in grid for block in row)))


def block_array(blocks, *, format=None, dtype=None):
    """A sparse array of blocks; see bmat.

    Parameters: blocks: rows of sparse or dense matrices, None for zeros. format: str, unless given that of blocks that all
        are in CSR or CSC format, else coo. dtype: of the elements.
    Returns: sparse array.
    Raises: ValueError where shapes do not fit.
    Source: scipy.sparse.block_array
    """
    return _assemble(_block_grid(blocks), format, dtype, True)


def hstack(blocks, format=None, dtype=None):
    """Matrices side by side.

    Parameters: blocks: sequence of sparse or dense matrices. format: str. dtype: of the elements.
    Returns: sparse matrix, or array where one of the blocks is one.
    Raises: ValueError where they do not have the same number of rows.
    Source: scipy.sparse.hstack
    """
    blocks = list(blocks)
    return _assemble([blocks], format, dtype, _are_arrays(*blocks))


def vstack(blocks, format=None, dtype=None):
    """Matrices below each other.

    Parameters: blocks: sequence of sparse or dense matrices. format: str. dtype: of the elements.
    Returns: sparse matrix, or array where one of the blocks is one.
    Raises: ValueError where they do not have the same number of columns.
    Source: scipy.sparse.vstack
    """
    blocks = list(blocks)
    return _assemble([[block] for block in blocks], format, dtype, _are_arrays(*blocks))


def _common_format(blocks):
    formats = {getattr(block, "format", None) for block in blocks}
    return formats.pop() if len(formats) == 1 and formats <= {"csr", "csc"} else None


def block_diag(mats, format=None, dtype=None):
    """A matrix with blocks along its diagonal.

    Parameters: mats: sequence of sparse or dense matrices. format: str, coo unless given. dtype: of the elements.
    Returns: sparse matrix, or array where one of the blocks is one.
    Raises: ValueError for what has more than two dimensions.
    Source: scipy.sparse.block_diag
    """
    mats = list(mats)
    array = _are_arrays(*mats)
    blocks = [_as_sparse(a if issparse(a) or is_host_sparse(a) else ad.atleast_2d(ad.asarray(a)), "coo", array)
              for a in mats]
    if not blocks:
        return find_class("coo", array)((0, 0), dtype=dtype).asformat(format)
    blocks = [block.reshape(1, -1) if block.ndim == 1 else block for block in blocks]
    grid = [[block if i == j else None for j, block in enumerate(blocks)] for i in range(len(blocks))]
    return _assemble(grid, format, dtype, array)


# ---- random ----

def _draw_places(total, count, generator):
    """Draw different numbers out of 0, ..., total-1, on the server."""
    if total == 0 or count == 0:
        return ad.empty(0, np.int64)
    if total <= max(16 * count, 1 << 20):
        return generator.permutation(total)[:count].astype(np.int64)
    places = ad.empty(0, np.int64)
    while places.size < count:
        more = ad.floor(generator.random(2 * count) * total).astype(np.int64)
        places = ad.unique(ad.concatenate([places, more]))
    return places[generator.permutation(int(places.size))[:count]]


def _make_random(shape, density, format, dtype, generator, sampler, array):
    if density < 0 or density > 1:
        raise ValueError("density expected to be 0 <= density <= 1")
    dtype = check_dtype(dtype)
    total = 1
    for n in shape:
        total *= n
    count = int(round(density * total))
    places = _draw_places(total, count, generator)
    if sampler is not None:
        values = ad.asarray(sampler(count)).astype(dtype, copy=False)
    elif dtype.kind == "c":
        values = (generator.random(count) + 1j * generator.random(count)).astype(dtype)
    elif dtype.kind in "iu":
        values = ad.floor(generator.random(count) * np.iinfo(dtype).max).astype(dtype)
    else:
        values = generator.random(count).astype(dtype)
    two = shape if len(shape) == 2 else (1, *shape)
    indices = _entries.index_type(*two)
    row, col = (places // two[1]).astype(indices), (places % two[1]).astype(indices)
    coo = find_class("coo", array)._from_parts(values, row, col, shape)
    return coo.asformat(format)


def _as_generator(random_state):
    if hasattr(random_state, "random") and hasattr(random_state, "permutation"):
        return random_state
    return ad.random.default_rng(random_state)


def random(m, n, density=0.01, format="coo", dtype=None, random_state=None, data_rvs=None):
    """A sparse matrix with random elements, uniform in [0, 1) unless data_rvs says which, at random places.

    Parameters: m, n: ints, the shape. density: part of the places that have one. format: str. dtype: of the elements.
        random_state: seed, or generator. data_rvs: function that gives so many elements.
    Returns: sparse matrix.
    Raises: ValueError for another density, NotImplementedError for a dtype that is not floating.
    Source: scipy.sparse.random
    Differs: other numbers than SciPy's for the same seed.
    """
    dtype = np.dtype(float if dtype is None else dtype)
    if dtype.kind not in "fc":
        raise NotImplementedError(f"type {dtype} not supported")
    return _make_random(check_shape((m, n)), density, format, dtype, _as_generator(random_state), data_rvs, False)


def rand(m, n, density=0.01, format="coo", dtype=None, random_state=None):
    """A sparse matrix with elements uniform in [0, 1) at random places; see random.

    Parameters: m, n: ints, the shape. density: part of the places that have one. format: str. dtype: of the elements.
        random_state: seed, or generator.
    Returns: sparse matrix.
    Raises: ValueError for another density.
    Source: scipy.sparse.rand
    """
    return random(m, n, density, format, dtype, random_state)


def random_array(shape, *, density=0.01, format="coo", dtype=None, rng=None, data_sampler=None):
    """A sparse array with random elements at random places; see random.

    Parameters: shape: tuple of one or two ints. density: part of the places that have one. format: str. dtype: of the
        elements. rng: seed, or generator. data_sampler: function of size=, the number of elements.
    Returns: sparse array.
    Raises: ValueError for another density.
    Source: scipy.sparse.random_array
    Differs: other numbers than SciPy's for the same seed.
    """
    sampler = None if data_sampler is None else lambda count: data_sampler(size=count)
    return _make_random(check_shape(shape, (1, 2)), density, format, float if dtype is None else dtype,
                        _as_generator(rng), sampler, True)


# ---- parts and axes ----

def find(A):
    """Rows, columns and elements of what is not zero.

    Parameters: A: sparse or dense matrix.
    Returns: tuple of ndarrays.
    Raises: ValueError for what has more than two dimensions.
    Source: scipy.sparse.find
    """
    A = _as_sparse(A, "coo").copy()
    A.sum_duplicates()
    keep = ad.nonzero(A.data != 0)[0]
    return A.row[keep], A.col[keep], A.data[keep]


def _keep_diagonals(A, format, low=-_entries.FAR, high=_entries.FAR):
    """The elements on diagonals low to high."""
    if issparse(A) and A.format in ("csr", "csc") and A.ndim == 2:
        return A._keep_band(low, high, True).asformat(format or "coo")
    A = _as_sparse(A, "coo")
    diagonal = A.col.astype(np.int64) - A.row
    keep = ad.nonzero((low <= diagonal) & (diagonal <= high))[0]
    return A._make(A.row[keep], A.col[keep], A.data[keep], A.shape).asformat(format)


def tril(A, k=0, format=None):
    """Return what lies on the k-th diagonal and below.

    Parameters: A: sparse or dense matrix. k: int. format: str, coo unless given.
    Returns: sparse matrix, or array as A is.
    Raises: ValueError for what has more than two dimensions.
    Source: scipy.sparse.tril
    """
    return _keep_diagonals(A, format, high=k)


def triu(A, k=0, format=None):
    """Return what lies on the k-th diagonal and above.

    Parameters: A: sparse or dense matrix. k: int. format: str, coo unless given.
    Returns: sparse matrix, or array as A is.
    Raises: ValueError for what has more than two dimensions.
    Source: scipy.sparse.triu
    """
    return _keep_diagonals(A, format, low=k)


def matrix_transpose(A):
    """The transposed matrix.

    Parameters: A: sparse array.
    Returns: sparse array.
    Raises: nothing of its own.
    Source: scipy.sparse.matrix_transpose
    """
    return A.transpose()


def permute_dims(A, axes=None, copy=False):
    """A with its axes in another order.

    Parameters: A: sparse array. axes: tuple, reversed unless given. copy: whether parts are copied.
    Returns: sparse array.
    Raises: ValueError for what is no order of the axes.
    Source: scipy.sparse.permute_dims
    """
    axes = tuple(range(A.ndim))[::-1] if axes is None else tuple(
        int(a) % A.ndim if -A.ndim <= int(a) < A.ndim else A.ndim for a in axes)
    if sorted(axes) != list(range(A.ndim)):
        raise ValueError(f"axes don't match the array's dimensions: {axes}")
    if axes == tuple(range(A.ndim)):
        return A.copy() if copy else A
    return A.transpose(copy=copy)


def swapaxes(A, axis1, axis2):
    """A with two axes exchanged.

    Parameters: A: sparse array. axis1, axis2: ints.
    Returns: sparse array.
    Raises: ValueError for an axis that A does not have.
    Source: scipy.sparse.swapaxes
    """
    for axis in (axis1, axis2):
        if not isinstance(axis, numbers.Integral) or not -A.ndim <= axis < A.ndim:
            raise ValueError("Invalid axis")
    return A if axis1 % A.ndim == axis2 % A.ndim else A.transpose()


# ---- types of indices ----

def get_index_dtype(arrays=(), maxval=None, check_contents=False):
    """The type of indices that arrays of them, and a largest value, need.

    Parameters: arrays: array or tuple of arrays. maxval: int. check_contents: whether what arrays of int64 hold decides
        (waits).
    Returns: dtype.
    Raises: nothing of its own.
    Source: scipy.sparse.get_index_dtype
    """
    largest = np.iinfo(np.int32).max
    if maxval is not None and int(maxval) > largest:
        return np.int64
    for a in arrays if isinstance(arrays, tuple) else (arrays,):
        a = ad.asarray(a)
        if np.can_cast(a.dtype, np.int32):
            continue
        if not check_contents or a.dtype.kind not in "iu":
            return np.int64
        if a.size and not (int(a.min()) >= -largest - 1 and int(a.max()) <= largest):
            return np.int64
    return np.int32


def safely_cast_index_arrays(A, idx_dtype=np.int32, msg=""):
    """The index arrays of a sparse array as ones of a type.

    Parameters: A: sparse array. idx_dtype: type of integers. msg: what an error says they were for.
    Returns: tuple of ndarrays: indices and indptr, the coordinates, or offsets.
    Raises: ValueError where that type does not hold them.
    Source: scipy.sparse.safely_cast_index_arrays
    """
    if not is_integer(np.dtype(idx_dtype).type(0)):
        raise TypeError(f"{idx_dtype} is no type of integers")
    most = np.iinfo(idx_dtype).max
    if max(A.shape, default=0) > most or A.nnz > most:
        raise ValueError(f"indices of shape {A.shape} with {A.nnz} elements do not fit {np.dtype(idx_dtype)}"
                         + (f" for {msg}" if msg else ""))
    if A.format in ("csr", "csc"):
        return A.indices.astype(idx_dtype, copy=False), A.indptr.astype(idx_dtype, copy=False)
    if A.format == "coo":
        return tuple(c.astype(idx_dtype, copy=False) for c in A.coords)
    return A.offsets.astype(idx_dtype, copy=False)
