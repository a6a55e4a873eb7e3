"""What designs rather than computes: SciPy makes it on this side, and arrays go up.

A function of the table takes arrays of the server and of NumPy, and returns arrays of the server.
"""
import functools
import importlib

import numpy as np

from ..._base import as_array, ndarray

# Of scipy.signal, by subject.
FUNCTIONS = {
    "design of filters": "bilinear bilinear_zpk buttap butter buttord cheb1ap cheb1ord cheb2ap cheb2ord cheby1 cheby2 ellip "
    "ellipap ellipord firls firwin firwin2 gammatone iircomb iirdesign iirfilter iirnotch iirpeak kaiser_atten kaiser_beta "
    "kaiserord lp2bp lp2bp_zpk lp2bs lp2bs_zpk lp2hp lp2hp_zpk lp2lp lp2lp_zpk minimum_phase savgol_coeffs band_stop_obj",
    "forms of filters": "abcd_normalize cont2discrete invres invresz normalize residue residuez sos2tf sos2zpk ss2tf ss2zpk "
    "tf2sos tf2ss tf2zpk unique_roots zpk2sos zpk2ss zpk2tf lfilter_zi sosfilt_zi lfiltic place_poles",
    "responses": "bode dbode dfreqresp dimpulse dlsim dstep findfreqs freqresp freqs freqs_zpk freqz freqz_sos freqz_zpk "
    "group_delay impulse lsim sosfreqz step",
    "waves and windows": "chirp gausspulse max_len_seq sawtooth square sweep_poly unit_impulse get_window",
    "peaks": "argrelextrema argrelmax argrelmin find_peaks peak_prominences peak_widths",
    "splines": "cspline1d cspline1d_eval cspline2d gauss_spline qspline1d qspline1d_eval qspline2d spline_filter "
    "symiirorder1 symiirorder2",
    "transforms": "czt czt_points lombscargle zoom_fft vectorstrength",
    "others": "check_COLA check_NOLA choose_conv_method",
}
CLASSES = "BadCoefficients CZT StateSpace TransferFunction ZerosPolesGain ZoomFFT dlti lti".split()


def scipy_module(name):
    """A module of SciPy, or an error that says what to install."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f"{name} is needed for this function, which SciPy computes on this side: pip install scipy "
                          f"({error})") from None


def to_host(value):
    """value with arrays of this side in the place of those of the server."""
    if isinstance(value, ndarray):
        return value.get()
    if isinstance(value, (tuple, list)) and type(value) in (tuple, list):
        return type(value)(to_host(one) for one in value)
    if type(value) is dict:
        return {key: to_host(one) for key, one in value.items()}
    return value


def to_server(value):
    """value with arrays of the server in the place of those of this side."""
    if isinstance(value, np.ndarray):
        return as_array(value) if value.dtype.kind in "biufc" else value
    if isinstance(value, (tuple, list)):
        parts = [to_server(one) for one in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if type(value) is dict:
        return {key: to_server(one) for key, one in value.items()}
    return value


def make_function(name, module="scipy.signal", subject=""):
    """The function of SciPy of that name, on arrays of the server."""
    def run(*args, **kwargs):
        function = getattr(scipy_module(module), name, None)
        if function is None:
            raise NotImplementedError(f"this SciPy has no {module}.{name}")
        kwargs = {key: to_host(value) for key, value in kwargs.items()}
        return to_server(function(*to_host(args), **kwargs))
    run.__name__ = run.__qualname__ = name
    run.__module__ = __name__
    run.__doc__ = f"""SciPy's {name}{f' ({subject})' if subject else ''}, computed on this side.

    Parameters: as {module}.{name}; arrays of the server are fetched.
    Returns: what SciPy returns, with arrays of the server. It waits for the server.
    Raises: ImportError without SciPy; what SciPy raises.
    Source: {module}.{name}
    """
    return run


@functools.cache
def all_functions():
    """The functions of the table, by name."""
    return {name: make_function(name, subject=subject) for subject, names in FUNCTIONS.items() for name in names.split()}
