"""Arrays between processes: pickles, pools, names, forks, with the real multiprocessing, joblib and gunicorn."""
import concurrent.futures
import gc
import http.client
import multiprocessing
import os
import pickle
import signal
import socket
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import arrayd as ad
import sharing_work as work
from arrayd._interop import sharing
from patience import PATIENCE

X = np.arange(60_000.0).reshape(200, 300)  # above what goes by value
SHARED = ("shared_buffers", "capabilities", "published", "orphans")


def counters():
    return {name: value for name, value in ad.stat().items() if name in SHARED}


@pytest.fixture(autouse=True)
def nothing_left():
    """Check that nothing is shared, once the others have gone and this process's arrays are collected."""
    before = ad.stat()["sessions"]  # other tests of this process may have left theirs
    yield
    gc.collect()
    end = time.monotonic() + PATIENCE
    while any(counters().values()) or ad.stat()["sessions"] > before:
        assert time.monotonic() < end, (counters(), ad.stat()["sessions"])


def in_child(function):
    """Return what a forked child's call returns, or the text of its exception."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            try:
                result = function()
            except BaseException as error:
                result = f"{type(error).__name__}: {error}"
            os.write(write, repr(result).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        data = pipe.read()
    assert os.waitpid(pid, 0)[1] == 0
    return eval(data, {"np": np})


def run(code, **environment):
    """Python code in a process of its own; what it prints."""
    path = [*sys.path, os.path.dirname(__file__)]
    result = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=PATIENCE,
                            env={**os.environ, "PYTHONPATH": os.pathsep.join(path), **environment})
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


# ---- pickles and handles ----

def test_plain_pickles_are_by_value():
    """Plain pickles may be read anywhere and at any time."""
    a = ad.asarray(X)
    data = pickle.dumps(a)
    assert len(data) > X.nbytes and not ad.stat()["capabilities"]
    b = pickle.loads(data)
    assert np.array_equal(b.get(), X) and b.flags.owndata


def test_handles_in_pickles():
    a = ad.asarray(X)
    with ad.handles() as made:
        data = pickle.dumps([a, a[:, ::-1], a[:3]])
    assert len(data) < 12_000 and len(made) == 2 == ad.stat()["capabilities"]  # three rows are small: by value
    b, reverse, rows = pickle.loads(data)
    again = pickle.loads(data)[0]
    b[0, 0] = 99
    assert a[0, 0].item() == 0 and again[0, 0].item() == 0 and b[0, 0].item() == 99
    assert np.array_equal(reverse.get(), X[:, ::-1]) and np.array_equal(rows.get(), X[:3])
    made.revoke()
    with pytest.raises(ad.StaleHandleError, match="revoked"):
        pickle.loads(data)
    assert len(made) == 0


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "float16", "float32", "float64", "complex64", "complex128"])
def test_every_type_and_layout(dtype):
    rng = np.random.default_rng(1)
    x = (rng.integers(0, 2, (64, 40, 50)) if dtype == "bool" else rng.integers(0, 100, (64, 40, 50))).astype(dtype)
    a = ad.asarray(x)
    for view, expected in ((a, x), (a.T, x.T), (a[::-1, 1:, ::2], x[::-1, 1:, ::2]), (a[3], x[3]), (a.reshape(-1), x.reshape(-1)),
                           (a.copy(order="F"), x), (a[:0], x[:0])):
        handle = ad.share(view)
        got = ad.attach(pickle.loads(pickle.dumps(handle)))
        assert got.dtype == expected.dtype and got.shape == expected.shape and np.array_equal(got.get(), expected)
        if 2 * view.nbytes >= x.nbytes:  # less is copied first
            assert got.flags.c_contiguous == view.flags.c_contiguous and got.flags.f_contiguous == view.flags.f_contiguous
        handle.revoke()


def test_a_small_view_does_not_keep_the_whole():
    a = ad.asarray(X)
    handle = ad.share(a[:2])
    del a
    ad.sync()
    assert ad.stat()["shared_bytes"] == X[:2].nbytes
    assert np.array_equal(handle.attach().get(), X[:2])
    handle.revoke()


def test_share_refuses():
    with pytest.raises(TypeError, match="takes an arrayd.ndarray, not numpy.ndarray"):
        ad.share(X)
    a = ad.asarray(X)
    for error, what in [(ValueError, {"uses": -1}), (TypeError, {"uses": 1.5}), (ValueError, {"lease": 0}),
                        (ValueError, {"lease": -1}), (TypeError, {"lease": "1"}), (ValueError, {"linger": -1.0}),
                        (ValueError, {"linger": float("inf")})]:
        with pytest.raises(error, match=f"^{next(iter(what))} must be"):
            ad.share(a, **what)
    with pytest.raises(ValueError, match="uses must be 0"):
        ad.handles(uses=-2)
    assert ad.stat()["capabilities"] == 0
    handle = ad.share(ad.asarray(X), uses=1)
    assert "float64[200, 300]" in repr(handle)
    handle.attach()
    with pytest.raises(ad.StaleHandleError, match="used up"):
        ad.attach(handle)


def test_a_lease():
    handle = ad.share(ad.asarray(X), lease=0.02)
    end = time.monotonic() + PATIENCE
    while ad.stat()["capabilities"]:
        assert time.monotonic() < end
    with pytest.raises(ad.StaleHandleError, match="lease"):
        handle.attach()


def test_an_embedded_server_is_this_processes_alone():
    assert run("""
        import arrayd as ad, numpy as np, multiprocessing, sharing_work as work
        a = ad.ones((200, 300))
        try: ad.share(a)
        except ValueError as error: print("embedded" in str(error), end=" ")
        with multiprocessing.get_context("spawn").Pool(1) as pool: print(pool.apply(work.total, (a,))[0])
        """, ARRAYD_URL="embedded:cpu") == "True 60000.0"


def test_failures_travel():
    bad = ad.asarray(X)[ad.asarray([0, 500])]
    handle = ad.share(bad)
    with pytest.raises(IndexError, match="500"):
        handle.attach().get()
    handle.revoke()


# ---- pools ----

@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_pool_map(method):
    """Arrays go there and back by handle; what a process writes stays there."""
    arrays = [ad.asarray(X + i) for i in range(6)]
    with multiprocessing.get_context(method).Pool(2) as pool:
        before = ad.session_info()["messages_bytes"]
        totals = pool.map(work.total, arrays, chunksize=1)
        changed = pool.map(work.change, arrays)
        pairs = pool.map(work.views, arrays[:2])
        assert ad.session_info()["messages_bytes"] - before < X.nbytes
        assert [t[0] for t in totals] == [(X + i).sum() for i in range(6)] and all(t[2] for t in totals)
        assert ad.session_info()["session"] not in {t[1] for t in totals}
        for i, (a, b) in enumerate(zip(arrays, changed)):
            assert np.array_equal(a.get(), X + i) and np.array_equal(b.get(), X + i + 1)
        for i, (part, turned, whole) in enumerate(pairs):
            assert np.array_equal(part.get(), (X + i)[::2, 1:].T) and np.array_equal(turned.get(), (X + i).T)
            assert np.array_equal(whole.get(), X + i)


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_process_pool_executor(method):
    context = multiprocessing.get_context(method)
    arrays = [ad.asarray(X * i) for i in range(5)]
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        for i, b in enumerate(pool.map(work.double, arrays)):
            assert np.array_equal(b.get(), X * i * 2)
        assert pool.submit(work.total, arrays[1]).result()[0] == X.sum()
    assert all(np.array_equal(a.get(), X * i) for i, a in enumerate(arrays))


def test_queues_and_a_sender_that_has_gone():
    """A backlog waits for its receiver; what a process put before it ended is there."""
    context = multiprocessing.get_context("spawn")
    inbox, outbox = context.Queue(), context.Queue()
    for i in range(20):
        inbox.put(ad.asarray(X + i))  # this process lets go of it at once
    inbox.put(None)
    process = context.Process(target=work.worker, args=(inbox, outbox))
    process.start()
    got = [outbox.get(timeout=PATIENCE) for _ in range(10)]
    rest = [outbox.get(timeout=PATIENCE) for _ in range(10)]
    process.join()
    for i, b in enumerate(got + rest):
        assert np.array_equal(b.get(), (X + i) * 10)


def test_the_sender_ends_before_the_receiver_looks():
    read, write = multiprocessing.Pipe(duplex=False)
    pid = os.fork()
    if pid == 0:
        try:
            write.send(ad.asarray(X) * 3)
            ad.sync()
        finally:
            os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    assert np.array_equal(read.recv().get(), X * 3)


def test_joblib():
    joblib = pytest.importorskip("joblib")
    arrays = [ad.asarray(X + i) for i in range(4)]
    before = ad.session_info()["messages_bytes"]
    with joblib.parallel_config("loky", n_jobs=2):
        doubled = joblib.Parallel()(joblib.delayed(work.double)(a) for a in arrays)
    assert ad.session_info()["messages_bytes"] - before < X.nbytes
    assert all(np.array_equal(b.get(), (X + i) * 2) for i, b in enumerate(doubled))
    from joblib.externals.loky import get_reusable_executor
    get_reusable_executor().shutdown(wait=True)


def test_transports_are_known_by_who_pickles():
    """The rule for what goes by handle looks at modules by name: those must be there."""
    from multiprocessing import reduction
    assert reduction.__name__ in sharing._CARRIERS
    a = ad.asarray(X)
    data = bytes(reduction.ForkingPickler.dumps({"deep": [(a,)]}))
    assert len(data) < 1000 and np.array_equal(pickle.loads(data)["deep"][0][0].get(), X)
    assert len(bytes(reduction.ForkingPickler.dumps(a[:2]))) > a[:2].nbytes


# ---- names ----

def test_publish():
    a = ad.asarray(X)
    ad.publish("test/x", a)
    a += 1
    mine = [row for row in ad.names() if row.name == "test/x"]
    assert mine == [("test/x", f"uid:{os.getuid()}", False, "float64", X.nbytes, X.shape)]
    b = ad.attach("test/x")
    assert np.array_equal(b.get(), X) and not any(v.flags.writeable for v in (b, b[2:], b.T, b.reshape(-1)))
    assert (b + 1).flags.writeable and b.copy().flags.writeable
    with pytest.raises(KeyError, match="test/y"):
        ad.attach("test/y")
    with pytest.raises(KeyError):
        ad.attach("test/x", principal="uid:4000000")
    ad.unpublish("test/x")
    with pytest.raises(KeyError):
        ad.unpublish("test/x")
    assert np.array_equal(b.get(), X)


def test_what_is_read_only_stays_so():
    """Each way of writing raises at once, in this process."""
    ad.publish("test/r", X)
    b = ad.attach("test/r")
    ones = ad.ones(X.shape)
    sent = ad.session_info()["operations"]
    for write in (lambda: b.__setitem__(0, 1), lambda: b.__iadd__(1), lambda: ad.add(ones, 1, out=b), lambda: b.fill(0),
                  lambda: b.set(X), lambda: b[1:].sort(), lambda: ad.sum(ones, axis=0, out=b[0]), lambda: b.T.__imul__(2),
                  lambda: ad.copyto(b, 1), lambda: b.__setitem__(b > 3, 0), lambda: ad.modf(ones, b, None)):
        with pytest.raises(ValueError, match="read-only"):
            write()
    ad.sync()
    assert np.array_equal(b.get(), X) and sent <= ad.session_info()["operations"]
    with pytest.raises(ValueError, match="read-only"):
        ad.publish("test/w", b, writable=True)
    ad.publish("test/again", b)
    ad.unpublish("test/again"), ad.unpublish("test/r")


def test_publish_to_be_written():
    a = ad.asarray(X)
    ad.publish("test/shared", a, writable=True)
    assert run("import sharing_work as work; print(work.named('test/shared'))") == str((float((X + 1).sum()), "written"))
    assert np.array_equal(a.get(), X + 1)
    a *= 2
    assert float(ad.attach("test/shared").sum()) == (X * 2 + 2).sum()
    with pytest.raises(ValueError, match="view"):
        ad.publish("test/view", a[1:], writable=True)
    ad.unpublish("test/shared")


def test_a_publisher_that_has_gone():
    run("import arrayd as ad, numpy as np; a = ad.arange(1000.0); ad.publish('test/gone', a * 2); ad.publish('test/f', "
        "ad.asarray(np.arange(6).reshape(2, 3).T))")
    b, f = ad.attach("test/gone"), ad.attach("test/f")
    assert np.array_equal(b.get(), np.arange(1000.0) * 2) and f.flags.f_contiguous and f.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert run("import sharing_work as work; print(work.named('test/gone'))") == "(999000.0, 'read-only')"
    ad.unpublish("test/gone"), ad.unpublish("test/f")
    assert b.sum().item() == 999000


@pytest.mark.parametrize("name", ["", "a b", "\u00e9", "x" * 201])
def test_names_are_checked(name):
    with pytest.raises(ValueError, match="name"):
        ad.publish(name, X)
    with pytest.raises(ValueError, match="name"):
        ad.attach(name)


def test_arguments_of_names_are_checked():
    for call in (lambda: ad.publish(5, X), lambda: ad.attach(5), lambda: ad.unpublish(None)):
        with pytest.raises(TypeError, match="name must be a str"):
            call()
    for error, grant in ((ValueError, "bob"), (ValueError, ["uid:1", "gid:2"]), (TypeError, [1.5])):
        with pytest.raises(error, match="grant"):
            ad.publish("test/grant", X, grant=grant)
    assert not [each for each in ad.names() if each.name == "test/grant"]
    ad.publish("test/grant", X, grant=[1, "token:bob", "cert:build.example.org", "*"])
    ad.unpublish("test/grant")


# ---- forks ----

def test_a_child_goes_on_with_the_parents_arrays():
    a = ad.asarray(X)
    b = a * 2  # not sent yet, as it may be
    mask, view = a > 100, a[3:7, ::2]

    def child():
        value = float(b.sum()), float(a[mask].sum()), view.sum().item()
        a[...] = 0
        c = a + b
        return value, float(c.sum()), np.array_equal(view.get(), np.zeros((4, 150)))

    assert in_child(child) == ((X.sum() * 2, X[X > 100].sum(), X[3:7, ::2].sum()), X.sum() * 2, True)
    assert np.array_equal(a.get(), X) and np.array_equal(b.get(), X * 2)


def test_what_the_parent_does_after_the_fork_is_its_own():
    a, freed = ad.asarray(X), ad.asarray(X * 3)
    ready, go = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.read(go[0], 1)
            os.write(ready[1], repr((float(a.sum()), float(freed.sum()))).encode())
        finally:
            os._exit(0)
    a += 1
    del freed
    others = [ad.full(X.shape, -1.0) for _ in range(4)]
    ad.sync()
    os.write(go[1], b"x")
    assert eval(os.read(ready[0], 100)) == (X.sum(), X.sum() * 3)
    os.waitpid(pid, 0)
    assert np.array_equal(a.get(), X + 1) and all(float(o.max()) == -1 for o in others)
    for end in (*ready, *go):
        os.close(end)


def test_children_of_children_and_many():
    a = ad.asarray(X)
    assert in_child(lambda: in_child(lambda: in_child(lambda: float(a.sum())))) == X.sum()
    assert [in_child(lambda: float((a + i).sum())) for i in range(20)] == [float((X + i).sum()) for i in range(20)]
    large = in_child(lambda: (a.get() + 1).sum() + float(ad.asarray(np.ones((500, 500))).sum()))  # through windows of its own
    assert large == (X + 1).sum() + 250_000


def test_a_child_that_uses_nothing_costs_nothing():
    """The child keeps nothing either. One that has no arrays sends nothing: a process has none that other tests
    left."""
    assert in_child(lambda: 7) == 7
    assert run("""
        import os, arrayd as ad
        add = ad.ElementwiseKernel("float64 x", "float64 y", "y = x + 1", "add")
        assert add(ad.arange(5.0)).sum().item() == 15  # a kernel is no array, and stays
        ad.sync()
        before = ad.session_info()["operations"]
        for _ in range(2):
            pid = os.fork()
            if pid == 0:
                os._exit(int(ad.arange(5).sum()) + int(add(ad.arange(5.0)).sum()))
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 25
        print(ad.session_info()["operations"] - before)
        """) == "0"


def test_streams_are_the_parents():
    a = ad.asarray(X)
    with ad.cuda.Stream() as stream:
        b = a + 1

        def child():
            try:
                stream.synchronize()
                return "no error"
            except ValueError:
                return float(b.sum()), float((a + b).sum())

        assert in_child(child) == ((X + 1).sum(), (2 * X + 1).sum())
    assert np.array_equal(b.get(), X + 1)


def test_failures_are_inherited():
    bad = ad.asarray(X)[ad.asarray([0, 500])]
    assert in_child(lambda: bad.get()).startswith("IndexError: gather")


def test_a_fork_while_threads_work():
    """The child finds the session whole, whatever a thread is in the middle of."""
    import threading
    a, stop = ad.asarray(X), False

    def busy():
        while not stop:
            b = a + 1
            b.get()
            ad.asarray(X[:50]).sum()

    threads = [threading.Thread(target=busy) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for i in range(20):
            assert in_child(lambda: float((a * i).sum())) == (X * i).sum()
    finally:
        stop = True
        for thread in threads:
            thread.join()


def test_a_fork_beside_a_server_that_stands_still(own_server):
    """The parent does not wait for ever. The child's arrays then say why. While a worker of a GPU is stopped, the driver lets
    no other process begin with that GPU, so this one is let go on in any case."""
    process, url = own_server()
    assert run("""
        import arrayd as ad, os, signal, threading
        a = ad.ones(100_000); worker = ad.stat()["worker_pid"]
        go_on = threading.Timer(%f, os.kill, (worker, signal.SIGCONT))
        go_on.daemon = True
        go_on.start()
        os.kill(worker, signal.SIGSTOP)
        def flood():
            try:
                while True: a + a
            except Exception: pass
        threading.Thread(target=flood, daemon=True).start()
        pid = os.fork()
        if pid == 0:
            os._exit(3)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), go_on.is_alive(), flush=True)
        os.kill(worker, signal.SIGCONT)
        os._exit(0)
        """ % (PATIENCE / 3), ARRAYD_URL=url) == "3 True"


def test_multiprocessing_inherits():
    """The fork method passes arguments by memory, so that nothing is pickled."""
    a = work.INHERITED["a"] = ad.asarray(X)
    try:
        with multiprocessing.get_context("fork").Pool(3) as pool:
            assert pool.map(work.inherited, ["a"] * 9) == [(X.sum(), (X[:3] * 2).tolist())] * 9
        with concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool:
            assert list(pool.map(work.inherited, ["a"] * 4)) == [(X.sum(), (X[:3] * 2).tolist())] * 4
    finally:
        work.INHERITED.clear()
    assert np.array_equal(a.get(), X)


APP = """
import os
import arrayd as ad
weights = ad.arange(100_000.0) * 2

