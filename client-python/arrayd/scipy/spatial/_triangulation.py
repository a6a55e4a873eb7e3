"""Triangulations of points, by SciPy on this side."""
from .._host import HostMade


class Delaunay(HostMade):
    """The triangles (simplices) between points whose circles have no other point in them, found by SciPy on this side.

    Parameters: points: array (m, n). furthest_site: whether circles have all other points in them. incremental: whether points can be
        added. qhull_options: text, of Qhull.
    Raises: ValueError for what is no array of points; SciPy's QhullError for points without a triangulation.
    Source: scipy.spatial.Delaunay
    """

    _module = "scipy.spatial"
    _fetched = "add_points close find_simplex lift_points plane_distance"

    def __init__(self, points, furthest_site=False, incremental=False, qhull_options=None):
        self._make(points, furthest_site, incremental, qhull_options)
