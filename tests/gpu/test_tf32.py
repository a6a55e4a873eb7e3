"""Products of float32 have its precision, and that of TF32 where the environment asks for it."""
import os
import subprocess
import sys

import pytest

ERRORS = """
import numpy as np, arrayd as ad
rng = np.random.default_rng(1)
for dtype in ("float32", "complex64", "float64"):
    for shape in ((700, 700), (5, 300, 300)):
        a, b = rng.standard_normal(shape), rng.standard_normal(shape)
        if dtype == "complex64":
            a, b = a + 1j * b, b - 1j * a
        a, b = a.astype(dtype), b.astype(dtype)
        exact = a.astype("complex128") @ b.astype("complex128")
        print(np.abs((ad.asarray(a) @ ad.asarray(b)).get() - exact).max() / np.abs(exact).max())
"""


def errors(**environment):
    """The largest errors, relative to the largest element: two each of float32, complex64 and float64."""
    usual = {k: v for k, v in os.environ.items() if not k.endswith("_TF32")}
    done = subprocess.run([sys.executable, "-c", ERRORS], capture_output=True, text=True, timeout=120,
                          env={**usual, "PYTHONPATH": os.pathsep.join(sys.path), **environment})
    assert done.returncode == 0, done.stderr
    return [float(line) for line in done.stdout.split()]


def test_float32_is_exact_unless_asked():
    found = errors()
    assert all(e < 3e-6 for e in found[:4]) and all(e < 1e-13 for e in found[4:]), found


@pytest.mark.parametrize("variable", ["ARRAYD_TF32", "CUPY_TF32"])
def test_tf32_when_asked(variable):
    found = errors(**{variable: "1"})
    assert all(3e-5 < e < 3e-3 for e in found[:4]) and all(e < 1e-13 for e in found[4:]), found
