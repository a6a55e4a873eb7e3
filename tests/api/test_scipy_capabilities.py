"""SciPy's own table of what takes arrays of other libraries, gone through with small inputs."""
import json
import os
import pathlib
import subprocess
import sys

import arrayd as ad

PROGRAM = pathlib.Path(__file__).with_name("capabilities.py")
# Functions that do not give what NumPy's arrays give, and why.
KNOWN = {
    "scipy.ndimage.distance_transform_edt": "differs",  # of an array without zeros, as its documentation says
    "scipy.signal.sosfilt_zi": "raises",  # in SciPy, which fills NumPy's array with another library's
}


def test_every_function_that_takes_arrays_of_others(tmp_path):
    package = pathlib.Path(ad.__file__).parents[1]
    done = subprocess.run([sys.executable, PROGRAM], capture_output=True, text=True, timeout=300, env={
        **os.environ, "PYTHONPATH": str(package)})
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    promised = {name: outcome for name, (taken, outcome) in report.items() if taken}
    wrong = {name: outcome for name, outcome in promised.items() if outcome.startswith(("raises", "differs"))
             and not outcome.startswith(KNOWN.get(name, "nothing"))}
    assert not wrong, "\n".join(f"{name}: {outcome}" for name, outcome in wrong.items())
    assert sum(outcome == "same" for outcome in promised.values()) > 280
    assert all(promised[name].startswith(how) for name, how in KNOWN.items())
