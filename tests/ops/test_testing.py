"""arrayd.testing: that its assertions fail when they should, and its decorators call what they say."""
import inspect
import random
import sys
import types
import unittest

import numpy as np
import pytest

import arrayd as ad
from arrayd import testing


# ---- assertions ----

A = np.array([1.0, 2.0, 3.0])
FAILING = {
    "assert_allclose": ((A, A * (1 + 1e-8)), (A, A * (1 + 1e-6))),
    "assert_array_almost_equal": ((A, A + 1e-7), (A, A + 1e-5)),
    "assert_array_almost_equal_nulp": ((A, np.nextafter(A, 9)), (A, A + 1e-15 * 4)),
    "assert_array_max_ulp": ((A, np.nextafter(A, 9)), (A, np.nextafter(np.nextafter(A, 9), 9))),
    "assert_array_equal": ((A, A.astype(int)), (A, A + 1e-15 * 4)),
    "assert_array_less": ((A, A + 1e-9), (A, A)),
}


@pytest.mark.parametrize("name", FAILING)
def test_assertions(name):
    check, (right, wrong) = getattr(testing, name), FAILING[name]
    for send in ((ad.asarray, ad.asarray), (ad.asarray, np.asarray), (np.asarray, ad.asarray)):
        check(*(f(a) for f, a in zip(send, right)))
        with pytest.raises(AssertionError):
            check(*(f(a) for f, a in zip(send, wrong)))
    if "err_msg" in inspect.signature(check).parameters:
        with pytest.raises(AssertionError, match="a message"):
            check(*map(ad.asarray, wrong), err_msg="a message")


def test_options_of_assertions():
    a = ad.asarray(A)
    testing.assert_allclose(a, A + 0.1, atol=0.2)
    testing.assert_allclose(a, A * 1.1, rtol=0.1)
    testing.assert_array_almost_equal(a, A + 0.001, decimal=2)
    testing.assert_array_equal(a, A, strict=True, strides_check=True)
    testing.assert_allclose(ad.asarray([ad.nan]), [np.nan], equal_nan=True)
    testing.assert_allclose(a, A, strict=True)
    testing.assert_array_less(a, A + 1, strict=True)
    for compare, *options in ((testing.assert_allclose, ad.asarray([ad.nan]), [np.nan], {"equal_nan": False}),
                              (testing.assert_allclose, a, A.astype("f4"), {"strict": True, "rtol": 1}),
                              (testing.assert_array_less, a, (A + 1).astype("f4"), {"strict": True})):
        with pytest.raises(AssertionError):
            compare(*options[:2], **options[2])
    for options in ({"strict": True}, {"strides_check": True}):
        with pytest.raises(AssertionError):
            testing.assert_array_equal(a, A.astype("f4"), **options)
    testing.assert_array_list_equal([a, a * 2], [A, A * 2])
    for x, y in (([a], (A,)), ([a], [A, A]), ([a, a], [A, A * 2]), (a, A)):
        with pytest.raises(AssertionError):
            testing.assert_array_list_equal(x, y)


# ---- decorators that compare ----

def ran(decorator, test, *args, **kw):
    return decorator(test)(*args, **kw)


def apart(by):
    """A test whose result in arrayd is by more than in NumPy."""
    return lambda xp: xp.asarray(A) + (0 if xp is np else by)


COMPARING = {  # a difference that is right, and one that is not
    "numpy_cupy_allclose": (1e-9, 1e-3), "numpy_cupy_array_almost_equal": (1e-8, 1e-3),
    "numpy_cupy_array_almost_equal_nulp": (1e-16, 1e-3), "numpy_cupy_array_max_ulp": (1e-16, 1e-3),
    "numpy_cupy_array_equal": (0, 1e-3), "numpy_cupy_array_less": (-1, 1),
}


@pytest.mark.parametrize("name", COMPARING)
def test_comparing(name):
    decorator, (right, wrong) = getattr(testing, name), COMPARING[name]
    calls = []
    ran(decorator(name="lib"), lambda lib: calls.append(lib) or apart(right)(lib))
    assert calls == [ad, np]
    ran(decorator(), lambda xp: [apart(right)(xp), apart(right * 2)(xp)])
    less = name == "numpy_cupy_array_less"
    for test in (
        apart(wrong), lambda xp: xp.asarray(A) if xp is np else None, lambda xp: (apart(right)(xp), apart(wrong)(xp)),
        lambda xp: xp.zeros((3, 1) if xp is np else (1, 3)) - less * (xp is not np), lambda xp: None,
        lambda xp: xp.zeros(3, "f" if xp is np else "d") - less * (xp is not np), lambda xp: np.zeros(3) - less,
        lambda xp: [apart(right)(xp)] * (1 + (xp is np)),
    ):
        with pytest.raises(AssertionError):
            ran(decorator(), test)
    ran(decorator(type_check=False), lambda xp: xp.zeros(3, "f" if xp is np else "d") - less * (xp is not np))


