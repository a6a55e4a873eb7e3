"""Runs a program that imports cupy: see arrayd.cupy."""
import os
import runpy
import sys
import types

from . import __doc__ as _about
from . import install

_OURS = {__file__, runpy.__file__, "<frozen runpy>"}
_USAGE = "usage: python -m arrayd.cupy (program.py | -m module | -c code) [arguments...]"


def _script(path):
    if not os.path.exists(path):
        print(f"{sys.executable}: can't open file {os.path.abspath(path)!r}: [Errno 2] No such file or directory",
              file=sys.stderr)
        raise SystemExit(2)
    if not sys.flags.safe_path:
        sys.path[0] = os.path.dirname(os.path.realpath(path))
    runpy.run_path(path, run_name="__main__")


def _code(text):
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    if not sys.flags.safe_path:
        sys.path[0] = ""
    exec(compile(text, "<string>", "exec"), module.__dict__)


def _run(arguments):
    if arguments[0] not in ("-m", "-c"):
        sys.argv[:] = arguments
        return _script(arguments[0])
    if len(arguments) < 2:
        print(f"Argument expected for the {arguments[0]} option\n{_USAGE}", file=sys.stderr)
        raise SystemExit(2)
    sys.argv[:] = [arguments[0], *arguments[2:]]
    if arguments[0] == "-c":
        return _code(arguments[1])
    return runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)


def _show(error):
    """The traceback of the program, without what is here."""
    trace = error.__traceback__
    while trace and trace.tb_frame.f_code.co_filename in _OURS:
        trace = trace.tb_next
    sys.excepthook(type(error), error.with_traceback(trace), trace)


def main():
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(f"{_USAGE}\n\n{_about}", file=sys.stdout if arguments else sys.stderr)
        return 0 if arguments else 2
    if arguments[0].startswith("-") and arguments[0] not in ("-m", "-c"):
        print(f"Unknown option: {arguments[0]}\n{_USAGE}", file=sys.stderr)
        return 2
    install()
    try:
        _run(arguments)
    except Exception as error:
        _show(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
