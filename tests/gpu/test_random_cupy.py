"""Random numbers beside CuPy's, on the same GPU: for a seed the same ones."""
import numpy as np
import pytest

import arrayd as ad

cupy = pytest.importorskip("cupy", reason="CuPy is not installed")

SEEDS = [0, 1, 12345, 2**40 + 7]


@pytest.fixture(autouse=True, scope="module")
def usable():
    try:
        cupy.random.RandomState(0).rand(1)
    except Exception as error:
        pytest.skip(f"CuPy cannot run here: {error}")


def both(draw):
    """What a function of `random` gives with arrayd's and with CuPy's, as NumPy's arrays."""
    ours, theirs = draw(ad.random, ad.asarray), draw(cupy.random, cupy.asarray)
    ours, theirs = ([x] if not isinstance(x, list) else x for x in (ours, theirs))
    return [(x.get(), y.get()) for x, y in zip(ours, theirs)]


def same(draw, exact, rtol=1e-12, most=0.0):
    """Equal, or close; most: the share that may differ, as where an acceptance is decided by a rounding."""
    for x, y in both(draw):
        assert x.shape == y.shape and x.dtype == y.dtype
        if exact:
            np.testing.assert_array_equal(x, y)
        else:
            wrong = ~np.isclose(x, y, rtol=rtol, atol=rtol)
            assert wrong.mean() <= most, (x[wrong][:5], y[wrong][:5], wrong.sum())


KINDS = ["XORWOW", "MRG32k3a", "Philox4x3210"]
# name, arguments, whether the numbers are the same bits
GENERATOR = [("random", (), True), ("integers", (0, 100), True), ("integers", (-5, 2**40), True), ("integers", (0, 256), True),
             ("standard_normal", (), False), ("standard_exponential", (), False), ("standard_gamma", (0.4,), False),
             ("standard_gamma", (1.0,), False), ("standard_gamma", (5.5,), False), ("beta", (0.4, 0.6), False),
             ("beta", (3.0, 0.5), False), ("poisson", (3.0,), True), ("poisson", (200.0,), True),
             ("binomial", (20, 0.3), True), ("binomial", (5000, 0.7), True), ("geometric", (0.6,), True),
             ("geometric", (0.02,), True), ("hypergeometric", (30, 40, 9), True), ("hypergeometric", (400, 300, 150), True),
             ("logseries", (0.9,), True), ("chisquare", (3.0,), False), ("f", (4.0, 7.0), False), ("power", (2.5,), False),
             ("exponential", (2.0,), False), ("gamma", (2.5, 3.0), False), ("uniform", (-2.0, 5.0), True)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name, p, exact", GENERATOR, ids=[f"{name}{p}" for name, p, _ in GENERATOR])
def test_generator(kind, name, p, exact):
    """Some numbers, more than there are states, and some more from where that has left them."""
    def draw(random, _):
        rng = random.Generator(getattr(random, kind)(7))
        return [getattr(rng, name)(*p, size=size) for size in (5, 700_001, (30, 20))]
    # Counts are decided by comparisons of what is rounded: of millions of numbers a few may fall on the other side.
    same(draw, exact and name in ("random", "integers", "uniform"), 1e-9, 1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_generator_of_float32(kind, seed):
    def draw(random, _):
        rng = random.Generator(getattr(random, kind)(seed))
        return [rng.random(10_000, dtype=np.float32), rng.random(3)]
    same(draw, True)

    def normal(random, _):
        return random.Generator(getattr(random, kind)(seed)).standard_normal(300_000, dtype=np.float32)
    same(normal, False, 1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_raw_and_size(kind):
    same(lambda random, _: getattr(random, kind)(3, size=1000).random_raw(5000), True)
    same(lambda random, _: random.Generator(getattr(random, kind)([1, 2, 3], size=100)).random(450), True)


@pytest.mark.parametrize("kind", KINDS)
def test_parameters_of_each_element(kind):
    lam, shape = np.linspace(0.1, 60, 5000), np.linspace(0.2, 9, 5000).reshape(50, 100)
    same(lambda random, asarray: [random.Generator(getattr(random, kind)(4)).poisson(asarray(lam))], False, 1e-12, 1e-3)
    same(lambda random, asarray: random.Generator(getattr(random, kind)(4)).standard_gamma(asarray(shape)), False, 1e-9, 1e-3)
    same(lambda random, asarray: random.Generator(getattr(random, kind)(4)).uniform(asarray(-shape), asarray(shape)), True)


LEGACY = [("rand", (), {}, True), ("random_sample", (), {}, True), ("randn", (), {}, False), ("uniform", (-1.0, 4.0), {}, True),
          ("standard_normal", (), {}, False), ("normal", (1.5, 2.5), {}, False), ("lognormal", (0.5, 0.7), {}, False),
          ("exponential", (2.0,), {}, False), ("standard_exponential", (), {}, False), ("laplace", (1.0, 2.0), {}, False),
          ("gumbel", (1.0, 2.0), {}, False), ("pareto", (3.0,), {}, False), ("power", (2.0,), {}, False),
          ("rayleigh", (1.5,), {}, False), ("weibull", (1.5,), {}, False), ("standard_cauchy", (), {}, False),
          ("triangular", (-1.0, 0.5, 2.0), {}, False), ("wald", (2.0, 3.0), {}, False), ("randint", (10,), {}, True),
          ("randint", (-5, 2**40), {}, True), ("randint", (0, 3 << 30), {}, True), ("randint", (0, 256), {"dtype": "u1"}, True),
          ("tomaxint", (), {}, True)]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name, p, more, exact", LEGACY, ids=[f"{name}{p}" for name, p, *_ in LEGACY])
def test_functions_of_the_module(seed, name, p, more, exact):
    def draw(random, _):
        random.seed(seed)
        state = random.get_random_state()
        function = getattr(state, name) if name == "tomaxint" else getattr(random, name)
        sizes = (5, (30, 7), 100_000, 3)
        if name in ("rand", "randn"):
            return [function(*np.atleast_1d(size).tolist()) for size in sizes]
        return [function(*p, size=size, **more) for size in sizes]
    same(draw, exact, 1e-9)


@pytest.mark.parametrize("name", ["random_sample", "standard_normal", "standard_exponential", "uniform"])
def test_functions_of_float32(name):
    def draw(random, _):
        random.seed(5)
        return [getattr(random, name)(size=size, dtype=np.float32) for size in (11, 50_000)]
    same(draw, name in ("random_sample", "uniform"), 2e-5)


def test_functions_one_after_another():
    def draw(random, _):
        random.seed(6)
        return [random.rand(10), random.randn(7), random.randint(0, 1000, 5001), random.random_sample(5, dtype=np.float32),
                random.permutation(1000), random.rand(4096, 3), random.randn(8193), random.rand(2)]
    same(draw, False, 1e-9)


def test_another_method():
    def draw(random, _):
        state = random.RandomState(9, 121)
        return [state.rand(100_001), state.randn(10), state.random_sample(7, np.float32)]
    same(draw, False, 1e-9)
