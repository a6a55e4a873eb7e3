"""Elementwise operations over every kind of layout: which kernel an operation gets depends on strides, alignment and size."""
import os

import numpy as np
import pytest

import arrayd as ad
from arrayd._base import call
from oracle import check, seed

DTYPES = [np.dtype(name) for name in ("int8", "float16", "int32", "float32", "float64", "complex64", "complex128")]
SHAPES = [(1003,), (64, 70), (129, 257), (3, 5, 700), (40, 33, 36), (2, 3, 4, 5, 260), (7, 1, 6, 5, 4, 3), (5000, 3), (16, 1024)]


def numbers(rng, dtype, shape):
    values = rng.integers(-9, 10, shape)
    return (values + 1j * rng.integers(-9, 10, shape) if dtype.kind == "c" else values).astype(dtype)


class View:
    """A random view of the given shape of a larger array: memory(rng, dtype), and of(memory) for either library."""

    def __init__(self, rng, shape, broadcast):
        self.order = rng.permutation(len(shape)) if rng.integers(3) else np.arange(len(shape))
        self.steps, self.starts, sizes = [], [], []
        plain = rng.integers(2)
        self.broadcast = [broadcast and rng.integers(5) == 0 for _ in shape]
        for axis, n in enumerate(shape):
            step = 1 if plain else int(rng.choice([1, 1, 1, 2, 3, -1]))
            room = 0 if plain else int(rng.integers(3))
            size = 1 if self.broadcast[axis] else (n - 1) * abs(step) + 1
            self.steps.append(step)
            self.starts.append(room if step > 0 else room + size - 1)
            sizes.append(size + 2 * room)
        self.shape = shape
        self.memory_shape = tuple(sizes[axis] for axis in self.order)

    def of(self, memory):
        view = memory.transpose(np.argsort(self.order))
        index = []
        for n, step, start, broadcast in zip(self.shape, self.steps, self.starts, self.broadcast):
            n = 1 if broadcast else n
            stop = start + n * step
            index.append(slice(start, stop if stop >= 0 else None, step))
        return view[tuple(index)]


def check_views(rng, shape, dtype, kinds, body, **options):
    """Check body(xp, *views) for views of fresh memory, and what has become of all the memory."""
    views = [View(rng, shape, k > 0) for k in range(len(kinds))]
    memory = [numbers(rng, np.dtype(kind or dtype), view.memory_shape) for view, kind in zip(views, kinds)]

    def run(xp, *arrays):
        body(xp, *(view.of(array) for view, array in zip(views, arrays)))
        return list(arrays)

    check(run, *memory, **options)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_random_layouts(shape):
    for dtype in DTYPES:
        rng = seed("layouts", str(shape), dtype)
        for _ in range(3):
            check_views(rng, shape, dtype, [None] * 3, lambda xp, o, x, y: xp.add(x, y, out=o))
            check_views(rng, shape, dtype, [None] * 2, lambda xp, o, x: xp.copyto(o, x), exact=True)
            check_views(rng, shape, dtype, [None] * 2, lambda xp, o, x: xp.multiply(x, 3, out=o))
            check_views(rng, shape, dtype, [None, "bool", None, None],
                        lambda xp, o, c, x, y: xp.copyto(o, xp.where(c, x, y)), exact=True)
        check_views(rng, shape, dtype, [None, None, "bool"], lambda xp, o, x, m: xp.subtract(x, 1, out=o, where=m)
                    if dtype.kind != "b" else None)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_other_types_and_dear_rows(shape):
    rng = seed("types", str(shape))
    for out, first, second in [("float64", "float32", "int32"), ("float32", "float16", "float32"), ("int64", "int8", "uint16"),
                               ("complex64", "float32", "float32"), ("float32", "float32", "uint8")]:
        check_views(rng, shape, None, [out, first, second], lambda xp, o, x, y: xp.multiply(x, y, out=o, casting="unsafe"))
        check_views(rng, shape, None, [out, first, second, "bool"],
                    lambda xp, o, x, y, m: xp.add(x, y, out=o, where=m, casting="unsafe"))
        check_views(rng, shape, None, [out, first], lambda xp, o, x: xp.copyto(o, x, casting="unsafe"))
    for dtype in ("float16", "float32", "float64"):
        check_views(rng, shape, dtype, [None] * 2, lambda xp, o, x: xp.exp(x, out=o))
        check_views(rng, shape, dtype, [None] * 2, lambda xp, o, x: xp.sin(x, out=o), ulps=8 if dtype != "float16" else 2)
    for dtype in ("int8", "int32", "int64", "float32"):
        check_views(rng, shape, dtype, [None] * 4, lambda xp, q, r, x, y: xp.divmod(x, y, out=(q, r)))


