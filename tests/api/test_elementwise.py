"""Every elementwise function and operator, on every type that the standard has for it, beside array-api-strict."""
import operator
import warnings

import numpy as np
import pytest
from standard import COMPLEX, DTYPES, FLOATING, INTEGER, equal, host, name_of, of, xs

import arrayd as ad

ONE = """abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor imag isfinite isinf
isnan log log10 log1p log2 logical_not negative positive real reciprocal round sign signbit sin sinh sqrt square tan
tanh trunc""".split()
TWO = """add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide equal
floor_divide greater greater_equal hypot less less_equal logaddexp logical_and logical_or logical_xor maximum minimum
multiply nextafter not_equal pow remainder subtract""".split()
# Computed by formulas that are not NumPy's: nearly equal. The others have to be equal.
ROUNDED = set("""acos acosh asin asinh atan atan2 atanh cos cosh divide exp expm1 hypot log log10 log1p log2 logaddexp
multiply pow reciprocal sin sinh sqrt square tan tanh abs sign floor_divide remainder""".split())
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, 1e-3, -7.25, 100.0, np.inf, -np.inf, np.nan]


def values(dtype):
    """Elements that differ in what functions do with them."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return np.array([True, False, True])
    if kind in "iu":
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        return np.array([0, 1, 2, 3, 5, 7, high, high - 1, low, low + 1] + [-1, -2, -7] * (low < 0), dtype)
    if kind == "f":
        finite = np.finfo(dtype)
        return np.array([*SPECIAL, finite.max, finite.min, finite.tiny, finite.smallest_subnormal], dtype)
    parts = np.array([0.5, -0.25, 1.0, -1.0, 2.0, -3.0, 0.0], np.finfo(dtype).dtype)
    return (parts[:, None] + 1j * parts[None, :-1]).astype(dtype).ravel()


def tried(function, *args):
    """The result, or None where the standard has the function refuse such types."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*args)
    except TypeError:
        return None


def pairs(name, dtype):
    """Combine each element with each, but for what NumPy or C leave undefined."""
    a, b = (each.ravel() for each in np.meshgrid(values(dtype), values(dtype), indexing="ij"))
    if "shift" in name:
        b = b % np.array(np.iinfo(dtype).bits, dtype) if np.dtype(dtype).kind in "iu" else np.ones_like(b)
    if np.dtype(dtype).kind in "iu":
        if name in ("pow", "floor_divide", "remainder"):
            b = np.where(b <= 0, np.array(1, dtype), b)
    return a, b


def compare(name, *inputs):
    """Compare the results if the standard has the function for such inputs. Tell whether it has."""
    want = tried(getattr(xs, name), *(of(xs, each) for each in inputs))
    if want is None:
        return False
    with np.errstate(all="ignore"):
        got = getattr(ad, name)(*(of(ad, each) for each in inputs))
    what = f"{name}{[getattr(each, 'dtype', each) for each in inputs]}"
    assert got.dtype == name_of(want.dtype), f"{what}: {got.dtype}, not {name_of(want.dtype)}"
    got, want = got.get(), host(want)
    if name in ("maximum", "minimum"):  # of 0.0 and -0.0 either
        got, want = got + np.array(0, got.dtype), want + np.array(0, got.dtype)
    rounded = name in ROUNDED and got.dtype.kind in "fc"
    equal(got, want, what, 64.0 if rounded else 0)
    return True


@pytest.mark.parametrize("name", ONE)
def test_of_one(name):
    done = [dtype for dtype in DTYPES if compare(name, values(dtype))]
    assert {"float32", "float64"} <= set(done) or done[:2] == ["bool", "int8"] or done == COMPLEX or done == ["bool"]


@pytest.mark.parametrize("name", sorted({*ONE} - {"sign"}))  # sign(inf) is 1 for NumPy, inf/inf for the oracle
def test_of_complex_numbers_at_the_edge(name):
    parts = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan])
    z = np.empty((7, 7), complex)
    z.real, z.imag = parts[:, None], parts
    compare(name, z)


@pytest.mark.parametrize("name", TWO)
def test_of_two(name):
    done = [dtype for dtype in DTYPES if compare(name, *pairs(name, dtype))]
    assert {"float32", "float64"} <= set(done) or done[:2] == ["bool", "int8"] or done == INTEGER or done == ["bool"]


