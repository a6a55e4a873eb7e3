"""Signals against scipy.signal."""
import itertools
import pickle
import warnings

import numpy as np
import pytest

import arrayd as ad
from oracle import fetch, outcome, random, same_kind, seed

scipy_signal = pytest.importorskip("scipy.signal")
from arrayd.scipy import signal  # noqa: E402


def noise(dtype, shape, *names):
    return random(seed("signal", dtype, shape, *names), np.dtype(dtype), shape, "UNIT" if np.dtype(dtype).kind in "fc"
                  else "SMALL")


def up(value):
    if isinstance(value, np.ndarray):
        return ad.asarray(value)
    return type(value)(up(one) for one in value) if type(value) in (tuple, list) else value


def compare(name, *args, eps=None, dtype=True, **kwargs):
    """A function of both packages: values, types, or the class of the exception. Arrays go up."""
    expected, wrong = outcome(lambda: getattr(scipy_signal, name)(*args, **kwargs))
    actual, error = outcome(lambda: fetch(getattr(signal, name)(*map(up, args), **{k: up(v) for k, v in kwargs.items()})))
    what = f"{name} {[getattr(a, 'shape', a) for a in args]} {kwargs}"
    if wrong is not None:
        assert error is not None and same_kind(wrong, error), f"{what}: scipy {wrong!r}, arrayd {error!r} {actual!r}"
        return
    if error is not None:
        raise AssertionError(f"{what}: arrayd raises {error!r}") from error
    close(expected, actual, what, eps, dtype)


def close(expected, actual, what, eps, dtype):
    if isinstance(expected, (tuple, list)):
        assert len(expected) == len(actual), what
        for one, other in zip(expected, actual):
            close(one, other, what, eps, dtype)
        return
    if expected is None or isinstance(expected, (str, dict)):
        return
    expected, actual = np.asarray(expected), np.asarray(actual)
    assert expected.shape == actual.shape, f"{what}: {actual.shape}, not {expected.shape}"
    assert not dtype or expected.dtype == actual.dtype, f"{what}: {actual.dtype}, not {expected.dtype}"
    if expected.dtype.kind in "biu" and actual.dtype.kind in "biu":
        np.testing.assert_array_equal(actual, expected, err_msg=what)
        return
    eps = eps or (2e-5 if expected.dtype in (np.float32, np.complex64) else 1e-10)
    size = np.abs(expected[np.isfinite(expected)]).max(initial=1e-6)
    np.testing.assert_allclose(actual, expected, rtol=eps, atol=eps * size, err_msg=what)


@pytest.mark.parametrize("name", ("convolve", "correlate", "fftconvolve", "oaconvolve"))
def test_convolutions(name):
    for types, mode in itertools.product((("float64", "float64"), ("int32", "int64"), ("float32", "float32"),
                                          ("complex128", "float64"), ("complex64", "complex64")), ("full", "same", "valid")):
        if name == "fftconvolve" and types[0] == "int32":
            continue
        for shapes in (((30,), (7,)), ((7,), (30,)), ((300,), (11,)), ((9, 8), (3, 4)), ((3, 4), (9, 8)), ((5, 6, 4), (2, 3, 3))):
            a, b = (noise(dtype, shape, i) for i, (dtype, shape) in enumerate(zip(types, shapes)))
            compare(name, a, b, mode, dtype=types[0] != "int32")
    compare(name, noise("float64", (4,)), noise("float64", (4, 4)))
    compare(name, noise("float64", (4,)), noise("float64", (3,)), "no")
    compare(name, noise("float64", (4, 9)), noise("float64", (9, 4)), "valid")


@pytest.mark.parametrize("name", ("convolve2d", "correlate2d"))
def test_planes(name):
    for mode, boundary, dtype in itertools.product(("full", "same", "valid"), ("fill", "wrap", "symm"), (
            "float64", "int32", "complex128", "float32")):
        for shapes in (((9, 8), (3, 4)), ((12, 7), (1, 5))):
            a, b = (noise(dtype, shape, i) for i, shape in enumerate(shapes))
            compare(name, a, b, mode, boundary, fillvalue=2)


