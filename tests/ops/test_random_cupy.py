"""cuRAND's generators give cuRAND's numbers, and RandomState and Generator those that CuPy makes of them."""
import ctypes
import json
import os
import pathlib
import pickle
import re

import numpy as np
import pytest

import arrayd as ad
from arrayd.random import _curand
from arrayd.random._curand import DEVICE, HOST, HOST_STATES, MRG32K3A, States, XORWOW

HERE = pathlib.Path(__file__).resolve().parent
VECTORS = json.loads((HERE / "curand_vectors.json").read_text())
# Parameters that a vector leaves out.
REST = {"uniform": [0.0, 1.0], "normal": [0.0, 1.0], "exponential": [1.0]}
# __sincosf of a GPU and sinf of a CPU differ where the angle is near a multiple of pi.
CLOSE = {"rtol": 1e-6, "atol": 2e-6}


def same(name, dtype, x, expected):
    """Words, uniform numbers and counts are the same bits; what goes through a logarithm is rounded otherwise."""
    if dtype == "float32" and name in ("normal", "lognormal"):
        np.testing.assert_allclose(x, np.array(expected, dtype), **CLOSE)
    elif name in ("bits", "uniform", "upto1") or dtype[0] in "iu":
        np.testing.assert_array_equal(x, np.array(expected).astype(dtype))
    else:
        np.testing.assert_allclose(x, expected, rtol=2e-14, atol=1e-14 if name == "normal" else 1e-300)  # a mean is added


@pytest.mark.parametrize("case", VECTORS["device"], ids=lambda c: "{}-{}-{}-{}-{}".format(*c[:4], *map(str, c[4:5])))
def test_device_order(case):
    generator, seed, name, dtype, parameters, expected = case
    parameters = [0, int(*parameters)] if name == "integers" else [*parameters, 1.0] if name == "gamma" else (
        parameters or REST.get(name, []))
    states = States(generator, seed, VECTORS["states"], DEVICE)
    x = states.draw(name, [float(p) if name != "integers" else p for p in parameters], VECTORS["count"], dtype).get()
    same(name, dtype, x[VECTORS["at"]], expected)


@pytest.mark.parametrize("generator, seed, steps", VECTORS["host"], ids=lambda v: str(v) if isinstance(v, int) else "")
def test_host_order(generator, seed, steps):
    states = States(generator, seed, HOST_STATES[generator], HOST)
    for name, dtype, parameters, count, at, expected in steps:
        same(name, dtype, states.draw(name, parameters, count, dtype).get()[at], expected)


class Curand:
    """A host generator of cuRAND's library."""

    def __init__(self, library, kind, seed):
        self.library, self.handle = library, ctypes.c_void_p()
        assert library.curandCreateGeneratorHost(ctypes.byref(self.handle), kind) == 0
        assert library.curandSetPseudoRandomGeneratorSeed(self.handle, ctypes.c_ulonglong(seed)) == 0

    def draw(self, function, count, dtype, *more):
        x = np.empty(count, dtype)
        call = getattr(self.library, "curandGenerate" + function)
        assert call(self.handle, x.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(count), *more) == 0
        return x


@pytest.mark.parametrize("seed", [1, 77, 2**40 + 1])
def test_as_the_library_here(seed):
    try:
        library = ctypes.CDLL("libcurand.so.10")
    except OSError:
        try:
            library = ctypes.CDLL("/usr/local/cuda/lib64/libcurand.so.10")
        except OSError:
            pytest.skip("there is no libcurand")
    theirs, ours = Curand(library, 100, seed), States(XORWOW, seed, 4096, HOST)
    rng = np.random.default_rng(seed)
    for _ in range(12):
        count = int(rng.integers(1, 3000)) * 2
        name, function, dtype = [("bits", "", "uint32"), ("upto1", "UniformDouble", "float64"),
                                 ("normal", "NormalDouble", "float64"), ("upto1", "Uniform", "float32")][rng.integers(4)]
        p = [1.5, 2.5] if name == "normal" else []
        expected = theirs.draw(function, count, dtype, *map(ctypes.c_double, p))
        same(name, dtype, ours.draw(name, p, count, dtype).get(), expected)


