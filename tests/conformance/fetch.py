"""Gets the source distribution of CuPy by its hash, from where pip is configured to look, and unpacks its tests."""
import importlib.util
import os
import pathlib
import shutil
import tarfile
import tempfile

FETCHER = pathlib.Path(__file__).resolve().parents[2] / "deploy" / "fetch.py"
_spec = importlib.util.spec_from_file_location("deploy_fetch", FETCHER)
deploy = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(deploy)
NotFetched, download = deploy.NotFetched, deploy.download
KEPT = ("tests/", "pyproject.toml")  # the tests, and the settings of pytest


def unpack(archive, sha256, folder):
    """Unpack what is KEPT of an archive of this hash into folder, or say by NotFetched that it is another."""
    deploy.check_hash(pathlib.Path(archive).read_bytes(), sha256, archive)
    with tarfile.open(archive) as tar:
        for member in tar:
            _, _, path = member.name.partition("/")
            if not member.isfile() or not path.startswith(KEPT) or ".." in pathlib.PurePosixPath(path).parts:
                continue
            target = pathlib.Path(folder, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(tar.extractfile(member).read())


def find_archive(source, folders):
    """The first of the folders, or of their folders `archives`, in which the source distribution lies; None: in none."""
    name = f"{source['name']}-{source['version']}.tar.gz"
    places = [place for folder in folders for place in (pathlib.Path(folder), pathlib.Path(folder, "archives"))]
    return next((place for place in places if (place / name).is_file()), None)


def tests_of(source, cache, folders=()):
    """The folder with the tests of {name, version, sha256}: unpacked before, or from an archive in the folders, which is
    checked by its hash, or fetched. Only fetching takes a network and a resolver."""
    folder = pathlib.Path(cache, source["sha256"])
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    archives = find_archive(source, folders) or folder.parent / "archives"
    content = deploy.read_archive(source["name"], source["version"], source["sha256"], archives)
    made = tempfile.mkdtemp(dir=folder.parent)
    try:
        archive = pathlib.Path(made, "archive")
        archive.write_bytes(content)
        unpack(archive, source["sha256"], pathlib.Path(made, "unpacked"))
        os.rename(pathlib.Path(made, "unpacked"), folder)
    except OSError:
        if not folder.is_dir():  # another run was first
            raise
    finally:
        shutil.rmtree(made)
    return folder
