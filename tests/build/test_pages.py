"""The pages for users: every block of code on them runs, and links lead somewhere."""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import xml.etree.ElementTree

import pytest

import pages
from commands import BUILD, COMMAND, TOP, run

GUIDE = sorted((TOP / "docs" / "guide").glob("*.md"))
RUN = [TOP / "README.md", *(TOP / "docs" / f"{n}.md" for n in ("python", "operations", "client-c")), *GUIDE]
LINK = re.compile(r"\]\(([^)\s]+)\)")


def name_of(page):
    return str(page.relative_to(TOP).with_suffix(""))


@pytest.fixture
def run_page(request):
    """A function that runs the blocks of a page in a folder of their own: output, status."""
    folders = []

    def run_it(page):
        installed = request.getfixturevalue("installed")
        folders.append(tempfile.mkdtemp(prefix="page-"))  # short, for the sockets in it
        path = os.pathsep.join([str(BUILD / "python"), *filter(None, [os.environ.get("PYTHONPATH")])])
        try:
            done = subprocess.run([sys.executable, pages.__file__, page, installed], cwd=folders[-1], timeout=COMMAND,
                                  text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, env={**os.environ, "PYTHONPATH": path})
        except subprocess.TimeoutExpired:  # killed: what it has started goes on
            for group in pathlib.Path(folders[-1], "groups").read_text().split():
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(int(group), signal.SIGKILL)
            raise
        return done.stdout, done.returncode

    yield run_it
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.skipif(BUILD.name != "release", reason="the package is imported")
@pytest.mark.parametrize("page", RUN, ids=name_of)
def test_page(page, run_page):
    text, path = page.read_text(), os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ["PATH"]])
    needed = {program for program in ("openssl", "celery", "gunicorn", "curl") if f"\n{program} " in text}
    if missing := {program for program in needed if not shutil.which(program, path=path)}:
        pytest.skip(f"needs {missing}")
    output, status = run_page(page)
    assert status == 0, output


WRONG = {
    "value": ("```python\n1 + 1  # gives 3\n```\n", "gives 2"),
    "printed": ("```python\nprint(2)  # gives 3\n```\n", "gives 2"),
    "no error": ("```python\nint('7')  # raises ValueError: ...\n```\n", "raises nothing"),
    "other error": ("```python\n1 / 0  # raises ZeroDivisionError: nothing\n```\n", "division by zero"),
    "inner": ("```python\nif True:\n    1  # gives 1\n    2\n```\n", "only whole statements"),
    "fails": ("# A page\n\n```python\nx = 1\nundefined\n```\n", r"page\.md:5: undefined"),
    "shell": ("```sh\nfalse\necho after\n```\n", "status 1"),
    "output": ("```sh\necho one two\n```\n\n```text\none three\n```\n", "printed is:\none two"),
    "output of nothing": ("```text\none\n```\n", "follows no block"),
    "language": ("```\none\n```\n", "knows how to run"),
    "file": ("```python\n# work.py\nprint(1)\n```\n", "no block uses work.py"),
    "warning of C": ("```c\nint main(void) { int x; }\n```\n", "unused variable"),
    "status of C": ("```c\nint main(void) { return 3; }\n```\n", "status 3"),
    "syntax, not run": ("*Not tested here: it is wrong.*\n\n```python\n1 +\n```\n", "SyntaxError"),
    "no end": ("```sh\ntrue\n", "without an end"),
}


@pytest.mark.skipif(BUILD.name != "release", reason="the package is imported")
@pytest.mark.parametrize("text, message", WRONG.values(), ids=list(WRONG))
def test_what_is_wrong_is_found(text, message, tmp_path, run_page):
    page = tmp_path / "page.md"
    page.write_text(text)
    output, status = run_page(page)
    assert status == 1 and re.search(message, output), output


@pytest.mark.skipif(BUILD.name != "release", reason="the package is imported")
def test_what_is_right_passes(tmp_path, run_page):
    """Every kind of block, in one page that depends on their order."""
    page = tmp_path / "page.md"
    page.write_text(textwrap.dedent("""\
        ```python
        # pack/work.py
        import arrayd as ad
        print(float(ad.attach("x").sum()), ad.session_info()["backend"])
        ```

        ```python
        import arrayd as ad
        x = ad.arange(10.0)
        x[3]                # not compared
        x.sum()  # gives array(45.)
        print(x.dtype, 1)  # gives float64 ...
        ad.publish("x", x)
        ad.zeros(3) + ad.zeros(4)  # raises ValueError: ...(3,) (4,)...
        ```

        ```sh
        export WORD=seven
        python pack/work.py; mkdir below; cd below
        ```

        ```text
        45.0 cpu
        ```

        - in a list:

          ```sh
          echo $WORD $(basename $PWD)
          ```

          ```text
          seven below
          ```

        *Not tested here: nobody has this program.*

        ```sh
        no-such-program
        ```

        ```c
        #include <arrayd.h>
        #include <stdio.h>
        int main(void) {
            printf("%s\\n", ad_error_text(AD_E_MEMORY));
        }
        ```

        ```text
        out of ...
        ```
        """))
    output, status = run_page(page)
    assert status == 0, output


EXAMPLES = [(page, text) for page in sorted((TOP / "client-c" / "man").glob("*.3"))
            for text in re.findall(r"^\.Bd -literal\n(.*?)^\.Ed$", page.read_text(), re.M | re.S)]


@pytest.mark.parametrize("page, text", EXAMPLES, ids=[page.name for page, _ in EXAMPLES])
def test_examples_of_the_manual_compile(page, text, tmp_path):
    """Programs as they stand, pieces with what they take as given."""
    code = text.replace("\\e", "\\")
    if "int main(" not in code:
        given = "ad_session *s, ad_array *a, ad_array *b, ad_array *x, int pipe"
        code = f"#include <arrayd.h>\n#include <unistd.h>\nvoid piece({given}) {{\n{code}}}\n"
    (tmp_path / "example.c").write_text(code)
    run("cc", "-std=c11", "-fsyntax-only", "-Wall", "-Werror", f"-I{TOP}", f"-I{TOP / 'client-c/include'}",
        tmp_path / "example.c")


def prose(page):
    """A page without its code."""
    return re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.M | re.S)


def anchors(page):
    """Return the anchors that GitHub makes of a page's headings."""
    titles = re.findall(r"^#+ (.+)$", prose(page), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", [*sorted(TOP.glob("*.md")), *sorted((TOP / "docs").rglob("*.md")),
                                  TOP / "protocol" / "wire.md"], ids=name_of)
def test_links(page):
    for link in LINK.findall(prose(page)):
        target, _, anchor = link.partition("#")
        if "://" in target:
            continue
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), link
        assert not anchor or anchor in anchors(path), link


def test_the_pictures_have_the_figures_of_the_page():
    """The chart of the first page is what docs/pictures.py draws of docs/performance.md, and its pictures are pictures."""
    run(sys.executable, TOP / "docs/pictures.py", "--check")
    for picture in (TOP / "docs/pictures").glob("*.svg"):
        assert xml.etree.ElementTree.parse(picture).getroot().tag.endswith("svg")


def test_every_guide_is_found_from_the_first_page():
    index = TOP / "docs" / "guide" / "README.md"
    linked = {(index.parent / link.partition("#")[0]).resolve() for link in LINK.findall(index.read_text())}
    assert set(GUIDE) - {index} <= linked
    assert "docs/guide/README.md" in (TOP / "README.md").read_text()
