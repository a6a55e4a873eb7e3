"""Arrays in notebooks: how they look, in text and in a real kernel, what errors say, and Ctrl-C."""
import html
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

import arrayd as ad
from kernel import Kernel
from oracle import DTYPES, random, seed

CELL = re.compile(r"<td[^>]*>(.*?)</td>")


def table(a):
    """The rows of the preview, each a list of texts; counts the round trip."""
    before = ad.session_info()["round_trips"]
    text = a._repr_html_()
    assert ad.session_info()["round_trips"] - before == (1 if a.size else 0)
    return [[html.unescape(cell) for cell in CELL.findall(row)] for row in re.findall(r"<tr>(.*?)</tr>", text, re.S)], text


def written(host):
    return [[np.array2string(value) for value in row] for row in np.atleast_2d(host)]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_small_arrays_are_shown_whole(dtype):
    for shape in ((), (1,), (7,), (3, 5), (7, 7)):
        host = random(seed(dtype), dtype, shape)
        rows, text = table(ad.asarray(host))
        assert rows == written(host)
        assert f"{shape}" in text and f"{host.dtype}" in text


@pytest.mark.parametrize("shape", [(8,), (1000,), (8, 3), (3, 8), (500, 400), (10**6,)])
def test_large_arrays_show_their_edges(shape):
    host = np.arange(np.prod(shape)).reshape(shape)
    a = ad.asarray(host)
    before = ad.stat()["bytes_out"]
    rows, _ = table(a)
    assert ad.stat()["bytes_out"] - before < 3000
    for axis, n in enumerate((1, *shape)[-2:]):
        if n > 7:
            cut = np.r_[0:3, n - 3:n]
            host = np.take(np.atleast_2d(host), cut, axis)
            if axis == 0:
                assert rows.pop(3) == ["⋮"]
            else:
                assert {row.pop(3) for row in rows} == {"…"}
    assert rows == written(host)


def test_more_than_two_axes():
    host = np.arange(2 * 3 * 40 * 5).reshape(2, 3, 40, 5)
    rows, text = table(ad.asarray(host))
    assert "[0, 0, :, :]" in text and rows[0] == written(host[0, 0])[0] and rows[-1] == written(host[0, 0])[-1]
    assert len(table(ad.ones((9,) * 8))[0]) == 7


def test_no_elements_and_errors():
    assert "no elements" in table(ad.zeros((0, 3)))[1]
    failed = ad.asarray([1, 2]).take(ad.asarray([5])) + 1
    text = failed._repr_html_()
    assert "IndexError" in text and "index 5 is out of bounds" in text
    assert "&lt;" in text and "<Device" not in text


@pytest.mark.parametrize("write", [str, print, "{}".format, format, lambda a: f"{a:.3f}"],
                         ids=["str", "print", "str.format", "format", "f-string"])
def test_an_error_is_raised_without_the_lines_that_write_arrays(write):
    failed = ad.asarray([1, 2])[ad.asarray(5)]
    with pytest.raises(IndexError, match="index 5 is out of bounds") as raised:
        write(failed)
    frames = [frame for frame in raised.traceback if "arrayd" in str(frame.path)]
    assert len(frames) == 1 and frames[0].locals["__tracebackhide__"]


# ---- where operations were issued ----

SITES = """
import arrayd as ad
def broken(a):
    return a[ad.asarray([7])]
a = ad.asarray([1, 2, 3])
b = broken(a) * 2
a += 1
c = ad.linalg.norm(b)
for failed in (b, c):
    try:
        failed.get()
    except IndexError as error:
        print(error)
a[ad.asarray([9])] = 5
for _ in range(100_000):
    a += 1
try:
    ad.sync()
except IndexError as error:
    print(error)
try:
    ad.asarray([1, 2, 3])[ad.asarray([8])].get()
except IndexError as error:
    print(error)
"""


def sites(tmp_path, setting, *options):
    program = tmp_path / "program.py"
    program.write_text(SITES)
    done = subprocess.run([sys.executable, *options, program], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "ARRAYD_SITES": setting})
    assert done.returncode == 0, done.stderr
    return program, done.stdout.splitlines()


@pytest.mark.parametrize("setting, options", [("1", []), ("", ["-X", "dev"])], ids=["ARRAYD_SITES", "-X dev"])
def test_errors_name_the_line_that_issued_them(tmp_path, setting, options):
    program, lines = sites(tmp_path, setting, *options)
    places = [(4, "return a[ad.asarray([7])]")] * 2 + [(14, "a[ad.asarray([9])] = 5"),
                                                      (22, "ad.asarray([1, 2, 3])[ad.asarray([8])].get()")]
    assert [re.split("; issued (?:earlier )?at ", line)[1] for line in lines] == [f"{program}, line {n}: {text}" for n, text in places]


def test_errors_name_the_operation_otherwise(tmp_path):
    _, lines = sites(tmp_path, "0")
    assert len(lines) == 4 and all(re.match(r"\w+ \(operation \d+\): index \d is out of bounds", line) for line in lines)
    assert not any("issued at" in line or "issued earlier at" in line for line in lines)


# ---- a real kernel ----

@pytest.fixture(scope="module")
def kernel():
    kernel = Kernel()
    kernel.cell("import os, signal\nimport arrayd as ad")
    yield kernel
    kernel.close()


def test_cell_shows_a_table(kernel):
    shown, _, raised = kernel.cell("ad.arange(1000.0).reshape(10, 100) / 4")
    assert raised is None and "(10, 100), float64, 7.812 KiB" in shown and shown.count("<td") == 49 - 6


def test_error_of_a_cell_names_the_one_that_issued_it(kernel):
    assert kernel.cell("a = ad.arange(10)\n\nb = a.take(ad.asarray([70]))")[2] is None
    _, _, raised = kernel.cell("b.sum().item()")
    assert re.search(r"IndexError: .*index 70 is out of bounds.*; issued earlier at Cell In\[\d+\], line 3: b = a\.take", raised)


def test_interrupt_leaves_a_usable_session(kernel):
    """Ctrl-C in a cell that waits for a server that does not answer."""
    pids = []

    def interrupt(printed):  # once, though the line may come in pieces
        if not pids and (line := re.search(r"stopped (\d+)\n", printed)):
            pids.append(int(line[1]))
            kernel.manager.interrupt_kernel()

    try:
        _, _, raised = kernel.cell("""
worker, x = ad.stat()["worker_pid"], ad.ones(1000)
ad.sync()  # what is complete is not cancelled
os.kill(worker, signal.SIGSTOP)
print("stopped", worker, flush=True)
while True:
    (x + 1).get()
""", interrupt)
        assert raised.startswith("KeyboardInterrupt")
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    assert kernel.cell("print(float((x * 2).sum()))") == (None, "2000.0\n", None)
