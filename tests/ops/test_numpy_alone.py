"""Uses of the package where NumPy is the only other one."""
import os
import subprocess
import sys
import textwrap

PROLOGUE = """
import sys

class OnlyNumPy:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in allowed and not name.startswith("_sysconfigdata"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

allowed = {*sys.stdlib_module_names, "numpy", "arrayd"}
sys.meta_path.insert(0, OnlyNumPy())
import arrayd as ad
"""


def run(code):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", PROLOGUE + textwrap.dedent(code)], capture_output=True, text=True,
                          timeout=120, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_looking_around():
    out = run("""
        import inspect, pydoc
        from unittest import mock
        assert not hasattr(ad, "bfloat16") and "bfloat16" not in dir(ad)
        assert getattr(ad, "bfloat16", None) is None
        names = dict(inspect.getmembers(ad))
        assert names["add"] is ad.add and names["ElementwiseKernel"] is ad.ElementwiseKernel
        for name in dir(ad):
            assert hasattr(ad, name), name
        for module in (ad.cuda, ad.cupyx, ad.fft, ad.linalg, ad.random, ad.testing, ad.exceptions):
            inspect.getmembers(module)
        fake = mock.create_autospec(ad)
        fake.zeros((2, 3))
        text = pydoc.plain(pydoc.render_doc(ad))
        assert "zeros(shape" in text
        help(ad)
        try:
            ad.bfloat16
        except AttributeError as error:
            print(error)
        """)
    assert "module 'arrayd' has no attribute 'bfloat16': bfloat16 needs the package ml_dtypes" in out


def test_arrays():
    out = run("""
        import copy, pickle
        a = ad.arange(6).reshape(2, 3) * 1.5
        print((a == None).any(), a.dtype.name, ad.sqrt(a).sum().item() > 0, copy.copy(a).shape)
        try:
            a.astype("bfloat16")
        except TypeError as error:
            print(error)
        """)
    missing = "bfloat16 needs the package ml_dtypes, which is not installed"
    assert out.splitlines() == ["False float64 True (2, 3)", missing]


def test_bfloat16_is_there_with_it():
    import pytest

    import arrayd as ad
    ml_dtypes = pytest.importorskip("ml_dtypes")
    assert ad.bfloat16 is ml_dtypes.bfloat16 and "bfloat16" in dir(ad) and hasattr(ad, "bfloat16")
