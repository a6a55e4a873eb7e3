"""Decorators that run a test with NumPy and with arrayd and compare what it returns."""
import functools
import importlib
import inspect
import sys
import traceback
import unittest
import warnings

import numpy as np

from . import _array
from .._core import ndarray
from .._array.creation import asnumpy
from .._math.poly1d import poly1d

# Where an except clause for one of these takes NumPy's error, it must take arrayd's.
_CLASSES = (Exception, AttributeError, IndexError, TypeError, ValueError, NotImplementedError, DeprecationWarning,
            np.exceptions.AxisError, np.linalg.LinAlgError)
_UNSIGNED = tuple(np.dtype(c).type for c in "BHILQ")


def without(function, *names):
    """A decorator for a wrapper of a test: it looks like the test, without the parameters that the wrapper gives."""
    def decorator(wrapper):
        wrapper = functools.wraps(function)(wrapper)
        signature = inspect.signature(function)
        wrapper.__signature__ = signature.replace(
            parameters=[p for name, p in signature.parameters.items() if name not in names])
        return wrapper
    return decorator


def is_skip(error):
    """Whether an exception means that a test is skipped."""
    outcomes = sys.modules.get("_pytest.outcomes")
    return isinstance(error, (unittest.SkipTest, *([outcomes.Skipped] if outcomes else [])))


def _module():
    """arrayd, under the name that the program has imported it by."""
    import arrayd
    stand_in = sys.modules.get("cupy")
    return stand_in if type(stand_in).__module__ == "arrayd.cupy" else arrayd


def _outcome(test, args, kw):
    """Return what a test returns, and what it raises."""
    try:
        return test(*args, **kw), None
    except BaseException as error:
        if not isinstance(error, Exception) and not is_skip(error):
            raise
        return None, error


def _arguments(name, sp_name, scipy_name):
    """Return what a test's parameters for modules get: (with arrayd, with NumPy)."""
    ours, numpys = {name: _module()}, {name: np}
    for parameter, module in ((sp_name, "scipy.sparse"), (scipy_name, "scipy")):
        if parameter is not None:
            ours[parameter] = importlib.import_module("arrayd." + module)
            numpys[parameter] = importlib.import_module(module)
    return ours, numpys


def _text(error):
    return "".join(traceback.format_exception(error)).rstrip()


def _check_errors(ours, numpys, accept):
    """AssertionError unless both are errors of the same kind that accept allows."""
    if ours is not None and numpys is not None and is_skip(ours) and is_skip(numpys):
        raise numpys
    accept = Exception if accept is True else accept or ()
    if ours is None and numpys is None:
        raise AssertionError("an error is expected from both, and neither raises one")
    if ours is None:
        raise AssertionError(f"Only numpy raises error\n\n{_text(numpys)}")
    if numpys is None:
        raise AssertionError(f"Only arrayd raises error\n\n{_text(ours)}") from ours
    both = f"arrayd\n{_text(ours)}\n\nnumpy\n{_text(numpys)}"
    if any(isinstance(ours, kind) != isinstance(numpys, kind) for kind in _CLASSES):
        raise AssertionError(f"Different types of errors occurred\n\n{both}") from ours
    if not (isinstance(ours, accept) and isinstance(numpys, accept)):
        raise AssertionError(f"Both arrayd and numpy raise exceptions\n\n{both}") from ours


def _pair(ours, numpys):
    """A result of both as arrays; sparse ones as dense ones."""
    if hasattr(ours, "toarray") and hasattr(numpys, "toarray"):
        return ours.toarray(order="C"), numpys.toarray(order="C")
    if isinstance(ours, ndarray) and isinstance(numpys, (np.ndarray, np.generic)):
        return ours, numpys
    if isinstance(ours, poly1d) and isinstance(numpys, np.poly1d):
        assert ours.variable == numpys.variable
        return ours.coeffs, numpys.coeffs
    if np.isscalar(ours) and np.isscalar(numpys):
        return np.asarray(ours), np.asarray(numpys)
    raise AssertionError(f"numpy and arrayd return different types of value:\narrayd: {type(ours)}\n"
                         f"numpy: {type(numpys)}")


def _listed(value):
    return value if isinstance(value, (tuple, list)) else (value,)


def _check_contiguous(ours, numpys):
    for flag in ("c_contiguous", "f_contiguous"):
        if isinstance(numpys, np.ndarray) and getattr(numpys.flags, flag) and not getattr(ours.flags, flag):
            raise AssertionError(f"numpy's result is {flag}, arrayd's is not")


