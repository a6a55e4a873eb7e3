"""Numbers in and out: Python's and NumPy's as operands, elements as Python's, whole arrays up and down."""
import operator
import pickle

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import arrayd as ad
from oracle import DTYPES, check, compare, outcome, random, seed

PROFILE = settings(max_examples=300, derandomize=True, deadline=None, database=None)
LARGE = [2**31, -2**31 - 1, 2**63, -2**63, -2**63 - 1, 2**64 - 1, 2**64, 2**100, -2**100]
COMPARE = ["lt", "le", "eq", "ne", "gt", "ge"]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", COMPARE)
def test_comparing_with_any_integer(dtype, name):
    """Integers that no element can be have an answer, as in NumPy."""
    if dtype == np.bool_:
        return  # NumPy's answers differ between loops
    x = random(seed(name, dtype), dtype, (5,))
    for number in LARGE + [0, -1, 127, 128, 255, 256]:
        for apply in (lambda a, b: getattr(operator, name)(a, b), lambda a, b: getattr(operator, name)(b, a)):
            check(lambda xp, a: apply(a, number), x)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", ["add", "mul", "and_", "floordiv"])
def test_computing_with_any_integer(dtype, name):
    if dtype == np.bool_:
        return  # NumPy's answers differ between loops
    x = np.ones(3, dtype)
    for number in LARGE + [127, 128, 255, 256, -1]:
        check(lambda xp, a: getattr(operator, name)(a, number), x)


@PROFILE
@given(st.sampled_from(DTYPES), st.sampled_from(DTYPES), st.booleans())
def test_scalars_of_numpy_are_strong(dtype, kind, reflected):
    x, scalar = np.ones(3, dtype), kind.type(1)
    check(lambda xp, a: scalar + a if reflected else a + scalar, x)
    check(lambda xp, a: scalar * a if reflected else a * scalar, x)


@pytest.mark.parametrize("other", [np.arange(3), np.array(1)])
def test_arrays_of_numpy_are_refused(other):
    a = ad.arange(3)
    for run in (operator.add, lambda x, y: y + x, operator.iadd, operator.eq, operator.matmul, divmod, ad.add):
        with pytest.raises(TypeError):
            run(a, other)
    with pytest.raises(TypeError, match="asarray"):
        a + other


def test_others_are_left_to_them():
    class Answer:
        def __radd__(self, other):
            return "mine"

        def __array_ufunc__(self, *args, **kwargs):
            return NotImplemented
    assert ad.arange(3) + Answer() == "mine"
    for other in ("text", None, object(), [1, 2, 3], (1,)):
        with pytest.raises(TypeError, match="unsupported operand"):
            ad.arange(3) + other
    assert (ad.arange(3) == Answer()) is False and (ad.arange(3) != Answer()) is True


CONVERSIONS = [bool, int, float, complex, operator.index, repr, str, len, list]


