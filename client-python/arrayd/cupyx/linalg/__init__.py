"""Functions of cupyx.linalg: the inverse of Hermitian positive definite matrices, and systems by their factors."""
import arrayd as ad

from . import sparse

__all__ = ["cho_solve", "invh", "sparse"]


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


def cho_solve(c_and_lower, b, overwrite_b=False):
    """Solve a @ x = b with Cholesky's factors of stacks of matrices.

    Parameters: c_and_lower: tuple of array (..., n, n), of which one triangle is read, and bool, whether that is the lower
        one. b: array (..., n) or (..., n, k). overwrite_b: whether the result may lie in b.
    Returns: ndarray of b's shape.
    Raises: ValueError where shapes do not fit.
    Source: cupyx.linalg.cho_solve
    """
    from ...scipy.linalg._triangular import solve_triangle
    factor, lower = c_and_lower
    if factor.ndim < 2 or factor.shape[-1] != factor.shape[-2]:
        raise ValueError("The factored matrix c is not square.")
    vector = b.ndim == factor.ndim - 1
    if (b.shape if vector else b.shape[:-1]) != factor.shape[:-1]:
        raise ValueError(f"incompatible dimensions ({factor.shape} and {b.shape})")
    turned = ad.swapaxes(factor.conj(), -1, -2)
    first, second = (factor, turned) if lower else (turned, factor)
    x = solve_triangle(second, solve_triangle(first, b[..., None] if vector else b, True, False), False, False)
    x = x[..., 0] if vector else x
    if not overwrite_b or b.dtype != x.dtype:
        return x
    b[...] = x
    return b
