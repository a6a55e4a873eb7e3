"""Matrix products of every type, layout and batch; numbers are whole and small, so that floats are exact too."""
import itertools
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import arrayd as ad
from oracle import DTYPES, INTEGERS, check, seed

LAYOUTS = {
    "rows": lambda x: x,
    "columns": lambda x: x.swapaxes(-1, -2).copy().swapaxes(-1, -2),
    "gaps": lambda x: x.repeat(2, -1)[..., ::2],
    "upside down": lambda x: x[..., ::-1, :].copy()[..., ::-1, :],
    "backwards": lambda x: x[..., ::-1].copy()[..., ::-1],
    "part": lambda x: x.repeat(2, -2)[..., ::2, :],
}


def whole(dtype, shape, *names):
    high = 2 if np.dtype(dtype).kind == "b" else 3
    a = seed("matmul", dtype, shape, *names).integers(0 if np.dtype(dtype).kind in "bu" else -2, high, shape)
    if np.dtype(dtype).kind == "c":
        a = a + 1j * seed("matmul", shape, dtype, *names).integers(-2, high, shape)
    return a.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_layouts(dtype):
    a, b = whole(dtype, (33, 20)), whole(dtype, (20, 17))
    for one, other in itertools.product(LAYOUTS.values(), repeat=2):
        check(lambda xp, x, y: one(x) @ other(y), a, b)

    def into(view):
        def body(xp, x, y):
            out = xp.zeros((66, 51), dtype)
            xp.matmul(x, y, out=view(out))
            return out
        return body
    for view in (lambda o: o[:33, :17], lambda o: o[::2, ::3], lambda o: o[:17, :33].T, lambda o: o[32::-1, :17]):
        check(into(view), a, b)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_vectors(dtype):
    for m, k, n in [(1, 40, 1), (1, 100, 70), (70, 100, 1), (1, 1, 1), (2, 700, 3), (3, 1, 4), (1, 1, 9)]:
        a, b = whole(dtype, (m, k)), whole(dtype, (k, n))
        for one, other in itertools.product(LAYOUTS.values(), repeat=2):
            check(lambda xp, x, y: one(x) @ other(y), a, b)
    a, b = whole(dtype, (6, 9, 8)), whole(dtype, (6, 8))
    check(lambda xp, x, y: x @ y[:, :, None], a, b)
    check(lambda xp, x, y: y[:, None] @ x.swapaxes(1, 2), a, b)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_batches(dtype):
    pairs = [((2, 3, 9, 8), (8, 7)), ((2, 1, 9, 8), (1, 3, 8, 7)), ((5, 9, 8), (5, 8, 7)), ((9, 8), (5, 8, 7)),
             ((6, 1, 8), (8, 7)), ((7, 1, 2, 4, 3), (6, 1, 3, 5)), ((40, 2, 2), (40, 2, 2)), ((0, 3, 2), (2, 4)),
             ((3, 2, 0), (3, 0, 4))]
    for one, other in pairs:
        check(lambda xp, x, y: x @ y, whole(dtype, one), whole(dtype, other))
    a, b = whole(dtype, (4, 3, 6, 5)), whole(dtype, (4, 3, 5, 2))
    for view in (lambda x: x[::-1], lambda x: x[:, ::-1], lambda x: x[::2], lambda x: x.transpose(1, 0, 2, 3)):
        check(lambda xp, x, y: view(x) @ view(y), a, b)
    check(lambda xp, x, y: x.transpose(2, 0, 1, 3) @ y.transpose(2, 0, 3, 1)[:1], a, b)
    check(lambda xp, x, y: xp.broadcast_to(x[:1], (4, 3, 6, 5)) @ y, a, b)

    def into(xp, x, y):
        out = xp.zeros((3, 6, 4, 2), dtype)
        xp.matmul(x, y, out=out.transpose(2, 0, 1, 3))
        return out
    check(into, a, b)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers_wrap(dtype):
    info = np.iinfo(dtype)
    for shape in ((65, 130, 67), (1, 5000, 1), (3, 3000, 200), (200, 3000, 2), (130, 2100, 70)):
        a, b = (seed(dtype, shape, i).integers(info.min, info.max, part, dtype, endpoint=True)
                for i, part in enumerate((shape[:2], shape[1:])))
        check(lambda xp, x, y: x @ y, a, b)
        check(lambda xp, x, y: y.T @ x.T, a, b)


def test_bools_of_many():
    a, b = (seed("bool", i).integers(0, 40, shape) == 0 for i, shape in enumerate([(70, 3000), (3000, 90)]))
    check(lambda xp, x, y: (x @ y[:, :1], x[:1, :200] @ y[:200], x[:, :300] @ y[:300]), a, b)


