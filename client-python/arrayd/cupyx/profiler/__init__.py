"""Measuring: how long calls take here and on the device, what a block sends and waits for."""
from ._blocks import counters, profile, time_range
from ._magic import load_ipython_extension
from ._time import benchmark

__all__ = ["benchmark", "counters", "load_ipython_extension", "profile", "time_range"]
