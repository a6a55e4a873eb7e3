"""Build wheels and give them the tag of the oldest Linux that they run on: build.py DIST client|client-aarch64|server|cuda13|sdist ...

They come from pyproject.toml (client, sdist), deploy/wheels/server and deploy/wheels/cuda13 by the build front end, in
the environment that runs this: see tests/requirements-rest.txt.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = {"client": TOP, "client-aarch64": TOP, "sdist": TOP, "server": TOP / "deploy/wheels/server", "cuda13": TOP / "deploy/wheels/cuda13"}
TARGETS = {"client-aarch64": "aarch64-linux-gnu.2.28"}  # the Makefile's, of what is compiled for another machine
# The driver's library, and those of NVIDIA's packages, which the wheel needs beside it.
NOT_CONTAINED = ("libcuda.so.*", "libcublas*.so.*", "libcufft*.so.*", "libcusolver*.so.*", "libcusparse*.so.*",
                 "libcurand*.so.*", "libnvJitLink*.so.*")
# Front ends and zip files take the time from here: two builds have equal bytes.
ENVIRONMENT = {**os.environ, "SOURCE_DATE_EPOCH": os.environ.get("SOURCE_DATE_EPOCH", "1577836800"),
               "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"}


def run_module(*command, target=""):
    """Run a Python module quietly; what it says is shown when it fails."""
    environment = {**ENVIRONMENT, "ARRAYD_TARGET": target}
    done = subprocess.run([sys.executable, "-m", *map(str, command)], env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"{done.stdout}\n{command[0]} failed")
    return done.stdout


def place(path, dist):
    """Copy what was built into dist; where it lies then."""
    return pathlib.Path(shutil.copyfile(path, dist / path.name))


def build_one(kind, dist):
    """Build one wheel, or the source distribution, into dist; its path."""
    with tempfile.TemporaryDirectory() as made:
        option = "--sdist" if kind == "sdist" else "--wheel"
        target = TARGETS.get(kind, "")
        run_module("build", option, "--no-isolation", "--outdir", made, FOLDERS[kind], target=target)
        built = next(pathlib.Path(made).iterdir())
        if kind == "sdist":
            return place(built, dist)
        tagged = pathlib.Path(made, "tagged")
        run_module("auditwheel", "repair", "--plat", "auto", *(f"--exclude={name}" for name in NOT_CONTAINED),
                   "--wheel-dir", tagged, built)
        wheel = next(tagged.iterdir())
        return place(wheel, dist)


def main():
    """Build what the command line names. Files of the same kind, wheels or source, that an earlier build has left go first: DIST is
    released as it is."""
    dist, kinds = pathlib.Path(sys.argv[1]), sys.argv[2:]
    dist.mkdir(parents=True, exist_ok=True)
    for pattern in {"*.tar.gz" if kind == "sdist" else "*.whl" for kind in kinds}:
        for old in dist.glob(pattern):
            old.unlink()
    for kind in kinds:
        print(build_one(kind, dist))


if __name__ == "__main__":
    main()
