"""The model of resume and of the journal (protocol/resume.pml): the checker finds no fault in it, and one in each mutant."""
import re
import shutil
import subprocess

import pytest

from commands import TOP

MODEL = TOP / "protocol" / "resume.pml"
MUTANTS = sorted(set(re.findall(r"#(?:ifn?def) (MUTANT_\w+)", MODEL.read_text())))
BOUNDS = [(1, 1), (2, 0), (0, 2)]  # connections that break, workers that are killed
pytestmark = pytest.mark.skipif(not shutil.which("spin"), reason="spin is not installed")


def check_model(folder, breaks, kills, *defines):
    """Return what the checker prints when it has visited every state, or found a fault."""
    flags = [f"-DBREAKS={breaks}", f"-DKILLS={kills}", *(f"-D{name}" for name in defines)]
    shutil.copy(MODEL, folder)
    subprocess.run(["spin", "-a", *flags, MODEL.name], cwd=folder, check=True, stdout=subprocess.PIPE)
    subprocess.run(["gcc", "-O1", "-w", "-DSAFETY", "-DCOLLAPSE", "-o", "pan", "pan.c"], cwd=folder, check=True)
    return subprocess.run(["./pan", "-m100000"], cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("breaks,kills", [*BOUNDS, (2, 1), (1, 2)])
def test_the_model_has_no_fault(tmp_path, breaks, kills):
    said = check_model(tmp_path, breaks, kills)
    assert "errors: 0" in said and "Search not completed" not in said, said
    states = int(re.search(r"(\d+) states, stored", said)[1])
    assert states > 100_000  # fewer: the model does not get far


@pytest.mark.parametrize("mutant", MUTANTS)
def test_each_mutant_has_one(tmp_path, mutant):
    said = check_model(tmp_path, *BOUNDS[0], mutant)
    assert re.search(r"pan:1: (assertion violated|invalid end state)", said), said


def test_there_are_mutants():
    assert len(MUTANTS) >= 8
