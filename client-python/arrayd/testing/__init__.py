"""Helpers for tests of programs that use arrayd, with CuPy's names (cupy.testing).

    from arrayd import testing

    @testing.for_all_dtypes(no_complex=True)
    @testing.numpy_cupy_allclose(rtol=1e-6)
    def test_mean(xp, dtype):                    # xp is numpy, then arrayd; the results are compared
        return testing.shaped_arange((2, 3), xp, dtype).mean(axis=0)

Importing this imports neither pytest nor SciPy.
"""
from ._array import (assert_allclose, assert_array_almost_equal, assert_array_almost_equal_nulp, assert_array_equal,
                     assert_array_less, assert_array_list_equal, assert_array_max_ulp)
from ._compare import (numpy_cupy_allclose, numpy_cupy_array_almost_equal, numpy_cupy_array_almost_equal_nulp,
                       numpy_cupy_array_equal, numpy_cupy_array_less, numpy_cupy_array_list_equal,
                       numpy_cupy_array_max_ulp, numpy_cupy_equal, numpy_cupy_raises)
from ._helper import (AssertFunctionIsCalled, assert_function_is_called, assert_warns, generate_matrix, installed,
                      numpy_satisfies, shaped_arange, shaped_linspace, shaped_random, shaped_reverse_arange,
                      shaped_sparse_random, with_requires)
from ._loops import (for_CF_orders, for_all_dtypes, for_all_dtypes_combination, for_complex_dtypes, for_contiguous_axes,
                     for_dtypes, for_dtypes_combination, for_float_dtypes, for_int_dtypes, for_int_dtypes_combination,
                     for_orders, for_signed_dtypes, for_signed_dtypes_combination, for_unsigned_dtypes,
                     for_unsigned_dtypes_combination)
from ._marks import gpu, multi_gpu, slow
from ._parameterize import parameterize, product, product_dict
from ._random import fix_random, generate_seed

__all__ = [name for name in dir() if not name.startswith("_")]
