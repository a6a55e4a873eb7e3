"""Filters of images against scipy.ndimage."""
import itertools

import numpy as np
import pytest

import arrayd as ad
from oracle import fetch, outcome, random, same_kind, seed

from scipy.interpolate import BSpline

scipy_ndimage = pytest.importorskip("scipy.ndimage")
from arrayd.scipy import ndimage  # noqa: E402

MODES = ("reflect", "constant", "nearest", "mirror", "wrap", "grid-mirror", "grid-constant", "grid-wrap")
TYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "float32", "float64")
SHAPES = ((40,), (1,), (7, 33), (3, 1), (5, 4, 6), (2, 3, 2, 3))


def noise(dtype, shape, *names):
    return random(seed("ndimage", dtype, shape, *names), np.dtype(dtype), shape, "UNIT" if np.dtype(dtype).kind in "fc"
                  else "SMALL")


def compare(name, a, *args, eps=None, **kwargs):
    """A function of both packages: values, types, or the class of the exception."""
    expected, wrong = outcome(lambda: call_scipy(name, a, *args, **kwargs))
    actual, error = outcome(lambda: fetch(getattr(ndimage, name)(ad.asarray(a), *args, **kwargs)))
    what = f"{name} of {a.dtype}{a.shape} {args} {kwargs}"
    if wrong is not None:
        assert error is not None and same_kind(wrong, error), f"{what}: scipy {wrong!r}, arrayd {error!r}"
        return
    if error is not None:
        raise AssertionError(f"{what}: arrayd raises {error!r}") from error
    close(expected, actual, what, eps)


SPLINES = ("map_coordinates", "affine_transform", "shift", "zoom", "rotate")


def call_scipy(name, a, *args, **kwargs):
    """SciPy's function. Where it makes coefficients of reflected elements, they are solve_spline's instead: before 1.18
    SciPy's are off, by 1e-4 for four elements (its pull request 24615)."""
    mode, filters = kwargs.get("mode"), name.startswith("spline_filter")
    order = args[0] if filters and args else kwargs.get("order", 3)
    if order < 2 or mode not in ("reflect", "grid-mirror") and not (filters and mode == "nearest"):
        return getattr(scipy_ndimage, name)(a, *args, **kwargs)
    if filters:
        return solve_spline(a, order, args[1:] or range(a.ndim))
    if name in SPLINES and kwargs.get("prefilter", True):
        a = solve_spline(a, order, kwargs.get("axes", range(a.ndim)))
        kwargs = {**kwargs, "prefilter": False}
    return getattr(scipy_ndimage, name)(a, *args, **kwargs)


def solve_spline(a, order, axes):
    """The coefficients of splines through a's elements, which are reflected at the edges: by dense matrices."""
    reach = order // 2
    weights = BSpline.basis_element(np.arange(order + 2) - (order + 1) / 2, False)(np.arange(-reach, reach + 1))
    for axis in axes:
        n = a.shape[axis]
        places, matrix = np.pad(np.arange(n), reach, "symmetric"), np.zeros((n, n))
        for row, places_of_row in enumerate(np.lib.stride_tricks.sliding_window_view(places, 2 * reach + 1)):
            np.add.at(matrix[row], places_of_row, weights)
        a = np.moveaxis(np.tensordot(np.linalg.inv(matrix), a, (1, axis)), 0, axis)
    return a


def close(expected, actual, what, eps=None):
    if isinstance(expected, (tuple, list)):
        assert len(expected) == len(actual), what
        for one, other in zip(expected, actual):
            close(one, other, what, eps)
        return
    expected, actual = np.asarray(expected), np.asarray(actual)
    assert expected.dtype == actual.dtype and expected.shape == actual.shape, (
        f"{what}: {actual.dtype}{actual.shape}, not {expected.dtype}{expected.shape}")
    if expected.dtype.kind in "biu":
        np.testing.assert_array_equal(actual, expected, err_msg=what)
    else:
        eps = eps or (1e-5 if expected.dtype in (np.float32, np.complex64) else 1e-11)
        size = np.abs(expected[np.isfinite(expected)]).max(initial=1e-3)
        np.testing.assert_allclose(actual, expected, rtol=eps, atol=eps * size, err_msg=what)


# ---- sums ----

@pytest.mark.parametrize("dtype", TYPES)
def test_correlate1d(dtype):
    for shape, mode, weights in itertools.product(SHAPES, MODES, ([1, 2, -1], [0.25, 0.5, 3.0, -2], [2.0])):
        a = noise(dtype, shape)
        for axis, origin in itertools.product(range(a.ndim), (0, -1)):
            compare("correlate1d", a, weights, axis, mode=mode, cval=1.5, origin=origin, output=np.float64,
                    eps=1e-5 if dtype == "float32" else None)


