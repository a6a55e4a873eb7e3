"""Gather what is released: release.py OUT DIST BILL.json. OUT gets the packages of DIST, the bill of materials, the
changelog and SHA256SUMS, which `sha256sum -c` checks."""
import hashlib
import pathlib
import shutil
import sys

TOP = pathlib.Path(__file__).resolve().parents[1]


def main():
    """Copy the files and write their checksums."""
    out, dist, bill = map(pathlib.Path, sys.argv[1:])
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    for path in [*sorted(dist.iterdir()), bill, TOP / "CHANGELOG.md", TOP / "LICENSE"]:
        shutil.copyfile(path, out / path.name)
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(out.iterdir())]
    (out / "SHA256SUMS").write_text("".join(sums))
    print(f"{len(sums)} files in {out}")


if __name__ == "__main__":
    main()
