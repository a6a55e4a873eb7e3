"""Settings of transforms, under cupy.fft.config's names: what a program may set, and why some of it cannot be had.

enable_nd_planning: several axes are transformed by one plan wherever there is one; to set it changes nothing.
use_multi_gpus: False: a transform runs on the device where its array lies.
"""
enable_nd_planning = True
use_multi_gpus = False

_PLANS = "the server keeps the plans of its devices, those that were last used, and does not tell which they are"
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


get_plan_cache = _cannot("get_plan_cache", _PLANS)
show_plan_cache_info = _cannot("show_plan_cache_info", _PLANS)
set_cufft_gpus = _cannot("set_cufft_gpus", _SEVERAL)
set_cufft_callbacks = _cannot("set_cufft_callbacks", _KERNELS)
