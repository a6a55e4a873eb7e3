"""Arrays in chunks on several devices, beside NumPy: any index maps, also such that overlap or leave something out."""
import os
import pathlib

import numpy as np
import pytest

import arrayd as ad
from arrayd.cupyx.distributed import array as darray
from conftest import start_server

DEVICES = 3
MODES = {"replica": darray.REPLICA, "min": darray.MIN, "max": darray.MAX, "sum": darray.SUM, "prod": darray.PROD}
MAPS = {
    "rows": {0: slice(0, 4), 1: slice(4, None)},
    "one": {2: slice(None)},
    "everywhere": {0: slice(None), 1: slice(None), 2: slice(None)},
    "blocks": darray.make_2d_index_map([0, 3, 8], [0, 2, 6], [[{0}, {1}], [{1, 2}, {0}]]),
    "overlapping": {0: [slice(0, 5), (slice(2, 7), slice(1, 4))], 1: [slice(3, 8)], 2: [(7, slice(None))]},
    "strided": {0: slice(0, None, 2), 1: [slice(1, None, 4), slice(3, None, 4)], 2: (slice(0, 8, 3), slice(1, 6, 2))},
}
STEPLESS = [name for name in MAPS if name != "strided"]
SHAPE = 8, 6


@pytest.fixture(scope="module", autouse=True)
def several_devices(tmp_path_factory):
    before = os.environ["ARRAYD_URL"]
    process, url = start_server(str(tmp_path_factory.mktemp("devices")), "--cpu-devices", str(DEVICES)) \
        if os.environ.get("ARRAYD_TEST_BACKEND", "cpu") == "cpu" else (None, before)
    ad.connect(url)
    if ad.cuda.runtime.getDeviceCount() < DEVICES:
        pytest.skip(f"fewer than {DEVICES} devices")
    yield
    ad.connect(before)
    if process:
        process.kill()
        process.wait()


def draw(shape=SHAPE, dtype="float64", seed=7):
    return np.random.default_rng(seed).integers(1, 9, shape).astype(dtype)


def check(found, expected):
    ad.testing.assert_allclose(found, expected, rtol=1e-12)
    assert isinstance(found, darray.DistributedArray) and found.shape == expected.shape and found.dtype == expected.dtype
    np.testing.assert_allclose(found.get(), expected, rtol=1e-12)
    for device, arrays in found.all_chunks().items():
        for index, a in zip(found.index_map[device], arrays, strict=True):
            assert a.device.id == device and a.shape == expected[index].shape


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("index_map", MAPS)
def test_making_and_changing(index_map, mode):
    for dtype in ("float64", "int32", "uint8"):
        x = draw(dtype=dtype)
        for source in (x, ad.asarray(x), x.tolist()):
            expected = np.asarray(source) if isinstance(source, list) else x
            d = darray.distributed_array(source, MAPS[index_map], MODES[mode])
            assert d.mode is MODES[mode] and d.devices == MAPS[index_map].keys()
            check(d, expected)
        for other in MODES.values():
            changed = d.change_mode(other)
            assert changed.mode is other
            check(changed, expected)
            check(changed.change_mode(darray.REPLICA), expected)
        check(d, expected)


@pytest.mark.parametrize("target", MAPS)
@pytest.mark.parametrize("index_map", MAPS)
def test_reshard(index_map, target):
    x = draw()
    for mode in (darray.MAX, darray.SUM):
        d = darray.distributed_array(x, MAPS[index_map], mode)
        moved = d.reshard(MAPS[target])
        assert moved.mode is mode and moved.devices == MAPS[target].keys()
        check(moved, x)
    replicas = darray.distributed_array(x, MAPS[index_map]).reshard(MAPS[target])
    for device, arrays in replicas.all_chunks().items():
        for index, a in zip(replicas.index_map[device], arrays, strict=True):
            np.testing.assert_array_equal(a.get(), x[index])


