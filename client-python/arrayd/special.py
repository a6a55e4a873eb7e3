"""Special functions under the name by which SciPy looks for those of an array library: arrayd.scipy.special."""
from .scipy.special import *  # noqa: F403
from .scipy.special import __all__  # noqa: F401
