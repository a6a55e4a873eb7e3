"""arrayd.special: its rows beside scipy.special, values that are no numbers, and the functions that Python puts
together."""
import itertools
import warnings

import numpy as np
import pytest
import scipy
import scipy.special as sp

import arrayd as ad
from arrayd.scipy import special
from arrayd.scipy.special._loops import LOOPS
from oracle import check, fetch, seed
from test_ufuncs import ORACLE, ROWS, SPECIAL, ULPS, operands

REAL = [name for name in SPECIAL if name != "lambertw"]
ANALYTIC = ["erf", "erfc", "erfcx", "ndtr", "log_ndtr", "gamma", "rgamma", "loggamma", "psi", "exp1", "expi", "sici",
            "shichi", "xlogy", "xlog1py"]
NUMBERS = [np.inf, -np.inf, np.nan, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -3.5, 1e-300, -30.25, 700.0, 1e300]
# Functions for which SciPy has a loop of its own for whole numbers. There float16 goes to float32.
WHOLE = {"nbdtr", "nbdtrc", "nbdtri", "pdtri", "yn", "expn", "spherical_y"}
# Functions whose algorithm in SciPy is another one by now (Boost's), or takes whole numbers for another function.
APART = {"betainc", "betaincinv", "binom", "pdtri", "nbdtr", "nbdtrc", "nbdtri", "bdtr", "bdtrc", "bdtri", "lpmv", "yn",
         "expn", "spherical_y", "fdtri", "chdtri", "gammaincinv", "gammainccinv", "poch", "wright_bessel",
         "ellipj_sn_cn",
         "ellipj_dn_am", "zeta", "sindg", "cosdg", "tandg", "cotdg", "shichi", "beta", "betaln", "fdtr", "fdtrc",
         "erfcinv",
         "y0", "y1", "j0", "j1", "ellipkinc", "ellipeinc", "sici", "pseudo_huber", "psi", "loggamma", "expi", "exp1",
         "gdtr", "gdtrc"}
# Rows with zeros, near which SciPy's own are right to 1e-16 of 1, not of their value.
ZEROS = {"gammaln", "j0", "j1", "y0", "y1"}
# From 1.18 on SciPy's loops of float32 come first, so integers of one or two bytes and float16 give that, as in CuPy.
# arrayd's types are those of 1.17, which lose less.
FLOAT32_FIRST = np.lib.NumpyVersion(scipy.__version__) >= "1.18.0"


def call(name, xp, *arrays):
    with np.errstate(all="ignore"):
        return (ORACLE[name] if xp is np else ad._core.ufuncs[name])(*arrays)


def call_far(name, xp, *arrays):
    """The function, its values moved away from 0 where only their distance to SciPy's counts."""
    value = call(name, xp, *arrays)
    return abs(value) + 1 if name in ZEROS else value


def same_values(expected, actual, ulps, atol=1e-300):
    for e, a in zip(expected if isinstance(expected, tuple) else (expected,),
                    actual if isinstance(actual, tuple) else (actual,)):
        e, a = np.asarray(e), fetch(a)
        np.testing.assert_allclose(a, e.astype(a.dtype), rtol=ulps * np.finfo(a.dtype).eps, atol=atol, equal_nan=True)


def test_gammaln_in_single_precision():
    """The whole range, and densely where formulas meet or the result is near 0. The result is within a few units."""
    x = np.concatenate([np.geomspace(1e-45, 3e38, 20_001), np.linspace(0.4, 4.2, 40_001), np.linspace(-3.9, -0.1, 39)])
    x = np.concatenate([x.astype(np.float32), np.float32([0, -0.0, np.inf, -np.inf, np.nan, 1, 2, -1])])
    with np.errstate(over="ignore"):
        expected = sp.gammaln(x.astype(float)).astype(np.float32)
    np.testing.assert_allclose(fetch(special.gammaln(ad.asarray(x))), expected, rtol=4 * np.finfo(np.float32).eps)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", REAL)
def test_rows(name, dtype):
    rng = seed("special", name, dtype)
    for shapes in ([()], [(0,)], [(7,)], [(2, 0, 3)], [(5, 1), (1, 4)], [(3, 4), (4,)], [(1003,)]):
        check(lambda xp, *xs: call_far(name, xp, *xs), *operands(rng, name, dtype, shapes), ulps=ULPS[name] or 8)
    a = operands(rng, name, dtype, [(6, 8)])
    check(lambda xp, *xs: call_far(name, xp, *(x[::-1, ::2] for x in xs)), *a, ulps=ULPS[name])
    check(lambda xp, *xs: call_far(name, xp, *(x.T for x in xs)), *a, ulps=ULPS[name])


