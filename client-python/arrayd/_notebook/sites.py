"""Where operations were issued, for the errors that are raised later: in IPython and notebooks, in Python's development
mode (python -X dev), and with ARRAYD_SITES=1.

Otherwise an error has the operation's name and number. Noting the line takes longer than issuing an operation.
"""
import os
import sys
from _thread import allocate_lock

from .. import _core
from .._kernel.sites import _line

_MOST = 1 << 16
_OFF = ("0", "no", "off", "false")
_PACKAGE = __name__.partition(".")[0]
_lock = allocate_lock()
_session = 0
_numbers, _places = [], []  # of runs of operations, in order: the last one's number, and (code, place in it)


def _outside():
    """The frame that called this package."""
    frame = sys._getframe(2)
    while frame is not None and (frame.f_globals.get("__name__") or "").partition(".")[0] == _PACKAGE:
        frame = frame.f_back
    return frame


def _note(session, number):
    """Operations up to this number have been issued, those that nobody noted by who calls."""
    global _session
    frame = _outside()
    if frame is None:
        return
    place = frame.f_code, frame.f_lasti
    with _lock:
        if session != _session:
            _session = session
            _numbers.clear()
            _places.clear()
        if _places and _places[-1] == place:
            _numbers[-1] = number
            return
        if len(_numbers) >= _MOST:
            del _numbers[:_MOST // 2], _places[:_MOST // 2]
        _numbers.append(number)
        _places.append(place)


def _name(file):
    """Return what a user calls a file: IPython has names for the files that it makes of cells."""
    ipython = sys.modules.get("IPython")
    shell = ipython and ipython.get_ipython()
    named = shell and getattr(shell.compile, "format_code_name", lambda _: None)(file)
    return " ".join(named) if named else file


def _told(number):
    """Return what to append: "; issued at ...", for the message of an error; empty where that is not known any more."""
    import linecache
    from bisect import bisect_left
    with _lock:
        i = bisect_left(_numbers, number)
        if i == len(_numbers):
            return ""
        code, place = _places[i]
        later = len(_numbers) - 1 - i
    line = _line(code, place)
    source = linecache.getline(code.co_filename, line).strip()
    earlier = " earlier" if later else ""
    return f"; issued{earlier} at {_name(code.co_filename)}, line {line}" + (f": {source}" if source else "")


def _is_interactive():
    ipython = sys.modules.get("IPython")
    return "ipykernel" in sys.modules or bool(ipython and ipython.get_ipython())


def install():
    """Note where operations are issued if somebody wants it."""
    setting = os.environ.get("ARRAYD_SITES", "")
    if setting.lower() not in _OFF if setting else sys.flags.dev_mode or _is_interactive():
        _core.watch_operations(_note, _told)
