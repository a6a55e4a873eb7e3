"""arrayd.scipy.sparse.linalg and csgraph against SciPy and dense linear algebra."""
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as ss
import scipy.sparse.csgraph
import scipy.sparse.linalg as sl

import arrayd as ad
from arrayd.scipy import sparse as sp
from arrayd.scipy.sparse import csgraph, linalg
from oracle import seed

N = 60
TYPES = (np.float32, np.float64, np.complex64, np.complex128)


def near(ours, theirs, tolerance):
    np.testing.assert_allclose(ad.asnumpy(ours), theirs, rtol=tolerance, atol=tolerance)


def make(dtype, hermitian):
    """A well-conditioned matrix of SciPy's and a right side."""
    rng = seed("systems", str(np.dtype(dtype)))
    a = ss.random(N, N, 0.1, random_state=rng)
    if np.dtype(dtype).kind == "c":
        a = a + 1j * ss.random(N, N, 0.1, random_state=rng)
    a = a @ a.conj().T + 3 * ss.eye(N) if hermitian else a + 4 * ss.eye(N)
    return a.tocsr().astype(dtype), rng.standard_normal(N).astype(dtype)


@pytest.mark.parametrize("name", ("cg", "cgs", "bicgstab", "gmres", "minres"))
def test_systems(name):
    solver = getattr(linalg, name)
    for dtype in TYPES:
        single = np.dtype(dtype).char in "fF"
        a, b = make(dtype, name in ("cg", "minres"))
        x = np.linalg.solve(a.toarray().astype(np.complex128), b)
        jacobi = sp.diags([1 / ad.asarray(a.diagonal())], [0])
        for A in (sp.csr_matrix(a), sp.csc_matrix(a), ad.asarray(a.toarray()), linalg.aslinearoperator(sp.coo_matrix(a))):
            for M in (None, jacobi):
                found, info = solver(A, ad.asarray(b), M=M, rtol=1e-6 if single else 1e-11)
                assert info == 0
                near(found, x, 1e-3 if single else 1e-7)
        found, info = solver(sp.csr_matrix(a), ad.asarray(b), x0=ad.asarray(x.astype(dtype)), rtol=1e-3, maxiter=1)
        near(found, x, 1e-2)
        steps = []
        solver(sp.csr_matrix(a), ad.asarray(b), callback=steps.append)
        assert steps
    found, info = solver(sp.csr_matrix(a), ad.zeros(N, dtype))
    assert info == 0 and not found.any()
    for wrong in (lambda: solver(ad.ones((3, 4)), ad.ones(3)), lambda: solver(sp.csr_matrix(a), ad.ones(N + 1)),
                  lambda: solver(sp.csr_matrix(a), ad.asarray(b), x0=ad.ones(3)),
                  lambda: solver(sp.csr_matrix(a), ad.asarray(b), M=ad.eye(3))):
        with pytest.raises(ValueError):
            wrong()


def make_grid(dtype, hermitian):
    """A grid's matrix, for which solvers take some dozens of iterations, and a right side."""
    one = ss.diags([-1.0, 2.1, -1.0 if hermitian else -0.7], [-1, 0, 1], (20, 20))
    rng = seed("grid")
    b = rng.standard_normal(400)
    a, b = (ss.kronsum(one, one), b) if np.dtype(dtype).kind == "f" else (
        ss.kronsum(one, one) + (0 if hermitian else 0.1j) * ss.eye(400), b + 1j * rng.standard_normal(400))
    return a.tocsr().astype(dtype), b.astype(dtype)


def run_solver(solve, a, b, name, **options):
    """The solution, the info and how often the callback was called."""
    told = []
    more = {"callback_type": "pr_norm"} if name == "gmres" else {}
    x, info = solve(a, b, callback=lambda x: told.append(1), **more, **options)
    return ad.asnumpy(x), info, len(told)


