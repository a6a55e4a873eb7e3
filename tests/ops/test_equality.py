"""== and != beside what is no number: an answer for each element, as in NumPy."""
import decimal
import fractions

import numpy as np
import pytest

import arrayd as ad
from oracle import check


class Silent:
    """Says nothing of what it equals."""


class Talkative:
    """Equals 2, and nothing else."""

    def __eq__(self, other):
        return bool(other == 2)

    def __ne__(self, other):
        return bool(other != 2)


class Leading:
    """Takes over comparisons, as NumPy lets those do that say so."""
    __array_ufunc__ = None

    def __eq__(self, other):
        return "equal"

    def __ne__(self, other):
        return "unequal"


class Prior:
    __array_priority__ = 1000.0
    __eq__, __ne__ = Leading.__eq__, Leading.__ne__


OTHERS = [None, "x", "", b"x", np.str_("x"), Silent(), Silent, Talkative(), Ellipsis, {}, {"a": 1}, {1, 2}, [0, 1, 2],
          [0, 5, 2], (0, 1, 2), [1, 2], [], [[1], [2]], [[1], [2, 3]], ["x", "y", "z"], ["x", "y"], [None, 1, 2],
          range(3), range(2), decimal.Decimal(1), fractions.Fraction(1, 2), 2**70, -2**70, [2**70, 1, 2], slice(1),
          np.datetime64("2020"), np.longdouble(1), [1 + 0j, 1, 2], [True, False, True], len, Prior(), Leading()]


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "int64", "float16", "float64", "complex64"])
def test_others(dtype):
    for a in (np.arange(3).astype(dtype), np.ones((), dtype), np.zeros((0, 3), dtype), np.ones((2, 3), dtype).T):
        for other in OTHERS:
            check(lambda xp, x: x == other, a)
            check(lambda xp, x: x != other, a)
            if not isinstance(other, np.generic):  # those ask NumPy's ufunc, which arrayd refuses loudly
                check(lambda xp, x: other == x, a)


def test_orders_of_them_are_refused():
    for other in (None, "x", [1, 2, 3], Silent()):
        for operate in (lambda x, y: x < y, lambda x, y: x >= y):
            with pytest.raises(TypeError):
                operate(ad.arange(3), other)


def test_arrays_in_lists():
    a = ad.arange(3)
    assert (a == [a[0], a[1], a[2] + 1]).get().tolist() == [True, True, False]


def test_nothing_waits_for_none():
    a = ad.arange(3)
    before = ad.session_info()["round_trips"]
    results = [a == None, a != None, a == "x", a != Silent(), a == [0, 1, 2]]  # noqa: E711
    assert ad.session_info()["round_trips"] == before
    assert [r.get().tolist() for r in results] == [[value] * 3 for value in (False, True, False, True, True)]
