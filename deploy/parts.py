"""Software of others that is linked into what arrayd ships, and its licences: parts.py [FILE ...] lists what is in files.

The linker writes maps (build/release/obj/maps), which name the archives that it has taken something from. All that it
names has a row here, and so have headers that come from the package registry (fetch.py).
"""
import dataclasses
import functools
import pathlib
import re
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[1]
BUILT = TOP / "build" / "release"
ARCHIVE = re.compile(r"^(/\S+?\.[ao])(?:\(\S+\))?$", re.M)
TEMPORARY = re.compile(r"cc\w{6}\.o")  # what the compiler makes of a source that it also links
LOADED = re.compile(r"^LOAD (/\S+\.o)$", re.M)


@dataclasses.dataclass(frozen=True)
class Part:
    """One piece of software of others.

    licence: SPDX. debian: its packages whose archives are linked. source: what deploy/fetch.py gets it from. includes:
    its headers, as a regular expression, where code in them gets into objects. notice: whether its notice must go with
    copies (deploy/notices).
    """
    name: str
    licence: str
    site: str
    debian: tuple = ()
    source: str = ""
    includes: str = "(?!)"
    notice: bool = True
    why: str = ""


PARTS = (
    Part("libuv", "MIT", "https://libuv.org", debian=("libuv1-dev",)),
    Part("msgpack-c", "BSL-1.0", "https://msgpack.org", debian=("libmsgpack-dev",),
         includes=r"msgpack(\.h|/.*)"),
    Part("inih", "BSD-3-Clause", "https://github.com/benhoyt/inih", debian=("libinih-dev",)),
    Part("libmicrohttpd", "LGPL-2.1-or-later", "https://www.gnu.org/software/libmicrohttpd/",
         debian=("libmicrohttpd-dev",),
         why="Linked statically, which section 6 allows: the notice goes with it, and the source distribution links the "
             "programs with another version of it (make HTTP_LIBS=...)."),
    Part("jansson", "MIT", "https://github.com/akheron/jansson", debian=("libjansson-dev",)),
    Part("lapack", "BSD-3-Clause", "https://www.netlib.org/lapack/", debian=("liblapacke-dev", "liblapack-dev")),
    Part("openblas", "BSD-3-Clause", "https://www.openblas.net", debian=("libopenblas-pthread-dev",)),
    Part("xsf", "BSD-3-Clause", "https://github.com/scipy/xsf", source="scipy", includes=r"xsf/.*"),
    Part("pocketfft", "BSD-3-Clause", "https://gitlab.mpcdf.mpg.de/mtr/pocketfft", source="scipy",
         includes=r"pocketfft_hdronly\.h"),
    Part("dlpack", "Apache-2.0", "https://github.com/dmlc/dlpack", source="apache-tvm-ffi",
         includes=r"dlpack/.*"),
    Part("gcc-runtime", "GPL-3.0-or-later WITH GCC-exception-3.1", "https://gcc.gnu.org",
         debian=("libgcc-12-dev", "libstdc++-12-dev", "libgcc-13-dev", "libstdc++-13-dev", "libgcc-14-dev",
                 "libstdc++-14-dev"), notice=False,
         why="The exception lets what GCC compiles contain these parts under any licence."),
    Part("glibc-start", "LGPL-2.1-or-later", "https://www.gnu.org/software/libc/", debian=("libc6-dev",), notice=False,
         why="Start files and stubs (crti.o, libc_nonshared.a), of which the licence says that they may be linked into "
             "anything; the C library itself is not contained."),
    Part("cuda-runtime", "LicenseRef-NVIDIA-CUDA-EULA", "https://docs.nvidia.com/cuda/eula/", notice=False,
         why="libcudart_static, which NVIDIA's agreement names among what may be distributed (attachment A)."),
)
# Shared libraries that what is shipped needs from the system, which has them under their own licences.
SYSTEM = ("libc.so.6", "libm.so.6", "libmvec.so.1", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libgcc_s.so.1",
          "libstdc++.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1")
# Parts of each of our packages: files below build/release.
PRODUCTS = {
    "arrayd": ("python/arrayd/_core.abi3.so",),
    "arrayd-server": tuple(f"bin/{name}" for name in ("arrayd", "arrayctl", "arrayd-worker", "arrayd-compile", "arrayd-pull",
                                                      "arrayd-paths.so", "libarrayd-cpu.so")),
    "arrayd-cuda13": ("bin/libarrayd-cuda.so",),
    "libarrayd": ("lib/libarrayd.so.0",),
}


