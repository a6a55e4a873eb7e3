"""Functions and methods over all kinds of views against NumPy: values, types, shapes, exceptions, and the order of
elements in memory where NumPy promises it."""
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import arrayd as ad
from oracle import DTYPES, compare, fetch, outcome, same_kind

run = settings(max_examples=20, deadline=None, derandomize=True, database=None)
ORDERS = st.sampled_from("CFAK")


class View:
    """Random numbers and what is made of them: permuted, cut, turned round, indexed, repeated."""

    def __init__(self, draw):
        ndim = draw(st.integers(0, 4))
        sides = st.sampled_from([3, 2, 4, 1, 5, 0] if draw(st.integers(0, 4)) else [2, 3])
        shape = draw(st.lists(sides, min_size=ndim, max_size=ndim))
        self.dtype = draw(st.sampled_from(DTYPES))
        self.axes = draw(st.permutations(range(ndim)))
        step = st.sampled_from([slice(None), slice(None), slice(None, None, 2), slice(None, None, -1), slice(1, None)])
        self.key = tuple(draw(st.lists(step, min_size=ndim, max_size=ndim)))
        self.first = ndim and draw(st.booleans()) and draw(st.booleans())
        self.repeated = draw(st.sampled_from([0, 0, 0, 0, 2]))
        rng = np.random.default_rng(draw(st.integers(0, 99)))
        values = rng.integers(-6, 9, shape) / (2 if self.dtype.kind in "fc" else 1)
        values = values + 1j * rng.integers(-3, 4, shape) if self.dtype.kind == "c" else values
        with np.errstate(all="ignore"):
            self.host = (abs(values) if self.dtype.kind in "ub" else values).astype(self.dtype)

    def of(self, xp):
        a = xp.array(self.host).transpose(self.axes)[self.key]
        if self.first and a.shape[0]:
            a = a[-1]
        return xp.broadcast_to(a, (self.repeated,) + a.shape) if self.repeated else a

    def __repr__(self):
        a = self.of(np)
        return f"View(shape={a.shape}, strides={a.strides}, {a.dtype})" if isinstance(a, np.ndarray) else f"View({a!r})"


views = st.composite(View)()


def strides(a):
    return [stride for stride, n in zip(a.strides, a.shape) if n > 1] if a.size else []


def check(body, *drawn, layout=False, ulps=64):
    """Check body(xp, *views) as oracle.check does, for the views of either library."""
    expected, wrong = outcome(lambda: body(np, *(np.asarray(view.of(np)) for view in drawn)))
    actual, error = outcome(lambda: body(ad, *(view.of(ad) for view in drawn)))
    if error is None:
        lies = [strides(one) for one in flat(actual) if isinstance(one, ad.ndarray)]
        actual, error = outcome(lambda: fetch(actual))
    if wrong is not None or error is not None:
        assert wrong is not None and error is not None and same_kind(wrong, error), (wrong, error, expected, actual)
        return
    compare(expected, actual, ulps)
    if layout:
        assert lies == [strides(np.asarray(one)) for one in flat(expected)]


def flat(value):
    return value if isinstance(value, (tuple, list)) else [value]


# Functions of one array whose results lie in memory as NumPy's.
LAID_OUT = {
    "negative": lambda xp, a: xp.negative(a), "add": lambda xp, a: a + a, "scalar": lambda xp, a: a + 1,
    "less": lambda xp, a: a < 2, "divide": lambda xp, a: a / 2, "power": lambda xp, a: a ** 2,
    "abs": lambda xp, a: abs(a),
    "sqrt": lambda xp, a: xp.sqrt(abs(a)), "square": lambda xp, a: xp.square(a), "conj": lambda xp, a: xp.conj(a),
    "isnan": lambda xp, a: xp.isnan(a), "logical_not": lambda xp, a: xp.logical_not(a), "row": lambda xp, a: a * a[:1],
    "where": lambda xp, a: xp.where(a == 2, a, 0), "clip": lambda xp, a: xp.clip(a, 1, 3),
    "divmod": lambda xp, a: divmod(a, 2),
    "maximum": lambda xp, a: xp.maximum(a, a.T) if a.ndim and a.shape == a.T.shape else a + 0, "T": lambda xp, a: a.T,
    "astype": lambda xp, a: a.astype("c16"), "same_type": lambda xp, a: a.astype(a.dtype), "real": lambda xp, a: a.real,
    "astype_f": lambda xp, a: a.astype("c8", order="F"), "copy": lambda xp, a: a.copy(),
    "copy_function": lambda xp, a: xp.copy(a),
    "array": lambda xp, a: xp.array(a), "array_c": lambda xp, a: xp.array(a, order="C", ndmin=3),
    "like": lambda xp, a: xp.zeros_like(a),
    "ones_like": lambda xp, a: xp.ones_like(a, dtype="f4"), "full_like": lambda xp, a: xp.full_like(a, 1, order="A"),
    "ravel": lambda xp, a: a.ravel(), "flatten": lambda xp, a: a.flatten(),
    "contiguous": lambda xp, a: xp.ascontiguousarray(a),
    "fortran": lambda xp, a: xp.asfortranarray(a), "require": lambda xp, a: xp.require(a, requirements="C"),
    "swapaxes": lambda xp, a: xp.swapaxes(a, 0, -1), "flip": lambda xp, a: xp.flip(a),
    "squeeze": lambda xp, a: a.squeeze(),
    "expand": lambda xp, a: xp.expand_dims(a, 0), "moveaxis": lambda xp, a: xp.moveaxis(a, 0, -1),
    "rot90": lambda xp, a: xp.rot90(a),
    "atleast_3d": lambda xp, a: xp.atleast_3d(a), "diagonal": lambda xp, a: a.diagonal(),
    "slice": lambda xp, a: a[::-1, ..., None],
}

