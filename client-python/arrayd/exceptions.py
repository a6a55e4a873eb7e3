"""The exceptions and warnings of numpy.exceptions that CuPy has too (cupy.exceptions)."""
from numpy.exceptions import (AxisError, ComplexWarning, ModuleDeprecationWarning, RankWarning, TooHardError,
                              VisibleDeprecationWarning)

__all__ = ["AxisError", "ComplexWarning", "ModuleDeprecationWarning", "RankWarning", "TooHardError",
           "VisibleDeprecationWarning"]
