"""cupyx: checks of waiting, error states, generalized ufuncs, the profiler."""
import numpy as np
import pytest

import arrayd as ad
from arrayd import cupyx
from oracle import check


def test_names():
    assert cupyx.rsqrt is ad.rsqrt and cupyx.empty_pinned is ad.empty_pinned
    np.testing.assert_allclose(cupyx.rsqrt(ad.asarray([4.0, 16])).get(), [0.5, 0.25])
    assert all(hasattr(cupyx, name) for name in cupyx.__all__)


# ---- allow_synchronize ----

def test_allow_synchronize():
    x = ad.arange(5.0)
    with cupyx.allow_synchronize(False):
        y = (x * 2).sum()
    with pytest.raises(cupyx.DeviceSynchronized, match="2 times"):
        with cupyx.allow_synchronize(False):
            float(y)
            float(y)
    with cupyx.allow_synchronize(False):
        with cupyx.allow_synchronize(True):
            assert float(y) == 20
            with cupyx.allow_synchronize(False):
                y = y + 1
        y = y + 1
    with cupyx.allow_synchronize(True), pytest.raises(RuntimeError, match="1 time$"):
        with cupyx.allow_synchronize(False):
            with cupyx.allow_synchronize(True):
                float(y)
            float(y)
    with pytest.raises(KeyError):  # what the block raises goes before
        with cupyx.allow_synchronize(False):
            float(y)
            raise KeyError
    with cupyx.allow_synchronize(False):
        pass


# ---- errstate ----

def test_errstate():
    state = cupyx.geterr()
    assert state["linalg"] == "raise" and cupyx.seterr(linalg="raise") == state and cupyx.seterr(**state) == state
    with cupyx.errstate(linalg="raise", fallback_mode="ignore"), pytest.raises(ad.linalg.LinAlgError):
        ad.linalg.inv(ad.zeros((2, 2))).get()
    with cupyx.errstate(linalg="raise"):
        for failing in (lambda: ad.linalg.inv(ad.zeros((2, 2))), lambda: ad.linalg.cholesky(-ad.eye(2)),
                        lambda: ad.linalg.solve(ad.zeros((2, 2)), ad.ones(2)), lambda: ad.linalg.eigh(ad.eye(2) * ad.nan)):
            with pytest.raises(ad.linalg.LinAlgError), cupyx.errstate(fallback_mode="ignore"):
                failing()
        assert ad.linalg.inv(ad.zeros((0, 2, 2))).shape == (0, 2, 2)
    with cupyx.allow_synchronize(False):
        failed = ad.linalg.inv(ad.zeros((2, 2)))
    with pytest.raises(ad.linalg.LinAlgError):
        failed.get()
    state["linalg"] = "ignore"
    assert cupyx.geterr()["linalg"] == "raise"
    for option in ({"linalg": "ignore"}, {"divide": "raise"}, {"over": "warn"}, {"fallback_mode": "warn"}):
        with pytest.raises(NotImplementedError, match=next(iter(option))):
            cupyx.seterr(**option)
        with pytest.raises(NotImplementedError):
            with cupyx.errstate(**option):
                pass
    for option in ({"linalg": "maybe"}, {"fallback_mode": "maybe"}):
        with pytest.raises(ValueError):
            cupyx.seterr(**option)


def test_runtime_info():
    info = cupyx.get_runtime_info()
    facts = ad.session_info()
    assert (info.arrayd_version, info.server, info.url) == (ad.__version__, facts["server"], facts["url"])
    assert len(info.devices) == facts["devices"] and info.devices[0]["memory"] == facts["memory"]
    text = str(info)
    assert info.cupy_version == ad.cupy.VERSION and f": {ad.cupy.VERSION} " in text
    assert all(word in text for word in (np.__version__, facts["backend"], info.devices[0]["name"], "Device 0 Memory"))
    before = ad.session_info()["round_trips"]
    assert "Device 0" not in str(cupyx.get_runtime_info(full=False)) and ad.session_info()["round_trips"] == before