@pytest.mark.parametrize("dtype", ("float32", "float64", "int32", "complex64", "complex128"))
def test_correlate(dtype):
    for shape, mode, name in itertools.product(SHAPES, MODES, ("correlate", "convolve")):
        a = noise(dtype, shape)
        for size, origin in ((3, 0), (2, 0), (4, -1), (5, 2)):
            weights = noise("float64", (size,) * a.ndim, "weights")
            compare(name, a, weights, mode=mode, cval=0.5, origin=origin, output=complex if a.dtype.kind == "c" else float,
                    eps=1e-4 if dtype in ("float32", "complex64") else None)


def test_complex_weights():
    weights = noise("complex128", (3, 3), "weights")
    for dtype in ("float64", "complex128", "int16"):
        a = noise(dtype, (6, 7))
        for name, mode in itertools.product(("correlate", "convolve"), ("reflect", "constant")):
            compare(name, a, weights, mode=mode)
            compare(name + "1d", a, weights[0], mode=mode)


@pytest.mark.parametrize("name", ["correlate", "convolve"])
def test_weights_without_elements(name):
    for a in noise("float64", (3, 4)), noise("uint8", (5,)), noise("complex64", (2, 3)):
        for shape in (0, *(2,) * a.ndim), (2,) * (a.ndim - 1) + (0,), (0, 0, *(3,) * a.ndim), (0,) * 2:
            compare(name, a, np.ones(shape))
            compare(name, a, np.ones(shape), axes=0)


def test_axes():
    a = noise("float64", (5, 6, 7))
    for axes in (0, 1, (0, 2), (2, 0), (1, 2)):
        n = 1 if isinstance(axes, int) else len(axes)
        weights = noise("float64", (3, 4)[:n], "weights")
        compare("correlate", a, weights, axes=axes)
        compare("convolve", a, weights, axes=axes, origin=0)
        compare("gaussian_filter", a, [1.5, 0.5][:n], axes=axes)
        compare("uniform_filter", a, [3, 4][:n], axes=axes)
        compare("median_filter", a, (3, 2)[:n], axes=axes)
        compare("minimum_filter", a, footprint=noise("bool", (3, 4)[:n], "footprint") | True, axes=axes)
        compare("laplace", a, axes=axes)
        compare("gaussian_laplace", a, 1.2, axes=axes)


@pytest.mark.parametrize("dtype", TYPES)
def test_smoothing(dtype):
    for shape, mode in itertools.product(SHAPES, MODES[:5]):
        a = noise(dtype, shape)
        for sigma in (0.5, 2, 9):
            compare("gaussian_filter", a, sigma, mode=mode, cval=0.3, output=np.float64, eps=1e-5)
        for size in (1, 2, 5, 40):
            compare("uniform_filter", a, size, mode=mode, cval=1, eps=1e-5 if dtype == "float32" else None)
        for name in ("sobel", "prewitt", "laplace") if dtype not in ("bool", "uint8", "uint16", "uint32") else ():
            compare(name, a, mode=mode, eps=1e-4 if dtype == "float32" else None)


def test_derivatives():
    a = noise("float64", (9, 8))
    for order in (0, 1, 2, 3, (1, 2)):
        compare("gaussian_filter", a, 1.3, order)
    for sigma in (1, (0.7, 1.5)):
        compare("gaussian_laplace", a, sigma)
        compare("gaussian_gradient_magnitude", a, sigma)
    compare("gaussian_filter", a, 1, radius=3)
    compare("gaussian_filter1d", a, 1, truncate=2.5)
    compare("gaussian_filter", a, (1, 0))
    compare("gaussian_filter", a + 1j * a, 1)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
def test_short_integers(dtype):
    """Sums of small whole numbers and of others, and means next to whole numbers: exactly SciPy's."""
    info, rng = np.iinfo(dtype), seed("short", dtype)
    for a in (rng.integers(info.min, info.max, (40, 61), dtype, endpoint=True), np.full((9, 700), info.max, dtype)):
        for cval, output in itertools.product((0, 3, 1.5, 1e9), (None, np.float64)):
            options = {"mode": "constant", "cval": cval, "output": output}
            compare("sobel", a, 1, **options)
            for weights in ([1, 2, 1], [3000, -1], [0.5, 0.25], [1 << 20, 1]):
                compare("correlate1d", a, weights, **options)
            for size in (2, 3, 7, 100, 300):
                compare("uniform_filter1d", a, size, **options)


def test_long_windows():
    """Windows take several passes over a tile, or are longer than the array."""
    for shape, axis in (((5000,), 0), ((300, 40), 0), ((40, 300), 1), ((300, 3), 0)):
        a = noise("float64", shape)
        for size, mode in itertools.product((65, 400, 2500), ("reflect", "wrap", "constant")):
            weights = noise("float64", (size,), "weights")
            compare("correlate1d", a, weights, axis, mode=mode)
            compare("uniform_filter1d", a, size, axis, mode=mode, eps=1e-9)
            compare("maximum_filter1d", a, size, axis, mode=mode)
            single = a.astype("float32")
            compare("correlate1d", single, weights, axis, mode=mode, eps=1e-4)
            compare("minimum_filter1d", single, size, axis, mode=mode)


