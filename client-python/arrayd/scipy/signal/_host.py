"""Functions that design rather than compute: SciPy runs them on this side, and arrays go up.

A function of the table takes arrays of the server and of NumPy, and returns arrays of the server.
"""
import functools

from .._host import make_function

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


@functools.cache
def all_functions():
    """The functions of the table, by name."""
    return {name: make_function(name, subject=subject) for subject, names in FUNCTIONS.items() for name in names.split()}
