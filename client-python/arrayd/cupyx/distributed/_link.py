"""One connection of a group: arrays by handle where both ends use one server, else by value."""
import secrets

import numpy as np

from ... import _core
from ..._base import as_array
from ..._interop import sharing
from ._rendezvous import receive_json, send_json

_LEASE = 600.0  # seconds in which the receiver must have attached an array
_NAME = "arrayd.group/"


class Link:
    """A connection to another process of the group. Both ends begin with meet(), one of them as the asking one."""

    def __init__(self, connection, rank):
        self._connection, self._rank, self._one_server = connection, rank, False

    def meet(self, asking):
        """Find out whether both ends use one server: one publishes a random name, and the other looks for it."""
        if asking:
            token = secrets.token_hex(16) if sharing._reachable() else None
            if token:
                sharing.publish_mark(_NAME + token)
            self._send({"token": token})
            self._one_server = self._receive()["found"]
            if token:
                _core.unpublish(_NAME + token)
        else:
            token = self._receive()["token"]
            self._one_server = token is not None and sharing.finds_mark(_NAME + token)
            self._send({"found": self._one_server})

    def send(self, arrays, **facts):
        """Send contiguous arrays, and facts of JSON's types about them. The link does not see what becomes of the
        arrays later."""
        if self._one_server:
            rows = [(_core.share(a, 1, _LEASE, sharing._LINGER), _core.layout(a)) for a in arrays]
            self._send({"handles": rows, "facts": facts})
            return
        hosts = [a.get() for a in arrays]
        self._send({"types": [(a.dtype.name, a.shape) for a in hosts], "facts": facts})
        for a in hosts:
            if a.size:
                self._call(self._connection.send_bytes, a.reshape(-1).view(np.uint8).data)

    def receive(self):
        """The arrays and the facts that the other end has sent. The arrays may be read-only."""
        message = self._receive()
        if "handles" in message:
            return [_attach(tuple(key), *layout) for key, layout in message["handles"]], message["facts"]
        return [self._receive_values(*each) for each in message["types"]], message["facts"]

    def _receive_values(self, dtype, shape):
        host = np.empty(shape, _core.as_dtype(dtype))
        if host.size:
            self._call(self._connection.recv_bytes_into, host.reshape(-1).view(np.uint8).data)
        return as_array(host)

    def _send(self, message):
        self._call(send_json, self._connection, message)

    def _receive(self):
        return self._call(receive_json, self._connection)

    def _call(self, do, *args):
        try:
            return do(*args)
        except (EOFError, BrokenPipeError, ConnectionResetError):
            raise ConnectionError(f"rank {self._rank} of the group has ended") from None


def _attach(key, dtype, offset, shape, strides):
    return _core.attach(key, dtype, offset, tuple(shape), tuple(strides))
