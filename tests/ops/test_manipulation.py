"""Shapes, joining, splitting, repeating against NumPy."""
import numpy as np
import pytest

import arrayd as ad
from oracle import SOME, check, random, seed

A = np.arange(24).reshape(2, 3, 4)
VIEWS = [
    lambda a: a,
    lambda a: a.T,
    lambda a: a[::-1, :, ::2],
    lambda a: a[0],
    lambda a: a[0, 0, 0],
    lambda a: a[:, :0],
]


def each(body, *extra):
    """Check body on views of A, and on one of every type."""
    for view in VIEWS:
        check(lambda xp, a, *rest: body(xp, view(a), *rest), A, *extra)
    for dtype in SOME:
        check(body, random(seed(dtype), dtype, (2, 3, 4)), *extra)


@pytest.mark.parametrize(
    "shape",
    [
        -1,
        24,
        (4, 6),
        (2, -1),
        (2, 2, 6),
        (24, 1),
        (-1, 3, 4),
        (1, 24, 1, 1),
        (5, 5),
        (-1, -1),
        (-1, 7),
        (0, -1),
        (2, 0),
    ],
    ids=str,
)
def test_reshape(shape):
    for order in "CFA":
        each(lambda xp, a: xp.reshape(a, shape, order=order))
        check(lambda xp, a: a.reshape(shape, order=order), A)
    check(lambda xp, a: xp.reshape(a.T, shape, copy=True), A)
    check(lambda xp, a: xp.reshape(a, shape, copy=False), A)
    check(lambda xp, a: xp.reshape(a.T, shape, copy=False), A)
    for body in (lambda xp, a: xp.reshape(a, shape, copy="False"), lambda xp, a: a.reshape(shape, copy="False"),
                 lambda xp, a: xp.array(a, copy="False"), lambda xp, a: xp.asarray(a, copy="no")):
        check(body, A)


def test_views_share():
    a = ad.asarray(A)
    for view in (
        a.reshape(6, 4),
        a.T,
        a.ravel(),
        ad.swapaxes(a, 0, 1),
        ad.flip(a),
        ad.squeeze(a[:1]),
        ad.broadcast_to(a, (2,) + A.shape),
        ad.expand_dims(a, 1),
        ad.rot90(a),
        ad.diagonal(a),
        ad.atleast_3d(a),
        ad.moveaxis(a, 0, 2),
        a[..., None],
        ad.split(a, 2)[0],
        a.real,
        ad.trim_zeros(a, axis=0),
    ):
        assert ad.shares_memory(a, view)
    b = a.copy()
    b.reshape(-1)[5] = 99
    b.T[0, 0, 0] = 98
    assert b[0, 1, 1].get() == 99 and b[0, 0, 0].get() == 98
    for copy in (a.flatten(), ad.tile(a, 1), ad.concatenate([a]), ad.roll(a, 0), ad.repeat(a, 1), a.T.reshape(-1)):
        assert not ad.shares_memory(a, copy)


def test_ravel():
    for order in "CFAK":
        each(lambda xp, a: xp.ravel(a, order))
        each(lambda xp, a: a.flatten(order))


def test_axes():
    each(lambda xp, a: xp.transpose(a))
    for axes in ((2, 0, 1), (0, 1, 2), (-1, 0, 1), (0, 0, 1), (0, 1), (0, 1, 3)):
        check(lambda xp, a: xp.transpose(a, axes), A)
        check(lambda xp, a: a.transpose(*axes), A)
    for i in range(-3, 4):
        for j in (-1, 0, 2):
            check(lambda xp, a: xp.swapaxes(a, i, j), A)
            check(lambda xp, a: a.swapaxes(i, j), A)
            check(lambda xp, a: xp.moveaxis(a, i, j), A)
            check(lambda xp, a: xp.rollaxis(a, i, j), A)
    check(lambda xp, a: xp.moveaxis(a, (0, 1), (2, 0)), A)
    check(lambda xp, a: xp.moveaxis(a, (0, 1), (2,)), A)
    check(lambda xp, a: xp.moveaxis(a, (0, 0), (2, 1)), A)
    check(lambda xp, a: xp.matrix_transpose(a), A)
    check(lambda xp, a: a.mT, A)
    check(lambda xp, a: xp.permute_dims(a, (1, 0, 2)), A)


