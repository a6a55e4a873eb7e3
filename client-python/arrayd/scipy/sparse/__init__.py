"""Sparse arrays and matrices on the server, as scipy.sparse has them, with cupyx.scipy.sparse's names.

    from arrayd.scipy import sparse
    a = sparse.csr_matrix(ad.array([[0., 2.], [1., 0.]]))
    a @ ad.ones(2)

Their parts (data, indices, indptr, row, col, offsets) are arrays of the server. Products, functions of two
matrices element by element, conversions between CSR and CSC, and parts by columns or diagonals run as calls of the server,
which checks every index where it is used; all else is made of its sorts, searches and scatters.
"""
import importlib as _importlib

from ._compressed import (csc_array, csc_matrix, csr_array, csr_matrix, isspmatrix_csc, isspmatrix_csr)
from ._construct import (block_array, block_diag, bmat, diags, diags_array, eye, eye_array, find, get_index_dtype,
                         hstack, identity, kron, kronsum, matrix_transpose, permute_dims, rand, random, random_array,
                         safely_cast_index_arrays, spdiags, swapaxes, tril, triu, vstack)
from ._coo import coo_array, coo_matrix, isspmatrix_coo
from ._dia import dia_array, dia_matrix, isspmatrix_dia
from ._files import load_npz, save_npz
from ._types import SparseEfficiencyWarning, SparseWarning, issparse, isspmatrix, sparray, spmatrix

__all__ = sorted(name for name in globals() if not name.startswith("_"))


def __getattr__(name):
    if name in ("linalg", "csgraph"):
        return _importlib.import_module("." + name, __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
