"""arrayd.scipy.linalg against SciPy."""
import numpy as np
import pytest
import scipy.linalg as sl

import arrayd as ad
from arrayd import _core, cupyx
from arrayd.scipy import linalg
from oracle import seed

TYPES = (np.float32, np.float64, np.complex64, np.complex128)


def draw(dtype, *shape):
    rng = seed("scipy linalg", str(np.dtype(dtype)), shape)
    a = rng.standard_normal(shape)
    return (a + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else a).astype(dtype)


def near(ours, theirs, tolerance=1e-9):
    for x, y in zip(*(v if isinstance(v, tuple) else (v,) for v in (ours, theirs))):
        assert x.dtype == y.dtype and x.shape == y.shape, (x.dtype, y.dtype, x.shape, y.shape)
        np.testing.assert_allclose(ad.asnumpy(x), y, rtol=tolerance, atol=tolerance)


def tolerance_of(dtype):
    return 2e-3 if np.dtype(dtype).char in "fF" else 1e-9


@pytest.mark.parametrize("dtype", TYPES)
def test_triangular(dtype):
    for n in (1, 5, 300):
        a = draw(dtype, n, n) / n + 2 * np.eye(n, dtype=dtype)
        for b in (draw(dtype, n), draw(dtype, n, 3)):
            for trans in (0, 1, 2, "N", "T", "C"):
                for lower in (True, False):
                    for unit in (True, False):
                        options = {"trans": trans, "lower": lower, "unit_diagonal": unit}
                        near(linalg.solve_triangular(ad.asarray(a), ad.asarray(b), **options),
                             sl.solve_triangular(a, b, **options), tolerance_of(dtype))


@pytest.mark.parametrize("lower", [True, False])
def test_large_and_many_triangular_systems(lower):
    keep = np.tril if lower else np.triu
    for shape, k in (((1500, 1500), 3), ((2, 5, 20, 20), 4), ((3, 300, 300), 1)):
        a = draw(np.float64, *shape) / shape[-1] + 2 * np.eye(shape[-1])
        b = draw(np.float64, *shape[:-1], k)
        x = linalg.solve_triangular(ad.asarray(a), ad.asarray(b), lower=lower)
        np.testing.assert_allclose(keep(a) @ x.get(), b, rtol=1e-9, atol=1e-9)


def test_one_triangular_matrix_serves_many_right_sides():
    a, b = draw(np.float64, 6, 6) + 4 * np.eye(6), draw(np.float64, 5, 6, 2)
    x = _core.call("solve_triangular", (ad.asarray(a), ad.asarray(b)), (True, False))
    np.testing.assert_allclose(np.tril(a) @ x.get(), b, rtol=1e-9, atol=1e-9)


def test_zeros_on_the_diagonal():
    a = np.eye(4, dtype="f4")
    a[2, 2] = 0
    for n in (1, 3):
        x = linalg.solve_triangular(ad.asarray(np.broadcast_to(a, (n, 4, 4)).copy()), ad.ones((n, 4, 1), "f4"))
        with pytest.raises(np.linalg.LinAlgError):
            x.get()
    assert linalg.solve_triangular(ad.asarray(a), ad.ones(4, "f4"), unit_diagonal=True).tolist() == [1] * 4


@pytest.mark.parametrize("dtype", TYPES)
def test_factors(dtype):
    tolerance = tolerance_of(dtype)
    for m, n in ((1, 1), (4, 4), (6, 3), (3, 6), (200, 200)):
        a = draw(dtype, m, n)
        for options in ({}, {"permute_l": True}, {"p_indices": True}):
            ours, theirs = linalg.lu(ad.asarray(a), **options), sl.lu(a, **options)
            if options.get("p_indices"):
                assert (ad.asnumpy(ours[0]) == theirs[0]).all()
                ours, theirs = ours[1:], theirs[1:]
            near(ours, theirs, tolerance)
        if m != n:
            continue
        near(linalg.lu_factor(ad.asarray(a)), sl.lu_factor(a), tolerance)
        a = a + 4 * np.eye(n, dtype=dtype)
        positive = (a @ a.conj().T + n * np.eye(n)).astype(dtype)
        for b in (draw(dtype, n), draw(dtype, n, 3)):
            factors = linalg.lu_factor(ad.asarray(a))
            for trans in (0, 1, 2):
                near(linalg.lu_solve(factors, ad.asarray(b), trans), sl.lu_solve(sl.lu_factor(a), b, trans), 10 * tolerance)
            for lower in (True, False):
                c = linalg.cho_factor(ad.asarray(positive), lower)
                near(linalg.cho_solve(c, ad.asarray(b)), sl.cho_solve(sl.cho_factor(positive, lower), b), tolerance)
        near(cupyx.linalg.invh(ad.asarray(positive)), np.linalg.inv(positive), tolerance)


