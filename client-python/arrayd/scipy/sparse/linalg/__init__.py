"""Linear algebra with sparse matrices, as scipy.sparse.linalg has it, on the server.

Solvers and eigenvalues multiply by the matrix and by nothing else, and so take LinearOperators, too. spsolve, splu,
spilu and factorized have SciPy compute the factors on the host, and solve with them on the server.
"""
from ._eigen import eigsh, svds
from ._least_squares import lsmr, lsqr
from ._lobpcg import lobpcg
from ._matrices import expm_multiply, matrix_power, norm
from ._operators import LinearOperator, aslinearoperator
from ._direct import SuperLU, factorized, spilu, splu, spsolve, spsolve_triangular
from ._iterative import bicgstab, cg, cgs, gmres, minres

__all__ = sorted(name for name in globals() if not name.startswith("_"))
