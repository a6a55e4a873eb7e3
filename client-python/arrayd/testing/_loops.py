"""Decorators that run a test for several types, layouts and axes."""
import os
import random

import numpy as np

from ._compare import is_skip, without
from ._parameterize import product

_FLOATS = (np.float64, np.float32)
_ALL_FLOATS = _FLOATS + (np.float16,)
_COMPLEX = (np.complex64, np.complex128)
_SIGNED = tuple(np.dtype(c).type for c in "bhilq")
_UNSIGNED = tuple(np.dtype(c).type for c in "BHILQ")
_INTEGERS = _SIGNED + _UNSIGNED


def _looping(names, values):
    """A decorator that calls a test with each of values, dicts of arguments, which go before those that it is called with:
    of two loops over one parameter the inner one says what the test gets."""
    def decorator(test):
        @without(test, *names)
        def wrapper(*args, **kw):
            for one in values:
                try:
                    test(*args, **(kw | one))
                except BaseException as error:
                    if not is_skip(error):
                        error.add_note(", ".join(f"{name} is {value!r}" for name, value in one.items()))
                        raise
        return wrapper
    return decorator


def for_dtypes(dtypes, name="dtype"):
    """A decorator that calls a test with each of several types.

    Parameters: dtypes: the types. name: of the test's parameter that gets them.
    Returns: decorator.
    Source: cupy.testing.for_dtypes
    """
    return _looping([name], [{name: np.dtype(dtype).type} for dtype in dtypes])


def _all(no_float16, no_bool, no_complex):
    return (_FLOATS if no_float16 else _ALL_FLOATS) + _INTEGERS + (() if no_bool else (np.bool_,)) \
        + (() if no_complex else _COMPLEX)


def for_all_dtypes(name="dtype", no_float16=False, no_bool=False, no_complex=False):
    """A decorator that calls a test with each type: bool, integers, float16 to float64, complex.

    Parameters: name: as for_dtypes. no_float16, no_bool, no_complex: leave these out.
    Returns: decorator.
    Source: cupy.testing.for_all_dtypes
    """
    return for_dtypes(_all(no_float16, no_bool, no_complex), name)


def for_float_dtypes(name="dtype", no_float16=False):
    """A decorator that calls a test with float16, float32 and float64.

    Parameters: name: as for_dtypes. no_float16: leave that out.
    Returns: decorator.
    Source: cupy.testing.for_float_dtypes
    """
    return for_dtypes(_FLOATS if no_float16 else _ALL_FLOATS, name)


def for_signed_dtypes(name="dtype"):
    """A decorator that calls a test with each signed integer type.

    Parameters: name: as for_dtypes.
    Returns: decorator.
    Source: cupy.testing.for_signed_dtypes
    """
    return for_dtypes(_SIGNED, name)


def for_unsigned_dtypes(name="dtype"):
    """A decorator that calls a test with each unsigned integer type.

    Parameters: name: as for_dtypes.
    Returns: decorator.
    Source: cupy.testing.for_unsigned_dtypes
    """
    return for_dtypes(_UNSIGNED, name)


def for_int_dtypes(name="dtype", no_bool=False):
    """A decorator that calls a test with each integer type, and bool.

    Parameters: name: as for_dtypes. no_bool: without bool.
    Returns: decorator.
    Source: cupy.testing.for_int_dtypes
    """
    return for_dtypes(_INTEGERS + (() if no_bool else (np.bool_,)), name)


def for_complex_dtypes(name="dtype"):
    """A decorator that calls a test with complex64 and complex128.

    Parameters: name: as for_dtypes.
    Returns: decorator.
    Source: cupy.testing.for_complex_dtypes
    """
    return for_dtypes(_COMPLEX, name)


def for_dtypes_combination(types, names=("dtype",), full=None):
    """A decorator that calls a test with combinations of types.

    Parameters: types: the types. names: of the test's parameters that get them. full: all combinations, or some, in
    which each type comes for each name (the same ones every time); unless given, what the environment variable
    CUPY_TEST_FULL_COMBINATION says.
    Returns: decorator.
    Source: cupy.testing.for_dtypes_combination
    """
    types = [np.dtype(one).type for one in types]
    full = int(os.environ.get("CUPY_TEST_FULL_COMBINATION", "0")) != 0 if full is None else full
    if full or len(types) == 1:
        return _looping(names, product({name: types for name in names}))
    chosen = random.Random(0)
    columns = [types + chosen.sample(types, len(types)) for _ in names]
    return _looping(names, [dict(zip(names, row)) for row in dict.fromkeys(zip(*columns))])


def for_all_dtypes_combination(names=("dtype",), no_float16=False, no_bool=False, full=None, no_complex=False):
    """for_dtypes_combination of all types.

    Parameters: names, full: as for_dtypes_combination. no_float16, no_bool, no_complex: as for_all_dtypes.
    Returns: decorator.
    Source: cupy.testing.for_all_dtypes_combination
    """
    return for_dtypes_combination(_all(no_float16, no_bool, no_complex), names, full)


def for_signed_dtypes_combination(names=("dtype",), full=None):
    """for_dtypes_combination of the signed integer types.

    Parameters, Returns: as for_dtypes_combination.
    Source: cupy.testing.for_signed_dtypes_combination
    """
    return for_dtypes_combination(_SIGNED, names, full)


def for_unsigned_dtypes_combination(names=("dtype",), full=None):
    """for_dtypes_combination of the unsigned integer types.

    Parameters, Returns: as for_dtypes_combination.
    Source: cupy.testing.for_unsigned_dtypes_combination
    """
    return for_dtypes_combination(_UNSIGNED, names, full)


def for_int_dtypes_combination(names=("dtype",), no_bool=False, full=None):
    """for_dtypes_combination of the integer types, and bool.

    Parameters: no_bool: without bool. The rest as for_dtypes_combination.
    Returns: decorator.
    Source: cupy.testing.for_int_dtypes_combination
    """
    return for_dtypes_combination(_INTEGERS + (() if no_bool else (np.bool_,)), names, full)


def for_orders(orders, name="order"):
    """A decorator that calls a test with each of several layouts.

    Parameters: orders: such as 'C', 'F'. name: of the test's parameter that gets them.
    Returns: decorator.
    Source: cupy.testing.for_orders
    """
    return _looping([name], [{name: order} for order in orders])


def for_CF_orders(name="order"):
    """A decorator that calls a test with the layouts None, 'C', 'F', 'c' and 'f'.

    Parameters: name: as for_orders.
    Returns: decorator.
    Source: cupy.testing.for_CF_orders
    """
    return for_orders([None, "C", "F", "c", "f"], name)


def for_contiguous_axes(name="axis"):
    """A decorator for methods of a class with the attributes shape and order. It calls them with each tuple of axes that
    is contiguous. For three dimensions these are (0, 1, 2), (1, 2) and (2,) with 'C', (0,), (0, 1) and (0, 1, 2) with 'F'.

    Parameters: name: of the method's parameter that gets them.
    Returns: decorator. The method raises ValueError for another order.
    Source: cupy.testing.for_contiguous_axes
    """
    def decorator(test):
        @without(test, name)
        def wrapper(self, *args, **kw):
            ndim = len(self.shape)
            if self.order not in ("c", "C", "f", "F"):
                raise ValueError("Please specify the array order.")
            axes = [tuple(range(i, ndim) if self.order in "cC" else range(i + 1)) for i in range(ndim)]
            _looping([name], [{name: one} for one in axes])(test)(self, *args, **kw)
        return wrapper
    return decorator
