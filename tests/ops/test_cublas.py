"""BLAS's dense operations, against SciPy's BLAS and NumPy."""
import numpy as np
import pytest
from scipy.linalg import blas

import arrayd as ad
from arrayd import cublas

TYPES = ["float32", "float64", "complex64", "complex128"]
LETTERS = dict(zip(TYPES, "sdcz"))
OPS = {"N": lambda a: a, "T": lambda a: a.T, "H": lambda a: a.T.conj()}


def draw(shape, dtype, seed=1, order="C"):
    generator = np.random.default_rng(seed)
    values = generator.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * generator.standard_normal(shape)
    return np.asarray(values, dtype, order=order)


def close(got, want):
    got = got.get() if isinstance(got, ad.ndarray) else got
    tolerance = 1e-4 if np.asarray(want).dtype.char in "fF" else 1e-11
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
    assert np.asarray(got).dtype == np.asarray(want).dtype


def number(value, dtype, kind):
    """A number as a Python, NumPy or server scalar."""
    value = value if np.dtype(dtype).kind == "c" else value.real
    return {"python": value, "numpy": np.array(value), "server": ad.asarray(value)}[kind], np.dtype(dtype).type(value)


@pytest.mark.parametrize("dtype", TYPES)
def test_of_one_vector(dtype):
    letter, real = LETTERS[dtype], np.dtype(dtype).type(0).real.dtype
    x = draw(101, dtype)
    prefix = {"c": "sc", "z": "dz"}.get(letter, letter)
    index = getattr(blas, f"i{letter}amax")(x) + 1
    smallest = np.argmin(np.abs(x.real) + np.abs(x.imag)) + 1
    for out in (lambda kind: None, lambda kind: np.empty((), kind), lambda kind: ad.empty((), kind)):
        for name, want, kind in (("iamax", np.int32(index), "i4"), ("iamin", np.int32(smallest), "i4"),
                                 ("asum", real.type(getattr(blas, prefix + "asum")(x)), real),
                                 ("nrm2", real.type(getattr(blas, prefix + "nrm2")(x)), real)):
            to = out(kind)
            got = getattr(cublas, name)(ad.asarray(x), out=to)
            assert to is None or got is to
            close(got, want)


@pytest.mark.parametrize("kind", ["python", "numpy", "server"])
@pytest.mark.parametrize("dtype", TYPES)
def test_of_two_vectors(dtype, kind):
    x, y, (alpha, plain) = draw(50, dtype), draw(50, dtype, 2), number(1.5 - 2j, dtype, kind)
    a, b = ad.asarray(x), ad.asarray(y)
    cublas.axpy(alpha, a, b)
    close(b, plain * x + y)
    cublas.scal(alpha, b)
    close(b, plain * (plain * x + y))
    close(cublas.dotu(a, ad.asarray(y)), x @ y)
    close(cublas.dotc(a, ad.asarray(y)), np.vdot(x, y))
    if a.dtype.kind == "c":
        with pytest.raises(TypeError, match="float32, float64"):
            cublas.dot(a, b)
    else:
        close(cublas.dot(a, ad.asarray(y), out=np.empty((), dtype)), x @ y)


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("dtype", TYPES)
def test_of_a_matrix_and_vectors(dtype, order):
    m = draw((7, 5), dtype, 3, order)
    for kind in ("python", "numpy", "server"):
        (alpha, one), (beta, two) = number(1.5 - 2j, dtype, kind), number(0.5j + 3, dtype, kind)
        for trans, op in OPS.items():
            x, y = draw(op(m).shape[1], dtype, 4), draw(op(m).shape[0], dtype, 5)
            got = ad.asarray(y)
            assert cublas.gemv(trans, alpha, ad.asarray(m), ad.asarray(x), beta, got) is None
            close(got, one * (op(m) @ x) + two * y)
        x, y = draw(7, dtype, 6), draw(5, dtype, 7)
        for name, want in (("geru", one * np.outer(x, y) + m), ("gerc", one * np.outer(x, y.conj()) + m),
                           ("ger", one * np.outer(x, y) + m)):
            got = ad.asarray(m)
            if name == "ger" and got.dtype.kind == "c":
                with pytest.raises(TypeError):
                    cublas.ger(alpha, ad.asarray(x), ad.asarray(y), got)
            else:
                getattr(cublas, name)(alpha, ad.asarray(x), ad.asarray(y), got)
                close(got, want)


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("k", [0, 1, 3, 8])
def test_band(k, lower):
    a, x, y = draw((k + 1, 6), "float64", 8), draw(6, "float64", 9), draw(6, "float64", 10)
    want = blas.dsbmv(k, 1.5, a, x, beta=-2.0, y=y, lower=int(lower))
    got = ad.asarray(y)
    assert cublas.sbmv(k, 1.5, ad.asarray(a), ad.asarray(x), -2.0, got, lower=lower) is got
    close(got, want)


