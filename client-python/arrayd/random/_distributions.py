"""The distributions that Generator and RandomState have in common."""
import operator

import numpy as np

from .. import _base
from ._draw import ROWS, check, checked, draw, holds, is_host, loop_of, output, real


class Distributions:
    """Methods that draw from self.bit_generator.

    Parameters of a distribution are numbers or arrays that broadcast; size: the result's shape, else what the
    parameters broadcast to (0-d for numbers); dtype: float32 or float64, or where it says so any real type or bool,
    which is cast from float64 (counts: from int64). All return an ndarray and raise ValueError for parameters outside
    of their domain, NumPy's words; for arrays on the server the error comes with the data.
    """

    _rows, _looked = ROWS, frozenset()

    def _checked(self, name, values):
        return checked(self._rows[name], values, name in self._looked)

    def _real(self, name, values, size, dtype, out=None, called=None):
        loop = loop_of(dtype, called or name)
        return draw(self.bit_generator, name, self._checked(name, values), output(out, size, loop), loop, out)

    def _cast(self, name, values, size, dtype, loop=np.float64, called=None):
        dtype = np.dtype(loop if dtype is None else dtype)
        if dtype.kind not in "biuf":
            raise TypeError(f"Unsupported dtype {dtype!r} for {called or name}")
        loop = np.dtype(np.float32 if loop is np.float64 and dtype == np.float32 else loop)
        result = draw(self.bit_generator, name, self._checked(name, values), size, loop)
        return result if dtype == loop else result.astype(dtype)

    def _count(self, name, values, size, dtype):
        return self._cast(name, values, size, dtype, np.int64)

    # ---- real numbers ----

    def beta(self, a, b, size=None, dtype=float):
        """Beta: density x**(a-1) * (1-x)**(b-1) up to a factor, on [0, 1].

        Parameters: a, b: positive. size: shape. dtype: any real type or bool.
        Returns: ndarray.
        Raises: ValueError for a or b <= 0.
        Source: cupy.random.beta
        """
        return self._cast("beta", (a, b), size, dtype)

    def chisquare(self, df, size=None, dtype=float):
        """Chi-square.

        Parameters: df: degrees of freedom, positive. size: shape. dtype: any real type or bool.
        Returns: ndarray.
        Raises: ValueError for df <= 0.
        Source: cupy.random.chisquare
        """
        return self._cast("chisquare", (df,), size, dtype)

    def exponential(self, scale=1.0, size=None, dtype=float):
        """Exponential.

        Parameters: scale: the mean, not negative. size, dtype: as in all distributions.
        Returns: ndarray.
        Raises: ValueError for scale < 0.
        Differs: from CuPy's Generator, which multiplies one number with all of an array scale where size is not given.
        Source: cupy.random.exponential
        """
        return self._real("exponential", (scale,), size, dtype)

    def f(self, dfnum, dfden, size=None, dtype=float):
        """F: ratio of two chi-squares, each divided by its degrees of freedom.

        Parameters: dfnum, dfden: degrees of freedom, positive. size: shape. dtype: any real type or bool.
        Returns: ndarray.
        Raises: ValueError for dfnum or dfden <= 0.
        Source: cupy.random.f
        """
        return self._cast("f", (dfnum, dfden), size, dtype)

    def gamma(self, shape, scale=1.0, size=None, dtype=float):
        """Gamma: density x**(shape-1) * exp(-x/scale) up to a factor.

        Parameters: shape, scale: not negative. size: shape. dtype: any real type or bool.
        Returns: ndarray.
        Raises: ValueError for shape or scale < 0.
        Source: cupy.random.gamma
        """
        return self._cast("gamma", (shape, scale), size, dtype)

    def gumbel(self, loc=0.0, scale=1.0, size=None, dtype=float):
        """Gumbel: exp(-exp(-(x-loc)/scale)) is its distribution function.

        Parameters: loc: the mode. scale: not negative. size, dtype: as in all distributions.
        Returns: ndarray.
        Raises: ValueError for scale < 0.
        Source: cupy.random.gumbel
        """
        return self._real("gumbel", (loc, scale), size, dtype)

    def laplace(self, loc=0.0, scale=1.0, size=None, dtype=float):
        """Laplace: density exp(-abs(x-loc)/scale) up to a factor.

        Parameters: loc: the mean. scale: not negative. size, dtype: as in all distributions.
        Returns: ndarray.
        Raises: ValueError for scale < 0.
        Source: cupy.random.laplace
        """
        return self._real("laplace", (loc, scale), size, dtype)

    def logistic(self, loc=0.0, scale=1.0, size=None, dtype=float):
        """Logistic: 1/(1+exp(-(x-loc)/scale)) is its distribution function.

        Parameters: loc: the mean. scale: not negative. size: shape. dtype: any real type or bool.
        Returns: ndarray.
        Raises: ValueError for scale < 0.
        Source: cupy.random.logistic
        """
        return self._cast("logistic", (loc, scale), size, dtype)

    def lognormal(self, mean=0.0, sigma=1.0, size=None, dtype=float):
        """exp of normal numbers.

        Parameters: mean, sigma: mean and standard deviation of the logarithm. size, dtype: as in all distributions.
        Returns: ndarray.
        Raises: ValueError for sigma < 0.
        Source: cupy.random.lognormal
        """
        return self._real("lognormal", (mean, sigma), size, dtype)

    def noncentral_chisquare(self, df, nonc, size=None, dtype=float):
        """Noncentral chi-square.

        Parameters: df: degrees of freedom, positive. nonc: noncentrality, not negative. size: shape. dtype: any
        real type or bool.
        Returns: ndarray.
        Raises: ValueError for df <= 0 or nonc < 0.
        Source: cupy.random.noncentral_chisquare
        """
        return self._cast("noncentral_chisquare", (df, nonc), size, dtype)

    def noncentral_f(self, dfnum, dfden, nonc, size=None, dtype=float):
        """Noncentral F.

        Parameters: dfnum, dfden: degrees of freedom, positive. nonc: noncentrality, not negative. size: shape.
        dtype: any real type or bool.
        Returns: ndarray.
        Raises: ValueError for dfnum or dfden <= 0, or nonc < 0.
        Source: cupy.random.noncentral_f
        """
        return self._cast("noncentral_f", (dfnum, dfden, nonc), size, dtype)

    def normal(self, loc=0.0, scale=1.0, size=None, dtype=float, *, device=None):
        """Normal.

        Parameters: loc: the mean. scale: the standard deviation, not negative. size, dtype: as in all distributions. device: as ad.empty.
        Returns: ndarray.
        Raises: ValueError for scale < 0.
        Source: cupy.random.normal
        """
        if device is not None:
            return _base.on_device(device, self.normal, loc, scale, size=size, dtype=dtype)
        return self._real("normal", (loc, scale), size, dtype)

    def pareto(self, a, size=None, dtype=float):
        """Pareto II (Lomax): density a/(1+x)**(a+1) for x >= 0.

        Parameters: a: positive. size, dtype: as in all distributions.
        Returns: ndarray.
        Raises: ValueError for a <= 0.
        Source: cupy.random.pareto
        """
        return self._real("pareto", (a,), size, dtype)

    def power(self, a, size=None, dtype=float):
        """Power: density a*x**(a-1) on [0, 1].

        Parameters: a: positive. size, dtype: as in all distributions.
        Returns: ndarray.
        Raises: ValueError for a <= 0.
        Source: cupy.random.power
        """
        return self._real("power", (a,), size, dtype)

    def rayleigh(self, scale=1.0, size=None, dtype=float):
        """Rayleigh: the length of a vector of two normal numbers.

        Parameters: scale: their standard deviation, not negative. size, dtype: as in all distributions.
        Returns: ndarray.
        Raises: ValueError for scale < 0.
        Source: cupy.random.rayleigh
        """
        return self._real("rayleigh", (scale,), size, dtype)

    def standard_cauchy(self, size=None, dtype=float):
        """Cauchy with mode 0.

        Parameters: size, dtype: as in all distributions.
        Returns: ndarray.
        Raises: TypeError for another dtype.
        Source: cupy.random.standard_cauchy
        """
        return self._real("standard_cauchy", (), size, dtype)

    def standard_exponential(self, size=None, dtype=float, method=None, out=None):
        """Exponential with mean 1.

        Parameters: size, dtype: as in all distributions. method: ignored. out: array to fill.
        Returns: ndarray.
        Raises: TypeError for another dtype.
        Source: cupy.random.standard_exponential
        """
        return self._real("exponential", (1.0,), size, dtype, out, "standard_exponential")

    def standard_gamma(self, shape, size=None, dtype=float, out=None):
        """Gamma with scale 1.

        Parameters: shape: not negative. size, dtype: as in all distributions. out: array to fill.
        Returns: ndarray.
        Raises: ValueError for shape < 0.
        Source: cupy.random.standard_gamma
        """
        return self._real("gamma", (shape, 1.0), size, dtype, out, "standard_gamma")

    def standard_normal(self, size=None, dtype=float, out=None, *, device=None):
        """Normal with mean 0 and standard deviation 1.

        Parameters: size, dtype: as in all distributions. out: array to fill. device: as ad.empty.
        Returns: ndarray.
        Raises: TypeError for another dtype.
        Source: cupy.random.standard_normal
        """
        if device is not None:
            return _base.on_device(device, self.standard_normal, size=size, dtype=dtype, out=out)
        return self._real("normal", (0.0, 1.0), size, dtype, out, "standard_normal")

    def standard_t(self, df, size=None, dtype=float):
        """Student's t.

        Parameters: df: degrees of freedom, positive. size: shape. dtype: any real type or bool.
        Returns: ndarray.
        Raises: ValueError for df <= 0.
        Source: cupy.random.standard_t
        """
        return self._cast("standard_t", (df,), size, dtype)

    def triangular(self, left, mode, right, size=None, dtype=float):
        """Triangular on [left, right].

        Parameters: left <= mode <= right. size, dtype: as in all distributions.
        Returns: ndarray.
        Raises: ValueError for another order, or left == right.
        Source: cupy.random.triangular
        """
        left, mode, right = values = self._checked("triangular", (left, mode, right))
        look = "triangular" in self._looked
        for comparison, one, other, words in ((operator.gt, left, mode, "left > mode"),
                                              (operator.gt, mode, right, "mode > right"),
                                              (operator.eq, left, right, "left == right")):
            if holds(comparison, one, other, look):
                raise ValueError(words)
        return self._real("triangular", values, size, dtype)

    def uniform(self, low=0.0, high=1.0, size=None, dtype=float, *, device=None):
        """Uniform on [low, high).

        Parameters: low, high: the bounds. size, dtype: as in all distributions. device: as ad.empty.
        Returns: ndarray.
        Raises: OverflowError when high - low is not finite.
        Source: cupy.random.uniform
        """
        if device is not None:
            return _base.on_device(device, self.uniform, low, high, size=size, dtype=dtype)
        low, high = real(low, "low"), real(high, "high")
        if is_host(low) and is_host(high) and not np.all(np.isfinite(np.subtract(high, low))):
            raise OverflowError("Range exceeds valid bounds")
        return self._real("uniform", (low, high), size, dtype)

    def vonmises(self, mu, kappa, size=None, dtype=float):
        """Von Mises: the normal distribution's like on a circle, on [-pi, pi].

        Parameters: mu: the mode. kappa: concentration, not negative. size: shape. dtype: any real type or bool.
        Returns: ndarray.
        Raises: ValueError for kappa < 0.
        Source: cupy.random.vonmises
        """
        return self._cast("vonmises", (mu, kappa), size, dtype)

    def wald(self, mean, scale, size=None, dtype=float):
        """Wald, or inverse Gaussian.

        Parameters: mean, scale: positive. size, dtype: as in all distributions.
        Returns: ndarray.
        Raises: ValueError for mean or scale <= 0.
        Source: cupy.random.wald
        """
        return self._real("wald", (mean, scale), size, dtype)

    def weibull(self, a, size=None, dtype=float):
        """Weibull with scale 1: 1 - exp(-x**a) is its distribution function.

        Parameters: a: not negative. size, dtype: as in all distributions.
        Returns: ndarray.
        Raises: ValueError for a < 0.
        Source: cupy.random.weibull
        """
        return self._real("weibull", (a,), size, dtype)

    # ---- counts ----

    def binomial(self, n, p, size=None, dtype=None):
        """Successes among n trials.

        Parameters: n: trials, not negative. p: probability of each. size: shape. dtype: any real type or bool.
        Returns: ndarray of int64 unless dtype is given.
        Raises: ValueError for n < 0 or p outside of [0, 1].
        Source: cupy.random.binomial
        """
        return self._count("binomial", (_trials(n), p), size, dtype)

    def geometric(self, p, size=None, dtype=None):
        """Trials up to and with the first success.

        Parameters: p: probability of each, in (0, 1]. size: shape. dtype: any real type or bool.
        Returns: ndarray of int64 unless dtype is given.
        Raises: ValueError for p outside of (0, 1].
        Source: cupy.random.geometric
        """
        return self._count("geometric", (p,), size, dtype)

    def hypergeometric(self, ngood, nbad, nsample, size=None, dtype=None):
        """Good ones among nsample taken from ngood + nbad, without putting back.

        Parameters: ngood, nbad, nsample: not negative, nsample <= ngood + nbad. size: shape. dtype: any real
        type or bool.
        Returns: ndarray of int64 unless dtype is given.
        Raises: ValueError for a negative number, nsample too large, or ngood + nbad of 2e9 or more.
        Source: cupy.random.hypergeometric
        """
        values = self._checked("hypergeometric", [_trials(v) for v in (ngood, nbad, nsample)])
        if all(map(is_host, values)) and np.any(np.less(np.add(values[0], values[1]), values[2])):
            raise ValueError("ngood + nbad < nsample")
        if is_host(values[0]) and is_host(values[1]) and np.any(np.add(values[0], values[1]) >= 2e9):
            raise ValueError("ngood + nbad must be less than 2000000000")
        return self._count("hypergeometric", values, size, dtype)

    def logseries(self, p, size=None, dtype=None):
        """Logarithmic series: probability of k is p**k/k up to a factor.

        Parameters: p: in [0, 1). size: shape. dtype: any real type or bool.
        Returns: ndarray of int64 unless dtype is given.
        Raises: ValueError for p outside of [0, 1).
        Source: cupy.random.logseries
        """
        return self._count("logseries", (p,), size, dtype)

    def negative_binomial(self, n, p, size=None, dtype=None):
        """Failures before n successes.

        Parameters: n: positive, need not be whole. p: probability of success, in (0, 1]. size: shape. dtype:
        any real type or bool.
        Returns: ndarray of int64 unless dtype is given.
        Raises: ValueError for n <= 0 or p outside of (0, 1].
        Source: cupy.random.negative_binomial
        """
        return self._count("negative_binomial", (n, p), size, dtype)

    def poisson(self, lam=1.0, size=None, dtype=None):
        """Poisson.

        Parameters: lam: the mean, not negative. size: shape. dtype: any real type or bool.
        Returns: ndarray of int64 unless dtype is given.
        Raises: ValueError for lam < 0 or too large.
        Source: cupy.random.poisson
        """
        return self._count("poisson", (lam,), size, dtype)

    def zipf(self, a, size=None, dtype=None):
        """Zipf: probability of k is k**-a up to a factor.

        Parameters: a: greater than 1. size: shape. dtype: any real type or bool.
        Returns: ndarray of int64 unless dtype is given.
        Raises: ValueError for a <= 1.
        Source: cupy.random.zipf
        """
        return self._count("zipf", (a,), size, dtype)

    # ---- of several numbers each ----

    def dirichlet(self, alpha, size=None, dtype=float):
        """Vectors of numbers that are not negative and whose sum is 1.

        Parameters: alpha: not negative; its last axis is that of the vectors. A number is that of all elements of
        vectors along the last axis of size. size: shape of the vectors' array. dtype: float16, float32 or float64.
        Returns: ndarray of shape size + alpha.shape.
        Raises: ValueError for alpha < 0, or a number without size.
        Source: cupy.random.dirichlet
        """
        dtype = np.dtype(float if dtype is None else dtype)
        loop = loop_of(float if dtype == np.float16 else dtype, "dirichlet")
        alpha = real(alpha, "alpha")
        check(alpha, "alpha", "NONNEG")
        shape = _vectors(size, () if isinstance(alpha, float) else alpha.shape)
        if not shape:
            raise ValueError("alpha is a number: give an array, or the shape of the result as size")
        x = draw(self.bit_generator, "gamma", [alpha, 1.0], shape, loop)
        x = x / x.sum(axis=-1, keepdims=True)
        return x if dtype == loop else x.astype(dtype)

    def multinomial(self, n, pvals, size=None, dtype=None):
        """How often each of several outcomes comes in n trials.

        Parameters: n: trials, a number or an array. pvals: the outcomes' probabilities; the last one is what is left.
        size: shape of the vectors' array. dtype: an integer type.
        Returns: ndarray of shape size + (len(pvals),), int64 unless dtype is given.
        Raises: ValueError for n < 0, probabilities outside of [0, 1], or too large a sum.
        Source: cupy.random.multinomial
        """
        n, pvals = trials_and_outcomes(n, pvals)
        own = () if isinstance(n, float) else n.shape
        shape = own if size is None else _base.shape_tuple(size)
        result = _base.zeros(shape + pvals.shape, np.int64 if dtype is None else dtype)
        rest, left = int(n) if isinstance(n, float) else _base.as_array(n), 1.0
        for k, p in enumerate(pvals):
            last = k == len(pvals) - 1
            share = 0.0 if left <= 0 else min(1.0, p / left)
            taken = rest if last else self.binomial(rest, share, shape)
            result[..., k] = taken
            rest, left = rest - taken, left - p
        return result

    def multivariate_normal(self, mean, cov, size=None, check_valid="warn", tol=1e-8, method="svd", dtype=float):
        """Normal vectors with the given covariance.

        Parameters: mean: of N numbers. cov: N by N, symmetric. size: shape of the vectors' array. check_valid: 'warn',
        'raise' or 'ignore' for a cov that is not positive semidefinite. tol: how far it may be from that. method:
        'svd', 'eigh' or 'cholesky', which factor cov in this process. dtype: float32 or float64.
        Returns: ndarray of shape size + (N,).
        Raises: ValueError for wrong dimensions; numpy.linalg.LinAlgError for a cov that cholesky cannot factor.
        Source: cupy.random.multivariate_normal
        """
        loop = loop_of(dtype, "multivariate_normal")
        mean, root = _root(_base.as_host(mean, "mean"), _base.as_host(cov, "cov"), check_valid, tol, method)
        shape = _vectors(size, mean.shape)
        z = self.standard_normal((_base.product(shape[:-1]), len(mean)), loop)
        x = _base.matrix_product(z, _base.as_array(root.astype(loop))) + _base.as_array(mean.astype(loop))
        return x.reshape(shape)


