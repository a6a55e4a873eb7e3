"""arrayd.scipy.interpolate against SciPy."""
import inspect
import pickle
import warnings

import numpy as np
import pytest
import scipy.interpolate as theirs

import arrayd as ad
from arrayd.scipy import interpolate as ours
from oracle import seed

X = np.sort(seed("interpolate", "x").random(9)) * 4
Y = seed("interpolate", "y").random((2, 9, 3))
AT = np.concatenate([seed("interpolate", "at").random(40) * 5 - 0.5, X, [np.nan]])


def host(value):
    if isinstance(value, ad.ndarray):
        return value.get()
    if isinstance(value, (tuple, list)):
        return type(value)(host(one) for one in value)
    return value


def near(a, b, tolerance=1e-9):
    if isinstance(b, (tuple, list)):
        for one, other in zip(a, b, strict=True):
            near(one, other, tolerance)
        return
    assert isinstance(a, (ad.ndarray, int, float)), type(a)
    a = host(a)
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, strict=isinstance(a, np.ndarray))


def agree(run, tolerance=1e-9):
    """Check that run(module, function that gives its arrays) gives the same, or raises the same, with SciPy and with
    arrayd."""
    results = []
    for module, of in ((theirs, np.asarray), (ours, ad.asarray)):
        try:
            results.append(run(module, of))
        except (ValueError, TypeError, NotImplementedError) as error:
            results.append(error)
    expected, found = results
    if isinstance(expected, Exception):
        assert type(found) is type(expected) and str(found) == str(expected), (found, expected)
    elif isinstance(found, Exception):
        raise found
    else:
        near(found, expected, tolerance)


PIECEWISE = {
    "CubicSpline": lambda m, of, y: m.CubicSpline(of(X), of(y), axis=1),
    "clamped": lambda m, of, y: m.CubicSpline(of(X), of(y), axis=1, bc_type="clamped"),
    "Pchip": lambda m, of, y: m.PchipInterpolator(of(X), of(y), axis=1),
    "Akima": lambda m, of, y: m.Akima1DInterpolator(of(X), of(y), axis=1),
    "makima": lambda m, of, y: m.Akima1DInterpolator(of(X), of(y), axis=1, method="makima"),
    "Hermite": lambda m, of, y: m.CubicHermiteSpline(of(X), of(y), of(y * 0.5), axis=1),
    "PPoly": lambda m, of, y: m.PPoly(of(y[:, :8]), of(X), extrapolate=False),
    "BPoly": lambda m, of, y: m.BPoly(of(y[:, :8]), of(X)),
    "periodic": lambda m, of, y: m.BPoly(of(y[:, :8]), of(X), extrapolate="periodic"),
    "descending": lambda m, of, y: m.PPoly(of(y[:, :8]), of(X[::-1])),
    "BSpline": lambda m, of, y: m.make_interp_spline(of(X), of(y), 3, axis=1),
    "BSpline5": lambda m, of, y: m.make_interp_spline(of(X), of(y), 5, axis=1),
    "BSpline1": lambda m, of, y: m.make_interp_spline(of(X), of(y), 1, axis=1),
    "complex": lambda m, of, y: m.make_interp_spline(of(X), of(y * (1 + 2j)), 3, axis=1),
    "lsq": lambda m, of, y: m.make_lsq_spline(of(X), of(y[0]), of(np.r_[(X[0],) * 4, X[4], (X[-1],) * 4]), 3),
}


_ORDERS = {"BPoly": 2, "periodic": 2, "BSpline1": 3}  # of derivatives: beyond, SciPy fails or has 0 for NaN


@pytest.mark.parametrize("name", PIECEWISE)
def test_piecewise(name):
    def make(m, of):
        return PIECEWISE[name](m, of, Y)
    for nu in range(_ORDERS.get(name, 4)):
        agree(lambda m, of: make(m, of)(of(AT), nu), 1e-7)
    for extrapolate in (True, False, "periodic"):
        agree(lambda m, of: make(m, of)(of(AT), extrapolate=extrapolate))
    agree(lambda m, of: make(m, of)(1.5))
    agree(lambda m, of: make(m, of)(of(AT[:6].reshape(2, 3))))
    agree(lambda m, of: make(m, of).derivative()(of(AT)))
    agree(lambda m, of: make(m, of).antiderivative(2)(of(AT)))
    agree(lambda m, of: make(m, of).integrate(0.5, 2.5))
    agree(lambda m, of: make(m, of)(of(AT), -1))


