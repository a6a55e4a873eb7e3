"""arrayd.scipy.fft and fftpack beside SciPy's."""
import numpy as np
import pytest
import scipy.fft
import scipy.fftpack

import arrayd as ad
from arrayd.scipy import fft, fftpack
from oracle import fetch, random, seed

NORMS = (None, "backward", "ortho", "forward")
KINDS = [np.float16, np.float32, np.float64, np.int32, np.complex64, np.complex128]
COMPLEX = "fft ifft".split()
REAL = "rfft irfft hfft ihfft".split()
TRIGONOMETRIC = "dct idct dst idst".split()


def same(expected, actual, scale=1.0):
    actual = fetch(actual)
    assert actual.dtype == expected.dtype and actual.shape == expected.shape
    eps = np.finfo(expected.dtype).eps
    largest = np.abs(expected).max(initial=0)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=64 * eps * scale * (largest + 1e-30))


def both(name, x, *arguments, module=fft, theirs=scipy.fft, **options):
    expected = getattr(theirs, name)(x, *arguments, **options)
    same(expected, getattr(module, name)(ad.asarray(x), *arguments, **options))


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("name", COMPLEX + REAL)
def test_along_one_axis(name, dtype):
    x = random(seed(name, dtype), dtype, (6, 9, 4), "SMALL")
    if name in ("rfft", "ihfft") and x.dtype.kind == "c":
        with pytest.raises(TypeError):
            getattr(fft, name)(ad.asarray(x))
        return
    for norm in NORMS:
        for axis in (-1, 0, 1):
            for n in (None, 1, 5, 12):
                both(name, x, n, axis, norm)


@pytest.mark.parametrize("name", COMPLEX + REAL)
def test_along_several_axes(name):
    x = random(seed(name, "several"), np.float64, (6, 7, 4), "SMALL")
    for norm in NORMS:
        both(f"{name}2", x, norm=norm)
        for s, axes in ((None, None), (None, (0, 2)), ((5, 9), None), ((5, 9), (2, 0)), ((3, 4, 5), (1, 0, 2))):
            both(f"{name}n", x, s, axes, norm)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("name", TRIGONOMETRIC)
def test_cosines_and_sines(name, dtype):
    for shape, axes in (((1,), (0,)), ((2,), (0,)), ((5, 8), (0, 1)), ((3, 7, 4), (1, -1))):
        x = random(seed(name, dtype, shape), dtype, shape, "SMALL")
        for number in (1, 2, 3, 4):
            for axis in axes:
                if number == 1 and name in ("dct", "idct") and shape[axis] == 1:
                    continue
                for norm in NORMS:
                    both(name, x, number, None, axis, norm)
                both(name, x, number, 6, axis)
                if x.dtype.kind != "c":  # for complex numbers SciPy passes over it
                    both(name, x, number, None, axis, "ortho", orthogonalize=False)
                    both(name, x, number, None, axis, orthogonalize=True)


@pytest.mark.parametrize("n", [16, 27, 1000, 1009])
@pytest.mark.parametrize("name", TRIGONOMETRIC)
def test_longer_cosines_and_sines(name, n):
    x = random(seed(name, n), np.float64, (3, n), "SMALL")
    for number in (1, 2, 3, 4):
        both(name, x, number)


@pytest.mark.parametrize("name", [f"{name}n" for name in TRIGONOMETRIC])
def test_cosines_and_sines_of_several_axes(name):
    x = random(seed(name), np.float64, (4, 5, 6), "SMALL")
    for number in (1, 2, 3, 4):
        for norm in NORMS:
            for s, axes in ((None, None), ((4, 3), None), ((7, 2), (2, 0)), (None, (1,))):
                both(name, x, number, s, axes, norm)


