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


def test_modules_of_cupys_inside_that_programs_use():
    program = """
import arrayd.cupy
arrayd.cupy.install()
import cupy
from cupy import _core
import cupy._core.internal
from cupy._core._routines_indexing import _ndarray_argwhere
from cupy._core._scalar import get_typename

calls = []
remember = cupy._util.memoize(for_each_device=True)(lambda x: calls.append(x))
remember(1), remember(1)
assert calls == [1]
cupy._util.clear_memo()
remember(1)
assert calls == [1, 1]
assert cupy._core is _core and _core.core.ndarray is _core.ndarray is cupy.ndarray
assert _core.ElementwiseKernel is cupy.ElementwiseKernel and _core.add is cupy.add
assert get_typename("uint8") == "unsigned char" and get_typename(cupy.float64) == "double"
assert cupy._core.internal.prod([2, 3]) == 6 and _core.get_size(3) == (3,) and _core.get_size([3, 4]) == (3, 4)
assert cupy._core.internal._normalize_axis_index(-1, 3) == 2
assert cupy._core.internal._normalize_axis_indices((-1, 0), 3) == (0, 2)
assert cupy._core.internal._normalize_axis_indices((-1, 0), 3, sort_axes=False) == (2, 0)
assert cupy._core.internal._normalize_axis_indices(None, 2) == (0, 1)
out = cupy.zeros((2, 2), "int32")
_core.elementwise_copy(cupy.asarray([1.5, 2.5]), out)
assert out.tolist() == [[1, 2], [1, 2]]
assert _ndarray_argwhere(out == 2).tolist() == [[0, 1], [1, 1]]
for wrong in (lambda: get_typename(None), lambda: _core.get_size(None)):
    try:
        wrong()
    except TypeError as error:
        assert "not None" in str(error)
    else:
        raise SystemExit("None was taken")
try:
    _core._nothing
except AttributeError as error:
    assert "no name '_nothing' in cupy._core" in str(error)
else:
    raise SystemExit("a name that is not there was found")
try:
    import cupy._core._nothing
except ModuleNotFoundError as error:
    assert "no module 'cupy._core._nothing'" in str(error)
else:
    raise SystemExit("a module that is not there was imported")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_functions_that_cupy_has_called_otherwise():
    program = """
import arrayd.cupy
arrayd.cupy.install()
import cupy
import numpy as np
here, there = np.arange(6.0).reshape(2, 3), cupy.arange(6.0).reshape(2, 3)
for name, *args in [("amax",), ("amin", 1), ("argsort",), ("argpartition", 1), ("clip", 1, 3), ("copy",), ("diagonal",), ("max", 0),
                    ("mean",), ("min",), ("nonzero",), ("partition", 1), ("prod",), ("ravel",), ("repeat", 2), ("reshape", 6), ("sort",),
                    ("squeeze",), ("std",), ("sum",), ("swapaxes", 0, 1), ("take", [0]), ("trace",), ("transpose",), ("var",)]:
    function = getattr(cupy, name)
    mine, its = function(here, *args), function(there, *args)
    mine, its = (mine[0], its[0]) if isinstance(mine, tuple) else (mine, its)
    assert isinstance(mine, (np.ndarray, np.generic)) and isinstance(its, cupy.ndarray), name
    assert function.__doc__ == getattr(arrayd, name).__doc__ and np.array_equal(its.get(), mine), name