def trials_and_outcomes(n, pvals):
    """The parameters of multinomial, checked: n is a float or an array, pvals one of this side."""
    pvals = np.atleast_1d(_base.as_host(pvals, "pvals").astype(np.float64))
    if pvals.ndim != 1:
        raise ValueError("pvals must have one dimension")
    check(pvals, "pvals", "UNIT")
    if pvals[:-1].sum() > 1.0 + 1e-12:
        raise ValueError("sum(pvals[:-1]) > 1.0")
    n = _trials(n)
    check(n, "n", "NONNEG")
    return n, pvals


def _trials(n):
    """A number of trials: whole."""
    n = real(n, "n")
    return n if isinstance(n, _base.ndarray) else float(np.trunc(n)) if isinstance(n, float) else np.trunc(n)


def _vectors(size, shape):
    return (() if size is None else _base.shape_tuple(size)) + shape


def _root(mean, cov, check_valid, tol, method):
    """mean, and a matrix whose transpose times itself is cov."""
    if method not in ("svd", "eigh", "cholesky"):
        raise ValueError("method must be one of {'eigh', 'svd', 'cholesky'}")
    if check_valid not in ("warn", "raise", "ignore"):
        raise ValueError("check_valid must equal 'warn', 'raise', or 'ignore'")
    if mean.ndim != 1:
        raise ValueError("mean must be 1 dimensional")
    if cov.ndim != 2 or cov.shape[0] != cov.shape[1]:
        raise ValueError("cov must be 2 dimensional and square")
    if mean.shape[0] != cov.shape[0]:
        raise ValueError("mean and cov must have same length")
    cov = cov.astype(np.float64)
    if method == "cholesky" and (check_valid != "ignore" or np.linalg.eigvalsh(cov).min(initial=1) > 0):
        return mean, np.linalg.cholesky(cov).T
    values, vectors = np.linalg.eigh(cov)
    if check_valid != "ignore" and not (np.allclose(cov, cov.T, rtol=tol, atol=tol) and np.all(values >= -tol)):
        if check_valid == "raise":
            raise ValueError("covariance is not symmetric positive-semidefinite.")
        import warnings
        warnings.warn("covariance is not symmetric positive-semidefinite.", RuntimeWarning, stacklevel=3)
    return mean, np.sqrt(np.maximum(values, 0))[:, None] * vectors.T
