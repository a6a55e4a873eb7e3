"""Sparse matrices in files, in SciPy's format."""
import numpy as np

from ._base import find_class
from ._types import issparse

_PARTS = {"csr": ("indices", "indptr"), "csc": ("indices", "indptr"), "coo": ("row", "col"), "dia": ("offsets",)}


def save_npz(file, matrix, compressed=True):
    """Save a sparse matrix in a .npz file, as scipy.sparse.save_npz does.

    Parameters: file: path, or file object. matrix: sparse matrix. compressed: bool.
    Returns: None.
    Raises: TypeError for what is not sparse, NotImplementedError for one dimension.
    Source: scipy.sparse.save_npz
    """
    if not issparse(matrix):
        raise TypeError(f"a sparse matrix is expected, not {type(matrix)}")
    if matrix.ndim != 2:
        raise NotImplementedError("only sparse matrices of two dimensions have a format of files")
    parts = {name: getattr(matrix, name).get() for name in _PARTS[matrix.format]}
    from ._types import sparray
    if isinstance(matrix, sparray):
        parts["_is_array"] = np.array(True)
    (np.savez_compressed if compressed else np.savez)(
        file, format=matrix.format.encode("ascii"), shape=matrix.shape, data=matrix.data.get(), **parts)


def load_npz(file):
    """Load a sparse matrix from a .npz file that save_npz, or SciPy's, has written.

    Parameters: file: path, or file object.
    Returns: sparse matrix, or array.
    Raises: ValueError for a file of another kind.
    Source: scipy.sparse.load_npz
    """
    with np.load(file, allow_pickle=False) as loaded:
        if "format" not in loaded:
            raise ValueError(f"The file {file} does not contain a sparse array or matrix.")
        format = loaded["format"].item()
        format = format.decode("ascii") if isinstance(format, bytes) else format
        if format not in _PARTS:
            raise NotImplementedError(f"Load is not implemented for sparse matrix of format {format}.")
        cls = find_class(format, bool(loaded["_is_array"]) if "_is_array" in loaded else False)
        parts = [loaded[name] for name in _PARTS[format]]
        given = (loaded["data"], tuple(parts)) if format == "coo" else (loaded["data"], *parts)
        return cls(given, shape=tuple(loaded["shape"].tolist()))
