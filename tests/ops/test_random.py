"""Random numbers: the generator against Philox as published, the distributions against theirs."""
import pathlib
import pickle
import re

import numpy as np
import pytest

import arrayd as ad
from arrayd.random._draw import ROWS
from oracle import in_threads

TOP = pathlib.Path(__file__).resolve().parents[2]
N = 20000


def at(key, counter=0):
    """A Generator at a place of the stream of a key."""
    rng = ad.random.default_rng(0)
    rng.bit_generator.state = {"bit_generator": "Philox4x32", "state": {"key": key, "counter": counter}}
    return rng


# ---- the generator ----

def philox(counter, key):
    """Compute one block of Philox4x32-10, from its definition. counter: 128 bits, key: 64."""
    c = [counter >> 32 * i & 0xffffffff for i in range(4)]
    k = [key & 0xffffffff, key >> 32]
    for _ in range(10):
        a, b = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [b >> 32 ^ c[1] ^ k[0], b & 0xffffffff, a >> 32 ^ c[3] ^ k[1], a & 0xffffffff]
        k = [k[0] + 0x9E3779B9 & 0xffffffff, k[1] + 0xBB67AE85 & 0xffffffff]
    return c


def fours(key, first, n):
    """Elements of the stream of 32-bit words."""
    return np.array([philox(e // 4, key)[e % 4] for e in range(first, first + n)], np.uint32)


def pairs(key, first, n):
    """Elements of the stream of 64-bit words."""
    blocks = [philox(e // 2 | 1 << 96, key)[e % 2 * 2:][:2] for e in range(first, first + n)]
    return np.array([low | high << 32 for low, high in blocks], np.uint64)


def test_published_vectors():
    # kat_vectors of Random123: philox 4x32 10
    assert philox(0, 0) == [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]
    assert philox(2**128 - 1, 2**64 - 1) == [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]
    assert at(0).bytes(16) == np.array([0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8], "<u4").tobytes()


@pytest.mark.parametrize("first", [0, 1, 2, 3, 2**33 + 5])
def test_words(first):
    key = 0x0123456789abcdef
    expected = fours(key, first, 37)
    assert at(key, first).bytes(4 * 37) == expected.tobytes()
    np.testing.assert_array_equal(at(key, first).bit_generator.random_raw(37).get(), pairs(key, first, 37))
    np.testing.assert_array_equal(at(key, first).random(37, "f").get(), (expected >> 8) * np.float32(2.0**-24))
    np.testing.assert_array_equal(at(key, first).random(37).get(), (pairs(key, first, 37) >> np.uint64(11)) * 2.0**-53)
    np.testing.assert_array_equal(at(key, first).integers(-5, 95, 37, dtype="i2").get(),
                                  (expected.astype(np.uint64) * 100 >> np.uint64(32)).astype("i2") - 5)
    np.testing.assert_array_equal(at(key, first).integers(0, 2**32, 37, dtype="u4").get(), expected)
    np.testing.assert_array_equal(at(key, first).integers(0, 2**64, 37, dtype="u8").get(), pairs(key, first, 37))


def test_rows_are_those_of_the_table():
    text = (TOP / "protocol/distribution.def").read_text()
    rows = re.findall(r"^AD_DISTRIBUTION\((\d+), (\w+), \w+, \w+, (\w+), (\w+), (\w+), (\w+), (\w+), (\w+), ", text, re.M)
    table = {name: (int(id), tuple(pair for pair in zip(p[::2], p[1::2]) if pair[1] != "NONE")) for id, name, *p in rows}
    assert table == {name: (row.id, row.parameters) for name, row in ROWS.items()}


# ---- states ----

CALLS = {
    "random": lambda g, n: g.random(n), "random f4": lambda g, n: g.random(n, "f"),
    "normal": lambda g, n: g.standard_normal(n), "normal f4": lambda g, n: g.normal(1, 2, n, "f"),
    "lognormal": lambda g, n: g.lognormal(0, 1, n), "gumbel": lambda g, n: g.gumbel(0, 1, n, "f"),
    "gamma": lambda g, n: g.gamma(0.5, 1, n), "poisson": lambda g, n: g.poisson(30, n),
    "integers": lambda g, n: g.integers(0, 1000, n), "integers u1": lambda g, n: g.integers(0, 256, n, "u1"),
    "wide": lambda g, n: g.integers(-2**62, 2**63 - 1, n),
}


@pytest.mark.parametrize("name", CALLS)
def test_pieces_are_the_whole(name):
    whole = CALLS[name](ad.random.default_rng(5), 3001).get()
    rng = ad.random.default_rng(5)
    parts = [CALLS[name](rng, n).get() for n in (1, 2, 5, 992, 1, 2000)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


@pytest.mark.parametrize("name", CALLS)
def test_same_seed_same_numbers(name):
    a, b, c = (CALLS[name](ad.random.default_rng(seed), 500).get() for seed in (5, 5, 6))
    np.testing.assert_array_equal(a, b)
    assert (a != c).any()


def test_shape_and_layout_do_not_matter():
    flat = at(3).random(24).get()
    np.testing.assert_array_equal(at(3).random((2, 3, 4)).get(), flat.reshape(2, 3, 4))
    strided = ad.zeros((6, 8))
    assert at(3).random(out=strided[:, ::2]) is not None
    np.testing.assert_array_equal(strided[:, ::2].get(), flat.reshape(6, 4))
    assert not strided[:, 1::2].any()
    fortran = ad.zeros((4, 6)).T
    at(3).standard_normal(out=fortran)
    np.testing.assert_allclose(fortran.get(), at(3).standard_normal((6, 4)).get(), rtol=1e-12)


def test_seeds():
    assert float(ad.random.default_rng([1, 2]).random()) == float(ad.random.default_rng([1, 2]).random())
    sequence = np.random.SeedSequence(7)
    assert float(ad.random.default_rng(sequence).random()) == float(ad.random.default_rng(7).random())
    rng = ad.random.default_rng(7)
    assert ad.random.default_rng(rng) is rng
    assert float(ad.random.Generator(ad.random.Philox4x32(7)).random()) == float(rng.random())
    assert float(ad.random.default_rng().random()) != float(ad.random.default_rng().random())
    with pytest.raises(ValueError, match="non-negative"):
        ad.random.default_rng(-1)
    with pytest.raises(TypeError):
        ad.random.default_rng("x")
    for seed in (5, [1, 2]):
        assert float(ad.random.default_rng(ad.asarray(seed)).random()) == float(ad.random.default_rng(seed).random())
    large = [float(ad.random.RandomState(seed).rand()) for seed in (3, 2**32 + 3, 2**64 - 1, [3, 2**40])]
    assert len(set(large)) == 4 and large[1] == float(ad.random.RandomState(2**32 + 3).rand())
    for seed in (2**64, -1, [1, -1]):
        with pytest.raises(ValueError, match=r"Seed must be between 0 and 2\*\*64 - 1"):
            ad.random.RandomState(seed)
    with pytest.raises(TypeError, match="BitGenerator"):
        ad.random.Generator(3)


def test_state_of_a_generator():
    rng = ad.random.default_rng(1)
    rng.random(5)
    state, copy = rng.bit_generator.state, pickle.loads(pickle.dumps(rng.bit_generator))
    expected = rng.random(4).get()
    rng.bit_generator.state = state
    np.testing.assert_array_equal(rng.random(4).get(), expected)
    np.testing.assert_array_equal(ad.random.Generator(copy).random(4).get(), expected)
    with pytest.raises(ValueError):
        rng.bit_generator.state = {"bit_generator": "MT19937", "state": state["state"]}
    children = rng.spawn(2)
    assert float(children[0].random()) != float(children[1].random())


def test_raw_numbers_that_are_not_given_back():
    one, two = ad.random.Philox4x3210(3, size=1000), ad.random.Philox4x3210(3)
    assert one.random_raw(7, output=False) is None and two.random_raw(7).shape == (7,)
    np.testing.assert_array_equal(one.random_raw(4).get(), two.random_raw(4).get())


def test_seed_of_the_environment(monkeypatch):
    kept = ad.random.get_random_state()
    monkeypatch.setenv("CUPY_SEED", "12")
    ad.random.reset_states()
    assert float(ad.random.rand()) == float(ad.random.RandomState(12).rand())
    ad.random.set_random_state(kept)


def test_state_of_the_module():
    ad.random.seed(4)
    first = ad.random.rand(3, 2).get()
    kept = ad.random.get_random_state()
    ad.random.set_random_state(ad.random.RandomState(4))
    np.testing.assert_array_equal(ad.random.random_sample((3, 2)).get(), first)
    np.testing.assert_array_equal(ad.random.RandomState(4).rand(3, 2).get(), first)
    ad.random.reset_states()
    assert ad.random.get_random_state() is not kept
    with pytest.raises(TypeError):
        ad.random.set_random_state(4)


def test_threads_share_no_numbers():
    rng, found = ad.random.default_rng(2), []
    in_threads(8, lambda number: found.append(rng.integers(0, 2**63, 1000).get()))
    assert np.unique(np.concatenate(found)).size == 8000


# ---- distributions ----

CONTINUOUS = {
    "uniform": [(-1.0, 3.0)], "normal": [(1.0, 2.0)], "lognormal": [(0.5, 0.75)], "exponential": [(2.0,)],
    "laplace": [(1.0, 2.0)], "logistic": [(1.0, 2.0)], "gumbel": [(1.0, 2.0)], "pareto": [(3.0,)], "power": [(2.5,)],
    "rayleigh": [(2.0,)], "weibull": [(1.5,)], "standard_cauchy": [()], "triangular": [(-1.0, 0.5, 2.0), (0, 0, 1)],
    "gamma": [(0.3, 2.0), (1.0, 1.0), (7.5, 0.5)], "beta": [(0.5, 0.6), (2.0, 5.0), (0.5, 3.0)],
    "chisquare": [(1.0,), (6.0,)], "f": [(4.0, 9.0)], "noncentral_chisquare": [(0.7, 2.0), (3.0, 2.0)],
    "noncentral_f": [(3.0, 9.0, 2.0)], "standard_t": [(1.5,), (30.0,)],
    "vonmises": [(0.5, 0.0), (0.5, 1e-6), (0.5, 2.0), (-2.0, 0.1), (0.5, 2e6)], "wald": [(2.0, 3.0), (3.0, 0.1)],
}


def exact(stats, name, p):
    """The distribution in SciPy's terms."""
    return {
        "uniform": lambda: stats.uniform(p[0], p[1] - p[0]), "normal": lambda: stats.norm(*p),
        "lognormal": lambda: stats.lognorm(p[1], 0, np.exp(p[0])), "exponential": lambda: stats.expon(0, *p),
        "laplace": lambda: stats.laplace(*p), "logistic": lambda: stats.logistic(*p), "gumbel": lambda: stats.gumbel_r(*p),
        "pareto": lambda: stats.lomax(*p), "power": lambda: stats.powerlaw(*p), "rayleigh": lambda: stats.rayleigh(0, *p),
        "weibull": lambda: stats.weibull_min(*p), "standard_cauchy": lambda: stats.cauchy(),
        "triangular": lambda: stats.triang((p[1] - p[0]) / (p[2] - p[0]), p[0], p[2] - p[0]),
        "gamma": lambda: stats.gamma(p[0], 0, p[1]), "beta": lambda: stats.beta(*p), "chisquare": lambda: stats.chi2(*p),
        "f": lambda: stats.f(*p), "noncentral_chisquare": lambda: stats.ncx2(*p), "noncentral_f": lambda: stats.ncf(*p),
        "standard_t": lambda: stats.t(*p), "wald": lambda: stats.invgauss(p[0] / p[1], 0, p[1]),
        "poisson": lambda: stats.poisson(*p), "binomial": lambda: stats.binom(*p), "geometric": lambda: stats.geom(*p),
        "hypergeometric": lambda: stats.hypergeom(p[0] + p[1], p[0], p[2]), "logseries": lambda: stats.logser(*p),
        "negative_binomial": lambda: stats.nbinom(*p), "zipf": lambda: stats.zipf(*p),
    }[name]()


CASES = [(name, p) for name, all in CONTINUOUS.items() for p in all]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name, p", CASES, ids=[f"{name}{p}" for name, p in CASES])
def test_continuous(name, p, dtype):
    stats = pytest.importorskip("scipy.stats")
    x = getattr(ad.random.default_rng(11), name)(*p, size=N, dtype=dtype)
    assert x.dtype == dtype
    x = x.get().astype(float)
    assert np.isfinite(x).all()
    if name == "vonmises":
        assert (abs(x) <= np.pi * 1.000001).all()
        if p[1] > 1e3:
            pvalue = stats.kstest((x - p[0]) * np.sqrt(p[1]), stats.norm().cdf).pvalue if dtype == "f8" else 1
        else:
            pvalue = stats.kstest((x - p[0] + np.pi) % (2 * np.pi) - np.pi, stats.vonmises(p[1]).cdf).pvalue
    else:
        pvalue = stats.kstest(x, exact(stats, name, p).cdf).pvalue
    assert pvalue > 1e-4, pvalue


DISCRETE = {
    "poisson": [(0.0,), (0.3,), (9.9,), (10.1,), (3000.0,)],
    "binomial": [(0, 0.5), (10, 0.0), (10, 1.0), (10, 0.3), (20, 0.9), (1000, 0.02), (1000, 0.6)],
    "geometric": [(0.05,), (0.7,), (1.0,)], "hypergeometric": [(3, 5, 4), (300, 40, 9), (300, 500, 200), (500, 30, 400),
                                                               (30, 500, 500), (5, 5, 0), (5, 5, 10)],
    "negative_binomial": [(3.0, 0.4), (0.5, 0.1), (4, 1.0)], "logseries": [(0.3,), (0.95,)], "zipf": [(1.5,), (4.0,)],
}
COUNTS = [(name, p) for name, all in DISCRETE.items() for p in all]


@pytest.mark.filterwarnings("ignore:divide by zero")  # SciPy's geometric of p = 1
@pytest.mark.parametrize("name, p", COUNTS, ids=[f"{name}{p}" for name, p in COUNTS])
def test_discrete(name, p):
    stats = pytest.importorskip("scipy.stats")
    x = getattr(ad.random.default_rng(12), name)(*p, size=N)
    assert x.dtype == np.int64
    x, law = x.get(), exact(stats, name, p)
    edges = np.unique(law.ppf(np.linspace(0.02, 0.98, 40)).astype(np.int64))
    below = np.array([law.cdf(e) for e in edges])
    expected = np.diff(np.concatenate([[0], below, [1]])) * N
    seen = np.bincount(np.searchsorted(edges, x, "left"), minlength=edges.size + 1)
    assert (seen[expected < 1e-6] == 0).all()
    few = expected > 5
    assert abs(seen[~few].sum() - expected[~few].sum()) < 40
    chi = ((seen[few] - expected[few]) ** 2 / expected[few]).sum()
    assert few.sum() < 2 or stats.chi2(few.sum() - 1).sf(chi) > 1e-4


MOMENTS = [("random", (), 0.5, 1 / 12), ("standard_normal", (), 0, 1), ("standard_exponential", (), 1, 1),
           ("standard_gamma", (3.0,), 3, 3), ("uniform", (2.0, 6.0), 4, 16 / 12), ("gamma", (2.0, 3.0), 6, 18),
           ("beta", (2.0, 3.0), 0.4, 0.04), ("chisquare", (5.0,), 5, 10), ("wald", (2.0, 4.0), 2, 2),
           ("laplace", (1.0, 2.0), 1, 8), ("logistic", (1.0, 2.0), 1, 4 * np.pi**2 / 3), ("rayleigh", (1.0,),
           np.sqrt(np.pi / 2), 2 - np.pi / 2), ("poisson", (4.0,), 4, 4), ("poisson", (400.0,), 400, 400),
           ("binomial", (50, 0.5), 25, 12.5), ("geometric", (0.25,), 4, 12), ("negative_binomial", (3, 0.5), 3, 6),
           ("hypergeometric", (20, 30, 25), 10, 25 * 0.4 * 0.6 * 25 / 49)]


@pytest.mark.parametrize("name, p, mean, variance", MOMENTS)
def test_moments(name, p, mean, variance):
    n = 100000
    x = getattr(ad.random.default_rng(13), name)(*p, size=n)
    assert abs(float(x.mean()) - mean) < 5 * np.sqrt(variance / n)
    assert abs(float(x.var()) / variance - 1) < 0.06
    assert abs(float(((x[1:] - mean) * (x[:-1] - mean)).mean())) < 5 * variance / np.sqrt(n)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_tails_of_normal_numbers(dtype):
    x = ad.random.default_rng(14).standard_normal(4_000_000, dtype=dtype)
    for limit, share in [(2, 4.550e-2), (3, 2.700e-3), (4, 6.334e-5)]:
        seen, expected = int((abs(x) > limit).sum()), share * x.size
        assert abs(seen - expected) < 5 * np.sqrt(expected), limit
    assert abs(float((x**3).mean())) < 0.01 and abs(float((x**4).mean()) - 3) < 0.03


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("b", [1, 3])
def test_beta_of_almost_nothing(dtype, b):
    """Parameters by which logarithms cannot be divided leave 0 and 1, each as often as it should be."""
    least = np.nextafter(np.zeros(1, dtype), 1)[0]
    made = ad.random.default_rng(3).beta(least, b * least, 40000, dtype=dtype).get()
    assert set(made) == {0, 1}
    assert abs(made.mean() - 1 / (1 + b)) < 0.015  # six standard deviations


def test_bounds_of_uniform_numbers():
    for dtype in ("f4", "f8"):
        x = ad.random.default_rng(15).random(1_000_000, dtype)
        assert float(x.min()) >= 0 and float(x.max()) < 1
    assert ad.random.default_rng(1).exponential(size=N).min() >= 0


# ---- parameters that are arrays ----

def test_parameters_broadcast():
    rng = ad.random.default_rng(16)
    loc, scale = np.array([[0.0], [100.0], [-50.0]]), np.array([1.0, 2.0, 4.0, 0.0])
    for make in (np.asarray, ad.asarray, np.ndarray.tolist):
        x = rng.normal(make(loc), make(scale), size=(2000, 3, 4))
        assert x.shape == (2000, 3, 4)
        np.testing.assert_allclose(x.mean(axis=0).get(), np.broadcast_to(loc, (3, 4)), atol=0.5)
        np.testing.assert_allclose(x.std(axis=0).get(), np.broadcast_to(scale, (3, 4)), rtol=0.1, atol=1e-6)
    assert rng.normal(ad.asarray(loc), scale).shape == (3, 4)
    assert rng.poisson(ad.asarray(scale, "f4"), (5, 4)).shape == (5, 4)
    assert rng.beta(ad.ones((2, 0)), 1).shape == (2, 0)


@pytest.mark.parametrize("name, p, mean", [("gamma", ([1, 10], 2), [2, 20]), ("poisson", ([1, 100],), [1, 100]),
                                           ("binomial", ([10, 1000], [0.5, 0.1]), [5, 100]), ("f", ([4], [10.0, 20]),
                                           [1.25, 20 / 18]), ("exponential", ([1, 4],), [1, 4]), ("triangular",
                                           (0, [0, 1], 2), [2 / 3, 1]), ("hypergeometric", ([5, 50], 5, 5),
                                           [2.5, 50 / 11]), ("lognormal", ([0, 1], 0.1), [np.exp(0.005), np.exp(1.005)])])
def test_parameters_of_each_element(name, p, mean):
    for make in (list, ad.asarray):
        values = [make(v) if isinstance(v, list) else v for v in p]
        x = getattr(ad.random.default_rng(17), name)(*values, size=(N, 2))
        np.testing.assert_allclose(x.mean(axis=0).get(), mean, rtol=0.05)


def test_arrays_and_numbers_agree():
    for name, p in [("normal", (1.5, 2.0)), ("gumbel", (1.0, 2.0)), ("weibull", (1.5,)), ("gamma", (0.5, 2.0))]:
        for dtype, rtol in (("f4", 2e-3), ("f8", 1e-12)):
            one = getattr(at(9), name)(*p, size=1000, dtype=dtype).get()
            other = getattr(at(9), name)(*(ad.full(1000, v) for v in p), dtype=dtype).get()
            np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol)
    np.testing.assert_array_equal(at(9).integers(-4, 77, 1000).get(),
                                  at(9).integers(ad.full(1000, -4), ad.full(1000, 77)).get())


WRONG = [("normal", (0, -1), "scale < 0"), ("gamma", (-1, 1), "shape < 0"), ("beta", (0, 1), "a <= 0"),
         ("binomial", (5, 1.5), "p < 0, p > 1 or p is NaN"), ("binomial", (-1, 0.5), "n < 0"),
         ("geometric", (0,), "p <= 0, p > 1 or p contains NaNs"), ("poisson", (-1,), "lam < 0"),
         ("logseries", (1,), "p >= 1 or p is NaN"), ("zipf", (1,), "a <= 1 or a is NaN"),
         ("vonmises", (0, -1), "kappa < 0"), ("wald", (1, 0), "scale <= 0"), ("triangular", (2, 1, 3), "left > mode"),
         ("hypergeometric", (1, 1, 3), "ngood + nbad < nsample"), ("exponential", (-1,), "scale < 0"),
         ("chisquare", (0,), "df <= 0"), ("noncentral_f", (1, 1, -1), "nonc < 0"), ("pareto", (-1,), "a <= 0")]


@pytest.mark.parametrize("name, p, words", WRONG, ids=[f"{name}{p}" for name, p, _ in WRONG])
def test_wrong_parameters(name, p, words):
    for rng in (ad.random.default_rng(1), ad.random.RandomState(1)):
        for make in (lambda v: v, lambda v: [1.0 if name != "zipf" else 2.0, v] if name != "triangular" else v):
            with pytest.raises(ValueError, match=re.escape(words)):
                getattr(rng, name)(*map(make, p), size=2)
        with pytest.raises(ValueError, match=re.escape(words)):
            getattr(rng, name)(*(ad.full(2, v, dtype=float) for v in p)).get()


def test_order_of_bounds_on_the_server():
    with pytest.raises(ValueError, match="low >= high"):
        ad.random.default_rng(1).integers(ad.array([1, 2]), ad.array([0, 5])).get()
    with pytest.raises(ValueError, match="low >= high"):
        ad.random.default_rng(1).integers([1, 2], [0, 5])


SAME_AS_NUMPY = [
    "random(3, dtype='i4')", "random(3, dtype='f2')", "standard_normal(3, dtype='i1')", "random(-1)", "random((2, -1))",
    "standard_gamma(2, dtype='i1')", "integers(0)", "integers(5, 5)", "integers(5, 4)", "integers(0, 300, dtype='u1')",
    "integers(-1, 3, dtype='u1')", "integers(0, 10, dtype='f4')", "choice(0)", "choice([])", "choice(-1)", "choice(2.5)",
    "choice(3, 5, replace=False)", "choice(3, p=[.5, .5])", "choice(3, p=[.5, .5, .5])", "choice(3, p=[1.5, -.5, 0])",
    "choice(5, 3, replace=False, p=[.5, .5, 0, 0, 0])", "multinomial(-1, [.5, .5])", "poisson(1e30)",
    "multivariate_normal([0], [[1, 0], [0, 1]])", "multivariate_normal([[0]], [[1]])", "multivariate_normal([0, 0], [1])",
    "normal([0, 0], [1, 1], size=3)", "uniform(0, float('inf'))", "dirichlet([1, -1])", "triangular(0, 4, 3)",
    "triangular(0, 0, 0)", "poisson(float('nan'))", "shuffle(3)"]


@pytest.mark.parametrize("call", SAME_AS_NUMPY)
def test_errors_are_numpys(call):
    with pytest.raises(Exception) as wrong:
        eval("rng." + call, {"rng": np.random.default_rng(1)})
    with pytest.raises(wrong.type) as error:
        eval("rng." + call, {"rng": ad.random.default_rng(1)})
    same = {"normal([0", "shuffle(3", "uniform(0"}  # where NumPy says it at greater length, or in two ways
    assert str(error.value) == str(wrong.value) or call[:9] in same


def test_out():
    rng, out = ad.random.default_rng(1), ad.zeros((3, 4), "f4")
    assert rng.standard_normal(dtype="f4", out=out) is out and out.all()
    rng.random((3, 4), dtype="f4", out=out)
    with pytest.raises(TypeError, match="Expected float64, got float32"):
        rng.random(out=out)
    with pytest.raises(ValueError, match="size must match out.shape"):
        rng.random((2, 4), dtype="f4", out=out)
    with pytest.raises(TypeError):
        rng.random(out=np.zeros(3))


def test_shapes():
    rng = ad.random.default_rng(1)
    for size, shape in [(None, ()), ((), ()), (3, (3,)), ((2, 0), (2, 0)), (np.int64(2), (2,)), ([2, 3], (2, 3))]:
        assert rng.random(size).shape == shape
        assert rng.integers(5, size=size).shape == shape
        assert rng.gamma(2, size=size).shape == shape
    assert rng.random(0).dtype == float and rng.poisson(3, (0,)).dtype == np.int64
    state = ad.random.RandomState(1)
    assert state.rand().shape == () and state.rand(2, 3, dtype="f4").dtype == np.float32
    assert state.randn(2).shape == (2,) and state.tomaxint(3).dtype == np.int64


# ---- integers ----

@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
def test_integers_of_each_type(dtype):
    rng, info = ad.random.default_rng(21), np.iinfo(dtype)
    full = rng.integers(info.min, info.max, 60000, dtype, endpoint=True)
    assert full.dtype == dtype
    full = full.get().astype(float)
    spread = float(info.max) - float(info.min)
    assert full.min() < info.min + spread / 100 and full.max() > info.max - spread / 100
    assert abs((full.mean() - info.min) / spread - 0.5) < 0.01
    few = rng.integers(info.min, info.min + 3, 3000, dtype)
    np.testing.assert_array_equal(np.unique(few.get()), np.array([0, 1, 2]).astype(dtype) + info.min)
    top = rng.integers(info.max, info.max, 5, dtype, endpoint=True)
    np.testing.assert_array_equal(top.get(), np.full(5, info.max, dtype))
    low = ad.array([info.min, info.max - 1], dtype)
    some = rng.integers(low, info.max, (500, 2), dtype, endpoint=True).get()
    assert set(some[:, 1]) == {info.max - 1, info.max} and len(set(some[:, 0])) > 50


@pytest.mark.parametrize("n", [2, 3, 7, 1000, 3 * 2**30, 2**32, 2**32 + 1, 3 * 2**61])
def test_integers_are_even(n):
    x = ad.random.default_rng(22).integers(0, n, N).get()
    assert x.min() >= 0 and x.max() < n
    bins = min(n, 16)
    seen = np.bincount((x.astype(object) * bins // n).astype(int), minlength=bins)
    share = np.diff([-(-k * n // bins) for k in range(bins + 1)]) / n * N
    assert ((seen - share) ** 2 / share).sum() < bins + 6 * np.sqrt(2 * bins)


def test_integers_of_arrays_of_bounds():
    rng = ad.random.default_rng(23)
    x = rng.integers([0, 10, -5], [1, 20, 2**40], (1000, 3)).get()
    assert (x[:, 0] == 0).all() and x[:, 1].min() == 10 and x[:, 1].max() == 19 and x[:, 2].max() > 2**38
    y = rng.integers(0, [2**64, 2**63], (50, 2), dtype="u8").get()
    assert y[:, 0].max() > 2**63 and y[:, 1].max() < 2**63
    flags = rng.integers(0, 2, 1000, bool)
    assert flags.dtype == bool and 400 < int(flags.sum()) < 600


def test_legacy_integers():
    state = ad.random.RandomState(3)
    assert set(state.randint(3, size=100).tolist()) == {0, 1, 2}
    assert set(state.random_integers(3, size=100).tolist()) == {1, 2, 3}
    assert state.randint(0, 10, (2, 2), "u2").dtype == np.uint16
    with pytest.raises(ValueError, match="low >= high"):
        state.randint(5, 4)
    with pytest.raises(ValueError, match="low > high"):
        state.random_integers(5, 4)


# ---- vectors ----

def test_multinomial():
    rng = ad.random.default_rng(41)
    p = [0.2, 0.5, 0.3]
    x = rng.multinomial(20, p, 4000).get()
    assert x.shape == (4000, 3) and (x.sum(axis=1) == 20).all() and x.min() >= 0
    np.testing.assert_allclose(x.mean(axis=0), np.array(p) * 20, rtol=0.03)
    np.testing.assert_allclose(np.cov(x.T)[0, 1], -20 * 0.2 * 0.5, rtol=0.15)
    y = rng.multinomial([3, 7], p).get()
    np.testing.assert_array_equal(y.sum(axis=1), [3, 7])
    assert rng.multinomial(5, [1.0]).tolist() == [5] and rng.multinomial(5, [0.0, 1.0, 0.0]).tolist() == [0, 5, 0]


def test_dirichlet():
    x = ad.random.default_rng(42).dirichlet([1.0, 2.0, 5.0], 4000).get()
    assert x.shape == (4000, 3)
    np.testing.assert_allclose(x.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(x.mean(axis=0), np.array([1, 2, 5]) / 8, rtol=0.05)


@pytest.mark.parametrize("method", ["svd", "eigh", "cholesky"])
def test_multivariate_normal(method):
    cov = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, -0.3], [0.0, -0.3, 0.5]])
    x = ad.random.default_rng(43).multivariate_normal([1, 2, 3], cov, (100, 200), method=method)
    assert x.shape == (100, 200, 3)
    x = x.get().reshape(-1, 3)
    np.testing.assert_allclose(x.mean(axis=0), [1, 2, 3], atol=0.06)
    np.testing.assert_allclose(np.cov(x.T), cov, atol=0.08)
    assert ad.random.default_rng(1).multivariate_normal([0.0], [[1.0]], dtype="f4").dtype == np.float32


def test_functions_of_the_module():
    names = ["beta", "binomial", "bytes", "chisquare", "choice", "default_rng", "dirichlet", "exponential", "f", "gamma",
             "geometric", "get_random_state", "gumbel", "hypergeometric", "laplace", "logistic", "lognormal",
             "logseries", "multinomial", "multivariate_normal", "negative_binomial", "noncentral_chisquare",
             "noncentral_f", "normal", "pareto", "permutation", "poisson", "power", "rand", "randint", "randn", "random",
             "random_integers", "random_sample", "ranf", "rayleigh", "reset_states", "sample", "seed",
             "set_random_state", "shuffle", "standard_cauchy", "standard_exponential", "standard_gamma",
             "standard_normal", "standard_t", "triangular", "uniform", "vonmises", "wald", "weibull", "zipf"]
    for name in names:
        assert getattr(ad.random, name).__doc__, name
    ad.random.seed(5)
    assert ad.random.normal(3, 1, size=4).shape == (4,) and ad.random.randint(10, size=3).dtype == np.int64


def test_calls_that_make_no_sense():
    def call(row, *inputs, **options):
        return ad._core.call("random", inputs, (row, 1, 0), **{"dtype": float, "shape": 3, **options})

    assert call(2, 0.0, 1.0).shape == (3,)
    with pytest.raises(NotImplementedError, match="no distribution 63"):
        call(63)
    with pytest.raises(TypeError, match="uniform has no loop for int32"):
        call(2, 0, 1, dtype="i4")
    with pytest.raises(ValueError, match="uniform takes 2 parameters, not 1"):
        call(2, 0.0)
    with pytest.raises(TypeError, match="loc of normal must be real"):
        call(3, 1j, 1.0)
    with pytest.raises(ValueError):
        call(3, ad.zeros(4), 1.0)
    with pytest.raises(ValueError, match="the output must be described"):
        call(3, 0.0, 1.0, shape=None)
    with pytest.raises(TypeError, match="out or shape"):
        call(3, 0.0, 1.0, out=ad.zeros(3))
    with pytest.raises(ValueError, match="negative dimensions"):
        call(3, 0.0, 1.0, shape=-1)
    with pytest.raises(ValueError, match="the shape of its output cannot be chosen"):
        ad._core.call("nonzero", [ad.zeros(3)], shape=3)
