"""Dask with chunks that are arrays of the server: its functions beside NumPy's chunks, and real workers."""
import os
import subprocess
import sys
import textwrap

import dask
import dask.array as da
import numpy as np
import pytest
from dask.base import tokenize
from dask.sizeof import sizeof
from distributed import wait

import arrayd as ad
import dask_work as work
from conftest import start_server
from oracle import DTYPES, random, seed

RNG = np.random.default_rng(7)
X, Y = RNG.random((60, 40)), RNG.random((40, 50))
PROGRAMS = {
    "sum": lambda x, y: x.sum(), "mean": lambda x, y: x.mean(axis=0), "mean_all": lambda x, y: x.mean(),
    "std": lambda x, y: x.std(axis=1), "var": lambda x, y: x.var(ddof=1), "max": lambda x, y: x.max(axis=1),
    "argmin": lambda x, y: x.argmin(axis=0), "any": lambda x, y: (x > 0.9).any(axis=0) & (x > 0.01).all(axis=0),
    "cumsum": lambda x, y: x.cumsum(axis=0), "nanmean": lambda x, y: da.nanmean(da.where(x > 0.5, x, np.nan), axis=0),
    "average": lambda x, y: da.average(x, axis=0), "cov": lambda x, y: da.cov(x), "topk": lambda x, y: da.topk(x, 3, axis=0),
    "median": lambda x, y: da.median(x, axis=0), "percentile": lambda x, y: da.percentile(x.ravel(), [25, 50]),
    "unique": lambda x, y: da.unique((x * 5).astype("i8")), "matmul": lambda x, y: x @ y,
    "tensordot": lambda x, y: da.tensordot(x, y, axes=1), "tensordot_all": lambda x, y: da.tensordot(x, x, axes=2),
    "einsum": lambda x, y: da.einsum("ij,jk->ik", x, y), "slice": lambda x, y: x[5:50:3, ::-1], "fancy": lambda x, y: x[[3, 50, 7]],
    "mask": lambda x, y: x[x[:, 0] > 0.5], "newaxis": lambda x, y: x[3, None],
    "concatenate": lambda x, y: da.concatenate([x, x * 2], axis=1), "stack": lambda x, y: da.stack([x, x + 1]),
    "block": lambda x, y: da.block([[x, x], [x, x]]), "reshape": lambda x, y: x.rechunk((60, -1)).reshape(-1),
    "rechunk": lambda x, y: x.rechunk((60, 10)).T, "formula": lambda x, y: da.sqrt(x) + np.exp(x) * 2 - x / 3,
    "where": lambda x, y: da.where(x > 0.5, x, 0.0), "assign": lambda x, y: _assigned(x),
    "fft": lambda x, y: da.fft.fft(x.rechunk((20, 40)), axis=1), "norm": lambda x, y: da.linalg.norm(x),
    "singular": lambda x, y: da.linalg.svd(x.rechunk((20, 40)))[1], "tsqr": lambda x, y: abs(da.linalg.qr(x.rechunk((20, 40)))[1]),
    "histogram": lambda x, y: da.histogram(x, bins=10, range=(0, 1))[0], "diff": lambda x, y: da.diff(x, axis=0),
    "pad": lambda x, y: da.pad(x, 1), "overlap": lambda x, y: da.map_overlap(lambda c: c + 1, x, depth=1, boundary="reflect"),
    "gufunc": lambda x, y: da.apply_gufunc(lambda c: c.mean(axis=-1), "(i)->()", x.rechunk((20, 40))),
    "like": lambda x, y: da.ones_like(x) + da.full_like(x, 3), "coarsen": lambda x, y: da.coarsen(np.sum, x, {0: 2, 1: 2}),
}
A, T = RNG.random((40, 40)) + 20 * np.eye(40), RNG.random((80, 20))
B, C = RNG.random((40, 3)), RNG.random((80, 2))
ORDERS = {"matrix": (None, "fro", "nuc", np.inf, -np.inf, 1, -1, 2, -2), "vector": (None, np.inf, -np.inf, 0, 1, 2, 3)}
# Functions of (make, chunks of an array) that give one array or several; signs of factors are taken out.
LINALG = {
    "qr": lambda m: _unsigned(da.linalg.qr(m(T, (20, 20)))),
    "qr_wide": lambda m: _unsigned(da.linalg.qr(m(T.T.copy(), (20, 20)))),
    "tsqr": lambda m: _unsigned(da.linalg.tsqr(m(T, (20, 20)), compute_svd=True)),
    "svd": lambda m: da.linalg.svd(m(T, (20, 20))), "svd_one_chunk": lambda m: da.linalg.svd(m(T, (80, 20))),
    "svd_wide": lambda m: da.linalg.svd(m(T.T.copy(), (20, 20))),
    "svd_compressed": lambda m: da.linalg.svd_compressed(m(T, (20, 20)), 5, seed=3, n_power_iter=2, iterator="QR"),
    "triangle": lambda m: da.linalg.solve_triangular(m(A, (20, 20)), m(B, (20, 3)), lower=True),
    "triangle_upper": lambda m: da.linalg.solve_triangular(m(A, (20, 20)), m(B[:, 0], 20)),
    "triangle_complex": lambda m: da.linalg.solve_triangular(m(A + 1j * A.T, (20, 20)), m(B, (20, 3)), lower=True),
    "cholesky": lambda m: da.linalg.cholesky(m(A @ A.T, (20, 20))),
    "cholesky_lower": lambda m: da.linalg.cholesky(m((A @ A.T).astype("f4"), (10, 10)), lower=True),
    "cholesky_complex": lambda m: da.linalg.cholesky(m((A + 1j * A.T) @ (A.T - 1j * A), (20, 20))),
    "solve": lambda m: da.linalg.solve(m(A @ A.T, (20, 20)), m(B, (20, 3)), assume_a="pos"),
    "lstsq": lambda m: da.linalg.lstsq(m(T, (20, 20)), m(C, (20, 2))),
    "lstsq_vector": lambda m: da.linalg.lstsq(m(T + 1j * T[::-1], (20, 20)), m(C[:, 0], 20)),
    "lstsq_square": lambda m: da.linalg.lstsq(m(A, (10, 40)), m(B, (10, 3)))[0],
    **{f"norm_{order}": (lambda m, order=order: da.linalg.norm(m(A, (20, 40)), order)) for order in ORDERS["matrix"]},
    **{f"norm_vector_{order}": (lambda m, order=order: da.linalg.norm(m(B[:, 0], 20), order)) for order in ORDERS["vector"]},
}
MADE = {
    "from_array": lambda a, chunks: da.from_array(ad.asarray(a), chunks=chunks),
    "map_blocks": lambda a, chunks: da.from_array(a, chunks=chunks).map_blocks(ad.asarray),
}