# ---- ranks ----

@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64", "complex64", "complex128"])
def test_lines_of_all_lengths(dtype):
    """Lines along each axis: shorter and longer than what is filtered at once, of numbers that memory can be read several
    of at a time and of others, from places that it can and from others."""
    for shape in ((3, 70, 36), (2, 130, 5), (7, 512), (5, 2100), (1, 4200), (70, 4)):
        x = noise(dtype, shape)
        for origin in (-4, -3, 1, 2, 3):  # the first element of a window is at any place beside where several are read at once
            compare("correlate1d", x, np.arange(9.0) - 3, origin=origin, eps=1e-5 if dtype in ("float32", "complex64") else None)
        for axis, size, mode in itertools.product(range(-2, 0), (1, 8, 17), ("reflect", "constant", "wrap")):
            weights = (np.arange(size) % 4 - 1).astype(x.real.dtype if x.dtype.kind in "fc" else float)
            compare("correlate1d", x, weights, axis, mode=mode, cval=1, eps=1e-5 if dtype in ("float32", "complex64") else None)
            if x.dtype.kind != "c":
                compare("minimum_filter1d", x, size, axis, mode=mode, cval=1)
    whole = ad.asarray(noise(dtype, (50, 41)))
    for shape, axis in itertools.product(((51, 40), (6, 340)), (0, 1)):
        part = whole.reshape(-1)[1:2041].reshape(shape)  # begins where no two numbers can be read at once
        expected = scipy_ndimage.convolve1d(part.get(), [1.0, 2, 4], axis)
        np.testing.assert_allclose(ndimage.convolve1d(part, [1.0, 2, 4], axis).get(), expected, rtol=1e-4)


@pytest.mark.parametrize("dtype", TYPES)
def test_limits(dtype):
    for shape, mode, name in itertools.product(SHAPES, MODES, ("minimum_filter", "maximum_filter")):
        a = noise(dtype, shape)
        for size, origin in ((1, 0), (2, -1), (3, 1), (6, 0)):
            compare(name, a, size, mode=mode, cval=1, origin=origin)
        footprint = seed("footprint", shape).random((3,) * a.ndim) < 0.6
        footprint[(1,) * a.ndim] = True
        compare(name, a, footprint=footprint, mode=mode, cval=1)


@pytest.mark.parametrize("dtype", ("int8", "uint8", "int16", "int32"))
def test_values_beyond_the_edges_that_no_element_has(dtype):
    a = noise(dtype, (7, 9))
    for name, cval in itertools.product(("minimum_filter1d", "maximum_filter1d"), (-1, -1.0, 300.75, -300, 1.5)):
        for mode in "constant", "grid-constant", "nearest":
            compare(name, a, 3, mode=mode, cval=cval)
            compare(name, a, 4, 0, mode=mode, cval=cval, output=np.float64)


@pytest.mark.parametrize("dtype", TYPES)
def test_ranks(dtype):
    for shape, mode in itertools.product(SHAPES, ("reflect", "constant", "mirror", "nearest", "wrap")):
        a = noise(dtype, shape)
        if a.ndim == 4 and mode != "reflect" or a.size == 1 and mode == "mirror":
            continue # SciPy gives 0 for a single element
        for size in (2, 3, 5):
            compare("median_filter", a, size, mode=mode, cval=1)
            compare("percentile_filter", a, 30, size, mode=mode, cval=1)
        compare("rank_filter", a, 1, 3, mode=mode, cval=1)
        compare("rank_filter", a, -2, 3, mode=mode, cval=1)
        footprint = seed("footprint", shape).random((4,) * a.ndim) < 0.7
        footprint[(2,) * a.ndim] = True
        compare("median_filter", a, footprint=footprint, mode=mode, cval=1)


def test_large_windows():
    for dtype in ("uint8", "int16", "float32", "int64"):
        a = noise(dtype, (30, 29))
        for size in (7, 8, 11, 20):
            compare("median_filter", a, size)
            compare("percentile_filter", a, 12, size, mode="constant")


@pytest.mark.parametrize("dtype", ("uint8", "int32", "float32", "float64"))
def test_grey_morphology(dtype):
    names = ("grey_erosion", "grey_dilation", "grey_opening", "grey_closing", "morphological_gradient",
             "morphological_laplace", "white_tophat", "black_tophat")
    a = noise(dtype, (9, 11)) + np.dtype(dtype).type(9)
    footprint = np.array([[0, 1, 1], [1, 1, 0]], bool)
    heights = seed("heights").integers(0, 3, (3, 2))
    for name, mode in itertools.product(names, MODES[:5]):
        compare(name, a, 3, mode=mode)
        compare(name, a, (2, 3), mode=mode)
        compare(name, a, footprint=footprint, mode=mode)
        if dtype != "uint8" or mode != "constant": # SciPy computes in uint8, and then there is no negative height
            compare(name, a, structure=heights, mode=mode, eps=1e-5)


