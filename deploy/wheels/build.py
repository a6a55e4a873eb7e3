"""Build wheels and give them the tag of the oldest Linux that they run on: build.py DIST client|server|cuda13|sdist ...

They come from pyproject.toml (client, sdist), deploy/wheels/server and deploy/wheels/cuda13 by the build front end, in
the environment that runs this: see tests/requirements-rest.txt.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = {"client": TOP, "sdist": TOP, "server": TOP / "deploy/wheels/server", "cuda13": TOP / "deploy/wheels/cuda13"}
# The driver's library, and those of NVIDIA's packages, which the wheel needs beside it.
NOT_CONTAINED = ("libcuda.so.*", "libcublas*.so.*", "libcufft*.so.*", "libcusolver*.so.*", "libcusparse*.so.*",
                 "libcurand*.so.*", "libnvJitLink*.so.*")
# Front ends and zip files take the time from here: two builds have equal bytes.
ENVIRONMENT = {**os.environ, "SOURCE_DATE_EPOCH": os.environ.get("SOURCE_DATE_EPOCH", "1577836800"),
               "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"}


def run_module(*command):
    """Run a Python module quietly; what it says is shown when it fails."""
    done = subprocess.run([sys.executable, "-m", *map(str, command)], env=ENVIRONMENT, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"{done.stdout}\n{command[0]} failed")
    return done.stdout


def build_one(kind, dist):
    """Build one wheel, or the source distribution, into dist; its path."""
    with tempfile.TemporaryDirectory() as made:
        option = "--sdist" if kind == "sdist" else "--wheel"
        run_module("build", option, "--no-isolation", "--outdir", made, FOLDERS[kind])
        built = next(pathlib.Path(made).iterdir())
        if kind == "sdist":
            target = dist / built.name
            target.write_bytes(built.read_bytes())
            return target
        tagged = pathlib.Path(made, "tagged")
        run_module("auditwheel", "repair", "--plat", "auto", *(f"--exclude={name}" for name in NOT_CONTAINED),
                   "--wheel-dir", tagged, built)
        wheel = next(tagged.iterdir())
        for old in dist.glob(wheel.name.split("-")[0] + "-*.whl"):
            old.unlink()
        target = dist / wheel.name
        target.write_bytes(wheel.read_bytes())
        return target


def main():
    """Build what the command line names."""
    dist = pathlib.Path(sys.argv[1])
    dist.mkdir(parents=True, exist_ok=True)
    for kind in sys.argv[2:]:
        print(build_one(kind, dist))


if __name__ == "__main__":
    main()