def _unsigned(factors):
    return [abs(each) for each in factors]


def _assigned(x):
    x = x.copy()
    x[2:5] = 0.0
    x[x > 0.9] = 1.0
    return x


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, made):
    function, make = PROGRAMS[name], MADE[made]
    with dask.config.set(scheduler="threads", num_workers=2):
        wanted = function(da.from_array(X, chunks=(20, 20)), da.from_array(Y, chunks=(20, 25))).compute()
        got = function(make(X, (20, 20)), make(Y, (20, 25))).compute()
    assert type(got) is ad.ndarray and got.dtype == wanted.dtype and got.shape == wanted.shape
    np.testing.assert_allclose(got.get(), wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("name", LINALG)
def test_linalg(name, made):
    with dask.config.set(scheduler="threads", num_workers=2):
        wanted, got = (dask.compute(LINALG[name](make))[0] for make in (da.from_array, MADE[made]))
    wanted, got = ([each] if hasattr(each, "ndim") else each for each in (wanted, got))
    assert len(got) == len(wanted)
    for g, w in zip(got, wanted):
        assert type(g) is ad.ndarray and g.dtype == w.dtype and g.shape == w.shape
        np.testing.assert_allclose(g.get(), w, **({"rtol": 1e-4} if w.dtype == np.float32 else {"rtol": 1e-8, "atol": 1e-9}))


def test_singular_triangle():
    a = da.from_array(ad.asarray(np.triu(A) * (np.arange(40) != 7)), chunks=20)
    with pytest.raises(np.linalg.LinAlgError):
        da.linalg.solve_triangular(a, da.from_array(ad.asarray(B), chunks=(20, 3))).compute(scheduler="sync").get()


@pytest.mark.parametrize("name", ["lu", "solve", "inv"])
def test_what_dask_hands_to_scipy(name):
    """Dask's LU decomposition names SciPy's function, so that chunks of no other library can have it."""
    a, b = (da.from_array(ad.asarray(each), chunks=20) for each in (A, B))
    with pytest.raises(TypeError, match="^Implicit conversion to a NumPy array is not allowed"):
        dask.compute(getattr(da.linalg, name)(*((a, b) if name == "solve" else (a,))), scheduler="sync")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_names_by_content(dtype):
    host = random(seed(dtype), dtype, (50, 31))
    a = ad.asarray(host)
    same, other = ad.asarray(host.copy()), ad.asarray(np.roll(host, 1))
    before = ad.session_info()["round_trips"]
    assert tokenize(a) == tokenize(same)
    assert ad.session_info()["round_trips"] - before <= 2  # nothing is fetched but the sums
    assert tokenize(a.T.copy().T) == tokenize(a)  # the layout does not matter
    assert tokenize(a) != tokenize(other)
    assert len({tokenize(each) for each in (a, a[:-1], a.reshape(31, 50), a.T, a[::-1], ad.zeros((0, 3)), a[:, 1:])}) == 7


def test_swapped_elements_have_another_name():
    a = ad.zeros(100_000, np.int8)
    a[5] = 1
    b = ad.zeros(100_000, np.int8)
    b[6] = 1
    assert tokenize(a) != tokenize(b) and tokenize(ad.zeros(10)) != tokenize(ad.zeros(10, np.int64))


def test_sizes():
    a = ad.zeros((1000, 1000))
    assert 8_000_000 <= sizeof(a) < 8_001_000
    assert sizeof(a[:10]) < 81_000 and sizeof(ad.broadcast_to(ad.zeros(10), (10**6, 10))) < 2000


@pytest.mark.parametrize("first", ["arrayd", "dask"])
def test_neither_imports_the_other(first):
    second = {"arrayd": "dask", "dask": "arrayd"}[first]
    run(f"""
        import sys
        import {first}
        assert "{second}" not in sys.modules and "distributed" not in sys.modules
        import arrayd as ad, numpy as np, dask.array as da
        assert float(da.from_array(np.arange(100.0), chunks=30).map_blocks(ad.asarray).mean().compute()) == 49.5
        from distributed.protocol import deserialize, serialize
        header, frames = serialize(ad.arange(10))
        assert header["serializer"] == "dask" and deserialize(header, frames).get().tolist() == list(range(10))
    """)


def run(code):
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120,
                          cwd=os.path.dirname(__file__))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_by_value(dtype):
    from distributed.protocol import deserialize_bytes, serialize_bytes
    host = random(seed(dtype), dtype, (20, 31))
    for a in (host, host.T, host[::2, ::-3], host[:0], host[3, 4], np.broadcast_to(host[0], (5, 31))):
        back = deserialize_bytes(serialize_bytes(ad.asarray(host) if a is host else ad.asarray(a)))
        assert type(back) is ad.ndarray and back.dtype == a.dtype and back.shape == a.shape
        np.testing.assert_array_equal(back.get().view(np.uint8) if a.shape else back.get(),
                                      np.ascontiguousarray(a).view(np.uint8) if a.shape else a)


