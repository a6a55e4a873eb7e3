"""Ctrl-C where nobody waits for the server: a cell or a line that it ends has sent operations that nobody wants any more.

A call that waits is told of the signal itself (src/session.c). Programs that catch KeyboardInterrupt say ad.cancel().
"""
import sys

from .. import _core


def _cancel():
    try:
        _core.cancel()
    except Exception:  # the server has gone, or is too old
        pass


def _after_cell(result):
    if isinstance(result.error_in_exec, KeyboardInterrupt):
        _cancel()


def _wrap(hook):
    """An excepthook that cancels before it shows Ctrl-C's traceback."""
    def excepthook(kind, error, traceback):
        if issubclass(kind, KeyboardInterrupt):
            _cancel()
        hook(kind, error, traceback)
    return excepthook


def install():
    """Cancel when Ctrl-C ends a cell of IPython, or a line of an interactive interpreter."""
    ipython = sys.modules.get("IPython")
    shell = ipython and ipython.get_ipython()
    if shell:
        shell.events.register("post_run_cell", _after_cell)
    elif sys.flags.interactive or hasattr(sys, "ps1"):
        sys.excepthook = _wrap(sys.excepthook)
