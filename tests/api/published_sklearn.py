"""A pytest plugin: scikit-learn's own tests of array API libraries, with arrayd as the library."""
import sklearn.utils._array_api as array_api


def _combinations(include_numpy_namespaces=True):
    yield "arrayd", None, "float64"
    yield "arrayd", None, "float32"


array_api.yield_namespace_device_dtype_combinations = _combinations
array_api.yield_namespaces = lambda include_numpy_namespaces=True: iter(["arrayd"])
