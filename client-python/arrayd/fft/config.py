"""Settings of transforms, under cupy.fft.config's names: what a program may set, and why some of it cannot be had.

enable_nd_planning: several axes are transformed by one plan wherever there is one; to set it changes nothing but what it
says, and both warn, as in CuPy 14.
use_multi_gpus: False: a transform runs on the device where its array lies.
"""
import sys
import types
import warnings

from .._config import stat

use_multi_gpus = False

_PLANS = "the server keeps plans for all its users, those that were last used"
_SEVERAL = "a transform runs on the device where its array lies"
_KERNELS = "users' kernels are planned"


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
    """What is known of the plans that the server keeps for its devices: those that were used last, for all its users.

    Source: cupy.fft.PlanCache
    """

    def get_curr_size(self):
        """How many there are.

        Returns: int.
        Raises: ConnectionError when the server has gone.
        Source: cupy.fft.PlanCache.get_curr_size
        """
        return stat()["fft_plans"]

    def get_size(self):
        """How many are kept at most.

        Returns: int.
        Raises: as get_curr_size.
        Source: cupy.fft.PlanCache.get_size
        """
        return stat()["fft_plans_most"]

    def get_curr_memsize(self):
        """The bytes of device memory that they take, about; 0 on the CPU.

        Returns: int.
        Raises: as get_curr_size.
        Source: cupy.fft.PlanCache.get_curr_memsize
        """
        return stat()["fft_plan_bytes"]

    def show_info(self):
        """Print all that.

        Returns: None.
        Raises: as get_curr_size.
        Source: cupy.fft.PlanCache.show_info
        """
        print(f"plans of Fourier transforms: {self.get_curr_size()} of at most {self.get_size()}, "
              f"{self.get_curr_memsize()} bytes on the devices")

    clear = _cannot("get_plan_cache().clear", _PLANS)
    set_size = _cannot("get_plan_cache().set_size", _PLANS)
    set_memsize = _cannot("get_plan_cache().set_memsize", _PLANS)


def get_plan_cache():
    """The plans that the server keeps.

    Returns: PlanCache.
    Raises: nothing.
    Source: cupy.fft.config.get_plan_cache
    """
    return PlanCache()


def show_plan_cache_info():
    """Print how many plans the server keeps.

    Returns: None.
    Raises: ConnectionError when the server has gone.
    Source: cupy.fft.config.show_plan_cache_info
    """
    get_plan_cache().show_info()


set_cufft_gpus = _cannot("set_cufft_gpus", _SEVERAL)
set_cufft_callbacks = _cannot("set_cufft_callbacks", _KERNELS)


class _Config(types.ModuleType):
    """This module, with a setting that warns."""

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
