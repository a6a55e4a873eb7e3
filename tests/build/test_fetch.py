"""deploy/fetch.py: headers of others are taken from archives pinned by their hash, or a line says what to do."""
import hashlib
import io
import os
import pathlib
import subprocess
import sys
import tarfile

import pytest

from commands import COMMAND

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(TOP / "tests" / "conformance"))
from fetch import deploy  # noqa: E402


def archive(files):
    """The bytes of a source distribution."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
    return made.getvalue()


def files_below(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_files_and_folders_go_where_the_table_says(tmp_path):
    content = archive({"x-1/a/one.h": "1", "x-1/a/b/two.h": "2", "x-1/ab/three.h": "3", "x-1/LICENSE": "free",
                       "x-1/a/../../out.h": "no"})
    deploy.unpack(content, {"a": "x", "LICENSE": "licenses/x"}, tmp_path / "made")
    assert files_below(tmp_path) == ["made/licenses/x", "made/x/b/two.h", "made/x/one.h"]


def test_what_an_archive_lacks_is_named(tmp_path):
    with pytest.raises(deploy.NotFetched, match="has no gone.h"):
        deploy.unpack(archive({"x-1/a.h": ""}), {"a.h": "a.h", "gone.h": "gone.h"}, tmp_path)


def test_an_archive_that_is_there_is_checked_and_used(tmp_path, monkeypatch):
    content = archive({"x-1/a.h": "1"})
    (tmp_path / "archives").mkdir()
    (tmp_path / "archives" / "x-1.tar.gz").write_bytes(content)
    monkeypatch.setattr(deploy, "SOURCES", (("x", "1", hashlib.sha256(content).hexdigest(), {"a.h": "a.h"}),))
    deploy.fetch_all(tmp_path)
    deploy.fetch_all(tmp_path)  # once more, over what is there
    assert files_below(tmp_path) == ["archives/x-1.tar.gz", "include/a.h"]
    monkeypatch.setattr(deploy, "SOURCES", (("x", "1", "0" * 64, {"a.h": "a.h"}),))
    with pytest.raises(deploy.NotFetched, match="is refused: its SHA-256 is"):
        deploy.fetch_all(tmp_path)
    assert files_below(tmp_path) == ["archives/x-1.tar.gz", "include/a.h"]


def test_without_a_registry_a_line_says_which_archives_to_put_where(tmp_path):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PIP_")}
    environment |= {"PIP_INDEX_URL": "http://127.0.0.1:1/simple", "PIP_CONFIG_FILE": os.devnull, "PIP_RETRIES": "0"}
    done = subprocess.run([sys.executable, TOP / "deploy" / "fetch.py", tmp_path], env=environment, capture_output=True,
                          text=True, timeout=COMMAND)
    assert done.returncode == 1 and "Without a network: put these source distributions into" in done.stderr, done.stderr
    for name, version, sha256, _ in deploy.SOURCES:
        assert f"{name}-{version}.tar.gz  SHA-256 {sha256}" in done.stderr
