"""Decompositions, and what solves by them, against NumPy and against what they promise: signs and phases of vectors are
the library's own. Bounds grow with the size, in units of the type's precision."""
import numpy as np
import pytest

import arrayd as ad
from oracle import check, fetch, seed

FIELDS = [np.dtype(name) for name in ("float32", "float64", "complex64", "complex128")]
SHAPES = [(1, 1), (2, 2), (5, 5), (7, 3), (3, 7), (40, 40), (70, 33), (33, 70), (4, 3, 3), (2, 3, 5, 2), (3, 2, 5),
          (5, 40, 24), (3, 24, 40)]
SQUARES = [shape for shape in SHAPES if shape[-1] == shape[-2]] + [(135, 135), (2, 130, 130), (2, 2, 9, 9)]
SQUARES += [(2, 65, 65), (10, 100, 100), (2, 128, 128)]  # libraries have other algorithms for stacks of more than 64 rows
EMPTY = [(0, 0), (0, 3), (3, 0), (0, 4, 4), (2, 0, 3), (2, 3, 0), (2, 0, 0)]

by_field = pytest.mark.parametrize("dtype", FIELDS, ids=str)


def values(dtype, shape, *names):
    rng = seed("decompositions", dtype, shape, *names)
    x = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


def definite(dtype, shape):
    a = values(dtype, shape)
    return (a @ adjoint(a) / shape[-1] + np.eye(shape[-1])).astype(dtype)


def adjoint(a):
    return a.conj().swapaxes(-1, -2)