def raising(numpys, ours):
    def test(xp):
        error = numpys if xp is np else ours
        if error:
            raise error("x")
        return xp.zeros(1)
    return test


def test_errors():
    accepting = testing.numpy_cupy_array_equal(accept_error=ValueError)
    ran(accepting, raising(ValueError, ValueError))
    ran(testing.numpy_cupy_array_equal(accept_error=True), raising(KeyError, KeyError))
    for decorator, errors, words in (
        (accepting, (ValueError, None), "Only numpy"), (accepting, (None, ValueError), "Only arrayd"),
        (accepting, (TypeError, TypeError), "Both arrayd and numpy"),
        (accepting, (ValueError, TypeError), "Different types"),
        (accepting, (ValueError, np.linalg.LinAlgError), "Different types"),
        (testing.numpy_cupy_array_equal(), (ValueError, ValueError), "Both"),
        (testing.numpy_cupy_equal(), (ValueError, ValueError), "Both"),
        (testing.numpy_cupy_equal(), (None, KeyError), "Only"),
    ):
        with pytest.raises(AssertionError, match=words):
            ran(decorator, raising(*errors))
    with pytest.warns(DeprecationWarning):
        both = testing.numpy_cupy_raises(accept_error=LookupError)
    ran(both, raising(KeyError, KeyError))
    for errors in ((None, None), (ValueError, ValueError), (KeyError, None)):
        with pytest.raises(AssertionError):
            ran(both, raising(*errors))
    for skip in (unittest.SkipTest, pytest.skip.Exception):
        with pytest.raises(skip):
            ran(accepting, raising(skip, skip))
        with pytest.raises(AssertionError):
            ran(accepting, raising(skip, None))


def test_modules_of_scipy():
    """A test that names parameters for SciPy gets SciPy itself beside NumPy, and arrayd's modules beside arrayd."""
    def sums(xp, sp, scipy):
        assert sp is scipy.sparse and (sp.__name__ == "scipy.sparse") == (xp is np)
        return sp.csr_matrix(xp.asarray([[0.0, 2.0], [3.0, 0.0]]))
    ran(testing.numpy_cupy_allclose(sp_name="sp", scipy_name="scipy"), sums)



def test_other_results():
    ran(testing.numpy_cupy_equal(), lambda xp: xp.zeros((2, 3)).shape)
    with pytest.raises(AssertionError, match="not equal"):
        ran(testing.numpy_cupy_equal(), lambda xp: xp is np)
    ran(testing.numpy_cupy_array_equal(), lambda xp: xp.zeros(3).ndim)
    ran(testing.numpy_cupy_allclose(), lambda xp: xp.poly1d([1, 2.0]) * 2)
    with pytest.raises(AssertionError):
        ran(testing.numpy_cupy_allclose(), lambda xp: xp.poly1d([1, 2], variable="x" if xp is np else "y"))
    with pytest.warns(DeprecationWarning):
        lists = testing.numpy_cupy_array_list_equal()
    ran(lists, lambda xp: [xp.zeros(3), xp.ones(2)])
    with pytest.raises(AssertionError):
        ran(lists, lambda xp: [xp.zeros(3), xp.full(2, xp is np)])


def test_layouts_are_compared():
    def test(xp):
        return xp.zeros((2, 3), order="C" if xp is np else "F")
    with pytest.raises(AssertionError, match="c_contiguous"):
        ran(testing.numpy_cupy_allclose(), test)
    ran(testing.numpy_cupy_allclose(contiguous_check=False), test)
    with pytest.raises(AssertionError, match="Strides"):
        ran(testing.numpy_cupy_array_equal(strides_check=True), test)


