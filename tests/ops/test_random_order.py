"""Random order and choice."""
import itertools

import numpy as np
import pytest

import arrayd as ad
from arrayd.random._choice import _few_of_many

N = 20000


def test_permutation():
    rng = ad.random.default_rng(31)
    p = rng.permutation(1000).get()
    np.testing.assert_array_equal(np.sort(p), np.arange(1000))
    assert (p != np.arange(1000)).any()
    x = ad.arange(12).reshape(3, 4)
    for axis in (0, 1):
        moved = rng.permutation(x, axis=axis).get()
        np.testing.assert_array_equal(np.sort(moved, axis=axis), x.get())
    assert rng.permutation(0).shape == (0,) and rng.permutation([7]).tolist() == [7]
    counts = np.zeros((4, 4))
    for _ in range(400):
        counts[np.arange(4), rng.permutation(4).get()] += 1
    assert abs(counts - 100).max() < 45


def test_shuffle():
    rng = ad.random.default_rng(32)
    x = ad.arange(40).reshape(10, 4)
    rng.shuffle(x)
    rows = x.get()
    np.testing.assert_array_equal(np.sort(rows[:, 0]), np.arange(0, 40, 4))
    np.testing.assert_array_equal(rows - rows[:, :1], np.tile(np.arange(4), (10, 1)))
    rng.shuffle(x, axis=1)
    np.testing.assert_array_equal(np.sort(x.get(), axis=1), rows)
    lanes = rng.permuted(ad.tile(ad.arange(50), (20, 1)), axis=1).get()
    np.testing.assert_array_equal(np.sort(lanes, axis=1), np.tile(np.arange(50), (20, 1)))
    assert len({tuple(lane) for lane in lanes}) == 20
    assert sorted(rng.permuted(ad.arange(6).reshape(2, 3)).ravel().tolist()) == list(range(6))


def test_choice():
    rng = ad.random.default_rng(33)
    x = rng.choice(5, 1000).get()
    assert set(x) == set(range(5))
    p = [0.1, 0.0, 0.6, 0.3]
    for weights in (p, np.array(p), ad.array(p)):
        seen = np.bincount(rng.choice(4, N, p=weights).get(), minlength=4) / N
        np.testing.assert_allclose(seen, p, atol=0.02)
    assert sorted(rng.choice(6, 6, replace=False).tolist()) == list(range(6))
    first = np.bincount([int(rng.choice(4, 1, replace=False, p=p)[0]) for _ in range(300)], minlength=4) / 300
    np.testing.assert_allclose(first, p, atol=0.12)
    both = rng.choice(ad.array([10, 20, 30, 40]), 3, replace=False, p=p).get()
    assert set(both) == {10, 30, 40}
    assert rng.choice(ad.arange(6).reshape(3, 2), 4, axis=1).shape == (3, 4)
    assert rng.choice([7, 8]).shape == ()
    assert ad.random.RandomState(1).choice(3, (2, 2)).shape == (2, 2)
    with pytest.raises(ValueError, match="a must be 1-dimensional"):
        ad.random.RandomState(1).choice(ad.zeros((2, 2)))


def test_few_of_many():
    stats = pytest.importorskip("scipy.stats")
    for n, shape in [(2**24, (2**16,)), (2**31 + 5, (40, 25)), (2**62, ()), (2**24, (0,))]:
        x = ad.random.default_rng(35).choice(n, shape, replace=False).get()
        assert x.shape == shape and x.dtype == np.int64 and np.unique(x).size == x.size
        if x.size > 1:  # every place has a number of its own, all with the same probability
            assert stats.kstest(x.reshape(-1)[:1000] / n, "uniform").pvalue > 1e-4
            assert stats.kstest(x.reshape(-1) / n, "uniform").pvalue > 1e-4
    one, two = (ad.random.RandomState(6).choice(2**40, 500, False).get() for _ in range(2))
    np.testing.assert_array_equal(one, two)


def test_few_of_many_when_most_are_drawn_twice():
    rng, counts = ad.random.default_rng(36), {}
    for _ in range(600):
        order = tuple(_few_of_many(rng.bit_generator, 4, 4).tolist())
        counts[order] = counts.get(order, 0) + 1
    assert set(counts) == set(itertools.permutations(range(4)))
    assert sum((seen - 25) ** 2 / 25 for seen in counts.values()) < 23 + 5 * np.sqrt(46)


def test_bytes():
    rng = ad.random.default_rng(34)
    assert [len(rng.bytes(n)) for n in (0, 1, 4, 7, 1000)] == [0, 1, 4, 7, 1000]
