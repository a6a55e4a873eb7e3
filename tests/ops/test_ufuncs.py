"""Every row of ufunc.def against the NumPy function of its name."""
import numpy as np
import pytest
import scipy.special as sp

import arrayd as ad
from oracle import COMPLEX, DTYPES, FLOATS, INTEGERS, SOME, check, outcome, random, seed

ROWS = {name: (row.nin, row.nout, row.domain) for name, row in ad._core.ufuncs.items()}
LAMBERTW = "POS_ZERO_TINY"
SPECIAL = [name for name, row in ad._core.ufuncs.items() if row.special]
UFUNCS = [name for name in ROWS if isinstance(getattr(np, name, None), np.ufunc)]
OTHERS = [name for name in ROWS if name not in UFUNCS and name not in SPECIAL]
BINARY = [name for name in UFUNCS if ROWS[name][0] == 2]
# The rows say what expressions lose to cancellation, or NumPy's own do, and what NumPy computes instead.
TESTS = {name: row.test.partition(" ") for name, row in ad._core.ufuncs.items()}
ULPS = {name: int(ulps) for name, (ulps, _, _) in TESTS.items() if ulps}
ORACLE = {name: eval(f"lambda x, y=None, z=None: {expression}", {"np": np, "sp": sp})
          for name, (_, _, expression) in TESTS.items() if expression}


class Module:
    """A function of numpy or arrayd by a row's name; for rows that are not NumPy's, what they mean."""

    def __init__(self, name):
        self.name = name

    def __call__(self, xp):
        if self.name in ORACLE:
            return ORACLE[self.name] if xp is np else ad._core.ufuncs[self.name]
        return getattr(xp, self.name)


def call(name, *, also=(), **options):
    function = Module(name)
    return lambda xp, *arrays: function(xp)(*arrays[:ROWS[name][0]], *also, **options)


def operands(rng, name, dtype, shapes):
    nin, _, domain = ROWS[name]
    kinds = [dtype] * nin
    if name == "ldexp":
        kinds[1] = np.dtype(np.int32)
    if name == "where":
        kinds[0] = np.dtype(bool)
    if ROWS[name][2] == LAMBERTW:
        kinds[1:] = [np.dtype(np.int64), np.dtype(np.float64)]
    return [random(rng, kind, shapes[i % len(shapes)], *domain_of(domain, i)) for i, kind in enumerate(kinds)]


def domain_of(domain, operand):
    """Return what the operand of that number is drawn from. In a domain of several words each is for one operand."""
    words = domain.split("_")
    return (words[min(operand, len(words) - 1)], False) if len(words) > 1 else (domain, operand == 1)


def has_loop(name, dtype):
    """Tell whether the row takes the type. Asked only where NumPy has no function to refuse it in the same way."""
    try:
        return name not in ORACLE or ad._core.ufuncs[name](*[ad.zeros(1, dtype)] * ROWS[name][0]) is not None
    except TypeError:
        return False


def test_the_table_is_tested():
    assert set(ROWS) == {*UFUNCS, *OTHERS, *SPECIAL}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", UFUNCS + OTHERS)
def test_every_type_and_shape(name, dtype):
    if not has_loop(name, dtype):
        pytest.skip("NumPy's expression has a type that the row refuses")
    rng = seed(name, dtype)
    ulps = ULPS.get(name, 8)
    for shapes in ([()], [(0,)], [(1,)], [(7,)], [(2, 0, 3)], [(5, 1), (1, 4)], [(3, 4), (4,)], [(), (3,)]):
        check(call(name), *operands(rng, name, dtype, shapes), ulps=ulps)
    a = operands(rng, name, dtype, [(6, 8)])
    check(lambda xp, *xs: call(name)(xp, *(x[::-1, ::2] for x in xs)), *a, ulps=ulps)
    check(lambda xp, *xs: call(name)(xp, *(x.T for x in xs)), *a, ulps=ulps)
    check(lambda xp, *xs: call(name)(xp, *(x[1:, :-3] for x in xs)), *a, ulps=ulps)


@pytest.mark.parametrize("name", UFUNCS + OTHERS)
def test_large(name):
    for dtype in filter(lambda dtype: has_loop(name, dtype), (np.float32, np.float64, np.int32, np.complex64)):
        away = 10 if name in ("logaddexp", "logaddexp2") else 0  # from zero, where these cancel
        xs = operands(seed(name, "large"), name, np.dtype(dtype), [(100_003,)])
        check(lambda xp, *a: call(name)(xp, *a) + away if away else call(name)(xp, *a), *xs, ulps=ULPS.get(name, 8))


