"""Measure many functions of SciPy on the CPU backend beside SciPy's own, one thread each: widely.py [--build build/release]
[--only PART] [--above 1.1] [--markdown PAGE]. Each line has milliseconds of processor time of arrayd's worker, of the client
and of SciPy, and the ratio of the first two together to SciPy's: the least of several rounds in turn. At the end the lines
above a ratio come again, in its order."""
import argparse
import datetime
import importlib
import os
import pathlib
import re
import statistics
import tempfile
import time
import warnings

import numpy
import scipy
import scipy.sparse

import bench
from fft import TOP, worker_time

BEGIN, END = "<!-- widely: begin -->", "<!-- widely: end -->"
ROUNDS, LONGEST = 7, 1.0 # rounds of a case, and seconds after which there are no more

# A module and expressions of its functions. Names of operands are those of make_operands.
CASES = {
    "special": """
        erf(x); erfc(x); erfcx(x); erfinv(unit); erfcinv(p); ndtr(x); ndtri(p); log_ndtr(x); gamma(x); gammaln(x); rgamma(x)
        digamma(x); loggamma(x); gammainc(p2, q2); gammaincc(p2, q2); gammaincinv(p2, u2); beta(p2, q2); betaln(p2, q2)
        betainc(p2, q2, u2); betaincinv(p2, q2, u2); binom(p2, q2); poch(p2, q2); i0(x); i0e(x); i1(x); i1e(x); j0(x); j1(x)
        y0(p)
        y1(p); k0(p); k0e(p); k1(p); k1e(p); yn(2, p2); spherical_yn(2, p2); ellipk(p); ellipkm1(p); ellipe(p)
        ellipkinc(x2, u2)
        ellipeinc(x2, u2); exp1(p); expi(x); expn(2, p2); zeta(p2 + 1.5); zetac(p2 + 1.5); expit(x); logit(p); log_expit(x)
        exp2(x)
        exp10(x); expm1(x); log1p(p); cbrt(x); exprel(x); cosm1(x); sindg(x); cosdg(x); tandg(x); cotdg(x); xlogy(p, p)
        xlog1py(p, p); entr(p); rel_entr(p, q); kl_div(p, q); huber(p, x); pseudo_huber(p, x); boxcox(p, q); boxcox1p(p, q)
        inv_boxcox(p, q); sici(x2); shichi(x2); ellipj(x2, u2); lambertw(p2); polygamma(1, p2); multigammaln(p2 + 3, 2)
        logsumexp(x)
        softmax(m, 1); log_softmax(m, 1); sinc(x); comb(n, kk); perm(n, kk); wright_bessel(p2, q2, u2); pdtr(p2, q2)
        chdtr(p2, q2)
        bdtr(n2, m2, u2); fdtr(p2, q2, r2); gdtr(p2, q2, r2); nbdtr(n2, m2, u2); erf(x4); i0(x4); gammaln(x4); expit(x4)
        radian(p, p, p)
        """,
    "ndimage": """
        gaussian_filter(a, 2); gaussian_filter(a4, 2); gaussian_filter(v, 1); uniform_filter(a, 5); uniform_filter(b, 5)
        median_filter(a, 3); median_filter(b, 5); percentile_filter(a, 20, 3); rank_filter(a, 2, 3); minimum_filter(a, 5)
        maximum_filter(b, 5); sobel(a); prewitt(a); laplace(a); gaussian_laplace(a, 2); gaussian_gradient_magnitude(a, 2)
        convolve(a, w); correlate(a4, w); convolve(b, w); convolve1d(a, w1); correlate1d(a, w1, 0); grey_erosion(a, 3)
        grey_dilation(b, 3)
        grey_opening(a, 3); white_tophat(a, 3); morphological_gradient(a, 3); binary_erosion(t)
        binary_dilation(t, iterations=3)
        binary_opening(t); binary_closing(t); binary_fill_holes(t2); binary_propagation(t, mask=t2); label(t)
        distance_transform_edt(t2); sum_labels(a, l, ls); mean(a, l, ls); variance(a, l, ls); standard_deviation(a, l, ls)
        minimum(a, l, ls); maximum(a, l, ls); median(a, l, ls); extrema(a, l, ls); center_of_mass(a, l, ls)
        maximum_position(a, l, ls)
        histogram(a, 0, 1, 20, l, ls); find_objects(l); value_indices(l); shift(a, 3.5, order=1); shift(a, (2.5, 3.5))
        shift(b, 3.5, order=1)
        shift(b, 3); shift(b, 3.5); zoom(a, 2, order=1); zoom(a, 0.7); rotate(a, 30, reshape=False); rotate(a, 30, order=1)
        rotate(b, 30, order=1); affine_transform(a, M); affine_transform(a, M, order=0); map_coordinates(a, c, order=1)
        map_coordinates(a, c); spline_filter(a); spline_filter1d(a); fourier_gaussian(f, 2); fourier_shift(f, 2)
        fourier_uniform(f, 2)
        fourier_ellipsoid(f, 2)
        """,
    "signal": """
        convolve(s, w1); convolve(s, h); correlate(s, h); fftconvolve(s, h); oaconvolve(s, h); convolve2d(a, w)
        correlate2d(a4, w)
        lfilter(fb, fa, s); lfilter(fb, fa, lines); lfilter(w1, 1.0, s); filtfilt(fb, fa, s); sosfilt(sos, s)
        sosfiltfilt(sos, s)
        resample(s, 50000); resample_poly(s, 3, 2); resample_poly(s, 160, 147); upfirdn(h, s, 2, 3); decimate(s, 4)
        hilbert(s)
        detrend(s); detrend(lines); medfilt(s, 5); medfilt2d(a); wiener(a); order_filter(a, k3, 4); savgol_filter(s, 11, 3)
        stft(s)
        welch(s); periodogram(s); csd(s, s); coherence(s, s); spectrogram(s); czt(s, 1000); zoom_fft(s, [0.1, 0.2])
        find_peaks(s)
        argrelmax(s); lombscargle(st, s1, om); cspline1d(s); qspline1d(s); cspline2d(a); sepfir2d(a, w1, w1)
        symiirorder1(s, 0.5, 0.3)
        freqz(fb, fa, 5000); sosfreqz(sos, 5000); chirp(s, 0, 1, 2); sawtooth(s); square(s); gausspulse(s); hilbert2(a)
        deconvolve(s1, fb); peak_widths(s, pk); vectorstrength(s, 3.0)
        """,
    "signal.windows": "hann(100000); kaiser(100000, 8); blackman(100000); gaussian(100000, 9); chebwin(1000, 60)",
    "sparse": """
        A @ x1; A @ X; A @ A; A + A; A.multiply(A); A.T.tocsr(); A.tocsc(); A.tocoo(); A2.toarray(); A.sum(0); A.sum(1)
        A.sum()
        A.diagonal(); A[10:5000]; A[:, 10:50]; A[rows]; A.tocsc() @ x1; D @ x1; A * 2; abs(A); A.max(); A.max(1); A.copy()
        A.power(2); A > 0.5
        kron(S, S); vstack([A, A]); hstack([A, A]); bmat([[A, A], [A, A]]); eye(100000, format="csr"); tril(A); triu(A)
        coo_matrix(B)
        csr_matrix(B); find(A); C.tocsr(); B @ A2; A.minimum(A); A != A; L @ x1
        """,
    "sparse.linalg": """
        norm(A); expm_multiply(S, xs); spsolve_triangular(T, x1); spsolve(D, x1); splu(D).solve(x1); eigsh(G, 4); svds(G, 4)
        cg(G, g); gmres(G, g); bicgstab(G, g); minres(G, g); lsqr(G, g); lsmr(G, g); cgs(G, g); lobpcg(G, G4)
        """,
    "sparse.csgraph": "connected_components(A)",
    "spatial.distance": """
        cdist(P, P); cdist(P, P, "sqeuclidean"); cdist(P, P, "cityblock"); cdist(P, P, "chebyshev")
        cdist(P, P, "minkowski", p=3)
        cdist(P, P, "cosine"); cdist(P, P, "correlation"); cdist(P, P, "canberra"); cdist(P, P, "braycurtis")
        cdist(P, P, "hamming")
        cdist(P, P, "jensenshannon"); cdist(P, P, "russellrao"); pdist(P); pdist(P, "sqeuclidean"); pdist(P, "cityblock")
        pdist(P, "cosine")
        pdist(P, "chebyshev"); pdist(P3); cdist(P3, P3); cdist(P64, P64); pdist(P64); squareform(Y); euclidean(x1, x1)
        """,
    "spatial": "KDTree(K); KDTree(K).query(Q2k); distance_matrix(P, P)",
    "interpolate": """
        CubicSpline(g1, s1)(e1); PchipInterpolator(g1, s1)(e1); Akima1DInterpolator(g1, s1)(e1); interp1d(g1, s1)(e1)
        interp1d(g1, s1, kind="cubic")(e1); make_interp_spline(g1, s1)(e1); BSpline(g1, s1[:-4], 3)(e1)
        RegularGridInterpolator((ga, ga), a)(pts); RegularGridInterpolator((ga, ga), a, "nearest")(pts)
        interpn((ga, ga), a, pts)
        RBFInterpolator(K2, k2)(Q2); KroghInterpolator(g9, s9)(e1); BarycentricInterpolator(g9, s9)(e1)
        NearestNDInterpolator(K, kv)(Q2k)
        LinearNDInterpolator(K2, k2)(Q2); UnivariateSpline(g1, s1)(e1); InterpolatedUnivariateSpline(g1, s1)(e1)
        """,
    "fft": """
        fft(z); fft(s); rfft(s); irfft(z); ifft(z); fft2(a); rfft2(a4); fftn(v); dct(s); dct(lines); idct(s); dst(s)
        dctn(a); idctn(a); dct(s, 1)
        dct(s, 3); dct(s, 4); hfft(z); ihfft(s); fftshift(a); fht(s, 0.1, 0.5); dst(s, 1)
        """,
    "linalg": """
        lu(m3); lu_factor(m3); lu_solve(lu_factor(m3), x3); solve_triangular(m3, x3); expm(m3 * 0.01); block_diag(m3, m3)
        toeplitz(x3); hankel(x3); circulant(x3); hadamard(512); dft(300); khatri_rao(k3, k3); cho_factor(spd)
        cho_solve(cho_factor(spd), x3)
        hilbert(300); convolution_matrix(x3, 300); companion(x3); helmert(300); fiedler(x3)
        """,
    "stats": "entropy(p); zscore(x); zscore(m, 1); zmap(x, x); trim_mean(x, 0.1); boxcox_llf(0.5, p); entropy(m * m, axis=1)",
}


