"""Corners of NumPy's functions that a sweep does not reach: arguments on the server, infinities, bfloat16, orders."""

import numpy as np
import pytest

import arrayd as ad
from oracle import check, random, seed

NUMPY = tuple(map(int, np.__version__.split(".")[:2]))
A = random(seed("semantics"), float, (5, 6))
GAPS = np.where(A > 30, np.nan, A)
Q = np.array([0.0, 0.2, 0.75, 1.0])


@pytest.mark.parametrize(
    "method",
    [
        "linear",
        "lower",
        "nearest",
        "inverted_cdf",
        "averaged_inverted_cdf",
        "weibull",
        "midpoint",
        "closest_observation",
    ],
)
@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
def test_quantiles_by_numbers_on_the_server(name, method):
    for a in (A, GAPS, A.astype(int)):
        for axis in (None, 0, (0, 1)):
            check(lambda xp, a, q: getattr(xp, name)(a, q, axis=axis, method=method), a, Q, ulps=64)
            check(lambda xp, a, q: getattr(xp, name)(a, q[2], axis=axis, method=method), a, Q, ulps=64)
    check(lambda xp, a, q: xp.percentile(a, q * 100, method=method), A, Q, ulps=64)


def test_quantiles_with_weights():
    weights = np.array([1.0, 0, 2, 5, 1, 3])
    for name in ("quantile", "nanquantile"):
        check(lambda xp, a, w: getattr(xp, name)(a, 0.5, weights=xp.abs(a), method="inverted_cdf"), A, weights)
    for a in (A, GAPS) if NUMPY < (2, 5) else ():  # NumPy's nanquantile cannot, and from 2.5 on its quantile fails
        check(lambda xp, a, w: xp.quantile(a, Q, axis=1, weights=w, method="inverted_cdf"), a, weights)
    check(lambda xp, a: xp.nanquantile(a, Q, weights=xp.ones(a.shape), method="inverted_cdf"), GAPS)
    for wrong in ([1, -1], [0, 0], [np.inf, 1]):
        check(lambda xp, a: xp.quantile(a[0, :2], 0.5, weights=wrong, method="inverted_cdf"), A)


def test_interpolation_between_infinities():
    x = np.array([-1, 0, 0.5, 1, 1.5, 2, 2.5, 3, 4, np.nan, np.inf, -np.inf])
    for xp_, fp in (
        ([0, 1, 2, 3], [1, np.inf, 2, -np.inf]),
        ([0, 1, 2, 3], [np.inf, np.inf, 5, 5]),
        ([-np.inf, 1, 2, 3], [1, 2, 3, 4]),
        ([0, 1, 2, np.inf], [1, 2, 3, 3]),
        ([0, 1, 2, 3], [1, np.nan, 2, 3]),
    ):
        points, values = np.array(xp_, float), np.array(fp, float)
        check(lambda xp, x, p, f: xp.interp(x, p, f), x, points, values)
        check(lambda xp, x: xp.interp(x, points.tolist(), values.tolist()), x)
        check(lambda xp, x, p, f: xp.interp(x, p, f + 1j, left=-1, right=2j), x, points, values)


def test_padding_by_a_function():
    def ends(line, width, axis, options):
        line[: width[0]] = options.get("fill", 7) + axis
        line[line.shape[0] - width[1] :] = -1

    check(lambda xp, a: xp.pad(a, ((1, 2), (0, 3)), ends), A)
    check(lambda xp, a: xp.pad(a, 2, ends, fill=3), A)


def test_padding_more_than_there_is():
    for mode in ("reflect", "symmetric"):
        for width in ((0, 3), (9, 1), (23, 17)):
            check(lambda xp, a: xp.pad(a, width, mode, reflect_type="odd"), A[0], ulps=64)
    check(lambda xp, a: xp.pad(a, (4, 0), "reflect", reflect_type="odd"), A[0, :1])


@pytest.mark.parametrize("kind", ["uint8", "int16", "float32"])
def test_windows_of_numpys_numbers(kind):
    for name in ("bartlett", "blackman", "hamming", "hanning"):
        check(lambda xp: getattr(xp, name)(np.dtype(kind).type(9)), ulps=64)
    check(lambda xp: xp.kaiser(np.dtype(kind).type(9), 5), ulps=64)


def test_orders_of_einsum():
    a = np.asfortranarray(A[:3, :4])
    for order in "CFAKcfa":
        check(lambda xp, a: xp.einsum("ij,jk->ik", a, a.T, order=order).flags.f_contiguous if order != "K" else 0, a)
        check(lambda xp, a: xp.einsum("ij,jk->ik", a, a.T, order=order), a, ulps=64)
    check(lambda xp, a: xp.einsum("ij->j", a, order="W"), a)
    for casting in ("safe", "same_kind", "unsafe", "other"):
        check(lambda xp, a: xp.einsum("ij->j", a, dtype="float32", casting=casting), a, ulps=64)
    check(lambda xp, a: xp.einsum(a, [0, 30], a.T, [30, 1]), a, ulps=64)
    check(lambda xp, a: xp.einsum(a, [0, 52]), a)


