"""How often programs wait for the server: counted exactly, because a hidden wait is a bug."""
import contextlib

import numpy as np
import pytest

import arrayd as ad


@contextlib.contextmanager
def waits(expected):
    before = ad.session_info()["round_trips"]
    yield
    assert ad.session_info()["round_trips"] - before == expected


def test_k_means():
    rng = np.random.default_rng(1)
    points, start = rng.normal(size=(500, 3)), rng.normal(size=(8, 3))

    def step(xp, x, centres):
        label = xp.argmin(((x[:, None] - centres) ** 2).sum(-1), axis=1)
        member = (label[:, None] == xp.arange(8)).astype(x.dtype)
        return (member.T @ x) / xp.maximum(member.sum(0), 1)[:, None]

    x, centres, expected = ad.asarray(points), ad.asarray(start), start
    with waits(0):
        for _ in range(5):
            centres = step(ad, x, centres)
    for _ in range(5):
        expected = step(np, points, expected)
    with waits(1):
        result = centres.get()
    np.testing.assert_allclose(result, expected, rtol=1e-10)


def test_heat_equation():
    start = np.zeros((40, 50))
    start[10:20, 10:20] = 1

    def run(u):
        for _ in range(20):
            u[1:-1, 1:-1] += 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
        return u
    with waits(1):
        result = run(ad.asarray(start)).get()
    np.testing.assert_allclose(result, run(start.copy()), rtol=1e-12, atol=1e-300)


def test_mandelbrot():
    def run(xp):
        y, x = xp.meshgrid(xp.linspace(-1.5, 1.5, 30), xp.linspace(-2, 1, 40), indexing="ij")
        c = x + 1j * y
        z, count = xp.zeros(c.shape, complex), xp.zeros(c.shape, int)
        for _ in range(20):
            alive = xp.abs(z) <= 2
            z = xp.where(alive, z * z + c, z)
            count += alive
        return count
    with waits(1):
        result = run(ad).get()
    np.testing.assert_array_equal(result, run(np))


A = np.random.default_rng(2).normal(size=(30, 20))
NONE = {
    "views": lambda a: a[1:-1, ::2].T.reshape(-1)[::-1],
    "softmax": lambda a: ad.exp(a - a.max(1, keepdims=True)),
    "statistics": lambda a: (a.mean(), a.std(0), ad.median(a), ad.quantile(a, [0.1, 0.9]), ad.cov(a), ad.corrcoef(a)),
    "sorting": lambda a: (
        ad.sort(a),
        ad.argsort(a),
        ad.lexsort((a[0], a[1])),
        ad.searchsorted(a[0], a),
        ad.partition(a, 3),
    ),
    "joining": lambda a: (
        ad.concatenate([a, a]),
        ad.stack([a, a]),
        ad.tile(a, 2),
        ad.roll(a, 3),
        ad.pad(a, 2),
        ad.repeat(a, 2),
    ),
    "products": lambda a: (a @ a.T, ad.einsum("ij,kj->ik", a, a), ad.tensordot(a, a), ad.outer(a, a), ad.kron(a, a)),
    "choosing": lambda a: (
        ad.where(a > 0, a, 0),
        ad.take(a, [0, 1]),
        ad.take_along_axis(a, a.argsort(1), 1),
        a[[1, 2]],
        ad.clip(a, -1, 1),
        ad.select([a > 0], [a]),
        ad.diagonal(a),
        ad.tril(a),
    ),
    "masked assignment": lambda a: a.copy().__setitem__(a > 0, 0),
    "histogram": lambda a: ad.histogram(a, 12),
    "running": lambda a: (ad.cumsum(a), ad.diff(a), ad.gradient(a), ad.interp(a, a[0], a[0]), ad.convolve(a[0], a[1])),
    "tests": lambda a: (ad.allclose(a, a), ad.array_equal(a, a), ad.isin(a, a[0]), ad.any(a), ad.isclose(a, a)),
    "new": lambda a: (
        ad.arange(9),
        ad.linspace(0, 1, 5),
        ad.eye(4),
        ad.full((2, 3), 5),
        ad.mgrid[0:3, 0:4],
        ad.asarray(A),
    ),
    "in place": lambda a: (a.__iadd__(1), a.sort(), ad.put(a, [1, 2], 5), ad.fill_diagonal(a, 3), ad.copyto(a, 0)),
}


@pytest.mark.parametrize("name", NONE)
def test_no_wait(name):
    a = ad.asarray(A)
    with waits(0):
        NONE[name](a)
    ad.sync()


ONE = {
    "get": lambda a: a.get(),
    "float": lambda a: float(a.sum()),
    "bool": lambda a: bool((a > 9).any()),
    "item": lambda a: a[0, 0].item(),
    "nonzero": lambda a: ad.nonzero(a > 0),
    "mask": lambda a: a[a > 0],
    "unique": lambda a: ad.unique(a),
    "repr": repr,
    "bincount": lambda a: ad.bincount(ad.arange(5)),
    "sync": lambda a: ad.sync(),
    "extract": lambda a: ad.extract(a > 0, a),
    "where": lambda a: ad.where(a > 0),
    "tolist": lambda a: a.tolist(),
    "argwhere": lambda a: ad.argwhere(a > 0),
}


@pytest.mark.parametrize("name", ONE)
def test_one_wait(name):
    a = ad.asarray(A)
    with waits(1):
        ONE[name](a)
