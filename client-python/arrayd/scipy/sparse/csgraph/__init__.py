"""Functions of graphs that are sparse matrices, as scipy.sparse.csgraph has them, on the server."""
import numpy as np

import arrayd as ad

from ...._base import call
from .._base import find_class
from .._types import is_host_sparse, issparse

__all__ = ["connected_components"]


def _label_places(a):
    """For each node of a graph in CSR format the least one that it is connected with."""
    if a.dtype.char not in "fdFDlq":
        a = a.astype(np.complex128 if a.dtype.kind == "c" else np.float64)
    return call("spcomponents", (a.data, a.indices, a.indptr))


def connected_components(csgraph, directed=True, connection="weak", return_labels=True):
    """The components of a graph whose nodes are connected.

    Parameters: csgraph: square matrix, sparse or dense: an element that is not zero is an edge. directed: whether edges
        have a direction. connection: 'weak' or, for directed graphs, 'strong': then SciPy computes it on the host.
        return_labels: whether to say which component each node is in.
    Returns: int, or tuple of int and ndarray of int32.
    Raises: ValueError for a matrix that is not square, or another connection.
    Source: scipy.sparse.csgraph.connected_components
    """
    if not issparse(csgraph):
        csgraph = find_class("csr", False)(csgraph if is_host_sparse(csgraph) else ad.asarray(csgraph))
    if csgraph.ndim != 2 or csgraph.shape[0] != csgraph.shape[1]:
        raise ValueError("graph should be a square array" if csgraph.ndim == 2 else "compressed-sparse graph must be 2-D")
    if connection.lower() not in ("weak", "strong"):
        raise ValueError("connection must be 'weak' or 'strong'")
    if directed and connection.lower() == "strong":
        return _label_strong(csgraph, return_labels)
    n = csgraph.shape[0]
    labels = _label_places(csgraph if csgraph.format in ("csr", "csc") else csgraph.tocsr())
    first = labels == ad.arange(n, dtype=labels.dtype)
    number = ad.cumsum(first, dtype=np.int32) - 1
    count = int(number[-1]) + 1 if n else 0
    return (count, number[labels]) if return_labels else count


def _label_strong(csgraph, return_labels):
    from ..linalg._direct import _import_scipy
    _import_scipy()
    import scipy.sparse.csgraph
    found = scipy.sparse.csgraph.connected_components(csgraph.get(), True, "strong", return_labels)
    return (found[0], ad.asarray(found[1])) if return_labels else found