# Functions of one array, compared by value.
ONE = {
    "sum": lambda xp, a: a.sum(), "sum_axis": lambda xp, a: a.sum(0),
    "sum_last": lambda xp, a: a.sum(-1, keepdims=True),
    "prod": lambda xp, a: xp.prod(xp.sign(a)), "mean": lambda xp, a: xp.mean(a, -1),
    "var": lambda xp, a: xp.var(a, 0), "std": lambda xp, a: xp.std(a),
    "min": lambda xp, a: a.min(), "max_axis": lambda xp, a: a.max(-1), "any": lambda xp, a: a.any(0),
    "all": lambda xp, a: a.all(),
    "argmin": lambda xp, a: a.argmin(), "argmax_axis": lambda xp, a: a.argmax(-1), "cumsum": lambda xp, a: a.cumsum(),
    "cumsum_axis": lambda xp, a: a.cumsum(0), "cumprod": lambda xp, a: xp.cumprod(xp.sign(a), -1),
    "ptp": lambda xp, a: xp.ptp(a, 0),
    "sort": lambda xp, a: xp.sort(a, -1), "sort_flat": lambda xp, a: xp.sort(a, None),
    "argsort": lambda xp, a: xp.argsort(a, 0, kind="stable"),
    "unique": lambda xp, a: xp.unique(a), "unique_counts": lambda xp, a: xp.unique(a, return_counts=True),
    "roll": lambda xp, a: xp.roll(a, 2),
    "roll_axis": lambda xp, a: xp.roll(a, 1, -1), "repeat": lambda xp, a: a.repeat(2),
    "repeat_axis": lambda xp, a: xp.repeat(a, 3, 0),
    "take": lambda xp, a: a.take(xp.array([0, 1, -1])), "take_axis": lambda xp, a: xp.take(a, xp.array([[0], [1]]), -1) if a.size else 0,
    "take_wrap": lambda xp, a: xp.take(a, xp.array([7, -9]), mode="wrap"),
    "compress": lambda xp, a: xp.compress([True, False], a, 0),
    "trace": lambda xp, a: a.trace(), "round": lambda xp, a: xp.round(a), "nonzero": lambda xp, a: a.nonzero(),
    "argwhere": lambda xp, a: xp.argwhere(a),
    "flatnonzero": lambda xp, a: xp.flatnonzero(a), "reshape": lambda xp, a: a.reshape(-1),
    "reshape_2": lambda xp, a: a.reshape(2, -1),
    "reshape_f": lambda xp, a: a.reshape(-1, 2, order="F"), "tile": lambda xp, a: xp.tile(a, 2),
    "tile_2": lambda xp, a: xp.tile(a, (2, 1)),
    "concatenate": lambda xp, a: xp.concatenate([a, a], -1),
    "concatenate_flat": lambda xp, a: xp.concatenate([a, a[..., :1]], None),
    "stack": lambda xp, a: xp.stack([a, a + 1], -1),
    "pad": lambda xp, a: xp.pad(a, 1), "pad_edge": lambda xp, a: xp.pad(a, 2, "edge"),
    "pad_reflect": lambda xp, a: xp.pad(a, 1, "reflect"),
    "diff": lambda xp, a: xp.diff(a), "diff_0": lambda xp, a: xp.diff(a, axis=0),
    "ediff1d": lambda xp, a: xp.ediff1d(a), "median": lambda xp, a: xp.median(a, 0),
    "quantile": lambda xp, a: xp.quantile(a, .3), "percentile": lambda xp, a: xp.percentile(a, [20, 50], -1),
    "count": lambda xp, a: xp.count_nonzero(a, 0),
    "nansum": lambda xp, a: xp.nansum(a, 0), "nanmax": lambda xp, a: xp.nanmax(a),
    "nan_to_num": lambda xp, a: xp.nan_to_num(a),
    "searchsorted": lambda xp, a: xp.searchsorted(xp.array([0, 2, 4]), a),
    "digitize": lambda xp, a: xp.digitize(a, xp.array([4.0, 2, 0])),
    "bincount": lambda xp, a: xp.bincount(a), "bincount_flat": lambda xp, a: xp.bincount(abs(a).ravel()),
    "histogram": lambda xp, a: xp.histogram(a.real, 4, (-6, 9)),
    "isin": lambda xp, a: xp.isin(a, xp.array([1, 2])), "isclose": lambda xp, a: xp.isclose(a, 2),
    "array_equal": lambda xp, a: xp.array_equal(a, a[..., ::-1]),
    "triu": lambda xp, a: xp.triu(a), "tril": lambda xp, a: xp.tril(a, -1), "diag": lambda xp, a: xp.diag(a),
    "diagflat": lambda xp, a: xp.diagflat(a),
    "vander": lambda xp, a: xp.vander(a, 3), "kron": lambda xp, a: xp.kron(a, xp.array([1, 2])),
    "outer": lambda xp, a: xp.outer(a, a), "dot": lambda xp, a: xp.dot(a, a),
    "matmul": lambda xp, a: a @ a.swapaxes(-1, -2), "inner": lambda xp, a: xp.inner(a, a),
    "vdot": lambda xp, a: xp.vdot(a, a), "tensordot": lambda xp, a: xp.tensordot(a, a, a.ndim),
    "einsum": lambda xp, a: xp.einsum("...i->...", a), "trapezoid": lambda xp, a: xp.trapezoid(a),
    "convolve": lambda xp, a: xp.convolve(a, xp.array([1, 2])),
    "gradient": lambda xp, a: xp.gradient(a, axis=0), "angle": lambda xp, a: xp.angle(a),
    "real_if_close": lambda xp, a: xp.real_if_close(a), "iscomplex": lambda xp, a: xp.iscomplex(a),
    "sinc": lambda xp, a: xp.sinc(a), "fix": lambda xp, a: xp.fix(a),
    "interp": lambda xp, a: xp.interp(a, xp.array([0.0, 4]), xp.array([1.0, 3])),
    "mask": lambda xp, a: a[a == 1], "fancy": lambda xp, a: a[xp.array([0, -1])],
    "fancy_2": lambda xp, a: a[..., xp.array([[0], [1]])], "at": lambda xp, a: a[0, ..., -1],
    "split": lambda xp, a: xp.array_split(a, 2), "average": lambda xp, a: xp.average(a, 0) if a.size else 0,
    "cov": lambda xp, a: xp.cov(a), "partition": lambda xp, a: xp.sort(xp.partition(a, 0)),
    "view": lambda xp, a: a.view("u1"), "item": lambda xp, a: a.item(0), "tolist": lambda xp, a: a.tolist(),
    "tobytes": lambda xp, a: list(a.tobytes()), "flat": lambda xp, a: a.flat[1:3],
    "packbits": lambda xp, a: xp.packbits(a), "unwrap": lambda xp, a: xp.unwrap(a),
    "byteswap": lambda xp, a: a.byteswap().byteswap(), "norm": lambda xp, a: xp.linalg.norm(a),
    "delete": lambda xp, a: xp.delete(a, 0, 0), "insert": lambda xp, a: xp.insert(a, 1, 5),
    "append": lambda xp, a: xp.append(a, a), "trim_zeros": lambda xp, a: xp.trim_zeros(a),
    "put": lambda xp, a: changed(xp, a, lambda x: x.put(xp.array([0, -1]), 7)),
    "fill": lambda xp, a: changed(xp, a, lambda x: x.fill(3)),
    "assign": lambda xp, a: changed(xp, a, lambda x: x.__setitem__(Ellipsis, x[::-1])),
    "iadd": lambda xp, a: changed(xp, a, lambda x: x.__iadd__(x)),
    "putmask": lambda xp, a: changed(xp, a, lambda x: xp.putmask(x, x == 2, 5)),
    "fill_diagonal": lambda xp, a: changed(xp, a, lambda x: xp.fill_diagonal(x, 1)),
    "sort_in_place": lambda xp, a: changed(xp, a, lambda x: x.sort(-1)),
    "flat_assign": lambda xp, a: changed(xp, a, lambda x: x.flat.__setitem__(slice(1, 3), 8)),
}


def changed(xp, a, change):
    x = a.copy("K")
    change(x)
    return x


@pytest.mark.parametrize("name", LAID_OUT)
@run
@given(view=views)
def test_layouts(name, view):
    check(LAID_OUT[name], view, layout=True)


@pytest.mark.parametrize("name", ONE)
@run
@given(view=views)
def test_values(name, view):
    check(ONE[name], view)


@run
@given(view=views, order=ORDERS)
def test_orders(view, order):
    for f in (lambda xp, a: a.ravel(order), lambda xp, a: a.copy(order), lambda xp, a: a.astype("c16", order=order),
              lambda xp, a: xp.empty_like(a, order=order) * 0, lambda xp, a: xp.array(a, order=order)):
        check(f, view, layout=True)


@run
@given(one=views, other=views)
def test_two(one, other):
    for f in (lambda xp, a, b: a + b, lambda xp, a, b: a == b, lambda xp, a, b: xp.where(a == b, a, b),
              lambda xp, a, b: a * b.T, lambda xp, a, b: xp.maximum(a, b)):
        check(f, one, other, layout=True)
