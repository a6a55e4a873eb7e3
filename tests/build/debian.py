"""Packages of Debian's archive that are not for this machine: of another release, or for another kind of machine."""
import contextlib
import urllib.request

import pytest

from commands import run

MIRROR = "http://deb.debian.org/debian"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


def need_mirror(url, suite):
    """Skip the test where the archive is out of reach."""
    try:
        with contextlib.closing(urllib.request.urlopen(f"{url}/dists/{suite}/Release", timeout=60)):
            pass
    except OSError as error:
        pytest.skip(f"no mirror of {suite}: {error}")


def unpack_packages(folder, suite, *names, machine=None):
    """Unpack packages, whose signatures are checked, into folder/root, which is returned; what apt knows lies beside it."""
    for name in ("sources", "lists/partial", "archives/partial", "root"):
        (folder / name).mkdir(parents=True)
    (folder / "sources/other.sources").write_text(
        f"Types: deb\nURIs: {MIRROR}\nSuites: {suite}\nComponents: main\nSigned-By: {KEYRING}\n")
    apt = ["apt-get", "-q", "-o", "Dir::Etc::SourceList=/dev/null", "-o", f"Dir::Etc::SourceParts={folder}/sources", "-o",
           f"Dir::State::Lists={folder}/lists", "-o", f"Dir::Cache={folder}", "-o", "APT::Sandbox::User=root"]
    if machine:
        apt += ["-o", f"APT::Architecture={machine}", "-o", f"APT::Architectures={machine}"]
    run(*apt, "update")
    run(*apt, "download", *names, cwd=folder)
    for package in folder.glob("*.deb"):
        run("dpkg-deb", "-x", package, folder / "root")
    return folder / "root"
