"""Build the stages of the Dockerfile into folders, with debootstrap and chroot, where there is no container engine.

stages.py FOLDER STAGE... [--arg NAME=VALUE ...]: FOLDER/STAGE becomes the root of each, and of those that it needs.
Knows the instructions that the Dockerfile uses. The images it begins with are Debian's packages: debian is a minimal
system, python one with Python, whose site-packages lie where those of the image do; scratch is empty.
"""
import argparse
import json
import os
import pathlib
import re
import shlex
import shutil
import stat
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
MIRROR = "http://deb.debian.org/debian"
TRUST = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")  # of this machine, which may be behind a mirror of its own
BASES = {  # suite of Debian, further packages, what is done in it then
    "debian:12": ("bookworm", "", ""),
    "debian:12-slim": ("bookworm", "", "slim"),
    "python:3.13-slim-trixie": ("trixie", "python3,python3-pip,ca-certificates,netbase", "slim python"),
    "scratch": None,
}
SLIM = "rm -rf /usr/share/doc /usr/share/man /usr/share/locale /usr/share/info /var/cache/apt /var/lib/apt/lists"
PYTHON = ("mkdir -p /usr/local/lib/python3.13 && ln -s dist-packages /usr/local/lib/python3.13/site-packages && "
          "ln -s python3 /usr/bin/python && rm -f /usr/lib/python3*/EXTERNALLY-MANAGED && "
          "find /usr/lib -name __pycache__ -prune -exec rm -r {} +")


def run(command, **more):
    print("+", " ".join(map(str, command))[:200], flush=True)
    subprocess.run([str(each) for each in command], check=True, stdin=subprocess.DEVNULL, **more)


def instructions(text):
    """(instruction, arguments) of each line, comments left out and continued lines joined."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    for line in re.sub(r"\\\n", " ", "\n".join(lines)).splitlines():
        if line.strip():
            yield line.split(None, 1)


def parse(text):
    """The arguments given before the first stage, and the stages: name -> (base, instructions)."""
    given, stages, current = {}, {}, None
    for word, rest in instructions(text):
        if word == "FROM":
            base, name = re.fullmatch(r"(\S+) AS (\S+)", rest).groups()
            current = []
            stages[name] = base, current
        elif current is None:
            name, _, value = rest.partition("=")
            given[name] = value
        else:
            current.append((word, rest))
    return given, stages


def base_root(image, folder):
    """A folder with what the image has in it, made once."""
    place = folder / ("base-" + re.sub(r"\W", "-", image))
    if BASES[image] is None:
        place.mkdir(exist_ok=True)
    elif not place.exists():
        suite, packages, more = BASES[image]
        include = [f"--include={packages}"] if packages else []
        run(["debootstrap", "--variant=minbase", *include, suite, f"{place}.new", MIRROR])
        for each in more.split():
            run(["chroot", f"{place}.new", "sh", "-c", {"slim": SLIM, "python": PYTHON}[each]])
        os.rename(f"{place}.new", place)
    return place


class Stage:
    """One stage on its way: its root, its variables, its working folder."""

    def __init__(self, root, given):
        self.root, self.given = root, given
        self.environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"}
        self.arguments, self.folder, self.start = {}, "/", {}

    def inside(self, path):
        return self.root / os.path.normpath(os.path.join(self.folder, path)).lstrip("/")

    def run(self, command):
        """A command in the stage, with this machine's network, and the authorities that it trusts."""
        variables = {**self.environment, **self.arguments, "DEBIAN_FRONTEND": "noninteractive"}
        files = {f"dev/{name}": f"/dev/{name}" for name in ("null", "zero", "urandom")}
        if TRUST.exists():
            files["dev/trust"] = TRUST
            variables.update(PIP_CERT="/dev/trust", SSL_CERT_FILE="/dev/trust")
        mounts = "; ".join(f"touch {inside}; mount --bind {outside} {inside}" for inside, outside in files.items())
        enter = f"cd {shlex.quote(str(self.root))}; mount -t proc proc proc; {mounts}; exec chroot . sh -ec \"$1\""
        run(["unshare", "--mount", "--pid", "--fork", "sh", "-ec", enter, "sh", f"cd {self.folder}; {command}"], env=variables)

    def copy(self, words, roots):
        origin = TOP
        if words[0].startswith("--from="):
            origin = roots[words.pop(0)[len("--from="):]]
        *sources, target = words
        place = self.inside(target)
        place.mkdir(parents=True, exist_ok=True)
        for source in sources:
            if origin == TOP and source == ".":
                files = subprocess.run(["git", "ls-files", "-z"], cwd=TOP, check=True, capture_output=True, text=True).stdout
                for name in filter(None, files.split("\0")):
                    (place / name).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(TOP / name, place / name)
                continue
            path = origin / source.lstrip("/")
            run(["cp", "-a", f"{path}/." if path.is_dir() else path, place])

    def take(self, word, rest, roots):
        if word == "RUN":
            self.run(rest)
        elif word == "COPY":
            self.copy(shlex.split(rest), roots)
        elif word == "ARG":
            name, _, value = rest.partition("=")
            self.arguments[name] = self.given.get(name, value)
        elif word == "ENV":
            self.environment.update(each.split("=", 1) for each in shlex.split(rest))
        elif word == "WORKDIR":
            self.folder = rest
            self.inside(".").mkdir(parents=True, exist_ok=True)
        elif word in ("USER", "ENTRYPOINT", "CMD", "HEALTHCHECK", "LABEL"):
            self.start[word] = rest
        else:
            raise SystemExit(f"stages.py: {word}: not an instruction that is known here")


def build(name, stages, given, folder, roots):
    """Build a stage, those before that it needs, and note how it is started."""
    if name in roots:
        return
    base, steps = stages[name]
    for needed in [base, *re.findall(r"--from=(\S+)", " ".join(rest for _, rest in steps))]:
        if needed in stages:
            build(needed, stages, given, folder, roots)
    origin = roots[base] if base in stages else base_root(base, folder)
    root = folder / name
    shutil.rmtree(root, ignore_errors=True)
    run(["cp", "-a", origin, root])
    stage = Stage(root, given)
    for word, rest in steps:
        stage.take(word, rest, roots)
    roots[name] = root
    stage.start["ENV"] = stage.environment
    (folder / f"{name}.json").write_text(json.dumps(stage.start))


def size(root):
    """Bytes as container engines count an image: those of its files, one with several names once."""
    every = (path.lstat() for path in root.rglob("*"))
    return sum({each.st_ino: each.st_size for each in every if stat.S_ISREG(each.st_mode)}.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("stage", nargs="+")
    parser.add_argument("--arg", action="append", default=[], metavar="NAME=VALUE")
    options = parser.parse_args()
    given, stages = parse((TOP / "Dockerfile").read_text())
    given.update(each.split("=", 1) for each in options.arg)
    options.folder.mkdir(parents=True, exist_ok=True)
    roots = {}
    for name in options.stage:
        build(name, stages, given, options.folder.resolve(), roots)
    for name in options.stage:
        packed = subprocess.run(f"tar -C {shlex.quote(str(roots[name]))} -c . | gzip -1 | wc -c", shell=True, check=True,
                                capture_output=True, text=True).stdout
        print(f"{name}: {size(roots[name]) / 1e6:.0f} MB, packed {int(packed) / 1e6:.0f} MB")


if __name__ == "__main__":
    sys.exit(main())
