"""Programs of others that know CuPy: their own tests pass on arrayd's."""
import importlib.util
import os
import pathlib
import re

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("ARRAYD_BUILD", TOP / "build/release"))
_spec = importlib.util.spec_from_file_location("programs", TOP / "tests/conformance/programs/programs.py")
programs = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(programs)


@pytest.mark.parametrize("name", programs.PROGRAMS)
def test_program(name):
    try:
        done = programs.run_tests(name, BUILD, BUILD.parent / "programs")
    except programs.NotFetched as error:
        pytest.skip(str(error))
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed and int(passed[1]) >= 3, done.stdout[-1000:]  # the fewest that a program here has