def near(actual, expected, factor=30):
    """Within factor * n units of precision of the largest element."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape, f"shape {actual.shape}, not {expected.shape}"
    if expected.size == 0:
        return
    n = max(expected.shape[-2:]) if expected.ndim else 1
    bound = factor * n * np.finfo(actual.dtype).eps * max(np.abs(expected).max(), 1e-30)
    worst = np.abs(actual - expected).max()
    assert worst <= bound, f"off by {worst}, more than {bound}"


def orthonormal(q):
    """The columns of q."""
    near(adjoint(q) @ q, np.broadcast_to(np.eye(q.shape[-1], dtype=q.dtype), q.shape[:-2] + (q.shape[-1],) * 2))


def layouts(a):
    """Return a on the server, as it is and as views that do not lie row by row."""
    x = ad.asarray(a)
    yield x
    yield ad.asarray(np.ascontiguousarray(a.swapaxes(-1, -2))).swapaxes(-1, -2)
    wide = ad.zeros(a.shape[:-1] + (2 * a.shape[-1],), a.dtype)
    wide[..., ::2] = x
    yield wide[..., ::2]
    yield ad.flip(ad.flip(x, -2).copy(), -2)


# ---- factorisations ----


@by_field
@pytest.mark.parametrize("upper", [False, True])
def test_cholesky(dtype, upper):
    for shape in SQUARES:
        a = definite(dtype, shape)
        expected = np.linalg.cholesky(a, upper=upper)
        for x in layouts(a):
            result = ad.linalg.cholesky(x, upper=upper)
            assert result.dtype == dtype
            near(result.get(), expected)
        # The function looks at one triangle only.
        half = np.triu(a) if upper else np.tril(a)
        near(ad.linalg.cholesky(ad.asarray(half), upper=upper).get(), expected)


@by_field
@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
def test_qr(dtype, mode):
    for shape in SHAPES + EMPTY:
        a = values(dtype, shape)
        expected = np.linalg.qr(a, mode)
        for x in layouts(a) if a.size else [ad.asarray(a)]:
            result = ad.linalg.qr(x, mode)
            if mode == "r":
                near(np.abs(result.get()), np.abs(expected), 100)
                continue
            q, r = fetch(result)
            assert (q.shape, r.shape, q.dtype, r.dtype) == (expected.Q.shape, expected.R.shape, dtype, dtype)
            assert type(result).__name__ == "QRResult" and result.Q is result[0]
            near(q @ r, a)
            orthonormal(q)
            np.testing.assert_array_equal(r, np.triu(r))


def from_reflectors(h, tau):
    """Make q (square) and r of one matrix, from what geqrf leaves."""
    m = h.shape[1]
    q = np.eye(m, dtype=h.dtype)
    for i, t in enumerate(tau):
        v = np.concatenate([np.zeros(i), [1], h[i, i + 1:]]).astype(h.dtype)
        q = q - t * (q @ v)[:, None] * v.conj()
    return q, np.triu(h.T)


@by_field
def test_qr_raw(dtype):
    for shape in SHAPES + EMPTY:
        a = values(dtype, shape)
        expected = np.linalg.qr(a, "raw")
        for x in layouts(a) if a.size else [ad.asarray(a)]:
            h, tau = fetch(ad.linalg.qr(x, "raw"))
            assert [(v.shape, v.dtype) for v in (h, tau)] == [(v.shape, v.dtype) for v in expected]
            for i in np.ndindex(shape[:-2] if a.size else (0,)):
                q, r = from_reflectors(h[i], tau[i])
                near(q @ r, a[i], 100)
                orthonormal(q)


@by_field
def test_det(dtype):
    for shape in SQUARES + [(0, 0), (2, 0, 0), (0, 3, 3)]:
        a = values(dtype, shape) / max(shape[-1], 1) ** 0.5
        sign, size = np.linalg.slogdet(a)
        for x in layouts(a) if a.size else [ad.asarray(a)]:
            result = ad.linalg.slogdet(x)
            assert (result.sign.dtype, result.logabsdet.dtype) == (sign.dtype, size.dtype)
            bound = 300 * max(shape[-1], 1) * np.finfo(dtype).eps
            np.testing.assert_allclose(result.sign.get(), sign, atol=bound)
            np.testing.assert_allclose(result.logabsdet.get(), size, atol=bound * 10)
            np.testing.assert_allclose(ad.linalg.det(x).get(), np.linalg.det(a), rtol=bound * 10, atol=1e-30)
    singular = ad.asarray(np.ones((3, 3), dtype))
    assert float(ad.linalg.det(singular).real) == 0
    assert fetch(ad.linalg.slogdet(singular))[1] == -np.inf
    check(lambda xp, a: xp.linalg.det(a), np.array([[1, 2], [3, 4]]), ulps=64)


@by_field
def test_det_of_many(dtype):
    """One matrix in each lane, where there are enough that are small; LAPACK otherwise."""
    for n in (1, 2, 3, 5, 8, 17, 64, 65):
        bound = 300 * n * np.finfo(dtype).eps
        for count in (1, 5, 37):
            a = values(dtype, (count, n, n)) / n ** 0.5
            sign, size = np.linalg.slogdet(a)
            for x in layouts(a):
                result = ad.linalg.slogdet(x)
                np.testing.assert_allclose(result.sign.get(), sign, atol=bound)
                np.testing.assert_allclose(result.logabsdet.get(), size, atol=bound * 10)


@by_field
def test_det_of_odd_ones_among_others(dtype):
    """Zeros, NaN, infinities and numbers near the ends of the type are no reason for another result of their neighbours."""
    a = values(dtype, (40, 3, 3))
    most = np.sqrt(np.finfo(dtype).max)
    a[1], a[2, 1], a[9] = 0, 0, np.eye(3)
    a[17, 1, 1], a[18, 0, 2], a[25], a[33] = np.nan, np.inf, a[25] * most, a[33] / most
    with np.errstate(all="ignore"):
        sign, size = np.linalg.slogdet(a)
    for x in layouts(a):
        result = ad.linalg.slogdet(x)
        close = {"rtol": 1e3 * np.finfo(dtype).eps, "atol": 1e3 * np.finfo(dtype).eps}
        known = np.delete(np.arange(40), (17, 18))
        np.testing.assert_allclose(result.sign.get()[known], sign[known], **close)
        np.testing.assert_allclose(result.logabsdet.get()[known], size[known], **close)
        assert np.isnan(result.logabsdet.get()[17]) and not np.isfinite(result.logabsdet.get()[18])
    assert result.logabsdet.get()[9] == 0 and result.sign.get()[9] == 1


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "int64"])
def test_det_of_integers(dtype):
    a = seed("integers").integers(0, 2 if dtype == "bool" else 5, (30, 3, 3)).astype(dtype)
    near(ad.linalg.det(ad.asarray(a)).get(), np.linalg.det(a), 100)
    assert ad.linalg.det(ad.asarray(a)).dtype == np.float64


# ---- singular values ----


@by_field
@pytest.mark.parametrize("full", [True, False])
def test_svd(dtype, full):
    for shape in SHAPES + EMPTY + [(300, 280)]:
        a = values(dtype, shape)
        expected = np.linalg.svd(a, full)
        for x in layouts(a) if 0 < a.size < 10000 else [ad.asarray(a)]:
            result = ad.linalg.svd(x, full)
            assert type(result).__name__ == "SVDResult"
            u, s, vh = fetch(result)
            assert [p.shape for p in (u, s, vh)] == [p.shape for p in expected]
            assert [p.dtype for p in (u, s, vh)] == [p.dtype for p in expected]
            near(s, expected.S)
            k = s.shape[-1]
            near(u[..., :k] * s[..., None, :] @ vh[..., :k, :], a)
            orthonormal(u)
            orthonormal(adjoint(vh))
            near(ad.linalg.svdvals(x).get(), expected.S)
            near(ad.linalg.svd(x, compute_uv=False).get(), expected.S)


@by_field
def test_svd_of_singular_matrices(dtype):
    """Singular values that are zero, or all the same."""
    for n in (3, 20, 50, 150):
        half = values(dtype, (n, n // 2))
        for a in (half @ adjoint(half), np.zeros((n, n), dtype), np.eye(n, dtype=dtype), np.ones((n, n + 5), dtype)):
            u, s, vh = fetch(ad.linalg.svd(ad.asarray(a)))
            near(s, np.linalg.svd(a, compute_uv=False))
            near(ad.linalg.svdvals(ad.asarray(a)).get(), s)
            near(u * s @ vh[:len(s)], a)
            orthonormal(u)
            orthonormal(adjoint(vh))


@by_field
def test_svd_hermitian(dtype):
    for shape in ((5, 5), (3, 4, 4)):
        a = values(dtype, shape)
        a = a + adjoint(a)
        u, s, vh = fetch(ad.linalg.svd(ad.asarray(a), hermitian=True))
        near(s, np.linalg.svd(a, hermitian=True).S)
        near(u * s[..., None, :] @ vh, a)
        near(ad.linalg.svd(ad.asarray(a), compute_uv=False, hermitian=True).get(), s)


# ---- eigenvalues ----


@by_field
@pytest.mark.parametrize("triangle", ["L", "u"])
def test_eigh(dtype, triangle):
    for shape in SQUARES + [(0, 0), (2, 0, 0), (0, 3, 3), (40, 20, 20), (6, 70, 70)]:
        a = values(dtype, shape)
        expected = np.linalg.eigh(a, triangle)
        half = np.tril(a, -1) if triangle == "L" else np.triu(a, 1)
        whole = half + adjoint(half) + np.triu(np.tril(a)).real
        for x in layouts(a) if 0 < a.size < 3000 else [ad.asarray(a)]:
            result = ad.linalg.eigh(x, triangle)
            assert type(result).__name__ == "EighResult"
            w, v = fetch(result)
            assert (w.dtype, v.dtype) == (expected.eigenvalues.dtype, expected.eigenvectors.dtype)
            near(w, expected.eigenvalues)
            near(whole @ v, v * w[..., None, :], 60)
            orthonormal(v)
            near(ad.linalg.eigvalsh(x, triangle).get(), expected.eigenvalues)


def test_eigh_of_the_same_values():
    for n in (4, 33, 64):
        w, v = fetch(ad.linalg.eigh(ad.eye(n) * 3))
        near(w, np.full(n, 3.0))
        orthonormal(v)


def in_order(w):
    """Eigenvalues in an order that errors of rounding do not change, as far as there is one."""
    size = max(np.abs(w).max(), 1e-30)
    return np.take_along_axis(w, np.lexsort((w.imag, np.round(w.real / size, 3))), -1)


@by_field
def test_eig(dtype):
    pair = np.result_type(dtype, np.complex64)
    for shape in SQUARES + [(0, 0), (2, 0, 0), (0, 3, 3), (40, 20, 20)]:
        a = values(dtype, shape)
        expected = np.linalg.eigvals(a)
        for x in layouts(a) if 0 < a.size < 3000 else [ad.asarray(a)]:
            result = ad.linalg.eig(x)
            assert type(result).__name__ == "EigResult" and result.eigenvectors is result[1]
            w, v = fetch(result)
            kind = pair if a.size else np.dtype(dtype)  # without elements no eigenvalue has an imaginary part
            assert (w.shape, v.shape, w.dtype, v.dtype) == (shape[:-1], shape, kind, kind)
            near(a @ v, v * w[..., None, :], 60)
            near((np.abs(v)**2).sum(-2), np.ones(shape[:-1]))
            alone = ad.linalg.eigvals(x).get()
            assert alone.dtype == kind
            if a.size:
                near(in_order(w), in_order(expected), 1000)
                near(in_order(alone), in_order(expected), 1000)


@by_field
def test_eig_of_known_values(dtype):
    pair = np.result_type(dtype, np.complex64)
    turn = np.array([[0, -2], [2, 0]], dtype)
    jordan, nothing = np.triu(np.full((3, 3), 2, dtype)), np.zeros((3, 3), dtype)
    for a, expected in ((turn, [-2j, 2j]), (jordan, [2, 2, 2]), (nothing, [0, 0, 0]),
                        (np.diag(np.arange(1, 6)).astype(dtype), [1, 2, 3, 4, 5])):
        w, v = fetch(ad.linalg.eig(ad.asarray(a)))
        near(in_order(w), np.array(expected, pair), 1000)
        near(a @ v, v * w, 60)
    # A pair among real values: the vectors after it are in their places.
    a = np.zeros((5, 5), dtype)
    a[0, 0], a[1:3, 1:3], a[3, 3], a[4, 4] = 1, turn, 5, 7
    p = values(dtype, (5, 5)) + 3 * np.eye(5, dtype=dtype)
    a = (p @ a @ np.linalg.inv(p)).astype(dtype)
    w, v = fetch(ad.linalg.eig(ad.asarray(a)))
    near(in_order(w), np.array([-2j, 2j, 1, 5, 7], pair), 1000)
    near(a @ v, v * w, 300)


# ---- systems ----


@by_field
def test_solve(dtype):
    pairs = [((n, n), (n, k)) for n in (1, 2, 6, 40, 135) for k in (1, 3)] + [
        ((5, 5), (5,)), ((3, 5, 5), (5,)), ((3, 5, 5), (3, 5, 2)), ((5, 5), (3, 5, 2)), ((3, 1, 4, 4), (2, 4, 3)),
        ((1, 5, 5), (4, 5, 1)), ((2, 130, 130), (2, 130, 2)), ((3, 5, 5), (1, 5, 2))]
    for one, other in pairs:
        a, b = values(dtype, one, "a") + 2 * np.eye(one[-1], dtype=dtype), values(dtype, other, "b")
        expected = np.linalg.solve(a, b)
        for x in layouts(a):
            result = ad.linalg.solve(x, ad.asarray(b))
            assert (result.dtype, result.shape) == (dtype, expected.shape)
            scale = np.linalg.cond(a).max()
            near(result.get(), expected, 10 + scale)
    check(lambda xp, a, b: xp.linalg.solve(a, b), np.eye(3) * 2, np.arange(3))
    check(lambda xp, a, b: xp.linalg.solve(a, b[:, ::2]), np.eye(3) * 2, np.arange(12).reshape(3, 4))
    for one, other in (((0, 0), (0,)), ((0, 0), (0, 3)), ((3, 3), (3, 0)), ((0, 3, 3), (3, 2)), ((2, 0, 0), (2, 0, 1))):
        check(lambda xp, a, b: xp.linalg.solve(a + xp.eye(one[-1], dtype=dtype), b), np.ones(one, dtype),
              np.ones(other, dtype))


@by_field
def test_inv(dtype):
    for shape in SQUARES:
        a = values(dtype, shape) + 2 * np.eye(shape[-1], dtype=dtype)
        scale = np.linalg.cond(a).max()
        for x in layouts(a):
            near(ad.linalg.inv(x).get(), np.linalg.inv(a), 10 + scale)
    for shape in ((0, 0), (0, 3, 3), (2, 0, 0)):
        check(lambda xp, a: xp.linalg.inv(a), np.ones(shape, dtype))


@by_field
def test_lstsq(dtype):
    for (m, n), k in [((5, 5), 2), ((8, 3), 2), ((3, 8), 1), ((40, 20), None), ((0, 3), 2), ((3, 0), 2), ((4, 2), 0),
                      ((60, 50), 3)]:
        a, b = values(dtype, (m, n), "a"), values(dtype, (m,) if k is None else (m, k), "b")
        expected = np.linalg.lstsq(a, b)
        for x in layouts(a) if a.size else [ad.asarray(a)]:
            solution, residuals, rank, s = ad.linalg.lstsq(x, ad.asarray(b))
            assert rank == expected[2] and solution.dtype == dtype
            near(solution.get(), expected[0], 300)
            near(residuals.get(), expected[1], 300)
            near(s.get(), expected[3])
    low = values(dtype, (9, 2)) @ values(dtype, (2, 4))
    b = values(dtype, (9, 2), "b")
    expected = np.linalg.lstsq(low, b, 1e-4)
    result = fetch(ad.linalg.lstsq(ad.asarray(low), ad.asarray(b), 1e-4))
    assert result[2] == 2 and result[1].shape == (0,)
    near(result[0], expected[0], 300)
    b[3, 1] = np.nan  # the right sides need not be finite: the solutions of those that are not are NaN
    for a in (low, low[:, :3], low[2:4]):
        sides = b if len(a) == len(b) else b[2:4]
        expected, result = np.linalg.lstsq(a, sides, 1e-4), ad.linalg.lstsq(ad.asarray(a), ad.asarray(sides), 1e-4)
        assert np.isnan(expected[0]).tolist() == np.isnan(result[0].get()).tolist() == [[False, True]] * a.shape[1]


# ---- what is made of them ----


@by_field
def test_pinv_and_rank(dtype):
    for shape in SHAPES[:9] + EMPTY:
        a = values(dtype, shape)
        check(lambda xp, a: xp.linalg.matrix_rank(a), a)
        near(ad.linalg.pinv(ad.asarray(a)).get(), np.linalg.pinv(a), 3000)
    low = values(dtype, (9, 2)) @ values(dtype, (2, 4))
    check(lambda xp, a: xp.linalg.matrix_rank(a), low)
    check(lambda xp, a: xp.linalg.matrix_rank(a, 1e-3), low)
    check(lambda xp, a: xp.linalg.matrix_rank(a, rtol=0.99), low)
    check(lambda xp, a: xp.linalg.matrix_rank(a[0]), low)
    near(ad.linalg.pinv(ad.asarray(low), 1e-4).get(), np.linalg.pinv(low, 1e-4), 3000)
    near(ad.linalg.pinv(ad.asarray(low), rtol=1e-4).get(), np.linalg.pinv(low, rtol=1e-4), 3000)
    stack = values(dtype, (3, 4, 4))
    stack = stack + adjoint(stack)
    near(ad.linalg.pinv(ad.asarray(stack), hermitian=True).get(), np.linalg.pinv(stack, hermitian=True), 3000)
    check(lambda xp, a: xp.linalg.matrix_rank(a, hermitian=True), stack)


@by_field
@pytest.mark.parametrize("p", [None, 1, -1, 2, -2, np.inf, -np.inf, "fro", "nuc"])
def test_norm_and_cond(dtype, p):
    a = values(dtype, (5, 4, 4))
    ulps = 100000
    check(lambda xp, a: xp.linalg.cond(a, p), a, ulps=ulps)
    check(lambda xp, a: xp.linalg.cond(a[0], p), a, ulps=ulps)
    check(lambda xp, a: xp.linalg.norm(a[0], p), a, ulps=300)
    check(lambda xp, a: xp.linalg.norm(a[:, :2], p, axis=(2, 0), keepdims=True), a, ulps=300)
    if p is not None:
        check(lambda xp, a: xp.linalg.matrix_norm(a, ord=p), a, ulps=300)
    singular = np.stack([np.ones((2, 2), dtype), np.eye(2, dtype=dtype)])
    if p not in (None, 2, -2, "nuc"):
        check(lambda xp, a: xp.linalg.cond(a, p), singular, ulps=ulps)


def test_powers_and_tensors():
    a = values(float, (3, 4, 4)) + 3 * np.eye(4)
    for n in (-3, -1, 0, 1, 2, 3, 5):
        check(lambda xp, a: xp.linalg.matrix_power(a, n), a, ulps=1e6)
    check(lambda xp, a: xp.linalg.matrix_power(a, 1.5), a)
    t = values(float, (2, 3, 6))
    check(lambda xp, a, b: xp.linalg.tensorsolve(a, b), t, np.arange(6.0).reshape(2, 3), ulps=1e6)
    check(lambda xp, a, b: xp.linalg.tensorsolve(a, b, (0,)), values(float, (4, 2, 2)), np.arange(4.0).reshape(2, 2),
          ulps=1e6)
    check(lambda xp, a, b: xp.linalg.tensorsolve(a, b), t, np.arange(3.0))
    near(ad.linalg.tensorinv(ad.asarray(t)).get(), np.linalg.tensorinv(t), 3000)
    check(lambda xp, a: xp.linalg.tensorinv(a, 0), t)
    parts = [values(float, shape) for shape in ((3, 10), (10, 2), (2, 8), (8, 4))]
    check(lambda xp, *a: xp.linalg.multi_dot(a), *parts, ulps=1e5)
    check(lambda xp, *a: xp.linalg.multi_dot(a), *parts[:3], ulps=1e5)
    check(lambda xp, *a: xp.linalg.multi_dot([a[0][0], *a[1:3], a[3][:, 0]]), *parts, ulps=1e5)
    check(lambda xp, a: xp.linalg.multi_dot([a]), parts[0])


# ---- types and errors ----


@pytest.mark.parametrize("name", ["cholesky", "inv", "det", "slogdet", "eigh", "eigvalsh", "svdvals", "qr", "pinv"])
def test_types(name):
    run = getattr(ad.linalg, name)
    whole = np.array([[4, 1], [1, 3]])
    for dtype in (np.int64, np.int8, np.uint16, np.bool_):
        a = whole.astype(dtype) if dtype is not np.bool_ else np.eye(2, dtype=bool)
        for ours, theirs in zip(*(part if isinstance(part, tuple) else (part,) for part in
                                  (run(ad.asarray(a)), getattr(np.linalg, name)(a)))):
            assert ours.dtype == theirs.dtype
            near(np.abs(ours.get()), np.abs(theirs), 100)
    with pytest.raises(TypeError, match="float16 is unsupported in linalg"):
        run(ad.asarray(whole.astype(np.float16)))
    for shape in ((), (3,), (2, 3) if name in ("cholesky", "inv", "det", "slogdet", "eigh", "eigvalsh") else (3,)):
        check(lambda xp, a: getattr(xp.linalg, name)(a), np.ones(shape))


def test_mixed_types():
    a, b = values(np.float32, (3, 3)), values(np.complex128, (3, 2))
    assert ad.linalg.solve(ad.asarray(a), ad.asarray(b)).dtype == np.complex128
    assert ad.linalg.solve(ad.asarray(a), ad.asarray(b.real.astype(np.float32))).dtype == np.float32
    assert ad.linalg.solve(ad.asarray(a), ad.asarray([1, 2, 3])).dtype == np.float64
    assert ad.linalg.eig(ad.eye(2, dtype=int)).eigenvectors.dtype == np.complex128
    with pytest.raises(TypeError, match="float16 is unsupported in linalg"):
        ad.linalg.eigvals(ad.eye(2, dtype=np.float16))


@pytest.mark.parametrize("shape", [(3, 3), (1, 1), (50, 50), (4, 3, 3), (2, 130, 130)], ids=str)
@by_field
def test_failures(dtype, shape):
    """One bad matrix in a stack is enough. The error comes with the data, and the session lives on."""
    a = np.broadcast_to(np.eye(shape[-1], dtype=dtype), shape).copy()
    a[(-1,) * len(shape)] = 0
    error = ad.linalg.LinAlgError
    assert issubclass(error, np.linalg.LinAlgError)
    x = ad.asarray(a)
    for run in (lambda: ad.linalg.inv(x), lambda: ad.linalg.solve(x, x), lambda: ad.linalg.inv(x) + 1):
        result = run()
        with pytest.raises(error, match="Singular matrix"):
            result.get()
    for bad in (x, -x):
        result = ad.linalg.cholesky(bad)
        with pytest.raises(error, match="Matrix is not positive definite"):
            result.get()
    for wrong in (np.nan, np.inf):
        x[(0,) * len(shape)] = wrong
        for name in ("svd", "svdvals", "eigh", "eigvalsh", "eig", "eigvals"):
            result = getattr(ad.linalg, name)(x)
            with pytest.raises(error, match="did not converge"):
                fetch(result)
        if len(shape) == 2:
            with pytest.raises(error, match="SVD did not converge in Linear Least Squares"):
                ad.linalg.lstsq(x, ad.ones(shape[-1]))
    assert float(ad.linalg.inv(ad.eye(2) * 2)[0, 0]) == 0.5


def test_bad_arguments():
    a = np.ones((2, 3))
    for body in (lambda xp, a: xp.linalg.solve(a, a), lambda xp, a: xp.linalg.solve(xp.eye(3), a),
                 lambda xp, a: xp.linalg.solve(xp.eye(3), a[0, 0]), lambda xp, a: xp.linalg.solve(xp.eye(2), a[0]),
                 lambda xp, a: xp.linalg.eigh(xp.eye(2), "x"), lambda xp, a: xp.linalg.eig(a),
                 lambda xp, a: xp.linalg.eigvals(a[0]), lambda xp, a: xp.linalg.qr(a, "no"),
                 lambda xp, a: xp.linalg.lstsq(a, a[0]), lambda xp, a: xp.linalg.lstsq(a[0], a[0]),
                 lambda xp, a: xp.linalg.norm(a, 7), lambda xp, a: xp.linalg.cond(a, 1),
                 lambda xp, a: xp.linalg.cond(a[:0]), lambda xp, a: xp.linalg.pinv(a, 1e-3, rtol=1e-3),
                 lambda xp, a: xp.linalg.matrix_rank(a, 1e-3, rtol=1e-3)):
        check(body, a)


def test_stacks_in_parallel():
    """Many small matrices are computed, each as if it were alone."""
    a = values(float, (1000, 12, 12)) + 4 * np.eye(12)
    x = ad.asarray(a)
    near(ad.linalg.inv(x).get(), np.linalg.inv(a), 300)
    w, v = fetch(ad.linalg.eigh(x))
    near(w, np.linalg.eigvalsh(a))
    q, r = fetch(ad.linalg.qr(x))
    near(q @ r, a)
    u, s, vh = fetch(ad.linalg.svd(x))
    near(u * s[:, None, :] @ vh, a)
