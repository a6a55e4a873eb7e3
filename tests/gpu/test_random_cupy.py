"""Random numbers beside CuPy's, on the same GPU: for a seed the same ones.

Words, integers and uniform numbers are the same bits. Numbers that go through a logarithm or a root may be rounded
otherwise, since another compiler has contracted products and sums. A comparison of two such numbers then decides
otherwise once in a great while: FEW says how many of all numbers may be others.
"""
import numpy as np
import pytest

import arrayd as ad

cupy = pytest.importorskip("cupy", reason="CuPy is not installed")

SEEDS = [0, 1, 12345, 2**40 + 7]
SIZES = (5, (30, 7), 70_001, 3, 1)  # odd ones after one another, as a pair of normal numbers is drawn at once
CLOSE = {np.dtype("f8"): 1e-12, np.dtype("f4"): 1e-5}
FEW = 1e-5


@pytest.fixture(autouse=True, scope="module")
def usable():
    try:
        cupy.random.RandomState(0).rand(1)
    except Exception as error:
        pytest.skip(f"CuPy cannot run here: {error}")


def both(draw):
    """Return what a function of `random` gives with arrayd's and with CuPy's, as NumPy's arrays."""
    ours, theirs = draw(ad.random, ad.asarray), draw(cupy.random, cupy.asarray)
    ours, theirs = ([x] if not isinstance(x, list) else x for x in (ours, theirs))
    return [(x.get(), y.get()) for x, y in zip(ours, theirs, strict=True)]


def same(draw, exact, few=0.0):
    """Equal, or close; few: the share that may differ."""
    for k, (x, y) in enumerate(both(draw)):
        assert x.shape == y.shape and x.dtype == y.dtype, (k, x.shape, y.shape, x.dtype, y.dtype)
        rtol = 0 if exact or x.dtype.kind != "f" else CLOSE[x.dtype]
        wrong = ~np.isclose(x, y, rtol=rtol, atol=rtol, equal_nan=True)
        assert wrong.sum() <= few * x.size, (
            f"array {k}: {wrong.sum()} of {x.size} differ, from element {np.flatnonzero(wrong)[:5]} on: "
            f"{x[wrong][:5]} and {y[wrong][:5]}")


# ---- Generator: cuRAND's device API ----

KINDS = ["XORWOW", "MRG32k3a", "Philox4x3210"]
EXACT = ("random", "integers", "uniform")
GENERATOR = [
    "random()", "random(dtype='f4')", "uniform(-2.0, 5.0)", "uniform(0.1, 0.7, dtype='f4')", "integers(0, 100)",
    "integers(-5, 2**40)", "integers(0, 256)", "integers(7)", "integers(3, 4)", "integers(0, 2**32)",
    "integers(-2**63, 2**63 - 1)", "integers(0, 2**64, dtype='u8')", "integers(-100, 100, dtype='i1')",
    "integers(0, 65535, dtype='u2', endpoint=True)", "integers(0, 2**31, dtype='u4')", "standard_normal()",
    "standard_normal(dtype='f4')", "standard_exponential()", "standard_exponential(dtype='f4')", "exponential(2.0)",
    "standard_gamma(0.4)", "standard_gamma(1.0)", "standard_gamma(5.5)", "standard_gamma(2.5, dtype='f4')",
    "gamma(2.5, 3.0)", "beta(0.4, 0.6)", "beta(3.0, 0.5)", "beta(2.0, 2.5, dtype='f4')", "chisquare(3.0)", "f(4.0, 7.0)",
    "power(2.5)", "poisson(0.0)", "poisson(3.0)", "poisson(200.0)", "poisson(1e7)", "binomial(20, 0.3)",
    "binomial(5000, 0.7)", "binomial(10**6, 0.5)", "geometric(0.6)", "geometric(0.02)", "hypergeometric(30, 40, 9)",
    "hypergeometric(400, 300, 150)", "hypergeometric(40, 30, 66)", "logseries(0.3)", "logseries(0.99)"]