def _undefined(test, args, kw, modules):
    """Masks of the elements of arrayd's results that were negative before they became unsigned, which machines do in
    different ways; None where that cannot have been."""
    types = {key: np.dtype(value).type for key, value in kw.items() if _is_type(value)}
    if not set(types.values()) & set(_UNSIGNED) or all(t in _UNSIGNED or t is np.bool_ for t in types.values()):
        return None
    signed = {key: np.dtype(np.dtype(t).char.lower()).type for key, t in types.items() if t in _UNSIGNED}
    result, error = _outcome(test, args, {**kw, **signed, **modules})
    return None if error else [asnumpy(one) < 0 for one in _listed(result)]


def _is_type(value):
    return isinstance(value, np.dtype) or isinstance(value, type) and issubclass(value, np.generic)


def _comparing(check, name, type_check, contiguous_check, accept_error, sp_name, scipy_name):
    """A decorator for tests whose results check(ours, numpy's) compares."""
    def decorator(test):
        @without(test, name, sp_name, scipy_name)
        def wrapper(*args, **kw):
            modules = _arguments(name, sp_name, scipy_name)
            (ours, error), (numpys, wrong) = [_outcome(test, args, {**kw, **each}) for each in modules]
            if error is not None or wrong is not None:
                _check_errors(error, wrong, accept_error)
                return
            assert ours is not None and numpys is not None, "the test returns nothing to compare"
            assert len(_listed(ours)) == len(_listed(numpys)), "numpy and arrayd return different numbers of results"
            pairs = [_pair(*both) for both in zip(_listed(ours), _listed(numpys))]
            for a, n in pairs:
                if type_check and a.dtype != n.dtype:
                    raise AssertionError(f"arrays of different dtypes are returned.\narrayd: {a.dtype}\n"
                                         f"numpy: {n.dtype}")
                assert a.shape == n.shape, f"arrayd's result has shape {a.shape}, numpy's {n.shape}"
                if contiguous_check:
                    _check_contiguous(a, n)
            for i, (a, n) in enumerate(pairs):
                try:
                    check(a, n)
                except AssertionError:  # only now, as it calls the test once more
                    undefined = _undefined(test, args, kw, modules[0]) if a.dtype.type in _UNSIGNED else None
                    if undefined is None or not undefined[i].any():
                        raise
                    check(asnumpy(a)[~undefined[i]], np.asarray(n)[~undefined[i]])
        return wrapper
    return decorator


def numpy_cupy_allclose(rtol=1e-7, atol=0, err_msg="", verbose=True, name="xp", type_check=True, accept_error=False,
                        sp_name=None, scipy_name=None, contiguous_check=True):
    """A decorator for tests that return nearly equal arrays when given numpy and arrayd.

    Parameters: rtol, atol: numbers, or dicts of them by type, with 'default' for the others. err_msg, verbose: as
    assert_allclose. name: of the test's parameter that gets the module. type_check: compare types. accept_error: True
    or exception classes: that both raise one is right, too. sp_name, scipy_name: of the parameters
    that get scipy.sparse and scipy, arrayd's or SciPy's own. contiguous_check: arrayd's results must be
    contiguous where NumPy's are.
    Returns: decorator.
    Raises: TypeError for dicts with other keys, or without type_check.
    Source: cupy.testing.numpy_cupy_allclose
    """
    for tolerance in (rtol, atol):
        if isinstance(tolerance, dict):
            if not type_check:
                raise TypeError("When `type_check` is `False`, `rtol` and `atol` must be supplied as float.")
            if not all(isinstance(key, type) or key == "default" for key in tolerance):
                raise TypeError("Keys of the tolerance dictionary need to be types as `numpy.float32`, or 'default'.")

    def of_type(tolerance, dtype):
        if not isinstance(tolerance, dict):
            return tolerance
        if dtype.type not in tolerance and "default" not in tolerance:
            raise TypeError(f"Can not find tolerance for {dtype.type}")
        return tolerance.get(dtype.type, tolerance.get("default"))

    def check(a, n):
        _array.assert_allclose(a, n, of_type(rtol, a.dtype), of_type(atol, a.dtype), err_msg, verbose)
    return _comparing(check, name, type_check, contiguous_check, accept_error, sp_name, scipy_name)


def numpy_cupy_array_almost_equal(decimal=6, err_msg="", verbose=True, name="xp", type_check=True, accept_error=False,
                                  sp_name=None, scipy_name=None):
    """A decorator for tests that return arrays equal up to decimals when given numpy and arrayd.

    Parameters: decimal: how many. The rest as numpy_cupy_allclose.
    Returns: decorator.
    Source: cupy.testing.numpy_cupy_array_almost_equal
    """
    def check(a, n):
        _array.assert_array_almost_equal(a, n, decimal, err_msg, verbose)
    return _comparing(check, name, type_check, False, accept_error, sp_name, scipy_name)


