"""Subclasses of ndarray: what is one, and what __array_finalize__ is told, with NumPy's for comparison."""
import copy

import numpy as np
import pytest

import arrayd as ad


def make_class(xp):
    class Named(xp.ndarray):
        def __new__(cls, *args, name=None, **kwargs):
            new = super().__new__(cls, *args, **kwargs)
            new.name = name
            return new

        def __array_finalize__(self, obj):
            if obj is not None:
                self.name = getattr(obj, "name", "none")

    return Named


def described(cls, x):
    return type(x).__name__, getattr(x, "name", None), getattr(x, "shape", None)


CASES = [lambda xp, a, b: a[1:], lambda xp, a, b: a[1], lambda xp, a, b: a.T, lambda xp, a, b: a.reshape(-1),
         lambda xp, a, b: a.view(), lambda xp, a, b: a.view("int64"), lambda xp, a, b: a.view(type=xp.ndarray),
         lambda xp, a, b: a.view(xp.ndarray), lambda xp, a, b: b.view(type(a)), lambda xp, a, b: b.view("int64", type(a)),
         lambda xp, a, b: b.view(dtype=type(a)), lambda xp, a, b: a + 1, lambda xp, a, b: 2 * a, lambda xp, a, b: -a,
         lambda xp, a, b: a + b, lambda xp, a, b: b + a, lambda xp, a, b: xp.sqrt(a), lambda xp, a, b: xp.add(b, a),
         lambda xp, a, b: xp.add(1, a), lambda xp, a, b: divmod(a, 2)[1], lambda xp, a, b: a < 3,
         lambda xp, a, b: a.swapaxes(0, 1), lambda xp, a, b: a.real, lambda xp, a, b: xp.add(b, b), lambda xp, a, b: b[1:],
         lambda xp, a, b: xp.add(a, b, out=xp.zeros((2, 3)))]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_results(case):
    results = []
    for xp in (np, ad):
        cls = make_class(xp)
        a = cls((2, 3), name="mine")
        assert type(a) is cls and a.name == "mine"
        a[...] = xp.arange(6.0).reshape(2, 3)
        result = CASES[case](xp, a, xp.ones((2, 3)))
        results.append((described(cls, result), result))
    (want, expected), (got, result) = results
    assert got == want
    np.testing.assert_array_equal(result.get(), np.asarray(expected))


def test_elements_are_shared():
    cls = make_class(ad)
    plain = ad.zeros(4)
    a = plain.view(cls)
    assert a.name == "none" and a.base is plain
    a[1] = 5
    assert plain.get().tolist() == [0, 5, 0, 0]
    a += 1
    assert type(a) is cls and plain.get().tolist() == [1, 6, 1, 1]


def test_errors():
    a = ad.zeros(4)
    for arguments in (((np.ndarray,), {}), ((), {"type": np.ndarray}), ((), {"type": 5})):
        with pytest.raises((ValueError, TypeError)):
            a.view(*arguments[0], **arguments[1])
    for arguments in ((("f", make_class(ad)), {"type": make_class(ad)}), (("f",), {"dtype": "f"}),
                      ((make_class(ad), make_class(ad)), {})):
        with pytest.raises(TypeError):
            a.view(*arguments[0], **arguments[1])


def test_errors_of_finalize_arrive():
    class Broken(ad.ndarray):
        def __array_finalize__(self, obj):
            raise RuntimeError("not today")

    for call in (lambda: ad.zeros(3).view(Broken), lambda: Broken(3)):
        with pytest.raises(RuntimeError, match="not today"):
            call()


def test_attributes():
    class Plain(ad.ndarray):
        pass

    Plain(2).anything = 5
    with pytest.raises(AttributeError):
        ad.zeros(2).anything = 5
    assert ad.zeros(2).__array_finalize__(None) is None
    assert type(copy.copy(Plain(2))) in (Plain, ad.ndarray)
