"""Sparse linear systems, as cupyx.linalg.sparse names them."""
import numpy as np

import arrayd as ad

__all__ = ["lschol"]


def lschol(A, b):
    """Solve A @ x = b for a sparse positive definite matrix.

    Parameters: A: csr_matrix, or array (n, n). b: array (n).
    Returns: ndarray.
    Raises: LinAlgError for a matrix that is not square; ValueError for b of another shape.
    Source: cupyx.linalg.sparse.lschol
    Differs: the factors are LU's.
    """
    from ...scipy import sparse
    from ...scipy.sparse.linalg import spsolve
    A = A.tocsr() if sparse.issparse(A) else sparse.csr_matrix(ad.asarray(A))
    if A.shape[0] != A.shape[1]:
        raise ad.linalg.LinAlgError("Last 2 dimensions of the array must be square")
    if b.ndim != 1 or b.shape[0] != A.shape[0]:
        raise ValueError("b must be 1-d array whose size is same as A")
    dtype = A.dtype if A.dtype.char in "fd" else np.promote_types(A.dtype, np.float32)
    return spsolve(A.astype(dtype), b.astype(dtype))