# ---- generalized ufuncs: np.vectorize with a signature is the oracle ----

FUNCTIONS = {
    "(i)->()": lambda x: x.sum(), "(i),(i)->()": lambda x, y: (x * y).sum(), "(i)->(i)": lambda x: x.cumsum(),
    "(m,n),(n)->(m)": lambda a, x: a @ x, "(m,n),(n,p)->(m,p)": lambda a, b: a @ b, "(),()->()": lambda x, y: x - 2 * y,
    "(i),(j)->(i,j)": lambda x, y: x[:, None] * y, "( i ),(i) -> (),(i)": lambda x, y: (x.max(), x + y),
    "(3),(3)->(3)": lambda x, y: x - y, "(i)->(k)": lambda x: x[1:],
}
CASES = [
    ("(i)->()", [(4, 3)]), ("(i)->()", [(5,)]), ("(i),(i)->()", [(4, 1, 3), (2, 3)]), ("(i)->(i)", [(2, 3, 4)]),
    ("(m,n),(n)->(m)", [(2, 3, 4), (5, 1, 4)]), ("(m,n),(n,p)->(m,p)", [(3, 2, 3), (3, 2)]),
    ("(),()->()", [(2, 3), (3,)]),
    ("(i),(j)->(i,j)", [(2, 3), (4,)]), ("( i ),(i) -> (),(i)", [(2, 3), (3,)]), ("(3),(3)->(3)", [(2, 3), (3,)]),
    ("(i)->(k)", [(2, 5)]), ("(i),(i)->()", [(3,), (4,)]), ("(m,n),(n)->(m)", [(3,), (3,)]),
    ("(),()->()", [(2, 3), (4,)]), ("(i)->()", [(0, 3)]),
]


def arrays(shapes):
    return [np.arange(int(np.prod(shape)), dtype=float).reshape(shape) % 7 - 2 for shape in shapes]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_gufunc(case):
    signature, shapes = CASES[case]
    function = FUNCTIONS[signature]

    def body(xp, *inputs):
        make = (lambda f: np.vectorize(f, signature=signature)) if xp is np else \
            (lambda f: cupyx.GeneralizedUFunc(f, signature))
        return make(function)(*inputs)
    check(body, *arrays(shapes), ulps=64)


def test_gufunc_batched_calls_once():
    calls = []

    def multiply(a, b):
        calls.append(a.shape)
        return a @ b
    matmul = cupyx.GeneralizedUFunc(multiply, "(m,n),(n,p)->(m,p)", supports_batched=True, name="mm", doc="d")
    a, b = arrays([(4, 2, 3), (3, 5)])
    x, y = ad.asarray(a), ad.asarray(b)
    np.testing.assert_allclose(matmul(x, y).get(), a @ b)
    assert calls == [(4, 2, 3)] and (matmul.__name__, matmul.__doc__, matmul.nin, matmul.nout) == ("mm", "d", 2, 1)
    for options in ({"axes": [(0, 1), (0, 1), (0, 1)]}, {"axes": [(-1, 0), (1, 0), (2, 0)]}):
        check(lambda xp, a, b: (xp.matmul if xp is np else matmul)(a, b, **options), *arrays([(3, 3, 3), (3, 3)]))
    out = ad.empty((4, 2, 5), "f")
    assert matmul(x, y, out=out) is out
    np.testing.assert_allclose(out.get(), a @ b)
    assert matmul(x, y, order="F").flags.f_contiguous and matmul(x, y, dtype="f").dtype == np.float32


