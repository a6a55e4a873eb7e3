"""Parts of cupy.testing that are private and that CuPy's tests use, so that they run. They compare nothing with it."""
import functools
import inspect
import unittest

import numpy as np
from packaging.version import Version

# Versions that CuPy 14.2 is meant for. Where results have changed since, its tests pass over what they compare.
_MEANT_FOR = {"numpy": "2.3", "scipy": "1.14"}


def wrap_without(wrapped, *names):
    """A decorator: functools.wraps, for a function that is called without the parameters of these names."""
    def decorator(function):
        function = functools.wraps(wrapped)(function)
        signature = inspect.signature(wrapped)
        function.__signature__ = signature.replace(
            parameters=[each for name, each in signature.parameters.items() if name not in names])
        return function
    return decorator


def repeat_with_success_at_least(times, least):
    """A decorator of a method of a TestCase: it passes once `least` of as many as `times` runs have passed."""
    def decorator(test):
        @functools.wraps(test)
        def run(self, *args, **kwargs):
            failed = []
            for done in range(times):
                if done - len(failed) >= least:
                    return
                case = type(self)(self._testMethodName)
                case.setUp()
                try:
                    test(case, *args, **kwargs)
                except unittest.SkipTest:
                    raise
                except Exception as error:
                    failed.append(error)
                    if len(failed) > times - least:
                        raise
                finally:
                    case.tearDown()
        return run
    return decorator


def repeat(times, intensive_times=None):
    return repeat_with_success_at_least(times, times)


def retry(times):
    return repeat_with_success_at_least(times, 1)


def chi_square_test(observed, expected, alpha=0.05, df=None):
    """Tell whether counts may be drawn from what is expected: Pearson's test."""
    from scipy.stats import chi2
    df = observed.size - 1 if df is None else df
    return np.sum((observed - expected) ** 2 / expected) < chi2.ppf(1 - alpha, df)


def is_after_baseline(*, numpy=None, scipy=None):
    name, version = ("numpy", numpy) if scipy is None else ("scipy", scipy)
    return Version(version) > Version(_MEANT_FOR[name])


def skip_if_after_baseline(*, numpy=None, scipy=None, reason=""):
    import pytest
    import scipy as installed_scipy
    late = any(version is not None and Version(version) > Version(_MEANT_FOR[name])
               and Version(installed.__version__) >= Version(version)
               for name, version, installed in (("numpy", numpy, np), ("scipy", scipy, installed_scipy)))
    return pytest.mark.skipif(late, reason=reason)


def ignore_private_options(comparison):
    """A comparison of cupy.testing that takes options of CuPy's own tests, such as _check_sparse_format, too."""
    @functools.wraps(comparison)
    def compare(*args, **options):
        return comparison(*args, **{name: value for name, value in options.items() if not name.startswith("_")})
    return compare


def skip_with_all(looping):
    """A loop over types, such as arrayd.testing's, that skips a test of which every round skips itself.

    There it passes, as in CuPy, and would count as if something had been tested.
    """
    def loop(names, values):
        def decorator(test):
            rounds = []

            @functools.wraps(test)
            def count(*args, **kwargs):
                rounds.append(False)
                test(*args, **kwargs)
                rounds[-1] = True

            looped = looping(names, values)(count)

            @functools.wraps(looped)
            def run(*args, **kwargs):
                rounds.clear()
                looped(*args, **kwargs)
                if rounds and not any(rounds):
                    raise unittest.SkipTest("every round of it skips itself")
            return run
        return decorator
    return loop


class _Handing:
    """An object that hands out an array by CuPy's method."""

    def __init__(self, array):
        self.array = array

    def __cupy_get_ndarray__(self):
        return self.array


def clear_memo():
    import arrayd
    arrayd.clear_memo()


class KernelCache:
    """Stands for a folder in which CuPy keeps kernels: arrayd's server has its own."""

    def __init__(self, path=None):
        self.path = path


def get_size(size):
    """A shape as a tuple, as CuPy's private function gives it."""
    return (size,) if isinstance(size, int) else tuple(size or ())


def get_typename(dtype):
    """The name of a dtype's elements in C++, of which tests make the names of template instances."""
    import arrayd
    from arrayd._kernel.types import c_name
    return c_name(arrayd._core.as_dtype(dtype))


# Private modules whose public names are those of a public one: tests of these call them by the private module.
MIRRORS = {f"cupy.random.{name}": "cupy.random" for name in (
    "_generator", "_distributions", "_bit_generator", "_generator_api", "_sample", "_permutations")}

# Under their names in CuPy. The last rows answer what tests ask before they test something else: whether this is AMD's
# platform, whether a library can do that, which versions the compilers have.
HELPERS = {
    "cupy._util": {"clear_memo": clear_memo},
    "cupy._core._scalar": {"get_typename": get_typename},
    "cupy._core._accelerator": {"ACCELERATOR_CUB": 1, "get_reduction_accelerators": lambda: [1]},
    "cupy.cuda._compiler_cache": {"DiskKernelCacheBackend": KernelCache},
    "cupy.testing._loops": {"_wraps_partial": wrap_without, "_wraps_partial_xp": lambda wrapped, *names: wrap_without(
        wrapped, *filter(None, names))},
    "cupy.testing._condition": {"repeat": repeat, "retry": retry,
                                "repeat_with_success_at_least": repeat_with_success_at_least},
    "cupy.testing._hypothesis": {"chi_square_test": chi_square_test},
    "cupy.testing._helper": {"is_after_baseline": is_after_baseline, "skip_if_after_baseline": skip_if_after_baseline},
    "cupy.testing._protocol_helpers": {"DummyObjectWithCuPyGetNDArray": _Handing},
    "cupyx.scipy": {"_scipy_available": True},
    "cupy_backends.cuda.api.runtime": {"is_hip": False},
    "cupy.cuda.driver": {"_is_cuda_python": lambda: False},
    "cupyx.cusolver": {"check_availability": lambda name: True},
    "cupyx.cusparse": {"check_availability": lambda name: True},
    "cupy.cuda.compiler": {"_run_cc": lambda *args, **kwargs: "release 0.0", "_get_nvrtc_version": lambda: (0, 0)},
}

# CuPy's tests replace these private parts while they run, to say where CuPy keeps kernels: under arrayd's modules.
REPLACED = {
    "arrayd._core": {"get_size": get_size},
    "arrayd.cuda.compiler": {"_kernel_cache_backend": KernelCache(), "_empty_file_preprocess_cache": {},
                             "_get_bool_env_variable": lambda name, default: default},
}