BACKEND = {
    "ones": lambda: da.ones((10, 7), chunks=5), "zeros": lambda: da.zeros(10, chunks=5, dtype="i4"),
    "full": lambda: da.full((10,), 7, chunks=3), "arange": lambda: da.arange(2, 10, 2, chunks=2, dtype="f4"),
    "to_backend": lambda: da.from_array(np.arange(5.0)).to_backend(dask.config.get("array.backend")),
}


@pytest.mark.parametrize("name", BACKEND)
def test_backend(name):
    wanted = BACKEND[name]().compute() if name != "to_backend" else np.arange(5.0)
    with dask.config.set({"array.backend": "arrayd"}):
        made = BACKEND[name]()
    got = made.compute()
    assert type(made._meta) is ad.ndarray and type(got) is ad.ndarray and got.dtype == wanted.dtype
    np.testing.assert_array_equal(got.get(), wanted)


def test_backend_draws_random_numbers():
    with dask.config.set({"array.backend": "arrayd"}):
        one, same, other = (da.random.RandomState(s).normal(3, 2, (400, 500), chunks=100).compute() for s in (1, 1, 2))
    assert type(one) is ad.ndarray and bool((one == same).all()) and not bool((one == other).any())
    assert abs(float(one.mean()) - 3) < 0.05 and abs(float(one.std()) - 2) < 0.05
    assert abs(float(np.corrcoef(one[:100].get().ravel(), one[100:200].get().ravel())[0, 1])) < 0.03  # chunks differ


# ---- real workers ----

LIMIT = 64 << 20  # bytes that worker c may hold
# The limit is compared with what tasks hold, not with the processes, which are larger by what they have imported.
SETTINGS = {"distributed.comm.timeouts.connect": "120s",
            **{f"distributed.worker.memory.{name}": False for name in ("spill", "pause", "terminate")}}


