"""The Array API standard's own names: the namespace of an array, devices, and what the library says of itself."""
import numpy as np

from .. import _base, _core

VERSION = "2024.12"
_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")
_MAX_NDIM = 32  # AD_MAX_NDIM of protocol
_KINDS = {
    "bool": "bool",
    "signed integer": "int8 int16 int32 int64",
    "unsigned integer": "uint8 uint16 uint32 uint64",
    "integral": "int8 int16 int32 int64 uint8 uint16 uint32 uint64",
    "real floating": "float32 float64",
    "complex floating": "complex64 complex128",
    "numeric": "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128",
}
_KINDS[None] = "bool " + _KINDS["numeric"]


def array_namespace(self, /, *, api_version=None):
    """The module whose functions take this array: arrayd.

    Parameters: api_version: a version of the standard, such as "2024.12"; the newest that arrayd has unless given.
    Returns: module.
    Raises: ValueError for a version that arrayd does not have.
    Source: Array API standard, array.__array_namespace__
    """
    if api_version is not None and api_version not in _VERSIONS:
        raise ValueError(f"api_version {api_version!r}: arrayd has the Array API standard's {', '.join(_VERSIONS)}")
    import arrayd
    return arrayd


def to_device(self, device, /, *, stream=None):
    """The array on a device: itself when it lies there, else a copy.

    Parameters: device: a cuda.Device or its number. stream: the cuda.Stream to copy on, the device's current one unless
    given.
    Returns: ndarray.
    Raises: ValueError for a device that does not exist or is not of arrayd; TypeError for another stream.
    Source: Array API standard, array.to_device
    """
    return _base.on_device(device, _moved, self, stream)


def _moved(a, stream):
    from .._array.creation import asarray
    from ..cuda import Stream
    if stream is None:
        return asarray(a)
    if not isinstance(stream, Stream):
        raise TypeError(f"stream must be an arrayd.cuda.Stream, not {type(stream).__name__}")
    with stream:
        return asarray(a)


def device_of(number):
    """The cuda.Device of an array. Importing arrayd.cuda puts its own function in the place of this one."""
    from ..cuda.device import of_array
    return of_array(number)


class __array_namespace_info__:
    """The standard's inspection functions, which describe arrayd.

    Source: Array API standard, __array_namespace_info__
    """

    def capabilities(self):
        """Return what a library may do or not by the standard.

        Returns: dict: boolean indexing, data-dependent shapes, max dimensions.
        Source: Array API standard, info.capabilities
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": _MAX_NDIM}

    def default_device(self):
        """Where a new array lies unless something else is said: the thread's current device.

        Returns: cuda.Device.
        Raises: ConnectionError when there is no server.
        Source: Array API standard, info.default_device
        """
        from ..cuda import Device
        return Device()

    def devices(self):
        """The server's devices.

        Returns: list of cuda.Device.
        Raises: ConnectionError when there is no server.
        Source: Array API standard, info.devices
        """
        from ..cuda import Device
        return [Device(number) for number in range(_core.session_info()["devices"])]

    def default_dtypes(self, *, device=None):
        """The types of new arrays unless something else is said.

        Parameters: device: a cuda.Device or its number; they all have the same.
        Returns: dict of numpy.dtype: real floating, complex floating, integral, indexing.
        Raises: ValueError for a device that does not exist or is not of arrayd.
        Source: Array API standard, info.default_dtypes
        """
        _check_device(device)
        return {"real floating": np.dtype(np.float64), "complex floating": np.dtype(np.complex128),
                "integral": np.dtype(np.int64), "indexing": np.dtype(np.int64)}

    def dtypes(self, *, device=None, kind=None):
        """Return the standard's types that arrayd has: all of them.

        Parameters: device: as default_dtypes. kind: one of the standard's kinds such as "integral", or a tuple of them;
        all unless given.
        Returns: dict of numpy.dtype by name.
        Raises: ValueError for another kind, and as default_dtypes.
        Source: Array API standard, info.dtypes
        """
        _check_device(device)
        names = []
        for one in kind if isinstance(kind, tuple) else (kind,):
            if not isinstance(one, (str, type(None))) or one not in _KINDS:
                raise ValueError(f"unsupported kind: {one!r}")
            names += _KINDS[one].split()
        return {name: np.dtype(name) for name in names}


def _check_device(device):
    if device is not None:
        _base.on_device(device, int)