@pytest.mark.parametrize("name", ("cg", "cgs", "bicgstab", "gmres", "minres"))
@pytest.mark.parametrize("dtype", (np.float64, np.complex128))
def test_iterations_ahead(name, dtype, monkeypatch):
    """Iterations that are sent before the norm of an earlier one is known change neither the solution nor their number."""
    from arrayd.scipy.sparse.linalg import _iterative
    a, b = make_grid(dtype, name in ("cg", "minres"))
    ours, theirs = getattr(linalg, name), getattr(sl, name)
    remote = sp.csr_matrix(a), ad.asarray(b)
    waits, choose = [], _iterative._Pace.choose
    monkeypatch.setattr(_iterative._Pace, "choose", lambda self, limit: waits.append(1) or choose(self, limit))
    for options in ({"rtol": 1e-3}, {"rtol": 1e-9}, {"maxiter": 1}, {"maxiter": 2}, {"maxiter": 3}):
        waits.clear()
        x, info, count = run_solver(ours, *remote, name, **options)
        if name != "minres" or dtype == np.float64:  # SciPy's minres drops imaginary parts
            wanted = run_solver(theirs, a, b, name, **options)
            assert (info, count) == wanted[1:]
            near(x, wanted[0], 1e-7 if "maxiter" in options else 10 * options["rtol"])
        assert options.get("rtol") != 1e-9 or len(waits) < count / 2
        with monkeypatch.context() as one_by_one:
            one_by_one.setattr(_iterative, "_MOST_AHEAD", 1)
            slow = run_solver(ours, *remote, name, **options)
        np.testing.assert_array_equal(x, slow[0])
        assert (info, count) == slow[1:]


def test_pace():
    """Most of the iterations that seem to be left are sent, and of long vectors one."""
    from arrayd.scipy.sparse.linalg._iterative import _Pace
    pace = _Pace(1000)
    pace.norms = [1.0, 0.1]
    assert pace.choose(1e-9) == 6 and pace.choose(1e-90) == 16 and pace.choose(1.0) == 1
    pace.norms = []
    assert pace.choose(1e-3) == 4
    for norms in ([1.0], [0.0, 0.0], [1.0, 2.0], [np.nan, 1.0], [1.0, np.nan], [np.inf, 1.0], [1.0, 0.0]):
        pace.norms = norms
        assert pace.choose(1e-3) == pace.choose(0.0) == 1
    pace.norms = [1.0] * 20
    assert pace.choose(1e-3) == 3
    assert _Pace(1 << 24).choose(1e-9) == 1 and _Pace(0).choose(0.0) == 4


def test_systems_with_odd_numbers():
    """NaN, zeros and numbers too large to be squared end solvers as they end SciPy's, or at least end them."""
    a, b = make_grid(np.float64, True)
    for name in ("cg", "cgs", "bicgstab", "gmres", "minres"):
        solver = getattr(linalg, name)
        x, info = solver(sp.csr_matrix(a), ad.asarray(np.where(np.arange(400) == 7, np.nan, b)), maxiter=5)
        assert np.isnan(x.get()).any() or info
        x, info = solver(sp.csr_matrix((400, 400)), ad.asarray(b), maxiter=5)
        assert info != 0 or name == "minres"
        x, info = solver(sp.csr_matrix((0, 0)), ad.zeros(0))
        assert (x.shape, info) == ((0,), 0)
    with pytest.raises(ValueError):
        linalg.minres(sp.csr_matrix(a), ad.asarray(b), M=sp.diags([-ad.ones(400)], [0]))


