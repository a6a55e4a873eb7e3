"""Products of arrays against NumPy."""
import numpy as np
import pytest

import arrayd as ad
from oracle import DTYPES, SOME, check, random, seed

ULPS = 400


def small(dtype, *shapes):
    """Small whole numbers, so that products are exact in every type (and sums in all but the smallest integers)."""
    return [
        seed(dtype, shape).integers(0, 2 if np.dtype(dtype).kind == "b" else 4, shape).astype(dtype) for shape in shapes
    ]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_matmul(dtype):
    pairs = [
        ((3, 4), (4, 5)),
        ((4,), (4, 5)),
        ((3, 4), (4,)),
        ((4,), (4,)),
        ((2, 3, 4), (4, 5)),
        ((2, 3, 4), (2, 4, 5)),
        ((6, 1, 3, 4), (2, 4, 5)),
        ((3, 4), (2, 4, 5)),
        ((3, 0), (0, 5)),
        ((0, 4), (4, 5)),
        ((3, 4), (4, 0)),
        ((3, 4), (5, 4)),
        ((2, 3, 4), (3, 4, 5)),
        ((), (4,)),
        ((1, 1), (1, 1)),
        ((0, 3, 4), (4, 5)),
    ]
    for shapes in pairs:
        check(lambda xp, a, b: xp.matmul(a, b), *small(dtype, *shapes))
        check(lambda xp, a, b: a @ b, *small(dtype, *shapes))
    a, b = small(dtype, (7, 9), (9, 5))
    check(lambda xp, a, b: xp.matmul(b.T, a.T), a, b)
    check(lambda xp, a, b: xp.matmul(a[::2, ::-1], b[::-1, 1:]), a, b)
    check(lambda xp, a, b: xp.matmul(a[:, ::3], b[::3]), a, b)
    check(lambda xp, a, b: xp.matmul(a, a.T), a, b)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128, np.float16, np.int32])
def test_matmul_large(dtype):
    a, b = (random(seed(dtype, i), dtype, shape, "UNIT") for i, shape in enumerate([(130, 257), (257, 99)]))
    if np.dtype(dtype) == np.float16:
        # NumPy adds up in float16; ours is nearer to the truth.
        truth = a.astype(float) @ b.astype(float)
        np.testing.assert_allclose((ad.asarray(a) @ ad.asarray(b)).get().astype(float), truth, atol=2e-2)
        return
    if np.dtype(dtype).kind in "fc":
        a, b = a + a.dtype.type(1.5), b + b.dtype.type(1.5)
    check(lambda xp, a, b: a @ b, a, b, ulps=ULPS)
    check(lambda xp, a, b: b.T @ a.T, a, b, ulps=ULPS)


def test_matmul_options():
    a, b = small(float, (3, 4), (4, 5))
    check(lambda xp, a, b: xp.matmul(a, b, out=xp.zeros((3, 5))), a, b)
    check(lambda xp, a, b: xp.matmul(a, b, out=xp.zeros((3, 4))), a, b)
    check(lambda xp, a, b: xp.matmul(a, b, dtype=np.float32), a, b)
    check(lambda xp, a, b: xp.matmul(a, b, dtype=np.float32, casting="no"), a, b)
    check(lambda xp, a, b: xp.matmul(a, b.astype(np.int8)), a, b)
    check(lambda xp, a, b: 3 @ a, a, b)

    def in_place(xp, a, b):
        a @= xp.eye(4)
        return a
    check(in_place, a, b)


@pytest.mark.parametrize("dtype", SOME, ids=str)
def test_dot(dtype):
    pairs = [((3, 4), (4, 5)), ((4,), (4,)), ((3, 4), (4,)), ((2, 3, 4), (4,)), ((2, 3, 4), (5, 4, 6)), ((), (3, 4)),
             ((3, 4), ()), ((3, 4), (3, 4)), ((0,), (0,)), ((3, 0), (0, 2))]
    for shapes in pairs:
        for name in ("dot", "inner", "vdot", "outer"):
            check(lambda xp, a, b: getattr(xp, name)(a, b), *small(dtype, *shapes))
        check(lambda xp, a, b: a.dot(b), *small(dtype, *shapes))
    check(lambda xp, a: xp.inner(a, a), *small(dtype, (3, 4)))
    check(lambda xp, a: xp.dot(a, 2), *small(dtype, (3, 4)))
    check(lambda xp, a: xp.dot(a, a.T, out=xp.zeros((3, 3), a.dtype)), *small(dtype, (3, 4)))
    for shapes in (((3, 4), (4,)), ((2, 3, 4), (2, 4))):
        check(lambda xp, a, b: xp.matvec(a, b), *small(dtype, *shapes))
        check(lambda xp, a, b: xp.vecmat(b, xp.matrix_transpose(a)), *small(dtype, *shapes))
    for axis in (-1, 0):
        check(lambda xp, a, b: xp.vecdot(a, b, axis=axis), *small(dtype, (4, 4), (4, 4)))
    check(lambda xp, a, b: xp.vecdot(a, b), *small(dtype, (3, 4), (4, 3)))


