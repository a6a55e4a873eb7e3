"""arrayd.cupyx's lapack, cusolver, cusparse, signal and linalg.sparse against NumPy and SciPy."""
import numpy as np
import pytest
import scipy.signal
import scipy.sparse

import arrayd as ad
from arrayd.cupyx import cusolver, cusparse, lapack, signal
from arrayd.cupyx.linalg.sparse import lschol
from arrayd.scipy import sparse
from oracle import seed


def draw(*shape, dtype="d"):
    rng = seed("solvers", shape, dtype)
    a = rng.standard_normal(shape)
    return (a + 1j * rng.standard_normal(shape) if dtype in "FD" else a).astype(dtype)


def near(ours, theirs, tolerance=None):
    tolerance = tolerance or (1e-3 if np.asarray(theirs).dtype.char in "fF" else 1e-9)
    np.testing.assert_allclose(ad.asnumpy(ours), theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", "fdFD")
def test_dense_systems(dtype):
    a, b, tall = draw(4, 4, dtype=dtype), draw(4, 2, dtype=dtype), draw(6, 4, dtype=dtype)
    for right in (b, b[:, 0].copy()):
        x = ad.asfortranarray(ad.asarray(right))
        lapack.gesv(ad.asarray(a), x)
        near(x, np.linalg.solve(a, right))
        near(cusolver.gesv(ad.asarray(a), ad.asarray(right)), np.linalg.solve(a, right))
        near(lapack.gels(ad.asarray(tall.T.conj().copy()), ad.asarray(right)),
             np.linalg.lstsq(tall.T.conj(), right, rcond=None)[0])
        many = np.concatenate([right, right[:2]])
        near(cusolver.gels(ad.asarray(tall), ad.asarray(many)), np.linalg.lstsq(tall, many, rcond=None)[0])
    definite = a @ a.T.conj() + 4 * np.eye(4, dtype=dtype)
    near(lapack.posv(ad.asarray(definite), ad.asarray(b)), np.linalg.solve(definite, b))
    stack = np.stack([definite, 2 * definite])
    near(lapack.posv(ad.asarray(stack), ad.asarray(np.stack([b, b]))), np.linalg.solve(stack, np.stack([b, b])))
    factor = np.linalg.cholesky(definite)
    near(lapack.potrs(ad.asarray(factor), ad.asarray(b[:, 0].copy()), True), np.linalg.solve(definite, b[:, 0]))
    u, s, v = (one.get() for one in cusolver.gesvdj(ad.asarray(tall), full_matrices=False))
    near((u * s) @ v.T.conj(), tall)
    near(cusolver.gesvda(ad.asarray(tall), compute_uv=False), np.linalg.svd(tall, compute_uv=False))
    near(cusolver.syevj(ad.asarray(definite), with_eigen_vector=False), np.linalg.eigvalsh(definite))
    for wrong in (lambda: lapack.gesv(ad.asarray(tall), ad.asarray(b)), lambda: lapack.gels(ad.asarray(tall), ad.asarray(b)),
                  lambda: cusolver.gesvda(ad.asarray(tall.T.copy())), lambda: cusolver.syevj(ad.asarray(a), "X")):
        with pytest.raises(ValueError):
            wrong()
    with pytest.raises(np.linalg.LinAlgError):
        lapack.posv(ad.asarray(tall), ad.asarray(b))
    assert cusolver.check_availability("gesvdj")


def test_sparse_matrices():
    a, b = (scipy.sparse.random(6, 6, 0.4, "csr", rng=seed("sparse", n)) for n in range(2))
    x, y, dense = draw(6), draw(6), np.asfortranarray(draw(6, 3))
    s, t = sparse.csr_matrix(a), sparse.csr_matrix(b)
    for transa in (False, True):
        op = a.T if transa else a
        near(cusparse.spmv(s, ad.asarray(x), ad.asarray(y), 2, 3, transa), 2 * (op @ x) + 3 * y)
        near(cusparse.csrmm(s, ad.asfortranarray(ad.asarray(dense)), alpha=2, transa=transa), 2 * (op @ dense))
        near(cusparse.csrgemm(s, t, transa).toarray(), (op @ b).toarray())
    near(cusparse.csrgeam2(s, t, 2, 3).toarray(), (2 * a + 3 * b).toarray())
    near(cusparse.csrgemm2(s, t, s, 2, 3).toarray(), (2 * a @ b + 3 * a).toarray())
    near(cusparse.csc2dense(cusparse.csr2csc(s)), a.toarray())
    near(cusparse.denseToSparse(ad.asarray(a.toarray()), "coo").toarray(), a.toarray())
    kept = a.copy()
    kept.data[abs(kept.data) <= 0.5] = 0
    kept.eliminate_zeros()
    found = cusparse.csr2csr_compress(s, 0.5)
    near(found.toarray(), kept.toarray())
    assert found.nnz == kept.nnz
    coo = sparse.coo_matrix(a.tocoo())
    cusparse.coosort(coo, "c")
    assert (np.diff(coo.col.get()) >= 0).all()
    near(coo.toarray(), a.toarray())
    lower = (scipy.sparse.tril(a) + 3 * scipy.sparse.eye(6)).tocsr()
    triangle, right = sparse.csr_matrix(lower), ad.asarray(dense)
    for transa, op in (("N", lower), ("T", lower.T)):
        near(cusparse.spsm(triangle, right, 2.0, transa=transa), np.linalg.solve(op.toarray(), 2 * dense))
    cusparse.csrsm2(triangle, right)
    near(right, np.linalg.solve(lower.toarray(), dense))
    definite = (a @ a.T + scipy.sparse.eye(6)).tocsr()
    near(lschol(sparse.csr_matrix(definite), ad.asarray(x)), np.linalg.solve(definite.toarray(), x))
    near(cusolver.csrlsvqr(sparse.csr_matrix(definite), ad.asarray(x)), np.linalg.solve(definite.toarray(), x))
    for wrong, error in ((lambda: cusparse.spmv(s, ad.asarray(x[:3])), ValueError),
                         (lambda: cusparse.csrgeam(s, t.tocoo()), TypeError),
                         (lambda: cusparse.spmm(s, ad.asarray(draw(6, 3))), ValueError),
                         (lambda: cusparse.denseToSparse(ad.ones((2, 2)), "dok"), TypeError),
                         (lambda: cusolver.csrlsvqr(s, ad.asarray(x.astype("f"))), TypeError)):
        with pytest.raises(error):
            wrong()


def test_signals():
    x, b = draw(60), draw(5)
    near(signal.firfilter(ad.asarray(b), ad.asarray(x)), scipy.signal.lfilter(b, 1, x))
    near(signal.firfilter_zi(ad.asarray(b)), scipy.signal.lfilter_zi(b, 1))
    near(signal.firfilter2(ad.asarray(b), ad.asarray(x)), scipy.signal.filtfilt(b, 1, x))
    near(signal.freq_shift(ad.asarray(x), 3, 100), x * np.exp(-2j * np.pi * 3 / 100 * np.arange(60)))
    near(signal.real_cepstrum(ad.asarray(x)), np.fft.ifft(np.log(abs(np.fft.fft(x)))).real)
    spectrum = abs(np.fft.fft(signal.minimum_phase(ad.asarray(x)).get()))
    near(spectrum, abs(np.fft.fft(x)), 1e-6)
    two, three = draw(3, 4), draw(3, 4, 2)
    places = range(60 - 4 + 1)
    near(signal.convolve1d2o(ad.asarray(x), ad.asarray(two)), [
        sum(x[i + 2 - j] * x[i + 3 - k] * two[j, k] for j in range(3) for k in range(4)) for i in places])
    near(signal.convolve1d3o(ad.asarray(x), ad.asarray(three)), [
        sum(x[i + 2 - j] * x[i + 3 - k] * x[i + 1 - n] * three[j, k, n]
            for j in range(3) for k in range(4) for n in range(2)) for i in places])
    h = draw(12)
    rows = x.reshape(15, 4)[:, ::-1]
    y = sum(np.pad(rows, ((tap, 0), (0, 0)))[:15] * h.reshape(3, 4)[tap] for tap in range(3))
    near(signal.channelize_poly(ad.asarray(x), ad.asarray(h), 4), np.fft.fft(y).conj().T)


def test_radar():
    pulses, sent = draw(5, 40), draw(40)
    near(signal.pulse_compression(ad.asarray(pulses), ad.asarray(sent)),
         np.fft.ifft(np.fft.fft(pulses) * np.fft.fft(sent).conj()).real)
    near(signal.pulse_doppler(ad.asarray(pulses), "hann"),
         np.fft.fft(pulses * scipy.signal.get_window("hann", 5, False)[:, None], axis=0))
    field = abs(draw(20, 18)).astype("f")
    field[10, 9] = 500
    threshold, found = (one.get() for one in signal.ca_cfar(ad.asarray(field), (1, 2), (3, 2)))
    box, inner = field[6:15, 5:14], field[9:12, 7:12]
    count = box.size - inner.size
    near(threshold[10, 9], (box.sum() - inner.sum()) / count * signal.cfar_alpha(1e-3, count), 1e-3)
    assert found[10, 9] and not threshold[:4].any()
    line, _ = signal.ca_cfar(ad.asarray(field[0]), 1, 2)
    near(line.get()[5], (field[0, 2:9].sum() - field[0, 4:7].sum()) / 4 * signal.cfar_alpha(1e-3, 4), 1e-3)
    array, direction = draw(3, 50, dtype="D"), draw(3, dtype="D")
    weights = signal.mvdr(ad.asarray(array), ad.asarray(direction)).get()
    near(direction.conj() @ weights, 1)
    for wrong in (lambda: signal.ca_cfar(ad.ones(4), 1, 1), lambda: signal.mvdr(ad.ones((5, 3)), ad.ones(5)),
                  lambda: signal.pulse_compression(ad.ones((2, 4)), ad.ones(4), window=ad.ones(3))):
        with pytest.raises(ValueError):
            wrong()