def test_float16_sums_in_float32():
    a = np.full((4, 4096), 1, np.float16)
    a[:, 1::2] = 2.0**-9
    exact = (a.astype(float) @ a.T.astype(float)).astype(np.float16)
    np.testing.assert_allclose((ad.asarray(a) @ ad.asarray(a).T).get(), exact, rtol=2e-3)
    np.testing.assert_allclose((ad.asarray(a) @ ad.asarray(a[0])).get(), exact[:, 0], rtol=2e-3)


def test_bfloat16():
    dtype = pytest.importorskip("ml_dtypes").bfloat16
    a, b = whole(np.float32, (33, 20)), whole(np.float32, (20, 17))
    got = ad.asarray(a.astype(dtype)) @ ad.asarray(b.astype(dtype))
    assert got.dtype == dtype
    np.testing.assert_array_equal(got.get().astype(np.float32), a @ b)
    got = ad.asarray(a.astype(dtype)) @ ad.asarray(b[:, 0].astype(dtype))
    np.testing.assert_array_equal(got.get(), (a @ b)[:, 0])


def test_float32_is_not_rounded_to_tf32():
    a = seed("tf32").uniform(1, 2, (256, 256)).astype(np.float32)
    truth = a.astype(float) @ a.astype(float)
    assert np.abs((ad.asarray(a) @ ad.asarray(a)).get() / truth - 1).max() < 1e-5


PRODUCTS = """
import arrayd as ad
a = ad.ones((3, 3), "float32")
for c in (a @ a, ad.matmul(a, a), ad.tensordot(a, a), ad.einsum("ij,jk", a, a)):
    assert (c == (9 if c.ndim == 0 else 3)).all()
"""


@pytest.mark.parametrize("environment, asked", [({}, "false"), ({"ARRAYD_TF32": "1"}, "true"),
                                                ({"CUPY_TF32": "1"}, "true"),
                                                ({"ARRAYD_TF32": "0", "CUPY_TF32": "1"}, "false")], ids=str)
def test_tf32_is_asked_for_by_the_environment(environment, asked):
    usual = {k: v for k, v in os.environ.items() if not k.endswith("_TF32")}
    done = subprocess.run([sys.executable, "-c", PRODUCTS], capture_output=True, text=True, timeout=120,
                          env={**usual, "PYTHONPATH": os.pathsep.join(sys.path), "AD_TRACE": "1", **environment})
    assert done.returncode == 0, done.stderr
    assert re.findall(r"call matmul .*; (\w+)$", done.stderr, re.M) == [asked] * 4


@pytest.mark.parametrize("dtype", ["int64", "uint8", "float32", "complex128"])
def test_long_sums(dtype):
    """Long enough to be made in parts, which add to each other."""
    rng = np.random.default_rng(7)
    rows, inner = (520, 1 << 14) if dtype == "float32" else (64, 140_000)
    a, b = (rng.integers(0, 9, s).astype(dtype) for s in ((rows, inner), (inner, rows)))
    want = a.astype("float64" if dtype == "float32" else dtype) @ b
    got = (ad.asarray(a) @ ad.asarray(b)).get()
    np.testing.assert_allclose(got, want, rtol=1e-6 if dtype == "float32" else 0)


def test_axes_of_products():
    a, b, v = (np.arange(n, dtype=float).reshape(shape) for n, shape in ((24, (2, 3, 4)), (40, (2, 4, 5)), (4, (4,))))
    for axes in ([(-2, -1), (-2, -1), (-2, -1)], [(1, 2), (1, 2), (0, 1)], [(1, 2), (1, 2), (2, 0)], [(1, 2), (1, 2)],
                 ((1, 2), (1, 2), (0, 1)), [(1, 2), (1,), (0, 1)], [(1, 5), (1, 2), (0, 1)], [(1, 2), (1, 2), (1, 1)]):
        check(lambda xp, a, b: xp.matmul(a, b, axes=axes), a, b)
    check(lambda xp, a, b: xp.matmul(a.T, b.transpose(2, 1, 0), axes=[(1, 0), (1, 0), (0, 1)]), a, b)
    for axes in ([(-2, -1), (0,), (-1,)], [(0, 2), 0, (0,)], [(0, 2), 0, 0], [(0, 2), (0,)]):
        check(lambda xp, a, v: xp.matmul(a, v, axes=axes), a, v)
    for axes in ([(0,), (0,), ()], [0, 0]):
        check(lambda xp, v: xp.matmul(v, v, axes=axes), v)
    check(lambda xp, a, b: xp.matmul(a, b, axes=[(1, 2), (1, 2), (0, 1)], out=xp.zeros((3, 5, 2))), a, b)
    check(lambda xp, a, b: np.matmul(a, b, axes=[(1, 2), (1, 2), (0, 1)]), a, b)


def test_products_cast_to_out():
    for casting in ("same_kind", "unsafe", "safe"):
        check(lambda xp, a: xp.matmul(a, a, out=xp.zeros((2, 2), bool), casting=casting), np.arange(4.0).reshape(2, 2))
