"""Products of vectors, matrices and tensors, all through matmul."""
import builtins
import operator

import numpy as np

from .. import _base, _core
from .._base import as_array, give, give_product, matrix_product, normalize_axes, normalize_axis, reduce
from .._array.manipulation import broadcast_to, moveaxis


def _common(*arrays):
    """Arrays in the type that they promote to."""
    kind = _base.result_type(*(a.dtype for a in arrays))
    return [a if a.dtype == kind else a.astype(kind) for a in arrays]


def matmul(x1, x2, /, out=None, *, casting="same_kind", order="K", dtype=None, axes=None):
    """Matrix product; dimensions before the last two are broadcast.

    On a GPU float32 and complex64 are multiplied in TF32, with three decimal digits, where ARRAYD_TF32=1 or CUPY_TF32=1
    was in the environment when arrayd was imported; so is all that is made of matrix products.

    Parameters: x1: array of shape (..., m, k) or (k,). x2: array of shape (..., k, n) or (k,). out: array to fill.
    casting: which casts to dtype and out are allowed. order: ignored. dtype: type to compute in. axes: list of the axes
    of the matrices in x1, x2 and the result, each a tuple of two, or of one for a vector.
    Returns: ndarray of shape (..., m, n), without m or n for a 1-d argument.
    Raises: ValueError for a 0-d argument, sizes or axes that do not fit; TypeError for a cast or other axes; AxisError.
    Source: numpy.matmul
    """
    a, b = as_array(x1), as_array(x2)
    _check_core("matmul", "(n?,k),(k,m?)->(n?,m?)", (a, 1), (b, 1))
    if axes is not None:
        *axes, last = _core_axes(axes, a, b)
        a, b = (moveaxis(one, of, tuple(range(-len(of), 0))) for one, of in zip((a, b), axes))
        result = matmul(a, b, casting=casting, dtype=dtype)
        return give(moveaxis(result, tuple(range(-len(last), 0)), last), out, casting)
    inner = b.shape[-2] if b.ndim > 1 else b.shape[0]
    if a.shape[-1] != inner:
        raise ValueError("matmul: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature "
                         f"(n?,k),(k,m?)->(n?,m?) (size {inner} is different from {a.shape[-1]})")
    if dtype is not None:
        for one in (a, b):
            if not np.can_cast(one.dtype, dtype, casting):
                raise TypeError(f"Cannot cast ufunc 'matmul' input from {one.dtype!r} to {np.dtype(dtype)!r} with "
                                f"casting rule {casting!r}")
        a, b = as_array(a, dtype), as_array(b, dtype)
    a, b = _common(a, b)
    left, right = a[None] if a.ndim == 1 else a, b[:, None] if b.ndim == 1 else b
    result = matrix_product(left, right)
    if b.ndim == 1:
        result = result[..., 0]
    if a.ndim == 1:
        result = result[..., 0, :] if b.ndim > 1 else result[..., 0]
    return give(result, out, casting)


def _core_axes(axes, a, b):
    """The axes= of a matrix product as a tuple of axes for a, b and the result."""
    if not isinstance(axes, list):
        raise TypeError("axes must be a list")
    cores = [builtins.min(one.ndim, 2) for one in (a, b)]
    cores.append(builtins.sum(cores) - 2)
    if len(axes) != 3:
        raise ValueError(f"axes must be a list of 3 tuples, for x1, x2 and the result, not of {len(axes)}")
    axes = [one if isinstance(one, tuple) else (operator.index(one),) for one in axes]
    for name, one, core in zip(("x1", "x2", "the result"), axes, cores):
        if len(one) != core:
            raise np.exceptions.AxisError(f"axes: {name} has {core} dimension(s) of its matrix or vector, not {len(one)}")
    return axes


def dot(a, b, out=None):
    """Product of two arrays: over the last axis of a and the last but one of b (the only one when it is 1-d).

    Parameters: a, b: arrays or numbers. out: C-contiguous array to fill, of the result's shape and type.
    Returns: ndarray of shape a.shape[:-1] + b.shape without that axis; the plain product when one is 0-d.
    Raises: ValueError when the axes differ in size, or for another out.
    Source: numpy.dot
    """
    a, b = as_array(a), as_array(b)
    if a.ndim == 0 or b.ndim == 0:
        result = a * b
        return (give_product if result.dtype.char in "fdFD" else give)(result, out)  # what BLAS takes, in NumPy
    axis = b.ndim - 2 if b.ndim > 1 else 0
    if a.shape[-1] != b.shape[axis]:
        raise ValueError(f"shapes {_text(a.shape)} and {_text(b.shape)} not aligned: {a.shape[-1]} (dim {a.ndim - 1}) "
                         f"!= {b.shape[axis]} (dim {axis})")
    if b.ndim == 1 and a.ndim <= 2 and a.dtype == b.dtype:
        left = a if a.ndim == 2 else a.reshape(1, -1)
        return give_product(matrix_product(left, b.reshape(-1, 1)).reshape(a.shape[:-1]), out)
    return give_product(tensordot(a, b, ((a.ndim - 1,), (axis,))), out)


