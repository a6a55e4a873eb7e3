"""A pytest plugin: CuPy's tests with arrayd as `cupy`, or with CuPy itself (ARRAYD_CONFORMANCE_UNDER=cupy).

Writes a line of JSON for each test to ARRAYD_CONFORMANCE_RESULTS. Names that a test module takes of cupy when it is
imported, and that arrayd does not have, are placeholders until then: a test that touches one fails, the others run.
"""
import contextlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import functools
import json
import os
import pathlib
import re
import resource
import shutil
import sys
import tempfile
import traceback
import types

import pytest

from helpers import HELPERS, MIRRORS, REPLACED, ignore_private_options, skip_with_all

UNDER = os.environ.get("ARRAYD_CONFORMANCE_UNDER", "arrayd")
RESULTS = os.environ.get("ARRAYD_CONFORMANCE_RESULTS")
DONE = os.environ.get("ARRAYD_CONFORMANCE_DONE")  # a file of ids that an earlier run has results of
HERE = pathlib.Path(__file__).resolve().parent
SERVER = os.environ.get("ARRAYD_CONFORMANCE_MEMORY", "2G")  # for the arrays of a server
CLIENT = 3 << 30  # bytes that a process of tests may have
MOST = 400  # placeholders of one module
LONGEST = 600  # characters of a message that are kept
_HOME = "arrayd.cupy"
_OURS = re.compile(r"(cupy|cupyx|cupy_backends|cupy_builder)(\.|$)")


class NotThere(Exception):
    """A test has touched a name that arrayd does not have."""


class _Placeholders:
    """Makes placeholders. While a module is imported a touch of one is no error; afterwards it is."""

    running = False
    touched = None  # by the test that runs
    made = []  # (module, name): to be taken back


def _refuse(name):
    _Placeholders.touched = f"arrayd has no {name}"
    raise NotThere(_Placeholders.touched)


def _refusing(function, name):
    """A function whose decorator is not there: called in a test it fails."""
    @functools.wraps(function)
    def refuse(*args, **kwargs):
        if _Placeholders.running:
            _refuse(name)
        return function(*args, **kwargs)
    return refuse


class _AbsentClass(type):
    """The type of classes with a base that is not there: one cannot be called in a test."""

    def __call__(cls, *args, **kwargs):
        if _Placeholders.running:
            _refuse(cls._absent)
        return super().__call__(*args, **kwargs)


class Absent:
    """Stands for a name that is not there. Decorators return what they decorate."""

    def __init__(self, name):
        self.__dict__.update(_absent=name, __name__=name, __qualname__=name)

    def __getattr__(self, name):
        if _Placeholders.running:
            _refuse(self._absent)
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(f"{self._absent}.{name}")

    def __call__(self, *args, **kwargs):
        if _Placeholders.running:
            _refuse(self._absent)
        if len(args) == 1 and not kwargs and isinstance(args[0], types.FunctionType):
            return _refusing(args[0], self._absent)
        if len(args) == 1 and not kwargs and isinstance(args[0], type):
            return pytest.mark.arrayd_absent(self._absent)(args[0])
        return self

    def __mro_entries__(self, bases):
        marks = [pytest.mark.arrayd_absent(self._absent)]
        return (_AbsentClass(self._absent.rpartition(".")[2], (), {"_absent": self._absent, "pytestmark": marks}),)

    def _touch(self, *args):
        if _Placeholders.running:
            _refuse(self._absent)
        return False

    def _iterate(self):
        if _Placeholders.running:
            _refuse(self._absent)
        return iter(())

    def __hash__(self):
        return id(self)

    def __repr__(self):
        return f"<no {self._absent}>"

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __contains__ = __setattr__ = _touch
    __enter__ = __exit__ = _touch
    __iter__ = _iterate

    def __index__(self):
        return int(self._touch())

    def _combine(self, *args):
        self._touch()
        return self

    __len__ = __int__ = __index__
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __floordiv__ = __mod__ = _combine
    __and__ = __or__ = __rand__ = __ror__ = __invert__ = __neg__ = __getitem__ = _combine


class _AbsentModule(types.ModuleType):
    def __getattr__(self, name):
        if _Placeholders.running:
            _refuse(f"{self.__name__}.{name}")
        if name.startswith("__"):
            raise AttributeError(name)
        return _stand_for(f"{self.__name__}.{name}")


def _make_module(name):
    module = _AbsentModule(name)
    module.__dict__.update(HELPERS.get(name, {}))
    return module


def _put_mirrors():
    """Give the modules of MIRRORS, made where arrayd has none of the name, the public names that they are asked for."""
    for name, public_name in MIRRORS.items():
        home, _, last = name.rpartition(".")
        parent, public = importlib.import_module(home), importlib.import_module(public_name)
        if not hasattr(parent, last):
            setattr(parent, last, _make_module(name))
        sys.modules[name] = module = getattr(parent, last)
        for key in dir(public):
            if not key.startswith("_"):
                module.__dict__.setdefault(key, getattr(public, key))


