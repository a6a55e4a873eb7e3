"""SciPy's functions on arrays of the server, where SciPy computes by the standard (SCIPY_ARRAY_API=1)."""
import numpy as np
import pytest
import scipy.cluster.vq as vq
import scipy.constants as constants
import scipy.differentiate as differentiate
import scipy.fft as fft
import scipy.integrate as integrate
import scipy.interpolate as interpolate
import scipy.ndimage as ndimage
import scipy.signal as signal
import scipy.special as special
import scipy.stats as stats
from scipy.optimize import elementwise, rosen, rosen_der
from scipy.spatial.transform import RigidTransform, Rotation
from users import POSITIVE, TARGET, X, agree

import arrayd as ad

LINE, OTHER, FEW = np.abs(X[:, 0]), X[:, 1].copy(), POSITIVE[:, 0].copy()
STATS = {name: () for name in """circmean circstd circvar describe differential_entropy gmean gstd gzscore hmean iqr
kstat kstatvar kurtosis median_abs_deviation mode moment rankdata sem sigmaclip skew tmean tstd tvar variation
zscore""".split()}
STATS |= {"pmean": (2,), "quantile": (0.3,), "trim_mean": (0.1,)}


@pytest.mark.parametrize("name", STATS)
def test_stats(name):
    agree(lambda of: getattr(stats, name)(of(LINE), *STATS[name]))


def test_stats_of_axes():
    for name in ("skew", "kurtosis", "gmean", "zscore", "sem", "rankdata"):
        for axis in (0, 1):
            agree(lambda of: getattr(stats, name)(of(POSITIVE), axis=axis))


def test_more_stats():
    agree(lambda of: stats.zmap(of(LINE), of(OTHER)))
    agree(lambda of: stats.boxcox_llf(0.5, of(FEW)))
    agree(lambda of: stats.false_discovery_control(of(np.array([0.1, 0.2, 0.03]))))
    agree(lambda of: (lambda r: (r.mean_direction, r.mean_resultant_length))(stats.directional_stats(of(X))))
    agree(lambda of: vq.whiten(of(X)))


def test_special():
    for name in ("logsumexp", "softmax", "log_softmax"):
        agree(lambda of: getattr(special, name)(of(X), axis=1))
    for name in ("rel_entr", "xlogy"):
        agree(lambda of: getattr(special, name)(of(POSITIVE), of(POSITIVE[::-1].copy())))


def test_fft():
    for name in ("fft", "ifft", "rfft", "hfft", "ihfft", "fft2", "fftn", "rfftn", "irfftn", "fftshift"):
        agree(lambda of: getattr(fft, name)(of(X)))
    agree(lambda of: fft.fht(of(LINE), 0.1, 0.5))


def test_signal():
    for name in ("fftconvolve", "oaconvolve"):
        agree(lambda of: getattr(signal, name)(of(LINE), of(np.ones(5))))
    agree(lambda of: signal.hilbert(of(LINE)))
    agree(lambda of: signal.resample(of(LINE), 30))
    agree(lambda of: signal.envelope(of(LINE)))
    agree(lambda of: signal.zpk2tf(of(np.array([0.1, 0.2])), of(np.array([0.5, 0.3])), 2.0))
    agree(lambda of: signal.freqz(of(np.array([0.1, 0.2])), of(np.array([1.0, 0.3]))))


def test_integrals_and_derivatives():
    for name in ("trapezoid", "cumulative_trapezoid", "cumulative_simpson", "romb"):
        agree(lambda of: getattr(integrate, name)(of(LINE[:33].copy())))
    agree(lambda of: integrate.tanhsinh(lambda v: v * v, of(np.array([0.0, 1])), of(np.array([2.0, 3]))).integral)
    agree(lambda of: integrate.cubature(lambda v: v[..., 0]**2, of(np.array([0.0])), of(np.array([2.0]))).estimate)
    agree(lambda of: integrate.nsum(lambda v: 1 / v**2, of(np.array(1.0)), of(np.array(np.inf))).sum)
    agree(lambda of: differentiate.derivative(lambda v: v**3, of(np.array([1.0, 2]))).df)
    agree(lambda of: differentiate.jacobian(lambda v: v**2, of(np.array([1.0, 2]))).df)


def test_optimize():
    agree(lambda of: (rosen(of(LINE)), rosen_der(of(LINE))))
    agree(lambda of: elementwise.find_root(lambda v: v**2 - 2, (of(np.array([0.0, 0.5])), of(np.array([2.0, 3])))).x)
    agree(lambda of: elementwise.find_minimum(lambda v: (v - 1)**2, tuple(of(np.array([v])) for v in (-1.0, 0.5, 4))).x,
          rtol=1e-5)


def test_geometry():
    angles, points = np.array([[0.1, 0.2, 0.3]]), X[:, :3].copy()
    agree(lambda of: Rotation.from_quat(of(np.array([[0, 0, 1.0, 1], [1, 2, 3, 4]]))).as_matrix())
    agree(lambda of: Rotation.from_euler("xyz", of(angles)).apply(of(points)))
    agree(lambda of: RigidTransform.from_translation(of(np.array([1.0, 2, 3]))).apply(of(points)))
    agree(lambda of: constants.convert_temperature(of(LINE), "C", "K"))
    agree(lambda of: interpolate.RBFInterpolator(of(X[:, :2].copy()), of(TARGET))(of(X[:5, :2] + 0.1)), rtol=1e-5)


def test_what_scipy_computes_on_the_host_says_what_to_call():
    with pytest.raises(TypeError, match="get"):
        ndimage.gaussian_filter(ad.asarray(X), 1.5)
