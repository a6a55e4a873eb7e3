"""Functions of graphs that are sparse matrices, as scipy.sparse.csgraph has them, on the server."""
import numpy as np

import arrayd as ad

from .. import _entries
from .._base import find_class
from .._types import is_host_sparse, issparse

__all__ = ["connected_components"]


def _label_places(row, col, n):
    """For each node the least one that it is connected with. Waits.

    Of many edges some connect most of what is connected, so that few others have to be looked at more than once.
    """
    labels = ad.arange(n)
    some = row.size // (2 * n) if n else 0
    if some > 1:
        labels = _connect(labels, row[::some], col[::some])
    return _connect(labels, row, col)


def _connect(labels, row, col):
    """The labels, which are roots of trees, with edges besides. Waits.

    Trees grow: of each edge between roots the greater one gets the lesser one for a parent, if it has no lesser parent. Edges
    within a tree are left out.
    """
    while True:
        row, col = labels[row], labels[col]
        left = ad.nonzero(row != col)[0]
        if left.size == 0:
            return labels
        row, col = row[left], col[left]
        labels = _find_roots(_entries.scatter_extreme(labels.copy(), ad.maximum(row, col), ad.minimum(row, col), False))


def _find_roots(parents):
    """The root of each node. Waits."""
    while True:
        parents = parents[parents]
        jumped = parents[parents]
        if bool((jumped == parents).all()):
            return parents
        parents = jumped


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
    row, col = row.astype(np.int64), col.astype(np.int64)
    labels = _label_places(row, ad.where(data != 0, col, row), n)
    first = labels == ad.arange(n)
    number = ad.cumsum(first) - 1
    count = int(number[-1]) + 1 if n else 0
    return (count, number[labels].astype(np.int32)) if return_labels else count


def _label_strong(csgraph, return_labels):
    from ..linalg._direct import _import_scipy
    _import_scipy()
    import scipy.sparse.csgraph
    found = scipy.sparse.csgraph.connected_components(csgraph.get(), True, "strong", return_labels)
    return (found[0], ad.asarray(found[1])) if return_labels else found
