"""A server and its clients in containers that share a folder and nothing else: what the images promise."""
import os

import numpy as np
import pytest

import containers
import raw
from containers import SHARED, Container, Service

N = 1_000_000
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may become several users")


@pytest.fixture(scope="module", autouse=True)
def permitted():
    reason = containers.refusal()
    if reason:
        pytest.skip(f"no namespaces: {reason}")
    if raw.BUILD.name != "release":
        pytest.skip("a sanitizer's extension cannot be loaded by Python")


@pytest.fixture(scope="module")
def roots(tmp_path_factory, permitted):
    return (containers.server_root(tmp_path_factory.mktemp("server")),
            containers.client_root(tmp_path_factory.mktemp("client")))


@pytest.fixture
def shared(tmp_path):
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o755)
    return folder


@pytest.fixture
def begin(roots, shared):
    """A function that starts services beside a server."""
    running = []

    def start(uid=None, user_namespace=False):
        running.append(Service(roots[1], shared, uid=uid, user_namespace=user_namespace))
        return running[-1]

    yield start
    for each in running:
        each.end()


@pytest.fixture
def serve(roots, shared):
    """A function that starts the server, and waits until it listens."""
    running = []

    def start(arguments=(), **more):
        arguments = [*arguments, f"--socket={SHARED}/s", "--socket-mode=0666", "--backend=cpu", "--kernels=none", "--kernels-cache=none"]
        running.append(Container(roots[0], shared, arguments, **more))
        line = running[-1].process.stderr.readline()
        while line and "event=ready" not in line:
            line = running[-1].process.stderr.readline()
        assert line, "the server ended"
        return running[-1]

    yield start
    for each in running:
        each.end()


@pytest.fixture
def server(serve):
    return serve()


def test_clients_have_neither_cuda_nor_server(server, begin):
    service = begin()
    files = service.ask("[os.path.join(d, f) for top in ('/site', '/usr', '/lib', '/lib64', '/root') "
                        "for d, _, fs in os.walk(top) for f in fs]")
    assert len(files) > 100
    words = ("libcuda", "libcublas", "nvidia", "libnvrtc", "arrayd-worker", "libarrayd-")
    assert not [f for f in files if any(word in f for word in words)]
    assert service.ask("float((ad.arange(10.0) * 2).sum())") == 90
    assert service.ask("ad.session_info()['server']").startswith("arrayd ")
    assert service.ask("[line for line in open('/proc/self/maps') if 'cuda' in line]") == []
    with pytest.raises(RuntimeError, match="Read-only"):  # a read-only folder does not keep a client from connecting
        service.ask(f"os.unlink('{SHARED}/s')")


def test_namespaces_are_apart(server, begin):
    services = [begin(), begin()]
    for service in services:
        assert service.ask("os.getpid()") == 1
        assert service.ask("[line.split(':')[0].strip() for line in open('/proc/net/dev') if ':' in line]") == ["lo"]
        assert service.ask("[line for line in open('/proc/mounts') if 'shm' in line]") == []
    spaces = [each.namespaces() for each in (server, *services)]
    outside = {name: os.readlink(f"/proc/self/ns/{name}") for name in containers.NAMESPACES}
    for name in containers.NAMESPACES:
        assert len({each[name] for each in (outside, *spaces)}) == 4


def test_windows_work_between_containers(server, begin):
    """Large arrays go by memory that client and server share, though they share no /dev/shm."""
    service = begin()
    before = service.ask("ad.stat()['bytes_in'], ad.stat()['bytes_out']")
    service.ask(f"h = np.random.default_rng(1).random({N}); a = ad.asarray(h); back = (a * 2).get()")
    after = service.ask("ad.stat()['bytes_in'], ad.stat()['bytes_out']")
    assert service.ask("bool((back == h * 2).all())")
    assert service.ask("type(back.base).__name__, [b for b in [back.base] if isinstance(b, _core.HostMemory)] != []")[1]
    assert sum(after) - sum(before) < N  # of 16 N bytes


