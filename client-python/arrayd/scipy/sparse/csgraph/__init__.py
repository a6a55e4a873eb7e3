"""Functions of graphs that are sparse matrices, as scipy.sparse.csgraph has them, on the server."""
import numpy as np

import arrayd as ad

from .. import _entries
from .._base import find_class
from .._types import is_host_sparse, issparse

__all__ = ["connected_components"]


def _label_places(row, col, n):
    """For each node the least one that it is connected with: minima go along edges, then along themselves. Waits."""
    labels = ad.arange(n)
    while True:
        a, b = labels[row], labels[col]
        low = ad.minimum(a, b)
        new = _entries.scatter_extreme(labels.copy(), a, low, False)
        new = _entries.scatter_extreme(new, b, low, False)
        while True:
            jumped = new[new]
            if bool((jumped == new).all()):
                break
            new = jumped
        if bool((new == labels).all()):
            return labels
        labels = new


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
    row, col, data = csgraph._triple()
    keep = ad.nonzero(data != 0)[0] if csgraph.dtype.kind != "b" else ad.nonzero(data)[0]
    labels = _label_places(row[keep].astype(np.int64), col[keep].astype(np.int64), n)
    first = labels == ad.arange(n)
    number = ad.cumsum(first) - 1
    count = int(number[-1]) + 1 if n else 0
    return (count, number[labels].astype(np.int32)) if return_labels else count


def _label_strong(csgraph, return_labels):
    from ..linalg._solve import _import_scipy
    _import_scipy()
    import scipy.sparse.csgraph
    found = scipy.sparse.csgraph.connected_components(csgraph.get(), True, "strong", return_labels)
    return (found[0], ad.asarray(found[1])) if return_labels else found
