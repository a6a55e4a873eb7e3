"""The first page, tried as by somebody who has nothing yet: in fresh roots of the systems that it is for, with the wheels
alone. The commands of the page are typed there, and print the output that it says."""
import os
import pathlib
import shutil
import subprocess
import sys
import time
import typing

import pytest

import pages
from commands import BUILD, COMMAND, TOP, run
from debian import MIRROR, need_mirror, unpack_packages

sys.path.append(str(TOP / "deploy"))
import stages  # noqa: E402

pytestmark = [
    pytest.mark.skipif(BUILD.name != "release", reason="wheels are made of the release"),
    pytest.mark.skipif(not shutil.which("debootstrap"), reason="there is no debootstrap here"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may enter a root"),
    pytest.mark.timeout(2 * COMMAND)]
KEYRINGS = pathlib.Path("/usr/share/keyrings")


class System(typing.NamedTuple):
    """A system that wheels are installed in."""
    suite: str
    mirror: str
    python: str
    options: tuple  # of debootstrap


SYSTEMS = {
    "debian-12": System("bookworm", MIRROR, "3.11", ()),
    "ubuntu-24.04": System("noble", "http://archive.ubuntu.com/ubuntu", "3.12", ("--components=main,universe",)),
}


def find_ubuntu_keyring(folder):
    """The keys of Ubuntu's archive. Debian has them in a package, from version 13 on, and signs that."""
    installed = KEYRINGS / "ubuntu-archive-keyring.gpg"
    if installed.exists():
        return installed
    return unpack_packages(folder, "trixie", "ubuntu-keyring") / str(installed)[1:]


@pytest.fixture(params=SYSTEMS.values(), ids=list(SYSTEMS))
def fresh(request, tmp_path):
    """A minimal system of that kind with Python, and the folder that is its root."""
    system, root = request.param, tmp_path / "root"
    need_mirror(system.mirror, system.suite)
    options, script = [*system.options], []
    if "ubuntu" in system.mirror:  # every version of debootstrap knows Ubuntu by an older release
        options.append(f"--keyring={find_ubuntu_keyring(tmp_path / 'apt')}")
        script = ["/usr/share/debootstrap/scripts/gutsy"]
    run("debootstrap", "--variant=minbase", "--include=python3,python3-venv", *options, system.suite, root, system.mirror, *script)
    yield system, root
    shutil.rmtree(root)


def read_steps(page):
    """Return what somebody types who reads from the top to the first output: files by their names, a script, and that
    output."""
    files, script = {}, []
    for block in pages.blocks(page):
        if block.language == "text":
            return files, "\n".join(script), block.text
        if block.file:
            files[block.file] = block.text
        else:
            script.append(block.text)
    raise AssertionError("the page shows no output")


def test_the_first_page(fresh, wheels):
    system, root = fresh
    shelf = root / "wheels"
    shelf.mkdir()
    for wheel in wheels.values():
        shutil.copy(wheel, shelf)
    run(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", f"--python-version={system.python}",
        *(f"--platform=manylinux_2_{minor}_x86_64" for minor in (17, 27, 28)), f"--dest={shelf}", "numpy>=2,<3")
    files, script, expected = read_steps((TOP / "README.md").read_text())
    assert "pip install" in script and "arrayd &" in script and len(files) == 2
    for name, text in files.items():
        (root / "root" / name).write_text(text)
    inside = stages.Stage(root, {})
    inside.folder = "/root"
    inside.environment.update(PIP_NO_INDEX="1", PIP_FIND_LINKS="/wheels")
    (root / "root/script").write_text(f"set -e\npython3 -m venv /venv\n. /venv/bin/activate\n{script}\npython -m arrayd >doctor\n")
    begin, before = time.monotonic(), os.times()
    try:
        inside.run("sh script >said 2>errors")
    except subprocess.CalledProcessError:
        pytest.fail((root / "root/said").read_text() + (root / "root/errors").read_text())
    used = sum(os.times()[2:4]) - sum(before[2:4])
    print(f"{time.monotonic() - begin:.1f} s, {used:.1f} s of processor time, from an empty {system.suite} to what the page shows")
    assert pages.like(f"...{expected}", (root / "root/said").read_text())
    assert "all is well" in (root / "root/doctor").read_text()
