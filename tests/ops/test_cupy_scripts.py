"""Programs that say `import cupy` run unchanged by python -m arrayd.cupy, and give what NumPy gives under that name."""
import os
import pathlib
import re
import subprocess
import sys

import pytest

import arrayd as ad

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = sorted((HERE / "cupy_programs").glob("*.py"))
LOOSE = {"monte_carlo": 0.01}  # what is drawn at random agrees only so far
NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?")
PACKAGE = str(pathlib.Path(ad.__file__).parents[1])


def run(*arguments, path=(PACKAGE,), code=0, **options):
    """Standard output and error of a Python that must end with that code."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path)), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, timeout=100,
                          **{"env": environment, "stdin": subprocess.DEVNULL, **options})
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout, done.stderr


def cupy(*arguments, **options):
    return run("-m", "arrayd.cupy", *arguments, **options)


def same(ours, theirs, tolerance):
    """Texts alike but for the last digits of numbers and for blanks."""
    words = [NUMBER.sub(" # ", text).split() for text in (ours, theirs)]
    numbers = [[float(n) for n in NUMBER.findall(text)] for text in (ours, theirs)]
    return words[0] == words[1] and all(abs(a - b) <= tolerance * max(1, abs(b)) for a, b in zip(*numbers))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.stem)
def test_program(program, tmp_path):
    arguments = [tmp_path] if program.stem == "counting" else []
    expected, _ = run(program, *arguments, path=(HERE / "cupy_shim",))
    got, _ = cupy(program, *arguments)
    assert expected.count("\n") > 2
    assert same(got, expected, LOOSE.get(program.stem, 1e-5)), f"arrayd:\n{got}\nNumPy:\n{expected}"


def test_as_python_runs_it(tmp_path):
    """sys.argv, __name__, __file__ and sys.path are those of `python program.py`, and so are the ways to end."""
    (tmp_path / "beside.py").write_text("value = 5\n")
    program = tmp_path / "program.py"
    program.write_text("import sys, beside\nimport cupy\n"
                       "print(__name__, __file__, sys.argv, sys.path[0], beside.value)\nimport __main__\nassert __main__.beside is beside\nexit(int(sys.argv[1]))\n")
    for code in (0, 3):
        expected = run(program, code, "-x", "--", path=(HERE / "cupy_shim",), code=code)
        assert cupy(program, code, "-x", "--", code=code) == expected
    assert cupy("-c", "import sys, cupy; print(sys.argv, __name__, sys.path[0] == ''); raise SystemExit('why')", "a",
                code=1) == ("['-c', 'a'] __main__ True\n", "why\n")
    out, _ = cupy("-m", "program", "0", cwd=tmp_path)
    assert out == f"__main__ {program} ['{program}', '0'] {tmp_path} 5\n"


def test_tracebacks(tmp_path):
    program = tmp_path / "program.py"
    for text in ("def f():\n    raise ValueError('bad')\nimport cupy\nf()\n", "import cupy\ndef (\n"):
        program.write_text(text)
        _, expected = run(program, path=(HERE / "cupy_shim",), code=1)
        assert cupy(program, code=1)[1] == expected
    program.write_text("import cupy\nprint(cupy.arange(3).take(cupy.array([9])))\n")
    _, error = cupy(program, code=1)
    assert error.startswith("Traceback (most recent call last):\n  File \"" + str(program))
    assert error.rstrip().splitlines()[-1].startswith("IndexError")
    assert "No such file" in cupy(tmp_path / "absent.py", code=2)[1]
    for arguments in ((), ("-m",), ("-z",)):
        assert "usage: python -m arrayd.cupy" in cupy(*arguments, code=2)[1]
    assert "usage: python -m arrayd.cupy" in cupy("--help")[0]


def test_names():
    """The two names are one object. A name that arrayd lacks is an error that says so; NumPy 1's names are what they stood
    for."""
    cupy("-W", "error::DeprecationWarning", "-c", "pass", code=2)  # options of Python come before -m
    cupy("-c", """
import sys, warnings
import cupy, cupyx, arrayd
import cupy.cuda.runtime, cupy.linalg, cupy.random as random, cupyx.profiler
everything = {}
exec("from cupy import *", everything)
from cupy.fft import rfft
assert everything["asnumpy"] is arrayd.asnumpy and "round" not in everything
import cupy.cuda.nccl, cupy.cuda.cublas
assert cupy.cuda.nccl is arrayd.cuda.nccl and type(cupy.ones(2)).__module__ == "cupy" and not cupy.cuda.nccl.available
import pickle, copy
assert pickle.loads(pickle.dumps(cupy.ndarray)) is cupy.ndarray
assert copy.deepcopy(cupy.ones(3)).sum() == pickle.loads(pickle.dumps(cupy.ones(3))).sum() == 3
assert cupy.linalg is arrayd.linalg is sys.modules["cupy.linalg"] and rfft is arrayd.fft.rfft
assert cupy.ndarray is arrayd.ndarray and cupy.add is arrayd.add and cupyx is arrayd.cupyx
assert random is arrayd.random and arrayd.linalg.__spec__.name == arrayd.linalg.__name__ == "arrayd.linalg"
assert cupy.__name__ == "cupy" and int(cupy.__version__.split(".")[0]) == 14 and "einsum" in dir(cupy)
assert cupy.get_array_module(cupy.ones(2)) is cupy and cupy.get_array_module([1]).__name__ == "numpy"
import numpy
for name in ("sum", "prod"):
    total = getattr(cupy, name)
    assert type(total(numpy.ones((2, 3)), 0)) is numpy.ndarray and type(total([1, 2])) is cupy.ndarray
    assert total(cupy.full(3, 2), keepdims=True).tolist() == [getattr(numpy, name)([2, 2, 2])]
    assert total is everything[name] and total.__name__ == name