def test_least_squares():
    rng = seed("least squares")
    a, b = ss.random(50, 20, 0.3, random_state=rng), rng.standard_normal(50)
    for A in (sp.csr_matrix(a), sp.csc_matrix(a), ad.asarray(a.toarray())):
        for damp in (0.0, 1.5):
            for x0 in (None, np.ones(20)):
                options = {"damp": damp, "atol": 1e-12, "btol": 1e-12, "x0": x0}
                ours = linalg.lsqr(A, ad.asarray(b), **options)
                theirs = sl.lsqr(a, b, **options)
                near(ours[0], theirs[0], 1e-6)
                options["maxiter"] = 200
                near(linalg.lsmr(A, ad.asarray(b), **options)[0], sl.lsmr(a, b, **options)[0], 1e-6)
    for name in ("lsqr", "lsmr"):
        ours, theirs = getattr(linalg, name), getattr(sl, name)
        for right in (b, np.zeros(50)):
            few = right.astype("float32")
            assert ours(sp.csr_matrix(a.astype("float32")), ad.asarray(few))[0].dtype == theirs(a.astype("float32"), few)[0].dtype
        with pytest.raises(ValueError):
            ours(sp.csr_matrix(a), ad.ones(51))


def test_least_squares_of_zeros_from_a_first_guess():
    """Norms relative to b have no value there: SciPy ends, and warns."""
    a = ss.csr_matrix(np.eye(4) + 1)
    ours = linalg.lsqr(sp.csr_matrix(a), ad.zeros(4), x0=ad.ones(4))
    with np.errstate(all="ignore"):
        theirs = sl.lsqr(a, np.zeros(4), x0=np.ones(4))
    assert ours[1:3] == theirs[1:3]
    near(ours[0], theirs[0], 1e-12)


def test_a_first_guess_of_lsmr_is_not_its_damp():
    with pytest.raises(TypeError, match=r"damp must be a number, not an array of shape \(3,\); a first guess is given as x0="):
        linalg.lsmr(ad.eye(3), ad.ones(3), ad.zeros(3))


@pytest.mark.parametrize("name", ("lsqr", "lsmr"))
def test_steps_of_least_squares_are_taken_ahead(name, monkeypatch):
    """Of a matrix several are waited for at once; a function of the caller's is not called for steps that are not used."""
    from arrayd.scipy.sparse.linalg import _least_squares
    a, b = ss.random(60, 200, 0.2, random_state=1).tocsr() + ss.eye(60, 200), seed("steps").standard_normal(60)
    waits, take_steps = [], _least_squares._Bidiagonalisation.take_steps
    monkeypatch.setattr(_least_squares._Bidiagonalisation, "take_steps", lambda *args: waits.append(1) or take_steps(*args))
    ours = getattr(linalg, name)(sp.csr_matrix(a), ad.asarray(b))
    theirs = getattr(sl, name)(a, b)
    assert ours[1:3] == theirs[1:3] and len(waits) < ours[2] / 3
    near(ours[0], theirs[0], 1e-6)
    near(float(ours[4 if name == "lsqr" else 7]), theirs[4 if name == "lsqr" else 7], 1e-6)
    calls, matrix = [], sp.csr_matrix(a)
    operator = linalg.LinearOperator(a.shape, lambda x: calls.append(1) or matrix @ x, lambda x: matrix.T @ x, dtype=np.float64)
    assert getattr(linalg, name)(operator, ad.asarray(b))[2] == ours[2] == len(calls)


@pytest.mark.parametrize("dtype", TYPES)
def test_eigenvalues(dtype):
    tolerance = 1e-4 if np.dtype(dtype).char in "fF" else 1e-9
    a, _ = make(dtype, True)
    a = a - 6 * ss.eye(N, dtype=a.dtype)  # values of both signs
    values = np.linalg.eigvalsh(a.toarray())
    expected = {"LA": values[-5:], "SA": values[:5], "LM": np.sort(values[np.argsort(abs(values))[-5:]])}
    for which, wanted in expected.items():
        for ncv in (None, 12):
            w, v = linalg.eigsh(sp.csr_matrix(a.astype(dtype)), k=5, which=which, ncv=ncv)
            near(w, wanted, tolerance)
            near(sp.csr_matrix(a.astype(dtype)) @ v - v * w, 0, 20 * tolerance)
    b = ss.random(40, 25, 0.3, random_state=1).astype(dtype)
    for m in (b, b.T):
        u, s, vh = linalg.svds(sp.csr_matrix(m), k=4)
        near(s, np.linalg.svd(m.toarray(), compute_uv=False)[:4][::-1], tolerance)
        near(sp.csr_matrix(m) @ vh.conj().T - u * s, 0, 20 * tolerance)


