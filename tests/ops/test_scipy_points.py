"""arrayd.scipy.spatial and arrayd.scipy.stats against SciPy."""
import warnings

import numpy as np
import pytest
import scipy.spatial
import scipy.spatial.distance as sd
import scipy.stats

import arrayd as ad
from arrayd.scipy import spatial, stats
from arrayd.scipy.spatial import distance
from oracle import seed


def near(ours, theirs, tolerance=1e-9):
    for x, y in zip(*(v if isinstance(v, tuple) else (v,) for v in (ours, theirs))):
        x = ad.asnumpy(x) if isinstance(x, ad.ndarray) else np.asarray(x)
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)
        assert x.shape == np.shape(y) and x.dtype == np.asarray(y).dtype


def draw(*shape):
    return seed("points", shape).random(shape)


@pytest.mark.parametrize("metric", ("euclidean", "sqeuclidean", "cityblock", "chebyshev", "minkowski", "canberra",
                                    "braycurtis", "hamming", "cosine", "correlation", "jensenshannon", "russellrao", "cb"))
def test_distances(metric):
    a, b = draw(7, 4), draw(6, 4)
    a[1] = b[2] = [0.5, 0, 0.25, 0.25]
    for options in ({}, {"p": 3}) if metric == "minkowski" else ({},):
        near(distance.cdist(ad.asarray(a), ad.asarray(b), metric, **options), sd.cdist(a, b, metric, **options))
        near(distance.pdist(ad.asarray(a), metric, **options), sd.pdist(a, metric, **options))
    if hasattr(sd, metric) and metric != "russellrao":  # of numbers SciPy's makes another distance of two vectors than of pairs
        near(getattr(distance, metric)(ad.asarray(a[0]), ad.asarray(b[0])), float(getattr(sd, metric)(a[0], b[0])))


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "cityblock", "chebyshev", "minkowski", "canberra",
                                    "braycurtis", "cosine", "correlation"])
def test_points_of_few_and_many_columns(metric):
    """Of many columns products are those of matrices. NaN stays where it is."""
    rng = np.random.default_rng(4)
    for columns in (1, 3, 64, 65):
        a, b = rng.random((7, columns)), rng.random((6, columns))
        if metric != "chebyshev":  # of which SciPy passes over NaN
            a[2, 0] = np.nan
        with np.errstate(all="ignore"):
            expected = sd.cdist(a, b, metric)
        ours = ad.asnumpy(distance.cdist(ad.asarray(a)[::-1], ad.asarray(b), metric))[::-1]
        if columns > 1 or metric != "correlation":  # of one column there is none but rounding errors
            near(ours, expected)


@pytest.mark.parametrize("metric", ["kl_divergence", "hellinger"])
def test_distances_that_scipy_lacks(metric):
    """CuPy has two more metrics, of pairs and of two vectors."""
    a, b = draw(40, 4), draw(6, 4)
    a[1, 1] = b[2, 2] = 0
    x, y = a[:, None], b[None]
    with np.errstate(all="ignore"):
        entropy = np.where(x == 0, 0, np.where(y > 0, x * np.log(np.where(x > 0, x, 1) / np.where(y > 0, y, 1)), np.inf))
    expected = entropy.sum(axis=-1) if metric == "kl_divergence" else np.sqrt(
        ((np.sqrt(x) - np.sqrt(y)) ** 2).sum(axis=-1) / 2)
    near(distance.cdist(ad.asarray(a), ad.asarray(b), metric), expected)
    near(getattr(distance, metric)(ad.asarray(a[0]), ad.asarray(b[0])), expected[0, 0])


@pytest.mark.parametrize("m, n, columns", [(1, 1, 3), (2, 33, 1), (65, 31, 2), (130, 70, 5), (3, 200, 40), (0, 4, 2), (4, 3, 0)])
def test_blocks_of_points(m, n, columns):
    """Blocks and tiles that are full, or have one point, or none; and results that lie apart."""
    a, b = draw(m, columns), draw(n, columns)
    for metric in ("euclidean", "braycurtis", "minkowski"):
        more = {"p": 1.5} if metric == "minkowski" else {}
        with np.errstate(all="ignore"):
            expected, pairs = sd.cdist(a, b, metric, **more), sd.pdist(b, metric, **more)
        near(distance.cdist(ad.asarray(a), ad.asarray(b), metric, **more), expected)
        near(distance.pdist(ad.asarray(b), metric, **more), pairs)
        out, apart = ad.zeros((n, m)).T, ad.zeros(2 * len(pairs))[::2]
        near(distance.cdist(ad.asarray(a), ad.asarray(b), metric, out=out, **more), expected)
        near(distance.pdist(ad.asarray(b), metric, out=apart, **more), pairs)
        near(out, expected)


