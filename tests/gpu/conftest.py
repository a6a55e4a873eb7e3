"""The server of the ops tests, with the cuda backend. Without a GPU everything here is skipped."""
import importlib.util
import os
import pathlib
import subprocess

import pytest

os.environ.setdefault("ARRAYD_TEST_BACKEND", "cuda")
_spec = importlib.util.spec_from_file_location("ops_conftest", pathlib.Path(__file__).parents[1] / "ops" / "conftest.py")
_ops = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_ops)
start_server, BUILD, TOP, own_server, servers = (_ops.start_server, _ops.BUILD, _ops.TOP, _ops.own_server,
                                                 _ops.servers)
pytest_runtest_makereport = _ops.pytest_runtest_makereport


def gpus():
    """Return how many GPUs programs see."""
    try:
        there = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True).stdout.count("GPU ")
    except FileNotFoundError:
        return 0
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return there if visible is None else min(there, len(list(filter(None, visible.split(",")))))


def pytest_configure(config):
    config.arrayd_server = None
    if gpus():
        _ops.pytest_configure(config)


pytest_unconfigure = _ops.pytest_unconfigure


def pytest_collection_modifyitems(items):
    if not gpus():
        for item in items:
            item.add_marker(pytest.mark.skip(reason="there is no GPU"))
