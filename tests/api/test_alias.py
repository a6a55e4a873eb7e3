"""arrayd.scipy has second names. They are the same modules, whatever a program imports them by."""
import subprocess
import sys

import numpy as np
import pytest
import scipy

import arrayd as ad
import arrayd.scipy

PROGRAM = """
import arrayd.scipy, arrayd.cupyx.scipy, arrayd.cupy
arrayd.cupy.install()
import cupyx.scipy
assert cupyx.scipy is arrayd.cupyx.scipy is arrayd.scipy
for name in arrayd.scipy.__all__:
    if name != "get_array_module":
        __import__("cupyx.scipy." + name)
        assert getattr(cupyx.scipy, name) is getattr(arrayd.scipy, name)
try:
    import cupyx.scipy.nothing
except ModuleNotFoundError as error:
    assert "cupyx.scipy.nothing" in str(error)
else:
    raise SystemExit("a module that is not there was imported")
"""


def test_aliases():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_pools_by_the_private_names_that_programs_use():
    program = """
import arrayd.cupy
arrayd.cupy.install()
import cupy
assert cupy._default_memory_pool is cupy.get_default_memory_pool()
assert cupy._default_pinned_memory_pool is cupy.get_default_pinned_memory_pool()
cupy._default_memory_pool.free_all_blocks()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_names():
    with pytest.raises(AttributeError, match="nothing"):
        arrayd.scipy.nothing
    assert arrayd.scipy.get_array_module(np.zeros(1), ad.zeros(1)) is arrayd.scipy
    assert arrayd.scipy.get_array_module(np.zeros(1)) is scipy