@pytest.mark.parametrize("name", ("morphological_gradient", "morphological_laplace", "white_tophat", "black_tophat"))
def test_types_of_what_two_filters_make(name):
    for dtype, output in itertools.product(("int32", "float32", "float64"), (None, "float32", "float64")):
        a = noise(dtype, (6, 8), name)
        compare(name, a, 3, output=output)
        kind = output or dtype
        if np.can_cast(dtype, kind, "same_kind"):
            expected, out = np.zeros((6, 8), kind), ad.zeros((6, 8), kind)
            getattr(scipy_ndimage, name)(a, 3, output=expected)
            assert getattr(ndimage, name)(ad.asarray(a), 3, output=out) is out
            close(expected, fetch(out), f"{name} of {dtype} into {kind}", 1e-6)


# ---- binary ----

def test_binary_morphology():
    rng = seed("binary")
    structures = {1: (None, [1, 0, 1], [1, 1]), 2: (None, np.ones((3, 3)), [[0, 1], [1, 1]], [[1, 0, 0], [0, 1, 1], [0, 0, 0]]),
                  3: (None, np.ones((3, 3, 3)))}
    names = ("binary_erosion", "binary_dilation", "binary_opening", "binary_closing")
    for shape in ((30,), (12, 15), (6, 7, 5)):
        a = rng.random(shape) < 0.6
        mask = rng.random(shape) < 0.7
        for name, structure, border in itertools.product(names, structures[a.ndim], (0, 1)):
            for iterations, mask_or_not in itertools.product((1, 2, 3, -1), (None, mask)):
                if iterations < 0 and isinstance(structure, list) and structure == [1, 0, 1]:
                    continue # SciPy may never end
                compare(name, a, structure, iterations, mask=mask_or_not, border_value=border)
        for structure in structures[a.ndim]:
            if isinstance(structure, list) and structure == [1, 0, 1]:
                continue
            compare("binary_fill_holes", a, structure)
            compare("binary_propagation", a & (rng.random(shape) < 0.1), structure, mask)
            compare("binary_hit_or_miss", a, structure)
    compare("binary_dilation", a[0].astype(int) * 7, origin=(1, -1), structure=np.ones((3, 4)))
    for rank, connectivity in itertools.product(range(5), range(6)):
        expected = scipy_ndimage.generate_binary_structure(rank, connectivity)
        np.testing.assert_array_equal(ndimage.generate_binary_structure(rank, connectivity).get(), expected)
        if rank:
            close(scipy_ndimage.iterate_structure(expected, 3, 0), fetch(ndimage.iterate_structure(
                ad.asarray(expected), 3, 0)), "iterate_structure")


def test_distances():
    rng = seed("distance")
    for shape, part in itertools.product(((20,), (13, 17), (6, 9, 7), (1, 5)), (0.1, 0.5, 0.95)):
        a = rng.random(shape) < part
        a.flat[0] = False
        for sampling in (None, 2.5, [0.5, 2, 1.5][:a.ndim]):
            compare("distance_transform_edt", a, sampling)
            far, places = fetch(ndimage.distance_transform_edt(ad.asarray(a), sampling, return_indices=True))
            assert places.dtype == np.int32 and not a[tuple(places)].any()
            steps = np.broadcast_to(1.0 if sampling is None else sampling, (a.ndim,))
            apart = (places - np.indices(shape)) * steps.reshape((-1,) + (1,) * a.ndim)
            np.testing.assert_allclose(np.sqrt((apart**2).sum(0)), far, rtol=1e-13)
            for kind in (np.int16, np.uint16, np.uint32, np.int64, np.uint64):
                given = ad.zeros(places.shape, kind)
                assert ndimage.distance_transform_edt(ad.asarray(a), sampling, False, True, indices=given) is None
                np.testing.assert_array_equal(given.get(), places)
    for kind, size in ((np.int8, 9), (np.int16, 40_000), (np.float64, 9)):  # the first for CuPy refuses it
        with pytest.raises(RuntimeError, match="indices array must be int32 or"):
            ndimage.distance_transform_edt(ad.zeros(size), None, False, True, indices=ad.zeros((1, size), kind))


# ---- interpolation ----

@pytest.mark.parametrize("order", range(6))
def test_coordinates(order):
    for shape, mode, dtype in itertools.product(((12,), (7, 9), (5, 4, 6)), MODES, ("float64", "float32", "uint8")):
        a = noise(dtype, shape)
        where = seed("coordinates", shape).uniform(-1.7, 1.7, (len(shape), 40)) * np.array(shape).reshape(-1, 1)
        if mode == "wrap" or order == 0:
            where = where[:, (np.abs(where - np.round(where) - 0.5) > 1e-3).all(0)]
        compare("map_coordinates", a, where, order=order, mode=mode, cval=0.7, eps=2e-4 if dtype == "float32" else 1e-9,
                output=np.float64)
        compare("map_coordinates", a, where, order=order, mode=mode, prefilter=False, output=np.float64,
                eps=2e-4 if dtype == "float32" else 1e-9)


