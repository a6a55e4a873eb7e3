"""Containers without an engine: roots made of the host's files, each entered in namespaces of its own.

With ARRAYD_TEST_IMAGES=FOLDER they are what deploy/stages.py has made of the Dockerfile's stages in that folder.
"""
import functools
import glob
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig

import raw

SHARED = "/run/arrayd"  # where each has the one folder that they share
NAMESPACES = ("mnt", "pid", "ipc", "net", "uts")

# The script mounts what belongs into the root and becomes the program in it. $1: the root. $2: the folder that is shared.
# $3: rw or ro. $4: user and group, if others than here. $5: how many pairs of folders to be seen in it follow. Then comes
# the program.
ENTER = f"""
set -e
root=$1 shared=$2 mode=$3 user=$4 count=$5
shift 5
mount --make-rprivate /
mount --bind "$root" "$root"
while [ "$count" -gt 0 ]; do
    mkdir -p "$root$2"
    mount --bind "$1" "$root$2"
    mount -o remount,bind,ro "$root$2"
    shift 2
    count=$((count - 1))
done
mount --bind "$shared" "$root{SHARED}"
[ "$mode" = rw ] || mount -o remount,bind,ro "$root{SHARED}"
for device in null zero urandom; do mount --bind /dev/$device "$root/dev/$device"; done
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
cd "$root"
exec chroot ${{user:+--userspec="$user"}} "$root" "$@"
"""


def unshare(user_namespace):
    command = ["unshare", "--mount", "--pid", "--ipc", "--net", "--uts", "--fork", "--kill-child=KILL"]
    return [*command, "--user", "--map-root-user"] if user_namespace or os.geteuid() else command


@functools.cache
def refusal():
    """Why there are no namespaces here, or None."""
    try:
        done = subprocess.run([*unshare(False), "mount", "-t", "proc", "proc", "/proc"], capture_output=True, text=True)
    except FileNotFoundError:
        return "there is no unshare here"
    return done.stderr.strip() if done.returncode else None


class Root:
    """A folder that becomes somebody's /. The folders that are bound into it are there while a container runs."""

    def __init__(self, folder):
        self.folder, self.bound = pathlib.Path(folder), []
        for name in ("dev", "proc", "tmp", "run/arrayd"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        for device in ("null", "zero", "urandom"):
            (self.folder / "dev" / device).touch()
        self.folder.chmod(0o755)
        self.program, self.environment = [], {}

    def copy(self, source, target=None):
        place = self.folder / str(target or source).lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, place)
        place.chmod(0o755)

    def libraries(self, files):
        """The shared libraries that programs and libraries need, where they look for them."""
        out = subprocess.run(["ldd", *map(str, files)], capture_output=True, text=True).stdout
        for path in sorted({*re.findall(r"=> (/\S+)", out), *re.findall(r"^\s+(/\S+) \(0x", out, re.M)}):
            if not (self.folder / path.lstrip("/")).exists():
                self.copy(path)

    def bind(self, source, target=None):
        self.bound += [str(source), str(target or source)]


def image_root(name):
    """The root of a stage of the Dockerfile, or None where there is none to be used."""
    images = os.environ.get("ARRAYD_TEST_IMAGES")
    if not images or not (pathlib.Path(images) / name).exists():
        return None
    root = Root(pathlib.Path(images) / name)
    start = json.loads((pathlib.Path(images) / f"{name}.json").read_text())
    root.environment, root.program = start["ENV"], json.loads(start.get("ENTRYPOINT", "[]"))
    return root


def server_root(folder):
    """Make the root that the server's image has: its programs and a C library."""
    if root := image_root("server"):
        return root
    root = Root(folder)
    root.program = ["/usr/lib/arrayd/arrayd"]
    programs = [raw.BUILD / "bin" / name for name in ("arrayd", "arrayd-worker", "arrayd-compile", "libarrayd-cpu.so")]
    for program in programs:
        root.copy(program, f"/usr/lib/arrayd/{program.name}")
    root.libraries(programs)
    crypto = re.search(r"libcrypto\.so\.3 .*=> (\S+)", subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True,
                                                                     text=True).stdout)[1]
    root.copy(os.path.realpath(crypto), crypto)  # libcrypto is loaded by name
    return root


def client_root(folder):
    """Make the root that a client's image has: Python, NumPy and the package without its server."""
    service = pathlib.Path(__file__).with_name("container_service.py")
    if root := image_root("client"):
        root.program = ["python", "/tests/container_service.py"]
        root.copy(service, "/tests/container_service.py")
        root.environment = {**root.environment, "ARRAYD_URL": f"unix:{SHARED}/s"}
        return root
    root = Root(folder)
    root.program = ["/usr/bin/python3", "-m", "container_service"]
    root.environment = {"PYTHONHOME": "/usr", "PYTHONPATH": "/site", "ARRAYD_URL": f"unix:{SHARED}/s",
                        "PYTHONDONTWRITEBYTECODE": "1"}
    standard = pathlib.Path(sysconfig.get_path("stdlib"))
    python = pathlib.Path(os.path.realpath(sys.executable))
    root.copy(python, "/usr/bin/python3")
    root.bind(standard, f"/usr/lib/{standard.name}")
    for name in ("numpy", "ml_dtypes"):
        package = pathlib.Path(importlib.util.find_spec(name).origin).parent
        for place in (package, package.with_name(f"{name}.libs")):
            if place.exists():
                root.bind(place, f"/site/{place.name}")
    shutil.copytree(pathlib.Path(importlib.util.find_spec("arrayd").origin).parent, root.folder / "site" / "arrayd",
                    ignore=shutil.ignore_patterns("bin", "__pycache__"))
    root.copy(service, "/site/container_service.py")
    modules = [p for folder in (*root.bound[::2], root.folder / "site") for p in glob.glob(f"{folder}/**/*.so", recursive=True)
               if "/site-packages/" not in p[len(str(folder)):]]
    root.libraries([python, *modules])
    return root


class Container:
    """A program that runs in a root, with namespaces of its own, as somebody."""

    def __init__(self, root, shared, arguments=(), mode="rw", uid=None, user_namespace=False):
        user = f"{uid}:{uid}" if uid and os.geteuid() == 0 else ""
        self.process = subprocess.Popen(
            [*unshare(user_namespace), "sh", "-c", ENTER, "enter", str(root.folder), str(shared), mode, user,
             str(len(root.bound) // 2), *root.bound, *root.program, *arguments],
            env={"PATH": os.environ["PATH"], **root.environment}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        raw.RUNNING.append(self.process)

    @property
    def inside(self):
        """The process id, out here, of the first process in it."""
        return raw.children(self.process.pid)[0]

    def namespaces(self):
        return {name: os.readlink(f"/proc/{self.inside}/ns/{name}") for name in NAMESPACES}

    def end(self):
        self.process.kill()
        return self.process.communicate()[1]


class Service(Container):
    """A client that evaluates what it is asked."""

    def __init__(self, root, shared, **more):
        super().__init__(root, shared, mode="ro", **more)

    def ask(self, text):
        """The value of an expression, or None of a statement; what it raises is raised here as RuntimeError."""
        self.process.stdin.write(f"{text!r}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(self.end())
        good, value = eval(answer)
        if not good:
            raise RuntimeError(value)
        return value
