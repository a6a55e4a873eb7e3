"""Functions around arrays that CuPy has, and the names that arrayd does not have."""
import builtins
import inspect
import re
import warnings

import numpy as np
import pytest

import arrayd as ad
from arrayd import _removed
from oracle import check, compare

A = np.arange(24).reshape(2, 3, 4)


# ---- functions applied along axes ----

FUNCTIONS = {
    "number": lambda xp, x: x.sum(), "array": lambda xp, x: x[::-1] * 2, "shorter": lambda xp, x: x[:2],
    "matrix": lambda xp, x: x[:, None] + x[None, :2], "python number": lambda xp, x: 3, "list": lambda xp, x: [1.5, 2],
    "type of the first": lambda xp, x: x.sum() if x.dtype.kind == "i" else x, "text": lambda xp, x: "a",
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_apply_along_axis(name):
    function = FUNCTIONS[name]
    if name == "text":
        with pytest.raises(TypeError):
            ad.apply_along_axis(lambda x: "a", 0, ad.ones(3))
        return
    for axis in (0, 1, 2, -1, -3, 3):
        check(lambda xp, a: xp.apply_along_axis(lambda x: function(xp, x), axis, a), A)
    check(lambda xp, a: xp.apply_along_axis(lambda x: function(xp, x), 0, a), np.arange(5.0))
    check(lambda xp, a: xp.apply_along_axis(lambda x: function(xp, x), 1, a), np.zeros((0, 3)))
    check(lambda xp, a: xp.apply_along_axis(lambda x, by, more=0: x * by + more, 0, a, 3, more=1), A)
    check(lambda xp, a: xp.apply_along_axis(lambda x: x, 0, a), np.array(3))


def test_apply_over_axes():
    for axes in (0, -1, [0, 2], (1,), [0, 1, 2], []):
        check(lambda xp, a: xp.apply_over_axes(xp.sum, a, axes), A)
        check(lambda xp, a: xp.apply_over_axes(lambda x, axis: x.sum(axis, keepdims=True), a, axes), A)
    check(lambda xp, a: xp.apply_over_axes(lambda x, axis: x.sum(), a, [0, 1]), A)
    compare(np.apply_over_axes(np.sum, A, [0, 1]), ad.apply_over_axes(ad.sum, ad.asarray(A), ad.asarray([0, 1])).get())


def test_they_do_not_wait():
    a = ad.asarray(A)
    before = ad.session_info()["round_trips"]
    ad.apply_along_axis(lambda x: x.sum(), 1, a)
    ad.apply_over_axes(ad.sum, a, [0, 1])
    ad.broadcast(a, 3).values[0] + 1
    ad.require(a.T, requirements="C")
    ad.asarray_chkfinite(a)
    ad.real_if_close(a)
    assert ad.session_info()["round_trips"] == before
    ad.asarray_chkfinite(a * 1.0)
    ad.real_if_close(a * 1j)
    assert ad.session_info()["round_trips"] == before + 2


# ---- arrays as asked ----

def test_asarray_chkfinite():
    for values in ([1.0, 2], [1, 2], [np.nan, 1], [1, -np.inf], [1 + 1j], [complex(0, np.inf)], [True]):
        check(lambda xp, a: xp.asarray_chkfinite(a), np.array(values))
        check(lambda xp: xp.asarray_chkfinite(values, dtype=complex, order="F"))


def test_real_if_close():
    for values in ([1 + 0j, 2 + 1e-15j], [1 + 1e-13j], [1 + 1e-3j], [1.0, 2], [1], [complex(1, np.nan)], 1 + 0j, []):
        for dtype in (None, "complex64"):
            for tol in ({}, {"tol": 1000}, {"tol": 1e-2}):
                check(lambda xp, a: xp.real_if_close(a, **tol), np.array(values, dtype))


def test_min_scalar_type():
    class Handing:
        def __cupy_get_ndarray__(self):
            return ad.ones(2, "int16")

    for value in (-129, 255, 1.2, np.float32(1), np.ones(3, "int8"), [np.int8(1), np.int8(2)]):
        assert ad.min_scalar_type(value) == np.min_scalar_type(value)
    for dtype in ("int16", "float32", "complex128", "bool"):
        a = ad.ones(2, dtype)
        assert ad.min_scalar_type(a) == ad.min_scalar_type((a, a)) == ad.min_scalar_type(a[0]) == a.dtype
    assert ad.min_scalar_type(Handing()) == "int16"


def test_require():
    a = np.arange(6.0).reshape(2, 3)
    arrays = {"c": lambda xp: xp.array(a), "f": lambda xp: xp.array(a).T, "part": lambda xp: xp.array(a)[:, :2],
              "list": lambda xp: [[1, 2], [3, 4]]}
    for make in arrays.values():
        for requirements in (None, [], "C", "F", "CO", ["F_CONTIGUOUS", "O"], ["a", "w"], ["ENSUREARRAY", "C"], "CF",
                             "X", ["CONTIGUOUS"], ["FORTRAN", "OWNDATA"]):
            for dtype in (None, "float32"):
                def body(xp):
                    given = make(xp)
                    result = xp.require(given, dtype, requirements)
                    flags = result.flags
                    wanted = [one.upper() for one in requirements or ()]
                    own = flags["OWNDATA"] or flags["FNC"] if {"O", "OWNDATA"} & {*wanted} else None
                    ordered = flags["F_CONTIGUOUS" if wanted[:1] and wanted[0][0] == "F" else "C_CONTIGUOUS"]
                    return result, str((own, ordered, wanted and result is given)) if wanted else "any"
                check(body)


def test_broadcast():
    for shapes in ([(2, 3), (3,)], [(4, 1), (1, 5), ()], [(0, 3), (1, 3)], [()], [(3,), (4,)]):
        arrays = [np.arange(int(np.prod(shape)), dtype=float).reshape(shape) for shape in shapes]

        def facts(xp, *arrays):
            b = xp.broadcast(*arrays)
            return [b.shape, b.size, b.nd, b.ndim, b.numiter]
        check(facts, *arrays)
        if shapes != [(3,), (4,)]:
            b, n = ad.broadcast(*map(ad.asarray, arrays)), np.broadcast(*arrays)
            for value, host in zip(b.values, np.broadcast_arrays(*arrays)):
                np.testing.assert_array_equal(value.get(), host)
            assert [tuple(map(float, x)) for x in b] == [tuple(map(float, x)) for x in n]
            assert b.index == n.index and len(b.iters) == len(n.iters)
            b.reset()
            assert b.index == 0 and len(list(b)) == n.size
    assert ad.broadcast(1, [1, 2], ad.ones((3, 1))).shape == (3, 2)


# ---- memos ----

def test_memoize():
    calls = []

    @ad.memoize()
    def f(*args, **kw):
        """doc"""
        calls.append((args, kw))
        return object()
    assert f(1, a=2) is f(1, a=2) and f(1) is not f(2) and f(1, a=2) is not f(1, b=2) and len(calls) == 4
    assert f(1, x=1, y=2) is f(1, y=2, x=1) and f.__name__ == "f" and f.__doc__ == "doc"
    before = f(1)
    ad.clear_memo()
    assert f(1) is not before

    @ad.memoize(for_each_device=True)
    def g():
        return object()
    with ad.cuda.Device(0):
        assert g() is g()
    with pytest.raises(TypeError):
        f([])


# ---- names ----

def test_names_from_numpy():
    import numpy.exceptions
    for name in ad.exceptions.__all__:
        assert getattr(ad, name) is getattr(ad.exceptions, name) is getattr(numpy.exceptions, name)
    for name in ("long", "ulong", "typename", "mintypecode"):
        assert getattr(ad, name) is getattr(np, name)
    assert ad.DataSource is np.lib.npyio.DataSource and ad.format_parser is np.rec.format_parser
    assert ad.is_available() == ad.cuda.is_available()


def test_names_that_are_not():
    for name, instead in _removed._BY_NUMPY.items():
        with pytest.raises(AttributeError, match=f"'arrayd' has no attribute '{name}': NumPy 2 has removed it"):
            getattr(ad, name)
        word = re.match(r"[\w.]*", instead or "").group()
        assert not word or hasattr(ad, word) or hasattr(builtins, word) or word in ("0.0", "ast.literal_eval"), word
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises((AttributeError, DeprecationWarning)):
                value = getattr(np, name)
                value([[1]])  # row_stack is still there, but warns
    for module, names in _removed._REASONS.items():
        holder = getattr(ad, module) if module else ad
        for name, reason in names.items():
            assert not hasattr(holder, name), f"{module} has {name} now"
            with pytest.raises(AttributeError, match=re.escape(reason)):
                getattr(holder, name)
    for name in ("nothing", "_nothing", "__nothing__"):
        with pytest.raises(AttributeError, match=f"^module 'arrayd' has no attribute '{name}'$"):
            getattr(ad, name)


def test_dir_names_what_there_is():
    names = dir(ad)
    assert len(names) == len(set(names)) and all(hasattr(ad, name) for name in names)
    assert {"poly1d", "apply_along_axis", "cupyx", "testing", "exceptions", "is_available"} <= set(names)


# ---- parameters ----

# Parameters that CuPy's functions of random numbers take, in this order. Those behind them are NumPy's.
SIGNATURES = {
    "both": "beta(a b) binomial(n p) chisquare(df) dirichlet(alpha) exponential(scale) f(dfnum dfden) "
            "gamma(shape scale) geometric(p) hypergeometric(ngood nbad nsample) logseries(p) poisson(lam) power(a) uniform(low high)",
    "state": "laplace(loc scale) logistic(loc scale) lognormal(mean sigma) negative_binomial(n p) normal(loc scale) "
             "pareto(a) noncentral_chisquare(df nonc) noncentral_f(dfnum dfden nonc) random_sample() rayleigh(scale) "
             "standard_cauchy() standard_exponential() standard_gamma(shape) standard_normal() standard_t(df) "
             "triangular(left mode right) vonmises(mu kappa) wald(mean scale) weibull(a) zipf(a) gumbel(loc scale) randint(low high)",
    "bare state": "seed(seed) choice(a size replace p) shuffle(a) permutation(a) "
                  "multivariate_normal(mean cov size check_valid tol method dtype) ",
    "generator": "random(size dtype out) integers(low high size dtype endpoint) standard_normal(size dtype out) "
                 "standard_exponential(size dtype method out) standard_gamma(shape size dtype out)",
    "module": "multinomial(n pvals size) random_integers(low high size) random(size dtype) ranf(size dtype) "
              "bytes(length) sample(size dtype) default_rng(seed) set_random_state(rs)",
}


@pytest.mark.parametrize("kind", SIGNATURES)
def test_signatures_are_cupys(kind):
    ends = {"both": ["size"], "state": ["size", "dtype"]}.get(kind, [])
    state = [ad.random.RandomState, ad.random]
    holders = {"generator": [ad.random.Generator], "module": [ad.random], "both": [ad.random.Generator, *state]}
    for name, parameters in re.findall(r"(\w+)\((.*?)\)", SIGNATURES[kind]):
        for holder in holders.get(kind, state):
            taken = [p for p in inspect.signature(getattr(holder, name)).parameters if p != "self"]
            expected = parameters.split() + ends
            assert taken[:len(expected)] == expected, (holder, name)
