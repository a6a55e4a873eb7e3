"""Build the Debian packages of what make has built: build.py DIST VERSION [CUDA].

DIST has the client's wheel, and gets the packages. CUDA: "cuda" for the package of the CUDA backend as well.
"""
import datetime
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]
sys.path.insert(0, str(HERE.parent))
import parts  # noqa: E402

MAINTAINER = "arrayd maintainers <maintainers@arrayd.invalid>"
# Licences that Debian has in /usr/share/common-licenses, and how their texts begin.
COMMON = {"LGPL-2.1": "                  GNU LESSER GENERAL PUBLIC LICENSE", "Apache-2.0": "                                 Apache License"}
EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH", "1577836800"))


def write_changelog(path, version):
    """The newest entry, which says where the changes are."""
    date = datetime.datetime.fromtimestamp(EPOCH, datetime.UTC).strftime("%a, %d %b %Y %H:%M:%S +0000")
    path.write_text(f"arrayd ({version}) unstable; urgency=medium\n\n  * See changelog.gz for what is new.\n\n"
                    f" -- {MAINTAINER}  {date}\n")


def indent(text):
    """A text as a paragraph of a field."""
    return "\n".join(f" {line}" if line.strip() else " ." for line in text.strip().split("\n"))


def shorten(text):
    """A notice without the text of a licence that Debian has in a place of its own."""
    for name, first in COMMON.items():
        before, found, _ = text.partition(first)
        if found:
            return f"{before.rstrip()}\n\nThe text of the licence is in /usr/share/common-licenses/{name}."
    return text


def write_copyright(path):
    """The licences of arrayd and of what is linked into it, in Debian's form."""
    ours = (TOP / "LICENSE").read_text()
    stanzas = ["Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: arrayd\n"
               "Comment:\n Linked into the programs and libraries are the parts that the stanzas below \"Files: *\" name.",
               f"Files: *\nCopyright: {re.search('Copyright.*', ours)[0]}\nLicense: Expat\n{indent(ours)}"]
    for part in parts.PARTS:
        if part.notice:
            text = shorten((TOP / "deploy/notices" / f"{part.name}.txt").read_text())
            owners = re.findall(r"^ *Copyright[ :(].*", text, re.M) or ["see the text of the licence"]
            stanzas.append(f"Files: linked-in/{part.name}/*\nCopyright:\n{indent(chr(10).join(owners))}\n"
                           f"License: {part.name}-licence\n{indent(text)}")
    path.write_text("\n\n".join(stanzas) + "\n")


def stage(folder, version, cuda):
    """A source folder with debian/ in it, from which the packages are made."""
    debian = folder / "debian"
    shutil.copytree(HERE, debian, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    write_changelog(debian / "changelog", version)
    write_copyright(debian / "copyright")
    (debian / "arrayd.docs").write_text("README.md\n")
    (folder / "README.md").write_bytes((TOP / "README.md").read_bytes())
    for package in re.findall(r"^Package: (.*)", (debian / "control").read_text(), re.M):
        shutil.copyfile(TOP / "CHANGELOG.md", debian / f"{package}.changelog-upstream")
    if not cuda:
        control = (debian / "control").read_text()
        (debian / "control").write_text(re.sub(r"\nPackage: arrayd-cuda13\n(?:.+\n)+", "", control))
        for name in ("install", "lintian-overrides"):
            (debian / f"arrayd-cuda13.{name}").unlink()


def run_quietly(*command, **options):
    """Run a command; what it says is shown when it fails."""
    done = subprocess.run(list(map(str, command)), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    if done.returncode:
        sys.exit(f"{done.stdout[-6000:]}\ndeb: {command[0]} failed")
    return done.stdout


def install(target, dist, cuda):
    """Put what make has built where Debian has it, below target. Here, as dpkg's own compiler flags are not ours."""
    place = run_quietly("dpkg-architecture", "-qDEB_HOST_MULTIARCH").strip()
    run_quietly("make", "-C", TOP, "--no-print-directory", "install", f"DESTDIR={target}", "PREFIX=/usr", "SYSCONFDIR=/etc",
                f"LIBDIR=/usr/lib/{place}", "UNITDIR=/lib/systemd/system", *([] if cuda else ["NVCC="]))
    packages = target / "usr/lib/python3/dist-packages"
    with zipfile.ZipFile(next(dist.glob(f"arrayd-*{platform.machine()}.whl"))) as wheel:
        wheel.extractall(packages)
    information = next(packages.glob("arrayd-*.dist-info"))
    shutil.rmtree(information / "licenses")  # they are in /usr/share/doc
    (information / "RECORD").unlink()


def main():
    """Build what the command line says."""
    dist, version, cuda = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], "cuda" in sys.argv[3:]
    for tool in ("dh", "dh_python3", "fakeroot"):
        if not shutil.which(tool):
            sys.exit(f"deb: {tool} is missing: apt-get install debhelper dh-python fakeroot")
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place, f"arrayd-{version}")
        folder.mkdir()
        stage(folder, version, cuda)
        install(folder / "installed", dist, cuda)
        run_quietly("dpkg-buildpackage", "-b", "-us", "-uc", "-d", cwd=folder,
                    env={**os.environ, "SOURCE_DATE_EPOCH": str(EPOCH), "MAKEFLAGS": ""})
        for old in dist.glob("*.deb"):
            old.unlink()
        for made in sorted(pathlib.Path(place).glob("*.deb")):
            shutil.copyfile(made, dist / made.name)
            print(dist / made.name)


if __name__ == "__main__":
    main()