def test_complex_conjugation():
    a, b = (random(seed("conj", i), np.complex128, (3, 4), "UNIT") for i in (1, 2))
    check(lambda xp, a, b: xp.vdot(a, b), a, b, ulps=ULPS)
    check(lambda xp, a, b: xp.vecdot(a, b), a, b, ulps=ULPS)
    check(lambda xp, a, b: xp.inner(a, b), a, b, ulps=ULPS)


def test_tensordot():
    a, b = small(np.int64, (3, 4, 5), (4, 3, 2))
    for axes in (0, ([1, 0], [0, 1]), ((0,), (1,)), (1, 0), 1, ([0, 1], [0]), ((-3,), (-2,))):
        check(lambda xp, a, b: xp.tensordot(a, b, axes), a, b)
    check(lambda xp, a, b: xp.tensordot(a, b.transpose(1, 0, 2)), a, b)
    check(lambda xp, a, b: xp.tensordot(a[:, :0], b[:0], ((1,), (0,))), a, b)


def test_kron_cross_trace():
    for shapes in (((2, 3), (3, 2)), ((3,), (2, 2)), ((2, 2, 2), (3,)), ((), (3,)), ((2,), ())):
        check(lambda xp, a, b: xp.kron(a, b), *small(np.int32, *shapes))
        check(lambda xp, a, b: xp.kron(a, b), *small(np.complex64, *shapes))
    a, b = (random(seed("cross", i), float, (5, 3), "SMALL") for i in (1, 2))
    check(lambda xp, a, b: xp.cross(a, b), a, b, ulps=64)
    check(lambda xp, a, b: xp.cross(a, b[0]), a, b, ulps=64)
    check(lambda xp, a, b: xp.cross(a.T, b.T, axis=0), a, b, ulps=64)
    check(lambda xp, a, b: xp.cross(a, b, axisc=0), a, b, ulps=64)
    check(lambda xp, a, b: xp.cross(a[:, :1], b), a, b)
    x = np.arange(60).reshape(3, 4, 5)
    for offset in (-2, 0, 1, 9):
        check(lambda xp, a: xp.trace(a, offset), x)
        check(lambda xp, a: a.trace(offset, 2, 1), x)
        check(lambda xp, a: xp.trace(a[0], offset, dtype=np.float32), x)
        check(lambda xp, a: xp.diagonal(a, offset), x)
        check(lambda xp, a: a.diagonal(offset, -1, 0), x)
    check(lambda xp, a: xp.trace(a[0, 0]), x)
    check(lambda xp, a: xp.diagonal(a, 0, 1, 1), x)


@pytest.mark.parametrize(
    "subscripts, shapes",
    [
        ("ij,jk->ik", ((3, 4), (4, 5))),
        ("ij,jk", ((3, 4), (4, 5))),
        ("ij->ji", ((3, 4),)),
        ("ij", ((3, 4),)),
        ("ji", ((3, 4),)),
        ("ii", ((4, 4),)),
        ("ii->i", ((4, 4),)),
        ("ij->", ((3, 4),)),
        ("ij->j", ((3, 4),)),
        ("i,i", ((4,), (4,))),
        ("i,j->ij", ((3,), (4,))),
        ("i,j", ((3,), (4,))),
        ("bij,bjk->bik", ((2, 3, 4), (2, 4, 5))),
        ("...ij,...jk->...ik", ((2, 3, 4), (4, 5))),
        ("...i->...", ((2, 3, 4),)),
        ("i...->...", ((2, 3, 4),)),
        ("ij,ij->ij", ((3, 4), (3, 4))),
        ("ij,j->i", ((3, 4), (4,))),
        ("ij,jk,kl->il", ((2, 3), (3, 4), (4, 5))),
        ("ijk,ilm,njm,nlk,abc->", ((2, 2, 2),) * 5),
        ("iij->ij", ((3, 3, 2),)),
        ("iji->j", ((3, 2, 3),)),
        ("ij,kj->ik", ((3, 4), (5, 4))),
        ("ab,ab,ab->a", ((3, 4),) * 3),
        (",ij->ij", ((), (3, 4))),
        ("->", ((),)),
        ("i,->i", ((3,), ())),
        ("ij,ij->i", ((3, 1), (3, 4))),
        ("...,...", ((3, 4), (4,))),
        ("i...,i...->...", ((3, 2), (3, 2))),
        ("ij,jk->ijk", ((3, 4), (4, 5))),
        ("ik,kj->ij", ((3, 0), (0, 2))),
        ("ij->k", ((3, 4),)),
        ("ij", ((3, 4, 5),)),
        ("ij,jk", ((3, 4),)),
        ("i,i", ((3,), (4,))),
        ("ij->ii", ((3, 4),)),
        ("i*", ((3, 4),)),
        ("ij,jk", ((3, 4), (5, 6))),
    ],
)
def test_einsum(subscripts, shapes):
    for dtype in (np.int64, np.float64, np.complex64):
        check(lambda xp, *a: xp.einsum(subscripts, *a), *small(dtype, *shapes))


