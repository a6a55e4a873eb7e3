"""Transforms of complex and real numbers along one axis and along several."""
from ... import fft as _fft
from ..._base import normalize_axis
from ._helper import as_input, axes_and_sizes
from ._plans import check_plan

_SWAPPED = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def _swap(norm):
    if norm not in _SWAPPED:
        raise ValueError(f'Invalid norm value {norm!r}, should be "backward", "ortho" or "forward"')
    return _SWAPPED[norm]


def _along_one(function, kind, x, n, axis, norm, plan, halved=False):
    x = as_input(x)
    axis = normalize_axis(axis, x.ndim)
    check_plan(plan, kind, [axis], [n if n is not None else 2 * (x.shape[axis] - 1) if halved else x.shape[axis]])
    return function(x, n, axis, norm)


def _along_several(function, kind, x, s, axes, norm, plan, halved=False):
    x = as_input(x)
    given = s is not None
    axes, sizes = axes_and_sizes(x, s, axes)
    if kind != "C2C" and not axes:
        raise ValueError("at least 1 axis must be transformed")
    if halved and not given:
        sizes[-1] = 2 * (x.shape[axes[-1]] - 1)
    check_plan(plan, kind, axes, sizes)
    return function(x, sizes, axes, norm)


def fft(x, n=None, axis=-1, norm=None, overwrite_x=False, workers=None, *, plan=None):
    """Discrete Fourier transform along one axis.

    Parameters: x: array. n: points, for which the axis is cut or filled with zeros. axis: the axis. norm: "backward",
        "ortho" or "forward". overwrite_x, workers: change nothing. plan: of get_fft_plan, which is checked.
    Returns: array, complex.
    Raises: ValueError: n is below 1, there is no such norm, or plan is for another transform.
    Source: scipy.fft.fft
    """
    return _along_one(_fft.fft, "C2C", x, n, axis, norm, plan)


def ifft(x, n=None, axis=-1, norm=None, overwrite_x=False, workers=None, *, plan=None):
    """Inverse of fft.

    Parameters: as fft.
    Returns: array, complex.
    Raises: as fft.
    Source: scipy.fft.ifft
    """
    return _along_one(_fft.ifft, "C2C", x, n, axis, norm, plan)


def rfft(x, n=None, axis=-1, norm=None, overwrite_x=False, workers=None, *, plan=None):
    """Discrete Fourier transform of real numbers along one axis: the frequencies that are not negative.

    Parameters: as fft; x is real.
    Returns: array, complex, with n//2 + 1 along the axis.
    Raises: TypeError: x is complex. As fft.
    Source: scipy.fft.rfft
    """
    return _along_one(_fft.rfft, "R2C", x, n, axis, norm, plan)


def irfft(x, n=None, axis=-1, norm=None, overwrite_x=False, workers=None, *, plan=None):
    """Inverse of rfft.

    Parameters: as fft; n: points of the result, 2 * (length - 1) unless given.
    Returns: array, real.
    Raises: as fft.
    Source: scipy.fft.irfft
    """
    return _along_one(_fft.irfft, "C2R", x, n, axis, norm, plan, True)


def hfft(x, n=None, axis=-1, norm=None, overwrite_x=False, workers=None, *, plan=None):
    """Discrete Fourier transform, which is real, of a signal with Hermitian symmetry, of which x is the first half.

    Parameters: as irfft.
    Returns: array, real.
    Raises: as fft. NotImplementedError: there is a plan.
    Source: scipy.fft.hfft
    """
    _refuse_plan(plan)
    return _along_one(_fft.hfft, "C2R", x, n, axis, norm, None, True)


def ihfft(x, n=None, axis=-1, norm=None, overwrite_x=False, workers=None, *, plan=None):
    """Inverse of hfft.

    Parameters: as rfft.
    Returns: array, complex, with n//2 + 1 along the axis.
    Raises: as rfft. NotImplementedError: there is a plan.
    Source: scipy.fft.ihfft
    """
    _refuse_plan(plan)
    return _along_one(_fft.ihfft, "R2C", x, n, axis, norm, None)


def _refuse_plan(plan):
    if plan is not None:
        raise NotImplementedError("plans of Hermitian transforms are not yet supported; leave the plan out")


def fftn(x, s=None, axes=None, norm=None, overwrite_x=False, workers=None, *, plan=None):
    """Discrete Fourier transform along several axes.

    Parameters: x: array. s: points along each of the axes. axes: the axes, all or the last len(s) unless given. norm:
        "backward", "ortho" or "forward". overwrite_x, workers: change nothing. plan: of get_fft_plan, which is checked.
    Returns: array, complex.
    Raises: ValueError: s and axes do not fit, there is no such norm, or plan is for another transform.
    Source: scipy.fft.fftn
    """
    return _along_several(_fft.fftn, "C2C", x, s, axes, norm, plan)