def test_gufunc_axes():
    total = cupyx.GeneralizedUFunc(lambda x: x.sum(-1), "(i)->()", supports_batched=True)
    running = cupyx.GeneralizedUFunc(lambda x: x.cumsum(-1), "(i)->(i)", supports_batched=True)
    a, = arrays([(2, 3, 4)])
    x = ad.asarray(a)
    for axis in (0, 1, -1):
        np.testing.assert_array_equal(total(x, axis=axis).get(), a.sum(axis))
        np.testing.assert_array_equal(total(x, axis=axis, keepdims=True).get(), a.sum(axis, keepdims=True))
        np.testing.assert_array_equal(total(x, axes=[axis]).get(), a.sum(axis))
        np.testing.assert_array_equal(running(x, axis=axis).get(), a.cumsum(axis))
    np.testing.assert_array_equal(running(x, axes=[0, 2]).get(), np.moveaxis(a.cumsum(0), 0, 2))
    sized = cupyx.GeneralizedUFunc(lambda x: x, "(3)->(3)")
    outer = cupyx.GeneralizedUFunc(lambda x, y: x, "(i),(j)->(i)")
    for f, options in ((total, {"axis": 0, "axes": [0]}), (total, {"axes": (0,)}), (running, {"keepdims": True}),
                       (running, {"axes": [0]}), (total, {"axes": [(0, 1)]}), (total, {"axis": 3}), (sized, {})):
        with pytest.raises(ValueError):
            f(x, **options)
    for wrong in ((), (x, x)):
        with pytest.raises(ValueError, match="takes 1 inputs"):
            total(*wrong)
    with pytest.raises(ValueError):
        outer(x)


def test_gufunc_types():
    seen = []

    def of(name):
        def f(x, y):
            seen.append((name, x.dtype.char, y.dtype.char))
            return x + y
        return f
    f = cupyx.GeneralizedUFunc(of("default"), "(i),(i)->(i)",
                               signatures=["ff->f", ("dd->d", of("double")), ("ll->d", of("int"))])
    i, s, d, c = (ad.ones(3, t) for t in "lfdF")
    for args, options, kind, result in (
            ((s, s), {}, ("default", "f", "f"), "f"), ((d, s), {"casting": "safe"}, ("double", "d", "d"), "d"),
            ((i, i), {"signature": "ll->d"}, ("int", "l", "l"), "d"),
            ((d, d), {"dtype": "f"}, ("default", "f", "f"), "f"),
            ((c, c), {}, ("default", "F", "F"), "F"), ((i, i), {"signature": ("l", "l", "d")}, ("int", "l", "l"), "d")):
        assert f(*args, **options).dtype.char == result and seen.pop() == kind
    with pytest.raises(TypeError):
        f(s, s, signature="fd->d")
    with pytest.raises(TypeError, match="input 0"):
        f(c, c, signature="ff->f")
    for wrong in ("", "(i)", "i->i", "(i)->(i", "(i?)->()", "(i|1)->()"):
        with pytest.raises(ValueError):
            cupyx.GeneralizedUFunc(of(""), wrong)
    with pytest.raises(TypeError):
        cupyx.GeneralizedUFunc(of(""), None)
    with pytest.raises(ValueError):
        cupyx.GeneralizedUFunc(of(""), "(i),(i)->(i)", signatures=["f->f"])
    with pytest.raises(TypeError):
        f(s, s, out=np.ones(3))


# ---- the profiler ----

def test_the_timer_that_has_moved():
    with pytest.warns(UserWarning, match="cupyx.profiler.benchmark") as warned:
        times = cupyx.time.repeat(ad.sin, (ad.arange(3.0),), n_repeat=2, n_warmup=0)
    assert [one.category for one in warned] == [UserWarning] and times.cpu_times.shape == (2,)