@pytest.mark.parametrize("name", TWO)
def test_of_two_types(name):
    """Operands of two types and of shapes that broadcast."""
    for one in DTYPES:
        for other in DTYPES:
            if one != other:
                x, y = np.ones((3, 1), one), np.array([1, 2, 3], other)
                compare(name, x, y)


@pytest.mark.parametrize("name", TWO)
def test_with_a_number(name):
    numbers = {"bool": [True], "complex64": [2, 1.5, 1j], "complex128": [2, 1.5, 1j], "float32": [2, 0.1],
               "float64": [2, 0.1]}
    for dtype in DTYPES:
        for number in numbers.get(dtype, [2]):
            x = np.array([1, 2, 3], dtype)
            compare(name, x, number)
            compare(name, number, x)


def test_clip_and_where():
    for dtype in [*INTEGER, *FLOATING]:
        x = values(dtype)
        for low, high in ((0, 2), (None, 3), (1, None), (None, None), (np.array(1, dtype), np.array(2, dtype))):
            if name_of(dtype).startswith("f"):
                low = 0.5 if low == 0 else low
            compare("clip", x, low, high)
    for one in DTYPES:
        for other in DTYPES:
            compare("where", np.array([[True], [False]]), np.ones(3, one), np.array([0, 1, 2], other))
        compare("where", np.array([True, False]), np.ones(2, one), 1)


# ---- operators ----

BINARY = "add sub mul truediv floordiv mod pow matmul and_ or_ xor lshift rshift lt le gt ge eq ne".split()


@pytest.mark.parametrize("name", BINARY)
def test_operators(name):
    act, in_place = getattr(operator, name), getattr(operator, "i" + name.rstrip("_"), None)
    done = 0
    for dtype in DTYPES:
        x = np.array([[1, 2, 3], [4, 1, 0], [2, 2, 5]]).astype(dtype)
        y = np.array([[1, 1, 2], [3, 1, 1], [2, 1, 1]]).astype(dtype)
        for one, other in ((x, y), (x, y[0]), (x, 2), (2, x + y), (x, 1.5), (1.5, x + y), (x, True), (True, x)):
            if name in ("floordiv", "mod", "pow") and isinstance(other, np.ndarray) and other.dtype.kind == "b":
                continue
            if name == "matmul" and (one is not x or other is not y):
                continue
            want = tried(act, of(xs, one), of(xs, other))
            if want is None:
                continue
            got = act(of(ad, one), of(ad, other))
            assert got.dtype == name_of(want.dtype), (name, dtype, one, other)
            equal(got.get(), host(want), name, 4)
            done += 1
            if in_place and isinstance(one, np.ndarray):
                mine, its = of(ad, one), of(xs, one)
                before = mine
                if tried(in_place, its, of(xs, other)) is not None:
                    mine = in_place(mine, of(ad, other))
                    assert mine is before and mine.dtype == dtype
                    equal(mine.get(), host(want).astype(dtype), name, 4)
    assert done > 5


def test_operators_of_one():
    for dtype in DTYPES:
        for act in (operator.neg, operator.pos, operator.abs, operator.invert):
            want = tried(act, of(xs, values(dtype)))
            if want is not None:
                got = act(of(ad, values(dtype)))
                assert got.dtype == name_of(want.dtype)
                equal(got.get(), host(want), str(act), 4)


def test_numbers_of_arrays():
    for dtype in DTYPES:
        for number in (0, 1, 3):
            mine, its = of(ad, np.array(number, dtype)), of(xs, np.array(number, dtype))
            for to in (bool, int, float, complex, operator.index):
                try:
                    want = to(its)
                except TypeError:  # the standard leaves it open, or refuses it
                    continue
                got = to(mine)
                assert got == want and type(got) is type(want), (dtype, to)
    for to in (float, int, complex, operator.index):
        with pytest.raises(TypeError):
            to(ad.ones((2, 2)))
    for to in (float, int):
        with pytest.raises(TypeError):
            to(ad.asarray(1j))
    with pytest.raises(TypeError):
        operator.index(ad.asarray(1.0))
    with pytest.raises(ValueError):
        bool(ad.ones(2))
