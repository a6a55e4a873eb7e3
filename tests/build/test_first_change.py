"""The first changes of CONTRIBUTING, made in a copy of the tree, are whole.

All that follows from the row of softplus is looked at where it comes from. That is the tables as data, the type rules, the
pages of the reference, the oracle and tolerance of its test, its cost, and its expression as the kernels compile it. Of the
other changes each file is compiled.
"""
import ctypes
import os
import re
import shutil
import sys

import numpy as np
import pytest

from commands import BUILD, TOP, run

sys.path += [str(TOP / "tests"), str(TOP / "tests/wire")]
import architecture  # noqa: E402
import wire_native  # noqa: E402


def changes():
    """The diffs of the page: [(file, lines that go, lines that come)] of each."""
    text = (TOP / "CONTRIBUTING.md").read_text()
    for block in re.findall(r"^```diff\n(.*?)^```", text, re.M | re.S):
        for name, lines in re.findall(r"^--- (\S+)\n((?:[-+](?!--).*\n)+)", block, re.M):
            yield name, *("".join(line[1:] + "\n" for line in lines.splitlines() if line[0] == sign) for sign in "-+")


def apply(folder, name, old, new):
    """Make a change in a copy: what has nothing to replace is appended."""
    text = (folder / name).read_text()
    assert text.count(old) == 1 or not old, f"{name}: {old}"
    (folder / name).write_text(text.replace(old, new) if old else text + new)


@pytest.fixture(scope="module")
def row():
    """The row that the page adds to ufunc.def, as one line."""
    return next(" ".join(new.split()) for name, _, new in changes() if name == "protocol/ufunc.def")


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """Copy what is needed of the tree, and make all changes in it."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(TOP / "protocol", folder / "protocol")
    shutil.copytree(TOP / "docs", folder / "docs", ignore=shutil.ignore_patterns("guide", "internals", "reference", "demo"))
    shutil.copytree(TOP / "server", folder / "server")
    shutil.copytree(TOP / "client-c/include", folder / "client-c/include")
    shutil.copytree(BUILD / "python/arrayd", folder / "python/arrayd", ignore=shutil.ignore_patterns("__pycache__"))
    for name, old, new in changes():
        apply(folder, name.replace("client-python/", "python/"), old, new)
    return folder


def test_each_kind_of_change_is_there():
    assert {name for name, _, _ in changes()} >= {
        "protocol/ufunc.def", "protocol/request.def", "protocol/counter.def", "protocol/option.def",
        "server/common/event.def", "client-python/arrayd/__init__.py"}


@pytest.mark.parametrize("source", ["server/worker/session/execute.c", "server/worker/handlers.c", "server/worker/counters.c",
                                    "server/front/net/handshake.c", "server/common/log.c", "server/common/config.c"])
def test_what_they_change_compiles(copy, source):
    run(os.environ.get("CC", "gcc"), "-std=c11", "-D_GNU_SOURCE", '-DAD_VERSION="0"', "-fsyntax-only", "-Wall", "-Wextra",
        "-Werror", f"-I{copy}", f"-I{TOP}", copy / source)


def test_the_python_function_works(copy):
    program = "import arrayd as ad; print(ad.count_before(ad.arange(5), 3)); assert ad.count_before.__doc__"
    assert run(sys.executable, "-c", program, env={**os.environ, "PYTHONPATH": str(copy / "python")}) == "3\n"


def test_the_row_compiles_again_what_names_rows():
    """By the compiler's notes of the last build, kernels, the client and their tests, and little of the server."""
    rebuilt, objects = architecture.find_rebuilt()
    told = re.search(r"compiles (\d+) of (\d+) objects again", (TOP / "docs/internals/overview.md").read_text())
    assert rebuilt / objects < 1.1 * int(told[1]) / int(told[2])
    server = [path for path in (BUILD / "obj/server").rglob("*.d") if "protocol/ufunc.def" in path.read_text()]
    assert len(server) <= 7, server


def test_a_request_compiles_no_kernels_again():
    """Opcodes are named where messages are encoded and executed, and by few of the kernels' files."""
    rebuilt, objects = architecture.find_rebuilt("protocol/request.def")
    assert rebuilt / objects < 0.25
    assert not [path for path in (BUILD / "obj/kernels/cpu/isa").rglob("*.d") if "protocol/request.def" in path.read_text()]


def test_the_id_and_the_name_are_free(row):
    table = (TOP / "protocol/ufunc.def").read_text()
    number, name = re.match(r"AD_UFUNC\((\d+), (\w+), ", row).groups()
    assert name == "softplus" and not re.search(rf"^AD_UFUNC\({number}, |, {name},", table, re.M)