def test_tolerances_by_type():
    tolerances = testing.numpy_cupy_allclose(rtol={np.float32: 1e-2, "default": 1e-9})
    for dtype, by, right in (("f", 1e-3, True), ("d", 1e-3, False), ("d", 1e-10, True), ("f", 1e-1, False)):
        def test(xp):
            return (xp.asarray(A) + (by if xp is ad else 0)).astype(dtype)
        if right:
            ran(tolerances, test)
        else:
            with pytest.raises(AssertionError):
                ran(tolerances, test)
    with pytest.raises(TypeError):
        ran(testing.numpy_cupy_allclose(atol={np.float32: 1}), apart(0))
    for wrong in ({"rtol": {"f": 1}}, {"atol": {np.float32: 1}, "type_check": False}):
        with pytest.raises(TypeError):
            testing.numpy_cupy_allclose(**wrong)


def test_negative_numbers_made_unsigned_are_not_compared():
    def test(xp, a, b):
        x = xp.asarray([-1.0, 2.0, -3.0]).astype(a).astype(b)
        return x if xp is np or np.dtype(b).kind != kind else x + (xp.arange(3) % 2 == where).astype(b)

    same = testing.numpy_cupy_array_equal()
    kind, where = "u", 0  # arrayd's numbers are others where they were negative
    ran(same, test, a=np.float32, b=np.uint8)
    where = 1  # where they were not
    with pytest.raises(AssertionError):
        ran(same, test, a=np.float32, b=np.uint8)
    kind, where = "i", 0  # in a type that has negative numbers
    with pytest.raises(AssertionError):
        ran(same, test, a=np.float32, b=np.int8)


# ---- decorators that call several times ----

def types_of(decorator, *names):
    seen = []
    ran(decorator, lambda **kw: seen.append(tuple(kw[name] for name in names or ["dtype"])))
    return seen


@pytest.mark.parametrize("name, options, characters", [
    ("for_all_dtypes", {}, "dfebhilqBHILQ?FD"),
    ("for_all_dtypes", {"no_float16": True, "no_bool": True}, "dfbhilqBHILQFD"),
    ("for_all_dtypes", {"no_complex": True}, "dfebhilqBHILQ?"), ("for_float_dtypes", {}, "dfe"),
    ("for_float_dtypes", {"no_float16": True}, "df"), ("for_signed_dtypes", {}, "bhilq"),
    ("for_unsigned_dtypes", {}, "BHILQ"), ("for_int_dtypes", {}, "bhilqBHILQ?"),
    ("for_int_dtypes", {"no_bool": True}, "bhilqBHILQ"), ("for_complex_dtypes", {}, "FD"),
])
def test_types(name, options, characters):
    expected = {(np.dtype(c).type,) for c in characters}
    seen = types_of(getattr(testing, name)(**options))
    assert set(seen) == expected and len(seen) == len(expected)
    assert types_of(getattr(testing, name)("kind", **options), "kind") == seen
    combination = getattr(testing, name + "_combination", None)
    if combination:
        some = types_of(combination(("a", "b"), full=False, **options), "a", "b")
        assert {a for a, _ in some} == {b for _, b in some} == {t for t, in expected} and len(set(some)) == len(some)
        assert len(some) < len(expected) ** 2
        assert some == types_of(combination(("a", "b"), full=False, **options), "a", "b")
        every = types_of(combination(("a", "b"), full=True, **options), "a", "b")
        assert len(set(every)) == len(every) == len(expected) ** 2


def test_combinations_by_environment(monkeypatch):
    names = ("a", "b", "c")
    for full, count in (("1", 27), ("0", 6)):
        monkeypatch.setenv("CUPY_TEST_FULL_COMBINATION", full)
        assert len(types_of(testing.for_dtypes_combination("bhi", names), *names)) <= count
    assert len(types_of(testing.for_dtypes_combination("bhi", names, True), *names)) == 27
    assert types_of(testing.for_dtypes_combination("d", ("a", "b")), "a", "b") == [(np.float64, np.float64)]


def test_the_inner_of_two_loops_over_one_parameter():
    @testing.for_dtypes("bh")
    @testing.for_dtypes("fd")
    def test(seen, dtype):
        seen.append(dtype)
    seen = []
    test(seen)
    assert seen == [np.float32, np.float64] * 2


def test_orders_and_axes():
    assert types_of(testing.for_orders("CF"), "order") == [("C",), ("F",)]
    assert types_of(testing.for_CF_orders("o"), "o") == [(None,), ("C",), ("F",), ("c",), ("f",)]

    class Case:
        shape = (1, 2, 3)

        @testing.for_contiguous_axes()
        def axes(self, seen, axis):
            seen.append(axis)
    for order, expected in (("C", [(0, 1, 2), (1, 2), (2,)]), ("f", [(0,), (0, 1), (0, 1, 2)])):
        case, seen = Case(), []
        case.order = order
        case.axes(seen)
        assert seen == expected
    case.order = None
    with pytest.raises(ValueError):
        case.axes([])