def test_square_of_distances():
    for n in (1, 2, 64, 65, 130):
        for kind in ("float64", "float32", "int16", "complex128", "bool"):
            x = (draw(n * (n - 1) // 2) * 100).astype(kind)
            expected = np.zeros((n, n), kind)
            expected[np.triu_indices(n, 1)] = x
            near(distance.squareform(ad.asarray(x)), expected + expected.T if kind != "bool" else expected | expected.T)
    near(distance.squareform(ad.asarray(np.arange(12.0))[::2]), sd.squareform(np.arange(0, 12.0, 2)))


@pytest.mark.parametrize("columns", [1024, 1025, 2050])
def test_points_of_many_coordinates(columns):
    """Coordinates are taken in pieces, between which the operation may be given up."""
    a, b = draw(3, columns), draw(35, columns)
    for metric, more in ("euclidean", {}), ("chebyshev", {}), ("braycurtis", {}), ("minkowski", {"p": 1.5}), ("hamming", {}):
        near(distance.cdist(ad.asarray(a), ad.asarray(b), metric, **more), sd.cdist(a, b, metric, **more))
        near(distance.pdist(ad.asarray(b), metric, **more), sd.pdist(b, metric, **more))
    for p in (2, 1.5):
        far, place = spatial.KDTree(ad.asarray(b)).query(ad.asarray(a), 3, p=p)
        expected = scipy.spatial.KDTree(b).query(a, 3, p=p)
        near(far, expected[0])
        near(place, expected[1])


def test_shapes_of_distances():
    a, b = draw(7, 4), draw(6, 4)
    near(distance.squareform(distance.pdist(ad.asarray(a))), sd.squareform(sd.pdist(a)))
    near(distance.squareform(ad.asarray(sd.squareform(sd.pdist(a)))), sd.pdist(a))
    for m in (1, 2, 3, 8, 9, 17, 40):  # parts of the pairs are of one point and of several
        near(distance.pdist(ad.asarray(draw(m, 3))), sd.pdist(draw(m, 3)))
        near(distance.pdist(ad.asarray(draw(m, 70)), "cosine"), sd.pdist(draw(m, 70), "cosine"))
    for wrong in (0, -1):
        with pytest.raises(ValueError, match="p must be greater than 0"):
            distance.cdist(ad.asarray(a), ad.asarray(b), "minkowski", p=wrong)
    near(spatial.distance_matrix(ad.asarray(a), ad.asarray(b), p=1), scipy.spatial.distance_matrix(a, b, p=1))
    out = ad.empty((7, 6))
    assert distance.cdist(ad.asarray(a), ad.asarray(b), out=out) is out
    near(out, sd.cdist(a, b))
    for wrong in (lambda m, x: m.cdist(x(3), x((2, 3))), lambda m, x: m.cdist(x((2, 3)), x((2, 2))),
                  lambda m, x: m.cdist(x((2, 3)), x((2, 3)), "no such"), lambda m, x: m.squareform(x(4)),
                  lambda m, x: m.squareform(x((2, 3)))):
        for m, x in ((sd, np.ones), (distance, ad.ones)):
            with pytest.raises(ValueError):
                wrong(m, x)


def test_neighbours(monkeypatch):
    from arrayd.scipy.spatial import _neighbours
    monkeypatch.setattr(_neighbours, "_PAIRS", 400)
    data, x = draw(60, 3), draw(10, 3)
    for box in (None, 1.0):
        ours, theirs = spatial.KDTree(ad.asarray(data), boxsize=box), scipy.spatial.KDTree(data, boxsize=box)
        for p in (1, 2, 3, np.inf):
            for k in (1, 4, [1, 3], 70):
                near(ours.query(ad.asarray(x), k, p=p), theirs.query(x, k, p=p))
            near(ours.query(ad.asarray(x[0]), 5, p=p, distance_upper_bound=0.2),
                 theirs.query(x[0], 5, p=p, distance_upper_bound=0.2))
        for r in (0.3, np.linspace(0.1, 0.5, 10)):
            assert [one.get().tolist() for one in ours.query_ball_point(ad.asarray(x), r)] == [
                sorted(one) for one in theirs.query_ball_point(x, r)]
        assert [one.get().tolist() for one in ours.query_ball_tree(ours, 0.3)] == [
            sorted(one) for one in theirs.query_ball_tree(theirs, 0.3)]
        assert ours.query_ball_point(ad.asarray(x[0]), 0.3).get().tolist() == sorted(theirs.query_ball_point(x[0], 0.3))
        assert ours.query_ball_point(ad.asarray(x[None]), 0.3).shape == (1, 10)
        assert ours.query_pairs(0.2) == theirs.query_pairs(0.2)
        assert ours.count_neighbors(ours, 0.3) == theirs.count_neighbors(theirs, 0.3)
    assert all(part.flags.c_contiguous for part in ours.query(ad.asarray(x), [1, 3]))
    for wrong in (lambda m, t: t.query(m.ones((2, 2))), lambda m, t: t.query(m.ones((2, 3)) * np.nan),
                  lambda m, t: t.query(m.ones((2, 3)), 0)):
        for m, t in ((np, theirs), (ad, ours)):
            with pytest.raises(ValueError):
                wrong(m, t)


@pytest.mark.parametrize("k", (1, 3, 16, 17, 30, 40))
def test_nearest_of_equal_distances_are_the_first(k):
    """A grid whose points are stored twice; few neighbours are looked for one by one, many by putting all in order."""
    points = np.tile(np.stack(np.meshgrid(np.arange(4.0), np.arange(4.0)), axis=-1).reshape(-1, 2), (2, 1))
    distances = np.sqrt(((points[:, None] - points) ** 2).sum(axis=-1))
    order = np.argsort(distances, axis=-1, kind="stable")[:, :k]
    near, found = (part.get().reshape(32, -1) for part in spatial.KDTree(ad.asarray(points)).query(ad.asarray(points), k))
    np.testing.assert_array_equal(found[:, :32], order)
    np.testing.assert_allclose(near[:, :32], np.take_along_axis(distances, order, axis=-1), rtol=1e-15)
    assert (found[:, 32:] == 32).all() and np.isinf(near[:, 32:]).all()


@pytest.mark.parametrize("columns", (1, 2, 3, 30))
@pytest.mark.parametrize("points", (1, 31, 33, 1500, 40_000))
def test_queries_of_many_points(points, columns):
    """The server puts many points in order first, and looks at all of few."""
    data, x = np.round(draw(points, columns), 2), draw(300, columns)
    data[-1] = data[0]
    ours, theirs = spatial.KDTree(ad.asarray(data)), scipy.spatial.KDTree(data)
    for p, k in ((1, 3), (2, 1), (2, 16), (2.5, 2), (np.inf, 2)):
        if points == 40_000 and columns == 30 and p != 2:
            continue  # SciPy's takes long
        distances = ours.query(ad.asarray(x), k, p=p)[0]
        near(distances, theirs.query(x, k, p=p)[0])
    nearest = ours.query(ad.asarray(x))[1].get()
    np.testing.assert_allclose(((data[nearest] - x) ** 2).sum(axis=-1), theirs.query(x)[0] ** 2, rtol=1e-12)
    first = {tuple(row): place for place, row in reversed(list(enumerate(data.tolist())))}
    assert nearest.tolist() == [first[tuple(row)] for row in data[nearest].tolist()]


def test_queries_with_a_bound():
    data, x = draw(2000, 3), draw(100, 3)
    ours, theirs = spatial.KDTree(ad.asarray(data)), scipy.spatial.KDTree(data)
    for bound in (0.05, 0):
        for p in (1, 2, 3, np.inf):
            for mine, other in zip(ours.query(ad.asarray(x), 4, p=p, distance_upper_bound=bound),
                                   theirs.query(x, 4, p=p, distance_upper_bound=bound)):
                near(mine, other)
    assert (ours.query(ad.asarray(x), distance_upper_bound=-1)[1] == 2000).all()


def test_statistics():
    a, b = draw(6, 5), draw(6, 5) + 0.1
    for axis in (0, 1, None):
        near(stats.zscore(ad.asarray(a), axis=axis, ddof=1), scipy.stats.zscore(a, axis=axis, ddof=1))
        near(stats.zmap(ad.asarray(a), ad.asarray(b), axis=axis), scipy.stats.zmap(a, b, axis=axis))
        near(stats.trim_mean(ad.asarray(a), 0.2, axis=axis), scipy.stats.trim_mean(a, 0.2, axis=axis))
    for axis in (0, 1):
        for base in (None, 2):
            near(stats.entropy(ad.asarray(a), axis=axis, base=base), scipy.stats.entropy(a, axis=axis, base=base))
            near(stats.entropy(ad.asarray(a), ad.asarray(b), base, axis), scipy.stats.entropy(a, b, base, axis))
    c = a.copy()
    c[0, 0], c[:, 1] = np.nan, 3
    for policy in ("propagate", "omit"):
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a constant column
            near(stats.zscore(ad.asarray(c), nan_policy=policy), scipy.stats.zscore(c, nan_policy=policy))
    for lmb in (0, 0.5, -1.5, 2):
        near(stats.boxcox_llf(lmb, ad.asarray(b)), scipy.stats.boxcox_llf(lmb, b))
    for lmb, kind in ((6, "float16"), (80, "float32"), (-500, "float64")):  # powers are beyond the type, logarithms are not
        large = (1 + 9 * np.random.default_rng(5).random((6, 4))).astype(kind)
        got = stats.boxcox_llf(lmb, ad.asarray(large)).get()
        assert got.dtype == kind
        np.testing.assert_allclose(got, scipy.stats.boxcox_llf(lmb, large.astype("float64")),
                                   rtol={"float16": 2e-3, "float32": 1e-4, "float64": 1e-9}[kind])
    turned = np.linspace(1, 3, 12).reshape(4, 3) * np.exp(0.7j)
    for lmb in (4.0, -3.0, 0.5):
        near(stats.boxcox_llf(lmb, ad.asarray(turned)), scipy.stats.boxcox_llf(lmb, turned))
    for kind in ("int32", "float16", "float32", "complex64"):
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = scipy.stats.boxcox_llf(3, np.zeros(0, kind))
        assert stats.boxcox_llf(3, ad.zeros(0, kind)).dtype == expected.dtype
    with pytest.raises(ValueError):
        stats.zscore(ad.asarray(c), nan_policy="raise")
    with pytest.raises(ValueError):
        stats.trim_mean(ad.asarray(a), 0.9)
