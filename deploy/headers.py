"""Links to the headers of this machine that compilers for others can take: headers.py FOLDER.

They are those of OpenSSL, msgpack and Python. All machines have the same, but for what Debian keeps apart for each: that of
Python says how wide types are, which every 64-bit machine agrees on, and the extension uses the stable interface alone.
"""
import pathlib
import shutil
import sys
import sysconfig

SYSTEM = pathlib.Path("/usr/include")


def list_headers():
    """(place in the folder, header or folder of them) of each; of two with one place the later counts."""
    apart = SYSTEM / (sysconfig.get_config_var("MULTIARCH") or "")
    python = pathlib.Path(sysconfig.get_path("include"))
    for folder in (SYSTEM / "openssl", apart / "openssl"):
        yield from ((f"openssl/{path.name}", path) for path in folder.glob("*.h"))
    yield from ((path.name, path) for path in SYSTEM.glob("msgpack*") if path.suffix != ".hpp")
    for folder in (python, apart / python.name):
        yield from ((path.name, path) for path in folder.glob("*"))


def main():
    """Make the folder anew."""
    out = pathlib.Path(sys.argv[1])
    shutil.rmtree(out, ignore_errors=True)
    for place, path in list_headers():
        link = out / place
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(path)


if __name__ == "__main__":
    main()
