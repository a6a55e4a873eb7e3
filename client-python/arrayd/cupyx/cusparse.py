"""Operations on sparse matrices under the names that cupyx.cusparse has for cuSPARSE's routines; arrayd.scipy.sparse
has them under SciPy's."""
import numpy as np

import arrayd as ad

from ..scipy import sparse as _sparse
from ..scipy.sparse.linalg._incomplete import factor_in_place

_NAMES = """csrmv csrmm csrmm2 csrgeam csrgeam2 csrgemm csrgemm2 csr2dense csc2dense csrsort cscsort coosort coo2csr csr2coo csr2csc
csc2csr csc2coo coo2csc dense2csc dense2csr csr2csr_compress csr2cscEx2 csc2csrEx2 csrsm2 csrilu02 spgemm spmv spmm spsm denseToSparse
sparseToDense spgeam""".split()
__all__ = ["check_availability", "getVersion", *_NAMES]


def check_availability(name):
    """Whether there is a routine of that name.

    Parameters: name: str.
    Returns: bool.
    Raises: nothing of its own.
    Source: cupyx.cusparse.check_availability
    """
    return name in _NAMES


def getVersion():
    """The version of cuSPARSE whose names these are.

    Returns: int.
    Source: cupyx.cusparse.getVersion
    """
    return 12500


def _check_format(matrix, *formats):
    if not _sparse.issparse(matrix) or matrix.format not in formats:
        raise TypeError(f"unsupported type (actual: {type(matrix)})")


def _check_canonical(*matrices):
    for name, matrix in zip("abd", matrices):
        if not matrix.has_canonical_format:
            raise ValueError(f"expected canonical format for {name}")


def _check_order(name, array):
    if array is not None and not array.flags.f_contiguous:
        raise ValueError(f"expected F-contiguous array for {name}")


def _turn(matrix, transposed):
    return matrix.T if transposed else matrix


def _product(a, x, y, alpha, beta, order="C"):
    """alpha * a @ x + beta * y, in y where it is given."""
    if a.shape[1] != x.shape[0] or y is not None and y.shape != (a.shape[0], *x.shape[1:]):
        raise ValueError("dimension mismatch")
    dtype = np.result_type(a.dtype, x.dtype, *([] if y is None else [y.dtype]))
    result = (a.astype(dtype) @ x.astype(dtype)) * dtype.type(alpha)
    if y is None:
        return ad.asfortranarray(result) if order == "F" else result
    y[...] = result + dtype.type(beta) * y
    return y


def csrmv(a, x, y=None, alpha=1, beta=0, transa=False):
    """alpha * op(a) @ x + beta * y for a sparse matrix and a vector.

    Parameters: a: csr_matrix. x: array (n). y: array (m), which is overwritten, or None. alpha, beta: numbers. transa: whether op transposes.
    Returns: ndarray (m).
    Raises: ValueError for shapes and orders that do not fit.
    Source: cupyx.cusparse.csrmv
    """
    _check_order("y", y)
    return _product(_turn(a, transa), x, y, alpha, beta)


def csrmm(a, b, c=None, alpha=1, beta=0, transa=False):
    """alpha * op(a) @ b + beta * c for a sparse and a dense matrix.

    Parameters: a: csr_matrix. b: array (n, k), F-contiguous. c: array (m, k), F-contiguous, which is overwritten, or None. alpha, beta:
    numbers. transa: whether op transposes.
    Returns: ndarray (m, k).
    Raises: ValueError for shapes and orders that do not fit.
    Source: cupyx.cusparse.csrmm
    """
    return csrmm2(a, b, c, alpha, beta, transa)


def csrmm2(a, b, c=None, alpha=1.0, beta=0.0, transa=False, transb=False):
    """alpha * op(a) @ op(b) + beta * c for a sparse and a dense matrix.

    Parameters: a, b, c, alpha, beta, transa: as csrmm. transb: whether b is transposed; not together with a.
    Returns: ndarray (m, k).
    Raises: ValueError for shapes and orders that do not fit.
    Source: cupyx.cusparse.csrmm2
    """
    if a.ndim != 2 or b.ndim != 2:
        raise ValueError("expected 2-D matrices")
    _check_order("b", b)
    _check_order("c", c)
    if transa and transb:
        raise ValueError("a and b cannot both be transposed")
    return _product(_turn(a, transa), _turn(b, transb), c, alpha, beta, "F")


def spmv(a, x, y=None, alpha=1, beta=0, transa=False):
    """alpha * op(a) @ x + beta * y for a sparse matrix and a vector.

    Parameters: a: csr_matrix, csc_matrix or coo_matrix. x, y, alpha, beta, transa: as csrmv.
    Returns: ndarray (m).
    Raises: TypeError for another format; ValueError for shapes that do not fit.
    Source: cupyx.cusparse.spmv
    """
    _check_format(a, "csr", "csc", "coo")
    if not a.has_canonical_format:
        raise ValueError("expected canonical format")
    return _product(_turn(a, transa), x, y, alpha, beta)


