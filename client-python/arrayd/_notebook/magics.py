"""%load_ext arrayd: a status line below each cell, and %arrayd for what the server does."""
import inspect
import json
import os
import socket
import time

from .. import _core
from .display import format_count, format_size

_LIMIT = 10  # seconds for a control socket to answer
_SHOWN = 20  # sessions that top shows


def _control_path(url):
    """The control socket beside a server's own, for those whom its permissions let in; None for other servers."""
    return url[len("unix:"):] + ".ctl" if url.startswith("unix:") else None


def _ask_status(path):
    """Return what the server says of itself (arrayctl status --json)."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(_LIMIT)
        s.connect(path)
        s.sendall(b"status\n")
        with s.makefile("rb") as answer:
            return json.load(answer)


def _table(head, rows):
    """Columns as wide as their widest cell, the numbers flush right."""
    rows = [[f"{cell}" for cell in row] for row in (head, *rows)]
    width = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join("  ".join(cell.ljust(n) if i < 4 else cell.rjust(n) for i, (cell, n) in enumerate(zip(row, width)))
                     .rstrip() for row in rows)


def _doing(s, operations):
    """Say what a session does as arrayctl top says it: a long operation, or why it does nothing."""
    if s["executing"]:
        return f"{s['executing']} for {s['executing_seconds']:.1f} s"
    if s["state"] == "waiting":
        return "its client is away"
    if s["counters"]["queued_bytes"]:
        return "waits for its turn"
    return "computes" if operations else "nothing"


def _top(status, before):
    """The sessions by the time that they had of devices since the status before."""
    passed = status["arrayd"]["uptime_seconds"] - before["arrayd"]["uptime_seconds"] or 1
    old = {s["session"]: s["counters"] for s in before["sessions"]}
    rows = []
    for s in status["sessions"]:
        now, was = s["counters"], old.get(s["session"], {})
        share = (now["device_us"] - was.get("device_us", 0)) / 1e4 / passed
        ops = (now["ops_done"] - was.get("ops_done", 0)) / passed
        rows.append((share, ops, s["session"], s["principal"], s["client"], _doing(s, ops), format_size(now["buffer_bytes"])))
    rows.sort(key=lambda row: row[:2], reverse=True)
    return _table(["session", "who", "program", "doing", "memory", "operations/s", "device %"],
                  [(*row[2:], f"{row[1]:.0f}", f"{row[0]:.1f}") for row in rows[:_SHOWN]])


def _describe():
    """The connection and what this session has, as text."""
    info, stat = _core.session_info(), _core.stat()
    return "\n".join([
        f"{info['url']}: {info['server']}, {info['backend']}, {info['device_name']}, session {info['session']}",
        f"{format_size(stat['buffer_bytes'])} in {format_count(stat['buffers'], 'array')}; {format_size(stat['used_bytes'])} "
        f"in {format_count(stat['sessions'], 'session')} together",
        f"{format_count(info['operations'], 'operation')} sent, {stat['ops_failed']} failed, {stat['cancelled']} cancelled; "
        f"{format_count(info['round_trips'], 'wait')}"])


class _StatusLine:
    """Prints what a cell has sent and how often it has waited, below the cell."""

    def __init__(self):
        self.on = True
        self._before = None

    def begin(self, *_):
        self._before = (time.monotonic(), *self._counts()) if _core.session_serial_now() else (time.monotonic(), 0, 0)

    def end(self, *_):
        if self._before is None or not self.on or not _core.session_serial_now():
            return
        begun, operations, waits = self._before
        sent, waited = (now - then for now, then in zip(self._counts(), (operations, waits)))
        if sent > 0 or waited > 0:
            print(f"arrayd: {format_count(sent, 'operation')} sent, {format_count(waited, 'wait')}, {time.monotonic() - begun:.3f} s")

    @staticmethod
    def _counts():
        """Arrays that have gone are freed whenever the library likes, also while a cell runs that sends nothing."""
        info = _core.session_info()
        return info["operations"] - info["frees"], info["round_trips"]


_line = None  # of the shell that has loaded the extension


def run(line):
    """Return what %arrayd prints; ValueError for a command that it does not have."""
    command, *more = line.split() or ["status"]
    if command == "status" and not more:
        return _describe()
    if command == "line" and more in (["on"], ["off"]):
        _line.on = more == ["on"]
        return f"the status line is {more[0]}"
    if command == "cancel" and not more:
        _core.cancel()
        return "cancelled"
    if command == "top" and not more:
        path = _control_path(_core.session_info()["url"])
        try:
            if path is None:
                raise OSError("the server is not reached by a Unix socket")
            before = _ask_status(path)
            time.sleep(float(os.environ.get("ARRAYD_TOP_SECONDS", 1)))
            return _top(_ask_status(path), before)
        except OSError as error:
            return f"other sessions cannot be seen from here ({error}); this one:\n{_describe()}"
    raise ValueError(f"%arrayd {line}: expected status, top, cancel, line on or line off")


def load_ipython_extension(ipython):
    """%load_ext arrayd: a line below each cell says what it has sent, and %arrayd shows the server.

    `%arrayd` the connection and this session's arrays; `%arrayd top` the sessions of the server by what they do, where
    its control socket may be used; `%arrayd cancel` as ad.cancel(); `%arrayd line off` and `on` the line below cells.
    Parameters: ipython: the shell.
    Returns: None.
    Raises: AttributeError for anything but a shell of IPython.
    Source: arrayd
    """
    from IPython.core.error import UsageError  # a shell of IPython is there, so this is as well
    global _line
    unload_ipython_extension(ipython)
    _line = _StatusLine()
    ipython.events.register("pre_run_cell", _line.begin)
    ipython.events.register("post_run_cell", _line.end)

    def arrayd(line):
        try:
            print(run(line))
        except ValueError as error:
            raise UsageError(str(error)) from None

    arrayd.__doc__ = inspect.getdoc(load_ipython_extension)
    ipython.register_magic_function(arrayd, "line", "arrayd")


def unload_ipython_extension(ipython):
    """%unload_ext arrayd: no line below cells any more.

    Parameters: ipython: the shell.
    Returns: None.
    Raises: nothing where it is not loaded.
    Source: arrayd
    """
    global _line
    if _line is None:
        return
    ipython.events.unregister("pre_run_cell", _line.begin)
    ipython.events.unregister("post_run_cell", _line.end)
    _line = None
