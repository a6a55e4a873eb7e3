"""Linear systems and transforms that are objects: SciPy makes them on this side, and their arrays go up."""
from .._host import HostMade, scipy_module, to_host, to_server


class _Made(HostMade):
    """An object of scipy.signal. SciPy says of which class it is: an lti of two arguments is a TransferFunctionContinuous."""

    _module = "scipy.signal"
    __array_ufunc__ = None  # of a NumPy array and a system the system's operators decide

    def __new__(cls, *args, **kwargs):
        if cls.__name__.endswith(("Continuous", "Discrete")):  # one of ours again, or what a copy begins with
            return object.__new__(cls)
        return to_server(getattr(scipy_module("scipy.signal"), cls.__name__)(*to_host(args), **to_host(kwargs)))

    def __init__(self, *args, **kwargs):
        """The object is whole already."""

    def __repr__(self):
        return repr(self._host)


class _Transform(_Made):
    _fetched = "points"

    def __new__(cls, *args, **kwargs):
        made = object.__new__(cls)
        made._make(*args, **kwargs)
        return made

    def __call__(self, x, *, axis=-1):
        """The transform along an axis, by SciPy on this side.

        Parameters: x: array. axis: the axis.
        Returns: ndarray. It waits for the server.
        Raises: ValueError for another length than the transform was made for.
        """
        return to_server(self._host(to_host(x), axis=axis))


class CZT(_Transform):
    """A chirp z-transform, as scipy.signal.CZT.

    Source: scipy.signal.CZT
    """


class ZoomFFT(CZT):
    """A Fourier transform of a range of frequencies, as scipy.signal.ZoomFFT.

    Source: scipy.signal.ZoomFFT
    """


class lti(_Made):
    """A linear system in continuous time, as scipy.signal.lti: of numerator and denominator, of zeros, poles and gain, or of
    four matrices.

    Source: scipy.signal.lti
    """

    _fetched = "bode freqresp impulse output step to_discrete"


class dlti(_Made):
    """A linear system in discrete time, as scipy.signal.dlti; it has a dt as well.

    Source: scipy.signal.dlti
    """

    _fetched = "bode freqresp impulse output step"


class TransferFunction(_Made):
    """A system of numerator and denominator, as scipy.signal.TransferFunction; with dt it is in discrete time.

    Source: scipy.signal.TransferFunction
    """

    _fetched = "to_ss to_tf to_zpk"


class ZerosPolesGain(_Made):
    """A system of zeros, poles and a gain, as scipy.signal.ZerosPolesGain; with dt it is in discrete time.

    Source: scipy.signal.ZerosPolesGain
    """

    _fetched = "to_ss to_tf to_zpk"


class StateSpace(_Made):
    """A system of four matrices, as scipy.signal.StateSpace; with dt it is in discrete time.

    Source: scipy.signal.StateSpace
    """

    _fetched = "to_ss to_tf to_zpk __mul__ __rmul__ __add__ __radd__ __sub__ __rsub__ __truediv__ __neg__"


class TransferFunctionContinuous(TransferFunction, lti):
    """A TransferFunction in continuous time."""


class TransferFunctionDiscrete(TransferFunction, dlti):
    """A TransferFunction in discrete time."""


class ZerosPolesGainContinuous(ZerosPolesGain, lti):
    """A ZerosPolesGain in continuous time."""


class ZerosPolesGainDiscrete(ZerosPolesGain, dlti):
    """A ZerosPolesGain in discrete time."""


class StateSpaceContinuous(StateSpace, lti):
    """A StateSpace in continuous time."""


class StateSpaceDiscrete(StateSpace, dlti):
    """A StateSpace in discrete time."""
