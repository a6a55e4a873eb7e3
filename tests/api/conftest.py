"""The server of the ops tests; SciPy and scikit-learn with their array API on, which SciPy reads when imported."""
import importlib.util
import os
import pathlib
import sys

os.environ["SCIPY_ARRAY_API"] = "1"
_path = pathlib.Path(__file__).parents[1] / "ops" / "conftest.py"
_spec = importlib.util.spec_from_file_location("ops_conftest", _path)
_ops = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_ops)
pytest_configure, pytest_unconfigure = _ops.pytest_configure, _ops.pytest_unconfigure
pytest_runtest_makereport = _ops.pytest_runtest_makereport
start_server, BUILD = _ops.start_server, _ops.BUILD
sys.path.append(str(pathlib.Path(__file__).parent))


def end_servers(*processes):
    for process in processes:
        process.kill()
        process.wait()