@pytest.mark.parametrize("order", range(6))
def test_transforms(order):
    for mode in MODES:
        a = noise("float64", (8, 11))
        more = {"order": order, "mode": mode, "cval": 0.4, "eps": 1e-9}
        compare("affine_transform", a, [[0.9, 0.21], [-0.3, 1.17]], [0.31, -0.77], **more)
        compare("affine_transform", a, [0.71, 1.37], 0.1, **more)
        compare("affine_transform", a, [[1.0, 0.13, 2.29], [0, 0.83, 0.11], [0, 0, 1]], output_shape=(5, 13), **more)
        compare("shift", a, (1.3, -2.4), **more)
        compare("zoom", a, (1.7, 0.6), **more)
        compare("zoom", a, 2, grid_mode=True, **more)
        compare("rotate", a, 33, **more)
        compare("rotate", noise("float64", (5, 6, 4)), 20, axes=(0, 2), **more)
        compare("shift", noise("complex128", (6, 5)), 0.4, **more)
    for dtype in ("uint8", "int16", "float32"):
        compare("zoom", noise(dtype, (6, 7)), 1.9, order=order, mode="nearest", eps=1e-4)


def blend(a, places, cval):
    """An image's values at places (rows, columns) between four elements each, of cval beyond the image."""
    low = np.floor(places).astype(int)
    weight, total = places - low, 0
    for step in itertools.product((0, 1), (0, 1)):
        at = low + np.reshape(step, (2, *[1] * (places.ndim - 1)))
        inside = ((at >= 0) & (at < np.reshape(a.shape, (2, *[1] * (places.ndim - 1))))).all(0)
        value = np.where(inside, a[tuple(np.clip(at, 0, np.reshape(a.shape, (2, *[1] * (places.ndim - 1))) - 1))], cval)
        total = total + value * np.prod([w if one else 1 - w for w, one in zip(weight, step)], axis=0)
    return total


def test_edges_as_opencv_has_them():
    a, rng = noise("float64", (8, 11)), seed("opencv")
    x = ad.asarray(a)
    where = rng.uniform(-3, 13, (2, 60))
    got = ndimage.map_coordinates(x, ad.asarray(where), order=1, mode="opencv", cval=0.7).get()
    np.testing.assert_allclose(got, blend(a, where, 0.7), rtol=1e-9)
    rows, columns = np.indices(a.shape)
    matrix = np.array([[0.9, 0.2, 1.5], [-0.3, 1.1, -0.4]])  # of columns and rows, from the image to the result
    back = np.linalg.inv(np.vstack([matrix, [0, 0, 1]])) @ [columns.ravel(), rows.ravel(), np.ones(a.size)]
    got = ndimage.affine_transform(x, ad.asarray(matrix), order=1, mode="opencv").get()
    np.testing.assert_allclose(got.ravel(), blend(a, back[1::-1], 0.0), rtol=1e-9, atol=1e-12)
    got = ndimage.shift(x, (1.3, -2.4), order=1, mode="opencv", cval=2).get()
    np.testing.assert_allclose(got, blend(a, np.stack([rows - 1.3, columns + 2.4]), 2), rtol=1e-9)
    got = ndimage.zoom(x, (2, 0.5), order=1, mode="opencv").get()
    sides = [np.clip((np.arange(m) + 0.5) * n / m - 0.5, 0, n - 1) for n, m in zip(a.shape, got.shape)]
    np.testing.assert_allclose(got, blend(a, np.stack(np.meshgrid(*sides, indexing="ij")), 0), rtol=1e-9)
    np.testing.assert_allclose(ndimage.rotate(x, 180, order=1, mode="opencv").get(), a[::-1, ::-1], rtol=1e-9)
    with pytest.raises(RuntimeError, match="two dimensions or more"):
        ndimage.affine_transform(ad.ones(3), ad.ones(1), mode="opencv")


@pytest.mark.parametrize("shape", [(9, 7), (4, 5, 6)])
def test_texture_memory(shape):
    n, a = len(shape), noise("float32", shape)
    matrix = np.eye(n + 1, dtype="float32")
    matrix[:n] += seed("texture", shape).uniform(-0.3, 0.3, (n, n + 1)).astype("float32")
    for order, (mode, edge) in itertools.product((0, 1, 3), (("constant", "grid-constant"), ("nearest", "nearest"))):
        out = ad.empty(shape, "float32")
        got = ndimage.affine_transform(ad.asarray(a), ad.asarray(matrix), output=out, order=order, mode=mode, cval=1.5,
                                       texture_memory=True)
        want = scipy_ndimage.affine_transform(a, matrix[:n], order=min(order, 1), mode=edge, cval=1.5)
        assert got is out
        np.testing.assert_allclose(got.get(), want, rtol=1e-4, atol=1e-5)
    larger = ndimage.affine_transform(ad.asarray(a), ad.asarray(matrix), output_shape=(9,) * n, texture_memory=True)
    assert larger.shape == (9,) * n and larger.dtype == np.float32
    assert ndimage.affine_transform(ad.asarray(a), np.eye(n), float64_coords=True).shape == shape