assert isinstance(cupy.take(here, cupy.asarray([1])), cupy.ndarray)
assert cupy.array([1, 2], bool, True, "C", False, 2).shape == (1, 2)
assert cupy.array(here, copy=False).tolist() == cupy.array([[0, 1, 2], [3, 4, 5]], float, False).tolist()
assert cupy.array(there, copy=False) is there
a = cupy.arange(3)
assert cupy.reshape(a, newshape=(3, 1)).shape == (3, 1) and cupy.stack(tup=[a, a]).shape == (2, 3)
assert cupy.delete(a, indices=1).tolist() == [0, 2]
assert [int(one) for one in cupy.unravel_index(5, dims=(2, 3))] == [1, 2]
assert cupy.flip(a=a).tolist() == cupy.flipud(a=a).tolist() == [2, 1, 0] and cupy.union1d(arr1=a, arr2=a).tolist() == [0, 1, 2]
assert cupy.fliplr(a=there).tolist() == [[2, 1, 0], [5, 4, 3]] and cupy.rot90(a=there).shape == (3, 2)
assert cupy.histogram(x=a, bins=2)[0].tolist() == [1, 2] and cupy.cov(a=a) == 1 and cupy.corrcoef(a=a) == 1
assert cupy.percentile(a, 50, interpolation="lower") == cupy.quantile(a, 0.6, interpolation="lower") == 1
assert cupy.extract(a > 1, a=a).tolist() == [2] and cupy.ediff1d(arr=a).tolist() == [1, 1]
assert cupy.intersect1d(arr1=a, arr2=a).tolist() == [0, 1, 2] and cupy.take_along_axis(a=a, indices=a, axis=0).tolist() == [0, 1, 2]
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_parameters_that_cupy_has_in_another_order():
    program = """
import arrayd.cupy
arrayd.cupy.install()
import cupy
import numpy as np
a = cupy.asarray([[1.0, 5, 2], [7, 0, 7]])
out = cupy.zeros(2, np.int64)
for name, places in [("argmax", [1, 0]), ("argmin", [0, 1]), ("nanargmax", [1, 0]), ("nanargmin", [0, 1])]:
    function = getattr(cupy, name)
    found = function(a, 1, np.int32)
    assert found.dtype == np.int32 and found.tolist() == places, name
    assert function(a, 1, None, None, True).shape == (2, 1) and function(a).dtype == np.int64
    function(a, 1, None, out)
    assert out.tolist() == places, name
    try:
        function(a, 1, out)
        raise SystemExit(name)
    except TypeError as error:
        assert "say out=" in str(error)
points, weights = cupy.asarray([[0.0], [1], [1]]), cupy.asarray([1.0, 2, 3])
assert cupy.histogramdd(points, 2, None, weights)[0].tolist() == [1, 5]
assert cupy.histogramdd(points, 2, None, weights, True)[0].tolist() == [2 / 6, 10 / 6]
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_what_cupys_show_config_prints():
    program = """
import contextlib, io
import arrayd.cupy
arrayd.cupy.install()
import cupy, cupyx
for full in (False, True):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        cupy.show_config(_full=full)
    assert out.getvalue() == str(cupyx.get_runtime_info(full=full)) and ("Device 0 Name" in out.getvalue()) == full
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_ends_of_slices_that_are_no_integers():
    program = """
import arrayd as ad
a = ad.arange(10)
for end in (4.7, ad.asarray(4.7)):
    try:
        a[:end]
        raise SystemExit("a slice of NumPy's ends at an integer")
    except TypeError:
        pass
import arrayd.cupy
arrayd.cupy.install()
import cupy
import numpy as np
for end in (4.7, np.float32(4.7), cupy.asarray(4.7), cupy.float32(4)):
    assert a[:end].tolist() == [0, 1, 2, 3] and a[end::2.0].tolist() == [4, 6, 8], end
a[-2.5:] = 0
assert a[6.0:9].tolist() == [6, 7, 0]
assert cupy.ones((3, 4))[:, :cupy.asarray(2.5)].shape == (3, 2)
for end in (1j, [1], cupy.arange(2), float("nan")):
    try:
        a[:end]
        raise SystemExit(f"{end} ended a slice")
    except (TypeError, ValueError):
        pass
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_functions_of_types_that_cupy_has_kept():
    program = """
import arrayd.cupy
arrayd.cupy.install()
import cupy
import numpy as np
class Odd:
    @property
    def dtype(self):
        raise KeyError
assert cupy.obj2sctype("f4") is np.float32 and cupy.obj2sctype(float) is np.float64
assert cupy.obj2sctype(np.integer) is np.integer and cupy.obj2sctype(np.zeros(1)) is np.float64
assert cupy.obj2sctype(cupy.zeros(1, "i2")) is np.int16
assert cupy.obj2sctype(Odd()) is None and cupy.obj2sctype([1], "?") == "?"
assert cupy.issubsctype(cupy.zeros(1), np.floating) and not cupy.issubsctype("i4", float)
assert cupy.issctype(np.float32) and cupy.issctype(np.dtype("i1")) and not cupy.issctype(1.5) and not cupy.issctype(object)
assert cupy.sctype2char(cupy.int32) == "i" and cupy.issubclass_(int, object) and not cupy.issubclass_(3, int)
try:
    cupy.sctype2char([1])
    raise SystemExit("a list has a character")
except ValueError as error:
    assert "sctype has to be" in str(error)
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_names():
    with pytest.raises(AttributeError, match="nothing"):
        arrayd.scipy.nothing
    assert arrayd.scipy.get_array_module(np.zeros(1), ad.zeros(1)) is arrayd.scipy
    assert arrayd.scipy.get_array_module(np.zeros(1)) is scipy
