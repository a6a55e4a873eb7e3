"""A device that cannot be used any more takes the arrays that lie there. A session's other arrays go on."""
import os

import numpy as np
import pytest

from raw import DTYPES, Failed, wait_until
from returning import Session
from test_blame import Deaths
from test_recovery import LATE, kill

LOST, OTHER, STREAM = 2, 1, 64


@pytest.fixture
def folder(tmp_path):
    return Deaths(tmp_path)


@pytest.fixture(params=["at once", "late"])
def server(request, start, crashing, folder):
    late = LATE if request.param == "late" else {}
    server = start(f"--backend-path={crashing}", "--cpu-devices=3", env={"AD_TEST_CRASHES": str(folder.folder), **late})
    return server


def lose_device(server, folder, times=1):
    folder.tell("lost", LOST)
    for _ in range(times):
        kill(server)


def put_on(session, device, value):
    session.op("on", device)
    return session.put(value)


def is_refused(session, message, *request):
    with pytest.raises(Failed, match=message) as failed:
        session.reply(session.ask(*request))
    return failed.value


@pytest.mark.parametrize("times", [1, 2])
def test_arrays_on_other_devices_go_on(server, folder, times):
    """The second kill finds a session that has already lost its device."""
    session, values = Session(server.path), [np.arange(1000.0) + i for i in range(3)]
    arrays = [put_on(session, device, value) for device, value in enumerate(values)]
    empty = put_on(session, LOST, np.zeros(0))
    session.sync()
    lose_device(server, folder, times)
    session.come_back()
    is_refused(session, "device 2 is lost, and this array lay there: .*fallen off the bus", "read", arrays[LOST])
    for device in (0, OTHER):
        session.op("on", device)
        total = session.ufunc("add", "float64", [1000], arrays[device], arrays[device])
        assert np.array_equal(session.get(total), 2 * values[device])
    assert session.get(empty).size == 0
    spoilt = session.ufunc("add", "float64", [1000], arrays[OTHER], arrays[LOST])
    is_refused(session, "device 2 is lost", "read", spoilt)
    session.free(*arrays, empty, spoilt)
    session.sync()


def test_the_chosen_stream_refuses_operations(server, folder):
    """Operations meant for a lost device run on no other one, until the client chooses it."""
    session = Session(server.path)
    value = np.arange(10.0)
    here = put_on(session, OTHER, value)
    session.op("stream", STREAM, LOST, 0)
    session.op("event", 1, STREAM, 0)
    session.op("on", STREAM)
    session.put(value)
    session.sync()
    lose_device(server, folder)
    session.come_back()
    nothing = session.ufunc("add", "float64", [10], here, here)
    is_refused(session, "device 2 is lost, and its stream with it: choose another device", "read", nothing)
    session.op("on", LOST)
    with pytest.raises(Failed, match="device 2 cannot be used: it has fallen off the bus"):
        session.sync()
    session.op("on", OTHER)
    session.op("after", OTHER, 1)  # the event was reached, as nothing is under way on its device
    session.op("event_drop", 1)
    session.op("stream_drop", STREAM)
    assert np.array_equal(session.get(session.ufunc("add", "float64", [10], here, here)), 2 * value)
    session.sync()


def test_it_is_used_again_when_it_is_back(server, folder):
    """Each new worker tries. Arrays that were lost stay lost."""
    session = Session(server.path)
    lost = put_on(session, LOST, np.arange(5.0))
    session.op("stream", STREAM, LOST, 0)
    session.sync()
    lose_device(server, folder)
    session.come_back()
    session.reply(session.ask("wait", 0, 0))
    os.unlink(folder.folder / "lost")
    kill(server)
    session.come_back()
    is_refused(session, "device 2 is lost", "read", lost)
    session.op("on", STREAM)
    assert np.array_equal(session.get(session.put(np.arange(7.0))), np.arange(7.0))


def test_who_asks_for_it_ends_no_worker(server, folder):
    """A device that does not open while the worker runs is refused to everybody, and this worker does not try again."""
    folder.tell("lost", LOST)
    bystander, value = Session(server.path), np.arange(9.0)
    array = bystander.put(value)
    for _ in range(3):
        session = Session(server.path)
        session.op("on", LOST)
        with pytest.raises(Failed, match="device 2 cannot be used: it has fallen off the bus"):
            session.sync()
        (folder.folder / "lost").unlink(missing_ok=True)
    assert np.array_equal(bystander.get(array), value)
    wait_until(lambda: any("a device cannot be used" in line for line in server.lines), "it is in the log")


def test_published_arrays(server, folder):
    """A name whose array lay on a lost device is gone, and the log says so. Another name stays."""
    session = Session(server.path)
    for device, name in ((LOST, "far"), (OTHER, "near")):
        session.reply(session.ask("publish", put_on(session, device, np.arange(4.0)), 0, name, ""))
    lose_device(server, folder)
    other = Session(server.path)
    near = other.fresh()
    other.reply(other.ask("attach_name", near, "", "near"))
    assert np.array_equal(other.get([near, DTYPES.index("float64"), 0, [4]]), np.arange(4.0))
    is_refused(other, "has published nothing as \"far\" for ", "attach_name", other.fresh(), "", "far")
    wait_until(lambda: any("shared array lost" in line and "far" in line for line in server.lines), "the log")
