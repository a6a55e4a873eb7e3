"""Calls a function as often as it is asked to."""
import contextlib
import types

import numpy

profile = contextlib.nullcontext


def time_range(message=None, color_id=None, argb_color=None, sync=False):
    return contextlib.nullcontext()


def benchmark(func, args=(), n_repeat=10, n_warmup=2):
    for _ in range(n_repeat + n_warmup):
        func(*args)
    times = numpy.zeros((1, n_repeat))
    return types.SimpleNamespace(name=func.__name__, cpu_times=times[0], gpu_times=times)