@pytest.mark.parametrize("name", BINARY)
def test_result_types_of_pairs(name):
    for first in DTYPES:
        for second in DTYPES:
            rng = seed(name, first, second)
            x = random(rng, first, (3,), ROWS[name][2])
            y = random(rng, np.int32 if name == "ldexp" and second.kind in "fc" else second, (3,), ROWS[name][2], True)
            if name == "power" and y.dtype.kind == "i" and x.dtype.kind in "biu":
                y = np.abs(y)
            check(call(name), x, y, ulps=ULPS.get(name, 8) * 4)


@pytest.mark.parametrize("name", BINARY)
def test_python_numbers_are_weak(name):
    number = {"SHIFT": 2, "EXP": 2, "POWER": 2}.get(ROWS[name][2], 3)
    for dtype in DTYPES:
        x = random(seed(name, dtype, "weak"), dtype, (4,), ROWS[name][2])
        for scalar in (number, float(number), complex(number), True, np.float32(number), np.int8(number)):
            check(lambda xp, a: getattr(xp, name)(a, scalar), x, ulps=ULPS.get(name, 8) * 4)


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "maximum", "bitwise_and", "equal", "floor_divide"])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.uint64, np.int64, np.float16, np.bool_])
def test_python_numbers_out_of_range(name, dtype):
    x = random(seed(name, dtype), dtype, (3,), "SMALL")
    for scalar in (-1, 300, 2**63, -2**63, 2**64, 1e300):
        if dtype is np.bool_ and abs(scalar) > 300:
            continue  # NumPy's answers differ from function to function
        check(lambda xp, a: getattr(xp, name)(a, scalar), x)
        check(lambda xp, a: getattr(xp, name)(scalar, a), x)


@pytest.mark.parametrize("name", UFUNCS)
def test_out_where_dtype(name):
    nin, nout, domain = ROWS[name]
    ulps = ULPS.get(name, 8) * 4
    for dtype in SOME:
        rng = seed(name, dtype, "options")
        xs = operands(rng, name, dtype, [(4, 5)])
        plain, error = outcome(lambda: getattr(np, name)(*xs))
        if error is not None:
            continue
        results = plain if nout == 2 else (plain,)
        mask = random(rng, bool, (4, 5))

        def with_out(xp, *arrays, options=()):
            outs = tuple(xp.full(np.shape(one), 7, one.dtype) for one in results)
            returned = getattr(xp, name)(*arrays[:nin], out=outs if nout == 2 else outs[0], **dict(options))
            same = all(a is b for a, b in zip(returned if nout == 2 else (returned,), outs))
            return outs, same

        check(with_out, *xs, ulps=ulps)
        check(lambda xp, *a: with_out(xp, *a[:-1], options=(("where", a[-1]),)), *xs, mask, ulps=ulps)
        check(lambda xp, *a: with_out(xp, *a[:-1], options=(("where", a[-1][0]),)), *xs, mask, ulps=ulps)
        if name in ("absolute", "frexp", "ldexp"):
            continue  # NumPy takes dtype= for that of an operand which the loop does not determine
        for asked in (np.float32, np.float64, np.int64, np.complex128):
            check(call(name, dtype=asked), *xs, ulps=ulps)
            check(call(name, dtype=asked, casting="unsafe"), *xs, ulps=ulps)


