import os
import pathlib
import sys
import time

import numpy as np
import pytest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

import wire_native  # noqa: E402
from patience import PATIENCE  # noqa: E402
from wire_client import Server, view  # noqa: E402


@pytest.fixture(scope="session")
def build():
    top = pathlib.Path(__file__).resolve().parents[2]
    return pathlib.Path(os.environ.get("ARRAYD_BUILD", top / "build" / "release"))


@pytest.fixture(scope="session")
def native(build):
    if build.name in ("asan", "tsan"):
        pytest.skip("the sanitizer's runtime cannot be loaded into Python; unit tests and fuzz targets cover this")
    return wire_native.Native(build / "bin" / "libarrayd-protocol-test.so")


@pytest.fixture(scope="module")
def server(build, tmp_path_factory):
    with Server(build / "bin" / "arrayd", tmp_path_factory.mktemp("server")) as running:
        yield running


class Bystander:
    """A client that computes, and knows what should come out."""

    def __init__(self, server):
        self.client = server.client()
        self.values = np.arange(1000.0)
        self.buffer = self.client.upload(self.values)
        self.before = self.stat()

    def stat(self):
        self.client.sync()
        return self.client.stat()

    def check(self):
        self.values = self.values * 2 + 1
        whole = view(self.buffer, "float64", [1000])
        self.client.ufunc("multiply", "float64", [whole], [whole, 2])
        self.client.ufunc("add", "float64", [whole], [whole, 1])
        assert np.array_equal(self.client.read(whole), self.values)
        self.values = self.values % 1000
        self.client.ufunc("remainder", "float64", [whole], [whole, 1000])


@pytest.fixture
def bystander(server):
    """A session beside the test's: it must go on as if nothing were, in the same worker, and afterwards no memory may
    be missing."""
    b = Bystander(server)
    b.check()
    yield b
    b.check()
    after, until = b.stat(), time.monotonic() + PATIENCE
    while after["sessions"] > b.before["sessions"] and time.monotonic() < until:  # those of the test may still be going
        after = b.stat()
    b.client.socket.close()
    assert server.alive()
    assert after["worker_pid"] == b.before["worker_pid"]
    for counter, own in (("used_bytes", b.values.nbytes), ("sessions", 1), ("buffers", 1), ("buffer_bytes", b.values.nbytes)):
        # A session of the test before may have been going when the counters were read first.
        assert own <= after[counter] <= b.before[counter], counter


@pytest.fixture
def client(server, bystander):
    with server.client() as c:
        yield c