def test_attributes_and_copies():
    made = PIECEWISE["CubicSpline"](ours, ad.asarray, Y)
    assert isinstance(made.c, ad.ndarray) and made.c is made.c and isinstance(made, ours.PPoly)
    assert isinstance(made.derivative(), ours.PPoly)
    near(pickle.loads(pickle.dumps(made))(AT), made(AT).get())
    spline = PIECEWISE["BSpline"](ours, ad.asarray, Y)
    expected = PIECEWISE["BSpline"](theirs, np.asarray, Y)
    near(spline.tck[:2], expected.tck[:2])
    near(ours.BSpline(*spline.tck)(AT), theirs.BSpline(*expected.tck)(AT))
    with pytest.raises(AttributeError):
        spline.nothing
    x = np.r_[X, X[-1] + 1]
    agree(lambda m, of: (lambda p: (p.extend(of(Y[:, :1]), of(x[-1:])), p(of(AT)))[1])(m.PPoly(of(Y[:, :8]), of(X))))


def test_conversions():
    agree(lambda m, of: m.PPoly.from_bernstein_basis(m.BPoly(of(Y[:, :8]), of(X)))(of(AT)))
    agree(lambda m, of: m.BPoly.from_power_basis(m.PPoly(of(Y[:, :8]), of(X)))(of(AT)))
    agree(lambda m, of: m.PPoly.from_spline(m.make_interp_spline(of(X), of(Y[0, :, 0])))(of(AT)))
    agree(lambda m, of: m.BPoly.from_derivatives(of(X), of(Y[0, :, :2]))(of(AT)))
    agree(lambda m, of: m.BSpline.from_power_basis(m.CubicSpline(of(X), of(Y[0, :, 0])))(of(AT)))
    agree(lambda m, of: m.BSpline.basis_element(of([0.0, 1, 2, 3, 4]))(of(AT)))
    agree(lambda m, of: m.BSpline.design_matrix(of([0.5, 1.5]), of(np.arange(8.0)), 2, extrapolate=True).toarray())
    agree(lambda m, of: m.splantider(m.splder(m.make_interp_spline(of(X), of(Y[0, :, 0]))))(of(AT)))
    agree(lambda m, of: m.PPoly(of(Y[:, :8, 0] - 0.5), of(X)).roots())
    agree(lambda m, of: m.PPoly(of(Y[:, :8, 0]), of(X)).solve(0.5))


def test_functions_of_several_variables():
    knots = [np.r_[(0.0,) * 3, 1, 2, (3.0,) * 3], np.r_[(0.0,) * 4, 1.5, (3.0,) * 4]]
    c = seed("interpolate", "nd").random((5, 5, 2))
    at = seed("interpolate", "xy").random((4, 6, 2)) * 4 - 0.5
    for extrapolate in (True, False):
        for nu in (None, (1, 0), (1, 2)):
            agree(lambda m, of: m.NdBSpline(tuple(map(of, knots)), of(c), (2, 3))(of(at), nu=nu, extrapolate=extrapolate))
            agree(lambda m, of: m.NdPPoly(of(seed("pp").random((3, 4, 2, 3, 2))), (of([0.0, 1, 2]), of([0.0, 1, 2, 3])))(
                of(at), nu, extrapolate))
    agree(lambda m, of: m.NdBSpline(tuple(map(of, knots)), of(c), (2, 3)).derivative((1, 1))(of(at)))
    agree(lambda m, of: m.NdPPoly(of(c[:4, :2].reshape(2, 2, 2, 1, 2)), (of([0.0, 1, 2]), of([0.0, 1]))).integrate(
        [(0, 1), (0, 0.5)]))
    for nu in ((1,), (-1, 0)):
        with pytest.raises(ValueError):
            ours.NdBSpline(tuple(map(ad.asarray, knots)), ad.asarray(c), (2, 3))(ad.asarray(at), nu=nu)


@pytest.mark.parametrize("method", ("linear", "nearest", "slinear", "cubic", "quintic", "pchip"))
def test_grids(method):
    points = [np.arange(7) ** 1.1, np.linspace(4, -1, 8)]
    values = seed("interpolate", "grid").random((7, 8, 2))
    at = seed("interpolate", "inside").random((3, 5, 2)) * [6, 4]
    beyond = at * 2 - 1

    def make(m, of, **more):
        return m.RegularGridInterpolator(tuple(map(of, points)), of(values), method, **more)
    agree(lambda m, of: make(m, of)(of(at)), 1e-7)
    agree(lambda m, of: make(m, of)(of(beyond)))
    agree(lambda m, of: make(m, of, bounds_error=False)(of(beyond)), 1e-7)
    agree(lambda m, of: make(m, of, bounds_error=False, fill_value=None)(of(beyond)), 1e-6)
    agree(lambda m, of: make(m, of)((of(at[..., 0]), of(at[..., 1]))), 1e-7)
    agree(lambda m, of: make(m, of)(of(at), "linear"))
    agree(lambda m, of: m.interpn(tuple(map(of, points)), of(values), of(at), method), 1e-7)
    agree(lambda m, of: make(m, of)(of(at[..., :1])))
    if method in ("slinear", "cubic", "quintic"):
        agree(lambda m, of: make(m, of)(of(at), nu=(1, 0)), 1e-6)