@pytest.mark.parametrize("dtype", TYPES)
def test_eigenvalues_in_invariant_subspaces(dtype):
    """The products of a vector are soon dependent. The steps that were sent meanwhile are taken again."""
    tolerance = 1e-4 if np.dtype(dtype).char in "fF" else 1e-9
    v = np.linalg.qr(np.random.default_rng(3).standard_normal((60, 3)))[0]
    for a in (np.zeros((60, 60)), np.eye(60), np.diag(np.arange(60) % 4.0), v @ np.diag([5.0, -7.0, 3.0]) @ v.T):
        w, x = linalg.eigsh(sp.csr_matrix(a.astype(dtype)), k=3, v0=ad.ones(60, dtype))
        values = np.linalg.eigvalsh(a)
        near(np.sort(abs(w.get())), np.sort(abs(values))[-3:], tolerance)
        near(ad.asarray(a.astype(dtype)) @ x - x * w, 0, 20 * tolerance)
        near(x.conj().T @ x, np.eye(3), 20 * tolerance)


def test_eigenvalues_by_lobpcg():
    rng = np.random.default_rng(2)
    a, _ = make(np.float64, True)
    for largest in (True, False):
        w, v = linalg.lobpcg(sp.csr_matrix(a), ad.asarray(rng.standard_normal((N, 3))), tol=1e-8, maxiter=300,
                             largest=largest)
        values = np.linalg.eigvalsh(a.toarray())
        near(w, values[::-1][:3] if largest else values[:3], 1e-6)
    with pytest.raises(ValueError):
        linalg.eigsh(sp.csr_matrix(a), k=N)


def count_requests(function, *args, **kwargs):
    before = ad.stat()["requests"]
    function(*args, **kwargs)
    return ad.stat()["requests"] - before


def test_iterations_wait_once():
    """An iteration asks for one answer, with all that it finds out of the vectors; an exponential's terms ask for none."""
    (a, _), x = make_grid(np.float64, True), ad.asarray(seed("waits").standard_normal((400, 3)))
    a = sp.csr_matrix(a)
    linalg.lobpcg(a, x, maxiter=1)
    few, many = (count_requests(linalg.lobpcg, a, x, tol=0, maxiter=n) for n in (5, 15))
    assert many - few == 10
    few, many = (count_requests(linalg.expm_multiply, a * t, x) for t in (0.1, 5.0))
    assert many == few
    few, many = (count_requests(linalg.cg, a, x[:, 0], rtol=0, maxiter=n) for n in (1, 3))
    assert many == few


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("largest", (True, False))
def test_pencils_by_lobpcg(dtype, largest):
    """Values and vectors are those of the dense pencil, with another matrix, a preconditioner, constraints, and without."""
    rng = seed("lobpcg", str(np.dtype(dtype)), largest)
    (a, _), x = make_grid(dtype, True), rng.standard_normal((400, 4))
    if a.dtype.kind == "c":
        a = (a + ss.diags([1j, -1j], [1, -1], a.shape)).tocsr().astype(dtype)
        x = x + 1j * rng.standard_normal(x.shape)
    n, tolerance = a.shape[0], 5e-3 if a.dtype.char in "fF" else 1e-5
    b, m = ss.diags(np.linspace(1, 2, n)).tocsr().astype(dtype), ss.diags(1 / a.diagonal()).tocsr()
    for B in (None, b):
        values, vectors = scipy.linalg.eigh(a.toarray().astype(np.complex128), None if B is None else B.toarray())
        values, vectors = (values[::-1], vectors[:, ::-1]) if largest else (values, vectors)
        for M in (None, m):
            for Y in (None, vectors[:, :2].astype(dtype) if a.dtype.kind == "c" else None):
                w, v = linalg.lobpcg(sp.csr_matrix(a), ad.asarray(x.astype(dtype)), *(
                    None if one is None else sp.csr_matrix(one) for one in (B, M)), None if Y is None else ad.asarray(Y),
                    tol=1e-3 if a.dtype.char in "fF" else 1e-5, maxiter=300, largest=largest)
                assert w.dtype.char == a.dtype.char.lower() and v.dtype == dtype and v.flags.c_contiguous
                near(w, values[:4] if Y is None else values[2:6], tolerance)
                v, product = v.get(), v.get() if B is None else b @ v.get()
                near(v.conj().T @ product, np.eye(4), 1e-4 if a.dtype.char in "fF" else 1e-9)
                assert np.abs(a @ v - product * w.get()).max() < 10 * tolerance


