"""Sparse systems solved by factors. Whole factors are SciPy's, computed on the host; incomplete ones without fill-in are
the server's call ilu0. Triangular systems are solved on the server, by its call sptrsm."""
import numpy as np

import arrayd as ad

from ...._base import call
from ...._core import ndarray
from .. import _construct
from .._base import find_class
from .._types import issparse
from ._incomplete import factor_in_place


def _import_scipy():
    try:
        import scipy.sparse.linalg
    except ImportError as error:
        raise ImportError("this function needs SciPy on the host: pip install 'arrayd[scipy]'") from error
    return scipy.sparse.linalg


def _check_square(A, what):
    if not issparse(A):
        raise TypeError(f"A must be a sparse matrix, not {type(A)}")
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise ValueError(f"A must be a square matrix (A.shape: {A.shape})")
    if A.dtype.char not in "fdFD":
        raise TypeError(f"unsupported dtype (actual: {A.dtype})")


def _as_right_side(b, n):
    if not isinstance(b, (ndarray, np.ndarray)):
        raise TypeError("b must be an array")
    b = ad.asarray(b)
    if b.ndim not in (1, 2):
        raise ValueError(f"b must have 1 or 2 dims but its shape is {b.shape}")
    if b.shape[0] != n:
        raise ValueError(f"The size of dimensions of A must be equal to the size of the first dimension of b "
                         f"({n} != {b.shape[0]})")
    return b


def _solve_triangle(A, b, lower, unit):
    dtype = np.result_type(A.dtype, b.dtype)
    dtype = dtype if dtype.char in "fdFD" else np.dtype(np.float64)
    A = A.tocsr()
    return call("sptrsm", (A.data, A.indices, A.indptr, b), (lower, unit), dtype=dtype)


def spsolve_triangular(A, b, lower=True, overwrite_A=False, overwrite_b=False, unit_diagonal=False):
    """Solve A @ x = b for a sparse triangular A.

    Parameters: A: square sparse matrix. b: array of shape (n,) or (n, k). lower: whether A is lower (else upper)
        triangular; the other triangle is passed over. overwrite_A, overwrite_b: ignored. unit_diagonal: whether the
        diagonal is taken for 1.
    Returns: ndarray.
    Raises: TypeError for what is not sparse, ValueError where shapes do not fit, LinAlgError for a zero on the diagonal.
    Source: scipy.sparse.linalg.spsolve_triangular
    """
    _check_square(A, "A")
    b = _as_right_side(b, A.shape[0])
    if not unit_diagonal and A.shape[0] and not bool((A.diagonal() != 0).all()):
        raise ad.linalg.LinAlgError("A is singular: zero entry on diagonal.")
    return _solve_triangle(A, b, bool(lower), bool(unit_diagonal))


class SuperLU:
    """Factors of a sparse matrix, Pr @ A @ Pc = L @ U, as splu and spilu give them.

    Parameters: obj: SciPy's SuperLU object, whose factors go to the server.
    Source: scipy.sparse.linalg.SuperLU
    """

    def __init__(self, obj):
        self.shape, self.nnz = obj.shape, obj.nnz
        self.L, self.U = find_class("csr", False)(obj.L.tocsr()), find_class("csr", False)(obj.U.tocsr())
        self.perm_r, self.perm_c = ad.asarray(obj.perm_r), ad.asarray(obj.perm_c)
        self._to_rows, self._to_columns = ad.argsort(self.perm_r), ad.argsort(self.perm_c)
        self._turned = {}

    def _factors(self, trans):
        """The two triangles in the order in which they are solved: (matrix, lower, unit)."""
        if trans == "N":
            return (self.L, True, False), (self.U, False, False)
        if trans not in self._turned:
            turn = (lambda m: m.T.tocsr()) if trans == "T" else (lambda m: m.conj().T.tocsr())
            self._turned[trans] = (turn(self.U), True, False), (turn(self.L), False, False)
        return self._turned[trans]

    def solve(self, rhs, trans="N"):
        """The solution of A @ x = rhs, or of the transposed ('T') or adjoint ('H') system.

        rhs is an array of shape (n,) or (n, k). TypeError for another object, ValueError where shapes do not fit.
        """
        if not isinstance(rhs, (ndarray, np.ndarray)):
            raise TypeError("ojb must be cupy.ndarray" if rhs is None else "rhs must be an array")
        if trans not in ("N", "T", "H"):
            raise ValueError("trans must be 'N', 'T', or 'H'")
        x = _as_right_side(rhs, self.shape[0])
        x = x[self._to_rows] if trans == "N" else x[self._to_columns]
        for matrix, lower, unit in self._factors(trans):
            x = _solve_triangle(matrix, x, lower, unit)
        return ad.asfortranarray(x[self.perm_c] if trans == "N" else x[self.perm_r])  # as SciPy's


