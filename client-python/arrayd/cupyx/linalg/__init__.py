"""What cupyx.linalg has: the inverse of Hermitian positive definite matrices."""
import arrayd as ad

__all__ = ["invh"]


def invh(a):
    """The inverse of Hermitian positive definite matrices, by Cholesky's factor.

    Parameters: a: array (..., n, n).
    Returns: ndarray.
    Raises: LinAlgError for what is not square, or (when the data is asked for) not positive definite.
    Source: cupyx.linalg.invh
    """
    from ...scipy.linalg._triangular import solve_triangle
    factor = ad.linalg.cholesky(a)
    inverse = solve_triangle(factor, ad.broadcast_to(ad.eye(a.shape[-1], dtype=factor.dtype), factor.shape), True, False)
    return ad.swapaxes(inverse.conj(), -1, -2) @ inverse
