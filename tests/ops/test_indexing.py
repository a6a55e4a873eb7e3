"""Reading and assigning by every kind of key, and the indexing functions, against NumPy."""
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp

import arrayd as ad
from oracle import DTYPES, check, random, seed

PROFILE = settings(max_examples=200, derandomize=True, deadline=None, database=None)
SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)


def filled(shape):
    return np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)


@st.composite
def basic(draw):
    shape = draw(SHAPES)
    return shape, draw(hnp.basic_indices(shape, allow_ellipsis=True, allow_newaxis=True))


@st.composite
def advanced(draw):
    """Keys with index arrays, masks, slices, ints, newaxis and an ellipsis in any order; some out of bounds."""
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=5))
    common = draw(hnp.array_shapes(min_dims=0, max_dims=2, min_side=1, max_side=3))
    slack = draw(st.sampled_from([0, 0, 0, 1]))
    key, axis = [], 0
    while axis < len(shape) and draw(st.integers(0, 9)):
        n = shape[axis]
        kind = draw(st.sampled_from(["array", "array", "slice", "int", "new", "mask", "list"]))
        if kind == "new":
            key.append(None)
            continue
        if kind == "slice":
            key.append(draw(st.slices(n)))
        elif kind == "int":
            key.append(draw(st.integers(-n, n - 1)))
        elif kind == "mask":
            width = draw(st.integers(1, min(2, len(shape) - axis)))
            mask = draw(hnp.arrays(bool, shape[axis : axis + width]))
            mask.reshape(-1)[-1] = True  # for none true see test_empty_masks
            key.append(mask)
            axis += width - 1
        else:
            dims = common if draw(st.booleans()) else tuple(1 if draw(st.booleans()) else m for m in common)
            index = draw(hnp.arrays(draw(st.sampled_from([np.int64, np.int8])), dims,
                                    elements=st.integers(-n - slack, n - 1 + slack)))
            key.append(index.tolist() if kind == "list" and index.ndim else index)
        axis += 1
    if draw(st.booleans()):
        key.insert(draw(st.integers(0, len(key))), Ellipsis)
    return shape, tuple(key)


def on_server(key):
    return tuple(ad.asarray(part) if isinstance(part, np.ndarray) else part for part in key)


@PROFILE
@given(basic())
def test_basic_get(case):
    shape, key = case
    check(lambda xp, a: a[key], filled(shape))


@PROFILE
@given(basic(), st.sampled_from([5, 2.5, True, "array", "row"]))
def test_basic_set(case, value):
    shape, key = case

    def body(xp, a):
        part = a[key]
        dims = np.shape(part)
        new = value if not isinstance(value, str) else xp.arange(100, 100 + int(np.prod(dims))).reshape(dims)
        a[key] = new[:1] if value == "row" and dims else new
        return a
    check(body, filled(shape))


@PROFILE
@given(advanced())
def test_advanced_get(case):
    shape, key = case
    check(lambda xp, a: a[key], filled(shape))
    check(lambda xp, a: a[key if xp is np else on_server(key)], filled(shape))
    check(lambda xp, a: a.T[tuple(reversed(key))], filled(shape))


@PROFILE
@given(advanced(), st.sampled_from([7, -1.5, np.int8(3)]))
def test_advanced_set(case, value):
    shape, key = case

    def body(xp, a, convert=lambda key: key):
        a[key if xp is np else convert(key)] = value
        return a
    check(body, filled(shape))
    check(lambda xp, a: body(xp, a, on_server), filled(shape))


