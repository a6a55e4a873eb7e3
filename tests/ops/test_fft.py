"""Fourier transforms against numpy.fft."""
import itertools

import numpy as np
import pytest

import arrayd as ad
from oracle import DTYPES, check, fetch, outcome, random, same_kind, seed

COMPLEX_1D, REAL_1D = ("fft", "ifft"), ("rfft", "ihfft")
TO_REAL_1D = ("irfft", "hfft")
COMPLEX_ND, REAL_ND, TO_REAL_ND = ("fftn", "ifftn"), ("rfftn",), ("irfftn",)
NORMS = (None, "backward", "ortho", "forward")


def noise(dtype, shape, *names):
    return random(seed("fft", dtype, shape, *names), dtype, shape, "UNIT")


def close(expected, actual, eps=None):
    """Check type and shape, and that values are apart by no more than the roundings (eps) of a few sums over all
    points."""
    assert expected.dtype == actual.dtype and expected.shape == actual.shape, (expected.dtype, actual.dtype,
                                                                               expected.shape, actual.shape)
    if not expected.size:
        return
    eps = eps or float(np.finfo(expected.dtype).eps)
    size = np.abs(expected).max()
    assert np.abs(actual - expected).max() <= (8 + 2 * np.log2(expected.size + 1)) * eps * max(size, 1e-30)


def compare(body, *arrays, eps=None):
    """Compare body under NumPy and under arrayd."""
    expected, wrong = outcome(lambda: body(np, *arrays))
    actual, error = outcome(lambda: fetch(body(ad, *(ad.asarray(a) for a in arrays))))
    if wrong is not None:
        assert error is not None and same_kind(wrong, error), (wrong, error, actual)
        return
    if error is not None:
        raise AssertionError(f"arrayd raises {error!r}, numpy gives {expected!r}") from error
    close(expected, actual, eps)


def transform(name, *args, **kwargs):
    return lambda xp, a: getattr(xp.fft, name)(a, *args, **kwargs)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_types(dtype):
    a = noise(dtype, (3, 8))
    for name in (*COMPLEX_1D, *REAL_1D, *TO_REAL_1D, *COMPLEX_ND, *REAL_ND, *TO_REAL_ND, "fft2", "ifft2", "rfft2",
                 "irfft2"):
        compare(transform(name), a, eps=2.0**-10 if dtype == np.float16 else None) # NumPy rounds the factor to float16


def test_bfloat16():
    dtype = pytest.importorskip("ml_dtypes").bfloat16
    a = noise(np.float32, (4, 6)).astype(dtype)
    close(np.fft.fft(a.astype(np.float32)), ad.fft.fft(ad.asarray(a)).get())
    close(np.fft.rfft(a.astype(np.float32)), ad.fft.rfft(ad.asarray(a)).get())
    close(np.fft.irfft(a.astype(np.float32)), ad.fft.irfft(ad.asarray(a)).get())


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("shape, axis", [((8192, 20), 0), ((2, 5003, 9), 1), ((2048, 12), 0), ((4096, 3, 4), 0)])
def test_long_axes_whose_points_lie_apart(shape, axis, dtype):
    """A GPU takes some of them with copies before and after, in place, too."""
    a = noise(dtype, shape)
    for name in COMPLEX_1D:
        compare(transform(name, axis=axis), a)
    x = ad.asarray(a)
    ad.fft.fft(x, axis=axis, out=x)
    close(np.fft.fft(a, axis=axis), x.get())


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 16, 31, 60, 64, 97, 128, 210, 1009, 1024, 3125, 4096, 10007])
def test_lengths(dtype, n):
    a = noise(dtype, (n,))
    for name in COMPLEX_1D:
        compare(transform(name), a)
    for name in (*REAL_1D, *COMPLEX_1D): # where real numbers give all frequencies, half of them are computed
        compare(transform(name), a.real.copy())
    for name in TO_REAL_1D:
        compare(transform(name, n), a)
        compare(transform(name, 2 * n - 1), a)
        compare(transform(name), a)


@pytest.mark.parametrize("shape", [(5,), (4, 6), (1, 7), (7, 1), (3, 4, 5), (2, 3, 4, 5), (2, 1, 3, 2, 3), (0, 4),
                                   (4, 0), (2, 0, 3)])