def spmm(a, b, c=None, alpha=1, beta=0, transa=False, transb=False):
    """alpha * op(a) @ op(b) + beta * c for a sparse and a dense matrix.

    Parameters: a: csr_matrix, csc_matrix or coo_matrix. b, c, alpha, beta, transa, transb: as csrmm2.
    Returns: ndarray (m, k).
    Raises: TypeError for another format; ValueError for shapes and orders that do not fit.
    Source: cupyx.cusparse.spmm
    """
    if a.ndim != 2 or b.ndim != 2:
        raise ValueError("expected 2-D matrices")
    _check_order("b", b)
    _check_order("c", c)
    _check_format(a, "csr", "csc", "coo")
    _check_canonical(a)
    return _product(_turn(a, transa), _turn(b, transb), c, alpha, beta, "F")


def _add(a, b, alpha, beta):
    for one in (a, b):
        _check_format(one, "csr")
    _check_canonical(a, b)
    if a.shape != b.shape:
        raise ValueError("inconsistent shapes")
    dtype = np.result_type(a.dtype, b.dtype)
    return a.astype(dtype) * dtype.type(alpha) + b.astype(dtype) * dtype.type(beta)


def csrgeam(a, b, alpha=1, beta=1):
    """alpha * a + beta * b.

    Parameters: a, b: csr_matrix. alpha, beta: numbers.
    Returns: csr_matrix.
    Raises: TypeError for another format; ValueError for different shapes or repeated indices.
    Source: cupyx.cusparse.csrgeam
    """
    return _add(a, b, alpha, beta)


def csrgeam2(a, b, alpha=1, beta=1):
    """alpha * a + beta * b.

    Parameters: as csrgeam.
    Returns: csr_matrix.
    Raises: as csrgeam.
    Source: cupyx.cusparse.csrgeam2
    """
    return _add(a, b, alpha, beta)


def spgeam(a, b, alpha=1, beta=1):
    """alpha * a + beta * b.

    Parameters: as csrgeam.
    Returns: csr_matrix.
    Raises: as csrgeam.
    Source: cupyx.cusparse.spgeam
    """
    return _add(a, b, alpha, beta)


def csrgemm(a, b, transa=False, transb=False):
    """op(a) @ op(b) for sparse matrices.

    Parameters: a, b: csr_matrix. transa, transb: whether op transposes.
    Returns: csr_matrix.
    Raises: ValueError for shapes that do not fit or repeated indices.
    Source: cupyx.cusparse.csrgemm
    """
    _check_canonical(a, b)
    a, b = _turn(a, transa), _turn(b, transb)
    if a.shape[1] != b.shape[0]:
        raise ValueError("dimension mismatch")
    return (a @ b).tocsr()


def csrgemm2(a, b, d=None, alpha=1, beta=1):
    """alpha * a @ b + beta * d for sparse matrices.

    Parameters: a, b: csr_matrix. d: csr_matrix, or None. alpha, beta: numbers.
    Returns: csr_matrix.
    Raises: TypeError for another format; ValueError for shapes that do not fit or repeated indices.
    Source: cupyx.cusparse.csrgemm2
    """
    every = (a, b) if d is None else (a, b, d)
    for one in every:
        _check_format(one, "csr")
    _check_canonical(*every)
    if a.shape[1] != b.shape[0] or d is not None and d.shape != (a.shape[0], b.shape[1]):
        raise ValueError("mismatched shape")
    dtype = np.result_type(*(one.dtype for one in every))
    result = (a.astype(dtype) @ b.astype(dtype)) * dtype.type(alpha)
    return (result if d is None else result + d.astype(dtype) * dtype.type(beta)).tocsr()


def spgemm(a, b, alpha=1):
    """alpha * a @ b for sparse matrices.

    Parameters: a, b: csr_matrix. alpha: number.
    Returns: csr_matrix.
    Raises: TypeError for another format; ValueError for shapes that do not fit or repeated indices.
    Source: cupyx.cusparse.spgemm
    """
    return csrgemm2(a, b, alpha=alpha)


# ---- conversions ----

def _fill_dense(x, out):
    if x.dtype.char not in "fdFD":
        raise ValueError("unsupported dtype")
    _check_order("out", out)
    if out is not None and out.dtype != x.dtype:
        raise ValueError("out dtype mismatch")
    result = x.toarray()
    if out is None:
        return ad.asfortranarray(result)
    out[...] = result
    return out


