"""Random numbers that are the same for a test every time."""
import contextlib
import functools
import os
import random
import types
import unittest

import numpy as np

_depth = 0


@contextlib.contextmanager
def _fixed():
    """Seeds of Python's, NumPy's and arrayd's generators, and their states back at the end of the outermost block."""
    global _depth
    from .. import random as ours
    states = random.getstate(), np.random.get_state(), ours.get_random_state()
    outermost = _depth == 0
    if outermost:
        fixed = not int(os.environ.get("CUPY_TEST_RANDOM_NONDETERMINISTIC", "0"))
        random.seed(99 if fixed else None)
        np.random.seed(100 if fixed else None)
        ours.set_random_state(ours.RandomState(101 if fixed else None))
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
        if outermost:
            random.setstate(states[0])
            np.random.set_state(states[1])
            ours.set_random_state(states[2])


def generate_seed():
    """A seed, in a test under fix_random: the same one every time.

    Returns: int.
    Raises: RuntimeError elsewhere.
    Source: cupy.testing.generate_seed
    """
    if not _depth:
        raise RuntimeError("random is not set up: generate_seed is for tests under fix_random")
    return np.random.randint(0x7fffffff)


def fix_random():
    """A decorator that fixes the random numbers of a test, or of all tests of a unittest.TestCase.

    Returns: decorator.
    Raises: ValueError for anything else.
    Source: cupy.testing.fix_random
    """
    def decorator(test):
        if isinstance(test, types.FunctionType) and test.__name__.startswith("test_"):
            @functools.wraps(test)
            def wrapper(*args, **kw):
                with _fixed():
                    return test(*args, **kw)
            return wrapper
        if isinstance(test, type) and issubclass(test, unittest.TestCase):
            run = test.run

            def fixed_run(self, result=None):
                with _fixed():
                    return run(self, result)
            test.run = fixed_run
            return test
        raise ValueError(f"Can't apply fix_random to {test}")
    return decorator
