"""One connection of a group: arrays by handle where both ends use one server, or the other end's server fetches from this
one's; else by value."""
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
        self._connection, self._rank, self._one_server, self._fetched = connection, rank, False, False

    @property
    def is_at_one_server(self):
        """Whether both ends use one server."""
        return self._one_server

    def close(self):
        """End the connection, so that the other end knows."""
        self._connection.close()

    def meet(self, asking):
        """Find out whether both ends use one server: one publishes a random name, and the other looks for it. Else each
        looks whether its server fetches from the other's."""
        self._meet_server(asking)
        if not self._one_server:
            for first in (asking, not asking):
                self._meet_peer(first)

    def _meet_peer(self, asking):
        if asking:
            self._send({"probe": sharing.make_probe()})
            self._fetched = self._receive()["used"]
        else:
            probe = self._receive()["probe"]
            self._send({"used": probe is not None and sharing.use_probe(_as_parts(*probe))})

    def _meet_server(self, asking):
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
        if self._one_server or self._fetched and sum(a.nbytes for a in arrays) >= sharing.FETCHED:
            self._send({"handles": [self._share(a) for a in arrays], "facts": facts})
            return
        hosts = [a.get() for a in arrays]
        self._send({"types": [(a.dtype.name, a.shape) for a in hosts], "facts": facts})
        for a in hosts:
            if a.size:
                self._call(self._connection.send_bytes, a.reshape(-1).view(np.uint8).data)

    def _share(self, a):
        """The parts of a handle."""
        if not self._one_server:
            return sharing.handle_parts(sharing._handle(a, 1, _LEASE, sharing._LINGER))
        return None, _core.share(a, 1, _LEASE, sharing._LINGER), _core.layout(a)

    def receive(self):
        """The arrays and the facts that the other end has sent. The arrays may be read-only."""
        message = self._receive()
        if "handles" in message:
            return [sharing._rebuild(*_as_parts(*each)) for each in message["handles"]], message["facts"]
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
        except (EOFError, OSError):
            raise ConnectionError(f"rank {self._rank} of the group has ended") from None


def _as_parts(url, key, layout, readonly=False, origin=None):
    """The parts of a handle as they were before they were JSON."""
    dtype, offset, shape, strides = layout
    return url, tuple(key), (dtype, offset, tuple(shape), tuple(strides)), readonly, origin