def sparseToDense(x, out=None):
    """The dense matrix.

    Parameters: x: sparse matrix. out: array to fill, F-contiguous.
    Returns: ndarray.
    Raises: ValueError for other types than float32, float64 and their complex ones, or an out that does not fit.
    Source: cupyx.cusparse.sparseToDense
    """
    return _fill_dense(x, out)


def csr2dense(x, out=None):
    """The dense matrix.

    Parameters: x: csr_matrix. out: array to fill, F-contiguous.
    Returns: ndarray.
    Raises: as sparseToDense.
    Source: cupyx.cusparse.csr2dense
    """
    return _fill_dense(x, out)


def csc2dense(x, out=None):
    """The dense matrix.

    Parameters: x: csc_matrix. out: array to fill, F-contiguous.
    Returns: ndarray.
    Raises: as sparseToDense.
    Source: cupyx.cusparse.csc2dense
    """
    return _fill_dense(x, out)


def denseToSparse(x, format="csr"):
    """The sparse matrix.

    Parameters: x: array (m, n). format: "csr", "csc" or "coo".
    Returns: sparse matrix.
    Raises: ValueError for other types than float32, float64 and their complex ones, or dimensions; TypeError for another format.
    Source: cupyx.cusparse.denseToSparse
    """
    if x.ndim != 2:
        raise ValueError("expected 2-D matrix")
    if x.dtype.char not in "fdFD":
        raise ValueError("unsupported dtype")
    if format not in ("csr", "csc", "coo"):
        raise TypeError(f"unsupported format (actual: {format})")
    return getattr(_sparse, format + "_matrix")(x)


def dense2csr(x):
    """The matrix in CSR format.

    Parameters: x: array (m, n).
    Returns: csr_matrix.
    Raises: as denseToSparse.
    Source: cupyx.cusparse.dense2csr
    """
    return denseToSparse(x, "csr")


def dense2csc(x):
    """The matrix in CSC format.

    Parameters: x: array (m, n).
    Returns: csc_matrix.
    Raises: as denseToSparse.
    Source: cupyx.cusparse.dense2csc
    """
    return denseToSparse(x, "csc")


def _make_conversion(name):
    format = name.partition("2")[2][:3]

    def convert(x):
        return x.asformat(format)
    convert.__name__ = convert.__qualname__ = name
    convert.__doc__ = f"""The matrix in {format.upper()} format.

    Parameters: x: {name[:3]}_matrix.
    Returns: {format}_matrix.
    Raises: nothing of its own.
    Source: cupyx.cusparse.{name}
    """
    return convert


for _name in ("coo2csr", "coo2csc", "csr2csc", "csr2cscEx2", "csc2csr", "csc2csrEx2"):
    globals()[_name] = _make_conversion(_name)
del _name


def csr2coo(x, data, indices):
    """The matrix in COO format, of arrays that are given.

    Parameters: x: csr_matrix, whose rows are taken. data, indices: arrays of the elements and their columns.
    Returns: coo_matrix.
    Raises: nothing of its own.
    Source: cupyx.cusparse.csr2coo
    """
    return _sparse.coo_matrix((data, (x.tocoo().row, indices)), shape=x.shape)


def csc2coo(x, data, indices):
    """The matrix in COO format, of arrays that are given.

    Parameters: x: csc_matrix, whose columns are taken. data, indices: arrays of the elements and their rows.
    Returns: coo_matrix.
    Raises: nothing of its own.
    Source: cupyx.cusparse.csc2coo
    """
    return _sparse.coo_matrix((data, (indices, x.tocoo().col)), shape=x.shape)


def csr2csr_compress(x, tol):
    """The matrix without elements whose magnitude is at most tol.

    Parameters: x: csr_matrix. tol: number.
    Returns: csr_matrix.
    Raises: ValueError for other types than float32, float64 and their complex ones.
    Source: cupyx.cusparse.csr2csr_compress
    """
    if x.dtype.char not in "fdFD":
        raise ValueError("unsupported dtype")
    coo = x.tocoo()
    keep = abs(coo.data) > tol
    return _sparse.coo_matrix((coo.data[keep], (coo.row[keep], coo.col[keep])), shape=x.shape).tocsr()


# ---- sorting ----

def csrsort(x):
    """Sort the indices of each row, in place.

    Parameters: x: csr_matrix.
    Returns: None.
    Raises: nothing of its own.
    Source: cupyx.cusparse.csrsort
    """
    x.has_sorted_indices = False
    x.sort_indices()


def cscsort(x):
    """Sort the indices of each column, in place.

    Parameters: x: csc_matrix.
    Returns: None.
    Raises: nothing of its own.
    Source: cupyx.cusparse.cscsort
    """
    csrsort(x)