@PROFILE
@given(
    hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=6), st.randoms(use_true_random=False), st.booleans()
)
def test_set_array_at_unique_indices(shape, random_, server):
    count = random_.randint(0, shape[0])
    index = np.array(random_.sample(range(shape[0]), count), dtype=np.int64)

    def body(xp, a):
        key = xp.asarray(index) if server else index
        a[key] = -xp.arange(1, 1 + count * int(np.prod(shape[1:]))).reshape((count,) + shape[1:])
        return a
    check(body, filled(shape))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_types(dtype):
    a = random(seed(dtype), dtype, (6, 5))
    m = random(seed("mask"), bool, (6, 5))
    index = np.array([[0, -1], [3, 2]])
    for body in (lambda xp, a: a[::-2, 1:4], lambda xp, a: a[index], lambda xp, a: a[:, index], lambda xp, a: a[m],
                 lambda xp, a: a[m[:, 0]], lambda xp, a: a[index, 2], lambda xp, a: a.T[index, ::-1],
                 lambda xp, a: a[xp.asarray(m)], lambda xp, a: a[xp.asarray(index)], lambda xp, a: a[2, 3]):
        check(body, a)
    for value in (1, a[0], a[:, :1]):
        def assign(xp, b, key):
            b[key] = value if np.ndim(value) == 0 else xp.asarray(value)
            return b
        check(lambda xp, b: assign(xp, b, ...), a)
        check(lambda xp, b: assign(xp, b, (slice(None, None, -1), slice(None))), a)
    for key in (m, (m[:, 0], 3), (index, slice(1, 3))):
        check(lambda xp, b: assign_scalar(b, key), a)
        check(lambda xp, b: assign_scalar(b, tuple(xp.asarray(k) if isinstance(k, np.ndarray) else k for k in key)
                                          if isinstance(key, tuple) else xp.asarray(key)), a)

    def assign_masked(xp, b):
        b[xp.asarray(m)] = xp.arange(int(m.sum())).astype(dtype)
        return b
    check(assign_masked, a)


def test_empty_masks():
    none = np.zeros(4, bool)
    for convert in (lambda xp: none, lambda xp: xp.asarray(none)):
        check(lambda xp, a: a[convert(xp)], filled((4, 5)))
        check(lambda xp, a: a[convert(xp), 2], filled((4, 5)))
        check(lambda xp, a: a[:, convert(xp)], filled((5, 4)))
        check(lambda xp, a: assign_scalar(a, convert(xp)), filled((4, 5)))
        check(lambda xp, a: assign_scalar(a, (convert(xp), 2)), filled((4, 5)))
    check(lambda xp, a: a[xp.zeros((0, 5), bool)], filled((0, 5)))
    for shape in ((0,), (2, 0), (0, 3)):  # NumPy lets an empty mask pass for axes of any size
        for of_server in (False, True):
            def add(xp, a):
                mask = np.zeros(shape, bool)
                xp.add.at(a, xp.asarray(mask) if of_server else mask, 1)
                xp.maximum.at(a, (slice(None), mask[:0].ravel()), 50)
                return a
            check(add, filled((2, 3, 4)))
    check(lambda xp, a: (a[True], a[False], a[xp.asarray(True)], a[xp.asarray(False)]), filled((2, 3)))


def assign_scalar(b, key):
    b[key] = 1
    return b


@pytest.mark.parametrize(
    "key",
    [
        3,
        -4,
        (0, 5),
        (0, 0, 0),
        "x",
        1.5,
        (slice(None), 9),
        None,
        (Ellipsis, Ellipsis),
        [0.5],
        np.array([5]),
        np.array([-4, 0]),
        np.zeros(2, bool),
        np.zeros((3, 5), bool),
        pytest.param(object(), id="object"),
    ],
    ids=repr,
)
def test_wrong_keys(key):
    check(lambda xp, a: a[key], filled((3, 4)))

    def assign(xp, a):
        a[key] = 1
        return a
    check(assign, filled((3, 4)))


def test_wrong_values():
    def assign(key, value):
        def body(xp, a):
            a[key] = xp.asarray(value)
            return a
        return body
    for key, value in (
        (..., np.zeros(3)),
        (0, np.zeros((2, 4))),
        (np.array([0, 1]), np.zeros((3, 4))),
        (filled((3, 4)) > 5, np.zeros(5)),
        (filled((3, 4)) > 5, np.zeros(6)),
        (slice(0, 2), np.zeros((2, 4))),
    ):
        check(assign(key, value), filled((3, 4)))


def test_overlapping_assignment():
    def shift(xp, a):
        a[1:] = a[:-1]
        a[:, ::-1] = a
        return a
    check(shift, filled((6, 5)))

    def gather_onto_itself(xp, a):
        a[xp.asarray([1, 2, 3])] = a[:3]
        return a
    check(gather_onto_itself, filled((6, 5)))


