"""Answers to hatchling when it builds a wheel of arrayd: the files that make has built, their tag and what they need.

    arrayd          arrayd/*.py, *.pyi, _core.abi3.so        the client
    arrayd-server   arrayd/bin/...                           the programs and the CPU backend
    arrayd-cuda13   arrayd/bin/libarrayd-cuda.so             the CUDA backend

The client and the server look for programs and backends in arrayd/bin beside the package, whichever wheel they come by.
"""
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILT = TOP / "build" / "release"
TARGET = os.environ.get("ARRAYD_TARGET", "")  # another machine to compile the client for, as the Makefile takes it
SCRIPTS = ("arrayd", "arrayctl")
PROGRAMS = ("arrayd", "arrayctl", "arrayd-worker", "arrayd-compile", "arrayd-pull", "arrayd-paths.so", "libarrayd-cpu.so")
# NVIDIA's packages of the libraries that the CUDA backend and arrayd-compile load.
CUDA = ("nvidia-cublas>=13,<14", "nvidia-cufft>=12,<13", "nvidia-cusolver>=12,<13", "nvidia-cuda-nvrtc>=13,<14",
        "nvidia-cuda-runtime>=13,<14", "nvidia-cuda-cccl>=13,<14")


def run_make(*targets):
    """Build targets of the Makefile; what they print goes to stderr, as stdout is the build front end's."""
    subprocess.run(["make", "-C", TOP, "--no-print-directory", *targets], check=True, stdout=sys.stderr)


# Names of libraries that are for the machine that built them alone, and why they are not packed.
NOT_PACKED = {
    b"libarrayd-cuda-unoptimised.so": "is compiled without optimisation, as `make test-rest` does where there is no GPU. "
                                      "`make cuda` compiles it for use",
    b"libarrayd-cpu-native.so": "has kernels for the processor of this machine alone, as `make demo` and `make test` build it. "
                                "`make programs` adds the others",
}


def copy_stripped(path, target):
    """Copy a program or library without its debug information; refuse one that is for this machine alone."""
    data = path.read_bytes()
    for name, reason in NOT_PACKED.items():
        if b"\0" + name + b"\0" in data:
            raise SystemExit(f"not packed: {path} {reason}")
    target.parent.mkdir(parents=True, exist_ok=True)
    if shutil.which("strip"):
        subprocess.run(["strip", "--strip-unneeded", "-o", target, path.resolve()], check=True)
    else:
        shutil.copyfile(path, target)
    target.chmod(0o755)


def stage_client(stage):
    """Put the package, its extension and the type stubs, which are made by importing it, below stage."""
    run_make("extension")
    sources, extension = TOP / "client-python" / "arrayd", "arrayd/_core.abi3.so"
    shutil.copytree(sources, stage / "arrayd", ignore=shutil.ignore_patterns("__pycache__"))
    copy_stripped(BUILT / "python" / extension, stage / extension)
    path = os.pathsep.join(filter(None, [str(stage), os.environ.get("PYTHONPATH")]))  # the front end has NumPy there
    with tempfile.TemporaryDirectory() as stubs:
        subprocess.run([sys.executable, TOP / "docs" / "stubs.py", stubs], check=True, stdout=sys.stderr,
                       env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"})
        shutil.copytree(stubs, stage, dirs_exist_ok=True)
    if TARGET:  # this machine could not have imported the extension of another
        run_make("extension", f"TARGET={TARGET}")
        shutil.copyfile(TOP / "build" / TARGET / "python" / extension, stage / extension)


def stage_server(stage):
    """Put the programs and the CPU backend below stage, with the licences of what they contain."""
    run_make("programs", "NVCC=")
    for name in PROGRAMS:
        copy_stripped(BUILT / "bin" / name, stage / "arrayd" / "bin" / name)


def stage_scripts(stage):
    """Put a script for each command below stage: hatchling takes one file for one script."""
    for name in SCRIPTS:
        shutil.copyfile(TOP / "client-python" / "program.py", stage / name)
        (stage / name).chmod(0o755)
    return {str(stage / name): name for name in SCRIPTS}


def stage_cuda(stage):
    """Put the CUDA backend below stage."""
    run_make("cuda")
    copy_stripped(BUILT / "bin" / "libarrayd-cuda.so", stage / "arrayd" / "bin" / "libarrayd-cuda.so")


STAGES = {"arrayd": stage_client, "arrayd-server": stage_server, "arrayd-cuda13": stage_cuda}


def find_files(stage):
    """Staged files by their place in the wheel."""
    return {str(path): str(path.relative_to(stage)) for path in sorted(stage.rglob("*")) if path.is_file()}


def name_platform(target):
    """The part of a wheel's tag that says where it runs; target: "" or the machine and system that it is compiled for."""
    machine, _, system = target.partition("-")
    if not system.startswith("macos"):
        return f"linux_{machine or platform.machine()}"
    version = system.partition(".")[2].replace(".", "_")
    return f"macosx_{version}_{machine.replace('aarch64', 'arm64')}"


def name_tag(project):
    """The wheel's tag; what the server's wheels contain needs no certain Python."""
    python = "cp311-abi3" if project == "arrayd" else "py3-none"
    return f"{python}-{name_platform(TARGET)}"


class CustomBuildHook(BuildHookInterface):
    """The files of one wheel."""

    def initialize(self, version, build_data):
        """Build and stage the files, and name them to hatchling."""
        if self.target_name != "wheel":
            return
        project = self.metadata.core.name
        self.stage = tempfile.TemporaryDirectory(prefix="wheel-")
        files, scripts = pathlib.Path(self.stage.name, "files"), pathlib.Path(self.stage.name, "scripts")
        files.mkdir()
        scripts.mkdir()
        STAGES[project](files)
        build_data["force_include"].update(find_files(files))
        build_data.update(tag=name_tag(project), pure_python=False)
        if project == "arrayd-server":
            build_data["shared_scripts"].update(stage_scripts(scripts))

    def finalize(self, version, build_data, artifact_path):
        """Remove what was staged."""
        if self.target_name == "wheel":
            self.stage.cleanup()


class CustomMetadataHook(MetadataHookInterface):
    """Requirements of the server's wheels: each other, of one version."""

    def update(self, metadata):
        """Add the packages that one project needs."""
        version = re.search(r"^VERSION := (\S+)$", (TOP / "Makefile").read_text(), re.M)[1]
        others = {"arrayd-server": [f"arrayd=={version}"], "arrayd-cuda13": [f"arrayd-server=={version}", *CUDA]}
        metadata["dependencies"] = others[metadata["name"]]