@pytest.mark.parametrize("name", REAL)
def test_integers_and_halves_are_taken_as_floats(name):
    rng = seed("special", name, "kinds")
    for dtype in (np.int8, np.int32, np.int64, np.uint16):
        xs = operands(rng, name, np.dtype(dtype), [(9,)])
        expected, actual = call(name, np, *xs), call(name, ad, *(ad.asarray(x) for x in xs))
        if name not in ("spherical_y",):
            kinds = [np.asarray(part).dtype for part in (expected if isinstance(expected, tuple) else (expected,))]
            ours = [part.dtype for part in (actual if isinstance(actual, tuple) else (actual,))]
            narrow = FLOAT32_FIRST and np.dtype(dtype).itemsize < 4 and set(kinds) == {np.dtype(np.float32)}
            assert ours == kinds or narrow and set(ours) == {np.dtype(np.float64)}, (dtype, ours, kinds)
    half = operands(rng, name, np.dtype(np.float16), [(9,)])
    expected, actual = call(name, np, *half), call(name, ad, *(ad.asarray(x) for x in half))
    for e, a in zip(expected if isinstance(expected, tuple) else (expected,),
                    actual if isinstance(actual, tuple) else (actual,)):
        narrow = FLOAT32_FIRST and (a.dtype, e.dtype) == (np.dtype(np.float64), np.dtype(np.float32))
        assert a.dtype == e.dtype or name in WHOLE or narrow, (a.dtype, e.dtype)


@pytest.mark.parametrize("name", [name for name in REAL if isinstance(getattr(sp, name, None), np.ufunc)])
def test_scipys_own_ufuncs_take_arrays(name):
    xs = [ad.asarray(x) for x in operands(seed("dispatch", name), name, np.dtype(np.float64), [(5,)])]
    same_values(fetch(call(name, ad, *xs)), getattr(sp, name)(*xs), 0)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("name", ANALYTIC)
def test_complex_rows(name, dtype):
    xs = operands(seed("special", name, dtype), name, np.dtype(dtype), [(203,)])
    xs = [x / 10 if ROWS[name][2] == "POS" else x for x in xs]
    expected, actual = call(name, np, *xs), call(name, ad, *(ad.asarray(x) for x in xs))
    # Near 1 the logarithm of ndtr is no better than ndtr is.
    same_values(expected, actual, 4000, 8 * np.finfo(dtype).eps if name == "log_ndtr" else 1e-300)


@pytest.mark.parametrize("name", [name for name in REAL if name not in APART])
def test_values_that_are_no_numbers(name):
    count = ROWS[name][0]
    xs = [x.reshape(-1) for x in np.meshgrid(*[np.array(NUMBERS)] * count)]
    expected, actual = call(name, np, *xs), call(name, ad, *(ad.asarray(x) for x in xs))
    for e, a in zip(expected if isinstance(expected, tuple) else (expected,),
                    actual if isinstance(actual, tuple) else (actual,)):
        e, a = np.asarray(e), fetch(a)
        wrong = (np.isnan(e) != np.isnan(a)) | (np.isinf(e) != np.isinf(a)) | (np.isinf(e) & (e != a))
        assert not wrong.any(), [(tuple(x[i] for x in xs), e[i], a[i]) for i in np.flatnonzero(wrong)[:5]]


@pytest.mark.parametrize("name", ["j0", "j1", "y0", "y1"])
def test_bessel_functions_of_large_numbers(name):
    """CUDA's are off by up to 5e-12 beyond 8."""
    x = np.linspace(0.01, 1000, 20_000)
    np.testing.assert_allclose(fetch(call(name, ad, ad.asarray(x))), call(name, np, x), rtol=1e-13, atol=1e-14)
    x = x.astype(np.float32)
    np.testing.assert_allclose(fetch(call(name, ad, ad.asarray(x))), call(name, np, x), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", sorted(APART & set(REAL)))
def test_any_number_is_answered(name):
    """No operand, however large or odd, keeps the server busy or ends it."""
    count = ROWS[name][0]
    numbers = np.array([*NUMBERS, -1e300, 1e9, -1e9, 2**31, -2.0**31, 1e18, -1e18, 0.999999])
    xs = [x.reshape(-1) for x in np.meshgrid(*[numbers] * count)]
    out = call(name, ad, *(ad.asarray(x) for x in xs))
    for part in out if isinstance(out, tuple) else (out,):
        assert part.get().shape == xs[0].shape


def test_lambertw():
    z = np.array([0.5, -0.1, 3 + 2j, -1 / np.e, 0, np.inf, np.nan, 1e-20, -40])
    for k in (0, 1, -1, 3):
        same_values(sp.lambertw(z, k), special.lambertw(ad.asarray(z), k), 4000)
    assert special.lambertw(ad.ones(2, np.float32)).dtype == np.complex128


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2)])
def test_sums_of_exponentials(axis, dtype):
    rng = seed("exponentials", axis, dtype)
    a, b = rng.normal(0, 300, (3, 4, 5)).astype(dtype), rng.uniform(0, 2, (4, 5)).astype(dtype)
    a[0, 0, 0], a[1, 1] = -np.inf, -np.inf
    for keepdims in (False, True):
        same_values(sp.logsumexp(a, axis, keepdims=keepdims),
                    special.logsumexp(ad.asarray(a), axis, keepdims=keepdims), 64)
        same_values(sp.logsumexp(a, axis, b, keepdims=keepdims),
                    special.logsumexp(ad.asarray(a), axis, ad.asarray(b), keepdims=keepdims), 64)
    both = special.logsumexp(ad.asarray(a), axis, -ad.asarray(b), return_sign=True)
    same_values(tuple(sp.logsumexp(a, axis, -b, return_sign=True)), both, 64)
    x = rng.normal(0, 10, (3, 4, 5)).astype(dtype)
    same_values(sp.softmax(x, axis), special.softmax(ad.asarray(x), axis), 256)
    np.testing.assert_allclose(fetch(special.log_softmax(ad.asarray(x), axis)), sp.log_softmax(x, axis), rtol=1e-5,
                               atol=1e-5 if dtype is np.float32 else 1e-13)


