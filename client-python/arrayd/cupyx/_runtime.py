"""Facts about the client and the server."""
import importlib.metadata
import platform

import numpy as np

from .. import _core


class _RuntimeInfo:
    """Versions and devices; str() makes a table of them.

    Attributes: cupy_version (of the CuPy whose names these are), arrayd_version, python_version, numpy_version,
    scipy_version (None: not installed), platform: of this process. server, url, backend, protocol: of the connection. devices: list of dicts (name, compute_capability,
    memory), empty unless full.
    """

    def __init__(self, full):
        from ..cuda import Device
        from ..cupy import VERSION
        self.cupy_version = VERSION
        info = _core.session_info()
        self.arrayd_version, self.numpy_version = _core.version(), np.__version__
        self.python_version, self.platform = platform.python_version(), platform.platform()
        try:
            self.scipy_version = importlib.metadata.version("scipy")
        except importlib.metadata.PackageNotFoundError:
            self.scipy_version = None
        self.server, self.url, self.backend = info["server"], info["url"], info["backend"]
        self.protocol = info["version"]
        self.devices = [{"name": device.name, "compute_capability": device.compute_capability,
                         "memory": device.mem_info[1]}
                        for device in map(Device, range(info["devices"] if full else 0))]

    def __str__(self):
        rows = [("OS", self.platform), ("Python Version", self.python_version), ("arrayd Version", self.arrayd_version),
                ("CuPy Version", f"{self.cupy_version} (its names)"), ("NumPy Version", self.numpy_version),
                ("SciPy Version", self.scipy_version), ("Server", self.server),
                ("URL", self.url), ("Backend", self.backend), ("Protocol Version", self.protocol)]
        for i, device in enumerate(self.devices):
            rows += [(f"Device {i} Name", device["name"]),
                     (f"Device {i} Compute Capability", device["compute_capability"]),
                     (f"Device {i} Memory", f"{device['memory'] / 2**30:.1f} GiB")]
        return "".join(f"{name:<28}: {value}\n" for name, value in rows)


def get_runtime_info(*, full=True):
    """Versions of the package, of NumPy and of the server, and the server's devices. This process has no CUDA, so there
    are no versions of its libraries.

    Parameters: full: ask the server about each device (a round trip each).
    Returns: object whose str() is a table.
    Raises: ConnectionError when there is no server.
    Source: cupyx.get_runtime_info
    """
    return _RuntimeInfo(full)
