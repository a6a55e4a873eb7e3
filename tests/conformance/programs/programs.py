"""Fetches programs that know CuPy, and runs their own tests on arrayd: programs.py [--build build/release] [program ...]"""
import argparse
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[2]
sys.path.insert(0, str(HERE.parent))
from fetch import NotFetched, deploy  # noqa: E402

PROGRAMS = tomllib.loads((HERE / "programs.toml").read_text())


def find_program(name, cache):
    """The folder above a program's package, which is installed, or fetched unless the cache has it. NotFetched."""
    program = PROGRAMS[name]
    if program.get("installed"):
        return find_installed(name)
    folder = cache / f"{name}-{program['sha256'][:16]}"
    if not all((folder / kept).is_dir() for kept in program["package"]):
        content = deploy.read_archive(program.get("name", name), program["version"], program["sha256"], cache / "archives")
        deploy.unpack(content, {kept: kept for kept in program["package"]}, folder)
    return folder


def find_installed(package):
    """The folder in which a package is installed. NotFetched."""
    found = importlib.util.find_spec(package)
    if found is None:
        raise NotFetched(f"{package} is not installed: tests/requirements-rest.txt has it")
    return pathlib.Path(found.origin).resolve().parents[1]  # as pytest names tests


def run_tests(name, build, cache, more=()):
    """Run a program's tests on an embedded server of the build; the finished process of pytest."""
    program, folder = PROGRAMS[name], find_program(name, cache)
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("ARRAYD_", "PYTEST"))}
    environment.update(PYTHONPATH=os.pathsep.join([str(build / "python"), str(HERE), str(folder)]),
                       ARRAYD_URL=f"embedded:{os.environ.get('ARRAYD_TEST_BACKEND', 'cpu')}", ARRAYD_BIN=str(build / "bin" / "arrayd"),
                       PYTHONDONTWRITEBYTECODE="1", ARRAYD_PROGRAM_WITHOUT=json.dumps(program.get("without", {})),
                       **program.get("environment", {}))
    left_out = [f"--deselect={test}" for test in program.get("deselect", {})]
    command = [sys.executable, "-m", "pytest", "-p", "stand_for_cupy", "-p", "no:cacheprovider", "-q", "--tb=short",
               "-c", os.devnull, f"--rootdir={folder}", *program["tests"], *left_out, *more]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=900)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=TOP / "build/release", type=pathlib.Path)
    parser.add_argument("program", nargs="*", default=list(PROGRAMS))
    options = parser.parse_args()
    build, failed = options.build.resolve(), []
    for name in options.program:
        try:
            done = run_tests(name, build, build.parent / "programs")
        except NotFetched as error:
            print(f"{name}: {error}", file=sys.stderr)
            return 2
        print(done.stdout, done.stderr, sep="", end="")
        print(f"{name} {PROGRAMS[name].get('version', 'as installed')}: " + ("passed" if done.returncode == 0 else f"exit {done.returncode}"))
        failed += [name] if done.returncode else []
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
