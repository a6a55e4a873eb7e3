"""Operators, reflected and in place, and the methods of ufuncs, against NumPy."""
import operator

import numpy as np
import pytest

from oracle import DTYPES, SOME, check, random, seed

BINARY = [
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "and_",
    "or_",
    "xor",
    "lshift",
    "rshift",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
]
IN_PLACE = [
    "iadd",
    "isub",
    "imul",
    "itruediv",
    "ifloordiv",
    "imod",
    "ipow",
    "iand",
    "ior",
    "ixor",
    "ilshift",
    "irshift",
]


@pytest.mark.parametrize("name", BINARY + ["divmod"])
def test_binary(name):
    apply = divmod if name == "divmod" else getattr(operator, name)
    for dtype in DTYPES:
        x = random(seed(name, dtype), dtype, (3, 4), "POWER")
        y = random(seed(name, dtype, 2), dtype, (4,), "POWER", True)
        y = np.where(y == 0, y.dtype.type(1), y)
        check(lambda xp, a, b: apply(a, b), x, y, ulps=40)
        for number in (3, 2.5, 1j, True, np.float32(2), np.int16(3)):
            check(lambda xp, a: apply(a, number), x, ulps=40)
            check(lambda xp, a: apply(number, a), np.where(x == 0, x.dtype.type(1), np.abs(x)).astype(dtype), ulps=40)
        for wrong in ("text", None, [1, 2, 3, 4], object()):
            if name not in ("eq", "ne") and not isinstance(wrong, list):
                with pytest.raises(TypeError):
                    import arrayd as ad
                    apply(ad.asarray(x), wrong)


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place(name):
    apply = getattr(operator, name)
    for dtype in DTYPES:
        x = random(seed(name, dtype), dtype, (3, 4), "POWER")
        y = np.where((v := random(seed(name, dtype, 2), dtype, (4,), "POWER", True)) == 0, v.dtype.type(1), v)

        def body(xp, a, b):
            same = a
            a = apply(a, b)
            return a, a is same
        check(body, x, y, ulps=40)
        for number in (2, 2.5, 1j, np.float64(3)):
            check(lambda xp, a: body(xp, a, number), x, ulps=40)


def test_unary():
    for dtype in DTYPES:
        x = random(seed(dtype), dtype, (3, 4))
        for apply in (operator.neg, operator.pos, operator.invert, abs):
            check(lambda xp, a: apply(a), x)


def test_comparison_with_anything():
    x = np.arange(3)
    check(lambda xp, a: a == a.astype(float), x)
    check(lambda xp, a: bool(a[1] == 1), x)
    for wrong in (None, "text"):
        check(lambda xp, a: xp.asarray(a != wrong).all(), x)


@pytest.mark.parametrize(
    "name", ["add", "multiply", "maximum", "minimum", "logical_and", "logical_or", "subtract", "sin"]
)
def test_methods_of_ufuncs(name):
    for dtype in SOME:
        x = random(seed(name, dtype), dtype, (3, 4), "UNIT")
        if name in ("add", "multiply", "maximum", "minimum", "logical_and", "logical_or"):
            for axis in (0, 1, None):
                check(lambda xp, a: getattr(xp, name).reduce(a, axis=axis), np.abs(x).astype(dtype), ulps=64)
            check(lambda xp, a: getattr(xp, name).reduce(a, axis=0, keepdims=True), np.abs(x).astype(dtype), ulps=64)
        if name in ("add", "multiply"):
            check(lambda xp, a: getattr(xp, name).accumulate(a, axis=1), np.abs(x).astype(dtype), ulps=64)
        if name != "sin":
            check(lambda xp, a: getattr(xp, name).outer(a, a[0]), x)
    check(lambda xp, a: xp.sin.outer(a, a), np.zeros(3))
    check(lambda xp, a: xp.sin.reduce(a), np.zeros(3))


@pytest.mark.parametrize("name", ["add", "maximum", "minimum"])
def test_at(name):
    for dtype in (np.float64, np.float32, np.int64, np.int32):
        x = random(seed(name, dtype), dtype, (5, 3), "SMALL")

        def body(xp, a, keys, values):
            getattr(xp, name).at(a, keys, values)
            return a
        check(lambda xp, a: body(xp, a, [0, 1, 1, -1, 1], 2), x)
        check(lambda xp, a: body(xp, a, ([0, 0, 2], [1, 1, 2]), xp.asarray([1, 2, 3], dtype=dtype)), x, ulps=16)
        check(lambda xp, a: body(xp, a, xp.asarray([0, 0, 4]), xp.ones((3, 3), dtype)), x, ulps=16)


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, -1, 0.5, 2.0, 1.0, -1.0, -0.5, 2**70, True])
def test_powers_by_a_number(exponent):
    """Some powers are functions of one input. Types, values and errors stay those of NumPy."""
    for dtype in SOME:
        a = np.array([0, 1, 2, 5, 7]).astype(dtype)
        check(lambda xp, x: x**exponent, a)
        check(lambda xp, x: xp.power(x, exponent), a)

        def in_place(xp, x):
            x **= exponent
            return x
        if dtype != bool or exponent != -1:  # of two errors NumPy has the other
            check(in_place, a)
