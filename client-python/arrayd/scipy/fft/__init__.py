"""SciPy's Fourier transforms on arrays of the server: numpy.fft's and those of several Hermitian axes, cosine and sine
transforms of types 1 to 4, and the fast Hankel transform.

float16, bfloat16 and float32 are transformed in single precision, everything else in double precision. norm:
"backward" (or None), "ortho" or "forward". overwrite_x and workers change nothing: arrays stay as they are, and the
server's threads are its own. A plan is checked and not needed: the server keeps plans by itself.

scipy.fft.set_backend(arrayd.scipy.fft) has SciPy's own functions call these.
"""
from ...fft import fftfreq, fftshift, ifftshift, rfftfreq
from ._complex import (fft, fft2, fftn, hfft, hfft2, hfftn, ifft, ifft2, ifftn, ihfft, ihfft2, ihfftn, irfft, irfft2,
                       irfftn, rfft, rfft2, rfftn)
from ._fftlog import fht, fhtoffset, ifht
from ._helper import next_fast_len
from ._plans import get_fft_plan
from ._trigonometric import dct, dctn, dst, dstn, idct, idctn, idst, idstn

__all__ = ["dct", "dctn", "dst", "dstn", "fft", "fft2", "fftfreq", "fftn", "fftshift", "fht", "fhtoffset",
           "get_fft_plan",
           "hfft", "hfft2", "hfftn", "idct", "idctn", "idst", "idstn", "ifft", "ifft2", "ifftn", "ifftshift", "ifht",
           "ihfft",
           "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "next_fast_len", "rfft", "rfft2", "rfftfreq", "rfftn"]

__ua_domain__ = "numpy.scipy.fft"


def __ua_function__(method, args, kwargs):
    """Return what scipy.fft calls for one of its functions while this module is its backend."""
    function = globals().get(method.__name__) if method.__name__ in __all__ else None
    return NotImplemented if function is None else function(*args, **kwargs)
