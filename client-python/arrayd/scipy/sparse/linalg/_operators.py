"""Linear operators: what multiplies vectors without being a matrix."""
import numpy as np

import arrayd as ad

from ...._core import ndarray
from .._products import make_multiplier
from .._types import is_scalar_like, issparse


class LinearOperator:
    """An object that multiplies vectors: a function of the caller's, or a subclass with _matvec or _matmat.

    Parameters: shape: tuple of two ints. matvec, rmatvec, matmat, rmatmat: functions of one array: A @ x, A^H @ x, and
        these for the columns of a matrix. dtype: of the elements; found by a product unless given.
    Raises: ValueError for a shape of another length, TypeError where matvec is no function.
    Source: scipy.sparse.linalg.LinearOperator
    """

    ndim = 2
    __array_ufunc__ = None

    def __new__(cls, *args, **kwargs):
        return super().__new__(_Functions if cls is LinearOperator else cls)

    def __init__(self, dtype, shape):
        shape = tuple(int(n) for n in shape)
        if len(shape) != 2:
            raise ValueError(f"invalid shape {shape!r} (must be 2-d)")
        self.dtype = None if dtype is None else np.dtype(dtype)
        self.shape = shape

    def _init_dtype(self):
        if self.dtype is None:
            self.dtype = self.matvec(ad.ones(self.shape[-1])).dtype

    # ---- what subclasses have ----

    def _matvec(self, x):
        return self.matmat(x.reshape(-1, 1))

    def _matmat(self, X):
        return ad.hstack([self.matvec(X[:, i:i + 1]).reshape(-1, 1) for i in range(X.shape[1])])

    def _rmatvec(self, x):
        if type(self)._adjoint is LinearOperator._adjoint:
            raise NotImplementedError("the operator has no rmatvec")
        return self.H.matvec(x)

    def _rmatmat(self, X):
        if type(self)._adjoint is not LinearOperator._adjoint:
            return self.H.matmat(X)
        return ad.hstack([self.rmatvec(X[:, i:i + 1]).reshape(-1, 1) for i in range(X.shape[1])])

    def _adjoint(self):
        return _Adjoint(self)

    def _transpose(self):
        return _Transposed(self)

    # ---- products ----

    def matvec(self, x):
        """A @ x for a vector, of shape (n,) or (n, 1)."""
        return self._apply_vector(self._matvec, x, self.shape[1], self.shape[0])

    def _find_function(self):
        """A function of vectors of shape (n,): matvec, or what is quicker where the operator is one of ours."""
        return self.matvec

    def rmatvec(self, x):
        """A^H @ x for a vector, of shape (m,) or (m, 1)."""
        return self._apply_vector(self._rmatvec, x, self.shape[0], self.shape[1])

    def _apply_vector(self, function, x, size, length):
        if x.shape not in ((size,), (size, 1)):
            raise ValueError("dimension mismatch")
        y = function(x)
        return y.reshape(length) if x.ndim == 1 else y.reshape(length, 1)

    def matmat(self, X):
        """A @ X for a matrix."""
        return self._apply_matrix(self._matmat, X, self.shape[1])

    def rmatmat(self, X):
        """A^H @ X for a matrix."""
        return self._apply_matrix(self._rmatmat, X, self.shape[0])

    def _apply_matrix(self, function, X, size):
        if X.ndim != 2:
            raise ValueError(f"expected 2-d array, not {X.ndim}-d")
        if X.shape[0] != size:
            raise ValueError(f"dimension mismatch: {self.shape!r}, {X.shape!r}")
        return function(X)

    def dot(self, x):
        """The product with a number, an operator, a vector or a matrix."""
        if isinstance(x, LinearOperator):
            return _Product(self, x)
        if is_scalar_like(x):
            return _Scaled(self, x)
        if not issparse(x):
            x = ad.asarray(x)
        if x.ndim == 1 or x.ndim == 2 and x.shape[1] == 1:
            return self.matvec(x)
        if x.ndim == 2:
            return self.matmat(x)
        raise ValueError(f"expected 1-d or 2-d array or matrix, got {x!r}")

    def __call__(self, x):
        return self * x

    def __mul__(self, x):
        return self.dot(x)

    def __rmul__(self, x):
        return _Scaled(self, x) if is_scalar_like(x) else self._multiply_from_left(x)

    def __matmul__(self, other):
        if is_scalar_like(other):
            raise ValueError("Scalar operands are not allowed, use '*' instead")
        return self.dot(other)

    def __rmatmul__(self, other):
        if is_scalar_like(other):
            raise ValueError("Scalar operands are not allowed, use '*' instead")
        return self._multiply_from_left(other)

    def _multiply_from_left(self, x):
        x = ad.asarray(x)
        if x.ndim == 1:
            return self.T.matvec(x)
        return self.T.matmat(x.T).T

    def __truediv__(self, other):
        if not is_scalar_like(other):
            raise ValueError("Can only divide a linear operator by a scalar.")
        return _Scaled(self, 1.0 / other)

    def __pow__(self, p):
        if not isinstance(p, (int, np.integer)):
            return NotImplemented
        return _Power(self, int(p))

    def __add__(self, other):
        return _Sum(self, other) if isinstance(other, LinearOperator) else NotImplemented

    def __neg__(self):
        return _Scaled(self, -1)

    def __sub__(self, other):
        return self + (-other)

    def adjoint(self):
        """The adjoint operator."""
        return self._adjoint()

    H = property(adjoint)

    def transpose(self):
        """The transposed operator."""
        return self._transpose()

    T = property(transpose)

    def __repr__(self):
        m, n = self.shape
        return f"<{m}x{n} {type(self).__name__} with dtype={self.dtype if self.dtype is not None else 'unspecified'}>"