def test_lobpcg_leaves_out_what_is_found():
    """An exact vector has a residual of zeros, with which the others would be dependent; a guess of zeros is refused."""
    a = ss.diags(np.arange(1.0, 61)).tocsr()
    x = np.random.default_rng(1).standard_normal((60, 3))
    x[:, 0] = np.eye(60)[59]
    x[59, 1:] = 0
    w, v, values, norms = linalg.lobpcg(sp.csr_matrix(a), ad.asarray(x), tol=1e-7, maxiter=100, retLambdaHistory=True,
                                        retResidualNormsHistory=True)
    near(w, [60, 59, 58], 1e-9)
    near(a @ v.get() - v.get() * w.get(), 0, 1e-6)
    assert len(values) == len(norms) and float(norms[-1].max()) <= 1e-7 and all(one.shape == (3,) for one in values + norms)
    w, v = linalg.lobpcg(sp.csr_matrix(a), ad.asarray(np.eye(60)[:, 57:]), tol=0)
    near(w, [60, 59, 58], 0)
    assert linalg.lobpcg(sp.csr_matrix(a), ad.asarray(x.astype("f4")), tol=1e-7)[1].dtype == np.float64
    with pytest.raises(ValueError, match="dependent"):
        linalg.lobpcg(sp.csr_matrix(a), ad.eye(60, 2, k=-1) * ad.asarray([1, 0]))


def test_residuals_that_nearly_vanish():
    """Where a step of Lanczos' method all but meets an invariant subspace, its residual is made orthogonal once more."""
    q = np.linalg.qr(np.random.default_rng(5).standard_normal((80, 80)))[0]
    for small in (1e-5, 1e-8, 1e-11):
        values = np.concatenate([np.linspace(5, 9, 6), small * np.linspace(1, 2, 74)])
        a = (q * values) @ q.T
        w, v = linalg.eigsh(ad.asarray((a + a.T) / 2), k=4, v0=ad.asarray(q[:, :6].sum(axis=1) + small * q[:, 6:].sum(axis=1)))
        near(w, values[2:6], 1e-9)
        near(v.T @ v, np.eye(4), 1e-9)


