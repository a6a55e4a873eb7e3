"""Operations on arrays whose memory other programs have got: kernels see copies of some operands, and results are those
of any others."""
import numpy as np
import pytest

import arrayd as ad
import oracle


def scattered(xp, x, i, m):
    xp.add.at(x, i, 2)
    return x


def assigned(xp, x, i, m):
    x[i] = xp.arange(i.size) * 10
    return x


def placed(xp, x, i, m):
    x[m] = xp.arange(int(m.sum()))
    return x


def sorted_in_place(xp, x, i, m):
    x[::-2].sort()
    return x


def taken_into(xp, x, i, m):
    out = xp.zeros(i.shape, x.dtype)
    xp.take(x, i, out=out)
    x[:i.size] = out
    return x


def summed_into(xp, x, i, m):
    xp.cumsum(x[::2], out=x[1::2])
    return x


def refused(xp, x, i, m):
    """Nothing is written where an index is out of bounds."""
    i[3] = x.size
    with pytest.raises(IndexError):
        x[i] = 0
        ad.sync()
    return x


BODIES = [scattered, assigned, placed, sorted_in_place, taken_into, summed_into, refused,
          lambda xp, x, i, m: x[i], lambda xp, x, i, m: x[::-1][i[::2]], lambda xp, x, i, m: x[i[:0]],
          lambda xp, x, i, m: x[xp.broadcast_to(i[3:4], (5, 7))], lambda xp, x, i, m: x.reshape(20, 15)[i[:10] % 20, i[10:20] % 15],
          lambda xp, x, i, m: x[m], lambda xp, x, i, m: x.reshape(20, 15).T[m.reshape(20, 15).T],
          lambda xp, x, i, m: x[xp.broadcast_to(m[5:6], (300,))], lambda xp, x, i, m: xp.nonzero(m),
          lambda xp, x, i, m: xp.nonzero(x.reshape(20, 15).T - 7), lambda xp, x, i, m: xp.sort(x.reshape(20, 15), axis=0),
          lambda xp, x, i, m: xp.argsort(x.reshape(3, 100).T, axis=0, kind="stable"), lambda xp, x, i, m: xp.sort(x),
          lambda xp, x, i, m: xp.searchsorted(xp.sort(x), x[::3]), lambda xp, x, i, m: xp.bincount(i, minlength=400),
          lambda xp, x, i, m: xp.bincount(i, weights=x[:i.size].astype("float64")), lambda xp, x, i, m: xp.argmax(x), lambda xp, x, i, m: xp.argmin(x[::-3]),
          lambda xp, x, i, m: xp.linalg.solve(x[:144].reshape(12, 12) + 400 * xp.eye(12), x[:12]),
          lambda xp, x, i, m: xp.fft.rfft(x[7:107]), lambda xp, x, i, m: x[:150].reshape(10, 15) @ x[150:].reshape(15, 10)]


def operands(dtype):
    rng = np.random.default_rng(4)
    return rng.integers(0, 100, 300).astype(dtype), rng.permutation(300)[:60] - 150, rng.random(300) < 0.3


@pytest.mark.parametrize("dtype", ["int64", "float64"])
@pytest.mark.parametrize("body", BODIES, ids=[f"{n}" if b.__name__ == "<lambda>" else b.__name__ for n, b in enumerate(BODIES)])
def test_the_same_results(body, dtype):
    theirs = operands(dtype)
    if "bincount" in body.__code__.co_names:
        theirs[1][:] += 150
    mine = [ad.asarray(a) for a in theirs]
    others = [a.__dlpack__(copy=False) for a in mine]
    before = ad.stat()["exports"]
    assert before >= 3
    expected, actual = body(np, *theirs), oracle.fetch(body(ad, *mine))
    oracle.compare(expected, actual, ulps=64)
    for one, other in zip(theirs, mine):
        oracle.compare(one, other.get(), exact=True)
    del others


def test_random_numbers_of_parameters_that_are_exported():
    n, p = ad.full(1000, 9), ad.asarray(np.linspace(0.1, 0.9, 1000))
    draw = lambda: ad.random.RandomState(3).binomial(n, p).get()  # noqa: E731
    expected, others = draw(), [n.__dlpack__(copy=False), p.__dlpack__(copy=False)]
    np.testing.assert_array_equal(draw(), expected)
    p[5] = 2
    with pytest.raises(ValueError, match="p"):
        draw()
    del others


@pytest.mark.parametrize("key", [np.zeros(0, bool), np.s_[:, np.zeros(0, bool)], np.zeros((2, 0), bool)],
                         ids=["first", "second", "both"])
def test_a_mask_without_elements_adds_nothing(key):
    a, x = np.arange(24.0).reshape(2, 3, 4), ad.arange(24.0).reshape(2, 3, 4)
    np.add.at(a, key, 1)
    ad.add.at(x, key, 1)
    np.testing.assert_array_equal(x.get(), a)
