"""Meshes of devices, and how the axes of an array are split over those of a mesh."""
import math
import operator

import numpy as np

from .. import _core
from ..cuda.device import Device, of_array
from ._layout import Layout, cut_evenly


class Mesh:
    """Devices in a grid whose axes have names.

        mesh = ad.sharding.Mesh([[0, 1], [2, 3]], ("rows", "columns"))

    A device may stand there several times: so one device is enough to try what a program does with several.
    Parameters: devices: cuda.Device objects or their numbers, in nested sequences or an array of one dimension for each
    name; "all": all of the server's, along one axis. axis_names: a name, or a sequence of names.
    Attributes: devices: numpy.ndarray of cuda.Device. axis_names: tuple of names. shape: dict: the number of devices along
    each axis, by its name. size: how many there are in all.
    Raises: ValueError for a device that does not exist, no device, a name that is there twice, and another number of names
    than dimensions; TypeError for a name that is no str.
    Source: jax.sharding.Mesh
    """

    def __init__(self, devices, axis_names):
        names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        if not all(isinstance(name, str) for name in names):
            raise TypeError(f"axis_names must be names, not {axis_names!r}")
        if len(set(names)) != len(names):
            raise ValueError(f"axis_names has a name twice: {names}")
        grid = np.array(list_devices() if isinstance(devices, str) and devices == "all" else devices, object)
        if grid.ndim != len(names):
            raise ValueError(f"devices has {grid.ndim} dimensions and axis_names {len(names)} names: a mesh has a name for "
                             "each dimension")
        if not grid.size:
            raise ValueError("devices is empty: a mesh has one device or more")
        self.devices = np.empty(grid.shape, object)
        for at, device in np.ndenumerate(grid):
            self.devices[at] = Device(device)
        self.devices.setflags(write=False)
        self.axis_names = names
        self._places = tuple(self.devices.flat)
        self._key = tuple(device.id for device in self._places), self.devices.shape, names

    @property
    def shape(self):
        return dict(zip(self.axis_names, self.devices.shape))

    @property
    def size(self):
        return self.devices.size

    def _count(self, names):
        """How many parts make an axis that is split over the named axes of the mesh."""
        shape = self.shape
        return math.prod(shape[name] for name in names)

    def _coordinates(self):
        """The place of each device in the grid, a dict by the axes' names, in the order of _places."""
        return [dict(zip(self.axis_names, at)) for at in np.ndindex(self.devices.shape)]

    def __eq__(self, other):
        return self._key == other._key if isinstance(other, Mesh) else NotImplemented

    def __hash__(self):
        return hash(self._key)

    def __reduce__(self):
        return Mesh, (np.array([device.id for device in self._places], object).reshape(self.devices.shape), self.axis_names)

    def __repr__(self):
        axes = ", ".join(f"{name!r}: {n}" for name, n in self.shape.items())
        return f"Mesh({{{axes}}}, devices {[device.id for device in self._places]})"


def list_devices():
    """The devices that the server has.

    Returns: list of cuda.Device, in the order of their numbers.
    Raises: ConnectionError when there is no server.
    Source: jax.devices
    """
    return [of_array(number) for number in range(_core.session_info()["devices"])]


def make_mesh(axis_shapes, axis_names, *, devices=None):
    """A mesh of the first devices of the server.

    Parameters: axis_shapes: how many devices there are along each axis. axis_names: the axes' names. devices: those to take
    instead of the server's.
    Returns: Mesh.
    Raises: ValueError where there are not so many devices; as Mesh.
    Source: jax.make_mesh
    """
    shape = tuple(operator.index(n) for n in ((axis_shapes,) if np.ndim(axis_shapes) == 0 else axis_shapes))
    found = list(list_devices() if devices is None else devices)
    if any(n < 1 for n in shape) or math.prod(shape) > len(found):
        raise ValueError(f"axis_shapes {shape} asks for {math.prod(shape)} devices, and there are {len(found)}")
    chosen = np.empty(math.prod(shape), object)
    chosen[:] = found[:chosen.size]
    return Mesh(chosen.reshape(shape), axis_names)


class PartitionSpec(tuple):
    """For each axis of an array the axis of the mesh over which it is split: a name, a tuple of names (the first one
    varies slowest), or None. Axes that are not mentioned are not split, and over axes of the mesh that are not mentioned
    the array is replicated.

        P = ad.sharding.PartitionSpec
        P("rows", None)         P(("rows", "columns"))          P()

    Raises: TypeError for anything else.
    Source: jax.sharding.PartitionSpec
    """

    def __new__(cls, *parts):
        for part in parts:
            names = part if isinstance(part, tuple) else (part,)
            if part is not None and not all(isinstance(name, str) for name in names):
                raise TypeError(f"a part of a PartitionSpec must be a name, a tuple of names or None, not {part!r}")
        return super().__new__(cls, parts)

    def __getnewargs__(self):
        return tuple(self)

    def __repr__(self):
        return f"PartitionSpec({', '.join(map(repr, self))})"


