"""How the processes of a group find each other: a connection from each to each.

    rank 0            rank 1            rank 2
      │◀── "I am 1, at A" ┤                 │
      │◀────────────── "I am 2, at B" ──────┤
      ├── {1: A, 2: B} ──▶│                 │
      ├── {1: A, 2: B} ────────────────────▶│
      │                   │◀── "I am 2" ────┤
"""
import json
import os
import socket
import time
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Listener

_PATIENCE = 60.0  # seconds in which rank 0 must begin to listen
_PAUSE = 0.05     # seconds between two attempts to reach the rendezvous


def find_key():
    """The key of the environment that all processes of a group must have; None: there is none."""
    return os.environ.get("ARRAYD_GROUP_KEY", "").encode() or None


def send_json(connection, message):
    """Send a message of JSON's types."""
    connection.send_bytes(json.dumps(message).encode())


def receive_json(connection):
    """The next message. EOFError when the other end has closed; ValueError for what is no JSON."""
    return json.loads(connection.recv_bytes())


def join_by_tcp(size, rank, host, port):
    """Join a group where rank 0 listens. The connections by rank."""
    return _gather_members(size, host, port) if rank == 0 else _join_members(size, rank, host, port)


def join_by_mpi(size, rank):
    """Join a group whose processes MPI has started. The connections by rank."""
    from mpi4py import MPI
    with _listen(socket.gethostname(), 0) as listener:
        addresses = dict(MPI.COMM_WORLD.allgather((rank, listener.address)))
        if sorted(addresses) != list(range(size)):
            raise ValueError(f"the ranks of a group of {size} are 0 to {size - 1}, not {sorted(addresses)}")
        return _connect_pairs(rank, size, addresses, listener, {})


def _listen(host, port):
    return Listener((host, port), backlog=128, authkey=find_key())


def _accept_members(listener, count, check):
    """Wait for connections until check(message), which gives a rank, has taken so many. The connections by rank.

    A stranger's greeting, or a rank that check refuses by ValueError, ends that connection alone.
    """
    found = {}
    while len(found) < count:
        try:
            connection = listener.accept()
        except (AuthenticationError, EOFError, ConnectionError):
            continue
        try:
            found[check(receive_json(connection), found)] = connection
        except (ValueError, TypeError, KeyError) as error:
            send_json(connection, {"error": str(error)})
            connection.close()
        except (EOFError, OSError):
            connection.close()
    return found


def _gather_members(size, host, port):
    addresses = {}

    def check(message, found):
        theirs = message["rank"]
        if message["size"] != size:
            raise ValueError(f"n_devices is {message['size']} here, and {size} at rank 0")
        if not isinstance(theirs, int) or not 0 < theirs < size or theirs in found:
            raise ValueError(f"rank {theirs} is taken already: each process of a group has its own")
        addresses[theirs] = message["address"]
        return theirs

    with _listen(host, port) as listener:
        found = _accept_members(listener, size - 1, check)
    for connection in found.values():
        send_json(connection, {"addresses": sorted(addresses.items())})
    return found


def _join_members(size, rank, host, port):
    first = _connect_patiently(host, port)
    with _listen(_own_address(first), 0) as listener:
        send_json(first, {"rank": rank, "size": size, "address": listener.address})
        answer = receive_json(first)
        if "error" in answer:
            raise ValueError(answer["error"])
        addresses = {theirs: tuple(address) for theirs, address in answer["addresses"]}
        return _connect_pairs(rank, size, addresses, listener, {0: first})


def _connect_pairs(rank, size, addresses, listener, links):
    """Connect to the ranks below this one that have no link yet, and wait for those above."""
    for theirs in range(rank):
        if theirs not in links:
            links[theirs] = Client(addresses[theirs], authkey=find_key())
            send_json(links[theirs], {"rank": rank})

    def check(message, found):
        theirs = message["rank"]
        if not isinstance(theirs, int) or not rank < theirs < size or theirs in found:
            raise ValueError(f"rank {theirs} is not expected here")
        return theirs

    links.update(_accept_members(listener, size - 1 - rank, check))
    return links


def _connect_patiently(host, port):
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            return Client((host, port), authkey=find_key())
        except (ConnectionRefusedError, ConnectionResetError):
            if time.monotonic() > end:
                raise TimeoutError(f"rank 0 of the group does not listen at {host}:{port}; start it there, or give "
                                   "another host and port") from None
            time.sleep(_PAUSE)


def _own_address(connection):
    """The address of this host by which the other end of a connection reaches it."""
    with socket.socket(fileno=os.dup(connection.fileno())) as s:
        return s.getsockname()[0]
