"""An array whose parts lie on several devices."""
import numpy as np

from .. import _base, _core
from .._array import protocols
from .._base import as_array, ndarray
from ._layout import Layout, cut_evenly
from ._mesh import Mesh, NamedSharding, PartitionSpec, find_layout, make_spec
from ._move import collect, list_pieces, split_array


class Shard:
    """The part of an array that one device has.

    Attributes: device: cuda.Device. index: where it is in the array: a tuple of slices. data: the elements, an ndarray.
    replica_id: 0 for the first part with this index, 1 for the second ...
    Source: jax.Shard
    """

    def __init__(self, device, index, data, replica_id):
        self.device, self.index, self.data, self.replica_id = device, index, data, replica_id

    def __repr__(self):
        return f"Shard(device {self.device.id}, index {self.index}, replica {self.replica_id})"


class ShardedArray(np.lib.mixins.NDArrayOperatorsMixin):
    """An array over several devices. device_put(x, sharding) and zeros(shape, device="all") make one.

    It has NumPy's operators, ufuncs, and those functions and methods that the page "One array over several devices" names.
    Each device computes what it has. Operands that lie otherwise are moved: moved_bytes() counts.

    Attributes: shape, dtype, ndim, size, itemsize, nbytes, T, mT, real, imag: as of an array. sharding: NamedSharding.
    Source: jax.Array
    """

    __array_priority__ = 200
    _is_distributed = True  # for asnumpy()

    def __init__(self, layout, parts):
        self._layout, self._parts = layout, tuple(parts)
        self.dtype = self._parts[0].dtype

    shape = property(lambda self: self._layout.shape)
    ndim = property(lambda self: len(self._layout.shape))
    size = property(lambda self: _base.product(self._layout.shape))
    itemsize = property(lambda self: self.dtype.itemsize)
    nbytes = property(lambda self: self.size * self.dtype.itemsize)
    __hash__ = None

    # ---- where it lies ----

    @property
    def sharding(self):
        """How the array is split: NamedSharding. Parts that slicing left may be less even than device_put would make them."""
        return NamedSharding(self._layout.mesh, make_spec(self._layout.splits))

    @property
    def addressable_shards(self):
        """The parts: a list of Shard, in the order of the mesh's devices."""
        made, seen = [], {}
        for device, index, box, part in zip(self._layout.mesh._places, self._layout.indices, self._layout.boxes, self._parts):
            made.append(Shard(device, index, part, seen.setdefault(box, 0)))
            seen[box] += 1
        return made

    def devices(self):
        """The devices that have parts.

        Returns: set of cuda.Device.
        Source: jax.Array.devices
        """
        return set(self._layout.mesh._places)

    def get(self, stream=None, order="C", out=None, blocking=True):
        """Fetch the elements.

        Parameters: as ndarray.get, but that there is no stream.
        Returns: numpy.ndarray.
        Raises: ValueError for a stream, and for an out of another shape or type; the error of the operation that failed.
        Source: cupy.ndarray.get
        """
        if stream is not None:
            raise ValueError("stream must be None: the parts of an array over several devices lie on streams of their own")
        if out is not None and (out.shape != self.shape or out.dtype != self.dtype):
            raise ValueError(f"out must be an array of shape {self.shape} and type {self.dtype}, not of {out.shape} and "
                             f"{out.dtype}")
        host = np.empty(self.shape, self.dtype, order) if out is None else out
        for place in self._layout.owners:
            host[self._layout.indices[place]] = self._parts[place].get()
        return host

    # ---- Python's protocols ----

    def __repr__(self):
        return (f"<ShardedArray {self.dtype}{list(self.shape)} over devices "
                f"{[device.id for device in self._layout.mesh._places]}, {make_spec(self._layout.splits)}>")

    def __str__(self):
        return str(self.get())

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def item(self, *args):
        """An element as a number of Python's.

        Parameters: args: its index, none where there is one element only.
        Returns: int, float, complex or bool.
        Raises: ValueError for an array of several elements; IndexError.
        Source: numpy.ndarray.item
        """
        return (self[args] if args else self).get().item()

    def tolist(self):
        """The elements in nested lists.

        Returns: list, or a number where there are no dimensions.
        Source: numpy.ndarray.tolist
        """
        return self.get().tolist()

    def __bool__(self):
        return bool(self._one("bool"))

    def __int__(self):
        return int(self._one("int"))

    def __float__(self):
        return float(self._one("float"))

    def __complex__(self):
        return complex(self._one("complex"))

    def __index__(self):
        return self._one("int").__index__()

    def _one(self, kind):
        if self.size != 1:
            raise ValueError("The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()"
                             if kind == "bool" else "only size-1 arrays can be converted to Python scalars")
        return self.get().reshape(())[()]

    def __reduce__(self):
        return _restore, (self._layout, self._parts)

    __array__ = protocols.array

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        from ._dispatch import call_ufunc
        return call_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, function, types, args, kwargs):
        from ._dispatch import call_function
        return call_function(function, args, kwargs)

    def __cupy_override_elementwise_kernel__(self, kernel, *args, **kwargs):
        from ._elementwise import map_parts
        return map_parts(kernel, args, kwargs)

    def __getitem__(self, key):
        from ._indexing import get_item
        return get_item(self, key)

    def __setitem__(self, key, value):
        from ._indexing import set_item
        set_item(self, key, value)

    def __getattr__(self, name):
        if name.startswith("_") or not hasattr(ndarray, name):
            raise AttributeError(f"an array over several devices has no attribute {name!r}")
        raise AttributeError(f"an array over several devices has no {name}: {ONE_DEVICE}")


