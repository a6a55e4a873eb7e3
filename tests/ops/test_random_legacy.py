"""The older functions of ad.random and RandomState: their types and checks are CuPy's, their words NumPy's."""
import re

import numpy as np
import pytest

import arrayd as ad

N = 20000

# With these parameters the numbers fit int8. Those that may be negative are not asked for in unsigned types.
ANY_TYPE = {"beta": (2.0, 5.0), "chisquare": (6.0,), "f": (4.0, 9.0), "gamma": (7.5, 0.5),
            "noncentral_chisquare": (3.0, 2.0), "noncentral_f": (3.0, 9.0, 2.0), "standard_gamma": (3.0,)}
SIGNED = {"logistic": (1.0, 2.0), "standard_t": (30.0,), "vonmises": (0.5, 2.0)}
COUNTS = {"binomial": (10, 0.3), "geometric": (0.4,), "hypergeometric": (30, 40, 9), "logseries": (0.6,),
          "negative_binomial": (3.0, 0.4), "poisson": (9.0,), "zipf": (4.0,)}
REAL_ONLY = {"exponential": (2.0,), "gumbel": (), "laplace": (), "lognormal": (), "normal": (), "pareto": (3.0,),
             "power": (2.5,), "random_sample": (), "rayleigh": (), "standard_cauchy": (), "standard_exponential": (),
             "standard_normal": (), "triangular": (-1.0, 0.5, 2.0), "uniform": (), "wald": (2.0, 3.0), "weibull": (1.5,)}
UNSIGNED = ["?", "u1", "u2", "u4", "u8"]
OTHERS = ["i1", "i2", "i4", "i8", "f2"]
TYPES = ([(name, p, t) for name, p in {**ANY_TYPE, **COUNTS}.items() for t in UNSIGNED + OTHERS]
         + [(name, p, t) for name, p in SIGNED.items() for t in OTHERS])


def drawn(name, p, **options):
    """Numbers that the function of the module draws after seed 3."""
    ad.random.seed(3)
    return getattr(ad.random, name)(*p, size=3000, **options)


@pytest.mark.parametrize("name, p, dtype", TYPES, ids=[f"{name}-{t}" for name, p, t in TYPES])
def test_numbers_of_any_type_are_cast(name, p, dtype):
    wide, x = drawn(name, p), drawn(name, p, dtype=dtype)
    assert wide.dtype == (np.int64 if name in COUNTS else np.float64)
    assert x.dtype == dtype
    np.testing.assert_array_equal(x.get(), wide.get().astype(dtype))
    np.testing.assert_array_equal(getattr(ad.random.RandomState(3), name)(*p, 3000, dtype).get(), x.get())


def test_whole_numbers_have_the_law():
    stats = pytest.importorskip("scipy.stats")
    x = ad.random.RandomState(4).noncentral_chisquare(3.0, 2.0, N, "i4").get()
    edges = np.arange(16)
    share = np.append(np.diff(stats.ncx2(3.0, 2.0).cdf(edges)), stats.ncx2(3.0, 2.0).sf(edges[-1]))
    seen = np.bincount(np.minimum(x, edges[-1]), minlength=edges.size)
    assert stats.chisquare(seen, share / share.sum() * N).pvalue > 1e-4


@pytest.mark.parametrize("name", REAL_ONLY)
def test_numbers_of_two_types(name):
    for dtype in ("f4", "f8"):
        assert drawn(name, REAL_ONLY[name], dtype=dtype).dtype == dtype
    for dtype in ("f2", "i4", "?", "c8"):
        with pytest.raises(TypeError, match="Unsupported dtype"):
            drawn(name, REAL_ONLY[name], dtype=dtype)


@pytest.mark.parametrize("name", [*ANY_TYPE, *SIGNED, *COUNTS])
def test_complex_numbers_are_refused(name):
    with pytest.raises(TypeError, match=f"Unsupported dtype .* for {name}"):
        drawn(name, {**ANY_TYPE, **SIGNED, **COUNTS}[name], dtype="c8")


# ---- parameters ----

