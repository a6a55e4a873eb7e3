"""Arrays for tests, and what tests need of their environment."""
import contextlib
import functools
import importlib.metadata
import math
import unittest
import unittest.mock
import warnings

import numpy as np


def _module(xp):
    if xp is not None:
        return xp
    import arrayd
    return arrayd


def shaped_arange(shape, xp=None, dtype=np.float32, order="C"):
    """An array of 1, 2, ... (of 1+1j, 2+2j, ...; of False, True, ... for bool).

    Parameters: shape: of the array. xp: the module that makes it, arrayd unless given. dtype: of the elements. order:
    'C' or 'F'.
    Returns: array of xp.
    Source: cupy.testing.shaped_arange
    """
    return _counted(np.arange(1, math.prod(shape) + 1), shape, xp, dtype, order)


def shaped_reverse_arange(shape, xp=None, dtype=np.float32):
    """An array of n, n-1, ..., 1.

    Parameters: as shaped_arange.
    Returns: array of xp.
    Source: cupy.testing.shaped_reverse_arange
    """
    return _counted(np.arange(math.prod(shape), 0, -1), shape, xp, dtype, "C")


def _counted(a, shape, xp, dtype, order):
    dtype = np.dtype(dtype)
    a = a % 2 == 0 if dtype == bool else a + a * 1j if dtype.kind == "c" else a
    return _module(xp).array(a.astype(dtype).reshape(shape), order=order)


def shaped_random(shape, xp=None, dtype=np.float32, scale=10, seed=0, order="C"):
    """An array of random numbers, the same ones for a seed: uniform on [0, scale), for bool each with one half. Seeds
    numpy.random.

    Parameters: scale, seed: as above. The rest as shaped_arange.
    Returns: array of xp.
    Source: cupy.testing.shaped_random
    """
    np.random.seed(seed)
    dtype = np.dtype(dtype)
    if dtype == bool:
        a = np.random.randint(2, size=shape)
    elif dtype.kind == "c":
        a = (np.random.rand(*shape) + 1j * np.random.rand(*shape)) * scale
    else:
        a = np.random.rand(*shape) * scale
    return _module(xp).asarray(a, dtype=dtype, order=order)


def shaped_sparse_random(shape, sp=None, dtype=np.float32, density=0.01, format="coo", seed=0):
    """A sparse matrix of random numbers at random places, the same ones for a seed. Seeds numpy.random; needs SciPy.

    Parameters: shape: rows and columns. sp: scipy.sparse, or arrayd.scipy.sparse (unless given). dtype: of the elements.
    density: part of the places that have one. format: of the matrix. seed: as above.
    Returns: sparse matrix of sp.
    Raises: ValueError for another module.
    Source: cupy.testing.shaped_sparse_random
    """
    import scipy.sparse
    from ..scipy import sparse
    if sp not in (None, sparse, scipy.sparse):
        raise ValueError(f"sp must be scipy.sparse or arrayd.scipy.sparse, not {sp}")
    np.random.seed(seed)
    drawn = scipy.sparse.random(*shape, density=density).astype(dtype)
    return (drawn if sp is scipy.sparse else sparse.coo_matrix(drawn)).asformat(format)


def shaped_linspace(start, stop, shape, xp=None, dtype=np.float32):
    """An array of evenly spaced numbers.

    Parameters: start, stop: the first and the last; not below 0 for unsigned types, from 0 to 1 for bool. The rest as
    shaped_arange.
    Returns: array of xp.
    Source: cupy.testing.shaped_linspace
    """
    dtype, shape = np.dtype(dtype), (shape,) if np.isscalar(shape) else shape
    start = max(start, 0) if dtype.kind in "bu" else start
    stop = min(stop, 1) if dtype.kind == "b" else stop
    return _module(xp).array(np.linspace(start, stop, math.prod(shape)).astype(dtype).reshape(shape))


def generate_matrix(shape, xp=None, dtype=np.float32, *, singular_values=None):
    """Random matrices with given singular values.

    Parameters: shape: (..., M, N). xp, dtype: as shaped_arange. singular_values: array that broadcasts to
    (..., min(M, N)).
    Returns: array of xp.
    Raises: ValueError for less than 2 dimensions or a negative singular value; TypeError for another type, or no
    singular values.
    Source: cupy.testing.generate_matrix
    """
    xp, dtype = _module(xp), np.dtype(dtype)
    if len(shape) <= 1:
        raise ValueError(f"shape {shape} is invalid for matrices: too few axes")
    if singular_values is None:
        raise TypeError("singular_values is not given")
    if dtype.kind not in "fc":
        raise TypeError(f"dtype {dtype} is not supported")
    values = xp.asarray(singular_values)
    if values.dtype.kind == "c":
        raise TypeError("singular_values is not real")
    if (values < 0).any():
        raise ValueError("negative singular value is given")
    a = xp.random.randn(*shape)
    u, s, vh = xp.linalg.svd(a + 1j * xp.random.randn(*shape) if dtype.kind == "c" else a, full_matrices=False)
    return (u * xp.broadcast_to(values, s.shape)[..., None, :] @ vh).astype(dtype)


@functools.cache
def _version_of(package):
    """The version of an installed package, or None; reading it takes longer than many a test."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def installed(*specifiers):
    """Whether packages are installed, in versions that fit.

    Parameters: specifiers: such as 'scipy>=1.10'.
    Returns: bool.
    Raises: ImportError without the package `packaging`.
    Source: cupy.testing.installed
    """
    from packaging.requirements import Requirement
    for specifier in map(Requirement, specifiers):
        version = _version_of(specifier.name)
        if version is None or not specifier.specifier.contains(version, prereleases=True):
            return False
    return True


def numpy_satisfies(version_range):
    """Whether NumPy is of a version that fits.

    Parameters: version_range: such as '>=2.1'.
    Returns: bool.
    Source: cupy.testing.numpy_satisfies
    """
    return installed(f"numpy{version_range}")


def with_requires(*requirements):
    """A decorator that skips a test unless packages are installed.

    Parameters: requirements: as installed.
    Returns: decorator of a function, or of a class, whose tests it skips.
    Source: cupy.testing.with_requires
    """
    there, reason = installed(*requirements), f"requires: {','.join(requirements)}"

    def decorator(test):
        if isinstance(test, type) and not issubclass(test, unittest.TestCase):
            from ._marks import _pytest  # classes that unittest does not know are pytest's
            return _pytest().mark.skipif(not there, reason=reason)(test)
        return unittest.skipUnless(there, reason)(test)
    return decorator


@contextlib.contextmanager
def assert_warns(expected):
    """A context manager whose block must warn.

    Parameters: expected: class of the warning.
    Raises: AssertionError at the end of a block that did not.
    Source: cupy.testing.assert_warns
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    if not any(isinstance(one.message, expected) for one in caught):
        raise AssertionError(f"{getattr(expected, '__name__', expected)} not triggered")


@contextlib.contextmanager
def assert_function_is_called(*args, times_called=1, **kwargs):
    """A context manager whose block must call a function, which does nothing meanwhile.

    Parameters: args, kwargs: as of unittest.mock.patch. times_called: how often.
    Raises: AssertionError at the end of the block.
    Source: cupy.testing.assert_function_is_called
    """
    with unittest.mock.patch(*args, **kwargs) as handle:
        yield
    assert handle.call_count == times_called, f"called {handle.call_count} times, not {times_called}"


AssertFunctionIsCalled = assert_function_is_called