assert cupy.poly1d is arrayd.poly1d and cupy.bfloat16 is arrayd.bfloat16
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    assert cupy.float_ is arrayd.float64 and cupy.in1d is arrayd.isin
    assert cupy.NINF == -cupy.inf and cupy.Inf == cupy.inf
    assert len(seen) == 4 and "NumPy 2 has removed it" in str(seen[0].message) and seen[0].filename == "<string>"
def fails(kind, code, *words):
    try:
        exec(code)
    except Exception as error:
        assert type(error) is kind and all(word in str(error) for word in words), repr(error)
    else:
        raise AssertionError(code)
fails(ModuleNotFoundError, "import cupy.nothing", "arrayd", "cupy.nothing")
fails(ModuleNotFoundError, "import cupy.cuda.nothing", "cupy.cuda.nothing")
fails(ModuleNotFoundError, "import cupyx.nothing", "cupyx.nothing")
from cupy.cuda.texture import TextureObject
assert TextureObject is arrayd.cuda.texture.TextureObject
import cupy_backends
assert cupy_backends.cuda.api.runtime.is_hip is False
from cupy_backends.cuda.api.runtime import CUDARuntimeError
import cupy_backends.cuda.libs.nvrtc as nvrtc
assert CUDARuntimeError is cupy.cuda.runtime.CUDARuntimeError and len(nvrtc.getVersion()) == 2
assert cupy_backends.cuda.libs.cublas is cupy.cuda.cublas
fails(ModuleNotFoundError, "import cupy_backends.cuda.libs.nothing", "cupy_backends.cuda.libs.nothing")
fails(ModuleNotFoundError, "import cupy.cupy._backends", "arrayd")
fails(ModuleNotFoundError, "import cupyx.cutensor", "einsum")
fails(ModuleNotFoundError, "import cupy.cudnn", "CuPy 14 has removed it")
fails(ModuleNotFoundError, "import cupy._manipulation", "cupy._manipulation")
fails(ModuleNotFoundError, "import cupy.cupyx", "cupy.cupyx")
fails(ImportError, "from cupy import nothing", "nothing")
fails(AttributeError, "cupy.nothing", "module 'cupy' has no attribute 'nothing'")
fails(AttributeError, "cupy.cuda.Module", "RawModule compiles source")
fails(AttributeError, "cupy.asfarray", "NumPy 2")
maps = open("/proc/self/maps").read()
assert "libcuda" not in maps and "libcudart" not in maps
""")


def test_kernels():
    """Kernels of CuPy's kinds, under its names."""
    cupy("-c", """
import cupy as cp
from cupy.cuda.compiler import CompileException
x = cp.arange(6, dtype=cp.float32)
assert cp.ElementwiseKernel("T x", "T y", "y = x * x", "squared")(x).tolist() == [0, 1, 4, 9, 16, 25]
assert float(cp.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total")(x)) == 15
twice = cp.RawKernel('extern "C" __global__ void twice(float *x) { x[threadIdx.x] *= 2; }', "twice")
twice((1,), (6,), (x,))
assert x.tolist() == [0, 2, 4, 6, 8, 10] and cp.fuse(lambda v: v + 1)(x)[0] == 1
try:
    cp.RawModule(code="nonsense").compile()
except CompileException as error:
    assert "nonsense" in error.get_message()
else:
    raise AssertionError
""")


def test_install_and_children(tmp_path):
    """A program calls install() itself. Processes that it starts, by multiprocessing or by hand, have it as well."""
    program = tmp_path / "program.py"
    program.write_text("""
import multiprocessing, os, subprocess, sys
import arrayd.cupy
arrayd.cupy.install()
arrayd.cupy.install()
import cupy as cp
import cupyx

def work(n):
    return float(cp.arange(n).sum())

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(work, [3, 4]))
    code = "import cupyx, cupy; print(cupy.__version__, cupyx.__name__, int(cupy.ones(3).sum()))"
    print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
""")
    out, _ = run(program)
    assert out.split() == ["[3.0,", "6.0]", "14.0.0", "arrayd.cupyx", "3"]
    out, _ = run("-c", "import cupy, arrayd.cupy\ntry: arrayd.cupy.install()\nexcept RuntimeError as e: print(e)",
                 path=(HERE / "cupy_shim", PACKAGE))
    assert "cupy has been imported already" in out


@pytest.mark.parametrize("first", ["", "import arrayd.scipy.sparse, arrayd.random\n"])
def test_what_classes_say(first):
    """Libraries look at the module of a class to choose what to do; it can be imported before the names are installed."""
    run("-c", first + """
import arrayd.cupy
arrayd.cupy.install()
import copy, pickle
import arrayd, cupy, cupyx.scipy.sparse as sparse
matrix = sparse.random(4, 5, 0.5, format="csr", random_state=cupy.random.RandomState(1))
assert cupy.get_array_module(matrix) is cupy
for value in (cupy.ones(2), matrix, matrix.tocsc(), sparse.coo_array(matrix)):
    assert type(value).__module__ == ("cupy" if type(value) is cupy.ndarray else "cupyx.scipy.sparse")
assert all("cupy" in base.__module__ for base in sparse.csr_matrix.__mro__ if base.__name__ == "spmatrix")
for again in (pickle.loads(pickle.dumps(matrix)), copy.deepcopy(matrix)):
    assert type(again) is sparse.csr_matrix and (again.toarray() == matrix.toarray()).all()
bits = pickle.loads(pickle.dumps(cupy.random.XORWOW(3)))
assert type(bits) is cupy.random.XORWOW and type(bits).__module__ == "cupy.random"
assert arrayd.random.default_rng is cupy.random.default_rng and cupy.random.Generator.__module__ == "cupy.random"
""")
