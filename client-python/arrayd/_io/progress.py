"""Progress bars of transfers over a GiB: by tqdm where that is installed, on a terminal or in a notebook."""
import contextlib
import importlib
import os
import sys
from _thread import allocate_lock, get_ident  # threading takes longer to import than most of this package

from .. import _core

LEAST = 1 << 30  # bytes; what is less is done before somebody looks
_lock = allocate_lock()
_bars = {}  # of threads: (bar, total, up)


def _wanted():
    """ARRAYD_PROGRESS=0 and 1 decide; else whether somebody looks."""
    setting = os.environ.get("ARRAYD_PROGRESS", "")
    if setting:
        return setting.lower() not in ("0", "no", "off", "false")
    return "ipykernel" in sys.modules or bool(sys.stderr and sys.stderr.isatty())


def _tqdm():
    try:
        return importlib.import_module("tqdm.auto").tqdm if _wanted() else None
    except ImportError:
        return None


def _bar(total, up):
    """A bar of so many bytes, or None where there is to be none."""
    tqdm = _tqdm()
    return tqdm and tqdm(total=total, unit="B", unit_scale=True, unit_divisor=1024, leave=False,
                         desc="to the server" if up else "from the server")


@contextlib.contextmanager
def steps(total, up):
    """A function to be called with the bytes of each part of a transfer that the program itself makes in parts."""
    bar = _bar(total, up) if total > LEAST else None
    try:
        yield bar.update if bar is not None else lambda size: None
    finally:
        if bar is not None:
            bar.close()


def _show(done, total, up):
    """Called by the extension in the course of a transfer."""
    thread = get_ident()
    with _lock:
        bar, *what = _bars.get(thread, (None, None, None))
    if bar is not None and (what != [total, up] or done < bar.n):  # of one that was interrupted
        bar.close()
        bar = None
    if bar is None:
        bar = _bar(total, up)
        if bar is None:
            return
    bar.update(done - bar.n)
    with _lock:
        _bars[thread] = bar, total, up
        if done >= total:
            del _bars[thread]
    if done >= total:
        bar.close()


_core.set_progress(_show)