def test_triangles_and_factors():
    for dtype in TYPES:
        tolerance = 1e-3 if np.dtype(dtype).char in "fF" else 1e-8
        a, b = make(dtype, False)
        for lower in (True, False):
            part = (ss.tril if lower else ss.triu)(a).tocsr()
            for unit in (True, False):
                dense = part.toarray()
                if unit:
                    np.fill_diagonal(dense, 1)
                for right in (b, np.stack([b, 2 * b, b + 1], axis=1)):
                    for format in ("csr", "csc", "coo"):
                        found = linalg.spsolve_triangular(sp.csr_matrix(part).asformat(format), ad.asarray(right), lower,
                                                          unit_diagonal=unit)
                        near(dense @ found.get(), right, tolerance * 10)
        found = linalg.splu(sp.csc_matrix(a))
        for trans, m in (("N", a), ("T", a.T), ("H", a.conj().T)):
            near(m @ found.solve(ad.asarray(b), trans).get(), b, tolerance)
        near(a @ linalg.spsolve(sp.csr_matrix(a), ad.asarray(b)).get(), b, tolerance)
        for right in (b.reshape(N, 1), np.stack([b, 2 * b], axis=1), b.real.astype(np.int8), b.astype(np.complex128)):
            found = linalg.spsolve(sp.csr_matrix(a), ad.asarray(right))
            assert found.dtype == np.result_type(a.dtype, right.dtype) and found.shape == sl.spsolve(a, right).shape
            near(a @ found.get(), right.ravel() if right.shape == (N, 1) else right, tolerance)
        near(a @ linalg.factorized(sp.csr_matrix(a))(ad.asarray(b)).get(), b, tolerance)
        near(linalg.spilu(sp.csr_matrix(a)).solve(ad.asarray(b)), sl.spilu(a.tocsc()).solve(b), tolerance)
    with pytest.raises(np.linalg.LinAlgError):
        linalg.spsolve_triangular(sp.csr_matrix((3, 3)), ad.ones(3))


def test_long_dependencies():
    """Every row waits for the one before it, or for all of them."""
    n = 3000
    chain = ss.diags([np.full(n, 2.0), np.full(n - 1, -1.0)], [0, -1]).tocsr()
    fan = ss.csr_matrix(np.tril(np.ones((200, 200))))
    for a in (chain, fan):
        x = np.random.default_rng(1).standard_normal(a.shape[0])
        near(linalg.spsolve_triangular(sp.csr_matrix(a), ad.asarray(a @ x)), x, 1e-8)
        near(linalg.spsolve_triangular(sp.csr_matrix(a.T.tocsr()), ad.asarray(a.T @ x), lower=False), x, 1e-8)


def test_norms_and_exponentials():
    a, b = make(np.float64, False)
    for axis in (None, 0, 1):
        for ord in (None, 1, np.inf, -np.inf):
            near(linalg.norm(sp.csr_matrix(a), ord, axis), sl.norm(a, ord, axis), 1e-12)
    near(linalg.expm_multiply(sp.csr_matrix(a), ad.asarray(b)), sl.expm_multiply(a, b), 1e-8)
    near(linalg.matrix_power(sp.csr_matrix(a), 3).toarray(), (a @ a @ a).toarray(), 1e-10)
    near(linalg.expm_multiply(sp.csr_matrix(-a), ad.asarray(b), 0, 1, 5), sl.expm_multiply(-a, b, 0, 1, 5), 1e-8)


def test_operators():
    a, b = make(np.complex128, False)
    A = linalg.aslinearoperator(sp.csr_matrix(a))
    x = ad.asarray(b)
    B = linalg.LinearOperator((N, N), matvec=lambda v: A @ v, rmatvec=lambda v: A.H @ v, dtype=np.complex128)
    for op, m in ((A, a), (B, a), (A + B, 2 * a), (A * B, a @ a), (2j * A, 2j * a), (A ** 2, a @ a), (A.T, a.T),
                  (B.H, a.conj().T), (-B, -a), ((A + B).H, 2 * a.conj().T)):
        near(op @ x, m @ b, 1e-9)
        near(op.rmatvec(x), m.conj().T @ b, 1e-9)
        near(op @ ad.stack([x, x], axis=1), m @ np.stack([b, b], axis=1), 1e-9)
    with pytest.raises(ValueError):
        A @ ad.ones(3)


def test_components():
    for density in (0.0, 0.005, 0.01, 0.03):
        a = ss.random(200, 200, density, random_state=3)
        for options in ({}, {"directed": False}, {"connection": "strong"}):
            count, labels = csgraph.connected_components(sp.csr_matrix(a), **options)
            wanted, expected = scipy.sparse.csgraph.connected_components(a, **options)
            assert count == wanted
            near(labels, expected, 0)
    path = ss.diags([np.ones(999)], [1])  # labels have a long way to go
    assert csgraph.connected_components(sp.csr_matrix(path), return_labels=False) == 1