@pytest.mark.parametrize("orders", ["CC", "CF", "FC", "FF"])
@pytest.mark.parametrize("dtype", TYPES)
def test_products(dtype, orders):
    (alpha, one), (beta, two) = number(1.5 - 2j, dtype, "python"), number(0.5j + 3, dtype, "server")
    for transa, opa in OPS.items():
        for transb, opb in OPS.items():
            a, b = opa(draw((4, 3), dtype, 11)).copy(orders[0]), opb(draw((3, 5), dtype, 12)).copy(orders[1])
            c = draw((4, 5), dtype, 13, orders[0])
            close(cublas.gemm(transa, transb, ad.asarray(a), ad.asarray(b)), opa(a) @ opb(b))
            out = ad.asarray(c)
            assert cublas.gemm(transa, transb, ad.asarray(a), ad.asarray(b), out, alpha, beta) is out
            close(out, one * (opa(a) @ opb(b)) + two * c)
            d, e = opa(c).copy(orders[1]), opb(draw((4, 5), dtype, 14)).copy(orders[0])
            result = cublas.geam(transa, transb, alpha, ad.asarray(d), beta, ad.asarray(e))
            close(result, one * opa(d) + two * opb(e))
            assert result.flags.f_contiguous
            close(cublas.geam(transa, transb, alpha, ad.asarray(d), beta, ad.asarray(e), out), one * opa(d) + two * opb(e))


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("dtype", TYPES)
def test_a_triangle(dtype, lower):
    function, tri = getattr(blas, LETTERS[dtype] + "syrk"), np.tril if lower else np.triu
    for trans in "NT":
        a, c = draw((6, 4) if trans == "N" else (4, 6), dtype, 15), draw((6, 6), dtype, 16)
        want = function(2.0, a, trans=int(trans == "T"), lower=int(lower))
        close(cublas.syrk(trans, ad.asarray(a), alpha=2.0, lower=lower), tri(want))
        got = ad.asarray(c)
        cublas.syrk(trans, ad.asarray(a), out=got, alpha=2.0, beta=0.5, lower=lower)
        close(got, function(2.0, a, beta=0.5, c=c, trans=int(trans == "T"), lower=int(lower)))


@pytest.mark.parametrize("dtype", TYPES)
def test_diagonals(dtype):
    a = draw((3, 4), dtype, 17)
    for side, n in (("L", 3), ("R", 4)):
        x = draw(4 * n, dtype, 18)
        for incx in (1, 2, -1, -3, 0):
            d = np.array([x[(i if incx >= 0 else i - n + 1) * incx] for i in range(n)])
            want = d[:, None] * a if side == "L" else a * d
            close(cublas.dgmm(side, ad.asarray(a), ad.asarray(x), incx=incx), want)
        out = ad.empty((3, 4), dtype)
        assert cublas.dgmm(side, ad.asarray(a), ad.asarray(x), out) is out
        close(out, x[:n, None] * a if side == "L" else a * x[:n])
        with pytest.raises(ValueError, match="at least"):
            cublas.dgmm(side, ad.asarray(a), ad.asarray(x), incx=6)
    with pytest.raises(ValueError, match="side"):
        cublas.dgmm("M", ad.asarray(a), ad.asarray(x))


@pytest.mark.parametrize("dtype", TYPES)
def test_systems(dtype):
    a = draw((3, 5, 5), dtype, 19) + 5 * np.eye(5, dtype=dtype)
    for shape in ((3, 5), (3, 5, 2)):
        b = draw(shape, dtype, 20)
        want = np.linalg.solve(a, b if len(shape) == 3 else b[..., None]).reshape(shape)
        close(cublas.batched_gesv(ad.asarray(a), ad.asarray(b)), want)
    close(cublas.batched_gesv(ad.asarray(a[0]), ad.asarray(b[0])), np.linalg.solve(a[0], b[0]))
    for wrong in ((3, 4), (2, 5), (5,)):
        with pytest.raises(ValueError, match="batched_gesv"):
            cublas.batched_gesv(ad.asarray(a), ad.zeros(wrong, dtype))
    before = cublas.get_batched_gesv_limit()
    cublas.set_batched_gesv_limit(7)
    assert cublas.get_batched_gesv_limit() == 7
    cublas.set_batched_gesv_limit(before)


def test_errors():
    x, y, m = ad.ones(4), ad.ones(5), ad.ones((4, 5))
    for error, call in ((ValueError, lambda: cublas.axpy(1, x, y)), (ValueError, lambda: cublas.dot(x, y)),
                        (ValueError, lambda: cublas.gemv("N", 1, m, x, 0, y)), (TypeError, lambda: cublas.gemv("Q", 1, m, y, 0, x)),
                        (ValueError, lambda: cublas.gemm("N", "N", m, m)), (ValueError, lambda: cublas.asum(m)),
                        (TypeError, lambda: cublas.asum(np.ones(3))), (TypeError, lambda: cublas.asum(ad.arange(3))),
                        (TypeError, lambda: cublas.axpy(1, x, x.astype("float32"))),
                        (TypeError, lambda: cublas.axpy(1j, x, x)),
                        (ValueError, lambda: cublas.gemm("N", "T", m, m, out=m)),
                        (ValueError, lambda: cublas.syrk("N", m, out=m))):
        with pytest.raises(error):
            call()
