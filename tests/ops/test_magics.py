"""%load_ext arrayd and the hook for cells, in a shell of IPython without a notebook around it."""
import json
import os
import re
import subprocess
import sys

import pytest

import arrayd as ad

pytest.importorskip("IPython")
SHELL = """
import contextlib, io, json, sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(colors="NoColor", history_length=0)

def cell(text):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        result = shell.run_cell(text)
    error = result.error_in_exec or result.error_before_exec
    return out.getvalue(), repr(error) if error else None

print(json.dumps([cell(text) for text in json.loads(sys.stdin.read())]), file=sys.stderr)
"""


def cells(tmp_path, url, *texts):
    """Return what each cell prints, and the error that ends it."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "IPYTHONDIR": str(tmp_path / "ipython"),
                   "ARRAYD_URL": url, "ARRAYD_TOP_SECONDS": "0.01"}
    done = subprocess.run([sys.executable, "-c", SHELL], input=json.dumps(texts), capture_output=True, text=True,
                          timeout=120, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stderr.splitlines()[-1])


def test_the_line_below_cells(tmp_path):
    out = cells(tmp_path, os.environ["ARRAYD_URL"], "import arrayd as ad", "%load_ext arrayd", "a = ad.arange(5)",
                "b = (a + 1).sum().item()", "c = 1", "%arrayd line off", "d = ad.ones(3)", "%arrayd line on", "e = ad.ones(4)",
                "n = ad.session_info()['frees']\ndel a\nwhile ad.session_info()['frees'] == n: pass", "%unload_ext arrayd", "f = ad.ones(4)")
    printed = [text for text, error in out]
    assert [error for _, error in out] == [None] * len(out)
    assert re.fullmatch(r"arrayd: 1 operation sent, 0 waits, \d+\.\d+ s\n", printed[2])
    assert re.fullmatch(r"arrayd: \d+ operations? sent, 1 wait, \d+\.\d+ s\n", printed[3])
    assert printed[4] == "" and printed[6] == "" and printed[11] == ""
    assert printed[5] == "the status line is off\n" and printed[7].startswith("the status line is on\n")
    assert re.fullmatch(r"arrayd: \d operations? sent, 0 waits, .*\n", printed[8])
    assert printed[9] == "", "the library frees when it likes"


def test_what_the_magic_shows(tmp_path, own_server):
    _, url = own_server()
    out = cells(tmp_path, url, "%load_ext arrayd", "import arrayd as ad\na = ad.ones(1 << 20)\nad.sync()", "%arrayd line off",
                "%arrayd", "%arrayd top", "%arrayd cancel", "%arrayd nonsense", "%arrayd line", "print(a.sum().item())")
    described, top = out[3][0], out[4][0]
    assert url in described and "8 MiB in 1 array; 8 MiB in 1 session together\n" in described and "0 failed" in described
    head, row = top.splitlines()
    assert head.split() == ["session", "who", "program", "doing", "memory", "operations/s", "device", "%"]
    assert f"uid:{os.getuid()}" in row and re.search(r"  nothing +8 MiB  ", row)
    assert out[5][0] == "cancelled\n"
    assert out[6][1].startswith("UsageError") and "expected status, top, cancel, line on or line off" in out[6][1]
    assert out[7][1] is not None
    assert out[8] == ["1048576.0\n", None], "nothing that was complete is lost"


def test_top_where_there_is_no_control_socket(tmp_path, own_server):
    _, url = own_server("--control", "none")
    out = cells(tmp_path, url, "%load_ext arrayd", "%arrayd top")
    assert out[1][0].startswith("other sessions cannot be seen from here") and url in out[1][0]


CELL = """
endless = ad.broadcast_to(ad.ones((1, 1)), (1 << 22, 1 << 22)).sum()
products = [ad.ones((64, 64)) @ ad.ones((64, 64)) for _ in range(12)]
raise KeyboardInterrupt
"""


@pytest.mark.skipif("ad.session_info()['backend'] != 'cpu'", reason="a GPU computes what it has been given")
def test_ctrl_c_in_a_cell_that_does_not_wait(tmp_path, own_server):
    """IPython tells when a cell has ended, and by what."""
    _, url = own_server("--threads", "1")
    out = cells(tmp_path, url, "import arrayd as ad\nkept = ad.arange(3)\nad.sync()", CELL,
                "print((kept + 1).tolist(), ad.stat()['cancelled'] > 12)", "products[0].get()")
    assert "KeyboardInterrupt" in out[1][1]
    assert out[2] == ["[1, 2, 3] True\n", None]
    assert "CancelledError" in out[3][1]


def test_an_error_in_a_cell_cancels_nothing(tmp_path, own_server):
    _, url = own_server()
    out = cells(tmp_path, url, "import arrayd as ad\na = ad.ones((300, 300)) @ ad.ones((300, 300))\n1 / 0",
                "print(a[0, 0].item(), ad.stat()['cancelled'])")
    assert "ZeroDivisionError" in out[0][1] and out[1][0] == "300.0 0\n"


def test_errors_name_the_cell(tmp_path):
    """In IPython without a setting."""
    out = cells(tmp_path, os.environ["ARRAYD_URL"], "import arrayd as ad", "b = ad.arange(3)[ad.asarray([7])]", "b.sum().item()")
    assert re.search(r"index 7 is out of bounds.*; issued earlier at .*line 1: b = ad\.arange", out[2][1]), out[2]
