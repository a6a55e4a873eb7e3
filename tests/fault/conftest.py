import shutil

import pytest

import raw


@pytest.fixture(autouse=True)
def leave_none_running():
    yield
    while raw.RUNNING:
        process = raw.RUNNING.pop()
        if process.poll() is None:
            process.kill()
            process.wait()


@pytest.fixture
def start(request):
    """Start servers; those that still run at the end are stopped and must have nothing to complain about."""
    servers = []

    def make(*options, **more):
        servers.append(raw.Server(*options, **more))
        return servers[-1]

    yield make
    for server in servers:
        status = server.stop()
        expected = getattr(server, "expected_status", 0)
        shutil.rmtree(server.folder, ignore_errors=True)
        assert status == expected, "\n".join(server.lines)


@pytest.fixture
def server(start):
    return start()


@pytest.fixture
def installed(tmp_path):
    """A path at which arrayd is installed."""
    from upgrading import Installed
    return Installed(tmp_path)


@pytest.fixture
def place(tmp_path):
    """What a server needs that is reached over a network."""
    from places import Place  # its packages are needed by few tests
    return Place(tmp_path)