def test_axes(shape):
    a = noise(complex, shape)
    for axis in range(-len(shape), len(shape)):
        for name in COMPLEX_1D:
            compare(transform(name, axis=axis), a)
        compare(transform("rfft", axis=axis), a.real.copy())
        compare(transform("irfft", axis=axis), a)
        if shape[axis]:
            compare(transform("irfft", 5, axis=axis), a)
        else:  # NumPy's result is whatever its memory had
            assert not ad.fft.irfft(ad.asarray(a), 5, axis=axis).get().any()
    sets = [axes for k in range(len(shape) + 1) for axes in itertools.combinations(range(len(shape)), k)]
    for axes in [None, *sets, tuple(reversed(range(len(shape))))]:
        compare(transform("fftn", axes=axes), a)
        compare(transform("fftn", axes=axes), a.real.copy())
        compare(transform("ifftn", axes=axes, norm="ortho"), a.real.copy())
        compare(transform("rfftn", axes=axes), a.real.copy())
        compare(transform("irfftn", axes=axes), a)
    compare(transform("ifftn", axes=(0, 0)), a)
    compare(transform("rfftn", axes=(0, 0)), a.real.copy())
    compare(transform("irfftn", axes=(0, -1, 0)), a)


LAYOUTS = {
    "transposed": lambda x: x.T,
    "swapped": lambda x: x.swapaxes(0, 1),
    "reversed": lambda x: x[::-1, :, ::-1],
    "every other": lambda x: x[:, ::2, ::2],
    "inner": lambda x: x[1:, 1:-1, 1:],
    "one axis": lambda x: x[:, 1],
    "new axis": lambda x: x[:, None],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.complex64, np.float64])
def test_layouts(layout, dtype):
    view = LAYOUTS[layout]
    a = noise(dtype, (5, 8, 9))
    ndim = view(a).ndim
    sets = [(i,) for i in range(ndim)] + [(0, 1), tuple(range(ndim))]
    for axes in sets:
        compare(lambda xp, x: xp.fft.fftn(view(x), axes=axes), a)
        compare(lambda xp, x: xp.fft.irfftn(view(x), axes=axes), a)
        if dtype is np.float64:
            compare(lambda xp, x: xp.fft.rfftn(view(x), axes=axes), a)


def test_repeated_rows():
    a = noise(complex, (1, 12))
    compare(lambda xp, x: xp.fft.fft(xp.broadcast_to(x, (4, 12))), a)
    compare(lambda xp, x: xp.fft.fft2(xp.broadcast_to(x, (4, 12))), a)
    compare(lambda xp, x: xp.fft.irfft2(xp.broadcast_to(x, (4, 12))), a)


def test_parts_of_complex():
    a = noise(np.complex64, (6, 7))
    compare(lambda xp, x: xp.fft.rfft(x.real), a)
    compare(lambda xp, x: xp.fft.rfft2(x.imag), a)


@pytest.mark.parametrize("norm", NORMS)
def test_norms(norm):
    a = noise(complex, (4, 6, 5))
    for name in (*COMPLEX_1D, *TO_REAL_1D, *COMPLEX_ND, *TO_REAL_ND, "fft2", "ifft2", "irfft2"):
        compare(transform(name, norm=norm), a)
    for name in (*REAL_1D, *REAL_ND, "rfft2"):
        compare(transform(name, norm=norm), a.real.copy())
    compare(transform("fft", norm=norm, axis=0), a.astype(np.complex64))


def test_cut_and_filled():
    a = noise(complex, (6, 7))
    for n in (1, 2, 6, 7, 8, 20):
        for axis in (0, 1):
            for name in (*COMPLEX_1D, *TO_REAL_1D):
                compare(transform(name, n, axis), a)
            for name in REAL_1D:
                compare(transform(name, n, axis), a.real.copy())
    for s, axes in [((3, 9), (0, 1)), ((9, 3), (0, 1)), ((4,), (0,)), ((5, 12), (-1, 0)), ((-1, 4), (0, 1)),
                    ((9, 5), (0, 0)), ((5,), None), ((3, None), (0, 1))]:
        for name in (*COMPLEX_ND, *TO_REAL_ND):
            compare(transform(name, s, axes), a)
        compare(transform("rfftn", s, axes), a.real.copy())
    compare(transform("fft2", (3, 9)), a)
    compare(transform("rfft2", (3, 9), norm="ortho"), a.real.copy())
    compare(transform("irfft2", (3, 9)), a)
    compare(transform("fft", np.int64(4)), a)


