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


def test_names():
    with pytest.raises(AttributeError, match="nothing"):
        arrayd.scipy.nothing
    assert arrayd.scipy.get_array_module(np.zeros(1), ad.zeros(1)) is arrayd.scipy
    assert arrayd.scipy.get_array_module(np.zeros(1)) is scipy