@pytest.mark.parametrize("kind", ("linear", "nearest", "nearest-up", "zero", "slinear", "quadratic", "cubic", "previous",
                                  "next", 4))
def test_interp1d(kind):
    for y, axis in ((Y, 1), (Y[0, :, 0].astype(np.float32), -1), (np.arange(9), 0)):
        for more in ({"fill_value": "extrapolate"}, {"bounds_error": False}, {"fill_value": (1.0, 2.0), "bounds_error": False}):
            agree(lambda m, of: m.interp1d(of(X), of(y), kind, axis, **more)(of(AT)), 1e-5 if y.dtype == "f" else 1e-9)
        agree(lambda m, of: m.interp1d(of(X), of(y), kind, axis)(of(X)), 1e-6 if y.dtype == "f" else 1e-9)
        agree(lambda m, of: m.interp1d(of(X[::-1]), of(y), kind, axis)(1.25), 1e-6 if y.dtype == "f" else 1e-9)
    agree(lambda m, of: m.interp1d(of(X), of(Y), kind, 1)(of(AT)))


def test_polynomials():
    for m_axis in (0, 1):
        y = np.moveaxis(Y, 1, m_axis)
        for name in ("BarycentricInterpolator", "KroghInterpolator"):
            agree(lambda m, of: getattr(m, name)(of(X), of(y), axis=m_axis)(of(AT[:-1])), 1e-6)
            agree(lambda m, of: getattr(m, name)(of(X), of(y), axis=m_axis)(float(X[2])), 1e-6)
            agree(lambda m, of: getattr(m, name)(of(X), of(y), axis=m_axis).derivative(of(X[:3] + 0.01)), 1e-5)
    agree(lambda m, of: m.barycentric_interpolate(of(X), of(Y[0]), of(X + 0.01)), 1e-6)
    agree(lambda m, of: m.krogh_interpolate(of(X), of(Y[0]), of(X + 0.01)), 1e-6)
    agree(lambda m, of: m.pchip_interpolate(of(X), of(Y[0]), of(X)))

    def grow(m, of):
        made = m.BarycentricInterpolator(of(X[:6]), of(Y[0, :6]))
        made(of(AT[:4]))
        made.add_xi(of(X[6:]), of(Y[0, 6:]))
        return made(of(AT[:4]))
    agree(grow, 1e-6)
    agree(lambda m, of: m.BarycentricInterpolator(of(X), of(Y[0] * (1 + 1j)))(of(X + 0.01)), 1e-6)


def test_smoothing_splines():
    x, y = np.linspace(0, 3, 30), np.sin(np.linspace(0, 3, 30)) + seed("noise").random(30) * 0.1
    at = np.linspace(-1, 4, 21)
    makers = (lambda m, of: m.UnivariateSpline(of(x), of(y), s=0.05),
              lambda m, of: m.InterpolatedUnivariateSpline(of(x), of(y), k=2),
              lambda m, of: m.LSQUnivariateSpline(of(x), of(y), of([1.0, 2.0])))
    for make in makers:
        for ext in (0, 1, 3):
            agree(lambda m, of: make(m, of)(of(at), ext=ext))
        with pytest.raises(ValueError):
            make(ours, ad.asarray)(at, ext=2)
        agree(lambda m, of: make(m, of)(of(at), ext=9))
        agree(lambda m, of: make(m, of)(of(at), 1))
        agree(lambda m, of: make(m, of).derivative()(of(at)))
        agree(lambda m, of: make(m, of).antiderivative()(of(at)))
        agree(lambda m, of: make(m, of).integral(0, 2))
        agree(lambda m, of: (make(m, of).get_knots(), make(m, of).get_coeffs(), make(m, of).get_residual()))
        agree(lambda m, of: make(m, of)(of(at[:0])))

    def smoother(m, of):
        made = makers[0](m, of)
        made(of(at))
        made.set_smoothing_factor(0.5)
        return made(of(at))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        agree(smoother)


