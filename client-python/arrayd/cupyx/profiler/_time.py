"""Timing calls."""
import math
import time

import numpy as np

from ... import cuda


class _PerfCaseResult:
    """The measurements of benchmark; str() gives means, deviations and extremes.

    Attributes: name. cpu_times: seconds that each call took in this process, shape (n_repeat,). gpu_times: seconds
    between the call's beginning and end on each device, shape (number of devices, n_repeat).
    """

    def __init__(self, name, times, devices):
        self.name, self._times, self._devices = name, times, devices

    @property
    def cpu_times(self):
        """Seconds in this process, of each call."""
        return self._times[0]

    @property
    def gpu_times(self):
        """Seconds on each device, of each call."""
        return self._times[1:]

    def to_str(self, show_gpu=False):
        """A line of text.

        Parameters: show_gpu: with the devices' times, as GPU and their numbers, whatever the server computes on.
        Returns: str, in microseconds.
        """
        parts = [_spread("CPU", self._times[0])]
        if show_gpu:
            parts += [_spread(f"GPU-{d}", t) for d, t in zip(self._devices, self._times[1:])]
        return f"{self.name:<20}:{' '.join(parts)}"

    def __str__(self):
        return self.to_str(show_gpu=True)

    __repr__ = __str__


def _spread(label, seconds):
    t = seconds * 1e6
    text = f"    {label}:{t.mean():10.3f} us"
    return text + (f"   +/-{t.std():7.3f} (min:{t.min():10.3f} / max:{t.max():10.3f}) us" if t.size > 1 else "")


_ARGUMENTS = {"args": tuple, "kwargs": dict, "n_repeat": int, "name": str, "n_warmup": int,
              "max_duration": (int, float), "devices": tuple}


def benchmark(func, args=(), kwargs={}, n_repeat=10000, *, name=None, n_warmup=10, max_duration=math.inf, devices=None):
    """Time calls of a function: how long each takes until it returns (operations are sent then, not complete), and by
    events on the device. Before the next call the device is waited for, outside of the times.

    Parameters: func: what is called. args: tuple. kwargs: dict. n_repeat: how often. name: for the report, the
    function's unless given. n_warmup: calls before that are not timed. max_duration: seconds after which it stops.
    devices: tuple of the numbers of the devices that are timed, the current one unless given.
    Returns: an object with cpu_times, gpu_times (seconds) and to_str(show_gpu); str() is a report. On a server without
    a GPU gpu_times are those of its own operations.
    Raises: ValueError for arguments of another kind, or less than one call.
    Source: cupyx.profiler.benchmark
    """
    if not callable(func):
        raise ValueError("`func` should be a callable object.")
    name = getattr(func, "__name__", repr(func)) if name is None else name
    devices = (cuda.get_device_id(),) if devices is None else devices
    given = {"args": args, "kwargs": kwargs, "n_repeat": n_repeat, "name": name, "n_warmup": n_warmup,
             "max_duration": max_duration, "devices": devices}
    for argument, kind in _ARGUMENTS.items():
        if not isinstance(given[argument], kind):
            raise ValueError(f"`{argument}` should be of type {getattr(kind, '__name__', 'float')}.")
    if n_repeat < 1:
        raise ValueError("`n_repeat` should be at least 1.")
    for _ in range(n_warmup):
        func(*args, **kwargs)
    return _PerfCaseResult(name, _repeated(func, args, kwargs, n_repeat, max_duration, devices), devices)


def _repeated(func, args, kwargs, n_repeat, max_duration, devices):
    """Seconds: a row for this process and one for each device."""
    first, last = [cuda.Event() for _ in devices], [cuda.Event() for _ in devices]
    _record(last, devices)
    for event in last:
        event.synchronize()
    times, spent = [], 0.0
    while len(times) < n_repeat and spent <= max_duration:
        _record(first, devices)
        start = time.perf_counter()
        func(*args, **kwargs)
        here = time.perf_counter() - start
        _record(last, devices)
        times.append([here, *(cuda.get_elapsed_time(*pair) * 1e-3 for pair in zip(first, last))])
        spent += time.perf_counter() - start
    return np.array(times).T


def _record(events, devices):
    for event, device in zip(events, devices):
        with cuda.Device(device):
            event.record()
