"""Gets the source distribution of CuPy by its hash, from where pip is configured to look, and unpacks its tests."""
import ast
import hashlib
import os
import pathlib
import shutil
import ssl
import subprocess
import sys
import tarfile
import tempfile

KEPT = ("tests/", "pyproject.toml")  # and the settings of pytest


class NotFetched(Exception):
    """Why there are no tests to run."""


def pip_settings(text):
    """What `pip config list` prints as a dict; what is for `pip download` and the environment go before the rest."""
    found = {}
    for section in ("global.", "download.", ":env:."):
        for line in text.splitlines():
            name, equals, value = line.partition("=")
            if equals and name.startswith(section):
                found[name.removeprefix(section)] = ast.literal_eval(value)
    return found


def _find_file(name, version, sha256, settings):
    """The bytes of the source distribution, from an index or a folder that pip would take it from."""
    import unearth
    from unearth.auth import MultiDomainBasicAuth
    from unearth.fetchers.sync import PyPIClient
    words = {key: settings.get(key, "").split() for key in ("extra-index-url", "find-links", "trusted-host")}
    indexes = [] if settings.get("no-index", "") in ("1", "true", "yes", "on") else [
        settings.get("index-url", "https://pypi.org/simple"), *words["extra-index-url"]]
    links = [pathlib.Path(link).absolute().as_uri() if "://" not in link else link for link in words["find-links"]]
    verify = ssl.create_default_context(cafile=settings["cert"]) if settings.get("cert") else True
    options = {"proxy": settings["proxy"]} if settings.get("proxy") else {}
    with PyPIClient(trusted_hosts=words["trusted-host"], verify=verify, follow_redirects=True,
                    timeout=float(settings.get("timeout", settings.get("default-timeout", 60))), **options) as session:
        session.auth = MultiDomainBasicAuth(index_urls=indexes, prompting=False)
        finder = unearth.PackageFinder(session, index_urls=indexes, find_links=links, no_binary=[name],
                                       trusted_hosts=words["trusted-host"], ignore_compatibility=True)
        found = finder.find_best_match(f"{name}=={version}", hashes={"sha256": [sha256]}).best
        if found is None:
            raise NotFetched(f"none of {', '.join([*indexes, *links])} has a source distribution of {name} {version} "
                             f"with the hash {sha256}")
        answer = session.get(found.link.url_without_fragment)
        answer.raise_for_status()
        return answer.content


def download(name, version, sha256):
    """The bytes of the source distribution; NotFetched says why there are none."""
    listed = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True)
    try:
        return _find_file(name, version, sha256, pip_settings(listed.stdout))
    except NotFetched:
        raise
    except ImportError as error:
        raise NotFetched(f"{error}; install tests/requirements.txt") from error
    except Exception as error:  # of the network, of TLS, of an index's pages
        raise NotFetched(f"the package registry does not give {name} {version}: {type(error).__name__}: {error}; "
                         "pip's settings (PIP_INDEX_URL, PIP_FIND_LINKS, PIP_CERT, pip.conf) say which is "
                         "asked") from error


def unpack(archive, sha256, folder):
    """Unpack what is KEPT of an archive of this hash into folder, or say by NotFetched that it is another."""
    with open(archive, "rb") as file:
        actual = hashlib.file_digest(file, "sha256").hexdigest()
    if actual != sha256:
        raise NotFetched(f"{archive} is refused: its SHA-256 is {actual}, not {sha256}")
    with tarfile.open(archive) as tar:
        for member in tar:
            _, _, path = member.name.partition("/")
            if not member.isfile() or not path.startswith(KEPT) or ".." in pathlib.PurePosixPath(path).parts:
                continue
            target = pathlib.Path(folder, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(tar.extractfile(member).read())


def tests_of(source, cache):
    """The folder with the tests of {name, version, sha256}, fetched unless the cache has it."""
    folder = pathlib.Path(cache, source["sha256"])
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    content = download(source["name"], source["version"], source["sha256"])
    made = tempfile.mkdtemp(dir=folder.parent)
    try:
        archive = pathlib.Path(made, "archive")
        archive.write_bytes(content)
        unpack(archive, source["sha256"], pathlib.Path(made, "unpacked"))
        os.rename(pathlib.Path(made, "unpacked"), folder)
    finally:
        shutil.rmtree(made)
    return folder
