"""Arguments stand for what they do in NumPy, or are refused as there: outputs, counts, elements to fill with, edges."""
import numpy as np
import pytest

import arrayd as ad
from oracle import check

DTYPES = ["?", "i1", "u1", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16"]
NAN = float("nan")

# Functions with out=: of an array of ones, what is stored in an out of another type.
OUTPUTS = {
    "dot": lambda xp, a, out: xp.dot(a, a, out=out(2, 2)), "method": lambda xp, a, out: a.dot(a, out=out(2, 2)),
    "dot_vector": lambda xp, a, out: xp.dot(a[0], a[0], out=out()),
    "dot_0d": lambda xp, a, out: xp.dot(a[0, 0], a, out=out(2, 2)),
    "multi_dot": lambda xp, a, out: xp.linalg.multi_dot([a, a, a], out=out(2, 2)),
    "matmul": lambda xp, a, out: xp.matmul(a, a, out=out(2, 2)),
    "outer": lambda xp, a, out: xp.outer(a[0], a[0], out=out(2, 2)),
    "einsum": lambda xp, a, out: xp.einsum("ij,jk->ik", a, a, out=out(2, 2)),
    "take": lambda xp, a, out: xp.take(a, xp.array([1, 0]), 0, out=out(2, 2)),
    "take_one": lambda xp, a, out: xp.take(a, 1, out=out()),
    "compress": lambda xp, a, out: xp.compress([True, False], a, 0, out=out(1, 2)),
    "choose": lambda xp, a, out: xp.choose(xp.array([1, 0]), a, out=out(2)),
    "argmax": lambda xp, a, out: xp.argmax(a, 0, out=out(2)), "argmin": lambda xp, a, out: a.argmin(1, out=out(2)),
    "median": lambda xp, a, out: xp.median(a, 0, out=out(2)),
    "nanmedian": lambda xp, a, out: xp.nanmedian(a, 0, out=out(2)),
    "std": lambda xp, a, out: xp.std(a, 0, out=out(2)), "nanstd": lambda xp, a, out: xp.nanstd(a, 0, out=out(2)),
    "var": lambda xp, a, out: xp.var(a, 0, out=out(2)), "mean": lambda xp, a, out: xp.mean(a, 0, out=out(2)),
    "sum": lambda xp, a, out: xp.sum(a, 0, out=out(2)), "cumsum": lambda xp, a, out: xp.cumsum(a, 0, out=out(2, 2)),
    "trace": lambda xp, a, out: xp.trace(a, out=out()), "clip": lambda xp, a, out: xp.clip(a, 0, 1, out=out(2, 2)),
    "round": lambda xp, a, out: xp.round(a, out=out(2, 2)),
    "quantile": lambda xp, a, out: xp.quantile(a, .5, 0, out=out(2)),
    "concatenate": lambda xp, a, out: xp.concatenate([a, a], out=out(4, 2)),
    "stack": lambda xp, a, out: xp.stack([a, a], out=out(2, 2, 2)), "all": lambda xp, a, out: xp.all(a, 0, out=out(2)),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_types_of_outputs(name):
    for dtype in DTYPES:
        for other in DTYPES:
            def body(xp, a):
                made = []

                def out(*shape):
                    made.append(xp.zeros(shape, other))
                    return made[0]

                OUTPUTS[name](xp, a, out)
                return made[0]

            check(body, np.ones((2, 2), dtype))


def test_layouts_of_outputs_of_products():
    a = np.arange(4.0).reshape(2, 2)
    for out in (lambda xp: xp.zeros((2, 2), order="F"), lambda xp: xp.zeros((2, 4))[:, ::2], lambda xp: xp.zeros(4),
                lambda xp: xp.zeros((2, 3)), lambda xp: xp.zeros((1, 2, 2)), lambda xp: xp.zeros((2, 2))):
        check(lambda xp, x: xp.dot(x, x, out=out(xp)), a)
        check(lambda xp, x: xp.linalg.multi_dot([x, x], out=out(xp)), a)


@pytest.mark.parametrize("dtype", ["?", "u1", "i4", "i8", "f2", "f4", "f8", "c8"])
def test_fill(dtype):
    values = [5, 7.5, 3j, -1, 300, True, None, "x", "3", [1], [], (1, 2), 10**30, NAN, np.int8(3), np.float64(1e20),
              np.array(5), np.array(7.5)]
    for shape in ((3,), (), (0,), (2, 3)):
        for value in values:
            if dtype == "?" and isinstance(value, (list, tuple)):
                continue  # NumPy takes the truth of any object

            def body(xp, a):
                given = xp.array(value) if isinstance(value, np.ndarray) else value
                assert a.fill(given) is None
                return a

            check(body, np.ones(shape, dtype))


class Handing:
    """Hands out an array by CuPy's method."""

    def __init__(self, array):
        self.array = array

    def __cupy_get_ndarray__(self):
        return self.array


def test_objects_that_hand_out_arrays():
    """Objects that hand out arrays are values and indices, as the arrays are."""
    a, n, index = ad.zeros(5), np.zeros(5), Handing(ad.array([3, 1]))
    a[...], n[...] = Handing(ad.arange(5)), np.arange(5)
    a[index], n[[3, 1]] = Handing(ad.array([7, 8])), [7, 8]
    a[Handing(ad.array([True, False, False, False, True]))] = Handing(ad.array(9))
    n[[0, 4]] = 9
    assert a.tolist() == n.tolist()
    assert a[index].tolist() == a[index,].tolist() == n[[3, 1]].tolist() and a[[index]].tolist() == [n[[3, 1]].tolist()]
    rows = [ad.array([1, 2]), ad.array([0, 4])]
    assert a[rows].tolist() == n[[[1, 2], [0, 4]]].tolist()
    for wrong in ([None], ["a"], object(), [ad.array([0.5])], [[1], rows[0]]):
        with pytest.raises(IndexError):
            a[wrong]


def test_fill_with_an_array_of_the_server():
    a = ad.zeros(3)
    a.fill(Handing(ad.array(1.5)))
    assert a.tolist() == [1.5] * 3
    with pytest.warns(np.exceptions.ComplexWarning):
        a.fill(ad.array(1j))
    for value in (ad.array(5), ad.array(2.5), ad.arange(4)[2]):
        a.fill(value)
        assert a.get().tolist() == [float(value)] * 3
    for value in (ad.array([5]), ad.arange(3), ad.zeros((0,)), [5], (1, 2), np.ones(1), np.ones(1, "?"), Handing(ad.ones(1))):
        with pytest.raises(ValueError, match="setting an array element with a sequence"):
            a.fill(value)


@pytest.mark.parametrize("dtype", ["?", "u1", "i8", "u8", "f2", "f4", "f8", "c16"])
@pytest.mark.parametrize("number", [2**64, -2**63 - 1, 10**40, 10**400])
def test_integers_beyond_64_bits_are_put_into_arrays(dtype, number):
    """Arrays of floats take them, others refuse them."""
    def filled(change):
        def body(xp, a):
            change(xp, a)
            return a
        return body

    a = np.ones((2, 3), dtype)
    for change in (lambda xp, a: a.__setitem__(..., number), lambda xp, a: a.__setitem__((0, 1), number),
                   lambda xp, a: a.__setitem__(a > 0, number), lambda xp, a: xp.copyto(a, number),
                   lambda xp, a: xp.put(a, [0, 2], number), lambda xp, a: xp.fill_diagonal(a, number)):
        if dtype == "?" and change.__code__.co_names == ("copyto",):
            continue  # NumPy refuses there what it takes in the others
        check(filled(change), a)
    if dtype != "?":
        check(lambda xp, a: xp.full_like(a, number), a)
        check(lambda xp, a: xp.where(a > 0, a, number), a)
        check(lambda xp, a: xp.where(a > 0, number, a), a)


COUNTS = [2, 2.5, [2.0, 1, 1], [2, 1, 0], True, np.int8(2), np.uint64(2), np.float64(2), np.bool_(True), np.array(2.0),
          np.array([2.0, 1, 1]), np.array([2, 1, 0], "u8"), np.array([2, 1, 0], "i2"), np.array([True, False, True]),
          -1, [1, 2], np.array([[1, 1, 1]]), 1j, "2"]


def test_repeat():
    for count in COUNTS:
        for a, axis in ((np.arange(3), None), (np.arange(12).reshape(3, 4), 0)):
            def given(xp):
                return xp.array(count) if isinstance(count, np.ndarray) else count
            check(lambda xp, x: xp.repeat(x, given(xp), axis), a)
            check(lambda xp, x: x.repeat(given(xp), axis), a)


WHOLE = {
    "choose": lambda xp, n: xp.choose(n, [1, 2, 3]), "vander": lambda xp, n: xp.vander(xp.arange(3), n),
    "tri": lambda xp, n: xp.tri(3, k=n), "tril": lambda xp, n: xp.tril(xp.ones((3, 3)), n),
    "zeros": lambda xp, n: xp.zeros(n), "ones": lambda xp, n: xp.ones((2, n)), "full": lambda xp, n: xp.full(n, 1),
    "reshape": lambda xp, n: xp.arange(4).reshape(n, -1),
    "broadcast_to": lambda xp, n: xp.broadcast_to(xp.arange(1), n),
    "eye": lambda xp, n: xp.eye(n), "take": lambda xp, n: xp.take(xp.arange(3), n),
    "linspace": lambda xp, n: xp.linspace(0, 1, n),
    "diff": lambda xp, n: xp.diff(xp.arange(5), n), "partition": lambda xp, n: xp.sort(xp.partition(xp.arange(5), n)),
    "matrix_power": lambda xp, n: xp.linalg.matrix_power(xp.eye(2), n),
    "fft": lambda xp, n: xp.fft.fft(xp.arange(4), n),
    "bincount": lambda xp, n: xp.bincount(xp.arange(2), minlength=n),
    "squeeze": lambda xp, n: xp.squeeze(xp.ones((2, 3, 1)), n),
    "cumsum": lambda xp, n: xp.cumsum(xp.ones((2, 2, 2)), n),
    "roll_axis": lambda xp, n: xp.roll(xp.ones((2, 2, 3)), 1, n),
}


@pytest.mark.parametrize("name", WHOLE)
def test_numbers_that_must_be_whole(name):
    for n in (2, 2.0, 1.5, np.float64(1), np.float32(2), 1j, "1", np.int8(1)):
        if name in ("tri", "tril") and isinstance(n, float):
            continue  # NumPy compares with it
        check(lambda xp: WHOLE[name](xp, n))


@pytest.mark.parametrize("name", ["zeros", "ones", "full", "reshape", "broadcast_to", "eye", "take"])
def test_a_bool_is_no_size(name):
    check(lambda xp: WHOLE[name](xp, True))


def test_an_array_takes_a_polynomial_for_its_coefficients():
    operations = (lambda a, p: a * p, lambda a, p: a + p, lambda a, p: a - p, lambda a, p: a / p, lambda a, p: a == p,
                  lambda a, p: a != p)
    for c in ([1, 2, 3], [0, 0, 4, 5], [2.0]):
        for operate in operations:
            for a in (np.arange(3), np.arange(6.0).reshape(2, 3), np.ones(()), np.arange(4)):
                check(lambda xp, x: operate(x, xp.poly1d(c)), a)
    p = ad.poly1d([1, 2]) * ad.arange(3)
    assert isinstance(p, ad.poly1d) and p.get() == np.poly1d([1, 2]) * np.arange(3)


EDGES = [[1, 3, 5], [5, 3, 1], [NAN, 3, 1], [NAN, NAN, 3, 1], [NAN, NAN], [NAN], [1, 3, NAN], [1, NAN, NAN], [2, 2, 2],
         [2, 2, 1], [1, 2, 2], [NAN, NAN, 2, 2], [], [4], [np.inf, 3, -np.inf], [-np.inf, 3, np.inf, NAN]]


@pytest.mark.parametrize("right", [False, True])
def test_digitize(right):
    x = np.array([1.0, NAN, 5, -3, 2, 3, np.inf, -np.inf])
    for edges in EDGES:
        check(lambda xp, x, bins: xp.digitize(x, bins, right), x, np.array(edges, float))
        np.testing.assert_array_equal(ad.digitize(ad.array(x), np.array(edges, float), right).get(),
                                      np.digitize(x, np.array(edges, float), right))


@pytest.mark.parametrize("q", [.3, np.float16(.3), np.float32(.3), np.float64(.3), np.array(.3, "f4"),
                               np.array([.3, .5], "f4"), np.array([.25], "f2"), 1, np.int8(1)], ids=repr)
def test_types_of_quantiles(q):
    for dtype in ("i1", "u2", "i4", "i8", "u8", "f2", "f4", "f8"):
        for name in ("quantile", "nanquantile", "percentile"):
            for method in ("linear", "hazen", "lower"):
                def body(xp, a):
                    return getattr(xp, name)(a, xp.array(q) if isinstance(q, np.ndarray) else q, method=method)
                check(body, np.array([0, 1, 2, 4], dtype), ulps=64)


def test_bincount_of_the_least_number():
    """The distance of the least int64 to the number of bins is no int64."""
    check(lambda xp, x: xp.bincount(x), np.array([3, np.iinfo(np.int64).min]))


def test_bincount_of_nothing():
    for weights in (None, "f4", "f8", "i8", "?"):
        for least in (0, 5):
            for dtype in ("i8", "u1"):
                check(lambda xp, x: xp.bincount(x, None if weights is None else xp.ones(0, weights), least),
                      np.array([], dtype))


def test_rank():
    for dtype in ("f4", "f8", "c8", "i8"):
        check(lambda xp, a: xp.linalg.lstsq(a, xp.ones(3))[2], np.eye(3, 2, dtype=dtype))
    assert type(ad.linalg.lstsq(ad.eye(3), ad.ones(3))[2]) is np.int32


# Functions with a bool for an axis: NumPy refuses it in those that it has in C, and takes it in others.
BOOL_AXES = {
    "concatenate": lambda xp, a: xp.concatenate([a, a], axis=True), "append": lambda xp, a: xp.append(a, a, axis=True),
    "squeeze": lambda xp, a: xp.squeeze(a[:1], axis=False), "squeeze_all": lambda xp, a: xp.squeeze(a[:1], axis=(False,)),
    "squeeze_method": lambda xp, a: a[:1].squeeze(axis=False),
    "cumsum": lambda xp, a: xp.cumsum(a, axis=True), "cumprod_method": lambda xp, a: a.cumprod(axis=True),
    "nancumsum": lambda xp, a: xp.nancumsum(a, axis=True), "accumulate": lambda xp, a: xp.add.accumulate(a, axis=True),
    "argmax": lambda xp, a: xp.argmax(a, axis=True), "argmin_method": lambda xp, a: a.argmin(axis=False),
    "argsort": lambda xp, a: xp.argsort(a, axis=True), "argpartition": lambda xp, a: xp.argpartition(a, 0, axis=True),
    "take": lambda xp, a: xp.take(a, xp.array([0]), axis=True), "repeat": lambda xp, a: xp.repeat(a, 2, axis=True),
    "compress": lambda xp, a: xp.compress([True, False], a, axis=True), "trapezoid": lambda xp, a: xp.trapezoid(a, axis=True),
    "packbits": lambda xp, a: xp.packbits(a > 1, axis=True), "unpackbits": lambda xp, a: xp.unpackbits(a.astype("u1"), axis=True),
    "sum": lambda xp, a: xp.sum(a, axis=True), "flip": lambda xp, a: xp.flip(a, axis=True),
    "stack": lambda xp, a: xp.stack([a, a], axis=True), "sort": lambda xp, a: xp.sort(a, axis=True),
    "diff": lambda xp, a: xp.diff(a, axis=True), "roll": lambda xp, a: xp.roll(a, 1, axis=True),
    "median": lambda xp, a: xp.median(a, axis=True), "swapaxes": lambda xp, a: xp.swapaxes(a, True, False),
}


@pytest.mark.parametrize("name", BOOL_AXES)
def test_bools_as_axes(name):
    check(BOOL_AXES[name], np.array([[3.0, 1.0], [0.0, 2.0]]))


@pytest.mark.parametrize("key", [0, -1, slice(0, 1), slice(None), ..., (0, 0), (0, slice(None)), (slice(None), 1)], ids=str)
@pytest.mark.parametrize("value", [[], [3], [[3]], [3, 4], [[3, 4]], [[[3, 4]]], ([3, 4], [5, 6]), [[[3]]]], ids=str)
@pytest.mark.parametrize("shape", [(), (2,), (2, 2), (1, 2)], ids=str)
def test_lists_that_are_nested_deeper_than_what_they_are_assigned_to(shape, value, key):
    def assign(xp, a):
        a[key] = value
        return a

    check(assign, np.zeros(shape))


def test_an_array_that_is_assigned_may_begin_with_axes_of_size_1():
    a = ad.zeros(2)
    a[0], a[1] = ad.array([3.0]), np.array([[4.0]])  # as in CuPy; NumPy refuses a sequence for one element
    assert a.get().tolist() == [3, 4]
