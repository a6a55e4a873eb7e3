"""Arrays between Dask's processes: by handle where both use one server, else and on disk by value.

A sender does not know which server a receiver uses, nor does Dask. So the first array that goes over a connection goes
by value with a question, a random name. A receiver with the same server, which that connection itself belongs to,
publishes a byte under that name. When the sender finds it there, what follows goes by handle. Nothing else proves that
both use one server: hosts, addresses and urls do not, where there are containers. Schedulers do not answer: what goes
over their connections they may pass on to anybody.
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
_connections = collections.OrderedDict()  # (session, address of the other end) -> the question, or True
_answered = collections.OrderedDict()     # names that this process has published


# ---- the sender ----

def _question(address):
    """None when the other end of this connection of Dask's uses this server; else what to ask it."""
    key = _core.session_serial_now(), address
    with _lock:
        known = _connections.setdefault(key, secrets.token_hex(16))
        while len(_connections) > _MOST:
            _connections.popitem(last=False)
    if known is True:
        return None
    if not sharing.finds_mark(_NAME + known):
        return known
    with contextlib.suppress(KeyError):
        _core.unpublish(_NAME + known)
    with _lock:
        _connections[key] = True
    return None


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
    question = _question(address)
    if question is None:
        handle = sharing._handle(a, 1, _LEASE, sharing._LINGER)
        return {"handle": (handle.url, handle.key, handle.layout)}, []
    return _by_value(a, {"question": question, "server": _core.session_info()["url"], "address": address})


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


def _answer(question, server, address):
    name = _NAME + question
    with _lock:
        if name in _answered:
            return
    if _core.session_info()["url"] != server or _schedules() or not _own_end(address):
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
    return a
