"""Streams, events and devices, section 9 of wire.md, on a live server."""
import numpy as np
import pytest

from wire_client import (AFTER, DEVICE, DONE, ELAPSED, ERROR, EVENT, EVENT_DROP, ON, POOL, STREAM, STREAM_DROP, WAIT, Failed,
                         fresh, view)


def refused(client, code):
    with pytest.raises(Failed) as failed:
        client.sync()
    assert failed.value.code == ERROR[code], failed.value
    client.sync()


def ask(client, *message):
    return client.answer(client.ask(*message))[0]


def test_order_on_whatever_streams(client):
    """Operations take effect in the order of the connection, however they are spread."""
    rng = np.random.default_rng(7)
    host = [rng.random(3000) for _ in range(4)]
    device = [client.upload(h) for h in host]
    client.send([STREAM, 64, 0, 0], [STREAM, 70, 0, 1], [STREAM, 2**40, 0, 0])
    for _ in range(300):
        client.send([ON, int(rng.choice([0, 64, 70, 2**40]))])
        i, j, k = map(int, rng.integers(0, 4, 3))
        x, y = view(device[j], "float64", [3000]), view(device[k], "float64", [3000])
        if rng.random() < 0.5:
            client.ufunc("hypot", "float64", [view(device[i], "float64", [3000])], [x, y])
            host[i] = np.hypot(host[j], host[k])
        else:
            device[i], before = client.id(), device[i]
            client.ufunc("subtract", "float64", [fresh(device[i], "float64", [3000])], [x, y])
            client.free(before)
            host[i] = host[j] - host[k]
    for d, h in zip(device, host):
        np.testing.assert_allclose(client.read(view(d, "float64", [3000])), h, rtol=1e-12)


def test_a_dropped_stream(client):
    client.send([STREAM, 64, 0, 0], [ON, 64])
    x = client.upload(np.ones(10))
    client.send([STREAM_DROP, 64])  # it was the current one: what follows is on stream 0
    assert client.read(view(x, "float64", [10])).sum() == 10
    client.send([ON, 64])
    refused(client, "STALE")
    client.send([STREAM_DROP, 0])
    refused(client, "STALE")


def test_streams_that_cannot_be(client):
    devices = client.limits["devices"]
    client.send([STREAM, 63, 0, 0])
    refused(client, "VALUE")
    client.send([STREAM, 64, devices, 0])
    refused(client, "VALUE")
    client.send([STREAM, 64, 0, 0], [STREAM, 64, 0, 0])
    refused(client, "VALUE")
    client.send([ON, devices])
    refused(client, "VALUE")
    client.send([ON, 2**64 - 1])
    refused(client, "STALE")
    client.send(*[[STREAM, 100 + i, 0, 0] for i in range(200)])
    refused(client, "LIMIT")
    client.send(*[[STREAM_DROP, 100 + i] for i in range(20)])
    client.sync()


def test_streams_come_and_go(client):
    for i in range(500):
        client.send([STREAM, 64 + i, 0, i % 2], [ON, 64 + i])
        client.new("float64", [100])
        client.send([STREAM_DROP, 64 + i])
    client.sync()


def test_events(client):
    client.send([STREAM, 64, 0, 0], [EVENT, 1, 0, 1])
    x = client.upload(np.ones(1000))
    client.send([ON, 64])
    client.ufunc("add", "float64", [view(x, "float64", [1000])], [view(x, "float64", [1000]), 1.0])
    client.send([EVENT, 2, 64, 1], [EVENT, 3, 64, 0], [AFTER, 0, 2])
    assert ask(client, WAIT, 1, 2) == []
    assert ask(client, DONE, 1, 2) == [True]
    assert ask(client, WAIT, 0, 64) == [] and ask(client, DONE, 0, 64) == [True] and ask(client, DONE, 0, 0) == [True]
    (first,) = ask(client, ELAPSED, 1, 2)
    assert isinstance(first, float) and 0 <= first < 30_000
    client.send([EVENT, 2, 64, 1])
    assert ask(client, ELAPSED, 1, 2)[0] >= first
    with pytest.raises(Failed, match="timing"):
        ask(client, ELAPSED, 1, 3)
    client.send([EVENT_DROP, 2])
    for message in ((WAIT, 1, 2), (DONE, 1, 2), (ELAPSED, 1, 2), (WAIT, 0, 999), (DONE, 0, 999)):
        with pytest.raises(Failed) as failed:
            ask(client, *message)
        assert failed.value.code == ERROR["STALE"]
    with pytest.raises(Failed):
        ask(client, WAIT, 2, 1)
    for message in ([EVENT_DROP, 2], [AFTER, 0, 2], [AFTER, 999, 1], [EVENT, 9, 999, 0]):
        client.send(message)
        refused(client, "STALE")


def test_a_wait_reports_what_went_wrong(client):
    client.free(999)
    with pytest.raises(Failed) as failed:
        ask(client, WAIT, 0, 0)
    assert failed.value.code == ERROR["STALE"] and failed.value.name == "free"
    assert ask(client, WAIT, 0, 0) == []


def test_devices(client):
    memory, free, major, minor, processors, peers, *versions = ask(client, DEVICE, 0)
    assert memory == client.limits["memory"] and 0 <= free <= memory and 0 <= peers < 2**63
    assert (major >= 8 and processors > 1) if client.limits["backend"] == "cuda" else (major, minor) == (0, 0)
    assert all(v >= 12000 for v in versions) if major else versions == [0, 0]
    for number in (client.limits["devices"], 64, 2**64 - 1):
        for message in ((DEVICE, number), (POOL, number, 0, 0)):
            with pytest.raises(Failed, match="does not exist") as failed:
                ask(client, *message)
            assert failed.value.code == ERROR["VALUE"]


def test_pool(client):
    used, total, blocks, limit = ask(client, POOL, 0, 0, 0)
    assert used == limit == 0
    x = client.new("float64", [1 << 17])
    used, total, _, _ = ask(client, POOL, 0, 0, 0)
    assert used == 1 << 20 <= total
    client.free(x)
    used, total, blocks, _ = ask(client, POOL, 0, 0, 0)
    assert used == 0 and blocks >= 1
    assert ask(client, POOL, 0, 1, 0)[1] <= total
    assert ask(client, POOL, 0, 2, 1 << 20)[3] == 1 << 20
    y = client.new("float64", [1 << 18])
    with pytest.raises(Failed) as failed:
        client.read(view(y, "float64", [1]))
    assert failed.value.code == ERROR["MEMORY"]
    assert ask(client, POOL, 0, 2, 0)[3] == 0
    with pytest.raises(Failed):
        ask(client, POOL, 0, 3, 0)
