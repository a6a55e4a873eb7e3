"""Gets the headers of others that building needs: fetch.py FOLDER

They are taken from source distributions on the package registry that pip is configured to use, each pinned by its
SHA-256. An archive that lies in FOLDER/archives is taken as it is. The headers go to FOLDER/include, the licences
beside them.
"""
import ast
import hashlib
import io
import os
import pathlib
import shutil
import ssl
import subprocess
import sys
import tarfile
import tempfile

# name, version, SHA-256 of the source distribution, and what of it is kept: a path in it -> a path in FOLDER/include.
SOURCES = (
    ("scipy", "1.17.1", "95d8e012d8cb8816c226aef832200b1d45109ed4464303e997c5b13122b297c0", {
        "subprojects/xsf/include/xsf": "xsf",
        "subprojects/xsf/LICENSE": "licenses/xsf",
        "subprojects/xsf/LICENSES_bundled.txt": "licenses/xsf-bundled",
        "scipy/_lib/pocketfft/pocketfft_hdronly.h": "pocketfft_hdronly.h",
        "scipy/_lib/pocketfft/LICENSE.md": "licenses/pocketfft"}),
    ("apache-tvm-ffi", "0.1.15.post2", "909be9ef5af07726aa9afd38a3111abc4d86cfd5927ebedfa9166232ce7d287b", {
        "3rdparty/dlpack/include/dlpack/dlpack.h": "dlpack/dlpack.h",
        "3rdparty/dlpack/LICENSE": "licenses/dlpack"}),
)
RESOLVER = "unearth>=0.17,<1"


class NotFetched(Exception):
    """Why an archive is not to be had."""


def pip_settings(text):
    """Return what `pip config list` prints as a dict; what is for `pip download` and the environment go before the rest."""
    found = {}
    for section in ("global.", "download.", ":env:."):
        for line in text.splitlines():
            name, equals, value = line.partition("=")
            if equals and name.startswith(section):
                found[name.removeprefix(section)] = ast.literal_eval(value)
    return found


def find_file(name, version, sha256, settings):
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
    """The bytes of the source distribution, which pip's settings say where to find; NotFetched says why there are
    none."""
    listed = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True)
    try:
        return find_file(name, version, sha256, pip_settings(listed.stdout))
    except NotFetched:
        raise
    except ImportError as error:
        raise NotFetched(f"{error}; install tests/requirements.txt") from error
    except Exception as error:  # of the network, of TLS, of an index's pages
        raise NotFetched(f"the package registry does not give {name} {version}: {type(error).__name__}: {error}; "
                         "pip's settings (PIP_INDEX_URL, PIP_FIND_LINKS, PIP_CERT, pip.conf) say which is "
                         "asked") from error


def check_hash(content, sha256, origin):
    """Refuse an archive of another hash by NotFetched."""
    actual = hashlib.sha256(content).hexdigest()
    if actual != sha256:
        raise NotFetched(f"{origin} is refused: its SHA-256 is {actual}, not {sha256}")


def read_archive(name, version, sha256, archives):
    """The bytes of an archive: from the folder, where it lies there or is put when it has been downloaded."""
    kept = archives / f"{name}-{version}.tar.gz"
    if not kept.exists():
        content = download(name, version, sha256)
        check_hash(content, sha256, f"{name} {version} of the package registry")
        archives.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=archives, delete=False) as part:
            part.write(content)
        os.rename(part.name, kept)
        return content
    content = kept.read_bytes()
    check_hash(content, sha256, kept)
    return content


def unpack(content, kept, folder):
    """Write what `kept` names of an archive, a file or all files below a folder, to its places below folder."""
    missing = set(kept)
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        for member in tar:
            path = pathlib.PurePosixPath(member.name.partition("/")[2])
            source = next((s for s in kept if pathlib.PurePosixPath(s) in (path, *path.parents)), None)
            if source is None or not member.isfile() or ".." in path.parts:
                continue
            missing.discard(source)
            target = folder / kept[source] / path.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(tar.extractfile(member).read())
    if missing:
        raise NotFetched(f"the archive has no {', '.join(sorted(missing))}")


def fetch_all(folder):
    """Make folder/include anew."""
    folder.mkdir(parents=True, exist_ok=True)
    made = pathlib.Path(tempfile.mkdtemp(dir=folder))
    try:
        for name, version, sha256, kept in SOURCES:
            unpack(read_archive(name, version, sha256, folder / "archives"), kept, made / "include")
        shutil.rmtree(folder / "include", ignore_errors=True)
        os.rename(made / "include", folder / "include")
    finally:
        shutil.rmtree(made)


def run_with_resolver(arguments):
    """Run this program in an environment of its own that has the resolver; its exit status."""
    with tempfile.TemporaryDirectory() as folder:
        python = pathlib.Path(folder, "bin", "python")
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", RESOLVER], check=True)
        return subprocess.run([python, __file__, *arguments]).returncode


def needs_resolver(folder):
    """Whether an archive must be downloaded and no resolver is installed."""
    try:
        import unearth  # noqa: F401
    except ImportError:
        return not all((folder / "archives" / f"{name}-{version}.tar.gz").exists() for name, version, *_ in SOURCES)
    return False


def main(arguments):
    """Fetch into the folder; the exit status."""
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    folder = pathlib.Path(arguments[0])
    try:
        if needs_resolver(folder):
            return run_with_resolver(arguments)
        fetch_all(folder)
    except (NotFetched, subprocess.CalledProcessError) as error:
        listed = "\n".join(f"  {name}-{version}.tar.gz  SHA-256 {sha256}" for name, version, sha256, _ in SOURCES)
        print(f"fetch: {error}\nWithout a network: put these source distributions into {folder / 'archives'} and run "
              f"make again:\n{listed}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
