"""Handles of a server's arrays at another server, which fetches them."""
import os
import pickle

import numpy as np
import pytest

import arrayd as ad
from arrayd._interop import dask_transfer, sharing
from conftest import end_servers, start_server

LARGE = sharing.FETCHED // 8  # elements of float64


@pytest.fixture
def two(tmp_path):
    """Urls of a server that gives and of one that fetches from it. A third one knows nothing of them."""
    before, processes, urls = os.environ.get("ARRAYD_URL"), [], []
    (tmp_path / "peers").touch(0o600)
    (tmp_path / "peers").write_text(f"giver unix:{tmp_path}/giver/arrayd.sock\n")
    for name, *options in (("giver", "--server-name=giver"), ("taker", "--server-name=taker", f"--peers={tmp_path}/peers"), ("other",)):
        (tmp_path / name).mkdir()
        process, url = start_server(str(tmp_path / name), *options)
        processes.append(process)
        urls.append(url)
    yield urls
    ad.connect(before)
    end_servers(*processes)


def carry(two, *arrays, wrap=ad.share):
    """Handles of arrays that the first server has, as the program of the second one gets them."""
    ad.connect(two[0])
    message = pickle.dumps([wrap(ad.asarray(a)) for a in arrays])
    ad.sync()
    ad.connect(two[1])
    return pickle.loads(message)


VALUES = np.random.default_rng(3).random((200, 300))


@pytest.mark.parametrize("values", [VALUES, VALUES.T, VALUES[::3, 5:90], VALUES[10:190], VALUES.astype("float16"), VALUES > 0.5,
                                    VALUES + 1j, np.zeros((0, 3)), np.float64(3)], ids=lambda a: f"{a.dtype}{list(np.shape(a))}")
def test_an_array_is_as_it_was(two, values):
    handle, = carry(two, values)
    a = handle.attach()
    assert a.dtype == values.dtype and np.array_equal(a.get(), values)
    assert ad.session_info()["name"] == "taker" and handle.origin == ("giver", f"uid:{os.getuid()}")
    a += a.dtype.type(1)
    assert np.array_equal(handle.attach().get(), values)


def test_views_of_the_server_keep_their_layout(two):
    ad.connect(two[0])
    a = ad.asarray(VALUES)
    handles = [ad.share(each) for each in (a.T, a[:, ::-1], a[::2], a[20:, 1:])]
    ad.connect(two[1])
    for handle, expected in zip(handles, (VALUES.T, VALUES[:, ::-1], VALUES[::2], VALUES[20:, 1:]), strict=True):
        assert np.array_equal(handle.attach().get(), expected)


def test_structures(two):
    values = np.zeros(5, [("x", "f4"), ("n", "i8", 2)])
    values["x"] = range(5)
    handle, = carry(two, values)
    a = handle.attach()
    assert a.dtype == values.dtype and a["x"].get().tolist() == [0, 1, 2, 3, 4]


def test_messages_by_handle(two):
    ad.connect(two[0])
    with ad.handles(uses=1) as made:
        message = pickle.dumps({"a": ad.asarray(VALUES)})
    assert len(made) == 1 and len(message) < 600
    ad.connect(two[1])
    assert np.array_equal(pickle.loads(message)["a"].get(), VALUES)
    with pytest.raises(ad.StaleHandleError, match="pull from giver: .*no such capability"):
        pickle.loads(message)


def test_what_is_only_read_stays_so(two):
    ad.connect(two[0])
    a = ad.asarray(VALUES)
    a.flags.writeable = False
    with ad.handles():
        message = pickle.dumps(a)
    ad.connect(two[1])
    b = pickle.loads(message)
    assert not b.flags.writeable and np.array_equal(b.get(), VALUES)


def test_a_failed_array_raises_its_error(two):
    ad.connect(two[0])
    handle = ad.share(ad.asarray([1, 2, 3]).take(ad.asarray([7])) + ad.zeros(100_000))
    ad.connect(two[1])
    with pytest.raises(IndexError, match="pull from giver"):
        handle.attach()


def test_a_server_that_does_not_fetch(two):
    handle, = carry(two, VALUES)
    ad.connect(two[2])
    with pytest.raises(KeyError, match="pull from giver: it is no peer of this server .*option peers"):
        handle.attach()
    unnamed = ad.share(ad.asarray(VALUES))
    assert unnamed.origin is None
    ad.connect(two[1])
    with pytest.raises(ad.StaleHandleError) as failed:
        unnamed.attach()
    assert "The array is of the server" in failed.value.__notes__[0]


def test_a_program_without_a_connection_takes_its_own_server(two, monkeypatch):
    """The url of the handle is a path of its maker's host."""
    handle, = carry(two, VALUES)
    monkeypatch.setattr(ad._core, "session_serial_now", lambda: 0)
    monkeypatch.setenv("ARRAYD_URL", two[1])
    assert np.array_equal(handle.attach().get(), VALUES)
    assert ad.session_info()["name"] == "taker"


# ---- Dask's messages ----

def dump(a):
    header, frames = dask_transfer.serialize(a, {"recipient": {"address": "tcp://192.0.2.2:7"}})
    return pickle.dumps((header, [bytes(frame) for frame in frames]))


def test_probes(two):
    """A probe is used up by a server that fetches, and by looking."""
    ad.connect(two[0])
    kept = ad.zeros(3)  # probes last as long as the session, which this keeps
    unused, used = sharing.make_probe(), sharing.make_probe()
    assert not sharing.is_used_up(unused) and sharing.is_used_up(unused)
    ad.connect(two[1])
    assert sharing.use_probe(used)
    assert not sharing.use_probe(used)
    ad.connect(two[2])
    assert not sharing.use_probe(used) and sharing.make_probe() is None
    del kept


def test_a_question_that_a_peer_answers(two, monkeypatch):
    """A connection takes handles of large arrays once its probe has been used up."""
    monkeypatch.setattr(dask_transfer, "_connections", type(dask_transfer._connections)())
    monkeypatch.setattr(dask_transfer, "_own_end", lambda address: True)
    ad.connect(two[0])
    used = set()
    monkeypatch.setattr(sharing, "is_used_up", lambda parts: parts[1] in used)
    a, small = ad.arange(float(LARGE)), ad.arange(10_000.0)
    header, _ = pickle.loads(dump(small))
    assert header["probe"] is None
    header, frames = pickle.loads(dump(a))
    assert header["probe"] and frames
    used.add(header["probe"][1])
    header, frames = pickle.loads(dump(a))
    assert header.keys() == {"handle"} and not frames
    header, frames = pickle.loads(dump(small))
    assert frames and "question" not in header


def test_a_receiver_uses_a_probe_once_if_it_fails(two, monkeypatch):
    monkeypatch.setattr(dask_transfer, "_own_end", lambda address: True)
    monkeypatch.setattr(dask_transfer, "_unreachable", set())
    ad.connect(two[0])
    probe = sharing.make_probe()
    ad.connect(two[2])
    tried = []
    monkeypatch.setattr(sharing, "use_probe", lambda parts, use=sharing.use_probe: tried.append(parts) or use(parts))
    for _ in range(2):
        dask_transfer._use_probe(probe, "tcp://192.0.2.2:7")
    assert len(tried) == 1
    monkeypatch.setattr(dask_transfer, "_unreachable", set())
    monkeypatch.setattr(dask_transfer, "_own_end", lambda address: False)
    dask_transfer._use_probe(probe, "tcp://192.0.2.2:7")
    assert len(tried) == 1
