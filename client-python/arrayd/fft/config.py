"""Settings of transforms, under cupy.fft.config's names: what a program may set, and why some of it cannot be had.

enable_nd_planning: several axes are transformed by one plan wherever there is one; to set it changes nothing but what it
says, and both warn, as in CuPy 14.
use_multi_gpus: False: a transform runs on the device where its array lies.
"""
import operator
import sys
import types
import warnings

from .._config import stat
from ._callbacks import set_cufft_callbacks  # noqa: F401

use_multi_gpus = False

_SEVERAL = "a transform runs on the device where its array lies"


def _cannot(name, reason):
    def refuse(*args, **kwargs):
        raise NotImplementedError(f"arrayd.fft.config.{name}: {reason}")
    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"""Not to be had: {reason}.

    Parameters: args, kwargs: CuPy's.
    Returns: nothing.
    Raises: NotImplementedError.
    Source: cupy.fft.config.{name}
    """
    return refuse


class PlanCache:
    """The connection's view of the plans that the server keeps for its devices: those that were used last, for all its
    users. The settings here hold for the view; how many the server keeps is its own.

    Source: cupy.fft.PlanCache
    """

    def __init__(self):
        self._size = self._memsize = None
        self._before = (0, 0)

    def _now(self):
        """Plans and their bytes that have come since clear()."""
        counters = stat()
        return tuple(max(0, counters[name] - before) for name, before in
                     zip(("fft_plans", "fft_plan_bytes"), self._before))

    def get_curr_size(self):
        """How many there are, or have come since clear().

        Returns: int.
        Raises: ConnectionError when the server has gone.
        Source: cupy.fft.PlanCache.get_curr_size
        """
        return self._now()[0]

    def get_size(self):
        """How many are kept at most.

        Returns: int.
        Raises: as get_curr_size.
        Source: cupy.fft.PlanCache.get_size
        """
        return stat()["fft_plans_most"] if self._size is None else self._size

    def get_curr_memsize(self):
        """The bytes of device memory that these take, about; 0 on the CPU.

        Returns: int.
        Raises: as get_curr_size.
        Source: cupy.fft.PlanCache.get_curr_memsize
        """
        return self._now()[1]

    def get_memsize(self):
        """Return what set_memsize has said; -1: no limit.

        Returns: int.
        Source: cupy.fft.PlanCache.get_memsize
        """
        return -1 if self._memsize is None else self._memsize

    def set_size(self, size):
        """Say how many plans the program wants: get_size() tells it. The server goes on as it is set up.

        Parameters: size: int; -1: no limit.
        Returns: None.
        Raises: ValueError for less than -1.
        Source: cupy.fft.PlanCache.set_size
        """
        self._size = _limit("size", size)

    def set_memsize(self, memsize):
        """Say how many bytes the program wants plans to take: get_memsize() tells it. The server goes on as it is set up.

        Parameters: memsize: int; -1: no limit.
        Returns: None.
        Raises: ValueError for less than -1.
        Source: cupy.fft.PlanCache.set_memsize
        """
        self._memsize = _limit("memsize", memsize)

    def clear(self):
        """Count from here on. The plans stay with the server, which drops those that were used longest ago when it needs
        the room.

        Returns: None.
        Raises: as get_curr_size.
        Source: cupy.fft.PlanCache.clear
        """
        counters = stat()
        self._before = counters["fft_plans"], counters["fft_plan_bytes"]

    def show_info(self):
        """Print all that.

        Returns: None.
        Raises: as get_curr_size.
        Source: cupy.fft.PlanCache.show_info
        """
        print(f"plans of Fourier transforms: {self.get_curr_size()} of at most {self.get_size()}, "
              f"{self.get_curr_memsize()} bytes on the devices")


def _limit(name, value):
    value = operator.index(value)
    if value < -1:
        raise ValueError(f"{name} must be a number of at least 0, or -1 for no limit, not {value}")
    return value


_cache = PlanCache()


def get_plan_cache():
    """The view of the plans that the server keeps.

    Returns: PlanCache.
    Raises: nothing.
    Source: cupy.fft.config.get_plan_cache
    """
    return _cache


def show_plan_cache_info():
    """Print how many plans the server keeps.

    Returns: None.
    Raises: ConnectionError when the server has gone.
    Source: cupy.fft.config.show_plan_cache_info
    """
    get_plan_cache().show_info()


set_cufft_gpus = _cannot("set_cufft_gpus", _SEVERAL)


class _Config(types.ModuleType):
    """The class of this module, with a setting that warns."""

    _nd_planning = True

    @property
    def enable_nd_planning(self):
        self._warn()
        return self._nd_planning

    @enable_nd_planning.setter
    def enable_nd_planning(self, value):
        self._warn()
        self._nd_planning = bool(value)

    @staticmethod
    def _warn():
        warnings.warn("enable_nd_planning is deprecated: several axes are always transformed together where one plan does "
                      "it", DeprecationWarning, stacklevel=3)


sys.modules[__name__].__class__ = _Config