@pytest.mark.parametrize("dtype", DTYPES + [np.dtype("uint8")], ids=str)
def test_transposes(dtype):
    rng = seed("transposes", dtype)
    for shape in [(64, 64), (128, 256), (257, 130), (31, 1000), (8, 4096), (3, 200, 68), (2, 65, 3, 96)]:
        x = numbers(rng, dtype, shape)
        check(lambda xp, a: xp.ascontiguousarray(a.T), x, exact=True)
        check(lambda xp, a: xp.ascontiguousarray(a.swapaxes(-1, -2)), x, exact=True)
        check(lambda xp, a: xp.ascontiguousarray(a[..., 1:].swapaxes(-1, 0)), x, exact=True)
        check(lambda xp, a: a.T.copy() + xp.ascontiguousarray(a).T, x)
        if len(shape) == 2:
            y = numbers(rng, dtype, shape[::-1])
            check(lambda xp, a, b: a + b.T, x, y)
            check(lambda xp, a, b: xp.add(a.T, 1) * b, x, y)


@pytest.mark.parametrize("name", ["complex64", "complex128"])
def test_complex_numbers_at_half_places(name):
    """A complex number lies where its parts can be read, which need not be a multiple of its size."""
    dtype = np.dtype(name)

    def half(shape):
        return ad.zeros(2 * int(np.prod(shape)) + 1, dtype.char.lower())[1:].view(dtype).reshape(shape)
    pairs, a = half((6,)), half((3, 3))
    moved, turned = half((6,)), half((3, 3))
    pairs[...] = np.arange(6) + 1j
    a[...] = values = np.array([[4, 1j, 0], [-1j, 5, 2], [0, 2, 6]], dtype)
    moved[...] = pairs
    turned[...] = a.T
    assert np.array_equal(moved.get(), np.arange(6) + 1j) and np.array_equal(turned.get(), values.T)
    square = np.zeros((4, 4), dtype)
    square[np.triu_indices(4, 1)] = np.arange(6) + 1j
    assert np.array_equal(call("squareform", (pairs,), (), out=half((4, 4))).get(), square + square.T)
    assert np.allclose(call("inv", (a,), (), out=half((3, 3))).get(), np.linalg.inv(values), atol=1e-6)
    assert np.allclose(call("cholesky", (a,), (False,), out=half((3, 3))).get(), np.linalg.cholesky(values), atol=1e-6)
    q, r = call("qr", (a,), (False,), out=(half((3, 3)), half((3, 3))))
    assert np.allclose((q @ r).get(), values, atol=1e-5)


def test_misaligned_rows():
    for dtype in DTYPES:
        x = numbers(seed("misaligned", dtype), dtype, 100_000)
        for start in (0, 1, 2, 3, 5, 15):
            check(lambda xp, a: a[start:].copy(), x, exact=True)
            check(lambda xp, a: a[start:-7] + a[7:len(a) - start], x)

            def inside(xp, a):
                out = xp.zeros_like(a)
                out[start:start + 999] = a[3:1002]
                out[2000 + start:-20] += a[2020 + start:]
                out[50_000:].reshape(50, 1000)[:, start:-1] *= 2
                return out

            check(inside, x)


def test_each_operation_sees_the_one_before():
    for n in (16, 1000, 250_000, 4_000_000):
        a, side = ad.zeros(n, np.float32), 4 if n == 16 else 40 if n == 1000 else 500
        for _ in range(50):
            b = (a + 1).astype(np.float64)
            a = ad.ascontiguousarray(b.reshape(side, -1).T).T.reshape(-1).astype(np.float32)
            a *= 1
        assert (a.get() == 50).all()


@pytest.mark.skipif(os.environ.get("ARRAYD_TEST_BACKEND") != "cuda", reason="takes long on processors")
def test_more_elements_than_31_bits_count():
    n = 2**31 + 5
    x = ad.ones(n, np.int8)
    x[1:] += x[:1]
    x[-3:] = 7
    y = x[::2].astype(np.int16)
    assert x[:2].get().tolist() == [1, 2] and x[-4:].get().tolist() == [2, 7, 7, 7]
    assert y[-2:].get().tolist() == [7, 7] and y[1:1000].get().tolist() == [2] * 999
    assert ad.count_nonzero(x == 2).item() == n - 4


LAYOUTS = {"C": lambda x: x, "F": np.asfortranarray, "row": lambda x: x[0, 0], "column": lambda x: x[:, :1, :1],
           "element": lambda x: x[:1, :1, :1], "number": lambda x: 2.5}


@pytest.mark.parametrize("left, right", [(a, b) for a in LAYOUTS for b in LAYOUTS if {a, b} != {"number"}])
def test_results_are_column_major_when_all_inputs_are(left, right):
    x = np.random.default_rng(3).random((3, 4, 5))
    a, b = LAYOUTS[left](x), LAYOUTS[right](x + 1)
    theirs = np.divmod(a, b)
    ours = ad.divmod(*(v if isinstance(v, float) else ad.array(v) for v in (a, b)))
    for o, t in zip(ours, theirs):
        check(o, t)
        assert (o.flags.c_contiguous, o.flags.f_contiguous) == (t.flags.c_contiguous, t.flags.f_contiguous)
        check(o[..., ::2], t[..., ::2])
        check(o + 1, t + 1)