def test_in_place_on_views():
    def body(xp, a):
        a[1:3] += 5
        a[:, 0] *= 2
        a[::2, ::2] -= a[::2, ::2]
        a[[0, 2]] += 1
        return a
    check(body, filled((4, 5)))
    for wrong in (
        lambda xp, a: a.__iadd__(1.5),
        lambda xp, a: a.__itruediv__(2),
        lambda xp, a: a.__iadd__(xp.zeros((9, 9), int)),
    ):
        check(wrong, filled((2, 2)))


def test_take_and_put():
    a = filled((4, 5, 3))
    index = np.array([[0, -1, 2], [1, 1, 3]])
    for axis in (None, 0, 1, -1, 3):
        for indices in (2, [0, 1], [[0, -1], [1, 2]], [], [99], -99):
            for mode in ("raise", "wrap", "clip", "x"):
                check(lambda xp, a: xp.take(a, indices, axis, mode=mode), a)
        check(lambda xp, a: a.take(xp.asarray(index), axis), a)
    check(lambda xp, a: xp.take(a, [0, 1], 0, out=xp.zeros((2, 5, 3), a.dtype)), a)
    check(lambda xp, a: xp.take(a[:0], [0], 0), a)
    check(lambda xp, a: xp.take(a, [1.5]), a)
    for mode in ("raise", "wrap", "clip"):
        for indices, values in (([0, 7, -1], [9, 8, 7]), ([3, 4], 5), ([1, 2, 3], [4, 5]), ([70], [1]), ([], [])):
            for view in (lambda a: a, lambda a: a.T, lambda a: a[:, ::2]):
                def body(xp, a):
                    xp.put(view(a), indices, values, mode=mode)
                    if xp is ad:
                        ad.sync()
                    return a
                if mode != "raise" or 70 not in indices:
                    check(body, a)
    with pytest.raises(IndexError):
        ad.put(ad.asarray(a), [70], 1)
        ad.sync()


def test_along_axis():
    a = np.random.default_rng(3).permutation(60).reshape(4, 5, 3)
    for axis in (0, 1, -1, None):
        check(
            lambda xp, a: xp.take_along_axis(
                a, xp.argsort(a, axis=axis) if axis is not None else xp.argsort(a, None), axis
            ),
            a,
        )

        def put(xp, a):
            index = xp.argmax(a, axis=axis, keepdims=True) if axis is not None else xp.asarray([3, 9])
            xp.put_along_axis(a, index, -1, axis)
            return a
        check(put, a)
    check(lambda xp, a: xp.take_along_axis(a, xp.argmax(a, axis=1), 1), a)
    check(lambda xp, a: xp.take_along_axis(a, a / 2, 1), a)


def test_where_and_nonzero():
    a = random(seed("where"), float, (4, 5), "BOOL")
    check(lambda xp, a: xp.where(a > 0, a, -1), a)
    check(lambda xp, a: xp.where(a > 0, 1, 2.5), a)
    check(lambda xp, a: xp.where(a, a[0], a[:, :1]), a)
    check(lambda xp, a: xp.where(True, a, 0), a)
    check(lambda xp, a: xp.where([[True], [False], [True], [False]], a, [1, 2, 3, 4, 5]), a)
    check(lambda xp, a: xp.where(a > 0, a), a)
    check(lambda xp, a: xp.where(a > 0, a, xp.zeros(3)), a)
    for dtype in DTYPES:
        b = random(seed(dtype, "nonzero"), dtype, (4, 5, 2), "BOOL")
        for view in (lambda b: b, lambda b: b.T, lambda b: b[::-2, 1:], lambda b: b[:0], lambda b: b[0, 0]):
            check(lambda xp, b: (xp.nonzero(view(b)), xp.where(view(b)), view(b).nonzero()), b)
            check(lambda xp, b: (xp.argwhere(view(b)), xp.flatnonzero(view(b))), b)
    check(lambda xp, a: xp.nonzero(a[0, 0]), a)
    check(lambda xp: (xp.argwhere(xp.asarray(3)), xp.argwhere(xp.asarray(0))))
    check(lambda xp, a: xp.nonzero(a > 0.5), random(seed("large"), float, (100_003,)))


