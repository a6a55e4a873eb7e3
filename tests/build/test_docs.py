"""Pages and stubs that are made from the package: the page of coverage, the reference, the type stubs; and the
docstrings they need."""
import inspect
import os
import pathlib
import re
import subprocess
import sys

import pytest

from commands import COMMAND

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("ARRAYD_BUILD", TOP / "build" / "release"))
pytestmark = pytest.mark.skipif(BUILD.name != "release", reason="the package is imported")
sys.path[1:1] = [str(BUILD / "python"), str(TOP / "docs")]


def run(*command, **environment):
    """Standard output and error of Python with the package, and its status."""
    path = os.pathsep.join([str(BUILD / "python"), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run([sys.executable, *map(str, command)], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=COMMAND, cwd=TOP,
                          env={**os.environ, "PYTHONPATH": path, **environment})
    return done.stdout, done.returncode


# ---- coverage ----

def test_nothing_is_missing_without_a_reason():
    import covered
    found = covered.coverage()
    assert {"cupy", "cupy.linalg", "cupy.fft", "cupy.random", "cupyx", "cupy.ndarray"} <= set(found)
    silent = [f"{module}.{e.name}" for module, entries in found.items() for e in entries
              if e.status == "missing" and not e.note]
    assert not silent
    most = {"cupy": 380, "cupy.linalg": 20, "cupy.fft": 18, "cupy.random": 55, "cupy.ndarray": 150, "cupyx": 15}
    for module, least in most.items():
        assert sum(e.status != "missing" for e in found[module]) >= least, module


def test_coverage_tells_what_differs():
    """The comparison sees parameters, types, classes and docstrings that differ, and calls what is alike the same."""
    import covered
    import numpy as np

    import arrayd as ad

    def theirs(a, axis=None, dtype=None, *, keepdims=False):
        pass

    def ours(a, dtype=None, axis=None, keepdims=True):
        """Sums.

        Parameters: a: array. dtype: ignored.
        Differs: where it does.
        Source: nowhere
        """

    notes = list(covered.differences(ours, theirs))
    assert notes == ["where it does", "`dtype` is ignored", "`axis` is parameter 3, not 2", "`dtype` is parameter 2, not 3",
                     "`keepdims` is True unless given, not False"]
    assert list(covered.differences(lambda x: x, theirs)) == ["`a` is named `x`", "no `axis`", "no `dtype`",
                                                               "no `keepdims`"]
    assert list(covered.differences(lambda a, *, axis=None, dtype=None, keepdims=False, more=0: a, theirs)) == [
        "`axis` only by name", "`dtype` only by name"]
    assert list(covered.differences(lambda a, axis=None, dtype=None, keepdims=False: a, theirs)) == []
    assert list(covered.differences(ad.add, np.add)) == [] and list(covered.differences(np.pi, np.pi)) == []
    assert "no loop ee->e" in list(covered.differences(ad.bitwise_and, np.add))
    assert any("without" in note for note in covered.differences(type("C", (), {}), np.poly1d))


def test_page_of_coverage_is_up_to_date():
    import covered
    page, there = covered.page(), covered.PAGE.read_text()
    numpys = re.compile(r"with NumPy ([\d.]+),")
    if numpys.search(page)[1] != numpys.search(there)[1]:
        pytest.skip("the page was made with another NumPy")
    assert page == there, "make docs writes it again"


# ---- docstrings and reference ----

def functions():
    """Public functions and methods by their full names, but NumPy's own, each once."""
    import arrayd
    import public
    seen = set()
    for name, module in public.modules().items():
        for each in public.names(module):
            value = getattr(module, each)
            if value is arrayd.ndarray or value is arrayd.ufunc:  # of C
                continue
            if not inspect.isclass(value):
                candidates = [(f"{name}.{each}", value, False)]
            elif value.__module__.startswith("arrayd") and not issubclass(value, Exception):
                candidates = [(f"{name}.{each}.{n}", m, True) for n, m in vars(value).items()
                              if not n.startswith("_") and inspect.isfunction(m)]
                candidates.append((f"{name}.{each}", value, None))
            else:
                continue
            for full, function, method in candidates:
                home = getattr(function, "__module__", None) or "arrayd"
                if callable(function) and home.startswith("arrayd") and id(function) not in seen:
                    seen.add(id(function))
                    yield full, function, method


def lacking(full, function, method):
    """Yield what a docstring lacks of the house's form: a summary, and the fields that there is something to say for.
    Methods that are no functions of their own, and helpers of tests, may be brief."""
    import public
    fields = public.fields(function)
    if not fields[""]:
        return ["a docstring"]
    if method or full.startswith("arrayd.testing."):
        return []
    missing = [field for field in (["Source"] if method is None else ["Returns", "Source"]) if field not in fields]
    signature = public.signature(function)
    takes = [] if signature is None or method is None else [n for n in signature.parameters if not n.startswith("_")]
    if takes and "Raises" not in fields:
        missing.append("Raises")
    described = fields.get("Parameters", "")
    general = re.search(r"\bas [a-z]|others", described)  # as another function's
    ufunc = type(function).__name__ == "ufunc"
    missing += [n for n in takes if not general and not ufunc and not re.search(rf"\b{n}\b", described)]
    return missing


def test_docstrings():
    everything = list(functions())
    assert len(everything) > 500
    bad = {full: what for full, function, method in everything if (what := lacking(full, function, method))}
    assert not bad, "\n".join(f"{full}: {', '.join(what)}" for full, what in bad.items())


def test_reference(tmp_path):
    """`make docs` writes a page for each module, with every public function on it, and links that lead somewhere."""
    import covered
    import public
    before = covered.PAGE.read_text()
    try:
        output, status = run(TOP / "docs" / "generate.py", tmp_path, "1.2.3", "--python")
    finally:
        covered.PAGE.write_text(before)
    assert status == 0, output
    for name, module in public.modules().items():
        page = (tmp_path / "reference" / f"{name}.md").read_text()
        for each in public.names(module):
            if not inspect.ismodule(getattr(module, each)):
                assert re.search(rf"^## (class )?`{re.escape(each)}[(`]", page, re.M), f"{name}.{each}"
    assert not [page for page in (tmp_path / "reference").glob("*.md") if "add_note" in page.read_text()]
    assert "**Parameters:**" in (tmp_path / "reference" / "arrayd.ndarray.md").read_text()
    index = (tmp_path / "index.md").read_text()
    assert "1.2.3" in index
    for link in re.findall(r"\]\(([^)]+)\)", index):
        assert (tmp_path / link).is_file()


def exported():
    """Functions that libarrayd gives to programs."""
    names = subprocess.run(["nm", "-D", "--defined-only", BUILD / "lib" / "libarrayd.so"], text=True, check=True,
                           stdout=subprocess.PIPE).stdout
    return {line.split()[2].split("@")[0] for line in names.splitlines() if " T " in line}


def test_reference_of_c():
    """Every function of the library has a place in it and words; all of the header's do in the man pages, too."""
    import creference
    import generate
    entries = [entry for section in creference.sections() for entry in section.entries]
    by_name = {name: entry for entry in entries for name in entry.names}
    pages = {file: text for file, _, text in generate.c_reference()}
    of_tables = re.findall(r"^\| `int (ad_\w+)\([^`]+\)` \| `AD_\w+` \| .+ \|$", pages["c/functions.md"], re.M)
    library = exported()
    functions = library & set(by_name)
    assert len(functions) > 60 and len(of_tables) > 100
    assert functions | set(of_tables) == library and not functions & set(of_tables)
    assert not [entry.names for entry in entries if functions & set(entry.names) and len(entry.text) < 6]
    assert not functions - set(creference.manuals())
    assert set(creference.manuals()) <= set(by_name)
    for name in by_name:
        assert re.search(rf"^### .*`{name}`", pages["c/arrayd.md"], re.M), name
    assert "`AD_FLOAT32`" in pages["c/constants.md"] and "`AD_E_MEMORY`" in pages["c/constants.md"]
    assert pages["c/arrayd.md"].count("```") % 2 == 0


# ---- type stubs ----

@pytest.fixture(scope="module")
def stubs(tmp_path_factory):
    """A folder with the stubs that go into the wheel."""
    folder = tmp_path_factory.mktemp("stubs")
    output, status = run(TOP / "docs" / "stubs.py", folder)
    assert status == 0, output
    assert (folder / "arrayd" / "py.typed").exists()
    return folder


def mypy(stubs, *arguments):
    return run("-m", "mypy", "--cache-dir", stubs / "cache", *arguments, MYPYPATH=str(stubs), PYTHONPATH="")


def test_typed_program(stubs):
    """mypy finds the types that the program names and the errors that it marks. A `type: ignore` that is not needed is
    an error."""
    output, status = mypy(stubs, "--strict", TOP / "tests" / "build" / "typed_program.py")
    assert status == 0, output
    output, status = mypy(stubs, "-c", "import arrayd as ad\nad.zeros(3).sum(axis='x')\nad.sin()\n")
    assert status == 1 and output.count("error:") == 2, output


def test_stubs_and_examples(stubs):
    examples = sorted((TOP / "docs" / "examples").glob("*.py"))
    assert examples
    for arguments in (("-p", "arrayd"), ("--check-untyped-defs", *examples)):
        output, status = mypy(stubs, *arguments)
        assert status == 0, output


def test_stubs_fit_the_package(stubs):
    """mypy's stubtest finds no name, parameter or default that the running package has otherwise."""
    output, _ = run("-m", "mypy.stubtest", "arrayd", "--ignore-missing-stub", "--concise", MYPYPATH=str(stubs))
    expected = [  # what stubs cannot say, and the classes that stand for ufuncs and results
        r"variable differs from runtime type arrayd\._core\.ufunc", r'parameter "self" differs from runtime parameter',
        r"disjoint_base", r"@final", r"linalg\.\w+Result is not present at runtime", r"__r?pow__ is inconsistent",
        r"__(repr|str)__ is inconsistent", r"__array_function__", r"__new__ is inconsistent",
        r'"output" has a default value of type def', r"scipy\.signal\.\w+ is inconsistent, metaclass differs"]
    left = [line for line in output.splitlines() if line.startswith("arrayd.")
            and not any(re.search(pattern, line) for pattern in expected)]
    assert "arrayd.add variable differs" in output and not left, "\n".join(left)