@pytest.fixture(scope="module")
def two_daemons(tmp_path_factory):
    """The server of this run and one more, and workers: a, b of the first, c of the second."""
    from distributed import Client, Nanny, Scheduler, SpecCluster
    folder = tmp_path_factory.mktemp("second")
    process, url = start_server(str(folder))
    paths = os.pathsep.join(filter(None, [os.path.dirname(__file__), os.environ.get("PYTHONPATH")]))

    def worker(server, **more):
        environment = {"ARRAYD_URL": server, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
        return {"cls": Nanny, "options": {"nthreads": 1, "env": environment, "local_directory": str(folder), "host": "127.0.0.1", **more}}

    first = os.environ["ARRAYD_URL"]
    workers = {"a": worker(first), "b": worker(first), "c": worker(url, memory_limit=LIMIT)}
    scheduler = {"cls": Scheduler, "options": {"dashboard": False, "port": 0, "host": "127.0.0.1"}}
    with (dask.config.set({"temporary_directory": str(folder), **SETTINGS}), SpecCluster(workers, scheduler) as cluster,
          Client(cluster, timeout=120) as client):
        client.wait_for_workers(3, timeout=120)
        yield client
    process.kill()
    process.wait()


def on(client, worker, function, *arguments):
    return client.submit(function, *arguments, workers=[worker], pure=False)


def handed(client, source, target, n=100_000):
    """Move an array from one worker to another: the target's server, and whether both hold one buffer then."""
    a = on(client, source, work.ramp, n)
    value, is_array, url, shared = on(client, target, work.total, a).result()
    assert is_array and value == float(np.arange(n, dtype=float).sum())
    return url, shared


def test_workers_of_one_daemon(two_daemons):
    """The first array goes by value, with the question whether both use one server; then handles."""
    urls, shared = zip(*[handed(two_daemons, "a", "b") for _ in range(3)])
    assert set(urls) == {os.environ["ARRAYD_URL"]} and shared == (False, True, True)
    assert [handed(two_daemons, "b", "a")[1] for _ in range(2)] == [False, True]
    assert handed(two_daemons, "a", "b", 1000)[1] is False  # a handle would be two round trips
    assert not [row for row in ad.names() if "dask" in row.name]  # questions that were answered are taken back


def test_workers_of_two_daemons(two_daemons):
    for source, target in ("ac", "ca", "ac", "ca"):
        url, shared = handed(two_daemons, source, target)
        assert (url == os.environ["ARRAYD_URL"]) == (target == "a") and not shared


def test_clients_get_values(two_daemons):
    """Values go by way of the scheduler, which may pass them on to anybody."""
    for worker in "ac" * 2:
        a = on(two_daemons, worker, work.ramp, 100_000).result()
        assert type(a) is ad.ndarray and ad.stat()["shared_bytes"] < a.nbytes and float(a[-1]) == 99_999


def test_array_over_both(two_daemons):
    """A program whose chunks are on both servers: everything moves as it must."""
    x = RNG.random((400, 400))
    a = da.from_array(x, chunks=100).map_blocks(ad.asarray)
    got = ((a @ a.T) / a.sum(axis=1) - a.mean(axis=0)).std(axis=0)
    wanted = ((x @ x.T) / x.sum(axis=1) - x.mean(axis=0)).std(axis=0)
    np.testing.assert_allclose(two_daemons.compute(got).result().get(), wanted)


def test_solving_on_workers(two_daemons):
    """A worker has arrayd's part in Dask's functions as soon as it has an array."""
    x = da.from_array(A @ A.T, chunks=20).map_blocks(ad.asarray)
    got = two_daemons.compute(da.linalg.solve(x, da.from_array(B, chunks=(20, 3)).map_blocks(ad.asarray), assume_a="pos"))
    np.testing.assert_allclose(got.result().get(), np.linalg.solve(A @ A.T, B))


def test_error_of_a_worker(two_daemons):
    """The error is in the array. It is told where the array is sent to or used."""
    with pytest.raises(IndexError, match="index 7 is out of bounds"):
        on(two_daemons, "a", work.total, on(two_daemons, "a", work.lost)).result()


def test_spilling(two_daemons):
    """Beyond a worker's limit arrays go to its disk, which gives the server's memory back, and come again."""
    count, n = 12, 1_000_000
    before = on(two_daemons, "c", work.used).result()
    arrays = [on(two_daemons, "c", work.ramp, n, float(i)) for i in range(count)]
    wait(arrays)
    held = on(two_daemons, "c", work.used).result() - before
    assert 0 < held <= LIMIT * 0.6 + 2 * 8 * n < count * 8 * n
    for i, a in enumerate(arrays):
        value, is_array, _, _ = on(two_daemons, "c", work.total, a).result()
        assert is_array and value == float(np.arange(i, i + n, dtype=float).sum())