class _Functions(LinearOperator):
    """An operator of functions."""

    def __init__(self, shape, matvec, rmatvec=None, matmat=None, dtype=None, rmatmat=None):
        super().__init__(dtype, shape)
        if not callable(matvec):
            raise TypeError("matvec must be a function")
        self.__matvec, self.__rmatvec, self.__matmat, self.__rmatmat = matvec, rmatvec, matmat, rmatmat
        self._init_dtype()

    def _matvec(self, x):
        return self.__matvec(x)

    def _rmatvec(self, x):
        if self.__rmatvec is None:
            raise NotImplementedError("rmatvec is not defined")
        return self.__rmatvec(x)

    def _matmat(self, X):
        return super()._matmat(X) if self.__matmat is None else self.__matmat(X)

    def _rmatmat(self, X):
        if self.__rmatmat is not None:
            return self.__rmatmat(X)
        return ad.hstack([self._rmatvec(X[:, i]).reshape(-1, 1) for i in range(X.shape[1])])

    def _adjoint(self):
        return _Functions((self.shape[1], self.shape[0]), self._rmatvec, self._matvec, self._rmatmat, self.dtype,
                          self._matmat)


class _Matrix(LinearOperator):
    """An operator that is a matrix, dense or sparse."""

    def __init__(self, A):
        super().__init__(A.dtype, A.shape)
        self.A = A
        self._conjugate = None

    def _find_function(self):
        return make_multiplier(self.A) if issparse(self.A) else self._matvec

    def _matvec(self, x):
        return self.A @ x

    def _matmat(self, X):
        return self.A @ X

    def _transposed_conjugate(self):
        if self._conjugate is None:
            self._conjugate = self.A.T.conj() if self.A.dtype.kind == "c" else self.A.T
        return self._conjugate

    def _rmatvec(self, x):
        return self._transposed_conjugate() @ x

    def _rmatmat(self, X):
        return self._transposed_conjugate() @ X

    def _adjoint(self):
        return _Matrix(self._transposed_conjugate())

    def _transpose(self):
        return _Matrix(self.A.T)


class IdentityOperator(LinearOperator):
    """The operator that changes nothing."""

    def __init__(self, shape, dtype=None):
        super().__init__(dtype, shape)

    def _matvec(self, x):
        return x

    _rmatvec = _matmat = _rmatmat = _matvec

    def _find_function(self):
        return self._matvec

    def _adjoint(self):
        return self

    _transpose = _adjoint


class _Adjoint(LinearOperator):
    def __init__(self, A):
        super().__init__(A.dtype, A.shape[::-1])
        self.A = A

    def _matvec(self, x):
        return self.A._rmatvec(x)

    def _rmatvec(self, x):
        return self.A._matvec(x)

    def _matmat(self, X):
        return self.A._rmatmat(X)

    def _rmatmat(self, X):
        return self.A._matmat(X)

    def _adjoint(self):
        return self.A


