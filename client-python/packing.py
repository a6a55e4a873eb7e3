"""Packs the built package into a wheel: packing.py build/release/python build/release/dist [stored].
Also pip's build backend."""
import base64
import contextlib
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
TAG = "cp311-abi3-linux_x86_64"


def version():
    """The one place where the version stands is the Makefile."""
    return re.search(r"^VERSION := (\S+)$", (HERE.parent / "Makefile").read_text(), re.M)[1]


def metadata():
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    lines = ["Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {version()}",
             f"Summary: {project['description']}", "License: MIT", f"Requires-Python: {project['requires-python']}"]
    lines += [f"Requires-Dist: {d}" for d in project["dependencies"]]
    return "\n".join(lines) + "\n\n" + (HERE.parent / "README.md").read_text()


def is_unoptimised(data):
    """Whether this library says in its name that it is compiled the quick way, for what cannot run there."""
    return data.startswith(b"\x7fELF") and b"\0libarrayd-cuda-unoptimised.so\0" in data


def contents(path):
    """A file's bytes; those of a program or library without its debug information."""
    data = path.read_bytes()
    if is_unoptimised(data):
        raise SystemExit(f"not packed: {path} is compiled without optimisation, as `make demo` and `make test` do where "
                         "there is no GPU. `make cuda` compiles it for use, `make wheel NVCC=` leaves it out")
    if not data.startswith(b"\x7fELF") or not shutil.which("strip"):
        return data
    with tempfile.NamedTemporaryFile() as out:
        subprocess.run(["strip", "--strip-unneeded", "-o", out.name, path.resolve()], check=True)
        return pathlib.Path(out.name).read_bytes()


def stubs(tree, out):
    """Write type stubs of the package, which they are made from, below out."""
    path = os.pathsep.join(filter(None, [str(tree), os.environ.get("PYTHONPATH")]))  # pip has numpy there
    subprocess.run([sys.executable, HERE.parent / "docs" / "stubs.py", out], check=True,
                   env={**os.environ, "PYTHONPATH": path})


def package_files(root):
    return sorted(p for p in (root / "arrayd").rglob("*")
                  if p.is_file() and p.name != ".stamp" and "__pycache__" not in p.parts)


@contextlib.contextmanager
def whole_file(path):
    """A name to write under, which becomes path if nothing goes wrong."""
    part = path.with_name(f".{path.name}.part")
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def pack(tree, dist, compression=zipfile.ZIP_DEFLATED):
    """Write the wheel for the package tree; its file name."""
    info = f"arrayd-{version()}.dist-info"
    name = f"arrayd-{version()}-{TAG}.whl"
    record = []
    dist.mkdir(parents=True, exist_ok=True)
    with (whole_file(dist / name) as part, zipfile.ZipFile(part, "w", compression) as wheel,
          tempfile.TemporaryDirectory() as typed):
        stubs(tree, typed)

        def add(path, data, mode=0o644):
            entry = zipfile.ZipInfo(path, (2020, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100000 | mode) << 16
            wheel.writestr(entry, data, compression)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{path},sha256={digest},{len(data)}")

        for root in (tree, pathlib.Path(typed)):
            for path in package_files(root):
                add(str(path.relative_to(root)), contents(path), 0o755 if os.access(path, os.X_OK) else 0o644)
        for program in ("arrayd", "arrayctl"):
            add(f"arrayd-{version()}.data/scripts/{program}", (HERE / "program.py").read_bytes(), 0o755)
        add(f"{info}/METADATA", metadata().encode())
        add(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: arrayd\nRoot-Is-Purelib: false\nTag: {TAG}\n".encode())
        add(f"{info}/LICENSE", (HERE.parent / "LICENSE").read_bytes())
        wheel.writestr(f"{info}/RECORD", "\n".join([*record, f"{info}/RECORD,,"]) + "\n")
    return name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """PEP 517, for pip."""
    subprocess.run(["make", "-C", HERE.parent, "python"], check=True, stdout=sys.stderr)
    return pack(HERE.parent / "build" / "release" / "python", pathlib.Path(wheel_directory))


if __name__ == "__main__":
    print(pack(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]),
               zipfile.ZIP_STORED if sys.argv[3:] == ["stored"] else zipfile.ZIP_DEFLATED))
