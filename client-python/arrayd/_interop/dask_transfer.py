"""Arrays between Dask's processes: by handle where both use one server, or the receiver's server fetches from the
sender's; else and on disk by value.

A sender does not know which server a receiver uses, nor does Dask. So the first array that goes over a connection goes
by value with a question, a random name. A receiver with the same server, which that connection itself belongs to,
publishes a byte under that name. When the sender finds it there, what follows goes by handle. Nothing else proves that
both use one server: hosts, addresses and urls do not, where there are containers. Schedulers do not answer: what goes
over their connections they may pass on to anybody.

    sender, server A                          receiver, server B
      elements, name, handle of one byte ──▶  B fetches the byte from A, if it fetches from A: that uses the handle up
      finds the handle used up
      handle of the next array ────────────▶  B fetches its elements
"""
import atexit
import collections
import contextlib
import secrets
import sys
import threading

import numpy as np

from .. import _core
from . import sharing
from .._base import as_array

_LEASE = 600.0  # seconds in which a receiver must have read what was sent to it
_MOST = 1024    # connections that are remembered
_ANSWERS = 16   # names that are published until the other end has found them; who asks again is answered again
_NAME = "arrayd.dask/"

_lock = threading.Lock()
_SAME, _PEER = "the same server", "a server that fetches from this one"
_connections = collections.OrderedDict()  # (session, address of the other end) -> the question, or one of these
_answered = collections.OrderedDict()     # names that this process has published
_unreachable = set()                      # (session, server) that this process's server could not fetch from


# ---- the sender ----

class _Question:
    """What the other end of a connection is asked: a name to publish, and the parts of a handle to use up."""

    def __init__(self):
        self.name, self.probe = secrets.token_hex(16), None

    def look(self):
        """_SAME when the name is published, _PEER when the handle has been used; else None."""
        if sharing.finds_mark(_NAME + self.name):
            with contextlib.suppress(KeyError):
                _core.unpublish(_NAME + self.name)
            return _SAME
        probe, self.probe = self.probe, None
        return _PEER if probe is not None and sharing.is_used_up(probe) else None


def _ask(address, nbytes):
    """None when the other end of this connection of Dask's takes an array of so many bytes by handle; else what to ask it:
    a _Question, or what is known already."""
    key = _core.session_serial_now(), address
    with _lock:
        known = _connections.setdefault(key, _Question())
        while len(_connections) > _MOST:
            _connections.popitem(last=False)
    if isinstance(known, _Question):
        found = known.look()
        if found is None:
            known.probe = sharing.make_probe() if nbytes >= sharing.FETCHED else None
            return known
        with _lock:
            known = _connections[key] = found
    return None if known is _SAME or nbytes >= sharing.FETCHED else known


def _by_value(a, question):
    host = a.get(order="A")
    order = "C" if host.flags.c_contiguous else "F"
    header = {"dtype": host.dtype.name, "shape": host.shape, "order": order, **question}
    return header, [host.ravel(order=order).view(np.uint8).data] if host.size else []


def serialize(a, context=None):
    """Dask's serializer: context says who receives it; None: it is to be kept, on a disk for example."""
    address = ((context or {}).get("recipient") or {}).get("address")
    if not address or a.nbytes <= sharing.SMALL or not sharing._reachable():
        return _by_value(a, {})
    question = _ask(address, a.nbytes)
    if question is None:
        handle = sharing._handle(a, 1, _LEASE, sharing._LINGER)
        return {"handle": sharing.handle_parts(handle)}, []
    if question is _PEER:
        return _by_value(a, {})
    return _by_value(a, {"question": question.name, "server": _core.session_info()["url"], "address": address,
                         "probe": question.probe})


# ---- the receiver ----

def _own_end(address):
    """Is that the address of a connection of this process?"""
    import psutil
    process = psutil.Process()
    host, _, port = address.rpartition("://")[2].rpartition(":")
    host = host.strip("[]")
    connections = getattr(process, "net_connections", None) or process.connections
    return any(str(c.laddr.port) == port and c.laddr.ip == host for c in connections(kind="tcp"))


def _schedules():
    scheduler = sys.modules.get("distributed.scheduler")
    return scheduler is not None and len(scheduler.Scheduler._instances) > 0


def _is_end(address):
    """Is this process the receiver of that connection, and does it pass nothing on?"""
    return not _schedules() and _own_end(address)


def _use_probe(probe, address):
    """Use a handle of another server up, if this one fetches from that: what follows may come by handle."""
    key = _core.session_serial_now(), probe[-1][0]
    if key not in _unreachable and _is_end(address) and not sharing.use_probe(probe):
        _unreachable.add(key)  # it goes on by value


def _answer(question, server, address):
    name = _NAME + question
    with _lock:
        if name in _answered:
            return
    if _core.session_info()["url"] != server or not _is_end(address):
        return
    try:
        sharing.publish_mark(name)
    except (PermissionError, _core.LimitError):
        return  # it goes on by value
    with _lock:
        _answered[name] = None
        old = _answered.popitem(last=False)[0] if len(_answered) > _ANSWERS else None
    if old:
        _withdraw(old)


def _withdraw(name):
    with contextlib.suppress(Exception):  # found and taken back by the one who asked, or the server has gone
        _core.unpublish(name)


@atexit.register
def _withdraw_all():
    while _answered:
        _withdraw(_answered.popitem()[0])


def deserialize(header, frames):
    """Dask's deserializer, of what serialize() gave."""
    if "handle" in header:
        return sharing._rebuild(*header["handle"])
    dtype = _core.as_dtype(header["dtype"])
    data = np.frombuffer(frames[0], np.uint8) if frames else np.empty(0, np.uint8)
    a = as_array(data.view(dtype).reshape(header["shape"], order=header["order"]))
    if "question" in header:
        _answer(header["question"], header["server"], header["address"])
    if header.get("probe"):
        _use_probe(header["probe"], header["address"])
    return a
