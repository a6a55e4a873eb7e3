"""Distances and nearest neighbours of points, as scipy.spatial has them, on the server."""
from . import distance
from ._neighbours import KDTree
from ._triangulation import Delaunay
from .distance import distance_matrix

cKDTree = KDTree

__all__ = ["Delaunay", "KDTree", "cKDTree", "distance", "distance_matrix"]