def _text(shape):
    return str(tuple(shape)).replace(" ", "")


def vdot(a, b, /):
    """Product of two flattened arrays, the first conjugated.

    Parameters: a, b: arrays of one size.
    Returns: 0-d ndarray.
    Raises: ValueError when the sizes differ.
    Source: numpy.vdot
    """
    a, b = as_array(a).reshape(-1), as_array(b).reshape(-1)
    if a.size != b.size:
        raise ValueError(f"cannot reshape array of size {a.size} into shape ({b.size},)")
    return dot(_core.ufuncs["conjugate"](a) if a.dtype.kind == "c" else a, b)


def inner(a, b, /):
    """Product over the last axes of both.

    Parameters: a, b: arrays or numbers.
    Returns: ndarray of shape a.shape[:-1] + b.shape[:-1]; the plain product when one is 0-d.
    Raises: ValueError when the axes differ in size.
    Source: numpy.inner
    """
    a, b = as_array(a), as_array(b)
    if a.ndim == 0 or b.ndim == 0:
        return a * b
    if a.shape[-1] != b.shape[-1]:
        raise ValueError(f"shapes {_text(a.shape)} and {_text(b.shape)} not aligned: {a.shape[-1]} (dim {a.ndim - 1}) "
                         f"!= {b.shape[-1]} (dim {b.ndim - 1})")
    return tensordot(a, b, ((-1,), (-1,)))


def outer(a, b, out=None):
    """Every element of one flattened array times every one of another.

    Parameters: a: array of size m. b: array of size n. out: array to fill.
    Returns: ndarray of shape (m, n).
    Raises: nothing of its own.
    Source: numpy.outer
    """
    return _core.ufuncs["multiply"](as_array(a).reshape(-1, 1), as_array(b).reshape(1, -1), out=out)


def tensordot(a, b, axes=2):
    """Sum of products over pairs of axes.

    Parameters: a, b: arrays. axes: how many axes at a's end and b's beginning, or two sequences of axes.
    Returns: ndarray: a's other axes, then b's.
    Raises: ValueError when paired axes differ in size.
    Source: numpy.tensordot
    """
    a, b = as_array(a), as_array(b)
    of_a, of_b = _pairs(axes, a.ndim, b.ndim)
    if len(of_a) != len(of_b) or any(a.shape[i] != b.shape[j] for i, j in zip(of_a, of_b)):
        raise ValueError("shape-mismatch for sum")
    rest_a = [i for i in builtins.range(a.ndim) if i not in of_a]
    rest_b = [j for j in builtins.range(b.ndim) if j not in of_b]
    shape = tuple(a.shape[i] for i in rest_a) + tuple(b.shape[j] for j in rest_b)
    count = _base.product(a.shape[i] for i in of_a)
    left = a.transpose(rest_a + of_a).reshape(_base.product(a.shape[i] for i in rest_a), count)
    right = b.transpose(of_b + rest_b).reshape(count, _base.product(b.shape[j] for j in rest_b))
    return matrix_product(*_common(left, right)).reshape(shape)


def _pairs(axes, ndim_a, ndim_b):
    try:
        of_a, of_b = axes
    except TypeError:
        n = operator.index(axes)
        if n > builtins.min(ndim_a, ndim_b):
            raise ValueError("shape-mismatch for sum") from None
        return list(builtins.range(ndim_a - n, ndim_a)), list(builtins.range(n))
    of_a, of_b = (list(one) if isinstance(one, (tuple, list)) else [one] for one in (of_a, of_b))
    return [normalize_axis(i, ndim_a) for i in of_a], [normalize_axis(j, ndim_b) for j in of_b]


def kron(a, b):
    """Kronecker product: b scaled by each element of a, as blocks.

    Parameters: a, b: arrays.
    Returns: ndarray whose dimensions are the products of theirs.
    Raises: nothing of its own.
    Source: numpy.kron
    """
    a, b = as_array(a), as_array(b)
    ndim = builtins.max(a.ndim, b.ndim)
    shape_a = (1,) * (ndim - a.ndim) + a.shape
    shape_b = (1,) * (ndim - b.ndim) + b.shape
    left = a.reshape(tuple(n for size in shape_a for n in (size, 1)))
    right = b.reshape(tuple(n for size in shape_b for n in (1, size)))
    return (left * right).reshape(tuple(m * n for m, n in zip(shape_a, shape_b)))


def cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    """Cross product of vectors of 3 components (or 2, which is deprecated in NumPy).

    Parameters: a, b: arrays with the components along axisa and axisb. axisc: where the result has them. axis: all
    three at once.
    Returns: ndarray.
    Raises: ValueError for another number of components; AxisError.
    Source: numpy.cross
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = moveaxis(a, axisa, -1), moveaxis(b, axisb, -1)
    if a.shape[-1] not in (2, 3) or b.shape[-1] not in (2, 3):
        raise ValueError(f"Both input arrays must be (arrays of) 3-dimensional vectors, but they are {a.shape[-1]} and "
                         f"{b.shape[-1]} dimensional instead.")
    x, y = ([v[..., i] if i < v.shape[-1] else None for i in (0, 1, 2)] for v in (a, b))
    if x[2] is None and y[2] is None:
        return x[0] * y[1] - x[1] * y[0]
    result = _base.zeros(np.broadcast_shapes(a.shape[:-1], b.shape[:-1]) + (3,), _base.result_type(a.dtype, b.dtype))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        _difference(x[j], y[k], x[k], y[j], result[..., i])
    return moveaxis(result, -1, axisc)


def _difference(a, b, c, d, out):
    """a*b - c*d into out, where None is zero."""
    u = _core.ufuncs
    if a is None or b is None:
        u["negative"](c * d, out=out)
    elif c is None or d is None:
        u["multiply"](a, b, out=out)
    else:
        u["subtract"](a * b, c * d, out=out)


def trace(a, offset=0, axis1=0, axis2=1, dtype=None, out=None):
    """Sum along diagonals.

    Parameters: a: array, at least 2-d. offset, axis1, axis2: as diagonal. dtype: type of the sum. out: array to fill.
    Returns: ndarray without the two axes.
    Raises: ValueError for fewer than 2 dimensions; AxisError.
    Source: numpy.trace
    """
    from .._array.indexing import diagonal
    return reduce("sum", diagonal(a, offset, axis1, axis2), -1, dtype, out)


def matvec(x1, x2, /):
    """Matrix times vector, for stacks of both.

    Parameters: x1: array of shape (..., m, n). x2: array of shape (..., n).
    Returns: ndarray of shape (..., m).
    Raises: ValueError when sizes do not fit.
    Source: numpy.matvec
    """
    x1, x2 = as_array(x1), as_array(x2)
    _check_core("matvec", "(m,n),(n)->(m)", (x1, 2), (x2, 1))
    return matmul(x1, x2[..., None])[..., 0]


def _check_core(name, signature, *operands):
    """ValueError for an array that has fewer dimensions than one item of it takes."""
    for i, (a, least) in enumerate(operands):
        if a.ndim < least:
            raise ValueError(f"{name}: Input operand {i} does not have enough dimensions (has {a.ndim}, gufunc core with "
                             f"signature {signature} requires {least})")


def vecmat(x1, x2, /):
    """Conjugated vector times matrix, for stacks of both.

    Parameters: x1: array of shape (..., n). x2: array of shape (..., n, m).
    Returns: ndarray of shape (..., m).
    Raises: ValueError when sizes do not fit.
    Source: numpy.vecmat
    """
    x1, x2 = as_array(x1), as_array(x2)
    _check_core("vecmat", "(n),(n,m)->(m)", (x1, 1), (x2, 2))
    return matmul((_core.ufuncs["conjugate"](x1) if x1.dtype.kind == "c" else x1)[..., None, :], x2)[..., 0, :]


def vecdot(x1, x2, /, *, axis=-1):
    """Product of vectors along an axis, the first conjugated.

    Parameters: x1, x2: arrays that broadcast. axis: the axis of the vectors.
    Returns: ndarray without that axis.
    Raises: ValueError when sizes do not fit.
    Source: numpy.vecdot
    """
    x1, x2 = moveaxis(x1, axis, -1), moveaxis(x2, axis, -1)
    if x1.shape[-1] != x2.shape[-1]:
        raise ValueError(f"vecdot: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature "
                         f"(n),(n)->() (size {x2.shape[-1]} is different from {x1.shape[-1]})")
    return vecmat(x1, x2[..., None])[..., 0]


def norm(x, ord=None, axis=None, keepdims=False):
    """Norm of vectors or matrices.

    Parameters: x: array. ord: None (2-norm of the flattened array), for vectors a number, inf or -inf; for matrices
    'fro', 'nuc', 1, -1, 2, -2, inf, -inf. axis: an int for vectors, two ints for matrices; all of x unless given.
    keepdims: keep the axes, with size 1.
    Returns: real ndarray.
    Raises: ValueError for an ord that does not exist; AxisError; LinAlgError as svdvals, for 2, -2 and 'nuc'.
    Source: numpy.linalg.norm
    """
    x = as_array(x)
    if x.dtype.kind not in _base.INEXACT:
        x = x.astype(float)
    axes = normalize_axes(axis, x.ndim)
    if ord is None and axis is None:
        return _vector_norm(x, 2, None, keepdims)
    if len(axes) == 1:
        return _vector_norm(x, 2 if ord is None else ord, axes[0], keepdims)
    if len(axes) != 2:
        raise ValueError("Improper number of dimensions to norm.")
    return _matrix_norm(x, ord, axes, keepdims)


def _vector_norm(x, ord, axis, keepdims):
    if ord == 2:
        return _root_of_squares(x, axis, keepdims)
    if ord == 0:
        return reduce("sum", x != 0, axis, x.real.dtype, keepdims=keepdims)
    size = _core.ufuncs["absolute"](x)
    if ord == np.inf:
        return reduce("max", size, axis, keepdims=keepdims, initial=0)
    if ord == -np.inf:
        return reduce("min", size, axis, keepdims=keepdims)
    if ord == 1:
        return reduce("sum", size, axis, keepdims=keepdims)
    if isinstance(ord, str):
        raise ValueError(f"Invalid norm order '{ord}' for vectors")
    return reduce("sum", size ** ord, axis, keepdims=keepdims) ** (1 / ord)


def _root_of_squares(x, axes, keepdims):
    size = _core.ufuncs["absolute"](x) if x.dtype.kind == "c" else x
    return _core.ufuncs["sqrt"](reduce("sum", size * size, axes, keepdims=keepdims))


def _matrix_norm(x, ord, axes, keepdims):
    if ord in (None, "fro", "f"):
        return _root_of_squares(x, axes, keepdims)
    if ord in (2, -2, "nuc"):
        return _svd_norm(x, ord, axes, keepdims)
    rows, columns = axes
    choices = {1: (rows, columns, "max"), -1: (rows, columns, "min"),
               np.inf: (columns, rows, "max"), -np.inf: (columns, rows, "min")}
    if ord not in choices:
        raise ValueError("Invalid norm order for matrices.")
    summed, extreme, name = choices[ord]
    size = _core.ufuncs["absolute"](x)
    result = reduce(name, reduce("sum", size, summed, keepdims=True), extreme, keepdims=True,
                    initial=0 if name == "max" else None)
    return result if keepdims else result.reshape(tuple(n for i, n in enumerate(x.shape) if i not in axes))


def _svd_norm(x, ord, axes, keepdims):
    from ..linalg._decompositions import svdvals
    values = svdvals(moveaxis(x, axes, (-2, -1)))
    if ord == "nuc":
        result = reduce("sum", values, -1)
    elif values.shape[-1] == 0 and ord == 2:
        result = _base.zeros(values.shape[:-1], values.dtype)
    else:
        result = reduce("max" if ord == 2 else "min", values, -1)
    return result.reshape(tuple(1 if i in axes else n for i, n in enumerate(x.shape))) if keepdims else result


def matrix_power(a, n):
    """A square matrix multiplied with itself.

    Parameters: a: array of shape (..., m, m). n: how often; that of the inverse when negative.
    Returns: ndarray of a's shape.
    Raises: LinAlgError for a matrix that is not square, and as inv for a negative n; TypeError for an n that is no
    integer.
    Source: numpy.linalg.matrix_power
    """
    a = as_array(a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise _core.LinAlgError("Last 2 dimensions of the array must be square")
    try:
        n = operator.index(n)
    except TypeError:
        raise TypeError("exponent must be an integer") from None
    if n < 0:
        from ..linalg._decompositions import inv
        a, n = inv(a), -n
    if n == 0:
        from .._array.grids import eye
        return broadcast_to(eye(a.shape[-1], dtype=a.dtype), a.shape).copy()
    result = None
    while n:
        if n & 1:
            result = a if result is None else matmul(result, a)
        n >>= 1
        a = matmul(a, a) if n else a
    return result.copy() if result is a else result
