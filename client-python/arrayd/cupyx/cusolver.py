"""Factorisations of dense matrices under the names that cupyx.cusolver has for cuSOLVER's routines."""
import arrayd as ad

from .lapack import gels as _solve_least_squares

__all__ = ["check_availability", "csrlsvqr", "gels", "gesv", "gesvda", "gesvdj", "syevj"]

_NAMES = ("gesvdj", "gesvda", "potrfBatched", "potrsBatched", "syevj", "gesv", "gels", "geev", "csrlsvqr")


def check_availability(name):
    """Whether there is a routine of that name.

    Parameters: name: str.
    Returns: bool.
    Raises: ValueError for a name that cupyx.cusolver does not know.
    Source: cupyx.cusolver.check_availability
    """
    if name not in _NAMES:
        raise ValueError(f"No available version information specified for {name}")
    return True


def gesvdj(a, full_matrices=True, compute_uv=True, overwrite_a=False):
    """Singular values and vectors.

    Parameters: a: array (..., m, n). full_matrices: whether u and v are square. compute_uv: whether there are vectors. overwrite_a: ignored.
    Returns: tuple of ndarrays: u, s and v (not its transposed); s alone without compute_uv.
    Raises: LinAlgError for fewer than two dimensions.
    Source: cupyx.cusolver.gesvdj
    """
    if not compute_uv:
        return ad.linalg.svd(a, compute_uv=False)
    u, s, vh = ad.linalg.svd(a, full_matrices=full_matrices)
    return u, s, ad.swapaxes(vh, -1, -2).conj()


def gesvda(a, compute_uv=True):
    """Singular values and vectors of tall matrices.

    Parameters: a: array (..., m, n), m at least n. compute_uv: whether there are vectors.
    Returns: tuple of ndarrays: u, s and v (not its transposed); s alone without compute_uv.
    Raises: ValueError for fewer rows than columns.
    Source: cupyx.cusolver.gesvda
    """
    if a.ndim < 2 or a.shape[-2] < a.shape[-1]:
        raise ValueError("The shape of the matrix must satisfy M >= N")
    return gesvdj(a, False, compute_uv)


def syevj(a, UPLO="L", with_eigen_vector=True):
    """Eigenvalues and eigenvectors of Hermitian matrices.

    Parameters: a: array (..., n, n). UPLO: "L" or "U", the triangle that is read. with_eigen_vector: whether there are vectors.
    Returns: tuple of ndarrays: eigenvalues and eigenvectors; the values alone without with_eigen_vector.
    Raises: ValueError for another UPLO.
    Source: cupyx.cusolver.syevj
    """
    if UPLO not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    return tuple(ad.linalg.eigh(a, UPLO)) if with_eigen_vector else ad.linalg.eigvalsh(a, UPLO)


def gesv(a, b):
    """Solve a @ x = b.

    Parameters: a: array (n, n). b: array (n) or (n, k).
    Returns: ndarray of b's shape.
    Raises: ValueError for shapes and types that do not fit.
    Source: cupyx.cusolver.gesv
    """
    if a.ndim != 2 or b.ndim not in (1, 2) or a.shape[0] != a.shape[1] or a.shape[0] != b.shape[0]:
        raise ValueError(f"shape mismatch (a:{a.shape}, b:{b.shape}).")
    if a.dtype != b.dtype or a.dtype.char not in "fdFD":
        raise ValueError(f"dtype mismatch (a:{a.dtype}, b:{b.dtype}).")
    return ad.linalg.solve(a, b)


def gels(a, b):
    """The least-squares solution of a @ x = b for at least as many rows as columns.

    Parameters: a: array (m, n). b: array (m) or (m, k).
    Returns: ndarray (n) or (n, k).
    Raises: ValueError for shapes and types that do not fit.
    Source: cupyx.cusolver.gels
    """
    if a.ndim == 2 and a.shape[0] < a.shape[1]:
        raise ValueError("m must be equal to or greater than n.")
    return _solve_least_squares(a, b)


def csrlsvqr(A, b, tol=0, reorder=1):
    """Solve A @ x = b for a sparse square matrix.

    Parameters: A: csr_matrix (n, n). b: array (n). tol, reorder: ignored.
    Returns: ndarray.
    Raises: ValueError for shapes and formats that do not fit, TypeError for types.
    Source: cupyx.cusolver.csrlsvqr
    """
    from ..scipy import sparse
    from ..scipy.sparse.linalg import spsolve
    if not sparse.issparse(A) or A.format != "csr":
        raise ValueError("A must be CSR sparse matrix")
    if not isinstance(b, ad.ndarray):
        raise ValueError("b must be an array of the server")
    if b.ndim != 1:
        raise ValueError(f"b.ndim must be 1 (actual: {b.ndim})")
    if not A.shape[0] == A.shape[1] == b.shape[0]:
        raise ValueError("invalid shape")
    if A.dtype != b.dtype:
        raise TypeError("dtype mismatch")
    if A.dtype.char not in "fdFD":
        raise TypeError(f"Invalid dtype (actual: {A.dtype})")
    return spsolve(A, b)
