"""The tests that scikit-learn and SciPy publish, and use, for array API libraries, run with arrayd as the library."""
import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest
import scipy
import sklearn

from patience import PATIENCE

HERE = pathlib.Path(__file__).parent
# The first converts its result with numpy.asarray, the second wants an error of lazy libraries, and the third takes
# long in all its forms.
LEFT_OUT = ["test_label_binarize_unsigned_integer_overflow", "test_array_api_lazy",
            "(test_logistic_regression_array_api_compliance and not dict-True)"]
# Parts of SciPy that need none of its own compiled functions.
PARTS = """_lib cluster constants fft/tests/test_basic.py fft/tests/test_fftlog.py fft/tests/test_helper.py
linalg/tests/test_procrustes.py linalg/tests/test_special_matrices.py""".split()
# The package, which of its files, which of their tests (options, and words that no folder has in its name), and how
# many there are at least.
SUITES = {"sklearn": (sklearn, lambda top: files_with(top, "yield_namespace"), [], ["arrayd-None"], 900),
          "scipy": (scipy, lambda top: [top / part for part in PARTS], ["-m", "array_api_backends"], [], 2000)}


def files_with(top, text):
    """The test files that hold a text."""
    return [path for path in sorted(top.rglob("test_*.py")) if text.encode() in path.read_bytes()]


@pytest.mark.parametrize("name", SUITES)
def test_published(name, tmp_path):
    package, files, options, words, least = SUITES[name]
    report = tmp_path / "report.xml"
    wanted = " and ".join([*words, *(f"not {each}" for each in LEFT_OUT)])
    environment = {**os.environ, "SCIPY_ARRAY_API": "1", "PYTHONDONTWRITEBYTECODE": "1",
                   "PYTHONPATH": os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(HERE)])}
    command = [sys.executable, "-m", "pytest", "-q", "-p", f"published_{name}", "-p", "no:cacheprovider", "-W",
               "ignore", "--tb=line", "-c", os.devnull, f"--rootdir={tmp_path}", f"--junitxml={report}", *options,
               "-k", wanted, *files(pathlib.Path(package.__file__).parent)]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=5 * PATIENCE)
    assert report.exists(), done.stdout[-3000:] + done.stderr[-3000:]
    cases = list(ElementTree.parse(report).iter("testcase"))
    bad = [case.get("name") for case in cases if {child.tag for child in case} & {"failure", "error"}]
    passed = sum(1 for case in cases if not len(case))
    assert not bad and done.returncode == 0, f"{bad[:20]}\n{done.stdout[-3000:]}"
    assert passed >= least, re.sub(r"\n+", "\n", done.stdout[-1000:])