def test_size_one():
    b = A.reshape(2, 1, 3, 1, 4)
    for axis in (None, 1, 3, (1, 3), (-2, 1), 0, 5, (1, 1)):
        check(lambda xp, a: xp.squeeze(a, axis), b)
        check(lambda xp, a: a.squeeze(axis), b)
    for axis in (0, 3, -1, (0, 2), (-1, 0), (0, 0), 5):
        check(lambda xp, a: xp.expand_dims(a, axis), A)
    for name in ("atleast_1d", "atleast_2d", "atleast_3d"):
        each(lambda xp, a: getattr(xp, name)(a))
        check(lambda xp, a: getattr(xp, name)(a, 3, a[0, 0]), A)


def test_broadcast():
    for shape in ((2, 3, 4), (5, 2, 3, 4), (2, 3), (2, 3, 5), 24, (3, 4)):
        check(lambda xp, a: xp.broadcast_to(a, shape), A)
        check(lambda xp, a: xp.broadcast_to(a[0, :, :1], shape), A)
        check(lambda xp, a: xp.broadcast_to(7, shape), A)
    check(lambda xp, a: tuple(xp.broadcast_arrays(a, a[0], a[:, :1, :1], 5)), A)
    check(lambda xp, a: tuple(xp.broadcast_arrays(a, a[:, :2])), A)
    check(lambda xp: xp.broadcast_shapes((2, 1), (3,)))


def test_concatenate():
    for axis in (0, 1, 2, -1, None, 3):
        each(lambda xp, a: xp.concatenate([a, a], axis))
        check(lambda xp, a: xp.concatenate((a, a[:, :2]), axis), A)
        check(lambda xp, a: xp.concatenate((a, a.astype(np.float32), a.astype(bool)), axis), A)
        check(lambda xp, a: xp.concat((a, a[:, :0]), axis=axis), A)
    check(lambda xp, a: xp.concatenate([]), A)
    check(lambda xp, a: xp.concatenate([1, 2]), A)
    check(lambda xp, a: xp.concatenate([a, a[0]]), A)
    check(lambda xp, a: xp.concatenate([a, a], dtype=np.float32), A)
    check(lambda xp, a: xp.concatenate([a, a], dtype=np.float32, casting="no"), A)
    check(lambda xp, a: xp.concatenate([a * 1.5, a], dtype=int), A)
    check(lambda xp, a: xp.concatenate([a, a], out=xp.zeros((4, 3, 4))), A)
    check(lambda xp, a: xp.concatenate([a, a], out=xp.zeros((4, 3, 5))), A)


def test_stacks():
    for axis in (0, 1, 3, -1, -4, 4):
        check(lambda xp, a: xp.stack([a, a + 1, a], axis), A)
    check(lambda xp, a: xp.stack([a, a[0]]), A)
    check(lambda xp, a: xp.stack([]), A)
    for name in ("vstack", "hstack", "dstack", "column_stack"):
        for view in (lambda a: a, lambda a: a[0], lambda a: a[0, 0], lambda a: a[0, 0, 0]):
            check(lambda xp, a: getattr(xp, name)([view(a), view(a)]), A)
    check(lambda xp, a: xp.vstack([a[0], a[0, 0]]), A)
    check(lambda xp, a: xp.column_stack([a[0, 0], a[1].T]), A)
    check(lambda xp, a: xp.block([[a[0], a[1]], [a[1], a[0] * 0.5]]), A)
    check(lambda xp, a: xp.block([1, a[0, 0], 2]), A)
    check(lambda xp, a: xp.block(a), A)
    check(lambda xp, a: xp.block([[a[0]], a[1]]), A)
    for axis in (0, 1, -1):
        check(lambda xp, a: xp.unstack(a, axis=axis), A)