def random_matrix(generator, rows, each):
    """A sparse matrix with about so many elements in each row, at random."""
    places = generator.integers(0, rows, (2, rows * each))
    return scipy.sparse.csr_matrix((generator.random(rows * each), places), shape=(rows, rows))


def make_operands():
    """The operands by name, for SciPy."""
    r = numpy.random.default_rng(0)
    n, h = 1 << 18, 1 << 15
    A = random_matrix(r, 20_000, 10)
    line = scipy.sparse.diags([-1.0, 2.1, -1.0], [-1, 0, 1], (60, 60))
    grid = scipy.sparse.kronsum(line, line, format="csr")
    m3 = r.standard_normal((300, 300))
    K = r.random((20_000, 3))
    wave = r.standard_normal(100_000)
    return {
        "x": r.uniform(-3, 3, n), "x4": r.uniform(-3, 3, n).astype("f4"), "p": r.uniform(0.01, 0.99, n),
        "q": r.uniform(0.01, 0.99, n), "unit": r.uniform(-0.99, 0.99, n), "n": r.integers(0, 100, n).astype("f8"),
        "kk": r.integers(0, 100, n).astype("f8"), "p2": r.uniform(0.5, 20, h), "q2": r.uniform(0.5, 20, h),
        "r2": r.uniform(0.5, 20, h), "u2": r.random(h), "x2": r.uniform(-3, 3, h), "n2": r.integers(0, 10, h).astype("f8"),
        "m2": r.integers(10, 100, h), "m": r.standard_normal((512, 512)), "a": r.random((512, 512)),
        "a4": r.random((512, 512)).astype("f4"), "b": r.integers(0, 255, (512, 512)).astype("u1"),
        "v": r.random((64, 64, 64)), "w": r.random((5, 5)), "w1": r.random(9), "k3": numpy.ones((3, 3)),
        "t": r.random((512, 512)) > 0.3, "t2": r.random((512, 512)) > 0.05, "l": r.integers(0, 50, (512, 512)),
        "ls": numpy.arange(1, 50), "M": numpy.array([[0.9, 0.2], [-0.2, 0.95]]), "c": r.uniform(0, 511, (2, 1 << 16)),
        "f": r.random((512, 512)) * (1 + 1j), "s": wave, "h": numpy.hanning(257), "lines": r.standard_normal((200, 1000)),
        "fb": numpy.array([0.02, 0.04, 0.02]), "fa": numpy.array([1, -1.48, 0.56]),
        "sos": numpy.array([[0.02, 0.04, 0.02, 1, -1.48, 0.56]] * 2),
        "pk": numpy.flatnonzero((wave[1:-1] > wave[:-2]) & (wave[1:-1] > wave[2:]))[:5000] + 1,
        "st": numpy.sort(r.random(1000)) * 100, "s1": r.standard_normal(1000), "om": numpy.linspace(0.1, 10, 1000), "A": A,
        "B": A[:2000, :2000].toarray(), "A2": A[:2000, :2000].tocsr(), "C": A.tocoo(),
        "D": scipy.sparse.diags([1.0, 4.0, 1.5], [-1, 0, 1], (20000, 20000), format="csr"),
        "L": random_matrix(r, 20000, 50), "T": scipy.sparse.tril(A + scipy.sparse.eye(20000) * 9, format="csr"),
        "S": random_matrix(r, 100, 5), "G": grid, "g": r.standard_normal(grid.shape[0]),
        "G4": r.standard_normal((grid.shape[0], 4)), "x1": r.standard_normal(20000), "X": r.standard_normal((20000, 8)),
        "xs": r.standard_normal(100), "rows": r.integers(0, 20000, 5000), "P": r.random((600, 8)), "P3": r.random((600, 3)),
        "P64": r.random((600, 64)), "Y": r.random(600 * 599 // 2), "K": K, "Q2k": r.random((500, 3)),
        "Q": r.random((20000, 3)), "kv": r.random(20000), "K2": r.random((300, 2)), "k2": r.random(300),
        "Q2": r.random((3000, 2)), "g1": numpy.arange(1000.0), "e1": r.uniform(4, 990, 100000), "ga": numpy.arange(512.0),
        "pts": r.uniform(0, 511, (50000, 2)), "g9": numpy.linspace(-1, 1, 9), "s9": r.random(9),
        "z": r.standard_normal(1 << 16) + 1j, "m3": m3, "x3": m3[0].copy(), "spd": m3 @ m3.T + numpy.eye(300),
    }


def list_cases():
    """Module and expression of each case."""
    for module, text in CASES.items():
        for expression in re.split(r";|\n", text):
            if expression.strip():
                yield module, expression.strip()


def to_remote(arrayd, sparse, x):
    """An operand as arrayd has it."""
    return getattr(sparse, f"{x.format}_matrix")(x) if scipy.sparse.issparse(x) else arrayd.asarray(x)


def measure_case(arrayd, server, code, ours, theirs):
    """Least seconds of the worker, of the client and of SciPy."""
    rounds, end = [], time.perf_counter() + LONGEST
    for i in range(1 + ROUNDS):
        begin, own = worker_time(server), time.thread_time_ns()
        result = eval(code, ours) # pylint: disable=eval-used
        arrayd.sync()
        own, taken = time.thread_time_ns() - own, worker_time(server) - begin
        begin = time.thread_time_ns()
        result = eval(code, theirs) # pylint: disable=eval-used
        rounds.append((taken / 1e6, own / 1e6, (time.thread_time_ns() - begin) / 1e6))
        del result
        if i > 1 and time.perf_counter() > end:
            break
    best = min(rounds[1:], key=lambda one: one[0] + one[1])
    return *best[:2], min(one[2] for one in rounds[1:])


def format_table(rows, above):
    """The table of the page: a line for each module, and the functions that take longest."""
    lines = [f"{datetime.date.today()}, {bench.processor()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.0f}, "
             f"NumPy {numpy.__version__}, SciPy {scipy.__version__}; ratios of processor time, the client's included.", "",
             f"| module | functions | at most {above} | median | above twice SciPy's time |",
             "| --- | ---: | ---: | ---: | --- |"]
    for module in CASES:
        mine = [(ratio, title.removeprefix(module + ": ")) for ratio, title, _ in sorted(rows, reverse=True)
                if title.startswith(module + ": ")]
        if mine:
            slow = ", ".join(f"`{title}` {ratio:.1f}" for ratio, title in mine if ratio > 2)
            few = sum(ratio <= above for ratio, _ in mine)
            median = statistics.median(ratio for ratio, _ in mine)
            lines.append(f"| {module} | {len(mine)} | {few} | {median:.2f} | {slow} |")
    return "\n".join(lines)


def main():
    """Print the lines as they come, and those above a ratio in its order."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=TOP / "build/release")
    parser.add_argument("--only", default="", help="a regular expression of module and expression")
    parser.add_argument("--markdown", type=pathlib.Path)
    parser.add_argument("--above", type=float, default=1.1, help="which ratios are listed again")
    options = parser.parse_args()
    build = options.build.resolve()
    bench.use(build)
    rows = []
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        server = bench.start_server(build / "bin/arrayd", f"{folder}/arrayd.sock", options=("--threads=1",))
        try:
            import arrayd
            import arrayd.scipy.sparse
            host = make_operands()
            remote = {name: to_remote(arrayd, arrayd.scipy.sparse, x) for name, x in host.items()}
            for module, expression in list_cases():
                title = f"{module}: {expression}"
                if not re.search(options.only, title):
                    continue
                ours, theirs = ({**vars(importlib.import_module(f"{top}.{module}")), **operands}
                                for top, operands in (("arrayd.scipy", remote), ("scipy", host)))
                try:
                    times = measure_case(arrayd, server.pid, compile(expression, title, "eval"), ours, theirs)
                except Exception as error: # pylint: disable=broad-except
                    print(f"{title:<60} {type(error).__name__}: {str(error)[:120]}", flush=True)
                    continue
                rows.append((sum(times[:2]) / times[2], title, times))
                print(f"{title:<60}{times[0]:>9.2f}{times[1]:>9.2f}{times[2]:>9.2f}{rows[-1][0]:>7.2f}", flush=True)
        finally:
            server.terminate()
            server.wait(timeout=20)
    slow = [row for row in sorted(rows, reverse=True) if row[0] > options.above]
    print(f"\n{len(rows)} cases, {len(slow)} above {options.above}")
    for ratio, title, times in slow:
        print(f"{ratio:>7.2f} {title:<60}{times[0]:>9.2f}{times[1]:>9.2f}{times[2]:>9.2f}")
    if options.markdown:
        bench.replace(options.markdown, BEGIN, END, format_table(rows, options.above))


if __name__ == "__main__":
    main()
