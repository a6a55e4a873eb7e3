"""Calls that programs make of CuPy beside computing: devices, streams, events, pools, pinned memory, copies either way."""
import cupy as cp
import cupyx
import numpy as np
from cupy.cuda import Device, Stream
from cupyx.profiler import profile, time_range

assert int(cp.__version__.split(".")[0]) >= 12
pool, pinned = cp.get_default_memory_pool(), cp.get_default_pinned_memory_pool()
assert cp.cuda.runtime.getDeviceCount() >= 1
with Device(0) as device:
    a = cp.arange(6, dtype=np.float32).reshape(2, 3)
    device = Device(0)
    print(device.id, a.device == Device(0) if hasattr(a, "device") and not isinstance(a, np.ndarray) else True)
stream, other = Stream(non_blocking=True), Stream()
event = cp.cuda.Event()
with stream:
    b = a * 2
    event.record(stream)
other.wait_event(event)
with other, time_range("second", color_id=0):
    c = b + a
stream.synchronize()
other.synchronize()
cp.cuda.get_current_stream().synchronize()
Device(0).synchronize()
host = cupyx.empty_pinned((2, 3), dtype=np.float32)
host[...] = 7
with profile():
    d = cp.asarray(host) @ c.T
print(c.get(), cp.asnumpy(d))
print(isinstance(c, cp.ndarray), cp.get_array_module(c) is cp, type(c.get()) is np.ndarray or True)
print(cp.array_equal(c, cp.asarray(c.get())), c.T.shape, c.nbytes, c.strides, c.flags.c_contiguous)
print(c.astype("f8").dtype, c.dtype.kind, c.ndim, c.size)
e = cp.empty_like(c)
e[...] = np.float32(3)
e[0] = cp.asarray([1, 2, 3])
e.fill(5)
print(e.sum(), (e ** 2).mean(), e.item(0) if e.size else None, e.copy().ravel()[::2], len(e))
print(cp.concatenate([a, e]).shape, cp.vstack([a, e]).T.shape, cp.broadcast_to(a[0], (4, 3)).sum(axis=0))
print(cp.float32(2) * a[0], 1 / (a[1] + 1), -a % 3)
try:
    a @ a
except ValueError as error:
    print("ValueError", "mismatch" in str(error) or "shape" in str(error))
try:
    cp.zeros(3)[5]
except IndexError:
    print("IndexError")
x = cp.linspace(-2, 1, 60)[None, :] + 1j * cp.linspace(-1, 1, 40)[:, None]
z, count = cp.zeros_like(x), cp.zeros(x.shape, dtype=cp.int32)
for _ in range(30):
    z = cp.where(cp.abs(z) <= 2, z * z + x, z)
    count += cp.abs(z) <= 2
print(int(count.sum()), count[20, ::6].tolist())
del z, count
pool.free_all_blocks()
pinned.free_all_blocks()
print(pool.used_bytes() >= 0, pool.total_bytes() >= 0)
