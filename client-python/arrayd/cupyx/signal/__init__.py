"""Functions of cupyx.signal beyond scipy.signal: cepstra, radar, and filters that come from cuSignal."""
from ._acoustics import complex_cepstrum, inverse_complex_cepstrum, minimum_phase, real_cepstrum
from ._filters import (channelize_poly, convolve1d2o, convolve1d3o, firfilter, firfilter2, firfilter_zi, freq_shift)
from ._radar import ca_cfar, cfar_alpha, mvdr, pulse_compression, pulse_doppler

__all__ = sorted(name for name in globals() if not name.startswith("_"))