class IncompleteLU(SuperLU):
    """Factors A ~ L @ U that have A's entries and no others, without pivoting, computed on the server.

    Parameters: a: square csr_matrix in canonical format, which becomes both factors.
    Raises: ValueError where an element of the diagonal is missing, or becomes 0.
    Source: cupyx.scipy.sparse.linalg.spilu with fill_factor=1
    """

    def __init__(self, a):
        factor_in_place(a)
        self.shape, self.nnz = a.shape, a.nnz
        self.L = (_construct.tril(a, -1) + _construct.eye(a.shape[0], dtype=a.dtype)).tocsr()
        self.U = _construct.triu(a).tocsr()
        self.perm_r = self.perm_c = self._to_rows = self._to_columns = ad.arange(a.shape[0])
        self._turned = {}


def splu(A, permc_spec=None, diag_pivot_thresh=None, relax=None, panel_size=None, options=None):
    """The LU factors of a sparse square matrix, which SciPy computes on the host.

    Parameters: A: sparse matrix. permc_spec, diag_pivot_thresh, relax, panel_size, options: as SciPy has them.
    Returns: SuperLU.
    Raises: TypeError for what is not sparse, ValueError for what is not square, RuntimeError where A is singular.
    Source: scipy.sparse.linalg.splu
    """
    _check_square(A, "A")
    return SuperLU(_import_scipy().splu(A.get().tocsc(), permc_spec=permc_spec, diag_pivot_thresh=diag_pivot_thresh,
                                        relax=relax, panel_size=panel_size, options=options or {}))


def spilu(A, drop_tol=None, fill_factor=None, drop_rule=None, permc_spec=None, diag_pivot_thresh=None, relax=None,
          panel_size=None, options=None):
    """Incomplete LU factors of a sparse square matrix: a preconditioner.

    Parameters: A: sparse matrix. fill_factor: 1 asks, as in CuPy, for factors without fill-in or pivoting, which the server
        computes; the other parameters are then ignored. Otherwise SciPy computes the factors on the host. drop_tol,
        drop_rule, permc_spec, diag_pivot_thresh, relax, panel_size, options: as SciPy has them.
    Returns: SuperLU.
    Raises: TypeError for what is not sparse, ValueError for what is not square, and for fill_factor=1 where an element of
        the diagonal is missing or becomes 0; RuntimeError where A is singular.
    Source: scipy.sparse.linalg.spilu
    """
    _check_square(A, "A")
    if fill_factor == 1:
        a = find_class("csr", False)(A, copy=True)
        a.sum_duplicates()
        return IncompleteLU(a)
    return SuperLU(_import_scipy().spilu(A.get().tocsc(), drop_tol=drop_tol, fill_factor=fill_factor,
                                         drop_rule=drop_rule, permc_spec=permc_spec,
                                         diag_pivot_thresh=diag_pivot_thresh, relax=relax, panel_size=panel_size,
                                         options=options or {}))


def factorized(A):
    """A function that solves A @ x = b for one b after another, with factors that are computed once.

    Parameters: A: square sparse matrix.
    Returns: function of an array.
    Raises: TypeError for what is not sparse, ValueError for what is not square, RuntimeError where A is singular.
    Source: scipy.sparse.linalg.factorized
    """
    return splu(A).solve


def spsolve(A, b, permc_spec=None, use_umfpack=True):
    """Solve A @ x = b for a sparse square A, with factors that SciPy computes on the host.

    Parameters: A: sparse matrix. b: array of shape (n,) or (n, k), or sparse. permc_spec: as SciPy has it. use_umfpack:
        ignored.
    Returns: ndarray; sparse where b is.
    Raises: TypeError for what is not sparse, ValueError where shapes do not fit, RuntimeError where A is singular.
    Source: scipy.sparse.linalg.spsolve
    """
    _check_square(A, "A")
    if issparse(b):
        dense = _as_right_side(b.toarray(), A.shape[0])
        return b._like("csc" if b.format == "csc" else "csr")(splu(A, permc_spec=permc_spec).solve(dense))
    b = _as_right_side(b, A.shape[0])
    if b.size == A.shape[0] and np.result_type(A.dtype, b.dtype) == A.dtype:  # its factors need not go to the server
        factors = _import_scipy().splu(A.get().tocsc(), permc_spec=permc_spec)
        return ad.asarray(factors.solve(b.ravel().get().astype(A.dtype, copy=False)))
    x = splu(A, permc_spec=permc_spec).solve(b)
    return x.ravel() if b.ndim == 2 and b.shape[1] == 1 else x
