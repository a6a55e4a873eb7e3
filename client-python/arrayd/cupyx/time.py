"""cupyx.time, whose function has moved to the profiler."""
import warnings

__all__ = ["repeat"]


def repeat(func, args=(), kwargs={}, n_repeat=10000, *, name=None, n_warmup=10, max_duration=float("inf"), devices=None):
    """Measure how long a function takes: cupyx.profiler.benchmark.

    Parameters: func, args, kwargs, n_repeat, name, n_warmup, max_duration, devices: as benchmark.
    Returns: what benchmark returns.
    Raises: as benchmark; a UserWarning that it has moved.
    Source: cupyx.time.repeat
    """
    from .profiler import benchmark
    warnings.warn("cupyx.time.repeat is deprecated: use cupyx.profiler.benchmark instead.", stacklevel=2)
    return benchmark(func, args, kwargs, n_repeat, name=name, n_warmup=n_warmup, max_duration=max_duration,
                     devices=devices)