def test_orders():
    n, x = np.arange(6), seed("orders").uniform(0.5, 20, (7, 1))
    same_values(sp.polygamma(n, x), special.polygamma(ad.asarray(n), ad.asarray(x)), 4000)
    for derivative in (False, True):
        same_values(sp.spherical_yn(n, x, derivative), special.spherical_yn(n, ad.asarray(x), derivative), 40000)
    same_values(sp.zeta(x + 1), special.zeta(ad.asarray(x + 1)), 64)
    same_values(sp.zeta(x + 1, 2.5), special.zeta(ad.asarray(x + 1), 2.5), 64)
    same_values(sp.ellipj(x, 0.3), special.ellipj(ad.asarray(x), 0.3), 40000)
    theta, phi = seed("angles").uniform(0, 3, (2, 5))
    for degree in range(5):
        for order in range(-degree, degree + 1):
            value = fetch(special.sph_harm_y(degree, order, ad.asarray(theta), ad.asarray(phi)))
            np.testing.assert_allclose(value, sp.sph_harm_y(degree, order, theta, phi), rtol=1e-11, atol=1e-13)
            swapped = fetch(special.sph_harm(order, degree, ad.asarray(phi), ad.asarray(theta)))
            np.testing.assert_array_equal(value, swapped)


def test_combinatorics():
    n, k = np.array([0, 3, 5, 10, 40]), np.array([[0], [2], [5], [-1]])
    same_values(sp.comb(n, k), special.comb(ad.asarray(n), ad.asarray(k)), 256)
    same_values(sp.comb(n, k, repetition=True), special.comb(ad.asarray(n), ad.asarray(k), repetition=True), 256)
    same_values(sp.perm(n, k), special.perm(ad.asarray(n), ad.asarray(k)), 256)
    same_values(sp.factorial(np.array([-2, 0, 1, 5, 20])), special.factorial(ad.asarray([-2, 0, 1, 5, 20])), 64)
    same_values(sp.multigammaln(n + 2.5, 4), special.multigammaln(ad.asarray(n + 2.5), 4), 64)
    assert special.comb(60, 30, exact=True) == sp.comb(60, 30, exact=True)
    assert special.perm(30, 20, exact=True) == sp.perm(30, 20, exact=True)
    assert special.factorial(30, exact=True) == sp.factorial(30, exact=True)
    with pytest.raises(ValueError, match="positive integer"):
        special.multigammaln(ad.asarray(3.0), 1.5)
    with pytest.raises(ValueError, match="not met"):
        special.multigammaln(ad.asarray([1.0, 0.5]), 2)


@pytest.mark.skipif(FLOAT32_FIRST, reason="SciPy's loops of float32 come first")
@pytest.mark.parametrize("name", LOOPS)
def test_types_are_scipys(name):
    function, ours = getattr(sp, name), getattr(special, name)
    letters = "?bBhHiIlLefd" if function.nin < 3 else "bHlLefd"
    for chosen in itertools.product(letters, repeat=function.nin):
        arrays = [np.ones(1, letter) for letter in chosen]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # that yn and expn take orders that are not whole
            expected = function(*arrays).dtype
        assert ours(*map(ad.asarray, arrays)).dtype == expected, chosen
    one = ad.ones(2, np.float32)
    assert ours(*[one] * function.nin, dtype=np.float64).dtype == np.float64
    if function.nin == 2:
        assert ours(one, 1.0).dtype == np.float32
    assert ours.nin == function.nin and repr(ours).startswith("<ufunc") and isinstance(ours, ad.ufunc)


def test_complex_softmax_is_of_scipys_branch():
    x = seed("softmax", "complex").normal(0, 4, (5, 3)) + 1j * seed("softmax", "phase").normal(0, 4, (5, 3))
    for axis in (None, 0, 1):
        np.testing.assert_allclose(special.log_softmax(ad.asarray(x), axis).get(), sp.log_softmax(x, axis), rtol=1e-12)


def test_names():
    assert ad.special.erf is special.erf and "betainc" in special.__all__
    assert not hasattr(ad, "erf") and "gamma" not in ad.__all__
    missing = [name for name in special.__all__ if not hasattr(special, name)]
    assert not missing


def test_they_fuse():
    x = seed("fused").normal(0, 1, 10_000)
    a = ad.asarray(x)
    same_values(sp.erf(x) * np.exp(-x * x), special.erf(a) * ad.exp(-a * a), 64)
