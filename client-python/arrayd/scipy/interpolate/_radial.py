"""Interpolation by radial basis functions, on the server."""
import itertools
import warnings

import numpy as np

import arrayd as ad

_MOST = 1 << 24  # elements of the kernels of one block of points
# By name: the function of the distance, and the least degree of the polynomial that is added.
_KERNELS = {
    "linear": (lambda r: -r, 0),
    "thin_plate_spline": (lambda r: ad.where(r == 0, 0.0, r * r * ad.log(ad.where(r == 0, 1.0, r))), 1),
    "cubic": (lambda r: r * r * r, 1),
    "quintic": (lambda r: -r ** 5, 2),
    "multiquadric": (lambda r: -ad.sqrt(r * r + 1), 0),
    "inverse_multiquadric": (lambda r: 1 / ad.sqrt(r * r + 1), -1),
    "inverse_quadratic": (lambda r: 1 / (r * r + 1), -1),
    "gaussian": (lambda r: ad.exp(-r * r), -1),
}
_SCALE_INVARIANT = {"linear", "thin_plate_spline", "cubic", "quintic"}


def _list_powers(ndim, degree):
    """The exponents of the monomials up to a degree: (monomials, ndim)."""
    rows = [np.bincount(np.array(each, int), minlength=ndim)
            for d in range(degree + 1) for each in itertools.combinations_with_replacement(range(ndim), d)]
    return np.array(rows, np.int64).reshape(len(rows), ndim)


def _take_kernels(name, a, b, epsilon):
    """The function of the distances between points (..., m, n) and (..., k, n): (..., m, k)."""
    if a.ndim == b.ndim == 2:
        from ..spatial.distance import cdist
        return _KERNELS[name][0](cdist(a, b) if epsilon == 1 else cdist(a, b) * epsilon)
    apart = (a[..., :, None, :] - b[..., None, :, :]) * epsilon
    return _KERNELS[name][0](ad.sqrt((apart * apart).sum(axis=-1)))


def _take_monomials(x, powers):
    """Of points (..., m, n): (..., m, monomials)."""
    columns = []
    for row in powers.tolist():
        column = ad.ones(x.shape[:-1])
        for i, power in enumerate(row):
            column = column * x[..., i] ** power if power else column
        columns.append(column)
    return ad.stack(columns, axis=-1)