def ifftn(x, s=None, axes=None, norm=None, overwrite_x=False, workers=None, *, plan=None):
    """Inverse of fftn.

    Parameters: as fftn.
    Returns: array, complex.
    Raises: as fftn.
    Source: scipy.fft.ifftn
    """
    return _along_several(_fft.ifftn, "C2C", x, s, axes, norm, plan)


def rfftn(x, s=None, axes=None, norm=None, overwrite_x=False, workers=None, *, plan=None):
    """Discrete Fourier transform of real numbers along several axes, the last of which is halved.

    Parameters: as fftn; x is real.
    Returns: array, complex, with s[-1]//2 + 1 along the last axis.
    Raises: TypeError: x is complex. As fftn.
    Source: scipy.fft.rfftn
    """
    return _along_several(_fft.rfftn, "R2C", x, s, axes, norm, plan)


def irfftn(x, s=None, axes=None, norm=None, overwrite_x=False, workers=None, *, plan=None):
    """Inverse of rfftn.

    Parameters: as fftn; s: points of the result, the last 2 * (length - 1) unless given.
    Returns: array, real.
    Raises: as fftn.
    Source: scipy.fft.irfftn
    """
    return _along_several(_fft.irfftn, "C2R", x, s, axes, norm, plan, True)


def hfftn(x, s=None, axes=None, norm=None, overwrite_x=False, workers=None, *, plan=None):
    """Discrete Fourier transform, which is real, of a signal with Hermitian symmetry along several axes.

    Parameters: as irfftn.
    Returns: array, real.
    Raises: as fftn. NotImplementedError: there is a plan.
    Source: scipy.fft.hfftn
    """
    _refuse_plan(plan)
    x = as_input(x)
    return _along_several(_fft.irfftn, "C2R", x.conj() if x.dtype.kind == "c" else x, s, axes, _swap(norm), None, True)


def ihfftn(x, s=None, axes=None, norm=None, overwrite_x=False, workers=None, *, plan=None):
    """Inverse of hfftn.

    Parameters: as rfftn.
    Returns: array, complex, with s[-1]//2 + 1 along the last axis.
    Raises: as rfftn. NotImplementedError: there is a plan.
    Source: scipy.fft.ihfftn
    """
    _refuse_plan(plan)
    return _along_several(_fft.rfftn, "R2C", x, s, axes, _swap(norm), None).conj()


def fft2(x, s=None, axes=(-2, -1), norm=None, overwrite_x=False, workers=None, *, plan=None):
    """Discrete Fourier transform along two axes.

    Parameters: as fftn.
    Returns: array, complex.
    Raises: as fftn.
    Source: scipy.fft.fft2
    """
    return fftn(x, s, axes, norm, plan=plan)


def ifft2(x, s=None, axes=(-2, -1), norm=None, overwrite_x=False, workers=None, *, plan=None):
    """Inverse of fft2.

    Parameters: as fftn.
    Returns: array, complex.
    Raises: as fftn.
    Source: scipy.fft.ifft2
    """
    return ifftn(x, s, axes, norm, plan=plan)


def rfft2(x, s=None, axes=(-2, -1), norm=None, overwrite_x=False, workers=None, *, plan=None):
    """Discrete Fourier transform of real numbers along two axes, the last of which is halved.

    Parameters: as rfftn.
    Returns: array, complex.
    Raises: as rfftn.
    Source: scipy.fft.rfft2
    """
    return rfftn(x, s, axes, norm, plan=plan)


def irfft2(x, s=None, axes=(-2, -1), norm=None, overwrite_x=False, workers=None, *, plan=None):
    """Inverse of rfft2.

    Parameters: as irfftn.
    Returns: array, real.
    Raises: as fftn.
    Source: scipy.fft.irfft2
    """
    return irfftn(x, s, axes, norm, plan=plan)


def hfft2(x, s=None, axes=(-2, -1), norm=None, overwrite_x=False, workers=None, *, plan=None):
    """hfftn along two axes.

    Parameters: as irfftn.
    Returns: array, real.
    Raises: as hfftn.
    Source: scipy.fft.hfft2
    """
    return hfftn(x, s, axes, norm, plan=plan)


def ihfft2(x, s=None, axes=(-2, -1), norm=None, overwrite_x=False, workers=None, *, plan=None):
    """ihfftn along two axes.

    Parameters: as rfftn.
    Returns: array, complex.
    Raises: as ihfftn.
    Source: scipy.fft.ihfft2
    """
    return ihfftn(x, s, axes, norm, plan=plan)