def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"{os.getpid()} {float(weights.sum())} {ad.session_info()['session']}".encode()]
"""


def test_gunicorn_with_preload(tmp_path, own_server):
    """The master loads the model; workers that it forks, later ones too, use it."""
    pytest.importorskip("gunicorn")
    (tmp_path / "served.py").write_text(APP)
    _, url = own_server()
    address = str(tmp_path / "http")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    with open(tmp_path / "gunicorn.log", "w+") as log:
        master = subprocess.Popen([sys.executable, "-m", "gunicorn", "--preload", "-w", "2", "-b", f"unix:{address}", "served:app"],
                                  env={**os.environ, "PYTHONPATH": path, "ARRAYD_URL": url}, cwd=tmp_path, stdout=log, stderr=log)
        try:
            seen, killed, end = {}, None, time.monotonic() + PATIENCE
            while len(seen) < 3 and time.monotonic() < end:
                try:
                    with socket.socket(socket.AF_UNIX) as s:
                        s.connect(address)
                        s.sendall(b"GET / HTTP/1.0\r\n\r\n")
                        answer = http.client.HTTPResponse(s)
                        answer.begin()
                        pid, total, session = answer.read().decode().split()
                except (OSError, ValueError, http.client.HTTPException):
                    continue
                assert float(total) == np.arange(100_000.0).sum() * 2
                seen[pid] = session
                if killed is None:
                    killed = pid
                    os.kill(int(pid), signal.SIGKILL)  # the master forks another
            log.seek(0)
            assert len(seen) >= 3 and len(set(seen.values())) == len(seen), (seen, log.read())
        finally:
            master.terminate()
            master.wait(timeout=PATIENCE)