def test_choosing():
    a = filled((4, 5))
    m = a % 3 == 0
    for axis in (None, 0, 1):
        check(lambda xp, a, m: xp.compress([True, False, True], a, axis), a, m)
        check(lambda xp, a, m: a.compress(m[0], axis), a, m)
    check(lambda xp, a, m: xp.compress(m, a), a, m)
    check(lambda xp, a, m: xp.extract(m, a), a, m)
    for mode in ("raise", "wrap", "clip"):
        check(lambda xp, a, m: xp.choose(a % 3, [a, -a, 7], mode=mode), a, m)
        check(lambda xp, a, m: xp.choose(a, [a, -a], mode=mode) if mode != "raise" else None, a, m)
    with pytest.raises(IndexError):  # with the data; NumPy raises ValueError at once
        ad.choose(ad.asarray([0, 2]), [1, 2]).get()
    check(lambda xp, a, m: xp.choose([1, 0], [[1, 2], [3, 4]]), a, m)
    check(lambda xp, a, m: xp.select([a < 3, m, a > 15], [a, -a, a * 0.5], 99), a, m)
    check(lambda xp, a, m: xp.select([a < 3, m], [a, 7]), a, m)
    check(lambda xp, a, m: xp.select([a < 3], [a, 7]), a, m)
    check(lambda xp, a, m: xp.select([a], [a]), a, m)
    check(lambda xp, a, m: xp.select([], []), a, m)

    def changed(name, *values):
        def body(xp, a, m):
            getattr(xp, name)(a, m, *values)
            return a
        return body
    for values in ([1, 2, 3], [9], list(range(20))):
        check(changed("place", values), a, m)
        check(changed("putmask", values), a, m)
    check(changed("putmask", 5), a, m)
    check(changed("place", []), a, m)
    check(lambda xp, a, m: xp.putmask(a, m[0], 1), a, m)


def test_diagonals():
    for shape in ((4, 4), (6, 4), (4, 6), (3, 3, 3), (9, 2), (3, 4, 5), (4,)):
        for value in (7, [1, 2, 3]):
            for wrap in (False, True):
                def body(xp, a):
                    xp.fill_diagonal(a, value, wrap)
                    return a
                check(body, filled(shape))
                if len(shape) == 2:
                    check(lambda xp, a: (xp.fill_diagonal(a.T, value), a), filled(shape))
    for k in (-1, 0, 2):
        check(lambda xp: (xp.tril_indices(4, k, 5), xp.triu_indices(4, k, 5), xp.tril_indices(3, k)))
        check(lambda xp, a: (xp.tril_indices_from(a, k), xp.triu_indices_from(a, k)), filled((3, 4)))
    check(lambda xp, a: (xp.diag_indices(3), xp.diag_indices_from(a)), filled((3, 3)))
    check(lambda xp, a: xp.diag_indices_from(a), filled((3, 4)))


def test_flat_and_coordinates():
    flat = np.array([[0, 5], [59, 7]])
    for order in "CFX":
        check(lambda xp, i: xp.unravel_index(i, (3, 4, 5), order), flat)
        check(lambda xp, i: xp.ravel_multi_index((i % 3, i % 4), (3, 4), order=order), flat)
        for mode in ("wrap", "clip", ("wrap", "clip")):
            check(lambda xp, i: xp.ravel_multi_index((i, i - 9), (3, 4), mode, order), flat)
    check(lambda xp, i: xp.unravel_index(17, (3, 4, 5)), flat)
    check(lambda xp, i: xp.ravel_multi_index((i,), (3, 4)), flat)
    check(lambda xp, i: xp.unravel_index(i * 0.5, (3, 4)), flat)


def test_meshes_of_indices():
    a = filled((4, 5))
    check(lambda xp, a: a[xp.ix_([0, 2], [1, -1, 3])], a)
    check(lambda xp, a: a[xp.ix_([True, False, True, False], [])], a)
    check(lambda xp, a: xp.ix_([[1]], [2]), a)
    check(lambda xp, a: xp.r_[a[0], 7, 0:5:2, 0:1:3j], a)
    check(lambda xp, a: xp.r_[a, a], a)
    check(lambda xp, a: xp.c_[a[0], a[1]], a)
    check(lambda xp, a: xp.c_[a, a[:, 0]], a)
    check(lambda xp, a: a[xp.s_[1:3, ::2]], a)
    check(lambda xp, a: xp.r_[a, 3], a)
    check(lambda xp, a: xp.c_[1, 2.5], a)
    assert ad.newaxis is None and ad.asarray(a)[:, ad.newaxis].shape == (4, 1, 5)