def masks(rng, n):
    """Masks of every kind that is treated in a way of its own: dense, sparse, in runs, with steps."""
    for density in (0, 0.02, 0.5, 0.98, 1):
        yield rng.random(n) < density
    yield np.repeat(rng.random(n // 50 + 1) < 0.5, 50)[:n]
    yield np.arange(n) // 64 % 2 == 0
    yield (rng.random(2 * n) < 0.5)[::2]
    yield (rng.random(n) < 0.5)[::-1]
    yield np.array([True])


@pytest.mark.parametrize("n", [1, 63, 64, 65, 1000, 10_001])
def test_where_masks(n):
    rng = seed("masks", n)
    x, y = random(rng, np.float64, n), random(rng, np.float64, n) + 200
    for mask in masks(rng, n):
        check(lambda xp, x, y, m: xp.add(x, y, out=xp.zeros(n), where=m), x, y, mask)
        check(lambda xp, x, y, m: xp.add(x, 2, out=x, where=m), x, y, mask)
        check(lambda xp, x, y, m: xp.multiply(x[::-1], y[:1], out=xp.zeros((n, 3), "complex128")[:, 1], where=m),
              x, y, mask)
        check(lambda xp, x, y, m: xp.less(x.astype("float16"), y, out=xp.zeros(n, "int8"), where=m, casting="unsafe"),
              x, y, mask)
        check(lambda xp, x, y, m: xp.divmod(y, 7, out=(xp.zeros(n, "float32"), xp.zeros(n)), where=m, casting="unsafe"),
              x, y, mask)

        def copied(xp, x, y, m):
            out = xp.zeros(n, "int16")
            xp.copyto(out, y, where=m, casting="unsafe")
            return out
        check(copied, x, y, mask)
    rows = random(rng, np.float32, (n, 3))
    check(lambda xp, a, m: xp.negative(a, out=xp.zeros((n, 3), "float32"), where=m[:, None]), rows, rng.random(n) < 0.5)


def test_where_hides_errors():
    """Errors of an element count only where the mask is true."""
    x = np.arange(-100, 100)
    for allowed in (x >= 0, (x >= 0) & (x % 3 == 0)):
        check(lambda xp, x, m: xp.power(3, x, out=xp.zeros(200, int), where=m), x, allowed)
    check(lambda xp, x, m: xp.power(3, x, out=xp.zeros(200, int), where=m), x, x == -50)


@pytest.mark.parametrize("name", ["add", "multiply", "sin", "equal", "divide", "negative"])
def test_casting_to_out(name):
    for dtype in SOME:
        xs = operands(seed(name, dtype, "cast"), name, dtype, [(5,)])
        for kind in SOME:
            for casting in ("no", "equiv", "safe", "same_kind", "unsafe"):
                def body(xp, *a):
                    out = xp.zeros(5, kind)
                    getattr(xp, name)(*a, out=out, casting=casting)
                    return out
                if casting == "unsafe" and kind.kind in "iu" and name in ("sin", "divide"):
                    continue  # NaN to integer is unspecified
                check(body, *xs, ulps=40 if np.dtype(kind).char in "fF" else 2**34)


SPECIALS = [np.inf, -np.inf, np.nan, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -3.5]


@pytest.mark.parametrize("name", [name for name in UFUNCS if ROWS[name][0] == 1 or name in BINARY])
def test_special_floats(name):
    for dtype in FLOATS:
        info = np.finfo(dtype)
        x = np.array([*SPECIALS, info.max, info.min, info.tiny, info.smallest_subnormal], dtype)
        if ROWS[name][0] == 1:
            check(call(name), x, ulps=ULPS.get(name, 8))
        else:
            y = np.array([0, 1, -2, 5], np.int32) if name == "ldexp" else x
            check(lambda xp, a, b: getattr(xp, name)(a[:, None], b), x, y, ulps=ULPS.get(name, 8))


@pytest.mark.parametrize("name", ["signbit", "copysign", "maximum", "minimum", "fmax", "fmin", "negative", "absolute",
                                  "multiply", "add", "floor", "ceil", "trunc", "rint", "sqrt"])
def test_sign_of_zero(name):
    for dtype in FLOATS:
        x = np.array([0.0, -0.0, 0.4 if name == "sqrt" else -0.4, 0.4], dtype)  # a NaN's sign is not specified
        if ROWS[name][0] == 1:
            check(lambda xp, a: xp.signbit(getattr(xp, name)(a)), x)
        elif name in ("copysign", "multiply", "add"):
            check(lambda xp, a: xp.signbit(getattr(xp, name)(a[:, None], a)), x)


@pytest.mark.parametrize(
    "name",
    [
        "add",
        "subtract",
        "multiply",
        "floor_divide",
        "remainder",
        "fmod",
        "divmod",
        "negative",
        "absolute",
        "left_shift",
        "right_shift",
        "gcd",
        "lcm",
        "bitwise_count",
        "invert",
        "sign",
        "square",
        "positive",
    ],
)
def test_integer_limits(name):
    for dtype in INTEGERS:
        info = np.iinfo(dtype)
        x = np.array(sorted({info.min, info.max, 0, 1, info.max - 1, 2, max(info.min, -1)}), dtype)
        if ROWS[name][0] == 1:
            check(call(name), x)
            continue
        y = np.arange(info.bits, dtype=dtype) if "shift" in name else x
        check(lambda xp, a, b: getattr(xp, name)(a[:, None], b), x, y)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_division_by_one_number(dtype):
    """Division multiplies with the reciprocal: dividends lie at and beside multiples, divisors at and beside powers of
    two."""
    limits = np.iinfo(dtype)
    low, high = int(limits.min), int(limits.max)
    rng = seed("division", dtype)
    near = {sign * 2**bit + d for bit in range(limits.bits) for d in (-1, 0, 1) for sign in (1, -1)} | {10, 1000, -7}
    divisors = sorted(d for d in near | {low, low + 1, high, high - 1} if low <= d <= high)
    x = np.concatenate([random(rng, dtype, 500), np.array(divisors, dtype)])
    for d in divisors:
        multiples = x - x % np.array(d or 1, dtype)
        one = np.array(1, dtype)
        check(lambda xp, *a: [(b // d, b % d, *xp.divmod(b, d)) for b in a],
              x, multiples, multiples - one, multiples + one)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integer_powers(dtype):
    """A bit of many exponents at a time: beside a block's end, past the type's limits, one number on either side, and
    where the result takes an input's place."""
    limits = np.iinfo(dtype)
    rng = seed("powers", dtype)

    def placed(xp, x, y):
        first, second = x.copy(), y.copy()
        return xp.power(first, y, out=first), xp.power(x, second, out=second)

    for n in (1, 31, 32, 257, 1000):
        x = rng.integers(limits.min, limits.max, n, dtype, endpoint=True)
        for y in (rng.integers(0, 5, n, dtype), rng.integers(0, limits.max, n, dtype, endpoint=True)):
            check(lambda xp, x, y: xp.power(x, y), x, y)
            check(lambda xp, x, y: xp.power(3, y), x, y)
            check(placed, x, y)
        for exponent in (0, 1, 2, 3, 8, 77, int(limits.max)):
            check(lambda xp, x: xp.power(x, exponent), x)
    if limits.min < 0:
        y = np.arange(1000) % 7
        y[700] = -1
        check(lambda xp, x, y: xp.power(x, y), x, y.astype(dtype))


@pytest.mark.parametrize("name", ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "maximum",
                                  "minimum", "logical_and", "logical_or", "isnan", "isinf", "isfinite"])
def test_complex_specials(name):
    for dtype in COMPLEX:
        parts = [0.0, 1.0, np.nan, np.inf, -2.0]
        x = np.array([complex(a, b) for a in parts for b in parts], dtype)
        arrays = (x,) if ROWS[name][0] == 1 else (x[:, None], x)

        def body(xp, *a):
            value = getattr(xp, name)(*a)
            return (value.real, value.imag) if value.dtype.kind == "c" else value
        check(body, *arrays)


@pytest.mark.parametrize("alias, name", [("abs", "absolute"), ("conj", "conjugate"), ("mod", "remainder"),
                                         ("true_divide", "divide"), ("bitwise_not", "invert"), ("acos", "arccos"),
                                         ("pow", "power"), ("radians", "deg2rad"), ("degrees", "rad2deg")])
def test_aliases(alias, name):
    assert getattr(ad, alias) is getattr(ad, name)


def test_outputs_larger_than_inputs():
    x = np.arange(4.0)
    check(lambda xp, a: xp.add(a, 1, out=xp.zeros((3, 4))), x)
    check(lambda xp, a: xp.add(a[:1], 1, out=xp.zeros((3, 4))), x)
    check(lambda xp, a: xp.add(1, 2, out=xp.zeros((3, 4))), x)
    check(lambda xp, a: xp.add(a, 1, out=xp.zeros((3, 4)), where=xp.asarray([[True], [False], [True]])), x)
    check(lambda xp, a: xp.add(a, 1, out=xp.zeros((4, 3))), x)
    check(lambda xp, a: xp.add(a, 1, out=xp.zeros(1)), x)


def test_outputs_that_overlap_inputs():
    x = np.arange(20.0)
    check(lambda xp, a: (xp.add(a[1:], a[:-1], out=a[1:]), a), x)
    check(lambda xp, a: (xp.multiply(a, 2, out=a[::-1]), a), x)
    check(lambda xp, a: (xp.subtract(a.reshape(4, 5), a.reshape(4, 5)[::-1], out=a.reshape(4, 5)), a), x)


@pytest.mark.parametrize("bad", [
    lambda xp, a: xp.add(a, xp.zeros(7)), lambda xp, a: xp.add(a), lambda xp, a: xp.add(a, a, a, a),
    lambda xp, a: xp.add(a, a, out=xp.zeros(3)), lambda xp, a: xp.sin(a, casting="what"),
    lambda xp, a: xp.sin(a, nonsense=1), lambda xp, a: xp.add(a, a, where=xp.zeros(4)),
    lambda xp, a: xp.bitwise_and(a, a), lambda xp, a: xp.gcd(a, a), lambda xp, a: xp.sin(a, dtype=int),
    lambda xp, a: xp.invert(a), lambda xp, a: xp.left_shift(a, 1), lambda xp, a: xp.floor(a * 1j),
    lambda xp, a: xp.subtract(a > 0, a > 0), lambda xp, a: xp.negative(a > 0), lambda xp, a: xp.sign(a > 0)])
def test_errors(bad):
    check(bad, np.arange(4.0))