def test_skips_and_failures_in_loops():
    seen = []

    def test(dtype):
        if dtype == np.int8:
            pytest.skip("no")
        seen.append(dtype)
        assert dtype != np.int32
    with pytest.raises(AssertionError) as failed:
        ran(testing.for_dtypes("bhil"), test)
    assert seen == [np.int16, np.int32] and "int32" in failed.value.__notes__[0]


def test_signatures_are_for_pytest():
    @testing.for_all_dtypes()
    @testing.numpy_cupy_allclose()
    def test(self, xp, dtype, more=1):
        """doc"""
    assert list(inspect.signature(test).parameters) == ["self", "more"]
    assert test.__name__ == "test" and test.__doc__ == "doc"


@testing.parameterize(*testing.product({"shape": [(2,), (2, 3), ()], "order": ["C", "F"]}))
class TestTogether:
    """Decorators as programs combine them; pytest runs this."""

    @testing.for_all_dtypes(no_bool=True)
    @testing.numpy_cupy_allclose(rtol=1e-3, atol=1e-3, contiguous_check=False)
    def test_sum(self, xp, dtype):
        a = testing.shaped_arange(self.shape, xp, dtype, self.order)
        return a.sum(axis=0 if self.shape else None), a * 2

    @testing.for_dtypes_combination([np.int16, np.float32, np.complex64], ["a", "b"], full=True)
    @testing.numpy_cupy_array_equal()
    def test_add(self, xp, a, b):
        return testing.shaped_arange(self.shape, xp, a) + testing.shaped_reverse_arange(self.shape, xp, b)


@testing.parameterize({"n": 1}, {"n": 2}, _ids=False)
class TestNumbered:
    def test_attribute(self, request):
        assert request.node.name == f"test_attribute[{self.n - 1}]"


# ---- arrays ----

@pytest.mark.parametrize("name", ["shaped_arange", "shaped_reverse_arange", "shaped_random", "shaped_linspace"])
def test_arrays(name):
    make = getattr(testing, name)
    bounds = (-3, 5) if name == "shaped_linspace" else ()
    for dtype in "?bBiqefdFD":
        for shape in ((2, 3), (), (0,), (4,)):
            n, a = (make(*bounds, shape, xp, dtype) for xp in (np, ad))
            testing.assert_array_equal(a, n, strict=True)
            assert n.shape == shape and n.dtype.char == dtype
    assert isinstance(make(*bounds, (3,)), ad.ndarray) and make(*bounds, (3,)).dtype == np.float32
    expected = {"shaped_arange": [1, 2, 3], "shaped_reverse_arange": [3, 2, 1], "shaped_linspace": [-3, 1, 5]}
    if name in expected:
        assert make(*bounds, (3,)).tolist() == expected[name]
        assert make(*bounds, (3,), dtype=bool).tolist() == [False, True, name == "shaped_linspace"]
    if name in ("shaped_arange", "shaped_random"):
        assert make((2, 3), order="F").flags.f_contiguous


def test_random_arrays():
    a, b = testing.shaped_random((1000,), scale=3).get(), testing.shaped_random((1000,), seed=1).get()
    assert 0 <= a.min() < 0.1 and 2.9 < a.max() < 3 and 9 < b.max() < 10 and abs(np.corrcoef(a, b)[0, 1]) < 0.2
    assert 400 < testing.shaped_random((1000,), dtype=bool).sum() < 600


def test_matrices():
    for shape, dtype, values in (((3, 3), "d", [3, 2, 1]), ((2, 4, 3), "D", [[5, 1, 0.5]]), ((3, 5), "f", 2.0)):
        for xp in (np, ad):
            a = testing.generate_matrix(shape, xp, dtype, singular_values=values)
            assert a.shape == shape and a.dtype.char == dtype
            expected = np.broadcast_to(values, shape[:-2] + (3,))
            np.testing.assert_allclose(np.linalg.svd(ad.asnumpy(a), compute_uv=False), expected, rtol=1e-5)
    for wrong, error in (({"shape": (3,)}, ValueError), ({"singular_values": None}, TypeError),
                         ({"dtype": int}, TypeError), ({"singular_values": -1}, ValueError),
                         ({"singular_values": 1j}, TypeError)):
        with pytest.raises(error):
            testing.generate_matrix(**{"shape": (2, 2), "singular_values": 1, **wrong})


