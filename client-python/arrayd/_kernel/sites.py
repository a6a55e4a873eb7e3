"""Where kernels were launched, for the error of one that takes its worker along."""
import re
import sys

_PACKAGE = __name__.rpartition(".")[0]
_MOST = 256
_sites = {}  # name -> (code, place in it) of the last launch from outside of this package


def note(name):
    """A kernel of this name is being launched."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__", "").startswith(_PACKAGE):
        frame = frame.f_back
    if frame is None:
        return
    if len(_sites) == _MOST and name not in _sites:
        del _sites[next(iter(_sites))]
    _sites[name] = frame.f_code, frame.f_lasti


def _line(code, place):
    return next((line for first, end, line in code.co_lines() if first <= place < end and line), code.co_firstlineno)


def told(message):
    """The message of a lost device, and where the kernels that it names were last launched."""
    found = [f"{name} was launched at {code.co_filename}:{_line(code, place)}"
             for name, (code, place) in _sites.items() if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", message)]
    return "; ".join([message, *found])
