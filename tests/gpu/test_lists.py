"""Small operations that go to the GPU as one list (kernels/cuda/list) give the bits that they give one by one
(ARRAYD_LISTS=0), in the order in which they were asked for."""
import os

import arrayd as ad
import numpy as np
import pytest
from conftest import start_server

UNARY = "negative absolute square sqrt exp sign positive invert isnan logical_not floor conjugate"
BINARY = "add subtract multiply divide maximum minimum equal less greater_equal bitwise_xor logical_and copysign"


@pytest.fixture(scope="module")
def lists(tmp_path_factory):
    """Urls of two servers without fusion: one with lists and one without."""
    before, processes, urls = os.environ["ARRAYD_URL"], [], []
    os.environ["ARRAYD_FUSE"] = "0"
    for on in ("24", "0"):
        os.environ["ARRAYD_LISTS"] = on
        process, url = start_server(str(tmp_path_factory.mktemp("server")))
        processes.append(process)
        urls.append(url)
    del os.environ["ARRAYD_FUSE"], os.environ["ARRAYD_LISTS"]
    yield urls
    ad.connect(before)
    for process in processes:
        process.kill()
        process.wait()


def run_on_both(urls, body):
    """Return the results of body on each server, as NumPy's arrays."""
    found = []
    for url in urls:
        ad.connect(url)
        found.append([r.get() for r in body()])
    return found


def same(a, b):
    """Bit for bit; any NaN is as good as another."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return np.array_equal(a, b, equal_nan=a.dtype.kind in "fc") and np.array_equal(np.signbit(a), np.signbit(b)) \
        if a.dtype.kind == "f" else np.array_equal(a, b, equal_nan=a.dtype.kind == "c")


def numbers(dtype, shape, seed=1):
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    return (rng.normal(0, 9, shape) if np.dtype(dtype).kind == "f" else rng.integers(-50, 50, shape)).astype(dtype)


def views(x):
    """Views of a matrix of 24 by 40 that have one shape: contiguous, a row again and again, backwards, transposed."""
    return [x[:12, :20], ad.broadcast_to(x[3, :20], (12, 20)), x[11::-1, 19::-1], x[:20, 20:32].T, x[::2, ::2]]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "int8", "uint16", "bool", "complex128"])
def test_elementwise(lists, dtype):
    """Types that lists have, and some that they leave to kernels, in turn."""
    data = numbers("bool" if dtype == "bool" else dtype, (24, 40))

    def body():
        x, results = ad.asarray(data), []
        for n, (name, first) in enumerate((f, v) for f in BINARY.split() for v in views(x)):
            for other in (views(x)[n % 5], 3, 0.5) if name in ("add", "multiply", "less") else (views(x)[n % 5],):
                try:
                    results.append(getattr(ad, name)(first, other))
                except TypeError:
                    pass
        for name, first in ((f, v) for f in UNARY.split() for v in views(x)):
            try:
                results.append(getattr(ad, name)(first))
            except TypeError:
                pass
        return results

    with_lists, without = run_on_both(lists, body)
    assert len(with_lists) == len(without) > 20
    assert all(same(a, b) for a, b in zip(with_lists, without))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "float16"])
def test_reductions(lists, dtype):
    """Sums and extremes over any axes, of every way in which elements are read, with and without an initial value."""
    shapes = [(5,), (64, 3), (3, 64), (40, 4, 6), (2, 1000), (300, 8), (1,), (4000,), (7, 9, 11)]

    def body():
        results = []
        for n, shape in enumerate(shapes):
            x = ad.asarray(numbers(dtype, shape, n))
            for axis in (None, *range(len(shape)), tuple(range(len(shape)))[1:] or None):
                results += [x.sum(axis=axis), x.max(axis=axis), x.min(axis=axis), x.mean(axis=axis),
                            x.sum(axis=axis, initial=3), x[..., ::-1].max(axis=axis), x.any(axis=axis)]
            results += [x[1:].sum(axis=0), x.T.sum(axis=-1), ad.nansum(x), ad.var(x)]
        return results

    with_lists, without = run_on_both(lists, body)
    assert all(same(a, b) for a, b in zip(with_lists, without))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "int32"])
def test_products(lists, dtype):
    """Small products of any views; those of floats add their terms in order, as NumPy does with tolerance."""
    rng = np.random.default_rng(3)
    ad.connect(lists[0])
    for m, k, n in [(8, 8, 8), (1, 5, 3), (64, 4, 64), (2, 64, 2), (3, 1, 3), (65, 2, 2), (1, 1, 1), (16, 64, 16)]:
        a, b = (rng.integers(-9, 9, s).astype(dtype) for s in ((m, k), (k, n)))
        x, y = ad.asarray(a), ad.asarray(b)
        for got, want in [(x @ y, a @ b), (y.T @ x.T, b.T @ a.T), (x[::-1] @ y[:, ::-1], a[::-1] @ b[:, ::-1]),
                          (x[0] @ y, a[0] @ b), (x @ y[:, 0], a @ b[:, 0]), (x[0] @ y[:, 0], a[0] @ b[:, 0])]:
            assert np.array_equal(got.get(), want) and got.dtype == want.dtype
        out = ad.zeros((n, m), dtype)
        ad.matmul(x, y, out=out.T)
        assert np.array_equal(out.get(), (a @ b).T)
    assert np.array_equal((ad.ones((3, 0)) @ ad.ones((0, 2))).get(), np.zeros((3, 2)))


@pytest.mark.parametrize("seed", range(6))
def test_in_order(lists, seed):
    """A program of small operations, each of which needs the ones before, between others that are no items: uploads,
    sorts, copies between types, reads, large arrays, a second stream and a user's kernel."""
    def body():
        rng = np.random.default_rng(seed)
        x, y, big, seen = ad.asarray(numbers("float64", (8, 8))), ad.zeros((8, 8)), ad.ones(100_000), []
        turn = ad.asarray(np.linalg.qr(numbers("float64", (8, 8), 2))[0].round(3))
        other = ad.cuda.Stream()
        for _ in range(400):
            match rng.integers(0, 15):
                case 0: x = x * 0.5 + y
                case 1: y[rng.integers(0, 8), :] = x[rng.integers(0, 8), :]
                case 2: y[:, rng.integers(0, 8)] = float(rng.integers(0, 5))
                case 3: x = ad.maximum(x, y.T)
                case 4: x = ad.sort(x, axis=rng.integers(0, 2))
                case 5: x[2:4] = ad.asarray(rng.normal(size=(2, 8)))
                case 6: y = x.astype("float32").astype("float64")
                case 7: seen.append(x.copy())
                case 8: x = x - x.sum(axis=0)
                case 9: x = x / (1 + x.max())
                case 10: big[3:67] = x.reshape(64)
                case 11: y = big[3:67].reshape(8, 8) - y
                case 12:
                    with other:
                        x = x + 1
                case 13: x = ad.where(y > x, x, turn)
                case 14: seen.append(ad.asarray(float(x[3, 3])))
        return [x, y, big, *seen]

    with_lists, without = run_on_both(lists, body)
    assert all(same(a, b) for a, b in zip(with_lists, without))


def test_memory_that_is_used_again(lists):
    """Results are freed while the list still has them, and others get their memory."""
    ad.connect(lists[0])
    a = numbers("float32", 100)
    x, want = ad.asarray(a), a
    for i in range(3000):
        x = x * 1 + i % 3
        want = want * np.float32(1) + np.float32(i % 3)
    assert np.array_equal(x.get(), want)