# ---- classes and environment ----

def in_module(name, source):
    """A module of its own, as unittest finds its classes."""
    module = sys.modules[name] = types.ModuleType(name)
    exec(source, module.__dict__)
    return module


def test_parameterize_unittest():
    module = in_module("arrayd_test_parameterized", """
import unittest
from arrayd import testing
seen = []

@testing.parameterize({'c': 5}, {'c': 6})
@testing.parameterize({'a': 1, 'f': lambda x: x + 1}, {'a': 2, 'f': abs})
class TestX(unittest.TestCase):
    def test_y(self):
        seen.append((self.a, self.f(-1), self.c))
""")
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromModule(module).run(result)
    assert sorted(module.seen) == [(1, 0, 5), (1, 0, 6), (2, 1, 5), (2, 1, 6)] and result.wasSuccessful()
    del sys.modules[module.__name__]


def test_products():
    assert testing.product({"b": [1, 2], "a": [3]}) == [{"a": 3, "b": 1}, {"a": 3, "b": 2}]
    assert testing.product_dict([{"a": 1}, {"a": 2}], [{"b": 3}]) == [{"a": 1, "b": 3}, {"a": 2, "b": 3}]
    with pytest.raises(RuntimeError):
        testing.parameterize({"a": 1})(testing.parameterize({"b": 1})(type("C", (), {})))


def numbers():
    return [random.random(), np.random.rand(), float(ad.random.rand()), testing.generate_seed()]


def test_fix_random():
    @testing.fix_random()
    def test_nested():
        return numbers()

    @testing.fix_random()
    def test_function():
        first = numbers()
        assert test_nested() != first  # goes on
        return first

    class Case(unittest.TestCase):
        seen = []

        def test_a(self):
            self.seen.append(numbers())
        test_b = test_a
    ad.random.seed(7)
    random.seed(7)
    np.random.seed(7)
    expected = [random.random(), np.random.rand(), float(ad.random.rand())]
    ad.random.seed(7)
    random.seed(7)
    np.random.seed(7)
    assert test_function() == test_function()
    unittest.defaultTestLoader.loadTestsFromTestCase(testing.fix_random()(Case)).run(unittest.TestResult())
    assert len(Case.seen) == 2 and Case.seen[0] == Case.seen[1] == test_function()
    assert [random.random(), np.random.rand(), float(ad.random.rand())] == expected  # as it was before
    with pytest.raises(RuntimeError):
        testing.generate_seed()
    with pytest.raises(ValueError):
        testing.fix_random()(5)


def test_requirements():
    assert testing.installed("numpy>=2", "pytest")
    assert not testing.installed("numpy<2") and not testing.installed("no-such")
    assert testing.numpy_satisfies(">=2.0") and not testing.numpy_satisfies("<1")
    assert testing.with_requires("numpy>=2")(lambda: 3)() == 3
    with pytest.raises(unittest.SkipTest, match="numpy<2"):
        testing.with_requires("numpy<2")(lambda: 3)()


def test_requirements_of_classes():
    class Plain:
        pass

    for requirement, skipped in (("numpy<2", True), ("numpy>=2", False)):
        mark, = testing.with_requires(requirement)(type("Made", (Plain,), {})).pytestmark
        assert mark.name == "skipif" and mark.args == (skipped,) and mark.kwargs["reason"] == f"requires: {requirement}"
    case = testing.with_requires("numpy<2")(type("Case", (unittest.TestCase,), {}))
    assert case.__unittest_skip__ and not hasattr(case, "pytestmark")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnknownMarkWarning")
def test_marks():
    @testing.gpu
    @testing.slow
    @testing.multi_gpu(2)
    def test():
        """"""
    marks = {mark.name: mark for mark in test.pytestmark}
    assert {"gpu", "slow", "multi_gpu", "skipif"} == set(marks)
    assert marks["skipif"].args == (ad.cuda.runtime.getDeviceCount() < 2,)
    with pytest.raises(ValueError):
        testing.multi_gpu(1)


def test_context_managers():
    with testing.assert_warns(RuntimeWarning):
        np.float64(1) / np.float64(0)
    with pytest.raises(AssertionError, match="UserWarning"):
        with testing.assert_warns(UserWarning):
            pass
    with testing.assert_function_is_called("numpy.sum", times_called=2):
        np.sum(1)
        np.sum(2)
    with pytest.raises(AssertionError, match="called 0 times"):
        with testing.assert_function_is_called("numpy.sum"):
            pass
