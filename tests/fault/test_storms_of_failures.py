"""A front of which every so manieth call fails, beside clients that come over each way, look and administer: what fails
is one client's, the others are served, and nothing is left."""
import contextlib
import http.client
import json
import ssl

import pytest

import raw
from observing import METRICS, connect_control, get, read_all
from places import works
from raw import Client, Closed, wait_until

ROUNDS = 12
# The first use that fails, behind those of a front that starts, and how many uses later the next one does: primes, so that
# each use in what a client does fails at some time.
CALLS = {"malloc": (200, 7), "calloc": (60, 5), "recv": (40, 11), "send": (20, 5), "sendmsg": (20, 7), "recvmsg": (20, 11),
         "accept": (6, 5), "socketpair": (6, 3), "dup": (6, 3)}
BROKEN = (OSError, Closed, ssl.SSLError, http.client.HTTPException, raw.Failed, json.JSONDecodeError)


def look(server, path):
    assert get(server, path)[0] in (200, 404, 500, 503)


def control(server, line):
    with connect_control(server) as s:
        s.sendall(line)
        json.loads(read_all(s))


def all_ways(server, place):
    """One function for each thing that a client may do: it raises one of BROKEN where that fails."""
    yield from (lambda way=way: works(place.client(server, way)) for way in ("tls", "tcp"))
    yield lambda: works(Client(server.path))
    yield lambda: place.client(server, token="wrong" * 6)
    yield from (lambda path=path: look(server, path) for path in ("/metrics", "/health", "/status.json", "/page.js", "/no"))
    yield from (lambda line=line: control(server, line) for line in
                (b"status\n", b"health\n", b"kill 77\n", b"nonsense\n", b"invite\n", b"dismiss nobody\n", b"reload\n"))


@pytest.mark.parametrize("call", CALLS)
def test_every_so_manieth_call_fails(start, place, call):
    first, each = CALLS[call]
    server = start(*place.options("tcp", "tls"), METRICS, env={"ARRAYD_FAULT_OS": f"arrayd:{call}:{first}:each={each}"})
    assert works(Client(server.path))  # the worker is there, whose descriptors the front has
    before = raw.descriptors(server.pid)
    good = 0
    # A worker's socket that takes nothing has ended, else; here a TLS client would wait for its answer.
    uses = [*all_ways(server, place)][call == "send":]
    for use in uses * ROUNDS:
        with contextlib.suppress(*BROKEN):
            use()
            good += 1
    assert server.said("fault injected") and good > ROUNDS
    wait_until(lambda: raw.descriptors(server.pid) <= before + 3, "all connections are gone")