class NamedSharding:
    """How an array lies on the devices of a mesh. Axes may be split unevenly: as numpy.array_split does, the first parts
    have one element more; there may be parts without elements.

    Parameters: mesh: Mesh. spec: PartitionSpec.
    Attributes: mesh, spec. device_set: the devices. is_fully_replicated: whether each device has all elements.
    Raises: TypeError for other objects; ValueError for a name that the mesh does not have, or that comes twice.
    Source: jax.sharding.NamedSharding
    """

    def __init__(self, mesh, spec):
        if not isinstance(mesh, Mesh):
            raise TypeError(f"mesh must be a sharding.Mesh, not {type(mesh).__name__}")
        if not isinstance(spec, PartitionSpec):
            raise TypeError(f"spec must be a sharding.PartitionSpec, not {type(spec).__name__}")
        self._splits = tuple(() if part is None else part if isinstance(part, tuple) else (part,) for part in spec)
        used = [name for names in self._splits for name in names]
        for name in used:
            if name not in mesh.axis_names:
                raise ValueError(f"spec names the axis {name!r}, and the axes of the mesh are {mesh.axis_names}")
            if used.count(name) > 1:
                raise ValueError(f"spec names the axis {name!r} twice: an axis of the mesh splits one axis of an array")
        self.mesh, self.spec = mesh, spec

    @property
    def device_set(self):
        return set(self.mesh._places)

    @property
    def is_fully_replicated(self):
        return all(self.mesh._count(names) == 1 for names in self._splits)

    def _lay_out(self, shape):
        """Where each element of an array of a shape is: a Layout."""
        if len(self._splits) > len(shape):
            raise ValueError(f"spec {self.spec} is for arrays of {len(self._splits)} dimensions or more, and the array has "
                             f"{len(shape)}: its shape is {tuple(shape)}")
        splits = self._splits + ((),) * (len(shape) - len(self._splits))
        return Layout(self.mesh, splits, tuple(cut_evenly(n, self.mesh._count(names)) for n, names in zip(shape, splits)))

    def devices_indices_map(self, global_shape):
        """Tell which part of an array each device has.

        Parameters: global_shape: the array's shape.
        Returns: dict: tuples of slices by cuda.Device.
        Raises: ValueError for a shape with fewer dimensions than the spec.
        Source: jax.sharding.Sharding.devices_indices_map
        """
        return dict(zip(self.mesh._places, self._lay_out(tuple(global_shape)).indices))

    def shard_shape(self, global_shape):
        """The shape of the largest part of an array, which is the first one.

        Parameters: global_shape: the array's shape.
        Returns: tuple of ints.
        Raises: ValueError for a shape with fewer dimensions than the spec.
        Source: jax.sharding.Sharding.shard_shape
        """
        return self._lay_out(tuple(global_shape)).shapes[0]

    def __eq__(self, other):
        if not isinstance(other, NamedSharding):
            return NotImplemented
        return self.mesh == other.mesh and _strip(self._splits) == _strip(other._splits)

    def __hash__(self):
        return hash((self.mesh, _strip(self._splits)))

    def __repr__(self):
        return f"NamedSharding({self.mesh}, {self.spec})"


def _strip(splits):
    """Splits without the axes at the end that are not split."""
    n = len(splits)
    while n and not splits[n - 1]:
        n -= 1
    return splits[:n]


def make_spec(splits):
    """The PartitionSpec for tuples of names."""
    return PartitionSpec(*(None if not names else names[0] if len(names) == 1 else tuple(names) for names in splits))


def split_longest(mesh, shape):
    """The layout in which the longest axis of a shape is split over the whole mesh."""
    spec = [None] * len(shape)
    if shape:
        spec[shape.index(max(shape))] = mesh.axis_names
    return NamedSharding(mesh, PartitionSpec(*spec))._lay_out(shape)


def find_layout(target, shape):
    """The layout of an array of a shape for "all" or a NamedSharding; None for anything else."""
    if isinstance(target, str) and target == "all":
        return split_longest(Mesh("all", "devices"), tuple(shape))
    return target._lay_out(tuple(shape)) if isinstance(target, NamedSharding) else None
