"""Debian packages: what lintian says, what is in them, and that dpkg installs, enables and removes them."""
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from commands import BUILD, TOP, run

NEEDED = {"dh", "dh_python3", "dpkg-buildpackage", "dpkg", "fakeroot"}
pytestmark = [pytest.mark.skipif(BUILD.name != "release", reason="sanitizers are not packed"),
              pytest.mark.skipif(not all(map(shutil.which, NEEDED)), reason=f"needs {NEEDED}")]
VERSION = re.search(r"^VERSION := (\S+)", (TOP / "Makefile").read_text(), re.M)[1]


def build(folder):
    """The packages by their names, built into the folder from what make has built."""
    run(sys.executable, TOP / "deploy/debian/build.py", folder, VERSION)
    return {path.name.split("_")[0]: path for path in folder.glob("*.deb")}


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    """A folder with the client's wheel."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, TOP / "deploy/wheels/build.py", folder, "client")
    return folder


@pytest.fixture(scope="module")
def packages(dist):
    """The packages, built once."""
    return build(dist)


def fields(package):
    """The control fields of a package."""
    return dict(re.findall(r"^([\w-]+): (.*)", run("dpkg-deb", "-f", package), re.M))


def contents(package):
    """The paths in a package."""
    return {line.split()[5].removeprefix(".") for line in run("dpkg-deb", "-c", package).splitlines()}


def test_lintian_has_nothing_to_say(packages):
    if not shutil.which("lintian"):
        pytest.skip("no lintian here")
    assert set(packages) == {"arrayd", "libarrayd0", "libarrayd-dev", "python3-arrayd"}
    said = run("lintian", "--fail-on", "error,warning", "--tag-display-limit", "0", "--allow-root", *packages.values())
    assert not re.search(r"^[EW]: ", said, re.M), said


def test_the_compiler_is_not_run(packages, tmp_path):
    """Packing takes the programs that make has built: their build ids are the same."""
    run("dpkg-deb", "-x", packages["arrayd"], tmp_path)
    for ours, packed in (("arrayd", "usr/bin/arrayd"), ("libarrayd-cpu.so", "usr/lib/arrayd/libarrayd-cpu.so")):
        ids = [re.search(r"Build ID: (\w+)", run("readelf", "-n", path))[1] for path in (BUILD / "bin" / ours,
                                                                                        tmp_path / packed)]
        assert ids[0] == ids[1]


def test_what_is_in_them(packages):
    server, client = contents(packages["arrayd"]), contents(packages["python3-arrayd"])
    assert {"/usr/bin/arrayd", "/usr/bin/arrayctl", "/usr/lib/arrayd/arrayd-worker", "/etc/arrayd/arrayd.conf",
            "/lib/systemd/system/arrayd.socket", "/usr/share/man/man8/arrayd.8.gz",
            "/usr/share/bash-completion/completions/arrayd"} <= server
    assert "/usr/lib/python3/dist-packages/arrayd/_core.abi3.so" in client
    assert {path.split("/")[5] for path in client if path.count("/") > 5 and "dist-packages" in path} == {
        "arrayd", f"arrayd-{VERSION}.dist-info"}
    development = contents(packages["libarrayd-dev"])
    assert any(path.endswith("/cmake/arrayd/arrayd-config.cmake") for path in development)
    assert "/usr/share/man/man3/ad_add.3.gz" in development
    for package in packages.values():
        assert fields(package)["Version"] == VERSION
        assert f"/usr/share/doc/{package.name.split('_')[0]}/copyright" in contents(package)


def test_what_they_need(packages):
    assert "libssl3" in fields(packages["arrayd"])["Depends"] and "libstdc++6" in fields(packages["arrayd"])["Depends"]
    assert fields(packages["libarrayd-dev"])["Depends"].startswith(f"libarrayd0 (= {VERSION})")
    assert "python3-numpy (>= 1:2)" in fields(packages["python3-arrayd"])["Depends"]
    assert run("dpkg-deb", "-I", packages["arrayd"], "conffiles").split() == ["/etc/arrayd/arrayd.conf"]


def test_the_licences_go_with_them(packages, tmp_path):
    """The copyright file names everything that is linked into the server."""
    sys.path.insert(0, str(TOP / "deploy"))
    import parts
    run("dpkg-deb", "-x", packages["arrayd"], tmp_path)
    text = (tmp_path / "usr/share/doc/arrayd/copyright").read_text()
    for part in parts.find_product_parts("arrayd-server"):
        assert not part.notice or f"Files: linked-in/{part.name}/*" in text, part.name


def dpkg(root, *arguments):
    """Run dpkg in a root of its own. The packages' scripts run here and are told where it is (DPKG_ROOT)."""
    return run("dpkg", f"--root={root}", "--force-not-root", "--force-depends", "--force-script-chrootless", *arguments)


@pytest.fixture
def root(tmp_path):
    """A root in which nothing is installed."""
    for folder in ("var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers", "etc/systemd/system", "usr/lib"):
        (tmp_path / folder).mkdir(parents=True)
    for file in ("var/lib/dpkg/status", "var/lib/dpkg/available"):
        (tmp_path / file).touch()
    return tmp_path


@pytest.mark.skipif(not all(map(shutil.which, ("deb-systemd-helper", "systemd-sysusers"))),
                    reason="needs Debian's helpers for systemd")
def test_dpkg_installs_enables_and_removes(packages, root):
    """Units are enabled as Debian does, the user is made; a purge leaves nothing of the package."""
    dpkg(root, "-i", packages["arrayd"], packages["libarrayd0"])
    wants = root / "etc/systemd/system"
    for target, unit in (("multi-user.target", "arrayd.service"), ("sockets.target", "arrayd.socket")):
        link = wants / f"{target}.wants" / unit
        assert link.is_symlink() and str(link.readlink()).endswith(f"/lib/systemd/system/{unit}")
    assert re.search(r"^arrayd:", (root / "etc/passwd").read_text(), re.M)
    assert subprocess.run([root / "usr/bin/arrayd", "--version"], capture_output=True, text=True).stdout == (
        f"arrayd {VERSION}\n")
    assert "status" in run(root / "usr/bin/arrayctl", "--help")
    dpkg(root, "-r", "arrayd")
    assert (root / "etc/arrayd/arrayd.conf").exists() and not (root / "usr/bin/arrayd").exists()
    dpkg(root, "-P", "arrayd")
    left = [path for path in root.rglob("*arrayd*") if not {"dpkg", "doc"} & set(path.parts)]
    # libarrayd0 is still there. The files below /run go with the next start of the machine.
    assert not [path for path in left if "libarrayd" not in path.name and "run" not in path.relative_to(root).parts], left


def test_equal_bytes(packages, dist, tmp_path):
    """Two builds give the same files."""
    again = tmp_path / "again"
    again.mkdir()
    shutil.copyfile(next(dist.glob("*.whl")), again / next(dist.glob("*.whl")).name)
    first = {name: pathlib.Path(path).read_bytes() for name, path in packages.items()}
    assert {name: path.read_bytes() for name, path in build(again).items()} == first
