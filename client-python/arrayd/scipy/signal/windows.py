"""Windows: scipy.signal.windows' functions, computed on this side."""
from .._host import make_function as _make_function

__all__ = ("barthann bartlett blackman blackmanharris bohman boxcar chebwin cosine dpss exponential flattop gaussian "
           "general_cosine general_gaussian general_hamming get_window hamming hann kaiser kaiser_bessel_derived lanczos "
           "nuttall parzen taylor triang tukey").split()

for _name in __all__:
    globals()[_name] = _make_function(_name, "scipy.signal.windows", "a window")
del _name
