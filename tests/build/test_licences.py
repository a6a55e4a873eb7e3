"""Licences of what is linked into what is shipped, the notices that go with it, and the bill of materials."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

import pytest

from commands import BUILD, TOP, run

sys.path.insert(0, str(TOP / "deploy"))
import parts  # noqa: E402
import sbom  # noqa: E402

pytestmark = pytest.mark.skipif(BUILD.name != "release" or not shutil.which("dpkg"),
                                reason="packages of Debian are asked what is linked into a release")
PRODUCTS = {name: files for name, files in parts.PRODUCTS.items() if all((BUILD / file).exists() for file in files)}
FILES = sorted({file for files in PRODUCTS.values() for file in files})
# Debian's short names of licences.
SPDX = {"Expat": "MIT", "Boost-1": "BSL-1.0", "BSD-3-clause": "BSD-3-Clause", "BSD-3-Clause": "BSD-3-Clause",
        "LGPL-2.1+": "LGPL-2.1-or-later"}
# Licences that let programs under the MIT licence contain the part, with its notice.
ALLOWED = {"MIT", "BSL-1.0", "BSD-3-Clause", "Apache-2.0", "LGPL-2.1-or-later",
           "GPL-3.0-or-later WITH GCC-exception-3.1", "LicenseRef-NVIDIA-CUDA-EULA"}


def debian_licence(package):
    """The licence of all files, but for exceptions, in a package's copyright file; None where it has another form."""
    text = pathlib.Path(f"/usr/share/doc/{package}/copyright").read_text()
    main = re.search(r"^Files: *\*\n(?:.+\n)*?License: *(\S+)", text, re.M)
    return main and main[1]


# ---- what is linked ----

@pytest.mark.parametrize("file", FILES)
def test_what_is_linked_in_has_a_row(file):
    """Everything that the linker took from elsewhere is known, and its licence is one that we may ship."""
    found = parts.find_parts(pathlib.Path(file).name)
    assert file.endswith("paths.so") or found
    for part in found:
        assert part.licence in ALLOWED, part


def test_the_maps_are_read():
    """The two parts that everybody knows of are found where they are, and a stranger is told."""
    names = {file: {part.name for part in parts.find_parts(file)} for file in ("arrayd", "libarrayd-cpu.so")}
    assert "libmicrohttpd" in names["arrayd"] and "openblas" not in names["arrayd"]
    assert {"openblas", "xsf", "pocketfft"} <= names["libarrayd-cpu.so"]


def test_an_unknown_archive_is_refused(monkeypatch):
    parts.find_parts.cache_clear()
    monkeypatch.setattr(parts, "read_archives", lambda name: ["/usr/lib/x86_64-linux-gnu/libfftw3.a"])
    monkeypatch.setattr(parts, "find_package", lambda path: "libfftw3-dev")
    with pytest.raises(LookupError, match="libfftw3-dev"):
        parts.find_parts("arrayd")


@pytest.mark.parametrize("part", [part for part in parts.PARTS if part.debian and part.notice], ids=lambda p: p.name)
def test_debian_says_the_same(part):
    """The table's licence is that of the copyright file of the package that is linked."""
    installed = [package for package in part.debian if parts.find_version(package)]
    assert installed
    for package in installed:
        assert SPDX[debian_licence(package)] == part.licence


def test_the_compilers_parts_have_their_exception():
    for package in next(part for part in parts.PARTS if part.name == "gcc-runtime").debian:
        if parts.find_version(package):
            assert "GCC RUNTIME LIBRARY EXCEPTION" in pathlib.Path(
                f"/usr/share/doc/{package}/copyright").resolve().read_text().upper()


@pytest.mark.parametrize("file", FILES)
def test_nothing_else_is_loaded(file):
    """Shared libraries are the system's; those of CUDA come from NVIDIA's packages."""
    others = parts.find_needed(BUILD / file) - set(parts.SYSTEM)
    assert all(re.match(r"lib(cublas|cufft|cusolver)", name) for name in others) and (not others or "cuda" in file)


def test_includes_are_known():
    """Headers from elsewhere are those of a part, of the system, or of what is loaded at run time."""
    objects = {item for file in FILES for item in parts.read_objects(pathlib.Path(file).name)}
    loaded = (r"openssl/.*|Python\.h|structmember\.h|cuda.*|cub/.*|nvtx3/.*|cu\w+\.h|nvrtc.*|thrust/.*"
              r"|__config|corecrt\.h|crtdefs\.h|crt/.*")
    called = r"uv\.h|ini\.h|microhttpd\.h|jansson\.h|cblas\.h|lapacke\.h|openblas.*|lapack.*"  # no code in them
    strange = []
    for name in sorted(parts.read_includes(objects)):
        known = any(re.fullmatch(part.includes, name) for part in parts.PARTS) or re.fullmatch(f"{loaded}|{called}", name)
        if known:
            continue
        done = subprocess.run(["g++", "-E", "-x", "c++", "-"], input=f"#include <{name}>\n", text=True,
                              capture_output=True)
        path = next((p for p in re.findall(r'^# 1 "(/[^"]+)"', done.stdout, re.M) if p.endswith(name)), "")
        if not re.search(r"/c\+\+/|/gcc/|^/usr/include/(x86_64-linux-gnu/|(linux|sys|arpa|netinet|net)/|[a-z_0-9]+\.h)", path):
            strange.append(name)
    assert not strange