def _restore(layout, parts):
    """The array of a pickle, whose parts may have come to another device than they are for."""
    return ShardedArray(layout, run_parts(layout, lambda place: parts[place] if parts[place].device.id
                                          == layout.mesh._places[place].id else parts[place].copy()))


ONE_DEVICE = ("ad.device_put(x, ad.cuda.Device(0)) puts it on one device, and x.get() into this process")


def make_like(layout, parts):
    """A ShardedArray, or a tuple of them where each part is a tuple of results."""
    if isinstance(parts[0], tuple):
        return tuple(ShardedArray(layout, [part[k] for part in parts]) for k in range(len(parts[0])))
    return ShardedArray(layout, parts)


def run_parts(layout, function):
    """function(place) on the device of each place."""
    made = []
    for place, device in enumerate(layout.mesh._places):
        with device:
            made.append(function(place))
    return made


def map_whole(x, layout, function):
    """x with each part replaced by function(part), as they are told by a layout."""
    return make_like(layout, run_parts(layout, lambda place: function(x._parts[place])))


def reshard(x, layout, fresh=False):
    """A sharded array as a layout of its shape says. Without `fresh` parts that lie there already are shared."""
    if x._layout.same(layout) and not fresh:
        return x if x._layout is layout else ShardedArray(layout, x._parts)
    return ShardedArray(layout, collect(list_pieces(x), x.dtype, layout.mesh._places, layout.boxes, fresh))


def join_axes(x, axes):
    """x with these axes unsplit, so that each device has what it takes to work along them. The split goes to the longest
    other axis. None: there is no other axis."""
    if not x._layout.is_split(axes):
        return x
    names = x._layout.list_names(axes)
    others = [axis for axis in range(x.ndim) if axis not in axes]
    if not others:
        return None
    return reshard(x, split_over(x._layout.join(axes), max(others, key=lambda axis: x.shape[axis]), names))


def split_over(layout, axis, names):
    """The layout in which an axis is split over more axes of the mesh, too."""
    names = (*layout.splits[axis], *names)
    return layout.replace(axis, names, cut_evenly(layout.shape[axis], layout.mesh._count(names)))


def put_together(x, device):
    """All elements of a sharded array on a device: a new ndarray."""
    return collect(list_pieces(x), x.dtype, [device], [tuple((0, n) for n in x.shape)], fresh=True)[0]


def spread(a, layout):
    """An ndarray as a sharded array: each part is a view of it or lies on another device."""
    return ShardedArray(layout, split_array(a, layout))


def device_put(x, device):
    """An array on other devices.

        P = ad.sharding.PartitionSpec
        mesh = ad.sharding.Mesh([0, 1, 2, 3], "devices")
        x = ad.device_put(x, ad.sharding.NamedSharding(mesh, P("devices")))

    Parameters: x: array, also one over several devices or a DistributedArray of cupyx.distributed.array, or anything that
    array() takes. device: a NamedSharding; "all": all devices of the server, over which the longest axis is split; or a
    cuda.Device or its number.
    Returns: ShardedArray, or ndarray for one device. It is x itself where that lies so already, else has memory of its own.
    Raises: ValueError for a device that does not exist, and for an array with fewer dimensions than the spec; TypeError for
    anything else.
    Source: jax.device_put
    """
    layout = find_layout(device, x.shape if hasattr(x, "shape") else np.shape(x))
    if layout is None:
        return _put_on_one(x, device)
    if hasattr(x, "_collect"):
        return _take_chunks(x, layout)
    if isinstance(x, ShardedArray):
        return x if x._layout.same(layout) and x._layout.splits == layout.splits else reshard(x, layout, fresh=True)
    if isinstance(x, ndarray):
        return ShardedArray(layout, [part.copy() if _core.shares_buffer(part, x) else part for part in split_array(x, layout)])
    return _upload(np.asarray(x) if not _holds_arrays(x) else as_array(x).get(), layout)


def _take_chunks(x, layout):
    """A DistributedArray of cupyx.distributed.array as a sharded one."""
    replicas = x.change_mode(None)
    return ShardedArray(layout, run_parts(layout, lambda place: replicas._collect(
        tuple(slice(*each, 1) for each in layout.boxes[place]))))


def _holds_arrays(x):
    from .._array.creation import is_of_server
    return is_of_server(x)


def _upload(host, layout):
    """A NumPy array as a sharded one: a part for each box, copied to the other devices that have it."""
    made = {}

    def put(place):
        box = layout.boxes[place]
        if box in made:
            return made[box].copy()
        made[box] = as_array(np.ascontiguousarray(host[layout.indices[place]]).reshape(layout.shapes[place]))
        return made[box]

    return ShardedArray(layout, run_parts(layout, put))


def _put_on_one(x, device):
    from ..cuda.device import Device
    if isinstance(device, str) or not isinstance(device, (Device, int, np.integer)):
        raise TypeError(f'device must be "all", a sharding.NamedSharding, a cuda.Device or its number, not {device!r}')
    device = Device(device)
    if isinstance(x, ShardedArray):
        return put_together(x, device)
    if hasattr(x, "_collect"):
        return device_put(x, NamedSharding(Mesh([device], "devices"), PartitionSpec()))._parts[0]
    with device:
        a = as_array(x)
        return a if a.device.id == device.id else a.copy()


def layout_of_one(mesh, shape):
    """The layout of an array that each device of a mesh has whole."""
    return Layout(mesh, ((),) * len(shape), tuple((0, n) for n in shape))