@pytest.mark.parametrize("text", ["0", "-1", "1", "0,2", "1,2", "0,2,0", "1,2,0", "0,3", "-1,3,1", "0,3,-2", "x", "0,a", ""])
def test_texts_of_r(text):
    a = filled((4, 4))
    check(lambda xp, a: xp.r_[text, a, a[::-1]], a)
    check(lambda xp, a: xp.r_[text, a[0], a[1], 0:4], a)
    check(lambda xp, a: xp.c_[text, a[0], a[1]], a)
    check(lambda xp, a: xp.r_[text, 3, 2.5], a)
    check(lambda xp, a: xp.r_[a[0], text], a)


def test_matrices_of_r():
    with pytest.raises(NotImplementedError, match="makes a matrix"):
        ad.r_["r", ad.arange(3)]
    assert len(ad.r_) == len(np.r_) == 0


@pytest.mark.parametrize("order", ["C", "F", "c", "f", None, "A", 3])
def test_orders_of_flat_indices(order):
    flat, places = np.array([[0, 5], [23, 7]]), (np.array([0, 1, 3]), np.array([4, 5, 0]))
    check(lambda xp, i: xp.unravel_index(i, (4, 6), order), flat)
    check(lambda xp, i, j: xp.ravel_multi_index((i, j), (4, 6), order=order), *places)
    check(lambda xp, i, j: xp.ravel_multi_index((i, j), (2, 3), "wrap", order), *places)
    check(lambda xp, a: xp.reshape(a, (3, 4), order=order), filled((2, 6)))
    check(lambda xp, a: xp.reshape(a.T, (3, -1), order=order), filled((2, 6)))


@pytest.mark.parametrize("name", ["mgrid", "ogrid"])
def test_grids(name):
    x = np.array([[0.0], [1.0], [4.0]])
    check(lambda xp, x: getattr(xp, name)[x:x + 1:4j], x, ulps=2)
    check(lambda xp, x: list(getattr(xp, name)[x:x + 1:3j, 2 * x:5:3j]), x, ulps=2)
    for key in ((slice(0, 5), slice(1, 2, 0.3)), (slice(None, 3), slice(-1, 1, 5j), slice(2, 7, 2)), (slice(0, 1, 1j),) * 2,
                (slice(3, 0, -1), slice(0, 0)), slice(-1, 1, 5j), slice(1, 7, 1j), slice(0, np.float32(3)), slice(5), ()):
        check(lambda xp, x: list(getattr(xp, name)[key]), x, ulps=2)


def test_indices_of_extremes_of_a_type():
    a = filled((3, 4))
    for name in ("argmin", "argmax"):
        for a in (ad.arange(12).reshape(3, 4), ad.asarray(2.5)):
            assert getattr(ad, name)(a, dtype="int16").dtype == np.int16
            index = getattr(a, name)(0, dtype=np.uint8)
            assert index.dtype == np.uint8
            np.testing.assert_array_equal(index.get(), getattr(a.get(), name)(0))


@pytest.mark.parametrize("key", [[[]], [[[[]]]], np.zeros(0, bool), np.zeros((2, 0), bool), np.zeros((0, 3), bool),
                                 (slice(None), np.zeros(0, bool)), (np.zeros((0, 3), bool), np.zeros(0, bool)),
                                 np.zeros((0, 0, 4), bool), np.zeros((0, 1), bool), np.zeros((1, 0), bool)], ids=repr)
def test_keys_that_choose_nothing(key):
    host = np.arange(24).reshape(2, 3, 4)
    servers = tuple(ad.asarray(each) if isinstance(each, np.ndarray) else each for each in key) if isinstance(key, tuple) \
        else ad.asarray(key) if isinstance(key, np.ndarray) else key
    for mine in (key, servers):
        a, want = ad.asarray(host), host.copy()
        try:
            shape = host[key].shape
        except IndexError as error:
            with pytest.raises(IndexError, match=str(error)[:30]):
                a[mine]
            with pytest.raises(IndexError):
                a[mine] = 1
            continue
        assert a[mine].shape == shape
        a[mine] = want[key] = 7
        np.testing.assert_array_equal(a.get(), want)
