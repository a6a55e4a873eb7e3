"""Progress bars of transfers over a GiB: by tqdm where that is installed, on a terminal or in a notebook."""
import importlib
import os
import sys
import threading

from . import _core

_lock = threading.Lock()
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


def _show(done, total, up):
    """Called by the extension in the course of a transfer."""
    thread = threading.get_ident()
    with _lock:
        bar, *what = _bars.get(thread, (None, None, None))
    if bar is not None and (what != [total, up] or done < bar.n):  # of one that was interrupted
        bar.close()
        bar = None
    if bar is None:
        tqdm = _tqdm()
        if tqdm is None:
            return
        bar = tqdm(total=total, unit="B", unit_scale=True, unit_divisor=1024, leave=False,
                   desc="to the server" if up else "from the server")
    bar.update(done - bar.n)
    with _lock:
        _bars[thread] = bar, total, up
        if done >= total:
            del _bars[thread]
    if done >= total:
        bar.close()


_core.set_progress(_show)