@pytest.mark.parametrize("shape, dtype, side, more, message", [
    ((8,), "float32", 2, {}, "2-d and 3-d arrays, not for 1-d"), ((8,) * 4, "float32", 5, {}, "not for 4-d"),
    ((8, 8), "float64", 3, {}, "not for float64"), ((8, 8), "float32", 2, {}, r"shape \(3, 3\), not \(2, 2\)"),
    ((8, 8), "float32", 3, {"output": "wrong"}, "not 'wrong'"), ((8, 8), "float32", 3, {"mode": "wrap"}, "not 'wrap'"),
    ((8, 8), "float32", 3, {"output": np.float64}, "output must be None"),
    ((8, 8), "float32", 3, {"output": (7, 7), "output_shape": (8, 8)}, r"of shape \(7, 7\)")])
def test_what_texture_memory_is_not_for(shape, dtype, side, more, message):
    if isinstance(more.get("output"), tuple):
        more = {**more, "output": ad.empty(more["output"], "float32")}
    with pytest.raises(ValueError, match=message):
        ndimage.affine_transform(ad.ones(shape, dtype), ad.eye(side, dtype="float32"), texture_memory=True, **more)


@pytest.mark.parametrize("order", range(6))
def test_spline_filter(order):
    for shape, (k, mode) in itertools.product(((1,), (2,), (3,), (300,), (7, 80), (3, 4, 5)), enumerate(MODES)):
        a = noise("float64", shape)
        compare("spline_filter1d", a, order, k % a.ndim, mode=mode, eps=1e-10)
    for shape in (7, 80), (3, 4, 5):
        compare("spline_filter", noise("float64", shape), order, mode=MODES[order % len(MODES)], eps=1e-9)
    compare("spline_filter", noise("complex128", (5, 6)), order)


# ---- measurements ----

def test_label():
    rng = seed("label")
    for shape, part in itertools.product(((50,), (1,), (23, 31), (7, 9, 8), (0, 3), (4, 3, 2, 5)), (0.2, 0.5, 0.8)):
        a = (rng.random(shape) < part) * 3
        for connectivity in range(1, len(shape) + 1):
            compare("label", a, scipy_ndimage.generate_binary_structure(len(shape), connectivity))
        compare("label", a)
    big = rng.random((700, 600)) < 0.55
    for structure in (np.ones((3, 3)), [[0, 1, 0], [0, 1, 0], [0, 1, 0]], np.eye(3), [[0, 0, 0], [1, 1, 1], [0, 0, 0]],
                      [[1, 0, 1], [1, 1, 1], [1, 0, 1]], None):
        compare("label", big, structure)
        compare("label", big.reshape(-1, 5), structure)
        compare("label", big.T, structure)


@pytest.mark.parametrize("name", ("sum", "sum_labels", "mean", "variance", "standard_deviation", "minimum", "maximum", "median",
                                  "extrema", "minimum_position", "maximum_position", "center_of_mass"))
def test_statistics(name):
    rng = seed("statistics")
    for dtype in ("int32", "float64", "uint8"):
        a = rng.permutation(12 * 11 * 3).reshape(12, 33)[:, :20].astype(dtype) if dtype != "uint8" else rng.integers(
            0, 200, (12, 20)).astype(dtype)
        labels = rng.integers(0, 6, a.shape)
        for given, index in ((None, None), (labels, None), (labels, 2), (labels, [1, 3, 5]), (labels, np.array([4, 0, 2])),
                             (labels - 3, [-2, 1, 1]), (labels.astype("int8"), [5, 0, 2]), (labels << 40, [0, 1 << 40]),
                             (labels * 1.5, [1.5, 3.0])):
            if dtype == "uint8" and ("position" in name or name == "extrema"):
                continue # of equal ones any may be named
            expected = getattr(scipy_ndimage, name)(a, given, index)
            actual = fetch(getattr(ndimage, name)(ad.asarray(a), None if given is None else ad.asarray(given), index))
            if isinstance(expected, (list, tuple)):
                for one, other in zip(expected, actual):
                    np.testing.assert_allclose(np.asarray(other, float), np.asarray(one, float), rtol=1e-10)
            else:
                np.testing.assert_allclose(actual, expected, rtol=1e-10)