def numpy_cupy_array_almost_equal_nulp(nulp=1, name="xp", type_check=True, accept_error=False, sp_name=None,
                                       scipy_name=None):
    """A decorator for tests that return arrays equal up to units in the last place when given numpy and arrayd.

    Parameters: nulp: how many units. The rest as numpy_cupy_allclose.
    Returns: decorator.
    Source: cupy.testing.numpy_cupy_array_almost_equal_nulp
    """
    def check(a, n):
        _array.assert_array_almost_equal_nulp(a, n, nulp)
    return _comparing(check, name, type_check, False, accept_error, sp_name, scipy_name)


def numpy_cupy_array_max_ulp(maxulp=1, dtype=None, name="xp", type_check=True, accept_error=False, sp_name=None,
                             scipy_name=None):
    """A decorator for tests that return arrays with few floats between their elements when given numpy and arrayd.

    Parameters: maxulp, dtype: as assert_array_max_ulp. The rest as numpy_cupy_allclose.
    Returns: decorator.
    Source: cupy.testing.numpy_cupy_array_max_ulp
    """
    def check(a, n):
        _array.assert_array_max_ulp(a, n, maxulp, dtype)
    return _comparing(check, name, type_check, False, accept_error, sp_name, scipy_name)


def numpy_cupy_array_equal(err_msg="", verbose=True, name="xp", type_check=True, accept_error=False, sp_name=None,
                           scipy_name=None, strides_check=False):
    """A decorator for tests that return equal arrays when given numpy and arrayd.

    Parameters: strides_check: the strides must be equal too. The rest as numpy_cupy_allclose.
    Returns: decorator.
    Source: cupy.testing.numpy_cupy_array_equal
    """
    def check(a, n):
        _array.assert_array_equal(a, n, err_msg, verbose, strides_check=strides_check)
    return _comparing(check, name, type_check, False, accept_error, sp_name, scipy_name)


def numpy_cupy_array_list_equal(err_msg="", verbose=True, name="xp", sp_name=None, scipy_name=None):
    """A decorator for tests that return lists of equal arrays; numpy_cupy_array_equal does that, too.

    Parameters: as numpy_cupy_array_equal.
    Returns: decorator. Warns DeprecationWarning, as CuPy's.
    Source: cupy.testing.numpy_cupy_array_list_equal
    """
    warnings.warn("numpy_cupy_array_list_equal is deprecated. Use numpy_cupy_array_equal instead.", DeprecationWarning,
                  stacklevel=2)

    def check(a, n):
        _array.assert_array_equal(a, n, err_msg, verbose)
    return _comparing(check, name, False, False, False, sp_name, scipy_name)


def numpy_cupy_array_less(err_msg="", verbose=True, name="xp", type_check=True, accept_error=False, sp_name=None,
                          scipy_name=None):
    """A decorator for tests that return a smaller array when given arrayd than when given numpy.

    Parameters: as numpy_cupy_allclose.
    Returns: decorator.
    Source: cupy.testing.numpy_cupy_array_less
    """
    def check(a, n):
        _array.assert_array_less(a, n, err_msg, verbose)
    return _comparing(check, name, type_check, False, accept_error, sp_name, scipy_name)


def numpy_cupy_equal(name="xp", sp_name=None, scipy_name=None):
    """A decorator for tests that return the same (of which == gives a bool) when given numpy and arrayd.

    Parameters: as numpy_cupy_allclose.
    Returns: decorator.
    Source: cupy.testing.numpy_cupy_equal
    """
    def decorator(test):
        @without(test, name, sp_name, scipy_name)
        def wrapper(*args, **kw):
            modules = _arguments(name, sp_name, scipy_name)
            (ours, error), (numpys, wrong) = [_outcome(test, args, {**kw, **each}) for each in modules]
            if error is not None or wrong is not None:
                _check_errors(error, wrong, False)
            if ours != numpys:
                raise AssertionError(f"Results are not equal:\narrayd: {ours}\nnumpy: {numpys}")
        return wrapper
    return decorator


def numpy_cupy_raises(name="xp", sp_name=None, scipy_name=None, accept_error=Exception):
    """A decorator for tests that raise the same kind of error when given numpy and arrayd.

    Parameters: accept_error: exception classes. The rest as numpy_cupy_allclose.
    Returns: decorator. Warns DeprecationWarning, as CuPy's.
    Source: cupy.testing.numpy_cupy_raises
    """
    warnings.warn("cupy.testing.numpy_cupy_raises is deprecated.", DeprecationWarning, stacklevel=2)

    def decorator(test):
        @without(test, name, sp_name, scipy_name)
        def wrapper(*args, **kw):
            modules = _arguments(name, sp_name, scipy_name)
            (_, error), (_, wrong) = [_outcome(test, args, {**kw, **each}) for each in modules]
            _check_errors(error, wrong, accept_error)
        return wrapper
    return decorator
