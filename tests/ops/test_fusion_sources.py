"""Operations with a mask, and random numbers, in chains: what they give by themselves, bit for bit."""
import numpy as np
import pytest

import arrayd as ad
from chains import random, same_bits, settled, together, uploaded, without_value
from programs import DRAWS

SHAPES = [(1000,), (7, 33), (5, 1, 6), (1,), (3, 4096)]


# ---- masks ----

def test_what_is_masked_out_stays(servers):
    ad.connect(servers[0])
    a, b = random(1000), random(1000, seed=2)
    x, y = uploaded(a, b)

    def body():
        out = x * 2
        ad.add(out, y, out=out, where=y > 0.5)
        ad.sqrt(out, out=out, where=out < 1)
        return out
    result = settled(body, fused_chains=1, fused_ops=5, temporaries=2, unfused_chains=0)
    expected = a * 2
    np.add(expected, b, out=expected, where=b > 0.5)
    np.sqrt(expected, out=expected, where=expected < 1)
    np.testing.assert_array_equal(result.get(), expected)


def test_what_is_new_is_zero_there(servers):
    """New memory is zero also where operations run one by one: a chain of one, and one that is declined."""
    a = random(1000)
    for url in servers:
        ad.connect(url)
        x, = uploaded(a)
        for body in (lambda: ad.multiply(x, 3, where=x > 0.5), lambda: ad.multiply(x, 3, where=x > 0.5) + 1):
            result, _ = together(lambda: [body() for _ in range(3)])
            expected = np.where(a > 0.5, a * 3, np.float32(0)) + (body().get()[a <= 0.5][0])
            for one in result:
                np.testing.assert_array_equal(one.get(), expected)


def test_old_contents_cross_a_cut(servers):
    """A chain that is too long is cut between a value and the operation that keeps some of it."""
    ad.connect(servers[0])
    a = random(500, "float64")
    arrays = uploaded(*[a + i for i in range(40)])
    even, = uploaded(np.arange(500) % 2 == 0)

    def program(xp, arrays, even):
        result = arrays[0] * 1
        for i in range(60):
            xp.add(result, arrays[i % 40], out=result, where=even if i % 3 else True)
            result *= 0.5
        return result
    result, counters = together(lambda: program(ad, arrays, even))
    np.testing.assert_array_equal(result.get(), program(np, [a + i for i in range(40)], np.arange(500) % 2 == 0))
    assert counters["fused_ops"] > 60


def test_two_outputs_and_a_mask(servers):
    ad.connect(servers[0])
    a, b = np.arange(1, 201, dtype="int32"), np.arange(200, dtype="int32") % 7 + 1
    x, y = uploaded(a, b)

    def program(xp, x, y):
        quotient, rest = x * 10, x * 100
        xp.divmod(x, y, out=(quotient, rest), where=x % 2 == 0)
        return quotient, rest, quotient + rest
    for one, other in zip(together(lambda: program(ad, x, y))[0], program(np, a, b), strict=True):
        np.testing.assert_array_equal(one.get(), other)


def test_a_mask_that_is_the_output(servers):
    ad.connect(servers[0])
    a = np.arange(100) % 3 == 0
    x, y = uploaded(a, np.arange(100) % 2 == 0)

    def program(xp, x, y):
        x = x.copy()
        xp.logical_and(y, x, out=x, where=x)
        xp.logical_not(x, out=x, where=y)
        return x
    result, _ = together(lambda: program(ad, x, y))
    np.testing.assert_array_equal(result.get(), program(np, a, np.arange(100) % 2 == 0))


def test_every_type_keeps_what_it_had(servers):
    ad.connect(servers[0])
    even = np.arange(64) % 2 == 0
    for dtype in "?bhilBHILefdFD":
        a = np.arange(64).astype(dtype)
        x, m = uploaded(a, even)

        def program(xp, x, m):
            out = xp.copy(x)
            xp.maximum(x, x[::-1], out=out, where=m)
            return xp.copy(out), out
        for one, other in zip(together(lambda: program(ad, x, m))[0], program(np, a, even), strict=True):
            np.testing.assert_array_equal(one.get(), other, strict=True)


def test_a_poisoned_output_stays_so(servers):
    """The part that a mask leaves of an array without a value has none."""
    ad.connect(servers[0])
    x, = uploaded(random(100))
    bad = without_value(x)

    def body():
        y = x + 1
        ad.add(y, 1, out=bad, where=x > 2)
        return y, bad * 2
    (y, after), _ = together(body)
    np.testing.assert_array_equal(y.get(), x.get() + 1)
    with pytest.raises(IndexError):
        after.get()


# ---- random numbers ----

@pytest.mark.parametrize("how", DRAWS)
def test_the_same_numbers(servers, how):
    """Numbers are the same in a chain or not, from wherever a stream has come, in any shape and with arrays in any
    order."""
    for shape in SHAPES:
        def program(skip):
            plain = ad.ones(shape[::-1], dtype="int8").T
            generator = ad.random.default_rng(5)
            generator.random(skip, dtype="float32")
            x = DRAWS[how](generator, shape)
            y = DRAWS[how](generator, shape)
            return x + y, x, y + plain, (y * 3).sum(axis=-1), (x - y).max(), (x * 2)[..., ::-1]
        for skip in range(3):
            ad.connect(servers[0])
            fused, counters = together(lambda: program(skip), fused_ops=4)
            fused = [a.get() for a in fused]
            ad.connect(servers[1])
            apart = [a.get() for a in program(skip)]
            assert all(same_bits(a, b) for a, b in zip(fused, apart, strict=True)), (shape, skip)
            assert counters["fused_ops"] >= 4, shape


def test_a_random_temporary_is_not_written(servers):
    ad.connect(servers[0])

    def body():
        generator = ad.random.default_rng(1)
        return generator.random(5000) * 2 + generator.standard_normal(5000)
    settled(body, fused_chains=1, fused_ops=4, temporaries=3)


def test_more_sources_than_a_chain_has(servers):
    def program():
        generator = ad.random.default_rng(1)
        total = generator.random(300)
        for _ in range(20):
            total = total + generator.normal(size=300)
        return total
    ad.connect(servers[0])
    together_, counters = together(program, fused_chains=4)
    value = together_.get()
    ad.connect(servers[1])
    assert same_bits(value, program().get())
    assert counters["fused_chains"] > 3


def test_bad_parameters_fail_by_themselves(servers):
    """The library does not check these before it asks. The operation has the error, and so has what uses it."""
    ad.connect(servers[0])
    x, = uploaded(random(10))

    def body():
        good = x + 1
        bad = ad.random.default_rng(1).normal(0, ad.asarray(-1.0), 10)
        return good * 2, bad * 2
    (good, bad), _ = together(body)
    np.testing.assert_array_equal(good.get(), (x.get() + 1) * 2)
    with pytest.raises(ValueError, match="scale < 0"):
        bad.get()
