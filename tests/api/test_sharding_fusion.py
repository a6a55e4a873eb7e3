"""Chains of operations on several devices in turn: they are fused on each, and give what they give one by one."""
import numpy as np
import pytest

import arrayd as ad
import chains
from arrayd.sharding import NamedSharding, PartitionSpec as P
from sharded import make_mesh, several_devices  # noqa: F401


@pytest.mark.parametrize("rows", [8, 7])  # even parts, and such of different shapes
def test_temporaries_of_a_chain_are_not_written(rows):
    rng = np.random.default_rng(1)
    h = rng.standard_normal((rows, 30_000))
    x = ad.device_put(h, NamedSharding(make_mesh((ad.session_info()["devices"],), "a"), P("a")))

    def body():
        return [np.sqrt(x * x + i) * 0.5 - x for i in range(10)], [(x * i + 1).sum(axis=1) for i in range(10)]

    (kept, totals), counters = chains.together(body, temporaries=1)
    assert counters["temporaries"] > 0
    for i in range(10):
        np.testing.assert_allclose(kept[i].get(), np.sqrt(h * h + i) * 0.5 - h, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(totals[i].get(), (h * i + 1).sum(axis=1), rtol=1e-9, atol=1e-9)


def test_a_chain_that_writes_to_another_device_counts_its_bytes():
    """The counter is the same whether operations run as a chain or one by one."""
    n = 30_000
    with ad.cuda.Device(ad.session_info()["devices"] - 1):
        out = ad.zeros(n)
    with ad.cuda.Device(0):
        x, y = ad.ones(n), ad.ones(n)

        def body():
            before = ad.stat()["peer_bytes"]
            ad.add((x + y) * 2, y, out=out)
            ad.sync()
            return ad.stat()["peer_bytes"] - before
        moved, counters = chains.together(body, fused_ops=3)
    assert counters["fused_ops"] >= 3 and (out.get() == 5).all()
    assert moved == (n * 8 if ad.session_info()["devices"] > 1 else 0)


@pytest.mark.parametrize("seed", range(12))
def test_random_operations_on_devices_in_turn(seed):
    """Operations read arrays of any device, also such that are still queued there, write in place, and free."""
    rng = np.random.default_rng(seed)
    count = ad.session_info()["devices"]
    shapes = [(50,), (50,), (7, 50), (1, 50)]
    hosts = [rng.standard_normal(shapes[i % 4]) for i in range(8)]
    arrays = []
    for i, h in enumerate(hosts):
        with ad.cuda.Device(i % count):
            arrays.append(ad.asarray(h))
    for _ in range(300):
        i, j = (int(n) for n in rng.integers(0, 8, 2))
        device = int(rng.integers(count))
        kind = rng.choice(["map", "binary", "in place", "write", "sum", "scan"], p=[0.3, 0.3, 0.15, 0.1, 0.1, 0.05])
        with ad.cuda.Device(device):
            if kind == "map":
                hosts[i], arrays[i] = np.tanh(hosts[i] * 0.5 + 0.1), ad.tanh(arrays[i] * 0.5 + 0.1)
            elif kind == "binary" and hosts[i].shape == np.broadcast_shapes(hosts[i].shape, hosts[j].shape):
                hosts[i], arrays[i] = hosts[i] * 0.5 - hosts[j], arrays[i] * 0.5 - arrays[j]
            elif kind == "in place":
                hosts[i] += 1
                arrays[i] += 1
            elif kind == "write":
                hosts[i][..., 3:9] = hosts[j][..., 3:9] if hosts[i].shape == hosts[j].shape else 2
                arrays[i][..., 3:9] = arrays[j][..., 3:9] if hosts[i].shape == hosts[j].shape else 2
            elif kind == "sum":
                hosts[i] = hosts[i] - (hosts[i] * 0.1).sum(axis=-1, keepdims=True)
                arrays[i] = arrays[i] - (arrays[i] * 0.1).sum(axis=-1, keepdims=True)
            elif kind == "scan":
                hosts[i], arrays[i] = np.cumsum(hosts[i] * 0.1, axis=-1), ad.cumsum(arrays[i] * 0.1, axis=-1)
    for h, a in zip(hosts, arrays):
        np.testing.assert_allclose(a.get(), h, rtol=1e-8, atol=1e-8)