# ---- Generator ----

GENERATORS = [ad.random.XORWOW, ad.random.MRG32k3a, ad.random.Philox4x3210]


def words(kind, seed, size, count):
    """The words of a bit generator's states, by themselves."""
    number = int(np.random.SeedSequence(seed).generate_state(1, np.uint32)[0])
    return States(GENERATORS.index(kind), number, size, DEVICE).draw("bits", [], count, "uint32").get()


@pytest.mark.parametrize("kind", GENERATORS)
def test_integers_are_masked_words(kind):
    word = words(kind, 5, 100, 800).reshape(8, 100)
    x = ad.random.Generator(kind(5, size=100)).integers(-3, 5, 100, dtype="i1").get()  # 8 of them: none is drawn again
    np.testing.assert_array_equal(x, (word[0] & 7).astype("i1") - 3)
    y = ad.random.Generator(kind(5, size=100)).integers(0, 2**33, 100, dtype="u8").get()
    np.testing.assert_array_equal(y, (word[0].astype("u8") << 32 | word[1]) & np.uint64(2**33 - 1))
    z = ad.random.Generator(kind(5, size=100)).integers(10, 15, 100).get()
    expected = [next(w & 7 for w in column if w & 7 < 5) + 10 for column in word.T]
    np.testing.assert_array_equal(z, expected)
    assert ad.random.Generator(kind(5)).integers(4, 5, 3).tolist() == [4, 4, 4]


@pytest.mark.parametrize("kind", GENERATORS)
def test_raw_numbers_are_signed_words(kind):
    bits = kind(6, size=50)
    np.testing.assert_array_equal(bits.random_raw(120).get(), words(kind, 6, 50, 120).view(np.int32))
    assert bits.random_raw(3, output=False) is None


@pytest.mark.parametrize("kind", GENERATORS)
def test_more_states_are_made_when_they_are_drawn_from(kind):
    """Numbers that are drawn piece by piece, from few states first, are those that all states give at once."""
    one, two = (ad.random.Generator(kind(7, size=5000)) for _ in range(2))
    few, many = one.random(10).get(), one.random(5000).get()
    two_few = two.random(5000).get()
    np.testing.assert_array_equal(few, two_few[:10])
    np.testing.assert_array_equal(many[10:], two_few[10:])
    np.testing.assert_array_equal(many[:10], two.random(10).get())


@pytest.mark.parametrize("kind", GENERATORS)
def test_made_of_others_as_in_cupy(kind):
    def rng():
        return ad.random.Generator(kind(8, size=64))

    np.testing.assert_allclose(rng().chisquare(3.0, 200).get(), rng().standard_gamma(1.5, 200).get() * 2, rtol=1e-15)
    again = rng()
    x, y = again.chisquare(4.0, 200), again.chisquare(6.0, 200)
    np.testing.assert_allclose(rng().f(4.0, 6.0, 200).get(), (x * 6.0 / (y * 4.0)).get(), rtol=1e-15)
    e = rng().standard_exponential(200).get()
    np.testing.assert_allclose(rng().power(2.5, 200).get(), (1 - np.exp(-e)) ** (1 / 2.5), rtol=1e-12)
    np.testing.assert_allclose(rng().gamma(ad.asarray([1.5, 2.0]), 3.0).get(),
                               rng().standard_gamma(ad.asarray([1.5, 2.0])).get() * 3, rtol=1e-15)
    np.testing.assert_array_equal(rng().exponential(2.0, 100, "f4").get(), rng().exponential(2.0, 100).get().astype("f4"))


@pytest.mark.parametrize("kind", GENERATORS)
def test_parameters_of_each_element(kind):
    lam = np.linspace(0.5, 50, 300).reshape(3, 100)
    x = ad.random.Generator(kind(9, size=300)).poisson(ad.asarray(lam)).get()
    y = ad.random.Generator(kind(9, size=300)).poisson(lam).get()
    np.testing.assert_array_equal(x, y)
    one_by_one = [int(ad.random.Generator(kind(9, size=300)).poisson(v, 300).get()[i]) for i, v in
                  [(0, lam[0, 0]), (150, lam[1, 50]), (299, lam[2, 99])]]
    assert [x[0, 0], x[1, 50], x[2, 99]] == one_by_one
    with pytest.raises(ValueError, match="poisson: lam < 0"):
        ad.random.Generator(kind(9)).poisson(ad.asarray([1.0, -1.0])).get()


