"""Marks for tests that need GPUs or time."""


def _pytest():
    try:
        import pytest
    except ImportError as error:
        raise RuntimeError(f"arrayd.testing's marks need pytest: {error}") from None
    return pytest


def gpu(*args, **kwargs):
    """pytest.mark.gpu.

    Source: cupy.testing.gpu
    """
    return _pytest().mark.gpu(*args, **kwargs)


def slow(*args, **kwargs):
    """pytest.mark.slow.

    Source: cupy.testing.slow
    """
    return _pytest().mark.slow(*args, **kwargs)


def multi_gpu(gpu_num):
    """A decorator that marks a test with pytest.mark.multi_gpu and skips it where the server has fewer devices.

    Parameters: gpu_num: how many the test needs.
    Returns: decorator.
    Raises: ValueError for less than two.
    Source: cupy.testing.multi_gpu
    """
    if gpu_num < 2:
        raise ValueError(f"gpu_num must be at least 2, not {gpu_num}")
    mark = _pytest().mark

    def decorator(test):
        from ..cuda.runtime import getDeviceCount
        return mark.skipif(getDeviceCount() < gpu_num, reason=f"{gpu_num} GPUs required")(mark.multi_gpu(test))
    return decorator