def test_the_reference_has_it(copy, tmp_path):
    run(sys.executable, copy / "docs/generate.py", tmp_path, "0.1.0")
    assert re.search(r"\| `softplus` \| 1 \| 1 \| float \| log\(1 \+ exp\(x\)\) without overflow\. \| 68 \|",
                     (tmp_path / "ufuncs.md").read_text())
    assert re.search(r"int ad_softplus\(ad_in x, ad_array \*\*out\)` \| `AD_UFUNC_softplus` \| log\(1 \+ exp\(x\)\)",
                     (tmp_path / "c/functions.md").read_text())


def test_every_page_has_the_texts_of_its_rows(tmp_path):
    """A column that is added to a table does not move what a page says of its rows."""
    sys.path.insert(0, str(TOP / "docs"))
    import generate
    run(sys.executable, TOP / "docs/generate.py", tmp_path, "0.1.0")
    for table, doc in (("ufunc", 9), ("reduction", 10), ("call", 11), ("distribution", 10), ("counter", 7)):
        page = (tmp_path / f"{table}s.md").read_text()
        for cells in generate.rows(table):
            line = next(line for line in page.splitlines() if line.startswith(f"| `{cells[1]}` |"))
            assert len(cells[doc]) > 3 and f"| {cells[doc].replace('|', chr(92) + '|')} |" in line, line


@pytest.fixture(scope="module")
def native(copy, tmp_path_factory):
    library = tmp_path_factory.mktemp("native") / "protocol.so"
    run(os.environ.get("CC", "gcc"), "-std=c11", "-D_GNU_SOURCE", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror",
        f"-I{copy}", f"-I{TOP}", *sorted((copy / "protocol").glob("*.c")), TOP / "tests/wire/codec_entry.c",
        TOP / "tests/wire/extent_entry.c", "-o", library, "-l:libmsgpackc.a")
    return wire_native.Native(library)


def test_it_has_types_and_a_cost(native):
    found = native.ufuncs["softplus"].contents
    assert (found.nin, found.nout, found.cost, found.traits) == (1, 1, 100, 0)
    assert found.cost == native.ufuncs["logaddexp"].contents.cost, "what it computes by costs as much"
    assert native.ufunc_loop("softplus", ["float32"]) == ("float32", ["float32"], ["float32"])
    assert native.ufunc_loop("softplus", ["int64"]) == ("float64", ["float64"], ["float64"])
    with pytest.raises(TypeError):
        native.ufunc_loop("softplus", ["complex64"])


def test_its_oracle_is_that_of_its_row(native):
    """tests/ops/test_ufuncs.py compares a row with NumPy's function of its name, or by what the row says instead."""
    assert not hasattr(np, "softplus")
    ulps, _, oracle = native.ufuncs["softplus"].contents.test.decode().partition(" ")
    assert int(ulps) == 16
    x = np.linspace(-4, 4, 1001)
    np.testing.assert_allclose(eval(oracle, {"np": np, "x": x}), np.log1p(np.exp(x)), rtol=1e-14)
    for dtype in ("bool", "int8", "uint16", "int64", "float16", "float32", "float64"):
        assert eval(oracle, {"np": np, "x": np.ones(3, dtype)}).dtype == native.ufunc_loop("softplus", [dtype])[2][0], dtype


def test_its_expression_compiles_and_is_right(row, native, tmp_path):
    """The expression as the loops of the CPU compile it: over x, in the loop's type."""
    (tmp_path / "row.def").write_text(row + "\n")
    source = tmp_path / "row.cpp"
    source.write_text("""
        #include "kernels/math.h"
        __thread unsigned ad_cpu_raised;
        #define AD_UFUNC(id, name, nin, nout, rule, domain, cost, traits, test, doc, ...) \\
            template <class T> static T compute(T x) { return __VA_ARGS__; }
        #include "row.def"
        extern "C" double compute_double(double x) { return compute(x); }
        extern "C" float compute_float(float x) { return compute(x); }
        """)
    run(os.environ.get("CXX", "g++"), "-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-I{TOP}",
        f"-I{tmp_path}", source, "-o", tmp_path / "row.so")
    library = ctypes.CDLL(str(tmp_path / "row.so"))
    ulps, _, oracle = native.ufuncs["softplus"].contents.test.decode().partition(" ")
    for name, kind, dtype in (("compute_double", ctypes.c_double, np.float64), ("compute_float", ctypes.c_float, np.float32)):
        function = getattr(library, name)
        function.restype, function.argtypes = kind, [kind]
        x = np.linspace(-4, 4, 1001, dtype=dtype)
        got = np.array([function(value) for value in x], dtype)
        np.testing.assert_array_max_ulp(got, eval(oracle, {"np": np, "x": x}), int(ulps))
        assert function(1000) == 1000 and function(-1000) == 0