def test_input_stays():
    a = noise(complex, (8, 9))
    x = ad.asarray(a)
    for name in (*COMPLEX_1D, *TO_REAL_1D, *COMPLEX_ND, *TO_REAL_ND):
        getattr(ad.fft, name)(x)
    r = x.real.copy()
    for name in (*REAL_1D, *REAL_ND):
        getattr(ad.fft, name)(r)
    np.testing.assert_array_equal(x.get(), a)
    np.testing.assert_array_equal(r.get(), a.real)


def given_out(name, shape, dtype, *args, view=lambda x: x, **kwargs):
    def body(xp, a):
        out = xp.zeros(shape, dtype)
        result = getattr(xp.fft, name)(a, *args, out=view(out), **kwargs)
        assert result.shape == view(out).shape
        return out
    return body


def test_out():
    a = noise(complex, (4, 6))
    compare(given_out("fft", (4, 6), complex), a)
    compare(given_out("fft", (6, 4), complex, view=lambda x: x.T), a)
    compare(given_out("fft2", (8, 12), complex, view=lambda x: x[::2, ::2]), a)
    compare(given_out("ifft", (4, 3), complex, 3), a)
    compare(given_out("rfft", (4, 4), complex), a.real.copy())
    compare(given_out("irfft", (4, 10), float), a)
    compare(given_out("irfftn", (4, 10), float), a)
    compare(given_out("rfftn", (4, 4), complex, norm="ortho"), a.real.copy())
    compare(given_out("ihfft", (4, 4), complex), a.real.copy())
    x = ad.asarray(a)
    assert ad.fft.fft(x, out=x) is x
    close(np.fft.fft(a), x.get())
    single = ad.zeros((4, 6), np.complex64)
    ad.fft.fft(ad.asarray(a), out=single)
    np.testing.assert_allclose(single.get(), np.fft.fft(a), atol=1e-5)
    with pytest.raises(ValueError, match="wrong shape"):
        ad.fft.fft(x, out=ad.zeros((4, 5), complex))
    with pytest.raises(TypeError, match="same_kind"):
        ad.fft.fft(x, out=ad.zeros((4, 6)))
    with pytest.raises(TypeError):
        ad.fft.fft(x, out=np.zeros((4, 6), complex))


def test_errors():
    a = noise(complex, (4, 6))
    compare(transform("fft", 0), a)
    compare(transform("fft", -1), a)
    compare(transform("irfft"), a[:, :1])
    compare(transform("fft", 2.5), a)
    compare(transform("fft", axis=2), a)
    compare(transform("fft", norm="half"), a)
    compare(transform("hfft", norm="half"), a)
    compare(transform("rfft"), a)
    compare(transform("fftn", (1, 2, 3), (0, 1)), a)
    compare(transform("fftn", axes=(0, 5)), a)
    compare(transform("rfftn", axes=()), a.real.copy())
    compare(transform("fftn"), np.array(3.0 + 1j))
    compare(transform("fft"), np.array(3.0))
    with pytest.raises(ValueError, match=r"Invalid number of FFT data points \(0\) specified"):
        ad.fft.fft(ad.zeros((3, 0)))


def test_from_host():
    a = noise(float, (3, 8))
    close(np.fft.fft(a), ad.fft.fft(a.tolist()).get())
    close(np.fft.rfft2(a), ad.fft.rfft2(a).get())


def test_frequencies():
    for n in (1, 2, 5, 8):
        for d in (1.0, 0.1, 3):
            check(lambda xp: xp.fft.fftfreq(n, d), exact=True)
            check(lambda xp: xp.fft.rfftfreq(n, d), exact=True)
    for n in (0, 2.0, -3):
        check(lambda xp: xp.fft.fftfreq(n))
        check(lambda xp: xp.fft.rfftfreq(n) if n != -3 else None)


def test_shifts():
    a = noise(float, (4, 5, 3))
    for axes in (None, 0, -1, (0, 2), [1], ()):
        for name in ("fftshift", "ifftshift"):
            check(lambda xp, x: getattr(xp.fft, name)(x, axes), a, exact=True)
    check(lambda xp, x: xp.fft.fftshift(x, 3), a)
    check(lambda xp: xp.fft.fftshift(xp.fft.fftfreq(9)), exact=True)


