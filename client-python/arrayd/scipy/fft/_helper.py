"""Arguments of transforms, and lengths that are fast."""
import operator

import numpy as np

from ..._base import as_array, normalize_axis

_FAST = (2, 3, 5, 7)


def as_input(x):
    """x as an array of a type that is transformed: float16 and bfloat16 as float32, integers as float64."""
    x = as_array(x)
    if x.dtype.kind == "c" or x.dtype.name in ("float32", "float64"):
        return x
    return x.astype(np.float32 if x.dtype.name in ("float16", "bfloat16") else np.float64)


def axes_and_sizes(x, s, axes, word="s"):
    """The axes of a transform along several ones, and the points along each; sizes of None or -1 are those of x."""
    if s is not None:
        s = [s] if np.isscalar(s) else list(s)
    if axes is not None:
        axes = [axes] if np.isscalar(axes) else [operator.index(axis) for axis in axes]
        axes = [normalize_axis(axis, x.ndim) for axis in axes]
        if len(set(axes)) != len(axes):
            raise ValueError("all axes must be unique")
    if s is not None and axes is not None and len(s) != len(axes):
        raise ValueError(f"when given, axes and {word} arguments have to be of the same length")
    if axes is None:
        if s is not None and len(s) > x.ndim:
            raise ValueError("shape requires more axes than are present")
        axes = list(range(x.ndim)) if s is None else list(range(x.ndim - len(s), x.ndim))
    sizes = [x.shape[axis] for axis in axes] if s is None else [
        x.shape[axis] if size in (None, -1) else _whole(size, word) for size, axis in zip(s, axes)]
    if any(size < 1 for size in sizes):
        raise ValueError(f"invalid number of data points ({sizes}) specified")
    return axes, sizes


def _whole(size, word):
    try:
        return operator.index(size)
    except TypeError:
        raise ValueError(f"{word} must be a scalar or iterable of integers") from None


def next_fast_len(target, real=False):
    """The least number of points of at least target that is transformed fast: a product of 2, 3, 5 and 7.

    Parameters: target: number of points. real: changes nothing.
    Returns: int.
    Raises: ValueError: target is below 0. TypeError: target is no integer.
    Source: scipy.fft.next_fast_len
    Differs: SciPy's takes 11 as well for complex transforms, and not 7 for real ones.
    """
    target = operator.index(target)
    if target < 0:
        raise ValueError(f"Target cannot be negative, got {target}")
    if target == 0:
        return 0
    best = 1 << (target - 1).bit_length()
    products = [1]
    for prime in _FAST[1:]:
        for product in list(products):
            while (product := product * prime) < best:
                products.append(product)
    for product in products:
        best = min(best, product << max(0, (-(-target // product) - 1).bit_length()))
    return best