def call(holder, text, size):
    """holder.text with size as one more argument."""
    return eval(f"holder.{text[:-1]}{'' if text.endswith('()') else ', '}size=size)", {"holder": holder, "size": size})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", GENERATOR)
def test_generator(kind, text):
    """Some numbers, more than there are states, and some more from where that has left them."""
    def draw(random, _):
        rng = random.Generator(getattr(random, kind)(7))
        return [call(rng, text, size) for size in (5, 700_001, (30, 20))]
    exact = text.startswith(EXACT)
    same(draw, exact, 0 if exact else FEW)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [*SEEDS, [1, 2, 3]])
def test_seeds_of_generators(kind, seed):
    def draw(random, _):
        rng = random.Generator(getattr(random, kind)(seed))
        return [rng.random(10_001, dtype=np.float32), rng.random(3), rng.standard_normal(301), rng.standard_normal(302),
                rng.standard_normal(7, dtype="f4"), rng.standard_normal(8), rng.standard_normal(9, dtype="f4"),
                rng.integers(0, 1000, 5), rng.poisson(4.0, 501), rng.standard_gamma(3.0, 77), rng.random((3, 5, 7))]
    same(draw, False, FEW)


# Where the number of states is no multiple of 256, CuPy's kernels go beyond them: threads of the last block read what
# lies behind the states, write into others' elements and write states into the memory of other arrays.
@pytest.mark.parametrize("kind", KINDS)
def test_raw_and_size(kind):
    same(lambda random, _: getattr(random, kind)(3, size=1024).random_raw(5001), True)
    same(lambda random, _: random.Generator(getattr(random, kind)([1, 2, 3], size=256)).random(4501), True)

    def draw(random, _):
        bits = getattr(random, kind)(5)
        return [bits.random_raw(), bits.random_raw(3), bits.random_raw(300_001), bits.random_raw((5, 7))]
    same(draw, True)


