"""Plans of transforms: what CuPy's programs make beforehand. Here they are checked and not needed."""
import numpy as np

from ..._base import as_array
from ...fft._plans import Plan, current_plan, make_plan
from ._helper import axes_and_sizes


def check_plan(plan, kind, axes, sizes):
    """Refuse a plan that is not for this transform; None is that of the with block, or none."""
    inside = current_plan()
    if plan is not None and inside is not None:
        raise RuntimeError("Use the cuFFT plan either as a context manager or as an argument, not both")
    plan = plan if plan is not None else inside
    if plan is None:
        return
    if not isinstance(plan, Plan):
        raise TypeError(f"plan must be what get_fft_plan returns, not {type(plan).__name__}")
    plan.check(kind, axes, sizes)


def get_fft_plan(a, shape=None, axes=None, value_type="C2C"):
    """A plan for transforms of arrays like a.

    Parameters: a: array. shape: points along the axes, those of a unless given. axes: an axis or several, all unless
        given. value_type: "C2C", "R2C" or "C2R".
    Returns: object that the transforms take as plan, and that is a context manager.
    Raises: ValueError: no such value_type, or shape and axes do not fit; a has not the type for value_type (TypeError).
    Source: cupyx.scipy.fft.get_fft_plan
    """
    a = as_array(a)
    if value_type not in ("C2C", "R2C", "C2R"):
        raise ValueError(f'value_type must be "C2C", "R2C" or "C2R", not {value_type!r}')
    axes, sizes = axes_and_sizes(a, shape, axes, "shape")
    if value_type == "C2R" and shape is None:
        sizes[-1] = 2 * (a.shape[axes[-1]] - 1)
    single = a.dtype.name in ("float16", "bfloat16", "float32", "complex64")
    return make_plan(axes, sizes, value_type, np.dtype(np.complex64 if single else np.complex128))