def test_einsum_otherwise():
    a, b = small(float, (3, 4), (4, 5))
    check(lambda xp, a, b: xp.einsum(a, [0, 1], b, [1, 2]), a, b)
    check(lambda xp, a, b: xp.einsum(a, [0, 1], b, [1, 2], [2, 0]), a, b)
    check(lambda xp, a, b: xp.einsum(a, [Ellipsis, 1], [Ellipsis]), a, b)
    check(lambda xp, a, b: xp.einsum("ij,jk->ik", a, b, out=xp.zeros((3, 5))), a, b)
    check(lambda xp, a, b: xp.einsum("ij,jk->ik", a, b, dtype=np.complex128), a, b)
    check(lambda xp, a, b: xp.einsum(), a, b)
    check(lambda xp, a, b: xp.einsum("...->", a), a, b)
    check(lambda xp, a, b: xp.einsum("...i->i", a[0]), a, b)


def test_einsum_that_only_looks():
    """A view of its one operand is of its type, whatever dtype, casting and order say."""
    a = np.arange(9, dtype=np.int32).reshape(3, 3)
    for text in ("ij->ji", "ii->i", "...i->i...", "ij"):
        for options in ({"dtype": "f8"}, {"dtype": "i1", "casting": "no"}, {"order": "F"}):
            check(lambda xp, a: xp.einsum(text, a, **options), a)
            view = ad.einsum(text, ad.asarray(a), **options)
            assert view.base is not None and view.strides == np.einsum(text, a, **options).strides
    check(lambda xp, a: xp.einsum("ij->j", a, dtype="f8"), a)
    check(lambda xp, a: xp.einsum("", 2.5, dtype="f4"), a)


def test_norms():
    for dtype in (np.float64, np.float32, np.int32, np.complex128):
        x = random(seed(dtype, "norm"), dtype, (3, 4, 5), "SMALL")
        for ord in (None, 0, 1, 2, 3, 0.5, np.inf, -np.inf, -1, "fro"):
            for axis in (0, -1):
                check(lambda xp, a: xp.linalg.norm(a, ord, axis), x, ulps=64)
                check(lambda xp, a: xp.linalg.norm(a, ord, axis, True), x, ulps=64)
        for ord in (None, "fro", 1, -1, np.inf, -np.inf, "what"):
            for axis in ((0, 1), (2, 0), (-1, -2)):
                check(lambda xp, a: xp.linalg.norm(a, ord, axis), x, ulps=64)
                check(lambda xp, a: xp.linalg.norm(a, ord, axis, True), x, ulps=64)
        check(lambda xp, a: xp.linalg.norm(a), x, ulps=64)
        check(lambda xp, a: xp.linalg.norm(a[0], 1), x, ulps=64)
        check(lambda xp, a: xp.linalg.norm(a, 1), x)
        check(lambda xp, a: xp.linalg.matrix_norm(a), x, ulps=64)
        for axis in (None, 1, (0, 2)):
            check(lambda xp, a: xp.linalg.vector_norm(a, axis=axis, keepdims=True, ord=1), x, ulps=64)


def test_linalg_namespace():
    x = np.arange(24).reshape(2, 3, 4)
    check(lambda xp, a: xp.linalg.diagonal(a, offset=1), x)
    check(lambda xp, a: xp.linalg.trace(a), x)
    check(lambda xp, a: xp.linalg.matrix_transpose(a), x)
    m = np.array([[1, 2], [3, 4]])
    for n in (0, 1, 2, 3, 7):
        check(lambda xp, a: xp.linalg.matrix_power(a, n), m)
        check(lambda xp, a: xp.linalg.matrix_power(xp.stack([a, a + 1]), n), m)
    check(lambda xp, a: xp.linalg.matrix_power(a[:1], 2), m)
    check(lambda xp, a: xp.linalg.matrix_power(a, 1.5), m)