@pytest.mark.parametrize("convert", CONVERSIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("shape", [(), (1,), (2,), (0,), (1, 1)], ids=str)
def test_conversions(convert, shape):
    for dtype in DTYPES:
        x = np.asarray(random(seed("conversion", dtype), dtype, shape, "SMALL"))
        expected, wrong = outcome(lambda: convert(x))
        actual, error = outcome(lambda: convert(ad.asarray(x)))
        assert type(error) is type(wrong), (dtype, wrong, error)
        if wrong is not None:
            assert str(error) == str(wrong) or convert is operator.index, (dtype, wrong, error)
        elif convert is list:
            compare([np.asarray(one) for one in expected], actual and [one.get() for one in actual])
        elif dtype.name != "float16" or convert is not str:
            assert type(actual) is type(expected) and (actual == expected), (dtype, actual, expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_value_comes_back(dtype):
    """All float16 values, and the ends of the other types, come back through item, tolist and get."""
    if dtype == np.float16:
        x = np.arange(2**16, dtype=np.uint16).view(np.float16)
    elif dtype.kind in "iu":
        x = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max, 0, 1], dtype)
    else:
        x = random(seed("back", dtype), dtype, (9,))
    a = ad.asarray(x)
    assert a.get().tobytes() == x.tobytes() == a.tobytes()
    assert np.array_equal(a.tolist(), x.tolist(), equal_nan=True)
    for i in range(0, x.size, max(1, x.size // 300)):
        one = a.item(i)
        assert type(one) is type(x.item(i)) and (one == x.item(i) or one != one)


def test_item():
    x = np.arange(6).reshape(2, 3)
    a = ad.asarray(x)
    for args in [(0,), (5,), (-1,), (1, 2), ((1, -3),), (6,), (2, 0), (1, 2, 3), ()]:
        expected, wrong = outcome(lambda: x.item(*args))
        actual, error = outcome(lambda: a.item(*args))
        assert (actual, type(error)) == (expected, type(wrong))


LAYOUTS = [lambda x: x, lambda x: x.T, lambda x: x[::-1], lambda x: x[::2, 1:], lambda x: np.asfortranarray(x),
           lambda x: np.broadcast_to(x[:1], (3, 4, 5)), lambda x: x[:0], lambda x: x[0, 0, 0], lambda x: x.swapaxes(0, 1)]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_up_and_down_in_every_layout(dtype):
    x = random(seed("layout", dtype), dtype, (3, 4, 5))
    a = ad.asarray(x)
    for layout in LAYOUTS:
        compare(np.asarray(layout(x)), ad.asarray(layout(x)).get(), exact=True)
    for turn in [lambda v: v.T, lambda v: v[::-1], lambda v: v[1:, ::2], lambda v: v[:, :0], lambda v: v.transpose(1, 2, 0)]:
        for order in "CFAK":
            got = turn(a).get(order=order)
            compare(turn(x), got, exact=True)
            assert got.flags.f_contiguous if order == "F" else got.flags.c_contiguous or order in "AK"


def test_types_that_do_not_fit():
    assert ad.asarray(np.arange(3, dtype=">i4")).dtype == np.int32
    compare(np.arange(3.0), ad.asarray(np.arange(3, dtype=">f8")).get())
    for wrong in (np.array(["a"]), np.array([None]), np.zeros(2, "datetime64[s]"), np.zeros(2, np.longdouble)):
        with pytest.raises(TypeError):
            ad.asarray(wrong)
    with pytest.raises(TypeError):
        ad.zeros(3) + np.longdouble(1)
    with pytest.raises(TypeError):
        ad.zeros(3, ">i4")


def test_get_into_out():
    a = ad.arange(6.0).reshape(2, 3)
    for out in (np.empty((2, 3)), np.empty((2, 3), np.float32), np.empty((3, 2)).T, np.empty((2, 6))[:, ::2]):
        assert a.get(out=out) is out
        compare(np.arange(6.0).reshape(2, 3), out, dtype=False)
    with pytest.raises(ValueError, match="Shape mismatch"):
        a.get(out=np.empty(6))
    with pytest.raises(TypeError):
        a.get(out=[0] * 6)
    with pytest.raises(ValueError, match=r"Shape mismatch. Expected shape: \(2, 3\), actual shape: \(6,\)"):
        a.set(np.empty(6))


def test_set():
    a = ad.zeros((2, 3), np.float32)
    a.set(np.arange(6).reshape(2, 3))
    a.T.set(np.arange(6).reshape(3, 2))
    compare(np.arange(6, dtype=np.float32).reshape(3, 2).T, a.get())
    with pytest.raises(ValueError):
        a.set(np.zeros(3))


def test_large_transfers():
    x = random(seed("large"), np.float64, (3, 1 << 20))
    a = ad.asarray(x)
    assert np.array_equal(a.get(), x) and np.array_equal(a.T.get(), x.T)
    a[1] = x[2]
    assert np.array_equal(a[1].get(), x[2])


def test_ufuncs_are_picklable_and_described():
    for name, f in ad._core.ufuncs.items():
        assert pickle.loads(pickle.dumps(f)) is f
        assert f.__name__ == name and f.nargs == f.nin + f.nout and f.ntypes == len(f.types)
        assert f.__doc__.startswith(name + "(") and repr(f) == f"<ufunc '{name}'>"
        theirs = getattr(np, name, None)
        if isinstance(theirs, np.ufunc):
            assert (f.nin, f.nout) == (theirs.nin, theirs.nout)
            assert f.identity == theirs.identity or theirs.identity is None or f.identity is None


def test_arguments():
    a = ad.arange(3.0)
    out = ad.zeros(3)
    assert ad.add(a, 1, out) is out and ad.add(a, 1, out=(out,)) is out
    one, two = ad.zeros(3), ad.zeros(3)
    assert ad.modf(a, one, two) == (one, two) and ad.modf(a, out=(None, two))[1] is two
    for wrong in (lambda: ad.add(a), lambda: ad.add(a, a, out, out), lambda: ad.add(a, a, out, out=out),
                  lambda: ad.add(a, a, nothing=1), lambda: ad.add(a, a, out=np.zeros(3)), lambda: ad.add(a, [1, 2, 3]),
                  lambda: ad.add(a, a, where=[True]), lambda: ad.add(a, a, dtype="S3"), lambda: ad.modf(a, out=one)):
        with pytest.raises(TypeError):
            wrong()
    for wrong in (lambda: ad.add(a, a, casting="any"), lambda: ad.add(a, a, out=(out, out)), lambda: ad.add(a, ad.zeros(2)),
                  lambda: ad.add(a, a, out=ad.zeros(2))):
        with pytest.raises(ValueError):
            wrong()
