"""Arrays over several devices, with JAX's words.

    P = ad.sharding.PartitionSpec
    mesh = ad.sharding.Mesh([[0, 1], [2, 3]], ("rows", "columns"))
    x = ad.device_put(x, ad.sharding.NamedSharding(mesh, P("rows", "columns")))
    y = ad.zeros(1 << 30, device="all")     # over all devices of the server, split along the longest axis
    z = (x @ x.T).sum(axis=0)               # each device computes what it has; what it lacks is brought to it

         columns ──▶           Each device has a box of the array. Operations are sent to all devices without waiting, so
    rows ┌───┬───┐             they run at one time.
      │  │ 0 │ 1 │
      ▼  ├───┼───┤
         │ 2 │ 3 │
         └───┴───┘
"""
from ._array import Shard, ShardedArray, device_put
from ._mesh import Mesh, NamedSharding, PartitionSpec, list_devices, make_mesh
from ._move import moved_bytes

__all__ = ["Mesh", "NamedSharding", "PartitionSpec", "Shard", "ShardedArray", "device_put", "list_devices", "make_mesh",
           "moved_bytes"]


def _install():
    from . import _dispatch
    _dispatch.install()


_install()
del _install