@pytest.mark.parametrize("kind", GENERATORS)
def test_state(kind):
    rng = ad.random.Generator(kind(10, size=32))
    rng.standard_normal(41)
    state, copied = rng.bit_generator.state, pickle.loads(pickle.dumps(rng))
    x = rng.random(50).get()
    np.testing.assert_array_equal(copied.random(50).get(), x)
    rng.bit_generator.state = state
    np.testing.assert_array_equal(rng.random(50).get(), x)
    with pytest.raises(ValueError, match="size"):
        kind(1, size=0)


# ---- RandomState ----

def host(seed, *rows, generator=XORWOW):
    """Numbers of the host API: of each (row, parameters, count, type)."""
    states = States(generator, seed, HOST_STATES[generator], HOST)
    return [states.draw(name, list(p), count, dtype).get() for name, p, count, dtype in rows]


def test_functions_of_the_module():
    ad.random.seed(0)
    x, y, z = ad.random.rand(5).get(), ad.random.randn(3).get(), ad.random.random_sample((2, 3), "f4").get()
    u, n, f = host(0, ("uniform", (0.0, 1.0), 5, "float64"), ("normal", (0.0, 1.0), 4, "float64"),
                   ("uniform", (0.0, 1.0), 6, "float32"))
    np.testing.assert_array_equal(x, u)
    np.testing.assert_array_equal(y, n[:3])
    np.testing.assert_array_equal(z, f.reshape(2, 3))


def test_another_method():
    from arrayd.cuda import curand
    x = ad.random.RandomState(3, curand.CURAND_RNG_PSEUDO_MRG32K3A).rand(7).get()
    np.testing.assert_array_equal(x, host(3, ("uniform", (0.0, 1.0), 7, "float64"), generator=MRG32K3A)[0])


def interval(seed, most, count, word):
    """CuPy's integers from 0 to most, from the words of cuRAND."""
    states = States(XORWOW, seed, 4096, HOST)
    size = np.dtype(word).itemsize // 4

    def draw(n):
        return states.draw("bits", [], n * size, "uint32").get().view(word)

    made = draw(count)
    if most & most + 1 == 0:
        return made & np.array(most, word)
    top = 1 << 8 * size * 4
    limit = np.array(top - 1 - top % (most + 1), word)
    wrong = np.flatnonzero(made > limit)
    while wrong.size:
        more = draw(max(2 * wrong.size, 1024))
        more = more[more <= limit][:wrong.size]
        made[wrong[:more.size]] = more
        wrong = wrong[more.size:]
    return made % np.array(most + 1, word)


@pytest.mark.parametrize("most, word, dtype", [(99, "u4", "i8"), (255, "u4", "u1"), (3 << 30, "u4", "i8"),
                                               (2**31 + 5, "u4", "u8"), (2**40, "u8", "i8"), (5 << 61, "u8", "u8")])
def test_integers(most, word, dtype):
    low = 0 if dtype == "u8" else -7 if dtype == "i8" else 0
    x = ad.random.RandomState(11).randint(low, most + low + 1, (3, 400), dtype=dtype).get()
    np.testing.assert_array_equal(x.ravel(), interval(11, most, 1200, word).astype(dtype) + np.dtype(dtype).type(low))


def between(seed, low, high, count, word):
    """CuPy's integers between bounds that are arrays."""
    states = States(XORWOW, seed, 4096, HOST)
    size = np.dtype(word).itemsize // 4

    def draw(n):
        return states.draw("bits", [], n * size, "uint32").get().view(word)

    most, made = (high - low).astype(word), draw(count)
    top = 1 << 32 * size
    limit = np.array([top - 1 - top % (int(m) + 1) for m in most], word)
    wrong = np.flatnonzero(made > limit)
    limit = limit[wrong]
    while wrong.size:
        more = draw(wrong.size)
        right = more[more <= limit]
        made[wrong[:right.size]] = right
        wrong, limit = wrong[right.size:], limit[right.size:]
    return np.array([int(x) % (int(m) + 1) for x, m in zip(made, most)], word).astype(low.dtype) + low