def test_objects():
    rng = seed("objects")
    for shape in ((30,), (12, 14), (5, 6, 7)):
        labels = rng.integers(0, 7, shape) * (rng.random(shape) < 0.3)
        labels[labels == 4] = 0
        assert ndimage.find_objects(ad.asarray(labels)) == scipy_ndimage.find_objects(labels)
        assert ndimage.find_objects(ad.asarray(labels), 9) == scipy_ndimage.find_objects(labels, 9)
        expected = scipy_ndimage.value_indices(labels, ignore_value=0)
        actual = ndimage.value_indices(ad.asarray(labels), ignore_value=0)
        assert sorted(expected) == sorted(actual)
        for value, places in expected.items():
            for one, other in zip(places, actual[value]):
                np.testing.assert_array_equal(other.get(), one)
        a = rng.random(shape)
        result = ndimage.labeled_comprehension(ad.asarray(a), ad.asarray(labels), [1, 2, 4], lambda v: v.sum(), float, -1)
        np.testing.assert_allclose(result.get(), scipy_ndimage.labeled_comprehension(a, labels, [1, 2, 4], np.sum, float, -1))
        counts = ndimage.histogram(ad.asarray(a), 0, 1, 5, ad.asarray(labels), [1, 3]).get()
        for row, one in zip(counts, scipy_ndimage.histogram(a, 0, 1, 5, labels, [1, 3])):
            np.testing.assert_array_equal(row, np.zeros(5) if one is None else one)


def test_fourier():
    for shape, dtype in itertools.product(((9,), (8, 7), (4, 5, 6)), ("float32", "float64", "complex64", "complex128")):
        a = noise(dtype, shape)
        for name, value in itertools.product(("fourier_gaussian", "fourier_uniform", "fourier_ellipsoid", "fourier_shift"),
                                             (2.5, 1)):
            compare(name, a, value, eps=1e-4 if dtype in ("float32", "complex64") else 1e-7)
            compare(name, a, value, n=2 * shape[-1] - 1, eps=1e-4 if dtype in ("float32", "complex64") else 1e-7)


# ---- outputs and errors ----

def test_outputs():
    a = noise("float64", (9, 10))
    for view in (a, a.T, a[::2, ::-1], np.broadcast_to(a[:1], (5, 10))):
        compare("gaussian_filter", view, 1)
        compare("median_filter", view, 3)
        compare("correlate", view, np.ones((2, 3)))
        compare("label", view > 0)
        compare("spline_filter", view)
    x = ad.asarray(a)
    out = ad.zeros((9, 20))[:, ::2]
    for name, args in (("gaussian_filter", (1,)), ("median_filter", (3,)), ("maximum_filter", (3,)), ("spline_filter", ()),
                       ("uniform_filter", (4,)), ("correlate", (np.ones((2, 2)),)), ("shift", (0.3,))):
        expected = getattr(scipy_ndimage, name)(a, *args)
        assert getattr(ndimage, name)(x, *args, output=out) is out
        np.testing.assert_allclose(out.get(), expected, rtol=1e-9, atol=1e-12)
        same = ad.asarray(a)
        getattr(ndimage, name)(same, *args, output=same)
        np.testing.assert_allclose(same.get(), expected, rtol=1e-9, atol=1e-12)
    for dtype in ("uint8", "float32", np.int16):
        compare("gaussian_filter", np.abs(a) * 50, 1, output=dtype)


def test_errors():
    a = noise("float64", (5, 6))
    z = a + 1j
    for name, args, kwargs in (
            ("correlate1d", ([],), {}), ("correlate1d", ([[1, 2]],), {}), ("correlate1d", ([1, 2],), {"origin": 5}),
            ("correlate1d", ([1],), {"mode": "no"}), ("correlate1d", ([1],), {"axis": 2}),
            ("correlate", (np.ones(3),), {}), ("correlate", (np.ones((0, 3)),), {}),
            ("correlate", (np.ones((3, 3)),), {"origin": 2}), ("median_filter", (), {}), ("median_filter", (0,), {}),
            ("rank_filter", (9, 3), {}), ("percentile_filter", (101, 3), {}), ("minimum_filter", (), {}),
            ("minimum_filter", (), {"footprint": np.zeros((3, 3))}), ("uniform_filter", ((1, 2, 3),), {}),
            ("uniform_filter1d", (0,), {}), ("gaussian_filter", (1,), {"order": -1}),
            ("gaussian_filter", (1,), {"radius": -1}), ("map_coordinates", (np.ones((3, 4)),), {}),
            ("map_coordinates", (np.ones((2, 4)),), {"order": 6}), ("affine_transform", (np.ones((3, 3)),), {}),
            ("rotate", (10,), {"axes": (0, 5)}), ("label", (np.ones((3, 2)),), {}), ("label", (np.ones(3),), {}),
            ("binary_erosion", (np.ones(3),), {}), ("binary_erosion", (), {"mask": np.ones(3)}),
            ("grey_erosion", (), {}), ("distance_transform_edt", (), {"return_distances": False})):
        compare(name, a, *args, **kwargs)
    for name, args in (("median_filter", (3,)), ("minimum_filter", (3,)), ("label", ()), ("binary_erosion", ())):
        compare(name, z, *args)
    compare("histogram", a, 0, 1, 3, None, [1])
    compare("gaussian_filter", np.zeros((0, 3)), 1)


