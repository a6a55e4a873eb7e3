"""A program: calls the functions of SciPy's own table of what takes arrays of other libraries, with small inputs, on NumPy's
arrays and on the server's, after arrayd.cupy.install(). Prints JSON: what came of each function."""
import json
import os
import sys
import warnings

os.environ["SCIPY_ARRAY_API"] = "1"
import arrayd.cupy  # noqa: E402

arrayd.cupy.install()
import cupy  # noqa: E402
import numpy as np  # noqa: E402
import scipy.cluster.hierarchy  # noqa: E402, F401
import scipy.cluster.vq  # noqa: E402, F401
import scipy.fft  # noqa: E402, F401
import scipy.integrate  # noqa: E402, F401
import scipy.linalg  # noqa: E402, F401
import scipy.ndimage  # noqa: E402, F401
import scipy.signal  # noqa: E402, F401
import scipy.spatial.distance  # noqa: E402, F401
import scipy.special  # noqa: E402, F401
import scipy.stats  # noqa: E402, F401
from scipy._lib._array_api import xp_capabilities_table  # noqa: E402

RNG = np.random.default_rng(4)
LINE, OTHER = np.sort(RNG.random(9)) + 0.1, RNG.random(9) + 0.2
TABLE, WHOLE = RNG.random((6, 6)) + 0.1, np.arange(1, 10)
LABELS = np.arange(36).reshape(6, 6) // 9
# Tried in this order until NumPy takes one: arrays go up, what is no array stays as it is.
INPUTS = ((LINE,), (LINE, OTHER), (LINE, OTHER, LINE), (LINE, OTHER, LINE, OTHER), (TABLE,), (TABLE, TABLE), (TABLE, 3), (TABLE, 1),
          (LINE, 2), (LINE, 0.3), (2, LINE), (TABLE, np.ones(3)), (TABLE, np.ones((3, 3))), (TABLE > 0.5,), (LABELS,),
          (TABLE, LABELS, np.arange(4)), (TABLE, 0, 1, 4), (TABLE, 30.0), (np.ones(3), np.ones(3), LINE), (WHOLE,),
          (WHOLE, WHOLE), (WHOLE, LINE), (WHOLE, WHOLE, LINE), (LINE, 2, 3), (3, LINE, OTHER), (TABLE, np.eye(2), 0.5),
          (TABLE, np.array([[0.5, 1.5], [1.0, 2.0]])), (5, 2.0), (7,))


def fetch(result):
    """The numbers of a result, and whether all that NumPy has as arrays are the server's."""
    if isinstance(result, (tuple, list)):
        return [part for each in result for part in fetch(each)]
    if hasattr(result, "statistic") and not hasattr(result, "dtype"):
        return fetch((result.statistic, result.pvalue))
    return [result.get() if isinstance(result, cupy.ndarray) else result]


def place(value):
    return cupy.asarray(value) if isinstance(value, np.ndarray) else value


def find_inputs(function):
    """The first inputs for which NumPy gives numbers, and these; None where there are none."""
    for inputs in INPUTS:
        try:
            found = fetch(function(*inputs))
            if found and all(isinstance(one, (np.ndarray, np.number, int, float)) for one in found):
                return inputs, found
        except Exception:
            continue
    return None


def compare(function):
    made = find_inputs(function)
    if made is None:
        return "none of the inputs fits"
    inputs, wanted = made
    if not any(isinstance(one, np.ndarray) for one in inputs):
        return "takes no arrays"
    try:
        found = fetch(function(*map(place, inputs)))
    except Exception as error:
        return f"raises {type(error).__name__}: {str(error)[:150]}"
    if len(found) != len(wanted):
        return f"differs: {len(found)} results, not {len(wanted)}"
    for mine, its in zip(found, wanted):
        if np.shape(mine) != np.shape(its):
            return f"differs: shape {np.shape(mine)}, not {np.shape(its)}"
        if not np.allclose(mine, its, rtol=1e-6, atol=1e-8, equal_nan=True):
            return f"differs: {np.asarray(mine).reshape(-1)[:4]}, not {np.asarray(its).reshape(-1)[:4]}"
    return "same"


def is_promised(row):
    """Tell whether the table says that CuPy's arrays are taken."""
    if row["np_only"] or row["out_of_scope"]:
        return "cupy" in row["exceptions"] and not row["out_of_scope"]
    if "cupy" in [one[0] for one in (*row["skip_backends"], *row["xfail_backends"])]:
        return False
    return not row["cpu_only"] or "cupy" in row["exceptions"]


def main():
    warnings.simplefilter("ignore")
    report = {}
    with np.errstate(all="ignore"):
        for function, row in list(xp_capabilities_table.items()):
            if not isinstance(function, type) and callable(function):
                name = f"{function.__module__.partition('._')[0]}.{getattr(function, '__name__', function)}"
                report[name] = [is_promised(row), compare(function)]
    json.dump(report, sys.stdout)


if __name__ == "__main__":
    main()