@functools.cache
def find_package(path):
    """The Debian package that a file belongs to, without its architecture, or None."""
    done = subprocess.run(["dpkg", "-S", str(path)], capture_output=True, text=True)
    if done.returncode:  # a merged /usr
        done = subprocess.run(["dpkg", "-S", str(path).removeprefix("/usr")], capture_output=True, text=True)
    return done.stdout.split(":", 1)[0] if done.returncode == 0 else None


def find_version(package):
    """The version of an installed Debian package, or None."""
    done = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 and done.stdout else None


@functools.cache
def read_map(name):
    """The linker's map for the file of that name."""
    return (BUILT / "obj" / "maps" / f"{name}.map").read_text()


def read_archives(name):
    """The archives and objects of others that the linker took something from for the file of that name."""
    text = read_map(name)
    used = text[:text.index("Memory Configuration")]
    taken = {m[1] for m in ARCHIVE.finditer(used)} | {m[1] for m in LOADED.finditer(text)}
    return sorted({str(pathlib.Path(path).resolve()) for path in taken
                   if not path.startswith(str(TOP)) and not TEMPORARY.fullmatch(pathlib.Path(path).name)})


def read_includes(objects):
    """Return what our sources of these objects include from elsewhere: the names in `#include <...>`."""
    found, sources = set(), set()
    for item in objects:
        rule = (BUILT / "obj" / item).with_suffix(".d").read_text()
        sources |= set(rule.partition(":")[2].replace("\\\n", " ").split("\n")[0].split())
    for source in sources:
        path = TOP / source
        if path.suffix in (".c", ".h", ".cpp", ".hpp", ".cu", ".cuh") and path.exists():
            found |= set(re.findall(r"^\s*#\s*include\s*<([^>]+)>", path.read_text(), re.M))
    return {name for name in found if not (TOP / name).exists() and not (TOP / "client-c/include" / name).exists()}


def read_headers(objects):
    """The parts of whose headers code is in the objects."""
    includes = read_includes(objects)
    return {part for part in PARTS if any(re.fullmatch(part.includes, name) for name in includes)}


def read_objects(name):
    """Our own objects that the linker took for the file, by their paths below obj."""
    text = read_map(name)
    objects = set(re.findall(r"build/release/obj/(\S+?\.o)\b", text))
    archived = {m for m in re.findall(r"build/release/lib/\S+\.a\((\S+?\.o)\)", text)}
    every = {path.with_suffix(".o") for path in (BUILT / "obj").rglob("*.d")}
    objects |= {str(path.relative_to(BUILT / "obj")) for path in every if path.name in archived}
    return {item for item in objects if (BUILT / "obj" / item).with_suffix(".d").exists()}


def find_part(package):
    """The part that a Debian package brings, or None."""
    return next((part for part in PARTS if package in part.debian), None)


@functools.cache
def find_parts(name):
    """Return what of others is in the file of that name; LookupError for what has no row."""
    found = read_headers(read_objects(name))
    for archive in read_archives(name):
        if archive.endswith("libcudart_static.a"):
            found.add(next(part for part in PARTS if part.name == "cuda-runtime"))
            continue
        package = find_package(archive)
        if not find_part(package):
            raise LookupError(f"{name} contains something of {archive} (Debian package {package}), which has no row in "
                              "PARTS of deploy/parts.py")
        found.add(find_part(package))
    return tuple(sorted(found, key=lambda part: part.name))


def find_product_parts(product):
    """Return what of others is in a package of ours."""
    return sorted({part for path in PRODUCTS[product] for part in find_parts(pathlib.Path(path).name)},
                  key=lambda part: part.name)


def find_needed(path):
    """The shared libraries that a file names."""
    text = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"\(NEEDED\).*\[(.+)\]", text))


def main():
    """Print the parts of the files that the command line names, or of all."""
    names = sys.argv[1:] or [pathlib.Path(path).name for paths in PRODUCTS.values() for path in paths
                             if (BUILT / path).exists()]
    for name in names:
        print(name)
        for part in find_parts(name):
            print(f"    {part.name:15} {part.licence}")


if __name__ == "__main__":
    main()