@pytest.mark.parametrize("dtype, most", [("i4", 2**31 - 3), ("i8", 2**63 - 9), ("u4", 2**32 - 2), ("u8", 2**64 - 2)])
def test_integers_between_arrays(dtype, most):
    rng = np.random.default_rng(16)
    high = rng.integers(most // 2, most, 800, dtype=dtype, endpoint=True)
    high[:2], low = [0, most], np.zeros(800, dtype)
    if dtype[0] == "i":
        low[5:], high[5:9] = -1, [-1, 0, 3, 90]
    x = ad.random.RandomState(17).randint(ad.asarray(low), ad.asarray(high) + np.dtype(dtype).type(1), dtype=dtype).get()
    np.testing.assert_array_equal(x, between(17, low, high, 800, "u" + dtype[1]))
    with pytest.raises(ValueError, match="low >= high"):
        ad.random.RandomState(1).randint(ad.asarray(high), ad.asarray(high), dtype=dtype)


def test_parameters_are_float32_on_the_way_to_curand():
    z, w = host(18, ("normal", (0.0, 1.0), 200, "float64"), ("normal", (0.0, 1.0), 200, "float64"))
    loc, scale = np.float64(np.float32(0.1)), np.float64(np.float32(0.7))
    state = ad.random.RandomState(18)
    np.testing.assert_allclose(state.normal(0.1, 0.7, 200).get(), loc + scale * z, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(state.lognormal(0.1, 0.7, 200).get(), np.exp(loc + scale * w), rtol=1e-13)
    state = ad.random.RandomState(18)
    np.testing.assert_allclose(state.normal(0.1, ad.full(200, 0.7)).get(), 0.1 + 0.7 * z, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(state.normal(ad.full(200, 0.1), 0.7).get(), 0.1 + scale * w, rtol=1e-13, atol=1e-14)
    assert ad.random.RandomState(1).normal(1e300, 1.0, 2).tolist() == [np.inf, np.inf]


def test_multinomial_draws_every_trial():
    p = np.array([0.2, 0.5, 0.0, 0.3])
    u, = host(19, ("uniform", (0.0, 1.0), 300, "float64"))
    index = np.searchsorted(p.cumsum() / p.sum(), u, side="right").reshape(15, 20)
    expected = [np.bincount(row, minlength=4) for row in index]
    x = ad.random.RandomState(19).multinomial(20, p, (3, 5))
    assert x.dtype == np.int64
    np.testing.assert_array_equal(x.get().reshape(15, 4), expected)
    ad.random.seed(19)
    np.testing.assert_array_equal(ad.random.multinomial(20, p[:3], 15).get()[:, 1:].sum(axis=1), 20 - np.array(expected)[:, 0])
    assert ad.random.multinomial(0, p, 2).tolist() == [[0] * 4] * 2
    assert ad.random.multinomial([3, 4], p).sum(axis=1).tolist() == [3, 4]


def test_normal_vectors_by_cholesky():
    mean, cov = np.array([1.0, 2.0]), np.array([[2.0, 0.6], [0.6, 0.5]])
    z, = host(20, ("normal", (0.0, 1.0), 20, "float64"))
    expected = mean + z.reshape(10, 2) @ np.linalg.cholesky(cov).T
    np.testing.assert_allclose(ad.random.RandomState(20).multivariate_normal(mean, cov, 10).get(), expected, rtol=1e-13, atol=1e-13)
    x = ad.random.RandomState(21).multivariate_normal([0, 0], [[1, 1], [1, 1]], 50).get()  # singular
    np.testing.assert_allclose(x[:, 0], x[:, 1], rtol=1e-12)
    with pytest.raises(np.linalg.LinAlgError):
        ad.random.RandomState(21).multivariate_normal([0, 0], [[1, 1], [1, 1]], check_valid="raise")


def test_one_element_takes_a_word():
    state, other = ad.random.RandomState(22), host(22, ("bits", (), 1, "uint32"), ("uniform", (0.0, 1.0), 3, "float64"))
    state.shuffle(ad.zeros(1))
    np.testing.assert_array_equal(state.rand(3).get(), other[1])


@pytest.mark.parametrize("kind", GENERATORS)
def test_uniform_float32_numbers_are_scaled_in_float64(kind):
    u = ad.random.Generator(kind(23, size=64)).random(300, dtype="f4").get()
    x = ad.random.Generator(kind(23, size=64)).uniform(-0.1, 0.7, 300, "f4").get()
    np.testing.assert_array_equal(x, (-0.1 + (0.7 - -0.1) * u.astype("f8")).astype("f4"))


def test_permutations_sort_words():
    word = host(12, ("bits", (), 500, "uint32"))[0].view(np.int32)
    order = np.argsort(word, kind="stable")
    np.testing.assert_array_equal(ad.random.RandomState(12).permutation(500).get(), order)
    x = ad.arange(500) * 2
    ad.random.RandomState(12).shuffle(x)
    np.testing.assert_array_equal(x.get(), order * 2)


def test_made_of_uniform_numbers():
    u = host(13, ("upto1", (), 300, "float64"))[0]
    e = -np.log(u)
    for name, p, expected in (
            ("exponential", (2.0,), e * 2), ("standard_exponential", (), e), ("pareto", (3.0,), np.exp(e / 3) - 1),
            ("rayleigh", (1.5,), np.sqrt(e * 2) * 1.5), ("weibull", (1.5,), e ** (1 / 1.5)),
            ("power", (2.0,), (1 - np.exp(-e)) ** 0.5), ("gumbel", (1.0, 2.0), 1 - np.log(e) * 2),
            ("laplace", (1.0, 2.0), 1 + 2 * np.where(u <= 0.5, np.log(u + u), -np.log(np.abs(u + u - 1)))),
            ("standard_cauchy", (), np.tan(np.pi * (u - 0.5))), ("uniform", (-1.0, 3.0), u * 4 - 1)):
        x = getattr(ad.random.RandomState(13), name)(*p, size=300).get()
        np.testing.assert_allclose(x, expected, rtol=1e-9, atol=1e-12, err_msg=name)


def test_triangular_and_wald():
    u, = host(14, ("uniform", (0.0, 1.0), 200, "float64"))
    x = ad.random.RandomState(14).triangular(-1.0, 0.5, 2.0, 200).get()
    np.testing.assert_allclose(x, np.where(u <= 0.5, -1 + np.sqrt(u * 4.5), 2 - np.sqrt((1 - u) * 4.5)), rtol=1e-12)
    z, u = host(14, ("normal", (0.0, 1.0), 200, "float64"), ("uniform", (0.0, 1.0), 200, "float64"))
    y = 2 * z * z
    w = 2 + 2 / 6 * (y - np.sqrt(12 * y + y * y))
    np.testing.assert_allclose(ad.random.RandomState(14).wald(2.0, 3.0, 200).get(),
                               np.where(u > 2 / (2 + w), 4 / w, w), rtol=1e-9)


def test_seeds_are_cupys():
    import hashlib
    seed = np.arange(4)
    number = int(hashlib.md5(seed, usedforsecurity=False).hexdigest()[:16], 16)
    np.testing.assert_array_equal(ad.random.RandomState(seed).rand(4).get(),
                                  host(number, ("uniform", (0.0, 1.0), 4, "float64"))[0])


def test_state_goes_on_elsewhere():
    state = ad.random.RandomState(15)
    state.rand(10)
    copied = pickle.loads(pickle.dumps(state))
    np.testing.assert_array_equal(copied.rand(9).get(), state.rand(9).get())
    np.testing.assert_array_equal(copied.beta(2.0, 3.0, 9).get(), state.beta(2.0, 3.0, 9).get())


# ---- what RandomState draws by XOR128 ----

@pytest.mark.parametrize("case", VECTORS["elements"], ids=lambda c: f"{c[1]}-{c[0]}-{c[2]}")
def test_elements_have_sequences_of_their_own(case):
    seed, name, parameters, expected = case
    state, at = ad.random.RandomState(seed), VECTORS["elements_at"]
    x = getattr(state, name)(*parameters, size=(20, 100)).get().ravel()
    np.testing.assert_allclose(x[at], expected, rtol=1e-12 if x.dtype == float else 0, atol=1e-13)
    y = getattr(state, name)(*parameters, size=5).get()  # goes on behind them
    number = (seed + 2000) % (2**64 - 1)
    np.testing.assert_array_equal(y, getattr(ad.random.RandomState(number), name)(*parameters, size=5).get())


def test_elements_of_arrays(monkeypatch):
    a, b = np.linspace(0.3, 5, 1000).reshape(10, 100), np.linspace(0.5, 2, 100)
    x = ad.random.RandomState(24).beta(ad.asarray(a), b).get()
    monkeypatch.setattr(_curand, "_AT_ONCE", 130)
    np.testing.assert_array_equal(ad.random.RandomState(24).beta(a, ad.asarray(b)).get(), x)
    for k in (0, 129, 130, 999):
        one = ad.random.RandomState(24 + k).beta(a.flat[k], b[k % 100], 1).get()
        np.testing.assert_array_equal(one, x.flat[k])
    assert ad.random.RandomState(24).gamma(2.0, 3.0, size=(0, 3)).shape == (0, 3)
    np.testing.assert_array_equal(ad.random.RandomState(1).poisson(4.0, 300, "i2").get(), ad.random.RandomState(1).poisson(4.0, 300).get())


def test_made_of_elements():
    def state():
        return ad.random.RandomState(25)

    g = state().gamma(2.5, (1 - 0.3) / 0.3, 300)
    again = ad.random.RandomState(25 + 300)
    np.testing.assert_array_equal(state().negative_binomial(2.5, 0.3, 300).get(), again.poisson(g).get())
    x = state().standard_gamma(ad.asarray([1.0, 2.0, 0.5]), (40, 3)).get()
    np.testing.assert_allclose(state().dirichlet([1.0, 2.0, 0.5], 40).get(), x / x.sum(axis=1, keepdims=True), rtol=1e-13)
    u = np.array([float(_curand.draw_elements("uniform", [0.0, 1.0], (1,), 25 + k, "f8")[0]) for k in range(20)])
    np.testing.assert_allclose(state().logistic(1.5, 2.0, 20).get(), 1.5 + 2 * np.log((1 - u) / u), rtol=1e-13, atol=1e-13)
    assert state().beta(2.0, 3.0, 9, "f4").dtype == np.float32


def feistel(n, count, seed):
    """CuPy's numbers without replacement, one by one."""
    keys = np.random.default_rng(seed).integers(0, 2**32, size=24, dtype=np.uint32)
    bits = max(8, (n - 1).bit_length())
    half, more = bits // 2, bits - bits // 2
    result = []
    for x in range(count):
        while True:
            left, right = x >> more, x & 2**more - 1
            for key in keys:
                product = 0xD2B74407B1CE6E93 * left % 2**64
                low = (product % 2**32 << more - half) % 2**32 | right >> half
                left, right = (product >> 32 ^ int(key) ^ right) & 2**half - 1, low & 2**more - 1
            x = left << more | right
            if x < n:
                break
        result.append(x)
    return result


@pytest.mark.parametrize("n, count", [(1, 1), (2, 2), (7, 5), (256, 256), (257, 100), (5000, 5000), (2**40 + 3, 20), (100_003, 5000)])
def test_choice_without_replacement(n, count):
    state = ad.random.RandomState(26)
    x = state.choice(n, count, replace=False).get()
    assert x.dtype == np.int64 and len(set(x.tolist())) == count and 0 <= x.min() and x.max() < n
    assert x[:50].tolist() == feistel(n, min(count, 50), 26)
    np.testing.assert_array_equal(state.poisson(3.0, 5).get(), ad.random.RandomState(26 + 24).poisson(3.0, 5).get())


# ---- the call ----

def test_rows_are_those_of_the_table():
    text = (HERE.parents[1] / "protocol/curand.def").read_text()
    rows = re.findall(r"^AD_CURAND\((\w+), .*, (\w+), (\w+)\)$", text, re.M)
    sequences = [(name, order) for name, order, generators in rows if generators != "ELEMENTS"]
    assert tuple(name for name, order in sequences if order == "HOST") == _curand.BOTH
    assert tuple(name for name, order in sequences if order == "DEVICE") == _curand.OWN
    assert tuple(name for name, _, generators in rows if generators != "SEQUENCES") == _curand.ELEMENTS


def test_calls_that_make_no_sense():
    states = ad.zeros((12, 64), "u4")

    def call(*inputs, row=2, generator=0, order=0, turns=64, first=0, dtype="f8", shape=3):
        return ad._core.call("curand", inputs, (row, generator, order, turns, first), dtype=dtype, shape=shape)

    assert [x.shape for x in call(states, 0.0, 1.0)] == [(3,), (12, 64)]
    for words, make in (("no generator 4", lambda: call(states, 0.0, 1.0, generator=4)),
                        ("no generator -1", lambda: call(states, 0.0, 1.0, generator=-1)),
                        ("has no loop for float64", lambda: call(states, 0.0, 1.0, row=3, generator=3)),
                        ("has no loop for float64", lambda: call(states, 0.0, 1.0, generator=3, order=1)),
                        ("has no loop for float64", lambda: call(states, 1.0, 1.0, row=27)),
                        ("has no loop for int32", lambda: call(states, 0.0, 1.0, dtype="i4")),
                        ("has no loop for float64", lambda: call(states, 1.0, row=22)),
                        ("has no loop for float64", lambda: call(states, 2.0, 1.0, row=20, order=1))):
        with pytest.raises(NotImplementedError, match=words):
            make()
    for words, make in (("takes 2 parameters", lambda: call(states, 0.0)), ("shape .12, n.", lambda: call(states[1:], 0.0, 1.0)),
                        ("no order 2", lambda: call(states, 0.0, 1.0, order=2)),
                        ("number of states", lambda: call(states, 0.0, 1.0, turns=0)),
                        ("number of states", lambda: call(states, 0.0, 1.0, first=1)),
                        ("number of states", lambda: call(states, 0.0, 1.0, order=1, first=64)),
                        ("need more states", lambda: call(states, 0.0, 1.0, turns=100, shape=65)),
                        ("need more states", lambda: call(states, 0.0, 1.0, order=1, turns=100)),
                        ("more than 4194304 elements from each", lambda: call(states, 0.0, 1.0, turns=1, shape=1 << 23)),
                        ("must be described", lambda: call(states, 0.0, 1.0, shape=None))):
        with pytest.raises(ValueError, match=words):
            make()
    with pytest.raises(TypeError):
        call(states.astype("i4"), 0.0, 1.0)
    for first, count in ((-1, 4), (1 << 24, 1), (0, (1 << 24) + 1)):
        with pytest.raises(ValueError):
            ad._core.call("curand_seed", [], (0, 1, first), dtype="u4", shape=(12, count))


@pytest.mark.parametrize("generator", range(4))
@pytest.mark.parametrize("fill", [0, 0xffffffff, 12345])
def test_any_words_are_states(generator, fill):
    """Any words may stand for states: drawing ends, and numbers are within their bounds."""
    states = ad.full((12, 8), fill, "u4")
    ours = ((22, (3.0,)), (23, (3.0, 4.0)), (24, (3.0, 1.0)), (25, (3.0, 4.0, 1.0)), (26, (3.0,)), (27, (1.0, 2.0)), (46, (1.01,)))
    for row, p in ours if generator == 3 else ((1, (3, 9)), (20, (0.5, 1.0)), (21, (0.2, 0.3)), (40, (3.0,)), (40, (50.0,)), (41, (1000.0, 0.4)),
                   (42, (0.5,)), (43, (300.0, 400.0, 90.0)), (45, (0.9,)), (3, (0.0, 1.0)), (2, (0.0, 1.0))):
        dtype = "u8" if row == 1 else "i8" if row >= 40 else "f8"
        x, _ = ad._core.call("curand", [states, *p], (row, generator, 0, 8, 0), dtype=dtype, shape=20)
        x = x.get()
        assert x.shape == (20,) and (row in (3, 20, 21, 26, 27) or not (x < 0).any())
        assert row != 1 or ((x >= 3) & (x <= 9)).all()


def test_views_of_outputs():
    """Outputs that lie anywhere, and states that are a view."""
    wide = ad.zeros((12, 200), "u4")
    wide[:, ::2] = ad._core.call("curand_seed", [], (0, 5, 0), dtype="u4", shape=(12, 100))
    out, state = ad.zeros((50, 4)), ad.zeros((100, 12), "u4")
    ad._core.call("curand", [wide[:, ::2], 0.0, 1.0], (2, 0, 0, 100, 0), dtype="f8", out=(out[:, ::-2], state.T))
    plain, after = ad._core.call("curand", [wide[:, ::2].copy(), 0.0, 1.0], (2, 0, 0, 100, 0), dtype="f8", shape=(50, 2))
    np.testing.assert_array_equal(out.get()[:, ::-2], plain.get())
    np.testing.assert_array_equal(state.get().T, after.get())


@pytest.mark.parametrize("order", [DEVICE, HOST])
def test_a_draw_that_finds_no_memory_leaves_the_generator_as_it_was(own_server, order):
    def numbers(broken):
        states, found = States(XORWOW, 5, 4096, order), []
        for _ in range(3):
            found.append(states.draw("uniform", (0.0, 1.0), 1000, "float64").get())
            if broken:
                with pytest.raises(MemoryError, match="no room for shape"):
                    states.draw("uniform", (0.0, 1.0), (1 << 13, 1 << 15), "float64").get()  # all states took equal turns
        return np.array(found)

    before = os.environ["ARRAYD_URL"]
    try:
        ad.connect(own_server("--memory", "1G")[1])
        np.testing.assert_array_equal(numbers(True), numbers(False))
    finally:
        ad.connect(before)


def test_a_draw_that_leaves_no_room_for_states_leaves_them_as_they_were(own_server):
    """There is memory for the numbers, and then none for the states: they get that of the numbers."""
    before = os.environ["ARRAYD_URL"]
    try:
        ad.connect(own_server("--memory", "256M", "--host-memory", "0")[1])
        turns, found = 1 << 20, []  # 48 MiB of states
        for broken in (True, False):
            states = States(XORWOW, 5, turns, HOST)
            states.draw("uniform", (0.0, 1.0), turns, "float32").get()
            if broken:
                with pytest.raises(MemoryError):
                    states.draw("uniform", (0.0, 1.0), (45, turns), "float32").get()
            found.append(states.draw("uniform", (0.0, 1.0), turns, "float32").get())
            del states
        np.testing.assert_array_equal(*found)
    finally:
        ad.connect(before)


@pytest.mark.parametrize("name, wrong", [("exponential", [-1.0, 1.0]), ("gamma", [1.0, -1.0])])
@pytest.mark.parametrize("kind", GENERATORS)
def test_a_wrong_parameter_on_the_server_leaves_the_generator_to_go_on(kind, name, wrong):
    """The numbers have the error. The device may find it after later draws were sent."""
    rng = ad.random.Generator(kind(5, size=100))
    refused, later = getattr(rng, name)(ad.asarray(wrong), size=(50, 2)), rng.random(100)
    with pytest.raises(ValueError):
        refused.get()
    x = np.concatenate([later.get(), rng.random(100).get()])
    assert np.unique(x).size == 200 and 0 <= x.min() and x.max() < 1


def test_a_parameter_that_cannot_be_computed_leaves_the_generator_to_go_on():
    rng = ad.random.Generator(ad.random.XORWOW(5, size=100))
    scale = ad.ones(3)[ad.asarray([0, 7])]
    refused, later = rng.exponential(scale, size=(50, 2)), rng.random(100)
    with pytest.raises(IndexError):
        refused.get()
    assert np.unique(later.get()).size == 100