@pytest.mark.parametrize("kind", KINDS)
def test_parameters_of_each_element(kind):
    lam, shape = np.linspace(0.1, 60, 5000), np.linspace(0.2, 9, 5000).reshape(50, 100)
    n = np.arange(5000)

    def draw(random, asarray):
        rng = random.Generator(getattr(random, kind)(4))
        return [rng.poisson(asarray(lam)), rng.standard_gamma(asarray(shape)), rng.standard_gamma(asarray(shape)[::2, ::-3]),
                rng.gamma(asarray(shape), asarray(shape)), rng.beta(asarray(shape), asarray(shape[0])),
                rng.chisquare(asarray(shape)), rng.f(asarray(shape), asarray(shape)), rng.binomial(asarray(n), asarray(lam / 60)),
                rng.geometric(asarray(lam / 60)), rng.logseries(asarray(lam / 61)), rng.power(asarray(lam)),
                rng.hypergeometric(asarray(n), asarray(n[::-1].copy()), asarray(n // 3)),
                rng.dirichlet(asarray(shape[0]), 11), rng.poisson(asarray(lam[:100]), (20, 100))]
    same(draw, False, 1e-3)
    same(lambda random, asarray: random.Generator(getattr(random, kind)(4)).uniform(asarray(-shape), asarray(shape)), True)


# ---- the older functions: cuRAND's host API ----

LEGACY_EXACT = ("rand(", "random_sample", "uniform", "randint", "random_integers", "tomaxint")
LEGACY_REAL = [
    "random_sample()", "uniform(-1.0, 4.0)", "uniform(0.1, 0.7)", "standard_normal()", "normal(1.5, 2.5)", "normal(0.1, 0.7)",
    "normal(1e5, 3e-3)", "lognormal(0.5, 0.7)", "lognormal()", "exponential(2.0)", "exponential(0.3)",
    "standard_exponential()", "laplace(1.0, 2.0)", "laplace(0.1, 0.3)", "gumbel(1.0, 2.0)", "gumbel(0.1, 0.3)", "pareto(3.0)",
    "pareto(0.7)", "power(2.0)", "power(0.3)", "rayleigh(1.5)", "weibull(1.5)", "weibull(0.3)", "standard_cauchy()",
    "triangular(-1.0, 0.5, 2.0)", "triangular(0.1, 0.3, 0.7)", "wald(2.0, 3.0)", "wald(0.1, 0.3)"]
LEGACY_WHOLE = [
    "randint(10)", "randint(1)", "randint(-5, 2**40)", "randint(0, 3 << 30)", "randint(0, 2**32)", "randint(-2**63, 2**63 - 1)",
    "randint(0, 5 << 61, dtype='u8')", "randint(0, 256, dtype='u1')", "randint(-100, 100, dtype='i1')",
    "randint(0, 1000, dtype='i2')", "randint(0, 2**31, dtype='u4')", "random_integers(3, 9)", "random_integers(8)", "tomaxint()"]


def draw_legacy(text, seed, dtype=None):
    def draw(random, _):
        random.seed(seed)
        holder = random.get_random_state() if text.startswith("tomaxint") else random
        if dtype is None:
            return [call(holder, text, size) for size in SIZES]
        return [call(holder, text[:-1] + ("" if text.endswith("()") else ", ") + f"dtype={dtype!r})", size) for size in SIZES]
    return draw


# float32 numbers of heavy tails, or made in a difference, multiply the rounding of what they are made from.
COARSE = {"standard_cauchy": 1e-3, "wald": 1e-2, "pareto": 1e-2, "power": 1e-2, "weibull": 1e-2, "laplace": 1e-3, "gumbel": 1e-3}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("text", LEGACY_REAL)
def test_real_functions_of_the_module(seed, dtype, text):
    exact = text.startswith(LEGACY_EXACT)
    few = COARSE.get(text.split("(")[0], FEW) if dtype == "f4" else FEW
    same(draw_legacy(text, seed, dtype), exact, 0 if exact else few)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("text", LEGACY_WHOLE)
def test_whole_functions_of_the_module(seed, text):
    same(draw_legacy(text, seed), True)


# CuPy's own algorithms, by a sequence of XOR128 for each element.
ELEMENTS = [
    "beta(0.5, 0.7)", "beta(2.0, 0.5)", "chisquare(3.0)", "dirichlet([1.0, 2.0, 0.5])", "f(4.0, 7.0)", "gamma(0.3, 2.0)",
    "gamma(1.0)", "gamma(4.5, 0.7)", "logistic(1.5, 2.0)", "noncentral_chisquare(3.0, 2.0)", "noncentral_chisquare(0.5, 2.0)",
    "noncentral_f(3.0, 5.0, 2.0)", "standard_gamma(2.5)", "standard_t(5.0)", "vonmises(0.5, 4.0)", "vonmises(3.0, 0.5)",
    "binomial(10, 0.3)", "binomial(1000, 0.4)", "binomial(1000, 0.9)", "geometric(0.5)", "geometric(0.01)",
    "hypergeometric(30, 40, 9)", "hypergeometric(300, 400, 90)", "hypergeometric(400, 300, 500)", "logseries(0.6)",
    "logseries(0.99)", "negative_binomial(5, 0.3)", "poisson(3.0)", "poisson(40.0)", "poisson(1e7)", "zipf(1.5)", "zipf(4.0)"]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("text", ELEMENTS)
def test_functions_of_elements(seed, text):
    def draw(random, asarray):
        random.seed(seed)
        return [call(random, text, size) for size in SIZES if text[0] != "d" or isinstance(size, int)]
    same(draw, False, 1e-4)


def test_elements_of_arrays():
    a, n = np.linspace(0.2, 9, 301), np.arange(301)

    def draw(random, asarray):
        random.seed(34)
        a_, n_ = asarray(a), asarray(n)
        return [random.beta(a_, a_[::-1]), random.gamma(a_, a_), random.poisson(a_), random.binomial(n_, a_ / 10),
                random.hypergeometric(n_ + 1, n_[::-1] + 1, n_ // 2 + 1), random.geometric(a_ / 9), random.chisquare(a_, (3, 301)),
                random.standard_t(a_), random.choice(1000, 77, replace=False), random.choice(2**40, 7, replace=False)]
    same(draw, False, 1e-2)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_rand_and_randn(dtype):
    def draw(random, _):
        random.seed(31)
        return [function(*shape, dtype=dtype) for shape in ((), (5,), (3, 7), (70_001,), (2, 3, 5))
                for function in (random.rand, random.randn)]
    same(draw, False, FEW)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_functions_of_arrays(dtype):
    loc, scale = np.linspace(-3, 3, 301).astype(dtype), np.linspace(0.1, 5, 301).astype(dtype)

    def draw(random, asarray):
        random.seed(32)
        a, b = asarray(loc), asarray(scale)
        more = {"dtype": dtype}
        return [random.normal(a, b, **more), random.normal(a, 0.7, **more), random.normal(0.1, b, **more),
                random.uniform(a, b + 3, **more), random.lognormal(a, b, **more), random.exponential(b, **more),
                random.laplace(a, b, **more), random.gumbel(a, b, **more), random.rayleigh(b, **more),
                random.weibull(b, **more), random.wald(b, b, **more), random.normal(a, b, (3, 301), **more)]
    same(draw, False, 1e-2 if dtype == "f4" else FEW)


@pytest.mark.parametrize("dtype", ["i4", "i8", "u4", "u8"])
@pytest.mark.parametrize("seed", SEEDS)
def test_integers_between_arrays(dtype, seed):
    most = np.iinfo(dtype).max
    high = np.random.default_rng(8).integers(most // 2 + 2, most, 5001, dtype=dtype)
    low = np.arange(5001).astype(dtype)

    def draw(random, asarray):
        random.seed(seed)
        return [random.randint(asarray(low), asarray(high), dtype=dtype), random.rand(3), random.randint(asarray(high), dtype=dtype),
                random.randint(asarray(low), asarray(low) + asarray(np.array(7, dtype)), dtype=dtype), random.rand(3)]
    same(draw, True)


@pytest.mark.parametrize("seed", SEEDS)
def test_orders_and_choices(seed):
    def draw(random, asarray):
        random.seed(seed)
        x, y = asarray(np.arange(1001.0)), asarray(np.arange(30).reshape(10, 3))
        random.shuffle(x)
        random.shuffle(y)
        return [x, y, random.permutation(77), random.permutation(y), random.choice(50, 33), random.choice(x, (7, 5)),
                random.choice(4, 101, p=asarray(np.array([0.1, 0.2, 0.3, 0.4]))), random.choice(x, 21, replace=False),
                random.multinomial(20, asarray(np.array([0.2, 0.5, 0.3])), (3, 5)), random.rand(5)]
    same(draw, True)


def test_normal_vectors():
    mean, cov = np.array([1.0, 2.0, 3.0]), np.array([[2.0, 0.5, 0.0], [0.5, 1.0, -0.3], [0.0, -0.3, 0.5]])

    def draw(random, asarray):
        random.seed(33)
        return [random.multivariate_normal(asarray(mean), asarray(cov), 1001), random.multivariate_normal(asarray(mean), asarray(cov))]
    same(draw, False)


def test_functions_one_after_another():
    def draw(random, _):
        random.seed(6)
        return [random.rand(10), random.randn(7), random.randint(0, 1000, 5001), random.random_sample(5, dtype=np.float32),
                random.permutation(1000), random.rand(4096, 3), random.randn(8193), random.rand(2)]
    same(draw, False)


@pytest.mark.parametrize("method", [100, 101, 121])
@pytest.mark.parametrize("seed", [*SEEDS, np.arange(4)], ids=str)
def test_another_method(method, seed):
    def draw(random, _):
        state = random.RandomState(seed, method)
        return [state.rand(100_001), state.randn(10), state.random_sample(7, np.float32), state.tomaxint(5), state.randn(90_001)]
    same(draw, False, FEW)