OPEN = "p <= 0, p >= 1 or p is NaN"  # CuPy refuses 0, NumPy does not
LOOKED = [("exponential", ([1, -1],), "scale < 0"), ("logseries", ([0.5, 1.0],), OPEN), ("logseries", (0.0,), OPEN),
          ("negative_binomial", ([2, 0], 0.5), "n <= 0"), ("negative_binomial", (2, [0.5, 1.5]), "p <= 0, p > 1"),
          ("noncentral_chisquare", ([1, 0], 1), "df <= 0"), ("noncentral_chisquare", (1, [1, -1]), "nonc < 0"),
          ("noncentral_f", ([1, -1], 1, 1), "dfnum <= 0"), ("noncentral_f", (1, [1, -1], 1), "dfden <= 0"),
          ("noncentral_f", (1, 1, [1, -1]), "nonc < 0"), ("power", ([1, -1],), "a <= 0"), ("rayleigh", ([1, -1],), "scale < 0"),
          ("weibull", ([1, -1],), "a < 0"), ("zipf", ([2, 1],), "a <= 1"), ("triangular", ([0, 2], 1, 3), "left > mode"),
          ("triangular", (0, [1, 4], 3), "mode > right"), ("triangular", ([0, 1], 1, 1), "left == right")]


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2"])
@pytest.mark.parametrize("name, p, words", LOOKED, ids=[f"{name}{p}" for name, p, _ in LOOKED])
def test_parameters_on_the_server_are_looked_at(name, p, words, dtype):
    if words is not OPEN:
        with pytest.raises(ValueError, match=words.split()[0]):
            getattr(np.random.RandomState(1), name)(*p)

    def there(value):
        return ad.asarray(value, dtype)

    for make in ([lambda v: v] * 3, [there] * 3, [there, lambda v: v, np.array]):
        values = [put(value) for put, value in zip(make, p)]
        with pytest.raises(ValueError, match="^" + re.escape(words)):
            getattr(ad.random.RandomState(1), name)(*values)
        with pytest.raises(ValueError, match="^" + re.escape(words)):
            getattr(ad.random, name)(*values, size=(5, 2))


def test_a_generator_waits_for_no_parameter():
    x = ad.random.default_rng(1).exponential(ad.asarray([1.0, -1.0]))
    with pytest.raises(ValueError, match="scale < 0"):
        x.get()


def test_parameters_on_the_server_that_are_right():
    state, ones = ad.random.RandomState(2), ad.ones(2)
    assert state.exponential(ones, (5, 2)).shape == (5, 2) and state.logseries(ones / 2).shape == (2,)
    assert state.triangular(ones, 1, np.array([2.0, 3.0])).shape == (2,)
    assert state.zipf(ad.zeros(0) + 2).shape == (0,)
    np.testing.assert_array_equal(state.rayleigh(ad.zeros(2, bool)).get(), [0, 0])


def test_sample_of_none():
    with pytest.raises(ValueError) as wrong:
        np.random.RandomState(1).hypergeometric(10, 10, 0)
    with pytest.raises(ValueError, match=str(wrong.value)):
        ad.random.hypergeometric(10, 10, 0)
    assert ad.random.default_rng(1).hypergeometric(10, 10, 0, 3).tolist() == [0, 0, 0]
    assert ad.random.default_rng(1).logseries(0, 3).tolist() == np.random.default_rng(1).logseries(0, 3).tolist()


@pytest.mark.parametrize("call", [
    "choice([[0, 1], [2, 3]], 1)", "choice([[0, 1], [2, 3]], 1, p=[.3, .7])", "choice(None, 1)", "hypergeometric(5, 5, 16)",
    "poisson(None)", "seed(1.0)", "seed(np.float32(0))", "seed(1j)", "seed(-1)", "seed(np.int8(-1))"])
def test_errors_are_numpys(call):
    with pytest.raises((TypeError, ValueError)) as wrong:
        eval("state." + call, {"state": np.random.RandomState(1), "np": np})
    with pytest.raises(wrong.type):
        eval("state." + call, {"state": ad.random.RandomState(1), "np": np})


@pytest.mark.parametrize("seed", [True, np.int8(1), np.uint64(1), np.bool_(True)])
def test_seeds_of_any_whole_type(seed):
    assert float(ad.random.RandomState(seed).rand()) == float(ad.random.RandomState(1).rand())


# ---- vectors ----

def test_dirichlet_of_numbers_and_rows():
    stats = pytest.importorskip("scipy.stats")
    for draw in (ad.random.RandomState(7).dirichlet, ad.random.default_rng(7).dirichlet):
        x = draw(5, (2000, 3)).get()
        np.testing.assert_allclose(x.sum(axis=1), 1, rtol=1e-12)
        assert stats.kstest(x[:, 1], stats.beta(5, 10).cdf).pvalue > 1e-4
        assert draw(2.0, 4).shape == (4,)
        y = draw(ad.asarray([[1.0, 2.0], [3.0, 4.0]]), 2000).get()
        assert y.shape == (2000, 2, 2)
        for row, (a, b) in enumerate([(1, 2), (3, 4)]):
            assert stats.kstest(y[:, row, 0], stats.beta(a, b).cdf).pvalue > 1e-4
        half = draw([1.0, 2.0], 500, dtype="f2")
        assert half.dtype == np.float16 and half.shape == (500, 2)
        np.testing.assert_allclose(half.get().astype(float).sum(axis=1), 1, atol=2e-3)
        with pytest.raises(ValueError, match="alpha is a number"):
            draw(5)
        with pytest.raises(TypeError, match="Unsupported dtype"):
            draw([1.0, 2.0], dtype="i4")