def test_filters():
    for dtype, shape in itertools.product(("float64", "float32", "complex128", "int16"), ((80,), (40, 3), (3, 40), (2, 30, 4))):
        x = noise(dtype, shape)
        axis = int(np.argmax(shape))
        b, a = scipy_signal.butter(4, 0.3)
        sos = scipy_signal.butter(5, 0.3, output="sos")
        if dtype == "float32":
            b, a, sos = b.astype(dtype), a.astype(dtype), sos.astype(dtype)
        loose = 2e-3 if dtype == "float32" else None
        compare("lfilter", b, a, x, axis, eps=loose)
        compare("lfilter", b * 2, [2.0, 0.5], x, axis, eps=loose, dtype=dtype != "float32")
        compare("lfilter", b, [1.0], x, axis, eps=loose, dtype=dtype != "float32")
        compare("sosfilt", sos, x, axis, eps=loose)
        rest = [n if i != axis else 4 for i, n in enumerate(shape)]
        compare("lfilter", b, a, x, axis, zi=noise("float64", tuple(rest)).astype(x.dtype if dtype != "int16" else float), eps=loose)
        rest[axis] = 2
        compare("sosfilt", sos, x, axis, zi=noise("float64", (len(sos), *rest)).astype(x.dtype if dtype != "int16" else float),
                eps=loose)
        if dtype != "float32":
            compare("filtfilt", b, a, x, axis)
            for padtype in ("odd", "even", "constant", None):
                compare("sosfiltfilt", sos, x, axis, padtype=padtype)
                compare("filtfilt", b, a, x, axis, padtype=padtype, padlen=5)
        compare("detrend", x, axis)
        compare("detrend", x, axis, type="constant")
        compare("savgol_filter", x.real, 7, 3, axis=axis)
        compare("savgol_filter", x.real, 5, 2, deriv=1, axis=axis, mode="nearest")
    compare("deconvolve", np.array([1.0, 5, 8, 4, 2]), np.array([1.0, 2]))
    for args in (([1.0], [0.0], x), ([], [1.0], x), ([1.0, 2], [1.0], x, -1, np.ones((2, 30, 3)))):
        compare("lfilter", *args)
    for args in ((np.ones((2, 5)), x), (np.ones((1, 6)) * 2, x), (sos, x, -1, np.ones((3, 3)))):
        compare("sosfilt", *args)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_long_filters(dtype):
    """Lanes that may be cut: shorter and longer than a piece, of every order, side by side and one behind another, with a
    state from before and its end."""
    loose = 5e4 * np.finfo(dtype).eps
    for order, shape in itertools.product(range(1, 10), ((255,), (256, 2), (3, 1025), (5000,), (2, 2100, 3))):
        x, axis = noise(dtype, shape, order), int(np.argmax(shape))
        b, a = (v.astype(x.real.dtype) for v in scipy_signal.butter(order, 0.4))
        zi = noise(dtype, shape[:axis] + (order,) + shape[axis + 1:], 1)
        compare("lfilter", b, a, x, axis, eps=loose)
        compare("lfilter", b, a, x, axis, zi=zi, eps=loose)
        sos = scipy_signal.butter(order, 0.3, output="sos").astype(x.real.dtype)
        compare("sosfilt", sos, x, axis, zi=noise(dtype, (len(sos), *shape[:axis], 2, *shape[axis + 1:]), 2), eps=loose)
    x = noise(dtype, (70_000,))
    compare("lfilter", np.ones(1, x.real.dtype), np.array([1, -0.999], x.real.dtype), x, eps=loose)
    # A result that grows without bound is exact as long as it is whole and small: 1, 3, 7 ... at the end.
    x[:] = 0
    x[-20:] = 1
    compare("lfilter", np.ones(1, x.real.dtype), np.array([1, -2], x.real.dtype), x, eps=loose)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_finite_filters(dtype):
    """Factors of the input alone, with fewer and more elements than factors and than the pieces that are filtered at once,
    also where an element is infinite, which only reaches as far as the factors do."""
    loose = 1e3 * np.finfo(dtype).eps
    for taps, n, lanes in itertools.product((1, 2, 31, 64), (5, 100, 4096, 4097, 10007), ((), (3,), (20,))):
        b, x = noise("float64", (taps,), n), noise(dtype, (*lanes, n), taps)
        compare("lfilter", b, [1.0], x, eps=loose, dtype=dtype != "float32")
        if taps > 1:
            compare("lfilter", b, [1.0], x, zi=noise(dtype, (*lanes, taps - 1), n), eps=loose, dtype=dtype != "float32")
    for n, taps in ((1000, 7), (20, 31)):
        x = noise("float64", (n, 3))
        x[n // 2] = np.inf
        for axis in (0, 1):
            compare("lfilter", np.ones(taps), [1.0], x, axis, eps=loose)
        compare("lfilter", np.ones(taps), [1.0], x[:, 0].copy(), eps=loose)


def test_resampling():
    for dtype, n in itertools.product(("float64", "complex128"), (40, 41)):
        x = noise(dtype, (n, 3))
        for num in (20, 21, 40, 64, 81, 200):
            compare("resample", x, num)
            compare("resample", x, num, window="hann")
        for up_, down in ((1, 2), (3, 2), (2, 3), (5, 1), (7, 6)):
            compare("resample_poly", x, up_, down)
            for length in (1, 2, 5, 20):
                compare("upfirdn", noise("float64", (length,), "h"), x, up_, down, 0)
        compare("decimate", noise(dtype, (200,)).real, 4)
        compare("decimate", noise(dtype, (200,)).real, 4, ftype="fir")
        compare("decimate", noise(dtype, (200,)).real, 4, ftype="fir", zero_phase=False)
        compare("hilbert", x.real)
        compare("hilbert", x.real, 50, 0)
        compare("hilbert2", x.real)
        compare("hilbert2", np.float32(x.real))
    compare("hilbert", x)


def test_resampling_of_infinite_elements():
    """An element that is not finite is in no more results than its factors reach, however many phases there are."""
    x = noise("float64", (3, 400))
    x[0, 7], x[1, 300], x[2, 0] = np.inf, np.nan, -np.inf
    for up_, down in ((160, 147), (9, 10), (3, 2)):
        for rows in (x, x[:, 8:299]):
            ours = ad.scipy.signal.resample_poly(ad.asarray(rows), up_, down, axis=1).get()
            theirs = scipy_signal.resample_poly(rows, up_, down, axis=1)
            both = np.isfinite(ours) & np.isfinite(theirs)
            np.testing.assert_allclose(ours[both], theirs[both], rtol=1e-9, atol=1e-11)
            assert ((~np.isfinite(theirs)).sum() - both.size + both.sum()) >= -4 * len(rows), (up_, down)


def test_order_statistics():
    for dtype, shape in itertools.product(("float64", "int32", "uint8"), ((30,), (9, 8))):
        x = noise(dtype, shape)
        compare("medfilt", x)
        compare("medfilt", x, 5)
        compare("order_filter", x, np.ones((3,) * x.ndim), 1)
    compare("medfilt2d", noise("float64", (9, 8)), [3, 5])
    compare("wiener", noise("float64", (9, 8)), (5, 3))
    compare("wiener", noise("float64", (30,)), 5, 0.3)
    compare("sepfir2d", noise("float64", (9, 8)), np.array([1.0, 2, 1]), np.array([1.0, 3, 5, 3, 1]))
    compare("medfilt", noise("float64", (9, 8)), 4)


@pytest.mark.parametrize("dtype", ("float64", "float32", "complex128"))
def test_spectra(dtype):
    x, y = noise(dtype, (2, 300)), noise(dtype, (2, 300), "y")
    for kwargs in ({}, {"nperseg": 64}, {"nperseg": 50, "noverlap": 13, "nfft": 128}, {"window": "boxcar", "nperseg": 32},
                   {"detrend": "linear", "nperseg": 64}, {"fs": 10.0, "scaling": "spectrum", "nperseg": 65},
                   {"return_onesided": False, "nperseg": 64}, {"axis": 0, "nperseg": 2}):
        compare("welch", x, **kwargs)
        compare("csd", x, y, **kwargs)
    compare("welch", x, nperseg=64, average="median")
    compare("csd", x, y, nperseg=64, average="median")
    compare("periodogram", x)
    compare("periodogram", x, nfft=512, window="hann")
    compare("coherence", x, y, nperseg=64)
    for mode in ("psd", "complex", "magnitude", "angle", "phase"):
        compare("spectrogram", x, nperseg=64, mode=mode, eps=1e-3 if dtype == "float32" else 1e-7)
    for kwargs in ({}, {"nperseg": 50}, {"nperseg": 64, "noverlap": 48, "boundary": "even"}, {"nperseg": 64, "boundary": None},
                   {"padded": False, "nperseg": 100}, {"scaling": "psd", "nperseg": 64}):
        compare("stft", x, **kwargs)
    _, _, z = scipy_signal.stft(x, nperseg=64, noverlap=40)
    compare("istft", z, nperseg=64, noverlap=40, input_onesided=dtype != "complex128")
    compare("istft", z, nperseg=64, noverlap=40, boundary=False, input_onesided=dtype != "complex128", scaling="psd")


def test_spectra_of_unlike_shapes():
    """Arrays of other dimensions go together; of none is left as many elements as the shorter has."""
    for first, second, axis in (((300,), (5, 300), -1), ((2, 1, 60), (3, 60), -1), ((40, 3), (40, 1), 0), ((10,), (5, 0), -1),
                                ((5, 0), (10,), -1), ((10, 10, 3), (10, 0, 1), 1), ((10, 0, 1), (10, 10, 3), 1),
                                ((0, 5, 2), (0, 5, 2), 1), ((3, 4), (2, 4), -1)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # nperseg is larger than the arrays
            compare("csd", noise("float64", first), noise("float64", second), axis=axis)
    x = noise("float64", (1024, 1, 1))
    _, _, z = scipy_signal.stft(x, nperseg=16, axis=0)
    compare("istft", z.T, nperseg=16, time_axis=0, freq_axis=-1)
    compare("istft", z, nperseg=16, time_axis=-1, freq_axis=0)
    with pytest.raises(ValueError, match="window length is not equal"):
        signal.resample(ad.arange(9.0), 18, window=ad.ones(8))


def test_design():
    """Functions that SciPy computes on this side take arrays of the server, and return them."""
    compare("butter", 4, 0.3)
    compare("firwin", 11, 0.3)
    compare("tf2zpk", np.array([1.0, 2]), np.array([1.0, 0.5, 0.1]))
    compare("find_peaks", noise("float64", (100,)))
    compare("chirp", np.linspace(0, 1, 50), 1, 1, 6)
    compare("freqz", np.array([1.0, 2, 1]))
    b, a = signal.butter(3, 0.2)
    assert isinstance(b, ad.ndarray) and isinstance(signal.windows.hann(9), ad.ndarray)
    for name in signal.windows.__all__:
        if name not in ("get_window",) and name in ("hann", "hamming", "blackman", "bartlett", "cosine", "parzen"):
            np.testing.assert_allclose(getattr(signal.windows, name)(12).get(), getattr(scipy_signal.windows, name)(12))
    for name in signal.__all__:
        assert getattr(signal, name, None) is not None or name == "band_stop_obj"


def test_arguments_by_place():
    """cupyx takes them so, as SciPy did before 1.15 or so; those that are too many or given twice stay errors."""
    for name, args, names in (("firls", (7, [0, 0.4, 0.6, 1], [1, 1, 0, 0]), {"weight": [1, 2]}),
                              ("firwin", (11, 0.3), {"width": None, "window": "hann", "pass_zero": False}),
                              ("firwin2", (9, [0, 0.5, 1], [1, 1, 0]), {"nfreqs": 33, "window": "hann"})):
        made = getattr(signal, name)(*args, *names.values())
        np.testing.assert_array_equal(made.get(), getattr(scipy_signal, name)(*args, **names))
        with pytest.raises(TypeError):
            getattr(signal, name)(*args, *names.values(), **names)
        with pytest.raises(TypeError):
            getattr(signal, name)(*args, *range(9))


MATRICES = [[-0.3, 0.1], [0.2, -0.7]], [[0.0], [1.0]], [[1.0, 0.0]], [[0.0]]
SYSTEMS = {"lti": (([0.5, 0.3], [1.0, 0.4]), {}), "dlti": (([1.0, 2], [1.0, 0.5]), {"dt": 0.1}),
           "TransferFunction": (([1.0, 3, 3], [1.0, 2, 1]), {}), "StateSpace": (MATRICES, {"dt": 0.5}),
           "ZerosPolesGain": (([1.0], [-2.0, -3.0], 5.0), {})}


@pytest.mark.parametrize("name", SYSTEMS)
def test_systems(name):
    args, kwargs = SYSTEMS[name]
    there, ours = getattr(scipy_signal, name)(*args, **kwargs), getattr(signal, name)(*map(ad.asarray, args), **kwargs)
    discrete = isinstance(there, scipy_signal.dlti)
    assert isinstance(ours, getattr(signal, name)) and isinstance(ours, signal.dlti if discrete else signal.lti)
    assert type(ours).__name__ == type(there).__name__ and ours.dt == there.dt
    for attribute in ("poles", "zeros"):
        value = getattr(ours, attribute)
        assert isinstance(value, ad.ndarray)
        np.testing.assert_allclose(value.get(), getattr(there, attribute))
    w = np.linspace(0.1, 1, 5)
    for got, want in zip(ours.bode(w=ad.asarray(w)), there.bode(w=w)):
        np.testing.assert_allclose(got.get(), want)
    for form in ("to_tf", "to_zpk", "to_ss"):
        other = getattr(ours, form)()
        assert type(other).__name__ == type(getattr(there, form)()).__name__ and isinstance(other, type(ours).__bases__[1])
    np.testing.assert_allclose(other.A.get(), there.to_ss().A)
    respond, number = ("dimpulse", 1) if discrete else ("impulse", 1)
    np.testing.assert_allclose(np.squeeze(fetch(getattr(signal, respond)(ours)[number])),
                               np.squeeze(getattr(scipy_signal, respond)(there)[number]))
    again = pickle.loads(pickle.dumps(ours))
    assert type(again) is type(ours) and repr(again) == repr(ours)


def test_systems_that_change():
    system = signal.lti([0.5, 0.3], [1.0, 0.4])
    discrete = system.to_discrete(0.005)
    assert isinstance(discrete, signal.dlti) and isinstance(discrete.num, ad.ndarray)
    system.num = ad.asarray([2.0, 1.0])
    np.testing.assert_array_equal(system.num.get(), [2, 1])
    assert isinstance(signal.TransferFunction(system), signal.lti)
    space = signal.StateSpace(*MATRICES)
    doubled = 2 * (space + space) - space
    np.testing.assert_allclose((-doubled).D.get(), (-(2 * (one := scipy_signal.StateSpace(*MATRICES)) + one)).D)
    assert isinstance(np.float64(2) * space, signal.StateSpace)
    x = noise("float64", (60,))
    chain = ([1.0, 2], [1.0, 0.5])
    np.testing.assert_allclose(signal.decimate(ad.asarray(x), 2, ftype=signal.dlti(*chain)).get(),
                               scipy_signal.decimate(x, 2, ftype=scipy_signal.dlti(*chain)), rtol=1e-9, atol=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", signal.BadCoefficients)
        signal.tf2ss([1.0], [0.0, 1.0, 2.0])


def test_transforms_that_are_objects():
    x = noise("float64", (12, 3))
    for name, args in (("CZT", (12, 7, 0.9 - 0.1j)), ("ZoomFFT", (12, [0.2, 0.6], 9))):
        ours, there = getattr(signal, name)(*args), getattr(scipy_signal, name)(*args)
        np.testing.assert_allclose(ours.points().get(), there.points())
        np.testing.assert_allclose(ours(ad.asarray(x), axis=0).get(), there(x, axis=0), rtol=1e-9, atol=1e-12)
        assert isinstance(ours, signal.CZT)


@pytest.mark.parametrize("taps", [(2, 2), (3, 2), (2, 4), (4, 3)])
@pytest.mark.parametrize("axis", [0, 1])
def test_states_as_cupys_are_elements(taps, axis):
    """CuPy's state is the last elements of input and output: a filter that goes on gives what it gives in one run."""
    rng = seed("states", taps, axis)
    b, a = rng.normal(size=taps[0]), np.r_[1.0, 0.3 * rng.normal(size=taps[1] - 1)]
    x = rng.normal(size=(30, 28))
    y = scipy_signal.lfilter(b, a, x, axis)

    def past(x, y, end):
        parts = [np.take(v, range(end - n + 1, end), axis) for v, n in zip((x, y), taps)]
        return np.concatenate(parts, axis)
    for end in (12, 28):
        rest = np.take(x, range(11, end), axis)
        out, state = signal.lfilter(b, a, ad.asarray(rest), axis, ad.asarray(past(x, y, 11)))
        np.testing.assert_allclose(out.get(), np.take(y, range(11, end), axis), atol=1e-12)
        np.testing.assert_allclose(state.get(), past(x, y, end), atol=1e-12)


def test_states_as_cupys_of_sections():
    rng = seed("states of sections")
    sections = 0.3 * rng.normal(size=(3, 6))
    sections[:, 3] = 1
    steps = [rng.normal(size=(4, 30, 2))]
    for one in sections:
        steps.append(scipy_signal.lfilter(one[:3], one[3:], steps[-1], 1))

    def past(end):
        return np.stack([np.concatenate([x[:, end - 2:end], y[:, end - 2:end]], 1) for x, y in zip(steps, steps[1:])])
    out, state = signal.sosfilt(sections, ad.asarray(steps[0][:, 11:]), 1, ad.asarray(past(11)))
    np.testing.assert_allclose(out.get(), steps[-1][:, 11:], atol=1e-12)
    np.testing.assert_allclose(state.get(), past(30), atol=1e-12)


def test_types_and_layouts_are_scipys():
    compare("wiener", noise("float32", (7, 8)), 3, eps=1e-5)  # SciPy squares in float32
    compare("correlate2d", noise("complex128", (3, 4)), noise("complex128", (5, 6)), "valid")
    compare("decimate", np.ones(100, np.float16), 10)
    for shapes in (((1,), (7,)), ((1, 1), (2, 4)), ((5, 1, 1), (1, 4, 1))):
        for mode in ("full", "same", "valid") if len(shapes[0]) < 3 else ("full", "same"):
            compare("fftconvolve", *(noise("float64", shape) for shape in shapes), mode)
    assert signal.detrend(ad.asarray(noise("float64", (5, 6, 7))), 0).flags.c_contiguous
    sampled = noise("float64", (41,))
    np.testing.assert_allclose(signal.savgol_filter(ad.asarray(sampled), 7, 3, deriv=1, delta=ad.asarray(0.5)).get(),
                               scipy_signal.savgol_filter(sampled, 7, 3, deriv=1, delta=0.5), atol=1e-12)