KERNELS = ("linear", "thin_plate_spline", "cubic", "quintic", "multiquadric", "inverse_multiquadric", "inverse_quadratic",
           "gaussian")


@pytest.mark.parametrize("kernel", KERNELS)
def test_radial_functions(kernel):
    y, d, at = (seed("rbf", kernel, n).random(shape) for n, shape in enumerate(((30, 2), (30, 3), (17, 2))))
    for more in ({}, {"smoothing": 0.1}, {"degree": -1}, {"neighbors": 12}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            agree(lambda m, of: m.RBFInterpolator(of(y), of(d), kernel=kernel, epsilon=3.0, **more)(of(at)), 1e-6)
    agree(lambda m, of: m.RBFInterpolator(of(y), of(d[:, 0] * 1j), kernel=kernel, epsilon=3.0)(of(at)), 1e-6)


def test_errors_of_radial_functions():
    y, d = seed("rbf").random((10, 2)), seed("rbf").random(10)
    for run in (lambda m, of: m.RBFInterpolator(of(y[0]), of(d)), lambda m, of: m.RBFInterpolator(of(y), of(d[:3])),
                lambda m, of: m.RBFInterpolator(of(y), of(d), smoothing=of(d[:2])),
                lambda m, of: m.RBFInterpolator(of(y), of(d), degree=-2),
                lambda m, of: m.RBFInterpolator(of(y[:2]), of(d[:2])),
                lambda m, of: m.RBFInterpolator(of(y), of(d))(of(y[:, :1])),
                lambda m, of: m.RBFInterpolator(of(y), of(d))(of(y[0]))):
        agree(run)
    for more in ({"kernel": "none"}, {"kernel": "gaussian"}):
        with pytest.raises(ValueError):
            ours.RBFInterpolator(ad.asarray(y), ad.asarray(d), **more)
    with pytest.raises(np.linalg.LinAlgError, match="full column rank"):
        ours.RBFInterpolator(ad.asarray(np.c_[d, d * 0]), ad.asarray(d))


def test_scattered_points():
    points, values = seed("scattered").random((25, 2)), seed("values").random((25, 2))
    at = seed("there").random((4, 5, 2)) * 1.2
    for name in ("LinearNDInterpolator", "CloughTocher2DInterpolator", "NearestNDInterpolator"):
        for rescale in (False, True):
            agree(lambda m, of: getattr(m, name)(of(points), of(values), rescale=rescale)(of(at)), 1e-6)
            agree(lambda m, of: getattr(m, name)((of(points[:, 0]), of(points[:, 1])), of(values[:, 0]), rescale=rescale)(
                of(at[..., 0]), of(at[..., 1])), 1e-6)
        with pytest.raises(ValueError):
            getattr(ours, name)(ad.asarray(points), ad.asarray(values[:3]))
    agree(lambda m, of: m.NearestNDInterpolator(of(points), of(values))(of(at), distance_upper_bound=0.05))
    import scipy.spatial
    triangles, expected = ad.scipy.spatial.Delaunay(ad.asarray(points)), scipy.spatial.Delaunay(points)
    assert (triangles.simplices.get() == expected.simplices).all()
    assert (triangles.find_simplex(ad.asarray(at)).get() == expected.find_simplex(at)).all()
    near(ours.LinearNDInterpolator(triangles, ad.asarray(values))(at), theirs.LinearNDInterpolator(expected, values)(at))


def test_errors_of_design():
    for run in (lambda m, of: m.CubicSpline(of(X[::-1]), of(Y[0])), lambda m, of: m.CubicSpline(of(X), of(Y)),
                lambda m, of: m.BSpline(of(X[::-1]), of(Y[0]), 3), lambda m, of: m.BSpline(of(X), of(Y[0, :2]), 3),
                lambda m, of: m.PPoly(of(Y[:, :8]), of(X[:4])), lambda m, of: m.interp1d(of(X), of(Y), "no such"),
                lambda m, of: m.RegularGridInterpolator((of(X),), of(Y)),
                lambda m, of: m.KroghInterpolator(of(X[:3]), of(Y[0])),
                lambda m, of: m.make_interp_spline(of(X), of(Y[0]), -1)):
        agree(run)


def test_signatures():
    """Parameters are SciPy's, in their order."""
    for name in ours.__all__:
        value, other = getattr(ours, name), getattr(theirs, name)
        if inspect.isclass(value):
            mine, known = (list(inspect.signature(one).parameters) for one in (value, other))
            known = [n for n in known if n != "random_state"]
            assert mine == known, name