def test_benchmark():
    calls = []

    def product(a, b, scale=1):
        calls.append(scale)
        return a @ b * scale
    a = ad.ones((200, 200))
    result = cupyx.profiler.benchmark(product, (a, a), {"scale": 2}, n_repeat=7, n_warmup=3)
    assert calls == [2] * 10 and result.name == "product"
    assert result.cpu_times.shape == (7,) and result.gpu_times.shape == (1, 7)
    assert (result.cpu_times > 0).all() and (result.gpu_times >= 0).all() and result.gpu_times.sum() > 0
    assert "product" in str(result) and "CPU:" in str(result) and "GPU-0:" in str(result) and "GPU" not in result.to_str()
    calls.clear()
    result = cupyx.profiler.benchmark(product, (a, a), n_repeat=1000, n_warmup=0, max_duration=0, name="short")
    assert len(calls) == 1 and result.gpu_times.shape == (1, 1) and "+/-" not in str(result) and result.name == "short"
    for wrong in ({"args": [a]}, {"kwargs": 1}, {"n_repeat": 1.5}, {"name": 5}, {"n_warmup": "a"},
                  {"max_duration": "a"}, {"devices": [0]}, {"n_repeat": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            cupyx.profiler.benchmark(product, **{"args": (a, a), "n_repeat": 1, "n_warmup": 0, **wrong})
    with pytest.raises(ValueError):
        cupyx.profiler.benchmark(5)


def test_profile():
    x = ad.arange(10.0)
    with cupyx.profiler.profile() as block:
        assert block.seconds is None and "not complete" in repr(block)
        y = x * 2 + 1
        float(y.sum())
    assert block.operations >= 3 and block.round_trips == 1  # releases are operations, too
    assert block.messages_bytes > 0 and block.seconds > 0
    assert f"{block.operations} operations, 1 round trips" in repr(block)
    with pytest.raises(KeyError):
        with cupyx.profiler.profile() as block:
            raise KeyError
    assert block.seconds is not None


def test_profile_by_the_name_that_cupy_has_deprecated():
    with pytest.warns(DeprecationWarning, match="use cupyx.profiler.profile") as warned, ad.cuda.profile() as block:
        ad.arange(10.0) * 2
    assert "operations" in repr(block) and block.operations >= 2 and warned[0].filename == __file__


def test_time_range():
    ranges = cupyx.profiler.time_range

    @ranges()
    def f(x):
        """doc"""
        with ranges("inner", color_id=1), ranges("other", argb_color=0xff00ff00):
            return x + 1
    assert f(1) == 2 and f(3) == 4 and f.__name__ == "f" and f.__doc__ == "doc"
    x = ad.ones(3)
    before = ad.session_info()["round_trips"]
    with ranges("a"):
        x = x + 1
    assert ad.session_info()["round_trips"] == before
    with ranges("a", sync=True) as r:
        assert r.message == "a"
        x = x + 1
    assert ad.session_info()["round_trips"] == before + 2
    for wrong in (lambda: ranges("a", 1, 2), lambda: ranges().__enter__()):
        with pytest.raises(ValueError):
            wrong()


def test_time_range_marks_ranges(monkeypatch):
    seen = []
    for name in ("RangePush", "RangePushC", "RangePop"):
        monkeypatch.setattr(ad.cuda.nvtx, name, lambda *args, name=name: seen.append((name, *args)))
    with pytest.raises(KeyError), cupyx.profiler.time_range("outer", 3):
        with cupyx.profiler.time_range("inner", argb_color=0xff00ff00):
            pass
        raise KeyError
    assert seen == [("RangePush", "outer", 3), ("RangePushC", "inner", 0xff00ff00), ("RangePop",), ("RangePop",)]
    monkeypatch.setattr(ad.cuda.nvtx, "available", False)
    with pytest.raises(RuntimeError, match="nvtx"):
        cupyx.profiler.time_range("outer")


def test_magic(capsys):
    class Shell:
        def __init__(self):
            self.user_ns, self.magics = {"x": ad.ones(4), "ad": ad}, {}

        def register_magic_function(self, func, magic_kind="line", magic_name=None):
            self.magics[func.__name__, magic_kind] = func
    shell = Shell()
    cupyx.profiler.load_ipython_extension(shell)
    run = shell.magics["gpu_timeit", "line_cell"]
    run("-n 3 --n-warmup 0 x + -1")
    run("-w 1 --max-duration 0", "  y = x * 2\n  z = -y\n")
    assert shell.user_ns["z"].tolist() == [-2] * 4
    text = capsys.readouterr().out
    assert text.count("CPU:") == 2
    with pytest.raises(SyntaxError):
        run("-n 3 x +")
    with pytest.raises(ValueError):
        run("-n")
