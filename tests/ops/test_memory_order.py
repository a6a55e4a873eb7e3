"""Elements of results lie in memory in the order that NumPy gives them, whatever the views that they are made from."""
import numpy as np
import pytest

import arrayd as ad
from arrayd import _core

ROUNDS = 25


def strides(a):
    """Return the strides of axes along which there is more than one element: the others say nothing of memory."""
    return [stride for stride, n in zip(a.strides, a.shape) if n > 1] if a.size else []


def agree(expected, actual):
    assert (actual.shape, actual.dtype, strides(actual)) == (expected.shape, expected.dtype, strides(expected))
    np.testing.assert_array_equal(actual.get(), expected)


class View:
    """A random view: permuted, reversed, with steps, repeated; the same of either library."""

    def __init__(self, rng, ndim):
        shape = rng.integers(1, 5, ndim)
        self.host = np.arange(np.prod(shape, dtype=int), dtype=rng.choice(["i4", "f4", "f8"])).reshape(shape)
        self.axes = rng.permutation(ndim).tolist()
        self.key = tuple(slice(None, None, int(step)) for step in rng.choice([1, 1, 1, 2, -1], ndim))
        self.repeats = ndim and rng.integers(5) == 0

    def of(self, xp):
        a = xp.array(self.host).transpose(self.axes)[self.key]
        return xp.broadcast_to(a[:1], (3,) + a.shape[1:]) if self.repeats else a


def views(number, ndims=range(5)):
    rng = np.random.default_rng(number)
    return [(view.of(np), view.of(ad)) for view in (View(rng, ndim) for ndim in ndims)]


@pytest.mark.parametrize("order", "CFAK")
@pytest.mark.parametrize("make", [
    lambda xp, a, order: a.ravel(order), lambda xp, a, order: xp.ravel(a, order),
    lambda xp, a, order: a.flatten(order), lambda xp, a, order: a.copy(order),
    lambda xp, a, order: xp.copy(a, order), lambda xp, a, order: xp.array(a, order=order),
    lambda xp, a, order: a.astype("f8", order=order), lambda xp, a, order: xp.ones_like(a, order=order),
    lambda xp, a, order: xp.zeros_like(a, order=order), lambda xp, a, order: xp.full_like(a, 3, order=order),
    lambda xp, a, order: xp.zeros_like(xp.empty_like(a, order=order), order="K"),
], ids="ravel ravel_function flatten copy copy_function array astype ones_like zeros_like full_like empty_like".split())
def test_orders(make, order):
    for number in range(ROUNDS):
        for host, a in views(number):
            agree(make(np, host, order), make(ad, a, order))


def test_a_permutation_is_kept():
    a = ad.arange(24).reshape(2, 3, 4).transpose(2, 0, 1)
    assert a.ravel("K").get()[:3].tolist() == [0, 1, 2]
    assert ad.empty_like(a).strides == (8, 96, 32)
    for made in (a.copy("K"), a.astype("f8"), a + 1.0, ad.sqrt(a), a.copy("K") * 1.0):
        assert made.strides == (8, 96, 32) and made.base is None


@pytest.mark.parametrize("order", "CFAK")
def test_from_host_memory(order):
    for number in range(ROUNDS):
        for host, _ in views(number):
            agree(np.array(host, order=order), ad.array(host, order=order))


def test_ufuncs():
    functions = (lambda xp, a, b: a + b, lambda xp, a, b: a < b, lambda xp, a, b: xp.where(a > b, a, 1),
                 lambda xp, a, b: xp.clip(a, b, 9), lambda xp, a, b: xp.divmod(a, b + 1)[1],
                 lambda xp, a, b: 2 - a)
    for number in range(ROUNDS):
        for (a, x), (b, y) in zip(views(number, (2, 3, 3, 4)), views(number + 10000, (2, 3, 2, 4))):
            try:
                a + b
            except ValueError:
                b, y = a[::-1], x[::-1]
            for f in functions:
                agree(f(np, a, b), f(ad, x, y))


@pytest.mark.parametrize("shape", [(2, 5), (6,), (2, 3, 4)])
def test_shapes_like_others(shape):
    host = np.arange(24).reshape(2, 3, 4).transpose(2, 0, 1)
    for h in (host, host.T, host[:, 0], host[:, 0].T):
        for order in "CFAK":
            agree(np.zeros_like(h, shape=shape, order=order), ad.zeros_like(ad.array(h), shape=shape, order=order))


def test_reshape_has_no_order_of_its_own():
    with pytest.raises(ValueError, match="order 'K' is not permitted for reshaping"):
        ad.arange(6).reshape(2, 3, order="K")


def test_ravel_is_contiguous():
    """Kernels are given memory that they read as it lies."""
    a = ad.arange(20)
    for view in (a[::2], a[::-1], ad.broadcast_to(a[3:4], (4,)), a.reshape(4, 5)[:, 1]):
        assert view.ravel().flags.c_contiguous and ad.ravel(view).flags.c_contiguous
        assert ad.ascontiguousarray(view).flags.c_contiguous and view.flatten().flags.c_contiguous
        np.testing.assert_array_equal(view.ravel().get(), view.get().ravel())
    assert a.reshape(4, 5).ravel().base is a and a[::2].reshape(-1).base is a


def test_written_through_a_permuted_result():
    """A result that lies in another order is an array like any other."""
    a = ad.arange(24.).reshape(2, 3, 4).transpose(2, 0, 1) + 0
    host = np.arange(24.).reshape(2, 3, 4).transpose(2, 0, 1) + 0
    for x in (a, host):
        x[1] = 7
        x += x[::-1]
        x[..., 1] *= 2
    agree(host, a)
    if _core.session_info()["backend"] == "cpu":  # NumPy can read the CPU backend's memory
        np.testing.assert_array_equal(np.from_dlpack(a), host)
    np.testing.assert_array_equal(a.sum(axis=1).get(), host.sum(axis=1))
    np.testing.assert_array_equal((a @ a.transpose(0, 2, 1)).get(), host @ host.transpose(0, 2, 1))


ROWS = np.arange(48.0).reshape(6, 8)
FUNCTIONS = {  # of views of one array
    "gradient": lambda xp, a: xp.gradient(a, axis=0),
    "gradient_of_ints": lambda xp, a: xp.gradient(a.astype(int), xp.arange(a.shape[1]) ** 2, axis=1, edge_order=2),
    "quantile": lambda xp, a: xp.quantile(a, 0.3, axis=-1),
    "quantiles": lambda xp, a: xp.quantile(a, [0.3, 0.5], axis=0, keepdims=True),
    "percentile": lambda xp, a: xp.percentile(a.reshape(2, 3, -1), [30, 50], axis=(0, 2), method="lower"),
    "interp": lambda xp, a: xp.interp(a, xp.arange(9.0), xp.arange(9.0) ** 2),
    "correlate": lambda xp, a: xp.correlate(a[0], a.ravel(), "full"),
}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
@pytest.mark.parametrize("view", [lambda a: a, lambda a: a.T, lambda a: a[::-1, ::2]], ids=["rows", "columns", "steps"])
def test_functions(function, view):
    host, a = function(np, view(ROWS)), function(ad, view(ad.asarray(ROWS)))
    assert strides(a) == strides(host)
    np.testing.assert_allclose(a.get(), host, rtol=1e-14)