def test_handles_and_names_work_between_containers(server, begin):
    maker, taker = begin(1001), begin(1001)
    handle = maker.ask(f"a = ad.arange({N}.0); h = ad.share(a)") or maker.ask("pickle.dumps(h)")
    assert len(handle) < 1000
    assert taker.ask(f"b = pickle.loads({handle!r}).attach()") or taker.ask("float(b.sum())") == float(np.arange(N, dtype=float).sum())
    assert taker.ask("ad.stat()['shared_bytes']") >= 8 * N  # one buffer
    taker.ask("b += 1")
    assert maker.ask("float(a[0])") == 0
    maker.ask("ad.publish('counts', ad.zeros(10), writable=True)")
    taker.ask("c = ad.attach('counts'); c += 5; ad.sync()")
    assert maker.ask("float(ad.attach('counts').sum())") == 50


def test_a_killed_container_leaves_nothing(server, begin):
    stays, goes = begin(1001), begin(1001)
    stays.ask("ad.sync()")
    before = stays.ask("ad.stat()['used_bytes']")
    handle = goes.ask(f"a = ad.arange({N}.0); a.get()") or goes.ask("pickle.dumps(ad.share(a, linger=0))")
    stays.ask(f"b = pickle.loads({handle!r}).attach()")
    goes.end()
    raw.wait_until(lambda: stays.ask("ad.stat()['sessions']") == 1, "the session has ended")
    assert stays.ask("float(b[-1])") == N - 1
    stays.ask("del b")
    raw.wait_until(lambda: stays.ask("ad.stat()['used_bytes']") <= before, "the memory is back")


@needs_root
def test_users_keep_their_numbers(server, begin):
    """Without user namespaces a container's users are the host's, and the server sees whose array it is."""
    maker, other, third = begin(1001), begin(1002), begin(1003)
    maker.ask("ad.publish('x', ad.arange(10), grant=1002)")
    assert other.ask("[row.principal for row in ad.names()]") == ["uid:1001"]
    assert other.ask("int(ad.attach('x', principal='uid:1001').sum())") == 45
    assert third.ask("ad.names()") == []
    with pytest.raises(RuntimeError, match="KeyError"):
        third.ask("ad.attach('x', principal='uid:1001')")


@needs_root
def test_user_namespace_of_a_client(server, begin):
    """The root of a client's user namespace is to the server the user outside who made it."""
    inside = begin(user_namespace=True)
    assert inside.ask("os.getuid()") == 0
    inside.ask("ad.publish('mine', ad.zeros(1))")
    assert inside.ask("[row.principal for row in ad.names()]") == [f"uid:{os.getuid()}"]


@needs_root
@pytest.mark.parametrize("line", ["uid:1001 sessions=5", "uid:65534 sessions=5"])
def test_user_namespace_of_the_server(serve, begin, shared, line):
    """Users that the server's user namespace does not know are one to it, uid:65534: they come in if a line says so."""
    (shared / "principals").write_text(line + "\n")
    server = serve(arguments=[f"--principals={SHARED}/principals"], user_namespace=True)
    assert open(f"/proc/{server.inside}/uid_map").read().split() == ["0", "0", "1"]
    known, one, other = begin(), begin(1001), begin(1002)
    known.ask("ad.publish('a', ad.zeros(1))")
    assert known.ask("[row.principal for row in ad.names()]") == ["uid:0"]
    if "65534" not in line:
        with pytest.raises(RuntimeError, match="PermissionError: .*no number for you"):
            one.ask("ad.zeros(1)")
        return
    one.ask("ad.publish('b', ad.zeros(1))")
    assert other.ask("[(row.name, row.principal) for row in ad.names()]") == [("b", "uid:65534")]


@needs_root
def test_nobody_is_somebody_outside_of_user_namespaces(server, begin):
    nobody = begin(65534)
    nobody.ask("ad.publish('x', ad.zeros(1))")
    assert nobody.ask("[row.principal for row in ad.names()]") == ["uid:65534"]