def test_splits():
    for parts in (1, 2, 3, 4, [1], [0, 2, 3], [3, 1], [-1], [9], 0):
        for axis in (0, 1, 2, -1, 3):
            check(lambda xp, a: xp.split(a, parts, axis), A)
            check(lambda xp, a: xp.array_split(a, parts, axis), A)
        for name in ("vsplit", "hsplit", "dsplit"):
            check(lambda xp, a: getattr(xp, name)(a, parts), A)
            check(lambda xp, a: getattr(xp, name)(a[0, 0], parts), A)


def test_repeating():
    for reps in (1, 2, 0, (2, 1), (1, 2, 3), (2, 1, 1, 2), ()):
        each(lambda xp, a: xp.tile(a, reps))
    for axis in (None, 0, 1, -1, 3):
        for repeats in (2, 0, 1, [3], -1):
            each(lambda xp, a: xp.repeat(a, repeats, axis))
        check(lambda xp, a: xp.repeat(a, [1, 0, 2], axis), A)
        check(lambda xp, a: a.repeat([1, 2], axis), A)
        check(lambda xp, a: xp.repeat(a[:, 0, 0], xp.asarray([2, 3])), A)
    check(lambda xp, a: xp.repeat(5, 3), A)
    check(lambda xp, a: xp.repeat(a, [1.5, 2], 0), A)
    for shape in ((2, 2), 30, (7, 7), (0,), (), -1):
        each(lambda xp, a: xp.resize(a, shape))


def test_order_reversed_and_rotated():
    for axis in (None, 0, 1, -1, (0, 2), (), 3):
        each(lambda xp, a: xp.flip(a, axis))
    each(lambda xp, a: xp.fliplr(a))
    each(lambda xp, a: xp.flipud(a))
    for k in range(-1, 6):
        each(lambda xp, a: xp.rot90(a, k))
        check(lambda xp, a: xp.rot90(a, k, (2, 1)), A)
    check(lambda xp, a: xp.rot90(a, 1, (1, 1)), A)
    check(lambda xp, a: xp.rot90(a, 1, (1, 5)), A)
    for shift, axis in ((1, None), (-3, None), (30, None), (1, 0), (2, 2), (-1, -1), ((1, 2), (0, 2)), ((1, 1), (2, 2)),
                        (1, (0, 1)), (0, 0), (1, 3)):
        each(lambda xp, a: xp.roll(a, shift, axis))


def test_adding_and_removing():
    for axis in (None, 0, 1, 2):
        check(lambda xp, a: xp.append(a, a, axis), A)
        for obj in (0, -1, [0, 1], [1, 1], slice(0, 2), slice(None, None, -2), 7, [True, False], [], np.array([1])):
            check(lambda xp, a: xp.delete(a, obj, axis), A)
        for obj in (0, 1, -1, [0, 1], [1, 0], [1, 1], slice(0, 2), 9):
            check(lambda xp, a: xp.insert(a, obj, 77, axis), A)
    check(lambda xp, a: xp.append(a, [1.5, 2]), A)
    check(lambda xp, a: xp.insert(a, 1, [5, 6, 7]), np.arange(4))
    check(lambda xp, a: xp.insert(a, [1, 3], [5, 6]), np.arange(4))
    check(lambda xp, a: xp.insert(a, 1, [5, 6, 7], axis=1), np.arange(6).reshape(3, 2))
    check(lambda xp, a: xp.insert(a, [1], [[5], [6], [7]], axis=1), np.arange(6).reshape(3, 2))
    check(lambda xp, a: xp.insert(a, 2, 2.9), np.arange(4))


@pytest.mark.parametrize("trim", ["fb", "f", "b", "bf", "x"])
def test_trim_zeros(trim):
    for values in ([0, 0, 1, 2, 0, 3, 0], [1, 2], [0, 0], [], [0, 5]):
        check(lambda xp, a: xp.trim_zeros(a, trim), np.array(values))
    block = np.zeros((5, 6), int)
    block[1:3, 2:4] = 1
    for axis in (None, 0, 1):
        check(lambda xp, a: xp.trim_zeros(a, trim, axis), block)


