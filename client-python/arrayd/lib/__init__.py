"""Parts of NumPy's library that have a module of their own: stride_tricks."""
from . import stride_tricks

__all__ = ["stride_tricks"]
