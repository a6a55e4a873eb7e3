"""NumPy's assertions, for arrays of the server (which are fetched) and of this process."""
import numpy.testing as _npt

from .._array.creation import asnumpy


def assert_allclose(actual, desired, rtol=1e-7, atol=0, err_msg="", verbose=True, *, equal_nan=True, strict=False):
    """AssertionError unless two arrays are equal up to tolerances.

    Parameters: actual, desired: arrays. rtol, atol: relative to desired, absolute. err_msg: put before the message.
    verbose: show the values. equal_nan: NaN equals NaN. strict: shapes and types must be equal, too.
    Raises: AssertionError.
    Source: cupy.testing.assert_allclose
    """
    _npt.assert_allclose(asnumpy(actual), asnumpy(desired), rtol, atol, equal_nan, err_msg, verbose, strict=strict)


def assert_array_almost_equal(x, y, decimal=6, err_msg="", verbose=True):
    """AssertionError unless two arrays are equal up to a number of decimals.

    Parameters: x, y: arrays. decimal: how many. err_msg, verbose: as assert_allclose.
    Raises: AssertionError.
    Source: cupy.testing.assert_array_almost_equal
    """
    _npt.assert_array_almost_equal(asnumpy(x), asnumpy(y), decimal, err_msg, verbose)


def assert_array_almost_equal_nulp(x, y, nulp=1):
    """AssertionError unless two arrays are equal up to units in the last place of the larger.

    Parameters: x, y: arrays of floats. nulp: how many units.
    Raises: AssertionError.
    Source: cupy.testing.assert_array_almost_equal_nulp
    """
    _npt.assert_array_almost_equal_nulp(asnumpy(x), asnumpy(y), nulp)


def assert_array_max_ulp(a, b, maxulp=1, dtype=None):
    """AssertionError unless no more floats lie between elements than given.

    Parameters: a, b: arrays of floats. maxulp: how many. dtype: to convert both to before.
    Raises: AssertionError.
    Source: cupy.testing.assert_array_max_ulp
    """
    _npt.assert_array_max_ulp(asnumpy(a), asnumpy(b), maxulp, dtype)


def assert_array_equal(x, y, err_msg="", verbose=True, strict=False, strides_check=False):
    """AssertionError unless two arrays have one shape and equal elements.

    Parameters: x, y: arrays. err_msg, verbose: as assert_allclose. strict: the types must be equal too, and numbers are
    no arrays. strides_check: the strides must be equal too.
    Raises: AssertionError.
    Source: cupy.testing.assert_array_equal
    """
    _npt.assert_array_equal(asnumpy(x), asnumpy(y), err_msg, verbose, strict=strict)
    if strides_check and x.strides != y.strides:
        raise AssertionError("\n".join(["Strides are not equal:" + (err_msg and " " + err_msg)]
                                       + [f" x: {x.strides}", f" y: {y.strides}"] * bool(verbose)))


def assert_array_list_equal(xlist, ylist, err_msg="", verbose=True, strict=False):
    """AssertionError unless two lists, or two tuples, have equal arrays.

    Parameters: xlist, ylist: lists or tuples of arrays. err_msg, verbose, strict: as assert_array_equal.
    Raises: AssertionError.
    Source: cupy.testing.assert_array_list_equal
    """
    if type(xlist) is not type(ylist) or type(xlist) not in (list, tuple):
        raise AssertionError(f"two lists or two tuples are needed, not {type(xlist)} and {type(ylist)}")
    if len(xlist) != len(ylist):
        raise AssertionError(f"the lists have {len(xlist)} and {len(ylist)} elements")
    for x, y in zip(xlist, ylist):
        assert_array_equal(x, y, err_msg, verbose, strict)


def assert_array_less(x, y, err_msg="", verbose=True, *, strict=False):
    """AssertionError unless every element is less than the other array's.

    Parameters: x: the smaller one. y: the larger one. err_msg, verbose, strict: as assert_allclose.
    Raises: AssertionError.
    Source: cupy.testing.assert_array_less
    """
    _npt.assert_array_less(asnumpy(x), asnumpy(y), err_msg, verbose, strict=strict)