def _stand_for(name):
    """Return what stands for a name of CuPy: the harness's own module or function of that name, or a placeholder."""
    if name in HELPERS:
        return _make_module(name)
    home, _, last = name.rpartition(".")
    helpers = HELPERS.get(home, {})
    return helpers[last] if last in helpers else Absent(name)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules of CuPy that arrayd does not have, while a module of tests is imported."""

    importing = False

    def find_spec(self, name, path=None, target=None):
        if not _OURS.match(name):
            return None
        try:
            ours = [finder for finder in sys.meta_path if type(finder).__module__ == _HOME]
            if any(finder.find_spec(name, path, target) for finder in ours):
                return None
        except ImportError:
            pass
        if not self.importing:  # where CuPy is installed, its own modules would be found
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return _make_module(spec.name)

    def exec_module(self, module):
        parent, _, name = module.__name__.rpartition(".")
        if parent:
            _Placeholders.made.append((sys.modules[parent], name))


def _put(module, name):
    home = re.sub("^arrayd", "cupy", module.__name__).replace("cupy.cupyx", "cupyx").replace("cupy.cupy._private", "cupy")
    setattr(module, name, _stand_for(f"{home}.{name}"))
    _Placeholders.made.append((module, name))
    return True


def _supply(error):
    """Put a placeholder where an import has failed for want of a name of CuPy; whether there was one to put."""
    if isinstance(error, AttributeError):
        module, name = error.obj, error.name
        if not isinstance(module, types.ModuleType) or not name or not module.__name__.startswith(
                ("arrayd", "cupy", "cupyx")):
            return False
        return _put(module, name)
    missing = re.match(r"cannot import name '(\w+)' from '([\w.]+)'", str(error))
    if missing and missing[2] in sys.modules and hasattr(sys.modules[missing[2]], "__path__"):
        return _put(sys.modules[missing[2]], missing[1])
    found = False
    for name, module in list(sys.modules.items()):
        if _OURS.match(name) and isinstance(module, types.ModuleType) and not hasattr(module, "__path__"):
            module.__path__ = []
            found = True
    return found


def _import(name):
    """Import a module of tests, with placeholders for what it misses, so that pytest finds it; why it cannot be."""
    _Finder.importing = True
    try:
        for _ in range(MOST):
            try:
                importlib.import_module(name)
                return None
            except (AttributeError, ImportError) as error:
                if not _supply(error):
                    return error
            except Exception as error:
                return error
            except BaseException:  # a module that wants to be skipped says so to pytest
                return None
        return ImportError(f"{name} takes more than {MOST} names that are not there")
    finally:
        _Finder.importing = False
        for module, attribute in _Placeholders.made:
            module.__dict__.pop(attribute, None)
        _Placeholders.made.clear()
        for module in [m for m, found in sys.modules.items() if isinstance(found, _AbsentModule)]:
            del sys.modules[module]


class Broken(pytest.Module):
    """A module of tests that cannot be imported even with placeholders."""

    def collect(self):
        raise self.CollectError(self.reason)


if UNDER == "arrayd":
    import arrayd.cupy
    import arrayd.testing
    arrayd.cupy.install()
    sys.meta_path.insert(0, _Finder())
    _put_mirrors()
    arrayd.testing._loops._looping = skip_with_all(arrayd.testing._loops._looping)
    for _module, _names in REPLACED.items():
        vars(importlib.import_module(_module)).update(_names)
    for _name in ("numpy_cupy_allclose", "numpy_cupy_array_equal"):
        setattr(arrayd.testing, _name, ignore_private_options(getattr(arrayd.testing, _name)))


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makemodule(module_path, parent):
    if UNDER != "arrayd":
        return None
    top = module_path.parent
    while (top / "__init__.py").exists():
        top = top.parent
    if str(top) not in sys.path:
        sys.path.insert(0, str(top))
    error = _import(".".join(module_path.relative_to(top).with_suffix("").parts))
    if error is None:
        return None
    broken = Broken.from_parent(parent, path=module_path)
    broken.reason = f"{type(error).__name__}: {error}"
    return broken


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    _Placeholders.running, _Placeholders.touched = True, None
    try:
        return (yield)
    finally:
        _Placeholders.running = False
        _drop_errors()


def _drop_errors():
    """Wait for what a test has called, so that an error that it did not wait for is not taken for the next one's."""
    if UNDER == "arrayd":
        with contextlib.suppress(Exception):
            arrayd.sync()