@pytest.mark.parametrize(
    "optimize",
    [
        True,
        "greedy",
        "optimal",
        ("greedy", 30),
        ["einsum_path", (0, 1), (0, 1), (0, 1)],
        ["einsum_path", (0, 1, 2, 3)],
        ["einsum_path", (1, 2), (0, 1, 2)],
        "best",
    ],
    ids=str,
)
def test_paths_of_einsum(optimize):
    shapes = ((3, 4), (4, 5), (5, 2), (2, 3))
    parts = [random(seed("path", i), float, shape) for i, shape in enumerate(shapes)]
    for text in ("ij,jk,kl,li->", "ij,jk,kl,lm->im", "ij,jk,kl,li->ik", "ij,jk,kl,lm", "ij,jk,kl,li->ijkl"):
        check(lambda xp, *parts: xp.einsum(text, *parts, optimize=optimize), *parts, ulps=10_000)
    if optimize != "best":
        check(lambda xp, *parts: xp.einsum_path("ij,jk,kl,li->", *parts, optimize=optimize), *parts)


def test_bfloat16_is_a_floating_type():
    """NumPy's kind of it is V, so that what asks for f and c forgets it."""
    pytest.importorskip("ml_dtypes")
    x = ad.asarray([3, np.nan, 1, np.nan, 2]).astype(ad.bfloat16)
    assert np.isnan(float(ad.median(x))) and np.isnan(float(ad.quantile(x, 0.5)))
    assert float(ad.nanmedian(x)) == 2 and float(ad.nanquantile(x, 0.5)) == 2 and float(ad.nanmean(x)) == 2
    assert float(ad.nanvar(x)) == pytest.approx(2 / 3, rel=0.01)
    assert ad.unique(x).size == 4 and ad.array_equal(x, x, equal_nan=True)
    for result in (
        ad.linspace(x, 2, 3),
        ad.sinc(x),
        ad.i0(x),
        ad.linalg.norm(x),
        ad.nan_to_num(x, nan=5),
        ad.unwrap(x),
        ad.gradient(x),
        ad.median(x),
        ad.nanmedian(x),
    ):
        assert result.dtype == ad.bfloat16
    assert ad.nan_to_num(x, nan=5).tolist() == [3, 5, 1, 5, 2]
    assert ad.nan_to_num(ad.asarray([np.inf, 0]).astype(ad.bfloat16), nan=1).get().astype(float)[0] == 2.0**127 * (
        2 - 2.0**-7
    )


def test_sums_of_not_a_number_in_whole_numbers():
    for name in ("nansum", "nanprod", "nancumsum", "nancumprod"):
        for kind in ("int64", "int8", "bool", "uint16"):
            check(
                lambda xp, a: getattr(xp, name)(a, axis=1, dtype=kind), np.array([[1, np.nan, 3], [np.nan, np.nan, 2]])
            )
    for name in ("cumsum", "cumprod"):
        check(lambda xp, a: getattr(xp, name)(a, dtype=bool), np.array([0, 1, -1, 2, 0]))


def test_triangles_of_any_size():
    for n in (0, 1, 3, 5):
        for m in (None, 0, 2, 7):
            for k in (-9, -1, 0, 2, 9):
                check(lambda xp: (xp.tril_indices(n, k, m), xp.triu_indices(n, k, m)))


def test_what_is_known_on_this_side_is_not_asked_for():
    a = ad.asarray(A)
    before = ad.session_info()["round_trips"]
    ad.compress([True, False, True], a, 0), ad.extract(A > 0, a), ad.ix_([True, False], [1, 2]), ad.tril_indices(4), a[
        A > 0
    ]
    ad.place(a, a > 0, [1, 2]), ad.unravel_index(a.argmax(), a.shape), ad.quantile(a, ad.asarray(Q)), ad.geomspace(
        a + 99, 200
    )
    assert ad.session_info()["round_trips"] == before


def test_conditions_of_piecewise():
    x = np.arange(6.0)
    for conditions in (
        [x < 2, x > 3],
        (x < 2, x > 3),
        np.stack([x < 2, x > 3]),
        x < 2,
        [x < 2],
    ):
        for functions in ([1, 2], [1, 2, 3], [-1], [lambda v: v * 2, 5]):
            if NUMPY >= (2, 5) and len(conditions) != len(functions):  # there it does not broadcast the default
                continue
            check(
                lambda xp, a: xp.piecewise(
                    a, xp.asarray(conditions) if isinstance(conditions, np.ndarray) else conditions, functions
                ),
                x,
            )
    check(lambda xp: xp.piecewise(xp.asarray(3.0), [True, False], [1, 2]))
    check(lambda xp: xp.piecewise(xp.asarray(3.0), True, [1, 2]))