class _Transposed(LinearOperator):
    def __init__(self, A):
        super().__init__(A.dtype, A.shape[::-1])
        self.A = A

    def _matvec(self, x):
        return self.A._rmatvec(x.conj()).conj()

    def _rmatvec(self, x):
        return self.A._matvec(x.conj()).conj()

    def _matmat(self, X):
        return self.A._rmatmat(X.conj()).conj()

    def _rmatmat(self, X):
        return self.A._matmat(X.conj()).conj()

    def _transpose(self):
        return self.A


class _Sum(LinearOperator):
    def __init__(self, A, B):
        if A.shape != B.shape:
            raise ValueError(f"cannot add {A} and {B}: shape mismatch")
        super().__init__(np.result_type(A.dtype, B.dtype), A.shape)
        self.A, self.B = A, B

    def _matvec(self, x):
        return self.A.matvec(x) + self.B.matvec(x)

    def _rmatvec(self, x):
        return self.A.rmatvec(x) + self.B.rmatvec(x)

    def _matmat(self, X):
        return self.A.matmat(X) + self.B.matmat(X)

    def _rmatmat(self, X):
        return self.A.rmatmat(X) + self.B.rmatmat(X)

    def _adjoint(self):
        return self.A.H + self.B.H


class _Product(LinearOperator):
    def __init__(self, A, B):
        if A.shape[1] != B.shape[0]:
            raise ValueError(f"cannot multiply {A} and {B}: shape mismatch")
        super().__init__(np.result_type(A.dtype, B.dtype), (A.shape[0], B.shape[1]))
        self.A, self.B = A, B

    def _matvec(self, x):
        return self.A.matvec(self.B.matvec(x))

    def _rmatvec(self, x):
        return self.B.rmatvec(self.A.rmatvec(x))

    def _matmat(self, X):
        return self.A.matmat(self.B.matmat(X))

    def _rmatmat(self, X):
        return self.B.rmatmat(self.A.rmatmat(X))

    def _adjoint(self):
        return self.B.H * self.A.H


class _Scaled(LinearOperator):
    def __init__(self, A, factor):
        self.factor = factor.item() if isinstance(factor, (ndarray, np.generic, np.ndarray)) else factor
        super().__init__(np.result_type(A.dtype, type(self.factor)), A.shape)
        self.A = A

    def _matvec(self, x):
        return self.factor * self.A.matvec(x)

    def _rmatvec(self, x):
        return np.conj(self.factor).item() * self.A.rmatvec(x)

    def _matmat(self, X):
        return self.factor * self.A.matmat(X)

    def _rmatmat(self, X):
        return np.conj(self.factor).item() * self.A.rmatmat(X)

    def _adjoint(self):
        return self.A.H * np.conj(self.factor).item()


class _Power(LinearOperator):
    def __init__(self, A, p):
        if A.shape[0] != A.shape[1]:
            raise ValueError(f"square LinearOperator expected, got {A!r}")
        if p < 0:
            raise ValueError("non-negative integer expected as p")
        super().__init__(A.dtype, A.shape)
        self.A, self.p = A, p

    def _repeat(self, function, x):
        for _ in range(self.p):
            x = function(x)
        return x.copy() if self.p == 0 else x

    def _matvec(self, x):
        return self._repeat(self.A.matvec, x)

    def _rmatvec(self, x):
        return self._repeat(self.A.rmatvec, x)

    def _matmat(self, X):
        return self._repeat(self.A.matmat, X)

    def _rmatmat(self, X):
        return self._repeat(self.A.rmatmat, X)

    def _adjoint(self):
        return self.A.H ** self.p


def aslinearoperator(A):
    """A matrix, or what has shape and matvec, as a LinearOperator.

    Parameters: A: LinearOperator, dense or sparse matrix, or object with shape and matvec.
    Returns: LinearOperator.
    Raises: ValueError for an array of more than two dimensions, TypeError for another object.
    Source: scipy.sparse.linalg.aslinearoperator
    """
    if isinstance(A, LinearOperator):
        return A
    if issparse(A):
        return _Matrix(A if A.format in ("csr", "csc") else A.tocsr())
    if isinstance(A, (ndarray, np.ndarray)):
        if A.ndim > 2:
            raise ValueError("array must have ndim <= 2")
        return _Matrix(ad.atleast_2d(ad.asarray(A)))
    if hasattr(A, "shape") and hasattr(A, "matvec"):
        return LinearOperator(A.shape, A.matvec, rmatvec=getattr(A, "rmatvec", None),
                              rmatmat=getattr(A, "rmatmat", None), dtype=getattr(A, "dtype", None))
    raise TypeError("type not understood")
