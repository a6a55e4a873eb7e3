"""Distances and nearest neighbours of points, as scipy.spatial has them, on the server."""
from . import distance
from ._neighbours import KDTree
from .distance import distance_matrix

cKDTree = KDTree

__all__ = ["KDTree", "cKDTree", "distance", "distance_matrix"]
