"""Names that CuPy takes from NumPy as they are, and that NumPy 2 has in other modules than its first."""
from numpy.lib.npyio import DataSource
from numpy.rec import format_parser

__all__ = ["DataSource", "format_parser"]