@pytest.mark.parametrize("other", MAPS)
@pytest.mark.parametrize("index_map", MAPS)
def test_elementwise(index_map, other):
    x, y = draw(), draw(seed=8)
    kernel = ad.ElementwiseKernel("float64 a, float64 b", "float64 c", "c = (a - b) * (a - b)", "squared_distance")
    for mode in (darray.REPLICA, darray.SUM):
        a, b = darray.distributed_array(x, MAPS[index_map], mode), darray.distributed_array(y, MAPS[other])
        for found, expected in ((a + b, x + y), (2.0 - a, 2 - x), (ad.cos(a * b), np.cos(x * y)), (np.sqrt(a), np.sqrt(x)),
                                (a > b, x > y), (kernel(a, b), (x - y) ** 2), (ad.maximum(b, a), np.maximum(x, y))):
            check(found, expected)
        quotient, rest = divmod(a, b)
        check(quotient, x // y)
        check(rest, x % y)


@pytest.mark.parametrize("index_map", MAPS)
def test_reductions(index_map):
    x = draw(dtype="int32") % 3 + 1
    for mode in MODES.values():
        d = darray.distributed_array(x, MAPS[index_map], mode)
        for axis in (0, 1, -1, None, (0, 1)):
            for name in ("sum", "prod", "max", "min"):
                check(getattr(d, name)(axis=axis), np.asarray(getattr(x, name)(axis=axis)))
        check(np.sum(d, axis=0, keepdims=True), x.sum(axis=0, keepdims=True))
        check((d + 1).max(axis=0) * 2, (x + 1).max(axis=0) * 2)


@pytest.mark.parametrize("index_map", STEPLESS)
def test_products(index_map):
    x, y = draw(), draw((6, 8), seed=8)
    for name in STEPLESS:
        turned = {device: [index[::-1] for index in indices] for device, indices in
                  darray.distributed_array(x, MAPS[name]).index_map.items()}
        for mode in (darray.REPLICA, darray.SUM):
            product = darray.distributed_array(x, MAPS[index_map], mode) @ darray.distributed_array(y, turned)
            assert product.mode is darray.SUM
            check(product, x @ y)
    v = darray.distributed_array(y[:, 0], {0: slice(0, 2), 1: slice(1, 6)})
    check(darray.distributed_array(x, MAPS[index_map]) @ v, x @ y[:, 0])
    check(v @ v, np.asarray(y[:, 0] @ y[:, 0]))
    many = {0: (slice(0, 1), slice(0, 5)), 1: [(slice(0, 1), slice(5, 8)), slice(1, 2)]}
    a, b = draw((2, 8, 6)), draw((2, 6, 3), seed=9)
    check(darray.matmul(darray.distributed_array(a, many), darray.distributed_array(b, {0: slice(0, 1), 2: slice(1, 2)})), a @ b)


def test_products_keep_infinities_in_their_place():
    """Replicas are multiplied once, not as zeros beside an infinity."""
    x, y = draw(), draw((6, 8))
    y[0, 0] = np.inf
    product = darray.distributed_array(x, MAPS["everywhere"]) @ darray.distributed_array(y, MAPS["everywhere"] | {0: slice(0, 3)})
    np.testing.assert_array_equal(product.get(), x @ y)


def test_work_stays_where_the_blocks_are():
    rows = darray.make_2d_index_map([0, 4, 8], [0, 6], [[{0}], [{1}]])
    product = darray.distributed_array(draw(), rows) @ darray.distributed_array(draw((6, 8)), {0: slice(None), 1: slice(None)})
    assert {device: [a.shape for a in arrays] for device, arrays in product.all_chunks().items()} == {0: [(4, 8)], 1: [(4, 8)]}


def test_mistakes():
    d = darray.distributed_array(draw(), MAPS["rows"])
    for function in (lambda: d + ad.ones(SHAPE), lambda: ad.ones(SHAPE) * d, lambda: np.ones(SHAPE) + d, lambda: d @ np.ones((6, 2))):
        with pytest.raises(RuntimeError, match="Mixing a distributed array with a non-distributed"):
            function()
    for function in (d.argmax, d.reshape, lambda: ad.argmax(d, axis=0), lambda: d.T, lambda: np.sort(d), lambda: np.add.reduce(d),
                     lambda: ad.add(d, d, out=ad.ones(SHAPE))):
        with pytest.raises(RuntimeError, match="does not support"):
            function()
    for index_map, error, text in (({9: slice(None)}, ValueError, "device 9 does not exist"),
                                   ({0: slice(None, None, -1)}, ValueError, "step"), ({0: 8}, IndexError, "out of bounds"),
                                   ({0: (0, 0, 0)}, IndexError, "3 parts")):
        with pytest.raises(error, match=text):
            darray.distributed_array(draw(), index_map)
    with pytest.raises(TypeError, match="must be of slices and ints, not str"):
        darray.distributed_array(draw(), {0: "rows"})
    with pytest.raises(ValueError, match="must have its shape"):
        d + darray.distributed_array(draw((6, 8)), {0: slice(None)})
    with pytest.raises(ValueError, match="do not fit"):
        d @ d
    with pytest.raises(ValueError, match="slices have the step 1"):
        darray.distributed_array(draw(), MAPS["strided"]) @ darray.distributed_array(draw((6, 2)), {0: slice(None)})
    with pytest.raises(ValueError, match="begin with 0 and ascend"):
        darray.make_2d_index_map([1, 2], [0, 1], [[{0}]])
    with pytest.raises(ValueError, match="lists of"):
        darray.make_2d_index_map([0, 2], [0, 1], [[{0}, {1}]])


def test_a_device_s_memory_is_its_own(tmp_path):
    """The limit of memory is that of each device."""
    before = ad.session_info()["url"]
    process, url = start_server(str(tmp_path), "--cpu-devices", "2", "--memory", "64M")
    try:
        ad.connect(url)
        first = ad.zeros(50 << 20, "uint8")
        with pytest.raises(MemoryError):
            ad.ones(50 << 20, "uint8").get()
        with ad.cuda.Device(1):
            second = ad.zeros(50 << 20, "uint8")
        assert int(first.sum()) == int(second.sum()) == 0
    finally:
        ad.connect(before)
        process.kill()
        process.wait()