def test_not_a_number():
    """NaN, infinities and offsets beyond all bounds give something, and nothing else."""
    a = noise("float64", (6, 7))
    a[2, 3] = np.nan
    x = ad.asarray(a)
    assert np.isnan(ndimage.gaussian_filter(x, 1).get()).any()
    ndimage.median_filter(x, 3).get()
    for mode in MODES:
        where = ad.asarray([[np.nan, np.inf, -np.inf, 1e300, -1e300, 1], [1, 1, 1, 1, 1, 1]])
        for order in range(6):
            assert ndimage.map_coordinates(x, where, order=order, mode=mode).shape == (6,)
    for offset in ((2**63 - 1, 0), (-2**63, 1), (2**61, 2**62)):
        offsets = ad.asarray(np.array([offset, (0, 0)]))
        for mode in range(5):
            ad._core.call("correlate", (x, offsets, ad.ones(2)), (mode, 0.5)).get()
            ad._core.call("rank_filter", (x, offsets), (1, mode, 0.5)).get()
            ad._core.call("grey_filter", (x, offsets, ad.ones(2)), (True, mode, 0.5)).get()
        numbers, count = ad._core.call("label", (x > 0, offsets), dtype=bool)
        assert int(count) == int((x > 0).sum()) == int(numbers.max())


# ---- filters of the user ----

ENERGY = r'''extern "C" __global__ void energy(const double *x, int size, double *y) {
    double sum = 0;
    for (int i = 0; i < size; i++) sum += x[i] * x[i];
    *y = sum / size;
}'''
RUNNING = r'''extern "C" __global__ void running(const double *x, ptrdiff_t n, double *y, ptrdiff_t m) {
    for (ptrdiff_t i = 0; i < m; i++) y[i] = x[i] - x[i + n - m];
}'''


def subtract_ends(x, y):
    y[:] = x[:len(y)] - x[len(x) - len(y):]


@pytest.mark.parametrize("mode", MODES)
def test_filters_of_the_user(mode):
    """Kernels that run on the server give what Python functions give in SciPy, which take them, too."""
    def mean_square(x):
        return (x * x).mean()
    raw = ad.RawKernel(ENERGY, "energy")
    reduction = ad.ReductionKernel("X x", "Y y", "x * x", "a + b", "y = a / _in_ind.size()", "0", "mean_square")
    footprint = noise("float64", (3, 2)) > -0.5
    for kind in ("float64", "uint8"):
        a = (noise("float64", (6, 5)) * 9).astype(kind)
        for more in ({"size": 3}, {"size": (1, 4), "origin": (0, 1)}, {"footprint": footprint}):
            expected = scipy_ndimage.generic_filter(a, mean_square, mode=mode, cval=2, **more)
            for function in (raw, mean_square, *((reduction,) if kind == "float64" else ())):
                found = ndimage.generic_filter(ad.asarray(a), function, mode=mode, cval=2, **more)
                close(expected, fetch(found), (kind, more, function))
        for axis, origin in ((0, 0), (1, 1), (-1, -1)):
            expected = scipy_ndimage.generic_filter1d(a, subtract_ends, 4, axis, np.float64, mode, 2, origin)
            for function in (ad.RawKernel(RUNNING, "running"), subtract_ends):
                found = ndimage.generic_filter1d(ad.asarray(a), function, 4, axis, np.float64, mode, 2, origin)
                close(expected, fetch(found), (kind, axis, function))
    x = ad.asarray(a)
    for wrong in (ad.ElementwiseKernel("T x", "T y", "y = x"), 3):
        for run in (lambda: ndimage.generic_filter(x, wrong, 3), lambda: ndimage.generic_filter1d(x, wrong, 3)):
            with pytest.raises(TypeError):
                run()
    with pytest.raises(RuntimeError):
        ndimage.generic_filter(x, raw)
    with pytest.raises(RuntimeError):
        ndimage.generic_filter1d(x, raw, 0)


@pytest.mark.parametrize("mode", ["reflect", "grid-mirror", "nearest"])
@pytest.mark.parametrize("samples", [[1.0, 5.0], [1.0, 5.0, 2.0]])
def test_splines_of_short_lines_go_through_their_samples(samples, mode):
    c = np.pad(ndimage.spline_filter1d(ad.array(samples), 3, mode=mode).get(), 1, mode="symmetric")
    np.testing.assert_allclose((c[:-2] + 4 * c[1:-1] + c[2:]) / 6, samples, atol=1e-12)
