"""Nearest neighbours: a call of the server finds a few; for many, and in boxes that repeat themselves, all distances are
taken, in blocks, and the smallest are kept."""
import math

import numpy as np

import arrayd as ad

from ..._base import call
from .distance import cdist

_PAIRS = 1 << 24  # of a block
_FEW = 16  # neighbours that the server finds, and up to which each is looked for by itself: beyond, all are put in order


def _list_columns(mask):
    """For each row of a mask the columns that are true."""
    column = ad.nonzero(mask)[1]
    ends = np.cumsum(mask.sum(axis=-1).get()).tolist()
    return [column[first:last] for first, last in zip([0, *ends], ends)]


def _find_least(distances, most):
    """The least of each row in order, and where they are; of equal ones the first. Those that are infinite are anywhere."""
    if most > _FEW or not distances.size:
        order = ad.argsort(distances, axis=-1)[:, :most]
        return ad.take_along_axis(distances, order, axis=-1), order
    rows, near, order = ad.arange(len(distances)), [], []
    for _ in range(min(most, distances.shape[1])):
        order.append(ad.argmin(distances, axis=-1))
        near.append(distances[rows, order[-1]])
        distances[rows, order[-1]] = np.inf
    return ad.stack(near, axis=1), ad.stack(order, axis=1)