@pytest.mark.parametrize("n", [64, 65])
@pytest.mark.parametrize("bias", [0.0, 0.3, -0.1])
def test_hankel(bias, n):
    r = np.logspace(-4, 4, n)
    x, dln = r * np.exp(-r**2 / 2), np.log(r[1] / r[0])
    offset = scipy.fft.fhtoffset(dln, 0.5, bias=bias)
    assert abs(fft.fhtoffset(dln, 0.5, bias=bias) - offset) < 1e-12
    for name in ("fht", "ifht"):
        same(getattr(scipy.fft, name)(x, dln, 0.5, offset, bias),
             getattr(fft, name)(ad.asarray(x), dln, 0.5, offset, bias), 1000)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16])
def test_fftpack(dtype):
    x = random(seed("fftpack", dtype), dtype, (5, 8, 3), "SMALL")
    for name in ("fft", "ifft", "rfft", "irfft"):
        for n in (None, 1, 4, 7):
            for axis in (-1, 0, 1):
                both(name, x, n, axis, module=fftpack, theirs=scipy.fftpack)
    for name in ("fftn", "ifftn", "fft2", "ifft2"):
        both(name, x, module=fftpack, theirs=scipy.fftpack)
    both("fftn", x, (4, 6), (0, 2), module=fftpack, theirs=scipy.fftpack)
    with pytest.raises(TypeError, match="real sequence"):
        fftpack.rfft(ad.asarray(x) * 1j)


def test_fast_lengths():
    def factors(n):
        for prime in (2, 3, 5, 7):
            while n % prime == 0:
                n //= prime
        return n
    for target in [*range(1, 400), 1009, 123_457]:
        found = fft.next_fast_len(target)
        assert found >= target and factors(found) == 1
        assert all(factors(n) != 1 for n in range(target, found))
    with pytest.raises(ValueError):
        fft.next_fast_len(-1)


def test_backend():
    x = random(seed("backend"), np.float64, (4, 6), "SMALL")
    with scipy.fft.set_backend(fft):
        for name in ("fft", "rfftn", "dct", "idstn", "hfft"):
            result = getattr(scipy.fft, name)(ad.asarray(x))
            assert isinstance(result, ad.ndarray)
            same(getattr(fft, name)(ad.asarray(x)).get(), result)


def test_plans():
    x = ad.asarray(random(seed("plans"), np.complex128, (4, 6), "SMALL"))
    plan = fft.get_fft_plan(x, axes=-1)
    expected = fft.fft(x).get()
    same(expected, fft.fft(x, plan=plan))
    with plan:
        assert ad.cuda.cufft.get_current_plan() is plan
        same(expected, fft.fft(x))
        with pytest.raises(RuntimeError):
            fft.fft(x, plan=plan)
        with pytest.raises(ValueError, match="does not match the plan"):
            fft.fft(x, 5)
    assert ad.cuda.cufft.get_current_plan() is None
    same(expected, fft.fft(x))
    with pytest.raises(ValueError, match="does not match the plan"):
        fft.fft(x, axis=0, plan=plan)
    with pytest.raises(ValueError, match="C2C"):
        fft.rfft(x.real, plan=plan)
    with pytest.raises(ValueError, match="value_type"):
        fft.get_fft_plan(x, value_type="C2X")


@pytest.mark.parametrize("bad", [
    lambda xp, x: xp.fft(x, 0), lambda xp, x: xp.fft(x, norm="other"), lambda xp, x: xp.fftn(x, (3,), (0, 1)),
    lambda xp, x: xp.dct(x, 5), lambda xp, x: xp.dct(x, norm="other"), lambda xp, x: xp.dct(x[:1, :1], 1),
    lambda xp, x: xp.dctn(x, s=(3, 4, 5)), lambda xp, x: xp.irfftn(x, axes=()), lambda xp, x: xp.hfftn(x, norm="other"),
    lambda xp, x: xp.rfft(x * 1j), lambda xp, x: xp.fftn(x, (1.5, 2))])
def test_errors(bad):
    x = np.arange(12.0).reshape(3, 4)
    with pytest.raises((ValueError, TypeError, RuntimeError)) as theirs:
        bad(scipy.fft, x)
    with pytest.raises(theirs.type):
        bad(fft, ad.asarray(x))