def _names_nothing(mark):
    """Tell whether a mark filters warnings of a class of CuPy's that is not there."""
    category = re.search(r":(cupy[\w.]*)\.(\w+)(:|$)", mark.args[0]) if mark.name == "filterwarnings" else None
    try:
        return category and not hasattr(importlib.import_module(category[1]), category[2])
    except ImportError:
        return True


def _leave_out_done(items):
    if DONE and os.path.exists(DONE):
        done = set(json.loads(pathlib.Path(DONE).read_text()))
        items[:] = [item for item in items if item.nodeid not in done]


def pytest_collection_modifyitems(items):
    _leave_out_done(items)
    for node in {node for item in items for node in item.listchain()}:
        node.own_markers[:] = [mark for mark in node.own_markers if not _names_nothing(mark)]


def pytest_runtest_setup(item):
    for mark in item.iter_markers("arrayd_absent"):
        _refuse(mark.args[0])


def _text(error):
    try:
        text = str(error) or "at " + (traceback.extract_tb(error.__traceback__)[-1].line or "")
        return f"{type(error).__name__}: {text}"
    except Exception as broken:
        return f"{type(error).__name__}: its message cannot be made: {broken!r}"


def _cause(error):
    """Describe what has been raised, and where in arrayd. For what arrayd.testing compares it is the error below."""
    text, comparison = _text(error), ""
    if error.__cause__ is not None or text.startswith("AssertionError: Only numpy"):
        comparison = text.splitlines()[0].removeprefix("AssertionError: ") + " <- "
        text = _text(error.__cause__) if error.__cause__ is not None else text.splitlines()[-1]
        error = error.__cause__ or error
    where, trace = "", error.__traceback__
    while trace:
        path = pathlib.PurePath(trace.tb_frame.f_code.co_filename)
        if "arrayd" in path.parts and "testing" not in path.parts:
            where = f"{path.name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return [(comparison + text)[:LONGEST], where]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.failed and call.excinfo is not None:
        report.cause = _cause(call.excinfo.value)
    elif report.passed and _Placeholders.touched:  # a test that expects any error got it from a placeholder
        report.outcome, report.longrepr = "failed", _Placeholders.touched
        report.cause, _Placeholders.touched = [f"NotThere: {_Placeholders.touched}", ""], None
    return report


class Recorder:
    """Writes what has come of each test, in the process that hands out the work."""

    def __init__(self, path):
        self.file = open(path, "a", encoding="utf-8")

    def _write(self, **line):
        self.file.write(json.dumps(line) + "\n")
        self.file.flush()

    def pytest_runtest_logreport(self, report):
        outcome = report.outcome
        if hasattr(report, "wasxfail"):
            outcome = "xfailed" if report.skipped else report.outcome
        if report.failed and "[XPASS(strict)]" in report.longreprtext:
            outcome = "xpassed"
        if report.when in ("setup", "teardown") and outcome == "passed":
            return
        cause = getattr(report, "cause", None)
        if cause is None and report.failed:
            cause = [report.longreprtext[-LONGEST:], ""]
        if report.skipped and isinstance(report.longrepr, (tuple, list)):
            cause = [str(report.longrepr[2])[:LONGEST], ""]
        self._write(id=report.nodeid, when=report.when, outcome=outcome, cause=cause, seconds=round(report.duration, 3))

    def pytest_collectreport(self, report):
        if report.outcome == "passed":
            return
        text = str(report.longrepr[2]) if isinstance(report.longrepr, (tuple, list)) else report.longreprtext
        lines = [line for line in text.splitlines() if line.startswith("E ")] or text.splitlines()[-1:]
        self._write(id=report.nodeid, when="collect", outcome=report.outcome,
                    cause=["\n".join(line.removeprefix("E ").strip() for line in lines)[:LONGEST], ""], seconds=0)


def _start_server():
    """A server of this process's own with little memory, so that many of them never take what the machine has."""
    spec = importlib.util.spec_from_file_location("ops_conftest", HERE.parent / "ops" / "conftest.py")
    ops = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(ops)
    folder = tempfile.mkdtemp(prefix="arrayd-conformance-")
    return *ops.start_server(folder, f"--memory={SERVER}", "--windows=1G"), folder


def pytest_configure(config):
    config.addinivalue_line("markers", "arrayd_absent(name): the class has a decorator that is not there")
    config.arrayd_server = None
    if RESULTS and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(RESULTS))
    if getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput"):
        return  # the work is that of other processes
    if UNDER == "arrayd":
        resource.setrlimit(resource.RLIMIT_DATA, (CLIENT, CLIENT))
        process, os.environ["ARRAYD_URL"], folder = _start_server()
        config.arrayd_server = process, folder


def pytest_unconfigure(config):
    if getattr(config, "arrayd_server", None):
        process, folder = config.arrayd_server
        process.kill()  # at once: a process of tests that takes long to end is killed, and would leave it
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)
