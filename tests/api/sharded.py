"""What the tests of arrays over several devices share: a server with four devices, meshes, and a comparison with NumPy.

On a GPU's server the devices of a mesh are those that there are, over and over: a device may stand in a mesh several times.
"""
import os

import numpy as np
import pytest

import arrayd as ad
from arrayd.sharding import Mesh, NamedSharding, PartitionSpec as P, ShardedArray
from conftest import start_server

DEVICES = 4


@pytest.fixture(scope="module", autouse=True)
def several_devices(tmp_path_factory):
    before = os.environ["ARRAYD_URL"]
    process, url = start_server(str(tmp_path_factory.mktemp("devices")), "--cpu-devices", str(DEVICES)) \
        if os.environ.get("ARRAYD_TEST_BACKEND", "cpu") == "cpu" else (None, before)
    ad.connect(url)
    yield
    ad.connect(before)
    if process:
        process.kill()
        process.wait()


def make_mesh(shape, names):
    count = ad.session_info()["devices"]
    return Mesh((np.arange(np.prod(shape)) % count).reshape(shape), names)


MESHES = {"one": ((1,), "a"), "two": ((2,), "a"), "three": ((3,), "a"), "four": ((4,), "a"), "grid": ((2, 2), ("a", "b")),
          "thin": ((1, 3), ("a", "b"))}
SPECS = {"rows": P("a"), "columns": P(None, "a"), "replicas": P(), "both": P("a", "b"), "turned": P("b", "a"),
         "rows of all": P(("a", "b")), "columns of all": P(None, ("b", "a")), "last of three": P(None, None, "a")}


def list_layouts(ndim):
    """All pairs of a mesh and a spec that fit arrays of so many dimensions."""
    made = []
    for mesh, (shape, names) in MESHES.items():
        for spec in SPECS.values():
            used = {name for part in spec for name in (part if isinstance(part, tuple) else (part,)) if name}
            if used <= set(names) and len(spec) <= ndim:
                made.append(pytest.param(mesh, spec, id=f"{mesh}-{spec}"))
    return made


def put(host, mesh, spec):
    return ad.device_put(host, NamedSharding(make_mesh(*MESHES[mesh]), spec))


def draw(shape=(7, 6), dtype="float64", seed=7):
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "c":
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    return (rng.standard_normal(shape) * 10).astype(dtype)


def check(found, expected, exact=False):
    """A sharded array of the same values, each of whose parts is what its place says."""
    expected = np.asarray(expected)
    assert isinstance(found, ShardedArray)
    assert found.shape == expected.shape and found.dtype == expected.dtype
    tolerance = 0 if exact else 2e-3 if expected.dtype == np.float16 else 1e-4 if expected.dtype.name in (
        "float32", "complex64") else 1e-9
    scale = max(1.0, float(np.nanmax(np.abs(np.where(np.isfinite(expected), expected, 0)), initial=0))) if expected.dtype.kind in "fc" else 1
    np.testing.assert_allclose(found.get(), expected, rtol=tolerance, atol=tolerance * scale)
    for shard in found.addressable_shards:
        assert shard.data.device == shard.device
        assert shard.data.shape == expected[shard.index].shape and shard.data.dtype == expected.dtype
        np.testing.assert_allclose(shard.data.get(), expected[shard.index], rtol=tolerance, atol=tolerance * scale)