class RBFInterpolator:
    """Interpolation by radial basis functions and a polynomial.

    Parameters: y: array (m, n) of points. d: array (m, ...) of values. neighbors: of how many nearest points a value is made; all
        unless given. smoothing: number, or an array (m): how far values may be missed. kernel: "linear",
        "thin_plate_spline", "cubic", "quintic", "multiquadric", "inverse_multiquadric", "inverse_quadratic" or "gaussian".
        epsilon: what distances are multiplied by; needed by the last four. degree: of the polynomial, -1 for none.
    Raises: ValueError where arrays do not fit; LinAlgError where the system has no single solution.
    Source: scipy.interpolate.RBFInterpolator
    """

    def __init__(self, y, d, neighbors=None, smoothing=0.0, kernel="thin_plate_spline", epsilon=None, degree=None):
        y = ad.asarray(y).astype(np.float64, copy=False)
        if y.ndim != 2:
            raise ValueError("`y` must be a 2-dimensional array.")
        count, ndim = y.shape
        d = ad.asarray(d)
        self.d_dtype = np.dtype(np.complex128 if d.dtype.kind == "c" else np.float64)
        if d.ndim == 0 or d.shape[0] != count:
            raise ValueError(f"Expected the first axis of `d` to have length {count}.")
        self.y, self.d_shape = y, tuple(d.shape[1:])
        self.d = d.astype(self.d_dtype).reshape(count, -1)
        self.kernel, self.epsilon = self._check_kernel(kernel, epsilon)
        self.smoothing = self._check_smoothing(smoothing, count)
        degree = self._check_degree(degree)
        self.neighbors = None if neighbors is None else int(min(neighbors, count))
        self.powers = _list_powers(ndim, degree)
        if len(self.powers) > (count if self.neighbors is None else self.neighbors):
            raise ValueError(f"At least {len(self.powers)} data points are required when `degree` is {degree} and the "
                             f"number of dimensions is {ndim}.")
        if self.neighbors is None:
            self._system = self._solve(y, self.d, self.smoothing)
            self._check_solution(self._system)
        else:
            from ..spatial import KDTree
            self._tree = KDTree(y)

    @staticmethod
    def _check_kernel(kernel, epsilon):
        kernel = kernel.lower()
        if kernel not in _KERNELS:
            raise ValueError(f"`kernel` must be one of {set(_KERNELS)}.")
        if epsilon is None and kernel not in _SCALE_INVARIANT:
            raise ValueError(f"`epsilon` must be specified if `kernel` is not one of {_SCALE_INVARIANT}.")
        return kernel, 1.0 if epsilon is None else float(epsilon)

    @staticmethod
    def _check_smoothing(smoothing, count):
        smoothing = ad.asarray(smoothing, dtype=np.float64)
        if smoothing.ndim == 0:
            return ad.broadcast_to(smoothing, (count,))
        if smoothing.shape != (count,):
            raise ValueError(f"Expected `smoothing` to be a scalar or have shape ({count},).")
        return smoothing

    def _check_degree(self, degree):
        least = _KERNELS[self.kernel][1]
        if degree is None:
            return max(least, 0)
        degree = int(degree)
        if degree < -1:
            raise ValueError("`degree` must be at least -1.")
        if -1 < degree < least:
            warnings.warn(f"`degree` should not be below {least} except -1 when `kernel` is '{self.kernel}'."
                          "The interpolant may not be uniquely solvable, and the smoothing parameter may have an "
                          "unintuitive effect.", UserWarning, stacklevel=3)
        return degree

    def _solve(self, y, d, smoothing):
        """Points (..., m, n), and shift, scale and coefficients (..., m + monomials, k) of their system."""
        low, high = y.min(axis=-2), y.max(axis=-2)
        shift, scale = (low + high) / 2, (high - low) / 2
        scale = ad.where(scale == 0, 1.0, scale)
        count, extra = y.shape[-2], len(self.powers)
        left = ad.zeros((*y.shape[:-2], count + extra, count + extra))
        left[..., :count, :count] = _take_kernels(self.kernel, y, y, self.epsilon)
        left[..., :count, :count] += smoothing[..., None] * ad.eye(count)
        if extra:
            poly = _take_monomials((y - shift[..., None, :]) / scale[..., None, :], self.powers)
            left[..., :count, count:] = poly
            left[..., count:, :count] = ad.swapaxes(poly, -1, -2)
        right = ad.zeros((*y.shape[:-2], count + extra, d.shape[-1]), d.dtype)
        right[..., :count, :] = d
        return y, shift, scale, ad.linalg.solve(left.astype(d.dtype, copy=False), right)

    def _check_solution(self, system):
        try:
            ad.sync()
            system[3].get()
        except ad.linalg.LinAlgError:
            y, shift, scale, _ = system
            words = "Singular matrix."
            if len(self.powers):
                rank = np.linalg.matrix_rank(_take_monomials((y - shift) / scale, self.powers).get())
                if rank < len(self.powers):
                    words += (" The matrix of monomials evaluated at the data point coordinates does not have full column "
                              f"rank ({rank}/{len(self.powers)}).")
            raise ad.linalg.LinAlgError(words) from None

    def _evaluate(self, x, system):
        """Values at points (..., q, n) by a system: (..., q, k)."""
        y, shift, scale, coefficients = system
        basis = _take_kernels(self.kernel, x, y, self.epsilon)
        if len(self.powers):
            poly = _take_monomials((x - shift[..., None, :]) / scale[..., None, :], self.powers)
            basis = ad.concatenate([basis, poly], axis=-1)
        return basis.astype(coefficients.dtype, copy=False) @ coefficients

    def _evaluate_near(self, x):
        _, place = self._tree.query(x, self.neighbors)
        place = place.reshape(x.shape[0], self.neighbors)
        system = self._solve(self.y[place], self.d[place], self.smoothing[place])
        return self._evaluate(x[:, None, :], system)[:, 0, :]

    def __call__(self, x):
        """Values. x: array (q, n)."""
        x = ad.asarray(x).astype(np.float64, copy=False)
        if x.ndim != 2:
            raise ValueError("`x` must be a 2-dimensional array.")
        if x.shape[1] != self.y.shape[1]:
            raise ValueError(f"Expected the second axis of `x` to have length {self.y.shape[1]}.")
        if self.neighbors is None:
            each = (self.y.shape[0] + len(self.powers)) * x.shape[1]
        else:
            each = (self.neighbors + len(self.powers)) ** 2 * x.shape[1]
        step = max(1, _MOST // each)
        parts = [self._evaluate(x[i:i + step], self._system) if self.neighbors is None else
                 self._evaluate_near(x[i:i + step]) for i in range(0, x.shape[0], step)]
        values = ad.concatenate(parts) if parts else ad.empty((0, self.d.shape[1]), self.d_dtype)
        return values.reshape(x.shape[0], *self.d_shape)