@pytest.mark.parametrize(
    "mode",
    [
        "constant",
        "edge",
        "reflect",
        "symmetric",
        "wrap",
        "maximum",
        "minimum",
        "mean",
        "median",
        "linear_ramp",
        "nonsense",
    ],
)
def test_pad(mode):
    for widths in (1, (2, 3), ((1, 2), (0, 3)), 0, {1: 2}, {0: (1, 0)}, 9, -1):
        check(lambda xp, a: xp.pad(a, widths, mode), np.arange(12.0).reshape(3, 4), ulps=4)
        check(lambda xp, a: xp.pad(a, widths, mode), np.arange(12).reshape(3, 4)[::-1])
    check(lambda xp, a: xp.pad(a, ((0, 1), (2, 0), (1, 1)), mode), A)
    check(lambda xp, a: xp.pad(a, 1.5, mode), A)


def test_pad_options():
    a = np.arange(12.0).reshape(3, 4)
    check(lambda xp, a: xp.pad(a, 2, constant_values=5), a)
    check(lambda xp, a: xp.pad(a, 2, constant_values=(1, 2)), a)
    check(lambda xp, a: xp.pad(a, 1, constant_values=((1, 2), (3, 4))), a)
    check(lambda xp, a: xp.pad(a, 2, "linear_ramp", end_values=(1, 9)), a, ulps=4)
    for mode in ("mean", "maximum", "minimum", "median"):
        check(lambda xp, a: xp.pad(a, 2, mode, stat_length=2), a)
        check(lambda xp, a: xp.pad(a, 2, mode, stat_length=((1, 2), (2, 9))), a)


def test_copyto():
    def body(value, **options):
        def run(xp, a, m):
            arguments = {key: m if item is ... else item for key, item in options.items()}
            xp.copyto(a, value(xp), **arguments)
            return a
        return run
    mask = random(seed("copyto"), bool, A.shape)
    for value in (
        lambda xp: 5,
        lambda xp: xp.arange(4),
        lambda xp: xp.ones((2, 1, 1), np.int8),
        lambda xp: [1, 2, 3, 4],
    ):
        check(body(value), A, mask)
        check(body(value, where=...), A, mask)
        check(body(value, where=...), A, mask[0, :, :1])
        check(body(value, where=...), A, mask[0].astype(int))
    check(body(lambda xp: xp.arange(4.0)), A, mask)
    check(body(lambda xp: xp.arange(4.0), casting="unsafe"), A, mask)
    check(body(lambda xp: xp.arange(5)), A, mask)


def test_copyto_by_a_number():
    for where in (0, 1, -2, 3.5, 0.0, 1j, np.float32(2), np.bool_(False), True, False):
        check(lambda xp, a: (xp.copyto(a, 7, where=where), a)[1], A)
    for number in (-4, 300):
        for where in (True, False, [False]):
            check(lambda xp, a: (xp.copyto(a, number, where=xp.asarray(where)), a)[1], A[0, 0].astype(np.uint8))
            check(lambda xp, a: (xp.copyto(a, number, where=xp.asarray(where)), a)[1], np.zeros(0, np.uint8))
    check(lambda xp, a: (xp.copyto(a, a[None, None] * 2, where=a > 3), a)[1], A)


def test_complex_numbers_cast_to_real_ones():
    a = ad.arange(3) * 1j
    for join in (ad.concatenate, ad.hstack, ad.vstack, ad.stack):
        with pytest.warns(np.exceptions.ComplexWarning, match="discards the imaginary part"):
            join((a, a), dtype=float, casting="unsafe")


def test_rolls_by_texts():
    check(lambda xp, a: xp.roll(a, "2", 1), A)
    check(lambda xp, a: xp.roll(a, ("2", "1"), (1, 2)), A)
    check(lambda xp, a: xp.roll(a, "a", 1), A)


def test_pad_by_nothing():
    check(lambda xp, a: xp.pad(a, []), A)
    check(lambda xp, a: xp.pad(a, np.zeros((0, 2), int)), A)