def coosort(x, sort_by="r"):
    """Sort the elements by row or by column, in place.

    Parameters: x: coo_matrix. sort_by: "r" or "c".
    Returns: None.
    Raises: ValueError for another sort_by.
    Source: cupyx.cusparse.coosort
    """
    if sort_by not in ("r", "c"):
        raise ValueError("sort_by must be either 'r' or 'c'")
    keys = [x.col, x.row] if sort_by == "r" else [x.row, x.col]
    order = ad.lexsort(ad.stack(keys))
    x.row, x.col, x.data = x.row[order], x.col[order], x.data[order]


# ---- triangular systems ----

def _solve(a, b, alpha, lower, unit_diag, transa):
    from ..scipy.sparse.linalg._direct import _solve_triangle
    transa = {False: "N", True: "T"}.get(transa, transa)
    if transa not in ("N", "T", "H"):
        raise ValueError(f"Unknown transa (actual: {transa})")
    for name, flag in (("lower", lower), ("unit_diag", unit_diag)):
        if flag not in (True, False):
            raise ValueError(f"Unknown {name} (actual: {flag})")
    if transa != "N":
        a, lower = (a.conj().T if transa == "H" else a.T), not lower
    return _solve_triangle(a, b * b.dtype.type(alpha), bool(lower), bool(unit_diag))


def csrsm2(a, b, alpha=1.0, lower=True, unit_diag=False, transa=False, blocking=True, level_info=False):
    """Solve op(a) @ x = alpha * b for a sparse triangular matrix; b becomes x.

    Parameters: a: csr_matrix or csc_matrix (n, n). b: array (n) or (n, k), which is overwritten. alpha: number. lower: whether a is lower
    triangular. unit_diag: whether its diagonal is taken for 1. transa: False, True, "N", "T" or "H": whether op transposes. blocking,
    level_info: ignored.
    Returns: None.
    Raises: ValueError for shapes, formats and flags that do not fit, TypeError for types.
    Source: cupyx.cusparse.csrsm2
    """
    if not (_sparse.issparse(a) and a.format in ("csr", "csc")):
        raise ValueError("a must be CSR or CSC sparse matrix")
    if not isinstance(b, ad.ndarray):
        raise ValueError("b must be an array of the server")
    if b.ndim not in (1, 2):
        raise ValueError("b.ndim must be 1 or 2")
    if not a.shape[0] == a.shape[1] == b.shape[0]:
        raise ValueError("invalid shape")
    if a.dtype != b.dtype:
        raise TypeError("dtype mismatch")
    for name, flag in (("blocking", blocking), ("level_info", level_info)):
        if flag not in (True, False):
            raise ValueError(f"Unknown {name} (actual: {flag})")
    b[...] = _solve(a, b, alpha, lower, unit_diag, transa)


def spsm(a, b, alpha=1.0, lower=True, unit_diag=False, transa=False):
    """Solve op(a) @ x = alpha * b for a sparse triangular matrix.

    Parameters: a: csr_matrix, csc_matrix or coo_matrix (n, n). b: array (n, k). alpha, lower, unit_diag, transa: as csrsm2.
    Returns: ndarray.
    Raises: ValueError for shapes, formats and flags that do not fit, TypeError for types.
    Source: cupyx.cusparse.spsm
    """
    if not (_sparse.issparse(a) and a.format in ("csr", "csc", "coo")):
        raise ValueError("a must be CSR, CSC or COO sparse matrix")
    if not isinstance(b, ad.ndarray):
        raise ValueError("b must be an array of the server")
    if not a.shape[0] == a.shape[1] == b.shape[0]:
        raise ValueError("invalid shape")
    if a.dtype != b.dtype or a.dtype.char not in "fdFD":
        raise TypeError("dtype mismatch")
    return _solve(a, b, alpha, lower, unit_diag, transa)


# ---- incomplete factors ----

def csrilu02(a, level_info=False):
    """Incomplete factors of a sparse matrix, L @ U without fill-in or pivoting, which take its place: L, whose diagonal is
    1, below the diagonal, and U.

    Parameters: a: csr_matrix (n, n), which is overwritten. level_info: ignored.
    Returns: None.
    Raises: TypeError for formats and types; ValueError for a shape that is not square, a diagonal element that is missing or
    a factor whose diagonal has a zero.
    Source: cupyx.cusparse.csrilu02
    """
    if not (_sparse.issparse(a) and a.format == "csr"):
        raise TypeError("a must be CSR sparse matrix")
    if a.shape[0] != a.shape[1]:
        raise ValueError(f"invalid shape (a.shape: {a.shape})")
    if a.dtype.char not in "fdFD":
        raise TypeError(f"unsupported dtype (actual: {a.dtype})")
    if level_info not in (True, False):
        raise ValueError(f"Unknown level_info: {level_info}")
    a.sum_duplicates()
    factor_in_place(a)