# ---- notices ----

@pytest.mark.parametrize("product, project", [(p, f) for p, f in sbom.PROJECTS.items() if p in PRODUCTS])
def test_wheels_carry_the_notices(product, project):
    """The metadata names the licences of what is linked in, and the files with their notices."""
    table = tomllib.loads((TOP / project).read_text())["project"]
    folder = (TOP / project).parent
    carried = {path.stem for pattern in table["license-files"] for path in folder.glob(pattern)}
    inside = [part for part in parts.find_product_parts(product) if part.notice]
    assert carried == {"LICENSE", *(part.name for part in inside)}
    assert set(table["license"].split(" AND ")) == {"MIT", *(part.licence for part in inside)} | (
        {"LicenseRef-NVIDIA-CUDA-EULA"} if product == "arrayd-cuda13" else set())


def test_notices_are_whole():
    """Each part that needs one has a notice with its owners. The LGPL's has its text and says how to relink."""
    folder = TOP / "deploy/notices"
    assert {path.stem for path in folder.glob("*.txt")} == {part.name for part in parts.PARTS if part.notice}
    for path in folder.glob("*.txt"):
        assert "copyright" in path.read_text().lower(), path
    text = (folder / "libmicrohttpd.txt").read_text()
    assert "GNU LESSER GENERAL PUBLIC LICENSE" in text and "END OF TERMS AND CONDITIONS" in text
    assert "HTTP_LIBS" in text and re.search(r"^HTTP_LIBS \?=", (TOP / "Makefile").read_text(), re.M)


# ---- the bill of materials ----

@pytest.fixture
def bill(tmp_path):
    """The bill of a folder with a wheel, a source distribution and a package in it: path."""
    dist = tmp_path / "dist"
    dist.mkdir()
    (dist / "arrayd-0.1.0-cp311-abi3-manylinux_2_34_x86_64.whl").write_bytes(b"a wheel")
    (dist / "arrayd-0.1.0.tar.gz").write_bytes(b"the source")
    (dist / "arrayd_0.1.0_amd64.deb").write_bytes(b"a package")
    run(sys.executable, TOP / "deploy/sbom.py", tmp_path / "bill.json", dist)
    return tmp_path / "bill.json"


def test_the_bill_follows_the_schema(bill):
    validation = pytest.importorskip("cyclonedx.validation.json")
    from cyclonedx.schema import SchemaVersion
    errors = validation.JsonStrictValidator(SchemaVersion.V1_6).validate_str(bill.read_text())
    assert errors is None, errors


def test_the_bill_is_whole(bill):
    """The bill names all that is linked into each product. Every reference leads somewhere, and hashes are the
    files'."""
    document = json.loads(bill.read_text())
    components = {component["bom-ref"]: component for component in document["components"]}
    names = set(components) | {document["metadata"]["component"]["bom-ref"]}
    depends = {entry["ref"]: set(entry["dependsOn"]) for entry in document["dependencies"]}
    assert set(depends) | set().union(*depends.values()) <= names
    for product in PRODUCTS:
        inside = {f"part:{part.name}" for part in parts.find_product_parts(product)}
        assert inside <= depends[f"product:{product}"]
    assert "python:numpy" in depends["product:arrayd"]
    files = {component["name"] for component in components.values() if component["type"] == "file"}
    assert files == {path.name for path in (bill.parent / "dist").iterdir()}
    wheel = components["file:arrayd-0.1.0-cp311-abi3-manylinux_2_34_x86_64.whl"]
    assert wheel["hashes"][0]["content"] == run("sha256sum", bill.parent / "dist" / wheel["name"]).split()[0]
    for reference, component in components.items():
        assert not reference.startswith("part:") or component.get("version") or component["name"] == "cuda-runtime"


def test_the_bill_is_the_same_twice(bill):
    first = bill.read_bytes()
    run(sys.executable, TOP / "deploy/sbom.py", bill, bill.parent / "dist", env={**os.environ, "PYTHONHASHSEED": "7"})
    assert bill.read_bytes() == first


def test_release_has_checksums(bill, tmp_path):
    """The release holds what was gathered, and sha256sum finds it whole."""
    run(sys.executable, TOP / "deploy/release.py", tmp_path / "release", bill.parent / "dist", bill)
    names = {path.name for path in (tmp_path / "release").iterdir()}
    assert {"CHANGELOG.md", "LICENSE", "SHA256SUMS", "bill.json", "arrayd_0.1.0_amd64.deb"} <= names
    assert run("sha256sum", "-c", "SHA256SUMS", cwd=tmp_path / "release").count(": OK") == len(names) - 1