class KDTree:
    """Points whose nearest neighbours are asked for.

    Parameters: data: array (n, d). leafsize, compact_nodes, copy_data, balanced_tree: ignored. boxsize: size, or sizes, of a
        box that repeats itself.
    Raises: ValueError for other than two dimensions, points that are not finite, or outside of the box. It waits.
    Source: scipy.spatial.KDTree
    Differs: there is no tree that is kept: on a CPU a query of many points puts the others in order first, any other query
        looks at all of them. query_ball_point and query_ball_tree give arrays, as CuPy's do, not
        lists.
    """

    def __init__(self, data, leafsize=10, compact_nodes=True, copy_data=False, balanced_tree=True, boxsize=None):
        data = ad.asarray(data)
        if data.ndim != 2:
            raise ValueError("data must be of shape (n, m), where there are n points of dimension m")
        if data.dtype.kind == "c":
            raise TypeError("KDTree does not work with complex data")
        self.data = data.astype(np.float64, copy=bool(copy_data))
        if not bool(ad.isfinite(self.data).all()):
            raise ValueError("data must be finite, check for nan or inf values")
        self.n, self.m = data.shape
        self.leafsize = leafsize
        if leafsize < 1:
            raise ValueError("leafsize must be at least 1")
        self.boxsize = None if boxsize is None else ad.broadcast_to(ad.asarray(boxsize, dtype=np.float64), (self.m,))
        if self.boxsize is not None and not bool(((self.data >= 0) & ((self.data < self.boxsize) |
                                                                       (self.boxsize <= 0))).all()):
            raise ValueError("Some input data are outside of the periodic box.")

    def _distances(self, x, p):
        """Of rows of x from all points."""
        size = self.boxsize
        if size is None:
            return cdist(x, self.data, "minkowski", p=p)
        x = ad.where(size > 0, x - ad.floor(x / ad.where(size > 0, size, 1.0)) * size, x)
        gap = abs(x[:, None, :] - self.data)
        gap = ad.where(size > 0, ad.minimum(gap, size - gap), gap)
        if p == math.inf:
            return gap.max(axis=-1)
        return gap.sum(axis=-1) if p == 1 else (gap ** p).sum(axis=-1) ** (1.0 / p)

    def _check_points(self, x):
        x = ad.asarray(x)
        if x.ndim == 0 or x.shape[-1] != self.m:
            raise ValueError(f"x must consist of vectors of length {self.m} but has shape {x.shape}")
        if x.dtype.kind == "c":
            raise TypeError("KDTree does not work with complex data")
        x = x.astype(np.float64, copy=False)
        if not bool(ad.isfinite(x).all()):
            raise ValueError("'x' must be finite, check for nan or inf values")
        return x

    def query(self, x, k=1, eps=0, p=2.0, distance_upper_bound=np.inf, workers=1):
        """The nearest points.

        x: array (..., d). k: int, or ints: which neighbours, from 1 on. eps: ignored. p: of the Minkowski distance, 1 or more.
        distance_upper_bound: number. Gives distances and indices (infinity and n where there is none). ValueError.
        """
        x = self._check_points(x)
        if p < 1:
            raise ValueError("Only p-norms with 1<=p<=infinity permitted")
        if k is None:
            raise ValueError("k must be an integer or a sequence of integers")
        wanted = list(range(1, int(k) + 1)) if np.ndim(k) == 0 else [int(n) for n in k]
        if not wanted or min(wanted) < 1:
            raise ValueError("k must be an integer or a sequence of integers, 1 or more")
        found = self._find_nearest(x.reshape(-1, self.m), max(wanted), float(p), float(distance_upper_bound))
        if np.ndim(k) == 0:
            shape = x.shape[:-1] if k == 1 else (*x.shape[:-1], len(wanted))
            return tuple(part.reshape(shape) for part in found)
        pick = np.array(wanted) - 1
        return tuple(part[:, pick].copy("C").reshape(*x.shape[:-1], len(wanted)) for part in found)

    def _find_nearest(self, rows, most, p, bound):
        """Distances (rows, most) and places of the nearest points."""
        if most <= _FEW and self.boxsize is None:
            return call("nearest_points", (self.data, rows), (most, p, bound), dtype=np.float64)
        step = max(1, _PAIRS // max(1, self.n * self.m))
        parts = [self._nearest(rows[i:i + step], most, p, bound) for i in range(0, len(rows), step)] or [
            (ad.empty((0, most)), ad.empty((0, most), np.int64))]
        return [ad.concatenate(list(part)) for part in zip(*parts)]

    def _nearest(self, rows, most, p, bound):
        near, order = _find_least(self._distances(rows, p), most)
        outside = near >= bound if bound < np.inf else ad.isinf(near)
        near, order = ad.where(outside, np.inf, near), ad.where(outside, self.n, order)
        if most > self.n:
            fill = (len(rows), most - self.n)
            near = ad.concatenate([near, ad.full(fill, np.inf)], axis=1)
            order = ad.concatenate([order, ad.full(fill, self.n, dtype=np.int64)], axis=1)
        return near, order

    def query_ball_point(self, x, r, p=2.0, eps=0, workers=1, return_sorted=None, return_length=False):
        """The points within r of each point of x, as a list of arrays of indices, or how many they are. Waits.

        x: array (..., d). r: number, or array that is broadcast to the points. p: of the Minkowski distance. eps, workers: ignored.
        return_sorted: indices always ascend.
        """
        x = self._check_points(x)
        rows = x.reshape(-1, self.m)
        reach = ad.broadcast_to(ad.asarray(r, dtype=np.float64), x.shape[:-1]).reshape(-1, 1)
        step = max(1, _PAIRS // max(1, self.n * self.m))
        inside = [self._distances(rows[i:i + step], p) <= reach[i:i + step] for i in range(0, len(rows), step)]
        if return_length:
            counts = ad.concatenate([one.sum(axis=-1) for one in inside]).reshape(x.shape[:-1])
            return counts if x.ndim > 1 else int(counts)
        found = [part for one in inside for part in _list_columns(one)]
        if x.ndim <= 2:
            return found[0] if x.ndim == 1 else found
        grid = np.empty(len(found), dtype=object)
        for place, one in enumerate(found):
            grid[place] = one
        return grid.reshape(x.shape[:-1])

    def query_ball_tree(self, other, r, p=2.0, eps=0):
        """For each point of this tree the points of the other one within r, as a list of arrays of indices. Waits.

        other: KDTree. r: number. p: of the Minkowski distance. eps: ignored.
        """
        return other.query_ball_point(self.data, r, p)

    def query_pairs(self, r, p=2.0, eps=0, output_type="set"):
        """The pairs of points within r of each other: (i, j) with i < j. Waits.

        r: number. p: of the Minkowski distance. output_type: "set", or "ndarray" for an array on the server.
        """
        row, col = ad.nonzero(ad.triu(self._distances(self.data, p) <= r, 1))
        if output_type == "ndarray":
            return ad.stack([row, col], axis=1)
        return set(zip(row.get().tolist(), col.get().tolist()))

    def count_neighbors(self, other, r, p=2.0):
        """How many pairs of a point of this and one of the other tree are within r. r: number, or array."""
        distances = self._distances(other.data, p)
        if np.ndim(r) == 0:
            return int((distances <= r).sum())
        ordered = ad.sort(distances.ravel())
        return ad.searchsorted(ordered, ad.asarray(r, dtype=np.float64), side="right")


