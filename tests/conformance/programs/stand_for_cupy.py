"""A plugin of pytest: programs that import cupy get arrayd's, and a test that imports what cannot be there is skipped."""
import importlib.abc
import json
import os
import sys

import pytest

import arrayd.cupy

WITHOUT = json.loads(os.environ.get("ARRAYD_PROGRAM_WITHOUT", "{}"))  # why not, by name of the module


class _Absent(importlib.abc.MetaPathFinder):
    """Skips the test that imports one of these modules, or what they are in."""

    def find_spec(self, name, path=None, target=None):
        for module, why in WITHOUT.items():
            if f"{module}.".startswith(f"{name}."):
                pytest.skip(f"{module}: {why}", allow_module_level=True)


sys.meta_path.insert(0, _Absent())
arrayd.cupy.install()
