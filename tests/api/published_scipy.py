"""A pytest plugin: SciPy's own tests of array API libraries, with arrayd as the library. NumPy's comparisons, which the
tests use, fetch arrays; anything else that would turn one into a NumPy array by itself fails."""
import functools

import numpy as np
import pytest
import scipy._lib._array_api as array_api
import scipy.conftest as conftest

import arrayd as ad


def _fetching(function):
    @functools.wraps(function)
    def compare(*args, **kwargs):
        return function(*(arg.get() if isinstance(arg, ad.ndarray) else arg for arg in args), **kwargs)
    return compare


for _name in "assert_allclose assert_array_equal assert_equal assert_array_less assert_array_almost_equal".split():
    setattr(np.testing, _name, _fetching(getattr(np.testing, _name)))
array_api._xp_copy_to_numpy = _fetching(array_api._xp_copy_to_numpy)
conftest.xp_known_backends.add("arrayd")
conftest.xp_skip_cpu_only_backends.add("arrayd")  # as CuPy's: what needs the elements on the host
object.__setattr__(conftest.xp._fixture_function_marker, "params",
                   (pytest.param(ad, id="arrayd", marks=pytest.mark.array_api_backends),))
