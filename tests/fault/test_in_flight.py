"""Only so much of a principal's messages may wait at the server. The server does not read more."""
import os
import subprocess
import sys
import threading

import numpy as np

import raw
from places import port_of

N, SIZE, COUNT = 256, 60000, 40
KIB = 1 << 10


def prepare(client):
    arrays = client.put(np.ones((N, N))), client.put(np.zeros((N, N))), client.new("uint8", [SIZE])
    client.sync()
    return arrays


def busy(client, arrays, done):
    """Products that take some time, and between them writes, sent without waiting and whatever the window is."""
    x, y, b = arrays
    product = raw.message("call", raw.CALL["matmul"], 12, [y], [x, x], [False])
    for i in range(COUNT):
        client.send(raw.frame(product + raw.message("write", b, 0), bytes([i]) * SIZE))
    done.append((client.get([b, raw.DTYPES.index("uint8"), 0, [SIZE]])[-1], client.get(y)[0, 0]))


def most_queued(place, server, who, sessions=3):
    """The most bytes of the principal's that have waited while some of its sessions were busy, and how often one of
    them was not read."""
    clients = [place.client(server, "tcp", who) for _ in range(sessions)]
    watcher, done, most = place.client(server, "tcp", who), [], 0
    prepared = [prepare(client) for client in clients]
    threads = [threading.Thread(target=busy, args=(client, arrays, done)) for client, arrays in zip(clients, prepared)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        most = max(most, watcher.stat("principal_queued_bytes"))
    for thread in threads:
        thread.join()
    assert done == [(COUNT - 1, N)] * sessions  # everything was executed
    assert watcher.stat("principal_queued_bytes") == 0
    put_off = sum(client.stat("put_off") for client in clients)
    for client in (*clients, watcher):
        client.close()
    return most, put_off


def test_bytes_of_all_sessions(start, place):
    place.add("bob", "bytes=256K")
    server = start(*place.options("tcp"), "--threads=1")
    most, put_off = most_queued(place, server, "bob")
    block = 64 * KIB + SIZE  # what is read at a time, and a frame that had begun
    assert most <= 256 * KIB + 3 * 2 * block, most
    assert put_off > 0
    most, put_off = most_queued(place, server, "alice")  # alice has no such grant
    assert most > 1 << 20 and put_off == 0, most


def test_operations_of_all_sessions(start, place):
    place.add("bob", "operations=20")
    server = start(*place.options("tcp"), "--threads=1")
    most, put_off = most_queued(place, server, "bob")
    assert put_off > 0 and most < 20 * SIZE + 3 * 2 * (64 * KIB + SIZE), most


def test_clients_are_told(start, place):
    place.add("bob", "operations=100 bytes=128K")
    server = start(*place.options("tcp"))
    limits = [place.client(server, "tcp", who).welcome[5] for who in ("bob", "alice")]
    assert [(each["window_ops"], each["window_bytes"]) for each in limits] == [(100, 128 << 10), (65536, 64 << 20)]


def test_the_library_works_with_the_least_there_is(start, place):
    place.add("bob", "operations=16 bytes=64K")
    server = start(*place.options("tcp"))
    code = """
import numpy as np, arrayd as ad
x, a = np.zeros(1000, np.int64), ad.zeros(1000, "int64")
for i in range(1000):
    x[i % 7::3] += i
    a[i % 7::3] += i
assert (ad.asnumpy(a) == x).all()
y = np.random.default_rng(1).random(1 << 17)
assert (ad.asnumpy(ad.asarray(y) * 2) == y * 2).all()
"""
    env = {**os.environ, "PYTHONPATH": str(raw.PACKAGE), "ARRAYD_TOKEN": place.token["bob"],
           "ARRAYD_URL": f"tcp:127.0.0.1:{port_of(server, 'tcp')}"}
    out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120)
    assert out.returncode == 0, out.stderr
