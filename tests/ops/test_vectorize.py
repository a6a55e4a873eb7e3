"""vectorize: functions of Python for each element of arrays, with NumPy as the oracle."""
import math
import warnings

import numpy as np
import pytest

import arrayd as ad

RNG = np.random.default_rng(53)


def same(array, expected, rtol=0, what=""):
    got, expected = array.get(), np.asarray(expected)
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape), what
    np.testing.assert_allclose(got, expected, rtol=rtol, err_msg=what)


def test_vectorize():
    @ad.vectorize
    def f(x, y):
        """doc"""
        if x > y:
            return x - y
        return x + y
    x, y = RNG.normal(size=(4, 1)), RNG.normal(size=5)
    same(f(ad.asarray(x), ad.asarray(y)), np.where(x > y, x - y, x + y))
    same(f(ad.asarray(x), 0.5), np.where(x > 0.5, x - 0.5, x + 0.5))
    same(f(3, 1), np.int64(2))
    assert f.__doc__ == "doc" and f.otypes is None
    same(ad.vectorize(lambda a: a * a + 1, doc="other")(ad.arange(5)), np.arange(5) ** 2 + 1)


def test_vectorized_tuples_and_types():
    def f(a, b):
        total = a
        for i in range(3):
            total += b * i
        return total, a // b, a % b
    a, b = RNG.integers(-20, 20, 30), RNG.integers(1, 9, 30)
    for result, expected in zip(ad.vectorize(f)(ad.asarray(a), ad.asarray(b)), (a + 3 * b, a // b, a % b)):
        same(result, expected)
    same(ad.vectorize(lambda v: v + 1, otypes="f")(ad.arange(3)), np.arange(1, 4, dtype="float32"))
    same(ad.vectorize(lambda v: v > 1, otypes=[np.int8])(ad.arange(3)), np.array([0, 0, 1], "int8"))
    with pytest.raises(ValueError, match="otypes has 2 types"):
        ad.vectorize(lambda v: v, otypes="ff")(ad.arange(3))


UNARY = """
    sqrt cbrt exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arctanh floor
    ceil trunc rint fabs absolute sign square reciprocal negative positive deg2rad rad2deg isnan isinf isfinite signbit
    logical_not conjugate
    """.split()
BINARY = """
    add subtract multiply divide floor_divide remainder power hypot arctan2 copysign fmod maximum minimum fmax fmin
    equal not_equal less less_equal greater greater_equal heaviside logaddexp logical_and logical_or logical_xor
    """.split()
INTEGER = """
    bitwise_and bitwise_or bitwise_xor left_shift right_shift gcd lcm floor_divide remainder power maximum minimum add
    subtract multiply divide
    """.split()


def fours(names):
    """Group names by fours: four go into one kernel, as compiling one takes its time."""
    names = names + names[-1:] * (-len(names) % 4)
    return [names[i:i + 4] for i in range(0, len(names), 4)]


def each_is_numpys(names, results, arrays, loose):
    for name, result in zip(names, results, strict=True):
        with np.errstate(all="ignore"):
            expected = getattr(np, name)(*arrays)
        same(result, expected, loose.get(expected.dtype.name, 0), name)


@pytest.mark.parametrize("names", fours(UNARY), ids=" ".join)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8", "float16"])
@pytest.mark.parametrize("module", [np, ad])
def test_unary_functions(names, dtype, module):
    real = np.dtype(dtype).kind == "f"
    x = np.array([0.25, 0.5, 0.75, 1.0] if real else [0, 1, 1, 1], dtype)
    names = [name if real or name != "reciprocal" else "positive" for name in names]  # of 0: nobody's business
    f, g, h, i = (getattr(module, name) for name in names)
    results = ad.vectorize(lambda v: (f(v), g(v), h(v), i(v)))(ad.asarray(x))
    each_is_numpys(names, results, [x], {"float16": 2e-3, "float32": 2e-6, "float64": 1e-14})


@pytest.mark.parametrize("names", fours(BINARY), ids=" ".join)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_binary_functions(names, dtype):
    x, y = RNG.uniform(0.5, 3, (2, 50)).astype(dtype)
    x[:5], y[3:8] = -x[:5], -y[3:8]
    if "power" in names:
        x = abs(x)
    f, g, h, i = (getattr(np, name) for name in names)
    results = ad.vectorize(lambda a, b: (f(a, b), g(a, b), h(a, b), i(a, b)))(ad.asarray(x), ad.asarray(y))
    each_is_numpys(names, results, [x, y], {"float32": 4e-6, "float64": 1e-14})


@pytest.mark.parametrize("names", fours(INTEGER), ids=" ".join)
@pytest.mark.parametrize("dtypes", ["int32 int32", "int8 uint8", "int64 int8", "uint16 uint16", "uint64 uint64"])
def test_integer_functions(names, dtypes):
    first, second = dtypes.split()
    x = RNG.integers(0 if first[0] == "u" else -20, 20, 60).astype(first)
    y = RNG.integers(1, 7, 60).astype(second)
    f, g, h, i = (getattr(np, name) for name in names)
    results = ad.vectorize(lambda a, b: (f(a, b), g(a, b), h(a, b), i(a, b)))(ad.asarray(x), ad.asarray(y))
    each_is_numpys(names, results, [x, y], {"float16": 1e-3, "float32": 1e-6, "float64": 1e-15})


def test_other_functions():
    x = RNG.uniform(0.1, 2, 20)
    a = ad.asarray(x)
    same(ad.vectorize(lambda v: math.erf(v) + math.gamma(v) + math.lgamma(v))(a),
         [math.erf(v) + math.gamma(v) + math.lgamma(v) for v in x], 1e-13)
    same(ad.vectorize(lambda v: ad.where(v > 1, v, -v) + np.clip(v, 0.5, 1))(a),
         np.where(x > 1, x, -x) + np.clip(x, 0.5, 1))
    same(ad.vectorize(lambda v: divmod(v, 0.3)[0] + pow(v, 2) + round(v))(a), x // 0.3 + x**2 + np.rint(x), 1e-15)
    same(ad.vectorize(lambda v: np.float32(v) * math.inf if v > 1 else ad.float32(0))(a),
         np.where(x > 1, np.inf, 0).astype("float32"))
    same(ad.vectorize(lambda z: np.conj(z) * complex(0, 1) + z.imag)(ad.asarray(x + 2j)), np.conj(x + 2j) * 1j + 2)
    same(ad.vectorize(lambda b: not b)(ad.asarray([True, False])), np.array([False, True]))
    same(ad.vectorize(lambda v: v in (1, 3))(ad.arange(5)), np.isin(np.arange(5), (1, 3)))


def test_ranges_count_in_the_numbers_of_python():
    def triangle(n):
        total = 0
        for i in range(n):
            total += i
        return total
    for dtype in ("int8", "uint64"):
        n = np.arange(10).astype(dtype)
        same(ad.vectorize(triangle)(ad.asarray(n)), np.vectorize(triangle)(n))


def test_a_real_number_of_a_complex_one_is_warned_of():
    z = np.array([1 + 2j, 3 - 1j])
    with pytest.warns(np.exceptions.ComplexWarning):
        same(ad.vectorize(lambda v: np.float32(v))(ad.asarray(z)), z.real.astype("f"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same(ad.vectorize(lambda v: np.bool_(v))(ad.asarray(z)), [True, True])
        with pytest.raises(np.exceptions.ComplexWarning):
            ad.vectorize(lambda v: np.int8(v))(ad.asarray(z))


def test_lambdas_of_one_line():
    f, g = ad.vectorize(lambda v: v + 1), ad.vectorize(lambda v: v * 3)
    same(f(ad.arange(3)), np.arange(3) + 1)
    same(g(ad.arange(3)), np.arange(3) * 3)


def test_wrong_vectorize():
    for wrong, error in ((dict(signature="(n)->()"), NotImplementedError), (dict(excluded={0}), NotImplementedError)):
        with pytest.raises(error):
            ad.vectorize(lambda v: v, **wrong)
    with pytest.raises(TypeError):
        ad.vectorize(3)
    with pytest.raises(TypeError, match="must be an arrayd.ndarray or a number, not ndarray"):
        ad.vectorize(lambda v: v)(np.zeros(3))
    with pytest.raises(TypeError, match="returns nothing"):
        ad.vectorize(lambda v: None)(ad.zeros(3))
    with pytest.raises(ValueError):
        ad.vectorize(lambda: 1)()

    def changing(x, y):
        z = x, y
        (a, b), z = z, x
        return a + b
    with pytest.raises(TypeError, match="Data type mismatch of variable: z"):
        ad.vectorize(changing)(ad.arange(3), ad.arange(3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same(ad.vectorize(lambda v: v, cache=True)(ad.arange(2)), np.arange(2))


def test_ufuncs_with_dtype():
    x, y = RNG.integers(0, 9, 8).astype("int16"), RNG.integers(1, 9, 8).astype("int16")
    for kind in ("int16", "int64", "float32", "float64", "complex64"):
        same(ad.vectorize(lambda a, b: ad.add(a, b, dtype=kind))(ad.asarray(x), ad.asarray(y)), np.add(x, y, dtype=kind))
    same(ad.vectorize(lambda a, b: np.multiply(a, 2, dtype="float32") / b)(ad.asarray(x), ad.asarray(y)),
         np.multiply(x, 2, dtype="float32") / y)
    with pytest.raises(TypeError, match="add is not defined for float64, float64 with the result int16"):
        ad.vectorize(lambda a: ad.add(a, a, dtype="int16"))(ad.zeros(2))
    with pytest.raises(TypeError):
        ad.vectorize(lambda a: ad.add(a, a, where=False))(ad.zeros(2))


@pytest.mark.parametrize("compare", [lambda z: z < 1, lambda z: z >= z, lambda z: 1j > z.real, lambda z: z <= 2j])
def test_complex_numbers_have_no_order(compare):
    with pytest.raises(TypeError, match="complex numbers have no order"):
        ad.vectorize(compare)(ad.arange(3) + 1j)
    same(ad.vectorize(lambda z: z == 1j)(ad.asarray([1j, 2])), np.array([True, False]))