# Long enough for threads, for several groups of lines, and for all the ways in which a GPU may take the axes.
@pytest.mark.parametrize("shape, axes", [((300, 1000), (1,)), ((1000, 300), (0,)), ((40, 50, 60), (1,)),
                                         ((40, 50, 60), (0, 2)), ((1 << 17,), (0,)), ((257, 263), (0, 1)),
                                         ((30000, 3), (0,)), ((3, 30000), (1,)), ((2000, 16, 3), (1,)),
                                         ((9, 8, 7, 6, 5), (0, 1, 2, 3, 4)), ((100003,), (0,))])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_large(shape, axes, dtype):
    a = noise(dtype, shape)
    compare(transform("fftn", axes=axes), a)
    compare(transform("ifftn", axes=axes), a)
    compare(transform("rfftn", axes=axes), a.real.copy())
    compare(transform("irfftn", axes=axes), a)


@pytest.mark.parametrize("n", [8192, 16384, 65536])
def test_imaginary_parts_that_must_be_zero_are_ignored(n):
    a = noise(np.complex64, (2, n // 2 + 1))
    a[:, 0] += 50j
    a[:, -1] -= 70j
    compare(transform("irfft"), a)
    compare(transform("irfft", n - 1), a)
    compare(transform("irfft", axis=0), a)


def test_plans_are_kept(capsys):
    """A transform of a length of its own adds a plan, the same again does not."""
    cache = ad.fft.config.get_plan_cache()
    x = ad.arange(30011, dtype="complex128")
    before = cache.get_curr_size()
    assert 0 <= before <= cache.get_size() and cache.get_curr_memsize() >= 0
    ad.fft.fft(x).get()
    after = cache.get_curr_size()
    assert 1 <= after <= min(before + 1, cache.get_size())  # large ones may have to go
    ad.fft.fft(x).get()
    assert cache.get_curr_size() == after
    ad.fft.config.show_plan_cache_info()
    assert f"{after} of at most" in capsys.readouterr().out
    cache.clear()
    assert cache.get_curr_size() == cache.get_curr_memsize() == 0
    ad.fft.fft(ad.arange(30013, dtype="complex128")).get()
    assert cache.get_curr_size() <= 1 and cache is ad.fft.config.get_plan_cache()
    kept = cache.get_size()
    try:
        cache.set_size(3)
        cache.set_memsize(1 << 20)
        assert (cache.get_size(), cache.get_memsize()) == (3, 1 << 20)
        for call in (cache.set_size, cache.set_memsize):
            with pytest.raises(ValueError, match="at least 0"):
                call(-2)
    finally:
        cache.set_size(kept)
        cache.set_memsize(-1)


@pytest.mark.skipif("ad.session_info()['backend'] != 'cpu'", reason="cuFFT's plans have a cache of their own")
def test_large_plans_go():
    """Plans of 2^23 points are kept in all: of these transforms no two are, and what is asked for again is there.

    Devices share their plans, and each plan is counted once.
    """
    for k, n in enumerate((1 << 22, 5 << 20, 3 << 21, 1 << 22, 1 << 22)):
        with ad.cuda.Device(k % ad.cuda.runtime.getDeviceCount()):
            x = ad.ones(n, "float32")
            y = ad.fft.rfft(x)
        assert complex(y[0]) == n and float(abs(y[1:]).max()) <= n * 1e-7
        assert k == 0 or ad.stat()["fft_plans"] == 1
    np.testing.assert_allclose(ad.fft.irfft(y, n).get(), x.get(), rtol=1e-5)


def test_deprecated_setting():
    for value in (False, True):
        with pytest.warns(DeprecationWarning, match="enable_nd_planning"):
            ad.fft.config.enable_nd_planning = value
        with pytest.warns(DeprecationWarning, match="enable_nd_planning"):
            assert ad.fft.config.enable_nd_planning is value


def test_an_axis_that_there_is_not():
    a = ad.zeros((3, 4))
    for call in (lambda: ad.fft.fft(a, axis=2), lambda: ad.fft.irfft(a, axis=-3), lambda: ad.fft.fftn(a, axes=(0, 2))):
        with pytest.raises(np.exceptions.AxisError, match="is out of bounds for array of dimension 2"):
            call()
