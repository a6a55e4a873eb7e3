"""Starts a server for the whole run, before arrayd is imported: ARRAYD_TEST_BACKEND says of which backend (cpu).

With ARRAYD_URL set the tests use that server instead. The package comes from PYTHONPATH if that is set, else from the
build (ARRAYD_BUILD, build/release).
"""
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("ARRAYD_BUILD", TOP / "build/release"))
if "PYTHONPATH" not in os.environ:
    sys.path.insert(1, str(BUILD / "python"))
sys.path += [str(pathlib.Path(__file__).parent), str(TOP / "tests")]
from patience import PATIENCE  # noqa: E402


def start_server(folder, *options, prefix=(), **variables):
    """A server on a socket in folder, once it says that it listens: its process and its url. prefix: of its command;
    variables: of its environment."""
    path = os.path.join(folder, "arrayd.sock")
    backend = os.environ.get("ARRAYD_TEST_BACKEND", "cpu")
    command = [*prefix, str(BUILD / "bin/arrayd"), "--socket", path, "--backend", backend, *options]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready, open(os.path.join(folder, "log"), "w+") as log:
        ready.bind(os.path.join(folder, "ready"))
        ready.settimeout(PATIENCE)
        environment = {**os.environ, **variables, "NOTIFY_SOCKET": ready.getsockname()}
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        try:
            while b"READY=1" not in ready.recv(1000):
                pass
        except TimeoutError:
            process.kill()
            log.seek(0)
            raise RuntimeError(f"the server did not start: {log.read()}") from None
    os.unlink(os.path.join(folder, "ready"))
    return process, "unix:" + path


def port_of(folder, way="tcp"):
    """Return the port at which the server that was started in the folder listens, as it says."""
    ready = next(line for line in pathlib.Path(folder, "log").read_text().splitlines() if "event=ready" in line)
    return int(re.search(rf"\b{way}:127\.0\.0\.1:(\d+)", ready)[1])


def pytest_configure(config):
    config.arrayd_server = getattr(config, "arrayd_server", None)  # tests/api may have started one for both
    if "ARRAYD_URL" in os.environ or getattr(config.option, "numprocesses", None):  # each of so many processes has its own
        return
    folder = tempfile.mkdtemp(prefix="arrayd-ops-")
    try:
        process, url = start_server(folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    os.environ["ARRAYD_URL"] = url
    config.arrayd_server = (process, folder)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """Show with a failed test what the server has logged last: whether it has lost a worker, and why."""
    report = yield
    if report.failed and getattr(item.config, "arrayd_server", None):
        log = pathlib.Path(item.config.arrayd_server[1], "log").read_text(errors="replace")
        report.sections.append(("The server's log", "\n".join(log.splitlines()[-20:])))
    return report


def pytest_unconfigure(config):
    if getattr(config, "arrayd_server", None):
        process, folder = config.arrayd_server
        config.arrayd_server = None
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=PATIENCE)
        finally:
            process.kill()
            shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def own_server(tmp_path):
    """A function that starts one more server; all are stopped at the end of the test."""
    started = []

    def start(*options):
        process, url = start_server(str(tmp_path), *options)
        started.append(process)
        return process, url

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def servers():
    """Urls: of a server that fuses, and of one that does not."""
    import arrayd as ad
    before, processes, urls = os.environ["ARRAYD_URL"], [], []
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        for folder, fuse in ((one, "1"), (other, "0")):
            os.environ["ARRAYD_FUSE"] = fuse
            process, url = start_server(folder)
            processes.append(process)
            urls.append(url)
        del os.environ["ARRAYD_FUSE"]
        yield urls
        ad.connect(before)
        for process in processes:
            process.kill()
            process.wait()
