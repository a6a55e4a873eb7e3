"""Linear algebra with dense matrices beyond arrayd.linalg, as scipy.linalg has it, on the server.

LU and Cholesky factors come from the server's calls and are used again by triangular solves.
"""
from ._functions import bandwidth, expm, khatri_rao, kron
from ._special import (block_diag, circulant, companion, convolution_matrix, dft, fiedler, fiedler_companion, hadamard,
                       hankel, helmert, hilbert, leslie, toeplitz)
from ._triangular import cho_factor, cho_solve, lu, lu_factor, lu_solve, solve_triangular

__all__ = sorted(name for name in globals() if not name.startswith("_"))