def test_stacks_of_factors():
    a, b = draw(np.complex128, 3, 5, 5), draw(np.complex128, 3, 5, 2)
    a = a @ a.conj().swapaxes(-1, -2) + 5 * np.eye(5)
    for lower in (True, False):
        factor = np.linalg.cholesky(a) if lower else np.linalg.cholesky(a).conj().swapaxes(-1, -2)
        factor = factor + (np.triu if lower else np.tril)(np.full((5, 5), np.nan), 1 if lower else -1)
        for right in (b, b[..., 0]):
            expected = np.linalg.solve(a, right.reshape(3, 5, -1)).reshape(right.shape)
            for overwrite in (False, True):
                near(cupyx.linalg.cho_solve((ad.asarray(factor), lower), ad.asarray(right), overwrite), expected)
    with pytest.raises(ValueError):
        cupyx.linalg.cho_solve((ad.asarray(factor), True), ad.ones((3, 4)))


def test_expm():
    for dtype in (*TYPES, np.int64):
        for shape in ((1, 1), (4, 4), (3, 5, 5)):
            for scale in (0.1, 1, 4):
                a = (draw(np.float64 if dtype == np.int64 else dtype, *shape) * scale).astype(dtype)
                near(linalg.expm(ad.asarray(a)) / 1e2, sl.expm(a) / 1e2, tolerance_of(dtype))
    near(linalg.expm(ad.zeros((3, 3))), np.eye(3))


CASES = [("toeplitz", "v4"), ("toeplitz", "v4", "v3"), ("circulant", "v5"), ("hankel", "v4"), ("hankel", "v4", "v6"),
         ("leslie", "v4", "v3"), ("companion", "v5"), ("companion", "v2"), ("fiedler", "v5"), ("hadamard", 8), ("hadamard", 512), ("hilbert", 0), ("hadamard", 1),
         ("hadamard", 4, np.float64), ("helmert", 5), ("helmert", 4, True), ("hilbert", 4), ("dft", 5), ("dft", 4, "sqrtn"),
         ("dft", 4, "n"), ("block_diag", "m23", "v3", "m31"), ("block_diag",), ("khatri_rao", "m23", "m43"),
         *(("fiedler_companion", f"v{n}") for n in range(2, 9)),
         *(("convolution_matrix", f"v{m}", n, mode) for m, n in ((1, 5), (4, 3), (3, 7)) for mode in ("full", "same", "valid"))]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_special(case):
    name, *arguments = case
    drawn = [draw(np.float64, *(int(c) for c in x[1:])) if isinstance(x, str) and x[1:].isdigit() else x for x in arguments]
    sent = [ad.asarray(x) if isinstance(x, np.ndarray) else x for x in drawn]
    near(getattr(linalg, name)(*sent), getattr(sl, name)(*drawn), 1e-12)


def test_fiedler_matrix_of_one_number():
    """SciPy's is a zero of float64, whatever the number's type."""
    for dtype in (np.float32, np.int64, np.complex64):
        assert linalg.fiedler(ad.ones(1, dtype)).dtype == sl.fiedler(np.ones(1, dtype)).dtype == np.float64


def test_bandwidth():
    for a in (np.zeros((3, 4)), np.eye(4), np.triu(np.ones((4, 5)), -2), np.eye(5, 4, 2)):
        assert linalg.bandwidth(ad.asarray(a)) == sl.bandwidth(a)


WRONG = [lambda m, x: m.solve_triangular(x((2, 3)), x(2)), lambda m, x: m.solve_triangular(x((3, 3)), x(2)),
         lambda m, x: m.lu_solve(m.lu_factor(x((3, 3)) + 0.0), x(2)), lambda m, x: m.expm(x((2, 3))), lambda m, x: m.expm(x(3)),
         lambda m, x: m.hadamard(6), lambda m, x: m.companion(x(1)), lambda m, x: m.leslie(x(3), x(3)),
         lambda m, x: m.dft(3, "x"), lambda m, x: m.khatri_rao(x((2, 3)), x((2, 2))),
         lambda m, x: m.solve_triangular(x((2, 2)) * np.inf, x(2)), lambda m, x: m.convolution_matrix(x(3), 0),
         lambda m, x: m.bandwidth(x(3))]


@pytest.mark.parametrize("number", range(len(WRONG)))
@pytest.mark.filterwarnings("ignore")
def test_wrong(number):
    with pytest.raises(ValueError):
        WRONG[number](sl, np.ones)
    with pytest.raises(ValueError):
        WRONG[number](linalg, ad.ones)


def test_triangles_are_solved_without_pivoting():
    """Whole numbers stay whole: elements below the diagonal that are larger than it are no reason to exchange rows."""
    rng = seed("whole")
    a, b = np.tril(rng.integers(1, 10, (6, 6))), rng.integers(1, 10, (6, 2)).astype(np.float32)
    np.fill_diagonal(a, 1)
    for m, lower in ((a.astype(np.float32), True), (a.T.astype(np.float32), False)):
        x = linalg.solve_triangular(ad.asarray(m), ad.asarray(b), lower=lower).get()
        np.testing.assert_array_equal(x, np.round(x))
        np.testing.assert_array_equal(m.astype(np.float64) @ x, b)
